"""From the topics of a deployment to a desk: read, understood, and what is old forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from connectors.desk.desk import Desk
from connectors.records import Reader, Record, TopicName, Topics
from connectors.wire.codec import DecodeError, decode
from connectors.wire.inbox import TakenBack, read
from streamgp.interactive.messages import Input, Message, Rejected

LEARNED: tuple[TopicName, ...] = ("consensus",)
SAID: tuple[TopicName, ...] = ("requests", "answers")
TURN_S = 60.0

Told: TypeAlias = Input | Message | TakenBack


class DeskFeed:
    """Reads into a desk what the topics hold, from their start.

    The consensus topic is read first: it tells which keys were forgotten. What was asked and
    answered about them before counts no more, even if their events come again under the same ids.

    Parameters
    ----------
    topics
        The topics.
    desk
        The desk.
    keyed
        Whether the workers have a learner for each key.
    only_key
        The only key whose messages are wanted; None for all.
    clock
        Seconds that never go back.

    Attributes
    ----------
    n_read
        Records read so far.

    """

    # _learned  reads the consensus topic
    # _said     reads the others; None until all that was learned is known
    # _turned   when the desk was last told to forget what is settled; None while it catches up
    def __init__(
        self,
        topics: Topics,
        desk: Desk,
        *,
        keyed: bool,
        only_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.n_read = 0
        self._topics = topics
        self._desk = desk
        self._keyed = keyed
        self._only_key = only_key
        self._clock = clock
        self._turned: float | None = None
        self._learned = topics.reader(LEARNED)
        self._said: Reader | None = None

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there at the beginning."""
        return self._said is not None and self._said.caught_up and self._learned.caught_up

    def read_on(self, timeout_s: float) -> list[Told]:
        """Read what comes, for so many seconds at most if nothing does, and return it.

        Raises
        ------
        LinkError
            If the broker cannot be worked with any longer.

        """
        if self._said is None and self._learned.caught_up:
            self._said = self._topics.reader(SAID)
        if self._said is None:
            records = self._learned.poll(timeout_s)
        else:
            records = self._learned.poll(0.0) + self._said.poll(timeout_s)
        self.n_read += len(records)
        told = [message for record in records if (message := self._take(record)) is not None]
        self._turn_over()
        return told

    def close(self) -> None:
        """Let go of the topics."""
        self._learned.close()
        if self._said is not None:
            self._said.close()

    def _take(self, record: Record) -> Told | None:
        message = understood(record, keyed=self._keyed)
        if message is None or (self._only_key is not None and message.key != self._only_key):
            return None
        if not isinstance(message, TakenBack):
            self._desk.take(message, partition=record.partition, at=record.at)
        elif message.event_id is None:
            self._desk.forget(message.key, record.at)
        return message

    def _turn_over(self) -> None:
        # While old records are read, what ends a question may come long before the question.
        if not self.caught_up:
            return
        now = self._clock()
        if self._turned is None:
            self._turned = now
        elif now - self._turned >= TURN_S:
            self._turned = now
            self._desk.turn_over()


def understood(record: Record, *, keyed: bool) -> Told | None:
    """Return what a record says; None if it says nothing, or nothing that can be understood."""
    if record.topic == "requests" or (record.topic == "consensus" and record.value is not None):
        try:
            return None if record.value is None else decode(record.value)
        except DecodeError:
            return None
    inbound = read(record, keyed=keyed)
    if inbound is None or isinstance(inbound.message, Rejected):
        return None
    return inbound.message
