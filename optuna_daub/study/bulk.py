"""Many writes in one transaction; Optuna's storages write one value at a time.

A study of 1,000 learners has 20,000 numbers to write each time it is drawn. Through Optuna's
storage this takes 46 ms of processor time per trial on SQLite, and a finished trial cannot be
written again. In a relational database all of them are one transaction here, so no reader sees
half of it. It writes to the tables of Optuna's models, which are the same in all releases from 4.0
to 5.0. Other storages are written by their own methods.

Only data that no other program writes are written in this way: the pictures and notes for
optuna-dashboard, and the study with one trial per learner.
"""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from optuna.distributions import distribution_to_json
from optuna.storages import BaseStorage
from optuna.storages import InMemoryStorage
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from optuna_daub.study import records


MOST_VARIABLES = 500
"""Largest number of variables in one SQL statement; SQLite allowed 999 until 2020."""

MIN_CHANGE = 0.01
"""Smallest change of a forecast that is written to a journal. It is a share of the range of all
values, four pixels of a page's picture."""


def set_study_attrs(storage: BaseStorage, study_id: int, attrs: Mapping[str, Any]) -> None:
    """Store system attributes of a study, in a database all of them at once."""
    database = _database(storage)
    if database is None or not attrs:
        for name, value in attrs.items():
            storage.set_study_system_attr(study_id, name, value)
        return
    from optuna.storages._rdb import models  # loads SQLAlchemy

    table = models.StudySystemAttributeModel.__table__
    rows = [
        {"study_id": study_id, "key": name, "value_json": json.dumps(value)}
        for name, value in attrs.items()
    ]
    with database.engine.begin() as connection:
        mine = table.c.study_id == study_id
        for begin in range(0, len(rows), MOST_VARIABLES):
            names = [row["key"] for row in rows[begin : begin + MOST_VARIABLES]]
            connection.execute(table.delete().where(mine, table.c.key.in_(names)))
        connection.execute(table.insert(), rows)


def replace_trials(storage: BaseStorage, study_id: int, rows: Sequence[FrozenTrial]) -> int:
    """Replace the trials of a study by `rows`, and return the study's id.

    In a database the study and its trials keep their ids. Other storages cannot write finished
    trials again. There new rows are added at the end, to a journal finished ones only. If an
    earlier row has changed too much (`_looks_like`), the study is deleted and created anew: it
    gets a new id and loses its attributes.

    Args:
        storage: storage of the study.
        study_id: id of a study with one objective, created by this package.
        rows: new trials; they get the numbers 0, 1, 2, ...
    """
    database = _database(storage)
    if database is None:
        rows = [row for row in rows if row.state.is_finished()] if keeps_all(storage) else rows
        added = _news(storage, storage.get_all_trials(study_id, deepcopy=False), rows)
        if added is None:
            name = storage.get_study_name_from_id(study_id)
            directions: Sequence[StudyDirection] = storage.get_study_directions(study_id)
            storage.delete_study(study_id)
            study_id, added = storage.create_new_study(directions, name), rows
        for row in added:
            storage.create_new_trial(study_id, row)
        return study_id
    import sqlalchemy
    from optuna.storages._rdb import models  # loads SQLAlchemy

    trials = models.TrialModel.__table__
    mine = trials.c.study_id == study_id
    parts = (
        models.TrialParamModel,
        models.TrialValueModel,
        models.TrialIntermediateValueModel,
        models.TrialUserAttributeModel,
        models.TrialSystemAttributeModel,
    )
    with database.engine.begin() as connection:
        # The first statement writes, so two workers take turns on SQLite too. Trials go last: a
        # part that is left without one would be a part of the next trial with the same id.
        for part in parts:
            ids = trials.select().where(mine).with_only_columns(trials.c.trial_id)
            table = part.__table__
            connection.execute(table.delete().where(table.c.trial_id.in_(ids)))
        connection.execute(trials.delete().where(mine, trials.c.number >= len(rows)))
        known = trials.select().where(mine).with_only_columns(trials.c.number, trials.c.trial_id)
        trial_ids = {number: trial_id for number, trial_id in connection.execute(known)}
        later = []
        for number, row in enumerate(rows):
            facts = {"state": row.state, **_times(models.TrialModel, row)}
            if number in trial_ids:
                later.append({"its_id": trial_ids[number], **facts})
            else:
                begun = {"study_id": study_id, "number": number, **facts}
                key = connection.execute(trials.insert().values(**begun)).inserted_primary_key
                assert key is not None
                (trial_ids[number],) = key
        if later:
            place = trials.c.trial_id == sqlalchemy.bindparam("its_id")
            connection.execute(trials.update().where(place), later)
        for part in parts:
            news = [
                {"trial_id": trial_ids[number], **fact}
                for number, row in enumerate(rows)
                for fact in _facts(models, part, row)
            ]
            if news:
                connection.execute(part.__table__.insert(), news)
    return study_id


def keeps_all(storage: BaseStorage) -> bool:
    """Return whether a storage keeps what is overwritten. Such storages, as journals are, grow
    with each write."""
    return _database(storage) is None and not isinstance(storage, InMemoryStorage)


def _database(storage: BaseStorage) -> RDBStorage | None:
    """Return the relational database behind a storage; None if there is none."""
    storage = getattr(storage, "_backend", storage)  # by default it is wrapped in a cache
    return storage if isinstance(storage, RDBStorage) else None


def _news(
    storage: BaseStorage, stored: Sequence[FrozenTrial], rows: Sequence[FrozenTrial]
) -> Sequence[FrozenTrial] | None:
    """Return the rows that are not stored yet. None if a stored row must change."""
    if not keeps_all(storage):
        return [] if [*map(_shown, stored)] == [*map(_shown, rows)] else None
    values = [row.values[0] for row in rows if row.values and math.isfinite(row.values[0])]
    least = MIN_CHANGE * (max(values) - min(values)) if values else 0.0
    left = dict(_keyed(rows))
    for key, before in _keyed(stored):
        row = left.pop(key, None)
        if row is None or not _looks_like(before, row, least):
            return None
    return [*left.values()]


def _keyed(rows: Sequence[FrozenTrial]) -> Iterator[tuple[Any, FrozenTrial]]:
    """Yield each row with a key: its learner, or all its contents if it has no learner.

    Equal rows without a learner are numbered, since a user may add the same trial twice.
    """
    met: Counter[Any] = Counter()
    for row in rows:
        learner = records.read_summary(row, "learner")
        key = _shown(row) if learner is None else learner
        met[key] += 1
        yield (key, met[key]), row


def _looks_like(before: FrozenTrial, row: FrozenTrial, least: float) -> bool:
    """Return whether two rows of a learner differ in small changes only.

    These are changes of its forecast and its bound, by at most `least`. Before it has its
    full-data score, the words that say why it waits may change too.
    """
    moving = ("bound", "reason") if records.read_summary(row, "forecast") else ("bound",)
    names = records.prefixed(dict.fromkeys(moving))
    resting, moved = [], []
    for each in (before, row):
        rest = copy.copy(each)
        rest.values = None if each.values is None else [0.0]
        rest.user_attrs = {k: v for k, v in each.user_attrs.items() if k not in names}
        resting.append(_shown(rest))
        moved.append([*(each.values or ()), records.read_summary(each, "bound")])
    return resting[0] == resting[1] and all(
        one == other
        or (None not in (one, other) and math.isclose(one, other, rel_tol=0.0, abs_tol=least))
        for one, other in zip(*moved, strict=True)
    )


def _shown(row: FrozenTrial) -> str:
    """Return a trial's visible contents, except its place, as a storage returns them.

    In JSON a tuple is a list, and NaN is NaN.
    """
    times = [str(row.datetime_start), str(row.datetime_complete)]
    steps = sorted(row.intermediate_values.items())
    attrs = row.user_attrs, row.system_attrs
    facts = row.state.name, row.values, row.params, steps, attrs, times
    return json.dumps(facts, sort_keys=True, default=repr)


def _times(model: Any, row: FrozenTrial) -> dict[str, Any]:
    """Return a trial's start and end, in the columns of the installed Optuna."""
    as_stored = model(datetime_start=row.datetime_start, datetime_complete=row.datetime_complete)
    columns = [model.__table__.c[name] for name in ("datetime_start", "datetime_complete")]
    return {
        column.name: getattr(as_stored, model.__mapper__.get_property_by_column(column).key)
        for column in columns
    }


def _facts(models: Any, part: Any, row: FrozenTrial) -> list[dict[str, Any]]:
    """Return the rows that a trial has in one of the tables."""
    if part is models.TrialParamModel:
        return [
            {
                "param_name": name,
                "param_value": kind.to_internal_repr(row.params[name]),
                "distribution_json": distribution_to_json(kind),
            }
            for name, kind in row.distributions.items()
        ]
    if part is models.TrialValueModel:
        as_stored = [part.value_to_stored_repr(value) for value in row.values or ()]
        return [
            {"objective": place, "value": value, "value_type": kind}
            for place, (value, kind) in enumerate(as_stored)
        ]
    if part is models.TrialIntermediateValueModel:
        scores = [
            (step, *part.intermediate_value_to_stored_repr(score))
            for step, score in row.intermediate_values.items()
        ]
        return [
            {"step": step, "intermediate_value": score, "intermediate_value_type": kind}
            for step, score, kind in scores
        ]
    is_users = part is models.TrialUserAttributeModel
    attrs = row.user_attrs if is_users else row.system_attrs
    return [{"key": name, "value_json": json.dumps(value)} for name, value in attrs.items()]
