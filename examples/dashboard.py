"""Watch a study while it runs: pictures in optuna-dashboard, one line in the terminal.

    python examples/dashboard.py                        # generated data
    python examples/dashboard.py table.parquet label    # your own file, and its target column

    optuna-dashboard sqlite:///dashboard.db             # meanwhile, in another terminal

Needs `pip install 'optuna-daub[quickstart,dashboard]'`. The pictures are on the first page
of the study, below its history; the reasons are in the notes on the study and on its trials.
"""

import argparse
import os
import warnings
from pathlib import Path


os.environ.setdefault("OMP_NUM_THREADS", "1")  # each training on one core

import optuna
from data import parity
from data import read_table
from pool import POOL
from pool import build

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import best_learner
from optuna_daub.dashboard import DashboardCallback
from optuna_daub.visualization import ProgressBar


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
STORAGE = "sqlite:///dashboard.db"


def main(path: str | None, target: str | None) -> None:
    X, y, X_valid, y_valid = (
        read_table(path, target) if path else parity(2_000 if SMOKE else 21_500)
    )
    learners = list(POOL)[: 6 if SMOKE else len(POOL)]
    objective = TrainingSizeObjective(build, X, y, X_valid=X_valid, y_valid=y_valid)
    study = optuna.create_study(
        study_name=Path(path or "parity").stem,
        storage=STORAGE,
        load_if_exists=True,
        direction="maximize",
        sampler=DataAllocationSampler(n_learners=len(learners)),
        pruner=DAUBPruner(max_resource=objective.n_train),
    )
    for learner in learners:
        study.enqueue_trial({"learner": learner}, skip_if_exists=True)
    print(f"To watch it, run: optuna-dashboard {STORAGE}")
    study.optimize(
        objective, catch=Exception, callbacks=[DashboardCallback(every=5), ProgressBar()]
    )
    best = best_learner(study)
    if best is not None:
        print(f"{best.params['learner']} is {best.reason}")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # log lines would break the progress bar
    warnings.filterwarnings("ignore", module="sklearn")  # learners may not suit the data
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="CSV or Parquet; generated data without it")
    parser.add_argument("target", nargs="?", help="name of the file's target column")
    options = parser.parse_args()
    if options.file and not options.target:
        parser.error("name the target column after the file")
    main(options.file, options.target)
