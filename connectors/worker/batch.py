"""What was polled together, handed to the loops, and everything that comes of it.

Nothing is read or written here: records go in, records come out, in their order. Of what a batch
changed in a loop only the last state is written.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from connectors.records import Outgoing, Record
from connectors.wire import statelog
from connectors.wire.cloudevents import EARLIEST, LATEST
from connectors.wire.inbox import Inbound, TakenBack, read
from connectors.wire.outbox import Outbox, is_dropped
from connectors.wire.statelog import History
from connectors.worker.partition import LoopSettings, Partition
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
    now
        The time, in seconds.

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

    # _out      records to be written, in order
    # _early    answers to what is not known yet: answers are read before events, be they older
    # _heeded   partitions with a null that says what is to be taken back
    # _scanned  what the topics hold of partitions in which a key is forgotten
    def __init__(
        self,
        partitions: Mapping[int, Partition],
        loops: LoopSettings,
        group: str,
        scan: Callable[[int], History],
        now: float,
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
        self._early: list[Inbound] = []
        self._heeded: set[int] = set()
        self._scanned: dict[int, History] = {}
        self._now = now

    def pass_time(self) -> None:
        """End what is due in all partitions."""
        for number, partition in self._partitions.items():
            self._send(number, partition.loops.on_time(self._now), None)

    def take(self, record: Record) -> None:
        """Hand one record over."""
        inbound = read(record, keyed=self._loops.keyed)
        if inbound is None:
            return
        messages = self._hand_over(inbound)
        if isinstance(inbound.message, Answer) and _is_unknown(messages):
            self._early.append(inbound)
        else:
            self._send(record.partition, messages, inbound)

    def finish(self) -> list[Outgoing]:
        """Return what is to be written, the changed state last."""
        for inbound in self._early:
            self._send(inbound.record.partition, self._hand_over(inbound), inbound)
        self._early.clear()
        for number, partition in self._partitions.items():
            changed = partition.loops.changes()
            if changed:
                self.touched.add(number)
            if partition.is_new and (changed or number in self._heeded):
                value = {**self._loops.configuration, "streamgp": __version__}
                self._out.append(statelog.state("", "configuration", value, number))
                partition.is_new = False
            if number in self._heeded:
                value = {"n": partition.n_forgotten, "heeded": partition.n_heeded}
                self._out.append(statelog.state("", "forgotten", value, number))
            for key, parts in changed.items():
                entity = (key or "") if self._loops.keyed else ""
                for name, value in parts.items():
                    self._out += statelog.states(entity, name, value, number)
        self.counts["written"] = len(self._out)
        return self._out

    def _hand_over(self, inbound: Inbound) -> list[Message]:
        record, message = inbound.record, inbound.message
        if isinstance(message, TakenBack) and not self._heed(record):
            return []
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
            # Whoever wrote the null may have stamped it with anything.
            now = min(max(record.at, EARLIEST), LATEST)
            return loops.withdraw(message.key, message.event_id, now, revision=message.revision)
        return self._forget(record.partition, message.key)

    def _heed(self, record: Record) -> bool:
        """Return whether a null is new, and take note of it.

        A broker that has lost the positions of a group delivers all of them once more; what came
        again since under the same names must not be taken back by that.
        """
        partition = self._partitions[record.partition]
        if record.offset < partition.n_heeded:
            return False
        partition.n_heeded = record.offset + 1
        self._heeded.add(record.partition)
        return True

    def _forget(self, number: int, key: str | None) -> list[Message]:
        """Take a key out of the loops, of what is to be written, and of the topics.

        Returns
        -------
        What becomes of its open questions.

        """
        partition = self._partitions[number]
        cancels: list[Message] = [
            message
            for request_id in partition.loops.open_requests(key)
            for message in partition.loops.on_cancel(
                request_id, self._now, key=key, why="its key was forgotten"
            )
            if isinstance(message, Cancel)
        ]
        if not partition.loops.forget(key):
            return []
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
        if number not in self._scanned:
            self._scanned[number] = self._scan(number)
        history = self._scanned[number]
        for name in history.names(entity):
            self._out.append(statelog.state(entity, name, None, number))
        for consensus_key in history.consensus_keys(entity):
            self._out.append(
                Outgoing(topic="consensus", partition=number, key=consensus_key, value=None)
            )
        partition.n_forgotten += 1
        self.forgotten_in.add(number)
        self.touched.add(number)
        self.counts["forgotten"] += 1
        return cancels

    def _erase_before(self, line: LabelledExample, number: int) -> None:
        """Take earlier lines of an example out of the log, lest one outlives that of its end."""
        entity = (line.key or "") if self._loops.keyed else ""
        for revision in range(line.revision):
            key = statelog.consensus_key(entity, line.event_id, revision)
            self._out.append(Outgoing(topic="consensus", partition=number, key=key, value=None))

    def _send(self, number: int, messages: list[Message], inbound: Inbound | None) -> None:
        bad = False
        cause = None if inbound is None else inbound.record
        for message in messages:
            if not isinstance(message, Rejected):
                self.counts[_COUNTED[type(message)]] += 1
                self._out.append(self._outbox.message(message, number))
                if isinstance(message, LabelledExample) and message.origin == "withdrawn":
                    self._erase_before(message, number)
            elif inbound is not None and is_dropped(message, inbound.message):
                self.counts["duplicates"] += 1
            else:
                bad = message.fault != "duplicate"  # whoever sends twice does no harm
                self.counts["dead_letters"] += 1
                self._out.append(self._outbox.dead_letter(message, cause, number))
        if inbound is not None and not isinstance(inbound.message, TakenBack):
            self.verdicts.append(bad)
            if isinstance(inbound.message, Event | Answer):
                self.counts[_COUNTED[type(inbound.message)]] += 1


def _is_unknown(messages: list[Message]) -> bool:
    return len(messages) == 1 and getattr(messages[0], "fault", None) == "unknown"
