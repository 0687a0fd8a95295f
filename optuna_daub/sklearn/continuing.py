"""Going on with a stored search: what it was begun with has to be the same."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

import optuna
from optuna.study import StudyDirection

from optuna_daub.study import log


_SEARCH = "search"
"""The mark of a study under which it is kept."""

_UNSAID = "settings that do not say it"
"""What a search was begun with, in a record that does not say."""


def check_search(study: optuna.Study, begun_with: Mapping[str, str]) -> None:
    """Store what a search is begun with, or compare with what its study was begun with.

    As long as nothing was observed it may still be mended.

    Args:
        study: new, or continued.
        begun_with: what searches of one study must have in common, by name, in words.

    Raises:
        ValueError: where something differs, or the study minimizes.
    """
    if study.direction != StudyDirection.MAXIMIZE:
        raise ValueError(
            f"A search maximizes its score, but study '{study.study_name}' minimizes. Take "
            "another `study_name`."
        )
    begun = log.read_mark(study, _SEARCH)
    trials = study.get_trials(deepcopy=False)
    if begun is None or not any(trial.intermediate_values for trial in trials):
        log.write_mark(study, _SEARCH, {**begun_with})
        return
    for name, value in begun_with.items():
        before = begun.get(name, _UNSAID)
        if before != value:
            # Of long texts the part from which they differ, with what stands before it.
            pairs = zip(before, value, strict=False)
            start = max(len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) - 80, 0)
            lead = "..." if start else ""
            then, now = (
                text if len(text) <= 200 else f"{lead}{text[start : start + 200]}..."
                for text in (before, value)
            )
            raise ValueError(
                f"A search must go on with the {name} it was begun with: study "
                f"'{study.study_name}' was begun with {then}, but now has {now}. Use "
                "what it was begun with, or another `study_name`."
            )
