"""Topics in a directory, for trying out: one worker, one partition, each topic a file of lines.

Events and answers may be appended by anybody, also by hand; what takes an example back goes to
`taken-back.jsonl` and becomes part of `consensus.jsonl` once the worker has heeded it. All other
files are the worker's. How lines look is told in `record_lines`. A line that somebody has written
by hand is as old as its file.

"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from connectors.files.layout import changed, check_end, count_lines, in_words
from connectors.files.link import FileLink
from connectors.files.locks import hold, is_held
from connectors.files.positions import (
    INPUT_LOGS,
    LOGS,
    OUTPUT_LOGS,
    POSITION,
    Position,
    beginning,
    read_position,
    write_position,
)
from connectors.files.streams import FileReader, FileWriter
from connectors.topics import (
    ALL_TOPICS,
    Backlog,
    LinkError,
    Obstacle,
    Place,
    RefusedError,
    TopicName,
)
from streamgp.common.private_files import make_directory, private


class FileTopics:
    """Topics in a directory.

    Parameters
    ----------
    directory
        Where they are.
    clock
        Stamps records, POSIX seconds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     topics = FileTopics(directory)
    ...     _ = topics.create()
    ...     with open(Path(directory, "events.jsonl"), "a") as file:
    ...         _ = file.write('{"x":{},"key":"ann"}\\n')
    ...     link = topics.link(group="streamgp", instance="here", max_records=500)
    ...     print([record.key for record in link.poll(0.0)], topics.lags("streamgp"))
    ...     link.close()
    [b'ann'] {('answers', 0): 0, ('consensus', 0): 0, ('events', 0): 1}

    """

    def __init__(self, directory: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.directory = Path(directory)
        self._clock = clock
        self._links: list[FileLink] = []

    def link(self, *, group: str, instance: str, max_records: int) -> FileLink:  # noqa: ARG002
        """Become the only worker.

        Raises
        ------
        LinkError
            If there is another one, or the directory is not as a worker has left it.

        """
        link = FileLink(self.directory, group=group, max_records=max_records, clock=self._clock)
        self._links.append(link)
        return link

    def reader(self, topics: Iterable[TopicName], *, from_end: bool = False) -> FileReader:
        """Read topics, of the worker's only what is committed."""
        return FileReader(self.directory, topics, from_end=from_end)

    def writer(self, program: str) -> FileWriter:  # noqa: ARG002
        """Write events, answers and what takes examples back."""
        return FileWriter(self.directory, clock=self._clock)

    def create(self) -> list[str]:
        """Make the directory and the files that are missing; return what was made.

        Raises
        ------
        LinkError
            If they cannot be made, or other results are there.

        """
        made = []
        try:
            if not self.directory.is_dir():
                make_directory(self.directory)
                made.append(f"made {self.directory}")
            if not (self.directory / POSITION).exists():
                made += self._begin()
            for name in _names():
                path = self.directory / name
                # One that held something is not made again: that would hide that it is lost.
                if not path.exists() and name not in self._named_by_position():
                    os.close(private(str(path), os.O_WRONLY | os.O_CREAT))
                    made.append(f"made {path}")
        except OSError as error:
            raise in_words(f"cannot make topics in {self.directory}", error) from error
        return made

    def warnings(self) -> list[str]:
        """Return an empty list."""
        return []

    def problems(self) -> list[str]:
        """Return what is wrong with the directory, one line each."""
        if not self.directory.is_dir():
            there = "not a directory" if self.directory.exists() else "not there"
            return [f"{self.directory} is {there}; make the topics with --create-topics"]
        if missing := [name for name in _names() if not (self.directory / name).exists()]:
            return [self._without(name) for name in missing]
        found = [
            f"{path} cannot be written; make it accessible, or name another place"
            for path in (self.directory, *(self.directory / name for name in _names()))
            if not os.access(path, os.R_OK | os.W_OK)
        ]
        try:
            position = read_position(self.directory)
        except LinkError as error:
            return [*found, str(error)]
        for name, end in _ends(position):
            try:
                check_end(self.directory / name, end)
            except LinkError as error:
                found.append(str(error))
        return list(dict.fromkeys(found))

    def identity(self) -> str:
        """Return what was drawn when the topics were made."""
        return read_position(self.directory).identity

    def names(self) -> Mapping[TopicName, str]:
        """Return the names that the topics have everywhere; `LOGS` has those of their files."""
        return {name: name for name in ALL_TOPICS}

    def n_partitions(self) -> int:
        """Return 1."""
        return 1

    def lags(self, group: str) -> dict[tuple[TopicName, int], int]:
        """Return about how many records of each input a group has not worked off."""
        return {place: each.n_waiting for place, each in self.backlog(group).items()}

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input; positions are in bytes."""
        offsets = read_position(self.directory).of(group)
        return {
            (topic, 0): Backlog(
                position=offsets[topic],
                n_waiting=count_lines(self.directory / name, offsets[topic]),
            )
            for topic, name in INPUT_LOGS.items()
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
        """Close the links that are open."""
        for link in self._links:
            link.close()
        self._links.clear()

    def _without(self, name: str) -> str:
        """Say that a file is not there; one that held something cannot be made anew."""
        path = self.directory / name
        if name == POSITION:
            outputs = (self.directory / output for output in OUTPUT_LOGS.values())
            is_lost = any(output.exists() and output.stat().st_size for output in outputs)
        else:
            is_lost = name in self._named_by_position()
        if is_lost:
            return str(changed(path, "it is not there"))
        return f"{path} is not there; make the topics with --create-topics"

    def _named_by_position(self) -> set[str]:
        """Return the files of which something counts."""
        try:
            position = read_position(self.directory)
        except LinkError:
            return set()
        return {name for name, end in _ends(position) if end}

    def _begin(self) -> list[str]:
        lock = hold(self.directory)
        try:
            path = self.directory / POSITION
            if path.exists():
                return []
            for name in OUTPUT_LOGS.values():
                other = self.directory / name
                if other.exists() and other.stat().st_size:
                    raise RefusedError(
                        f"{other} holds other results, expected none; name another directory"
                    )
            write_position(self.directory, beginning())
            return [f"made {path}"]
        finally:
            os.close(lock)


def _ends(position: Position) -> list[tuple[str, int]]:
    """Return the files with the ends of what counts in them, as workers and groups have left it."""
    ends = [(OUTPUT_LOGS[topic], end) for topic, end in position.ends.items()]
    for group in position.groups:
        ends += [(INPUT_LOGS[topic], end) for topic, end in position.of(group).items()]
    return ends


def _names() -> list[str]:
    return list(dict.fromkeys([*INPUT_LOGS.values(), *LOGS.values(), POSITION]))
