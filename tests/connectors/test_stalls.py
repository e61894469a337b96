"""Time that counts for patience."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.stalls import WakingClock

steps = st.lists(st.floats(0.0, 1e4), min_size=1, max_size=20)


def times_after(steps):
    at = 1e3
    yield at
    for step in steps:
        at += step
        yield at


@given(steps, st.floats(0.1, 10.0))
def test_no_look_counts_for_more_than_the_longest_wait(steps, longest_s):
    clock = WakingClock(longest_s, times_after(steps).__next__)
    expected = 0.0
    for step in steps:
        expected += min(step, longest_s)
        assert clock() == pytest.approx(expected, abs=1e-9)


def test_while_it_is_looked_at_it_is_a_clock():
    clock = WakingClock(1.0, times_after([0.5] * 100).__next__)
    assert [clock() for _ in range(100)][-1] == 50.0
