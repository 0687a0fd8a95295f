"""A validation table is matched by name, and what was searched can be fitted again on both."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from optuna_daub import DAUBPruner
from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.matching import matched
from optuna_daub.sklearn import DataAllocationSearchCV
from tests.objective.studies import study_of


RNG = np.random.default_rng(0)
N = 200
NUMBERS = RNG.normal(size=(2 * N, 3))
JOBS = RNG.choice(["cook", "nurse"], 2 * N)
LABELS = np.where((NUMBERS[:, 0] > 0) ^ (JOBS == "cook"), "yes", "no")


def table(rows: slice, **columns: Any) -> pd.DataFrame:
    own = {"a": NUMBERS[rows, 0], "b": NUMBERS[rows, 1], "job": JOBS[rows]}
    return pd.DataFrame({**own, **columns})


TRAINING, VALIDATION = table(slice(N)), table(slice(N, 2 * N))


def tree(trial: optuna.Trial) -> Any:
    return DecisionTreeClassifier(max_depth=trial.suggest_int("depth", 3, 8), random_state=0)


def encoded_tree(trial: optuna.Trial) -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    return make_pipeline(encoder, tree(trial))


def objective(X: Any, X_valid: Any, build: Any = encoded_tree) -> TrainingSizeObjective:
    return TrainingSizeObjective(
        build, X, LABELS[:N], X_valid=X_valid, y_valid=LABELS[N : N + len(VALIDATION)]
    )


class CountingName:
    """Name of a column that counts how often names are compared."""

    n_compared = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        CountingName.n_compared += 1
        return isinstance(other, CountingName) and self.number == other.number


def test_of_many_columns_no_name_is_compared_with_all_others() -> None:
    names = [CountingName(number) for number in range(500)]
    training = pd.DataFrame(np.arange(1000).reshape(2, 500), columns=names)
    CountingName.n_compared = 0
    found = matched(training[names[::-1]], training)
    np.testing.assert_array_equal(found, training)
    assert CountingName.n_compared < 20 * len(names)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_reordered_columns_give_the_same_score(frame: Any) -> None:
    one, other = (
        study_of(objective(frame(TRAINING[["a", "b"]]), frame(VALIDATION[order]), tree))
        for order in (["a", "b"], ["b", "a"])
    )
    assert one.best_value == other.best_value


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.rename(columns={"a": "A"}), "lacks 'a' and has 'A', which `X` has not"),
        (lambda t: t.drop(columns="a"), "lacks 'a'"),
        (lambda t: t.assign(more=1), "has 'more', which `X` has not"),
    ],
    ids=["renamed", "missing", "more"],
)
def test_other_columns_are_refused(frame: Any, change: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"must have the columns of `X`, in any order.*{said}"):
        objective(frame(TRAINING), frame(change(VALIDATION)))


@pytest.mark.parametrize("where", ["X", "X_valid", "search"])
def test_columns_of_one_name_are_refused(where: str) -> None:
    twice = TRAINING.set_axis(["a", "a", "job"], axis=1)

    def ask() -> None:
        if where == "search":
            DataAllocationSearchCV(GaussianNB(), {"var_smoothing": [0.1, 1.0]}).fit(twice, [0, 1])
        elif where == "X":
            objective(twice, VALIDATION)
        else:
            objective(TRAINING, VALIDATION.set_axis(["a", "a", "job"], axis=1))

    name = "X_valid" if where == "X_valid" else "X"
    with pytest.raises(ValueError, match=f"`{name}` must have different names, but 'a' is there"):
        ask()


@pytest.mark.parametrize(
    ("X", "X_valid"),
    [
        (TRAINING, VALIDATION.to_numpy()),
        (TRAINING.to_numpy(), VALIDATION),
        (TRAINING, pl.from_pandas(VALIDATION)),
        (TRAINING["job"], VALIDATION[["job"]]),
        ([[1.0]] * N, VALIDATION[["a"]]),
    ],
    ids=["frame, array", "array, frame", "pandas, polars", "column, frame", "list, frame"],
)
def test_tables_of_two_kinds_are_refused(X: Any, X_valid: Any) -> None:
    with pytest.raises(ValueError, match="must be the kind of table that `X` is"):
        objective(X, X_valid)


CATEGORIES = TRAINING.astype({"job": "category"})
MIXED = TRAINING.assign(b=(["A", 7, "B", 8] * N)[:N])  # as `read_csv` reads a column in parts
FEWER = VALIDATION[JOBS[N:] == "cook"].astype({"job": "category"})


def test_categories_in_another_order_keep_their_codes() -> None:
    given = VALIDATION.assign(job=pd.Categorical(VALIDATION["job"], ["nurse", "cook"]))
    assert [*given["job"].cat.categories] != [*CATEGORIES["job"].cat.categories]
    found = matched(given, CATEGORIES)["job"]
    assert [*found.cat.categories] == [*CATEGORIES["job"].cat.categories]
    assert found.astype(str).tolist() == VALIDATION["job"].tolist()


@pytest.mark.parametrize("cells", [[True, None], [True, np.nan], [1.0, np.nan]])
def test_a_gap_is_no_truth_value(cells: list[Any]) -> None:
    known = pd.DataFrame({"b": [True, False]})
    with pytest.raises(ValueError, match="'b'"):
        matched(pd.DataFrame({"b": cells}), known)


def test_fewer_categories_keep_their_codes() -> None:
    assert [*FEWER["job"].cat.categories] == ["cook"]
    nurses = VALIDATION[JOBS[N:] == "nurse"].astype({"job": "category"})
    found = matched(nurses, CATEGORIES)["job"]
    assert found.dtype == CATEGORIES["job"].dtype
    assert set(found.cat.codes) == {1}
    assert [*found] == ["nurse"] * len(nurses)
    text = matched(VALIDATION, CATEGORIES)["job"]
    assert text.dtype == CATEGORIES["job"].dtype
    assert [*text] == [*VALIDATION["job"]]


@pytest.mark.parametrize(
    ("training", "validation", "said"),
    [
        (CATEGORIES, VALIDATION.assign(job="pilot").astype({"job": "category"}), "'pilot'"),
        (CATEGORIES, VALIDATION.assign(job="pilot"), "'pilot'"),
        (TRAINING, VALIDATION.assign(a="1.5"), "'a' has '1.5'"),
        (TRAINING, VALIDATION.assign(job=3), "'job' has "),
        (TRAINING.astype({"job": object}), VALIDATION.assign(job=3), "'job' has "),
        (TRAINING.assign(b=True), VALIDATION.assign(b=2), "'b' has "),
        (TRAINING.assign(b=[("a",)] * N), VALIDATION.assign(b=VALIDATION["job"]), "'b' has '"),
        (
            TRAINING.assign(b=pd.Timestamp(2020, 1, 1)),
            VALIDATION.assign(b="2020-01-01"),
            "'b' has '2020-01-01'",
        ),
    ],
)
def test_values_that_a_column_cannot_have_are_refused(
    training: pd.DataFrame, validation: pd.DataFrame, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        matched(validation, training)


@pytest.mark.parametrize(
    ("training", "validation", "value"),
    [
        (TRAINING.assign(a=1), VALIDATION.assign(a=1.5), 1.5),
        (TRAINING.assign(a=1.5), VALIDATION.assign(a=1), 1),
        (TRAINING, VALIDATION.assign(a=Decimal("1.5")), 1.5),
        (TRAINING.assign(b=True), VALIDATION.assign(b=1), True),
        (TRAINING.astype({"job": object}), VALIDATION, VALIDATION["job"].iloc[0]),
        (
            TRAINING.astype({"job": object}),
            VALIDATION.astype({"job": "category"}),
            VALIDATION["job"].iloc[0],
        ),
        (MIXED, VALIDATION.assign(b="A").astype({"b": object}), "A"),
        (MIXED, VALIDATION.assign(b=8).astype({"b": object}), 8),
    ],
)
def test_values_that_say_the_same_are_taken(
    training: pd.DataFrame, validation: pd.DataFrame, value: object
) -> None:
    found = matched(validation, training)
    name = next(n for n in found if found[n].iloc[0] == value)
    assert found[name].iloc[0] == value
    joined = pd.concat([training, found])
    assert all(joined[n].dtype != object or training[n].dtype == object for n in joined)


def test_missing_values_stay_missing() -> None:
    training = TRAINING.assign(job=TRAINING["job"].astype("category"))
    validation = VALIDATION.assign(a=np.nan, job=None)
    found = matched(validation, training)
    assert found["a"].isna().all()
    assert found["job"].isna().all()
    assert found["job"].dtype == training["job"].dtype


def test_polars_columns_are_brought_into_the_kinds_of_the_training_table() -> None:
    jobs = pl.Enum(["cook", "nurse"])
    training = pl.from_pandas(TRAINING).with_columns(pl.col("job").cast(jobs))
    validation = pl.from_pandas(VALIDATION)
    found = matched(validation, training)
    assert found.schema == training.schema
    assert found["job"].to_list() == validation["job"].to_list()
    with pytest.raises(ValueError, match="'pilot'"):
        matched(validation.with_columns(job=pl.lit("pilot")), training)
    with pytest.raises(ValueError, match=r"'a' has '1\.5'"):
        matched(validation.with_columns(a=pl.lit("1.5")), training)
    with pytest.raises(ValueError, match="'b' has"):
        matched(validation, training.with_columns(b=pl.lit(value=True)))


@pytest.mark.parametrize(
    "kind",
    [
        pd.DataFrame,
        lambda t: t.astype({"job": "category"}),
        pl.from_pandas,
        lambda t: pl.from_pandas(t).with_columns(pl.col("job").cast(pl.Categorical)),
    ],
    ids=["pandas", "categories", "polars", "polars categories"],
)
@pytest.mark.parametrize("is_fixed", [True, False])
def test_frames_can_be_fitted_again_on_all_rows(kind: Any, is_fixed: bool) -> None:
    if is_fixed:
        asked = objective(kind(TRAINING), kind(VALIDATION[["job", "b", "a"]]))
    else:
        asked = TrainingSizeObjective(encoded_tree, kind(TRAINING), LABELS[:N])
    study = study_of(asked, (30, 60, asked.n_train))
    model = asked.refit(study, include_validation=True)
    assert [*model.feature_names_in_] == ["a", "b", "job"]
    n_fitted = model[-1].tree_.n_node_samples[0]
    assert n_fitted == asked.n_train + asked.n_validation


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        (NUMBERS[:N], NUMBERS[N:].tolist()),
        (NUMBERS[:N].tolist(), NUMBERS[N:]),
        (scipy.sparse.csr_matrix(NUMBERS[:N]), scipy.sparse.csc_matrix(NUMBERS[N:])),
        (scipy.sparse.csr_matrix(NUMBERS[:N]), NUMBERS[N:]),
        (NUMBERS[:N], scipy.sparse.csr_matrix(NUMBERS[N:])),
        (NUMBERS[:N].astype(np.float32), NUMBERS[N:]),
    ],
    ids=["array, list", "list, array", "sparse", "sparse, array", "array, sparse", "precision"],
)
def test_tables_without_names_can_be_refitted_on_all_rows(training: Any, validation: Any) -> None:
    asked = objective(training, validation, tree)
    model = asked.refit(study_of(asked), include_validation=True)
    assert model.tree_.n_node_samples[0] == 2 * N


def test_text_beside_numbers_is_refused_without_names_too() -> None:
    with pytest.raises(ValueError, match="`X_valid` must have values of the kind"):
        objective(NUMBERS[:N], NUMBERS[N:].astype(str), tree)
    with pytest.raises(ValueError, match="must fit together in one table"):
        objective(NUMBERS[:N], [[1.0, 2.0]] * N, tree)


@pytest.mark.parametrize(
    ("y", "y_valid", "kwargs"),
    [
        (LABELS, np.char.upper(LABELS), {}),
        (LABELS, (LABELS == "yes").astype(int), {}),
        ((LABELS == "yes").astype(int), LABELS, {}),
        (LABELS == "yes", LABELS, {"stratify": False}),
        (LABELS, np.where(np.arange(2 * N) == N + 7, "maybe", LABELS), {}),
        (LABELS, pd.Series(LABELS).replace("yes", "Yes").astype("category"), {}),
        (np.arange(2 * N) % 3, np.arange(2 * N) % 3 + 1, {}),
        (np.arange(2 * N) % 30, np.arange(2 * N) % 30 + 1, {"stratify": False}),
    ],
)
def test_labels_that_no_training_row_has_are_refused(y: Any, y_valid: Any, kwargs: Any) -> None:
    tables = NUMBERS[:N], y[:N]
    valid = {"X_valid": NUMBERS[N:], "y_valid": y_valid[N:]}
    with pytest.raises(ValueError, match="Every label of `y_valid` must be one of `y`"):
        TrainingSizeObjective(tree, *tables, **valid, **kwargs)


@pytest.mark.parametrize(
    ("y", "kwargs"),
    [
        (NUMBERS[:, 0], {"scoring": "r2"}),
        (np.arange(2 * N), {"scoring": None}),
        (np.arange(2 * N) // (N // 2), {"scoring": "r2"}),
        (np.arange(2 * N) // (N // 2), {"scoring": None, "stratify": False}),
    ],
)
def test_amounts_that_no_training_row_has_are_not_labels(y: Any, kwargs: Any) -> None:
    valid = {"X_valid": NUMBERS[N:], "y_valid": y[N:]}
    assert TrainingSizeObjective(tree, NUMBERS[:N], y[:N], **valid, **kwargs).n_validation == N


def test_tables_of_other_libraries_are_searched_but_not_matched() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    values = rng.random((400, 2))
    table = pyarrow.table({name: values[:, i] for i, name in enumerate("ab")})
    labels = (values[:, 0] > 0.5).astype(int)
    objective = TrainingSizeObjective(lambda trial: LogisticRegression(), table, labels)
    study = study_of(objective, pruner=DAUBPruner(max_resource=objective.n_train))
    assert study.best_value > 0.8
    assert objective.refit(study).n_features_in_ == 2
    fixed = {"X_valid": table, "y_valid": labels}
    with pytest.raises(ValueError, match="data frame of pyarrow, whose columns cannot be matched"):
        TrainingSizeObjective(lambda trial: LogisticRegression(), table, labels, **fixed)


@pytest.mark.parametrize("name", ["column_names", "tocsr", "columns", "dtype", "shape", "iloc"])
def test_columns_may_have_the_names_of_attributes(name: str) -> None:
    frames = TRAINING.rename(columns={"a": name}), VALIDATION.rename(columns={"a": name})
    renamed = study_of(objective(*frames))
    plain = study_of(objective(TRAINING, VALIDATION))
    assert renamed.best_value == plain.best_value
    assert objective(*frames).refit(renamed, include_validation=True).predict(frames[0]).any()


def test_an_error_with_a_table_of_pyarrow_comes_out_as_such() -> None:
    pyarrow = pytest.importorskip("pyarrow")

    def failing(trial: optuna.Trial) -> Any:
        return make_pipeline(FunctionTransformer(_fails), GaussianNB())

    made = TrainingSizeObjective(failing, pyarrow.table({"a": NUMBERS[:, 0]}), LABELS)
    with pytest.raises(ZeroDivisionError, match="of the user's own"):
        study_of(made)


def _fails(X: Any) -> Any:
    raise ZeroDivisionError("of the user's own")
