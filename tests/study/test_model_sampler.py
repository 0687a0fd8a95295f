"""The default base sampler: any space that Optuna allows, each point once, the same by seed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import learning_curves
from optuna_daub.study.records import word
from optuna_daub.study.worker import worker_of
from tests.study.table_study import SIZES
from tests.study.table_study import Objective
from tests.study.table_study import alike
from tests.study.table_study import assert_sound
from tests.study.table_study import bits
from tests.study.table_study import conditional
from tests.study.table_study import open_study
from tests.study.table_study import outcome
from tests.study.table_study import pair
from tests.study.table_study import points
from tests.study.table_study import stop_at
from tests.study.table_study import trained


try:
    from optuna.testing import pytest_samplers as testing
except ImportError:  # before Optuna 4.8
    testing = None  # type: ignore[assignment]


def assert_each_once(study: optuna.Study) -> None:
    assert len(set(points(study))) == len(points(study))
    assert_sound(study)


def layers(trial: optuna.Trial) -> float:
    """A number decides which parameters there are."""
    count = trial.suggest_int("layers", 1, 3)
    widths = [trial.suggest_int(f"width {i}", 4, 64, log=True) for i in range(count)]
    return trained(trial, 0.4 + sum(widths) / 500)


def ranges(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -10.2, 10.2, step=0.1)
    y, z = trial.suggest_int("y", 0, 10, step=2), trial.suggest_int("z", 1, 1000, log=True)
    small = trial.suggest_float("small", 1e-7, 1, log=True)
    return trained(trial, 0.4 + x / 100 + y / 100 + z / 10_000 + small / 100)


def mixed(trial: optuna.Trial) -> float:
    choice = trial.suggest_categorical("choice", [None, False, "a", 2.5, 7])
    return trained(trial, 0.5 + trial.suggest_float("x", 0, 1) / 5 + 0.1 * (choice is None))


def widening(trial: optuna.Trial) -> float:
    high = 1 + trial.number
    x, y = trial.suggest_float("x", 0, high), trial.suggest_int("y", -high, high)
    return trained(trial, 0.4 + x / 100 + y / 100)


def moving(trial: optuna.Trial) -> float:
    low, high = (0, 10) if trial.number < 12 else (20, 30)
    return trained(trial, 0.4 + trial.suggest_float("x", low, high) / 100)


def fixed(trial: optuna.Trial) -> float:
    one = trial.suggest_float("one", 1, 1)
    return trained(trial, 0.3 * one + trial.suggest_float("x", 0, 1) / 5)


SPACES = [conditional, layers, ranges, mixed, widening, moving, fixed]


@pytest.mark.parametrize("objective", SPACES)
def test_any_space_is_searched_and_no_point_twice(objective: Objective) -> None:
    study = open_study(seed=0)
    study.optimize(objective, n_trials=18)
    assert len(study.trials) == 18
    assert_each_once(study)
    assert len(points(study)) > 5
    for trial in study.trials:
        for name, drawn in trial.distributions.items():
            if objective not in (widening, moving):  # where a learner keeps what it has
                assert drawn._contains(drawn.to_internal_repr(trial.params[name]))


@pytest.mark.parametrize(
    ("objective", "best"), [(conditional, 0.9), (layers, 0.784), (mixed, 0.8)]
)
def test_it_comes_to_what_is_good(objective: Objective, best: float) -> None:
    """It comes near the best point of the space, which none drawn at random at first is."""
    study = open_study(seed=0)
    study.optimize(objective, n_trials=32)
    skill = [curve.observations[0].score for curve in learning_curves(study)]
    assert max(skill) > best - 0.04 > max(skill[:3])


@pytest.mark.parametrize("n_learners", [None, 6])
def test_what_is_enqueued_comes_first_and_is_one_learner(n_learners: int | None) -> None:
    study = open_study(seed=0, n_learners=n_learners)
    given = [{"x": 0.25}, {"x": 0.25}, {"x": 0.75, "kind": "tree"}, {"ghost": 3}]
    for params in given:
        study.enqueue_trial(params)

    def objective(trial: optuna.Trial) -> float:
        is_tree = trial.suggest_categorical("kind", ["tree"]) == "tree"
        return trained(trial, 0.5 + is_tree * trial.suggest_float("x", 0, 1) / 5)

    study.optimize(objective, n_trials=20)
    assert [trial.params["x"] for trial in study.trials[:3]] == [0.25, 0.25, 0.75]
    assert_each_once(study)


def test_all_points_of_a_small_space_may_be_enqueued() -> None:
    study = open_study(seed=0)
    for on in (True, False, True):
        study.enqueue_trial({"on": on})
    study.enqueue_trial({"ghost": 1})  # for which nothing new is left to propose
    study.optimize(bits, n_trials=20)
    assert len(points(study)) == 2
    assert_sound(study)


@pytest.mark.parametrize("objective", [conditional, alike])
def test_threads_propose_different_points(objective: Objective) -> None:
    study = open_study(seed=0)
    study.optimize(objective, n_trials=16, n_jobs=2)
    assert_each_once(study)


@pytest.mark.parametrize(
    ("seeds", "is_same"), [((3, 3), True), ((3, 4), False), ((None, None), False)]
)
def test_the_same_seed_is_the_same_study(seeds: tuple[int | None, ...], is_same: bool) -> None:
    one, other = (open_study(seed=seed) for seed in seeds)
    for study in (one, other):
        study.optimize(conditional, n_trials=12)
    assert (outcome(one) == outcome(other)) is is_same


@pytest.mark.slow
def test_the_same_seed_is_the_same_study_in_another_process() -> None:
    """Hashes of texts differ between processes, and so does the order of sets of them."""
    program = (
        "from tests.study.table_study import conditional, open_study, outcome\n"
        "study = open_study(seed=3)\n"
        "study.optimize(conditional, n_trials=12)\n"
        "print(outcome(study))"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    study = open_study(seed=3)
    study.optimize(conditional, n_trials=12)
    assert printed == f"{outcome(study)}\n"
    assert "depth" in printed


def test_a_sampler_that_was_pickled_goes_on_as_if_it_was_not() -> None:
    whole, parts = open_study(seed=5), open_study(seed=5)
    for study in (whole, parts):
        study.optimize(conditional, callbacks=[stop_at(7, 14)])
        if study is parts:
            study.sampler = pickle.loads(pickle.dumps(study.sampler))
        study.optimize(conditional, callbacks=[stop_at(7, 14)])
    assert len(whole.trials) == 14
    assert outcome(whole) == outcome(parts)


def test_a_seed_is_not_given_beside_another_sampler() -> None:
    with pytest.raises(ValueError, match=r"`seed` seeds the default base sampler, but"):
        DataAllocationSampler(TPESampler(), seed=3)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, "1", True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ValueError, match="`seed` must be"):
        DataAllocationSampler(seed=seed)


def test_it_proposes_for_the_papers_rule_too() -> None:
    study = pair(DAUBPruner.paper(sizes=SIZES), seed=0, n_learners=8)
    study.optimize(conditional)
    assert len(points(study)) == 8
    assert_each_once(study)


if testing is not None:

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    class TestAlone(testing.BasicSamplerTestCase, testing.MultiObjectiveSamplerTestCase):
        """With Optuna's default pruner it draws at random."""

        @pytest.fixture
        def sampler(self) -> Callable[[], BaseSampler]:
            return lambda: DataAllocationSampler(seed=0)

    class Assigning(DataAllocationSampler):
        """Optuna's cases ask for parameters of trials that no sampler has seen."""

        def sample_relative(
            self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, Any]
        ) -> dict[str, Any]:
            if trial.number not in worker_of(study).assigned:
                self.before_trial(study, trial)
            return super().sample_relative(study, trial, search_space)

    class TestWithThePair(testing.BasicSamplerTestCase, testing.RelativeSamplerTestCase):
        """The objectives of these cases ask for no sizes: all is trained on all the data."""

        @pytest.fixture
        def sampler(self) -> Callable[[], BaseSampler]:
            return lambda: Assigning(seed=0)

        @pytest.fixture(autouse=True)
        def paired(self, monkeypatch: pytest.MonkeyPatch) -> None:
            """Give studies the pair's pruner."""
            created = optuna.create_study

            def create_study(**given: Any) -> optuna.Study:
                return created(**{"pruner": DAUBPruner(sizes=SIZES, cost="examples"), **given})

            monkeypatch.setattr(optuna, "create_study", create_study)
            monkeypatch.setattr(optuna.study, "create_study", create_study)

        def test_partial_fixed_sampling(self, sampler: Callable[[], BaseSampler]) -> None:
            """`PartialFixedSampler` is to be within, not around."""
            with pytest.raises(ValueError, match="PartialFixedSampler"):
                super().test_partial_fixed_sampling(sampler)

        @testing.parametrize_suggest_method("x")
        def test_single_parameter_objective(
            self,
            sampler: Callable[[], BaseSampler],
            suggest_method_x: Callable[[optuna.Trial], float],
        ) -> None:
            """No point is trained twice: a space of few points ends the study earlier."""
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                study = optuna.create_study(sampler=sampler())
            study.optimize(suggest_method_x, n_trials=10)
            done = [t for t in study.trials if t.state == TrialState.COMPLETE]
            seen = {word(t.params["x"], t.distributions["x"]) for t in done}
            assert len(seen) == len(done)
            assert len(done) in (3, 10)
            assert len(done) == 10 or {t.params["x"] for t in done} == {0, 1, 2}
