"""One learner for each of many keys, of which only some are held in memory.

Every key sends the same number of labelled events (7 features, 4 classes) in visits of five. Each
round of visits takes the keys in a new random order, so that nearly every visit finds its loop in
the store (SQLite, in a temporary folder) and evicts another one. From time to time the loops are
saved, as a worker saves them, which marks the store. Events are remembered for an hour of stream
time, about as long as one round takes.

Bytes of a key in memory are what Python and numpy have allocated for its loop, model and examples;
those of a key in the store are its share of the file. Memory is the peak of the whole process above
its size before the first key. A visit costs as much as the file, the snapshot and the learner,
which learns its examples again, cost together. Afterwards some keys are compared with loops that
were never evicted. Not measured: a broker, and open questions (`benchmarks.loop`).

"""

from __future__ import annotations

import resource
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks._harness import Options, Outcome, at_least, at_most, progress, run
from connectors.storage.sqlite import SqliteStore
from streamgp import InteractiveLoop, KeyedLoops, SkepticalClassifier, isgp
from streamgp.interactive import Event

_N_FEATURES = 7
_N_CLASSES = 4
_PER_VISIT = 5
_N_COMPARED = 50
_HORIZON_S = 3600.0
_SAVE_EVERY = 50_000


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("keys", measure, about=__doc__, argv=argv)


def measure(
    options: Options, *, n_keys: int | None = None, n_ready: int = 1000, n_visits: int = 4
) -> Outcome:
    """Run all visits, then measure memory and compare."""
    n_keys = n_keys or (4_000 if options.quick else 100_000)
    stream = _Stream(n_keys, n_visits, options.seed)
    # This comes first, as the peak of the process counts.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "loops")
        with SqliteStore(path) as store:
            loops = KeyedLoops(_model(), answer_horizon_s=_HORIZON_S, max_keys=n_ready, store=store)
            before, start = _peak_bytes(), time.perf_counter()
            for n, event in enumerate(stream.events()):
                loops.on_event(event, event.occurred_at)
                if n % _SAVE_EVERY == _SAVE_EVERY - 1:
                    loops.snapshot()
                    progress(f"{n + 1} events, {(n + 1) / (time.perf_counter() - start):.0f} per s")
            seconds = time.perf_counter() - start
            grown = _peak_bytes() - before
            loops.snapshot()
            in_store = path.stat().st_size / max(1, len(store))
            differing = sum(_differs(loops, stream, number) for number in stream.sample())
    resident_bytes = _bytes_of_ready_key(stream, min(200, n_keys))
    resident_us = _us_without_store(stream, min(100, n_keys))
    n_events = n_keys * n_visits * _PER_VISIT
    row = {
        "keys": n_keys,
        "ready": n_ready,
        "labels per key": n_visits * _PER_VISIT,
        "bytes per key ready": resident_bytes,
        "bytes per key in the store": in_store,
        "memory MB": grown / 1e6,
        "all ready MB": n_keys * resident_bytes / 1e6,
        "events per s": n_events / seconds,
        "us per event ready": resident_us,
        "us per visit": (seconds / n_events - resident_us / 1e6) * _PER_VISIT * 1e6,
    }
    accepted = [
        at_most(
            "memory of all keys / that of twice the keys held ready, and 64 MB",
            grown / (2 * n_ready * resident_bytes + 64e6),
            1.0,
        ),
        at_most("keys that differ from one that was never away", float(differing), 0.0),
        at_least("keys compared", float(len(stream.sample())), 10.0),
    ]
    return Outcome(rows=[row], acceptance=accepted)


def _model() -> SkepticalClassifier:
    return isgp(seed=1)


class _Stream:
    """Events of all keys; repeated calls yield the same events."""

    def __init__(self, n_keys: int, n_visits: int, seed: int) -> None:
        self.n_keys, self.n_visits, self._seed = n_keys, n_visits, seed
        rng = np.random.default_rng(seed)
        self._centres = rng.normal(scale=3.0, size=(_N_CLASSES, _N_FEATURES))

    def events(self) -> Iterator[Event]:
        """Yield the events of all keys, round after round of visits."""
        rng = np.random.default_rng((self._seed, 1))
        for visit in range(self.n_visits):
            for position, number in enumerate(rng.permutation(self.n_keys).tolist()):
                start = _HORIZON_S * (visit + position / self.n_keys)
                yield from self.visit(number, visit, start)

    def visit(self, number: int, visit: int, start: float) -> Iterator[Event]:
        """Yield the events of one key at one visit."""
        rng = np.random.default_rng((self._seed, 2, number, visit))
        classes = rng.integers(_N_CLASSES, size=_PER_VISIT)
        X = self._centres[classes] + rng.normal(size=(_PER_VISIT, _N_FEATURES))
        for i, (x, y) in enumerate(zip(X.tolist(), classes.tolist(), strict=True)):
            yield Event(
                event_id=f"{visit}-{i}",
                key=f"key {number}",
                x={f"sensor {j}": value for j, value in enumerate(x)},
                occurred_at=start,
                y=y,
            )

    def sample(self) -> list[int]:
        """Return the numbers of a few keys."""
        return list(range(0, self.n_keys, max(1, self.n_keys // _N_COMPARED)))

    def positions(self, number: int) -> list[float]:
        """Return when a key begins each of its visits."""
        rng = np.random.default_rng((self._seed, 1))
        places = [
            int(np.flatnonzero(rng.permutation(self.n_keys) == number)[0])
            for _ in range(self.n_visits)
        ]
        return [_HORIZON_S * (visit + place / self.n_keys) for visit, place in enumerate(places)]

    def of_key(self, number: int) -> Iterator[Event]:
        """Yield the events of one key."""
        for visit, start in enumerate(self.positions(number)):
            yield from self.visit(number, visit, start)


def _bytes_of_ready_key(stream: _Stream, n: int) -> float:
    loops = KeyedLoops(_model(), answer_horizon_s=_HORIZON_S)
    tracemalloc.start()
    for number in range(n):
        for event in stream.of_key(number):
            loops.on_event(event, event.occurred_at)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / n


def _us_without_store(stream: _Stream, n: int) -> float:
    events = [event for number in range(n) for event in stream.of_key(number)]
    loops = KeyedLoops(_model(), answer_horizon_s=_HORIZON_S)
    start = time.perf_counter()
    for event in events:
        loops.on_event(event, event.occurred_at)
    return (time.perf_counter() - start) / len(events) * 1e6


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _differs(loops: KeyedLoops, stream: _Stream, number: int) -> bool:
    """Whether a key's loop handles one more event differently from one that was never evicted."""
    alone = InteractiveLoop(_model(), answer_horizon_s=_HORIZON_S)
    for event in stream.of_key(number):
        alone.on_event(event, event.occurred_at)
    (event, *_) = stream.visit(number, stream.n_visits, _HORIZON_S * stream.n_visits)
    return alone.on_event(event, event.occurred_at) != loops.on_event(event, event.occurred_at)
