"""Successive halving against an independent transcription, and the rules of its edges."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import Wait
from optuna_daub.core import replay
from optuna_daub.core.decision import why_not
from tests.oracles import Halving
from tests.oracles import exact
from tests.strategies import halvings
from tests.strategies import known_curves


def events(halving: SuccessiveHalving, known: list[LearningCurve]) -> list[tuple[Any, ...]]:
    told: list[tuple[Any, ...]] = []
    for decision in replay(halving, known):
        match decision:
            case Extend(learner, size):
                told.append(("train", learner, size))
            case Drop(learner, reason):
                told.append(("fail" if "failed" in str(reason) else "drop", learner))
            case Finish(learner, _):
                told.append(("best", learner))
    return told


@given(data=st.data(), halving=halvings, failures=st.booleans())
def test_decides_as_the_transcription_does(
    data: st.DataObject, halving: SuccessiveHalving, failures: bool
) -> None:
    known = data.draw(known_curves(halving.sizes, max_learners=9, failures=failures))
    oracle = Halving(halving.sizes, exact(known), halving.keep_one_in)
    assert events(halving, known) == [*oracle.events, ("best", oracle.winner)]


def test_those_that_wait_are_told_whose_turn_it_is() -> None:
    halving = SuccessiveHalving((1, 2, 4))
    first = [LearningCurve(i, (Observation(1, 0.5 + i / 10),)) for i in range(4)]
    lost = [each.drop("the worst left") for each in first[:2]]
    ahead = first[3].extended(Observation(2, 0.9))
    for left in ([first[2], ahead], first[2:]):
        decision = halving.decide(Pool(Curves([*lost, *left])))
        said = str(why_not(decision, 3))
        assert said == "learner 2 is the next of 2 left, in the order of ids"


@pytest.mark.parametrize(
    ("keep_one_in", "left"),
    [(2, {1: 9, 2: 5, 3: 3, 100: 2}), (3, {1: 9, 2: 3, 100: 1})],
)
def test_keeps_one_in_so_many_rounded_up_and_the_last_jumps(
    keep_one_in: int, left: dict[int, int]
) -> None:
    sizes = (1, 2, 3, 100)
    known = [LearningCurve(i, tuple(Observation(n, i / 10) for n in sizes)) for i in range(9)]
    decisions = replay(SuccessiveHalving(sizes, keep_one_in), known)
    assert Counter(d.size for d in decisions if isinstance(d, Extend)) == left


def test_ties_keep_the_lower_id() -> None:
    sizes = (1, 2, 3)
    known = [LearningCurve(i, tuple(Observation(n, 0.5) for n in sizes)) for i in (4, 2, 9)]
    assert [e for e in events(SuccessiveHalving(sizes), known) if e[0] in ("drop", "best")] == [
        ("drop", 9),
        ("drop", 4),
        ("best", 2),
    ]


def test_waits_for_the_round_to_end() -> None:
    seen = [LearningCurve(i, (Observation(10, 0.5),)) for i in range(3)]
    curves = Curves([*seen[:2], seen[2].drop("worst"), LearningCurve(3).drop("failed")])
    decision = SuccessiveHalving((10, 20, 30)).decide(Pool(curves, frozenset({0, 1})))
    assert isinstance(decision, Wait)
    assert str(decision.reason) == "the last learners of this round are being trained"


def test_a_round_is_cut_once_though_learners_come_late() -> None:
    cut = [LearningCurve(0, dropped="worst"), LearningCurve(1, dropped="worst")]
    ahead = [LearningCurve(i, (Observation(1, 0.8), Observation(2, 0.9))) for i in (2, 3)]
    late = [LearningCurve(i, (Observation(1, 0.1),)) for i in (4, 5)]
    decision = SuccessiveHalving((1, 2, 3)).decide(Pool(Curves([*cut, *ahead, *late])))
    assert isinstance(decision, Extend)
    assert (decision.learner, decision.size) == (4, 2)


def test_a_drop_says_the_score_and_the_leader() -> None:
    seen = [LearningCurve(i, (Observation(1000, s),)) for i, s in enumerate([0.71, 0.62])]
    decision = SuccessiveHalving((1000, 2000, 3000)).decide(Pool(Curves(seen)))
    assert isinstance(decision, Drop)
    assert (decision.learner, str(decision.reason)) == (
        1,
        "score 0.620 at 1,000 is the worst left; 0.710 of 0 leads",
    )


def test_the_end_without_an_answer_names_the_best_of_those_ruled_out() -> None:
    """The last one left fails at the full size: the others get no more data."""
    known = [
        LearningCurve(0, (Observation(1, 0.9), Observation(2, 0.95))),
        LearningCurve(1, (Observation(1, 0.7), Observation(2, 0.75), Observation(4, 0.8))),
        LearningCurve(2, (Observation(1, 0.6), Observation(2, 0.7), Observation(4, 0.8))),
    ]
    *_, last = replay(SuccessiveHalving((1, 2, 4)), known)
    assert isinstance(last, Finish)
    assert last.learner is None
    assert str(last.reason) == (
        "no learner is left: those not ruled out have failed or are infeasible; of those ruled "
        "out, learner 1 has the largest score 0.750, at 2"
    )
    assert "the smallest score -0.750" in str(last.reason.mirrored())
    *_, nothing = replay(SuccessiveHalving((1, 2, 4)), [LearningCurve(0), LearningCurve(1)])
    assert str(nothing.reason) == "no learner is left"


@pytest.mark.parametrize("keep_one_in", [1, 0, -2])
def test_keep_one_in_is_at_least_two(keep_one_in: int) -> None:
    with pytest.raises(ValueError, match=f"`keep_one_in` must be at least 2, .*{keep_one_in}"):
        SuccessiveHalving((1, 2, 3), keep_one_in=keep_one_in)


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="strictly increasing"):
        SuccessiveHalving((1, 3, 2))
