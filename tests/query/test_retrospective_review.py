"""Old labels looked through by leaving each example out."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes, preprocessing

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.base import Example, Posterior
from streamgp.query import (
    AtMost,
    AtMostPer,
    LeaveOneOutReview,
    NeverChallenge,
    RateBudget,
    criteria,
)
from streamgp.query.retrospective import Reviewer
from tests.helpers.laws import examples

ALL = LeaveOneOutReview(threshold=0.0, every=1)


def taught(n, seed=0, review=ALL, model=None, warm_up=0):
    """A classifier taught `n` examples of three classes, a quarter of them wrong, and who by."""
    rng = random.Random(seed)
    classifier = SkepticalClassifier(
        GPClassifier() if model is None else model,
        challenge=NeverChallenge(),
        warm_up=warm_up,
        review=review,
        seed=1,
    )
    annotators = {}
    for i in range(n):
        truth = rng.randrange(3)
        x = {"a": rng.gauss(2.0 * truth, 0.7), "b": rng.gauss(-truth, 1.0)}
        y = f"c{truth if rng.random() < 0.75 else rng.randrange(3)}"
        annotators[f"e{i}"] = rng.choice(["ann", "bob", None])
        classifier.observe_one(x)
        classifier.settle_one(
            x, y, given=y, challenged=False, annotator=annotators[f"e{i}"], event_id=f"e{i}"
        )
    return classifier, annotators


def by_learning_without(classifier, annotators):
    """The most doubtful label, found by teaching a fresh learner all examples but one."""
    most = (-1.0, None, None)
    examples = classifier.examples()
    for left_out in examples:
        learner = GPClassifier()
        for example in examples:
            if example is not left_out:
                learner.learn_one(classifier._store.scaling.transform(example.x), example.y)
        x = classifier._store.scaling.transform(left_out.x)
        belief = learner.predict_proba_one(x, with_dist=True)
        predicted = max(belief.mean, key=belief.mean.get)
        if predicted == left_out.y or left_out.event_id not in annotators:
            continue
        rate = classifier.error_rate(annotators[left_out.event_id])
        p = criteria.probability_wrong(belief, left_out.y, rate)
        most = max(most, (p, left_out.event_id, predicted), key=lambda found: found[0])
    return most


@examples(25)
@given(st.integers(0, 10**6), st.integers(3, 25), st.sampled_from([0, 10]))
def test_the_most_doubtful_label_is_the_one_found_by_learning_without_each(seed, n, warm_up):
    classifier, annotators = taught(n, seed, warm_up=warm_up)
    for event_id in random.Random(seed).sample(sorted(annotators), n // 4):
        del annotators[event_id]
    p, event_id, predicted = by_learning_without(classifier, annotators)
    doubt = classifier.review_one(annotators, now=0.0)
    if event_id is None:
        assert doubt is None
    else:
        assert (doubt.event_id, doubt.suggested) == (event_id, predicted)
        assert doubt.probability_wrong == pytest.approx(p, abs=1e-9)
        assert doubt.decision.score == doubt.probability_wrong


def test_a_look_changes_nothing():
    classifier, annotators = taught(20)
    before = classifier.state()
    first = classifier.review_one(annotators, now=0.0)
    assert classifier.review_one(annotators, now=0.0) == first
    assert classifier.state() == before
    assert classifier.review_due


def test_annotators_who_err_more_are_doubted_more():
    classifier, annotators = taught(20)
    doubt = classifier.review_one(annotators, now=0.0)
    for i in range(30):
        x = {"a": 100.0 + 10 * i, "b": 0.0}
        classifier.settle_one(x, "c0", given="c1", challenged=True, annotator="eve")
    worse = classifier.review_one(dict.fromkeys(annotators, "eve"), now=0.0)
    assert worse.probability_wrong > doubt.probability_wrong


# --- by hand, from what others say


def doubt_of(labels, beliefs, rule=ALL):
    examples = [Example(event_id=name, x={}, y=y) for name, y in labels.items()]
    return Reviewer(rule).doubt(
        examples, beliefs, lambda _, belief, y: criteria.probability_wrong(belief, y, 0.2), 0.0
    )


def test_a_label_that_the_others_speak_for_is_not_doubted():
    assert doubt_of({"e": "p", "f": "p"}, {"e": {"p": 0.4, "q": 0.3, "r": 0.3}}) is None


def test_the_greatest_doubt_counts_and_the_first_of_equal_ones():
    beliefs = {"e": {"p": 0.3, "q": 0.7}, "f": {"p": 0.2, "q": 0.8}, "g": {"p": 0.2, "q": 0.8}}
    doubt = doubt_of(dict.fromkeys("efgh", "p"), beliefs)
    assert (doubt.event_id, doubt.suggested) == ("f", "q")
    # q = .2, e = .2, C = 2 by hand: .8 .2 / (.2 .8 + .8 .2).
    assert doubt.probability_wrong == pytest.approx(0.5)


@pytest.mark.parametrize("plain", [False, True])
def test_the_only_example_of_a_class_is_judged_as_if_the_class_had_not_been_heard_of(plain):
    if plain:
        doubt = doubt_of({"e": "p", "f": "q"}, {"e": {"q": 0.9, "p": 0.1}})
        assert doubt.probability_wrong == 0.0  # a new class is never suspicious to probabilities
    else:
        # The means leave .6 for a new class.
        belief = Posterior(mean={"q": 0.4, "p": 0.0}, variance=0.0)
        doubt = doubt_of({"e": "p", "f": "q", "g": "q"}, {"e": belief})
        assert doubt.probability_wrong == pytest.approx(0.4 * 0.2 / (0.6 * 0.8 + 0.4 * 0.2))
        doubt = doubt_of({"e": "p", "f": "p", "g": "q"}, {"e": belief})
        assert doubt.probability_wrong == 1.0


def test_the_only_example_of_all_is_not_doubted():
    assert doubt_of({"e": "p"}, {"e": Posterior(mean={"p": 0.0}, variance=1.0)}) is None
    classifier, annotators = taught(1)
    assert classifier.review_one(annotators, now=0.0) is None


def test_examples_without_an_id_are_not_doubted():
    classifier, _ = taught(0)
    for y in "ppq":
        classifier.learn_one({"a": 1.0}, y)
    assert classifier.review_one({}, now=0.0) is None


# --- when, and how often


@pytest.mark.parametrize(
    ("every", "n_held", "between"), [(5, 0, 5), (5, 100, 5), (5, 119, 5), (5, 120, 6), (1, 40, 2)]
)
def test_looks_are_a_number_of_labels_apart_or_a_twentieth_of_them(every, n_held, between):
    reviewer = Reviewer(LeaveOneOutReview(every=every))
    reviewer.note(None, 1000, 0.0)
    due = [n for n in range(100) if reviewer.is_due(1000 + n, n_held)]
    assert due[0] == between


def test_a_label_counts_when_it_is_learned_and_not_when_it_is_changed():
    classifier, _ = taught(3, review=LeaveOneOutReview(every=2))
    assert classifier.review_due
    classifier.note_review(None, now=0.0)
    assert not classifier.review_due
    classifier.relabel_one("e0", "c9")
    classifier.forget_one("e1")
    assert not classifier.review_due
    for event_id in ("f", "g"):
        assert not classifier.review_due
        classifier.settle_one({"a": 0.0}, "c0", given="c0", challenged=False, event_id=event_id)
    assert classifier.review_due


def test_a_doubt_is_asked_about_above_the_threshold_only():
    classifier, annotators = taught(20, review=LeaveOneOutReview(threshold=1.0))
    doubt = classifier.review_one(annotators, now=0.0)
    assert not doubt.decision.ask
    assert (doubt.decision.threshold, doubt.decision.budget) == (1.0, None)


def test_a_challenge_refused_for_want_of_budget_names_it():
    review = LeaveOneOutReview(0.0, every=1, budget=AtMost(1))
    classifier, annotators = taught(20, review=review)
    doubt = classifier.review_one(annotators, now=0.0)
    assert doubt.decision.ask
    classifier.note_review(doubt, now=0.0)
    refused = classifier.review_one(annotators, now=0.0)
    assert refused.decision == doubt.decision.refused_by("AtMost")
    classifier.note_review(refused, now=0.0)
    classifier.note_review_unanswered(0.0)
    assert classifier.review_one(annotators, now=0.0) == doubt


def test_time_for_the_budget_is_that_of_the_look():
    review = LeaveOneOutReview(0.0, every=1, budget=AtMostPer(1, 60.0))
    classifier, annotators = taught(20, review=review)
    classifier.note_review(classifier.review_one(annotators, now=100.0), now=100.0)
    asked = [classifier.review_one(annotators, now=now).decision.ask for now in (159.0, 160.0)]
    assert asked == [False, True]


def test_a_rate_is_a_share_of_the_looks():
    review = LeaveOneOutReview(0.0, every=1, budget=RateBudget(0.25))
    classifier, annotators = taught(20, review=review)
    n_asked = 0
    for n in range(100):
        doubt = classifier.review_one(annotators, now=float(n))
        n_asked += doubt.decision.ask
        classifier.note_review(doubt, now=float(n))
    assert n_asked == pytest.approx(25, abs=3)


def test_looks_without_a_doubt_count_for_the_rate():
    reviewer = Reviewer(LeaveOneOutReview(budget=RateBudget(0.5)))
    for _ in range(10):
        reviewer.note(None, 0, 0.0)
    assert reviewer.state()["budget"] == {"scores": [0.0] * 10, "n": 10, "spent": 0}


def test_the_budget_of_a_rule_is_copied_for_every_model():
    review = LeaveOneOutReview(0.0, every=1, budget=AtMost(1))
    for _ in range(2):
        classifier, annotators = taught(20, review=review)
        doubt = classifier.review_one(annotators, now=0.0)
        assert doubt.decision.ask
        classifier.note_review(doubt, now=0.0)


# --- surviving a restart


def test_looks_and_their_budget_survive_a_restart():
    review = LeaveOneOutReview(0.0, every=3, budget=AtMostPer(1, 60.0))
    classifier, annotators = taught(20, review=review)
    classifier.note_review(classifier.review_one(annotators, now=0.0), now=0.0)
    again, _ = taught(0, review=review)
    again.load_state(json.loads(json.dumps(classifier.state())), classifier.examples())
    assert again.state() == classifier.state()
    assert not again.review_due
    for now in (30.0, 90.0):
        one, other = (c.review_one(annotators, now=now) for c in (classifier, again))
        assert one == other


def test_a_review_is_part_of_the_configuration_and_none_is_as_before():
    plain, reviewing = (taught(0, review=review)[0] for review in (None, ALL))
    other = taught(0, review=LeaveOneOutReview(0.0, every=2))[0]
    assert len({c.fingerprint() for c in (plain, reviewing, other)}) == 3
    assert "review" not in plain.state()


def test_without_a_review_nothing_is_doubted():
    classifier, annotators = taught(20, review=None)
    before = classifier.state()
    assert not classifier.review_due
    assert classifier.review_one(annotators, now=0.0) is None
    classifier.note_review(None, now=0.0)
    classifier.note_review_unanswered(0.0)
    assert classifier.state() == before


def test_a_budget_that_cannot_be_saved_says_so():
    class Whole:
        def allows(self, decision, now):
            return bool(decision or now)

        def note(self, decision, asked, now):
            pass

        def refund(self, now):
            pass

    classifier, _ = taught(0, review=LeaveOneOutReview(budget=Whole()))
    with pytest.raises(TypeError, match="Whole cannot be saved; give it the methods state and loa"):
        classifier.state()


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"threshold": 1.5}, "threshold must be between 0 and 1, got 1.5"),
        ({"threshold": float("nan")}, "threshold must be between 0 and 1, got nan"),
        ({"every": 0}, "every must be a whole number of at least 1, got 0"),
        ({"every": 2.5}, "every must be a whole number of at least 1, got 2.5"),
    ],
)
def test_a_rule_with_impossible_values_is_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        LeaveOneOutReview(**arguments)


@pytest.mark.parametrize("review", [LeaveOneOutReview, 0.3, AtMost(3)])
def test_a_review_is_a_rule(review):
    with pytest.raises(TypeError, match="review must be a LeaveOneOutReview, or an object with a"):
        taught(0, review=review)


def test_the_budget_of_a_review_is_a_budget():
    with pytest.raises(
        TypeError, match=r"budget of review must be a budget, such as AtMost\(100\), got"
    ):
        taught(0, review=LeaveOneOutReview(budget=3))


@pytest.mark.parametrize(
    "model", [naive_bayes.GaussianNB(), preprocessing.StandardScaler() | naive_bayes.GaussianNB()]
)
def test_a_learner_that_cannot_leave_an_example_out_has_no_review(model):
    with pytest.raises(
        TypeError, match="review needs a learner with leave_one_out, which GaussianNB has not"
    ):
        taught(0, model=model, warm_up=5)
