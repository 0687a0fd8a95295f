"""The lines of the pictures, as plotly reads them: plain dictionaries, no plotly."""

from __future__ import annotations

import html
import textwrap
from typing import Any
from typing import TypeAlias

from optuna_daub.study.results import LearnerCurve
from optuna_daub.visualization._bounds import BoundsRecord
from optuna_daub.visualization._bounds import BoundTrack
from optuna_daub.visualization._records import CurveLine
from optuna_daub.visualization._style import BACKGROUND
from optuna_daub.visualization._style import LOOKS
from optuna_daub.visualization._style import label
from optuna_daub.visualization._style import parameter_lines


Trace: TypeAlias = dict[str, Any]

_SYMBOLS = {
    "best": "star",
    "complete": "diamond",
    "running": "triangle-right",
    "suspended": "circle-open",
    "dropped": "x",
}


def validation(line: CurveLine, color: str) -> Trace:
    """Return the learning curve itself."""
    look = LOOKS[line.curve.state]
    return {
        "type": "scatter",
        "x": _xs(line),
        "y": _ys(line),
        "mode": "lines+markers",
        "name": _name(line.curve),
        "legendgroup": str(line.curve.learner),
        "line": {
            "color": color,
            "width": look.width,
            "dash": "dot" if look.is_dotted else "solid",
        },
        "marker": {"symbol": _SYMBOLS[line.curve.state], "size": 4 + 2 * look.width},
        "opacity": look.opacity,
        "hovertemplate": _hover(line.curve, "%{x:,} examples: %{y:.5~g}"),
    }


def training(line: CurveLine, color: str) -> list[Trace]:
    """Return the training scores, if there are any."""
    seen = [each for each in line.points if each.training_score is not None]
    if not seen:
        return []
    return [
        {
            "type": "scatter",
            "x": [each.size for each in seen],
            "y": [short(each.training_score) for each in seen],
            "mode": "lines",
            "legendgroup": str(line.curve.learner),
            "showlegend": False,
            "line": {"color": color, "width": 1, "dash": "dash"},
            "opacity": 0.6,
            "hovertemplate": f"{escaped(label(line.curve))}<br>"
            "training score %{y:.5~g} on %{x:,} examples<extra></extra>",
        }
    ]


def wedge(line: CurveLine, color: str) -> list[Trace]:
    """Return where the score on all the data is believed to lie, if the learner has a bound."""
    if line.band is None:
        return []
    band = line.band
    return [
        {
            "type": "scatter",
            "x": [band.size, band.full_size, band.full_size, band.size],
            "y": [short(y) for y in (band.score, band.best, band.worst, band.score)],
            "mode": "lines",
            "fill": "toself",
            "legendgroup": str(line.curve.learner),
            "showlegend": False,
            "line": {"color": color, "width": 0},
            "opacity": 0.16,
            "hoverinfo": "skip",
        }
    ]


def background(line: CurveLine) -> Trace:
    """Return the curve of a learner that does not stand out."""
    return {
        "type": "scatter",
        "x": _xs(line),
        "y": _ys(line),
        "mode": "lines",
        "line": {"color": BACKGROUND, "width": 0.75},
        "opacity": 0.5,
        "showlegend": False,
        "hovertemplate": _hover(line.curve, "%{x:,} examples: %{y:.5~g}"),
    }


def bound_track(track: BoundTrack, color: str | None, n_probes: int) -> Trace:
    """Return the bounds of a learner, which may be in the background: `color` is None."""
    look = LOOKS[track.curve.state]
    steps = list(track.steps)
    sizes = [4 + look.width] * len(steps)
    if track.curve.state != "dropped":  # its bound stands until the end
        steps.append(steps[-1]._replace(number=n_probes))
        sizes.append(0)
    line = {"color": color or BACKGROUND, "width": look.width if color else 0.75, "shape": "hv"}
    return {
        "type": "scatter",
        "x": [step.number for step in steps],
        "y": [short(step.bound) for step in steps],
        "customdata": [step.size for step in steps],
        "mode": "lines+markers" if color else "lines",
        "name": _name(track.curve),
        "showlegend": color is not None,
        "line": line,
        "marker": {
            "symbol": _SYMBOLS[track.curve.state],
            "size": sizes,
            "line": {"color": color or BACKGROUND},  # white by default where sizes differ
        },
        "opacity": look.opacity if color else 0.5,
        "hovertemplate": _hover(
            track.curve, "probe %{x}: %{customdata:,} examples, bound %{y:.5~g}"
        ),
    }


def leaders(record: BoundsRecord) -> Trace:
    """Return the best bound of all."""
    return {
        "type": "scatter",
        "x": [*(lead.number for lead in record.leads), record.n_probes],
        "y": [*(short(lead.bound) for lead in record.leads), short(record.leads[-1].bound)],
        "mode": "lines",
        "name": "best bound",
        "line": {"color": BACKGROUND, "width": 9, "shape": "hv"},
        "opacity": 0.35,
        "text": [f"learner {lead.learner} leads" for lead in record.leads],
        "hovertemplate": "from probe %{x} on: %{text} with %{y:.5~g}<extra></extra>",
    }


def _hover(curve: LearnerCurve, point: str) -> str:
    """Return what is told of a learner at one of its points; `point` is plotly's template."""
    facts = [
        f"<b>{escaped(label(curve, width=48))}</b>",
        point,
        *map(escaped, parameter_lines(curve.params)),
        *(f"<i>{escaped(line)}</i>" for line in textwrap.wrap(curve.reason, 60)),
    ]
    return "<br>".join(facts) + "<extra></extra>"


def escaped(text: str) -> str:
    """Return a text of the user's as plotly shows it, which reads HTML and `%{...}`."""
    return html.escape(text, quote=False).replace("%{", "%&#123;")


def _name(curve: LearnerCurve) -> str:
    return f"{escaped(label(curve, width=20))}, {curve.state}"


def _xs(line: CurveLine) -> list[int]:
    return [seen.size for seen in line.points]


def _ys(line: CurveLine) -> list[float]:
    return [short(seen.score) for seen in line.points]


def short(value: float | None) -> float:
    """Return a number with the six digits that a picture can show, to keep figures small."""
    return float(f"{value:.6g}")
