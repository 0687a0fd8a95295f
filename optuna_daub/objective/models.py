"""Trained models that are kept, for training them further instead of anew."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.multioutput import MultiOutputClassifier

from optuna_daub.core.checks import brief
from optuna_daub.core.checks import whole_number
from optuna_daub.objective.data import Rows
from optuna_daub.objective.fitting import with_weights
from optuna_daub.objective.signatures import accepts


N_KEPT = 32
"""Default number of learners whose models are kept in memory."""


@dataclass(frozen=True)
class Trained:
    """The models of one learner after a training, one for each fold."""

    size: int
    """Training size, in rows of the largest fold."""
    models: tuple[Any, ...]
    """A model for each fold."""


class KeptModels:
    """The last models of learners: of some learners in memory, or of all in a folder.

    A learner whose model was not kept starts anew. A model is taken out while it is trained, so a
    model whose training failed is not used again.

    >>> kept = KeptModels(1)
    >>> kept.put("study", {"depth": 3}, Trained(100, ("first",)))
    >>> kept.put("study", {"depth": 4}, Trained(100, ("second",)))
    >>> kept.take("study", {"depth": 3}) is None, kept.take("study", {"depth": 4})
    (True, Trained(size=100, models=('second',)))
    """

    def __init__(self, where: int | str | Path | None, made_of: str = "") -> None:
        """Keep models of at most `where` learners in memory.

        If `where` is a folder, keep those of all learners in it.

        Args:
            where: number of learners, at least 1; or a folder, which is made if it is not there;
                None for 32 learners.
            made_of: description of rows, scorer and training; models of others are not used.

        Raises:
            ValueError: if `where` is neither a number nor a folder.
        """
        self._made_of = made_of
        self._folder: Path | None = None
        self._most = N_KEPT
        self._models: OrderedDict[str, Trained] = OrderedDict()
        if where == "":  # it would be the folder that the program was started in
            raise ValueError(
                "`keep_models` must name a folder, but got ''. Pass \".\" for this one."
            )
        if isinstance(where, str | Path):
            self._folder = Path(where)
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(
                    f"`keep_models` must be a folder, or a place for one, but got {brief(where)}: "
                    f"{error.strerror}."
                ) from error
        elif where is not None:
            self._most = whole_number("keep_models", where)
            if self._most < 1:
                raise ValueError(
                    f"`keep_models` must be at least 1 learner, a folder or None, but got {where}."
                )

    def put(self, study: str, params: Mapping[str, str], trained: Trained) -> None:
        """Keep the models of a study's learner in place of its earlier ones.

        Args:
            study: identity of the study: the same learner may start at another size in another.
            params: parameters of the learner, as text.
            trained: its models.
        """
        key = self._key(study, params)
        if self._folder is not None:
            part = self._folder / f"{key}.part"
            joblib.dump(trained, part)
            part.replace(self._folder / f"{key}.joblib")  # a reader sees all of it or nothing
            return
        self._models.pop(key, None)
        self._models[key] = trained
        while len(self._models) > self._most:
            try:
                self._models.popitem(last=False)
            except KeyError:  # another thread was first
                break

    def take(self, study: str, params: Mapping[str, str]) -> Trained | None:
        """Return the models of a study's learner, and forget them. None without any."""
        key = self._key(study, params)
        if self._folder is None:
            return self._models.pop(key, None)
        path = self._folder / f"{key}.joblib"
        try:
            trained = joblib.load(path)
            path.unlink(missing_ok=True)
        except Exception:  # absent, cut off, of other versions: it starts anew
            return None
        return trained if isinstance(trained, Trained) else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without models in memory, which stay in this process."""
        return {**vars(self), "_models": OrderedDict()}

    def _key(self, study: str, params: Mapping[str, str]) -> str:
        said = json.dumps([self._made_of, study, sorted(params.items())])
        return sha256(said.encode()).hexdigest()[:32]


def extended(
    model: Any, rows: Rows, arguments: Mapping[str, Any], classes: list[NDArray[Any]] | None
) -> Any:
    """Return the model after it has learnt from these rows too, by `partial_fit`.

    A model that asks for all classes, as classifiers do, is given them: those of each output, or
    if there are several outputs and one model for all of them, the numbers of the outputs.
    """
    # A `partial_fit` with **kwargs may be a regressor's, which would pass `classes` on.
    more = {}
    if classes is not None and accepts(model.partial_fit, 2, "classes"):
        asks = "classes" in signature(model.partial_fit).parameters or is_classifier(model)
        of_all = classes[0] if len(classes) == 1 else np.arange(len(classes))
        own = classes if isinstance(model, MultiOutputClassifier) else of_all
        more = {"classes": own} if asks else {}
    model.partial_fit(rows.X, rows.y, **with_weights(model, rows, {**more, **arguments}))
    return model
