"""The files in docker/observe/: they name metrics that exist, and alerts fire when they should."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.memory import MemoryTopics
from connectors.wire.record_lines import input_of
from streamgp.apps.page.invites import Invites
from streamgp.apps.worker.observe import FAMILIES, PREFIX
from tests.helpers.page_server import Served
from tests.helpers.topics import write
from tests.helpers.worker_process import Process

ROOT = Path(__file__).parents[1]
FILES = ROOT / "docker" / "observe"
if not FILES.is_dir():
    pytest.skip("docker/ is not beside the tests", allow_module_level=True)

ALERTS = (FILES / "alerts.yml").read_text(encoding="utf-8")
DASHBOARD = json.loads((FILES / "dashboard.json").read_text(encoding="utf-8"))
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

HISTOGRAM = ("_bucket", "_count", "_sum")
NAMES = {
    PREFIX + each.name + suffix
    for each in FAMILIES
    for suffix in (HISTOGRAM if each.kind == "histogram" else ("",))
}


def named(text):
    return set(re.findall(rf"\b{PREFIX}\w+", text))


def test_alerts_and_dashboard_name_metrics_that_exist(tmp_path):
    used = named(ALERTS) | named(" ".join(EXPRESSIONS))
    with Served(MemoryTopics(), invites=Invites(tmp_path / "invites.json")) as served:
        of_page = named(served.browser().get("/metrics").body.decode())
    assert used - NAMES - of_page == set()
    # And every metric of a worker is seen somewhere.
    shown = {name.removesuffix(suffix) for name in used for suffix in (*HISTOGRAM, "")}
    assert {PREFIX + each.name for each in FAMILIES} <= shown


def test_labels_in_expressions_are_those_of_the_metrics():
    known = {label for each in FAMILIES for label in each.labels} | {"le", "job", "instance"}
    for text in [ALERTS, *EXPRESSIONS]:
        for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", text):
            assert set(labels.split(", ")) <= known


def test_every_alert_is_documented():
    guide = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(Streamgp\w+)` \|", guide, re.M)
    assert listed == re.findall(r"- alert: (\w+)", ALERTS)


def test_the_dashboard_is_laid_out_without_overlap():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    uids = {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]}
    assert [f"uid: {uid}" in (FILES / "datasource.yml").read_text() for uid in uids] == [True]


# --- with Prometheus itself


needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="Prometheus is not installed (Debian: apt-get install prometheus)",
)

ONE = 'job="streamgp", instance="w"'
SCENES = """
rule_files: [alerts.yml]
evaluation_interval: 30s
tests:
  - interval: 30s  # all is well: a lag that stays small, dead letters few, commits go on
    input_series:
      - series: up{ONE}
        values: 1x60
      - series: up{job="streamgp-page", instance="p"}
        values: 1x60
      - series: streamgp_page_ready{job="streamgp-page", instance="p"}
        values: 0x3 1x60
      - series: streamgp_last_commit_timestamp_seconds{ONE}
        values: 0+30x60
      - series: streamgp_consumer_lag_records{ONE, topic="events", partition="0"}
        values: 500x60
      - series: streamgp_events_total{ONE}
        values: 0+100x60
      - series: streamgp_dead_letters_total{ONE, stage="correlate"}
        values: 0+40x60  # answers to ended questions
      - series: streamgp_unusable_inputs_total{ONE}
        values: 0+4x60
      - series: streamgp_stuck_partition{ONE, topic="events", partition="0"}
        values: 0x60
      - series: streamgp_broker_away_seconds{ONE}
        values: 0 40 0x60
      - series: streamgp_missed_inputs_total{ONE}
        values: 0x60
      - series: streamgp_oldest_question_age_seconds{ONE}
        values: 3600x60
      - series: streamgp_quarantined_annotators{ONE, annotator=""}
        values: 0x60
    alert_rule_test:
      - {eval_time: 25m, alertname: StreamgpQuarantine}
      - {eval_time: 25m, alertname: StreamgpWorkerDown}
      - {eval_time: 25m, alertname: StreamgpPageDown}
      - {eval_time: 25m, alertname: StreamgpNoCommit}
      - {eval_time: 25m, alertname: StreamgpBrokerAway}
      - {eval_time: 25m, alertname: StreamgpLagGrows}
      - {eval_time: 25m, alertname: StreamgpDeadLetters}
      - {eval_time: 25m, alertname: StreamgpStuckPartition}
      - {eval_time: 25m, alertname: StreamgpOldQuestion}
      - {eval_time: 25m, alertname: StreamgpMissedInputs}
  - interval: 30s  # everything goes wrong
    input_series:
      - series: up{job="streamgp", instance="dead"}
        values: 0x60
      - series: up{job="streamgp-page", instance="dead"}
        values: 0x60
      - series: up{job="streamgp-page", instance="reads"}
        values: 1x60
      - series: streamgp_page_ready{job="streamgp-page", instance="reads"}
        values: 0x60
      - series: streamgp_last_commit_timestamp_seconds{ONE}
        values: 0x60
      - series: streamgp_consumer_lag_records{ONE, topic="events", partition="0"}
        values: 0+500x60
      - series: streamgp_events_total{ONE}
        values: 0+100x60
      - series: streamgp_answers_total{ONE, result="learned"}
        values: 0+10x60
      - series: streamgp_unusable_inputs_total{ONE}
        values: 0+6x60
      - series: streamgp_stuck_partition{ONE, topic="events", partition="0"}
        values: 1x60
      - series: streamgp_broker_away_seconds{ONE}
        values: 0+30x60
      - series: streamgp_oldest_question_age_seconds{ONE}
        values: 90000x60
      - series: streamgp_quarantined_annotators{ONE, annotator=""}
        values: 2x60
    alert_rule_test:
      - eval_time: 25m
        alertname: StreamgpQuarantine
        exp_alerts:
          - exp_labels: {severity: warning, job: streamgp}
            exp_annotations:
              summary: annotators are in quarantine, 2 over all keys; their answers are not learned
      - eval_time: 25m
        alertname: StreamgpOldQuestion
        exp_alerts:
          - exp_labels: {severity: warning, job: streamgp}
            exp_annotations: {summary: a question has been open for 1d 1h 0m 0s}
      - eval_time: 25m
        alertname: StreamgpWorkerDown
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp, instance: dead}
            exp_annotations: {summary: dead does not respond}
      - eval_time: 25m
        alertname: StreamgpPageDown
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp-page, instance: dead}
            exp_annotations: {summary: dead shows annotators no questions}
          - exp_labels: {severity: critical, job: streamgp-page, instance: reads}
            exp_annotations: {summary: reads shows annotators no questions}
      - eval_time: 2m
        alertname: StreamgpNoCommit
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp, instance: w}
            exp_annotations: {summary: w has inputs but has committed nothing for a minute}
      - eval_time: 25m
        alertname: StreamgpBrokerAway
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp, instance: w}
            exp_annotations: {summary: w has had no answer from the broker for 25m 0s}
      - eval_time: 25m
        alertname: StreamgpLagGrows
        exp_alerts:
          - exp_labels: {severity: warning, job: streamgp}
            exp_annotations:
              summary: "25000 records are waiting, and more arrive than the workers can process"
      - eval_time: 25m
        alertname: StreamgpDeadLetters
        exp_alerts:
          - exp_labels: {severity: warning, job: streamgp}
            exp_annotations: {summary: more than 5 % of the inputs are unusable}
      - eval_time: 25m
        alertname: StreamgpStuckPartition
        exp_alerts:
          - exp_labels: {severity: warning, job: streamgp, topic: events, partition: "0"}
            exp_annotations: {summary: events partition 0 has records but delivers none}
  - interval: 30s  # inputs were missed as workers started, and by one while it ran; an hour passes
    input_series:
      - series: streamgp_missed_inputs_total{ONE}
        values: _x10 7x200
      - series: streamgp_missed_inputs_total{job="streamgp", instance="two"}
        values: 5x20 9x200
    alert_rule_test:
      - eval_time: 12m
        alertname: StreamgpMissedInputs
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp}
            exp_annotations: {summary: 16 inputs were deleted before they were read}
      - {eval_time: 75m, alertname: StreamgpMissedInputs}
  - interval: 30s  # a worker had missed inputs long before it was started again, and missed others
    input_series:
      - series: streamgp_missed_inputs_total{ONE}
        values: 50x150 7x20
    alert_rule_test:
      - {eval_time: 75m, alertname: StreamgpMissedInputs}
      - eval_time: 76m
        alertname: StreamgpMissedInputs
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp}
            exp_annotations: {summary: 7 inputs were deleted before they were read}
  - interval: 30s  # one that has never committed counts from its start
    input_series:
      - series: process_start_time_seconds{ONE}
        values: 0x10
      - series: streamgp_consumer_lag_records{ONE, topic="events", partition="0"}
        values: 7x10
    alert_rule_test:
      - eval_time: 1m
        alertname: StreamgpNoCommit
      - eval_time: 2m
        alertname: StreamgpNoCommit
        exp_alerts:
          - exp_labels: {severity: critical, job: streamgp, instance: w}
            exp_annotations: {summary: w has inputs but has committed nothing for a minute}
"""


@needs_prometheus
def test_alerts_fire_where_something_is_wrong_and_nowhere_else(tmp_path):
    shutil.copy(FILES / "alerts.yml", tmp_path)
    (tmp_path / "scenes.yml").write_text(re.sub(r"\{ONE", "{" + ONE, SCENES))
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "scenes.yml"]):
        done = subprocess.run(
            ["promtool", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def prometheus(directory, target):
    """Run Prometheus with the rules of docker/observe; return what asks it."""
    shutil.copy(FILES / "alerts.yml", directory)
    text = (FILES / "prometheus.yml").read_text(encoding="utf-8")
    text = text.replace("10s", "1s").replace("worker-1:9464, worker-2:9464", target)
    text = text.replace("page:8080", "")
    (directory / "prometheus.yml").write_text(text, encoding="utf-8")
    log = directory / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                "--web.listen-address=127.0.0.1:0",
            ],
            stdout=stream,
            stderr=stream,
        )

    def ask(path):
        nothing = {"result": [], "groups": []}
        found = re.search(r"Listening on\" address=(\S+)", log.read_text())
        if found is None:
            return nothing
        try:
            with urllib.request.urlopen(f"http://{found[1]}/api/v1/{path}", timeout=60.0) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code != 503:  # it listens before its storage is open
                raise
            return nothing

    try:
        yield ask
    finally:
        process.terminate()
        process.wait(60.0)


@needs_prometheus
def test_prometheus_scrapes_a_worker_and_evaluates_the_alerts(tmp_path):
    config = tmp_path / "w.toml"
    config.write_text(
        f'broker = "file://{tmp_path}/topics"\n[worker]\nstate = "{tmp_path}/state"\n'
    )
    topics = EmbeddedTopics(tmp_path / "topics")
    topics.create()
    worker = Process(config, "--observe", "127.0.0.1:0")
    worker.wait_for("started")
    target = worker.url.removeprefix("http://")
    write(topics, *[input_of(b'{"key":"ann","x":{"light":0.5},"y":"home"}')] * 7)
    until = time.monotonic() + 60.0
    with prometheus(tmp_path, target) as ask:

        def value(query):
            result = ask(f"query?query={query}")["result"]
            return float(result[0]["value"][1]) if result else None

        while value("streamgp_predictions_total") != 7.0:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert value("up") == 1.0
        assert value("process_resident_memory_bytes") > 0.0
        rules = []
        while not rules or any(rule["health"] == "unknown" for rule in rules):
            assert time.monotonic() < until
            time.sleep(0.2)
            rules = [rule for group in ask("rules")["groups"] for rule in group["rules"]]
        assert {(rule["name"], rule["health"], rule["state"]) for rule in rules} == {
            (name, "ok", "inactive") for name in re.findall(r"- alert: (\w+)", ALERTS)
        }
    worker.process.terminate()
    assert worker.end()[0] == 0
