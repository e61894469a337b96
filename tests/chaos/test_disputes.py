"""Workers killed during quarantine, second questions and retractions act as if they never were.

The same is run in memory, where a worker is interrupted before or after it commits, and on a
broker, where worker and broker are killed. STREAMGP_DISPUTES is the number of events of each key
there.

"""

import gc
import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest

from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import ALL_TOPICS, BrokerError, Outgoing, partition_of
from connectors.wire.inbound import retraction_key
from connectors.wire.state_records import History
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment.deployment import build_loops, load_deployed
from streamgp.apps.maintenance.forget import NOT_YET
from streamgp.interactive.consensus_log import examples_in, in_force
from tests.helpers.topics import everything

from .disputes import HONEST, LIAR, SUPERVISOR, Script, number_of, scenes
from .learners import StateOfTopics
from .processes import ENVIRONMENT, FINAL, ROOT, Program
from .replayed import GROUP, differences, rebuilt, replayed
from .senders import N_PARTITIONS, Sender, topics_of

N_EVENTS = int(os.environ.get("STREAMGP_DISPUTES", "100"))
PATIENCE_S = 300.0
CONFIG = """
broker = "{url}"
seed = 1
warm_up = 20
[topics]
partitions = {partitions}
replication = 1
[worker]
group = "{group}"
state = "{state}"
save_every_s = 1.0
max_bad_share = 1.0
[query]
rule = "always"
[review]
rule = "leave_one_out"
threshold = 0.3
every = 10
[questions]
overlap = 0.3
repeat = 0.1
[loop]
max_keys = 2
[people]
supervisors = ["sue"]
trusted = [{trusted}]
"""


class Stage:
    """A worker that is interrupted, and its inputs.

    Parameters
    ----------
    home
        Folder for everything.
    url, n_partitions
        The broker, and its partitions.
    n_keys, n_events, seed
        Numbers of keys and of events of each, and seed of the conversation.

    Attributes
    ----------
    loops
        Settings of the worker's loops.
    script
        The inputs so far.
    n_kills
        How often the worker was interrupted.

    """

    def __init__(self, home, url, n_partitions, n_keys, n_events, seed):
        self.home, self.state, self._old = home, home / "state", home / "old"
        self.config = home / "worker.toml"
        self._url, self.n_partitions = url, n_partitions
        self.rng = random.Random(seed)
        self.scenes = scenes(n_keys, n_events, seed, time.time() - 1e6)
        self.script = Script()
        self.n_kills = 0
        self._configure()
        self.first_loops = self.loops

    def trust(self, *names):
        """Set whom the worker trusts from its next start on."""
        self._configure(*names)
        self.script.note(self.loops.people)

    def turns(self, n_events, busy=()):
        """Return the next inputs of the keys that are not busy; none if nothing is left to say."""
        said = []
        for key, scene in self.scenes.items():
            if key not in busy and (turn := scene.turn(n_events)):
                said += self.script.turn(turn)
        return said

    def meddle(self):
        """Remove the snapshots of a killed worker, restore old ones, or do neither."""
        draw = self.rng.random()
        if draw < 0.25 or (draw < 0.4 and self._old.exists()):
            shutil.rmtree(self.state, ignore_errors=True)
            if draw >= 0.25:
                shutil.copytree(self._old, self.state)
        elif draw < 0.6 and self.state.exists():
            shutil.rmtree(self._old, ignore_errors=True)
            shutil.copytree(self.state, self._old)

    def hear(self, record):
        """Take a record of the topic of requests."""
        said = json.loads(record.value)
        self.scenes[said["key"]].hear(said)

    def _configure(self, *trusted):
        self.config.write_text(
            CONFIG.format(
                url=self._url,
                partitions=self.n_partitions,
                group=GROUP,
                state=self.state,
                trusted=", ".join(map(json.dumps, trusted)),
            )
        )
        self.loops = build_loops(load_deployed(self.config), source=str(self.config))


def play(stage, n_events):
    """Let annotators dispute; retract, restore and lift a quarantine while no worker runs."""
    stage.let_say(n_events // 6)
    stage.retract(LIAR)
    stage.let_say(n_events // 3)
    stage.retract(HONEST[1])
    stage.let_say(n_events // 2)
    stage.retract(HONEST[1], undo=True)
    stage.let_say(n_events * 3 // 4)
    stage.trust(LIAR)
    stage.retract(LIAR, undo=True)
    stage.let_say(n_events * 5 // 6)
    stage.trust()
    stage.let_say(n_events)
    stage.retract(SUPERVISOR)
    stage.retract(LIAR)
    return stage.end()


def judge(stage, records, now):
    """Compare with an undisturbed worker, and count what happened to the annotators."""
    quiet = replayed(
        stage.script.steps(records), stage.first_loops, stage.home / "quiet", stage.n_partitions
    )
    assert differences(records, quiet, stage.loops, now) == []
    state = StateOfTopics()
    said, kinds = {}, Counter()
    for record in records:
        if record.topic in ("state", "consensus"):
            state.add(record)
        value = {} if record.value is None else json.loads(record.value)
        kinds[record.topic, value.get("reason") or value.get("origin")] += 1
        if record.topic == "dead-letters":
            kinds[dict(record.headers)["dlq.stage"].decode()] += 1
        if record.topic == "answers" and "y" in value:
            about = said.setdefault((value["key"], value["event_id"]), set())
            about.add((value["annotator"], value["y"]))
    (stage.home / "kept").mkdir()
    stage.state.rename(stage.home / "kept" / "worker")
    _, flaws = state.differences(stage.loops, stage.home / "kept", now=now)
    # Snapshots that were removed may be missing, and old ones that were restored out of date.
    assert [flaw for flaw in flaws if "has no snapshot" not in flaw] == []
    for number in range(stage.n_partitions):
        history = History()
        for record in {(r.topic, r.key): r for r in records if r.partition == number}.values():
            if record.topic in ("state", "consensus"):
                history.take(record)
        for key, loop in rebuilt(records, stage.loops, number, now).loops.loops.items():
            kinds["quarantine of the liar"] += loop.quarantined == [LIAR]
            assert loop.quarantined in ([], [LIAR])
            lines = in_force(history.lines(key))
            for line in lines:
                assert line.y is None or LIAR not in (line.annotator, line.given_by)
            # No label is left that only the two gave whose labels were taken back last.
            for example in examples_in(lines):
                by = {name for name, y in said[key, example.event_id] if y == example.y}
                assert by - {LIAR, SUPERVISOR}, (key, example.event_id, lines)
    return kinds


# Must have happened, or the test would prove nothing.
HAPPENED = (
    "quarantine",
    "quarantine of the liar",
    ("requests", "AskedAgain"),
    ("requests", "SecondAnnotator"),
    ("requests", "SameAnnotator"),
    ("requests", "LeaveOneOutReview"),
    ("consensus", "aggregated"),
    ("consensus", "withdrawn"),
)


# --- in memory


class Interrupted(BaseException):
    """A worker has ended, as if killed."""


class InMemory(Stage):
    """A worker in this process that is interrupted where it commits."""

    def __init__(self, home, n_keys, n_events, seed):
        super().__init__(home, "file://unused", 2, n_keys, n_events, seed)
        self.now = time.time()
        self.topics = MemoryTopics(n_partitions=2, clock=lambda: self.now)
        self._client, self.topics.client = self.topics.client, self._interrupted_client
        self._writer, self._requests = self.topics.writer("test"), self.topics.reader(["requests"])
        self._share = 0.15

    def let_say(self, n_events):
        def is_done():
            for record in self._requests.poll(0.0):
                self.hear(record)
            if self._waits():
                return False
            said = self.turns(n_events)
            self._write(said)
            return not said

        self._work(is_done)

    def retract(self, annotator, *, undo=False):
        self.script.note((annotator, undo))
        call = next(self._calls)
        self._write(
            Outgoing(
                topic="consensus",
                partition=partition_of(key.encode(), self.n_partitions),
                key=retraction_key(key, annotator, call, undo=undo),
                value=None,
            )
            for key in self.scenes
        )
        self._work(lambda: not self._waits())

    def end(self):
        self._share = 0.0
        self._work(lambda: not self._waits())
        return everything(self.topics, *ALL_TOPICS)

    _calls = itertools.count()

    def _waits(self):
        return any(self.topics.lags(GROUP).values())

    def _write(self, records):
        for record in records:
            self.now += 1e-3
            self._writer.send(record)
            self._writer.flush()

    def _interrupted_client(self, **options):
        client = self._client(**options)
        commit = client.commit

        def interrupted(outgoing):
            draw = self.rng.random()
            if draw < self._share / 2:
                raise Interrupted
            ends = commit(outgoing)
            if draw < self._share:
                raise Interrupted
            return ends

        client.commit = interrupted
        return client

    def _work(self, is_done):
        while True:
            settings = WorkerSettings(
                group=GROUP,
                instance="w",
                batch=self.rng.choice((1, 5, 1000)),
                save_every_s=self.rng.choice((0.0, 0.02, 1e9)),
                max_bad_share=1.0,
            )
            try:
                with StateDirectory(self.state) as state:
                    worker = Worker(
                        self.topics, self.loops, settings, state=state, clock=lambda: self.now
                    )
                    worker.run(is_done)
                return
            except Interrupted:
                self.n_kills += 1
                self.meddle()


@pytest.mark.parametrize("seed", [1, pytest.param(8, marks=pytest.mark.nightly)])
def test_an_interrupted_worker_ends_in_the_same_state_as_an_undisturbed_one(seed, tmp_path):
    stage = InMemory(tmp_path, n_keys=2, n_events=100, seed=seed)
    kinds = judge(stage, play(stage, 100), stage.now)
    assert stage.n_kills > 20
    assert [what for what in HAPPENED if not kinds[what]] == []


# --- on a broker


class OnKafka(Stage):
    """A worker in a process that is killed every few seconds; now and then the broker is, too."""

    # _busy     for each key with a turn in progress: the numbers of its inputs not yet seen, all of
    #           them, and the place and offset of the last one
    # _read_to  how far the topics were read
    # _kill_at, _kill_after  when the worker is killed, and the inputs after which this is decided
    # _is_over  whether no more harm is done
    # _up_at    when the broker is restarted; None while it runs
    # _down_at  when it is killed next
    def __init__(self, home, broker, n_keys, n_events, seed):
        super().__init__(home, f"kafka://{broker.servers}", N_PARTITIONS, n_keys, n_events, seed)
        self._broker, self._logs = broker, home / "logs"
        self._logs.mkdir()
        self._topics, self._sender = topics_of(broker.servers), Sender(broker.servers)
        self._topics.create()
        self._reader, self._read_to, self._busy = None, {}, {}
        self._worker, self._kill_at, self._kill_after, self._is_over = None, math.inf, 0, False
        self.n_outages, self._up_at = 0, None
        self._down_at = time.monotonic() + 10.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._worker is not None:
            self._worker.kill()
        self._stop_reading()
        self._sender.close()
        self._topics.close()
        gc.collect()  # closes sockets that the client leaves open

    def let_say(self, n_events):
        def is_done():
            self._hear()
            self._forget_done()
            said = self.turns(n_events, self._busy)
            if not said:
                return not self._busy
            for record in said:
                key = record.key.decode()
                numbers = self._busy.setdefault(key, [set(), set(), None, -1])
                numbers[0].add(number_of(record))
                numbers[1].add(number_of(record))
            self._bring_back()  # writers wait for it
            self._sender.send(said)
            self._sender.flush()
            return False

        self._wait(is_done)
        self._wait(self._is_quiet)

    def retract(self, annotator, *, undo=False):
        self.script.note((annotator, undo))
        self._bring_back()
        self._kill()
        words = ["--annotator", annotator, "--yes", "--wait", "0", *(["--undo"] if undo else [])]
        done = subprocess.run(
            [sys.executable, "-m", "streamgp", "retract", str(self.config), *words],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == NOT_YET or "no label" in done.stderr, done.stderr
        self._wait(self._is_quiet)

    def trust(self, *names):
        self._kill()
        super().trust(*names)

    def end(self):
        self._bring_back()
        self._is_over = True
        self._kill_at = self._down_at = math.inf
        self._wait(self._is_quiet)
        self._worker.send(signal.SIGTERM)
        self._worker.wait(60.0)
        return everything(self._topics, *ALL_TOPICS)

    # --- inside

    def _wait(self, is_done):
        until = time.monotonic() + PATIENCE_S
        while not is_done():
            assert time.monotonic() < until, self._worker and self._worker.tail()
            self._watch()
            time.sleep(0.02)

    def _watch(self):
        """Do harm when it is time, and restart what has ended."""
        now = time.monotonic()
        if self._up_at is None and now >= self._down_at:
            self._broker.kill()
            self.n_outages += 1
            self._up_at = now + self.rng.uniform(0.0, 4.0)
        elif self._up_at is not None and now >= self._up_at:
            self._bring_back()
        if self._worker is not None and self._worker.status is None and now >= self._kill_at:
            self._kill()
        if self._worker is None or self._worker.status is not None:
            status = None if self._worker is None else self._worker.status
            assert status not in FINAL, self._worker.tail()
            name = ["run", str(self.config), "--instance", "w", "--log-format", "json"]
            self._worker = Program("worker", ["-m", "streamgp", *name], self._logs)
            # It has usually begun by then, as it takes some seconds.
            self._kill_after = self.script.n + self.rng.randint(5, 40)
            is_soon = not self._is_over and self.rng.random() < 0.2
            self._kill_at = now + self.rng.uniform(0.5, 4.0) if is_soon else math.inf
        elif self._kill_at == math.inf and self.script.n >= self._kill_after and not self._is_over:
            self._kill_at = now + self.rng.uniform(0.0, 0.5)

    def _kill(self):
        if self._worker is not None and self._worker.status is None:
            self._worker.kill()
            self.n_kills += 1
            self.meddle()
        self._worker = None

    def _bring_back(self):
        if self._up_at is not None:
            self._broker.start()
            self._up_at = None
            self._down_at = time.monotonic() + self.rng.uniform(30.0, 60.0)

    def _hear(self):
        """Read on; records read before an outage of the broker come again."""
        try:
            if self._reader is None:
                self._reader = self._topics.reader(["requests", "events", "answers"])
            records = self._reader.poll(0.05)
        except BrokerError:
            self._stop_reading()
            return
        for record in records:
            place = record.topic, record.partition
            if record.offset < self._read_to.get(place, 0):
                continue
            self._read_to[place] = record.offset + 1
            if record.topic == "requests":
                self.hear(record)
                continue
            turn = self._busy.get(record.key.decode())
            if turn is not None and number_of(record) in turn[1]:
                turn[0].discard(number_of(record))
                turn[2:] = place, record.offset

    def _stop_reading(self):
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(BrokerError):
                reader.close()

    def _forget_done(self):
        """Forget the turns that have been processed."""
        positions = {}
        with suppress(BrokerError):
            positions = self._topics.positions(GROUP)
        for key, (missing, _, place, offset) in list(self._busy.items()):
            if not missing and positions.get(place, 0) > offset:
                del self._busy[key]

    def _is_quiet(self):
        with suppress(BrokerError):
            return not any(self._topics.lags(GROUP).values())
        return False


@pytest.mark.nightly
def test_a_killed_worker_ends_in_the_same_state_as_an_undisturbed_one(broker_of_ones_own, tmp_path):
    with (
        broker_of_ones_own(heap_mb=512, apart=True) as broker,
        OnKafka(tmp_path, broker, n_keys=4, n_events=N_EVENTS, seed=1) as stage,
    ):
        records = play(stage, N_EVENTS)
    kinds = judge(stage, records, time.time())
    print(stage.n_kills, "kills,", stage.n_outages, "of the broker,", stage.script.n, "inputs")
    assert stage.n_kills >= 20
    assert stage.n_outages >= 1
    assert [what for what in HAPPENED if not kinds[what]] == []
