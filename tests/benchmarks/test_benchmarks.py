"""Every benchmark runs, in the smallest way that is still true, and writes what it promises."""

import csv
import gzip
import re
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _harness as harness
from benchmarks import _logs
from benchmarks.comparison import scaling, wifi
from benchmarks.papers.egp import benchmark as egp
from benchmarks.papers.isgp import benchmark as isgp
from benchmarks.papers.location import benchmark as location
from benchmarks.performance import keys, loop, windows
from benchmarks.performance.gp_speed import benchmark as gp_speed
from benchmarks.performance.gp_speed import steps
from benchmarks.performance.gp_speed.steps import InverseGPClassifier
from streamgp import GPClassifier, kernels
from tests.helpers.benchmark_runs import document

ROOT = Path(__file__).parents[2]
GPS = {name: build for name, build in wifi.LEARNERS.items() if "River" not in name}


def test_every_command_is_listed_and_runs_the_benchmark_of_its_name():
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    listed = dict(line.split(maxsplit=1) for line in found.stdout.splitlines() if line[:2] == "  ")
    commands = [path for path in (ROOT / "benchmarks").glob("[a-z]*.py") if path.stem != "chaos"]
    assert set(listed) == {path.stem for path in commands}
    assert all(listed.values())
    for path in commands:
        [module] = re.findall(r"^from (benchmarks\.\S+) import main$", path.read_text(), re.M)
        assert path.stem in module.split(".")


@pytest.mark.nightly  # by day the demo's skeptical GP must be as good
def test_wifi_meets_its_limits(tmp_path):
    result, status = document(tmp_path, "wifi", partial(wifi.measure, learners=GPS), "--check")
    assert status == 0
    assert len(result["acceptance"]) == 5


def test_wifi_shows_all_learners_and_widens_the_limits_of_a_quick_run(tmp_path):
    small = partial(wifi.measure, n_seeds=2, n_events=120)
    result, _ = document(tmp_path, "wifi", small, "--quick", "--seed", "3")
    assert result["seed"] == 3
    assert [row["learner"] for row in result["rows"]] == list(wifi.LEARNERS)
    labels = result["acceptance"][1]
    assert labels["limit"] > 300
    assert "300 widened by 2 standard errors" in labels["name"]


def test_gp_speed_compares_steps_solves_readings_and_inverses(tmp_path, capsys):
    plan = gp_speed.Plan(steps={50: (4, 2), 500: (4, 1)}, arrays={}, n_replayed=40, n_events=40)
    small = partial(gp_speed.measure, plan=plan)
    result, _ = document(tmp_path, "gp_speed", small, "--quick")
    steps = [row for row in result["rows"] if "step_us" in row]
    assert [row["points"] for row in steps] == [50, 500]
    assert all(value > 0 for row in steps for value in row.values())
    name = result["acceptance"][0]["name"]
    assert re.fullmatch(r"explicit inverse / step at 500 points, .*AVX-512.* \(at least\)", name)
    printed = capsys.readouterr().out
    assert re.search(r"Its kernels: \w+\.\nOne core reads 1 MB at [\d.]+ GB/s\.$", printed, re.M)


def test_gp_speed_compares_precisions_batches_and_replays_on_arrays(tmp_path, capsys):
    plan = gp_speed.Plan(steps={}, arrays={30: (4, 2)}, n_replayed=50, n_replays=3, n_events=60)
    small = partial(gp_speed.measure, plan=plan)
    result, status = document(tmp_path, "gp_speed", small)
    assert status == 0
    steps, double, single, replay, usual, least = result["rows"]
    assert steps["single_us"] > 0
    assert steps["single_per_reading"] > 0
    assert [row["precision"] for row in (double, single)] == ["double", "single"]
    assert all(row["gain"] > 0 for row in (double, single, replay))
    assert double["largest_difference"] < 1e-9
    assert single["largest_difference"] < 1e-4
    assert replay["largest_difference"] < 1e-9
    assert (usual["noise_variance"], least["noise_variance"]) == (0.5, 1e-3)
    assert usual["of_another_class"] == 0
    assert 0 < usual["largest_difference"] < least["largest_difference"] < 1e-2
    printed = capsys.readouterr().out
    assert "skipped: pendigits (needs --data)" in printed


def test_gp_speed_decides_on_what_is_nearly_reached_only_if_measured_long():
    rows = [{"points": n, "single_per_reading": 0.7} for n in (1000, 3000, 6000)]
    quick, full = (gp_speed.Plan(steps={}, arrays={}, decisive=d) for d in (False, True))
    limits = gp_speed.limits_for("Intel", "SkylakeX")
    assert gp_speed._accepted(rows, quick, limits) == []
    assert [a.ok for a in gp_speed._accepted(rows, full, limits)] == [False, False]


@pytest.mark.parametrize(
    ("processor", "kernels", "name", "ok"),
    [
        ("Intel(R) Xeon(R) Processor", "SkylakeX", "Intel with AVX-512", False),
        ("Intel(R) Xeon(R) Processor", "Haswell, SkylakeX", "not Intel with AVX-512", True),
        ("AMD EPYC 7763 64-Core Processor", "Zen", "not Intel with AVX-512", True),
        ("AMD EPYC 9654 96-Core Processor", "SkylakeX", "not Intel with AVX-512", True),
        ("", "unknown", "not Intel with AVX-512", True),
    ],
)
def test_limits_of_gp_speed_name_the_processors_that_they_hold_for(processor, kernels, name, ok):
    row = {"points": 1000, "step_per_reading": 1.8, "inverse_per_step": 11.0}
    limits = gp_speed.limits_for(processor, kernels)
    first, _ = gp_speed._accepted_step(row, limits)
    assert first.name == f"step / one reading at 1000 points, {name} (at most)"
    assert first.ok is ok


def test_the_explicit_inverse_predicts_what_the_classifier_predicts():
    events = steps.events_of(40, seed=1)
    rival = InverseGPClassifier(list(events[0][0]), range(10), 40, length_scale=3.0)
    learner = GPClassifier(kernels.SquaredExponential(3.0))
    rival.learn_at_once(events[:20])
    for x, y in events[:20]:
        learner.learn_one(x, y)
    for x, y in events[20:]:
        expected = learner.predict_proba_one(x)
        proba = rival.predict_proba_one(x)
        assert {label: proba[label] for label in expected} == pytest.approx(expected, abs=1e-9)
        rival.learn_one(x, y)
        learner.learn_one(x, y)


@pytest.mark.nightly
def test_loop_measures_what_is_above_the_learner(tmp_path):
    small = partial(loop.measure, n_events=200, n_starts=1)
    result, _ = document(tmp_path, "loop", small, "--quick")
    steps = [row for row in result["rows"] if "step" in row]
    assert [row["above_us"] for row in steps] == [
        pytest.approx(row["loop_us"] - row["learner_us"]) for row in steps
    ]


def test_scaling_makes_the_length_scale_that_it_names():
    model = scaling._ScaledGPClassifier(0.5)
    model.learn_one({"a": 1.0, "b": 2.0, "missing": None, "c": 0.0, "d": 1.0}, "home")
    assert model.hyperparameters.kernel == kernels.SquaredExponential(0.5 * 4**0.5)
    assert model.clone().a == 0.5


@pytest.mark.nightly
def test_scaling_compares_at_equal_questions_and_never_on_wifi(tmp_path):
    data = tmp_path / "streams"
    data.mkdir()
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=150)
    X = rng.normal(size=(150, 2)) + 3 * y[:, None]
    np.savez(data / "keystroke.npz", X=X, y=y, feature_names=["a", "b"])
    default = scaling.Choice().a
    plan = scaling.Plan(
        logs=("keystroke", "elec2", "wifi_rooms"),
        n_events=150,
        n_seeds=1,
        scales=(0.5, default),
        warm_ups=(20, 200),
        knobs=(0.5,),
    )
    small = partial(scaling.measure, plan=plan)
    result, _ = document(tmp_path, "scaling", small, "--quick", "--data", str(tmp_path))
    compared = [row for row in result["rows"] if row.get("logs") == "compared"]
    assert len(compared) == 6
    defaults = [r for r in compared if (r["refit"], r["a"], r["N"]) == ("doubling", default, 200)]
    assert [row["advantage"] for row in defaults] == [pytest.approx(0.0)]
    alone = [row for row in result["rows"] if row.get("log") == "keystroke"]
    questions = [row["questions_a=0.5"] for row in alone]
    compared_half = [r for r in compared if (r["refit"], r["a"], r["N"]) == ("doubling", 0.5, 200)]
    assert compared_half[0]["n_questions"] == pytest.approx(sum(questions) / len(questions))


@pytest.mark.nightly
def test_keys_come_back_from_the_store_unchanged(tmp_path):
    small = partial(keys.measure, n_keys=30, n_ready=4, n_visits=2)
    result, _ = document(tmp_path, "keys", small, "--quick")
    [row] = result["rows"]
    assert (row["keys"], row["ready"], row["labels per key"]) == (30, 4, 10)
    limits = {a["name"]: a["ok"] for a in result["acceptance"]}
    assert limits["keys that differ from one that was never away (at most)"]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # tsflex, of pandas
def test_windows_are_those_of_other_libraries(tmp_path, capsys):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    small = partial(windows.measure, n_rows=1000)
    document(tmp_path, "windows", small, "--quick", "--data", str(tmp_path))
    assert "watch (no sensor_logs/watch_raw_50hz.parquet in" in capsys.readouterr().out
    (tmp_path / "sensor_logs").mkdir()
    rng, n_rows = np.random.default_rng(1), 1500
    log = {name: rng.normal(size=n_rows) for name in windows.CHANNELS}
    log |= {"time": [1.5e9 + n / 50 for n in range(n_rows)], "subject": [1] * n_rows}
    log["exercise"] = ["swing" if n // 500 % 2 else "lift" for n in range(n_rows)]
    parquet.write_table(pa.table(log), tmp_path / "sensor_logs" / "watch_raw_50hz.parquet")
    result, _ = document(tmp_path, "windows", small, "--quick", "--data", str(tmp_path))
    limits = {a["name"]: a["ok"] for a in result["acceptance"]}
    assert limits["bytes of a key in open windows (at most)"]
    assert limits["difference from pandas rolling, five features (at most)"]
    assert limits["difference from numpy and scipy, watch (at most)"]
    learned = [row for row in result["rows"] if "macro F1" in row]
    assert {row["windows"] for row in learned} == {13}


def test_sets_that_are_not_there_are_skipped_and_named(tmp_path, capsys):
    plan = scaling.Plan(
        logs=("occupancy", "wifi_rooms"), n_events=60, n_seeds=1, scales=(0.5,),
        warm_ups=(200,), knobs=(),
    )  # fmt: skip
    small = partial(scaling.measure, plan=plan)
    result, status = document(tmp_path, "scaling", small, "--check")
    assert "skipped: occupancy (needs --data)" in capsys.readouterr().out
    assert status == 0
    assert {row.get("log", "wifi_rooms") for row in result["rows"]} == {"wifi_rooms"}
    document(tmp_path, "scaling", small, "--data", str(tmp_path))
    said = capsys.readouterr().out
    assert "skipped: occupancy (no sensor_logs/occupancy.csv.gz in the data folder)" in said


def test_check_fails_on_a_missed_limit_only_when_asked_for(tmp_path, capsys):
    def measure(_options):
        return harness.Outcome(
            rows=[{"what": "speed", "value": 2.0}],
            acceptance=[harness.at_most("speed", 2.0, 1.0), harness.at_least("size", None, 1.0)],
        )

    result, status = document(tmp_path, "none", measure)
    assert (status, [a["ok"] for a in result["acceptance"]]) == (0, [False, False])
    assert document(tmp_path, "none", measure, "--check")[1] == 1
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.parametrize("benchmark", [egp, isgp, location], ids=["egp", "isgp", "location"])
def test_pictures_is_an_option_beside_the_common_ones(benchmark, tmp_path, monkeypatch):
    heard = []

    def measure(options, *, pictures):
        heard.append((options.seed, options.quick, pictures))
        return harness.Outcome(rows=[{"value": 1}])

    monkeypatch.setattr(benchmark, "measure", measure)
    benchmark.main(["--quick", "--pictures", str(tmp_path), "--seed", "4"])
    benchmark.main([])
    assert heard == [(4, True, tmp_path), (1, False, None)]


def test_standard_error_is_that_of_a_mean():
    assert harness.standard_error([1.0, 3.0]) == pytest.approx(1.0)
    assert harness.standard_error([5.0]) == 0.0


def test_occupancy_is_read_without_time_and_file(tmp_path):
    folder = tmp_path / "sensor_logs"
    folder.mkdir()
    with gzip.open(folder / "occupancy.csv.gz", "wt", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["timestamp", "Light", "Occupancy", "file"])
        rows.writerows([["2015-02-02 14:19:00", "585.2", "1", "datatest"]] * 3)
    log = _logs.read("occupancy", tmp_path, 2)
    assert log.events == [({"Light": 585.2}, 1)] * 2


def test_places_leave_out_unknown_ones_other_users_and_missing_values(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "sensor_logs"
    folder.mkdir()
    table = pa.table(
        {
            "user": [1, 1, 2, 1],
            "timestamp": [1, 2, 3, 4],
            "place": ["home", "unknown", "home", "car"],
            "label:LYING": [1, 0, 0, 1],
            "light": [1.0, 2.0, 3.0, float("nan")],
            "noise": [0.5, 0.5, 0.5, 0.25],
        }
    )
    parquet.write_table(table, folder / "extrasensory_core.parquet")
    log = _logs.read("places_1", tmp_path, 10)
    assert log.events == [({"light": 1.0, "noise": 0.5}, "home"), ({"noise": 0.25}, "car")]


def test_sequential_order_plays_class_after_class_and_keeps_all_events():
    log = _logs.read("wifi_rooms", None, 2000)
    played = log.played("sequential", seed=2)
    rooms = [y for _, y in played]
    assert len(set(rooms)) == sum(a != b for a, b in pairwise(rooms)) + 1
    assert sorted(map(repr, played)) == sorted(map(repr, log.events))
    assert log.played("recorded", seed=2) == log.events
    assert log.played("random", seed=2) == log.played("random", seed=2) != log.events
