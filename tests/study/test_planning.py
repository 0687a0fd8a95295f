"""Plans beside what a study does, and replays beside what other studies have done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optuna
import pytest

import optuna_daub
from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import plan
from optuna_daub import report
from optuna_daub import sample_agreement
from optuna_daub import training_sizes
from optuna_daub import what_if
from optuna_daub.core import Cost
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.limits import UNLIMITED
from optuna_daub.study import AllocationPruner
from optuna_daub.study.what_if import _completed
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking
from tests.study.table_study import answer
from tests.study.table_study import pair
from tests.study.table_study import random_study
from tests.study.table_study import scored
from tests.visualization import studies
from tests.visualization.studies import RIVALS
from tests.visualization.studies import SIZES
from tests.visualization.studies import Table


PRUNERS: dict[str, Callable[[], AllocationPruner]] = {
    "default": lambda: DAUBPruner(max_resource=20_000),
    "paper": lambda: DAUBPruner.paper(max_resource=20_000),
    "abc": lambda: ABCPruner(max_resource=20_000, n_validation=5_000),
}


@pytest.fixture(params=PRUNERS)
def pruner(request: pytest.FixtureRequest) -> AllocationPruner:
    return PRUNERS[request.param]()


class TestPlan:
    def test_sizes_and_seconds(self) -> None:
        found = plan([1000, 2000, 8000], probe_seconds=3.0)
        assert [(row.size, row.share, row.seconds) for row in found.sizes] == [
            (1000, 0.125, 3.0), (2000, 0.25, 6.0), (8000, 1.0, 24.0),
        ]  # fmt: skip
        assert found.last_training == Cost(8000, 24.0)
        assert (found.everything, found.least, found.n_learners) == (None, None, None)

    def test_times_that_the_study_has_measured(self) -> None:
        found = plan(studies.finished())
        assert found.is_timed
        assert [row.seconds for row in found.sizes] == pytest.approx([1, 2, 4, 8], rel=0.05)
        assert found.n_learners == 3

    def test_without_times_nothing_is_said_of_seconds(self) -> None:
        found = plan(random_study(DAUBPruner(sizes=SIZES), n_learners=5))
        assert not found.is_timed
        assert {row.seconds for row in found.sizes} == {None}
        assert "seconds" not in str(found)

    def test_the_first_probe_is_the_one_that_the_study_makes(
        self, pruner: AllocationPruner
    ) -> None:
        study = random_study(pruner, n_learners=4)
        found = plan(study)
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        assert next(iter(optuna_daub.training_sizes(trial))) == found.first_size
        assert found.first_probes.examples == 4 * found.first_size

    def test_costs_lie_between_what_must_be_and_everything(self, pruner: AllocationPruner) -> None:
        found = plan(random_study(pruner, n_learners=30), probe_seconds=0.1)
        assert found.least is not None
        assert found.most is not None
        assert found.everything == Cost(600_000, pytest.approx(0.1 / found.sizes[0].share * 30))
        needed = found.first_probes.examples + found.last_training.examples
        assert needed <= found.least.examples <= found.most.examples
        assert found.least.seconds == pytest.approx(
            found.least.examples * found.sizes[-1].seconds / 20_000
        )

    def test_one_learner_of_the_paper_climbs_the_whole_grid(self) -> None:
        found = plan(random_study(DAUBPruner.paper(sizes=SIZES), n_learners=1))
        assert found.least == found.most == Cost(sum(SIZES), 0.0)

    def test_a_large_pool_costs_in_proportion(self) -> None:
        small, large = (plan([1000, 2000, 8000], n_learners=n) for n in (200, 2000))
        assert small.most is not None
        assert large.most is not None
        assert large.most.examples == 10 * small.most.examples

    def test_how_many_newcomers_fit_beside_the_reserve(self) -> None:
        study = random_study(DAUBPruner(sizes=(1000, 2000, 8000)), seconds=100.0)
        found = plan(study, probe_seconds=3.0)
        assert (found.seconds, found.newcomers) == (100.0, math.floor((100 - 24) / 3))
        assert "enough for 25 first trainings and the last training" in str(found)
        assert plan(study).newcomers is None, "nothing was timed"
        too_slow = plan(study, probe_seconds=30.0)
        assert too_slow.newcomers == 0
        assert "100 s are too short for a training on all the data" in str(too_slow)
        assert f"100 s are enough for {found.newcomers} first trainings" in str(found)

    def test_the_table(self) -> None:
        lines = str(plan([1000, 2000, 8000], n_learners=3, probe_seconds=3.0)).splitlines()
        assert lines[0].split() == ["training", "examples", "of", "all", "seconds"]
        assert [line.split() for line in lines[1:4]] == [
            ["1,000", "12.5%", "3.00"], ["2,000", "25.0%", "6.00"], ["8,000", "100.0%", "24.00"],
        ]  # fmt: skip
        assert "3,000 examples         9.0 seconds" in lines[5]
        assert "8,000 examples        24.0 seconds" in lines[6]
        assert "24,000 examples        72.0 seconds" in lines[9]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_learners": 0}, "`n_learners` must be at least 1, but got 0"),
            ({"n_learners": 2.5}, "`n_learners` must be a whole number, but got 2.5"),
            ({"probe_seconds": 0.0}, "`probe_seconds` must be from 1e-09 to 1e\\+09"),
            ({"probe_seconds": math.inf}, "`probe_seconds` must be from 1e-09 to 1e\\+09"),
        ],
    )
    def test_arguments_are_checked(self, arguments: dict[str, float], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            plan([1000, 2000, 8000], **arguments)  # type: ignore[arg-type]

    def test_a_rule_for_closed_pools_needs_their_size(self) -> None:
        with pytest.raises(ValueError, match="DAUB compares a known number of learners"):
            plan(random_study(DAUBPruner.paper(sizes=SIZES)))

    def test_a_foreign_sampler_is_named(self) -> None:
        study = optuna.create_study(
            sampler=optuna.samplers.RandomSampler(), pruner=DAUBPruner(sizes=SIZES)
        )
        with pytest.raises(ValueError, match="its sampler is RandomSampler"):
            plan(study)
        assert plan(study, n_learners=3).n_learners == 3


class TestWhatIf:
    @pytest.mark.parametrize(
        "make",
        [studies.finished, studies.minimized, studies.abc, studies.one_learner, studies.infinite],
    )
    def test_the_same_rule_has_the_same_answer_at_the_same_cost(
        self, make: Callable[[], optuna.Study]
    ) -> None:
        study = make()
        assert isinstance(study.pruner, AllocationPruner)
        found = what_if(study, study.pruner)
        assert found.is_same
        assert found.guessed == 0
        assert found.actual.score == study.best_value
        if make is not studies.infinite:  # whose score that is no number is paid for too
            assert found.replayed == found.actual

    @pytest.mark.parametrize("seed", [5, 25, 27, 29, 30])
    def test_so_it_has_where_parameters_say_what_learners_cost(self, seed: int) -> None:
        """A newcomer's cost decides where it starts, and the costs of others which goes on."""

        def objective(trial: optuna.Trial) -> float:
            trees = trial.suggest_int("trees", 1, 4096, log=True)
            trial.suggest_categorical("kind", ["forest", "extra"])
            skill = trial.suggest_float("skill", 0.5, 0.9) + 0.005 * math.log2(trees)
            start = 1000 if trial.number == 0 else 0
            return scored(
                trial, lambda n: skill - 50 / n, seconds=lambda n: trees * (start + n) / 2**20
            )

        base = optuna.samplers.RandomSampler(seed=seed)
        study = pair(DAUBPruner(max_resource=16_000), base, n_learners=12)
        study.optimize(objective)
        assert isinstance(study.pruner, AllocationPruner)
        found = what_if(study, study.pruner)
        assert found.guessed == 0
        assert found.replayed == found.actual

    def test_models_that_go_on_pay_for_new_examples_only(self) -> None:
        done: dict[float, int] = {}

        def objective(trial: optuna.Trial) -> float:
            skill = trial.suggest_float("skill", 0.5, 0.9)
            for size in training_sizes(trial):
                new = size - done.get(skill, 0)
                done[skill] = size
                score = skill - 10 / size
                report(trial, size, score, seconds=new / 100, examples=new)
            return score

        study = random_study(DAUBPruner(max_resource=4000, cost="examples"), n_learners=6)
        study.optimize(objective)
        assert isinstance(study.pruner, AllocationPruner)
        same = what_if(study, study.pruner)
        assert same.guessed == 0
        assert same.replayed.cost.examples == same.actual.cost.examples == sum(done.values())
        other = what_if(study, DAUBPruner.paper(max_resource=4000, use_training_score=False))
        assert other.guessed > 0
        assert other.replayed.cost.examples <= 6 * 4000
        per_example = other.replayed.cost.seconds / other.replayed.cost.examples
        assert per_example == pytest.approx(0.01, rel=0.2)
        found = sample_agreement(study)
        assert found.everything.examples == 6 * 4000
        assert found.everything.seconds == pytest.approx(6 * 40.0, rel=0.2)

    def test_the_stopping_rule_of_the_paper_saves_the_last_training(self) -> None:
        # Ash arrives first; with "verified", oak's bound has still to be tried.
        other = DAUBPruner.paper(sizes=SIZES, stop="first")
        found = what_if(studies.finished(), other)
        assert (found.replayed.learner, found.is_same) == (2, True)
        assert found.replayed.cost == Cost(3700 - 800, 37.0 - 8.0)
        assert (found.replayed.probes, found.replayed.full_trainings) == (10, 1)

    def test_it_is_what_the_other_study_does_where_everything_was_measured(self) -> None:
        other = DAUBPruner(sizes=SIZES)
        theirs = answer(studies.run(studies.new_study(pruner=other), Table(RIVALS)))
        study = studies.finished()  # lacks one size, which the other study does not ask for
        found = what_if(study, other)
        assert found.guessed == 0
        assert found.replayed.learner == theirs.learner
        assert found.replayed.cost.examples == theirs.examples

    def test_what_was_never_measured_is_counted(self) -> None:
        found = what_if(studies.finished(), DAUBPruner(sizes=SIZES, cost="examples"))
        everything = what_if(
            studies.finished(), ABCPruner(min_resource=50, max_resource=800, n_validation=1000)
        )
        assert found.guessed == 0
        assert everything.guessed > 0
        assert "not in the study: scores are guessed" in str(everything)

    def test_guesses_are_exact_where_curves_are_straight(self) -> None:
        def score(learner: int, size: int) -> float:
            return 0.5 + 0.02 * math.log2(size / 100) + 0.01 * learner

        def curve(learner: int, *sizes: int) -> LearningCurve:
            seen = (Observation(n, score(learner, n), seconds=n / 10) for n in sizes)
            return LearningCurve(learner, tuple(seen))

        pool = Pool(Curves([curve(0, 100, 800), curve(1, 200, 800)]))
        whole = _completed(pool, (100, 200, 400, 800), set(), UNLIMITED)
        for learner, found in whole.items():
            assert found.sizes == (100, 200, 400, 800)
            for seen in found.observations:
                assert seen.score == pytest.approx(score(learner, seen.size))
                assert seen.seconds == pytest.approx(seen.size / 10, rel=0.2)

    def test_a_learner_that_failed_fails_again(self) -> None:
        found = what_if(studies.failed_learners(), DAUBPruner.paper(sizes=SIZES))
        assert found.replayed.learner == found.actual.learner
        assert found.guessed == 0

    def test_a_choice_that_was_never_trained_on_all_is_marked(self) -> None:
        study = studies.run(studies.new_study(), Table(RIVALS), n_trials=2)
        found = what_if(study, DAUBPruner.paper(sizes=SIZES))
        assert found.replayed.is_forecast
        assert "?" in str(found).splitlines()[2]

    def test_minimized_scores_are_those_of_the_user(self) -> None:
        found = what_if(studies.minimized(), DAUBPruner.paper(sizes=SIZES))
        assert found.replayed.score == 0.125

    @pytest.mark.parametrize("broken", [0, 1])
    def test_a_learner_without_a_score_does_not_spoil_what_is_guessed_of_others(
        self, broken: int
    ) -> None:
        """Smaller sizes than any that was trained are guessed from gains."""
        study = random_study(DAUBPruner(sizes=SIZES[-3:]), n_learners=4)

        def objective(trial: optuna.Trial) -> float:
            skill = trial.suggest_float("skill", 0.5, 0.9)
            most = SIZES[-3] if trial.number == broken else SIZES[-1]
            return scored(trial, lambda n: skill - 10 / n if n <= most else math.nan)

        study.optimize(objective)
        found = what_if(study, DAUBPruner.paper(sizes=SIZES))
        assert found.replayed.learner == found.actual.learner is not None

    def test_to_look_on_knows_no_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The seconds that are left are those of this process alone."""
        sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), seconds=1000.0)
        study = studies.new_study(pruner=DAUBPruner(sizes=SIZES))
        study.sampler = sampler
        studies.run(study, Table(RIVALS), n_trials=2)
        ends: list[Cost | None] = []
        pool_of = Worker.pool

        def pool(*args: Any, **kwargs: Any) -> Pool:
            ends.append((found := pool_of(*args, **kwargs)).left)
            return found

        assert pool_of(looking(study), study.pruner.policy).left is not None
        monkeypatch.setattr(Worker, "pool", pool)
        what_if(study, DAUBPruner(sizes=SIZES))
        optuna_daub.one_row_per_learner(study)
        assert ends
        assert {*ends} == {None}

    @pytest.mark.parametrize(
        ("make", "pruner", "message"),
        [
            (studies.empty, DAUBPruner(sizes=SIZES), "but no score has been reported yet"),
            (
                studies.pruner_alone,
                DAUBPruner(sizes=SIZES),
                "but trials are learners only if a DataAllocationSampler has run them",
            ),
            (studies.finished, DAUBPruner(max_resource=9000), "must be that of the study, 800 ex"),
            (studies.finished, optuna.pruners.NopPruner(), "`pruner` must be one of optuna_daub"),
            (
                studies.without_training_scores,
                ABCPruner(min_resource=100, max_resource=800),
                "needs the training score of every training",
            ),
        ],
    )
    def test_what_cannot_be_replayed_is_refused(
        self, make: Callable[[], optuna.Study], pruner: AllocationPruner, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            what_if(make(), pruner)


def test_trainings_that_go_on_never_cost_more_than_everything() -> None:
    def objective(trial: optuna.Trial) -> float:
        x, before = trial.suggest_float("x", 0, 1), trial.user_attrs.get("before", 0)
        for n in training_sizes(trial):
            new, rest = n - before, 100 / n
            report(trial, n, x - rest, training_score=x + rest, examples=new, seconds=new / 1000)
            trial.set_user_attr("before", before := n)
        return x - rest

    study = pair(
        DAUBPruner.paper(max_resource=8000), optuna.samplers.RandomSampler(seed=1), n_learners=8
    )
    study.optimize(objective)
    found = plan(study)
    assert found.most is not None
    assert found.everything is not None
    assert found.least.examples < found.most.examples <= found.everything.examples
    assert answer(study).examples <= found.everything.examples
