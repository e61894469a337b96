"""An undisturbed worker that gets the inputs of another run in the same order.

At the end the topics must hold the same as after the other run; `differences` says where they do
not.

"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from connectors.memory import MemoryTopics
from connectors.storage.snapshots import StateDirectory
from connectors.topics import ALL_TOPICS, Outgoing, Record
from connectors.wire.state_records import SEPARATOR, History
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp.interactive.people import People
from streamgp.interactive.state.snapshot import Snapshot
from tests.helpers.topics import everything

Step: TypeAlias = People | tuple[Outgoing, float]
"""New rules, with which workers start again, or an input and when it was written."""
GROUP = "disputes"
# Differs between two runs: the place of an input, and when a worker has looked at it.
_OF_RUN = frozenset(("dlq.offset", "dlq.at"))


def replayed(
    steps: Iterable[Step], loops: LoopSettings, home: Path, n_partitions: int
) -> list[Record]:
    """Return all records of the topics after the inputs, each processed before the next."""
    now = [0.0]
    topics = MemoryTopics(n_partitions=n_partitions, clock=lambda: now[0])
    for people, group in itertools.groupby(_with_rules(steps, loops.people), lambda each: each[0]):
        inputs = (step for _, step in group if not isinstance(step, People))
        _work(topics, replace(loops, people=people), home, inputs, now)
    return everything(topics, *ALL_TOPICS)


def differences(
    ours: Sequence[Record], theirs: Sequence[Record], loops: LoopSettings, now: float
) -> list[str]:
    """Return the differences between the topics of two runs, one line each.

    For each key all messages are compared in order, and what a worker would rebuild from the
    topics: learner, conversations, quarantine, retracted labels. How the state is split into
    records is not compared, as it depends on the batches.
    """
    flaws = []
    one, other = _said(ours), _said(theirs)
    for name in sorted(one.keys() | other.keys()):
        if one[name] != other[name]:
            pairs = enumerate(itertools.zip_longest(one[name], other[name]))
            n, (a, b) = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
            flaws.append(f"{name}, message {n}: {a} but {b}")
    for number in sorted({record.partition for record in (*ours, *theirs)}):
        held = [_described(rebuilt(records, loops, number, now)) for records in (ours, theirs)]
        flaws += _unlike(f"partition {number}", *held)
    return flaws


def rebuilt(records: Sequence[Record], loops: LoopSettings, number: int, now: float) -> Partition:
    """Return a partition as a worker without a snapshot restores it from the topics."""
    last = {
        (record.topic, record.key): record
        for record in records
        if record.partition == number and record.topic in ("state", "consensus")
    }
    history = History()
    for record in last.values():
        history.take(record)
    partition = Partition(number, replace(loops, max_keys=None), None, now=now, note=print)
    partition.bring_up(history)
    return partition


def _with_rules(steps: Iterable[Step], people: People) -> Iterator[tuple[People, Step]]:
    for step in steps:
        if isinstance(step, People):
            people = step
        yield people, step


def _work(
    topics: MemoryTopics,
    loops: LoopSettings,
    home: Path,
    inputs: Iterator[tuple[Outgoing, float]],
    now: list[float],
) -> None:
    writer = topics.writer("storm")

    def is_done() -> bool:
        if any(topics.lags(GROUP).values()):
            return False
        step = next(inputs, None)
        if step is None:
            return True
        record, now[0] = step
        writer.send(record)
        writer.flush()
        return False

    settings = WorkerSettings(group=GROUP, instance="w", max_bad_share=1.0, save_every_s=1e9)
    with StateDirectory(home) as state:
        Worker(topics, loops, settings, state=state, clock=lambda: now[0]).run(is_done)


def _said(records: Iterable[Record]) -> dict[tuple[str, str], list[Any]]:
    """Return what workers have written for each key into each topic."""
    said: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for record in records:
        name = record.topic, (record.key or b"").decode().split(SEPARATOR)[0]
        if record.topic == "consensus":
            said[name].append((record.key, record.value))
        elif record.topic == "dead-letters":
            said[name].append((record.value, [h for h in record.headers if h[0] not in _OF_RUN]))
        elif record.topic in ("predictions", "requests"):
            said[name].append(record.value)
    return said


def _described(partition: Partition) -> dict[str, Any]:
    """Return the contents of a partition for comparison, without the numbers of its pages."""
    found: dict[str, Any] = {
        "early": partition.early.state(),
        "failed": dict(partition.n_failed),
    }
    for key, loop in partition.loops.loops.items():
        snapshot = Snapshot.from_bytes(loop.snapshot())
        body = msgspec.json.decode(msgspec.json.encode(snapshot.body))
        del body["head"]["pages"]
        body["records"] = [record[1:] for record in body["records"]]
        found[str(key)] = [body, [blob.hex() for blob in snapshot.blobs]]
    return found


def _unlike(where: str, a: Any, b: Any) -> Iterator[str]:
    """Yield where two plain values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            yield from _unlike(f"{where}, {name}", a.get(name), b.get(name))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for n, (each, other) in enumerate(zip(a, b, strict=True)):
            yield from _unlike(f"{where}, {n}", each, other)
    elif a != b:
        yield f"{where}: {a!r:.200} but {b!r:.200}"
