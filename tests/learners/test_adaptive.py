from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

from optuna_daub.core.intervals import chernoff
from optuna_daub.learners import AdaptiveSamplingBoostClassifier
from optuna_daub.learners.adaptive import EXPONENTS
from optuna_daub.learners.boosting import Choice
from optuna_daub.learners.example_sampling import PATIENCE
from optuna_daub.learners.example_sampling import SampleSource
from optuna_daub.learners.example_sampling import accepted_rows
from optuna_daub.learners.selection import Hypotheses
from optuna_daub.learners.selection import NeededBalances
from optuna_daub.learners.selection import Selection
from optuna_daub.learners.selection import select_hypothesis
from optuna_daub.learners.stopping import MadaBoostRule
from optuna_daub.learners.stopping import SizeRule
from optuna_daub.learners.stopping import StoppingRule
from optuna_daub.learners.stopping import advantage_size
from optuna_daub.learners.stumps import interval_bins
from tests.learners.data import noisy
from tests.learners.transcriptions import Interval
from tests.learners.transcriptions import boost_by_sampling


def select_on_patterns(
    first: str, second: str, rule: StoppingRule, size: int, most: int = 10**6
) -> Selection:
    """Choose between two hypotheses that repeat patterns of right (1) and wrong (0)."""
    X = 1.0 - np.array([list(map(int, first)), list(map(int, second))]).T  # right: lowest bin
    bins = interval_bins(X, 2, np.zeros(2, dtype=bool))
    hypotheses = Hypotheses(bins, np.array([0, 2]), np.ones(len(X)))
    rows = (np.arange(start, start + size) % len(X) for start in range(0, 200_000, size))
    selection = select_hypothesis(rows, hypotheses, NeededBalances(rule), most)
    assert selection is not None
    return selection


def rules(epsilon: float) -> list[StoppingRule]:
    return [
        SizeRule(advantage_size, epsilon, 0.1),
        SizeRule(advantage_size, epsilon, 0.1, two_sided=False),
        SizeRule(advantage_size, epsilon, 0.1, chernoff.exponent),
        MadaBoostRule(epsilon, 0.1),
    ]


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
@pytest.mark.parametrize(
    ("patterns", "epsilon", "expected"),
    [
        (("1110", "1010"), 0.5, [179, 135, 178, 1179]),
        (("1110", "1010"), 0.2, [687, 527, 687, 5634]),
        (("1110", "1010"), 0.1, [2255, 1731, 2255, 21542]),
        (("110110", "101010"), 0.5, [446, 341, 446, 2957]),
        (("110110", "101010"), 0.1, [5879, 4517, 5876, 52340]),
    ],
)
def test_rounds_on_patterns_end_where_published(
    patterns: tuple[str, str], epsilon: float, expected: list[int], size: int
) -> None:
    for rule, n in zip(rules(epsilon), expected, strict=True):
        if size < n / 10_000:
            continue  # one by one only where that is quick
        selection = select_on_patterns(*patterns, rule, size)
        assert (selection.hypothesis, selection.sign, selection.n_samples) == (0, 1, n)
        assert selection.satisfied


def test_accuracy_on_patterns_is_the_published_one() -> None:
    expected = [0.754190, 0.755556, 0.752809, 0.750636]
    for rule, accuracy in zip(rules(0.5), expected, strict=True):
        selection = select_on_patterns("1110", "1010", rule, 64)
        assert selection.accuracy == pytest.approx(accuracy, abs=5e-7)


def test_a_hypothesis_that_is_mostly_wrong_votes_the_other_way() -> None:
    selection = select_on_patterns("0001", "1010", rules(0.5)[0], 64)
    assert (selection.sign, selection.n_samples) == (-1, 179)


def test_a_round_ends_at_its_largest_size() -> None:
    selection = select_on_patterns("1110", "1010", rules(0.1)[0], 64, 100)
    assert (selection.n_samples, selection.satisfied) == (100, False)
    assert selection.accuracy == 0.75


@settings(max_examples=40)
@given(
    rule=st.sampled_from(rules(0.9) + rules(0.5)),
    seed=st.integers(0, 10**6),
    n_rows=st.integers(2, 300),
    weak=st.booleans(),
)
def test_the_round_ends_at_the_first_draw_at_which_the_rule_holds(
    rule: StoppingRule, seed: int, n_rows: int, weak: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_rows, 3)).astype(float)
    X[0], X[1] = 0.0, 2.0  # no column is constant
    bins = interval_bins(X, 3, np.zeros(3, dtype=bool))
    wrong = rng.random(n_rows) < (0.45 if weak else 0.1)
    hypotheses = Hypotheses(
        bins, np.arange(len(bins.upper)), np.where((X[:, 0] == 0.0) ^ wrong, 1.0, -1.0)
    )
    blocks = [rng.integers(0, n_rows, n) for n in (0, 1, 29, 40, 0, 127, 128, 129, 1500, 3000)]
    selection = select_hypothesis(blocks, hypotheses, NeededBalances(rule), 4000)
    rows = np.concatenate(blocks)[:4000]
    balance = hypotheses.outcomes(rows, np.arange(len(bins.upper))).cumsum(axis=1)
    n = np.arange(1, len(rows) + 1)
    holds = rule(n, 0.5 + np.abs(balance).max(axis=0) / (2.0 * n)) & (n > 30)
    stop = int(holds.argmax()) if holds.any() else len(rows) - 1
    assert selection is not None
    assert (selection.n_samples, selection.satisfied) == (stop + 1, bool(holds.any()))
    assert selection.hypothesis == np.abs(balance[:, stop]).argmax()
    assert selection.sign == (1 if balance[selection.hypothesis, stop] > 0 else -1)


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-6, 0.1, 0.9])
def test_needed_balances_are_the_smallest_that_suffice(epsilon: float, delta: float) -> None:
    rules: list[StoppingRule] = [MadaBoostRule(epsilon, delta)]
    rules += [SizeRule(advantage_size, epsilon, delta, kind) for kind in EXPONENTS.values()]
    for rule in rules:
        needed = NeededBalances(rule)
        some = needed.up_to(50).tolist()
        needs = needed.up_to(400)
        assert needs[:50].tolist() == some
        assert (needs[:30] > np.arange(1, 31)).all()
        for n in range(31, 401):
            balances = np.arange(n + 1)
            holds = rule(np.full(n + 1, n), 0.5 + balances / (2.0 * n))
            assert holds.tolist() == (balances >= needs[n - 1]).tolist()


def holds_by_definition(name: str, epsilon: float, delta: float) -> Any:
    """Return rule (4) or (7) of Chen, Xu (2013) for one n and one P."""

    def massart_rule(n: int, P: float) -> bool:
        error = epsilon * abs(P - 0.5) / (1 + epsilon)
        inside = 0.25 - (abs(P - 0.5) - 2 / 3 * error) ** 2
        return n >= 2 * math.log(2 / delta) / error**2 * inside

    def madaboost_rule(n: int, P: float) -> bool:
        alpha = (1 + 1 / epsilon) * math.sqrt(math.log(n * (n + 1) / delta) / (2 * n))
        return alpha <= P - 0.5

    return {"massart": massart_rule, "madaboost": madaboost_rule}[name]


@settings(max_examples=12)
@given(
    rule=st.sampled_from(["massart", "madaboost"]),
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
)
def test_boosting_decides_like_draws_one_by_one(rule: Any, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (200, 3)).astype(float)
    y = np.where((np.sum(X > 0, axis=1) >= 2) ^ (rng.random(200) < 0.05), 1, -1)
    D0 = rng.integers(1, 4, 200).astype(float) if weighted else np.ones(200)
    places = product(range(3), range(3), (1, -1))
    H = [Interval(j, float(np.nextafter(v, -np.inf)), float(v), s) for j, v, s in places]
    model = AdaptiveSamplingBoostClassifier(
        rule,
        epsilon=0.5,
        n_estimators=4,
        categorical_features=[0, 1, 2],
        max_samples_per_round=1500,
        random_state=seed,
    ).fit(X, y, sample_weight=D0)
    parent = np.random.default_rng(np.random.RandomState(seed).randint(np.iinfo(np.int32).max))
    seeds = [int(parent.integers(2**63)) for _ in range(len(model.estimators_))]
    holds = holds_by_definition(rule, 0.5, 0.1)
    rounds = boost_by_sampling(X.tolist(), y.tolist(), H, holds, seeds, D0.tolist(), 1500)
    assert model.n_samples_per_round_.tolist() == [drawn.n for drawn in rounds]
    ours = [(h.feature, h.upper, h.sign) for h in model.estimators_]
    assert ours == [(drawn.h.j, drawn.h.high, drawn.h.s) for drawn in rounds]
    np.testing.assert_allclose(model.estimator_weights_, [drawn.alpha for drawn in rounds])


@given(largest=st.integers(1, 500), seed=st.integers(0, 1000))
def test_rows_do_not_depend_on_the_size_of_the_blocks(largest: int, seed: int) -> None:
    cumulative = np.cumsum(np.arange(1.0, 11.0))

    def first(largest: int) -> list[int]:
        drawn: list[int] = []
        rng = np.random.default_rng(seed)
        for rows in accepted_rows(rng, cumulative, lambda rows: 1.0 / (1.0 + rows), largest):
            drawn += rows.tolist()
            if len(drawn) >= 100:
                return drawn[:100]
        raise AssertionError("rows ran out")

    assert first(largest) == first(64)


def test_rows_come_from_the_product_of_weight_and_acceptance() -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    accept = np.array([1.0, 0.5, 0.25, 0.0])
    rng = np.random.default_rng(0)
    blocks = accepted_rows(rng, np.cumsum(weights), lambda rows: accept[rows], 4096)
    counts = np.zeros(4)
    while counts.sum() < 20_000:
        counts += np.bincount(next(blocks), minlength=4)
    expected = weights * accept / (weights @ accept) * counts.sum()
    assert counts[3] == 0
    chi_square = ((counts - expected)[:3] ** 2 / expected[:3]).sum()
    assert chi_square < 13.8  # 99.9 % of the chi-square distribution with 2 degrees


def test_drawing_gives_up_when_everything_is_rejected() -> None:
    asked = []

    def reject(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        asked.append(len(rows))
        return np.zeros(len(rows))

    blocks = accepted_rows(np.random.default_rng(0), np.arange(1.0, 6.0), reject, 512)
    assert sum(len(rows) for rows in blocks) == 0
    assert PATIENCE <= sum(asked) < PATIENCE + 512


def test_integer_weights_are_repetitions() -> None:
    X, y = noisy(200, 4, seed=0)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    params: dict[str, Any] = {"epsilon": 0.5, "random_state": 3}
    weighted = AdaptiveSamplingBoostClassifier(**params).fit(X, y, sample_weight=weights)
    X, y = X.repeat(weights, axis=0), y.repeat(weights)
    repeated = AdaptiveSamplingBoostClassifier(**params).fit(X, y)
    assert weighted.estimators_ == repeated.estimators_
    np.testing.assert_array_equal(weighted.estimator_weights_, repeated.estimator_weights_)


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many rows each draw asks for acceptance; filled while a model is fitted."""
    asked: list[int] = []
    acceptance = SampleSource.acceptance

    def counted(self: SampleSource, problem: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        asked.append(len(rows))
        return acceptance(self, problem, rows)

    monkeypatch.setattr(SampleSource, "acceptance", counted)
    return asked


def test_a_round_on_a_million_rows_does_not_touch_all_of_them(candidates: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((1_000_000, 2), dtype=np.float32)
    y = (X[:, 0] > 0.5) ^ (rng.random(len(X)) < 0.1)
    model = AdaptiveSamplingBoostClassifier(n_estimators=5, random_state=0).fit(X, y)
    assert len(model.estimators_) == 5
    assert sum(candidates) < 0.2 * len(X)
    assert model.n_samples_per_round_.sum() < sum(candidates)


@pytest.mark.filterwarnings("ignore:Boosting stopped")  # no stump may be better than guessing
@pytest.mark.parametrize(("rule", "n_classes"), [("massart", 2), ("madaboost", 2), ("massart", 3)])
def test_many_rounds_on_a_small_table_reject_and_count_few_one_by_one(
    candidates: list[int], monkeypatch: pytest.MonkeyPatch, rule: Any, n_classes: int
) -> None:
    X, y = noisy(75, 4, seed=5, n_classes=n_classes)
    counted: list[int] = []
    outcomes = Hypotheses.outcomes

    def counting(self: Hypotheses, rows: Any, some: Any) -> Any:
        counted.append(len(rows) * len(some))
        return outcomes(self, rows, some)

    monkeypatch.setattr(Hypotheses, "outcomes", counting)
    model = AdaptiveSamplingBoostClassifier(rule, n_estimators=60, random_state=0)
    model.fit(X, y)
    sizes = model.n_samples_per_round_
    assert np.size(sizes) >= 20
    assert sizes.sum() > 100_000
    assert sum(candidates) < sizes.sum() / 5 + 2 * PATIENCE * n_classes
    assert sum(counted) < sizes.sum() * model.n_hypotheses_ / 2 / 20


def test_a_table_weighed_as_a_whole_gives_the_best_stump_of_all() -> None:
    X, y = noisy(60, 3, seed=6)
    labels = np.where(y == 1, 1.0, -1.0)
    # Nothing short of 0.9 million draws would satisfy the rule, so each round weighs the table.
    model = AdaptiveSamplingBoostClassifier(
        epsilon=1e-3, n_estimators=5, max_samples_per_round=20_000, n_intervals=2, random_state=0
    ).fit(X, y)
    assert model.n_samples_per_round_.tolist() == [60] * 5
    vote = np.zeros(60)
    every = [*model.estimators_]
    every += [replace(stump, sign=-stump.sign) for stump in every]
    for stump, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        share = np.minimum(1.0, np.exp(-labels * vote))
        share /= share.sum()
        edges = [share @ (labels * other.vote(X)) for other in every]
        edge = share @ (labels * stump.vote(X))
        assert edge == pytest.approx(max(edges))
        assert weight == pytest.approx(np.arctanh(edge))
        vote += weight * stump.vote(X)


def test_draws_from_the_weighed_table_follow_the_weights() -> None:
    X, y = noisy(50, 3, seed=8)
    model = AdaptiveSamplingBoostClassifier(n_estimators=1, random_state=0)
    data = model._checked(X, y, np.random.default_rng(0).random(50) + 0.1)
    bins = interval_bins(data.X, 6, np.zeros(3, dtype=bool))
    source = SampleSource(data, bins, rules(0.5)[0], 10**6, np.random.default_rng(0))
    source._votes[0] = [(3, 1, 2.0), (9, -1, 1.0)]
    expected = source._weights_of_all(0)
    draws = islice(source._draws(0, np.random.default_rng(1), []), 40)
    counts = np.bincount(np.concatenate([*draws]), minlength=50)
    shares = expected / expected.sum()
    error = np.sqrt(shares * (1 - shares) / counts.sum())
    assert np.abs(counts / counts.sum() - shares).max() < 5 * error.max()
    del source._of_all[0]
    np.testing.assert_allclose(data.weights * source.acceptance(0, np.arange(50)), expected)


@pytest.mark.parametrize("cap", [2000, 5000, 9999, 20_000])
def test_a_table_of_no_more_rows_than_the_cap_is_weighed_instead(cap: int) -> None:
    """One stump in thirty is a little better than guessing: so many draws cannot tell which."""
    rng = np.random.default_rng(0)
    X = rng.random((2000, 30))
    y = (X[:, 0] > 0.5) ^ (rng.random(2000) < 0.47)
    model = AdaptiveSamplingBoostClassifier(
        n_estimators=1, max_samples_per_round=cap, random_state=0
    ).fit(X, y)
    assert model.n_samples_per_round_.tolist() == [2000]
    assert not model.capped_rounds_.any()
    (found,) = model.estimators_
    bins, labels = interval_bins(X, 6, np.zeros(30, bool)), np.where(y, 1.0, -1.0)
    edges = [np.mean(labels * bins.stump(i, found.sign).vote(X)) for i in range(30 * 6)]
    assert np.mean(labels * found.vote(X)) == pytest.approx(max(edges))


def test_rounds_that_hit_the_cap_are_flagged() -> None:
    X, y = noisy(500, 3, seed=1)
    model = AdaptiveSamplingBoostClassifier(
        epsilon=0.1, n_estimators=3, max_samples_per_round=40, random_state=0
    ).fit(X, y)
    assert model.n_samples_per_round_.tolist() == [40, 40, 40]
    assert model.capped_rounds_.tolist() == [True, True, True]
    free = AdaptiveSamplingBoostClassifier(epsilon=0.5, n_estimators=3, random_state=0).fit(X, y)
    assert not free.capped_rounds_.any()


def test_rules_need_samples_in_the_order_of_the_paper() -> None:
    X, y = noisy(2000, 4, seed=2)
    settings: list[dict[str, Any]] = [{"two_sided": False}]
    settings += [{"rule": rule} for rule in ("chernoff", "massart", "hoeffding", "madaboost")]
    models = [AdaptiveSamplingBoostClassifier(n_estimators=1, random_state=0) for _ in settings]
    sizes = [
        model.set_params(**params).fit(X, y).n_samples_per_round_[0]
        for model, params in zip(models, settings, strict=True)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2] < sizes[4]


def test_boosting_ends_when_the_vote_is_right_on_nearly_all_weight() -> None:
    X = np.random.default_rng(0).random((5000, 2))
    y = X[:, 0] > 0.5
    model = AdaptiveSamplingBoostClassifier(n_intervals=2, n_estimators=500, random_state=0)
    assert 1 < len(model.fit(X, y).estimators_) < 500
    assert model.score(X, y) > 0.99


def test_a_stump_without_errors_among_its_draws_keeps_a_finite_vote() -> None:
    X = np.arange(200.0)[:, np.newaxis]
    model = AdaptiveSamplingBoostClassifier(n_intervals=2, n_estimators=1, random_state=0)
    model.fit(X, X[:, 0] > 99.5)
    n = model.n_samples_per_round_[0]
    # Half an error among n draws: alpha = 1/2 ln((n - 1/2) / (1/2)).
    assert model.estimator_weights_[0] == pytest.approx(0.5 * math.log(2 * n - 1))


def test_several_classes_are_boosted_against_the_rest() -> None:
    X, y = noisy(3000, 4, seed=3, n_classes=3)
    model = AdaptiveSamplingBoostClassifier(epsilon=0.5, random_state=0).fit(X, y)
    assert model.n_samples_per_round_.shape == (10, 3)
    assert model.estimator_weights_.shape == (10, 3)
    assert model.score(X, y) > 0.6


def test_no_better_hypothesis_ends_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(300, 3, seed=4)
    propose = SampleSource.propose

    def tired(self: SampleSource) -> Any:
        choices = propose(self)
        assert choices is not None
        return [Choice(one.hypothesis, 0.0) for one in choices] if self.sizes else choices

    monkeypatch.setattr(SampleSource, "propose", tired)
    model = AdaptiveSamplingBoostClassifier(epsilon=0.5, random_state=0)
    with pytest.warns(UserWarning, match="stopped after 1 of 10 rounds: no hypothesis"):
        model.fit(X, y)
    assert len(model.estimators_) == len(model.n_samples_per_round_) == 1


def test_categories_can_be_named() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(0, 9, 2000), "x": rng.random(2000)})
    y = frame["code"].isin([4]) ^ (rng.random(2000) < 0.05)
    params: dict[str, Any] = {"epsilon": 0.5, "n_estimators": 1, "random_state": 0}
    by_name = AdaptiveSamplingBoostClassifier(categorical_features=["code"], **params)
    (stump,) = by_name.fit(frame, y).estimators_
    assert (stump.feature, stump.upper, stump.sign) == (0, 4.0, 1)
    by_mask = AdaptiveSamplingBoostClassifier(categorical_features=[True, False], **params)
    assert by_mask.fit(frame, y).estimators_ == [stump]
    for objects in ([True, False], [0], ["code"]):
        by_objects = clone(by_mask).set_params(categorical_features=np.array(objects, object))
        assert by_objects.fit(frame, y).estimators_ == [stump]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, r"`epsilon` must be in \(0, 1\), but got 0\.0"),
        ({"epsilon": 1.0, "rule": "madaboost"}, r"`epsilon` must be in \(0, 1\), but got 1\.0"),
        ({"delta": 1.5}, r"`delta` must be in \(0, 1\), but got 1\.5"),
        ({"rule": "bernstein"}, "`rule` must be one of .*'madaboost'.*, but got 'bernstein'"),
        ({"n_estimators": 0}, "`n_estimators` must be an integer of at least 1"),
        ({"max_samples_per_round": 30}, "`max_samples_per_round` must be an integer of at least"),
        ({"n_intervals": 1}, "`n_intervals` must be an integer of at least 2, but got 1"),
        ({"categorical_features": [7]}, "must name features of X, but got 7"),
        ({"categorical_features": ["age"]}, "must name features of X, but got 'age'"),
        ({"categorical_features": [True]}, r"each of the 3 features, but got shape \(1,\)"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    X, y = noisy(50, 3, seed=0)
    with pytest.raises(ValueError, match=message):
        AdaptiveSamplingBoostClassifier(**params).fit(X, y)


def test_values_at_both_ends_of_all_floats_have_intervals() -> None:
    X = np.array([[-1.7e308], [0.0], [1.7e308]])
    bins = interval_bins(X, 2, np.zeros(1, dtype=bool))
    assert bins.codes[0].tolist()[0] < bins.codes[0].tolist()[2]
