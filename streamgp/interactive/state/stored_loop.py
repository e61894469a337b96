"""Loops without a learner: what is restored after a restart until an input needs the learner.

Learning a key's examples again takes as long as a hundred of its events, and most keys of a
partition are silent in the minute after a restart. What a loop has published becomes a snapshot
without its learner, which is kept as bytes until the key has an input.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from streamgp.base import Example, State
from streamgp.common.signatures import has_methods
from streamgp.interactive.learner import HoldsInPart, SkepticalLearner
from streamgp.interactive.state.restartable_loop import RestartableLoop


class StoredModel:
    """State and examples of a skeptical learner, without the learner.

    Parameters
    ----------
    model
        A learner of the same configuration; it is not changed.
    fingerprint
        Fingerprint of the learner.

    """

    def __init__(self, model: SkepticalLearner, fingerprint: str) -> None:
        self._model = model
        self._fingerprint = fingerprint
        self._state: State = {}
        self._examples: list[Example] = []

    @property
    def n_learned(self) -> int:
        """Number of examples the learner holds."""
        return len(self._examples)

    def fingerprint(self) -> str:
        """Return the fingerprint of the learner."""
        return self._fingerprint

    def examples(self) -> list[Example]:
        """Return the examples of the learner."""
        return list(self._examples)

    def state(self) -> State:
        """Return the state of the learner."""
        return self._state

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Keep a state and examples."""
        if has_methods(type(self._model), HoldsInPart):
            examples = cast("HoldsInPart", self._model).as_held(examples)
        self._state, self._examples = state, list(examples)


class StoredLoop(RestartableLoop):
    """A loop that takes no input: its conversations, deadlines and the state of its learner.

    Parameters
    ----------
    model
        State and examples of the learner.
    expires_after_s, answer_horizon_s, open_at_most, people
        As in `InteractiveLoop`.

    Examples
    --------
    >>> from streamgp import InteractiveLoop, isgp
    >>> from streamgp.interactive import Event
    >>> loop = InteractiveLoop(isgp(seed=1), answer_horizon_s=60.0)
    >>> event = Event(event_id="e1", x={"wap1": -64.0}, occurred_at=5.0, y="kitchen")
    >>> messages = loop.on_event(event, now=5.0)
    >>> model = StoredModel(loop.model, loop.model.fingerprint())
    >>> stored = StoredLoop.restore(loop.snapshot(), model)
    >>> stored.next_deadline(), stored.snapshot() == loop.snapshot()
    (65.0, True)

    """
