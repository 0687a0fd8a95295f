"""Prior of the process in `process`: its numbers, and distributions of its hyperparameters.

A length scale grows with the square root of the number of parameters that vary, as distances do
[1].

[1] C. Hvarfner, E. O. Hellsten, L. Nardi, "Vanilla Bayesian Optimization Performs Great in High
    Dimensions", ICML 2024. https://arxiv.org/abs/2402.02229
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optuna_daub.core.space import Numbers


class Scales(NamedTuple):
    """One number for each kind of hyperparameter."""

    length: float
    """Length scale of one parameter in ranges, divided by sqrt(D). D is the number of parameters
    that vary, at least 1."""
    f: float
    """Standard deviation of f, in standard deviations of the scores, as for all below."""
    g: float
    """Standard deviation of g."""
    b: float
    """Standard deviation of b."""
    u: float
    """Standard deviation of u."""
    v: float
    """Standard deviation of the shared walk V at N / 8."""
    w: float
    """Standard deviation of a learner's own walk at N / 8."""
    noise: float
    """Standard deviation of one score."""


class Prior(NamedTuple):
    """Prior of the process."""

    bend: float
    """c of phi: gains from one doubling to the next shrink by the factor 2^-c."""
    mean_gain: float
    """Mean of b, in standard deviations of the scores."""
    effort_mean: float
    """Mean of e, the level's slope in the logarithm of seconds, in the same unit."""
    effort_sd: float
    """Standard deviation of e."""
    median: Scales
    """Medians of the hyperparameters, whose logarithms are normal."""
    spread: Scales
    """Standard deviations of these logarithms."""

    def phi(self, doublings: ArrayLike) -> Numbers:
        """Return the share of the gain that is still to come.

        It is 1 at N / 8.

        >>> PRIOR.phi([0.0, 3.0])
        array([0., 1.])
        """
        bend = self.bend * math.log(2.0)
        return np.asarray(np.expm1(bend * np.asarray(doublings, float)) / math.expm1(3.0 * bend))

    def theta(self, n_parameters: int, n_varying: float) -> tuple[Numbers, Numbers]:
        """Return the medians of theta, and standard deviations around them.

        Args:
            n_parameters: number of parameters of the space, each with a length scale.
            n_varying: mean number of parameters of a learner that differ among the learners.
        """
        length = self.median.length * math.sqrt(max(n_varying, 1))  # section 4 of [1]
        medians = np.log([*[length] * n_parameters, *self.median[1:]])
        return medians, np.array([*[self.spread.length] * n_parameters, *self.spread[1:]])


def _fitted() -> Prior:
    values = json.loads(Path(__file__).with_name("process.json").read_text("utf-8"))
    median, spread = Scales(**values["median"]), Scales(**values["spread"])
    del values["source"], values["median"], values["spread"]
    return Prior(**values, median=median, spread=spread)


PRIOR = _fitted()
"""Fitted to searches on surrogates, and judged on others, by `benchmarks/fit/process.py`. The
length and the bend were chosen by the losses of searches and by how often intervals hold
(`--values` there), since a bend of 0.5 has the same densities, also of boosted trees (`--tables`).
The mean and the standard deviation of the slope in effort were chosen by what searches on all
surrogates lose. Compared were means of 0, 0.3 and 0.4 with standard deviations of 0.3, 0.2 and 0.4
(`--number effort_mean`)."""
