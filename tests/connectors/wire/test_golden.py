"""What version 1 wrote is read for ever, and is still written byte for byte.

The files in `tests/golden/v1` are never changed, as `tests/golden/README.md` says: a later version
gets a folder of its own, and reads this one, too.

"""

import json
from pathlib import Path

import pytest

from connectors.topics import Record
from connectors.wire.codec import TAGS, TYPES, decode, encode
from connectors.wire.inbound import TakenBack, read
from connectors.wire.outbound import Outbound, letter_of
from connectors.wire.state_records import History, state
from streamgp.base import Decision, Neighbour
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    LabelledExample,
    LabelRequest,
    Prediction,
    Rejected,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "v1"
NOW = 1_700_000_000.25

named = {"light": 0.5, "steps": -3, "at home": True, "room": "küche 🏠", "": 1e-300}
pairs = {"light": 0.5, 1: -3, 2.5: True, False: "a"}
request = {
    "request_id": "trip/7/label",
    "event_id": "trip/7",
    "key": "ann",
    "x": named,
    "reason": "SkepticalAsk",
    "score": 0.32,
    "threshold": 0.1,
    "requested_at": NOW,
    "expires_at": NOW + 3600.0,
}
doubt = {"given": 1.0, "suggested": True, "probability_wrong": 0.86, "annotator": "ann"}
near = (
    Neighbour(event_id="e0", x=pairs, y="home", distance=0.25),
    Neighbour(event_id=None, x=named, y=-7, distance=0.0),
)
deep = {"why": [1, {"b": [None, "c", 0.5]}], "n": 2**63 - 1, "empty": {}}
MESSAGES = [
    Event(event_id="e1", x={}, occurred_at=0.0),
    Event(event_id="trip/7", key="ann", x=named, occurred_at=NOW, y="home", truth=3),
    Event(event_id="e2", x=pairs, occurred_at=-1.5, y=1.0, truth=True),
    Event(event_id="e3", x={"a": -(2**63)}, occurred_at=1e11, y="1", truth=1),
    Prediction(
        event_id="e1",
        y=None,
        proba={},
        decision=Decision.of(1.0, 0.0, "AlwaysAsk"),
        n_learned=0,
        at=0.0,
    ),
    Prediction(
        event_id="trip/7",
        key="ann",
        y="home",
        proba={"home": 0.625, 1.5: 0.25, True: 0.125, 0: 0.0},
        decision=Decision.of(0.32, 0.1, "SkepticalAsk").refused_by("volunteered"),
        n_learned=12,
        at=NOW,
    ),
    LabelRequest(**request),
    LabelRequest(**{**request, "key": None, "x": pairs, "expires_at": None}),
    Challenge(**{**request, "request_id": "trip/7/challenge/1"}, **doubt, neighbours=near),
    Challenge(**{**request, "request_id": "trip/7/challenge/2"}, **{**doubt, "annotator": None}),
    Cancel(request_id="trip/7/label", key="ann", why="nobody is there", at=NOW),
    Answer(answer_id="a1", event_id="e2", y=1.0, answered_at=NOW),
    Answer(
        answer_id="a2",
        request_id="trip/7/label",
        event_id="trip/7",
        key="ann",
        y=False,
        annotator="ann",
        answered_at=NOW,
        privileged=deep,
        supersedes="a1",
    ),
    Answer(answer_id="a3", event_id="trip/7", declined=True, answered_at=NOW, supersedes="a2"),
    LabelledExample(event_id="e2", sequence=1, x=pairs, y=1.0, origin="asked", learned_at=NOW),
    LabelledExample(
        event_id="trip/7",
        key="ann",
        revision=1,
        sequence=13,
        x=named,
        y="work",
        origin="revised",
        annotator="ann",
        learned_at=NOW,
        late=True,
        probability_wrong=1.0,
        privileged=deep,
    ),
    LabelledExample(
        event_id="e2", revision=2, sequence=14, x={}, y=None, origin="withdrawn", learned_at=NOW
    ),
    Expired(request_id="trip/7/label", event_id="trip/7", key="ann", at=NOW),
    Rejected(subject="events:3:17", fault="malformed", reason="must be JSON", at=NOW),
    Rejected(subject="a1", key="ann", fault="unlearnable", reason='too "odd"', at=NOW),
]
# What came to version 1 with targets that are numbers; older readers pass over the new fields.
NUMBERS = [
    Event(event_id="e5", x={"light": 0.5}, occurred_at=NOW, truth=21.5),
    Prediction(
        event_id="e5",
        y=21.25,
        proba={},
        decision=Decision.of(1.0, 0.0, "AlwaysAsk"),
        n_learned=12,
        at=NOW,
        mean=21.25,
        std=0.5,
    ),
    Challenge(
        **{**request, "request_id": "trip/7/challenge/1", "reason": "OutsideInterval"},
        given=215.0,
        suggested=21.25,
        probability_wrong=0.9375,
        annotator="ann",
        std=0.5,
    ),
    Answer(answer_id="a5", event_id="e5", y=21.0, answered_at=NOW, annotator="ann", std=0.25),
    Answer(answer_id="a6", event_id="e5", y=21, answered_at=NOW),
    LabelledExample(
        event_id="e5",
        sequence=15,
        x={"light": 0.5},
        y=21.0,
        origin="revised",
        annotator="ann",
        learned_at=NOW,
        probability_wrong=1.0,
        std=0.25,
    ),
]

bad = Record(
    topic="answers",
    partition=3,
    offset=17,
    key=b"ann",
    value=b"hello",
    headers=[("trace", b"1f")],
    at=NOW,
)
LOOP_STATE = {"sequence": 13, "scaling": [0.5, None, True], "seed": 2**127}


def written():
    """Return every kind of record that is written."""
    keyed = Outbound("/streamgp/rooms", keyed=True)
    for_all = Outbound("/streamgp/annotate", keyed=False)
    rejected = Rejected(subject="a1", key="ann", fault="late", reason="too late", at=NOW)
    outs = [keyed.message(m, 3) for m in MESSAGES if m.key and not isinstance(m, Rejected)]
    outs += [
        for_all.message(m, None) for m in MESSAGES if not m.key and TAGS[type(m)] != "rejected"
    ]
    outs += [
        keyed.message(Event(event_id="e1", key="Zoë / 7 %", x={"a": 1}, occurred_at=NOW), 3),
        keyed.dead_letter(rejected, bad, 3),
        keyed.dead_letter(Rejected(**{**FIELDS, "fault": "unlearnable"}), None, 3),
        state("ann", "head", LOOP_STATE, 3),
        state("ann", "events/2", None, 3),
        state("", "configuration", {"fingerprint": "1f2e", "keyed": True}, 3),
    ]
    return outs


FIELDS = {"subject": "trip/7", "key": "ann", "reason": "no room", "at": NOW}


def told(out):
    """Return a record as a line of JSON; everything in it is UTF-8."""

    def text(data):
        return None if data is None else data.decode()

    plain = {
        "topic": out.topic,
        "partition": out.partition,
        "key": text(out.key),
        "value": text(out.value),
        "headers": [[name, text(value)] for name, value in out.headers],
    }
    return json.dumps(plain, ensure_ascii=False)


def lines(name):
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


PAIRS = list(
    zip([*lines("messages.jsonl"), *lines("numbers.jsonl")], [*MESSAGES, *NUMBERS], strict=True)
)


def test_every_type_of_message_is_among_them():
    assert {type(message) for message in MESSAGES} == set(TYPES.values())


@pytest.mark.parametrize(("line", "message"), PAIRS)
def test_a_message_of_version_1_is_read_as_it_was_meant(line, message):
    found = decode(line.encode())
    assert repr(found) == repr(message)


@pytest.mark.parametrize(("line", "message"), PAIRS)
def test_a_message_is_written_byte_for_byte_as_version_1_wrote_it(line, message):
    assert encode(message) == line.encode()


def test_records_are_written_byte_for_byte_as_version_1_wrote_them():
    assert [told(out) for out in written()] == lines("records.jsonl")


def lying(line):
    plain = json.loads(line)
    return Record(
        topic=plain["topic"],
        partition=3,
        offset=17,
        key=None if plain["key"] is None else plain["key"].encode(),
        value=None if plain["value"] is None else plain["value"].encode(),
        headers=[(name, value.encode()) for name, value in plain["headers"]],
        at=NOW,
    )


def test_state_and_labelled_examples_of_version_1_come_back():
    history = History()
    for record in map(lying, lines("records.jsonl")):
        if record.topic == "state" or (record.topic == "consensus" and record.key[:1] != b"\x1f"):
            history.take(record)
    assert history.configuration == {"fingerprint": "1f2e", "keyed": True}
    assert history.parts("ann") == {"head": LOOP_STATE, "events/2": None}
    assert history.lines("ann") == [
        m for m in MESSAGES if isinstance(m, LabelledExample) and m.key == "ann"
    ]


def test_dead_letters_of_version_1_tell_what_happened():
    letters = [letter_of(r) for r in map(lying, lines("records.jsonl")) if r.topic[0] == "d"]
    assert [
        (of.cause and (of.cause.topic, of.cause.offset), of.stage, of.at) for of in letters
    ] == [
        (("answers", 17), "correlate", NOW),
        (None, "learn", NOW),
    ]


def as_read(line):
    """Return a line of inputs.jsonl with what its record is read as; reasons may be reworded."""
    plain = json.loads(line)
    match read(lying(line), keyed=plain["keyed"]):
        case None:
            plain["read"] = None
        case TakenBack(key=key, event_id=event_id, revision=revision):
            plain["read"] = {"taken back": [key, event_id, revision]}
        case Rejected(subject=subject, fault=fault):
            plain["read"] = {"refused": subject, "fault": fault}
        case message:
            plain["read"] = encode(message).decode()
    return json.dumps(plain, ensure_ascii=False)


@pytest.mark.parametrize("line", lines("inputs.jsonl"))
def test_an_input_of_version_1_is_read_as_it_was(line):
    assert as_read(line) == line


def test_inputs_are_of_every_kind():
    found = [json.loads(line)["read"] for line in lines("inputs.jsonl")]
    tags = {json.loads(text)["type"] for text in found if isinstance(text, str)}
    assert tags == {"event", "answer", "label.cancel"}
    assert None in found
    assert {name for what in found if isinstance(what, dict) for name in what} == {
        "taken back",
        "refused",
        "fault",
    }
