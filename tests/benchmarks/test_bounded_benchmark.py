"""Bounded memory and drift: the streams are what they say, and both benchmarks run."""

from functools import partial

import numpy as np
import pytest

from benchmarks import _array_streams as streams
from benchmarks.comparison import bounded, drift
from streamgp import GPClassifier
from streamgp.gp.sparse import SparseGP, WindowGP
from tests.helpers.benchmark_runs import document


@pytest.mark.parametrize("name", streams.STATIONARY)
def test_streams_are_standardised_and_number_their_classes(name):
    stream = streams.stationary(name, 300, seed=1)
    assert stream.X.shape == (300, stream.X.shape[1])
    assert np.isfinite(stream.X).all()
    np.testing.assert_allclose(stream.X[:200].mean(axis=0), 0.0, atol=1e-9)
    assert set(np.round(stream.X[:200].std(axis=0), 9)) <= {0.0, 1.0}
    assert list(dict.fromkeys(stream.y.tolist())) == list(range(stream.y.max() + 1))
    twin = streams.stationary(name, 300, seed=1)
    assert np.array_equal(stream.X, twin.X)
    assert np.array_equal(stream.y, twin.y)


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        ("none", [0, 0, 0, 0]),
        ("abrupt", [0, 0, 1, 1]),
        ("gradual", [0, 0.25, 0.75, 1]),
        ("recurring", [0, 1, 0, 1]),
    ],
)
def test_concepts_take_turns_as_the_kind_of_drift_says(kind, later):
    t = np.arange(1000) / 1000
    found = streams._KINDS[kind](t).reshape(4, 250).mean(axis=1)
    np.testing.assert_allclose(found, later, atol=0.01)


@pytest.mark.parametrize("concept", streams.CONCEPTS)
def test_a_stream_that_does_not_drift_is_the_first_concept_alone(concept):
    none, abrupt = (streams.drifting(concept, kind, 400, seed=1) for kind in ("none", "abrupt"))
    assert np.array_equal(none.X[:200], abrupt.X[:200])
    assert np.array_equal(none.y[:200], abrupt.y[:200])
    assert not np.array_equal(none.X[200:], abrupt.X[200:])


@pytest.mark.parametrize("name", ["ImageSegments", "LED"])
def test_the_exact_process_is_that_of_a_bound_that_is_never_reached(name):
    stream = streams.stationary(name, 250, seed=1)
    expected = streams.right_exactly(stream)
    for kind in (SparseGP, WindowGP):
        gp = kind(streams.kernel_for(stream), streams.NOISE_VARIANCE, 250)
        assert np.array_equal(streams.right_one_by_one(stream, gp), expected)


def test_missing_values_are_0_after_scaling_by_those_that_are_there():
    events = [({"a": 1.0}, "p"), ({"a": 3.0, "b": 5.0}, "q"), ({"b": 5.0}, "p")]
    stream = streams._standardised("", events)
    assert stream.X.tolist() == [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    assert stream.y.tolist() == [0, 1, 0]


@pytest.mark.parametrize(("option", "kind"), [("max_points", SparseGP), ("window", WindowGP)])
def test_a_classifier_is_right_where_its_process_is(option, kind):
    stream = streams.drifting("Agrawal", "recurring", 400, seed=1)
    gp = kind(streams.kernel_for(stream), streams.NOISE_VARIANCE, 50)
    right, seconds = streams.played(stream, GPClassifier(**{option: 50}))
    assert np.array_equal(right, streams.right_one_by_one(stream, gp))
    assert seconds.shape == (400,)
    assert seconds.min() > 0.0


def test_a_watch_makes_it_forget():
    stream = streams.drifting("Sine", "abrupt", 800, seed=1)
    model = GPClassifier(max_points=50, drift=True)
    right, _ = streams.played(stream, model)
    assert model.n_drifts == 1
    assert right[500:].mean() > 0.7
    right, _ = streams.played(stream, GPClassifier(max_points=50))
    assert right[500:].mean() < 0.5


def test_no_change_predicts_the_label_before():
    stream = streams.ArrayStream(name="", X=np.zeros((4, 1)), y=np.array([0, 0, 1, 1]))
    assert streams.right_without_change(stream).tolist() == [False, True, False, True]


def test_bounded_shows_each_stream_and_each_size(tmp_path, capsys):
    plan = bounded.Plan(
        streams=("Shuttle", "LED"), logs=(("wifi_rooms", "recorded"), ("letter", "sequential")),
        sizes=(20, 200), n_events=250, n_seeds=2, n_steps=1300, n_timed=20,
    )  # fmt: skip
    result, _ = document(tmp_path, "bounded", partial(bounded.measure, plan=plan), "--quick")
    assert "skipped: letter (needs --data)" in capsys.readouterr().out
    assert [row["log"] for row in result["rows"] if "log" in row] == [
        "wifi_rooms, recorded", "mean"
    ]  # fmt: skip
    lost = [row for row in result["rows"] if "stream" in row]
    assert [row["stream"] for row in lost] == ["Shuttle", "LED", "mean"]
    assert all({"points_lost_m=20", "points_lost_m=200"} <= row.keys() for row in lost)
    times = [row for row in result["rows"] if "points" in row]
    assert [row["points"] for row in times] == [20, 200]
    assert all(row["step_us"] > row["predict_us"] > 0 for row in times)
    names = [a["name"] for a in result["acceptance"]]
    assert len(names) == 5
    assert "widened by 2 standard errors of 2 streams" in names[0]


@pytest.mark.nightly
def test_drift_compares_all_on_each_kind(tmp_path, capsys):
    plan = drift.Plan(
        concepts=("Sine",), n_events=600, n_seeds=1, n_recorded=(300,), rules=(), scalings=()
    )
    result, status = document(tmp_path, "drift", partial(drift.measure, plan=plan), "--check")
    assert "skipped: elec2 (needs --data)" in capsys.readouterr().out
    assert [(row["drift"], row["concepts"]) for row in result["rows"]] == [
        (kind, concept) for kind in streams.KINDS for concept in ("Sine", "mean")
    ]
    assert status == 0
    assert len(result["acceptance"]) == 8


@pytest.mark.nightly
def test_drift_shows_what_asking_too_little_costs(tmp_path):
    plan = drift.Plan(
        concepts=("Sine",),
        kinds=(),
        n_events=3000,
        n_recorded=(),
        rules=("SkepticalAsk()", "SkepticalAsk(at_least=.1)", "RandomAsk(.1)"),
        kinds_asked=("abrupt",),
        scalings=(),
    )
    result, _ = document(tmp_path, "drift", partial(drift.measure, plan=plan))
    own, at_least, by_chance = result["rows"]
    assert own["questions"] < min(by_chance["questions"], at_least["questions"])
    assert own["drifts_found"] == 0
    assert at_least["drifts_found"] == 1
    assert at_least["sparse_+_ADWIN"] > at_least["sparse"] + 10.0


@pytest.mark.nightly
def test_drift_compares_scalings_where_sensors_move(tmp_path):
    before = streams.drifting("Sine", "none", 400, seed=1)
    moved = drift.moving(before, seed=1)
    assert np.array_equal(moved.X[:100], before.X[:100])
    assert np.array_equal(moved.y, before.y)
    later = slice(300, None)
    by_line = [
        np.polyfit(a, b, 1, full=True)
        for a, b in zip(before.X[later].T, moved.X[later].T, strict=True)
    ]
    assert all(1 / 3 <= line[0] <= 3 and abs(line[1]) <= 3 for line, *_ in by_line)
    assert all(residual < 1e-9 for _, [residual], *_ in by_line)
    plan = drift.Plan(
        concepts=("Sine",), kinds=(), n_events=2000, n_recorded=(), rules=(), kinds_asked=("none",)
    )
    result, _ = document(tmp_path, "drift", partial(drift.measure, plan=plan))
    frozen, renewed, recent = result["rows"]
    assert [row["scaling"] for row in result["rows"]] == ["frozen", "renewed", "recent"]
    assert frozen["none"] == pytest.approx(renewed["none"], abs=6.0)
    assert all(row["sensors_questions"] > 100 for row in (frozen, renewed, recent))


def test_drift_reads_elec2_from_the_data_folder(tmp_path):
    (tmp_path / "streams").mkdir()
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 2)), rng.integers(2, size=80)
    np.savez(tmp_path / "streams" / "elec2.npz", X=X, y=y, feature_names=["a", "b"])
    plan = drift.Plan(kinds=(), n_recorded=(50, 80), rules=(), scalings=())
    small = partial(drift.measure, plan=plan)
    result, _ = document(tmp_path, "drift", small, "--data", str(tmp_path))
    assert [row["concepts"] for row in result["rows"]] == ["Elec2, 50 events", "Elec2, 80 events"]
    assert result["acceptance"] == []
