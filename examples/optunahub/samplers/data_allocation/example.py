"""The best of ten decision trees, few of which are trained on all the data.

    python examples/optunahub/samplers/data_allocation/example.py

Needs `pip install optunahub optuna-daub`.
"""

from pathlib import Path

import optuna
import optunahub
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier


REGISTRY = Path(__file__).resolve().parents[2]
# Once it is published: optunahub.load_module("samplers/data_allocation")
module = optunahub.load_local_module("samplers/data_allocation", registry_root=str(REGISTRY))


def build(trial: optuna.Trial) -> DecisionTreeClassifier:
    depth = trial.suggest_int("max_depth", 1, 20)
    leaf = trial.suggest_int("min_samples_leaf", 1, 20, log=True)
    return DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0)


if __name__ == "__main__":
    objective = module.TrainingSizeObjective(build, *load_digits(return_X_y=True))
    study = optuna.create_study(
        direction="maximize",
        sampler=module.DataAllocationSampler(optuna.samplers.TPESampler(seed=0), n_learners=10),
        pruner=module.DAUBPruner(min_resource=100, max_resource=objective.n_train),
    )
    study.optimize(objective)
    best = module.best_learner(study)
    print(best.params, best.score, best.reason)
