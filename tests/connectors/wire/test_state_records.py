import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.wire.codec import MAX_BYTES
from connectors.wire.state_records import consensus_key, parts_of, records_of_part, state

# --- writing


def test_state_that_is_gone_is_a_null():
    assert state("ann", "head", None, 3).value is None


def test_a_tuple_is_written_as_a_list():
    assert b'"value":[null,[1]]' in state("ann", "head", (None, (1,)), 3).value


@pytest.mark.parametrize(
    "value",
    [float("nan"), [1, {"a": float("inf")}], {"a": (-float("inf"),)}, [1 << 70, float("nan")]],
)
def test_what_is_not_finite_is_not_written(value):
    with pytest.raises(ValueError, match=r"^state 'head' of 'ann' must hold finite numbers only$"):
        state("ann", "head", value, 3)


@pytest.mark.parametrize("value", [[None, -1.7e308, 1e305], {"none": None, "seed": 1 << 70}])
def test_whatever_is_finite_is_written_next_to_none(value):
    assert json.loads(state("ann", "head", value, 3).value)["value"] == value


def test_what_is_no_json_is_not_written():
    with pytest.raises(TypeError, match=r"^state must be plain JSON values, got <object"):
        state("ann", "head", [object()], 3)


def test_what_is_too_large_is_not_written():
    with pytest.raises(ValueError, match=r"^state 'head' of 'ann' must have at most 16777216 byte"):
        state("ann", "head", "a" * MAX_BYTES, 3)


@given(
    st.lists(st.text(max_size=5).filter(lambda text: "\x1f" not in text), min_size=2, max_size=2)
)
def test_a_key_is_taken_apart_as_it_was_put_together(parts):
    entity, event_id = parts
    assert parts_of(consensus_key(entity, event_id, 3)) == (entity, event_id, "3")
    assert parts_of(state(entity, event_id, 1, 0).key) == (entity, event_id)


@pytest.mark.parametrize(("entity", "name"), [("a\x1f", "b"), ("a", "\x1fb")])
def test_no_part_of_a_key_holds_a_separator(entity, name):
    with pytest.raises(ValueError, match=r"^no part of a key may hold '\\x1f', got "):
        state(entity, name, 1, 0)


def test_an_ordinary_part_is_one_record():
    assert records_of_part("ann", "head", {"n": 3}, 2) == [state("ann", "head", {"n": 3}, 2)]
    assert records_of_part("ann", "head", None, 2) == [state("ann", "head", None, 2)]
