"""Examples that a boosting round needs: Tables II and III of the Massart paper.

    python -m benchmarks.tables.massart [--smoke] [--time-limit S] [--repetitions R]

One run is a 4-fold cross-validation of 10 rounds with one rule and one epsilon, delta = 0.1, as
in the paper. Rows go to results/massart.jsonl, tables to results/massart.md.

KR-KP is repeated 100 times as in the paper, so copies of a row lie on both sides of the folds; its
accuracies are training accuracies in effect.

[1] J. Chen, J. Xu, "Sampling Adaptively Using the Massart Inequality for Scalable Learning",
    ICMLA 2013. https://dblp.org/search?q=Sampling+Adaptively+Massart+Inequality
"""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from benchmarks.rows import SHARED
from benchmarks.rows import Row
from benchmarks.rows import Run
from benchmarks.rows import is_there
from benchmarks.rows import parser_of
from benchmarks.rows import results_of
from benchmarks.rows import run_all
from benchmarks.rows import table
from benchmarks.rows import write_report
from optuna_daub.learners import AdaptiveSamplingBoostClassifier


EPSILONS = (0.1, 0.2, 0.3, 0.4, 0.5)
LARGEST_32_BIT = 46_340
"""The largest n whose n (n + 1) fits into 32 bits; the paper's MadaBoost cells look cut there."""

RULES: dict[str, dict[str, Any]] = {
    "Massart": {"rule": "massart"},
    "Massart, ln(1/delta)": {"rule": "massart", "two_sided": False},
    "Chernoff": {"rule": "chernoff"},
    "MadaBoost": {"rule": "madaboost"},
    "MadaBoost, n <= 46,340": {"rule": "madaboost", "max_samples_per_round": LARGEST_32_BIT},
}
MOST = 1_000_000
"""Examples at which a round of the other rules ends."""

PUBLISHED = {
    ("KR-KP", "Massart"): (4703, 1320, 680, 428, 279),
    ("KR-KP", "Chernoff"): (5929, 1874, 916, 520, 380),
    ("KR-KP", "MadaBoost"): (41832, 14370, 6763, 4397, 3049),
    ("Adult", "Massart"): (13335, 3854, 1965, 1176, 796),
    ("Adult", "Chernoff"): (17028, 5099, 2730, 1713, 1262),
    ("Adult", "MadaBoost"): (40210, 29235, 20076, 14327, 10162),
}
"""Examples per round in [1] Table III."""
PUBLISHED_ACCURACY = {"KR-KP": 0.93, "Adult": 0.82}
"""Rounded level of [1] Table II, the same for all rules."""

Data = tuple[np.ndarray, np.ndarray, list[int]]
"""X, y and the categorical columns."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks for."""
    parser = parser_of(__doc__, "python -m benchmarks.tables.massart")
    parser.add_argument("--repetitions", type=int, default=4, help="of the cross-validation")
    options = parser.parse_args(arguments)
    results = results_of(options)
    sources = {"made": _made}
    if not options.smoke:
        sources = {name: load for name, (path, load) in FILES.items() if is_there(name, path)}
    epsilons = EPSILONS[-1:] if options.smoke else EPSILONS
    planned = _runs(sources, epsilons, 1 if options.smoke else options.repetitions)
    rows = run_all(planned, results / "massart.jsonl", options.time_limit)
    write_report(results / "massart.md", rows, _report)


def measure(load: Callable[[], Data], rule: str, epsilon: float, seed: int) -> Mapping[str, Any]:
    """Return what a 4-fold cross-validation of one rule comes to."""
    X, y, categorical = load()
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    sizes, capped, scores, seconds = [], [], [], []
    for train, test in folds.split(X, y):
        model = AdaptiveSamplingBoostClassifier(
            epsilon=epsilon,
            categorical_features=categorical,
            random_state=seed,
            **{"max_samples_per_round": MOST, **RULES[rule]},
        )
        rows, labels = X[train], y[train]
        begin = time.perf_counter()
        model.fit(rows, labels)
        seconds.append(time.perf_counter() - begin)
        sizes += model.n_samples_per_round_.tolist()
        capped += model.capped_rounds_.tolist()
        scores.append(model.score(X[test], y[test]))
    return {
        "sizes": sizes,
        "capped": float(np.mean(capped)),
        "accuracy": float(np.mean(scores)),
        "seconds": float(np.mean(seconds)),
        "n_hypotheses": model.n_hypotheses_,
    }


def _runs(
    sources: Mapping[str, Callable[[], Data]], epsilons: Sequence[float], repetitions: int
) -> Iterator[Run]:
    for seed in range(repetitions):
        for data, load in sources.items():
            for epsilon in reversed(epsilons):  # the quick ones first
                for rule in RULES:
                    key = {"data": data, "rule": rule, "epsilon": str(epsilon), "seed": seed}
                    yield Run(key, partial(measure, load, rule, epsilon, seed))


def _report(rows: list[Row]) -> Iterator[str]:
    for data in dict.fromkeys(row["key"]["data"] for row in rows):
        own = [row for row in rows if row["key"]["data"] == data]
        repetitions = len({row["key"]["seed"] for row in own})
        yield (
            f"### {data}: {own[0]['n_hypotheses']} hypotheses, {repetitions} x 4 folds\n\n"
            "Examples per round, measured +- standard error over the cross-validations"
            " (paper):"
        )
        yield _table(data, own, _sizes)
        yield "Times fewer examples than MadaBoost, measured (paper):"
        yield _table(data, own, _ratio)
        level = PUBLISHED_ACCURACY.get(data)
        yield f"Accuracy, measured{f' (paper: about {level})' if level else ''}:"
        yield _table(data, own, lambda data, rule, cells: f"{_mean(cells[rule], 'accuracy'):.3f}")
        yield "Seconds of a fit of 10 rounds, binning included:"
        yield _table(data, own, lambda data, rule, cells: f"{_mean(cells[rule], 'seconds'):.2f}")


Cells = Mapping[str, list[Row]]
"""Rows of one epsilon by rule."""


def _table(data: str, rows: list[Row], cell: Callable[[tuple[str, str], str, Cells], str]) -> str:
    epsilons = [str(one) for one in EPSILONS if any(_is(row, str(one)) for row in rows)]
    lines = []
    for rule in RULES:
        line = [rule]
        for epsilon in epsilons:
            cells: dict[str, list[Row]] = {name: [] for name in RULES}
            for row in rows:
                if _is(row, epsilon):
                    cells[row["key"]["rule"]].append(row)
            line.append(cell((data, epsilon), rule, cells) if cells[rule] else "")
        lines.append(line)
    return table(["rule", *(f"epsilon {one}" for one in epsilons)], lines)


def _sizes(place: tuple[str, str], rule: str, cells: Cells) -> str:
    means = [float(np.mean(row["sizes"])) for row in cells[rule]]
    error = f" +- {np.std(means, ddof=1) / len(means) ** 0.5:,.0f}" if len(means) > 1 else ""
    published = _published(place, rule)
    return f"{np.mean(means):,.0f}{error}" + (f" ({published:,})" if published else "")


def _ratio(place: tuple[str, str], rule: str, cells: Cells) -> str:
    base = "MadaBoost, n <= 46,340" if "46" in rule else "MadaBoost"
    if not cells[base]:
        return ""
    ratio = _mean_size(cells[base]) / _mean_size(cells[rule])
    published = _published(place, rule), _published(place, base)
    return f"{ratio:.1f}" + (f" ({published[1] / published[0]:.1f})" if all(published) else "")


def _published(place: tuple[str, str], rule: str) -> int:
    """Return the paper's cell, 0 if it has none."""
    data, epsilon = place
    cells = PUBLISHED.get((data, rule.split(",")[0]))
    return cells[EPSILONS.index(float(epsilon))] if cells else 0


def _mean(rows: list[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def _mean_size(rows: list[Row]) -> float:
    return float(np.mean([np.mean(row["sizes"]) for row in rows]))


def _is(row: Row, epsilon: str) -> bool:
    return bool(row["key"]["epsilon"] == epsilon)


@cache
def _kr_kp() -> Data:
    frame = pd.read_parquet(FILES["KR-KP"][0])
    X = frame.drop(columns="target").to_numpy(np.float32)
    return np.tile(X, (100, 1)), np.tile(frame["target"].to_numpy(), 100), [*range(X.shape[1])]


@cache
def _adult() -> Data:
    frame = pd.read_parquet(FILES["Adult"][0])[:32_561]  # UCI's training file
    features = frame.drop(columns="target")
    numeric = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
    categorical = [i for i, name in enumerate(features.columns) if name not in numeric]
    assert len(categorical) == 8, features.columns
    return features.to_numpy(np.float32), frame["target"].to_numpy(), categorical


@cache
def _made() -> Data:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (4000, 8)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 0.7, 4000) > 2).astype(int)
    return X, y, [*range(8)]


FILES = {
    "KR-KP": (SHARED / "data" / "kr_vs_kp.parquet", _kr_kp),
    "Adult": (SHARED / "data" / "adult.parquet", _adult),
}
"""The paper's data; SOURCES.md beside them says where they come from."""


if __name__ == "__main__":
    main()
