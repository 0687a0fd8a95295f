"""Tuning of LightGBM: datasets and parameters in, a booster out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from os import PathLike
from typing import Any
from typing import NoReturn

import numpy as np
import optuna
from optuna.trial import BaseTrial
from optuna.trial import FixedTrial
from optuna.trial import Trial

from optuna_daub import spaces
from optuna_daub.core.checks import brief
from optuna_daub.core.checks import checked_seed
from optuna_daub.core.checks import listed
from optuna_daub.core.checks import seconds_above_0
from optuna_daub.core.checks import whole_number
from optuna_daub.core.optional import imported
from optuna_daub.objective.subsets import nested_order
from optuna_daub.spaces.lightgbm_params import ALIASES
from optuna_daub.spaces.lightgbm_params import ROUNDS
from optuna_daub.spaces.lightgbm_params import checked_params
from optuna_daub.study import DataAllocationSampler
from optuna_daub.study import best_learner
from optuna_daub.study import host
from optuna_daub.study import learning_curves
from optuna_daub.study import report
from optuna_daub.study import training_sizes
from optuna_daub.study.messages import message_of
from optuna_daub.study.storages import opened
from optuna_daub.tabular import pair
from optuna_daub.tabular.process import quiet


N_FIRST_ROWS = 1_000
"""Number of rows of a first training. It shows whether a larger score is better."""


@dataclass(frozen=True)
class Tuned:
    """The result of `tune`."""

    booster: Any
    """The best booster, trained on all rows of `train_set`."""
    best_params: Mapping[str, Any]
    """Parameters of the best booster, the given ones included, with `num_boost_round`."""
    best_score: float
    """Score of the best booster on the validation set."""
    metric: str
    """LightGBM's name for the score."""
    study: optuna.Study = field(repr=False)
    """The search, for `optuna_daub.learning_curves` and pictures."""


def tune(
    params: Mapping[str, Any],
    train_set: Any,
    valid_sets: Any,
    *,
    seconds: float = 600.0,
    n_trials: int | None = None,
    num_boost_round: int | None = None,
    feval: Any = None,
    callbacks: Sequence[Callable[..., Any]] = (),
    seed: int = 0,
    storage: Any = None,
    **others: NoReturn,
) -> Tuned:
    """Search for a given time, and return the best booster with its score.

    Most boosters are trained only on part of the rows. The parameters of
    `optuna_daub.spaces.lightgbm` are searched, except those given in `params`. Training subsets
    are nested, and classes keep their shares. `params`, `train_set` and `valid_sets` are those of
    `lightgbm.train` and of Optuna's `LightGBMTuner`. After Ctrl-C it returns the best booster so
    far, if there is one.

    Args:
        params: parameters of LightGBM, with `objective`, a name or a function. The first metric
            is the score.
        train_set: `lightgbm.Dataset`, not yet constructed, or with `feature_pre_filter=False`. If
            it is a subset, this must be true of the dataset that it was taken from.
        valid_sets: a dataset to score, with `reference=train_set`. In a list the first one other
            than `train_set` counts.
        seconds: time for the search, above 0.
        n_trials: largest number of trials, at least 1; None for no limit.
        num_boost_round: number of trees of each booster, unless `params` has it; None: searched.
        feval: as for `lightgbm.train`. If `params` names no metric, its first one is the score.
        callbacks: as for `lightgbm.train`, such as `lightgbm.early_stopping(20)`; each is used
            in all trainings.
        seed: seed of subsets, candidates and boosters.
        storage: storage of Optuna for the search; None: in memory.
        others: not accepted; the error names the arguments that replace those of
            `LightGBMTuner`.

    Raises:
        ValueError: if there is no dataset to score, an argument breaks its rule, or rows have
            groups, which subsets would cut.
        TypeError: if an argument is unknown.
        ImportError: if LightGBM is not installed.
        RuntimeError: if no booster could be trained.

    >>> import lightgbm
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> train = lightgbm.Dataset(X[:400], y[:400])
    >>> valid = lightgbm.Dataset(X[400:], y[400:], reference=train)
    >>> given = {"objective": "binary", "metric": "auc", "verbose": -1, "num_threads": 1}
    >>> tuned = tune(given, train, valid, seconds=3, n_trials=8)
    >>> tuned.metric, tuned.best_score > 0.9, tuned.booster.predict(X[:3]).shape
    ('auc', True, (3,))
    """
    if others:
        raise TypeError(
            f"`tune` has no argument {brief(next(iter(others)))}. `LightGBMTuner`'s `time_budget` "
            "is `seconds` here, its `optuna_seed` is `seed`, and its `study` is `storage`, for a "
            "new study. Names of columns and categories go into `lightgbm.Dataset`."
        )
    package = imported("lightgbm", extra="boosters")
    seconds, seed = seconds_above_0(seconds), checked_seed(seed)
    n_trials, n_trees = _count("n_trials", n_trials), _count("num_boost_round", num_boost_round)
    given = checked_params(package, params)
    if n_trees is not None and not {*ROUNDS} & {*given}:
        given["num_boost_round"] = n_trees
    held_out = _held_out(package, train_set, valid_sets)
    storage = opened(storage)
    functions = _functions("callbacks", callbacks)
    feval = feval if feval is None or callable(feval) else _functions("feval", feval)
    # LightGBM warns of parameters with two names.
    with quiet("optuna", hidden=UserWarning), _refusing(params):
        _construct(train_set, held_out, given)
        search = _Search(package, given, train_set, held_out, feval, functions, seed)
        search.check_rows()
        search.probe()
    with quiet("optuna", hidden=UserWarning):
        study = optuna.create_study(
            direction="maximize" if search.is_larger_better else "minimize",
            storage=storage,
            sampler=DataAllocationSampler(seed=seed, seconds=seconds),
            pruner=pair.pruner(search.n_rows, search.smallest),
        )
        cheap, *later = spaces.first_points("lightgbm", search.n_rows, task=search.task)
        study.enqueue_trial(cheap)
        fails, is_interrupted = package.basic.LightGBMError, False
        try:
            host.optimize(
                study,
                search.objective,
                timeout=seconds,
                n_trials=n_trials,
                catch=(fails,),
                callbacks=[pair.StartingPoints(later)],
            )
        except KeyboardInterrupt:
            if search.best is None:
                raise
            is_interrupted = True
        if (best := best_learner(study)) is None:
            reasons = dict.fromkeys(curve.reason for curve in learning_curves(study))
            too_short = f"no training began within `seconds={seconds:g}`. Give more"
            raise RuntimeError(f"No booster could be trained: {'; '.join(reasons) or too_short}.")
        if search.best is None:  # the time ended before the leader was trained on all rows
            chosen = search.chosen(FixedTrial({**best.params}), search.n_rows)
            search.best = *search.train(chosen, search.n_rows), chosen
    if is_interrupted:
        warnings.warn("Interrupted: the best booster so far is returned.", stacklevel=2)
    booster, score, chosen = search.best
    chosen["num_boost_round"] = chosen.pop("n_estimators")
    return Tuned(booster, chosen, score, search.metric, study)


class _Search:
    """One search: settings of its trainings, and the best booster so far."""

    def __init__(
        self,
        package: Any,
        params: Mapping[str, Any],
        train_set: Any,
        held_out: Any,
        feval: Any,
        callbacks: Sequence[Callable[..., Any]],
        seed: int,
    ) -> None:
        self._package, self._params, self._seed = package, params, seed
        self._train_set, self._held_out = train_set, held_out
        self._feval, self._callbacks = feval, callbacks
        kind = str(next((self._params[n] for n in _OBJECTIVES if n in self._params), ""))
        of_classes = kind.startswith(("binary", "multiclass", "softmax", "ova", "ovr"))
        self.task: spaces.Task = "classification" if of_classes else "regression"
        self.n_rows = int(train_set.num_data())
        labels = np.asarray(train_set.get_label())
        codes = np.unique(labels, return_inverse=True)[1] if of_classes else None
        self._order = nested_order(self.n_rows, seed, codes)
        # The first rows have one of each class.
        self.smallest = 1 if codes is None else int(codes.max()) + 1
        self.is_larger_better, self.metric = True, ""
        self.best: tuple[Any, float, dict[str, Any]] | None = None

    def check_rows(self) -> None:
        """Raise a ValueError if there are no three sizes to train on."""
        if self.n_rows < (least := max(self.smallest, 2) + 2):
            raise ValueError(
                f"`train_set` must have at least {least} rows, so there are three training "
                f"sizes, but has {self.n_rows}. Add rows, or use `lightgbm.train`."
            )

    def probe(self) -> None:
        """Train one round on few rows, to learn the metric's name and direction."""

        def stop(env: Any) -> None:
            raise self._package.EarlyStopException(env.iteration, env.evaluation_result_list)

        stop.order = 1_000  # type: ignore[attr-defined]  # after all other callbacks
        size = max(self.smallest, min(N_FIRST_ROWS, self.n_rows))
        _, score = self.train({**self._params, "n_estimators": self._rounds(1)}, size, stop)
        if not math.isfinite(score):
            raise ValueError(
                f"`{'feval' if self._feval else 'params'}` must give a metric that is a finite "
                f"number, but {self.metric} is {score} after one round on {size:,} rows."
            )

    def objective(self, trial: Trial) -> float:
        self.chosen(trial, self.n_rows)  # a trial has its parameters before its sizes
        for size in training_sizes(trial):
            chosen = self.chosen(trial, size)
            booster, score = self.train(chosen, size)
            report(trial, size, score)
            if size == self.n_rows and self._is_best(score):
                self.best = booster, score, chosen
        return score

    def chosen(self, trial: BaseTrial, size: int) -> dict[str, Any]:
        """Return the parameters of a trial for `size` rows, with the given ones unchanged."""
        model = spaces.lightgbm(trial, self.n_rows, task=self.task, seed=self._seed)
        found = {name: value for name, value in model.get_params().items() if name in ALIASES}
        found["subsample"] = max(found["subsample"], 1 / size)  # LightGBM needs a row in a bag
        del found["n_jobs"]  # keep LightGBM's default: all cores
        given = {*self._params}
        if "goss" in map(str, self._params.values()):  # it samples by itself, and refuses bagging
            given |= {"subsample", "subsample_freq"}
        kept = {n: v for n, v in found.items() if not given & {n, *ALIASES[n]}}
        rest = {n: v for n, v in self._params.items() if n not in ROUNDS}
        return {**kept, **rest, "n_estimators": self._rounds(found["n_estimators"])}

    def _rounds(self, found: int) -> int:
        """Return the given number of rounds; if none is given, the one found."""
        return int(next((self._params[n] for n in ROUNDS if n in self._params), found))

    def train(self, chosen: Mapping[str, Any], size: int, *more: Any) -> tuple[Any, float]:
        """Return a booster trained on the first rows of the order, and its score."""
        rows = self._train_set
        if size < self.n_rows:
            rows = rows.subset(np.sort(self._order[:size]).tolist())
        options = {name: value for name, value in chosen.items() if name not in ROUNDS}
        if self._feval and not {*_METRICS} & {*options}:
            options["metric"] = "None"  # else the objective's own metric would be the first
        seen: list[tuple[str, str, float, bool]] = []

        def note(env: Any) -> None:
            seen[:] = [each[:4] for each in env.evaluation_result_list]

        booster = self._package.train(
            options if {"verbose", "verbosity"} & {*options} else {"verbosity": -1, **options},
            rows,
            num_boost_round=chosen["n_estimators"],
            valid_sets=[self._held_out],
            valid_names=["valid"],
            feval=self._feval,
            callbacks=[note, *self._callbacks, *more],
        )
        if not seen:
            raise ValueError(
                "`params` must have a metric to compare boosters by, but LightGBM scores nothing "
                f"with metric={brief(self._params.get('metric'))}. Pass one of its own names, "
                'such as "auc", "binary_logloss", "multi_logloss", "rmse" or "l1".'
            )
        _, self.metric, score, self.is_larger_better = seen[0]
        if booster.best_iteration > 0 and booster.best_score:  # set by early stopping
            score = booster.best_score["valid"][self.metric]
        return booster, float(score)

    def _is_best(self, score: float) -> bool:
        sign = 1.0 if self.is_larger_better else -1.0
        return math.isfinite(score) if not self.best else sign * (score - self.best[1]) > 0


_METRICS = ("metric", "metrics", "metric_types")
_OBJECTIVES = ("objective", "objective_type", "app", "application", "loss")


def _held_out(package: Any, train_set: Any, valid_sets: Any) -> Any:
    """Return the dataset to score."""
    if not isinstance(train_set, package.Dataset):
        raise ValueError(f"`train_set` must be a `lightgbm.Dataset`, but got {brief(train_set)}.")
    is_one = valid_sets is None or isinstance(valid_sets, package.Dataset)
    sets = [valid_sets] if is_one else listed("valid_sets", valid_sets, "datasets to score")
    held_out = next((each for each in sets if each is not train_set), None)
    if not isinstance(held_out, package.Dataset):
        raise ValueError(
            "`valid_sets` must have a dataset other than `train_set`, to be scored, but got "
            f"{brief(valid_sets)}."
        )
    return held_out


def _count(name: str, value: Any) -> int | None:
    count = None if value is None else whole_number(name, value)
    if count is not None and count < 1:
        raise ValueError(f"`{name}` must be at least 1 or None, but got {brief(value)}.")
    return count


def _functions(name: str, value: Any) -> list[Any]:
    found = listed(name, value, "functions")
    if wrong := [each for each in found if not callable(each)]:
        raise ValueError(f"`{name}` must be a list of functions, but has {brief(wrong[0])}.")
    return found


@contextmanager
def _refusing(params: Any) -> Iterator[None]:
    """Turn errors of LightGBM before the search into a ValueError with the given parameters."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ValueError) and str(error).startswith("`"):  # one of ours
            raise
        raise ValueError(
            "`params`, datasets, `feval` and `callbacks` must be as `lightgbm.train` takes them, "
            f"but with {brief(params)} it says {message_of(error)}"
        ) from error


def _construct(train_set: Any, held_out: Any, params: Mapping[str, Any]) -> None:
    """Construct the dataset without filters, so trials may have any `min_data_in_leaf`."""
    # Once a dataset is constructed, missing labels are 0. Those of a file are known only then.
    sets = [("train_set", train_set, train_set.label), ("valid_sets", held_out, held_out.label)]
    for name, rows, labels in sets:
        if labels is None and not isinstance(rows.data, str | PathLike | None):
            raise ValueError(f"`{name}` must have a label for each row, but has none.")
    whole = train_set
    while whole.reference is not None:  # a subset has the features that its whole has
        whole = whole.reference
    own = whole.params or {}
    try:
        whole.num_data()
    except Exception:  # LightGBM's own kind of error: the dataset was not constructed
        # A dataset takes no function, as an objective may be.
        options = {name: value for name, value in params.items() if not callable(value)}
        whole.params = {**options, **own, "feature_pre_filter": False}
    else:
        if {**params, **own}.get("feature_pre_filter", True):
            raise ValueError(
                "`train_set` must not be constructed yet, except with "
                'params={"feature_pre_filter": False}. Otherwise LightGBM has removed features '
                "that only small leaves can use, and the search tries small leaves. This also "
                "holds for the source of a subset."
            )
    train_set.construct()
    if held_out.label is None:  # a file, read as by `lightgbm.train`
        held_out.set_reference(train_set).construct()
    for name, rows, labels in sets:
        if np.isnan(np.asarray(rows.get_label() if labels is None else labels, dtype=float)).any():
            raise ValueError(f"`{name}` must have a label for each row, but some are missing.")
    if train_set.get_group() is not None:
        raise ValueError(
            "`train_set` must have no groups: subsets of its rows would cut them. Rank with an "
            "objective of your own and `training_sizes`."
        )
