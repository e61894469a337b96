"""What is usual: the average of every feature in every class, for people who look at an event.

Corrected labels count beside the first ones; it is a help for the eye, nothing is decided by it.

"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

from streamgp.base import FeatureName, Features, Label
from streamgp.interactive.messages import LabelledExample

_MAX_KEYS = 256


class _Mean:
    """A running mean, and the sum of squared distances from it (Welford 1962)."""

    __slots__ = ("mean", "n", "squares")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        self.squares += before * (value - self.mean)

    @property
    def std(self) -> float:
        return sqrt(self.squares / self.n) if self.n else 0.0


class _OfKey:
    def __init__(self) -> None:
        self.overall: dict[FeatureName, _Mean] = {}
        self.by_class: dict[tuple[str, Label], dict[FeatureName, _Mean]] = {}


class Averages:
    """Averages over the labelled examples of each of the last keys.

    Examples
    --------
    >>> averages = Averages()
    >>> for n, (light, y) in enumerate([(1.0, "den"), (3.0, "den"), (8.0, "hall")], start=1):
    ...     averages.learn(
    ...         LabelledExample(
    ...             event_id=f"e{n}", sequence=n, x={"light": light, "noise": 5.0}, y=y,
    ...             origin="asked", learned_at=0.0,
    ...         )
    ...     )
    >>> averages.mean(None, "den", "light")
    2.0
    >>> averages.by_distance(None, {"noise": 5.0, "light": 8.0})
    ['light', 'noise']

    """

    def __init__(self, max_keys: int = _MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._of: dict[str | None, _OfKey] = {}

    def learn(self, line: LabelledExample) -> None:
        """Count an example; one that was taken back is not taken out."""
        if line.y is None:
            return
        found = self._of.pop(line.key) if line.key in self._of else _OfKey()
        self._of[line.key] = found  # the last one
        if len(self._of) > self._max_keys:
            del self._of[next(iter(self._of))]
        in_class = found.by_class.setdefault((type(line.y).__name__, line.y), {})
        for name, value in line.x.items():
            if is_number(value):
                for means in (found.overall, in_class):
                    means.setdefault(name, _Mean()).add(value)

    def forget(self, key: str | None) -> None:
        """Forget a key."""
        self._of.pop(key, None)

    def mean(self, key: str | None, label: Label, name: FeatureName) -> float | None:
        """Return the average of a feature in a class; None if there is none."""
        found = self._of.get(key)
        if found is None:
            return None
        mean = found.by_class.get((type(label).__name__, label), {}).get(name)
        return None if mean is None else mean.mean

    def by_distance(self, key: str | None, x: Features) -> list[FeatureName]:
        """Return the features of an event, first what is farthest from the average of a class.

        Distances are in standard deviations of the feature over all examples of the key. Features
        about which nothing is known come last, in their order.
        """
        found = self._of.get(key)
        if found is None:
            return list(x)
        return sorted(x, key=lambda name: -_distance(found, name, x[name]))


def _distance(found: _OfKey, name: FeatureName, value: Any) -> float:
    overall = found.overall.get(name)
    if overall is None or not is_number(value):
        return -1.0
    means = [means[name].mean for means in found.by_class.values() if name in means]
    gap = max(abs(value - mean) for mean in means)
    return gap / overall.std if overall.std else (inf if gap else 0.0)


def is_number(value: object) -> bool:
    """Say whether a feature can be averaged."""
    return isinstance(value, int | float) and not isinstance(value, bool)
