"""ABC against the trace of formulas.md 2.9, a transcription, its promise, and its edges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from numpy.typing import NDArray

from optuna_daub.core import Curves
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Propose
from optuna_daub.core import replay
from optuna_daub.core.curve import Cause
from optuna_daub.core.decision import why_not
from optuna_daub.core.intervals import clopper_pearson
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart
from optuna_daub.core.intervals.confidence import HalfWidth
from optuna_daub.core.policies.approximate_best import ABC
from optuna_daub.core.policies.approximate_best import BestGuess
from optuna_daub.core.policies.schedulers import Scheduler
from optuna_daub.core.policies.schedulers import gradient_ci
from optuna_daub.core.policies.schedulers import round_robin
from optuna_daub.core.policies.schedulers import ucb
from tests.core.scenario import changed
from tests.core.scenario import events
from tests.core.scenario import said
from tests.core.stepping import steps
from tests.oracles import Abc
from tests.strategies import FOUR
from tests.strategies import FOUR_SIZES
from tests.strategies import noisy_learners


every_scheduler = pytest.mark.parametrize("scheduler", [gradient_ci, ucb, round_robin])


# ---- The deterministic run of formulas.md 2.9 --------------------------------------------------

TRACE = """
(0,1000,.788186,.957414) (1,1000,.746563,.979037) (2,1000,.734510,.891090)
(3,1000,.643997,.781603 -> prunes 3) (1,2000,.776859,.942995) (0,2000,.809220,.930634)
(0,4000,.824093,.911698) (1,4000,.798281,.917509) (0,8000,.834610,.898308)
(1,8000,.813429,.899488) (0,16000,.842046,.888839) (1,16000,.824141,.886745)
(2,2000,.753692,.866162) (0,32000,.847305,.882144) (1,32000,.831715,.877735)
(0,64000,.856047,.877410) (1,64000,.842094,.871363) (0,128000,.857205,.874063 -> prunes 2)
(1,128000,.844410,.866858 -> prunes 1)
"""


def test_the_run_of_the_formulas() -> None:
    abc = ABC(FOUR_SIZES, n_validation=100_000, refit=False)
    told, seconds = "", 0.0
    for step in steps(abc, FOUR):
        match step.decision:
            case Extend(_, size) | Propose(size):
                learner = step.newcomer
                if isinstance(step.decision, Extend):
                    learner = step.decision.learner
                assert learner is not None
                probe = FOUR[learner].at(size)
                assert probe is not None
                assert probe.seconds is not None
                assert probe.n_validation == abc.needs.validation_size(size)
                seconds += probe.seconds
                pool = step.pool
                if step.newcomer is not None:
                    pool = pool.with_newcomer(learner)
                ends = abc.interval(pool.observed(learner, probe), learner)
                told += f" ({learner},{size},{ends.lower:.6f},{ends.upper:.6f})"
            case Drop(learner, _):
                told = told[:-1] + f" -> prunes {learner})"
            case Finish(learner, reason):
                assert learner == 0
                assert str(reason) == (
                    "within 0.01 of the best with probability 0.95; identified at 128,000 "
                    "examples, not trained on all"
                )
    assert told.split() == TRACE.replace(",.", ",0.").split()
    assert round(seconds, 6) == 1021.7
    assert sum(curve.observations[-1].seconds or 0 for curve in FOUR) == 4700


def test_refit_trains_the_answer_on_all_the_data_at_once() -> None:
    abc = ABC(FOUR_SIZES, n_validation=100_000)
    exploring = list(replay(replace(abc, refit=False), FOUR))
    *same, refit, last = replay(abc, FOUR)
    assert same == exploring[:-1]
    reason = "identified as within 0.01 of the best with probability 0.95"
    assert isinstance(refit, Extend)
    assert (refit.learner, refit.size, str(refit.reason)) == (0, 1_000_000, reason)
    assert isinstance(last, Finish)
    assert str(last.reason) == (
        "within 0.01 of the best with probability 0.95; trained on all 1,000,000 examples with "
        "score 0.859"
    )


# ---- The slow transcription ---------------------------------------------------------------------


GRID = (1000, 2000, 4000, 8000, 16_000, 32_000)


@every_scheduler
@given(known=noisy_learners(GRID), epsilon=st.sampled_from([0.01, 0.05, 0.2]))
def test_decides_as_the_transcription_does(
    scheduler: Scheduler, known: list[LearningCurve], epsilon: float
) -> None:
    abc = ABC(GRID, 10_000, epsilon, delta=0.1, scheduler=scheduler, refit=False)
    oracle = Abc(GRID, known, 10_000, epsilon, 0.1, scheduler.__name__)
    assert events(abc, known) == [*oracle.events, ("best", oracle.winner)]


# ---- The promise -------------------------------------------------------------------------------


EPSILON = 0.02


def losses(confidence: HalfWidth) -> NDArray[np.float64]:
    """Return how far below the best the answer is, in runs of learners that learn nothing.

    Such learners (one hypothesis each) satisfy all conditions, and leave the sampling error alone
    to decide; nested samples of train and test data are drawn for each.
    """
    sizes, n_validation = (50, 100, 200, 400, 800, 1600, 3200, 6400), 3200
    found = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        known = []
        for i, truth in enumerate(rng.uniform(0.65, 0.8, 8)):
            train, test = (np.cumsum(rng.random(sizes[-1]) < truth) for _ in range(2))
            probes = [
                Observation(n, test[m - 1] / m, train[n - 1] / n, m)
                for n, m in ((n, min(2 * n, n_validation)) for n in sizes)
            ]
            known.append(LearningCurve(i, tuple(probes)))
        abc = ABC(
            sizes, n_validation, epsilon=EPSILON, delta=0.1, confidence=confidence, refit=False
        )
        *_, last = replay(abc, known)
        assert isinstance(last, Finish)
        assert last.learner is not None
        best = max(curve.observations[-1].score for curve in known)
        found.append(best - known[last.learner].observations[-1].score)
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "confidence", [hoeffding.half_width, massart.half_width, clopper_pearson.half_width]
)
def test_the_answer_is_within_epsilon_as_often_as_promised(confidence: HalfWidth) -> None:
    lost = losses(confidence)
    failed = int((lost > EPSILON).sum())
    print(f"{failed} of {len(lost)} runs lose more than {EPSILON}; most {lost.max():.4f}")
    assert failed <= 0.1 * len(lost)


def test_without_intervals_the_promise_is_broken() -> None:
    def certain(n: ArrayLike, mean: ArrayLike, tail: float) -> NDArray[np.float64]:
        return np.zeros(np.broadcast(n, mean).shape)

    lost = losses(certain)
    assert (lost > EPSILON).sum() > 0.1 * len(lost)


# ---- The anytime answer ------------------------------------------------------------------------


def probed(
    learner: int, score: float, training_score: float, size: int = 1000, most: int = 10_000
) -> LearningCurve:
    probe = Observation(size, score, training_score, min(2 * size, most))
    return LearningCurve(learner, (probe,))


def level(learner: int, score: float) -> LearningCurve:
    """Return a learner of one score at all sizes."""
    seen = (Observation(n, score, score, min(2 * n, 10_000), seconds=n / 1000) for n in GRID)
    return LearningCurve(learner, tuple(seen))


@given(known=noisy_learners(GRID), upto=st.lists(st.integers(0, 6), min_size=7, max_size=7))
def test_the_best_guess_has_the_smaller_gap(known: list[LearningCurve], upto: list[int]) -> None:
    abc = ABC(GRID, 10_000)
    pool = Pool(
        Curves(
            replace(curve, observations=curve.observations[:count])
            for curve, count in zip(known, upto, strict=False)
        )
    )
    ends = {i: abc.interval(pool, i) for i in pool.curves}
    guess = abc.best_guess(pool)
    if guess is None:
        assert not any(curve.observations for curve in pool.curves.values())
        return
    seen = [i for i, curve in pool.curves.items() if curve.observations]
    chances = (max(seen, key=lambda i: ends[i].lower), max(seen, key=lambda i: ends[i].upper))
    gaps = [max([0.0, *(ends[j].upper - ends[i].lower for j in ends if j != i)]) for i in chances]
    assert guess.gap == min(gaps)
    # Whatever the scores are within their intervals, the guess is within its gap of the best.
    worst = max([ends[guess.learner].lower, *(ends[j].upper for j in ends if j != guess.learner)])
    assert worst - ends[guess.learner].lower == guess.gap


def test_the_guess_is_as_good_as_promised_when_all_is_decided() -> None:
    abc = ABC(FOUR_SIZES, n_validation=100_000)
    guesses = [abc.best_guess(step.pool) for step in steps(abc, FOUR)]
    gaps = [guess.gap for guess in guesses if guess is not None]
    assert gaps[0] == pytest.approx(1 - 0.788186, abs=5e-7)  # those to come may be perfect
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-2] <= abc.epsilon  # identified
    assert guesses[-1] == BestGuess(0, gaps[-1], 0.95)


@pytest.mark.parametrize(
    "error", ["failed 2 times at 1,000 examples", "upper end 0.9 of the disk is reached"]
)
@pytest.mark.parametrize("cause", ["failed", "collapsed", "infeasible"])
def test_a_learner_that_failed_spoils_no_guess(error: str, cause: Cause) -> None:
    abc = ABC(GRID, 10_000)
    seen = [probed(0, 0.90, 0.90, 32_000), probed(1, 0.60, 0.60, 32_000)]
    failed = LearningCurve(2).drop(error, cause)
    alone = abc.best_guess(Pool(Curves([*seen, replace(seen[1], learner=2)])))
    assert alone == BestGuess(0, 0.0, 0.95)
    beside = abc.best_guess(Pool(Curves([*seen, failed])))
    assert beside is not None
    assert beside.learner == 0
    assert beside.gap == pytest.approx(0.01)
    promise = abc.promise(Pool(Curves([*seen, failed])), 0)
    assert "(1 failed or infeasible, of which nothing is claimed)" in promise
    assert abc.best_guess(Pool(Curves([failed]))) is None


def test_what_a_learner_that_failed_since_had_ruled_out_is_not_claimed_to_be_worse() -> None:
    """Learner 0 rules 1 out and then fails: of 2, which is left, nothing else is known."""
    abc = ABC(GRID, 10_000)
    seen = [probed(0, 0.90, 0.90, 16_000), probed(1, 0.85, 0.85, 16_000)]
    seen.append(probed(2, 0.60, 0.95, 16_000))
    drop = abc.decide(Pool(Curves(seen)))
    assert isinstance(drop, Drop)
    assert drop.learner == 1
    ruled_out = seen[1].drop(str(drop.reason), "ruled out")
    failed = seen[0].drop("failed 2 times at 32,000 examples")
    pool = Pool(Curves([failed, ruled_out, seen[2]]))
    gap = abc.interval(pool, 1).upper - abc.interval(pool, 2).lower
    assert gap > 0.1
    guess = abc.best_guess(pool)
    assert guess is not None
    assert (guess.learner, guess.gap) == (2, pytest.approx(gap))
    decision = abc.decide(pool)
    assert isinstance(decision, Extend)
    assert f"within {math.ceil(gap * 1000) / 1000:g} of the best" in str(decision.reason)


def test_the_gap_is_told_rounded_upwards() -> None:
    assert str(BestGuess(3, 0.0301, 0.9)) == (
        "learner 3 is within 0.031 of the best with probability 0.9"
    )
    assert "within 0.01 of" in str(BestGuess(3, 0.01, 0.9))


# ---- Edges -------------------------------------------------------------------------------------

NEW = [LearningCurve(7), probed(2, 0.9, 0.9), LearningCurve(4)]
ALIKE = [probed(0, 0.80, 0.81), probed(1, 0.80, 0.81)]
IDENTIFIED = [ALIKE[0], ALIKE[1].drop("failed")]
EQUAL = [probed(i, 0.8, 0.8, 32_000) for i in (5, 3, 9)]
CLOSE = [probed(0, 0.80, 1.0, 16_000), probed(1, 0.85, 1.0, 16_000)]
ON_A_SAMPLE = [probed(i, score, 0.9, 32_000, 4000) for i, score in enumerate((0.80, 0.81))]


@pytest.mark.parametrize(
    ("curves", "busy", "answer", "reason"),
    [
        # Learners begin in the order of their ids, and pass the busy ones.
        (NEW, (), "4 on 1000", "every learner is first trained on the smallest size"),
        (NEW, (2, 7), "4 on 1000", "every learner is first trained on the smallest size"),
        (NEW, (4,), "7 on 1000", "every learner is first trained on the smallest size"),
        # The leader stays, and among equals the lower id leads.
        (EQUAL, (), "drops 5", "0.800 is within 0.01 of the largest lower end 0.800 of learner 3"),
        # It waits for those that are being trained.
        (ALIKE, (0,), "1 on 2000", "undecided between"),
        (ALIKE, (0, 1), "waits", "every undecided learner is being trained"),
        (IDENTIFIED, (0,), "waits", ""),
        # One undecided below the full size goes there: only there its interval becomes exact.
        (CLOSE, (), "1 on 32000", "undecided between 0.850 and 1.000, one of 2 left"),
        # Fully trained learners that were scored on a sample may stay undecided.
        (
            ON_A_SAMPLE,
            (),
            "ends with 1",
            "of 2 fully trained learners it has the largest lower en",
        ),
    ],
)
def test_what_is_next_and_why(
    curves: list[LearningCurve], busy: tuple[int, ...], answer: str, reason: str
) -> None:
    decision = ABC(GRID, 10_000).decide(Pool(Curves(curves), frozenset(busy)))
    assert said(decision) == answer
    assert reason in str(decision.reason)


def test_without_a_refit_nothing_is_waited_for() -> None:
    exploring = ABC(GRID, 10_000, refit=False)
    assert said(exploring.decide(Pool(Curves(IDENTIFIED), frozenset({0})))) == "ends with 0"


def test_no_learner_is_dropped_before_all_have_begun() -> None:
    abc = ABC(GRID, 10_000, epsilon=0.2)
    good, bad = probed(0, 0.9, 0.9, 16_000), probed(1, 0.3, 0.3, 16_000)
    assert isinstance(abc.decide(Pool(Curves([good, bad]))), Drop)
    decision = abc.decide(Pool(Curves([good, bad, LearningCurve(2)]), frozenset({2})))
    assert isinstance(decision, Extend)
    assert decision.learner in (0, 1)


def test_dropped_learners_still_count_in_the_failure_probability() -> None:
    abc = ABC(GRID, 10_000)
    seen, other = probed(0, 0.8, 0.85), probed(1, 0.3, 0.35)
    both = abc.interval(Pool(Curves([seen, other])), 0)
    assert abc.interval(Pool(Curves([seen, other.drop("failed")])), 0) == both
    alone = abc.interval(Pool(Curves([seen])), 0)
    to_come = abc.interval(Pool(Curves([seen]), to_come=1), 0)
    assert to_come == both
    assert both.lower < alone.lower
    assert alone.upper < both.upper
    assert both.lower == pytest.approx(0.8 - math.sqrt(math.log(2 / (0.05 / 4)) / 4000))


def test_the_turn_passes_with_both_upper_ends_named() -> None:
    def explained(pool: Pool) -> str:
        return str(why_not(abc.decide(pool), 0))

    abc = ABC(GRID, 10_000)
    begun = [probed(0, 0.7, 0.75), probed(1, 0.8, 0.85), LearningCurve(2)]
    both = Pool(Curves(begun), frozenset({2}))
    assert explained(both) == "upper end 0.825 < 0.925 of learner 1"
    first = "every learner is first trained on the smallest size"
    assert explained(Pool(Curves(begun))) == first
    assert explained(Pool(Curves(begun[:2]), to_come=1)) == first


def test_the_end_without_an_answer_names_the_best_of_those_ruled_out() -> None:
    """The last one left fails on all the data: the others get no more data."""
    abc = ABC(GRID, 10_000)
    steady = [level(i, score) for i, score in enumerate((0.95, 0.60, 0.65))]
    failing = replace(steady[0], observations=steady[0].observations[:-1])
    *_, last = replay(abc, [failing, *steady[1:]])
    assert isinstance(last, Finish)
    assert last.learner is None
    assert str(last.reason).startswith(
        "no learner is left: those not ruled out have failed or are infeasible; of those ruled "
        "out, learner 2 has the largest lower end 0.6"
    )
    *_, nothing = replay(abc, [LearningCurve(0), LearningCurve(1)])
    assert str(nothing.reason) == "no learner is left"


@pytest.mark.parametrize("size", [1000, 4000])
def test_a_training_score_that_is_not_finite_drops_its_learner_alone(size: int) -> None:
    abc = ABC(GRID, 10_000)
    close = [level(i, score) for i, score in enumerate((0.80, 0.799, 0.40))]
    broken = changed(
        close[1], lambda x: replace(x, training_score=math.nan) if x.size == size else x
    )
    *decisions, last = replay(abc, [close[0], broken, close[2]])
    (dropped,) = [d for d in decisions if isinstance(d, Drop) and d.learner == 1]
    assert str(dropped.reason) == f"training score nan at {size:,} examples"
    assert isinstance(last, Finish)
    assert last.learner == 0


def test_without_the_number_of_validation_examples_all_are_scored() -> None:
    everything, told = ABC(GRID), ABC(GRID, 10_000)
    assert everything.needs.validation_size(1000) is None
    seen = LearningCurve(3, (Observation(1000, 0.8, 0.9, 10_000),))
    pool = Pool().put(seen)
    assert everything.interval(pool, 3) == told.interval(pool, 3)
    grown = seen.extended(Observation(2000, 0.8, 0.9, 10_001))
    with pytest.raises(ValueError, match=r"learner 3 .* 10,000 to 10,001 .*Give `n_validation`"):
        everything.interval(Pool().put(grown), 3)
