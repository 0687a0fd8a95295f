"""DAUB's rules one by one: ties, tolerance, busy learners, when it ends, what it says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Joint
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Projection
from optuna_daub.core import Propose
from optuna_daub.core import Wait
from optuna_daub.core import next_of_grid
from optuna_daub.core import projected_bound
from optuna_daub.core.decision import why_not
from tests.strategies import GRID
from tests.strategies import learning_curves


SIZES = (1, 2, 4, 8, 16, 1024)
DAUB_HERE = DAUB(SIZES)


def curve(learner: int, *scores: float, bound: float | None = None) -> LearningCurve:
    """Return a curve over the first of SIZES, with `bound` as training score at each."""
    seen = (Observation(n, score, bound) for n, score in zip(SIZES, scores, strict=False))
    return LearningCurve(learner, tuple(seen))


def extended(daub: DAUB, *curves: LearningCurve, busy: Any = ()) -> tuple[int, int]:
    """Return the learner that is trained next, and on how much."""
    decision = daub.decide(Pool(Curves(curves), frozenset(busy)))
    assert isinstance(decision, Extend), decision
    return decision.learner, decision.size


def finished(daub: DAUB, *curves: LearningCurve, busy: Any = ()) -> int | None:
    decision = daub.decide(Pool(Curves(curves), frozenset(busy)))
    assert isinstance(decision, Finish), decision
    return decision.learner


FULL = curve(5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.5)


class TestTheStart:
    def test_every_learner_gets_three_sizes_the_lower_id_first(self) -> None:
        good = curve(1, 0.1, 0.5, 0.9)
        assert extended(DAUB_HERE, good, curve(3), curve(2, 0.1)) == (2, 2)
        assert extended(DAUB_HERE, good, curve(3), curve(2, 0.1, 0.1)) == (2, 4)
        assert extended(DAUB_HERE, good, curve(3), curve(2, 0.1, 0.1, 0.1)) == (3, 1)

    def test_newcomers_come_one_by_one_and_only_when_the_last_has_begun(self) -> None:
        begun = Pool(Curves([curve(0, 0.1, 0.1)]), to_come=2)
        assert extended(DAUB_HERE, *begun.curves.values()) == (0, 4)
        assert isinstance(DAUB_HERE.decide(begun), Extend)
        for pool in (Pool(to_come=1), Pool(Curves([FULL]), to_come=None)):
            decision = DAUB_HERE.decide(pool)
            assert isinstance(decision, Propose)
            assert decision.size == 1
        elsewhere = Pool(Curves([curve(0, 0.1)]), frozenset({0}), to_come=1)
        assert isinstance(DAUB_HERE.decide(elsewhere), Propose)

    def test_no_answer_before_all_have_had_theirs(self) -> None:
        best = curve(0, *[0.5] * 6)
        for daub in (DAUB_HERE, DAUB(SIZES, stop="first")):
            assert extended(daub, best, curve(1, 0.1, 0.1)) == (1, 4)
            assert isinstance(
                daub.decide(Pool(Curves([best, curve(1, 0.1)]), frozenset({1}))), Wait
            )


@pytest.mark.parametrize("daub", [DAUB_HERE, DAUB(SIZES, tolerance=0.001)])
class TestTies:
    def test_go_to_the_most_data(self, daub: DAUB) -> None:
        more = curve(9, 0.1, 0.2, 0.3, 0.4, bound=1.0)
        assert extended(daub, curve(1, 0.7, 0.8, 0.9, bound=1.0), more) == (9, 16)

    def test_then_to_the_larger_score_as_observed_not_as_mended(self, daub: DAUB) -> None:
        mended_to_55 = curve(1, 0.5, 0.6, 0.5, bound=1.0)
        observed_52 = curve(2, 0.50, 0.51, 0.52, bound=1.0)
        assert extended(daub, mended_to_55, observed_52) == (2, 8)

    def test_then_to_the_lower_id(self, daub: DAUB) -> None:
        twins = [curve(i, 0.5, 0.6, 0.7, bound=1.0) for i in (12, 3, 7)]
        assert extended(daub, *twins) == (3, 8)

    def test_never_against_the_bound(self, daub: DAUB) -> None:
        fuller = curve(1, 0.5, 0.6, 0.7, 0.8, bound=0.98)
        assert extended(daub, fuller, curve(2, 0.1, 0.2, 0.3, bound=0.99)) == (2, 8)


class TestTolerance:
    LEADS = curve(1, 0.1, 0.2, 0.3, bound=1.0)
    FULLER = curve(2, 0.1, 0.2, 0.3, 0.4, bound=0.875)

    @pytest.mark.parametrize(("tolerance", "learner"), [(0.0, 1), (0.12, 1), (0.125, 2), (1, 2)])
    def test_bounds_within_it_are_ties(self, tolerance: float, learner: int) -> None:
        assert extended(DAUB(SIZES, tolerance=tolerance), self.LEADS, self.FULLER)[0] == learner

    def test_is_measured_from_the_largest_bound_alone(self) -> None:
        fullest = curve(3, 0.1, 0.2, 0.3, 0.4, 0.5, bound=0.75)
        daub = DAUB(SIZES, tolerance=0.125)
        assert extended(daub, self.LEADS, self.FULLER, fullest)[0] == 2

    def test_ends_the_study_sooner(self) -> None:
        rival = curve(1, 0.1, 0.2, 0.3, bound=0.5625)
        assert extended(DAUB_HERE, FULL, rival) == (1, 8)
        assert finished(DAUB(SIZES, tolerance=0.0625), FULL, rival) == 5


class TestTheEnd:
    def test_comes_when_the_full_learner_has_the_largest_bound(self) -> None:
        assert finished(DAUB_HERE, FULL, curve(1, 0.1, 0.2, 0.3, bound=0.4)) == 5
        assert extended(DAUB_HERE, FULL, curve(1, 0.1, 0.2, 0.3, bound=0.6)) == (1, 8)

    def test_comes_with_any_full_learner_if_the_first_is_enough(self) -> None:
        rival = curve(1, 0.1, 0.2, 0.3, bound=0.6)
        assert finished(DAUB(SIZES, stop="first"), FULL, rival) == 5

    @pytest.mark.parametrize("stop", ["verified", "first"])
    def test_picks_the_best_of_several_full_learners(self, stop: Any) -> None:
        full = [curve(i, *[0.1] * 5, score) for i, score in enumerate([0.6, 0.8, 0.8, 0.7])]
        assert finished(DAUB(SIZES, stop=stop), *full) == 1

    @pytest.mark.parametrize("stop", ["verified", "first"])
    def test_counts_only_learners_that_are_not_dropped(self, stop: Any) -> None:
        daub = DAUB(SIZES, stop=stop)
        dropped = curve(0, *[0.9] * 6).drop("for a test")
        assert finished(daub, FULL, dropped) == 5
        assert finished(daub, dropped) is None


class TestBusyLearners:
    LEADS = curve(1, 0.1, 0.2, 0.3, bound=0.9)
    NEXT = curve(2, 0.1, 0.2, 0.3, bound=0.8)

    def test_the_next_best_goes_on_where_the_best_is_busy(self) -> None:
        assert extended(DAUB_HERE, self.LEADS, self.NEXT, busy={1}) == (2, 8)

    def test_with_tolerance_it_is_the_fullest_within_it_of_the_best_that_is_free(self) -> None:
        fuller = curve(3, 0.1, 0.2, 0.3, 0.4, bound=0.7)
        daub = DAUB(SIZES, tolerance=0.125)
        assert extended(daub, self.LEADS, self.NEXT, fuller, busy={1}) == (3, 16)

    def test_nothing_is_done_where_all_are_busy(self) -> None:
        decision = DAUB_HERE.decide(Pool(Curves([self.LEADS, self.NEXT]), frozenset({1, 2})))
        reason = "every learner that could still be the best is being trained"
        assert isinstance(decision, Wait)
        assert str(decision.reason) == reason

    def test_nothing_is_done_for_those_that_a_full_learner_beats(self) -> None:
        hopeless = curve(3, 0.1, 0.2, 0.3, bound=0.4)
        pool = Pool(Curves([self.LEADS, FULL, hopeless]), frozenset({1}))
        assert isinstance(DAUB_HERE.decide(pool), Wait)


class TestReasons:
    """Sentences that a user reads."""

    def said(self, *curves: LearningCurve, busy: Any = (), daub: DAUB = DAUB_HERE) -> str:
        return str(daub.decide(Pool(Curves(curves), frozenset(busy))).reason)

    def test_of_the_start(self) -> None:
        assert self.said(curve(0)) == "every learner is first trained on 3 sizes"

    def test_of_the_largest_bound(self) -> None:
        pair = curve(1, 0.1, 0.2, 0.3, bound=0.9), curve(2, 0.1, 0.2, 0.3, bound=0.8)
        assert self.said(*pair) == "bound 0.900 is the largest; next is 0.800 of learner 2"
        assert self.said(*pair, busy={1}) == "bound 0.800 comes next; learner 1 has 0.900"

    def test_of_a_tie(self) -> None:
        twins = [curve(i, 0.1, 0.2, 0.3, bound=0.9) for i in (1, 2)]
        assert self.said(*twins) == "bound 0.900 comes next; learner 2 has 0.900"

    def test_of_a_learner_alone(self) -> None:
        alone = curve(1, 0.1, 0.2, 0.3, bound=0.9)
        assert self.said(alone) == "bound 0.900; no other learner can go on"

    def test_of_the_end(self) -> None:
        other = curve(1, 0.1, 0.2, 0.3, bound=0.4)
        text = "trained on all 1,024 examples with score 0.500"
        assert self.said(FULL) == f"{text}; no other learner is left"
        assert self.said(FULL, other) == f"{text}; the largest other bound is 0.400 of learner 1"

    def test_of_no_learner_left(self) -> None:
        assert self.said(curve(1).drop("for a test")) == "no learner is left"

    def test_of_a_turn_that_passes_on(self) -> None:
        def explained(*curves: LearningCurve, tolerance: float = 0.0) -> str:
            decision = DAUB(SIZES, tolerance=tolerance).decide(Pool(Curves(curves)))
            return str(why_not(decision, 1))

        loser = curve(1, 0.1, 0.2, 0.3, bound=0.871)
        leader = curve(17, 0.1, 0.2, 0.3, 0.4, bound=0.884)
        assert explained(loser, leader) == "bound 0.871 < 0.884 of learner 17"
        higher = curve(1, 0.1, 0.2, 0.3, bound=0.89)
        tie = "bound 0.890; first goes learner 17 with 0.884"
        assert explained(higher, leader, tolerance=0.02) == tie
        first = "every learner is first trained on 3 sizes"
        assert explained(loser, curve(2, 0.1)) == first
        to_come = Pool(Curves([loser]), to_come=1)
        assert str(why_not(DAUB_HERE.decide(to_come), 1)) == first

    def test_of_the_turn_itself(self) -> None:
        pool = Pool(Curves([curve(1, 0.1, 0.2, 0.3, bound=0.9), FULL]))
        decision = DAUB_HERE.decide(pool)
        assert why_not(decision, 1) == decision.reason

    def test_do_not_forget_learners_that_have_no_bound_yet(self) -> None:
        pair = curve(0, 0.1), curve(1, 0.1, 0.2, 0.3, bound=0.9)
        assert self.said(*pair, busy={0}) == "bound 0.900; no other learner can go on"


@given(seen=learning_curves(3), training=st.booleans())
def test_the_interval_ends_at_the_bound_once_there_are_three_sizes(
    seen: LearningCurve, training: bool
) -> None:
    interval = DAUB(GRID, Projection(training)).interval(Pool().put(seen), 3)
    assert interval.lower == -math.inf
    assert interval.upper == (
        projected_bound(seen, GRID[-1], use_training_score=training)
        if len(seen.observations) >= 3
        else math.inf
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0, 7, math.nan])
def test_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"`confidence` must be in \(0, 1\), but got"):
        DAUB(SIZES, confidence=confidence)


@pytest.mark.parametrize("first", [(3,), (2, 1), (1, 2, 2), (2048,)])
def test_first_sizes_are_part_of_the_grid(first: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`first_sizes` must be some of the training sizes"):
        DAUB(SIZES, first_sizes=first)


@pytest.mark.parametrize("first", [(1,), (2, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_the_projection_needs_three_first_sizes(first: tuple[int, ...], training: bool) -> None:
    with pytest.raises(ValueError, match=r"`first_sizes` must be at least 3 sizes") as said:
        DAUB(SIZES, Projection(training), first_sizes=first)
    assert f"but got {first}. " in str(said.value)
    assert str(said.value).endswith("or pass `forecaster=Joint()`.")
    assert DAUB(SIZES, Joint(), first_sizes=first).first_sizes == first


@given(value=st.floats(max_value=0, exclude_max=True) | st.just(math.nan))
def test_tolerance_is_not_negative(value: float) -> None:
    with pytest.raises(ValueError, match=r"`tolerance` must be at least 0, but got (-|nan)"):
        DAUB(SIZES, tolerance=value)


def test_stop_is_one_of_two() -> None:
    with pytest.raises(ValueError, match=r"`stop` must be one of .*, but got 'last'"):
        DAUB(SIZES, stop="last")  # type: ignore[arg-type]


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="at least 3 training sizes"):
        DAUB((500, 1000))


def test_defaults_are_those_of_the_design() -> None:
    paper = DAUB(SIZES, Projection(), next_of_grid, SIZES[:3], tolerance=0.0, stop="verified")
    assert paper == DAUB_HERE


def test_scores_outside_0_and_1_work() -> None:
    losses = [curve(1, -9.0, -5.0, -4.0), curve(2, -3.0, -3.0, -3.0)]
    assert extended(DAUB_HERE, *losses) == (1, 8)
