import itertools
import json
import math
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
    StandardScaling,
    standard_scaling,
)
from streamgp.scaling.column_forms import NormalScores, weights_of
from tests.helpers.scalings import events, rows, watched, whole_and_resumed

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


# --- what labels tell of columns


def labelled(n, seed=0):
    """Return rows of which `a` tells the label, and `b` nothing."""
    return [(x, "high" if x["a"] > 0 else "low") for x in rows(n, seed)]


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


@pytest.mark.parametrize("gap", [{}, {"c": None}, {"c": "off"}])
def test_what_is_no_number_is_weighed_as_the_mean(gap):
    """`c` is given in one event of three, too rarely to be filled in."""
    scaling, xs = RenewedScaling(20), labelled(90)
    for n, (x, _) in enumerate(xs):
        c = x.pop("b")
        x.update(gap if n % 3 else {"c": c})
    watched(scaling, [x for x, _ in xs])
    seen = [scaling.transform(x) for x, _ in xs]
    Z = np.array([[z["a"], 0.0 if n % 3 else z["c"]] for n, z in enumerate(seen)])
    scaling.weigh(xs)
    assert scaling.forms == {}
    assert [scaling.weights[name] for name in "ac"] == weights_of(Z, [y for _, y in xs]).tolist()


def heavy(n, seed=0):
    """Return rows whose log-normal `a` tells the label; `b` is far away where the label is rare."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    b[is_rare := rng.random(n) < 0.15] += 50.0
    y = np.where(is_rare, "rare", np.where(a > 0, "high", "low"))
    return [({"a": math.exp(3.0 * a[i]), "b": float(b[i])}, str(y[i])) for i in range(n)]


@pytest.mark.parametrize("kind", [RenewedScaling, RecentScaling])
def test_a_heavy_tail_counts_by_its_ranks_if_these_tell_more(kind):
    scaling, other = kind(100), kind(100)
    examples = heavy(100)
    watched(scaling, [x for x, _ in examples])
    before = [scaling.transform(x) for x, _ in examples]
    scaling.weigh(examples)
    assert scaling.forms == {"a": ["ranks"]}
    after = [scaling.transform(x) for x, _ in examples]
    factors = {b["b"] / a["b"] for a, b in zip(before, after, strict=True)}
    assert len({round(factor, 12) for factor in factors}) == 1
    scores = NormalScores.of(np.array([x["a"] for x, _ in examples]))
    Z = np.array([[scores(x["a"]), z["b"]] for (x, _), z in zip(examples, before, strict=True)])
    weight, _ = weights_of(Z, [y for _, y in examples])
    assert [z["a"] for z in after] == pytest.approx((weight * Z[:, 0]).tolist())
    low, high = (scaling.transform({"a": a, "b": 0.0})["a"] for a in (0.1, 10.0))
    assert high - low > 1.0
    other.load_state(json.loads(json.dumps(scaling.state())))
    assert other.state() == scaling.state()
    assert [other.transform(x) for x, _ in examples] == after
    scaling.weigh(examples[:9])
    assert [scaling.transform(x) for x, _ in examples] == before


@pytest.mark.parametrize("value", [None, math.nan, "off"])
def test_what_is_no_number_has_no_score(value):
    scaling = RenewedScaling(100)
    examples = heavy(100)
    watched(scaling, [x for x, _ in examples])
    expected = scaling.transform({"a": value})
    scaling.weigh(examples)
    assert scaling.transform({"a": value}) == expected
    assert scaling.forms == {"a": ["ranks"]}
    assert scaling.transform({"a": Decimal(5)}) == scaling.transform({"a": 5.0})


def rooms(n, seed=0):
    """Return rows of which `room` tells the label as a name, and `door` by being missing."""
    rng = np.random.default_rng(seed)
    found = []
    for room in rng.integers(6, size=n).tolist():
        is_open = rng.random() < 0.5
        x = {"a": float(rng.normal()), "room": room, "door": float(rng.normal())}
        if is_open:
            del x["door"]
        found.append((x, f"{'open' if is_open else 'closed'} {room % 2}"))
    return found


@pytest.mark.parametrize("kind", [RenewedScaling, RecentScaling])
def test_names_and_what_is_missing_count_as_such_and_survive_a_restart(kind):
    scaling, other, without = kind(100), kind(100), kind(100, takes_texts=False)
    examples = rooms(100)
    for each in (scaling, without):
        watched(each, [x for x, _ in examples])
    before = scaling.transform(examples[0][0])
    scaling.weigh(examples)
    without.weigh(examples)
    assert scaling.forms == {"room": ["name"], "door": ["missing"]}
    assert without.forms == {"door": ["missing"]}
    assert scaling.weights.keys() == {"a", "door"}
    assert scaling.weights["door"] > 2.0 * scaling.weights["a"]
    seen = scaling.transform({"a": 0.0, "room": 3, "door": None})
    assert seen["room"] == "3.0"
    assert abs(seen["door"]) == pytest.approx(3.0 * scaling.weights["door"])
    assert scaling.transform({"a": 0.0, "room": 3, "door": math.nan}) == seen
    assert "room" not in scaling.transform({"a": 0.0, "door": 0.0})
    assert "room" not in scaling.transform({"room": math.nan, "a": 0.0})
    assert scaling.transform({"room": "hall"})["room"] == "hall"
    for value in (3.0, True + 2, np.float32(3), Decimal(3)):
        assert scaling.transform({"room": value})["room"] == "3.0"
    assert scaling.transform({"room": -0.0})["room"] == scaling.transform({"room": 0})["room"]
    other.load_state(json.loads(json.dumps(scaling.state())))
    assert other.state() == scaling.state()
    assert [other.transform(x) for x, _ in examples] == [scaling.transform(x) for x, _ in examples]
    scaling.weigh(examples[:9])
    assert scaling.transform(examples[0][0]) == before
    assert scaling.forms == {}


@pytest.mark.parametrize(("value", "forms"), [(None, {"door": ["missing"]}), ("off", {})])
def test_a_text_among_numbers_is_not_missing(value, forms):
    scaling = RenewedScaling(100)
    for x, _ in (examples := [({"door": value, **x}, y) for x, y in rooms(100)]):
        del x["room"]
        scaling.observe(x)
    scaling.weigh(examples)
    assert scaling.forms == forms
    assert scaling.weights.keys() == {"a", "door"}


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, 1e200, 10**400], ids=["inf", "-inf", "1e200", "10**400"]
)
def test_what_is_too_large_tells_nothing_of_columns(value):
    """It may be learned without being observed, and must not end every later renewal."""
    scaling, other = RenewedScaling(100), RenewedScaling(100)
    examples = rooms(100)
    for each in (scaling, other):
        watched(each, [x for x, _ in examples])
    scaling.weigh(examples)
    other.weigh([*examples, ({**examples[0][0], "a": value}, "open 1")])
    assert other.state() == scaling.state()


def test_without_numbers_there_is_nothing_to_find():
    scaling = RenewedScaling(20)
    examples = [({"room": "hall" if n % 2 else "den"}, n % 2) for n in range(40)]
    watched(scaling, [x for x, _ in examples])
    scaling.weigh(examples)
    assert (scaling.forms, scaling.weights) == ({}, {})
    assert scaling.transform({"room": "hall"}) == {"room": "hall"}


@pytest.mark.parametrize("n_parts", [0, 1])
def test_a_state_of_before_columns_had_weights_or_forms_is_read(n_parts):
    scaling, other = RenewedScaling(50), RenewedScaling(50)
    xs = labelled(60)
    watched(scaling, [x for x, _ in xs])
    state = scaling.state()
    for name in ("forms", "weights")[n_parts:]:
        del state[name]
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
