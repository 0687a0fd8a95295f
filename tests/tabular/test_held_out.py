"""A table is refused before its preparation just where its rows could not be divided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optuna_daub.tabular import TableError
from optuna_daub.tabular import fit
from optuna_daub.tabular import pair
from optuna_daub.tabular.held_out import check_room
from optuna_daub.tabular.held_out import n_folds
from optuna_daub.tabular.held_out import said_rare
from optuna_daub.tabular.metrics import checked_metric
from optuna_daub.tabular.search import Search
from optuna_daub.tabular.target import Target


pandas = pytest.importorskip("pandas")


ACCURACY = checked_metric("accuracy", "classification", 2)


def target_of(counts: list[int]) -> Target:
    """Return a target of classes with so many rows each."""
    codes = np.repeat(np.arange(len(counts)), counts)
    kept = np.ones(len(codes), bool)
    return Target("y", "classification", codes, np.arange(len(counts)), kept, ())


def amounts_of(n: int, n_others: int) -> Target:
    """Return a target of amounts of which all but so many are 0."""
    amounts = np.zeros(n)
    amounts[:n_others] = np.arange(1, n_others + 1)
    return Target("y", "regression", amounts, np.array([]), np.ones(n, bool), ())


@pytest.mark.parametrize(
    ("n", "n_others"), [(100, 5), (500, 10), (500, 400), (1_999, 5), (2_000, 5), (4_000, 49)]
)
@pytest.mark.parametrize("seed", range(3))
def test_few_amounts_other_than_0_are_in_each_fold(n: int, n_others: int, seed: int) -> None:
    target, metric = amounts_of(n, n_others), checked_metric("r2", "regression", 0)
    check_room(target, metric)
    X = np.zeros((n, 1), np.float32)
    search = Search(X, target, metric, None, jobs=1, seed=seed, categories=())
    folds = search.objective(lambda trial: None, X)._division.folds
    assert len(folds) == n_folds(target) == 5
    counts = [np.count_nonzero(target.values[fold.validation]) for fold in folds]
    assert sum(counts) == n_others
    assert max(counts) - min(counts) <= 1 or n_others > n / 2


def test_fewer_amounts_than_folds_are_refused_for_metrics_of_a_variance() -> None:
    target = amounts_of(100, 4)
    with pytest.raises(TableError, match='only 4 of 100 of `y` differ from the rest: take "rmse"'):
        check_room(target, checked_metric("r2", "regression", 0))
    check_room(target, checked_metric("rmse", "regression", 0))


def can_be_divided(target: Target) -> bool:
    """Return whether the objective and the pruner of a search can be made."""
    X, metric = np.zeros((len(target.values), 1), np.float32), checked_metric(None, target.task, 2)
    search = Search(X, target, metric, None, jobs=1, seed=0, categories=())
    try:
        objective = search.objective(lambda trial: None, X)
        pair.pruner(objective.n_train, objective.smallest_size)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "counts",
    [
        *([2] * k for k in (10, 250, 999, 1_000, 1_001)),
        *([3] * k for k in (7, 400, 667, 900)),
        *([2] * k + [3] for k in (9, 10)),
        *([2] * k + [4] for k in (8, 9)),
        *([5] * k for k in (4, 399, 400, 401, 450)),
        *([4] * k + [2_000 - 4 * k] for k in (398, 399, 400, 401)),
    ],
    ids=lambda counts: f"{len(counts)} classes in {sum(counts)} rows",
)
def test_classes_need_room_in_each_part(counts: list[int]) -> None:
    target = target_of(counts)
    if can_be_divided(target):
        check_room(target, ACCURACY)
        return
    with pytest.raises(TableError, match=rf"too few for the {len(counts):,} classes of `y`"):
        check_room(target, ACCURACY)


def test_both_answers_are_tested() -> None:
    assert can_be_divided(target_of([4] * 399 + [404]))
    assert not can_be_divided(target_of([4] * 400 + [400]))
    assert not can_be_divided(target_of([2] * 250))
    assert n_folds(target_of([2] * 250)) == 2


def test_too_many_classes_are_refused_in_words_of_the_table() -> None:
    frame = pandas.DataFrame(
        {"a": np.arange(2_700.0), "y": [f"c{at // 3}" for at in range(2_700)]}
    )
    with pytest.raises(TableError, match=r"2,160 are learnt from and 540 scored") as error:
        fit(frame, "y", say=None)
    for word in ("test_size", "scoring", "stratify"):
        assert word not in str(error.value)


def test_amounts_in_words_may_be_meant() -> None:
    target = target_of([2] * 10)
    for words, is_hinted in (([f"{i / 2}" for i in range(10)], True), ([*"abcdefghij"], False)):
        with pytest.raises(TableError) as error:
            check_room(replace(target, classes=np.array(words, object)), ACCURACY)
        assert ('task="regression"' in str(error.value)) == is_hinted


@pytest.mark.parametrize(
    ("name", "counts", "said"),
    [
        ("auc", [2_460, 40], "fewer than 10 rows of some are scored (1)"),
        ("auc", [2_440, 60], ""),
        ("accuracy", [2_460, 40], ""),
        ("log_loss", [2_460, 40], ""),
        ("accuracy", [200, 3], "means over 3 folds instead of 5"),
    ],
)
def test_rare_classes_are_named_if_scores_vary_for_them(
    name: str, counts: list[int], said: str
) -> None:
    notes = said_rare(target_of(counts), checked_metric(name, "classification", 2))
    assert [said in note for note in notes] == [True] * bool(said)


@pytest.mark.parametrize("n_rows", [4, 5, 6, 7, 8])
def test_the_pruner_of_few_rows_has_three_sizes(n_rows: int) -> None:
    sizes = pair.pruner(n_rows).policy.sizes
    assert len(sizes) >= 3
    assert sizes[-1] == n_rows
