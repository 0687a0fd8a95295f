"""Attack studies as the profile says, and print what was counted, as a table.

The short profile takes less than a minute; the long one half an hour, most of it asleep:

    python -m tests.chaos --profile long

Workers are killed at any moment, and between a claim and its withdrawal; stopped until they are
taken for dead, and continued; learners are enqueued; servers are restarted; machines are clones of
one id and name; half of the clocks are five minutes ahead; half of the workers have another Optuna
(`pip install --target FOLDER --no-deps optuna==4.5.0`, then `--other-optuna FOLDER`). A learner's
curve is a formula, and a probe sleeps. Ends with 1 if anything was lost, stored twice, started in
excess, crashed or hung, or the winner was another.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from dataclasses import fields
from pathlib import Path

import optuna

from tests.chaos.scenario import Counts
from tests.chaos.scenario import Scenario
from tests.chaos.scenario import run


LOCK = ("lock_seconds", 30)
"""The lock of a journal file is taken from a worker that has held it for so long, as by default in
Optuna. On a busy core a living one may sleep for 15 s, and then ends by an error of Optuna's."""
POOL = (("n_learners", 40), ("seconds", 0.1), LOCK)
OPEN = (("n_trials", 120), ("seconds", 0.1), LOCK)
"""An open pool, with the default rule."""
SCATTERED = (*POOL, ("is_scattered", True))
BEAT = (*SCATTERED, ("heartbeat", True))
SILENT = (*SCATTERED, ("stale_after", 5.0), ("lock_seconds", 100))
"""A worker stopped while it holds the lock of a journal file must find it again: Optuna's default
takes it away after 30 s, and two then write at a time."""

QUEUE = (*POOL, ("is_enqueued", True))
"""All learners are enqueued."""
CLAIMS = (
    ("n_learners", 12),
    ("seconds", 0.1),
    ("slow_claims", 0.3),
    ("dies_withdrawing", 0.5),
    LOCK,
)
"""Many workers claim the last places of a small pool, and die before they step back."""
CLONED = (*POOL, ("stale_after", 30.0), ("lock_seconds", 100))
"""Options of workers on two clones: only silence tells that a worker of the other one is dead."""

STORAGES = ("sqlite", "postgresql", "journal", "redis", "grpc_sqlite", "grpc_postgresql")

SHORT = (
    Scenario("kills", "sqlite", kills=12, plan=POOL),
    Scenario("kills, open pool", "postgresql", kills=8, plan=(("n_trials", 40), ("seconds", 0.1))),
    Scenario("kills, clocks apart", "journal", kills=8, plan=POOL, clock=300.0),
    Scenario("restarts of the proxy", "grpc_sqlite", kills=3, restarts=1, plan=POOL),
)


def long(other: str) -> tuple[Scenario, ...]:
    """Return the long profile; without the folder of another Optuna it has only this one."""
    found = [
        Scenario("kills", "sqlite", kills=120, plan=POOL),
        Scenario("kills", "postgresql", kills=100, plan=POOL),
        Scenario("kills", "journal", kills=320, plan=POOL),
        Scenario("kills, open pool", "journal", kills=100, plan=OPEN),
        Scenario("kills, clocks apart", "journal", kills=60, plan=POOL, clock=300.0),
        Scenario("kills", "redis", kills=120, plan=POOL),
        Scenario("kills", "grpc_sqlite", kills=20, plan=POOL),
        Scenario("kills", "grpc_postgresql", kills=40, plan=POOL),
        Scenario("kills, open pool", "sqlite", kills=30, plan=OPEN),
        Scenario("kills, open pool", "postgresql", kills=30, plan=OPEN),
        Scenario("kills, by heartbeat", "postgresql", kills=20, plan=BEAT),
        Scenario("kills, clocks apart", "postgresql", kills=20, plan=BEAT, clock=300.0),
        Scenario("restarts of the server", "postgresql", kills=5, restarts=5, plan=POOL),
        Scenario("restarts of the proxy", "grpc_sqlite", kills=5, restarts=5, plan=POOL),
    ]
    found += [Scenario("kills, enqueued", kind, kills=40, plan=QUEUE) for kind in STORAGES]
    found += [
        Scenario("kills at claims", kind, kills=20, n_workers=8, pause=1.0, plan=CLAIMS)
        for kind in STORAGES
    ]
    found += [
        Scenario("kills, clones", kind, kills=15, clones=("one", "other"), plan=CLONED)
        for kind in ("sqlite", "postgresql", "journal", "redis", "grpc_postgresql")
    ]
    if other:
        two = {"plan": POOL, "elsewhere": other, "pause": 2.0}
        found.append(Scenario("two Optunas", "journal", kills=15, **two))
        found.append(Scenario("two Optunas", "postgresql", kills=15, **two))
    for kind, plan, count in (
        ("sqlite", SILENT, 10),
        ("postgresql", SILENT, 20),
        ("postgresql", BEAT, 20),
        ("journal", SILENT, 40),
        ("redis", SILENT, 20),
        ("grpc_sqlite", SILENT, 20),
        ("grpc_postgresql", SILENT, 10),
    ):
        name = "stalls, by heartbeat" if plan is BEAT else "stalls"
        found.append(Scenario(name, kind, stalls=count, n_workers=12, plan=plan))
    return tuple(found)


def main() -> int:
    """Run a profile; return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", choices=("short", "long"), default="short")
    parser.add_argument("--only", default="", help="scenarios and storages whose names hold this")
    parser.add_argument("--at-once", type=int, default=2, help="studies under attack at a time")
    parser.add_argument("--other-optuna", default="", help="the folder of another Optuna")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    scenarios = SHORT if given.profile == "short" else long(given.other_optuna)
    chosen = [each for each in scenarios if given.only in f"{each.name} {each.kind}"]
    begun = time.monotonic()
    columns = [field.name.replace("_", " ") for field in fields(Counts)]
    print("|", " | ".join(["what", "storage", *columns, "seconds"]), "|")
    print("|" + "---|" * (len(columns) + 3), flush=True)

    def attacked(number: int) -> Counts:
        each, since = chosen[number], time.monotonic()
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            counts = run(each, Path(folder), 1000 * number)
        row = [each.name, each.kind, *astuple(counts), round(time.monotonic() - since)]
        print("|", " | ".join(map(str, row)), "|", flush=True)
        return counts

    with ThreadPoolExecutor(given.at_once) as threads:
        total = sum(threads.map(attacked, range(len(chosen))), start=Counts())
    row = ["all", "", *astuple(total), round(time.monotonic() - begun)]
    print("|", " | ".join(map(str, row)), "|")
    return 0 if total.is_well else 1


if __name__ == "__main__":
    sys.exit(main())
