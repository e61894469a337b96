"""Processes of an embedded broker, killed again and again while they work: nothing is lost.

STREAMGP_KILLS says how many are killed, 20 unless it is set.

"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from connectors.embedded.topics import EmbeddedTopics

N_KILLS = int(os.environ.get("STREAMGP_KILLS", "20"))
PATIENCE_S = 60.0 + 3.0 * N_KILLS

COMMON = """
import json, sys, time
from connectors.embedded.topics import EmbeddedTopics
from connectors.topics import Outgoing

directory, name = sys.argv[1:]
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
        client = topics.link(group="g", instance=name, max_records=37)
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
            [sys.executable, "-c", COMMON + PROGRAMS[name], str(self.directory), name],
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
        process.wait()


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
    last = topics.link(group="g", instance="last", max_records=500)
    sent = {topic: said(topics, topic) for topic in ("events", "answers")}
    done = {topic: said(topics, topic) for topic in ("predictions", "requests")}
    while records := last.poll(0.0):  # what no worker had worked off
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
    reader, found = topics.reader([topic]), []
    while not reader.caught_up:
        found += [json.loads(record.value) for record in reader.poll(0.0)]
    reader.close()
    return found
