"""The temporal filter: its recursion by hand, against plain lists, and what it leaves alone."""

import copy
import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, metrics
from river.naive_bayes import GaussianNB

from streamgp import GPClassifier, Posterior, SkepticalClassifier, TemporalFilter, isgp
from streamgp.common.fingerprint import described
from streamgp.datasets import WiFiRooms
from streamgp.query.temporal import EXPERTS, MOST_AWAITED

# --- the recursion by hand


def believed(means):
    return Posterior(mean=means, variance=0.1)


def test_three_classes_by_hand():
    """s = 0.8, tau = 1, three labels, then one event and its own label; all numbers by hand."""
    beliefs = TemporalFilter(experts=[(0.8, 1.0)])
    beliefs.label("home", error_rate=0.2, n_since=0)
    assert beliefs.probabilities() == {"home": 1.0}
    # s^0 = 1, so that the new class gets 1 - e = .8.
    beliefs.label("work", error_rate=0.2, n_since=0)
    assert beliefs.probabilities() == pytest.approx({"home": 0.2, "work": 0.8})
    # Again .8; the others share .2 in proportion.
    beliefs.label("gym", error_rate=0.2, n_since=0)
    assert beliefs.probabilities() == pytest.approx({"home": 0.04, "work": 0.16, "gym": 0.8})

    # Shares .75, .25 and 0; g = .95 share + .05 / 3, and .001 more for home.
    g = [0.7125 + 0.05 / 3 + 0.001, 0.2375 + 0.05 / 3, 0.05 / 3]
    assert g == pytest.approx([0.7301667, 0.2541667, 0.0166667], abs=1e-7)
    # .8 b + .2 / 3
    before = [0.0986667, 0.1946667, 0.7066667]
    products = [0.0720431, 0.0494778, 0.0117778]  # their sum is 0.1332987
    assert [p * q for p, q in zip(g, before, strict=True)] == pytest.approx(products, abs=1e-7)
    stepped = {"home": 0.5404639, "work": 0.3711799, "gym": 0.0883563}
    belief = believed({"home": 0.6, "work": 0.2, "gym": -0.1})
    assert beliefs.probabilities_of(belief) == pytest.approx(stepped, abs=1e-6)
    beliefs.step(belief)
    assert beliefs.probabilities() == pytest.approx(stepped, abs=1e-6)

    # One event later: s^1 = .8, e = .2, C = 3: .8 * .8 + .2 / 3 for the label, .8 * .1 + .2 / 3 for
    # the others: .7066667 and .1466667.
    beliefs.await_label("e")
    beliefs.step(believed({"home": 0.0, "work": 0.0, "gym": 0.0}))
    now = beliefs.probabilities()
    beliefs.label("home", error_rate=0.2, event_id="e")
    total = 0.7066667 * now["home"] + 0.1466667 * (1.0 - now["home"])
    expected = {y: (0.7066667 if y == "home" else 0.1466667) * p / total for y, p in now.items()}
    assert beliefs.probabilities() == pytest.approx(expected, abs=1e-6)


def test_what_is_done_to_the_probabilities_changes_no_belief():
    beliefs = TemporalFilter()
    beliefs.label("home", error_rate=0.1, n_since=0)
    beliefs.label("work", error_rate=0.1, n_since=0)
    first = beliefs.probabilities()
    first["home"] = 2.0
    assert sum(beliefs.probabilities().values()) == pytest.approx(1.0)
    # Each input is heeded by what is said after it, asked before or not.
    before = beliefs.probabilities()
    beliefs.step({"home": 0.9, "work": 0.1})
    stepped = beliefs.probabilities()
    assert stepped != before
    beliefs.label("work", error_rate=0.1, n_since=0)
    assert beliefs.probabilities()["work"] > stepped["work"]
    beliefs.load_state(TemporalFilter().state())
    assert beliefs.probabilities() == {}


def test_experts_are_weighed_by_how_probable_they_made_the_label():
    beliefs = TemporalFilter(experts=[(0.0, 1.0), (0.99, 0.5)])
    assert beliefs.weights() == pytest.approx(
        [1.001 / (1.002 + math.exp(-3)), (math.exp(-3) + 0.001) / (1.002 + math.exp(-3))]
    )
    beliefs.label("home", error_rate=0.1, n_since=0)
    beliefs.label("work", error_rate=0.1, n_since=0)
    assert beliefs.weights()[0] == pytest.approx(1.001 / (1.002 + math.exp(-3)))  # both were new
    beliefs.step({"home": 0.5, "work": 0.5})
    # By the first expert work has the probability .5 / 1.001; by the second, which remembers, it
    # has b = .99 * .9 + .005 = .896 before the event and sqrt(.5), sqrt(.501) as evidence.
    without = 0.5 / 1.001
    home = 0.104 * math.sqrt(0.501)
    with_memory = 0.896 * math.sqrt(0.5) / (home + 0.896 * math.sqrt(0.5))
    # e = .1, challenged: eps = .05; C = 2.
    told = [math.log(0.95 * p + 0.05 * (1.0 - p)) for p in (without, with_memory)]
    scores = [0.995 * 0.0 + told[0], 0.995 * -3.0 + told[1]]
    raw = [math.exp(score - max(scores)) + 0.001 for score in scores]
    beliefs.label("work", error_rate=0.1, reconsidered=True, n_since=0)
    assert beliefs.weights() == pytest.approx([w / sum(raw) for w in raw])


# --- the same with plain lists


class Plain:
    """The recursion of the definition, literally, with lists and without regard to speed."""

    def __init__(self):
        self.known = []
        self.b = [[] for _ in EXPERTS]
        self.score = [0.0 if s == 0.0 else -3.0 for s, _ in EXPERTS]
        self.t = 0
        self.past = []  # classes and beliefs after each event, by number

    def step(self, scores):
        self.t += 1
        self.known, self.b = self.stepped(scores)
        self.past.append((list(self.known), copy.deepcopy(self.b)))

    def stepped(self, scores):
        known = [y for y in self.known if y in scores]
        known += [y for y in scores if y not in known]
        n = len(known)
        total = sum(max(v, 0.0) for v in scores.values())
        share = {y: max(scores[y], 0.0) / total if total > 0.0 else 1.0 / n for y in known}
        g = [0.95 * share[y] + 0.05 / n for y in known]
        if known:
            best = max(known, key=lambda y: scores[y])  # the first of the largest
            g[known.index(best)] += 0.001
        result = []
        for (s, tau), old in zip(EXPERTS, self.b, strict=True):
            mass = [old[self.known.index(y)] if y in self.known else 0.0 for y in known]
            mass = [m / sum(mass) for m in mass] if sum(mass) > 0.0 else [1.0 / n for _ in known]
            new = [g[i] ** tau * (s * mass[i] + (1.0 - s) / n) for i in range(n)]
            result.append([p / sum(new) for p in new])
        return known, result

    def weights(self):
        raw = [math.exp(score - max(self.score)) + 0.001 for score in self.score]
        return [w / sum(raw) for w in raw]

    def mixed(self, known, b):
        return {
            y: sum(w * row[i] for w, row in zip(self.weights(), b, strict=True))
            for i, y in enumerate(known)
        }

    def probabilities(self):
        return self.mixed(self.known, self.b)

    def probabilities_of(self, scores):
        return self.mixed(*self.stepped(scores))

    def label(self, y, e, challenged, then, n_since):
        """`then` is the number of the event if its beliefs are still known, else None."""
        n_classes = max(2, len({*self.known, y}))
        if y in self.known and then is not None:
            eps = max(0.02, e / 2 if challenged else e)
            known, b = self.past[then - 1]
            for f in range(len(EXPERTS)):
                p = b[f][known.index(y)] if y in known else 0.0
                told = (1.0 - eps) * p + eps * (1.0 - p) / (n_classes - 1)
                self.score[f] = 0.995 * self.score[f] + math.log(told)
        eps = max(0.01, e / 4 if challenged else e)
        for f, (s, _) in enumerate(EXPERTS):
            same = 0.0 if n_since is None else s**n_since
            at_label = same * (1.0 - eps) + (1.0 - same) / n_classes
            if y in self.known:
                elsewhere = same * eps / (n_classes - 1) + (1.0 - same) / n_classes
                new = [
                    p * (at_label if c == y else elsewhere)
                    for c, p in zip(self.known, self.b[f], strict=True)
                ]
                self.b[f] = [p / sum(new) for p in new]
            elif self.known:
                self.b[f] = [p * (1.0 - at_label) for p in self.b[f]] + [at_label]
            else:
                self.b[f] = [1.0]
        if y not in self.known:
            self.known = [*self.known, y]


CLASSES = "abcd"
means = st.one_of(st.just(0.0), st.floats(-1.0, 1.0).map(lambda v: round(v, 3)))
events = st.tuples(st.just("event"), st.lists(means, min_size=4, max_size=4), st.booleans())
labels = st.tuples(
    st.just("label"),
    st.sampled_from(CLASSES),
    st.floats(0.005, 0.6),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 12)),
)


@given(st.lists(st.one_of(events, labels), max_size=40))
def test_it_is_what_plain_lists_make_of_it(inputs):
    """Labels in any order: at once, late, of events that were awaited, forgotten or unknown."""
    fast, slow = TemporalFilter(), Plain()
    learned, awaited = [], []
    for kind, *rest in inputs:
        if kind == "event":
            values, await_it = rest
            scores = dict(zip(learned, values, strict=False))
            ahead = fast.probabilities_of(believed(scores))
            assert ahead == pytest.approx(slow.probabilities_of(scores), abs=1e-12)
            fast.step(believed(scores))
            slow.step(scores)
            assert fast.probabilities() == ahead
            if await_it:
                fast.await_label(str(slow.t))
                awaited = [*awaited, slow.t][-MOST_AWAITED:]
        else:
            y, e, challenged, since = rest
            # Of an event that is still to come, or after none, nothing is known.
            then = None if since is None or since >= slow.t else slow.t - since
            is_awaited = then in awaited
            if is_awaited:
                awaited.remove(then)
            n_since = None if then is None else since
            remembered = then if is_awaited or n_since == 0 else None
            fast.label(
                y,
                error_rate=e,
                reconsidered=challenged,
                event_id=None if then is None else str(then),
                n_since=None if is_awaited else n_since,
            )
            slow.label(y, e, challenged, remembered, n_since)
            learned = list(dict.fromkeys([*learned, y]))
        assert list(fast.probabilities()) == slow.known
        assert fast.probabilities() == pytest.approx(slow.probabilities(), abs=1e-12)
        assert fast.weights() == pytest.approx(slow.weights(), abs=1e-12)


@pytest.mark.parametrize("n", [10, 32, 33, 100])
def test_it_is_what_plain_lists_make_of_many_classes(n):
    fast, slow, rng = TemporalFilter(), Plain(), random.Random(n)
    for y in range(n):
        fast.label(y, error_rate=0.2, n_since=0)
        slow.label(y, 0.2, False, None, 0)
    for _ in range(5):
        scores = {y: rng.gauss(0.1, 0.2) for y in range(n)}
        fast.step(believed(scores))
        slow.step(scores)
        assert fast.probabilities() == pytest.approx(slow.probabilities(), abs=1e-12)


@given(st.lists(means, min_size=1, max_size=6), st.lists(means, min_size=6, max_size=6))
def test_without_memory_and_with_all_evidence_the_class_is_that_of_the_learner(first, last):
    """Also where no mean is positive, and where several are equal: the class known longest."""
    beliefs = TemporalFilter(experts=[(0.0, 1.0)])
    names = [f"class {i}" for i in range(len(first))]
    for values in (first, last[: len(first)]):
        belief = believed(dict(zip(names, values, strict=True)))
        beliefs.step(belief)
        filtered, own = beliefs.probabilities(), belief.probabilities()
        assert max(filtered, key=filtered.get) == max(own, key=own.get)
        assert max(filtered, key=filtered.get) == names[values[: len(first)].index(max(values))]
        beliefs.label(names[-1], error_rate=0.1, n_since=0)  # forgotten with the next event


# --- classes that come and go


def test_a_class_of_the_learner_enters_with_the_next_event():
    beliefs = TemporalFilter(experts=[(0.8, 1.0)])
    beliefs.label("home", error_rate=0.1, n_since=0)
    beliefs.step({"home": 0.5, "work": 0.5})
    # Its mass is .2 / 2 before the evidence, which is .501 to .5.
    assert beliefs.probabilities()["work"] == pytest.approx(0.05 / (0.05 + 0.9 * 0.501))


def test_a_class_that_the_learner_has_forgotten_is_dropped():
    beliefs = TemporalFilter(experts=[(0.8, 1.0)])
    for y in ("home", "work", "gym"):
        beliefs.label(y, error_rate=0.2, n_since=0)
    beliefs.step({"home": 0.0, "gym": 0.0})
    # .04 and .8 are all that is left: 1 / 21 and 20 / 21.
    home = (0.8 / 21 + 0.1) * 0.501
    assert beliefs.probabilities()["home"] == pytest.approx(
        home / (home + (0.8 * 20 / 21 + 0.1) * 0.5)
    )
    beliefs.step({"zoo": 1.0, "bar": 1.0})
    assert beliefs.probabilities() == pytest.approx({"zoo": 0.501 / 1.001, "bar": 0.5 / 1.001})
    beliefs.step({})
    assert beliefs.probabilities() == {}


def test_beliefs_that_wait_for_a_label_forget_dropped_classes_too():
    beliefs = TemporalFilter(experts=[(0.0, 1.0), (0.8, 1.0)])
    for y in ("home", "work"):
        beliefs.label(y, error_rate=0.2, n_since=0)
    beliefs.step({"home": 0.9, "work": 0.1})
    beliefs.await_label("e")
    beliefs.label("gym", error_rate=0.2, n_since=0)  # unknown when e came
    beliefs.step({"work": 0.1, "gym": 0.9})
    before = beliefs.weights()
    beliefs.label("gym", error_rate=0.2, event_id="e")
    # No expert could have known: both make as little of it, and the older scores fade by .995.
    change = math.exp(-3.0) - math.exp(-3.0 * 0.995)
    raw = math.exp(-3.0 * 0.995) + 0.001
    assert change < 0.0
    assert beliefs.weights() == pytest.approx([1.001 / (1.001 + raw), raw / (1.001 + raw)])
    assert before != beliefs.weights()


def test_a_label_of_an_unknown_moment_tells_nothing_of_the_present():
    beliefs = TemporalFilter()
    for y in ("home", "work"):
        beliefs.label(y, error_rate=0.2, n_since=0)
    beliefs.step({"home": 0.9, "work": 0.1})
    before = beliefs.probabilities(), beliefs.weights()
    beliefs.label("work", error_rate=0.2, event_id="long ago")
    assert beliefs.probabilities() == pytest.approx(before[0], abs=1e-15)
    assert beliefs.weights() == before[1]


def test_no_more_than_so_many_events_are_kept_and_the_oldest_are_dropped():
    beliefs = TemporalFilter()
    for n in range(MOST_AWAITED + 5):
        beliefs.step({"home": 0.9, "work": 0.1})
        beliefs.await_label(str(n))
    assert [row[0] for row in beliefs.state()["awaited"]] == [
        str(n) for n in range(5, MOST_AWAITED + 5)
    ]
    beliefs.give_up("7")
    beliefs.give_up("7")
    assert "7" not in [row[0] for row in beliefs.state()["awaited"]]


# --- streams


def stays(n_events, *, shuffled, seed):
    """Four classes that last 50 events each; the learner sees the right one in 60 % of events."""
    rng = random.Random(seed)
    truths = [str(n // 50 % 4) for n in range(n_events)]
    if shuffled:
        rng.shuffle(truths)
    for y in truths:
        seen = y if rng.random() < 0.6 else rng.choice("0123")
        yield y, {c: 0.6 if c == seen else 0.1 for c in "0123"}


def followed(beliefs, events):
    right, own = 0, 0
    for n, (y, scores) in enumerate(events):
        beliefs.step(scores)
        proba = beliefs.probabilities()
        right += max(proba, key=proba.get) == y
        own += max(scores, key=scores.get) == y
        if n % 10 == 0:
            beliefs.label(y, error_rate=0.1, n_since=0)
    return right, own


def memory(beliefs):
    return sum(w for w, (s, _) in zip(beliefs.weights(), EXPERTS, strict=True) if s > 0.0)


def test_it_finds_what_lasts():
    beliefs = TemporalFilter()
    right, own = followed(beliefs, stays(1000, shuffled=False, seed=1))
    assert right > 0.9 * 1000 > 0.75 * 1000 > own
    assert memory(beliefs) > 0.99


def test_on_a_shuffled_stream_it_turns_itself_off():
    beliefs = TemporalFilter()
    right, own = followed(beliefs, stays(2000, shuffled=True, seed=1))
    assert right >= own - 0.02 * 2000
    assert memory(beliefs) < 0.05


# --- around a learner


def test_predictions_change_nothing_and_do_not_depend_on_being_asked():
    one, other = isgp(seed=1), isgp(seed=1)
    for n, (x, y) in enumerate(WiFiRooms().take(60)):
        for model in (one, other):
            model.observe_one(x)
        for _ in range(3):  # of the present event, of another one, and of the learner alone
            one.predict_proba_one(x)
            one.predict_proba_one({"wap1": -50.0 - n})
            one.own_proba_one(x)
        assert one.state() == other.state()
        assert one.predict_proba_one(x) == other.predict_proba_one(x)
        if n % 3 == 0:
            for model in (one, other):
                model.settle_one(x, y, given=y, challenged=False, event_id=str(n), n_since=0)


def test_the_event_at_hand_is_not_counted_twice():
    model = isgp(seed=1)
    stream = list(WiFiRooms())[:1000:100]
    for x, y in stream:
        model.predict_one(x)
        model.learn_one(x, y)
    x = stream[0][0]
    ahead = model.predict_proba_one(x)
    model.observe_one(x)
    assert model.predict_proba_one(x) == model.predict_proba_one(dict(x)) == ahead
    # Another event is one step further on.
    assert model.predict_proba_one({**x, "wap1": x["wap1"] + 1e-9}) != ahead


@pytest.mark.parametrize("build", [GPClassifier, GaussianNB], ids=["gp", "river"])
def test_what_is_asked_and_doubted_does_not_depend_on_it(build):
    plain = SkepticalClassifier(build(), seed=1)
    filtered = SkepticalClassifier(build(), temporal=TemporalFilter(), seed=1)
    differ = 0
    for n, (x, y) in enumerate(WiFiRooms().take(700)):
        given = y if n % 5 else (y % 4) + 1
        alone, asks = plain.predict_one(x)
        over_time, also = filtered.predict_one(x)
        assert asks == also
        differ += alone != over_time
        assert filtered.own_proba_one(x) == plain.predict_proba_one(x)
        assert plain.challenge_one(x, given) == filtered.challenge_one(x, given)
        assert plain.probability_wrong_one(x, given) == filtered.probability_wrong_one(x, given)
        if asks:
            plain.learn_one(x, y, annotation=given)
            filtered.learn_one(x, y, annotation=given)
    assert differ > 0


def test_under_river_the_last_event_is_the_one_that_is_learned():
    """River's evaluator hands over copies; a label weighs the experts all the same."""
    model = isgp(seed=1)
    evaluate.progressive_val_score(WiFiRooms().take(900), model, metrics.Accuracy())
    assert model.n_learned > 10
    assert model.temporal_in_use.weights() != TemporalFilter().weights()


def test_a_label_of_another_event_does_not_weigh_the_experts():
    model = isgp(seed=1)
    for x, y in ({"a": 0.0}, "home"), ({"a": 1.0}, "work"):
        model.predict_one(x)
        model.learn_one(x, y)
    model.predict_one({"a": 0.5})
    before = model.temporal_in_use.weights()
    model.learn_one({"a": 0.25}, "home")
    assert model.temporal_in_use.weights() == before
    model.learn_one({"a": 0.5}, "home")
    assert model.temporal_in_use.weights() != before


def test_an_event_that_the_learner_cannot_use_leaves_no_step():
    model = SkepticalClassifier(GaussianNB(), temporal=TemporalFilter(), warm_up=0, seed=1)
    model.learn_one({"a": 1.0}, "home")
    model.learn_one({"a": 2.0}, "work")
    before = model.state()
    with pytest.raises((ValueError, TypeError)):
        model.observe_one({"a": math.inf})
    assert model.state() == before


# --- arguments, configuration and restarts


def test_the_default_has_a_filter_and_the_paper_has_none():
    assert isinstance(isgp(seed=1).temporal, TemporalFilter)
    assert isgp("paper", seed=1).temporal is None


def test_a_filter_is_a_template():
    template = TemporalFilter()
    model = SkepticalClassifier(GPClassifier(), temporal=template, seed=1)
    model.learn_one({"a": 1.0}, "home")
    assert template.probabilities() == {}
    assert model.temporal is template
    assert model.clone().predict_proba_one({"a": 1.0}) == {}


def test_without_one_state_and_configuration_are_what_they_were():
    """Recorded before there were filters: snapshots of then can be restored."""
    model = SkepticalClassifier(GPClassifier(max_points=500), seed=1)
    assert "temporal" not in model.state()
    assert model.fingerprint() == "2e7a0caf0ffcd957"
    assert isgp(seed=1).fingerprint() != model.fingerprint()
    assert described(TemporalFilter()) == {"class": "streamgp.query.temporal.TemporalFilter"}
    assert described(TemporalFilter(experts=EXPERTS[:2])) != described(TemporalFilter())


@pytest.mark.parametrize(
    "experts", [[], [(1.0, 1.0)], [(-0.1, 1.0)], [(0.5, -0.1)], [(0.5, math.inf)]]
)
def test_invalid_experts_are_refused(experts):
    with pytest.raises(ValueError, match=r"experts must be pairs \(s, tau\) with s in \[0, 1\)"):
        TemporalFilter(experts=experts)


@pytest.mark.parametrize("temporal", [True, TemporalFilter, 0.9])
def test_an_invalid_filter_is_refused(temporal):
    with pytest.raises(TypeError, match="temporal must be a TemporalFilter or None, got"):
        SkepticalClassifier(GPClassifier(), temporal=temporal)


def test_a_filter_says_how_it_was_built():
    assert repr(TemporalFilter()) == "TemporalFilter()"
    assert repr(TemporalFilter(experts=[(0, 1)])) == "TemporalFilter(experts=((0.0, 1.0),))"


@given(st.lists(st.one_of(events, labels), min_size=1, max_size=30), st.data())
def test_a_filter_cut_anywhere_goes_on_bitwise(inputs, data):
    cut = data.draw(st.integers(0, len(inputs) - 1))
    one, learned = TemporalFilter(), []
    for i, (kind, *rest) in enumerate(inputs):
        if i == cut:
            state = json.loads(json.dumps(one.state(), allow_nan=False))
            other = TemporalFilter()
            other.load_state(state)
        for beliefs in [one] if i < cut else [one, other]:
            if kind == "event":
                beliefs.step(dict(zip(learned, rest[0], strict=False)))
                if rest[1]:
                    beliefs.await_label(str(i))
            else:
                y, e, _, since = rest
                earlier = str(i - (since or 1))
                beliefs.label(y, error_rate=e, event_id=earlier, n_since=since)
        if kind == "label":
            learned = list(dict.fromkeys([*learned, rest[0]]))
    assert one.state() == other.state()
    assert one.probabilities() == other.probabilities()
    assert one.weights() == other.weights()


def test_a_learner_cut_between_prediction_and_label_goes_on_bitwise():
    """Also where the state is taken before the label of the last event has come."""
    stream = list(WiFiRooms())[:400:4]
    one, other = isgp(seed=1), isgp(seed=1)
    for x, y in stream:
        assert one.predict_one(x) == other.predict_one(dict(x))
        again = isgp(seed=1)
        again.load_state(json.loads(json.dumps(other.state())), other.examples())
        other = again
        assert one.predict_proba_one(x) == other.predict_proba_one(x)
        one.learn_one(x, y)
        other.learn_one(x, y)
    assert one.state() == other.state()


def test_features_that_cannot_be_saved_do_not_hinder_a_state():
    model = SkepticalClassifier(GPClassifier(), temporal=TemporalFilter(), warm_up=0, seed=1)
    model.observe_one({("a", 1): 1.0})
    assert model.state()["temporal"]["present"] is None


def test_beliefs_are_probabilities():
    model, rng = isgp(seed=1), np.random.default_rng(1)
    for n in range(200):
        x = dict(enumerate(rng.normal(size=3).tolist()))
        model.observe_one(x)
        proba = model.predict_proba_one(x)
        if proba:
            assert sum(proba.values()) == pytest.approx(1.0, abs=1e-12)
            assert min(proba.values()) > 0.0
        if n % 4 == 0:
            model.settle_one(x, n % 7, given=n % 7, challenged=False, n_since=0)


def test_one_expert_repeats_the_last_label_whatever_is_believed_of_events():
    """The baseline that no filter may lose against for long."""
    beliefs = TemporalFilter(experts=[(0.99, 0.0)])
    for y in ("home", "work"):
        beliefs.label(y, error_rate=0.01, n_since=0)
    for _ in range(30):
        beliefs.step({"home": 0.9, "work": 0.1})
    # s^30 of what was known, and half of the rest.
    known = 1.0 - 0.01 * 0.01 / (0.99 * 0.99 + 0.01 * 0.01)
    assert EXPERTS[-1] == (0.99, 0.0)
    assert beliefs.probabilities()["work"] > 0.5
    assert beliefs.probabilities()["work"] < known


def test_labels_alone_win_where_the_learner_is_always_wrong():
    beliefs = TemporalFilter()
    for i in range(400):
        beliefs.step({"home": 0.8, "work": 0.2} if i >= 1 else {})
        if i % 8 == 0:
            beliefs.label("work" if i > 8 else "home", error_rate=0.1, n_since=0)
        elif i > 200:
            assert beliefs.probabilities()["work"] > 0.8
    assert beliefs.weights()[-1] > 0.5


def test_a_state_without_the_latest_expert_is_read():
    """It begins where it would begin, but for the scores of the others."""
    old, now = TemporalFilter(experts=EXPERTS[:-1]), TemporalFilter()
    for one in (old, now):
        one.label("home", error_rate=0.1, n_since=0)
        for i in range(20):
            one.step({"home": 0.6, "work": 0.4})
            one.await_label(str(i)) if i > 17 else None
            one.label("work" if i % 2 else "home", error_rate=0.1, n_since=0)
    read = TemporalFilter()
    read.load_state(json.loads(json.dumps(old.state())))
    weights, others = read.weights(), old.weights()
    assert weights[-1] < max(weights[:-1])
    assert np.array(weights[:-1]) / sum(weights[:-1]) == pytest.approx(others, rel=0.02)
    read.step({"home": 0.6, "work": 0.4})
    read.label("home", error_rate=0.1, event_id="18")
    assert sum(read.probabilities().values()) == pytest.approx(1.0)
    again = TemporalFilter()
    again.load_state(read.state())
    assert again.state() == read.state()
