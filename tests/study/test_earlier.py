"""Studies that start from earlier ones: their best parameters first, none of their scores."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from collections.abc import Mapping
from functools import cache
from typing import Any

import optuna
import pytest
from optuna.samplers import GridSampler
from optuna.samplers import PartialFixedSampler
from optuna.samplers import RandomSampler
from optuna.samplers import TPESampler

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import learning_curves
from optuna_daub.study.earlier import Earlier
from optuna_daub.study.worker import worker_of
from tests.study.table_study import SIZES
from tests.study.table_study import as_text
from tests.study.table_study import assert_sound
from tests.study.table_study import open_study
from tests.study.table_study import pair
from tests.study.table_study import points
from tests.study.table_study import random_study
from tests.study.table_study import reporting
from tests.study.table_study import scored


def timed(trial: optuna.Trial, skill: float, cost: float) -> float:
    """Train a learner whose trainings take `cost` seconds for each example.

    In an earlier study every learner is trained on all the data.
    """
    sizes = SIZES if trial.study.user_attrs.get("is_earlier") else None
    also = {"training_score": lambda n: skill, "seconds": lambda n: cost * n}
    return scored(trial, lambda n: skill - 1 / n, sizes, **also)


def flat(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_int("y", 1, 100, log=True)
    return timed(trial, 0.5 + x / 5 + y / 1000, cost=y)


def conditional(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("kind", ["tree", "line"]) == "tree":
        depth = trial.suggest_float("depth", 1, 20)
        return timed(trial, 0.5 + depth / 50, cost=depth)
    return timed(trial, 0.4 + trial.suggest_float("penalty", 0.05, 1, log=True) / 4, cost=2)


def new_earlier(
    objective: Callable[[optuna.Trial], float] = flat, seed: int = 0, direction: str = "maximize"
) -> optuna.Study:
    """Return an earlier study: twenty random learners, all trained on all the data."""
    study = random_study(seed=seed, direction=direction)
    study.set_user_attr("is_earlier", value=True)
    study.optimize(objective, n_trials=20)
    return study


earlier_of = cache(new_earlier)
"""The same study to each test that asks for it: none may go on with it."""


def study_of(
    objective: Callable[[optuna.Trial], float] = flat, n_trials: int = 25, **options: Any
) -> optuna.Study:
    """Return a study of some trials."""
    options.setdefault("seed", None if "base" in options else 0)
    study = open_study(**options)
    study.optimize(objective, n_trials=n_trials)
    return study


def best_of(study: optuna.Study) -> list[Mapping[str, Any]]:
    """Return what is expected of a study: its best learner, before it the best cheap one."""
    whole = [curve for curve in learning_curves(study) if curve.size == SIZES[-1]]
    sign = -1 if study.direction == optuna.study.StudyDirection.MINIMIZE else 1
    whole.sort(key=lambda curve: -sign * curve.score)
    seconds = {curve.learner: curve.observations[-1].seconds or 0 for curve in whole}
    points: list[Mapping[str, Any]] = []
    for share in (3, 1):
        most = seconds[whole[0].learner] / share
        cheap = [curve.params for curve in whole if seconds[curve.learner] <= most]
        if cheap and cheap[0] not in points:
            points.append(cheap[0])
    return points


def first(study: optuna.Study, count: int) -> list[Mapping[str, Any]]:
    """Return the parameters of the first learners."""
    return [curve.params for curve in learning_curves(study)[:count]]


@pytest.mark.parametrize("objective", [flat, conditional])
@pytest.mark.parametrize("base", [None, TPESampler(seed=1)])
def test_the_first_learners_are_the_best_earlier_ones(objective, base) -> None:
    earlier = earlier_of(objective)
    best = best_of(earlier)
    assert len(best) >= 2
    study = study_of(objective, 14, base=base, earlier=[earlier])
    assert as_text(first(study, len(best))) == as_text(best)
    assert first(study, 1) == best[:1], "a cheap one"
    assert len(learning_curves(study)) > len(best), "then others are proposed"
    assert_sound(study)


def test_several_studies_give_their_best_ones_without_repeats() -> None:
    one, two = earlier_of(seed=1), earlier_of(seed=2)
    study = study_of(earlier=[one, two, one], n_trials=20)
    both = [*best_of(one), *best_of(two)]
    assert len(both) == 4
    assert as_text(first(study, len(both))) == as_text(both)


def test_of_many_studies_five_cheap_learners_are_taken() -> None:
    many = [earlier_of(seed=seed) for seed in range(7)]
    study = study_of(earlier=many, n_trials=16)
    assert first(study, 5) == [best_of(each)[0] for each in many[:5]]
    later = as_text(first(study, 99)[5:])
    assert not {*later} & {*as_text(point for each in many for point in best_of(each))}


def test_without_times_the_best_learner_alone_is_taken() -> None:
    earlier = random_study()
    earlier.optimize(reporting(SIZES, asks=False), n_trials=10)
    assert [*Earlier.of([earlier]).points.values()] == [earlier.best_params]


def test_a_study_of_which_smaller_scores_are_better_gives_its_smallest() -> None:
    earlier = earlier_of(direction="minimize")
    study = study_of(direction="minimize", earlier=[earlier], n_trials=8)
    assert as_text(first(study, len(best_of(earlier)))) == as_text(best_of(earlier))


def test_no_learner_is_a_repeat() -> None:
    """Also if the new study goes on with itself, and has the earlier best learners."""
    earlier = new_earlier()
    study = study_of(earlier=[earlier, earlier_of(seed=3)], n_trials=25)
    assert len({*points(study)}) == len(points(study))
    count = len(learning_curves(earlier))
    earlier.sampler = DataAllocationSampler(seed=5, earlier=[earlier])
    earlier.optimize(flat, n_trials=3)
    assert len({*points(earlier)}) == len(learning_curves(earlier)) == count + 3


def test_enqueued_learners_come_first_and_keep_their_parameters() -> None:
    study = open_study(seed=0, earlier=[earlier_of()])
    study.enqueue_trial({"x": 0.25, "y": 7})
    study.optimize(flat, n_trials=10)
    assert first(study, 1) == [{"x": 0.25, "y": 7}]
    best = best_of(earlier_of())
    assert as_text(first(study, 1 + len(best))[1:]) == as_text(best)


def test_a_grid_is_left_as_it_is() -> None:
    grid = {"x": [0.1, 0.4], "y": [3, 30]}
    study = study_of(base=GridSampler(grid, seed=0), n_trials=20, earlier=[earlier_of()])
    assert {(p["x"], p["y"]) for p in first(study, 9)} == {
        (x, y) for x in grid["x"] for y in grid["y"]
    }


def narrow(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_int("y", 1, 5, log=True)
    return timed(trial, 0.5 + x / 5 + y / 1000, cost=y)


def test_what_is_out_of_range_is_left_out_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    earlier = [earlier_of(seed=2), earlier_of(seed=3), earlier_of(seed=0)]
    best = [point for each in earlier for point in best_of(each)]
    assert sum(point["y"] > 5 for point in best) > 1
    study = study_of(narrow, 12, earlier=earlier)
    points = first(study, 99)
    assert all(1 <= point["y"] <= 5 for point in points)
    # The range is not known before the first learner, which takes what fits.
    assert points[0]["x"] == best[0]["x"]
    left_out = {point["x"] for point in best[1:] if point["y"] > 5}
    assert not {point["x"] for point in points} & left_out
    said = [r.getMessage() for r in caplog.records if "earlier study" in r.getMessage()]
    assert len(said) == 1
    assert "y = " in said[0]
    assert_sound(study)


def test_a_parameter_that_the_earlier_study_lacks_is_proposed_by_the_base_sampler() -> None:
    def wider(trial: optuna.Trial) -> float:
        trial.suggest_float("z", 2, 3)
        return flat(trial)

    earlier = earlier_of()
    best = best_of(earlier)
    found = first(study_of(wider, 10, earlier=[earlier]), len(best))
    assert as_text({"x": p["x"], "y": p["y"]} for p in found) == as_text(best)
    assert all(2 <= point["z"] <= 3 for point in found)


def test_words_that_are_gone_are_left_out() -> None:
    def one_kind(trial: optuna.Trial) -> float:
        trial.suggest_categorical("kind", ["line", "net"])
        return timed(trial, 0.4 + trial.suggest_float("penalty", 0.05, 1, log=True) / 4, cost=2)

    earlier = earlier_of(conditional)
    gone = [point for point in best_of(earlier) if point["kind"] == "tree"]
    assert gone
    found = first(study_of(one_kind, 8, earlier=[earlier]), 99)
    assert all(point["kind"] in ("line", "net") for point in found)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("kind", ["tree", "line"])
def test_a_point_without_the_fixed_value_is_left_out(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    earlier = [earlier_of(conditional, seed=seed) for seed in range(4)]
    taken = [*Earlier.of(earlier).points.values()]
    fitting = [point for point in taken if point["kind"] == kind]
    assert len(fitting) < len(taken)
    base = PartialFixedSampler({"kind": kind}, RandomSampler(seed=0))
    found = first(study_of(conditional, 12, base=base, earlier=earlier), 99)
    assert {point["kind"] for point in found} == {kind}
    assert found[: len(fitting)] == fitting
    said = [r.getMessage() for r in caplog.records if "earlier study" in r.getMessage()]
    assert [f"the base sampler fixes '{kind}'" in text for text in said] == [True]


def test_scores_of_the_earlier_study_are_nowhere() -> None:
    def higher(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_int("y", 1, 100, log=True)
        return timed(trial, 5.0 + x + y, cost=y)

    earlier = earlier_of(higher)
    study = study_of(earlier=[earlier], n_trials=12)
    assert max(trial.value for trial in study.trials if trial.value is not None) < 1
    for curve in learning_curves(study):
        assert all(seen.score < 1 for seen in curve.observations)
        assert curve.bound is None or curve.bound < 4
    own = {probe.trial for probe in allocations(study)}
    assert own <= {trial.number for trial in study.trials}


def test_two_threads_take_different_points() -> None:
    earlier = [earlier_of(seed=1), earlier_of(seed=2)]
    best = as_text(point for one in earlier for point in best_of(one))
    study = open_study(seed=0, earlier=earlier)
    study.optimize(flat, n_trials=30, n_jobs=2)
    assert as_text(first(study, len(best))) == best
    asked = [str(trial.params) for trial in study.trials[: len(best)]]
    assert len({*asked}) == len(best) == 4
    assert_sound(study)


def test_a_learner_that_took_its_point_and_ended_is_not_awaited() -> None:
    """The second learner decides by a look from before the first one's parameters."""
    earlier = earlier_of(seed=1)
    study = open_study(seed=0, earlier=[earlier])
    study.ask(), study.ask()
    worker = worker_of(study)
    given = [point for number in (0, 1) if (point := worker.assigned[number].point)]
    assert len(given) == 2
    text = next(text for text, number in worker.given.items() if number == 1)
    del worker.given[text], worker.assigned[0]  # the first has ended, the second has not decided
    run = worker.assigned[1].run
    assert worker.known.runs.keys() >= {0, 1}
    assert not worker.known.learners[0].params
    frozen = study.trials[1]
    found = Earlier.of([earlier]).next_point(study, worker, frozen, run)
    assert found == given[1]


def test_a_sampler_keeps_values_only_and_can_be_pickled() -> None:
    earlier = new_earlier()
    sampler = DataAllocationSampler(seed=0, earlier=[earlier])
    best = best_of(earlier)
    earlier.optimize(flat, n_trials=20)
    assert best_of(earlier) != best
    again = pickle.loads(pickle.dumps(sampler))
    assert b"Study" not in pickle.dumps(sampler).replace(b"BaseSamplerStudy", b"")
    study = open_study()
    study.sampler = again
    study.optimize(flat, n_trials=8)
    assert as_text(first(study, len(best))) == as_text(best)


def test_a_study_that_has_begun_is_not_led_back() -> None:
    study = study_of(n_trials=12)
    n_before = len(learning_curves(study))
    study.sampler = DataAllocationSampler(seed=1, earlier=[earlier_of(seed=4)])
    study.optimize(flat, n_trials=6)
    new = first(study, 99)[n_before:]
    assert new
    assert not [p for p in new if p in best_of(earlier_of(seed=4))]


@pytest.mark.parametrize(
    ("earlier", "match"),
    [
        (3, r"`earlier` must be a list of studies, .* but got 3"),
        ("study", r"`earlier` must be a list of studies"),
        (["study"], r"`earlier` must be a list of studies, .* but got \['study'\]"),
        ([optuna.create_study(study_name="empty")], r"study 'empty' has none.*enqueue_trial"),
    ],
)
def test_what_is_no_list_of_studies_with_models_is_refused(earlier: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        DataAllocationSampler(earlier=earlier)


def test_a_study_itself_is_no_list() -> None:
    with pytest.raises(ValueError, match=r"`earlier` must be a list of studies"):
        DataAllocationSampler(earlier=earlier_of())  # type: ignore[arg-type]


def test_another_direction_is_refused_before_anything_is_trained() -> None:
    earlier = earlier_of(direction="minimize")
    study = pair(DAUBPruner(sizes=SIZES), seed=0, earlier=[earlier])
    asked = []
    with pytest.raises(ValueError, match=r"direction of this one, maximize, but .* has minimize"):
        study.optimize(lambda trial: asked.append(1) or flat(trial), n_trials=3)
    assert not asked
