"""What is believed about each example by all the others."""

import copy
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, GPRegressor
from streamgp.kernels import Linear, SquaredExponential
from tests.helpers.laws import examples


@examples(20)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_leaving_one_out_is_what_is_believed_when_it_is_forgotten(seed, n):
    rng = random.Random(seed)
    model = GPClassifier(SquaredExponential(variance=2.0), noise_variance=0.3)
    xs = {str(i): {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)} for i in range(n)}
    for event_id, x in xs.items():
        model.learn_one(x, rng.choice("pqr"), event_id=event_id)
    for event_id, belief in model.leave_one_out().items():
        other = copy.deepcopy(model)
        other.forget_one(event_id)
        expected = other.predict_proba_one(xs[event_id], with_dist=True)
        assert belief.mean == pytest.approx(expected.mean, abs=1e-9)
        assert belief.variance == pytest.approx(expected.variance, abs=1e-9)
        assert belief.prior_variance == expected.prior_variance == 2.0


def test_examples_without_an_id_are_not_left_out():
    model = GPClassifier()
    assert model.leave_one_out() == {}
    model.learn_one({"a": 1.0}, "p")
    model.learn_one({"a": 2.0}, "q", event_id="e")
    assert list(model.leave_one_out()) == ["e"]


def test_a_posterior_names_the_variance_of_the_prior_at_its_place():
    """Of a linear function: the farther from 0, the more is open."""
    model = GPClassifier(Linear())
    model.learn_one({"a": 2.0}, "p", event_id="e")
    nearer, there, farther = (
        model.predict_proba_one({"a": a}, with_dist=True).prior_variance for a in (1.0, 2.0, 3.0)
    )
    assert nearer < there < farther
    assert model.leave_one_out()["e"].prior_variance == there


def test_the_variance_of_the_prior_is_known_far_from_zero():
    model = GPClassifier(SquaredExponential(variance=3.0))
    model.learn_one({"a": 1e6}, "p")
    assert model.predict_proba_one({"a": 1e6}, with_dist=True).prior_variance == 3.0


# --- numbers


@examples(20)
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(-1e4, 1e4), st.booleans())
def test_a_number_left_out_is_predicted_as_if_it_had_never_been_learned(seed, n, offset, is_first):
    rng = random.Random(seed)
    examples = {
        str(i): ({"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}, offset + rng.gauss(0, 3))
        for i in range(n)
    }

    def taught(without=None):
        model = GPRegressor(SquaredExponential(variance=2.0), 0.3, learn_hyperparameters=False)
        for event_id, (x, y) in examples.items():
            if event_id != without:
                model.learn_one(x, y, event_id=event_id)
        return model

    left_out = "0" if is_first else str(n - 1)
    found = taught().leave_one_out()[left_out]
    expected = taught(left_out).predict_one(examples[left_out][0], with_dist=True)
    assert found.mu == pytest.approx(expected.mu, abs=1e-6)
    assert found.sigma == pytest.approx(expected.sigma, rel=1e-6)


def test_the_only_number_of_all_is_not_left_out():
    model = GPRegressor()
    assert model.leave_one_out() == {}
    model.learn_one({"a": 1.0}, 2.0, event_id="e")
    assert model.leave_one_out() == {}
    model.learn_one({"a": 2.0}, 3.0)
    assert list(model.leave_one_out()) == ["e"]


def test_a_number_left_out_is_as_uncertain_as_predictions_were_off():
    """Of a regressor whose predictions were worse than it said, the spread counts here as well."""
    rng = random.Random(1)
    model = GPRegressor()
    for i in range(60):
        model.learn_one({"a": rng.gauss(0, 1)}, rng.gauss(0, 1), event_id=str(i))
    model._spread.ratio = 1.0
    before = model.leave_one_out()
    model._spread.ratio = 4.0
    for event_id, wider in model.leave_one_out().items():
        assert wider.mu == before[event_id].mu
        assert wider.sigma == pytest.approx(2.0 * before[event_id].sigma)
