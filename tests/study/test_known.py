"""Knowledge of a study is a pure fold: order does not matter, nothing counts twice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from optuna.distributions import FloatDistribution
from optuna.distributions import IntDistribution

from optuna_daub.core import Cost
from optuna_daub.study.known import MOST_REPEATS
from optuna_daub.study.known import Known
from tests.study.scenario import SIZES
from tests.study.scenario import known
from tests.study.scenario import told


TABLES = (
    "0: .70 .74 x=1 | 1: .72 x=2 running | 2>0: .76",
    "0: .7 x=1 | 1>2: .8 x=3 | 2: .7 x=3",
    "0: failed by=a | 1>0: failed by=b | 2: .5 by=c x=4 | 3: .6 x=4",
    "0: .7 given_up running x=1 | 1>0: .8 x=1 | 2>0: x=9 .9",
    "0: .7 x=1 foreign | 1: .5 x=1 | 2: repeats=1 | 3: declined | 4: .6 x=1 waiting",
    "0: .1 .2 .3 .4 complete x=1 | 1: .1 .2 .3 .5 fail x=2 | 2>1: .6 complete x=2",
)


def shown(of: Known) -> tuple[object, ...]:
    """Return all that anybody asks of what is known."""
    return (
        {i: of.curves[i] for i in of.curves},
        {i: (one.params, one.words, one.curve.cause) for i, one in of.learners.items()},
        of.spent.examples,
        of.runs,
        of.n_learners,
        copies(of),
        of.idle,
        of.last_trained,
        of.well,
        {i: of.twin(i) for i in of.learners},
        {*of.unfinished},
        dict(of.drawn),
    )


def copies(of: Known) -> set[int]:
    """Return the trials whose records are copies."""
    runs = [trial for one in of.learners.values() for trial in one.runs.values()]
    runs += [trial for told in of.orphans.values() for trial in told.values()]
    return {trial.number for trial in runs if trial.run and of.is_copy(trial.number, trial.run)}


@pytest.mark.parametrize("table", TABLES)
def test_the_order_of_trials_does_not_matter(table: str) -> None:
    trials = told(table)
    expected = shown(Known().with_trials(trials))
    for order in itertools.permutations(trials):
        one_by_one = Known()
        for trial in order:
            one_by_one = one_by_one.with_trials([trial])
        assert shown(one_by_one) == expected


@pytest.mark.parametrize("table", TABLES)
def test_nothing_counts_twice(table: str) -> None:
    trials = [trial for trial in told(table) if trial.is_finished]
    once = Known().with_trials(trials)
    assert shown(once.with_trials(trials)) == shown(once)


@pytest.mark.parametrize("table", TABLES)
def test_unfinished_trials_are_laid_on_top(table: str) -> None:
    trials = told(table)
    settled = Known().with_trials(t for t in trials if t.is_finished)
    before = shown(settled)
    on_top = settled.with_trials(t for t in trials if not t.is_finished)
    assert shown(on_top) == shown(Known().with_trials(trials))
    assert shown(settled) == before, "a frozen value"


def test_a_learner_without_a_place_stays_while_another_run_has_it() -> None:
    """As if learner 3 was enqueued, so there are three for two places."""
    _, resumed, *others = told("0: fail | 1>0: x=1 running | 2: .7 x=2 | 3: .6 x=3", 2)
    (ended,) = told("0: fail", 2)
    settled = Known().with_trials([ended, *others])
    held = settled.with_trials([resumed]).without_surplus()
    assert {*held.learners} == {0, 2, 3}
    (_, scored, *_) = told("0: fail | 1>0: .8 x=1", 2)
    assert held.runs[1].learner == 0
    later = settled.with_trials([scored]).without_surplus()
    assert later.curves[0].score == 0.8
    assert {*settled.without_surplus().learners} == {2, 3}, "nobody holds it"


def test_what_is_withdrawn_is_not_there_next_time() -> None:
    claimed, withdrawn = told("0: .7 | 1: running"), told("0: .7 | 1: running idle")
    settled = Known().with_trials(claimed[:1])
    assert {*settled.with_trials(claimed[1:]).learners} == {0, 1}
    assert {*settled.with_trials(withdrawn[1:]).learners} == {0}


@pytest.mark.parametrize(
    ("table", "sizes"),
    [
        ("0: .7 .8 | 1>0: .9", {0: 3}),
        ("0: .7 | 1>2: .8 | 2: .7", {0: 1, 2: 2}),  # trial 1 waited, and resumed a later one
        ("0: .7 | 1>9: .8", {0: 1}),  # of a learner that nobody has started
        ("0: .7 x=1 | 1>0: .8 x=2", {0: 1}),  # the record of another study's learner
        ("0: .7 foreign", {}),
        ("0: .1 .2 .3 .4 fail", {0: 3}),  # no COMPLETE trial holds the last score
        ("0: .1 .2 .3 .4 complete", {0: 4}),
        ("0: .1 .2 .3 .4 running", {0: 4}),
        ("0: .1 .2 .3 .4 running given_up", {0: 3}),
        ("0: .1 .2 .3 inf fail", {0: 4}),  # dropped for it, and not tried again
        ("0: idle given_up running | 1>0: .5", {0: 1}),  # theirs, whatever its worker writes
        ("0: idle given_up running | 1: .5", {1: 1}),
    ],
)
def test_curves(table: str, sizes: dict[int, int]) -> None:
    assert {i: len(curve.sizes) for i, curve in known(table).curves.items()} == sizes


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("0: .7 x=1 | 1>0: .8 x=1", set()),
        ("0: .7 x=1 | 1>0: .8 x=2", {1}),
        ("0: .7 foreign | 1: .7", {0}),
        ("0: .7 | 1>9: .8", {1}),
    ],
)
def test_copies(table: str, expected: set[int]) -> None:
    trials, found = told(table), known(table)
    assert expected == {
        trial.number for trial in trials if trial.run and found.is_copy(trial.number, trial.run)
    }


def test_what_was_spent_is_counted_also_where_its_result_is_lost() -> None:
    assert known("0: .7 .8 fail | 1>0: .9").spent == Cost(sum(SIZES[:3]))
    assert known("0: .1 .2 .3 .4 fail").spent == Cost(sum(SIZES))
    assert known("0: .7 x=1 | 1>0: .8 x=2").spent == Cost(SIZES[0]), "what a copy says is not"
    assert known("0: .7 | 1>9: .8").spent == Cost(SIZES[0])


@pytest.mark.parametrize(
    ("table", "twins"),
    [
        ("0: .7 x=1 | 1: .7 x=1", {0: None, 1: 0}),
        ("0: .7 x=1 | 1: .7 .8 x=1", {0: 1, 1: None}),  # most data first
        ("0: .7 x=1 | 1: .7 x=2", {0: None, 1: None}),
        ("0: .7 | 1: .7", {0: None, 1: None}),  # without parameters nothing is alike
        ("0: .7 x=1 | 1: .7 x=1 y=2", {0: None, 1: None}),
    ],
)
def test_twins(table: str, twins: dict[int, int | None]) -> None:
    assert {i: known(table).twin(i) for i in twins} == twins


@pytest.mark.parametrize(
    ("other", "settled", "expected"),
    [
        ("running x=1", (), None),  # a higher number in its first run
        ("running x=1", (1,), 1),  # found to be the only one, by this process
        ("running x=1 settled", (), 1),  # or by another
        ("running x=1 .7", (), 1),
        ("fail x=1", (), 1),
        ("running x=2", (1,), None),
    ],
)
def test_forerunners(other: str, settled: tuple[int, ...], expected: int | None) -> None:
    found = known(f"0: running x=1 | 1: {other}")
    assert found.forerunner(0, settled) == expected
    if "x=1" in other and "running" in other:
        assert found.forerunner(1) == 0
        assert found.is_contested(0, own=[0])
        assert not found.is_contested(0, own=[0, 1])


@pytest.mark.parametrize(
    ("table", "n_learners", "number", "expected"),
    [
        ("0: .7 | 1: running | 2: running", 3, 1, ()),
        ("0: .7 | 1: running | 2: running", 2, 1, (2,)),
        ("0: .7 | 1: running | 2: running", 2, 2, None),
        ("0: .7 | 1: running | 2: .5 running", 2, 1, None),  # trained: it stays
        ("0: .7 | 1: running", None, 1, ()),
    ],
)
def test_too_many(
    table: str, n_learners: int | None, number: int, expected: tuple[int, ...] | None
) -> None:
    assert known(table, n_learners).too_many(number) == expected


def test_a_failure_counts_more_once_its_worker_has_trained_something() -> None:
    """Two workers fail a learner; it is dropped as soon as one of them may have no part in it."""
    sick = "0: by=a failed | 1>0: by=a failed | 2: by=b .5"
    assert not known(sick).curves[0].dropped
    assert known(f"{sick} | 3: by=a .5").curves[0].dropped
    assert known(f"{sick} | 3: by=a .5").curves[0].cause == "failed"


def test_repeats_count_since_anything_was_trained() -> None:
    repeats = " | ".join(f"{n}: repeats=0" for n in range(1, MOST_REPEATS + 1))
    assert known(f"0: .5 | {repeats}").has_nothing_new
    assert not known(f"0: .5 | {repeats}").has_room(99)
    last = MOST_REPEATS + 1
    assert not known(f"0: .5 | {repeats} | {last}>0: .6").has_nothing_new


def test_repeats_of_many_workers_do_not_exhaust_a_search() -> None:
    repeats = " | ".join(f"{n}: repeats=0 by=w{n}" for n in range(1, 2 * MOST_REPEATS))
    assert known(f"0: .5 | {repeats}").repeats == 1
    assert not known(f"0: .5 | {repeats}").has_nothing_new


def test_who_is_ruled_out_by_one_policy_is_not_by_another() -> None:
    before = known("0: .5 | 1: .6")
    after = before.ruling_out({0: "too bad"})
    assert (after.curves[0].dropped, after.curves[0].cause) == ("too bad", "ruled out")
    assert shown(after.ruling_out({})) == shown(before)
    later = after.with_trials(told("0: .5 | 1: .6 | 2>0: .7")[2:])
    assert later.curves[0].dropped == "too bad"


def test_a_parameter_has_the_range_of_the_latest_learner_in_any_order() -> None:
    narrow, wide, again = told("0: .7 x=1 | 1: .6 x=2 | 2>0: .72 x=1")
    wide = replace(wide, distributions={"x": IntDistribution(0, 500)})
    for order in itertools.permutations((narrow, wide, again)):
        one_by_one = Known()
        for trial in order:
            one_by_one = one_by_one.with_trials([trial])
        assert one_by_one.drawn == {"x": IntDistribution(0, 500)}
        assert Known().with_trials(order).drawn == one_by_one.drawn


def test_ranges_that_change_are_united_alike_in_any_order() -> None:
    spaces = (
        {"x": IntDistribution(0, 9), "y": FloatDistribution(0.5, 1.0, log=True)},
        {"x": IntDistribution(0, 99)},
        {"y": FloatDistribution(0.1, 2.0)},
    )
    table = told("0: .7 x=1 y=1 | 1: .6 x=2 | 2: .5 y=1")
    trials = [replace(t, distributions=each) for t, each in zip(table, spaces, strict=True)]
    expected = Known().with_trials(trials)
    assert expected.drawn == spaces[1] | spaces[2]
    for order in itertools.permutations(trials):
        one_by_one = Known()
        for trial in order:
            one_by_one = one_by_one.with_trials([trial])
        assert (one_by_one.drawn, one_by_one.space) == (expected.drawn, expected.space)
