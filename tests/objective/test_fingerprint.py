"""A study has scores of one table, one division, one scorer and one grid of sizes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB

from optuna_daub import DAUBPruner
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.fingerprint import of_table
from optuna_daub.sklearn import DataAllocationSearchCV
from optuna_daub.study.setup_errors import SetupError
from tests.objective.studies import SIZES
from tests.objective.studies import X
from tests.objective.studies import Y
from tests.objective.studies import build
from tests.objective.studies import created
from tests.objective.studies import objective_of
from tests.objective.studies import sampler_of
from tests.objective.studies import study_of
from tests.study.table_study import scored


def _search(storage: Any) -> DataAllocationSearchCV:
    space = {"var_smoothing": [1e-9, 1e-3, 0.1, 1.0]}
    where: dict[str, Any] = {"storage": storage, "study_name": "s"}
    return DataAllocationSearchCV(GaussianNB(), space, cv=2, random_state=0, **where)


def _scores(study: optuna.Study) -> list[dict[int, float]]:
    return [each.intermediate_values for each in study.trials if each.intermediate_values]


def _reversed_targets() -> TrainingSizeObjective:
    return objective_of(Y=Y[::-1])


FIXED = {"X_valid": X[100:], "y_valid": Y[100:]}
OTHERS: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "targets": (objective_of, _reversed_targets, "data"),
    "features": (objective_of, lambda: objective_of(X + 1), "data"),
    "fewer rows": (objective_of, lambda: objective_of(X[:180], Y[:180]), "data"),
    "names of columns": (lambda: objective_of(pd.DataFrame(X).add_prefix("x")),
                         lambda: objective_of(pd.DataFrame(X).add_prefix("y")), "data"),
    "weights": (objective_of, lambda: objective_of(sample_weight=np.arange(200.0)), "data"),
    "fixed validation set": (lambda: objective_of(**FIXED),
                             lambda: objective_of(**{**FIXED, "X_valid": X[100:] + 1}), "data"),
    "seed": (objective_of, lambda: objective_of(seed=1), "division into training and validation"),
    "folds": (lambda: objective_of(cv=4), lambda: objective_of(cv=5), "division into training"),
    "held-out rows": (objective_of, lambda: objective_of(test_size=0.25), "division into"),
    "scorer": (objective_of, lambda: objective_of(scoring="f1_macro"), "scoring"),
    "lambdas": (
        lambda: objective_of(scoring=lambda model, X, y: model.score(X, y)),
        lambda: objective_of(scoring=lambda model, X, y: f1_score(y, model.predict(X))),
        "scoring",
    ),
    "weights of fits": (
        lambda: objective_of(fit_params={"sample_weight": np.ones(200)}),
        lambda: objective_of(fit_params={"sample_weight": pd.Series(np.arange(200.0) + 1.0)}),
        "fit_params",
    ),
    "an argument of fits": (
        objective_of,
        lambda: objective_of(fit_params={"sample_weight": np.ones(200)}),
        "fit_params",
    ),
    "training further": (objective_of, lambda: objective_of(incremental=True), "way of training"),
    "training anew": (
        lambda: objective_of(incremental=True),
        lambda: TrainingSizeObjective(lambda trial, n, previous: build(trial), X, Y),
        "way of training",
    ),
    "weighted scores": (
        lambda: objective_of(sample_weight=np.ones(200)),
        lambda: objective_of(sample_weight=np.ones(200), weighted_score=True),
        "scoring",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_a_study_of_something_else_is_refused(case: str) -> None:
    first, other, name = OTHERS[case]
    study = study_of(first(), n_learners=2)
    before = _scores(study)
    study.sampler = sampler_of(5)
    with pytest.raises(SetupError, match=f"must go on with the {name}"):
        study.optimize(other(), catch=(Exception,))
    assert _scores(study) == before


def test_with_another_sampler_other_sizes_are_refused() -> None:
    study = created(sampler=optuna.samplers.RandomSampler(seed=0))
    objective = objective_of()
    study.optimize(objective, n_trials=1)
    study.pruner = DAUBPruner(sizes=(30, 60, 120))
    with pytest.raises(SetupError, match="must go on with the training sizes"):
        study.optimize(objective, n_trials=1)


@pytest.mark.parametrize("what", ["features", "targets", "a frame", "validation rows"])
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_table_that_was_changed_in_place_is_refused(what: str, is_begun: bool) -> None:
    features, targets = X.copy(), Y.copy()
    table = pd.DataFrame(features.copy(), columns=[*map(str, range(features.shape[1]))])
    fixed = {**FIXED, "X_valid": features} if what == "validation rows" else {}
    fixed |= {"y_valid": Y} if fixed else {}
    objective = objective_of(
        {"a frame": table, "features": features}.get(what, X), targets, **fixed
    )
    study = study_of(objective if is_begun else objective_of(), n_learners=2)
    if not is_begun:
        study = created()
    before = _scores(study)
    if what == "targets":
        targets[:] = 1 - targets
    table["0"] = 0.0
    features[:] = 0.0
    study.sampler = sampler_of(5)
    with pytest.raises(SetupError, match="changed in place"):
        study.optimize(objective, catch=(Exception,))
    assert _scores(study) == before
    if is_begun and what != "validation rows":
        with pytest.warns(UserWarning, match="was scored on other rows than those"):
            objective.refit(study)


def test_arguments_of_fits_that_change_nothing_may_change() -> None:
    study = study_of(objective_of(fit_params=None), n_learners=2)
    study.sampler = sampler_of(4)
    before = len(study.trials)
    study.optimize(objective_of(fit_params={}))
    assert len(study.trials) > before


def test_a_search_with_other_arguments_of_fits_is_refused() -> None:
    storage = optuna.storages.InMemoryStorage()

    def search(n_candidates: int, **arguments: Any) -> None:
        found = _search(storage)
        found.set_params(n_candidates=n_candidates).fit(X, Y, **arguments)

    search(2, sample_weight=np.ones(200))
    search(3, sample_weight=np.ones(200))
    for other in ({}, {"sample_weight": np.arange(200.0) + 1.0}):
        with pytest.raises(ValueError, match="must go on with the arguments of `fit` it was"):
            search(4, **other)


@pytest.mark.parametrize("how", ["again", "pickled", "another process's"])
def test_the_same_goes_on(how: str) -> None:
    storage = optuna.storages.InMemoryStorage()
    study = created(storage=storage, study_name="s", n_learners=2)
    objective = objective_of(scoring="f1_macro")
    study.optimize(objective)
    again = {
        "again": objective,
        "pickled": pickle.loads(pickle.dumps(objective)),
        "another process's": objective_of(X.copy(), Y.copy(), scoring="f1_macro"),
    }[how]
    loaded = optuna.load_study(
        storage=storage, study_name="s", sampler=sampler_of(4, seed=1), pruner=study.pruner
    )
    before = len(loaded.trials)
    loaded.optimize(again)
    assert len(loaded.trials) > before


def test_a_study_begun_before_goes_on() -> None:
    objective = objective_of()
    study = study_of(objective, n_learners=2)
    del study._storage._studies[study._study_id].system_attrs["daub:search"]  # type: ignore[attr-defined]
    study.sampler = sampler_of(4, seed=3)
    study.optimize(objective_of())
    assert "daub:search" in study._storage.get_study_system_attrs(study._study_id)


def _plain(trial: optuna.Trial) -> float:
    return trial.suggest_float("smoothing", 1e-9, 1.0)


def _epochs(trial: optuna.Trial) -> float:
    trial.report(0.9, 1)
    return 0.9


@pytest.mark.parametrize("objective", [_plain, _epochs])
def test_results_of_another_objective_are_refused(objective: Any) -> None:
    """As in a notebook in which a plain study gets another objective."""
    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=2)
    study.sampler = sampler_of(2)
    study.pruner = DAUBPruner(sizes=SIZES)
    with pytest.raises(SetupError, match="results of another one, such as that of trial 0"):
        study.optimize(objective_of())
    assert not any({*trial.intermediate_values} & {*SIZES} for trial in study.trials)


def test_scores_of_unknown_rows_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(lambda trial: scored(trial, lambda n: 0.9), n_learners=2)
    study.sampler = sampler_of(3)
    for _ in range(2):
        study.optimize(objective_of(), n_trials=1)
    said = [each.getMessage() for each in caplog.records]
    assert len([text for text in said if "no record of their rows and scorer" in text]) == 1


def test_a_study_of_an_older_version_may_have_been_trained_in_any_way() -> None:
    study = study_of(objective_of(), n_learners=2)
    attrs = study._storage._studies[study._study_id].system_attrs  # type: ignore[attr-defined]
    del attrs["daub:search"]["way of training"]
    for n_learners, is_incremental in ((4, True), (6, False)):
        before = len(study.trials)
        study.sampler = sampler_of(n_learners, seed=n_learners)
        study.optimize(objective_of(incremental=is_incremental))
        assert len(study.trials) > before


def test_before_anything_is_observed_it_may_be_mended() -> None:
    study = created(n_learners=2)

    def fails(trial: optuna.Trial) -> Any:
        raise MemoryError

    with pytest.raises(MemoryError):
        study.optimize(TrainingSizeObjective(fails, X, Y[::-1]))
    study.optimize(objective_of())
    assert study.best_trial.last_step == SIZES[-1]


def test_a_worker_whose_table_another_one_has_replaced_before_its_first_score_is_told() -> None:
    study = created(n_learners=4)
    one, other = objective_of(), _reversed_targets()
    asked = study.ask()
    one._checks._check_same_rows(asked, SIZES)
    with pytest.raises(SetupError, match="must go on with the data"):
        other._checks._check_same_rows(study.ask(), SIZES)


def test_a_search_and_an_objective_are_not_mixed() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = created(storage=storage, study_name="s", n_learners=2)
    study.optimize(objective_of())
    search = _search(storage)
    with pytest.raises(ValueError, match="must go on with the cv and random_state"):
        search.fit(X, Y)
    search.set_params(study_name="another").fit(X, Y)
    with pytest.raises(ValueError, match="must go on with the data"):
        search.fit(X + 1, Y)


def test_the_winner_is_not_fitted_on_other_rows_in_silence() -> None:
    study = study_of(objective_of())
    objective_of().refit(study)
    with pytest.warns(UserWarning, match="was scored on other rows.*the data of the study"):
        _reversed_targets().refit(study)
    with pytest.warns(UserWarning, match="was scored on other rows.*the division"):
        objective_of(seed=5).refit(study)


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        pd.DataFrame,
        lambda a: pd.DataFrame(a).astype(str),
        lambda a: pd.DataFrame(a).astype("category"),
        lambda a: pl.DataFrame(a),
        scipy.sparse.csr_matrix,
        scipy.sparse.coo_array,
        lambda a: a.tolist(),
        lambda a: [str(row) for row in a],
        lambda a: a.astype(object),
    ],
)
def test_tables_of_any_kind_have_a_fingerprint(kind: Any) -> None:
    a, y = np.arange(40.0).reshape(20, 2), np.arange(20)
    changed = a.copy()
    changed[13, 1] = -1
    assert of_table(kind(a), y) == of_table(kind(a.copy()), y.copy())
    assert of_table(kind(a), y) != of_table(kind(changed), y)
    assert of_table(kind(a), y) != of_table(kind(a), y[::-1])
    assert of_table(kind(a), y) != of_table(kind(a), y, np.ones(20))


def test_a_large_table_is_looked_at_in_parts() -> None:
    a = np.zeros((100_000, 3))
    a[::2] = 1
    assert of_table(a, None) != of_table(a[::-1], None)
