"""Size grids: the increasing numbers of examples on which learners may be trained.

A grid is a plain tuple of ints whose last element is the full training set.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from numbers import Real


MIN_SIZES = 3
"""DAUB's bound needs three observations: b r^2 <= N in the paper's notation."""

MOST_SIZES = 1000
"""More sizes than this are a mistake: a ratio so near to 1 trains on almost the same data."""


def geometric_sizes(
    min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, ...]:
    """Return `min_resource`, then ceil(factor * previous) until `max_resource`.

    This is DAUB's Algorithm 1, line 8: n <- min{ceil(r n), N}. The factor is read as the
    decimal number that it prints as, so that 1.1 times 100 is 110 and not 111.

    >>> geometric_sizes(500, 5000, 1.5)
    (500, 750, 1125, 1688, 2532, 3798, 5000)

    Raises:
        ValueError: where `min_resource` < 1, `reduction_factor` <= 1, or the sizes are fewer
            than three before `max_resource` is exceeded (b r^2 > N).
    """
    smallest, full, ratio = _checked_geometry(min_resource, max_resource, reduction_factor)
    sizes = [smallest]
    while sizes[-1] < full:
        sizes.append(min(math.ceil(ratio * sizes[-1]), full))  # Alg. 1, line 8
        if len(sizes) > MOST_SIZES:
            raise ValueError(
                f"`reduction_factor` must lead from `min_resource` to `max_resource` in at most "
                f"{MOST_SIZES:,} sizes, but got {reduction_factor} for {smallest:,} to {full:,}. "
                "Take a larger one, such as 1.5."
            )
    if len(sizes) < MIN_SIZES:  # rounding up may swallow a size that the rule allows
        raise ValueError(_too_few(min_resource, max_resource, reduction_factor))
    return tuple(sizes)


def checked_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return an explicit list of training sizes as a tuple.

    >>> checked_sizes([1000, 5000, 20000])
    (1000, 5000, 20000)

    Raises:
        ValueError: where a size is no integer or below 1, the sizes do not increase, or there
            are fewer than three.
    """
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise ValueError(f"`sizes` must be a list of whole numbers, but got {sizes!r}.")
    given = list(sizes)
    grid = tuple(whole_number("sizes", size) for size in given)
    if any(later <= earlier for earlier, later in pairwise(grid)):
        raise ValueError(f"`sizes` must be strictly increasing, but got {given}.")
    if len(grid) < MIN_SIZES:
        raise ValueError(
            f"`sizes` must hold at least {MIN_SIZES} training sizes, of which the last is the "
            f"full training set, but got {given}."
        )
    if grid[0] < 1:
        raise ValueError(f"`sizes` must be at least 1, but got {given}.")
    return grid


def next_size(sizes: tuple[int, ...], after: int) -> int | None:
    """Return the smallest of `sizes` above `after`, or None where `after` is the full size.

    >>> next_size((500, 750, 1125), 0), next_size((500, 750, 1125), 1125)
    (500, None)
    """
    place = bisect_right(sizes, after)
    return sizes[place] if place < len(sizes) else None


def is_part(some: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Return whether `some` are sizes of a grid, in its order.

    >>> is_part((500, 1125), (500, 750, 1125)), is_part((750, 500), (500, 750, 1125))
    (True, False)
    """
    return some == tuple(size for size in sizes if size in some)


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int, or raise a ValueError that names the argument.

    >>> whole_number("n_learners", 5)
    5
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"`{name}` must be a whole number, but got {value!r}.") from None


def number(name: str, value: object) -> float:
    """Return `value` as a float, or raise a ValueError that names the argument.

    >>> number("tolerance", 0)
    0.0
    """
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise ValueError(f"`{name}` must be a number, but got {value!r}.")


def _checked_geometry(
    min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, int, Fraction]:
    smallest = whole_number("min_resource", min_resource)
    full = whole_number("max_resource", max_resource)
    if smallest < 1:
        raise ValueError(f"`min_resource` must be at least 1, but got {min_resource}.")
    if not 1 < number("reduction_factor", reduction_factor) < math.inf:
        raise ValueError(
            f"`reduction_factor` must be greater than 1 and finite, but got {reduction_factor}."
        )
    ratio = Fraction(str(float(reduction_factor)))
    if smallest * ratio**2 > full:
        raise ValueError(_too_few(min_resource, max_resource, reduction_factor))
    return smallest, full, ratio


def _too_few(min_resource: int, max_resource: int, reduction_factor: float) -> str:
    third = float(min_resource * Fraction(str(float(reduction_factor))) ** 2)
    return (
        "`min_resource` * `reduction_factor`^2 must not exceed `max_resource`: every learner is "
        f"first trained on three sizes, but {min_resource} * {reduction_factor}^2 = {third:g} > "
        f"{max_resource}, or is above it once sizes are rounded up. Take a smaller "
        "`min_resource`, or train every learner on all the data."
    )
