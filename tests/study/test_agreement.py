"""`sample_agreement` beside the truth: rank correlations where all full scores are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from scipy.stats import spearmanr

from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub.core import Cost
from optuna_daub.study import agreement
from optuna_daub.study.agreement import Agreement
from optuna_daub.study.agreement import SizeAgreement
from optuna_daub.study.agreement import sample_agreement
from optuna_daub.study.moves import moves_of
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking
from tests.study.table_study import pair
from tests.study.table_study import scored


SIZES = 250, 500, 1000, 2000, 4000


def study_of(
    curves: Sequence[Sequence[float]],
    *,
    everything: bool = False,
    sign: int = 1,
) -> optuna.Study:
    """Return a finished study of these learners, whose scores on each size are given."""
    base = optuna.samplers.GridSampler({"learner": range(len(curves))}, seed=0)
    direction = "maximize" if sign > 0 else "minimize"
    study = pair(DAUBPruner(sizes=SIZES), base, n_learners=len(curves), direction=direction)

    def objective(trial: optuna.Trial) -> float:
        curve = curves[trial.suggest_int("learner", 0, len(curves) - 1)]
        sizes, seconds = SIZES if everything else None, {"seconds": lambda n: n / 1000}
        score = {n: sign * score for n, score in zip(SIZES, curve, strict=True)}
        return scored(trial, score.__getitem__, sizes, **seconds)

    study.optimize(objective, n_trials=400 if not everything else len(curves))
    return study


def made(n: int = 20, noise: float = 0.005, seed: int = 0) -> list[list[float]]:
    """Return curves that rise as n^-0.35, with gains as far apart as those of real tables."""
    rng = np.random.default_rng(seed)
    level, gain = rng.uniform(0.7, 0.9, n), 0.045 * rng.lognormal(-0.32, 0.8, n)
    return [
        [level[i] - gain[i] * ((s / 4000) ** -0.35 - 1) + rng.normal(0, noise) for s in SIZES]
        for i in range(n)
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_known_in_full_is_spearman_s_correlation(sign: int) -> None:
    curves = made(12, noise=0.05)
    found = sample_agreement(study_of(curves, everything=True, sign=sign))
    assert [row.size for row in found.sizes] == [*SIZES[:-1]]
    for row, scores in zip(found.sizes, np.array(curves).T[:-1], strict=True):
        real = spearmanr(scores, np.array(curves)[:, -1]).statistic
        assert (row.learners, row.known) == (12, 12)
        assert row.lower == row.upper == pytest.approx(real)
        best = int(np.argmax(scores))
        assert row.best_stays == float(best == np.argmax([c[-1] for c in curves]))
        assert row.lost == pytest.approx(max(c[-1] for c in curves) - curves[best][-1])


@pytest.mark.parametrize("sign", [1, -1])
def test_no_score_is_drawn_beyond_the_best_possible_one(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares are at most 1, and losses at least 0."""
    highest: list[float] = []
    of_size = agreement._of_size

    def seen(*given: Any) -> SizeAgreement:
        highest.append(given[-1].max())
        return of_size(*given)

    monkeypatch.setattr(agreement, "_of_size", seen)
    best = 1.0 if sign > 0 else 0.0
    level = np.linspace(0.01, 0.05, 8)
    curves = [[best - gap * (s / 250) ** -0.6 for s in SIZES] for gap in level]
    sample_agreement(study_of(curves, sign=sign))
    assert highest
    assert max(highest) <= best


def test_intervals_hold_the_correlation_of_learners_that_were_not_trained_on_all() -> None:
    held = total = 0
    for seed in range(10):
        curves = np.array(made(seed=seed))
        study = study_of(curves.tolist())
        for row in sample_agreement(study).sizes:
            if row.learners < len(curves):
                continue
            assert row.known < row.learners, "most were suspended"
            real = spearmanr(curves[:, SIZES.index(row.size)], curves[:, -1]).statistic
            held += row.lower <= real <= row.upper
            total += 1
    assert total >= 10
    assert held >= 0.86 * total


def test_an_open_study_is_judged_by_the_forecasts_of_its_own_rule() -> None:
    """They follow the parameters, so learners that were not trained on all are ranked by these."""
    study = pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        skill = trial.suggest_float("skill", 0, 1)
        return scored(
            trial,
            lambda n: 0.5 + skill * 0.2 * np.log2(n / 125) / 5 - skill * 0.03,
            seconds=lambda n: n / 1000,
        )

    study.optimize(objective, n_trials=30)
    policy, pool = policy_of(study), looking(study).pool(policy_of(study), is_at_work=False)
    assert pool.to_come is None
    forecasts = policy.forecasts(pool, SIZES[-1])
    assert forecasts is not None
    rows = sample_agreement(study).sizes
    assert rows
    for row in rows:
        there = [i for i, curve in pool.curves.items() if curve.at(row.size) is not None]
        here = [pool.curves[i].at(row.size).score for i in there]
        mean = [float(forecasts[i].mean) for i in there]
        assert row.lower <= spearmanr(here, mean).statistic + 1e-9
        assert row.rank_correlation == pytest.approx(spearmanr(here, mean).statistic, abs=0.25)


def test_no_size_s_best_learner_is_one_that_failed() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)

        def score(n: int) -> float:
            if x > 0.7 and n > SIZES[0]:
                raise MemoryError
            return x - 10 / n

        return scored(trial, score)

    study = pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0), n_learners=10)
    study.optimize(objective, catch=(MemoryError,))
    well = sum(curve.state != "dropped" for curve in learning_curves(study))
    assert 3 < well < 10
    assert sample_agreement(study).sizes[0].learners == well


def test_costs_are_those_of_all_learners_on_all_the_data() -> None:
    found = sample_agreement(study_of(made(8)))
    assert found.everything.examples == 8 * 4000
    assert found.everything.seconds == pytest.approx(8 * 4.0, rel=0.5)
    assert found.spent.examples < found.everything.examples
    assert found.spent.seconds == pytest.approx(found.spent.examples / 1000)
    assert "would have taken" in str(found)


def way(n: int) -> float:
    """Return how far a size is on the way from the smallest, 0, to the largest, 1."""
    return math.log2(n / 250) / 4


def test_parameters_of_the_best_move_with_more_data() -> None:
    """Deep learners win on all the data, shallow ones on little, or no depth matters."""

    def searched(slope: float) -> Agreement:
        study = pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0))
        rng = np.random.default_rng(0)

        def objective(trial: optuna.Trial) -> float:
            tilt = slope * trial.suggest_float("depth", 0.0, 1.0)
            trial.suggest_float("idle", 0.1, 10.0, log=True)
            return scored(
                trial, lambda n: 0.7 + tilt * (way(n) - 0.5) + rng.normal(0, 1e-3), SIZES
            )

        study.optimize(objective, n_trials=30)
        return sample_agreement(study)

    moved = searched(0.2).moves[0]
    assert moved.parameter == "depth"
    assert moved.distance > 0.5
    assert 0 < moved.lower <= moved.distance <= moved.upper
    assert "depth: the best move from" in str(searched(0.2))
    assert searched(0.2).sizes[0].rank_correlation < -0.8
    assert "no parameter of the best moves by more than chance" in str(searched(0.0))


def test_chance_moves_no_more_parameters_than_stated() -> None:
    """No parameter matters, so a tenth of the intervals may miss 0."""
    rng = np.random.default_rng(0)
    sure = []
    for _ in range(40):
        learners = [{"a": rng.random(), "kind": str(rng.integers(2))} for _ in range(40)]
        ranges: dict[str, Any] = {
            "a": FloatDistribution(0, 1),
            "kind": CategoricalDistribution(("0", "1")),
        }
        scores, full = rng.normal(size=(1, 40)), np.repeat(rng.normal(size=(1, 40)), 400, axis=0)
        found = moves_of(ranges, learners, scores, full, rng)
        assert {move.parameter for move in found} == {"a", "kind"}
        sure += [move.is_sure for move in found if move.category != "1"]
    assert np.mean(sure) < 0.2


def test_the_kind_of_the_best_moves_and_so_do_parameters_that_only_one_kind_has() -> None:
    """Linear models win on little, trees on all the data, deep ones at that."""
    study = pair(DAUBPruner(sizes=SIZES), RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        is_tree = trial.suggest_categorical("kind", ["linear", "tree", "none of them"]) == "tree"
        slope = 0.1 + 0.1 * trial.suggest_float("depth", 0.0, 1.0) if is_tree else 0.0
        level = 0.7 + 0.001 * trial.number / 60
        return scored(trial, lambda n: level + slope * (2 * way(n) - 1), SIZES)

    study.optimize(objective, n_trials=60)
    found = sample_agreement(study)
    tree = next(move for move in found.moves if move.category == "tree")
    assert tree.small < 0.2 < 0.9 < tree.full
    assert tree.distance == pytest.approx(tree.full - tree.small)
    assert f"kind=tree: {tree.small:.0%} of the best, and {tree.full:.0%} with" in str(found)
    depth = next(move for move in found.moves if move.parameter == "depth")
    assert depth.is_sure
    assert depth.small < 0.4 < 0.6 < depth.full


def test_none_is_a_category_as_any_other() -> None:
    rng = np.random.default_rng(0)
    learners = [{"weight": None if i % 2 else "balanced"} for i in range(40)]
    ranges: dict[str, Any] = {"weight": CategoricalDistribution((None, "balanced"))}
    better = np.arange(40.0) % 2  # those without a weight, once they have all the data
    moves = moves_of(ranges, learners, -better[None], np.repeat(better[None], 400, axis=0), rng)
    said = {str(move) for move in moves}
    assert "weight=None: 0% of the best, and 100% with all the data" in said
    assert "weight=balanced: 100% of the best, and 0% with all the data" in said


def test_nothing_is_said_of_fewer_than_three_learners() -> None:
    found = sample_agreement(study_of(made(2)))
    assert found.sizes == ()
    assert found.moves == ()
    assert "no size below all the data has scores of three learners" in str(found)


def test_before_any_score_there_is_nothing() -> None:
    found = sample_agreement(pair(DAUBPruner(sizes=SIZES)))
    assert found.sizes == ()
    assert found.everything.examples == 0


def test_without_times_costs_are_examples() -> None:
    found = sample_agreement(study_of(made(8), everything=True))
    untimed = replace(found, spent=Cost(900), everything=Cost(4_000))
    last = "spent 900 training examples; each learner on all the data would have taken 4,000"
    assert str(untimed).splitlines()[-1] == last


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_a_loss_of_any_scale_is_a_number_of_its_own(scale: float) -> None:
    scores = (np.array(made(8)) * scale).tolist()
    found = sample_agreement(study_of(scores))
    row = str(found).splitlines()[1].split()
    assert float(row[-1]) == pytest.approx(found.sizes[0].lost, rel=1e-3)
    assert row[-1] != "0.0000"
