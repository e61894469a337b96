import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, preprocessing
from river.datasets import synth
from scipy.integrate import quad

from streamgp import EnsembleGPClassifier, EnsembleGPRegressor, GPRegressor, SkepticalClassifier
from streamgp.base import Decision, Posterior
from streamgp.common.normal import GaussianMixture, MixturePosterior, Normal
from streamgp.query import (
    KL,
    AdaptiveThreshold,
    AlwaysAsk,
    Deterministic,
    NeverAsk,
    RandomAsk,
    RateBudget,
    Variance,
)
from streamgp.query.criteria import LARGEST, divergence


def mixed(weights, parts):
    return GaussianMixture(
        weights=tuple(weights),
        mus=tuple(part.mu for part in parts),
        sigmas=tuple(part.sigma for part in parts),
    )


PARTS = (Normal(mu=0.0, sigma=1.0), Normal(mu=2.0, sigma=0.5), Normal(mu=-1.0, sigma=3.0))
MIXTURE = mixed((0.5, 0.495, 0.005), PARTS)


def by_integration(p, q):
    def integrand(y):
        return p(y) * (p.log_density(y) - q.log_density(y))

    return quad(integrand, p.mu - 12 * p.sigma, p.mu + 12 * p.sigma)[0]


@pytest.mark.parametrize("p", PARTS)
@pytest.mark.parametrize("q", PARTS)
def test_the_divergence_of_normal_distributions_is_that_integral(p, q):
    found = divergence((p.mu, p.sigma**2), (q.mu, q.sigma**2))
    assert found == pytest.approx(by_integration(p, q), abs=1e-9)


def test_variance_is_that_of_the_mixture():
    mean = 0.5 * 0.0 + 0.495 * 2.0 - 0.005
    second = 0.5 * 1.0 + 0.495 * (0.25 + 4.0) + 0.005 * (9.0 + 1.0)
    assert Variance().decide(MIXTURE, 0.0).score == pytest.approx(second - mean**2)


@pytest.mark.parametrize(
    ("belief", "score"),
    [
        (Normal(mu=5.0, sigma=2.0), 4.0),
        (Posterior(mean={"a": 0.3}, variance=0.2), 0.2),
        ({"a": 0.75, "b": 0.25}, 0.1875),
    ],
)
def test_variance_of_any_belief(belief, score):
    assert Variance().decide(belief, 0.0).score == pytest.approx(score)


def test_kl_is_the_largest_mean_divergence_from_one_expert():
    from_each = [
        sum(w * by_integration(p, q) for w, p in zip(MIXTURE.weights, PARTS, strict=True))
        for q in PARTS
    ]
    assert KL().decide(MIXTURE, 0.0).score == pytest.approx(max(from_each))


def test_kl_of_living_experts_compares_with_these_only():
    dead = mixed((0.6, 0.4, 1e-9), (PARTS[0], PARTS[0], Normal(mu=0.0, sigma=1e-3)))
    assert KL().decide(dead, 0.0).score > 1e5
    assert KL(least_weight=0.01).decide(dead, 0.0).score == pytest.approx(0.0, abs=1e-8)


def test_deterministic_is_the_largest_mean_squared_distance_of_means():
    from_each = [
        sum(w * (p.mu - q.mu) ** 2 for w, p in zip(MIXTURE.weights, PARTS, strict=True))
        for q in PARTS
    ]
    assert Deterministic().decide(MIXTURE, 0.0).score == pytest.approx(max(from_each))


def test_of_classes_the_predicted_one_counts():
    parts = (
        Posterior(mean={"a": 0.9, "b": 0.3}, variance=0.04),
        Posterior(mean={"a": 0.5, "b": 0.4}, variance=0.16),
    )
    belief = MixturePosterior(
        mean={"a": 0.7, "b": 0.35}, variance=0.14, weights=(0.5, 0.5), components=parts
    )
    assert Variance().decide(belief, 0.0).score == 0.14
    assert Deterministic().decide(belief, 0.0).score == pytest.approx(0.5 * 0.4**2)
    expected = max(
        0.5 * divergence((0.5, 0.16), (0.9, 0.04)), 0.5 * divergence((0.9, 0.04), (0.5, 0.16))
    )
    assert KL().decide(belief, 0.0).score == pytest.approx(expected)


numbers = st.floats(-1e150, 1e150)


@given(
    st.lists(
        st.tuples(numbers, st.floats(0.0, 1e150), st.floats(0.0, 1.0)), min_size=2, max_size=4
    ),
    st.floats(0.0, 1.0),
)
def test_scores_of_extremes_are_finite(parts, least_weight):
    total = sum(w for _, _, w in parts)
    weights = tuple(w / total if total > 0.0 else 1.0 / len(parts) for _, _, w in parts)
    components = tuple(Normal(mu=mu, sigma=sigma) for mu, sigma, _ in parts)
    belief = mixed(weights, components)
    for rule in (Variance(), KL(), KL(least_weight=least_weight), Deterministic()):
        decision = rule.decide(belief, 0.5)
        assert math.isfinite(decision.score)
        assert decision.score > 0.0


def test_without_any_variance_a_divergence_is_as_large_as_can_be():
    assert divergence((0.0, 0.0), (0.0, 0.0)) == 0.0
    assert divergence((0.0, 0.0), (0.0, 1.0)) == LARGEST == divergence((0.0, 1.0), (0.0, 0.0))
    assert divergence((0.0, 1e300), (1e300, 1e-300)) == LARGEST


@pytest.mark.parametrize("rule", [KL(), Deterministic()])
@pytest.mark.parametrize(
    "belief", [Normal(mu=0.0, sigma=1.0), {"a": 0.5, "b": 0.5}, Posterior(mean={}, variance=1.0)]
)
def test_experts_are_compared_in_an_ensemble_only(rule, belief):
    with pytest.raises(TypeError, match="experts can only be compared in an ensemble of two"):
        rule.decide(belief, 0.5)


@pytest.mark.parametrize("rule", [KL(0.5), Deterministic(0.5)])
def test_experts_that_do_not_differ_are_asked_about_now_and_then(rule):
    """Before anything is learned they never differ."""
    prior = EnsembleGPRegressor(seed=1).predict_one({"a": 1.0}, with_dist=True)
    assert rule.decide(prior, 0.05) == Decision(
        ask=True, score=0.1, threshold=0.05, criterion=type(rule).__name__
    )
    assert not rule.decide(prior, 0.2).ask


@pytest.mark.parametrize("kind", [RateBudget, AdaptiveThreshold])
@pytest.mark.parametrize("rule", [KL(least_weight=0.01), Deterministic()])
def test_a_budget_keeps_its_rate_where_experts_do_not_differ(rule, kind):
    """Without a threshold, also for good."""
    alone = mixed((1.0, 0.0), (PARTS[0], PARTS[0]))
    budget, n_asked = kind(0.4), 0
    for n in range(500):
        decision = rule.decide(alone, draw=0.99)
        asked = decision.ask and budget.allows(decision, now=n)
        budget.note(decision, asked, now=n)
        n_asked += asked
    assert n_asked / 500 == pytest.approx(0.4, abs=0.01)


def test_an_ensemble_of_one_cannot_be_compared():
    alone = mixed((1.0,), PARTS[:1])
    with pytest.raises(TypeError, match="in an ensemble of two or more, got GaussianMixture; use"):
        KL().decide(alone, 0.5)
    assert Variance().decide(alone, 0.5).score == 1.0


@pytest.mark.parametrize("rule", [Variance(), KL(), Deterministic()])
def test_nothing_known_is_asked_about_and_one_class_now_and_then(rule):
    assert rule.decide({}, 0.99).ask
    assert rule.decide({"a": 1.0}, 0.05).ask
    assert not rule.decide({"a": 1.0}, 0.2).ask


def test_the_threshold_is_in_the_decision():
    assert Variance(5.0).decide(PARTS[1], 0.9) == Decision(
        ask=False, score=0.25, threshold=5.0, criterion="Variance"
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Variance(-1.0), "threshold must be non-negative and finite, got -1.0"),
        (lambda: KL(math.inf), "threshold must be non-negative and finite, got inf"),
        (lambda: KL(least_weight=2.0), "least_weight must be between 0 and 1, got 2.0"),
        (lambda: AdaptiveThreshold(1.5), "rate must be between 0 and 1, got 1.5"),
        (lambda: AdaptiveThreshold(0.5, 0.0), "step must be positive and finite, got 0.0"),
    ],
)
def test_arguments_out_of_range_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_rules_that_look_at_nothing_take_numbers_as_well():
    for rule, ask in ((AlwaysAsk(), True), (NeverAsk(), False), (RandomAsk(0.5), True)):
        assert rule.decide(MIXTURE, 0.2).ask is ask


@pytest.mark.parametrize("learner", [EnsembleGPRegressor(seed=1), GPRegressor()])
def test_learners_of_numbers_are_asked_about_where_they_know_least(learner):
    learner = learner.clone()
    rng = random.Random(1)
    for _ in range(40):
        a = rng.uniform(-1.0, 1.0)
        learner.learn_one({"a": a}, math.sin(3.0 * a) + 0.05 * rng.gauss(0.0, 1.0))
    near, far = (
        Variance().decide(learner.predict_one({"a": a}, with_dist=True), 0.0).score
        for a in (0.0, 5.0)
    )
    assert far > 2.0 * near


@pytest.mark.parametrize("rule", [Variance(), KL(), KL(least_weight=0.01), Deterministic()])
@pytest.mark.parametrize("budget", [RateBudget(0.2), AdaptiveThreshold(0.2)])
def test_a_skeptical_ensemble_keeps_the_rate_by_any_of_them(rule, budget):
    model = SkepticalClassifier(
        EnsembleGPClassifier(n_features=10, seed=1), query=rule, budget=budget, warm_up=20, seed=1
    )
    rng, asked = random.Random(2), 0
    for _ in range(250):
        y = rng.choice("pq")
        x = {"a": rng.gauss(y == "p", 0.7), "b": rng.gauss(0.0, 1.0)}
        _, ask = model.predict_one(x)
        asked += ask
        if ask:
            model.learn_one(x, y)
    assert asked / 250 == pytest.approx(0.2, abs=0.05)


# --- a threshold that adapts


def play(budget, scores):
    asked = []
    for i, score in enumerate(scores):
        wish = Decision.of(score, 0.0, "Variance")
        asked.append(budget.allows(wish, now=i))
        budget.note(wish, asked[-1], now=i)
    return asked


def shrinking(n, seed=0):
    rng = random.Random(seed)
    return [0.99**i * rng.expovariate(1.0) for i in range(n)]


@pytest.mark.parametrize("likelihood", ["regression", "logistic"])
@pytest.mark.parametrize("in_front", [[], [preprocessing.StandardScaler()]])
def test_an_ensemble_asks_by_doubt_until_it_is_right(likelihood, in_front):
    """A scaler in front learns from labels only: of a single one it makes all events equal."""
    learner = EnsembleGPClassifier(n_features=10, likelihood=likelihood, seed=1)
    model = compose.Pipeline(*in_front, SkepticalClassifier(learner, seed=1))
    n_asked = n_right = 0
    for n, (x, y) in enumerate(synth.Sine(seed=2).take(600)):
        predicted, ask = model.predict_one(x)
        if ask:
            model.learn_one(x, y)
            n_asked += 1
        n_right += n >= 300 and predicted == y
    assert 30 <= n_asked <= 100
    assert n_right >= 270


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.4])
def test_asked_less_its_share_is_what_the_threshold_has_moved(rate):
    budget, scores = AdaptiveThreshold(rate), shrinking(500)
    asked = play(budget, scores)
    moved = math.log(budget.threshold / scores[0])
    assert sum(asked) - rate * 500 == pytest.approx(moved)
    assert abs(sum(asked) / 500 - rate) < 0.02


@given(st.integers(0, 60), st.integers(0, 99))
def test_a_restart_changes_no_decision_of_a_threshold_that_adapts(n, seed):
    scores = shrinking(80, seed)
    budget = AdaptiveThreshold(0.3)
    before = play(budget, scores[:n])
    again = AdaptiveThreshold(0.3)
    again.load_state(json.loads(json.dumps(budget.state())))
    assert before + play(again, scores[n:]) == play(AdaptiveThreshold(0.3), scores)


def test_a_question_without_an_answer_is_given_back():
    one, other = AdaptiveThreshold(0.3), AdaptiveThreshold(0.3)
    for budget in (one, other):
        play(budget, [1.0, 2.0])
    one.refund(now=2.0)
    assert one.threshold == pytest.approx(other.threshold / math.e)
    AdaptiveThreshold(0.3).refund(now=0.0)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_none_and_all_are_shares(rate):
    assert play(AdaptiveThreshold(rate), [0.0, 1.0, 5.0, 0.1]) == [bool(rate)] * 4


def test_scores_of_0_and_of_the_largest_number_do_no_harm():
    asked = play(AdaptiveThreshold(0.5), [0.0, LARGEST, 0.0, LARGEST, LARGEST] * 50)
    assert np.isfinite(sum(asked))


def test_it_says_how_it_was_built():
    assert repr(AdaptiveThreshold(0.2)) == "AdaptiveThreshold(0.2, step=1.0)"
