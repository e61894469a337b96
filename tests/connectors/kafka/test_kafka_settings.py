"""Names, servers and security of a Kafka cluster, as a configuration has them."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.settings import Security, check_name, client_properties, parse_servers


def test_the_client_of_kafka_is_loaded_only_where_kafka_is_asked_for():
    program = (
        "import sys, connectors, streamgp, connectors.topics, connectors.kafka.settings\n"
        "import streamgp.cli.main\n"
        "[getattr(p, n) for p in (connectors, streamgp) for n in p.__all__]\n"
        "assert 'kafka' not in sys.modules\n"
        "import connectors.kafka.topics\n"
        "assert 'kafka' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_servers_have_the_usual_port_unless_they_name_another():
    assert parse_servers("one,two:9093, 10.0.0.1:1") == ("one:9092", "two:9093", "10.0.0.1:1")
    assert parse_servers("[::1],[fe80::1]:9093") == ("[::1]:9092", "[fe80::1]:9093")


@pytest.mark.parametrize(
    "servers", ["", "one,", "one:", "one:0", "one:65536", "::1", "one two", "user@one", "one/x"]
)
def test_what_is_no_server_is_refused(servers):
    with pytest.raises(ValueError, match=r"^server must be host:port, got '"):
        parse_servers(servers)


@given(st.text(min_size=1, max_size=300))
def test_a_topic_has_the_characters_and_the_length_that_kafka_allows(name):
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    if set(name) <= allowed and len(name) <= 249 and name not in (".", ".."):
        assert check_name(name) == name
    else:
        with pytest.raises(ValueError, match=r"^topic must have 1 to 249 of the characters"):
            check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a\n", "ä", "x" * 250])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=r"^instance must have 1 to 249 of the characters"):
        check_name(name, "instance")


SASL = {"mechanism": "PLAIN", "username": "ada", "password": "secret"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"protocol": "TLS"}, "protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (SASL, "protocol PLAINTEXT takes no mechanism, username or password; did you mean SASL_"),
        (SASL | {"protocol": "SSL"}, "protocol SSL takes no .*; did you mean SASL_SSL"),
        (SASL | {"protocol": "SASL_SSL", "mechanism": "GSSAPI"}, "mechanism must be one of PLAIN"),
        (SASL | {"protocol": "SASL_SSL", "mechanism": None}, "mechanism must be one of PLAIN"),
        (SASL | {"protocol": "SASL_SSL", "username": ""}, "SASL_SSL needs a username and a pass"),
        (SASL | {"protocol": "SASL_SSL", "password": None}, "SASL_SSL needs a username and a p"),
        ({"ca_file": "x"}, "protocol PLAINTEXT takes no certificates; did you mean SSL"),
        ({"protocol": "SSL", "key_file": "x"}, "key_file needs a cert_file beside it"),
    ],
)
def test_security_that_does_not_fit_together_is_refused(settings, text):
    with pytest.raises(ValueError, match=text) as caught:
        Security(**settings)
    assert "secret" not in str(caught.value)


def test_secrets_are_not_shown():
    security = Security(
        protocol="SASL_SSL", mechanism="PLAIN", username="ada", password="p1", key_password="p2"
    )
    assert "p1" not in repr(security)
    assert "p2" not in repr(security)
    assert "ada" in repr(security)


def test_an_invalid_file_of_certificates_is_named(tmp_path):
    missing, wrong = tmp_path / "missing.pem", tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for path, text in ((missing, "No such file"), (wrong, "no certificate")):
        with pytest.raises(ValueError, match=rf"^ca_file {path} cannot be used: .*{text}"):
            Security(protocol="SSL", ca_file=str(path)).context()
    with pytest.raises(ValueError, match=rf"^cert_file {missing} with its key and key_password"):
        Security(protocol="SSL", cert_file=str(missing)).context()


def test_without_tls_there_is_no_context():
    assert Security().context() is None


# --- properties of the Java client


def test_a_password_goes_into_the_login_module_quoted():
    security = Security(
        protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", username="ada", password='\\"'
    )
    found = client_properties("one:9092,two:9093", security)
    assert found["bootstrap.servers"] == "one:9092,two:9093"
    assert found["sasl.mechanism"] == "SCRAM-SHA-256"
    module, rest = found["sasl.jaas.config"].split(" ", 1)
    assert module.endswith("kafka.common.security.scram.ScramLoginModule")
    assert rest == r'required username="ada" password="\\\"";'


def test_certificates_go_along_as_texts(tmp_path):
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"{name} of PEM")
    security = Security(
        protocol="SSL",
        ca_file=str(tmp_path / "ca"),
        cert_file=str(tmp_path / "cert"),
        key_file=str(tmp_path / "key"),
        key_password="secret",
    )
    found = client_properties("one:9092", security)
    assert found == {
        "bootstrap.servers": "one:9092",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "ca of PEM",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "cert of PEM",
        "ssl.keystore.key": "key of PEM",
        "ssl.key.password": "secret",
    }
