"""A deployment: the configuration that workers, annotators and feeders share, and its topics.

The connectors are imported where an address asks for them, so that nobody loads the client of a
broker that is not used.

"""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from connectors.records import Topics
from streamgp.cli.configuration.addresses import FileAddress, KafkaAddress, parse_address
from streamgp.cli.configuration.config import load_worker
from streamgp.cli.configuration.secrets_kept import kept_secret, readable
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_checks import check_url
from streamgp.cli.configuration.worker_settings import Broker, WorkerConfig

config_argument = click.argument(
    "config_file", metavar="CONFIG.toml", type=click.Path(path_type=Path)
)
"""The argument of every command of a deployment."""

broker_option = click.option(
    "--broker",
    metavar="URL",
    help="Where the topics are, in place of what the file says: kafka://HOST:PORT,..., "
    "file://DIR or memory://.",
)
"""The option of every command of a deployment."""


def load_deployed(path: Path, *, broker: str | None = None) -> WorkerConfig:
    """Read the configuration of a deployment.

    Parameters
    ----------
    path
        The file.
    broker
        Address of a broker that replaces the one in the file; what the file says about security
        stays.

    Returns
    -------
    The configuration, with a broker.

    Raises
    ------
    ConfigError
        If the file cannot be read or something in it is wrong, or if there is no broker.

    """
    config = load_worker(path)
    if broker is not None:
        check_url(broker, where="--broker")
        there = config.broker
        config = replace(
            config,
            broker=Broker(url=broker) if there is None else replace(there, url=broker),
        )
    if config.broker is None:
        raise ConfigError(
            f'{path}: broker is missing; write broker = "kafka://HOST:PORT" above the first '
            'section, or "file://DIR" to try without Kafka'
        )
    return config


def damage(error: Exception, config: WorkerConfig) -> str:
    """Say what is wrong with what the topics hold; where they are files, which to bring back.

    Examples
    --------
    >>> config = WorkerConfig(broker=Broker(url="file://topics"))
    >>> damage(ValueError("state:0:7 is nothing that this streamgp writes"), config)
    'state:0:7 is nothing that this streamgp writes; here the topics are files: bring back topics...

    """
    assert config.broker is not None
    address = parse_address(config.broker.url)
    if not isinstance(address, FileAddress):
        return str(error)
    state, consensus = (address.directory / f"{name}.jsonl" for name in ("state", "consensus"))
    return (
        f"{error}; here the topics are files: bring back {state} and {consensus} as a worker left "
        "them, or begin anew in another directory"
    )


def open_topics(config: WorkerConfig) -> Topics:
    """Return the topics of a deployment.

    Raises
    ------
    ConfigError
        If there is no broker, or what it asks for (a password, a certificate) is not there.
    LinkError
        If the broker cannot be reached.

    """
    if config.broker is None:
        raise ConfigError("broker is missing")
    address = parse_address(config.broker.url)
    if isinstance(address, KafkaAddress):
        return _kafka_topics(address, config, config.broker)
    if isinstance(address, FileAddress):
        from connectors.files.topics import FileTopics

        return FileTopics(address.directory)
    from connectors.memory.topics import MemoryTopics

    return MemoryTopics()


def _kafka_topics(address: KafkaAddress, config: WorkerConfig, broker: Broker) -> Topics:
    settings = broker.security
    password = kept_secret("password", settings.password_env, settings.password_file)
    key_password = kept_secret(
        "key_password", settings.key_password_env, settings.key_password_file
    )
    for name in ("ca_file", "cert_file", "key_file"):
        readable(name, getattr(settings, name))
    from connectors.kafka.settings import Security
    from connectors.kafka.topics import KafkaTopics

    try:
        return KafkaTopics(
            address.servers,
            names=config.topics.names(),
            partitions=config.topics.partitions,
            replication=config.topics.replication,
            security=Security(
                protocol=settings.protocol,
                mechanism=settings.mechanism,
                username=settings.username,
                password=password,
                ca_file=settings.ca_file,
                cert_file=settings.cert_file,
                key_file=settings.key_file,
                key_password=key_password,
            ),
        )
    except ValueError as error:  # a certificate that is none, and the like
        raise ConfigError(f"broker.security: {error}") from None
