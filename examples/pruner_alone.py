"""Use DAUBPruner alone, with any sampler and the objective that you have.

    python examples/pruner_alone.py

The objective is plain Optuna: `trial.report` with the number of training examples as the step, and
`trial.should_prune`. A trial is pruned for good when the bound on its score on all the data is
below a score that another trial has reached. So DAUBPruner replaces HyperbandPruner without other
changes. In tpe_lightgbm.py, trials are suspended and resumed instead.
"""

import os

import optuna
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from optuna_daub import DAUBPruner


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
SIZES = [250, 500, 1_000, 2_000] if SMOKE else [250, 500, 1_000, 2_000, 4_000, 8_000]
N_TRIALS = 6 if SMOKE else 30

X, y = make_classification(
    n_samples=12_000, n_features=30, n_informative=15, n_classes=4, random_state=0
)
X_train, y_train, X_valid, y_valid = X[:8_000], y[:8_000], X[8_000:], y[8_000:]


def objective(trial: optuna.Trial) -> float:
    model = RandomForestClassifier(
        n_estimators=20,
        max_depth=trial.suggest_int("max_depth", 1, 20),
        max_features=trial.suggest_float("max_features", 0.1, 1.0),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 100, log=True),
        random_state=0,
    )
    for n in SIZES:
        model.fit(X_train[:n], y_train[:n])
        score = model.score(X_valid, y_valid)
        trial.report(score, n)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


if __name__ == "__main__":
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=DAUBPruner(sizes=SIZES),
    )
    study.optimize(objective, n_trials=N_TRIALS)

    spent = sum(sum(trial.intermediate_values) for trial in study.trials)
    print(f"\n{study.best_params}\nscore {study.best_value:.4f} after training on {SIZES[-1]:,}")
    print(f"{spent:,} training examples, instead of {N_TRIALS * sum(SIZES):,} without a pruner")
