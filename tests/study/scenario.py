"""Scenarios of trials as tables: what each trial says, without any study.

    told("0: .70 .74 | 1: .72 running | 2>0: .76")

Trials are numbered in their order. A cell names the learner that the trial runs (`2>0` says so of
trial 2 whose learner is 0; `1` alone starts learner 1), then the scores that it observed itself at
the next sizes of `SIZES`, and words: a state (`running`, `waiting`, `complete`, `fail`), `idle`,
`given_up`, `x=3` for a parameter, `failed` for a failure at its next size, `foreign` for a record
copied from another trial, `repeats=0`, `declined`, `settled`, `by=NAME` for a worker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optuna.distributions import IntDistribution

from optuna_daub.core import Observation
from optuna_daub.study.known import Known
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import Run


SIZES = (100, 200, 400, 800)
_STATES = ("running", "waiting", "complete", "fail", "pruned")
_SPACE = IntDistribution(0, 99)


def told(table: str, n_learners: int | None = 4) -> list[Facts]:
    """Return what the trials of a table say."""
    reached: dict[int, int] = {}  # by learner, how many sizes
    return [_facts(n, cell, n_learners, reached) for n, cell in enumerate(table.split("|"))]


def known(table: str, n_learners: int | None = 4) -> Known:
    """Return what is known of a table's trials."""
    return Known().with_trials(told(table, n_learners))


def _facts(number: int, cell: str, n_learners: int | None, reached: dict[int, int]) -> Facts:
    head, _, rest = cell.strip().partition(":")
    own, _, of = head.partition(">")
    assert int(own) == number, f"trial {own} is at place {number}"
    learner: int | None = int(of or own)
    start = reached.get(learner or 0, 0)
    fields: dict[str, Any] = {"state": "pruned"}
    run = Run(learner, 0, SIZES[start - 1] if start else 0, n_learners, SIZES[-1], trial=number)
    scores: list[float] = []
    for word in rest.split():
        name, _, value = word.partition("=")
        if word in _STATES:
            fields["state"] = word
        elif word == "idle":
            run = replace(run, learner=None)
        elif word == "given_up":
            fields["is_given_up"] = True
        elif word == "foreign":
            run = replace(run, trial=number + 100)
        elif word == "failed":
            size = SIZES[start + len(scores)]
            fields["failure"] = Failure(size, "ValueError: no", run.worker)
        elif word == "declined":
            run = replace(run, learner=None, is_declined=True)
        elif word == "settled":
            run = replace(run, is_settled=True)
        elif name == "repeats":
            run = replace(run, learner=None, repeats=int(value))
        elif name == "by":
            run = replace(run, worker=value)
        elif value:
            for field, entry in (("params", int(value)), ("distributions", _SPACE)):
                fields[field] = {**fields.get(field, {}), name: entry}
        else:
            scores.append(float(word))
    seen = {SIZES[start + i]: Observation(SIZES[start + i], x) for i, x in enumerate(scores)}
    if run.learner is not None:
        is_lost = fields["state"] == "fail" and start + len(scores) == len(SIZES)
        reached[run.learner] = start + len(scores) - is_lost
    return Facts(number=number, run=run, observations=seen, **fields)
