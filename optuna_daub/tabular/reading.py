"""Reading of files and frames of any library as data frames of pandas."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from itertools import zip_longest
from pathlib import Path
from typing import IO
from typing import Any
from typing import Literal
from typing import cast

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import text_of


Header = Literal["auto", "yes", "no"]

TEXT = (".csv", ".tsv", ".tab", ".txt")
"""Endings of text files. Their separator is found from their content."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xls")
READABLE = "CSV and TSV (also .gz, .bz2, .xz, .zip), Parquet (.parquet) and Excel (.xlsx)"

SAMPLE = 1 << 18
"""Bytes that are read to find encoding, separator and decimal sign."""
LINES = 200
"""Lines of the sample that are split into cells."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}

_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+,\d+\s*")
_GROUPS_BY_COMMA = re.compile(r"\s*[-+]?\d{1,3}(,\d{3})+(\.\d+)?\s*")


class TableError(ValueError):
    """The error for a table from which nothing can be learnt. One sentence says why."""


@dataclass(frozen=True)
class Table:
    """A table, with notes from reading it."""

    frame: Any
    """Data frame of pandas; column names are distinct strings."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""


@dataclass(frozen=True)
class _Text:
    """The format of a text file."""

    encoding: str
    separator: str
    decimal: str
    thousands: str | None
    skipped: int
    """Number of lines before the header: 1 for Excel's `sep=;`, else 0."""
    has_header: bool
    first: tuple[str, ...]
    """The cells of the first line."""


def read_table(source: Any, *, header: Header = "auto") -> Table:
    """Return a table as a data frame of pandas.

    Args:
        source: path of a file, or a frame of pandas, polars or pyarrow, or anything else that
            `pandas.DataFrame` takes.
        header: "yes" if the first line of a text file holds the names of the columns, else "no".
            "auto" decides by its content, and adds a note if it finds no names.

    Raises:
        TableError: if the file is missing or of an unknown kind, the table has no rows or fewer
            than two columns, or two columns have the same name.
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
        frame, notes = _read_file(Path(source), header)
    else:
        frame, notes = _as_pandas(source), []
    names = [*map(text_of, frame.columns)]  # of several levels too
    frame = frame.set_axis(names, axis=1)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise TableError(f"Columns must have different names, but {brief(twice)} is there twice.")
    if len(frame) == 0:
        raise TableError("A table must have rows to learn from, but this one has none.")
    if not isinstance(frame.index, type(frame.reset_index(drop=True).index)):
        frame = frame.reset_index(drop=True)  # names of rows are no feature
    return Table(frame, tuple(notes))


def _as_pandas(source: Any) -> Any:
    pandas = imported("pandas")
    if isinstance(source, pandas.DataFrame):
        return source
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):  # polars, lazy
        source = source.collect()
    if hasattr(source, "to_pandas"):  # polars, pyarrow and most others
        return source.to_pandas()
    try:
        if source is None:
            raise TypeError  # for pandas an empty frame
        return pandas.DataFrame(source)
    except Exception as error:  # also of an object whose items cannot be read
        raise TableError(
            "A table must be the path of a file or a frame of pandas, polars or pyarrow, but got "
            f"{brief(source)}."
        ) from error


def _read_file(path: Path, header: Header) -> tuple[Any, list[str]]:
    pandas = imported("pandas")
    _check_is_file(path)
    endings = [ending.lower() for ending in path.suffixes]
    ending = endings[-1] if endings else ""
    try:
        if ending in PARQUET:
            return pandas.read_parquet(path), []
        if ending in EXCEL:
            imported("openpyxl" if ending == ".xlsx" else "xlrd")
            return pandas.read_excel(path, header=None if header == "no" else 0), []
        if ending in TEXT or (ending in COMPRESSED and {*endings[:-1]} & {*TEXT}):
            return _read_text(path, header)
    except (ImportError, TableError):
        raise
    except Exception as error:  # libraries raise many kinds for a broken file
        reason = str(error).strip().splitlines()[0]
        raise TableError(f"{path} cannot be read as a {ending} file: {reason}") from error
    raise TableError(f"A table must be a file of {READABLE}, but got {path.name}.")


def _check_is_file(path: Path) -> None:
    try:
        what = "" if path.is_file() else "a folder" if path.is_dir() else "no file"
    except OSError as error:  # the name is too long
        raise TableError(f"A table must be a file, but got {brief(str(path))}.") from error
    if what:
        raise TableError(f"A table must be a file, but {path} is {what}.")
    if path.stat().st_size == 0:
        raise TableError(f"A table must have rows to learn from, but {path} is empty.")


def _read_text(path: Path, header: Header) -> tuple[Any, list[str]]:
    pandas = imported("pandas")
    how = _looked_at(path, header)
    options: dict[str, Any] = {
        "sep": how.separator,
        "decimal": how.decimal,
        "thousands": how.thousands,
        "skiprows": how.skipped,
        "header": 0 if how.has_header else None,
        "low_memory": False,
        "skipinitialspace": True,
    }
    encoding = how.encoding
    try:
        frame = pandas.read_csv(path, encoding=encoding, **options)
    except UnicodeDecodeError:
        encoding = "cp1252"
        frame = pandas.read_csv(path, encoding=encoding, **options)
    notes = []
    if how.separator != "," or how.decimal != ".":
        signs = " and decimal commas" if how.decimal == "," else ""
        notes.append(f"Read with {SEPARATORS[how.separator]} between the columns{signs}.")
    if encoding == "cp1252":
        notes.append("The file is not UTF-8: read as Windows-1252.")
    if not how.has_header:
        frame.columns = [f"column_{at}" for at in range(1, frame.shape[1] + 1)]
        said = f"The first line looks like data, so columns are called {', '.join(frame.columns)}"
        if header == "no":
            said = f"Columns are called {', '.join(frame.columns)}"
        if frame.shape[1] > 4:
            said = said.replace(", ".join(frame.columns), f"column_1 ... {frame.columns[-1]}")
        notes.append(said + ("." if header == "no" else ' (header="yes" if it holds names).'))
    return frame, notes


def _looked_at(path: Path, header: Header) -> _Text:
    """Return the format of a text file, from its first lines."""
    with _opened(path) as file:
        sample = file.read(SAMPLE)
    encoding = _encoding(sample)
    text = sample.decode(encoding, errors="ignore")
    lines = text.splitlines()
    if len(sample) == SAMPLE:
        lines = lines[:-1]  # the last line of a sample may be incomplete
    skipped = 0
    told = re.fullmatch(r'"?sep=(.)"?', lines[0].strip()) if lines else None
    if told:
        lines, skipped = lines[1:], 1
    lines = [line for line in lines if line.strip()][:LINES]
    if not lines:
        raise TableError(f"A table must have rows to learn from, but {path} is empty.")
    separator = told[1] if told and told[1] in SEPARATORS else _separator(lines, path)
    rows = [*csv.reader(lines, delimiter=separator)]
    cells = [cell for row in rows[1:] for cell in row if cell]
    decimal, thousands = _signs_of_numbers(cells, separator)
    has_header = header == "yes" or (header == "auto" and not _looks_like_data(rows))
    return _Text(encoding, separator, decimal, thousands, skipped, has_header, tuple(rows[0]))


def _signs_of_numbers(cells: Sequence[str], separator: str) -> tuple[str, str | None]:
    """Return the decimal sign of the numbers among cells, and the sign between thousands."""
    if separator != ",":
        if any(map(_GROUPS.fullmatch, cells)):
            return ",", "."
        has_points = any("." in cell and _NUMBER.fullmatch(cell) for cell in cells)
        if any(map(_COMMA.fullmatch, cells)) and not has_points:
            return ",", None
    if any("," in cell and _GROUPS_BY_COMMA.fullmatch(cell) for cell in cells):
        return ".", ","
    return ".", None


def _opened(path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".bz2":
            return bz2.open(path)
        case ".xz":
            return lzma.open(path)
        case ".zip":
            archive = zipfile.ZipFile(path)
            if len(archive.namelist()) != 1:
                raise TableError(
                    f"An archive must hold one file, but {path} holds {len(archive.namelist())}."
                )
            return archive.open(archive.namelist()[0])
    return path.open("rb")


def _encoding(sample: bytes) -> str:
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for cut in range(4):  # the sample may end within a character
        try:
            sample[: len(sample) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return "utf-8-sig"
    return "cp1252"


def _separator(lines: Sequence[str], path: Path) -> str:
    """Return the separator that gives most lines as many cells as the first one."""
    found = {}
    for sign in SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=sign)]
        if widths and widths[0] > 1:
            alike = sum(width == widths[0] for width in widths) / len(widths)
            found[sign] = (alike, widths[0])
    if not found:
        raise TableError(
            f"A table must have at least two columns, but no line of {path} is divided by "
            f"{', '.join(SEPARATORS.values())}."
        )
    return max(found, key=lambda sign: found[sign])


def _looks_like_data(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line is data: at least half of it are numbers above numbers.

    Different whole numbers in rising order are names, such as years.
    """
    if len(rows) < 2:
        return False
    columns = [*zip_longest(*rows, fillvalue="")][: len(rows[0])]
    numeric = [
        first
        for first, *others in columns
        if (below := [*filter(None, others)]) and all(map(_NUMBER.fullmatch, below))
    ]
    over = [*filter(_NUMBER.fullmatch, numeric)]
    if not over or 2 * len(over) < len(numeric):
        return False
    if len(over) > 1 and all(cell.strip().isdigit() for cell in over):
        numbers = [int(cell) for cell in over]
        return any(later <= first for first, later in pairwise(numbers))
    return True


def imported(package: str) -> Any:
    """Return a package of the extra `tabular`.

    Raises:
        ImportError: if it is not installed, with the line that installs it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ImportError(
            f"Tables need {name}, which is not installed: pip install 'optuna-daub[tabular]'"
        ) from error
