"""The best model after the same seconds, for many methods and problems on one clock.

    OMP_NUM_THREADS=1 python benchmarks/search.py [--smoke] [--problems ranger ...]
        [--methods TPE ...] [--seeds K] [--budget UNITS] [--seconds S] [--overrun]
        [--results FOLDER]
    OMP_NUM_THREADS=1 python benchmarks/search.py --data table.csv --target label [--seconds S]

The clock shows the seconds that training and scoring take: those that the surrogate predicts, or
CPU seconds of real training. What the method itself thinks is reported beside it. A run is the
curve "best score of a model trained on all the data, against seconds". The unit is the mean cost
of one full training of a random point of the space.

Training that is under way when the seconds are used up is cut off. With --overrun it goes on, for
as many seconds again at most: its score does not count, but the row says when it would have ended.

Some methods have an environment of their own, which is made when they are first run; two of these
take some gigabytes.

Each run is a row of search.jsonl in results/search. Rows that are there are not run again.
search.md there follows from all rows of the methods asked for; ranks are among these. With
--report nothing is run. `pictures.py` draws them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from collections.abc import Iterator
from collections.abc import Sequence
from functools import cache
from functools import partial
from pathlib import Path
from zlib import crc32


os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per training
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.environments import environment
from benchmarks.rows import RESULTS
from benchmarks.rows import ROOT
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import read_rows
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.search_methods import METHODS
from benchmarks.search_methods import quiet
from benchmarks.search_problems import PROBLEMS
from benchmarks.search_problems import Problem
from benchmarks.search_problems import Race
from benchmarks.search_problems import of_file
from benchmarks.search_report import REFERENCE
from benchmarks.search_report import report
from benchmarks.search_space import OutOfBudgetError
from benchmarks.search_space import introduction


SMOKE_BUDGET = 10.0


def main() -> None:
    """Do what the command line asks for."""
    options = _options()
    results = RESULTS / "search"  # not in git: a changed rule is measured anew
    if options.results or options.smoke:
        results = results_of(options)
    results.mkdir(parents=True, exist_ok=True)
    path = results / "search.jsonl"
    if not options.report:
        run_all(runs(options, path), path, options.time_limit)
    rows = read_rows(path)
    (results / "search.md").write_text(report(rows, options.methods), encoding="utf-8")
    print(f"{len(rows):,} rows: {results / 'search.md'}")


def runs(options: argparse.Namespace, path: Path) -> Iterator[Run]:
    """Yield, for each seed and problem, the reference and then every method."""
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.problems:
            known = partial(lambda name: _opened(name, 0).reference(), name)
            yield Run({"problem": name, "method": REFERENCE}, known)
            for method in options.methods:
                chosen, is_real = METHODS[method], PROBLEMS[name].is_real
                if chosen.is_for_surrogates_only if is_real else chosen.is_for_rows_only:
                    continue
                given = options.seconds if PROBLEMS[name].is_real else options.budget
                key = {"problem": name, "method": method, "seed": seed, "budget": given}
                run = partial(measure, name, method, seed, given, path)
                yield Run(key, partial(run, is_finished=options.overrun))


def measure(
    name: str, method: str, seed: int, given: float, path: Path, *, is_finished: bool = False
) -> Row:
    """Run a method once. The budget is in units, on real data in seconds."""
    unit = next(
        row["unit"]
        for row in read_rows(path)
        if row["key"] == {"problem": name, "method": REFERENCE}
    )
    budget = given if PROBLEMS[name].is_real else given * unit
    begun = time.monotonic()
    grace = budget if is_finished else 0.0
    result = race(_opened(name, seed), method, mixed(name, seed), budget, grace)
    result |= {"wall": time.monotonic() - begun, "load": os.getloadavg()[0]}
    shown = {k: v for k, v in result.items() if k != "curve"}
    print(name, method, seed, result["curve"][-1:], shown, flush=True)
    return result


def mixed(name: str, seed: int) -> int:
    """Return a method's seed. Were it `seed`, all problems would see the same first proposals."""
    return crc32(f"{name}, {seed}".encode()) % 2**31


def race(problem: Problem, method: str, seed: int, budget: float, grace: float = 0.0) -> Row:
    """Run a method on a problem until its seconds are used up. It may end earlier by itself."""
    one = Race(problem, budget, grace)
    chosen = METHODS[method]
    begun = time.process_time()
    failed = {}
    thinking = 0.0
    try:
        if chosen.home:
            thinking = _elsewhere(one, method, seed)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                chosen.run(one, seed)
    except OutOfBudgetError:
        pass
    except Exception as error:
        if not one.trainings:
            raise
        # A method that breaks down keeps what it had found until then.
        failed = {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
    if not chosen.home:
        thinking = time.process_time() - begun - one.cpu
    return {
        "curve": one.curve,
        "seconds": one.seconds,
        "budget_seconds": budget,
        "thinking": thinking,
        "trainings": one.trainings,
        "full_trainings": one.full_trainings,
        **one.facts,
        **failed,
    }


def _elsewhere(one: Race, method: str, seed: int) -> float:
    """Serve a method that has an environment of its own; return its CPU seconds."""
    command = [str(environment(METHODS[method].home)), "-m", "benchmarks.search_methods"]
    place = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    pipe = subprocess.PIPE
    thinking = 0.0
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=place, text=True) as peer:
        assert peer.stdin
        assert peer.stdout
        print(introduction(one, method, seed), file=peer.stdin, flush=True)
        for line in peer.stdout:
            asked = json.loads(line)
            thinking = float(asked["thinking"])
            if "failed" in asked:
                raise RuntimeError(asked["failed"])
            if "end" in asked:
                break
            try:
                score, seconds = one.evaluate(asked["config"], asked["size"])
            except OutOfBudgetError:
                print(json.dumps({"end": True}), file=peer.stdin, flush=True)
                peer.terminate()
                return thinking
            answer = json.dumps({"score": score, "seconds": seconds})
            print(answer, file=peer.stdin, flush=True)
        else:
            raise ChildProcessError(f"{method} ended without a word, with {peer.wait()}")
    return thinking


@cache
def _opened(name: str, seed: int) -> Problem:
    return PROBLEMS[name].open(seed)


def _problems(asked: Sequence[str]) -> list[str]:
    """Return the problems asked for, by name or by the word before the hyphen."""
    found = [name for name in PROBLEMS if {name, name.split("-")[0]} & {*asked}]
    unknown = {*asked} - {*found} - {name.split("-")[0] for name in found}
    if unknown:
        raise SystemExit(
            f"--problems must be among {', '.join(PROBLEMS)}, but got {', '.join(unknown)}."
        )
    return [name for name in found if is_there(name, PROBLEMS[name].path)]


def _options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--problems", nargs="+", default=["ranger"], help="names, or families")
    parser.add_argument("--data", type=Path, help="CSV or Parquet file of yours, instead")
    parser.add_argument("--target", default="target", help="column of --data to predict")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first-seed", type=int, default=0, help="so several processes share")
    parser.add_argument("--budget", type=float, default=100.0, help="in units; but on real data")
    parser.add_argument("--seconds", type=float, default=180.0, help="of CPU, on real data")
    parser.add_argument("--overrun", action="store_true", help="see how long last trainings take")
    parser.add_argument("--report", action="store_true", help="only the tables, of known rows")
    options = parser.parse_args()
    if options.smoke:
        options.problems, options.seeds, options.budget = ["made"], 1, SMOKE_BUDGET
    if options.methods is None:  # no environments are made for a smoke run
        options.methods = [m for m in METHODS if not (options.smoke and METHODS[m].home)]
    if options.data:
        source = of_file(options.data, options.target, f"file-{options.data.name}")
        options.problems = [f"file-{options.data.name}, {options.target}"]
        PROBLEMS[options.problems[0]] = source
    else:
        options.problems = _problems(options.problems)
    return options


if __name__ == "__main__":
    quiet()
    main()
