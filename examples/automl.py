"""The best model for a table of yours in ten minutes, saved as a fitted pipeline.

    python examples/automl.py table.csv --target income --minutes 10 --save model.joblib

Text becomes numbers, values may be missing. The spaces are like FLAML's, scaled to the rows; its
cheapest points are tried first, then middling and large ones. Without a file, a table is made.
"""

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import lightgbm
import numpy as np
import optuna
import pandas as pd
import xgboost
from sklearn import ensemble
from sklearn import linear_model
from sklearn import preprocessing
from sklearn.compose import make_column_selector
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import optuna_daub as daub


TEXT = make_column_selector(dtype_include=["object", "category", "string", "bool"])
TREES: dict[str, tuple[Any, Any]] = {  # to predict numbers, and classes
    "lightgbm": (lightgbm.LGBMRegressor, lightgbm.LGBMClassifier),
    "xgboost": (xgboost.XGBRegressor, xgboost.XGBClassifier),
    "forest": (ensemble.RandomForestRegressor, ensemble.RandomForestClassifier),
    "extra": (ensemble.ExtraTreesRegressor, ensemble.ExtraTreesClassifier),
}
USUAL = {"rate": 0.1, "rows": 1.0, "columns": 1.0, "l1": 2**-10, "l2": 1.0, "features": 0.5}
SIZES = [{"trees": trees, "leaves": leaves} for trees, leaves in ((4, 4), (100, 31), (300, 255))]
STARTS: list[dict[str, Any]] = [{"model": "linear", "strength": 1.0}] + [
    {"model": name, **USUAL, **size} for size in SIZES for name in TREES
]


def build(trial: optuna.Trial, n_rows: int, n_classes: int) -> Any:
    """Return an unfitted pipeline; `n_classes` is 0 where numbers are predicted."""
    name = trial.suggest_categorical("model", ["linear", *TREES])
    log = partial(trial.suggest_float, log=True)
    if name == "linear":
        c = log("strength", 2**-5, 2**15)
        logistic = linear_model.LogisticRegression(C=c, max_iter=200)
        some = preprocessing.OneHotEncoder(handle_unknown="ignore", max_categories=50)
        scaled = make_pipeline(SimpleImputer(), preprocessing.StandardScaler())
        columns = make_column_transformer((some, TEXT), remainder=scaled)
        return make_pipeline(columns, logistic if n_classes else linear_model.Ridge(1 / c))
    most = max(8, min(512, n_rows))  # FLAML goes up to 32,768, and gets there step by step
    leaves = trial.suggest_int("leaves", 4, most, log=True)
    trees = trial.suggest_int("trees", 4, most, log=True)
    options: dict[str, Any] = {"n_estimators": trees, "n_jobs": 1, "random_state": 0}
    if name in ("forest", "extra"):
        options |= {"max_leaf_nodes": leaves, "max_features": log("features", 0.1, 1.0)}
    else:
        options |= {"learning_rate": log("rate", 2**-10, 1.0), "subsample": log("rows", 0.1, 1.0)}
        options["colsample_bytree"] = log("columns", 0.1, 1.0)
        options |= {"reg_alpha": log("l1", 2**-10, 2**10), "reg_lambda": log("l2", 2**-10, 2**10)}
    if name == "lightgbm":
        options |= {"num_leaves": leaves, "subsample_freq": 1, "verbose": -1}
    elif name == "xgboost":
        options |= {"max_leaves": leaves, "max_depth": 0, "grow_policy": "lossguide"}
    codes = preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((codes, TEXT), remainder="passthrough")
    return make_pipeline(columns, TREES[name][n_classes > 0](**options))


def main() -> None:
    """Read, search, print what was found, and save it."""
    parser = argparse.ArgumentParser(description="CSV or Parquet in, fitted pipeline out.")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--target", default="target")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=1, help="models trained at a time")
    parser.add_argument("--save", default="model.joblib")
    asked = parser.parse_args()
    seconds = 5.0 if "OPTUNA_DAUB_SMOKE" in os.environ else 60 * asked.minutes
    if asked.file is not None:
        read = pd.read_parquet if asked.file.suffix == ".parquet" else pd.read_csv
        table = read(asked.file).dropna(subset=[asked.target])
    else:
        X, y = make_classification(4000, 12, n_informative=6, flip_y=0.1, random_state=0)
        table = pd.DataFrame(X).add_prefix("x").assign(target=y)
    X, y = table.drop(columns=asked.target), table[asked.target]
    is_number = pd.api.types.is_numeric_dtype(y) and y.nunique() > 50
    classes, y = (None, y) if is_number else np.unique(y, return_inverse=True)

    def model(trial: optuna.Trial) -> Any:
        return build(trial, len(X), 0 if classes is None else len(classes))

    scoring = "r2" if is_number else "accuracy"
    objective = daub.TrainingSizeObjective(model, X, y, scoring=scoring)
    n = objective.n_train
    study = optuna.create_study(
        direction="maximize",
        sampler=daub.DataAllocationSampler(optuna.samplers.TPESampler(seed=0), seconds=seconds),
        pruner=daub.DAUBPruner(min_resource=max(20, n // 64), max_resource=n),
    )
    for point in [point for point in STARTS if point.get("trees", 0) <= n]:
        study.enqueue_trial(point)
    study.optimize(objective, timeout=seconds, n_jobs=asked.jobs, catch=(Exception,))
    best = daub.best_learner(study)
    assert best is not None, "no model could be trained: see the errors above"
    print(f"{best.params}\nscore {best.score:.4f}, trained on {best.size:,} of {len(X):,} rows")
    joblib.dump((objective.refit(study), classes), asked.save)
    print(f"The fitted pipeline and the names of its classes are in {asked.save}.")


if __name__ == "__main__":
    main()
