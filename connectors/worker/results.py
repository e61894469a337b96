"""What comes of a batch: records to be written, numbers of what went in and out, and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from connectors.records import Outgoing, Record, TopicName
from connectors.wire import statelog
from connectors.wire.dead_letters import is_dropped
from connectors.wire.inbox import Inbound, TakenBack
from connectors.wire.outbox import Outbox
from connectors.worker.partition import Partition
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

_COUNTED: dict[type, str] = {
    Event: "events",
    Answer: "answers",
    Cancel: "cancels",
    Prediction: "predictions",
    LabelRequest: "requests",
    Challenge: "challenges",
    LabelledExample: "learned",
    Expired: "expired",
}


class Results:
    """Collects what the loops say.

    Parameters
    ----------
    source
        Who writes.
    keyed
        Whether each key has a loop of its own.
    names
        What the topics are called on the broker.

    Attributes
    ----------
    out
        Records to be written, in order.
    counts
        What went in and came out, by kind.
    verdicts
        For every event and answer, whether it could not be used.
    failures
        Inputs over which a learner, a rule or the encoding failed, and why.

    """

    def __init__(self, source: str, *, keyed: bool, names: Mapping[TopicName, str]) -> None:
        self.out: list[Outgoing] = []
        self.counts: Counter[str] = Counter()
        self.verdicts: list[bool] = []
        self.failures: list[tuple[Record | None, Rejected]] = []
        self._keyed = keyed
        self._outbox = Outbox(source, keyed=keyed, names=names)

    def take(
        self, partition: Partition, messages: Iterable[Message], inbound: Inbound | None
    ) -> None:
        """Take what a loop says; an input whose messages cannot be written is undone.

        Parameters
        ----------
        partition
            Where.
        messages
            What it says.
        inbound
            What it says that about; None: time has passed.

        """
        bad = False
        number = partition.number
        cause = None if inbound is None else inbound.record
        messages = list(messages)
        try:
            records = self._encoded(messages, number)
        except (ValueError, TypeError) as error:
            undone = None if inbound is None else partition.loops.reject_last(error, "encode")
            if undone is None:
                raise
            messages = undone
            records = self._encoded(messages, number)
        for message, record in zip(messages, records, strict=True):
            if record is not None:
                self.counts[_COUNTED[type(message)]] += 1
                self.out.append(record)
                if isinstance(message, LabelledExample):
                    self._take_line(partition, message)
                continue
            assert isinstance(message, Rejected)  # it alone has no record of its own
            if inbound is not None and is_dropped(message, inbound.message):
                self.counts["duplicates"] += 1
            else:
                bad = message.fault != "duplicate"  # whoever sends twice does no harm
                self.bury(message, cause, number)
                if message.fault == "failed":
                    self.counts["failed"] += 1
                    self.failures.append((cause, message))
        if inbound is not None and not isinstance(inbound.message, TakenBack):
            self.verdicts.append(bad)
            if isinstance(inbound.message, Event | Answer):
                self.counts[_COUNTED[type(inbound.message)]] += 1

    def _encoded(self, messages: Iterable[Message], number: int) -> list[Outgoing | None]:
        """Return the record of each message, None for what becomes a dead letter."""
        write = self._outbox.message
        return [None if isinstance(m, Rejected) else write(m, number) for m in messages]

    def bury(self, rejected: Rejected, cause: Record | None, number: int) -> None:
        """Write a dead letter."""
        self.counts["dead_letters"] += 1
        self.out.append(self._outbox.dead_letter(rejected, cause, number))

    def erase(self, key: bytes, number: int) -> None:
        """Take a line out of the consensus log."""
        self.out.append(self._outbox.erase(key, number))

    def forget(self, entity: str, number: int) -> None:
        """Write no line of an entity that has been forgotten since."""
        self.out = [
            out
            for out in self.out
            if not (
                out.partition == number
                and out.topic == "consensus"
                and statelog.parts_of(out.key)[0] == entity
            )
        ]

    def keep(self, entity: str, parts: Mapping[str, object], number: int) -> None:
        """Write parts of a state."""
        for name, value in parts.items():
            self.out += statelog.states(entity, name, value, number)

    def _take_line(self, partition: Partition, line: LabelledExample) -> None:
        entity = (line.key or "") if self._keyed else ""
        partition.revisions.note(entity, line)
        if line.origin == "withdrawn":
            # Earlier lines of the example go as well, lest one outlives that of its end.
            for revision in range(line.revision):
                key = statelog.consensus_key(entity, line.event_id, revision)
                self.erase(key, partition.number)
