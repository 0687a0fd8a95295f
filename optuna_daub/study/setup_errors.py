"""Errors of set-up.

They end a study at once, even if it catches errors of trials. A direction that does not fit the
scorer, or sizes that do not fit the rows, would fail every trial. With `study.optimize(...,
catch=(Exception,))` such a study would go on failing all night. So an objective raises
`SetupError` within `ending_study` before it trains anything. The sampler raises it again by
`raise_anew` in `after_trial`, where `catch` has no effect.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager

import optuna

from optuna_daub.study import host


_logger = logging.getLogger(__name__)


class SetupError(ValueError):
    """An error of set-up: no trial of the study can work until it is mended."""


@contextmanager
def ending_study(study: optuna.Study) -> Iterator[None]:
    """End `study.optimize` if a `SetupError` is raised in this context.

    The error passes through. With a sampler of another library `catch` may hide it, so the study
    is stopped and the full message is logged; Optuna's own log cuts long messages. With ours
    `raise_anew` ends the study instead, since stopping it would lose the error in a thread of
    `n_jobs`.

    >>> study = optuna.create_study()
    >>> with ending_study(study):
    ...     pass
    """
    from optuna_daub.study.sampler import DataAllocationSampler  # which imports this module

    try:
        yield
    except SetupError as error:
        if not isinstance(study.sampler, DataAllocationSampler):
            _logger.error("Study '%s' ends: %s", study.study_name, error)
            host.stop(study)
        raise


def raise_anew(error: BaseException | None) -> None:
    """Raise an error of set-up in `sampler.after_trial`, and so out of `study.optimize`.

    Other errors are left to Optuna.

    >>> raise_anew(ValueError("of one learner")), raise_anew(None)
    (None, None)
    """
    if isinstance(error, SetupError):
        raise error


def check_steps(
    sizes: Sequence[int], number: int, steps: Iterable[int], given: Iterable[int] | None = None
) -> None:
    """Raise a SetupError if a trial's reported step is not a training size.

    Args:
        sizes: sizes of the study.
        number: number of the trial.
        steps: steps that it has reported.
        given: steps that it may have reported; by default all of `sizes`.
    """
    others = {*steps} - {*(sizes if given is None else given)}
    if others:
        listed = ", ".join(f"{size:,}" for size in sizes)
        asked = ", for which it was not asked" if {*others} & {*sizes} else ""
        raise SetupError(
            f"The step of `trial.report` is the training size, one of {listed}, but trial "
            f"{number} reported step {min(others):,}{asked}. Report the sizes of "
            "`training_sizes(trial)` only, and no epochs: leave out a callback that does, such as "
            "Optuna's pruning callbacks."
        )
