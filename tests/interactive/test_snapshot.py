"""A loop restored from a snapshot goes on as if nothing had happened."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes

from streamgp import (
    DriftTest,
    GPClassifier,
    SkepticalClassifier,
    TemporalFilter,
    isgp,
    query,
)
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    Rejected,
    SnapshotError,
    examples_in,
)
from streamgp.interactive.state.snapshot import Snapshot
from tests.helpers.laws import examples, in_turns
from tests.interactive.models import MODELS
from tests.interactive.scripted import ScriptedLearner
from tests.interactive.stories import CUTS, SPANS, Story, played_with_cuts, told

models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def loop_around(model):
    return InteractiveLoop(model(), **SPANS)


@in_turns("model", MODELS, 0)
@examples(2)
@given(seed=st.integers(0, 10**6), every=CUTS)
def test_cutting_by_snapshot_and_restore_changes_no_message(model, seed, every):
    played_with_cuts(model, Story(seed), every)


@in_turns("model", MODELS, 1)
@examples(2)
@given(seed=st.integers(0, 10**6))
def test_the_consensus_log_replayed_gives_the_same_learner_bit_for_bit(model, seed):
    loop = loop_around(model)
    story = Story(seed)
    log, messages = [], []
    for _ in range(130):
        messages = told(loop, story.next(messages))
        log += [m for m in messages if isinstance(m, LabelledExample)]
    again = model()
    again.load_state(json.loads(json.dumps(loop.model.state())), examples_in(reversed(log)))
    assert again.n_learned == loop.model.n_learned
    for _ in range(10):
        x = {"n": 1, **story.event().x, "u": 2.0}  # one transformer cannot do without n
        assert again.predict_proba_one(x) == loop.model.predict_proba_one(x)
        assert again.query_one(x, event_id="q", now=1e6) == loop.model.query_one(
            x, event_id="q", now=1e6
        )
        assert again.challenge_one(x, "a", annotator="ann") == loop.model.challenge_one(
            x, "a", annotator="ann"
        )


@pytest.mark.parametrize("name", ["default", "review"])
@examples(5)
@given(seed=st.integers(0, 10**6))
def test_the_error_estimates_follow_from_the_messages(seed, name):
    """A first answer counts as it did when it was learned, also if its label is doubted later."""
    loop = loop_around(MODELS[name])
    story = Story(seed)
    messages, contested, sums = [], {}, {}
    for _ in range(150):
        messages = told(loop, story.next(messages))
        for message in messages:
            if isinstance(message, Challenge):
                if message.reason != "LeaveOneOutReview":
                    contested[message.event_id] = message.annotator
            elif isinstance(message, LabelledExample) and message.probability_wrong is not None:
                who = contested.pop(message.event_id, message.annotator)
                n, total = sums.get(who, (0, 0.0))
                sums[who] = n + 1, total + message.probability_wrong
    for who, (n, total) in sums.items():
        assert loop.model.error_rate(who) == (1.0 + total) / (5.0 + n)


@pytest.mark.parametrize("name", ["default", "review"])
@examples(5)
@given(seed=st.integers(0, 10**6))
def test_what_annotators_are_judged_by_is_in_the_consensus_log(seed, name):
    loop = loop_around(MODELS[name])
    story, messages, log = Story(seed), [], []
    for _ in range(150):
        messages = told(loop, story.next(messages))
        log += [message for message in messages if isinstance(message, LabelledExample)]
    told_by_the_log = {example.event_id: example.answer for example in examples_in(log)}
    assert told_by_the_log == {e.event_id: e.answer for e in loop.model.examples()}


@pytest.mark.parametrize("seed", range(3))
def test_labels_are_doubted_and_revised_in_these_stories(seed):
    """The laws of this module and its neighbours are about reviews as well."""
    loop = loop_around(MODELS["review"])
    story, messages, told_of = Story(seed), [], []
    for _ in range(110):
        messages = told(loop, story.next(messages))
        told_of += messages
    doubted = {
        m.event_id for m in told_of if isinstance(m, Challenge) and m.reason == "LeaveOneOutReview"
    }
    revised = {m.event_id for m in told_of if isinstance(m, LabelledExample) and m.revision}
    assert len(doubted) > 5
    assert doubted & revised


def test_a_seed_that_was_drawn_is_kept():
    loop = InteractiveLoop(isgp())
    again = InteractiveLoop.restore(loop.snapshot(), isgp())
    x = {"a": 1.0}
    for n in range(20):
        assert again.model.query_one(x, event_id=str(n)) == loop.model.query_one(x, event_id=str(n))


def test_features_survive_as_they_were_received():
    x = {"i": 3, "f": 3.0, "t": True, "nan": float("nan"), "inf": None, "s": "text", 1: 2.0}
    loop = InteractiveLoop(
        SkepticalClassifier(naive_bayes.GaussianNB(), query=query.AlwaysAsk(), warm_up=0, seed=1)
    )
    x.pop("s")  # naive Bayes takes numbers only
    x.pop("nan")
    x.pop("inf")
    loop.on_event(Event(event_id="e1", x=x, occurred_at=0.0), now=0.0)
    again = InteractiveLoop.restore(
        loop.snapshot(),
        SkepticalClassifier(naive_bayes.GaussianNB(), query=query.AlwaysAsk(), warm_up=0, seed=1),
    )
    answer = Answer(answer_id="a", event_id="e1", y="p", answered_at=1.0)
    [example] = again.on_answer(answer, now=1.0)
    assert list(example.x.items()) == list(x.items())
    assert [type(v) for v in example.x.values()] == [type(v) for v in x.values()]


def test_scalars_of_numpy_are_saved_as_plain_values():
    """Rows of pandas and arrays bring them: times, ids, names of features, settings."""
    loop = InteractiveLoop(
        isgp(seed=1), expires_after_s=np.float64(60.0), answer_horizon_s=np.int64(90)
    )
    key, x = np.str_("u"), {np.str_("light"): np.float32(0.5), np.int64(3): np.int64(1)}
    event = Event(event_id=np.str_("e"), key=key, x=x, occurred_at=np.float64(0.5))
    _, request = loop.on_event(event, now=np.float64(0.5))
    again = InteractiveLoop.restore(loop.snapshot(), isgp(seed=1))
    assert again.snapshot() == loop.snapshot()
    answer = Answer(
        answer_id=np.str_("a"),
        request_id=request.request_id,
        event_id="e",
        key=key,
        y=np.int64(2),
        annotator=np.str_("ann"),
        answered_at=np.float64(1.5),
    )
    for one in (loop, again):
        [example] = one.on_answer(answer, now=np.float64(1.5))
        assert example.x == {"light": 0.5, 3: 1}
    assert again.snapshot() == loop.snapshot()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("name", ["default", "short warm-up", "naive Bayes"])
def test_features_of_numpy_are_computed_with_as_after_a_restart(name, kind):
    """Not in single precision, in which their differences would be rounded."""
    loop, again = loop_around(MODELS[name]), None
    for n in range(30):
        x = {"a": kind(50.1 + 3.7 * (n % 7)), "b": kind(-(n % 5) / 3)}
        event = Event(event_id=f"e{n}", x=x, occurred_at=float(n), y=n % 2 if n % 3 else None)
        messages = loop.on_event(event, now=float(n))
        if again is not None:
            assert again.on_event(event, now=float(n)) == messages
        if n == 13:
            again = InteractiveLoop.restore(loop.snapshot(), MODELS[name]())
    assert again.snapshot() == loop.snapshot()


# --- snapshots that cannot be restored


@pytest.fixture
def data():
    loop = loop_around(MODELS["default"])
    for n in range(6):
        event = Event(event_id=f"e{n}", x={"a": float(n)}, occurred_at=float(n), y=n % 2)
        loop.on_event(event, now=float(n))
    return loop.snapshot()


def test_another_configuration_is_refused(data):
    for model in (isgp(seed=4), isgp("paper", seed=3), MODELS["short warm-up"]()):
        with pytest.raises(SnapshotError, match=r"taken with another configuration .* restore it"):
            InteractiveLoop.restore(data, model)


def test_a_configuration_written_in_another_way_is_the_same(data):
    learner = GPClassifier(noise_variance=0.5, max_points=500)
    model = SkepticalClassifier(
        learner,
        warm_up=200,
        temporal=TemporalFilter(),
        drift_test=DriftTest(at_least=0.005),
        rescale=True,
        seed=3,
    )
    assert InteractiveLoop.restore(data, model).model is model
    assert model.n_learned > 0


def test_a_snapshot_cut_off_anywhere_is_refused(data):
    for size in range(0, len(data), 7):
        with pytest.raises(SnapshotError, match=r"cut off|not a snapshot"):
            InteractiveLoop.restore(data[:size], isgp(seed=3))


def test_a_newer_version_is_refused(data):
    newer = data[:8] + (3).to_bytes(2, "little") + data[10:]
    with pytest.raises(SnapshotError, match="version 3, this streamgp reads version 2"):
        InteractiveLoop.restore(newer, isgp(seed=3))


def test_a_snapshot_from_before_conversations_had_pages_is_refused(data):
    older = data[:8] + (1).to_bytes(2, "little") + data[10:]
    with pytest.raises(SnapshotError, match="version 1, this streamgp reads version 2; use the st"):
        InteractiveLoop.restore(older, isgp(seed=3))


def test_something_else_is_refused():
    with pytest.raises(SnapshotError, match=r"not a snapshot of streamgp: it begins with b'PK"):
        InteractiveLoop.restore(b"PK\3\4 something else", isgp(seed=3))


def test_one_changed_byte_is_noticed(data):
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    with pytest.raises(SnapshotError, match="damaged: its checksum does not fit"):
        InteractiveLoop.restore(bytes(damaged), isgp(seed=3))


def test_a_snapshot_of_something_else_is_refused():
    data = Snapshot(kind="a teapot", fingerprint="", body={}).to_bytes()
    with pytest.raises(SnapshotError, match="holds a teapot, expected a loop"):
        InteractiveLoop.restore(data, isgp(seed=3))


def test_a_model_that_has_seen_something_is_refused(data):
    model = isgp(seed=3)
    model.observe_one({"a": 1.0})
    with pytest.raises(SnapshotError, match="only a learner that has seen nothing"):
        InteractiveLoop.restore(data, model)


def test_a_model_that_cannot_be_saved_says_what_it_lacks():
    with pytest.raises(TypeError, match="ScriptedLearner cannot be saved; give it the methods fin"):
        InteractiveLoop(ScriptedLearner()).snapshot()


def test_a_budget_that_cannot_be_saved_says_so():
    class Stingy:
        def allows(self, decision, now):  # noqa: ARG002
            return False

        def note(self, decision, asked, now):
            pass

        def refund(self, now):
            pass

    model = SkepticalClassifier(GPClassifier(), budget=Stingy(), seed=1)
    with pytest.raises(TypeError, match="Stingy cannot be saved; give it the methods state and"):
        InteractiveLoop(model).snapshot()


def test_a_feature_that_cannot_be_saved_is_named():
    loop = InteractiveLoop(isgp(seed=1))
    loop.on_event(Event(event_id="e1", x={("a", 1): 1.0}, occurred_at=0.0), now=0.0)
    with pytest.raises(
        ValueError, match=r"named by a string or a number can be saved, got \('a', 1\)"
    ):
        loop.snapshot()


# --- laws of real models


@models
@examples(1)
@given(seed=st.integers(0, 10**6))
def test_what_comes_twice_changes_nothing(model, seed):
    loop = loop_around(model)
    story = Story(seed)
    messages = []
    for _ in range(60):
        step = story.next(messages)
        messages = told(loop, step)
        if step[0] == "on_time":
            continue
        before = loop.snapshot()
        again = told(loop, step)
        assert [type(m) for m in again] == [Rejected]
        assert loop.snapshot() == before


@examples(5)
@given(seed=st.integers(0, 10**6))
def test_no_more_questions_are_answered_than_the_budget_allows(seed):
    loop = loop_around(MODELS["at most"])
    story = Story(seed)
    messages, open_or_answered = [], set()
    for _ in range(150):
        step = story.next(messages)
        messages = told(loop, step)
        answer = step[1] if step[0] == "on_answer" else None
        for message in messages:
            if isinstance(message, LabelRequest):
                open_or_answered.add(message.request_id)
            elif isinstance(message, Expired | Cancel):
                open_or_answered.discard(message.request_id)
        if answer is not None and answer.declined and not messages:
            open_or_answered.discard(f"{answer.event_id}/label")
        assert len(open_or_answered) <= 9


@examples(5)
@given(seed=st.integers(0, 10**6))
def test_no_more_questions_fall_into_any_span_than_the_budget_allows(seed):
    loop = loop_around(MODELS["at most per"])
    story = Story(seed)
    messages, asked_at = [], []
    for _ in range(200):
        messages = told(loop, story.next(messages))
        asked_at += [m.requested_at for m in messages if isinstance(m, LabelRequest)]
    asked_at.sort()
    assert len(asked_at) > 3
    assert all(later - at >= 20.0 for at, later in zip(asked_at, asked_at[3:], strict=False))


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_snapshot_and_the_log_agree_on_which_labels_were_not_asked_for(is_earlier):
    """Examples in snapshots of earlier versions do not tell, but their lines do."""

    def model():
        return SkepticalClassifier(GPClassifier(), query.AlwaysAsk(), seed=1)

    loop, lines = InteractiveLoop(model()), []
    for n in range(4):
        loop.on_event(Event(event_id=f"e{n}", x={"f": float(n)}, occurred_at=0.0), 0.0)
        loop.on_cancel(f"e{n}/label", 0.0)
        answer = Answer(
            answer_id=f"a{n}",
            event_id=f"e{n}",
            request_id=f"e{n}/label" if n % 2 else None,
            y="a",
            annotator="ann",
            answered_at=1.0,
        )
        lines += loop.on_answer(answer, 1.0)
    snapshot = Snapshot.from_bytes(loop.snapshot())
    if is_earlier:
        del snapshot.body["examples"]["unasked"]
    again = InteractiveLoop.restore(snapshot.to_bytes(), model())
    assert again.model.examples() == examples_in(lines) == loop.model.examples()
    assert [e.answer.was_asked for e in again.model.examples()] == [False, True] * 2
