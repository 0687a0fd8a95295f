"""The data of approximate_best.py: a generated table, or your own file."""

from __future__ import annotations

import numpy as np
import pandas as pd


def parcels(n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Return parcels, late more often with some carriers, over long distances and at night."""
    rng = np.random.default_rng(seed)
    carrier, hour = rng.integers(0, 12, n_rows), rng.uniform(0, 24, n_rows)
    km = rng.gamma(2, 200, n_rows)
    risk = np.sin(carrier) + np.cos(hour / 4) * (km > 300) + km / 1000 - 1
    late = rng.random(n_rows) < 1 / (1 + np.exp(-2 * risk))
    return pd.DataFrame({"carrier": carrier.astype(str), "hour": hour, "km": km, "late": late})


def read(path: str) -> pd.DataFrame:
    """Return a CSV or Parquet file."""
    return pd.read_csv(path) if path.endswith(".csv") else pd.read_parquet(path)


def features_and_classes(
    table: pd.DataFrame, target: str, codes: str = ""
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the other columns of a table, and the target as classes 0, 1, ...

    Columns of text, and those of numbers that `codes` lists by name, become categories.
    """
    named = [name for name in codes.split(",") if name]
    if unknown := {target, *named} - {*table}:
        raise SystemExit(f"No column {', '.join(unknown)}: the table has {', '.join(table)}.")
    classes = pd.factorize(table[target], sort=True)[0]
    features = table.drop(columns=target)
    text = features.select_dtypes(exclude="number")
    return features.astype(dict.fromkeys([*text, *named], "category")), classes
