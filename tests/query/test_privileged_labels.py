"""Privileged features on their way to a learner, and what they say of the answer they came with."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, evaluate, metrics, naive_bayes
from scipy import integrate
from scipy.stats import norm

from streamgp import (
    GPClassifier,
    PrivilegedGPClassifier,
    SimulatedAnnotator,
    SkepticalClassifier,
    SkepticalRegressor,
    interactive_val_score,
)
from streamgp.base import Example, SettledAnswer
from streamgp.interactive import Answer, Event, InteractiveLoop, LabelledExample
from streamgp.interactive.people import People
from streamgp.learners.gp_regressor import GPRegressor
from streamgp.query import AlwaysAsk, LeaveOneOutReview, NeverChallenge
from streamgp.query.criteria import (
    error_rate_with_noise,
    flip_probability,
    probability_wrong,
)
from streamgp.query.example_store import ClassExampleStore
from streamgp.scaling import NoScaling

UNUSABLE = [
    ([0.4], TypeError, r"privileged must be a dictionary of features, got \[0\.4\]"),
    ({"s": [0.4]}, TypeError, "privileged feature 's' must be a number or a string, got"),
    ({"s": {"a": None}}, TypeError, "privileged feature 's' must be a number or a string, got"),
    ({"s": math.inf}, ValueError, "privileged feature 's' must be finite, got inf"),
    ({"s": 1e200}, ValueError, "privileged feature 's' must be at most 1e\\+150 in size, got"),
]
rates = st.floats(1e-6, 1.0 - 1e-6)
variances = st.floats(0.0, 1e300)


class Listener(base.Classifier):
    """A classifier of a user's own that hears of privileged features, and cannot relabel."""

    def __init__(self):
        self.heard = []

    @property
    def _multiclass(self):
        return True

    def learn_one(self, x, y, privileged=None):
        self.heard.append((x, y, privileged))

    def predict_proba_one(self, _):
        return {y: 1.0 for _, y, _ in self.heard[-1:]}


def fixed():
    return PrivilegedGPClassifier(learn_hyperparameters=False)


def skeptical(learner=None, **options):
    options = {"query": AlwaysAsk(), "warm_up": 0, "seed": 1, **options}
    return SkepticalClassifier(fixed() if learner is None else learner, **options)


def taught(learner=None, n=60):
    """Who answers within a second says anything; who takes three has looked."""
    model = skeptical(learner)
    for i in range(n):
        light, hasty = (i * 0.618) % 2 - 1, i % 3 == 0
        y = "awake" if (light > 0) != (hasty and i % 2 == 0) else "asleep"
        known = {"seconds": 0.5 if hasty else 3.0}
        model.settle_one(
            {"light": light}, y, given=y, challenged=False, event_id=str(i), privileged=known
        )
    return model


# --- how often noise turns a label


@pytest.mark.parametrize("noise", [1e-4, 0.1, 1.0, 7.0, 1e4])
def test_the_flip_probability_is_that_of_a_function_and_its_noisy_sign(noise):
    def turned(f):
        return norm.pdf(f) * norm.cdf(-abs(f) / math.sqrt(noise))

    expected, _ = integrate.quad(turned, -12.0, 12.0, points=[0.0])
    assert flip_probability(noise) == pytest.approx(expected, abs=1e-9)


def test_no_noise_turns_nothing_and_endless_noise_half_of_the_labels():
    assert flip_probability(0.0) == 0.0
    assert flip_probability(math.inf) == 0.5


@given(rates, variances)
def test_an_answer_like_any_other_is_wrong_as_often_as_its_annotator_errs(rate, noise):
    assert error_rate_with_noise(rate, noise, noise) == pytest.approx(rate)


@given(rates, variances, variances, variances)
def test_noisier_answers_are_wrong_more_often_and_never_surely(rate, one, other, usual):
    low, high = (error_rate_with_noise(rate, n, usual) for n in sorted((one, other)))
    assert 0.0 < low <= high < 1.0


# --- whom to believe


def test_without_privileged_features_decisions_are_those_of_before():
    model = taught()
    rate = model.error_rate("ann")
    for light in (-0.7, 0.1, 0.8):
        x = {"light": light}
        belief = model.predict_proba_one(x)
        for privileged in (None, {}, {"seconds": None}, {"seconds": math.nan}):
            options = {"annotator": "ann", "privileged": privileged}
            wrong = model.probability_wrong_one(x, "awake", **options)
            assert wrong == probability_wrong(belief, "awake", rate)
            decision = model.challenge_one(x, "awake", **options)
            assert decision == model.challenge_one(x, "awake", annotator="ann")


@pytest.mark.parametrize("learner", [GPClassifier, naive_bayes.GaussianNB])
def test_a_learner_that_tells_no_noisy_answers_decides_as_if_nothing_had_come_with_them(learner):
    model, unaware = taught(learner()), skeptical(learner())
    for example in model.examples():
        assert example.privileged is None
        unaware.settle_one(
            example.x, example.y, given=example.y, challenged=False, event_id=example.event_id
        )
    assert model.state() == unaware.state()
    x = {"light": 0.6}
    for privileged in ({"seconds": 0.5}, {"seconds": [0.5]}, 7):
        decision = model.challenge_one(x, "asleep", privileged=privileged)
        assert decision == unaware.challenge_one(x, "asleep")
        wrong = model.probability_wrong_one(x, "asleep", privileged=privileged)
        assert wrong == unaware.probability_wrong_one(x, "asleep")


def test_the_error_rate_of_an_answer_is_that_of_its_annotator_and_of_its_noise():
    model = taught()
    x = {"light": 0.6}
    belief, rate = model.predict_proba_one(x), model.error_rate("ann")
    found = []
    for privileged in ({"seconds": 3.0}, None, {"seconds": 0.5}):
        options = {"annotator": "ann", "privileged": privileged}
        noise = [model.learner.noise_one(p) for p in (privileged, None)]
        expected = probability_wrong(belief, "asleep", error_rate_with_noise(rate, *noise))
        found.append(model.probability_wrong_one(x, "asleep", **options))
        assert found[-1] == pytest.approx(expected)
        assert model.challenge_one(x, "asleep", **options).score == found[-1]
    assert found == sorted(found)
    careful, _, hasty = (p / (1.0 - p) for p in found)
    assert hasty > 4.0 * careful


def test_how_much_an_answer_counts_as_wrong_takes_its_noise_into_account():
    x, given = {"light": 0.6}, {"given": "asleep", "challenged": False}
    counts = []
    for seconds in (3.0, 0.5):
        model = taught()
        privileged = {"seconds": seconds}
        expected = model.probability_wrong_one(x, "asleep", privileged=privileged)
        counts.append(model.settle_one(x, "asleep", privileged=privileged, **given))
        assert counts[-1] == expected
    assert counts[0] < counts[1]


@pytest.mark.parametrize(("privileged", "error", "message"), UNUSABLE)
def test_an_answer_that_cannot_be_learned_is_not_challenged_and_changes_nothing(
    privileged, error, message
):
    model = taught()
    state, x = model.state(), {"light": 0.6}
    decision = model.challenge_one(x, "asleep", privileged=privileged)
    assert (decision.ask, decision.budget) == (False, "privileged")
    with pytest.raises(error, match=message):
        model.probability_wrong_one(x, "asleep", privileged=privileged)
    for challenged in (False, True):
        with pytest.raises(error, match=message):
            model.settle_one(
                x, "asleep", given="asleep", challenged=challenged, privileged=privileged
            )
    with pytest.raises(error, match=message):
        model.relabel_one("3", "asleep", privileged=privileged)
    assert model.state() == state
    assert (model.n_learned, model.examples()[3].privileged) == (60, {"seconds": 0.5})


def test_old_labels_are_not_reviewed():
    with pytest.raises(
        TypeError, match="needs a learner with leave_one_out, which PrivilegedGPClassifier has not"
    ):
        skeptical(review=LeaveOneOutReview())


# --- what is learned


def same(model, other):
    xs = [{"light": light / 5.0} for light in range(-5, 6)]
    return [model.predict_proba_one(x) for x in xs] == [other.predict_proba_one(x) for x in xs]


def retaught(model):
    """Return a model that is taught the examples of another."""
    fresh = skeptical(model.model)
    fresh.load_state(model.state(), model.examples())
    return fresh


def test_examples_keep_a_copy_of_what_came_with_their_labels():
    model, known = skeptical(), {"seconds": 1.0}
    model.learn_one({"light": 0.0}, "awake", event_id="e", privileged=known)
    known["seconds"] = 2.0
    assert model.examples() == [
        Example(
            event_id="e",
            x={"light": 0.0},
            y="awake",
            privileged={"seconds": 1.0},
            answer=SettledAnswer(y="awake"),
        )
    ]


def test_a_new_label_has_the_privileged_features_of_the_old_one_unless_it_has_its_own():
    for new, expected in [(None, {"seconds": 0.5}), ({"seconds": 9.0}, {"seconds": 9.0})]:
        model = taught()
        before = model.examples()[3]
        model.relabel_one("3", "asleep", privileged=new)
        assert model.examples()[3] == replace(before, y="asleep", privileged=expected)
        assert same(model, retaught(model))


def test_the_same_label_may_come_with_other_privileged_features():
    model, before = taught(), taught()
    y = model.examples()[3].y
    model.relabel_one("3", y)
    assert same(model, before)
    model.relabel_one("3", y, privileged={"seconds": 30.0})
    assert not same(model, before)
    assert same(model, retaught(model))
    with pytest.raises(KeyError):
        model.relabel_one("unknown", y, privileged={"seconds": 30.0})


def test_any_learner_that_takes_them_is_told_also_when_it_is_taught_anew():
    model = skeptical(Listener(), challenge=NeverChallenge())
    model.learn_one({"a": 1.0}, "p", event_id="e", privileged={"s": 1.0})
    model.learn_one({"a": 2.0}, "q", event_id="f")
    model.relabel_one("f", "p", privileged={"s": 2.0})
    expected = [({"a": 1.0}, "p", {"s": 1.0}), ({"a": 2.0}, "p", {"s": 2.0})]
    assert model.learner.heard == retaught(model).learner.heard == expected
    x = {"a": 1.0}
    wrong = [model.probability_wrong_one(x, "q", privileged=p) for p in (None, {"s": 1.0})]
    assert wrong[0] == wrong[1]


def test_a_learner_that_does_not_take_them_is_restored_without_them():
    taught = ClassExampleStore(GPClassifier(), NoScaling())
    taught.teach({"a": 1.0}, "p", "e", privileged={"s": [1]})
    fresh = ClassExampleStore(GPClassifier(), NoScaling())
    held = Example(event_id="e", x={"a": 1.0}, y="p", privileged={"s": [1]})
    fresh.load_state(taught.state(), [held])
    assert fresh.examples() == taught.examples() == [Example(event_id="e", x={"a": 1.0}, y="p")]


def test_a_learner_of_numbers_does_not_hear_of_them():
    model = SkepticalRegressor(GPRegressor(), seed=1)
    model.learn_one({"a": 1.0}, 2.0, privileged={"s": [1]})
    assert [example.privileged for example in model.examples()] == [None]


class PrivilegedMean(base.Regressor):
    """The mean of the targets; those that came with something count tenfold."""

    def __init__(self):
        self.total, self.n = 0.0, 0

    def learn_one(self, x, y, privileged=None):  # noqa: ARG002
        self.total += y if privileged is None else 10.0 * y
        self.n += 1

    def predict_one(self, x):  # noqa: ARG002
        return self.total / max(1, self.n)


def test_nor_does_any_other_after_a_restart():
    fresh = [SkepticalRegressor(PrivilegedMean(), AlwaysAsk(), seed=1) for _ in range(2)]
    loop = InteractiveLoop(fresh[0])
    loop.on_event(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), 0.0)
    said = Answer(answer_id="a", event_id="e", y=2.0, answered_at=1.0, privileged={"s": 1.0})
    log = loop.on_answer(said, 1.0)
    again = InteractiveLoop.from_parts(loop.changes(), log, fresh[1])
    assert again.model.predict_one({"a": 1.0}) == loop.model.predict_one({"a": 1.0}) == 2.0
    assert again.snapshot() == loop.snapshot()


class Yielding(SkepticalClassifier):
    """A model for which the answer to a second question always prevails."""

    def aggregate_one(self, event_id, given, second, **annotators):  # noqa: ARG002
        return second


@pytest.mark.parametrize("is_taken_back", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [({"s": 9.0}, None), (None, {"s": 1.0}), ({"s": 9.0}, {}), ({}, {"s": 1.0})],
)
def test_what_came_with_a_label_goes_with_it_after_a_restart_too(first, second, is_taken_back):
    fresh = [Yielding(PrivilegedGPClassifier(), AlwaysAsk(), NeverChallenge()) for _ in range(2)]
    people = People(overlap=1.0)
    loop = InteractiveLoop(fresh[0], people=people)
    loop.on_event(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), 0.0)
    said = [
        Answer(answer_id="a", event_id="e", y="p", annotator="ann", answered_at=1.0),
        Answer(answer_id="b", event_id="e", y="q", annotator="bob", answered_at=2.0),
        Answer(answer_id="c", event_id="e", declined=True, annotator="bob", answered_at=3.0),
    ]
    said[0] = replace(said[0], privileged=first)
    said[1] = replace(said[1], privileged=second, request_id="e/label/second")
    said[2] = replace(said[2], supersedes="b")
    heard = [line for one in said[: 2 + is_taken_back] for line in loop.on_answer(one, 4.0)]
    log = [line for line in heard if isinstance(line, LabelledExample)]
    known = first if is_taken_back else second
    assert (log[-1].origin, log[-1].privileged or None) == ("aggregated", known or None)
    assert [e.privileged for e in loop.model.examples()] == [log[-1].privileged]
    again = InteractiveLoop.from_parts(loop.parts(), log, fresh[1], people=people)
    assert again.snapshot() == loop.snapshot()


# --- River, and simulated annotators


def rows(n=40):
    for i in range(n):
        light = (i * 0.618) % 2 - 1
        yield {"light": light}, light > 0, {"privileged": {"seconds": 1.0 + i % 3}}


def test_rivers_evaluator_hands_them_over_when_labels_are_learned():
    model = skeptical()
    evaluate.progressive_val_score(rows(), model, metrics.Accuracy())
    assert [e.privileged for e in model.examples()] == [p["privileged"] for *_, p in rows()]


class Timed(SimulatedAnnotator):
    """A simulated annotator whose response time is known."""

    def answer(self, request, truth, now):
        answer = super().answer(request, truth, now)
        return type(answer)(
            **{name: getattr(answer, name) for name in answer.__slots__ if name != "privileged"},
            privileged={"response_s": 1.0 + now % 3},
        )


def test_answers_of_simulated_annotators_bring_them_along():
    model = skeptical(challenge=NeverChallenge())
    interactive_val_score(
        [(x, y) for x, y, _ in rows()], model, metrics.Accuracy(), annotator=Timed()
    )
    found = [example.privileged for example in model.examples()]
    assert found == [{"response_s": 1.0 + i % 3} for i in range(40)]
