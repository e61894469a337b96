"""Recorded logs of a data folder as lists of events, and the orders in which they are played.

A log holds the rows of a file in their order. Nothing is scaled; missing values are left out.

"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from streamgp.base import Features
from streamgp.datasets import WiFiRooms

Labelled: TypeAlias = tuple[Features, int | str]


class MissingLogError(Exception):
    """A log cannot be read here; the message says why."""


@contextmanager
def skipping(missing: list[str]) -> Iterator[None]:
    """Leave out what the block does with a log that cannot be read, and record why."""
    try:
        yield
    except MissingLogError as error:
        missing.append(str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A recorded log.

    Parameters
    ----------
    name
        Its name.
    events
        Features and label of each event, as recorded.
    orders
        The orders it can be played in: `random`, `sequential` (class after class, the classes in
        random order) and, where the rows follow each other in time, `recorded`.

    """

    name: str
    events: list[Labelled]
    orders: tuple[str, ...]

    @property
    def classes(self) -> list[int | str]:
        """All labels, in the order in which they appear."""
        return list(dict.fromkeys(y for _, y in self.events))

    def played(self, order: str, seed: int) -> list[Labelled]:
        """Return the events in one order; the seed decides what is random in it."""
        if order == "recorded":
            return self.events
        rng = np.random.default_rng(seed)
        shuffled = [self.events[i] for i in rng.permutation(len(self.events)).tolist()]
        if order == "random":
            return shuffled
        rank = dict(zip(self.classes, rng.permutation(len(self.classes)).tolist(), strict=True))
        return sorted(shuffled, key=lambda event: rank[event[1]])


_SHUFFLED = ("random", "sequential")
_ALL = ("random", "sequential", "recorded")
_WIFI = ("random", "recorded")  # recorded class after class


def read(name: str, data: Path | None, n: int) -> Log:
    """Read the first `n` labelled events of a log.

    Parameters
    ----------
    name
        One of `NAMES`, or of those left out there; `wifi_rooms` comes with streamgp and needs no
        folder.
    data
        The data folder, or None.
    n
        Number of events.

    Raises
    ------
    MissingLogError
        If there is no folder, no such file, or nothing to read it with.

    """
    if name == "wifi_rooms":
        return Log(name=name, events=list(WiFiRooms().take(n)), orders=_WIFI)
    if data is None:
        raise MissingLogError(f"{name} (needs --data)")
    file, reader, orders = _LOGS[name]
    path = data / file
    if not path.is_file():
        raise MissingLogError(f"{name} (no {file} in the data folder)")
    try:
        return Log(name=name, events=reader(path, n), orders=orders)
    except ModuleNotFoundError as error:
        raise MissingLogError(f"{name} (needs {error.name}; install the extra bench)") from None


def read_all(names: Iterable[str], data: Path | None, n: int) -> tuple[list[Log], list[str]]:
    """Read the first `n` labelled events of several logs; also say which are missing, and why."""
    logs: list[Log] = []
    missing: list[str] = []
    for name in names:
        with skipping(missing):
            logs.append(read(name, data, n))
    return logs, missing


def _arrays(path: Path, n: int, *, suffix: str = "") -> list[Labelled]:
    with np.load(path) as arrays:
        X, y = arrays[f"X{suffix}"][:n], arrays[f"y{suffix}"][:n]
        names = [str(name) for name in arrays["feature_names"]]
    return [
        (dict(zip(names, x, strict=True)), int(label))
        for x, label in zip(X.astype(float).tolist(), y.tolist(), strict=True)
    ]


def _both_halves(path: Path, n: int) -> list[Labelled]:
    """Read the test set after the training set, the order in which both were published."""
    events = _arrays(path, n, suffix="_train")
    return events + _arrays(path, n - len(events), suffix="_test")


def _occupancy(path: Path, n: int) -> list[Labelled]:
    events: list[Labelled] = []
    with gzip.open(path, "rt") as lines:
        for row in csv.DictReader(lines):
            y = int(row.pop("Occupancy"))
            del row["timestamp"], row["file"]
            events.append(({k: float(v) for k, v in row.items()}, y))
            if len(events) == n:
                break
    return events


def _wisdm(path: Path, n: int) -> list[Labelled]:
    return _table(path, n, label="class", drop={"UNIQUE_ID", "user"})


def _wisdm_by_user(path: Path, n: int) -> list[Labelled]:
    """Read what each user did, in the order recorded, one user after the other."""
    from pyarrow import parquet

    users = parquet.read_table(path, columns=["user"])["user"].to_pylist()
    events = _wisdm(path, len(users))
    return [events[i] for i in sorted(range(len(users)), key=users.__getitem__)[:n]]


def _extrasensory(path: Path, n: int, *, user: int, label: str = "place") -> list[Labelled]:
    drop = {"timestamp", "user", "device", "cv_fold", "label_source", "activity", "place"} - {label}
    return _table(path, n, label=label, drop=drop, user=user)


def _table(
    path: Path, n: int, *, label: str, drop: set[str], user: int | None = None
) -> list[Labelled]:
    from pyarrow import parquet

    filters = None if user is None else [("user", "=", user)]
    table = parquet.read_table(path, filters=filters)
    events: list[Labelled] = []
    for row in table.to_pylist():
        y = row.pop(label)
        if y == "unknown":
            continue
        events.append(({k: float(v) for k, v in row.items() if is_feature(k, v, drop)}, y))
        if len(events) == n:
            break
    return events


def is_feature(name: str, value: Any, drop: Collection[str]) -> bool:
    """Whether a cell of a table holds a feature: not missing, and not a label."""
    if name in drop or name.startswith("label:") or value is None:
        return False
    return not math.isnan(value)


_Reader: TypeAlias = Callable[[Path, int], list[Labelled]]
EXTRASENSORY = "sensor_logs/extrasensory_core.parquet"
_LOGS: dict[str, tuple[str, _Reader, tuple[str, ...]]] = {
    "wisdm": ("sensor_logs/wisdm_10s.parquet", _wisdm, _SHUFFLED),
    "occupancy": ("sensor_logs/occupancy.csv.gz", _occupancy, _ALL),
    "elec2": ("streams/elec2.npz", _arrays, _ALL),
    "keystroke": ("streams/keystroke.npz", _arrays, _SHUFFLED),
    "pendigits": ("classification/pendigits.npz", partial(_arrays, suffix="_train"), _SHUFFLED),
    "letter": ("classification/letter.npz", partial(_arrays, suffix="_train"), _SHUFFLED),
    "usps": ("classification/usps.npz", _both_halves, _SHUFFLED),
    "dna": ("classification/dna.npz", _both_halves, _SHUFFLED),
    "places_1": (EXTRASENSORY, partial(_extrasensory, user=1), _ALL),
    "places_24": (EXTRASENSORY, partial(_extrasensory, user=24), _ALL),
    "wisdm_by_user": ("sensor_logs/wisdm_10s.parquet", _wisdm_by_user, ("recorded",)),
    "activities_10": (EXTRASENSORY, partial(_extrasensory, user=10, label="activity"), _ALL),
    "activities_5": (EXTRASENSORY, partial(_extrasensory, user=5, label="activity"), _ALL),
}
# Pictures and genes do not come from sensors or from what people do; the others repeat one of the
# logs above in another order, or with other users.
_OTHERS = ("usps", "dna", "wisdm_by_user", "activities_10", "activities_5")
NAMES = ("wifi_rooms", *(name for name in _LOGS if name not in _OTHERS))
