"""Boosting under a budget for features, searched with DAUB.

    python examples/budgeted_boosting.py [--picture FILE]

Every feature has a cost, which is paid for each example that is classified. A right answer is
worth 100 units. The study searches the budget and the trade-off with the best accuracy minus cost.
The picture shows the cost and the accuracy of each learner. Needs
`pip install 'optuna-daub[plot]'`.
"""

import argparse
import os

import numpy as np
import optuna
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import learning_curves
from optuna_daub.learners import BudgetedAdaBoostClassifier


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
N_ROWS, N_LEARNERS = (2_000, 5) if SMOKE else (40_000, 40)
WORTH = 100.0

X, y = make_classification(N_ROWS, 40, n_informative=15, random_state=0)
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0)
COSTS = np.random.default_rng(0).uniform(0.0, 2.0, X.shape[1])


def build(trial: optuna.Trial) -> BudgetedAdaBoostClassifier:
    return BudgetedAdaBoostClassifier(
        feature_costs=COSTS,
        budget=trial.suggest_float("budget", 2.0, COSTS.sum(), log=True),
        trade_off=trial.suggest_categorical("trade_off", ["none", "greedy", "smoothed"]),
        n_estimators=trial.suggest_int("n_estimators", 20, 200, log=True),
    )


def net_accuracy(model: BudgetedAdaBoostClassifier, X: np.ndarray, y: np.ndarray) -> float:
    return model.score(X, y) - model.spent_ / WORTH


def draw(points: list[tuple[float, float, str]]) -> Figure:
    """Return accuracy against cost; the line joins learners that no other beats in both."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for trade_off in ("none", "greedy", "smoothed"):
        own = [(cost, accuracy) for cost, accuracy, name in points if name == trade_off]
        axes.plot(*np.reshape(own, (-1, 2)).T, "o", label=trade_off)
    costs, accuracies = np.array([point[:2] for point in sorted(points)]).T
    best = np.maximum.accumulate(accuracies)
    axes.step(costs, best, color="0.6", where="post", label="Pareto front", zorder=0)
    axes.set(xlabel="cost of the features of an example", ylabel="validation accuracy")
    axes.legend()
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", help="file to draw accuracy against cost into")
    picture = parser.parse_args().picture

    objective = TrainingSizeObjective(
        build, X_train, y_train, X_valid=X_valid, y_valid=y_valid, scoring=net_accuracy
    )
    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(optuna.samplers.TPESampler(seed=0), n_learners=N_LEARNERS),
        pruner=DAUBPruner(min_resource=300, max_resource=objective.n_train),
    )
    study.optimize(objective)

    points = []
    for curve in learning_curves(study):
        model = build(optuna.trial.FixedTrial(curve.params))
        model.fit(X_train[: curve.size], y_train[: curve.size])
        points.append((model.spent_, model.score(X_valid, y_valid), curve.params["trade_off"]))
        print("cost {:5.2f}, accuracy {:.4f}, trade-off {}".format(*points[-1]))
    print(f"\nbest: {study.best_params}, accuracy less cost {study.best_value:.4f}")
    if picture:
        draw(points).savefig(picture)
