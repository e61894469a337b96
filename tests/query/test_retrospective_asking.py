"""Which of the latest events is asked about: as in a pool, from what a learner knows."""

import json
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes, preprocessing

from streamgp import (
    EnsembleGPClassifier,
    GPClassifier,
    OnlineForestClassifier,
    PoolSampler,
    SkepticalClassifier,
    kernels,
)
from streamgp.query import AtMost, AtMostPer, NeverChallenge, RateBudget, RecentEventsAsk
from streamgp.query.pool_criteria import CRITERIA, Joint
from streamgp.query.retrospective import CriterionName, RecentEventChooser
from tests.helpers.forgetful import ARD
from tests.helpers.laws import examples
from tests.helpers.pool_cases import case_of

KERNEL = kernels.SquaredExponential(0.8)


def test_the_names_of_criteria_are_those_of_pools():
    assert get_args(CriterionName) == tuple(CRITERIA)


NAMED = [name for name in CRITERIA if name != "rand"]


def as_features(point):
    return dict(zip("abc", point.tolist(), strict=False))


def skeptical(reservoir=None, learner=None, **options):
    return SkepticalClassifier(
        GPClassifier(KERNEL, 0.5) if learner is None else learner,
        challenge=NeverChallenge(),
        reservoir=reservoir or RecentEventsAsk(every=1),
        warm_up=0,
        seed=1,
        **options,
    )


def taught(model, X, labels, first=0):
    for i, (x, y) in enumerate(zip(X, labels, strict=True), start=first):
        model.learn_one(as_features(x), y, event_id=f"told{i}")
    return model


# --- the choice


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 12),
    n_classes=st.integers(1, 4),
    criterion=st.sampled_from(NAMED),
    noise_variance=st.sampled_from([0.01, 0.1, 0.5]),
)
def test_the_choice_is_that_of_a_pool_told_the_same_labels(
    seed, n, n_classes, criterion, noise_variance
):
    """The pool is what was learned and the candidates; classes come one by one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 12, 2))
    labels = [f"c{k}" for k in rng.integers(n_classes, size=n)]
    pool = PoolSampler(X, criterion, KERNEL, noise_variance, seed=1)
    for i, y in enumerate(labels):
        pool.tell(i, y)
    model = skeptical(RecentEventsAsk(criterion), GPClassifier(KERNEL, noise_variance))
    taught(model, X[:n], labels)
    candidates = {f"e{i}": as_features(X[i]) for i in range(n, n + 12)}
    event_id, decision = model.ask_among_one(candidates, now=0.0)
    scores = CRITERIA[criterion](pool._posterior, pool._unlabelled)[n:]
    # The norm of what was learned is the same for all candidates, and left out.
    scores = scores - pool._posterior.square_norms.sum() * (criterion == "rkhs")
    assert decision.score == pytest.approx(scores.max(), rel=1e-6, abs=1e-9)
    # Ties apart: before the first label, all points are alike.
    assert scores[int(event_id[1:]) - n] == pytest.approx(scores.max(), rel=1e-9, abs=1e-9)


def test_of_a_few_points_the_choice_is_nearly_that_of_all():
    rng = np.random.default_rng(0)
    X, probes = rng.uniform(-1.0, 1.0, size=(300, 2)), rng.uniform(-2.0, 2.0, size=(50, 2))
    labels = np.where(X[:, 0] > 0.0, "right", "left").tolist()
    candidates = {str(i): as_features(x) for i, x in enumerate(probes)}
    found = []
    for max_points in (None, 100):
        learner = GPClassifier(KERNEL, 0.5, max_points=max_points)
        found.append(taught(skeptical(learner=learner), X, labels).ask_among_one(candidates, now=0))
    (one, exact), (other, sparse) = found
    assert one == other
    assert sparse.score == pytest.approx(exact.score, rel=0.01)


@examples(40)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 4))
def test_functions_of_indicators_are_those_of_codes(seed, n_classes):
    case = case_of(15, 8, n_classes, 0.5, seed)
    told = case.told
    G = case.K[np.ix_(told, told)] + 0.5 * np.eye(len(told))
    solved = np.linalg.solve(G, case.K[told])
    means = solved.T @ (case.codes > 0.0)
    joint = Joint.of_indicators(means, case.K - case.K[told].T @ solved, 0.5)
    functions, covariances, _ = case.refit()
    np.testing.assert_allclose(joint.functions, functions, atol=1e-12)
    np.testing.assert_allclose(joint.variances, covariances.diagonal() + 0.5, atol=1e-12)


def test_a_class_that_is_known_and_has_no_example_changes_no_bit_of_the_others():
    means = np.array([[0.6, 0.2], [0.1, 0.7], [0.3, 0.0]])
    before = Joint.of_indicators(means, np.eye(3), 0.5).functions
    after = Joint.of_indicators(np.column_stack([means, np.zeros(3)]), np.eye(3), 0.5).functions
    assert after[:2].tobytes() == before.tobytes()
    np.testing.assert_array_equal(after[2], -means.sum(axis=1))


def test_before_the_first_label_the_event_that_tells_most_of_the_others_is_chosen():
    model = skeptical(learner=GPClassifier())
    candidates = {name: {"a": a} for name, a in (("far", 9.0), ("near", 0.0), ("by", 0.4))}
    candidates["other"] = {"a": -0.5}
    event_id, decision = model.ask_among_one(candidates, now=0.0)
    assert event_id == "near"
    assert decision.ask


def test_no_events_are_no_choice():
    assert skeptical().ask_among_one({}, now=0.0) is None


def test_among_events_that_are_alike_lots_are_drawn_that_belong_to_them():
    same = {f"e{i}": {"a": 1.0} for i in range(50)}
    chosen = skeptical().ask_among_one(same, now=0.0)[0]
    backwards = dict(reversed(same.items()))
    assert skeptical().ask_among_one(backwards, now=0.0)[0] == chosen
    del same[chosen]
    assert skeptical().ask_among_one(same, now=0.0)[0] != chosen
    seeds = {
        SkepticalClassifier(GPClassifier(), reservoir=RecentEventsAsk(), seed=seed).ask_among_one(
            same, now=0.0
        )[0]
        for seed in range(5)
    }
    assert len(seeds) > 1


def test_at_random_any_event_may_be_chosen_whatever_is_known():
    candidates = {f"e{i}": {"a": float(i)} for i in range(20)}
    found = {
        SkepticalClassifier(
            GPClassifier(), reservoir=RecentEventsAsk("rand"), seed=seed
        ).ask_among_one(candidates, now=0.0)
        for seed in range(30)
    }
    assert len({event_id for event_id, _ in found}) > 10
    assert {decision.score for _, decision in found} == {1.0}


def test_where_nothing_is_left_to_learn_no_question_is_asked():
    """`hvar` is 0 where the function exceeds its label."""
    model = skeptical(RecentEventsAsk("hvar"), GPClassifier(kernels.Linear(100.0), 0.01))
    model.learn_one({"a": 1.0}, "home")
    _, decision = model.ask_among_one({"e1": {"a": 3.0}, "e2": {"a": 4.0}}, now=0.0)
    assert (decision.ask, decision.score, decision.budget) == (False, 0.0, None)


def test_choosing_changes_nothing():
    model = taught(skeptical(), np.eye(2), ["a", "b"])
    before = json.dumps(model.state())
    candidates = {f"e{i}": {"a": float(i), "new": 1.0, "text": "hall"} for i in range(9)}
    first = model.ask_among_one(candidates, now=0.0)
    assert model.ask_among_one(candidates, now=0.0) == first
    assert json.dumps(model.state()) == before


@pytest.mark.parametrize("kernel", [kernels.Linear(), None, ARD])
def test_an_event_that_cannot_be_compared_is_not_asked_about(kernel):
    """What was an ordinary number when it came may be too large under later statistics."""
    model = skeptical(learner=GPClassifier(kernel))
    model.learn_one({"a": 0.0}, "home")
    candidates = {"large": {"a": 1e155}, "huge": {"a": 1e149}, "fine": {"a": 1.0}}
    event_id, decision = model.ask_among_one(candidates, now=0.0)
    assert event_id != "large"
    assert math.isfinite(decision.score)
    assert model.ask_among_one({"large": {"a": 1e155}}, now=0.0) is None


def test_it_looks_at_events_as_the_learner_sees_them():
    scaled = SkepticalClassifier(
        preprocessing.StandardScaler() | GPClassifier(KERNEL, 0.5),
        reservoir=RecentEventsAsk(),
        warm_up=20,
        seed=1,
    )
    plain = skeptical()
    rng = np.random.default_rng(3)
    events = [{"a": 100.0 + 10.0 * rng.normal()} for _ in range(20)]
    for x in events:
        scaled.observe_one(x)
    values = [x["a"] for x in events]
    mean, std = np.mean(values), np.std(values)

    def standard(x):
        return {"a": (x["a"] - mean) / std}

    for x, y in zip(events[:6], "ababab", strict=True):
        scaled.settle_one(x, y, given=y, challenged=False)
        plain.learn_one(standard(x), y)
    candidates = {str(i): x for i, x in enumerate(events[6:])}
    one, decision = scaled.ask_among_one(candidates, now=0.0)
    other, expected = plain.ask_among_one({e: standard(x) for e, x in candidates.items()}, now=0.0)
    assert one == other
    assert decision.score == pytest.approx(expected.score, rel=1e-9)


# --- when, and how often


def test_it_is_due_every_so_many_events_and_counts_from_the_last_look():
    model = skeptical(RecentEventsAsk(every=3))
    due = []
    for _ in range(8):
        model.observe_one({"a": 0.0})
        due.append(model.reservoir_due)
        if len(due) in (4, 7):
            model.note_reservoir(None, now=0.0)
    assert due == [False, False, True, True, False, False, True, False]


def test_its_budget_hears_of_looks_and_of_nothing_else():
    model = skeptical(RecentEventsAsk(every=1, budget=AtMost(1)), budget=AtMost(100))
    candidates = {"e1": {"a": 0.0}, "e2": {"a": 1.0}}
    _, first = model.ask_among_one(candidates, now=1.0)
    model.note_reservoir(first, now=1.0)
    _, second = model.ask_among_one(candidates, now=2.0)
    assert (first.ask, second.ask, second.budget) == (True, False, "AtMost")
    assert second.score == first.score
    model.note_unanswered(3.0)
    assert not model.ask_among_one(candidates, now=4.0)[1].ask
    model.note_reservoir_unanswered(5.0, asked_at=1.0)
    assert model.ask_among_one(candidates, now=6.0)[1].ask


def test_a_question_is_given_back_by_the_time_at_which_it_was_asked():
    budget = AtMostPer(2, span_s=10.0, gives_back=True)
    model = skeptical(RecentEventsAsk(every=1, budget=budget))
    candidates = {"e1": {"a": 0.0}}
    for now in (0.0, 9.0):
        model.note_reservoir(model.ask_among_one(candidates, now=now)[1], now=now)
    model.note_reservoir_unanswered(9.5, asked_at=9.0)
    assert model.state()["reservoir"]["budget"] == {"asked_at": [0.0]}


def test_a_rate_is_one_of_looks():
    model = skeptical(RecentEventsAsk(every=1, budget=RateBudget(0.25, seed=1)))
    rng = np.random.default_rng(0)
    asked = 0
    for now in range(400):
        candidates = {f"e{now}-{i}": as_features(x) for i, x in enumerate(rng.normal(size=(3, 2)))}
        _, decision = model.ask_among_one(candidates, now=float(now))
        model.note_reservoir(decision, now=float(now))
        asked += decision.ask
    assert asked == pytest.approx(100, abs=4)


def test_a_template_stays_as_it_is():
    rule = RecentEventsAsk(budget=AtMost(1))
    model = skeptical(rule)
    model.note_reservoir(model.ask_among_one({"e": {"a": 0.0}}, now=0.0)[1], now=0.0)
    assert not model.ask_among_one({"e": {"a": 0.0}}, now=1.0)[1].ask
    assert model.clone().ask_among_one({"e": {"a": 0.0}}, now=1.0)[1].ask


# --- what it takes, and what is left of it


def test_without_a_reservoir_everything_is_as_it_was():
    """Recorded before there were any: snapshots of then can be restored."""
    model = SkepticalClassifier(GPClassifier(max_points=500), seed=1)
    assert model.reservoir is None
    assert "reservoir" not in model.state()
    assert not model.reservoir_due
    assert model.fingerprint() == "2e7a0caf0ffcd957"
    model.note_reservoir(None, now=0.0)
    model.note_reservoir_unanswered(0.0, asked_at=0.0)
    assert model.ask_among_one({"e": {"a": 0.0}}, now=0.0) is None
    assert "reservoir" not in model.state()


def test_a_reservoir_is_another_configuration():
    rules = [
        None,
        RecentEventsAsk(),
        RecentEventsAsk("hvar"),
        RecentEventsAsk(size=9),
        RecentEventsAsk(every=9),
    ]
    rules += [RecentEventsAsk(max_age_s=60.0), RecentEventsAsk(budget=AtMost(1))]
    names = {SkepticalClassifier(GPClassifier(), reservoir=r, seed=1).fingerprint() for r in rules}
    assert len(names) == len(rules)


def test_its_state_survives_a_restart():
    model, again = (skeptical(RecentEventsAsk(every=3, budget=AtMost(1))) for _ in range(2))
    for _ in range(4):
        model.observe_one({"a": 0.0})
    model.note_reservoir(model.ask_among_one({"e": {"a": 0.0}}, now=0.0)[1], now=0.0)
    again.load_state(json.loads(json.dumps(model.state())), model.examples())
    assert again.state() == model.state()
    assert not again.ask_among_one({"e": {"a": 0.0}}, now=1.0)[1].ask


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "best"}, r"criterion must be one of rand, .*, got 'best'"),
        ({"size": 0}, r"size must be a whole number of at least 1, got 0"),
        ({"every": 0.5}, r"every must be a whole number of at least 1, got 0\.5"),
        ({"max_age_s": 0.0}, r"max_age_s must be positive and finite, got 0\.0"),
        ({"max_age_s": math.inf}, r"max_age_s must be positive and finite, got inf"),
    ],
)
def test_what_is_no_rule_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        RecentEventsAsk(**options)


@pytest.mark.parametrize(
    "learner",
    [
        naive_bayes.GaussianNB(),
        EnsembleGPClassifier(),
        OnlineForestClassifier(),
        preprocessing.StandardScaler() | naive_bayes.GaussianNB(),
    ],
)
def test_a_learner_that_knows_events_one_by_one_only_is_refused(learner):
    with pytest.raises(TypeError, match=r"believes something of several .*; take GPClassifier, or"):
        SkepticalClassifier(learner, reservoir=RecentEventsAsk())


def test_a_learner_without_noise_is_refused():
    with pytest.raises(ValueError, match=r"noise_variance of at least 1e-06, got 1e-16; raise it"):
        SkepticalClassifier(GPClassifier(noise_variance=1e-16), reservoir=RecentEventsAsk())


@pytest.mark.parametrize("reservoir", [200, "l2fm", RecentEventsAsk])
def test_what_is_no_reservoir_is_refused(reservoir):
    with pytest.raises(TypeError, match=r"reservoir must be a RecentEventsAsk, got"):
        SkepticalClassifier(GPClassifier(), reservoir=reservoir)


def test_what_is_no_budget_is_refused():
    with pytest.raises(
        TypeError, match=r"budget of reservoir must be a budget, such as AtMost\(100\), got"
    ):
        SkepticalClassifier(GPClassifier(), reservoir=RecentEventsAsk(budget=5))


def test_a_look_is_taken_note_of_by_the_number_of_events():
    chooser = RecentEventChooser(RecentEventsAsk(every=10))
    assert [chooser.is_due(n) for n in (9, 10)] == [False, True]
    chooser.note(None, 12, now=0.0)
    assert chooser.state() == {"looked_at": 12, "budget": {}}
    assert [chooser.is_due(n) for n in (21, 22)] == [False, True]
