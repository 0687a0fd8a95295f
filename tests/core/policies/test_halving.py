"""Successive halving against an independent transcription, and the rules of its edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import replay
from optuna_daub.core.decision import why_not
from tests.core.scenario import events
from tests.core.scenario import pool
from tests.core.scenario import said
from tests.oracles import Halving
from tests.oracles import exact
from tests.strategies import halvings
from tests.strategies import known_curves


@given(data=st.data(), halving=halvings, failures=st.booleans())
def test_decides_as_the_transcription_does(
    data: st.DataObject, halving: SuccessiveHalving, failures: bool
) -> None:
    known = data.draw(known_curves(halving.sizes, max_learners=9, failures=failures))
    oracle = Halving(halving.sizes, exact(known), halving.keep_one_in)
    assert events(halving, known) == [*oracle.events, ("best", oracle.winner)]


def at_rest(halving: SuccessiveHalving, pool: Pool) -> tuple[set[int], str]:
    """Return the learners left when all that can be ruled out are, and the decision then."""
    while isinstance(decision := halving.decide(pool), Drop):
        pool = pool.dropped(decision.learner, "worst", "ruled out")
    left = {curve.learner for curve in pool.curves.values() if not curve.dropped}
    return left, said(decision)


@given(data=st.data(), halving=halvings, failures=st.booleans())
def test_a_process_that_remembers_no_drops_makes_them_again(
    data: st.DataObject, halving: SuccessiveHalving, failures: bool
) -> None:
    known = data.draw(known_curves(halving.sizes, max_learners=9, failures=failures))
    remembered = forgetful = Pool(Curves(LearningCurve(curve.learner) for curve in known))
    scores = {curve.learner: curve for curve in known}
    for decision in replay(halving, known):
        match decision:
            case Extend(learner, size) if seen := scores[learner].at(size):
                remembered = remembered.observed(learner, seen)
                forgetful = forgetful.observed(learner, seen)
            case Extend(learner, _):
                remembered = remembered.dropped(learner, "failed")
                forgetful = forgetful.dropped(learner, "failed")
            case Drop(learner) if not remembered.curves[learner].dropped:
                remembered = remembered.dropped(learner, "worst", "ruled out")
        assert at_rest(halving, forgetful) == at_rest(halving, remembered)


@pytest.mark.parametrize(
    "left", ["2: .7 | 3: .8 .9", "2: .7 | 3: .8"], ids=["one is ahead", "none is ahead"]
)
def test_those_that_wait_are_told_whose_turn_it_is(left: str) -> None:
    table = f"0: .5 out | 1: .6 out | {left}"
    decision = SuccessiveHalving((1, 2, 4)).decide(pool(table, (1, 2, 4)))
    told = "learner 2 is the next of 2 left, in the order of ids"
    assert str(why_not(decision, 3)) == told


SIZES = (1000, 2000, 3000)
LAST_OF_ROUND = "the last learners of this round are being trained"


@pytest.mark.parametrize(
    ("table", "answer", "reason"),
    [
        # Ties keep the lower id.
        ("4: .5 | 2: .5 | 9: .5", "drops 9", ""),
        ("4: .5 | 2: .5", "drops 4", ""),
        # It waits for the round to end.
        ("0: .5 busy | 1: .5 busy | 2: .5 out | 3: dropped", "waits", LAST_OF_ROUND),
        # One that is busy may be the worst: all processes drop the same.
        ("0: .9 | 1: .1 busy | 2: .8 | 3: .7", "drops 1", "score 0.100 at 1,000 is the worst"),
        # Learners that come late compete for the places of the round that are left.
        ("0: dropped | 1: dropped | 2: .8 .9 | 3: .8 .9 | 4: .1 | 5: .1", "drops 5", "0.100 at"),
        ("0: dropped | 1: dropped | 2: .8 .7 | 3: .7 .9 | 4: .9 | 5: .8", "drops 5", "0.800 at"),
        ("0: .7 .8 .9 | 1: .71 | 2: .72", "drops 1", "0.900 of 0 leads"),
        # A drop says the score and the leader.
        ("0: .71 | 1: .62", "drops 1", "score 0.620 at 1,000 is the worst left; 0.710 of 0 leads"),
    ],
)
def test_what_is_next_and_why(table: str, answer: str, reason: str) -> None:
    decision = SuccessiveHalving(SIZES).decide(pool(table, SIZES))
    assert said(decision) == answer
    assert reason in str(decision.reason)


@pytest.mark.parametrize(("to_come", "answer"), [(3, "0 on 1000"), (0, "0 on 3000")])
def test_only_the_last_one_left_skips_sizes(to_come: int, answer: str) -> None:
    """The first run may have been interrupted before its first score."""
    blank = Pool(Curves([LearningCurve(0)]), to_come=to_come)
    assert said(SuccessiveHalving(SIZES).decide(blank)) == answer


def test_the_end_without_an_answer_names_the_best_of_those_ruled_out() -> None:
    """The last one left fails at the full size: the others get no more data."""
    sizes = (1, 2, 4)
    known = pool("0: .9 .95 | 1: .7 .75 .8 | 2: .6 .7 .8", sizes).curves.values()
    *_, last = replay(SuccessiveHalving(sizes), known)
    assert said(last) == "ends with None"
    assert str(last.reason) == (
        "no learner is left: those not ruled out have failed or are infeasible; of those ruled "
        "out, learner 1 has the largest score 0.750, at 2"
    )
    assert "the smallest score -0.750" in str(last.reason.mirrored())
    *_, nothing = replay(SuccessiveHalving(sizes), [LearningCurve(0), LearningCurve(1)])
    assert str(nothing.reason) == "no learner is left"


def test_an_objective_may_report_sizes_off_the_grid() -> None:
    """Without `training_sizes` it may: so many as have passed a smaller size of the grid stay."""
    curves = [LearningCurve(i, (Observation(700, score),)) for i, score in enumerate((0.5, 0.7))]
    sizes = (500, 1000, 2000)
    decision = SuccessiveHalving(sizes).decide(Pool(Curves(curves), to_come=0))
    assert said(decision) == "drops 0"
