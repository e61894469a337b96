"""Topics and groups of a Kafka cluster: create topics, report problems, count records.

Nothing here reads or writes a record. The obstacles reported are open transactions of other
programs.

"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from typing import Any, TypeAlias, TypeVar

from connectors.kafka.client import CLIENT_ERRORS, MAX_RECORD_BYTES, Connection, within
from connectors.kafka.client_import import (
    ConfigResource,
    ConfigResourceType,
    IsolationLevel,
    MemberToRemove,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
    describe_group,
    kafka_errors,
    look_again,
    servers_of,
)
from connectors.kafka.topic_identity import Shape, beyond_end, check_mark, missing, shape_of
from connectors.topics import (
    ALL_TOPICS,
    COMPACTED,
    WORKER_INPUTS,
    Backlog,
    BrokerError,
    Obstacle,
    Place,
    RefusedError,
    TopicName,
)
from connectors.wire.state_records import WHOLE_BYTES

# --- Required settings of the topics, and problems of existing ones.
#
# This part never contacts a broker: it turns the broker's descriptions of topics into sentences.


Settings: TypeAlias = Mapping[TopicName, Mapping[str, str]]
"""Settings of topics: those in `CHECKED` that we are allowed to see."""

DAY_MS = 86_400_000
_TIMESTAMP_TYPE = "message.timestamp.type"
_IN_SYNC = "min.insync.replicas"
_RETENTION = "retention.ms"
CHECKED = (
    "cleanup.policy",
    "delete.retention.ms",
    "max.message.bytes",
    _TIMESTAMP_TYPE,
    _IN_SYNC,
    _RETENTION,
)
SENT_BY_OTHERS: tuple[TopicName, ...] = ("events", "answers")
_KEEP_DELETIONS_MS = 7 * DAY_MS
# The active segment, by default the last GiB or the last week, is never compacted: a worker that
# starts without a snapshot would have to read all of it.
_SEGMENT_BYTES = 64 * 2**20
_COMPACTED_WITHIN_MS = DAY_MS
# A challenge contains its event and three neighbours.
_OUTPUTS_PER_INPUT = 5
_LARGEST_PART = WHOLE_BYTES + 64 * 2**10
_FORBIDDEN = 29
_RIGHTS: dict[TopicName, tuple[str, ...]] = {
    "events": ("READ",),
    "answers": ("READ",),
    "predictions": ("WRITE",),
    "requests": ("WRITE",),
    "consensus": ("READ", "WRITE"),
    "state": ("READ", "WRITE"),
    "dead-letters": ("WRITE",),
}


def wanted(name: TopicName) -> dict[str, str]:
    """Return the settings with which a topic is created.

    Examples
    --------
    >>> wanted("events")
    {'cleanup.policy': 'delete'}

    """
    settings = {"cleanup.policy": "compact" if name in COMPACTED else "delete"}
    if name in COMPACTED:
        settings["delete.retention.ms"] = str(_KEEP_DELETIONS_MS)
        settings["segment.bytes"] = str(_SEGMENT_BYTES)
        settings["max.compaction.lag.ms"] = str(_COMPACTED_WITHIN_MS)
    if name not in SENT_BY_OTHERS:
        settings["max.message.bytes"] = str(MAX_RECORD_BYTES)
    if name == "answers":
        # The time of an answer counts up to a minute after its record was written; by default its
        # sender says when that was.
        settings[_TIMESTAMP_TYPE] = "LogAppendTime"
    return settings


def flaws(name: TopicName, called: str, topic: Mapping[str, Any]) -> list[str]:
    """Return why an existing topic cannot be used.

    Parameters
    ----------
    name, called
        The topic, and its name on the broker.
    topic
        The broker's description.

    Examples
    --------
    >>> flaws("state", "state", {"error_code": 0, "authorized_operations": ["READ"]})
    ['no right to write topic state']

    """
    if topic["error_code"] == _FORBIDDEN:
        return [f"no right to see topic {called}"]
    rights = topic.get("authorized_operations")
    if rights is None:
        return []
    lacking = [right.lower() for right in _RIGHTS[name] if right not in rights]
    return [f"no right to {' and '.join(lacking)} topic {called}"] if lacking else []


def misfits(name: TopicName, called: str, settings: Settings) -> list[str]:
    """Return the settings of a topic that would lose data, one line each.

    Examples
    --------
    >>> misfits("state", "state", {"state": {"delete.retention.ms": "60000"}})
    ['topic state has delete.retention.ms=60000, expected at least 86400000']

    A learner of small inputs may have a large state:

    >>> limits = {"events": 2000, "state": 10_000}
    >>> misfits("state", "state", {n: {"max.message.bytes": str(b)} for n, b in limits.items()})
    ['topic state has max.message.bytes=10000, expected at least 4259840 for the state of a ...

    """
    own = settings[name]
    lines = []
    policy = own.get("cleanup.policy")
    expected = "compact" if name in COMPACTED else "delete"
    if policy is not None and policy != expected:
        lines.append(f"topic {called} has cleanup.policy={policy}, expected {expected}")
    kept_ms = own.get("delete.retention.ms")
    if name in COMPACTED and kept_ms is not None and int(kept_ms) < DAY_MS:
        # A worker trusts a snapshot for half a day, and must find all deletions made since then.
        lines.append(
            f"topic {called} has delete.retention.ms={kept_ms}, expected at least {DAY_MS}"
        )
    limits = [_limit(settings, each) for each in SENT_BY_OTHERS]
    needed = min(MAX_RECORD_BYTES, _OUTPUTS_PER_INPUT * max(limits))
    why = "inputs of the size that events and answers may have"
    if name == "state" and needed < _LARGEST_PART:
        needed, why = _LARGEST_PART, "the state of a learner, however small its inputs are"
    limit = own.get("max.message.bytes")
    if name not in SENT_BY_OTHERS and limit is not None and int(limit) < needed:
        lines.append(
            f"topic {called} has max.message.bytes={limit}, expected at least {needed} for {why}"
        )
    return lines


def excess(name: TopicName, called: str, settings: Settings) -> list[str]:
    """Return a line if records of an input may be larger than those that workers write.

    Examples
    --------
    >>> excess("events", "events", {"events": {"max.message.bytes": "20000000"}})
    ['topic events has max.message.bytes=20000000, but workers write at most 16842752: of a ...

    """
    limit = _limit(settings, name)
    if limit <= MAX_RECORD_BYTES:
        return []
    return [
        f"topic {called} has max.message.bytes={limit}, but workers write at most "
        f"{MAX_RECORD_BYTES}: of a larger record a dead letter has only the beginning"
    ]


def forgeable(called: str, settings: Settings) -> list[str]:
    """Return a line if the senders of answers, and not the broker, say when those were written.

    Examples
    --------
    >>> forgeable("answers", {"answers": {"message.timestamp.type": "CreateTime"}})
    ['topic answers has message.timestamp.type=CreateTime, expected LogAppendTime: its senders ...
    >>> forgeable("answers", {"answers": {"message.timestamp.type": "LogAppendTime"}})
    []

    """
    said_by = settings.get("answers", {}).get(_TIMESTAMP_TYPE, "LogAppendTime")
    if said_by == "LogAppendTime":
        return []
    return [
        f"topic {called} has {_TIMESTAMP_TYPE}={said_by}, expected LogAppendTime: its senders may "
        "date answers ahead"
    ]


def scarce(called: str, topic: Mapping[str, Any], own: Mapping[str, str]) -> list[str]:
    """Return a line if a topic has too few copies in sync for records to be written.

    Parameters
    ----------
    called
        The topic's name on the broker.
    topic
        The broker's description.
    own
        The topic's settings.

    Examples
    --------
    >>> topic = {"partitions": [{"replica_nodes": [1, 2, 3], "isr_nodes": [2]}]}
    >>> scarce("state", topic, {"min.insync.replicas": "2"})
    ['topic state has partitions with 1 of 3 copies in sync, but min.insync.replicas=2: brokers ...
    >>> scarce("state", topic, {"min.insync.replicas": "1"})
    []

    """
    needed = int(own.get(_IN_SYNC, 0))
    n_in_sync, n_copies = min(
        (len(each["isr_nodes"]), len(each["replica_nodes"])) for each in topic["partitions"]
    )
    if n_in_sync >= needed:
        return []
    return [
        f"topic {called} has partitions with {n_in_sync} of {n_copies} copies in sync, but "
        f"{_IN_SYNC}={needed}: brokers may take no records for them until more are in sync (from "
        "Kafka 3.7 on they do if there are no more copies)"
    ]


def behind(topics: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line if brokers that hold copies of topics are down, or have not caught up.

    Examples
    --------
    >>> topic = {"partitions": [{"replica_nodes": [1, 2, 3], "isr_nodes": [2, 3]}]}
    >>> behind([topic])
    ['copies are not in sync on broker 1, which is down or has not caught up: restart no other ...
    >>> topic["partitions"][0]["isr_nodes"].append(1)
    >>> behind([topic])
    []

    """
    nodes = {
        node
        for topic in topics
        for each in topic["partitions"]
        for node in {*each["replica_nodes"]} - {*each["isr_nodes"]}
    }
    return [
        f"copies are not in sync on broker {node}, which is down or has not caught up: restart no "
        "other broker before it has"
        for node in sorted(nodes)
    ]


def _limit(settings: Settings, name: TopicName) -> int:
    return int(settings.get(name, {}).get("max.message.bytes", 0))


_EXISTS, _MISSING = 36, 3
_AGAIN_S = 0.1
_FIRST_GROUP_S = 60.0
"""How long a group may have no coordinator: for its first one, a new broker makes a topic."""
_NO_COORDINATOR = (
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.NotCoordinatorError,
)
_RETRIABLE = (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError)
"""The latter is about a server that has left the cluster."""
_PASSING = (kafka_errors.RetriableError, kafka_errors.UnknownError)
_Answer = TypeVar("_Answer")


class Administration:
    """Queries and administers topics and groups of a cluster; connects on first use.

    Parameters
    ----------
    partitions, replication
        Number of partitions and replication factor of created topics; with a replication of -1 the
        broker decides.

    Attributes
    ----------
    connection
        Connection to the cluster.

    """

    def __init__(self, connection: Connection, *, partitions: int, replication: int) -> None:
        self.connection = connection
        self._names = connection.names
        self._partitions = partitions
        self._replication = replication
        self._client: Any = None
        self._process = os.getpid()

    def create(self) -> list[str]:
        """Create the missing topics; return what was done, one line each.

        They get as many partitions as those that are there.
        """
        topics = self._describe()
        absent = [name for name, topic in topics.items() if topic is None]
        if not absent:
            return []
        counts = {len(topic["partitions"]) for topic in topics.values() if topic} - {0}
        n_partitions = counts.pop() if len(counts) == 1 else self._partitions
        new = {
            self._names[name]: {
                "num_partitions": n_partitions,
                "replication_factor": self._replication,
                "configs": wanted(name),
            }
            for name in absent
        }

        def create(client: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = client.create_topics(new, raise_errors=False)["topics"]
            for topic in found:
                error = kafka_errors.for_code(topic["error_code"])
                if issubclass(error, _PASSING):
                    raise error(topic["error_message"])
            return found

        lines = []
        for topic in self._ask("create topics", create):
            name = topic["name"]
            if topic["error_code"] == 0:
                lines.append(f"created topic {name} with {n_partitions} partitions")
            elif topic["error_code"] != _EXISTS:  # else another client was faster
                raise RefusedError(f"topic {name} cannot be created: {topic['error_message']}")
        self._ask("create topics", lambda client: client.wait_for_topics(list(new)))
        return lines

    def problems(self) -> list[str]:
        """Return what is wrong, one line each."""
        try:
            topics = self._describe()
            there = [name for name, topic in topics.items() if topic and not topic["error_code"]]
            settings = self._settings(there)
        except RefusedError as error:
            return [str(error)]
        absent = [self._names[name] for name, topic in topics.items() if topic is None]
        lines = [missing(absent)] if absent else []
        for name, topic in topics.items():
            if topic is not None:
                lines += flaws(name, self._names[name], topic)
        counts = {name: len((topics[name] or {})["partitions"]) for name in there}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{self._names[name]} {count}" for name, count in counts.items())
            lines.append(
                f"topics must have the same number of partitions, found {found}; before anything "
                "is learned, give all of them as many, after that make seven new ones "
                "([topics] prefix), as keys have moved, and move there what was learned by "
                "streamgp backup and restore"
            )
        for name in there:
            lines += misfits(name, self._names[name], settings)
        return lines

    def warnings(self) -> list[str]:
        """Return what workers can tolerate, or must wait for, one line each.

        These are inputs that may be too large or dated ahead, topics with few copies in sync,
        and brokers that are behind, or that clients do not reach.
        """
        settings = self._settings(ALL_TOPICS)
        lines = [
            line for name in SENT_BY_OTHERS for line in excess(name, self._names[name], settings)
        ]
        lines += forgeable(self._names["answers"], settings)
        topics = {
            name: topic
            for name, topic in self._describe().items()
            if topic is not None and not topic["error_code"]
        }
        for name, topic in topics.items():
            lines += scarce(self._names[name], topic, settings[name])
        lines += behind(topics.values())
        for host, port in servers_of(self._client):
            reason = self.connection.why_unreachable(host, port)
            if reason is not None:
                lines.append(f"a broker of the cluster cannot be reached: {reason} if it is up")
        return lines

    def requests_kept_s(self) -> float:
        """Return for how many seconds `requests` keeps records; infinity if that is not known."""
        kept_ms = int(self._settings(["requests"])["requests"].get(_RETENTION, -1))
        return inf if kept_ms == -1 else kept_ms / 1e3

    def counts(self, names: Iterable[TopicName]) -> dict[TopicName, int]:
        """Return the number of partitions of each topic.

        Raises
        ------
        BrokerError
            If one is missing; a `RefusedError` if this client may not see it.

        """
        topics = self._describe()
        counts = {}
        for name in names:
            topic = topics[name]
            if topic is None:
                raise BrokerError(missing([self._names[name]]))
            if topic["error_code"]:
                raise RefusedError(flaws(name, self._names[name], topic)[0])
            counts[name] = len(topic["partitions"])
        return counts

    def partitions_of(
        self, topics: Iterable[TopicName] = WORKER_INPUTS
    ) -> dict[TopicPartition, Place]:
        """Return the partitions of some topics, by default of the workers' inputs; see `counts`."""
        return {
            self.connection.partition(name, number): (name, number)
            for name, count in self.counts(topics).items()
            for number in range(count)
        }

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions, records of open transactions included."""
        return self._offsets(partitions, OffsetSpec.LATEST, "tell where topics end")

    def shapes(self, names: Iterable[TopicName] = ALL_TOPICS) -> dict[TopicName, Shape | None]:
        """Return the id and the number of partitions of topics, None for a missing topic.

        Raises
        ------
        BrokerError
            If the broker cannot describe a topic, or not yet.

        """
        shapes: dict[TopicName, Shape | None] = dict.fromkeys(names)
        topics = self._describe()
        for name in shapes:
            topic = topics[name]
            if topic is None:
                continue
            if topic["error_code"]:
                error = kafka_errors.for_code(topic["error_code"])(self._names[name])
                raise self.connection.broker_error(error, "describe topics")
            shapes[name] = Shape(str(topic["topic_id"]), len(topic["partitions"]))
        return shapes

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still holds."""
        return self._offsets(partitions, OffsetSpec.EARLIEST, "tell where topics begin")

    def backlog(self, group: str) -> dict[Place, Backlog]:
        """Return how far a group is in each input partition.

        Raises
        ------
        RefusedError
            If its positions do not belong to these topics.

        """
        places = self.partitions_of()
        # In this order: a group at work is never ahead of ends that are read after its positions.
        starts, committed, ends = self.starts(places), self.positions(group), self.ends(places)
        backlog = {}
        for partition, place in places.items():
            start, end = starts[partition], ends[partition]
            position = committed.get(partition, start)
            if position > end:
                raise beyond_end(partition.topic, partition.partition, position)
            backlog[place] = Backlog(
                position=position,
                end=end,
                n_waiting=end - max(position, start),
                n_missed=max(0, start - position),
            )
        return backlog

    def positions(
        self, group: str, topics: Sequence[TopicName] = WORKER_INPUTS
    ) -> dict[TopicPartition, int]:
        """Return the offsets at which a group continues; see `marked_positions`."""
        found = self.marked_positions(group, topics)
        return {partition: offset for partition, (offset, _) in found.items()}

    def marked_positions(
        self, group: str, topics: Sequence[TopicName] = WORKER_INPUTS
    ) -> dict[TopicPartition, tuple[int, bool]]:
        """Return the offsets at which a group continues, and whether streamgp has set them.

        Partitions for which it has none are left out.

        Raises
        ------
        RefusedError
            If a position belongs to a topic that has since been deleted, or that had a different
            number of partitions.

        """
        found = {}
        for partition, offset, then, now in self._committed(group, topics):
            if then is not None and now is not None:
                check_mark(partition.topic, then, now, group)
            found[partition] = offset, then is not None
        return found

    def n_partitions_worked_on(self, group: str) -> int:
        """Return how many partitions the topics had when a group began; now they may have more.

        Raises
        ------
        RefusedError
            If a position belongs to a topic that has since been deleted.

        """
        n = self.counts(["state"])["state"]
        for partition, _, then, now in self._committed(group, WORKER_INPUTS):
            if then is not None and now is not None:
                check_mark(partition.topic, then, Shape(now.topic_id, then.n_partitions), group)
                n = min(n, then.n_partitions)
        return n

    def _committed(
        self, group: str, topics: Sequence[TopicName]
    ) -> Iterator[tuple[TopicPartition, int, Shape | None, Shape | None]]:
        """Yield the positions of a group, with the topic at the time of each, and now."""
        places = self.partitions_of(topics)
        shapes = self.shapes(topics)
        committed = self._ask(
            f"tell how far group {group} is",
            lambda client: client.list_group_offsets({group: list(places)})[group],
        )
        for partition, at in committed.items():
            if at.offset >= 0:
                now = shapes[places[partition][0]]
                yield partition, at.offset, shape_of(at.metadata or ""), now

    def set_positions(
        self,
        group: str,
        positions: Mapping[TopicPartition, int],
        *,
        n_partitions: int | None = None,
    ) -> None:
        """Set the offsets at which a group continues; none of its members may be running.

        With `n_partitions`, they are those of topics with so many partitions.
        """
        doing = f"set the positions of group {group}"
        marks = {
            self._names[name]: ""
            if shape is None
            else Shape(shape.topic_id, n_partitions or shape.n_partitions).mark
            for name, shape in self.shapes().items()
        }
        offsets = {
            partition: OffsetAndMetadata(n, marks[partition.topic], -1)
            for partition, n in positions.items()
        }
        answers = self._ask(doing, lambda client: client.alter_group_offsets(group, offsets))
        for error in answers.values():
            if error.errno:
                raise self.connection.broker_error(error(), doing)

    def obstacles(self, places: Iterable[Place]) -> dict[Place, Obstacle]:
        """Return the open transactions that keep partitions from being read."""
        partitions = {self.connection.partition(*place): place for place in places}
        found = self._ask(
            "describe transactions", lambda client: open_transactions(client, partitions)
        )
        return {partitions[partition]: obstacle for partition, obstacle in found.items()}

    def has_open_transaction(self, name: str) -> bool:
        """Return whether a transaction of a transactional id is open; it must have had one."""
        found = self._ask(
            "describe transactions", lambda client: client.describe_transactions([name])
        )
        return bool(found[name].state.value == "Ongoing")

    def remove_member(self, group: str, instance: str, number: str) -> None:
        """Remove a member from a group, unless another one uses its instance name by now."""
        members = [
            MemberToRemove(
                member_id=number,
                group_instance_id=instance,
                reason="streamgp worker was stopped",
            )
        ]
        self._ask(
            f"leave group {group}", lambda client: client.remove_group_members(group, members)
        )

    def members(self, group: str) -> dict[str, str]:
        """Return the member id of each member of a group, by its instance name."""
        return {
            member["group_instance_id"] or member["member_id"]: member["member_id"]
            for member in self._members(group)
        }

    def subscriptions(self, group: str) -> list[set[str]]:
        """Return the names of the topics that each member of a group reads."""
        # A member that is still joining has no metadata yet.
        told = (member["member_metadata"] for member in self._members(group))
        return [set(metadata["topics"]) for metadata in told if metadata]

    def _members(self, group: str) -> list[dict[str, Any]]:
        found = self._ask(f"describe group {group}", lambda client: describe_group(client, group))
        members: list[dict[str, Any]] = found["members"]
        return members

    def identity(self) -> str:
        """Return the ids that the broker generated for the topics that hold what was learned."""
        found = self._describe()
        return " ".join(
            str(topic["topic_id"]) for name in sorted(COMPACTED) if (topic := found[name])
        )

    def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(*CLIENT_ERRORS):  # without a broker there is nothing to close
                within(self.connection.timeouts.close_s, "close", client.close)

    # --- internal

    def _describe(self) -> dict[TopicName, dict[str, Any] | None]:
        """Return the broker's description of each topic, None for a missing topic.

        Their only error is that this client may not see one: any other may pass.
        """
        asked = list(self._names.values())

        def describe(client: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = client.describe_topics(asked)
            for topic in found:
                if topic["error_code"] not in (0, _MISSING, _FORBIDDEN):
                    raise kafka_errors.for_code(topic["error_code"])(topic["name"])
            return found

        found = self._ask("describe topics", describe)
        topics = {topic["name"]: topic for topic in found if topic["error_code"] != _MISSING}
        return {name: topics.get(self._names[name]) for name in ALL_TOPICS}

    def _settings(self, names: Iterable[TopicName]) -> dict[TopicName, dict[str, str]]:
        """Return the settings of topics, without those that we are not allowed to see."""
        asked = [
            ConfigResource(ConfigResourceType.TOPIC, self._names[name], dict.fromkeys(CHECKED))
            for name in names
        ]
        if not asked:
            return {}
        found = self._ask(
            "describe topics",
            lambda client: client.describe_configs(asked, config_filter="all")["topic"],
        )
        return {
            name: {key: entry["value"] for key, entry in found[self._names[name]].items()}
            for name in names
        }

    def _offsets(
        self, partitions: Iterable[TopicPartition], which: Any, doing: str
    ) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions, which)
        found = self._ask(doing, lambda client: client.list_partition_offsets(asked))
        return {partition: at.offset for partition, at in found.items()}

    def _ask(self, doing: str, call: Callable[[Any], _Answer]) -> _Answer:
        """Return the answer to a request; retry while the broker's error is retriable."""
        if self._client is None or self._process != os.getpid():
            # The threads of a client do not survive a fork.
            self._client, self._process = self.connection.admin(), os.getpid()
        client = self._client  # which another thread may close
        # From here on: connecting, however long it took, has a limit of its own.
        began = time.monotonic()
        until = began + self.connection.timeouts.connect_s
        while True:
            left_s = max(_AGAIN_S, until - time.monotonic())
            try:
                return within(left_s, doing, lambda: call(client))
            except CLIENT_ERRORS as error:
                with suppress(*CLIENT_ERRORS):
                    look_again(client)
                if isinstance(error, _NO_COORDINATOR):
                    until = max(until, began + _FIRST_GROUP_S)
                if not isinstance(error, _RETRIABLE) or time.monotonic() + _AGAIN_S > until:
                    if isinstance(error, BrokerError):  # it names no broker, and the last try alone
                        error = kafka_errors.KafkaTimeoutError()
                    raise self.connection.broker_error(error, doing) from error
                time.sleep(_AGAIN_S)


# --- Open transactions of other programs: what they hold back, since when, and who owns them.
#
# Workers read committed records up to the first record of an open transaction, which is the last
# stable offset of the partition. Everything after it waits, committed or not.

_OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


def open_transactions(
    client: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Obstacle]:
    """Return what holds back partitions, for those that are held back.

    A caller without the right to describe producers and transactions learns only the offset.

    """
    asked = dict.fromkeys(partitions, OffsetSpec.LATEST)
    if not asked:
        return {}
    ends = client.list_partition_offsets(asked)
    stable = client.list_partition_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
    held = {p: at.offset for p, at in stable.items() if at.offset < ends[p].offset}
    producers = _producers(client, held)
    known = _transactions(client, producers.values())
    return {
        partition: _obstacle(offset, producers.get(partition), known)
        for partition, offset in held.items()
    }


def _producers(client: Any, held: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the producer of the first open transaction of each partition."""
    found = {}
    with suppress(*CLIENT_ERRORS):
        for partition, state in client.describe_producers(list(held)).items():
            begun = [
                (each.current_transaction_start_offset, each.producer_id)
                for each in state.active_producers
                if each.current_transaction_start_offset >= 0
            ]
            if begun:
                found[partition] = min(begun)[1]
    return found


def _transactions(
    client: Any, producers: Iterable[int]
) -> dict[int, tuple[str, float | None]] | None:
    """Return the transactional id and the start time of the transactions of some producers.

    None if the coordinators cannot be asked, as before Kafka 3.0.
    """
    found: dict[int, tuple[str, float | None]] = {}
    wanted = sorted(set(producers))
    if not wanted:
        return found
    try:
        for listed in client.list_transactions(producer_id_filters=wanted).values():
            for each in listed:
                if each.state.value not in _OVER:
                    found[each.producer_id] = each.transactional_id, None
    except CLIENT_ERRORS:
        return None
    with suppress(*CLIENT_ERRORS):
        names = [name for name, _ in found.values()]
        for name, each in client.describe_transactions(names).items():
            if each.transaction_start_time_ms >= 0:
                found[each.producer_id] = name, each.transaction_start_time_ms / 1e3
    return found


def _obstacle(
    offset: int, producer: int | None, known: dict[int, tuple[str, float | None]] | None
) -> Obstacle:
    since = None
    if producer is None:
        whose = "an open transaction"
    elif known is None:
        whose = f"an open transaction of producer {producer}"
    elif producer not in known:
        whose = (
            f"an open transaction of producer {producer}, of which no coordinator tells "
            "(kafka-transactions.sh find-hanging)"
        )
    else:
        name, since = known[producer]
        whose = f"an open transaction of transactional id {name!r} (producer {producer})"
        if since is not None:
            at = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
            whose += f" since {at.replace('+00:00', 'Z')}"
    return Obstacle(
        offset=offset, since=since, text=f"{whose} holds back everything from offset {offset} on"
    )
