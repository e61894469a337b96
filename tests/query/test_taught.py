import pickle

import pytest
from river import compose, feature_extraction, linear_model, naive_bayes, stats

from streamgp import GPClassifier, NotPositiveDefiniteError, SkepticalClassifier
from streamgp.kernels import SquaredExponential
from streamgp.query.pipeline_scaling import PipelineScaling
from streamgp.query.scaling import NoScaling, StandardScaling
from streamgp.query.taught import TaughtLearner


@pytest.mark.parametrize("template", [GPClassifier(), naive_bayes.GaussianNB()])
def test_the_template_stays_unlearned(template):
    taught = TaughtLearner(template, NoScaling())
    taught.teach({"a": 1.0}, "p", "e1")
    assert not template.predict_proba_one({"a": 1.0})
    assert len(taught) == taught.n_taught == 1


def test_a_belief_is_asked_for_once_and_forgotten_after_any_change():
    taught = TaughtLearner(GPClassifier(), NoScaling())
    taught.teach({"a": 1.0}, "p", "e1")
    belief = taught.belief({"a": 1.0})
    assert taught.belief({"a": 1.0}) is belief
    for change in (
        lambda: taught.teach({"a": 2.0}, "q", "e2"),
        lambda: taught.relabel("e2", "p"),
        lambda: taught.forget("e2"),
    ):
        change()
        assert taught.belief({"a": 1.0}) is not belief
        belief = taught.belief({"a": 1.0})


def test_a_remembered_belief_is_no_state():
    taught = TaughtLearner(GPClassifier(), NoScaling())
    taught.teach({"a": 1.0}, "p", None)
    before = pickle.dumps(taught)
    taught.belief({"a": 3.0})
    assert pickle.dumps(taught) == before


def test_a_belief_does_not_follow_features_that_change_in_the_hands_of_the_caller():
    taught = TaughtLearner(GPClassifier(), NoScaling())
    taught.teach({"a": 0.0}, "p", None)
    x = {"a": 0.0}
    near = taught.belief(x).variance
    x["a"] = 9.0
    assert taught.belief(x).variance > near


def test_new_statistics_rebuild_the_learner_from_the_raw_examples():
    taught = TaughtLearner(GPClassifier(SquaredExponential()), StandardScaling(warm_up=2))
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
    taught, other = (TaughtLearner(template, NoScaling()) for _ in range(2))
    for learner in (taught, other):
        learner.teach({"a": 1.0}, "p", "e1")
    taught.teach({"a": 2.0}, "p", "e2")
    taught.forget("e2")
    assert taught.belief({"a": 1.5}) == other.belief({"a": 1.5})


def test_a_refused_example_is_not_on_record():
    kernel = SquaredExponential()
    taught = TaughtLearner(GPClassifier(kernel, noise_variance=0.0), StandardScaling(warm_up=2))
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
    taught = TaughtLearner(linear_model.LogisticRegression(), NoScaling())
    taught.teach({"a": 1.0}, True, None)
    with pytest.raises(
        ValueError, match=r"LogisticRegression knows the labels False and True only"
    ):
        taught.teach({"a": 1.0}, "kitchen", None)
    assert len(taught) == 1


def test_a_refused_label_reaches_no_transformer():
    transformer = feature_extraction.TargetAgg(by="g", how=stats.Mean())
    scaling = PipelineScaling([transformer], warm_up=10)
    taught = TaughtLearner(GPClassifier(noise_variance=0.0), scaling)
    taught.observe({"g": "x"})
    taught.teach({"g": "x"}, 1, None)
    before = pickle.dumps(taught)
    with pytest.raises(NotPositiveDefiniteError):
        taught.teach({"g": "x"}, 1, None)
    assert pickle.dumps(taught) == before


def test_a_label_that_cannot_be_learned_cannot_replace_another_either():
    taught = TaughtLearner(linear_model.LogisticRegression(), NoScaling())
    taught.teach({"a": 1.0}, True, "e1")
    before = pickle.dumps(taught)
    with pytest.raises(ValueError, match="knows the labels False and True only"):
        taught.relabel("e1", "kitchen")
    assert pickle.dumps(taught) == before
