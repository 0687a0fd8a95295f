"""One worker in an interpreter of its own, which may have another Optuna: its plan as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.study.process_study import Plan
from tests.study.process_study import work


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    work(Plan(**{**given, "folder": Path(given["folder"])}))
