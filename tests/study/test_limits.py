"""No forecast, and no end of an interval, is shown beyond the scores that there can be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import RandomSampler

from optuna_daub import AllocationPruner
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub import one_row_per_learner
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub import what_if
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import Reason
from optuna_daub.core.limits import UNLIMITED
from optuna_daub.core.limits import Limits
from optuna_daub.dashboard import update_dashboard
from optuna_daub.study.limits import limits_of
from optuna_daub.study.limits import write_limits
from optuna_daub.study.stored_policy import policy_of
from optuna_daub.study.worker import looking
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization import plot_upper_bounds
from tests.study.table_study import answer
from tests.study.table_study import by_formula
from tests.study.table_study import pair


SIZES = (100, 200, 400, 800, 1600)


def study_of(
    score: Callable[[float, int], float],
    direction: str = "maximize",
    n_learners: int | None = 8,
    pruner: AllocationPruner | None = None,
) -> optuna.Study:
    """Return a study whose learners have these scores, by x in [0, 1] and size."""
    rule = pruner or DAUBPruner(sizes=SIZES, cost="examples")
    study = pair(rule, RandomSampler(seed=0), direction=direction, n_learners=n_learners)
    study.optimize(by_formula(score, training_score=score), n_trials=30)
    return study


def accuracy(x: float, n: int) -> float:
    """Return a steep curve near the end of the scale: forecasts would go beyond it."""
    return 0.999 - (1 + x) * 0.4 * (100 / n) ** 0.4


def error(x: float, n: int) -> float:
    return 1 - accuracy(x, n)


def weak(x: float, n: int) -> float:
    """Return shares near 0 whose gains differ: intervals would go below it."""
    return 0.03 * x * (n / 1600) ** (0.2 + x) * (1 - 0.9 * (x > 0.5) * (n == 200))


KINDS = {"maximize": accuracy, "minimize": error, "near 0": weak}
RULES = {
    "default": lambda: DAUBPruner(sizes=SIZES, cost="examples"),
    "paper": lambda: DAUBPruner.paper(sizes=SIZES, use_training_score=False),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rule", "n_learners"), [("default", 8), ("default", None), ("paper", 8)])
def test_shares_are_never_shown_beyond_the_scale(
    kind: str, rule: str, n_learners: int | None
) -> None:
    direction = "minimize" if kind == "minimize" else "maximize"
    study = study_of(KINDS[kind], direction, n_learners, RULES[rule]())
    shown: list[float | None] = [trial.value for trial in one_row_per_learner(study).trials]
    best = answer(study)
    texts = [best.reason, *(t.user_attrs["daub:reason"] for t in study.trials)]
    shown += [best.score, best.bound, best.rival_bound]
    for curve in learning_curves(study):
        shown += [curve.bound, curve.worst]
        texts.append(curve.reason)
    shown += [trial.user_attrs.get("daub:bound") for trial in study.trials]
    shown.append(what_if(study, DAUBPruner.paper(sizes=SIZES)).replayed.score)
    for figure in (plot_learning_curves(study), plot_upper_bounds(study)):
        for trace in figure.data:
            shown += [float(y) for y in (trace.y if trace.y is not None else ()) if y is not None]
    finite = [value for value in shown if value is not None and not math.isnan(value)]
    assert len(finite) > 20
    assert max(finite) <= 1.0
    assert min(finite) >= 0.0
    said = [float(n) for text in texts for n in re.findall(r"(?:to|bound|is) (-?\d\.\d+)", text)]
    assert all(0 <= number <= 1 for number in said), texts


def test_the_forecasts_themselves_go_beyond_it() -> None:
    """Or the test above could not fail."""
    pool = Pool(Curves([LearningCurve(0, (Observation(100, accuracy(0.5, 100)),))]), to_come=None)
    assert RULES["default"]().policy.interval(pool, 0).upper > 1.0
    study = study_of(weak, n_learners=None)
    pool = looking(study).pool(policy_of(study), is_at_work=False)
    assert min(policy_of(study).interval(pool, each).lower for each in pool.curves) < 0.0


def test_a_limit_that_a_scorer_tells_goes_before_what_the_scores_show() -> None:
    study = study_of(lambda x, n: 10 * accuracy(x, n))
    assert limits_of(study) == (-math.inf, math.inf)
    write_limits(study, Limits(0.0, 10.0))
    assert [limits_of(study).cut(score) for score in (-0.1, 9.0, 10.5)] == [0.0, 9.0, 10.0]
    write_limits(study, Limits(0.0, 5.0))  # which scores have passed
    assert limits_of(study) == (0.0, math.inf)
    write_limits(study, Limits(8.0, 10.0))
    assert limits_of(study) == (-math.inf, 10.0)


@pytest.mark.parametrize(
    ("scores", "direction", "limits"),
    [
        ((0.5, 0.9), "maximize", (0.0, 1.0)),  # accuracies
        ((0.5, 1.1), "maximize", UNLIMITED),  # amounts that happen to be small
        ((-0.5, 0.9), "maximize", UNLIMITED),  # R2: known to the scorer only
        ((-3.0, -0.2), "maximize", UNLIMITED),  # R2 on few rows, or a loss turned round
        ((3.0, 0.2), "minimize", (0.0, math.inf)),  # losses
        ((0.9, 0.2), "minimize", (0.0, math.inf)),  # shares lost, or small amounts
        ((3.0, -0.2), "minimize", UNLIMITED),
        ((0.5, math.inf), "maximize", (0.0, 1.0)),  # a failure tells nothing
        ((), "maximize", UNLIMITED),
        ((), "minimize", UNLIMITED),
    ],
)
def test_the_limits_are_known_from_the_scores(
    scores: tuple[float, ...], direction: str, limits: tuple[float, float]
) -> None:
    rule, base = DAUBPruner(sizes=SIZES), RandomSampler(seed=0)
    study = pair(rule, base, direction=direction, n_learners=2)
    for score in scores:
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        report(trial, next(iter(training_sizes(trial))), score)
    assert limits_of(study) == limits


@pytest.mark.parametrize(
    ("sign", "scores", "limits", "said"),
    [
        (1, (1.05, 1.10), (0.0, 1.0), "1.000 <= 1.000"),
        (1, (-0.3, -0.1), (0.0, 1.0), "0.000 <= 0.000"),
        (1, (-0.3, 0.10), (0.0, 1.0), "0.000 < 0.100"),
        (-1, (0.05, 0.10), (-math.inf, 0.0), "0.000 >= 0.000"),
        (-1, (-1.2, -1.1), (-1.0, 0.0), "1.000 >= 1.000"),
        (1, (0.90, 1.10), (0.0, 1.0), "0.900 < 1.000"),
        (1, (0.90, 1.10), UNLIMITED, "0.900 < 1.100"),
    ],
)
def test_scores_that_a_limit_makes_equal_are_not_said_to_differ(
    sign: int, scores: tuple[float, float], limits: tuple[float, float], said: str
) -> None:
    assert Reason("{0} {less} {1}", scores).told(sign, Limits(*limits)) == said


def test_sentences_speak_in_the_direction_of_the_user() -> None:
    reason = Reason("pays {below} {0}, {less} {1}, the {largest}", (1.05, 0.25))
    assert reason.told(1, Limits(0.0, 1.0)) == "pays below 1.000, < 0.250, the largest"
    reason = Reason("pays {below} {0}, {less} {1}, the {largest}", (0.05, -0.25))
    assert reason.told(-1, Limits(highest=0.0)) == "pays above 0.000, > 0.250, the smallest"


def test_a_study_that_minimizes_speaks_of_scores_above() -> None:
    study = study_of(error, "minimize")
    texts = " ".join(trial.user_attrs["daub:reason"] for trial in study.trials)
    assert "pay only if the best score were above 0." in texts
    assert " below " not in texts
    assert "larg" not in texts


def test_notes_show_no_share_beyond_the_scale() -> None:
    study = study_of(accuracy, n_learners=None)
    update_dashboard(study)
    notes = [
        v
        for n, v in study._storage.get_study_system_attrs(study._study_id).items()
        if isinstance(v, str) and "note" in n
    ]
    assert notes
    assert not re.findall(r"\b(?:1\.\d*[1-9]\d*|[2-9]\.\d{4})\b", " ".join(notes))


@pytest.mark.parametrize("damaged", [5, [], [0.0], ["0", "1"], {"lowest": 0.0}])
def test_damaged_limits_are_refused_with_a_sentence(damaged: object) -> None:
    study = optuna.create_study()
    study._storage.set_study_system_attr(study._study_id, "daub:limits", damaged)
    with pytest.raises(ValueError, match=f"must be two numbers, .*{re.escape(repr(damaged))}. It"):
        limits_of(study)
