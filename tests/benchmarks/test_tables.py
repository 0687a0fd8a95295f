"""Probes of the paper tables: trained once, counted rightly; what known curves must give."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from benchmarks.tables import abc
from benchmarks.tables import daub
from benchmarks.tables.probes import Bench
from benchmarks.tables.probes import Split
from benchmarks.tables.probes import known_probes
from benchmarks.tables.probes import trained
from optuna_daub.core import SuccessiveHalving


class Failing(GaussianNB):
    """Cannot be fitted on more than 100 examples."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Failing:
        if len(y) > 100:
            raise ValueError("too many")
        return super().fit(X, y, sample_weight)


LEARNERS = (DecisionTreeClassifier(random_state=0), GaussianNB(), DummyClassifier(), Failing())
SIZES = (100, 200, 400, 800)


def split() -> Split:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_200, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=1_200) > 0).astype(int)
    return Split(X[:800], y[:800], X[800:], y[800:])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    measure = partial(trained, split(), LEARNERS.__getitem__, 2)
    return Bench("made", 800, 400, measure, tmp_path / "probes.jsonl", {})


def test_a_probe_is_trained_once_and_known_to_the_next_bench(bench: Bench) -> None:
    first = bench.follow(SuccessiveHalving(SIZES), range(3))
    seconds = bench.seconds(first.probes)
    known = known_probes(bench.path, "made")
    again = Bench("made", 800, 400, lambda *probe: pytest.fail(f"{probe}"), bench.path, known)
    assert again.follow(SuccessiveHalving(SIZES), range(3)) == first
    assert again.seconds(first.probes) == seconds


def test_identification_ends_when_one_learner_is_left(bench: Bench) -> None:
    trace = bench.follow(SuccessiveHalving(SIZES), range(3))
    assert [size for _, size in trace.probes] == [100, 100, 100, 200, 200, 800]
    assert trace.n_identifying == 5
    assert trace.probes[-1] == (trace.learner, 800)


def test_a_learner_that_fails_has_no_score_and_is_not_chosen(bench: Bench) -> None:
    trace = bench.follow(SuccessiveHalving(SIZES), range(1, 4))
    assert (3, 200) in trace.probes
    assert trace.learner == 1
    assert bench.score(3) == -np.inf
    assert "too many" in bench.probe(3, 800)["error"]


def test_validation_samples_grow_up_to_all_that_is_held_out(bench: Bench) -> None:
    assert [bench.probe(1, size)["n_validation"] for size in SIZES] == [200, 400, 400, 400]


def test_training_scores_are_paid_for_by_those_who_need_them(bench: Bench) -> None:
    probes = [(1, 800)]
    extra = bench.seconds(probes, with_training_score=True) - bench.seconds(probes)
    assert extra == pytest.approx(bench.probe(1, 800)["training_score_seconds"])


@pytest.mark.parametrize("n", [2, 3])
def test_the_limit_of_halving_is_known_before_it_begins(bench: Bench, n: int) -> None:
    trace = bench.follow(SuccessiveHalving(SIZES), range(n))
    examples = sum(size for _, size in trace.probes[: trace.n_identifying])
    assert abc._halving_examples(SIZES, n) == examples


def test_daub_on_recorded_parity_needs_eight_further_trainings(
    shared: Callable[[str], Path], tmp_path: Path
) -> None:
    shared("tables/parity.csv")
    recorded = daub.bench("parity recorded", tmp_path)
    figures = daub.daub(daub.RULES["DAUB, verified"], recorded, range(41))
    assert (figures["iterations"], figures["loss"]) == (8, 0.0)
