"""Decisions: which learner gets which data next, which gets none, or that the answer is known.

Every decision carries its reason, a sentence with numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Reason:
    """A sentence whose scores are kept as numbers.

    The core knows one direction, larger is better; a border that flips the sign of scores can so
    tell its user the reason in the user's own direction.

    >>> str(Reason("bound {0} {less} {1} of learner 17", (0.871, 0.884)))
    'bound 0.871 < 0.884 of learner 17'
    >>> str(Reason("bound {0} {less} {1} of learner 17", (-0.5312, -0.5309)).mirrored())
    'bound 0.5312 > 0.5309 of learner 17'
    """

    sentence: str
    """Text with `{0}`, `{1}`, ... for the scores, and `{less}`, `{largest}`, `{up}` for what their
    direction decides."""
    scores: tuple[float, ...] = ()
    """The scores that the sentence speaks of."""
    is_mirrored: bool = False
    """Whether smaller scores are the better ones."""

    def mirrored(self) -> Reason:
        """Return the reason for a reader to whom smaller scores are better."""
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
    """Train `learner` on `size` examples next."""

    learner: int
    """Its id."""
    size: int
    """Number of training examples, larger than all it was trained on."""
    reason: Reason
    """Why this learner, and this size."""


@dataclass(frozen=True)
class Propose:
    """Train a newcomer, one that was never trained before, on `size` examples."""

    size: int
    """Number of training examples."""
    reason: Reason
    """Why a newcomer."""


@dataclass(frozen=True)
class Drop:
    """Give `learner` no data ever again."""

    learner: int
    """Its id."""
    reason: Reason
    """Why it cannot be the answer."""


@dataclass(frozen=True)
class Finish:
    """The answer is known: `learner` is the best, or None where no learner is left."""

    learner: int | None
    """The id of the best; None where no learner is left."""
    reason: Reason
    """Why it is the best."""


@dataclass(frozen=True)
class Wait:
    """Every learner that deserves data is busy: ask again when one is free."""

    reason: Reason
    """Why."""


Decision: TypeAlias = Extend | Propose | Drop | Finish | Wait


def _distinct(scores: tuple[float, ...]) -> list[str]:
    """Return the scores with three decimals, or as many more as tell different ones apart."""
    different = len({*scores})
    for decimals in range(3, 8):
        texts = [f"{round(score, decimals) + 0.0:,.{decimals}f}" for score in scores]  # no "-0"
        if len({*texts}) == different:
            break
    return texts
