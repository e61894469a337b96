"""Kafka's client library, imported without its warnings, and access to its internals.

The functions below the imports expose or do what the client's public interface does not. Only this
module and `record_codec.py` use its private parts; tests on a real broker cover each use, and the
version is pinned.

"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from connectors.kafka.settings import MECHANISMS
from connectors.topics import Record

with warnings.catch_warnings():
    # The client loads its tables in a way that is deprecated in Python 3.11 and 3.12.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka import codec as kafka_codecs
    from kafka import errors as kafka_errors
    from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec
    from kafka.consumer.fetcher import Fetcher
    from kafka.consumer.subscription_state import ConsumerRebalanceListener
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.future import Future
    from kafka.net.sasl import SASL_MECHANISMS, get_sasl_mechanism, register_sasl_mechanism
    from kafka.producer.future import FutureRecordMetadata
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.protocol.consumer import IsolationLevel
    from kafka.record.default_records import DefaultRecordBatch
    from kafka.record.memory_records import MemoryRecordsBuilder
    from kafka.structs import MemberState, OffsetAndMetadata

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "ConsumerRebalanceListener",
    "DefaultRecordBatch",
    "Fetcher",
    "Future",
    "FutureRecordMetadata",
    "IsolationLevel",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "MemberState",
    "MemberToRemove",
    "MemoryRecordsBuilder",
    "OffsetAndMetadata",
    "OffsetSpec",
    "ProducerBatch",
    "RangePartitionAssignor",
    "TopicPartition",
    "get_sasl_mechanism",
    "kafka_codecs",
    "kafka_errors",
]


# A poll must take all fetched records: the client never continues a partition that was read in part
# and then paused.
EVERYTHING = 10**9
_FETCH_SIZES = ("fetch_max_bytes", "max_partition_fetch_bytes")
_LEAST_SHARE = 1 / 64
_AGAIN_MS = 50
_SOON = 0.1  # of the time for an answer: twice as much would come in time, too


def _with_password_of_now(login: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kind of login whose password may be a function, called for each new connection."""

    def make(**settings: Any) -> Any:
        password = settings.get("sasl_plain_password")
        return login(
            **settings | {"sasl_plain_password": password() if callable(password) else password}
        )

    return make


for _name in MECHANISMS:
    register_sasl_mechanism(_name, _with_password_of_now(SASL_MECHANISMS[_name]), overwrite=True)


# Between two requests for metadata the client waits a tenth of a second. A new one has just asked
# for the brokers, and asks for each topic when it needs it.


def request_topics_at_once(consumer: Any) -> None:
    """Let a new consumer request the metadata of its topics without waiting."""
    consumer._fetcher._manager.cluster._last_refresh_ms = 0


def fit_fetches(consumer: Any) -> None:
    """Let a consumer ask for less at once while answers do not come in time, and for more again.

    The client would ask for the same again, for ever: on a slow network no answer would arrive.
    """
    fetcher = consumer._fetcher
    most = {name: fetcher.config[name] for name in _FETCH_SIZES}
    soon_s = _SOON * 1e-3 * fetcher.config["request_timeout_ms"]
    share = 1.0

    def fit(factor: float) -> None:
        nonlocal share
        share = min(1.0, max(_LEAST_SHARE, factor * share))
        fetcher.config.update({name: round(share * n) for name, n in most.items()})

    def note_error(node: Any, error: BaseException) -> None:
        if isinstance(error, kafka_errors.RequestTimedOutError):
            fit(0.25)
        handle_error(node, error)

    def note_response(node: Any, offsets: Any, sent_at: float, response: Any) -> None:
        if monotonic() - sent_at < soon_s:
            fit(2.0)
        handle_response(node, offsets, sent_at, response)

    handle_error, fetcher._handle_fetch_error = fetcher._handle_fetch_error, note_error
    handle_response, fetcher._handle_fetch_response = fetcher._handle_fetch_response, note_response


def learn_topics(producer: Any, topics: Iterable[str]) -> None:
    """Request the metadata of topics in the background, before the first records are sent."""
    for topic in topics:
        producer._metadata.add_topic(topic)


def keep_requests(producer: Any) -> None:
    """Let a new transactional producer repeat a request whose coordinator it cannot connect to.

    The client would look for the new coordinator and drop the request: if a broker goes down in the
    middle of a transaction, its commit would never be answered.
    """
    client = producer._sender._client
    await_ready = client.await_ready

    def is_ready(node: Any, timeout_ms: float) -> bool:
        try:
            return bool(await_ready(node, timeout_ms=timeout_ms))
        except kafka_errors.KafkaConnectionError:
            client.poll(timeout_ms=_AGAIN_MS)  # until others have taken over
            return False

    client.await_ready = is_ready


def name_leaderless(consumer: Any) -> None:
    """Have a consumer say which partition has no leader when it is asked for offsets.

    It leaves such a partition out of the answer if others have one, and then misses it (KeyError).
    """
    fetcher = consumer._fetcher
    ask = fetcher.beginning_or_end_offset

    def asked(*arguments: Any) -> dict[TopicPartition, int]:
        try:
            found: dict[TopicPartition, int] = ask(*arguments)
        except KeyError as error:
            partition = error.args[0]
            raise kafka_errors.LeaderNotAvailableError(
                f"topic {partition.topic} partition {partition.partition}"
            ) from error
        return found

    fetcher.beginning_or_end_offset = asked


def identity_of(producer: Any) -> tuple[int, int]:
    """Return the id of a producer and its epoch.

    A changed epoch means that the broker has ended a transaction on its own. The client then begins
    another one, and may report this as a success.
    """
    identity = producer._transaction_manager.producer_id_and_epoch
    return identity.producer_id, identity.epoch


def send_positions(producer: Any, offsets: Mapping[TopicPartition, Any], membership: Any) -> Any:
    """Add positions of a group to the transaction; return a result to wait for.

    The client's own method waits by itself, without a timeout.
    """
    result = producer._transaction_manager.send_offsets_to_transaction(dict(offsets), membership)
    producer._sender.wakeup()
    return result


def begin_commit(producer: Any) -> Any:
    """Start to commit the transaction; return a result to wait for."""
    result = producer._transaction_manager.begin_commit()
    producer._sender.wakeup()
    return result


def committed(
    consumer: Any, partitions: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, Any]:
    """Return the positions of a consumer's group, once no open transaction would change them.

    The client's own method asks for one partition at a time. The client also keeps requests that
    were not answered in time, and takes a late answer as the answer to a later request for the same
    partitions: outdated positions.
    """
    consumer._coordinator._offset_fetch_futures.clear()
    ask = consumer._coordinator.fetch_committed_offsets
    found: dict[TopicPartition, Any] = ask(list(partitions), timeout_ms=timeout_ms)
    return found


def look_again(admin: Any) -> None:
    """Make an admin client look for the servers again, and for the coordinators among them.

    The client would ask the coordinators that it has once found for ever, though others have taken
    over, and would not know a server that came up since for five minutes.
    """
    cluster = admin._manager.cluster
    cluster._coordinators.clear()
    cluster.request_update()


def servers_of(admin: Any) -> list[tuple[str, int]]:
    """Return host and port of each server of the cluster that is up, as it gives them to clients.

    The client's own method fails before Kafka 3.7.
    """
    return sorted((each.host, each.port) for each in admin._manager.cluster.brokers())


def describe_group(admin: Any, group: str) -> dict[str, Any]:
    """Return the description of a group; it has no members if the broker does not know it.

    The client's own method tells any error by a text, beside an empty list of members.
    """
    found: dict[str, Any] = admin.describe_groups([group])[group]
    if found["error"]:
        code = re.match(r"\[Error (\d+)\]", found["error"])
        error = kafka_errors.for_code(int(code[1]) if code else -1)
        if error is not kafka_errors.GroupIdNotFoundError:
            raise error(found["error"])
    return found


def join_patiently(consumer: Any, wait_s: float) -> None:
    """Make each attempt to join the group wait this long for the outcome.

    A poll tries to join within its remaining milliseconds; if the group's answer comes later, it is
    lost, and the group is rebalanced again or the client hangs for ever.
    """
    coordinator = consumer._coordinator
    ensure_active_group = coordinator.ensure_active_group

    def wait_for_group(**_: object) -> bool:
        return bool(ensure_active_group(timeout_ms=round(1e3 * wait_s)))

    coordinator.ensure_active_group = wait_for_group


def join(consumer: Any) -> bool:
    """Rejoin the group if needed; return whether this member has joined."""
    coordinator = consumer._coordinator
    if coordinator.rebalance_in_progress():
        coordinator.request_rejoin()
    return not coordinator.need_rejoin() or bool(coordinator.ensure_active_group())


def await_fetches(consumer: Any, wait_s: float) -> Mapping[TopicPartition, list[Record]]:
    """Wait at most this long for all fetches in flight, and return the records that have arrived.

    A poll that finds records requests the next ones and returns without them: under load, records
    would always come one poll late.
    """
    fetcher = consumer._fetcher
    under_way = [future for future in fetcher._fetch_futures if not future.is_done]
    if not under_way:
        return {}
    done = Future()

    def note(_: object) -> None:
        if all(future.is_done for future in under_way):
            done.success(None)

    for future in under_way:
        future.add_both(note)
    with suppress(kafka_errors.KafkaTimeoutError):
        fetcher._net.run(fetcher._manager.wait_for, done, 1e3 * wait_s)
    found: Mapping[TopicPartition, list[Record]] = fetcher.fetched_records(EVERYTHING)[0]
    return found


def fetched_to(consumer: Any, partition: TopicPartition) -> int | None:
    """Return the offset up to which a partition was fetched, None if that is not known.

    The client's `position` would first ask the broker where to start reading, which takes time.
    """
    state = consumer._subscription.assignment.get(partition)
    return None if state is None or state.position is None else int(state.position.offset)


def unread(consumer: Any, partition: TopicPartition) -> int | None:
    """Return how many records of a partition have not been fetched, None if that is not known."""
    at = fetched_to(consumer, partition)
    state = consumer._subscription.assignment.get(partition)
    if state is None or state.highwater is None or at is None:
        return None
    return int(max(0, state.highwater - at))


def forget_positions(consumer: Any) -> None:
    """Make the client request the positions of all partitions again; call it at an assignment.

    Otherwise the client continues a partition that stays ours where it was, even if the records
    fetched before were dropped. It would also use an answer that came too late for a poll when the
    same partitions are assigned again, whatever others have done with them in the meantime.
    """
    consumer._coordinator._offset_fetch_futures.clear()
    assignment = consumer._subscription.assignment
    for partition, state in list(assignment.items()):
        assignment[partition] = fresh = type(state)()
        fresh.highwater = state.highwater  # which the broker only reports when it has changed


def has_lost_its_name(consumer: Any) -> bool:
    """Return whether the broker has told a member that another one uses its name.

    The client then stops its heartbeat, reports nothing, and continues to read.
    """
    coordinator = consumer._coordinator
    return bool(coordinator.stable() and not coordinator._heartbeat_enabled)


def close_producer(producer: Any, timeout_s: float) -> None:
    """Close a producer, if necessary without sending its remaining records."""
    try:
        producer.close(timeout=timeout_s)
    except kafka_errors.KafkaError:
        producer._sender.force_close()
        producer._sender.join(timeout_s)
        producer.close(timeout=0)
