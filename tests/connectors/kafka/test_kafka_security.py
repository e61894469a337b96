"""Passwords, certificates and rights on a real broker, and what is said when they are wrong."""

import re
import time
from contextlib import closing

import pytest

from connectors.kafka.client import Connection
from connectors.kafka.client_import import kafka_errors
from connectors.kafka.settings import Security
from connectors.topics import BrokerError, LockedOutError, RefusedError
from tests.helpers.kafka_cases import (
    BUSY_S,
    PATIENCE_S,
    copy_all,
    error_of,
    linked,
    numbered,
    opened,
    read,
    write,
)
from tests.kafka_broker import USERS

ADA = {"username": "ada", "password": USERS["ada"]}
STRANGER = {"username": "stranger", "password": USERS["stranger"]}
PLAIN = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN"}
SCRAM = {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-256"}


@pytest.fixture
def broker(own_broker):
    return own_broker


def files(broker, *names):
    return {f"{name}_file": str(broker.directory / path) for name, path in names}


CA = ("ca", "ca.pem")
CERTIFICATE = (CA, ("cert", "client.pem"), ("key", "client.key"))


def ways_in(broker):
    return {
        "plain": (broker.sasl_servers, PLAIN | ADA),
        "scram": (broker.sasl_servers, SCRAM | ADA),
        "certificate": (broker.ssl_servers, {"protocol": "SSL"} | files(broker, *CERTIFICATE)),
        "both": (
            broker.sasl_ssl_servers,
            SCRAM | ADA | {"protocol": "SASL_SSL"} | files(broker, CA),
        ),
    }


@pytest.mark.parametrize("way", ["plain", "scram", "certificate", "both"])
def test_a_worker_does_its_work_over_every_kind_of_connection(broker, kafka_prefix, way):
    servers, settings = ways_in(broker)[way]
    with opened(servers, kafka_prefix, security=Security(**settings)) as topics:
        assert topics.problems() == []
        write(topics, *numbered("events", 3))
        with linked(topics, kafka_prefix + "g") as link:
            copy_all(link, 3)
            assert list(link.history({0: {}})) == []
        assert read(topics, "predictions") == [b"0", b"1", b"2"]


def refused(broker):
    wrong = {"username": "ada", "password": "wrong"}
    sasl, ssl, plain = broker.sasl_servers, broker.ssl_servers, broker.servers
    by_address = ssl.replace("localhost", "127.0.0.1")
    denied = "refuses this user name and password: Authentication failed"
    return {
        "password": (sasl, PLAIN | wrong, rf"^broker {sasl} {denied}: Invalid username or pass"),
        "password, scram": (sasl, SCRAM | wrong, rf"^broker {sasl} {denied} during .*invalid cred"),
        "mechanism": (
            sasl,
            SCRAM | ADA | {"mechanism": "SCRAM-SHA-512"},
            rf"^broker {sasl} does not know mechanism SCRAM-SHA-512, but PLAIN, SCRAM-SHA-256$",
        ),
        "password not asked for": (
            plain,
            PLAIN | ADA,
            rf"^broker {plain} asks for no password; is protocol right\?$",
        ),
        "password missing": (
            sasl,
            {},
            rf"^broker cannot be reached: {sasl}: connected, but it refuses clients without a pass",
        ),
        "tls missing": (
            ssl,
            {},
            rf"^broker cannot be reached: {ssl}: connected, but it does not answer as Kafka does; "
            r"does it want TLS \(protocol\)\?$",
        ),
        "tls not spoken": (
            plain,
            {"protocol": "SSL"},
            rf"^broker cannot be reached: {plain}: TLS failed \(.*\); does it speak TLS, and want",
        ),
        "authority": (
            ssl,
            {"protocol": "SSL"},
            rf"^broker {ssl} shows a certificate that is not trusted \(unable to get local issuer "
            r"certificate\); is ca_file right\?$",
        ),
        "name": (
            by_address,
            {"protocol": "SSL"} | files(broker, CA),
            rf"^broker {by_address} shows a certificate that is not trusted \(IP address mismatch",
        ),
    }


@pytest.mark.parametrize(
    "what",
    [
        "password",
        "password, scram",
        "mechanism",
        "password not asked for",
        "password missing",
        "tls missing",
        "tls not spoken",
        "authority",
        "name",
    ],
)
def test_a_refused_client_is_told_why(broker, what):
    servers, settings, text = refused(broker)[what]
    with opened(
        servers, "", create=False, timeouts={"connect_s": 1.0}, security=Security(**settings)
    ) as topics:
        problem = answered(lambda: told(topics))
        assert re.search(text, problem), problem
        for use in (
            lambda: topics.reader(["events"]),
            lambda: topics.writer("producer"),
            lambda: topics.client(group="g", instance="a", max_records=1),
        ):
            assert answered(lambda use=use: told_in_time(use)) == problem
    assert "wrong" not in problem
    assert USERS["ada"] not in problem


def answered(say):
    """Return what is said once the broker, which may be busy, has answered in time."""
    until = time.monotonic() + PATIENCE_S
    while "no answer" in (said := say()) and time.monotonic() < until:
        pass
    return said


def told_in_time(use):
    error, took_s = error_of(use)
    assert took_s < 2.0 + BUSY_S
    return str(error)


def told(topics):
    """Return what is wrong: a line where the broker refuses, an error where it may come back."""
    try:
        [problem] = topics.problems()
    except BrokerError as error:
        return str(error)
    return problem


def test_a_client_that_was_let_in_may_start_again_after_its_password_was_changed(broker):
    """It may find the new one at its next start, so it has lost the broker, and is not refused."""
    security = Security(**SCRAM | ADA)
    connection = Connection(broker.sasl_servers, security)
    with closing(Connection(broker.servers).admin()) as admin:
        with closing(connection.admin()):
            set_password(admin, "renewed")
        try:
            before, _ = error_of(connection.admin)
            idle, _ = error_of(lambda: connection.why_away(OSError("no answer"), "read topics"))
            anew, _ = error_of(Connection(broker.sasl_servers, security).admin)
            with closing(
                Connection(
                    broker.sasl_servers, Security(**SCRAM | ADA | {"password": "renewed"})
                ).admin()
            ) as renewed:
                assert renewed.list_topics() is not None
        finally:
            set_password(admin, USERS["ada"])
    assert isinstance(anew, RefusedError)
    assert isinstance(before, LockedOutError)
    assert isinstance(idle, LockedOutError)
    assert str(before) == (
        f"{anew}; it did before: put the new password or certificate where the configuration says, "
        "and start again"
    )
    late = connection.broker_error(kafka_errors.SaslAuthenticationFailedError("no"), "read topics")
    assert isinstance(late, LockedOutError)


@pytest.mark.parametrize("how", [PLAIN, SCRAM])
def test_a_new_connection_has_the_password_of_now(broker, how):
    kept = ["not there yet"]

    def read_again():
        if kept[-1] is None:
            raise ValueError("it cannot be read")
        return Security(**how | ADA | {"password": kept[-1]})

    connection = Connection(broker.sasl_servers, read_again(), renew=read_again)
    kept.append(USERS["ada"])
    kept.append(None)
    error, _ = error_of(connection.admin)
    assert isinstance(error, RefusedError)
    kept.pop()
    with closing(connection.admin()) as admin:
        assert admin.list_topics() is not None
    kept.append(None)
    with closing(connection.admin()) as admin:  # the last one that could be read
        assert admin.list_topics() is not None


def set_password(admin, password):
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

    admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("ada", ScramMechanism.SCRAM_SHA_256, password=password)]
    )
