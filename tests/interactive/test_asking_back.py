"""The label of an earlier event is requested, as the model wishes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier, budgets, query
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    KeyedLoops,
    LabelledExample,
    LabelRequest,
    Prediction,
    Rejected,
)
from streamgp.query import RecentEventsAsk
from tests.helpers.laws import examples, in_turns
from tests.interactive.scripted import ScriptedLearner, ScriptedTalk
from tests.interactive.stories import CUTS, SPANS, Story, played_with_cuts, told
from tests.interactive.topics import PublishedState, pages_of


class Talk(ScriptedTalk):
    """A loop around a learner that asks about no event as it comes, and then about those named."""

    def __init__(self, *wanted, reservoir=None, **options):
        self.wanted = set(wanted)
        learner = ScriptedLearner(
            asks=False,
            asks_back=lambda event_id: event_id in self.wanted,
            reservoir=reservoir or RecentEventsAsk(),
            proba={"loft": 0.6, "hall": 0.4},
        )
        super().__init__(learner, **options)

    def looks(self):
        """The events that might be asked about, look by look."""
        return [call[1] for call in self.learner.calls if call[0] == "ask_among_one"]

    def notes(self, name):
        return [call[1:] for call in self.learner.calls if call[0] == name]


@pytest.fixture
def asked():
    """A talk in which the event e of time 0 is asked about at 40."""
    talk = Talk(expires_after_s=10.0, answer_horizon_s=100.0)
    talk.event("e")
    talk.wanted = {"e"}
    *_, request = talk.event("f", at=40.0)
    assert request.event_id == "e"
    return talk


# --- the request


def test_the_request_comes_after_all_else_about_the_event_and_says_when_it_was():
    talk = Talk()
    talk.event("e", key="ann")
    talk.wanted = {"e"}
    prediction, example, request = talk.event("f", at=40.0, y="den", key="bob")
    assert isinstance(prediction, Prediction)
    assert isinstance(example, LabelledExample)
    assert request == LabelRequest(
        request_id="e/label",
        event_id="e",
        key="ann",
        x={"f": 0.0},
        reason="Scripted",
        score=1.0,
        threshold=0.5,
        requested_at=40.0,
        occurred_at=0.0,
    )


def test_the_newest_event_may_be_the_one_whose_label_tells_most():
    talk = Talk("e")
    prediction, request = talk.event("e", at=5.0)
    assert not prediction.decision.ask
    assert (request.request_id, request.requested_at, request.occurred_at) == ("e/label", 5.0, None)


def test_no_earlier_event_is_asked_about_while_there_is_no_room():
    talk = Talk("d", "e", open_at_most=1)
    talk.event("d")
    assert [type(m) for m in talk.event("e", at=1.0)] == [Prediction]
    assert talk.loop.open_requests() == ["d/label"]
    talk.loop.on_cancel("d/label", now=2.0)
    assert talk.event("f", at=3.0)[-1].request_id == "e/label"


def test_it_comes_before_the_challenge_of_an_old_label():
    talk = Talk("e")
    talk.event("d", y="den")
    talk.learner.doubts = True
    assert [type(m) for m in talk.event("e")] == [Prediction, LabelRequest, Challenge]


def test_an_answer_is_learned_as_one_that_was_asked_for(asked):
    [line] = asked.answer("e", "hall", "label", at=45.0, annotator="ann")
    assert (line.event_id, line.y, line.origin, line.late) == ("e", "hall", "asked", False)
    assert line.x == {"f": 0.0}
    assert line.asked_back


def test_the_log_tells_these_labels_from_all_others_and_their_corrections_too(asked):
    lines = asked.answer("e", "hall", "label", at=45.0)
    lines += asked.answer("e", "den", supersedes="a1", at=46.0)
    lines += asked.answer("e", None, supersedes="a2", at=47.0)
    lines += asked.event("along", at=48.0, y="den")[1:2]
    lines += asked.answer("f", "den", at=49.0)
    asked.learner.asks = True
    asked.event("g", at=50.0)
    lines += asked.answer("g", "den", "label", at=51.0)
    assert [(line.event_id, line.origin, line.asked_back) for line in lines] == [
        ("e", "asked", True),
        ("e", "revised", True),
        ("e", "withdrawn", False),
        ("along", "volunteered", False),
        ("f", "volunteered", False),
        ("g", "asked", False),
    ]


def test_a_learning_rule_hears_of_no_label_that_it_has_not_asked_for():
    """A reservoir picks in another way than the rule, which learns of what it picks itself."""
    heard = []

    class Listening(ScriptedLearner):
        def settle_one(self, x, y, *, asked=True, **rest):
            heard.append(asked)
            return super().settle_one(x, y, **rest)

    talk = Talk("e")
    learner = Listening(
        asks=lambda name: name == "f",
        asks_back=lambda name: name == "e",
        reservoir=RecentEventsAsk(),
    )
    talk.loop = InteractiveLoop(learner)
    for name in "ef":
        talk.event(name)
        [line] = talk.answer(name, "hall", "label")
        assert line.origin == "asked"
    assert heard == [False, True]


def test_the_answer_may_be_challenged_and_the_challenge_says_when_the_event_was(asked):
    asked.learner.contests = True
    [challenge] = asked.answer("e", "hall", "label", at=45.0)
    assert (challenge.requested_at, challenge.occurred_at) == (45.0, 0.0)


@pytest.mark.parametrize("request_id", ["label", None])
def test_a_late_answer_is_still_welcome(asked, request_id):
    expired, line = asked.answer("e", "hall", request_id, at=51.0)
    assert isinstance(expired, Expired)
    assert (line.y, line.late) == ("hall", True)


def test_after_the_horizon_of_the_event_it_is_not(asked):
    expired, rejected = asked.answer("e", "hall", "label", at=101.0)
    assert isinstance(expired, Expired)
    assert (type(rejected), rejected.fault) == (Rejected, "late")


# --- refunds


@pytest.mark.parametrize(
    ("ending", "at"),
    [
        (lambda talk: talk.answer("e", None, "label", at=45.0), 45.0),
        (lambda talk: talk.loop.on_cancel("e/label", 46.0), 46.0),
        (lambda talk: talk.loop.on_time(51.0), 51.0),
        (lambda talk: talk.loop.on_time(120.0), 120.0),
    ],
)
def test_what_allowed_the_question_gets_it_back_with_the_time_of_asking(asked, ending, at):
    ending(asked)
    assert asked.notes("note_reservoir_unanswered") == [(at, 40.0)]
    assert asked.notes("note_unanswered") == []


def test_so_it_does_if_the_answer_is_taken_back_while_it_is_contested(asked):
    asked.learner.contests = True
    asked.answer("e", "hall", "label", at=45.0)
    assert asked.answer("e", None, supersedes="a1", at=47.0) == []
    assert asked.notes("note_reservoir_unanswered") == [(47.0, 40.0)]
    assert asked.notes("note_unanswered") == []


@pytest.mark.parametrize(
    "rules",
    [
        lambda budget: {"query": query.AlwaysAsk(), "budget": budget},
        lambda budget: {
            "query": query.NeverAsk(),
            "reservoir": RecentEventsAsk("rand", every=1, budget=budget),
        },
    ],
)
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("ends", ["expired", "declined"])
def test_a_question_is_given_back_once_whatever_is_taken_back_later(rules, restarts, ends):
    def model():
        rule = rules(query.AtMost(3, gives_back=True))
        challenge = query.AlwaysChallenge()
        return SkepticalClassifier(GPClassifier(), challenge=challenge, warm_up=0, seed=1, **rule)

    loop = InteractiveLoop(model(), expires_after_s=10.0)
    talk = Talk()
    talk.loop = loop
    for name, at in (("d", 0.0), ("e", 1.0)):
        *_, request = talk.event(name, at=at)
        assert request.request_id == f"{name}/label"
    talk.answer("d", "hall", "label", at=1.0)
    if ends == "expired":
        loop.on_time(20.0)
        late = {"request": "label"}
    else:
        talk.answer("e", None, "label", at=2.0)
        late = {"supersedes": "a2"}
    if restarts:
        talk.loop = InteractiveLoop.restore(loop.snapshot(), model())
    [challenge] = talk.answer("e", "loft", at=21.0, **late)
    assert isinstance(challenge, Challenge)
    assert talk.answer("e", None, supersedes=f"a{talk.n_answers}", at=22.0) == []
    # Of three questions one was answered, and one given back: two are left, and not three.
    asked_then = [isinstance(talk.event(f"g{n}", at=23.0 + n)[-1], LabelRequest) for n in range(3)]
    assert asked_then == [True, True, False]


def test_a_question_about_an_event_as_it_came_is_given_back_to_its_own_rule(asked):
    asked.learner.asks = True
    asked.event("g", at=41.0)
    asked.answer("g", None, "label", at=45.0)
    assert asked.notes("note_unanswered") == [(45.0,)]
    assert asked.notes("note_reservoir_unanswered") == []


def test_a_question_outlives_the_model_that_has_asked_it(asked):
    loop = InteractiveLoop(ScriptedLearner(), expires_after_s=10.0)
    loop._memory.take_over(asked.loop._memory["e"])
    loop._moderator.deadlines.set("e", 50.0)
    assert [type(m) for m in loop.on_time(51.0)] == [Expired]
    assert not any("unanswered" in call[0] for call in loop.model.calls)


# --- events that may be asked about


def test_those_that_nobody_was_asked_about_and_that_have_no_label():
    talk = Talk(expires_after_s=10.0)
    talk.learner.asks = lambda name: name.startswith("asked")
    talk.event("labelled", y="hall")
    talk.event("told")
    talk.answer("told", "hall")
    talk.event("asked")
    talk.event("asked and declined")
    talk.answer("asked and declined", None, "label")
    talk.event("asked and expired", at=1.0)
    talk.loop.on_time(20.0)
    talk.event("seen", at=20.0)
    talk.event("last", at=21.0)
    assert talk.looks()[-1] == ["seen", "last"]


def test_no_annotator_is_asked_twice_whatever_became_of_the_question():
    talk = Talk("e", "f", "g", "h", expires_after_s=10.0)
    for name in "efgh":
        talk.event(name)
    talk.answer("e", "hall", "label")
    talk.answer("f", None, "label")
    talk.loop.on_cancel("g/label", 2.0)
    talk.loop.on_time(11.0)
    talk.answer("e", None, supersedes="a1", at=12.0)
    talk.event("last", at=13.0)
    assert talk.looks()[-1] == ["last"]


def test_the_latest_ones():
    talk = Talk(reservoir=RecentEventsAsk(size=3))
    for name in "abcde":
        talk.event(name)
    assert talk.looks() == [["a"], ["a", "b"], ["a", "b", "c"], ["b", "c", "d"], ["c", "d", "e"]]


def test_the_size_counts_events_with_a_label_too():
    talk = Talk(reservoir=RecentEventsAsk(size=3))
    talk.event("a")
    talk.event("b")
    talk.event("c", y="hall")
    talk.event("d")
    assert talk.looks()[-1] == ["b", "d"]


def test_those_that_people_still_remember():
    talk = Talk(reservoir=RecentEventsAsk(max_age_s=60.0))
    for name, at in (("a", 0.0), ("b", 1.0), ("c", 61.0)):
        talk.event(name, at=at)
    assert talk.looks()[-1] == ["b", "c"]


def test_those_whose_request_can_be_answered_before_the_horizon():
    talk = Talk(expires_after_s=10.0, answer_horizon_s=100.0)
    for name, at in (("a", 0.0), ("b", 5.0), ("c", 95.0), ("d", 96.0)):
        talk.event(name, at=at)
    assert talk.looks()[-2:] == [["b", "c"], ["c", "d"]]


def test_without_an_expiry_those_within_the_horizon():
    talk = Talk(answer_horizon_s=100.0)
    for name, at in (("a", 0.0), ("b", 1.0), ("c", 101.0)):
        talk.event(name, at=at)
    assert talk.looks()[-1] == ["b", "c"]


def test_where_time_goes_backwards_an_earlier_event_may_be_later():
    talk = Talk(reservoir=RecentEventsAsk(max_age_s=60.0), answer_horizon_s=100.0)
    for name, at in (("a", 500.0), ("b", 100.0)):
        talk.event(name, at=at)
    assert talk.looks()[-1] == ["a", "b"]


# --- times of looks


def test_it_looks_at_events_only_and_not_where_one_is_asked_about_itself():
    talk = Talk()
    talk.learner.asks = lambda name: name == "f"
    talk.event("e")
    talk.event("f")
    talk.answer("e", "hall")
    talk.answer("f", "hall", "label")
    talk.loop.on_time(5.0)
    talk.event("e", at=6.0)  # a duplicate
    talk.event("broken", at=6.0, y="hall", key=5)
    assert talk.looks() == [["e"]]
    talk.event("g", at=7.0)
    assert talk.looks() == [["e"], ["g"]]


def test_it_does_not_look_before_it_is_due():
    talk = Talk("e")
    talk.learner.reservoir_due = False
    talk.event("e")
    assert (talk.looks(), talk.notes("note_reservoir")) == ([], [])


def test_every_look_is_noted_with_what_came_of_it():
    talk = Talk("f", reservoir=RecentEventsAsk(size=1))
    talk.event("e")
    talk.event("f", at=1.0)
    talk.event("g", y="hall", at=2.0)
    assert [(None if d is None else d.ask, now) for d, now in talk.notes("note_reservoir")] == [
        (False, 0.0), (True, 1.0), (None, 2.0)
    ]  # fmt: skip


# --- a budget for all keys together


def real(reservoir, ask=None, **options):
    return SkepticalClassifier(
        GPClassifier(),
        query.NeverAsk() if ask is None else ask,
        warm_up=0,
        reservoir=reservoir,
        seed=1,
        **options,
    )


def play(loops, n=30, keys=("ann", "bob")):
    said = []
    for i in range(n):
        x = {"u": float(i % 7), "v": float(i % 3)}
        event = Event(event_id=f"e{i}", key=keys[i % len(keys)], x=x, occurred_at=float(i))
        said += loops.on_event(event, event.occurred_at)
    return said


def requests(messages):
    return [m for m in messages if isinstance(m, LabelRequest)]


def test_the_budget_of_all_keys_bounds_these_questions_too():
    loops = KeyedLoops(real(RecentEventsAsk(every=2)), total_budget=budgets.AtMost(3))
    assert len(requests(play(loops))) == 3
    [request] = requests(play(KeyedLoops(real(RecentEventsAsk(every=2))), n=5, keys=("ann",)))[:1]
    again = KeyedLoops(real(RecentEventsAsk(every=2)), total_budget=budgets.AtMost(1))
    play(again, n=5, keys=("ann",))
    assert again.on_cancel(request.request_id, 6.0, key="ann") != []
    assert len(requests(play(again, n=12, keys=("cid",)))) == 1


@pytest.mark.parametrize("gives_back", [True, False])
def test_it_gets_back_by_the_time_of_asking_what_nobody_answered(gives_back):
    budget = budgets.AtMostPer(2, span_s=1000.0, gives_back=gives_back)
    loops = KeyedLoops(real(RecentEventsAsk(every=4)), total_budget=budget)
    first, second = requests(play(loops, n=20, keys=("ann",)))
    loops.on_cancel(second.request_id, 21.0, key="ann")
    left = [first.requested_at] if gives_back else [first.requested_at, second.requested_at]
    assert loops._shared_budget.state() == {"asked_at": left}


def test_a_rate_for_all_keys_together_keeps_what_it_promises():
    ask = query.Entropy(threshold=0.0)
    rate = budgets.RateBudget(0.1, seed=1)
    for reservoir in (None, RecentEventsAsk(size=20, every=10), RecentEventsAsk(size=20, every=1)):
        loops = KeyedLoops(real(reservoir, ask), total_budget=rate)
        said = []
        for i in range(500):
            x = {"u": float(i % 7), "v": float(i * i % 5)}
            event = Event(event_id=f"e{i}", key="ann", x=x, occurred_at=float(i))
            messages = loops.on_event(event, event.occurred_at)
            said += messages
            for request in requests(messages):
                answer = Answer(
                    answer_id=request.event_id,
                    event_id=request.event_id,
                    key="ann",
                    request_id=request.request_id,
                    y="ab"[int(request.x["u"] > 3.0)],
                    answered_at=float(i),
                )
                said += loops.on_answer(answer, float(i))
        assert len(requests(said)) == pytest.approx(50, abs=3)


# --- restarts, and other keys


LABELS = ("a", "b", "c")
MODELS = {
    "beside a rule": lambda: SkepticalClassifier(
        GPClassifier(), warm_up=16, reservoir=RecentEventsAsk(size=20, every=3), seed=3
    ),
    "alone, with a budget": lambda: SkepticalClassifier(
        GPClassifier(max_points=6),
        query.NeverAsk(),
        warm_up=16,
        reservoir=RecentEventsAsk(
            "hvar",
            size=9,
            every=2,
            max_age_s=30.0,
            budget=budgets.AtMostPer(5, 20.0, gives_back=True),
        ),
        review=query.LeaveOneOutReview(0.2, every=3),
        seed=3,
    ),
    "at random": lambda: SkepticalClassifier(
        GPClassifier(window=8), query.NeverAsk(), warm_up=8,
        reservoir=RecentEventsAsk("rand", every=3), seed=3,
    ),
}  # fmt: skip
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
seeds = st.integers(0, 10**6)


@models
@examples(2)
@given(seed=seeds, every=CUTS)
def test_a_restart_anywhere_changes_no_message(model, seed, every):
    _, messages = played_with_cuts(model, Story(seed, labels=LABELS), every, n=130)
    assert any(m.occurred_at is not None for m in requests(messages))


@models
@examples(2)
@given(seed=seeds, n_bytes=st.sampled_from([300, 1 << 15]), recent=st.sampled_from([0, 1 << 20]))
def test_what_was_published_last_makes_the_loop_again(model, seed, n_bytes, recent):
    with pages_of(n_bytes, recent=recent):
        loop, topics = InteractiveLoop(model(), **SPANS), PublishedState()
        story, messages = Story(seed, labels=LABELS), []
        for _ in range(110):
            messages = told(loop, story.next(messages))
            topics.write(loop.changes(), messages)
        parts = {k: v for k, v in topics.parts_since().items() if v is not None}
        assert msgspec.json.decode(msgspec.json.encode(loop.parts())) == parts
        again = InteractiveLoop.from_parts(
            parts, topics.lines_since(0, story.rng), model(), **SPANS
        )
        assert again.snapshot() == loop.snapshot()


@in_turns("model", MODELS, 1)
@examples(2)
@given(seed=seeds)
def test_other_keys_change_no_message(model, seed):
    together = KeyedLoops(model(), max_keys=1, **SPANS)
    said = {"ann": [], "bob": []}
    stories = {key: Story(seed, key=key, labels=LABELS) for key in said}
    alone = {key: KeyedLoops(model(), **SPANS) for key in said}
    for n in range(160):
        key = "ann" if n % 3 else "bob"
        step = stories[key].next(said[key])
        if step[0] == "on_time":
            continue
        said[key] = told(together, step, key=key)
        assert repr(told(alone[key], step, key=key)) == repr(said[key])


def test_a_conversation_that_was_not_looked_back_at_is_published_as_ever():
    """A mark is there where a look has asked, and nowhere else: what is stored stays what it is."""
    plains = {}
    for reservoir in (None, RecentEventsAsk(every=5)):
        loop = InteractiveLoop(real(reservoir, query.AlwaysAsk()))
        play(loop, n=4, keys=(None,))
        plains[reservoir is None] = loop.parts()["head"]["recent"]
    assert plains[True] == plains[False]
    loop = InteractiveLoop(real(RecentEventsAsk(every=4)))
    play(loop, n=4, keys=(None,))
    lengths = {plain[5]: len(plain) for plain in loop.parts()["head"]["recent"]}
    assert lengths == {"seen": 13, "asked": 14}


def test_a_model_without_a_reservoir_is_asked_nothing():
    class Forward(ScriptedLearner):
        @property
        def reservoir_due(self):
            raise AssertionError

        @reservoir_due.setter
        def reservoir_due(self, value):
            pass

    loop = InteractiveLoop(Forward(asks=False))
    event = Event(event_id="e", x={"f": 1.0}, occurred_at=0.0)
    assert [type(m) for m in loop.on_event(event, 0.0)] == [Prediction]
    assert isinstance(loop.on_cancel("e/label", 0.0)[0], Rejected | Cancel)
