"""Processes of an embedded broker, killed again and again while they work: nothing is lost.

STREAMGP_KILLS says how many are killed, 20 unless it is set; of the commands twice as many.

"""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib.resources import files
from itertools import islice

import pytest

from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.codec import decode
from streamgp.interactive.messages import Cancel, Expired, LabelledExample
from tests.helpers.topics import everything

N_KILLS = int(os.environ.get("STREAMGP_KILLS", "20"))
PATIENCE_S = 540.0 + 3.0 * N_KILLS  # for a machine on which every fsync takes a second

COMMON = """
import json, sys, time
from connectors.embedded import database
from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Outgoing

directory, name, database.BUSY_S = *sys.argv[1:3], float(sys.argv[3])
topics = EmbeddedTopics(directory)

def numbers(topic):
    reader, found = topics.reader([topic]), []
    while not reader.caught_up:
        found += [json.loads(record.value) for record in reader.poll(0.0)]
    return [each["n"] for each in found if each["by"] == name]

def go_on_with(topic):
    # What was acknowledged is printed, and must be there for ever after.
    n = len(numbers(topic))
    writer = topics.writer(name)
    while True:
        for _ in range(20):
            value = json.dumps({"by": name, "n": n}).encode()
            writer.send(Outgoing(topic=topic, key=name.encode(), value=value))
            n += 1
        writer.flush()
        print(n, flush=True)
        time.sleep(0.001)
"""
PROGRAMS = {
    "sender-a": "go_on_with('events')",
    "sender-b": "go_on_with('events')",
    "annotator": "go_on_with('answers')",
    "worker": """
while True:
    try:
        client = topics.client(group="g", instance=name, max_records=37)
        break
    except OSError as error:  # the one before is being killed
        assert "in use by another worker" in str(error), error
while True:
    records = client.poll(0.1)
    head = Outgoing(topic="state", partition=0, key=b"\\x1fhead", value=b"%d" % time.time_ns())
    out = [
        Outgoing(
            topic="predictions" if record.topic == "events" else "requests",
            key=record.key,
            value=record.value,
        )
        for record in records
    ]
    client.commit([*out, head] if out else [])
    if out:
        print(len(out), flush=True)
""",
}


class Storm:
    """Programs that are started again whenever they were killed."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = {}
        self.acknowledged = dict.fromkeys(PROGRAMS, 0)

    def start(self, name):
        self.processes[name] = subprocess.Popen(
            [
                *(sys.executable, "-c", COMMON + PROGRAMS[name]),
                *(str(self.directory), name, str(PATIENCE_S)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def let_work(self, name, n_lines):
        """Return when a program has said so much, and remember what it has said last."""
        for _ in range(n_lines):
            line = self.processes[name].stdout.readline()
            assert line, self.processes[name].stderr.read().decode()
            self.acknowledged[name] = int(line)

    def kill(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        said, errors = process.communicate(timeout=PATIENCE_S)
        assert errors == b"", errors.decode()
        if lines := said.split(b"\n")[:-1]:  # the last one may be cut
            self.acknowledged[name] = int(lines[-1])

    def end(self):
        for name in list(self.processes):
            self.kill(name)


@pytest.fixture
def storm(tmp_path):
    EmbeddedTopics(tmp_path / "topics").create()
    made = Storm(tmp_path / "topics")
    yield made
    for process in made.processes.values():
        process.kill()
        process.communicate()


# By day workers are killed at any statement, and logs are torn, in test_embedded_topics.py.
@pytest.mark.nightly
@pytest.mark.timeout(PATIENCE_S)
def test_processes_that_are_killed_while_they_work_lose_and_double_nothing(storm):
    chance = random.Random(7)
    for name in PROGRAMS:
        storm.start(name)
    for _ in range(N_KILLS):
        name = chance.choice([*PROGRAMS, "worker"])
        storm.let_work(name, chance.randint(1, 4))
        time.sleep(chance.uniform(0.0, 0.01))
        storm.kill(name)
        storm.start(name)
    storm.end()
    topics = EmbeddedTopics(storm.directory)
    assert topics.problems() == []
    last = topics.client(group="g", instance="last", max_records=500)
    sent = {topic: said(topics, topic) for topic in ("events", "answers")}
    done = {topic: said(topics, topic) for topic in ("predictions", "requests")}
    while records := last.poll(0.0):  # what no worker had processed
        for record in records:
            topic = "predictions" if record.topic == "events" else "requests"
            done[topic].append(json.loads(record.value))
        last.commit([])
    last.close()
    assert (done["predictions"], done["requests"]) == (sent["events"], sent["answers"])
    for name in ("sender-a", "sender-b", "annotator"):
        theirs = [each["n"] for topic in sent.values() for each in topic if each["by"] == name]
        assert theirs == list(range(len(theirs)))
        assert len(theirs) >= storm.acknowledged[name]


def said(topics, topic):
    return [json.loads(record.value) for record in everything(topics, topic)]


# --- the programs themselves

N_ROWS = 600
N_AT_A_TIME = 20
DEPLOYMENT = """\
broker = "file://{directory}/topics"
warm_up = 20
[worker]
state = "{directory}/state"
save_every_s = 1.0
[log]
label = "room"
[annotator]
error_rate = 0.2
"""


class Programs:
    """The commands of a deployment, started again whenever they were killed."""

    def __init__(self, directory):
        config, self.log = directory / "worker.toml", directory / "rooms.csv"
        config.write_text(DEPLOYMENT.format(directory=directory), encoding="utf-8")
        with gzip.open(str(files("streamgp") / "data" / "wifi_rooms.csv.gz"), "rt") as rows:
            self.log.write_text("".join(islice(rows, N_ROWS + 1)), encoding="utf-8")
        self.directory = directory
        self.config = str(config)
        self.topics = EmbeddedTopics(directory / "topics")
        self.topics.create()
        self.processes = {}

    def start(self, name):
        """Start a program; the sender resumes after the last row that arrived."""
        command = {
            "worker": ["run", self.config],
            "annotator": ["annotate", self.config, "--simulate", "", "--as", "ann"],
            "sender": ["send", self.config, str(self.log), "--from", str(self.n_sent + 1)],
        }[name]
        if name == "sender":
            command += ["--limit", str(N_AT_A_TIME)]
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "streamgp", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def n_sent(self):
        return len(everything(self.topics, "events"))

    def keep_running(self):
        """Start what has ended by itself; only the sender may, with all its rows sent."""
        for name, process in list(self.processes.items()):
            if process.poll() is None:
                continue
            assert (name, process.returncode) == ("sender", 0), self.told(name)
            if self.n_sent < N_ROWS:
                self.start(name)
            else:
                del self.processes[name]

    def kill(self, name):
        process = self.processes.get(name)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
            self.start(name)
            return True
        return False

    def wait_until(self, condition):
        until = time.monotonic() + 120.0
        while not condition():
            assert time.monotonic() < until, [self.told(name) for name in self.processes]
            self.keep_running()
            time.sleep(0.2)

    def told(self, name):
        return name, (self.directory / f"{name}.log").read_text()[-2000:]


def open_requests(topics):
    """Return the requests without an answer, a cancellation or their expiry."""
    asked = [decode(record.value) for record in everything(topics, "requests")]
    ended = {said.request_id for said in asked if isinstance(said, Cancel | Expired)}
    ended |= {decode(record.value).request_id for record in everything(topics, "answers")}
    return {said.request_id for said in asked} - ended


@pytest.fixture
def programs(tmp_path):
    made = Programs(tmp_path)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


@pytest.mark.nightly
@pytest.mark.timeout(900.0)
def test_commands_that_are_killed_while_they_work_lose_and_double_nothing(programs):
    chance = random.Random(11)
    for name in ("worker", "annotator", "sender"):
        programs.start(name)
    n_killed = 0
    while n_killed < 2 * N_KILLS:
        time.sleep(chance.uniform(0.2, 2.5))
        programs.keep_running()
        n_killed += programs.kill(chance.choice(["worker", "annotator", "sender"]))
    topics = programs.topics
    programs.wait_until(lambda: programs.n_sent == N_ROWS)
    programs.wait_until(lambda: len(everything(topics, "predictions")) >= N_ROWS)
    programs.wait_until(lambda: not open_requests(topics))
    events = [decode(record.value).event_id for record in everything(topics, "events")]
    predicted = [decode(record.value).event_id for record in everything(topics, "predictions")]
    assert predicted == events
    assert len(set(events)) == N_ROWS
    answers = {decode(record.value).answer_id for record in everything(topics, "answers")}
    answered = Counter(answer_id.split("/answer/")[0] for answer_id in answers)
    assert set(answered.values()) == {1}, answered.most_common(3)
    lines = [decode(r.value) for r in everything(topics, "consensus") if r.value is not None]
    learned = Counter((n.event_id, n.revision) for n in lines if isinstance(n, LabelledExample))
    assert set(learned.values()) == {1}
    assert {event_id for event_id, _ in learned} <= set(events)
    assert len(learned) > 30
    assert everything(topics, "dead-letters") == []
