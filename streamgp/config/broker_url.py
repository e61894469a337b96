"""Addresses of brokers: `kafka://host:9092,host2:9092`, `file://DIR` and `memory://`.

Only what an address says stands here; `streamgp.apps.deployment` opens what is there.

"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from streamgp.config.validation import shown

ALLOWED = '"kafka://HOST:PORT,HOST:PORT", "file://DIR" or "memory://"'
_DEFAULT_PORT = 9092
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Some servers of a Kafka cluster, as `host:port,host:port`."""

    servers: str


@dataclass(frozen=True, slots=True)
class FileAddress:
    """A directory that holds the topics in a database."""

    directory: Path


@dataclass(frozen=True, slots=True)
class MemoryAddress:
    """Topics that last as long as the process."""


Address: TypeAlias = KafkaAddress | FileAddress | MemoryAddress


def parse_address(url: str) -> Address:
    """Read the address of a broker.

    Parameters
    ----------
    url
        The address. A Kafka server without a port has 9092; a path that does not begin with a
        slash is relative to the working directory, and stands for itself: `%20` is no space.

    Raises
    ------
    ValueError
        If it is none; the text follows on the name of whatever held the address.

    Examples
    --------
    >>> parse_address("kafka://one,two:9093")
    KafkaAddress(servers='one:9092,two:9093')
    >>> parse_address("file://./data").directory.as_posix()
    'data'
    >>> parse_address("http://one")
    Traceback (most recent call last):
    ValueError: = "http://one" is not allowed, expected "kafka://HOST:PORT,HOST:PORT", ...

    """
    if "@" in url and not url.startswith("file://"):
        # Not repeated: what stands before the @ is a password as often as not.
        raise ValueError(
            "holds a user name or a password; leave them out, and say in [broker.security] where "
            "the password is kept"
        )
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "memory" and not rest:
        return MemoryAddress()
    if separator and scheme == "file" and rest and "\0" not in rest:
        return FileAddress(Path(rest))
    if separator and scheme == "kafka" and rest:
        return KafkaAddress(",".join(_server(url, part.strip()) for part in rest.split(",")))
    raise ValueError(f"= {shown(url)} is not allowed, expected {ALLOWED}")


def _server(url: str, text: str) -> str:
    match = _HOST.fullmatch(text)
    port = int(match[2] or _DEFAULT_PORT) if match else 0
    if match is None or not 1 <= port <= 65535:
        raise ValueError(
            f"= {shown(url)} is not allowed: {shown(text)} is no server, expected HOST:PORT, as in "
            f'"kafka://host:{_DEFAULT_PORT}"'
        )
    return f"{match[1]}:{port}"
