import copy
import math
import pickle
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.common.feature_values import python_name, text_code
from streamgp.features import Columns, ColumnsWithGaps

names = st.text(max_size=3)
numbers = st.floats(-1e150, 1e150)
texts = st.text(max_size=3)
mixed = st.dictionaries(names, numbers | texts | st.booleans() | st.none() | st.just(math.nan))


@given(st.dictionaries(names, numbers), st.randoms(use_true_random=False))
def test_a_vector_holds_the_values_by_name_in_any_order(x, random):
    columns = Columns().widened(x)
    items = list(x.items())
    random.shuffle(items)
    assert columns.vector(dict(items)).tolist() == [x[name] for name in columns.names]


@given(st.dictionaries(names, numbers), st.dictionaries(names, numbers))
def test_widening_appends_and_keeps_the_old_columns(x, more):
    old = Columns().widened(x)
    new = old.widened(more)
    assert new.names[: len(old)] == old.names
    assert set(new.names) == x.keys() | more.keys()
    assert new.vector(x).tolist() == [*old.vector(x).tolist(), *[0.0] * (len(new) - len(old))]


@given(st.dictionaries(names, numbers, min_size=1))
def test_the_fast_path_equals_the_careful_one(x):
    columns = Columns().widened(x)
    fast = columns.known_vector(x)
    careful = columns.vector({**x, "a name of its own": 1.0})
    assert careful.tobytes() == columns.vector(x).tobytes()
    assert fast is None or fast.tobytes() == careful.tobytes()


def test_columns_of_one_call_do_not_depend_on_the_order_of_the_features():
    assert Columns().widened({"b": 1, "a": 2}).names == ("a", "b")


def test_names_may_be_of_different_types():
    x = {1: 0.5, "1": 1.5, ("a", 2): 2.5, None: 3.5}
    columns = Columns().widened(x)
    assert columns.vector(x).tolist() == [x[name] for name in columns.names]
    assert columns.widened(dict(reversed(x.items()))) is columns


def test_names_of_numpy_come_in_the_order_of_those_that_a_restart_makes_of_them():
    names = ["b", np.str_("a"), np.int64(10), 9, np.float64(0.5)]
    ours = Columns().widened(dict.fromkeys(names, 1.0)).names
    plain = Columns().widened({python_name(name): 1.0 for name in names}).names
    assert ours == plain
    assert {type(name) for name in plain} == {str, int, float}


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, np.float32("nan")])
def test_missing_values_are_zero(missing):
    columns = Columns(["a", "b"])
    assert columns.vector({"a": 1.0, "b": missing}).tolist() == [1.0, 0.0]
    assert columns.vector({"a": 1.0}).tolist() == [1.0, 0.0]


def test_features_without_a_column_are_left_out():
    assert Columns(["a"]).vector({"a": 1.0, "b": 2.0}).tolist() == [1.0]


@pytest.mark.parametrize(
    "value",
    [2, True, np.float32(2.5), np.int64(3), np.bool_(True), Decimal("2.5"), Fraction(1, 2)],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_number_is_a_number(value):
    assert Columns(["a", "b"]).vector({"a": value, "b": 0.25}).tolist() == [float(value), 0.25]


def test_small_numpy_integers_do_not_overflow():
    x = {"a": np.uint8(200), "b": np.uint8(100), "c": np.int8(-128)}
    assert Columns("abc").vector(x).tolist() == [200.0, 100.0, -128.0]


def test_large_values_survive_and_too_large_ones_are_refused():
    assert Columns("ab").vector({"a": 1e150, "b": -1e150}).tolist() == [1e150, -1e150]
    with pytest.raises(ValueError, match=r"'b' must be at most 1e\+150 in size, got -1e\+200"):
        Columns("ab").vector({"a": 1e150, "b": -1e200})


@pytest.mark.parametrize("value", [b"1", [1.0], 1j, object(), {}])
@pytest.mark.parametrize("alone", [True, False])
def test_what_is_neither_number_nor_text_is_refused_by_name(value, alone):
    x = {"light": value} if alone else {"light": value, "noise": 1.0}
    with pytest.raises(TypeError, match=r"feature 'light' must be a number or a string, got .*; e"):
        Columns(x).vector(x)
    with pytest.raises(TypeError, match=r"feature 'light' must be a number or a string, got .*; e"):
        Columns(x, texts=range(len(x))).vector(x)


@pytest.mark.parametrize(
    "value",
    [math.inf, -math.inf, np.float64("inf"), 10**400, -(10**400)],
    ids=["inf", "-inf", "numpy", "long", "-long"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_infinity_is_refused_by_name(value, alone):
    x = {"light": value} if alone else {"light": value, "noise": 1.0}
    with pytest.raises(ValueError, match=r"feature 'light' must be finite, got .*; leave it out"):
        Columns(x).vector(x)


@pytest.mark.parametrize(("value", "error"), [(b"on", TypeError), (math.inf, ValueError)])
def test_features_without_a_column_must_be_possible_all_the_same(value, error):
    """Otherwise an event would be predicted and asked about, and its label could not be learned."""
    with pytest.raises(error, match="feature 'b' must be"):
        Columns(["a"]).vector({"a": 1.0, "b": value})


def test_opposite_infinities_are_not_a_missing_value():
    with pytest.raises(ValueError, match="must be finite"):
        Columns("ab").vector({"a": math.inf, "b": -math.inf})


def test_no_features_are_an_empty_vector():
    assert Columns().vector({}).shape == (0,)
    assert Columns().vector({"a": 1.0}).shape == (0,)
    assert Columns(["a"]).vector({}).tolist() == [0.0]


@pytest.mark.parametrize("kind", [OrderedDict, MappingProxyType])
def test_any_mapping_will_do(kind):
    assert Columns("ab").vector(kind({"b": 2.0, "a": 1.0})).tolist() == [1.0, 2.0]


def test_a_vector_does_not_follow_its_dictionary():
    x = {"a": 1.0}
    vector = Columns(["a"]).vector(x)
    x["a"] = 2.0
    assert vector.tolist() == [1.0]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_convert_alike(copied):
    columns = Columns(["b", 1, "a"])
    twin = copied(columns)
    assert twin.names == columns.names
    assert twin.vector({"a": 1, "b": 2, 1: 3}).tolist() == [2.0, 3.0, 1.0]


# --- texts


def coordinates(x, columns):
    """Return the vector of features, one by one."""
    vector = []
    for i, name in enumerate(columns.names):
        value = x.get(name)
        is_text = i in columns.texts
        if value is None or value != value or isinstance(value, str) != is_text:
            vector.append(0.0)
        else:
            vector.append(text_code(value) if is_text else float(value))
    return vector


@given(st.lists(mixed, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_numbers_and_texts_have_columns_of_their_own_in_any_order_of_the_features(log, random):
    columns = shuffled_columns = Columns()
    for x in log:
        items = list(x.items())
        random.shuffle(items)
        columns = columns.widened(x)
        shuffled_columns = shuffled_columns.widened(dict(items))
    assert shuffled_columns.names == columns.names
    assert shuffled_columns.texts == columns.texts
    for x in (*log, log[0]):
        assert columns.vector(x).tolist() == coordinates(x, columns)
        assert columns.widened(x) is columns


@given(mixed, mixed)
def test_the_fast_path_of_texts_equals_the_careful_one(x, seen):
    columns = Columns().widened(seen)
    fast = columns.known_vector(x)
    careful = columns.vector({**x, "a name of its own": 1.0})
    assert fast is None or fast.tobytes() == careful.tobytes()
    assert columns.vector(x).tobytes() == careful.tobytes()


def test_a_text_that_is_new_needs_no_new_column():
    columns = Columns().widened({"light": 1.0, "place": "hall"})
    x = {"light": 0.5, "place": "never seen"}
    assert columns.widened(x) is columns
    assert columns.known_vector(x).tolist() == [0.5, text_code("never seen")]


def test_a_feature_may_be_a_number_now_and_a_text_later():
    columns = Columns().widened({"a": 1.0}).widened({"a": "many"})
    assert (columns.names, columns.texts) == (("a", "a"), (1,))
    assert columns.vector({"a": 2.0}).tolist() == [2.0, 0.0]
    assert columns.vector({"a": "few"}).tolist() == [0.0, text_code("few")]
    assert columns.vector({"a": None}).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("seen", "x"), [({"a": 1.0}, {"a": "many"}), ({"a": "many"}, {"a": 1.0})])
def test_what_a_feature_has_never_been_is_left_out_until_it_is_learned(seen, x):
    columns = Columns().widened(seen)
    assert columns.known_vector(x) is None
    assert columns.vector(x).tolist() == [0.0]
    assert len(columns.widened(x)) == 2


@pytest.mark.parametrize("missing", [None, math.nan, np.float64("nan")])
def test_a_missing_value_is_no_text_and_makes_no_column(missing):
    columns = Columns().widened({"place": "hall", "light": 1.0})
    assert columns.vector({"place": missing, "light": 2.0}).tolist() == [2.0, 0.0]
    assert columns.vector({"light": 2.0}).tolist() == [2.0, 0.0]
    assert columns.widened({"new": missing, "place": missing}) is columns
    assert len(Columns().widened({"a": missing})) == 0


def test_truth_values_are_numbers():
    columns = Columns().widened({"open": True, "closed": np.bool_(False), "place": "hall"})
    assert columns.texts == (2,)
    assert columns.vector({"open": True, "closed": False}).tolist() == [0.0, 1.0, 0.0]


def test_numpy_texts_are_texts():
    columns = Columns().widened({"place": np.str_("hall")})
    assert columns.vector({"place": np.str_("hall")}).tolist() == [text_code("hall")]


def test_columns_of_some_features():
    columns = Columns().widened({"a": 1.0, "b": "x", "c": 2.0}).widened({"a": "y"})
    positions, mine = columns.restricted(["c", "a", "never"])
    assert positions == [0, 2, 3]
    assert (mine.names, mine.texts) == (("a", "c", "a"), (2,))


def test_texts_that_differ_are_a_root_of_two_apart_and_one_from_none():
    columns = Columns().widened({"light": 1.0, "place": "hall"})
    log = [
        {"light": 3.0, "place": "hall"},
        {"light": 3.0, "place": "bath"},
        {"light": 3.0},
        {"place": "hall"},
    ]
    points = np.array([columns.vector(x) for x in log])
    distances = columns.distances(points, points[0])
    assert distances.tolist() == [0.0, math.sqrt(2.0), 1.0, 3.0]
    assert columns.distances(points, points[2]).tolist()[2:] == [0.0, math.sqrt(10.0)]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_convert_texts_alike(copied):
    columns = Columns().widened({"a": 1.0, "place": "hall"})
    x = {"place": "bath", "a": 2.0}
    assert copied(columns).known_vector(x).tobytes() == columns.vector(x).tobytes()


@given(mixed, mixed)
def test_with_gaps_a_missing_number_is_nan_and_all_else_as_without(x, more):
    columns = ColumnsWithGaps().widened(x).widened(more)
    plain = Columns(columns.names, columns.texts)
    with_gaps, without = columns.vector(x), plain.vector(x)
    for i, name in enumerate(columns.names):
        is_text = i in columns.texts
        there = (
            name in x and isinstance(x[name], str) == is_text and x[name] not in (None, math.nan)
        )
        if there and x[name] == x[name]:
            assert with_gaps[i] == without[i]
        else:
            assert with_gaps[i] == 0.0 if is_text else math.isnan(with_gaps[i])


def test_columns_with_gaps_stay_so():
    columns = ColumnsWithGaps().widened({"a": 1.0})
    for copied in (columns, copy.deepcopy(columns), pickle.loads(pickle.dumps(columns))):
        assert math.isnan(copied.vector({})[0])
        assert math.isnan(copied.widened({"b": 1.0}).vector({"b": 2.0})[0])


@pytest.mark.parametrize("value", [b"loud", math.inf])
def test_with_gaps_the_same_values_are_refused(value):
    with pytest.raises((TypeError, ValueError), match="feature 'a' must be"):
        ColumnsWithGaps(["a"]).vector({"a": value})
