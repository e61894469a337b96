"""The benchmark of the temporal filter: equal labels, and the results."""

import random
from functools import partial

import pytest

from benchmarks import _logs
from benchmarks.comparison import temporal
from streamgp import SimulatedAnnotator, interactive_val_score, isgp
from tests.helpers.benchmark_runs import document

SMALL = temporal.Plan(
    recorded=("wifi_rooms", "occupancy"),
    shuffled=("wifi_rooms",),
    n_recorded=160,
    n_shuffled=160,
    n_seeds=2,
    rates=(0.2,),
    delays=(5.0,),
    n_timed=400,
)


@pytest.fixture(scope="module")
def log():
    return _logs.read("wifi_rooms", None, 300)


@pytest.mark.nightly
def test_rows_are_of_both_orders_of_late_answers_and_of_the_cost(tmp_path, capsys):
    measure = partial(temporal.measure, plan=SMALL)
    result, _ = document(tmp_path, "temporal", measure, "--quick", "--seed", "3")
    assert (result["benchmark"], result["quick"], result["seed"]) == ("temporal", True, 3)
    rows = result["rows"]
    assert [row.get("order") for row in rows] == ["recorded", "shuffled", *[None] * 4]
    assert rows[2]["late"] == 5.0
    assert [row["classes"] for row in rows[3:]] == [2, 5, 10]
    for row in rows[:2]:
        assert abs(row["asked"] - 32) <= 0.03 * 32
        assert row["gain"] == pytest.approx(row["all"] - row["before"], abs=1.1e-4)
    # What a quick run cannot decide, the mean gain, is not demanded of it.
    assert not any("mean gain" in accepted["name"] for accepted in result["acceptance"])
    assert "skipped: occupancy (needs --data)" in capsys.readouterr().out


def test_without_the_filter_it_is_what_a_model_without_one_predicts(log):
    """One run tells both, for what is asked and learned is the same."""
    events = log.played("recorded", 1)
    found = temporal.play(log, events, 1, c=0.5)
    plain = isgp(seed=1, query=temporal.SkepticalAsk(0.5), temporal=None)
    assert plain.temporal is None
    annotator = SimulatedAnnotator(error_rate=0.2, classes=log.classes, seed=1)
    right = []

    class Right(temporal.metrics.Accuracy):
        def update(self, y_true, y_pred, *rest):
            right.append(y_true == y_pred)
            super().update(y_true, y_pred, *rest)

    result = interactive_val_score(events, plain, Right(), annotator=annotator)
    assert result.n_asked == found.n_asked
    # Events without a prediction are not scored there, and count as wrong here.
    assert sum(right) == round(found.accuracy[0] * len(events))


def test_the_share_of_labels_is_found_or_the_most_that_is_not_too_much(log):
    found = temporal.at_rate(log, "random", 0.15, 1, c=20.0)
    assert 0.97 * 45 <= found.n_asked <= 1.03 * 45
    with pytest.raises(temporal.TooManyError):
        temporal.play(log, log.played("random", 1), 1, c=20.0, at_most=46)


def test_macro_f1_counts_all_classes():
    truths = ["a", "a", "b", "c"]
    assert temporal._macro_f1(truths, ["a", "a", "b", "c"]) == 1.0
    # a: 2 of 3 said and 2 there, 4 / 5; b: 1 said, 1 there, 1; c: never said, 0.
    assert temporal._macro_f1(truths, ["a", "a", "b", "a"]) == pytest.approx((0.8 + 1.0) / 3)
    assert temporal._macro_f1(truths, [None, "a", "b", None]) == pytest.approx((2 / 3 + 1.0) / 3)


def test_wisdm_by_user_has_one_user_after_the_other(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "sensor_logs"
    folder.mkdir()
    table = pa.table(
        {
            "UNIQUE_ID": [1, 2, 3, 4],
            "user": [33, 5, 33, 5],
            "class": ["Walking", "Jogging", "Sitting", "Standing"],
            "x": [0.0, 1.0, 2.0, 3.0],
        }
    )
    parquet.write_table(table, folder / "wisdm_10s.parquet")
    log = _logs.read("wisdm_by_user", tmp_path, 3)
    assert log.events == [
        ({"x": 1.0}, "Jogging"),
        ({"x": 3.0}, "Standing"),
        ({"x": 0.0}, "Walking"),
    ]
    assert "wisdm_by_user" not in _logs.NAMES


def test_each_scaling_is_played():
    model = temporal._Both(model=isgp().model, warm_up=10, rescale=True)
    model.clip_once()
    renewed = [model._store.scaling.observe({"a": float(i % 7)}) for i in range(60)]
    assert [i + 1 for i, new in enumerate(renewed) if new] == [1, 2, 4, 8, 10]
    rng = random.Random(1)
    events = [({"a": rng.gauss(0.0, 1.0 + 9.0 * (n > 220))}, "ab"[n % 2]) for n in range(450)]
    log = _logs.Log(name="widening", events=events, orders=("recorded",))
    first, *others = (temporal.play(log, events, 1, 0.5, one) for one in temporal.SCALINGS)
    assert all(other.accuracy != first.accuracy for other in others)
