"""One hold on the topics, from joining the group to leaving it.

A session follows the partitions that come and go, and saves snapshots. After any error it is over,
as memory may be ahead of the topics.

"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from connectors.records import Link, Record
from connectors.storage.snapshots import StateDirectory, StateError
from connectors.wire.statelog import History
from connectors.worker.batch import Batch
from connectors.worker.partition import LoopSettings, Partition

LONGEST_WAIT_S = 1.0
WINDOW = 1000
"""Number of inputs of which not too many may be unusable."""
_QUIET_S = 60.0
_PATIENCE_S = 5.0
# Saving takes at most one part in so many of the time.
_PAUSE_PER_COST = 20.0

ALIVE = "alive"
"""File in the state directory that is touched at every turn, and while a restore gets on."""

log = logging.getLogger("streamgp.worker")


class TooManyBadError(Exception):
    """More inputs than allowed could not be used; the text says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker works, whatever it learns.

    Parameters
    ----------
    group
        Workers of one group share the partitions.
    instance
        Name of this worker, of its own within the group, the same after a restart.
    batch
        How many records are worked off together at most.
    save_every_s
        Seconds between two snapshots on the local disk.
    max_bad_share
        Share of the last 1000 inputs that may be unusable.

    """

    group: str = "streamgp"
    instance: str = "worker"
    batch: int = 1000
    save_every_s: float = 30.0
    max_bad_share: float = 0.5


class Session:
    """Works off what comes, batch by batch; knows nothing of the session before.

    Parameters
    ----------
    link
        The hold on the topics.
    loops
        What the loops are made of.
    settings
        How to work.
    state
        Where snapshots are kept; None for nowhere.
    clock
        Tells the time.
    recent
        Of the last inputs, which could not be used; belongs to the worker.

    """

    # _partitions  the loops of every partition that is ours
    # _changed     partitions whose loops are ahead of their snapshot, for the longest time first
    # _next_save   when the next snapshot is due, by perf_counter
    # _quiet_since when the last line was logged
    # _moved_at    when the last answer was read, or a partition restored

    def __init__(
        self,
        link: Link,
        loops: LoopSettings,
        settings: WorkerSettings,
        state: StateDirectory | None,
        clock: Callable[[], float],
        recent: deque[bool],
    ) -> None:
        self._link = link
        self._loops = loops
        self._settings = settings
        self._state = state
        self._clock = clock
        self._recent = recent
        self._generation = -1
        self._partitions: dict[int, Partition] = {}
        self._changed: dict[int, None] = {}
        self._next_save = perf_counter() + settings.save_every_s
        self._quiet_since = perf_counter()
        self._moved_at = perf_counter()

    def turn(self) -> None:
        """Poll once, and work off what came and what is due."""
        self._show_life()
        records = self._link.poll(self._wait())
        start = perf_counter()
        if self._follow_assignment() and not records:
            return  # partitions may have moved on while some were restored: ask before timers fire
        batch = Batch(
            self._partitions, self._loops, self._settings.group, self._scan, self._clock()
        )
        for record in records:
            batch.take(record)
        # What was answered in time is heard before its time is up, however late it is read.
        if not self._answers_come(records):
            batch.pass_time()
        outgoing = batch.finish()
        if outgoing or records:
            worked = perf_counter()
            ends = self._link.commit(outgoing)
            for partition in self._partitions.values():
                partition.advance(ends)
            self._changed |= dict.fromkeys(sorted(batch.touched - self._changed.keys()))
            if outgoing or batch.verdicts:  # not where its own labelled examples came back
                self._report(batch.counts, records, start, worked)
            for number in batch.forgotten_in:  # it must not wait in an old snapshot
                if not self._save(number):
                    self._partitions[number].drop_snapshot()
            self._judge(batch.verdicts)
        elif perf_counter() - self._quiet_since > _QUIET_S:
            self._say(logging.INFO, "idle", partitions=sorted(self._partitions))
        if self._changed and perf_counter() >= self._next_save:
            self._save(next(iter(self._changed)))

    def save_all(self) -> None:
        """Write a snapshot of every partition that has changed."""
        for number in list(self._changed):
            self._save(number)

    def close(self) -> None:
        """Leave the group; what was not committed is left to others."""
        for partition in self._partitions.values():
            with suppress(StateError):
                partition.close()
        self._link.close()

    def _answers_come(self, records: Sequence[Record]) -> bool:
        """Return whether answers wait to be read that may have been given long ago.

        Some that do not come although they are there belong to a transaction of somebody who has
        not ended it; time does not stand still for those.
        """
        now = perf_counter()
        if any(record.topic == "answers" for record in records):
            self._moved_at = now
        if now - self._moved_at > _PATIENCE_S:
            return False
        lags = self._link.lag().items()
        return any(n is None or n > 0 for (topic, _), n in lags if topic == "answers")

    # --- partitions that come and go

    def _follow_assignment(self) -> bool:
        """Drop and restore partitions; return whether any have come or gone."""
        link = self._link
        if link.generation == self._generation and link.assigned == self._partitions.keys():
            return False
        kept = set(link.assigned)
        if link.generation != self._generation + 1:
            kept = set()  # others may have worked on them in between
        lost = [number for number in self._partitions if number not in kept]
        for number in lost:
            self._partitions.pop(number).drop()
            self._changed.pop(number, None)
        gained = sorted(link.assigned - self._partitions.keys())
        self._generation = link.generation
        self._say(logging.INFO, "assigned", partitions=sorted(link.assigned), lost=sorted(lost))
        if gained:
            self._restore(gained)
        return True

    def _restore(self, numbers: Sequence[int]) -> None:
        start = perf_counter()
        for number in numbers:
            self._partitions[number] = Partition(
                number,
                self._loops,
                self._state,
                now=self._clock(),
                note=lambda reason: self._say(logging.WARNING, "snapshot-unused", reason=reason),
            )
        from_disk = [n for n in numbers if self._partitions[n].starts]
        behind = self._bring_up(numbers)
        if behind:
            self._bring_up(behind)
        self._say(
            logging.INFO,
            "restored",
            partitions=list(numbers),
            from_snapshot=[n for n in from_disk if n not in behind],
            took_s=round(perf_counter() - start, 3),
        )
        self._moved_at = perf_counter()

    def _bring_up(self, numbers: Sequence[int]) -> list[int]:
        """Read on where partitions end; return those that must be read from the start."""
        histories = {number: History() for number in numbers}
        ends: dict[Any, int] = {}
        starts = {number: self._partitions[number].starts for number in numbers}
        for record in self._link.history(starts, self._restoring):
            histories[record.partition].take(record)
            ends[record.topic, record.partition] = record.offset + 1
        behind = []
        for number in numbers:
            partition = self._partitions[number]
            if partition.bring_up(histories.pop(number)):
                partition.advance(ends)
            else:
                behind.append(number)
        return behind

    def _show_life(self) -> None:
        if self._state is not None:
            with suppress(OSError):
                self._state.file(ALIVE).touch()

    def _restoring(self, n_done: int, n_all: int) -> None:
        self._show_life()
        self._say(logging.INFO, "restoring", records=n_done, of=n_all)

    def _scan(self, number: int) -> History:
        """Return everything that the topics hold of one partition."""
        history = History()
        for record in self._link.history({number: {}}):
            history.take(record)
        return history

    # --- snapshots

    def _save(self, number: int) -> bool:
        """Write a snapshot of a partition; return whether that was possible."""
        if self._state is None:
            self._changed.pop(number, None)
            return True
        start = perf_counter()
        try:
            size = self._partitions[number].save(self._clock())
        except StateError as error:
            self._say(
                logging.WARNING,
                "snapshot-failed",
                partition=number,
                reason=str(error),
                consequence="goes on; a restart reads the topics from the start",
            )
            size = None
        took_s = perf_counter() - start
        if size is not None:
            self._say(logging.INFO, "snapshot", partition=number, bytes=size, took_ms=_ms(took_s))
        # The next one's turn comes when so much time has passed that saving costs little of it.
        self._changed.pop(number, None)
        pause_s = self._settings.save_every_s / max(1, len(self._partitions))
        self._next_save = perf_counter() + max(pause_s, _PAUSE_PER_COST * took_s)
        return size is not None

    # --- judging and telling

    def _judge(self, verdicts: Sequence[bool]) -> None:
        self._recent.extend(verdicts)
        n_bad = sum(self._recent)
        if len(self._recent) == WINDOW and n_bad > self._settings.max_bad_share * WINDOW:
            raise TooManyBadError(
                f"{n_bad} of the last {WINDOW} inputs could not be used, expected at most "
                f"{self._settings.max_bad_share:.0%}; look at the dead letters"
            )

    def _report(
        self, counts: Counter[str], records: Sequence[Record], start: float, worked: float
    ) -> None:
        done = perf_counter()
        self._say(
            logging.INFO,
            "batch",
            partitions=sorted({record.partition for record in records}),
            **counts,
            work_ms=_ms(worked - start),
            commit_ms=_ms(done - worked),
            lag=sum(n or 0 for n in self._link.lag().values()),
        )

    def _say(self, level: int, event: str, **fields: Any) -> None:
        self._quiet_since = perf_counter()
        say(level, event, **fields)

    def _wait(self) -> float:
        deadlines = [p.loops.next_deadline() for p in self._partitions.values()]
        due = min((at for at in deadlines if at is not None), default=None)
        if due is None:
            return LONGEST_WAIT_S
        # A request is open at its very deadline; a millisecond later it is not.
        return min(LONGEST_WAIT_S, max(0.0, due - self._clock() + 1e-3))


def say(level: int, event: str, **fields: Any) -> None:
    """Write a line into the log."""
    log.log(level, event, extra={"fields": fields})


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 2)
