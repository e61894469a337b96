"""`[observe]`: what a worker tells Prometheus and an orchestrator, and nothing where it is off."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.record_lines import input_of
from connectors.worker.metrics import WorkerMetrics
from streamgp.apps.worker import observe
from streamgp.apps.worker.observe import (
    FAMILIES,
    MOST_CONNECTIONS,
    PREFIX,
    observed,
    registry_of,
)
from streamgp.config.load import parse_worker
from streamgp.config.validation import ConfigError
from tests.helpers.topics import wait_until
from tests.helpers.worker_process import Process

DOCS = Path(__file__).parents[3] / "docs"
EVENTS = [b'{"key":"secret-key","x":{"light":0.%d},"y":"home"}' % i for i in range(1, 8)]


def read(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60.0) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Return the value of every sample, by its name and the values of its labels, as they stand."""
    return {
        (each.name.removeprefix(PREFIX), *each.labels.values()): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def test_health_and_readiness_follow_the_metrics() -> None:
    with observed("127.0.0.1:0") as observation:
        url, metrics = observation.url, observation.metrics
        assert read(f"{url}/healthz") == (200, "ok\n")
        assert read(f"{url}/readyz") == (503, "partitions are not restored\n")
        metrics.note_assignment()
        metrics.note_restored({})
        assert read(f"{url}/readyz?x=1") == (200, "ok\n")
        metrics.note_assignment()
        assert read(f"{url}/readyz")[0] == 503
        assert read(f"{url}/")[0] == 404
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{url}/healthz", timeout=1.0)


def test_a_worker_without_a_cycle_for_a_minute_is_not_healthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with observed("127.0.0.1:0") as observation:
        monkeypatch.setattr(WorkerMetrics, "is_alive", False)
        assert read(f"{observation.url}/healthz") == (503, "no cycle within a minute\n")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients stay as long as they like, however busy the machine is."""
    monkeypatch.setattr(observe, "LONGEST_S", 600.0)
    monkeypatch.setattr(observe._Handler, "timeout", 600.0)


@pytest.mark.usefixtures("patient")
def test_clients_that_say_nothing_take_no_more_than_their_share_of_the_worker() -> None:
    with observed("127.0.0.1:0") as observation, ExitStack() as stack:
        host, port = observation.url.removeprefix("http://").split(":")
        before = set(threading.enumerate())

        def n_threads() -> int:
            return len(set(threading.enumerate()) - before)

        clients = [
            stack.enter_context(socket.create_connection((host, int(port)), timeout=60.0))
            for _ in range(MOST_CONNECTIONS)
        ]
        wait_until(lambda: n_threads() == MOST_CONNECTIONS)
        # The oldest one makes room.
        assert read(f"{observation.url}/healthz") == (200, "ok\n")
        assert clients[0].recv(1) == b""
        wait_until(lambda: n_threads() <= MOST_CONNECTIONS)  # the last one ends after its answer
        stack.close()
        wait_until(lambda: n_threads() == 0)
        assert read(f"{observation.url}/healthz") == (200, "ok\n")


@pytest.mark.usefixtures("patient")
def test_a_client_that_makes_room_late_keeps_no_question_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine its thread may not run for a while, and a supervisor got no answer."""
    hang_up = observe._hang_up
    monkeypatch.setattr(
        observe, "_hang_up", lambda client: threading.Timer(1.5, hang_up, (client,)).start()
    )
    monkeypatch.setattr(observe, "MOST_CONNECTIONS", 1)
    with observed("127.0.0.1:0") as observation:
        host, port = observation.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60.0):
            assert read(f"{observation.url}/healthz") == (200, "ok\n")


def test_a_client_that_never_comes_to_an_end_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observe, "LONGEST_S", 0.2)
    with observed("127.0.0.1:0") as observation:
        host, port = observation.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=0.01) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\n")

            def is_over() -> bool:
                try:
                    client.sendall(b"X: x\r\n")  # it never says nothing for long
                    return client.recv(1) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True

            wait_until(is_over)


def test_head_has_no_body_and_other_methods_are_not_there() -> None:
    with observed("[::1]:0") as observation:
        assert observation.url.startswith("http://[::1]:")
        connection = HTTPConnection("::1", int(observation.url.rpartition(":")[2]), timeout=60.0)
        for method, status in (("HEAD", 200), ("POST", 501)):
            connection.request(method, "/healthz")
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == status
            assert (body == b"") == (method == "HEAD")
        connection.close()


def test_prometheus_reads_every_metric_with_its_kind() -> None:
    metrics = WorkerMetrics()
    metrics.answers["learned"] += 1
    metrics.dead_letters["decode"] += 1
    metrics.committed_at = 60.0
    metrics.requests["Entropy"] += 1
    metrics.challenges["upheld"] += 1
    metrics.learned["asked"] += 1
    metrics.shares.count({"hall": 1})
    metrics.lags = {("events", 0): 3}
    text = generate_latest(registry_of(metrics)).decode()
    found = {each.name: each for each in text_string_to_metric_families(text)}
    for family in FAMILIES:
        name = PREFIX + family.name
        read_back = found[name.removesuffix("_total")]
        assert (read_back.type, read_back.documentation) == (family.kind, family.help)
        assert read_back.samples
        labels = set(read_back.samples[0].labels) - {"le"}
        assert labels == set(family.labels)
    assert samples(text)["consumer_lag_records", "0", "events"] == 3.0
    assert samples(text)["stuck_partition", "0", "events"] == 0.0


def test_names_follow_the_rules_of_prometheus() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"[a-z_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        # No label can hold what belongs to one key, one event or one person.
        assert not {"key", "event_id", "request_id"} & set(family.labels)
        of_people = ("label_error_estimate", "quarantined_annotators")
        assert family.name in of_people or "annotator" not in family.labels


def test_every_metric_is_documented_with_its_labels() -> None:
    path = DOCS / "monitoring.md"
    if not path.is_file():
        pytest.skip("docs/ is not beside the tests")
    text = path.read_text(encoding="utf-8")
    [table] = re.findall(r"^## Metrics, health.*?\n(\| metric .*?)\n\n", text, re.M | re.S)
    listed = {}
    for line in table.splitlines()[2:]:
        name, kind, labels, _ = (cell.strip() for cell in line.strip("|").split(" | "))
        listed[name.strip("`")] = kind, tuple(re.findall(r"`([a-z_]+)`", labels))
    assert listed == {PREFIX + each.name: (each.kind, each.labels) for each in FAMILIES}


def test_an_address_that_cannot_be_served_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        expected = rf"cannot serve metrics at {re.escape(bind)}: .*; give another observe.bind, or"
        with pytest.raises(ConfigError, match=expected), observed(bind):
            pass
    with pytest.raises(ConfigError, match=r"w: observe.bind: expected HOST:PORT, .* got '9464'"):
        parse_worker('broker = "file://topics"\n[observe]\nbind = "9464"', source="w")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    expected = "pip install prometheus-client$"
    with pytest.raises(ConfigError, match=expected), observed("127.0.0.1:0"):
        pass


def test_a_worker_that_serves_nothing_does_not_load_prometheus_client() -> None:
    code = "import sys, streamgp.apps.worker.process\nassert 'prometheus_client' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "w.toml"
    path.write_text(
        f'broker = "file://{tmp_path}/topics"\n[worker]\nstate = "{tmp_path}/state"\n'
        '[observe]\nbind = "127.0.0.1:1"\n'
    )
    EmbeddedTopics(tmp_path / "topics").create()
    return path


def test_a_running_worker_counts_what_it_has_predicted(config: Path) -> None:
    worker = Process(config, "--observe", "127.0.0.1:0")
    worker.wait_for("assigned")
    with closing(EmbeddedTopics(config.parent / "topics").writer("test")) as writer:
        for line in EVENTS:
            writer.send(input_of(line))
    worker.wait_for("batch")
    url = worker.url
    assert read(f"{url}/readyz")[0] == 200
    while samples(text := read(f"{url}/metrics")[1])["predictions_total",] < 7.0:
        pass
    values = samples(text)
    assert values["events_total",] == 7.0
    assert values["batch_duration_seconds_count", "commit"] >= 1.0
    assert values["process_resident_memory_bytes",] > 0.0
    assert "secret" not in text
    worker.process.terminate()
    status, _ = worker.end()
    assert status == 0


def test_a_wrong_address_ends_the_command(config: Path) -> None:
    status, log = Process(config, "--observe", "nowhere").end()
    assert status == 2
    assert log[-1]["reason"].startswith("--observe: expected HOST:PORT")
