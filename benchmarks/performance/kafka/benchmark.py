"""A worker on a real Kafka broker: throughput, restore and latency.

A broker is started on this machine (needs Java and Maven; STREAMGP_TEST_KAFKA names another one),
with events of 300 bytes in four partitions and a hundred keys.

Throughput, in records per second of one process, with one transaction per polled batch: the bare
loop of the client (consume, decode, encode, produce, with the same JSON functions, headers and
settings), the worker without a learner (the loop returns a constant; codec, checks, headers and
transaction as usual, no state) and the worker with a Gaussian process per key that holds 50
examples. They take turns, each on the same events. Joining the group and the first batch do not
count. Also shown: the CPU time of each process per event, the median of all rounds; and for
workers, the share of each phase in the time of a batch, according to the metric
`batch_duration_seconds`.

Restore: a new worker without local snapshot on one partition with 100 000 labelled examples, 50 for
each of 2000 keys, until it may take its first event.

Latency, from the moment an event is handed to the sender's client until a reader of committed
records has its prediction, and from an answer to its line in the consensus log: at half the load
that a worker with learners must carry, for which the limits hold, and at half the load that this
worker did carry. Each on a fresh broker. Sender, worker, annotator and reader are separate
processes, and share the cores with the broker.

"""

from __future__ import annotations

import contextlib
import heapq
import logging
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from benchmarks._harness import Options, Outcome, Row, at_least, at_most, progress, run
from benchmarks.performance.kafka.loops import (
    EVENT_BYTES,
    N_KEYS,
    N_LABELS,
    N_PARTITIONS,
    NO_LEARNER,
    Pace,
    bare_pace,
    event,
    feed,
    learners,
    restore_seconds,
    taught,
    topics_of,
    worker_pace,
)
from connectors.topics import Outgoing, Record
from connectors.wire.cloudevents import posix_seconds
from connectors.wire.codec import decode
from connectors.wire.outbound import Outbound
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.worker.process import collect_seldom
from streamgp.interactive.messages import Answer, LabelledExample, LabelRequest

# --- latency: from an event to its prediction, from an answer until it is learned

_WARM_UP_S = 2.0
_AFTER_S = 3.0
_TICK_S = 0.005
_THINKS_S = 0.2


def latencies(servers: str, rate: float, seconds: float) -> tuple[list[float], list[float]]:
    """Return milliseconds from event to prediction, and from answer to learned.

    Parameters
    ----------
    servers
        The broker.
    rate
        Events per second.
    seconds
        Duration; the first two seconds do not count.

    """
    prefix = f"latency-{os.getpid()}"
    topics = taught(topics_of(servers, prefix), prefix)
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    workers = context.Process(target=_work, args=(servers, prefix, stop))
    workers.start()
    _wait_for_worker(topics, prefix)
    n_events = int(rate * (seconds + _WARM_UP_S))
    theirs, ours = context.Pipe()
    ready, go = context.Event(), context.Event()
    others = [
        context.Process(target=_send, args=(servers, prefix, rate, n_events, ready, go)),
        context.Process(target=_answer, args=(servers, prefix, seconds + _WARM_UP_S, theirs)),
    ]
    others[0].start()
    ready.wait()
    others[1].start()
    try:
        event_ms = _predictions(topics, seconds + _WARM_UP_S, go)
        return event_ms, ours.recv()
    finally:
        stop.set()
        for other in [*others, workers]:
            other.join()
        topics.close()


def _predictions(topics: Any, seconds: float, go: Any) -> list[float]:
    """Return the age of every event when its prediction was read, after the warm-up."""
    reader = topics.reader(["predictions"], from_end=True)
    ages_ms: list[float] = []
    first: float | None = None
    reader.poll(0.05)
    go.set()
    until = time.time() + seconds + _AFTER_S
    while time.time() < until:
        records = reader.poll(0.05)
        now = time.time()
        for record in records:
            first = now if first is None else first
            if now - first > _WARM_UP_S:
                ages_ms.append(1e3 * (now - _time_of(record)))
    reader.close()
    return ages_ms


def _time_of(record: Record) -> float:
    """Return the time of a message from its headers, which takes a tenth of decoding it."""
    return posix_seconds(dict(record.headers)["ce_time"].decode())


def _answer(servers: str, prefix: str, seconds: float, result: Any) -> None:
    """Answer every question, and send the age of each answer when its line was read."""
    topics = topics_of(servers, prefix)
    reader = topics.reader(["requests", "consensus"], from_end=True)
    annotator = _Annotator(topics)
    annotator.start()
    ages_ms: list[float] = []
    start = time.time()
    while time.time() < start + seconds + _AFTER_S:
        records = reader.poll(0.05)
        now = time.time()
        for record in records:
            message = decode(record.value)
            if isinstance(message, LabelRequest):
                annotator.ask(message, record.partition)
            elif isinstance(message, LabelledExample):
                at = annotator.given_at.get((message.key, message.event_id))
                if at is not None and now - start > 2 * _WARM_UP_S:
                    ages_ms.append(1e3 * (now - at))
    annotator.ends = True
    annotator.join()
    reader.close()
    topics.close()
    result.send(ages_ms)


class _Annotator(threading.Thread):
    """Annotator who answers each question after a delay of its own.

    Answers given at once would always come just after a batch, and wait for the whole next one.
    """

    def __init__(self, topics: Any) -> None:
        super().__init__()
        self.given_at: dict[tuple[str | None, str], float] = {}
        self.ends = False
        self._outbox = Outbound("/streamgp/annotator", keyed=True)
        self._writer = topics.writer("annotator")
        self._rng = np.random.default_rng(4)
        self._asked: list[tuple[float, str | None, str, LabelRequest, int]] = []

    def ask(self, request: LabelRequest, partition: int) -> None:
        """Take a question."""
        due = time.time() + self._rng.uniform(0.0, _THINKS_S)
        heapq.heappush(self._asked, (due, request.key, request.event_id, request, partition))

    def run(self) -> None:
        """Answer the questions that are due."""
        while not self.ends:
            while self._asked and self._asked[0][0] <= time.time():
                *_, request, partition = heapq.heappop(self._asked)
                answer = self._outbox.message(_answer_to(request), partition)
                self.given_at[request.key, request.event_id] = time.time()
                self._writer.send(answer)
                self._writer.flush()
            time.sleep(_TICK_S)
        self._writer.close()


def _answer_to(request: LabelRequest) -> Answer:
    return Answer(
        answer_id=f"{request.request_id}/answer",
        request_id=request.request_id,
        event_id=request.event_id,
        key=request.key,
        y="hall",
        answered_at=time.time(),
    )


def _work(servers: str, prefix: str, stop: Any) -> None:
    logging.getLogger("streamgp").setLevel(logging.CRITICAL)
    topics = topics_of(servers, prefix)
    settings = WorkerSettings(group=prefix, instance=prefix)
    collect_seldom()
    Worker(topics, learners(), settings).run(stop.is_set)
    topics.close()


def _wait_for_worker(topics: Any, group: str) -> None:
    until = time.monotonic() + 60.0
    while topics.n_members(group) == 0 and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(2.0)  # the restore


def _send(servers: str, prefix: str, rate: float, n_events: int, ready: Any, go: Any) -> None:
    """Send each event when it is due; all are made beforehand, to leave the cores to the worker."""
    rng, outbox = np.random.default_rng(3), Outbound("/streamgp/feeder", keyed=True)
    records = [
        _undated(outbox.message(event(number, rng, at=0.0), number % N_KEYS % N_PARTITIONS))
        for number in range(n_events)
    ]
    writer = topics_of(servers, prefix).writer("feeder")
    ready.set()
    go.wait()
    start, n_sent = time.time(), 0
    while n_sent < n_events:
        due = min(n_events, int((time.time() - start) * rate))
        for record in records[n_sent:due]:
            writer.send(record)
        writer.flush()
        n_sent = due
        time.sleep(_TICK_S)
    writer.close()


def _undated(record: Outgoing) -> Outgoing:
    """Return an event without a time: it takes place when its record is handed to the client."""
    assert record.value is not None
    value = record.value.replace(b'"occurred_at":0.0,', b"")
    return msgspec.structs.replace(record, value=value)


# --- the benchmark

_BATCH = 1000


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("kafka", measure, about=__doc__, argv=argv)


def measure(options: Options) -> Outcome:
    """Start a broker and measure one thing after the other."""
    collect_seldom()  # as `streamgp run` does
    with broker() as servers:
        paces = _paces(servers, options)
        rates = {name: [pace.per_s for pace in found] for name, found in paces.items()}
        bare, off, keyed = (statistics.median(rates[name]) for name in rates)
        restored, n_examples = _restore(servers, options)
    # Ten thousand events per second or, on a slow machine, half of the bare loop.
    enough = min(10_000.0, bare / 2)
    rows: list[Row] = [
        {
            "loop": name,
            "events per s": statistics.median(values),
            "slowest": min(values),
            "fastest": max(values),
            "share of bare": statistics.median(values) / bare,
        }
        for name, values in rates.items()
    ]
    bare_us = statistics.median(pace.cpu_us for pace in paces[next(iter(paces))])
    rows += [_cpu(name, found, bare_us) for name, found in paces.items()]
    rows.append({"restored examples": n_examples, "seconds": restored})
    event, answer = _latencies(rows, enough / 2, options)
    if not options.quick:
        _latencies(rows, keyed / 2, options)
    accepted = [
        at_least("without learner: share of the bare loop", off / bare, 0.8),
        at_least("with learners: events per second", keyed, enough),
    ]
    if not options.quick:
        accepted += [
            at_most("restore of 100 000 examples, s", restored, 15.0),
            at_most("event to prediction, median ms", event["p50 ms"], 50.0),
            at_most("event to prediction, 99th percentile ms", event["p99 ms"], 250.0),
            at_most("answer to learned, median ms", answer["p50 ms"], 50.0),
            at_most("answer to learned, 99th percentile ms", answer["p99 ms"], 250.0),
        ]
    note = f"{EVENT_BYTES} bytes per event, {N_PARTITIONS} partitions"
    return Outcome(rows=rows, acceptance=accepted, notes=[note])


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """Provide the servers of a broker, started here unless the environment names one."""
    named = os.environ.get("STREAMGP_TEST_KAFKA")
    if named:
        yield named
        return
    from tests.kafka_broker import Broker  # the tests start theirs in the same way

    with Broker(heap_mb=512) as started:
        yield started.servers


def _paces(servers: str, options: Options) -> dict[str, list[Pace]]:
    n_events, n_rounds = (15_000, 3) if options.quick else (60_000, 5)
    events = f"events-{os.getpid()}"
    feed(topics_of(servers, "feed", events=events), n_events)
    loops: dict[str, Callable[[str], Pace]] = {
        "bare client": lambda name: bare_pace(servers, events, name, n_events, _BATCH),
        "worker, no learner": lambda name: worker_pace(
            topics_of(servers, name, events=events), NO_LEARNER, name, n_events, _BATCH
        ),
        f"worker, {N_LABELS} examples per key": lambda name: worker_pace(
            taught(topics_of(servers, name, events=events), name),
            learners(),
            name,
            n_events,
            _BATCH,
        ),
    }
    paces: dict[str, list[Pace]] = {name: [] for name in loops}
    for n in range(n_rounds):
        for i, (name, measured) in enumerate(loops.items()):
            paces[name].append(measured(f"rate-{os.getpid()}-{n}-{i}"))
            progress(f"round {n + 1} of {n_rounds}: {name} {paces[name][-1].per_s:.0f} per s")
    return paces


def _cpu(name: str, paces: list[Pace], bare_us: float) -> Row:
    """Return CPU time per event, and the share of each phase in the time of a batch."""
    us = statistics.median(pace.cpu_us for pace in paces)
    phases = {
        f"{phase} %": 100.0 * statistics.median(pace.shares[phase] for pace in paces)
        for phase in paces[0].shares
    }
    return {"CPU of": name, "us per event": us, "times bare": us / bare_us, **phases}


def _restore(servers: str, options: Options) -> tuple[float, int]:
    n_keys = 100 if options.quick else 2000
    progress(f"restore of {n_keys * N_LABELS} examples")
    with tempfile.TemporaryDirectory():
        start = time.perf_counter()
        seconds = restore_seconds(servers, f"restore-{os.getpid()}", n_keys)
        progress(f"restored in {seconds:.2f} s ({time.perf_counter() - start:.0f} s to prepare)")
    return seconds, n_keys * N_LABELS


def _latencies(rows: list[Row], rate: float, options: Options) -> tuple[Row, Row]:
    """Measure latencies at a given load; add them to the rows, and return them."""
    progress(f"latency at {rate:.0f} events per second")
    # A new broker each time: the last one spends minutes compacting millions of records.
    with broker() as servers:
        times = latencies(servers, rate, 5.0 if options.quick else 30.0)
    found: list[Row] = [
        {"latency": what, "at events per s": rate, "n": len(ms), **_percentiles(ms)}
        for what, ms in zip(("event to prediction", "answer to learned"), times, strict=True)
    ]
    rows += found
    return found[0], found[1]


def _percentiles(times_ms: list[float]) -> dict[str, Any]:
    ordered = sorted(times_ms)
    if not ordered:
        return {"p50 ms": None, "p99 ms": None, "max ms": None}
    return {
        "p50 ms": statistics.median(ordered),
        "p99 ms": ordered[int(0.99 * (len(ordered) - 1))],
        "max ms": ordered[-1],
    }
