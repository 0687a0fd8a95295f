"""The fingerprint of a study: table, division, scorer and sizes that its scores belong to."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from itertools import takewhile
from typing import Any
from zlib import crc32

import numpy as np
import optuna
import scipy.sparse
from optuna.trial import TrialState
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from optuna_daub.objective.description import stable
from optuna_daub.objective.matching import column_names
from optuna_daub.objective.subsets import Fold
from optuna_daub.study import log


SAMPLED_ROWS = 1_000
"""Rows of the features in a checksum, evenly spaced. All targets are in it."""

_MARK = "search"
"""Key under which a study keeps its fingerprint."""

TRAINING = "way of training"
"""Name of a setting that older records lack; it may have been any."""

_UNSAID = "an unknown value"
"""Text in place of a setting that an older record lacks."""


def of_table(X: Any, y: Any, *more: Any) -> str:
    """Return the number of rows of a table and a checksum.

    Features may be large, so only some of their rows are read.

    >>> of_table(np.eye(3), np.arange(3)) == of_table(np.eye(3), np.arange(3))
    True
    >>> of_table(np.eye(3), np.arange(3)) == of_table(2 * np.eye(3), np.arange(3))
    False

    Args:
        X: features, one row per example.
        y: targets, or None.
        more: further columns, such as weights, or None.
    """
    n_rows = _num_samples(X)
    wanted = np.unique(np.linspace(0, n_rows - 1, SAMPLED_ROWS).astype(np.intp))
    sample = _safe_indexing(X, wanted)
    names: list[Any] = []
    if scipy.sparse.issparse(sample):
        sample = sample.tocsr()  # type: ignore[attr-defined]
        sample.sort_indices()
        parts = [sample.data, sample.indices, sample.indptr, sample.shape]
    elif hasattr(sample, "columns"):
        names = column_names(sample)
        # By place, as names may come twice.
        parts = [np.asarray(_safe_indexing(sample, i, axis=1)) for i in range(len(names))]
    else:
        parts = [sample if isinstance(sample, list) else np.asarray(sample)]
    columns_of_all = [np.asarray(each) for each in (y, *more) if each is not None]
    return f"{n_rows:,} rows, checksum {crc32(stable([names, parts, columns_of_all]).encode())}"


def of_folds(folds: Sequence[Fold]) -> str:
    """Return the number of folds, and a checksum of their rows.

    >>> of_folds([Fold(np.array([2, 0]), np.array([1]))])
    '1 fold, checksum 3058697905'
    """
    rows = b"".join(fold.training.tobytes() + fold.validation.tobytes() for fold in folds)
    return f"{len(folds)} fold{'s' * (len(folds) > 1)}, checksum {crc32(rows)}"


def check_fingerprint(
    study: optuna.Study, begun_with: Mapping[str, str], asking: int | None = None
) -> bool:
    """Store a study's fingerprint, or compare it with the stored one.

    A stored one is replaced if nothing was observed yet and no other trial is running.

    Args:
        study: new, or continued.
        begun_with: fingerprint, as descriptions by name.
        asking: number of the trial that asks; None if none does.

    Returns:
        True if the study's fingerprint is fixed from now on.

    Raises:
        ValueError: if something differs.
    """
    stored = read_fingerprint(study)
    is_begun = any(
        trial.intermediate_values or (trial.state == TrialState.RUNNING and trial.number != asking)
        for trial in study.get_trials(deepcopy=False)
    )
    if not stored or not is_begun:
        if stored != begun_with:
            log.write_mark(study, _MARK, {**begun_with})
        return is_begun
    for name, value in begun_with.items():
        before = stored.get(name, value if name == TRAINING else _UNSAID)
        if before != value:
            # Long texts are shown from a little before the place at which they differ.
            pairs = zip(before, value, strict=False)
            start = max(len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) - 80, 0)
            lead = "..." if start else ""
            then, now = (
                text if len(text) <= 200 else f"{lead}{text[start : start + 200]}..."
                for text in (before, value)
            )
            raise ValueError(
                f"A study must go on with the {name} it was started with: study "
                f"'{study.study_name}' was started with {then}, but now has {now}. Its scores "
                "would be mixed with others. Use the earlier ones, or another `study_name`."
            )
    return True


def read_fingerprint(study: optuna.Study) -> Mapping[str, str]:
    """Return a study's fingerprint by name; empty if none is stored."""
    return log.read_mark(study, _MARK) or {}


def identity(study: optuna.Study) -> str:
    """Return a text that no other study has once its first trial runs.

    Names and ids are used again after a study was deleted, and two storages may have the same.

    >>> studies = [optuna.create_study(study_name="tuning") for _ in range(2)]
    >>> for study in studies:
    ...     _ = study.ask()
    >>> identity(studies[0]) == identity(studies[0]) != identity(studies[1])
    True
    """
    first = study.get_trials(deepcopy=False)[:1]
    return f"{study.study_name} {log.study_id(study)} {[trial.datetime_start for trial in first]}"
