"""What ABC promises of its answer, in a paragraph: how far, how surely, seen on what, and why."""

from __future__ import annotations

from optuna_daub.core.curve import Observation
from optuna_daub.core.curves import Curves
from optuna_daub.core.policies.approximate_best import ABC


ASSUMPTIONS = (
    "scores are means over examples of values in [0, 1]",
    "training and validation data come from one distribution",
    "a learner fits its own training sample at least as well as if trained on other data",
    "more data do not hurt",
)
"""What the intervals rest on (`optuna_daub.core.bounds.confidence` says which end needs which)."""


def certificate(policy: ABC, curves: Curves, learner: int) -> str:
    """Return the promise for `learner`, with the sizes and seconds that all learners took.

    >>> from optuna_daub.core import LearningCurve
    >>> def curve(learner, score, training_score):
    ...     seen = Observation(10_000, score, training_score, n_validation=20_000, seconds=1.5)
    ...     return LearningCurve(learner, (seen,))
    >>> abc = ABC(sizes=(10_000, 20_000, 500_000), n_validation=100_000)
    >>> text = certificate(abc, Curves([curve(0, 0.90, 0.91), curve(1, 0.84, 0.85)]), 0)
    >>> text[:74]
    'Learner 0 is within 0 of the best of 2 learners with probability 0.95. See'
    """
    guess = policy.guess(learner, curves)
    probes = [seen for curve in curves.values() for seen in curve.observations]
    rule = policy.confidence.__module__.rpartition(".")[2].replace("_", "-").title()
    failed = sum(curve.dropped.startswith(("failed", "score")) for curve in curves.values())
    left_out = f" ({failed} failed, of which nothing is claimed)" if failed else ""
    return (
        f"Learner {learner} is within {guess.gap:.3g} of the best of {len(curves)} learners"
        f"{left_out} with probability {guess.probability:g}. Seen: {_extent(policy, probes)}. "
        f"Rests on the {rule} inequality, delta / n^2 = {policy.failure(curves):.2g} per "
        f"interval, and on these conditions: {'; '.join(ASSUMPTIONS)}."
    )


def _extent(policy: ABC, probes: list[Observation]) -> str:
    sizes = [seen.size for seen in probes]
    scored = [seen.n_validation for seen in probes if seen.n_validation is not None]
    seconds = sum(seen.seconds or 0.0 for seen in probes)
    all_scored = policy.n_validation or max(scored, default=0)
    return (
        f"{sum(sizes):,} training examples in {len(probes)} probes of {_range(sizes)} "
        f"(all: {policy.sizes[-1]:,}), scored on {_range(scored)} (all: {all_scored:,}), "
        f"in {seconds:,.1f} s"
    )


def _range(numbers: list[int]) -> str:
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
