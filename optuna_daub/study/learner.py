"""A learner: what its runs say together, and the rules by which it gets no more data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna_daub.core.curve import LearningCurve
from optuna_daub.study.records import CONSTRAINTS
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure


BLANK, FAILING = "blank", "failing"
"""Marks of learners: a mere claim, neither enqueued nor given any parameter or score; one of which
a run has failed."""

MAX_FAILURES = 2
"""Errors of a learner at one size after which it is dropped."""

MAX_FAILURES_OF_SICK = 4
"""The same where workers failed that never succeeded, while others did: it may be their fault."""


@dataclass(frozen=True, slots=True)
class Learner:
    """All that the runs of a learner say together."""

    runs: Mapping[int, Facts]
    """The runs by trial number, and those that only seem to be its own (`strangers`)."""
    strangers: frozenset[int]
    """Trials whose record names this learner and whose parameters are others: copies."""
    params: Mapping[str, Any]
    """The parameters, as far as any run has suggested them, or as they were enqueued."""
    distributions: Mapping[str, Any]
    """Where those that were suggested are drawn from."""
    words: Mapping[str, str]
    """Those that were suggested as text: two learners with equal ones are one."""
    failures: Mapping[int, Failure]
    """The runs that failed, by trial number."""
    user_attrs: Mapping[str, Any]
    """User attributes that the runs have left; later runs are given them."""
    constraints: Mapping[str, Any]
    """The values of its constraints, as Optuna has them; a learner that violates one is no
    answer, and gets no more data."""
    curve: LearningCurve
    """The learning curve, dropped or not."""
    key: str
    """The parameters as text, equal for learners that are one; empty without any."""
    marks: frozenset[str]
    """Under what it is found among others: its key, `BLANK`, `FAILING`."""
    examples: int
    """Examples that its runs were trained on."""
    seconds: float
    """Seconds of these trainings, as far as they were measured."""


def merged(
    learner: int, runs: Mapping[int, Facts], ruled_out: str, well: frozenset[str]
) -> Learner:
    """Return what the runs of a learner say together, whatever order they are given in.

    Args:
        learner: its id.
        runs: by trial number, all that name it.
        ruled_out: why the policy drops it, empty if it does not.
        well: the workers that have trained any learner.
    """
    own: list[Facts] = []
    words: dict[str, str] = {}
    # The first run goes first, as it was the one proposed; then those that resumed it.
    for trial in sorted(runs.values(), key=lambda trial: (trial.number != learner, trial.number)):
        if all(words.get(name, text) == text for name, text in trial.words.items()):
            own.append(trial)
            words = {**words, **trial.words}
    # Of what is noted the last word counts; all else was first said by whoever knew it first.
    params, seen = _union(own, "params"), _union(own, "counted")
    constraints = _union(own[::-1], "constraints")
    failures = {trial.number: trial.failure for trial in own if trial.failure is not None}
    enqueued = own[0].enqueued or {}

    curve = LearningCurve(learner, (), ruled_out, params, "ruled out")
    curve = curve.extended(*[seen[size] for size in sorted(seen)])
    if reason := violation(constraints):
        curve = curve.drop(reason, "infeasible")
    if reason := reason_to_drop(failures, well):
        curve = curve.drop(reason, curve.cause or "failed")
    # Without parameters it is like no other: who asks for none trains something else each time.
    key = repr(sorted(words.items())) if words else ""
    is_blank = not (params or enqueued or seen)
    return Learner(
        runs=runs,
        strangers=frozenset(runs).difference([trial.number for trial in own]),
        params={**enqueued, **params},
        distributions=_union(own, "distributions"),
        words=words,
        failures=failures,
        user_attrs=_union(own[::-1], "user_attrs"),
        constraints=constraints,
        curve=curve,
        key=key,
        marks=frozenset(filter(None, (key, BLANK * is_blank, FAILING * bool(failures)))),
        examples=sum([trial.examples for trial in own]),
        seconds=math.fsum([trial.seconds for trial in own]),
    )


def _union(trials: list[Facts], name: str) -> dict[Any, Any]:
    """Return what trials say together under a field; the first that names a thing counts."""
    if len(trials) == 1:  # as of most learners: it takes a third of the time
        return {**getattr(trials[0], name)}
    united: dict[Any, Any] = {}
    for trial in trials:
        united = {**united, **getattr(trial, name), **united}
    return united


def violation(constraints: Mapping[str, Any]) -> str:
    """Return which constraint is violated, by Optuna's rule; empty if none is.

    >>> violation({"constraints": [-1.0, 0.5]}), violation({"constraints:seconds": 0.0})
    ('infeasible: constraint 1 is 0.5, above 0', '')
    """
    for name, stored in constraints.items():
        values = {name.partition(":")[2]: stored}
        if name == CONSTRAINTS:
            values = {str(place): value for place, value in enumerate(stored or ())}
        for which, value in values.items():
            if value > 0:
                return f"infeasible: constraint {which} is {value:.6g}, above 0"
    return ""


def reason_to_drop(failures: Mapping[int, Failure], well: Collection[str] = ()) -> str:
    """Return why a learner with these failures, by trial, is dropped; empty while it is not.

    Args:
        failures: of the learner, by trial.
        well: the workers that have trained any learner.

    >>> failures = {3: Failure(500, "ValueError: bad"), 5: Failure(500, "MemoryError")}
    >>> reason_to_drop(failures)
    'failed 2 times at 500 examples: MemoryError'
    """
    for failure in failures.values():
        if failure.is_final:
            return failure.error
    if len(failures) < MAX_FAILURES:
        return ""
    counts = Counter(failure.size for failure in failures.values())
    for size in sorted(size for size, times in counts.items() if times >= MAX_FAILURES):
        there = [trial for trial in failures if failures[trial].size == size]
        n_of_sick = sum(bool(well) and failures[i].worker not in ("", *well) for i in there)
        if len(there) - n_of_sick < MAX_FAILURES and len(there) < MAX_FAILURES_OF_SICK:
            continue
        last = failures[max(there)]
        error = last.error and f": {last.error}"
        workers = {failures[trial].worker for trial in there if failures[trial].worker}
        alone = ", only one worker tried" if len(workers) == 1 else ""
        return f"failed {len(there)} times at {size:,} examples{alone}{error}"
    return ""
