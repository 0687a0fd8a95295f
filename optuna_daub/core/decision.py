"""Decisions of a policy: train, propose, drop, finish or wait.

Every decision has a reason, a sentence with numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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
    """Text with `{0}`, `{1}`, ... for the scores, and `{less}`, `{largest}`, `{up}` for words that
    depend on their direction."""
    scores: tuple[float, ...] = ()
    """Scores in the sentence, in the order of its numbers."""
    is_mirrored: bool = False
    """True if smaller scores are better."""

    def mirrored(self) -> Reason:
        """Return the reason for a user whose smaller scores are better."""
        return Reason(
            self.sentence, tuple(0.0 - score for score in self.scores), not self.is_mirrored
        )

    def __str__(self) -> str:
        words = {"less": "<", "largest": "largest", "up": "up"}
        if self.is_mirrored:
            words = {"less": ">", "largest": "smallest", "up": "down"}
        return self.sentence.format(*_distinct(self.scores), **words)


@dataclass(frozen=True)
class Extend:
    """The decision to train `learner` on `size` examples next."""

    learner: int
    """Id of the learner."""
    size: int
    """Number of training examples, larger than any that it was trained on."""
    reason: Reason
    """Reason for this learner and this size."""


@dataclass(frozen=True)
class Propose:
    """The decision to train a new learner on `size` examples."""

    size: int
    """Number of training examples."""
    reason: Reason
    """Reason for a new learner."""


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


@dataclass(frozen=True)
class Wait:
    """The decision to wait: every learner that deserves data is busy; ask again later."""

    reason: Reason
    """Reason to wait."""


Decision: TypeAlias = Extend | Propose | Drop | Finish | Wait


def _distinct(scores: tuple[float, ...]) -> list[str]:
    """Return scores with three decimals, or more if different scores would look equal."""
    different = len({*scores})
    for decimals in range(3, 8):
        texts = [f"{round(score, decimals) + 0.0:,.{decimals}f}" for score in scores]  # no "-0"
        if len({*texts}) == different:
            break
    return texts
