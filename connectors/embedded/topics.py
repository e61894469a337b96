"""Topics in a SQLite database in a directory: one worker, one partition, no server.

Any number of processes write events and answers, and read, while the worker works. What takes an
example back waits in a table of its own, and becomes part of `consensus` once the worker has heeded
it. All other topics are the worker's.

"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from connectors.embedded.client import EmbeddedReader, EmbeddedWorkerClient, EmbeddedWriter
from connectors.embedded.database import INPUTS, Database, build
from connectors.embedded.directory import (
    DATABASE,
    OLD_INPUTS,
    database_in,
    flaw_of,
    hold,
    in_words,
    is_held,
    old_files,
)
from connectors.topics import (
    ALL_TOPICS,
    Backlog,
    BrokerError,
    Obstacle,
    Place,
    RefusedError,
    TopicName,
)
from streamgp.common.private_files import make_directory


class EmbeddedTopics:
    """Topics in a database.

    Parameters
    ----------
    directory
        Where it is.
    clock
        Stamps records, POSIX seconds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from connectors.topics import Outgoing
    >>> with TemporaryDirectory() as directory:
    ...     topics = EmbeddedTopics(directory)
    ...     _ = topics.create()
    ...     writer = topics.writer("sender")
    ...     writer.send(Outgoing(topic="events", key=b"ann", value=b'{"x":{},"key":"ann"}'))
    ...     writer.close()
    ...     client = topics.link(group="streamgp", instance="here", max_records=500)
    ...     print([record.key for record in client.poll(0.0)], topics.lags("streamgp"))
    ...     client.close()
    [b'ann'] {('answers', 0): 0, ('consensus', 0): 0, ('events', 0): 1}

    """

    def __init__(self, directory: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.directory = Path(directory)
        self._clock = clock
        self._clients: list[EmbeddedWorkerClient] = []

    def link(
        self,
        *,
        group: str,
        instance: str,  # noqa: ARG002
        max_records: int,
    ) -> EmbeddedWorkerClient:
        """Become the only worker.

        Raises
        ------
        BrokerError
            If there is another one, or the database is not as a worker has left it.

        """
        client = EmbeddedWorkerClient(
            self.directory, group=group, max_records=max_records, clock=self._clock
        )
        self._clients.append(client)
        return client

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> EmbeddedReader:
        """Read topics, only what is committed."""
        return EmbeddedReader(self.directory, topics, from_end=from_end, group=group)

    def writer(self, program: str) -> EmbeddedWriter:  # noqa: ARG002
        """Write events, answers and what takes examples back."""
        return EmbeddedWriter(self.directory, clock=self._clock)

    def create(self) -> list[str]:
        """Make the directory and the database if they are missing; return what was made.

        Raises
        ------
        BrokerError
            If they cannot be made, or other results are there.

        """
        made = []
        try:
            if not self.directory.is_dir():
                make_directory(self.directory)
                made.append(f"made {self.directory}")
        except OSError as error:
            raise in_words(f"cannot make topics in {self.directory}", error) from error
        if flaw := flaw_of(self.directory):
            raise RefusedError(flaw)
        path = self.directory / DATABASE
        if not path.exists():
            lock = hold(self.directory)
            try:
                if not path.exists():  # another process may have made it just now
                    build(path, lambda database: database.set_identity(secrets.token_hex(8)))
                    made.append(f"made {path}")
            finally:
                os.close(lock)
        return made

    def problems(self) -> list[str]:
        """Return what is wrong with the directory, one line each."""
        if not self.directory.is_dir():
            there = "not a directory" if self.directory.exists() else "not there"
            return [f"{self.directory} is {there}; make the topics with --create-topics"]
        try:
            path = database_in(self.directory)
            found = [
                f"{place} cannot be written; make it accessible, or name another place"
                for place in (self.directory, path)
                if not os.access(place, os.R_OK | os.W_OK)
            ]
            if found:
                return found
            with self._open() as database:
                database.check_lists()
        except BrokerError as error:
            return [str(error)]
        return []

    def warnings(self) -> list[str]:
        """Return which files of messages lie there unread, one line each."""
        return [
            f"{self.directory / name} is not read: topics are in {DATABASE}; send what it holds "
            "with `streamgp send CONFIG.toml -`"
            for name in old_files(self.directory)
            if name in OLD_INPUTS
        ]

    def identity(self) -> str:
        """Return what was drawn when the topics were made."""
        with self._open() as database:
            return database.identity()

    def names(self) -> Mapping[TopicName, str]:
        """Return the names that the topics have everywhere."""
        return {name: name for name in ALL_TOPICS}

    def n_partitions(self) -> int:
        """Return 1."""
        return 1

    def lags(self, group: str) -> dict[tuple[TopicName, int], int]:
        """Return how many records of each input a group has not worked off."""
        return {place: each.n_waiting for place, each in self.backlog(group).items()}

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input."""
        with self._open() as database, database.reading():
            return {
                (topic, 0): Backlog(
                    position=offset, n_waiting=database.count(INPUTS[topic], offset)
                )
                for topic, offset in database.positions(group).items()
            }

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        """Return all of them: what waits is records."""
        return set(positions)

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:  # noqa: ARG002
        """Return nothing: what is there can be read."""
        return {}

    def n_members(self, group: str) -> int:  # noqa: ARG002
        """Return 1 if a worker has the directory, of whatever group, else 0."""
        return int(is_held(self.directory))

    def close(self) -> None:
        """Close the worker clients that are open."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    @contextmanager
    def _open(self) -> Iterator[Database]:
        database = Database(database_in(self.directory))
        try:
            yield database
        finally:
            database.close()
