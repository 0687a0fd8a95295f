"""A search in scikit-learn's interface, on a table with text and missing values.

    python examples/search_cv.py adult.csv --target income --seconds 60

Each candidate is a pipeline. It encodes text as numbers, and has boosted trees or a linear model.
Without a file, a table is generated. Needs `pip install 'optuna-daub[data]'`.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import loguniform
from scipy.stats import randint
from sklearn.compose import make_column_selector
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.preprocessing import OrdinalEncoder
from sklearn.preprocessing import StandardScaler

from optuna_daub.sklearn import DataAllocationSearchCV


text = make_column_selector(dtype_exclude="number")
codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
dummies = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=10)
scaled = make_pipeline(SimpleImputer(), StandardScaler())

PIPELINE = Pipeline([("columns", "passthrough"), ("model", LogisticRegression())])
SPACE = [
    {
        "columns": [make_column_transformer((codes, text), remainder="passthrough")],
        "model": [HistGradientBoostingClassifier(early_stopping=False, random_state=0)],
        "model__learning_rate": loguniform(0.01, 1),
        "model__max_iter": randint(20, 300),
        "model__max_leaf_nodes": randint(4, 64),
        "model__min_samples_leaf": randint(5, 100),
    },
    {
        "columns": [make_column_transformer((dummies, text), remainder=scaled)],
        "model": [LogisticRegression(max_iter=300)],
        "model__C": loguniform(0.001, 100),
    },
]


def made(n_rows: int) -> pd.DataFrame:
    """Return parcels, late or in time by carrier, hour and distance, with missing values."""
    rng = np.random.default_rng(0)
    carrier, hour, km = (
        rng.integers(0, 9, n_rows),
        rng.uniform(0, 24, n_rows),
        rng.gamma(2, 200, n_rows),
    )
    risk = np.sin(carrier) + np.cos(hour / 4) * (km > 300) + km / 1000 - 1
    late = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-2 * risk)), "late", "in time")
    names = np.array(["DHL", "UPS", "GLS", "DPD", "TNT", "PostNL", "La Poste", "Correos", "mule"])
    table = pd.DataFrame({"carrier": names[carrier], "hour": hour, "km": km, "target": late})
    return table.mask(rng.random(table.shape) < 0.05).dropna(subset=["target"])


def main() -> None:
    """Read the table, search, and print the result."""
    parser = argparse.ArgumentParser(description="A search in scikit-learn's interface.")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--target", default="target")
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    is_smoke = "OPTUNA_DAUB_SMOKE" in os.environ
    if asked.file is None:
        table = made(1500 if is_smoke else 20_000)
    else:
        read = pd.read_parquet if asked.file.suffix == ".parquet" else pd.read_csv
        table = read(asked.file).dropna(subset=[asked.target])
    X, y = table.drop(columns=asked.target), table[asked.target]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)

    search = DataAllocationSearchCV(
        PIPELINE, SPACE, timeout=12.0 if is_smoke else asked.seconds, random_state=0
    )
    search.fit(X, y)

    results = search.cv_results_
    n_full = int((results["n_resources"] == search.max_resources_).sum())
    print(f"{search.n_candidates_} candidates, {n_full} of them trained on all the rows of a fold")
    print(f"best: {search.best_estimator_['model']}")
    print(f"score {search.best_score_:.4f} in {search.n_splits_} folds")
    print(f"score {search.score(X_test, y_test):.4f} on {len(y_test):,} rows that it has not seen")


if __name__ == "__main__":
    main()
