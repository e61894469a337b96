"""Connection to a Kafka cluster: servers, security, settings, errors of its clients.

The client's own defaults are made for other programs; those that would lose records, wait for
minutes or fill the log are replaced here, in one place. Its lines are silenced: what there is to
say is said once, in the text of a `BrokerError`.

"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from connectors.kafka.client_import import (
    ConfigResource,
    ConfigResourceType,
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    MemberState,
    OffsetAndMetadata,
    OffsetSpec,
    RangePartitionAssignor,
    TopicPartition,
    get_sasl_mechanism,
    kafka_errors,
)
from connectors.kafka.probe import probe
from connectors.kafka.record_codec import unpack_here
from connectors.kafka.settings import Security, Timeouts, brief, parse_servers
from connectors.topics import BrokerError, RefusedError, TopicName

__all__ = [
    "CLIENT_ERRORS",
    "MAX_RECORD_BYTES",
    "ConfigResource",
    "ConfigResourceType",
    "Connection",
    "ConsumerRebalanceListener",
    "MemberState",
    "OffsetAndMetadata",
    "OffsetSpec",
    "RangePartitionAssignor",
    "TopicPartition",
    "kafka_errors",
    "within",
]

MAX_RECORD_BYTES = 16 * 2**20 + 64 * 2**10
"""The largest record that our own topics take: 16 MiB and room for key and headers."""
CLIENT_ERRORS = (kafka_errors.KafkaError, OSError, RuntimeError, ValueError)
"""What the client raises when a broker fails it; ValueError for a partition that is not there."""
_Result = TypeVar("_Result")

# During an outage the client writes 150 lines a minute.
logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)


class Connection:
    """Makes clients of one cluster.

    Parameters
    ----------
    servers
        Some of its servers: `host:port,host:port`.
    security
        How they are talked to.
    timeouts
        How long that may take.

    """

    def __init__(
        self, servers: str, security: Security | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self.servers = parse_servers(servers)
        self.security = security or Security()
        self.timeouts = timeouts or Timeouts()
        self._context = self.security.context()

    def consumer(self, names: Mapping[TopicName, str], **options: Any) -> Any:
        """Return a consumer that commits nothing by itself and sees committed records only.

        Parameters
        ----------
        names
            What the topics that it reads are called on the broker.
        options
            Settings of the client.

        """
        settings = {
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "allow_auto_create_topics": False,
            # Small pieces of each partition, or answers would come late; a batch fits in one.
            "max_partition_fetch_bytes": 256 * 2**10,
            "fetch_max_bytes": 8 * 2**20,
            # A partition that is resumed waits until the fetch that went without it comes back.
            "fetch_max_wait_ms": 100,
            "metrics_enabled": False,
        }
        consumer = self._make(KafkaConsumer, settings | options)
        unpack_here(consumer, {called: name for name, called in names.items()})
        return consumer

    def producer(self, **options: Any) -> Any:
        """Return an idempotent producer."""
        settings = {
            "acks": "all",
            "enable_idempotence": True,
            "delivery_timeout_ms": _ms(self.timeouts.delivery_s),
            "max_block_ms": _ms(self.timeouts.delivery_s),
            "max_request_size": MAX_RECORD_BYTES + 2**10,
            "batch_size": 128 * 2**10,
            "linger_ms": 0,  # batches form by themselves, behind those that are under way
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }
        return self._make(KafkaProducer, settings | options)

    def admin(self) -> Any:
        """Return a client for topics and groups."""
        return self._make(KafkaAdminClient, {})

    def said(self, error: BaseException, doing: str) -> BrokerError:
        """Return an error of the client in words."""
        where = ",".join(self.servers)
        match error:
            case BrokerError():
                return error
            case kafka_errors.SaslAuthenticationFailedError():
                user = self.security.username
                return RefusedError(f"broker {where} does not let {user!r} in: {brief(error)}")
            case kafka_errors.AuthorizationError():
                user = f"user {self.security.username!r}" if self.security.sasl else "this client"
                return RefusedError(f"{user} has no right to {doing} at {where}: {brief(error)}")
            case kafka_errors.MessageSizeTooLargeError():
                return RefusedError(
                    f"broker {where} refused to {doing}: a record is larger than max.message.bytes "
                    "of its topic; `streamgp check` says which topic should take more"
                )
            case kafka_errors.KafkaTimeoutError():
                return BrokerError(f"broker {where} did not answer in time to {doing}")
            case _:
                return BrokerError(f"broker {where} failed to {doing}: {brief(error)}")

    def _make(self, kind: Callable[..., Any], options: dict[str, Any]) -> Any:
        until = time.monotonic() + self.timeouts.connect_s
        security = self.security
        who = {
            "security_protocol": security.protocol,
            "sasl_mechanism": security.mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": security.password,
        }
        login = None
        if security.mechanism is not None:
            login = security.mechanism, partial(get_sasl_mechanism(security.mechanism), **who)
        probe(self.servers, context=self._context, login=login, until=until)
        try:
            return kind(
                bootstrap_servers=list(self.servers),
                request_timeout_ms=_ms(self.timeouts.request_s),
                bootstrap_timeout_ms=_ms(max(1.0, until - time.monotonic())),
                reconnect_backoff_max_ms=1000,
                ssl_context=self._context,
                **who,
                **{"client_id": "streamgp", **options},
            )
        except CLIENT_ERRORS as error:
            raise self.said(error, "connect") from error


def within(timeout_s: float, doing: str, call: Callable[[], _Result]) -> _Result:
    """Return what a call returns, or raise what it raises, but do not wait for longer than this.

    A call that takes longer goes on by itself, and what comes of it is lost: many calls of the
    client have no timeout of their own.

    Examples
    --------
    >>> within(1.0, "add", lambda: 1 + 1)
    2
    >>> within(0.01, "sleep", lambda: time.sleep(0.2))
    Traceback (most recent call last):
    connectors.topics.BrokerError: broker took more than 0.01 s to sleep

    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, name=f"streamgp: {doing}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not results:
        raise BrokerError(f"broker took more than {timeout_s:g} s to {doing}")
    return results[0]


def _ms(seconds: float) -> int:
    return round(1e3 * seconds)
