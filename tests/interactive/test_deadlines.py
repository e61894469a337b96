import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.interactive.deadlines import DeadlineQueue

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcd"), st.integers(0, 5)),
        st.tuples(st.just("clear"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_deadlines_agree_with_a_sorted_list(steps):
    deadlines, slow, number = DeadlineQueue(), {}, 0
    for step, name, at in steps:
        if step == "set":
            number += 1
            deadlines.set(name, at)
            slow[name] = (at, number)
        elif step == "clear":
            deadlines.clear(name)
            slow.pop(name, None)
        elif slow:
            first = min(slow, key=slow.get)
            assert deadlines.pop() == first
            del slow[first]
        assert deadlines.first() == min((at for at, _ in slow.values()), default=None)
        assert len(deadlines) == len(slow)
        assert all(deadlines.get(n) == slow.get(n, (None,))[0] for n in "abcd")


def test_nothing_can_be_popped_from_an_empty_set():
    with pytest.raises(IndexError, match="no deadline is set"):
        DeadlineQueue().pop()


def test_cleared_deadlines_do_not_pile_up():
    deadlines = DeadlineQueue()
    for n in range(10_000):
        deadlines.set(str(n), 1e9)
        deadlines.clear(str(n))
    assert len(deadlines._heap) <= 65
