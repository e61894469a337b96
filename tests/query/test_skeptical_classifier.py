import copy
import inspect
import json
import math
import pickle
import random

import numpy as np
import pytest
from river import (
    active,
    base,
    compose,
    ensemble,
    evaluate,
    feature_extraction,
    feature_selection,
    forest,
    linear_model,
    metrics,
    multiclass,
    naive_bayes,
    neighbors,
    preprocessing,
    stats,
    tree,
)

from streamgp import (
    ConfidenceBoostingClassifier,
    DriftTest,
    GPClassifier,
    GPRegressor,
    NotPositiveDefiniteError,
    OnlineForestClassifier,
    SkepticalClassifier,
    SkepticalRegressor,
    TemporalFilter,
    isgp,
)
from streamgp.base import Decision, LearnerFailedError
from streamgp.interactive import Answer, Event, InteractiveLoop, Prediction, Rejected
from streamgp.kernels import SquaredExponential
from streamgp.query import (
    AlwaysAsk,
    AlwaysChallenge,
    AtMost,
    AtMostPer,
    Entropy,
    LeaveOneOutReview,
    NeverAsk,
    NeverChallenge,
    RandomAsk,
    RateBudget,
    RecentEventsAsk,
    SkepticalAsk,
    SkepticalChallenge,
    Unlimited,
    criteria,
)

MODELS = {
    "GP": lambda: GPClassifier(noise_variance=0.2),
    "naive Bayes": naive_bayes.GaussianNB,
    "nearest neighbours": lambda: neighbors.KNNClassifier(
        n_neighbors=3, engine=neighbors.LazySearch(window_size=50)
    ),
    "tree": lambda: tree.HoeffdingTreeClassifier(grace_period=20),
    "scaler and GP": lambda: preprocessing.StandardScaler() | GPClassifier(),
    "scaler and logistic regressions": lambda: (
        preprocessing.MinMaxScaler() | linear_model.SoftmaxRegression()
    ),
    "union and GP": lambda: (
        (compose.Select("a") + (compose.Select("b") | preprocessing.StandardScaler()))
        | GPClassifier()
    ),
    "bagged GPs": lambda: ensemble.BaggingClassifier(GPClassifier(), n_models=2, seed=1),
    "selection and naive Bayes": lambda: (
        feature_selection.SelectKBest(similarity=stats.PearsonCorr(), k=1)
        | naive_bayes.GaussianNB()
    ),
}


@pytest.fixture(params=MODELS)
def model(request):
    return SkepticalClassifier(MODELS[request.param](), warm_up=20, seed=1)


def stream(n, seed=0, n_classes=3):
    rng = random.Random(seed)
    for _ in range(n):
        y = rng.randrange(n_classes)
        yield {"a": rng.gauss(2 * y, 1.0), "b": rng.gauss(-50 * y, 40.0)}, y


def converse(model, pairs, *, start=0, annotator=None):
    """What the loop does with a truthful annotator; the decisions."""
    decisions = []
    for i, (x, y) in enumerate(pairs, start):
        event_id = f"e{i}"
        model.observe_one(x)
        model.predict_proba_one(x)
        decision = model.query_one(x, event_id=event_id, now=float(i))
        model.note_query(decision, asked=decision.ask, now=float(i))
        decisions.append(decision)
        if decision.ask:
            contest = model.challenge_one(x, y, annotator=annotator, event_id=event_id)
            decisions.append(contest)
            model.settle_one(
                x, y, given=y, challenged=contest.ask, annotator=annotator, event_id=event_id
            )
    return decisions


def state(model):
    return pickle.dumps(model)


def scaled(model, x):
    """Features as the learner sees them."""
    return model._store._scaling.transform(x)


def answers(model, n=8):
    return [model.predict_proba_one(x) for x, _ in stream(n, seed=9)]


def always(model, **options):
    return SkepticalClassifier(model, AlwaysAsk(), NeverChallenge(), seed=1, **options)


def close(one, other):
    return all(a == pytest.approx(b, abs=1e-9) for a, b in zip(one, other, strict=True))


# --- under River


@pytest.mark.parametrize("metric", [metrics.Accuracy(), metrics.MacroF1()])
def test_rivers_evaluator_runs_it_and_counts_the_labels(model, metric, capsys):
    evaluate.progressive_val_score(stream(120), model, metric, print_every=40)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[-1].endswith(f"{model.n_learned} samples used")
    assert 0 < model.n_learned < 120
    assert metric.get() > 0.4


def test_in_rivers_evaluator_only_labels_asked_for_are_learned():
    model = SkepticalClassifier(GPClassifier(), NeverAsk(), seed=1)
    metric = evaluate.progressive_val_score(stream(30), model, metrics.Accuracy())
    assert metric.cm.n_samples == 0
    assert model.n_learned == 0
    model = always(GPClassifier())
    evaluate.progressive_val_score(stream(30), model, metrics.Accuracy())
    assert model.n_learned == 30


def test_annotations_reach_it_through_rivers_evaluator():
    """A third element of the stream goes to predict and to learn."""
    triples = [(x, y, {"annotation": 7}) for x, y in stream(30)]
    model = always(GPClassifier())
    evaluate.progressive_val_score(triples, model, metrics.Accuracy())
    assert model.learner.labels == [7]


def test_predicting_returns_a_label_and_whether_to_ask():
    model = always(GPClassifier())
    assert model.predict_one({"a": 1.0}) == (None, True)
    model.learn_one({"a": 1.0}, "p")
    assert model.predict_one({"a": 1.0}, annotation="q") == ("p", True)
    assert SkepticalClassifier(GPClassifier(), NeverAsk()).predict_one({}) == (None, False)


def test_in_rivers_evaluator_events_are_scaled_whether_asked_about_or_not():
    model = SkepticalClassifier(GPClassifier(), NeverAsk(), warm_up=10, seed=1)
    xs = [x for x, _ in stream(10)]
    for x in xs:
        model.predict_one(x)
    mean = sum(x["b"] for x in xs) / 10
    assert model._store.scaling.transform({"b": mean})["b"] == pytest.approx(0.0, abs=1e-9)


def test_a_learner_that_is_only_taught_sees_its_events_as_well():
    one = always(GPClassifier(), warm_up=10)
    other = always(GPClassifier(), warm_up=10)
    for x, y in stream(30):
        one.learn_one(x, y)
        other.predict_one(x)
        other.learn_one(x, y)
    assert answers(one) == answers(other)


# --- purity and determinism


def test_questions_change_nothing(model):
    converse(model, stream(30))
    probes = [x for x, _ in stream(5, seed=3)]
    model.predict_proba_one(probes[0])
    before, after = state(model), answers(copy.deepcopy(model))
    first = [model.query_one(x, event_id="new", now=99.0) for x in probes]
    for x in probes:
        model.query_one(x)
        model.challenge_one(x, 1, annotator="ann", event_id="new")
        model.challenge_one(x, "never seen")
        model.probability_wrong_one(x, 2, annotator="ann")
        model.neighbours_one(x, 2)
        model.predict_proba_one(x)
    assert [model.query_one(x, event_id="new", now=99.0) for x in probes] == first
    assert answers(model) == after
    if not isinstance(model.model, compose.Pipeline):
        # Some scalers of River note the names of the features that they transform.
        assert state(model) == before


@pytest.mark.parametrize("rule", [None, RandomAsk(0.1), Entropy(0.5)])
def test_a_loop_by_hand_that_observes_no_event_is_warned(rule):
    ((x, _),) = stream(1)
    model = SkepticalClassifier(GPClassifier(), rule, seed=1)
    with pytest.warns(RuntimeWarning, match=r"before any event was observed.* observe_one\(x\)"):
        model.query_one(x)
    model.query_one(x, event_id="named")
    model.observe_one(x)
    model.query_one(x)


def test_the_same_seed_gives_the_same_decisions(model):
    twin = model.clone()
    assert converse(model, stream(60)) == converse(twin, stream(60))
    assert answers(model) == answers(twin)


def test_another_seed_gives_other_decisions():
    one, other = (SkepticalClassifier(GPClassifier(), seed=s) for s in (1, 2))
    assert converse(one, stream(60)) != converse(other, stream(60))


def test_without_a_seed_one_is_drawn_and_kept():
    one, other = (SkepticalClassifier(GPClassifier()) for _ in range(2))
    assert one.seed is None
    twin = pickle.loads(pickle.dumps(one))
    x = {"a": 1.0}
    assert one.query_one(x, event_id="e") == twin.query_one(x, event_id="e")
    assert one.query_one(x, event_id="e") != other.query_one(x, event_id="e")


def test_a_decision_belongs_to_its_event_and_not_to_the_order(model):
    converse(model, stream(30))
    events = [(f"new{i}", x) for i, (x, _) in enumerate(stream(10, seed=4))]
    forward = {e: model.query_one(x, event_id=e) for e, x in events}
    backward = {e: model.query_one(x, event_id=e) for e, x in reversed(events)}
    assert forward == backward
    assert len({d.threshold for d in forward.values()}) > 1


def test_asking_and_challenging_draw_independently():
    model = SkepticalClassifier(GPClassifier(), RandomAsk(0.5), seed=1)
    asked = [model.query_one({}, event_id=str(i)).threshold for i in range(5)]
    drawn = [model._draw(str(i), "challenge") for i in range(5)]
    assert not set(asked) & set(drawn)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("n", [0, 5, 40])
def test_a_copy_goes_on_alike_and_alone(model, copied, n):
    converse(model, stream(n))
    twin, untouched = copied(model), copied(model)
    before = answers(untouched)
    more = list(stream(30, seed=2))
    assert converse(model, more, start=n) == converse(twin, more, start=n)
    assert answers(model) == answers(twin)
    assert answers(untouched) == before
    assert untouched.n_learned <= model.n_learned


def test_a_clone_after_learning_is_new_and_shares_nothing(model):
    fresh = model.clone()
    decisions = converse(model, stream(40))
    clone = model.clone()
    assert clone.n_learned == 0
    assert clone.error_rate() == 0.2
    assert converse(clone, stream(40)) == decisions == converse(fresh, stream(40))
    assert converse(model.clone(), stream(40)) == decisions


def test_the_template_stays_unlearned_and_may_be_shared():
    template = preprocessing.StandardScaler() | GPClassifier()
    one, other = (SkepticalClassifier(template, seed=1) for _ in range(2))
    converse(one, stream(40))
    assert one.n_learned > 0
    assert other.n_learned == 0
    assert template.predict_proba_one({"a": 1.0}) == {}
    assert template["StandardScaler"].counts == {}
    assert one.model is template


# --- scaling


@pytest.mark.parametrize("name", ["GP", "naive Bayes", "scaler and GP", "union and GP", "tree"])
@pytest.mark.parametrize("warm_up", [1, 7, 20])
def test_after_the_freeze_the_learner_is_one_taught_through_the_frozen_scaling(name, warm_up):
    """Bit for bit, whatever was learned through earlier statistics."""
    wrapped = MODELS[name]()
    model = always(wrapped, warm_up=warm_up)
    converse(model, stream(50))
    learner = wrapped[-1].clone() if isinstance(wrapped, compose.Pipeline) else wrapped.clone()
    for x, y in stream(50):
        learner.learn_one(model._store.scaling.transform(x), y)
    for x, _ in stream(10, seed=9):
        expected = learner.predict_proba_one(model._store.scaling.transform(x))
        assert model.predict_proba_one(x) == expected


def test_labels_may_come_long_after_their_events():
    """The learner is the same, whether an answer came before or after the freeze."""
    pairs = list(stream(40))
    early, late = always(GPClassifier(), warm_up=20), always(GPClassifier(), warm_up=20)
    for x, y in pairs:
        early.observe_one(x)
        early.settle_one(x, y, given=y, challenged=False)
        late.observe_one(x)
    for x, y in pairs:
        late.settle_one(x, y, given=y, challenged=False)
    assert answers(early) == answers(late)


def test_a_feature_that_comes_late_is_scaled_and_the_learner_rebuilt_once():
    model = always(GPClassifier(), warm_up=10)
    pairs = [
        ({**x, "late": 1000.0 + i} if i >= 20 else x, y) for i, (x, y) in enumerate(stream(50))
    ]
    converse(model, pairs)
    learner = GPClassifier()
    for x, y in pairs:
        learner.learn_one(model._store.scaling.transform(x), y)
    probe = {"a": 1.0, "b": 1.0, "late": 1025.0}
    assert model.predict_proba_one(probe) == learner.predict_proba_one(
        model._store.scaling.transform(probe)
    )
    assert model._store.scaling.transform({"late": 1024.5}) == {"late": 0.0}


def test_without_warm_up_features_are_taken_as_they_are():
    model = always(GPClassifier(SquaredExponential(2.0)), warm_up=0)
    learner = GPClassifier(SquaredExponential(2.0))
    for x, y in stream(20):
        model.learn_one(x, y)
        learner.learn_one(x, y)
    assert answers(model) == [learner.predict_proba_one(x) for x, _ in stream(8, seed=9)]


def test_a_transformer_that_learns_needs_a_warm_up():
    for pipeline in (
        preprocessing.StandardScaler() | GPClassifier(),
        (compose.Select("a") + (compose.Select("b") | preprocessing.StandardScaler()))
        | GPClassifier(),
    ):
        with pytest.raises(ValueError, match=r"warm_up must be at least 1 for .* to learn from"):
            SkepticalClassifier(pipeline, warm_up=0)


def test_transformers_in_front_of_an_active_learner_are_told_their_place():
    for model in (isgp(), SkepticalRegressor(GPRegressor())):
        kind = type(model).__name__
        with pytest.raises(TypeError, match=rf"^model must be {kind}\(transformer \| estimator\)"):
            SkepticalClassifier(preprocessing.StandardScaler() | model)


def test_a_transformer_that_learns_nothing_needs_no_warm_up():
    model = always(compose.Select("a") | GPClassifier(), warm_up=0)
    model.learn_one({"a": 1.0, "b": "text"}, "p")
    assert model.predict_proba_one({"a": 1.0}) == {"p": 1.0}


def test_text_is_for_pipelines_that_take_it():
    words = feature_extraction.BagOfWords(on="text") | naive_bayes.MultinomialNB()
    model = always(words, warm_up=5)
    for _ in range(10):
        model.learn_one({"text": "red green"}, "colour")
        model.learn_one({"text": "dog cat"}, "animal")
    p = model.predict_proba_one({"text": "cat"})
    assert p["animal"] > 0.6
    near = model.neighbours_one({"text": "dog cat"}, 1)
    assert near[0].y == "animal"
    assert near[0].distance == 0.0


def test_one_hot_encoded_text_is_learned():
    encoded = (
        (compose.Select("place") | preprocessing.OneHotEncoder()) + compose.Select("level")
    ) | GPClassifier(noise_variance=0.1)
    model = always(encoded, warm_up=4)
    for i in range(12):
        model.learn_one({"place": "home" if i % 2 else "work", "level": 0.01 * i}, i % 2)
    assert model.predict_proba_one({"place": "home", "level": 0.05})[1] > 0.9


# --- doubting and learning


def test_without_a_challenge_the_annotation_is_learned():
    model = always(GPClassifier())
    model.learn_one({"a": 1.0}, "right", annotation="wrong")
    assert model.learner.labels == ["wrong"]
    model.learn_one({"a": 2.0}, "right")
    assert model.learner.labels == ["wrong", "right"]


def test_a_challenged_annotation_is_reconsidered():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), AlwaysChallenge(), warm_up=0, seed=1)
    model.learn_one({"a": 1.0}, "p")
    model.learn_one({"a": 1.0}, "right", annotation="wrong")
    assert model.learner.labels == ["p", "right"]
    # An annotation that agrees with the prediction is not challenged, true or not.
    model.learn_one({"a": 1.0}, "right", annotation="p")
    assert model.learner.labels == ["p", "right"]


def test_a_label_of_false_or_zero_is_an_annotation():
    model = always(GPClassifier())
    model.learn_one({"a": 1.0}, True, annotation=False)
    assert model.learner.labels == [False]


def test_the_error_rate_of_an_annotator_in_closed_form():
    model = always(GPClassifier(SquaredExponential(), noise_variance=1.0), warm_up=0)
    x = {"a": 0.0}
    assert model.error_rate("ann") == 0.2
    # Nothing known, not contested: certainly right.
    model.settle_one(x, "p", given="p", challenged=False, annotator="ann")
    assert model.error_rate("ann") == pytest.approx(1 / 6)
    # Challenged and changed.
    model.settle_one({"a": 99.0}, "p", given="q", challenged=True, annotator="ann")
    assert model.error_rate("ann") == pytest.approx(2 / 7)
    # Challenged and upheld.
    model.settle_one({"a": -99.0}, "p", given="p", challenged=True, annotator="ann")
    assert model.error_rate("ann") == pytest.approx(2 / 8)
    # Not contested: mean 1/2 of the only known class, e = 1/4, C = 2.
    model.settle_one(x, "p", given="p", challenged=False, annotator="ann")
    q, e = 0.5, 0.25
    w = 1 - q * (1 - e) / (q * (1 - e) + (1 - q) * e)
    assert model.error_rate("ann") == pytest.approx((2 + w) / 9)


def test_every_annotator_has_an_error_rate():
    model = always(GPClassifier())
    for i in range(5):
        model.settle_one(
            {"a": float(i)}, "p", given="q", challenged=True, annotator="bad", event_id=str(i)
        )
    assert model.error_rate("bad") == 0.6
    assert model.error_rate("good") == model.error_rate() == 0.2


def test_a_bad_annotator_is_doubted_more():
    model = SkepticalClassifier(GPClassifier(), challenge=SkepticalChallenge(0.3), seed=1)
    converse(model, stream(80))
    for i in range(10):
        model.settle_one(
            {"a": 0.0, "b": 0.0}, 0, given=1, challenged=True, annotator="bad", event_id=f"b{i}"
        )
    x = {"a": 1.0, "b": -25.0}
    proba = model.predict_proba_one(x)
    assert model.error_rate("bad") > 0.7
    y = max(proba, key=proba.get)
    suspicion = model.probability_wrong_one(x, y, annotator="bad")
    assert suspicion == model.challenge_one(x, y, annotator="bad").score > 0.3
    assert model.challenge_one(x, y, annotator="good").score < 0.3


@pytest.mark.parametrize("temporal", [None, TemporalFilter()])
def test_the_posterior_of_a_gp_is_that_of_the_scaled_features(temporal):
    model = SkepticalClassifier(GPClassifier(), temporal=temporal, seed=1)
    converse(model, stream(40))
    x, _ = next(stream(1, seed=9))
    posterior = model.predict_proba_one(x, with_dist=True)
    assert posterior.variance < posterior.prior_variance
    assert posterior.probabilities() == model.own_proba_one(x)
    assert posterior == model.learner.predict_proba_one(
        model._store.scaling.transform(x), with_dist=True
    )


def test_a_learner_that_has_probabilities_only_has_no_posterior():
    model = SkepticalClassifier(naive_bayes.GaussianNB(), seed=1)
    converse(model, stream(40))
    with pytest.raises(TypeError, match="GaussianNB predicts probabilities without a distribution"):
        model.predict_proba_one({"a": 1.0, "b": 0.0}, with_dist=True)


def test_the_probability_of_a_wrong_label_is_that_of_the_criteria():
    model = SkepticalClassifier(GPClassifier(), seed=1)
    converse(model, stream(40))
    x, _ = next(stream(1, seed=9))
    belief = model.learner.predict_proba_one(model._store.scaling.transform(x), with_dist=True)
    for y in (0, 1, "new"):
        p = criteria.probability_wrong(belief, y, 0.2)
        assert model.probability_wrong_one(x, y, annotator="new") == p
        decision = model.challenge_one(x, y, annotator="new")
        assert decision == Decision.of(p, 0.1, "SkepticalChallenge")


def test_outcomes_of_challenges_correct_the_probability_but_no_decision_and_no_error_rate():
    model = SkepticalClassifier(GPClassifier(), seed=1)
    converse(model, stream(40))
    twin, (x, y) = copy.deepcopy(model), next(stream(1, seed=9))
    before = model.probability_wrong_one(x, 1 - y)
    assert before > 0.1
    assert model.settle_one(x, y, given=1 - y, challenged=True, event_id="e") == 1.0
    twin.settle_one(x, y, given=y, challenged=True, event_id="e")
    twin._error_estimates = copy.deepcopy(model._error_estimates)
    for x, _ in stream(60, seed=3):
        for y in (0, 1):
            given = twin.probability_wrong_one(x, y), twin.challenge_one(x, y).ask
            corrected, decision = model.probability_wrong_one(x, y), model.challenge_one(x, y)
            assert corrected >= given[0]
            assert (corrected > given[0]) == (given[0] > 0.1)
            assert decision.ask == given[1]
            assert decision.score == corrected
    unchallenged = [m.settle_one(x, 1, given=1, challenged=False) for m in (model, twin)]
    assert unchallenged[0] == unchallenged[1]


@pytest.mark.parametrize("labels", [(True, False), ("p", "p"), (1, 1)])
def test_binary_and_single_labels(labels):
    model = SkepticalClassifier(GPClassifier(), seed=1)
    converse(model, [(x, labels[y]) for x, y in stream(60, n_classes=2)])
    for p in answers(model):
        assert p.keys() == set(labels)
        assert math.isclose(sum(p.values()), 1.0, abs_tol=1e-9)


def test_a_binary_learner_of_river():
    model = SkepticalClassifier(linear_model.LogisticRegression(), warm_up=20, seed=1)
    metric = evaluate.progressive_val_score(
        ((x, bool(y)) for x, y in stream(300, n_classes=2)), model, metrics.Accuracy()
    )
    assert metric.get() > 0.7
    assert model.n_learned < 300


# --- budgets


def test_a_refused_decision_names_the_budget():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), budget=AtMost(2), seed=1)
    decisions = converse(model, stream(6))
    queries = [d for d in decisions if d.criterion == "AlwaysAsk"]
    assert [d.ask for d in queries] == [True, True, False, False, False, False]
    assert [d.budget for d in queries] == [None, None, *["AtMost"] * 4]
    assert all((d.score, d.threshold) == (1.0, 0.0) for d in queries)


def test_a_rule_that_does_not_want_to_ask_is_refused_by_no_budget():
    model = SkepticalClassifier(GPClassifier(), NeverAsk(), budget=AtMost(0), seed=1)
    assert model.query_one({"a": 1.0}, event_id="e").budget is None


def test_an_unanswered_question_is_given_back():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), budget=AtMost(1), seed=1)
    model.note_query(model.query_one({"a": 1.0}, event_id="e"), asked=True, now=0.0)
    assert not model.query_one({"a": 1.0}, event_id="e").ask
    model.note_unanswered(1.0)
    assert model.query_one({"a": 1.0}, event_id="e").ask


def test_a_wish_that_was_not_carried_out_costs_nothing():
    """The loop asks for no label that came along unasked."""
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), budget=AtMost(1), seed=1)
    model.note_query(model.query_one({"a": 1.0}, event_id="e"), asked=False, now=0.0)
    assert model.query_one({"a": 1.0}, event_id="e").ask


def test_the_time_of_a_budget_is_the_time_of_the_event_or_its_number():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), budget=AtMostPer(1, 10.0), seed=1)
    for now, ask in [(0.0, True), (9.0, False), (10.0, True)]:
        decision = model.query_one({}, event_id="e", now=now)
        assert decision.ask is ask
        model.note_query(decision, asked=ask, now=now)
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), budget=AtMostPer(1, 10.0), seed=1)
    assert [i for i in range(30) if model.predict_one({"a": 1.0})[1]] == [0, 10, 20]


def test_a_rate_is_kept_under_rivers_evaluator():
    model = SkepticalClassifier(
        naive_bayes.GaussianNB(), Entropy(0.0), budget=RateBudget(0.2), seed=1
    )
    evaluate.progressive_val_score(stream(1000), model, metrics.Accuracy())
    assert abs(model.n_learned / 1000 - 0.2) < 0.02


def test_a_budget_is_copied_for_every_model():
    budget = AtMost(1)
    one, other = (SkepticalClassifier(GPClassifier(), AlwaysAsk(), budget=budget) for _ in "ab")
    assert one.predict_one({})[1]
    assert not one.predict_one({})[1]
    assert other.predict_one({})[1]
    assert one.clone().predict_one({})[1]
    assert one.budget is budget


# --- relabelling and forgetting


@pytest.mark.parametrize("name", ["GP", "naive Bayes", "scaler and GP", "nearest neighbours"])
@pytest.mark.parametrize("n", [10, 40])
def test_a_relabelled_example_is_as_if_it_had_been_learned_so(name, n):
    one, other = (always(MODELS[name](), warm_up=20) for _ in range(2))
    pairs = list(stream(n))
    changed = [(x, 2 if i == 5 else y) for i, (x, y) in enumerate(pairs)]
    converse(one, pairs)
    before = answers(one)
    one.relabel_one("e5", 2)
    converse(other, changed)
    assert one.n_learned == n
    assert close(answers(one), answers(other))
    assert pairs[5][1] == 2 or answers(one) != before


@pytest.mark.parametrize("name", ["GP", "naive Bayes", "scaler and GP", "nearest neighbours"])
@pytest.mark.parametrize("n", [10, 40])
def test_a_forgotten_example_is_as_if_it_had_never_been_learned(name, n):
    one, other = (always(MODELS[name](), warm_up=20) for _ in range(2))
    pairs = list(stream(n))
    converse(one, pairs)
    one.forget_one("e5")
    for i, (x, y) in enumerate(pairs):
        other.observe_one(x)
        if i != 5:
            other.settle_one(x, y, given=y, challenged=False, event_id=f"e{i}")
    assert one.n_learned == n - 1
    assert close(answers(one), answers(other))
    with pytest.raises(KeyError):
        one.relabel_one("e5", 1)
    one.settle_one(*pairs[5], given=pairs[5][1], challenged=False, event_id="e5")
    assert one.n_learned == n


def test_a_relabelled_example_survives_the_next_rebuild():
    one, other = (always(GPClassifier(), warm_up=20) for _ in range(2))
    pairs = list(stream(30))
    converse(one, pairs[:10])
    one.relabel_one("e5", "new")
    one.forget_one("e6")
    converse(one, pairs[10:], start=10)
    for i, (x, y) in enumerate(pairs):
        other.observe_one(x)
        if i != 6:
            other.settle_one(x, "new" if i == 5 else y, given=y, challenged=True)
    assert close(answers(one), answers(other))  # the classes came in another order


@pytest.mark.parametrize("method", ["relabel_one", "forget_one"])
def test_an_event_that_was_not_learned_is_a_key_error(model, method):
    converse(model, stream(10))
    before = answers(model)
    with pytest.raises(KeyError, match="event 'stranger' was not learned"):
        getattr(model, method)("stranger", *([1] if method == "relabel_one" else []))
    assert answers(model) == before


def test_an_event_is_learned_once(model):
    converse(model, [({"a": 1.0, "b": 1.0}, 1)])
    before = answers(model)
    with pytest.raises(ValueError, match="event 'e0' was already learned; use relabel_one"):
        model.settle_one({"a": 2.0, "b": 1.0}, 2, given=2, challenged=False, event_id="e0")
    assert answers(model) == before
    assert model.n_learned == 1


def test_a_label_must_not_be_missing(model):
    converse(model, stream(10))
    before, n = answers(model), model.n_learned
    for attempt in (
        lambda: model.settle_one({"a": 1.0, "b": 1.0}, None, given=1, challenged=True),
        lambda: model.relabel_one("e0", None),
        lambda: model.learn_one({"a": 1.0, "b": 1.0}, None),
    ):
        with pytest.raises(TypeError, match="y must be a label, got None; do not learn events"):
            attempt()
    assert model.n_learned == n
    assert answers(model) == before
    model.relabel_one("e0", 1)


def test_examples_without_an_id_replace_none_that_have_one():
    model = always(GPClassifier())
    for event_id in (1, None, 2, None, 0, None):
        model.settle_one({"a": 1.0}, "p", given="p", challenged=False, event_id=event_id)
    assert model.n_learned == 6


# --- refusals


def test_an_example_that_the_learner_refuses_leaves_no_trace():
    model = isgp("paper", seed=1)
    converse(model, [({"a": float(5 * i)}, i % 2) for i in range(5)])
    before = state(model)
    with pytest.raises(NotPositiveDefiniteError, match="raise noise_variance"):
        model.settle_one({"a": 0.0}, 7, given=7, challenged=True, annotator="ann", event_id="x")
    assert state(model) == before


@pytest.mark.parametrize("n", [0, 10, 300])
@pytest.mark.parametrize(
    ("value", "error"), [(math.inf, ValueError), (1e200, ValueError), (b"loud", TypeError)]
)
def test_an_event_that_is_refused_leaves_no_trace(value, error, n):
    model = isgp(seed=1)
    converse(model, stream(n))
    before = state(model)
    for x in ({"a": 1.0, "new": value}, {"new": 1.0, "a": value}):
        with pytest.raises(error, match=r"feature '(a|new)' must be|scale the features"):
            model.observe_one(x)
        assert state(model) == before


def test_the_loop_rejects_what_the_learner_cannot_take_and_goes_on():
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), seed=1)
    loop = InteractiveLoop(model)
    for i, value in enumerate([b"loud", math.inf, 10**400, 1e200, [1.0]]):
        event = Event(event_id=f"e{i}", x={"a": value}, occurred_at=float(i))
        (message,) = loop.on_event(event, float(i))
        assert isinstance(message, Rejected)
        assert message.fault == "malformed"
        assert "feature 'a' must be" in message.reason
    messages = loop.on_event(Event(event_id="e9", x={"a": 1.0}, occurred_at=9.0), 9.0)
    assert isinstance(messages[0], Prediction)
    assert len(messages) == 2


class Flattening(base.Transformer):
    """Tells points apart until it has seen four events."""

    def __init__(self):
        self.n = 0

    def learn_one(self, x):  # noqa: ARG002
        self.n += 1

    def transform_one(self, x):
        return x if self.n < 4 else {"a": 0.0}


@pytest.fixture
def flattened():
    """Two of its three examples cannot be learned any more."""
    model = always(Flattening() | GPClassifier(SquaredExponential(), 1e-16), warm_up=4)
    for i in range(4):
        x = {"a": 10.0 * i}
        model.observe_one(x)
        if i < 3:
            model.settle_one(x, f"y{i}", given=f"y{i}", challenged=False, event_id=f"e{i}")
    return model


def test_examples_that_collapse_in_a_rebuild_stay_on_record(flattened):
    assert flattened.learner.n_learned == 1
    assert flattened.n_learned == 3
    assert flattened.predict_proba_one({"a": 3.0}) == {"y0": 1.0, "y1": 0.0, "y2": 0.0}
    assert [n.event_id for n in flattened.neighbours_one({"a": 3.0})] == ["e0", "e1", "e2"]
    with pytest.raises(NotPositiveDefiniteError):
        flattened.settle_one({"a": 9.0}, "y", given="y", challenged=False)


def test_examples_that_collapsed_can_be_relabelled_and_forgotten(flattened):
    flattened.relabel_one("e1", "other")
    flattened.forget_one("e2")
    flattened.relabel_one("e0", "zero")
    assert flattened.n_learned == 2
    assert flattened.predict_proba_one({"a": 3.0})["zero"] == 1.0
    assert {n.event_id: n.y for n in flattened.neighbours_one({})} == {"e0": "zero", "e1": "other"}


def test_the_twin_of_a_forgotten_example_takes_its_place(flattened):
    flattened.forget_one("e0")
    assert flattened.n_learned == 2
    assert flattened.learner.n_learned == 1
    assert flattened.predict_proba_one({"a": 3.0}) == {"y0": 0.0, "y1": 1.0, "y2": 0.0}


class Late(naive_bayes.GaussianNB):
    """Refuses large values."""

    def learn_one(self, x, y):
        if max(x.values()) > 1.2:
            raise ValueError("too large")
        super().learn_one(x, y)


def test_a_rebuild_passes_over_what_the_learner_refuses_under_new_statistics():
    model = always(Late(), warm_up=4)
    for value in (0.0, 5.0):
        model.observe_one({"a": value})
        model.settle_one({"a": value}, value, given=value, challenged=False)
    assert model.predict_proba_one({"a": 0.0}).keys() == {0.0, 5.0}
    for value in (0.0, 0.0):
        model.observe_one({"a": value})
    # 5 is 1.7 standard deviations above the mean by now.
    assert model.n_learned == 2
    assert model.predict_proba_one({"a": 0.0}) == {0.0: 1.0}


@pytest.mark.parametrize(
    "wrong",
    [
        linear_model.LinearRegression(),
        preprocessing.StandardScaler(),
        preprocessing.StandardScaler() | linear_model.LinearRegression(),
        SkepticalClassifier(GPClassifier()),
        active.EntropySampler(naive_bayes.GaussianNB()),
        preprocessing.StandardScaler() | active.EntropySampler(naive_bayes.GaussianNB()),
        GPClassifier,
        "GPClassifier",
        None,
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_only_classifiers_can_be_wrapped(wrong):
    with pytest.raises(TypeError, match=r"model must be a River classifier that is not an active"):
        SkepticalClassifier(wrong)


@pytest.mark.parametrize("warm_up", [-1, 1.5])
def test_the_warm_up_is_a_whole_number(warm_up):
    message = f"warm_up must be a whole number of at least 0, got {warm_up}"
    with pytest.raises(ValueError, match=message):
        SkepticalClassifier(GPClassifier(), warm_up=warm_up)


# --- neighbours


def test_neighbours_are_the_nearest_examples_as_the_learner_sees_them():
    model = always(GPClassifier(), warm_up=20)
    converse(model, stream(40))
    x, _ = next(stream(1, seed=9))
    here = model._store.scaling.transform(x)
    expected = sorted(
        (math.dist(here.values(), model._store.scaling.transform(e).values()), f"e{i}", y)
        for i, (e, y) in enumerate(stream(40))
    )
    found = model.neighbours_one(x, 4)
    assert [(n.event_id, n.y) for n in found] == [(e, y) for _, e, y in expected[:4]]
    assert [n.distance for n in found] == pytest.approx([d for d, _, _ in expected[:4]])
    assert found[0].x == dict(list(stream(40))[int(found[0].event_id[1:])][0])


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_those_that_a_copy_finds_which_has_seen_no_example_yet(seed):
    """Whatever was asked before: rows of examples are kept until what the learner sees changes."""
    rng = random.Random(seed)

    def features():
        found = {"a": rng.gauss(0.0, 1.0), "b": rng.choice([None, rng.gauss(5.0, 9.0)])}
        late = {"c": rng.random(), "t": rng.choice("xyz")}
        return {k: v for k, v in {**found, **late}.items() if rng.random() < (0.9, 0.5)[k in late]}

    model, ids = always(GPClassifier(), warm_up=20), []
    for i in range(150):
        x = features()
        model.observe_one(x)
        if rng.random() < 0.4:
            y, ids = rng.choice("pqr"), [*ids, f"e{i}"]
            model.settle_one(x, y, given=y, challenged=False, event_id=ids[-1])
        if ids and rng.random() < 0.05:
            model.forget_one(ids.pop(rng.randrange(len(ids))))
        asked = features()
        found = model.neighbours_one(asked, 4)
        assert found == copy.deepcopy(model).neighbours_one(asked, 4)
        assert len(found) == min(4, len(ids))


def test_neighbours_are_no_more_than_there_are():
    model = always(GPClassifier())
    assert model.neighbours_one({"a": 1.0}) == []
    model.learn_one({"a": 1.0}, "p")
    assert len(model.neighbours_one({"a": 1.0})) == 1
    with pytest.raises(ValueError, match="n must be a whole number of at least 0, got -1"):
        model.neighbours_one({"a": 1.0}, -1)


def test_absent_missing_and_huge_values_have_a_distance():
    model = always(GPClassifier(), warm_up=0)
    model.learn_one({"a": None, "b": 3.0}, "p")
    model.learn_one({"a": 4.0, "b": math.nan}, "q")
    near = model.neighbours_one({"b": None})
    assert [(n.y, n.distance) for n in near] == [("p", 3.0), ("q", 4.0)]
    assert model.neighbours_one({"b": 3.0, "t": "no example has it"})[0].distance == 1.0
    assert model.neighbours_one({"a": 1e150})[0].distance == pytest.approx(1e150)


def test_neighbours_belong_to_the_caller():
    model = always(GPClassifier(), warm_up=0)
    model.learn_one({"a": 1.0}, "p", event_id="e")
    model.neighbours_one({"a": 1.0})[0].x["a"] = 99.0
    assert model.neighbours_one({"a": 1.0})[0].distance == 0.0


# --- arguments


def test_every_argument_is_readable_under_its_name():
    arguments = {
        "model": GPClassifier(),
        "query": SkepticalAsk(2.0),
        "challenge": SkepticalChallenge(0.2),
        "budget": Unlimited(),
        "warm_up": 50,
        "review": LeaveOneOutReview(),
        "reservoir": RecentEventsAsk(),
        "temporal": TemporalFilter(),
        "drift_test": DriftTest(),
        "rescale": True,
        "seed": 3,
    }
    model = SkepticalClassifier(**arguments)
    assert set(arguments) == set(inspect.signature(SkepticalClassifier).parameters)
    for name, value in arguments.items():
        assert getattr(model, name) is value
    assert SkepticalClassifier(GPClassifier()).query is None


def test_the_defaults_are_those_of_isgp_but_for_its_scaling():
    one, other = SkepticalClassifier(GPClassifier(), rescale=True, seed=1), isgp(seed=1)
    assert converse(one, stream(40)) == converse(other, stream(40))


def test_weights_of_features_can_be_read_the_largest_first():
    rng = random.Random(1)
    xs = [{"b": rng.gauss(0.0, 1.0), "a": rng.gauss(0.0, 1.0)} for _ in range(32)]
    model, alike = (SkepticalClassifier(GPClassifier(), rescale=r, seed=1) for r in (True, False))
    for each in (model, alike):
        for n, x in enumerate(xs):
            if n < 31:
                assert each.feature_weights == {}
            each.predict_one(x)
            each.learn_one(x, x["a"] > 0.0)
        assert alike.feature_weights == {}
    (first, a), (last, b) = model.feature_weights.items()
    assert (first, last) == ("a", "b")
    assert a > 1.0 > b
    assert a**2 + b**2 == pytest.approx(2.0)
    model.feature_weights.clear()
    assert model.feature_weights == {"a": a, "b": b}


def states(n):
    """Return events in one of 12 states, of which every other one is `on`."""
    rng = random.Random(1)
    xs = [{"a": rng.gauss(0.0, 1.0), "state": rng.randrange(12)} for _ in range(n)]
    return [(x, "on" if x["state"] % 2 else "off") for x in xs]


def test_numbers_that_are_names_are_learned_as_such():
    model = isgp(seed=1)
    right = []
    for n, (x, y) in enumerate(states(600)):
        assert n >= 31 or model.feature_forms == {}
        right.append(model.predict_one(x)[0] == y)
        model.learn_one(x, y)
    assert model.feature_forms == {"state": ["name"]}
    assert np.mean(right[200:]) > 0.95
    model.feature_forms["state"].clear()
    assert model.feature_forms == {"state": ["name"]}


def test_an_infinite_number_that_was_learned_ends_no_renewal():
    model = isgp(seed=1, warm_up=40)
    for n, (x, y) in enumerate(states(100)):
        model.observe_one(x)
        if n < 30:
            model.learn_one(x, y)
        if n == 30:
            model.learn_one({**x, "a": math.inf}, y)
    assert model.feature_forms == {"state": ["name"]}


class Restorable(naive_bayes.GaussianNB):
    """A learner of one's own that spares some training."""

    def state(self):
        return {}

    def load_state(self, state):
        pass


@pytest.mark.parametrize(
    ("learner", "takes_texts"),
    [
        (naive_bayes.GaussianNB(), False),
        (Restorable(), False),
        (ConfidenceBoostingClassifier(naive_bayes.GaussianNB(), 1, seed=1), False),
        (ConfidenceBoostingClassifier(n_models=1, seed=1), True),
    ],
    ids=["of River", "of one's own", "boosted", "boosted forest"],
)
def test_only_learners_that_take_texts_get_names(learner, takes_texts):
    model = SkepticalClassifier(learner, rescale=True, warm_up=40, seed=1)
    for x, y in states(80):
        model.predict_one(x)
        model.learn_one(x, y)
    assert model.feature_forms == ({"state": ["name"]} if takes_texts else {})


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": SkepticalAsk},
        {"query": SkepticalChallenge()},
        {"challenge": SkepticalAsk()},
        {"challenge": "skeptical"},
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_at_once(arguments):
    [name] = arguments
    with pytest.raises(TypeError, match=f"{name} must be an object of streamgp.query with"):
        SkepticalClassifier(naive_bayes.GaussianNB(), **arguments)


def test_a_label_that_is_the_prediction_is_not_challenged_however_weak_both_are():
    rule = SkepticalChallenge(threshold=0.05)
    model = SkepticalClassifier(GPClassifier(), challenge=rule, warm_up=0, seed=1)
    for a, y in [(0.0, "p"), (0.4, "q"), (0.8, "r")]:
        model.learn_one({"a": a}, y)
    x = {"a": 0.1}
    assert max(model.predict_proba_one(x), key=model.predict_proba_one(x).get) == "p"
    decision = model.challenge_one(x, "p")
    assert decision.score == model.probability_wrong_one(x, "p") > decision.threshold
    assert (decision.ask, decision.budget) == (False, "agreement")
    assert model.challenge_one(x, "r").ask


@pytest.mark.parametrize("seed", ["a", [1], math.nan, 1.5])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(TypeError, match="seed must be a whole number or None, got"):
        isgp(seed=seed)


class OneOf(base.Classifier):
    """A classifier that keeps its models in a tuple or a dictionary, and asks one of them."""

    _multiclass = True

    def __init__(self, models, which):
        self.models = models
        self.which = which

    def learn_one(self, x, y):
        self.models[self.which].learn_one(x, y)

    def predict_proba_one(self, x):
        return self.models[self.which].predict_proba_one(x)


DRAWING = {
    "the end of a pipeline": lambda seed: (
        preprocessing.StandardScaler() | forest.ARFClassifier(seed=seed)
    ),
    "a transformer": lambda seed: (
        (preprocessing.StandardScaler() + feature_extraction.RBFSampler(seed=seed)) | GPClassifier()
    ),
    "inside a wrapper in a pipeline": lambda seed: (
        preprocessing.StandardScaler()
        | multiclass.OneVsRestClassifier(forest.ARFClassifier(seed=seed))
    ),
    "one of several models": lambda seed: ensemble.StackingClassifier(
        [naive_bayes.GaussianNB(), forest.ARFClassifier(seed=seed)], naive_bayes.GaussianNB()
    ),
    "in a tuple": lambda seed: OneOf((forest.ARFClassifier(seed=seed),), 0),
    "in a dictionary": lambda seed: OneOf({"one": forest.ARFClassifier(seed=seed)}, "one"),
    "ours inside another": lambda seed: ensemble.BaggingClassifier(
        OnlineForestClassifier(seed=seed), seed=1
    ),
}


@pytest.mark.parametrize("model", DRAWING.values(), ids=DRAWING)
def test_a_model_with_an_unseeded_part_is_not_saved(model):
    with pytest.raises(TypeError, match="draws random numbers and has no seed"):
        SkepticalClassifier(model(None)).state()
    assert SkepticalClassifier(model(1)).state()


@pytest.mark.parametrize(
    "model", [*DRAWING.values(), OnlineForestClassifier], ids=[*DRAWING, "ours"]
)
def test_the_seed_is_that_of_all_parts_without_one(model):
    rows = [({"a": i * 0.3 % 1.0, "b": i * 0.7 % 1.0}, i % 3) for i in range(40)]

    def beliefs(seed):
        skeptical = SkepticalClassifier(model(seed=None), AlwaysAsk(), warm_up=10, seed=seed)
        for x, y in rows:
            skeptical.learn_one(x, y)
        return [skeptical.own_proba_one(x) for x, _ in rows]

    assert beliefs(1) == beliefs(1) != beliefs(2)


@pytest.mark.parametrize("label", [None, math.nan])
def test_a_missing_label_is_refused_and_not_learned(label):
    model = isgp(seed=1)
    with pytest.raises(TypeError, match="y must be a label, got"):
        model.learn_one({"a": 1.0}, label)
    with pytest.raises(TypeError, match="y must be a label, got nan"):
        model.learn_one({"a": 1.0}, "p", annotation=math.nan)
    assert model.n_learned == 0


@pytest.mark.parametrize(
    "model",
    [
        ensemble.VotingClassifier([naive_bayes.GaussianNB(), naive_bayes.BernoulliNB()]),
        multiclass.OneVsOneClassifier(linear_model.LogisticRegression()),
    ],
)
def test_a_classifier_without_probabilities_is_refused_at_once(model):
    name = type(model).__name__
    with pytest.raises(TypeError, match=f"must predict probabilities, which {name} does not"):
        SkepticalClassifier(preprocessing.StandardScaler() | model)


class Counting:
    """Asks, and has a state that only `decide` could change."""

    def decide(self, belief, draw):  # noqa: ARG002
        return Decision.of(1.0, draw, "Counting")

    def state(self):
        return {}

    def load_state(self, state):
        pass


class Hearing(Counting):
    """Looks for the largest probability, of which there is none before the first label."""

    def hear(self, belief, y):  # noqa: ARG002
        max(belief.values())


def test_a_strategy_whose_state_would_not_be_saved_is_refused_at_once():
    with pytest.raises(TypeError, match=r"query must have hear\(belief, y\) to have a state, got"):
        SkepticalClassifier(naive_bayes.GaussianNB(), Counting())
    SkepticalClassifier(naive_bayes.GaussianNB(), Hearing())


def test_a_strategy_that_cannot_use_a_label_is_named():
    model = SkepticalClassifier(naive_bayes.GaussianNB(), Hearing(), seed=1)
    with pytest.raises(LearnerFailedError, match=r"^Hearing\.hear cannot use a label: max\(\)"):
        model.learn_one({"a": 1.0}, "p")
    assert model.n_learned == 1


class Eager:
    """A rule that answers yes, as River's active learners do."""

    def decide(self, belief, given=None, *, draw, probability_wrong=0.0):  # noqa: ARG002
        return True


class EagerToAsk:
    def decide(self, belief, draw):  # noqa: ARG002
        return True


def test_a_rule_that_returns_no_decision_is_named():
    model = SkepticalClassifier(GPClassifier(), EagerToAsk(), Eager(), seed=1)
    with pytest.raises(TypeError, match=r"^EagerToAsk\.decide must return a Decision, got True; m"):
        model.query_one({"a": 1.0}, event_id="e")
    with pytest.raises(TypeError, match=r"^Eager\.decide must return a Decision, got True; make"):
        model.challenge_one({"a": 1.0}, "p")


class Rare:
    """A strategy that learns, and does not keep all that it was made of."""

    def __init__(self, seed=0):  # noqa: ARG002
        self.n_heard = 0

    def decide(self, belief, draw):  # noqa: ARG002
        return Decision.of(1.0, 0.0, "Rare")

    def hear(self, belief, y):  # noqa: ARG002
        self.n_heard += 1

    def state(self):
        return {"n": self.n_heard}

    def load_state(self, state):
        self.n_heard = state["n"]


def test_what_a_strategy_has_learned_is_no_part_of_the_configuration():
    loop = InteractiveLoop(SkepticalClassifier(GPClassifier(), Rare(), seed=1))
    before = loop.model.fingerprint()
    [_, request] = loop.on_event(Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), now=0.0)
    answer = Answer(
        answer_id="a", event_id="e", request_id=request.request_id, y="x", answered_at=1.0
    )
    loop.on_answer(answer, now=1.0)
    assert loop.model.fingerprint() == before
    again = InteractiveLoop.restore(
        loop.snapshot(), SkepticalClassifier(GPClassifier(), Rare(), seed=1)
    )
    assert again.model.state()["query"] == {"n": 1}


def test_a_label_never_heard_before_is_doubted_only_where_that_is_wanted():
    def decided(**options):
        model = SkepticalClassifier(
            GPClassifier(), challenge=SkepticalChallenge(**options), warm_up=0, seed=1
        )
        for n in range(20):
            model.learn_one({"light": 0.1 * n}, "hall")
        first = model.probability_wrong_one({"light": 50.0}, "den")
        return first, model.challenge_one({"light": 50.0}, "den").ask, model.fingerprint()

    believed, doubted = decided(), decided(doubts_new=True)
    assert believed[:2] == (pytest.approx(0.0, abs=1e-6), False)
    # By hand, far from all: 1/22 are new; an error can name no other.
    e = SkepticalClassifier(GPClassifier(), seed=1).error_rate()
    assert e == 0.2
    assert doubted[1]
    assert 0.2 < doubted[0] < 0.2 / (0.2 + 0.8 / 22)
    assert decided(doubts_new=False)[2] == believed[2] != doubted[2]


def test_of_two_equal_labels_the_final_one_is_on_record():
    """A line of the log does not say that the first one was `True`."""
    model = isgp(seed=1)
    model.settle_one({"u": 0.0}, 1, given=True, challenged=True)
    answer = model.examples()[0].answer
    assert (type(answer.y), answer.upheld) == (int, True)


# --- what learners and callers of other kinds hand over


NUMPYS_LABELS = [
    [np.str_("p"), np.str_("q"), np.str_("r")],
    [np.int64(1), np.int64(2), np.int64(3)],
    [np.float32(0.5), np.float32(1.5), np.float32(2.5)],
    [np.bool_(False), np.bool_(True)],
]


@pytest.mark.parametrize("labels", NUMPYS_LABELS, ids=lambda labels: type(labels[0]).__name__)
def test_a_state_with_labels_of_numpy_is_plain_json(labels):
    model = isgp(seed=1)
    draw = random.Random(1)
    for n in range(90):
        # Of no use: the drift test becomes suspicious, and says so for a class.
        model.learn_one({"a": draw.gauss(n % len(labels), 0.1)}, draw.choice(labels))
    state = model.state()
    assert json.loads(json.dumps(state)) == state
    kept = [*state["taught"]["labels"], *state["temporal"]["labels"]]
    kept += [key for key, *_ in state["drift"]["suspicions"] if key is not None]
    assert {type(label) for label in kept} == {type(labels[0].item())}
    again = model.clone()
    again.load_state(json.loads(json.dumps(state)), model.examples())
    assert again.predict_proba_one({"a": 0.5}) == model.predict_proba_one({"a": 0.5})


class Saying(base.Classifier):
    """Says the same of every event."""

    def __init__(self, proba):
        self.proba = proba

    @property
    def _multiclass(self):
        return True

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, x):  # noqa: ARG002
        return self.proba


@pytest.mark.parametrize(
    "proba",
    [
        {"p": 0.7, "q": 0.7},
        {"p": 0.2, "q": 0.3},
        {"p": 1.5, "q": -0.5},
        {"p": 0.5, None: 0.5},
        {"p": np.float64(3.0), "q": np.float64(4.0)},
        [0.5, 0.5],
        None,
    ],
)
def test_a_learner_whose_probabilities_are_none_is_named(proba):
    model = SkepticalClassifier(Saying(proba), seed=1)
    words = r"^Saying\.predict_proba_one must return a probability of each label, none of them nega"
    with pytest.raises(RuntimeError, match=words):
        model.predict_one({"a": 1.0})
    [flaw] = InteractiveLoop(SkepticalClassifier(Saying(proba), seed=1)).on_event(
        Event(event_id="e", x={"a": 1.0}, occurred_at=0.0), now=0.0
    )
    # The features are not to blame.
    assert (flaw.fault, flaw.reason[:28]) == ("failed", "RuntimeError: Saying.predict")


@pytest.mark.parametrize("proba", [{}, {"p": 0.0, "q": 0.0}, {"p": 1}, {"p": 0.3333, "q": 0.6666}])
def test_a_learner_may_know_nothing_and_round(proba):
    assert SkepticalClassifier(Saying(proba), seed=1).own_proba_one({"a": 1.0}) == proba


def test_probabilities_of_numpy_become_numbers_of_python():
    saying = Saying({"p": np.float32(0.25), "q": np.float32(0.75)})
    model = SkepticalClassifier(saying, drift_test=DriftTest(), seed=1)
    proba = model.own_proba_one({"a": 1.0})
    assert proba == {"p": 0.25, "q": 0.75}
    assert {type(share) for share in proba.values()} == {float}
    for y in "pqq":
        model.learn_one({"a": 1.0}, y)
    assert json.loads(json.dumps(model.state())) == model.state()
