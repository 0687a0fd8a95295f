"""The ready-made objective, in studies of the real sampler and pruner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from itertools import product
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from optuna.trial import TrialState
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score
from sklearn.metrics import fbeta_score
from sklearn.metrics import get_scorer
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import TimeSeriesSplit
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from optuna_daub import DAUBPruner
from optuna_daub import training_sizes
from optuna_daub.core import DAUB
from optuna_daub.core.policies.policy import Needs
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.study import AllocationPruner
from tests.objective.studies import SIZES
from tests.objective.studies import X_REG
from tests.objective.studies import Y_REG
from tests.objective.studies import Witness
from tests.objective.studies import X
from tests.objective.studies import Y
from tests.objective.studies import build
from tests.objective.studies import build_linear
from tests.objective.studies import created
from tests.objective.studies import halves
from tests.objective.studies import numbered
from tests.objective.studies import observations
from tests.objective.studies import sampler_of
from tests.objective.studies import study_of
from tests.objective.studies import witness
from tests.study.table_study import answer
from tests.study.table_study import optimize_some


# -- subsets and scores ------------------------------------------------------------------------


def test_every_size_is_trained_on_a_subset_that_holds_the_smaller_ones() -> None:
    objective = TrainingSizeObjective(witness, *numbered(200, n_classes=5))
    study_of(objective)
    assert [len(rows) for rows in Witness.fits] == [*SIZES]
    for smaller, larger in zip(Witness.fits, Witness.fits[1:], strict=False):
        assert set(smaller) < set(larger)
    for rows in Witness.fits:
        assert np.bincount(rows % 5).tolist() == [len(rows) // 5] * 5
        assert not set(rows) & set(Witness.predictions[0])


def test_scores_are_those_of_the_estimator_on_the_same_rows() -> None:
    features = np.column_stack([np.arange(200), X])
    study_of(TrainingSizeObjective(witness, features, Y))
    held_out = Witness.predictions[0]
    objective = TrainingSizeObjective(build, X, Y)
    study = study_of(objective)
    for seen, rows in zip(observations(study), Witness.fits, strict=True):
        model = build(study.best_trial).fit(X[rows], Y[rows])
        assert seen.size == len(rows)
        assert seen.score == accuracy_score(Y[held_out], model.predict(X[held_out]))
        assert seen.training_score == accuracy_score(Y[rows], model.predict(X[rows]))
        assert seen.n_validation == len(held_out) == objective.n_validation == 60
        assert seen.seconds is not None
        assert seen.seconds > 0


def test_seeds_decide_the_subsets() -> None:
    for seed in (0, 0, 1):
        study_of(TrainingSizeObjective(witness, *numbered(200), seed=seed))
    first, again, other = (Witness.fits[run * len(SIZES)] for run in range(3))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_plain_permutation_where_strata_are_not_wanted() -> None:
    study_of(TrainingSizeObjective(witness, *numbered(200), stratify=False))
    counts = [np.bincount(rows % 2).tolist() for rows in Witness.fits]
    assert counts != [[size // 2, size // 2] for size in SIZES]


def test_the_learner_of_a_study_with_several_is_the_best_of_them() -> None:
    objective = TrainingSizeObjective(build, X, Y)
    study = study_of(objective, (30, 60, 100, objective.n_train), n_learners=4)
    winner = objective.refit(study)
    assert winner.var_smoothing == study.best_params["var_smoothing"]
    assert study.best_trial.last_step == objective.n_train == 140


# -- kinds of input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, index=np.arange(len(X))[::-1] * 7).rename(columns="x{}".format),
        scipy.sparse.csr_matrix,
        scipy.sparse.csc_matrix,
        scipy.sparse.coo_array,
    ],
)
@pytest.mark.parametrize("cv", [None, 3])
def test_all_kinds_of_features_give_the_same_scores(kind: Any, cv: int | None) -> None:
    def build(trial: optuna.Trial) -> Any:
        depth = trial.suggest_int("depth", 4, 4)
        return DecisionTreeClassifier(max_depth=depth, random_state=0)

    plain = study_of(TrainingSizeObjective(build, X, Y, cv=cv)).best_value
    other = TrainingSizeObjective(build, kind(X), Y.tolist(), cv=cv)
    study = study_of(other)
    assert study.best_value == plain
    fixed = TrainingSizeObjective(build, kind(X), Y, X_valid=kind(X), y_valid=Y)
    model = fixed.refit(study_of(fixed), include_validation=True)
    assert model.tree_.n_node_samples[0] == 400


def test_data_frames_keep_their_columns_types_and_rows_by_position() -> None:
    class Picky(Witness):
        def fit(self, X: Any, y: Any) -> Picky:
            assert X["kind"].dtype == frame["kind"].dtype
            assert np.array_equal(y, Y[X["row"]])
            super().fit(X, y)
            return self

    def build(trial: optuna.Trial) -> Picky:
        return Picky()

    frame = pd.DataFrame({"row": np.arange(200), "kind": pd.Categorical(["a", "b"] * 100)})
    frame.index = pd.Index(np.zeros(200, dtype=int))
    objective = TrainingSizeObjective(build, frame, pd.Series(Y, index=np.arange(200)[::-1]))
    study = study_of(objective)
    objective.refit(study, include_validation=True)
    assert sorted(Witness.fits[-1]) == [*range(200)]


def test_string_labels() -> None:
    names = np.array(["blue", "green", "red"], dtype=object)
    study = study_of(TrainingSizeObjective(build, X, names[Y]))
    assert study.best_value == study_of(TrainingSizeObjective(build, X, Y)).best_value


# -- validation --------------------------------------------------------------------------------


def test_a_fixed_validation_set_leaves_all_rows_for_training() -> None:
    features, y = numbered(150)
    fixed: dict[str, Any] = {"X_valid": features[:40] + 1000, "y_valid": y[:40]}
    objective = TrainingSizeObjective(witness, features, y, **fixed)
    assert (objective.n_train, objective.n_validation) == (150, 40)
    study_of(objective, (30, 60, 150))
    assert sorted(Witness.fits[-1]) == [*range(150)]
    assert Witness.predictions[0].tolist() == [*range(1000, 1040)]


@pytest.mark.parametrize("cv", [4, StratifiedKFold(4)])
def test_cross_validated_scores_at_full_size_are_scikit_learns(cv: Any) -> None:
    objective = TrainingSizeObjective(build, X[:198], Y[:198], cv=cv, seed=3)
    assert (objective.n_train, objective.n_validation) == (149, 198)
    study = study_of(objective, (30, 60, 149))
    splitter = StratifiedKFold(4, shuffle=True, random_state=3) if cv == 4 else cv
    splits = [*splitter.split(X[:198], Y[:198])]
    orders = [fold.training for fold in objective._division.folds]
    assert [{*rows} for rows in orders] == [{*rows} for rows, _ in splits]
    model = build(study.best_trial)
    for size, seen in zip((30, 60, 149), observations(study), strict=True):
        shares = [rows[: -(-size * len(rows) // 149)] for rows in orders]
        folds = [(share, test) for share, (_, test) in zip(shares, splits, strict=True)]
        scores = cross_validate(model, X[:198], Y[:198], cv=folds, return_train_score=True)
        assert seen.score == pytest.approx(scores["test_score"].mean())
        assert seen.training_score == pytest.approx(scores["train_score"].mean())
        assert seen.n_validation == 198


@pytest.mark.parametrize("cv", [None, 4, GroupKFold(4)])
def test_no_group_is_trained_on_and_scored(cv: Any) -> None:
    features, y = numbered(200)
    groups = np.arange(200) // 8
    study_of(TrainingSizeObjective(witness, features, y, cv=cv, groups=groups.astype(str)))
    assert len(Witness.fits) == len(SIZES) * (1 if cv is None else 4)
    for rows, held_out in zip(Witness.fits, Witness.predictions[::2], strict=True):
        assert not set(groups[rows]) & set(groups[held_out])


@pytest.mark.parametrize(
    ("cv", "shuffle"), [(None, False), (3, False), (TimeSeriesSplit(2), True)]
)
def test_no_row_trained_on_is_later_than_one_scored(cv: Any, shuffle: bool) -> None:
    features, y = numbered(400)
    study_of(TrainingSizeObjective(witness, features, y, cv=cv, shuffle=shuffle))
    for rows, held_out in zip(Witness.fits, Witness.predictions[::2], strict=True):
        assert rows.tolist() == [*range(held_out.min() - len(rows), held_out.min())]


@pytest.mark.parametrize(
    ("cv", "shuffle"), [(3, False), (TimeSeriesSplit(2), True), (TimeSeriesSplit(2), False)]
)
def test_the_winner_is_fitted_on_rows_in_time_order(cv: Any, shuffle: bool) -> None:
    features, y = numbered(400)
    objective = TrainingSizeObjective(witness, features, y, cv=cv, shuffle=shuffle)
    study = study_of(objective)
    Witness.fits.clear()
    objective.refit(study)
    assert [rows.tolist() for rows in Witness.fits] == [[*range(400)]]


@dataclass(frozen=True)
class Needy(DAUB):
    """DAUB that says what it is made to say of its needs."""

    wanted: Needs = field(default_factory=Needs)

    @property
    def needs(self) -> Needs:
        return self.wanted


def needy(sizes: tuple[int, ...] = SIZES, **needs: Any) -> AllocationPruner:
    return AllocationPruner(Needy(sizes, wanted=Needs(**needs)))


@pytest.mark.parametrize("fixed", [True, False])
def test_a_policy_may_ask_for_a_growing_sample_of_the_validation_rows(fixed: bool) -> None:
    features, y = numbered(200, n_classes=5)
    given = {"X_valid": features[:60], "y_valid": y[:60]} if fixed else {}
    objective = TrainingSizeObjective(witness, features, y, **given)
    pruner = needy((5, 10, 140), n_validation=60, validation_factor=3)
    study = study_of(objective, pruner=pruner)
    samples = Witness.predictions[::2]
    assert [seen.n_validation for seen in observations(study)] == [15, 30, 60]
    assert [len(rows) for rows in samples] == [15, 30, 60]
    assert set(samples[0]) < set(samples[1]) < set(samples[2])
    assert np.bincount(samples[0] % 5).tolist() == [3] * 5


ONE_SET = r"one validation set .* got `cv` with 3 folds"


@pytest.mark.parametrize(
    ("cv", "needs", "message"),
    [
        (3, {"n_validation": 60, "validation_factor": 3}, ONE_SET),
        (3, {"mean_of_examples": True}, ONE_SET),
        (None, {"n_validation": 59}, "`n_validation` of AllocationPruner .* 60, but got 59"),
    ],
)
def test_a_validation_set_that_a_policy_cannot_use_is_refused(
    cv: int | None, needs: dict[str, Any], message: str
) -> None:
    objective = TrainingSizeObjective(witness, *numbered(200), cv=cv)
    with pytest.raises(ValueError, match=message):
        study_of(objective, pruner=needy(**needs))
    assert not Witness.fits


@pytest.mark.parametrize("cv", [None, 3])
def test_training_scores_that_nobody_uses_are_not_computed(cv: int | None) -> None:
    objective = TrainingSizeObjective(witness, *numbered(200), cv=cv)
    study = study_of(objective, pruner=needy(training_scores="unused"))
    assert [seen.training_score for seen in observations(study)] == [None] * len(SIZES)
    n_folds = 1 if cv is None else cv
    assert len(Witness.predictions) == len(Witness.fits) == n_folds * len(SIZES)


def test_the_own_score_of_a_regressor_is_no_accuracy_whatever_its_targets_are() -> None:
    """R^2 of whole numbers is no mean over examples: intervals promise nothing for it."""
    whole = TrainingSizeObjective(build_linear, X_REG, np.rint(Y_REG), scoring=None)
    with pytest.warns(UserWarning, match="assume a score that is a mean .* `scoring` is None"):
        study_of(whole, pruner=needy(mean_of_examples=True))
    own = TrainingSizeObjective(build, X, Y, scoring=None)
    study_of(own, pruner=needy(mean_of_examples=True))  # a warning would be an error


@pytest.mark.parametrize(("mean_of_examples", "scored"), [(True, 6000), (False, 5000)])
def test_a_policy_with_intervals_has_all_rows_scored(mean_of_examples: bool, scored: int) -> None:
    objective = TrainingSizeObjective(witness, *numbered(10_000))
    study_of(objective, pruner=needy((1500, 3000, 6000), mean_of_examples=mean_of_examples))
    assert len(Witness.predictions[-1]) == scored


# -- scorers -----------------------------------------------------------------------------------


def cost(estimator: Any, X: Any, y: Any) -> float:
    return float(np.mean(estimator.predict(X) != y))


OF_ANY_CLASSES = ["accuracy", "balanced_accuracy", "f1_macro", "roc_auc_ovr", "neg_log_loss",
                  make_scorer(fbeta_score, beta=2, average="macro"), cost]  # fmt: skip
OF_TWO_CLASSES = ["f1", "precision", "recall", "roc_auc"]
OF_AMOUNTS = ["r2", "neg_mean_squared_error"]
BOTH = np.column_stack([Y_REG, -3 * Y_REG])


@pytest.mark.parametrize(
    ("build", "X", "y", "scoring"),
    [
        *product([build], [X], [np.minimum(Y, 1), Y], OF_ANY_CLASSES),
        *product([build], [X], [np.minimum(Y, 1)], OF_TWO_CLASSES),
        *product([build_linear], [X_REG], [BOTH[:, :1], BOTH], OF_AMOUNTS),
    ],
)
def test_scores_are_the_scorers(build: Any, X: Any, y: Any, scoring: Any) -> None:
    objective = TrainingSizeObjective(build, **halves(X, y), scoring=scoring)
    direction = "minimize" if scoring is cost else "maximize"
    study = study_of(objective, (30, 60, 150), direction=direction)
    winner = objective.refit(study)
    alone = build(study.best_trial).fit(X[:150], y[:150])
    scorer = get_scorer(scoring)
    assert study.best_value == scorer(winner, X[150:], y[150:])
    assert study.best_value == pytest.approx(scorer(alone, X[150:], y[150:]))
    training_score = observations(study)[-1].training_score
    assert training_score == pytest.approx(scorer(winner, X[:150], y[:150]), abs=1e-12)


# -- weights -----------------------------------------------------------------------------------


def build_pipeline(trial: optuna.Trial) -> Any:
    return make_pipeline("passthrough", make_pipeline(StandardScaler(), build_linear(trial)))


def spoilt_scores(build: Any, *, spoil: slice, **kwargs: Any) -> list[float | None]:
    """Return scores, weighted and not, when the rows of `spoil` are without weight and wrong."""
    y, weight = Y_REG.copy(), np.ones(200)
    y[spoil] += 1000 * np.arange(200)[spoil]
    weight[spoil] = 0
    if kwargs.pop("weighted", True):
        kwargs["sample_weight"], kwargs["sample_weight_valid"] = weight[:150], weight[150:]
    objective = TrainingSizeObjective(build, **halves(X_REG, y), scoring="r2", **kwargs)
    return [seen.score for seen in observations(study_of(objective, (30, 60, 150)))]


TRAINED, SCORED, NONE = slice(0, 150, 3), slice(150, 200, 3), slice(0, 0)


@pytest.mark.parametrize("build", [build_linear, build_pipeline])
def test_rows_without_weight_have_no_influence_on_the_fit(build: Any) -> None:
    spoilt = spoilt_scores(build, spoil=TRAINED)
    zeroed = spoilt_scores(lambda trial: ZeroesIgnored(), spoil=TRAINED)
    assert spoilt == pytest.approx(zeroed)
    assert spoilt_scores(build, spoil=TRAINED, weighted=False) != pytest.approx(zeroed, abs=0.5)


class ZeroesIgnored(LinearRegression):  # type: ignore[misc]
    """Linear regression that leaves rows without weight out instead of weighing them."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ZeroesIgnored:
        kept = sample_weight > 0
        super().fit(X[kept], y[kept])
        return self


def test_rows_without_weight_are_scored_unless_the_score_is_weighted() -> None:
    clean = spoilt_scores(build_linear, spoil=NONE)
    plain = spoilt_scores(build_linear, spoil=SCORED)
    assert plain != pytest.approx(clean, abs=0.5)
    first, *_ = spoilt_scores(build_linear, spoil=SCORED, weighted_score=True)
    rows = np.delete(np.arange(200), SCORED)
    kept = TrainingSizeObjective(build_linear, **halves(X_REG[rows], Y_REG[rows]), scoring="r2")
    assert first == pytest.approx(observations(study_of(kept, (30, 60, 150)))[0].score)


def test_weights_are_routed_where_the_user_routes_metadata() -> None:
    def build(trial: optuna.Trial) -> Any:
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        return make_pipeline(scaler, Ridge(alpha=1e-9).set_fit_request(sample_weight=True))

    with sklearn.config_context(enable_metadata_routing=True):
        routed = spoilt_scores(build, spoil=TRAINED)
    assert routed == pytest.approx(spoilt_scores(build_linear, spoil=TRAINED))


# -- refit -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "trained", "with_validation"),
    [
        ({}, 140, 200),
        ({"shuffle": False}, 140, 200),
        ({"cv": 3}, 200, 200),
        ({"cv": TimeSeriesSplit(2, test_size=40)}, 200, 200),
        ({"X_valid": numbered(50)[0] + 200, "y_valid": numbered(50)[1]}, 200, 250),
    ],
)
def test_refit_trains_on_the_rows_it_promises(
    kwargs: dict[str, Any], trained: int, with_validation: int
) -> None:
    objective = TrainingSizeObjective(witness, *numbered(200), **kwargs)
    study = study_of(objective)
    held_out = {row for rows in Witness.predictions[::2] for row in rows}
    objective.refit(study)
    assert len(set(Witness.fits[-1])) == len(Witness.fits[-1]) == trained
    assert "cv" in kwargs or not set(Witness.fits[-1]) & held_out
    objective.refit(study, include_validation=True)
    assert sorted(Witness.fits[-1]) == [*range(with_validation)]


def test_refit_weighs_the_rows() -> None:
    weight = np.where(np.arange(200) % 3, 1.0, 0.0)
    options: dict[str, Any] = {"scoring": "r2", "sample_weight": weight}
    objective = TrainingSizeObjective(build_linear, X_REG, Y_REG, **options)
    winner = objective.refit(study_of(objective), include_validation=True)
    expected = LinearRegression().fit(X_REG, Y_REG, weight)
    assert winner.coef_ == pytest.approx(expected.coef_)


def paused_study(objective: Any, n_trials: int | None, sizes: Sequence[int]) -> optuna.Study:
    study = created(sizes, n_learners=4)
    optimize_some(study, objective, n_trials)
    return study


@pytest.mark.parametrize(("include_validation", "n_fitted"), [(False, 140), (True, 200)])
def test_refit_before_the_end_fits_the_leader(include_validation: bool, n_fitted: int) -> None:
    sizes: list[int] = []

    def build_by_size(trial: optuna.Trial, n: int) -> Any:
        sizes.append(n)
        return build(trial)

    objective = TrainingSizeObjective(build_by_size, X, Y)
    study = paused_study(objective, 3, (30, 60, 100, objective.n_train))
    leader = answer(study)
    assert not leader.is_final
    message = (
        f"all 140 examples yet. Learner {leader.learner}, which leads with {leader.score:.4g} at "
        f"{leader.size} examples, is fitted: its score on all of them is not known"
    )
    with pytest.warns(UserWarning, match=re.escape(message)) as caught:
        model = objective.refit(study, include_validation=include_validation)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.var_smoothing == leader.params["var_smoothing"]
    assert model.class_count_.sum() == sizes[-1] == n_fitted


def test_refit_fits_no_point_that_the_objective_turned_away() -> None:
    """It returned early, which leaves a COMPLETE trial that Optuna takes for the best."""
    objective = TrainingSizeObjective(build, X, Y)

    def guarded(trial: optuna.Trial) -> float:
        trial.suggest_float("var_smoothing", 1e-9, 1e-1, log=True)
        if trial.number:
            return objective(trial)
        next(training_sizes(trial))  # one that never asks was trained on everything
        return 1.0

    study = paused_study(guarded, 4, (30, 60, 100, 140))
    (turned_away,) = study.get_trials(states=(TrialState.COMPLETE,))
    assert turned_away.number == 0
    leader = answer(study)
    assert leader.params != turned_away.params
    with pytest.warns(UserWarning, match="No learner has been trained on all 140 examples yet"):
        assert objective.refit(study).var_smoothing == leader.params["var_smoothing"]


@pytest.mark.skipif(not hasattr(optuna.Trial, "set_constraint"), reason="it came with Optuna 5")
def test_refit_fits_the_leader_where_the_only_full_score_is_infeasible() -> None:
    def bounded(trial: optuna.Trial) -> Any:
        model = build(trial)
        trial.set_constraint("small", model.var_smoothing - 1e-2)
        return model

    objective = TrainingSizeObjective(bounded, X, Y)
    pruner = DAUBPruner(sizes=(30, 60, 100, 140), cost="examples")
    study = created(n_learners=None, pruner=pruner)
    study.enqueue_trial({"var_smoothing": 5e-2})
    told = study.ask()
    bounded(told)
    study.tell(told, 0.9)  # without a size asked for it counts as trained on all the data
    # Under the rule of the paper the next learner starts small, and others come after it.
    study.sampler = sampler_of(4)
    study.pruner = DAUBPruner.paper(sizes=(30, 60, 100, 140))
    study.enqueue_trial({"var_smoothing": 1e-3})
    study.optimize(objective, n_trials=1)
    leader = answer(study)
    assert leader.params["var_smoothing"] < 1e-2
    infeasible = {trial.number for trial in study.get_trials(states=(TrialState.COMPLETE,))}
    assert infeasible == {0}
    with pytest.warns(UserWarning, match=r"The leader has not been trained on all 140 .* is fitt"):
        assert objective.refit(study).var_smoothing == leader.params["var_smoothing"]


def test_refit_builds_the_winner_as_the_trial_with_its_score() -> None:
    def by_number(trial: optuna.Trial) -> Any:
        depth = trial.suggest_int("max_depth", 2, 20)
        return DecisionTreeClassifier(max_depth=depth, max_features=1, random_state=trial.number)

    objective = TrainingSizeObjective(by_number, X, Y)
    study = paused_study(objective, None, (30, 60, 100, 140))
    winner = answer(study)
    assert winner.learner != study.best_trial.number, "it was resumed"
    assert objective.refit(study).random_state == study.best_trial.number


def test_refit_fits_the_best_trial_of_other_samplers() -> None:
    objective = TrainingSizeObjective(build, X, Y)
    study = created(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=3)
    assert objective.refit(study).var_smoothing == study.best_params["var_smoothing"]


def test_a_trial_outside_of_a_running_study_is_trained_once_on_all_rows() -> None:
    objective = TrainingSizeObjective(build, X, Y)
    study = paused_study(objective, None, (30, 60, 100, 140))
    assert objective(study.best_trial) == study.best_value
    assert objective(optuna.trial.FixedTrial(study.best_params)) == study.best_value
    seen = TrainingSizeObjective(witness, *numbered(200, n_classes=5))
    seen(optuna.trial.FixedTrial({"unused": 0.5}))
    assert [len(rows) for rows in Witness.fits] == [seen.n_train]


def test_refit_needs_a_score() -> None:
    objective = TrainingSizeObjective(build, X, Y)
    message = "no trial of study '.*' has a score yet. Continue it with `study.optimize`"
    with pytest.raises(ValueError, match=message):
        objective.refit(optuna.create_study())
    with pytest.raises(ValueError, match=message):
        objective.refit(paused_study(objective, 0, SIZES))


def test_refit_says_why_no_learner_is_left() -> None:
    objective = TrainingSizeObjective(build, X, Y, scoring=lambda model, X, y: float("nan"))
    study = paused_study(objective, 2, SIZES)
    with pytest.raises(ValueError, match=r"all those of study '.*' were dropped: .*score nan at"):
        objective.refit(study)


@pytest.mark.skipif(not hasattr(ValueError(), "add_note"), reason="notes came with Python 3.11")
def test_an_error_while_refitting_names_learner_and_rows() -> None:
    objective = TrainingSizeObjective(witness, *numbered(200))
    study = study_of(objective)
    broken = TrainingSizeObjective(lambda trial: Witness(ArithmeticError), *numbered(200))
    with pytest.raises(ArithmeticError, match="no luck") as raised:
        broken.refit(study)
    (note,) = raised.value.__notes__
    assert note == f"Learner {study.best_params} was being trained on 140 examples."


def test_refit_on_validation_rows_needs_their_weights() -> None:
    fixed: dict[str, Any] = {"X_valid": X[:50], "y_valid": Y[:50]}
    objective = TrainingSizeObjective(build, X, Y, sample_weight=np.ones(200), **fixed)
    study = study_of(objective)
    objective.refit(study)
    with pytest.raises(ValueError, match="only one of `sample_weight`"):
        objective.refit(study, include_validation=True)


# -- failures ----------------------------------------------------------------------------------


def no_luck(*_: Any) -> Any:
    raise ArithmeticError("no luck")


@pytest.mark.skipif(not hasattr(ValueError(), "add_note"), reason="notes came with Python 3.11")
@pytest.mark.parametrize("fit_params", [{}, no_luck], ids=["in the estimator", "in fit_params"])
def test_an_error_while_training_names_learner_and_size(fit_params: Any) -> None:
    def build(trial: optuna.Trial) -> Witness:
        trial.suggest_int("depth", 7, 7)
        return Witness(None if fit_params else ArithmeticError)

    with pytest.raises(ArithmeticError, match="no luck") as raised:
        study_of(TrainingSizeObjective(build, *numbered(200), fit_params=fit_params))
    assert raised.value.__notes__ == ["Learner {'depth': 7} was being trained on 30 examples."]


def test_an_interruption_is_passed_on_and_not_held_against_the_learner() -> None:
    def interrupted(trial: optuna.Trial) -> Witness:
        trial.suggest_float("unused", 0, 1)
        return Witness(KeyboardInterrupt)

    study = created()
    for _ in range(3):  # a learner that fails twice at one size is dropped
        with pytest.raises(KeyboardInterrupt):
            study.optimize(TrainingSizeObjective(interrupted, *numbered(200)))
    study.optimize(TrainingSizeObjective(witness, *numbered(200)))
    assert study.best_trial.last_step == SIZES[-1]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"X": None}, "`X` must hold a row for each example, but got None"),
        ({"y": None}, "`y` must hold a row for each example, but got None"),
        ({"X": 5}, "`X` must be a table with a row for each example .* but got 5"),
        ({"X": iter([[1], [2]])}, "`X` must be a table with a row for each example"),
        ({"X": np.array(3)}, "`X` must be a table with a row for each example"),
        ({"y": Y[:50]}, "`X` must have as many rows as `y`, but got 200 rows for 50"),
        ({"X": X[:0], "y": Y[:0]}, "`y` must have a value for each row, and at least one row"),
        ({"y": np.where(Y == 1, np.nan, Y)}, "`y` must have a value .* NaN"),
        ({"y": np.where(np.arange(200), Y, 7)}, "at least 2 examples.* class 7 has 1"),
        ({"scoring": "accurracy"}, r"`scoring` .* got 'accurracy'. Did you mean 'accuracy'\?"),
        ({"scoring": ["accuracy", "f1"]}, "`scoring` must be one scorer"),
        ({"scoring": {"a": "accuracy"}}, "`scoring` must be one scorer"),
        ({"scoring": accuracy_score}, r"`scoring` must be a scorer, .* Pass `make_scorer\("),
        ({"X_valid": X}, "both `X_valid` and `y_valid`, but got only `X_valid`"),
        ({"y_valid": Y}, "but got only `y_valid`"),
        ({"sample_weight_valid": Y}, "but got only `sample_weight_valid`"),
        ({"X_valid": X[:, :3], "y_valid": Y}, r"as many features as `X`.*\(3,\).*\(6,\)"),
        ({"X_valid": X, "y_valid": Y[:9]}, "`X_valid` must have as many rows"),
        ({"X_valid": X, "y_valid": np.column_stack([Y, Y])}, "`y_valid` must have as many outp"),
        ({"X_valid": X, "y_valid": [None] * 200}, "`y_valid` must have a value for each row"),
        ({"X_valid": X, "y_valid": Y, "cv": 3}, "Leave out one or the other"),
        ({"X_valid": X, "y_valid": Y, "groups": Y}, "Leave out one or the other"),
        ({"sample_weight": Y[:9]}, "`sample_weight` must have as many rows"),
        ({"sample_weight": -Y}, "smallest weight -2"),
        ({"sample_weight": np.full(200, np.nan)}, "`sample_weight` .* NaN"),
        ({"sample_weight": "heavy"}, "`sample_weight` must have a value for each"),
        ({"weighted_score": True}, "`weighted_score=True` needs the weights"),
        (
            {"weighted_score": True, "sample_weight": Y, "X_valid": X, "y_valid": Y},
            "with `X_valid` also `sample_weight_valid`",
        ),
        ({"groups": Y[:9]}, "one group for each of the 200 rows"),
        ({"groups": np.zeros((200, 1))}, "one group for each of the 200 rows"),
        ({"groups": [None, "a"] * 100}, "`groups` must have a value for each row, but got None"),
        ({"groups": [1, "a"] * 100}, "`groups` must have values of one kind"),
        ({"groups": 3}, "`groups` must have a value for each row, and at least one row"),
        ({"y": np.sort(Y), "cv": TimeSeriesSplit(2)}, r"class \d, .* divide the rows otherwise"),
        ({"cv": []}, r"`cv` must give at least one fold, .* but got \[\]"),
        ({"cv": 1}, "`cv` must be a number of folds from 2 to 200, .* or a splitter, but got 1"),
        ({"cv": 201}, "`cv` must be a number of folds from 2 to 200, .* but got 201"),
        ({"cv": 200, "shuffle": False}, "`cv` must be a number of folds from 2 to 199"),
        ({"cv": 4, "groups": Y}, "`cv` must be a number of folds from 2 to 3, for the groups"),
        ({"cv": 150}, "`cv` must divide the rows into folds: .* but got 150 for 200 rows"),
        ({"cv": "many"}, "`cv` must divide the rows into folds: .* but got 'many'"),
        ({"cv": 2.5}, "`cv` must divide the rows into folds: .* but got 2.5"),
        ({"cv": [1, 2]}, r"`cv` must divide the rows into folds: .* but got \[1, 2\]"),
        ({"cv": [([0, 1], [999])]}, "`cv` must divide the rows into folds: .* 999"),
        ({"cv": [([0, 1], [])]}, "`cv` must give at least one fold, and each must have rows to"),
        ({"cv": StratifiedKFold}, "`cv` must divide the rows into folds"),
        *(
            ({"test_size": size}, "`test_size` must be a fraction between 0 and 1, or .* but got")
            for size in (0.0, 1.0, 1.5, -1)
        ),
        ({"test_size": "some", "cv": 3}, "`test_size` must be a fraction .* but got 'some'"),
        (
            {"test_size": 200, "stratify": False},
            r"room for rows, .*size=200`.*[a-z0-9]\. Take ano",
        ),
        ({"test_size": 0.999, "shuffle": False}, "Both parts must have room for rows"),
        ({"test_size": 3, "groups": Y}, "room for whole `groups`, .*`test_size=3`"),
        ({"y": np.arange(200) // 2}, "100 classes, but got `test_size=0.3`"),
    ],
)
def test_bad_arguments_are_refused_at_once(kwargs: dict[str, Any], message: str) -> None:
    arguments = {"build": build, "X": X, "y": Y} | kwargs
    with pytest.raises(ValueError, match=f"(?s){message}"):
        TrainingSizeObjective(**arguments)


@pytest.mark.parametrize(
    ("kwargs", "sizes", "message"),
    [
        ({}, (30, 60, 141), "exceed the 140 rows there are to train on, but got 141"),
        ({"cv": 4}, (30, 60, 151), "150 rows there are to train on in the largest fold"),
        ({"y": np.arange(200) // 4}, (30, 60, 140), "at least 50, the smallest .* got 30"),
        (
            {"y": np.arange(200) > 150, "shuffle": False, "test_size": 20},
            (20, 60, 90),
            "least 30, .*class False",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused_before_training(
    kwargs: dict[str, Any], sizes: tuple[int, ...], message: str
) -> None:
    features, y = numbered(200)
    objective = TrainingSizeObjective(witness, features, **({"y": y} | kwargs))
    with pytest.raises(ValueError, match=message):
        study_of(objective, sizes)
    assert not Witness.fits


def test_numbers_of_numpy_are_numbers() -> None:
    plain = TrainingSizeObjective(build, X, Y, cv=3, seed=5, stratify=True, shuffle=True)
    of_numpy: dict[str, Any] = {"cv": np.int64(3), "seed": np.uint8(5)}
    of_numpy |= {"stratify": np.True_, "shuffle": np.True_}
    numpy = TrainingSizeObjective(build, X, Y, **of_numpy)
    assert study_of(numpy).best_value == study_of(plain).best_value
    options: dict[str, Any] = {"weighted_score": np.True_, "seed": np.int64(2**32 - 1)}
    options |= {"sample_weight": np.ones(200)}
    for test_size in (np.int64(50), np.float32(0.25), np.float64(0.25)):
        held_out = TrainingSizeObjective(build, X, Y, test_size=test_size, **options)
        assert (held_out.n_train, held_out.n_validation) == (150, 50)
        assert study_of(held_out, (np.int64(30), np.int32(60), np.int64(140))).best_value > 0.5


@pytest.mark.parametrize("cv", [None, 3])
def test_the_training_score_is_measured_on_no_more_rows_than_it_takes(cv: int | None) -> None:
    scored_on: list[int] = []

    def counting(estimator: Any, X: Any, y: Any) -> float:
        scored_on.append(len(y))
        return float(estimator.score(X, y))

    X, y = make_classification(12_000, 4, random_state=0)
    options = {"cv": cv} if cv else {"X_valid": X, "y_valid": y}
    study_of(TrainingSizeObjective(build, X, y, scoring=counting, **options), (1200, 6000, 8000))
    assert scored_on[1::2] == [n for n in (1200, 5000, 5000) for _ in range(cv or 1)]
