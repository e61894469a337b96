"""A worker's hold on the topics in this process, and the group that it shares them with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import monotonic

from connectors.memory.logs import Logs
from connectors.records import (
    COMPACTED,
    WORKER_INPUTS,
    Begun,
    FencedError,
    LinkError,
    Obstacle,
    Outgoing,
    Place,
    Progress,
    Record,
    Stalled,
    TopicName,
)

_TOLD_EVERY = 10_000


class Group:
    """Workers that share the partitions.

    Attributes
    ----------
    generation
        Number of the last distribution of the partitions.
    positions
        Where the group reads on in each input.

    """

    # _members  by instance name
    # _owners   of each partition the member that has it, and since which generation

    def __init__(self, n_partitions: int) -> None:
        self.generation = 0
        self.positions = {
            (topic, number): 0 for topic in WORKER_INPUTS for number in range(n_partitions)
        }
        self._n_partitions = n_partitions
        self._members: dict[str, MemoryLink] = {}
        self._owners: dict[int, tuple[MemoryLink, int]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def join(self, instance: str, link: MemoryLink) -> None:
        """Take a member in, in place of an older one of the same name."""
        self._members[instance] = link
        self._distribute()

    def leave(self, instance: str, link: MemoryLink) -> None:
        """Let a member go, unless it was replaced."""
        if self._members.get(instance) is link:
            del self._members[instance]
            self._distribute()

    def has(self, instance: str, link: MemoryLink) -> bool:
        """Return whether a member has not been replaced."""
        return self._members.get(instance) is link

    def partitions(self, link: MemoryLink) -> frozenset[int]:
        """Return the partitions of a member."""
        return frozenset(n for n, (owner, _) in self._owners.items() if owner is link)

    def since(self, number: int, link: MemoryLink) -> int | None:
        """Return since which generation a member has had a partition, None if it has not."""
        owner, generation = self._owners[number]
        return generation if owner is link else None

    def _distribute(self) -> None:
        """Give to each member, by name, a range of partitions, the first ones one more."""
        self.generation += 1
        members = [self._members[instance] for instance in sorted(self._members)]
        if not members:
            return
        least, n_more = divmod(self._n_partitions, len(members))
        numbers = iter(range(self._n_partitions))
        for i, member in enumerate(members):
            for _ in range(least + (i < n_more)):
                number = next(numbers)
                if number not in self._owners or self._owners[number][0] is not member:
                    self._owners[number] = (member, self.generation)


class MemoryLink:
    """One member of a group.

    Parameters
    ----------
    logs, group
        What it works on, and with whom.
    instance
        Its name.
    max_records
        How many records a poll returns at most.

    """

    # _polled  of the partitions as of the last poll, where each input is read on

    def __init__(self, logs: Logs, group: Group, *, instance: str, max_records: int) -> None:
        self._logs = logs
        self._group = group
        self._instance = instance
        self._max_records = max_records
        self._is_closed = False
        self._generation = -1
        self._assigned: frozenset[int] = frozenset()
        self._polled: dict[tuple[TopicName, int], int] = {}
        self._n_polls = 0
        with logs.news:
            group.join(instance, self)
            logs.news.notify_all()

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that are this worker's, as of the last poll."""
        return self._assigned

    @property
    def generation(self) -> int:
        """Number of the last distribution of partitions, as of the last poll."""
        return self._generation

    def poll(self, timeout_s: float) -> list[Record]:
        """Return the next inputs, answers before events; nothing if partitions come or go."""
        until = monotonic() + timeout_s
        with self._logs.news:
            while True:
                self._check()
                is_news = self._follow()
                records = self._next()
                left = until - monotonic()
                if records or is_news or left <= 0.0:
                    return records
                self._logs.news.wait(left)

    def history(
        self, starts: Mapping[int, Mapping[TopicName, int]], progress: Progress | None = None
    ) -> Iterator[Record]:
        """Return what was written to `state` and `consensus` of some partitions."""
        with self._logs.news:
            self._check()
            found = [
                record
                for number, offsets in starts.items()
                for topic in sorted(COMPACTED, reverse=True)
                for record in self._logs.after(topic, number, offsets.get(topic, 0))
            ]
        return _told(found, progress)

    def commit(self, outgoing: Sequence[Outgoing]) -> dict[tuple[TopicName, int], int]:
        """Write records, and take note that everything polled so far is done with."""
        with self._logs.news:
            self._check()
            for number in sorted(self._assigned):
                if not self._had(number):
                    raise LinkError(f"partition {number} was given to another worker; start again")
            ends = self._logs.append(outgoing)
            self._group.positions.update(self._polled)
            return ends

    def lag(self) -> dict[tuple[TopicName, int], int | None]:
        """Return how many records wait in each assigned partition of the inputs."""
        with self._logs.news:
            self._check()
            return {
                (topic, number): self._logs.n_after(topic, number, offset)
                for (topic, number), offset in self._polled.items()
            }

    def begun(self) -> list[Begun]:
        """Return an empty list: a group begins with the first record, and nothing is deleted."""
        return []

    def stalled(self) -> list[Stalled]:
        """Return an empty list: what is there can be read."""
        return []

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def close(self, *, leave: bool = False) -> None:  # noqa: ARG002
        """Leave; what was polled and not committed is delivered again, here or elsewhere."""
        with self._logs.news:
            self._is_closed = True
            self._group.leave(self._instance, self)
            self._logs.news.notify_all()

    def _check(self) -> None:
        if self._is_closed:
            raise ValueError("link is closed; open another one")
        if self._logs.is_closed:
            raise LinkError("topics are closed")
        if not self._group.has(self._instance, self):
            raise FencedError(
                f"another worker has joined as {self._instance!r}; give each a name of its own"
            )

    def _follow(self) -> bool:
        """Take over what was distributed since the last poll; return whether anything was.

        What was polled before and not committed comes again.
        """
        group = self._group
        if group.generation == self._generation:
            return False
        self._generation = group.generation
        self._assigned = group.partitions(self)
        self._polled = {
            place: position
            for place, position in group.positions.items()
            if place[1] in self._assigned
        }
        return True

    def _had(self, number: int) -> bool:
        """Return whether a partition has been this worker's without a break since the last poll."""
        since = self._group.since(number, self)
        return since is not None and since <= self._generation

    def _next(self) -> list[Record]:
        """Return the next records of all partitions, each time beginning with another one."""
        self._n_polls += 1
        numbers = sorted(self._assigned)
        first = self._n_polls % max(1, len(numbers))
        records: list[Record] = []
        for topic in WORKER_INPUTS:
            for number in numbers[first:] + numbers[:first]:
                most = self._max_records - len(records)
                found = self._logs.after(topic, number, self._polled[topic, number], most)
                if found:
                    self._polled[topic, number] = found[-1].offset + 1
                    records += found
        return records


def _told(records: list[Record], progress: Progress | None) -> Iterator[Record]:
    for n_done, record in enumerate(records, start=1):
        yield record
        if progress is not None and n_done % _TOLD_EVERY == 0:
            progress(n_done, len(records))
