"""A learner as the union of its runs, and the rules that drop it."""

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


MAX_FAILURES = 2
"""Number of errors of a learner at one size after which it is dropped."""

MAX_FAILURES_UNPROVEN = 4
"""The same number if errors of workers that never succeeded count too; others have succeeded."""


@dataclass(frozen=True, slots=True)
class Learner:
    """The union of all facts about a learner."""

    runs: Mapping[int, Facts]
    """Runs by trial number, including those that only seem to be its own (`strangers`)."""
    strangers: frozenset[int]
    """Trials whose record names this learner but whose parameters differ: copies."""
    params: Mapping[str, Any]
    """Parameters that its runs suggested, or that it was enqueued with."""
    distributions: Mapping[str, Any]
    """Distributions of the suggested parameters."""
    words: Mapping[str, str]
    """Suggested parameters as text; two learners with equal texts are one."""
    failures: Mapping[int, Failure]
    """Failures of its runs, by trial number."""
    user_attrs: Mapping[str, Any]
    """User attributes that its runs have set; its next run inherits them."""
    constraints: Mapping[str, Any]
    """Values of its constraints, as Optuna stores them. A learner that violates one gets no more
    data and cannot be the best."""
    curve: LearningCurve
    """Learning curve, which also says whether the learner was dropped."""
    key: str
    """All parameters as one text, equal for learners that are one; empty without parameters."""
    is_blank: bool
    """True if it is only claimed: without parameters, scores or a place in the queue."""
    examples: int
    """Number of examples that its runs were trained on, summed over all trainings."""
    seconds: float
    """Seconds of these trainings; those not measured count as 0."""


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """Return the first name with different values in two points, None if there is none.

    A step that is added to a range later, or taken from it, changes the last digits only.

    >>> differing({"x": "0.30000000000000004"}, {"x": "0.3"}), differing({"x": "3"}, {"x": "4"})
    (None, 'x')
    """
    for name in [name for name in one if one[name] != other.get(name, one[name])]:
        try:
            if math.isclose(float(one[name]), float(other[name]), rel_tol=1e-11):
                continue
        except ValueError:  # no numbers
            pass
        return name
    return None


def merged(
    learner: int, runs: Mapping[int, Facts], ruled_out: str, well: frozenset[str]
) -> Learner:
    """Return the union of a learner's runs, which does not depend on their order.

    Args:
        learner: id of the learner.
        runs: all trials that name it, by number.
        ruled_out: reason why the policy drops it; empty if it does not.
        well: ids of workers that have trained any learner.
    """
    own: list[Facts] = []
    words: dict[str, str] = {}
    # The first run comes first, since its parameters were proposed; then the resumed ones.
    for trial in sorted(runs.values(), key=lambda trial: (trial.number != learner, trial.number)):
        joined = {**words, **trial.words}
        if joined == {**trial.words, **words} or differing(words, trial.words) is None:
            own.append(trial)
            words = joined
    # Of user attributes and constraints the latest value counts, of everything else the first.
    params, seen = _union(own, "params"), _union(own, "counted")
    constraints = _union(own[::-1], "constraints")
    failures = {trial.number: trial.failure for trial in own if trial.failure is not None}
    enqueued = own[0].enqueued or {}

    violated, failed = violation(constraints), reason_to_drop(failures, well)
    observations = tuple([seen[size] for size in sorted(seen)])
    curve = LearningCurve(learner, observations, ruled_out, params, "ruled out", len(failures))
    curve = curve.drop(violated, "infeasible") if violated else curve
    curve = curve.drop(failed, curve.cause or "failed") if failed else curve
    return Learner(
        runs=runs,
        strangers=frozenset(runs).difference([trial.number for trial in own]),
        params={**enqueued, **params},
        distributions=_union(own, "distributions"),
        words=words,
        failures=failures,
        user_attrs=_union(own[::-1], "user_attrs"),
        constraints=constraints,
        # Without parameters no two learners are the same: the objective may train anything.
        key=repr(sorted(words.items())) if words else "",
        is_blank=not (params or enqueued or seen),
        examples=sum([trial.examples for trial in own]),
        seconds=math.fsum([trial.seconds for trial in own]),
        curve=curve,
    )


def _union(trials: list[Facts], name: str) -> dict[Any, Any]:
    """Return the union of a field of trials. If several have an entry, the first one counts."""
    if len(trials) == 1:  # the usual case, in a third of the time
        return {**getattr(trials[0], name)}
    united: dict[Any, Any] = {}
    for trial in trials:
        # Twice: first for the order of names, last so the first trial's entries count.
        united = {**united, **getattr(trial, name), **united}
    return united


def violation(constraints: Mapping[str, Any]) -> str:
    """Return the violated constraint as a reason, by Optuna's rule.

    Empty if none is violated.

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
    """Return the reason why a learner with these failures is dropped.

    Empty if it is not.

    Args:
        failures: failures of the learner, by trial.
        well: ids of workers that have trained any learner.

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
        n_unproven = sum(bool(well) and failures[i].worker not in ("", *well) for i in there)
        if len(there) - n_unproven < MAX_FAILURES and len(there) < MAX_FAILURES_UNPROVEN:
            continue
        last = failures[max(there)]
        error = last.error and f": {last.error}"
        workers = {failures[trial].worker for trial in there if failures[trial].worker}
        alone = ", only one worker tried" if len(workers) == 1 else ""
        return f"failed {len(there)} times at {size:,} examples{alone}{error}"
    return ""
