"""Open transactions of other programs: what they hold back, since when, and whose they are.

Workers read what was committed, up to the first record of a transaction that is still open: the
last stable offset of the partition. Everything behind waits, committed or not.

"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from connectors.kafka.client import CLIENT_ERRORS, OffsetSpec, TopicPartition
from connectors.kafka.client_import import IsolationLevel
from connectors.topics import Obstacle

_OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


def open_transactions(
    client: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Obstacle]:
    """Return what holds partitions back, of those that are held back.

    Who may not describe producers and transactions learns only at which offset they are.

    Parameters
    ----------
    client
        One for topics and groups.
    partitions
        The partitions.

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


def _transactions(client: Any, producers: Iterable[int]) -> dict[int, tuple[str, float | None]]:
    """Return transactional id and beginning of the transactions of some producers."""
    found: dict[int, tuple[str, float | None]] = {}
    wanted = sorted(set(producers))
    if not wanted:
        return found
    with suppress(*CLIENT_ERRORS):
        for listed in client.list_transactions(producer_id_filters=wanted).values():
            for each in listed:
                if each.state.value not in _OVER:
                    found[each.producer_id] = each.transactional_id, None
    with suppress(*CLIENT_ERRORS):
        names = [name for name, _ in found.values()]
        for name, each in client.describe_transactions(names).items():
            if each.transaction_start_time_ms >= 0:
                found[each.producer_id] = name, each.transaction_start_time_ms / 1e3
    return found


def _obstacle(
    offset: int, producer: int | None, known: dict[int, tuple[str, float | None]]
) -> Obstacle:
    since = None
    if producer is None:
        whose = "an open transaction"
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
