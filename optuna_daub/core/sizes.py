"""Size grids: the increasing numbers of examples on which learners may be trained.

A grid is a plain tuple of ints whose last element is the full training set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
from fractions import Fraction
from itertools import islice
from itertools import pairwise

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import number
from optuna_daub.core.checks import whole_number


MIN_SIZES = 3
"""Smallest number of sizes. DAUB's bound needs three observations: b r^2 <= N in the paper."""

MAX_SIZES = 1000
"""Largest number of sizes. With more, the ratio is so near to 1 that it must be a mistake."""

MAX_EXAMPLES = 10**15
"""Largest number of training examples. More must be a mistake; forecasts count doublings."""


FIRST_ROWS = 500
"""Default first size in examples, from the DAUB paper: on fewer a training saves little time, and
its score says little."""

FIRST_DIVISOR = 8
"""Divisor of all examples: the first size is N / 8 if that is less than `FIRST_ROWS`. Not
tuned."""

MIN_ROWS = 10
"""Smallest default first size, in examples. Of two equally frequent classes both are in so many
examples with probability 1 - 1/512."""


def default_min_resource(max_resource: int, reduction_factor: float) -> int:
    """Return the default smallest training size for `max_resource` examples.

    It is 500 as in the DAUB paper, or an eighth of all examples if that is less, but at least 10.
    It is smaller if there would be fewer than three sizes. Three sizes need a `max_resource` of at
    least 3 and at least `reduction_factor`^2.

    >>> [default_min_resource(full, 1.5) for full in (8, 100, 1_000, 4_000, 1_000_000)]
    [3, 12, 125, 500, 500]

    Raises:
        ValueError: if `max_resource` is not a whole number, or `reduction_factor` is not above 1
            and finite.
    """
    full = whole_number("max_resource", max_resource)
    ratio = _ratio(reduction_factor)
    return min(FIRST_ROWS, max(MIN_ROWS, full // FIRST_DIVISOR), _largest_first(full, ratio))


def geometric_sizes(
    min_resource: int, max_resource: int, reduction_factor: float
) -> tuple[int, ...]:
    """Return `min_resource`, then ceil(factor * previous) until `max_resource`.

    This is DAUB's Algorithm 1, line 8: n <- min{ceil(r n), N}. The factor is read as the decimal
    number that it prints as, so 1.1 times 100 is 110 and not 111.

    >>> geometric_sizes(500, 5000, 1.5)
    (500, 750, 1125, 1688, 2532, 3798, 5000)

    Raises:
        ValueError: if `min_resource` < 1, `reduction_factor` <= 1 or infinite, either size is
            above 10^15, there are fewer than three sizes (b r^2 > N), or more than a thousand.
    """
    smallest = whole_number("min_resource", min_resource)
    full = whole_number("max_resource", max_resource)
    if smallest < 1:
        raise ValueError(f"`min_resource` must be at least 1, but got {min_resource}.")
    for name, value in (("min_resource", smallest), ("max_resource", full)):
        if value > MAX_EXAMPLES:
            raise ValueError(f"`{name}` must be at most {MAX_EXAMPLES:,}, but got {value}.")
    ratio = _ratio(reduction_factor)
    third = smallest * float(ratio) * float(ratio)
    fits = _largest_first(full, ratio)
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
        if len(sizes) > MAX_SIZES:
            raise ValueError(
                f"`reduction_factor` must lead from `min_resource` to `max_resource` in at most "
                f"{MAX_SIZES:,} sizes, but got {reduction_factor} for {smallest:,} to {full:,}. "
                "Take a larger one, such as 1.5."
            )
    if len(sizes) < MIN_SIZES:  # rounding up may skip a size
        raise ValueError(too_few)
    return tuple(sizes)


def _largest_first(full: int, ratio: Fraction) -> int:
    """Return the largest first size b: b r^2 <= N, and one size between b and N."""
    return max(1, min(math.floor(full / ratio**2), full - 2))


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
        ValueError: if a size is not a whole number from 1 to 10^15, the sizes do not increase, or
            there are fewer than three or more than a thousand.
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
    if grid[-1] > MAX_EXAMPLES:
        raise ValueError(f"`{name}` must be at most {MAX_EXAMPLES:,}, but got {[*grid]}.")
    return grid


def size_list(name: str, sizes: Iterable[int]) -> tuple[int, ...]:
    """Return a list of at most a thousand whole numbers as a tuple.

    >>> size_list("first_sizes", range(500, 1500, 500))
    (500, 1000)

    Raises:
        ValueError: if it is not such a list.
    """
    try:
        if isinstance(sizes, str | bytes | Mapping | Set):
            raise TypeError
        given = list(islice(sizes, MAX_SIZES + 1))
    except TypeError:  # an array without a dimension raises it too
        raise ValueError(
            f"`{name}` must be a list of whole numbers, but got {brief(sizes)}."
        ) from None
    if len(given) > MAX_SIZES:
        raise ValueError(
            f"`{name}` must hold at most {MAX_SIZES:,} training sizes, but got more: "
            f"{brief(sizes)}."
        )
    return tuple(whole_number(name, size) for size in given)
