"""Training further: the same model as in one go, on new rows only, and forgotten without harm."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import FixedTrial
from sklearn.base import BaseEstimator
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.linear_model import SGDRegressor
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from optuna_daub import DAUBPruner
from optuna_daub import TrainingSizeObjective
from optuna_daub import learning_curves
from optuna_daub.objective.fingerprint import identity
from optuna_daub.objective.models import KeptModels
from optuna_daub.objective.models import Trained
from optuna_daub.study.setup_errors import SetupError
from tests.objective.studies import created
from tests.objective.studies import study_of
from tests.study.table_study import answer


X, Y = make_classification(1500, 6, random_state=0)


class Counting(ClassifierMixin, BaseEstimator):
    """A naive Bayes that notes how many rows each call brought."""

    calls: list[int] = []  # noqa: RUF012

    def __init__(self, var_smoothing: float = 1e-9) -> None:
        self.var_smoothing = var_smoothing

    def partial_fit(self, X: Any, y: Any, classes: Any = None, rows: Any = ()) -> Counting:
        assert not len(rows) or len(rows) == len(X)
        Counting.calls.append(len(X))
        if not hasattr(self, "model_"):
            self.model_ = GaussianNB(var_smoothing=self.var_smoothing)
            self.classes_ = classes
        self.model_.partial_fit(X, y, classes=classes)
        return self

    def fit(self, X: Any, y: Any) -> Counting:
        raise AssertionError("it learns by partial_fit")

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)


def naive(trial: optuna.Trial) -> Counting:
    return Counting(trial.suggest_float("var_smoothing", 1e-9, 1, log=True))


def accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Score by a function that does not say that it is one of classes."""
    return float(np.mean(estimator.predict(X) == y))


def linear(trial: optuna.Trial) -> SGDClassifier:
    alpha = trial.suggest_float("alpha", 1e-5, 1, log=True)
    return SGDClassifier(alpha=alpha, random_state=0)


def further(**options: Any) -> TrainingSizeObjective:
    """Return an objective that trains naive Bayes further."""
    return TrainingSizeObjective(naive, X, Y, incremental=True, **options)


def searched(
    objective: TrainingSizeObjective,
    n_trials: int = 12,
    n_learners: int | None = None,
    **kwargs: Any,
) -> optuna.Study:
    pruner = DAUBPruner(min_resource=60, max_resource=objective.n_train, cost="examples")
    study = created(n_learners=n_learners, pruner=pruner)
    study.optimize(objective, n_trials=n_trials, **kwargs)
    return study


def test_a_whole_number_for_a_float_is_the_same_learner() -> None:
    """Enqueued as 1 it is 1 in the first run, and 1.0 in the next."""

    def build(trial: optuna.Trial) -> Counting:
        return Counting(trial.suggest_float("var_smoothing", 0.0, 4.0))

    spent = []
    for kind in (int, float):
        objective = TrainingSizeObjective(build, X, Y, incremental=True)
        pruner = DAUBPruner.paper(min_resource=60, max_resource=objective.n_train)
        study = created(n_learners=4, pruner=pruner)
        for value in range(4):
            study.enqueue_trial({"var_smoothing": kind(value)})
        study.optimize(objective)
        spent.append(answer(study).examples)
    assert spent[0] == spent[1]


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    Counting.calls.clear()


@pytest.mark.parametrize(
    "options",
    [{}, {"cv": 2}, {"shuffle": False}, {"stratify": False, "scoring": accuracy}],
    ids=["held out", "folds", "time", "scorer of one's own"],
)
def test_partial_fit_sees_each_row_once_and_scores_as_in_one_go(options: dict[str, Any]) -> None:
    """A naive Bayes is the same whether it learns at once or in parts."""
    objective = further(**options)
    study = searched(objective)
    curves = [curve for curve in learning_curves(study) if curve.observations]
    n_folds = options.get("cv", 1)
    assert any(len(curve.observations) > 1 for curve in curves), "some were trained further"
    assert sum(Counting.calls) == n_folds * sum(curve.size for curve in curves)
    best = answer(study)
    assert best.examples == sum(curve.size for curve in curves), "each row is paid once"

    def at_once(trial: optuna.Trial) -> GaussianNB:
        return GaussianNB(var_smoothing=naive(trial).var_smoothing)

    plain = TrainingSizeObjective(at_once, X, Y, **options)
    full = [curve for curve in curves if curve.size == objective.n_train]
    assert full
    for curve in full:
        assert curve.score == pytest.approx(plain(FixedTrial(dict(curve.params))))


def test_a_fold_without_new_rows_keeps_its_model() -> None:
    """The first fold takes 17 of its 17 rows at 88 and at 90 of 92."""
    options: dict[str, Any] = {"incremental": True, "shuffle": False, "cv": 5}
    by_row = {"rows": np.ones(110)}  # cut to the rows of each training
    objective = TrainingSizeObjective(naive, X[:110], Y[:110], fit_params=by_row, **options)
    study = study_of(objective, pruner=DAUBPruner(sizes=[88, 90, 92]), n_learners=3)
    best, calls = answer(study), [*Counting.calls]
    assert len({*calls}) > 5, "it was trained further"
    assert 0 not in calls
    assert best.score == pytest.approx(objective(FixedTrial(dict(best.params))))


def test_a_regressor_is_not_given_classes() -> None:
    """Whole numbers of few values may be classes; the estimator knows better."""

    def build(trial: optuna.Trial) -> SGDRegressor:
        return SGDRegressor(alpha=trial.suggest_float("alpha", 1e-5, 1, log=True), random_state=0)

    y = np.clip(np.rint(X[:, 0]), -1, 1)
    study = searched(TrainingSizeObjective(build, X, y, scoring=None, incremental=True))
    assert study.best_value > 0.5


def test_classes_that_come_late_are_known_from_the_first_rows_on() -> None:
    y = np.where(np.arange(1500) % 300 == 7, "rare", np.where(Y > 0, "yes", "no"))
    objective = TrainingSizeObjective(linear, X, y, incremental=True, stratify=False)
    assert [*objective.refit(searched(objective)).classes_] == ["no", "rare", "yes"]


def test_classes_of_several_outputs_are_those_of_each() -> None:
    late = np.where(np.arange(1500) % 300 == 7, "rare", np.where(Y > 0, "yes", "no"))
    y = np.column_stack([late, np.where(X[:, 1] > 0, "up", "down")])

    def build(trial: optuna.Trial) -> MultiOutputClassifier:
        return MultiOutputClassifier(linear(trial))

    objective = TrainingSizeObjective(build, X, y, scoring=accuracy, incremental=True)
    model = objective.refit(searched(objective))
    found = [[*each.classes_] for each in model.estimators_]  # `fit` alone sets its `classes_`
    assert found == [["no", "rare", "yes"], ["down", "up"]]


def test_a_model_of_several_labels_at_once_is_given_their_numbers() -> None:
    y = np.column_stack([Y > 0, X[:, 1] > 0]).astype(int)

    def build(trial: optuna.Trial) -> MLPClassifier:
        alpha = trial.suggest_float("alpha", 1e-5, 1, log=True)
        return MLPClassifier((5,), alpha=alpha, random_state=0)

    objective = TrainingSizeObjective(build, X, y, scoring=accuracy, incremental=True)
    assert objective.refit(searched(objective)).predict(X).shape == y.shape


def test_the_winner_is_at_hand_as_it_was_scored() -> None:
    objective = further()
    study = searched(objective)
    n_calls = len(Counting.calls)
    model = objective.model(study)
    best = answer(study)
    assert model.var_smoothing == best.params["var_smoothing"]
    assert len(Counting.calls) == n_calls, "nothing was trained"
    rows = np.setdiff1d(np.arange(len(X)), objective._division.folds[0].training)
    assert np.mean(model.predict(X[rows]) == Y[rows]) == pytest.approx(study.best_value)
    fresh = further()
    assert fresh.model(study) is None
    assert pickle.loads(pickle.dumps(objective)).model(study) is None


def _created(storage: Any = None, **kwargs: Any) -> optuna.Study:
    """Return a study of one learner."""
    return created((60, 300, 1050), storage=storage, study_name="s", **kwargs)


def _run_with(study: optuna.Study, objective: TrainingSizeObjective, smoothing: float) -> None:
    study.enqueue_trial({"var_smoothing": smoothing})
    study.optimize(objective)


GOOD, BAD = 1e-9, 0.9


@pytest.mark.parametrize("kind", ["in memory", "in files", "after a deletion"])
def test_studies_of_one_name_have_their_own_winners(kind: str, tmp_path: Path) -> None:
    """A database gives the id of a study that was deleted to the next one."""
    objective = further()
    storages: list[Any] = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "other")]
    if kind == "in memory":
        storages = [optuna.storages.InMemoryStorage() for _ in storages]
    one = _created(storages[0])
    _run_with(one, objective, GOOD)
    assert objective.model(one).var_smoothing == GOOD
    best = one.best_value
    if kind == "after a deletion":
        optuna.delete_study(study_name="s", storage=storages[0])
        storages[1] = storages[0]
    other = _created(storages[1])
    _run_with(other, objective, BAD)
    assert other.best_value < best
    assert objective.model(other).var_smoothing == BAD
    if kind == "in files":
        one = optuna.load_study(study_name="s", storage=storages[0])
    if kind != "after a deletion":
        assert objective.model(one).var_smoothing == GOOD


def test_studies_of_both_directions_have_their_own_winners() -> None:
    objective = further(scoring=lambda *scored: 1.0 - accuracy(*scored))
    storage = optuna.storages.InMemoryStorage()
    for direction, smoothing in (("maximize", BAD), ("minimize", GOOD)):
        study = _created(storage, direction=direction)
        _run_with(study, objective, smoothing)
        assert objective.model(study).var_smoothing == smoothing
        optuna.delete_study(study_name="s", storage=storage)


def test_a_study_has_one_identity_and_its_copy_another() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = _created(storage)
    study.ask()
    made = identity(study)
    optuna.copy_study(
        from_study_name="s", from_storage=storage, to_storage=storage, to_study_name="copy"
    )
    assert identity(optuna.load_study(study_name="copy", storage=storage)) != made
    assert identity(optuna.load_study(study_name="s", storage=storage)) == made


@pytest.mark.parametrize("is_in_folder", [True, False])
def test_another_study_starts_its_learners_anew(is_in_folder: bool, tmp_path: Path) -> None:
    """A model of the first study's 40 rows would see only 20 new ones of the second's 60."""
    where = tmp_path if is_in_folder else None
    objective = further(keep_models=where)
    params = {"var_smoothing": 0.1}
    models = objective._training.models(FixedTrial(params), Counting(0.1), 40, None)
    objective._kept.put(identity(_created()), params, Trained(40, tuple(models)))  # type: ignore[union-attr]
    _run_with(_created(), objective, 0.1)
    assert Counting.calls[:2] == [40, 60]


@pytest.mark.parametrize("is_same", [True, False])
def test_a_model_of_another_kind_is_not_gone_on_with(is_same: bool) -> None:
    """A folder outlives the program, in which `build` may have been changed."""

    class Other(Counting):
        pass

    objective = further()
    trial, kind = FixedTrial({"var_smoothing": 0.1}), Counting if is_same else Other
    training = objective._training
    before = Trained(60, tuple(training.models(trial, Counting(0.1), 60, None)))
    (model,) = training.models(trial, kind(0.1), 300, training.usable(before, kind(0.1), 300))
    assert type(model) is kind
    assert Counting.calls == [60, 240 if is_same else 300]


def test_a_learner_that_was_forgotten_starts_anew() -> None:
    objective = further(keep_models=1)
    study = searched(objective, 30)
    curves = [curve for curve in learning_curves(study) if curve.observations]
    assert sum(Counting.calls) > sum(curve.size for curve in curves), "some started anew"
    best = answer(study)
    assert best.examples == sum(Counting.calls)
    for curve in curves:
        if curve.size == objective.n_train:
            again = further()
            assert curve.score == pytest.approx(again(FixedTrial(dict(curve.params))))


def test_a_folder_serves_an_objective_of_another_process(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    objective = further(keep_models=folder)
    study = searched(objective, 4)
    trained_on = {c.learner: c.size for c in learning_curves(study)}
    assert len([*folder.glob("*.joblib")]) == len([s for s in trained_on.values() if s])
    Counting.calls.clear()
    later = further(keep_models=str(folder))
    study.optimize(later, n_trials=8)
    now = {c.learner: c.size for c in learning_curves(study)}
    assert sum(Counting.calls) == sum(now.values()) - sum(trained_on.values())


def test_models_of_other_rows_are_not_gone_on_with(tmp_path: Path) -> None:
    first = further(keep_models=tmp_path)
    first._kept.put("study", {"a": 1}, Trained(60, ("model",)))  # type: ignore[union-attr]
    other = TrainingSizeObjective(naive, X[::-1], Y, incremental=True, keep_models=tmp_path)
    assert other._kept.take("study", {"a": 1}) is None  # type: ignore[union-attr]
    assert first._kept.take("study", {"a": 1}) is not None  # type: ignore[union-attr]


def test_a_file_that_was_cut_off_is_forgotten(tmp_path: Path) -> None:
    kept = KeptModels(tmp_path)
    kept.put("study", {"a": 1}, Trained(60, ("model",)))
    (path,) = tmp_path.glob("*.joblib")
    path.write_bytes(path.read_bytes()[:10])
    assert kept.take("study", {"a": 1}) is None


def test_build_is_given_the_model_before() -> None:
    given: list[tuple[int, int | None]] = []

    class Seen(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any) -> Seen:
            self.n_seen_ = len(X)
            return super().fit(X, y)  # type: ignore[no-any-return]

    def build(trial: Any, n: int, previous: Any) -> Any:
        depth = trial.suggest_int("max_depth", 1, 20)
        given.append((n, getattr(previous, "n_seen_", None)))
        assert previous is None or previous.max_depth == depth, "it is this learner's own"
        return Seen(max_depth=depth) if previous is None else previous

    objective = TrainingSizeObjective(build, X, Y)
    study = searched(objective)
    further = [(n, before) for n, before in given if before is not None]
    steps = set()
    for curve in learning_curves(study):
        sizes = [seen.size for seen in curve.observations]
        steps |= {(later, first) for first, later in pairwise(sizes)}
    assert steps
    assert {*further} == steps
    assert objective.refit(study).n_seen_ == objective.n_train


def test_what_build_has_prepared_is_fitted_itself_also_by_refit() -> None:
    """A copy would lose what is no parameter, such as weights that were loaded."""

    class Loaded(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any) -> Loaded:
            assert self.weights == 1.0
            return super().fit(X, y)  # type: ignore[no-any-return]

    def build(trial: Any, n: int, previous: Any) -> Any:
        model = Loaded(max_depth=trial.suggest_int("max_depth", 1, 20))
        model.weights = 1.0
        return model if previous is None else previous

    objective = TrainingSizeObjective(build, X, Y)
    assert objective.refit(searched(objective)).score(X, Y) > 0.5


def test_a_failed_training_is_not_gone_on_with() -> None:
    fails = iter([False, True, *[False] * 100])

    class Fragile(Counting):
        def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Counting:
            super().partial_fit(X, y, classes)
            if next(fails):
                raise OSError("no space left")
            return self

    def build(trial: optuna.Trial) -> Fragile:
        return Fragile(trial.suggest_float("var_smoothing", 1e-9, 1e-9))

    objective = TrainingSizeObjective(build, X, Y, incremental=True)
    study = searched(objective, 6, n_learners=1, catch=(OSError,))
    sizes = [seen.size for seen in learning_curves(study)[0].observations]
    # The call after the one that failed brings all the rows of its size.
    assert Counting.calls[:3] == [sizes[0], sizes[1] - sizes[0], sizes[1]]


def test_what_cannot_go_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`incremental=True` goes on .* but got both"):
        TrainingSizeObjective(lambda trial, n, previous: None, X, Y, incremental=True)
    with pytest.raises(ValueError, match=r"`keep_models` keeps models that are trained further"):
        TrainingSizeObjective(naive, X, Y, keep_models=3)
    with pytest.raises(ValueError, match=r"`keep_models` must name a folder, but got ''"):
        TrainingSizeObjective(naive, X, Y, incremental=True, keep_models="")
    with pytest.raises(ValueError, match=r"`keep_models` must be"):
        further(keep_models=0)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"`keep_models` must be a folder.* File exists"):
        further(keep_models=tmp_path / "file")
    tree = TrainingSizeObjective(lambda trial: DecisionTreeClassifier(), X, Y, incremental=True)
    with pytest.raises(SetupError, match=r"needs estimators with `partial_fit`, but Decision"):
        tree(FixedTrial({}))


def test_what_takes_any_names_is_given_classes_only_if_it_classifies() -> None:
    class Handing(SGDRegressor):
        def partial_fit(self, X: Any, y: Any, **options: Any) -> Any:
            return super().partial_fit(X, y, **options)

    y = np.arange(len(X)) % 7
    objective = TrainingSizeObjective(lambda _: Handing(), X, y, incremental=True, scoring="r2")
    assert isinstance(objective(FixedTrial({})), float)


@pytest.mark.parametrize("incremental", [True, False])
def test_weights_are_given_once(incremental: bool) -> None:
    def weights(training: Any, validation: Any) -> dict[str, Any]:
        return {"sample_weight": np.zeros(len(training))}

    options: dict[str, Any] = {"sample_weight": np.ones(1500), "fit_params": weights}
    objective = TrainingSizeObjective(linear, X, Y, incremental=incremental, **options)
    with pytest.raises(SetupError, match="Rows must be weighed once, but got `sample_weight` and"):
        searched(objective)
