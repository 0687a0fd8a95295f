"""The process against finite differences, scikit-learn, and a slow transcription of its model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.gaussian_process.kernels import Matern
from sklearn.gaussian_process.kernels import WhiteKernel

from optuna_daub.core.forecasts.hyperparameters import fit
from optuna_daub.core.forecasts.hyperparameters import negative_log_posterior
from optuna_daub.core.forecasts.prior import PRIOR
from optuna_daub.core.forecasts.process import JITTER
from optuna_daub.core.forecasts.process import MEAN_SD
from optuna_daub.core.forecasts.process import Lines
from optuna_daub.core.forecasts.process import Seen
from optuna_daub.core.forecasts.process import condition
from optuna_daub.core.forecasts.process import pairs_of
from optuna_daub.core.space import Numbers


Quantity = tuple[Numbers, int, float, float, float]


def numbers_and_a_word(seed: int, learners: int = 7) -> Seen:
    """Scores of learners at several sizes each; two numbers, one of them absent at times."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.random((learners, 2)), rng.integers(0, 3, learners)])
    efforts = np.random.default_rng(seed + 1).normal(size=learners)
    rows = np.column_stack([rows, efforts])
    rows[1::3, 1] = np.nan
    sizes = [[6.0, 4.0, 2.5, 1.0, 0.0][: rng.integers(1, 6)] for _ in range(learners)]
    learner = np.repeat(np.arange(learners), [len(each) for each in sizes])
    doublings = np.concatenate(sizes)
    score = rng.normal(size=learners)[learner] - 0.2 * doublings
    score += rng.normal(0.0, 0.1, len(score))
    return Seen(rows, np.array([False, False, True]), learner, doublings, score)


def without_parameters(seed: int) -> Seen:
    seen = numbers_and_a_word(seed)
    return seen._replace(rows=seen.rows[:, -1:], is_word=np.empty(0, bool))


def some_theta(seen: Seen, seed: int = 0) -> Numbers:
    medians, _ = PRIOR.theta(len(seen.is_word), seen.n_varying)
    return medians + np.random.default_rng(seed).normal(0.0, 0.5, len(medians))


def without_shared_walk(theta: Numbers) -> Numbers:
    """Forecasts on the way to N are exact only without it."""
    return np.concatenate([theta[:-3], [-30.0], theta[-2:]])


def known_of(seen: Seen) -> tuple[Numbers, Any, Numbers, Numbers, Numbers]:
    """Return the scores as `negative_log_posterior` takes them."""
    off = seen.score + PRIOR.mean_gain * seen.share
    off -= PRIOR.effort_mean * seen.rows[seen.learner, -1]
    effort = seen.rows[:, -1]
    common = MEAN_SD**2 + PRIOR.effort_sd**2 * effort[:, None] * effort
    return seen.apart, common, seen.learner, *pairs_of(seen.share), off


def score_of(row: Numbers, learner: int, share: float) -> Quantity:
    return row, learner, 1.0, -share, share


class Slowly:
    """The model as the first docstring of the module has it, number by number."""

    def __init__(self, theta: Numbers, seen: Seen) -> None:
        self.lengths = np.exp(theta[:-7])
        variances = np.exp(theta[-7:]) ** 2
        self.f, self.g, self.b, self.u, self.v, self.w, self.noise = variances
        self.seen = seen

    def kernel(self, one: Numbers, other: Numbers, *, same: bool) -> float:
        if not len(self.lengths):
            return float(same)
        square = 0.0
        pairs = zip(one[:-1], other[:-1], self.seen.is_word, self.lengths, strict=True)
        for x, y, is_word, length in pairs:
            fill = -1.0 if is_word else 0.5
            x, y = (fill if math.isnan(z) else z for z in (x, y))
            square += (float(x != y) if is_word else (x - y) ** 2) / length**2
        r = math.sqrt(5.0 * square)
        return (1.0 + r + r * r / 3.0) * math.exp(-r)

    def covariance(self, first: list[Quantity], second: list[Quantity]) -> Numbers:
        """Return the covariance of quantities: a row, its learner (-1: none), the weights of A and
        of B, and the phi at which the walk is added."""
        found = np.empty((len(first), len(second)))
        for i, (row, learner, a, b, p) in enumerate(first):
            for j, (other, another, c, d, q) in enumerate(second):
                same = row is other or (learner == another and learner >= 0)
                near = self.kernel(row, other, same=same)
                level = MEAN_SD**2 + PRIOR.effort_sd**2 * float(row[-1]) * float(other[-1])
                level += self.f * near + self.u * same
                gain = self.b + self.g * near
                walk = (self.v + self.w * same) * min(p, q)
                found[i, j] = a * c * level + b * d * gain + walk
        return found

    def given(self, wanted: list[Quantity], kept: list[int]) -> tuple[Numbers, Numbers]:
        """Return mean and covariance of quantities, given some of the scores."""
        seen = self.seen
        known = [
            score_of(seen.rows[i], i, float(PRIOR.phi(d)))
            for i, d in zip(seen.learner[kept].tolist(), seen.doublings[kept], strict=True)
        ]
        all_seen = self.covariance(known, known) + (self.noise + JITTER) * np.eye(len(known))
        across = self.covariance(wanted, known)
        gain = np.linalg.solve(all_seen, across.T).T
        means = [
            np.array(
                [a * PRIOR.effort_mean * row[-1] + b * PRIOR.mean_gain for row, _, a, b, _ in part]
            )
            for part in (known, wanted)
        ]
        mean = means[1] + gain @ (seen.score[kept] - means[0])
        return mean, self.covariance(wanted, wanted) - gain @ across.T


EVERY = pytest.mark.parametrize(
    "seen",
    [numbers_and_a_word(0), numbers_and_a_word(1, 12), without_parameters(2)],
    ids=["few", "more", "no parameters"],
)


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_agrees_with_finite_differences(seen: Seen, seed: int) -> None:
    theta = some_theta(seen, seed)
    medians, spreads = PRIOR.theta(len(seen.is_word), seen.n_varying)
    rest = *known_of(seen), medians, spreads
    _, gradient = negative_log_posterior(theta, *rest)
    for place in range(len(theta)):
        step = np.zeros(len(theta))
        step[place] = 3e-3
        # Four points: the error falls with the fourth power of the step.
        values = [negative_log_posterior(theta + k * step, *rest)[0] for k in (-2, -1, 1, 2)]
        slope = float(np.dot(values, [1.0, -8.0, 8.0, -1.0])) / 36e-3
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@EVERY
def test_a_fit_is_a_minimum_and_is_had_again(seen: Seen) -> None:
    medians, spreads = PRIOR.theta(len(seen.is_word), seen.n_varying)
    rest = *known_of(seen), medians, spreads
    found = fit(seen)
    least = negative_log_posterior(found, *rest)[0]
    assert least < negative_log_posterior(medians, *rest)[0]
    rng = np.random.default_rng(0)
    for _ in range(30):
        beside = found + rng.normal(0.0, 0.1, len(found))
        assert negative_log_posterior(beside, *rest)[0] > least - 1e-3
    np.testing.assert_array_equal(fit(seen._replace(score=seen.score.copy())), found)


@pytest.mark.parametrize("doublings", [0.0, 3.0])
def test_at_one_size_it_is_the_process_of_scikit_learn(doublings: float) -> None:
    """Level and gain are then one process: Matern 5/2, a constant, and white noise."""
    rng = np.random.default_rng(0)
    rows, new = np.zeros((9, 3)), np.zeros((5, 3))  # no efforts
    rows[:, :2], new[:, :2] = rng.random((9, 2)), rng.random((5, 2))
    seen = Seen(rows, np.zeros(2, bool), np.arange(9), np.full(9, doublings), rng.normal(size=9))
    theta = without_shared_walk(some_theta(seen))
    f, g, b, u, v, w, noise = np.exp(2.0 * theta[-7:])
    share = float(PRIOR.phi(doublings))
    own = u + w * share
    theirs = GaussianProcessRegressor(
        ConstantKernel(MEAN_SD**2 + b * share**2 + v * share)
        + ConstantKernel(f + g * share**2) * Matern(np.exp(theta[:2]), nu=2.5)
        + WhiteKernel(own + noise),
        alpha=JITTER,
        optimizer=None,
    ).fit(rows[:, :2], seen.score + share * PRIOR.mean_gain)
    mean, sd = theirs.predict(new[:, :2], return_std=True)
    found_mean, found_variance = condition(theta, seen).lines(new).scores(share)
    np.testing.assert_allclose(found_mean, mean - share * PRIOR.mean_gain, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found_variance, sd**2 - noise, rtol=1e-6)


@EVERY
@pytest.mark.parametrize("is_shared", [True, False])
def test_lines_of_learners_and_candidates_agree_with_the_slow_transcription(
    seen: Seen, is_shared: bool
) -> None:
    theta = some_theta(seen)
    if not is_shared:
        theta = without_shared_walk(theta)
    count = len(seen.rows)
    rng = np.random.default_rng(5)
    new = rng.random((4, seen.rows.shape[1]))
    new[:, :-1][:, seen.is_word] = rng.integers(0, 4, (4, int(seen.is_word.sum())))
    rows, own = np.vstack([seen.rows, new]), np.append(np.arange(count), np.full(4, -1))
    found = condition(theta, seen).lines(rows, own)
    slow, all_scores = Slowly(theta, seen), [*range(len(seen.score))]
    for place, (row, learner) in enumerate(zip(rows, own.tolist(), strict=True)):
        last = float(found.last[place])
        walk = last if math.isfinite(last) else 0.0
        three = [(row, learner, 1.0, 0.0, 0.0), (row, learner, 0.0, 1.0, 0.0)]
        mean, covariance = slow.given([*three, (row, learner, 0.0, 0.0, walk)], all_scores)
        assert found.mean[:, place] == pytest.approx(mean, abs=1e-7)
        assert found.covariance[:, :, place] == pytest.approx(covariance, abs=1e-6)
        shares = (0.3 * last, 0.9 * last) if math.isfinite(last) else (0.5, 3.0)
        for share in (0.0,) if is_shared else (0.0, *shares):
            mean, covariance = slow.given([score_of(row, learner, share)], all_scores)
            scores, variance = (part[place] for part in found.scores(share))
            assert (scores, variance) == pytest.approx((mean[0], covariance[0, 0]), abs=1e-6)


@EVERY
@pytest.mark.parametrize("doublings", [0.0, 1.0, 4.0])
def test_a_look_is_what_one_more_score_changes(seen: Seen, doublings: float) -> None:
    theta, place = without_shared_walk(some_theta(seen)), 2
    known = condition(theta, seen)
    own = np.arange(len(seen.rows))
    before, share = known.lines(seen.rows, own), float(PRIOR.phi(doublings))
    mean, variance = (float(part[place]) for part in before.scores(share))
    shown = float(before.look(share, known.noise)[place])
    assert shown > 0.0
    for deviate in (-1.0, 1.0, 2.0):
        outcome = mean + deviate * math.sqrt(variance + known.noise)
        after = condition(
            theta,
            seen._replace(
                learner=np.append(seen.learner, place),
                doublings=np.append(seen.doublings, doublings),
                score=np.append(seen.score, outcome),
            ),
        ).lines(seen.rows, own)
        assert abs(after.mean[0][place] - before.mean[0][place]) == pytest.approx(
            abs(deviate) * shown, rel=1e-5
        )
        narrowed = (before.covariance - after.covariance)[0, 0, place]
        assert narrowed == pytest.approx(shown**2, rel=1e-4)


@EVERY
def test_covariances_agree_with_the_slow_transcription(seen: Seen) -> None:
    theta, share = some_theta(seen), 0.4
    own = np.arange(len(seen.rows))
    wanted = [score_of(row, i, share) for i, row in enumerate(seen.rows)]
    _, covariance = Slowly(theta, seen).given(wanted, [*range(len(seen.score))])
    found = condition(theta, seen).covariance(seen.rows, own, share)
    np.testing.assert_allclose(found, covariance, atol=1e-6)


@pytest.mark.parametrize("last", [0.6, math.inf])
def test_rising_curves_have_the_moments_of_draws_that_do_not_fall(last: float) -> None:
    """From the last size on; those of new learners have no negative gain."""
    rng = np.random.default_rng(0)
    mean = np.array([[1.0], [-0.5], [0.2]])
    root = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.3, 0.2, 0.4]])
    lines = Lines(mean, (root @ root.T)[:, :, None], np.array([last]), np.ones(1))
    drawn = mean + root @ rng.standard_normal((3, 1_000_000))
    rise = drawn[1] if math.isinf(last) else last * drawn[1] - drawn[2]
    kept = drawn[:, rise >= 0.0]
    found = lines.rising()
    np.testing.assert_allclose(found.mean[:, 0], kept.mean(axis=1), atol=5e-3)
    np.testing.assert_allclose(found.covariance[:, :, 0], np.cov(kept), atol=5e-3)


@pytest.mark.parametrize("gain", [-40.0, 40.0, 1e4])
def test_rising_curves_are_finite_however_surely_they_fall(gain: float) -> None:
    mean = np.array([[0.0], [gain], [0.0]])
    found = Lines(mean, np.eye(3)[:, :, None], np.full(1, math.inf), np.ones(1)).rising()
    assert found.mean[1, 0] == pytest.approx(max(gain, 0.025), abs=1e-3)
    assert 0.0 < found.covariance[1, 1, 0] <= 1.0


@pytest.mark.parametrize("point", [0.75, 1.0])
def test_the_first_good_learner_does_not_fall_back_to_many_bad_ones(point: float) -> None:
    """Twelve bad ones do not change from few data to N. Then one is good on few data."""
    rows = np.column_stack([np.append(np.linspace(0.0, 0.5, 12), point), np.zeros(13)])
    doublings, score = np.tile([6.0, 0.0], 12), np.full(24, -0.3)
    seen = Seen(
        rows,
        np.zeros(1, bool),
        np.append(np.repeat(range(12), 2), 12),
        np.append(doublings, 5.0),
        np.append(score, 3.5),
    )
    lines = condition(fit(seen), seen).lines(rows, np.arange(13))
    assert lines.mean[0][12] < 0.0  # if curves may fall, it falls back to the others
    assert lines.rising().mean[0][12] > 2.5


@EVERY
def test_surprises_agree_with_leaving_out_each_score(seen: Seen) -> None:
    theta = some_theta(seen)
    slow, found = Slowly(theta, seen), condition(theta, seen).surprises()
    for place, learner in enumerate(seen.learner.tolist()):
        others = [i for i in range(len(seen.score)) if i != place]
        share = float(PRIOR.phi(seen.doublings[place]))
        mean, covariance = slow.given([score_of(seen.rows[learner], learner, share)], others)
        off = seen.score[place] - mean[0]
        sd = math.sqrt(covariance[0, 0] + slow.noise + JITTER)
        assert found[place] == pytest.approx(off / sd, rel=1e-6, abs=1e-8)


@EVERY
def test_neither_the_order_of_scores_nor_that_of_learners_matters(seen: Seen) -> None:
    rng = np.random.default_rng(3)
    of_scores, of_learners = rng.permutation(len(seen.score)), rng.permutation(len(seen.rows))
    shuffled = seen._replace(
        rows=seen.rows[of_learners],
        learner=np.argsort(of_learners)[seen.learner][of_scores],
        doublings=seen.doublings[of_scores],
        score=seen.score[of_scores],
    )
    own = np.arange(len(seen.rows))
    for theta in (some_theta(seen), fit(seen)):
        one = condition(theta, seen).lines(seen.rows, own)
        other = condition(theta, shuffled).lines(shuffled.rows, own)
        for part, again in zip(one, other, strict=True):
            np.testing.assert_allclose(again, part[..., of_learners], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fit(shuffled), fit(seen), atol=2e-2)


@pytest.mark.parametrize("algorithms", [2, 3, 6])
def test_points_of_an_algorithm_are_as_alike_however_many_algorithms_there_are(
    algorithms: int,
) -> None:
    """Five learners of each algorithm, which has three parameters of its own."""
    rng = np.random.default_rng(0)
    rows = np.full((5 * algorithms, 2 + 3 * algorithms), np.nan)
    rows[:, -1] = 0.0
    for place in range(algorithms):
        mine = slice(5 * place, 5 * place + 5)
        rows[mine, 0] = place
        rows[mine, 1 + 3 * place : 4 + 3 * place] = rng.random((5, 3))
    learner = np.arange(len(rows))
    nothing = np.zeros(len(rows))
    is_word = np.arange(rows.shape[1] - 1) == 0
    seen = Seen(rows, is_word, learner, nothing, rng.standard_normal(len(rows)))
    medians, _ = PRIOR.theta(len(is_word), seen.n_varying)
    assert medians[0] == pytest.approx(math.log(PRIOR.median.length * math.sqrt(4.0)))
    # What one learner says of the next of its algorithm does not depend on the others.
    one = Seen(rows[:1], is_word, learner[:1], nothing[:1], np.ones(1))
    told = condition(medians, one).lines(rows[[1, 5]]).mean[0]
    assert told[0] > told[1], "a learner of another algorithm is less alike"
    alone = Seen(rows[:5, [0, 1, 2, 3, -1]], is_word[:4], learner[:5], nothing[:5], np.ones(5))
    assert alone.n_varying == 3.0
