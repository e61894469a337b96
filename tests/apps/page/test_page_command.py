"""The commands `streamgp page` and `streamgp invite`: what they refuse, in one line."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import LockedOutError, RefusedError
from streamgp.apps.page.access import is_loopback
from streamgp.config.validation import parse_bind
from tests.helpers.commands import streamgp, wrong
from tests.helpers.page_server import Browser
from tests.helpers.topics import wait_until

pytestmark = pytest.mark.usefixtures("logging_as_it_was")
MAIN = "from streamgp.cli.main import main\nmain()"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "w.toml"
    path.write_text(f'broker = "file://{tmp_path}/topics"\n[worker]\nstate = "{tmp_path}/state"\n')
    EmbeddedTopics(tmp_path / "topics").create()
    return path


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--bind", "0.0.0.0:0"], "would travel in plain text"),
        (["--bind", ":0"], "would travel in plain text"),
        (["--bind", "0.0.0.0:0", "--plain-http", "--as", "ann"], "only on a loopback address"),
        (["--bind", "127.0.0.1:0", "--behind-proxy", "--as", "ann"], "without a proxy"),
        (["--bind", "127.0.0.1:0", "--behind-proxy"], "--behind-proxy needs --host NAME"),
        (["--as", "ann", "--invites", "x.json"], "--as requires no login"),
        (["--as", " ann"], "characters that can be seen"),
        (["--bind", "8080"], "expected HOST:PORT"),
        (["--bind", "::1:8080"], "expected HOST:PORT"),
        (["--bind", "127.0.0.1:99999"], "expected HOST:PORT"),
        (["--bind", "a..b:80", "--plain-http"], "expected HOST:PORT"),
        (["--bind", "\udcff:80", "--plain-http"], "expected HOST:PORT"),
        (["--bind", f"{64 * 'x'}:80", "--plain-http"], "expected HOST:PORT"),
        (["--bind", "a\x1b:80", "--plain-http"], "expected HOST:PORT"),
        (["--bind", f"127.0.0.1:{5000 * '8'}"], "expected HOST:PORT"),
        (["--host", "https://x.example"], "expected a host name"),
        (["--host", "x.example", "--host", "x.example/page"], "expected a host name"),
        (["--host", ""], "expected a host name"),
        (["--bind", "203.0.113.1:0", "--plain-http"], "cannot listen at 203.0.113.1:0"),
        (["--invites", ""], "expected a file"),
    ],
)
def test_what_is_unsafe_or_means_nothing_is_refused(
    config: Path, options: list[str], reason: str
) -> None:
    assert reason in wrong("page", config, *options)


def test_a_port_in_use_is_reported(config: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        assert "another program uses this address" in wrong("page", config, "--bind", bind)


def test_a_page_makes_the_key_of_the_annotator_whom_it_is_for(config: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    config.write_text(f'{config.read_text()}[people]\nkeys_file = "{keys}"\n')
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        wrong("page", config, "--bind", bind, "--as", "ann")
    assert list(json.loads(keys.read_text())) == ["ann"]


def test_missing_topics_and_invalid_files_are_reported(config: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    options = ("--bind", "127.0.0.1:0")
    text = wrong("page", config, *options, "--invites", tmp_path / "broken.json")
    assert "not a file of invites" in text
    text = wrong("page", config, *options, "--broker", f"file://{tmp_path}/nothing")
    assert "--create-topics" in text
    assert "cannot be read" in wrong("page", tmp_path / "no.toml")


def test_topics_that_may_not_be_read_end_the_page_before_it_serves_anyone(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_arguments: object, **_options: object) -> None:
        raise RefusedError("topics.db cannot be opened; make it readable")

    monkeypatch.setattr(EmbeddedTopics, "reader", locked)
    result = streamgp("page", config, "--as", "ann", "--bind", "127.0.0.1:0")
    assert result.exit_code == 2
    assert result.stderr == "Error: topics.db cannot be opened; make it readable\n"


def test_a_page_that_the_broker_lets_in_no_longer_ends_to_be_started_again(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*_arguments: object, **_options: object) -> None:
        raise LockedOutError("the password was changed; start again")

    monkeypatch.setattr(EmbeddedTopics, "reader", changed)
    result = streamgp("page", config, "--as", "ann", "--bind", "127.0.0.1:0")
    assert result.exit_code == 75
    assert result.stderr == "Error: the password was changed; start again\n"


def test_a_page_that_can_have_no_threads_says_so(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_make: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("streamgp.apps.page.live.AnswerSender", none_left)
    result = streamgp("page", config, "--as", "ann", "--bind", "127.0.0.1:0")
    assert result.exit_code == 70
    assert result.stderr.startswith("Error: the page has failed: RuntimeError at ")


def test_without_the_extra_it_says_what_to_install(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec

    def missing(name: str, package: str | None = None) -> Any:
        return None if name == "uvicorn" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    for arguments in (["page", config], ["demo", "--page"]):
        # By its own name: no index has streamgp, as its extra would have to be installed from.
        assert "needs uvicorn; install with: pip install uvicorn" in wrong(*arguments)


def test_invites_are_printed_and_taken_back(config: Path, tmp_path: Path) -> None:
    result = streamgp("invite", config, "ann", "--key", "phone-3", "--url", "https://x.example/")
    assert re.fullmatch(r"https://x\.example/join/[\w-]{43}\n", result.output)
    assert (tmp_path / "state" / "invites.json").exists()
    assert "revoke that first" in wrong("invite", config, "ann")
    assert streamgp("invite", config, "ann", "--revoke").output == "ann is no longer invited\n"
    assert "'ann' is not invited" in wrong("invite", config, "ann", "--revoke")
    assert "leave out --key" in wrong("invite", config, "a", "--revoke", "--key", "k")
    for url in ("x.example", "https://", "https://x.example\n/page"):
        assert "expected http://" in wrong("invite", config, "ann", "--url", url)
    # What no event can have as its key limits an invite to nothing.
    assert "--key must be valid Unicode" in wrong("invite", config, "a", "--key", "\udcff")
    assert "--key must have no control" in wrong("invite", config, "a", "--key", "k\x1b")
    config.write_text(config.read_text() + "keyed = false\n")
    assert "--key cannot be used" in wrong("invite", config, "ann", "--key", "k")


def test_invites_need_no_broker(config: Path, tmp_path: Path) -> None:
    state = json.dumps(str(tmp_path / "state"))
    config.write_text(f"[worker]\nstate = {state}\n")
    assert streamgp("invite", config, "ann").exit_code == 0


def test_options_of_the_demos_page_belong_to_it() -> None:
    assert "can be used only with --page" in wrong("demo", "--no-browser")
    assert "leave out --seed" in wrong("demo", "--page", "--seed", "2")
    assert "loopback" in wrong("demo", "--page", "--bind", "0.0.0.0:0")


def test_the_demos_page_tells_which_room_it_was() -> None:
    options = ["--no-browser", "--bind", "127.0.0.1:0", "--as", "ann"]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "demo", "--page", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        told = re.search(r":(\d+)/", process.stdout.readline())
        assert told is not None
        browser = Browser(int(told[1]))
        wait_until(lambda: browser.get("/api/next").body["card"] is not None)
        card = browser.get("/api/next").body["card"]
        assert card["truth"] in {"bedroom", "hall", "kitchen", "study"}
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120.0)
    assert process.returncode == 0


def test_addresses() -> None:
    assert parse_bind("[::1]:8080") == ("::1", 8080)
    assert [is_loopback(host) for host in ("localhost", "127.0.0.9", "::1", "0.0.0.0", "x")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("kept", [(), ("--invites", "{} own.json")], ids=["default", "own file"])
def test_a_page_lives_from_an_invite_to_a_signal(config: Path, kept: tuple[str, ...]) -> None:
    where = [option.format(config) for option in kept]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "page", str(config), "--bind", "127.0.0.1:0", *where],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"page: (http://127\.0\.0\.1:(\d+)/)\n", line)
        assert found is not None
        url, browser = found[1], Browser(int(found[2]))
        link = streamgp("invite", config, "ann", "--url", url, *where).output.strip()
        assert browser.join(link.rpartition("/")[2]).status == 200
        assert browser.get("/api/me").body["name"] == "ann"
        wait_until(lambda: browser.get("/healthz").status == 200)
        stream = urllib.request.Request(
            f"{url}api/stream", headers={"Cookie": browser.cookie or ""}
        )
        with urllib.request.urlopen(stream, timeout=60) as opened:
            process.send_signal(signal.SIGTERM)
            opened.read()
        _, told = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    command = shlex.split(told.splitlines()[0].removeprefix("no annotator is invited yet: "))
    expected = ["streamgp", "invite", str(config), "NAME", *where, "--url", url.rstrip("/")]
    assert command == expected
    assert "Traceback" not in told
