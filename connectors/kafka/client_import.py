"""The client of Kafka, loaded without its warnings: what is used of it, and looks into it.

Below the imports is what the client does not tell, and does not do, by itself. This module and
`record_codec.py` are the only ones that touch what is not public there; tests on a real broker hold
each of them, and the version is pinned.

"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from connectors.topics import Record

with warnings.catch_warnings():
    # The client reads its tables in a way that Python 3.11 and 3.12 advise against.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka import errors as kafka_errors
    from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec
    from kafka.consumer.fetcher import Fetcher
    from kafka.consumer.subscription_state import ConsumerRebalanceListener
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.future import Future
    from kafka.net.sasl import get_sasl_mechanism
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
    "kafka_errors",
]


# A partition that was read in part and then paused is never read on again by the client.
EVERYTHING = 10**9


def identity_of(producer: Any) -> tuple[int, int]:
    """Return the number of a producer and its epoch.

    A changed epoch means that the broker has ended a transaction of its own accord. The client
    begins another one then, and may report that as a success.
    """
    identity = producer._transaction_manager.producer_id_and_epoch
    return identity.producer_id, identity.epoch


def send_positions(producer: Any, offsets: Mapping[TopicPartition, Any], membership: Any) -> Any:
    """Make positions of a group a part of the transaction; return what can be waited for.

    The client's method waits itself, and as long as it takes.
    """
    result = producer._transaction_manager.send_offsets_to_transaction(dict(offsets), membership)
    producer._sender.wakeup()
    return result


def begin_commit(producer: Any) -> Any:
    """Have the transaction committed; return what can be waited for."""
    result = producer._transaction_manager.begin_commit()
    producer._sender.wakeup()
    return result


def committed(
    consumer: Any, places: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, Any]:
    """Return the positions of a consumer's group, once no transaction is about to change them.

    The client's method asks for one partition at a time. And the client keeps a request that was
    not answered in time, and takes its answer for that to a later one of the same partitions:
    positions of long ago.
    """
    consumer._coordinator._offset_fetch_futures.clear()
    ask = consumer._coordinator.fetch_committed_offsets
    found: dict[TopicPartition, Any] = ask(list(places), timeout_ms=timeout_ms)
    return found


def join_patiently(consumer: Any, wait_s: float) -> None:
    """Have each attempt to join the group wait so long for its outcome.

    A poll joins in the milliseconds that it has left, and an answer of the group that comes after
    its end is lost: the group is disturbed once more, or the client hangs for ever.
    """
    coordinator = consumer._coordinator
    ensure_active_group = coordinator.ensure_active_group

    def wait_for_group(**_: object) -> bool:
        return bool(ensure_active_group(timeout_ms=round(1e3 * wait_s)))

    coordinator.ensure_active_group = wait_for_group


def join(consumer: Any) -> bool:
    """Rejoin the group if that is needed; return whether it is done."""
    coordinator = consumer._coordinator
    if coordinator.rebalance_in_progress():
        coordinator.request_rejoin()
    return not coordinator.need_rejoin() or bool(coordinator.ensure_active_group())


def await_fetches(consumer: Any, wait_s: float) -> Mapping[TopicPartition, list[Record]]:
    """Wait at most so long for all that was asked of servers, and return what has come.

    A poll that finds records, asks for the next ones, and returns without them: under load, records
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


def fetched_to(consumer: Any, place: TopicPartition) -> int | None:
    """Return up to where everything in a partition was fetched, None if that is not known.

    The client's `position` would ask the broker where reading begins, and takes its time to do so.
    """
    state = consumer._subscription.assignment.get(place)
    return None if state is None or state.position is None else int(state.position.offset)


def unread(consumer: Any, place: TopicPartition) -> int | None:
    """Return how many records of a partition were not fetched, None if that is not known."""
    at = fetched_to(consumer, place)
    state = consumer._subscription.assignment.get(place)
    if state is None or state.highwater is None or at is None:
        return None
    return int(max(0, state.highwater - at))


def forget_positions(consumer: Any) -> None:
    """Have the positions of all partitions requested again; to be called when they were given.

    Otherwise the client reads a partition that stays ours on from where it was, also if what was
    fetched before has been dropped; and it would take an answer that came too late for a poll when
    the same partitions come again, whatever others have done with them meanwhile.
    """
    consumer._coordinator._offset_fetch_futures.clear()
    assignment = consumer._subscription.assignment
    for place, state in list(assignment.items()):
        assignment[place] = type(state)()


def has_lost_its_name(consumer: Any) -> bool:
    """Return whether the broker has told a member that another one bears its name.

    The client stops its heartbeat then, says nothing, and goes on reading.
    """
    coordinator = consumer._coordinator
    return bool(coordinator.stable() and not coordinator._heartbeat_enabled)


def close_producer(producer: Any, timeout_s: float) -> None:
    """Close a producer, if need be without what it has not sent."""
    try:
        producer.close(timeout=timeout_s)
    except kafka_errors.KafkaError:
        producer._sender.force_close()
        producer._sender.join(timeout_s)
        producer.close(timeout=0)
