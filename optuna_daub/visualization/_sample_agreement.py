"""Sample agreement: how well each training size ranks the learners, compared with all the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import optuna

from optuna_daub.study.agreement import SizeAgreement
from optuna_daub.study.agreement import sample_agreement
from optuna_daub.visualization import _plotly
from optuna_daub.visualization._axes import size_scale
from optuna_daub.visualization._marks import Band
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._marks import Picture
from optuna_daub.visualization._marks import Scale


if TYPE_CHECKING:
    import plotly.graph_objects as go


COLOR = "#2a78d6"


def plot_sample_agreement(study: optuna.Study) -> go.Figure:
    """Plot how well the learners are ranked by their scores on less data.

    For each training size the line is the rank correlation between scores there and on all the
    data, 1 for the same order and 0 for no relation. The area is its 90 % interval, which is
    wide if few learners were trained on all the data (`sample_agreement` has the numbers).

    Args:
        study: a study, finished or running; its pruner is needed only for a policy of your own.

    Returns:
        A figure, without marks if no size has scores of three learners.

    Raises:
        ImportError: if plotly is not installed.
        ValueError: if the study's pruner is not one of optuna_daub.
    """
    return _plotly.draw(sample_agreement_picture(study))


def sample_agreement_picture(study: optuna.Study) -> Picture:
    """Return `plot_sample_agreement` as marks."""
    record = sample_agreement(study)
    sizes = [row.size for row in record.sizes]
    lows = [row.lower for row in record.sizes]
    label = "rank correlation, 90 % interval"
    marks: tuple[Band | Line, ...] = ()
    if sizes:
        highs = [row.upper for row in record.sizes]
        ends = [end for pair in zip(lows, highs, strict=True) for end in (*pair, None)]
        at = [place for size in sizes for place in (size, size, None)]
        marks = (
            Band(sizes, lows, highs, COLOR, 0.2, group=label),
            Line(at, ends, COLOR, width=1.5, opacity=0.5, group=label),  # an area needs two sizes
            Line(
                sizes,
                [row.rank_correlation for row in record.sizes],
                COLOR,
                width=2.0,
                symbol="complete",
                label=label,
                group=label,
                point="%{y:.2f}",
                name=[f"{size:,} examples" for size in sizes],
                notes=[
                    f"{row.lower:.2f} to {row.upper:.2f}\n{row.learners} learners, {row.known} "
                    f"of them trained on all the data\nthe best one stays: {row.best_stays:.0%}"
                    for row in record.sizes
                ],
            ),
        )
    return Picture(
        "Ranking of the learners on less data",
        (_finding(record.sizes),),
        size_scale([*sizes, record.full_size]),
        Scale("rank correlation\nwith all the data", (min([0.0, *lows]) - 0.02, 1.02)),
        marks,
        (label,) if marks else (),
    )


def _finding(sizes: Sequence[SizeAgreement]) -> str:
    """Return a sentence on the smallest size."""
    if not sizes:
        return "no size below all the data has scores of three learners yet"
    first = sizes[0]
    return (
        f"{first.learners} learners on {first.size:,} examples ({first.share:.1%} of all): "
        f"rank correlation {first.rank_correlation:.2f} ({first.lower:.2f} to "
        f"{first.upper:.2f}); the best one stays the best with probability "
        f"{first.best_stays:.0%}"
    )
