"""One transaction: everything written, then the positions, then the commit.

The order matters, and so does that every record is waited for: the client can report a commit that
did not happen, namely when the broker has ended the transaction while records had not been sent,
or when a record was given up on the way.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from connectors.kafka.client import MAX_RECORD_BYTES, TopicPartition
from connectors.kafka.inside import append, identity_of
from connectors.records import LinkError, Outgoing, TopicName
from connectors.wire.cutting import size_of

_DONE_S = 1.0
_BESIDES = 1024


def transact(
    producer: Any,
    names: Mapping[TopicName, str],
    outgoing: Sequence[Outgoing],
    offsets: Mapping[TopicPartition, Any],
    membership: Any,
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

    Returns
    -------
    For each topic and partition written to, the offset that follows the last record.

    Raises
    ------
    LinkError
        If the broker has ended the transaction of its own accord.

    """
    before = identity_of(producer)
    producer.begin_transaction()
    sent = append(producer, [names[record.topic] for record in outgoing], outgoing)
    producer.flush(timeout=producer.config["delivery_timeout_ms"] / 1e3)
    ends = {}
    for record, future in zip(outgoing, sent, strict=True):
        at = future.get(timeout=_DONE_S)
        ends[record.topic, at.partition] = at.offset + 1
    producer.send_offsets_to_transaction(dict(offsets), membership)
    producer.commit_transaction()
    if identity_of(producer) != before:
        raise LinkError("broker has ended the transaction of its own accord")
    return ends


def check_sizes(outgoing: Iterable[Outgoing]) -> None:
    """Refuse records that no topic takes."""
    for record in outgoing:
        size = size_of(record) + _BESIDES
        if size > MAX_RECORD_BYTES:
            raise ValueError(
                f"record for {record.topic} has {size} bytes, expected at most {MAX_RECORD_BYTES}"
            )
