"""A deployment's configuration, its topics by address, and its secrets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.kafka.settings import Security
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.config import settings
from streamgp.config.load import parse_worker
from streamgp.config.secrets import kept_secret, readable
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError

SECRET = "open sesame"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def config_of(text: str) -> WorkerConfig:
    return parse_worker(text, source="my.toml")


# --- the file and the option


def test_broker_of_the_command_line_replaces_the_address_and_keeps_the_security(
    tmp_path: Path,
) -> None:
    text = '[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "SSL"\n'
    path = written(tmp_path / "my.toml", text)
    config = load_deployed(path, broker="kafka://b:1")
    assert config.broker is not None
    assert (config.broker.url, config.broker.security) == (
        "kafka://b:1",
        settings.Security(protocol="SSL"),
    )


def test_broker_may_come_from_the_command_line_alone(tmp_path: Path) -> None:
    config = load_deployed(written(tmp_path / "my.toml", "seed = 3"), broker="file://d")
    assert config.broker is not None
    assert (config.broker.url, config.seed) == ("file://d", 3)


def test_missing_broker_is_reported_with_what_to_write(tmp_path: Path) -> None:
    path = written(tmp_path / "my.toml", "")
    with pytest.raises(ConfigError) as caught:
        load_deployed(path)
    assert str(caught.value) == (
        f'{path}: broker is missing; write broker = "kafka://HOST:PORT" above the first section, '
        'or "file://DIR" to try without Kafka'
    )


def test_wrong_address_on_the_command_line_is_reported(tmp_path: Path) -> None:
    path = written(tmp_path / "my.toml", "")
    with pytest.raises(ConfigError, match=r'^--broker = "kafka" is not allowed, expected "kafka:'):
        load_deployed(path, broker="kafka")
    with pytest.raises(
        ConfigError, match=r"^--broker holds a user name, a password or options"
    ) as caught:
        load_deployed(path, broker=f"kafka://ann:{SECRET}@a")
    assert SECRET not in str(caught.value)


# --- topics by address


def test_address_says_which_topics_there_are(tmp_path: Path) -> None:
    embedded = open_topics(config_of(f'broker = "file://{tmp_path / "topics"}"'))
    assert isinstance(embedded, EmbeddedTopics)
    assert embedded.directory == tmp_path / "topics"


def test_relative_directory_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topics = open_topics(config_of('broker = "file://./topics"'))
    topics.create()
    assert (tmp_path / "topics").is_dir()


class FakeKafkaTopics:
    def __init__(
        self,
        servers: str,
        *,
        names: Mapping[str, str],
        partitions: int,
        replication: int,
        security: Security,
        renew: Callable[[], Security],
    ) -> None:
        self.servers, self.names, self.security, self.renew = servers, names, security, renew
        self.partitions, self.replication = partitions, replication
        if security.ca_file is not None:
            security.context()


@pytest.fixture
def fake_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("connectors.kafka.topics")
    module.KafkaTopics = FakeKafkaTopics
    monkeypatch.setitem(sys.modules, "connectors.kafka.topics", module)


@pytest.mark.usefixtures("fake_kafka")
def test_kafka_gets_servers_names_numbers_and_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMGP_TEST_PASSWORD", SECRET)
    key_file = written(tmp_path / "key", "open barley\n")
    cert = written(tmp_path / "cert.pem", "certificate")
    config = config_of(
        f"""
        [broker]
        url = "kafka://a,b:1"
        [broker.security]
        protocol = "SASL_SSL"
        mechanism = "SCRAM-SHA-512"
        username = "ann"
        password_env = "STREAMGP_TEST_PASSWORD"
        cert_file = "{cert}"
        key_password_file = "{key_file}"
        [topics]
        prefix = "rooms."
        partitions = 3
        replication = 2
        """
    )
    topics: Any = open_topics(config)
    assert topics.servers == "a:9092,b:1"
    assert (topics.partitions, topics.replication) == (3, 2)
    assert topics.names["dead-letters"] == "rooms.dead-letters"
    assert (topics.security.password, topics.security.key_password) == (SECRET, "open barley")
    assert SECRET not in repr(config)
    key_file.write_text("close barley\n")
    assert topics.renew() == replace(topics.security, key_password="close barley")


@pytest.mark.usefixtures("fake_kafka")
def test_invalid_certificate_is_reported(tmp_path: Path) -> None:
    ca = written(tmp_path / "ca.pem", "hello")
    text = f'[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "SSL"\nca_file = "{ca}"'
    with pytest.raises(ConfigError, match=r"^broker\.security: ca_file .*ca\.pem cannot be used: "):
        open_topics(config_of(text))
    ca.unlink()
    with pytest.raises(
        ConfigError, match=r"^broker\.security\.ca_file = '.*' cannot be read: No such file"
    ):
        open_topics(config_of(text))


def test_secrets_are_not_looked_for_where_no_kafka_is() -> None:
    text = (
        '[broker]\nurl = "file:///none"\n[broker.security]\nprotocol = "SASL_SSL"\nusername = "a"\n'
        'mechanism = "PLAIN"\npassword_env = "STREAMGP_TEST_NOT_SET"'
    )
    assert isinstance(open_topics(config_of(text)), EmbeddedTopics)


def test_client_of_kafka_is_not_loaded_where_no_kafka_is() -> None:
    code = (
        "import sys\n"
        "from streamgp.config.load import parse_worker\n"
        "from streamgp.apps.deployment.deployment import open_topics\n"
        "heavy = {'numpy', 'river', 'rich', 'kafka'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "open_topics(parse_worker('broker = \"file:///nowhere\"', source='my.toml'))\n"
        "print('kafka' in sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\nFalse\n"


# --- secrets


@pytest.mark.parametrize(
    ("data", "secret"),
    [
        (b"open sesame\n", SECRET),
        (b"open sesame\r\n", SECRET),
        (b"open sesame", SECRET),
        (b" open sesame \n\n", " open sesame \n"),
        ("öffne".encode(), "öffne"),
    ],
)
def test_one_line_break_does_not_belong_to_a_secret(
    data: bytes, secret: str, tmp_path: Path
) -> None:
    path = tmp_path / "secret"
    path.write_bytes(data)
    assert kept_secret("password", None, str(path)) == secret


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "the file that it names cannot be read: No such file or directory"),
        (b"", "the file that it names is empty"),
        (b"\n", "the file that it names is empty"),
        (b"\xff\xfe", "the file that it names is not UTF-8 text"),
        (b"x" * 70_000, "the file that it names has more than 65536 bytes"),
    ],
)
def test_secret_that_is_not_in_its_file_is_reported_without_the_name(
    data: bytes | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "hunter2"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        kept_secret("password", None, str(path))
    assert str(caught.value) == f"broker.security.password_file: {reason}"


@pytest.mark.parametrize(("value", "how"), [(None, "not set"), ("", "empty")])
def test_secret_that_is_not_in_its_variable_is_reported_without_the_name(
    value: str | None, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("hunter2", raising=False)
    if value is not None:
        monkeypatch.setenv("hunter2", value)
    with pytest.raises(ConfigError) as caught:
        kept_secret("password", "hunter2", None)
    assert str(caught.value) == (
        f"broker.security.password_env: the environment variable that it names is {how}; set it"
    )


def test_invalid_path_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"it is not a path$"):
        readable("ca_file", "a\0b")
    with pytest.raises(ConfigError, match=r"it is not a path$"):
        kept_secret("password", None, "a\0b")
