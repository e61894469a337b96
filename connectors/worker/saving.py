"""Snapshots of partitions on the local disk, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter

from connectors.storage.snapshots import StateError
from connectors.worker.journal import Journal, in_ms
from connectors.worker.partition import Partition

# Saving takes at most one part in so many of the time.
_PAUSE_PER_COST = 20.0


class Saver:
    """Knows which partitions are ahead of their snapshots, and saves them in turn.

    Parameters
    ----------
    partitions
        Those that are ours, by number; the session keeps this up to date.
    every_s
        Seconds from one snapshot of a partition to its next.
    clock
        Tells the time.
    journal
        Told of every snapshot, and why there is none.

    """

    # _changed  partitions whose loops are ahead of their snapshot, for the longest time first
    # _next     when the next snapshot is due, by perf_counter

    def __init__(
        self,
        partitions: Mapping[int, Partition],
        every_s: float,
        clock: Callable[[], float],
        journal: Journal,
    ) -> None:
        self._partitions = partitions
        self._every_s = every_s
        self._clock = clock
        self._journal = journal
        self._changed: dict[int, None] = {}
        self._next = perf_counter() + every_s

    def note(self, numbers: Iterable[int]) -> None:
        """Take note of partitions whose loops have changed."""
        self._changed |= dict.fromkeys(sorted(set(numbers) - self._changed.keys()))

    def drop(self, number: int) -> None:
        """Take note that a partition is ours no longer."""
        self._changed.pop(number, None)

    def save_when_due(self) -> None:
        """Save the partition whose turn it is, if it is time."""
        if self._changed and perf_counter() >= self._next:
            self._save(next(iter(self._changed)))

    def save_all(self) -> None:
        """Save every partition that has changed."""
        for number in list(self._changed):
            self._save(number)

    def save_at_once(self, number: int) -> None:
        """Save a partition of which the old snapshot must not stay."""
        if not self._save(number):
            self._partitions[number].drop_snapshot()

    def _save(self, number: int) -> bool:
        start = perf_counter()
        try:
            size = self._partitions[number].save(self._clock())
        except StateError as error:
            self._journal.warning(
                "snapshot-failed",
                partition=number,
                reason=str(error),
                consequence="goes on; a restart reads the topics from the start",
            )
            size = None
        took_s = perf_counter() - start
        if size:
            self._journal.info("snapshot", partition=number, bytes=size, took_ms=in_ms(took_s))
        # The next one's turn comes when so much time has passed that saving costs little of it.
        self._changed.pop(number, None)
        pause_s = self._every_s / max(1, len(self._partitions))
        self._next = perf_counter() + max(pause_s, _PAUSE_PER_COST * took_s)
        return size is not None
