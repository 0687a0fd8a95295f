"""Values of the core are frozen, and equal to their copies."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import decisions
from tests.strategies import learning_curves
from tests.strategies import observations
from tests.strategies import pools


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "observation": observations(3),
    "curve": learning_curves(7),
    "pool": pools(),
    "decision": decisions,
}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_a_value_is_frozen_and_equal_to_its_copy(kind: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    copy = dataclasses.replace(value)
    assert copy == value
    assert kind == "pool" or hash(copy) == hash(value)
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"field '{field.name}'"):
            setattr(value, field.name, None)
