"""A deployment that moves to Flink and back, and one that stays: python -m tests.flink.moving

A real broker and two deployments get the same events, labels and answers: one has a worker all the
time, the other a worker, then Flink (`--take-over`), which is killed, then a worker again
(`--hand-back`). Answers are to questions that the other side has asked. What both predict, ask and
learn must be the same but for the times.

"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import zip_longest
from pathlib import Path

from connectors.topics import Outgoing, partition_of
from tests.flink.__main__ import ENVIRONMENT, N_PARTITIONS, Job, deployed
from tests.kafka_broker import Broker, Unavailable

KEYS = [f"key{n}" for n in range(6)]
N_EVENTS, N_STAGES = 20, 3
OUTPUTS = ("predictions", "requests", "consensus", "dead-letters")
TIMES = ("at", "occurred_at", "requested_at", "expires_at", "learned_at")
SETTLED_S = 4.0


def traffic(stage):
    """Return answers to what was asked before a stage, and the stage's events."""
    rng = random.Random(stage)
    answers, events = [], []
    first = stage * N_EVENTS
    for key in KEYS:
        for n in range(0, first, 3):
            y = rng.choice(["home", "work"])
            given = {"answer_id": f"a{stage}-{n}", "event_id": f"e{n}", "y": y}
            answers.append((key, {**given, "request_id": f"e{n}/label"}))
        for n in range(first, first + N_EVENTS):
            x = {"light": rng.random(), "noise": rng.random()}
            label = {"y": "home" if x["light"] < 0.5 else "work"} if rng.random() < 0.4 else {}
            events.append((key, {"event_id": f"e{n}", "x": x, **label}))
    return answers, events


class Side:
    """One of the two deployments."""

    def __init__(self, broker, python, directory, name):
        self.config, _, self.topics = deployed(broker, directory, name)
        self.name, self.directory, self.python = name, directory, python
        self.process, self.n_events = None, 0
        self._reader, self.found = self.topics.reader(OUTPUTS), []

    def start_worker(self):
        log = (self.directory / "worker.log").open("ab")
        words = [sys.executable, "-m", "streamgp", "run", str(self.config)]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        self.process = subprocess.Popen(words, stdout=log, stderr=log, env=environ)

    def stop_worker(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.await_idle_group()

    def await_idle_group(self):
        while self.topics.n_members(self.name):
            time.sleep(0.5)

    def flink(self, *flags):
        job = Job(self.python, self.config, self.directory, module="streamgp", flags=flags)
        job.start(2)
        return job

    def send(self, topic, records):
        writer = self.topics.writer("feeder")
        for key, value in records:
            entity, data = key.encode(), json.dumps(value).encode()
            number = partition_of(entity, N_PARTITIONS)
            writer.send(Outgoing(topic=topic, partition=number, key=entity, value=data))
        writer.close()
        self.n_events += len(records) if topic == "events" else 0

    def settle(self, patience_s=240.0):
        """Wait until all inputs are worked off, and nothing more comes of them."""
        end, quiet = time.monotonic() + patience_s, time.monotonic()
        while time.monotonic() - quiet < SETTLED_S:
            new = self._reader.poll(0.5)
            self.found += new
            if new or self._n_waiting() or self.n_predictions < self.n_events:
                quiet = time.monotonic()
            assert time.monotonic() < end, f"{self.n_predictions} of {self.n_events} predictions"

    @property
    def n_predictions(self):
        return sum(record.topic == "predictions" for record in self.found)

    def _n_waiting(self):
        # Ends of Flink's transactions count on `consensus`.
        lags = self.topics.lags(self.name)
        return sum(n for (topic, _), n in lags.items() if topic != "consensus")

    def said(self):
        """Return what was said of each key, by topic and in order, without times."""
        said = {}
        for record in self.found:
            value = json.loads(record.value)
            kept = {name: at for name, at in value.items() if name not in TIMES}
            said.setdefault((record.topic, record.key.split(b"\x1f")[0]), []).append(kept)
        return said

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        self.topics.close()


def stage(side, n, *, n_held_back=0):
    """Send the answers of a stage, then its events, and wait for what comes of each."""
    answers, events = traffic(n)
    side.send("answers", answers)
    side.settle()
    side.send("events", events[: len(events) - n_held_back])
    side.settle()
    return events[len(events) - n_held_back :]


def run(python, directory):
    began = time.monotonic()

    def tell(text):
        print(f"{time.monotonic() - began:.0f} s: {text}", flush=True)

    with Broker() as broker:
        stays, moves = (Side(broker, python, directory, name) for name in ("stays", "moves"))
        job = None
        try:
            stays.start_worker()
            for n in range(N_STAGES):
                stage(stays, n)
            stays.stop_worker()
            tell("one has stayed")
            moves.start_worker()
            stage(moves, 0)
            moves.stop_worker()
            job = moves.flink("--take-over")
            left = stage(moves, 1, n_held_back=40)
            tell("taken over, and at work")
            job.kill()
            moves.send("events", left)  # taken by the job that hands back
            job = moves.flink("--hand-back")
            assert job.wait(300) == 0
            moves.settle()
            tell("handed back")
            moves.start_worker()
            stage(moves, 2)
            moves.stop_worker()
        finally:
            if job is not None:
                job.kill()
            stays.close()
            moves.close()
        ours, theirs = stays.said(), moves.said()
        both = ours.keys() | theirs.keys()
        differing = [each for each in both if ours.get(each) != theirs.get(each)]
        n = sum(map(len, ours.values()))
        tell(f"{n} messages of {len(KEYS)} keys; different: {differing or 'nothing'}")
        for each in differing[:3]:
            pairs = zip_longest(ours.get(each, []), theirs.get(each, []))
            print(each, *next(pair for pair in pairs if pair[0] != pair[1]), sep="\n  ")
        return not differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, default=ENVIRONMENT / "bin/python")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"left out: no PyFlink at {options.python}")
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="streamgp-flink-") as name:
            return 0 if run(str(options.python), Path(name)) else 1
    except Unavailable as missing:
        print(f"left out: {missing}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
