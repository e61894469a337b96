"""Looks into the client of Kafka for what it does not tell, and does not do, by itself.

These places and `unpacking.py` are the only ones that touch what is not public there; tests on a
real broker hold each of them, and the version is pinned.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectors.kafka.library import TopicPartition, kafka_errors
from connectors.records import Outgoing


def identity_of(producer: Any) -> tuple[int, int]:
    """Return the number of a producer and its epoch.

    A changed epoch means that the broker has ended a transaction of its own accord. The client
    begins another one then, and may report that as a success.
    """
    identity = producer._transaction_manager.producer_id_and_epoch
    return identity.producer_id, identity.epoch


def append(producer: Any, topics: Sequence[str], records: Sequence[Outgoing]) -> list[Any]:
    """Hand records to a producer amid a transaction, each for its topic; return their futures.

    As its `send` does, in half the time: what `send` finds out for every record is found out once
    for all of a place, and the thread that writes to the broker is not woken for the first record
    of each batch.
    """
    known: dict[tuple[str, int], TopicPartition] = {}
    put, wake = producer._accumulator.append, producer._sender.wakeup
    futures = []
    for topic, record in zip(topics, records, strict=True):
        number = record.partition
        place = None if number is None else known.get((topic, number))
        if place is None:
            place = _place(producer, topic, record)
            known[place.topic, place.partition] = place
        future, is_full, _, _ = put(place, None, record.key, record.value, record.headers)
        if is_full:
            wake()
        futures.append(future)
    return futures


def _place(producer: Any, topic: str, record: Outgoing) -> TopicPartition:
    """Return where a record goes, and make that a part of the transaction."""
    producer.partitions_for(topic)  # from now on it is known which there are
    key, value = record.key, record.value
    number = producer._partition(topic, record.partition, key, value, key, value)
    if number is None:
        raise ValueError(f"topic {topic} is missing; --create-topics makes it")
    place = TopicPartition(topic, number)
    producer._transaction_manager.maybe_add_partition_to_transaction(place)
    return place


def join(consumer: Any, timeout_s: float) -> bool:
    """Join the group anew if that is needed; return whether it is done.

    A poll does the same, but an answer of the group that comes after the poll has ended is lost:
    either the group is disturbed once more, or the client hangs for ever. So this waits for longer
    than a poll.
    """
    coordinator = consumer._coordinator
    if coordinator.rebalance_in_progress():
        coordinator.request_rejoin()
    if not coordinator.need_rejoin():
        return True
    return bool(coordinator.ensure_active_group(timeout_ms=round(1e3 * timeout_s)))


def forget_positions(consumer: Any) -> None:
    """Have it asked anew where all partitions are read on; to be called when they were given.

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
