"""Find the best of 41 learners without training all of them on all the data.

    python examples/quickstart.py                                     # generated data
    python examples/quickstart.py --data table.csv --target label     # your own file

Needs `pip install 'optuna-daub[quickstart]'`. Stop it with Ctrl-C at any time. The same command
then resumes the study, since the study's storage has all results.
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
from screen import print_result
from screen import show_progress

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="CSV or Parquet file; without it, parity of 5 of 16 bits")
    parser.add_argument("--target", help="column of --data to predict")
    parser.add_argument("--train-rows", type=int, help="default 70 %% of --data, at most 38,500")
    parser.add_argument("--learners", type=int, default=len(POOL), help="use only the first ones")
    parser.add_argument("--storage", default="sqlite:///quickstart.db", help="of the Optuna study")
    parser.add_argument("--n-jobs", type=int, default=1, help="trainings at a time")
    args = parser.parse_args()
    if (args.data is None) != (args.target is None):
        parser.error("--data and --target go together")
    return args


def main() -> None:
    args = arguments()
    if args.data is None:
        n_train = args.train_rows or (2_000 if SMOKE else 21_500)
        X, y, X_valid, y_valid = parity(n_train)
    else:
        X, y, X_valid, y_valid = read_table(args.data, args.target, args.train_rows)
    learners = list(POOL)[: args.learners]

    each_learner = optuna.samplers.GridSampler({"learner": learners}, seed=0)
    objective = TrainingSizeObjective(build, X, y, X_valid=X_valid, y_valid=y_valid)
    study = optuna.create_study(
        study_name=f"{Path(args.data or 'parity').stem}, {len(y)} rows, {len(learners)} learners",
        storage=args.storage,
        load_if_exists=True,
        direction="maximize",
        sampler=DataAllocationSampler(each_learner, n_learners=len(learners)),
        pruner=DAUBPruner(min_resource=500, max_resource=objective.n_train, reduction_factor=1.5),
    )
    try:
        study.optimize(objective, n_jobs=args.n_jobs, catch=Exception, callbacks=[show_progress])
    except KeyboardInterrupt:
        print("\nInterrupted. The same command resumes the study.")
    print_result(study, objective.n_train)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", module="sklearn")  # learners may not suit the data
    main()
