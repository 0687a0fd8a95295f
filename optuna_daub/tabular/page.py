"""The report on a model as one HTML file."""

from __future__ import annotations

from html import escape
from typing import Any

from optuna_daub.study.agreement import sample_agreement
from optuna_daub.tabular.model import TabularModel
from optuna_daub.tabular.model import summary
from optuna_daub.tabular.table import imported


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
pre { background: #f5f5f5; padding: 1rem; overflow-x: auto; line-height: 1.35; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; text-align: right;
        border-bottom: 1px solid #ddd; } td:last-child, th:last-child { text-align: left; }
p.caption { color: #555; }
"""

MAX_TABLE_ROWS = 30
"""Largest number of models in the report's table."""


def page(model: TabularModel) -> str:
    """Return the report with results, cost and pictures of the search, as HTML.

    The page contains plotly.js, some 4 MB, and needs no network.

    Raises:
        ValueError: if the model has no study.
        ImportError: if plotly is not installed.
    """
    if model.study is None:
        raise ValueError(
            "A report needs the search, but a model that was loaded from a file has none: write "
            "the report after `fit`."
        )
    imported("plotly")
    from optuna_daub.visualization import plot_allocations
    from optuna_daub.visualization import plot_learning_curves
    from optuna_daub.visualization import plot_search_history

    pictures = [
        (
            "What was found by when",
            "Each mark is a training; the broad line is the best score on all the rows so far.",
            plot_search_history(model.study),
        ),
        (
            "Learning curves",
            "Scores of each model against the number of rows that it learnt from.",
            plot_learning_curves(model.study),
        ),
        (
            "Where the time went",
            "Seconds of the trainings of each model, by the number of rows.",
            plot_allocations(model.study),
        ),
    ]
    sign = " Scores are shown with their sign turned: larger is better."
    parts = [
        f"<h1>A model for <code>{escape(model.target)}</code></h1>",
        f"<p>{model.found.n_rows:,} rows, learnt from {len(model.columns):,} columns.</p>",
        f"<ul>{''.join(f'<li>{_coded(note)}</li>' for note in model.notes)}</ul>",
        f"<pre>{escape(summary(model).rsplit(chr(10) * 2, 1)[0])}</pre>",
        "<h2>Models</h2>",
        _models(model),
    ]
    for at, (title, caption, figure) in enumerate(pictures):
        said = caption + (sign if model.metric.is_loss and at < 2 else "")
        parts += [f"<h2>{escape(title)}</h2>", f'<p class="caption">{escape(said)}</p>']
        # The first one contains plotly.js.
        parts.append(str(figure.to_html(full_html=False, include_plotlyjs=at == 0)))
    agreement = sample_agreement(model.study)
    parts += [
        "<h2>What small samples told</h2>",
        '<p class="caption">How the scores on so many rows rank the models on all of them: '
        "1 is the same order, 0 no relation. In brackets: the 90 % interval.</p>",
        f"<pre>{escape(str(agreement))}</pre>",
    ]
    body = "\n".join(parts)
    title = f"A model for {escape(model.target)}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _coded(note: str) -> str:
    """Return a sentence as HTML with names of columns as code.

    >>> _coded("Left out: `a<b`.")
    'Left out: <code>a&lt;b</code>.'
    """
    parts = escape(note).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _models(model: TabularModel) -> str:
    rows = [
        f"<tr><td>{model.metric.said(row.score)}</td><td>{row.size:,}</td>"
        f"<td>{row.seconds:.2f}</td><td>{escape(row.kind)} {escape(_said(row.params))}</td></tr>"
        for row in model.found.models[:MAX_TABLE_ROWS]
    ]
    head = f"<tr><th>{escape(model.metric.name)}</th><th>rows</th><th>seconds</th><th>model</th>"
    more = len(model.found.models) - MAX_TABLE_ROWS
    rest = f'<p class="caption">and {more:,} more.</p>' if more > 0 else ""
    return f"<table>{head}</tr>{''.join(rows)}</table>{rest}"


def _said(params: Any) -> str:
    values = (f"{n} {v:.3g}" if isinstance(v, float) else f"{n} {v}" for n, v in params.items())
    return f"({', '.join(values)})"
