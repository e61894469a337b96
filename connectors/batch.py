"""What was polled together, handed to the loops, and everything that comes of it.

Nothing is read or written here: records go in, records come out, in their order. Of what a batch
changed in a loop only the last state is written.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from connectors import statelog
from connectors.inbox import Inbound, TakenBack, read
from connectors.outbox import Outbox, is_dropped
from connectors.partition import LoopSettings, Partition
from connectors.records import Outgoing, Record
from connectors.statelog import History
from streamgp import __version__
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


class Batch:
    """Takes the records of one poll.

    Parameters
    ----------
    partitions
        The loops, by partition.
    loops
        What they are made of.
    group
        Names the source of the records written.
    scan
        Returns everything that the topics hold of one partition; needed to forget a key.

    Attributes
    ----------
    counts
        What went in and came out, by kind.
    verdicts
        For every event and answer, whether it could not be used.
    touched
        Partitions whose loops have changed.
    forgotten_in
        Partitions in which a key was forgotten.

    """

    # _out  records to be written, in order
    def __init__(
        self,
        partitions: Mapping[int, Partition],
        loops: LoopSettings,
        group: str,
        scan: Callable[[int], History],
    ) -> None:
        self._partitions = partitions
        self._loops = loops
        self._scan = scan
        self._outbox = Outbox(f"/streamgp/{group}", keyed=loops.keyed)
        self._out: list[Outgoing] = []
        self.counts: Counter[str] = Counter()
        self.verdicts: list[bool] = []
        self.touched: set[int] = set()
        self.forgotten_in: set[int] = set()

    def pass_time(self, now: float) -> None:
        """End what was due before `now` in all partitions."""
        for number, partition in self._partitions.items():
            self._send(number, partition.loops.on_time(now), None)

    def take(self, record: Record) -> None:
        """Hand one record over."""
        inbound = read(record, keyed=self._loops.keyed)
        if inbound is None:
            return
        messages = self._hand_over(inbound)
        self._send(record.partition, messages, inbound)

    def finish(self) -> list[Outgoing]:
        """Return what is to be written, the changed state last."""
        for number, partition in self._partitions.items():
            changed = partition.loops.changes()
            if changed:
                self.touched.add(number)
            if partition.is_new and (changed or number in self.forgotten_in):
                value = {**self._loops.configuration, "streamgp": __version__}
                self._out.append(statelog.state("", "configuration", value, number))
                partition.is_new = False
            for key, parts in changed.items():
                entity = (key or "") if self._loops.keyed else ""
                for name, value in parts.items():
                    self._out.append(statelog.state(entity, name, value, number))
        self.counts["written"] = len(self._out)
        return self._out

    def _hand_over(self, inbound: Inbound) -> list[Message]:
        record, message = inbound.record, inbound.message
        loops = self._partitions[record.partition].loops
        if isinstance(message, Event):
            return loops.on_event(message, message.occurred_at)
        if isinstance(message, Answer):
            return loops.on_answer(message, message.answered_at)
        if isinstance(message, Cancel):
            return loops.on_cancel(message.request_id, message.at, key=message.key, why=message.why)
        if isinstance(message, Rejected):
            return [message]
        if message.event_id is not None:
            return loops.withdraw(
                message.key, message.event_id, record.at, revision=message.revision
            )
        self._forget(record.partition, message.key)
        return []

    def _forget(self, number: int, key: str | None) -> None:
        """Take a key out of the loops, of what is to be written, and of the topics."""
        partition = self._partitions[number]
        if not partition.loops.forget(key):
            return
        entity = key or ""
        self._out = [
            out
            for out in self._out
            if not (
                out.partition == number
                and out.topic == "consensus"
                and statelog.split_key(out.key or b"")[0] == entity
            )
        ]
        history = self._scan(number)
        for name in history.parts(entity):
            self._out.append(statelog.state(entity, name, None, number))
        for consensus_key in history.consensus_keys(entity):
            self._out.append(
                Outgoing(topic="consensus", partition=number, key=consensus_key, value=None)
            )
        partition.n_forgotten += 1
        value = {"n": partition.n_forgotten}
        self._out.append(statelog.state("", "forgotten", value, number))
        self.forgotten_in.add(number)
        self.touched.add(number)
        self.counts["forgotten"] += 1

    def _send(self, number: int, messages: list[Message], inbound: Inbound | None) -> None:
        bad = False
        cause = None if inbound is None else inbound.record
        for message in messages:
            if not isinstance(message, Rejected):
                self.counts[_COUNTED[type(message)]] += 1
                self._out.append(self._outbox.message(message, number))
            elif inbound is not None and is_dropped(message, inbound.message):
                self.counts["duplicates"] += 1
            else:
                bad = True
                self.counts["dead_letters"] += 1
                self._out.append(self._outbox.dead_letter(message, cause, number))
        if inbound is not None and not isinstance(inbound.message, TakenBack):
            self.verdicts.append(bad)
            if isinstance(inbound.message, Event | Answer):
                self.counts[_COUNTED[type(inbound.message)]] += 1
