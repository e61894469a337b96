import copy
import itertools
import json
import math
import pickle
import random
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.scaling import (
    MOST_RELEARNED,
    NoScaling,
    RecentScaling,
    RenewedScaling,
    RobustScaling,
    StandardScaling,
    check_finite,
    standard_scaling,
)
from streamgp.scaling.column_forms import weights_of

# Marks, which are always 1, have tests of their own.
values = st.floats(-1e6, 1e6).filter(lambda value: value != 1.0)
events = st.fixed_dictionaries({"a": values}, optional={"b": values, "c": values})


def watched(scaling, xs):
    return [scaling.observe(x) for x in xs]


def whole_and_resumed(kind, warm_up, xs, n):
    """Return a scaling that has observed all events, and one that was restored after n of them."""
    whole, first, second = kind(warm_up), kind(warm_up), kind(warm_up)
    watched(whole, xs)
    watched(first, xs[:n])
    second.load_state(json.loads(json.dumps(first.state())))
    watched(second, xs[n:])
    return whole, second


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{"a": a, "b": 100 + 5 * b} for a, b in rng.normal(size=(n, 2)).tolist()]


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
    changed = watched(scaling, [{"a": 0.0, "late": v} for v in late])
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
        (1e200, r"feature 'a' must be at most 1e\+150, got 1e\+200; leave it"),
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
    ],
    ids=["standard", "renewed", "recent"],
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


# --- scaling that is renewed


def clipped(column, at, *, value):
    """The value by the statistics of the first `at` numbers of a column."""
    first = np.array(column[:at])
    return float(np.clip((value - first.mean()) / (first.std() or 1.0), -3.0, 3.0))


def test_statistics_are_renewed_whenever_the_events_have_doubled():
    changed = watched(RenewedScaling(21), rows(200))
    assert [i + 1 for i, new in enumerate(changed) if new] == [1, 2, 4, 8, 16, 21, 42, 84, 168]


@given(st.integers(12, 24), st.integers(1, 80), st.floats(-500.0, 500.0))
def test_a_renewed_scale_is_that_of_all_events_at_the_last_renewal(warm_up, n, value):
    """Where there are no outliers: by fewer than 12 values, some of these would be."""
    scaling, xs = RenewedScaling(warm_up), rows(n, seed=n)
    last = [i + 1 for i, new in enumerate(watched(scaling, xs)) if new][-1]
    expected = {name: clipped([x[name] for x in xs], last, value=value) for name in "ab"}
    assert scaling.transform({"a": value, "b": value}) == pytest.approx(expected, rel=1e-9)


@given(st.lists(events, min_size=1, max_size=26), events)
def test_until_the_end_of_the_warm_up_it_is_standard_scaling_clipped(xs, probe):
    """Where zeros do not prevail, and none of so few values can be 5 standard deviations off."""
    renewed, standard = RenewedScaling(26), StandardScaling(26)
    xs = [{name: value or 2.0 for name, value in x.items()} for x in xs]
    assert watched(renewed, xs) == watched(standard, xs)
    expected = {name: min(max(d, -3.0), 3.0) for name, d in standard.transform(probe).items()}
    scaled = renewed.transform(probe)
    assert scaled == {**dict.fromkeys(scaled, 0.0), **expected}


def test_what_was_constant_has_a_unit_once_it_varies_and_is_clipped_before():
    scaling = RenewedScaling(10)
    watched(scaling, [{"a": 5.0}] * 10)
    assert scaling.transform({"a": 5.5}) == {"a": 0.5}
    assert scaling.transform({"a": -900.0}) == {"a": -3.0}
    watched(scaling, [{"a": 5.0 + 100.0 * (-1) ** i} for i in range(10)])
    assert scaling.transform({"a": 5.0 + math.sqrt(5000.0)})["a"] == pytest.approx(1.0)


def test_a_feature_is_renewed_if_half_of_the_events_have_it():
    scaling = RenewedScaling(4)
    watched(scaling, [{"a": float(i), "b": float(i), "c": float(i)} for i in range(4)])
    before = scaling.transform({"c": 2.0})
    watched(scaling, [{"a": 9.0}, {"a": 9.0}, {"a": 9.0}, {"a": 9.0, "c": 7.0}])
    assert scaling.transform({"c": 2.0})["c"] == pytest.approx(
        clipped([0.0, 1.0, 2.0, 3.0, 7.0], 5, value=2.0)
    )
    assert scaling.transform({"c": 2.0}) != before
    watched(scaling, [{"a": 9.0}] * 8)
    # Sixteen events, of which five have c and four b.
    assert scaling.transform({"b": 2.0})["b"] == pytest.approx(
        clipped([0.0, 1.0, 2.0, 3.0], 4, value=2.0)
    )


def test_a_late_feature_waits_for_its_own_values_and_is_then_renewed():
    scaling = RenewedScaling(4)
    watched(scaling, rows(4))
    late = [{"late": v} for v in (10.0, 20.0, 30.0, 40.0)]
    assert watched(scaling, late) == [False, False, False, True]
    assert scaling.transform({"late": 25.0}) == {"a": 0.0, "b": 0.0, "late": 0.0}
    watched(scaling, [{"late": v} for v in (50.0, 60.0, 70.0, 80.0)] * 2)
    values = [10.0, 20.0, 30.0, 40.0] + [50.0, 60.0, 70.0, 80.0] * 2
    assert scaling.transform({"late": 60.0})["late"] == pytest.approx(
        clipped(values, 12, value=60.0)
    )


@given(st.lists(st.floats(1.0, 50.0), min_size=2, max_size=9, unique_by=lambda v: round(v, 6)))
def test_rare_values_that_are_usual_for_what_is_not_zero_stay_apart(rare):
    column = [*rare, *[0.0] * 20 * len(rare)]
    scaling = RenewedScaling(len(column))
    watched(scaling, [{"a": v} for v in column])
    scaled = [scaling.transform({"a": v})["a"] for v in sorted(rare)]
    low, high = np.mean(rare) - 3.0 * np.std(rare), np.mean(rare) + 3.0 * np.std(rare)
    usual = [d for d, v in zip(scaled, sorted(rare), strict=True) if low < v < high]
    assert len({round(d, 9) for d in usual}) > 1
    assert all(b > a for a, b in itertools.pairwise(usual))
    assert scaling.transform({"a": high + 1.0}) == {"a": 3.0}


def test_an_indicator_is_as_far_off_as_anything_may_be():
    scaling = RenewedScaling(100)
    watched(scaling, [{"a": float(i == 50)} for i in range(100)])
    assert scaling.transform({"a": 1.0})["a"] == pytest.approx(3.0)


def test_nothing_is_renewed_where_too_much_would_be_learned_again():
    scaling, xs = RenewedScaling(4), rows(40)
    watched(scaling, xs[:8])
    for _ in range(MOST_RELEARNED):
        scaling.learn({}, "y")
    assert any(watched(scaling, xs[8:16]))
    scaling.learn({}, "y")
    before = scaling.state()
    assert not any(watched(scaling, xs[16:]))
    assert scaling.state() == {**before, "n": 40}
    late = [{"late": float(i)} for i in range(4)]
    assert watched(scaling, late) == [False, False, False, True]


def test_texts_and_gaps_pass_a_scaling_that_clips():
    scaling = RenewedScaling(2)
    watched(scaling, [{"a": 1.0, "place": "home"}, {"a": 3.0, "place": "work"}])
    x = {"place": "gym", "a": 90.0, "b": None, "c": math.nan}
    assert scaling.transform(x) == {"place": "gym", "a": 3.0}
    assert scaling.transform({"a": math.nan}) == scaling.transform({}) == {"a": 0.0}


# --- outliers


def with_outliers(n, every, *, gaps=0, first=7):
    """Events of a feature that is -9999 once in so many events, and missing once in `gaps`."""
    rng = np.random.default_rng(n)
    column = rng.normal(20.0, 2.0, n)
    column[first::every] = -9999.0
    return [{} if gaps and i % gaps == 0 else {"a": a} for i, a in enumerate(column.tolist())]


@pytest.mark.parametrize("kind", [RenewedScaling, RecentScaling])
@pytest.mark.parametrize("gaps", [0, 5])
@pytest.mark.parametrize("first", [0, 7, 60, 300])
def test_outliers_are_not_the_unit(kind, gaps, first):
    scaling = kind(200)
    watched(scaling, with_outliers(850, 100, gaps=gaps, first=first))
    low, high, wild = (scaling.transform({"a": a})["a"] for a in (18.0, 22.0, -9999.0))
    # Outliers count as five standard deviations, so that the unit is a little larger.
    assert 0.7 < -low < 1.2
    assert 0.7 < high < 1.2
    assert wild == -3.0


@given(st.floats(1e3, 1e12), st.sets(st.integers(0, 49), min_size=1, max_size=3))
def test_outliers_among_the_first_values_count_as_five_standard_deviations(far, at):
    """In closed form: clipped, they are 3 s from the mean of all 50, where s is of all 50, too."""
    column = np.tile([-1.0, 1.0], 25)
    column[list(at)] = far
    scaling = RenewedScaling(50)
    watched(scaling, [{"a": a} for a in column.tolist()])
    usual = np.delete(column, list(at))
    # Clipped to c, they are (1 - p) (c - u) from the mean of all, where p is their share, and u the
    # mean of the others.
    p = len(at) / 50
    step = math.sqrt(usual.var() * (1 - p) / ((1 - p) ** 2 / 9 - p * (1 - p)))
    clipped = np.append(usual, len(at) * [usual.mean() + step])
    values = np.append(usual, len(at) * [clipped.mean() + 5 * clipped.std()])
    scaled = scaling.transform({"a": 2.0})["a"]
    assert scaled == pytest.approx((2.0 - values.mean()) / values.std(), rel=1e-6)


@pytest.mark.parametrize(
    ("often", "rare", "expected"), [(0.0, 9.0, -0.125), (200.0, 404.0, -0.2041)]
)
def test_where_most_values_are_equal_the_others_are_no_outliers(often, rare, expected):
    scaling = RenewedScaling(50)
    watched(scaling, [{"a": rare if i in (3, 30) else often} for i in range(50)])
    assert scaling.transform({"a": often})["a"] == pytest.approx(expected, abs=1e-4)
    assert scaling.transform({"a": rare})["a"] == pytest.approx(3.0)


def test_a_sensor_that_is_down_for_long_has_not_changed():
    rng = np.random.default_rng(1)
    column = rng.normal(20.0, 2.0, 800)
    column[310:340] = column[520:550] = -9999.0
    scaling = RenewedScaling(200)
    watched(scaling, [{"a": a} for a in column.tolist()])
    low, high, down = (scaling.transform({"a": a})["a"] for a in (18.0, 22.0, -9999.0))
    assert high - low > 0.5
    assert abs(low + high) < 1.0
    assert down == -3.0


def test_a_feature_that_has_changed_for_good_has_no_outliers():
    rng = np.random.default_rng(1)
    column = [*rng.normal(20.0, 0.01, 300), *rng.normal(0.0, 10.0, 500)]
    scaling = RenewedScaling(200)
    watched(scaling, [{"a": a} for a in column])
    expected = (15.0 - np.mean(column)) / np.std(column)
    assert scaling.transform({"a": 15.0})["a"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", [RenewedScaling, RecentScaling])
@pytest.mark.parametrize("gaps", [0, 3])
@pytest.mark.parametrize("n", [20, 49, 50, 51, 130, 420])
def test_what_is_known_of_outliers_survives_a_restart(kind, gaps, n):
    xs = with_outliers(450, 30, gaps=gaps)
    whole, second = whole_and_resumed(kind, 200, xs, n)
    assert second.state() == whole.state()


def test_a_state_of_before_outliers_were_kept_out_is_read():
    scaling, other = RenewedScaling(60), RenewedScaling(60)
    watched(scaling, rows(40))
    state = scaling.state()
    del state["first"]
    other.load_state(state)
    xs = rows(60)[40:]
    assert watched(other, xs) == watched(scaling, xs)
    assert other.transform(xs[0]) == scaling.transform(xs[0])


# --- features weighed by what they tell of the labels


def labelled(n, seed=0):
    """Return rows of which `a` tells the label, and `b` nothing."""
    return [(x, "high" if x["a"] > 0 else "low") for x in rows(n, seed)]


@given(st.integers(20, 60), st.integers(1, 5), st.integers(2, 4), st.integers(0, 99))
def test_weights_leave_distances_as_long_on_average(n, d, m, seed):
    rng = np.random.default_rng(seed)
    weights = weights_of(
        rng.normal(size=(n, d)), [*range(m), *rng.integers(m, size=n - m).tolist()]
    )
    assert np.square(weights).mean() == pytest.approx(1.0)


@given(st.floats(0.01, 100.0), st.floats(-5.0, 5.0), st.integers(0, 99))
def test_weights_depend_on_neither_units_nor_names_of_labels(unit, at, seed):
    """They do on the origin of a feature, whose square counts as well: the mean, once scaled."""
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(40, 3)), [*"pqr", *rng.choice(list("pqr"), size=37).tolist()]
    expected = weights_of(Z, y)
    assert weights_of(Z * unit, y) == pytest.approx(expected)
    assert weights_of(Z, [{"p": 7, "q": "at", "r": at}[label] for label in y]) == pytest.approx(
        expected
    )


def test_a_feature_that_tells_the_label_by_its_square_weighs_most():
    """Of 40 labels: shares of variance 1, 0 and 0, chance 1/39, mean told 1/3."""
    inner, outer = [0.5, -0.5] * 10, [1.5, -1.5] * 10
    others = [1.0, 1.0, -1.0, -1.0] * 10
    Z = np.array([inner + outer, others, [0.0] * 40]).T
    least = 0.3 / 3.0 + 1.0 / 39.0 + 0.05
    squares = np.array([1.0 + least, least, least])
    assert weights_of(Z, ["in"] * 20 + ["out"] * 20) == pytest.approx(
        np.sqrt(squares / squares.mean())
    )


@pytest.mark.parametrize(
    "labels", [["p"] * 40, ["p", "q"] * 9, list(range(14)) * 2], ids=["one", "few", "many classes"]
)
def test_too_few_labels_weigh_nothing(labels):
    assert weights_of(np.ones((len(labels), 2)), labels) is None


def test_no_features_have_no_weights():
    assert weights_of(np.empty((40, 0)), ["p", "q"] * 20) is None


@pytest.mark.parametrize("kind", [RenewedScaling, RecentScaling])
def test_weights_multiply_what_is_scaled_and_clipped_and_survive_a_restart(kind):
    scaling, other = kind(50), kind(50)
    xs = labelled(60)
    watched(scaling, [x for x, _ in xs])
    probe = {"a": 99.0, "b": 104.0, "room": "hall"}
    before = scaling.transform(probe)
    Z = np.array([list(scaling.transform(x).values()) for x, _ in xs])
    scaling.weigh(xs)
    a, b = weights_of(Z, [y for _, y in xs])
    assert a > 1.0 > b
    expected = {"a": before["a"] * a, "b": before["b"] * b, "room": "hall"}
    assert scaling.transform(probe) == expected
    other.load_state(json.loads(json.dumps(scaling.state())))
    assert other.transform(probe) == expected
    assert other.state() == scaling.state()
    scaling.weigh(xs[:9])
    assert scaling.transform(probe) == before


def test_a_state_of_before_features_had_weights_is_read():
    scaling, other = RenewedScaling(50), RenewedScaling(50)
    xs = labelled(60)
    watched(scaling, [x for x, _ in xs])
    state = scaling.state()
    del state["weights"]
    other.load_state(state)
    assert other.state() == scaling.state()
    assert other.transform(xs[0][0]) == scaling.transform(xs[0][0])


# --- scaling by recent measurements


@given(st.integers(3, 12), st.integers(0, 6), st.floats(-500.0, 500.0))
def test_events_before_a_renewal_count_half_as_much_as_those_after_it(warm_up, n_later, value):
    """Weighted moments in closed form; by one or two values, some of these would be outliers."""
    xs = rows(warm_up * (1 + n_later), seed=warm_up)
    scaling = RecentScaling(warm_up)
    changed = watched(scaling, xs)
    assert [i + 1 for i, new in enumerate(changed) if new][-1 - n_later :] == [
        warm_up * k for k in range(1, n_later + 2)
    ]
    column = np.array([x["a"] for x in xs])
    age = n_later - np.arange(len(xs)) // warm_up
    mean = np.average(column, weights=0.5**age)
    std = math.sqrt(np.average(np.square(column - mean), weights=0.5**age))
    expected = float(np.clip((value - mean) / (std if std > 1e-9 else 1.0), -3.0, 3.0))
    assert scaling.transform({"a": value})["a"] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_sensor_that_was_moved_is_scaled_by_where_it_is_now():
    rng, places = random.Random(0), {}
    for kind in (RenewedScaling, RecentScaling):
        scaling = kind(50)
        watched(scaling, [{"a": rng.gauss(0.0, 1.0)} for _ in range(400)])
        watched(scaling, [{"a": rng.gauss(100.0, 1.0)} for _ in range(400)])
        places[kind] = [scaling.transform({"a": a})["a"] for a in (99.0, 101.0)]
    (low, high), (now_low, now_high) = places[RenewedScaling], places[RecentScaling]
    assert high - low < 0.05
    assert now_high - now_low > 0.2


def test_rare_values_are_rare_of_late_as_well():
    """A column with a reading in one event of ten: its unit stays that of the readings."""
    scaling = RecentScaling(50)
    watched(scaling, [{"a": 0.0 if i % 10 else 1.0 + i % 3} for i in range(400)])
    near, far = (scaling.transform({"a": a})["a"] for a in (1.0, 3.0))
    assert near < far - 0.1
    assert far <= 3.0


def test_a_late_feature_waits_for_its_own_values_before_they_fade():
    scaling = RecentScaling(20)
    xs = [{"a": float(i % 7), **({"b": float(i % 5)} if i % 4 == 0 else {})} for i in range(300)]
    changed = watched(scaling, xs)
    assert "b" in scaling.transform({"a": 1.0, "b": 1.0})
    assert changed[76]  # its 20th value, in one event of four


def test_scaling_is_renewed_or_not_or_by_what_is_recent():
    with pytest.raises(ValueError, match=r"rescale must be True, False or 'recent', got 'often'"):
        standard_scaling(200, rescale="often")
    kinds = [type(standard_scaling(9, rescale=how)) for how in (False, True, "recent")]
    assert kinds == [StandardScaling, RenewedScaling, RecentScaling]
    assert type(standard_scaling(0, rescale="recent")) is NoScaling


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
