"""Settings of Kafka's Java client for servers and security."""

from connectors.flink.client_properties import client_properties
from connectors.kafka.settings import Security


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
