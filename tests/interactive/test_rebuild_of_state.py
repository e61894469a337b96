"""A loop recovered from its consensus log."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import isgp
from streamgp.interactive import InteractiveLoop, LabelledExample
from streamgp.interactive.rebuild import recovered_parts, renumbered
from tests.interactive.stories import MIXED, Story, told

SPANS = {"expires_after_s": 5.0, "answer_horizon_s": 400.0}


def line(n, sequence):
    return LabelledExample(
        event_id=f"e{n}", sequence=sequence, x={}, y="hall", origin="asked", learned_at=0.0
    )


@given(st.lists(st.integers(1, 30)))
def test_doubled_numbers_are_made_to_rise_and_others_stay(sequences):
    numbers = renumbered([line(n, sequence) for n, sequence in enumerate(sequences)])
    if len(set(sequences)) == len(sequences):
        assert numbers == sequences
    else:
        assert all(a < b for a, b in pairwise(numbers))
        assert all(new >= old for new, old in zip(numbers, sequences, strict=True))
    again = [line(n, number) for n, number in enumerate(numbers)]
    assert renumbered(again) == numbers


@pytest.mark.parametrize("seed", range(3))
def test_the_examples_and_their_numbers_come_back(seed):
    loop, messages, log = InteractiveLoop(isgp(seed=1), **SPANS), [], []
    story = Story(seed, labels=MIXED)
    for _ in range(120):
        messages = told(loop, story.next(messages))
        log += [m for m in messages if isinstance(m, LabelledExample)]
    parts = recovered_parts(log, isgp(seed=1), isgp(seed=1), **SPANS)
    again = InteractiveLoop.from_parts(parts, log, isgp(seed=1), **SPANS)
    assert repr(again.model.examples()) == repr(loop.model.examples())  # it may hold NaN
    assert parts["head"]["sequence"] == len(log)
    for _ in range(80):  # it goes on, and no number is given twice
        messages = told(again, story.next(messages))
        log += [m for m in messages if isinstance(m, LabelledExample)]
    assert sorted(each.sequence for each in log) == list(range(1, len(log) + 1))


def test_numbers_that_are_known_to_be_given_are_not_given_again():
    parts = recovered_parts([line(1, 3)], isgp(seed=1), isgp(seed=1), at_least=7)
    assert parts["head"]["sequence"] == 7
