"""The conversation on Flink, compared with plain loops: python -m tests.flink [--help]

A real Kafka broker is started on this machine, and `streamgp flink` in an environment with PyFlink,
a cluster of its own in one process. Conversations with every kind of input (late and early answers,
corrections, deletions, retracted labels, unreadable records) are written while processes of Flink
are killed: its Python workers, or all of it, which then resumes from its last checkpoint with
another parallelism. The job records in a trace what it has taken, in which order and at what times;
the same inputs go to a worker's partition in this process, and both must have written the same for
every key, byte for byte, each record once. Finally the labels of an annotator are taken back, and
restored, by `streamgp retract`.

"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from click.testing import CliRunner

from connectors.keyed_state import entity_of
from connectors.topics import Outgoing, partition_of
from streamgp.apps.deployment.deployment import (
    build_loops,
    everything,
    load_deployed,
    open_topics,
)
from streamgp.cli.maintenance import retract
from tests.helpers.conversations import (
    ANNOTATORS,
    MOVES,
    TRACE,
    OnWorker,
    by_entity,
    conversation,
)
from tests.kafka_broker import Broker, Unavailable

ROOT = Path(__file__).parents[2]
GROUP, N_PARTITIONS, EXPIRES_S = "rooms", 2, 5.0
OUTPUTS = ("predictions", "requests", "consensus", "dead-letters")
ENVIRONMENT = Path.home() / ".cache/streamgp-tests/flink-2.2.1"
CONFIG = """
broker = "kafka://{servers}"
seed = 1
[worker]
group = "{name}"
state = "{state}"
keyed = {keyed}
[topics]
prefix = "{name}."
partitions = {partitions}
[loop]
expires_after_s = {expires_s}
answer_horizon_s = 3600.0
"""


def deployed(broker, directory, name, *, expires_s=36000.0, keyed=True, more=""):
    """Write a configuration and create its topics; return its path, itself and the topics."""
    path = directory / f"{name}.toml"
    text = CONFIG.format(
        name=name,
        servers=broker.servers,
        state=directory / name,
        keyed=str(keyed).lower(),
        partitions=N_PARTITIONS if keyed else 1,
        expires_s=expires_s,
    )
    path.write_text(text + more)
    config = load_deployed(path)
    topics = open_topics(config)
    topics.create()
    return path, config, topics


def processes_of(session):
    """Return the processes of a session, by process id and command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int((path / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                found.append((int(path.name), (path / "cmdline").read_bytes()))
        except OSError:
            continue
    return found


class Job:
    """`streamgp flink` of a checkout, in a process group of its own."""

    def __init__(
        self, python, config, directory, *, module="tests.flink.traced", flags=(), root=ROOT
    ):
        self._command = [python, "-m", module, "flink", str(config), *flags]
        self._log = open(directory / "flink.log", "ab")  # noqa: SIM115 (as long as this)
        quick = "-Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        logs = {"FLINK_LOG_DIR": str(directory), "PYTHONHASHSEED": "0"}
        self._root = root  # the working directory as well: there Python looks for modules first
        self._environ = {**os.environ, "PYTHONPATH": str(root), "JVM_ARGS": quick, **logs}
        self._process = None

    def start(self, parallelism):
        self._process = subprocess.Popen(
            [*self._command, "--create-topics", "--parallelism", str(parallelism)],
            env=self._environ,
            cwd=self._root,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def check(self):
        if self._process.poll() is not None:
            raise RuntimeError(f"the job has ended with status {self._process.returncode}")

    def kill_a_python_worker(self):
        """Kill one of the Python processes of Flink."""
        workers = [pid for pid, line in self.processes() if b"beam_boot" in line]
        os.kill(random.choice(workers), signal.SIGKILL)

    def kill(self):
        for pid, _ in self.processes():
            with suppress(ProcessLookupError):  # some end together with those killed before
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds):
        """Return the exit status."""
        return self._process.wait(seconds)

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(60)
        assert status == 0, f"the job has ended with status {status}"
        self._log.close()
        self.kill()  # a Python worker that was starting waits for Flink for ever

    def processes(self):
        """Return the processes of the job, by process id and command line."""
        return processes_of(self._process.pid)


class Written:
    """Committed contents of the topics."""

    def __init__(self, topics):
        self._reader = topics.reader(["events", "answers", *OUTPUTS])
        self.records = []

    def follow(self, seconds, job):
        """Read for some seconds; return how many records came."""
        until, n = time.monotonic() + seconds, len(self.records)
        while time.monotonic() < until:
            self.records += self._reader.poll(0.5)
            job.check()
        return len(self.records) - n

    def wait_for(self, n_taken, job, seconds=150.0):
        until = time.monotonic() + seconds
        while self.n_taken < n_taken:
            self.follow(0.5, job)
            if time.monotonic() > until:
                raise RuntimeError(f"the job has taken {self.n_taken} of {n_taken} inputs")

    @property
    def traces(self):
        return [r for r in self.records if dict(r.headers).get(TRACE)]

    @property
    def n_taken(self):
        return sum(json.loads(r.value)[0] is not None for r in self.traces)


def traffic(n_keys, n_moves, seed=1):
    """Return the inputs to send: topic, key and value, in order for each key."""
    rng = random.Random(seed)
    keys = [f"key{n}" for n in range(n_keys)]
    moves = [(rng.choice(keys), rng.choice(MOVES)) for _ in range(n_keys * n_moves)]
    return [record for record, _ in conversation(moves) if record is not None]


def send(topics, records):
    writer = topics.writer("feeder")
    for each in records:
        entity = entity_of(each.topic, each.key, keyed=True)
        number = partition_of(entity, N_PARTITIONS)
        out = Outgoing(topic=each.topic, partition=number, key=each.key, value=each.value)
        writer.send(out)
    writer.close()


def differences(written, config):
    """Return keys that differ from plain loops, and the number of messages of plain loops."""
    inputs = {(r.topic, r.partition, r.offset): r for r in written.records}
    found = [r for r in written.records if r.topic in OUTPUTS and not dict(r.headers).get(TRACE)]
    # Deletions are inputs as well.
    found = [r for r in found if r.topic != "consensus" or r.headers]
    loops = build_loops(config, source="test")
    plain = {}
    for trace in written.traces:
        topic, place, now = json.loads(trace.value)
        record = None if topic is None else inputs[topic, trace.partition, place]
        entity = place.encode() if record is None else entity_of(topic, record.key, keyed=True)
        if entity not in plain:
            plain[entity] = OnWorker(loops, GROUP, trace.partition, config.topics.names())
        plain[entity].step(record, now)
    said = [each for loop in plain.values() for each in loop.written if each.topic != "state"]
    theirs, ours = shown(found), shown(said)
    keys = [key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)]
    for key in keys[:5]:
        pairs = zip_longest(theirs.get(key, []), ours.get(key, []))
        first = next((each, plain) for each, plain in pairs if each != plain)
        print(f"{key!r} first differs in\n  Flink: {first[0]}\n  plain: {first[1]}")
    return keys, len(said), len(found), len(ours)


def compared(written, config, n_sent):
    """Whether all inputs were taken and all messages equal those of plain loops, in words."""
    keys, n_said, n_found, n_keys = differences(written, config)
    good = not keys and written.n_taken == n_sent and n_found == n_said
    return good, (
        f"{n_keys - len(keys)} of {n_keys} keys equal; {n_sent} inputs sent, "
        f"{written.n_taken} taken; {len(written.traces) - written.n_taken} timers; "
        f"{n_found} messages, {n_said} expected"
    )


def taken_back(path, topics, n_keys):
    """Retract labels, undo it, and retract again, each followed by events; return how many inputs.

    Lines of the annotator must be gone each time, and back as they were in between.
    """
    before, n_before, n_events = lines_of(topics), n_requests(topics), 0
    assert any(speaks(line) for line in before.values())
    for n, undo in enumerate(([], ["--undo"], [])):
        words = [str(path), "--annotator", ANNOTATORS[0], *undo, "--wait", "150", "--yes"]
        result = CliRunner().invoke(retract, words)
        assert result.exit_code == 0, result.output
        after = lines_of(topics)
        if undo:
            put_back = {key for key, line in before.items() if speaks(line)}
            assert {key: after.get(key) for key in put_back} == {k: before[k] for k in put_back}
        else:
            assert not any(speaks(line) for line in after.values())
        event = json.dumps({"event_id": f"after{n}", "x": {"light": 0.4, "noise": 1.0}}).encode()
        keys = [f"key{key}".encode() for key in range(n_keys)]
        send(topics, [Outgoing(topic="events", key=key, value=event) for key in keys])
        n_events += n_keys
    return n_events + n_requests(topics) - n_before


def speaks(line):
    """Whether a line holds a label of the annotator whose labels are taken back."""
    return ANNOTATORS[0] in (line.get("annotator"), line.get("given_by"))


def lines_of(topics):
    """Return the lines of the consensus log that are in the topic."""
    found = {}
    for record in everything(topics, "consensus", what="reading"):
        found[record.key] = record.value
    return {key: json.loads(value) for key, value in found.items() if value}


def n_requests(topics):
    """Return the number of requests to take labels back, or to restore them."""
    records = everything(topics, "consensus", what="reading")
    return sum(record.key.count(b"\x1f") == 4 for record in records)


def shown(records):
    """Return the records by entity and topic, in order; headers in any order, as in Flink."""
    found = defaultdict(list)
    for entity, those in by_entity(records).items():
        for r in those:
            found[entity].append((r.topic, r.partition, r.key, r.value, sorted(r.headers)))
    # There is no order between topics.
    return {entity: sorted(those, key=lambda each: each[0]) for entity, those in found.items()}


def run(python, directory, *, n_keys, n_moves, rounds, flags):
    random.seed(1)
    with Broker() as broker:
        path, config, topics = deployed(broker, directory, GROUP, expires_s=EXPIRES_S)
        records = traffic(n_keys, n_moves)
        job = Job(python, path, directory, flags=flags)
        began = time.monotonic()
        try:
            job.start(1)
            written = Written(topics)
            share = -(-len(records) // (2 * len(rounds) + 1))
            parts = [records[at : at + share] for at in range(0, len(records), share)]
            n_sent = 0
            for n, part in enumerate(parts):
                send(topics, part)
                written.wait_for(n_sent + (1.0 if n % 2 else 0.5) * len(part), job)
                n_sent += len(part)
                print(f"{time.monotonic() - began:.0f} s: {written.n_taken} inputs", flush=True)
                if n % 2:
                    job.kill()
                    job.start(rounds[n // 2])
                    print(f"killed; goes on with parallelism {rounds[n // 2]}", flush=True)
                elif n < len(parts) - 1:
                    job.kill_a_python_worker()
                    print("killed a Python worker", flush=True)
            written.wait_for(n_sent, job)
            n_sent += taken_back(path, topics, n_keys)
            print(f"{time.monotonic() - began:.0f} s: labels taken back, and restored", flush=True)
            written.wait_for(n_sent, job)
            written.follow(EXPIRES_S + 3.0, job)
            job.stop()
        finally:
            job.kill()
            topics.close()
        good, outcome = compared(written, config, n_sent)
        print(f"{outcome}; {2 * len(rounds)} kills; {time.monotonic() - began:.0f} s")
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, default=ENVIRONMENT / "bin/python")
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--moves", type=int, default=30, help="for each key")
    parser.add_argument(
        "--rounds",
        type=int,
        nargs="*",
        default=[2],
        help="parallelism after each round of two kills",
    )
    parser.add_argument("-D", dest="flink", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    options = parser.parse_args()
    if not options.python.exists():
        print(f"left out: no PyFlink at {options.python}")
        return 0
    directory = Path(tempfile.mkdtemp(prefix="streamgp-flink-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends the job and the broker
    try:
        good = run(
            str(options.python),
            directory,
            n_keys=options.keys,
            n_moves=options.moves,
            rounds=options.rounds,
            flags=[word for each in options.flink for word in ("-D", each)],
        )
    except Unavailable as missing:
        print(f"left out: {missing}")
        return 0
    finally:
        if options.keep:
            print(directory)
        else:
            shutil.rmtree(directory)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
