"""Tune a PyTorch network that continues its training when it gets more rows.

    python examples/pytorch_loop.py

Needs `pip install torch`. Subsets are nested. So a network that was trained on the first 2,000
rows can continue from its weights on the first 4,000: `build` gets it as `previous`. A suspended
network continues in the same way when it is resumed.
"""

import os
import sys


os.environ.setdefault("OMP_NUM_THREADS", "1")  # each training on one core

import optuna
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import best_learner


try:
    import torch
except ImportError:
    sys.exit("This example needs PyTorch: pip install torch")


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
N_ROWS, N_LEARNERS = (3_000, 4) if SMOKE else (60_000, 20)
EPOCHS, BATCH = 4, 64


class Net(ClassifierMixin, BaseEstimator):
    """A network with one hidden layer. A second `fit` continues from the weights of the first."""

    def __init__(self, width=16, rate=0.01):
        self.width = width
        self.rate = rate

    def fit(self, X, y):
        X, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
        if not hasattr(self, "layers_"):  # the first training of this network
            torch.manual_seed(0)
            self.classes_ = y.unique().numpy()
            self.layers_ = torch.nn.Sequential(
                torch.nn.Linear(X.shape[1], self.width),
                torch.nn.ReLU(),
                torch.nn.Linear(self.width, len(self.classes_)),
            )
            self.optimizer_ = torch.optim.Adam(self.layers_.parameters(), lr=self.rate)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(X)).split(BATCH):
                self.optimizer_.zero_grad()
                loss = torch.nn.functional.cross_entropy(self.layers_(X[rows]), y[rows])
                loss.backward()
                self.optimizer_.step()
        return self

    def predict(self, X):
        with torch.no_grad():
            return self.layers_(torch.as_tensor(X, dtype=torch.float32)).argmax(1).numpy()


def build(trial, n, previous):
    width = trial.suggest_int("width", 4, 128, log=True)
    rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
    return Net(width, rate) if previous is None else previous


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = make_classification(N_ROWS, n_informative=10, n_clusters_per_class=8, random_state=0)
    objective = TrainingSizeObjective(build, X, y, seed=0)
    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(seed=0, n_learners=N_LEARNERS),
        pruner=DAUBPruner(max_resource=objective.n_train),
    )
    study.optimize(objective)  # ends by itself

    best = best_learner(study)
    print(f"{best.params}\nscore {best.score:.4f} after training on {best.size:,} rows")
    print(f"{best.examples:,} rows, instead of {N_LEARNERS * best.size:,} for all on all rows")
    print(objective.model(study))  # the network itself, as it was scored
