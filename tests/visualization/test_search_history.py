"""Search histories, compared value by value with studies worked out by hand."""

from __future__ import annotations

import optuna
import pytest
from optuna.samplers import RandomSampler

from optuna_daub import DAUBPruner
from optuna_daub import allocations
from optuna_daub import best_learner
from optuna_daub import sample_agreement
from optuna_daub import what_if
from optuna_daub.study.one_row import learner_rows
from optuna_daub.visualization._allocations import allocations_record
from optuna_daub.visualization._axes import UNITS
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._search_history import search_history_picture
from optuna_daub.visualization._search_history import search_history_record
from tests.study.table_study import pair
from tests.study.table_study import scored
from tests.visualization import studies
from tests.visualization.studies import SIZES


def test_marks_and_the_best_so_far() -> None:
    record = search_history_record(studies.finished(), "auto")
    ends = [seen.at for seen in record.trainings]
    assert record.unit == "seconds"
    assert ends == [1, 3, 7, 8, 10, 14, 15, 17, 21, 29, 37]
    assert [seen.kind for seen in record.trainings] == [
        "first training", "more data", "more data",
        "first training", "more data", "more data",
        "first training", "more data", "more data", "all the data", "all the data",
    ]  # fmt: skip
    assert [(seen.at, seen.score) for seen in record.best] == [(29, 0.875)]
    assert [path[0].learner for path in record.paths] == [2]
    assert [seen.size for seen in record.paths[0]] == [*SIZES]
    assert record.spent == 37


def test_in_examples() -> None:
    record = search_history_record(studies.finished(), "examples")
    assert [seen.at for seen in record.trainings][:3] == [100, 300, 700]
    assert record.spent == 3700


def test_the_best_gets_ever_better() -> None:
    for study in (studies.crowded(8, 3), studies.minimized(), studies.abc()):
        record = search_history_record(study, "auto")
        scores = [seen.score for seen in record.best]
        assert scores == sorted({*scores}, reverse=record.axis.is_minimized)
        assert scores[-1] == study.best_value


def test_minimized_searches_mirror_maximized_ones() -> None:
    up, down = (search_history_record(make(), "auto")
                for make in (studies.finished, studies.minimized))  # fmt: skip
    assert [1 - seen.score for seen in down.trainings] == [seen.score for seen in up.trainings]
    assert [seen.at for seen in down.best] == [seen.at for seen in up.best]


def test_what_everybody_wants_to_see_fits_in() -> None:
    record = search_history_record(studies.finished(), "auto")
    assert record.axis.limits is not None
    low, high = record.axis.limits
    assert all(low < seen.score < high for seen in record.trainings if seen.size == SIZES[-1])


def test_learners_that_never_led_fit_in_unless_they_are_far_behind() -> None:
    others = ("elm", 0.20), ("ash", 0.19), ("fir", -50.0), ("yew", -60.0)
    known = {"oak": (0.50, 0.625, 0.6875, 0.75)} | {name: (score,) * 4 for name, score in others}
    study = studies.run(studies.new_study(known), studies.Table(known))
    record = search_history_record(study, "auto")
    assert record.axis.limits is not None
    low, _ = record.axis.limits
    assert -1.0 < low < 0.19, "the axis ends where the markers do"
    assert 0.19 - low < 0.1


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_learner_that_diverged_on_all_the_data_flattens_no_other(direction: str) -> None:
    sign = -1 if direction == "minimize" else 1
    known = {**studies.RIVALS, "yew": (0.55, 0.7, 0.8, -1e6)}
    known = {name: [sign * s for s in scores if s is not None] for name, scores in known.items()}
    study = studies.new_study(known, direction=direction)
    studies.run(study, studies.Table(known, training_score=None))
    record = search_history_record(study, "auto")
    assert record.axis.limits is not None
    low, high = record.axis.limits
    whole = [seen.score for seen in record.trainings if seen.kind == "all the data"]
    assert sign * -1e6 in whole
    assert all(low < score < high for score in whole if abs(score) < 1)
    assert high - low < 1
    assert "beyond the axis" in search_history_picture(study, "auto").subtitle[1]


@pytest.mark.parametrize("make", studies.STATES, ids=lambda make: make.__name__)
def test_every_line_is_in_the_legend(make: studies.Make) -> None:
    picture = search_history_picture(make(), "auto")
    labels = [mark.label for mark in picture.marks if isinstance(mark, Line)]
    assert sorted(labels) == sorted(picture.legend)
    assert "" not in labels


def test_a_closed_pool_shows_the_way_to_its_only_model_on_all_the_data() -> None:
    known = {"oak": (0.50, 0.625, 0.6875, 0.75), "elm": (0.25, 0.25, 0.25, 0.25)}
    study = studies.run(studies.new_study(known), studies.Table(known))
    record = search_history_record(study, "auto")
    assert len(record.best) == 1, "it ends the study"
    assert record.best[0].at == record.spent
    assert [seen.score for seen in record.early] == [0.5, 0.625, 0.6875]
    assert record.finding == "0 oak: 0.7500 on all the data, after 22 of 22 seconds"
    picture = search_history_picture(study, "auto")
    (early,) = (mark for mark in picture.marks if mark.label == "best so far, less data")
    assert isinstance(early, Line)
    assert early.xs[-1] == record.best[0].at
    assert early.ys[-1] == early.ys[-2]
    (best,) = (mark for mark in picture.marks if mark.label == "best so far, all the data")
    assert isinstance(best, Line)
    assert best.xs[-1] > record.spent, "a line of no length is seen in the legend only"


def test_seconds_of_fast_trainings_are_not_said_to_be_none() -> None:
    record = search_history_record(studies.finished(), "auto")
    (*_, best) = record.best
    record = record._replace(best=(best._replace(at=0.0256),), spent=0.75)
    assert record.finding.endswith("after 0.026 of 0.75 seconds")


def test_a_study_without_a_model_on_all_the_data_says_so() -> None:
    record = search_history_record(studies.running(), "auto")
    assert (record.best, len(record.early)) == ((), 3)
    assert record.finding == "no learner was trained on all the data yet"
    assert search_history_record(studies.empty(), "auto").finding == ""


def rejecting(trial: optuna.Trial) -> float:
    """Return a score; learners above 0.78 fail once they were scored on all the data."""
    skill = trial.suggest_float("skill", 0.5, 0.9)
    score = scored(trial, lambda n: skill - 10 / n, seconds=lambda n: n / 100)
    if skill > 0.78:
        raise ArithmeticError("the model cannot be stored")
    return score


def test_a_learner_that_failed_is_not_the_best_and_its_trainings_are_paid_for() -> None:
    study = pair(DAUBPruner(max_resource=800), RandomSampler(seed=0), n_learners=6)
    study.optimize(rejecting, catch=ArithmeticError)
    lost = [made for made in allocations(study) if made.is_lost]
    assert len(lost) > 1
    best, record = best_learner(study), search_history_record(study, "auto")
    assert best is not None
    assert record.best[-1].learner == best.learner
    assert record.best[-1].score == study.best_value
    assert not {made.learner for made in lost} & {each.learner for each in record.best}
    for unit in UNITS:
        spent = getattr(best, unit)
        picture = allocations_record(study, unit, 2)
        assert picture.spent == search_history_record(study, unit).spent == spent
        bars = [layer.costs[0] + layer.costs[1] + 4 * layer.costs[2] for layer in picture.layers]
        assert sum(bars) == pytest.approx(spent), "two learners, and the mean of four"
        assert getattr(sample_agreement(study).spent, unit) == spent
        rows = learner_rows(study)
        assert sum(row.user_attrs[f"daub:{unit}"] for row in rows) == pytest.approx(spent)
    actual = what_if(study, DAUBPruner(max_resource=800)).actual
    assert (actual.probes, actual.cost.examples) == (len(allocations(study)), best.examples)
