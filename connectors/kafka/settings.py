"""Settings of a Kafka connection: servers, security, timeouts, and allowed names.

Kafka's client library is not needed here, so a configuration is checked without importing it.

"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_DEFAULT_PORT = 9092
_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+)(?::([0-9]{1,5}))?")
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Encryption and authentication; the repr contains no secrets.

    Parameters
    ----------
    protocol
        One of PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL.
    mechanism, username, password
        For the two SASL protocols; the mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
    ca_file
        Certificates of the trusted authorities, instead of the system's.
    cert_file, key_file, key_password
        Client certificate, if the broker requires one, its key, and the key's password.

    Examples
    --------
    >>> Security(protocol="SASL_SSL", mechanism="PLAIN", username="ada", password="secret")
    Security(protocol='SASL_SSL', mechanism='PLAIN', username='ada', ca_file=None, ...)
    >>> Security(protocol="TLS")
    Traceback (most recent call last):
    ValueError: protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, got 'TLS'

    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(
                f"protocol must be one of {', '.join(PROTOCOLS)}, got {self.protocol!r}"
            )
        if self.sasl:
            if self.mechanism not in MECHANISMS:
                raise ValueError(
                    f"mechanism must be one of {', '.join(MECHANISMS)}, got {self.mechanism!r}"
                )
            if not self.username or self.password is None:
                raise ValueError(f"protocol {self.protocol} needs a username and a password")
        elif self.mechanism or self.username or self.password:
            raise ValueError(
                f"protocol {self.protocol} takes no mechanism, username or password; did you mean "
                f"SASL_{self.protocol}?".replace("SASL_SASL_", "SASL_")
            )
        if not self.tls and (self.ca_file or self.cert_file or self.key_file):
            raise ValueError(f"protocol {self.protocol} takes no certificates; did you mean SSL?")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs a cert_file beside it")

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether the client logs in."""
        return self.protocol.startswith("SASL")

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context, None without TLS.

        Raises
        ------
        ValueError
            If a file is missing or does not contain what it should.

        """
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise ValueError(f"ca_file {self.ca_file} cannot be used: {brief(error)}") from error
        if self.cert_file is not None:
            try:
                # The password is a function: without one OpenSSL would prompt on the terminal.
                context.load_cert_chain(
                    self.cert_file, self.key_file, password=lambda: self.key_password or ""
                )
            except OSError as error:
                raise ValueError(
                    f"cert_file {self.cert_file} with its key and key_password cannot be used: "
                    f"{brief(error)}"
                ) from error
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Timeouts in seconds.

    A dead worker delays its successor for `session_s`. A transaction in which it was killed lasts
    at most `transaction_s` and up to ten more seconds, if no other worker ends it.

    Parameters
    ----------
    connect_s
        Until a broker answers, at the start.
    request_s
        One request.
    delivery_s
        One record, retries included; at least `request_s`.
    transaction_s
        One batch, from its first record to its commit.
    session_s
        A worker without a heartbeat for longer loses its partitions.
    stall_s
        A restore that makes no progress.
    close_s
        Closing a connection.
    look_s
        Between two checks of its topics by a worker.
    silent_s
        A reader without new records for longer asks whether the broker is there.

    """

    connect_s: float = 10.0
    request_s: float = 5.0
    delivery_s: float = 12.0
    transaction_s: float = 15.0
    session_s: float = 10.0
    stall_s: float = 60.0
    close_s: float = 5.0
    look_s: float = 5.0
    silent_s: float = 30.0


def parse_servers(servers: str) -> tuple[str, ...]:
    """Return servers with their ports; the error names one that is not valid.

    Examples
    --------
    >>> parse_servers("one, two:9093,[::1]")
    ('one:9092', 'two:9093', '[::1]:9092')
    >>> parse_servers("one:kafka")
    Traceback (most recent call last):
    ValueError: server must be host:port, got 'one:kafka'

    """
    return tuple(parse_server(part.strip()) for part in servers.split(","))


def check_name(name: str, what: str = "topic") -> str:
    """Return a valid name of a topic, or of `what`; the error says what is wrong with it.

    Examples
    --------
    >>> check_name("streamgp.events")
    'streamgp.events'
    >>> check_name("events/1")
    Traceback (most recent call last):
    ValueError: topic must have 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', got ...

    """
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(
            f"{what} must have 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', got "
            f"{name!r}"
        )
    return name


def parse_server(text: str) -> str:
    """Return one server as `host:port`; the error says what was expected."""
    match = _SERVER.fullmatch(text)
    port = int(match[2] or _DEFAULT_PORT) if match else 0
    if match is None or not 1 <= port <= 65535:
        raise ValueError(f"server must be host:port, got {text!r}")
    return f"{match[1]}:{port}"


def brief(error: BaseException) -> str:
    """Return the first line of an error's text, or its type if it has none."""
    lines = str(error).splitlines()
    return lines[0].removesuffix(": None").rstrip(": ") if lines else type(error).__name__


# --- The same settings for Kafka's Java client, as in Flink.

_LOGIN = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.{}LoginModule"


def client_properties(servers: str, security: Security) -> dict[str, str]:
    """Return servers and security as the Java client's properties, certificates included.

    Parameters
    ----------
    servers
        `host:port,host:port`.
    security
        As for a worker. A key file must be PKCS #8, the only format that Java reads.

    Raises
    ------
    OSError
        If a certificate cannot be read.

    Examples
    --------
    >>> client_properties("one:9092", Security())
    {'bootstrap.servers': 'one:9092', 'security.protocol': 'PLAINTEXT'}
    >>> ada = Security(protocol="SASL_SSL", mechanism="PLAIN", username="ada", password="secret")
    >>> client_properties("one:9092", ada)["sasl.jaas.config"]
    'org.apache...plain.PlainLoginModule required username="ada" password="secret";'

    """
    found = {"bootstrap.servers": servers, "security.protocol": security.protocol}
    if security.sasl:
        plain = security.mechanism == "PLAIN"
        module = _LOGIN.format("plain.Plain" if plain else "scram.Scram")
        user, password = _quoted(security.username or ""), _quoted(security.password or "")
        found["sasl.mechanism"] = security.mechanism or ""
        found["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if security.ca_file is not None:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.certificates"] = Path(security.ca_file).read_text(encoding="utf-8")
    if security.cert_file is not None:
        key_file = security.key_file or security.cert_file
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.certificate.chain"] = Path(security.cert_file).read_text(
            encoding="utf-8"
        )
        found["ssl.keystore.key"] = Path(key_file).read_text(encoding="utf-8")
        if security.key_password is not None:
            found["ssl.key.password"] = security.key_password
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
