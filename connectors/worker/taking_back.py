"""What others do to the consensus log: they take lines out of it, or write what is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from connectors.records import Record
from connectors.wire.cloudevents import EARLIEST, LATEST
from connectors.wire.codec import DecodeError
from connectors.wire.history import History
from connectors.wire.inbox import Inbound, TakenBack, taken_back
from connectors.wire.statelog import line_of
from connectors.worker.loop_settings import LoopSettings
from connectors.worker.partition import Partition
from connectors.worker.results import Results
from streamgp.interactive.messages import Cancel, Fault, Message, Rejected


class TakingBack:
    """Withdraws examples and forgets keys, as nulls on the topic `consensus` say.

    Parameters
    ----------
    loops
        What the loops are made of.
    results
        Takes what comes of it.
    scan
        Returns everything that the topics hold of one partition.
    now
        The time, in seconds.

    Attributes
    ----------
    heeded_in
        Partitions with something that was heeded: it must be noted how far.
    forgotten_in
        Partitions in which a key was forgotten.

    """

    # _scanned  what the topics hold of partitions in which a key is forgotten
    def __init__(
        self, loops: LoopSettings, results: Results, scan: Callable[[int], History], now: float
    ) -> None:
        self._loops = loops
        self._results = results
        self._scan = scan
        self._now = now
        self.heeded_in: set[int] = set()
        self.forgotten_in: set[int] = set()
        self._scanned: dict[int, History] = {}

    def take_line(self, partition: Partition, record: Record) -> None:
        """Look at a line that has been read; put the log right if it is none.

        Whoever writes over a line has deleted it: the broker is going to drop what it replaces, and
        no worker could learn that again. So it counts as a null does. What was written becomes a
        dead letter, and leaves the log, where it would keep every worker from starting. Under a key
        that no line has it may stay: `History` passes it over.

        Raises
        ------
        OtherGroupError
            If it shows that another group works on the partition as well.

        """
        partition.check_alone(record)
        try:
            line_of(record.key, record.value or b"")
        except DecodeError as error:
            reason = f"only workers write on consensus, and a correction is an answer: {error}"
            self._refuse(partition, record, "malformed", reason, key=None)
            with suppress(DecodeError):
                what = taken_back(record.key, keyed=self._loops.keyed)
                if what.event_id is not None and self._heed(partition, record):
                    self._results.erase(record.key or b"", partition.number)
                    messages = self._take_back(partition, what, _when(record))
                    self._results.take(partition, messages or [], None)

    def take(self, partition: Partition, inbound: Inbound) -> None:
        """Do what a null says, or say why not."""
        record, what = inbound.record, inbound.message
        assert isinstance(what, TakenBack)  # that is what `read` makes of a null
        if not self._heed(partition, record):
            return
        if what.event_id is None and not self._loops.keyed:
            reason = "one loop serves all, and no key can be taken out of it; withdraw its examples"
            self._refuse(partition, record, "malformed", reason, key=None)
            return
        messages = self._take_back(partition, what, _when(record))
        if messages is None:
            reason = (
                f"key {what.key!r} is not known in partition {partition.number}, expected a null "
                "in the partition of what it takes back; choose that by the key alone, not by all "
                "of the record's key"
            )
            self._refuse(partition, record, "unknown", reason, key=what.key)
        else:
            self._results.take(partition, messages, inbound)

    def _refuse(
        self, partition: Partition, record: Record, fault: Fault, reason: str, *, key: str | None
    ) -> None:
        place = f"{record.topic}:{record.partition}:{record.offset}"
        at = _when(record)
        rejected = Rejected(subject=place, key=key, fault=fault, reason=reason, at=at)
        self._results.bury(rejected, record, partition.number)

    def _heed(self, partition: Partition, record: Record) -> bool:
        """Return whether a record is new, and take note of it.

        A broker that has lost the positions of a group delivers all of them once more; what came
        again since under the same names must not be taken back by that.
        """
        if record.offset < partition.n_heeded:
            return False
        partition.n_heeded = record.offset + 1
        self.heeded_in.add(partition.number)
        return True

    def _take_back(self, partition: Partition, what: TakenBack, now: float) -> list[Message] | None:
        """Return what becomes of it, None if nothing is known of the key."""
        entity, loops = self._loops.entity(what.key), partition.loops
        is_known = loops.knows(what.key)
        if what.event_id is None:
            if partition.early.forget(entity) or is_known:
                return self._forget(partition, what.key)
            # Who asks twice to forget somebody leaves no new trace of them.
            return [] if self._history(partition.number).names(entity) else None
        if not is_known:
            return None
        revision = what.revision or 0
        if partition.revisions.is_replaced(entity, what.event_id, revision):
            return []  # a corrected label was deleted, not the one that stands
        messages = loops.withdraw(what.key, what.event_id, now, revision=revision)
        if any(isinstance(m, Rejected) and m.fault == "failed" for m in messages):
            # The learner holds what the log has lost: no later start may call that a loss.
            partition.n_failed[entity] += 1
        return messages

    def _forget(self, partition: Partition, key: str | None) -> list[Message]:
        """Take a key out of the loops, of what is to be written, and of the topics.

        Returns
        -------
        What becomes of its open questions.

        """
        number, entity = partition.number, self._loops.entity(key)
        cancels: list[Message] = [
            message
            for request_id in partition.loops.open_requests(key)
            for message in partition.loops.on_cancel(
                request_id, self._now, key=key, why="its key was forgotten"
            )
            if isinstance(message, Cancel)
        ]
        partition.loops.forget(key)
        partition.revisions.forget(entity)
        partition.n_failed.pop(entity, None)
        self._results.forget(entity, number)
        history = self._history(number)
        self._results.keep(entity, dict.fromkeys(history.names(entity)), number)
        for consensus_key in history.consensus_keys(entity):
            self._results.erase(consensus_key, number)
        partition.n_forgotten += 1
        self.forgotten_in.add(number)
        self._results.counts["forgotten"] += 1
        return cancels

    def _history(self, number: int) -> History:
        if number not in self._scanned:
            self._scanned[number] = self._scan(number)
        return self._scanned[number]


def _when(record: Record) -> float:
    # Whoever wrote it can have stamped it with anything.
    return min(max(record.at, EARLIEST), LATEST)
