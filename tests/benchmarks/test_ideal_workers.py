"""Workers in simulated time."""

from __future__ import annotations

import pytest

from benchmarks.ideal_workers import POLICIES
from benchmarks.ideal_workers import observed
from benchmarks.ideal_workers import simulate
from benchmarks.workers import N_LEARNERS
from benchmarks.workers import SIZES
from optuna_daub.core import Extend
from optuna_daub.core import LearningCurve
from optuna_daub.core import replay


@pytest.mark.parametrize("name", POLICIES)
def test_one_worker_makes_the_probes_of_replay(name: str) -> None:
    known = [
        LearningCurve(learner, tuple(observed(learner, size) for size in SIZES))
        for learner in range(N_LEARNERS)
    ]
    probes = [step for step in replay(POLICIES[name], known) if isinstance(step, Extend)]
    seconds, n_probes = simulate(POLICIES[name], 1, lambda size: 2e-4 * size)
    assert n_probes == len(probes)
    assert seconds == pytest.approx(sum(2e-4 * step.size for step in probes))


@pytest.mark.parametrize("name", POLICIES)
def test_no_number_of_workers_is_faster_than_its_share(name: str) -> None:
    alone, _ = simulate(POLICIES[name], 1, lambda size: 0.2)
    for n_workers in (2, 4):
        assert simulate(POLICIES[name], n_workers, lambda size: 0.2)[0] >= alone / n_workers
