"""Baselines against a slow and obvious computation of the same."""

from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.evaluation import RunStatistics
from streamgp.evaluation.baselines import ClassBaselines, NumberBaselines
from streamgp.interactive import Event

KEYS = st.sampled_from([None, "ann", "bob"])


def earlier(pairs):
    """Yield the labels of the same key before each event, and its own."""
    for i, (key, y) in enumerate(pairs):
        before = [label for other, label in pairs[:i] if other == key]
        if before:
            yield before, y


def counted(baselines, pairs):
    for key, y in pairs:
        baselines.count(key, y)
    return baselines.found


@given(st.lists(st.tuples(KEYS, st.sampled_from(["a", "b", "c"])), max_size=40))
def test_classes_are_predicted_by_the_last_and_the_most_frequent_label(pairs):
    found = counted(ClassBaselines(), pairs)
    told = list(earlier(pairs))
    assert found["no change"].n == found["majority class"].n == len(told)
    assert found["no change"].n_hits == sum(before[-1] == y for before, y in told)
    hits = 0
    for before, y in told:
        counts, winner = Counter(), None
        for label in before:
            counts[label] += 1
            if winner is None or counts[label] > counts[winner]:
                winner = label
        hits += winner == y
    assert found["majority class"].n_hits == hits


@given(st.lists(st.tuples(KEYS, st.floats(-1e3, 1e3)), max_size=40))
def test_numbers_are_predicted_by_the_last_and_by_the_mean(pairs):
    found = counted(NumberBaselines(), pairs)
    told = list(earlier(pairs))
    if not told:
        assert found["no change"].mae is None
        return
    for name, guess in (("no change", lambda seen: seen[-1]), ("mean so far", fmean)):
        expected = fmean(abs(guess(seen) - y) for seen, y in told)
        assert found[name].mae == pytest.approx(expected, abs=1e-9)


def test_a_key_that_is_forgotten_is_taken_out_and_events_without_a_truth_do_not_count():
    everybody, ann = RunStatistics(), RunStatistics()
    rows = [("ann", "a"), ("bob", "x"), ("ann", "b"), ("bob", None), ("bob", "x")]
    for n, (key, truth) in enumerate(rows):
        event = Event(event_id=str(n), key=key, x={}, occurred_at=float(n), truth=truth)
        for statistics in (everybody, ann) if key == "ann" else (everybody,):
            statistics.event(event)
    assert everybody.baselines()["no change"]["accuracy"] == 0.5
    everybody.remove(ann)
    assert everybody.baselines()["no change"] == {"accuracy": 1.0, "macro_f1": 1.0}
    assert RunStatistics().baselines() == {}
