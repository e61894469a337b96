"""`streamgp run`: how it begins, how it is asked to stop, and with what status it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import BrokerError, FencedError, Record
from connectors.wire.record_lines import input_of
from connectors.wire.state_records import HistoryError
from connectors.worker.compatibility import ChangedConfigurationError, UnfitTopicsError
from connectors.worker.metrics import WorkerMetrics
from connectors.worker.settings import LoopSettings, TooManyBadError, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps import console
from streamgp.apps.worker import process as running
from streamgp.cli import worker as run
from streamgp.cli.main import cli
from tests.helpers import exit_statuses
from tests.helpers.topics import everything, wait_until
from tests.helpers.worker_process import ENVIRONMENT, MAIN, Process

KEYED = '{"key":"ann","x":{"light":0.5},"y":"home"}'


class FakeTopics(MemoryTopics):
    """Topics of which something may be wrong."""

    def __init__(self, problems: Sequence[str] = (), n_partitions: int = 4) -> None:
        super().__init__(n_partitions)
        self.said = list(problems)
        self.n_created = 0
        self.is_closed = False

    def problems(self) -> list[str]:
        return [] if self.n_created else self.said

    def create(self) -> list[str]:
        self.n_created += 1
        return ["made topic events", "made topic answers"]

    def close(self) -> None:
        self.is_closed = True
        super().close()


class FakeWorker:
    """A worker that takes down what it was given, and ends as it was told to."""

    given: dict[str, Any]
    error: Exception | None = None

    def __init__(
        self,
        topics: MemoryTopics,
        loops: LoopSettings,
        settings: WorkerSettings,
        *,
        state: StateDirectory | None,
        metrics: WorkerMetrics | None,
    ) -> None:
        assert metrics is None
        type(self).given = {"topics": topics, "loops": loops, "settings": settings, "state": state}

    def run(self, should_stop: Callable[[], bool]) -> None:
        assert not should_stop()
        if self.error is not None:
            raise self.error


@pytest.fixture(autouse=True)
def process_as_it_was(monkeypatch: pytest.MonkeyPatch, logging_as_it_was: None) -> None:  # noqa: ARG001
    """Let a command end like a function, and leave logging as it was."""

    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(run, "leave", leave)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> FakeTopics:
    found = FakeTopics()
    monkeypatch.setattr(running, "open_topics", lambda _config: found)
    return found


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorker]:
    made = type("MadeWorker", (FakeWorker,), {})
    monkeypatch.setattr(running, "Worker", made)
    return made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "worker.toml"
    state = json.dumps(str(tmp_path / "state"))
    path.write_text(f'broker = "kafka://nowhere"\n[worker]\nstate = {state}\n')
    return path


def add(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def started(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["run", *map(str, arguments), "--log-format", "json"])


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stderr.splitlines()]


def failure(result: Result) -> str:
    """Return why it failed; there is one line about that."""
    assert result.stdout == ""
    found = [line for line in lines(result) if line["level"] == "error"]
    assert [line["event"] for line in found] == ["failed"]
    assert found[0]["status"] == result.exit_code
    return str(found[0]["reason"])


# --- what a worker is given


def test_worker_gets_what_the_file_says(
    config: Path, tmp_path: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    add(config, 'group = "rooms"\nbatch = 7\nsave_every_s = 2\nmax_bad_share = 0.1\n')
    add(config, "[loop]\nexpires_after_s = 60\nanswer_horizon_s = 600\nmax_keys = 9\n")
    result = started(config, "--instance", "w1")
    assert result.exit_code == console.DONE, result.stderr
    given = worker.given
    assert given["topics"] is topics
    assert given["settings"] == WorkerSettings(
        group="rooms", instance="w1", batch=7, save_every_s=2.0, max_bad_share=0.1
    )
    loops = given["loops"]
    assert (loops.keyed, loops.max_keys) == (True, 9)
    assert (loops.expires_after_s, loops.answer_horizon_s) == (60.0, 600.0)
    assert given["state"].path == tmp_path / "state" / "w1"
    assert topics.is_closed
    StateDirectory(tmp_path / "state" / "w1").close()  # free again


def test_start_and_end_are_logged(
    config: Path, tmp_path: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert topics is not None
    assert worker is not None
    first, last = lines(started(config, "--instance", "w1"))
    assert (first["event"], last["event"]) == ("started", "stopped")
    assert (first["group"], first["instance"]) == ("streamgp", "w1")
    assert first["broker"] == "kafka://nowhere"
    assert first["state"] == str(tmp_path / "state" / "w1")
    assert last["signal"] is None


def test_instance_of_the_file_is_replaced_by_the_option(
    config: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert topics is not None
    add(config, 'instance = "from-file"\n')
    started(config)
    assert worker.given["settings"].instance == "from-file"
    started(config, "--instance", "given")
    assert worker.given["settings"].instance == "given"


def test_state_that_cannot_be_kept_is_reported_once_and_done_without(
    config: Path, tmp_path: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert topics is not None
    (tmp_path / "state").touch()
    result = started(config)
    assert result.exit_code == console.DONE
    warnings = [line for line in lines(result) if line["level"] == "warning"]
    assert [line["event"] for line in warnings] == ["state-unused"]
    assert "is a file; name another place" in warnings[0]["reason"]
    assert worker.given["state"] is None


def test_one_learner_for_all_holds_no_keys(
    config: Path, monkeypatch: pytest.MonkeyPatch, worker: type[FakeWorker]
) -> None:
    monkeypatch.setattr(running, "open_topics", lambda _config: FakeTopics(n_partitions=1))
    add(config, "keyed = false\n[loop]\nmax_keys = 9\n")
    assert started(config).exit_code == console.DONE
    assert (worker.given["loops"].keyed, worker.given["loops"].max_keys) == (False, None)


# --- what it refuses


def test_wrong_configuration_is_one_line_and_status_2(config: Path) -> None:
    add(config, "bach = 7\n")
    result = started(config)
    assert result.exit_code == console.WRONG_USE
    assert 'worker.bach is not known, did you mean "batch"?' in failure(result)


def test_wrong_instance_is_one_line_and_status_2(config: Path) -> None:
    result = started(config, "--instance", "../up")
    assert result.exit_code == console.WRONG_USE
    assert failure(result).startswith('--instance = "../up" is not allowed, expected a name of')


def test_instance_at_work_is_refused(config: Path, tmp_path: Path, topics: FakeTopics) -> None:
    assert topics is not None
    with StateDirectory(tmp_path / "state" / "w1"):
        result = started(config, "--instance", "w1")
    assert result.exit_code == console.WRONG_USE
    assert failure(result).startswith("worker 'w1' is already running: ")


def test_every_problem_of_the_topics_is_a_line(config: Path, topics: FakeTopics) -> None:
    topics.said = ["topic events is missing", "topic state is missing"]
    result = started(config)
    assert result.exit_code == console.WRONG_USE
    first, last = lines(result)
    assert (first["event"], first["problem"]) == ("topics", "topic events is missing")
    assert (last["event"], last["reason"]) == ("failed", "topic state is missing")


def test_missing_topics_are_made_on_request(
    config: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert worker is not None
    topics.said = ["topic events is missing"]
    assert started(config).exit_code == console.WRONG_USE
    result = started(config, "--create-topics")
    assert result.exit_code == console.DONE
    assert [line.get("done") for line in lines(result)[:2]] == [
        "made topic events",
        "made topic answers",
    ]
    assert topics.n_created == 1


def test_one_learner_for_all_is_refused_on_several_partitions(
    config: Path, topics: FakeTopics
) -> None:
    add(config, "keyed = false\n")
    result = started(config)
    assert result.exit_code == console.WRONG_USE
    assert failure(result) == (
        "the topics have 4 partitions, but one learner for all keys (worker.keyed = false) needs "
        "1; make topics with one partition, or write keyed = true"
    )
    result = started(config, "--create-topics")
    assert result.exit_code == console.WRONG_USE
    assert failure(result) == (
        "topics.partitions = 4, but one learner for all keys (worker.keyed = false) needs 1; write "
        "partitions = 1 in section [topics]"
    )
    assert topics.n_created == 0


# --- how it ends

ENDS = [
    (
        ChangedConfigurationError("partition 0 was worked on"),
        console.WRONG_USE,
        "partition 0 was worked on",
    ),
    (TooManyBadError("600 of 1000"), console.TOO_MANY_BAD, "600 of 1000"),
    (BrokerError("broker is gone"), console.LOST_BROKER, "broker is gone"),
    (FencedError("another worker"), console.FENCED, "another worker"),
    (ZeroDivisionError("by\nzero"), console.INTERNAL_ERROR, "ZeroDivisionError: by zero"),
    (OSError(5, "Input/output error"), console.INTERNAL_ERROR, "OSError: [Errno 5] Input"),
    (MemoryError(), console.INTERNAL_ERROR, "MemoryError"),
]


@pytest.mark.parametrize(("error", "status", "reason"), ENDS, ids=lambda value: str(value)[:20])
def test_each_error_has_its_status_and_one_line(
    error: Exception,
    status: int,
    reason: str,
    config: Path,
    topics: FakeTopics,
    worker: type[FakeWorker],
) -> None:
    assert topics is not None
    worker.error = error
    result = started(config)
    assert result.exit_code == status
    assert failure(result).startswith(reason)
    assert "Traceback" not in result.stderr
    assert status in exit_statuses.OF_A_WORKER


def test_a_fenced_worker_is_not_to_be_started_again(
    config: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert topics is not None
    worker.error = FencedError("another worker")
    last = lines(started(config))[-1]
    assert last["advice"] == "another worker has this instance name; do not start again"


def test_damaged_topics_are_reported_with_their_file_where_they_are_in_one(
    config: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert topics is not None
    damaged = UnfitTopicsError("partition 0: state:0:7 is nothing that this streamgp writes")
    damaged.__cause__ = HistoryError("state:0:7")
    for error, is_told in ((damaged, True), (UnfitTopicsError("another configuration"), False)):
        worker.error = error
        assert failure(started(config)) == str(error)
        reason = failure(started(config, "--broker", "file://here"))
        advice = "restore here/topics.db as a worker left it, or start over"
        assert reason.startswith(str(error))
        assert (advice in reason) == is_told


def test_learner_that_raises_is_reported_with_the_place(
    config: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    assert topics is not None
    worker.error = ZeroDivisionError("float division")
    last = lines(started(config))[-1]
    assert re.fullmatch(r".*test_run_command\.py:\d+", last["raised_at"])
    assert last["advice"] == "nothing of this batch was committed"
    assert "traceback" not in last
    last = lines(started(config, "--debug"))[-1]
    # Of a long one the end: with Python 3.13 it has more lines, where paths are long longer ones.
    assert "Traceback (most recent call last):" in last["traceback"]
    assert "ZeroDivisionError: float division" in last["traceback"]


def test_broker_that_cannot_be_reached_is_one_line_and_status_75(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_config: object) -> None:
        raise BrokerError("nowhere:9092 cannot be reached: name is not known")

    monkeypatch.setattr(running, "open_topics", unreachable)
    result = started(config)
    assert result.exit_code == console.LOST_BROKER
    assert failure(result) == "nowhere:9092 cannot be reached: name is not known"


def test_what_ends_with_an_error_does_not_wait_for_the_broker(
    config: Path, topics: FakeTopics, worker: type[FakeWorker]
) -> None:
    worker.error = BrokerError("broker is gone")
    started(config)
    assert not topics.is_closed


def test_help_lists_every_exit_status() -> None:
    text = CliRunner().invoke(cli, ["run", "--help"]).stdout.partition("Exit status:")[2]
    for status in exit_statuses.OF_A_WORKER:
        assert re.search(rf"\b{status}\b", text), status


# --- the real thing, in memory


@pytest.fixture
def worked(
    topics: FakeTopics, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Result, list[Record]]]:
    """Return a function that lets a worker process lines, and returns what it wrote."""

    class Brief(Worker):
        def run(self, should_stop: Callable[[], bool]) -> None:
            super().run(lambda: should_stop() or not any(topics.lags("streamgp").values()))

    def play(config: Path, *given: str) -> tuple[Result, list[Record]]:
        monkeypatch.setattr(running, "Worker", Brief)
        monkeypatch.setattr(topics, "close", lambda: None)  # they are read afterwards
        with closing(topics.writer("test")) as writer:
            for line in given:
                writer.send(input_of(line.encode()))
        result = started(config)
        return result, everything(topics, "predictions", "consensus", "dead-letters")

    return play


def test_inputs_become_predictions_labels_and_dead_letters(config: Path, worked: Any) -> None:
    result, said = worked(
        config,
        KEYED,
        '{"key":"ann","event_id":"e2","x":{"light":0.6}}',
        "hello",
        '{"key":"ann","event_id":"e2","annotator":"bob","y":"home"}',
    )
    assert result.exit_code == console.DONE, result.stderr
    topics = [record.topic for record in said]
    assert topics.count("predictions") == 2, said
    assert topics.count("consensus") == 2
    assert [record.value for record in said if record.topic == "dead-letters"] == [b"hello"]
    assert lines(result)[-1]["event"] == "stopped"


def test_log_holds_nothing_that_was_observed_or_said(config: Path, worked: Any) -> None:
    result, said = worked(
        config,
        '{"key":"kim-secret","event_id":"id-secret","x":{"light-secret":0.125},"y":"y-secret"}',
        '{"key":"kim-secret","event_id":"id-secret","y":"label-secret","annotator":"bob-secret"}',
        '{"key":"kim-secret","x":"x-secret"}',
    )
    assert len(said) >= 3
    assert "batch" in {line["event"] for line in lines(result)}
    assert "secret" not in result.stderr
    assert "0.125" not in result.stderr


def test_inputs_over_which_a_learner_raises_are_dead_letters_and_the_worker_goes_on(
    config: Path, worked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamgp.query import SkepticalClassifier

    def broken(*_: object, **__: object) -> None:
        raise ArithmeticError("no root")

    monkeypatch.setattr(SkepticalClassifier, "predict_proba_one", broken)
    result, said = worked(config, KEYED, KEYED)
    assert result.exit_code == console.DONE
    assert said
    for record in said:
        headers = dict(record.headers)
        assert (record.topic, headers["dlq.stage"]) == ("dead-letters", b"predict")
        assert headers["dlq.error"] == b"ArithmeticError: no root"


def test_an_error_of_the_worker_itself_stops_it_and_commits_nothing(
    config: Path, worked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ArithmeticError("no root")

    monkeypatch.setattr("connectors.worker.batch.read", broken)
    result, said = worked(config, KEYED, KEYED)
    assert result.exit_code == console.INTERNAL_ERROR
    assert failure(result) == "ArithmeticError: no root"
    assert said == []


@pytest.fixture
def embedded(config: Path) -> Path:
    """A configuration whose topics are in a directory, and there."""
    config.write_text(
        config.read_text().replace("kafka://nowhere", f"file://{config.parent}/topics")
    )
    EmbeddedTopics(config.parent / "topics").create()
    return config


def test_closed_standard_error_is_no_reason_to_fail(embedded: Path) -> None:
    topics = EmbeddedTopics(embedded.parent / "topics")
    with closing(topics.writer("test")) as writer:
        writer.send(input_of(KEYED.encode()))
    start = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", MAIN]
    process = subprocess.Popen([*start, "run", str(embedded)], env=ENVIRONMENT)
    try:
        wait_until(lambda: bool(everything(topics, "predictions")))
        process.terminate()
        assert process.wait(60.0) == console.DONE
    finally:
        process.kill()
        process.wait()


# --- signals, in a process of its own


# By day the others end workers here and in tests/cli/test_hangup.py.
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(n, marks=pytest.mark.nightly) for n in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_signal_ends_it_with_0(number: signal.Signals, embedded: Path) -> None:
    process = Process(embedded)
    process.wait_for("assigned")
    process.process.send_signal(number)
    status, log = process.end()
    assert status == console.DONE
    assert [(line["event"], line["signal"]) for line in log[-2:]] == [
        ("stopping", number.name),
        ("stopped", number.name),
    ]


SILENT = """
import time
from connectors.worker.logging import say
from streamgp.apps.worker import process
def silent(config):
    say(20, "opening")
    while True:
        time.sleep(0.01)
process.open_topics = silent
"""


def test_signal_ends_it_while_a_broker_does_not_answer(embedded: Path) -> None:
    """It took as long as the broker had to answer, and ended as if the broker had been lost."""
    process = Process(embedded, code=SILENT)
    process.wait_for("opening")
    process.process.send_signal(signal.SIGTERM)
    status, log = process.end()
    assert status == console.DONE
    assert [(line["event"], line["signal"]) for line in log[-2:]] == [
        ("stopping", "SIGTERM"),
        ("stopped", "SIGTERM"),
    ]


NOHUP = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
"""


def test_signals_ignored_from_the_start_do_not_end_it(embedded: Path) -> None:
    """As under `nohup`, and as the background job of a script."""
    process = Process(embedded, code=NOHUP)
    process.wait_for("assigned")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        process.process.send_signal(number)
    status, log = process.end()
    assert status == console.DONE
    assert [(line["event"], line["signal"]) for line in log[-2:]] == [
        ("stopping", "SIGTERM"),
        ("stopped", "SIGTERM"),
    ]


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
"""


def test_disk_without_room_at_the_start_may_have_room_at_the_next(embedded: Path) -> None:
    """A supervisor that was told otherwise would leave it at that."""
    status, log = Process(embedded, code=FULL).end()
    assert status == console.LOST_BROKER
    assert "topics.db: disk I/O error; free some space" in log[-1]["reason"]


BUSY = """
import time
from connectors.worker.worker import Worker
from streamgp.apps import console
from connectors.worker.logging import say
console._SAME_WISH_S = 0.0
def busy(self, should_stop):
    while not should_stop():
        time.sleep(0.01)
    say(20, "busy")
    while True:  # a signal that comes just before a long sleep begins is only seen after it
        time.sleep(0.01)
Worker.run = busy
"""


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.nightly),
    ],
)
def test_second_signal_ends_it_at_once(number: signal.Signals, status: int, embedded: Path) -> None:
    process = Process(embedded, code=BUSY)
    process.wait_for("started")
    process.process.send_signal(signal.SIGTERM)
    process.wait_for("busy")
    process.process.send_signal(number)
    assert process.end()[0] == status


STUCK = """
import atexit, threading, time
from connectors.topics import BrokerError
from connectors.worker.worker import Worker
def lost(self, should_stop):
    threading.Thread(target=time.sleep, args=(600.0,)).start()
    atexit.register(time.sleep, 600.0)
    raise BrokerError("broker is gone")
Worker.run = lost
"""


def test_threads_and_exit_handlers_of_a_client_do_not_hold_it_up(embedded: Path) -> None:
    status, log = Process(embedded, code=STUCK).end()
    assert status == console.LOST_BROKER
    assert log[-1]["reason"] == "broker is gone"
