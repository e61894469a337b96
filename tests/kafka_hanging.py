"""Transactions that a broker has lost track of, ended as its operator would.

A broker that goes down during a transaction may come back with records of it that no coordinator
knows. No worker reads past them, and groups do not get their positions, until an operator ends the
transaction by hand (`kafka-transactions.sh abort`).

"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connectors.kafka.client import Connection
from connectors.kafka.client_import import TopicPartition

_OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


def end_hanging(servers: str) -> list[str]:
    """End all transactions that the broker has lost track of, and return them."""
    admin = Connection(servers).admin()
    try:
        places = [
            TopicPartition(topic["name"], partition["partition_index"])
            for topic in admin.describe_topics()
            for partition in topic["partitions"]
        ]
        known = [each for listed in admin.list_transactions().values() for each in listed]
        found = list(hanging(admin.describe_producers(places), known))
        for spec in found:
            admin.abort_transaction(spec)
    finally:
        admin.close()
    return [f"{spec.topic_partition}, producer {spec.producer_id}" for spec in found]


def hanging(states: Any, known: Iterable[Any]) -> Iterable[Any]:
    """Find the open transactions that no coordinator knows.

    Parameters
    ----------
    states
        For each partition, what its leader knows about producers.
    known
        The transactions that coordinators know.

    """
    from kafka.admin import AbortTransactionSpec  # once the client is loaded without its warnings

    going_on = {each.producer_id for each in known if each.state.value not in _OVER}
    for place, state in states.items():
        for producer in state.active_producers:
            is_open = producer.current_transaction_start_offset >= 0
            if is_open and producer.producer_id not in going_on:
                yield AbortTransactionSpec(
                    place,
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.coordinator_epoch,
                )
