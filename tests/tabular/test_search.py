"""The last training, the best constant guess, and what a search does to the process."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace
from threading import Event
from threading import Thread
from threading import current_thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import FixedTrial
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import ThreadpoolController
from threadpoolctl import threadpool_limits

from optuna_daub.core import Observation
from optuna_daub.spaces import first_points
from optuna_daub.study import BestLearner
from optuna_daub.study import LearnerCurve
from optuna_daub.study import learning_curves
from optuna_daub.tabular import TabularModel
from optuna_daub.tabular import fit
from optuna_daub.tabular.metrics import Metric
from optuna_daub.tabular.metrics import checked_metric
from optuna_daub.tabular.process import limited
from optuna_daub.tabular.search import Leading
from optuna_daub.tabular.search import Search
from optuna_daub.tabular.search import Searched
from optuna_daub.tabular.search import _Kept
from optuna_daub.tabular.target import checked_target
from tests.tabular.tables import N
from tests.tabular.tables import table
from tests.tabular.tables import told


pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def answered() -> tuple[TabularModel, str]:
    return told(table(60))


def search_of(
    target: Any, metric: str | None = None, models: list[str] | None = None, X: Any = None
) -> Search:
    """Return a search for a model of these values, by one column of zeros if none are given."""
    frame = pandas.DataFrame({"target": target})
    goal = checked_target(frame, "target")
    measure = checked_metric(metric, goal.task, len(goal.classes))
    X = np.zeros((len(frame), 1), np.float32) if X is None else X
    return Search(X, goal, measure, models, jobs=1, seed=0, categories=())


class TestTheWinner:
    """Whom the last training is for: the best on all rows, or who is ahead of it on fewer."""

    def curve(self, learner: int, score: float, size: int, seconds: float = 0.1) -> LearnerCurve:
        seen = (Observation(size, score, seconds=seconds),)
        state = "best" if size == 240 else "suspended"
        return LearnerCurve(learner, {"model": "linear"}, seen, state, None, None, "")  # type: ignore[arg-type]

    def winner(self, *others: LearnerCurve) -> int:
        best = BestLearner(0, {}, 0.9, 240, None, None, True, "", "", None, 1, 1.0)
        curves = [self.curve(0, 0.9, 240), *others]
        return search_of(table().target).winner(curves, best, None).learner

    def test_it_is_the_best_on_all_rows(self) -> None:
        assert self.winner() == 0
        assert self.winner(self.curve(1, 0.9, 60)) == 0

    def test_it_is_one_that_is_ahead_on_fewer_rows(self) -> None:
        assert self.winner(self.curve(1, 0.91, 60), self.curve(2, 0.93, 60)) == 2

    def test_it_need_not_be_fitted_on_all_rows(self) -> None:
        assert self.winner(self.curve(1, 0.95, 60, seconds=1e6)) == 1

    # Five folds of 60 rows took 20 s, so 300 rows in one go take as long.
    @pytest.mark.parametrize(("left", "n_fitted"), [(21.0, N), (15.0, 225), (1.0, 60), (-1.0, 60)])
    @pytest.mark.parametrize("is_kept", [False, True])
    def test_it_is_fitted_on_the_rows_that_there_is_time_for(
        self, left: float, n_fitted: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If these are no more than it was scored on, its model is not trained again."""
        monkeypatch.setattr("optuna_daub.tabular.search.best_learner", lambda study: None)
        (params,) = first_points("tabular", N, among=["linear"])[:1]
        curve = replace(self.curve(0, 0.9, 60, seconds=20.0), params=params)
        kept = Leading(params, 60, 0.9, "the model") if is_kept else None
        searched = Searched(None, SimpleNamespace(n_train=240), kept)  # type: ignore[arg-type]
        model, n = search_of(table().target).last(searched, curve, left)
        assert n == n_fitted
        if is_kept and n == 60:
            assert model == "the model"
        else:
            assert {*model.classes_} == {0, 1}

    def test_an_interrupted_last_training_leaves_the_model_that_was_scored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Search, "build", interrupted)
        kept = Leading({"model": "linear"}, 60, 0.9, "the model")
        searched = Searched(None, SimpleNamespace(n_train=240), kept)  # type: ignore[arg-type]
        search = search_of(table().target)
        assert search.last(searched, self.curve(0, 0.9, 60), 9.0) == ("the model", 60)
        monkeypatch.setattr(Searched, "model_of", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            search.last(searched, self.curve(0, 0.9, 60), 9.0)

    def test_the_model_of_the_best_score_is_kept(self) -> None:
        frame = table(3000)
        X = frame[["a", "b"]].to_numpy(np.float32)
        search = search_of(frame.target, "auc", ["extra_trees"], X)
        searched = search.run(0.3, None, lambda said: None)
        curves = learning_curves(searched.study)
        best = max(curve.score or 0.0 for curve in curves)
        kept = searched.leading
        assert kept is not None
        assert kept.score == best
        scored = searched.objective._division.validation[0]
        shares = kept.model.predict_proba(scored.X)[:, 1]
        assert roc_auc_score(scored.y, shares) == pytest.approx(best)
        assert searched.model_of(kept.params, kept.size) is kept.model
        assert searched.model_of(kept.params, 7) is None

    def test_the_kept_model_is_the_last_one_of_the_leader(self) -> None:
        kept = _Kept(lambda trial, size: DecisionTreeClassifier(max_depth=size))
        study: Any = None

        def run(params: dict[str, Any], *scores: float) -> tuple[Any, Any]:
            """Train at sizes 1, 2, ... and return parameters and size of the kept model."""
            trial = optuna.trial.create_trial(value=0.0, params={}, distributions={})
            trial._params = params
            for size, score in enumerate(scores, 1):
                clone(kept.build(FixedTrial(params), size))
                trial.intermediate_values |= {size: score}
            kept(study, trial)
            assert kept.model is not None
            assert kept.model.model.max_depth == kept.model.size
            return kept.model.params, kept.model.size

        assert run({"a": 1}, 0.5, 0.8) == ({"a": 1}, 2)
        assert run({"a": 2}, 0.9, 0.7) == ({"a": 1}, 2)
        assert run({"a": 3}, np.nan) == ({"a": 1}, 2)
        assert run({"a": 4}, 0.9) == ({"a": 4}, 1)
        assert run({"a": 4}, 0.9, 0.6) == ({"a": 4}, 2), "it still stands for its learner"
        assert run({"a": 5}, 0.7) == ({"a": 5}, 1)


class TestAGuess:
    """The best constant guess, on the rows on which models are scored."""

    def guess(self, target: Any, metric: str) -> float:
        search = search_of(target, metric)
        return search.metric.shown(search.guess())

    def test_of_amounts_fits_the_metric(self) -> None:
        amounts = np.exp(np.random.default_rng(0).normal(0, 2, N))
        errors = np.abs(amounts - np.median(amounts))
        assert self.guess(amounts, "mae") == pytest.approx(errors.mean(), rel=0.02)
        low = np.quantile(amounts, 0.1)
        assert self.guess(amounts, "mape") <= np.mean(np.abs(amounts - low) / amounts) * 1.05
        mean = np.expm1(np.log1p(amounts).mean())
        logs = np.log1p(amounts) - np.log1p(mean)
        assert self.guess(amounts, "rmsle") == pytest.approx(np.sqrt((logs**2).mean()), rel=0.05)

    def test_of_two_classes_may_be_the_rarer_one(self) -> None:
        words = np.where(np.arange(N) % 5, "no", "yes")
        assert self.guess(words, "accuracy") == pytest.approx(0.8)
        assert self.guess(words, "f1") == pytest.approx(2 * 0.2 / 1.2), "all yes"
        assert self.guess(words, "auc") == pytest.approx(0.5)

    def test_is_scored_on_the_held_out_rows(self) -> None:
        search = search_of([0.25, *[0.5] * 2999], "rmse")
        scored = search.objective(lambda trial: None, search.X)._division.folds[0].validation
        assert 0 not in scored
        assert search.guess() == 0.0


def test_two_searches_at_a_time_restore_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before = optuna.logging.get_verbosity(), warnings.showwarning, [*warnings.filters]
    fitted, first_is_in, first_is_out = ExtraTreesClassifier.fit, Event(), Event()
    second_is_in = Event()

    def waiting(model: Any, *rows: Any) -> Any:
        is_first = current_thread() is first
        (first_is_in if is_first else second_is_in).set()
        assert (second_is_in if is_first else first_is_out).wait(60)
        return fitted(model, *rows)

    def search() -> None:
        fit(table(60), "target", seconds=0.001, models=["extra_trees"], jobs=1, say=None)

    monkeypatch.setattr(ExtraTreesClassifier, "fit", waiting)
    first, second = Thread(target=search), Thread(target=search)
    first.start()
    assert first_is_in.wait(60)
    second.start()
    first.join()
    assert optuna.logging.get_verbosity() == optuna.logging.CRITICAL, "the second one goes on"
    first_is_out.set()
    second.join()
    now = optuna.logging.get_verbosity(), warnings.showwarning, [*warnings.filters]
    assert now == before


def test_jobs_limit_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, seen = LogisticRegression.fit, []

    def n_threads() -> int:
        libraries = ThreadpoolController().select(user_api="blas").info()
        return max((library["num_threads"] for library in libraries), default=1)

    def noted(model: Any, *rows: Any, **options: Any) -> Any:
        seen.append(n_threads())
        return fitted(model, *rows, **options)

    monkeypatch.setattr(LogisticRegression, "fit", noted)
    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        told(table(60), seconds=0.001, models=["linear"])
        assert {*seen} == {1}
        assert n_threads() == before
        with limited(1), limited(2):
            assert n_threads() == 1, "the least of searches at the same time"


def test_a_long_preparation_is_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optuna_daub.tabular.fitting.SAMPLE", 30)
    rng = np.random.default_rng(0)
    words = [" ".join(map(str, row)) for row in rng.integers(0, 99, (N, 5))]
    _, said = told(table().assign(words=words), seconds=0.001)
    way = r"and no time is left: `ignore` columns of text \(.*`words`\), or give more time"
    assert re.search(way, said)
    assert "Reading and preparing the table took all" in said


def test_a_metric_that_cannot_tell_says_so(answered: tuple[TabularModel, str]) -> None:
    model = replace(answered[0], found=replace(answered[0].found, guess=1.0))
    assert 'a rare class. Try metric="auc"' in str(model)
    model = replace(model, metric=checked_metric("auc", "classification", 2))
    assert "guess: nothing in the columns tells the target." in str(model)
    metric = checked_metric("mape", "regression", 0)
    model = replace(model, metric=metric, task="regression", found=replace(model.found, guess=0.0))
    assert 'squared errors, which mape does not compare. Try metric="r2"' in str(model)


def test_linear_models_predict_no_amounts_below_0_for_logarithms() -> None:
    frame = table()[["a", "b"]].assign(target=lambda t: np.exp(2 * t.a))
    model, _ = told(frame, metric="rmsle", models=["linear"])
    assert model.found.failures == ()
    assert model.predict(frame).min() == 0.0


@pytest.mark.parametrize(("scale", "shift"), [(1e-12, 0.0), (1e12, 0.0), (1.0, 1.7e9)])
@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "random_forest", "extra_trees"])
def test_amounts_of_any_size_and_place_are_learnt(kind: str, scale: float, shift: float) -> None:
    """Lengths in picometres, and seconds since 1970."""
    X = np.arange(200.0, dtype=np.float32)[:, None]
    amounts = scale * X[:, 0].astype(float) + shift
    search = search_of(amounts, X=X, models=[kind])
    point = first_points(kind, 200, task="regression")[-1] | {"model": kind}
    fitted = search.build(FixedTrial(point), 200).fit(X, search.y)
    assert np.corrcoef(fitted.predict(X) - shift, amounts - shift)[0, 1] > 0.95


@pytest.mark.parametrize("metric", ["neg_mean_gamma_deviance", "neg_mean_poisson_deviance"])
def test_no_prediction_is_below_what_the_metric_can_compare(metric: str) -> None:
    frame = table()[["a", "b"]].assign(target=lambda t: np.exp(2 * t.a))
    model, _ = told(frame, metric=metric, models=["linear"], seconds=0.5)
    assert model.found.failures == ()
    assert model.predict(frame).min() == pytest.approx(frame.target.mean() / 100)
    assert pickle.loads(pickle.dumps(model.pipeline)).predict(frame[["a", "b"]]).min() > 0.0


def test_models_that_all_fail_end_in_a_sentence_on_the_metric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Metric, "lowest", lambda *_: None)
    frame = table()[["a", "b"]].assign(target=lambda t: np.exp(2 * t.a))
    options = {"metric": "neg_mean_gamma_deviance", "models": ["linear"], "seconds": 600.0}
    with pytest.raises(RuntimeError, match=r"could be trained: ValueError: .* positive") as error:
        told(frame, **options)  # which ends by the failures, long before its time
    assert "a `metric` other than 'mean_gamma_deviance'" in str(error.value)
    assert "study" not in str(error.value)


def test_learners_that_fail_are_named_in_the_error_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(model: Any, *rows: Any) -> Any:
        raise ValueError("no memory")

    monkeypatch.setattr(ExtraTreesClassifier, "fit", failing)
    with pytest.raises(RuntimeError, match=r"No model could be trained: .*no memory"):
        told(table(60), seconds=0.001, models=["extra_trees"])
    assert caplog.records == []


def test_a_rare_class_that_leaves_few_folds_is_named() -> None:
    model, said = told(table(60).assign(target=lambda t: ["x"] * 2 + [*t.target[2:]]))
    assert model.found.folds == 2
    assert "means over 2 folds instead of 5" in said
    assert "some have 2 rows (x)" in said
    assert any("2 folds" in note for note in model.notes)
