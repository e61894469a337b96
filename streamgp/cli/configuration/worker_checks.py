"""What cannot be together in the settings of a worker.

Types and ranges are in `worker_settings`; here stands what one setting has to do with another.

"""

from __future__ import annotations

import re

from streamgp.cli.configuration.addresses import parse_address
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_settings import (
    TOPIC_FIELDS,
    Name,
    Security,
    Topics,
    WorkerConfig,
)

_LONGEST_TOPIC = 249  # Kafka's limit
_TLS_SETTINGS = ("ca_file", "cert_file", "key_file", "key_password_env", "key_password_file")
_SASL_SETTINGS = ("mechanism", "username", "password_env", "password_file")


def check_worker(config: WorkerConfig, *, source: str) -> None:
    """Raise ConfigError if settings of a worker contradict each other."""
    if config.broker is not None:
        check_url(config.broker.url, where=f"{source}: broker")
        _check_security(config.broker.security, source)
    _check_topics(config.topics, source)


def check_url(url: str, *, where: str) -> None:
    """Raise ConfigError if the address of a broker is none."""
    try:
        parse_address(url)
    except ValueError as error:
        raise ConfigError(f"{where} {error}") from None


def check_name(name: str, *, where: str) -> None:
    """Raise ConfigError if a text from the command line cannot be a name.

    Examples
    --------
    >>> check_name("../up", where="--instance")
    Traceback (most recent call last):
    streamgp.cli.configuration.validation.ConfigError: --instance = "../up" is not ...

    """
    from msgspec import inspect

    from streamgp.cli.configuration.validation import check

    check(name, inspect.type_info(Name), where)


def _check_topics(topics: Topics, source: str) -> None:
    if topics.replication == 0:
        raise ConfigError(
            f"{source}: topics.replication = 0 is not allowed, expected -1 (what the broker is set "
            "to) or a whole number >= 1"
        )
    names: dict[str, str] = {}
    for role, name in topics.names().items():
        field = TOPIC_FIELDS[role]
        if len(name) > _LONGEST_TOPIC:
            raise ConfigError(
                f"{source}: topics.{field} has {len(name)} characters with the prefix, expected at "
                f"most {_LONGEST_TOPIC}"
            )
        if re.fullmatch(r"\.{1,2}", name):
            raise ConfigError(f"{source}: topics.{field} = {name!r} is no name of a topic")
        # Kafka itself refuses names that differ in nothing else: they share one metric.
        alike = name.replace(".", "_")
        if alike in names:
            raise ConfigError(
                f'{source}: topics.{names[alike]} and topics.{field} are both called "{name}" '
                '("." and "_" count as the same); give each its own name'
            )
        names[alike] = field


def _check_security(security: Security, source: str) -> None:
    where = f"{source}: broker.security"
    given = {name for name in Security.__struct_fields__ if getattr(security, name) is not None}
    with_sasl = security.protocol.startswith("SASL_")
    with_tls = security.protocol.endswith("SSL")
    for wanted, names, which in (
        (with_sasl, _SASL_SETTINGS, '"SASL_SSL" or "SASL_PLAINTEXT"'),
        (with_tls, _TLS_SETTINGS, '"SSL" or "SASL_SSL"'),
    ):
        for name in names:
            if name in given and not wanted:
                raise ConfigError(
                    f'{where}.{name} has no meaning with protocol = "{security.protocol}"; write '
                    f"protocol = {which}, or leave it out"
                )
    for name in ("password", "key_password"):
        if {f"{name}_env", f"{name}_file"} <= given:
            raise ConfigError(f"{where}: give {name}_env or {name}_file, not both")
    if with_sasl:
        for name in ("mechanism", "username"):
            if name not in given:
                raise ConfigError(
                    f'{where}.{name} is missing, which protocol = "{security.protocol}" needs'
                )
        if not {"password_env", "password_file"} & given:
            raise ConfigError(
                f"{where}: the password is missing; write password_env = the name of an "
                "environment variable, or password_file = the path of a file that holds it"
            )
    for name in ("key_file", "key_password_env", "key_password_file"):
        if name in given and "cert_file" not in given:
            raise ConfigError(f"{where}.{name} is of use with cert_file only; give both")
