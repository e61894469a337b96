"""What `streamgp flink` says where it cannot begin; tests/flink has it at work."""

import ast
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from connectors.storage.snapshots import StateDirectory
from streamgp.apps.flink import cluster, process
from streamgp.config.validation import ConfigError
from tests.helpers.commands import streamgp
from tests.helpers.documents import PACKAGES

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("logging_as_it_was")
KAFKA = 'broker = "kafka://127.0.0.1:1"\n'


def run(tmp_path, text, *options):
    path = tmp_path / "worker.toml"
    path.write_text(text)
    result = streamgp("flink", path, *options)
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.fixture
def no_pyflink(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)


@pytest.mark.usefixtures("no_pyflink")
def test_without_pyflink_one_line_says_how_to_install_it(tmp_path):
    (line,) = run(tmp_path, KAFKA).splitlines()
    assert line.startswith("Error: PyFlink is not installed in ")
    assert "bash docker/flink-environment.sh DIR" in line
    if not (ROOT / "docker").is_dir():
        pytest.skip("docker/ is not beside the tests")
    assert (ROOT / "docker/flink-environment.sh").exists()
    assert (ROOT / "docs/flink.md").exists()


def test_a_missing_connector_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda _: sys.modules["json"].__spec__)
    monkeypatch.setenv("FLINK_HOME", str(tmp_path))
    assert f"{tmp_path / 'lib'} has no Kafka connector for Flink" in run(tmp_path, KAFKA)


@pytest.fixture
def has_pyflink(tmp_path, monkeypatch):
    """Have PyFlink and its connector there, as far as is looked at."""
    monkeypatch.setattr(cluster, "find_spec", lambda _: sys.modules["json"].__spec__)
    monkeypatch.setenv("FLINK_HOME", str(tmp_path))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/flink-sql-connector-kafka-5.jar").touch()


def java(tmp_path, monkeypatch, text):
    """Have JAVA_HOME hold a program."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


@pytest.mark.usefixtures("has_pyflink")
def test_a_wrong_java_home_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    (line,) = run(tmp_path, KAFKA).splitlines()
    assert f"Flink needs Java, and {tmp_path}/nowhere/bin/java could not be run: " in line
    assert "set JAVA_HOME to its directory or unset it" in line


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (
            "echo 'openjdk version \"1.8.0_392\"' >&2",
            "Flink needs Java 11 or newer, and .* is vers",
        ),
        (
            "echo 'no such\nclass' >&2; exit 3",
            "java exited with status 3: no such; install Java",
        ),
        ("echo hello >&2", "java exited with status 0: hello; install Java 17"),
    ],
)
@pytest.mark.usefixtures("has_pyflink")
def test_another_java_than_flink_needs_is_named(tmp_path, monkeypatch, program, error):
    java(tmp_path, monkeypatch, program)
    (line,) = run(tmp_path, KAFKA).splitlines()
    assert re.search(error, line)


@pytest.mark.usefixtures("has_pyflink")
def test_with_everything_there_the_broker_is_asked(tmp_path, monkeypatch):
    java(tmp_path, monkeypatch, "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    cluster.check_environment()


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        (
            'broker = "file://topics"\n',
            (),
            'broker = "file://topics" is not Kafka, but Flink works only',
        ),
        (
            KAFKA + '[total_budget]\nrule = "at_most"\nn = 5\n',
            (),
            "[total_budget] covers all keys together, but Flink keeps the keys apart; leave it",
        ),
        (KAFKA, ("-D", "state.backend.type"), "-D must be KEY=VALUE, got 'state.backend.type'"),
        *[
            (
                KAFKA,
                ("--submit", url),
                f"--submit must be http://HOST:PORT of a cluster, got {url!r}",
            )
            for url in (
                "here:8081",
                "http://here:99999",
                "http://here:x",
                "http://[here",
                "http://",
            )
        ],
    ],
)
@pytest.mark.usefixtures("no_pyflink")
def test_what_flink_cannot_do_is_refused_in_words(tmp_path, text, options, error):
    assert error in run(tmp_path, text, *options)


def test_the_newest_checkpoint_that_is_complete_is_taken(tmp_path):
    for n, name in enumerate(["job1/chk-7", "job2/chk-1", "job2/chk-2"]):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        if name != "job2/chk-2":  # it was not finished
            metadata = directory / "_metadata"
            metadata.touch()
            os.utime(metadata, (n, n))
    assert cluster.last_checkpoint(tmp_path) == (tmp_path / "job2/chk-1").as_uri()


def test_no_job_goes_on_from_before_one_that_was_submitted(tmp_path, monkeypatch):
    metadata = tmp_path / "job1/chk-7/_metadata"
    metadata.parent.mkdir(parents=True)
    here = cluster.Cluster(checkpoints=tmp_path, remote=None, flink={})
    there = replace(here, remote=("one", 8081))
    monkeypatch.setattr(cluster.Cluster, "_execute", lambda *_: None)
    asked, jobs = [], [{"jid": "0af1", "name": "streamgp rooms", "state": "RUNNING"}]

    def answer(url, **_):
        asked.append(url)
        if not jobs:
            raise OSError("connection refused")
        return BytesIO(json.dumps({"jobs": jobs}).encode())

    monkeypatch.setattr(cluster, "_open", answer)
    there.start("streamgp rooms", list, begin_at=None)
    at = (tmp_path / "submitted").stat().st_mtime
    running = "the cluster already runs 'streamgp rooms' as job 0af1"
    with pytest.raises(ConfigError, match=running):  # its checkpoints are elsewhere
        here.last_checkpoint("rooms")
    assert here.last_checkpoint("hall") is None
    asked.clear()
    metadata.touch()
    os.utime(metadata, (at - 1, at - 1))
    for _ in range(2):
        with pytest.raises(
            ConfigError, match=r"older than the job .* http://one:8081, .* with --from"
        ):
            here.last_checkpoint("rooms")
        here.start("streamgp rooms", list, begin_at="file:/stopped")  # and ends too soon
    assert asked == []
    os.utime(metadata, (at + 1, at + 1))  # perhaps by the job that was submitted
    with pytest.raises(ConfigError, match=running):
        here.last_checkpoint("rooms")
    assert here.last_checkpoint("hall") == metadata.parent.as_uri()
    jobs.clear()  # the cluster has ended
    assert here.last_checkpoint("rooms") == metadata.parent.as_uri()
    assert asked == ["http://one:8081/jobs/overview"] * 3


def test_two_at_once_would_do_everything_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "check_environment", lambda: None)
    with StateDirectory(tmp_path / "state/flink"):
        said = run(tmp_path, f'{KAFKA}[worker]\nstate = "{tmp_path / "state"}"\n')
    assert "another `streamgp flink` is running" in said


@pytest.mark.parametrize(
    ("name", "state", "is_busy"),
    [
        ("streamgp rooms", "RUNNING", True),
        ("streamgp rooms: handing back", "RESTARTING", True),
        ("streamgp rooms", "CANCELED", False),
        ("streamgp rooms2", "RUNNING", False),
    ],
)
def test_a_job_of_the_group_that_is_on_the_cluster_is_named(monkeypatch, name, state, is_busy):
    jobs = {"jobs": [{"jid": "0af1", "name": name, "state": state}]}
    monkeypatch.setattr(cluster, "_open", lambda *_, **__: BytesIO(json.dumps(jobs).encode()))
    there = cluster.Cluster(checkpoints=Path("flink"), remote=("one", 8081), flink={})
    if is_busy:
        with pytest.raises(ConfigError, match=f"the cluster already runs '{name}' as job 0af1"):
            there.check_idle("rooms")
    else:
        there.check_idle("rooms")


def test_a_job_that_was_left_may_be_there(monkeypatch):
    jobs = {"jobs": [{"jid": "0af1", "name": "streamgp rooms: handing back", "state": "RUNNING"}]}
    monkeypatch.setattr(cluster, "_open", lambda *_, **__: BytesIO(json.dumps(jobs).encode()))
    there = cluster.Cluster(checkpoints=Path("flink"), remote=("one", 8081), flink={})
    there.check_idle("rooms", but=["0af1"])
    assert (there.status_of("0af1"), there.status_of("0af2")) == ("RUNNING", None)


@pytest.mark.parametrize(
    ("latest", "saved"),
    [
        ({"completed": None, "savepoint": None}, None),
        (
            {"completed": {"id": 7, "external_path": "file:/chk-7"}, "savepoint": None},
            "file:/chk-7",
        ),
        (
            {
                "completed": {"id": 7, "external_path": "file:/chk-7", "status": "COMPLETED"},
                "savepoint": {"id": 8, "external_path": "file:/savepoint-8"},
                "failed": None,
            },
            "file:/savepoint-8",
        ),
    ],
)
def test_what_a_job_has_saved_last_is_asked_of_the_cluster(monkeypatch, latest, saved):
    urls = []

    def answer(url, **_):
        urls.append(url)
        return BytesIO(json.dumps({"latest": latest, "counts": {}}).encode())

    monkeypatch.setattr(cluster, "_open", answer)
    there = cluster.Cluster(checkpoints=Path("flink"), remote=("one", 8081), flink={})
    assert there.saved_by("0af1") == saved
    assert urls == ["http://one:8081/jobs/0af1/checkpoints"]


def test_a_cluster_that_does_not_answer_is_reported():
    there = cluster.Cluster(checkpoints=Path("flink"), remote=("127.0.0.1", 1), flink={})
    with pytest.raises(
        ConfigError, match=r"no cluster of Flink answers at http://127\.0\.0\.1:1/jobs"
    ):
        there.check_idle("rooms")


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"jobs":[{}]}',
    ],
    ids=["no HTTP", "cut", "no object", "another program"],
)
def test_another_program_at_the_address_of_a_cluster_is_reported(reply):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with server.accept()[0] as client:
                client.recv(1000)
                client.sendall(reply)

        threading.Thread(target=answer).start()
        address = server.getsockname()[:2]
        there = cluster.Cluster(checkpoints=Path("flink"), remote=address, flink={})
        with pytest.raises(ConfigError, match=r"no cluster of Flink answers at http://.*: \S"):
            there.check_idle("rooms")


def test_what_is_temporary_lies_with_the_checkpoints(tmp_path, monkeypatch):
    for name in ("TMPDIR", "JVM_ARGS"):
        monkeypatch.setenv(name, "-Xmx1g")
    directory = tmp_path / "temporary"
    cluster.use_temporary(directory)
    (directory / "left").touch()
    cluster.use_temporary(directory)
    assert not list(directory.iterdir())
    assert os.environ["TMPDIR"] == str(directory)
    can_be_named = " " not in str(directory)
    first = f"-Djava.io.tmpdir={directory} " if can_be_named else ""
    assert os.environ["JVM_ARGS"] == f"{first}{first}-Xmx1g"  # once for each call


def test_no_other_module_imports_pyflink_and_no_dependency_brings_it():
    importing = set()
    packages = [PACKAGES / "streamgp", PACKAGES / "connectors"]
    for path in [path for package in packages for path in package.rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "pyflink" in text else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "pyflink" for name in names):
                importing.add(path.relative_to(PACKAGES).as_posix())
    of_flink = {"connectors/flink/function.py", "connectors/flink/job.py"}
    assert importing == of_flink | {"streamgp/apps/flink/cluster.py"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "flink" not in str([project["dependencies"], project["optional-dependencies"]])


def test_everything_but_the_job_is_loaded_without_pyflink():
    code = (
        "import sys; sys.modules['pyflink'] = None\n"
        "import connectors.keyed_state, connectors.kafka.settings\n"
        "import streamgp.apps.flink.process, streamgp.cli.main"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Py4JError(Exception):
    pass


class Py4JJavaError(Py4JError):
    pass


def job_that_raises(monkeypatch, error):
    """Return a job each of whose calls into Java raises an error."""
    protocol = ModuleType("py4j.protocol")
    protocol.Py4JError, protocol.Py4JJavaError = Py4JError, Py4JJavaError
    monkeypatch.setitem(sys.modules, "py4j", ModuleType("py4j"))
    monkeypatch.setitem(sys.modules, "py4j.protocol", protocol)

    def fail():
        raise error

    result = SimpleNamespace(done=fail)
    return cluster.FlinkJob(SimpleNamespace(get_job_execution_result=lambda: result, cancel=fail))


@pytest.mark.parametrize("error", [Py4JError("o1.isDone"), ConnectionRefusedError(111)])
def test_a_job_whose_java_process_has_ended_has_failed(monkeypatch, error):
    job = job_that_raises(monkeypatch, error)
    assert job.failure() == "Flink's Java process has ended"
    with pytest.raises(ConfigError, match="the job has failed: Flink's Java process has ended"):
        job.has_ended()
    job.cancel()


def test_what_java_raises_while_a_job_is_cancelled_is_raised(monkeypatch):
    with pytest.raises(Py4JJavaError):
        job_that_raises(monkeypatch, Py4JJavaError("no such job")).cancel()


class Arrived:
    """A signal that has arrived, or has not."""

    signal = "SIGTERM"

    def __init__(self, *answers):
        self.answers = iter(answers)

    def __call__(self):
        return next(self.answers)


@pytest.mark.parametrize(
    ("arrived", "status", "event"), [(True, 0, "stopped"), (False, 75, "failed")]
)
def test_flink_that_ends_by_the_same_signal_has_not_failed(caplog, arrived, status, event):
    caplog.set_level(logging.INFO, "streamgp")
    job = SimpleNamespace(failure=lambda: "Flink's Java process has ended")
    assert process._follow(job, Arrived(arrived), list) == status
    assert [record.message for record in caplog.records] == [event]


def test_a_job_without_a_right_is_not_to_be_started_again(caplog):
    trace = (
        "org.apache.flink.runtime.JobException: Recovery is suppressed\n"
        "Caused by: org.apache.flink.kafka.shaded.org.apache.kafka.common.errors."
        "TopicAuthorizationException: Not authorized to access topics: [events]\n"
    )
    job = SimpleNamespace(failure=lambda: cluster.reason_in(trace))
    assert process._follow(job, lambda: False, list) == 2
    [record] = caplog.records
    assert record.message == "failed"
    assert "Not authorized to access topics: [events]" in str(vars(record))


def test_the_log_has_no_tracebacks_of_py4j_and_all_other_lines(capfd):
    root = logging.getLogger()
    before, root.handlers = root.handlers, []
    try:
        cluster.leave_out_log_of_py4j()
        logging.exception("Exception while sending command.")
        logging.getLogger("py4j.java_gateway").error("cannot connect")
        logging.getLogger("another").warning("of another library")
    finally:
        root.handlers = before
    assert capfd.readouterr().err == "of another library\n"
