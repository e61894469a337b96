"""Restoring partitions from the local disk and the topics."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any

from connectors.storage.snapshots import StateDirectory, StateError
from connectors.topics import ShortTopicError, TopicName, Topics, WorkerClient
from connectors.wire.state_records import CONFIGURATION, History, parts_of
from connectors.worker.compatibility import check_environment, check_signed
from connectors.worker.logging import WorkerLog, in_ms
from connectors.worker.losses import Losses, vanished
from connectors.worker.partition import Partition, drop_files_of_others
from connectors.worker.settings import LoopSettings
from streamgp.common.environment import differences, differences_text

_MOST_TOLD = 20
"""The largest number of records of another program whose offsets are logged."""


class Restorer:
    """Restores partitions from snapshot and topics.

    Parameters
    ----------
    topics
        The topics; asked for the positions of the group if a partition has no records.
    state
        Directory of snapshots; None for no snapshots.
    strict
        Whether to refuse partitions that were processed in another numerical environment.

    """

    def __init__(
        self,
        topics: Topics,
        client: WorkerClient,
        loops: LoopSettings,
        group: str,
        state: StateDirectory | None,
        clock: Callable[[], float],
        log: WorkerLog,
        *,
        strict: bool,
    ) -> None:
        self._topics = topics
        self._client = client
        self._loops = loops
        self._group = group
        self._state = state
        self._clock = clock
        self._log = log
        self._strict = strict

    def steps(
        self, partitions: dict[int, Partition], numbers: Sequence[int]
    ) -> Generator[None, None, None]:
        """Restore partitions to the state in the topics, step by step; fill in the dictionary.

        Raises
        ------
        BrokerError
            If the topics cannot be read to their ends.
        UnfitTopicsError
            If they do not fit this worker.

        """
        start = perf_counter()
        try:
            for number in numbers:
                partitions[number] = self._opened(number)
                yield
            from_disk = [number for number in numbers if partitions[number].starts]
            behind = partitions
            while behind:
                behind = yield from self._catch_up(behind)
                from_disk = [number for number in from_disk if partitions[number].starts]
            unsigned = [n for n, each in partitions.items() if each.environment is None]
            if unsigned:
                yield from self._check_new(unsigned)
            self._compare_environments(partitions)
        except BaseException:
            for partition in partitions.values():
                with suppress(StateError):
                    partition.close()
            raise
        if self._state is not None:
            drop_files_of_others(self._state, self._client.assigned)
        self._log.info(
            "restored",
            partitions=list(numbers),
            from_snapshot=from_disk,
            took_s=round(perf_counter() - start, 3),
        )

    def scanned(self, number: int) -> History:
        """Return everything that the topics hold about one partition."""
        history = History()
        for record in self._client.history({number: {}}):
            history.take(record)
        return history

    def _opened(self, number: int) -> Partition:
        return Partition(
            number,
            self._loops,
            self._state,
            now=self._clock(),
            note=lambda reason: self._log.warning("snapshot-unused", reason=reason),
            group=self._group,
        )

    def _catch_up(
        self, partitions: dict[int, Partition]
    ) -> Generator[None, None, dict[int, Partition]]:
        """Read on from the end of each partition; return partitions to read from the start."""
        histories = {number: History() for number in partitions}
        starts = {number: partition.starts for number, partition in partitions.items()}
        try:
            for records in self._client.history_batches(starts, self._progress):
                for record in records:
                    histories[record.partition].take(record)
                    yield
                yield  # there may have been none
        except ShortTopicError as error:
            for number, reason in error.reasons.items():
                partitions[number].start_over(reason)
            return partitions
        behind = {}
        for number, partition in partitions.items():
            history = histories.pop(number)
            if (yield from partition.bring_up_by_key(history)):
                partition.starts |= history.ends
                self._tell_foreign(number, history)
            else:
                behind[number] = partition
        return behind

    def _tell_foreign(self, number: int, history: History) -> None:
        """Log which records of `state` another program has written; no key: it may be a name."""
        if history.foreign:
            self._log.warning(
                "foreign-records",
                topic="state",
                partition=number,
                offsets=list(history.foreign.values())[:_MOST_TOLD],
                n=len(history.foreign),
                reason="their keys are of no streamgp",
                consequence="left out; `streamgp recover` removes them",
            )

    def _check_new(self, unsigned: Sequence[int]) -> Iterator[None]:
        """Refuse partitions without records that are not new, or not for this worker.

        Either the group has processed inputs and nothing is left, or a command was interrupted
        before it marked them, or its workers have another configuration: no worker could have these
        partitions and theirs. The last two show in the other partitions only.
        """
        positions = self._topics.positions(self._group)
        for number in unsigned:
            if (lost := vanished(number, positions)) is not None:
                raise lost
        others = {n: History() for n in range(self._topics.n_partitions()) if n not in unsigned}
        starts: dict[int, dict[TopicName, int]] = {number: {} for number in others}
        for records in self._client.history_batches(starts, self._show_life):
            for record in records:
                if record.topic == "state" and parts_of(record.key) == ("", CONFIGURATION):
                    others[record.partition].take(record)
            yield
        for number, history in others.items():
            if (cut := Losses(number, history).error()) is not None:
                raise cut
            check_signed(number, history.configuration, self._loops.configuration, self._group)

    def _compare_environments(self, partitions: Mapping[int, Partition]) -> None:
        """Log, or refuse, partitions that were processed in another numerical environment."""
        others: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for number, partition in partitions.items():
            if self._strict:
                check_environment(number, partition.environment)
            differing = differences(partition.environment or {})
            if differing:
                fields = {name: {"was": a, "is": b} for name, (a, b) in differing.items()}
                others.setdefault(differences_text(differing), (fields, []))[1].append(number)
        for fields, numbers in others.values():
            self._log.warning(
                "environment-differs",
                partitions=numbers,
                fields=fields,
                consequence="results agree to about 1e-9, not bitwise",
            )

    def _show_life(self, _n_done: int, _n_all: int) -> None:
        self._log.show_life()

    def _progress(self, n_done: int, n_all: int) -> None:
        self._log.show_life()
        self._log.info("restoring", records=n_done, of=n_all)


class Restoration:
    """Partitions that are being restored, a little at a time.

    Parameters
    ----------
    numbers
        The partitions.

    Attributes
    ----------
    partitions
        Their loops, which are complete once `advance` has returned True.

    """

    def __init__(self, restorer: Restorer, numbers: Iterable[int]) -> None:
        self.numbers = frozenset(numbers)
        self.partitions: dict[int, Partition] = {}
        self._steps = restorer.steps(self.partitions, sorted(self.numbers))

    def advance(self, for_s: float = inf) -> bool:
        """Continue for about so many seconds, by one step at least; return whether it is done.

        Raises
        ------
        BrokerError, UnfitTopicsError
            See `Restorer.steps`.

        """
        until = perf_counter() + for_s
        return all(perf_counter() < until for _ in self._steps)

    def close(self, lost: Iterable[int] = ()) -> None:
        """Give up; close the partitions, and delete the files of those that are lost."""
        self._steps.close()
        for number in lost:
            if number in self.partitions:
                self.partitions[number].drop()


# --- Snapshots of partitions on the local disk, one at a time.


# Saving takes at most one part in this many of the time.
_PAUSE_PER_COST = 20.0
# Loops are prepared for a snapshot between two batches for this long at a time.
_SLICE_S = 0.05


class Saver:
    """Tracks which partitions are ahead of their snapshots, and saves them in turn.

    Parameters
    ----------
    partitions
        The worker's partitions, by number; the session keeps them up to date.
    every_s
        Seconds from one snapshot of a partition to the next.
    log
        Log of every snapshot, and of failures.

    """

    # _changed  partitions whose loops are ahead of their snapshot, the longest waiting first
    # _next     when the next snapshot is due, by perf_counter
    # _left     loops that were not prepared yet for it after the last slice; None before the first
    # _cost_s   seconds that were spent on it

    def __init__(
        self,
        partitions: Mapping[int, Partition],
        every_s: float,
        clock: Callable[[], float],
        log: WorkerLog,
    ) -> None:
        self._partitions = partitions
        self._every_s = every_s
        self._clock = clock
        self._log = log
        self._changed: dict[int, None] = {}
        self._next = perf_counter() + every_s
        self._left: int | None = None
        self._cost_s = 0.0

    def note(self, numbers: Iterable[int]) -> None:
        """Mark partitions whose loops have changed."""
        self._changed |= dict.fromkeys(sorted(set(numbers) - self._changed.keys()))

    def drop(self, number: int) -> None:
        """Remove a partition that is no longer ours."""
        self._changed.pop(number, None)
        self._cost_s, self._left = 0.0, None

    def save_when_due(self) -> None:
        """Save the next partition, if it is due, or prepare that: events wait meanwhile.

        Raises
        ------
        StateError
            If the disk has lost the loops that wait there: only the topics have them now.

        """
        if self._changed and perf_counter() >= self._next:
            number = next(iter(self._changed))
            if self._is_prepared(number):
                self._save(number)

    def save_all(self) -> None:
        """Save every partition that has changed, for the last time."""
        for number in list(self._changed):
            self._save(number, is_last=True)

    def save_at_once(self, number: int) -> None:
        """Save a partition whose old snapshot must not remain.

        Raises
        ------
        StateError
            See `save_when_due`.

        """
        is_saved = False
        try:
            is_saved = self._save(number)
        finally:
            if not is_saved:
                self._partitions[number].drop_snapshot()

    def _is_prepared(self, number: int) -> bool:
        """Prepare for a slice of time; return whether that will not get further."""
        start = perf_counter()
        left = self._partitions[number].prepare(lambda: perf_counter() - start > _SLICE_S)
        self._cost_s += perf_counter() - start
        # Loops that had an input since are to be prepared again, perhaps ever more of them.
        before, self._left = self._left, left
        return left == 0 or (before is not None and left >= before)

    def _save(self, number: int, *, is_last: bool = False) -> bool:
        start = perf_counter()
        partition = self._partitions[number]
        try:
            size = partition.save(self._clock())
        except StateError as error:
            if partition.has_lost_loops and not is_last:
                raise
            self._log.warning(
                "snapshot-failed",
                partition=number,
                reason=str(error),
                consequence="continues; a restart reads the topics from the start",
            )
            size = None
        pause_s = perf_counter() - start
        took_s = self._cost_s + pause_s
        self._cost_s, self._left = 0.0, None
        if size:
            self._log.info(
                "snapshot",
                partition=number,
                bytes=size,
                took_ms=in_ms(took_s),
                pause_ms=in_ms(pause_s),
            )
        # The next one is due once enough time has passed that saving takes only a small part of it.
        self._changed.pop(number, None)
        each_s = self._every_s / max(1, len(self._partitions))
        self._next = perf_counter() + max(each_s, _PAUSE_PER_COST * took_s)
        return size is not None
