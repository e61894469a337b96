"""A worker on a real Kafka broker: throughput, restore and latency.

One broker is started on this machine (Java and Maven are needed; STREAMGP_TEST_KAFKA names another
one), with events of 300 bytes in four partitions and a hundred keys.

Throughput, in records of one process per second, one transaction for what was polled together:
the bare loop of the client (consume, decode, encode, produce, with the same JSON functions, headers
and settings), the worker without learner (the loop says a constant; codec, checks, headers and
transaction as usual, no state) and the worker with a Gaussian process per key that holds 50
examples. They take turns, each on the same events. Joining the group and the first batch do not
count.

Restore: a new worker without local snapshot on one partition with 100 000 labelled examples, 50 for
each of 2000 keys, until it may take its first event.

Latency, from the moment an event is handed to the client of its sender until a reader of committed
records has its prediction, and from an answer to its line in the consensus log: at half of the load
that a worker with learners must carry, which the limits are about, and at half of what this one
did carry. Each on a broker that has done nothing before. Sender, worker, annotator and reader are
processes of their own, and share the cores with the broker.

"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks._harness import Options, Outcome, Row, at_least, at_most, progress, run
from benchmarks._kafka_latency import latencies
from benchmarks._kafka_loops import (
    EVENT_BYTES,
    N_LABELS,
    N_PARTITIONS,
    NO_LEARNER,
    bare_rate,
    feed,
    learners,
    restore_seconds,
    taught,
    topics_of,
    worker_rate,
)
from streamgp.apps.worker.process import collect_seldom

_BATCH = 1000


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("kafka", measure, about=__doc__, argv=argv)


def measure(options: Options) -> Outcome:
    """Start a broker and measure one thing after the other."""
    collect_seldom()  # as `streamgp run` does
    with broker() as servers:
        rates = _rates(servers, options)
        bare, off, keyed = (statistics.median(rates[name]) for name in rates)
        restored, n_examples = _restore(servers, options)
    # Ten thousand events a second, or half of the bare loop: what a slow machine can do.
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
    """Give the servers of a broker, started for this unless the environment names one."""
    named = os.environ.get("STREAMGP_TEST_KAFKA")
    if named:
        yield named
        return
    sys.path.append(os.path.join(os.path.dirname(__file__), os.pardir, "tests"))
    from kafka_broker import Broker

    with Broker(heap_mb=512) as started:
        yield started.servers


def _rates(servers: str, options: Options) -> dict[str, list[float]]:
    n_events, n_rounds = (15_000, 3) if options.quick else (60_000, 5)
    events = f"events-{os.getpid()}"
    feed(topics_of(servers, "feed", events=events), n_events)
    loops: dict[str, Callable[[str], float]] = {
        "bare client": lambda name: bare_rate(servers, events, name, n_events, _BATCH),
        "worker, no learner": lambda name: worker_rate(
            topics_of(servers, name, events=events), NO_LEARNER, name, n_events, _BATCH
        ),
        f"worker, {N_LABELS} examples per key": lambda name: worker_rate(
            taught(topics_of(servers, name, events=events), name),
            learners(),
            name,
            n_events,
            _BATCH,
        ),
    }
    rates: dict[str, list[float]] = {name: [] for name in loops}
    for n in range(n_rounds):
        for i, (name, measured) in enumerate(loops.items()):
            rates[name].append(measured(f"rate-{os.getpid()}-{n}-{i}"))
            progress(f"round {n + 1} of {n_rounds}: {name} {rates[name][-1]:.0f} per s")
    return rates


def _restore(servers: str, options: Options) -> tuple[float, int]:
    n_keys = 100 if options.quick else 2000
    progress(f"restore of {n_keys * N_LABELS} examples")
    with tempfile.TemporaryDirectory():
        start = time.perf_counter()
        seconds = restore_seconds(servers, f"restore-{os.getpid()}", n_keys)
        progress(f"restored in {seconds:.2f} s ({time.perf_counter() - start:.0f} s to prepare)")
    return seconds, n_keys * N_LABELS


def _latencies(rows: list[Row], rate: float, options: Options) -> tuple[Row, Row]:
    """Measure latencies at some load; add them to the rows, and return them."""
    progress(f"latency at {rate:.0f} events per second")
    # Another broker each time: the one before has millions of records to compact, for minutes.
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


if __name__ == "__main__":
    sys.exit(main())
