"""The ready-made objective for scikit-learn compatible estimators."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from typing import Literal
from typing import cast

import optuna
from optuna.trial import FixedTrial
from optuna.trial import FrozenTrial
from optuna.trial import Trial

from optuna_daub.core.checks import flag
from optuna_daub.core.policies.policy import Needs
from optuna_daub.objective.data import odd_columns
from optuna_daub.objective.data import said_of
from optuna_daub.objective.division import divided
from optuna_daub.objective.fingerprint import identity
from optuna_daub.objective.fitting import FitParams
from optuna_daub.objective.fitting import applying
from optuna_daub.objective.fitting import checked_fit_params
from optuna_daub.objective.fitting import named_in_errors
from optuna_daub.objective.fitting import own_settings
from optuna_daub.objective.models import KeptModels
from optuna_daub.objective.models import Trained
from optuna_daub.objective.scoring import checked_scoring
from optuna_daub.objective.signatures import takes_previous
from optuna_daub.objective.signatures import takes_size
from optuna_daub.objective.study_checks import StudyChecks
from optuna_daub.objective.training import Training
from optuna_daub.objective.training import check_same_parameters
from optuna_daub.objective.winner import winner_of
from optuna_daub.study import AllocationPruner
from optuna_daub.study import report
from optuna_daub.study import training_sizes
from optuna_daub.study.log import check_study
from optuna_daub.study.records import point
from optuna_daub.study.reporting import check_trial
from optuna_daub.study.setup_errors import SetupError
from optuna_daub.study.setup_errors import ending_study
from optuna_daub.study.worker import worker_of


MAX_TIES = 8
"""Largest number of models in memory that share the best score on all rows."""
_BEST_LOCK = threading.Lock()


class TrainingSizeObjective:
    """Objective that trains an estimator on growing nested subsets of the data.

    The rows are shuffled once. At each training size n that the pruner chooses, a fresh copy of
    the estimator is fitted on the first n rows and scored on the validation rows. If the pruner's
    rule uses training scores, it is also scored on rows it was trained on: on the first 5,000, for
    ABC on all. Pass `max_resource=objective.n_train` to the pruner.

    >>> from optuna import create_study
    >>> from optuna.samplers import RandomSampler
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner
    >>> def build(trial):
    ...     smoothing = trial.suggest_float("var_smoothing", 1e-9, 1, log=True)
    ...     return GaussianNB(var_smoothing=smoothing)
    >>> objective = TrainingSizeObjective(build, *load_iris(return_X_y=True))
    >>> objective.n_train, objective.n_validation
    (105, 45)
    >>> sampler = DataAllocationSampler(RandomSampler(seed=0), n_learners=3)
    >>> pruner = DAUBPruner(min_resource=30, max_resource=objective.n_train)
    >>> study = create_study(direction="maximize", sampler=sampler, pruner=pruner)
    >>> study.optimize(objective)
    >>> objective.refit(study).var_smoothing == study.best_params["var_smoothing"]
    True

    The winner is `study.best_params`, its validation score `study.best_value`.

    **Validation** is done in one of three ways: on the fixed set `X_valid`, `y_valid`; by
    cross-validation with `cv`; or else on a held-out part of the rows. With `cv` scores are means
    over the folds; the largest fold trains on as many rows as the size says, a smaller one on its
    share. Without `cv`, ABC scores small training sizes on a part of the validation rows; every
    other rule uses all of them.

    **Time order**: `shuffle=False` says that rows are in time order. Then the last rows are held
    out, an int `cv` is a `TimeSeriesSplit`, and a subset is the most recent rows before those that
    are scored. A `TimeSeriesSplit` as `cv` does the same. With `shuffle=False`
    other splitters must train on earlier rows than they score.

    **Direction**: pass `direction="maximize"` to `optuna.create_study`, which is not Optuna's
    default. In scikit-learn's scorers larger is better; losses are negated ("neg_log_loss"). A
    scoring function of your own may be minimized.

    **Early stopping** takes one function as `fit_params`, which is given the rows. The first one
    is for LightGBM (before 4.7 with `eval_set=[(validation.X, validation.y)]`), the second for
    XGBoost with `early_stopping_rounds`::

        lambda training, validation: {
            "eval_X": validation.X,
            "eval_y": validation.y,
            "callbacks": [lightgbm.early_stopping(20)],
        }
        lambda training, validation: {"eval_set": [(validation.X, validation.y)], "verbose": False}

    If `build` returns several kinds of estimators, take the estimator as a third argument::

        def stop_early(training, validation, estimator):
            if not isinstance(estimator, XGBClassifier):
                return {}
            return {"eval_set": [(validation.X, validation.y)], "verbose": False}

    The same rows then stop the training and score it, so all scores are a little too good.

    **Training further** continues with a learner's model instead of starting anew. With
    `incremental=True` estimators with `partial_fit` learn from the new rows only. A function
    `build(trial, n, previous)` is given the learner's model from its last size, or None, and
    returns the estimator to fit, such as `previous` itself; that estimator is fitted, not a copy.
    A learner whose model was not kept starts anew, and so does `refit`::

        def build(trial, n, previous):
            rate = trial.suggest_float("rate", 0.01, 1.0, log=True)
            model = MLPClassifier(learning_rate_init=rate, warm_start=True)
            return model if previous is None else previous

    Args:
        build: Function from a trial to an unfitted estimator or pipeline. If it has a second
            parameter without a default, `build(trial, n)`, it is called anew at each training size
            n, for smaller folds with their number of rows, and once for the full size before. It
            must suggest the same parameters at all sizes. Define it at the top of a module to send
            the objective to other processes.
        X: Features, one row per example: array, pandas data frame, scipy sparse matrix or list.
        y: Targets, shape (n,) or, for several outputs, (n, number of outputs); all strings or all
            numbers. A column becomes an array, so its index is not kept.
        X_valid: Features of a fixed validation set; all of `X` is then for training.
        y_valid: Its targets.
        sample_weight_valid: Its weights; needed to score with weights, and to refit on them.
        cv: Number of folds, at least 2, or a scikit-learn splitter, or an iterable of pairs
            (training rows, validation rows). Its folds are fixed here, once.
        test_size: Rows to hold out if there is neither a fixed set nor `cv`: a fraction in (0, 1),
            or a number of rows. With `groups` it counts groups. 0.3 is the DAUB paper's split.
        groups: Group of each row, shape (n,); no group is both trained on and scored.
        scoring: A scikit-learn scorer, by name or as a function (estimator, X, y) -> float; None
            for the estimator's own `score`. Default: "accuracy". A function may have an attribute
            `greater_is_better`, which is compared with the study's direction, and
            `scores_a_sample`: if that is True, ABC refuses it.
        sample_weight: Weights of the rows, at least 0 and not all 0, passed to `fit` (in a
            pipeline to that of its last step), which must take them.
        weighted_score: Pass the weights to the scorer too, as its `sample_weight`. The promise of
            ABC does not hold for such scores, so it warns.
        fit_params: Extra arguments of `fit`, as a mapping or a function. In a mapping, an array,
            column or list with one entry per row of `X` is cut to the rows trained on. Validation
            tables are not cut. They are known by their names: `eval_` and anything, or `X`, `y`,
            `sample_weight`, `data` or `set` with `val`, `valid` or `validation` before or after
            it, such as `X_val` and `valid_y`. Each training
            has copies of callbacks in a mapping; a function must make its own. A
            function (training, validation) or (training, validation, estimator) is called before
            each fit and returns a mapping. `training` and `validation` have the attributes `X`,
            `y`, `sample_weight` and `positions` (row numbers in `X`); `validation` is None if
            `refit` trains on all rows. With `cv` this is tried before the first fit. `estimator`
            comes from `build`.
        stratify: Keep the shares of the classes in every subset, the held-out part and the folds.
            "auto": labels are classes if `scoring` is a classification scorer of scikit-learn, and
            not if it is a regression scorer. If neither is known, strings, booleans and categories
            are classes, and so are whole numbers of at most 20 different values. True: any whole
            numbers are classes as well. Fractions and several outputs never are. With groups or
            in time order shares are not kept, but every class must be present.
        shuffle: Shuffle the rows; False for rows in time order.
        incremental: Train further on the new rows only, by `partial_fit`. In time order the new
            rows are older ones. Costs count the new rows only.
        keep_models: Number of learners, those trained last, whose models are kept in memory; or a
            folder for this study's models. None: 32 learners. Must be None without `incremental`
            or a third argument of `build`.
        seed: Seed of all permutations, from 0 to 2**32 - 1. The same seed gives the same subsets
            on every machine.

    Raises:
        ValueError: if rows are missing or do not match, ways of validation are mixed, a class is
            absent from the training rows, a splitter is not reproducible or leaks, the scorer is
            unknown or cannot score the targets, or an argument breaks its rule. At the first
            call, before anything is trained, also if the pruner's sizes do not fit the rows, the
            study's direction does not fit the scorer, ABC's intervals do not fit it, an estimator
            cannot train further, or the table was changed in place meanwhile.
        TypeError: if an estimator takes no weights, but there are some. `catch` of
            `study.optimize` drops that learner alone.
    """

    def __init__(
        self,
        build: Callable[[Trial], Any] | Callable[[Trial, int], Any],
        X: Any,
        y: Any,
        *,
        X_valid: Any = None,
        y_valid: Any = None,
        sample_weight_valid: Any = None,
        cv: Any = None,
        test_size: float = 0.3,
        groups: Any = None,
        scoring: Any = "accuracy",
        sample_weight: Any = None,
        weighted_score: bool = False,
        fit_params: FitParams | None = None,
        stratify: bool | Literal["auto"] = "auto",
        shuffle: bool = True,
        incremental: bool = False,
        keep_models: int | str | Path | None = None,
        seed: int = 0,
    ) -> None:
        wants_size, wants_previous = takes_size(build), takes_previous(build)
        is_incremental = flag("incremental", incremental)
        if is_incremental and wants_previous:
            raise ValueError(
                "`incremental=True` goes on with `partial_fit`, `build(trial, n, previous)` by "
                "itself, but got both. Leave out one or the other."
            )
        scorer = checked_scoring(scoring)
        weighted = flag("weighted_score", weighted_score)
        self._division = divided(
            X,
            y,
            scorer,
            sample_weight=sample_weight,
            weighted_score=weighted,
            fixed=(X_valid, y_valid, sample_weight_valid),
            cv=cv,
            test_size=test_size,
            groups=groups,
            stratify=stratify,
            shuffle=shuffle,
            seed=seed,
        )
        has_weights = self._division.rows.sample_weight is not None
        self._training = Training(
            build=build,
            takes_size=wants_size,
            takes_previous=wants_previous,
            is_incremental=is_incremental,
            fit_params=checked_fit_params(fit_params, has_weights=has_weights),
            division=self._division,
            scoring=scorer,
            weighted=weighted,
        )
        self._checks = StudyChecks(self._training)
        self._kept: KeptModels | None = None
        if is_incremental or wants_previous:
            self._kept = KeptModels(keep_models, str(self._checks.fingerprint))
        elif keep_models is not None:
            raise ValueError(
                "`keep_models` keeps models that are trained further, but got neither "
                "`incremental=True` nor a `build(trial, n, previous)`. Pass one of them, or leave "
                "it out."
            )
        self._settings = own_settings()
        self._has_named = False  # the columns that may have caused an error
        # The best score on all rows (larger is better), with the parameters and models that share
        # it.
        self._best: dict[str, list[tuple[float, dict[str, Any], Any]]] = {}  # by study

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the best models, which are a cache of this process."""
        return vars(self) | {"_best": {}}

    @property
    def n_train(self) -> int:
        """Number of rows to train on, the largest size.

        With `cv` it is that of the largest fold. A smaller fold takes its share: at half of the
        size, half of its own rows.
        """
        return self._division.n_train

    @property
    def n_validation(self) -> int:
        """Number of rows to score; with `cv` summed over the folds."""
        return self._division.n_validation

    @property
    def smallest_size(self) -> int:
        """Smallest training size that holds every class; 1 for regression."""
        return self._division.complete[0]

    def __call__(self, trial: Trial | FrozenTrial | FixedTrial) -> float:
        """Train and report at each chosen size, and return the last validation score.

        A trial that does not run in a study, such as `study.best_trial` or a `FixedTrial`, is
        trained once on all `n_train` rows, and nothing is reported. An error of the estimator or
        the scorer has a note with the learner's parameters and the size (from Python 3.11 on).
        """
        if isinstance(trial, FrozenTrial | FixedTrial):
            training, validation = self._training, self._division.validation
            with applying(self._settings), named_in_errors(trial.params, self.n_train):
                estimator = training.estimator(trial, self.n_train)
                unscored = Needs(training_scores="unused")  # on the rows that it was trained on
                models = training.models(trial, estimator, self.n_train, None)
                score, _ = training.scores(models, self.n_train, validation, unscored)
            return score
        check_trial(trial)
        with applying(self._settings), ending_study(trial.study):
            return self._run(trial)

    def _run(self, trial: Trial) -> float:
        """Train and report while it is the trial's turn; return the last score."""
        training = self._training
        # Suggest parameters before asking for the first size, which may depend on them.
        estimator = training.estimator(trial, self.n_train)
        params, words = trial.params, point(trial.params, trial.distributions)
        sizes = training_sizes(trial)
        self._checks.check(trial, estimator)
        study = identity(trial.study)
        needs = cast(AllocationPruner, trial.study.pruner).policy.needs
        for size in sizes:
            validation = self._division.scored_at(needs, size)
            with self._explaining(), named_in_errors(params, size):
                if training.takes_size and not training.takes_previous:
                    estimator = training.estimator(trial, size)
                    check_same_parameters(params, trial.params)
                kept = None if self._kept is None else self._kept.take(study, words)
                before = training.usable(kept, estimator, size)
                models = training.models(trial, estimator, size, before)
                score, training_score = training.scores(models, size, validation, needs)
                if self._kept is not None:
                    self._kept.put(study, words, Trained(size, tuple(models)))
            new = size if before is None else size - before.size
            report(
                trial,
                size,
                score,
                training_score=training_score,
                n_validation=sum(map(len, validation)),
                examples=new if training.is_incremental else None,
            )
            if size == self.n_train and len(models) == 1:
                signed = worker_of(trial.study).sign * score
                with _BEST_LOCK:  # else a thread could lose what another one keeps
                    best = self._best.get(study, [])
                    if signed >= max((each[0] for each in best), default=signed):
                        ties = [each for each in best if each[0] == signed]
                        self._best[study] = [*ties[: MAX_TIES - 1], (signed, params, models[0])]
        return score

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Warn once, after an estimator's error, of columns that may have caused it."""
        try:
            yield
        except Exception as error:
            is_set_up = isinstance(error, SetupError | optuna.TrialPruned)
            is_untold = not is_set_up and not self._has_named
            if is_untold and (odd := odd_columns(self._division.rows.X)):
                self._has_named = True
                warnings.warn(said_of(odd), UserWarning, stacklevel=2)
            raise

    def refit(self, study: optuna.Study, *, include_validation: bool = False) -> Any:
        """Return the winner of the study fitted on all the training data.

        The winner is that of `best_learner`; with another library's pruner or sampler it is
        `study.best_trial`. It is fitted on the `n_train` training rows, the same rows as at
        `max_resource=n_train`. If fits repeat exactly, its score is `study.best_value`. With
        incremental training it starts anew. With `include_validation` it
        is fitted on the validation rows too, and no row is left to score it. With `cv` it is
        always fitted on all rows of `X`.

        In an unfinished study without a learner trained on all the data, the leader is fitted,
        with a UserWarning that says what is not known of it.

        Raises:
            ValueError: if nothing was scored yet, all learners were dropped, or with
                `include_validation` only one of training and validation rows have weights.
        """
        check_study(study)
        self._checks.warn_of_other_rows(study)
        params, number = winner_of(study)
        rows, validation = self._division.for_refit(include_validation=include_validation)
        with applying(self._settings), named_in_errors(params, len(rows)):
            return self._training.refitted(FixedTrial(params, number=number), rows, validation)

    def model(self, study: optuna.Study) -> Any:
        """Return the model that made the winner's score, without another training.

        None if this process did not train it on all `n_train` rows, if there are several folds, or
        if a model with a better score violates a constraint. The objective keeps the best model of
        each of its studies.
        """
        check_study(study)
        if not (best := self._best.get(identity(study))):
            return None
        winner, _ = winner_of(study)
        return next((model for _, params, model in best if params == winner), None)
