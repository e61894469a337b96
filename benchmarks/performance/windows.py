"""Raw rows into windows: rows per second on one core, memory per key, and learning from windows.

Six channels at 50 Hz, windows of 5 s that begin every 2.5 s. Rows come one by one, as from a
broker, and each closes the windows that end with it; measured with the set `activity`, and with
five features that tsflex and the rolling windows of pandas compute as well, from all rows at once.
Seconds are processor time. Bytes of a key are what Python and numpy have allocated for it.

With `--data`, the watch log of the folder `sensor_logs` (50 Hz, six subjects one after another,
seven exercises) is cut in the same way. Features of its windows are compared with those that numpy
and scipy compute; differences are relative to the larger of 1 and their size. Then macro F1, each
window tested before it is learned, of `isgp()` as it is, with a budget of one label per ten
windows, and with every label, and of River's forests with every label, means of three seeds.

"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from river import compose, metrics, preprocessing

from benchmarks._harness import Options, Outcome, Row, at_least, at_most, one_thread, progress, run
from streamgp import SimulatedAnnotator, interactive_val_score, isgp
from streamgp.query.budgets import RateBudget
from streamgp.query.strategies import AlwaysAsk, NeverChallenge
from streamgp.windows import Windows
from streamgp.windows.signals import BANDS_HZ

CHANNELS = ("ax", "ay", "az", "wx", "wy", "wz")
VECTORS = [["ax", "ay", "az"], ["wx", "wy", "wz"]]
_RATE_HZ, _LENGTH_S, _HOP_S = 50, 5.0, 2.5
_SHARED = ("mean", "sd", "min", "max", "median")
_WATCH = "sensor_logs/watch_raw_50hz.parquet"
_MIN_ROWS = 125
"""Half the rows of a full window: sessions end with shorter ones."""
_START = 1_700_000_000.0
_N_SEEDS = 3


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("windows", measure, about=__doc__, argv=argv)


def measure(options: Options, *, n_rows: int | None = None) -> Outcome:
    """Measure speed and memory, then how well learners do on the windows of a log."""
    n_rows = n_rows or (20_000 if options.quick else 100_000)
    values = np.cumsum(np.random.default_rng(options.seed).normal(size=(n_rows, 6)), axis=0) * 0.01
    rows = [_row(n, value) for n, value in enumerate(values.tolist())]
    with one_thread():
        learned: list[Row] = []
        activity = _timed("streamgp, activity", "activity", rows, VECTORS)
        shared, found = _timed_windows("streamgp, five features", list(_SHARED), rows)
        skipped = [f"{name} (not installed)" for name in PEERS if not find_spec(name)]
        peers = [name for name in PEERS if find_spec(name)]
        others = [PEERS[name](values, found) for name in peers]
        if options.data is None:
            skipped.append("watch (needs --data)")
        elif (path := options.data / _WATCH).is_file():
            rows = _watch_rows(path, quick=options.quick)
            windows = _windows_of(rows)
            others.append(_by_scipy(rows, windows))
            seeds = range(options.seed, options.seed + (1 if options.quick else _N_SEEDS))
            learned = list(_learned([(w["x"], w["y"]) for w in windows], seeds))
        else:
            skipped.append(f"watch (no {_WATCH} in the data folder)")
    measured = [activity, shared, *others, *learned]
    key_bytes = activity["bytes per key"]
    accepted = [
        at_least("rows a second, set activity", activity["rows per s"], 20_000.0),
        at_most("bytes of a key in open windows", key_bytes, 100_000.0),
        *(
            at_most(f"difference from {row['what']}", row["largest difference"], 1e-9)
            for row in others
        ),
    ]
    return Outcome(rows=measured, acceptance=accepted, skipped=skipped)


# --- speed and memory


def _row(n: int, value: list[float]) -> dict[str, Any]:
    return {"time": _START + n / _RATE_HZ, **dict(zip(CHANNELS, value, strict=True))}


def _timed(what: str, features: Any, rows: list[dict[str, Any]], vectors: Any) -> Row:
    row, _ = _timed_windows(what, features, rows, vectors)
    tracemalloc.start()
    windows = Windows(_LENGTH_S, _HOP_S, features=features, vectors=vectors, by="key")
    windows.update_one({**rows[0], "key": "warm"})
    before, n_keys = tracemalloc.get_traced_memory()[0], 20
    for key in range(n_keys):  # a key holds the most rows just before a window is closed
        for each in rows[: int(_LENGTH_S * _RATE_HZ)]:
            windows.update_one({**each, "key": str(key)})
    row["bytes per key"] = (tracemalloc.get_traced_memory()[0] - before) / n_keys
    tracemalloc.stop()
    return row


def _timed_windows(
    what: str, features: Any, rows: list[dict[str, Any]], vectors: Any = ()
) -> tuple[Row, list[dict[str, Any]]]:
    windows = Windows(_LENGTH_S, _HOP_S, features=features, vectors=vectors)
    start = time.process_time()
    found = [window for row in rows for window in windows.update_one(row)]
    seconds = time.process_time() - start
    return _told(what, len(rows), len(found), len(found[1]["x"]), seconds), found


def _told(what: str, n_rows: int, n_windows: int, n_features: int, seconds: float) -> Row:
    progress(f"{what}: {n_rows / seconds:.0f} rows per second")
    return {
        "what": what,
        "windows": n_windows,
        "features": n_features,
        "rows per s": n_rows / seconds,
    }


def _whole(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the windows at both ends of the log, which have fewer rows."""
    n = int(_LENGTH_S * _RATE_HZ)
    return [window for window in found if window["n_rows"] == n]


def _compared(
    what: str, n_rows: int, seconds: float, theirs: dict[str, Any], found: list[dict[str, Any]]
) -> Row:
    """Return the row of another library, with its largest difference from our values."""
    ours = _whole(found)
    n_windows = min(map(len, theirs.values()))
    row = _told(what, n_rows, n_windows, len(theirs), seconds)
    row["largest difference"] = max(
        float(np.abs(np.asarray(values)[: len(ours)] - [w["x"][name] for w in ours]).max())
        for name, values in theirs.items()
    )
    return row


def _pandas(values: Any, found: list[dict[str, Any]]) -> Row:
    import pandas as pd

    length, step = int(_LENGTH_S * _RATE_HZ), int(_HOP_S * _RATE_HZ)
    start = time.process_time()
    frame = pd.DataFrame(values, columns=CHANNELS)
    # With a step, windows end at its multiples; they hold the row at their end.
    rolling = frame.shift(1).rolling(length, step=step)
    found_by = {
        "mean": rolling.mean(),
        "sd": rolling.std(ddof=0),
        "min": rolling.min(),
        "max": rolling.max(),
        "median": rolling.median(),
    }
    seconds = time.process_time() - start
    theirs = {
        f"{channel}.{name}": table[channel].dropna().to_numpy()
        for name, table in found_by.items()
        for channel in CHANNELS
    }
    return _compared("pandas rolling, five features", len(values), seconds, theirs, found)


def _tsflex(values: Any, found: list[dict[str, Any]]) -> Row:
    import pandas as pd
    from tsflex.features import FeatureCollection, FuncWrapper, MultipleFeatureDescriptors

    functions: dict[str, Callable[..., Any]] = {
        "mean": np.mean,
        "sd": np.std,
        "min": np.min,
        "max": np.max,
        "median": np.median,
    }
    wrapped = [FuncWrapper(f, output_names=name) for name, f in functions.items()]
    start = time.process_time()
    index = pd.to_datetime(np.arange(len(values)) * 1_000_000_000 // _RATE_HZ)
    frame = pd.DataFrame(values, columns=CHANNELS, index=index)
    collection = FeatureCollection(
        MultipleFeatureDescriptors(wrapped, list(CHANNELS), f"{_LENGTH_S}s", f"{_HOP_S}s")
    )
    table = collection.calculate(frame, return_df=True, n_jobs=1)
    seconds = time.process_time() - start
    theirs = {
        ".".join(column.split("__")[:2]): table[column].to_numpy() for column in table.columns
    }
    return _compared("tsflex, five features", len(values), seconds, theirs, found)


PEERS: dict[str, Callable[..., Row]] = {"pandas": _pandas, "tsflex": _tsflex}
"""Functions that compute the features with other libraries, by the name of the package."""


# --- learning from windows


def _watch_rows(path: Path, *, quick: bool) -> list[dict[str, Any]]:
    import pyarrow.parquet

    names = ["time", "subject", "exercise", *CHANNELS]
    table = pyarrow.parquet.read_table(path, columns=names)
    found: list[dict[str, Any]] = table.slice(0, 30_000 if quick else None).to_pylist()
    return found


def _windows_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    windows = Windows(
        _LENGTH_S,
        _HOP_S,
        features="activity",
        by="subject",
        vectors=VECTORS,
        label="exercise",
        min_rows=_MIN_ROWS,
    )
    return [window for row in rows for window in windows.update_one(row)] + windows.flush()


def _by_scipy(rows: list[dict[str, Any]], windows: list[dict[str, Any]]) -> Row:
    """Return the largest difference between features of windows and those of numpy and scipy."""
    times = np.array([round(row["time"] * 1e6) for row in rows])
    keys = np.array([row["subject"] for row in rows])
    values = np.array([[row[name] for name in CHANNELS] for row in rows])
    largest = 0.0
    for window in windows[::5]:
        start, end = round(window["start"] * 1e6), round(window["end"] * 1e6)
        inside = (keys == window["key"]) & (start <= times) & (times < end)
        at, parts = times[inside] / 1e6, values[inside].T
        channels = dict(zip(CHANNELS, parts, strict=True))
        for vector in VECTORS:
            components = [channels[name] for name in vector]
            channels["_".join(vector)] = np.linalg.norm(components, axis=0)
        expected = {
            f"{channel}.{feature}": value
            for channel, signal in channels.items()
            for feature, value in _features_by_scipy(signal, at).items()
        }
        matrix = np.corrcoef(parts)
        expected |= {
            f"{CHANNELS[i]}*{CHANNELS[j]}.correlation": matrix[i, j]
            for j in range(len(CHANNELS))
            for i in range(j)
        }
        for name, value in expected.items():
            difference = abs(window["x"][name] - value) / max(1.0, abs(value))
            largest = max(largest, float(difference))
    return {
        "what": "numpy and scipy, watch",
        "windows": len(windows[::5]),
        "features": len(expected),
        "largest difference": largest,
    }


def _features_by_scipy(values: Any, times: Any) -> dict[str, float]:
    from scipy import signal, stats

    span = times[-1] - times[0]
    frequencies, power = signal.periodogram(values, (len(times) - 1) / span, window="hann")
    frequencies, shares = frequencies[1:], power[1:] / power[1:].sum()
    bands = {
        f"band_{low}_{high}": shares[(low <= frequencies) & (frequencies < high)].sum()
        for low, high in BANDS_HZ
    }
    return bands | {
        "mean": np.mean(values),
        "sd": np.std(values),
        "min": np.min(values),
        "max": np.max(values),
        "median": np.median(values),
        "q10": np.quantile(values, 0.1),
        "q90": np.quantile(values, 0.9),
        "mad": stats.median_abs_deviation(values),
        "energy": np.mean(values**2),
        "rms": np.linalg.norm(values) / np.sqrt(len(values)),
        "peak_to_peak": np.ptp(values),
        "zero_crossings": np.sum(np.diff(values >= 0.0)) / span,
        "mean_crossings": np.sum(np.diff(values >= np.mean(values))) / span,
        "slope": stats.linregress(times - times[0], values).slope,
        "jerk": np.mean(np.abs(np.diff(values) / np.diff(times))),
        "dominant_frequency": frequencies[shares.argmax()],
        "dominant_share": shares.max(),
        "spectral_entropy": stats.entropy(shares) / np.log(len(shares)),
    }


def _models(seed: int) -> dict[str, Any]:
    from river.forest import AMFClassifier, ARFClassifier

    scaled = preprocessing.StandardScaler
    return {
        "isgp(), one label for ten windows": isgp(seed=seed).clone({"budget": RateBudget(0.1)}),
        "isgp()": isgp(seed=seed),
        "isgp(), every label": isgp(seed=seed).clone(
            {"query": AlwaysAsk(), "challenge": NeverChallenge()}
        ),
        "AMF, every label": AMFClassifier(seed=seed),
        "AMF, scaled, every label": compose.Pipeline(scaled(), AMFClassifier(seed=seed)),
        "ARF, every label": ARFClassifier(seed=seed),
    }


def _learned(stream: list[tuple[dict[str, Any], Any]], seeds: Sequence[int]) -> Iterator[Row]:
    """Yield the results of each learner on the windows, means over the seeds."""
    models = [_models(seed) for seed in seeds]
    for name in models[0]:
        asked, scores, times = [], [], []
        for seed, of_seed in zip(seeds, models, strict=True):
            start = time.process_time()
            metric = metrics.MacroF1()
            result = interactive_val_score(
                stream, of_seed[name], metric, annotator=SimulatedAnnotator(seed=seed)
            )
            times.append(time.process_time() - start)
            asked.append(result.n_asked)
            scores.append(metric.get())
            progress(f"{name}: {metric}")
        yield {
            "what": f"watch, {name}",
            "windows": len(stream),
            "labels": mean(asked),
            "macro F1": mean(scores),
            "seconds": mean(times),
        }
