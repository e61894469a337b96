"""Driver of a loop: inputs in the order of a log, and deadlines at their time between them.

A replay, `interactive_val_score` and the benchmarks drive their loops by it. Time is that of the
inputs: before an input of time t, whatever was due before t ends, a millisecond after it was due.

"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nextafter
from typing import Any, Protocol

from streamgp.interactive.messages import Answer, Event, Input, Message

TICK_S = 1e-3


class Loop(Protocol):
    """Protocol of what is driven: an `InteractiveLoop`, or `KeyedLoops`."""

    def on_event(
        self, event: Event, now: float, *, written_at: float | None = None
    ) -> list[Message]:
        """Take an event."""
        ...

    def on_answer(
        self, answer: Answer, now: float, *, written_at: float | None = None
    ) -> list[Message]:
        """Take an answer."""
        ...

    def on_cancel(
        self, request_id: str, now: float, *, key: str | None = None, why: str = ...
    ) -> list[Message]:
        """Take a question back."""
        ...

    def on_time(self, now: float) -> list[Message]:
        """End whatever was due before `now`."""
        ...

    def next_deadline(self) -> float | None:
        """Return the moment after which `on_time` has something to do."""
        ...


class Driver:
    """Hands inputs to a loop, and what comes of them to a function.

    Parameters
    ----------
    loop
        What is driven.
    send
        Called with every message of the loop and the moment at which it said it.

    Examples
    --------
    >>> from streamgp import InteractiveLoop, isgp
    >>> driver = Driver(
    ...     InteractiveLoop(isgp(seed=1), expires_after_s=60.0),
    ...     lambda message, now: print(type(message).__name__, now),
    ... )
    >>> driver.take(Event(event_id="e1", x={"a": 0.5}, occurred_at=0.0), 0.0)
    Prediction 0.0
    LabelRequest 0.0
    >>> driver.end_before(100.0)
    Expired 60.001

    """

    def __init__(self, loop: Loop, send: Callable[[Message, float], None]) -> None:
        self._loop = loop
        self._send = send

    def take(self, message: Input, at: float) -> None:
        """End what was due before an input, then hand it over at its time."""
        self.end_before(at)
        self.hand_over(message, at)

    def hand_over(self, message: Input, at: float, *, written_at: float | None = None) -> None:
        """Hand an input over at its time, and say when it was written, if a clock told that."""
        loop = self._loop
        if isinstance(message, Event):
            said = self._call(loop.on_event, message, at, written_at=written_at)
        elif isinstance(message, Answer):
            said = self._call(loop.on_answer, message, at, written_at=written_at)
        else:
            said = self._call(
                loop.on_cancel, message.request_id, at, key=message.key, why=message.why
            )
        self._pass_on(said, at)

    def end_before(self, now: float) -> None:
        """End everything that was due before `now`, in turn, and tell the time."""
        while (deadline := self._loop.next_deadline()) is not None and deadline < now:
            self._tell(min(now, just_after(deadline)))
        # Nothing is due any more, but loops that are not held ready learn that time has passed.
        self._tell(now)

    def _tell(self, now: float) -> None:
        self._pass_on(self._call(self._loop.on_time, now), now)

    def _pass_on(self, messages: list[Message], now: float) -> None:
        for message in messages:
            self._send(message, now)

    def _call(
        self, function: Callable[..., list[Message]], *arguments: Any, **options: Any
    ) -> list[Message]:
        """Call the loop; a subclass may measure it."""
        return function(*arguments, **options)


def just_after(deadline: float) -> float:
    """Return a moment past a deadline, also where a float has no digits left for a millisecond."""
    return max(deadline + TICK_S, nextafter(deadline, inf))
