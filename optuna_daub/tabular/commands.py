"""The commands `python -m optuna_daub example`, `fit` and `predict`."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import joblib
from sklearn.datasets import make_classification

from optuna_daub.core.checks import brief
from optuna_daub.spaces import SPACES
from optuna_daub.study.messages import message_of
from optuna_daub.tabular.fitting import fit
from optuna_daub.tabular.model import TabularModel
from optuna_daub.tabular.model import replacing
from optuna_daub.tabular.model import target_of
from optuna_daub.tabular.reading import READABLE
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.target import NoTargetError


def add_commands(commands: Any) -> None:
    """Add the commands to the result of `ArgumentParser.add_subparsers`."""
    made = commands.add_parser(
        "example",
        help="find the best model for a large table that is made",
        description="Make a large table, and find the best model for it in a few minutes.",
    )
    made.add_argument("--rows", type=int, default=500_000, help="of the table (500000)")
    _add_time(made, 2, "for the search")
    made.set_defaults(run=_example)

    train = commands.add_parser(
        "fit",
        help="find the best model for a table",
        description="Find the best model for a table, and save it.",
    )
    train.add_argument("table", type=Path, help=f"a file: {READABLE}")
    train.add_argument("--target", help="the column to predict (target)")
    _add_time(train, 10, "for all of it")
    train.add_argument("--save", type=Path, default=Path("model.joblib"), help="(model.joblib)")
    train.add_argument("--report", type=Path, help="an HTML file to write, with pictures")
    train.add_argument(
        "--task", choices=["classification", "regression"], help="what to predict; else guessed"
    )
    train.add_argument("--metric", help='such as "auc", "log_loss", "rmse" (accuracy or r2)')
    several: Any = {"nargs": "+", "action": "extend"}  # in one list or in several
    train.add_argument("--ignore", **several, default=[], metavar="COLUMN", help="to leave out")
    train.add_argument("--models", **several, choices=[*SPACES], help="kinds of models (all)")
    train.add_argument("--jobs", type=int, help="threads of large trainings (one per core)")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--storage", help="where Optuna keeps the search: sqlite:///search.db")
    _add_header(train)
    train.set_defaults(run=_fit)

    apply = commands.add_parser(
        "predict",
        help="apply a saved model to a table",
        description="Apply a saved model to a table. Load only models that you trust.",
    )
    apply.add_argument("table", type=Path, help=f"a file: {READABLE}")
    apply.add_argument("--model", type=Path, default=Path("model.joblib"), help="(model.joblib)")
    apply.add_argument("--out", type=Path, help="a CSV file to write; else it is printed")
    apply.add_argument(
        "--proba", action="store_true", help="probabilities of all classes as columns too"
    )
    _add_header(apply)
    apply.set_defaults(run=_predict)
    for parser in (made, train, apply):
        parser.set_defaults(refuse=parser.error)
        parser.add_argument(
            "--traceback", action="store_true", help="show where an error was raised"
        )


def run(asked: argparse.Namespace, say: Any) -> int:
    """Run a command and return 0. After a wrong argument or table, print why and return 2.

    Return 1 if no model could be trained, and 130 after Ctrl-C. Errors that other packages raise
    are faults, and pass through with their traceback.
    """
    try:
        asked.run(asked, say)
    except (ValueError, ImportError, RuntimeError) as error:
        if asked.traceback or not _is_raised_here(error):
            raise
        hint = "" if isinstance(error, TableError) else " (`--traceback` shows where this is.)"
        sys.stderr.write(f"{error}{hint}\n")
        return 1 if isinstance(error, RuntimeError) else 2
    except KeyboardInterrupt as interrupt:
        if asked.traceback:
            raise
        sys.stderr.write(f"Interrupted: {str(interrupt) or 'there is no result'}.\n")
        return 130  # what a shell returns for a command that was interrupted
    return 0


def _is_raised_here(error: Exception) -> bool:
    """Return whether the innermost call of a traceback is one of this package."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "optuna_daub"


def _check_path(name: str, path: Path | None, *others: Path | None) -> None:
    """Raise a TableError if a path cannot be written to, or is another argument's too."""
    if path is None:
        return
    target, part = target_of(path)
    if target in [target_of(other)[0] for other in others if other is not None]:
        raise TableError(
            f"`{name}` must be a file of its own, but {path} is another argument too."
        )
    for file in (target, part):
        try:
            is_new = not file.exists()
            file.open("ab").close()
        except OSError as error:  # no such folder, a folder, not allowed, a name too long
            got = f"{brief(str(path))}: {error.strerror}"
            raise TableError(
                f"`{name}` must be a file that can be written, but got {got}."
            ) from error
        if is_new:
            file.unlink()


def _example(asked: argparse.Namespace, say: Any) -> None:
    if asked.rows < 1_000:
        raise TableError(f"`--rows` must be at least 1000, but got {asked.rows}.")
    pandas = imported("pandas")
    # Many clusters of each class, so models gain from more rows up to the last one.
    values, classes = make_classification(
        asked.rows, n_informative=10, n_clusters_per_class=16, class_sep=2.0, random_state=0
    )
    table = pandas.DataFrame(values, columns=[f"measure_{i}" for i in range(values.shape[1])])
    table["quality"] = pandas.Series(classes).map({0: "poor", 1: "good"})
    say(f"A made table of {asked.rows:,} rows: predict `quality` from 20 measures.")
    say(str(fit(table, "quality", seconds=asked.seconds, say=say)))


def _fit(asked: argparse.Namespace, say: Any) -> None:
    _check_path("--save", asked.save, asked.table, asked.report)
    _check_path("--report", asked.report, asked.table)
    if asked.report is not None:
        imported("plotly")
    try:
        model = fit(
            asked.table,
            "target" if asked.target is None else asked.target,
            seconds=asked.seconds,
            task=asked.task,
            metric=asked.metric,
            ignore=asked.ignore,
            models=asked.models,
            jobs=asked.jobs,
            seed=asked.seed,
            header=asked.header,
            storage=asked.storage,
            say=say,
        )
    except NoTargetError as error:
        if asked.target is not None:
            raise
        raise TableError(f"`--target` is missing, so it is 'target'. {error}") from error
    model.save(asked.save)
    say("")
    say(str(model))
    say("")
    path = str(asked.save)
    quoted = subprocess.list2cmdline([path]) if os.name == "nt" else shlex.quote(path)
    say(f"Saved as {asked.save}: python -m optuna_daub predict NEW_TABLE --model {quoted}")
    if asked.report is not None:
        try:
            model.report(asked.report)
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt("the model is saved, but no report") from interrupt
        say(f"Report: {asked.report}")


def _predict(asked: argparse.Namespace, say: Any) -> None:
    pandas = imported("pandas")
    _check_path("--out", asked.out, asked.table, asked.model)
    if not asked.model.is_file():
        raise TableError(
            f"`--model` must be a file that `fit` has saved, but {asked.model} is no file."
        )
    try:
        model = joblib.load(asked.model)
    except Exception as error:  # joblib raises many kinds for a file that is not a model
        raise TableError(
            f"`--model` must be a file that `fit` has saved, but {asked.model} cannot be loaded: "
            f"{message_of(error).rstrip('.')}."
        ) from error
    if not isinstance(model, TabularModel):
        raise TableError(
            "`--model` must be a file that `fit` has saved, but "
            f"{asked.model} holds {type(model).__name__}."
        )
    if asked.proba and model.task != "classification":
        raise TableError("`--proba` needs a model of classes, but this one predicts amounts.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = pandas.DataFrame({model.target: model.predict(asked.table, header=asked.header)})
        if asked.proba:
            shares = model.predict_proba(asked.table, header=asked.header)
            names = [f"{model.target}={name}" for name in model.classes]
            found = pandas.concat([found, pandas.DataFrame(shares, columns=names)], axis=1)
    for said in dict.fromkeys(str(warning.message) for warning in caught):
        sys.stderr.write(f"{said}\n")
    if asked.out is None:
        text = found.to_csv(index=False, lineterminator="\n").rstrip("\n")
        _check_printable(text)
        say(text)
    else:
        with replacing(asked.out) as part:
            found.to_csv(part, index=False)


def _check_printable(text: str) -> None:
    """Raise a TableError if predictions have signs that the output cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # None if it is closed
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise TableError(
            f"Predictions must be printed in {encoding}, which has no {text[error.start]!a}: "
            "`--out` writes them to a file in UTF-8."
        ) from error


def _add_time(parser: argparse.ArgumentParser, minutes: int, what: str) -> None:
    times = parser.add_mutually_exclusive_group()
    for unit, seconds in {"minutes": 60.0, "seconds": 1.0}.items():
        times.add_argument(
            f"--{unit}",
            dest="seconds",
            metavar=unit.upper(),
            type=partial(_positive, scale=seconds),
            default=60.0 * minutes,
            help=f"time {what} ({minutes * 60 / seconds:.0f})",
        )


def _add_header(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--header",
        choices=["auto", "yes", "no"],
        default="auto",
        help="whether the first line of a text or Excel file holds names (auto)",
    )


def _positive(text: str, scale: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, but got {brief(text)}")
    return scale * value
