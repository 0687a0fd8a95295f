"""Lines of text files: how they are opened and decoded, and what is wrong with them."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import zipfile
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO
from typing import cast

from optuna_daub.core.checks import brief
from optuna_daub.tabular.table import TableError


SAMPLE = 1 << 18
"""Bytes that are read to find encoding, separator and decimal sign."""
_OF_MACOS = "__MACOSX/"
"""Folder of a system's own files in an archive."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def first_lines(path: Path) -> tuple[str, str, list[str]]:
    """Return a text file's encoding, the separator in Excel's line `sep=;`, and later lines."""
    with opened(path) as file:
        sample = file.read(SAMPLE) + file.readline() + file.readline()  # whole lines, two at least
    encoding = encoding_of(sample)
    text = sample.decode(encoding, errors="ignore")
    lines = text.splitlines()
    told = re.fullmatch(r'"?sep=(.)"?', lines[0].strip()) if lines else None
    lines = [line for line in lines[1 if told else 0 :] if line.strip()]
    if not lines:
        raise TableError(f"A table must have rows to learn from, but {path} is empty.")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    return encoding, told[1] if told else "", lines


def opened(path: Path) -> IO[bytes]:
    """Return an open text file, decompressed."""
    match path.suffix.lower():
        case ".gz":
            return cast(IO[bytes], gzip.open(path))
        case ".bz2":
            return bz2.open(path)
        case ".xz":
            return lzma.open(path)
        case ".zip":
            archive = zipfile.ZipFile(path)
            names = [x for x in archive.namelist() if x[-1] != "/" and not x.startswith(_OF_MACOS)]
            if len(names) != 1:
                raise TableError(
                    f"An archive must hold one file, but {path} holds {len(names)}: unpack it, "
                    "and give the path of the table."
                )
            return archive.open(names[0])
    return path.open("rb")


def encoding_of(sample: bytes) -> str:
    """Return the encoding of a text file that begins so."""
    if sample.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return "utf-32" if sample[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") else "utf-16"
    zeros = [sample[at:SAMPLE:2].count(0) for at in (0, 1)]
    if 2 * max(zeros) > len(sample) / 2:  # most letters have a zero beside them
        return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    for cut in range(4):  # the sample may end within a character
        try:
            sample[: len(sample) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return "utf-8-sig"
    return "cp1252"


def no_text(path: Path) -> TableError:
    """Return the error for a file of unknown encoding, or of another kind than its ending."""
    return TableError(
        f"{path} must be text in UTF-8 or Windows-1252, but has signs of neither: save it as "
        "UTF-8, or give it the ending of its kind, such as .xlsx, .parquet or .gz."
    )


def fault_of(
    path: Path, encoding: str, separator: str, *, skipped: int, has_header: bool, is_open: bool
) -> str:
    """Return why a text file cannot be read, and the way out; "" if unknown.

    Args:
        path: the file.
        encoding: its encoding.
        separator: sign between its columns.
        skipped: number of lines above the names.
        has_header: whether there are names.
        is_open: whether the file ends within quotes.
    """
    first, last, count, most = 0, skipped, 0, 0
    with opened(path) as file:
        lines = TextIOWrapper(file, encoding, errors="replace", newline="")
        rows = csv.reader(islice(lines, skipped, None), delimiter=separator, skipinitialspace=True)
        try:
            for row in rows:
                first, last = last + 1, skipped + rows.line_num
                # The first row may have cells beyond the names, which name the rows.
                if count > has_header and len(row) > most:
                    return _said_long(row, first, last, most, SEPARATORS[separator])
                count, most = count + bool(row), max(most, len(row))
        except csv.Error:  # a cell longer than all of the first lines
            first = last + 1
    if not is_open:
        return ""
    return f'the quote (") that opens in line {first:,} is never closed. Close it, or take it out.'


def _said_long(row: Sequence[str], first: int, last: int, most: int, signs: str) -> str:
    where = f"line {first:,} has"
    if last > first:
        where = f'lines {first:,} to {last:,}, which a quote (") makes one, have'
    return (
        f"{where} {len(row)} cells, {brief(row)}, and no line above has more than {most}. Put "
        f"cells that hold {signs} in quotes, and take out lines that are no rows of the table."
    )
