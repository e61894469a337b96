"""What was polled together, handed to the loops, and everything that comes of it.

Nothing is read or written here: records go in, records come out, in their order. Of what a batch
changed in a loop only the last state is written.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from connectors.records import Outgoing, Record, TopicName
from connectors.wire.history import History
from connectors.wire.inbox import Inbound, TakenBack, read
from connectors.wire.statelog import CONFIGURATION
from connectors.worker.agreement import signature, source_of
from connectors.worker.early import Early
from connectors.worker.loop_settings import LoopSettings
from connectors.worker.losses import FORGOTTEN
from connectors.worker.partition import Partition
from connectors.worker.results import Results
from connectors.worker.taking_back import TakingBack
from streamgp.interactive.messages import Answer, Cancel, Event, Message, Rejected


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
    names
        What the topics are called on the broker.
    scan
        Returns everything that the topics hold of one partition; needed to forget a key.
    now
        The time, in seconds: when what comes of the records is written.

    Attributes
    ----------
    touched
        Partitions whose loops have changed.
    labels
        Labels beyond ASCII that came with events and answers, and in which record.

    """

    # _results  what comes of it
    # _nulls    takes back what others have deleted from the consensus log
    def __init__(
        self,
        partitions: Mapping[int, Partition],
        loops: LoopSettings,
        group: str,
        names: Mapping[TopicName, str],
        scan: Callable[[int], History],
        now: float,
    ) -> None:
        self._partitions = partitions
        self._loops = loops
        self._group = group
        self._now = now
        self._results = Results(source_of(group), keyed=loops.keyed, names=names)
        self._nulls = TakingBack(loops, self._results, scan, now)
        self.touched: set[int] = set()
        self.labels: list[tuple[Record, str]] = []

    @property
    def counts(self) -> Counter[str]:
        """What went in and came out, by kind."""
        return self._results.counts

    @property
    def verdicts(self) -> list[bool]:
        """For every event and answer, whether it could not be used."""
        return self._results.verdicts

    @property
    def failures(self) -> list[tuple[Record | None, Rejected]]:
        """Inputs over which a learner, a rule or the encoding failed, and why."""
        return self._results.failures

    @property
    def forgotten_in(self) -> set[int]:
        """Partitions in which a key was forgotten."""
        return self._nulls.forgotten_in

    def pass_time(self, events_come: Callable[[int], bool]) -> None:
        """End what is due in all partitions.

        Parameters
        ----------
        events_come
            Says whether events of a partition wait to be read: then no answer has waited in vain.

        """
        for number, partition in self._partitions.items():
            self._results.take(partition, partition.loops.on_time(self._now), None)
            if partition.early.is_overdue(self._now) and not events_come(number):
                self._give_up(partition, partition.early.take_overdue(self._now))

    def take(self, record: Record) -> None:
        """Hand one record over.

        Raises
        ------
        OtherGroupError
            If it shows that another group works on the partition as well.

        """
        partition = self._partitions[record.partition]
        if record.topic == "consensus" and record.value is not None:
            self._nulls.take_line(partition, record)
        inbound = read(record, keyed=self._loops.keyed)
        if inbound is None:
            return
        y = getattr(inbound.message, "y", None)
        if isinstance(y, str) and not y.isascii():
            self.labels.append((record, y))
        loops = partition.loops
        match inbound.message:
            case Event() as event:
                messages = loops.on_event(event, event.occurred_at, written_at=self._now)
                self._results.take(partition, messages, inbound)
                if partition.early and loops.knows(event.key, event.event_id):
                    self._take_early(partition, event)
            case Answer() as answer:
                messages = loops.on_answer(answer, answer.answered_at, written_at=self._now)
                if self._is_early(partition, answer, messages):
                    self._keep(partition, inbound, answer)
                else:
                    self._results.take(partition, messages, inbound)
            case Cancel() as cancel:
                messages = loops.on_cancel(
                    cancel.request_id, cancel.at, key=cancel.key, why=cancel.why
                )
                self._results.take(partition, messages, inbound)
            case TakenBack():
                self._nulls.take(partition, inbound)
            case Rejected() as rejected:
                self._results.take(partition, [rejected], inbound)

    def finish(self) -> list[Outgoing]:
        """Return what is to be written, the changed state last."""
        for number, partition in self._partitions.items():
            changed = partition.loops.changes()
            early = partition.early.changes()
            if changed or early:
                self.touched.add(number)
            is_heeded = number in self._nulls.heeded_in
            if not partition.is_signed and (changed or early or is_heeded):
                value = signature(self._loops.configuration, self._group)
                self._results.keep("", {CONFIGURATION: value}, number)
                partition.note_signed(value)
            if is_heeded:
                self._results.keep("", {FORGOTTEN: partition.heeded()}, number)
            for key, parts in changed.items():
                self._results.keep(self._loops.entity(key), parts, number)
            for entity, name, answer in early:
                self._results.keep(entity, {name: answer}, number)
        self.touched |= self.forgotten_in
        self.counts["written"] = len(self._results.out)
        return self._results.out

    # --- answers that come before their event

    @staticmethod
    def _is_early(partition: Partition, answer: Answer, messages: list[Message]) -> bool:
        # A request is made when its event is worked off: whoever names one has seen it. A cut of
        # the same inputs into other batches must make no difference, so that an answer waits for
        # its event alone, not for an earlier answer that it supersedes.
        return (
            answer.request_id is None
            and len(messages) == 1
            and getattr(messages[0], "fault", None) == "unknown"
            and not partition.loops.knows(answer.key, answer.event_id)
        )

    def _keep(self, partition: Partition, inbound: Inbound, answer: Answer) -> None:
        if partition.early.has(inbound.record):
            self.counts["duplicates"] += 1  # delivered once more
            return
        entity = self._loops.entity(answer.key)
        self.counts["early"] += 1
        self._give_up(partition, partition.early.keep(inbound, entity, self._now))

    def _take_early(self, partition: Partition, event: Event) -> None:
        """Hand over what has waited for an event, in its order."""
        entity = self._loops.entity(event.key)
        for early in partition.early.take_for(entity, event.event_id):
            self._hear(partition, early)

    def _give_up(self, partition: Partition, waiting: list[Early]) -> None:
        """Make dead letters of answers whose event has not come."""
        for early in waiting:
            self._hear(partition, early)

    def _hear(self, partition: Partition, early: Early) -> None:
        """Hand over an answer that is not kept any longer, whatever the loop makes of it."""
        message = early.inbound.message
        if isinstance(message, Answer):
            messages = partition.loops.on_answer(message, message.answered_at, written_at=self._now)
        else:
            assert isinstance(message, Rejected)  # an earlier worker could read it
            messages = [message]
        self._results.take(partition, messages, early.inbound)
