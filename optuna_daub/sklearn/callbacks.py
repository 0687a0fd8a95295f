"""The tasks of a search, for scikit-learn's callbacks (from scikit-learn 1.9 on).

They have the names of those of `RandomizedSearchCV`: the fit, which contains the search, with one
task for each training of a candidate on a fold, and the last fit of the best candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING
from typing import Any


if TYPE_CHECKING:
    from optuna_daub.sklearn.search_cv import DataAllocationSearchCV


@dataclass(frozen=True)
class Fit:
    """The task of a whole fit. Nothing is reported if scikit-learn has no callbacks."""

    search: DataAllocationSearchCV
    data: Mapping[str, Any]
    """X, y and weights, as hooks of callbacks are given them."""
    context: Any
    """Root context of the callbacks; None if scikit-learn has none."""

    @contextmanager
    def searching(self) -> Iterator[Callable[[], dict[str, Any]]]:
        """Report the search, and yield a function that makes the task of one training.

        The function returns more arguments for scikit-learn's `_fit_and_score`. Several threads
        may call it.
        """
        if self.context is None:
            yield dict
            return
        # The number of trainings is unknown: most candidates stop on few rows.
        search = self.context.subcontext(
            task_name="search", max_subtasks=None, sequential_subtasks=False
        ).call_on_fit_task_begin(estimator=self.search)
        numbers = count()

        def training() -> dict[str, Any]:
            name = "candidate-split-evaluation"
            task = search.subcontext(task_name=name, task_id=next(numbers))
            return {"callback_ctx": task, "caller": self.search}

        yield training
        search.call_on_fit_task_end(estimator=self.search)

    @contextmanager
    def refitting(self, model: Any) -> Iterator[None]:
        """Report the last fit, of this model."""
        if self.context is None:
            yield
            return
        task = self.context.subcontext(task_name="refit-with-best-params")
        with task.propagate_callback_context(model):
            task.call_on_fit_task_begin(estimator=self.search, **self.data)
            yield
        task.call_on_fit_task_end(estimator=self.search, **self.data)

    def end(self) -> None:
        """Report the end of the fit."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.search, **self.data)


def begun(search: DataAllocationSearchCV, X: Any, y: Any, params: Mapping[str, Any]) -> Fit:
    """Return the task of a fit that starts, and report it to the callbacks.

    Args:
        search: search that is fitted.
        X, y: data.
        params: arguments of `fit`.
    """
    weight = params.get("sample_weight")
    metadata = None if weight is None else {"sample_weight": weight}
    data = {"X": X, "y": y, "metadata": metadata}
    if not hasattr(search, "set_callbacks"):
        return Fit(search, data, None)
    context = search._init_callback_context(max_subtasks=1 + (search.refit is not False))
    context.call_on_fit_task_begin(estimator=search, **data)
    return Fit(search, data, context)
