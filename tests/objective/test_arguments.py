"""Every argument of the objective is accepted with a meaning, or refused by a sentence."""

from __future__ import annotations

import inspect
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from optuna_daub.objective import TrainingSizeObjective
from tests.arguments import LONGEST_REFUSAL
from tests.arguments import Hostile
from tests.objective.studies import X
from tests.objective.studies import Y
from tests.objective.studies import build


ODD: list[Any] = [
    *(None, True, False, np.True_, 0, 1, -1, 2, 3, 200, 2**32, 10**30, np.int64(3), np.uint8(2)),
    *(0.0, 0.5, 1.0, 2.5, -0.5, math.nan, math.inf, np.float32(0.25), Fraction(1, 3), 1j),
    *("", "auto", "accuracy", "r2", "no", b"accuracy", (), (1, 2), {}, {"a": 1}, {1: 2}, set()),
    *([], [None], [1], ["a"], [1, "a"], [[]], [[1, 2]], iter([]), object(), object, int),
    *(len, print, max, KFold, KFold(3), KFold(3, shuffle=True)),
    *([([0, 1], [2, 3])], [([0, 1], [1, 2])], [([0], [])], [([0], [999])]),
    *(np.timedelta64(3, "s"), Hostile(), [*range(10**5)], "x" * 10**5),
    *(lambda: 0, lambda trial: 0, lambda trial, n: 0, lambda a, b, c: 0),
    *(Y, X, Y[:50], X[:50], np.array(3), np.zeros(0), np.zeros((0, 3)), np.zeros((2, 2, 2))),
    *(np.arange(200), np.arange(200.0), np.full(200, np.nan), np.full(200, None)),
    *(np.zeros((200, 2)), np.array(["a"] * 200), pd.Series(Y), pd.DataFrame(X)),
    *(pd.Series([pd.NA] * 200), pd.Series(["a", 1] * 100)),
]
NAMES = [*inspect.signature(TrainingSizeObjective).parameters]


def refusal(**odd: Any) -> str:
    """Return what the objective says against arguments; nothing if it accepts them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of scikit-learn: classes of few rows
        try:
            objective = TrainingSizeObjective(**{"build": build, "X": X, "y": Y} | odd)
        except ValueError as error:
            return str(error)
    assert 1 <= objective.n_train <= 200
    assert objective.n_validation >= 1
    return ""


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(ODD), min_size=1, max_size=3))
def test_odd_arguments_are_accepted_or_refused_by_name(odd: dict[str, Any]) -> None:
    sentence = refusal(**odd)
    assert not sentence or any(f"`{name}" in sentence for name in NAMES), sentence


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_argument_is_accepted_or_refused_by_its_name(name: str) -> None:
    sentences = [refusal(**{name: value}) for value in ODD]
    assert max(map(len, sentences)) <= LONGEST_REFUSAL
    assert sum(map(bool, sentences)) > len(ODD) / 3
    for sentence in filter(None, sentences):
        assert f"`{name}" in sentence or "`stratify=False`" in sentence, sentence
