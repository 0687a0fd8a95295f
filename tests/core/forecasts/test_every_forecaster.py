"""Laws that every forecaster must satisfy: a new one is one line in the list."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import Curves
from optuna_daub.core import Forecaster
from optuna_daub.core import LearningCurve
from optuna_daub.core import Observation
from optuna_daub.core import Pool
from optuna_daub.core.proposals import Given
from tests.core.forecasts import FORECASTERS
from tests.strategies import GRID
from tests.strategies import pools


every = pytest.mark.parametrize("forecaster", FORECASTERS.values(), ids=FORECASTERS)


@every
@given(pool=pools())
def test_a_learner_that_was_there_is_forecast_to_have_its_score(
    forecaster: Forecaster, pool: Pool
) -> None:
    for size in (GRID[-1], GRID[2]):
        found = forecaster.forecasts(pool, size)
        for learner, curve in pool.curves.items():
            if curve.size >= size:
                known = [found[learner].mean, *map(found[learner].quantile, (0.05, 0.5, 0.95))]
                assert [float(value) for value in known] == pytest.approx([curve.score] * 4)


@every
@given(pool=pools(), probability=st.floats(0.05, 0.95))
def test_every_learner_has_a_forecast_and_all_at_once_are_as_one_by_one(
    forecaster: Forecaster, pool: Pool, probability: float
) -> None:
    found = forecaster.forecasts(pool, GRID[-1])
    assert [*found] == [*pool.curves]
    quantiles = np.asarray(found.all.quantile(probability)).reshape(-1)
    assert quantiles == pytest.approx([float(f.quantile(probability)) for f in found.values()])
    assert not np.isnan(quantiles).any()
    for one in found.values():
        assert not np.isnan(one.mean)


@every
@given(pool=pools(), data=st.data())
def test_neither_order_nor_history_matters(
    forecaster: Forecaster, pool: Pool, data: st.DataObject
) -> None:
    curves = data.draw(st.permutations([*pool.curves.values()]))
    anew = [LearningCurve(c.learner, c.observations, c.dropped) for c in curves]
    shuffled = dataclasses.replace(pool, curves=Curves(anew))
    twin = dataclasses.replace(forecaster)  # type: ignore[type-var]
    before, after = forecaster.forecasts(pool, 36), twin.forecasts(shuffled, 36)
    assert [*before] == [*after]
    np.testing.assert_array_equal(before.all.quantile(0.9), after.all.quantile(0.9))


@every
@given(pool=pools())
def test_a_newcomer_has_a_forecast_and_before_any_score_may_be_anything(
    forecaster: Forecaster, pool: Pool
) -> None:
    anyone = np.full((1, len(pool.known_space.dimensions)), np.nan)
    new = forecaster.candidates(dataclasses.replace(pool, proposer=Given(anyone)), GRID[-1]).at(0)
    assert new.scale >= 0.0
    if not any(curve.observations for curve in pool.curves.values()):
        assert new.scale == math.inf
    assert float(new.quantile(0.1)) <= float(new.quantile(0.9))


@every
def test_a_pool_of_no_learners_has_no_forecasts(forecaster: Forecaster) -> None:
    found = forecaster.forecasts(Pool(), 1000)
    assert len(found) == 0
    assert np.asarray(found.all.quantile(0.9)).size == 0


@every
def test_an_observation_changes_no_forecast_made_before(forecaster: Forecaster) -> None:
    seen = (Observation(500, 0.6, 0.9), Observation(1000, 0.65, 0.85))
    before = Pool(Curves([LearningCurve(0, seen), LearningCurve(1, seen)]))
    stated = forecaster.forecasts(before, 4000)[1]
    first = float(stated.quantile(0.9))
    after = before.observed(0, Observation(2000, 0.9, 0.9))
    forecaster.forecasts(after, 4000)
    assert float(stated.quantile(0.9)) == first
    assert float(forecaster.forecasts(before, 4000)[1].quantile(0.9)) == first


@every
def test_a_forecaster_is_a_value(forecaster: Forecaster) -> None:
    assert dataclasses.replace(forecaster) == forecaster  # type: ignore[type-var]
    assert hash(dataclasses.replace(forecaster)) == hash(forecaster)  # type: ignore[type-var]


@every
def test_draws_of_all_learners_are_spread_as_the_forecasts_say(forecaster: Forecaster) -> None:
    rng = np.random.default_rng(0)
    curves = []
    for i in range(8):
        sizes = (500, 1000, 2000, 4000)[: 4 if i == 3 else 1 + i % 3]
        seen = [Observation(n, 0.8 + rng.random() / 10 - 10 / n, 0.9) for n in sizes]
        curves.append(LearningCurve(i, tuple(seen), parameters={"depth": i % 5, "rate": i / 7}))
    found = forecaster.forecasts(Pool(Curves(curves), to_come=None), 4000)
    drawn = found.draws(4000, np.random.default_rng(1))
    assert drawn.shape == (4000, 8)
    assert (drawn[:, 3] == curves[3].score).all(), "it was trained on all the data"
    for probability in (0.1, 0.5, 0.9):
        stated = np.asarray(found.all.quantile(probability))
        shares = (drawn <= stated).mean(axis=0)
        unsure = np.isfinite(stated) & (np.ptp(drawn, axis=0) > 0.0)
        assert shares[unsure] == pytest.approx(probability, abs=0.03)
