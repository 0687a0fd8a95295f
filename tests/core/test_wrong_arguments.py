"""Arguments of the core's values are checked when they are made; an error is a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optuna_daub import ABCPruner
from optuna_daub import DAUBPruner
from optuna_daub.core import ABC
from optuna_daub.core import DAUB
from optuna_daub.core import Curves
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core import SuccessiveHalving
from optuna_daub.core import ValuePerSecond
from optuna_daub.core import geometric_sizes
from optuna_daub.core.policies.schedulers import step_for_growth


class Five:
    """An object that is a whole number, as NumPy's are, and nothing else."""

    def __index__(self) -> int:
        return 5


ODD: list[Any] = [None, 5, 0.5, "x", [1], {"a": 1}, object(), LearningCurve(0), [LearningCurve(0)]]


@pytest.mark.parametrize("name", ["curves", "busy", "spent", "proposer"])
@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_a_pool_of_anything_else_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must .* but got "):
        Pool(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["left", "space"])
@pytest.mark.parametrize("value", ODD[1:], ids=lambda value: type(value).__name__)
def test_what_may_be_none_is_checked_otherwise(name: str, value: object) -> None:
    assert getattr(Pool(**{name: None}), name) is None
    with pytest.raises(ValueError, match=f"`{name}` must be like"):
        Pool(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["to_come", "runs_left"])
@pytest.mark.parametrize("value", ["x", 1.5, True, [], -1])
def test_counts_of_a_pool_are_whole_numbers(name: str, value: object) -> None:
    rule = "at least 0 or None, but got -1" if value == -1 else ""
    with pytest.raises(ValueError, match=f"`{name}` must be {rule}"):
        Pool(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [5, [1], {0: LearningCurve(0)}, "ab", [None], LearningCurve(0)])
def test_curves_of_anything_else_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="must be an iterable of `LearningCurve`"):
        Curves(value)


WRONG: dict[str, Callable[[Any], Any]] = {
    "`learner` must be a whole number": lambda value: LearningCurve(value),
    "must be a tuple of `Observation`": lambda value: LearningCurve(0, value),
    "`dropped` must be a sentence": lambda value: LearningCurve(0, dropped=value),
    "`parameters` a mapping": lambda value: LearningCurve(0, parameters=value),
    "`cause` must be one of": lambda value: LearningCurve(0, dropped="so", cause=value),
}


@pytest.mark.parametrize("message", WRONG)
@pytest.mark.parametrize(
    "value", [None, 0.5, [1], (1.5,), object()], ids=["none", "share", "list", "tuple", "object"]
)
def test_a_curve_of_anything_else_is_refused(message: str, value: object) -> None:
    with pytest.raises(ValueError, match=message):
        WRONG[message](value)


@pytest.mark.parametrize(
    "seen",
    [
        *[("many", 0.8), (None, 0.8), (500.5, 0.8), (500, "high"), (500, None), (500, [0.8])],
        *[(500, 0.8, None, None, seconds) for seconds in (-1.0, float("nan"))],
    ],
)
def test_observations_are_of_numbers(seen: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="each with a whole number as size, a number as score"):
        LearningCurve(0, (Observation(*seen),))


@pytest.mark.parametrize("number", [5, np.int64(5), np.uint8(5), Five()])
def test_objects_that_are_whole_numbers_are_taken(number: Any) -> None:
    assert LearningCurve(number).learner == 5
    assert LearningCurve(0, (Observation(number, np.float32(0.5)),)).sizes == (5,)
    assert geometric_sizes(number, 40, 2.0) == (5, 10, 20, 40)
    assert DAUBPruner(min_resource=number, max_resource=40).policy.sizes[0] == 5
    assert Pool(to_come=number).may_propose


SIZES = (1, 2, 4, 1024)
NO_SIZES = "`first_sizes` must be some of the training sizes"


@pytest.mark.parametrize(
    ("policy", "wrong", "complaint"),
    [
        (DAUB, {"confidence": math.nan}, r"`confidence` must be in \(0, 1\), but got nan"),
        *((DAUB, {"first_sizes": x}, NO_SIZES) for x in ((3,), (2, 1), (1, 2, 2), (2048,))),
        (DAUB, {"tolerance": -1e-300}, "`tolerance` must be at least 0, but got -1e-300"),
        (DAUB, {"stop": "last"}, "`stop` must be one of .*, but got 'last'"),
        (ABC, {"epsilon": 0.0}, "`epsilon` must be between 0 and 1, but got 0.0"),
        (ABC, {"delta": 1.0}, "`delta` must be between 0 and 1, but got 1.0"),
        (ABC, {"n_validation": 0}, "`n_validation` must be at least 1, but got 0"),
        (SuccessiveHalving, {"keep_one_in": 1}, "`keep_one_in` must be at least 2, .*1"),
        (ValuePerSecond, {"cost": "hours"}, "`cost` .*hours"),
        (ValuePerSecond, {"price": math.inf}, "`price` must be at least 0 and finite"),
    ],
)
def test_what_a_policy_cannot_mean_is_refused(
    policy: Any, wrong: dict[str, Any], complaint: str
) -> None:
    """Values at the borders; `tests/test_arguments.py` tries many others."""
    with pytest.raises(ValueError, match=complaint):
        policy(SIZES, **wrong)


def test_growth_that_is_none_has_no_best_step() -> None:
    with pytest.raises(ValueError, match=r"`alpha` .* at least 0.01, but got 0.009.*at once"):
        step_for_growth(0.009)


@pytest.mark.parametrize("pruner", [DAUBPruner, DAUBPruner.paper, ABCPruner])
def test_arguments_without_names_are_answered_with_the_names(pruner: Any) -> None:
    with pytest.raises(TypeError, match=r"\(min_resource=500, max_resource=2800\), but got"):
        pruner(500, 2800)
    with pytest.raises(TypeError, match=r"\(max_resource=2800\), but got .*\(2800\)"):
        pruner(2800)
    with pytest.raises(TypeError, match="by name"):
        pruner(500, 2800, 1.5, max_resource=2800)


@pytest.mark.parametrize("pruner", [DAUBPruner, DAUBPruner.paper, ABCPruner])
def test_a_smallest_size_above_the_largest_is_a_swap(pruner: Any) -> None:
    with pytest.raises(ValueError, match=r"> 500, .* Are the two sizes swapped\?"):
        pruner(min_resource=2800, max_resource=500)


@pytest.mark.parametrize("full", [3, 5, 10, 210, 1000])
@pytest.mark.parametrize("ratio", [1.5, 2.0])
def test_the_smallest_size_that_an_error_names_is_one_that_works(full: int, ratio: float) -> None:
    if full < max(3, ratio**2):
        return
    with pytest.raises(ValueError, match=r"Take `min_resource=\d+` or less") as caught:
        geometric_sizes(full, full, ratio)
    named = int(str(caught.value).partition("min_resource=")[2].partition("`")[0])
    assert geometric_sizes(named, full, ratio)[0] == named
