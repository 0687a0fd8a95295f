from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import sparse

from optuna_daub.learners.stumps import Stump
from optuna_daub.learners.stumps import best_edges
from optuna_daub.learners.stumps import best_stump
from optuna_daub.learners.stumps import interval_bins
from optuna_daub.learners.stumps import require_stumps
from optuna_daub.learners.stumps import threshold_bins
from tests.learners.transcriptions import thresholds


tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(1, 4)),
    elements=st.integers(-3, 3).map(lambda value: value / 2),
)


def signed_weights(n_samples: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    weights = rng.random(n_samples)
    return weights / weights.sum() * rng.choice([-1.0, 1.0], n_samples)


@given(X=tables, seed=st.integers(0, 100))
def test_best_edges_are_those_of_all_stumps_one_by_one(X: NDArray[np.float64], seed: int) -> None:
    signed = signed_weights(len(X), seed)
    tried = np.zeros(X.shape[1])
    for h in thresholds(X.tolist()):
        tried[h.j] = max(tried[h.j], sum(v * h(x) for v, x in zip(signed, X, strict=True)))
    np.testing.assert_allclose(best_edges(threshold_bins(X), signed), tried, atol=1e-12)


@given(X=tables, seed=st.integers(0, 100))
def test_best_stump_votes_with_the_best_edge(X: NDArray[np.float64], seed: int) -> None:
    signed = signed_weights(len(X), seed)
    for bins in (threshold_bins(X), interval_bins(X, 3, np.zeros(X.shape[1], dtype=bool))):
        edges = best_edges(bins, signed)
        for feature in np.flatnonzero(edges > 1e-9):
            stump = best_stump(bins, signed, int(feature))
            assert signed @ stump.vote(X) == pytest.approx(edges[feature], abs=1e-12)


@given(X=tables)
def test_codes_are_the_bins_that_the_stumps_speak_of(X: NDArray[np.float64]) -> None:
    categorical = np.arange(X.shape[1]) % 2 == 1
    bins = interval_bins(X, 3, categorical)
    for bin_ in range(len(bins.lower)):
        stump = bins.stump(bin_, 1)
        np.testing.assert_array_equal(stump.vote(X) == 1.0, bins.codes[stump.feature] == bin_)


@given(X=tables)
def test_bins_belong_to_the_column_whose_values_they_hold(X: NDArray[np.float64]) -> None:
    for bins in (threshold_bins(X), interval_bins(X, 3, np.zeros(X.shape[1], dtype=bool))):
        for feature, codes in enumerate(bins.codes):
            assert bins.feature_of(codes.astype(np.int64)).tolist() == [feature] * len(X)
            assert bins.stump(int(codes[0]), 1).feature == feature


@settings(max_examples=20)
@given(seed=st.integers(0, 100))
def test_blocks_of_columns_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 50, (3000, 100)).astype(float)  # several blocks of 43 columns
    X[:, 42:45] = 7.0  # constant ones on the border
    signed = signed_weights(len(X), seed)
    whole = best_edges(threshold_bins(X), signed)
    for feature in (0, 41, 42, 43, 46, 85, 86, 99):
        alone = best_edges(threshold_bins(X[:, [feature]]), signed)
        np.testing.assert_allclose(whole[feature], alone[0], atol=1e-12)
    assert np.all(whole[42:45] == 0.0)


@pytest.mark.parametrize("container", [sparse.csc_matrix, sparse.csc_array])
def test_sparse_columns_are_searched_like_dense_ones(container: type) -> None:
    X = np.random.default_rng(0).integers(0, 3, (40, 6)).astype(float)
    signed = signed_weights(40, 0)
    dense, thin = threshold_bins(X), threshold_bins(container(X))
    np.testing.assert_array_equal(best_edges(dense, signed), best_edges(thin, signed))
    stump = best_stump(thin, signed, 2)
    np.testing.assert_array_equal(stump.vote(X), stump.vote(container(X)))


@given(
    values=hnp.arrays(np.float64, st.integers(2, 20), elements=st.floats(-1e308, 1e308)),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_thresholds_part_near_floats(
    values: NDArray[np.float64], dtype: type[np.floating]
) -> None:
    if dtype is np.float32:
        values = np.clip(values, -1e38, 1e38)
    X = np.append(values, np.nextafter(dtype(values[0]), dtype(0)))[:, np.newaxis].astype(dtype)
    bins = threshold_bins(X)
    assert bins.upper.dtype == dtype
    for bin_, upper in enumerate(bins.upper):
        np.testing.assert_array_equal(X[:, 0] <= upper, bins.codes[0] <= bin_)


def test_intervals_have_equal_width_and_reach_beyond_the_data() -> None:
    X = np.linspace(0.0, 6.0, 61)[:, np.newaxis]
    bins = interval_bins(X, 6, np.array([False]))
    np.testing.assert_allclose(bins.upper, [1, 2, 3, 4, 5, np.inf])
    np.testing.assert_allclose(bins.lower, [-np.inf, 1, 2, 3, 4, 5])


def test_intervals_without_examples_are_left_out() -> None:
    bins = interval_bins(np.array([[0.0], [1.0], [9.0]]), 3, np.array([False]))
    assert bins.upper.tolist() == [3.0, np.inf]
    assert bins.stump(1, 1).vote(np.array([[4.0], [8.0]])).tolist() == [-1.0, 1.0]


def test_a_category_is_met_exactly() -> None:
    bins = interval_bins(np.array([[1.0], [2.0], [5.0]]), 2, np.array([True]))
    votes = bins.stump(1, 1).vote(np.array([[1.0], [2.0], [1.5], [3.0], [5.0]]))
    assert votes.tolist() == [-1.0, 1.0, -1.0, -1.0, -1.0]


def test_large_tables_get_wider_codes() -> None:
    X = np.arange(70_000.0)[:, np.newaxis]
    assert threshold_bins(X).codes.dtype == np.uint32
    assert threshold_bins(X[:65_000]).codes.dtype == np.uint16
    signed = np.where(X[:, 0] < 66_000, 1.0, -1.0) / len(X)
    assert best_stump(threshold_bins(X), signed, 0) == Stump(0, -np.inf, 65_999.5, 1)


def test_ties_go_to_the_lowest_threshold() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    signed = np.array([0.25, -0.25, 0.25, -0.25])  # x <= 0.5 and x <= 2.5 are equally good
    assert best_stump(threshold_bins(X), signed, 0).upper == 0.5


def test_constant_features_are_refused() -> None:
    X, said = np.ones((3, 2)), "one feature must take two values, but all 2 are const"
    for bins in (threshold_bins(X), interval_bins(X, 4, np.array([True, False]))):
        assert best_edges(bins, np.array([0.5, 0.25, 0.25])).tolist() == [0.0, 0.0]
        with pytest.raises(ValueError, match=said):
            require_stumps(bins)
