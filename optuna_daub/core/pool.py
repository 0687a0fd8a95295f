"""Pool: everything that a decision may use, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import whole_number
from optuna_daub.core.curve import Cause
from optuna_daub.core.curve import LearningCurve
from optuna_daub.core.curve import Observation
from optuna_daub.core.once import Remembers
from optuna_daub.core.space import Numbers
from optuna_daub.core.space import Rows
from optuna_daub.core.space import Space


CHUNK = 64
"""Number of learner ids in one chunk. A new observation rebuilds one chunk, and rules are asked
again for the new curve only."""
N_QUESTIONS = 16
"""Largest number of rules whose answers the chunks of the same ids keep. A rule with other
arguments is another."""


@dataclass(frozen=True)
class Cost:
    """Cost of trainings.

    >>> Cost(500, 1.5) + Cost(1000, 2.0)
    Cost(examples=1500, seconds=3.5)
    """

    examples: int = 0
    """Training examples, summed over all trainings; at least 0."""
    seconds: float = 0.0
    """Measured seconds of training and scoring; at least 0."""

    @classmethod
    def of(cls, seen: Observation) -> Cost:
        """Return the cost of one training.

        >>> Cost.of(Observation(1000, 0.8, seconds=2.0, examples=500))
        Cost(examples=500, seconds=2.0)
        """
        examples = seen.size if seen.examples is None else seen.examples
        return cls(examples, seen.seconds or 0.0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.examples + other.examples, self.seconds + other.seconds)


class Curves(Remembers, Mapping[int, LearningCurve]):
    """Learning curves by learner, in the order of their ids: an immutable mapping.

    `put` returns a new mapping that shares all chunks but one with the old one. So a new
    observation costs no more among 20,000 learners than among 20. Use `curves.once` for answers
    that depend only on curves, and `pool.once` for those that depend on the whole pool.

    >>> before = Curves([LearningCurve(3), LearningCurve(0)])
    >>> after = before.put(LearningCurve(3, (Observation(500, 0.8),)))
    >>> [*before], before[3].size, after[3].size
    ([0, 3], 0, 500)
    """

    __slots__ = ("_chunks", "_columns", "_derived", "_learners")

    def __init__(self, curves: Iterable[LearningCurve] = ()) -> None:
        by_chunk: dict[int, dict[int, LearningCurve]] = {}
        curves = _checked(curves)
        for curve in sorted(curves, key=lambda curve: curve.learner):
            by_chunk.setdefault(curve.learner // CHUNK, {})[curve.learner] = curve
        self._chunks = {number: _Chunk(found) for number, found in by_chunk.items()}
        self._columns: dict[Hashable, Numbers] = {}
        self._derived: dict[Any, Any] = {}
        self._learners: NDArray[np.int64] | None = None

    def put(self, curve: LearningCurve) -> Curves:
        """Return the curves with `curve` in place of its learner's earlier one."""
        number = curve.learner // CHUNK
        known = self._chunks.get(number)
        before = {} if known is None else known.curves
        curves = {**before, curve.learner: curve}
        if curve.learner not in before:
            curves = dict(sorted(curves.items()))
        return self._with(number, _Chunk(curves, known))

    def remove(self, learner: int) -> Curves:
        """Return the curves without that of `learner`."""
        if learner not in self:
            raise KeyError(learner)
        number = learner // CHUNK
        kept = {**self._chunks[number].curves}
        del kept[learner]
        if kept:
            return self._with(number, _Chunk(kept, self._chunks[number]))
        return self._of({n: chunk for n, chunk in self._chunks.items() if n != number})

    @property
    def learners(self) -> NDArray[np.int64]:
        """Ids of all learners, increasing, in the order of the rows of `columns`."""
        if self._learners is None:
            parts = [chunk.learners for chunk in self._chunks.values()]
            self._learners = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return self._learners

    def columns(self, rule: Callable[..., tuple[float, ...]], *arguments: Any) -> Numbers:
        """Return `rule(curve, *arguments)` of every curve as the rows of an array.

        Args:
            rule: a function of the curve and the arguments only, which returns the same number of
                numbers for every curve; it is called once for each new curve.
            arguments: further arguments of the rule.

        >>> def facts(curve):
        ...     return curve.size, curve.score
        >>> Curves([LearningCurve(7, (Observation(500, 0.8),))]).columns(facts)
        array([[500. ,   0.8]])
        """
        question = rule, *arguments
        if question not in self._columns:
            parts = [chunk.columns(question) for chunk in self._chunks.values()]
            self._columns[question] = (
                np.concatenate(parts)
                if parts
                else np.empty((0, len(rule(LearningCurve(0), *arguments))))
            )
        return self._columns[question]

    def __getitem__(self, learner: int) -> LearningCurve:
        chunk = self._chunks.get(learner // CHUNK)
        if chunk is None:
            raise KeyError(learner)
        return chunk.curves[learner]

    def __iter__(self) -> Iterator[int]:
        for chunk in self._chunks.values():
            yield from chunk.curves

    def __len__(self) -> int:
        return len(self.learners)

    def __eq__(self, other: object) -> bool:
        # Snapshots share most chunks, which need no comparison.
        if isinstance(other, Curves):
            return self is other or self._chunks == other._chunks
        return super().__eq__(other)

    def __repr__(self) -> str:
        return f"Curves({[*self.values()]})"

    def _with(self, number: int, chunk: _Chunk) -> Curves:
        chunks = {**self._chunks, number: chunk}
        if number not in self._chunks:
            chunks = dict(sorted(chunks.items()))
        return self._of(chunks)

    @staticmethod
    def _of(chunks: dict[int, _Chunk]) -> Curves:
        curves = Curves()
        curves._chunks = chunks
        return curves


class _Chunk:
    """The curves of `CHUNK` consecutive ids, with remembered answers of rules."""

    __slots__ = ("_asked", "_columns", "curves", "learners")

    def __init__(self, curves: dict[int, LearningCurve], earlier: _Chunk | None = None) -> None:
        self.curves = curves
        self.learners = np.fromiter(curves, np.int64, len(curves))
        self._columns: dict[Hashable, Numbers] = {}
        # Answers by question and learner, with the curve that each was given for. All chunks of
        # these ids share them: running trials are added to the finished ones at every look.
        self._asked: dict[Hashable, dict[int, tuple[LearningCurve, tuple[float, ...]]]]
        self._asked = {} if earlier is None else earlier._asked

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Chunk) and self.curves == other.curves)

    def columns(self, question: tuple[Any, ...]) -> Numbers:
        """Return the answers of a rule, one row per learner; `question` is (rule, *arguments)."""
        if question in self._columns:
            return self._columns[question]
        rule, *arguments = question
        answers = self._asked.setdefault(question, {})
        rows = []
        for learner, curve in self.curves.items():
            known = answers.get(learner)
            if known is None or known[0] is not curve:
                known = answers[learner] = curve, rule(curve, *arguments)
            rows.append(known[1])
        # Earlier questions, about a smaller space, are not asked again.
        for old in [*self._asked][:-N_QUESTIONS]:
            self._asked.pop(old, None)
        self._columns[question] = found = np.array(rows, np.float64)
        return found


class Proposer(Protocol):
    """A pure rule from a pool to candidates.

    A candidate is a point that could become a learner.
    """

    @property
    def may_choose(self) -> bool:
        """True if the best candidate is the next learner; False for a random one."""

    def candidates(self, pool: Pool) -> Rows:
        """Return the candidates as rows of `pool.known_space`, shape (candidates, parameters)."""


@dataclass(frozen=True)
class NoProposer:
    """A proposer of one candidate without parameters, for any new learner."""

    may_choose = False

    def candidates(self, pool: Pool) -> Rows:
        """Return one row without any parameter."""
        return np.full((1, len(pool.known_space.dimensions)), np.nan)


@dataclass(frozen=True)
class Pool(Remembers):
    """A snapshot of everything that a decision may use.

    >>> pool = Pool(to_come=2).with_newcomer(0).observed(0, Observation(500, 0.8, seconds=1.5))
    >>> pool.curves[0].size, pool.to_come, pool.spent
    (500, 1, Cost(examples=500, seconds=1.5))
    """

    curves: Curves = field(default_factory=Curves)
    """Curve of every learner; a curve is empty during the first training."""
    busy: frozenset[int] = frozenset()
    """Ids of learners that cannot be extended now, usually since other workers train them."""
    to_come: int | None = 0
    """Number of new learners that may still be proposed, at least 0; None: no limit (open
    pool)."""
    spent: Cost = Cost()
    """Cost of all trainings of the study so far."""
    left: Cost | None = None
    """Cost that may still be spent; None if no end is known."""
    space: Space | None = None
    """Distributions of the parameters; None: the ranges of the learners' parameters."""
    proposer: Proposer = field(default_factory=NoProposer)
    """Rule for the points that could become learners."""
    runs_left: int | None = None
    """Number of runs that may start after this one; None without a limit. At least 0; a suspended
    run counts."""
    _derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Remembered answers of rules on the pool (see `once`)."""

    def __post_init__(self) -> None:
        for name, value, kind, example in (
            ("curves", self.curves, (Curves,), "Curves([LearningCurve(0)])"),
            ("busy", self.busy, (frozenset,), "frozenset({0})"),
            ("spent", self.spent, (Cost,), "Cost(500, seconds=1.5)"),
            ("left", self.left, (Cost, type(None)), "Cost(0, seconds=60.0)"),
            ("space", self.space, (Space, type(None)), "Space.of([{'depth': 3}])"),
        ):
            if not isinstance(value, kind):
                raise ValueError(f"`{name}` must be like `{example}`, but got {brief(value)}.")
        for name, count in (("to_come", self.to_come), ("runs_left", self.runs_left)):
            if count is None:
                continue
            if type(count) is not int:
                object.__setattr__(self, name, whole_number(name, count))
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` must be at least 0 or None, but got {count}.")
        if not hasattr(self.proposer, "candidates"):
            raise ValueError(
                "`proposer` must have a method `candidates(pool)`, as `NoProposer()` has, but got "
                f"{brief(self.proposer)}."
            )

    @property
    def known_space(self) -> Space:
        """Space of the parameters: the given one, or the ranges of the learners' parameters."""
        return self.curves.once(_spanned) if self.space is None else self.space

    @property
    def content(self) -> Pool:
        """The pool without its times and limits, which no forecast and no cost uses.

        Pools that differ only in times and limits share one such pool, so what `once` has computed
        for one of them is known for all.
        """
        return self.curves.once(_content, self.busy, self.space, self.proposer)

    @property
    def may_propose(self) -> bool:
        """True if another new learner may be proposed."""
        return self.to_come is None or self.to_come > 0

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """True for learners that no worker trains now, in the order of ids."""
        if not self.busy:
            return np.ones(len(self.curves), bool)
        return np.isin(self.curves.learners, [*self.busy], invert=True)

    def put(self, curve: LearningCurve) -> Pool:
        """Return the pool with `curve` in place of its learner's earlier one."""
        return replace(self, curves=self.curves.put(curve))

    def observed(self, learner: int, seen: Observation) -> Pool:
        """Return the pool with one more observation of a learner, and its cost added."""
        if not seen.order:
            last = self.curves.columns(_last_order).max(initial=0.0)
            seen = replace(seen, order=int(last) + 1)
        curve = self.curves[learner].extended(seen)
        return replace(self, curves=self.curves.put(curve), spent=self.spent + Cost.of(seen))

    def with_newcomer(self, learner: int, parameters: Mapping[str, Any] | None = None) -> Pool:
        """Return the pool with the new learner `learner`, which has no data yet."""
        left = None if self.to_come is None else self.to_come - 1
        curve = LearningCurve(learner, parameters=parameters or {})
        return replace(self, curves=self.curves.put(curve), to_come=left)

    def dropped(self, learner: int, reason: str, cause: Cause = "failed") -> Pool:
        """Return the pool with `learner` dropped: it gets no data ever again."""
        return self.put(self.curves[learner].drop(reason, cause))


def _checked(curves: object) -> list[LearningCurve]:
    """Return the curves as a list. Raise a ValueError if one is not a learning curve."""
    if isinstance(curves, Iterable):
        given = [*curves]
        if all(isinstance(curve, LearningCurve) for curve in given):
            return given
    raise ValueError(
        "`curves` must be an iterable of `LearningCurve`, such as [LearningCurve(0)], but got "
        f"{brief(curves)}."
    )


def rows_of(curves: Curves, space: Space) -> Rows:
    """Return the learners' points, shape (learners, parameters); call it by `curves.once`."""
    return curves.columns(_row, space).reshape(len(curves), len(space.dimensions))


def _row(curve: LearningCurve, space: Space) -> tuple[float, ...]:
    return space.row(curve.parameters)


def candidates_of(pool: Pool) -> Rows:
    """Return the candidates of a pool; call it by `pool.once`, which caches them."""
    content = pool.content
    return content.proposer.candidates(content) if pool is content else content.once(candidates_of)


def _content(
    curves: Curves, busy: frozenset[int], space: Space | None, proposer: Proposer
) -> Pool:
    return Pool(curves, busy, to_come=None, space=space, proposer=proposer)


def _spanned(curves: Curves) -> Space:
    return Space.of(curve.parameters for curve in curves.values())


def _last_order(curve: LearningCurve) -> tuple[float]:
    return (float(curve.observations[-1].order if curve.observations else 0),)
