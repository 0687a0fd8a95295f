"""The picture of `sample_agreement` shows its numbers."""

from __future__ import annotations

import pytest

from optuna_daub import sample_agreement
from optuna_daub.visualization._marks import Band
from optuna_daub.visualization._marks import Line
from optuna_daub.visualization._sample_agreement import sample_agreement_picture
from tests.visualization import studies


@pytest.mark.parametrize("make", [studies.finished, studies.minimized, studies.many])
def test_the_line_is_the_correlation_and_the_area_its_interval(make: studies.Make) -> None:
    study = make()
    rows = sample_agreement(study).sizes
    assert rows
    picture = sample_agreement_picture(study)
    band, bars, line = picture.marks
    assert isinstance(band, Band)
    assert isinstance(bars, Line)
    assert isinstance(line, Line)
    assert [*zip(bars.xs, bars.ys, strict=True)] == [
        point
        for row in rows
        for point in ((row.size, row.lower), (row.size, row.upper), (None, None))
    ], "with one size there is no area"
    assert [*band.xs] == [*line.xs] == [row.size for row in rows]
    assert [*line.ys] == [row.rank_correlation for row in rows]
    assert [*band.lows] == [row.lower for row in rows]
    assert [*band.highs] == [row.upper for row in rows]
    limits = picture.y.limits
    assert limits is not None
    assert limits[0] is not None
    assert limits[1] is not None
    assert limits[0] < min(band.lows) <= max(band.highs) < limits[1]


def test_the_finding_is_of_the_smallest_size() -> None:
    study = studies.finished()
    first = sample_agreement(study).sizes[0]
    (finding,) = sample_agreement_picture(study).subtitle
    assert finding.startswith(
        f"{first.learners} learners on {first.size:,} examples ({first.share:.1%} of all): rank "
        f"correlation {first.rank_correlation:.2f}"
    )


def test_of_two_learners_it_says_why_it_is_empty(caplog: pytest.LogCaptureFixture) -> None:
    """The dashboard draws it from the first score on, so the log says nothing."""
    picture = sample_agreement_picture(studies.one_learner())
    assert picture.marks == picture.legend == ()
    assert picture.subtitle == ("no size below all the data has scores of three learners yet",)
    assert not caplog.records
