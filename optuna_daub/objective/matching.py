"""Matching of two tables of features by the names of columns.

Their order does not count. A validation table gets the columns and kinds of values of the training
table when it is passed. From then on a model is scored on the columns that it was trained on, and
both tables can be joined for a refit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import _safe_indexing

from optuna_daub.core.checks import brief
from optuna_daub.core.optional import imported


def matched(X: Any, like: Any) -> Any:
    """Return the features of `X_valid` in the columns and kinds of those in `X`.

    >>> import pandas as pd
    >>> training = pd.DataFrame({"age": [40, 50], "job": pd.Categorical(["nurse", "cook"])})
    >>> matched(pd.DataFrame({"job": ["cook"], "age": [30]}), training)
       age   job
    0   30  cook

    Args:
        X: the validation table.
        like: the training table.

    Raises:
        ValueError: if a column is missing or unknown, has values that its namesake cannot have,
            or the tables cannot be stacked.
    """
    kind, wanted = _kind(X), _kind(like)
    if kind != wanted:
        raise ValueError(
            f"`X_valid` must be the kind of table that `X` is, {wanted}, but is {kind}: columns "
            f"are matched by name, and both are stacked for a last training. Pass {wanted}."
        )
    if kind not in (_PANDAS, _COLUMN, _POLARS, _ARRAY):
        raise ValueError(
            f"`X_valid` is {kind}, whose columns cannot be matched by name. Pass both tables as "
            "frames of pandas or polars, such as X.to_pandas()."
        )
    if kind in (_PANDAS, _POLARS):
        _check_names([*X.columns], [*like.columns])
        X = _as_pandas(X, like) if kind == _PANDAS else _as_polars(X, like)
    # A list tells no shape.
    if hasattr(X, "shape") and hasattr(like, "shape") and X.shape[1:] != like.shape[1:]:
        raise ValueError(
            "`X_valid` must have as many features as `X`, but has rows of shape "
            f"{X.shape[1:]} while `X` has {like.shape[1:]}."
        )
    wants_text, has_text = (_is_text(getattr(table, "dtype", None)) for table in (like, X))
    if kind == _ARRAY and None not in (wants_text, has_text) and wants_text != has_text:
        raise ValueError(
            f"`X_valid` must have values of the kind that `X` has, {like.dtype}, but has "
            f"{X.dtype}. Convert one of them."
        )
    try:
        stacked(_safe_indexing(like, [0]), _safe_indexing(X, [0]))
    except Exception as error:  # the error may come from any table library
        raise ValueError(
            "`X` and `X_valid` must fit together in one table, for a last training on both, but "
            f"stacking their first rows raised {type(error).__name__}: {error}"
        ) from error
    return X


def is_arrow(X: Any) -> bool:
    """Return whether a table is pyarrow's: its `columns` are values, not names."""
    return hasattr(X, "column_names") and not hasattr(X, "iloc")


def column_names(X: Any) -> list[Any]:
    """Return the names of a table's columns; empty if it has none."""
    return [*(X.column_names if is_arrow(X) else getattr(X, "columns", ()))]


def check_names_differ(X: Any, name: str) -> None:
    """Raise a ValueError if two columns of a frame have one name.

    They cannot be told apart: boosters, and scikit-learn from 1.9 on, refuse them.
    """
    names = column_names(X)
    if len({*names}) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(
            f"Columns of `{name}` must have different names, but {brief(twice)} is there twice. "
            f"Rename one, or pass `{name}.to_numpy()`."
        )


def stacked(first: Any, second: Any) -> Any:
    """Return the rows of two tables of one kind as one table."""
    if scipy.sparse.issparse(first) or scipy.sparse.issparse(second):
        return scipy.sparse.vstack([first, second]).tocsr()
    if hasattr(first, "iloc"):
        import pandas as pd  # the caller has it: it passed a data frame

        return pd.concat([first, second])
    if _kind(first) == _POLARS:
        import polars as pl  # the caller has it

        return pl.concat([first, second], how="vertical_relaxed")
    if hasattr(first, "column_names"):
        return imported("pyarrow", extra="data").concat_tables([first, second])
    if isinstance(first, list):
        return [*first, *second]
    return np.concatenate([first, second])


_PANDAS, _COLUMN, _POLARS, _ARRAY = (
    "a pandas data frame",
    "a pandas column",
    "a polars data frame",
    "an array or list without column names",
)


def _kind(table: Any) -> str:
    if hasattr(table, "iloc"):
        return _PANDAS if hasattr(table, "columns") else _COLUMN
    if hasattr(table, "columns"):
        library = type(table).__module__.partition(".")[0]
        return _POLARS if library == "polars" else f"a data frame of {library}"
    return _ARRAY


def _check_names(names: list[Any], wanted: list[Any]) -> None:
    has, needs = {*names}, {*wanted}  # a table may have tens of thousands of columns
    missing = [name for name in wanted if name not in has]
    others = [name for name in names if name not in needs]
    if missing or others:
        lacks = f"lacks {_listed(missing)}" if missing else ""
        more = f"has {_listed(others)}, which `X` has not" if others else ""
        raise ValueError(
            "`X_valid` must have the columns of `X`, in any order, but "
            f"{' and '.join(filter(None, (lacks, more)))}. Rename or add them."
        )


def _listed(names: list[Any]) -> str:
    shown = ", ".join(map(brief, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _as_pandas(X: Any, like: Any) -> Any:
    """Return a pandas frame with the columns, order and kinds of another."""
    import pandas as pd  # the caller has it: it passed a data frame

    places = dict(zip(X.columns, range(X.shape[1]), strict=True))
    if [*places] != [*like.columns]:
        X = X.iloc[:, [places[name] for name in like.columns]]
    casts = {}
    of_columns = zip(like.columns, like.dtypes, X.dtypes, strict=True)
    for place, (name, wanted, given) in enumerate(of_columns):
        if wanted == given and wanted != "object" and not _is_in_another_order(wanted, given):
            continue
        model, column = like.iloc[:, place], X.iloc[:, place]
        if wanted == "object":  # takes everything: a look at the values tells
            kinds = [_kind_of_values(values) for values in (model, column)]
            if None not in kinds and kinds[0] != kinds[1] and kinds[1] not in _parts(model):
                raise ValueError(_of_another_kind(name, column[column.notna()].iloc[0], kinds[0]))
            continue
        numeric = all(pd.api.types.is_numeric_dtype(values) for values in (model, column))
        if numeric and pd.concat([model.iloc[:1], column.iloc[:1]]).dtype != object:
            continue
        casts[place] = _cast(name, column, wanted)
    if casts:
        columns = [casts.get(place, X.iloc[:, place]) for place in range(X.shape[1])]
        X = pd.concat(columns, axis=1)
        X.columns = like.columns
    return X


def _is_in_another_order(wanted: Any, given: Any) -> bool:
    """Return whether two kinds of categories, equal for pandas, give them other codes."""
    of_categories = getattr(wanted, "categories", None) is not None
    return of_categories and [*wanted.categories] != [*given.categories]


def _cast(name: Any, column: Any, kind: Any) -> Any:
    """Return a pandas column as one of another kind. A ValueError names what does not fit."""
    import pandas as pd  # as above

    if isinstance(kind, pd.CategoricalDtype):
        is_lost = column.notna() & ~column.isin(kind.categories)
        cast = column.astype(object).where(~is_lost, None).astype(kind)
    else:
        try:
            cast = column.astype(kind)
        except (TypeError, ValueError):
            cast = pd.Series([None] * len(column), index=column.index, dtype=object)
        # A value that this kind of column cannot hold is now missing or changed.
        is_lost = column.notna() & ~(cast.astype(object) == column.astype(object))
        is_lost |= column.isna() & cast.notna()  # a gap is true as a truth value
    if is_lost.any():
        raise ValueError(_of_another_kind(name, column[is_lost].iloc[0], kind))
    return cast


def _as_polars(X: Any, like: Any) -> Any:
    """Return a polars frame with the columns, order and kinds of another."""
    X = X.select(like.columns)
    for name, wanted in like.schema.items():
        column = X[name]
        if column.dtype == wanted or (column.dtype.is_numeric() and wanted.is_numeric()):
            continue
        cast = column.cast(wanted, strict=False)
        back = cast.cast(column.dtype, strict=False)
        is_lost = column.is_not_null() & ~back.eq_missing(column)
        if _is_polars_text(wanted) != _is_polars_text(column.dtype):  # "1.5" is no number
            is_lost = column.is_not_null()
        if is_lost.any():
            raise ValueError(_of_another_kind(name, column.filter(is_lost)[0], wanted))
        X = X.with_columns(cast.alias(name))
    return X


def _is_polars_text(dtype: Any) -> bool:
    return type(dtype).__name__ in ("String", "Categorical", "Enum")


def _of_another_kind(name: Any, value: Any, wanted: Any) -> str:
    categories = getattr(wanted, "categories", None)
    if categories is not None:
        return (
            f"`X_valid` must have the categories of `X`, but column {brief(name)} has "
            f"{brief(value)}, which is no category of that column in `X`. Give both columns the "
            "same categories, also those that only one of them has."
        )
    return (
        f"`X_valid` must have values of the kind that `X` has, but column {brief(name)} has "
        f"{brief(value)} where `X` has {wanted}. Convert one of them."
    )


def _kind_of_values(column: Any) -> str | None:
    """Return the kind of values in a column of objects. None if all are missing."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    kind = pd.api.types.infer_dtype(column, skipna=True)
    numbers = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "complex")
    return None if kind == "empty" else "numbers" if kind in numbers else str(kind)


def _parts(column: Any) -> set[str | None]:
    """Return the kinds of values in a column that mixes some, such as text and numbers."""
    types = column.map(type)
    return {_kind_of_values(column[types == kind]) for kind in types.unique()}


def _is_text(dtype: Any) -> bool | None:
    """Return whether an array has text or objects, None if it does not tell."""
    return dtype.kind in "OUS" if isinstance(dtype, np.dtype) else None
