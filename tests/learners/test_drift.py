import copy
import pickle
import random

import pytest
from river.drift import ADWIN

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


def test_what_is_remembered_hardly_grows():
    """As the logarithm of the number of outcomes: the window of ADWIN is a histogram."""
    watch, sizes = DriftWatch(), []
    for _ in range(3):
        noted(watch, [False] * 20_000)
        sizes.append(len(pickle.dumps(watch)))
    assert sizes[-1] < 1.2 * sizes[0] < 10_000


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda w: pickle.loads(pickle.dumps(w))])
def test_a_copy_goes_its_own_way(copied):
    watch = DriftWatch()
    noted(watch, outcomes((700, 0.1)))
    twin = copied(watch)
    wrong = outcomes((300, 0.5))
    assert noted(twin, wrong) == noted(watch, wrong) != []


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match="delta must be between 0 and 1, got"):
        DriftWatch(delta)
