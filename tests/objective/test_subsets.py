"""The rows that learners are trained on and scored on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GroupKFold
from sklearn.model_selection import KFold
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.model_selection import PredefinedSplit
from sklearn.model_selection import ShuffleSplit
from sklearn.model_selection import TimeSeriesSplit

from optuna_daub import TrainingSizeObjective
from optuna_daub.objective.data import Classes
from optuna_daub.objective.data import Indices
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.subsets import Fold
from optuna_daub.objective.subsets import Layout
from optuna_daub.objective.subsets import complete_from
from optuna_daub.objective.subsets import cross_validation_folds
from optuna_daub.objective.subsets import held_out_fold
from optuna_daub.objective.subsets import nested_order
from optuna_daub.objective.subsets import undivided


seeds = st.integers(0, 2**32 - 1)


@st.composite
def class_codes(draw: st.DrawFn, min_count: int = 1, max_classes: int = 12) -> Indices:
    """Codes of all classes in random file order, from balanced to very unbalanced classes."""
    few, many = st.integers(min_count, min_count + 4), st.integers(min_count, 300)
    counts = draw(st.lists(few | many, min_size=2, max_size=max_classes))
    codes = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(draw(seeds)).permutation(codes)


def classes_of(codes: Indices) -> Classes:
    return Classes(np.unique(codes), codes)


def folds_of(layout: Layout, cv: Any) -> tuple[Fold, ...]:
    y = np.zeros(layout.n_rows) if layout.classes is None else layout.classes.codes
    return cross_validation_folds(layout, cv, np.zeros((layout.n_rows, 1)), y)


@given(class_codes(), seeds)
def test_an_order_is_a_permutation_that_the_seed_decides(codes: Indices, seed: int) -> None:
    order = nested_order(len(codes), seed, codes)
    assert np.array_equal(np.sort(order), np.arange(len(codes)))
    assert np.array_equal(order, nested_order(len(codes), seed, codes))


def test_other_seeds_give_other_orders() -> None:
    codes = np.arange(100) % 3
    plain = {tuple(nested_order(100, seed)) for seed in range(9)}
    stratified = {tuple(nested_order(100, seed, codes)) for seed in range(9)}
    assert len(plain) == len(stratified) == 9


def test_the_order_is_the_same_in_every_process() -> None:
    y = np.array(["b", "a", "c", "a", "b", "a"] * 20, dtype=object)
    program = (
        "import numpy as np; from optuna_daub.objective.data import class_labels;"
        "from optuna_daub.objective.subsets import nested_order;"
        f"y = np.array({y.tolist()}, dtype=object);"
        "print(nested_order(120, 5, class_labels(y).codes).tolist())"
    )
    env = {**os.environ, "PYTHONHASHSEED": "1"}
    elsewhere = subprocess.check_output([sys.executable, "-c", program], env=env, text=True)
    classes = class_labels(y)
    assert classes is not None
    assert elsewhere.strip() == str(nested_order(120, 5, classes.codes).tolist())


@example(np.repeat(np.arange(13), [600, *[3] * 12]), 0)
@given(class_codes(), seeds)
def test_every_prefix_keeps_the_shares(codes: Indices, seed: int) -> None:
    shares = np.bincount(codes) / len(codes)
    taken = codes[nested_order(len(codes), seed, codes)]
    sizes = np.arange(1, len(codes) + 1)[:, None]
    counts = np.cumsum(taken[:, None] == np.arange(len(shares)), axis=0)
    # The classes that came in only because one row of each stands in front.
    early = np.sum((sizes - len(shares)) * shares < 2, axis=1, keepdims=True)
    off = np.abs(counts - sizes * shares)
    assert np.all(off < 2 + early * shares)
    assert np.all(off[early[:, 0] == 0] < {2: 0.5 + 1e-9, 3: 1}.get(len(shares), 2))


@given(seeds)
def test_rows_of_a_class_are_shuffled_too(seed: int) -> None:
    codes = np.repeat([0, 1], 500)
    first = np.sort(nested_order(1000, seed, codes)[:100])
    # 50 of 500 positions in the file: their mean is never 6 standard errors away.
    assert abs(first[:50].mean() - 249.5) < 6 * 500 / np.sqrt(12 * 50)


@given(st.integers(2, 200), seeds, st.booleans())
def test_subsets_are_nested(n_rows: int, seed: int, shuffle: bool) -> None:
    fold = undivided(Layout(n_rows, seed, shuffle=shuffle))
    for size in range(1, n_rows):
        smaller, larger = fold.subset(size), fold.subset(size + 1)
        assert len(smaller) == size
        assert set(smaller) < set(larger)


@given(class_codes(), seeds, st.booleans())
def test_complete_from_is_the_first_with_every_class(
    codes: Indices, seed: int, shuffle: bool
) -> None:
    fold = undivided(Layout(len(codes), seed, classes_of(codes), shuffle=shuffle))
    sizes = range(1, len(codes) + 1)
    complete = [size for size in sizes if len(set(codes[fold.subset(size)])) == codes.max() + 1]
    size, last = complete_from([fold], classes_of(codes))
    assert size == complete[0]
    assert last not in codes[fold.subset(size - 1)]
    if shuffle:
        assert size == codes.max() + 1


def test_complete_from_waits_for_the_slowest_fold() -> None:
    codes = np.array([0, 0, 0, 1, 1, 0])
    folds = [Fold(np.array([0, 3]), np.array([5])), Fold(np.array([0, 1, 2, 4]), np.array([5]))]
    assert complete_from(folds, classes_of(codes)) == (4, 1)
    assert complete_from(folds, None) == (1, None)


def test_a_class_that_a_fold_never_trains_on_is_named() -> None:
    classes = Classes(np.array(["ham", "spam"]), np.array([0, 0, 1, 1]))
    with pytest.raises(ValueError, match=r"class spam, with 2 examples in all, is not\. Add"):
        complete_from([Fold(np.array([0, 1]), np.array([2, 3]))], classes)


@pytest.mark.parametrize(
    ("y", "codes"),
    [
        (["b", "a", "b"], [1, 0, 1]),
        ([True, False, True], [1, 0, 1]),
        ([7.0, 3.0, 5.0, 3.0, 5.0, 7.0], [2, 0, 1, 0, 1, 2]),
        ([0.5, 1.5, 2.0], None),
        ([[0, 1], [1, 1], [1, 0]], None),
    ],
)
def test_one_whole_label_for_each_row_makes_classes(y: list[Any], codes: list[int] | None) -> None:
    classes = class_labels(np.array(y))
    assert (classes and classes.codes.tolist()) == codes


# -- a held-out part ---------------------------------------------------------------------------


def assert_divides(fold: Fold, n_rows: int) -> None:
    assert np.array_equal(np.sort([*fold.training, *fold.validation]), np.arange(n_rows))


@given(class_codes(min_count=4, max_classes=4), seeds)
def test_a_held_out_part_is_a_stratified_sample(codes: Indices, seed: int) -> None:
    fold = held_out_fold(Layout(len(codes), seed, classes_of(codes)), 0.3)
    assert_divides(fold, len(codes))
    counts = np.bincount(codes[fold.validation], minlength=codes.max() + 1)
    assert np.all(np.abs(counts - len(fold.validation) * np.bincount(codes) / len(codes)) <= 1)
    assert len(fold.validation) == int(np.ceil(0.3 * len(codes)))
    assert complete_from([fold], classes_of(codes))[0] == codes.max() + 1


@pytest.mark.parametrize("seed", range(3))
def test_every_class_of_two_rows_is_held_out_if_it_must_be(seed: int) -> None:
    codes = np.repeat(np.arange(4), [300, 60, 3, 2])
    layout = Layout(365, seed, Classes(np.arange(4), codes))
    usual = held_out_fold(layout, 0.05)
    assert {*codes[usual.validation]} == {0, 1}
    fold = held_out_fold(layout, 0.05, every_class=True)
    assert {*codes[fold.training]} == {*codes[fold.validation]} == {0, 1, 2, 3}
    assert len(fold.validation) == len(usual.validation)
    np.testing.assert_array_equal(np.sort([*fold.training, *fold.validation]), np.arange(365))


def test_a_number_of_rows_can_be_held_out() -> None:
    assert len(held_out_fold(Layout(50), 20).validation) == 20


def test_a_class_with_one_row_cannot_be_divided() -> None:
    classes = Classes(np.array(["ham", "spam"]), np.array([0, 0, 0, 1, 0]))
    with pytest.raises(ValueError, match=r"at least 2 examples.* class spam has 1"):
        held_out_fold(Layout(5, classes=classes), 0.3)


@given(st.integers(4, 60))
def test_in_time_order_the_last_rows_are_held_out(n_rows: int) -> None:
    fold = held_out_fold(Layout(n_rows, shuffle=False), 0.3)
    assert_divides(fold, n_rows)
    for size in range(1, len(fold.training) + 1):
        until = len(fold.training)
        assert fold.subset(size).tolist() == [*range(until - size, until)]
    assert fold.validation.min() == len(fold.training)


@given(seeds, st.lists(st.integers(0, 9), min_size=20, max_size=60))
def test_no_group_is_on_both_sides_of_a_held_out_part(seed: int, groups: list[int]) -> None:
    groups = [*groups, 10, 11, 12]  # a split needs some
    fold = held_out_fold(Layout(len(groups), seed, groups=np.array(groups)), 0.3)
    assert_divides(fold, len(groups))
    assert not {groups[i] for i in fold.training} & {groups[i] for i in fold.validation}


# -- folds -------------------------------------------------------------------------------------


@given(class_codes(min_count=5, max_classes=4), seeds)
def test_an_int_makes_stratified_folds(codes: Indices, seed: int) -> None:
    folds = folds_of(Layout(len(codes), seed, classes_of(codes)), 3)
    assert sorted(np.concatenate([fold.validation for fold in folds])) == [*range(len(codes))]
    for fold in folds:
        assert_divides(fold, len(codes))
        counts = np.bincount(codes[fold.validation], minlength=codes.max() + 1)
        assert np.all(np.abs(counts - np.bincount(codes) / 3) < 1)


def test_folds_of_a_sorted_file_are_shuffled_with_the_seed() -> None:
    zero, same, one = (folds_of(Layout(40, seed), 4)[0].validation for seed in (0, 0, 1))
    assert np.array_equal(zero, same)
    assert not np.array_equal(zero, one)
    assert not np.array_equal(zero, np.arange(10))


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("cv", [3, GroupKFold(3), LeaveOneGroupOut()])
def test_no_group_is_on_both_sides_of_a_fold(cv: Any, stratified: bool) -> None:
    codes, groups = np.arange(120) % 2, np.arange(120) // 10
    classes = classes_of(codes) if stratified else None
    folds = folds_of(Layout(120, classes=classes, groups=groups), cv)
    assert {row for fold in folds for row in fold.validation} == {*range(120)}
    for fold in folds:
        assert not set(groups[fold.training]) & set(groups[fold.validation])


@pytest.mark.parametrize(
    ("shuffle", "cv"),
    [(False, 4), (True, TimeSeriesSplit(4)), (False, TimeSeriesSplit(4, gap=3))],
)
def test_in_time_order_no_training_row_is_later_than_a_scored_one(shuffle: bool, cv: Any) -> None:
    for fold in folds_of(Layout(50, shuffle=shuffle), cv):
        for size in range(1, 40):
            subset = fold.subset(size)
            assert subset.tolist() == [*range(subset[0], subset[0] + len(subset))]
            assert subset[-1] == fold.training.max() < fold.validation.min()


def test_in_time_order_a_splitter_must_train_on_earlier_rows() -> None:
    X, y = np.arange(60.0)[:, None], np.arange(60) % 2
    with pytest.raises(ValueError, match=r"fold 1 of `cv=KFold.* rows after those that it scores"):
        TrainingSizeObjective(lambda trial: DummyClassifier(), X, y, cv=KFold(5), shuffle=False)
    for cv in (5, TimeSeriesSplit(5), [(np.arange(40), np.arange(40, 60))]):
        objective = TrainingSizeObjective(
            lambda trial: DummyClassifier(), X, y, cv=cv, shuffle=False
        )
        assert objective.n_train < 60


def test_folds_may_be_given_as_rows_or_masks() -> None:
    fold = PredefinedSplit([-1, 0, -1, 0, -1, -1])
    mask = np.array([True, False, True, False, True, True])
    for cv in (fold, [([0, 2, 4, 5], [1, 3])], iter([(mask, ~mask)])):
        (divided,) = folds_of(Layout(6), cv)
        assert sorted(divided.training) == [0, 2, 4, 5]
        assert divided.validation.tolist() == [1, 3]


class Restless(ShuffleSplit):
    """A splitter that gives one fold more each time it is asked."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        yield from super().split(X, y, groups)
        self.n_splits += 1


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True),
        KFold(3, shuffle=True, random_state=np.random.RandomState(0)),
        ShuffleSplit(3),
        Restless(3, random_state=0),
    ],
)
def test_a_splitter_that_changes_between_calls_is_refused(cv: Any) -> None:
    with pytest.raises(ValueError, match=r"same folds each time .* int as `random_state`"):
        folds_of(Layout(30), cv)


def test_a_splitter_that_leaks_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="row 2 is on both sides of fold 2"):
        folds_of(Layout(6), [([0, 1], [2, 3]), ([0, 2], [2, 3])])


def test_a_splitter_that_leaks_groups_is_refused() -> None:
    layout = Layout(6, groups=np.array(["a", "a", "b", "b", "b", "c"]))
    with pytest.raises(ValueError, match="group b is on both sides of fold 1"):
        folds_of(layout, [([0, 1, 2], [3, 4, 5])])


@pytest.mark.parametrize("cv", [None, 3])
def test_groups_and_time_order_need_a_splitter_of_their_own(cv: int | None) -> None:
    layout = Layout(6, groups=np.arange(6), shuffle=False)
    with pytest.raises(ValueError, match="respects both as `cv`"):
        folds_of(layout, cv) if cv else held_out_fold(layout, 0.3)


@pytest.mark.parametrize(
    ("layout", "cv"),
    [
        (Layout(400, shuffle=False), 4),
        (Layout(401), 3),
        (Layout(60, groups=np.repeat([0, 1, 2, 3], [30, 15, 10, 5])), 4),
        (Layout(100), [(np.arange(10), np.arange(10, 100)), (np.arange(90), np.arange(90, 100))]),
    ],
)
def test_the_full_size_is_all_rows_of_every_fold(layout: Layout, cv: Any) -> None:
    rows = np.arange(layout.n_rows)
    folds = cross_validation_folds(layout, cv, rows, rows)
    full = max(len(fold.training) for fold in folds)
    for fold in folds:
        assert sorted(fold.subset(full)) == sorted(fold.training)
        sizes = [len(fold.subset(size)) for size in range(1, full + 1)]
        assert sizes == sorted(sizes)
        share = len(fold.training) / full
        assert all(0 <= len(fold.subset(n)) - n * share < 1 for n in range(1, full + 1))


def test_with_shares_complete_from_is_the_first_size_with_every_class() -> None:
    codes = np.random.default_rng(0).integers(0, 4, 300)
    classes = Classes(np.arange(4), codes)
    layout = Layout(300, shuffle=False)
    folds = cross_validation_folds(layout, TimeSeriesSplit(5), np.arange(300), codes)
    first, _ = complete_from(folds, classes)
    has_all = [all(len({*codes[f.subset(n)]}) == 4 for f in folds) for n in range(1, first + 1)]
    assert has_all[-2:] == [False, True]
