"""`DataAllocationSearchCV`: the sampler and the pruner as a search of scikit-learn."""

from __future__ import annotations

import copy
import inspect
import logging
import math
import threading
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from numbers import Real
from typing import TYPE_CHECKING
from typing import Any
from typing import ClassVar
from typing import Literal

import numpy as np
import optuna
from joblib import effective_n_jobs
from numpy.typing import NDArray
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial
from optuna.trial import FrozenTrial
from optuna.trial import Trial
from optuna.trial import TrialState
from scipy.stats import rankdata
from sklearn import config_context
from sklearn import get_config
from sklearn.base import _fit_context
from sklearn.base import clone
from sklearn.base import is_classifier
from sklearn.base import is_regressor
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer_names
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params

from optuna_daub.objective.data import check_two_dimensions
from optuna_daub.objective.data import class_labels
from optuna_daub.objective.data import odd_columns
from optuna_daub.objective.data import said_of
from optuna_daub.objective.description import bounded
from optuna_daub.objective.description import described
from optuna_daub.objective.description import stable
from optuna_daub.objective.fingerprint import check_fingerprint
from optuna_daub.objective.fingerprint import of_folds
from optuna_daub.objective.fingerprint import of_table
from optuna_daub.objective.scoring import limit_of
from optuna_daub.objective.scoring import needs_all_classes
from optuna_daub.objective.scoring import unknown_scorer
from optuna_daub.objective.subsets import check_all_scored
from optuna_daub.sklearn.folds import Evaluation
from optuna_daub.sklearn.folds import FitError
from optuna_daub.sklearn.folds import Folds
from optuna_daub.sklearn.folds import Measured
from optuna_daub.sklearn.folds import by_scorer
from optuna_daub.sklearn.folds import divided
from optuna_daub.sklearn.folds import metric_of
from optuna_daub.sklearn.folds import size_grid
from optuna_daub.sklearn.secrets import StorageURL
from optuna_daub.sklearn.secrets import has_secret
from optuna_daub.sklearn.secrets import in_memory
from optuna_daub.sklearn.secrets import without_secret
from optuna_daub.sklearn.space import Space
from optuna_daub.sklearn.space import checked_function
from optuna_daub.sklearn.space import checked_space
from optuna_daub.study import DataAllocationSampler
from optuna_daub.study import DAUBPruner
from optuna_daub.study import LearnerCurve
from optuna_daub.study import allocations
from optuna_daub.study import best_learner
from optuna_daub.study import learning_curves
from optuna_daub.study import log
from optuna_daub.study import one_row_per_learner
from optuna_daub.study import records
from optuna_daub.study import report
from optuna_daub.study import training_sizes
from optuna_daub.study.limit import write_limit


if TYPE_CHECKING:
    from typing_extensions import Self


MIN_CANDIDATES, MAX_CANDIDATES = 10, 100
"""Smallest and largest number of candidates if neither their number nor a time is given."""
_FOLDS = "folds:"
"""Key, followed by the size, under which a trial keeps the measurements of each fold."""

_NAMES_OF_OTHERS = {
    "n_trials": "n_candidates",
    "param_grid": "param_distributions",
    "search_spaces": "param_distributions",
    "max_iter": "max_resources",
    "seed": "random_state",
}
"""Names of arguments here, by their names in other libraries' searches."""

MAX_FAILED = 10
"""Number of candidates after which a search ends if none of them could be fitted."""


class DataAllocationSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for the best parameters, training most candidates on a part of the data only.

    It has the methods and attributes of scikit-learn's `RandomizedSearchCV` and
    `HalvingRandomSearchCV`. Each candidate is first trained on few rows of each fold. Forecasts
    from the learning curves say how good it could become on all rows. The next seconds go where
    they promise most: to more rows for a candidate, or to a new candidate, proposed by the same
    model (by TPE if `n_candidates` is given). The best candidate was trained on all rows of each
    fold, and is fitted once more on all the data.

    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> search = DataAllocationSearchCV(
    ...     SVC(),
    ...     {"C": loguniform(0.01, 100), "gamma": loguniform(1e-5, 0.1)},
    ...     n_candidates=12,
    ...     cost="examples",
    ...     random_state=0,
    ... )
    >>> search = search.fit(X, y)
    >>> print(f"{search.best_score_:.2f}")
    0.97
    >>> search.predict(X[:3])
    array([0, 1, 2])
    >>> sizes = search.cv_results_["n_resources"]
    >>> len(sizes), bool(sizes.mean() < 0.5 * search.max_resources_)
    (12, True)

    **When it ends**: with `timeout` after so many seconds, plus the last fit on all the data; with
    `n_candidates` as soon as no candidate is worth more rows; with both at whichever comes first.
    With neither, `n_candidates` is `max_resources // min_resources`, as in
    `HalvingRandomSearchCV`, but at least 10 and at most 100.

    **Reproducible**: a search repeats exactly with an int as `random_state`, `cost="examples"`,
    one job, no `timeout`, and estimators that are reproducible themselves. Otherwise measured
    seconds and threads make a difference.

    Args:
        estimator: a classifier, regressor, pipeline or any other estimator; without a `score`
            method it needs `scoring`.
        param_distributions: dict from names of parameters to distributions of scipy (`randint`,
            `uniform`, `loguniform`), distributions of Optuna (`IntDistribution(1, 100,
            log=True)`) or lists of values, which are categories. Other discrete distributions
            of scipy are searched as whole numbers. Other continuous ones are searched by their
            quantiles from 0.1 to 99.9 %, as "<parameter> (quantile)" in `study_`. With a list of
            dicts each candidate takes one of them. A function is given an Optuna trial and
            returns the parameters: `lambda trial: {"C": trial.suggest_float("C", 0.1, 10)}`.
        timeout: seconds of search, above 0; until then new candidates are proposed.
        n_candidates: number of candidates to choose among, at least 1.
        n_iter: the same, as `RandomizedSearchCV` calls it; give one of the two.
        scoring: as in scikit-learn. If there are several scorers, the one that `refit` names
            decides, or else the first; the others are recorded.
        n_jobs: number of candidates trained at a time, in threads. None means 1, -1 one for each
            core. If the estimator has threads of its own, give it one thread.
        refit: as in scikit-learn: True to fit the best candidate on all the data, the scorer that
            chooses it, or a function from `cv_results_` to its index.
        cv: as in scikit-learn: a number of folds, a splitter or an iterable; None means 5 folds.
            For many rows one division is enough and five times as fast:
            `cv=ShuffleSplit(1, test_size=0.2, random_state=0)`.
        min_resources: smallest number of rows of each fold to train on. "smallest": two for each
            fold and class, as in `HalvingRandomSearchCV`, or more if a subset would lack a class.
            "auto": 500, but at most 1/8 and at least 1/64 of all rows, and at least as many as
            "smallest"; less if there would be fewer than three sizes. Without `timeout` the first
            round is on about 1/16 of all rows, if that is more.
        max_resources: largest number of rows of each fold to train on; "auto": all. Fewer rows
            save time. The best candidate is fitted on all the data in any case.
        factor: ratio of consecutive training sizes, above 1.
        cost: cost to save: "seconds", as measured, or "examples" trained on.
        sampler: Optuna sampler that proposes candidates. None: `TPESampler` if `n_candidates` is
            given, else the model of `DataAllocationSampler`; seeded by `random_state`.
        storage: storage of Optuna for the study, such as "sqlite:///study.db"; None: in memory.
            A password in it is never shown. A pickled search that was fitted keeps the URL
            without it, and a copy of the study in memory.
        study_name: name of the study in the storage. An existing study is continued, also by
            several processes at a time: fit with the same data, space, estimator, scorers,
            `refit`, `cv`, and an int as `random_state`. `timeout` then counts anew, while
            `n_candidates` includes the candidates already there.
        random_state: seed of candidates and of the subsets of rows.
        verbose: 0 is quiet; from 1 on Optuna's log has a line for each run of a candidate.
        error_score: answer to a fit that fails. nan: the candidate is tried once more, then
            dropped; a `FitFailedWarning` says so at the end. "raise": the search ends with
            the error. A number counts as the score, and a `FitFailedWarning` names the errors.
        return_train_score: add training scores to `cv_results_`. The search does not use them.

    Attributes:
        cv_results_: one row for each candidate, as in scikit-learn: `params`, `param_*`,
            `mean_test_score`, `std_test_score`, `rank_test_score`, `split0_test_score`,
            `mean_fit_time` and so on, at the largest size on which the candidate was trained.
            `n_resources` is that size (0 if no fit succeeded) and `iter` its place among the
            sizes, from 0. `seconds` is the time of all trainings of the candidate. `state` is
            "best", "complete", "suspended", "dropped" or "running", and `reason` says why.
            `learner` is its id in the study. `forecast_test_score` is the forecast of the score
            on all rows, with the 5 % and 95 % quantiles `lower_test_score` and
            `upper_test_score`; all three are the score itself once it is known. Ranks are by
            score, with those trained on all rows before all others.
        best_estimator_, best_params_, best_score_, best_index_: as in scikit-learn.
        scorer_, n_splits_, refit_time_, multimetric_: as in scikit-learn.
        classes_, n_features_in_, feature_names_in_: as in scikit-learn.
        study_: the Optuna study, for `optuna_daub.learning_curves`, `optuna_daub.visualization`,
            `optuna.visualization` and so on. It is there also after Ctrl-C.
        min_resources_, max_resources_: the smallest and the largest training size.
        n_resources_: all training sizes.
        n_candidates_: the number of candidates, `len(cv_results_["params"])`.

    Raises:
        ValueError: in `fit`, if an argument breaks its rule, all candidates fail, none was
            trained in time, or an existing study has other data or settings.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{k: v for k, v in BaseSearchCV._parameter_constraints.items() if k != "pre_dispatch"},
        "param_distributions": [dict, list, tuple, callable],
        "timeout": [Interval(Real, 0, None, closed="neither"), None],
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "n_iter": [Interval(Integral, 1, None, closed="left"), None],
        "min_resources": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto", "smallest"}),
        ],
        "max_resources": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "factor": [Interval(Real, 1, None, closed="neither")],
        "cost": [StrOptions({"seconds", "examples"})],
        "sampler": [BaseSampler, None],
        "storage": [str, BaseStorage, None],
        "study_name": [str, None],
        "random_state": ["random_state"],
    }

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Return a search; raise a TypeError for arguments of other libraries' searches."""
        for name in given:
            if name in _NAMES_OF_OTHERS:
                raise TypeError(
                    f"`{name}` is called `{_NAMES_OF_OTHERS[name]}` here, as it is not quite the "
                    "same: see the docstring."
                )
        new: Self = super().__new__(cls)
        return new

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        timeout: float | None = None,
        n_candidates: int | None = None,
        n_iter: int | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        min_resources: int | str = "auto",
        max_resources: int | str = "auto",
        factor: float = 1.5,
        cost: Literal["seconds", "examples"] = "seconds",
        sampler: BaseSampler | None = None,
        storage: str | BaseStorage | None = None,
        study_name: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_distributions = param_distributions
        self.timeout = timeout
        self.n_candidates = n_candidates
        self.n_iter = n_iter
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.factor = factor
        self.cost = cost
        self.sampler = sampler
        self.storage = storage
        self.study_name = study_name
        self.random_state = random_state

    # Without this, `inspect.signature` would show `__new__`, which takes any name.
    _parameters = [*inspect.signature(__init__).parameters.values()][1:]
    __signature__ = inspect.Signature(_parameters)
    del _parameters

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, and fit the best candidate on all the data.

        Args:
            X: array, data frame, sparse matrix or list, a row for each example. The estimator must
                handle text and missing values.
            y: targets; None for estimators that need none.
            **params: arguments of the estimator's `fit`, cut to the rows trained on if they have
                one value for each row; and `groups` for the splitter. With metadata routing also
                arguments that the scorers and the splitter ask for.
        """
        scorers, refit_metric = self._get_scorers()
        check_two_dimensions(X)
        for name, value in (("X", X), ("y", y)):
            if isinstance(value, str):
                raise ValueError(
                    f"`{name}` must hold a row for each example, but got the text {value!r}. Pass "
                    "the values themselves, such as table['target']."
                )
        X, y = indexable(X, _as_numbers(y))
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        # Callbacks (scikit-learn 1.9 and newer) see the whole search as one task.
        context = self._init_callback_context() if hasattr(self, "set_callbacks") else None
        if context is not None:
            context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=None)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        rng = check_random_state(self.random_state)
        seed, seed_of_sampler = (int(rng.randint(2**31 - 1)) for _ in range(2))
        split = routed.splitter.split
        folds = divided(splitter, self.estimator, X, y, split, seed)
        _check_all_scored(folds, scorers, refit_metric, self.estimator, y)
        self.n_splits_ = len(folds.folds)
        grid = size_grid(folds, self.min_resources, self.max_resources, self.factor)
        self.min_resources_, self.max_resources_, self.n_resources_ = grid[0], grid[-1], [*grid]
        given = self.param_distributions
        space = checked_function(given) if callable(given) else checked_space(given)
        base_estimator = clone(self.estimator)
        evaluate = Evaluation(
            base_estimator,
            X,
            y,
            folds,
            scorers,
            routed.estimator.fit,
            routed.scorer.score,
            self.error_score,
            self.return_train_score,
        )
        begun_with = _begun_with(self, X, y, folds, space)
        with _quiet(self.verbose):
            params_of = self._search(evaluate, space, grid, seed_of_sampler, begun_with)
            best = best_learner(self.study_)
            results = self._results(params_of, evaluate, best is not None)
        self.n_candidates_ = len(results["params"])
        # From here on the steps are those of BaseSearchCV after its search.
        if self.multimetric_:
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            if callable(self.refit):
                self.best_index_ = self._select_best_index(self.refit, refit_metric, results)
            else:
                assert best is not None  # or `_results` would have raised
                self.best_index_ = int(np.flatnonzero(results["learner"] == best.learner)[0])
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            model = clone(base_estimator).set_params(**clone(self.best_params_, safe=False))
            begun = time.time()
            model.fit(*((X,) if y is None else (X, y)), **routed.estimator.fit)
            self.refit_time_ = time.time() - begun
            self.best_estimator_ = model
            if hasattr(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        self.cv_results_ = results
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y, metadata=None)
        return self

    @property
    def storage(self) -> str | BaseStorage | None:
        """Storage of the study; a URL is shown without its password."""
        storage: str | BaseStorage | None = self.__dict__["storage"]
        return storage

    @storage.setter
    def storage(self, storage: str | BaseStorage | None) -> None:
        is_new = isinstance(storage, str) and not isinstance(storage, StorageURL)
        # Keep other objects as they are: `clone` checks for identity.
        shown = StorageURL(storage) if is_new and has_secret(storage) else storage
        self.__dict__["storage"] = shown

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without passwords if the search was fitted.

        Its study becomes a copy in memory, since it could not be loaded without the password. A
        search that was not fitted keeps the password: another process may have to fit it.
        """
        state: dict[str, Any] = {**super().__getstate__()}
        if not self.__sklearn_is_fitted__():
            return state
        if has_secret(state["storage"]):
            state["storage"] = without_secret(state["storage"])
        if "study_" in state and has_secret(log.storage_of(state["study_"])):
            state["study_"] = in_memory(state["study_"])
        return state

    def _validate_params(self) -> None:
        """Raise a ValueError if an argument breaks its rule; scikit-learn calls it in `fit`."""
        asked = [self.scoring] if isinstance(self.scoring, str) else self.scoring
        asked = asked.values() if isinstance(asked, Mapping) else asked
        for name in asked if isinstance(asked, Iterable) else ():
            if isinstance(name, str) and name not in get_scorer_names():
                raise ValueError(unknown_scorer(name))
        super()._validate_params()

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the search has ended; some attributes are set before."""
        return hasattr(self, "cv_results_")

    def _search(
        self,
        evaluate: Evaluation,
        space: Callable[[BaseTrial], dict[str, Any]],
        grid: tuple[int, ...],
        seed: int,
        begun_with: Mapping[str, str],
    ) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """Search in a new or continued `study_`.

        Returns:
            A function from a candidate's parameters in the study to those of its estimator.
        """
        n_candidates = self._n_candidates(space, grid)
        base = copy.deepcopy(self.sampler)
        if base is None and n_candidates is not None:
            # All of few candidates are proposed after their smallest trainings alone. The model
            # then stays too near the first ones: an SVC on digits, twelve candidates, five seeds
            # had 0.91 to 0.97, with TPE 0.97.
            base = optuna.samplers.TPESampler(seed=seed)
        study = optuna.create_study(
            storage=self.storage,
            study_name=self.study_name,
            load_if_exists=self.study_name is not None,
            direction="maximize",
            sampler=DataAllocationSampler(
                base,
                n_learners=n_candidates,
                seed=seed if base is None else None,
            ),
            pruner=DAUBPruner(sizes=grid, cost=self.cost),
        )
        if study.direction != StudyDirection.MAXIMIZE:
            raise ValueError(
                f"A search maximizes its score, but study '{study.study_name}' minimizes. Take "
                "another `study_name`."
            )
        check_fingerprint(study, begun_with)
        limit = limit_of(metric_scorer(evaluate.scorers, self.refit))
        if self.scoring is None and (
            is_classifier(self.estimator) or is_regressor(self.estimator)
        ):
            limit = 1.0  # accuracy, or R^2
        if limit is not None:
            write_limit(study, limit)
        self.study_ = study  # set now, so that it is there after Ctrl-C
        config = get_config()  # scikit-learn keeps one for each thread
        n_validation = sum(len(fold.validation) for fold in evaluate.folds.folds)
        scored: list[int] = []
        trained: set[int] = set()
        given: dict[str, dict[str, Any]] = {}

        def params_of(known: Mapping[str, Any]) -> dict[str, Any]:
            # Candidates of other processes and earlier searches are not in memory: ask the space.
            found = given.get(repr(sorted(known.items())))
            if found is not None:
                return found
            try:
                return space(FixedTrial({**known}))
            except optuna.TrialPruned:  # the space rejects them: no estimator has them
                return {**known}

        def objective(trial: Trial) -> float:
            with config_context(**config):
                try:
                    params = space(trial)
                except optuna.TrialPruned:
                    given.setdefault(repr(sorted(trial.params.items())), trial.params)
                    raise
                given[repr(sorted(trial.params.items()))] = params
                for size in training_sizes(trial):
                    trained.add(trial.number)
                    measured = evaluate(params, size)
                    score = float(np.mean(metric_of(measured, self.refit)))
                    if math.isfinite(score):
                        scored.append(trial.number)
                    columns = {name: [fold[name] for fold in measured] for name in measured[0]}
                    log.write_mark(trial, f"{_FOLDS}{size}", columns)
                    report(trial, size, score, n_validation=n_validation)
                return score

        def end_if_all_fail(study: optuna.Study, trial: FrozenTrial) -> None:
            if not scored and len(trained) >= 2 * MAX_FAILED:  # each is tried twice
                study.stop()

        study.optimize(
            objective,
            timeout=self.timeout,
            n_jobs=effective_n_jobs(self.n_jobs),
            catch=(FitError,),
            callbacks=[end_if_all_fail],
        )
        return params_of

    def _n_candidates(self, space: Any, grid: tuple[int, ...]) -> int | None:
        """Return the number of candidates to choose among, None for no limit."""
        if self.n_candidates is not None and self.n_iter is not None:
            raise ValueError(
                "`n_candidates` and `n_iter` are the same number by two names, but got "
                f"{self.n_candidates} and {self.n_iter}: give one of them."
            )
        wanted = self.n_iter if self.n_candidates is None else self.n_candidates
        n_points = space.n_points if isinstance(space, Space) else math.inf
        if n_points == 1:
            return 1
        if wanted is None and self.timeout is None:
            wanted = min(max(grid[-1] // grid[0], MIN_CANDIDATES), MAX_CANDIDATES)
        elif wanted is not None and wanted > n_points:
            warnings.warn(
                f"`param_distributions` has {n_points} points, fewer than `n_candidates="
                f"{wanted}`: all of them are searched.",
                UserWarning,
                stacklevel=5,
            )
        return None if wanted is None else int(min(wanted, n_points))

    def _results(
        self,
        params_of: Callable[[Mapping[str, Any]], dict[str, Any]],
        evaluate: Evaluation,
        has_best: bool,
    ) -> dict[str, Any]:
        """Return `cv_results_`.

        Args:
            params_of: function from a candidate's parameters in the study to the estimator's.
            evaluate: evaluation that this process used; it holds the errors.
            has_best: True if some candidate with a score is left.

        Raises:
            ValueError: if no candidate with a score is left.
        """
        study = self.study_
        # Leave out candidates without a training: another worker may be at their first one.
        curves = [c for c in learning_curves(study) if c.observations or c.state == "dropped"]
        if not curves:
            raise ValueError(
                f"No candidate was trained within `timeout={self.timeout}` seconds. Give more."
            )
        errors = evaluate.errors
        n_fits = self.n_splits_ * sum(len(curve.observations) for curve in curves)
        # If `error_score` is a number, failed fits are among the observations.
        has_counted = bool(errors) and math.isfinite(self.error_score)
        if not has_best or (has_counted and len(errors) == n_fits):
            seen = "above is the first error, and " if errors else ""
            raise ValueError(
                f"All the {len(curves)} candidates failed, so that there is none to choose. It is "
                "likely that the estimator is misconfigured, or cannot be fitted or scored on few "
                f"rows: then let `min_resources` be more than {self.min_resources_:,}; {seen}"
                '`error_score="raise"` shows where a fit fails. '
                f"{said_of(odd_columns(evaluate.X))} Below are all reasons:\n"
                + "\n".join({curve.reason: None for curve in curves})
            ) from (errors[0] if errors else None)
        measured, seconds = self._measured()
        shown = [fold["test_scores"] for folds in measured.values() for fold in folds]
        some = next((scores for scores in shown if isinstance(scores, Mapping)), shown[0])
        self.multimetric_ = isinstance(some, Mapping)
        if isinstance(some, Mapping):
            self._check_refit_for_multimetric(some)
            measured = {probe: by_scorer(folds, some) for probe, folds in measured.items()}
        failed: Any = dict.fromkeys(some, np.nan) if isinstance(some, Mapping) else np.nan
        nothing = {"fit_time": np.nan, "score_time": np.nan, "test_scores": failed}
        nothing |= {"train_scores": failed} if self.return_train_score else {}
        forecasts = {
            records.read_summary(row, "learner"): row.values[0]
            for row in one_row_per_learner(study).get_trials(states=(TrialState.COMPLETE,))
        }

        def numbers(values: Iterable[float | None]) -> list[float]:
            return [np.nan if value is None else value for value in values]

        ids = [curve.learner for curve in curves]
        sizes = [curve.size for curve in curves]
        more = {
            "learner": ids,
            "iter": [self.n_resources_.index(size) if size else 0 for size in sizes],
            "n_resources": sizes,
            "seconds": [seconds.get(learner, 0.0) for learner in ids],
            "state": [curve.state for curve in curves],
            "reason": [curve.reason for curve in curves],
            "forecast_test_score": numbers(forecasts.get(learner) for learner in ids),
            "lower_test_score": numbers(curve.worst for curve in curves),
            "upper_test_score": numbers(curve.bound for curve in curves),
        }
        last = zip(ids, sizes, strict=True)
        out = [fold for probe in last for fold in measured.get(probe, [nothing] * self.n_splits_)]
        params = [params_of(curve.params) for curve in curves]
        results: dict[str, Any] = self._format_results(params, self.n_splits_, out, more)
        is_full = np.asarray(sizes) == self.max_resources_
        for name in [name for name in results if name.startswith("rank_test_")]:
            results[name] = _ranks(is_full, results[name.replace("rank", "mean", 1)])
        self._warn(curves, errors if has_counted else [])
        return results

    def _warn(self, curves: list[LearnerCurve], errors: list[FitError]) -> None:
        """Warn of failed fits, of dropped candidates, and if none was trained on all rows."""
        if errors:
            warnings.warn(
                f"{len(errors)} fits failed, whose score is `error_score={self.error_score}`. "
                f"Below are the errors:\n" + "\n".join(dict.fromkeys(map(str, errors))),
                FitFailedWarning,
                stacklevel=5,
            )
        if dropped := [curve for curve in curves if curve.state == "dropped"]:
            warnings.warn(
                f"{len(dropped)} of {len(curves)} candidates were dropped. Below are the reasons; "
                '`error_score="raise"` shows where a fit fails, and a larger `min_resources` than '
                f"{self.min_resources_:,} helps where that is for want of rows.\n"
                + "\n".join({curve.reason: None for curve in dropped}),
                FitFailedWarning,
                stacklevel=5,
            )
        if all(curve.size < self.max_resources_ for curve in curves):
            within = "" if self.timeout is None else f" within `timeout={self.timeout}` seconds"
            warnings.warn(
                f"No candidate was trained on all {self.max_resources_:,} rows of a fold{within}: "
                "the one with the best forecast is chosen.",
                UserWarning,
                stacklevel=5,
            )

    def _measured(self) -> tuple[dict[tuple[int, int], list[Measured]], dict[int, float]]:
        """Return measurements by learner and size, and seconds by learner."""
        probes = allocations(self.study_)
        # Read folds after the scores. A worker stores folds first, so each score read has its
        # folds.
        trials = self.study_.get_trials(deepcopy=False)
        measured: dict[tuple[int, int], list[Measured]] = {}
        seconds: dict[int, float] = {}
        for probe in probes:
            learner, seen = probe.learner, probe.observation
            seconds[learner] = seconds.get(learner, 0.0) + (seen.seconds or 0.0)
            columns = log.read_mark(trials[probe.trial], f"{_FOLDS}{seen.size}")
            if columns is None or len(columns["test_scores"]) != self.n_splits_:
                raise ValueError(
                    f"Study {self.study_.study_name!r} must have been begun by a search with the "
                    f"same `cv`, {self.n_splits_} folds, but trial {probe.trial} has others. Take "
                    "another `study_name`."
                )
            rows = zip(*columns.values(), strict=True)
            measured[learner, seen.size] = [dict(zip(columns, r, strict=True)) for r in rows]
        return measured, seconds


def _ranks(is_full: NDArray[np.bool_], means: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return ranks from 1: scores on all rows first, then other scores, then missing ones.

    >>> _ranks(np.array([True, False, True, True]), np.array([0.7, 0.9, 0.8, np.nan]))
    array([2, 3, 1, 4], dtype=int32)
    """
    is_scored = np.isfinite(means)
    worst_first = np.where(is_scored, means, 0.0), is_scored & is_full, is_scored
    _, place = np.unique(np.stack(worst_first[::-1]), axis=1, return_inverse=True)
    return np.asarray(rankdata(-place.ravel(), method="min"), dtype=np.int32)


def _as_numbers(y: Any) -> Any:
    """Return decimals and fractions as floats, all other targets unchanged.

    >>> from fractions import Fraction
    >>> _as_numbers([Fraction(1, 4), Fraction(1, 2)])
    array([0.25, 0.5 ])
    """
    kinds = {type(value) for value in np.ravel(np.asarray(y, dtype=object))} if _may_be(y) else {}
    is_number = bool(kinds) and all(issubclass(kind, Decimal | Fraction) for kind in kinds)
    return np.asarray(y, dtype=object).astype(np.float64) if is_number else y


def _may_be(y: Any) -> bool:
    """Return whether targets are stored as objects, which may be numbers."""
    if y is None or isinstance(y, str):
        return False
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind == "O"
    return isinstance(y, list | tuple) or "decimal" in str(dtype).lower()


def metric_scorer(scorers: Any, metric: Any) -> Any:
    """Return the scorer that decides the search: the one that `refit` names, or the first."""
    several = scorers._scorers if isinstance(scorers, _MultimetricScorer) else {}
    named = several.get(metric) if isinstance(metric, str) else None
    return named or next(iter(several.values()), scorers)


def _check_all_scored(folds: Folds, scorers: Any, metric: str, estimator: Any, y: Any) -> None:
    """Raise a ValueError if probabilities are scored and a class is missing."""
    scorer = metric_scorer(scorers, metric)
    if y is None or not needs_all_classes(scorer) or not is_classifier(estimator):
        return
    if type_of_target(y) in ("binary", "multiclass"):
        targets = np.asarray(y).ravel()
        classes = class_labels(targets)
        if classes is not None:
            scored = [targets[fold.validation] for fold in folds.folds]
            name = getattr(getattr(scorer, "_score_func", scorer), "__name__", "a function")
            check_all_scored(folds.folds, classes, scored, name)


def _begun_with(
    search: DataAllocationSearchCV, X: Any, y: Any, folds: Folds, space: Any
) -> dict[str, str]:
    """Return the fingerprint that all searches of one study share, by name.

    Data and folds enter as checksums, the estimator by its parameters that are not searched.
    """
    searched = []
    of_space = stable(search.param_distributions)
    if isinstance(space, Space):
        searched = [parameter.name for some in space.sets for parameter in some]
        of_space = space.description
    scoring, by = search.scoring, search.refit
    if scoring is None or isinstance(scoring, str):
        by = "the only one"
    elif not callable(scoring):
        if not isinstance(scoring, Mapping):
            scoring = {name: name for name in scoring}
        by = by if isinstance(by, str) and by in scoring else next(iter(scoring))
    texts = {
        "data": of_table(X, y),
        "cv and random_state": of_folds(folds.folds),
        "param_distributions": of_space,
        # The estimator's description leaves out parameters that the space searches.
        "estimator": described(search.estimator, searched),
        "scoring": stable(scoring),
        "score searched by (`refit`)": by if isinstance(by, str) else "the first",
        "return_train_score": str(search.return_train_score),
    }
    return {name: bounded(text) for name, text in texts.items()}


_quiet_searches = 0
_levels: list[tuple[logging.Logger, int]] = []
_levels_lock = threading.Lock()


@contextmanager
def _quiet(verbose: int) -> Iterator[None]:
    """Limit the logs of Optuna and optuna_daub to errors if `verbose` is 0.

    Levels belong to the whole process. If several searches run at a time, the last one restores
    them.
    """
    global _quiet_searches
    if verbose:
        yield
        return
    with _levels_lock:
        _quiet_searches += 1
        if _quiet_searches == 1:
            for logger in map(logging.getLogger, ("optuna", "optuna_daub")):
                _levels.append((logger, logger.level))
                logger.setLevel(max(logger.level, logging.ERROR))
    try:
        yield
    finally:
        with _levels_lock:
            _quiet_searches -= 1
            while not _quiet_searches and _levels:
                logger, level = _levels.pop()
                logger.setLevel(level)
