"""Targets with classes, and columns that are no targets."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score
from sklearn.metrics import make_scorer
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

from optuna_daub.objective import TrainingSizeObjective
from optuna_daub.objective.data import FEW_VALUES
from optuna_daub.objective.data import checked_column
from optuna_daub.objective.data import classes_to_keep
from optuna_daub.objective.data import is_categorical
from optuna_daub.sklearn import DataAllocationSearchCV
from tests.objective.studies import Witness
from tests.objective.studies import study_of


CODES = np.arange(200) % 5 // 2  # 0, 0, 1, 1, 2: shares of 0.4, 0.4 and 0.2
NAMES = np.array(["ant", "bee", "cow"])
ROWS = np.column_stack([np.arange(200), np.ones(200)])

LABELS: dict[str, Any] = {
    "object": NAMES.astype(object)[CODES],
    "str": NAMES[CODES],
    "list of str": NAMES[CODES].tolist(),
    "pandas str": pd.Series(NAMES[CODES]),
    "pandas string": pd.Series(NAMES[CODES], dtype="string"),
    "categorical": pd.Series(pd.Categorical(NAMES[CODES])),
    "Categorical": pd.Categorical(NAMES[CODES]),
    "categorical of ints": pd.Series(pd.Categorical(CODES)),
    "categorical frame": pd.DataFrame({"y": pd.Categorical(NAMES[CODES])}),
    "column": NAMES[CODES][:, None],
    **{f"int{bits}": CODES.astype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "uint8": CODES.astype(np.uint8),
    "list of ints": CODES.tolist(),
    "objects that are ints": CODES.astype(object),
    "Int64": pd.Series(CODES, dtype="Int64"),
    "int64[pyarrow]": pd.Series(CODES, dtype="int64[pyarrow]"),
    "float": CODES.astype(float),
    "float32": CODES.astype(np.float32),
    "Float64": pd.Series(CODES, dtype="Float64"),
    "bool": CODES > 0,
    "list of bools": (CODES > 0).tolist(),
    "objects that are bools": (CODES > 0).astype(object),
    "boolean": pd.Series(CODES > 0, dtype="boolean"),
}
"""Two or three classes, each kind of column that holds them."""

AMOUNTS: dict[str, Any] = {
    "int": np.arange(200) % (FEW_VALUES + 1),
    "Int64": pd.Series(np.arange(200) % 40, dtype="Int64"),
    "whole floats": np.arange(200.0) % 40,
}
"""Whole numbers of too many values to be taken for labels where nothing says that they are."""


class Amount(LinearRegression):  # type: ignore[misc]
    """Linear regression that notes which rows it is fitted on."""

    def fit(self, X: Any, y: Any) -> Amount:
        assert y.dtype.kind in "iuf"
        Witness.fits.append(np.asarray(X)[:, 0].astype(int))
        super().fit(X, y)
        return self


def amount(trial: optuna.Trial) -> Amount:
    return Amount(fit_intercept=trial.suggest_categorical("fit_intercept", [True]))


def witness(trial: optuna.Trial) -> Witness:
    return Witness()


def score(estimator: Any, X: Any, y: Any) -> float:
    """Return accuracy: a function that tells nothing of its targets."""
    return float(np.mean(estimator.predict(X) == y))


def are_kept(codes: NDArray[Any]) -> bool:
    """Return whether the subsets that were trained on hold each class in its share."""
    shares = np.bincount(codes) / len(codes)
    counts = [np.bincount(codes[rows], minlength=len(shares)) for rows in Witness.fits]
    return all(np.all(np.abs(n - n.sum() * shares) < 1) for n in counts)


# -- stratified or not -------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["accuracy", score, None])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_classes(kind: str, scoring: Any) -> None:
    y = LABELS[kind]
    for stratify in ("auto", True, np.True_):
        study_of(TrainingSizeObjective(witness, ROWS, y, scoring=scoring, stratify=stratify))
    assert len(Witness.fits) == 9
    assert are_kept(np.unique(np.asarray(y), return_inverse=True)[1].ravel())


@pytest.mark.parametrize("kind", [kind for kind in LABELS if "int" in kind or "float" in kind])
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
def test_targets_of_a_regression_are_none(kind: str, scoring: str) -> None:
    study_of(TrainingSizeObjective(amount, ROWS, LABELS[kind], scoring=scoring))
    assert not are_kept(CODES)
    Witness.fits.clear()
    study_of(TrainingSizeObjective(amount, ROWS, LABELS[kind], scoring=scoring, stratify=True))
    assert are_kept(CODES)


def test_a_regression_target_may_hold_a_value_once() -> None:
    y = np.arange(200) ** 2
    study = study_of(TrainingSizeObjective(amount, ROWS, y, scoring="r2"))
    assert study.best_value > 0.5
    with pytest.raises(ValueError, match="Every class needs at least 2 examples"):
        TrainingSizeObjective(amount, ROWS, y, scoring="r2", stratify=True)
    with pytest.raises(ValueError, match='pass a metric for them, such as `scoring="r2"`'):
        TrainingSizeObjective(amount, ROWS, y, scoring="accuracy")


@pytest.mark.parametrize("scoring", [score, None])
@pytest.mark.parametrize("kind", AMOUNTS)
def test_many_whole_numbers_must_be_told_to_be_classes(kind: str, scoring: Any) -> None:
    y = AMOUNTS[kind]
    codes = np.asarray(y).astype(int)
    study_of(TrainingSizeObjective(amount, ROWS, y, scoring=scoring))
    assert not are_kept(codes)
    Witness.fits.clear()
    study_of(TrainingSizeObjective(witness, ROWS, y, scoring="accuracy"), (42, 60, 100))
    assert are_kept(codes)


@pytest.mark.parametrize("n_values", [FEW_VALUES, FEW_VALUES + 1])
def test_where_nothing_tells_few_whole_numbers_are_labels(n_values: int) -> None:
    y = np.arange(200) % n_values
    is_few = n_values <= FEW_VALUES
    assert (classes_to_keep(y, "auto", None) is not None) == is_few
    assert (classes_to_keep(y.astype(float), "auto", None) is not None) == is_few
    for labels in (y.astype(str), y.astype(str).astype(object)):
        assert classes_to_keep(labels, "auto", None) is not None
    assert classes_to_keep(y, "auto", None, is_categorical=True) is not None
    assert classes_to_keep(y, "auto", "classification") is not None
    assert classes_to_keep(y, "auto", "regression") is None
    assert classes_to_keep(y, True, None) is not None
    assert classes_to_keep(y, False, "classification") is None


def test_categories_are_labels_however_many_they_are() -> None:
    y = pd.Series(pd.Categorical(np.arange(200) % 25))
    study_of(TrainingSizeObjective(witness, ROWS, y, scoring=score), (50, 75, 100))
    for rows in Witness.fits:
        assert {*rows % 25} == {*range(25)}
    assert is_categorical(y)
    assert is_categorical(pd.DataFrame({"y": y}))
    assert not is_categorical(y.astype(int))
    assert not is_categorical([0, 1])


@pytest.mark.parametrize("stratify", ["auto", True, False])
@pytest.mark.parametrize("scoring", ["accuracy", None])
def test_several_labels_of_each_row_have_no_classes(stratify: Any, scoring: Any) -> None:
    X, y = make_multilabel_classification(200, 5, n_classes=3, random_state=0)

    def build(trial: optuna.Trial) -> Any:
        smoothing = trial.suggest_float("var_smoothing", 1e-9, 1e-1)
        return MultiOutputClassifier(GaussianNB(var_smoothing=smoothing))

    assert classes_to_keep(y, stratify, "classification") is None
    objective = TrainingSizeObjective(build, X, y, scoring=scoring, stratify=stratify)
    assert 0 < study_of(objective).best_value < 1


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "neg_log_loss"])
def test_amounts_are_refused_by_the_constructor_where_classes_are_scored(scoring: str) -> None:
    y = np.append(np.arange(199.0), 0.25)
    with pytest.raises(ValueError, match=rf'{scoring}.* such as 0\.25\..*scoring="r2"'):
        TrainingSizeObjective(amount, ROWS, y, scoring=scoring)
    with pytest.raises(ValueError, match="compares classes"):  # the default
        TrainingSizeObjective(amount, ROWS, y)
    for own in (score, make_scorer(accuracy_score), None, "r2"):
        TrainingSizeObjective(amount, ROWS, y, scoring=own)


DATES = pd.date_range("2020", periods=200)
TIMES: dict[str, Any] = {
    "dates": DATES,
    "durations": DATES - DATES[0],
    "a series": pd.Series(DATES),
    "of NumPy": DATES.to_numpy().astype("datetime64[D]"),
}
OBJECTS_OF_TIME: dict[str, Any] = {
    "dates": [day.date() for day in DATES],
    "datetimes": np.array([*DATES], dtype=object),
    "with a time zone": pd.Series(DATES.tz_localize("UTC")),
    "periods": pd.Series(DATES.to_period("D")),
    "durations": [(day - DATES[0]).to_pytimedelta() for day in DATES],
}


@pytest.mark.parametrize("kind", TIMES)
def test_dates_are_amounts(kind: str) -> None:
    y = TIMES[kind]
    with pytest.raises(ValueError, match=r'dates or durations, such as .*scoring="r2"'):
        TrainingSizeObjective(amount, ROWS, y)  # the default compares classes

    def build(trial: optuna.Trial) -> DecisionTreeRegressor:
        return DecisionTreeRegressor(max_depth=trial.suggest_int("max_depth", 5, 5))

    assert study_of(TrainingSizeObjective(build, ROWS, y, scoring="r2")).best_value > 0.5


@pytest.mark.parametrize("scoring", ["accuracy", "r2", None])
@pytest.mark.parametrize("kind", OBJECTS_OF_TIME)
def test_dates_that_no_estimator_takes_are_named(kind: str, scoring: Any) -> None:
    y = OBJECTS_OF_TIME[kind]
    for stratify in ("auto", False):
        with pytest.raises(ValueError, match=r"^`y` .* objects of type .* into numbers"):
            TrainingSizeObjective(amount, ROWS, y, scoring=scoring, stratify=stratify)
    numbers = np.arange(200.0)
    with pytest.raises(ValueError, match=r"^`y_valid` .* objects of type"):
        TrainingSizeObjective(amount, ROWS, numbers, X_valid=ROWS, y_valid=y, scoring="r2")
    search = DataAllocationSearchCV(DecisionTreeRegressor(), {"max_depth": [1, 2]})
    with pytest.raises(ValueError, match=r"^`y` .* objects of type"):
        search.fit(ROWS, y)


@pytest.mark.parametrize("stratify", ["auto", True, False])
def test_fractions_and_several_outputs_have_no_classes(stratify: Any) -> None:
    for y in (np.linspace(0, 1, 200), np.column_stack([CODES, CODES]), [[0.5, 1.0]] * 200):
        scored = {"scoring": "neg_mean_squared_error", "stratify": stratify}
        study_of(TrainingSizeObjective(amount, ROWS, y, **scored))
    assert len(Witness.fits) == 9


# -- columns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.Series([1, 2], dtype="Int64"), "i"),
        (pd.Series([True, False], dtype="boolean"), "b"),
        (pd.Series([0.5, 2], dtype="Float64"), "f"),
        (pd.Series([1, 2], dtype="int64[pyarrow]"), "i"),
        (np.array([1, 2], dtype=object), "i"),
        (np.array([True, np.False_], dtype=object), "b"),
        (np.array([1, 2.5], dtype=object), "f"),
        ([np.int8(3), 2.5], "f"),
        ([True, 2], "i"),
        (("a", "b"), "U"),
        (np.array(["a", "b"], dtype=np.dtypes.StringDType()), "O")
        if hasattr(np.dtypes, "StringDType")
        else (["a", "b"], "U"),
    ],
)
def test_a_column_keeps_its_kind(values: Any, kind: str) -> None:
    column = checked_column(values, "y")
    assert column.dtype.kind == kind
    assert column.tolist() == list(values)


MISSING = [
    [None, "a"],
    ["a", None],
    [1, None],
    np.array(["a", None], dtype=object),
    np.array([1, None], dtype=object),
    pd.Series(["a", pd.NA], dtype="string"),
    pd.Series([1, pd.NA], dtype="Int64"),
    pd.Series([True, pd.NA], dtype="boolean"),
    pd.Series([1, None], dtype="int64[pyarrow]"),
    pd.Series(pd.Categorical(["a", None])),
    pd.Series(["a", None]),
    pd.Series(pd.to_datetime(["2020-01-01", None])),
    np.array([np.timedelta64(1, "D"), np.timedelta64("NaT")]),
    [pd.NA, 1],
    [np.nan, 1],
    ["a", np.nan],
    [np.inf, 1],
]


@pytest.mark.parametrize("values", MISSING)
def test_a_missing_value_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match=r"^`y` must have a value for each"):
        checked_column(values, "y")


@pytest.mark.parametrize(
    "values",
    [
        ["a", 1],
        [1, "a"],
        [True, "a"],
        [1.5, "1.5"],
        np.array(["a", 1], dtype=object),
        pd.Series(["a", 1], dtype=object),
        pd.Categorical(["a", 1]),
        [["a", 1], ["b", 2]],
    ],
)
def test_mixed_kinds_are_refused(values: Any) -> None:
    kinds = r"`y` .* one kind, but got .*(string|number) and .*such as"
    with pytest.raises(ValueError, match=kinds):
        checked_column(values, "y")


class Colour(enum.Enum):
    """Members without an order."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """Members that are numbers."""

    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    "wrap",
    [list, lambda members: np.array(members, dtype=object), pd.Series, pd.Categorical],
)
def test_labels_without_an_order_are_refused(wrap: Any) -> None:
    members = [Colour.RED, Colour.BLUE] * 100
    for name in ("y", "groups"):
        said = rf"`{name}` .* sorted, .* names: \[each.name for each"
        with pytest.raises(ValueError, match=said):
            TrainingSizeObjective(witness, ROWS, **{"y": np.arange(200) % 2, name: wrap(members)})
    names = [each.name for each in members]
    assert TrainingSizeObjective(witness, ROWS, names).n_train == 140
    levels = wrap([Level.LOW, Level.HIGH] * 100)
    assert checked_column(levels, "y").tolist() == [1, 2] * 100


@pytest.mark.parametrize(
    "values", [5, "word", [], np.zeros((2, 2, 2)), np.zeros((0, 3)), object()]
)
def test_what_is_no_column_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match=r"^`y` must have a value for each row, and at"):
        checked_column(values, "y")
