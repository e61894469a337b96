"""Features of a track of positions: how far, how fast, how spread out."""

from __future__ import annotations

import numpy as np

from streamgp.base import Array

EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the Earth (IUGG), metres."""
STOP_M_S = 0.5
"""Speed in metres per second below which a person counts as standing still."""
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


def features(latitude: Array, longitude: Array, times: Array) -> dict[str, float]:
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
    >>> found = features(np.zeros(5), n / 1000.0, 60.0 * n)
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
