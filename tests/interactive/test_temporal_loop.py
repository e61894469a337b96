"""A loop around a learner with a temporal filter: late answers, corrections, restarts, failures."""

import random

from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes

from streamgp import DriftTest, GPClassifier, KeyedLoops, SkepticalClassifier, TemporalFilter, isgp
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Prediction,
)
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.teaching import teach
from streamgp.query import AlwaysAsk, AlwaysChallenge, AtMostPer, NeverChallenge, SkepticalAsk
from tests.helpers.laws import examples, in_turns
from tests.interactive.stories import CUTS, Story, TextStory, played_with_cuts, told
from tests.interactive.topics import SPANS, StateChangelog

MODELS = {
    "default": lambda: isgp(seed=3),
    "challenges": lambda: SkepticalClassifier(
        GPClassifier(),
        AlwaysAsk(),
        AlwaysChallenge(),
        AtMostPer(9, 20.0),
        temporal=TemporalFilter(),
        warm_up=8,
        seed=3,
    ),
    "renewed scaling": lambda: SkepticalClassifier(
        GPClassifier(max_points=20),
        SkepticalAsk(),
        temporal=TemporalFilter(),
        warm_up=8,
        rescale=True,
        seed=3,
    ),
    "drift test": lambda: SkepticalClassifier(
        GPClassifier(),
        temporal=TemporalFilter(),
        drift_test=DriftTest(0.2, run_length=1.05),
        warm_up=8,
        seed=3,
    ),
    "naive Bayes": lambda: SkepticalClassifier(
        naive_bayes.GaussianNB(), SkepticalAsk(), temporal=TemporalFilter(), warm_up=20, seed=3
    ),
}


class Noting(SkepticalClassifier):
    """Records the labels that it receives, and the calls of its filter."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.settled = []

    def settle_one(self, x, y, *, event_id=None, n_since=None, challenged, **rest):
        self.settled.append((event_id, n_since, event_id in self.temporal_in_use._awaited))
        return super().settle_one(
            x, y, event_id=event_id, n_since=n_since, challenged=challenged, **rest
        )


def filter_of(loop):
    return loop.model.state()["temporal"]


def event(n, x=0.0, **fields):
    return Event(event_id=f"e{n}", x={"a": x}, occurred_at=float(n), **fields)


def answer(n, y, at, **fields):
    return Answer(answer_id=f"a{n}/{at}", event_id=f"e{n}", y=y, answered_at=at, **fields)


def asking(challenge=None, **options):
    rule = NeverChallenge() if challenge is None else challenge
    return SkepticalClassifier(
        GPClassifier(), AlwaysAsk(), rule, temporal=TemporalFilter(), warm_up=0, seed=1, **options
    )


def insist(loop, given):
    """Hand over an event with its label, and stand by that if it is challenged."""
    last = loop.on_event(given, now=given.occurred_at)[-1]
    if isinstance(last, Challenge):
        n = int(given.event_id[1:])
        loop.on_answer(answer(n, given.y, given.occurred_at), now=given.occurred_at)


# --- inputs of the filter


@examples(10)
@given(seed=st.integers(0, 10**6))
def test_every_label_comes_with_the_number_of_events_since(seed):
    """And with the beliefs of its time, if a question about it was open then and ever since."""
    model = Noting(model=GPClassifier(), temporal=TemporalFilter(), warm_up=10, seed=3)
    loop, story, messages = InteractiveLoop(model, **SPANS), Story(seed), []
    number, n, open_since = {}, 0, set()
    for _ in range(150):
        messages = told(loop, story.next(messages))
        for message in messages:
            if isinstance(message, Prediction):
                n += 1
                number[message.event_id] = n
        ended = {m.request_id for m in messages if isinstance(m, Expired | Cancel)}
        open_since -= {event_id_of(request) for request in ended}
        for event_id, n_since, awaited in model.settled:
            assert n_since == n - number[event_id]
            assert awaited or event_id not in open_since
        model.settled.clear()
        open_since |= {m.event_id for m in messages if isinstance(m, LabelRequest)}
        open_since &= {event_id_of(request) for request in loop.open_requests()}


def test_questions_that_end_are_not_waited_for_any_longer():
    loop = InteractiveLoop(asking(), expires_after_s=5.0, answer_horizon_s=50.0)
    for n in range(6):
        loop.on_event(event(n), now=float(n))
    waiting = [row[0] for row in filter_of(loop)["awaited"]]
    assert waiting == [f"e{n}" for n in range(6)]
    loop.on_cancel("e1/label", now=5.0)
    loop.on_answer(answer(2, None, 5.0, declined=True), now=5.0)
    loop.on_time(7.5)  # e0 expires at 5 and e2 is declined; e3 to e5 are open
    loop.on_answer(answer(4, "home", 7.5), now=7.5)
    assert [row[0] for row in filter_of(loop)["awaited"]] == ["e3", "e5"]
    loop.on_time(100.0)
    assert filter_of(loop)["awaited"] == []


def test_an_event_that_brings_its_label_is_waited_for_while_that_is_challenged():
    loop = InteractiveLoop(asking(AlwaysChallenge()))
    insist(loop, event(0, 0.0, y="home"))
    insist(loop, event(1, 5.0, y="work"))
    _, contested = loop.on_event(event(2, 5.0, y="home"), now=2.0)
    assert isinstance(contested, Challenge)
    assert [row[0] for row in filter_of(loop)["awaited"]] == ["e2"]
    before = loop.model.temporal_in_use.weights()
    loop.on_event(event(3, 5.0), now=3.0)
    loop.on_answer(answer(2, "work", 3.5, request_id=contested.request_id), now=3.5)
    assert loop.model.temporal_in_use.weights() != before
    assert [row[0] for row in filter_of(loop)["awaited"]] == ["e3"]


def test_a_late_answer_counts_as_far_as_the_class_is_still_the_same():
    """The same answer moves the present less, the more events have passed."""
    moved = []
    for late in (0, 3, 30):
        loop = InteractiveLoop(asking())
        for n, y in enumerate(["home", "work"]):
            loop.on_event(event(n, float(n), y=y), now=float(n))
        for n in range(2, 3 + late):
            loop.on_event(event(n, 0.5), now=float(n))
        x = {"a": 0.5}
        before = loop.model.predict_proba_one(x)["home"]
        loop.on_answer(answer(2, "home", 2.0 + late), now=2.0 + late)
        moved.append(loop.model.predict_proba_one(x)["home"] - before)
    assert moved[0] > moved[1] > moved[2] > 0.0


def test_corrections_and_withdrawals_leave_its_past_alone():
    loop = InteractiveLoop(asking())
    for n in range(4):
        loop.on_event(event(n, float(n % 2), y=["home", "work"][n % 2]), now=float(n))
    before = filter_of(loop)
    correction = answer(1, "home", 4.0, supersedes="e1")
    assert loop.on_answer(correction, now=4.0)[0].origin == "revised"
    assert loop.on_answer(answer(0, None, 5.0, declined=True, supersedes="e0"), now=5.0)
    assert loop.withdraw("e3", 6.0)
    assert filter_of(loop) == before
    # A label that was forgotten leaves its class among those known.
    prediction = loop.on_event(event(9, 1.0), now=9.0)[0]
    assert set(prediction.proba) == {"home", "work"}


def test_a_correction_to_a_new_class_enters_with_the_next_event():
    loop = InteractiveLoop(asking())
    loop.on_event(event(0, 0.0, y="home"), now=0.0)
    loop.on_answer(answer(0, "work", 1.0, supersedes="e0"), now=1.0)
    prediction = loop.on_event(event(1, 0.0), now=2.0)[0]
    assert set(prediction.proba) == {"home", "work"}
    assert prediction.y == "work"


def test_a_challenge_suggests_what_the_learner_believes_of_the_event_alone():
    """Also where the prediction, which knows the events before, agrees with the annotator."""
    loop, rng, n_differ = InteractiveLoop(asking(AlwaysChallenge())), random.Random(1), 0
    for n in range(150):
        y = ("home", "work")[n // 30 % 2]
        x = rng.gauss(1.0 if y == "work" else 0.0, 1.0)
        if n < 120:
            insist(loop, event(n, x, y=y))
            continue
        prediction, request = loop.on_event(event(n, x), now=float(n))
        assert isinstance(request, LabelRequest)
        own = loop.model.own_proba_one({"a": x})
        best = max(own, key=own.get)
        messages = loop.on_answer(answer(n, prediction.y, float(n)), now=float(n))
        if best != prediction.y:
            n_differ += 1
            assert isinstance(messages[0], Challenge)
            assert messages[0].suggested == best
        else:
            assert isinstance(messages[0], LabelledExample)
    assert n_differ > 0


# --- restarts


@in_turns("build", MODELS, 0)
@examples(3)
@given(seed=st.integers(0, 10**6), every=CUTS)
def test_a_restart_repeats_every_prediction(build, seed, every):
    loop, _ = played_with_cuts(build, Story(seed), every)
    assert len(filter_of(loop)["labels"]) > 1


@in_turns("build", MODELS, 1)
@examples(2)
@given(seed=st.integers(0, 10**6))
def test_what_was_published_last_makes_the_filter_again(build, seed):
    StateChangelog(build, seed, story=TextStory(seed)).steps_and_cut(100)


def test_every_key_has_a_filter_of_its_own():
    loops = KeyedLoops(asking(), max_keys=1)  # the others are evicted, and restored
    alone = {key: InteractiveLoop(asking()) for key in ("ann", "bob")}
    for n in range(40):
        key = ("ann", "bob")[n % 3 % 2]
        y = ("home", "work")[n // 7 % 2] if n % 2 else None
        one = event(n, float(n // 7 % 2), key=key, y=y)
        assert loops.on_event(one, now=float(n)) == alone[key].on_event(one, now=float(n))


def test_a_learner_taught_from_the_log_has_a_filter_that_knows_the_labelled_events_only():
    loop = InteractiveLoop(asking())
    lines = []
    for n in range(60):
        y = ("home", "work")[n // 20 % 2] if n % 3 == 0 else None
        messages = loop.on_event(event(n, float(n // 20 % 2), y=y), now=float(n))
        lines += [m for m in messages if isinstance(m, LabelledExample)]
    fresh = asking()
    assert all(taught.refusal is None for taught in teach(fresh, lines))
    again = fresh.state()["temporal"]
    assert again["n_events"] == len(lines) == 20
    assert again["labels"] == ["home", "work"]
    assert again["awaited"] == []
    # Each label is that of the event just observed, so that it weighs the experts.
    assert fresh.temporal_in_use.weights() != TemporalFilter().weights()
    assert again != filter_of(loop)


def test_a_state_from_before_there_were_filters_is_of_another_configuration():
    plain = SkepticalClassifier(GPClassifier(max_points=500), seed=1)
    assert plain.fingerprint() != isgp(seed=1).fingerprint()


# --- failures


class Failing(AlwaysAsk):
    """Fails over the events that it observes."""

    armed = False

    def decide(self, belief, draw):
        if self.armed:
            raise ZeroDivisionError("by what?")
        return super().decide(belief, draw)


def test_an_input_that_fails_leaves_the_filter_as_it_was():
    rule = Failing()
    model = SkepticalClassifier(
        GPClassifier(), rule, NeverChallenge(), temporal=TemporalFilter(), warm_up=0, seed=1
    )
    loop = InteractiveLoop(model)
    for n in range(50):
        loop.on_event(event(n, float(n % 2), y=["home", "work"][n % 2]), now=float(n))
    loop.on_event(event(50, 1.0), now=50.0)  # an open question
    before = filter_of(loop), loop.model.predict_proba_one({"a": 0.3})
    object.__setattr__(rule, "armed", True)
    [rejected] = loop.on_event(event(51, 0.0), now=51.0)
    object.__setattr__(rule, "armed", False)
    assert (rejected.fault, rejected.stage) == ("failed", "ask")
    assert (filter_of(loop), loop.model.predict_proba_one({"a": 0.3})) == before
    assert loop.on_answer(answer(50, "home", 52.0), now=52.0)[0].y == "home"
