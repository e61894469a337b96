"""What is counted while watching: the same whatever is read first, and as a tally counts it."""

from __future__ import annotations

import random
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.topics import Outgoing, Record, TopicName
from connectors.wire.inbound import MAX_NAME
from connectors.wire.outbound import Outbound
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.apps.watch import statistics
from streamgp.apps.watch.statistics import N_LAST, N_LETTERS, Flow, Joined, Watching
from streamgp.datasets import WiFiRooms
from streamgp.interactive import AnswerQueue, InteractiveLoop, RunStatistics, SimulatedAnnotator
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Rejected,
)
from streamgp.query import AlwaysAsk
from tests.helpers import messages as made

OUTBOX = Outbound("/streamgp/test", keyed=True)
NOW = 1_000.0
prediction = partial(made.prediction, key="ann", at=NOW)
challenge = partial(made.challenge, key="ann", at=NOW)
request = partial(made.label_request, key="ann", at=NOW)


def event(name: str, truth: str | None = None, **more: Any) -> Event:
    fields = {"key": "ann", "x": {"light": 0.5}, "occurred_at": NOW, **more}
    return Event(event_id=name, truth=truth, **fields)


def line(name: str, y: str | None, origin: Any, w: float | None = None, **more: Any) -> Any:
    return LabelledExample(
        event_id=name, key="ann", sequence=1, x={}, y=y, origin=origin, learned_at=NOW,
        probability_wrong=w, **more,
    )  # fmt: skip


def record(out: Outgoing, offset: int = 0, at: float = NOW) -> Record:
    return Record(
        topic=out.topic, partition=out.partition or 0, offset=offset, key=out.key, value=out.value,
        headers=out.headers, at=at,
    )  # fmt: skip


def watched(*messages: Input | Message, since: float = 0.0, **options: Any) -> Watching:
    watching = Watching(since=since, **options)
    for message in messages:
        watching.take(record(OUTBOX.message(message, 0)))
    return watching


def counts(watching: Watching) -> dict[str, Any]:
    names = (
        "n_predictions n_asked n_scored n_hits challenges n_repaired n_spoiled n_contested "
        "n_justified labels n_judged n_wrong letters unreadable"
    )
    return {name: getattr(watching, name) for name in names.split()}


# --- counts


def test_windows_over_raw_rows_have_the_truth_of_most_of_their_rows() -> None:
    rows = [event(f"r{i}", "den" if i % 5 else "odd", occurred_at=NOW + i) for i in range(21)]
    windows = EventWindows(label="truth", length_s=10.0, features=["mean"])
    predictions = [prediction("ann@1000", "den"), prediction("ann@1010", "hall")]
    watching = watched(*rows, *predictions, windows=windows)
    assert (watching.n_scored, watching.n_hits) == (2, 1)


def test_an_old_label_that_was_challenged_and_said_again_is_not_corrected() -> None:
    watching = watched(
        line("e1", "hall", "asked", 0.1),
        line("e1", "hall", "upheld", revision=1),
        line("e2", "hall", "asked", 0.1),
        line("e2", "den", "revised", revision=1),
    )
    assert watching.labels == {"learned": 2, "corrected": 1}
    assert watching.challenges == {"upheld": 1}


def test_an_old_label_that_was_challenged_and_changed_is_revised() -> None:
    """Topics are read in any order, the lines of one in theirs."""
    lines = [line("e1", "hall", "asked", 0.1), line("e1", "den", "revised", revision=1)]
    given = [challenge("e1")]
    corrected = [line("e2", "hall", "revised", 1.0), line("e2", "den", "revised", revision=1)]
    expired = [
        challenge("e3"),
        Expired(request_id="e3/challenge/1", event_id="e3", key="ann", at=NOW),
    ]
    kept = [line("e3", "hall", "asked", 0.1), line("e3", "den", "revised", revision=1)]
    first = [*lines, *corrected, *kept]
    second = [*given, challenge("e2"), *expired]
    for order in ([*first, *second], [*second, *first]):
        watching = watched(*order)
        assert +watching.labels == {"learned": 3, "corrected": 2}
        assert +watching.challenges == {"made": 3, "revised": 2, "expired": 1}


@pytest.mark.parametrize("first", ["event", "prediction"])
def test_prediction_is_scored_once_whichever_is_read_first(first: str) -> None:
    pair: list[Any] = [event("e1", "hall"), prediction("e1", "hall")]
    watching = watched(*(pair if first == "event" else pair[::-1]), *pair)
    assert (watching.n_scored, watching.n_hits, watching.accuracy) == (1, 1, 1.0)


def test_nothing_is_scored_without_truth_or_without_a_guess() -> None:
    watching = watched(
        event("e1"), prediction("e1", "hall"), event("e2", "hall"), prediction("e2", None)
    )
    assert (watching.n_predictions, watching.n_scored) == (2, 0)
    assert watching.accuracy is watching.recent_accuracy is None


def test_recent_accuracy_is_that_of_the_last_ones() -> None:
    early = [m for n in range(100) for m in (event(f"e{n}", "hall"), prediction(f"e{n}", "den"))]
    late = [m for n in range(N_LAST) for m in (event(f"f{n}", "hall"), prediction(f"f{n}", "hall"))]
    watching = watched(*early, *late)
    assert (watching.accuracy, watching.recent_accuracy) == (N_LAST / (N_LAST + 100), 1.0)


def test_challenge_comes_to_one_end() -> None:
    watching = watched(
        *(challenge(f"e{n}") for n in range(5)),
        line("e0", "hall", "revised", 1.0),
        line("e1", "den", "upheld", 0.0),
        Expired(request_id="e2/challenge/1", event_id="e2", key="ann", at=NOW),
        line("e2", "den", "asked", 0.4),
        Cancel(request_id="e3/challenge/1", key="ann", why="late", at=NOW),
        line("e3", "den", "asked", 0.4),
        Answer(
            answer_id="a", request_id="e4/challenge/1", event_id="e4", key="ann", declined=True,
            answered_at=NOW,
        ),
        line("e4", "den", "asked", 0.4),
    )  # fmt: skip
    assert watching.challenges == {
        "made": 5, "revised": 1, "upheld": 1, "expired": 1, "cancelled": 1, "declined": 1,
    }  # fmt: skip
    assert watching.labels == {"learned": 5}


def test_label_requests_that_end_are_no_challenges() -> None:
    watching = watched(
        request("e1"),
        Expired(request_id="e1/label", event_id="e1", key="ann", at=NOW),
        Answer(
            answer_id="a", request_id="e2/label", event_id="e2", key="ann", declined=True,
            answered_at=NOW,
        ),
        Answer(answer_id="b", event_id="e2", key="ann", declined=True, answered_at=NOW),
        Expired(request_id="2/challenge/label", event_id="2/challenge", key="ann", at=NOW),
    )  # fmt: skip
    assert (watching.n_asked, watching.challenges) == (1, {})


def test_corrections_and_withdrawals_change_what_is_wrong() -> None:
    watching = watched(event("e1", "hall"), line("e1", "den", "asked", 0.2))
    assert (watching.n_judged, watching.n_wrong) == (1, 1)
    watching.take(record(OUTBOX.message(line("e1", "hall", "revised", revision=1), 0)))
    assert (watching.n_judged, watching.n_wrong) == (1, 0)
    watching.take(record(OUTBOX.message(line("e1", None, "withdrawn", revision=2), 0)))
    assert (watching.n_judged, watching.n_wrong) == (0, 0)
    assert watching.labels == {"learned": 1, "corrected": 1, "withdrawn": 1}


def test_wish_to_cancel_counts_once_the_loop_has_heeded_it() -> None:
    wish = Cancel(request_id="e1/challenge/1", key="ann", why="late", at=NOW)
    watching = Watching(since=0.0)
    out = OUTBOX.message(wish, 0)
    watching.take(
        Record(topic="answers", partition=0, offset=0, key=out.key, value=out.value, at=NOW)
    )
    assert watching.challenges == {}
    watching.take(record(out))
    assert watching.challenges == {"cancelled": 1}


def test_label_rate_is_questions_for_each_prediction() -> None:
    assert Watching(since=0.0).label_rate is None
    watching = watched(*(prediction(f"e{n}", None) for n in range(4)), request("e1"))
    assert watching.label_rate == 0.25


# --- a whole run, read in any order


@lru_cache(maxsize=1)
def a_run() -> tuple[dict[TopicName, list[Outgoing]], RunStatistics]:
    """Return what a run with an annotator who errs leaves in the topics, and its counts."""
    topics: dict[TopicName, list[Outgoing]] = {}
    statistics = RunStatistics()
    model = SkepticalClassifier(
        GPClassifier(noise_variance=0.5), query=AlwaysAsk(), warm_up=20, seed=1
    )
    loop = InteractiveLoop(model, expires_after_s=30.0)
    annotator = SimulatedAnnotator(error_rate=0.3, delay=5.0, decline_rate=0.1, seed=1)
    queue = AnswerQueue(annotator)

    def put(message: Input | Message) -> None:
        out = OUTBOX.message(message, 0)
        topics.setdefault(out.topic, []).append(out)

    def say(messages: list[Message], now: float) -> None:
        for message in messages:
            put(message)
            statistics.message(message)
            if isinstance(message, LabelRequest | Challenge):
                queue.ask(message, now)

    # The rooms were walked through one after the other.
    for n, (x, room) in enumerate(islice(WiFiRooms(), 0, None, 5)):
        now = float(n)
        for answer in queue.due(now):
            put(answer)
            statistics.answer(answer)
            say(loop.on_answer(answer, answer.answered_at), answer.answered_at)
        happened = Event(event_id=f"e{n}", key="ann", x=x, occurred_at=now, truth=room)
        put(happened)
        statistics.event(happened)
        queue.see(happened)
        say([*loop.on_time(now), *loop.on_event(happened, now)], now)
    return topics, statistics


def test_counts_are_those_of_the_run() -> None:
    topics, statistics = a_run()
    watching = Watching(since=0.0)
    for outs in topics.values():
        for n, out in enumerate(outs):
            watching.take(record(out, n))
    assert statistics.n_challenges > 20
    assert statistics.n_repaired > 10
    assert watching.n_predictions == statistics.n_events
    assert (watching.n_scored, watching.accuracy) == (statistics.n_scored, statistics.accuracy)
    assert (watching.n_asked, watching.challenges["made"]) == (
        statistics.n_asked,
        statistics.n_challenges,
    )
    assert (watching.n_repaired, watching.n_spoiled) == (
        statistics.n_repaired,
        statistics.n_spoiled,
    )
    assert (watching.n_judged, watching.n_wrong) == (statistics.n_judged, statistics.n_wrong_kept)
    assert watching.labels["learned"] == statistics.n_learned


@pytest.mark.parametrize("seed", range(10))
def test_topics_may_be_read_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    topics, _ = a_run()
    in_turn, mixed = Watching(since=0.0), Watching(since=0.0)
    for outs in topics.values():
        for n, out in enumerate(outs):
            in_turn.take(record(out, n))
    left = {topic: iter(enumerate(outs)) for topic, outs in topics.items()}
    while left:
        topic = chance.choice(sorted(left))
        some = list(islice(left[topic], chance.randint(1, 60)))
        for n, out in some:
            mixed.take(record(out, n))
        if not some:
            del left[topic]
    assert counts(mixed) == counts(in_turn)
    assert mixed.inbox.n_open(NOW, None) == in_turn.inbox.n_open(NOW, None)


# --- bounds


def test_only_so_many_events_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "N_REMEMBERED", 10)
    watching = watched(*(event(f"e{n}", "hall") for n in range(30)))
    for n in range(30):
        watching.take(record(OUTBOX.message(prediction(f"e{n}", "hall"), 0)))
    assert watching.n_predictions == 30
    assert watching.n_scored <= 10


def test_what_was_counted_of_a_forgotten_event_stays_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "N_REMEMBERED", 3)
    watching = watched(event("e0", "hall"), prediction("e0", "hall"))
    for n in range(1, 20):
        watching.take(record(OUTBOX.message(event(f"e{n}", "hall"), 0)))
    assert (watching.n_scored, watching.n_hits) == (1, 1)


# --- what is open


def test_old_records_tell_what_is_open_and_count_nothing() -> None:
    watching = Watching(since=NOW)
    for message in (request("e1"), request("e2"), challenge("e3")):
        watching.take(record(OUTBOX.message(message, 0)), is_old=True)
    watching.take(record(OUTBOX.message(line("e2", "hall", "asked", 0.1), 0)), is_old=True)
    assert [q.request.event_id for q in watching.inbox.questions(NOW, None)] == ["e3", "e1"]
    assert counts(watching) == counts(Watching(since=NOW))


def test_questions_of_a_forgotten_person_are_not_open() -> None:
    watching = watched(request("e1"))
    gone = Outgoing(topic="consensus", partition=0, key=b"ann", value=None)
    watching.take(record(gone, at=NOW + 1.0))
    assert watching.inbox.n_open(NOW, None) == 0


# --- what cannot be read


def dead_letter(reason: str = "must be JSON", at: float = NOW, **more: Any) -> Record:
    cause = Record(topic="events", partition=0, offset=7, key=b"ann", value=b"secret", at=at)
    fields = {"subject": "events:0:7", "fault": "malformed", "reason": reason, "at": at, **more}
    return record(OUTBOX.dead_letter(Rejected(**fields), cause, 0))


def test_dead_letters_are_counted_by_stage_and_the_last_reasons_kept() -> None:
    watching = Watching(since=0.0)
    for n in range(N_LETTERS + 3):
        watching.take(dead_letter(f"reason {n}"))
    watching.take(dead_letter("too late", fault="late"))
    assert watching.letters == {"decode": N_LETTERS + 3, "correlate": 1}
    assert [letter.error for letter in watching.last_letters][-2:] == ["reason 7", "too late"]
    assert len(watching.last_letters) == N_LETTERS
    assert all(letter.cause is None for letter in watching.last_letters)


def test_records_that_no_worker_has_written_are_counted_as_such() -> None:
    watching = Watching(since=0.0)
    topics: tuple[TopicName, ...] = ("predictions", "requests", "consensus", "dead-letters")
    for topic in topics:
        watching.take(Record(topic=topic, partition=0, offset=0, key=b"ann", value=b"?", at=NOW))
    assert watching.unreadable == dict.fromkeys(topics, 1)


@given(st.sampled_from(["events", "answers", "consensus", "predictions"]), st.binary() | st.none())
def test_no_record_whatever_its_content_ends_watching(topic: TopicName, data: bytes | None) -> None:
    watching = Watching(since=0.0)
    for key in (b"ann", None, b"\xff", data, b"x" * (MAX_NAME + 1)):
        watching.take(Record(topic=topic, partition=0, offset=0, key=key, value=data, at=NOW))
    assert watching.n_predictions == 0


# --- the flow


def test_rate_is_that_of_the_last_ten_seconds() -> None:
    flow = Flow(since=0.0)
    for n in range(300):
        flow.note(100.0 + n / 10)  # ten a second, for thirty seconds
    assert flow.rate(130.0) == 10.0
    assert flow.rate(135.0) == 5.0
    assert flow.rate(200.0) == 0.0


def test_rate_before_ten_seconds_is_that_since_the_beginning() -> None:
    flow = Flow(since=100.0)
    for n in range(20):
        flow.note(100.0 + n / 10)
    assert flow.rate(104.0) == 5.0
    assert Flow(since=100.0).rate(100.0) == 0.0


def test_counts_that_are_too_old_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "SPAN_S", 10)
    flow = Flow(since=0.0)
    for second in range(1000):
        flow.note(float(second))
    assert len(flow._counts) <= 20
    assert flow.rate(1000.0) == 1.0


def test_bars_are_as_high_as_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "SPAN_S", 4)
    flow = Flow(since=0.0)
    for at in (1.5, 2.5, 2.5, 3.5, 3.5, 3.5, 3.5):
        flow.note(at)
    assert flow.bars(4.0, width=4) == " ▂▄█"
    assert Flow(since=0.0).bars(4.0, width=3) == "   "


def test_numbers_beside_the_truth_in_any_order() -> None:
    """The errors of predictions, and the labels that are off by more than the truths vary."""
    rng = random.Random(3)
    truths = {"e1": 10.0, "e2": 20.0, "e3": 30.0}
    for _ in range(20):
        joined = Joined(target="number")
        told = [("truth", name) for name in truths]  # in their order: the tolerance follows it
        for what in ("predicted", "given", "label"):
            for name in truths:
                told.insert(rng.randrange(len(told) + 1), (what, name))
        for what, name in told:
            event, truth = (None, name), truths[name]
            if what == "truth":
                joined.note_truth(event, truth)
            elif what == "predicted":
                joined.note_prediction(event, truth + 1.0)
            elif what == "given":
                joined.note_contested(event, truth + 50.0)
            else:
                joined.note_label(event, truth + (50.0 if name == "e3" else 0.5))
        assert (joined.errors.n, joined.errors.mae, joined.n_scored) == (3, 1.0, 3)
        assert joined.recent_accuracy == 1.0
        assert (joined.n_contested, joined.n_justified) == (3, 3)
        # While the truths do not differ, only the truth itself is right: e1 counts as wrong.
        assert (joined.n_judged, joined.n_wrong, joined.n_repaired) == (3, 2, 1)
