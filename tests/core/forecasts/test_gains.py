"""The quantities, growths and coefficients behind the calibrated quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Calibrated
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.forecasts.gains import WITHOUT_TRAINING_SCORE
from optuna_daub.core.forecasts.gains import GainTable
from optuna_daub.core.forecasts.gains import Quantities
from optuna_daub.core.forecasts.gains import describe
from optuna_daub.core.forecasts.gains import growth
from optuna_daub.core.forecasts.gains import projected_gain
from optuna_daub.core.forecasts.gains import shipped
from optuna_daub.core.forecasts.projection import slope


unit = st.floats(0, 1)


def curve(sizes: Sequence[int], scores: Sequence[float], training: Sequence[float | None] = ()
) -> list[Observation]:  # fmt: skip
    fitted = training or [None] * len(sizes)
    return [Observation(*probe) for probe in zip(sizes, scores, fitted, strict=True)]


def described(*seen: Sequence[float | None]) -> dict[str, float]:
    return describe(curve(*seen))._asdict()  # type: ignore[arg-type]


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
        seen = described((1000, 2000), (0.60, 0.66), (1.0, 0.96))
        expected = {"gap": 0.30, "rise": 0.06, "acceleration": 0.0, "fall": 0.04, "drop": 0.0}
        assert seen == pytest.approx(expected)

    def test_without_training_scores_only_what_needs_none(self) -> None:
        seen = described((500, 1000, 2000), (0.60, 0.66, 0.75), (None, 0.9, None))
        assert (seen["gap"], seen["fall"]) == (0, 0)
        assert seen["rise"] == pytest.approx(0.075)


@given(st.floats(0, 30), st.floats(0, 30))
def test_growth_is_nothing_at_the_end_and_never_less_with_more_left(a: float, b: float) -> None:
    assert growth(0.0) == (0, 0, 0)
    near, far = map(growth, sorted([a, b]))
    assert all(low <= high for low, high in zip(near, far, strict=True))


class TestProjectedGain:
    @given(first=unit, rise=st.floats(1e-3, 0.5), share=st.floats(0.01, 1))
    def test_is_the_line_through_the_last_three_where_returns_diminish(
        self, first: float, rise: float, share: float
    ) -> None:
        sizes, scores = (500, 1000, 2000), (first, first + rise, first + rise + rise * share)
        gain = projected_gain(curve(sizes, scores), 8000)
        assert gain == pytest.approx(6000 * slope(sizes, scores))

    @pytest.mark.parametrize("scores", [(0.5, 0.6, 0.9), (0.5, 0.6, 0.6), (0.5, 0.6, 0.55)])
    def test_is_taken_for_valid_nowhere_else(self, scores: tuple[float, ...]) -> None:
        assert projected_gain(curve((500, 1000, 2000), scores), 8000) == math.inf

    def test_needs_three_observations(self) -> None:
        assert projected_gain(curve((500, 1000), (0.5, 0.6)), 8000) == math.inf


class TestTables:
    @pytest.mark.parametrize("scored", [True, False])
    def test_what_is_shipped_is_a_table_of_increasing_probabilities(self, scored: bool) -> None:
        table = shipped()[scored]
        assert table.quantities == (Quantities._fields if scored else WITHOUT_TRAINING_SCORE)
        assert list(table.probabilities) == sorted({*table.probabilities})
        assert table.probabilities[0] > 0.4
        assert 0.95 < table.probabilities[-1] < 1
        assert len(table.coefficients) == len(table.probabilities)
        assert {len(row) for row in table.coefficients} == {3 * len(table.quantities)}

    def test_gains_are_sums_of_products(self) -> None:
        table = GainTable((0.5, 0.9), ((1, 0, 0), (0, 2, 3)), ("rise",))
        gains = table.gains(Quantities(0.9, 0.1, 0.9, 0.9, 0.9), doublings=2)
        grown = 0.1 * 2, 0.1 * 0.75, 0.1 * (1 - 2**-8)
        assert gains == pytest.approx([grown[0], 2 * grown[1] + 3 * grown[2]])

    def test_a_higher_quantile_is_never_below_a_lower_one(self) -> None:
        table = GainTable((0.5, 0.9), ((2, 0, 0), (1, 0, 0)), ("rise",))
        low, high = table.gains(Quantities(0, 0.1, 0, 0, 0), doublings=1)
        assert low == high

    def test_negative_coefficients_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 0"):
            GainTable((0.5,), ((1, -0.1, 0),), ("rise",))


@pytest.mark.parametrize("scored", [True, False])
def test_bounds_hold_on_curves_that_the_fit_did_not_see(scored: bool) -> None:
    """Power laws of any height, speed and bend, with the noise of 5,000 validation examples."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        end, drop, power = rng.uniform(0.6, 0.99), rng.uniform(0.5, 5), rng.uniform(0.2, 1.2)
        sizes = [500, 1000, 2000, 4000][: rng.integers(2, 5)]
        truth = [end - drop * n**-power for n in [*sizes, 64_000]]
        noisy = [rng.binomial(5000, min(max(p, 0.0), 1.0)) / 5000 for p in truth]
        fitted = [min(1.0, 2 * end - p) if scored else None for p in truth]
        seen = [
            Observation(n, p, f, n_validation=5000)
            for n, p, f in zip(sizes, noisy, fitted, strict=False)
        ]
        pool = Pool().put(LearningCurve(0, tuple(seen)))
        bound = Calibrated().forecasts(pool, 64_000)[0].quantile(0.95)
        held.append(noisy[-1] <= bound)
    assert np.mean(held) >= 0.93
