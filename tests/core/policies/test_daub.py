"""DAUB against a slow transcription of Algorithm 1, the printed runs, and what theory promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from fractions import Fraction
from statistics import linear_regression
from typing import Any
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from optuna_daub.core import DAUB
from optuna_daub.core import Drop
from optuna_daub.core import Extend
from optuna_daub.core import Finish
from optuna_daub.core import Joint
from optuna_daub.core import LearningCurve
from optuna_daub.core import Pool
from optuna_daub.core import Projection
from optuna_daub.core import Propose
from optuna_daub.core import geometric_sizes
from optuna_daub.core import replay
from tests.core.stepping import steps
from tests.oracles import Daub
from tests.oracles import exact
from tests.strategies import daubs
from tests.strategies import known_curves
from tests.strategies import power_law
from tests.strategies import power_laws


Stop = Literal["verified", "first"]

SIZES = geometric_sizes(500, 38500, 1.5)

PAPER_SIZES = (500, 1000, 1500, 2500, 4000, 5000, 7500, 11500, 17500, 25500, 38500)
"""The list that the paper prints; no single rule generates it."""

ROUNDING = 1e-12
"""Far above the error of a bound in floating point, far below a difference that matters."""


def told(daub: DAUB, known: Sequence[LearningCurve]) -> tuple[list[Any], list[int], int | None]:
    """Return the allocations, the learners that failed and the answer of a replay."""
    decisions = list(replay(daub, known))
    assert isinstance(decisions[-1], Finish)
    return (
        [(d.learner, d.size) for d in decisions if isinstance(d, Extend)],
        [d.learner for d in decisions if isinstance(d, Drop)],
        decisions[-1].learner,
    )


def transcribed(daub: DAUB, known: Sequence[LearningCurve], **options: Any) -> Daub:
    """Return the run of the transcription, in exact numbers."""
    assert isinstance(daub.forecaster, Projection)
    fields = {
        "sizes": daub.sizes,
        "use_training_score": daub.forecaster.use_training_score,
        "tolerance": Fraction(str(min(daub.tolerance, 1e6))),
        "stop": daub.stop,
    }
    return Daub(table=exact(known), **fields | options)


class TestAgainstTheTranscription:
    @settings(max_examples=5 * settings.default.max_examples)
    @given(data=st.data(), daub=daubs, training=st.booleans(), failures=st.booleans())
    def test_on_random_curves(
        self, data: st.DataObject, daub: DAUB, training: bool, failures: bool
    ) -> None:
        options = {"with_training_score": training, "failures": failures}
        known = data.draw(known_curves(daub.sizes, **options))
        oracle = transcribed(daub, known)
        assert told(daub, known) == (oracle.S, oracle.failed, oracle.winner)

    @pytest.mark.parametrize("tolerance", [0.0, 0.002, 0.05])
    @pytest.mark.parametrize("use_training_score", [True, False])
    @pytest.mark.parametrize("stop", ["verified", "first"])
    @pytest.mark.parametrize("name", ["parity", "covtype"])
    def test_on_measured_curves(
        self,
        measured: Callable[[str], list[LearningCurve]],
        name: str,
        stop: Stop,
        use_training_score: bool,
        tolerance: float,
    ) -> None:
        known = measured(name)
        forecaster = Projection(use_training_score)
        daub = DAUB(known[0].sizes, forecaster, tolerance=tolerance, stop=stop)
        oracle = transcribed(daub, known)
        assert told(daub, known) == (oracle.S, oracle.failed, oracle.winner)
        assert oracle.winner is not None


class TestThePrintedRun:
    """The full run of formulas.md 1.9."""

    LAWS = ((0.90, 1.2, 0.40), (0.86, 0.9, 0.45), (0.95, 1.0, 0.20), (0.80, 0.6, 0.60),
            (0.70, 0.5, 0.50))  # fmt: skip
    STARTED = (0.936115, 0.879063, 1.0, 0.804430, 0.707454)
    ALLOCATED = ((2, 1688, 1.0), (2, 2532, 1.0), (2, 3798, 1.0), (2, 5697, 1.0),
                 (2, 8546, 0.965266), (2, 12819, 0.893435), (0, 1688, 0.930705),
                 (0, 2532, 0.926108), (0, 3798, 0.922199), (0, 5697, 0.918875),
                 (0, 8546, 0.916049), (0, 12819, 0.909722), (0, 19229, 0.892538),
                 (2, 19229, 0.854410), (0, 28844, 0.884740), (0, 38500, 0.882421))  # fmt: skip

    def known(self, sizes: tuple[int, ...]) -> list[LearningCurve]:
        return [power_law(learner, sizes, *law) for learner, law in enumerate(self.LAWS)]

    @pytest.mark.parametrize("stop", ["verified", "first"])
    def test_allocations_and_bounds(self, stop: Stop) -> None:
        daub = DAUB(SIZES, stop=stop)
        seen = list(steps(daub, self.known(SIZES)))
        curves = seen[-1].pool.curves
        trained = [s.decision for s in seen[15:-1] if isinstance(s.decision, Extend)]
        assert sum(isinstance(s.decision, Propose) for s in seen[:15]) == 5

        def bound(learner: int, size: int) -> float:
            upto = tuple(o for o in curves[learner].observations if o.size <= size)
            alone = Pool().put(LearningCurve(learner, upto))
            return round(daub.interval(alone, learner).upper, 6)

        assert tuple(bound(learner, 1125) for learner in range(5)) == self.STARTED
        assert (
            tuple((d.learner, d.size, bound(d.learner, d.size)) for d in trained) == self.ALLOCATED
        )
        assert [curves[learner].size for learner in range(5)] == [38500, 1125, 19229, 1125, 1125]

    @pytest.mark.parametrize("stop", ["verified", "first"])
    @pytest.mark.parametrize(
        ("sizes", "use_training_score", "iterations", "total"),
        [
            (SIZES, False, 26, 231_357),
            (PAPER_SIZES, True, 14, 175_000),
        ],
    )
    def test_totals(
        self,
        sizes: tuple[int, ...],
        use_training_score: bool,
        iterations: int,
        total: int,
        stop: Stop,
    ) -> None:
        daub = DAUB(sizes, Projection(use_training_score), stop=stop)
        allocations, _, winner = told(daub, self.known(sizes))
        assert len(allocations) - 15 == iterations
        assert sum(size for _, size in allocations) == total
        assert winner == 0

    def test_the_transcription_makes_it_too_with_the_papers_ties(self) -> None:
        known = self.known(SIZES)
        oracle = Daub(SIZES, exact(known), tie="lowest index", stop="first")
        bounds = [(*at, round(float(u), 6)) for at, u in zip(oracle.S, oracle.U, strict=True) if u]
        assert bounds[5:] == list(self.ALLOCATED)


class TestNoiseFreeConcaveLearners:
    """The promises of formulas.md 1.6 and 1.7 for learners whose bounds hold."""

    @settings(max_examples=60)
    @given(known=power_laws(SIZES), use_training_score=st.booleans(), workers=st.integers(1, 3))
    def test_verified_stop_finds_the_best_with_any_number_of_workers(
        self, known: list[LearningCurve], use_training_score: bool, workers: int
    ) -> None:
        daub = DAUB(SIZES, Projection(use_training_score))
        *_, last = steps(daub, known, workers, next_done=max)
        assert isinstance(last.decision, Finish)
        assert last.decision.learner is not None
        winner = known[last.decision.learner]
        assert winner.score >= max(curve.score for curve in known) - ROUNDING

    @settings(max_examples=60)
    @given(known=power_laws(SIZES), stop=st.sampled_from(["verified", "first"]))
    def test_no_learner_is_trained_past_its_first_size_with_a_bound_below_the_best(
        self, known: list[LearningCurve], stop: Stop
    ) -> None:
        best = max(curve.score for curve in known)
        allocations, _, _ = told(DAUB(SIZES, stop=stop), known)
        for learner, size in allocations[3 * len(known) :]:
            seen = [o for o in known[learner].observations if o.size < size]
            x, y = [o.size for o in seen[-3:]], [o.score for o in seen[-3:]]
            end = y[-1] + (SIZES[-1] - x[-1]) * linear_regression(x, y).slope
            assert min(seen[-1].training_score or math.inf, end) >= best - ROUNDING


def test_training_scores_are_asked_for_only_if_they_are_used() -> None:
    known = [Projection(), Projection(use_training_score=False), Joint()]
    asked = [DAUB((1, 2, 3), forecaster=each).needs.training_scores for each in known]
    assert asked == ["helpful", "unused", "unused"]
