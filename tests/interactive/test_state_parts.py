"""A loop is published piece by piece, and what was published last makes it again."""

import random
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier, budgets, isgp, query
from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    Expired,
    InteractiveLoop,
    LabelledExample,
    SnapshotError,
    event_store,
    examples_in,
)
from streamgp.interactive.conversation_record import Conversation
from streamgp.interactive.state import serialize
from tests.helpers.laws import examples
from tests.helpers.messages import event
from tests.interactive import models
from tests.interactive.scripted import ScriptedLearner
from tests.interactive.stories import told
from tests.interactive.topics import SPANS, PublishedState, StateChangelog, pages_of

SHARED = ("default", "short warm-up", "review", "pipeline", "windows")
MODELS = {
    **{name: models.MODELS[name] for name in SHARED},
    "at most per": lambda: SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), budget=budgets.AtMostPer(9, 20.0), warm_up=8, seed=3
    ),
    "availability": lambda: SkepticalClassifier(
        GPClassifier(),
        query.SkepticalAsk(3.0),
        budget=budgets.AllOf(
            budgets.PacedBudget(9, 20.0, at_start=4), budgets.AvailabilityBudget()
        ),
        warm_up=8,
        seed=3,
    ),
}
seeds = st.integers(0, 10**6)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@examples(2)
@given(
    seed=seeds,
    n_bytes=st.sampled_from([300, 700, 1500, 1 << 15]),
    recent=st.sampled_from([0, 500, 1 << 10, 1 << 20]),
    every=st.sampled_from((20, 5, 12, 40, 60)),
)
def test_what_was_published_last_makes_the_loop_again(model, seed, n_bytes, recent, every):
    published = StateChangelog(model, seed)
    with pages_of(n_bytes, recent=recent):
        for _ in range(120 // every):
            # The story goes on with one of them.
            published.loop = published.rng.choice(published.steps_and_cut(every))


@examples(4)
@given(seed=seeds)
def test_loops_made_again_say_the_same_from_then_on(seed):
    published = StateChangelog(MODELS["short warm-up"], seed)
    for _ in range(60):
        published.step()
    loops = [published.loop, *published.cut()]
    story, messages = published.story, published.messages
    for _ in range(40):
        step = story.next(messages)
        said = [told(loop, step) for loop in loops]
        assert {repr(s) for s in said} == {repr(said[0])}
        messages = said[0]
    assert {loop.snapshot() for loop in loops} == {loops[0].snapshot()}


# --- changed and unchanged parts


def answer(y="a", name="e", at=1.0, answer_id="a1", **fields):
    return Answer(
        answer_id=answer_id, event_id=name, y=y, declined=y is None, answered_at=at, **fields
    )


def asking():
    return SkepticalClassifier(
        GPClassifier(), query.AlwaysAsk(), challenge=query.NeverChallenge(), warm_up=0, seed=1
    )


@pytest.fixture
def loop():
    """A loop that asks about everything, and has published two events on a page each."""
    loop = InteractiveLoop(asking(), expires_after_s=10.0, answer_horizon_s=100.0)
    with pages_of():
        for name in ("e", "f"):
            loop.on_event(event(name), 0.0)
            loop.changes()
        yield loop


def test_a_new_loop_has_nothing_to_tell():
    assert InteractiveLoop(asking()).changes() == {}


def test_the_head_tells_how_far_everything_is_counted(loop):
    loop.on_answer(answer(), 1.0)
    head = loop.changes()["head"]
    assert head == {
        "sequence": 1,
        "pages": 2,
        "events": 2,
        "remembered": 2,
        "alarms": 2,
        "learned": 1,
        "model": loop.model.state(),
        "fingerprint": asking().fingerprint(),
        "recent": [],
    }


def test_the_head_is_written_last(loop):
    loop.on_event(event("g"), 1.0)
    loop.on_answer(answer(), 1.0)
    assert list(loop.changes()) == ["events/1", "events/3", "head"]
    assert list(loop.parts()) == ["events/1", "events/2", "events/3", "head"]
    assert loop.part_names() == ["events/1", "events/2", "events/3", "head"]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda loop: loop.on_event(event("g"), 0.0), {"head", "events/3"}),
        (lambda loop: loop.on_answer(answer(), 1.0), {"head", "events/1"}),
        (lambda loop: loop.on_answer(answer(None), 1.0), {"head", "events/1"}),
        (lambda loop: loop.on_cancel("f/label", 1.0), {"head", "events/2"}),
        (lambda loop: loop.on_time(50.0), {"head", "events/1", "events/2"}),
        (lambda loop: loop.on_time(101.0), {"head", "events/1", "events/2"}),
        # An open request that had expired ends, though the answer itself cannot be used.
        (
            lambda loop: loop.on_answer(answer(None, request_id="e/label", at=20.0), 20.0),
            {"head", "events/1"},
        ),
        # The old conversation about the same event id is beyond its horizon.
        (lambda loop: loop.on_event(event("e", 101.0), 101.0), {"head", "events/1", "events/3"}),
        (lambda loop: loop.on_answer(answer(at=101.0), 101.0), {"head", "events/1"}),
    ],
)
def test_only_what_an_input_has_changed_is_returned(loop, change, names):
    change(loop)
    assert loop.has_changed == bool(names)
    assert set(loop.changes()) == names
    assert not loop.has_changed
    assert loop.changes() == {}


@pytest.mark.parametrize(
    "read",
    [
        lambda loop: loop.on_event(event(), 1.0),
        lambda loop: loop.on_event(Event(event_id="g", x={"f": 1e200}, occurred_at=0.0), 0.0),
        lambda loop: loop.on_event(event(""), 0.0),
        lambda loop: loop.on_answer(answer(name="unknown"), 1.0),
        lambda loop: loop.on_answer(answer(supersedes="nothing"), 1.0),
        lambda loop: loop.on_answer(answer(key="ann"), 1.0),
        lambda loop: loop.on_cancel("e/challenge/1", 1.0),
        lambda loop: loop.on_time(10.0),
        lambda loop: (loop.n_open, loop.next_deadline(), loop.snapshot()),
    ],
)
def test_what_is_rejected_or_only_read_changes_nothing(loop, read):
    before = loop.snapshot()
    read(loop)
    assert not loop.has_changed
    assert loop.changes() == {}
    assert loop.snapshot() == before


def test_a_page_is_gone_with_its_last_event(loop):
    loop.on_answer(answer(name="f"), 1.0)
    loop.changes()
    loop.on_time(101.0)
    parts = loop.changes()
    assert (parts["events/1"], parts["events/2"]) == (None, None)
    assert list(loop.parts()) == ["head"]


def test_parts_are_all_there_is_and_count_nothing_as_published(loop):
    loop.on_event(event("g"), 1.0)
    parts = loop.parts()
    assert set(parts) == {"head", "events/1", "events/2"}
    assert [plain[1] for plain in parts["head"]["recent"]] == ["g"]
    assert loop.parts() == parts
    changes = loop.changes()
    assert changes["events/3"] == parts["head"]["recent"]
    assert changes["head"] == {**parts["head"], "pages": 3, "recent": []}


def test_a_long_page_is_divided_into_several():
    loop = InteractiveLoop(asking())
    for n in range(4):
        loop.on_event(Event(event_id=str(n), x={"f" * 20_000: 1.0}, occurred_at=0.0), 0.0)
    parts = loop.changes()
    assert [len(parts[f"events/{n}"]) for n in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert all(
        len(msgspec.json.encode(part)) < event_store.SEGMENT_BYTES for part in parts.values()
    )


def test_a_page_divided_by_long_answers_keeps_the_order_of_the_events():
    loop = InteractiveLoop(asking(), answer_horizon_s=100.0)
    with pages_of(900):
        for n in range(5):
            loop.on_event(event(str(n)), 0.0)
        topics = PublishedState()
        topics.write(loop.changes())
        loop.on_event(event("later"), 0.0)
        topics.write(loop.changes())
        for n in (0, 3):
            long = {"why": "x" * 600}
            given = answer(name=str(n), answer_id=f"a{n}", privileged=long)
            messages = loop.on_answer(given, 1.0)
            topics.write(loop.changes(), messages)
    parts = topics.parts_since()
    on = {
        name: [plain[1] for plain in segment] for name, segment in parts.items() if name != "head"
    }
    assert [*chain(*on.values())] != sorted(chain(*on.values()))
    again = InteractiveLoop.from_parts(parts, topics.lines, asking(), answer_horizon_s=100.0)
    assert again.snapshot() == loop.snapshot()


def contested():
    """A loop in which a challenge was made after a label request that expires with it."""
    rules = query.AlwaysAsk(), query.AlwaysChallenge()
    model = SkepticalClassifier(GPClassifier(), *rules, warm_up=0, seed=1)
    loop = InteractiveLoop(model, expires_after_s=10.0)
    messages = [m for n in "123" for m in loop.on_event(event(n, y="b"), 0.0)]
    messages += loop.on_event(event("e"), 0.0) + loop.on_event(event("f"), 0.0)
    messages += loop.on_answer(answer("a", at=0.0), 0.0)
    assert isinstance(messages[-1], Challenge)
    return loop, messages


def test_requests_that_expire_at_the_same_time_end_in_the_order_in_which_they_were_made():
    loop, messages = contested()
    parts = loop.changes()
    again = InteractiveLoop.from_parts(
        parts, lines_of(messages), loop.model.clone(), expires_after_s=10.0
    )
    ended = again.on_time(11.0)
    assert [m.request_id for m in ended if isinstance(m, Expired)] == ["f/label", "e/challenge/1"]
    assert ended == loop.on_time(11.0)


def test_requests_made_after_a_restart_come_after_those_before():
    loop, messages = contested()
    again = InteractiveLoop.from_parts(
        loop.changes(), lines_of(messages), loop.model.clone(), expires_after_s=10.0
    )
    again.on_event(event("g"), 0.0)
    ended = [m.request_id for m in again.on_time(11.0) if isinstance(m, Expired)]
    assert ended == ["f/label", "e/challenge/1", "g/label"]


def lines_of(messages):
    return [m for m in messages if isinstance(m, LabelledExample)]


def test_features_come_back_as_they_were_received_whoever_used_the_event_id_before():
    loop = InteractiveLoop(asking(), answer_horizon_s=10.0)
    loop.on_event(Event(event_id="e", x={"f": 1.0, "g": 2}, occurred_at=0.0, y="a"), 0.0)
    loop.on_event(Event(event_id="e", x={"g": 2.0, "f": True}, occurred_at=11.0), 11.0)
    again = InteractiveLoop.restore(loop.snapshot(), asking())
    x = again._memory["e"].event.x
    assert [(n, type(v)) for n, v in x.items()] == [("g", float), ("f", bool)]


# --- catching up with what was published since a snapshot


def test_events_forgotten_before_they_were_ever_published_do_not_come_back():
    loop = InteractiveLoop(asking(), answer_horizon_s=10.0)
    loop.on_event(event("e", 0.0), 0.0)
    data = loop.snapshot()
    loop.on_time(11.0)
    loop.on_event(event("f", 11.0), 11.0)
    again = InteractiveLoop.restore(data, asking()).caught_up(loop.changes(), [], asking())
    assert again.snapshot() == loop.snapshot()
    assert len(again._memory) == 1


def test_a_restored_loop_gives_new_pages_new_numbers(loop):
    again = InteractiveLoop.restore(loop.snapshot(), asking())
    again.on_event(event("g"), 0.0)
    assert set(again.changes()) == {"events/3", "head"}


def test_a_restored_loop_tells_what_has_changed_since_it_was_restored(loop):
    loop.on_event(event("g"), 0.0)
    again = InteractiveLoop.restore(loop.snapshot(), asking())
    assert again.changes() == {}


def test_nothing_published_since_changes_nothing(loop):
    assert loop.caught_up({}, [], asking()) is loop


def test_older_lines_are_passed_over(loop):
    [line] = loop.on_answer(answer(), 1.0)
    loop.changes()
    loop.on_answer(answer(None, answer_id="a2", supersedes="a1"), 2.0)
    again = loop.caught_up(loop.changes(), [line], asking())
    assert again.snapshot() == loop.snapshot()
    assert again.model.n_learned == 0


def test_a_loop_of_which_all_parts_are_gone_is_gone(loop):
    assert loop.caught_up(dict.fromkeys(loop.part_names()), [], asking()) is None
    assert loop.caught_up({"head": None}, [], asking()) is None


def test_what_was_not_published_before_a_snapshot_is_missed_if_it_is_not_among_what_was_since(loop):
    loop.on_event(event("g"), 1.0)
    data = loop.snapshot()
    loop.changes()
    loop.on_event(event("h"), 1.0)
    again = InteractiveLoop.restore(data, asking())
    with pytest.raises(SnapshotError, match="there are 3 conversations, expected 4"):
        again.caught_up(loop.changes(), [], asking())


def test_a_loop_is_left_as_it_is_by_what_does_not_fit(loop):
    loop.on_answer(answer(), 1.0)
    parts, before = loop.parts(), loop.snapshot()
    younger = InteractiveLoop(asking()).parts()
    with pytest.raises(SnapshotError, match="it ends with line 0 of the log, expected 1 or more"):
        loop.caught_up(younger, [], asking())
    head = {**parts["head"], "learned": 5}
    with pytest.raises(SnapshotError, match="the log leaves 1 examples, expected 5"):
        loop.caught_up({"head": head}, [], asking())
    with pytest.raises(SnapshotError, match="there is no part 'head'"):
        loop.caught_up({"events/1": parts["events/1"]}, [], asking())
    assert loop.snapshot() == before


# --- lines deleted from the log


@pytest.fixture
def learned():
    """A loop that holds three labels, one of them corrected, what it published, and its lines."""
    loop = InteractiveLoop(asking(), expires_after_s=10.0, answer_horizon_s=100.0)
    messages = [m for n in "012" for m in loop.on_event(event(n, y="a"), 0.0)]
    messages += loop.on_answer(answer("b", name="1", supersedes="1"), 1.0)
    with pages_of():
        yield loop, loop.changes(), lines_of(messages)


def made_again(parts, lines):
    return InteractiveLoop.from_parts(
        parts, lines, asking(), expires_after_s=10.0, answer_horizon_s=100.0
    )


def labels(loop):
    return [(example.event_id, example.y) for example in loop.model.examples()]


def test_a_correction_deleted_from_the_log_counts_until_it_is_withdrawn(learned):
    loop, parts, lines = learned
    again = made_again(parts, lines[:-1])
    assert (again.parts(), again.model.examples()) == (loop.parts(), loop.model.examples())
    [line] = again.withdraw("1", 5.0, revision=1)
    assert (line.revision, line.sequence, line.y, line.x) == (2, 5, None, {"f": 1.0})
    assert [line] == loop.withdraw("1", 5.0, revision=1)


def test_a_label_deleted_from_the_log_counts_until_it_is_withdrawn(learned):
    loop, parts, lines = learned
    again = made_again(parts, lines[1:])
    assert sorted(labels(again)) == sorted(labels(loop))
    assert again.withdraw("0", 5.0, revision=0) == loop.withdraw("0", 5.0, revision=0)
    assert again.snapshot() == loop.snapshot()


def test_a_label_taken_back_does_not_come_back_when_that_line_is_deleted(learned):
    loop, _, lines = learned
    loop.withdraw("1", 5.0)
    assert labels(made_again(loop.parts(), lines)) == [("0", "a"), ("2", "a")]


def test_a_line_deleted_after_its_event_was_forgotten_is_gone(learned):
    loop, _, lines = learned
    loop.on_time(101.0)
    assert labels(made_again(loop.changes(), lines[1:])) == [("1", "b"), ("2", "a")]


def test_lines_that_the_head_does_not_know_were_never_published_with_it(learned):
    loop, parts, lines = learned
    more = lines_of(loop.on_event(event("3", y="a"), 2.0))
    assert labels(made_again(parts, lines + more)) == [("0", "a"), ("1", "b"), ("2", "a")]


def test_lines_of_an_earlier_life_of_an_event_do_not_count_in_its_next():
    x = {"f": 1.0}
    rest = {"x": x, "origin": "asked", "learned_at": 0.0}
    log = [
        LabelledExample(event_id="e", sequence=3, revision=2, y="old", **rest),
        LabelledExample(event_id="f", sequence=4, y="a", **rest),
        LabelledExample(event_id="e", sequence=5, revision=1, y=None, **rest),
        LabelledExample(event_id="e", sequence=6, y="new", **rest),
    ]
    assert [(e.event_id, e.y) for e in examples_in(log)] == [("f", "a"), ("e", "new")]
    # Even if the line by which it was taken back was replaced.
    assert [(e.event_id, e.y) for e in examples_in(log[:2] + log[3:])] == [
        ("f", "a"),
        ("e", "new"),
    ]


# --- taking an example back from outside


def test_a_withdrawn_label_leaves_the_model_and_the_log(learned):
    loop, _, _ = learned
    [line] = loop.withdraw("0", 7.0)
    assert line == LabelledExample(
        event_id="0",
        revision=1,
        sequence=5,
        x={"f": 1.0},
        y=None,
        origin="withdrawn",
        learned_at=7.0,
    )
    assert labels(loop) == [("1", "b"), ("2", "a")]
    assert loop.withdraw("0", 8.0) == []


def test_whoever_gave_a_withdrawn_label_can_give_another(learned):
    loop, _, _ = learned
    loop.withdraw("0", 7.0)
    [line] = loop.on_answer(answer("c", name="0", answer_id="a9", supersedes="0"), 8.0)
    assert (line.y, line.revision, line.origin) == ("c", 2, "volunteered")


def test_a_line_that_was_replaced_takes_nothing_with_it(learned):
    loop, _, _ = learned
    assert loop.withdraw("1", 7.0, revision=0) == []
    assert loop.withdraw("1", 7.0, revision=7) == []
    assert [line.revision for line in loop.withdraw("1", 7.0, revision=1)] == [2]


@pytest.mark.parametrize("now", [7.0, 102.0])
def test_the_label_of_a_line_that_was_replaced_is_learned_as_the_log_without_it_says(learned, now):
    """Within the horizon or beyond it; the label of event 0 stands, but came last."""
    loop, _, lines = learned
    [correction] = loop.on_answer(answer("c", name="0", answer_id="a2", supersedes="0"), 2.0)
    loop.on_time(now)
    assert loop.withdraw("0", now, revision=0) == []
    assert labels(loop) == [("1", "b"), ("2", "a"), ("0", "c")]
    again = made_again(loop.parts(), [*lines[1:], correction])
    assert again.snapshot() == loop.snapshot()
    assert again.on_event(event("9"), now) == loop.on_event(event("9"), now)
    # What the deleted answer told about its annotator is gone as well.
    assert [example.answer for example in loop.model.examples()][-1] is None


@pytest.mark.parametrize(("given", "revision"), [(1, 2), (None, 1)])
def test_the_label_of_a_forgotten_event_can_be_withdrawn(learned, given, revision):
    loop, _, _ = learned
    loop.on_time(101.0)
    loop.changes()
    [line] = loop.withdraw("1", 102.0, revision=given, key="ann")
    assert (line.key, line.revision, line.y, line.x) == ("ann", revision, None, {"f": 1.0})
    assert labels(loop) == [("0", "a"), ("2", "a")]
    assert list(loop.changes()) == ["head"]
    assert loop.withdraw("1", 102.0, revision=given) == []


def test_an_open_question_stays_open_whatever_is_withdrawn():
    loop, _ = contested()
    before = loop.snapshot()
    assert loop.withdraw("e", 1.0) == loop.withdraw("f", 1.0) == []
    assert loop.n_open == 2
    assert loop.snapshot() == before


def test_a_question_about_an_event_id_used_again_stays_open_when_the_old_label_is_withdrawn():
    loop = InteractiveLoop(asking(), answer_horizon_s=10.0)
    loop.on_event(event("e", y="a"), 0.0)
    loop.on_event(event("e", 11.0), 11.0)
    [line] = loop.withdraw("e", 12.0)
    assert (line.revision, line.y) == (1, None)
    [line] = loop.on_answer(answer("b", at=13.0), 13.0)
    assert (line.revision, line.y) == (0, "b")


def test_nothing_unknown_can_be_withdrawn(learned):
    loop, _, _ = learned
    assert loop.withdraw("unknown", 7.0) == []
    assert loop.withdraw("unknown", 7.0, revision=3) == []
    # The head is returned once more: an older snapshot may still hold the example.
    assert list(loop.changes()) == ["head"]


def test_a_model_that_keeps_its_examples_to_itself_cannot_be_asked_for_one():
    class Silent(ScriptedLearner):
        examples = None

    loop = InteractiveLoop(Silent())
    with pytest.raises(TypeError, match="Silent does not tell which examples it holds; give it th"):
        loop.withdraw("e", 0.0)
    with pytest.raises(ValueError, match="now must be a finite number of seconds, got nan"):
        loop.withdraw("e", float("nan"))


# --- parts that cannot be published or restored


def test_a_model_that_cannot_be_saved_cannot_be_published():
    loop = InteractiveLoop(ScriptedLearner())
    loop.on_event(event(), 0.0)
    for call in (loop.changes, loop.parts):
        with pytest.raises(TypeError, match="ScriptedLearner cannot be saved; give it the methods"):
            call()
    with pytest.raises(TypeError, match="ScriptedLearner cannot be saved; give it the methods"):
        InteractiveLoop.from_parts({}, [], ScriptedLearner())


def test_changes_that_cannot_be_told_are_told_later():
    loop = InteractiveLoop(asking())
    loop.on_event(Event(event_id="e", x={("a", 1): 1.0}, occurred_at=0.0), now=0.0)
    with pytest.raises(ValueError, match="named by a string or a number can be saved"):
        loop.changes()
    assert loop.has_changed


def longer(parts):
    """Return parts with a conversation of a later streamgp, of which not all is known here."""
    first, *others = parts["events/1"]
    return {
        **parts,
        "events/1": [
            [*first, *[None, False, 0.0, None, None, None, None, 1][len(first) - 13 :]],
            *others,
        ],
    }


def altered(parts, **head):
    return {**parts, "head": {**parts["head"], **head}}


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        (lambda _: {}, "there is no part 'head'"),
        (lambda p: {"events/1": p["events/1"]}, "there is no part 'head'"),
        (lambda p: altered(p, fingerprint="0123"), r"of another configuration \(0123, this one is"),
        (lambda p: {**p, "events/01": [[]]}, "part 'events/01' is unknown, expected 'head' or 'ev"),
        (lambda p: {**p, "tail": [[]]}, "part 'tail' is unknown, expected 'head' or 'events/<numb"),
        (lambda p: {"head": p["head"]}, "there are 0 conversations, expected 3"),
        (
            lambda p: {**altered(p, remembered=6, pages=2), "events/2": p["events/1"]},
            "event '0' is there twice, or was never counted",
        ),
        (lambda p: altered(p, events=1), "event '1' is there twice, or was never counted"),
        (lambda p: altered(p, pages=0), "segment 1 was never published, expected 1 to 0"),
        (lambda p: altered(p, model={}), "'seed'"),
        (lambda p: altered(p, sequence=None), "not supported between"),
        (lambda p: {**p, "events/1": [[1, 2, 3]]}, "Expected `array` of at least length 13, got 3"),
        (longer, "cannot be read: Expected `array` of at most length 20, got 21"),
        (lambda p: {**p, "events/1": 5}, "'int' object is not iterable"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(learned, parts, match):
    _, published, lines = learned
    with pytest.raises(SnapshotError, match=match) as refused:
        made_again(parts(published), lines)
    assert str(refused.value).startswith("published state cannot be taken up: ")


def test_parts_with_anything_wrong_in_them_are_refused_in_words_or_do_no_harm():
    rng = random.Random(1)
    published = StateChangelog(MODELS["default"], 7)
    for _ in range(60):
        published.step()
    data = msgspec.json.encode(published.loop.parts())
    refused = []
    for _ in range(500):
        parts = msgspec.json.decode(data)
        place, key = rng.choice(list(places(parts)))
        place[key] = rng.choice([None, -1, 1, 1e308, "x", [], {}, True, [[]], {"float": "x"}])
        try:
            InteractiveLoop.from_parts(parts, published.topics.lines, isgp(seed=3), **SPANS)
        except SnapshotError as error:
            refused.append(str(error))
    assert len(refused) > 200
    assert all(len(text) < 400 for text in refused)


def places(value):
    """Every container in plain values, with every key in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


def test_a_request_that_lost_its_place_in_the_order_is_refused(loop):
    parts = loop.parts()
    with pytest.raises(SnapshotError, match="deadline 1 of 'e' was never set, expected 1 to 0"):
        made_again(altered(parts, alarms=0), [])
    parts["events/1"][0][11][2] = None
    with pytest.raises(SnapshotError, match="request 'e/label' has no deadline"):
        made_again(parts, [])


def test_a_learned_event_without_a_label_is_refused(learned):
    _, parts, lines = learned
    parts["events/1"][0][12] = None
    with pytest.raises(SnapshotError, match="event '0' was learned without a label"):
        made_again(parts, lines)


def test_a_page_without_features_is_refused(learned):
    _, parts, lines = learned
    parts["events/1"][0][4] = None
    with pytest.raises(SnapshotError, match="event '0' has neither features nor a labelled examp"):
        made_again(parts, lines)


def test_a_model_that_has_seen_something_cannot_take_parts_up(learned):
    _, parts, lines = learned
    model = asking()
    model.observe_one({"f": 1.0})
    with pytest.raises(SnapshotError, match="only a learner that has seen nothing"):
        InteractiveLoop.from_parts(parts, lines, model)


def test_parts_that_are_gone_are_passed_over(learned):
    loop, parts, lines = learned
    assert made_again({**parts, "events/7": None}, lines).snapshot() == loop.snapshot()


@pytest.mark.parametrize("excerpt", [None, {"a": [1.0, 2.0]}])
@pytest.mark.parametrize("key", [None, "ann"])
def test_a_conversation_without_a_question_is_written_as_any_other(key, excerpt):
    record = Conversation(
        Event(event_id="e", key=key, x={"u": 1.0}, occurred_at=2, excerpt=excerpt)
    )
    record.serial = 7
    fields = [*serialize._fields_of_record(record)]
    assert serialize.plain_record(record, None) == serialize._shortened(
        fields, serialize._PlainConversation
    )
