"""`DataAllocationSearchCV`: the sampler and the pruner as a search of scikit-learn."""

from __future__ import annotations

import time
import warnings
from numbers import Integral
from numbers import Real
from typing import TYPE_CHECKING
from typing import Any
from typing import ClassVar
from typing import Literal

import numpy as np
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from sklearn.base import _fit_context
from sklearn.base import clone
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_method_params

from optuna_daub.objective.scoring import limits_of
from optuna_daub.objective.scoring import own_limits
from optuna_daub.sklearn import callbacks
from optuna_daub.sklearn.arguments import arguments_of
from optuna_daub.sklearn.arguments import check_classes_scored
from optuna_daub.sklearn.arguments import check_names
from optuna_daub.sklearn.arguments import check_scorer_names
from optuna_daub.sklearn.arguments import checked_table
from optuna_daub.sklearn.arguments import fingerprint
from optuna_daub.sklearn.arguments import number_of_candidates
from optuna_daub.sklearn.folds import Evaluation
from optuna_daub.sklearn.folds import deciding
from optuna_daub.sklearn.folds import divided
from optuna_daub.sklearn.folds import size_grid
from optuna_daub.sklearn.measurements import check_some_fitted
from optuna_daub.sklearn.measurements import cv_results
from optuna_daub.sklearn.measurements import measurements
from optuna_daub.sklearn.measurements import trained_curves
from optuna_daub.sklearn.measurements import warn_of_failures
from optuna_daub.sklearn.searching import Candidates
from optuna_daub.sklearn.searching import quiet
from optuna_daub.sklearn.searching import run
from optuna_daub.sklearn.searching import study_of
from optuna_daub.sklearn.secrets import StorageURL
from optuna_daub.sklearn.secrets import in_memory
from optuna_daub.sklearn.secrets import masked
from optuna_daub.sklearn.secrets import url_or_storage
from optuna_daub.sklearn.space import checked_function
from optuna_daub.sklearn.space import checked_space
from optuna_daub.study import best_learner


if TYPE_CHECKING:
    from typing_extensions import Self


class DataAllocationSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search for the best parameters, with most trainings on part of the data.

    It has the methods and attributes of scikit-learn's `RandomizedSearchCV` and
    `HalvingRandomSearchCV`. The first candidates are trained on few rows of each fold. Forecasts
    from the learning curves say how good each candidate could become on all rows. The next seconds
    are spent where they promise most: on more rows for a candidate, or on a new candidate. With
    `timeout` alone the forecast model proposes candidates, otherwise TPE, unless `sampler` does.
    The best candidate was trained on all rows of each fold, and is fitted once more on all the
    data.

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
        timeout: seconds of search, above 0, in which new candidates are proposed. A training that
            has begun is finished.
        n_candidates: number of candidates to choose among, at least 1, including those that a
            function as space rejects.
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
        min_resources: smallest number of rows to train on in the largest fold; smaller folds take
            the same share of theirs. "smallest": two for each fold and class, as in
            `HalvingRandomSearchCV`, or more if a subset would lack a class.
            "auto": 500, but at most 1/8 and at least 1/64 of all rows, and at least as many as
            "smallest"; less if there would be fewer than three sizes. If the number of candidates
            is limited, each starts on about 1/16 of all rows, if that is more.
        max_resources: largest number of rows to train on in the largest fold; "auto": all. The
            best candidate is fitted on all the data in any case.
        factor: ratio of consecutive training sizes, above 1.
        cost: cost to save: "seconds", as measured, or "examples" trained on.
        sampler: Optuna sampler that proposes candidates. None: `TPESampler` if `n_candidates` is
            given, else the model of `DataAllocationSampler`; seeded by `random_state`.
        storage: storage of Optuna for the study, such as "sqlite:///study.db"; None: in memory.
            No repr, message or log shows a password in it. A fitted search is pickled with a copy
            of the study in memory and the URL without its password, so it is loaded without the
            storage; one that was not fitted is pickled with storage and password.
        study_name: name of the study in the storage. An existing study is continued, also by
            several processes at a time: fit with the same data, space, estimator, scorers,
            `refit`, `cv`, `return_train_score`, training sizes, other arguments of `fit`, and an
            int as `random_state`. `timeout` then counts
            anew, while `n_candidates` includes the candidates already there.
        random_state: seed of candidates and of the subsets of rows.
        verbose: 0 is quiet; from 1 on Optuna's log has a line for each run of a candidate.
        error_score: what to do after a failed fit. nan: the candidate is tried once more, then
            dropped; a `FitFailedWarning` says so at the end. "raise": the search ends with
            the error. A number counts as the score, and a `FitFailedWarning` names the errors.
        return_train_score: add training scores to `cv_results_`. The search does not use them.

    Attributes:
        cv_results_: one row for each candidate, as in scikit-learn: `params`, `param_*`,
            `mean_test_score`, `std_test_score`, `rank_test_score`, `split0_test_score`,
            `mean_fit_time` and so on, at the largest size on which the candidate was trained.
            `n_resources` is that size (0 if no fit succeeded) and `iter` its place among the
            sizes, from 0. `seconds` is the time of all trainings of the candidate. `state` is
            "complete", "best" (if the rule ended the search itself), "suspended", "dropped" or
            "running", and `reason` says why. `learner` is its id in the study.
            `forecast_test_score` is the forecast of the score on all rows, with the 5 % and 95 %
            quantiles `lower_test_score` and `upper_test_score`; all three are the score itself
            once it is known. Ranks are by score, with those trained on all rows before all others.
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
        "storage": "no_validation",  # see `opened`
        "study_name": [str, None],
        "random_state": ["random_state"],
    }

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Return a search; raise a TypeError for arguments of other libraries' searches."""
        if cls.__init__ is DataAllocationSearchCV.__init__:
            check_names(given)
        new: Self = super().__new__(cls)
        return new

    def __init_subclass__(cls, **given: Any) -> None:
        """Let `inspect.signature` show the arguments of a subclass."""
        super().__init_subclass__(**given)
        cls.__signature__ = arguments_of(cls.__init__)

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
    __signature__ = arguments_of(__init__)

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
        named = getattr(scorers, "_scorers", {None: scorers})  # several, by name
        decides = deciding(named, self.refit)
        scorer = named[decides]  # a single scorer has no name
        X, y = indexable(*checked_table(X, y, self.estimator, params))
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        task = callbacks.begun(self, X, y, params)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        rng = check_random_state(self.random_state)
        seed, seed_of_sampler = int(rng.randint(2**31 - 1)), int(rng.randint(2**31 - 1))
        split = routed.splitter.split
        folds = divided(splitter, self.estimator, X, y, split, seed)
        check_classes_scored(folds, scorer, decides or self.scoring)
        self.n_splits_ = len(folds.folds)
        grid = size_grid(folds, self.min_resources, self.max_resources, self.factor)
        self.min_resources_, self.max_resources_, self.n_resources_ = grid[0], grid[-1], [*grid]
        given = self.param_distributions
        space = checked_function(given) if callable(given) else checked_space(given)
        base_estimator = clone(self.estimator)
        limits = own_limits(self.estimator) if self.scoring is None else limits_of(scorer)
        n_candidates = number_of_candidates(self, space, grid)
        arguments = {**routed.estimator.fit, **routed.scorer.score}
        started_with = fingerprint(self, X, y, folds, space, arguments)
        candidates = Candidates(space)
        with quiet(self.verbose), task.searching() as training:
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
                training,
            )
            # Set the study before it runs, so it is there after Ctrl-C.
            self.study_ = study_of(self, n_candidates, grid, seed_of_sampler, started_with, limits)
            run(self, candidates, evaluate)
            best = best_learner(self.study_)
            results = self._results(candidates, evaluate, has_best=best is not None)
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
            with task.refitting(model):
                model.fit(*((X,) if y is None else (X, y)), **routed.estimator.fit)
            self.refit_time_ = time.time() - begun
            self.best_estimator_ = model
            if hasattr(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
        self.scorer_ = named.get(None, named)
        self.cv_results_ = results
        task.end()
        return self

    @property
    def storage(self) -> str | BaseStorage | None:
        """Storage of the study; a URL is shown without its password."""
        storage: str | BaseStorage | None = self.__dict__["storage"]
        return storage

    @storage.setter
    def storage(self, storage: str | BaseStorage | None) -> None:
        # Keep other objects as they are: `clone` checks for identity.
        if isinstance(storage, str) and not isinstance(storage, StorageURL):
            storage = StorageURL(storage) if masked(storage) != storage else storage
        self.__dict__["storage"] = storage

    def __getstate__(self) -> dict[str, Any]:
        """Return the state, without the storage if the search was fitted.

        A model may be loaded where the storage is not, so its study becomes a copy in memory. A
        search that was not fitted keeps its storage, even the password: another process may have
        to fit it.
        """
        state: dict[str, Any] = {**super().__getstate__()}
        if not self.__sklearn_is_fitted__():
            return state
        state["storage"] = url_or_storage(state["storage"])
        if (study := state.pop("study_", None)) is not None:
            try:
                state["study_"] = in_memory(study)
            except Exception as error:  # the model is of use without its study
                left_out = f"The pickle has no `study_`, as its storage cannot be read: {error}"
                warnings.warn(left_out, UserWarning, stacklevel=2)
        return state

    def _validate_params(self) -> None:
        """Raise a ValueError if an argument breaks its rule; scikit-learn calls it in `fit`."""
        check_scorer_names(self.scoring)
        super()._validate_params()

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the search has ended; some attributes are set before."""
        return hasattr(self, "cv_results_")

    def _results(
        self, candidates: Candidates, evaluate: Evaluation, *, has_best: bool
    ) -> dict[str, Any]:
        """Return `cv_results_`, and warn of what failed.

        Raises:
            ValueError: if no candidate with a score is left.
        """
        curves = trained_curves(self)
        check_some_fitted(self, curves, evaluate, has_best=has_best)
        measured = measurements(self.study_, self.n_splits_)
        self.multimetric_ = bool(measured.scorers)
        if self.multimetric_:
            self._check_refit_for_multimetric(measured.scorers)
        results = cv_results(self, curves, measured, candidates.params_of)
        warn_of_failures(self, curves, evaluate.counted)
        return results
