"""The best model for a table of yours in ten minutes, saved as a fitted pipeline.

    python examples/automl.py table.csv --target income --minutes 10 --save model.joblib

Needs `pip install 'optuna-daub[quickstart]'`. Values may be missing. Later, of classes:
`pipeline, classes = joblib.load("model.joblib")`, then `classes[pipeline.predict(rows)]`.
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
from sklearn import compose
from sklearn import ensemble
from sklearn import linear_model
from sklearn import preprocessing
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import optuna_daub as daub


TEXT = compose.make_column_selector(dtype_include=["object", "category", "string"])
DATES = compose.make_column_selector(dtype_include=["datetime", "datetimetz", "timedelta"])
TREES: dict[str, tuple[Any, Any]] = {  # to predict numbers, and classes
    "lightgbm": (lightgbm.LGBMRegressor, lightgbm.LGBMClassifier),
    "xgboost": (xgboost.XGBRegressor, xgboost.XGBClassifier),
    "forest": (ensemble.RandomForestRegressor, ensemble.RandomForestClassifier),
    "extra": (ensemble.ExtraTreesRegressor, ensemble.ExtraTreesClassifier),
}
USUAL = {"rate": 0.1, "rows": 1.0, "columns": 1.0, "l1": 2**-10, "l2": 1.0, "features": 0.5}
SIZES = [{"trees": trees, "leaves": leaves} for trees, leaves in ((4, 4), (100, 31), (300, 255))]
STARTS: list[dict[str, Any]] = [{"model": "linear", "strength": 1.0}]
STARTS += [{"model": name, **USUAL, **size} for size in SIZES for name in TREES]


def prepared(text: Any, numbers: Any) -> Any:
    """Return what encodes text, dates and numbers; missing ones become NaN, or the first date."""
    as_type = preprocessing.FunctionTransformer
    objects, floats = ({"dtype": kind, "na_value": np.nan} for kind in (object, float))
    of_text = make_pipeline(as_type(pd.DataFrame.to_numpy, kw_args=objects), text), TEXT
    of_dates = make_pipeline(as_type(pd.DataFrame.astype, kw_args={"dtype": int}), numbers), DATES
    rest = make_pipeline(as_type(pd.DataFrame.to_numpy, kw_args=floats), numbers)
    return compose.make_column_transformer(of_text, of_dates, remainder=rest)


def build(trial: optuna.Trial, n_rows: int, n_classes: int) -> Any:
    """Return an unfitted pipeline; `n_classes` is 0 where numbers are predicted."""
    name = trial.suggest_categorical("model", ["linear", *TREES])
    log = partial(trial.suggest_float, log=True)
    if name == "linear":
        c = log("strength", 2**-5, 2**15)
        logistic = linear_model.LogisticRegression(C=c, max_iter=200)
        some = preprocessing.OneHotEncoder(handle_unknown="ignore", max_categories=50)
        scaled = make_pipeline(SimpleImputer(), preprocessing.StandardScaler())
        return make_pipeline(prepared(some, scaled), logistic if n_classes else Ridge(1 / c))
    most = max(8, min(512, n_rows))  # FLAML goes up to 32,768, and gets there step by step
    leaves, trees = (trial.suggest_int(n, 4, most, log=True) for n in ("leaves", "trees"))
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
    return make_pipeline(prepared(codes, "passthrough"), TREES[name][n_classes > 0](**options))


def main() -> None:
    """Read, search, print what was found, and save it."""
    parser = argparse.ArgumentParser(description="CSV or Parquet in, fitted pipeline out.")
    parser.add_argument("file", nargs="?", type=Path, help="without one it reads digits")
    saved = Path("model.joblib")
    for name, default in ("target", "target"), ("minutes", 10.0), ("jobs", 1), ("save", saved):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    asked = parser.parse_args()
    assert asked.save.parent.is_dir(), f"--save must be in a folder that is there: {asked.save}"
    seconds = 5.0 if "OPTUNA_DAUB_SMOKE" in os.environ else 60 * asked.minutes
    table = load_digits(as_frame=True).frame
    if asked.file is not None:
        table = (pd.read_csv if asked.file.suffix == ".csv" else pd.read_parquet)(asked.file)
    X, y = table.drop(columns=asked.target), table[asked.target]
    is_number = pd.api.types.is_numeric_dtype(y) and (y.nunique() > 50 or (y % 1).any())
    kept = y.notna() & (is_number | (y.map(y.value_counts()) > 1))  # no class of a single row
    X, y = X[kept], y[kept]
    classes, y = ([], y) if is_number else np.unique(y, return_inverse=True)
    metric, n_classes = ("r2", 0) if is_number else ("accuracy", len(classes))
    build_for = partial(build, n_rows=len(X), n_classes=n_classes)
    objective = daub.TrainingSizeObjective(build_for, X, y, scoring=metric)
    n = objective.n_train
    sampler = daub.DataAllocationSampler(optuna.samplers.TPESampler(seed=0), seconds=seconds)
    pruner = daub.DAUBPruner(min_resource=max(2, n // 64, min(20, n // 4)), max_resource=n)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    for point in [point for point in STARTS if point.get("trees", 0) <= n]:
        study.enqueue_trial(point)
    study.optimize(objective, timeout=seconds, n_jobs=asked.jobs, catch=(Exception,))
    best = daub.best_learner(study)
    assert best is not None, "no model could be trained: see the errors above"
    print(f"{best.params}\n{metric} {best.score:.4f}, fitted on {best.size:,} of {len(X):,} rows")
    joblib.dump((objective.refit(study), classes), asked.save)


if __name__ == "__main__":
    main()
