"""Arguments of public functions are taken for what they mean, or refused by a sentence.

The sentence names the argument, its rule and the value; no input takes long. Whether an argument
is taken may depend on others (`first_sizes` on `sizes`), so even a value in its range may be
refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

import optuna_daub as daub
from optuna_daub import core
from optuna_daub import learners
from optuna_daub import visualization
from optuna_daub.dashboard import DashboardCallback
from optuna_daub.dashboard import update_dashboard
from optuna_daub.study.abc_pruner import HALF_WIDTHS
from tests.arguments import BELOW_INFINITY
from tests.arguments import ODD
from tests.arguments import Case
from tests.arguments import Rule
from tests.arguments import a
from tests.arguments import a_list
from tests.arguments import anything
from tests.arguments import cast
from tests.arguments import check
from tests.arguments import flag
from tests.arguments import none_or
from tests.arguments import one_of
from tests.arguments import real
from tests.arguments import whole
from tests.study.table_study import random_study


values = (
    st.sampled_from(ODD)
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.integers(-5, 5000), max_size=5)
    | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
)


SIZES = (500, 1000, 2000)


def asked() -> optuna.Trial:
    """Return a trial that was told its first size, 500."""
    trial = random_study(daub.DAUBPruner(sizes=SIZES)).ask()
    assert next(daub.training_sizes(trial)) == 500
    return trial


def reported(**arguments: Any) -> None:
    daub.report(**{"trial": asked(), **arguments})


def finished() -> optuna.Study:
    """Return a study of two learners."""
    found = random_study(daub.DAUBPruner(sizes=SIZES))
    for score in (0.5, 0.6):
        trial = found.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
        for n in daub.training_sizes(trial):
            daub.report(trial, n, score, training_score=1.0, seconds=1.0)
            break
        found.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return found


def trained(**arguments: Any) -> Callable[..., object]:
    """Return what makes an estimator of the given arguments and fits it."""
    kind = arguments.pop("kind")
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    return lambda **given: kind(**given).fit(X, X[:, 0] > 0.5)


FINISHED = finished()
ROWS = np.random.default_rng(0).random((60, 2))
LABELS = np.arange(60) % 2

GRID: Mapping[str, Rule] = {
    "min_resource": whole(1, 4000 / 1.5**2),
    "max_resource": none_or(whole(500 * 1.5**2, 10**15)),
    "reduction_factor": real(1, (4000 / 500) ** 0.5, is_open=True),
    "sizes": none_or(a_list(whole(), 3)),
}
DAUB: Mapping[str, Rule] = {
    **GRID,
    "use_training_score": flag,
    "tolerance": real(0),
    "stop": one_of("verified", "first"),
}
RISKS: Mapping[str, Rule] = {
    "epsilon": real(0, 1, is_open=True),
    "delta": real(0, 1, is_open=True),
}
COUNTS = frozenset({"n_estimators", "n_draws", "max_samples_per_round", "n_intervals"})
A_STUDY: Mapping[str, Rule] = {"study": a(optuna.Study)}
A_TOP: Mapping[str, Rule] = {**A_STUDY, "top": whole(0)}

CASES: Mapping[str, Case] = {
    "DAUBPruner": Case(
        daub.DAUBPruner,
        {"max_resource": 4000},
        {
            **GRID,
            "min_resource": none_or(GRID["min_resource"]),
            "max_resource": none_or(whole(3, 10**15)),
            "reduction_factor": real(1, 10**7.5, is_open=True),
            "cost": one_of("seconds", "examples"),
        },
    ),
    "DAUBPruner.paper": Case(daub.DAUBPruner.paper, {"max_resource": 4000}, DAUB),
    "ABCPruner": Case(
        daub.ABCPruner,
        {"min_resource": 500, "max_resource": 4000},
        {
            **RISKS,
            "min_resource": whole(1, 1000),
            "max_resource": whole(2000, 10**15),
            "reduction_factor": GRID["reduction_factor"],
            "scheduler": one_of("gradient_ci", "ucb", "round_robin"),
            "interval": one_of(*HALF_WIDTHS),
            "n_validation": none_or(whole()),
            "refit": flag,
        },
    ),
    "DataAllocationSampler": Case(
        daub.DataAllocationSampler,
        {},
        {
            "base_sampler": none_or(a(optuna.samplers.BaseSampler)),
            "n_learners": none_or(whole(1, 10**9)),
            "seconds": none_or(real(0, math.inf, is_open=True)),
            "stale_after": none_or(real(0, math.inf, is_open=True)),
        },
    ),
    "AllocationPruner": Case(
        daub.AllocationPruner, {}, {"policy": lambda value: hasattr(value, "decide")}
    ),
    "TrainingSizeObjective": Case(
        daub.TrainingSizeObjective,
        {"build": lambda trial: GaussianNB(), "X": ROWS, "y": LABELS},
        {
            "build": callable,
            "X": anything,
            "y": anything,
            "X_valid": anything,
            "y_valid": anything,
            "sample_weight": anything,
            "sample_weight_valid": anything,
            "cv": anything,
            "test_size": lambda value: real(0, 1, is_open=True)(value) or whole()(value),
            "groups": anything,
            "scoring": none_or(lambda value: isinstance(value, str) or callable(value)),
            "weighted_score": flag,
            "fit_params": lambda value: (
                value is None or isinstance(value, dict) or callable(value)
            ),
            "stratify": lambda value: flag(value) or one_of("auto")(value),
            "shuffle": flag,
            "seed": whole(0, 2**32 - 1),
        },
        frozenset(
            {"X", "y", "X_valid", "y_valid", "sample_weight", "sample_weight_valid", "groups"}
        ),
    ),
    "training_sizes": Case(daub.training_sizes, {}, {"trial": a(optuna.Trial)}),
    "report": Case(
        reported,
        {"size": 500, "score": 0.5},
        {
            "trial": a(optuna.Trial),
            "size": whole(500, 500),
            "score": cast,
            "training_score": none_or(cast),
            "n_validation": none_or(whole()),
            "seconds": none_or(real(0, BELOW_INFINITY)),
        },
    ),
    "learning_curves": Case(daub.learning_curves, {}, A_STUDY),
    "allocations": Case(daub.allocations, {}, A_STUDY),
    "best_learner": Case(daub.best_learner, {}, A_STUDY),
    "one_row_per_learner": Case(daub.one_row_per_learner, {}, A_STUDY),
    "plan": Case(
        daub.plan,
        {"study": [500, 1000, 2000, 4000], "n_learners": 3},
        {
            "study": a_list(whole(), 3),
            "n_learners": none_or(whole(1, 10**9)),
            "probe_seconds": none_or(real(1e-9, 1e9)),
        },
    ),
    "what_if": Case(
        daub.what_if,
        {"study": FINISHED, "pruner": daub.DAUBPruner(min_resource=500, max_resource=2000)},
        {**A_STUDY, "pruner": a(daub.AllocationPruner)},
        tables=frozenset({"pruner"}),
    ),
    "plot_learning_curves": Case(
        visualization.plot_learning_curves,
        {"study": FINISHED},
        {**A_TOP, "learners": none_or(a_list(whole(0, 1)))},
    ),
    "plot_allocations": Case(
        visualization.plot_allocations,
        {"study": FINISHED},
        {**A_TOP, "unit": one_of("auto", "seconds", "examples")},
    ),
    "plot_search_history": Case(
        visualization.plot_search_history,
        {"study": FINISHED},
        {**A_STUDY, "unit": one_of("auto", "seconds", "examples")},
    ),
    "plot_upper_bounds": Case(
        visualization.plot_upper_bounds,
        {"study": FINISHED},
        {**A_TOP, "learners": none_or(a_list(whole(0, 1)))},
    ),
    "plot_sample_agreement": Case(
        visualization.plot_sample_agreement, {"study": FINISHED}, A_STUDY
    ),
    "ProgressBar": Case(visualization.ProgressBar, {}, {"every": real(0, BELOW_INFINITY)}),
    "DashboardCallback": Case(DashboardCallback, {}, {"every": real(0, BELOW_INFINITY)}),
    "update_dashboard": Case(update_dashboard, {}, A_STUDY),
    "core.ABC": Case(
        core.ABC,
        {"sizes": SIZES},
        {**RISKS, "sizes": a_list(whole(), 3), "n_validation": none_or(whole()), "refit": flag},
    ),
    "core.DAUB": Case(
        core.DAUB,
        {"sizes": SIZES},
        {
            "sizes": a_list(whole(), 3),
            "tolerance": real(0),
            "stop": one_of("verified", "first"),
            "confidence": real(0, 1, is_open=True),
            "first_sizes": a_list(whole()),
        },
    ),
    "core.ValuePerSecond": Case(
        core.ValuePerSecond,
        {"sizes": SIZES},
        {
            "sizes": a_list(whole(), 3),
            "cost": one_of("seconds", "examples"),
            "price": real(0, BELOW_INFINITY),
        },
    ),
    "core.SuccessiveHalving": Case(
        core.SuccessiveHalving,
        {"sizes": SIZES},
        {"sizes": a_list(whole(), 3), "keep_one_in": whole(2)},
    ),
    "core.geometric_sizes": Case(
        core.geometric_sizes,
        {"min_resource": 500, "max_resource": 4000, "reduction_factor": 1.5},
        {name: GRID[name] for name in ("min_resource", "max_resource", "reduction_factor")},
    ),
    "core.step_for_growth": Case(core.step_for_growth, {}, {"alpha": real(0.01, BELOW_INFINITY)}),
    "learners.sequential_score": Case(
        learners.sequential_score,
        {"epsilon": 0.1, "delta": 0.1},
        {**RISKS, "rule": one_of("massart", "chernoff", "hoeffding")},
    ),
    "learners.BudgetedAdaBoostClassifier": Case(
        trained(kind=learners.BudgetedAdaBoostClassifier),
        {"n_estimators": 2},
        {
            "n_estimators": whole(1, 10**7),
            "budget": none_or(real(0)),
            "trade_off": one_of("none", "greedy", "smoothed"),
            "tau": real(0, 1),
            "affordable_only": flag,
        },
        counts=COUNTS,
    ),
    "learners.AdaBoostRSClassifier": Case(
        trained(kind=learners.AdaBoostRSClassifier),
        {"n_estimators": 2, "n_draws": 5},
        {"n_estimators": whole(1, 10**7), "budget": none_or(real(0)), "n_draws": whole(1, 10**7)},
        counts=COUNTS,
    ),
    "learners.AdaptiveSamplingBoostClassifier": Case(
        trained(kind=learners.AdaptiveSamplingBoostClassifier),
        {"n_estimators": 2, "max_samples_per_round": 50},
        {
            **RISKS,
            "rule": one_of("massart", "chernoff", "hoeffding", "madaboost"),
            "n_estimators": whole(1, 10**7),
            "max_samples_per_round": whole(31, 10**7),
            "n_intervals": whole(2, 10**7),
            "two_sided": flag,
        },
        counts=COUNTS,
    ),
}

ARGUMENTS = [(name, argument) for name, case in CASES.items() for argument in case.rules]


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load plotly, which takes a second."""
    visualization.plot_learning_curves(FINISHED)


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_odd_values(name: str, argument: str) -> None:
    for value in ODD:
        check(name, {argument: value}, CASES[name])


@settings(max_examples=600)
@given(where=st.sampled_from(ARGUMENTS), value=values)
def test_any_value(where: tuple[str, str], value: Any) -> None:
    name, argument = where
    check(name, {argument: value}, CASES[name])


@settings(max_examples=300)
@given(name=st.sampled_from([*CASES]), data=st.data())
def test_any_two_values(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    some = data.draw(st.lists(st.sampled_from([*case.rules]), min_size=1, max_size=2, unique=True))
    check(name, {argument: data.draw(values) for argument in some}, case)
