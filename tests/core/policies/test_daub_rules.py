"""DAUB's rules one by one: ties, tolerance, busy learners, when it ends, what it says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Joint
from optuna_daub.core import LearningCurve
from optuna_daub.core import Pool
from optuna_daub.core import Projection
from optuna_daub.core import next_of_grid
from optuna_daub.core import projected_bound
from optuna_daub.core.decision import why_not
from tests.core.scenario import pool
from tests.core.scenario import said
from tests.strategies import GRID
from tests.strategies import learning_curves


SIZES = (1, 2, 4, 8, 16, 1024)

FULL = "5: .25 .25 .25 .25 .25 .5"
FOUR_FULL = " | ".join(f"{i}: .1 .1 .1 .1 .1 {end}" for i, end in enumerate((0.6, 0.8, 0.8, 0.7)))
BEST = "0: .5 .5 .5 .5 .5 .5"
GONE = "0: .9 .9 .9 .9 .9 .9 dropped"
LEADS = "1: .1 .2 .3 <1"
FULLER = "2: .1 .2 .3 .4 <.875"
NEXT = "1: .1 .2 .3 <.9 busy | 2: .1 .2 .3 <.8"

PLAIN: dict[str, Any] = {}
FIRST: dict[str, Any] = {"stop": "first"}


def within(tolerance: float) -> dict[str, Any]:
    return {"tolerance": tolerance}


STOPS = (PLAIN, FIRST)
TIED = (PLAIN, within(0.001))


@pytest.mark.parametrize(
    ("rule", "table", "answer"),
    [
        # Every learner gets three sizes first, the lower id before the others.
        (PLAIN, "1: .1 .5 .9 | 3: | 2: .1", "2 on 2"),
        (PLAIN, "1: .1 .5 .9 | 3: | 2: .1 .1", "2 on 4"),
        (PLAIN, "1: .1 .5 .9 | 3: | 2: .1 .1 .1", "3 on 1"),
        # Newcomers come one by one, and only when the last one has begun.
        (PLAIN, "0: .1 .1", "0 on 4"),
        (PLAIN, "0: .1 .1 | 2 to come", "0 on 4"),
        (PLAIN, "1 to come", "a new one on 1"),
        (PLAIN, f"{FULL} | any to come", "a new one on 1"),
        (PLAIN, "0: .1 busy | 1 to come", "a new one on 1"),
        # There is no answer before all have had theirs.
        *((rule, f"{BEST} | 1: .1 .1", "1 on 4") for rule in STOPS),
        *((rule, f"{BEST} | 1: .1 busy", "waits") for rule in STOPS),
        # Ties of bounds go to the most data,
        *((rule, "1: .7 .8 .9 <1 | 9: .1 .2 .3 .4 <1", "9 on 16") for rule in TIED),
        # then to the larger score as observed, not as mended (the first is mended to 0.55),
        *((rule, "1: .5 .6 .5 <1 | 2: .50 .51 .52 <1", "2 on 8") for rule in TIED),
        # then to the lower id,
        *((rule, "12: .5 .6 .7 <1 | 3: .5 .6 .7 <1 | 7: .5 .6 .7 <1", "3 on 8") for rule in TIED),
        # and never against the bound.
        *((rule, "1: .5 .6 .7 .8 <.98 | 2: .1 .2 .3 <.99", "2 on 8") for rule in TIED),
        # Bounds within the tolerance are ties; it is measured from the largest bound alone.
        (within(0.0), f"{LEADS} | {FULLER}", "1 on 8"),
        (within(0.12), f"{LEADS} | {FULLER}", "1 on 8"),
        (within(0.125), f"{LEADS} | {FULLER}", "2 on 16"),
        (within(1), f"{LEADS} | {FULLER}", "2 on 16"),
        (within(0.125), f"{LEADS} | {FULLER} | 3: .1 .2 .3 .4 .5 <.75", "2 on 16"),
        # It ends the study sooner.
        (PLAIN, f"{FULL} | 1: .1 .2 .3 <.5625", "1 on 8"),
        (within(0.0625), f"{FULL} | 1: .1 .2 .3 <.5625", "ends with 5"),
        # The end comes when a full learner has the largest bound, or with any if that is enough.
        (PLAIN, f"{FULL} | 1: .1 .2 .3 <.4", "ends with 5"),
        (PLAIN, f"{FULL} | 1: .1 .2 .3 <.6", "1 on 8"),
        (FIRST, f"{FULL} | 1: .1 .2 .3 <.6", "ends with 5"),
        # It picks the best of several full learners, and counts only those that are not dropped.
        *((rule, FOUR_FULL, "ends with 1") for rule in STOPS),
        *((rule, f"{FULL} | {GONE}", "ends with 5") for rule in STOPS),
        *((rule, GONE, "ends with None") for rule in STOPS),
        # Where the best is busy, the next best goes on, or the fullest within the tolerance of it.
        (PLAIN, NEXT, "2 on 8"),
        (within(0.125), f"{NEXT} | 3: .1 .2 .3 .4 <.7", "3 on 16"),
        # Nothing is done for those that a full learner beats.
        (PLAIN, f"1: .1 .2 .3 <.9 busy | {FULL} | 3: .1 .2 .3 <.4", "waits"),
        # Scores may be of any sign.
        (PLAIN, "1: -9 -5 -4 | 2: -3 -3 -3", "1 on 8"),
    ],
)  # fmt: skip
def test_who_is_next(rule: dict[str, Any], table: str, answer: str) -> None:
    assert said(DAUB(SIZES, **rule).decide(pool(table, SIZES))) == answer


TRAINED = "trained on all 1,024 examples with score 0.500"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("0:", "every learner is first trained on 3 sizes"),
        ("1: .1 .2 .3 <.9 | 2: .1 .2 .3 <.8",
         "bound 0.900 is the largest; next is 0.800 of learner 2"),
        (NEXT, "bound 0.800 comes next; learner 1 has 0.900"),
        ("1: .1 .2 .3 <.9 | 2: .1 .2 .3 <.9", "bound 0.900 comes next; learner 2 has 0.900"),
        ("1: .1 .2 .3 <.9", "bound 0.900; no other learner can go on now"),
        # Learners that have no bound yet are not forgotten.
        ("0: .1 busy | 1: .1 .2 .3 <.9", "bound 0.900; no other learner can go on now"),
        ("1: .1 .2 .3 <.9 busy | 2: .1 .2 .3 <.8 busy",
         "every learner that could still be the best is being trained"),
        (FULL, f"{TRAINED}; no other learner is left"),
        (f"{FULL} | 1: .1 .2 .3 <.4",
         f"{TRAINED}; the largest other bound is 0.400 of learner 1"),
        ("1: dropped", "no learner is left"),
    ],
)  # fmt: skip
def test_what_a_user_reads(table: str, sentence: str) -> None:
    assert str(DAUB(SIZES).decide(pool(table, SIZES)).reason) == sentence


@pytest.mark.parametrize(
    ("tolerance", "table", "sentence"),
    [
        (0.0, "1: .1 .2 .3 <.871 | 17: .1 .2 .3 .4 <.884", "bound 0.871 < 0.884 of learner 17"),
        (0.02, "1: .1 .2 .3 <.89 | 17: .1 .2 .3 .4 <.884",
         "bound 0.890; learner 17 goes first with 0.884"),
        (0.0, "1: .1 .2 .3 <.871 | 2: .1", "every learner is first trained on 3 sizes"),
        (0.0, "1: .1 .2 .3 <.871 | 1 to come", "every learner is first trained on 3 sizes"),
        # Of the turn itself it is the reason of the decision.
        (0.0, f"1: .1 .2 .3 <.9 | {FULL}",
         "bound 0.900 is the largest; next is 0.500 of learner 5"),
    ],
)  # fmt: skip
def test_why_not_learner_1(tolerance: float, table: str, sentence: str) -> None:
    decision = DAUB(SIZES, tolerance=tolerance).decide(pool(table, SIZES))
    assert str(why_not(decision, 1)) == sentence


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


@pytest.mark.parametrize("first", [(1,), (2, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_the_projection_needs_three_first_sizes(first: tuple[int, ...], training: bool) -> None:
    with pytest.raises(ValueError, match=r"`first_sizes` must be at least 3 sizes") as said:
        DAUB(SIZES, Projection(training), first_sizes=first)
    assert f"but got {first}. " in str(said.value)
    assert str(said.value).endswith("or pass `forecaster=Joint()`.")
    assert DAUB(SIZES, Joint(), first_sizes=first).first_sizes == first


def test_defaults_are_those_of_the_design() -> None:
    paper = DAUB(SIZES, Projection(), next_of_grid, SIZES[:3], tolerance=0.0, stop="verified")
    assert paper == DAUB(SIZES)
