"""Predicted costs: closed forms, scikit-learn's ridge regression as an oracle, relations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut
from sklearn.model_selection import cross_val_predict

from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core.costs import DISBELIEF
from optuna_daub.core.costs import ENOUGH
from optuna_daub.core.costs import FIXED
from optuna_daub.core.costs import PRIOR_ERROR
from optuna_daub.core.costs import RIDGE
from optuna_daub.core.costs import STEEPEST
from optuna_daub.core.costs import by_parameters
from optuna_daub.core.costs import expected_seconds
from optuna_daub.core.costs import in_examples
from optuna_daub.core.costs import in_seconds
from optuna_daub.core.parameters import LEAST_SPREAD


def timed(*seconds: dict[int, float]) -> Curves:
    """A learner for each of these, with its seconds by size."""
    return Curves(
        LearningCurve(i, tuple(Observation(n, 0.5, seconds=s) for n, s in own.items()))
        for i, own in enumerate(seconds)
    )


def drawn(seed: int, count: int) -> list[dict[str, Any]]:
    """Points of a space with a branch: numbers, words, and a parameter that is not always there.

    Every third learner is a line, which has no trees.
    """
    rng = np.random.default_rng(seed)
    return [
        {"kind": "line", "C": float(10 ** rng.uniform(-3, 3)), "bias": float(rng.normal())}
        if i % 3 == 2
        else {"kind": "forest", "trees": int(10 ** rng.uniform(0, 3)), "bias": float(rng.normal())}
        for i in range(count)
    ]


def log_cost(point: dict[str, Any]) -> float:
    """A forest takes as long as it has trees, a line always as long."""
    return math.log(0.01 * point["trees"]) if point["kind"] == "forest" else math.log(0.5)


@given(
    exponent=st.floats(0.2, 1.9),
    speeds=st.lists(st.floats(0.1, 5.0), min_size=2, max_size=12),
)
def test_seconds_that_are_known_at_a_size_are_predicted_there(
    exponent: float, speeds: list[float]
) -> None:
    curves = timed(*({n: s * n**exponent for n in (100, 1600)} for s in speeds))
    costs = in_seconds(curves)
    assert costs.at(1600) == pytest.approx([s * 1600**exponent for s in speeds])
    # How they grow from there is drawn towards 1, with a fixed part no further than STEEPEST.
    growth = np.log(costs.at(25600) / costs.at(1600)) / math.log(16)
    assert np.all(growth >= min(exponent, 1.0) - 1e-9)
    assert np.all(growth <= max(exponent, 1.0 if costs.fixed == 0.0 else STEEPEST) + 1e-9)


# With more, seconds hardly grow between the sizes seen: the prior is believed then.
@pytest.mark.parametrize("multiple", [f for f in FIXED.tolist() if f <= 8.0])
def test_what_every_training_takes_besides_is_found(multiple: float) -> None:
    """Seconds in proportion to f + n, and f among the choices: all sizes are predicted exactly."""
    fixed, speeds = multiple * 100, np.random.default_rng(0).uniform(0.1, 5.0, 50)
    seen = timed(*({n: s * (fixed + n) for n in (100, 400, 1600)} for s in speeds), {100: 1.0})
    costs = in_seconds(seen)
    assert costs.fixed == pytest.approx(fixed)
    assert costs.growth == pytest.approx(1.0)
    expected = [*(s * (fixed + 51200) for s in speeds), (fixed + 51200) / (fixed + 100)]
    assert costs.at(51200) == pytest.approx(expected)


def test_a_few_learners_do_not_show_what_every_training_takes() -> None:
    """The prior is that seconds grow in proportion to size."""
    flat = {100: 1.0, 400: 1.1}
    found = [in_seconds(timed(*[flat] * n)).fixed for n in (1, 2, 5, 20, 100)]
    assert found == sorted(found)
    assert found[0] < 100 < 500 < found[-1]
    assert in_seconds(timed({100: 1.0})).fixed == 0.0


def test_how_seconds_grow_before_a_second_probe_is_learnt_from_parameters() -> None:
    """Lines take as long on all sizes, trees in proportion to them."""

    def learner(i: int, kind: str, *sizes: int) -> LearningCurve:
        seconds = {n: n**1.0 if kind == "tree" else n**0.1 for n in sizes}
        seen = (Observation(n, 0.8, seconds=s) for n, s in seconds.items())
        return LearningCurve(i, tuple(seen), parameters={"kind": kind})

    known = [learner(i, "tree" if i % 2 else "line", 100, 1600) for i in range(20)]
    new = [learner(20, "line", 100), learner(21, "tree", 100), learner(22, "line")]
    costs = in_seconds(Curves([*known, *new, learner(23, "tree")]))
    growth = costs.growth
    assert growth[20] < growth[:20].mean() < growth[21]
    # RIDGE draws both towards the mean of all.
    assert growth[20:22] == pytest.approx(growth[:2], abs=0.15)
    # Without any probe too; all are taken to cost the same where others were trained last.
    assert growth[22:] == pytest.approx(growth[20:22])
    assert costs.at(1600)[22] == pytest.approx(costs.at(1600)[23])
    assert costs.at(100)[22] > costs.at(100)[23]
    bare = [replace(curve, parameters={}) for curve in (*known, *new)]
    alike = in_seconds(Curves(bare)).growth
    assert alike[20] == alike[21] == alike[22]


@pytest.mark.parametrize("exponents", [(1.0, 1.0, 1.0), (0.6, 1.0, 1.4)])
def test_how_exponents_differ_is_learnt(exponents: tuple[float, ...]) -> None:
    """A weighted mean of squares, 0.17 squared among them; here the pool's exponent is 1."""
    curves = Curves(
        LearningCurve(i, tuple(Observation(n, 0.8, seconds=n**a) for n in (100, 1000)))
        for i, a in enumerate(exponents)
    )
    folds = math.log(10)
    square = 2.0 * 0.17**2 + sum(folds * (a - 1.0) ** 2 for a in exponents)
    assert in_seconds(curves).error == pytest.approx(math.sqrt(square / (2.0 + 3 * folds)))
    assert in_seconds(timed({9: 1.0})).error == pytest.approx(0.17)


def test_where_no_time_is_known_sizes_are_costs() -> None:
    curves = Curves([LearningCurve(0, (Observation(100, 0.5),))])
    assert in_seconds(curves).at(700) == in_examples(curves).at(700) == pytest.approx([700])


@pytest.mark.parametrize("count", [2, ENOUGH - 1, ENOUGH, ENOUGH + 4])
def test_a_slow_call_is_disbelieved_once_enough_are_known(count: int) -> None:
    others = [{100: 1.0}] * (count - 1)
    (slow, *_) = in_seconds(timed({100: 1000.0}, *others)).at(100)
    assert slow == pytest.approx(DISBELIEF if count >= ENOUGH else 1000.0)


@pytest.mark.parametrize(("n_dear", "believed"), [(1, 10.0), (2, 10.0), (4, 200.0), (8, 200.0)])
def test_where_more_than_a_fifth_of_the_learners_are_dear_they_are_believed(
    n_dear: int, believed: float
) -> None:
    seconds = [1.0] * (12 - n_dear) + [200.0] * n_dear
    costs = in_seconds(timed(*({100: s} for s in seconds))).at(100)
    assert costs == pytest.approx([1.0] * (12 - n_dear) + [believed] * n_dear)


def test_of_two_learners_the_quicker_is_typical() -> None:
    """A third, never trained, is predicted to cost as much."""
    curves = timed({100: 1.0}, {100: 40.0}, {})
    assert in_seconds(curves).at(100)[2] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [2, 5, 30])
def test_numbers_alone_are_predicted_as_ridge_regression_does(seed: int, count: int) -> None:
    """Scikit-learn's, on standardized numbers and logarithms; errors by leaving one out."""
    rng = np.random.default_rng(seed)
    numbers = rng.lognormal(0.0, 1.0, (count, 3))
    y = rng.normal(0.0, 1.0, count)
    new = np.median(numbers, axis=0)  # a line is not drawn beyond the numbers seen
    both = np.c_[numbers, np.log(numbers)]
    middle, spread = both.mean(axis=0), both.std(axis=0)
    spread[3:] = np.maximum(spread[3:], LEAST_SPREAD)
    X, x = (both - middle) / spread, (np.r_[new, np.log(new)] - middle) / spread
    ridge = Ridge(alpha=RIDGE).fit(X, y)
    rest = y - ridge.predict(X)
    left_out = y - cross_val_predict(Ridge(alpha=RIDGE), X, y, cv=LeaveOneOut())
    guess = by_parameters(
        [dict(zip("abc", row, strict=True)) for row in numbers.tolist()],
        y,
        dict(zip("abc", new.tolist(), strict=True)),
    )
    median = np.quantile(rest, 0.5, method="lower")
    assert guess.log_cost == pytest.approx(ridge.predict([x])[0] + median)
    errors = (left_out @ left_out + PRIOR_ERROR**2) / (count + 1)
    assert guess.error == pytest.approx(math.sqrt(errors))


@pytest.mark.parametrize("seed", range(5))
def test_a_branch_is_told_from_another(seed: int) -> None:
    """Half an order of magnitude is what 30 learners must do; costs span three."""
    points = drawn(seed, 90)
    y = np.array([log_cost(point) for point in points])
    off = [by_parameters(points[:30], y[:30], p).log_cost - log_cost(p) for p in points[30:]]
    assert np.sqrt(np.mean(np.square(off))) < 0.5 * math.log(10.0)
    assert np.sqrt(np.mean(np.square(off))) < 0.5 * y.std()


@given(st.integers(0, 99), st.floats(0.01, 100.0), st.randoms(use_true_random=False))
def test_neither_the_order_of_learners_nor_the_unit_of_time_matters(
    seed: int, unit: float, random: Any
) -> None:
    points = drawn(seed, 12)
    *known, new = points
    y = np.array([log_cost(point) for point in known])
    guess = by_parameters(known, y, new)
    order = random.sample(range(11), 11)
    other = by_parameters([known[i] for i in order], y[order] + math.log(unit), new)
    assert other.log_cost == pytest.approx(guess.log_cost + math.log(unit))
    assert other.error == pytest.approx(guess.error)


@pytest.mark.parametrize(
    "points",
    [
        [{}, {}, {}],
        [{"depth": None}, {"depth": 3}, {"depth": None}],
        [{"x": 0.0}, {"x": -1e300}, {"x": 1e300}],
        [{"x": 0.0}, {"x": -1e100}, {"x": 10**400}],
        [{"x": math.inf}, {"x": math.nan}, {"x": True}],
        [{"x": (1, 2)}, {"x": "1"}, {"y": 1}],
        [{"x": 5}, {"x": 5}, {"x": 5}],
        [{"x": 0.1 + 0.2}, {"x": 0.3}, {"x": 0.3}],
    ],
)
@pytest.mark.parametrize(
    "new", [{}, {"x": 7}, {"x": 1e99}, {"x": 1e-99}, {"x": "word"}, {"depth": None, "z": 1.0}]
)
def test_any_parameters_give_a_finite_guess(points: list[dict[str, Any]], new: Any) -> None:
    guess = by_parameters(points, np.log([1.0, 2.0, 4.0]), new)
    assert abs(guess.log_cost) < 20.0
    assert 0.0 < guess.error < 10.0 or new.get("x") in (1e99, 1e-99)


@pytest.mark.parametrize("trees", [1_000, 10_000])
def test_of_a_learner_far_from_all_others_little_is_believed(trees: int) -> None:
    """It may be begun when the base sampler has looked at small ones only for long."""
    known = [{"trees": 10 + i % 11} for i in range(60)]
    y = np.log([point["trees"] / 1000 for point in known])
    far, near = (by_parameters(known, y, {"trees": n}) for n in (trees, 20))
    assert far.log_cost > near.log_cost
    assert math.exp(far.log_cost + 1.28 * far.error) > trees / 1000
    assert math.exp(near.log_cost + 1.28 * near.error) < 0.03, "inside, no more than was missed"


def test_one_in_ten_learners_of_unknown_parameters_is_dearer_than_is_allowed_for() -> None:
    rng = np.random.default_rng(0)
    trees = np.exp(rng.uniform(0.0, 7.0, 500))
    known = [{"trees": t} for t in trees[:100].tolist()]
    guess = by_parameters(known, np.log(trees[:100]), {})
    above = np.log(trees[100:]) > guess.log_cost + 1.28 * guess.error
    assert 0.02 < above.mean() < 0.18
    assert by_parameters(known, np.log(trees[:100]), {"trees": 9.0}).error < guess.error / 3.0


def test_a_branch_that_a_learner_is_not_in_leaves_nothing_unknown() -> None:
    points = drawn(0, 30)
    y = np.array([log_cost(point) for point in points])
    line = next(point for point in points if point["kind"] == "line")
    forest = next(point for point in points if point["kind"] == "forest")
    errors = [by_parameters(points, y, p).error for p in (line, forest, {"kind": "forest"})]
    assert errors[0] == pytest.approx(errors[1])
    assert errors[2] > errors[0], "its bias is not known"


def test_a_word_that_is_not_known_is_the_mean_of_all() -> None:
    known = [{"kind": "cheap"}] * 90 + [{"kind": "dear"}] * 10
    y = np.log([1.0] * 90 + [1000.0] * 10)
    seconds = math.exp(by_parameters(known, y, {}).log_cost)
    assert 1.0 <= seconds < 3.0  # the geometric mean is 2


def test_a_zero_is_taken_for_the_smallest_number_seen() -> None:
    known = [{"n": n} for n in range(1, 30)]
    y = np.log(np.arange(1.0, 30.0))
    zero, one = (by_parameters(known, y, {"n": n}).log_cost for n in (0, 1))
    assert zero == pytest.approx(one)


def test_more_words_than_learners_are_predicted_as_ridge_regression_does() -> None:
    """As many numbers as learners are solved for; scikit-learn solves for the words."""
    rng = np.random.default_rng(0)
    points = [{f"x{i}": f"word {rng.integers(9)}" for i in range(20)} for _ in range(30)]
    *known, new = points
    y = rng.normal(size=len(known))
    names = sorted({item for point in known for item in point.items()})
    X = np.array([[point[n] == word for n, word in names] for point in points], float)
    assert X.shape[1] > 4 * len(known)
    ridge = Ridge(alpha=RIDGE).fit(X[:-1], y)
    median = np.quantile(y - ridge.predict(X[:-1]), 0.5, method="lower")
    guess = by_parameters(known, y, new)
    assert guess.log_cost == pytest.approx(ridge.predict(X[-1:])[0] + median)


def test_without_parameters_a_learner_costs_what_the_median_does() -> None:
    y = np.log([1.0, 2.0, 4.0, 100.0])
    assert by_parameters([{}] * 4, y, {}).log_cost == pytest.approx(math.log(2.0))


def test_of_one_learner_its_own_cost_is_all_there_is_to_say() -> None:
    guess = by_parameters([{"x": 5.0}], np.array([3.0]), {"x": 5.0})
    assert guess.log_cost == pytest.approx(3.0)
    assert guess.error == pytest.approx(PRIOR_ERROR / math.sqrt(2.0))


@pytest.mark.parametrize("n_dear", [1, 3])
def test_a_probe_is_believed_to_be_dear_where_its_parameters_say_so(n_dear: int) -> None:
    """Among cheap learners a slow call is not believed, a forest of many trees is."""

    def forest(learner: int, trees: int, seconds: float) -> LearningCurve:
        seen = (Observation(1000, 0.8, seconds=seconds),)
        return LearningCurve(learner, seen, parameters={"trees": trees})

    cheap = [forest(i, 1 + i, 0.01 * (1 + i)) for i in range(20)]
    dear = [forest(20 + k, 10_000 + k, 100.0) for k in range(n_dear)]
    slow = [forest(20 + k, 10, 100.0) for k in range(n_dear)]
    assert in_seconds(Curves([*cheap, *dear])).at(1000)[20:] == pytest.approx(100.0)
    assert max(in_seconds(Curves([*cheap, *slow])).at(1000)[20:]) < 3.0


# -- the mean of what training may take: totals --------------------------------------------------

SIZES = tuple(1000 * 2**step for step in range(5))


def made(seed: int, count: int, known_sizes: int) -> tuple[Curves, float]:
    """Return learners timed at the smallest sizes, and what all take at the largest."""
    rng = np.random.default_rng(seed)
    known, total = [], 0.0
    for _ in range(count):
        # What grows fastest takes most of the seconds.
        first, alpha = rng.lognormal(0.0, 1.0), rng.normal(1.0, 0.3)
        seconds = [first * (n / SIZES[0]) ** alpha for n in SIZES]
        known.append(dict(zip(SIZES[:known_sizes], seconds, strict=False)))
        total += seconds[-1]
    return timed(*known), total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known_sizes", [1, 2, 3])
def test_the_projected_total_is_that_of_the_whole_training(seed: int, known_sizes: int) -> None:
    curves, truth = made(seed, 3000, known_sizes)
    projected = sum(expected_seconds(curves, SIZES[-1]).values())
    assert projected == pytest.approx(truth, rel=0.2)
    medians = float(in_seconds(curves).at(SIZES[-1]).sum())
    assert abs(projected - truth) < abs(medians - truth)


def test_what_was_timed_is_not_projected() -> None:
    curves, _ = made(0, 20, len(SIZES))
    for place, size in enumerate(SIZES):
        assert expected_seconds(curves, size) == {
            i: curve.observations[place].seconds for i, curve in curves.items()
        }


def test_between_its_sizes_a_learner_is_projected_from_the_nearest() -> None:
    curves = timed({1000: 1.0, 16_000: 500.0})
    seconds = [expected_seconds(curves, n)[0] for n in (500, 1500, 12_000, 20_000)]
    assert seconds == sorted(seconds)
    assert seconds[1] < 2.0
    assert seconds[2] > 300.0


def test_a_learner_without_times_counts_as_the_mean_of_the_others() -> None:
    untimed, untrained = LearningCurve(3, (Observation(1000, 0.5),)), LearningCurve(4)
    curves, _ = made(0, 3, 2)
    seconds = expected_seconds(curves.put(untimed).put(untrained), 16_000)
    assert seconds[3] == pytest.approx(sum(seconds[i] for i in range(3)) / 3)
    assert 4 not in seconds, "it was never trained"
    assert expected_seconds(Curves([untimed]), 16_000) == {}
    assert expected_seconds(Curves(), 16_000) == {}


def test_its_own_times_outweigh_what_is_expected() -> None:
    flat, usual, steep = (
        expected_seconds(timed({n: n**alpha for n in SIZES}), 64_000)[0]
        for alpha in (0.2, 1.0, 2.0)
    )
    assert flat < usual < steep
    assert 32_000**0.2 < flat < 4 * 64_000**0.2
