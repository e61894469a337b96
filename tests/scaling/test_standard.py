import copy
import json
import math
import pickle
import random
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import preprocessing

from streamgp.query.pipeline_scaling import PipelineScaling
from streamgp.scaling import (
    NoScaling,
    RecentScaling,
    RenewedScaling,
    RobustScaling,
    StandardScaling,
    check_finite,
)
from tests.helpers.scalings import events, rows, watched, whole_and_resumed


@given(st.integers(1, 20), st.lists(events, min_size=20, max_size=40), events)
def test_after_the_warm_up_known_features_are_frozen(warm_up, xs, probe):
    scaling = StandardScaling(warm_up)
    watched(scaling, xs[:warm_up])
    before = scaling.transform(probe)
    watched(scaling, xs[warm_up:])
    after = scaling.transform(probe)
    assert {k: after[k] for k in before} == before
    assert before.keys() <= after.keys() <= probe.keys()


@given(st.integers(2, 30), st.integers(0, 30))
def test_the_statistics_are_those_of_the_first_events(warm_up, more):
    xs = rows(warm_up + more)
    scaling = StandardScaling(warm_up)
    watched(scaling, xs)
    X = np.array([[x["a"], x["b"]] for x in xs[:warm_up]])
    expected = (np.array([3.0, -4.0]) - X.mean(axis=0)) / X.std(axis=0)
    scaled = scaling.transform({"a": 3.0, "b": -4.0})
    assert [scaled["a"], scaled["b"]] == pytest.approx(expected.tolist(), rel=1e-9)


@given(st.integers(4, 30), st.integers(0, 30))
def test_robust_statistics_are_quartiles_of_the_first_events(warm_up, more):
    xs = rows(warm_up + more)
    scaling = RobustScaling(warm_up)
    watched(scaling, xs)
    X = np.array([[x["a"], x["b"]] for x in xs[:warm_up]])
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    expected = (np.array([3.0, -4.0]) - middle) / ((high - low) / 1.3489795003921634)
    scaled = scaling.transform({"a": 3.0, "b": -4.0})
    assert [scaled["a"], scaled["b"]] == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize("kind", [StandardScaling, RobustScaling, RenewedScaling, RecentScaling])
@given(n=st.integers(0, 20), xs=st.lists(events, min_size=20, max_size=20))
def test_a_scaling_goes_on_after_a_restart_as_before(kind, n, xs):
    whole, second = whole_and_resumed(kind, 12, xs, n)
    assert second.state() == whole.state()
    assert [second.transform(x) for x in xs] == [whole.transform(x) for x in xs]


def test_the_statistics_are_renewed_when_the_events_have_doubled_and_at_the_end():
    changed = watched(StandardScaling(21), rows(40))
    assert [i + 1 for i, renewed in enumerate(changed) if renewed] == [1, 2, 4, 8, 16, 21]


@given(st.integers(1, 30), st.lists(events, max_size=40), events)
def test_a_transform_changes_exactly_when_it_is_announced(warm_up, xs, probe):
    scaling = StandardScaling(warm_up)
    for x in xs:
        before = scaling.transform(probe)
        if not scaling.observe(x):
            assert scaling.transform(probe) == before


@pytest.mark.parametrize("value", [0.0, 5.0, -1e9, 0.1])
def test_a_constant_feature_keeps_its_unit(value):
    """0.1 is no binary fraction: its running mean wavers in the last digit."""
    scaling = StandardScaling(10)
    watched(scaling, [{"a": value}] * 10)
    scaled = scaling.transform({"a": value + 2.0})["a"]
    assert scaled == pytest.approx(2.0, abs=1e-6)


def test_a_small_spread_far_from_zero_is_a_spread():
    scaling = StandardScaling(100)
    rng = np.random.default_rng(0)
    column = 1e6 + rng.normal(size=100)
    watched(scaling, [{"a": v} for v in column.tolist()])
    assert scaling.transform({"a": 1e6})["a"] == pytest.approx(
        (1e6 - column.mean()) / column.std(), rel=1e-6
    )


def test_a_feature_without_statistics_is_left_out():
    scaling = StandardScaling(4)
    assert scaling.transform({"a": 1.0}) == {}
    watched(scaling, rows(4))
    assert scaling.transform({"new": 1.0, "a": 0.0}).keys() == {"a"}


def test_a_late_feature_is_scaled_by_its_own_first_values_and_announced_once():
    scaling = StandardScaling(4)
    watched(scaling, rows(4))
    late = [10.0, 20.0, 30.0, 40.0, 1000.0]
    changed = watched(scaling, [{"a": 0.0, "b": 0.0, "late": v} for v in late])
    assert changed == [False, False, False, True, False]
    first = np.array(late[:4])
    assert scaling.transform({"late": 0.0})["late"] == pytest.approx(-first.mean() / first.std())


def test_a_late_feature_may_come_with_gaps():
    scaling = StandardScaling(3)
    watched(scaling, rows(3))
    xs = [{"late": 1.0}, {"a": 1.0}, {"late": None}, {"late": 3.0}, {}, {"late": 2.0}]
    assert watched(scaling, xs) == [False] * 5 + [True]
    assert scaling.transform({"late": 2.0}) == {"late": 0.0}


def test_a_feature_with_few_values_in_the_warm_up_waits_for_its_own():
    """Those that it had count."""
    scaling = StandardScaling(10)
    xs = [{"a": float(i), **({"rare": float(i)} if i < 4 else {})} for i in range(10)]
    watched(scaling, xs)
    assert scaling.transform({"rare": 1.0}) == {}
    assert watched(scaling, [{"rare": float(i)} for i in range(4, 10)]) == [False] * 5 + [True]
    expected = (1.0 - np.arange(10).mean()) / np.arange(10).std()
    assert scaling.transform({"rare": 1.0})["rare"] == pytest.approx(expected)


def test_half_the_values_are_enough():
    scaling = StandardScaling(10)
    watched(scaling, [{"a": 0.0, "half": float(i)} if i % 2 else {"a": 0.0} for i in range(10)])
    assert scaling.transform({"half": 5.0}) == {"half": 0.0}


@pytest.mark.parametrize("missing", [None, math.nan, np.float64("nan")])
def test_missing_values_count_for_nothing(missing):
    one, other = StandardScaling(6), StandardScaling(6)
    for i in range(8):
        one.observe({"a": float(i), "b": missing if i % 2 else 2.0 * i})
        other.observe({"a": float(i), **({} if i % 2 else {"b": 2.0 * i})})
    assert one.transform({"a": 1.0, "b": missing}) == other.transform({"a": 1.0})
    assert one.transform({"a": 1.0, "b": 1.0}) == other.transform({"a": 1.0, "b": 1.0})


def test_text_passes():
    scaling = StandardScaling(2)
    watched(scaling, [{"a": 1.0, "place": "home"}, {"a": 3.0, "place": "work"}, {"a": 9.0}])
    assert scaling.transform({"place": "gym", "a": 3.0}) == {"place": "gym", "a": 1.0}
    assert list(scaling.transform({"place": "gym", "a": 3.0})) == ["place", "a"]


@pytest.mark.parametrize(
    "kind", [Decimal, np.float32, np.float64, np.int64, np.uint8, int, np.bool_, bool]
)
def test_every_kind_of_number_is_scaled(kind):
    plain, other = StandardScaling(2), StandardScaling(2)
    for v in (0, 1, 1, 0):
        plain.observe({"a": float(v)})
        other.observe({"a": kind(v)})
    assert other.transform({"a": kind(1)}) == plain.transform({"a": 1.0}) == {"a": 1.0}


def test_small_numpy_integers_do_not_overflow():
    scaling = StandardScaling(1)
    for _ in range(3):
        scaling.observe({"a": np.uint8(200), "b": np.uint8(100)})
    assert scaling.transform({"a": np.uint8(10), "b": np.uint8(255)}) == {"a": -190.0, "b": 155.0}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.inf, "feature 'a' must be finite, got inf; leave it out if unknown"),
        (-math.inf, "feature 'a' must be finite, got -inf; leave it out"),
        (10**400, "feature 'a' must be finite, got 1000"),
        (1e200, r"feature 'a' must be at most 1e\+150 in size, got 1e\+200; leave it"),
        (-1.7e308, r"feature 'a' must be at most 1e\+150"),
    ],
    ids=["inf", "-inf", "long", "large", "-large"],
)
@pytest.mark.parametrize("n", [0, 3])
def test_a_value_that_would_spoil_the_statistics_is_refused_and_not_noted(value, message, n):
    scaling = StandardScaling(10)
    watched(scaling, rows(n))
    before = pickle.dumps(scaling)
    with pytest.raises(ValueError, match=message):
        scaling.observe({"b": 1.0, "a": value})
    assert pickle.dumps(scaling) == before


@pytest.mark.parametrize("value", [[1.0], "on", b"1", object()])
def test_what_is_no_number_passes_unchanged(value):
    scaling = StandardScaling(10)
    scaling.observe({"b": 1.0, "a": value})
    assert scaling.transform({"b": 1.0, "a": value}) == {"b": 0.0, "a": value}


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(-1e150, 1e150)), max_size=30))
def test_every_value_that_is_taken_is_scaled_to_a_finite_one(xs):
    scaling = StandardScaling(8)
    for x in xs:
        scaling.observe(x)
        assert all(math.isfinite(v) for v in scaling.transform(x).values())


def test_infinity_is_found_among_missing_values_and_text():
    check_finite({"a": None, "b": math.nan, "c": "on", "d": 1e150, "e": 1e150})
    with pytest.raises(ValueError, match="feature 'd' must be finite, got inf"):
        check_finite({"a": None, "b": math.nan, "c": "on", "d": math.inf})


def test_without_scaling_features_stay_as_they_are():
    scaling = NoScaling()
    x = {"a": 1.0, "b": "on"}
    assert not scaling.observe(x)
    assert scaling.transform(x) == x


@pytest.mark.parametrize(
    "build",
    [
        lambda: StandardScaling(9),
        lambda: RenewedScaling(9),
        lambda: RecentScaling(9),
        lambda: PipelineScaling([preprocessing.StandardScaler()], 9),
    ],
    ids=["standard", "renewed", "recent", "pipeline"],
)
@pytest.mark.parametrize("n", [0, 5, 20])
def test_a_copy_goes_on_alike(build, n):
    scaling = build()
    xs = rows(40)
    watched(scaling, xs[:n])
    for twin in (copy.deepcopy(scaling), pickle.loads(pickle.dumps(scaling))):
        other = copy.deepcopy(scaling)
        assert watched(twin, xs[n:]) == watched(other, xs[n:])
        assert twin.transform(xs[0]) == other.transform(xs[0])


# --- marks: features that are 1 or missing

# Name, and share of the events that have it.
MARKS = [("often", 0.9), ("half", 0.5), ("rarely", 0.05)]


@pytest.mark.parametrize("kind", [StandardScaling, RenewedScaling, RecentScaling])
@pytest.mark.parametrize("missing", [None, math.nan, "no key"])
def test_a_mark_is_zero_where_it_is_missing(kind, missing):
    rng = random.Random(0)
    marked, filled = kind(40), kind(40)
    for i in range(400):
        full = {"a": rng.gauss(0.0, 1.0)}
        full |= {name: float(i == 0 or rng.random() < share) for name, share in MARKS}
        x = {name: value or missing for name, value in full.items()}
        x = {name: value for name, value in x.items() if value != "no key"}
        assert marked.observe(x) == filled.observe(full)
        # The standard deviation of equal values is not 0 but up to 1e-8, by rounding.
        assert marked.transform(x) == pytest.approx(filled.transform(full), rel=1e-6)


@given(st.integers(0, 60))
def test_marks_are_the_same_after_a_restart(n):
    xs = [{"a": float(i), **({"b": True} if i % 3 == 0 else {})} for i in range(60)]
    for kind in (StandardScaling, RenewedScaling, RecentScaling):
        scaling, restarted = kind(20), kind(20)
        watched(scaling, xs[:n])
        restarted.load_state(json.loads(json.dumps(scaling.state())))
        assert watched(restarted, xs[n:]) == watched(scaling, xs[n:])
        assert restarted.transform({"a": 2.0}) == scaling.transform({"a": 2.0})


@pytest.mark.parametrize("value", [0.0, 2.0, 21.5])
def test_a_constant_other_than_one_is_no_mark(value):
    scaling = RenewedScaling(20)
    watched(scaling, [{"a": float(i), **({"b": value} if i % 3 else {})} for i in range(20)])
    assert scaling.transform({"b": value}) == scaling.transform({}) == {"a": 0.0, "b": 0.0}


def test_what_turns_out_to_have_other_values_is_no_mark_from_the_next_renewal():
    scaling = RenewedScaling(20)
    watched(scaling, [{"a": float(i), **({"b": 1.0} if i % 3 else {})} for i in range(20)])
    assert scaling.transform({"a": 0.0})["b"] < 0.0
    watched(scaling, [{"a": float(i), "b": 2.0 + i} for i in range(20)])
    assert scaling.transform({"a": 0.0})["b"] == 0.0


def test_a_gap_is_filled_in_where_at_least_half_of_the_events_have_the_feature():
    scaling = RenewedScaling(8)
    watched(scaling, [{"a": float(i), **({"b": float(i)} if i % 2 else {})} for i in range(8)])
    assert scaling.transform({}) == {"a": 0.0, "b": 0.0}
    watched(scaling, [{"a": float(i), **({"c": i} if i % 5 == 0 else {})} for i in range(56)])
    assert scaling.transform({"c": 3.0}).keys() == {"a", "b", "c"}  # in use
    restored = RenewedScaling(8)
    restored.load_state(scaling.state())
    assert restored.transform({}) == scaling.transform({}) == {"a": 0.0, "b": 0.0}


def test_names_that_hardly_ever_occur_are_no_marks():
    scaling = RenewedScaling(200)
    watched(scaling, [{"a": float(i), f"user {i}": 1.0, f"day {i // 2}": 1.0} for i in range(200)])
    scaled = scaling.transform({"a": 0.0})
    assert sum(name.startswith("user") for name in scaled) == 0
    assert sum(name.startswith("day") for name in scaled) == 100
