"""A log with an annotator in it, so that a recorded log can be replayed as if it were live.

Answers come between the events at the time at which they were given; what happened at the same
time is answered before the next event. One record at a time, since an answer may lead to a
question whose answer comes before the next event.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from connectors.broker import Received, Sink, Source
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Event,
    Input,
    LabelRequest,
    Message,
    Request,
)


class Answers(Protocol):
    """Answers on their way: `streamgp.interactive.AnswerQueue` is one."""

    def see(self, event: Event) -> None:
        """Learn about an event, its truth included, before anything is asked about it."""
        ...

    def ask(self, request: Request, now: float) -> None:
        """Take a question."""
        ...

    def due(self, until: float) -> Iterable[Answer]:
        """Hand out the answers given until a time, that time included, in their order."""
        ...

    def next_at(self) -> float | None:
        """Return when the next answer will be given, None if none is under way."""
        ...


class AnnotatedLog:
    """Source of the events of a log and of the answers to the questions sent to it as a sink.

    Parameters
    ----------
    log
        Where the events come from.
    sink
        Where all messages go, the answers included.
    queue
        Who answers.

    """

    # _upcoming  polled from the log, not yet delivered.
    # _given     taken from the queue, not yet delivered; all of them given at one time.

    def __init__(self, log: Source, sink: Sink, queue: Answers) -> None:
        self._log = log
        self._sink = sink
        self._queue = queue
        self._upcoming: deque[Received] = deque()
        self._given: deque[Answer] = deque()

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next event or answer, whichever comes first."""
        if not self._upcoming and not self._log.exhausted:
            self._upcoming.extend(self._log.poll(timeout_s))
        if not self._given:
            self._take_answers()
        if self._given:
            answer = self._given.popleft()
            self._sink.send(answer)
            return [Received(message=answer, at=answer.answered_at)]
        if not self._upcoming:
            return []
        received = self._upcoming.popleft()
        if isinstance(received.message, Event):
            self._queue.see(received.message)
        return [received]

    def _take_answers(self) -> None:
        """Take the answers of the earliest moment, if they come before the next event.

        No later ones: an answer to a question that these bring about may come in between.
        """
        at = self._queue.next_at()
        if at is None or (not self._upcoming and not self._log.exhausted):
            return
        if not self._upcoming or at <= self._upcoming[0].at:
            self._given.extend(self._queue.due(at))

    @property
    def exhausted(self) -> bool:
        """Whether the log has ended and every question was answered."""
        waiting = bool(self._upcoming or self._given) or self._queue.next_at() is not None
        return self._log.exhausted and not waiting

    def commit(self) -> None:
        """Commit the log."""
        self._log.commit()

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        """Pass a message on; a question goes to the annotator too."""
        self._sink.send(message, cause=cause)
        if isinstance(message, LabelRequest | Challenge):
            self._queue.ask(message, message.requested_at)

    def flush(self) -> None:
        """Flush the sink."""
        self._sink.flush()

    def close(self) -> None:
        """Close the log and the sink."""
        self._log.close()
        self._sink.close()
