"""The best model for a table of yours in ten minutes, saved to a file.

    python examples/automl.py table.csv --target income --minutes 10 --save model.joblib

Needs `pip install 'optuna-daub[tabular]'`. The same as a command: `python -m optuna_daub fit`.
Later: `joblib.load("model.joblib").predict("new.csv")`.
"""

import argparse
import os

from sklearn.datasets import load_digits

from optuna_daub.tabular import TableError
from optuna_daub.tabular import fit


def main() -> None:
    """Read, search, save the model, and say what was found."""
    parser = argparse.ArgumentParser(description="A table in, a fitted model out.")
    parser.add_argument("table", nargs="?", help="CSV, Parquet or Excel; without one it is digits")
    parser.add_argument("--target", default="target")
    parser.add_argument("--task", help="classification or regression; it is guessed without")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--save", default="model.joblib")
    asked = parser.parse_args()
    table = asked.table or load_digits(as_frame=True).frame
    minutes = 0.05 if "OPTUNA_DAUB_SMOKE" in os.environ else asked.minutes
    try:
        model = fit(table, asked.target, seconds=60 * minutes, task=asked.task)
    except TableError as error:
        raise SystemExit(str(error)) from None
    model.save(asked.save)
    print(model)
    print(f"{model.metric.name} {model.metric.said(model.score)}, saved as {asked.save}")


if __name__ == "__main__":
    main()
