"""Folds: which rows a candidate is trained on at which size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection import check_cv

from optuna_daub.objective.data import Classes
from optuna_daub.objective.subsets import Fold
from optuna_daub.sklearn.folds import Folds
from optuna_daub.sklearn.folds import divided
from optuna_daub.sklearn.folds import size_grid


ROWS = np.arange(103)
LABELS = (ROWS % 7 == 0).astype(int)


def test_subsets_are_nested_and_all_rows_are_the_splitters() -> None:
    splitter = KFold(4)
    folds = divided(splitter, Ridge(), ROWS[:, None], ROWS, {}, seed=3)
    for place, (train, test) in enumerate(splitter.split(ROWS)):
        before: set[int] = set()
        for size in (1, 5, 20, 60, folds.n_train):
            rows, validation = folds.rows(place, size)
            # A fold with a row less than the largest takes its share, rounded up.
            assert len(rows) in (size, size - 1) if size == folds.n_train else len(rows) == size
            assert before <= set(rows) <= set(train)
            np.testing.assert_array_equal(validation, test)
            before = set(rows)
        np.testing.assert_array_equal(folds.rows(place, folds.n_train)[0], train)


def test_a_fold_without_rows_to_score_is_refused() -> None:
    splitter = check_cv([(ROWS[:50], ROWS[50:]), (ROWS[50:], ROWS[:0])])
    with pytest.raises(ValueError, match=r"`cv` must give folds with rows to score, but .* gave"):
        divided(splitter, Ridge(), ROWS[:, None], ROWS, {}, seed=0)


def test_subsets_of_a_classifier_keep_the_classes_in_proportion() -> None:
    folds = divided(StratifiedKFold(3), LogisticRegression(), ROWS[:, None], LABELS, {}, seed=0)
    assert folds.n_classes == 2
    for place in range(3):
        for size in (2, 7, 14, 35):
            rows, _ = folds.rows(place, size)
            assert abs(LABELS[rows].sum() - max(1, size * LABELS.mean())) <= 1


def test_in_time_order_a_subset_is_the_most_recent_rows() -> None:
    folds = divided(TimeSeriesSplit(4), Ridge(), ROWS[:, None], ROWS, {}, seed=0)
    for place in range(4):
        rows, validation = folds.rows(place, folds.n_train // 3)
        every = folds.training[place]
        assert rows.max() == every.max() == validation.min() - 1
        np.testing.assert_array_equal(rows, every[-len(rows) :])
        assert len(rows) == pytest.approx(len(every) / 3, abs=1)


def test_seeds_draw_other_subsets() -> None:
    one, same, other = (
        divided(KFold(2), Ridge(), ROWS[:, None], ROWS, {}, seed=seed).rows(0, 10)[0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert set(one) != set(other)


def test_masks_are_rows() -> None:
    mask = ROWS < 50
    folds = divided(Given([(mask, ~mask)]), Ridge(), ROWS[:, None], ROWS, {}, seed=0)
    np.testing.assert_array_equal(folds.rows(0, 50)[0], ROWS[:50])
    np.testing.assert_array_equal(folds.rows(0, 50)[1], ROWS[50:])


class Given:
    """A splitter of given folds that promises a number of them."""

    def __init__(self, folds: list[Any], n_splits: int | None = None) -> None:
        self.folds, self.n_splits = folds, len(folds) if n_splits is None else n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> list[Any]:
        return self.folds

    def get_n_splits(self, X: Any, y: Any = None, groups: Any = None) -> int:
        return self.n_splits


@pytest.mark.parametrize(
    ("splitter", "message"),
    [
        (Given([(ROWS, ROWS)], 2), "inconsistent results: got 1 folds where 2 were promised"),
        (Given([]), "at least one fold"),
        (Given([(ROWS[:0], ROWS)]), "with rows to train on"),
    ],
)
def test_splitters_that_break_their_word_are_refused(splitter: Given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        divided(splitter, Ridge(), ROWS[:, None], ROWS, {}, seed=0)


def folds_of(n_rows: int, n_classes: int = 1, n_splits: int = 1) -> Folds:
    rows = np.arange(n_rows)
    classes = Classes(np.arange(n_classes), rows % n_classes)
    return Folds((Fold(rows, rows),) * n_splits, (rows,) * n_splits, classes)


@given(
    n_rows=st.integers(3, 5000),
    n_classes=st.integers(1, 30),
    n_splits=st.integers(1, 10),
    factor=st.floats(1.05, 8),
    least=st.sampled_from(["auto", "smallest"]),
)
def test_there_is_always_a_grid(
    n_rows: int, n_classes: int, n_splits: int, factor: float, least: str
) -> None:
    grid = size_grid(folds_of(n_rows, n_classes, n_splits), least, "auto", factor)
    assert len(grid) >= 3
    assert list(grid) == sorted(set(grid))
    assert grid[-1] == n_rows
    assert grid[0] >= min(n_classes, n_rows - 2)


def test_the_smallest_size_is_that_of_halving_or_a_share_of_many_rows() -> None:
    assert size_grid(folds_of(1000, 2, 5), "smallest", "auto", 1.5)[0] == 2 * 2 * 5
    assert size_grid(folds_of(64_000, 2, 5), "smallest", "auto", 1.5)[0] == 2 * 2 * 5
    assert size_grid(folds_of(64_000, 2, 5), "auto", "auto", 1.5)[0] == 1000
    assert size_grid(folds_of(20_000, 2, 5), "auto", "auto", 1.5)[0] == 500
    assert size_grid(folds_of(1_600, 2, 5), "auto", "auto", 1.5)[0] == 200
    assert size_grid(folds_of(100, 2, 5), "auto", "auto", 1.5)[0] == 2 * 2 * 5
    assert size_grid(folds_of(1000), 50, 400, 2) == (50, 100, 200, 400)


@pytest.mark.parametrize(
    ("least", "most", "message"),
    [
        ("auto", 101, "`max_resources` must be at most 100, .* but got 101"),
        (30, "auto", r"at most max_resources / factor\^2 = 100 / 2\^2, but got 30"),
        ("auto", 2, "at least 3 rows to train on in a fold, but got n_samples = 2"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(least: Any, most: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        size_grid(folds_of(100), least, most, 2)


@pytest.mark.parametrize("least", ["auto", 100])
def test_too_many_sizes_are_refused_in_the_words_of_the_search(least: Any) -> None:
    with pytest.raises(ValueError, match=r"`factor` must lead from `min_resources` .* got 1\.001"):
        size_grid(folds_of(50_000), least, "auto", 1.001)
    assert len(size_grid(folds_of(1000), 100, "auto", 1.001)) == 901  # each rounded up


def test_a_class_that_has_vanished_in_time_order_makes_trainings_large_with_a_warning() -> None:
    labels = np.r_[np.zeros(200), np.arange(1000) % 2 + 1]
    folds = divided(
        TimeSeriesSplit(5), LogisticRegression(), np.ones((1200, 1)), labels, {}, seed=0
    )
    with pytest.warns(UserWarning, match=r"^No sample of fewer than 801 of 1,000 rows has every"):
        assert size_grid(folds, "auto", "auto", 1.5)[0] == 801


@pytest.mark.parametrize("seed", range(8))
def test_a_rare_class_is_in_the_first_subset_of_each_fold_in_time_order(seed: int) -> None:
    rare = (np.random.default_rng(seed).random(len(ROWS)) < 0.15).astype(int)
    folds = divided(TimeSeriesSplit(3), LogisticRegression(), ROWS[:, None], rare, {}, seed=0)
    first = size_grid(folds, "auto", "auto", 1.1)[0]
    assert first >= folds.complete_from
    for place in range(3):
        rows, _ = folds.rows(place, first)
        assert set(rare[rows]) == set(rare[folds.training[place]])
    # It is the smallest such size.
    before = [set(rare[folds.rows(place, folds.complete_from - 1)[0]]) for place in range(3)]
    assert before != [set(rare[rows]) for rows in folds.training]
