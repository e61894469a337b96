"""A deployment: the configuration that workers, annotators and producers share, and its topics."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

import click
from msgspec.structs import replace

from connectors.topics import Outgoing, Reader, Record, TopicName, Topics
from connectors.wire import state_records
from connectors.wire.state_records import CONFIGURATION, HistoryError
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import number, progress
from streamgp.apps.deployment.answer_keys import signatures_of
from streamgp.base import Budget
from streamgp.config.broker_url import (
    Address,
    FileAddress,
    KafkaAddress,
    parse_address,
)
from streamgp.config.build import build_model, build_total_budget, build_windows
from streamgp.config.load import check_url, load_worker
from streamgp.config.settings import Broker, WorkerConfig
from streamgp.config.validation import ConfigError


def load_deployed(path: Path, *, broker: str | None = None) -> WorkerConfig:
    """Read the configuration of a deployment.

    Parameters
    ----------
    broker
        Address of the broker; replaces the one in the file, whose security settings still apply.

    Returns
    -------
    The configuration, with a broker.

    Raises
    ------
    ConfigError
        If the file cannot be read or is not valid, or if there is no broker.

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


def broker_of(config: WorkerConfig) -> Broker:
    """Return the address and the security settings of a deployment's broker."""
    assert config.broker is not None  # `load_deployed` refuses a configuration without one
    return config.broker


def address_of(config: WorkerConfig) -> Address:
    """Return the address of the topics of a deployment."""
    return parse_address(broker_of(config).url)


def damage(error: Exception, config: WorkerConfig) -> str:
    """Return a message about damaged topics; it names the file to restore, if there is one.

    Examples
    --------
    >>> config = WorkerConfig(broker=Broker(url="file://topics"))
    >>> damage(ValueError("state:0:7 is nothing that this streamgp writes"), config)
    'state:0:7 is nothing that this streamgp writes; restore topics/topics.db as a worker left...

    """
    address = address_of(config)
    if not isinstance(address, FileAddress):
        return str(error)
    from connectors.embedded.directory import DATABASE

    return (
        f"{error}; restore {address.directory / DATABASE} as a worker left it, or start over in "
        "another directory"
    )


@contextmanager
def readable_topics(config: WorkerConfig) -> Iterator[None]:
    """Let damaged topics end the command with a message that says what to do."""
    try:
        yield
    except HistoryError as error:
        raise click.ClickException(damage(error, config)) from None


def open_topics(config: WorkerConfig) -> Topics:
    """Return the topics of a deployment.

    Raises
    ------
    ConfigError
        If a password or certificate for the broker is missing.
    BrokerError
        If the broker cannot be reached.

    """
    return address_of(config).open(config)


# --- Whether topics and configuration fit each other, before a worker starts.


def total_budget_of(config: WorkerConfig, *, source: str) -> Budget | None:
    """Return the budget of all keys together, None if there is none."""
    total = build_total_budget(config, source=source)
    if total is not None and not config.worker.keyed:
        raise ConfigError(
            f"{source}: total_budget needs a learner for each key, but worker.keyed is false; put "
            "the limit into [budget]"
        )
    return total


def build_loops(config: WorkerConfig, *, source: str) -> LoopSettings:
    """Return the settings of a worker's loops."""
    total = total_budget_of(config, source=source)
    return LoopSettings(
        model=build_model(config, source=source),
        keyed=config.worker.keyed,
        **config.loop_rules().arguments,
        max_keys=config.loop.max_keys if config.worker.keyed else None,
        total_budget=total,
        windows=build_windows(config, label="y", source=source, keep_changes=True),
        signatures=signatures_of(config),
    )


def make_topics(topics: Topics, config: WorkerConfig) -> list[str]:
    """Create the missing topics; return what was done, one line each.

    Raises
    ------
    ConfigError
        If the configured worker could not use them.

    """
    is_kafka = isinstance(address_of(config), KafkaAddress)
    if is_kafka and not config.worker.keyed and config.topics.partitions != 1:
        raise ConfigError(
            f"topics.partitions = {config.topics.partitions}, but one learner for all keys "
            "(worker.keyed = false) needs 1; write partitions = 1 in section [topics]"
        )
    return topics.create()


def topic_problems(topics: Topics, config: WorkerConfig) -> list[str]:
    """Return the problems of the topics for this configuration, one line each."""
    problems = list(topics.problems())
    if not problems and not config.worker.keyed and (n := topics.n_partitions()) != 1:
        problems = [
            f"the topics have {n} partitions, but one learner for all keys (worker.keyed = false) "
            "needs 1; make topics with one partition, or write keyed = true"
        ]
    return problems


# --- Connections of commands other than the worker to the topics of a deployment.
#
# These commands join no group and create no topics; errors become one line on stderr.


PATIENCE_S = 0.5
"""How long to wait for the next records of a topic before looking at something else."""
_CURE = "--create-topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    config: WorkerConfig
    topics: Topics

    @property
    def url(self) -> str:
        return broker_of(self.config).url

    @property
    def is_in_directory(self) -> bool:
        """Whether the topics are a database in a directory, which no broker looks after."""
        return isinstance(address_of(self.config), FileAddress)

    @property
    def group(self) -> str:
        return self.config.worker.group

    def n_workers(self) -> int:
        """Return how many workers are running."""
        return self.topics.n_members(self.group)

    def name_of(self, topic: TopicName) -> str:
        return self.config.topics.names()[topic]


@contextmanager
def visit(config_file: Path, broker: str | None = None) -> Iterator[Deployment]:
    """Open the topics of a deployment, and close them at the end.

    Raises
    ------
    ConfigError
        If the configuration is wrong.
    click.ClickException
        If topics are missing.
    BrokerError
        If the broker cannot be used.

    """
    config = load_deployed(config_file, broker=broker)
    topics = open_topics(config)
    try:
        # These commands need fewer rights than a worker, but the topics must exist.
        if missing := next((line for line in topics.problems() if _CURE in line), None):
            where = [] if broker is None else ["--broker", broker]
            command = shlex.join(["streamgp", "check", str(config_file), *where, _CURE])
            raise click.ClickException(f"{missing}: `{command}`")
        yield Deployment(config=config, topics=topics)
    finally:
        # If the broker is gone, closing may fail too, which is then irrelevant.
        with suppress(OSError):
            topics.close()


def everything(topics: Topics, *names: TopicName, what: str) -> Iterator[Record]:
    """Return all records that are in some topics now, with a progress bar on a terminal."""
    with closing(topics.reader(names)) as reader:
        yield from all_of(reader, what=what)


def with_waiting(there: Deployment, records: Iterable[Record]) -> Iterator[Record]:
    """Yield records of topics, then those that are to take examples back once a worker reads them.

    In a directory, these are not in `consensus` before.
    """
    yield from records
    if there.is_in_directory:
        checkpoint = there.topics.checkpoint(there.group)
        for offset, null in enumerate(checkpoint.waiting, checkpoint.ends["consensus", 0]):
            yield Record(
                topic="consensus", partition=0, offset=offset, key=null.key, value=None, at=time()
            )


def write_all(deployment: Deployment, records: Iterable[Outgoing], *, program: str) -> None:
    """Write records to their topics; return once they are stored."""
    with closing(deployment.topics.writer(program)) as writer:
        for record in records:
            writer.send(record)
        writer.flush()


def all_of(reader: Reader, *, what: str) -> Iterator[Record]:
    """Return all records that were there when a reader was opened; see `everything`."""
    n = 0
    with progress() as show:
        while not reader.caught_up:
            for record in reader.poll(PATIENCE_S):
                n += 1
                show(f"{what}: {number(n, 'record')}", None)
                yield record


# --- State, written in place of the workers, which must not be running.


def check_idle(there: Deployment, doing: str) -> None:
    """Refuse to continue while workers are running."""
    n = there.n_workers()
    if n:
        raise click.ClickException(
            f"{number(n, 'worker')} of group {there.group} still running; stop them all, then "
            f"{doing} (one that was stopped or killed counts for ten seconds)"
        )


def check_still_idle(there: Deployment, reader: Reader, doing: str) -> None:
    """Refuse to overwrite what a worker has written since the topics were read."""
    check_idle(there, doing)
    if reader.poll(PATIENCE_S):
        raise click.ClickException(
            "a worker has learned something in the meantime; stop all workers, then run this again"
        )


def marks(partitions: Sequence[int], configuration: Mapping[str, Any]) -> list[Outgoing]:
    """Return the records that sign some partitions with a configuration."""
    return [
        state_records.state("", CONFIGURATION, configuration, partition) for partition in partitions
    ]


def write_state(there: Deployment, records: Sequence[Outgoing]) -> None:
    """Write state in the place of a worker; return once it is stored."""
    if there.is_in_directory:
        # In a directory only a worker can write state, and only one at a time: act as this worker.
        topics = there.topics
        with closing(topics.client(group=there.group, instance="upkeep", max_records=1)) as client:
            client.commit(records)
        return
    write_all(there, records, program="upkeep")
