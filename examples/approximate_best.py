"""Find a learner within 0.01 of the best of 20, with probability 0.95, on part of the data.

    python examples/approximate_best.py                               # a generated table
    python examples/approximate_best.py --data flightlate.parquet --target target \\
        --codes carrier,origin,dest                                   # your own file

Needs `pip install 'optuna-daub[quickstart]'`. At the end, ABC prints its guarantee and the
conditions of it. ABC saves time only on tables of about 100,000 rows or more. For smaller tables
use quickstart.py.
"""

import argparse
import os
import warnings


os.environ.setdefault("OMP_NUM_THREADS", "1")  # each training on one core

import optuna
from five_learners import build
from tables import features_and_classes
from tables import parcels
from tables import read

from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import TrainingSizeObjective
from optuna_daub import best_learner
from optuna_daub import learning_curves


SMOKE = "OPTUNA_DAUB_SMOKE" in os.environ


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="CSV or Parquet file; without it, generated parcels")
    parser.add_argument("--target", default="late", help="column of 2 or more classes to predict")
    parser.add_argument("--codes", default="", help="columns whose numbers are categories: a,b")
    parser.add_argument("--learners", type=int, default=5 if SMOKE else 20)
    parser.add_argument("--seed", type=int, default=10, help="10 draws all kinds of models")
    parser.add_argument("--epsilon", type=float, default=0.01, help="tolerated loss of accuracy")
    parser.add_argument("--scheduler", default="gradient_ci", help="or ucb, round_robin")
    intervals = "or massart, clopper_pearson, empirical_bernstein"
    parser.add_argument("--interval", default="hoeffding", help=intervals)
    parser.add_argument("--refit", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--storage", help="of the Optuna study, to continue after Ctrl-C")
    return parser.parse_args()


def print_learners(study: optuna.Study) -> None:
    print(f"{'':>3} {'learner':<11}{'examples':>10}{'score':>8}{'bound':>8}{'seconds':>9}")
    for curve in sorted(learning_curves(study), key=lambda curve: -curve.bound):
        seconds = sum(seen.seconds for seen in curve.observations)
        numbers = f"{curve.size:>10,}{curve.score:>8.4f}{curve.bound:>8.4f}{seconds:>9.1f}"
        print(f"{curve.learner:>3} {curve.params['learner']:<11}{numbers}  {curve.state}")


def main() -> None:
    args = arguments()
    table = read(args.data) if args.data else parcels(6_000 if SMOKE else 400_000)
    objective = TrainingSizeObjective(build, *features_and_classes(table, args.target, args.codes))
    settings = {
        "max_resource": objective.n_train,  # 70 % of the rows
        "n_validation": objective.n_validation,  # small trainings use a part
        "epsilon": args.epsilon,
        "scheduler": args.scheduler,
        "interval": args.interval,
    }
    proposals = optuna.samplers.RandomSampler(seed=args.seed)
    study = optuna.create_study(
        study_name=f"{args.learners} learners, {args.scheduler}, {args.interval}",
        storage=args.storage,
        load_if_exists=True,
        direction="maximize",
        sampler=DataAllocationSampler(proposals, n_learners=args.learners),
        pruner=ABCPruner(**settings, refit=False),
    )
    study.optimize(objective)
    identified = best_learner(study).seconds
    if args.refit:  # in two steps, to measure the seconds of each; one with refit=True is enough
        study.pruner = ABCPruner(**settings, refit=True)
        study.optimize(objective)
    best = best_learner(study)
    print_learners(study)
    print(f"\n{best.promise}\n\n{best.params}\n{best.reason}")
    print(f"\nidentified in {identified:,.1f} s, {best.seconds:,.1f} s in all")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", module="sklearn")  # on too few iterations
    main()
