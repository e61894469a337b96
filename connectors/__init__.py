"""Connectors of streamgp to the outside world: bytes, topics, files and clocks.

A `Source` delivers inputs, a `Sink` accepts messages, a `Broker` provides both by topic, and `run`
drives a loop between them. Nothing here depends on a learner. Names are imported on first use.

"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from streamgp.common.renames import current_name

if TYPE_CHECKING:
    from connectors.broker import Broker, MemoryBroker, Received, Sink, Source, open_broker
    from connectors.jsonl import MessageFiles, read_messages
    from connectors.runner import RunResult, run
    from connectors.storage.snapshots import (
        StateDirectory,
        StateError,
        read_snapshot,
        write_snapshot,
    )
    from connectors.storage.sqlite import SqliteStore
    from connectors.tables.log_source import AnnotatedLog, LogSource
    from connectors.tables.readers import TableError
    from connectors.wire.codec import DecodeError, decode, encode

PROJECT = "streamgp"
"""The project of this package: the package index has another package of this name."""

_HOMES = {
    "AnnotatedLog": "connectors.tables.log_source",
    "Broker": "connectors.broker",
    "DecodeError": "connectors.wire.codec",
    "LogSource": "connectors.tables.log_source",
    "MemoryBroker": "connectors.broker",
    "MessageFiles": "connectors.jsonl",
    "Received": "connectors.broker",
    "RunResult": "connectors.runner",
    "Sink": "connectors.broker",
    "Source": "connectors.broker",
    "SqliteStore": "connectors.storage.sqlite",
    "StateDirectory": "connectors.storage.snapshots",
    "StateError": "connectors.storage.snapshots",
    "TableError": "connectors.tables.readers",
    "decode": "connectors.wire.codec",
    "encode": "connectors.wire.codec",
    "open_broker": "connectors.broker",
    "read_messages": "connectors.jsonl",
    "read_snapshot": "connectors.storage.snapshots",
    "run": "connectors.runner",
    "write_snapshot": "connectors.storage.snapshots",
}

__all__ = [
    "AnnotatedLog",
    "Broker",
    "DecodeError",
    "LogSource",
    "MemoryBroker",
    "MessageFiles",
    "Received",
    "RunResult",
    "Sink",
    "Source",
    "SqliteStore",
    "StateDirectory",
    "StateError",
    "TableError",
    "decode",
    "encode",
    "open_broker",
    "read_messages",
    "read_snapshot",
    "run",
    "write_snapshot",
]


_RENAMED = {"SqliteShelf": "SqliteStore"}


if not TYPE_CHECKING:  # to type checkers, every name would exist

    def __getattr__(name: str) -> object:
        name = current_name(__name__, name, _RENAMED)
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
