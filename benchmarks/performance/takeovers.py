"""How long predictions pause while workers come and go.

Two workers, `streamgp run`, share the four partitions of a broker on this machine (needs Java and
Maven; STREAMGP_TEST_KAFKA names another broker): 40 keys, each with a Gaussian process of its own,
200 events per second. One worker is stopped by SIGTERM or killed by SIGKILL, for good or to be
started again at once; when one is missing, another one starts. All this with `leave = true` and
with `leave = false` in the configuration.

A pause is the longest time between two committed predictions of a partition, from the signal until
the remaining workers have shared the partitions and have predicted in all of them for three
seconds. The worker's own partitions are those that it had, or those that a starting worker takes
over. Workers, sender and reader share the cores with the broker, and a Python process takes a
second or more until it is a worker.

Only some of the killed workers leave a transaction open. To see that too, one is killed and a
transaction begun in its name at once: a record of the state and the group's position in each of its
partitions.

"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks._harness import Options, Outcome, Row, at_most, progress, run
from benchmarks.performance.kafka.benchmark import broker
from benchmarks.performance.kafka.loops import N_PARTITIONS, event
from connectors.kafka.client import CLIENT_ERRORS
from connectors.kafka.client_import import (
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
    close_producer,
)
from connectors.kafka.settings import Timeouts
from connectors.kafka.topics import KafkaTopics
from connectors.topics import ALL_TOPICS, TopicName
from connectors.wire.outbound import Outbound

_N_KEYS = 40
_PER_S = 200.0
_TICK_S = 0.02
# How fresh the last prediction of every partition must be, and for how long, to count as settled.
_FRESH_S = 0.5
_STEADY_S = 3.0
_PATIENCE_S = 90.0
_CONFIG = """\
seed = 1
[broker]
url = "kafka://{servers}"
[topics]
prefix = "{name}-"
partitions = {n_partitions}
replication = 1
[worker]
group = "{name}"
state = "{state}"
leave = {leave}
[loop]
answer_horizon_s = 3600.0
"""
STOPPED, KILLED = "SIGTERM for good", "killed for good"
KILLED_INSIDE = "killed for good inside a transaction"
RESTARTED, KILLED_AND_BACK = "stopped, and started again", "killed, and started again"
STARTED = "a second worker starts"
PLANS: dict[bool, tuple[str, ...]] = {
    True: (STOPPED, STARTED, RESTARTED),
    False: (
        *(STOPPED, STARTED, RESTARTED),
        *(KILLED, STARTED, KILLED_AND_BACK),
        *(KILLED_INSIDE, STARTED),
    ),
}
_SIGNALS = {
    STOPPED: signal.SIGTERM,
    RESTARTED: signal.SIGTERM,
    KILLED: signal.SIGKILL,
    KILLED_INSIDE: signal.SIGKILL,
    KILLED_AND_BACK: signal.SIGKILL,
}


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("takeovers", measure, about=__doc__, argv=argv)


def measure(options: Options, *, plans: Mapping[bool, Sequence[str]] = PLANS) -> Outcome:
    """Let workers come and go, as planned for either setting of `leave`."""
    n_trials = 1 if options.quick else 5
    pauses: dict[tuple[str, bool], list[tuple[float, float]]] = defaultdict(list)
    load_before = os.getloadavg()[0]
    with broker() as servers:
        for leave, plan in plans.items():
            with _deployment(servers, leave=leave) as deployment:
                for n in range(n_trials):
                    for what in plan:
                        own, others = deployment.pauses(what)
                        pauses[what, leave].append((own, others))
                        progress(
                            f"{n + 1} of {n_trials}, leave = {leave}, {what}: "
                            f"its own {own:.1f} s, others {others:.1f} s"
                        )
    rows = [_row(what, found, leave=leave) for (what, leave), found in pauses.items()]
    left = next(row for row in rows if row["what"] == STOPPED and row["leave"])
    return Outcome(
        rows=rows,
        acceptance=[
            at_most("s, median, its own: SIGTERM for good, leave = true", left["own s"], 2.0),
            at_most("s, median, others: SIGTERM for good, leave = true", left["others s"], 1.0),
        ],
        notes=[f"load of the machine before {load_before:.1f}"],
    )


def _row(what: str, found: list[tuple[float, float]], *, leave: bool) -> Row:
    own, others = zip(*found, strict=True)
    return {
        "what": what,
        "leave": leave,
        "trials": len(found),
        "own s": median(own),
        "own, most s": max(own),
        "others s": median(others),
        "others, most s": max(others),
    }


class _Worker:
    """A worker in a process of its own; its log tells which partitions it has."""

    def __init__(self, config: Path, instance: str, log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", "streamgp", "run", str(config), "--create-topics"]
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [*command, "--instance", instance, "--log-format", "json"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )

    @property
    def partitions(self) -> set[int]:
        """The partitions currently assigned to it."""
        found: set[int] = set()
        for line in self._log.read_text(errors="replace").splitlines():
            if '"assigned"' in line:
                found = set(json.loads(line)["partitions"])
        return found

    def end(self, number: signal.Signals) -> None:
        """Send a signal, and return when the process has ended."""
        self._process.send_signal(number)
        self._process.wait()

    def check(self) -> None:
        """Raise RuntimeError if the process has ended by itself."""
        if self._process.poll() is not None:
            raise RuntimeError(f"a worker has ended: {self._log.read_text()[-500:]}")


class _Traffic:
    """Sender of events that also records when predictions of each partition are read."""

    def __init__(self, topics: KafkaTopics) -> None:
        self._topics = topics
        self._ends = threading.Event()
        self._read_at: dict[int, list[float]] = {n: [] for n in range(N_PARTITIONS)}
        self._threads = [threading.Thread(target=each) for each in (self._send, self._read)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    @property
    def is_fresh(self) -> bool:
        """Whether there was a recent prediction in every partition."""
        now = time.monotonic()
        return all(read_at and now - read_at[-1] < _FRESH_S for read_at in self._read_at.values())

    def longest(self, since: float) -> dict[int, float]:
        """Return, for each partition, the longest time between two predictions since a moment."""
        return {
            number: max(np.diff([since, *(at for at in read_at if at > since)]).tolist())
            for number, read_at in self._read_at.items()
        }

    def _send(self) -> None:
        rng, outbox = np.random.default_rng(3), Outbound("/streamgp/feeder", keyed=True)
        writer = self._topics.writer("feeder")
        start, n_sent = time.monotonic(), 0
        while not self._ends.wait(_TICK_S):
            due = int((time.monotonic() - start) * _PER_S)
            for number in range(n_sent, due):
                one = event(number, rng, at=time.time(), n_keys=_N_KEYS)
                writer.send(outbox.message(one, number % _N_KEYS % N_PARTITIONS))
            writer.flush()
            n_sent = due
        writer.close()

    def _read(self) -> None:
        reader = self._topics.reader(["predictions"], from_end=True)
        while not self._ends.is_set():
            for record in reader.poll(_TICK_S):
                self._read_at[record.partition].append(time.monotonic())
        reader.close()


class _Deployment:
    """Two workers that have shared the partitions, with incoming events."""

    def __init__(self, config: Path, servers: str, traffic: _Traffic) -> None:
        self._config = config
        self._servers = servers
        self._traffic = traffic
        self._open = ExitStack()
        self._n_lives = 0
        self._workers = {name: self._start(name) for name in ("one", "two")}
        self._settle()

    def pauses(self, what: str) -> tuple[float, float]:
        """Do something to the first worker; return the pauses of its own and of other partitions.

        Raises
        ------
        TimeoutError
            If the workers do not settle in time.

        """
        own = self._workers["one"].partitions if "one" in self._workers else set()
        since = time.monotonic()
        if what != STARTED:
            self._workers.pop("one").end(_SIGNALS[what])
        if what == KILLED_INSIDE:
            group = self._config.stem
            left = _transaction(self._servers, group, self._instance("one"), own)
            self._open.enter_context(left)
        if what not in (STOPPED, KILLED, KILLED_INSIDE):
            self._workers["one"] = self._start("one")
        self._settle()
        own = own or self._workers["one"].partitions
        longest = self._traffic.longest(since)
        others = longest.keys() - own
        return max(longest[n] for n in own), max(longest[n] for n in others)

    def end(self) -> None:
        """Stop all workers."""
        self._open.close()
        for worker in self._workers.values():
            worker.end(signal.SIGKILL)

    def _start(self, name: str) -> _Worker:
        self._n_lives += 1
        log = self._config.with_name(f"{name}-{self._n_lives}.log")
        return _Worker(self._config, self._instance(name), log)

    def _instance(self, name: str) -> str:
        return f"{self._config.stem}-{name}"

    def _settle(self) -> None:
        """Wait until the workers have shared all partitions, and go on for a while after that."""
        began = time.monotonic()
        well_since: float | None = None
        while well_since is None or time.monotonic() - well_since < _STEADY_S:
            time.sleep(_TICK_S)
            for worker in self._workers.values():
                worker.check()
            held = [worker.partitions for worker in self._workers.values()]
            are_shared = sum(map(len, held)) == len(set().union(*held)) == N_PARTITIONS
            if not (all(held) and are_shared and self._traffic.is_fresh):
                well_since = None
            elif well_since is None:
                well_since = time.monotonic()
            if time.monotonic() - began > _PATIENCE_S:
                raise TimeoutError(f"partitions {held} after {_PATIENCE_S:.0f} s")


@contextmanager
def _transaction(servers: str, group: str, instance: str, partitions: set[int]) -> Iterator[None]:
    """Leave a transaction open in which a worker might have been killed."""
    producer = KafkaProducer(
        bootstrap_servers=servers,
        transactional_id=f"{group}-{instance}",
        transaction_timeout_ms=round(1e3 * Timeouts().transaction_s),
    )
    producer.init_transactions()
    producer.begin_transaction()
    for number in partitions:
        producer.send(f"{group}-state", b"half", b"half", partition=number)
    producer.flush()
    events = [TopicPartition(f"{group}-events", number) for number in partitions]
    producer.send_offsets_to_transaction(dict.fromkeys(events, OffsetAndMetadata(0, "", -1)), group)
    try:
        yield
    finally:
        with suppress(*CLIENT_ERRORS):  # its transaction is over
            close_producer(producer, 1.0)


@contextmanager
def _deployment(servers: str, *, leave: bool) -> Iterator[_Deployment]:
    """Provide a separate deployment on a broker."""
    name = f"takeovers-{os.getpid()}-{'leave' if leave else 'stay'}"
    names: dict[TopicName, str] = {role: f"{name}-{role.replace('_', '-')}" for role in ALL_TOPICS}
    topics = KafkaTopics(servers, names=names, partitions=N_PARTITIONS, replication=1)
    topics.create()
    endings: list[Callable[[], None]] = [topics.close]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / f"{name}.toml"
        config.write_text(
            _CONFIG.format(
                servers=servers,
                name=name,
                n_partitions=N_PARTITIONS,
                state=Path(folder) / "state",
                leave=str(leave).lower(),
            )
        )
        try:
            traffic = _Traffic(topics)
            endings.append(traffic.end)
            deployment = _Deployment(config, servers, traffic)
            endings.append(deployment.end)
            yield deployment
        finally:
            for end in reversed(endings):
                end()
