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
def test_alarms_agree_with_a_sorted_list(steps):
    alarms, slow, number = DeadlineQueue(), {}, 0
    for step, name, at in steps:
        if step == "set":
            number += 1
            alarms.set(name, at)
            slow[name] = (at, number)
        elif step == "clear":
            alarms.clear(name)
            slow.pop(name, None)
        elif slow:
            first = min(slow, key=slow.get)
            assert alarms.pop() == first
            del slow[first]
        assert alarms.first() == min((at for at, _ in slow.values()), default=None)
        assert len(alarms) == len(slow)
        assert all(alarms.get(n) == slow.get(n, (None,))[0] for n in "abcd")


def test_nothing_can_be_popped_from_an_empty_set():
    with pytest.raises(IndexError, match="no alarm is set"):
        DeadlineQueue().pop()


def test_cleared_alarms_do_not_pile_up():
    alarms = DeadlineQueue()
    for n in range(10_000):
        alarms.set(str(n), 1e9)
        alarms.clear(str(n))
    assert len(alarms._heap) <= 65
