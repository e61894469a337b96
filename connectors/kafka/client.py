"""Connection to a Kafka cluster: servers, security, settings, client errors, first contact.

The client library's defaults suit other programs; those that would lose records, wait for minutes
or flood the log are replaced here, in one place. Its own log lines are silenced: the text of a
`BrokerError` says once what is wrong.

"""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Protocol, TypeVar

from connectors.kafka.client_import import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
    fit_fetches,
    get_sasl_mechanism,
    kafka_errors,
    keep_requests,
    name_leaderless,
    request_topics_at_once,
)
from connectors.kafka.record_codec import unpack_here
from connectors.kafka.settings import Security, Timeouts, brief, parse_servers
from connectors.topics import (
    ALL_TOPICS,
    BrokerError,
    LockedOutError,
    Outgoing,
    Place,
    RefusedError,
    TopicName,
)
from connectors.wire.outbound import size_of

MAX_RECORD_BYTES = 16 * 2**20 + 64 * 2**10
"""The largest record that our own topics accept: 16 MiB, and room for key and headers."""
CLIENT_ERRORS = (kafka_errors.KafkaError, OSError, RuntimeError, ValueError)
"""Errors of the client when a broker fails; ValueError for a partition that does not exist."""
# Those of a worker that the broker has given up, while it was silent.
_OUTLIVED = (
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.InvalidProducerIdMappingError,
    kafka_errors.IllegalGenerationError,
    kafka_errors.UnknownMemberIdError,
)
# The latter is about a user who may write to no topic at all; the client wraps it.
_FORBIDDEN = (kafka_errors.AuthorizationError, kafka_errors.ClusterAuthorizationFailedError)
_Result = TypeVar("_Result")
# A connection that idles is kept alive, or found dead in a minute and a half: firewalls forget it
# silently, some after four minutes, and a worker without work writes nothing for longer.
_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), n)
        for name, n in _ALIVE.items()
        if hasattr(socket, name)
    ),
]
_RENEWED = (
    "it did before: put the new password or certificate where the configuration says, and start "
    "again"
)
_BESIDES = 1024  # bytes of what encloses a record
_RETRY_MS = 2

# During an outage the client writes 150 lines a minute. A program that wants them sets a level.
_client_log = logging.getLogger("kafka")
if _client_log.level == logging.NOTSET:
    _client_log.setLevel(logging.CRITICAL + 1)


class Connection:
    """Creates clients of the cluster that holds a deployment's topics.

    Parameters
    ----------
    servers
        Some of its servers, as `host:port,host:port`.
    security
        Encryption and authentication.
    renew
        Returns them as they are now, for each new connection; None if they stay as they are. If it
        raises a ValueError, the former ones are used.
    timeouts
        Timeouts of all requests.
    names
        Names of the topics there; None if they are called by their roles.

    Attributes
    ----------
    names
        The name of each topic on the cluster.
    roles
        The topic of each name.

    """

    def __init__(
        self,
        servers: str,
        security: Security | None = None,
        timeouts: Timeouts | None = None,
        *,
        names: Mapping[TopicName, str] | None = None,
        renew: Callable[[], Security] | None = None,
    ) -> None:
        self.names = {name: name for name in ALL_TOPICS} if names is None else dict(names)
        self.roles = {called: name for name, called in self.names.items()}
        self.servers = parse_servers(servers)
        self.security = security or Security()
        self._renew = renew
        self.timeouts = timeouts or Timeouts()
        self._answered: str | None = None  # the server that was reached last, which is tried first
        self._context: _TLSofNow | None = None
        if (first := self.security.context()) is not None:
            self._context = _TLSofNow(first, lambda: self._renewed().context())

    def partition(self, topic: TopicName, number: int) -> TopicPartition:
        """Return a partition under its topic's name on the cluster."""
        return TopicPartition(self.names[topic], number)

    def place(self, partition: TopicPartition) -> Place:
        """Return the topic and number of a partition; the inverse of `partition`."""
        return self.roles[partition.topic], partition.partition

    def consumer(self, **options: Any) -> Any:
        """Return a consumer that never commits by itself and reads only committed records.

        `options` are further settings of the client.
        """
        settings = {
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "allow_auto_create_topics": False,
            # Fetches are small, or answers would come late; one still holds a batch.
            "max_partition_fetch_bytes": 256 * 2**10,
            "fetch_max_bytes": 8 * 2**20,
            # A resumed partition waits until the fetch that was sent without it returns.
            "fetch_max_wait_ms": 100,
            "metrics_enabled": False,
        }
        consumer = self._make(KafkaConsumer, settings | options)
        request_topics_at_once(consumer)
        fit_fetches(consumer)
        name_leaderless(consumer)
        unpack_here(consumer, self.roles)
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
            "linger_ms": 0,  # batches form anyway, behind those in flight
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
        }
        return self._make(KafkaProducer, settings | options)

    def transactional_producer(self, transactional_id: str) -> Any:
        """Return a producer whose records become visible with its transactions."""
        producer = self.producer(
            transactional_id=transactional_id,
            transaction_timeout_ms=_ms(self.timeouts.transaction_s),
            # A cluster gives up a broker that was killed after nine seconds, and then chooses.
            delivery_timeout_ms=_ms(max(self.timeouts.delivery_s, self.timeouts.transaction_s)),
            # The client sends one batch of a partition at a time: each costs a round trip. Readers
            # get a batch as a whole, also those on slow networks.
            batch_size=512 * 2**10,
            # One request may hold all of a batch.
            request_timeout_ms=_ms(self.timeouts.delivery_s),
            # The broker refuses a transaction while it is still completing the previous one.
            retry_backoff_ms=_RETRY_MS,
        )
        keep_requests(producer)
        return producer

    def admin(self) -> Any:
        """Return a client for topics and groups."""
        return self._make(KafkaAdminClient, {})

    def broker_error(self, error: BaseException, doing: str) -> BrokerError:
        """Convert an error of the client to a `BrokerError`."""
        where = ",".join(self.servers)
        match error:
            case BrokerError():
                return error
            case kafka_errors.SaslAuthenticationFailedError():
                user = self.security.username
                return LockedOutError(
                    f"broker {where} does not let {user!r} in: {brief(error)}; {_RENEWED}"
                )
            case _ if _is_of(error, *_FORBIDDEN):
                user = f"user {self.security.username!r}" if self.security.sasl else "this client"
                return RefusedError(f"{user} has no right to {doing} at {where}: {brief(error)}")
            case kafka_errors.MessageSizeTooLargeError():
                return RefusedError(
                    f"broker {where} refused to {doing}: a record is larger than max.message.bytes "
                    "of its topic; `streamgp check` says which topic should take more, "
                    f"{MAX_RECORD_BYTES} is enough for all"
                )
            case kafka_errors.InvalidSessionTimeoutError():
                return RefusedError(
                    f"broker {where} refuses workers whose session lasts "
                    f"{self.timeouts.session_s:g} s; it must lie between its "
                    "group.min.session.timeout.ms and group.max.session.timeout.ms"
                )
            case _ if _is_of(error, kafka_errors.InvalidTransactionTimeoutError):
                return RefusedError(
                    f"broker {where} refuses transactions that may last "
                    f"{self.timeouts.transaction_s:g} s; set its transaction.max.timeout.ms to "
                    f"{_ms(self.timeouts.transaction_s)} or more"
                )
            case kafka_errors.InconsistentGroupProtocolError():
                return BrokerError(
                    f"broker {where} refused to {doing}: a program that is no worker is in the "
                    f"group; give it one of its own ({brief(error)})"
                )
            case _ if _is_misdated(error):
                return BrokerError(
                    f"broker {where} refused to {doing}: the clock of this machine, which dates "
                    f"records, differs too much from the broker's; set it ({brief(error)})"
                )
            case kafka_errors.CoordinatorNotAvailableError() | kafka_errors.NotCoordinatorError():
                return BrokerError(
                    f"broker {where} failed to {doing}: it has no coordinator for the group "
                    f"({brief(error)}); if it is new, start again, else look at the topic "
                    "__consumer_offsets, which needs as many brokers as "
                    "offsets.topic.replication.factor says"
                )
            case _ if _is_of(error, *_OUTLIVED):
                return BrokerError(
                    f"broker {where} refused to {doing}: this program was silent for too long, and "
                    "its work was given to others or undone; start it again, nothing is lost "
                    f"({brief(error)})"
                )
            case kafka_errors.LeaderNotAvailableError() | kafka_errors.UnknownBrokerIdError():
                return BrokerError(
                    f"broker {where} failed to {doing}: no broker with a copy of one of the "
                    f"partitions is up; `streamgp check` says which is down ({brief(error)})"
                )
            case kafka_errors.UnknownTopicOrPartitionError():
                return BrokerError(
                    f"broker {where} failed to {doing}: a topic is missing, or was deleted "
                    f"meanwhile; `streamgp check` says which ({brief(error)})"
                )
            case kafka_errors.NodeNotReadyError():
                return BrokerError(
                    f"broker {where} did not answer in time to {doing}: it is away, or a quota "
                    f"(request_percentage) delays this client ({brief(error)})"
                )
            case _ if is_late(error):
                return BrokerError(f"broker {where} did not answer in time to {doing}")
            case (
                kafka_errors.OutOfOrderSequenceNumberError() | kafka_errors.UnknownProducerIdError()
            ):
                return BrokerError(
                    f"broker {where} refused to {doing}: it lacks records that were sent before, "
                    f"as after a connection that broke ({brief(error)})"
                )
            case _:
                return BrokerError(f"broker {where} failed to {doing}: {brief(error)}")

    def why_away(self, error: BaseException, doing: str) -> str:
        """Return why the broker does not answer: what a new connection meets, or else `error`.

        Raises
        ------
        LockedOutError
            If the broker does not let a new connection in.

        """
        try:
            self._try(self.servers, time.monotonic() + self.timeouts.request_s)
        except LockedOutError:
            raise
        except BrokerError as met:
            return str(met)
        return str(self.broker_error(error, doing))

    def why_unreachable(self, host: str, port: int) -> str | None:
        """Return why the address that a server of the cluster gives to clients does not work."""
        servers = [_address(host, port)]
        return _try_advertised(servers, self._context, self._login(), _ONE_TRY_S)

    def _make(self, kind: Callable[..., Any], options: dict[str, Any]) -> Any:
        until = time.monotonic() + self.timeouts.connect_s
        servers = sorted(self.servers, key=lambda server: server != self._answered)
        self._answered = self._try(servers, until)
        try:
            return kind(
                # The client would wait for one that it draws, whether or not it answers.
                bootstrap_servers=[self._answered],
                bootstrap_timeout_ms=_ms(max(1.0, until - time.monotonic())),
                reconnect_backoff_max_ms=1000,
                socket_options=_SOCKET_OPTIONS,
                ssl_context=self._context,
                **self._who(),
                **{
                    "client_id": "streamgp",
                    "request_timeout_ms": _ms(self.timeouts.request_s),
                    **options,
                },
            )
        except CLIENT_ERRORS as error:
            raise self.broker_error(error, "connect") from error

    def _try(self, servers: Sequence[str], until: float) -> str:
        """Return the first of the servers that accepts us, see `probe`."""
        try:
            return probe(servers, context=self._context, login=self._login(), until=until)
        except RefusedError as error:
            if self._answered is None:
                raise
            raise LockedOutError(f"{error}; {_RENEWED}") from error

    def _renewed(self) -> Security:
        """Return the credentials as they are now, or as they last were if they cannot be read."""
        if self._renew is not None:
            with suppress(ValueError):
                self.security = self._renew()
        return self.security

    def _who(self) -> dict[str, Any]:
        security = self.security
        return {
            "security_protocol": security.protocol,
            "sasl_mechanism": security.mechanism,
            "sasl_plain_username": security.username,
            "sasl_plain_password": lambda: self._renewed().password,
        }

    def _login(self) -> tuple[str, Callable[[], Login]] | None:
        name = self.security.mechanism
        return None if name is None else (name, partial(get_sasl_mechanism(name), **self._who()))


class _TLSofNow:
    """TLS contexts, one for each connection, with what the files of the certificates hold by then.

    The client of Kafka, too, uses nothing but this method. While the files cannot be used, as when
    they are being replaced, it is the last context.
    """

    def __init__(self, first: ssl.SSLContext, make: Callable[[], ssl.SSLContext | None]) -> None:
        self._last = first
        self._make = make

    def wrap_socket(self, plain: socket.socket, **options: Any) -> ssl.SSLSocket:
        with suppress(ValueError):
            self._last = self._make() or self._last
        return self._last.wrap_socket(plain, **options)


def is_late(error: BaseException) -> bool:
    """Whether an error of the client says that an answer did not come in time."""
    return _is_of(error, kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError)


def _is_misdated(error: BaseException) -> bool:
    """Whether the broker refuses times of records; of several in a batch only the text says so."""
    return isinstance(error, kafka_errors.InvalidTimestampError) or (
        isinstance(error, kafka_errors.InvalidRecordError) and "Timestamp" in str(error)
    )


def _is_of(error: BaseException, *kinds: type[BaseException]) -> bool:
    """Whether an error is of a kind; one within a transaction may be wrapped, as its text."""
    return isinstance(error, kinds) or any(kind.__name__ in str(error) for kind in kinds)


def within(timeout_s: float, doing: str, call: Callable[[], _Result]) -> _Result:
    """Return what a call returns, or raise what it raises, but wait no longer than the timeout.

    Many calls of the client have no timeout of their own. A call that takes longer continues on its
    own thread, and its result is lost.

    Examples
    --------
    >>> within(1.0, "add", lambda: 1 + 1)
    2
    >>> within(0.0123, "sleep", lambda: time.sleep(0.2))
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
        raise BrokerError(f"broker took more than {round(timeout_s, 2):g} s to {doing}")
    return results[0]


def close_consumer(connection: Connection, consumer: Any) -> None:
    """Close a consumer without a commit; a client that fails to close is left to itself."""
    with suppress(*CLIENT_ERRORS):  # it would hide the error that ended the reading
        close = partial(consumer.close, autocommit=False)
        within(connection.timeouts.close_s, "close", close)


def check_sizes(outgoing: Iterable[Outgoing]) -> None:
    """Refuse records that no topic accepts."""
    for record in outgoing:
        size = size_of(record) + _BESIDES
        if size > MAX_RECORD_BYTES:
            raise ValueError(
                f"record for {record.topic} has {size} bytes, expected at most {MAX_RECORD_BYTES}"
            )


def _ms(seconds: float) -> int:
    return round(1e3 * seconds)


# --- First contact: is there a server, does it speak Kafka, does it accept the login?
#
# The client itself retries silently until its timeout and then gives no reason: it cannot tell a
# refusal from a broken connection.

_AGAIN_S = 0.2
_ONE_TRY_S = 3.0
_N_ADVERTISED = 3
# API keys of requests, each with the lowest version that current brokers still support.
_API_VERSIONS = (18, 0)
_METADATA = (3, 4)
_WITH_TOPIC_IDS = 10  # the version of this request; 2.5 was the first to fence lost members
_SASL_HANDSHAKE = (17, 1)
_SASL_AUTHENTICATE = (36, 0)
_NO_TOPICS = struct.pack(">i?", 0, False)
_UNSUPPORTED_MECHANISM = 33
_LARGEST_ANSWER = 2**20
_NO_ANSWER = "it closes the connection"


class Login(Protocol):
    """Protocol of a login: the exchange that authenticates a client."""

    def auth_bytes(self) -> bytes:
        """Return the next bytes to send."""

    def receive(self, auth_bytes: bytes) -> object:
        """Process the answer; ValueError if the broker does not know the password."""

    def is_done(self) -> bool:
        """Whether the exchange is complete."""


class _RefusedError(Exception):
    """The broker understood the request and refused it: retrying does not help."""


class _ClosedError(Exception):
    """The broker closed the connection, or did not answer in Kafka's protocol."""


def probe(
    servers: Sequence[str],
    *,
    context: ssl.SSLContext | _TLSofNow | None,
    login: tuple[str, Callable[[], Login]] | None,
    until: float,
) -> str:
    """Return the first of the servers that accepts us, once one does.

    Parameters
    ----------
    servers
        Each as `host:port`; an IPv6 address in brackets.
    context
        TLS context, None to connect without TLS.
    login
        Name of a mechanism and a function that creates a login, None to connect without one.
    until
        When to give up, on the monotonic clock.

    Raises
    ------
    BrokerError
        If none has, or if those that have send clients to addresses where none does; the text gives
        the reason for each.

    """
    while True:
        begun, reasons = time.monotonic(), []
        for server in servers:
            wait_s = min(_ONE_TRY_S, max(0.1, until - time.monotonic()))
            try:
                reason = _try_server(server, context, login, wait_s)
            except _RefusedError as error:
                raise RefusedError(f"broker {server} {error}") from error
            if reason is None:
                return server
            reasons.append(f"{server}: {reason}")
        # A try that is shorter than this one could only say that there was no answer.
        now = time.monotonic()
        if now + _AGAIN_S + (now - begun) >= until:
            raise BrokerError(f"broker cannot be reached: {'; '.join(reasons)}")
        time.sleep(_AGAIN_S)


def _try_server(
    server: str,
    context: ssl.SSLContext | _TLSofNow | None,
    login: tuple[str, Callable[[], Login]] | None,
    wait_s: float,
    *,
    is_sent: bool = False,
) -> str | None:
    """Connect to a server and log in; return what went wrong, None if nothing did.

    The server then names the cluster's servers, each by the address at which clients are to reach
    it. If it was not `is_sent` to us by another one, one of these addresses must work, too.
    """
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    try:
        plain = socket.create_connection((host, int(port)), timeout=wait_s)
    except (socket.gaierror, UnicodeError):  # the latter if no host can have such a name
        return "there is no such host"
    except ConnectionRefusedError:
        return "connection refused"
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return error.strerror or str(error)
    with plain:
        try:
            if context is None:
                addresses = _handshake(plain, login)
            else:
                with context.wrap_socket(plain, server_hostname=host) as encrypted:
                    addresses = _handshake(encrypted, login)
        except _ClosedError as error:
            return f"connected, but {error}"
        except ssl.SSLError as error:
            return _tls_failure(error)
        except TimeoutError:
            return "connected, but no answer"
        except OSError as error:
            return f"connected, but then: {error.strerror or error}"
    if is_sent or not addresses or server in addresses:
        return None
    return _try_advertised(addresses[:_N_ADVERTISED], context, login, wait_s)


def _try_advertised(
    servers: Sequence[str],
    context: ssl.SSLContext | _TLSofNow | None,
    login: tuple[str, Callable[[], Login]] | None,
    wait_s: float,
) -> str | None:
    """Try the addresses to which a server sends clients, as `_try_server`, until one works."""
    reasons = []
    for server in servers:
        try:
            reason = _try_server(server, context, login, wait_s / len(servers), is_sent=True)
        except _RefusedError as error:
            reason = str(error)
        if reason is None:
            return None
        reasons.append(f"{server} ({reason})")
    return f"it sends clients to {', '.join(reasons)}; correct its advertised.listeners"


_OTHER_NAME = "write the broker's address as in its certificate"
_CURES = {  # by OpenSSL's X509_V_ERR_...
    9: "is the clock of this machine right?",  # not yet valid
    10: "renew it on the broker",  # expired
    62: _OTHER_NAME,  # of another host
    64: _OTHER_NAME,  # of another IP address
}


def _tls_failure(error: ssl.SSLError) -> str:
    """Return why TLS failed, where another try may help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        cure = _CURES.get(error.verify_code, "is ca_file right?")
        raise _RefusedError(
            f"shows a certificate that is not trusted ({error.verify_message.rstrip('.')}); {cure}"
        ) from error
    said = (error.reason or str(error)).lower().replace("_", " ")
    if "alert" in said and "certificate" in said:
        raise _RefusedError(
            f"does not accept the certificate of this client ({said}); has cert_file expired, or "
            "is it missing, or of an authority that the broker does not trust?"
        ) from error
    return f"TLS failed ({said}); does it speak TLS, and want a client certificate?"


def _handshake(
    connection: socket.socket, login: tuple[str, Callable[[], Login]] | None
) -> list[str]:
    """Log in; return the addresses at which clients are to reach the servers of the cluster."""
    try:
        answer = _ask(connection, _API_VERSIONS)
        latest = {key: version for key, _, version in struct.iter_unpack(">hhh", answer[6:])}
    except (_ClosedError, struct.error) as error:
        reason = "it does not answer as Kafka does; does it want TLS (protocol)?"
        raise _ClosedError(reason) from error
    if latest.get(_METADATA[0], 0) < _WITH_TOPIC_IDS:
        raise _RefusedError(
            "supports less than Apache Kafka 2.8, the oldest version that streamgp works with: it "
            "cannot tell a topic from a deleted one of the same name"
        )
    if login is not None:
        _log_in(connection, *login)
    try:
        return _advertised(_ask(connection, _METADATA, _NO_TOPICS))
    except (_ClosedError, struct.error) as error:
        raise _ClosedError("it refuses clients without a password (protocol)") from error


def _advertised(answer: bytes) -> list[str]:
    """Return the addresses in an answer about metadata, as `host:port`."""
    _, count = struct.unpack_from(">ii", answer)
    found, at = [], 8
    for _ in range(count):
        host, at = _text(answer, at + 4)
        (port,) = struct.unpack_from(">i", answer, at)
        _, at = _text(answer, at + 4)
        found.append(_address(host, port))
    return found


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _log_in(connection: socket.socket, name: str, make: Callable[[], Login]) -> None:
    wanted = name.encode()
    answer = _ask(connection, _SASL_HANDSHAKE, struct.pack(">h", len(wanted)) + wanted)
    (code,) = struct.unpack_from(">h", answer)
    if code == _UNSUPPORTED_MECHANISM:
        raise _RefusedError(f"does not know mechanism {name}, but {_names(answer[2:])}")
    if code:
        raise _RefusedError("asks for no password; is protocol right?")
    login = make()
    while not login.is_done():
        words = login.auth_bytes()
        answer = _ask(connection, _SASL_AUTHENTICATE, struct.pack(">i", len(words)) + words)
        code, length = struct.unpack_from(">hh", answer)
        length = max(length, 0)
        if code:
            reason = answer[4 : 4 + length].decode(errors="replace")
            raise _RefusedError(f"refuses this user name and password: {reason}")
        try:
            login.receive(answer[8 + length :])
        except ValueError as error:
            raise _RefusedError(f"does not know the password that it asks for: {error}") from error


def _ask(connection: socket.socket, request: tuple[int, int], body: bytes = b"") -> bytes:
    """Send a request and return the answer without its correlation id."""
    head = struct.pack(">hhih", *request, request[0], -1)
    try:
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        with connection.makefile("rb") as stream:
            size, number = struct.unpack(">ii", stream.read(8))
            if number != request[0] or not 4 <= size <= _LARGEST_ANSWER:
                raise _ClosedError(_NO_ANSWER)
            return stream.read(size - 4)
    except (struct.error, ConnectionError) as error:
        raise _ClosedError(_NO_ANSWER) from error


def _names(array: bytes) -> str:
    (count,) = struct.unpack_from(">i", array)
    names, at = [], 4
    for _ in range(count):
        name, at = _text(array, at)
        names.append(name)
    return ", ".join(sorted(names))


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Return the text at a position, "" for null, and its end."""
    (length,) = struct.unpack_from(">h", data, at)
    end = at + 2 + max(0, length)
    return data[at + 2 : end].decode(errors="replace"), end
