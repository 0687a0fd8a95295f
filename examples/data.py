"""The data of the quickstart: generated data, or your own file."""

from __future__ import annotations

from pathlib import Path

import numpy as np


Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""X and y to train on, X and y to validate on."""

LARGEST_TRAINING_SET = 38_500  # as in the DAUB paper
LARGEST_VALIDATION_SET = 10_000


def parity(n_train: int = 21_500, n_valid: int = 21_500, seed: int = 0) -> Split:
    """Return distinct patterns of 16 bits; the class is the parity of five of them.

    The other eleven are distractors. Fewer than five features say nothing about the class.
    """
    patterns = np.random.default_rng(seed).permutation(2**16 - 1)  # 65,535: all but one
    X = (patterns[: n_train + n_valid, None] >> np.arange(16)) & 1
    y = X[:, :5].sum(axis=1) % 2
    X = X.astype(np.float32)
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def read_table(path: str, target: str, n_train: int | None = None, seed: int = 0) -> Split:
    """Return a CSV or Parquet file as numbers, shuffled and split.

    Columns of text become one column per value, missing numbers the median, classes 0, 1, 2, ...
    Up to 30 % of the rows, at most 10,000, are for validation.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("To read files: pip install 'optuna-daub[data]'") from error
    table = pd.read_parquet(path) if Path(path).suffix == ".parquet" else pd.read_csv(path)
    if target not in table:
        raise SystemExit(f"--target must be a column of {path}, which has {', '.join(table)}.")
    y = pd.factorize(table.pop(target), sort=True)[0]
    table = pd.get_dummies(table, dtype=np.float32)
    X = table.fillna(table.median()).to_numpy(np.float32)
    n_rest = min(round(0.3 * len(y)), LARGEST_VALIDATION_SET)
    n_most = len(y) - n_rest
    n_train = min(round(0.7 * len(y)), LARGEST_TRAINING_SET) if n_train is None else n_train
    if not 0 < n_train <= n_most:
        raise SystemExit(f"--train-rows must be in [1, {n_most}], but got {n_train}.")
    rows = np.random.default_rng(seed).permutation(len(y))
    training, validation = rows[:n_train], rows[-n_rest:]
    return X[training], y[training], X[validation], y[validation]
