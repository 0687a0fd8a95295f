"""Run one study on the workers of a Dask cluster, which may be on many machines.

    python examples/dask_workers.py --workers 4              # starts a cluster of processes
    python examples/dask_workers.py --scheduler tcp://host:8786          # uses a running cluster

The cluster's scheduler stores the study (`DaskStorage`), so the workers need no database. With
`--storage` the scheduler keeps the study at a URL. Each worker calls `study.optimize`.
Needs `pip install 'optuna-daub[workers]'`.
"""

import argparse
import logging
import os
import warnings


os.environ.setdefault("OMP_NUM_THREADS", "1")  # each training on one core

import optuna
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier

from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import best_learner


try:
    from distributed import Client
    from optuna_integration import DaskStorage
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'optuna-daub[workers]'") from None


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ
N_ROWS, N_LEARNERS = (2_000, 6) if SMOKE else (20_000, 40)


def build(trial: optuna.Trial) -> ExtraTreesClassifier:
    depth = trial.suggest_int("max_depth", 2, 32, log=True)
    leaf = trial.suggest_int("min_samples_leaf", 1, 50, log=True)
    return ExtraTreesClassifier(50, max_depth=depth, min_samples_leaf=leaf, random_state=0)


def hush() -> None:
    """Turn off the scheduler's log of each request for a trial that does not exist yet."""
    logging.getLogger("distributed.core").setLevel(logging.CRITICAL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="of the cluster that is started")
    parser.add_argument("--scheduler", help="address of a running cluster")
    parser.add_argument("--storage", help="URL that the scheduler keeps the study at")
    args = parser.parse_args()
    made_here = {"n_workers": args.workers, "threads_per_worker": 1, "dashboard_address": None}

    X, y = make_classification(N_ROWS, n_informative=10, n_clusters_per_class=4, random_state=0)
    objective = TrainingSizeObjective(build, X, y)
    with Client(args.scheduler) if args.scheduler else Client(**made_here) as client:
        client.run_on_scheduler(hush)
        # A worker that unpickles a DaskStorage warns. As an error, the warning would hang it.
        client.run(warnings.simplefilter, "ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(
            storage=DaskStorage(args.storage),
            direction="maximize",
            sampler=DataAllocationSampler(n_learners=N_LEARNERS),
            pruner=DAUBPruner(max_resource=objective.n_train),
        )
        n_workers = len(client.scheduler_info()["workers"])
        jobs = [client.submit(study.optimize, objective, pure=False) for _ in range(n_workers)]
        client.gather(jobs)  # raises the errors of workers
        best = best_learner(study)
        print(f"\n{best.params}\nscore {best.score:.4f}: {best.reason}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    main()
