"""The rounds of a pool: who is drawn, asked and learned, and what is judged."""

import dataclasses
import random

import pytest
from river import linear_model, metrics, naive_bayes, tree

from streamgp import (
    EnsembleGPClassifier,
    GPClassifier,
    active_learning_rounds,
    query,
)
from streamgp.pool_learning import PLANS, Beliefs, Plan
from streamgp.query import AlwaysAsk, EqualErrorRounds, NeverAsk, RandomAsk

N_POOL = 200


def rooms(n, seed=0):
    rng = random.Random(seed)
    for _ in range(n):
        k = rng.randrange(3)
        yield {"a": rng.gauss(2.0 * k, 1.0), "b": rng.gauss(-k, 1.0)}, ("hall", "den", "bath")[k]


POOL, TEST = list(rooms(N_POOL)), list(rooms(100, seed=1))


def played(rule=None, model=None, **options):
    model = naive_bayes.GaussianNB() if model is None else model
    options = {"seed": 1} | options
    return active_learning_rounds(model, POOL, TEST, rule, **options)


# --- who is drawn and asked


@pytest.mark.parametrize("preset", PLANS)
def test_first_the_initial_set_then_everything_drawn_in_the_first_round(preset):
    rounds = played(preset=preset)
    initial = {"default": 4, "paper": 12}[preset]
    assert [(r.number, r.n_drawn, r.n_asked) for r in rounds[:2]] == [
        (0, initial, 0),
        (1, 28, 28),
    ]
    assert [r.number for r in rounds] == list(range(11))
    assert 0 < sum(r.n_asked for r in rounds[2:]) < 0.7 * sum(r.n_drawn for r in rounds[2:])


@pytest.mark.parametrize("rule", [None, AlwaysAsk(), RandomAsk(0.5)])
def test_no_label_is_asked_for_twice(rule):
    rounds = played(rule, n_rounds=12)
    known = [i for r in rounds for i in r.labelled]
    assert len(set(known)) == len(known)
    assert set(known) <= set(range(N_POOL))
    n = 0
    for r in rounds:
        n += len(r.labelled)
        assert r.n_labels == n


def test_it_ends_when_the_pool_is_used_up():
    rounds = played(AlwaysAsk(), n_rounds=100)
    assert rounds[-1].n_labels == N_POOL
    assert [r.n_drawn for r in rounds] == [4] + [28] * 7
    assert played(AlwaysAsk(), n_rounds=100, per_round=0.15)[-1].n_drawn == 16


def test_a_round_without_questions_is_a_round():
    rounds = played(AlwaysAsk(), per_round=[3, 0, 2], n_rounds=3)
    assert [r.n_labels for r in rounds] == [4, 7, 7, 9]


def test_what_was_not_asked_about_is_drawn_again():
    rounds = played(NeverAsk(), n_rounds=20)
    assert [r.n_drawn for r in rounds] == [4] + [28] * 20
    assert rounds[-1].n_labels == 4


def test_a_passive_learner_is_told_as_many_labels():
    active = played()
    counts = [r.n_asked for r in active[1:]]
    passive = played(AlwaysAsk(), per_round=counts)
    assert [r.n_labels for r in passive] == [r.n_labels for r in active]
    assert passive[0].labelled == active[0].labelled
    assert passive[-1].labelled != active[-1].labelled


def test_every_event_is_as_likely_to_be_drawn():
    few = POOL[:50]
    counts = [0] * len(few)
    for seed in range(100):
        model = naive_bayes.GaussianNB()
        for r in active_learning_rounds(model, few, TEST[:1], AlwaysAsk(), n_rounds=1, seed=seed):
            for i in r.labelled:
                counts[i] += 1
    # Of 100 runs each event is in 16 %: 16, give or take 3.7.
    assert min(counts) > 16 - 4.2 * 3.7
    assert max(counts) < 16 + 4.2 * 3.7


def test_the_same_seed_plays_the_same_rounds():
    assert played() == played()
    assert played()[0].labelled != played(seed=2)[0].labelled
    assert played(seed=None)[0].labelled != played(seed=None)[0].labelled


# --- what is learned


def test_the_paper_learns_every_label_once():
    model = naive_bayes.GaussianNB()
    rounds = played(model=model, preset="paper")
    assert sum(model.class_counts.values()) == rounds[-1].n_labels


def test_by_default_all_labels_are_replayed_in_every_round():
    model = naive_bayes.GaussianNB()
    rounds = played(model=model)
    assert sum(model.class_counts.values()) == sum(r.n_labels for r in rounds)


def test_what_is_replayed_is_shuffled_anew():
    def error(seed):
        # Its decisions depend on the order of the examples.
        return played(model=tree.HoeffdingTreeClassifier(grace_period=10), seed=seed)[-1].error

    assert len({error(seed) for seed in range(6)}) > 1


@pytest.mark.parametrize(
    ("options", "plan"),
    [
        ({}, Plan(initial=0.02, per_round=0.14, replay=True)),
        ({"preset": "paper"}, Plan(initial=0.06, per_round=0.14, replay=False)),
        ({"initial": 0.5}, Plan(initial=0.5, per_round=0.14, replay=True)),
        ({"per_round": 0.1}, Plan(initial=0.02, per_round=0.1, replay=True)),
        ({"replay": False}, Plan(initial=0.02, per_round=0.14, replay=False)),
    ],
)
def test_what_differs_from_a_preset_is_said(options, plan):
    model = naive_bayes.GaussianNB()
    rounds = played(AlwaysAsk(), model=model, n_rounds=1, **options)
    first, second = (len(r.labelled) for r in rounds)
    assert first == round(plan.initial * N_POOL)
    assert second == round(plan.per_round * N_POOL)
    learned = first + second + (first if plan.replay else 0)
    assert sum(model.class_counts.values()) == learned


# --- who decides


def test_the_rule_is_a_template():
    rule = EqualErrorRounds()
    rounds = played(rule)
    assert rounds == played(rule) == played()
    assert rule.threshold == float("inf")
    assert rounds[1].threshold == float("inf")
    assert all(0.0 <= r.threshold <= 1.0 for r in rounds[3:])


def test_a_rule_hears_what_was_believed_before_the_label_was_learned():
    """The threshold of the second round is that of the confidences in the first one."""
    rounds = played(n_rounds=2)
    model, rule = naive_bayes.GaussianNB(), EqualErrorRounds()
    for i in rounds[0].labelled:
        model.learn_one(*POOL[i])
    for i in rounds[1].labelled:
        x, y = POOL[i]
        rule.hear(model.predict_proba_one(x), y)
    rule.next_round()
    assert rounds[2].threshold == rule.threshold


RULES = {
    "EqualErrorRounds": None,
    "EqualErrorAsk": query.EqualErrorAsk(),
    "Entropy": query.Entropy(0.5),
    "LeastConfidence": query.LeastConfidence(0.2),
    "BestVersusSecond": query.BestVersusSecond(0.2),
    "SkepticalAsk": query.SkepticalAsk(),
    "PaperAsk": query.PaperAsk(),
    "RandomAsk": RandomAsk(0.2),
}
MODELS = {
    "naive Bayes": naive_bayes.GaussianNB,
    "a process": lambda: GPClassifier(noise_variance=0.1),
    "an ensemble": lambda: EnsembleGPClassifier(n_features=10, seed=1),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rule", RULES)
def test_any_rule_asks_any_classifier(rule, model):
    rounds = played(RULES[rule], MODELS[model](), n_rounds=3, preset="paper")
    assert 12 <= rounds[-1].n_labels <= 96  # a sure ensemble asks nothing of its own accord
    assert rounds[-1].error < 0.4


@pytest.mark.parametrize("rule", [query.KL(), query.Deterministic()])
def test_a_rule_that_compares_experts_gets_to_know_them(rule):
    rounds = played(rule, MODELS["an ensemble"](), n_rounds=2, preset="paper")
    assert rounds[-1].n_labels > 12


def test_a_rule_without_a_threshold_has_none():
    assert {r.threshold for r in played(AlwaysAsk())} == {None}


# --- how it is judged


def test_a_round_is_judged_by_the_test_set():
    model = naive_bayes.GaussianNB()
    last = played(model=model)[-1]
    accuracy = metrics.Accuracy()
    over, under = [], []
    for x, y in TEST:
        p = model.predict_proba_one(x)
        predicted = max(p, key=p.__getitem__)
        accuracy.update(y, predicted)
        *_, second, best = sorted(p.values())
        h = second / best
        (under if predicted == y else over).append(h if predicted == y else 1.0 - h)
    assert last.error == pytest.approx(1.0 - accuracy.get())
    assert last.overconfidence == pytest.approx(sum(over) / len(over))
    assert last.underconfidence == pytest.approx(sum(under) / len(under))
    pairs = [(1.0 - u > o) + 0.5 * (1.0 - u == o) for u in under for o in over]
    assert last.right_wrong_auc == pytest.approx(sum(pairs) / len(pairs), abs=1e-3)


def test_uncertainty_may_be_another_one():
    bvsb, entropy = (played(uncertainty=name)[1] for name in ("bvsb", "entropy"))
    assert bvsb.labelled == entropy.labelled
    assert bvsb.error == entropy.error
    assert bvsb.underconfidence != entropy.underconfidence


def test_a_learner_that_knows_nothing_counts_as_wrong():
    first = played(initial=0.0)[0]
    assert first.n_labels == 0
    assert first.error == 1.0
    assert first.overconfidence == 0.0


# --- beliefs


@pytest.mark.parametrize("missing", [False, True])
def test_batches_say_what_is_said_one_by_one(missing):
    pairs = [(x, y == "hall") for x, y in POOL[:60]]
    events = [x for x, _ in pairs]
    if missing:
        events[3] = {"a": 1.0}
    model = linear_model.LogisticRegression()
    beliefs = Beliefs(model, events)
    assert (beliefs._frame is None) is missing
    for x, y in pairs:
        model.learn_one(x, y)
    which = [5, 3, 3, 40]
    expected = [model.predict_proba_one(events[i]) for i in which]
    for p, q in zip(beliefs.of(which), expected, strict=True):
        assert p == pytest.approx(q)


def test_texts_are_predicted_one_by_one():
    assert Beliefs(linear_model.LogisticRegression(), [{"a": "hall"}])._frame is None


def test_without_pandas_events_are_predicted_one_by_one(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert Beliefs(linear_model.LogisticRegression(), [{"a": 1.0}])._frame is None


def test_posteriors_are_asked_for_where_there_are_any():
    model = GPClassifier(noise_variance=0.1)
    model.learn_one(*POOL[0])
    (belief,) = Beliefs(model, [POOL[0][0]]).of([0])
    assert belief == model.predict_proba_one(POOL[0][0], with_dist=True)


# --- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "best"}, "preset must be 'default' or 'paper', got 'best'"),
        ({"initial": 1.5}, "initial must be between 0 and 1, got 1.5"),
        ({"per_round": -0.1}, "per_round must be between 0 and 1, got -0.1"),
        (
            {"per_round": [3, 3]},
            r"per_round must have a number for each of 10 rounds, got \[3, 3\]",
        ),
        ({"per_round": [3, -3]}, "each of per_round must be a whole number of at least 0, got -3"),
        ({"uncertainty": "gini"}, "uncertainty must be 'bvsb' or 'entropy', got 'gini'"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        played(**options)


def test_empty_sets_are_refused():
    for pool, test in (([], TEST), (POOL, [])):
        with pytest.raises(ValueError, match="pool and test must not be empty, got"):
            active_learning_rounds(naive_bayes.GaussianNB(), pool, test)


def test_pool_and_test_set_may_be_streams():
    lists, streams = (
        active_learning_rounds(
            naive_bayes.GaussianNB(), as_set(POOL), as_set(TEST), n_rounds=1, seed=1
        )
        for as_set in (list, iter)
    )
    assert lists == streams


def test_a_round_is_plain_values():
    for r in played():
        for field in dataclasses.fields(r):
            assert isinstance(getattr(r, field.name), int | float | tuple | None)
