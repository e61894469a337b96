import enum
from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import tree

from streamgp import (
    GPClassifier,
    InteractiveLoop,
    OnlineForestClassifier,
    SkepticalClassifier,
    isgp,
)
from streamgp.common.feature_values import (
    as_number,
    features_of,
    is_missing,
    plain_features,
    text_code,
)
from streamgp.interactive import Event, KeyedLoops


@given(st.text() | st.text(min_size=101), st.text())
def test_the_code_of_a_text_is_a_whole_number_and_no_other_texts(text, other):
    code = text_code(text)
    assert code.is_integer()
    assert 1.0 <= code <= 2.0**53
    assert (text_code(other) == code) == (other == text)


def test_codes_are_the_same_for_ever():
    """Recorded when codes were introduced: learners on record depend on them."""
    assert text_code("hall") == 2762829288079104.0
    assert text_code("\ud800") == 2323332625223586.0


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT])
def test_the_missing_values_of_pandas_are_missing_everywhere(missing):
    x, plain = {"light": missing, "noise": 1.0}, {"light": None, "noise": 1.0}
    assert is_missing(missing)
    assert as_number("light", missing) == 0.0
    assert plain_features(x) == plain
    for make in (GPClassifier, lambda: OnlineForestClassifier(seed=1), lambda: isgp(seed=1)):
        one, other = make(), make()
        for n in range(40):
            one.learn_one({"light": float(n % 3), "noise": n % 2}, n % 2)
            other.learn_one({"light": float(n % 3), "noise": n % 2}, n % 2)
            one.learn_one(x, 1)
            other.learn_one(plain, 1)
        assert one.predict_proba_one(x) == other.predict_proba_one(plain)
        for model in (one, other):
            model.learn_one({"light": 1.0, "noise": 1.0}, 0)
        assert one.predict_proba_one(x) == other.predict_proba_one(plain)


@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_times_of_numpy_are_no_numbers(kind):
    """In nanoseconds, `float` takes them for one; in other units it refuses them."""
    time, missing = np.array([3, "NaT"], f"{kind}[ns]")
    for make in (GPClassifier, lambda: OnlineForestClassifier(seed=1), lambda: isgp(seed=1)):
        model = make()
        with pytest.raises(
            TypeError, match=f"^feature 'at' must be a number or a string, got np.{kind}"
        ):
            model.learn_one({"at": time}, 1)
        model.learn_one({"light": 0.5, "at": missing}, 1)
        assert model.predict_proba_one({"light": 0.5, "at": missing}) == {1: 1.0}


def test_a_tensor_is_no_feature():
    class Tensor:
        """Of two numbers, as in torch."""

        def __ne__(self, other):
            return self

        def __bool__(self):
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    for model in (GPClassifier(), isgp(seed=1)):
        with pytest.raises(TypeError, match="feature 'a' must be a number or a string, got <"):
            model.learn_one({"a": Tensor()}, 1)


def test_features_that_cannot_be_compared_with_the_last_ones_are_others():
    x, model = {"light": 0.5}, isgp(seed=1)
    model.learn_one(x, "home")
    for value in (pd.NA, np.array([0.5, 0.5])):  # in place, after x was seen
        x["light"] = value
        with nullcontext() if is_missing(value) else pytest.raises(TypeError, match=" got array"):
            assert model.predict_proba_one(x) == {"home": 1.0}


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT])
def test_the_missing_values_of_pandas_are_none_for_learners_of_river(missing):
    def make():
        model = tree.HoeffdingTreeClassifier(grace_period=20, leaf_prediction="nb")
        return SkepticalClassifier(model, warm_up=0, seed=1)

    loops = []
    for value in (missing, None):
        loop = InteractiveLoop(make())
        for n in range(60):
            x = {"a": (value, "hall", "gym")[n % 3]}
            loop.on_event(Event(event_id=str(n), x=x, y=n % 5 % 2, occurred_at=n), now=n)
        loops.append(loop)
    again = InteractiveLoop.restore(loops[0].snapshot(), make())
    [proba, *others] = [
        each.model.predict_proba_one({"a": missing}) for each in (loops[1], loops[0], again)
    ]
    assert [proba] * 2 == others


def test_names_of_numpy_are_saved_as_plain_ones():
    plain = plain_features({np.str_("light"): 1.0, np.int64(3): 2.0})
    assert plain == [["light", 1.0], [3, 2.0]]
    assert [type(name) for name, _ in plain] == [str, int]


class Place(enum.StrEnum):
    HALL = "hall"


class Floor(enum.IntEnum):
    FIRST = 1


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Decimal("0.1"), 0.1),
        (Fraction(1, 3), 1 / 3),
        (np.longdouble(0.5), 0.5),
        (pa.scalar(0.1), 0.1),
        (pa.scalar(3), 3),
        (pa.scalar("hall"), "hall"),
        (pa.scalar(None), None),
        (Floor.FIRST, 1),
        (Place.HALL, "hall"),
        (Decimal("NaN"), None),
    ],
)
def test_a_feature_of_any_type_is_learned_and_saved_as_a_plain_one(value, plain):
    loops = []
    for a in (value, plain):
        loop = InteractiveLoop(isgp(seed=1))
        for n in range(5):
            event = Event(event_id=str(n), x={"a": a, "b": n / 3}, y=n % 2, occurred_at=n)
            loop.on_event(event, now=n)
        loops.append(loop)
    [one, other] = loops
    again = InteractiveLoop.restore(one.snapshot(), isgp(seed=1))
    x = {"a": value, "b": 0.5}
    proba = other.model.predict_proba_one({"a": plain, "b": 0.5})
    assert one.model.predict_proba_one(x) == again.model.predict_proba_one(x) == proba
    assert again.snapshot() == one.snapshot()


class Unreadable:
    """Looks like a scalar of pyarrow, and is none."""

    def __repr__(self):
        return "Unreadable()"

    def as_py(self):
        raise RuntimeError("not readable")


@pytest.mark.parametrize(
    "value", [Decimal("sNaN"), pa.scalar(2**62, pa.timestamp("s")), Unreadable()], ids=repr
)
def test_a_value_that_cannot_be_converted_is_refused_in_words(value):
    x = {"a": value, "b": 1.0}
    assert not is_missing(value)
    for make in (GPClassifier, lambda: OnlineForestClassifier(seed=1), lambda: isgp(seed=1)):
        model = make()
        model.learn_one({"a": 1.0, "b": 2.0}, 1)
        for call in (model.predict_proba_one, lambda x, model=model: model.learn_one(x, 1)):
            with pytest.raises(TypeError, match="feature 'a' must be a number or a string"):
                call(x)
    event = Event(event_id="e1", key="ann", x=x, occurred_at=0.0)
    [refused] = InteractiveLoop(isgp(seed=1)).on_event(event, now=0.0)
    assert refused.reason.startswith("the learner refuses it: feature 'a' must be a number or a")
    [refused] = KeyedLoops(isgp(seed=1), keep_changes=True).on_event(event, now=0.0)
    assert refused.reason.startswith("feature 'a' must be a number or a string")


@pytest.mark.parametrize("plain", [{"a": []}, {"a": [1.0]}, [["a", [2]]]])
def test_what_cannot_be_saved_is_no_saved_feature(plain):
    with pytest.raises(ValueError, match=r"^features must be numbers or strings, got "):
        features_of(plain)
