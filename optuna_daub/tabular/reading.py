"""Reading of files and frames of any library as data frames of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import text_of
from optuna_daub.study.messages import message_of
from optuna_daub.tabular.signs import signs_of_numbers
from optuna_daub.tabular.table import MISSING_WORDS
from optuna_daub.tabular.table import NO_NAMES
from optuna_daub.tabular.table import NO_SIGNS
from optuna_daub.tabular.table import Header
from optuna_daub.tabular.table import Learnt
from optuna_daub.tabular.table import Table
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import check_names
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import is_text
from optuna_daub.tabular.table import numbers_among
from optuna_daub.tabular.text_files import as_in_file
from optuna_daub.tabular.text_files import has_names
from optuna_daub.tabular.text_files import read_text
from optuna_daub.tabular.text_files import told_truth
from optuna_daub.tabular.text_files import without_names


TEXT = (".csv", ".tsv", ".tab", ".txt")
"""Endings of text files. Their separator is found from their content."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx",)
READABLE = "CSV and TSV (also .gz, .bz2, .xz, .zip), Parquet (.parquet) and Excel (.xlsx)"
MAX_LINES = 1000
"""Number of lines of an Excel file that are read to find names. In a frame, so many cells of each
column of text are read to find the decimal sign."""
MOST_EXACT = 2**53
"""Largest number below which a float tells all whole numbers apart."""


def read_table(source: Any, *, header: Header = "auto", learnt: Learnt | None = None) -> Table:
    """Return a table as a data frame of pandas.

    Args:
        source: path of a file, or a frame of pandas, polars or pyarrow, or anything else that
            `pandas.DataFrame` takes.
        header: "yes" if the first line of a text or Excel file holds the names of the columns,
            else "no". "auto" decides by its content, and adds a note if it finds no names.
        learnt: what a model learnt from the table of its `fit`, to read this one alike.

    Raises:
        TableError: if the file is missing or of an unknown kind, the table has no rows, a text
            file to learn from has one column, or two columns have the same name.
        ImportError: if a package for the kind of file is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "excel.csv"
    ...     _ = path.write_text("size;colour\\n1,5;red\\n2,25;blue\\n", encoding="utf-8-sig")
    ...     table = read_table(path)
    >>> table.frame.to_dict("list")
    {'size': [1.5, 2.25], 'colour': ['red', 'blue']}
    >>> table.notes
    ('Read with semicolons between the columns and decimal commas.',)
    """
    if not isinstance(header, str) or header not in ("auto", "yes", "no"):
        raise ValueError(f'`header` must be "auto", "yes" or "no", but got {brief(header)}.')
    if isinstance(source, str | Path):
        table = _read_file(Path(source), header, learnt)
    else:
        table = Table(_as_pandas(source))
    frame = table.frame
    names = [*map(text_of, frame.columns)]  # of several levels too
    check_names(names, learnt)
    if len(frame) == 0:
        none = "A table must have rows to learn from, but this one has none."
        none = "A table must have rows to predict, but this one has none." if learnt else none
        raise TableError(" ".join([none, *table.notes]))  # one may tell of another sheet
    notes = (*table.notes, *_left_out(frame.index))
    frame = _without_arrow(frame.set_axis(names, axis=1).reset_index(drop=True))
    if not table.is_from_text:
        table = _read_words(frame, learnt)
        frame = table.frame
    return replace(table, frame=frame, notes=notes)


def _left_out(index: Any) -> Iterator[str]:
    """Yield a note on an index with a name, or of other values than whole numbers."""
    named = [f"`{text_of(name)}`, " for name in index.names if name is not None]
    if named or not imported("pandas").api.types.is_integer_dtype(index.dtype):
        yield f"Left out: {''.join(named)}the table's index (`reset_index()` makes it a column)."


def _read_words(frame: Any, learnt: Learnt | None) -> Table:
    """Return a frame with its text read as in a file. Blank cells are missing.

    Numbers in text are rewritten only if they have decimal commas, and no other column has points.
    """
    frame = frame.copy(deep=False)
    used = [name for name in frame.columns if not learnt or name in learnt.columns]
    for name in used:
        is_blank = _is_blank(frame[name])
        if is_blank.any():
            frame[name] = frame[name].mask(is_blank).infer_objects()
    text = [name for name in used if is_text(frame[name])]
    others = [name for name in text if not learnt or name not in learnt.text]
    columns = [frame[name] for name in used]
    cells = [frame[name].dropna().head(MAX_LINES).to_list() for name in others]
    signs = signs_of_numbers(cells, ",", learnt.signs if learnt else NO_SIGNS)
    may_be = learnt.signs.decimal == "," if learnt else not any(map(_is_plain, columns))
    if signs.decimal == "," and may_be:
        return Table(frame, (), signs, as_in_file(frame, others, signs, learnt)[1])
    return Table(frame, written=told_truth(frame, others, learnt))


def _is_blank(column: Any) -> NDArray[np.bool_]:
    """Return True for cells of blanks only, which Excel may have among numbers."""
    if is_text(column):
        return np.asarray((column.str.strip() == "").fillna(False), bool)
    if column.dtype != object:
        return np.zeros(len(column), bool)
    return np.array([isinstance(cell, str) and not cell.strip() for cell in column], bool)


def _is_plain(column: Any) -> bool:
    """Return whether a column has fractions, or text with commas between thousands."""
    if is_text(column):
        has_commas = column.str.contains(r"^\s*[-+]?\d{1,3}(?:,\d{3})+", na=False).any()
        found = numbers_among(column) if has_commas else None
        return found is not None and not len(found[1])
    if column.dtype.kind != "f":
        return False
    rest = column.dropna().to_numpy(dtype=np.float64)
    return bool((np.rint(rest) != rest).any())


def _as_pandas(source: Any) -> Any:
    pandas = imported("pandas")
    if isinstance(source, pandas.DataFrame):
        return source
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):  # polars, lazy
        source = source.collect()
    if hasattr(source, "read") or hasattr(source, "read_all"):  # such as an upload
        raise TableError(
            "A table must be the path of a file or a frame of pandas, polars or pyarrow, but got "
            f"{brief(source)}: pass its path, or what `pandas.read_csv` or `read_all` makes of it."
        )
    try:
        if hasattr(source, "to_pandas"):  # polars, pyarrow and most others
            return _with_exact_wholes(source.to_pandas(), source)
        if source is None:
            raise TypeError  # for pandas an empty frame
        return pandas.DataFrame(source)
    except ImportError:  # polars needs pyarrow for this
        raise
    except Exception as error:  # also of an object whose items cannot be read
        raise TableError(
            "A table must be the path of a file or a frame of pandas, polars or pyarrow, but got "
            f"{brief(source)}, which pandas cannot hold: {message_of(error).rstrip('.')}."
        ) from error


def _with_exact_wholes(frame: Any, source: Any) -> Any:
    """Return a frame whose whole numbers beyond 2^53 are exact, also in columns with gaps.

    pandas makes floats of these, so different ones may become equal.
    """
    pandas = imported("pandas")
    for at, name in enumerate(frame.columns):
        column = frame.iloc[:, at]
        if not _may_be_inexact(column):
            continue
        given = source[name]
        cells = given.to_pylist() if hasattr(given, "to_pylist") else given.to_list()
        if all(cell is None or isinstance(cell, int) for cell in cells):
            frame.isetitem(at, pandas.Series(pandas.array(cells, dtype="Int64"), frame.index))
    return frame


def _may_be_inexact(column: Any) -> bool:
    """Return whether a column has floats that may stand for other whole numbers."""
    if column.dtype.kind != "f" or not (column.abs() > MOST_EXACT).any():
        return False
    return bool((column.dropna() % 1 == 0).all())


def _without_arrow(frame: Any) -> Any:
    """Return a frame with columns of Arrow's types as those of pandas."""
    pandas = imported("pandas")
    arrow = getattr(pandas, "ArrowDtype", ())
    frame = frame.copy(deep=False)
    for at, kind in enumerate(frame.dtypes):
        if isinstance(kind, arrow):
            column = frame.iloc[:, at]
            whole = f"{'U' * (kind.kind == 'u')}Int{8 * kind.itemsize}"
            given = column.array.__arrow_array__()
            if kind.kind in "iu":  # exact, unlike `astype`
                found = pandas.api.types.pandas_dtype(whole).__from_arrow__(given)
            else:
                found = given.to_pandas().array
            frame.isetitem(at, pandas.Series(found, frame.index))
    return frame


def _read_file(path: Path, header: Header, learnt: Learnt | None) -> Table:
    pandas = imported("pandas")
    _check_is_file(path)
    endings = [ending.lower() for ending in path.suffixes]
    ending = endings[-1] if endings else ""
    try:
        if ending in PARQUET:
            frame = pandas.read_parquet(path)
            if any(_may_be_inexact(frame[name]) for name in frame.columns):
                frame = pandas.read_parquet(path, dtype_backend="pyarrow")
            return Table(frame)
        if ending in EXCEL:
            return _read_excel(path, header, learnt)
        if ending in TEXT or (ending in COMPRESSED and {*endings[:-1]} & {*TEXT}):
            return read_text(path, header, learnt)
    except (ImportError, TableError):
        raise
    except Exception as error:  # libraries raise many kinds for a broken file
        if isinstance(error, OSError) and error.strerror:  # such as "Permission denied"
            raise TableError(f"{path} cannot be read: {error.strerror}.") from error
        raise TableError(
            f"{path} cannot be read as a {ending} file: it is damaged, locked by a password or of "
            f"another kind ({message_of(error).rstrip('.')}). Save it anew."
        ) from error
    way_out = "save it as one of these, or rename it if it is one"
    if ending in COMPRESSED:
        way_out = f"if it holds CSV, rename it to {path.stem}.csv{ending}"
    raise TableError(f"A table must be a file of {READABLE}, but got {path.name}: {way_out}.")


def _check_is_file(path: Path) -> None:
    try:
        what = "" if path.is_file() else "a folder" if path.is_dir() else "no file"
        if what == "no file" and path.exists():
            what = "a pipe or a device: save its content to a file"
    except OSError as error:  # the name is too long
        raise TableError(f"A table must be a file, but got {brief(str(path))}.") from error
    if what:
        raise TableError(f"A table must be a file, but {path} is {what}.")
    if path.stat().st_size == 0:
        raise TableError(f"A table must have rows to learn from, but {path} is empty.")


def _read_excel(path: Path, header: Header, learnt: Learnt | None) -> Table:
    pandas = imported("pandas")
    imported("openpyxl")
    with pandas.ExcelFile(path, engine="openpyxl") as book:
        lines = pandas.read_excel(book, header=None, nrows=MAX_LINES, dtype=object).to_numpy()
        rows = [["" if pandas.isna(cell) else str(cell) for cell in line] for line in lines]
        if rows and not has_names(rows, header, learnt):
            table = without_names(_excel_frame(book, header=None), header)
        else:
            names = filter(None, rows[0] if rows else ())
            check_names(names, learnt, NO_NAMES if header == "auto" else "")
            table = Table(_excel_frame(book, header=0))
        sheets = book.sheet_names
    if len(sheets) > 1:
        note = f"Only the first of {len(sheets)} sheets is read, {brief(sheets[0])}."
        table = replace(table, notes=(*table.notes, note))
    return table


def _excel_frame(book: Any, header: int | None) -> Any:
    """Return the table in an Excel file. In a column of text, words such as "None" are kept."""
    pandas = imported("pandas")
    frame = pandas.read_excel(book, header=header, keep_default_na=False, na_values=[""])
    for name in frame.columns:
        if pandas.api.types.is_object_dtype(frame[name]) or is_text(frame[name]):
            is_missing = frame[name].map(str).isin(MISSING_WORDS)
            rest = frame[name][~is_missing & frame[name].notna()]
            if is_missing.any() and not any(isinstance(cell, str) for cell in rest):
                frame[name] = frame[name].astype(object).mask(is_missing).infer_objects()
    return frame
