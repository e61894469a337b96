"""Checkpoint of a group: its positions, and what it had written when it reached them.

A worker writes `state`, `consensus` and its positions in one transaction, but a broker makes the
parts of a transaction visible one after the other. A partition is therefore captured while it is at
rest: its end offsets are requested, then the positions, then the end offsets again. If there is no
open transaction before the first ends, and the second ends are equal to them, no batch has started
to write in between, and the positions are those of the last visible batch. Each partition is
captured at a time of its own; no key is in two partitions.

"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from connectors.kafka.admin import Administration
from connectors.kafka.client import CLIENT_ERRORS, Connection, within
from connectors.kafka.client_import import TopicPartition, committed, kafka_errors
from connectors.topics import COMPACTED, WORKER_INPUTS, BrokerError, Checkpoint, Place, TopicName

PATIENCE_S = 60.0
"""How long to wait for a partition to be at rest."""
_RETRY_MS = 2
_STABLE_WITHIN_MS = 200
_NAP_S = 0.005


def checkpoint(
    connection: Connection,
    administration: Administration,
    names: Mapping[TopicName, str],
    group: str,
    *,
    patience_s: float = PATIENCE_S,
) -> Checkpoint:
    """Return positions and ends of each partition at a time when the group had no transaction open.

    Raises
    ------
    BrokerError
        If a partition is not at rest in time, or the broker cannot be used.
    RefusedError
        If the positions do not belong to these topics.

    """
    administration.positions(group)  # checks that they belong to these topics
    left = set(range(administration.counts(["state"])["state"]))
    positions: dict[Place, int] = {}
    ends: dict[Place, int] = {}
    until = time.monotonic() + patience_s
    consumer = connection.consumer(names, group_id=group, retry_backoff_ms=_RETRY_MS)
    try:
        while left:
            for number in sorted(left):
                found = _still(consumer, administration, names, number)
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
        with suppress(*CLIENT_ERRORS):
            close = partial(consumer.close, autocommit=False)
            within(connection.timeouts.close_s, "close", close)
    heeded = {n: positions.get(("consensus", n), 0) for topic, n in ends if topic == "consensus"}
    return Checkpoint(positions=positions, ends=ends, heeded=heeded)


def _still(
    consumer: Any, administration: Administration, names: Mapping[TopicName, str], number: int
) -> tuple[dict[Place, int], dict[Place, int]] | None:
    """Return positions and ends of a partition, None if it was not at rest."""
    written, read = _places(names, COMPACTED, number), _places(names, WORKER_INPUTS, number)
    ends = administration.ends(written)
    if consumer.end_offsets(list(written)) != ends:  # the last stable offsets
        return None
    try:
        at = committed(consumer, read, _STABLE_WITHIN_MS)
    except kafka_errors.KafkaTimeoutError:
        return None  # a transaction that would change them is open
    if administration.ends(written) != ends:
        return None
    return (
        {read[place]: int(position.offset) for place, position in at.items()},
        {written[place]: end for place, end in ends.items()},
    )


def _places(
    names: Mapping[TopicName, str], topics: Iterable[TopicName], number: int
) -> dict[TopicPartition, Place]:
    return {TopicPartition(names[topic], number): (topic, number) for topic in topics}
