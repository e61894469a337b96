import copy
import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import (
    compose,
    feature_extraction,
    forest,
    linear_model,
    naive_bayes,
    preprocessing,
    stats,
)

from streamgp import GPClassifier, NotPositiveDefiniteError, SkepticalClassifier
from streamgp.base import SettledAnswer
from streamgp.kernels import SquaredExponential
from streamgp.learners import gp_classifier, gp_tuning
from streamgp.query import NeverAsk, NeverChallenge
from streamgp.query.example_store import ClassExampleStore
from streamgp.query.pipeline_scaling import PipelineScaling
from streamgp.scaling import NoScaling, RenewedScaling, StandardScaling
from tests.helpers.forgetful import FORGETFUL, JumpyWatch
from tests.helpers.laws import examples


@pytest.mark.parametrize("template", [GPClassifier(), naive_bayes.GaussianNB()])
def test_the_template_stays_unlearned(template):
    taught = ClassExampleStore(template, NoScaling())
    taught.teach({"a": 1.0}, "p", "e1")
    assert not template.predict_proba_one({"a": 1.0})
    assert len(taught) == taught.n_taught == 1


def test_a_belief_is_asked_for_once_and_forgotten_after_any_change():
    taught = ClassExampleStore(GPClassifier(), NoScaling())
    taught.teach({"a": 1.0}, "p", "e1")
    x = {"a": 1.0}
    belief = taught.belief(x)
    assert taught.belief(x) is belief
    for change in (
        lambda: taught.teach({"a": 2.0}, "q", "e2"),
        lambda: taught.relabel("e2", "p"),
        lambda: taught.forget("e2"),
    ):
        change()
        assert taught.belief(x) is not belief
        belief = taught.belief(x)


class Counting(naive_bayes.GaussianNB):
    """A learner of a user with a state, which it saves, and without means of relabelling."""

    def state(self):
        return {}

    def load_state(self, state):
        pass


def test_a_learner_with_a_state_that_cannot_relabel_is_taught_again():
    taught, again = (ClassExampleStore(Counting(), NoScaling()) for _ in range(2))
    for n in range(6):
        taught.teach({"a": float(n % 3)}, "pq"[n % 2], f"e{n}")
        again.teach({"a": float(n % 3)}, "q" if n == 2 else "pq"[n % 2], f"e{n}")
    taught.relabel("e2", "q")
    assert taught.belief({"a": 0.5}) == again.belief({"a": 0.5})


def test_what_is_predicted_before_the_first_label_changes_nothing_of_what_is_learned():
    template = forest.ARFClassifier(n_models=3, seed=1)
    asked, silent = (ClassExampleStore(template, NoScaling()) for _ in range(2))
    assert not asked.belief(dict.fromkeys("abcdefghi", 1.0))
    for n in range(40):
        x = {"a": n % 7 - 3.0, "b": n % 5 - 2.0}
        for taught in (asked, silent):
            taught.teach(x, x["a"] > x["b"], f"e{n}")
        assert asked.belief(x) == silent.belief(x)


@pytest.mark.parametrize("other", [{"on": 1}, {"on": 1.0}])
def test_equal_features_of_another_type_are_other_features(other):
    model = SkepticalClassifier(
        preprocessing.OneHotEncoder() | naive_bayes.GaussianNB(), warm_up=4, seed=1
    )
    for n in range(6):
        model.learn_one({"on": bool(n % 2)}, n % 2)
    fresh = copy.deepcopy(model)
    x = {"on": True}
    model.predict_proba_one(x)
    assert model.predict_proba_one(other) == fresh.predict_proba_one(other)


def test_an_example_that_a_transformer_refuses_is_not_learned():
    transformer = feature_extraction.TargetAgg(by="g", how=stats.Mean())
    model = SkepticalClassifier(
        (compose.Select("a") + transformer) | naive_bayes.GaussianNB(),
        query=NeverAsk(),
        challenge=NeverChallenge(),
        warm_up=10,
        seed=1,
    )
    for n in range(4):
        x = {"a": float(n), "g": "u"}
        model.observe_one(x)
        model.settle_one(x, n % 2, given=n % 2, challenged=False, event_id=f"e{n}")
    before = model.predict_proba_one({"a": 2.0, "g": "u"})
    with pytest.raises(ValueError, match="GaussianNB or its transformers cannot use these"):
        model.settle_one({"a": 3.0, "g": "u"}, "x", given="x", challenged=False, event_id="bad")
    assert model.n_learned == 4
    assert model.predict_proba_one({"a": 2.0, "g": "u"}) == before


def test_nan_never_reaches_a_transformer_and_none_does():
    scaler = preprocessing.StatImputer(("b", stats.Mean())) | preprocessing.StandardScaler()
    model = SkepticalClassifier(scaler | naive_bayes.GaussianNB(), warm_up=10, seed=1)
    twin = model.clone()
    for n in range(8):
        x = {"a": float(n), "b": None if n == 3 else 1.0}
        model.observe_one({**x, "c": math.nan})
        twin.observe_one(x)
        for one in (model, twin):
            one.settle_one(x, n % 2, given=n % 2, challenged=False, event_id=str(n))
    x = {"a": 1.5, "b": 1.0}
    assert model.predict_proba_one({**x, "c": math.nan}) == twin.predict_proba_one(x)


def test_features_that_make_no_finite_probabilities_are_refused_in_words():
    model = SkepticalClassifier(
        preprocessing.MinMaxScaler() | naive_bayes.MultinomialNB(), warm_up=3, seed=1
    )
    for n in range(6):
        model.learn_one({"a": float(n)}, n % 2)
    with pytest.raises(ValueError, match=r"MultinomialNB .*no finite probabilities of these"):
        model.observe_one({"a": 1.0, "late": 2.0})
    assert set(model.predict_proba_one({"a": 1.0})) == {0, 1}


def test_a_remembered_belief_is_no_state():
    taught = ClassExampleStore(GPClassifier(), NoScaling())
    taught.teach({"a": 1.0}, "p", None)
    before = pickle.dumps(taught)
    taught.belief({"a": 3.0})
    assert pickle.dumps(taught) == before


def test_a_belief_does_not_follow_features_that_change_in_the_hands_of_the_caller():
    taught = ClassExampleStore(GPClassifier(), NoScaling())
    taught.teach({"a": 0.0}, "p", None)
    x = {"a": 0.0}
    near = taught.belief(x).variance
    x["a"] = 9.0
    assert taught.belief(x).variance > near


def test_new_statistics_rebuild_the_learner_from_the_raw_examples():
    taught = ClassExampleStore(GPClassifier(SquaredExponential()), StandardScaling(warm_up=2))
    taught.observe({"a": 0.0})
    taught.teach({"a": 0.0}, "p", "e1")
    first = taught.learner
    taught.observe({"a": 10.0})  # mean 5, standard deviation 5
    assert taught.learner is not first
    expected = GPClassifier(SquaredExponential())
    expected.learn_one({"a": -1.0}, "p")
    assert taught.belief({"a": 10.0}) == expected.predict_proba_one({"a": 1.0}, with_dist=True)


@pytest.mark.parametrize("template", [GPClassifier(), naive_bayes.GaussianNB()])
def test_a_forgotten_example_leaves_the_learner_as_if_never_taught(template):
    taught, other = (ClassExampleStore(template, NoScaling()) for _ in range(2))
    for learner in (taught, other):
        learner.teach({"a": 1.0}, "p", "e1")
    taught.teach({"a": 2.0}, "p", "e2")
    taught.forget("e2")
    assert taught.belief({"a": 1.5}) == other.belief({"a": 1.5})


def test_a_refused_example_is_not_on_record():
    kernel = SquaredExponential()
    taught = ClassExampleStore(GPClassifier(kernel, noise_variance=0.0), StandardScaling(warm_up=2))
    taught.observe({"a": 1.0})
    taught.teach({"a": 1.0, "late": 1.0}, "p", "e1")
    with pytest.raises(ValueError, match="residual variance"):
        taught.teach({"a": 1.0, "late": 2.0}, "q", "e2")
    assert len(taught) == 1


def test_what_a_foreign_transformer_raises_says_whose_fault_it_is():
    pipeline = compose.FuncTransformer(temperature) | GPClassifier()
    model = SkepticalClassifier(pipeline, seed=1)
    model.learn_one({"t": 20.0}, "p")
    with pytest.raises(ValueError, match=r"GPClassifier or its transformers cannot use these"):
        model.observe_one({"pressure": 1013.0})
    assert model.predict_proba_one({"t": 20.0}) == {"p": 1.0}


def temperature(x):
    return {"a": x["t"]}


def test_a_classifier_of_two_classes_says_so_at_the_first_other_label():
    taught = ClassExampleStore(linear_model.LogisticRegression(), NoScaling())
    taught.teach({"a": 1.0}, True, None)
    with pytest.raises(
        ValueError, match=r"LogisticRegression knows the labels False and True only"
    ):
        taught.teach({"a": 1.0}, "kitchen", None)
    assert len(taught) == 1


def test_a_refused_label_reaches_no_transformer():
    transformer = feature_extraction.TargetAgg(by="g", how=stats.Mean())
    scaling = PipelineScaling([transformer], warm_up=10)
    taught = ClassExampleStore(GPClassifier(noise_variance=0.0), scaling)
    taught.observe({"g": "x"})
    taught.teach({"g": "x"}, 1, None)
    before = pickle.dumps(taught)
    with pytest.raises(NotPositiveDefiniteError):
        taught.teach({"g": "x"}, 1, None)
    assert pickle.dumps(taught) == before


def test_a_label_that_cannot_be_learned_cannot_replace_another_either():
    taught = ClassExampleStore(linear_model.LogisticRegression(), NoScaling())
    taught.teach({"a": 1.0}, True, "e1")
    before = pickle.dumps(taught)
    with pytest.raises(ValueError, match="let its property _multiclass be True"):
        taught.relabel("e1", "kitchen")
    assert pickle.dumps(taught) == before


_CHANGES = st.tuples(
    st.sampled_from(["teach"] * 6 + ["relabel", "forget"]),
    st.integers(0, 10**6),
    st.sampled_from("pqr"),
    st.fixed_dictionaries(
        {"u": st.integers(-3, 3).map(float), "n": st.integers(0, 1)},
        optional={"place": st.sampled_from(["hall", "bath"]), "late": st.just(1.0)},
    ),
)


@pytest.fixture
def early(monkeypatch):
    monkeypatch.setattr(gp_tuning, "FIRST_FIT", 4)
    monkeypatch.setattr(gp_classifier, "DriftWatch", JumpyWatch)


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("template", FORGETFUL.values(), ids=FORGETFUL.keys())
@examples(7)
@given(changes=st.lists(_CHANGES, min_size=12, max_size=50))
def test_one_that_forgets_is_what_its_examples_make_it_whatever_was_revised(template, changes):
    taught = ClassExampleStore(template(), StandardScaling(warm_up=16))
    for n, (change, k, y, x) in enumerate(changes):
        ids = [example.event_id for example in taught.examples()]
        if change == "teach" or not ids:
            taught.observe(x)
            taught.teach(x, y, f"e{n}")
        elif change == "relabel":
            taught.relabel(ids[k % len(ids)], y)
        else:
            taught.forget(ids[k % len(ids)])
    again = ClassExampleStore(template(), StandardScaling(warm_up=16))
    again.load_state(json.loads(json.dumps(taught.state())), taught.examples())
    assert again.learner.n_drifts == taught.learner.n_drifts
    assert repr(again.leave_one_out()) == repr(taught.leave_one_out())
    for *_, x in changes:
        assert repr(again.belief(x)) == repr(taught.belief(x))
    assert again.state() == taught.state()


_NAMES = st.sampled_from(["ann", "bob", None])
_ANSWERS = st.none() | st.builds(
    SettledAnswer, y=st.just("a"), annotator=_NAMES, was_asked=st.booleans()
)


@given(
    st.lists(st.tuples(st.sampled_from(["teach", "second", "forget"]), st.integers(0, 9), _ANSWERS))
)
def test_evidence_on_an_annotator_is_counted_as_if_by_looking_through_all_answers(changes):
    taught = ClassExampleStore(naive_bayes.GaussianNB(), NoScaling())
    for n, (change, k, answer) in enumerate(changes):
        ids = [example.event_id for example in taught.examples()]
        if change == "teach" or not ids:
            taught.teach({"u": 1.0}, "a", f"e{n}", answer=answer)
        elif change == "forget":
            taught.forget(ids[k % len(ids)])
        elif answer is not None:
            taught.note_second(ids[k % len(ids)], answer)
    restored = ClassExampleStore(naive_bayes.GaussianNB(), NoScaling())
    restored.load_state(taught.state(), taught.examples())
    answers = [example.answer for example in taught.examples() if example.answer]
    for name in ("ann", "bob", None):
        first = [a for a in answers if a.annotator == name and (a.was_asked or a.second)]
        second = [
            a for a in answers
            if a.annotator != name and a.was_asked and a.second and a.second.annotator == name
        ]  # fmt: skip
        assert taught.n_heard[name] == restored.n_heard[name] == len(first) + len(second)


def test_a_renewal_weighs_features_by_the_labels_as_they_are_then():
    """So the learner sees what scaling by the same events, and weighing by the labels, gives."""
    taught, scaling = ClassExampleStore(GPClassifier(), RenewedScaling(40)), RenewedScaling(40)
    xs = [{"a": n % 2 + n % 7 / 7.0, "b": float(n * 5 % 11)} for n in range(80)]
    for n, x in enumerate(xs[:-1]):
        taught.observe(x)
        scaling.observe(x)
        if n < 30:
            taught.teach(x, "pq"[n % 2], f"e{n}")
    taught.relabel("e2", "q")
    taught.observe(xs[-1])
    scaling.observe(xs[-1])
    scaling.weigh([(x, "q" if n == 2 else "pq"[n % 2]) for n, x in enumerate(xs[:30])])
    assert taught.scaling.transform(xs[5]) == scaling.transform(xs[5])
    again = GPClassifier()
    for n, x in enumerate(xs[:30]):
        again.learn_one(scaling.transform(x), "q" if n == 2 else "pq"[n % 2])
    probe = {"a": 0.3, "b": 4.0}
    assert taught.belief(probe) == again.predict_proba_one(scaling.transform(probe), with_dist=True)
