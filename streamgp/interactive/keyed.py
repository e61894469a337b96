"""One learner and one loop per key: every user, device or site has a conversation of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, Self

from streamgp.interactive.alarms import Alarms
from streamgp.interactive.border import (
    check_now,
    check_span,
    flaw_of_answer,
    flaw_of_event,
    rejected,
)
from streamgp.interactive.loop import InteractiveLoop, SkepticalLearner
from streamgp.interactive.messages import Answer, Event, Message, Rejected


class CloneableLearner(SkepticalLearner, Protocol):
    """A skeptical learner that can be copied unlearned, as River's estimators can."""

    def clone(self) -> Self:
        """Return a fresh learner with the same parameters."""


class KeyedLoops:
    """One interactive loop per key, each around its own clone of the model.

    Has the methods of `InteractiveLoop` and hands every input to the loop of its key; ids need to
    be unique within a key only. What one key says and learns does not depend on the others.

    Parameters
    ----------
    model
        Cloned for every key; itself never taught.
    expires_after_s
        As in `InteractiveLoop`.
    answer_horizon_s
        As in `InteractiveLoop`.

    Attributes
    ----------
    loops
        The loop of each key, in the order in which the keys appeared; to be read only.

    Examples
    --------
    >>> from streamgp import isgp
    >>> from streamgp.interactive import Event, KeyedLoops
    >>> loops = KeyedLoops(isgp(seed=1))
    >>> for key in ("ann", "bob"):
    ...     event = Event(event_id="1", key=key, x={"wap1": -64.0}, occurred_at=0.0, y="kitchen")
    ...     prediction, example = loops.on_event(event, now=0.0)
    ...     print(example.key, example.sequence)
    ann 1
    bob 1
    >>> list(loops.loops)
    ['ann', 'bob']

    """

    # _loops      the loop of each key.
    # _deadlines  next deadline of each loop that has one: brought up to date after every input
    #             to that loop, so that no event looks at other keys.

    def __init__(
        self,
        model: CloneableLearner,
        *,
        expires_after_s: float | None = None,
        answer_horizon_s: float | None = None,
    ) -> None:
        check_span("expires_after_s", expires_after_s)
        check_span("answer_horizon_s", answer_horizon_s)
        self.model = model
        self.expires_after_s = expires_after_s
        self.answer_horizon_s = answer_horizon_s
        self._loops: dict[str | None, InteractiveLoop] = {}
        self.loops: Mapping[str | None, InteractiveLoop] = MappingProxyType(self._loops)
        self._deadlines: Alarms[str | None] = Alarms()

    def on_event(self, event: Event, now: float) -> list[Message]:
        """Hand an event to the loop of its key, which is made if the key is new."""
        if not isinstance(event, Event):
            raise TypeError(f"on_event takes an Event, got {event!r}")
        check_now(now)
        loop = self._loops.get(event.key) if isinstance(event.key, str | None) else None
        if loop is None:
            flaw = flaw_of_event(event)
            if flaw is not None:
                return [rejected(event.event_id, event.key, "malformed", flaw, now)]
            loop = InteractiveLoop(
                self.model.clone(),
                expires_after_s=self.expires_after_s,
                answer_horizon_s=self.answer_horizon_s,
            )
        messages = loop.on_event(event, now)
        if event.key not in self._loops and isinstance(messages[0], Rejected):
            return messages  # garbage under a new key leaves no learner behind
        self._loops[event.key] = loop
        self._watch(event.key, loop)
        return messages

    def on_answer(self, answer: Answer, now: float) -> list[Message]:
        """Hand an answer to the loop of its key."""
        if not isinstance(answer, Answer):
            raise TypeError(f"on_answer takes an Answer, got {answer!r}")
        check_now(now)
        loop = self._loops.get(answer.key) if isinstance(answer.key, str | None) else None
        if loop is None:
            flaw = flaw_of_answer(answer)
            if flaw is not None:
                return [rejected(answer.answer_id, answer.key, "malformed", flaw, now)]
            return [rejected(answer.answer_id, answer.key, "unknown", _no_key(answer.key), now)]
        messages = loop.on_answer(answer, now)
        self._watch(answer.key, loop)
        return messages

    def on_time(self, now: float) -> list[Message]:
        """End what is due before `now`, key after key, beginning with the earliest deadline."""
        check_now(now)
        messages: list[Message] = []
        while (deadline := self._deadlines.first()) is not None and deadline < now:
            key = self._deadlines.pop()
            loop = self._loops[key]
            messages += loop.on_time(now)
            self._watch(key, loop)
        return messages

    def on_cancel(
        self,
        request_id: str,
        now: float,
        *,
        key: str | None = None,
        why: str = "cancelled by the caller",
    ) -> list[Message]:
        """Take a question of one key back."""
        check_now(now)
        loop = self._loops.get(key) if isinstance(key, str | None) else None
        if loop is None:
            return [rejected(request_id, key, "unknown", _no_key(key), now)]
        messages = loop.on_cancel(request_id, now, key=key, why=why)
        self._watch(key, loop)
        return messages

    def next_deadline(self) -> float | None:
        """Return the earliest moment after which `on_time` has something to do, or None."""
        return self._deadlines.first()

    def _watch(self, key: str | None, loop: InteractiveLoop) -> None:
        deadline = loop.next_deadline()
        if deadline is None:
            self._deadlines.clear(key)
        elif deadline != self._deadlines.get(key):
            self._deadlines.set(key, deadline)


def _no_key(key: str | None) -> str:
    return f"no event of key {key!r} was ever seen"
