"""`streamgp run` and `streamgp check` on a real broker."""

from __future__ import annotations

import json
import re
import signal
import socket
import urllib.request
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from connectors.kafka.client import Connection
from connectors.kafka.client_import import ConfigResource, ConfigResourceType, TopicPartition
from connectors.topics import ALL_TOPICS, Outgoing
from streamgp.apps import console
from streamgp.apps.deployment import contents
from streamgp.apps.deployment.deployment import load_deployed, open_topics, visit
from streamgp.apps.watch.view import Follower
from streamgp.apps.worker.check import check_deployment
from tests.helpers.kafka_cases import eventually, open_transaction
from tests.helpers.topics import everything, wait_until
from tests.helpers.worker_process import Process


@pytest.fixture
def config(kafka: str, kafka_prefix: str, tmp_path: Path) -> Path:
    path = tmp_path / "worker.toml"
    state = json.dumps(str(tmp_path / "state"))
    path.write_text(
        f'broker = "kafka://{kafka}"\nwarm_up = 0\n'
        f'[topics]\nprefix = "{kafka_prefix}"\npartitions = 4\nreplication = 1\n'
        f'[worker]\ngroup = "{kafka_prefix}group"\nstate = {state}\n'
        "[loop]\nexpires_after_s = 60\nanswer_horizon_s = 600\n"
    )
    return path


def checked(
    config: Path, capsys: pytest.CaptureFixture[str], *, broker: str | None = None
) -> tuple[int, dict[str, list[str]]]:
    """Return the exit status, and what was wrong, by thing."""
    capsys.readouterr()
    status = check_deployment(config, broker=broker, timeout_s=60.0)
    wrong: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        verdict, what, text = line.split(maxsplit=2)
        if verdict == "wrong":
            wrong.setdefault(what.rstrip(":"), []).append(text)
    return status, wrong


def make_topics(config: Path) -> None:
    with closing(open_topics(load_deployed(config))) as topics:
        topics.create()


def send_events(config: Path, n: int) -> None:
    """Send events of `n` keys, which lie in all partitions."""
    with closing(open_topics(load_deployed(config))) as topics:
        writer = topics.writer("test")
        for i in range(n):
            key = f"key{i}"
            value = json.dumps({"key": key, "x": {"light": i / n}}).encode()
            writer.send(Outgoing(topic="events", key=key.encode(), value=value))
        writer.close()


def n_predictions(config: Path) -> int:
    with closing(open_topics(load_deployed(config))) as topics:
        return len(everything(topics, "predictions"))


def wait_for_predictions(config: Path, n: int) -> None:
    wait_until(lambda: n_predictions(config) == n, pause_s=0.2)  # each look connects anew


def test_two_workers_share_the_work_and_leave_with_0(config: Path) -> None:
    workers: list[Process] = []
    for _ in range(2):
        workers.append(Process(config, "--create-topics"))
        workers[-1].wait_for("restored")
    send_events(config, 40)
    for worker in workers:
        worker.wait_for("batch")
    wait_for_predictions(config, 40)
    ends = []
    for worker in workers:
        worker.process.send_signal(signal.SIGTERM)
        ends.append(worker.end())
    assert [status for status, _ in ends] == [console.DONE] * 2
    assert n_predictions(config) == 40
    instances = [line["instance"] for _, log in ends for line in log if line["event"] == "started"]
    assert [name.rsplit("-", 1)[1] for name in instances] == ["0", "1"]
    for _, log in ends:
        assert log[-1]["event"] == "stopped"
        assert {line["level"] for line in log} == {"info"}


def n_counted(worker: Process, what: str = "predictions") -> int:
    """Return how many predictions, or other things, a worker counts."""
    with urllib.request.urlopen(f"{worker.url}/metrics", timeout=60.0) as answer:
        found = re.search(rf"^streamgp_{what}_total (\S+)$", answer.read().decode(), re.M)
    assert found
    return int(float(found[1]))


@pytest.mark.nightly  # the transaction of a killed worker is waited for
def test_metrics_are_what_was_committed_and_with_a_kill_no_more(config: Path) -> None:
    config.write_text(config.read_text().replace("[worker]", "[worker]\nbatch = 20"))
    make_topics(config)
    send_events(config, 1000)
    deadline = monotonic() + 90.0
    workers: list[Process] = []
    for _ in range(2):
        workers.append(Process(config, "--observe", "127.0.0.1:0", "--instance", "one"))
        workers[-1].wait_for("batch")
        if len(workers) == 1:
            while (counted := n_counted(workers[0])) < 100:
                assert monotonic() < deadline
            workers[0].process.kill()
            workers[0].end()
    while n_predictions(config) < 1000:
        assert monotonic() < deadline
    again = n_counted(workers[1])
    assert counted + again <= 1000
    send_events(config, 100)
    while n_predictions(config) < 1100:
        assert monotonic() < deadline
    while n_counted(workers[1]) < again + 100:  # counted after the commit
        assert monotonic() < deadline
    assert n_counted(workers[1]) == again + 100
    workers[1].process.send_signal(signal.SIGTERM)
    assert workers[1].end()[0] == console.DONE


def test_broker_that_is_down_is_reported_in_time(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # no server listens
        there = f"kafka://127.0.0.1:{bound.getsockname()[1]}"
        begun = monotonic()
        status, log = Process(config, "--broker", there).end()
        assert monotonic() - begun < 100.0  # 10 s, and the start of a program on a busy machine
        assert status == console.LOST_BROKER, log
        assert [line["level"] for line in log] == ["error"]
        begun = monotonic()
        status, wrong = checked(config, capsys, broker=there)
        assert (status, len(wrong)) == (2, 1)
        assert monotonic() - begun < 45.0  # without the start of a program


def test_check_tells_what_is_missing_and_what_was_made(
    config: Path, kafka_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, wrong = checked(config, capsys)
    assert (status, list(wrong)) == (2, ["topics"])
    [line] = wrong["topics"]
    assert all(f"{kafka_prefix}{name}" in line for name in ALL_TOPICS)
    make_topics(config)
    assert checked(config, capsys) == (0, {})


def test_check_tells_unequal_numbers_of_partitions(
    config: Path, kafka: str, kafka_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_topics(config)
    admin = Connection(kafka).admin()
    admin.create_partitions({f"{kafka_prefix}requests": 5})
    admin.close()
    eventually(lambda: checked(config, capsys)[0], 2)
    status, wrong = checked(config, capsys)
    assert (status, list(wrong)) == (2, ["topics"])
    assert f"{kafka_prefix}requests 5" in " ".join(wrong["topics"])


LONG_SESSION = """
from functools import partial
from connectors.kafka import client
client.Timeouts = partial(client.Timeouts, session_s=120.0)
"""


def test_a_worker_that_leaves_when_it_is_stopped_delays_no_one(config: Path) -> None:
    """Without `leave` the group keeps its partitions for the session, here of two minutes."""
    config.write_text(config.read_text().replace("[loop]", "leave = true\n[loop]"))
    workers: list[Process] = []
    for name in ("one", "two"):
        workers.append(Process(config, "--create-topics", "--instance", name, code=LONG_SESSION))
        workers[-1].wait_for("restored")
    with closing(open_topics(load_deployed(config))) as topics:
        wait_until(lambda: topics.n_members(load_deployed(config).worker.group) == 2)
        send_events(config, 40)
        wait_for_predictions(config, 40)
        workers[0].process.send_signal(signal.SIGTERM)
        status, log = workers[0].end()
        begun = monotonic()
        assert (status, log[-1]["event"]) == (console.DONE, "stopped")
        send_events(config, 40)
        wait_for_predictions(config, 80)
        assert monotonic() - begun < 100.0  # 2 s on a machine with nothing else to do
        assert topics.n_members(load_deployed(config).worker.group) == 1


def alerts(config: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    capsys.readouterr()
    status = check_deployment(config, broker=None, timeout_s=60.0)
    lines = capsys.readouterr().out.splitlines()
    return status, [line.split(maxsplit=2)[2] for line in lines if line.startswith("alert")]


def test_check_tells_inputs_that_wait_for_no_worker(
    config: Path, kafka_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_topics(config)
    assert alerts(config, capsys) == (0, [])
    send_events(config, 6)
    text = f"no worker is running in group '{kafka_prefix}group', with 6 inputs waiting"
    assert alerts(config, capsys) == (console.NEEDS_OPERATOR, [text])


def test_check_does_not_take_what_was_aborted_for_inputs(
    config: Path, kafka: str, kafka_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_topics(config)
    with open_transaction(kafka, f"{kafka_prefix}feeder", f"{kafka_prefix}events"):
        pass
    assert alerts(config, capsys) == (0, [])


def test_an_open_transaction_is_reported_by_check_and_watch(
    config: Path,
    kafka: str,
    kafka_prefix: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contents, "STALL_S", 2.0)
    Process(config, "--create-topics").wait_for("restored")
    send_events(config, 8)
    wait_for_predictions(config, 8)
    assert alerts(config, capsys) == (0, [])
    with open_transaction(kafka, f"{kafka_prefix}feeder", f"{kafka_prefix}events"):
        status, [text] = alerts(config, capsys)
        with visit(config) as deployment, closing(Follower(deployment, from_start=False)) as watch:
            watch.read_on(0.1)
            shown = watch.text()
    assert status == console.NEEDS_OPERATOR
    assert f"waiting in topic {kafka_prefix}events partition 0, without progress for " in text
    assert f"an open transaction of transactional id '{kafka_prefix}feeder' (producer " in text
    assert "\ninputs " in shown
    assert f"transactional id '{kafka_prefix}feeder'" in shown


def test_check_warns_of_questions_that_are_deleted_while_they_are_open(
    config: Path, kafka: str, kafka_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_topics(config)  # its questions expire after 60 seconds
    with closing(Connection(kafka).admin()) as admin:
        for kept_ms in (60_000, 59_999):
            capsys.readouterr()
            resource = ConfigResource(
                ConfigResourceType.TOPIC, f"{kafka_prefix}requests", {"retention.ms": kept_ms}
            )
            admin.alter_configs([resource])
            assert check_deployment(config, broker=None, timeout_s=60.0) == console.DONE
            said = capsys.readouterr().out
            assert ("set retention.ms there to at least 60000" in said) == (kept_ms < 60_000)


def test_check_tells_records_that_were_deleted_unread(
    config: Path,
    kafka: str,
    kafka_prefix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    worker = Process(config, "--create-topics")
    worker.wait_for("restored")
    send_events(config, 20)
    wait_for_predictions(config, 20)
    worker.process.send_signal(signal.SIGTERM)
    worker.end()
    send_events(config, 40)
    with closing(Connection(kafka).admin()) as admin:
        admin.delete_records({TopicPartition(f"{kafka_prefix}events", n): -1 for n in range(4)})
    status, found = alerts(config, capsys)
    assert status == console.NEEDS_OPERATOR
    assert len(found) == 4
    assert "deleted before they were read (offsets " in found[0]
    worker = Process(config, "--observe", "127.0.0.1:0")
    worker.wait_for("missed")
    send_events(config, 10)
    wait_for_predictions(config, 30)
    assert eventually(lambda: n_counted(worker, "missed_inputs"), 40) == 40
    worker.process.send_signal(signal.SIGTERM)
    _, log = worker.end()
    missed = [line for line in log if line["event"] == "missed"]
    assert sum(line["n"] for line in missed) == 40
    assert {line["level"] for line in missed} == {"warning"}
    assert alerts(config, capsys) == (0, [])
