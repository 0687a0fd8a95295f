"""A learner: what its runs say together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import TypeVar

from optuna_daub.core.curve import LearningCurve
from optuna_daub.study.failures import reason_to_drop
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Failure
from optuna_daub.study.records import violation


BLANK, FAILING = "blank", "failing"
"""Marks of learners (`Learner.is_blank`), and of those of which a run has failed."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Learner:
    """What all runs of a learner say together."""

    runs: Mapping[int, Facts]
    """Its runs, by trial number, and those that only seem to be (`strangers`)."""
    strangers: frozenset[int]
    """Trials whose record names this learner and whose parameters are others: copies."""
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
    key: str
    """What two learners with the same parameters have in common; empty without any."""
    is_blank: bool
    """Whether it is a mere claim, neither enqueued nor given any parameter or score."""
    examples: int
    """Examples that its runs were trained on."""
    seconds: float
    """What that took, as far as it was measured."""

    @property
    def marks(self) -> list[str]:
        """Under what it is found among others: its key, `BLANK`, `FAILING`."""
        # Learners without a key share none: who asks for no parameter trains something else.
        return [m for m in (self.key, BLANK * self.is_blank, FAILING * bool(self.failures)) if m]


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
    own: list[Facts] = []
    words: dict[str, str] = {}
    # The first run goes first, as it was the one proposed; then those that resumed it.
    for trial in sorted(runs.values(), key=lambda trial: (trial.number != learner, trial.number)):
        if all(words.get(name, text) == text for name, text in trial.words.items()):
            own.append(trial)
            words = _union([words, trial.words])
    distributions = _union([trial.distributions for trial in own])
    params = _union([trial.params for trial in own])
    seen = _union([trial.counted for trial in own])
    failures = {trial.number: trial.failure for trial in own if trial.failure is not None}
    last_first = own[::-1]  # of what is noted the last word counts, not the first
    constraints = _union([trial.constraints for trial in last_first])
    enqueued = (runs[learner].enqueued if learner in runs else None) or {}

    curve = LearningCurve(learner, (), ruled_out, params, "ruled out")
    curve = curve.extended(*[seen[size] for size in sorted(seen)])
    if reason := violation(constraints):
        curve = curve.drop(reason, "infeasible")
    if reason := reason_to_drop(failures, well):
        curve = curve.drop(reason, curve.cause or "failed")
    return Learner(
        runs=runs,
        strangers=frozenset(runs).difference([trial.number for trial in own]),
        params={**enqueued, **params},
        distributions=distributions,
        words=words,
        failures=failures,
        user_attrs=_union([trial.user_attrs for trial in last_first]),
        constraints=constraints,
        curve=curve,
        key=repr(sorted(words.items())) if words else "",
        is_blank=not (params or enqueued or seen),
        examples=sum([trial.examples for trial in own]),
        seconds=math.fsum([trial.seconds for trial in own]),
    )


def _union(mappings: list[Mapping[_Key, _Value]]) -> dict[_Key, _Value]:
    """Return what the mappings say together; where two name the same, the earlier one counts."""
    if len(mappings) == 1:  # of most learners, and most of the time that a study takes to be read
        return {**mappings[0]}
    united: dict[_Key, _Value] = {}
    for mapping in mappings:
        united = {**united, **mapping, **united}
    return united
