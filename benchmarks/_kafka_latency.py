"""How long an event waits for its prediction, and an answer until it is learned."""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from typing import Any

import numpy as np

from benchmarks._kafka_loops import (
    N_KEYS,
    N_PARTITIONS,
    event,
    learners,
    taught,
    topics_of,
)
from connectors.wire.codec import decode
from connectors.wire.outbox import Outbox
from connectors.worker.worker import Worker, WorkerSettings
from streamgp.interactive.messages import Answer, LabelledExample, LabelRequest, Prediction

_WARM_UP_S = 2.0
_TICK_S = 0.005


def latencies(servers: str, rate: float, seconds: float) -> tuple[list[float], list[float], int]:
    """Return milliseconds from event to prediction, from answer to learned, and the answers sent.

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
    sender = context.Process(target=_send, args=(servers, prefix, rate, seconds + _WARM_UP_S))
    sender.start()
    try:
        return _listen(topics, seconds + _WARM_UP_S + 3.0)
    finally:
        stop.set()
        sender.join()
        workers.join()
        topics.close()


def _listen(topics: Any, seconds: float) -> tuple[list[float], list[float], int]:
    outbox = Outbox("/streamgp/annotator", keyed=True)
    reader = topics.reader(["predictions", "requests", "consensus"], from_end=True)
    writer = topics.writer("annotator")
    asked_at: dict[tuple[str | None, str], float] = {}
    event_ms: list[float] = []
    answer_ms: list[float] = []
    first: float | None = None
    until = time.time() + seconds
    while time.time() < until:
        records = reader.poll(0.05)
        now = time.time()
        for record in records:
            message = decode(record.value)
            if isinstance(message, Prediction):
                first = now if first is None else first
                if now - first > _WARM_UP_S:
                    event_ms.append(1e3 * (now - message.at))
            elif isinstance(message, LabelRequest):
                asked_at[message.key, message.event_id] = time.time()
                answer = Answer(
                    answer_id=f"{message.request_id}/answer",
                    request_id=message.request_id,
                    event_id=message.event_id,
                    key=message.key,
                    y="hall",
                    answered_at=time.time(),
                )
                writer.send(outbox.message(answer, record.partition))
            elif isinstance(message, LabelledExample):
                at = asked_at.get((message.key, message.event_id))
                if at is not None and first is not None and now - first > _WARM_UP_S:
                    answer_ms.append(1e3 * (now - at))
    reader.close()
    writer.close()
    return event_ms, answer_ms, len(asked_at)


def _work(servers: str, prefix: str, stop: Any) -> None:
    logging.getLogger("streamgp").setLevel(logging.CRITICAL)
    topics = topics_of(servers, prefix)
    settings = WorkerSettings(group=prefix, instance=prefix)
    Worker(topics, learners(), settings).run(stop.is_set)
    topics.close()


def _wait_for_worker(topics: Any, group: str) -> None:
    until = time.monotonic() + 60.0
    while topics.n_members(group) == 0 and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(2.0)  # the restore


def _send(servers: str, prefix: str, rate: float, seconds: float) -> None:
    rng, outbox = np.random.default_rng(3), Outbox("/streamgp/feeder", keyed=True)
    events = [event(number, rng, at=0.0) for number in range(int(rate * seconds))]
    writer = topics_of(servers, prefix).writer("feeder")
    start, n_sent = time.time(), 0
    while n_sent < len(events):
        due = min(len(events), int((time.time() - start) * rate))
        for number in range(n_sent, due):
            one = _dated(events[number], time.time())
            writer.send(outbox.message(one, number % N_KEYS % N_PARTITIONS))
        n_sent = due
        time.sleep(_TICK_S)
    writer.close()


def _dated(one: Any, now: float) -> Any:
    from dataclasses import replace

    return replace(one, occurred_at=now)
