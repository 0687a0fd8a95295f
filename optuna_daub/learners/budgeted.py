"""Boosting under a budget for features.

A feature is paid once, when the first hypothesis that uses it is added. Boosting ends when the
chosen hypothesis costs more than is left. So a vote on a new example never exceeds the budget.

[1] Y. Huang, B. Powers, L. Reyzin, "Training-Time Optimization of a Budgeted Booster",
    IJCAI 2015. https://www.ijcai.org/Abstract/15/504
[2] A. Grubb, J. A. Bagnell, "SpeedBoost: Anytime Prediction with Uniform Near-Optimality",
    AISTATS 2012. https://proceedings.mlr.press/v22/grubb12.html
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from typing import Any
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import flag
from optuna_daub.core.checks import named
from optuna_daub.core.checks import number
from optuna_daub.learners.base import BoostingClassifier
from optuna_daub.learners.base import TrainingSet
from optuna_daub.learners.base import check_classifier
from optuna_daub.learners.base import run
from optuna_daub.learners.boosting import MAX_EDGE
from optuna_daub.learners.boosting import Choice
from optuna_daub.learners.boosting import Ensemble
from optuna_daub.learners.boosting import Hypothesis
from optuna_daub.learners.boosting import Round
from optuna_daub.learners.boosting import exponential_weights
from optuna_daub.learners.boosting import vote_weight
from optuna_daub.learners.budget import Budget
from optuna_daub.learners.budget import checked_budget
from optuna_daub.learners.budget import nothing_bought
from optuna_daub.learners.candidates import Candidates
from optuna_daub.learners.candidates import FindCandidates
from optuna_daub.learners.candidates import StumpCandidates
from optuna_daub.learners.candidates import fit_candidates
from optuna_daub.learners.stumps import TIE
from optuna_daub.learners.stumps import require_stumps
from optuna_daub.learners.stumps import threshold_bins
from optuna_daub.learners.trade_offs import TradeOff
from optuna_daub.learners.trade_offs import greedy
from optuna_daub.learners.trade_offs import plain
from optuna_daub.learners.trade_offs import smoothed
from optuna_daub.learners.trade_offs import speedboost


TRADE_OFFS: dict[str, TradeOff] = {"none": plain, "greedy": greedy, "smoothed": smoothed}
"""Trade-offs by the names that `BudgetedAdaBoostClassifier(trade_off=...)` takes."""


class PurchaseSource:
    """Source of rounds that weigh all examples and pay for features ([1] Algorithm 1)."""

    def __init__(
        self,
        data: TrainingSet,
        find: FindCandidates,
        trade_off: TradeOff,
        budget: Budget,
        *,
        affordable_only: bool = False,
        way_out: str = "raise the budget",
    ) -> None:
        self.budget = budget
        self._data = data
        self._find = find
        self._trade_off = trade_off
        self._affordable_only, self._way_out = affordable_only, way_out
        self._margins = np.zeros(data.labels.shape)  # y_i sum_t alpha_t h_t(x_i)
        self._faultless: dict[int, Hypothesis] = {}  # by problem, a hypothesis without errors

    def propose(self) -> Sequence[Choice] | None:
        """Return the best hypothesis of each problem.

        None if the budget does not suffice, or every problem has a hypothesis without errors.

        Raises:
            ValueError: if the budget does not suffice for the first round.
        """
        if len(self._faultless) == len(self._data.labels):
            return None
        budget, unpaid = self.budget, ""
        choices = []
        weights = exponential_weights(self._margins, self._data.weights)
        for problem, labels in enumerate(self._data.labels):
            if problem in self._faultless:
                choices.append(Choice(self._faultless[problem], 0.0))
                continue
            candidates = self._find(weights[problem], labels)
            # An edge of a rounding error, divided by a cost of 0, would beat every paid candidate.
            edges = np.where(candidates.edges > TIE, np.minimum(candidates.edges, MAX_EDGE), 0.0)
            best = self._select(edges, candidates, budget)
            hypothesis, edge = candidates.hypothesis(best), float(edges[best])
            if edge > 0.0:  # a hypothesis without an edge gets no vote and is not paid for
                if not budget.affords(candidates.total_cost(budget.unpaid)[best]):
                    unpaid = self._unaffordable(candidates, best, budget)
                    break
                budget = budget.buy(hypothesis.features)
            elif edges.any():  # those with an edge cost too much
                unpaid = self._unaffordable(candidates, int(edges.argmax()), budget)
            choices.append(Choice(hypothesis, edge))
        is_over = len(choices) < len(self._data.labels) or not any(c.edge > 0.0 for c in choices)
        if unpaid and is_over:
            if not self.budget.bought:
                raise ValueError(unpaid)
            return None  # [1] Alg. 1: set T = t - 1
        return choices

    def learn(self, accepted: Round) -> None:
        """Pay for the round and move the margins."""
        votes = zip(accepted.hypotheses, accepted.weights, strict=True)
        for problem, (hypothesis, weight) in enumerate(votes):
            if weight > 0.0:
                self.budget = self.budget.buy(hypothesis.features)  # [1] Alg. 1: B_{t+1} = B_t - p
                vote = hypothesis.vote(self._data.X)
                self._margins[problem] += weight * self._data.labels[problem] * vote
            if weight >= vote_weight(MAX_EDGE):
                self._faultless[problem] = hypothesis

    def _select(self, edges: NDArray[np.float64], candidates: Candidates, budget: Budget) -> int:
        scores = self._trade_off(edges, candidates.total_cost(budget.costs), budget.spent)
        if self._affordable_only:
            can_pay = budget.affords(candidates.total_cost(budget.unpaid))
            scores = np.where(can_pay, scores, -np.inf)
        return int(np.argmax(scores >= scores.max() * (1.0 - TIE)))

    def _unaffordable(self, candidates: Candidates, best: int, budget: Budget) -> str:
        """Return the message for a first round that costs too much.

        `budget` has paid a part of it."""
        cost = candidates.total_cost(budget.unpaid)[best]
        if budget.bought:
            return (
                f"`budget` must pay for a hypothesis for each of the {len(self._data.labels)} "
                f"classes, but got {budget.limit}: the first ones cost {budget.spent} together, "
                f"and the next one {cost} more: {self._way_out}."
            )
        return (
            f"{nothing_bought(self.budget, self._data.names)} The hypothesis chosen first costs "
            f"{cost}: {self._way_out}."
        )


class PurchasingClassifier(BoostingClassifier):
    """Base class of the classifiers that pay for features."""

    feature_costs: ArrayLike | Mapping[str, float] | None
    budget: float | None
    estimator: Any
    random_state: int | np.random.RandomState | None

    def _find_candidates(self, data: TrainingSet, *, alternatives: bool) -> FindCandidates:
        if self.estimator is None:
            return partial(StumpCandidates, require_stumps(threshold_bins(data.X)))
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                "`estimator` must take `sample_weight` in its fit method, but got "
                f"{brief(self.estimator)}."
            )
        check_classifier(self.estimator)
        return fit_candidates(
            self.estimator,
            data.X,
            alternatives=alternatives,
            random_state=check_random_state(self.random_state),
        )

    def _checked_budget(self, data: TrainingSet) -> Budget:
        return checked_budget(
            self.feature_costs,
            self.budget,
            data.names,
            named=hasattr(self, "feature_names_in_"),
        )

    def _keep(self, budget: Budget) -> None:
        self.spent_ = budget.spent
        self.features_bought_ = np.array(budget.bought, dtype=np.int64)


class BudgetedAdaBoostClassifier(PurchasingClassifier):
    """AdaBoostBT: AdaBoost that chooses features by their cost, until the budget is used up.

    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = BudgetedAdaBoostClassifier(feature_costs=[5.0, 1.0], budget=3.0)
    >>> model.fit(X, [0, 1, 0, 1]).predict([[1, 0]]), model.spent_, model.features_bought_
    (array([0]), 1.0, array([1]))

    Args:
        feature_costs: cost of each feature, at least 0, shape (n_features,); None for 1 each. A
            dict, or a pandas Series with texts as index, is read by the names of the columns. A
            free feature (cost 0) with any edge beats every paid one: with "greedy" in all rounds,
            with "smoothed" until something is paid. To let paid features compete, give it a small
            cost.
        budget: largest sum of the costs of the features used, in the units of `feature_costs`;
            None for no limit.
        n_estimators: largest number of rounds, at least 1; 50 as in scikit-learn's AdaBoost.
        trade_off: quantity that a round maximises: "none", the edge ([1] Alg. 1); "greedy",
            progress per cost ([1] Eq. 1); "smoothed", progress per average cost of a round so far
            ([1] Eq. 2), which [1] takes unless the budget is small.
        tau: weight of the cost so far in "smoothed", in (0, 1]; 1 is [1] Eq. (2) as printed,
            and near 0 it becomes "greedy".
        estimator: classifier that takes `sample_weight`, which has mean 1; None for decision
            stumps. The features it uses are read from the fitted tree, coefficients or
            importances. With a trade-off or `affordable_only` it is also fitted on each feature
            alone, as alternatives.
        affordable_only: choose among hypotheses that can still be paid. False stops at the first
            choice that cannot be paid, as [1] does.
        random_state: seed for `estimator`; stumps need none.

    Attributes:
        classes_: class labels, shape (n_classes,).
        estimators_: hypotheses in order; each has `features` and `vote(X)`. With more than two
            classes, a tuple with one for each class.
        estimator_weights_: weights of their votes, shape (n_rounds,) or (n_rounds, n_classes).
        spent_: sum of the costs of the bought features, at most `budget`, up to rounding.
        features_bought_: their columns in the order of purchase.
    """

    def __init__(
        self,
        feature_costs: ArrayLike | Mapping[str, float] | None = None,
        budget: float | None = None,
        n_estimators: int = 50,
        *,
        trade_off: Literal["none", "greedy", "smoothed"] = "smoothed",
        tau: float = 1.0,
        estimator: Any = None,
        affordable_only: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.feature_costs = feature_costs
        self.budget = budget
        self.n_estimators = n_estimators
        self.trade_off = trade_off
        self.tau = tau
        self.estimator = estimator
        self.affordable_only = affordable_only
        self.random_state = random_state

    def _boost(self, data: TrainingSet) -> Ensemble:
        trade_off = named("trade_off", self.trade_off, TRADE_OFFS)
        flag("affordable_only", self.affordable_only)
        if not 0.0 < number("tau", self.tau) <= 1.0:
            raise ValueError(f"`tau` must be in (0, 1], but got {brief(self.tau)}.")
        alternatives = self.trade_off != "none" or self.affordable_only
        way_out = "raise the budget"
        if not self.affordable_only:
            way_out += " or set affordable_only=True"
        source = PurchaseSource(
            data,
            self._find_candidates(data, alternatives=alternatives),
            lambda edge, cost, spent: trade_off(edge, cost, self.tau * spent),
            self._checked_budget(data),
            affordable_only=self.affordable_only,
            way_out=way_out,
        )
        ensemble = run(source, self.n_estimators)
        self._keep(source.budget)
        return ensemble


class SpeedBoostClassifier(PurchasingClassifier):
    """SpeedBoost [2]: each round takes the largest fall of the exponential loss per cost.

    Votes have AdaBoost's weights, so the fall has a closed form ([1] Appendix A). Boosting stops
    when the chosen hypothesis cannot be paid.

    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = SpeedBoostClassifier(feature_costs=[5.0, 1.0], budget=3.0)
    >>> model.fit(X, [0, 1, 0, 1]).predict([[1, 0]]), model.spent_, model.features_bought_
    (array([0]), 1.0, array([1]))

    Args:
        feature_costs: cost of each feature, at least 0, shape (n_features,); None for 1 each. A
            dict, or a pandas Series with texts as index, is read by the names of the columns. A
            free feature (cost 0) with any edge beats every paid one in all rounds. To let paid
            features compete, give it a small cost.
        budget: largest sum of the costs of the features used; None for no limit.
        n_estimators: largest number of rounds, at least 1; 50 as in scikit-learn's AdaBoost.
        estimator: as in `BudgetedAdaBoostClassifier`; None for decision stumps.
        random_state: seed for `estimator`; stumps need none.

    Attributes:
        classes_: class labels, shape (n_classes,).
        estimators_: hypotheses in order; with more than two classes, a tuple with one for each.
        estimator_weights_: weights of their votes, shape (n_rounds,) or (n_rounds, n_classes).
        spent_: sum of the costs of the bought features, at most `budget`, up to rounding.
        features_bought_: their columns in the order of purchase.
    """

    def __init__(
        self,
        feature_costs: ArrayLike | Mapping[str, float] | None = None,
        budget: float | None = None,
        n_estimators: int = 50,
        *,
        estimator: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.feature_costs = feature_costs
        self.budget = budget
        self.n_estimators = n_estimators
        self.estimator = estimator
        self.random_state = random_state

    def _boost(self, data: TrainingSet) -> Ensemble:
        find = self._find_candidates(data, alternatives=True)
        source = PurchaseSource(data, find, speedboost, self._checked_budget(data))
        ensemble = run(source, self.n_estimators)
        self._keep(source.budget)
        return ensemble
