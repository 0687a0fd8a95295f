"""Run one study in several processes, on one or many machines.

    python examples/workers.py --workers 4                    # four processes on this machine

Or run this line in several shells, also on several machines, with a storage that all can reach.
Start the first one a few seconds before the others, since it creates the tables:

    python examples/workers.py --workers 1 --storage postgresql+psycopg2://me@server/studies

A worker only opens the study by its storage and calls `study.optimize`. Two workers never train
one learner at the same time. Workers may start later, stop or be killed. All end with the study.
"""

import argparse
import multiprocessing
import os


os.environ.setdefault("OMP_NUM_THREADS", "1")  # each training on one core

import optuna
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import best_learner


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
N_ROWS, N_LEARNERS = (2_000, 6) if SMOKE else (20_000, 40)


def build(trial: optuna.Trial) -> ExtraTreesClassifier:
    depth = trial.suggest_int("max_depth", 2, 32, log=True)
    leaf = trial.suggest_int("min_samples_leaf", 1, 50, log=True)
    return ExtraTreesClassifier(50, max_depth=depth, min_samples_leaf=leaf, random_state=0)


def work(storage: str) -> optuna.Study:
    """Open the study, or create it, and work on it until it ends."""
    X, y = make_classification(N_ROWS, n_informative=10, n_clusters_per_class=4, random_state=0)
    objective = TrainingSizeObjective(build, X, y)
    study = optuna.create_study(
        study_name=f"workers, {N_ROWS} rows",
        storage=storage,
        load_if_exists=True,
        direction="maximize",
        sampler=DataAllocationSampler(n_learners=N_LEARNERS),
        pruner=DAUBPruner(max_resource=objective.n_train),
    )
    study.optimize(objective)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--storage", default="sqlite:///workers.db", help="of the Optuna study")
    args = parser.parse_args()

    optuna.storages.get_storage(args.storage)  # creates the tables before the workers start
    spawn = multiprocessing.get_context("spawn")
    helpers = [spawn.Process(target=work, args=[args.storage]) for _ in range(args.workers - 1)]
    for helper in helpers:
        helper.start()
    best = best_learner(work(args.storage))
    for helper in helpers:
        helper.join()
    print(f"\n{best.params}\nscore {best.score:.4f}: {best.reason}")


if __name__ == "__main__":
    main()
