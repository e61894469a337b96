"""Commands on logs of raw rows: `[windows]` in replays, in `tune`, in `send` and the worker."""

import csv
import json
import math
import random
from pathlib import Path

import pytest

from connectors.memory import MemoryTopics
from connectors.worker.settings import WorkerSettings
from connectors.worker.worker import Worker
from streamgp.apps.deployment.deployment import build_loops
from streamgp.config.load import load_worker
from tests.helpers.commands import streamgp
from tests.helpers.deskwork import Broken
from tests.helpers.topics import said

START = 1_700_000_000.0
TOML = """\
broker = "file://topics"
[log]
time = "time"
label = "activity"
key = "who"
[windows]
length_s = 4.0
features = ["basic", "dominant_frequency"]
{more}
"""


def rows(n=400, start=START):
    """Ten rows a second, walking and standing in turn for twenty seconds."""
    rng = random.Random(1)
    for i in range(n):
        t = i / 10
        walks = int(t // 20) % 2
        v = walks * math.sin(4.0 * math.pi * t) + rng.gauss(0.0, 0.1)
        yield {
            "time": f"{start + t:.1f}",
            "who": "ann",
            "v": f"{v:.4f}",
            "activity": "walk" if walks else "stand",
        }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(rows())
    return tmp_path


def write(log, more=""):
    log = list(log)
    names = list(dict.fromkeys(name for row in log for name in row))
    with Path("raw.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(log)
    Path("w.toml").write_text(TOML.format(more=more))


def run(*arguments, status=0):
    result = streamgp(*arguments)
    assert result.exit_code == status, result.output
    return result


def replayed(status=0):
    result = run("replay", "raw.csv", "--config", "w.toml", "--out", "out", status=status)
    lines = Path("out/predictions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], result.stderr


@pytest.mark.usefixtures("folder")
def test_each_window_is_predicted_once_and_asked_with_its_signal():
    predictions, _ = replayed()
    assert [p["start"] for p in predictions] == [START + 4.0 * n for n in range(10)]
    assert all(p["end"] == p["start"] + 4.0 == p["at"] for p in predictions)
    request = json.loads(Path("out/requests.jsonl").read_text().splitlines()[0])
    assert len(request["excerpt"]["v"]) == 40
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["configuration"]["windows"]["length_s"] == 4.0


@pytest.mark.usefixtures("folder")
def test_a_worker_makes_the_windows_of_the_replay_of_what_is_sent(monkeypatch):
    topics = MemoryTopics(1)
    monkeypatch.setattr(
        "streamgp.apps.deployment.deployment.open_topics", lambda _config: Broken(topics)
    )
    # A row that closes the last window: a worker has no end of a log.
    write([*rows(), *list(rows(401))[-1:]])
    told = run("send", "w.toml", "raw.csv").stderr
    assert "401 events sent" in told
    loops = build_loops(load_worker(Path("w.toml")), source="w.toml")
    settings = WorkerSettings(group="streamgp", instance="w", batch=37)
    Worker(topics, loops, settings).run(lambda: not any(topics.lags("streamgp").values()))
    live = [(p.event_id, p.start, p.end) for p in said(topics, "predictions")]
    predictions, _ = replayed()
    assert live == [(p["event_id"], p["start"], p["end"]) for p in predictions[:-1]]
    excerpts = [r.excerpt for r in said(topics, "requests")]
    assert all(len(excerpt["v"]) == 40 for excerpt in excerpts)


@pytest.mark.usefixtures("folder")
def test_a_replay_that_is_done_finds_its_windows_again():
    expected, _ = replayed()
    options = ("--config", "w.toml", "--out", "again", "--state", "state")
    run("replay", "raw.csv", *options)
    run("replay", "raw.csv", *options)
    again = Path("again/predictions.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in again] == expected


@pytest.mark.usefixtures("folder")
def test_tune_compares_on_windows():
    table = run("tune", "raw.csv", "--compare", "w.toml").stdout
    assert "w " in table


@pytest.mark.usefixtures("folder")
def test_windows_need_the_time_of_rows_and_known_features():
    Path("w.toml").write_text(TOML.format(more="").replace('time = "time"\n', ""))
    error = run("replay", "raw.csv", "--config", "w.toml", status=2).stderr
    assert "windows need the time of each row: name its column with --time COLUMN" in error
    assert "docs/logs.md shows how to make one for rows at a fixed rate" in error
    write(rows(), more='vectors = [["v", "u"]]')
    error = run("replay", "raw.csv", "--config", "w.toml", status=2).stderr
    assert "raw.csv has no column 'u' (windows); columns: v" in error
    write(rows(), more='gps = ["v", "activity"]')
    error = run("replay", "raw.csv", "--config", "w.toml", status=2).stderr
    assert "raw.csv has no column 'activity' (windows); columns: v" in error
    write(rows(), more='vectors = [["v"]]')
    error = run("replay", "raw.csv", "--config", "w.toml", status=2).stderr
    assert "w.toml: windows: vectors must each name two or more different channels" in error
    Path("w.toml").write_text(TOML.format(more="").replace("dominant_frequency", "loudness"))
    error = run("replay", "raw.csv", "--config", "w.toml", status=2).stderr
    assert "windows: unknown feature 'loudness'" in error


@pytest.mark.usefixtures("folder")
def test_windows_are_not_for_numbers():
    write(rows(), more='[learner]\nname = "gp"\n')
    Path("w.toml").write_text('target = "number"\n' + Path("w.toml").read_text())
    error = run("replay", "raw.csv", "--config", "w.toml", status=2).stderr
    assert 'windows is not allowed with target = "number"' in error


# --- logs as sensors write them


@pytest.mark.usefixtures("folder")
def test_a_sensor_that_dies_takes_only_its_own_features_along():
    log = [{**row, "w": "" if n >= 200 else str(n % 9)} for n, row in enumerate(rows())]
    write(log)
    predictions, _ = replayed()
    assert len(predictions) == 10
    learned = map(json.loads, Path("out/requests.jsonl").read_text().splitlines())
    x = {request["event_id"]: request["x"] for request in learned}
    assert "w.mean" in x[f"ann@{START:.0f}"]
    late = [v for name, v in x.items() if float(name.removeprefix("ann@")) >= START + 20.0]
    assert late
    assert not any("w.mean" in features or "v.mean" not in features for features in late)


@pytest.mark.usefixtures("folder")
def test_a_gap_of_a_day_makes_no_windows_of_its_own():
    write([*rows(100), *rows(100, START + 90_000.0)])
    predictions, told = replayed()
    starts = [p["start"] - START for p in predictions]
    assert starts == [0.0, 4.0, 8.0, 90_000.0, 90_004.0, 90_008.0]
    assert "not used" not in told


@pytest.mark.usefixtures("folder")
def test_repeated_and_backward_times_are_counted_and_named():
    log = list(rows())
    write([*log[:100], log[99], *log[100:200], log[10], *log[200:]])
    predictions, told = replayed()
    assert len(predictions) == 10
    assert "note: not used of 402 rows: repeated: 1, too late: 1" in told
    assert "sort the log by time, or raise windows.grace_s" in told


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("unit", "more"), [(1000, ""), (1, "min_rows = 500")])
def test_a_log_without_a_window_says_so(unit, more):
    write(({**row, "time": unit * float(row["time"])} for row in rows()), more=more)
    predictions, told = replayed(status=2)
    assert predictions == []
    assert "400 rows make no window: the time must be in seconds" in told
    assert "Error: the rows of raw.csv make no window; see the notes above" in told


@pytest.mark.usefixtures("folder")
def test_rows_that_cannot_be_read_are_rejected_and_the_others_used():
    log = list(rows())
    log[50] = {**log[50], "time": "soon"}
    log[60] = {**log[60], "v": "nan"}
    write(log)
    predictions, told = replayed()
    assert len(predictions) == 10
    assert "row 51" in told


@pytest.mark.usefixtures("folder")
def test_the_hour_of_a_window_is_that_of_the_zone_when_summer_ends():
    def hours(zone):
        write(rows(100, 1_792_886_400.0), more=f'zone = "{zone}"')
        text = Path("w.toml").read_text().replace('["basic",', '["calendar", "basic",')
        Path("w.toml").write_text(text)
        replayed()
        requests = map(json.loads, Path("out/requests.jsonl").read_text().splitlines())
        x = next(requests)["x"]
        angle = math.atan2(x["time.hour_sin"], x["time.hour_cos"])
        return round(angle / 2.0 / math.pi * 24.0 % 24.0, 3)

    assert (hours("UTC"), hours("Europe/Rome")) == (0.0, 2.0)


@pytest.mark.usefixtures("folder")
def test_irregular_fixes_have_a_track():
    rng = random.Random(3)
    t, log = START, []
    for n in range(60):
        t += rng.choice([1.0, 2.0, 5.0, 17.0])
        log.append({"time": t, "who": "ann", "lat": 46.0, "lon": 11.0 + n / 1e4, "activity": "go"})
    write(log, more='gps = ["lat", "lon"]')
    text = Path("w.toml").read_text().replace("length_s = 4.0", "length_s = 60.0")
    Path("w.toml").write_text(text)
    predictions, _ = replayed()
    request = json.loads(Path("out/requests.jsonl").read_text().splitlines()[0])
    x = request["x"]
    assert x["gps.straightness"] == pytest.approx(1.0)
    assert x["gps.latitude"] == pytest.approx(46.0)
    assert "lat.mean" not in x
    assert set(request["excerpt"]) == {"lat", "lon"}
    assert len(predictions) == len({math.floor(row["time"] / 60.0) for row in log})
