"""What a classifier believes of events that are known beforehand, many at once where it can."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from typing import Any

from river import base

from streamgp.base import Belief, Features
from streamgp.signatures import parameters
from streamgp.values import is_number


class Beliefs:
    """Events, and what a classifier believes of them while it learns.

    Posteriors are asked for where there are any. Probabilities come in batches from a classifier
    that has `predict_proba_many`, if pandas is there, and all events have the same features, all of
    them numbers: others do not fit into a data frame as they are.

    Parameters
    ----------
    model
        A River classifier; nothing here teaches it.
    events
        Features of each event.

    Examples
    --------
    >>> from streamgp import GPClassifier
    >>> model = GPClassifier(noise_variance=0.1)
    >>> beliefs = Beliefs(model, [{"light": -1.0}, {"light": 1.0}])
    >>> model.learn_one({"light": 1.0}, "awake")
    >>> [round(belief.mean["awake"], 2) for belief in beliefs.of([0, 1])]
    [0.08, 0.91]

    """

    # _frame  the events as a data frame, None if they are predicted one by one
    def __init__(self, model: Any, events: Sequence[Features]) -> None:
        self._model = model
        self._events = events
        takes_dist = "with_dist" in parameters(model.predict_proba_one)
        self._options = {"with_dist": True} if takes_dist else {}
        batches = isinstance(model, base.MiniBatchClassifier) and not takes_dist
        self._frame = _frame(events) if batches else None

    def of(self, which: Iterable[int]) -> list[Belief]:
        """Return what is believed now of some of the events, by their numbers."""
        if self._frame is None:
            one = self._model.predict_proba_one
            return [one(self._events[i], **self._options) for i in which]
        found = self._model.predict_proba_many(self._frame.iloc[list(which)])
        labels = found.columns.tolist()
        return [dict(zip(labels, row, strict=True)) for row in found.to_numpy().tolist()]


def _frame(events: Sequence[Features]) -> Any:
    if not events or importlib.util.find_spec("pandas") is None:
        return None
    names = events[0].keys()
    if not all(x.keys() == names and all(map(is_number, x.values())) for x in events):
        return None
    import pandas as pd

    return pd.DataFrame.from_records(events, columns=list(names))
