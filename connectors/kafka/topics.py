"""Topics on Apache Kafka: exactly once, for up to as many workers as there are partitions.

This is the entry point; worker clients, readers and writers have modules of their own. The module
imports Kafka's client library, so import it only if the configuration names Kafka.

"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connectors.kafka.admin import Administration
from connectors.kafka.client import CLIENT_ERRORS, Connection, close_consumer
from connectors.kafka.client_import import close_producer, committed, kafka_errors
from connectors.kafka.reader_writer import KafkaReader, KafkaWriter, partitions_with_records
from connectors.kafka.settings import Security, Timeouts, check_name
from connectors.kafka.worker_client import KafkaWorkerClient, prepare_transactions
from connectors.topics import (
    ALL_TOPICS,
    COMPACTED,
    WORKER_INPUTS,
    Backlog,
    BrokerError,
    Checkpoint,
    Obstacle,
    Place,
    TopicName,
    Topics,
)
from streamgp.common.validation import check_number, check_whole

__all__ = ["KafkaTopics", "Security", "Timeouts"]


class KafkaTopics(Topics):
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
    renew
        Returns them as they are now, for each new connection; None if they stay as they are.
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
        renew: Callable[[], Security] | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        called = {name: name for name in ALL_TOPICS} | dict(names or {})
        called = {name: check_name(called[name]) for name in ALL_TOPICS}
        twice = sorted(name for name in called.values() if list(called.values()).count(name) > 1)
        if twice:
            raise ValueError(f"topics must have different names, got {twice[0]!r} twice")
        check_whole("partitions", partitions, 1)
        wanted = "at least 1, or -1 for the broker's"
        check_number("replication", replication, wanted, lambda n: n == -1 or n >= 1)
        self._connection = Connection(servers, security, timeouts, names=called, renew=renew)
        self._administration = Administration(
            self._connection, partitions=partitions, replication=replication
        )

    def client(self, *, group: str, instance: str, max_records: int) -> KafkaWorkerClient:
        return KafkaWorkerClient(
            self._administration,
            group=check_name(group, "group"),
            instance=check_name(instance, "instance"),
            max_records=max_records,
        )

    def reader(
        self, topics: Iterable[TopicName], *, from_end: bool = False, group: str | None = None
    ) -> KafkaReader:
        """Read topics; only committed records."""
        return KafkaReader(
            self._administration,
            topics,
            from_end=from_end,
            group=None if group is None else check_name(group, "group"),
        )

    def writer(self, program: str) -> KafkaWriter:
        """Write to topics; the program's name identifies the writer in the broker's log."""
        return KafkaWriter(self._connection, check_name(program, "program"))

    def create(self) -> list[str]:
        return self._administration.create()

    def problems(self) -> list[str]:
        return self._administration.problems()

    def warnings(self) -> list[str]:
        return self._administration.warnings()

    def requests_kept_s(self) -> float:
        return self._administration.requests_kept_s()

    def identity(self) -> str:
        return self._administration.identity()

    def names(self) -> Mapping[TopicName, str]:
        return dict(self._connection.names)

    def n_partitions(self) -> int:
        return self._administration.counts(["events"])["events"]

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input partition.

        Transaction markers and aborted records take offsets like other records. They count until a
        record after them, or one that was fetched together with them, is processed.

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
        found = self._administration.positions(group, topics)
        return {self._connection.place(partition): at for partition, at in found.items()}

    def set_positions(
        self, group: str, positions: Mapping[Place, int], *, n_partitions: int | None = None
    ) -> None:
        """Set the offsets at which a group continues; see `Administration.set_positions`."""
        offsets = {self._connection.partition(*place): at for place, at in positions.items()}
        self._administration.set_positions(group, offsets, n_partitions=n_partitions)

    def checkpoint(self, group: str) -> Checkpoint:
        """Return positions and ends of each partition at a time when no transaction was open."""
        return checkpoint(self._administration, group)

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        return self._administration.obstacles(places)

    def readable(self, positions: Mapping[Place, int]) -> set[Place]:
        starts = {self._connection.partition(*place): at for place, at in positions.items()}
        found = partitions_with_records(self._administration, starts)
        return set(map(self._connection.place, found))

    def n_members(self, group: str) -> int:
        return len(self._administration.members(group))

    def check_writing(self, group: str) -> None:
        """Raise a BrokerError if a worker of a group could not begin a transaction."""
        connection = self._connection
        # No worker bears this name; a user who may write as a worker may use it.
        producer = connection.transactional_producer(f"{group}-#check")
        try:
            prepare_transactions(producer, connection)
        finally:
            close_producer(producer, connection.timeouts.close_s)

    def read_besides(self, group: str) -> list[str]:
        theirs = {self._connection.names[name] for name in WORKER_INPUTS}
        others = [read for read in self._administration.subscriptions(group) if read != theirs]
        return sorted(set().union(*others))

    def close(self) -> None:
        self._administration.close()


# --- Checkpoint of a group: its positions, and what it had written when it reached them.
#
# A worker writes `state`, `consensus` and its positions in one transaction, but a broker makes the
# parts of a transaction visible one after the other. A partition is therefore captured while it is
# at rest: its end offsets are requested, then the positions, then the end offsets again. If there
# is no open transaction before the first ends, and the second ends are equal to them, no batch has
# started to write in between, and the positions are those of the last visible batch. Each partition
# is captured at a time of its own; no key is in two partitions.

PATIENCE_S = 60.0
"""How long to wait for a partition to be at rest."""
_RETRY_MS = 2
_NAP_S = 0.005


def checkpoint(
    administration: Administration, group: str, *, patience_s: float = PATIENCE_S
) -> Checkpoint:
    """Return positions and ends of each partition at a time when the group had no transaction open.

    Partitions that the topics were given since the group began are left out: no worker works on
    them.

    Raises
    ------
    BrokerError
        If a partition is not at rest in time, or the broker cannot be used.
    RefusedError
        If the positions do not belong to these topics.

    """
    connection = administration.connection
    left = set(range(administration.n_partitions_worked_on(group)))
    positions: dict[Place, int] = {}
    ends: dict[Place, int] = {}
    until = time.monotonic() + patience_s
    # Of an answer, which may come from far away; so long is an open transaction waited for, too.
    within_s = min(connection.timeouts.request_s, patience_s)
    consumer = connection.consumer(group_id=group, retry_backoff_ms=_RETRY_MS)
    try:
        while left:
            for number in sorted(left):
                found = _still(administration, consumer, number, within_s)
                if found is not None:
                    left.discard(number)
                    positions |= found[0]
                    ends |= found[1]
            if left and time.monotonic() > until:
                raise BrokerError(
                    f"partition {min(left)} has not stood still for a moment within "
                    f"{patience_s:g} s; try again when less comes in, or stop the workers first"
                )
            time.sleep(_NAP_S if left else 0.0)
    except CLIENT_ERRORS as error:
        raise connection.broker_error(error, "tell how far the group is") from error
    finally:
        close_consumer(connection, consumer)
    heeded = {n: positions.get(("consensus", n), 0) for topic, n in ends if topic == "consensus"}
    return Checkpoint(positions=positions, ends=ends, heeded=heeded)


def _still(
    administration: Administration, consumer: Any, number: int, within_s: float
) -> tuple[dict[Place, int], dict[Place, int]] | None:
    """Return positions and ends of a partition, None if it was not at rest."""
    connection = administration.connection
    written, read = (
        [connection.partition(topic, number) for topic in topics]
        for topics in (COMPACTED, WORKER_INPUTS)
    )
    ends = administration.ends(written)
    if consumer.end_offsets(written) != ends:  # the last stable offsets
        return None
    try:
        at = committed(consumer, read, round(1e3 * within_s))
    except kafka_errors.KafkaTimeoutError:
        return None  # a transaction that would change them is open
    if administration.ends(written) != ends:
        return None
    return (
        {connection.place(partition): int(position.offset) for partition, position in at.items()},
        {connection.place(partition): end for partition, end in ends.items()},
    )
