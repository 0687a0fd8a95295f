"""Spaces: parameters as numbers, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core.space import WIDE_RATIO
from optuna_daub.core.space import Range
from optuna_daub.core.space import Space
from optuna_daub.core.space import Words
from optuna_daub.core.space import square_distances


ranges = st.one_of(
    st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda x: Range(x[0], sum(x))),
    st.tuples(st.floats(1e-6, 1e3), st.floats(1.5, 1e6)).map(
        lambda x: Range(x[0], x[0] * x[1], is_log=True)
    ),
    st.tuples(st.integers(-50, 50), st.integers(1, 9), st.integers(1, 40)).map(
        lambda x: Range(x[0], x[0] + x[1] * x[2], step=x[1])
    ),
    st.tuples(st.integers(1, 50), st.integers(1, 5000)).map(
        lambda x: Range(x[0], sum(x), is_log=True, is_whole=True)
    ),
)
words = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    min_size=1, max_size=5, unique_by=repr,
).map(lambda choices: Words(tuple(choices)))  # fmt: skip
dimensions = ranges | words


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=3), unique=True, max_size=5))
    return Space(tuple((name, draw(dimensions)) for name in sorted(names)))


@st.composite
def points(draw: st.DrawFn, space: Space) -> dict[str, Any]:
    """A point that has some of the parameters, at values that exist."""
    found = {}
    for name, one in space.dimensions:
        if draw(st.booleans()):
            if isinstance(one, Words):
                found[name] = draw(st.sampled_from(one.choices))
            else:
                found[name] = one.value(draw(st.floats(0, 1)))
    return found


@given(data=st.data(), space=spaces())
def test_a_point_comes_back_from_its_row(data: st.DataObject, space: Space) -> None:
    point = data.draw(points(space))
    back = space.point(np.array(space.row(point)))
    assert back.keys() == point.keys()
    for name, value in point.items():
        if isinstance(value, float):
            assert back[name] == pytest.approx(value, rel=1e-6, abs=1e-6 * (1 + abs(value)))
        else:
            assert repr(back[name]) == repr(value)


@given(one=ranges, place=st.floats(0, 1))
def test_values_lie_in_the_range_and_on_its_steps(one: Range, place: float) -> None:
    value = one.value(place)
    assert one.low <= value <= one.high
    if one.step:
        assert (value - one.low) % one.step == 0
    if one.is_whole or one.step:
        assert isinstance(value, int)
    assert 0.0 <= one.place(value) <= 1.0


@given(data=st.data(), space=spaces())
def test_snapped_rows_are_those_of_values(data: st.DataObject, space: Space) -> None:
    row = [
        math.nan
        if data.draw(st.booleans())
        else float(data.draw(st.integers(0, len(one.choices) - 1)))
        if isinstance(one, Words)
        else data.draw(st.floats(0, 1))
        for _, one in space.dimensions
    ]
    rows = np.array([row]).reshape(1, len(space.dimensions))
    snapped = space.snapped(rows)
    # A range of 1e-3 at 1e6 has places to seven digits.
    np.testing.assert_allclose(snapped, space.rows([space.point(snapped[0])]), atol=1e-6)
    np.testing.assert_allclose(space.snapped(snapped), snapped, atol=1e-9)
    np.testing.assert_array_equal(rows[0], row)  # nothing changed in place


def test_values_outside_are_moved_to_the_nearest_end() -> None:
    assert Range(1.0, 3.0).place(0.0) == 0.0
    assert Range(1.0, 3.0).place(7.0) == 1.0
    assert Range(2.0, 2.0).place(2.0) == 0.5


def test_a_value_that_does_not_fit_is_absent() -> None:
    space = Space((("depth", Range(1, 9)), ("kind", Words(("a", "b")))))
    rows = space.rows([{"depth": "deep"}, {"depth": math.nan}, {"kind": "c"}, {"depth": True}])
    assert np.isnan(rows).all()
    assert space.rows([]).shape == (0, 2)


@pytest.mark.parametrize("kind", [float, int, np.float64])
def test_any_finite_value_has_a_place(kind: Callable[[float], float]) -> None:
    """Without one, a search would take its only learner for the whole space."""
    space = Space((("x", Range(0.0, 1.6e308)),))
    for value, place in ((8e307, 0.5), (1.6e308, 1.0)):
        assert space.row({"x": kind(value)}) == (place,)
    assert math.isnan(space.row({"x": 10**400})[0])


def test_words_are_told_apart_by_how_they_are_written() -> None:
    choices = Words((1, 1.0, True, "1", None))
    assert [choices.place(x) for x in choices.choices] == [0.0, 1.0, 2.0, 3.0, 4.0]
    lists = Words(([8, 8], [16]))
    assert lists.value(lists.place([16])) == [16]
    assert isinstance(hash(Space((("layers", lists),))), int)


def test_a_space_is_as_wide_as_its_points() -> None:
    space = Space.of([{"rate": 1e-4, "kind": "a"}, {"rate": 1e-1, "depth": 3}, {"kind": 7}])
    assert [name for name, _ in space.dimensions] == ["depth", "kind", "rate"]
    assert dict(space.dimensions)["rate"] == Range(1e-4, 1e-1, is_log=True)
    assert dict(space.dimensions)["depth"] == Range(3, 3)
    assert dict(space.dimensions)["kind"] == Words(("a", 7))
    assert space.is_word.tolist() == [False, True, False]
    assert Space.of([]) == Space()


@pytest.mark.parametrize(("high", "is_log"), [(WIDE_RATIO, True), (WIDE_RATIO - 1, False)])
def test_a_wide_range_of_positive_values_is_logarithmic(high: float, is_log: bool) -> None:
    assert dict(Space.of([{"x": 1.0}, {"x": high}]).dimensions)["x"] == Range(1.0, high, is_log)
    assert dict(Space.of([{"x": 0.0}, {"x": high}]).dimensions)["x"] == Range(0.0, high, False)


@given(seed=st.integers(0, 1000))
def test_distances_are_symmetric_and_agree_with_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    is_word = np.array([False, True, False])
    one, other = (
        np.column_stack([rng.random(n), rng.integers(0, 3, n), rng.random(n)]) for n in (4, 3)
    )
    for rows in (one, other):
        rows[rng.random(rows.shape) < 0.3] = np.nan
    found = square_distances(one, other, is_word)
    assert found.shape == (3, 4, 3)
    np.testing.assert_array_equal(found, square_distances(other, one, is_word).swapaxes(1, 2))
    for p, i, j in np.ndindex(found.shape):
        x, y = one[i, p], other[j, p]
        if is_word[p]:
            same = x == y or (np.isnan(x) and np.isnan(y))
            assert found[p, i, j] == float(not same)
        else:
            places = [0.5 if np.isnan(z) else float(z) for z in (x, y)]
            assert found[p, i, j] == pytest.approx((places[0] - places[1]) ** 2)
