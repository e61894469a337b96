"""The settings of a worker: its broker, its topics, and how it goes about its work.

They stand in the same file as those of a replay, which takes no notice of them; names, types,
ranges and defaults as in `settings`. Secrets are never settings: only where one is kept is.

"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from connectors.records import TopicName
from streamgp.cli.configuration.settings import Config, Count, Seconds, Section, Share, Text

# What Kafka allows in names of topics, and what is safe as the name of a directory.
_NAME = r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,200}\Z"
_NAME_WORDS = 'a name of at most 200 letters, digits, ".", "_" and "-"'
Name: TypeAlias = Annotated[str, Meta(pattern=f"^{_NAME}", extra={"expected": _NAME_WORDS})]
Prefix: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-zA-Z0-9._-]{0,150}\Z",
        extra={"expected": 'at most 150 letters, digits, ".", "_" and "-"'},
    ),
]
# Whoever writes the secret itself here shall not find it in a log.
Variable: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z",
        extra={"expected": "the name of an environment variable", "secret": True},
    ),
]
_PATH = r"^[^\0]+\Z"
FilePath: TypeAlias = Annotated[str, Meta(pattern=_PATH, extra={"expected": "a path"})]
SecretFile: TypeAlias = Annotated[
    str, Meta(pattern=_PATH, extra={"expected": "the path of a file", "secret": True})
]
Url: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        extra={"expected": 'an address, as in "kafka://host:9092"', "secret": True},
    ),
]
Protocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Replication: TypeAlias = Annotated[int, Meta(ge=-1, le=32767)]


class Security(Section, frozen=True, kw_only=True):
    """How to be let in by the broker, and how to know that it is the right one."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: Text | None = None
    password_env: Variable | None = None
    password_file: SecretFile | None = None
    ca_file: FilePath | None = None
    cert_file: FilePath | None = None
    key_file: FilePath | None = None
    key_password_env: Variable | None = None
    key_password_file: SecretFile | None = None


class Broker(Section, frozen=True, kw_only=True):
    """Where the topics are."""

    url: Url
    security: Security = Security()


class Topics(Section, frozen=True, kw_only=True):
    """What the topics are called, and how they are made."""

    prefix: Prefix = ""
    partitions: Count = 4
    replication: Replication = -1
    events: Name = "events"
    answers: Name = "answers"
    predictions: Name = "predictions"
    requests: Name = "requests"
    consensus: Name = "consensus"
    state: Name = "state"
    dead_letters: Name = "dead-letters"

    def names(self) -> dict[TopicName, str]:
        """Return what each topic is called on the broker.

        Examples
        --------
        >>> Topics(prefix="rooms.", dead_letters="refused").names()["dead-letters"]
        'rooms.refused'

        """
        return {role: self.prefix + getattr(self, field) for role, field in TOPIC_FIELDS.items()}


TOPIC_FIELDS: dict[TopicName, str] = {
    "events": "events",
    "answers": "answers",
    "predictions": "predictions",
    "requests": "requests",
    "consensus": "consensus",
    "state": "state",
    "dead-letters": "dead_letters",
}
"""The setting of each topic."""


class Worker(Section, frozen=True, kw_only=True):
    """How a worker goes about its work."""

    group: Name = "streamgp"
    instance: Name | None = None
    keyed: bool = True
    state: FilePath = "streamgp-state"
    batch: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    save_every_s: Seconds = 30.0
    max_bad_share: Share = 0.5
    leave: bool = False


class WorkerConfig(Config, frozen=True, kw_only=True):
    """The whole file: what a replay needs and what a worker needs."""

    broker: Broker | None = None
    topics: Topics = Topics()
    worker: Worker = Worker()


def replay_part(config: WorkerConfig) -> Config:
    """Return what a replay takes notice of.

    Examples
    --------
    >>> replay_part(WorkerConfig(seed=7, worker=Worker(batch=10))) == Config(seed=7)
    True

    """
    return Config(**{name: getattr(config, name) for name in Config.__struct_fields__})
