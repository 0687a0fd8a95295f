"""Pictures and reasons of a running study, on the pages of optuna-dashboard.

Those pages show figures and notes from system attributes of the study, cut into pieces. This file
writes the attributes itself, in a format that optuna-dashboard must keep reading, since older
databases have it. The dashboard's own functions are made for one figure at the end of a study.
`save_plotly_graph_object` writes pieces of 2,045 characters, which takes a second for 128 KB on
SQLite, and a page loaded meanwhile gets broken JSON. `save_note` reads all attributes of the study
several times for each note. Here only changes are written.

The pages on trials, such as importances and contours, are of little use if a learner has several
trials. So a second study beside the first one has one trial per learner.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from optuna.trial import TrialState

from optuna_daub.core.checks import seconds_between
from optuna_daub.core.optional import imported
from optuna_daub.study import bulk
from optuna_daub.study import host
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.one_row import learner_rows
from optuna_daub.study.one_row import learners_name
from optuna_daub.study.records import Run
from optuna_daub.study.worker import looking
from optuna_daub.visualization import plot_allocations
from optuna_daub.visualization import plot_learning_curves
from optuna_daub.visualization import plot_sample_agreement
from optuna_daub.visualization import plot_search_history
from optuna_daub.visualization import plot_upper_bounds
from optuna_daub.visualization._axes import MAX_TICKS_OF_NARROW
from optuna_daub.visualization._axes import tick_sizes
from optuna_daub.visualization._note import literal
from optuna_daub.visualization._note import page
from optuna_daub.visualization._note import summary


_logger = logging.getLogger(__name__)

MAX_NAMES = 5
"""Largest number of learners in color. In 450 pixels plotly scrolls a legend of more rows."""

GRAPHS: dict[str, Callable[[optuna.Study], Any]] = {
    "daub-learning-curves": partial(plot_learning_curves, top=MAX_NAMES),
    "daub-allocations": partial(plot_allocations, top=16),
    "daub-search-history": plot_search_history,
    "daub-upper-bounds": partial(plot_upper_bounds, top=MAX_NAMES),
    "daub-sample-agreement": plot_sample_agreement,
}
"""Drawings by the ids under which optuna-dashboard shows them, 450 pixels high."""

HEADING = "### Data allocation"
"""Heading of the generated part of the study's note. The text above it is the user's."""

PIECE = 40_000
"""Largest number of a figure's characters in one attribute. MySQL's TEXT holds 65,535 bytes, and
quotation marks take two. Most figures fit into one piece, so they change at once."""

MAX_SHARE = 0.01
"""Largest share of the study's time for drawing, except the last drawing. With it the share is
under 2 % if the study takes at least a hundred times as long as one drawing."""

LONGEST_PAUSE = 3600.0
"""Largest number of seconds between two drawings."""

GROWTH = 1.25
"""Ratio of the numbers of trials between two complete drawings on a journal. A journal keeps all
that was ever written. So pictures take a constant number of bytes per trial, some three times
those of the trial itself."""

_DRAWING = threading.Lock()
"""Held by the thread of this process that draws. It is not in the callback, which is sent to
workers."""

_GREY = "#7f7f7f"  # contrast 4.0 on white, 4.2 on the dark cards of optuna-dashboard
_GRID = "rgba(127, 127, 127, 0.2)"
_BLUE = "#3b82c4"


@dataclass(frozen=True)
class _Drawing:
    """The last drawing of a study's pictures."""

    mark: str
    """Id of the drawing."""
    pause: float
    """Seconds until the next drawing is due."""
    trials: int
    """Number of the study's trials at the last complete drawing."""


def _write_drawing(study: optuna.Study, pause: float, trials: int) -> _Drawing:
    """Store that the study is being drawn, and the pause after it."""
    drawing = _Drawing(uuid.uuid4().hex, pause, trials)
    log.write_mark(study, "drawing", {**vars(drawing)})
    return drawing


def _read_drawing(study: optuna.Study) -> _Drawing | None:
    """Return the last drawing of the study, None before the first."""
    stored = log.read_mark(study, "drawing")
    if stored is None:
        return None
    trials = int(stored.get("trials", 0))  # older versions always drew all
    return _Drawing(str(stored["mark"]), float(stored["pause"]), trials)


class DashboardCallback:
    """Keep pictures and notes up to date in optuna-dashboard while a study runs.

    A callback of `study.optimize`. It draws when a run has ended, in one worker at a time, at most
    once in `every` seconds, and less often if drawing would take more than 1 % of the time. At
    the end of the study it draws in any case. A picture that cannot be drawn is a warning in the
    log, never the end of the study. In the note on the study, the text above the heading "Data
    allocation" is yours and stays. Look at the study with `optuna-dashboard sqlite:///study.db`.

    The storage then has a second study, "<name> (learners)", with one trial per learner (see
    `optuna_daub.one_row_per_learner`). Its pages on history, importances, contours, ranks and
    parallel coordinates show learners. It is brought up to date each time, and the note on the
    study links to it; reload its open pages to see changes.

    A journal (file or Redis) keeps all that was ever written. There only the notes are written
    each time; pictures and learners follow when the study has grown by a quarter, and at the end.
    A learner is written once it has a score. If one was trained further, or its forecast has
    changed by a hundredth of the range of all values, all learners are written again.

    Args:
        every: seconds between two drawings, at least 0. The default is how often the pages of
            optuna-dashboard reload a large study.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if `every` is negative or not finite.

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
    >>> storage = optuna.storages.InMemoryStorage()
    >>> study = optuna.create_study(
    ...     study_name="skills",
    ...     storage=storage,
    ...     direction="maximize",
    ...     sampler=sampler,
    ...     pruner=pruner,
    ... )
    >>> study.optimize(objective, callbacks=[DashboardCallback(every=10)])
    >>> learners = optuna.load_study(study_name="skills (learners)", storage=storage)
    >>> len(learners.trials)
    3
    """

    def __init__(self, *, every: float = 10.0) -> None:
        self._every = seconds_between(every)
        imported("plotly.graph_objects", extra="dashboard")
        self._next = 0.0
        self._last: _Drawing | None = None

    def __call__(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Draw, if it is time."""
        is_ending = host.is_ending(study)
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
        begun = time.monotonic()
        known, last = self._last, _read_drawing(study)
        if last is not None and last != known and not is_ending:
            # Another worker has drawn since this one looked last. Clocks of two machines are not
            # compared, so the pause counts from now; before the first look nothing is known.
            self._last = last
            self._next = begun + (last.pause if known else min(last.pause, self._every))
            return
        before = 0 if last is None else last.trials
        trials = len(study.get_trials(deepcopy=False))
        is_whole = (
            is_ending or trials >= GROWTH * before or not bulk.keeps_all(log.storage_of(study))
        )
        drawn = trials if is_whole else before
        self._last = _write_drawing(study, self._every, drawn)
        _update(study, is_whole=is_whole)
        spent = time.monotonic() - begun
        pause = max(self._every, min(spent / MAX_SHARE - spent, LONGEST_PAUSE))
        self._next = begun + spent + pause
        if pause > self._every:
            self._last = _write_drawing(study, pause, drawn)


def update_dashboard(study: optuna.Study) -> None:
    """Draw the pictures of a study and write its notes for optuna-dashboard, at once.

    Use it for a finished study, or one that ran without `DashboardCallback`. It also updates the
    study "<name> (learners)" beside it. A journal grows by some 100 kB each time, since pictures
    are written whole; while a study runs the callback writes less.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if the study's pruner is not one of optuna_daub.
    """
    imported("plotly.graph_objects", extra="dashboard")  # without it pictures only log errors
    _update(study, is_whole=True)


def _update(study: optuna.Study, *, is_whole: bool) -> None:
    """Write a study's notes. With `is_whole`, write its pictures and study of learners too."""
    log.check_study(study)
    rows = learner_rows(study)
    learners_id = _update_learners(study, rows) if is_whole else _learners_id(study)
    said = summary(study, rows, learners_id)
    figures = _figures(study) if is_whole else {}
    stored = log.study_attrs(study)  # after the slow part: a user may write a note meanwhile
    news = {**_study_note(stored, said), **_run_notes(study, stored)}
    for graph_id, figure in figures.items():
        news |= _pieces(f"dashboard:plot_data:{graph_id}:", figure, stored)
    _write(study, log.study_id(study), stored, news)


def _write(
    study: optuna.Study, study_id: int, stored: Mapping[str, Any], news: Mapping[str, Any]
) -> None:
    changed = {key: value for key, value in news.items() if stored.get(key) != value}
    bulk.set_study_attrs(log.storage_of(study), study_id, changed)


def _update_learners(study: optuna.Study, rows: Sequence[FrozenTrial]) -> int | None:
    """Write the study of learners and return its id. If the name is taken, return None."""
    name, mark = learners_name(study), _mark(study)
    storage = log.storage_of(study)
    try:
        study_id = storage.get_study_id_from_name(name)
    except KeyError:
        study_id = storage.create_new_study([study.direction], name)
        bulk.set_study_attrs(storage, study_id, mark)
    attrs = storage.get_study_system_attrs(study_id)
    if not mark.items() <= attrs.items():
        _logger.warning(
            "A study must not be named '%s': a study of this name shows the learners of '%s'. "
            "Rename yours to see them.", name, study.study_name
        )  # fmt: skip
        return None
    study_id = bulk.replace_trials(storage, study_id, rows)
    attrs = storage.get_study_system_attrs(study_id)
    link = f"[{literal(study.study_name)}]({page(log.study_id(study))})"
    text = (
        f"The learners of {link}, one trial each. The value is the score on all the data if "
        "`daub:forecast` is false, else the forecast of it. This study is updated while the other "
        "one runs: reload the page."
    )
    news = {**mark, **_study_note(attrs, text)}
    if study.metric_names is not None:
        news[records.METRIC_NAMES] = study.metric_names
    _write(study, study_id, attrs, news)
    return study_id


def _learners_id(study: optuna.Study) -> int | None:
    """Return the id of the study of learners, None if there is none."""
    try:
        study_id = log.storage_of(study).get_study_id_from_name(learners_name(study))
    except KeyError:
        return None
    stored = log.storage_of(study).get_study_system_attrs(study_id)
    return study_id if _mark(study).items() <= stored.items() else None


def _mark(study: optuna.Study) -> dict[str, Any]:
    """Return the attribute by which the study of learners is known as ours."""
    return records.prefixed({"learners_of": study.study_name})


def _figures(study: optuna.Study) -> dict[str, str]:
    """Return the figures of a study in JSON, by their ids, without those that cannot be drawn."""
    figures: dict[str, str] = {}
    for graph_id, plot in GRAPHS.items():
        try:
            figure = plot(study)
        except Exception:  # the other pictures, and the notes, are worth having
            _logger.warning("The picture '%s' could not be drawn.", graph_id, exc_info=True)
            continue
        figure.update_layout(_for_any_theme())
        if sizes := figure.layout.xaxis.tickvals:  # a card has half the width of a window
            few = tick_sizes(sizes, MAX_TICKS_OF_NARROW)
            figure.update_xaxes(tickvals=few, ticktext=[f"{size:,}" for size in few])
        figures[graph_id] = figure.to_json()
    return figures


def _for_any_theme() -> dict[str, Any]:
    """Return a layout that is legible on light and on dark pages.

    The pages do not adapt figures. Zoom and hidden lines survive a new drawing (`uirevision`).
    """
    axis = {"gridcolor": _GRID, "zeroline": False, "linecolor": _GREY, "automargin": True}
    return {
        "template": None,
        "height": None,
        "uirevision": "daub",
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"color": _GREY},
        "title": {"x": 0.02, "xanchor": "left", "font": {"size": 15}},
        "xaxis": axis,
        "yaxis": axis,
        "modebar": {"bgcolor": "rgba(0, 0, 0, 0)", "color": _GREY, "activecolor": _BLUE},
    }


def _study_note(stored: Mapping[str, Any], text: str) -> dict[str, Any]:
    before = _joined("dashboard:note_str:", stored)
    own, _, _ = before.partition(HEADING)
    if own.strip() and not own.endswith("\n"):  # else the heading would be text of its last line
        own += "\n\n"
    return _note("dashboard:note_", f"{own}{HEADING}\n{text}", stored, before)


def _run_notes(study: optuna.Study, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes on ended runs, except those with a user's note."""
    ended: dict[int, list[tuple[FrozenTrial, Run]]] = {}
    known = looking(study).known
    for trial in study.get_trials(deepcopy=False):
        run = records.read_run(trial)
        if run is None or run.learner is None or known.is_copy(trial.number, run):
            continue
        if trial.state.is_finished():
            ended.setdefault(run.learner, []).append((trial, run))
    attrs: dict[str, Any] = {}
    for learner, runs in ended.items():
        links = [
            f"[{trial.number}]({page(log.study_id(study), trial.number)})" for trial, _ in runs
        ]
        title = f"**Learner {learner}**"
        for trial, run in runs:
            prefix = f"dashboard:{log.trial_id(trial)}:note_"
            before = _joined(f"{prefix}str:", stored)
            own, mark, _ = before.partition(title)
            if before and not mark:
                continue  # the user's
            sizes = records.own_sizes(trial, run.inherited)
            trained = " then ".join(f"{size:,}" for size in sizes) or "no"
            error = "ended by an error" if trial.state == TrialState.FAIL else ""
            reason = records.read_summary(trial, "reason")
            text = f"{own}{title}, trained on {trained} examples in this run.\n\n"
            text += "; ".join(filter(None, (error, literal(reason or ""))))
            if len(runs) > 1:
                text += f"\n\nIts runs: {', '.join(links)}."
            attrs |= _note(prefix, text, stored, before)
    return attrs


def _joined(key: str, stored: Mapping[str, Any]) -> str:
    """Return a text that was stored in pieces."""
    pieces: list[str] = []
    while (piece := stored.get(f"{key}{len(pieces)}")) is not None:
        pieces.append(piece)
    return "".join(pieces)


def _note(prefix: str, text: str, stored: Mapping[str, Any], before: str) -> dict[str, Any]:
    """Return the attributes of a note, with the next version if it has changed."""
    if text == before:
        return {}
    version = stored.get(f"{prefix}ver", 0) + 1
    return {f"{prefix}ver": version, **_pieces(f"{prefix}str:", text, stored)}


def _pieces(key: str, text: str, stored: Mapping[str, Any]) -> dict[str, str]:
    """Return a text cut into attributes. Later pieces of a longer earlier text become empty."""
    cut = {f"{key}{i // PIECE}": text[i : i + PIECE] for i in range(0, len(text), PIECE)}
    left = {name: "" for name in stored if name.startswith(key) and name not in cut}
    return cut | left
