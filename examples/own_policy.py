"""A policy of your own: train two learners on little data, then the better one on all the data.

    python examples/own_policy.py

A policy is a frozen value. It turns a pool of learning curves into a decision with its reason.
"""

import optuna
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import optuna_daub
from optuna_daub import core


class BestOfTwo(core.Policy):
    """If two learners wait after little data, train the better one on all the data."""

    needs = core.Needs(training_scores="unused")

    def decide(self, pool: core.Pool) -> core.Decision:
        """Return the next decision."""
        curves = [curve for curve in pool.curves.values() if not curve.dropped]
        free = [curve for curve in curves if curve.learner not in pool.busy]
        waiting = [curve for curve in free if curve.size < self.sizes[-1]]
        if len(waiting) < 2 and pool.may_propose:
            return core.Propose(self.sizes[0], core.Reason("fewer than two wait"))
        if not waiting:
            return core.Finish(self.leader(pool), core.Reason("all have all the data"))
        best = max(waiting, key=lambda curve: curve.score)
        reason = core.Reason("the better of two")
        return core.Extend(best.learner, self.sizes[-1], reason)


if __name__ == "__main__":
    objective = optuna_daub.TrainingSizeObjective(
        lambda trial: DecisionTreeClassifier(max_depth=trial.suggest_int("depth", 1, 20)),
        *load_digits(return_X_y=True),
    )
    pruner = optuna_daub.AllocationPruner(BestOfTwo((100, 400, objective.n_train)))
    sampler = optuna_daub.DataAllocationSampler(optuna.samplers.RandomSampler(seed=0))
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=15)
    print(study.best_params, study.best_value)
