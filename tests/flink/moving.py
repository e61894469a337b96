"""A deployment that moves to Flink and back, and one that stays: python -m tests.flink.moving

Two deployments on a real broker get the same events, labels and answers: one has a worker all the
time, the other a worker, then Flink (`--take-over`), which is killed, then a worker again
(`--hand-back`). Answers are to questions that the other side has asked. Both must predict, ask and
learn the same, except for times. This is tested with a loop for each key, with one for all keys,
and with events that are windows over raw rows, one of which is open at each move. With `--kills`
moves in both directions are killed at one moment after the other, and the same command is called
again. With `--cluster` the jobs run on a standalone cluster, where a killed command leaves its job
behind. With `--since REVISION` both deployments begin in a checkout of that revision, one on Flink,
the other with its worker, and are upgraded after the first stage.

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
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from connectors.topics import Outgoing, partition_of
from tests.flink import dying
from tests.flink.__main__ import ENVIRONMENT, ROOT, Job, deployed
from tests.flink.cluster import StandaloneCluster
from tests.kafka_broker import Broker, Unavailable

KEYS = [f"key{n}" for n in range(6)]
N_EVENTS, N_STAGES = 20, 3
DYING = "tests.flink.dying"
WINDOW_S = 3
BEGAN = int(time.time()) // WINDOW_S * WINDOW_S - 120
"""Time of the first row, one per second: the start of a window, long enough ago."""
SETTINGS = {
    "keys": "",
    "one": "",
    "windows": f'[windows]\nlength_s = {WINDOW_S}\nfeatures = ["mean"]\nidle_s = 36000.0\n',
}
"""Kinds of deployments, and the additional lines of their configurations."""
BUDGET = '[budget]\nrule = "rate"\nrate = 0.3\n'
"""Additional lines with which an upgrade is tested."""
OUTPUTS = ("predictions", "requests", "consensus", "dead-letters")
TIMES = ("at", "occurred_at", "requested_at", "expires_at", "learned_at")
SETTLED_S = 4.0


def traffic(stage, kind):
    """Return answers to the questions before a stage, and the stage's events or rows."""
    rng = random.Random(stage)
    answers, events = [], []
    first = stage * N_EVENTS
    for key in KEYS:
        for n in range(0, n_events(first, kind), 3):
            name = f"{key}@{BEGAN + WINDOW_S * n}" if kind == "windows" else f"{key}-e{n}"
            y = rng.choice(["home", "work"])
            given = {"answer_id": f"{name}-{stage}", "event_id": name, "y": y}
            answers.append((key, {**given, "request_id": f"{name}/label"}))
        for n in range(first, first + N_EVENTS):
            x = {"light": rng.random(), "noise": rng.random()}
            label = {"y": "home" if x["light"] < 0.5 else "work"} if rng.random() < 0.4 else {}
            events.append(
                (key, {"event_id": f"{key}-e{n}", "x": x, "occurred_at": float(BEGAN + n), **label})
            )
    return answers, events


def n_events(n_sent, kind):
    """Return the number of events that follow from the inputs of a key: rows close windows."""
    return max(n_sent - 1, 0) // WINDOW_S if kind == "windows" else n_sent


class Side:
    """One of the two deployments."""

    def __init__(self, broker, python, directory, name, kind, *, cluster=None, root=ROOT, more=""):
        self.kind, self.cluster, self.root = kind, cluster, root
        self.config, _, self.topics = deployed(
            broker, directory, name, keyed=kind != "one", more=SETTINGS[kind] + more
        )
        self.n_partitions = self.topics.n_partitions()
        self.name, self.directory, self.python = name, directory, python
        self.process, self._n_sent = None, dict.fromkeys(KEYS, 0)
        self._reader, self.found = self.topics.reader(OUTPUTS), []

    def start_worker(self):
        log = (self.directory / "worker.log").open("ab")
        words = [sys.executable, "-m", "streamgp", "run", str(self.config)]
        environ = {**os.environ, "PYTHONPATH": str(self.root)}
        # Python looks for modules in its working directory first.
        self.process = subprocess.Popen(words, stdout=log, stderr=log, env=environ, cwd=self.root)

    def stop_worker(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.await_idle_group()

    def await_idle_group(self):
        while self.topics.n_members(self.name):
            time.sleep(0.5)

    def flink(self, *flags):
        flags = self._flags(flags)
        job = Job(
            self.python,
            self.config,
            self.directory,
            module="streamgp",
            flags=flags,
            root=self.root,
        )
        job.start(2)
        return job

    def _flags(self, flags):
        return flags if self.cluster is None else (*flags, *self.cluster.flags)

    def flink_that_dies(self, moments, *flags):
        """Start a move and kill it at each of some moments in turn."""
        flags = self._flags(flags)
        for moment in moments:
            os.environ["DIES_AFTER"] = moment
            job = Job(self.python, self.config, self.directory, module=DYING, flags=flags)
            try:
                job.start(2)
                assert job.wait(300) == -signal.SIGKILL, f"it was not killed at {moment}"
            finally:
                job.kill()
            if moment == dying.CANCELLED:
                self.cluster.cancel()

    def send(self, topic, records):
        writer = self.topics.writer("feeder")
        for key, value in records:
            entity, data = key.encode(), json.dumps(value).encode()
            number = partition_of(entity, self.n_partitions)
            writer.send(Outgoing(topic=topic, partition=number, key=entity, value=data))
            self._n_sent[key] += topic == "events"
        writer.close()

    def settle(self, patience_s=240.0):
        """Wait until all inputs are processed and no more output follows."""
        end, quiet = time.monotonic() + patience_s, time.monotonic()
        while time.monotonic() - quiet < SETTLED_S:
            new = self._reader.poll(0.5)
            self.found += new
            if new or self._n_waiting() or self.n_predictions < self.n_events:
                quiet = time.monotonic()
            assert time.monotonic() < end, f"{self.n_predictions} of {self.n_events} predictions"

    @property
    def n_events(self):
        return sum(n_events(n, self.kind) for n in self._n_sent.values())

    @property
    def n_predictions(self):
        return sum(record.topic == "predictions" for record in self.found)

    def _n_waiting(self):
        # On `consensus`, the end markers of Flink's transactions count as waiting.
        lags = self.topics.lags(self.name)
        return sum(n for (topic, _), n in lags.items() if topic != "consensus")

    def said(self):
        """Return the messages about each key, by topic and in order, without times."""
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
    """Send the answers of a stage, then its events, and wait for the output of each."""
    answers, events = traffic(n, side.kind)
    side.send("answers", answers)
    side.settle()
    side.send("events", events[: len(events) - n_held_back])
    side.settle()
    return events[len(events) - n_held_back :]


def compared(stays, moves, tell):
    """Whether both sides have said the same about each key."""
    ours, theirs = stays.said(), moves.said()
    both = ours.keys() | theirs.keys()
    differing = [each for each in both if ours.get(each) != theirs.get(each)]
    n = sum(map(len, ours.values()))
    tell(f"{stays.kind}: {n} messages of {len(KEYS)} keys; different: {differing or 'nothing'}")
    for each in differing[:3]:
        pairs = zip_longest(ours.get(each, []), theirs.get(each, []))
        print(each, *next(pair for pair in pairs if pair[0] != pair[1]), sep="\n  ")
    return not differing


def teller():
    """Return a function that prints a text with the seconds since now."""
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:.0f} s: {text}", flush=True)


def upgrade(python, directory, kind, revision):
    """Upgrade a deployment on workers, and one on Flink, which later moves to workers."""
    tell, job = teller(), None
    with checkout(revision, directory) as earlier, Broker() as broker:
        stays, moves = (
            Side(broker, python, directory, name, kind, root=earlier, more=BUDGET)
            for name in ("stays", "moves")
        )
        try:
            stays.start_worker()
            stage(stays, 0)
            stays.stop_worker()
            stays.root = ROOT
            stays.start_worker()
            for n in range(1, N_STAGES):
                stage(stays, n)
            stays.stop_worker()
            tell("workers are upgraded")
            job = moves.flink()
            stage(moves, 0)
            job.stop()
            moves.root = ROOT
            job = moves.flink()
            stage(moves, 1)
            tell("Flink is upgraded")
            job.stop()
            job = moves.flink("--hand-back")
            assert job.wait(300) == 0
            moves.await_idle_group()
            moves.start_worker()
            stage(moves, 2)
            moves.stop_worker()
        finally:
            if job is not None:
                job.kill()
            stays.close()
            moves.close()
        return compared(stays, moves, tell)


@contextmanager
def checkout(revision, directory):
    """Check a revision out for the duration of the block."""
    path = directory / "checkout"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", path, revision], check=True)
    try:
        yield path
    finally:
        subprocess.run([*git, "remove", "--force", path], check=True)


def run(python, directory, kind, *, kills, elsewhere):
    tell = teller()
    with Broker() as broker:
        cluster = StandaloneCluster(Path(python), directory) if elsewhere else None
        stays = Side(broker, python, directory, "stays", kind)
        moves = Side(broker, python, directory, "moves", kind, cluster=cluster)
        job = None
        try:
            if cluster is not None:
                cluster.start_manager()
                cluster.start_worker()
            stays.start_worker()
            for n in range(N_STAGES):
                stage(stays, n)
            stays.stop_worker()
            tell("one has stayed")
            moves.start_worker()
            stage(moves, 0)
            moves.stop_worker()
            if kills:
                there = dying.TAKING_OVER_ELSEWHERE if elsewhere else dying.TAKING_OVER
                moves.flink_that_dies(there, "--take-over")
                tell("killed while it took over")
            job = moves.flink("--take-over")
            if elsewhere:
                assert job.wait(300) == 0
            # In some partitions Flink reads no event before it has to hand back.
            left = stage(moves, 1, n_held_back=100)
            tell("taken over, and at work")
            back = ["--hand-back"]
            if elsewhere:
                back += ["--from", cluster.stop()]
            else:
                job.kill()
            moves.send("events", left)  # taken by the job that hands back
            if kills:
                there = dying.HANDING_BACK_ELSEWHERE if elsewhere else dying.HANDING_BACK
                moves.flink_that_dies(there, *back)
                tell("killed while it handed back")
            job = moves.flink(*back)
            assert job.wait(300) == 0
            moves.settle()
            tell("handed back")
            moves.start_worker()
            stage(moves, 2)
            moves.stop_worker()
        finally:
            if job is not None:
                job.kill()
            if cluster is not None:
                cluster.kill()
            stays.close()
            moves.close()
        return compared(stays, moves, tell)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, default=ENVIRONMENT / "bin/python")
    parser.add_argument("--kind", choices=list(SETTINGS), default="keys")
    parser.add_argument("--kills", action="store_true", help="kill both moves at many moments")
    parser.add_argument("--cluster", action="store_true", help="on a standalone cluster")
    parser.add_argument("--since", metavar="REVISION", help="upgrade from this revision")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"left out: no PyFlink at {options.python}")
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="streamgp-flink-") as name:
            where = str(options.python), Path(name), options.kind
            if options.since is not None:
                good = upgrade(*where, options.since)
            else:
                good = run(*where, kills=options.kills, elsewhere=options.cluster)
            return 0 if good else 1
    except Unavailable as missing:
        print(f"left out: {missing}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
