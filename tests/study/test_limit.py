"""No forecast, and no end of an interval, is shown beyond the best score that there can be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import RandomSampler

from optuna_daub import AllocationPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
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
from optuna_daub.dashboard import update_dashboard
from optuna_daub.study.limit import limit_of
from optuna_daub.study.limit import within
from optuna_daub.study.limit import write_limit
from optuna_daub.study.messages import sentence
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization import plot_upper_bounds


SIZES = (100, 200, 400, 800, 1600)


def study_of(
    score: Callable[[float, int], float],
    direction: str = "maximize",
    n_learners: int | None = 8,
    pruner: AllocationPruner | None = None,
) -> optuna.Study:
    """Return a study whose learners have these scores, by x in [0, 1] and size."""

    def objective(trial: optuna.Trial) -> float:
        x, seen = trial.suggest_float("x", 0, 1), 0.0
        for n in training_sizes(trial):
            seen = score(x, n)
            report(trial, n, seen, training_score=seen)
        return seen

    study = optuna.create_study(
        direction=direction,
        sampler=DataAllocationSampler(RandomSampler(seed=0), n_learners=n_learners),
        pruner=pruner or DAUBPruner(sizes=SIZES, cost="examples"),
    )
    study.optimize(objective, n_trials=30)
    return study


def accuracy(x: float, n: int) -> float:
    """Return a steep curve near the end of the scale: forecasts would go beyond it."""
    return 0.999 - (1 + x) * 0.4 * (100 / n) ** 0.4


def error(x: float, n: int) -> float:
    return 1 - accuracy(x, n)


KINDS = {"maximize": accuracy, "minimize": error}
RULES = {
    "default": lambda: DAUBPruner(sizes=SIZES, cost="examples"),
    "paper": lambda: DAUBPruner.paper(sizes=SIZES, use_training_score=False),
}


@pytest.mark.parametrize("direction", KINDS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_learners", [8, None])
def test_shares_are_never_shown_beyond_the_scale(
    direction: str, rule: str, n_learners: int | None
) -> None:
    if rule == "paper" and n_learners is None:
        return  # which needs a number
    study = study_of(KINDS[direction], direction, n_learners, RULES[rule]())
    shown: list[float | None] = [trial.value for trial in one_row_per_learner(study).trials]
    best = best_learner(study)
    assert best is not None
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


def test_a_limit_that_a_scorer_tells_goes_before_what_the_scores_show() -> None:
    study = study_of(lambda x, n: 10 * accuracy(x, n))
    assert limit_of(study) == math.inf
    write_limit(study, 10.0)
    assert (limit_of(study), within(study, 10.5), within(study, 9.0)) == (10.0, 10.0, 9.0)
    write_limit(study, 5.0)  # which scores have passed
    assert (limit_of(study), within(study, 10.5)) == (math.inf, 10.5)


@pytest.mark.parametrize(
    ("scores", "direction", "limit"),
    [
        ((0.5, 0.9), "maximize", 1.0),  # accuracies
        ((0.5, 1.1), "maximize", math.inf),  # amounts that happen to be small
        ((-0.5, 0.9), "maximize", math.inf),  # R2: known to the scorer only
        ((-3.0, -0.2), "maximize", 0.0),  # neg_log_loss
        ((3.0, 0.2), "minimize", 0.0),  # losses
        ((3.0, -0.2), "minimize", -math.inf),
        ((0.5, math.inf), "maximize", 1.0),  # a failure tells nothing
        ((), "maximize", math.inf),
        ((), "minimize", -math.inf),
    ],
)
def test_the_best_possible_score_is_known_from_the_scores(
    scores: tuple[float, ...], direction: str, limit: float
) -> None:
    study = optuna.create_study(
        direction=direction,
        sampler=DataAllocationSampler(RandomSampler(seed=0), n_learners=2),
        pruner=DAUBPruner(sizes=SIZES),
    )
    for score in scores:
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        report(trial, next(iter(training_sizes(trial))), score)
    assert limit_of(study) == limit


@pytest.mark.parametrize(
    ("sign", "scores", "limit", "said"),
    [
        (1, (1.05, 1.10), 1.0, "1.000 <= 1.000"),
        (-1, (0.05, 0.10), 0.0, "0.000 >= 0.000"),
        (1, (0.90, 1.10), 1.0, "0.900 < 1.000"),
        (1, (0.90, 1.10), math.inf, "0.900 < 1.100"),
    ],
)
def test_scores_that_the_limit_makes_equal_are_not_said_to_differ(
    sign: int, scores: tuple[float, float], limit: float, said: str
) -> None:
    assert sentence(Reason("{0} {less} {1}", scores), sign, limit) == said


def test_sentences_speak_in_the_direction_of_the_user() -> None:
    reason = Reason("pays {up} to {0}, {less} {1}, the {largest}", (1.05, 0.25))
    assert sentence(reason, 1, 1.0) == "pays up to 1.000, < 0.250, the largest"
    reason = Reason("pays {up} to {0}, {less} {1}, the {largest}", (0.05, -0.25))
    assert sentence(reason, -1, 0.0) == "pays down to 0.000, > 0.250, the smallest"


def test_a_study_that_minimizes_pays_down_to_something() -> None:
    study = study_of(error, "minimize")
    texts = " ".join(trial.user_attrs["daub:reason"] for trial in study.trials)
    assert "pays down to 0." in texts
    assert " up to " not in texts
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
