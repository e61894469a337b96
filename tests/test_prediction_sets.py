"""Conformal prediction sets."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.naive_bayes import GaussianNB

from streamgp import datasets
from streamgp.metrics import PredictionSets
from tests.helpers.laws import examples


@examples(40)
@given(st.integers(0, 999), st.sampled_from([0.05, 0.1, 0.3]), st.sampled_from([0.02, 0.1]))
def test_coverage_is_as_promised_for_any_probabilities(seed, alpha, step):
    """The bound of Gibbs and Candès (Proposition 4.1), for every sequence of known labels."""
    rng, sets, n = random.Random(seed), PredictionSets(alpha, step), 400
    for i in range(n):
        p = rng.random() ** (1 + 4 * (i > 200))
        sets.update(rng.choice("ab") if i % 3 else "a", {"a": p, "b": 1.0 - p})
    bound = (max(alpha, 1.0 - alpha) + step) / (step * n)
    assert abs(sets.coverage - (1.0 - alpha)) <= bound


def test_the_quantile_is_that_of_numpy():
    rng = np.random.default_rng(1)
    sets = PredictionSets(alpha=0.2, step=1e-12, window=50)
    scores = rng.uniform(size=80)
    for score in scores:
        sets.update("a", {"a": 1.0 - score, "b": score})
    most = np.quantile(scores[-50:], math.ceil(0.8 * 51) / 50, method="inverted_cdf")
    assert sets.predict_one({"in": 1.0001 - most, "out": 0.9999 - most}) == ["in"]


def test_a_label_never_met_is_in_no_set_and_the_first_sets_hold_all():
    sets = PredictionSets()
    assert sets.predict_one({"a": 0.0, "b": 1.0}) == ["b", "a"]
    assert (sets.predict_one({}), sets.coverage) == ([], 0.0)
    sets.update("c", {"a": 0.5, "b": 0.5})
    assert sets.coverage == 0.0
    sets.update("a", {"a": 0.5, "b": 0.5})
    assert sets.coverage == 0.5


def test_a_label_never_met_is_in_no_set_however_many_there_are():
    sets, known = PredictionSets(alpha=0.3, step=0.001, window=20), {"a": 0.75, "b": 0.25}
    for _ in range(20):
        sets.update("never met", known)
        assert sets.coverage == 0.0
    sets.update("a", known)
    assert sets.coverage == 1.0 / 21.0


def test_sets_of_a_better_classifier_are_smaller():
    stream = list(datasets.GaussianClasses(seed=1).take(600))
    model, knowing, guessing = GaussianNB(), PredictionSets(), PredictionSets()
    sizes = [0, 0]
    even = dict.fromkeys({y for _, y in stream}, 1.0 / 6.0)
    for x, y in stream:
        proba = model.predict_proba_one(x)
        for i, (sets, p) in enumerate(((knowing, proba), (guessing, even))):
            sizes[i] += len(sets.predict_one(p))
            sets.update(y, p)
        model.learn_one(x, y)
    assert sizes[0] < 0.5 * sizes[1]
    assert abs(knowing.coverage - 0.9) < 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.0}, "alpha must be between 0 and 1, got 1.0"),
        ({"step": 0.0}, "step must be a number above 0, got 0.0"),
        ({"window": 0}, "window must be"),
    ],
)
def test_values_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PredictionSets(**options)
