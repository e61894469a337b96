"""How long an event waits for its prediction, and an answer until it is learned."""

from __future__ import annotations

import heapq
import logging
import multiprocessing
import os
import threading
import time
from typing import Any

import msgspec
import numpy as np

from benchmarks._kafka_loops import (
    N_KEYS,
    N_PARTITIONS,
    event,
    learners,
    taught,
    topics_of,
)
from connectors.topics import Outgoing, Record
from connectors.wire.codec import decode
from connectors.wire.inbound import posix_seconds
from connectors.wire.outbound import Outbox
from connectors.worker.worker import Worker, WorkerSettings
from streamgp.apps.worker.process import collect_seldom
from streamgp.interactive.messages import Answer, LabelledExample, LabelRequest

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
        For how long; what happens in the first two does not count.

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
    """Return how old every event was when its prediction was read, after the warm-up."""
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
    """Return the time of a message, from the headers: that takes a tenth of decoding it."""
    return posix_seconds(dict(record.headers)["ce_time"].decode())


def _answer(servers: str, prefix: str, seconds: float, result: Any) -> None:
    """Answer every question, and send how old each answer was when its line was read."""
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
    """Answers each question after a moment of its own.

    Who answered at once would always answer just after a batch, and wait for the whole next one.
    """

    def __init__(self, topics: Any) -> None:
        super().__init__()
        self.given_at: dict[tuple[str | None, str], float] = {}
        self.ends = False
        self._outbox = Outbox("/streamgp/annotator", keyed=True)
        self._writer = topics.writer("annotator")
        self._rng = np.random.default_rng(4)
        self._asked: list[tuple[float, str | None, str, LabelRequest, int]] = []

    def ask(self, request: LabelRequest, partition: int) -> None:
        """Take a question."""
        due = time.time() + self._rng.uniform(0.0, _THINKS_S)
        heapq.heappush(self._asked, (due, request.key, request.event_id, request, partition))

    def run(self) -> None:
        """Answer what is due."""
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
    """Send each event when it is due; all are made before, as the cores are the worker's too."""
    rng, outbox = np.random.default_rng(3), Outbox("/streamgp/feeder", keyed=True)
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
    """Return an event without a time: it happens when its record is handed to the client."""
    assert record.value is not None
    value = record.value.replace(b'"occurred_at":0.0,', b"")
    return msgspec.structs.replace(record, value=value)
