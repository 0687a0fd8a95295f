from __future__ import annotations

import math
import pickle
from collections.abc import Iterable
from collections.abc import Iterator
from itertools import cycle
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.intervals import chernoff
from optuna_daub.core.intervals import hoeffding
from optuna_daub.core.intervals import massart
from optuna_daub.learners.stopping import MadaBoostRule
from optuna_daub.learners.stopping import SampleSize
from optuna_daub.learners.stopping import SizeRule
from optuna_daub.learners.stopping import StoppingRule
from optuna_daub.learners.stopping import absolute_error_size
from optuna_daub.learners.stopping import advantage_size
from optuna_daub.learners.stopping import first_stop
from optuna_daub.learners.stopping import madaboost_advantage
from optuna_daub.learners.stopping import relative_error_size


means = st.floats(0.0, 1.0)
risks = st.floats(0.001, 0.5)


def one_by_one(outcomes: Iterable[str], rule: StoppingRule) -> int:
    """Return the first n at which the rule holds, asking it with one number at a time."""
    right = 0
    for n, outcome in enumerate(outcomes, start=1):
        right += int(outcome)
        if rule(np.array(n), np.array(right / n)):
            return n
    raise AssertionError("the stream ended")


def stream(pattern: str) -> Iterator[str]:
    return islice(cycle(pattern), 10**5)


@pytest.mark.parametrize(
    ("mean", "absolute", "relative"),
    [
        (0.5, 147.123741, 722.304337),
        (0.6, 149.120895, 495.294403),
        (0.75, 129.648636, 268.284468),
        (0.9, 83.214785, 116.944512),
        (1.0, 37.280224, 41.274534),
        (0.0, 37.280224, np.inf),  # no share of nothing is ever known
    ],
)
def test_errors_have_the_published_sizes(mean: float, absolute: float, relative: float) -> None:
    assert absolute_error_size(mean, 0.1, 0.1) == pytest.approx(absolute, abs=5e-7)
    assert relative_error_size(mean, 0.1, 0.1) == pytest.approx(relative, abs=5e-7)


@pytest.mark.parametrize(
    ("mean", "epsilon", "by_massart", "by_chernoff"),
    [
        (0.55, 0.1, 71856.965750, 71856.620879),
        (0.55, 0.2, 21398.848489, 21398.504749),
        (0.55, 0.5, 5359.697897, 5359.356434),
        (0.75, 0.1, 2260.113571, 2259.395756),
        (0.75, 0.2, 692.347014, 691.672858),
        (0.75, 0.5, 183.072528, 182.480132),
        (0.9, 0.1, 493.005996, 490.848583),
        (0.9, 0.2, 166.596000, 164.760232),
        (0.9, 0.5, 51.634774, 50.282019),
    ],
)
def test_advantage_has_the_published_sizes(
    mean: float, epsilon: float, by_massart: float, by_chernoff: float
) -> None:
    assert advantage_size(mean, epsilon, 0.1) == pytest.approx(by_massart, abs=5e-7)
    size = advantage_size(mean, epsilon, 0.1, exponent=chernoff.exponent)
    assert size == pytest.approx(by_chernoff, abs=5e-6)


@given(mean=means, epsilon=st.floats(0.001, 0.3), delta=risks)
def test_absolute_error_has_a_closed_form(mean: float, epsilon: float, delta: float) -> None:
    inside = 0.25 - (abs(mean - 0.5) - 2.0 / 3.0 * epsilon) ** 2  # formulas.md 3.2, rule (1)
    expected = 2.0 * math.log(2.0 / delta) / epsilon**2 * inside
    assert absolute_error_size(mean, epsilon, delta) == pytest.approx(expected, rel=1e-9)


@given(mean=st.floats(0.001, 1.0), epsilon=st.floats(0.001, 0.99), delta=risks)
def test_relative_error_has_a_closed_form(mean: float, epsilon: float, delta: float) -> None:
    bracket = 3.0 * (1.0 + epsilon) - (3.0 + epsilon) * mean  # formulas.md 3.3, rule (2)
    scale = 2.0 * (3.0 + epsilon) * math.log(2.0 / delta) / (9.0 * epsilon**2 * mean)
    assert relative_error_size(mean, epsilon, delta) == pytest.approx(scale * bracket, rel=1e-8)


@given(mean=means, epsilon=st.floats(0.01, 0.3), delta=risks)
def test_absolute_error_by_hoeffding_does_not_depend_on_the_mean(
    mean: float, epsilon: float, delta: float
) -> None:
    size = absolute_error_size(mean, epsilon, delta, exponent=hoeffding.exponent)
    assert size == pytest.approx(math.log(2.0 / delta) / (2.0 * epsilon**2), rel=1e-9)


@given(mean=means, n=st.integers(50, 10**6), delta=risks)
def test_size_inverts_the_half_width(mean: float, n: int, delta: float) -> None:
    width = float(massart.half_width(n, mean, tail=delta / 2))
    assert absolute_error_size(mean, width, delta) == pytest.approx(n, rel=1e-6)


@given(
    size=st.sampled_from([absolute_error_size, relative_error_size, advantage_size]),
    mean=st.floats(0.01, 0.99).filter(lambda mean: abs(mean - 0.5) > 0.01),
    epsilon=st.floats(0.01, 0.3),
    delta=risks,
)
def test_massart_needs_no_fewer_than_chernoff_and_no_more_than_hoeffding(
    size: SampleSize, mean: float, epsilon: float, delta: float
) -> None:
    few, middle, many = (
        float(size(mean, epsilon, delta, exponent=inequality.exponent))
        for inequality in (chernoff, massart, hoeffding)
    )
    assert few <= middle * (1.0 + 1e-9)
    assert middle <= many * (1.0 + 1e-9)


@given(mean=st.floats(0.51, 1.0), epsilon=st.floats(0.01, 0.5), delta=risks)
def test_one_sided_risk_is_half_of_two_sided(mean: float, epsilon: float, delta: float) -> None:
    one_sided = advantage_size(mean, epsilon, delta / 2, two_sided=False)
    assert one_sided == pytest.approx(float(advantage_size(mean, epsilon, delta)))


def test_nothing_is_ever_enough_to_know_no_advantage() -> None:
    assert advantage_size(0.5, 0.1, 0.1) == np.inf
    assert absolute_error_size(0.7, 0.0, 0.1, exponent=chernoff.exponent) == np.inf


@pytest.mark.parametrize(
    ("pattern", "absolute", "relative"),
    [("10", 148, 721), ("1110", 130, 267), ("0001", 130, 2088), ("1", 38, 42)],
)
def test_streams_stop_where_published(pattern: str, absolute: int, relative: int) -> None:
    for size, expected in ((absolute_error_size, absolute), (relative_error_size, relative)):
        rule = SizeRule(size, epsilon=0.1, delta=0.1)
        assert one_by_one(stream(pattern), rule) == expected


def test_madaboost_has_the_published_advantage() -> None:
    assert madaboost_advantage(100, 0.5, 0.1) == pytest.approx(0.720090, abs=5e-7)
    assert madaboost_advantage(100, 0.5, 0.1 / 146) == pytest.approx(0.861854, abs=5e-7)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.1, 21547), (0.2, 5639), (0.3, 2723), (0.4, 1682), (0.5, 1186)]
)
def test_madaboost_stops_where_published(epsilon: float, expected: int) -> None:
    n = np.arange(1, 30_000)
    stop = first_stop(MadaBoostRule(epsilon, 0.1), n, np.full(n.shape, 0.75))
    assert stop is not None
    assert n[stop] == expected


def test_madaboost_survives_the_square_of_large_sizes() -> None:
    # 46,341 * 46,342 does not fit into 32 bits; Table III of the paper shows the mark of it.
    sizes = np.array([46_340, 46_341, 10**7], dtype=np.int32)
    assert np.all(np.diff(madaboost_advantage(sizes, 0.1, 0.1)) < 0.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.4, 0.5])
def test_rules_stop_in_the_order_of_the_paper(epsilon: float) -> None:
    outcomes = np.random.default_rng(1).random(100_000) < 0.75
    n = np.arange(1, len(outcomes) + 1)
    mean = np.cumsum(outcomes) / n
    rules = (
        SizeRule(advantage_size, epsilon, 0.1, two_sided=False),
        SizeRule(advantage_size, epsilon, 0.1, chernoff.exponent),
        SizeRule(advantage_size, epsilon, 0.1),
        MadaBoostRule(epsilon, 0.1),
    )
    stops = [first_stop(rule, n[30:], mean[30:]) for rule in rules]
    assert None not in stops
    one_sided, by_chernoff, by_massart, madaboost = map(int, filter(None, stops))
    assert one_sided < by_chernoff <= by_massart < madaboost


@pytest.mark.parametrize(
    ("probability", "error", "expected_n"),
    [(0.5, 0.0176, 149.2), (0.1, 0.0188, 80.5), (0.02, 0.0188, 46.1)],
)
def test_exact_error_probability_of_the_absolute_rule(
    probability: float, error: float, expected_n: float
) -> None:
    """Follow the distribution of the number of right outcomes until all of it has stopped."""
    rule = SizeRule(absolute_error_size, epsilon=0.1, delta=0.1)
    going = np.array([1.0])  # probability of k right outcomes, not stopped
    failed = stopped = mean_n = 0.0
    for n in range(1, 200):
        going = np.convolve(going, [1.0 - probability, probability])
        mean = np.arange(n + 1) / n
        stops = rule(np.full(n + 1, n), mean)
        stopped += going[stops].sum()
        mean_n += n * going[stops].sum()
        failed += going[stops & (np.abs(mean - probability) >= 0.1 - 1e-12)].sum()
        going = np.where(stops, 0.0, going)
    assert stopped == pytest.approx(1.0)
    assert mean_n == pytest.approx(expected_n, abs=0.1)
    assert failed <= error + 5e-5
    if probability == 0.5:
        assert failed == pytest.approx(error, abs=5e-5)


@given(
    outcomes=st.lists(st.booleans(), min_size=1, max_size=300),
    epsilon=st.floats(0.1, 0.9),
    delta=st.floats(0.05, 0.9),
)
def test_many_sizes_at_once_decide_like_one_at_a_time(
    outcomes: list[bool], epsilon: float, delta: float
) -> None:
    n = np.arange(1, len(outcomes) + 1)
    mean = np.cumsum(outcomes) / n
    for rule in (
        SizeRule(absolute_error_size, epsilon, delta),
        SizeRule(advantage_size, epsilon, delta, chernoff.exponent),
        MadaBoostRule(epsilon, delta),
    ):
        singly = [i for i in range(len(n)) if rule(n[i], mean[i])]
        assert first_stop(rule, n, mean) == (singly[0] if singly else None)


def test_rules_are_values() -> None:
    rule = SizeRule(advantage_size, 0.1, 0.1, chernoff.exponent)
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert len({rule, SizeRule(advantage_size, 0.1, 0.1, chernoff.exponent)}) == 1


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_epsilon_and_delta_must_be_in_the_unit_interval(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"`epsilon` must be in \(0, 1\), but got"):
        SizeRule(absolute_error_size, epsilon=wrong, delta=0.1)
    with pytest.raises(ValueError, match=r"`delta` must be in \(0, 1\), but got"):
        MadaBoostRule(epsilon=0.1, delta=wrong)
