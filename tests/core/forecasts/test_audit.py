"""The self-audit of forecasts, and their repair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Audit
from optuna_daub.core import Audited
from optuna_daub.core import Calibrated
from optuna_daub.core import Certain
from optuna_daub.core import Curves
from optuna_daub.core import Forecast
from optuna_daub.core import Forecaster
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Projection
from optuna_daub.core import Quantiles
from optuna_daub.core.forecasts.audit import LARGEST
from optuna_daub.core.forecasts.audit import Widened
from optuna_daub.core.forecasts.audit import inflation
from tests.strategies import forecasts
from tests.strategies import levels


SIZES = (500, 1000, 2000, 4000, 8000)

every_forecaster = pytest.mark.parametrize(
    "forecaster", [Projection(), Calibrated()], ids=["projection", "calibrated"]
)


def curve(learner: int, *scores: float) -> LearningCurve:
    probes = zip(SIZES, scores, strict=False)
    return LearningCurve(learner, tuple(Observation(n, score) for n, score in probes))


def audit(forecaster: Forecaster, *curves: LearningCurve, confidence: float = 0.95) -> Audit:
    return Audited(forecaster, confidence).audit(Pool(Curves(curves)))


class TestAudits:
    def test_each_later_probe_is_held_against_the_bound_from_those_before(self) -> None:
        # 0.10 in 500 examples allow 0.20 in 1,000; then 0.25 in 1,000 and less allow 0.01.
        seen = curve(3, 0.60, 0.70, 0.95, 0.96)
        found = audit(Projection(), seen)
        assert (found.held, found.audited) == (1, 2)

    def test_the_factor_is_the_ratio_of_what_came_to_what_was_allowed(self) -> None:
        one_fails = [curve(i, 0.60, 0.70, 0.95) for i in range(20)]
        assert audit(Projection(), *one_fails).inflation == pytest.approx(1.25)

    @every_forecaster
    def test_the_first_two_probes_are_no_audit(self, forecaster: Forecaster) -> None:
        assert audit(forecaster, curve(0, 0.5, 0.9)).audited == 0

    def test_a_gain_where_none_was_allowed_is_the_largest_repair(self) -> None:
        rested = [curve(i, 0.5, 0.5, 0.9) for i in range(20)]
        found = audit(Projection(), *rested)
        assert (found.held, found.audited, found.inflation) == (0, 20, LARGEST)

    @every_forecaster
    def test_a_score_that_is_no_number_is_no_audit(self, forecaster: Forecaster) -> None:
        assert audit(forecaster, curve(0, 0.5, 0.6, math.nan)).audited == 0

    @every_forecaster
    def test_an_audit_follows_the_pool(self, forecaster: Forecaster) -> None:
        learners = [curve(i, 0.5, 0.501, 0.52, 0.54, 0.56) for i in range(4)]
        audited, before = Audited(forecaster), Pool(Curves(learners))
        first = audited.audit(before)
        assert first.audited == 12
        shorter = before.put(curve(0, 0.5, 0.6))
        assert audited.audit(shorter).audited == 9
        assert audited.audit(before) == first
        assert audited.audit(Pool(shorter.curves.remove(1))).audited == 6


class TestInflation:
    @pytest.mark.parametrize(("number", "repaired"), [(18, False), (19, True)])
    def test_needs_as_many_audits_as_the_confidence_takes(
        self, number: int, repaired: bool
    ) -> None:
        assert (inflation([3.0] * number, 0.95) > 1.0) is repaired

    @given(st.lists(st.floats(0.1, 6), min_size=1, max_size=80), st.floats(0.5, 0.99))
    def test_is_the_least_with_which_the_audits_would_have_held_as_often_as_stated(
        self, found: list[float], confidence: float
    ) -> None:
        ratios = sorted(max(1.0, ratio) for ratio in found)
        factor = inflation(ratios, confidence)
        if (len(ratios) + 1) * confidence <= len(ratios):
            assert np.mean(np.array(ratios) <= factor) >= confidence - 1e-9
        less = np.array(ratios) <= factor * (1 - 1e-9)
        assert factor == 1.0 or less.sum() < (len(ratios) + 1) * confidence

    def test_is_limited(self) -> None:
        assert inflation([math.inf] * 100, 0.9) == LARGEST

    def test_next_probe_holds_as_stated_where_probes_are_exchangeable(self) -> None:
        rng = np.random.default_rng(0)
        held = []
        for _ in range(2000):
            ratios = np.maximum(1.0, rng.exponential(0.8, size=40))
            held.append(ratios[-1] <= inflation(sorted(ratios[:-1]), 0.9))
        assert np.mean(held) >= 0.9 - 3 * math.sqrt(0.9 * 0.1 / 2000)


class TestWidened:
    @given(stated=forecasts(3), last=levels, over=levels, cost=st.floats(1e-3, 5))
    def test_with_a_factor_of_1_is_what_was_stated(
        self, stated: Forecast, last: float, over: float, cost: float
    ) -> None:
        same, costs = Widened(stated, np.full(3, last), 1.0), np.full(3, cost)
        assert same.mean == pytest.approx(stated.mean)
        assert same.quantile(0.8) == pytest.approx(stated.quantile(0.8))
        assert same.expected_improvement(over) == pytest.approx(
            stated.expected_improvement(over), abs=1e-12
        )
        assert same.reservation_value(costs) == pytest.approx(stated.reservation_value(costs))

    @given(
        last=levels,
        gains=st.lists(st.floats(0, 3), min_size=2, max_size=2).map(sorted),
        factor=st.floats(1, 8),
        over=levels,
        cost=st.floats(1e-3, 5),
    )
    def test_equals_quantiles_whose_gains_are_multiplied(
        self, last: float, gains: list[float], factor: float, over: float, cost: float
    ) -> None:
        near, far = (
            Quantiles(np.array([0.5, 0.9]), last + f * np.array(gains), last) for f in (1, factor)
        )
        wide = Widened(near, last, factor)
        for probability in (0.2, 0.5, 0.7, 0.95):
            assert float(wide.quantile(probability)) == pytest.approx(
                float(far.quantile(probability))
            )
        assert float(wide.mean) == pytest.approx(float(far.mean))
        assert float(wide.expected_improvement(over)) == pytest.approx(
            float(far.expected_improvement(over)), abs=1e-9
        )
        assert float(wide.reservation_value(cost)) == pytest.approx(
            float(far.reservation_value(cost)), abs=1e-9
        )

    @given(stated=forecasts(3), last=levels, factor=st.floats(1, 8), place=st.integers(0, 2))
    def test_many_at_once_are_as_one_by_one(
        self, stated: Forecast, last: float, factor: float, place: int
    ) -> None:
        wide = Widened(stated, np.full(3, last), factor)
        alone = wide.at(place)
        assert float(alone.mean) == pytest.approx(float(wide.mean[place]))
        assert float(alone.quantile(0.3)) == pytest.approx(float(wide.quantile(0.3)[place]))

    def test_what_may_be_anything_stays_so(self) -> None:
        wide = Widened(Certain(math.inf), 0.0, 3.0)
        assert float(wide.mean) == float(wide.quantile(0.5)) == math.inf
        assert float(wide.expected_improvement(0.9)) == math.inf
        assert float(wide.reservation_value(0.9)) == math.inf


class TestInThePolicy:
    """Learners that leap where bounds expect them to rest."""

    LEAPING = tuple(curve(learner, 0.5, 0.501, 0.52, 0.54, 0.56) for learner in range(12))
    RESTING = curve(99, 0.50, 0.53, 0.55)

    def rule(self, forecaster: Forecaster, confidence: float = 0.9) -> DAUB:
        return DAUB(SIZES, Audited(forecaster, confidence), confidence=confidence)

    @every_forecaster
    def test_bounds_that_fail_are_widened_as_far_as_the_audit_says(
        self, forecaster: Forecaster
    ) -> None:
        daub = self.rule(forecaster)
        calm, leaping = Pool().put(self.RESTING), Pool(Curves([*self.LEAPING, self.RESTING]))
        narrow, wide = (daub.interval(pool, 99).upper for pool in (calm, leaping))
        assert isinstance(daub.forecaster, Audited)
        found = daub.forecaster.audit(leaping)
        assert found.audited == 3 * len(self.LEAPING) + 1
        assert found.held / found.audited < 0.9
        assert found.inflation > 1.0
        gain = narrow - self.RESTING.score
        assert wide - self.RESTING.score == pytest.approx(found.inflation * gain)
        assert daub.promise(leaping, 99) == str(found)

    def test_without_an_audit_they_stay_as_they_are(self) -> None:
        daub = DAUB(SIZES)
        calm, leaping = Pool().put(self.RESTING), Pool(Curves([*self.LEAPING, self.RESTING]))
        assert daub.interval(calm, 99) == daub.interval(leaping, 99)
        assert daub.promise(leaping, 99) is None

    def test_learners_without_a_score_are_not_in_the_way(self) -> None:
        pool = Pool(Curves([*self.LEAPING, LearningCurve(50), curve(51, 0.6)]))
        found = Audited(Calibrated(), 0.9).forecasts(pool, 8000)
        assert float(found[50].quantile(0.9)) == math.inf
        assert float(found[51].quantile(0.9)) == math.inf


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (Audit(0, 0, 0.95, 1.0), "no bound has been put to the test yet"),
        (
            Audit(5, 5, 0.9, 1.0),
            "5 of 5 bounds (100 %) held when more data came; 90 % are stated to",
        ),
        (
            Audit(35, 40, 0.95, 2.0),
            "35 of 40 bounds (88 %) held when more data came; 95 % are stated to, so gains are "
            "taken for 2 times as large",
        ),
    ],
)
def test_an_audit_is_a_sentence(found: Audit, sentence: str) -> None:
    assert str(found) == sentence


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"`confidence` must be in \(0, 1\), but got"):
        Audited(Projection(), confidence)
