"""The sections for workers: what they mean, and what is said about wrong ones."""

from __future__ import annotations

import contextlib
import json
from itertools import compress, product
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.config.broker_url import KafkaAddress
from streamgp.config.load import check_name, check_worker, load_worker, parse_worker
from streamgp.config.settings import (
    Broker,
    Config,
    Protocol,
    Security,
    Topics,
    Worker,
    WorkerConfig,
    replay_part,
)
from streamgp.config.validation import ConfigError
from tests.helpers.configurations import parse

NAME = 'expected a name of at most 200 ASCII letters, digits, ".", "_" and "-"'
SASL = '[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "SASL_SSL"\n'

WRONG = {
    "broker = 7": 'broker = 7 is not allowed, expected an address, as in "kafka://host:9092"',
    "[broker]": 'broker.url is missing, expected an address, as in "kafka://host:9092"',
    'broker = ""': (
        'broker = "" is not allowed, expected "kafka://HOST:PORT,HOST:PORT" or "file://DIR"'
    ),
    'broker = "http://a"': (
        'broker = "http://a" is not allowed, expected "kafka://HOST:PORT,HOST:PORT" or "file://DIR"'
    ),
    '[broker]\nurl = "http://a"': (
        'broker.url = "http://a" is not allowed, expected "kafka://HOST:PORT,HOST:PORT" or '
        '"file://DIR"'
    ),
    'broker = "kafka://a"\n[broker.security]\nprotocol = "SSL"': (
        "not valid TOML: Cannot overwrite a value (at line 2, column 17); with a section "
        "[broker...] the address is url = ... in the section [broker]"
    ),
    '[broker]\nurl = "kafka://a"\nsecurity = 7': (
        "broker.security = 7 is not allowed, expected a section [broker.security]"
    ),
    '[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "TLS"': (
        'broker.security.protocol = "TLS" is not allowed, expected one of "PLAINTEXT", '
        '"SASL_PLAINTEXT", "SASL_SSL", "SSL"'
    ),
    '[broker]\nurl = "kafka://a"\n[broker.security]\nusername = "ann"': (
        'broker.security.username has no meaning with protocol = "PLAINTEXT"; write protocol = '
        '"SASL_SSL" or "SASL_PLAINTEXT", or leave it out'
    ),
    '[broker]\nurl = "kafka://a"\n[broker.security]\nca_file = "ca.pem"': (
        'broker.security.ca_file has no meaning with protocol = "PLAINTEXT"; write protocol = '
        '"SSL" or "SASL_SSL", or leave it out'
    ),
    SASL: 'broker.security.mechanism is missing, which protocol = "SASL_SSL" needs',
    SASL + 'mechanism = "GSSAPI"': (
        'broker.security.mechanism = "GSSAPI" is not allowed, expected one of "PLAIN", '
    ),
    SASL + 'mechanism = "PLAIN"': "broker.security.username is missing, which protocol =",
    SASL + 'mechanism = "PLAIN"\nusername = "ann"': (
        "broker.security: the password is missing; write password_env = the name of an environment "
        "variable, or password_file = the path of a file that holds it"
    ),
    SASL + 'mechanism = "PLAIN"\nusername = "a"\npassword_env = "P"\npassword_file = "p"': (
        "broker.security: give password_env or password_file, not both"
    ),
    '[broker]\nurl = "kafka://a"\n[broker.security]\nprotocol = "SSL"\nkey_file = "k.pem"': (
        "broker.security.key_file can be used only with cert_file; give both"
    ),
    "[topics]\npartitions = 0": (
        "topics.partitions = 0 is not allowed, expected a whole number >= 1"
    ),
    "[topics]\nreplication = 0": (
        "topics.replication = 0 is not allowed, expected -1 (what the broker is set to) or a whole "
        "number >= 1"
    ),
    "[topics]\nreplication = -2": "topics.replication = -2 is not allowed, expected a whole number",
    '[topics]\nevents = "my events"': f'topics.events = "my events" is not allowed, {NAME}',
    '[topics]\nevents = "é"': f'topics.events = "é" is not allowed, {NAME}',
    '[topics]\nevents = "a\\n"': f'topics.events = "a\\n" is not allowed, {NAME}',
    '[topics]\nevents = ".."': f'topics.events = ".." is not allowed, {NAME}',
    '[topics]\nevents = ""': f'topics.events = "" is not allowed, {NAME}',
    f'[topics]\nevents = "{"a" * 201}"': "topics.events = ",
    '[topics]\nprefix = "a/"': 'topics.prefix = "a/" is not allowed, expected at most 150 ASCII',
    f'[topics]\nprefix = "{"p" * 100}"\nevents = "{"e" * 200}"': (
        "topics.events has 300 characters with the prefix, expected at most 249"
    ),
    '[topics]\nanswers = "events"': (
        'topics.events and topics.answers are both called "events" ("." and "_" count as the '
        "same); give each its own name"
    ),
    '[topics]\nevents = "a.b"\nstate = "a_b"': (
        'topics.events and topics.state are both called "a_b" ("." and "_" count as the same); '
    ),
    '[worker]\ngroup = "a group"': f'worker.group = "a group" is not allowed, {NAME}',
    '[worker]\ninstance = "../up"': f'worker.instance = "../up" is not allowed, {NAME}',
    '[worker]\nkeyed = "yes"': 'worker.keyed = "yes" is not allowed, expected true or false',
    '[worker]\nstate = ""': 'worker.state = "" is not allowed, expected a path',
    '[worker]\nstate = "a\\u0000"': 'worker.state = "a\\x00" is not allowed, expected a path',
    SASL
    + 'ca_file = "\\u0000"': 'broker.security.ca_file = "\\x00" is not allowed, expected a path',
    SASL + 'password_file = "a\\u0000b"': (
        "broker.security.password_file is not allowed, expected the path of a file"
    ),
    "[worker]\nbatch = 0": (
        "worker.batch = 0 is not allowed, expected a whole number from 1 to 100000"
    ),
    "[worker]\nsave_every_s = 0": "worker.save_every_s = 0 is not allowed, expected a number > 0",
    "[worker]\nmax_bad_share = 50": (
        "worker.max_bad_share = 50 is not allowed, expected a number from 0 to 1"
    ),
    "[worker]\ninstanse = 1": 'worker.instanse is not known, did you mean "instance"?',
}


@pytest.mark.parametrize("read", [parse, parse_worker], ids=["replay", "worker"])
@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[-40:])
def test_wrong_setting_is_reported_in_one_line(text: str, read: object) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, source="my.toml")  # type: ignore[operator]
    message = str(caught.value)
    assert message.startswith("my.toml: " + WRONG[text])
    assert "\n" not in message


@pytest.mark.parametrize(
    "line",
    [
        'password = "hunter2"',
        'password_env = "hunter2!"',
        "password_env = 472947294",
        "password_file = 472947294",
        'password_env = ""',
        'key_password_env = "hunter2!"',
    ],
)
def test_password_in_the_wrong_place_is_not_repeated(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_worker(SASL + line, source="my.toml")
    assert "broker.security." in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "472947294" not in str(caught.value)


def test_password_in_the_address_is_not_repeated() -> None:
    for address in ("kafka://ann:hunter2@a:9092", "hunter2@a", "kafka://a:1?sasl_password=hunter2"):
        text = f'broker = "{address}"'
        with pytest.raises(
            ConfigError, match="holds a user name, a password or options; leave"
        ) as caught:
            parse_worker(text, source="my.toml")
        assert "hunter2" not in str(caught.value)


def test_text_and_section_mean_the_same_broker() -> None:
    text = parse_worker('broker = "kafka://a:1"', source="my.toml")
    section = parse_worker('[broker]\nurl = "kafka://a:1"', source="my.toml")
    assert text == section == WorkerConfig(broker=Broker(url="kafka://a:1"))


def test_topics_begin_with_the_prefix_and_are_found_by_role() -> None:
    names = Topics(prefix="rooms.", dead_letters="refused").names()
    assert tuple(names) == ALL_TOPICS == get_args(TopicName)
    assert names["dead-letters"] == "rooms.refused"
    assert names["state"] == "rooms.state"


def test_replay_takes_no_notice_of_the_sections_for_workers() -> None:
    text = 'broker = "file://d"\nseed = 9\n[topics]\npartitions = 2\n[worker]\nbatch = 7'
    assert parse(text, source="my.toml") == Config(seed=9)
    config = parse_worker(text, source="my.toml")
    assert config == WorkerConfig(
        seed=9, broker=Broker(url="file://d"), topics=Topics(partitions=2), worker=Worker(batch=7)
    )
    assert replay_part(config) == replay_part(replace(config, worker=Worker())) == Config(seed=9)


def test_whole_sasl_configuration_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(SASL + 'mechanism = "SCRAM-SHA-512"\nusername = "ann"\npassword_env = "P"\n')
    broker = load_worker(path).broker
    assert broker is not None
    assert (broker.security.username, broker.security.password_env) == ("ann", "P")


def test_the_client_accepts_every_security_that_a_file_may_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the client itself refuses is refused before, in the words of the file."""
    monkeypatch.setenv("P", "secret")
    pem = tmp_path / "pem"
    pem.touch()
    given: dict[str, Any] = {
        "mechanism": "PLAIN", "username": "ann", "password_env": "P", "ca_file": str(pem),
        "cert_file": str(pem), "key_file": str(pem), "key_password_env": "P",
    }  # fmt: skip
    n_accepted = 0
    for protocol in get_args(Protocol):
        for chosen in product((False, True), repeat=len(given)):
            security = Security(protocol=protocol, **dict(compress(given.items(), chosen)))
            config = WorkerConfig(broker=Broker(url="kafka://a", security=security))
            with contextlib.suppress(ConfigError):
                check_worker(config, source="my.toml")
                KafkaAddress("a:9092").security(config)
                n_accepted += 1
    # With and without a login: no TLS; TLS with or without a CA, and a certificate or none.
    assert n_accepted == 2 * (1 + 2 * (4 + 1))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "a\n", "é", "a" * 201])
def test_name_from_the_command_line_is_held_to_the_same_rule(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^--instance = .* is not allowed, expected a name of"):
        check_name(name, where="--instance")


@pytest.mark.parametrize("name", ["a", "...", "A-1_b.c", "a" * 200])
def test_name_of_the_right_letters_is_taken(name: str) -> None:
    check_name(name, where="--instance")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[page]\nunit = "m"', r"page.unit is for numbers"),
        ("[page]\nlow = 0.0\nhigh = 1.0", r"page.low is for numbers"),
        ('labels = ["hall"]', r'page.labels is not allowed with target = "number"'),
        ("low = 1.0", r"page.low and page.high belong together; give both or neither"),
        ("low = 2.0\nhigh = 1.0", r"page.low = 2.0 must be below page.high = 1.0"),
    ],
)
def test_what_the_page_says_of_numbers_is_for_numbers(text: str, said: str) -> None:
    head = "" if text.startswith("[page]") else 'target = "number"\n[page]\n'
    with pytest.raises(ConfigError, match=said):
        parse_worker(head + text, source="my.toml")


@pytest.mark.parametrize(("name", "most"), [("question", 200), ("guidelines", 10_000)])
def test_words_for_annotators_are_neither_blank_nor_too_long(name: str, most: int) -> None:
    assert parse_worker(f'[page]\n{name} = "{most * "x"}"', source="my.toml")
    for wrong in ("", r" \n ", (most + 1) * "x"):
        said = rf"page.{name} = .* expected a text of at most {most} characters, not blank"
        with pytest.raises(ConfigError, match=said):
            parse_worker(f'[page]\n{name} = "{wrong}"', source="my.toml")


def test_labels_that_the_page_offers_are_those_that_somebody_could_give() -> None:
    labels = ("sitting", "2", 2, -2.5, True, "x" * 200)
    written = ", ".join(map(json.dumps, labels))
    assert parse_worker(f"[page]\nlabels = [{written}]", source="my.toml").page.labels == labels
    wrongs = ('""', '"  "', '" hall"', r'"cafe\u0301"', r'"a\u200bb"', f'"{201 * "x"}"', str(2**63))
    for wrong in wrongs:
        with pytest.raises(ConfigError, match=r"^my.toml: page.labels has .+ 1 to 200 characters"):
            parse_worker(f'[page]\nlabels = ["hall", {wrong}]', source="my.toml")
    for wrong in ("[inf]", "[nan]", '"hall"', "[[]]"):
        with pytest.raises(ConfigError, match=r"^my.toml: page.labels.* = .*, expected a"):
            parse_worker(f"[page]\nlabels = {wrong}", source="my.toml")
    few = "[people]\nmax_labels = 2\n[page]\nlabels = "
    assert parse_worker(few + "[1, 2]", source="my.toml").page.labels == (1, 2)
    with pytest.raises(ConfigError, match=r"page.labels has 3 labels, .* people.max_labels = 2"):
        parse_worker(few + "[1, 2, 3]", source="my.toml")
