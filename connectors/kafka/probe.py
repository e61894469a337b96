"""Knocks at the door of a Kafka broker: is there somebody, does he speak Kafka, does he let us in?

The client itself tries in silence until its time is up, and then knows no reason: a refusal and a
wire that was cut look the same to it.

"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from connectors.topics import BrokerError, RefusedError

_AGAIN_S = 0.2
_ONE_TRY_S = 3.0
# Numbers of requests, each with the lowest version that brokers of today still answer.
_API_VERSIONS = (18, 0)
_METADATA = (3, 4)
_SASL_HANDSHAKE = (17, 1)
_SASL_AUTHENTICATE = (36, 0)
_NO_TOPICS = struct.pack(">i?", 0, False)
_UNSUPPORTED_MECHANISM = 33
_LARGEST_ANSWER = 2**20


class Login(Protocol):
    """Protocol of a login: the exchange that authenticates a client."""

    def auth_bytes(self) -> bytes:
        """Return what to say next."""
        ...

    def receive(self, auth_bytes: bytes) -> object:
        """Take the answer; ValueError if it is not the one of a broker that knows the password."""
        ...

    def is_done(self) -> bool:
        """Whether all has been said."""
        ...


class _RefusedError(Exception):
    """The broker has understood and says no: trying again does not help."""


class _ClosedError(Exception):
    """The broker hung up, or said something that is not Kafka."""


def probe(
    servers: Sequence[str],
    *,
    context: ssl.SSLContext | None,
    login: tuple[str, Callable[[], Login]] | None,
    until: float,
) -> None:
    """Return when one of the servers has let us in.

    Parameters
    ----------
    servers
        Each `host:port`; an IPv6 address in brackets.
    context
        What TLS needs, None to go without.
    login
        Name of a mechanism and what makes one, None to go without.
    until
        When to give up, by the monotonic clock.

    Raises
    ------
    BrokerError
        If none has; the text has the reason for each.

    """
    while True:
        reasons = []
        for server in servers:
            wait_s = min(_ONE_TRY_S, max(0.1, until - time.monotonic()))
            try:
                reason = _knock(server, context, login, wait_s)
            except _RefusedError as error:
                raise RefusedError(f"broker {server} {error}") from error
            if reason is None:
                return
            reasons.append(f"{server}: {reason}")
        if time.monotonic() + _AGAIN_S >= until:
            raise BrokerError(f"broker cannot be reached: {'; '.join(reasons)}")
        time.sleep(_AGAIN_S)


def _knock(
    server: str,
    context: ssl.SSLContext | None,
    login: tuple[str, Callable[[], Login]] | None,
    wait_s: float,
) -> str | None:
    """Return what is wrong, or None."""
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    try:
        plain = socket.create_connection((host, int(port)), timeout=wait_s)
    except socket.gaierror:
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
                return _enter(plain, login)
            with context.wrap_socket(plain, server_hostname=host) as encrypted:
                return _enter(encrypted, login)
        except ssl.SSLCertVerificationError as error:
            raise _RefusedError(
                f"shows a certificate that is not trusted ({error.verify_message.rstrip('.')}); is "
                "ca_file right?"
            ) from error
        except ssl.SSLError as error:
            said = (error.reason or str(error)).lower().replace("_", " ")
            return f"TLS failed ({said}); does it speak TLS, and want a client certificate?"
        except TimeoutError:
            return "connected, but no answer"
        except OSError as error:
            return f"connected, but then: {error.strerror or error}"


def _enter(connection: socket.socket, login: tuple[str, Callable[[], Login]] | None) -> str | None:
    try:
        _ask(connection, _API_VERSIONS)
    except _ClosedError:
        return "connected, but it does not answer as Kafka does; does it want TLS (protocol)?"
    if login is not None:
        _log_in(connection, *login)
    try:
        _ask(connection, _METADATA, _NO_TOPICS)
    except _ClosedError:
        return "connected, but it lets nobody in without a password (protocol)"
    return None


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
            raise _RefusedError(f"lets nobody in under this name and password: {reason}")
        try:
            login.receive(answer[8 + length :])
        except ValueError as error:
            raise _RefusedError(f"does not know the password that it asks for: {error}") from error


def _ask(connection: socket.socket, request: tuple[int, int], body: bytes = b"") -> bytes:
    """Send a request, and return what follows the number of the answer."""
    head = struct.pack(">hhih", *request, request[0], -1)
    try:
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        with connection.makefile("rb") as stream:
            size, number = struct.unpack(">ii", stream.read(8))
            if number != request[0] or not 4 <= size <= _LARGEST_ANSWER:
                raise _ClosedError
            return stream.read(size - 4)
    except (struct.error, ConnectionError) as error:
        raise _ClosedError from error


def _names(array: bytes) -> str:
    (count,) = struct.unpack_from(">i", array)
    names, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from(">h", array, at)
        names.append(array[at + 2 : at + 2 + length].decode(errors="replace"))
        at += 2 + length
    return ", ".join(sorted(names))
