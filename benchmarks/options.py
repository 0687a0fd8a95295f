"""What every program understands on its command line, and where it writes to."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.rows import RESULTS


def parser_of(doc: str | None, prog: str | None = None) -> argparse.ArgumentParser:
    """Return a parser of --smoke, --time-limit and --results.

    Args:
        doc: of the program's module; its first line is the description.
        prog: how the program is called; None for the name of its file.
    """
    description = doc.splitlines()[0] if doc else None
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--smoke", action="store_true", help="seconds, on little or made data")
    parser.add_argument("--time-limit", type=float, help="seconds after which no run is begun")
    parser.add_argument("--results", type=Path, help="folder to write to")
    return parser


def results_of(options: argparse.Namespace) -> Path:
    """Return the folder to write to; a smoke run leaves the results of others alone."""
    if options.results:
        return Path(options.results)
    return Path(tempfile.mkdtemp()) if options.smoke else RESULTS
