"""Feed of a desk: topics read as they grow, understood, and what is old forgotten.

The consensus topic is read first: it tells which keys were forgotten. What was asked and answered
about them before counts no more, even if their events come again under the same ids.

"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from connectors.topics import Reader, Record, TopicName, Topics
from connectors.wire.codec import DecodeError, decode
from connectors.wire.inbound import RetractionRequest, TakenBack, read
from connectors.wire.signatures import Signatures
from streamgp.interactive.messages import Input, Message, Rejected

LEARNED: tuple[TopicName, ...] = ("consensus",)
SAID: tuple[TopicName, ...] = ("requests", "answers")
TURN_S = 60.0
"""Seconds between two moments at which a desk forgets what is settled."""

Told: TypeAlias = Input | Message | TakenBack


class Desk(Protocol):
    """Protocol of what is filled from the topics."""

    def take(
        self, message: Input | Message, *, partition: int | None = None, at: float = 0.0
    ) -> None:
        """Take a message that stands in one of the topics."""
        ...

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that the topics got until a moment."""
        ...

    def turn_over(self) -> None:
        """Forget what is settled, in two turns."""
        ...


class Received(NamedTuple):
    """A message, where it was found, and when the topic got it, POSIX seconds."""

    message: Told
    partition: int
    at: float


def hand_over(desk: Desk, received: Received) -> None:
    """Let a desk take what was read."""
    message, partition, at = received
    if not isinstance(message, TakenBack):
        desk.take(message, partition=partition, at=at)
    elif message.event_id is None:
        desk.forget(message.key, at)


class TopicFeed:
    """Reads what the topics hold for desks, from their start.

    Parameters
    ----------
    topics
        The topics.
    keyed
        Whether the workers have a learner for each key.
    only_key
        The only key whose messages are wanted; None for all.
    with_predictions
        Whether to read predictions, too: those that come from now on, and beside them, a few at a
        time, the earlier ones. There are as many as events, so that nothing waits for them.
    signatures
        Verifies the signatures of answers; None where they have none.

    Attributes
    ----------
    n_read
        Records read so far, predictions left out.

    """

    # _learned      reads the consensus topic
    # _said         reads the others; None until all that was learned is known
    # _predictions  read what was predicted: from now on, and before, until that is done with
    def __init__(
        self,
        topics: Topics,
        *,
        keyed: bool,
        only_key: str | None = None,
        with_predictions: bool = False,
        signatures: Signatures | None = None,
    ) -> None:
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
        """Whether everything has been read that was there at the beginning, but predictions."""
        return self._said is not None and self._said.caught_up and self._learned.caught_up

    def read(self, timeout_s: float) -> list[Received]:
        """Return what comes, after so many seconds at most if nothing does.

        Raises
        ------
        BrokerError
            If the broker cannot be worked with any longer.

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

    def close(self) -> None:
        """Let go of the topics."""
        for reader in (self._learned, self._said, *self._predictions):
            if reader is not None:
                reader.close()

    def _predicted(self) -> list[Record]:
        records = [record for reader in self._predictions for record in reader.poll(0.0)]
        if len(self._predictions) > 1 and self._predictions[-1].caught_up:
            self._predictions.pop().close()
        return records

    def _understand(self, record: Record) -> Received | None:
        message = understood(record, keyed=self._keyed, signatures=self._signatures)
        if message is None or (self._only_key is not None and message.key != self._only_key):
            return None
        return Received(message, record.partition, record.at)


class DeskFeed:
    """Reads into one desk what the topics hold, from their start.

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
    with_predictions, signatures
        As for `TopicFeed`.
    clock
        Seconds that never go back.

    """

    # _feed    reads the topics
    # _turned  when the desk was last told to forget what is settled; None while it catches up
    def __init__(
        self,
        topics: Topics,
        desk: Desk,
        *,
        keyed: bool,
        only_key: str | None = None,
        with_predictions: bool = False,
        signatures: Signatures | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._turned: float | None = None
        self._feed = TopicFeed(
            topics,
            keyed=keyed,
            only_key=only_key,
            with_predictions=with_predictions,
            signatures=signatures,
        )

    @property
    def n_read(self) -> int:
        """Records read so far."""
        return self._feed.n_read

    @property
    def caught_up(self) -> bool:
        """Whether everything has been read that was there at the beginning."""
        return self._feed.caught_up

    def read_on(self, timeout_s: float) -> list[Told]:
        """Read what comes, for so many seconds at most if nothing does, and return it.

        Raises
        ------
        BrokerError
            If the broker cannot be worked with any longer.

        """
        received = self._feed.read(timeout_s)
        for each in received:
            hand_over(self._desk, each)
        self._turn_over()
        return [each.message for each in received]

    def close(self) -> None:
        """Let go of the topics."""
        self._feed.close()

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


def understood(record: Record, *, keyed: bool, signatures: Signatures | None = None) -> Told | None:
    """Return what a record says; None if it says nothing, or nothing that can be understood."""
    is_ours = record.topic in ("requests", "predictions")
    if is_ours or (record.topic == "consensus" and record.value is not None):
        try:
            return None if record.value is None else decode(record.value)
        except DecodeError:
            return None
    message = read(record, keyed=keyed, signatures=signatures)
    # What labels are taken back the workers say.
    return None if isinstance(message, Rejected | RetractionRequest) else message
