"""AdaBoostRS: a budget buys a random sample of AdaBoost's votes.

[1] L. Reyzin, "Boosting on a Budget: Sampling for Feature-Efficient Prediction", ICML 2011.
    https://dblp.org/search?q=Boosting+on+a+Budget+Feature-Efficient+Prediction
[2] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from optuna_daub.learners.base import TrainingSet
from optuna_daub.learners.base import check_count
from optuna_daub.learners.base import run
from optuna_daub.learners.boosting import Ensemble
from optuna_daub.learners.boosting import Hypothesis
from optuna_daub.learners.budget import Budget
from optuna_daub.learners.budgeted import PurchaseSource
from optuna_daub.learners.budgeted import PurchasingClassifier
from optuna_daub.learners.trade_offs import MIN_COST
from optuna_daub.learners.trade_offs import plain


class AdaBoostRSClassifier(PurchasingClassifier):
    """AdaBoostRS: AdaBoost, then a random sample of its votes that the budget can pay.

    This is a baseline for `BudgetedAdaBoostClassifier`, which uses costs during training ([2]).
    `fit` draws one sample of the votes ([1]) for all examples. Stumps of later rounds mend errors
    of earlier ones, and alone may be wrong on most examples. So the few votes that a small budget
    buys can be worse than guessing.

    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = AdaBoostRSClassifier(feature_costs=[5.0, 1.0], budget=3.0, random_state=0)
    >>> model.fit(X, [0, 1, 0, 1]).predict([[1, 0]]), model.spent_, model.features_bought_
    (array([0]), 1.0, array([1]))

    Args:
        feature_costs: cost of each feature, at least 0, shape (n_features,); None for 1 each. A
            dict, or a pandas Series with texts as index, is read by the names of the columns.
            Votes that use free features alone (cost 0) are not drawn: all are taken.
        budget: largest sum of the costs of the features used; None for no limit.
        n_estimators: rounds of AdaBoost, at least 1; 50 as in scikit-learn's AdaBoost.
        n_draws: largest number of draws, at least 1. Without a limit drawing would not end once
            all features are paid. The standard error of the sampled vote falls with
            1 / sqrt(n_draws), to 3 % at the default 1000.
        estimator: as in `BudgetedAdaBoostClassifier`; None for decision stumps.
        random_state: seed for the draws and for `estimator`.

    Attributes:
        classes_: class labels, shape (n_classes,).
        spent_: sum of the costs of the bought features, at most `budget`, up to rounding.
        features_bought_: their columns in the order of purchase.
        estimators_: the hypotheses of AdaBoost, drawn or not.
        estimator_weights_: weights of their votes; 0 for those that were not drawn.
    """

    def __init__(
        self,
        feature_costs: ArrayLike | Mapping[str, float] | None = None,
        budget: float | None = None,
        n_estimators: int = 50,
        *,
        n_draws: int = 1000,
        estimator: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.feature_costs = feature_costs
        self.budget = budget
        self.n_estimators = n_estimators
        self.n_draws = n_draws
        self.estimator = estimator
        self.random_state = random_state

    def _boost(self, data: TrainingSet) -> Ensemble:
        check_count("n_draws", self.n_draws, 1)
        budget = self._checked_budget(data)
        find = self._find_candidates(data, alternatives=False)
        whole = run(
            PurchaseSource(data, find, plain, replace(budget, limit=np.inf)), self.n_estimators
        )
        sampled, budget = sample_votes(
            whole, budget, self.n_draws, check_random_state(self.random_state), data.names
        )
        self._keep(budget)
        return sampled


def sample_votes(
    whole: Ensemble,
    budget: Budget,
    n_draws: int,
    random_state: np.random.RandomState,
    names: Sequence[str],
) -> tuple[Ensemble, Budget]:
    """Return a random sample of a vote that the budget can pay.

    The second value is the budget after it. The expected sample is the whole vote unless the
    budget excludes a hypothesis or ends the draws.

    With vote weights a and costs c, hypotheses are drawn with probability proportional to a / c
    and vote with weight proportional to c. For equal costs these are the draws by a and the
    unweighted votes of [1]. Drawing stops at the first draw that cannot be paid ([2] Section
    5). Hypotheses that cost nothing are taken with their whole weight. Those that cost more than
    the whole budget are not drawn.

    Args:
        whole: the vote to be sampled.
        budget: costs, limit and features already bought.
        n_draws: largest number of draws.
        random_state: source of the draws.
        names: names of the features, for messages.

    Raises:
        ValueError: if the budget buys none of the hypotheses.
    """
    hypotheses = [one for round_ in whole.hypotheses for one in round_]
    votes = whole.weights.ravel()
    totals = np.array([budget.costs[list(one.features)].sum() for one in hypotheses])
    possible = (votes > 0.0) & budget.affords(totals)
    if not possible.any():
        raise ValueError(
            "`budget` must pay for at least one hypothesis, but got "
            f"{budget.limit}; the cheapest one uses "
            f"{[names[one] for one in hypotheses[int(totals.argmin())].features]} at "
            f"{totals.min()}. Raise the budget."
        )
    free = possible & (totals == 0.0)
    for index in np.flatnonzero(free):
        budget = budget.buy(hypotheses[index].features)
    weights = np.where(free, votes, 0.0)
    # In units of the largest cost, so neither rates nor their sums times costs overflow.
    totals = np.maximum(totals / max(float(totals.max()), MIN_COST), MIN_COST)
    rates = np.where(possible & ~free, votes / totals, 0.0)
    if rates.any():
        draws = random_state.choice(len(votes), size=n_draws, p=rates / rates.sum())
        counts, budget = _buy_in_turn(draws, hypotheses, budget)
        # The importance weight a_i / p_i of a draw is c_i times the sum of all rates.
        weights = weights + rates.sum() * totals * counts / counts.sum()
    return replace(whole, weights=weights.reshape(whole.weights.shape)), budget


def _buy_in_turn(
    draws: NDArray[np.int64], hypotheses: Sequence[Hypothesis], budget: Budget
) -> tuple[NDArray[np.int64], Budget]:
    """Return each hypothesis's number of draws, and the budget after them. Draws end before the
    first one that cannot be paid."""
    counts = np.zeros(len(hypotheses), dtype=np.int64)
    for draw in draws:
        features = hypotheses[draw].features
        if not budget.affords(budget.unpaid[list(features)].sum()):
            break
        budget = budget.buy(features)
        counts[draw] += 1
    return counts, budget
