"""One transaction: records and positions, and once both are acknowledged, the commit.

Every record must be waited for: the client can report a commit that did not happen, namely if the
broker ended the transaction while records were still unsent, or if the client gave up on a record.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from connectors.kafka.client import MAX_RECORD_BYTES
from connectors.kafka.client_import import TopicPartition, begin_commit, identity_of, send_positions
from connectors.kafka.record_codec import put
from connectors.topics import BrokerError, Outgoing, TopicName
from connectors.wire.outbound import size_of

_BESIDES = 1024


def transact(
    producer: Any,
    names: Mapping[TopicName, str],
    outgoing: Sequence[Outgoing],
    offsets: Mapping[TopicPartition, Any],
    membership: Any,
    *,
    timeout_s: float,
) -> dict[tuple[TopicName, int], int]:
    """Write records and positions, all or nothing.

    Parameters
    ----------
    producer
        A transactional producer.
    names
        Names of the topics on the broker.
    outgoing
        The records to write.
    offsets, membership
        Where the group continues, and the membership under which this is committed. The broker
        refuses a member that no longer belongs to the group.
    timeout_s
        Timeout of the whole transaction.

    Returns
    -------
    For each topic and partition written to, the offset after the last record.

    Raises
    ------
    BrokerError
        If the broker has ended the transaction on its own, or does not answer.

    """
    until = monotonic() + timeout_s
    before = identity_of(producer)
    producer.begin_transaction()
    lasts = put(producer, [names[record.topic] for record in outgoing], outgoing)
    positions = send_positions(producer, offsets, membership)
    topics = {name: topic for topic, name in names.items()}
    ends: dict[tuple[TopicName, int], int] = {}
    # Wait for the last one first: once it is acknowledged, most others are too, and waiting for
    # them wakes no thread.
    for place, last in reversed(lasts):
        end = last.get(timeout=_left(until)).offset + 1
        ends.setdefault((topics[place.topic], place.partition), end)
    _await(positions, until)
    _await(begin_commit(producer), until)
    if identity_of(producer) != before:
        raise BrokerError("broker has ended the transaction of its own accord")
    return ends


def _await(result: Any, until: float) -> None:
    if not result.wait(timeout_ms=1e3 * _left(until)):
        raise BrokerError("broker did not answer in time to commit")


def _left(until: float) -> float:
    return max(0.0, until - monotonic())


def check_sizes(outgoing: Iterable[Outgoing]) -> None:
    """Refuse records that no topic accepts."""
    for record in outgoing:
        size = size_of(record) + _BESIDES
        if size > MAX_RECORD_BYTES:
            raise ValueError(
                f"record for {record.topic} has {size} bytes, expected at most {MAX_RECORD_BYTES}"
            )
