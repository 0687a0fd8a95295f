"""Size grids: the increasing numbers of examples on which learners may be trained.

A grid is a plain tuple of ints whose last element is the full training set.
"""

from __future__ import annotations

import math
import reprlib
from bisect import bisect_right
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
from fractions import Fraction
from itertools import islice
from itertools import pairwise

from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number


MIN_SIZES = 3
"""DAUB's bound needs three observations: b r^2 <= N in the paper's notation."""

MOST_SIZES = 1000
"""More sizes than this are a mistake: a ratio so near to 1 trains on almost the same data."""

MOST_EXAMPLES = 10**15
"""More training examples than this are a mistake; forecasts count doublings up to here."""


FIRST_ROWS = 500
"""Training examples of the first size, from the DAUB paper: on fewer a training costs little less,
and its score says little."""

FIRST_SHARE = 8
"""One in so many of all examples is the first size where that is fewer."""

FEWEST_ROWS = 10
"""Training examples that hold both of two equally frequent classes but for once in 512 times."""


def first_size(max_resource: int, reduction_factor: float) -> int:
    """Return the smallest training size that suits a training set of `max_resource` examples.

    It is 500 as in the DAUB paper; one in 8 of all examples if that is less, though at least 10;
    and never more than leaves room for three sizes. The least training set is one of 3 examples,
    or of `reduction_factor`^2.

    >>> [first_size(full, 1.5) for full in (8, 100, 1_000, 4_000, 1_000_000)]
    [3, 12, 125, 500, 500]

    Raises:
        ValueError: as `geometric_sizes`, of the arguments that it shares with it.
    """
    full = whole_number("max_resource", max_resource)
    ratio = _ratio(reduction_factor)
    most = min(math.floor(full / ratio**2), full - 2)  # b r^2 <= N, and one size between b and N
    return max(1, min(FIRST_ROWS, max(FEWEST_ROWS, full // FIRST_SHARE), most))


def geometric_sizes(
    min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, ...]:
    """Return `min_resource`, then ceil(factor * previous) until `max_resource`.

    This is DAUB's Algorithm 1, line 8: n <- min{ceil(r n), N}. The factor is read as the
    decimal number that it prints as, so that 1.1 times 100 is 110 and not 111.

    >>> geometric_sizes(500, 5000, 1.5)
    (500, 750, 1125, 1688, 2532, 3798, 5000)

    Raises:
        ValueError: where `min_resource` < 1, `reduction_factor` <= 1 or infinite, either size is
            above 10^15, the sizes are fewer than three before `max_resource` is exceeded
            (b r^2 > N), or they are more than a thousand.
    """
    smallest = whole_number("min_resource", min_resource)
    full = whole_number("max_resource", max_resource)
    if smallest < 1:
        raise ValueError(f"`min_resource` must be at least 1, but got {min_resource}.")
    for name, value in (("min_resource", smallest), ("max_resource", full)):
        if value > MOST_EXAMPLES:
            raise ValueError(f"`{name}` must be at most {MOST_EXAMPLES:,}, but got {value}.")
    ratio = _ratio(reduction_factor)
    third = smallest * float(ratio) * float(ratio)
    fits = max(1, min(math.floor(full / ratio**2), full - 2))
    too_few = (
        "`min_resource` * `reduction_factor`^2 must not exceed `max_resource`: a learning curve "
        f"has at least three sizes, but {smallest} * {reduction_factor}^2 = {third:g} > {full}, "
        f"or is above it once sizes are rounded up. Take `min_resource={fits}` or less, a smaller "
        "`reduction_factor`, or train every learner on all the data."
    )
    if smallest > full:
        too_few += " Are the two sizes swapped?"
    if smallest * ratio**2 > full:
        raise ValueError(too_few)
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
        raise ValueError(too_few)
    return tuple(sizes)


def _ratio(reduction_factor: float) -> Fraction:
    """Return the ratio of consecutive sizes as the decimal number that it prints as."""
    if not 1 < number("reduction_factor", reduction_factor) < math.inf:
        raise ValueError(
            f"`reduction_factor` must be greater than 1 and finite, but got {reduction_factor}."
        )
    return Fraction(str(float(reduction_factor)))


def checked_sizes(sizes: Iterable[int], name: str = "sizes") -> tuple[int, ...]:
    """Return an explicit list of training sizes as a tuple.

    >>> checked_sizes([1000, 5000, 20000])
    (1000, 5000, 20000)

    Raises:
        ValueError: where a size is no integer, below 1 or above 10^15, the sizes do not increase,
            or there are fewer than three or more than a thousand.
    """
    grid = size_list(name, sizes)
    if any(later <= earlier for earlier, later in pairwise(grid)):
        raise ValueError(f"`{name}` must be strictly increasing, but got {[*grid]}.")
    if len(grid) < MIN_SIZES:
        raise ValueError(
            f"`{name}` must hold at least {MIN_SIZES} training sizes, of which the last is the "
            f"full training set, but got {[*grid]}."
        )
    if grid[0] < 1:
        raise ValueError(f"`{name}` must be at least 1, but got {[*grid]}.")
    if grid[-1] > MOST_EXAMPLES:
        raise ValueError(f"`{name}` must be at most {MOST_EXAMPLES:,}, but got {[*grid]}.")
    return grid


def size_list(name: str, sizes: Iterable[int]) -> tuple[int, ...]:
    """Return a list of at most a thousand whole numbers as a tuple.

    >>> size_list("first_sizes", range(500, 1500, 500))
    (500, 1000)

    Raises:
        ValueError: where it is none.
    """
    try:
        if isinstance(sizes, str | bytes | Mapping | Set):
            raise TypeError
        given = list(islice(sizes, MOST_SIZES + 1))
    except TypeError:  # also of an array without a dimension
        raise ValueError(f"`{name}` must be a list of whole numbers, but got {sizes!r}.") from None
    if len(given) > MOST_SIZES:
        raise ValueError(
            f"`{name}` must hold at most {MOST_SIZES:,} training sizes, but got more: "
            f"{reprlib.repr(sizes)}."
        )
    return tuple(whole_number(name, size) for size in given)


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
