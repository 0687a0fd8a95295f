"""Traces of calls: the files of this package that they enter."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import optuna_daub


PACKAGE = str(Path(optuna_daub.__file__).parent)


class Trace:
    """The files of this package in which something is called, one after the other."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the file of a function that is called."""
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            self.files.append(name.removeprefix(PACKAGE + "/"))

    @property
    def moves(self) -> int:
        """Number of times that another file is entered than the last one."""
        return sum(later != earlier for earlier, later in pairwise(["", *self.files]))

    def within(self, layer: str) -> Trace:
        """Return the trace of one layer's own files."""
        part = Trace()
        part.files = [name for name in self.files if name.startswith(f"{layer}/")]
        return part


@contextmanager
def traced() -> Iterator[Trace]:
    """Trace what is called within, without finalizers of other studies."""
    trace = Trace()
    gc.disable()
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        gc.enable()
