"""A learner, the raw examples that it was taught, and the scaling between the two.

Keeps the three consistent: whenever the statistics in use change, the learner is rebuilt from the
examples. What to ask and whom to believe is not decided here.

"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgp.base import Array, Belief, Features, Label, Neighbour, check_label
from streamgp.features import Columns, is_number
from streamgp.query.scaling import Scaling, check_finite

# What River's transformers and classifiers raise over features that they do not expect, besides
# ValueError and TypeError.
_FOREIGN = (LookupError, ArithmeticError, AttributeError)


@dataclass(slots=True)
class _Example:
    event_id: str | None
    x: Features
    y: Label


class TaughtLearner:
    """A River classifier with a memory of what it was taught, behind a scaling.

    Parameters
    ----------
    template
        The classifier; it stays unlearned.
    scaling
        How features reach it.

    Attributes
    ----------
    learner
        The classifier in use.
    scaling
        How features reach it.
    n_taught
        Number of examples ever taught; it numbers those without an event id.

    """

    # learner    a function of _examples and of the statistics in use
    # _examples  in the order taught; by event id, or by number (in a tuple) where there is none
    # _passed_over  whether an example on record could not be taught again at the last rebuild
    # _memo      the last features and the belief about them, by value: a prediction, a decision
    #            and a challenge about one event ask the learner once; None after any change
    def __init__(self, template: Any, scaling: Scaling) -> None:
        self.learner: Any = template.clone()
        self._template = template
        self.scaling = scaling
        self._options = (
            {"with_dist": True} if _takes(template.predict_proba_one, "with_dist") else {}
        )
        self._takes_event_id = _takes(template.learn_one, "event_id")
        self._examples: dict[str | tuple[int], _Example] = {}
        self.n_taught = 0
        self._passed_over = False
        self._memo: tuple[Features, Belief] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is only remembered for speed is no state: asking changes nothing.
        return {**self.__dict__, "_memo": None}

    def __len__(self) -> int:
        return len(self._examples)

    def observe(self, x: Features) -> None:
        """Take note of the features of an event, once each; refuses what cannot be predicted.

        Raises
        ------
        TypeError
            If a feature is not a number and the learner or its scaling needs one.
        ValueError
            If a feature is infinite.

        """
        # The belief is remembered, so this costs nothing unless the statistics in use change.
        check_finite(x)
        self.belief(x)
        try:
            renewed = self.scaling.observe(x)
        except _FOREIGN as error:
            raise self._refusal(error) from error
        if renewed:
            self._rebuild()

    def belief(self, x: Features) -> Belief:
        """Return what the learner believes; changes nothing."""
        memo = self._memo
        if memo is not None and memo[0] == x:
            return memo[1]
        try:
            seen = self.scaling.transform(x)
            belief: Belief = self.learner.predict_proba_one(seen, **self._options)
        except _FOREIGN as error:
            raise self._refusal(error) from error
        self._memo = dict(x), belief
        return belief

    def teach(self, x: Features, y: Label, event_id: str | None) -> None:
        """Teach an example; if the learner cannot take it, nothing changes.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take it.
        TypeError
            If the label is missing.
        ValueError
            If the event was already taught.

        """
        self._check(y)
        if event_id is not None and event_id in self._examples:
            raise ValueError(f"event {event_id!r} was already learned; use relabel_one")
        example = _Example(event_id, dict(x), y)
        self._teach(self.learner, example)
        # What transformers learn of labels is used from the next renewal on.
        self.scaling.learn(x, y)
        self._examples[(self.n_taught,) if event_id is None else event_id] = example
        self.n_taught += 1
        self._memo = None

    def relabel(self, event_id: str, y: Label) -> None:
        """Change the label of an example; raises KeyError if it was not taught."""
        self._check(y)
        self._examples[event_id].y = y
        self._change("relabel_one", event_id, y)

    def forget(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not taught."""
        del self._examples[event_id]
        self._change("forget_one", event_id)

    def neighbours(self, x: Features, n: int) -> list[Neighbour]:
        """Return the examples nearest to `x` as the learner sees them, nearest first."""
        examples = list(self._examples.values())
        if not examples:
            return []
        here = _numbers(self.scaling.transform(x))
        seen = [_numbers(self.scaling.transform(example.x)) for example in examples]
        columns = Columns(dict.fromkeys(name for features in (here, *seen) for name in features))
        points: Array = np.array([columns.vector(features) for features in seen])
        distances = np.linalg.norm(points - columns.vector(here), axis=1)
        return [
            Neighbour(
                event_id=examples[i].event_id,
                x=dict(examples[i].x),
                y=examples[i].y,
                distance=float(distances[i]),
            )
            for i in np.argsort(distances, kind="stable")[:n].tolist()
        ]

    def _check(self, y: Label) -> None:
        """Refuse a label that the learner cannot take, before anything is changed."""
        check_label(y)
        if y not in (False, True) and not self._template._multiclass:
            raise ValueError(
                f"{type(self._template).__name__} knows the labels False and True only, got {y!r}; "
                "wrap it in river.multiclass.OneVsRestClassifier"
            )

    def _teach(self, learner: Any, example: _Example) -> None:
        options = {"event_id": example.event_id} if self._takes_event_id else {}
        try:
            learner.learn_one(self.scaling.transform(example.x), example.y, **options)
        except _FOREIGN as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ValueError:
        name = type(self._template).__name__
        return ValueError(f"{name} or its transformers cannot use these features: {error!r}")

    def _change(self, method: str, *arguments: Any) -> None:
        """Make the learner follow a change of one example: by a method of its own, or rebuilt."""
        self._memo = None
        change: Callable[..., None] | None = getattr(self.learner, method, None)
        # With examples that are on record only, there may be room for one of them now.
        if change is None or self._passed_over:
            self._rebuild()
        else:
            change(*arguments)

    def _rebuild(self) -> None:
        """Teach a fresh learner all examples, through the statistics now in use."""
        learner = self._template.clone()
        self._passed_over = False
        for example in self._examples.values():
            try:
                self._teach(learner, example)
            except (ValueError, TypeError):
                # With other statistics an example can repeat an earlier one, or be too large; it
                # stays on record.
                self._passed_over = True
        self.learner = learner
        self._memo = None


def _takes(method: Any, argument: str) -> bool:
    return argument in inspect.signature(method).parameters


def _numbers(x: Features) -> Features:
    return {name: value for name, value in x.items() if is_number(value)}
