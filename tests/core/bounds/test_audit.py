"""The self-audit of bounds, and their repair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core.bounds.audit import LARGEST
from optuna_daub.core.bounds.audit import Audit
from optuna_daub.core.bounds.audit import AuditSummary
from optuna_daub.core.bounds.audit import audits_of
from optuna_daub.core.bounds.audit import inflation
from optuna_daub.core.bounds.calibrated import CalibratedBound
from optuna_daub.core.bounds.projection import ProjectedBound


SIZES = (500, 1000, 2000, 4000, 8000)


def curve(learner: int, *scores: float) -> LearningCurve:
    probes = zip(SIZES, scores, strict=False)
    return LearningCurve(learner, tuple(Observation(n, score) for n, score in probes))


class TestAudits:
    def test_each_later_probe_is_held_against_the_bound_from_those_before(self) -> None:
        seen = curve(3, 0.60, 0.70, 0.95, 0.96)
        second, third = audits_of(seen, ProjectedBound())
        assert (second.learner, second.size, second.held) == (3, 2000, False)
        assert second.allowed == pytest.approx(0.20)  # 0.10 in 500 examples, 1,000 to come
        assert second.gain == pytest.approx(0.25)
        assert second.ratio == pytest.approx(1.25)
        assert (third.size, third.held, third.ratio) == (4000, True, 1.0)

    def test_the_first_two_probes_are_no_audit(self) -> None:
        assert audits_of(curve(0, 0.5, 0.9), CalibratedBound()) == []

    def test_a_gain_where_none_was_allowed_cannot_be_repaired(self) -> None:
        assert Audit(0, 1000, allowed=0.0, gain=0.01).ratio == math.inf
        assert Audit(0, 1000, allowed=0.0, gain=0.0).ratio == 1.0

    def test_a_score_that_is_no_number_is_no_audit(self) -> None:
        assert audits_of(curve(0, 0.5, 0.6, math.nan), CalibratedBound()) == []


class TestInflation:
    @pytest.mark.parametrize(("number", "repaired"), [(18, False), (19, True)])
    def test_needs_as_many_audits_as_the_confidence_takes(
        self, number: int, repaired: bool
    ) -> None:
        assert (inflation([3.0] * number, 0.95) > 1.0) is repaired

    @given(st.lists(st.floats(0.1, 6), min_size=1, max_size=80), st.floats(0.5, 0.99))
    def test_with_it_the_audits_would_have_held_as_often_as_stated(
        self, found: list[float], confidence: float
    ) -> None:
        ratios = sorted(max(1.0, ratio) for ratio in found)
        factor = inflation(ratios, confidence)
        if (len(ratios) + 1) * confidence <= len(ratios):
            assert np.mean(np.array(ratios) <= factor + 1e-12) >= confidence - 1e-9
        assert factor in [2.0 ** (k / 2) for k in range(7)]

    def test_is_limited(self) -> None:
        assert inflation([math.inf] * 100, 0.9) == LARGEST

    def test_next_probe_holds_as_stated_where_probes_are_exchangeable(self) -> None:
        rng = np.random.default_rng(0)
        held = []
        for _ in range(2000):
            ratios = np.maximum(1.0, rng.exponential(0.8, size=40))
            held.append(ratios[-1] <= inflation(sorted(ratios[:-1]), 0.9))
        assert np.mean(held) >= 0.9 - 3 * math.sqrt(0.9 * 0.1 / 2000)


class TestInThePolicy:
    """Learners that leap where calibrated bounds expect them to rest."""

    LEAPING = tuple(curve(learner, 0.5, 0.501, 0.52, 0.54, 0.56) for learner in range(12))

    def rule(self) -> DAUB:
        return DAUB(SIZES, upper_bound=CalibratedBound(0.9))

    def test_bounds_that_fail_are_widened(self) -> None:
        daub, calm, leaping = self.rule(), Curves(), Curves(self.LEAPING)
        resting = curve(99, 0.50, 0.53, 0.55)
        narrow = daub.interval(resting, calm).upper
        assert daub.interval(resting, leaping).upper > narrow
        summary = daub.audit(leaping)
        assert summary.audited == 3 * len(self.LEAPING)
        assert summary.held / summary.audited < 0.9
        assert summary.inflation > 1.0

    def test_the_papers_bounds_are_counted_and_left_as_they_are(self) -> None:
        daub, leaping = DAUB(SIZES), Curves(self.LEAPING)
        resting = curve(99, 0.50, 0.53, 0.55)
        assert daub.interval(resting, leaping) == daub.interval(resting, Curves())
        assert daub.audit(leaping).inflation == 1.0
        assert daub.audit(leaping).audited == 3 * len(self.LEAPING)

    def test_an_audit_follows_the_curves(self) -> None:
        daub, curves = self.rule(), Curves(self.LEAPING)
        before = daub.audit(curves)
        curves.put(curve(0, 0.5, 0.6))
        assert daub.audit(curves).audited == before.audited - 3
        curves.remove(1)
        assert daub.audit(curves).audited == before.audited - 6
        assert daub.audit(curves) == daub.audit(Curves(list(curves.values())))


@pytest.mark.parametrize(
    ("summary", "sentence"),
    [
        (AuditSummary(0, 0, 0.95, 1.0), "no bound has been put to the test yet"),
        (AuditSummary(5, 5, None, 1.0), "5 of 5 bounds (100 %) held when more data came"),
        (
            AuditSummary(35, 40, 0.95, 2.0),
            "35 of 40 bounds (88 %) held when more data came; 95 % are stated to, so gains are "
            "taken for 2 times as large",
        ),
    ],
)
def test_a_summary_is_a_sentence(summary: AuditSummary, sentence: str) -> None:
    assert str(summary) == sentence
