"""A log with an annotator in it, so that a recorded log can be replayed as if it were live.

Answers come between the events at the time at which they were given; what happened at the same
time is answered before the next event. One record at a time, since an answer may lead to a
question whose answer comes before the next event.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Protocol

from connectors.broker import Received, Sink, Source
from streamgp.base import State
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

    def state(self) -> State:
        """Return what must survive a restart, but for the events shown."""
        ...

    def load_state(self, state: State) -> None:
        """Become what the state was taken from, the events having been shown again."""
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

    # _n_taken   records of the log delivered so far.
    # _upcoming  polled from the log, not yet delivered.
    # _given     taken from the queue, not yet delivered; all of them given at one time.

    def __init__(self, log: Source, sink: Sink, queue: Answers) -> None:
        self._log = log
        self._sink = sink
        self._queue = queue
        self._n_taken = 0
        self._upcoming: deque[Received] = deque()
        self._given: deque[Answer] = deque()

    def poll(self, timeout_s: float = 0.0) -> list[Received]:
        """Return the next event or answer, whichever comes first."""
        self._fetch(timeout_s)
        if not self._given:
            self._take_answers()
        if self._given:
            answer = self._given.popleft()
            self._sink.send(answer)
            return [Received(message=answer, at=answer.answered_at)]
        if not self._upcoming:
            return []
        return [self._take()]

    def _fetch(self, timeout_s: float) -> None:
        if not self._upcoming and not self._log.exhausted:
            self._upcoming.extend(self._log.poll(timeout_s))

    def _take(self) -> Received:
        received = self._upcoming.popleft()
        self._n_taken += 1
        if isinstance(received.message, Event):
            self._queue.see(received.message)
        return received

    def _take_answers(self) -> None:
        """Take the answers of the earliest moment, if they come before the next event.

        No later ones: an answer to a question that these bring about may come in between.
        """
        at = self._queue.next_at()
        if at is None or (not self._upcoming and not self._log.exhausted):
            return
        if not self._upcoming or at <= self._upcoming[0].at:
            self._given.extend(self._queue.due(at))

    def state(self) -> State:
        """Return how far the log was taken, and the answers on their way."""
        return {
            "n_taken": self._n_taken,
            "given": [asdict(answer) for answer in self._given],
            "queue": self._queue.state(),
        }

    def load_state(self, state: State) -> Iterator[Event]:
        """Become what the state was taken from: the log, opened anew, is taken as far once more.

        Returns
        -------
        The events that were delivered before; when all of them have been taken from the iterator,
        the state is loaded.

        Raises
        ------
        ValueError
            If the log is shorter than it was.

        """
        while self._n_taken < state["n_taken"]:
            self._fetch(0.0)
            if not self._upcoming:
                raise ValueError(
                    f"the log ends after {self._n_taken} rows, expected {state['n_taken']}"
                )
            message = self._take().message
            if isinstance(message, Event):
                yield message
        self._given.extend(Answer(**fields) for fields in state["given"])
        self._queue.load_state(state["queue"])

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
