"""The pictures and reasons of a running study on the pages of optuna-dashboard.

What those pages show is kept in system attributes of the study: figures and notes, cut into
pieces. They are written here directly, in the format that optuna-dashboard has to go on reading
from older databases, since its own functions are made for one figure at the end of a study:
`save_plotly_graph_object` writes pieces of 2,045 characters, one second for 128 KB on SQLite, and
a page that is loaded meanwhile gets broken JSON; `save_note` reads all attributes of the study
several times for each note. Only what has changed is written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.study import storage
from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import best_learner
from optuna_daub.visualization import plot_allocations
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization import plot_upper_bounds
from optuna_daub.visualization._imports import imported
from optuna_daub.visualization._records import UNITS
from optuna_daub.visualization._records import AllocationsRecord
from optuna_daub.visualization._records import allocations_record
from optuna_daub.visualization._records import label
from optuna_daub.visualization._records import sign_of


_logger = logging.getLogger(__name__)

GRAPHS: dict[str, Callable[[optuna.Study], Any]] = {
    "daub-learning-curves": plot_learning_curves,
    "daub-allocations": plot_allocations,
    "daub-upper-bounds": plot_upper_bounds,
}
"""What is drawn, by the ids under which optuna-dashboard shows it."""

HEADING = "### Data allocation"
"""Begins what is written here in the note on the study; what stands above it is the user's."""

PIECE = 40_000
"""Characters of a figure in one attribute. MySQL's TEXT holds 65,535 bytes, and quotation marks
are stored as two; most figures fit into one piece, and so change in one moment."""

MAX_SHARE = 0.05
"""Share of a worker's time that drawing may take."""

_DRAWING = threading.Lock()
"""Held by the thread of this process that draws; not in the callback, which is sent to workers."""

_GREY = "#7f7f7f"  # contrast 4.0 on white, 4.2 on the dark cards of optuna-dashboard
_GRID = "rgba(127, 127, 127, 0.2)"
_BLUE = "#3b82c4"


class DashboardCallback:
    """Keep pictures and notes up to date in optuna-dashboard while a study runs.

    A callback of `study.optimize`. It draws when a run has ended, in one worker at a time, at most
    once in `every` seconds, and less often where drawing would take more than 5 % of the time; at
    the end of the study it draws in any case. A picture that cannot be drawn is a warning in the
    log, never the end of the study. What you write above the heading "Data allocation" in the note
    on the study stays. Look at it with `optuna-dashboard sqlite:///study.db`.

    Args:
        every: seconds between two drawings, at least 0. The default is how often the pages of
            optuna-dashboard reload a large study.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where `every` < 0.

    >>> import optuna
    >>> from optuna_daub import DataAllocationSampler, DAUBPruner, report, training_sizes
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     skill = trial.suggest_float("skill", 0.5, 0.9)
    ...     for n in training_sizes(trial):
    ...         report(trial, n, skill - 10 / n, training_score=skill + 10 / n)
    ...     return skill - 10 / n
    >>> sampler = DataAllocationSampler(optuna.samplers.RandomSampler(seed=0), n_learners=3)
    >>> pruner = DAUBPruner(max_resource=2000)
    >>> study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    >>> study.optimize(objective, callbacks=[DashboardCallback(every=10)])
    """

    def __init__(self, *, every: float = 10.0) -> None:
        if not every >= 0:
            raise ValueError(f"`every` must be at least 0 seconds, but got {every}.")
        imported("plotly.graph_objects", extra="dashboard")
        self._every = every
        self._next = 0.0

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Draw, if it is time."""
        is_ending = study._stop_flag
        if not is_ending and time.monotonic() < self._next:
            return
        if not _DRAWING.acquire(blocking=is_ending):
            return  # another thread is drawing
        try:
            self._draw(study, is_ending)
        except Exception:
            self._next = time.monotonic() + self._every
            _logger.warning("The dashboard could not be brought up to date.", exc_info=True)
        finally:
            _DRAWING.release()

    def _draw(self, study: optuna.Study, is_ending: bool) -> None:
        last = storage.read_drawing(study)
        age = time.time() - last  # below 0 where another machine's clock is ahead
        begun = time.monotonic()
        if 0 <= age < self._every and not is_ending:
            self._next = begun + self._every - age
            return
        storage.write_drawing(study, time.time())
        update_dashboard(study)
        spent = time.monotonic() - begun
        self._next = begun + max(self._every, spent + spent / MAX_SHARE)


def update_dashboard(study: optuna.Study) -> None:
    """Draw the pictures of a study and write its notes for optuna-dashboard, at once.

    For a study that is over, or was run without `DashboardCallback`.

    Raises:
        ImportError: where plotly is not installed.
        ValueError: where the study's pruner is none of optuna_daub.
    """
    stored = study._storage.get_study_system_attrs(study._study_id)
    news = {**_graphs(study, stored), **_study_note(study, stored), **_run_notes(study, stored)}
    for key, value in news.items():
        if stored.get(key) != value:
            study._storage.set_study_system_attr(study._study_id, key, value)


def _graphs(study: optuna.Study, stored: Mapping[str, Any]) -> dict[str, str]:
    attrs: dict[str, str] = {}
    for graph_id, plot in GRAPHS.items():
        figure = plot(study)
        figure.update_layout(_for_any_theme())
        attrs |= _pieces(f"dashboard:plot_data:{graph_id}:", figure.to_json(), stored)
    return attrs


def _for_any_theme() -> dict[str, Any]:
    """Return a layout that is legible on light and dark pages, which draw figures as they are.

    Zoom and hidden lines outlive a redrawing (`uirevision`).
    """
    axis = {"gridcolor": _GRID, "zeroline": False, "linecolor": _GREY, "automargin": True}
    return {
        "template": None,
        "uirevision": "daub",
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"color": _GREY},
        "title": {"x": 0.02, "xanchor": "left", "font": {"size": 15}},
        "xaxis": axis,
        "yaxis": axis,
        "modebar": {"bgcolor": "rgba(0, 0, 0, 0)", "color": _GREY, "activecolor": _BLUE},
    }


def _study_note(study: optuna.Study, stored: Mapping[str, Any]) -> dict[str, Any]:
    key = "dashboard:note_str:"
    pieces = sorted(
        (int(name.removeprefix(key)), text)
        for name, text in stored.items()
        if name.startswith(key)
    )
    before = "".join(text for _, text in pieces)
    own, _, _ = before.partition(HEADING)
    return _note("dashboard:note_", f"{own}{HEADING}\n{_summary(study)}", stored, before)


def _run_notes(study: optuna.Study, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes on runs that have ended and have none; a user's own note is left alone."""
    attrs: dict[str, Any] = {}
    for trial in study.get_trials(deepcopy=False):
        prefix = f"dashboard:{trial._trial_id}:note_"
        run = storage.read_run(trial.system_attrs)
        if (
            run is None
            or run.learner is None
            or not trial.state.is_finished()
            or f"{prefix}ver" in stored
        ):
            continue
        attrs |= _note(prefix, _told(trial, run), stored, "")
    return attrs


def _note(prefix: str, text: str, stored: Mapping[str, Any], before: str) -> dict[str, Any]:
    """Return the attributes of a note, with the next version if it has changed."""
    if text == before:
        return {}
    version = stored.get(f"{prefix}ver", 0) + 1
    return {f"{prefix}ver": version, **_pieces(f"{prefix}str:", text, stored)}


def _pieces(key: str, text: str, stored: Mapping[str, Any]) -> dict[str, str]:
    """Return a text cut into attributes; what is left over of a longer one becomes empty."""
    cut = {f"{key}{i // PIECE}": text[i : i + PIECE] for i in range(0, len(text), PIECE)}
    left = {name: "" for name in stored if name.startswith(key) and name not in cut}
    return cut | left


def _summary(study: optuna.Study) -> str:
    """Return who leads by how much, and what was spent and saved, in Markdown."""
    best = best_learner(study)
    if best is None:
        return "No score has been reported yet."
    standing = "is the best" if best.is_final else "leads"
    lines = [
        f"**{label(best)}** {standing}: score {best.score:.4f} on {best.size:,} examples.",
        *(() if best.rival_bound is None else (_gap(study, best, best.rival_bound),)),
        f"The last decision on it: {best.reason}.",
        *((best.promise,) if best.promise else ()),
        *(_expense(allocations_record(study, unit)) for unit in UNITS),
    ]
    return "\n".join(f"* {line}" for line in lines)


def _gap(study: optuna.Study, best: BestLearner, rival_bound: float) -> str:
    gap = abs(rival_bound - best.score)
    if sign_of(study) * (best.score - rival_bound) >= 0:
        return f"It is {gap:.4f} ahead of what any other may still reach ({rival_bound:.4f})."
    return f"Another may still come out {gap:.4f} ahead of it (bound {rival_bound:.4f})."


def _expense(record: AllocationsRecord) -> str:
    saved = record.everything - record.spent
    is_known = record.unit == "examples" and saved > 0
    return record.spending + (f": {saved:,.0f} saved." if is_known else ".")


def _told(trial: FrozenTrial, run: storage.Run) -> str:
    """Return what a run did and why it ended, in Markdown."""
    sizes = storage.own_sizes(trial, run.inherited)
    trained = " then ".join(f"{size:,}" for size in sizes) or "no"
    error = "ended by an error" if trial.state == TrialState.FAIL else ""
    ended = "; ".join(filter(None, (error, storage.read_summary(trial, "reason"))))
    return f"**Learner {run.learner}**, trained on {trained} examples in this run.\n\n{ended}"
