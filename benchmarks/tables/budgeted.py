"""Error against feature budget: Figure 1 of the budgeted booster paper.

    python -m benchmarks.tables.budgeted [--smoke] [--time-limit S] [--trials T]

One run is one trial on one data set: a random split of the paper's size, costs drawn uniformly
from [0, 2], and the five methods on the same split and costs. Features are made binary as the
paper's feature counts suggest: x > t for every pair of neighbouring values, one for each letter
of a sequence, dark or light for a pixel. Rows go to results/budgeted.jsonl, the table and the
sentences to results/budgeted.md, the picture to results/budgeted.png.

A budget only cuts the sequence of rounds, so one fit per method serves all budgets.

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.rows import SHARED
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import grouped
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub.learners import BudgetedAdaBoostClassifier
from optuna_daub.learners import SpeedBoostClassifier
from optuna_daub.learners.boosting import Ensemble
from optuna_daub.learners.budget import Budget
from optuna_daub.learners.vote_sampling import sample_votes


METHODS = ("AdaBoostRS", "AdaBoostBT", "BT greedy", "BT smoothed", "SpeedBoost")
BUDGETS = tuple(range(2, 42, 2))
"""In steps of 2 as in the paper; up to twenty times the most expensive feature."""
COLUMNS = (2, 4, 8, 12, 20, 30, 40)
"""Budgets of the table; the picture has all."""
DRAWS = 1000
"""Largest number of draws of AdaBoostRS."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "python -m benchmarks.tables.budgeted")
    parser.add_argument("--trials", type=int, default=40, help="of each data set")
    options = parser.parse_args(arguments)
    results = results_of(options)
    is_made = options.smoke or not is_there("the paper's data", FOLDER)
    names = [name for name in DATA if (name == "made") == is_made]
    planned = _runs(names, 3 if options.smoke else options.trials)
    rows = run_all(planned, results / "budgeted.jsonl", options.time_limit)
    write_report(results / "budgeted.md", rows, _report)
    draw(rows).savefig(results / "budgeted.png", dpi=90)


def measure(name: str, seed: int) -> Mapping[str, Any]:
    """Return the test error of every method at every budget, and of AdaBoost without budget."""
    data = DATA[name]
    rng = np.random.RandomState(seed)
    X, X_test, y, y_test = train_test_split(
        *_examples(name), train_size=data.n_train, test_size=data.n_test, random_state=rng
    )
    varies = X.min(axis=0) < X.max(axis=0)
    X, X_test = X[:, varies], X_test[:, varies]
    costs = rng.uniform(0.0, 2.0, X.shape[1])
    whole = BudgetedAdaBoostClassifier(trade_off="none", n_estimators=data.n_rounds).fit(X, y)
    right = _outcomes(whole.ensemble_, X_test, y_test)
    errors = {"AdaBoostRS": _sampled_errors(whole.ensemble_, right, costs, rng)}
    paid = {"feature_costs": costs, "budget": BUDGETS[-1], "n_estimators": data.n_rounds}
    for method, model in {
        "AdaBoostBT": BudgetedAdaBoostClassifier(trade_off="none", **paid),
        "BT greedy": BudgetedAdaBoostClassifier(trade_off="greedy", **paid),
        "BT smoothed": BudgetedAdaBoostClassifier(trade_off="smoothed", **paid),
        "SpeedBoost": SpeedBoostClassifier(**paid),
    }.items():
        ensemble = model.fit(X, y).ensemble_
        errors[method] = _errors_by_budget(ensemble, _outcomes(ensemble, X_test, y_test), costs)
    return {
        "errors": errors,
        "without_budget": _error(whole.ensemble_.weights[:, 0] @ right),
        "n_features": int(varies.sum()),
    }


def _outcomes(ensemble: Ensemble, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return +1 if a hypothesis is right, else -1, shape (n_rounds, n_samples)."""
    signs = np.where(y, 1.0, -1.0)
    return np.array([signs * one.vote(X) for (one,) in ensemble.hypotheses])


def _errors_by_budget(
    ensemble: Ensemble, right: NDArray[np.float64], costs: NDArray[np.float64]
) -> list[float]:
    margins = np.cumsum(ensemble.weights * right, axis=0)
    paid = Budget(costs, np.inf)
    spent = []
    for (one,) in ensemble.hypotheses:
        paid = paid.buy(one.features)
        spent.append(paid.spent)
    rounds = np.searchsorted(spent, BUDGETS, side="right")
    return [_error(margins[number - 1]) for number in rounds]


def _sampled_errors(
    whole: Ensemble,
    right: NDArray[np.float64],
    costs: NDArray[np.float64],
    rng: np.random.RandomState,
) -> list[float]:
    names = tuple(map(str, range(len(costs))))
    errors = []
    for budget in BUDGETS:
        sampled, _ = sample_votes(whole, Budget(costs, budget), DRAWS, rng, names)
        errors.append(_error(sampled.weights[:, 0] @ right))
    return errors


def _error(margins: NDArray[np.float64]) -> float:
    """Return the share of errors; a tied vote is half an error."""
    return float(np.mean((margins < 0.0) + 0.5 * (margins == 0.0)))


def _runs(names: Sequence[str], trials: int) -> Iterator[Run]:
    for seed in range(trials):
        for name in names:
            yield Run({"data": name, "seed": seed}, partial(measure, name, seed))


def _report(rows: list[Row]) -> Iterator[str]:
    for name, own in grouped(rows, "data").items():
        data = DATA[name]
        without = 100 * np.mean([row["without_budget"] for row in own])
        features = np.mean([row["n_features"] for row in own])
        yield (
            f"### {name}\n\n{len(own)} trials (paper: {data.paper_trials}), {data.n_train:,} + "
            f"{data.n_test:,} examples, {features:,.0f} features (paper: "
            f"{data.paper_features:,}), at most {data.n_rounds} rounds; AdaBoost without budget: "
            f"{without:.1f} %. Test error in % by budget:"
        )
        errors = _errors(own)
        columns = [BUDGETS.index(budget) for budget in COLUMNS]
        yield table(
            ["method", *map(str, COLUMNS), "mean of all"],
            [
                [method, *(f"{100 * mean[i]:.1f}" for i in columns), f"{100 * mean.mean():.1f}"]
                for method, mean in zip(METHODS, errors.mean(axis=1), strict=True)
            ],
        )
        yield verdict(name, errors)


def verdict(name: str, errors: NDArray[np.float64]) -> str:
    """Return a sentence that says whether the paper's two claims held.

    Args:
        name: of the data set.
        errors: shape (n_methods, n_trials, n_budgets).

    A difference holds if it exceeds two standard errors of its mean over the trials.
    """
    overall = errors.mean(axis=2)
    behind = overall[METHODS.index("AdaBoostRS")] - overall[METHODS.index("AdaBoostBT")]
    first = (
        f"BT is {_points(behind)} ahead of RS over all budgets: the claim "
        f"{'holds' if _clearly(behind) else 'does not hold'}."
    )
    late = errors[:, :, len(BUDGETS) // 2 :].mean(axis=2)
    smoothed = METHODS.index("BT smoothed")
    rivals = {method: late[i] for i, method in enumerate(METHODS) if i != smoothed}
    best = min(rivals, key=lambda method: float(rivals[method].mean()))
    lead = rivals[best] - late[smoothed]
    if _clearly(lead):
        outcome = "the claim that it is best there holds"
    elif _clearly(-lead):
        outcome = "the claim that it is best there does not hold"
    else:
        outcome = "no clear difference"
    return (
        f"**{name}**: {first} At budgets above {BUDGETS[len(BUDGETS) // 2 - 1]} smoothed is "
        f"{_points(lead)} ahead of the best other method, {best}: {outcome}."
    )


def draw(rows: list[Row]) -> Figure:
    """Return the picture: mean test error against budget, one panel per data set."""
    groups = grouped(rows, "data")
    n_rows = -(-len(groups) // 4)
    figure = Figure(figsize=(14, 0.6 + 3.1 * n_rows), layout="constrained")
    panels = np.ravel(figure.subplots(n_rows, min(4, len(groups)), squeeze=False))
    for axes, (name, own) in zip(panels, groups.items(), strict=False):
        for method, mean in zip(METHODS, _errors(own).mean(axis=1), strict=True):
            axes.plot(BUDGETS, 100 * mean, label=method)
        without = 100 * np.mean([row["without_budget"] for row in own])
        axes.axhline(without, color="0.6", ls=":", label="AdaBoost, no budget")
        axes.set(title=f"{name}, {len(own)} trials", xlabel="budget", ylabel="test error, %")
        axes.grid(alpha=0.3)
    for axes in panels[len(groups) :]:
        axes.axis("off")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _errors(rows: list[Row]) -> NDArray[np.float64]:
    """Return errors, shape (n_methods, n_trials, n_budgets)."""
    return np.array([[row["errors"][method] for row in rows] for method in METHODS])


def _clearly(difference: NDArray[np.float64]) -> bool:
    return bool(difference.mean() > 2.0 * _standard_error(difference))


def _points(difference: NDArray[np.float64]) -> str:
    error = 100 * _standard_error(difference)
    return f"{100 * difference.mean():.2f} +- {error:.2f} percentage points"


def _standard_error(difference: NDArray[np.float64]) -> float:
    return float(difference.std(ddof=1) / len(difference) ** 0.5)


@cache
def _examples(name: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    X, y = DATA[name].read()
    return X.astype(np.float32), y


# --- Data sets of the paper with binary features and two classes ---

FOLDER = SHARED / "data"
"""Folder of the data; SOURCES.md in it says where each file comes from."""

Examples = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Features, shape (n_samples, n_features), and whether an example is of the second class."""


@dataclass(frozen=True)
class DataSet:
    """A line of the paper's Table 1, and where the data come from."""

    read: Callable[[], Examples]
    n_train: int
    n_test: int
    n_rounds: int
    paper_features: int
    paper_trials: int


def at_least(X: NDArray[Any]) -> NDArray[np.bool_]:
    """Return x > t for every t between neighbouring values of a column.

    >>> at_least(np.array([[1.0], [2.0], [5.0]])).astype(int).tolist()
    [[0, 0], [1, 0], [1, 1]]
    """
    return np.hstack([x[:, np.newaxis] > np.unique(x)[:-1] for x in X.T])


def _table(name: str, positive: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    frame = pd.read_parquet(FOLDER / f"{name}.parquet")
    return frame.drop(columns="target").to_numpy(), frame["target"].to_numpy() == positive


def _thresholds(name: str, positive: int) -> Examples:
    X, y = _table(name, positive)
    return at_least(X), y


def _letters(name: str, positive: int) -> Examples:
    """Return one feature for each place and its four letters; ambiguous ones (N, D) have none."""
    X, y = _table(name, positive)
    frequent = [np.argsort(np.bincount(x))[:-5:-1] for x in X.T]  # codes differ between places
    return np.hstack([np.equal.outer(x, four) for x, four in zip(X.T, frequent, strict=True)]), y


def _digits(first: int, second: int) -> Examples:
    """Return which pixels are dark, for two digits; pixels that are dark in under 1 % are left."""
    with np.load(FOLDER / "mnist.npz") as mnist:
        chosen = np.isin(mnist["y"], (first, second))
        X, y = mnist["X"][chosen] > 127, mnist["y"][chosen] == second
    share = X.mean(axis=0)
    return X[:, (share > 0.01) & (share < 0.99)], y


def _made() -> Examples:
    rng = np.random.default_rng(0)
    X = rng.random((400, 60)) < 0.5
    return X, X[:, :20].sum(axis=1) + rng.normal(0, 2, 400) > 10


DATA = {
    "ocr17": DataSet(partial(_digits, 1, 7), 1000, 5000, 400, 403, 100),
    "ocr49": DataSet(partial(_digits, 4, 9), 1000, 5000, 200, 403, 100),
    "splice": DataSet(partial(_letters, "splice", 2), 1000, 2175, 75, 240, 100),
    "breast cancer": DataSet(partial(_thresholds, "breast_w", 1), 500, 199, 500, 82, 400),
    "ecoli": DataSet(partial(_thresholds, "ecoli", 0), 200, 127, 50, 356, 400),
    "sonar": DataSet(partial(_thresholds, "sonar", 1), 100, 108, 99, 11196, 400),
    "heart": DataSet(partial(_thresholds, "heart_statlog", 1), 100, 170, 15, 371, 400),
    "ionosphere": DataSet(partial(_thresholds, "ionosphere", 1), 300, 51, 400, 8114, 400),
    "made": DataSet(_made, 200, 200, 60, 60, 3),
}
"""Test sets are the paper's except ecoli: 9 examples of its smallest classes are missing here."""


if __name__ == "__main__":
    main()
