"""Addresses of brokers: `kafka://host:9092,host2:9092` and `file://DIR`.

`SCHEMES` has a row for each kind of address, which parses it and opens the topics there. Connectors
are imported only then, so that no client of an unused broker is loaded.

"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streamgp.common.validation import path_in_url
from streamgp.config.secrets import kept_secret, readable
from streamgp.config.validation import ConfigError, is_host, shown

if TYPE_CHECKING:
    from connectors.kafka.settings import Security
    from connectors.topics import Topics
    from streamgp.config.settings import WorkerConfig


class Address(Protocol):
    """Parsed address of a broker."""

    def open(self, config: WorkerConfig) -> Topics:
        """Return the topics at this address.

        Raises
        ------
        ConfigError
            If something that the broker requires (a password, a certificate) is missing.
        BrokerError
            If the broker cannot be reached.

        """


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    """Some servers of a Kafka cluster, as `host:port,host:port`."""

    servers: str

    def open(self, config: WorkerConfig) -> Topics:
        """Return the topics of a cluster, with the credentials of the configuration."""
        security = self.security(config)
        from connectors.kafka.topics import KafkaTopics

        try:
            return KafkaTopics(
                self.servers,
                names=config.topics.names(),
                partitions=config.topics.partitions,
                replication=config.topics.replication,
                security=security,
                renew=partial(self.security, config),
            )
        except ValueError as error:  # an invalid certificate, for instance
            raise ConfigError(f"broker.security: {error}") from None

    def security(self, config: WorkerConfig) -> Security:
        """Return the credentials of the configuration.

        Raises
        ------
        ConfigError
            If a password or a certificate is missing.

        """
        assert config.broker is not None
        settings = config.broker.security
        password = kept_secret("password", settings.password_env, settings.password_file)
        key_password = kept_secret(
            "key_password", settings.key_password_env, settings.key_password_file
        )
        for name in ("ca_file", "cert_file", "key_file"):
            readable(name, getattr(settings, name))
        from connectors.kafka.settings import Security

        return Security(
            protocol=settings.protocol,
            mechanism=settings.mechanism,
            username=settings.username,
            password=password,
            ca_file=settings.ca_file,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
            key_password=key_password,
        )


@dataclass(frozen=True, slots=True)
class FileAddress:
    """A directory that holds the topics in a database."""

    directory: Path

    def open(self, config: WorkerConfig) -> Topics:  # noqa: ARG002
        from connectors.embedded.topics import EmbeddedTopics

        return EmbeddedTopics(self.directory)


def _kafka(rest: str) -> KafkaAddress | None:
    servers = [_server(f"kafka://{rest}", part.strip()) for part in rest.split(",") if rest]
    return KafkaAddress(",".join(servers)) if servers else None


def _file(rest: str) -> FileAddress | None:
    return FileAddress(path_in_url(rest)) if rest and "\0" not in rest else None


class Scheme(NamedTuple):
    """Kind of address.

    Parameters
    ----------
    form
        Form of such an address, for messages.
    read
        Parses the part after `://`; None if it is malformed.

    """

    form: str
    read: Callable[[str], Address | None]


SCHEMES: dict[str, Scheme] = {
    "kafka": Scheme("kafka://HOST:PORT,HOST:PORT", _kafka),
    "file": Scheme("file://DIR", _file),
}
"""The kinds of addresses by their prefix; a new kind is a new row."""

ALLOWED = " or ".join(f'"{scheme.form}"' for scheme in SCHEMES.values())
"""The forms of addresses, for messages and help texts."""


def parse_address(url: str) -> Address:
    """Parse the address of a broker.

    Parameters
    ----------
    url
        The address. The port of a Kafka server defaults to 9092; a path that does not begin with a
        slash is relative to the working directory. Paths are taken literally: `%20` is not a space.

    Raises
    ------
    ValueError
        If it is not one; the text continues a message that begins with the setting's name.

    Examples
    --------
    >>> parse_address("kafka://one,two:9093")
    KafkaAddress(servers='one:9092,two:9093')
    >>> parse_address("file://./data").directory.as_posix()
    'data'
    >>> parse_address("http://one")
    Traceback (most recent call last):
    ValueError: = "http://one" is not allowed, expected "kafka://HOST:PORT,HOST:PORT" or "file://DIR"

    """
    if ("@" in url or "?" in url) and not url.startswith("file://"):
        # Not repeated: what stands before the @, or after the ?, may well contain a password.
        raise ValueError(
            "holds a user name, a password or options; leave them out, and say in "
            "[broker.security] where the password is kept"
        )
    name, separator, rest = url.partition("://")
    if separator and name in SCHEMES:
        address = SCHEMES[name].read(rest)
        if address is not None:
            return address
    raise ValueError(f"= {shown(url)} is not allowed, expected {ALLOWED}")


def _server(url: str, text: str) -> str:
    from connectors.kafka.settings import parse_server

    with suppress(ValueError):
        server = parse_server(text)
        if is_host(server.rpartition(":")[0]):
            return server
    raise ValueError(
        f"= {shown(url)} is not allowed: {shown(text)} is not a server, expected HOST:PORT, "
        'as in "kafka://host:9092"'
    )
