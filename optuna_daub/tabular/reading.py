"""Reading of files and frames of any library as data frames of pandas."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import zipfile
from collections import Counter
from collections.abc import Collection
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from itertools import zip_longest
from pathlib import Path
from typing import IO
from typing import Any
from typing import Literal
from typing import NamedTuple
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
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}

_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_GROUPS = re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+,\d+\s*")
_GROUPS_BY = {
    ".": re.compile(r"\s*[-+]?\d{1,3}(\.\d{3})+(,\d+)?\s*"),
    ",": re.compile(r"\s*[-+]?\d{1,3}(,\d{3})+(\.\d+)?\s*"),
}
"""Patterns of numbers with a sign between thousands, by that sign."""


class TableError(ValueError):
    """The error for a table from which nothing can be learnt. One sentence says why."""


class Signs(NamedTuple):
    """The signs in a text file's numbers; "" for a sign that no number has."""

    decimal: str
    thousands: str


NO_SIGNS = Signs("", "")


@dataclass(frozen=True)
class Table:
    """A table, with notes from reading it."""

    frame: Any
    """Data frame of pandas; column names are distinct strings."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""
    signs: Signs = NO_SIGNS


@dataclass(frozen=True)
class Learnt:
    """Facts from a model's table for reading others like it. One column is enough for these."""

    signs: Signs
    text: Collection[str]
    """Names of the columns of text. Their cells may all look like numbers in another table."""


@dataclass(frozen=True)
class _Text:
    """The format of a text file."""

    encoding: str
    separator: str
    signs: Signs
    skipped: int
    """Number of lines before the header: 1 for Excel's `sep=;`, else 0."""
    has_header: bool
    is_text: tuple[bool, ...]
    """For each column, whether it is text although a number could be read from it."""
    has_open_ends: bool
    """True if all lines but the header end with a separator."""


def read_table(source: Any, *, header: Header = "auto", learnt: Learnt | None = None) -> Table:
    """Return a table as a data frame of pandas.

    Args:
        source: path of a file, or a frame of pandas, polars or pyarrow, or anything else that
            `pandas.DataFrame` takes.
        header: "yes" if the first line of a text file holds the names of the columns, else "no".
            "auto" decides by its content, and adds a note if it finds no names.
        learnt: what a model learnt from the table of its `fit`, to read this one alike.

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
        table = _read_file(Path(source), header, learnt)
    else:
        table = Table(_as_pandas(source))
    frame = table.frame
    names = [*map(text_of, frame.columns)]  # of several levels too
    frame = frame.set_axis(names, axis=1)
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        raise TableError(f"Columns must have different names, but {brief(twice)} is there twice.")
    if len(frame) == 0:
        raise TableError("A table must have rows to learn from, but this one has none.")
    if not isinstance(frame.index, type(frame.reset_index(drop=True).index)):
        frame = frame.reset_index(drop=True)  # names of rows are no feature
    return replace(table, frame=frame)


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


def _read_file(path: Path, header: Header, learnt: Learnt | None) -> Table:
    pandas = imported("pandas")
    _check_is_file(path)
    endings = [ending.lower() for ending in path.suffixes]
    ending = endings[-1] if endings else ""
    try:
        if ending in PARQUET:
            return Table(pandas.read_parquet(path))
        if ending in EXCEL:
            imported("openpyxl" if ending == ".xlsx" else "xlrd")
            return Table(pandas.read_excel(path, header=None if header == "no" else 0))
        if ending in TEXT or (ending in COMPRESSED and {*endings[:-1]} & {*TEXT}):
            return _read_text(path, header, learnt)
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


def _read_text(path: Path, header: Header, learnt: Learnt | None) -> Table:
    how = _looked_at(path, header, learnt)
    try:
        frame = _parsed(path, how, how.encoding, learnt)
        encoding = how.encoding
    except UnicodeDecodeError:
        encoding = "cp1252"
        frame = _parsed(path, how, encoding, learnt)
    notes = []
    if how.separator != "," or how.signs.decimal == ",":
        signs = " and decimal commas" if how.signs.decimal == "," else ""
        notes.append(f"Read with {SEPARATORS[how.separator]} between the columns{signs}.")
    if encoding == "cp1252":
        notes.append("The file is not UTF-8: read as Windows-1252.")
    if not how.has_header:
        frame.columns = _names(frame.shape[1])
        said = f"The first line looks like data, so columns are called {', '.join(frame.columns)}"
        if header == "no":
            said = f"Columns are called {', '.join(frame.columns)}"
        if frame.shape[1] > 4:
            said = said.replace(", ".join(frame.columns), f"column_1 ... {frame.columns[-1]}")
        notes.append(said + ("." if header == "no" else ' (header="yes" if it holds names).'))
    return Table(frame, tuple(notes), how.signs)


def _parsed(path: Path, how: _Text, encoding: str, learnt: Learnt | None) -> Any:
    """Return the data frame of a text file; columns without a header have numbers as names."""
    pandas = imported("pandas")
    options: dict[str, Any] = {
        "sep": how.separator,
        "decimal": how.signs.decimal or ".",
        "thousands": how.signs.thousands or None,
        "skiprows": how.skipped,
        "header": 0 if how.has_header else None,
        "index_col": False if how.has_open_ends else None,
        "low_memory": False,
        "skipinitialspace": True,
        "encoding": encoding,
    }
    keys, names = [*range(len(how.is_text))], _names(len(how.is_text))
    if how.has_header:
        keys = names = [*pandas.read_csv(path, nrows=0, **options).columns]
    text = {name for name, is_it in zip(names, how.is_text, strict=False) if is_it}
    text |= {*learnt.text} if learnt else set()
    types = {key: str for key, name in zip(keys, names, strict=True) if name in text}
    frame = pandas.read_csv(path, dtype=types, **options)
    for key in frame.columns if learnt else ():
        if key not in types and pandas.api.types.is_string_dtype(frame[key]):
            # A word among numbers leaves all of them as they are written.
            plain = frame[key].str.replace(how.signs.thousands, "")
            plain = plain.str.replace(how.signs.decimal or ".", ".")
            is_number = frame[key].str.fullmatch(r"[\s\d.,+-]+", na=False)
            frame[key] = plain.where(is_number, frame[key])
    return frame


def _names(count: int) -> list[str]:
    return [f"column_{at}" for at in range(1, count + 1)]


def _looked_at(path: Path, header: Header, learnt: Learnt | None) -> _Text:
    """Return the format of a text file, from its first lines."""
    encoding, told, lines = _first_lines(path)
    separator = told if told in SEPARATORS else _separator(lines, path, learnt)
    first, *rows = csv.reader(lines, delimiter=separator)
    has_header = header == "yes" or (header == "auto" and not _looks_like_data([first, *rows]))
    has_open_ends = (
        has_header and bool(rows) and all(r[len(first) :] in ([""], [" "]) for r in rows)
    )
    cells = [cell for row in rows for cell in row if cell]
    signs = _signs_of_numbers(cells, separator, learnt.signs if learnt else NO_SIGNS)
    columns = [*zip_longest(*(rows if has_header else [first, *rows]), fillvalue="")]
    if has_header and not has_open_ends:
        # Cells beyond the names come first: they name the rows.
        columns = columns[max(len(columns) - len(first), 0) :]
    is_text = tuple(_is_text(column, signs) for column in columns)
    return _Text(encoding, separator, signs, int(told != ""), has_header, is_text, has_open_ends)


def _first_lines(path: Path) -> tuple[str, str, list[str]]:
    """Return a text file's encoding, the separator in Excel's line `sep=;`, and lines after it."""
    with _opened(path) as file:
        sample = file.read(SAMPLE) + file.readline() + file.readline()  # whole lines, two at least
    encoding = _encoding(sample)
    text = sample.decode(encoding, errors="ignore")
    lines = text.splitlines()
    told = re.fullmatch(r'"?sep=(.)"?', lines[0].strip()) if lines else None
    lines = [line for line in lines[1 if told else 0 :] if line.strip()]
    if not lines:
        raise TableError(f"A table must have rows to learn from, but {path} is empty.")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    return encoding, told[1] if told else "", lines


def _signs_of_numbers(cells: Sequence[str], separator: str, known: Signs) -> Signs:
    """Return the signs in the numbers among cells. Those known from another table are kept."""
    decimal = "." if separator == "," else known.decimal
    if not decimal:
        has_points = any("." in cell and _NUMBER.fullmatch(cell) for cell in cells)
        has_commas = not has_points and any(map(_COMMA.fullmatch, cells))
        if has_commas or any(map(_GROUPS.fullmatch, cells)):
            decimal = ","
        elif has_points:
            decimal = "."
    thousands = known.thousands if known.decimal == decimal else ""
    sign = "." if decimal == "," else ","
    if any(sign in cell and _GROUPS_BY[sign].fullmatch(cell) for cell in cells):
        thousands = sign
    return Signs(decimal, thousands)


def _is_text(cells: Sequence[str], signs: Signs) -> bool:
    """Return whether most cells with a sign between thousands are no numbers, such as dates."""
    if not signs.thousands:
        return False
    with_it = [cell for cell in cells if signs.thousands in cell]
    numbers = [*filter(_GROUPS_BY[signs.thousands].fullmatch, with_it)]
    return 2 * len(numbers) < len(with_it)


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


def _separator(lines: Sequence[str], path: Path, learnt: Learnt | None) -> str:
    """Return the separator that gives most lines as many cells as the first one."""
    found = {}
    for sign in SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=sign)]
        if widths and widths[0] > 1:
            alike = sum(width == widths[0] for width in widths) / len(widths)
            found[sign] = (alike, widths[0])
    if not found and learnt:  # the model may need one column only
        return next((sign for sign in SEPARATORS if not any(sign in x for x in lines)), ",")
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
