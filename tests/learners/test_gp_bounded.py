"""Classifiers that retain a few of their examples."""

import math
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.query import AlwaysAsk, LeaveOneOutReview, NeverChallenge


def log_of(n, seed=0):
    """Events with texts and truth values, whose features come and go."""
    rng = random.Random(seed)
    for i in range(n):
        k = rng.randrange(3)
        x = {"a": rng.gauss(2.0 * k, 1.0), "open": rng.random() < 0.3 * k}
        if i % 3:
            x["place"] = ["hall", "bath", "attic"][k if rng.random() < 0.7 else 0]
        if i > 9:
            x["b"] = rng.gauss(-k, 1.0)
        yield x, "pqr"[k]


def taught(n, **options):
    model = GPClassifier(**options)
    for i, (x, y) in enumerate(log_of(n)):
        model.learn_one(x, y, event_id=str(i))
    return model


def beliefs(model):
    return [model.predict_proba_one(x, with_dist=True) for x, _ in log_of(9, seed=5)]


def assert_close(one, other, tolerance):
    for a, b in zip(beliefs(one), beliefs(other), strict=True):
        assert a.mean == pytest.approx(b.mean, abs=tolerance)
        assert a.variance == pytest.approx(b.variance, abs=tolerance)
        assert a.prior_variance == b.prior_variance


@given(st.integers(0, 25), st.integers(1, 25))
def test_up_to_the_bound_it_believes_what_an_exact_one_does(n, max_points):
    n = min(n, max_points)
    model, exact = taught(n, max_points=max_points), taught(n)
    assert_close(model, exact, 1e-12)
    assert model.is_exact
    assert model.log_evidence() == pytest.approx(exact.log_evidence())
    assert model.leave_one_out().keys() == exact.leave_one_out().keys()
    if n > 1:
        for one in (model, exact):
            one.relabel_one(str(n - 1), "r")
            one.forget_one(str(n // 2 - 1))
        assert_close(model, exact, 1e-9)


def test_beyond_the_bound_it_still_tells_classes_apart():
    model, exact = taught(400, max_points=40), taught(400)
    assert not model.is_exact
    assert model.n_learned == 400
    probes = list(log_of(300, seed=7))
    right = [sum(m.predict_one(x) == y for x, y in probes) / 300 for m in (model, exact)]
    assert right[0] > right[1] - 0.03


def test_an_example_that_is_not_retained_is_a_key_error():
    model = taught(100, max_points=10)
    retained = list(model.leave_one_out())
    gone = [str(i) for i in range(100) if str(i) not in retained]
    assert len(retained) <= 10
    before = beliefs(model)
    for method in (lambda e: model.relabel_one(e, "new"), model.forget_one):
        with pytest.raises(KeyError, match=repr(gone[0])):
            method(gone[0])
    assert beliefs(model) == before
    assert "new" not in model.labels
    model.relabel_one(retained[0], "new")
    model.forget_one(retained[1])
    assert model.n_learned == 99
    assert set(model.leave_one_out()) == set(retained) - {retained[1]}


@pytest.mark.nightly  # by day that of the process is, in tests/gp/test_sparse_for_long.py
def test_memory_is_flat_beyond_the_bound():
    model, rng = GPClassifier(max_points=20, learn_hyperparameters=True), random.Random(0)

    def learn(n):
        for i in range(n):
            k = rng.randrange(3)
            model.learn_one({"a": rng.gauss(k, 1.0), "b": rng.gauss(-k, 1.0)}, k, event_id=f"{i}")
            for event_id in list(model.leave_one_out()) if i == n - 1 else ():
                model.forget_one(event_id)

    learn(1200)
    tracemalloc.start()
    learn(1200)
    first = tracemalloc.get_traced_memory()[0]
    learn(1200)
    growth = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    assert growth < 20_000


def test_a_wrapped_one_takes_revisions_of_examples_that_it_does_not_retain():
    """All examples are on record, so all are taught again."""
    wrapped, other = (
        SkepticalClassifier(
            GPClassifier(max_points=8), AlwaysAsk(), NeverChallenge(), warm_up=0, seed=1
        )
        for _ in range(2)
    )
    for i, (x, y) in enumerate(log_of(60)):
        final = "r" if i in (3, 50) else y
        for model, label in ((wrapped, y), (other, final)):
            model.observe_one(x)
            model.settle_one(x, label, given=label, challenged=False, event_id=str(i))
    wrapped.relabel_one("3", "r")
    wrapped.relabel_one("50", "r")
    for x, _ in log_of(5, seed=5):
        assert wrapped.predict_proba_one(x) == other.predict_proba_one(x)
    wrapped.forget_one("3")
    assert wrapped.n_learned == 59


def test_labels_of_retained_examples_are_reviewed():
    model = SkepticalClassifier(
        GPClassifier(noise_variance=0.1, max_points=30),
        AlwaysAsk(),
        NeverChallenge(),
        warm_up=0,
        review=LeaveOneOutReview(),
        seed=1,
    )
    for i, (x, y) in enumerate(log_of(80)):
        model.observe_one(x)
        model.settle_one(x, "p" if i == 70 else y, given=y, challenged=False, event_id=str(i))
    retained = model.learner.leave_one_out()
    doubt = model.review_one(dict.fromkeys(map(str, range(80))), now=0.0)
    assert doubt is not None
    assert doubt.event_id in retained


@pytest.mark.parametrize("max_points", [0, -1, 2.5, math.nan])
def test_the_bound_must_be_a_number_of_points(max_points):
    with pytest.raises(ValueError, match="max_points must be a whole number of at least 1, got"):
        GPClassifier(max_points=max_points)


def test_single_precision_is_for_exact_learners():
    with pytest.raises(ValueError, match="single_precision is for a learner that keeps all"):
        GPClassifier(max_points=200, single_precision=True)
    with pytest.raises(ValueError, match=r"noise_variance must be at least 0\.001 in single"):
        GPClassifier(noise_variance=1e-6, single_precision=True)
