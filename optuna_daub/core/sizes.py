"""Training sizes: the increasing numbers of examples on which a learner may be trained.

A ladder of sizes is a plain tuple of ints whose last element is the full training set.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise


PAPER_SIZES = (500, 1000, 1500, 2500, 4000, 5000, 7500, 11500, 17500, 25500, 38500)
"""The sizes printed in the DAUB paper for N = 38,500; no single rule generates them."""

MIN_SIZES = 3
"""DAUB's bound needs three observations: b r^2 <= N in the paper's notation."""


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
        sizes.append(min(math.ceil(ratio * sizes[-1]), full))
    return _enough(sizes, min_resource, max_resource, reduction_factor)


def anchored_sizes(
    min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, ...]:
    """Return the sizes ceil(`max_resource` / factor^k) that are at least `min_resource`.

    Anchored at the full size, every step is a whole factor; this restores the constant
    r / (r - 1) of the paper's Lemma 2, which the truncated last step of `geometric_sizes` breaks.

    >>> anchored_sizes(500, 38500, 1.5)[:4]
    (668, 1002, 1503, 2254)

    Raises:
        ValueError: as `geometric_sizes`.
    """
    smallest, full, ratio = _checked_geometry(min_resource, max_resource, reduction_factor)
    sizes = [full]
    exact = Fraction(full)
    while sizes[-1] > 1 and (size := math.ceil(exact := exact / ratio)) >= smallest:
        if size < sizes[-1]:
            sizes.append(size)
    return _enough(sizes[::-1], min_resource, max_resource, reduction_factor)


def checked_sizes(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return an explicit list of training sizes as a tuple.

    >>> checked_sizes([1000, 5000, 20000])
    (1000, 5000, 20000)

    Raises:
        ValueError: where a size is no integer or below 1, the sizes do not increase, or there
            are fewer than three.
    """
    given = list(sizes)
    ladder = tuple(whole_number("sizes", size) for size in given)
    if any(later <= earlier for earlier, later in pairwise(ladder)):
        raise ValueError(f"`sizes` must be strictly increasing, but got {given}.")
    if len(ladder) < MIN_SIZES:
        raise ValueError(
            f"`sizes` must hold at least {MIN_SIZES} training sizes, of which the last is the "
            f"full training set, but got {given}."
        )
    if ladder[0] < 1:
        raise ValueError(f"`sizes` must be at least 1, but got {given}.")
    return ladder


def next_size(sizes: tuple[int, ...], after: int) -> int | None:
    """Return the smallest of `sizes` above `after`, or None where `after` is the full size.

    >>> next_size((500, 750, 1125), 0), next_size((500, 750, 1125), 1125)
    (500, None)
    """
    rung = bisect_right(sizes, after)
    return sizes[rung] if rung < len(sizes) else None


def is_part(some: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Return whether `some` are sizes of a ladder, in its order.

    >>> is_part((500, 1125), (500, 750, 1125)), is_part((750, 500), (500, 750, 1125))
    (True, False)
    """
    return some == tuple(size for size in sizes if size in some)


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int, or raise a ValueError that names the argument."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"`{name}` must be whole numbers, but got {value!r}.") from None


def _checked_geometry(
    min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, int, Fraction]:
    smallest = whole_number("min_resource", min_resource)
    full = whole_number("max_resource", max_resource)
    if smallest < 1:
        raise ValueError(f"`min_resource` must be at least 1, but got {min_resource}.")
    if not reduction_factor > 1 or math.isinf(reduction_factor):
        raise ValueError(f"`reduction_factor` must be greater than 1, got {reduction_factor}.")
    ratio = Fraction(str(float(reduction_factor)))
    if smallest * ratio**2 > full:
        raise ValueError(_too_few(min_resource, max_resource, reduction_factor))
    return smallest, full, ratio


def _enough(
    sizes: list[int], min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, ...]:
    """Return the sizes, three at least: rounding up may swallow one that the rule allows."""
    if len(sizes) < MIN_SIZES:
        raise ValueError(_too_few(min_resource, max_resource, reduction_factor))
    return tuple(sizes)


def _too_few(min_resource: int, max_resource: int, reduction_factor: float) -> str:
    third = float(min_resource * Fraction(str(float(reduction_factor))) ** 2)
    return (
        "`min_resource` * `reduction_factor`^2 must not exceed `max_resource`: every learner is "
        f"first trained on three sizes, but {min_resource} * {reduction_factor}^2 = {third:g} > "
        f"{max_resource}, or is above it once sizes are rounded up. Take a smaller "
        "`min_resource`, or train every learner on all the data."
    )
