"""Broker, workers, senders and annotator under chaos, and the harm that is done to them."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from connectors.kafka.client import Connection
from connectors.topics import ALL_TOPICS, BrokerError, Record
from streamgp.apps.console import LOST_BROKER

from .learners import StateOfTopics
from .ledger import Ledger
from .processes import Plan, Program, Workers
from .scraping import Scraper
from .senders import N_PARTITIONS, topics_of

GROUP = "chaos"
_HORIZON_S = 120.0
_EXPIRES_AFTER_S = 20.0
_CONFIG = """\
seed = {seed}
warm_up = 0
[broker]
url = "kafka://{servers}"
[worker]
group = "{group}"
state = "{state}"
save_every_s = 5.0
[query]
rule = "skeptical"
pending = false
[budget]
rule = "at_most_per"
n = 3
span_s = 10.0
[loop]
expires_after_s = {expires_after_s}
answer_horizon_s = {horizon_s}
max_keys = 23
[temporal]
enabled = false
[drift_test]
enabled = false
[people]
owners = false
"""
_ANNOTATOR = "name=ann,error_rate=0.2,delay=1,decline_rate=0.05,seed={seed}"
_STREAMGP = ("-m", "streamgp")
# Larger than an event may be, so that one that is too large reaches the workers.
_INPUT_LIMIT = 2 * 2**20
_SAMPLE = 4
_LEAVE_S = 30.0
_PATIENCE_S = 300.0
_QUIET_S = 3.0
_TICK_S = 0.1
_TELL_S = 10.0
_LONGEST_OUTAGE_S = 8.0
# Longer than it takes until all workers have given up and restarted twice.
_STUCK_S = 90.0


class Reading(Protocol):
    """A collector to which all records of the topics are added."""

    def add(self, record: Record) -> None:
        """Add the next record of its partition."""


class Scene:
    """Brokers, workers, senders and an annotator; `with` starts and ends all of them.

    Parameters
    ----------
    seed
        Seed of everything random.
    n_workers, n_events, seconds
        Numbers of workers and events, and duration of the events.
    hostile_share
        Number of hostile events per good event.
    n_brokers
        One broker, or three with three copies of everything, of which one at a time goes down.
    home
        Folder for the state of workers, and for all logs.
    progress
        Called with a line about each step.

    Attributes
    ----------
    config
        The configuration of the workers.
    state
        Folder of their state.
    workers
        The workers.
    n_restarts
        Number of restarts of a broker.
    harms
        Harm done to workers, by kind.
    ended
        Transactions that the broker had lost track of and that were ended by hand.
    scraper
        Counters of the workers.

    """

    # _stuck  number of waiting inputs, and since when it has not changed

    def __init__(
        self,
        seed: int,
        n_workers: int,
        n_events: int,
        seconds: float,
        hostile_share: float,
        n_brokers: int,
        home: Path,
        progress: Callable[[str], None],
    ) -> None:
        self.config = home / "chaos.toml"
        self.state = home / "state"
        self.n_restarts = 0
        self.harms: Counter[str] = Counter()
        self.ended: list[str] = []
        self._stuck: tuple[int | None, float] = (None, 0.0)
        self._logs = home / "logs"
        self._logs.mkdir()
        self._progress = progress
        self._seed = seed
        self._n_workers = n_workers
        self._n_events = n_events
        self._seconds = seconds
        self._hostile_share = hostile_share
        self._broker = _brokers(n_brokers)
        self._people: dict[str, Program] = {}
        self._told = time.monotonic()

    def __enter__(self) -> Scene:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for program in self._people.values():
            program.kill()
        if hasattr(self, "workers"):
            self.scraper.__exit__()
            self.workers.kill()
        self._broker.__exit__(kind, error, trace)

    def do_harm(self, plan: Plan, rng: random.Random) -> None:
        """Do the planned harm; if no worker is available for it, it waits."""
        start = time.monotonic()
        harms, restarts = list(plan.harms), list(plan.restarts)
        up_at: float | None = None
        while (now := time.monotonic() - start) < self._seconds or harms or up_at is not None:
            self._watch()
            if harms and harms[0][0] <= now:
                _, harm, stop_s = harms[0]
                name = self.workers.hurt(harm, rng, stop_s)
                if name is not None:
                    self.harms[harm] += 1
                    harms.pop(0)
                    lasting = f" for {stop_s:.0f} s" if harm == "stop" else ""
                    self._progress(f"{now:.0f} s: {harm} {name}{lasting}")
            if up_at is None and restarts and restarts[0][0] <= now:
                _, is_kill = restarts.pop(0)
                (self._broker.kill if is_kill else self._broker.stop)()
                self.n_restarts += 1
                up_at = now + rng.uniform(0.0, _LONGEST_OUTAGE_S)
                self._progress(f"{now:.0f} s: {'kill' if is_kill else 'stop'} broker")
            elif up_at is not None and up_at <= now:
                self._broker.start()
                up_at = None
                self._progress(f"{time.monotonic() - start:.0f} s: broker is back")
            time.sleep(_TICK_S)
        self.workers.wake()

    def wait_until_fed(self) -> None:
        """Return once the last event has been sent."""
        self._wait("events to be sent", lambda: self._people["feeder"].status == 0)

    def wait_until_idle(self) -> None:
        """Return once no input has been waiting for a while."""
        since: list[float] = []

        def is_idle() -> bool:
            lag = self._lag()
            self._end_hanging(lag)
            if lag != 0:
                since.clear()
            else:
                since.append(time.monotonic())
            return bool(since) and since[-1] - since[0] > _QUIET_S

        self._wait("workers to catch up", is_idle)

    def end_people(self) -> None:
        """End the annotator and the meddler."""
        for name in ("annotator", "meddler"):
            person = self._people.pop(name)
            person.send(signal.SIGTERM)
            person.wait(_LEAVE_S)

    def read(self, *into: Reading) -> tuple[Ledger, StateOfTopics]:
        """Read all topics, also into the given collectors."""
        sample = {f"key-{n:03}" for n in range(0, 1000, _SAMPLE)}
        ledger = Ledger(
            horizon_s=_HORIZON_S,
            expires_after_s=_EXPIRES_AFTER_S,
            is_sampled=sample.__contains__,
        )
        state = StateOfTopics()
        reader = self._topics.reader(ALL_TOPICS)
        while not reader.caught_up:
            for record in reader.poll(1.0):
                for other in into:
                    other.add(record)
                ledger.add(record)
                if record.topic in ("state", "consensus"):
                    state.add(record)
        reader.close()
        return ledger, state

    # --- inside

    def _start(self) -> None:
        self._progress("starting the broker and the workers")
        self._broker.start()
        servers = self._broker.servers
        _make_inputs(servers)
        self._topics = topics_of(servers)
        self._topics.create()
        self.config.write_text(
            _CONFIG.format(
                seed=self._seed,
                servers=servers,
                group=GROUP,
                state=self.state,
                horizon_s=_HORIZON_S,
                expires_after_s=_EXPIRES_AFTER_S,
            )
        )
        self.workers = Workers(self.config, self._n_workers, self._logs)
        self.scraper = Scraper(self.workers.observed).__enter__()
        n = min(self._n_workers, N_PARTITIONS)
        self._wait("workers to start", lambda: self._topics.n_members(GROUP) >= n)
        for name in ("annotator", "meddler", "feeder"):
            self._people[name] = self._person(name)

    def _person(self, name: str) -> Program:
        servers, seed = self._broker.servers, str(self._seed)
        senders = ["-m", "tests.chaos.senders"]
        annotator = _ANNOTATOR.format(seed=self._seed)
        traffic = (self._n_events, self._seconds, self._hostile_share)
        arguments = {
            "annotator": [*_STREAMGP, "annotate", str(self.config), "--simulate", annotator],
            "meddler": [*senders, "meddle", servers, seed],
            "feeder": [*senders, "feed", servers, seed, *map(str, traffic)],
        }
        return Program(name, arguments[name], self._logs)

    def _watch(self) -> None:
        """Restart what has ended, and report progress now and then."""
        self.workers.watch()
        if self.workers.n_given_up == self._n_workers:
            raise RuntimeError(f"no worker can go on; end of the logs:\n{self.workers.tail()}")
        for name, program in self._people.items():
            status = program.status
            if status is None or (name == "feeder" and status == 0):
                continue
            if name == "feeder" or status != LOST_BROKER:
                raise RuntimeError(f"{name} ended with {status}; end of its log:\n{program.tail()}")
            self._people[name] = self._person(name)

    def _wait(self, what: str, is_done: Callable[[], bool]) -> None:
        """Wait until something is done, as long as the number of waiting inputs falls."""
        until, least = time.monotonic() + _PATIENCE_S, inf
        while not is_done():
            self._watch()
            now = time.monotonic()
            if now > until:
                raise RuntimeError(f"waited {_PATIENCE_S:.0f} s in vain for {what}")
            if now - self._told > _TELL_S:
                self._told = now
                lag = self._lag()
                self._progress(f"waiting for {what}, {lag} inputs left")
                if lag is not None and lag < least:
                    until, least = now + _PATIENCE_S, lag
            time.sleep(_TICK_S)

    def _end_hanging(self, lag: int | None) -> None:
        """Do what the broker's operator would do when nothing moves any longer."""
        now = time.monotonic()
        if not lag or lag != self._stuck[0]:
            self._stuck = lag, now
        elif now - self._stuck[1] > _STUCK_S:
            self._stuck = lag, now
            from tests.kafka_hanging import end_hanging

            ended = end_hanging(self._broker.servers)
            self.ended += ended
            self._progress(
                f"{lag} inputs do not move; transactions ended by hand: {ended or 'none'}"
            )

    def _lag(self) -> int | None:
        """Return the number of waiting events and answers; None if the broker does not say."""
        with suppress(BrokerError):
            lags = self._topics.lags(GROUP).items()
            return sum(n for (topic, _), n in lags if topic in ("events", "answers"))
        return None


def _brokers(n_brokers: int) -> Any:
    from tests.kafka_broker import Broker
    from tests.kafka_cluster import Cluster

    if n_brokers > 1:
        return Cluster()
    # A broker that is its own controller breaks a transaction if it is killed during it.
    return Broker(heap_mb=512, apart=True)


def _make_inputs(servers: str) -> None:
    client = Connection(servers).admin()
    settings = {"max.message.bytes": str(_INPUT_LIMIT)}
    wanted = {"num_partitions": N_PARTITIONS, "replication_factor": -1, "configs": settings}
    client.create_topics(dict.fromkeys(("events", "answers"), wanted))
    client.close()
