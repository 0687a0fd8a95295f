"""Decisions and the sentences of their reasons."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Ranking
from optuna_daub.core import Reason
from tests.strategies import reasons


PAIR = "bound {0} {less} {1} of learner 17"


def test_scores_are_written_with_three_decimals() -> None:
    assert str(Reason(PAIR, (0.871, 0.884))) == "bound 0.871 < 0.884 of learner 17"
    assert str(Reason("the {largest} is {0}", (1234.5,))) == "the largest is 1,234.500"


def test_a_mirrored_reason_speaks_of_smaller_as_better() -> None:
    assert str(Reason(PAIR, (-0.5, -0.25)).mirrored()) == "bound 0.500 > 0.250 of learner 17"
    assert str(Reason("the {largest} is {0}", (-0.5,)).mirrored()) == "the smallest is 0.500"


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ((0.5312, 0.5318), "0.531 0.532"),
        ((0.5312, 0.5309), "0.5312 0.5309"),
        ((0.53121, 0.53119), "0.53121 0.53119"),
        ((0.2500001, 0.25), "0.2500001 0.2500000"),
        ((0.25, 0.25), "0.250 0.250"),
        ((0.25, 0.25 + 1e-12), "0.2500000 0.2500000"),
    ],
)
def test_different_scores_get_the_decimals_that_tell_them_apart(
    scores: tuple[float, float], text: str
) -> None:
    assert str(Reason("{0} {1}", scores)) == text


def test_a_sentence_may_do_without_scores() -> None:
    assert str(Reason("no learner is left")) == "no learner is left"


@given(reason=reasons)
def test_mirrored_twice_is_the_reason_itself(reason: Reason) -> None:
    assert reason.mirrored().mirrored() == reason
    assert reason.mirrored().sentence == reason.sentence
    assert reason.mirrored().scores == tuple(-score for score in reason.scores)


@given(reason=reasons)
def test_the_mirrored_order_is_the_opposite(reason: Reason) -> None:
    text, mirrored = str(reason), str(reason.mirrored())
    assert "largest" in text
    assert "smallest" in mirrored
    assert text.count("<") == mirrored.count(">") == len(reason.scores) - 1
    assert ">" not in text


@given(score=st.sampled_from([0.0, 1e-9]))
def test_zero_has_no_sign(score: float) -> None:
    assert str(Reason("score {0}", (score,)).mirrored()) == "score 0.000"


RANKING = Ranking("bound", np.array([2, 4, 17]), np.array([-math.inf, 0.871, 0.884]))


def test_a_ranking_speaks_of_the_first_and_of_all_others() -> None:
    assert str(RANKING.merit(17)) == "bound 0.884 is the largest; next is 0.871 of learner 4"
    assert str(RANKING.merit(4)) == "bound 0.871 comes next; learner 17 has 0.884"
    assert str(RANKING.compared(4, 17)) == "bound 0.871 < 0.884 of learner 17"
    assert str(RANKING.compared(17, 4)) == "bound 0.884; learner 4 goes first with 0.871"
    alone = dataclasses.replace(RANKING, values=np.array([-math.inf, 0.871, -math.inf]))
    assert str(alone.merit(4)) == "bound 0.871; no other learner can go on now"
    barred = dataclasses.replace(RANKING, excluded="it would be too late")
    assert str(barred.compared(2, 17)) == "it would be too late"


def test_a_ranking_of_scores_is_mirrored_and_one_of_amounts_is_not() -> None:
    losses = dataclasses.replace(RANKING, values=np.array([-math.inf, -0.884, -0.871]))
    said = "bound 0.871 is the smallest; next is 0.884 of learner 4"
    assert str(losses.merit(17).mirrored()) == said
    gains = Ranking("gain", np.array([4]), np.array([2e-6]), new=2.04e-6, unit="per second")
    said = "gain 2e-06 per second < 2.04e-06 of a new learner"
    assert str(gains.compared(4, None)) == said == str(gains.compared(4, None).mirrored())
    said = "gain 2.04e-06 per second is the largest; next is 2e-06 of learner 4"
    assert str(gains.merit(None)) == said


def test_next_to_nothing_is_nothing_beside_the_largest() -> None:
    gains = Ranking("gain", np.array([4, 7]), np.array([7e-17, 2e-6]), unit="per second")
    assert str(gains.compared(4, 7)) == "gain 0 per second < 2e-06 of learner 7"
    losses = Ranking("gain", np.array([4, 7]), np.array([-0.2, 0.0]), unit="per second")
    assert str(losses.compared(4, 7)) == "gain -0.2 per second < 0 of learner 7"


def test_a_rival_whose_value_is_infinite_can_go_on() -> None:
    every = Ranking("attainable score", np.array([4, 7]), np.array([math.inf, math.inf]))
    assert str(every.merit(4)) == "attainable score inf comes next; learner 7 has inf"
    alone = Ranking("attainable score", np.array([4, 7]), np.array([0.8, -math.inf]))
    assert str(alone.merit(4)) == "attainable score 0.800; no other learner can go on now"


@given(values=st.lists(st.floats(-1.0, 1.0) | st.just(-math.inf), max_size=6), new=st.floats(0, 1))
def test_the_rival_is_the_best_of_all_others(values: list[float], new: float) -> None:
    learners = np.arange(len(values)) * 3
    ranking = Ranking("gain", learners, np.array(values), new)
    assert ranking.rival(None)[0] == max(values, default=-math.inf)
    for place, learner in enumerate(learners.tolist()):
        assert ranking.rival(learner)[0] == max([new, *values[:place], *values[place + 1 :]])
