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
        for name in "abcd":
            found = deadlines.get(name), deadlines.number(name)
            assert found == slow.get(name, (None, None))
        in_order = sorted(slow, key=lambda name: slow[name][1])
        assert deadlines.items() == [(name, slow[name][0]) for name in in_order]


@given(STEPS)
def test_deadlines_that_are_set_again_under_their_numbers_come_in_the_same_order(steps):
    deadlines, again = DeadlineQueue(), DeadlineQueue()
    for step, name, at in steps:
        if step == "set":
            deadlines.set(name, at)
    again.n_set = deadlines.n_set
    for name, at in reversed(deadlines.items()):
        again.reset(name, at, deadlines.number(name))
    assert again.items() == deadlines.items()
    assert [again.pop() for _ in range(len(again))] == [
        deadlines.pop() for _ in range(len(deadlines))
    ]


@pytest.mark.parametrize("number", [0, 2])
def test_a_number_that_was_not_assigned_is_refused(number):
    deadlines = DeadlineQueue()
    deadlines.set("a", 1.0)
    deadlines.reset("a", 2.0, 1)
    with pytest.raises(ValueError, match=f"deadline {number} of 'b' was never set, expected 1 to"):
        deadlines.reset("b", 1.0, number)


def test_nothing_can_be_popped_from_an_empty_set():
    with pytest.raises(IndexError, match="no deadline is set"):
        DeadlineQueue().pop()


def test_cleared_deadlines_do_not_pile_up():
    deadlines = DeadlineQueue()
    for n in range(10_000):
        deadlines.set(str(n), 1e9)
        deadlines.clear(str(n))
    assert len(deadlines._heap) <= 65
