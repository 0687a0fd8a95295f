"""Tables as they are read, and what a model keeps of them to read others alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from typing import Literal
from typing import NamedTuple

from optuna_daub.core.checks import brief


Header = Literal["auto", "yes", "no"]


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
    columns: Collection[str]
    """Names of the columns that the model uses."""


def check_names(names: Iterable[str], learnt: Learnt | None, way_out: str = "") -> None:
    """Raise a `TableError` if two columns have the same name. Those not learnt from may."""
    twice = (name for name, count in Counter(names).items() if count > 1)
    if found := next((name for name in twice if not learnt or name in learnt.columns), None):
        raise TableError(
            f"Columns must have different names, but {brief(found)} is there twice{way_out}."
        )


NO_NAMES = ' (header="no" if the first line is data)'
"""Way out of two equal cells in the first line of a file."""


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
