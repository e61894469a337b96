"""Properties of Kafka's Java client, for the security settings of a configuration."""

from __future__ import annotations

from pathlib import Path

from connectors.kafka.settings import Security

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
        found["ssl.truststore.certificates"] = Path(security.ca_file).read_text()
    if security.cert_file is not None:
        key_file = security.key_file or security.cert_file
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.certificate.chain"] = Path(security.cert_file).read_text()
        found["ssl.keystore.key"] = Path(key_file).read_text()
        if security.key_password is not None:
            found["ssl.key.password"] = security.key_password
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
