"""A learner: what its runs say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from optuna_daub.core.curve import LearningCurve
from optuna_daub.study.failures import reason_to_drop
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import violation


@dataclass(frozen=True, slots=True)
class Learner:
    """What all runs of a learner say together."""

    runs: Mapping[int, Facts]
    """Its runs, by trial number, and those that only seem to be (`strangers`)."""
    params: Mapping[str, Any]
    """Its parameters, as far as any run has suggested them, or as they were enqueued."""
    distributions: Mapping[str, Any]
    """Where those that were suggested are drawn from."""
    words: Mapping[str, str]
    """Those that were suggested as text: two learners with equal ones are one."""
    failures: Mapping[int, Failure]
    """Its runs that failed, by trial number."""
    user_attrs: Mapping[str, Any]
    """What its runs have noted; later runs are given it."""
    constraints: Mapping[str, Any]
    """The values of its constraints, as Optuna has them; a learner that violates one is no
    answer, and gets no more data."""
    curve: LearningCurve
    """Its learning curve, dropped or not."""
    strangers: frozenset[int]
    """Trials whose record names this learner and whose parameters are others: copies."""

    key: str
    """What two learners with the same parameters have in common; empty without any."""
    is_blank: bool
    """Whether it is a mere claim, neither enqueued nor given any parameter or score."""


def merged(
    learner: int, runs: Mapping[int, Facts], ruled_out: str, well: frozenset[str]
) -> Learner:
    """Return what the runs of a learner say together, whatever order they are given in.

    Args:
        learner: its id.
        runs: by trial number, all that name it.
        ruled_out: why the policy drops it, empty where it does not.
        well: the workers that have trained any learner.
    """
    params: dict[str, Any] = {}
    words: dict[str, str] = {}
    distributions: dict[str, Any] = {}
    seen: dict[int, Any] = {}
    failures: dict[int, Failure] = {}
    user_attrs: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    strangers: set[int] = set()
    if learner in runs:
        params.update(runs[learner].enqueued or {})
    # The first run goes first, as it was the one proposed; then those that resumed it.
    for number in sorted(runs, key=lambda number: (number != learner, number)):
        trial = runs[number]
        assert trial.run is not None
        pairs = trial.words.items()
        if number != learner and any(words.get(n, word) != word for n, word in pairs):
            strangers.add(number)
            continue
        # It may be another point of the space by now than others train as this learner.
        is_late = number == learner and bool(trial.too_late)
        for name, distribution in trial.distributions.items():
            if name not in words and not (is_late and name in trial.too_late):
                params[name], distributions[name] = trial.params[name], distribution
                words[name] = trial.words[name]
        if is_late:
            continue
        user_attrs |= trial.user_attrs
        constraints |= trial.constraints
        if trial.failure is not None:
            failures[number] = trial.failure
        for size, observation in trial.observations.items():
            if size > trial.run.full_size or (trial.is_lost and size == trial.run.full_size):
                continue
            seen.setdefault(size, replace(observation, order=number + 1))
    known = {name: params[name] for name in distributions}
    curve = LearningCurve(learner, (), ruled_out, known, "ruled out")
    if seen:
        curve = curve.extended(*(seen[size] for size in sorted(seen)))
    if constraints and (reason := violation(constraints)):
        curve = curve.drop(reason, "infeasible")
    if failures and (reason := reason_to_drop(failures, well)):
        curve = curve.drop(reason, curve.cause or "failed")
    return Learner(
        runs=runs,
        params=params,
        distributions=distributions,
        words=words,
        failures=failures,
        user_attrs=user_attrs,
        constraints=constraints,
        curve=curve,
        strangers=frozenset(strangers),
        key=repr(sorted(words.items())) if words else "",
        is_blank=not (params or curve.observations),
    )
