"""The search space of the ABC paper's experiments: five learners with their hyperparameters.

`build` suggests one of logistic regression, linear SVM, LightGBM, random forest and a neural
network, and then its hyperparameters. The paper counts 29 hyperparameters and does not list
them. Here are 20, in ranges that allow training on 1.4 million rows on one core.

Two of the learners are chosen to fulfil the conditions of ABC. The forests have few leaves: a
forest that memorises its sample has an upper end of 1, and is dropped last. The networks train
until they fit their sample. If they stopped after a few epochs, networks on small samples would
fit their sample worse than networks on more data, and would be dropped wrongly.
"""

from __future__ import annotations

import optuna
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_selector
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.preprocessing import OrdinalEncoder
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC


CATEGORIES = make_column_selector(dtype_include="category")
NUMBERS = make_column_selector(dtype_exclude="category")


def build(trial: optuna.Trial) -> Pipeline:
    """Return the unfitted pipeline of a trial: categories to numbers, then a learner."""
    learner = trial.suggest_categorical("learner", [*LEARNERS])
    model = LEARNERS[learner](trial)
    if learner in ("lightgbm", "forest"):  # a tree can split any order of the categories
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        columns = make_column_transformer((codes, CATEGORIES), remainder="passthrough")
    else:
        one_hot = OneHotEncoder(handle_unknown="ignore")
        columns = make_column_transformer((one_hot, CATEGORIES), (StandardScaler(), NUMBERS))
    return make_pipeline(columns, model)


def logistic(trial: optuna.Trial) -> LogisticRegression:
    return LogisticRegression(
        C=trial.suggest_float("logistic.C", 1e-5, 10, log=True),
        max_iter=trial.suggest_int("logistic.max_iter", 20, 200, log=True),
    )


def linear_svm(trial: optuna.Trial) -> LinearSVC:
    return LinearSVC(
        C=trial.suggest_float("linear_svm.C", 1e-6, 1, log=True),
        max_iter=trial.suggest_int("linear_svm.max_iter", 10, 100, log=True),
        dual=False,  # squared hinge loss, solved by Newton's method
    )


def lightgbm(trial: optuna.Trial) -> LGBMClassifier:
    return LGBMClassifier(
        n_estimators=trial.suggest_int("lightgbm.n_estimators", 50, 500, log=True),
        num_leaves=trial.suggest_int("lightgbm.num_leaves", 8, 256, log=True),
        learning_rate=trial.suggest_float("lightgbm.learning_rate", 0.02, 0.4, log=True),
        min_child_samples=trial.suggest_int("lightgbm.min_child_samples", 2, 200, log=True),
        reg_lambda=trial.suggest_float("lightgbm.reg_lambda", 1e-3, 10, log=True),
        colsample_bytree=trial.suggest_float("lightgbm.colsample_bytree", 0.4, 1.0),
        subsample=trial.suggest_float("lightgbm.subsample", 0.4, 1.0),
        subsample_freq=1,
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )


def forest(trial: optuna.Trial) -> RandomForestClassifier:
    return RandomForestClassifier(
        n_estimators=trial.suggest_int("forest.n_estimators", 10, 100, log=True),
        max_leaf_nodes=trial.suggest_int("forest.max_leaf_nodes", 32, 2048, log=True),
        min_samples_leaf=trial.suggest_int("forest.min_samples_leaf", 1, 20, log=True),
        max_features=trial.suggest_float("forest.max_features", 0.2, 0.8),
        max_samples=trial.suggest_float("forest.max_samples", 0.2, 0.8),
        random_state=0,
    )


def network(trial: optuna.Trial) -> MLPClassifier:
    return MLPClassifier(
        hidden_layer_sizes=[trial.suggest_int("network.width", 8, 64, log=True)],
        learning_rate_init=trial.suggest_float("network.learning_rate", 1e-3, 1e-2, log=True),
        alpha=trial.suggest_float("network.alpha", 1e-6, 1e-2, log=True),
        batch_size=2 ** trial.suggest_int("network.log2_batch_size", 7, 9),
        max_iter=100,  # enough for small samples; on large ones it stops after some 15
        n_iter_no_change=2,
        random_state=0,
    )


LEARNERS = {
    "logistic": logistic,
    "linear_svm": linear_svm,
    "lightgbm": lightgbm,
    "forest": forest,
    "network": network,
}
