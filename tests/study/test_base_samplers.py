"""Any Optuna sampler proposes the learners; it sees one row for each and ends nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.samplers import BruteForceSampler
from optuna.samplers import CmaEsSampler
from optuna.samplers import GridSampler
from optuna.samplers import NSGAIIISampler
from optuna.samplers import NSGAIISampler
from optuna.samplers import PartialFixedSampler
from optuna.samplers import QMCSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes
from optuna_daub.study import AllocationPruner
from optuna_daub.study import records
from optuna_daub.study.base_sampler_view import MIN_LEARNERS
from optuna_daub.study.base_sampler_view import BaseSamplerStudy
from optuna_daub.study.base_sampler_view import _telling_size
from optuna_daub.study.worker import worker_of
from tests.study.table_study import SIZES
from tests.study.table_study import Objective
from tests.study.table_study import TableObjective
from tests.study.table_study import as_text
from tests.study.table_study import conditional
from tests.study.table_study import final
from tests.study.table_study import idle
from tests.study.table_study import is_over
from tests.study.table_study import open_study
from tests.study.table_study import pair
from tests.study.table_study import repeats
from tests.study.table_study import runs
from tests.study.table_study import scored
from tests.study.table_study import table_study
from tests.study.table_study import trained


pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore:.*multivariate.*:UserWarning"),
]

N_LEARNERS = 14


def gp() -> BaseSampler:
    pytest.importorskip("torch")
    return optuna.samplers.GPSampler(seed=0, n_startup_trials=4)


SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    "random": lambda: RandomSampler(seed=0),
    "tpe": lambda: TPESampler(seed=0, n_startup_trials=4),
    "tpe constant liar": lambda: TPESampler(seed=0, n_startup_trials=4, constant_liar=True),
    "tpe multivariate": lambda: TPESampler(seed=0, n_startup_trials=4, multivariate=True),
    "tpe group": lambda: TPESampler(seed=0, n_startup_trials=4, multivariate=True, group=True),
    "cma-es": lambda: CmaEsSampler(seed=0, warn_independent_sampling=False),
    "cma-es pruned": lambda: CmaEsSampler(
        seed=0, consider_pruned_trials=True, warn_independent_sampling=False
    ),
    "qmc": lambda: QMCSampler(seed=0, warn_independent_sampling=False),
    "gp": gp,
    "brute force": lambda: BruteForceSampler(seed=0),
    "nsga-ii": lambda: NSGAIISampler(seed=0, population_size=5),
    "partial fixed": lambda: PartialFixedSampler({"kind": "tree"}, RandomSampler(seed=0)),
}


def recorded(name: str) -> Callable[..., Any]:
    """Return a method that writes down what a sampler sees before it is asked."""

    def method(self: Recording, study: optuna.Study, trial: FrozenTrial, *args: Any) -> Any:
        self.views.append((trial.number, study.get_trials(deepcopy=False)))
        return getattr(self.base, name)(study, trial, *args)

    return method


class Recording(BaseSampler):
    """Writes down what another sampler sees whenever it is asked."""

    def __init__(self, base: BaseSampler) -> None:
        self.base = base
        self.views: list[tuple[int, list[FrozenTrial]]] = []

    def reseed_rng(self) -> None:
        self.base.reseed_rng()

    before_trial = recorded("before_trial")
    infer_relative_search_space = recorded("infer_relative_search_space")
    sample_relative = recorded("sample_relative")
    sample_independent = recorded("sample_independent")
    after_trial = recorded("after_trial")


def flat(trial: optuna.Trial, step: float | None = None) -> float:
    x = trial.suggest_float("x", 0, 1, step=step)
    y = trial.suggest_int("y", 0, 6)
    return trained(trial, 0.4 + x / 4 + y / 30)


flat_grid = partial(flat, step=0.05)


def conditional_grid(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("kind", ["tree", "linear"]) == "tree":
        return trained(trial, 0.5 + trial.suggest_int("depth", 1, 20) / 50)
    skill = 0.4 + trial.suggest_float("penalty", 0.05, 1, step=0.05) / 4
    return trained(trial, skill + (0.1 if trial.suggest_categorical("scaled", [0, 1]) else 0))


ON_GRID: dict[Objective, Objective] = {flat: flat_grid, conditional: conditional_grid}
"""The same spaces for BruteForceSampler, which takes no continuous ones."""


def learners_of(study: optuna.Study) -> list[int]:
    return sorted({run.learner for _, run in runs(study) if run.learner is not None})


def proposed(study: optuna.Study) -> list[dict[str, Any]]:
    """Return the parameters of each learner."""
    trials = study.trials
    return [trials[learner].params for learner in learners_of(study)]


def n_points(study: optuna.Study) -> int:
    """Return how many points the learners are."""
    return len({*as_text(proposed(study))})


def assert_ended(study: optuna.Study, n_learners: int) -> None:
    assert len(proposed(study)) == n_learners
    best = final(study)
    assert best.size == SIZES[-1]
    assert study.best_trial.last_step == SIZES[-1]
    assert len(idle(study)) - len(repeats(study)) <= 1


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        *((name, conditional) for name in SAMPLERS),
        *((name, flat) for name in SAMPLERS if name != "partial fixed"),  # which fixes the kind
    ],
)
def test_each_proposes_exactly_n_learners_and_sees_one_row_for_each(
    name: str, objective: Objective
) -> None:
    recording = Recording(SAMPLERS[name]())
    study = table_study(N_LEARNERS, base=recording)
    study.optimize(ON_GRID[objective] if name == "brute force" else objective)
    assert_ended(study, N_LEARNERS)
    learners = {*learners_of(study)}
    # It is asked about newcomers only, each of which is one row, the newest its own.
    asked = learners | repeats(study).keys()  # NSGA-II proposes what it has proposed before
    assert {number for number, _ in recording.views} == asked
    for number, rows in recording.views:
        numbers = [row.number for row in rows]
        assert len(numbers) == len(set(numbers))
        assert numbers[-1] == number
        assert set(numbers[:-1]) <= learners
        assert {row.state for row in rows[:-1]} <= {TrialState.COMPLETE}
        assert all(row.value is not None for row in rows[:-1])
    if name == "brute force":
        assert n_points(study) == N_LEARNERS
    if name == "partial fixed":
        assert {point["kind"] for point in proposed(study)} == {"tree"}


@pytest.mark.parametrize(
    ("name", "objective"),
    [*((name, conditional) for name in SAMPLERS),
     *((name, flat) for name in ("tpe multivariate", "cma-es", "qmc", "gp", "nsga-ii"))],
)  # fmt: skip
def test_each_proposes_in_an_open_pool_too(name: str, objective: Objective) -> None:
    recording = Recording(SAMPLERS[name]())
    study = open_study(recording)
    n_trials = MIN_LEARNERS + 10
    study.optimize(ON_GRID[objective] if name == "brute force" else objective, n_trials=n_trials)
    assert len(study.trials) == n_trials
    assert [trial.number for trial in idle(study)] == [*repeats(study)]
    assert study.best_trial.last_step == SIZES[-1]
    learners = {*learners_of(study)}
    assert {number for number, _ in recording.views} == learners | repeats(study).keys()
    assert n_points(study) == len(learners) > MIN_LEARNERS
    for number, rows in recording.views:
        assert [row.number for row in rows[:-1]] == [i for i in sorted(learners) if i < number]
        assert rows[-1].number == number
        states = [row.state for row in rows]
        assert {*states[:-1]} <= {TrialState.COMPLETE, TrialState.RUNNING}
        assert states.count(TrialState.COMPLETE) >= min(len(rows) - 1, MIN_LEARNERS)


def distance(point: dict[str, float]) -> float:
    """Return how far a point is from the top of the hill."""
    return abs(point["x"] - 0.8) + abs(point["y"] - 0.2)


def hill(trial: optuna.Trial) -> tuple[float, float]:
    """Return the height of a learner on a hill, and its x; the top is at 0.8 and 0.2."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return 0.9 - ((x - 0.8) ** 2 + (y - 0.2) ** 2) / 4, x


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("tpe", "maximize"),
        ("tpe", "minimize"),
        ("cma-es", "minimize"),
        ("gp", "maximize"),
        ("nsga-ii", "maximize"),
    ],
)
def test_samplers_learn_from_learners_that_were_never_trained_on_all_the_data(
    name: str, direction: str
) -> None:
    """The rows are worth learning from: late proposals are nearer to the optimum than early.

    All newcomers come before any learner is trained on all the data.
    """
    sign = 1 if direction == "maximize" else -1

    def near(trial: optuna.Trial) -> float:
        top, _ = hill(trial)
        return scored(trial, score := lambda n: sign * (top - 1 / n), training_score=score)

    n_learners = 120
    study = table_study(n_learners, direction=direction, base=SAMPLERS[name]())
    study.optimize(near, n_trials=n_learners)
    assert not [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
    distances = [distance(point) for point in proposed(study)]
    third = len(distances) // 3
    assert third > 30
    early, late = distances[:third], distances[-third:]
    assert sum(late) < 0.8 * sum(early), (early, late)  # as many at random: 1.0 +- 0.1


def test_the_row_of_a_learner_has_the_scores_of_all_its_runs() -> None:
    """More learners after the end: the base sampler then sees resumed ones."""
    study = table_study(4, base=RandomSampler(seed=1))
    study.optimize(flat)
    recording = Recording(RandomSampler(seed=2))
    study = table_study(6, storage=study._storage, base=recording)
    study.optimize(flat)
    _, rows = recording.views[0]
    newest = {run.learner: trial for trial, run in runs(study)}
    for row in rows[:4]:
        later = newest[row.number]
        assert row.intermediate_values == later.intermediate_values
        assert row.state == TrialState.COMPLETE
        assert row.params == later.params
        if later.state == TrialState.COMPLETE:
            assert row.value == later.value
    assert TrialState.COMPLETE in {later.state for later in newest.values()}


GRID = {"x": [0.0, 0.5, 1.0], "y": [0, 3, 6]}


@pytest.mark.parametrize(
    ("n_learners", "enqueued", "n_failed"),
    [(5, [], 0), (9, [], 0), (30, [], 0), (30, [{"x": 0.5, "y": 3}], 0), (30, [], 1)],
    ids=["a part", "all", "more than all", "a point is enqueued", "the first one fails"],
)
def test_a_grid_is_tried_once_each_and_its_end_is_not_the_studys(
    n_learners: int, enqueued: list[dict[str, float]], n_failed: int
) -> None:
    study = table_study(n_learners, base=GridSampler(GRID, seed=0))
    for point in enqueued:
        study.enqueue_trial(point)
    failures = iter(range(n_failed))

    def objective(trial: optuna.Trial) -> float:
        if next(failures, None) is not None:
            raise RuntimeError
        return flat_grid(trial)

    study.optimize(objective, catch=(RuntimeError,))
    if not n_failed:
        assert_ended(study, min(n_learners, 9))
        assert n_points(study) == min(n_learners, 9)
    if n_learners >= 9:
        assert study.best_params == {"x": 1.0, "y": 6}


@pytest.mark.parametrize("n_trials", [1, 4])
def test_a_grid_is_tried_once_each_over_restarts(n_trials: int) -> None:
    study = table_study(30, base=GridSampler(GRID, seed=0))
    for _ in range(60):
        study.optimize(flat_grid, n_trials=n_trials)
        study = table_study(30, storage=study._storage, base=GridSampler(GRID, seed=0))
        if is_over(study):
            break
    assert n_points(study) == len(learners_of(study)) == 9
    assert study.best_params == {"x": 1.0, "y": 6}


def test_no_point_of_a_grid_is_proposed_twice_though_some_stay_suspended() -> None:
    grid = {"x": [k / 20 for k in range(21)], "y": [0, 3, 6]}
    study = open_study(GridSampler(grid, seed=0))
    study.optimize(flat_grid, n_trials=500)
    assert len(learners_of(study)) == 63 > MIN_LEARNERS
    assert not repeats(study)
    assert len(study.trials) < 500
    assert final(study).params == study.best_params == {"x": 1.0, "y": 6}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "is_conditional"), [(NSGAIISampler, True), (NSGAIIISampler, False)]
)
def test_generations_are_compared_though_their_members_stay_suspended(
    sampler: type[NSGAIISampler], is_conditional: bool
) -> None:
    """Parents that lost their values would end the study: no number can be made of None."""

    def noisy(trial: optuna.Trial) -> float:
        """Small samples tell little, so many learners get more data, and some parents do not."""
        x, y = trial.suggest_float("x", 0, 1), 0
        if not is_conditional or trial.suggest_categorical("has y", [True, False]):
            y = trial.suggest_int("y", 0, 6)
        skill = 0.4 + x / 4 + y / 30
        return scored(trial, lambda n: skill + 0.3 * math.sin(1000 * x + y + n) * n**-0.5)

    recording = Recording(sampler(seed=0, population_size=10))
    study = open_study(recording)
    study.optimize(noisy, n_trials=80)
    assert len(learners_of(study)) > 2 * MIN_LEARNERS
    rows = [row for _, view in recording.views for row in view[:-1]]
    assert {row.state for row in rows} == {TrialState.COMPLETE}
    known = worker_of(study).known
    parents = {row.number for row in rows if records.is_of_generation(row)}
    assert any(known.curves[i].size < _telling_size(known) for i in parents), "none would lose it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("least", "score", "direction"),
    [(0.7, math.nan, "minimize"), (-1.0, None, "maximize")],
)
def test_a_parent_whose_learner_failed_since_is_the_worst(
    least: float, score: float | None, direction: str
) -> None:
    """Those with a larger x fail on more data than two sizes, so no learner may be left."""
    sign = 1 if direction == "maximize" else -1

    def failing(trial: optuna.Trial) -> float:
        top, x = hill(trial)

        def found(n: int) -> float:
            if n <= SIZES[1] or x <= least:
                return sign * (top - n**-0.5)
            if score is None:
                raise RuntimeError
            return score

        return scored(trial, found)

    n_lost = 0
    for seed in (4, 3, 2, 1, 0):  # until a learner with scores is lost: with 4 at once
        study = open_study(NSGAIISampler(seed=seed, population_size=5), direction=direction)
        study.optimize(failing, n_trials=60, catch=(RuntimeError,))
        curves = learning_curves(study)
        lost = {curve.learner for curve in curves if curve.state == "dropped"}
        assert isinstance(study.pruner, AllocationPruner)
        rows = BaseSamplerStudy(study, worker_of(study), study.pruner.policy).get_trials()
        worst = min(sign * row.value for row in rows if row.value is not None)
        for row in rows:
            if row.number in lost and row.intermediate_values:
                n_lost += 1
                assert row.value == sign * worst
        if n_lost:
            break
    assert n_lost


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("base", [BruteForceSampler, partial(GridSampler, {"x": range(6)})])
def test_a_sampler_of_a_list_ends_with_its_space(
    base: Callable[..., BaseSampler], n_jobs: int
) -> None:
    def small(trial: optuna.Trial) -> float:
        x = trial.suggest_int("x", 0, 5)
        time.sleep(0.005 * (n_jobs - 1))
        return trained(trial, 0.5 + x / 20)

    study = table_study(30, base=base(seed=0))
    study.optimize(small, n_jobs=n_jobs)
    found = [point["x"] for point in proposed(study)]
    assert {*found} == {*range(6)}
    assert len(found) <= 6 * n_jobs  # others may ask before the last proposals are known
    assert study.best_params == {"x": 5}


@pytest.mark.parametrize("new", [partial(GridSampler, GRID), BruteForceSampler])
def test_more_learners_after_the_end_are_new_ones(new: Callable[..., BaseSampler]) -> None:
    """An idle trial, which has no parameters, must not confuse the base sampler."""
    study = table_study(4, base=new(seed=0))
    study.optimize(flat_grid)
    study.optimize(flat_grid)
    assert idle(study)
    study = table_study(8, storage=study._storage, base=new(seed=0))
    study.optimize(flat_grid)
    assert n_points(study) == 8


@pytest.mark.parametrize(
    "later", [TPESampler(seed=0), GridSampler({"x": [0.25, 0.75], "y": [1, 2]}, seed=0)]
)
def test_after_a_grid_another_sampler_goes_on(later: BaseSampler) -> None:
    study = open_study(GridSampler(GRID, seed=0))
    study.optimize(flat_grid, n_trials=50)
    assert n_points(study) == 9
    study.sampler = open_study(later).sampler
    study.optimize(flat_grid, n_trials=12)
    assert n_points(study) > 9


@pytest.mark.parametrize("name", ["random", "tpe", "tpe multivariate", "cma-es", "qmc"])
def test_a_base_sampler_proposes_what_it_would_propose_alone(name: str) -> None:
    """In a study whose trials end with the forecasts, it cannot notice the difference."""
    recording = Recording(SAMPLERS[name]())
    study = table_study(N_LEARNERS, base=recording)
    study.optimize(flat)  # all first runs come before any second one
    seen: dict[int, list[FrozenTrial]] = {}
    for number, rows in recording.views:
        seen.setdefault(number, rows)
    alone = optuna.create_study(direction="maximize", sampler=SAMPLERS[name]())

    def same(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        trial.suggest_int("y", 0, 6)
        later = seen.get(trial.number + 1, [])
        return later[trial.number].value or 0.0 if later else 0.0

    alone.optimize(same, n_trials=N_LEARNERS)
    assert [trial.params for trial in study.trials[:N_LEARNERS]] == [
        trial.params for trial in alone.trials
    ]


LEARNING: dict[str, Callable[[int], BaseSampler]] = {
    "tpe": lambda seed: TPESampler(seed=seed),
    "cma-es": lambda seed: CmaEsSampler(seed=seed),
    "nsga-ii": lambda seed: NSGAIISampler(seed=seed, population_size=5),
    "qmc": lambda seed: QMCSampler(seed=seed),
}
MANY = 48
"""Learners that each proposes; the second half of them is looked at."""


def distance_to_the_optimum(sampler: BaseSampler, *, is_open: bool) -> float:
    """Return how far late proposals are from it, of an open pool or on all the data alone."""
    noise = np.random.default_rng(0)
    distances: list[float] = []
    sizes = tuple(500 * 2**k for k in range(7))

    def trained(trial: optuna.Trial) -> float:
        top, _ = hill(trial)
        score = top - sizes[-1] ** -0.5
        run = records.read_run(trial.study._storage.get_trial(trial._trial_id))
        if run is None or run.learner == trial.number:
            distances.append(distance(trial.params))
        for size in training_sizes(trial) if is_open else ():
            score = top - size**-0.5 + 0.2 * size**-0.5 * float(noise.normal())
            report(trial, size, score)
        return score

    def enough(study: optuna.Study, _: FrozenTrial) -> None:
        if len(distances) == MANY:
            study.stop()

    pair = DataAllocationSampler(sampler) if is_open else sampler
    pruner = DAUBPruner(sizes=sizes, cost="examples") if is_open else None
    study = optuna.create_study(direction="maximize", sampler=pair, pruner=pruner)
    study.optimize(trained, callbacks=[enough], n_trials=20 * MANY)
    assert len(distances) == MANY
    return float(np.mean(distances[MANY // 2 :]))


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_in_an_open_pool_samplers_come_as_near_as_on_all_the_data(name: str) -> None:
    """They learn from forecasts what they would learn from scores on all the data.

    Late proposals at random are 0.6 away. QMC, which does not learn, proposes the same points.
    """
    new = LEARNING[name]
    in_pool, alone = (
        np.mean([distance_to_the_optimum(new(seed), is_open=is_open) for seed in range(10)])
        for is_open in (True, False)
    )
    if name == "qmc":
        assert in_pool == pytest.approx(alone)
    else:
        assert alone < 0.55
        assert in_pool < 1.3 * alone + 0.02


@pytest.mark.parametrize("names", ["my", "ym", "yxm"])
@pytest.mark.parametrize("base", [TPESampler, BruteForceSampler])
def test_a_small_space_with_fixed_values_is_searched_to_its_end(
    base: type[BaseSampler], names: str
) -> None:
    """One learner for each free value, none with another fixed one; `x` is only fixed finite."""

    def small(trial: optuna.Trial) -> float:
        for name in names:
            if name == "m":
                trial.suggest_categorical(name, ["a", "b"])
            elif name == "x":
                trial.suggest_float(name, 0, 1, step=0.25 if base is BruteForceSampler else None)
            else:
                trial.suggest_int(name, 1, 12)
        return trained(trial, 0.5 + trial.params["y"] / 30)

    inner = PartialFixedSampler({"m": "a", "x": 1}, base(seed=0))
    study = open_study(PartialFixedSampler({"m": "b"}, inner))
    study.optimize(small, n_trials=60)
    found = proposed(study)
    assert sorted(point["y"] for point in found) == [*range(1, 13)]
    assert {point["m"] for point in found} == {"b"}
    assert {point.get("x", 1.0) for point in found} == {1.0}
    assert len(repeats(study)) < 10, "it ends since all points are known"


def test_a_sampler_that_fixes_parameters_is_to_be_within() -> None:
    """Around the pair it would give a resumed learner other parameters than its own."""
    study = table_study()
    study.optimize(TableObjective(), n_trials=3)
    known = learning_curves(study)
    study.sampler = PartialFixedSampler({"row": 2}, study.sampler)
    with pytest.raises(ValueError, match="must be the base sampler of DataAllocationSampler"):
        study.optimize(TableObjective())
    assert learning_curves(study) == known


@pytest.mark.parametrize("n_learners", [None, 60])
def test_a_sampler_that_has_converged_on_whole_numbers_ends_no_study(
    n_learners: int | None,
) -> None:
    """It repeats its best points; of so many values others are drawn."""

    def objective(trial: optuna.Trial) -> float:
        whole = trial.suggest_int("whole", 1, 500, log=True)
        skill = 0.9 - 0.1 * (math.log(whole / 20) / 3) ** 2
        return scored(trial, lambda n: skill - 0.5 / n)

    base = optuna.samplers.TPESampler(seed=0)
    study = pair(DAUBPruner(sizes=SIZES, cost="examples"), base, n_learners=n_learners)
    study.optimize(objective, n_trials=None if n_learners else 150)
    assert len(study.trials) >= 150 or n_learners
    assert len(learning_curves(study)) >= 60
