"""Fit the calibrated forecast on the learning curves of LCDB 1.1; measure how often it holds.

    python -m benchmarks.fit.calibrated [--smoke]

Writes the coefficients that the package ships, and beside this file those of every fold that
leaves a fifth of the data sets out (calibrated_folds.json, for `replay.py`) and calibrated.md: how
often the quantiles held on data sets left out, by family of learners and by doublings left. In
smoke mode the curves are made ones, and all three files go to a temporary folder.

A quantile is fitted with coefficients of at least 0, which does not make it hold as often as it
says; so each is labelled with the probability with which it held on data sets left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.replay_problems import LCDB_FILE
from benchmarks.replay_problems import VALIDATION
from benchmarks.replay_problems import Lcdb
from benchmarks.replay_problems import lcdb
from benchmarks.replay_problems import made_lcdb
from benchmarks.rows import ROOT
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import stamp
from benchmarks.rows import table
from optuna_daub.core.curve import Observation
from optuna_daub.core.forecasts.gains import COEFFICIENTS
from optuna_daub.core.forecasts.gains import POINTS
from optuna_daub.core.forecasts.gains import WITHOUT_TRAINING_SCORE
from optuna_daub.core.forecasts.gains import Quantities
from optuna_daub.core.forecasts.gains import describe
from optuna_daub.core.forecasts.gains import parse_table
from optuna_daub.core.forecasts.gains import products
from optuna_daub.core.forecasts.gains import projected_gain


FOLDS_FILE = Path(__file__).with_name("calibrated_folds.json")
"""The coefficients of every fold."""
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997)
"""Quantiles fitted; up to where data sets left out still show how often they hold."""
FOLDS = 5
CONFIDENCE = 0.95
"""Of the bound that is reported by family."""
NOISE_SEEDS = (None, 1, 2, 3, 4)
"""Draws of the standard errors; None for the curves as they are."""
POINTS_PER_CURVE = 6
"""Moments at which a learning curve is cut off, per draw."""
LEAST_FULL_SIZE = 700
"""Below it LCDB's curves are too noisy to learn a gain from."""
FIRST_PLACES = (16, 20, 24, 28, 32, 36)
"""In LCDB's grid of sizes: 64 to 363 examples."""
STRIDES = (4, 5, 6, 8)
"""Places from size to size: factors of 1.41, 1.54, 1.68 and 2."""
SHORTENED = 0.4, 25
"""How often N is taken smaller than the largest size known, and by fewer than how many places."""
SOFTNESS = (1e-2, 2e-3, 5e-4)
"""Widths of the corner of the pinball loss, in units of the score, one fit after another."""

FAMILIES = {
    "trees and ensembles": ("Decision Tree", "ExtraTree", "CatBoost", "ens.ExtraTrees",
                            "ens.RandomForest", "ens.GradientBoosting"),
    "linear": ("SVM_Linear", "LogisticRegression", "RidgeClassifier", "LDA"),
    "online linear": ("PassiveAggressive", "Perceptron", "SGDClassifier"),
    "kernel": ("SVM_Poly", "SVM_RBF", "SVM_Sigmoid"),
    "Bayes and centroid": ("BernoulliNB", "MultinomialNB", "ComplementNB", "GaussianNB",
                           "NearestCentroid"),
    "neural": ("MLP", "TabNet", "RealMLP", "TabPFNv2"),
    "neighbours": ("KNN",),
    "QDA": ("QDA",),
}  # fmt: skip


@dataclass(frozen=True)
class Points:
    """Moments in learning curves: what was seen until then, and what came out at N."""

    openml_id: NDArray[np.int64]
    """Of the data set."""
    learner: NDArray[np.str_]
    """Its name."""
    doublings: NDArray[np.float64]
    """log2(N / n)."""
    quantities: NDArray[np.float64]
    """As `describe` returns them."""
    gain: NDArray[np.float64]
    """Score at N less the score at n."""
    room: NDArray[np.float64]
    """The most that is allowed: up to a score of 1, and to the projection where it is valid."""

    @property
    def weight(self) -> NDArray[np.float64]:
        """Every data set counts the same, however many points it has."""
        _, place, count = np.unique(self.openml_id, return_inverse=True, return_counts=True)
        weight = 1.0 / count[place]
        return np.asarray(weight / weight.mean())

    @property
    def fold(self) -> NDArray[np.int64]:
        """The fold that leaves the point's data set out."""
        return fold_of(self.openml_id)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, write the coefficients and the report."""
    options = parser_of(__doc__, "python -m benchmarks.fit.calibrated").parse_args(arguments)
    if not options.smoke and not is_there("the fit", LCDB_FILE):
        return
    points = decision_points(made_lcdb() if options.smoke else lcdb())
    names = {"with_training_score": Quantities._fields,
             "without_training_score": WITHOUT_TRAINING_SCORE}  # fmt: skip
    fits = {part: fit_all(points, quantities) for part, quantities in names.items()}
    shipped = {part: tables[-1] for part, tables in fits.items()}
    folds = [{part: tables[fold] for part, tables in fits.items()} for fold in range(FOLDS)]
    package, here = ROOT / "optuna_daub" / "core" / "forecasts", FOLDS_FILE.parent
    if options.results or options.smoke:
        package = here = results_of(options)
    (package / COEFFICIENTS).write_text(json.dumps(shipped | {"stamp": stamp()}, indent=1) + "\n")
    (here / FOLDS_FILE.name).write_text(json.dumps(folds) + "\n")
    (here / "calibrated.md").write_text(report(points, fits))
    print(here / "calibrated.md")


def fold_of(openml_id: ArrayLike) -> NDArray[np.int64]:
    """Return the fold of data sets, spread evenly and for ever by their number."""
    return np.asarray(np.asarray(openml_id) * 7919 % 1_000_003 % FOLDS)


def decision_points(known: Lcdb) -> Points:
    """Return moments of all curves that are long enough, under several draws of the noise."""
    rng = np.random.default_rng(0)
    cuts = [cut for seed in NOISE_SEEDS for cut in _cuts(known, known.errors(seed), rng)]
    return Points(*map(np.array, zip(*cuts, strict=True)))


def _cuts(
    known: Lcdb, error: NDArray[np.float64], rng: np.random.Generator
) -> Iterator[tuple[object, ...]]:
    grid, score = known.size, 1.0 - error
    for row, openml_id in enumerate(known.openml_id.tolist()):
        is_known = np.isfinite(score[row]).all(axis=-1)
        full = known.full(row)
        for learner in np.flatnonzero(is_known[:, full] & known.is_choosable):
            for end, places in _grids(full, rng):
                if grid[end] < LEAST_FULL_SIZE or not is_known[learner, [*places, end]].all():
                    continue
                curve = score[row, learner]
                last = [Observation(grid[n], curve[n, VALIDATION], curve[n, 0]) for n in places]
                doublings = np.log2(grid[end] / last[-1].size)
                gain = curve[end, VALIDATION] - last[-1].score
                room = min(1.0 - last[-1].score, projected_gain(last, grid[end]))
                name = known.learner[learner]
                yield openml_id, name, doublings, describe(last), gain, room


def _grids(full: int, rng: np.random.Generator) -> Iterator[tuple[int, list[int]]]:
    """Yield the place of a full size, and the last two or three of a grid cut off before it."""
    for _ in range(POINTS_PER_CURVE):
        share, places = SHORTENED
        end = full - (int(rng.integers(places)) if rng.random() < share else 0)
        grid = [*range(int(rng.choice(FIRST_PLACES)), end, int(rng.choice(STRIDES)))]
        if len(grid) >= 2:
            length = int(rng.integers(2, len(grid) + 1))
            yield end, grid[:length][-POINTS:]


def fit_all(points: Points, names: tuple[str, ...]) -> dict[int, Mapping[str, object]]:
    """Return the tables fitted without each fold, and with all data sets under -1."""
    terms = _terms(points, names)
    rows, held = {}, np.zeros((len(LEVELS), len(terms)), dtype=bool)
    for fold in (*range(FOLDS), -1):
        kept = points.fold != fold
        rows[fold] = [
            fit_quantile(terms[kept], points.gain[kept], points.weight[kept], level)
            for level in LEVELS
        ]
        held[:, ~kept] = _holds(points, terms, rows[fold])[:, ~kept]
    probabilities = np.average(held, axis=1, weights=points.weight)
    return {
        fold: {
            "quantities": names,
            "probabilities": probabilities.round(4).tolist(),
            "coefficients": np.round(of_fold, 5).tolist(),
        }
        for fold, of_fold in rows.items()
    }


def fit_quantile(
    terms: NDArray[np.float64],
    gain: NDArray[np.float64],
    weight: NDArray[np.float64],
    level: float,
) -> NDArray[np.float64]:
    """Return the coefficients, at least 0, of least pinball loss; its corner is softened."""
    scale = terms.std(axis=0) + 1e-9
    scaled = terms / scale
    found = np.full(len(scale), 1e-3)
    for width in SOFTNESS:

        def loss(
            at: NDArray[np.float64], width: float = width
        ) -> tuple[float, NDArray[np.float64]]:
            short = gain - scaled @ at
            slope = 1.0 / (1.0 + np.exp(-np.clip(short / width, -50.0, 50.0))) - (1.0 - level)
            value = np.logaddexp(0.0, short / width) * width - (1.0 - level) * short
            return float(np.mean(weight * value)), -scaled.T @ (weight * slope) / len(gain)

        bounds = [(0.0, None)] * len(found)
        found = minimize(loss, found, jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.asarray(found / scale)


def report(points: Points, fits: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> str:
    """Return in Markdown how often bounds held on data sets left out of their fit."""
    confidences = (0.5, 0.8, 0.9, CONFIDENCE)
    tables, without = fits.values()
    held = {confidence: holds(points, tables, confidence) for confidence in confidences}
    bare = {confidence: holds(points, without, confidence) for confidence in confidences}
    far = holds(points, tables, CONFIDENCE, slack=0.01)
    parts = [
        "`python -m benchmarks.fit.calibrated`",
        f"{len(points.gain):,} moments of {len(np.unique(points.openml_id))} data sets, left out.",
        table(
            ["stated", "held", "held, without training scores"],
            ([f"{100 * p:.0f} %", _share(held[p], points), _share(bare[p], points)] for p in held),
        ),
        table(
            [f"{100 * CONFIDENCE:.0f} % bound, by", "held", "exceeded by more than 1 pp"],
            (
                [name, _share(held[CONFIDENCE], points, part), _share(~far, points, part)]
                for name, part in _parts(points).items()
                if part.any()
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def holds(
    points: Points,
    tables: Mapping[int, Mapping[str, Any]],
    confidence: float,
    slack: float = 0.0,
) -> NDArray[np.bool_]:
    """Return whether the bounds fitted without each point's data set hold, but for `slack`."""
    bound = np.zeros(len(points.gain))
    for fold in range(FOLDS):
        fitted = parse_table(tables[fold])
        out = points.fold == fold
        gains = _gains(_terms(points, fitted.quantities)[out], fitted.coefficients).T
        stated = (0.0, *fitted.probabilities)
        bound[out] = [np.interp(confidence, stated, (0.0, *gain)) for gain in gains]
    return np.asarray(points.gain <= np.minimum(bound, points.room) + slack)


def _parts(points: Points) -> dict[str, NDArray[np.bool_]]:
    """Return the points of every family of learners and of every range of doublings left."""
    parts = {family: np.isin(points.learner, members) for family, members in FAMILIES.items()}
    for low, high in pairwise((0, 1, 2, 4, 6, 20)):
        name = f"{low} to {high} doublings left"
        parts[name] = (points.doublings > low) & (points.doublings <= high)
    return parts


def _share(
    held: NDArray[np.bool_], points: Points, part: NDArray[np.bool_] | slice = slice(None)
) -> str:
    return f"{100 * np.average(held[part], weights=points.weight[part]):.1f} %"


def _holds(
    points: Points, terms: NDArray[np.float64], rows: list[NDArray[np.float64]]
) -> NDArray[np.bool_]:
    return np.asarray(points.gain <= np.minimum(_gains(terms, rows), points.room))


def _terms(points: Points, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return what coefficients are of, one row per point."""
    chosen = points.quantities[:, [Quantities._fields.index(name) for name in names]]
    return np.array([products(*point) for point in zip(chosen, points.doublings, strict=True)])


def _gains(terms: NDArray[np.float64], rows: ArrayLike) -> NDArray[np.float64]:
    """Return the quantiles of the gain, shape (n levels, n points); as `GainTable.gains`."""
    return np.asarray(np.maximum.accumulate(np.asarray(rows) @ terms.T, axis=0))


if __name__ == "__main__":
    main()
