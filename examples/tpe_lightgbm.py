"""Use DAUBPruner and DataAllocationSampler in an existing TPE search over a LightGBM space.

    python examples/tpe_lightgbm.py

Four things differ from a plain Optuna search: `sampler=` wraps the sampler that you have,
`pruner=` is DAUBPruner, the objective trains in a loop over `training_sizes(trial)`, and
`n_learners` replaces `n_trials`. TPE proposes 40 models, and sees one trial for each. Most models
are trained only on part of the data. Needs `pip install 'optuna-daub[boosters]'`.
"""

import os

import optuna
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import best_learner
from optuna_daub import report
from optuna_daub import training_sizes


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
N_TRAIN, N_VALID, N_LEARNERS = (2_000, 1_000, 4) if SMOKE else (100_000, 10_000, 40)

X, y = make_classification(
    n_samples=N_TRAIN + N_VALID, n_informative=10, n_clusters_per_class=8, random_state=0
)
X_train, y_train, X_valid, y_valid = X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


def objective(trial: optuna.Trial) -> float:
    model = LGBMClassifier(
        n_estimators=trial.suggest_int("n_estimators", 5, 50, log=True),
        num_leaves=trial.suggest_int("num_leaves", 2, 16, log=True),
        learning_rate=trial.suggest_float("learning_rate", 0.003, 0.3, log=True),
        min_child_samples=trial.suggest_int("min_child_samples", 2, 200, log=True),
        reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 100, log=True),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.3, 1.0),
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )
    for n in training_sizes(trial):  # was: n = len(X_train)
        model.fit(X_train[:n], y_train[:n])
        score = model.score(X_valid, y_valid)
        report(trial, n, score, training_score=model.score(X_train[:n], y_train[:n]))
    return score


if __name__ == "__main__":
    tpe = optuna.samplers.TPESampler(multivariate=True, seed=0)
    study = optuna.create_study(
        direction="maximize",
        sampler=DataAllocationSampler(tpe, n_learners=N_LEARNERS),  # was: tpe
        pruner=DAUBPruner(min_resource=500, max_resource=N_TRAIN),  # was: none
    )
    study.optimize(objective)  # was: n_trials=40; the study now ends by itself

    best = best_learner(study)
    print(f"\n{study.best_params}\nscore {study.best_value:.4f} after training on {best.size:,}")
    print(f"{best.examples:,} examples, instead of {N_LEARNERS * N_TRAIN:,} for all on all data")
