"""Fit the calibrated bound on the learning curves of LCDB 1.1, and measure how often it holds.

    python benchmarks/fit_calibrated.py

Writes the coefficients that the package ships, those of every fold that leaves a fifth of the
data sets out (results/calibrated_folds.json, for `replay.py`), and results/calibrated.md: how
often the quantiles held on data sets left out, by family of learners and by doublings left.

A quantile is fitted with coefficients of at least 0, which does not make it hold as often as it
says; so each is labelled with the probability with which it held on data sets left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.lcdb import BASELINES
from benchmarks.lcdb import VALIDATION
from benchmarks.lcdb import full_rung
from benchmarks.lcdb import lcdb
from benchmarks.lcdb import lcdb_errors
from benchmarks.rows import RESULTS
from benchmarks.rows import ROOT
from benchmarks.rows import stamp
from optuna_daub.core.bounds.gains import COEFFICIENTS
from optuna_daub.core.bounds.gains import POINTS
from optuna_daub.core.bounds.gains import WITHOUT_TRAINING_SCORE
from optuna_daub.core.bounds.gains import Quantities
from optuna_daub.core.bounds.gains import describe
from optuna_daub.core.bounds.gains import parse_table
from optuna_daub.core.bounds.gains import products
from optuna_daub.core.bounds.gains import projected_gain
from optuna_daub.core.curve import Observation


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
FIRST_RUNGS = (16, 20, 24, 28, 32, 36)
"""Indices of LCDB's grid: 64 to 363 examples."""
STRIDES = (4, 5, 6, 8)
"""Rungs from size to size: factors of 1.41, 1.54, 1.68 and 2."""
SHORTENED = 0.4, 25
"""How often N is taken smaller than the largest size known, and by fewer than how many rungs."""
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

    data_set: NDArray[np.int64]
    learner: NDArray[np.int64]
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
        weight = 1.0 / np.bincount(self.data_set)[self.data_set]
        return np.asarray(weight / weight.mean())

    @property
    def fold(self) -> NDArray[np.int64]:
        """The fold that leaves the point's data set out."""
        return fold_of(lcdb()["openml_id"][self.data_set])


def main() -> None:
    """Fit, write the coefficients and the report."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    points = decision_points()
    names = {"with_training_score": Quantities._fields,
             "without_training_score": WITHOUT_TRAINING_SCORE}  # fmt: skip
    fits = {part: fit_all(points, quantities) for part, quantities in names.items()}
    shipped = {part: tables[-1] for part, tables in fits.items()}
    package = ROOT / "optuna_daub" / "core" / "bounds" / COEFFICIENTS
    package.write_text(json.dumps(shipped | {"stamp": stamp()}, indent=1) + "\n")
    folds = [{part: tables[fold] for part, tables in fits.items()} for fold in range(FOLDS)]
    (RESULTS / "calibrated_folds.json").write_text(json.dumps(folds) + "\n")
    (RESULTS / "calibrated.md").write_text(report(points, fits))


def fold_of(openml_id: ArrayLike) -> NDArray[np.int64]:
    """Return the fold of data sets, spread evenly and for ever by their number."""
    return np.asarray(np.asarray(openml_id) * 7919 % 1_000_003 % FOLDS)


def decision_points() -> Points:
    """Return moments of all curves that are long enough, under several draws of the noise."""
    rng = np.random.default_rng(0)
    cuts = [cut for seed in NOISE_SEEDS for cut in _cuts(lcdb_errors(seed), rng)]
    return Points(*map(np.array, zip(*cuts, strict=True)))


def _cuts(error: NDArray[np.float64], rng: np.random.Generator) -> Iterator[tuple[object, ...]]:
    grid, names = lcdb()["size"], lcdb()["learner"]
    score = 1.0 - error
    for data_set in range(len(error)):
        known = np.isfinite(score[data_set]).all(axis=-1)
        full = full_rung(data_set)
        for learner in np.flatnonzero(known[:, full] & ~np.isin(names, BASELINES)):
            for end, rungs in _ladders(full, rng):
                if grid[end] < LEAST_FULL_SIZE or not known[learner, [*rungs, end]].all():
                    continue
                curve = score[data_set, learner]
                last = [Observation(grid[n], curve[n, VALIDATION], curve[n, 0]) for n in rungs]
                doublings = np.log2(grid[end] / last[-1].size)
                gain = curve[end, VALIDATION] - last[-1].score
                room = min(1.0 - last[-1].score, projected_gain(last, grid[end]))
                yield data_set, learner, doublings, describe(last), gain, room


def _ladders(full: int, rng: np.random.Generator) -> Iterator[tuple[int, list[int]]]:
    """Yield a full size and the last two or three rungs of a ladder cut off before it."""
    for _ in range(POINTS_PER_CURVE):
        share, rungs = SHORTENED
        end = full - (int(rng.integers(rungs)) if rng.random() < share else 0)
        ladder = [*range(int(rng.choice(FIRST_RUNGS)), end, int(rng.choice(STRIDES)))]
        if len(ladder) >= 2:
            length = int(rng.integers(2, len(ladder) + 1))
            yield end, ladder[:length][-POINTS:]


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
    lines = ["`python benchmarks/fit_calibrated.py`", ""]
    lines += [
        f"{len(points.gain):,} moments of {len(np.unique(points.data_set))} data sets, left out.",
        "",
    ]
    lines += ["| stated | held | held, without training scores |", "|---:|---:|---:|"]
    shares = ((p, _share(held[p], points), _share(bare[p], points)) for p in confidences)
    lines += [f"| {100 * stated:.0f} % | {seen} | {blind} |" for stated, seen, blind in shares]
    lines += [
        "",
        f"| {100 * CONFIDENCE:.0f} % bound, by | held | exceeded by more than 1 pp |",
        "|---|---:|---:|",
    ]
    far = holds(points, tables, CONFIDENCE, slack=0.01)
    for name, part in _parts(points).items():
        lines.append(
            f"| {name} | {_share(held[CONFIDENCE], points, part)} | {_share(~far, points, part)} |"
        )
    return "\n".join(lines) + "\n"


def holds(
    points: Points,
    tables: Mapping[int, Mapping[str, Any]],
    confidence: float,
    slack: float = 0.0,
) -> NDArray[np.bool_]:
    """Return whether the bounds fitted without each point's data set hold, but for `slack`."""
    bound = np.zeros(len(points.gain))
    for fold in range(FOLDS):
        table = parse_table(tables[fold])
        out = points.fold == fold
        gains = _gains(_terms(points, table.quantities)[out], table.coefficients).T
        stated = (0.0, *table.probabilities)
        bound[out] = [np.interp(confidence, stated, (0.0, *gain)) for gain in gains]
    return np.asarray(points.gain <= np.minimum(bound, points.room) + slack)


def _parts(points: Points) -> dict[str, NDArray[np.bool_]]:
    """Return the points of every family of learners and of every range of doublings left."""
    names = lcdb()["learner"][points.learner]
    parts = {family: np.isin(names, members) for family, members in FAMILIES.items()}
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
