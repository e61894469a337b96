"""Where streamgp meets the outside: bytes, topics, files and clocks.

A `Source` gives inputs, a `Sink` takes messages, a `Broker` gives both by topic, and `run` drives a
loop between them. Nothing here knows a learner. Names load on first use.

"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.annotated import AnnotatedLog
    from connectors.broker import Broker, Received, Sink, Source, open_broker
    from connectors.codec import DecodeError, decode, encode
    from connectors.files import MessageFiles, read_messages
    from connectors.logs import LogSource
    from connectors.memory import MemoryBroker
    from connectors.runner import RunResult, run
    from connectors.shelf import SqliteShelf
    from connectors.snapshots import StateDirectory, StateError, read_snapshot, write_snapshot
    from connectors.streams import TableError

_HOMES = {
    "AnnotatedLog": "connectors.annotated",
    "Broker": "connectors.broker",
    "DecodeError": "connectors.codec",
    "LogSource": "connectors.logs",
    "MemoryBroker": "connectors.memory",
    "MessageFiles": "connectors.files",
    "Received": "connectors.broker",
    "RunResult": "connectors.runner",
    "Sink": "connectors.broker",
    "Source": "connectors.broker",
    "SqliteShelf": "connectors.shelf",
    "StateDirectory": "connectors.snapshots",
    "StateError": "connectors.snapshots",
    "TableError": "connectors.streams",
    "decode": "connectors.codec",
    "encode": "connectors.codec",
    "open_broker": "connectors.broker",
    "read_messages": "connectors.files",
    "read_snapshot": "connectors.snapshots",
    "run": "connectors.runner",
    "write_snapshot": "connectors.snapshots",
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
    "SqliteShelf",
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


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
