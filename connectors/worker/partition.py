"""Loops of one partition: restored from topics and local snapshot, saved, dropped.

The topics `state` and `consensus` hold everything. Local files only save reading the topics from
the start: a snapshot that does not fit, for whatever reason, is ignored.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from connectors.storage.snapshots import StateDirectory, StateError
from connectors.storage.sqlite import SqliteStore
from connectors.topics import COMPACTED, Place, Record, TopicName
from connectors.wire.state_records import History, HistoryError, window_part
from connectors.worker.compatibility import (
    GROUP,
    UnfitTopicsError,
    check_alone,
    check_signed,
    environment_in,
)
from connectors.worker.early_answers import EarlyAnswers
from connectors.worker.losses import (
    IF_UNREADABLE,
    Losses,
    failed_in,
    forgotten_in,
    heeded_in,
    numbers_in,
)
from connectors.worker.settings import SETTINGS, WINDOWS, LoopSettings
from streamgp.common.environment import environment
from streamgp.common.fingerprint import fingerprint
from streamgp.interactive.consensus_log import examples_in
from streamgp.interactive.keyed import BUDGET, KeyedLoops
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.state.serialize import HEAD
from streamgp.interactive.state.snapshot import INCONSISTENT, Snapshot, SnapshotError

# --- Local files of one partition: a snapshot, and the evicted loops.


class LocalFiles:
    """Local files of one partition; none without a directory.

    Parameters
    ----------
    directory
        Their directory, None for no files.
    with_store
        Whether some loops may be evicted.
    note
        Receives, in one line, why existing files are not used.

    Attributes
    ----------
    store
        Store of the evicted loops; None without a directory, or if loops are never evicted.

    Raises
    ------
    StateError
        If they cannot be stored on disk.

    """

    def __init__(
        self,
        partition: int,
        directory: StateDirectory | None,
        *,
        with_store: bool,
        note: Callable[[str], None],
    ) -> None:
        self._partition = partition
        self._directory = directory
        self._with_store = with_store
        self._note = note
        self.store: SqliteStore | None = None
        self._open_store()

    @property
    def are_kept(self) -> bool:
        """Whether there is a directory for them."""
        return self._directory is not None

    def read(self) -> bytes | None:
        """Return the snapshot, None if there is none."""
        return None if self._directory is None else self._directory.read(self._name("snapshot"))

    def write(self, data: bytes) -> None:
        """Replace the snapshot.

        Raises
        ------
        StateError
            If it cannot be written to disk.

        """
        if self._directory is not None:
            self._directory.write(self._name("snapshot"), data)

    def drop_snapshot(self) -> None:
        """Delete the snapshot."""
        self._remove("snapshot")

    def start_over(self) -> None:
        """Delete everything, and start with an empty store."""
        self.drop()
        self._open_store()

    def close(self) -> None:
        """Close the files without deleting them."""
        if self.store is not None:
            self.store.close()

    def drop(self) -> None:
        """Close the files and delete them."""
        if self.store is not None:
            with suppress(StateError):
                self.store.close()
            self.store = None
        for what in ("snapshot", "loops", "loops-wal"):
            self._remove(what)

    def _open_store(self) -> None:
        if not self._with_store or self._directory is None:
            return
        path = self._directory.file(self._name("loops"))
        try:
            self.store = SqliteStore(path)
        except StateError as error:
            self._note(str(error))
            self.drop()  # perhaps damaged: a new one is as good
            self.store = SqliteStore(path)

    def _remove(self, what: str) -> None:
        if self._directory is not None:
            with suppress(OSError):
                self._directory.file(self._name(what)).unlink(missing_ok=True)

    def _name(self, what: str) -> str:
        return f"partition-{self._partition}.{what}"


def drop_files_of_others(directory: StateDirectory, ours: Collection[int]) -> None:
    """Delete the files of partitions that other workers process, and may have to forget keys of."""
    with suppress(OSError):
        for name in directory.names():
            number = name.removeprefix("partition-").partition(".")[0]
            if number != name and number.isdecimal() and int(number) not in ours:
                directory.file(name).unlink(missing_ok=True)


MAX_AGE_S = 43_200.0
"""The largest age of a usable snapshot. By default a topic drops tombstones after a day
(`delete.retention.ms`), so an older snapshot could bring back deleted data."""
_KIND = "a partition"


class Partition:
    """Loops of one partition, and everything else that a worker holds for it.

    Parameters
    ----------
    directory
        Directory of snapshots, None for no snapshots.
    now
        The time: older snapshots than `MAX_AGE_S` are not used.
    note
        Receives, in one line, why an existing snapshot is not used.
    group
        Group that must own the partition; None if it does not matter.

    Attributes
    ----------
    loops
        The loops.
    early
        The answers that wait for their event.
    windows
        The raw rows in open windows; None without windows.
    starts
        How far `state` and `consensus` are included: the offsets from which to continue reading.
    positions
        How far each input was read when the snapshot was taken, and since; empty without one.
    n_forgotten
        A number that changes, never to a previous value, whenever a key is forgotten or state is
        recovered: earlier snapshots cannot be merged.
    n_heeded
        The offset up to which others' records in the topic `consensus` have been processed.
    heeded_at
        The latest time of those records; infinite if it is not known.
    n_failed
        By entity, the number of nulls for which its learner failed: it still holds the labels.
    is_signed
        Whether the topics record the current configuration, group and numerical environment of the
        partition.
    environment
        The numerical environment in which the partition was last processed, {} if it is not
        recorded; None if no worker ever processed it.

    Raises
    ------
    StateError
        If evicted loops cannot be stored on disk.

    """

    # _restored_to  the end of `consensus` when the partition was assigned to this worker
    def __init__(
        self,
        number: int,
        settings: LoopSettings,
        directory: StateDirectory | None,
        *,
        now: float,
        note: Callable[[str], None],
        group: str | None = None,
    ) -> None:
        self.number = number
        self._settings = settings
        self._group = group
        self._note = note
        with_store = settings.keyed and settings.max_keys is not None
        self._files = LocalFiles(number, directory, with_store=with_store, note=note)
        self.environment: Mapping[str, Any] | None
        self.heeded_at: float
        self._reset()
        try:
            self._load(now)
        except SnapshotError as error:
            self.start_over(str(error))

    def bring_up(self, history: History) -> None:
        """Load what the topics hold beyond `starts`, at once; see `bring_up_by_key`."""
        for _ in self.bring_up_by_key(history):
            pass

    def bring_up_by_key(self, history: History) -> Generator[None, None, bool]:
        """Load what the topics hold beyond `starts`, key by key.

        Returns
        -------
        Whether that was possible. If not, the loops are empty again, and need the whole history.

        Raises
        ------
        ChangedConfigurationError
            If another configuration was used for the partition.
        OtherGroupError
            If another group has processed it.
        LostRecordsError
            If one of the topics has lost records.
        UnfitTopicsError
            If the topics hold records that no worker has written.

        """
        try:
            yield from self._bring_up(history)
        except HistoryError as error:
            raise UnfitTopicsError(f"partition {self.number}: {error}") from error
        except SnapshotError as error:
            if self.starts:
                self.start_over(str(error))
                return False
            raise self.unusable(error) from error
        return True

    def unusable(self, error: SnapshotError) -> UnfitTopicsError:
        """Return the error with which a worker stops if stored records cannot be restored.

        The snapshot is deleted, so that the next start reads the topics: perhaps only the snapshot
        is wrong.
        """
        self.drop_snapshot()
        return UnfitTopicsError(f"partition {self.number}: {error}; {IF_UNREADABLE}")

    def start_over(self, reason: str) -> None:
        """Discard what was loaded from local files, and report why."""
        self._note(reason)
        self._files.start_over()
        self._reset()

    def check_alone(self, record: Record) -> None:
        """Check that no other group wrote a line of the consensus log.

        Raises
        ------
        OtherGroupError
            If another group did.

        """
        if self._group is not None and record.offset >= self._restored_to:
            check_alone(record, self._group)

    def note_signed(self, signed: Mapping[str, Any]) -> None:
        """Record the group and the environment that the topics name for the partition."""
        self.environment = environment_in(signed)
        is_whole = GROUP in signed and SETTINGS in signed
        self.is_signed = is_whole and self.environment == environment()

    def advance(self, ends: Mapping[Place, int]) -> None:
        """Record the new ends of `state` and `consensus`."""
        for (topic, number), end in ends.items():
            if number == self.number and topic in COMPACTED:
                self.starts[topic] = end

    def prepare(self, is_enough: Callable[[], bool]) -> int:
        """Do part of the work of `save`; see `KeyedLoops.prepare_snapshot`."""
        return self.loops.prepare_snapshot(is_enough) if self._files.are_kept else 0

    def save(self, now: float) -> int:
        """Write a snapshot; return its size, 0 if there is no place for one.

        Raises
        ------
        StateError
            If it cannot be written to disk.

        """
        if not self._files.are_kept:
            return 0
        body = {
            "saved_at": now,
            "spans": self._settings.plain(),
            "starts": dict(self.starts),
            "positions": dict(self.positions),
            "forgotten": self.heeded(),
            "early": self.early.state(),
        }
        if self.windows is not None:
            body["windows"] = self.windows.state()
        data = Snapshot(
            kind=_KIND,
            fingerprint=self._fingerprint(),
            body=body,
            blobs=[self.loops.snapshot(with_environment=False)],
            environment=self.environment,
        ).to_bytes()
        self._files.write(data)
        return len(data)

    @property
    def has_lost_loops(self) -> bool:
        """Whether the loops that wait on the disk are gone, after an error of the disk."""
        store = self._files.store
        return store is not None and not store.is_open

    def drop_snapshot(self) -> None:
        """Delete the snapshot."""
        self._files.drop_snapshot()

    def close(self) -> None:
        """Close the files; the snapshot is kept."""
        self._files.close()

    def drop(self) -> None:
        """Close and delete the files: another worker takes over the partition."""
        self._files.drop()

    def heeded(self) -> dict[str, Any]:
        """Return the record `forgotten` of the topic `state`: what nulls have taken back."""
        value: dict[str, Any] = {"n": self.n_forgotten, "heeded": self.n_heeded}
        if self.heeded_at < inf:
            value["heeded_at"] = self.heeded_at
        return {**value, "failed": dict(self.n_failed)} if self.n_failed else value

    def is_heeded(self, record: Record) -> bool:
        """Return whether a null of another producer was processed before."""
        return record.offset < self.n_heeded and record.at <= self.heeded_at

    def note_heeded(self, record: Record) -> None:
        """Record that a null of another producer is processed."""
        self.n_heeded = record.offset + 1
        known = self.heeded_at if self.heeded_at < inf else record.at
        self.heeded_at = max(known, record.at)

    # --- internal

    def _reset(self) -> None:
        self.loops: KeyedLoops = self._settings.new(self._files.store)
        self.early = EarlyAnswers(
            self.number,
            keyed=self._settings.keyed,
            most_of_key=self._settings.people.max_early_answers,
        )
        prototype = self._settings.windows
        self.windows = None if prototype is None else prototype.clone()
        self.starts: dict[TopicName, int] = {}
        self.positions: dict[TopicName, int] = {}
        self.n_forgotten = self.n_heeded = self._restored_to = 0
        self.heeded_at = inf
        self.n_failed: Counter[str] = Counter()
        self.is_signed = False
        self.environment = None

    def _load(self, now: float) -> None:
        data = self._files.read()
        if data is None:
            return
        snapshot = Snapshot.from_bytes(data)
        snapshot.check(_KIND, self._fingerprint())
        try:
            body = snapshot.body
            age_s = now - float(body["saved_at"])
            if not 0.0 <= age_s <= MAX_AGE_S:
                raise SnapshotError(f"snapshot is {age_s:.0f} s old, expected 0 to {MAX_AGE_S:.0f}")
            was, now_set = dict(body["spans"]), self._settings.plain()
            if was != now_set:
                names = [name for name in now_set | was if was.get(name) != now_set.get(name)]
                raise SnapshotError(f"settings were changed since: {', '.join(names)}")
            self.loops = self._settings.restored(snapshot.blobs[0], self._files.store)
            self.early.take_over(body["early"])
            if self.windows is not None:
                self.windows.take_over(body["windows"])
            self.starts = {topic: int(body["starts"][topic]) for topic in body["starts"]}
            self.positions = {topic: int(at) for topic, at in body["positions"].items()}
            self._load_forgotten(body["forgotten"])
        except SnapshotError:
            raise
        except (*INCONSISTENT, StateError) as error:
            raise SnapshotError(f"snapshot cannot be restored: {error}") from error
        self.environment = {} if snapshot.environment is None else snapshot.environment
        self.is_signed = self.environment == environment()

    def _bring_up(self, history: History) -> Iterator[None]:
        losses = Losses(self.number, history)
        if (cut := losses.error()) is not None:  # independent of any learner
            raise cut
        configuration = history.configuration
        if configuration is not None:
            ours = self._settings.configuration
            check_signed(self.number, configuration, ours, self._group)
            self.note_signed(configuration)
        self._take_over_forgotten(forgotten_in(history))
        if self._settings.total_budget is not None:
            budget = history.part("", BUDGET)
            if budget is not None:
                self.loops.take_over_budget(budget)
        for entity in history.entities():
            parts, lines = history.parts(entity), history.lines(entity)
            # With a snapshot, only later records are there to check.
            if not self.starts and losses.look(entity, parts, lines) is not None:
                continue
            if parts or lines:
                key = entity if self._settings.keyed else None
                log = self._with_deleted(history, entity, parts, lines)
                self.loops.take_over(key, parts, log)
            yield
        if not self.starts and (lost := losses.error()) is not None:
            raise lost
        self.early.take_over(history.early())
        if self.windows is not None:
            rows = history.windows(keyed=self._settings.keyed)
            self.windows.take_over((*window_part(name), value) for _, name, value in rows)
        self._restored_to = max(history.ends.get("consensus", 0), self.starts.get("consensus", 0))
        # The log may have lost its end since, and what comes next has the offsets of what was lost.
        # What came since then but before this start is known by its time.
        self.n_heeded = min(self.n_heeded, self._restored_to)

    def _with_deleted(
        self,
        history: History,
        entity: str,
        parts: Mapping[str, Any],
        lines: Sequence[LabelledExample],
    ) -> Sequence[LabelledExample]:
        """Return lines with those deleted by nulls that no worker has read, if its state has them.

        So what such nulls lead to does not depend on whether a worker ran when they were written.
        """
        deleted = history.deleted_lines(entity, self.n_heeded, self.heeded_at)
        if not deleted:
            return lines
        every = [*lines, *deleted]
        # A command that has taught the log again, such as `streamgp rebuild`, has left them out.
        counted = numbers_in(parts.get(HEAD))
        is_left_out = counted is not None and len(examples_in(every)) > counted[1]
        return lines if is_left_out else every

    def _take_over_forgotten(self, forgotten: Mapping[str, Any]) -> None:
        """Load the record `forgotten`; refuse a snapshot that was taken before it changed."""
        n_forgotten = int(forgotten.get("n", self.n_forgotten))
        if self.starts and n_forgotten != self.n_forgotten:
            # Neither a key that was forgotten (and may have come back) nor recovered state can be
            # merged.
            raise SnapshotError(
                "snapshot holds a key that was forgotten since, or state was rebuilt since"
            )
        if forgotten:
            self._load_forgotten(forgotten)

    def _load_forgotten(self, forgotten: Mapping[str, Any]) -> None:
        self.n_forgotten = int(forgotten.get("n", self.n_forgotten))
        self.n_heeded, self.heeded_at = heeded_in(forgotten)
        self.n_failed = Counter(failed_in(forgotten))

    def _fingerprint(self) -> str:
        """Return what a snapshot is compared by: with other windows, the topics are to refuse."""
        found = self._settings.configuration
        own = str(found["fingerprint"])
        return own if WINDOWS not in found else fingerprint(own, found[WINDOWS])
