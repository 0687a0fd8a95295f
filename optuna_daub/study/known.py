"""Knowledge of a study, computed from its trials by pure functions.

`Known` is a frozen value. `with_trials` unites facts by learner and trial, so their order does not
matter and nothing counts twice. Optuna freezes finished trials, so these are added for good.
Unfinished trials are added anew at every look (`worker.Worker.look`). So a claim that was
withdrawn is simply absent at the next look. Only claims beyond `n_learners` that nobody holds are
taken out (`without_surplus`). Larger scores are better.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import cached_property
from typing import Any

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.space import Space
from optuna_daub.study.learner import Learner
from optuna_daub.study.learner import merged
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Run
from optuna_daub.study.spaces import widened


MOST_REPEATS = 10
"""Number of repeated proposals in a row that exhaust the base sampler. On a space of a few points
it would repeat known learners for ever. Not tuned."""


@dataclass(frozen=True)
class Known:
    """The learners of a study, its running trials, and its learners to come."""

    learners: Mapping[int, Learner] = field(default_factory=dict)
    """All started learners by id, in no order; `curves` is in order."""
    curves: Curves = field(default_factory=Curves)
    """Their learning curves."""
    space: Space = Space()  # noqa: RUF009 - a frozen value
    """Parameters of all learners, each with the widest range that any learner had."""
    latest: Mapping[str, tuple[int, Any]] = field(default_factory=dict)
    """Latest learner that has each parameter, and its distribution there, by name."""
    spent: Cost = Cost()  # noqa: RUF009 - a frozen value
    """Examples and seconds of all trainings."""
    unfinished: Mapping[int, Facts] = field(default_factory=dict)
    """Running and waiting trials by number."""
    newest: tuple[int, int | None, str] = (-1, 0, "")
    """Number of the newest run, its sampler's `n_learners`, and the text of what that sampler
    fixes (`exploring.fixed_text`). `n_learners` is None in an open pool, and 0 before any run, so
    that nothing may be proposed."""
    replaced: frozenset[int] = frozenset()
    """Trials that were taken from the queue and abandoned; their parameters are queued again."""
    exhausted: frozenset[str] = frozenset()
    """The same texts of base samplers that had nothing left to propose."""
    last_trained: int = -1
    """Largest number of a trial that has trained anything; -1 before any."""
    idle: Mapping[int, Run] = field(default_factory=dict)
    """Idle trials after `last_trained`, by number."""
    alone: Curves = field(default_factory=Curves)
    """Trials of other samplers, each as a learner."""
    best_alone: tuple[tuple[float, int], ...] = ()
    """The two best scores in `alone`, with their trials: the best is compared with the second."""
    drops: Mapping[int, str] = field(default_factory=dict)
    """Reasons why the policy rules learners out, by learner."""
    well: frozenset[str] = frozenset()
    """Workers that have trained something, so failures there are not their fault."""
    given_up: frozenset[int] = frozenset()
    """Trials whose learner others have taken over; their later reports do not count."""
    orphans: Mapping[int, Mapping[int, Facts]] = field(default_factory=dict)
    """Runs of learners whose first trial was not read yet, by learner and trial number. Such a
    record is a copy, or its trial waited, and then resumed a learner that had started later."""

    def with_trials(self, trials: Iterable[Facts]) -> Known:
        """Return the knowledge with these trials, at a cost that grows with their number."""
        trials = [*trials]
        own = [(trial, trial.assigned) for trial in trials if trial.assigned is not None]
        trained = {
            t.number: run.worker for t, run in own if run.learner is not None and t.observations
        }
        last, well = max([self.last_trained, *trained]), self.well.union(trained.values())
        idle = {**self.idle, **_idle(own)}
        newest = [self.newest, *((t.number, run.n_learners, run.fixed) for t, run in own)]
        given_up = self.given_up.union(t.number for t in trials if t.is_given_up)
        made, orphans = dict[int, Learner](), {**self.orphans}
        for i, news in self._told(trials, well).items():
            runs = {**self._runs_of(i), **news}
            # A learner exists once its first trial is known. It stays one after others took it
            # over, even if its first worker returns and stores that it stepped back.
            if i in runs or i in given_up:
                made[i] = merged(i, runs, self.drops.get(i, ""), well)
                orphans.pop(i, None)
            else:
                orphans[i] = runs
        return replace(
            self._with_learners(made)._with_alone(t for t in trials if t.assigned is None),
            unfinished={**self.unfinished, **{t.number: t for t in trials if not t.is_finished}},
            newest=max(newest, key=lambda each: each[0]),
            replaced=self.replaced.union(t.replaces for t in trials if t.replaces is not None),
            exhausted=self.exhausted.union(run.fixed for t, run in own if t.is_exhausted),
            last_trained=last,
            idle={n: run for n, run in idle.items() if n > last},
            well=well,
            given_up=given_up,
            orphans=orphans,
        )

    def _told(self, trials: Iterable[Facts], well: frozenset[str]) -> dict[int, dict[int, Facts]]:
        """Return the learners to merge anew, with their new runs."""
        again = [trial.number for trial in trials if trial.number in self.orphans]
        if well != self.well:  # failures at other workers count more once these have trained
            again += [i for i, one in self.learners.items() if one.failures]
        told = {i: dict[int, Facts]() for i in again}
        for trial in trials:
            if trial.learner is not None:
                told.setdefault(trial.learner, {})[trial.number] = trial
        return told

    def ruling_out(self, drops: Mapping[int, str]) -> Known:
        """Return the knowledge if exactly these learners are ruled out."""
        made = {
            i: merged(i, self.learners[i].runs, drops.get(i, ""), self.well)
            for i in {*drops, *self.drops}
            if i in self.learners and drops.get(i) != self.drops.get(i)
        }
        return replace(self._with_learners(made), drops={**drops})

    def _runs_of(self, learner: int) -> Mapping[int, Facts]:
        """Return the trials that name a learner. Its first trial may not have been read yet."""
        known = self.learners.get(learner)
        return self.orphans.get(learner, {}) if known is None else known.runs

    def _with_learners(self, made: Mapping[int, Learner]) -> Known:
        """Return the knowledge with these learners in place of their earlier states."""
        before, now = [self.learners[i] for i in made if i in self.learners], [*made.values()]
        latest = {**self.latest}
        for i, one in made.items():  # an earlier learner may be read later, or be resumed
            for name, distribution in one.distributions.items():
                if name not in latest or i >= latest[name][0]:
                    latest[name] = i, distribution
        unseen = [
            x.distributions for x in now if not x.distributions.items() <= self.drawn.items()
        ]
        examples = sum([x.examples for x in now]) - sum([x.examples for x in before])
        seconds = [*[x.seconds for x in now], *[-x.seconds for x in before]]
        spent = Cost(self.spent.examples + examples, math.fsum([self.spent.seconds, *seconds]))
        return replace(
            self,
            learners={**self.learners, **made},
            curves=_put(self.curves, [one.curve for one in now]),
            space=widened(self.space, unseen) if unseen else self.space,
            latest=latest,
            spent=spent,
        )

    def _with_alone(self, trials: Iterable[Facts]) -> Known:
        """Return the knowledge with these trials of other samplers, or of other studies.

        Running copies of these are left out: a worker may still claim them.
        """
        curves, best = [], {number: score for score, number in self.best_alone}
        for trial in trials:
            seen = [x for x in trial.observations.values() if x.is_finite]
            scores = [x.score for x in seen] + [x for x in (trial.value,) if x is not None]
            if scores and (trial.run is None or trial.is_finished):
                curves.append(LearningCurve(trial.number).extended(*seen))
                best[trial.number] = max(scores)
        two = heapq.nlargest(2, ((score, number) for number, score in best.items()))
        return replace(self, alone=_put(self.alone, curves), best_alone=tuple(two))

    def without_surplus(self) -> Known:
        """Return the knowledge without claims that nobody holds and that exceed `n_learners`.

        If two workers claim the last place at once, one of them steps back, unless it dies first.
        Only unfinished trials tell who holds a claim, so this comes after them at every look.
        """
        surplus = len(self.learners) - (self.n_learners or len(self.learners))
        if surplus <= 0:
            return self
        curves, learners, busy = self.curves, {**self.learners}, self.busy()
        left = [i for i, one in learners.items() if one.is_blank and i not in busy]
        for learner in sorted(left)[-surplus:]:
            curves = curves.remove(learner)
            del learners[learner]
        return replace(self, learners=learners, curves=curves)

    # Questions

    @property
    def n_learners(self) -> int | None:
        """Number of learners that the newest sampler was asked for; None for no limit."""
        return self.newest[1]

    @cached_property
    def runs(self) -> Mapping[int, Run]:
        """Runs of the running trials by number, without those that other workers took over."""
        found = self.unfinished.items()
        return {n: t.assigned for n, t in found if t.assigned and not t.is_given_up}

    @cached_property
    def drawn(self) -> Mapping[str, Any]:
        """Distribution of each parameter by name, as Optuna has it; that of the latest learner."""
        return {name: distribution for name, (_, distribution) in self.latest.items()}

    @property
    def is_begun(self) -> bool:
        """True once any learner was trained."""
        return self.last_trained >= 0

    def is_copy(self, number: int, run: Run) -> bool:
        """Return whether a trial's record was copied, from another study or by a retry."""
        if run.is_copy_in(number) or run.learner is None:
            return run.is_copy_in(number)
        learner = self.learners.get(run.learner)
        return number in (learner.strangers if learner else self.orphans.get(run.learner, ()))

    def is_done(self, learner: int, full_size: int) -> bool:
        """Return whether a learner has a finite score on all the data."""
        curve = self.curves[learner]
        return curve.size == full_size and curve.observations[-1].is_finite

    def is_given_up(self, number: int) -> bool:
        """Return whether other workers have taken over a running trial's learner."""
        return number in self.unfinished and self.unfinished[number].is_given_up

    def busy(self, but_for: int | None = None) -> frozenset[int]:
        """Return the learners that trials other than `but_for` are running."""
        runs = self.runs.items()
        return frozenset(r.learner for n, r in runs if n != but_for and r.learner is not None)

    def trained_by(self, number: int | None) -> int | None:
        """Return the learner that running trial `number` has trained, or None."""
        run = None if number is None else self.runs.get(number)
        if run is None or run.learner is None:
            return None
        return run.learner if self.curves[run.learner].size > run.inherited else None

    def queued(self, state: str) -> list[int]:
        """Return the enqueued trials in this state that have no learner yet."""
        found = [t for t in self.unfinished.values() if t.state == state and t.run is None]
        return sorted({t.number for t in found if t.enqueued is not None} - self.replaced)

    def n_queued(self, number: int | None) -> int:
        """Return the number of enqueued learners that trials other than `number` will start."""
        taken = sum(other != number for other in self.queued("running"))
        return taken + len(self.queued("waiting"))

    @property
    def repeats(self) -> int:
        """Largest number of repeated proposals that a worker made since the last training.

        Workers that were started together with one seed all repeat the first one's proposals.
        """
        repeating = Counter(run.worker for run in self.idle.values() if run.repeats is not None)
        return max(repeating.values(), default=0)

    def declined(self, since: int) -> int:
        """Return the number of learners declined in a row, from trial `since` on."""
        return sum(run.is_declined for number, run in self.idle.items() if number >= since)

    @property
    def is_exhausted(self) -> bool:
        """True once the newest sampler has nothing left to propose.

        One that fixes other parameters may have more.
        """
        return not self.exhausted.isdisjoint({"", self.newest[2]})

    @property
    def has_nothing_new(self) -> bool:
        """True if the base sampler has nothing left to propose, or only repeats itself."""
        return self.is_exhausted or self.repeats >= MOST_REPEATS

    def has_room(self, number: int) -> bool:
        """Return whether trial `number` may start a learner that was not enqueued."""
        to_come = self.to_come(number)
        return to_come is None or to_come > self.n_queued(number)

    def to_come(self, number: int | None) -> int | None:
        """Return the number of learners to come, as trial `number` sees it. None without a
        limit."""
        queued = self.n_queued(number)
        if self.has_nothing_new:
            return queued
        if self.n_learners is None:
            return None
        return max(queued, self.n_learners - len(self.learners))

    def too_many(self, learner: int) -> tuple[int, ...] | None:
        """Return the new learners that must step back if `learner` starts.

        Empty if there is room for all; None if it must step back itself.
        """
        others = [other for other in self.learners if other != learner]
        if self.n_learners is None or len(others) < self.n_learners:
            return ()
        if sum(other < learner for other in others) >= self.n_learners:
            return None
        return tuple(i for i in others if i > learner and not self.curves[i].observations) or None

    def starter(self, learner: int) -> str | None:
        """Return the worker that started a learner; None if that is not known."""
        first = self._runs_of(learner).get(learner)
        return first.assigned.worker if first and first.assigned else None

    def alike(self, learner: int) -> frozenset[int]:
        """Return the other learners with the same parameters."""
        key = self.learners[learner].key
        same = frozenset(i for i, one in self.learners.items() if key and one.key == key)
        return same - {learner}

    def twin(self, learner: int) -> int | None:
        """Return the learner that stands for all with the same parameters; None for itself.

        It has most data, and in a tie the lowest id, so every process names the same.
        """
        same = {learner, *self.alike(learner)}
        first = max(same, key=lambda i: (self.learners[i].curve.size, -i))
        return first if first != learner else None

    def forerunner(self, learner: int, settled: Collection[int] = ()) -> int | None:
        """Return the learner with equal parameters that goes before a new one, or None.

        A learner goes first if it has a score, is settled (in the storage, or in this process by
        `settled`), has a lower id, or is past its first run.
        """
        ahead = {}
        for other in self.alike(learner):
            run, size = self.runs.get(other), self.curves[other].size
            is_settled = other in settled or (run is not None and run.is_settled)
            if size or is_settled or other < learner or run is None:
                ahead[other] = size, is_settled, -other
        return max(ahead, key=ahead.__getitem__, default=None)

    def is_contested(self, learner: int, own: Collection[int]) -> bool:
        """Return whether another process runs a new learner with the same parameters.

        The lock of this process keeps its `own` new learners apart.
        """
        new = {n for n, run in self.runs.items() if run.learner == n}
        return not self.alike(learner).isdisjoint(new.difference(own))

    def failed_by(self, worker: str) -> frozenset[int]:
        """Return the learners whose next training has failed at this worker."""
        return frozenset(
            i
            for i, one in self.learners.items()
            if any(x.worker == worker and x.size > one.curve.size for x in one.failures.values())
        )


def _put(curves: Curves, news: list[LearningCurve]) -> Curves:
    if len(news) > 1 and not curves:  # 20,000 curves one by one take ten times as long
        return Curves(news)
    for curve in news:
        curves = curves.put(curve)
    return curves


def _idle(own: Iterable[tuple[Facts, Run]]) -> dict[int, Run]:
    """Return the idle runs, by trial. A repeat that was enqueued is not the sampler's."""
    return {
        trial.number: run if trial.enqueued is None else replace(run, repeats=None)
        for trial, run in own
        if run.learner is None
    }
