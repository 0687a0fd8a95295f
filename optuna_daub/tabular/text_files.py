"""Reading of text files: CSV and its relatives. Their format is found from their content."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import chain
from itertools import pairwise
from itertools import zip_longest
from pathlib import Path
from typing import Any

from optuna_daub.core.checks import brief
from optuna_daub.tabular.lines import SEPARATORS
from optuna_daub.tabular.lines import fault_of
from optuna_daub.tabular.lines import first_lines
from optuna_daub.tabular.lines import no_text
from optuna_daub.tabular.lines import opened
from optuna_daub.tabular.signs import COMMA
from optuna_daub.tabular.signs import GROUPS_BY
from optuna_daub.tabular.signs import NUMBER
from optuna_daub.tabular.signs import bare
from optuna_daub.tabular.signs import signs_of_numbers
from optuna_daub.tabular.signs import with_thousands
from optuna_daub.tabular.table import MISSING_WORDS
from optuna_daub.tabular.table import MONEY
from optuna_daub.tabular.table import NEARLY_ALL
from optuna_daub.tabular.table import NO_NAMES
from optuna_daub.tabular.table import NO_SIGNS
from optuna_daub.tabular.table import UNIT
from optuna_daub.tabular.table import Header
from optuna_daub.tabular.table import Learnt
from optuna_daub.tabular.table import Signs
from optuna_daub.tabular.table import Table
from optuna_daub.tabular.table import TableError
from optuna_daub.tabular.table import check_names
from optuna_daub.tabular.table import imported
from optuna_daub.tabular.table import is_text
from optuna_daub.tabular.table import plain_numbers


_CALLED = {".": "points", ",": "commas"}
_CODE = re.compile(r"\s*[-+]?0\d")
"""Pattern of the start of a number that loses zeros when it is read, such as 007."""
_NAMELESS = re.compile(r"column_\d+")
"""Pattern of the name of a column without one."""
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1f]")
"""Pattern of a sign that no text has."""
_TRUTH = dict.fromkeys(("True", "TRUE", "true"), True) | dict.fromkeys(
    ("False", "FALSE", "false"), False
)
"""Words for true and false, which pandas reads as such in a file."""
_NO_FLOAT = rf"^[-+]?0\d|(?:[{MONEY}%]|{UNIT})$"
"""Pattern of codes such as 007, and of numbers with a unit."""


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
    is_written: tuple[bool, ...]
    """For each column, whether pandas would lose how its numbers or truth values are written."""
    has_open_ends: bool
    """True if all lines except the header end with a separator."""
    n_row_names: int
    """Number of cells of each line beyond the names. They come first, and name the rows."""


def read_text(path: Path, header: Header, learnt: Learnt | None) -> Table:
    """Return the table in a text file; arguments and errors are those of `read_table`."""
    how = _looked_at(path, header, learnt)
    how, frame, written = _decoded(path, how, learnt)
    notes = []
    if how.separator != "," or how.signs.decimal == ",":
        said = [f"{SEPARATORS[how.separator]} between the columns"]
        said += ["decimal commas"] if how.signs.decimal == "," else []
        said += [f"{_CALLED[sign]} between thousands" for sign in how.signs.thousands]
        notes.append(f"Read with {' and '.join(filter(None, [', '.join(said[:-1]), said[-1]]))}.")
    if how.encoding == "cp1252":
        notes.append("The file is not UTF-8: read as Windows-1252.")
    if n := how.n_row_names:
        cells = "cell of each line is" if n == 1 else f"{n} cells of each line are"
        note = (
            "The first line has fewer names than other lines have cells: the first "
            f"{cells} taken for the name of a row, and left out. Write a name above each column "
            "if that is wrong."
        )
        notes.append(note)
        if learnt:  # whose notes nobody reads
            warnings.warn(note, UserWarning, stacklevel=2)
    if not how.has_header:
        table = without_names(frame, header)
        frame, notes = table.frame, [*notes, *table.notes]
    return Table(frame, tuple(notes), how.signs, written, is_from_text=True)


def has_names(rows: Sequence[Sequence[str]], header: Header, learnt: Learnt | None) -> bool:
    """Return whether the first line of a file holds the names of the columns."""
    if header == "auto" and learnt and learnt.columns:
        if {*learnt.columns} <= {*rows[0]}:
            return True
        # A model of columns without names expects none, and one row cannot show it.
        if all(map(_NAMELESS.fullmatch, learnt.columns)) and any(map(NUMBER.fullmatch, rows[0])):
            return False
    return header == "yes" or (header == "auto" and not _looks_like_data(rows))


def without_names(frame: Any, header: Header) -> Table:
    """Return a table whose columns are named by their places, with a note."""
    frame.columns = names = _names(frame.shape[1])
    called = f"column_1 ... {names[-1]}" if len(names) > 4 else ", ".join(names)
    said = f"Columns are called {called}."
    if header == "auto":
        said = f"The first line looks like data, so columns are called {called}"
        said += ' (header="yes" if it holds names).'
    return Table(frame, (said,))


def _decoded(path: Path, how: _Text, learnt: Learnt | None) -> tuple[_Text, Any, dict[str, Any]]:
    """Return the format in which a text file could be read, and the results of `_parsed`."""
    for encoding in dict.fromkeys((how.encoding, "cp1252")):
        how = replace(how, encoding=encoding)
        try:
            return how, *_parsed(path, how, learnt)
        except UnicodeDecodeError:
            continue
        except imported("pandas").errors.ParserError as error:
            said = fault_of(
                path,
                encoding,
                how.separator,
                skipped=how.skipped,
                has_header=how.has_header,
                is_open="EOF inside string" in str(error),
            )
            cannot = f"{path} cannot be read as a {path.suffix} file"
            raise TableError(f"{cannot}: {said or error}") from error
    raise no_text(path)


def _parsed(path: Path, how: _Text, learnt: Learnt | None) -> tuple[Any, dict[str, Any]]:
    """Return a text file's data frame, and the original of rewritten columns.

    Columns without a header have numbers as names.
    """
    options = _options(how)
    keys, names = [*range(len(how.is_text))], _names(len(how.is_text))
    if how.has_header:
        keys = names = [*_csv(path, nrows=0, **options).columns]
    text = {name for name, is_it in zip(names, how.is_text, strict=False) if is_it}
    text |= {*learnt.text} if learnt else set()
    words = {key for key, name in zip(keys, names, strict=True) if name in text}
    odd = {key for key, is_it in zip(keys, how.is_written, strict=False) if is_it}
    types = dict.fromkeys(words | odd, str)
    frame = _read(path, keys, words if learnt else set(), dtype=types, **options)
    others = [key for key in keys if key not in words]
    if how.signs.thousands:
        _read_thousands(frame, others, how.signs)
    rest, written = as_in_file(frame, others, how.signs, learnt)
    if learnt:
        return frame, {}
    # A class may be called "None", so its column is read again.
    if kept := {key for key in (*rest, *words) if frame[key].hasnans}:
        again = _read(path, keys, kept, dtype=types, **options)
        for key in kept:
            frame[key] = again[key]
    written = {name: written[key] for key, name in zip(keys, names, strict=True) if key in written}
    return frame, written


def _read_thousands(frame: Any, keys: Iterable[Any], signs: Signs) -> None:
    """Read columns of numbers, some of which have signs between thousands."""
    for key in keys:
        if is_text(frame[key]) and (found := with_thousands(frame[key], signs)) is not None:
            frame[key] = found


def told_truth(frame: Any, keys: Iterable[Any], learnt: Learnt | None) -> dict[Any, Any]:
    """Read words for true and false, and return those columns as they are written.

    A column that was no text in `fit` may have other words too, which stay.
    """
    written = {}
    for key in keys:
        is_truth = frame[key].dropna().str.strip().isin(_TRUTH)
        if is_truth.all() or (learnt and is_truth.any()):
            cells = frame[key].astype(object)
            read = cells.map(lambda word: _TRUTH.get(word.strip(), word), na_action="ignore")
            written[key], frame[key] = frame[key], read
    return written


def as_in_file(
    frame: Any, keys: list[Any], signs: Signs, learnt: Learnt | None
) -> tuple[list[Any], dict[Any, Any]]:
    """Write numbers in text as Python does, units last, and read true and false.

    Return the names of other columns of text, and the original of rewritten ones. If a word is
    among numbers, all of them stay text.
    """
    text = [key for key in keys if is_text(frame[key])]
    words, written = [], told_truth(frame, text, learnt)
    for key in [key for key in text if key not in written]:
        plain, is_number = plain_numbers(frame[key], signs, are_known=learnt is not None)
        n_known = frame[key].notna().sum()
        if not learnt and is_number.sum() < NEARLY_ALL * n_known:
            words.append(key)
            continue
        written[key], frame[key] = frame[key], plain
        if is_number.sum() == n_known and not plain.str.contains(_NO_FLOAT).any():
            frame[key] = plain.astype(float)
    return words, written


def _options(how: _Text) -> dict[str, Any]:
    """Return the arguments of pandas for a text file."""
    return {
        "sep": how.separator,
        "decimal": how.signs.decimal or ".",
        "skiprows": how.skipped,
        "header": 0 if how.has_header else None,
        "index_col": False if how.has_open_ends else None,
        "low_memory": False,
        "skipinitialspace": True,
        "skip_blank_lines": len(how.is_text) > 1,  # in a file of one column they are its gaps
        "encoding": how.encoding,
    }


def _read(path: Path, keys: list[Any], words: Collection[Any], **options: Any) -> Any:
    """Return the data frame of a text file. In columns of words only empty cells are missing."""
    if words:
        options["keep_default_na"] = False
        options["na_values"] = {k: [""] if k in words else ["", *MISSING_WORDS] for k in keys}
        if options["index_col"] is False:  # pandas warns of the empty ends of lines
            options["usecols"] = range(len(keys))
    frame = _csv(path, **options)
    frame.index = imported("pandas").RangeIndex(len(frame))  # instead of names of rows
    return frame


def _csv(path: Path, **options: Any) -> Any:
    """Return what pandas reads in a text file."""
    with opened(path) as file:  # of an archive too, in which a system may have files of its own
        return imported("pandas").read_csv(file, **options)


def _names(count: int) -> list[str]:
    return [f"column_{at}" for at in range(1, count + 1)]


def _looked_at(path: Path, header: Header, learnt: Learnt | None) -> _Text:
    """Return the format of a text file, from its first lines."""
    encoding, told, lines = first_lines(path)
    separator = told if told in SEPARATORS else _separator(lines, path, learnt)
    first, *rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    has_header = has_names([first, *rows], header, learnt)
    if has_header:
        check_names(filter(None, first), learnt, NO_NAMES if header == "auto" else "")
    has_open_ends = (
        has_header and bool(rows) and all(r[len(first) :] in ([""], [" "]) for r in rows)
    )
    columns = [*zip_longest(*(rows if has_header else [first, *rows]), fillvalue="")]
    signs = signs_of_numbers(columns, separator, learnt.signs if learnt else NO_SIGNS)
    n_row_names = 0
    if has_header and rows and not has_open_ends:
        n_row_names = max(len(rows[0]) - len(first), 0)  # as pandas counts them
        columns = columns[n_row_names:]
    is_text = tuple(_is_text(column, signs) for column in columns)
    is_written = tuple(map(_is_written, columns))
    skipped = int(told != "")
    return _Text(
        encoding,
        separator,
        signs,
        skipped,
        has_header,
        is_text,
        is_written,
        has_open_ends,
        n_row_names,
    )


def _is_text(cells: Sequence[str], signs: Signs) -> bool:
    """Return whether most cells with the sign of thousands are no numbers (but dates, say)."""
    if not signs.thousands:
        return False
    with_it = [bare(cell) for cell in cells if signs.thousands in cell]
    numbers = [*filter(GROUPS_BY[signs.thousands].fullmatch, with_it)]
    return 2 * len(numbers) < len(with_it)


def _is_written(cells: Sequence[str]) -> bool:
    """Return whether a cell is a code such as 007, or all are true or false, as words."""
    known = [cell for cell in cells if cell and cell not in MISSING_WORDS]
    are_plain = {*known} <= {"True", "False"}
    return any(map(_CODE.match, known)) or (not are_plain and {*known} <= {*_TRUTH})


def _separator(lines: Sequence[str], path: Path, learnt: Learnt | None) -> str:
    """Return the separator that gives most lines as many cells as the first one."""
    found = {}
    for sign in SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=sign, skipinitialspace=True)]
        if widths and widths[0] > 1:
            alike = sum(width == widths[0] for width in widths) / len(widths)
            # Commas may be decimal ones in a file that another sign divides as well.
            cells = chain.from_iterable(csv.reader(lines, delimiter=sign, skipinitialspace=True))
            found[sign] = (alike, any(map(COMMA.fullmatch, cells)), widths[0])
    if not found and learnt:  # the model may need one column only
        return next((sign for sign in SEPARATORS if not any(sign in x for x in lines)), ",")
    if not found and _CONTROL.search(lines[0]):
        raise no_text(path)
    if not found:
        raise TableError(
            f"A table must have at least two columns, but the first line of {path}, "
            f"{brief(lines[0])}, is not divided by {', '.join(SEPARATORS.values())}: remove lines "
            "above the names, if there are any."
        )
    return max(found, key=lambda sign: found[sign])


def _looks_like_data(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line is data: at least half of it are numbers above numbers.

    Different whole numbers in rising or falling order are names, such as years.
    """
    if len(rows) < 2:
        return False
    columns = [*zip_longest(*rows, fillvalue="")][: len(rows[0])]
    numeric = [
        first
        for first, *others in columns
        if (below := [*filter(None, others)]) and all(map(NUMBER.fullmatch, below))
    ]
    over = [*filter(NUMBER.fullmatch, numeric)]
    if not over or 2 * len(over) < len(numeric):
        return False
    if len(over) > 1 and all(cell.strip().isdigit() for cell in over):
        steps = [int(later) - int(first) for first, later in pairwise(over)]
        return min(steps) <= 0 <= max(steps)
    return True
