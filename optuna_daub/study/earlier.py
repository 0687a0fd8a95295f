"""Earlier studies, whose best parameters are the first proposals of a new study.

Scores on other data say nothing about scores on these data, so none is used. Only parameters are,
of learners that were trained on all the data of their study.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from itertools import chain
from itertools import islice
from itertools import zip_longest
from typing import Any
from typing import TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from optuna_daub.core.checks import brief
from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.exploring import fixed_by
from optuna_daub.study.learner import Learner
from optuna_daub.study.records import Run
from optuna_daub.study.spaces import holds
from optuna_daub.study.spaces import stored
from optuna_daub.study.stored_policy import settings_of
from optuna_daub.study.worker import Worker
from optuna_daub.study.worker import looking


Point: TypeAlias = Mapping[str, Any]
"""Parameters by name."""

SHARES = (1 / 3, 1.0)
"""Largest costs of learners from an earlier study, relative to its best one. The cheap ones of all
studies go first: the best ones often cost so much that there is no model for a long time (`"ours,
earlier"` of `benchmarks/search.py`)."""

MOST_POINTS = 5
"""Largest number of points taken. More would take the time of the first proposals
(`benchmarks/search.py --methods "ours, earlier"`)."""


@dataclass(frozen=True)
class Earlier:
    """Points taken from earlier studies; nothing of the studies themselves is kept."""

    points: Mapping[str, Point] = field(default_factory=dict)
    """Points by their text, a cheap one of each study first."""
    directions: tuple[tuple[str, str], ...] = ()
    """Name and direction of each study."""

    @classmethod
    def of(cls, studies: Sequence[optuna.Study]) -> Earlier:
        """Return the best points of earlier studies.

        Raises:
            ValueError: if the argument is not a list of studies, or a study has no learner that
                was trained on all the data.
        """
        is_list = isinstance(studies, Sequence) and not isinstance(studies, str)
        if not is_list or not all(isinstance(study, optuna.Study) for study in studies):
            raise ValueError(
                "`earlier` must be a list of studies, such as `earlier=[optuna.load_study(...)]`, "
                f"but got {brief(studies)}."
            )
        best = chain.from_iterable(zip_longest(*[_best_points(study) for study in studies]))
        found = {repr(sorted(point.items())): point for point in best if point is not None}
        found = dict(islice(found.items(), MOST_POINTS))
        directions = tuple((study.study_name, study.direction.name.lower()) for study in studies)
        return cls(found, directions)

    def check(self, study: optuna.Study) -> None:
        """Raise a ValueError if an earlier study has another direction than this one."""
        direction = study.direction.name.lower()
        for name, other in self.directions:
            if other != direction:
                raise ValueError(
                    f"Earlier studies must have the direction of this one, {direction}, but study "
                    f"'{name}' has {other}: leave it out of `earlier`."
                )

    def next_point(
        self, study: optuna.Study, worker: Worker, trial: FrozenTrial, run: Run
    ) -> Point | None:
        """Return the point that a new learner takes.

        None if the sampler should propose one. Only the first learners take points, as many as
        there are points. A process takes each point once, even if the policy declines it or a
        value was out of range. Call this under the worker's lock, so the next thread sees which
        points are taken.
        """
        number, known = trial.number, worker.known
        left = {text: point for text, point in self.points.items() if text not in worker.given}
        # A chosen point is an enqueued one, or one of GridSampler.
        if run.learner != number or not left or records.is_chosen(log.as_stored(study, trial)):
            return None
        others = {i: one for i, one in known.learners.items() if i != number}
        # Those with lower numbers: another thread may have a later learner already.
        proposed = (i for i, one in others.items() if i < number and not _is_enqueued(one, i))
        if len([*islice(proposed, len(self.points))]) == len(self.points):
            return None
        fixed = fixed_by(study.sampler)
        for text, point in [*left.items()]:
            if any(_is_same(point, one.params) for one in others.values()):
                del left[text]
            elif not _fits(point, worker, fixed):
                worker.given[text] = number
                del left[text]
        # Other processes do not say which points their newest learners are about to take. Those
        # with lower numbers take the first ones. Those of this process's other threads have taken
        # theirs, even if they have ended since this worker looked.
        settled = {*worker.assigned, *worker.given.values()}
        n_ahead = sum(
            run.learner == i < number and i not in settled and not others[i].params
            for i, run in known.runs.items()
            if i in others
        )
        if n_ahead >= len(left):
            return None
        text = [*left][n_ahead]
        worker.given[text] = number
        return left[text]


class FromEarlier(BaseSampler):
    """Propose a given point. Another sampler proposes values that it lacks or that are out of
    range."""

    def __init__(self, base: BaseSampler, point: Point, worker: Worker) -> None:
        self._base = base
        self._point = point
        self._worker = worker

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return no space, so each parameter is proposed when the objective asks for it."""
        del study, trial
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return no parameters."""
        del study, trial, search_space
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the point's value, or the other sampler's if it is missing or not allowed."""
        if param_name in self._point:
            value = self._point[param_name]
            if holds(param_distribution, value):
                return stored(value, param_distribution)
            _warn(self._worker, param_name, value, _out_of(param_distribution))
        return self._base.sample_independent(study, trial, param_name, param_distribution)


def _best_points(study: optuna.Study) -> list[Point]:
    """Return the parameters of a study's best cheap learner, and of its best learner.

    Both were trained on all the data of their study. There is only one point if they are the same
    learner, as without measured seconds, or if no learner is cheap.
    """
    known = looking(study).known
    sizes = settings_of(study).get("sizes", [0])
    whole = [
        i
        for i, one in known.learners.items()
        if one.params and not one.curve.dropped and one.curve.size == sizes[-1]
    ]
    if not whole:
        raise ValueError(
            "Each study of `earlier` must have a learner that `DataAllocationSampler` has trained "
            f"on all its data, but study '{study.study_name}' has none. Leave it out, and give "
            "parameters that you know to be good to `study.enqueue_trial`."
        )
    score = {i: known.curves[i].observations[-1].score for i in whole}
    cost = {i: known.curves[i].observations[-1].seconds or 0.0 for i in whole}
    best = max(whole, key=lambda i: (score[i], -i))
    found: dict[int, Point] = {}
    for share in SHARES:
        cheap = [i for i in whole if cost[i] <= share * cost[best]]
        if cheap:
            chosen = max(cheap, key=lambda i: (score[i], -i))
            found[chosen] = known.learners[chosen].params
    return [*found.values()]


def _fits(point: Point, worker: Worker, fixed: Point) -> bool:
    """Return whether a point has the fixed values and is in this study's known ranges."""
    drawn = worker.known.drawn
    for name, value in point.items():
        if name in fixed and value != fixed[name]:
            _warn(worker, name, value, f"the base sampler fixes {brief(fixed[name])}")
            return False
        if name in drawn and not holds(drawn[name], value):
            _warn(worker, name, value, _out_of(drawn[name]))
            return False
    return True


def _warn(worker: Worker, name: str, value: Any, reason: str) -> None:
    """Warn that an earlier value cannot be taken, once for each parameter."""
    worker.warn(
        f"earlier {name}",
        f"{name} = {brief(value)} of an earlier study is left out: {reason}.",
    )


def _out_of(distribution: BaseDistribution) -> str:
    return f"it is not in the {distribution} of this study"


def _is_enqueued(learner: Learner, number: int) -> bool:
    first = learner.runs.get(number)
    return first is not None and first.enqueued is not None


def _is_same(point: Point, params: Mapping[str, Any]) -> bool:
    """Return whether a learner has a point's values in all parameters that both have."""
    shared = point.keys() & params.keys()
    return bool(shared) and all(point[name] == params[name] for name in shared)
