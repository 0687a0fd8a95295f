"""Forecasts of pools by the process: what must not change them, and what must."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.curve import Cause
from optuna_daub.core.forecasts import given_pool
from optuna_daub.core.forecasts import hyperparameters
from optuna_daub.core.forecasts.by_process import Process
from optuna_daub.core.forecasts.forecast import WIDTH
from optuna_daub.core.forecasts.given_pool import MOST_SCORES
from optuna_daub.core.forecasts.given_pool import MOST_TAKING_PART
from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.core.forecasts.process import Seen
from optuna_daub.core.forecasts.process import condition
from optuna_daub.core.forecasts.process import lines_of
from optuna_daub.core.proposals import Given
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words
from tests.core.scenario import all_changed
from tests.core.scenario import changed


SIZES = (250, 1000, 4000, 16000)
FULL = SIZES[-1]
SPACE = Space((("kind", Words(("line", "tree"))), ("rate", Range(0.0, 1.0))))
ROWS = np.array([[0.0, 0.2], [1.0, 0.5], [1.0, 0.9]])


def pool_of(count: int, seed: int = 0) -> Pool:
    """Learners trained on a few sizes each, in turns; the best rate is 0.6."""
    rng = np.random.default_rng(seed)
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS))
    for learner in range(count):
        kind, rate = ("line", "tree")[rng.integers(2)], float(rng.random())
        pool = pool.with_newcomer(learner, {"kind": kind, "rate": rate})
        for size in SIZES[: rng.choice([1, 1, 2, 4])]:
            pool = pool.observed(learner, Observation(size, score(kind, rate, size)))
    return pool


def score(kind: str, rate: float, size: int) -> float:
    gain = 1.0 if kind == "line" else 2.0
    return 0.9 - (rate - 0.6) ** 2 / 4.0 - gain / size**0.5


def everything(pool: Pool, size: int) -> NDArray[np.float64]:
    """Means and standard deviations of learners and of candidates."""
    process = Process(FULL)
    both = process.forecasts(pool, size).all, process.candidates(pool, size)
    return np.array([np.concatenate([part(x) for x in both]) for part in (mean_of, sd_of)])


def mean_of(forecast: Any) -> NDArray[np.float64]:
    return np.asarray(forecast.mean)


def sd_of(forecast: Any) -> NDArray[np.float64]:
    return np.asarray(forecast.scale)


def with_seconds(pool: Pool, seconds: Callable[[float], float]) -> Pool:
    """Return the pool with trainings whose seconds depend on the rate, and are as the size."""

    def timed(curve: LearningCurve) -> LearningCurve:
        pace = seconds(curve.parameters["rate"])
        return changed(curve, lambda seen: replace(seen, seconds=pace * seen.size))

    return replace(pool, curves=Curves(map(timed, pool.curves.values())))


def test_what_costs_more_is_believed_to_be_better() -> None:
    """More trees take longer; without seconds, more and fewer than the known ones are alike."""
    trees, rate = Range(10, 500, is_log=True, is_whole=True), Range(0.0, 1.0)
    space = Space((("rate", rate), ("trees", trees)))
    few_and_many = Given(np.array([[0.4, 0.2], [0.4, 0.8]]))
    pool = Pool(to_come=None, space=space, proposer=few_and_many)
    for learner, (place, score) in enumerate([(0.2, 0.6), (0.6, 0.7)]):
        pool = pool.with_newcomer(learner, {"rate": place, "trees": 71})
        pool = pool.observed(learner, Observation(FULL, score, seconds=3.0 + learner))
    fewer, more = mean_of(Process(FULL).candidates(pool, FULL))
    assert more > fewer + 0.01
    fewer, more = mean_of(Process(FULL, is_timed=False).candidates(pool, FULL))
    assert more == pytest.approx(fewer, abs=1e-3)


def test_scores_decide_whether_what_costs_more_is_better() -> None:
    """Twenty rates, the smallest of which are the best ones, though the fastest."""
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS))
    for learner, rate in enumerate(np.linspace(0.0, 1.0, 20)):
        pool = pool.with_newcomer(learner, {"kind": "tree", "rate": float(rate)})
        pool = pool.observed(learner, Observation(FULL, 0.9 - 0.3 * float(rate)))
    pool = with_seconds(pool, lambda rate: math.exp(6.0 * rate))
    _, middle, last = mean_of(Process(FULL).candidates(pool, FULL))
    assert (middle, last) == pytest.approx((0.75, 0.63), abs=0.01)


@pytest.mark.parametrize("factor", [1e-3, 60.0])
def test_another_machine_changes_no_forecast(factor: float) -> None:
    pool = with_seconds(pool_of(12), lambda rate: 1e-4 * math.exp(3.0 * rate))
    other = with_seconds(pool, lambda rate: factor * 1e-4 * math.exp(3.0 * rate))
    np.testing.assert_allclose(everything(other, FULL), everything(pool, FULL), rtol=1e-6)


def with_scores(pool: Pool, factor: float, shift: float) -> Pool:
    return all_changed(pool, lambda seen: replace(seen, score=factor * seen.score + shift))


@pytest.mark.parametrize("size", [1000, FULL])
@pytest.mark.parametrize(("factor", "shift"), [(4.0, 0.0), (0.01, 3.0), (250.0, -80.0)])
def test_forecasts_change_as_scores_do(size: int, factor: float, shift: float) -> None:
    pool = pool_of(15)
    mean, sd = everything(pool, size)
    new_mean, new_sd = everything(with_scores(pool, factor, shift), size)
    np.testing.assert_allclose((new_mean - shift) / factor, mean, atol=1e-5)
    np.testing.assert_allclose(new_sd / factor, sd, atol=1e-5)
    before = Process(FULL).look(pool, 1000, FULL)
    after = Process(FULL).look(with_scores(pool, factor, shift), 1000, FULL)
    before = *before, Process(FULL).gaps(pool, size, 3)
    after = *after, Process(FULL).gaps(with_scores(pool, factor, shift), size, 3)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new / factor, old, atol=1e-5)


@pytest.mark.parametrize("count", [15, MOST_TAKING_PART + 40])
def test_a_parameter_that_all_have_alike_changes_nothing(count: int) -> None:
    pool = pool_of(count)
    more = Space((*SPACE.dimensions, ("same", Range(1.0, 3.0)), ("word", Words(("a", "b")))))
    curves = [
        replace(c, parameters={**c.parameters, "same": 2.5, "word": "b"})
        for c in pool.curves.values()
    ]
    rows = np.hstack([ROWS, np.full((len(ROWS), 1), 0.75), np.ones((len(ROWS), 1))])
    other = replace(pool, curves=Curves(curves), space=more, proposer=Given(rows))
    np.testing.assert_allclose(everything(other, FULL), everything(pool, FULL), atol=1e-6)


def test_a_learner_that_was_there_has_its_score_with_certainty() -> None:
    pool = pool_of(20)
    for size in SIZES:
        found = Process(FULL).forecasts(pool, size)
        for learner, curve in pool.curves.items():
            is_there = curve.size >= size
            assert (float(found[learner].scale) == 0.0) == is_there
            if is_there:
                assert float(found[learner].mean) == curve.score


def test_forecasts_at_full_size_follow_the_parameters() -> None:
    pool = pool_of(40)
    rows = np.array([[1.0, place] for place in np.linspace(0.0, 1.0, 21)])
    found = Process(FULL).candidates(replace(pool, proposer=Given(rows)), FULL)
    truth = np.array([score("tree", place, FULL) for place in rows[:, 1]])
    assert rows[int(mean_of(found).argmax()), 1] == pytest.approx(0.6, abs=0.1)
    assert np.abs(mean_of(found) - truth).mean() < 0.02


def test_2000_learners_have_finite_forecasts_by_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    n_learners: list[int] = []

    def noted(
        function: Callable[..., Any],
        begin: NDArray[np.float64],
        arguments: Any,
        *args: Any,
        **kw: Any,
    ) -> Any:
        n_learners.append(len(np.unique(arguments[1])))
        return minimize(function, begin, arguments, *args, **kw)

    minimize = hyperparameters.minimize
    monkeypatch.setattr(hyperparameters, "minimize", noted)
    pool = pool_of(2000)
    everything(pool, FULL)
    found = everything(pool.observed(1, Observation(FULL, 0.9)), FULL)
    assert found.shape == (2, 2000 + len(ROWS))
    assert np.isfinite(found).all()
    assert len(n_learners) == 1, "one more score is no reason for another fit"
    assert n_learners[0] <= MOST_TAKING_PART


@pytest.mark.parametrize(("count", "n_kept"), [(20, 14), (40, 8), (MOST_TAKING_PART, 2)])
def test_learners_with_many_scores_take_part_with_fewer(
    count: int, n_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a fit is the cube of the number of scores."""
    curves = [
        LearningCurve(i, tuple(Observation(n, i - 1000.0 / n) for n in range(1, 15)))
        for i in range(count)
    ]
    taught: list[Seen] = []
    fit = hyperparameters.fit
    monkeypatch.setattr(given_pool, "fit", lambda seen: taught.append(seen) or fit(seen))
    forecasts = Process(14).forecasts(Pool(Curves(curves)), 14)
    (seen,) = taught
    assert np.bincount(seen.learner).tolist() == [n_kept] * count
    assert n_kept * count <= MOST_SCORES
    sizes = (14 / 2.0**seen.doublings).round().reshape(count, n_kept)
    assert (np.diff(sizes) > 0).all()
    assert (sizes[:, [0, -1]] == [1, 14]).all()
    assert forecasts[count - 1].mean == count - 1 - 1000.0 / 14


def test_errors_of_similar_learners_are_similar() -> None:
    pool, places = Pool(to_come=None, space=SPACE), {0: 0.50, 1: 0.51, 2: 0.99}
    for learner, rate in places.items():
        pool = pool.with_newcomer(learner, {"kind": "tree", "rate": rate})
        pool = pool.observed(learner, Observation(1000, score("tree", rate, 1000)))
    drawn = Process(FULL).forecasts(pool, FULL).draws(4000, np.random.default_rng(0))
    near, _, far = (np.corrcoef(drawn.T)[i, j] for i, j in ((0, 1), (0, 2), (1, 2)))
    assert near > far
    assert near > 0.5


def test_a_point_beside_the_leader_differs_little_from_it_though_both_are_unsure() -> None:
    pool, places = Pool(to_come=None, space=SPACE), (0.2, 0.25, 0.5)
    for learner, rate in enumerate(places):
        pool = pool.with_newcomer(learner, {"kind": "tree", "rate": rate})
        for size, score in ((500, 0.3), (2000, 0.4)):  # so that it surely rises on
            pool = pool.observed(learner, Observation(size, score + 0.1 * rate))
    rows = SPACE.rows([{"kind": "tree", "rate": rate} for rate in (0.5001, 0.6, 0.95)])
    pool = replace(pool, proposer=Given(rows))
    gaps = Process(FULL).gaps(pool, FULL, len(places) - 1)
    leader, *new = np.square(Process(FULL).beliefs(pool, FULL)[1][len(places) - 1 :])
    assert gaps[0] < 0.2 * math.sqrt(new[0])
    assert list(gaps) == sorted(gaps)
    # A busy leader counts as trained on all the data, which shows how its score and the
    # candidates' depend on each other: var(c | l) = var(c) - cov(c, l)^2 / var(l).
    busy = replace(pool, busy=frozenset({len(places) - 1}))
    given = np.square(Process(FULL).beliefs(busy, FULL)[1][len(places) :])
    together = np.sqrt(leader * (np.array(new) - given))
    assert np.square(gaps) == pytest.approx(
        new + leader - 2.0 * together, rel=0.1, abs=0.01 * leader
    )


def test_a_busy_learner_narrows_its_neighbours_and_moves_none() -> None:
    pool = pool_of(20)
    learner = next(i for i, c in pool.curves.items() if c.size == SIZES[0])
    parameters = pool.curves[learner].parameters
    rows = np.vstack([SPACE.rows([{**parameters, "rate": parameters["rate"] + 0.01}]), ROWS])
    idle = replace(pool, proposer=Given(rows))
    busy = replace(idle, busy=frozenset({learner}))
    (mean, before), (moved, after) = (Process(FULL).beliefs(each, FULL) for each in (idle, busy))
    np.testing.assert_allclose(moved, mean, atol=1e-6)
    assert (after[20:] <= before[20:] + 1e-12).all()
    assert after[20] < 0.95 * before[20]


def test_a_busy_learner_without_a_score_counts_too() -> None:
    pool = pool_of(20).with_newcomer(20, {"kind": "tree", "rate": 0.5})
    before = Process(FULL).candidates(pool, FULL)
    after = Process(FULL).candidates(replace(pool, busy=frozenset({20})), FULL)
    assert sd_of(after)[1] < 0.9 * sd_of(before)[1]


def test_hyperparameters_rest_on_the_first_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is trained further next, they stay; with 15 % more trainings they are anew."""
    taught: list[Seen] = []

    def spy(seen: Seen, fit: Any = given_pool.fit) -> Any:
        taught.append(seen)
        return fit(seen)

    monkeypatch.setattr(given_pool, "fit", spy)
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS))
    order = 0
    for size in SIZES[:3]:
        for learner in range(7):
            if size == SIZES[0]:
                pool = pool.with_newcomer(learner, {"kind": "tree", "rate": learner / 7})
            order += 1
            pool = pool.observed(learner, Observation(size, 0.7 + learner / 70, order=order))
    Process(FULL).forecasts(pool, FULL)  # 21 trainings
    assert len(taught[-1].score) == 20
    for learner in (1, 6):
        after = pool.observed(learner, Observation(FULL, 0.3, order=22))
        Process(FULL).forecasts(after, FULL)
    new = pool.with_newcomer(7, {"kind": "line", "rate": 0.0})
    for place in range(1, 3):
        for part, again in zip(taught[0][:-2], taught[place][:-2], strict=True):
            np.testing.assert_array_equal(part, again)
    Process(FULL).forecasts(new.observed(7, Observation(250, 0.1)), FULL)
    assert len(taught[-1].score) == 20
    assert hyperparameters.milestone(22) == 20 < hyperparameters.milestone(23) == 23


def test_scores_that_are_no_numbers_are_not_learnt_from() -> None:
    pool = pool_of(10)
    broken = pool.with_newcomer(10, {"kind": "tree", "rate": 0.3})
    broken = broken.observed(10, Observation(250, float("nan")))
    np.testing.assert_allclose(
        everything(broken, FULL)[:, :10], everything(pool, FULL)[:, :10], atol=1e-9
    )


@pytest.mark.parametrize("cause", ["failed", "collapsed", "infeasible"])
def test_where_learners_are_lost_new_ones_are_expected_to_be_bad(cause: Cause) -> None:
    """The forecasts of learners stay; otherwise the unknown would be proposed for ever."""
    near, far = np.array([[1.0, 0.95]]), np.array([[1.0, 0.6]])
    pool = replace(pool_of(12), proposer=Given(np.vstack([near, far])))
    lost = pool
    for learner in range(12, 18):
        lost = lost.with_newcomer(learner, {"kind": "tree", "rate": 0.92 + (learner - 12) / 100})
        if cause == "infeasible":
            lost = lost.observed(learner, Observation(250, 0.95))
        lost = lost.dropped(learner, "it was lost", cause)
    before, after = everything(pool, FULL), everything(lost, FULL)
    np.testing.assert_allclose(after[:, :12], before[:, :12], atol=1e-9)
    assert after[0, -2] < before[0, -2] - 0.01
    assert after[0, -2] < after[0, -1] - 0.02


def test_a_lost_learners_later_trainings_change_no_forecast() -> None:
    """Hyperparameters rest on the first 23 trainings of the two others."""
    pool = Pool(to_come=None, space=SPACE)
    for learner in range(2):
        pool = pool.with_newcomer(learner, {"kind": "tree", "rate": 0.3 + learner / 3})
    for step in range(25):
        size, learner = 100 + 30 * step, step % 2
        score = 0.9 - (1 + learner) / size**0.5
        pool = pool.observed(learner, Observation(size, score if step < 23 else 0.3))
    lost = pool.with_newcomer(2, {"kind": "tree", "rate": 0.9})
    for size in (200, 300, 400):
        lost = lost.observed(2, Observation(size, 0.2))
    lost = lost.dropped(2, "ValueError", "failed")
    before, after = everything(pool, FULL), everything(lost, FULL)
    np.testing.assert_array_equal(after[:, :2], before[:, :2])


def test_one_error_says_as_much_of_new_learners_as_two() -> None:
    """The learner may be tried again; otherwise the next points would be beside it."""
    near = np.array([[1.0, 0.95]])
    pool = replace(pool_of(12), proposer=Given(near))
    once = pool.put(LearningCurve(12, parameters={"kind": "tree", "rate": 0.94}, errors=1))
    twice = pool.put(once.curves[12].drop("MemoryError"))
    before, after = everything(pool, FULL), everything(once, FULL)
    assert after[0, -1] < before[0, -1]
    np.testing.assert_allclose(after[:, -1], everything(twice, FULL)[:, -1], atol=1e-12)


def test_a_learner_that_failed_before_it_had_parameters_says_nothing_of_any_point() -> None:
    pool = pool_of(12)
    failed = pool.with_newcomer(12).dropped(12, "MemoryError", "failed")
    before, after = everything(pool, FULL), everything(failed, FULL)
    np.testing.assert_allclose(np.delete(after, 12, axis=1), before, atol=1e-9)


def test_before_any_score_candidates_may_be_anything() -> None:
    pool = Pool(to_come=None, space=SPACE, proposer=Given(ROWS))
    assert np.isinf(sd_of(Process(FULL).candidates(pool, FULL))).all()


@pytest.mark.parametrize("size", [1000, FULL])
def test_forecasts_are_beliefs_with_the_noise_of_a_score(size: int) -> None:
    pool = pool_of(12)
    mean, sd = Process(FULL).beliefs(pool, size)
    shown = everything(pool, size)
    np.testing.assert_array_equal(mean, shown[0])
    # The standard deviation v of a score: v (v + behind) is the square of the scale, in WIDTH.
    behind = mean[:12].max() - mean
    spread = np.sqrt((shown[1] / WIDTH) ** 2 + np.square(behind / 2)) - behind / 2
    # Forecasts are of scores, so the noise of a score is in them; it is one for all learners.
    noise = spread**2 - sd**2
    is_known = np.append([c.size >= size for c in pool.curves.values()], [False] * len(ROWS))
    np.testing.assert_allclose(noise[is_known], 0.0, atol=1e-18)
    np.testing.assert_allclose(noise[~is_known & (behind > 0)], noise[-1], rtol=1e-6)
    assert noise[-1] > 0.0


def test_a_look_at_another_size_than_all_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="`size` must be 16,000, but got 4,000"):
        Process(FULL).look(pool_of(3), 1000, 4000)


def test_many_learners_differ_little_from_few() -> None:
    """Beyond the learners that take part, a forecast rests on the learner's last score."""
    pool = pool_of(MOST_TAKING_PART + 60)
    found = Process(FULL).forecasts(pool, FULL)
    off = [
        float(found[i].mean) - score(c.parameters["kind"], c.parameters["rate"], FULL)
        for i, c in pool.curves.items()
    ]
    assert np.abs(off).max() < 0.15


def test_curves_without_parameters_have_forecasts() -> None:
    curves = [
        LearningCurve(i, (Observation(250, 0.6 + i / 50), Observation(1000, 0.7 + i / 50)))
        for i in range(4)
    ]
    found = Process(FULL).forecasts(Pool(Curves(curves)), FULL).all
    assert (np.diff(mean_of(found)) > 0.0).all()
    assert (mean_of(found) > [c.score for c in curves]).all()


@pytest.mark.parametrize("doublings", [0.0, 1.0, 4.0])
def test_a_learner_outside_the_process_learns_from_its_score_as_one_inside(
    doublings: float,
) -> None:
    rng = np.random.default_rng(0)
    learner, halvings = np.array([0, 0, 1, 2, 2, 3]), np.array([4.0, 0.0, 4.0, 2.0, 1.0, 4.0])
    seen = Seen(rng.random((4, 3)), np.zeros(2, bool), learner, halvings, rng.normal(size=6))
    theta, nobody = PRIOR.theta(2, 2.0)[0], np.array([[np.nan, np.nan, 0.0]])
    theta[-3] = -30.0  # others tell of the shared walk, but not to a learner outside
    process = condition(theta, seen)
    found = given_pool._alone(process, np.array([1.5, np.nan]), np.array([doublings, np.nan]))
    inside = seen._replace(
        rows=np.vstack([seen.rows, nobody]),
        learner=np.append(learner, 4),
        doublings=np.append(halvings, doublings),
        score=np.append(seen.score, 1.5),
    )
    of_inside = lines_of(condition(theta, inside), nobody, np.array([4]))
    for place, expected in ((0, of_inside), (1, lines_of(process, nobody))):
        for share in (0.3 * min(float(expected.last[0]), 3.0), 0.0):
            alone = np.array(found.scores(share))[:, place]
            assert alone == pytest.approx(np.array(expected.scores(share))[:, 0], abs=1e-6)
        shown = found.look(0.1 * min(float(expected.last[0]), 3.0), process.noise)[place]
        there = expected.look(0.1 * min(float(expected.last[0]), 3.0), process.noise)[0]
        assert shown == pytest.approx(there, abs=1e-6)


def test_a_busy_learner_is_as_unsure_as_before() -> None:
    pool = pool_of(20)
    busy = replace(pool, busy=frozenset({3, 7}))
    for size in SIZES[-2:]:
        before, after = (Process(FULL).forecasts(each, size).all for each in (pool, busy))
        for of in (mean_of, sd_of):
            np.testing.assert_allclose(of(after)[[3, 7]], of(before)[[3, 7]])
        assert sd_of(after)[4] <= sd_of(before)[4] * (1 + 1e-9)


def test_one_diverged_learner_does_not_hide_the_others() -> None:
    pool = pool_of(20)
    worst = Observation(SIZES[0], -1e6, order=1000)
    point = dict(pool.curves[0].parameters)
    diverged = pool.curves.put(LearningCurve(20, (worst,), parameters=point | {"rate": 0.999}))
    before = sd_of(Process(FULL).forecasts(pool, FULL).all)
    after = sd_of(Process(FULL).forecasts(replace(pool, curves=diverged), FULL).all)[:20]
    unsure = before > 0
    assert np.all(after[unsure] < 20 * before[unsure])


def test_a_whole_study_at_work_costs_what_its_best_part_does() -> None:
    pool = pool_of(2_000)
    busy = replace(pool, busy=frozenset(pool.curves))
    assert np.isfinite(mean_of(Process(FULL).forecasts(busy, FULL).all)).all()


def test_one_diverged_learner_among_ties_changes_no_forecast_by_much() -> None:
    """On few rows, most models may predict the same class."""

    def means(worst: float) -> NDArray[np.float64]:
        scores = [*[0.5] * 6, 0.6, 0.62, worst]
        curves = [
            LearningCurve(i, (Observation(1000, score),), parameters={"x": i})
            for i, score in enumerate(scores)
        ]
        return np.asarray(Process(16_000).forecasts(Pool(Curves(curves)), 16_000).all.mean)[:-1]

    np.testing.assert_allclose(means(-1e6), means(-1e3))
    assert np.abs(means(-1e6) - means(0.4)).max() < 0.5


def test_a_size_beyond_all_the_data_is_refused() -> None:
    pool = Pool(Curves([LearningCurve(0, (Observation(1000, 0.5),))]))
    with pytest.raises(ValueError, match="at most N, 2,000, but got 4,000"):
        Process(2_000).forecasts(pool, 4_000)
