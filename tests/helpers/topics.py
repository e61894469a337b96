"""Contents of topics, and waiting for what other threads and processes bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from connectors.topics import Outgoing, Record, TopicName, Topics
from connectors.wire.codec import decode

PATIENCE_S = 120.0


def everything(topics: Topics, *names: TopicName, patience_s: float = PATIENCE_S) -> list[Record]:
    """Return all records of some topics."""
    end = time.monotonic() + patience_s
    found: list[Record] = []
    with closing(topics.reader(names)) as reader:
        while not reader.caught_up:
            assert time.monotonic() < end, f"not read to the end of {names} in {patience_s} s"
            found += reader.poll(0.1)
    return found


def write(topics: Topics, *records: Outgoing) -> None:
    """Write records, as a client may."""
    with closing(topics.writer("test")) as writer:
        for record in records:
            writer.send(record)


def again(record: Record) -> Outgoing:
    """Return a record to be written once more, to the same partition."""
    return Outgoing(
        topic=record.topic,
        partition=record.partition,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def said(topics: Topics, *names: TopicName) -> list[Any]:
    """Return all messages of some topics."""
    return [decode(record.value) for record in everything(topics, *names) if record.value]


def wait_until(
    is_so: Callable[[], Any], patience_s: float = PATIENCE_S, *, pause_s: float = 0.01
) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < end, "the condition did not hold in time"
        time.sleep(pause_s)
