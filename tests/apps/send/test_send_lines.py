"""Lines of standard input as records, and a topic printed as lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Outgoing, Record, TopicName
from streamgp.apps.send import _record
from streamgp.cli.main import cli
from tests.helpers.topics import wait_until, write
from tests.helpers.worker_process import ENVIRONMENT, MAIN

PATIENCE_S = 120.0
EVENT = b'{"key":"ann","x":{"light":0.5}}'
ANSWER = b'{"type":"answer","event_id":"events:0:0","key":"ann","y":"home"}'


class Site:
    """A deployment in a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "w.toml").write_text('broker = "file://topics"\n')
        self.topics = EmbeddedTopics(path / "topics")
        self.topics.create()

    def start(self, command: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, command, "w.toml", *arguments],
            cwd=self.path,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def call(self, command: str, *arguments: str, said: bytes = b"") -> tuple[int, bytes, str]:
        process = self.start(command, *arguments)
        out, errors = process.communicate(said, timeout=PATIENCE_S)
        return process.returncode, out, errors.decode()

    def call_here(self, command: str, *arguments: str) -> tuple[int, bytes, str]:
        """Call what neither reads lines nor is ended by signals, without a process of its own."""
        with chdir(self.path):
            done = CliRunner().invoke(cli, [command, "w.toml", *arguments])
        return done.exit_code, done.stdout_bytes, done.stderr

    def printed(self, topic: str) -> bytes:
        status, out, errors = self.call_here("watch", "--follow", topic, "--from-start", "--once")
        assert (status, errors) == (0, "")
        return out

    def records(self, topic: TopicName) -> list[Record]:
        with closing(self.topics.reader([topic])) as reader:
            return reader.poll(0.0)

    def wait_for(self, topic: TopicName, n: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while len(self.records(topic)) < n:
            assert time.monotonic() < until
            time.sleep(0.02)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> Site:
    (tmp_path / "other").mkdir()
    return Site(tmp_path / "other")


@pytest.fixture
def sender(site: Site) -> Iterator[subprocess.Popen[bytes]]:
    process = site.start("send", "-")
    yield process
    process.kill()
    process.communicate()


def test_events_and_answers_are_told_apart_by_what_they_say(site: Site) -> None:
    said = EVENT + b"\n\n" + ANSWER + b"\r\n" + b"hello"
    status, out, errors = site.call("send", "-", said=said)
    assert (status, out) == (0, b"")
    assert errors.startswith("3 records sent in ")
    assert [(r.key, r.value) for r in site.records("events")] == [(b"ann", EVENT), (None, b"hello")]
    assert [(r.key, r.value) for r in site.records("answers")] == [(b"ann", ANSWER)]


def test_a_byte_order_mark_at_the_start_is_skipped(site: Site) -> None:
    site.call("send", "-", said=b"\xef\xbb\xbf" + EVENT + b"\r\n" + ANSWER)
    assert [(r.key, r.value) for r in site.records("events")] == [(b"ann", EVENT)]
    assert [r.value for r in site.records("answers")] == [ANSWER]


@pytest.mark.parametrize(
    "line",
    [
        EVENT.decode().encode("utf-16"),
        EVENT.decode().encode("utf-16-be"),
        EVENT.decode().encode("utf-32"),
        b"\xff\xfe",  # of an empty line in UTF-16, whose end is split
    ],
)
def test_text_that_is_not_utf_8_is_named_instead_of_sent(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"is UTF-16 text, or binary; expected .* in UTF-8 \(as "):
        _record(line, None, is_first=True)
    record = _record(line, None, is_first=False)
    assert record is not None
    assert record.value == line


def test_what_comes_is_sent_at_once_and_an_unfinished_line_when_it_is_whole(
    site: Site, sender: subprocess.Popen[bytes]
) -> None:
    assert sender.stdin is not None
    sender.stdin.write(EVENT + b"\n" + EVENT[:9])
    sender.stdin.flush()
    site.wait_for("events", 1)
    sender.stdin.write(EVENT[9:] + b"\n")
    sender.stdin.flush()
    site.wait_for("events", 2)
    assert [r.value for r in site.records("events")] == [EVENT, EVENT]


def test_a_signal_ends_it_with_all_that_came_sent(
    site: Site, sender: subprocess.Popen[bytes]
) -> None:
    assert sender.stdin is not None
    assert sender.stderr is not None
    sender.stdin.write(EVENT + b"\n")
    sender.stdin.flush()
    site.wait_for("events", 1)
    sender.send_signal(signal.SIGINT)
    assert sender.wait(PATIENCE_S) == 130
    assert b"interrupted; continue with: tail -n +2" in sender.stderr.read()


def test_when_the_topics_are_gone_it_says_where_to_go_on(
    site: Site, sender: subprocess.Popen[bytes]
) -> None:
    assert sender.stdin is not None
    assert sender.stderr is not None
    sender.stdin.write(EVENT + b"\n")
    sender.stdin.flush()
    site.wait_for("events", 1)
    (site.path / "topics" / "topics.db").unlink()
    sender.stdin.write(EVENT + b"\n")
    sender.stdin.flush()
    assert sender.wait(PATIENCE_S) == 2  # starting it again would not help
    said = sender.stderr.read().decode()
    assert "topics.db was changed: it is not there" in said
    assert "the first 1 line of the input are safe, continue with: tail -n +2" in said


@pytest.mark.parametrize("options", [(), ("--topic", "events")])
def test_a_log_on_standard_input_is_not_taken_for_lines_of_json(
    site: Site, options: tuple[str, ...]
) -> None:
    status, _, errors = site.call("send", "-", *options, said=b"\xef\xbb\xbflight,room\n1,hall\n")
    assert status == 2
    assert errors.endswith("(to send a log, such as CSV, give its name in place of -)\n")
    assert not site.records("events")


@pytest.mark.parametrize("first", [b' {"x":{"light":NaN}}', b'{"x":{"room":"B\xfcro"}}'])
def test_a_first_line_with_a_flaw_holds_up_no_others(site: Site, first: bytes) -> None:
    status, _, errors = site.call("send", "-", "--topic", "events", said=first + b"\n" + EVENT)
    assert (status, errors[:14]) == (0, "2 records sent")
    assert [record.value for record in site.records("events")] == [first, EVENT]


def test_lines_before_one_that_cannot_be_sent_are_safe_and_not_sent_twice(site: Site) -> None:
    lines = [EVENT, EVENT, b'{"record":{"key":"a"}}', EVENT]
    status, _, errors = site.call("send", "-", said=b"\n".join(lines))
    assert status == 2
    assert "the first 2 lines of the input are safe, continue with: tail -n +3" in errors
    assert [record.value for record in site.records("events")] == [EVENT, EVENT]


def test_what_workers_write_is_not_restored_from_a_truncated_line(site: Site) -> None:
    whole = b'{"event_id":"e1","key":"ann","y":"home"}'
    restoring = ("--topic", "consensus", "--restore")
    status, _, errors = site.call("send", "-", *restoring, said=whole + b"\n" + whole[:30])
    assert status == 2
    assert (
        "a line for consensus is no JSON object, which every line is that streamgp watch --follow "
        "prints: it was truncated or changed; leave it out, or print the topic again;"
    ) in errors
    assert "the first 1 line of the input are safe, continue with: tail -n +2" in errors
    assert [record.value for record in site.records("consensus")] == [whole]


def test_an_example_is_taken_back_with_a_line(site: Site) -> None:
    status, _, errors = site.call(
        "send", "-", "--topic", "consensus", said=b'{"record":{"key":"a"}}'
    )
    assert (status, errors[:13]) == (0, "1 record sent")
    with closing(site.topics.client(group="g", instance="a", max_records=1)) as link:
        [record] = link.poll(0.0)
    assert (record.topic, record.key, record.value) == ("consensus", b"a", None)
    status, _, errors = site.call("send", "-", said=b'{"record":{"key":"a"}}')
    assert status == 2
    assert "to take an example back, give --topic consensus" in errors
    assert not site.records("events")


def fill(site: Site) -> None:
    write(
        site.topics,
        Outgoing(topic="events", key=b"ann", value=EVENT),
        Outgoing(topic="events", key=None, value=b"\xff\n"),
        Outgoing(topic="answers", key=b"ann", value=ANSWER),
    )
    state = b'{"key":"ann","name":"head","value":1}'
    example = b'{"event_id":"e1","key":"ann"}'
    headers = [("dlq.stage", b"decode"), ("odd", b"\xff")]
    with closing(site.topics.client(group="g", instance="a", max_records=1)) as link:
        link.commit(
            [
                Outgoing(topic="predictions", key=b"ann", value=b'{"key":"ann"}'),
                Outgoing(topic="requests", key=b"ann", value=b'{"key":"ann","q":1}'),
                Outgoing(topic="consensus", key=b"ann\x1fe1\x1f0", value=example),
                Outgoing(topic="consensus", key=b"ann\x1fe0\x1f0", value=None),
                Outgoing(topic="state", key=b"ann\x1fhead", value=state),
                Outgoing(topic="state", key=b"bob\x1fhead", value=None),
                Outgoing(topic="dead-letters", key=None, value=b"\xff", headers=headers),
            ]
        )


@pytest.mark.parametrize(
    "topic",
    [
        *("answers", "consensus", "state", "dead-letters"),
        *(
            pytest.param(topic, marks=pytest.mark.nightly)
            for topic in ("events", "predictions", "requests")
        ),
    ],
)
def test_every_topic_comes_back_from_what_was_printed(
    site: Site, other: Site, topic: TopicName
) -> None:
    fill(site)
    printed = site.printed(topic)
    options = () if topic in ("events", "answers") else ("--restore",)
    status, _, errors = other.call("send", "-", "--topic", topic, *options, said=printed)
    assert (status, "sent in" in errors) == (0, True), errors
    found, expected = other.records(topic), site.records(topic)
    assert expected
    assert [(r.key, r.value, r.headers) for r in found] == [
        (r.key, r.value, r.headers) for r in expected
    ]
    assert other.printed(topic).count(b"\n") == printed.count(b"\n")


def test_what_a_worker_alone_writes_is_not_sent_beside_it(site: Site) -> None:
    status, _, errors = site.call("send", "-", "--topic", "state", said=b'{"name":"a"}\n')
    assert status == 2
    assert "got one for state; a worker alone writes there" in errors
    with closing(site.topics.client(group="g", instance="a", max_records=1)):
        status, _, errors = site.call("send", "-", "--topic", "state", "--restore", said=b"{}\n")
    assert status == 2
    assert "is in use by another worker" in errors


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-", "a.csv"), "- (standard input) must be the only LOG"),
        (("-", "--restore"), "--restore needs --topic with a topic that only workers"),
        (("-", "--restore", "--topic", "events"), "--restore needs --topic with a topic that"),
        (("-", "--label", "room"), "--label concerns rows of a log and cannot be used with lines"),
        (("-", "--from", "7"), "--from concerns rows of a log and cannot be used with lines"),
        (("a.csv", "--topic", "events"), "--topic and --restore can be used only with lines of"),
    ],
)
def test_what_does_not_go_together_is_reported(
    site: Site, arguments: tuple[str, ...], why: str
) -> None:
    status, _, errors = site.call_here("send", *arguments)
    assert status == 2
    assert why in errors


def test_records_are_printed_as_they_come_until_a_signal(site: Site) -> None:
    fill(site)
    watcher = site.start("watch", "--follow", "events")
    try:
        assert watcher.stdout is not None
        os.set_blocking(watcher.stdout.fileno(), False)
        until, printed = time.monotonic() + PATIENCE_S, b""
        while not printed:  # until it has begun, at the end
            assert time.monotonic() < until
            site.call("send", "-", said=EVENT + b"\n")
            printed = watcher.stdout.read() or b""
        assert json.loads(printed.splitlines()[0]) == json.loads(EVENT)
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(PATIENCE_S) == 0
    finally:
        watcher.kill()
        watcher.communicate()


def test_a_pipe_that_is_closed_ends_it_also_while_nothing_comes(site: Site) -> None:
    fill(site)
    with site.start("watch", "--follow", "events", "--from-start") as watcher:
        try:
            assert watcher.stdout is not None
            assert watcher.stderr is not None
            assert json.loads(watcher.stdout.readline()) == json.loads(EVENT)
            watcher.stdout.close()
            assert watcher.wait(PATIENCE_S) == 141
            assert watcher.stderr.read() == b""
        finally:
            watcher.kill()


def by_shell(site: Site, command: str) -> subprocess.CompletedProcess[str]:
    """Let a shell open and close the streams of a command, whose `$0` is Python and `$1` ours."""
    return subprocess.run(
        ["sh", "-c", f"exec {command}", sys.executable, MAIN],
        cwd=site.path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("send w.toml - <&-", 2, "Error: standard input is closed; pipe the lines in, or"),
        ("watch w.toml --follow events --once >&-", 2, "Error: standard output is closed; let"),
        ("audit w.toml >&-", 0, ""),
        pytest.param("watch w.toml --once >&-", 0, "", marks=pytest.mark.nightly),
        pytest.param("audit w.toml --format csv >&-", 0, "", marks=pytest.mark.nightly),
    ],
)
def test_streams_that_the_shell_has_closed_end_in_no_traceback(
    site: Site, command: str, status: int, said: str
) -> None:
    fill(site)
    done = by_shell(site, f'"$0" -c "$1" {command}')
    assert done.returncode == status
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)


def status_of(pid: int) -> dict[str, str]:
    """Return what Linux says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def handles(pid: int, number: signal.Signals) -> bool:
    return bool(int(status_of(pid)["SigCgt"], 16) >> (number - 1) & 1)


def n_waits(pid: int) -> int:
    """Return how often a process has waited, as it does for new records."""
    return int(status_of(pid)["voluntary_ctxt_switches"])


def test_a_screen_that_the_shell_has_closed_is_watched_without_one(site: Site) -> None:
    watcher = subprocess.Popen(
        ["sh", "-c", 'exec "$0" -c "$1" watch w.toml --interval 0.1 >&-', sys.executable, MAIN],
        cwd=site.path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: handles(watcher.pid, signal.SIGTERM), PATIENCE_S)
        before = n_waits(watcher.pid)
        wait_until(lambda: n_waits(watcher.pid) > before + 30, PATIENCE_S)  # it goes on
        watcher.send_signal(signal.SIGTERM)
        errors = watcher.communicate(timeout=PATIENCE_S)[1]
        assert (watcher.returncode, errors) == (0, "")
    finally:
        watcher.kill()
        watcher.wait()
        assert watcher.stderr is not None
        watcher.stderr.close()


def test_a_directory_of_an_earlier_version_is_migrated_with_the_command_that_is_named(
    site: Site,
) -> None:
    (site.path / "old").mkdir()
    (site.path / "old" / "events.jsonl").write_bytes(EVENT + b"\n")
    status, _, errors = site.call("watch", "--once", "--broker", "file://old")
    assert status == 2
    command = errors.strip().rpartition("run: streamgp ")[2].split()
    assert command == ["migrate", "old"]
    for expected in ("made old/topics.db", "old has nothing to migrate"):
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *command],
            cwd=site.path, env=ENVIRONMENT, capture_output=True, text=True, check=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert expected in done.stdout
    status, out, _ = site.call(
        "watch", "--follow", "events", "--from-start", "--once", "--broker", "file://old"
    )
    assert (status, out) == (0, EVENT + b"\n")
