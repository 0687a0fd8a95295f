"""Decisions of a policy: train, propose, drop, finish or wait.

Every decision has a reason, a sentence with numbers. One that compares learners has a ranking as
well, from which the sentences for all other learners follow (`why_not`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import TYPE_CHECKING
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.limits import UNLIMITED
from optuna_daub.core.limits import Limits


if TYPE_CHECKING:
    from optuna_daub.core.pool import Pool


@dataclass(frozen=True)
class Reason:
    """A sentence with its scores as numbers.

    In the core larger scores are better. The study layer flips the sign for studies that minimize,
    and with `mirrored` it shows the reason in the user's direction.

    >>> str(Reason("bound {0} {less} {1} of learner 17", (0.871, 0.884)))
    'bound 0.871 < 0.884 of learner 17'
    >>> str(Reason("bound {0} {less} {1} of learner 17", (-0.5312, -0.5309)).mirrored())
    'bound 0.5312 > 0.5309 of learner 17'
    """

    sentence: str
    """Text with `{0}`, `{1}`, ... for the scores, and `{less}`, `{largest}`, `{below}` for words
    that depend on their direction."""
    scores: tuple[float, ...] = ()
    """Scores in the sentence, in the order of its numbers."""
    is_mirrored: bool = False
    """True if smaller scores are better."""

    def mirrored(self) -> Reason:
        """Return the reason for a user whose smaller scores are better."""
        return Reason(
            self.sentence, tuple(0.0 - score for score in self.scores), not self.is_mirrored
        )

    def told(self, sign: int, limits: Limits = UNLIMITED) -> str:
        """Return the sentence in the direction of the user: `sign` is -1 for minimize.

        Scores that it names are cut at the limits, in the direction of the core.
        """
        scores = tuple([min(max(x, limits.lowest), limits.highest) for x in self.scores])
        # Two different scores beyond a limit are equal now: "1.000 < 1.000" would be false.
        are_equal = len({*scores}) < len({*self.scores})
        text = self.sentence.replace("{less}", "{less}=") if are_equal else self.sentence
        reason = replace(self, sentence=text, scores=scores)
        return str(reason.mirrored() if sign < 0 else reason)

    def __str__(self) -> str:
        words = {"less": "<", "largest": "largest", "below": "below"}
        if self.is_mirrored:
            words = {"less": ">", "largest": "smallest", "below": "above"}
        return self.sentence.format(*_distinct(self.scores), **words)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Values by which a policy compares learners.

    The largest goes on, except in ties and if a scheduler of ABC takes another one.

    >>> ranking = Ranking("bound", np.array([4, 17]), np.array([0.871, 0.884]))
    >>> str(ranking.merit(17)), str(ranking.compared(4, 17))
    ('bound 0.884 is the largest; next is 0.871 of learner 4', 'bound 0.871 < 0.884 of learner 17')
    """

    quantity: str
    """Words before a value, such as "bound"."""
    learners: NDArray[np.int64]
    """Ids of all learners, increasing."""
    values: NDArray[np.float64]
    """Value of each learner; minus infinity if it is not compared."""
    new: float = -math.inf
    """Value of a new learner; minus infinity if there is none."""
    unit: str = ""
    """Words after a value, empty for scores. Scores are shown in the user's direction."""
    excluded: str = ""
    """Reason why a learner of value minus infinity is not compared."""

    def value(self, learner: int | None) -> float:
        """Return the value of a learner; None stands for a new one."""
        if learner is None:
            return self.new
        return float(self.values[np.searchsorted(self.learners, learner)])

    def rival(self, learner: int | None) -> tuple[float, str]:
        """Return the largest value of all others, and the words for its owner."""
        others = np.where(self.learners == learner, -math.inf, self.values)
        place = int(others.argmax()) if len(others) else 0
        best = float(others[place]) if len(others) else -math.inf
        if learner is not None and self.new > best:
            return self.new, "a new learner"
        return best, f"learner {self.learners[place]}" if len(others) else ""

    def merit(self, learner: int | None) -> Reason:
        """Return the reason why a learner goes on; None stands for a new one."""
        own, (best, other) = self.value(learner), self.rival(learner)
        if best == -math.inf:
            return self._told("{0}{unit}; no other learner can go on now", own)
        if own > best:
            return self._told("{0}{unit} is the {largest}; next is {1} of " + other, own, best)
        return self._told("{0}{unit} comes next; " + other + " has {1}", own, best)

    def compared(self, learner: int, other: int | None) -> Reason:
        """Return why `other` goes on instead of `learner`; None stands for a new learner."""
        own, best = self.value(learner), self.value(other)
        if own == -math.inf:
            return Reason(self.excluded)
        name = "a new learner" if other is None else f"learner {other}"
        if own < best:
            return self._told("{0}{unit} {less} {1} of " + name, own, best)
        return self._told("{0}{unit}; " + name + " goes first with {1}", own, best)

    def _told(self, text: str, *values: float) -> Reason:
        text = text.replace("{unit}", self.unit and f" {self.unit}")
        if not self.unit:
            return Reason(f"{self.quantity} {text}", values)
        # Amounts are not scores: they are the same in both directions.
        words = {"largest": "largest", "less": "<"}
        return Reason(f"{self.quantity} {text.format(*_digits(values), **words)}")


@dataclass(frozen=True)
class Extend:
    """The decision to train `learner` on `size` examples next."""

    learner: int
    """Id of the learner."""
    size: int
    """Number of training examples, larger than any that it was trained on."""
    reason: Reason
    """Reason for this learner and this size."""
    ranking: Ranking | None = field(default=None, compare=False, repr=False)
    """Ranking at that moment; None if learners were not compared."""


@dataclass(frozen=True)
class Propose:
    """The decision to train a new learner on `size` examples."""

    size: int
    """Number of training examples."""
    reason: Reason
    """Reason for a new learner."""
    ranking: Ranking | None = field(default=None, compare=False, repr=False)
    """Ranking with the new learner first; None if learners were not compared."""


@dataclass(frozen=True)
class Drop:
    """The decision to give `learner` no data ever again."""

    learner: int
    """Id of the learner."""
    reason: Reason
    """Reason why it cannot be the best."""


@dataclass(frozen=True)
class Finish:
    """The decision to end: `learner` is the best, or None if no learner is left."""

    learner: int | None
    """Id of the best learner; None if no learner is left."""
    reason: Reason
    """Reason why it is the best."""
    ranking: Ranking | None = field(default=None, compare=False, repr=False)
    """Ranking at that moment; None if learners were not compared."""


@dataclass(frozen=True)
class Wait:
    """The decision to wait: every learner that could be trained next is busy; ask again later."""

    reason: Reason
    """Reason to wait."""


Decision: TypeAlias = Extend | Propose | Drop | Finish | Wait


def check_decision(decision: object, pool: Pool, sizes: tuple[int, ...], rule: str) -> None:
    """Raise a ValueError if a decision cannot be carried out: then the rule has a fault.

    Args:
        decision: what the rule has decided.
        pool: the pool that it has seen.
        sizes: its training sizes.
        rule: its name.
    """
    if not isinstance(decision, Decision):
        raise ValueError(f"{rule}.decide must return a decision, but returned {brief(decision)}.")
    if fault := _fault_of_learner(decision, pool) or _fault_of_size(decision, pool, sizes[-1]):
        raise ValueError(f"{rule}.decide must return what can be done, but {fault}: {decision}.")


def _fault_of_learner(decision: Decision, pool: Pool) -> str:
    """Return why the learner of a decision cannot have it; empty if it can."""
    if isinstance(decision, Propose | Wait) or decision.learner is None:
        return ""
    learner, curve = decision.learner, pool.curves.get(decision.learner)
    if curve is None:
        return f"the pool has no learner {learner}"
    if curve.dropped and not isinstance(decision, Finish):
        return f"learner {learner} is dropped: {curve.dropped}"
    if isinstance(decision, Extend) and learner in pool.busy:
        return f"another worker trains learner {learner}"
    if isinstance(decision, Extend) and decision.size <= curve.size:
        return f"learner {learner} was trained on {curve.size:,} already"
    return ""


def _fault_of_size(decision: Decision, pool: Pool, full: int) -> str:
    """Return why a decision asks for too much; empty if it does not.

    While other learners are busy, a `Propose` beyond the limit means to wait for them.
    """
    if isinstance(decision, Extend | Propose) and decision.size > full:
        return f"there are {full:,} examples"
    if isinstance(decision, Propose) and not pool.may_propose and not pool.busy:
        return "no further learner may be proposed"
    return ""


def why_not(decision: Decision, learner: int) -> Reason:
    """Return why an unfinished learner, which was not dropped, gets no data now.

    Without a ranking this is the reason of the decision.
    """
    if isinstance(decision, Drop | Wait) or decision.ranking is None:
        return decision.reason
    other = None if isinstance(decision, Propose) else decision.learner
    return decision.reason if learner == other else decision.ranking.compared(learner, other)


def _digits(values: tuple[float, ...]) -> list[str]:
    """Return amounts with two digits, or more if different ones would look equal.

    Less than a thousandth of the largest is shown as 0.
    """
    least = max(map(abs, values)) / 1000
    values = tuple(0.0 if abs(value) < least else value for value in values)
    different = len({*values})
    for digits in range(2, 8):
        texts = [f"{value:.{digits}g}" for value in values]
        if len({*texts}) == different:
            break
    return texts


def _distinct(scores: tuple[float, ...]) -> list[str]:
    """Return scores with three decimals, or more if different scores would look equal.

    Scores above 100,000 may have fewer. If all are so small that even seven decimals are too
    few, or one is huge, they have exponents.

    >>> _distinct((0.9, 0.9001)), _distinct((7.25e-10, 8e-10)), _distinct((7e98,))
    (['0.9000', '0.9001'], ['7.25e-10', '8e-10'], ['7e+98'])
    """
    largest = max((abs(score) for score in scores if math.isfinite(score)), default=0.0)
    fewest = min(3, max(0, 7 - math.floor(math.log10(max(largest, 1.0)))))
    forms = [f",.{decimals}f" for decimals in range(fewest, 8)] if largest < 1e15 else []
    if not 1e-4 <= largest < 1e15:
        forms += [f".{digits}g" for digits in range(3, 16)]
    for form in forms:
        texts = [format(score, form) for score in scores]
        texts = [text if text.strip("-0.,") else text.strip("-") for text in texts]  # no "-0"
        if len({*texts}) == len({*scores}):
            break
    return texts
