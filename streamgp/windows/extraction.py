"""The features of one window: which are computed, their names, and how channels combine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import combinations, pairwise
from math import cos, floor, isfinite, log10, pi, sin
from typing import Any, TypeAlias

import numpy as np

from streamgp.base import Array
from streamgp.common.validation import check_several
from streamgp.windows import signals

OwnFeature: TypeAlias = Callable[[Array, Array], float]
"""A user-defined feature: maps the values and the times of a channel to a number."""

POSITION_FEATURES = (
    "latitude",
    "longitude",
    "distance",
    "mean_speed",
    "max_speed",
    "radius_of_gyration",
    "straightness",
    "stop_ratio",
)
TEXT_FEATURES = ("mode", "share", "changes")
PAIR_FEATURES = ("correlation", "tilt")
CALENDAR_FEATURES = ("hour_sin", "hour_cos", "weekday_sin", "weekday_cos")
FEATURE_SETS: Mapping[str, tuple[str, ...]] = {
    "basic": ("mean", "sd", "min", "max", "median", "slope", *TEXT_FEATURES),
    "activity": (*signals.SIGNAL_FEATURES, *PAIR_FEATURES, *TEXT_FEATURES),
    "gps": POSITION_FEATURES,
    "calendar": CALENDAR_FEATURES,
}
"""Sets of features by name."""
_KNOWN = frozenset(name for names in FEATURE_SETS.values() for name in names)
_DAY_S = 86_400.0
_WEEK_DAYS = 7.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Rows of one window, in the order of their times.

    Parameters
    ----------
    times
        POSIX seconds, shape (n,).
    numbers
        Numeric channels, each of shape (n,); NaN where a row has no value.
    texts
        Categorical channels, None where a row has no value.
    start, end
        Bounds of the window, POSIX seconds.

    """

    times: Array
    numbers: Mapping[str, Array]
    texts: Mapping[str, Sequence[str | bool | None]]
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """What is computed for every window.

    Parameters
    ----------
    wanted
        Names of features.
    vectors
        Channels that are the components of one vector; its magnitude is a channel, too.
    gps
        Channels of latitude and longitude in degrees, None if there are none.
    own
        User-defined features, by name.
    zone
        Time zone of the calendar features.

    """

    wanted: frozenset[str]
    vectors: tuple[tuple[str, ...], ...]
    gps: tuple[str, str] | None
    zone: tzinfo
    own: Mapping[str, OwnFeature] = field(default_factory=dict)

    def features(self, segment: Segment, rejected: Counter[str]) -> dict[str, Any]:
        """Return the features of a window, named `channel.feature`.

        Features that cannot be computed, such as the slope of a single row or any feature of a
        channel without values, are left out. So are those for which a user-defined function fails,
        which is counted in `rejected`.
        """
        # A value whose square overflows has no such feature.
        with np.errstate(over="ignore", invalid="ignore"):
            x = self._computed(segment, rejected)
        return {name: v for name, v in x.items() if v.__class__ is not float or isfinite(v)}

    def _computed(self, segment: Segment, rejected: Counter[str]) -> dict[str, Any]:
        """Return all features, including those that are not finite."""
        x: dict[str, Any] = {}
        channels = [name for name in segment.numbers if name not in (self.gps or ())]
        numbers = {name: segment.numbers[name] for name in channels}
        numbers |= dict(self._magnitudes(numbers))
        for names, values, times in _sampled_together(numbers, segment.times):
            found = signals.features(values, times, self.wanted)
            for feature, of_channels in found.items():
                for name, value in zip(names, of_channels.tolist(), strict=True):
                    x[f"{name}.{feature}"] = value
            for feature, function in self.own.items():
                for name, row in zip(names, values, strict=True):
                    try:
                        x[f"{name}.{feature}"] = float(function(row, times))
                    except MemoryError:
                        raise
                    except Exception as error:  # theirs may raise anything; one window ends no run
                        rejected[f"feature {feature!r} failed: {type(error).__name__}"] += 1
        if "correlation" in self.wanted:
            x.update(_correlations({name: numbers[name] for name in channels}))
        if "tilt" in self.wanted:
            x.update(self._tilts(numbers))
        for name, texts in segment.texts.items():
            x.update(self._of_texts(name, texts))
        if self.gps is not None:
            x.update(self._of_positions(segment, *self.gps))
        x.update(self._of_calendar(segment.start))
        return x

    def _magnitudes(self, numbers: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        for vector in self.vectors:
            if all(name in numbers for name in vector):
                squares = sum(numbers[name] ** 2 for name in vector)
                yield vector_name(vector), np.sqrt(squares)

    def _tilts(self, numbers: Mapping[str, Array]) -> Iterator[tuple[str, float]]:
        for vector in self.vectors:
            if len(vector) == 3 and all(name in numbers for name in vector):
                rows = np.stack([numbers[name] for name in vector])
                rows = rows[:, np.isfinite(rows).all(axis=0)]
                if rows.shape[1]:
                    yield f"{vector_name(vector)}.tilt", signals.tilt(*rows)

    def _of_texts(
        self, name: str, texts: Sequence[str | bool | None]
    ) -> Iterator[tuple[str, str | bool | float]]:
        told = [text for text in texts if text is not None]
        if not told:
            return
        mode, n = Counter(told).most_common(1)[0]  # the first of equally frequent ones
        n_changes = sum(a != b for a, b in pairwise(told))
        found = {"mode": mode, "share": n / len(told), "changes": float(n_changes)}
        for feature, value in found.items():
            if feature in self.wanted:
                yield f"{name}.{feature}", value

    def _of_positions(
        self, segment: Segment, latitude: str, longitude: str
    ) -> Iterator[tuple[str, float]]:
        if not all(name in segment.numbers for name in (latitude, longitude)):
            return
        lat, lon = segment.numbers[latitude], segment.numbers[longitude]
        known = np.isfinite(lat) & np.isfinite(lon)
        if known.any():
            found = track_features(lat[known], lon[known], segment.times[known])
            for feature, value in found.items():
                yield f"gps.{feature}", value

    def _of_calendar(self, start: float) -> Iterator[tuple[str, float]]:
        if not self.wanted.isdisjoint(CALENDAR_FEATURES):
            # On Windows, `fromtimestamp` refuses times before 1970.
            moment = (_EPOCH + timedelta(seconds=start)).astimezone(self.zone)
            second = 3600 * moment.hour + 60 * moment.minute + moment.second
            day, week = second / _DAY_S, (moment.weekday() + second / _DAY_S) / _WEEK_DAYS
            found = {
                "hour_sin": sin(2.0 * pi * day),
                "hour_cos": cos(2.0 * pi * day),
                "weekday_sin": sin(2.0 * pi * week),
                "weekday_cos": cos(2.0 * pi * week),
            }
            for feature in CALENDAR_FEATURES:
                if feature in self.wanted:
                    yield f"time.{feature}", found[feature]


def plan_for(
    features: str | Iterable[str | OwnFeature],
    vectors: Iterable[Iterable[str]],
    gps: Iterable[str] | None,
    zone: tzinfo,
) -> FeaturePlan:
    """Return the plan for the given names of features and sets.

    Raises
    ------
    ValueError
        If a name is unknown, or the number of channels in `vectors` or `gps` does not fit.
    TypeError
        If a feature is neither a name nor a function.

    """
    wanted: set[str] = set()
    own: dict[str, OwnFeature] = {}
    for feature in (
        [features]
        if isinstance(features, str)
        else check_several("features", features, "names or functions")
    ):
        if isinstance(feature, str):
            wanted.update(_names_of(feature))
        elif callable(feature):
            own[getattr(feature, "__name__", type(feature).__name__)] = feature
        else:
            raise TypeError(f"features must be names or functions, got {feature!r}")
    if not (wanted or own):
        raise ValueError("features must name at least one; without it windows say nothing")
    positions_of = None if gps is None else check_several("gps", gps, "channels")
    if positions_of is not None and (len(positions_of) != 2 or len(set(positions_of)) != 2):
        raise ValueError(
            f"gps must name two channels, latitude and longitude, got {list(positions_of)!r}"
        )
    components = tuple(
        check_several("each of vectors", vector, "channels")
        for vector in check_several("vectors", vectors, "lists of channels")
    )
    for vector in components:
        if len(vector) < 2 or len(set(vector)) < len(vector):
            raise ValueError(
                f"vectors must each name two or more different channels, got {vector!r}"
            )
    return FeaturePlan(frozenset(wanted), components, positions_of, zone, own)


def vector_name(vector: Sequence[str]) -> str:
    """Return the name of the magnitude of a vector.

    Examples
    --------
    >>> vector_name(["ax", "ay", "az"])
    'ax_ay_az'

    """
    return "_".join(vector)


def min_max_decimated(values: Array, most: int = 200) -> list[float]:
    """Return at most `most` values that keep the shape of a curve: extremes, in their order.

    They are rounded to a ten-thousandth of their range or finer, as they are for viewing.

    Examples
    --------
    >>> min_max_decimated(np.array([0.0, 9.0, 1.0, 3.0, -5.0, 2.0]), most=4)
    [0.0, 9.0, 3.0, -5.0]

    """
    values = _rounded(values[np.isfinite(values)])
    if len(values) <= most:
        found: list[float] = values.tolist()
        return found
    picked: list[int] = []
    edges = np.linspace(0, len(values), most // 2 + 1).astype(int).tolist()
    for i, j in pairwise(edges):
        part = values[i:j]
        picked += sorted({i + int(part.argmin()), i + int(part.argmax())})
    return [float(value) for value in values[picked]]


def _rounded(values: Array) -> Array:
    spread = float(np.ptp(values)) if len(values) else 0.0
    if not 1e-9 < spread < 1e9:
        return values
    return values.round(4 - floor(log10(spread)))


def _names_of(feature: str) -> Iterable[str]:
    if feature in FEATURE_SETS:
        return FEATURE_SETS[feature]
    if feature in _KNOWN:
        return (feature,)
    sets, names = ", ".join(FEATURE_SETS), ", ".join(sorted(_KNOWN))
    raise ValueError(f"unknown feature {feature!r}; take one of the sets {sets}, or of {names}")


def _correlations(channels: Mapping[str, Array]) -> Iterator[tuple[str, float]]:
    """Correlate every pair of channels over the rows in which both have a value."""
    if len(channels) < 2:
        return
    # Not in the order in which they appeared, which keys and late rows may change: a pair has one
    # name.
    names = sorted(channels)
    values = np.stack([channels[name] for name in names])
    known = np.isfinite(values)
    whole = signals.correlations(values) if known.all() and values.shape[1] > 1 else None
    for (i, a), (j, b) in combinations(enumerate(names), 2):
        both = known[i] & known[j]
        if whole is not None:
            yield f"{a}*{b}.correlation", float(whole[i, j])
        elif both.sum() > 1:
            pair = signals.correlations(values[np.ix_([i, j], both)])
            yield f"{a}*{b}.correlation", float(pair[0, 1])


def _sampled_together(
    numbers: Mapping[str, Array], times: Array
) -> Iterator[tuple[list[str], Array, Array]]:
    """Group channels by the rows in which they have a value."""
    if not numbers:
        return
    names = list(numbers)
    values = np.stack([numbers[name] for name in names])
    known = np.isfinite(values)
    if known.all():
        yield names, values, times
        return
    together: dict[bytes, list[int]] = {}
    for i, row in enumerate(known):
        together.setdefault(row.tobytes(), []).append(i)
    for members in together.values():
        rows = known[members[0]]
        if rows.any():
            yield [names[i] for i in members], values[np.ix_(members, rows)], times[rows]


# --- Features of a track of positions: how far, how fast, how spread out.


EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the Earth (IUGG), metres."""
STOP_M_S = 0.5
"""Speed in metres per second below which a person counts as standing still."""


def great_circle_m(latitude: Array, longitude: Array) -> Array:
    """Return the great-circle distances between successive positions in degrees (haversine).

    Examples
    --------
    >>> great_circle_m(np.array([0.0, 0.0]), np.array([179.5, -179.5])).round()
    array([111195.])

    """
    phi, lam = np.radians(latitude), np.radians(longitude)
    a = np.sin(np.diff(phi) / 2.0) ** 2
    a += np.cos(phi[1:]) * np.cos(phi[:-1]) * np.sin(np.diff(lam) / 2.0) ** 2
    distances: Array = 2.0 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(a, 0.0, 1.0)))
    return distances


def track_features(latitude: Array, longitude: Array, times: Array) -> dict[str, float]:
    """Return the features of a track; those of movement only if its times differ.

    Parameters
    ----------
    latitude, longitude
        Degrees, shape (n,), finite.
    times
        Seconds, shape (n,), ascending.

    Returns
    -------
    Centre (`latitude`, `longitude`, degrees), `distance` (metres), `mean_speed` and `max_speed`
    (metres per second), `radius_of_gyration` (root mean square distance from the centre, metres),
    `straightness` (distance between the ends over distance travelled, 1 for a straight line and for
    no movement), `stop_ratio` (share of the time slower than `STOP_M_S`).

    Examples
    --------
    >>> n = np.arange(5.0)
    >>> found = track_features(np.zeros(5), n / 1000.0, 60.0 * n)
    >>> round(found["distance"]), round(found["mean_speed"], 3), found["stop_ratio"]
    (445, 1.853, 0.0)

    """
    phi, lam = np.radians(latitude), np.radians(longitude)
    points = np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
    centre = points.mean(axis=1)
    # Chords equal arcs for the extent of a window, and are not affected by the date line.
    spread = ((points - centre[:, None]) ** 2).sum(axis=0).mean()
    found = {
        "latitude": float(np.degrees(np.arctan2(centre[2], np.hypot(centre[0], centre[1])))),
        "longitude": float(np.degrees(np.arctan2(centre[1], centre[0]))),
        "radius_of_gyration": float(EARTH_RADIUS_M * np.sqrt(spread)),
    }
    span = float(times[-1] - times[0])
    if span <= 0.0:
        return found
    steps, intervals = great_circle_m(latitude, longitude), np.diff(times)
    distance = float(steps.sum())
    ends = float(great_circle_m(latitude[[0, -1]], longitude[[0, -1]])[0])
    moves = intervals > 0.0
    speeds = steps[moves] / intervals[moves]
    return found | {
        "distance": distance,
        "mean_speed": distance / span,
        "max_speed": float(speeds.max()),
        "straightness": ends / distance if distance > 0.0 else 1.0,
        "stop_ratio": float(intervals[moves][speeds < STOP_M_S].sum() / span),
    }
