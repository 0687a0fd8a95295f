"""A study on a Dask cluster, one of whose workers is killed, as a program.

    python -W ignore -m tests.study.dask_study sqlite|journal FOLDER WORKERS

Ends with 1 if anything was lost or trained twice, and prints what a trial took.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from distributed import Client

from tests.study.process_study import Plan
from tests.study.process_study import check_consistency
from tests.study.process_study import wait_for_probes
from tests.study.process_study import work


def main(kind: str, folder: str, workers: str) -> None:
    """Let a cluster work on a study, kill a worker, and check what has come of it."""
    behind = f"sqlite:///{folder}/dask.db" if kind == "sqlite" else f"file:{folder}/dask.journal"
    made_here = {"threads_per_worker": 1, "dashboard_address": None}
    with Client(n_workers=int(workers), **made_here) as client:
        plan = Plan(
            f"dask:{behind}", Path(folder), n_learners=6 * int(workers), seconds=0.1
        ).create()
        begun = time.monotonic()
        jobs = [client.submit(work, plan, pure=False) for _ in range(int(workers))]
        wait_for_probes(plan, 8)
        os.kill(plan.last_to_begin(), signal.SIGKILL)  # Dask gives its job to another
        client.gather(jobs)
        seconds = time.monotonic() - begun
        study = check_consistency(plan, kills=1)
        rate = len(study.trials) / seconds
        print(f"{len(study.trials)} trials, {len(plan.begun())} probes begun, {rate:.1f} a second")


if __name__ == "__main__":
    main(*sys.argv[1:])
