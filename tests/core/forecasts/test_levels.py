"""What parameters say of newcomers: against conditional t distributions, and made spaces."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from scipy import stats

from optuna_daub.core.forecasts import levels
from optuna_daub.core.forecasts.levels import gaussian_process


def drawn(count: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {"depth": int(rng.integers(1, 12)), "rate": float(10 ** rng.uniform(-3, 0)), "kind": kind}
        for kind in rng.choice(["tree", "line"], count).tolist()
    ]


def score(point: dict[str, Any]) -> float:
    best_rate = -((math.log10(point["rate"]) + 1.5) ** 2)
    return 0.8 + 0.05 * best_rate + 0.005 * point["depth"] - 0.1 * (point["kind"] == "line")


def kernels(points: list[dict[str, Any]], n: int) -> np.ndarray:
    """The two kernels' mean, entry by entry, from columns written down here."""
    depth, rate = (np.array([p[name] for p in points], float) for name in ("depth", "rate"))
    columns = []
    for numbers in (depth, rate):
        low, high = numbers[:n].min(), numbers[:n].max()
        for c in (np.clip(numbers, low, high), np.log(numbers)):
            columns.append((c - c[:n].mean()) / c[:n].std())
    columns += [np.array([p["kind"] == word for p in points], float) for word in ("line", "tree")]
    X = np.array(columns).T
    X -= X[:n].mean(axis=0)
    apart = [[float(((a - b) ** 2).sum()) for b in X] for a in X]
    mean = np.mean([apart[i][j] for i in range(n) for j in range(n) if i != j])
    size = np.mean([float(x @ x) for x in X[:n]])
    return np.array(
        [
            [(float(a @ b) / size + math.exp(-apart[i][j] / mean)) / 2 for j, b in enumerate(X)]
            for i, a in enumerate(X)
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_it_is_a_mixture_of_conditional_t_distributions(seed: int) -> None:
    """Textbook formulas, with inverses instead of Cholesky factors, one share after the other."""
    rng = np.random.default_rng(seed)
    points, n, nu = drawn(15, seed), 12, levels.CERTAINTY
    y = np.array([score(point) for point in points[:n]]) + rng.normal(0, 0.01, n)
    own = rng.uniform(0, 0.03, n) ** 2
    got = gaussian_process(points[:n], y, own, points[n:])
    off, v, K = y - y.mean(), y.var(ddof=1), kernels(points, n)
    likelihoods, means, variances = [], [], []
    for r in levels.SHARES:
        S = r * v * K[:n, :n] + np.diag((1 - r) * v + own)
        likelihoods.append(stats.multivariate_t(shape=S, df=nu).logpdf(off))
        gain = r * v * K[n:, :n] @ np.linalg.inv(S)
        means.append(gain @ off)
        left = np.diag(r * v * K[n:, n:] - gain @ (r * v * K[:n, n:])) + (1 - r) * v
        variances.append(left * (nu + off @ np.linalg.inv(S) @ off) / (nu + n - 2))
    w = np.exp(np.array(likelihoods) - max(likelihoods))
    w /= w.sum()
    mean = w @ np.array(means)
    assert got[0] == pytest.approx(mean + y.mean(), rel=1e-5)
    variance = w @ (np.array(variances) + np.array(means) ** 2) - mean**2
    variance += (v + own.mean()) / n
    assert got[1] == pytest.approx(variance, rel=1e-4)


def test_parameters_that_matter_narrow_the_forecast_and_hold() -> None:
    """In a smooth space 40 learners leave a third of the spread, and nine of ten are inside."""
    points = drawn(240, 7)
    y = np.array([score(point) for point in points])
    mean, variance = gaussian_process(points[:40], y[:40], np.zeros(40), points[40:])
    off, width = y[40:] - mean, np.sqrt(variance)
    assert np.sqrt(np.mean(off**2)) < y[40:].std() / 3
    assert 0.85 <= (np.abs(off) < 1.645 * width).mean() <= 1.0
    assert width.mean() < y[40:].std() / 2


def test_parameters_that_do_not_matter_change_nothing() -> None:
    rng = np.random.default_rng(0)
    points, y = drawn(100, 3), rng.normal(0.8, 0.02, 60)
    mean, variance = gaussian_process(points[:60], y, np.zeros(60), points[60:])
    assert mean == pytest.approx(y.mean(), abs=0.01)
    assert np.sqrt(variance) == pytest.approx(y.std(), rel=0.25)


def test_what_is_uncertain_of_others_is_uncertain_of_the_newcomer() -> None:
    points = drawn(21, 5)
    y = np.array([score(point) for point in points[:20]])
    sure, unsure = (
        gaussian_process(points[:20], y, np.full(20, v), points[20:]) for v in (0, 0.01)
    )
    assert unsure[1] > sure[1]


@settings(deadline=None)
@given(seed=st.integers(0, 99), unit=st.floats(1e-6, 1e6), zero=st.floats(-100, 100))
def test_an_affine_change_of_scores_changes_forecasts_alike(
    seed: int, unit: float, zero: float
) -> None:
    points = drawn(12, seed)
    y, own = np.array([score(point) for point in points[:10]]), np.linspace(0, 1e-3, 10)
    mean, variance = gaussian_process(points[:10], y, own, points[10:])
    other = gaussian_process(points[:10], unit * y + unit * zero, unit**2 * own, points[10:])
    assert other[0] == pytest.approx(unit * mean + unit * zero, rel=1e-6)
    assert other[1] == pytest.approx(unit**2 * variance, rel=1e-4)


@pytest.mark.parametrize("new", [{}, {"depth": 3}, {"other": 1}, {"depth": 1e9, "rate": 1e-300}])
def test_any_point_has_a_forecast(new: dict[str, Any]) -> None:
    """Parameters may be missing, new, or far from all seen."""
    points = drawn(10, 1)
    y = np.array([score(point) for point in points])
    mean, variance = gaussian_process(points, y, np.zeros(10), [new])
    assert np.isfinite([mean, variance]).all()
    assert variance > 0


@pytest.mark.parametrize("n", [3, 4, 6, 10, 30])
def test_nine_of_ten_scores_are_inside_however_few_are_known(n: int) -> None:
    """Of learners whose parameters say nothing; the plain mean and variance hold 63 % of three."""
    rng = np.random.default_rng(n)
    inside = []
    for _ in range(300):
        points = [{"x": float(x)} for x in rng.uniform(size=n + 1)]
        y = rng.normal(0.8, 0.02, n + 1)
        mean, variance = gaussian_process(points[:n], y[:n], np.zeros(n), points[n:])
        inside.append(abs(y[n] - mean[0]) < 1.645 * math.sqrt(variance[0]))
    assert 0.75 <= np.mean(inside) <= 0.97


def test_of_a_point_that_lacks_what_all_have_nothing_is_known() -> None:
    points = drawn(20, 4)
    y = np.array([score(point) for point in points])
    rest = {name: value for name, value in points[0].items() if name != "kind"}
    mean, variance = gaussian_process(points, y, np.zeros(20), [rest, points[0]])
    assert mean[0] == pytest.approx(y.mean())
    assert variance[0] > y.var() > 4 * variance[1]


@pytest.mark.parametrize("other", [{"depth": "auto"}, {"depth": None}, {"depth": 3}, {}])
def test_newcomers_do_not_change_each_other(other: dict[str, Any]) -> None:
    points = drawn(20, 4)
    y = np.array([score(point) for point in points])
    alone = gaussian_process(points[:19], y[:19], np.zeros(19), points[19:])
    beside = gaussian_process(points[:19], y[:19], np.zeros(19), [points[19], other])
    assert [part[0] for part in beside] == pytest.approx([part[0] for part in alone])


def test_far_from_all_seen_a_trend_does_not_go_on() -> None:
    points = [{"rate": rate} for rate in (0.05, 0.08, 0.1, 0.15, 0.2)]
    y = np.array([0.641, 0.649, 0.652, 0.66, 0.666])
    mean, _ = gaussian_process(points, y, np.zeros(5), [{"rate": 1.0}, {"rate": 1e12}])
    assert mean[1] == pytest.approx(mean[0], abs=0.005)
    assert mean[1] < 0.71
