import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.drift import ADWIN

from streamgp import GPClassifier, NotPositiveDefiniteError, Posterior
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_classifier import DriftWatch
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE


def blobs(n=30, d=3, labels="pqr", seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.integers(len(labels), size=n)
    points = rng.normal(size=(n, d)) + classes[:, None]
    names = [f"x{j}" for j in range(d)]
    return [
        (dict(zip(names, point.tolist(), strict=True)), labels[c])
        for point, c in zip(points, classes.tolist(), strict=True)
    ]


def taught(examples, **options):
    model = GPClassifier(**options)
    for i, (x, y) in enumerate(examples):
        model.learn_one(x, y, event_id=str(i))
    return model


def dense(examples, x, *, length_scale, noise_variance):
    """Posterior by one dense solve, absent features being 0."""
    names = sorted({name for features, _ in examples for name in features})
    labels = list(dict.fromkeys(y for _, y in examples))
    X = np.array([[features.get(name, 0.0) for name in names] for features, _ in examples])
    probe = np.array([x.get(name, 0.0) for name in names])
    Y = np.array([[float(y == label) for label in labels] for _, y in examples])

    def k(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * length_scale**2))

    solved = np.linalg.solve(k(X, X) + noise_variance * np.eye(len(X)), k(X, probe[None]))[:, 0]
    variance = 1.0 - k(probe[None], X)[0] @ solved
    return dict(zip(labels, (Y.T @ solved).tolist(), strict=True)), variance


def beliefs(model, n=6, seed=9, **options):
    return [model.predict_proba_one(x, with_dist=True) for x, _ in blobs(n, seed=seed, **options)]


def assert_equal(one, other):
    for a, b in zip(beliefs(one), beliefs(other), strict=True):
        assert a.mean == pytest.approx(b.mean, abs=1e-9)
        assert a.variance == pytest.approx(b.variance, abs=1e-9)


@given(st.integers(1, 25), st.integers(1, 4), st.floats(0.5, 2.0), st.floats(0.05, 2.0))
def test_the_posterior_equals_a_dense_solve(n, d, length_scale, noise_variance):
    examples = blobs(n, d)
    model = taught(examples, kernel=SquaredExponential(length_scale), noise_variance=noise_variance)
    for x, _ in blobs(3, d, seed=9):
        belief = model.predict_proba_one(x, with_dist=True)
        mean, variance = dense(
            examples, x, length_scale=length_scale, noise_variance=noise_variance
        )
        assert list(belief.mean) == list(mean)
        assert belief.mean == pytest.approx(mean, abs=1e-9)
        assert belief.variance == pytest.approx(variance, abs=1e-9)


def test_features_that_come_and_go_are_zero_where_they_are_not():
    examples = [
        ({"a": 1.0}, "p"),
        ({"b": -1.0, "a": 0.5}, "q"),
        ({}, "p"),
        ({"c": 2.0}, "r"),
        ({"a": -1.0, "b": 0.2, "c": 0.1}, "q"),
    ]
    model = taught(examples, kernel=SquaredExponential(), noise_variance=0.3)
    for x in ({"a": 1.0}, {"c": 1.0, "b": 1.0}, {}, {"a": 0.1, "b": 0.2, "c": 0.3}):
        mean, variance = dense(examples, x, length_scale=1.0, noise_variance=0.3)
        belief = model.predict_proba_one(x, with_dist=True)
        assert belief.mean == pytest.approx(mean, abs=1e-9)
        assert belief.variance == pytest.approx(variance, abs=1e-9)


def test_one_example_by_hand():
    """Kernel 1, noise 1/2: the mean is 1 / 1.5, the variance 1 - 1 / 1.5."""
    model = taught([({"a": 3.0}, "p")], noise_variance=0.5)
    belief = model.predict_proba_one({"a": 3.0}, with_dist=True)
    assert belief.mean == pytest.approx({"p": 2 / 3})
    assert belief.variance == pytest.approx(1 / 3)
    assert model.predict_one({"a": 3.0}) == "p"
    assert model.predict_proba_one({"a": 3.0}) == {"p": 1.0}


def test_before_the_first_label_the_posterior_is_the_prior():
    model = GPClassifier(SquaredExponential(variance=2.0))
    assert model.predict_proba_one({"a": 1.0}, with_dist=True) == Posterior(
        mean={}, variance=2.0, prior_variance=2.0
    )
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_one({"a": 1.0}) is None
    assert model.log_evidence() == 0.0
    assert model.n_learned == 0
    assert model.labels == []


def test_the_default_length_scale_grows_with_the_root_of_the_number_of_features():
    for d in (1, 4, 9):
        examples = blobs(5, d)
        fixed = SquaredExponential(LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(d))
        assert beliefs(taught(examples), d=d) == beliefs(taught(examples, kernel=fixed), d=d)


def test_the_predicted_class_is_the_first_of_the_largest_mean():
    model = taught(blobs(), noise_variance=0.2)
    for x, _ in blobs(20, seed=5):
        mean = model.predict_proba_one(x, with_dist=True).mean
        assert model.predict_one(x) == max(mean, key=mean.__getitem__)


def test_probabilities_are_those_of_the_posterior():
    model = taught(blobs(), noise_variance=0.2)
    for x, _ in blobs(20, seed=5):
        belief = model.predict_proba_one(x, with_dist=True)
        assert model.predict_proba_one(x) == belief.probabilities()


def test_a_new_class_was_zero_everywhere_and_changes_no_bit_of_the_others():
    examples = blobs(25, labels="pq")
    model, twin = taught(examples), taught(examples)
    model.learn_one({"x0": 1e6}, "new", event_id="new")
    twin.learn_one({"x0": 1e6}, "p", event_id="new")
    assert model.labels == [*twin.labels, "new"]
    for a, b in zip(beliefs(model), beliefs(twin), strict=True):
        # So far away that the example itself has no influence.
        assert a.mean["new"] == 0.0
        assert {y: a.mean[y] for y in "pq"} == b.mean
        assert a.variance == b.variance


def test_a_class_that_comes_late_equals_one_that_was_known_from_the_start():
    examples = sorted(blobs(30), key=lambda example: example[1])
    model = taught(examples, noise_variance=0.2)
    x, _ = blobs(1, seed=9)[0]
    scale = LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(3)
    mean, _ = dense(examples, x, length_scale=scale, noise_variance=0.2)
    assert model.predict_proba_one(x, with_dist=True).mean == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("i", [0, 13, 29])
@pytest.mark.parametrize("y", ["p", "q", "new"])
def test_a_relabelled_example_is_as_if_it_had_been_learned_so(i, y):
    examples = blobs(30)
    model = taught(examples, noise_variance=0.2)
    model.relabel_one(str(i), y)
    changed = [(x, y if j == i else old) for j, (x, old) in enumerate(examples)]
    twin = taught(changed, noise_variance=0.2)
    assert set(model.labels) == set(twin.labels) | {old for _, old in examples}
    assert_equal(model, twin)
    assert model.log_evidence() == pytest.approx(twin.log_evidence(), rel=1e-9)


@pytest.mark.parametrize("gone", [[0], [29], [13], [0, 1, 2], [28, 3, 15], list(range(29))])
def test_a_forgotten_example_is_as_if_it_had_never_been_learned(gone):
    examples = blobs(30)
    model = taught(examples, noise_variance=0.2)
    for i in gone:
        model.forget_one(str(i))
    twin = GPClassifier(model.hyperparameters.kernel, noise_variance=0.2)
    for i, (x, y) in enumerate(examples):
        if i not in gone:
            twin.learn_one(x, y)
    assert model.n_learned == twin.n_learned == 30 - len(gone)
    for x, _ in blobs(6, seed=9):
        a = model.predict_proba_one(x, with_dist=True)
        b = twin.predict_proba_one(x, with_dist=True)
        # A class stays known when its last example goes.
        assert a.mean == pytest.approx({y: b.mean.get(y, 0.0) for y in a.mean}, abs=1e-9)
        assert a.variance == pytest.approx(b.variance, abs=1e-9)


def test_a_forgotten_event_can_be_learned_again():
    examples = blobs(10)
    model = taught(examples)
    model.forget_one("3")
    model.learn_one(*examples[3], event_id="3")
    assert_equal(model, taught(examples))
    model.relabel_one("3", "q")
    model.relabel_one("9", "q")


def test_everything_can_be_forgotten_and_new_features_come_after_that():
    model = taught([({"a": 1.0}, "p"), ({"a": 2.0}, "q")])
    model.forget_one("0")
    model.forget_one("1")
    assert model.n_learned == 0
    assert model.predict_proba_one({"a": 1.0}) == {"p": 0.5, "q": 0.5}
    model.learn_one({"a": 1.0, "b": 1.0, "c": 1.0}, "q")
    assert model.predict_one({"a": 1.0, "b": 1.0}) == "q"


def test_examples_without_an_id_stay_when_others_go():
    examples = blobs(9)
    model, twin = GPClassifier(), GPClassifier()
    for i, (x, y) in enumerate(examples):
        model.learn_one(x, y, event_id=f"e{i}" if i % 3 == 0 else None)
        if i != 3:
            twin.learn_one(x, y)
    model.forget_one("e3")
    assert_equal(model, twin)
    model.forget_one("e6")
    model.relabel_one("e0", "q")
    assert model.n_learned == 7


@pytest.mark.parametrize("method", ["relabel_one", "forget_one"])
@pytest.mark.parametrize("n", [0, 5])
def test_an_event_that_was_not_learned_is_a_key_error(method, n):
    model = taught(blobs(n))
    before = pickle.dumps(model)
    with pytest.raises(KeyError, match="stranger"):
        getattr(model, method)("stranger", *(["p"] if method == "relabel_one" else []))
    assert pickle.dumps(model) == before


def test_an_event_is_learned_once():
    model = taught(blobs(5))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="event '3' was already learned; use relabel_one"):
        model.learn_one({"x0": 1.0}, "q", event_id="3")
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("learn_one", ({"x0": 1.0, "new": 1.0}, None)), ("relabel_one", ("3", None))],
)
def test_a_missing_label_is_refused_and_changes_nothing(method, arguments):
    model = taught(blobs(5))
    before = pickle.dumps(model)
    with pytest.raises(TypeError, match="y must be a label, got None; do not learn events without"):
        getattr(model, method)(*arguments)
    assert pickle.dumps(model) == before


def test_a_posterior_that_was_asked_for_changes_no_bit_of_a_copy():
    model = GPClassifier()
    model.learn_one({"a": 1.0}, "p")
    before = pickle.dumps(model)
    model.predict_proba_one({"a": 2.0}, with_dist=True)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ({"a": 1.0, "new": 0.0}, "q", NotPositiveDefiniteError, "raise noise_variance"),
        ({"a": 1.0}, "never seen", NotPositiveDefiniteError, "raise noise_variance"),
        ({"a": 1.0, "new": 1e200}, "q", ValueError, "must be at most"),
        ({"a": 1.0, "new": math.inf}, "q", ValueError, "feature 'new' must be finite, got inf"),
        ({"a": 1.0, "new": b"on"}, "q", TypeError, "'new' must be a number or a string, got b'on'"),
        ({"a": 3.0, "new": 1.0}, ["q"], TypeError, r"y must be a label, got \['q'\]"),
    ],
)
def test_an_example_that_is_refused_leaves_no_trace(x, y, error, message):
    options = {"kernel": SquaredExponential(), "noise_variance": 1e-16}
    model = taught([({"a": 1.0}, "p"), ({"a": -1.0}, "q")], **options)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, y, event_id="2")
    assert pickle.dumps(model) == before
    model.learn_one({"a": 5.0, "new": 1.0}, "p", event_id="2")
    assert model.n_learned == 3


@pytest.mark.parametrize("value", [b"on", math.inf])
def test_a_first_example_that_is_refused_fixes_nothing(value):
    """Neither the columns nor the default length scale."""
    model = GPClassifier()
    before = pickle.dumps(model)
    with pytest.raises((TypeError, ValueError), match="feature 'c' must be"):
        model.learn_one({"a": 1.0, "b": 1.0, "c": value}, "p")
    assert pickle.dumps(model) == before


def test_a_repeated_example_is_no_obstacle_to_a_real_noise():
    model = GPClassifier()
    for i in range(300):
        model.learn_one({"a": 1.0}, "p" if i % 4 else "q")
    assert model.predict_proba_one({"a": 1.0}) == pytest.approx({"p": 0.75, "q": 0.25}, abs=1e-9)


def test_the_evidence_is_that_of_independent_targets():
    """n = 1: log N(1; 0, 1.5) for the indicator of the only class."""
    model = taught([({"a": 1.0}, "p")], noise_variance=0.5)
    assert model.log_evidence() == pytest.approx(-0.5 * (1 / 1.5 + math.log(2 * math.pi * 1.5)))


def test_the_classes_are_known_in_the_order_of_their_appearance():
    model = taught([({"a": 1.0}, "z"), ({"a": 2.0}, "a"), ({"a": 3.0}, "z")])
    assert model.labels == ["z", "a"]
    model.labels.append("mine")
    assert model.labels == ["z", "a"]


def test_scikit_learn_agrees():
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    examples = blobs(40)
    X = np.array([list(x.values()) for x, _ in examples])
    Y = np.array([[float(y == label) for label in "pqr"] for _, y in examples])
    kernel = gaussian_process.kernels.RBF(1.3)
    second = gaussian_process.GaussianProcessRegressor(kernel, alpha=0.4, optimizer=None).fit(X, Y)
    model = taught(examples, kernel=SquaredExponential(1.3), noise_variance=0.4)
    for x, _ in blobs(5, seed=9):
        means, std = second.predict(np.array([list(x.values())]), return_std=True)
        belief = model.predict_proba_one(x, with_dist=True)
        assert [belief.mean[y] for y in "pqr"] == pytest.approx(means[0].tolist(), abs=1e-9)
        assert belief.variance == pytest.approx(std.ravel()[0] ** 2, abs=1e-9)


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


@pytest.mark.parametrize("seed", range(3))
def test_it_detects_what_river_detects(seed, monkeypatch):
    monkeypatch.setattr("streamgp.learners.gp_classifier._DELTA", 0.01)
    wrong = outcomes((500, 0.1), (500, 0.4), (500, 0.1), (500, 0.6), seed=seed)
    watch, river, expected = DriftWatch(), ADWIN(0.01), []
    for i, w in enumerate(wrong):
        before = river.estimation
        river.update(w)
        if river.drift_detected and river.estimation > before:
            expected.append(i)
    assert noted(watch, wrong) == expected
    assert watch.n_drifts == len(expected) == 2
