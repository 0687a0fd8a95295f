from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.learners.boosting import MAX_EDGE
from optuna_daub.learners.boosting import exponential_weights
from optuna_daub.learners.boosting import madaboost_weights
from optuna_daub.learners.boosting import vote_weight


ALPHAS = np.array([0.423649, 0.309520, 0.202733])
CORRECT = np.array([[1, 1, -1, 1], [1, -1, -1, 1], [1, 1, 1, -1]])
"""formulas.md 3.9: which of three hypotheses is right on which of four points."""
MARGINS = np.cumsum(ALPHAS[:, np.newaxis] * CORRECT, axis=0)


def test_madaboost_weighs_as_published() -> None:
    weights = madaboost_weights(MARGINS)
    expected = [
        (0.654654, 0.654654, 1.0, 0.654654),
        (0.480384, 0.892143, 1.0, 0.480384),
        (0.392232, 0.728431, 1.0, 0.588348),
    ]
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    distribution = [
        (0.220871, 0.220871, 0.337386, 0.220871),
        (0.168384, 0.312713, 0.350519, 0.168384),
        (0.144788, 0.268892, 0.369138, 0.217182),
    ]
    scaled = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scaled, distribution, atol=1e-6)


def test_adaboost_weighs_as_published() -> None:
    weights = exponential_weights(MARGINS[-1:], np.ones(4))
    np.testing.assert_allclose(weights[0], (0.115068, 0.213699, 0.498630, 0.172603), atol=1e-6)


@given(edge=st.floats(0.0, 0.999))
def test_weight_of_a_vote_halves_the_weight_of_its_errors(edge: float) -> None:
    """After the update a hypothesis is as good as guessing, which defines alpha."""
    signs = np.array([[1.0, -1.0]])
    shares = np.array([1.0 + edge, 1.0 - edge]) / 2.0
    assert exponential_weights(signs * vote_weight(edge), shares)[0, 0] == pytest.approx(0.5)


@given(edge=st.floats(0.001, 0.999))
def test_scale_of_the_weights_is_that_of_the_error_bound(edge: float) -> None:
    # Z = sqrt(1 - gamma^2) = 1 / cosh(alpha)
    assert 1.0 / np.cosh(vote_weight(edge)) == pytest.approx(np.sqrt(1.0 - edge**2))


def test_weight_of_a_vote_is_finite_and_not_negative() -> None:
    assert vote_weight(1.0) == vote_weight(MAX_EDGE) < 12.0
    assert vote_weight(-0.3) == 0.0


def test_weights_survive_large_margins() -> None:
    weights = exponential_weights(np.array([[2000.0, 2001.0], [-3000.0, 0.0]]), np.ones(2))
    np.testing.assert_allclose(weights[0], [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))])
    np.testing.assert_allclose(weights[1], [1.0, 0.0])
