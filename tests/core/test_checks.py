"""Values in messages, whatever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from optuna_daub import ABCPruner
from optuna_daub import DataAllocationSampler
from optuna_daub import DAUBPruner
from optuna_daub.core.checks import brief
from optuna_daub.core.checks import whole_number


ENDLESS = 10**5000
"""An integer with more digits than Python writes."""


class Mute:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [ENDLESS, -ENDLESS, [ENDLESS], {"a": ENDLESS}, Mute(), [Mute()], "x" * 10**6, [[0] * 99] * 99],
    ids=range(8),  # workers of pytest must agree on names, and some show an address
)
def test_any_value_is_shown_in_brief(value: Any) -> None:
    assert 5 < len(brief(value)) < 500


@pytest.mark.parametrize("value", [ENDLESS, -ENDLESS, 2**63, Mute(), 5.0, True, "5"], ids=range(7))
@pytest.mark.parametrize(
    "make",
    [
        lambda value: whole_number("n", value),
        lambda value: DataAllocationSampler(n_learners=value),
        lambda value: DataAllocationSampler(seed=value),
        lambda value: DAUBPruner(max_resource=value),
        lambda value: DAUBPruner(sizes=[1, 2, value]),
        lambda value: ABCPruner(max_resource=value),
    ],
)
def test_a_number_that_is_not_whole_is_one_sentence(
    make: Callable[[Any], Any], value: Any
) -> None:
    with pytest.raises(ValueError, match=r"^`?\w.* must be .* but got ") as raised:
        make(value)
    assert len(str(raised.value)) < 500
