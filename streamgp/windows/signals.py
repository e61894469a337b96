"""Features of sampled signals: moments, order statistics, changes over time, spectra.

Every function takes `values` of shape (channels, n), all finite, and `times` of shape (n,), seconds
in ascending order, and returns one number per channel.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from streamgp.base import Array

MIN_SAMPLES = 8
"""Signals with fewer samples have no spectrum."""
BANDS_HZ = ((0, 1), (1, 3), (3, 6), (6, 12), (12, 25))
"""Frequency bands, lower bound included: posture, gait, vigorous movement, impacts, vibration."""
MOST_SAMPLES = 65536
"""Samples that an irregular signal is resampled to, at most."""
_JITTER = 0.01  # of the median interval; a signal sampled less regularly is resampled
_CONSTANT = 1e-12  # relative spread of a signal whose changes are rounding errors


def moments(values: Array, _times: Array) -> dict[str, Array]:
    """Mean, standard deviation (population), energy (mean square) and root mean square."""
    energy = np.einsum("cn,cn->c", values, values) / values.shape[1]
    return {
        "mean": values.mean(axis=1),
        "sd": values.std(axis=1),
        "energy": energy,
        "rms": np.sqrt(energy),
    }


def order_statistics(values: Array, _times: Array) -> dict[str, Array]:
    """Extremes and quantiles (linear interpolation).

    Examples
    --------
    >>> found = order_statistics(np.array([[4.0, 1.0, 2.0, 3.0, 10.0]]), np.arange(5.0))
    >>> float(found["median"][0]), float(found["q90"][0])
    (3.0, 7.6)

    """
    ordered = np.sort(values, axis=1)
    return {
        "min": ordered[:, 0],
        "max": ordered[:, -1],
        "peak_to_peak": ordered[:, -1] - ordered[:, 0],
        "q10": _quantile(ordered, 0.1),
        "median": _quantile(ordered, 0.5),
        "q90": _quantile(ordered, 0.9),
    }


def median_absolute_deviation(values: Array, _times: Array) -> dict[str, Array]:
    """Median of the distances from the median, not scaled to a standard deviation."""
    median = _quantile(np.sort(values, axis=1), 0.5)
    return {"mad": _quantile(np.sort(np.abs(values - median[:, None]), axis=1), 0.5)}


def crossings(values: Array, times: Array) -> dict[str, Array]:
    """Crossings of zero and of the mean, per second."""
    span = times[-1] - times[0]
    centred = values - values.mean(axis=1, keepdims=True)
    return {
        "zero_crossings": np.count_nonzero(np.diff(values >= 0.0, axis=1), axis=1) / span,
        "mean_crossings": np.count_nonzero(np.diff(centred >= 0.0, axis=1), axis=1) / span,
    }


def changes(values: Array, times: Array) -> dict[str, Array]:
    """Least-squares slope per second, and jerk: the mean absolute rate of change between rows."""
    t = times - times[0]  # the mean of times since 1970 is off by more than a nanosecond
    t -= t.mean()
    intervals = np.diff(times)
    moves = intervals > 0.0
    steps = np.diff(values, axis=1)[:, moves]
    return {
        "slope": values @ t / (t @ t),
        "jerk": np.abs(steps / intervals[moves]).mean(axis=1),
    }


def regularly_sampled(values: Array, times: Array) -> tuple[Array, float]:
    """Return values at equal intervals, and the sampling rate in hertz.

    A signal whose intervals vary by more than a hundredth of their median is interpolated linearly.
    """
    intervals = np.diff(times)
    interval, span = float(np.median(intervals)), float(times[-1] - times[0])
    if interval > 0.0 and np.abs(intervals - interval).max() <= _JITTER * interval:
        return values, (len(times) - 1) / span
    n = MOST_SAMPLES
    if interval * (n - 1) >= span:
        n = max(MIN_SAMPLES, round(span / interval) + 1)
    grid = np.linspace(times[0], times[-1], n)
    return np.stack([np.interp(grid, times, row) for row in values]), (n - 1) / span


def power_spectrum(values: Array, rate_hz: float) -> tuple[Array, Array]:
    """Return frequencies without zero, and the one-sided periodogram with a Hann window.

    The scale of the power is arbitrary: only its shares are used. The power of a constant is zero.

    Examples
    --------
    >>> t = np.arange(100) / 50.0
    >>> frequencies, power = power_spectrum(np.sin(2.0 * np.pi * 5.0 * t)[None, :], 50.0)
    >>> float(frequencies[power[0].argmax()])
    5.0

    """
    n = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    is_constant = np.abs(centred).max(axis=1) <= _CONSTANT * np.abs(values).max(axis=1)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(n) / n)
    power: Array = np.abs(np.fft.rfft(centred * window, axis=1)[:, 1:]) ** 2
    # Every frequency but the last one of an even number of samples also stands for its negative.
    power[:, : (n - 1) // 2] *= 2.0
    power[is_constant] = 0.0
    frequencies = np.arange(1, n // 2 + 1) * (rate_hz / n)
    return frequencies, power


def spectra(values: Array, times: Array) -> dict[str, Array]:
    """Dominant frequency (hertz), its share of the power, spectral entropy, energy in bands.

    Entropy is that of the shares of power, divided by its largest value: 0 for one frequency, 1 for
    white noise. For a constant signal all values are zero.
    """
    values, rate = regularly_sampled(values, times)
    frequencies, power = power_spectrum(values, rate)
    total = power.sum(axis=1, keepdims=True)
    shares = np.divide(power, total, out=np.zeros_like(power), where=total > 0.0)
    top = shares.argmax(axis=1)
    rows = np.arange(len(values))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0.0)
    found = {
        "dominant_frequency": np.where(total[:, 0] > 0.0, frequencies[top], 0.0),
        "dominant_share": shares[rows, top],
        "spectral_entropy": np.maximum(
            -(shares * logs).sum(axis=1) / np.log(len(frequencies)), 0.0
        ),
    }
    edges = np.searchsorted(frequencies, [edge for band in BANDS_HZ for edge in band])
    for (low, high), i, j in zip(BANDS_HZ, edges[::2], edges[1::2], strict=True):
        found[f"band_{low}_{high}"] = shares[:, i:j].sum(axis=1)
    return found


def correlations(values: Array) -> Array:
    """Return the matrix of Pearson's correlations; NaN where a channel is constant."""
    centred = values - values.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("cn,cn->c", centred, centred))
    spread[spread <= _CONSTANT * np.abs(values).max(axis=1) * np.sqrt(values.shape[1])] = np.nan
    scaled = centred / spread[:, None]
    matrix: Array = np.clip(scaled @ scaled.T, -1.0, 1.0)
    return matrix


def tilt(x: Array, y: Array, z: Array) -> float:
    """Angle in radians between the mean of a vector and the z axis: how a device is held."""
    return float(np.arctan2(np.hypot(x.mean(), y.mean()), z.mean()))


GROUPS: Mapping[frozenset[str], tuple[int, Callable[[Array, Array], dict[str, Array]]]] = {
    frozenset(["mean", "sd", "energy", "rms"]): (1, moments),
    frozenset(["min", "max", "peak_to_peak", "q10", "median", "q90"]): (1, order_statistics),
    frozenset(["mad"]): (1, median_absolute_deviation),
    frozenset(["zero_crossings", "mean_crossings"]): (2, crossings),
    frozenset(["slope", "jerk"]): (2, changes),
    frozenset(
        ["dominant_frequency", "dominant_share", "spectral_entropy"]
        + [f"band_{low}_{high}" for low, high in BANDS_HZ]
    ): (MIN_SAMPLES, spectra),
}
"""Formulas that give several features at once: names, least number of rows, function."""
SIGNAL_FEATURES = tuple(name for names in GROUPS for name in sorted(names))


def features(values: Array, times: Array, wanted: frozenset[str]) -> dict[str, Array]:
    """Return the wanted features of signals that were sampled together.

    Features that need more rows are left out.

    Parameters
    ----------
    values
        Signals, shape (channels, n), finite.
    times
        Seconds, shape (n,), ascending.
    wanted
        Names, see `GROUPS`.

    Examples
    --------
    >>> times = np.arange(5.0)
    >>> found = features(np.array([[1.0, 3.0, 5.0, 7.0, 9.0]]), times, frozenset(["mean", "slope"]))
    >>> {name: float(value[0]) for name, value in found.items()}
    {'mean': 5.0, 'slope': 2.0}

    """
    # Rows of a single time tell nothing about change.
    n = len(times) if times[-1] > times[0] else 1
    found: dict[str, Array] = {}
    for names, (least, formula) in GROUPS.items():
        if n >= least and names & wanted:
            found |= formula(values, times)
    return {name: found[name] for name in found if name in wanted}


def _quantile(ordered: Array, share: float) -> Array:
    position = share * (ordered.shape[1] - 1)
    low = int(position)
    high = min(low + 1, ordered.shape[1] - 1)
    found: Array = ordered[:, low] + (position - low) * (ordered[:, high] - ordered[:, low])
    return found
