"""One transaction: everything written and the positions, and when both are safe, the commit.

It matters that every record is waited for: the client can report a commit that did not happen,
namely when the broker has ended the transaction while records had not been sent, or when a record
was given up on the way.

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
    """Write records and positions, both or none.

    Parameters
    ----------
    producer
        One with transactions.
    names
        What the topics are called.
    outgoing
        What is to be written.
    offsets, membership
        Where the group reads on, and as which of its members this is said. The broker refuses a
        member that is none any longer.
    timeout_s
        How long that may take.

    Returns
    -------
    For each topic and partition written to, the offset that follows the last record.

    Raises
    ------
    BrokerError
        If the broker has ended the transaction of its own accord, or does not answer.

    """
    until = monotonic() + timeout_s
    before = identity_of(producer)
    producer.begin_transaction()
    lasts = put(producer, [names[record.topic] for record in outgoing], outgoing)
    positions = send_positions(producer, offsets, membership)
    topics = {name: topic for topic, name in names.items()}
    ends: dict[tuple[TopicName, int], int] = {}
    # The last first: when that is safe, most of the others are, and no thread has been woken for
    # them.
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
    """Refuse records that no topic takes."""
    for record in outgoing:
        size = size_of(record) + _BESIDES
        if size > MAX_RECORD_BYTES:
            raise ValueError(
                f"record for {record.topic} has {size} bytes, expected at most {MAX_RECORD_BYTES}"
            )
