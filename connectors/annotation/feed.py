"""Feed of a desk: reads and decodes topics as they grow, and says when the desk may forget.

The consensus topic is read first: it tells which keys were forgotten. Earlier questions and answers
about them no longer count, even if their events come again under the same ids.

"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from connectors.topics import Reader, Record, TopicName, Topics
from connectors.wire.codec import message_in
from connectors.wire.inbound import RetractionRequest, TakenBack, read
from connectors.wire.signatures import Signatures
from streamgp.interactive.messages import Input, Message, Rejected

LEARNED: tuple[TopicName, ...] = ("consensus",)
SAID: tuple[TopicName, ...] = ("requests", "answers")
TURN_S = 60.0
"""Seconds between two turns in which a desk forgets what is settled."""

Told: TypeAlias = Input | Message | TakenBack


class Desk(Protocol):
    """Protocol of objects that are filled from the topics."""

    def take(
        self, message: Input | Message, *, partition: int | None = None, at: float = 0.0
    ) -> None:
        """Process a message from one of the topics."""

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that was written up to a time."""

    def turn_over(self) -> None:
        """Forget what was settled before the last turn."""


class TopicMessage(NamedTuple):
    """A message, its partition, and when it was written to the topic, POSIX seconds."""

    message: Told
    partition: int
    at: float


def hand_over(desk: Desk, received: TopicMessage) -> None:
    """Pass a received message to a desk."""
    message, partition, at = received
    if not isinstance(message, TakenBack):
        desk.take(message, partition=partition, at=at)
    elif message.event_id is None:
        desk.forget(message.key, at)


class TopicFeed:
    """Reads the topics for a desk, from their start.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    only_key
        Restricts the messages to one key; None for all.
    with_predictions
        Whether to read predictions too: new ones, and in between, a few at a time, the earlier
        ones. There are as many as events, so nothing else waits for them.
    signatures
        Verifies the signatures of answers; None if answers are not signed.
    clock
        A monotonic clock, in seconds.

    Attributes
    ----------
    n_read
        Number of records read so far, predictions excluded.

    """

    # _learned      reads the consensus topic
    # _said         reads the other topics; None until the consensus topic has been read
    # _predictions  readers of new predictions and, until they are done, of earlier ones
    # _turned       time of the desk's last turn; None while old records are read
    def __init__(
        self,
        topics: Topics,
        *,
        keyed: bool,
        only_key: str | None = None,
        with_predictions: bool = False,
        signatures: Signatures | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._turned: float | None = None
        self._signatures = signatures
        self.n_read = 0
        self._topics = topics
        self._keyed = keyed
        self._only_key = only_key
        self._learned = topics.reader(LEARNED)
        self._said: Reader | None = None
        self._predictions: list[Reader] = []
        if with_predictions:
            for from_end in (True, False):
                self._predictions.append(topics.reader(["predictions"], from_end=from_end))

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the start has been read, predictions excluded."""
        return self._said is not None and self._said.caught_up and self._learned.caught_up

    def read(self, timeout_s: float) -> list[TopicMessage]:
        """Return the next messages; an empty list if none arrives within the timeout.

        Raises
        ------
        BrokerError
            If the broker can no longer be used.

        """
        if self._said is None and self._learned.caught_up:
            self._said = self._topics.reader(SAID)
        if self._said is None:
            records = self._learned.poll(timeout_s)
        else:
            records = self._learned.poll(0.0) + self._said.poll(timeout_s)
        self.n_read += len(records)
        if self.caught_up:
            records = self._predicted() + records
        return [found for record in records if (found := self._understand(record)) is not None]

    def read_into(self, desk: Desk, timeout_s: float) -> list[Told]:
        """Read the next messages into a desk, let it forget if due, and return them; see `read`."""
        received = self.read(timeout_s)
        for each in received:
            hand_over(desk, each)
        if self.is_turn_due():
            desk.turn_over()
        return [each.message for each in received]

    def is_turn_due(self) -> bool:
        """Return whether the desk should forget what is settled: once a minute, if all is read.

        While old records are read, the end of a question may come long before the question.
        """
        if not self.caught_up:
            return False
        now = self._clock()
        is_due = self._turned is not None and now - self._turned >= TURN_S
        if is_due or self._turned is None:
            self._turned = now
        return is_due

    def close(self) -> None:
        for reader in (self._learned, self._said, *self._predictions):
            if reader is not None:
                reader.close()

    def _predicted(self) -> list[Record]:
        records = [record for reader in self._predictions for record in reader.poll(0.0)]
        if len(self._predictions) > 1 and self._predictions[-1].caught_up:
            self._predictions.pop().close()
        return records

    def _understand(self, record: Record) -> TopicMessage | None:
        message = understood(record, keyed=self._keyed, signatures=self._signatures)
        if message is None or (self._only_key is not None and message.key != self._only_key):
            return None
        return TopicMessage(message, record.partition, record.at)


def understood(record: Record, *, keyed: bool, signatures: Signatures | None = None) -> Told | None:
    """Decode a record; None if it is empty or cannot be decoded."""
    is_ours = record.topic in ("requests", "predictions")
    if is_ours or (record.topic == "consensus" and record.value is not None):
        return message_in(record.value)
    message = read(record, keyed=keyed, signatures=signatures)
    # The workers' own messages tell which labels were taken back.
    return None if isinstance(message, Rejected | RetractionRequest) else message
