"""Topics on Apache Kafka: exactly once, for up to as many workers as there are partitions.

This is the entry point; worker clients, readers and writers have modules of their own. The module
imports Kafka's client library, so import it only if the configuration names Kafka.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from connectors.kafka.admin import Administration
from connectors.kafka.checkpoint import checkpoint
from connectors.kafka.client import Connection
from connectors.kafka.client_import import TopicPartition
from connectors.kafka.reader_writer import KafkaReader, KafkaWriter, partitions_with_records
from connectors.kafka.settings import Security, Timeouts, check_name
from connectors.kafka.worker_client import KafkaWorkerClient
from connectors.topics import (
    ALL_TOPICS,
    WORKER_INPUTS,
    Backlog,
    Checkpoint,
    Obstacle,
    Place,
    TopicName,
)
from streamgp.common.validation import check_number, check_whole

__all__ = ["KafkaTopics", "Security", "Timeouts"]


class KafkaTopics:
    """The topics of one deployment on a Kafka cluster.

    No connection is opened before it is needed.

    Parameters
    ----------
    servers
        Some servers of the cluster, as `host:port,host:port`; the default port is 9092.
    names
        Names of the topics on the cluster; a topic that is left out has its role as its name.
    partitions
        Number of partitions of each topic that `create` creates.
    replication
        Their replication factor; with -1 the broker decides.
    security
        Encryption and authentication.
    timeouts
        Timeouts of all requests.

    Raises
    ------
    TypeError
        If a number has the wrong type.
    ValueError
        If a server, a name, a number or a certificate file is not valid.

    Examples
    --------
    >>> KafkaTopics("one,two", names={"events": "no spaces, please"})
    Traceback (most recent call last):
    ValueError: topic must have 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', got ...

    """

    def __init__(
        self,
        servers: str,
        *,
        names: Mapping[TopicName, str] | None = None,
        partitions: int = 4,
        replication: int = -1,
        security: Security | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        called = {name: name for name in ALL_TOPICS} | dict(names or {})
        self._names = {name: check_name(called[name]) for name in ALL_TOPICS}
        twice = sorted(name for name in called.values() if list(called.values()).count(name) > 1)
        if twice:
            raise ValueError(f"topics must have different names, got {twice[0]!r} twice")
        check_whole("partitions", partitions, 1)
        wanted = "at least 1, or -1 for the broker's"
        check_number("replication", replication, wanted, lambda n: n == -1 or n >= 1)
        self._connection = Connection(servers, security, timeouts)
        self._administration = Administration(
            self._connection, self._names, partitions=partitions, replication=replication
        )

    def client(self, *, group: str, instance: str, max_records: int) -> KafkaWorkerClient:
        """Join a group of workers under a unique instance name."""
        return KafkaWorkerClient(
            self._connection,
            self._administration,
            self._names,
            group=check_name(group, "group"),
            instance=check_name(instance, "instance"),
            max_records=max_records,
        )

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> KafkaReader:
        """Read topics; only committed records."""
        return KafkaReader(
            self._connection,
            self._administration,
            {name: self._names[name] for name in topics},
            from_end=from_end,
            group=None if group is None else check_name(group, "group"),
        )

    def writer(self, program: str) -> KafkaWriter:
        """Write to topics; the program's name identifies the writer in the broker's log."""
        return KafkaWriter(self._connection, self._names, check_name(program, "program"))

    def create(self) -> list[str]:
        """Create the missing topics; return what was done, one line each."""
        return self._administration.create()

    def problems(self) -> list[str]:
        """Return what is wrong with the broker or the topics, one line each."""
        return self._administration.problems()

    def warnings(self) -> list[str]:
        """Return the inputs whose records may be larger than a worker can write, one line each."""
        return self._administration.warnings()

    def identity(self) -> str:
        """Return the ids that the broker generated for the topics that hold what was learned."""
        return self._administration.identity()

    def names(self) -> Mapping[TopicName, str]:
        """Return the names of the topics on the cluster."""
        return dict(self._names)

    def n_partitions(self) -> int:
        """Return the number of partitions of the inputs."""
        return self._administration.counts(["events"])["events"]

    def lags(self, group: str) -> dict[tuple[TopicName, int], int]:
        """Return how many records of each input partition a group has not processed.

        Transaction markers and aborted records take offsets like other records. They count until a
        record after them, or one that was fetched together with them, is processed.
        """
        return {place: each.n_waiting for place, each in self.backlog(group).items()}

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input partition.

        Raises
        ------
        RefusedError
            If the group's positions do not belong to these topics.

        """
        return self._administration.backlog(group)

    def positions(
        self, group: str, topics: Sequence[TopicName] = WORKER_INPUTS
    ) -> dict[Place, int]:
        """Return the offsets at which a group continues, for the inputs for which it has one.

        Other topics may have positions too, if another program reads them in a group.

        Raises
        ------
        RefusedError
            If they do not belong to these topics.

        """
        roles = {called: name for name, called in self._names.items()}
        found = self._administration.positions(group, topics)
        return {(roles[place.topic], place.partition): at for place, at in found.items()}

    def set_positions(self, group: str, positions: Mapping[Place, int]) -> None:
        """Set the offsets at which a group continues; none of its members may be running."""
        places = {
            TopicPartition(self._names[n], number): at for (n, number), at in positions.items()
        }
        self._administration.set_positions(group, places)

    def checkpoint(self, group: str) -> Checkpoint:
        """Return positions and ends of each partition at a time when no transaction was open."""
        return checkpoint(self._connection, self._administration, self._names, group)

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        """Return the open transactions that keep partitions from being read."""
        return self._administration.obstacles(places)

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        """Return the places that have a committed record at or after an offset."""
        roles = {TopicPartition(self._names[place[0]], place[1]): place for place in positions}
        starts = {partition: positions[place] for partition, place in roles.items()}
        found = partitions_with_records(self._connection, self._administration, self._names, starts)
        return {roles[partition] for partition in found}

    def n_members(self, group: str) -> int:
        """Return how many workers of a group are running."""
        return len(self._administration.members(group))

    def read_besides(self, group: str) -> list[str]:
        """Return the names of other topics that members of a group read."""
        return sorted(self._administration.subscribed(group) - {*self._names.values()})

    def close(self) -> None:
        """Close the connection."""
        self._administration.close()
