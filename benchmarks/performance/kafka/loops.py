"""The loops that `benchmarks.kafka` compares: the bare loop of the client, and workers."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from connectors.kafka.client import Connection
from connectors.kafka.client_import import KafkaConsumer, OffsetAndMetadata
from connectors.kafka.topics import KafkaTopics
from connectors.topics import ALL_TOPICS, TopicName
from connectors.wire import state_records
from connectors.wire.cloudevents import headers
from connectors.wire.codec import encode
from connectors.wire.outbound import Outbound
from connectors.worker.batch import Batch
from connectors.worker.metrics import WorkerMetrics
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import isgp
from streamgp.base import Decision
from streamgp.interactive import KeyedLoops
from streamgp.interactive.messages import Event, LabelledExample, Message, Prediction

N_PARTITIONS = 4
N_KEYS = 100
N_LABELS = 50
N_SEEN = 200  # events of a key before those that count, so that the scaling has settled
_N_FEATURES = 8
_CLASSES = ("hall", "kitchen", "lounge", "study")
_LONG_AGO = 1_700_000_000.0


def event(
    number: int,
    rng: np.random.Generator,
    *,
    labelled: bool = False,
    at: float,
    n_keys: int = N_KEYS,
) -> Event:
    """Return an event of one of the keys; the classes are well separated."""
    room = int(rng.integers(len(_CLASSES)))
    x = rng.normal(loc=float(room), scale=0.5, size=_N_FEATURES).round(6)
    return Event(
        event_id=f"event-{number:08}",
        key=f"key-{number % n_keys:03}",
        x={f"feature-{i}": float(value) for i, value in enumerate(x)},
        occurred_at=at,
        y=_CLASSES[room] if labelled else None,
        truth=_CLASSES[room],
    )


EVENT_BYTES = len(encode(event(0, np.random.default_rng(0), at=_LONG_AGO)))


def topics_of(
    servers: str, prefix: str, *, events: str | None = None, n_partitions: int = N_PARTITIONS
) -> KafkaTopics:
    """Return separate topics, created if missing; `events` names that of the events."""
    names: dict[TopicName, str] = {role: f"{prefix}-{role}" for role in ALL_TOPICS}
    if events is not None:
        names["events"] = events
    topics = KafkaTopics(servers, names=names, partitions=n_partitions, replication=1)
    topics.create()
    return topics


def feed(topics: KafkaTopics, n_events: int) -> None:
    """Write events."""
    rng, outbox = np.random.default_rng(1), Outbound("/streamgp/feeder", keyed=True)
    writer = topics.writer("feeder")
    for number in range(n_events):
        one = event(number, rng, at=_LONG_AGO + number)
        writer.send(outbox.message(one, number % N_KEYS % N_PARTITIONS))
        if number % 1000 == 999:
            writer.flush()
    writer.close()


class Pace(NamedTuple):
    """Speed of a loop after its first batch.

    Parameters
    ----------
    per_s
        Events per second.
    cpu_us
        CPU time of the whole process per event, in microseconds.
    shares
        Share of each phase in the time of batches; empty if phases are not measured.

    """

    per_s: float
    cpu_us: float
    shares: Mapping[str, float] = MappingProxyType({})


def bare_pace(servers: str, events: str, name: str, n_events: int, batch: int) -> Pace:
    """Measure the bare loop of the client."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=name,
        max_poll_records=batch,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = Connection(servers).producer(transactional_id=name)
    topics_of(servers, name, events=events).close()
    target = f"{name}-predictions"
    decode, encode_ = msgspec.json.decode, msgspec.json.encode
    consumer.subscribe([events])
    producer.init_transactions()
    n_done, n_first, start, cpu = 0, 0, 0.0, 0.0
    while n_done < n_events:
        polled = consumer.poll(timeout_ms=1000)
        if not polled:
            continue
        group = consumer.group_metadata()
        producer.begin_transaction()
        sent = []
        for records in polled.values():
            for record in records:
                value = decode(record.value)
                about = headers(
                    "prediction",
                    source=b"/streamgp/bare",
                    key=value["key"],
                    name=value["event_id"],
                    at=value["occurred_at"],
                )
                sent.append(
                    producer.send(
                        target,
                        encode_(value),
                        key=record.key,
                        partition=record.partition,
                        headers=list(about),
                    )
                )
        producer.flush()
        for future in sent:
            future.get(timeout=10)
        offsets = {
            place: OffsetAndMetadata(records[-1].offset + 1, "", -1)
            for place, records in polled.items()
        }
        producer.send_offsets_to_transaction(offsets, group)
        producer.commit_transaction()
        n_done += len(sent)
        if not n_first:
            n_first, start, cpu = n_done, time.perf_counter(), time.process_time()
    n = n_done - n_first
    took_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    consumer.close()
    producer.close()
    return Pace(n / took_s, 1e6 * cpu_s / n)


class _Constant:
    """Loops that learn nothing and always predict the same."""

    loops: Mapping[str | None, object] = MappingProxyType({})
    n_keys = 0
    keyed = True
    has_changed = False

    def __init__(self) -> None:
        self._decision = Decision.of(0.0, 1.0, "NeverAsk")
        self._proba = dict.fromkeys(_CLASSES, 0.25)

    def on_event(
        self,
        event: Event,
        now: float,
        *,
        written_at: float | None = None,  # noqa: ARG002
        is_checked: bool = False,  # noqa: ARG002
    ) -> list[Message]:
        return [
            Prediction(
                event_id=event.event_id,
                key=event.key,
                y="hall",
                proba=self._proba,
                decision=self._decision,
                n_learned=0,
                at=now,
            )
        ]

    def on_time(self, now: float) -> list[Message]:  # noqa: ARG002
        return []

    def next_deadline(self) -> float | None:
        return None

    def open_events(self) -> Iterator[tuple[str | None, str, float]]:
        return iter(())

    def quarantined(self) -> Iterator[tuple[str | None, str]]:
        return iter(())

    def changes_by_key(self) -> Iterator[tuple[str | None, dict[str, Any]]]:
        return iter(())

    def take_over(self, key: str | None, parts: Mapping[str, Any], log: object) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoLearner(LoopSettings):
    model: Any = None

    @property
    def configuration(self) -> dict[str, Any]:
        return {"fingerprint": "constant", "keyed": True}

    def new(self, store: object) -> Any:  # noqa: ARG002
        return _Constant()


NO_LEARNER = _NoLearner()


def learners() -> LoopSettings:
    """Return the settings of the loops with learners."""
    return LoopSettings(model=isgp(seed=1), answer_horizon_s=3600.0)


def worker_pace(
    topics: KafkaTopics, loops: LoopSettings, name: str, n_events: int, batch: int
) -> Pace:
    """Measure a worker."""
    marks: list[tuple[float, float, int]] = []
    took: Counter[str] = Counter()

    class Marks(WorkerMetrics):
        def note_batch(self, batch: Batch, took_s: Mapping[str, float], at: float) -> None:  # noqa: ARG002
            if marks:
                took.update(took_s)
            marks.append((time.perf_counter(), time.process_time(), batch.results.counts["events"]))

    settings = WorkerSettings(group=name, instance=name, batch=batch)
    worker = Worker(topics, loops, settings, metrics=Marks())
    worker.run(lambda: sum(n for *_, n in marks) >= n_events)
    topics.close()
    n = sum(n for *_, n in marks[1:])
    (start, cpu, _), (end, cpu_end, _) = marks[0], marks[-1]
    shares = {phase: seconds / sum(took.values()) for phase, seconds in took.items()}
    return Pace(n / (end - start), 1e6 * (cpu_end - cpu) / n, shares)


def taught(topics: KafkaTopics, name: str) -> KafkaTopics:  # noqa: ARG001
    """Fill `state` and `consensus` so that every key holds its examples."""
    _write_history(topics, N_KEYS, N_SEEN, lambda key: key % N_PARTITIONS)
    return topics


def restore_seconds(servers: str, name: str, n_keys: int) -> float:
    """Return how long a new worker takes to restore one partition."""
    topics = topics_of(servers, name, n_partitions=1)
    _write_history(topics, n_keys, N_LABELS, lambda _: 0)
    took: list[float] = []

    def note(event: str, fields: Mapping[str, Any]) -> None:
        if event == "restored":
            took.append(fields["took_s"])

    with _Listening(note):
        Worker(topics, learners(), WorkerSettings(group=name, instance=name)).run(
            lambda: bool(took)
        )
    topics.close()
    return took[0]


def _write_history(
    topics: KafkaTopics, n_keys: int, n_seen: int, partition_of: Callable[[int], int]
) -> None:
    """Write what workers would have written for keys whose first events were labelled."""
    rng, outbox = np.random.default_rng(2), Outbound("/streamgp/feeder", keyed=True)
    loops = KeyedLoops(isgp(seed=1), answer_horizon_s=3600.0, keep_changes=True)
    writer = topics.writer("feeder")
    partitions: dict[str, int] = {}
    for number in range(n_keys):
        key = f"key-{number:03}"
        partitions[key] = partition = partition_of(number)
        n_learned = n = 0
        while n_learned < N_LABELS or n < n_seen:
            one = replace(
                event(n, rng, labelled=n_learned < N_LABELS, at=_LONG_AGO - 7200.0 + n),
                event_id=f"seen-{n}",
                key=key,
            )
            for message in loops.on_event(one, one.occurred_at):
                if isinstance(message, LabelledExample):  # unless the label is challenged
                    writer.send(outbox.message(message, partition))
                    n_learned += 1
            n += 1
        writer.flush()
    for message in loops.on_time(_LONG_AGO - 1.0):  # unanswered challenges expire
        if isinstance(message, LabelledExample):
            writer.send(outbox.message(message, partitions[str(message.key)]))
    for name, parts in loops.changes().items():
        for part, value in parts.items():
            writer.send(state_records.state(str(name), part, value, partitions[str(name)]))
    configuration = learners().configuration
    for partition in sorted(set(partitions.values())):
        writer.send(state_records.state("", "configuration", configuration, partition))
    writer.close()


class _Listening(logging.Handler):
    """Handler that passes on what a worker logs."""

    def __init__(self, note: Any) -> None:
        super().__init__()
        self._note = note
        self._log = logging.getLogger("streamgp.worker")

    def emit(self, record: logging.LogRecord) -> None:
        self._note(record.getMessage(), record.__dict__["fields"])

    def __enter__(self) -> None:
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self)
