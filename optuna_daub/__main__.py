"""`python -m optuna_daub`: versions, extras and a short self-test.

`python -m optuna_daub example`, `fit` and `predict` are the commands for tables.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from importlib import metadata

import optuna
from packaging.requirements import Requirement
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import __version__
from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub import report
from optuna_daub import training_sizes


DISTRIBUTION = "optuna-daub"
EXTRAS = ("tabular", "boosters", "data", "plot", "dashboard", "workers")
"""Extras for users; the others are for tests, benchmarks and the documentation."""


def main() -> int:
    """Run a command, or print versions and run the self-test; return 0 on success."""
    parser = argparse.ArgumentParser(prog="python -m optuna_daub", description=__doc__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    # Commands for tables import their packages late: a bare installation lacks them.
    from optuna_daub.tabular import commands as of_tables

    of_tables.add_commands(commands)
    parser.set_defaults(refuse=parser.error)
    asked, unknown = parser.parse_known_args()
    if unknown:  # argparse would show the usage of all commands
        asked.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    if "run" in asked:
        return of_tables.run(asked, say)
    say(f"{DISTRIBUTION} {__version__}")
    say(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in ("optuna", "numpy", "scikit-learn", "scipy"):
        say(f"{name} {metadata.version(name)}")
    say("\nExtras")
    try:
        lines = [f"{extra:<9}  {extra_line(extra)}" for extra in EXTRAS]
    except metadata.PackageNotFoundError:
        lines = ["unknown: these are sources that were not installed"]
    say("\n".join(f"  {line}" for line in lines))
    say("\nSelf-test: eight nearest-neighbour classifiers on scikit-learn's digits")
    began = time.perf_counter()
    problem = None
    try:
        say(f"  {self_test()}")
    except Exception as error:  # any error belongs in a bug report
        problem = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - began
    say(f"  {'passed' if problem is None else f'FAILED: {problem}'} ({seconds:.1f} s)")
    return 0 if problem is None else 1


def say(text: str) -> None:
    """Print a text at once. Signs that the terminal does not have are shown as codes.

    If nobody reads the output any more, as behind `| head -1`, the text is dropped, and a search
    goes on.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # None if it is closed
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def extra_line(extra: str) -> str:
    """Return the versions of an extra's packages, or the line that installs them."""
    found = []
    for requirement in requirements(extra):
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            return f'{requirement.name} is missing: pip install "{DISTRIBUTION}[{extra}]"'
        if not requirement.specifier.contains(version, prereleases=True):
            found_not = f"{requirement.name} {version} is not {requirement.specifier}"
            return f'{found_not}: pip install "{DISTRIBUTION}[{extra}]"'
        found.append(f"{requirement.name} {version}")
    return ", ".join(found)


def requirements(extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, from the installed distribution."""
    for line in metadata.requires(DISTRIBUTION) or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            yield requirement


def self_test() -> str:
    """Run a small study with sampler, pruner and report.

    Return its result as a sentence.

    Raises:
        RuntimeError: if the study did not end as it must.
    """
    X, y = load_digits(return_X_y=True)
    X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=0, stratify=y)
    n_learners, full = 8, len(y_train)

    def objective(trial: optuna.Trial) -> float:
        model = KNeighborsClassifier(trial.suggest_int("n_neighbors", 1, 100, log=True))
        score = 0.0
        for n in training_sizes(trial):
            model.fit(X_train[:n], y_train[:n])
            score = model.score(X_valid, y_valid)
            report(trial, n, score)
        return score

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        base = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(
            direction="maximize",
            sampler=DataAllocationSampler(base, n_learners=n_learners),
            pruner=DAUBPruner(min_resource=100, max_resource=full, cost="examples"),
        )
        # Limit the runs: a faulty study might never end by itself.
        study.optimize(objective, n_trials=20 * n_learners)
    finally:
        optuna.logging.set_verbosity(verbosity)

    best = best_learner(study)
    curves = learning_curves(study)
    if best is None:
        raise RuntimeError("no learner was trained")
    _require(len(curves) == n_learners, f"{len(curves)} learners of {n_learners} were tried")
    _require(best.is_final, "the study did not come to its end")
    _require(best.size == full, f"the best learner has seen {best.size:,} of {full:,} examples")
    _require(study.best_trial.params == best.params, "Optuna's best trial is another learner")
    _require(best.score > 0.9, f"the best learner has an accuracy of {best.score:.3f} only")
    _require(any(c.size < full for c in curves), "every learner was trained on all the data")
    return (
        f"best of {n_learners}: {best.params}, accuracy {best.score:.3f}, found with "
        f"{best.examples:,} training examples; training all of them on all the data takes "
        f"{n_learners * full:,}"
    )


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


if __name__ == "__main__":
    # Batch systems end a job by SIGTERM: keep the best model so far, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())
