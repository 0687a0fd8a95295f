"""How much sooner several workers could finish, as far as the policy alone is concerned.

    python benchmarks/ideal_workers.py

The learners and probes of `benchmarks/workers.py` in simulated time: no Optuna, no storage, no
machine; a worker that is free asks the policy at once. Takes seconds and prints a table.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from benchmarks.workers import N_LEARNERS
from benchmarks.workers import SIZES
from benchmarks.workers import WORKERS
from optuna_daub import DAUBPruner
from optuna_daub.core import Curves
from optuna_daub.core import Extend
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core.policies.protocol import Policy


POLICIES = {
    "as in the paper": DAUBPruner(sizes=SIZES, bound="projection", step="geometric").policy,
    "default": DAUBPruner(sizes=SIZES).policy,
}
SECONDS: dict[str, Callable[[int], float]] = {
    "equal probes": lambda size: 0.2,
    "probes proportional to the size": lambda size: 2e-4 * size,
}


def observed(learner: int, size: int) -> Observation:
    """Return what the objective of `benchmarks/workers.py` reports."""
    x = learner * 0.618034 % 1.0
    score = 0.5 + 0.4 * x - (0.3 + x) / size**0.5
    return Observation(size, score, training_score=min(1.0, score + 2 / size**0.5))


def simulate(policy: Policy, n_workers: int, seconds: Callable[[int], float]) -> tuple[float, int]:
    """Return the time until the policy finishes, and the number of probes begun."""
    curves = Curves(LearningCurve(learner) for learner in range(N_LEARNERS))
    running: list[tuple[float, int, int]] = []  # (end, learner, size)
    now, n_probes = 0.0, 0
    while True:
        busy = {learner for _, learner, _ in running}
        while len(running) < n_workers:
            decision = policy.decide(curves, busy)
            if not isinstance(decision, Extend):
                break
            busy.add(decision.learner)
            end = now + seconds(decision.size)
            heapq.heappush(running, (end, decision.learner, decision.size))
            n_probes += 1
        if not running:
            return now, n_probes
        now, learner, size = heapq.heappop(running)
        curves.put(curves[learner].extended(observed(learner, size)))


def main() -> None:
    """Print the table."""
    print("| policy | probes | workers | seconds | of one worker | probes begun |")
    print("|---|---|---:|---:|---:|---:|")
    for name, policy in POLICIES.items():
        for kind, seconds in SECONDS.items():
            alone, _ = simulate(policy, 1, seconds)
            for n_workers in WORKERS:
                wall, n_probes = simulate(policy, n_workers, seconds)
                cells = f"{n_workers} | {wall:.1f} | {wall / alone:.3f} | {n_probes}"
                print(f"| {name} | {kind} | {cells} |")


if __name__ == "__main__":
    main()
