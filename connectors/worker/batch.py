"""Batch of records, passed to the loops, and everything that results from it.

This module does no I/O: records go in, records come out, in order. If a batch changes a loop
several times, only its last state is written.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from connectors.topics import COMPACTED, Outgoing, Record, TopicName
from connectors.wire import state_records
from connectors.wire.codec import DecodeError
from connectors.wire.inbound import (
    RetractionRequest,
    TakenBack,
    read,
    record_time,
    taken_back,
)
from connectors.wire.outbound import Outbound, is_dropped
from connectors.wire.state_records import (
    CONFIGURATION,
    FORGOTTEN,
    History,
    consensus_key,
    is_retraction_of,
    line_of,
    parts_of,
    retraction_name,
    retraction_value,
)
from connectors.worker.compatibility import signature
from connectors.worker.early_answers import EarlyAnswer
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings, source_of
from streamgp.interactive.learner import FoundDrift
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Fault,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
    Retraction,
)
from streamgp.interactive.retracted_log import kept_of, merged, to_undo
from streamgp.interactive.state.snapshot import SnapshotError

# --- Results of a batch: records to write, counts, and verdicts on the inputs.


Content: TypeAlias = Input | Rejected | TakenBack | RetractionRequest
"""The content of a record."""

Exchange: TypeAlias = tuple[int, Content | None, Sequence[Message]]
"""Partition, an input (None for a timer), and the messages of its key's loop about it."""

_LABELLED = (Event, Answer)
_REQUESTS = (TakenBack, RetractionRequest)
_WITHOUT_RECORD: frozenset[type] = frozenset((Rejected, Retraction))
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
    """Collects records to write, counts and failures of a batch.

    Parameters
    ----------
    source
        Source that the written records name.
    names
        Names of the topics on the broker.
    keeps_exchanges
        Whether to keep `exchanges`.

    Attributes
    ----------
    out
        Records to write, in order.
    counts
        Numbers of inputs and outputs, by kind.
    verdicts
        For every input except deletions, whether it could not be used.
    failures
        Inputs for which a learner, a strategy or the encoding failed, and answers in quarantine,
        with the reason.
    retractions
        Labels taken back from annotators who have just been quarantined, with the partition.
    retracted, reinstated
        By partition, how many labels were taken back on request, and how many were put back.
    drifts
        Concept drifts that learners have found, with the partition.
    exchanges
        The inputs and the messages about them, for metrics.

    """

    def __init__(
        self,
        loops: LoopSettings,
        source: str,
        names: Mapping[TopicName, str],
        *,
        keeps_exchanges: bool,
    ) -> None:
        self.out: list[Outgoing] = []
        self.counts: Counter[str] = Counter()
        self.verdicts: list[bool] = []
        self.failures: list[tuple[Record | None, Rejected]] = []
        self.retractions: list[tuple[int, Retraction]] = []
        self.retracted: Counter[int] = Counter()
        self.reinstated: Counter[int] = Counter()
        self.drifts: list[tuple[int, FoundDrift]] = []
        self.exchanges: list[Exchange] = []
        self._entity = loops.entity
        self._keeps_exchanges = keeps_exchanges
        self._outbound = Outbound(source, keyed=loops.keyed, names=names)

    def take(
        self,
        partition: Partition,
        messages: Iterable[Message],
        cause: Record | None = None,
        content: Content | None = None,
    ) -> None:
        """Take the messages of a loop; an input whose messages cannot be encoded is undone.

        Parameters
        ----------
        cause
            The record that caused them; None for a timer.
        content
            The content of that record.

        """
        messages, records = self._written(partition, list(messages), content)
        if self._keeps_exchanges:
            self.exchanges.append((partition.number, content, messages))
        is_bad, before = False, None
        for message, record in zip(messages, records, strict=True):
            if record is not None:
                self.counts[_COUNTED[type(message)]] += 1
                self.out.append(record)
                if isinstance(message, LabelledExample):
                    self._take_line(partition, message)
            elif isinstance(message, Retraction):
                self._take_back(partition, message)
            else:
                assert isinstance(message, Rejected)  # only these two have no record of their own
                if content is not None and is_dropped(message, content):
                    self.counts["duplicates"] += 1
                elif isinstance(before, Expired) and message.subject != _name_of(content):
                    # What ended before the input was too late for it, which may yet be learned.
                    self._reject(message, None, partition)
                else:
                    is_bad = self._reject(message, cause, partition)
            before = message
        if isinstance(content, _LABELLED):
            self.counts[_COUNTED[type(content)]] += 1
        if content is not None and not isinstance(content, _REQUESTS):
            self.verdicts.append(is_bad)

    def _reject(self, rejected: Rejected, cause: Record | None, partition: Partition) -> bool:
        """Write a rejection as a dead letter; return whether it counts as an unusable input."""
        if rejected.fault == "unknown" and not partition.loops.knows(rejected.key):
            # It may be in another: not every producer chooses partitions as we do.
            reason = f"{rejected.reason} in partition {partition.number}"
            rejected = replace(rejected, reason=reason)
        self.add_dead_letter(rejected, cause, partition.number)
        self.counts["failed"] += rejected.fault == "failed"
        if rejected.fault in ("failed", "quarantined"):
            self.failures.append((cause, rejected))
        # Duplicates are harmless, as are answers under way when another annotator was faster, and
        # no outsider must be able to stop a worker.
        return rejected.fault not in ("duplicate", "ended", "unauthorised", "quarantined")

    def _written(
        self, partition: Partition, messages: list[Message], content: Content | None
    ) -> tuple[list[Message], list[Outgoing | None]]:
        """Return messages and their records; an input whose messages cannot be written is undone.

        Then the messages are those that replace them.
        """
        try:
            return messages, self._encoded(messages, partition.number)
        except (ValueError, TypeError) as error:
            undone = None if content is None else partition.loops.reject_last(error, "encode")
            if undone is None:
                raise
            return undone, self._encoded(undone, partition.number)

    def _encoded(self, messages: Iterable[Message], number: int) -> list[Outgoing | None]:
        """Return the record of each message, None for a `Rejected` and for a `Retraction`."""
        write = self._outbound.message
        return [None if m.__class__ in _WITHOUT_RECORD else write(m, number) for m in messages]

    def count_row(self) -> None:
        """Count a raw row; the windows report whether it is valid."""
        self.counts["rows"] += 1
        self.verdicts.append(False)

    def add_dead_letter(self, rejected: Rejected, cause: Record | None, number: int) -> None:
        """Write a dead letter."""
        self.counts["dead_letters"] += 1
        self.out.append(self._outbound.dead_letter(rejected, cause, number))

    def erase(self, key: bytes, number: int) -> None:
        """Delete a line of the consensus log."""
        self.out.append(self._outbound.erase(key, number))

    def forget(self, entity: str, number: int) -> None:
        """Drop the unwritten state and log lines of an entity that has been forgotten.

        Deletions stay: of the lines that they delete, the topics hold those written before.
        """
        self.out = [
            out
            for out in self.out
            if not (
                out.partition == number
                and out.topic in COMPACTED
                and out.value is not None
                and parts_of(out.key)[0] == entity
            )
        ]

    def keep(self, entity: str, parts: Mapping[str, object], number: int) -> None:
        """Write parts of a state."""
        for name, value in parts.items():
            self.out += state_records.records_of_part(entity, name, value, number)

    def relearn(
        self, partition: Partition, erased: Iterable[bytes], lines: Iterable[LabelledExample]
    ) -> None:
        """Write the changes after which the log is the one that a learner was retaught."""
        number = partition.number
        for key in erased:  # first: no line may outlive the line that replaces it
            self.erase(key, number)
        for line in lines:
            self.counts["learned"] += 1
            self.out.append(self._outbound.message(line, number))
        partition.n_forgotten += 1  # earlier snapshots cannot be merged

    def _take_back(self, partition: Partition, retraction: Retraction) -> None:
        """Delete an annotator's lines from the log, and keep them for an undo.

        The lines that replace them are written later.
        """
        number, entity = partition.number, self._entity(retraction.key)
        for line in retraction.taken:
            self.erase(_key_of(entity, line), number)
        # Separate from what was taken back from the annotator before.
        name = f"{retraction_name(retraction.annotator)}/{retraction.taken[-1].sequence}"
        self.keep(entity, {name: retraction_value(retraction)}, number)
        partition.n_forgotten += 1  # earlier snapshots cannot be merged
        self.retractions.append((number, retraction))
        self.counts["taken_back"] += len(retraction.own)

    def _take_line(self, partition: Partition, line: LabelledExample) -> None:
        entity = self._entity(line.key)
        drift = partition.loops.new_drift(line.key)  # only a label that is learned may show one
        if drift is not None:
            self.drifts.append((partition.number, drift))
        if line.origin == "withdrawn":
            # Earlier lines of the example are deleted too, lest one outlive the line that ends it.
            for revision in range(line.revision):
                key = consensus_key(entity, line.event_id, revision)
                self.erase(key, partition.number)


def _name_of(content: Content | None) -> str | None:
    """Return the id of an event or answer, by which a rejection of it names it."""
    if isinstance(content, Answer):
        return content.answer_id
    return content.event_id if isinstance(content, Event) else None


def _key_of(entity: str, line: LabelledExample) -> bytes:
    return consensus_key(entity, line.event_id, line.revision)


# --- Records of other producers on the consensus log: deletions, and records that are no lines.


class Deletions:
    """Withdraws examples, forgets keys and retracts labels, as requested by nulls on `consensus`.

    Parameters
    ----------
    scan
        Returns everything that the topics hold about one partition.

    Attributes
    ----------
    heeded_in
        Partitions in which a null was processed, so that its offset must be recorded.
    forgotten_in
        Partitions in which a key was forgotten.

    """

    # _scanned  the topics' contents for partitions in which a key is forgotten, or labels are
    #           taken back
    # _n_seen   how many of the records to write are included in it
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
        self._n_seen: dict[int, int] = {}

    def take_line(self, partition: Partition, record: Record) -> None:
        """Check a record of the consensus log; repair the log if it is no valid line.

        A producer that overwrites a line has deleted it: compaction will drop the old line, and no
        worker could learn it again. The record therefore counts as a null. It becomes a dead letter
        and is erased from the log, where it would prevent every worker from starting. Under a key
        that no line has, it may stay: `History` skips it.

        Raises
        ------
        OtherGroupError
            If it shows that another group also processes the partition.

        """
        partition.check_alone(record)
        try:
            line_of(record.key, record.value or b"")
        except DecodeError as error:
            reason = f"only workers write to consensus, and a correction is an answer: {error}"
            self._refuse(partition, record, "malformed", reason, key=None)
            with suppress(DecodeError):
                what = taken_back(record.key, keyed=self._loops.keyed)
                if what.event_id is not None and self._is_new(partition, record):
                    self._results.erase(record.key or b"", partition.number)
                    messages = self._take_back(partition, what, record_time(record))
                    self._results.take(partition, messages or [])

    def take(self, partition: Partition, record: Record, what: TakenBack) -> None:
        """Carry out a null, or reject it."""
        if not self._is_new(partition, record):
            return
        if what.event_id is None and not self._loops.keyed:
            reason = (
                "one loop serves all keys, so no key can be removed from it; withdraw its examples"
            )
            self._refuse(partition, record, "malformed", reason, key=None)
            return
        messages = self._take_back(partition, what, record_time(record))
        if messages is None:
            reason = (
                f"key {what.key!r} is not known in partition {partition.number}, expected a null "
                "in the partition of what it takes back; choose that by the key alone, not by all "
                "of the record's key"
            )
            self._refuse(partition, record, "unknown", reason, key=what.key)
        else:
            self._results.take(partition, messages, record, what)

    def retract(self, partition: Partition, record: Record, asked: RetractionRequest) -> None:
        """Take an annotator's labels back from the loop of a key, or put them back."""
        number, loops, entity = partition.number, partition.loops, self._loops.entity(asked.key)
        if not loops.knows(asked.key):  # nothing is stored for it, not even the offset
            reason = f"key {asked.key!r} is not known in partition {number}"
            self._refuse(partition, record, "unknown", reason, key=asked.key)
            return
        if not self._is_new(partition, record):
            return
        history = self._as_written(number)
        kept, undone = history.retractions(entity), None
        if asked.undo:
            try:
                undone = to_undo(kept, asked.annotator)
            except ValueError as error:
                self._refuse(partition, record, "ended", str(error), key=asked.key)
                return
            if undone is None:
                return
        written, held = history.lines(entity), loops.lines(asked.key)
        # What others have deleted is already missing in the topic, but counts until their null
        # comes. The loop holds no withdrawals.
        lines = written if held is None else [*held, *(line for line in written if line.y is None)]
        done = loops.retract_or_reject(
            asked.key,
            asked.annotator,
            lines,
            record_time(record),
            subject=record.position,
            since=asked.since,
            undone=undone,
        )
        if isinstance(done, Rejected):
            self._results.take(partition, [done], record, asked)
            return
        cancels = [message for message in done.messages if isinstance(message, Cancel)]
        self._results.take(partition, cancels, record, asked)
        changed = undone or done.retraction
        if changed is not None:
            events = {line.event_id for line in changed.taken}
            self._relearn(partition, entity, lines, done.log, events)
            parts = self._kept_for_undo(history, entity, asked, done.retraction)
            self._results.keep(entity, parts, number)
            if asked.undo:
                self._results.reinstated[number] += len(changed.own)
            else:
                self._results.retracted[number] += len(changed.own)
                self._results.counts["taken_back"] += len(changed.own)

    def _relearn(
        self,
        partition: Partition,
        entity: str,
        before: Iterable[LabelledExample],
        log: Iterable[LabelledExample],
        events: Collection[str],
    ) -> None:
        """Make the log in the topics equal to the one from which a learner was taught again.

        All other lines about these events are deleted: no line may outlive the line that replaces
        it.

        Parameters
        ----------
        before
            The lines that it was taught before.
        log
            Those that it was taught now.
        events
            Events of the lines that were taken back, or put back.

        """
        known = {_key_of(entity, line): line for line in before}
        left = {_key_of(entity, line): line for line in log}
        history = self._as_written(partition.number)
        # What others have deleted is learned again at a start, until their null is read.
        written = [_key_of(entity, line) for line in history.lines(entity)]
        written += history.deleted_keys(entity)
        self._results.relearn(
            partition,
            [key for key in written if parts_of(key)[1] in events and key not in left],
            [line for key, line in left.items() if known.get(key) != line],
        )

    @staticmethod
    def _kept_for_undo(
        history: History, entity: str, asked: RetractionRequest, made: Retraction | None
    ) -> dict[str, object]:
        """Return the parts of the state from which labels can be put back."""
        if made is None:
            names = history.names(entity)
            return {name: None for name in names if is_retraction_of(name, asked.annotator)}
        earlier = kept_of(history.retractions(entity), asked.annotator)
        return {retraction_name(asked.annotator): retraction_value(merged(earlier, made))}

    def _refuse(
        self, partition: Partition, record: Record, fault: Fault, reason: str, *, key: str | None
    ) -> None:
        at = record_time(record)
        rejected = Rejected(subject=record.position, key=key, fault=fault, reason=reason, at=at)
        self._results.add_dead_letter(rejected, record, partition.number)

    def _is_new(self, partition: Partition, record: Record) -> bool:
        """Return whether a null is new, and record its offset.

        A broker that has lost a group's positions delivers all nulls again; they must not take back
        examples that have since been added under the same names.
        """
        if partition.is_heeded(record):
            return False
        partition.note_heeded(record)
        self.heeded_in.add(partition.number)
        return True

    def _take_back(self, partition: Partition, what: TakenBack, now: float) -> list[Message] | None:
        """Withdraw an example or forget a key; return the messages, None if the key is unknown."""
        entity, loops = self._loops.entity(what.key), partition.loops
        is_known = loops.knows(what.key)
        if what.event_id is None:
            has_rows = partition.windows is not None and partition.windows.forget(what.key)
            if partition.early.forget(entity) or is_known or has_rows:
                return self._forget(partition, what.key)
            # A repeated deletion writes nothing.
            return [] if self._history(partition.number).names(entity) else None
        if not is_known:
            return None
        revision = what.revision or 0
        if loops.has_replaced(what.key, what.event_id, revision):
            partition.n_forgotten += 1  # earlier snapshots hold the line, and cannot be merged
            # A retraction may have written it again since the null.
            line = consensus_key(entity, what.event_id, revision)
            self._results.erase(line, partition.number)
        messages = loops.withdraw(what.key, what.event_id, now, revision=revision)
        if any(isinstance(m, Rejected) and m.fault == "failed" for m in messages):
            # The learner still holds what the log has lost: a later start must not report this as a
            # loss.
            partition.n_failed[entity] += 1
        return messages

    def _forget(self, partition: Partition, key: str | None) -> list[Message]:
        """Remove a key from the loops, from the records to write, and from the topics.

        Returns
        -------
        Cancellations of its open questions.

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
        partition.n_failed.pop(entity, None)
        self._results.forget(entity, number)
        self._n_seen.clear()  # the list of records has changed
        history = self._history(number)
        self._results.keep(entity, dict.fromkeys(history.names(entity)), number)
        for line in (*history.consensus_keys(entity), *history.deleted_keys(entity)):
            self._results.erase(line, number)
        partition.n_forgotten += 1
        self.forgotten_in.add(number)
        self._results.counts["forgotten"] += 1
        return cancels

    def _history(self, number: int) -> History:
        if number not in self._scanned:
            self._scanned[number] = self._scan(number)
        return self._scanned[number]

    def _as_written(self, number: int) -> History:
        """Return everything that the topics will hold about a partition after this batch."""
        history = self._history(number)
        n_seen, self._n_seen[number] = self._n_seen.get(number, 0), len(self._results.out)
        for out in self._results.out[n_seen:]:
            if out.partition == number and out.topic in COMPACTED:
                history.append(out, self._now)
        return history


class Batch:
    """Processes the records of one poll; parameters without a description are those of `Results`.

    Parameters
    ----------
    partitions
        The loops, by partition.
    group
        Group that the written records name as their source.
    scan
        Returns everything that the topics hold about one partition; needed to forget a key.
    now
        The time in seconds, at which the results are written.

    Attributes
    ----------
    results
        Records to write, counts and failures.
    touched
        Partitions whose loops have changed.
    labels
        Non-ASCII labels in events and answers, with their records.
    unused
        Numbers of raw rows that could not be used, by reason.

    """

    # _deletions  carries out those of others in the consensus log
    # _read       partitions from which events or answers were read
    # _are_independent  whether what an event leads to depends on earlier inputs of its key alone
    def __init__(
        self,
        partitions: Mapping[int, Partition],
        loops: LoopSettings,
        group: str,
        names: Mapping[TopicName, str],
        scan: Callable[[int], History],
        now: float,
        *,
        keeps_exchanges: bool = False,
    ) -> None:
        self._partitions = partitions
        self._loops = loops
        self._group = group
        self._now = now
        self.results = Results(loops, source_of(group), names, keeps_exchanges=keeps_exchanges)
        self._deletions = Deletions(loops, self.results, scan, now)
        self.touched: set[int] = set()
        self._read: set[int] = set()
        self._are_independent = loops.keyed and loops.total_budget is None and loops.windows is None
        self.labels: list[tuple[Record, str]] = []
        self.unused: Counter[str] = Counter()

    @property
    def forgotten_in(self) -> set[int]:
        """Partitions in which a key was forgotten."""
        return self._deletions.forgotten_in

    def pass_time(self, events_come: Callable[[int], bool]) -> None:
        """End everything that is due in all partitions.

        Parameters
        ----------
        events_come
            Returns whether events of a partition are waiting: if so, waiting answers are not given
            up and windows are not closed.

        """
        for number, partition in self._partitions.items():
            try:
                messages = partition.loops.on_time(self._now)
            except SnapshotError as error:
                raise partition.unusable(error) from error
            self.results.take(partition, messages)
            if partition.early.is_overdue(self._now) and not events_come(number):
                self._deliver(partition, partition.early.take_overdue(self._now))
            windows = partition.windows
            if windows is not None and windows.is_due(self._now) and not events_come(number):
                for window in windows.on_time(self._now):
                    self._take_event(partition, window)

    def decode(self, record: Record) -> Content | None:
        """Decode a record; None for a line of the consensus log."""
        return read(record, keyed=self._loops.keyed, signatures=self._loops.signatures)

    def take_all(
        self,
        records: Sequence[Record],
        contents: Sequence[Content | None],
        begin: Callable[[Record], None],
    ) -> None:
        """Process records with their contents; the results are in the order of the records.

        Events that follow each other are processed key by key: what the loop and the learner of a
        key consist of is then in the processor's caches for all events but the first.

        Parameters
        ----------
        begin
            Called with each record before it is processed.

        Raises
        ------
        OtherGroupError, UnfitTopicsError
            As in `take`.

        """
        run: list[tuple[Record, Event]] = []
        for record, content in zip(records, contents, strict=True):
            if self._are_independent and isinstance(content, Event):
                run.append((record, content))
                continue
            self._take_by_key(run, begin)
            run.clear()
            begin(record)
            self.take(record, content)
        self._take_by_key(run, begin)

    def _take_by_key(
        self, run: Sequence[tuple[Record, Event]], begin: Callable[[Record], None]
    ) -> None:
        """Process events of different keys, which do not depend on each other."""
        of_key: dict[tuple[int, str | None], list[int]] = {}
        for i, (record, event) in enumerate(run):
            of_key.setdefault((record.partition, event.key), []).append(i)
        parts: list[tuple[list[Outgoing], list[bool]]] = [([], []) for _ in run]
        results = self.results
        before = results.out, results.verdicts
        for i in chain.from_iterable(of_key.values()):
            results.out, results.verdicts = parts[i]
            record, event = run[i]
            begin(record)
            self.take(record, event)
        results.out, results.verdicts = before
        for out, verdicts in parts:
            results.out += out
            results.verdicts += verdicts

    def take(self, record: Record, content: Content | None) -> None:
        """Process one record and its content.

        Raises
        ------
        OtherGroupError
            If it shows that another group also processes the partition.
        UnfitTopicsError
            If the stored records of its key cannot be restored.

        """
        partition = self._partitions[record.partition]
        try:
            self._take(partition, record, content)
        except SnapshotError as error:
            raise partition.unusable(error) from error

    def _take(self, partition: Partition, record: Record, content: Content | None) -> None:
        if record.topic != "consensus":
            self._read.add(record.partition)
        elif record.value is not None:
            self._deletions.take_line(partition, record)
        if content is None:
            return
        y = content.y if isinstance(content, _LABELLED) else None
        if isinstance(y, str) and not y.isascii():
            self.labels.append((record, y))
        loops = partition.loops
        match content:
            case Event() as event if partition.windows is not None:
                self.results.count_row()
                for window in partition.windows.take(event, self._now):
                    self._take_event(partition, window)
            case Event() as event:
                self._take_event(partition, event, record)
            case Answer() as answer:
                messages = self._answered(partition, answer)
                if self._is_early(partition, answer, messages):
                    self._keep(partition, record, answer)
                else:
                    self.results.take(partition, messages, record, content)
            case Cancel() as cancel:
                messages = loops.on_cancel(
                    cancel.request_id, cancel.at, key=cancel.key, why=cancel.why
                )
                self.results.take(partition, messages, record, content)
            case TakenBack():
                self._deletions.take(partition, record, content)
            case RetractionRequest():
                self._deletions.retract(partition, record, content)
            case Rejected() as rejected:
                self.results.take(partition, [rejected], record, content)

    def finish(self) -> list[Outgoing]:
        """Return the records to write, the changed state last."""
        taken_back_in = {number for number, _ in self.results.retractions}
        for number, partition in self._partitions.items():
            changed = partition.loops.has_changed
            early = partition.early.changes()
            rows = []
            if partition.windows is not None:
                rows = partition.windows.changes()
                self.unused.update(partition.windows.new_rejected())
            if changed or early or rows:
                self.touched.add(number)
            is_heeded = number in self._deletions.heeded_in or number in taken_back_in
            has_read = is_heeded or number in self._read
            if not partition.is_signed and (changed or early or rows or has_read):
                value = signature(self._loops.configuration, self._group)
                self.results.keep("", {CONFIGURATION: value}, number)
                partition.note_signed(value)
            if is_heeded:
                self.results.keep("", {FORGOTTEN: partition.heeded()}, number)
            for key, parts in partition.loops.changes_by_key():
                self.results.keep(self._loops.entity(key), parts, number)
            for entity, name, answer in early:
                self.results.keep(entity, {name: answer}, number)
            for owner, part, content in rows:
                name = state_records.window_name(owner, part)
                self.results.keep(self._loops.entity(owner), {name: content}, number)
        self.touched |= self.forgotten_in
        self.results.counts["written"] = len(self.results.out)
        return self.results.out

    def _take_event(self, partition: Partition, event: Event, record: Record | None = None) -> None:
        """Pass an event to its loop; an event of a window has no record of its own."""
        loops = partition.loops
        messages = loops.on_event(event, event.occurred_at, written_at=self._now, is_checked=True)
        self.results.take(partition, messages, record, event)
        if partition.early and loops.knows(event.key, event.event_id):
            entity = self._loops.entity(event.key)
            self._deliver(partition, partition.early.take_for(entity, event.event_id))

    def _answered(self, partition: Partition, answer: Answer) -> list[Message]:
        """Return what a loop makes of an answer."""
        return partition.loops.on_answer(
            answer, answer.answered_at, written_at=self._now, is_checked=True
        )

    # --- answers that arrive before their event

    @staticmethod
    def _is_early(partition: Partition, answer: Answer, messages: list[Message]) -> bool:
        # A request is made when its event is processed, so an answer that names one comes after it.
        # How inputs are divided into batches must make no difference; an answer therefore waits
        # only for its event, not for an earlier answer that it supersedes.
        return (
            answer.request_id is None
            and len(messages) == 1
            and isinstance(messages[0], Rejected)
            and messages[0].fault == "unknown"
            and not partition.loops.knows(answer.key, answer.event_id)
        )

    def _keep(self, partition: Partition, record: Record, answer: Answer) -> None:
        if partition.early.has(record):
            self.results.counts["duplicates"] += 1  # delivered again
            return
        entity = self._loops.entity(answer.key)
        self.results.counts["early"] += 1
        self._deliver(partition, partition.early.keep(record, answer, entity, self._now))

    def _deliver(self, partition: Partition, waiting: Iterable[EarlyAnswer]) -> None:
        """Pass answers that no longer wait to the loop; without their event, it refuses them."""
        for early in waiting:
            said = early.message
            messages = self._answered(partition, said) if isinstance(said, Answer) else [said]
            self.results.take(partition, messages, early.record, said)
