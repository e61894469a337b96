import copy
import json
import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.drift import ADWIN

from streamgp.learners import drift
from streamgp.learners.drift import DriftWatch


def outcomes(*parts, seed=0):
    """Whether predictions were wrong: parts of a stream, each with its length and error rate."""
    rng = random.Random(seed)
    return [rng.random() < rate for n, rate in parts for _ in range(n)]


def noted(watch, wrong):
    return [i for i, w in enumerate(wrong) if watch.note(w)]


@pytest.mark.parametrize("seed", range(5))
def test_more_errors_are_a_drift(seed):
    [at] = noted(DriftWatch(), outcomes((1000, 0.1), (300, 0.5), seed=seed))
    assert 1000 < at < 1150


@pytest.mark.parametrize("seed", range(5))
def test_fewer_errors_are_none(seed):
    """River's detector, which is told the same, reports them."""
    wrong = outcomes((300, 0.9), (1000, 0.1), seed=seed)
    watch, river = DriftWatch(), ADWIN()
    assert noted(watch, wrong) == []
    assert watch.n_drifts == 0
    assert any(river.update(w) or river.drift_detected for w in wrong)


def test_a_constant_error_rate_is_hardly_ever_taken_for_a_drift():
    found = [noted(DriftWatch(), outcomes((3000, 0.2), seed=seed)) for seed in range(30)]
    assert sum(map(len, found)) <= 2


@pytest.mark.parametrize("seed", range(3))
def test_it_detects_what_river_detects(seed):
    wrong = outcomes((500, 0.1), (500, 0.4), (500, 0.1), (500, 0.6), seed=seed)
    watch, river, expected = DriftWatch(0.01), ADWIN(0.01), []
    for i, w in enumerate(wrong):
        before = river.estimation
        river.update(w)
        if river.drift_detected and river.estimation > before:
            expected.append(i)
    assert noted(watch, wrong) == expected
    assert watch.n_drifts == len(expected) == 2


def test_recurring_drifts_are_found_each_time():
    wrong = outcomes(*[(500, 0.05), (200, 0.5)] * 4)
    found = noted(DriftWatch(), wrong)
    assert [i // 700 for i in found] == [0, 1, 2, 3]


@given(st.lists(st.booleans(), max_size=300), st.lists(st.booleans(), max_size=300))
def test_a_restored_watch_goes_on_the_same(before, after):
    watch, twin = DriftWatch(0.2), DriftWatch(0.2)
    noted(watch, [w for w in before for _ in range(4)])
    twin.load_state(json.loads(json.dumps(watch.state())))
    for wrong in [w for w in after for _ in range(4)]:
        assert watch.note(wrong) == twin.note(wrong)
    assert watch.state() == twin.state()


def test_what_is_remembered_is_bounded_and_restored_as_well(monkeypatch):
    monkeypatch.setattr(drift, "_MOST", 600)
    monkeypatch.setattr(drift, "_LEFT", 400)
    watch, twin = DriftWatch(), DriftWatch()
    noted(watch, outcomes((2500, 0.3)))
    state = watch.state()
    assert state["n"] <= 600
    assert len(state["outcomes"]) <= 100
    twin.load_state(state)
    wrong = outcomes((1000, 0.3), (300, 0.7), seed=1)
    assert noted(watch, wrong) == noted(twin, wrong) != []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_goes_its_own_way(copied):
    watch = DriftWatch()
    noted(watch, outcomes((700, 0.1)))
    twin = copied(watch)
    wrong = outcomes((300, 0.5))
    assert noted(twin, wrong) == noted(watch, wrong) != []


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match="delta must lie between 0 and 1, got"):
        DriftWatch(delta)
