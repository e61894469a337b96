"""What annotators try with the answers of others, through brokers: refused, and kept."""

import time
from contextlib import closing
from dataclasses import replace

import pytest

from connectors.memory import MemoryTopics
from connectors.topics import Outgoing
from connectors.wire.codec import encode
from connectors.wire.signatures import Signatures
from connectors.wire.state_records import History
from connectors.worker.settings import LoopSettings, WorkerSettings
from connectors.worker.worker import Worker
from streamgp import GPClassifier, SkepticalClassifier
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    LabelledExample,
    LabelRequest,
)
from streamgp.interactive.people import People
from streamgp.query import AlwaysAsk, NeverChallenge
from tests.connectors.test_topics_contract import FACTORIES
from tests.helpers.topics import everything, said
from tests.helpers.workbench import GROUP, idle
from tests.interactive.scripted import JudgingLearner, SavedLearner
from tests.interactive.test_quarantine import log_of, told

PEOPLE = People(supervisors=frozenset(["eve"]))


BY_NIGHT = pytest.param("kafka", marks=pytest.mark.nightly)
everywhere = pytest.mark.parametrize("topics", ["memory", "embedded", "kafka"], indirect=True)


@pytest.fixture(params=["memory", "embedded", BY_NIGHT])
def topics(request):
    made = FACTORIES[request.param](request)
    made.create()
    with closing(made):
        yield made


def event(name):
    return Event(event_id=name, key="k", x={"f": 1.0}, occurred_at=0.0)


def answer(name, y, by, *, request=None, supersedes=None, answer_id=None):
    return Answer(
        answer_id=answer_id or f"{by}/{name}/{y}",
        event_id=name,
        key="k",
        request_id=request and f"{name}/{request}",
        y=y,
        declined=y is None,
        annotator=by,
        answered_at=1.0,
        supersedes=supersedes,
    )


def send(topics, topic, *messages, headers=()):
    with closing(topics.writer("test")) as writer:
        for message in messages:
            writer.send(Outgoing(topic=topic, key=b"k", value=encode(message), headers=headers))


def work(topics, people=PEOPLE, signatures=None, learner=None, **options):
    """Let a worker do all pending work; its learner contests the labels of events named c..."""
    if learner is None:
        learner = SavedLearner(proba={"b": 0.6, "a": 0.4}, contests=lambda name: name[0] == "c")
    loops = LoopSettings(model=learner, people=people, signatures=signatures, **options)
    settings = WorkerSettings(group=GROUP, instance="w", leave=True)
    Worker(topics, loops, settings, state=None, clock=lambda: 2.0).run(idle(topics))


@everywhere
def test_answers_in_quarantine_become_dead_letters_and_are_reported(topics, caplog):
    people = People()
    learner = JudgingLearner(proba={"b": 0.6, "a": 0.4})
    send(topics, "events", event("e1"))
    work(topics, people, learner=learner)
    refused = answer("e1", "a", "eve", request="label")
    send(topics, "answers", refused, answer("e1", "b", "ann", request="label"))
    work(topics, people, learner=learner)
    [(value, stage, error)] = letters(topics)
    assert (value, stage) == (encode(refused), "quarantine")
    assert error.startswith("annotator 'eve' is in quarantine")
    assert [line.annotator for line in said(topics, "consensus")] == ["ann"]
    asked = [(r.request_id, r.excluded) for r in said(topics, "requests")]
    assert asked == [("e1/label", ()), ("e1/label", ("eve",))]
    [line] = [record for record in caplog.records if record.message == "quarantined"]
    assert line.fields["topic"].endswith("answers")  # with the prefix of the test, on Kafka


def test_many_answers_in_quarantine_do_not_count_as_failed_records(topics, caplog):
    people = People()
    learner = JudgingLearner(proba={"b": 0.6, "a": 0.4})
    send(topics, "events", event("e1"))
    send(topics, "answers", *[answer("e1", "a", "eve", answer_id=f"a{n}") for n in range(8)])
    work(topics, people, learner=learner)
    found = [record.fields for record in caplog.records if record.message == "quarantined"]
    assert [fields.get("more") for fields in found] == [None] * 5 + [3]
    assert not [record for record in caplog.records if record.message == "record-failed"]


def test_what_a_liar_has_taught_leaves_the_topics_and_a_restart_changes_nothing(topics):
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), NeverChallenge(), seed=1)
    step, loop, log = 30, InteractiveLoop(model.clone()), []
    for first in range(0, 90, step):
        lied = [told(n) for n in range(first, first + step)]
        events = [replace(given, key="k") for given, _, _ in lied]
        answers = [
            replace(answer(given.event_id, y, by), answered_at=given.occurred_at)
            for given, by, y in lied
        ]
        messages = [m for e in events for m in loop.on_event(e, e.occurred_at)]
        messages += [m for a in answers for m in loop.on_answer(a, a.answered_at)]
        log = log_of(messages, log)
        for topic, said_now in (("events", events), ("answers", answers)):
            send(topics, topic, *said_now)
            work(topics, People(), learner=model)  # each worker begins with the topics
    assert loop.quarantined == ["eve"]
    history = History()
    for record in everything(topics, "state", "consensus"):
        history.take(record)
    assert [line for line in history.lines("k") if line.y is not None] == [
        line for line in log if line.y is not None
    ]
    [retraction] = history.retractions("k")
    assert {line.annotator for line in retraction.taken} == {"eve"}
    assert history.parts("k")["head"]["model"] == loop.parts()["head"]["model"]


@pytest.mark.parametrize("topics", ["memory", "embedded"], indirect=True)
def test_who_floods_a_learner_with_lies_is_named_and_a_restart_changes_nothing(topics):
    model = SkepticalClassifier(GPClassifier(), seed=1)
    loop, replies = InteractiveLoop(model.clone()), []
    for first in range(0, 60, 10):
        names = ("ann", "bob") if first == 0 else ("eve",)
        lied = [told(n, names=names) for n in range(first, first + 10)]
        events = [replace(given, key="k") for given, _, _ in lied]
        answers = [answer(given.event_id, y, by) for given, by, y in lied]
        messages = [m for e in events for m in loop.on_event(e, e.occurred_at)]
        for given in (replies, answers):
            messages += [m for a in given for m in loop.on_answer(a, 2.0)]
        for topic, said_now in (("events", events), ("answers", [*replies, *answers])):
            send(topics, topic, *said_now)
            work(topics, People(), learner=model)  # each worker begins with the topics
        if loop.quarantined:
            break
        replies = [reply(m) for m in messages if isinstance(m, Challenge) or is_second(m)]
    assert loop.quarantined == ["eve"]
    history = History()
    for record in everything(topics, "state", "consensus"):
        history.take(record)
    assert {e.annotator for e in history.lines("k") if e.y is not None} == {"ann", "bob"}
    assert history.parts("k")["head"]["model"] == loop.parts()["head"]["model"]
    assert history.parts("k")["head"]["quarantine"]["names"] == ["eve"]


def is_second(message):
    return isinstance(message, LabelRequest) and message.is_second


def reply(request):
    """Insist on a challenged label, or answer a second question."""
    question = request.request_id.removeprefix(f"{request.event_id}/")
    if isinstance(request, Challenge):
        return answer(request.event_id, request.given, request.annotator, request=question)
    n = int(request.event_id.removeprefix("e"))
    by = [name for name in ("ann", "bob") if name not in request.excluded][n % 2 :][:1]
    _, by, y = told(n, names=by or ("ann",))
    return answer(request.event_id, y, by, request=question)


def letters(topics):
    """Return what became a dead letter: the value, the stage, and how the error begins."""
    found = []
    for record in everything(topics, "dead-letters"):
        headers = dict(record.headers)
        found.append((record.value, headers["dlq.stage"].decode(), headers["dlq.error"].decode()))
    return found


FIRST = [
    answer("e1", "a", "ann", request="label"),
    answer("c1", "a", "ann", request="label"),
]
ATTACKS = [
    answer("e1", "b", "bob", supersedes="ann/e1/a"),
    answer("e1", None, "bob", supersedes="ann/e1/a"),
    answer("c1", "a", "bob", request="challenge/1"),
    answer("c1", "b", "bob", request="challenge/1", answer_id="changes"),
    answer("c1", None, "bob", request="challenge/1"),
    answer("c1", "b", None, request="challenge/1", answer_id="in no name"),
]


@everywhere
def test_no_attack_on_the_answers_of_another_annotator_succeeds_and_nothing_is_lost(topics):
    send(topics, "events", *map(event, ("e1", "c1", "e2")))
    work(topics)
    stolen = answer("e2", None, "bob", request="label", answer_id="ann/e2/a")
    own = answer("e2", "a", "ann", answer_id="ann/e2/a")
    send(topics, "answers", *FIRST, *ATTACKS, stolen, own)
    work(topics)  # a worker that was restarted in between: what it knows comes from the topics
    last = [
        answer("c1", "a", "ann", request="challenge/1", answer_id="last"),
        answer("e1", "c", "eve", supersedes="ann/e1/a"),
    ]
    send(topics, "answers", ATTACKS[2], ATTACKS[0], *last)
    work(topics)
    lines = [m for m in said(topics, "consensus") if isinstance(m, LabelledExample)]
    assert [(line.event_id, line.y, line.origin, line.annotator) for line in lines] == [
        ("e1", "a", "asked", "ann"),
        ("e2", "a", "volunteered", "ann"),
        ("c1", "a", "upheld", "ann"),
        ("e1", "c", "revised", "eve"),
    ]
    refused = [*ATTACKS, ATTACKS[2], ATTACKS[0]]
    assert [value for value, *_ in letters(topics)] == [encode(each) for each in refused]
    for each, (_, stage, error) in zip(refused, letters(topics), strict=True):
        assert stage == "correlate"
        assert error.startswith(f"the answer that stands for event '{each.event_id}' is that of")


@everywhere
def test_with_keys_only_what_is_signed_by_its_annotator_is_heard_and_the_rest_is_kept(topics):
    keys = {"ann": [b"a" * 32], "bob": [b"b" * 32]}
    signatures = Signatures(keys.get)
    send(topics, "events", event("e1"), event("e2"))
    work(topics, signatures=signatures)
    first = FIRST[0]
    forged = signatures.header(replace(first, annotator="bob"))
    cancel = Cancel(request_id="e2/label", key="k", why="enough", at=1.0)
    send(topics, "answers", first)
    send(topics, "answers", first, headers=[forged])
    send(topics, "answers", cancel)
    send(topics, "answers", first, headers=[signatures.header(first)])
    work(topics, signatures=signatures)
    lines = [(line.event_id, line.y, line.annotator) for line in said(topics, "consensus")]
    assert lines == [("e1", "a", "ann")]
    assert [(value, stage) for value, stage, _ in letters(topics)] == [
        (encode(first), "correlate"),
        (encode(first), "correlate"),
        (encode(cancel), "correlate"),
    ]
    assert [error.partition(",")[2] for *_, error in letters(topics)] == [
        " and has no header signature; sign it with the key of 'ann'",
        " and this signature is not that of 'ann'; sign it with their key",
        " and there is no key of a supervisor",
    ]
    [unsigned, wrong, _] = everything(topics, "dead-letters")
    assert dict(wrong.headers)["signature"] == forged[1]
    assert "signature" not in dict(unsigned.headers)


def test_what_is_beyond_a_limit_is_a_dead_letter(topics):
    people = People(max_features=1, max_corrections=1, max_early_answers=1)
    many = replace(event("e2"), x={"f": 1.0, "g": 1.0})
    send(topics, "events", event("e1"), many)
    work(topics, people)
    corrections = [
        answer("e1", "b", "ann", supersedes="ann/e1/a"),
        answer("e1", "c", "ann", supersedes="ann/e1/b"),
    ]
    early = [answer("later", "a", "ann", answer_id=f"early{n}") for n in range(2)]
    send(topics, "answers", FIRST[0], *corrections, *early)
    work(topics, people)
    assert [line.y for line in said(topics, "consensus")] == ["a", "b"]
    refused = [
        (many, "names of features"), (corrections[1], "corrections"), (early[0], "ever seen")
    ]  # fmt: skip
    found = letters(topics)
    assert [value for value, *_ in found] == [encode(each) for each, _ in refused]
    for (_, stage, error), (_, words) in zip(found, refused, strict=True):
        assert stage == "correlate"
        assert words in error


def test_one_label_and_one_annotator_too_many_are_dead_letters(topics):
    people = People(max_labels=2, max_annotators=4, quarantine=False)
    learner = JudgingLearner(proba={"b": 0.6, "a": 0.4})  # of two labels, and four annotators
    send(topics, "events", *map(event, ("e1", "e2", "e3")))
    send(topics, "answers", answer("e1", "a", "ann"), answer("e2", "b", "bob"))
    work(topics, people, learner=learner)
    refused = [answer("e3", "c", "ann"), answer("e3", "a", "dan")]
    send(topics, "answers", *refused, answer("e3", "b", "eve"))
    work(topics, people, learner=learner)
    assert [(line.y, line.annotator) for line in said(topics, "consensus")] == [
        ("a", "ann"),
        ("b", "bob"),
        ("b", "eve"),
    ]
    found = letters(topics)
    assert [(value, stage) for value, stage, _ in found] == [
        (encode(each), "correlate") for each in refused
    ]
    assert [error.partition(",")[0] for *_, error in found] == [
        "this would be 3 different labels",
        "this would be 5 annotators",
    ]


def test_a_flood_of_labels_that_were_not_asked_for_is_refused_beyond_the_limit(topics):
    people = People(max_unasked_per_hour=3)
    learner = SavedLearner(asks=False)
    send(topics, "events", *(event(f"e{n}") for n in range(6)))
    flood = [answer(f"e{n}", "a", "eve") for n in range(5)]
    other = answer("e5", "b", "ann")
    send(topics, "answers", *flood[:2])
    work(topics, people, learner=learner)
    send(topics, "answers", *flood[2:], other)
    work(topics, people, learner=learner)  # it counts on where the first worker has ended
    learned = [(line.event_id, line.annotator) for line in said(topics, "consensus")]
    assert learned == [("e0", "eve"), ("e1", "eve"), ("e2", "eve"), ("e5", "ann")]
    found = letters(topics)
    assert [(value, stage) for value, stage, _ in found] == [
        (encode(each), "correlate") for each in flood[3:]
    ]
    assert all("labels within an hour that were not asked for" in error for *_, error in found)


def test_an_answer_that_is_dated_ahead_makes_no_event_forgotten(topics):
    at = time.time()
    send(topics, "events", replace(event("e1"), occurred_at=at))
    work(topics, answer_horizon_s=3600.0)
    ahead = replace(answer("e1", None, "bob", request="label"), answered_at=at + 86_400.0)
    send(topics, "answers", ahead, replace(FIRST[0], request_id=None, answered_at=at))
    work(topics, answer_horizon_s=3600.0)
    assert [(line.y, line.annotator) for line in said(topics, "consensus")] == [("a", "ann")]


def test_answers_that_are_refused_end_no_worker():
    topics = MemoryTopics(1)
    send(topics, "events", event("e1"))
    work(topics)
    attacks = [
        answer("e1", "b", "bob", supersedes="ann/e1/a", answer_id=str(n)) for n in range(1100)
    ]
    send(topics, "answers", FIRST[0], *attacks)
    work(topics)
    assert len(letters(topics)) == 1100


def test_without_owners_an_answer_may_supersede_that_of_another_as_before():
    topics = MemoryTopics(1)
    send(topics, "events", event("e1"))
    work(topics)
    send(topics, "answers", FIRST[0], ATTACKS[0])
    work(topics, People(owners=False))
    assert [line.y for line in said(topics, "consensus")] == ["a", "b"]
    assert letters(topics) == []


def test_second_questions_go_through_the_topics_and_survive_restarts(topics):
    model = SkepticalClassifier(GPClassifier(), AlwaysAsk(), challenge=NeverChallenge(), seed=1)
    people = People(overlap=1.0)
    loop, expected = InteractiveLoop(model.clone(), people=people), []
    steps = [
        ("events", event("e1")),
        ("answers", answer("e1", "a", "ann", request="label")),
        ("answers", answer("e1", "b", "ann", request="label/second")),
        ("answers", answer("e1", "b", "bob", request="label/second")),
        ("answers", answer("e1", "a", "bob", supersedes="bob/e1/b")),
        ("answers", answer("e1", None, "bob", supersedes="bob/e1/a")),
    ]
    for topic, message in steps:
        method = loop.on_event if topic == "events" else loop.on_answer
        expected += method(message, 1.0 if topic == "answers" else 0.0)
        send(topics, topic, message)
        work(topics, people, learner=model)  # each worker begins with the topics
    lines = [m for m in expected if isinstance(m, LabelledExample)]
    assert [line.origin for line in lines] == ["asked", *["aggregated"] * 3]
    assert said(topics, "consensus") == lines
    requests = [m for m in expected if isinstance(m, LabelRequest)]
    assert said(topics, "requests") == [replace(request, excerpt=None) for request in requests]
    assert [stage for _, stage, _ in letters(topics)] == ["correlate"]
