"""The loops of one partition: brought back from topics and local snapshot, saved, given up.

The topics `state` and `consensus` hold everything. What lies on the local disk only saves reading
them from the start: a snapshot that does not fit, for whatever reason, is not used.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from connectors.records import TopicName
from connectors.storage.shelf import SqliteShelf
from connectors.storage.snapshots import StateDirectory, StateError
from connectors.wire.statelog import History, HistoryError
from streamgp.interactive.keyed import KeyedLoops
from streamgp.interactive.messages import Answer, Event, LabelledExample, Message
from streamgp.interactive.one_loop import OneLoop
from streamgp.interactive.shelf import Shelf
from streamgp.interactive.snapshot import INCONSISTENT, Snapshot, SnapshotError

MAX_AGE_S = 43_200.0
"""How old a snapshot may be. A topic drops the traces of a deletion after a day unless it is told
otherwise (`delete.retention.ms`), and an older snapshot would bring back what was deleted."""
_KIND = "a partition"


class UnfitTopicsError(ValueError):
    """The topics do not go with the worker; the text says why, and what to do."""


class ChangedConfigurationError(UnfitTopicsError):
    """The topics hold what a worker of another configuration has learned."""


class Loops(Protocol):
    """The loops of a partition, one for each key or one for all."""

    def on_event(self, event: Event, now: float) -> list[Message]: ...
    def on_answer(self, answer: Answer, now: float) -> list[Message]: ...
    def on_cancel(
        self, request_id: str, now: float, *, key: str | None = None, why: str = ...
    ) -> list[Message]: ...
    def on_time(self, now: float) -> list[Message]: ...
    def withdraw(
        self, key: str | None, event_id: str, now: float, *, revision: int | None = None
    ) -> list[Message]: ...
    def forget(self, key: str | None) -> bool: ...
    def open_requests(self, key: str | None) -> list[str]: ...
    def next_deadline(self) -> float | None: ...
    def changes(self) -> dict[str | None, dict[str, Any]]: ...
    def take_over(
        self, key: str | None, parts: Mapping[str, Any], log: list[LabelledExample]
    ) -> None: ...
    def snapshot(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """What the loops of every partition are made of.

    Parameters
    ----------
    model
        A skeptical classifier; cloned, itself never taught.
    keyed
        One loop for each key, or one for all.
    expires_after_s, answer_horizon_s, max_keys
        As in `streamgp.interactive.KeyedLoops`.

    """

    model: Any
    keyed: bool = True
    expires_after_s: float | None = None
    answer_horizon_s: float | None = None
    max_keys: int | None = None

    @property
    def spans(self) -> dict[str, float | None]:
        """What a snapshot must agree with, beside the model."""
        return {
            "expires_after_s": self.expires_after_s,
            "answer_horizon_s": self.answer_horizon_s,
        }

    @property
    def configuration(self) -> dict[str, Any]:
        """What the topics must agree with: the record `configuration` of the topic `state`."""
        return {"fingerprint": self.model.fingerprint(), "keyed": self.keyed}

    def new(self, shelf: Shelf | None) -> Loops:
        """Return loops that know nothing."""
        if not self.keyed:
            return OneLoop(self.model.clone(), **self.spans)
        return KeyedLoops(
            self.model, max_keys=self.max_keys, shelf=shelf, keep_changes=True, **self.spans
        )

    def restored(self, data: bytes, shelf: Shelf | None) -> Loops:
        """Return the loops of a snapshot."""
        if not self.keyed:
            return OneLoop.restore(data, self.model.clone())
        return KeyedLoops.restore(
            data, self.model, max_keys=self.max_keys, shelf=shelf, keep_changes=True
        )


class Partition:
    """What a worker holds of one partition.

    Parameters
    ----------
    number
        The partition.
    settings
        What its loops are made of.
    directory
        Where snapshots are kept, None for nowhere.
    now
        The time: snapshots that are too old are not used.
    note
        Told in one line why the snapshot that is there is not used.

    Attributes
    ----------
    loops
        The loops.
    starts
        How far the loops hold what `state` and `consensus` say: the offsets to read on from.
    n_forgotten
        How many keys were forgotten in this partition since its beginning.
    n_heeded
        The offset up to which nulls in the topic `consensus` were heeded.
    is_new
        Whether the topics do not say yet by which configuration the partition is worked on.

    Raises
    ------
    StateError
        If the disk cannot keep the loops that are not held ready.

    """

    def __init__(
        self,
        number: int,
        settings: LoopSettings,
        directory: StateDirectory | None,
        *,
        now: float,
        note: Callable[[str], None],
    ) -> None:
        self.number = number
        self.starts: dict[TopicName, int] = {}
        self.n_forgotten = 0
        self.n_heeded = 0
        self.is_new = True
        self._settings = settings
        self._directory = directory
        self._note = note
        self._shelf: SqliteShelf | None = None
        self._open_shelf()
        try:
            self.loops = self._from_disk(now)
        except SnapshotError as error:
            note(str(error))
            self._begin_anew()

    def bring_up(self, history: History) -> bool:
        """Take over what the topics say beyond `starts`.

        Returns
        -------
        Whether that was possible. If not, the loops have begun anew, and the whole history is
        wanted.

        Raises
        ------
        ChangedConfigurationError
            If another configuration has worked on the partition.
        UnfitTopicsError
            If the topics hold what no worker has written.

        """
        try:
            return self._bring_up(history)
        except (HistoryError, SnapshotError) as error:
            if isinstance(error, SnapshotError) and self.starts:
                self._note(str(error))
                self._begin_anew()
                return False
            raise UnfitTopicsError(f"partition {self.number}: {error}") from error

    def advance(self, ends: Mapping[tuple[TopicName, int], int]) -> None:
        """Take note how far the topics reach that hold the loops."""
        for (topic, number), end in ends.items():
            if number == self.number and topic in ("state", "consensus"):
                self.starts[topic] = end

    def save(self, now: float) -> int:
        """Write a snapshot; return its size.

        Raises
        ------
        StateError
            If the disk does not take it.

        """
        if self._directory is None:
            return 0
        body = {
            "saved_at": now,
            "spans": self._settings.spans,
            "starts": dict(self.starts),
            "n_forgotten": self.n_forgotten,
            "n_heeded": self.n_heeded,
        }
        data = Snapshot(
            kind=_KIND,
            fingerprint=self._fingerprint(),
            body=body,
            blobs=[self.loops.snapshot()],
        ).to_bytes()
        self._directory.write(self._name("snapshot"), data)
        return len(data)

    def drop_snapshot(self) -> None:
        """Leave no snapshot on the disk."""
        if self._directory is not None:
            with suppress(OSError):
                self._directory.file(self._name("snapshot")).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go; the snapshot stays."""
        if self._shelf is not None:
            self._shelf.close()

    def drop(self) -> None:
        """Let go and leave nothing on the disk: others go on with the partition."""
        if self._shelf is not None:
            with suppress(StateError):
                self._shelf.close()
            self._shelf = None
        if self._directory is not None:
            for what in ("snapshot", "loops", "loops-wal"):
                with suppress(OSError):
                    self._directory.file(self._name(what)).unlink(missing_ok=True)

    # --- inside

    def _from_disk(self, now: float) -> Loops:
        data = None if self._directory is None else self._directory.read(self._name("snapshot"))
        if data is None:
            return self._settings.new(self._shelf)
        snapshot = Snapshot.from_bytes(data)
        snapshot.check(_KIND, self._fingerprint())
        try:
            body = snapshot.body
            age_s = now - float(body["saved_at"])
            if not 0.0 <= age_s <= MAX_AGE_S:
                raise SnapshotError(f"snapshot is {age_s:.0f} s old, expected 0 to {MAX_AGE_S:.0f}")
            if body["spans"] != self._settings.spans:
                raise SnapshotError(f"snapshot was taken with other times: {body['spans']}")
            loops = self._settings.restored(snapshot.blobs[0], self._shelf)
            self.starts = {topic: int(body["starts"][topic]) for topic in body["starts"]}
            self.n_forgotten = int(body["n_forgotten"])
            self.n_heeded = int(body["n_heeded"])
        except (*INCONSISTENT, StateError) as error:
            raise SnapshotError(str(error)) from error
        self.is_new = False
        return loops

    def _bring_up(self, history: History) -> bool:
        configuration = history.configuration
        if configuration is not None:
            self._check(configuration)
            self.is_new = False
        forgotten = history.parts("").get("forgotten") or {}
        n_forgotten = int(forgotten.get("n", self.n_forgotten))
        if self.starts and n_forgotten != self.n_forgotten:
            # A key that was forgotten, and perhaps came again, cannot be merged.
            raise SnapshotError("snapshot holds a key that was forgotten since")
        self.n_forgotten = n_forgotten
        self.n_heeded = int(forgotten.get("heeded", self.n_heeded))
        for entity in history.entities():
            parts = {
                name: value
                for name, value in history.parts(entity).items()
                if entity or name not in ("configuration", "forgotten")
            }
            lines = history.lines(entity)
            if parts or lines:
                self.loops.take_over(entity if self._settings.keyed else None, parts, lines)
        return True

    def _begin_anew(self) -> None:
        self.drop()
        self._open_shelf()
        self.starts = {}
        self.n_forgotten = self.n_heeded = 0
        self.is_new = True
        self.loops = self._settings.new(self._shelf)

    def _open_shelf(self) -> None:
        wanted = self._settings.keyed and self._settings.max_keys is not None
        if not wanted or self._directory is None:
            return
        path = self._directory.file(self._name("loops"))
        try:
            self._shelf = SqliteShelf(path)
        except StateError as error:
            self._note(str(error))
            self.drop()  # damaged, perhaps: a new one is as good
            self._shelf = SqliteShelf(path)

    def _check(self, configuration: Mapping[str, Any]) -> None:
        ours = self._settings.configuration
        differing = [name for name in ours if configuration.get(name) != ours[name]]
        if differing:
            theirs = ", ".join(f"{name} {configuration.get(name)!s:.16}" for name in differing)
            here = ", ".join(f"{name} {ours[name]}" for name in differing)
            raise ChangedConfigurationError(
                f"partition {self.number} was worked on with another configuration ({theirs}; here "
                f"{here}); go back to it, or "
                + (
                    "use other topics"
                    if "keyed" in differing
                    else "take the new one over with `streamgp rebuild`"
                )
            )

    def _fingerprint(self) -> str:
        return str(self._settings.configuration["fingerprint"])

    def _name(self, what: str) -> str:
        return f"partition-{self.number}.{what}"
