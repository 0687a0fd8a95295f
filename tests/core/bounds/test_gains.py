"""The quantities, growths and coefficients behind the calibrated bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.bounds.gains import QUANTITIES
from optuna_daub.core.bounds.gains import WITHOUT_TRAINING_SCORE
from optuna_daub.core.bounds.gains import GainTable
from optuna_daub.core.bounds.gains import describe
from optuna_daub.core.bounds.gains import growth
from optuna_daub.core.bounds.gains import projected_gains
from optuna_daub.core.bounds.gains import shipped
from optuna_daub.core.bounds.projection import slope


NAN = math.nan
unit = st.floats(0, 1)


def described(
    sizes: Sequence[float], scores: Sequence[float], training: Sequence[float]
) -> dict[str, float]:
    values = describe(np.array([sizes]), np.array([scores]), np.array([training]))[0]
    return dict(zip(QUANTITIES, map(float, values), strict=True))


class TestDescribe:
    def test_by_hand(self) -> None:
        seen = described((500, 1000, 2000), (0.60, 0.66, 0.75), (1.00, 0.98, 0.95))
        expected = {"gap": 0.20, "rise": 0.075, "acceleration": 0.03, "fall": 0.03, "drop": 0.0}
        assert seen == pytest.approx(expected)

    def test_gains_are_per_doubling(self) -> None:
        assert described((500, 1000, 4000), (0.5, 0.6, 0.7), (1, 1, 1))["rise"] == pytest.approx(
            (0.1 + 0.05) / 2
        )

    def test_what_falls_is_a_drop_and_no_rise(self) -> None:
        seen = described((500, 1000, 2000), (0.70, 0.70, 0.66), (0.6, 0.6, 0.7))
        assert seen["drop"] == pytest.approx(0.04)
        assert (seen["rise"], seen["acceleration"], seen["fall"]) == (0, 0, 0)

    def test_two_observations_do_and_show_no_acceleration(self) -> None:
        seen = described((NAN, 1000, 2000), (NAN, 0.60, 0.66), (NAN, 1.0, 0.96))
        expected = {"gap": 0.30, "rise": 0.06, "acceleration": 0.0, "fall": 0.04, "drop": 0.0}
        assert seen == pytest.approx(expected)

    def test_without_training_scores_only_what_needs_none(self) -> None:
        seen = described((500, 1000, 2000), (0.60, 0.66, 0.75), (NAN, NAN, NAN))
        assert (seen["gap"], seen["fall"]) == (0, 0)
        assert seen["rise"] == pytest.approx(0.075)


@given(st.floats(0, 30), st.floats(0, 30))
def test_growth_is_nothing_at_the_end_and_never_less_with_more_left(a: float, b: float) -> None:
    assert growth([0.0]).tolist() == [[0, 0, 0]]
    low, high = growth(sorted([a, b]))
    assert (low <= high).all()


class TestProjectedGains:
    @given(first=unit, rise=st.floats(1e-3, 0.5), share=st.floats(0.01, 1))
    def test_is_the_line_through_the_last_three_where_returns_diminish(
        self, first: float, rise: float, share: float
    ) -> None:
        sizes, scores = (500, 1000, 2000), (first, first + rise, first + rise + rise * share)
        gain = projected_gains(np.array([sizes], float), np.array([scores]), 8000)[0]
        assert gain == pytest.approx(6000 * slope(sizes, scores))

    @pytest.mark.parametrize(
        "scores", [(0.5, 0.6, 0.9), (0.5, 0.6, 0.6), (0.5, 0.6, 0.55), (NAN, 0.6, 0.7)]
    )
    def test_is_taken_for_valid_nowhere_else(self, scores: tuple[float, ...]) -> None:
        sizes = np.array([[500.0, 1000.0, 2000.0]])
        assert projected_gains(sizes, np.array([scores]), 8000)[0] == math.inf


class TestTables:
    @pytest.mark.parametrize("scored", [True, False])
    def test_what_is_shipped_is_a_table_of_increasing_probabilities(self, scored: bool) -> None:
        table = shipped()[scored]
        assert table.quantities == (QUANTITIES if scored else WITHOUT_TRAINING_SCORE)
        assert list(table.probabilities) == sorted({*table.probabilities})
        assert table.probabilities[0] > 0.4
        assert 0.95 < table.probabilities[-1] < 1
        shape = (len(table.probabilities), 3 * len(table.quantities))
        assert np.shape(table.coefficients) == shape

    def test_gains_are_sums_of_products(self) -> None:
        table = GainTable((0.5, 0.9), ((1, 0, 0), (0, 2, 3)), ("rise",))
        quantities = np.array([[0.9, 0.1, 0.9, 0.9, 0.9]])
        doublings = 2.0
        products = 0.1 * 2.0, 0.1 * 0.75, 0.1 * (1 - 2**-8)
        gains = table.gains(quantities, [doublings])[0]
        assert gains == pytest.approx([products[0], 2 * products[1] + 3 * products[2]])

    def test_a_higher_quantile_is_never_below_a_lower_one(self) -> None:
        table = GainTable((0.5, 0.9), ((2, 0, 0), (1, 0, 0)), ("rise",))
        gains = table.gains(np.array([[0, 0.1, 0, 0, 0]]), [1.0])[0]
        assert gains[1] == gains[0]

    def test_negative_coefficients_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 0"):
            GainTable((0.5,), ((1, -0.1, 0),), ("rise",))
