"""What lies on the local disk of one partition: a snapshot, and the loops not held ready."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from connectors.storage.shelf import SqliteShelf
from connectors.storage.snapshots import StateDirectory, StateError


class LocalFiles:
    """The files of one partition; without a directory there are none.

    Parameters
    ----------
    partition
        Its number.
    directory
        Where they lie, None for nowhere.
    with_shelf
        Whether some loops are not held ready.
    note
        Told in one line why what is there is not used.

    Attributes
    ----------
    shelf
        Where these loops wait; None if there is no directory, or none waits.

    Raises
    ------
    StateError
        If the disk cannot keep them.

    """

    def __init__(
        self,
        partition: int,
        directory: StateDirectory | None,
        *,
        with_shelf: bool,
        note: Callable[[str], None],
    ) -> None:
        self._partition = partition
        self._directory = directory
        self._with_shelf = with_shelf
        self._note = note
        self.shelf: SqliteShelf | None = None
        self._open_shelf()

    def read(self) -> bytes | None:
        """Return the snapshot, None if there is none."""
        return None if self._directory is None else self._directory.read(self._name("snapshot"))

    def write(self, data: bytes) -> None:
        """Replace the snapshot.

        Raises
        ------
        StateError
            If the disk does not take it.

        """
        if self._directory is not None:
            self._directory.write(self._name("snapshot"), data)

    def drop_snapshot(self) -> None:
        """Leave no snapshot."""
        self._remove("snapshot")

    def begin_anew(self) -> None:
        """Leave nothing, and begin with an empty shelf."""
        self.drop()
        self._open_shelf()

    def close(self) -> None:
        """Let go; everything stays."""
        if self.shelf is not None:
            self.shelf.close()

    def drop(self) -> None:
        """Let go, and leave nothing."""
        if self.shelf is not None:
            with suppress(StateError):
                self.shelf.close()
            self.shelf = None
        for what in ("snapshot", "loops", "loops-wal"):
            self._remove(what)

    def _open_shelf(self) -> None:
        if not self._with_shelf or self._directory is None:
            return
        path = self._directory.file(self._name("loops"))
        try:
            self.shelf = SqliteShelf(path)
        except StateError as error:
            self._note(str(error))
            self.drop()  # damaged, perhaps: a new one is as good
            self.shelf = SqliteShelf(path)

    def _remove(self, what: str) -> None:
        if self._directory is not None:
            with suppress(OSError):
                self._directory.file(self._name(what)).unlink(missing_ok=True)

    def _name(self, what: str) -> str:
        return f"partition-{self._partition}.{what}"
