"""Addresses of brokers: what they say, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.memory import MemoryTopics
from streamgp.apps.deployment.deployment import open_topics
from streamgp.config.broker_url import (
    ALLOWED,
    SCHEMES,
    FileAddress,
    KafkaAddress,
    Scheme,
    parse_address,
)
from streamgp.config.load import parse_worker

RIGHT = {
    "file://./data": FileAddress(Path("data")),
    "file://data/topics": FileAddress(Path("data/topics")),
    "file:///srv/topics": FileAddress(Path("/srv/topics")),
    "file:///srv/a@b%20c": FileAddress(Path("/srv/a@b%20c")),
    "kafka://host": KafkaAddress("host:9092"),
    "kafka://host:1": KafkaAddress("host:1"),
    "kafka://a.example.org:9093, b:65535": KafkaAddress("a.example.org:9093,b:65535"),
    "kafka://10.0.0.1:9092": KafkaAddress("10.0.0.1:9092"),
    "kafka://[::1]:9092": KafkaAddress("[::1]:9092"),
    "kafka://[2001:db8::1]": KafkaAddress("[2001:db8::1]:9092"),
}


@pytest.mark.parametrize("url", RIGHT)
def test_address_is_read(url: str) -> None:
    assert parse_address(url) == RIGHT[url]


@pytest.mark.parametrize(
    "url",
    ["kafka", "kafka:", "kafka://", "memory", "memory://", "file://", "file://a\0b", "", "://"],
)
def test_what_is_no_address_is_reported_with_what_is_allowed(url: str) -> None:
    with pytest.raises(ValueError, match=r"^= \".*\" is not allowed, expected \"kafka://HOST"):
        parse_address(url)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("kafka://a:9092,", ""),
        ("kafka://a,,b", ""),
        ("kafka://a:0", "a:0"),
        ("kafka://a:65536", "a:65536"),
        ("kafka://a:b", "a:b"),
        ("kafka://::1", "::1"),
        ("kafka://a/b", "a/b"),
        ("kafka://a;b", "a;b"),
        ("kafka://a..b", "a..b"),
    ],
)
def test_what_is_no_server_is_reported(url: str, server: str) -> None:
    with pytest.raises(ValueError, match="is not a server, expected HOST:PORT") as caught:
        parse_address(url)
    assert f'"{server}" is not a server' in str(caught.value)


@given(st.text(max_size=30), st.sampled_from(["", "kafka://", "file://"]))
def test_any_text_is_an_address_or_one_line_says_why_not(text: str, scheme: str) -> None:
    said = ""
    try:
        parse_address(scheme + text)
    except ValueError as error:
        said = str(error)
    assert said.isprintable()


def test_every_kind_of_address_is_reported() -> None:
    assert [f"{name}://" in ALLOWED for name in SCHEMES] == [True] * len(SCHEMES)


def test_a_new_kind_of_address_takes_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    address: Any = SimpleNamespace(open=lambda _config: MemoryTopics())
    monkeypatch.setitem(SCHEMES, "ram", Scheme("ram://", lambda _: address))
    topics = open_topics(parse_worker('broker = "ram://"', source="my.toml"))
    assert isinstance(topics, MemoryTopics)
