"""What is known of a study: a pure fold of what its trials say.

`Known` is a frozen value. `with_trials` adds facts by learner and trial, so that their order does
not matter, and nothing counts twice. Optuna freezes finished trials: those are folded for good.
Unfinished ones are laid on top at every look (`worker.Worker.look`), so that what is withdrawn is
not there next time, and nothing is ever taken out again.

Scores are signed on the way in, so that larger is better. On the way out the code that hands one
to the user or to the base sampler signs it back (`Worker.sign`), and `messages` does in sentences.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace

from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.pool import Cost
from optuna_daub.core.pool import Curves
from optuna_daub.core.space import Space
from optuna_daub.study.learner import Learner
from optuna_daub.study.learner import merged
from optuna_daub.study.records import Facts
from optuna_daub.study.records import Run
from optuna_daub.study.records import violation
from optuna_daub.study.shared import Shared
from optuna_daub.study.spaces import widened


MOST_REPEATS = 10
"""Proposals in a row that repeat a known learner, after which the base sampler counts as having
nothing new: on a space of a few points it would repeat itself for ever."""


@dataclass(frozen=True)
class Known:
    """The learners of a study, the runs in flight, and the new learners to come."""

    learners: Shared[int, Learner] = field(default_factory=Shared)
    """Every learner begun, by id, in no order; `curves` has them in the order of their ids."""
    curves: Curves = field(default_factory=Curves)
    """Their learning curves."""
    space: Space = Space()  # noqa: RUF009 - a frozen value
    """Distributions of the parameters of all learners."""
    spent: Cost = Cost()  # noqa: RUF009 - a frozen value
    """What all trainings took."""
    unfinished: Mapping[int, Facts] = field(default_factory=dict)
    """Running and waiting trials by number."""
    runs: Mapping[int, Run] = field(default_factory=dict)
    """What each running trial was assigned, by number, unless it was given up."""
    n_learners: int | None = 0
    """How many learners the newest sampler was asked for; None for an open pool, 0 where no
    sampler of ours has begun a trial, so that nothing may be proposed."""
    copies: frozenset[int] = frozenset()
    """Trials whose records speak of learners of another study, or of a run that was retried."""
    replaced: frozenset[int] = frozenset()
    """Trials that were taken from the queue and left, and their like enqueued anew."""
    is_exhausted: bool = False
    """Whether the base sampler had nothing left to propose."""
    last_trained: int = -1
    """The highest number of a trial that has trained anything."""
    repeats: frozenset[int] = frozenset()
    """Idle trials after that one for which a known learner was proposed once more."""
    declined: frozenset[int] = frozenset()
    """Idle trials after that one whose parameters the policy declined."""
    alone: Curves = field(default_factory=Curves)
    """Trials of other samplers, each as a learner."""
    best_alone: tuple[tuple[float, int], ...] = ()
    """The two best scores of them, with their trials: two, since one may be asking."""
    drops: Mapping[int, str] = field(default_factory=dict)
    """Why the policy rules learners out, by learner."""
    well: frozenset[str] = frozenset()
    """Workers that have trained something: what fails there is not their fault."""
    failing: frozenset[int] = frozenset()
    """Learners of which a run has failed."""
    blank: frozenset[int] = frozenset()
    """Learners without parameters and scores (`Learner.is_blank`)."""
    given_up: frozenset[int] = frozenset()
    """Trials whose learner others have taken over: it is theirs, whatever the worker writes."""
    orphans: Mapping[int, Mapping[int, Facts]] = field(default_factory=dict)
    """Runs of learners whose first trial was not read yet, by learner and number: a worker may
    wait, and then resume a learner that was begun after its own trial. Or they are copies."""
    newest_run: int = -1
    """The number of the newest run, whose record says `n_learners`."""
    _by_key: Shared[str, tuple[int, ...]] = field(default_factory=Shared)
    """Learners by `Learner.key`."""

    def with_trial(self, trial: Facts) -> Known:
        """Return what is known with one more trial (see `with_trials`)."""
        return self.with_trials((trial,))

    def with_trials(self, trials: Iterable[Facts]) -> Known:
        """Return what is known with these trials, each of which was not read before.

        The cost grows with the trials given, not with those that are known.
        """
        new = {trial.number: trial for trial in trials}
        if not new:
            return self
        ours = {n: trial for n, trial in new.items() if trial.run and not trial.is_foreign}
        ours = {n: trial for n, trial in ours.items() if trial.state != "waiting"}
        runs = {n: trial.run for n, trial in ours.items() if trial.run}
        given_up = self.given_up | {n for n, trial in new.items() if trial.is_given_up}

        # Which learners the news are about: their own ones, and those that waited for a trial.
        claims: dict[int, dict[int, Facts]] = {}
        for number, run in runs.items():
            if run.learner is not None:
                claims.setdefault(run.learner, {})[number] = ours[number]
        for learner in self.orphans.keys() & new.keys():
            claims.setdefault(learner, {})
        well = self.well | {run.worker for n, run in runs.items() if _trained(ours[n])}
        touched, added = dict[int, dict[int, Facts]](), dict[int, dict[int, Facts]]()
        orphans = {**self.orphans}
        for learner, of_it in claims.items():
            known = self.learners.get(learner)
            before = known.runs if known else {}
            of_it = {**orphans.pop(learner, {}), **of_it}
            added[learner] = {n: trial for n, trial in of_it.items() if n not in before}
            # Its first trial makes it one. What others took over stays one, also where its worker
            # comes back and writes that it has stepped back.
            if known or learner in of_it or learner in given_up:
                touched[learner] = {**before, **added[learner]}
            else:
                orphans[learner] = of_it
        made = {
            learner: merged(learner, of_it, self.drops.get(learner, ""), well)
            for learner, of_it in touched.items()
        }
        paid = [added[i][n] for i, one in made.items() for n in added[i].keys() - one.strangers]
        spent = Cost(
            self.spent.examples + sum([trial.examples for trial in paid]),
            self.spent.seconds + math.fsum([trial.seconds for trial in paid]),
        )
        if well != self.well:  # a failure elsewhere weighs more once its worker has trained
            for learner in self.failing - made.keys():
                known = self.learners[learner]
                made[learner] = merged(learner, known.runs, self.drops.get(learner, ""), well)
        strangers = {n for learner in made.values() for n in learner.strangers}
        strangers |= {n for of_it in orphans.values() for n in of_it}
        foreign = {n for n, trial in new.items() if trial.is_foreign}
        adopted = {n for learner in made for n in self.orphans.get(learner, ())}

        blank = self.blank - made.keys() | {i for i, learner in made.items() if learner.is_blank}
        trained = [n for n, trial in ours.items() if _trained(trial)]
        last = max(trained, default=self.last_trained)
        last = max(last, self.last_trained)
        repeats = {n for n, run in runs.items() if run.repeats is not None}
        declined = {n for n, run in runs.items() if run.is_declined}
        newest = max(runs, default=-1)
        is_newer = newest >= self.newest_run and newest >= 0

        others = (t for t in new.values() if t.run is None or (t.is_foreign and t.is_finished))
        found = [t for t in others if t.observations or t.value is not None]
        alone, best_alone = self._with_alone(found)
        return replace(
            self,
            learners=self.learners.with_items(made),
            curves=_put(self.curves, [learner.curve for learner in made.values()]),
            space=widened(self.space, [learner.distributions for learner in made.values()]),
            spent=spent,
            unfinished={**self.unfinished, **{n: t for n, t in new.items() if not t.is_finished}},
            runs={**self.runs, **{n: r for n, r in runs.items() if _goes_on(ours[n])}},
            n_learners=runs[newest].n_learners if is_newer else self.n_learners,
            newest_run=newest if is_newer else self.newest_run,
            copies=(self.copies - adopted) | foreign | strangers if foreign or strangers or adopted
            else self.copies,
            replaced=self.replaced.union(
                t.replaces for t in new.values() if t.replaces is not None
            ),
            is_exhausted=self.is_exhausted or any(t.is_exhausted for t in ours.values()),
            last_trained=last,
            repeats=frozenset(n for n in self.repeats | repeats if n > last),
            declined=frozenset(n for n in self.declined | declined if n > last),
            alone=alone,
            best_alone=best_alone,
            well=well,
            blank=frozenset(blank),
            failing=self.failing | {i for i, learner in made.items() if learner.failures},
            given_up=given_up,
            orphans=orphans,
            _by_key=self._keyed(made),
        )._without_surplus()  # fmt: skip

    def _without_surplus(self) -> Known:
        """Return what is known without claims that nobody holds and that there is no room for.

        Of two workers that claim the last place at once one steps back, unless it dies before.
        """
        if not self.blank or not self.n_learners:
            return self
        if (surplus := len(self.learners) - self.n_learners) <= 0:
            return self
        left = sorted(self.blank - self.busy(), reverse=True)[:surplus]
        curves = self.curves
        for learner in left:
            curves = curves.remove(learner)
        learners = self.learners.with_items({}, without=left)
        blank, failing = self.blank - {*left}, self.failing - {*left}
        return replace(self, learners=learners, curves=curves, blank=blank, failing=failing)

    def _with_alone(self, trials: list[Facts]) -> tuple[Curves, tuple[tuple[float, int], ...]]:
        """Return the curves of other samplers' trials, and the two best of them."""
        curves, best = [], dict((n, score) for score, n in self.best_alone)
        for trial in trials:
            seen = [x for x in trial.observations.values() if x.is_finite]
            curves.append(LearningCurve(trial.number).extended(*seen))
            scores = [x.score for x in seen] + ([] if trial.value is None else [trial.value])
            if scores:
                best[trial.number] = max(scores)
        two = sorted(((score, n) for n, score in best.items()), reverse=True)[:2]
        return _put(self.alone, curves), tuple(two)

    def _keyed(self, made: Mapping[int, Learner]) -> Shared[str, tuple[int, ...]]:
        """Return which learners have the same parameters, given those that have changed."""
        changed: dict[str, tuple[int, ...]] = {}
        for i, learner in made.items():
            before, after = self.learners.get(i), learner.key
            old = "" if before is None else before.key
            if old == after:
                continue
            if old:
                others = changed.get(old, self._by_key.get(old, ()))
                changed[old] = tuple(other for other in others if other != i)
            if after:  # who asks for nothing trains something else each time
                changed[after] = (*changed.get(after, self._by_key.get(after, ())), i)
        return self._by_key.with_items(changed) if changed else self._by_key

    def ruling_out(self, drops: Mapping[int, str]) -> Known:
        """Return what is known where these learners, and no others, are ruled out."""
        changed = {i for i in {*drops, *self.drops} if drops.get(i) != self.drops.get(i)}
        made = {
            i: merged(i, self.learners[i].runs, drops.get(i, ""), self.well)
            for i in changed
            if i in self.learners
        }
        curves = _put(self.curves, [learner.curve for learner in made.values()])
        return replace(
            self, drops={**drops}, learners=self.learners.with_items(made), curves=curves
        )

    @property
    def is_begun(self) -> bool:
        """Whether any learner was trained."""
        return self.last_trained >= 0

    def is_done(self, learner: int, full_size: int) -> bool:
        """Return whether a learner was trained on all the data, with a score to show for it."""
        curve = self.curves[learner]
        return curve.size == full_size and curve.observations[-1].is_finite

    def is_feasible(self, learner: int) -> bool:
        """Return whether a learner violates no constraint, as far as it was measured."""
        return not violation(self.learners[learner].constraints)

    def is_given_up(self, number: int) -> bool:
        """Return whether others have taken a running trial's learner from it."""
        return number in self.unfinished and self.unfinished[number].is_given_up

    def busy(self, but_for: int | None = None) -> frozenset[int]:
        """Return the learners that are being run by other trials than number `but_for`."""
        runs = self.runs.items()
        return frozenset(r.learner for n, r in runs if n != but_for and r.learner is not None)

    def trained_by(self, number: int | None) -> int | None:
        """Return the learner that trial `number` has trained, None where it has trained none."""
        run = None if number is None else self.runs.get(number)
        if run is None or run.learner is None:
            return None
        return run.learner if self.curves[run.learner].size > run.inherited else None

    def queued(self, state: str) -> list[int]:
        """Return the enqueued trials in this state that were not assigned their learner yet."""
        found = (n for n, trial in self.unfinished.items() if trial.is_queued)
        return sorted(n for n in found if self.unfinished[n].state == state
                      and n not in self.replaced)  # fmt: skip

    def n_queued(self, number: int | None) -> int:
        """Return how many enqueued learners others than trial `number` will begin."""
        taken = sum(other != number for other in self.queued("running"))
        return taken + len(self.queued("waiting"))

    @property
    def has_nothing_new(self) -> bool:
        """Whether the base sampler has run out of proposals, or repeats itself."""
        return self.is_exhausted or len(self.repeats) >= MOST_REPEATS

    def has_room(self, number: int) -> bool:
        """Return whether trial `number` may begin a learner that was not enqueued."""
        if self.has_nothing_new:
            return False
        if self.n_learners is None:
            return True
        return len(self.learners) + self.n_queued(number) < self.n_learners

    def to_come(self, number: int | None) -> int | None:
        """Return how many new learners the worker of trial `number` may still see begun."""
        queued = self.n_queued(number)
        if self.has_nothing_new:
            return queued
        if self.n_learners is None:
            return None
        return max(queued, self.n_learners - len(self.learners))

    def too_many(self, number: int) -> tuple[int, ...] | None:
        """Return which new learners have to step back lest trial `number` begins one too many.

        Empty where there is room; None where it has to step back itself.
        """
        others = [learner for learner in self.learners if learner != number]
        if self.n_learners is None or len(others) < self.n_learners:
            return ()
        if sum(learner < number for learner in others) >= self.n_learners:
            return None
        return tuple(i for i in others if i > number and not self.curves[i].observations) or None

    def alike(self, learner: int) -> frozenset[int]:
        """Return the other learners with the same parameters."""
        return frozenset(self._by_key.get(self.learners[learner].key, ())) - {learner}

    def twin(self, learner: int) -> int | None:
        """Return the learner that goes first of all with the same parameters, if it is another.

        That is the one with most data, or else the lowest id: every process names the same.
        """
        same = {learner, *self.alike(learner)}
        first = max(same, key=lambda i: (self.curves[i].size, -i))
        return first if first != learner else None

    def forerunner(self, newcomer: int, settled: Collection[int] = ()) -> int | None:
        """Return the learner with the same parameters that a new one gives way to.

        That is any but those that are in their first run as well, have a higher id, no score yet,
        and are not settled.

        Args:
            newcomer: its id.
            settled: learners that this process has settled, maybe not for others to see.
        """
        ahead = {}
        for other in self.alike(newcomer):
            run, size = self.runs.get(other), self.curves[other].size
            is_settled = other in settled or (run is not None and run.is_settled)
            if size or is_settled or other < newcomer or run is None:
                ahead[other] = size, is_settled, -other
        return max(ahead, key=ahead.__getitem__, default=None)

    def is_contested(self, newcomer: int, own: Collection[int]) -> bool:
        """Return whether another process runs a new learner with the same parameters.

        Args:
            newcomer: its id.
            own: new learners of this process, of which one looks at a time, under the lock.
        """
        return any(i in self.runs and i not in own for i in self.alike(newcomer))

    def failed_by(self, worker: str) -> frozenset[int]:
        """Return the learners that a worker has failed at their next size."""
        return frozenset(
            i
            for i in self.failing
            if any(
                failure.worker == worker and failure.size > self.curves[i].size
                for failure in self.learners[i].failures.values()
            )
        )


def _trained(trial: Facts) -> bool:
    return bool(trial.observations) and trial.run is not None and trial.run.learner is not None


def _goes_on(trial: Facts) -> bool:
    return trial.state == "running" and not trial.is_given_up


def _put(curves: Curves, news: list[LearningCurve]) -> Curves:
    if not curves and len(news) > 1:  # one by one takes ten times as long for 20,000
        return Curves(news)
    for curve in news:
        curves = curves.put(curve)
    return curves
