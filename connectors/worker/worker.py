"""Worker: polls events and answers, runs the loops of its partitions, commits the results.

Outputs, labelled examples, state, dead letters and the offsets of the inputs are committed in one
transaction. A worker killed at any moment has therefore never written half a batch; the next one
restores the state from the topics, bitwise, and continues.

After an error the loops in memory may be ahead of the topics, so nothing is repaired: `run` raises,
and the supervisor restarts the process.

"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from time import monotonic, perf_counter

from connectors.stalls import WakingClock
from connectors.storage.snapshots import StateDirectory, StateError
from connectors.tables.cells import is_decimal_text
from connectors.topics import Record, Topics, partition_of
from connectors.worker.batch import Batch
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.logging import (
    REPEAT_S,
    BatchSummary,
    ProgressReports,
    SlowInputs,
    WorkerLog,
    say,
)
from connectors.worker.metrics import WorkerMetrics
from connectors.worker.partition import Partition
from connectors.worker.recovery import Restoration, Restorer, Saver
from connectors.worker.settings import (
    WINDOW,
    LoopSettings,
    WorkerSettings,
    check_share,
)
from streamgp.base import FeatureName
from streamgp.common.printable import HiddenLabels
from streamgp.interactive.messages import Event, Rejected

# --- One membership in the group, from joining to leaving.
#
# A session follows the assignment of partitions and processes their inputs. It ends with any error,
# as the loops in memory may be ahead of the topics.


LONGEST_WAIT_S = 1.0
_QUIET_S = 60.0  # without a line in the log, after which an idle worker writes one
_PATIENCE_S = 5.0  # for answers that are said to wait, but do not arrive
_AHEAD_S = 60.0  # by which a record may be dated ahead of our clock
_MOST_TOLD = 5
"""The largest number of failures of one kind, of one batch, with lines of their own."""
# Duration of a part of a restoration, between two batches of the partitions that are restored.
_SLICE_S = 0.1
_LOOK_S = 1.0  # between two questions whether to stop, while all partitions are being restored
# Number of first events whose features are looked through for numbers that come as texts.
_LOOKED_THROUGH = 100
# What some encoders write for floats that JSON does not have, such as Java's Jackson.
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")


class _StoppedError(Exception):
    """The worker was told to stop while it restored what it needs to process what it has read."""


class Stopwatch:
    """Durations of the phases of a batch, one after the other, in `took_s`."""

    def __init__(self) -> None:
        self.took_s: dict[str, float] = {}
        self._at = perf_counter()

    def end(self, phase: str) -> None:
        """End a phase and start the next one."""
        now = perf_counter()
        self.took_s[phase] = now - self._at
        self._at = now


class Session:
    """Processes inputs batch by batch, for a `Worker`; independent of earlier sessions.

    Parameters
    ----------
    topics
        The topics, of which it is a client until it is closed.
    recent
        For each recent input, whether it was unusable; owned by the worker.
    should_stop
        Asked now and then during a long restoration.

    """

    # _partitions   the loops of every partition that is ours and restored
    # _restoration  the other partitions that are ours, None if there are none
    # _n_partitions  number of partitions among which producers choose; 1 once one was found that
    #               chooses differently
    # _ahead_at     when the warning about records dated ahead was last written
    # _awake        clock of the time spent waiting
    # _moved_at     when the last answer was read, or a partition restored, on that clock

    def __init__(
        self,
        topics: Topics,
        loops: LoopSettings,
        settings: WorkerSettings,
        *,
        state: StateDirectory | None,
        clock: Callable[[], float],
        recent: deque[bool],
        metrics: WorkerMetrics | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        client = self._client = topics.client(
            group=settings.group, instance=settings.instance, max_records=settings.batch
        )
        self._loops = loops
        self._settings = settings
        self._clock = clock
        self._recent = recent
        self._should_stop = should_stop
        self._names = topics.names()
        self._metrics = metrics
        self._hidden = HiddenLabels()
        self._n_partitions = topics.n_partitions() if loops.keyed else 1
        self._n_looked_through = 0
        self._texts: set[FeatureName] = set()
        self._generation = -1
        self._partitions: dict[int, Partition] = {}
        self._restoration: Restoration | None = None
        self._log = WorkerLog(state, metrics)
        self._summary = BatchSummary(self._log, self._lag)
        self._saver = Saver(self._partitions, settings.save_every_s, clock, self._log)
        self._restorer = Restorer(
            topics,
            client,
            loops,
            settings.group,
            state,
            clock,
            self._log,
            strict=settings.strict,
        )
        self._roles = {called: topic for topic, called in self._names.items()}
        self._progress = ProgressReports(client, self._log, self._read_to)
        self._slow = SlowInputs(self._log, self._names)
        self._ahead_at: float | None = None
        self._awake = WakingClock(1.5 * LONGEST_WAIT_S)
        self._moved_at = self._awake()

    def turn(self) -> None:
        """Poll once, and process the records and everything that is due.

        Raises
        ------
        _StoppedError
            If `should_stop` is true before everything is restored that is needed for the records.

        """
        self._log.show_life()
        self._restore_on(_SLICE_S)
        watch = Stopwatch()
        records = self._client.poll(self._wait(), self._held)
        self._compare_clocks(records)
        watch.end("poll")
        is_new = self._follow_assignment(records)
        self._progress.look()  # a snapshot may tell how far an input was read
        if is_new and not records:
            return  # the assignment may have changed again: poll before timers fire
        batch = Batch(
            self._partitions,
            self._loops,
            self._settings.group,
            self._names,
            self._restorer.scanned,
            self._clock(),
            keeps_exchanges=self._metrics is not None,
        )
        decoded = [batch.decode(record) for record in records]
        watch.end("decode")
        batch.take_all(records, decoded, self._slow.begin)
        self._slow.current = None
        self._warn_of_texts(records, decoded)
        self._warn_of_place(records)
        # An answer given in time is processed before its request expires, however late it is read.
        if not self._answers_come(records):
            batch.pass_time(self._events_come)
        watch.end("loop")
        outgoing = batch.finish()
        watch.end("state")
        if outgoing or records:
            self._commit(batch, records, watch)
        elif self._log.quiet_s > _QUIET_S:
            self._log.info("idle", partitions=sorted(self._partitions))
        self._summary.write_when_due()
        if self._metrics is not None:
            partitions, found = self._partitions.values(), self._progress
            self._metrics.look(self._client, partitions, found.stuck, found.n_missed, self._names)
        self._saver.save_when_due()

    def save_all(self) -> None:
        """Write a snapshot of every partition that has changed."""
        self._saver.save_all()

    def leave(self) -> None:
        """Leave the group, so that others take the partitions over at once."""
        self._slow.close()
        self._summary.write()
        self._client.close(leave=True)

    def close(self) -> None:
        """End the session; what was not committed is left to others."""
        self._slow.close()
        self._summary.write()
        if self._restoration is not None:
            self._restoration.close()
        for partition in self._partitions.values():
            with suppress(StateError):
                partition.close()
        self._client.close()

    def _commit(self, batch: Batch, records: Sequence[Record], watch: Stopwatch) -> None:
        results = batch.results
        ends = self._client.commit(results.out)
        watch.end("commit")
        if self._metrics is not None:
            self._metrics.note_batch(batch, watch.took_s, self._clock())
        for partition in self._partitions.values():
            partition.advance(ends)
        for record in records:
            self._partitions[record.partition].positions[record.topic] = record.offset + 1
        self._saver.note(batch.touched)
        if results.out or results.verdicts:  # not if only its own labelled examples were read
            partitions = {record.partition for record in records}
            self._summary.note(results.counts, partitions, watch.took_s)
        self._tell(batch)
        for number in batch.forgotten_in:  # it must not remain in an old snapshot
            self._saver.save_at_once(number)
        check_share(self._recent, results.verdicts, self._settings.max_bad_share)

    def _tell(self, batch: Batch) -> None:
        """Report what an operator should know; without keys and annotators: they may be names."""
        results = batch.results
        self._tell_failures(results.failures)
        for number, retraction in results.retractions:
            self._log.warning(
                "taken-back",
                partition=number,
                n=len(retraction.own),
                reason="an annotator is in quarantine from now on",
                consequence="the learner was taught again without the labels of that annotator",
            )
        for number, n in (+results.retracted).items():  # without partitions that have none
            self._log.info("retracted", partition=number, n=n)
        for number, n in (+results.reinstated).items():
            self._log.info("reinstated", partition=number, n=n)
        for number, drift in results.drifts:
            self._log.info(
                "drift",
                partition=number,
                n_kept=drift.n_kept,
                n_outdated=drift.n_outdated,
                reason="labels were too surprising to be chance",
                consequence="the learner of a key was taught again with the labels kept alone",
            )
        if batch.unused:
            self._log.warning("rows-unused", of=results.counts["rows"], reasons=dict(batch.unused))
        self._warn_of_hidden(batch.labels)

    def _warn_of_hidden(self, labels: Sequence[tuple[Record, str]]) -> None:
        """Warn of each new label that may look like another, by its position, not by its text."""
        for record, label in labels:
            if found := self._hidden.characters(label):
                self._log.warning(
                    "hidden-characters",
                    **self._place(record),
                    characters=found[:5],
                    consequence="a label may look like another one",
                )

    def _warn_of_texts(self, records: Sequence[Record], decoded: Sequence[object]) -> None:
        """Warn of each feature of the first events that comes as the text of a number or of NaN."""
        for record, event in zip(records, decoded, strict=True):
            if self._n_looked_through >= _LOOKED_THROUGH:
                return
            if isinstance(event, Event):
                self._n_looked_through += 1
                names = [
                    name
                    for name, value in event.x.items()
                    if is_decimal_text(value) or value in _NO_NUMBERS
                ]
                new = [name for name in names if name not in self._texts]
                if new:
                    self._texts.update(new)
                    self._log.warning(
                        "numbers-as-texts",
                        **self._place(record),
                        features=new[:_MOST_TOLD],
                        consequence="they are compared as names; send numbers without quotes, "
                        "and none if unknown",
                    )

    def _warn_of_place(self, records: Sequence[Record]) -> None:
        """Warn once of an event that Kafka's own clients would have put into another partition.

        One record of a batch is looked at: every producer's comes to be the last one.
        """
        if self._n_partitions == 1 or not records:
            return
        record = records[-1]
        if not record.key or record.topic != "events":
            return
        expected = partition_of(record.key, self._n_partitions)
        if record.partition != expected:
            self._n_partitions = 1
            self._log.warning(
                "other-partitioner",
                **self._place(record),
                expected=expected,
                reason="its producer does not choose partitions by murmur2, as Kafka's clients do",
                consequence="a key in two partitions has two learners; answers miss its events",
            )

    def _compare_clocks(self, records: Sequence[Record]) -> None:
        """Warn of answers dated ahead of our clock; the broker says when they were written."""
        answers = [record for record in records if record.topic == "answers"]
        if not answers:
            return
        record = max(answers, key=lambda record: record.at)
        ahead_s, now = record.at - self._clock(), monotonic()
        if ahead_s <= _AHEAD_S or (self._ahead_at is not None and now - self._ahead_at < REPEAT_S):
            return
        self._ahead_at = now
        self._log.warning(
            "clock-differs",
            **self._place(record),
            ahead_s=round(ahead_s),
            reason="the record is dated ahead of this worker's clock: one of the two is wrong",
            consequence="answers that name no time count as given then, perhaps too late",
        )

    def _answers_come(self, records: Sequence[Record]) -> bool:
        """Return whether answers are waiting that may have been given long ago.

        Answers that exist but do not arrive belong to an open transaction of another producer;
        timers do not wait for those.
        """
        now = self._awake()
        if any(record.topic == "answers" for record in records):
            self._moved_at = now
        if now - self._moved_at > _PATIENCE_S:
            return False
        lags = self._client.lag().items()
        return any(
            topic == "answers" and number in self._partitions and (n is None or n > 0)
            for (topic, number), n in lags
        )

    def _events_come(self, number: int) -> bool:
        """Return whether events of a partition are, or may be, waiting."""
        return self._client.lag().get(("events", number)) != 0

    # --- assignment of partitions
    #
    # New partitions are restored bit by bit, while those that are restored are processed. If there
    # are none, or records of new ones have come, they are restored at once.

    @property
    def _held(self) -> frozenset[int]:
        """The partitions that are ours and not restored yet."""
        return frozenset() if self._restoration is None else self._restoration.numbers

    def _follow_assignment(self, records: Sequence[Record]) -> bool:
        """Drop partitions and begin to restore others; return whether the assignment has changed.

        Parameters
        ----------
        records
            What has just been polled.

        """
        client = self._client
        ours = self._partitions.keys() | self._held
        if client.generation == self._generation and client.assigned == ours:
            return False
        # After a larger step, others may have processed any of them in between.
        is_next = client.generation == self._generation + 1
        kept = client.assigned if is_next else frozenset()
        lost = [number for number in ours if number not in kept]
        for number in lost:
            if number in self._partitions:
                self._partitions.pop(number).drop()
                self._saver.drop(number)
        gained = client.assigned - self._partitions.keys()
        self._generation = client.generation
        self._log.info("assigned", partitions=sorted(client.assigned), lost=sorted(lost))
        if self._metrics is not None:
            self._metrics.note_assignment(lost)
        if not (is_next and gained == self._held):
            self._restore(gained, lost)
        if not self._partitions or any(record.partition in gained for record in records):
            self._restore_at_once()
        if not gained and self._metrics is not None:
            self._metrics.note_restored({})
        return True

    def _restore(self, numbers: Set[int], lost: Iterable[int]) -> None:
        """Begin to restore partitions, instead of others of which some are lost."""
        if self._restoration is not None:
            self._restoration.close(lost)
        self._restoration = Restoration(self._restorer, numbers) if numbers else None

    def _restore_at_once(self) -> None:
        self._restore_on(_LOOK_S)
        while self._restoration is not None:
            if self._should_stop():
                raise _StoppedError
            self._restore_on(_LOOK_S)

    def _restore_on(self, for_s: float) -> None:
        """Continue for about so many seconds to restore partitions, if there are any."""
        restoration = self._restoration
        if restoration is None or not restoration.advance(for_s):
            return
        self._restoration = None
        self._partitions |= restoration.partitions
        self._moved_at = self._awake()
        if self._metrics is not None:
            self._metrics.note_restored(restoration.partitions)

    # --- reporting and waiting

    def _read_to(self, place: tuple[str, int]) -> int | None:
        """Return how far a partition was read at least, None if no snapshot tells."""
        called, number = place
        partition = self._partitions.get(number)
        if partition is None and self._restoration is not None:
            partition = self._restoration.partitions.get(number)
        return None if partition is None else partition.positions.get(self._roles[called])

    def _place(self, record: Record | None) -> dict[str, str | int]:
        """Return a record's position on the broker, as fields of a log line; none for no record."""
        if record is None:
            return {}
        called = self._names.get(record.topic, record.topic)
        return {"topic": called, "partition": record.partition, "offset": record.offset}

    def _tell_failures(self, failures: Sequence[tuple[Record | None, Rejected]]) -> None:
        """Report some inputs for which something failed; the dead letters contain all."""
        unheard = [cause for cause, one in failures if one.fault == "quarantined"]
        failed = [(cause, one) for cause, one in failures if one.fault != "quarantined"]
        for cause in unheard[:_MOST_TOLD]:
            consequence = "the answer is a dead letter, which names the annotator"
            self._log.warning("quarantined", **self._place(cause), consequence=consequence)
        if len(unheard) > _MOST_TOLD:
            self._log.warning("quarantined", more=len(unheard) - _MOST_TOLD)
        for cause, rejected in failed[:_MOST_TOLD]:
            self._log.warning(
                "record-failed",
                **self._place(cause),
                stage=rejected.stage,
                reason=rejected.reason,
                consequence="it is a dead letter; the learner is as it was before",
            )
        if len(failed) > _MOST_TOLD:
            self._log.warning("record-failed", more=len(failed) - _MOST_TOLD)

    def _lag(self) -> int:
        return sum(n or 0 for n in self._client.lag().values())

    def _wait(self) -> float:
        if self._restoration is not None:
            return 0.0
        deadlines = [p.loops.next_deadline() for p in self._partitions.values()]
        due = min((at for at in deadlines if at is not None), default=None)
        if due is None:
            return LONGEST_WAIT_S
        # At its very deadline a request is still open, a millisecond later it is not.
        return min(LONGEST_WAIT_S, max(0.0, due - self._clock() + 1e-3))


class Worker:
    """Processes the partitions that its group assigns to it, until it is stopped.

    Parameters
    ----------
    state
        Directory of snapshots; None to read the topics from the start instead.
    clock
        Returns the time, in seconds; timers follow it.
    metrics
        Receives counts and progress; None for no metrics.

    """

    # _state   directory of snapshots; abandoned for good when the disk fails.
    # _recent  for each recent input, whether it was unusable; outlives the session.

    def __init__(
        self,
        topics: Topics,
        loops: LoopSettings,
        settings: WorkerSettings,
        *,
        state: StateDirectory | None = None,
        clock: Callable[[], float] = time.time,
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self._topics = topics
        self._loops = loops
        self._settings = settings
        self._state = state
        self._clock = clock
        self._metrics = metrics
        self._recent: deque[bool] = deque(maxlen=WINDOW)

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Run until `should_stop` returns true; the current batch is finished first.

        Raises
        ------
        FencedError
            If another worker with the same instance name has taken over.
        BrokerError
            If the broker is gone, or a transaction failed. Nothing is lost; start again.
        TooManyBadError
            If too many inputs could not be used.
        UnfitTopicsError
            If one learner would serve several partitions, or the topics hold what another
            configuration has learned.

        """
        self._check()
        while True:
            try:
                self._work(should_stop)
                return
            except StateError as error:
                if self._state is None:
                    raise
                # Evicted loops are lost with the disk, but the topics have everything.
                say(
                    logging.WARNING,
                    "state-lost",
                    reason=str(error),
                    consequence="continues without",
                )
                self._state = None

    def _check(self) -> None:
        n_partitions = self._topics.n_partitions()
        if not self._loops.keyed and n_partitions != 1:
            raise UnfitTopicsError(
                f"one learner for all keys needs one partition, got {n_partitions}; "
                "make topics with one, or give every key a learner of its own (worker.keyed)"
            )

    def _work(self, should_stop: Callable[[], bool]) -> None:
        session = Session(
            self._topics,
            self._loops,
            self._settings,
            state=self._state,
            clock=self._clock,
            recent=self._recent,
            metrics=self._metrics,
            should_stop=should_stop,
        )
        try:
            with suppress(_StoppedError):
                while not should_stop():
                    session.turn()
            if self._settings.leave:
                session.leave()  # first: others wait for the partitions, not for snapshots
            session.save_all()
        finally:
            session.close()
