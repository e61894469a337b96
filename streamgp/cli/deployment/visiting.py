"""How commands beside the workers come to the topics of a deployment, and leave them.

A visitor joins no group and makes no topics; what is wrong becomes one line on stderr.

"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from connectors.records import Reader, Record, TopicName, Topics
from streamgp.cli.configuration.addresses import MemoryAddress, parse_address
from streamgp.cli.configuration.worker_settings import WorkerConfig
from streamgp.cli.deployment.deployed import load_deployed, open_topics
from streamgp.cli.terminal import progress
from streamgp.cli.wording import number

_PATIENCE_S = 0.5
_CURE = "--create-topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A configuration and the topics that it names."""

    config: WorkerConfig
    topics: Topics

    @property
    def url(self) -> str:
        """Where the topics are."""
        assert self.config.broker is not None  # or it could not have been opened
        return self.config.broker.url

    @property
    def group(self) -> str:
        """The group of the workers."""
        return self.config.worker.group

    def n_workers(self) -> int:
        """Return how many workers are at work."""
        return self.topics.n_members(self.group)

    def name_of(self, topic: TopicName) -> str:
        """Return what a topic is called on the broker."""
        return self.config.topics.names()[topic]


@contextmanager
def visit(config_file: Path, broker: str | None = None) -> Iterator[Deployment]:
    """Open the topics of a deployment, and close them at the end.

    Parameters
    ----------
    config_file
        Its configuration.
    broker
        Address that replaces the one in the file.

    Raises
    ------
    ConfigError
        If the configuration is wrong.
    click.ClickException
        If topics are missing, or nobody else could see them.
    LinkError
        If the broker cannot be worked with.

    """
    config = load_deployed(config_file, broker=broker)
    assert config.broker is not None  # or it would not have been loaded
    if isinstance(parse_address(config.broker.url), MemoryAddress):
        raise click.ClickException(
            'topics at "memory://" end with the process that made them, and nobody else sees them; '
            'write broker = "kafka://HOST:PORT" or "file://DIR"'
        )
    topics = open_topics(config)
    try:
        # A visitor needs not all rights that a worker needs, but the topics must be there.
        missing = [line for line in topics.problems() if _CURE in line]
        if missing:
            raise click.ClickException("; ".join(missing))
        yield Deployment(config=config, topics=topics)
    finally:
        # Once the broker is gone closing may fail in its own way, which is then no news.
        with suppress(OSError):
            topics.close()


def everything(topics: Topics, *names: TopicName, what: str) -> Iterator[Record]:
    """Return all records that some topics hold now, with a bar on a terminal meanwhile.

    Parameters
    ----------
    topics
        The topics.
    names
        Which of them.
    what
        What is read, for whoever waits.

    """
    reader = topics.reader(names)
    try:
        yield from all_of(reader, what=what)
    finally:
        reader.close()


def all_of(reader: Reader, *, what: str) -> Iterator[Record]:
    """Return all records that were there when a reader was opened; see `everything`."""
    n = 0
    with progress() as show:
        while not reader.caught_up:
            for record in reader.poll(_PATIENCE_S):
                n += 1
                show(f"{what}: {number(n, 'record')}", 0.0)
                yield record
