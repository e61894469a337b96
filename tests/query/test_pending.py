"""Open questions in the belief by which it is decided what to ask."""

import math

import numpy as np
import pytest
from river.naive_bayes import GaussianNB

from streamgp import DriftTest, EnsembleGPClassifier, GPClassifier, SkepticalClassifier, isgp
from streamgp.base import PendingQuestion, Posterior
from streamgp.gp.exact import ExactGP
from streamgp.kernels import SquaredExponential
from streamgp.query import AllOf, AtMost, PaperAsk, SkepticalAsk, Unlimited, criteria
from streamgp.query.skeptical_classifier import SkepticalClassifier as Classifier


class Comparing(Unlimited):
    """A budget of a user's own, which may compare scores."""


def learner(**options):
    gp = GPClassifier(SquaredExponential(0.7), noise_variance=0.5)
    return SkepticalClassifier(gp, warm_up=0, seed=1, **{"budget": Comparing(), **options})


def doubt(model: Classifier, x, pending=()):
    """The doubt; it is left out where it changes nothing, unless the budget compares scores."""
    assert isinstance(model.budget, Comparing)
    return model.query_one(x, event_id="e", pending=pending).score


def test_the_doubt_is_that_of_a_process_with_pending_rows():
    model, labels = learner(), ["a", "b"]
    explicit, classes = (ExactGP(SquaredExponential(0.7), 0.5) for _ in range(2))
    for i, u in enumerate((0.0, 0.4, 1.3)):
        model.observe_one({"u": u})
        model.learn_one({"u": u}, labels[i % 2])
        explicit.append(np.array([u]), np.array([0.0]))
        classes.append(np.array([u]), np.eye(2)[i % 2])
    pending = []
    for u in (1.9, 2.4):
        target = model.pending_one({"u": u})
        means, _ = classes.predict(np.array([u]))
        assert target == pytest.approx(max(0.0, 1.0 - np.maximum(means, 0.0).sum()))
        pending.append(PendingQuestion({"u": u}, target))
        explicit.append(np.array([u]), np.array([target]))
    for u in (0.2, 1.5, 2.2, 5.0):
        [share], variance = explicit.predict(np.array([u]))
        best = max(*classes.predict(np.array([u]))[0], share)
        assert doubt(model, {"u": u}, pending) == pytest.approx(
            0.5 * math.erfc(best / math.sqrt(2.0 * variance))
        )


def test_with_no_class_known_the_pending_share_decides():
    model = learner()
    assert (doubt(model, {"u": 0.0}), model.pending_one({"u": 0.0})) == (1.0, 1.0)
    pending = [PendingQuestion({"u": 0.0}, 1.0)]
    # At the point itself: mean 1 / 1.5 and variance 1 - 1 / 1.5.
    at = 0.5 * math.erfc((1.0 / 1.5) / math.sqrt(2.0 / 3.0))
    assert doubt(model, {"u": 0.0}, pending) == pytest.approx(at)
    assert doubt(model, {"u": 99.0}, pending) == pytest.approx(0.5)


@pytest.mark.parametrize("c", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("drift_test", [None, DriftTest(at_least=0.05)])
@pytest.mark.parametrize(
    "gp", [GPClassifier(), GPClassifier(max_points=8), GPClassifier(window=10, noise_variance=0.01)]
)
def test_whether_to_ask_is_decided_as_if_all_scores_were_computed(gp, drift_test, c):
    options = {"drift_test": drift_test, "warm_up": 0, "seed": 1}
    exact, fast = (
        SkepticalClassifier(gp, SkepticalAsk(c), budget=budget, **options)
        for budget in (AllOf(Comparing(), AtMost(50)), AtMost(50))
    )
    rng, left_out = np.random.default_rng(1), 0
    pending: list[PendingQuestion] = []
    for i in range(300):
        x = {"u": float(rng.normal()), "v": float(rng.normal())}
        exact.observe_one(x)
        fast.observe_one(x)
        with_all = exact.query_one(x, event_id=f"e{i}", pending=pending)
        without = fast.query_one(x, event_id=f"e{i}", pending=pending)
        assert (without.ask, without.budget) == (with_all.ask, with_all.budget)
        exact.note_query(with_all, asked=with_all.ask, now=i)
        fast.note_query(without, asked=without.ask, now=i)
        if without.ask:
            assert without == with_all
            pending = [*pending[-5:], PendingQuestion(x, exact.pending_one(x))]
            if rng.random() < 0.5:
                exact.learn_one(x, y := x["u"] > 0.5 * x["v"])
                fast.learn_one(x, y)
        left_out += without != with_all
    assert left_out > 30


def test_predictions_challenges_and_memory_are_those_without():
    model = learner()
    model.learn_one({"u": 0.0}, "a", event_id="1")
    x, pending = {"u": 0.1}, [PendingQuestion({"u": 0.2}, 0.7)]
    before = (model.predict_proba_one(x), model.challenge_one(x, "b"), model.state())
    with_pending = doubt(model, x, pending)
    assert (model.predict_proba_one(x), model.challenge_one(x, "b"), model.state()) == before
    assert doubt(model, x) > with_pending == doubt(model, x, pending)
    # What was learned meanwhile counts.
    model.learn_one({"u": 0.2}, "a", event_id="2")
    assert doubt(model, x, pending) < with_pending


def test_what_cannot_be_used_any_more_tells_nothing():
    model = learner()
    fit, unfit = PendingQuestion({"u": 0.2}, 1.0), PendingQuestion({"u": math.inf}, 1.0)
    assert doubt(model, {"u": 0.1}, [fit, unfit]) == doubt(model, {"u": 0.1}, [fit])
    assert doubt(model, {"u": 0.1}, [unfit]) == doubt(model, {"u": 0.1})


@pytest.mark.parametrize(
    "model",
    [
        isgp("paper", seed=1),
        learner(query=PaperAsk()),
        learner(query=SkepticalAsk(pending=False)),
        SkepticalClassifier(GaussianNB(), seed=1),
        SkepticalClassifier(EnsembleGPClassifier(seed=1), seed=1),
    ],
    ids=["paper", "PaperAsk", "off", "bayes", "ensemble"],
)
def test_others_count_none(model):
    assert model.pending_one({"u": 1.0}) is None


def test_a_share_is_what_the_classes_leave():
    belief = Posterior(mean={"a": 0.7, "b": 0.6, "c": -1.0}, variance=0.1)
    assert criteria.unexplained_share(belief) == 0.0
