"""What comes from outside may be anything: it is a message, or refused in a sentence."""

import json
import random
import tracemalloc
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import settings

from connectors.topics import Record
from connectors.wire.codec import MAX_INPUT_BYTES, DecodeError, decode, encode
from connectors.wire.inbound import TakenBack, read
from connectors.wire.outbound import Outbound, letter_of, resend
from streamgp import isgp
from streamgp.base import Decision, Neighbour
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

N = 250 * settings.default.max_examples
N_READ = 10_000  # of which few are usable
N_PLAYED = 3000  # inputs of a loop: enough for each kind of message, as its test verifies
LONGEST_REASON = 500

x = {"light": 0.5, "steps": -3, "at home": True, "room": "kitchen é"}
decision = Decision.of(0.3, 0.1, "SkepticalAsk")
request = {
    "request_id": "e1/label",
    "event_id": "e1",
    "key": "ann",
    "x": x,
    "reason": "unsure",
    "score": 0.3,
    "threshold": 0.1,
    "requested_at": 1.5,
    "expires_at": 2.5,
}
near = Neighbour(event_id="e0", x={"a": 1, 2: 0.5, 2.5: "b"}, y=1.0, distance=0.25)
privileged = {"why": [1, {"b": [None, "c"]}], "n": 2}
ORIGINALS = [
    Event(event_id="e1", key="ann", x=x, occurred_at=10.0, y="home", truth=3),
    Event(event_id="e2", x={1: 0.5, 2.5: True, "a": 1}, occurred_at=11, y=1.5),
    Event(event_id="e3", x={"light": 0.5}, occurred_at=12.0),
    Answer(answer_id="a1", request_id="e1/label", event_id="e1", key="ann", y=2, answered_at=1.0),
    Answer(answer_id="a2", event_id="e2", y=1.0, answered_at=12.0, privileged=privileged),
    Answer(answer_id="a3", event_id="e2", declined=True, answered_at=13.0, supersedes="e2"),
    Cancel(request_id="e1/label", key="ann", why="gone", at=3.0),
    Prediction(
        event_id="e1", y="a", proba={"a": 0.5, 1.0: 0.5}, decision=decision, n_learned=3, at=1.0
    ),
    LabelRequest(**request),
    Challenge(**request, given=1.0, suggested=True, probability_wrong=0.9, neighbours=(near,)),
    LabelledExample(
        event_id="e1", sequence=1, x=x, y=1, origin="asked", learned_at=2.0, privileged=privileged
    ),
    Expired(request_id="e1/label", event_id="e1", at=4.0),
    Rejected(subject="row 3", fault="malformed", reason="why", at=5.0),
]
DATA = [encode(message) for message in ORIGINALS]

# JSON as it may stand in place of any value
VALUES = [
    *("null", "true", "0", "-0.0", "1", '""', '"e1"', "{}", "[]", "[[]]", "[[1,2],[1,3]]"),
    *("1e308", "-1e308", "5e-324", "1e999", "-1e999", "NaN", "Infinity", "-Infinity"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400),
    *("1" * 5000, "0." + "1" * 5000, "1E+9999999999", "01", "+1", ".5", "0x10", "1_000"),
    *('"\\ud800"', '"\\udc00x"', '"\\u0000"', '"\\uFFFF"', '"\\x"', "'e1'", '"e1', "e1"),
    *('{"float":1}', '{"float":"1"}', '{"float":1e999}', '{"float":1,"float":2}', '{"double":1}'),
    *('[["a",1],["a",2]]', '[["a",1],[{"float":1},2]]', '[[["a"],1]]', '[["a"]]', '["a",1]'),
    *('{"":1}', '{"a":1,"a":2}', '{"a":{"b":1}}', '{"a":[1]}', '{"a":null}', "[null]"),
    *("[" * 20 + "]" * 20, "[" * 40 + "]" * 40, '{"a":' * 40 + "1" + "}" * 40, "[" * 1000),
    *('"' + "long " * 10_000 + '"', '{"' + "x" * 50_000 + '":null}', "[" + "1," * 9999 + "1]"),
    *('{"' + '":1,"'.join(map(str, range(3000))) + '":1}', "[" + '["a",1],' * 5000 + '["a",1]]'),
]
SNIPPETS = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\\",
    b'"',
    b"{",
    b"]",
    b",",
]


def corrupt_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at:]
            case 2:
                del data[at : at + rng.randint(1, 20)]
            case 3:
                data[at:at] = rng.choice(SNIPPETS)
            case 4:
                other = rng.choice(DATA)
                data[at:] = other[rng.randrange(len(other)) :]
    return bytes(data)


def corrupt_fields(rng, data):
    """Corrupt a message that stays almost JSON, at any depth."""
    message = json.loads(data)
    place = message
    while rng.random() < 0.4:
        inner = [v for v in (place.values() if isinstance(place, dict) else place) if v]
        inner = [value for value in inner if isinstance(value, dict | list)]
        if not inner:
            break
        place = rng.choice(inner)
    mark = "@@"
    if isinstance(place, list):
        place[rng.randrange(len(place))] = mark
    else:
        name = rng.choice(list(place))
        match rng.randrange(5):
            case 0:
                del place[name]
            case 1:
                place[rng.choice(["", name.upper(), name + " ", "type", "y", "x"])] = mark
            case 2:
                place[name + mark] = place[name]
            case _:
                place[name] = mark
    text = json.dumps(message, ensure_ascii=rng.random() < 0.5)
    text = text.replace(f'"{mark}"', rng.choice(VALUES))
    if f'{mark}"' in text:  # a name twice
        text = text.replace(mark, "")
        name = rng.choice(list(message))
        text = text.replace("{", f'{{"{name}": {rng.choice(VALUES)}, ', 1)
    return text.encode("utf-8", "surrogatepass")


def corrupted(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        data = rng.choice(DATA)
        kind = rng.random()
        if kind < 0.9:
            data = corrupt_fields(rng, data) if kind < 0.6 else corrupt_bytes(rng, data)
        else:
            data = corrupt_bytes(rng, corrupt_fields(rng, data))
        yield data


def test_thousands_of_corrupted_messages_are_messages_or_refused_in_a_sentence():
    n_refused = 0
    reasons = set()
    for data in corrupted(N, seed=1):
        try:
            message = decode(data)
        except DecodeError as error:
            n_refused += 1
            reason = str(error)
            assert reason.isprintable()
            assert len(reason) <= LONGEST_REASON
            reasons.add(reason.split(", got")[0])
            # what was refused can be told to others
            encode(Rejected(subject="events:1", fault="malformed", reason=reason, at=0.0))
        else:
            assert decode(encode(message)) == message
    assert 0.5 * N < n_refused < 0.95 * N
    assert len(reasons) > 100


def inputs(seed):
    """Decode corrupted inputs; most are about events of their own, or recent ones."""
    rng = random.Random(seed)
    recent = ["e1"]
    for data in [*DATA, *corrupted(N_PLAYED, seed)]:
        try:
            message = decode(data)
        except DecodeError:
            continue
        if rng.random() < 0.8:
            if isinstance(message, Event):
                recent = [*recent[-5:], str(rng.random())]
                message = replace(message, event_id=recent[-1])
            elif isinstance(message, Answer):
                event_id = rng.choice(recent)
                asked = rng.choice([None, f"{event_id}/label", f"{event_id}/challenge/1"])
                message = replace(message, event_id=event_id, request_id=asked, supersedes=None)
        if isinstance(message, Event | Answer | Cancel):
            yield message


@pytest.mark.parametrize(
    "kind", [pytest.param(InteractiveLoop, marks=pytest.mark.nightly), KeyedLoops]
)
def test_a_loop_answers_whatever_was_decoded_with_messages_that_travel(kind):
    loop = kind(isgp(seed=1), expires_after_s=60.0)
    said = Counter()
    for n, message in enumerate(inputs(seed=2)):
        match message:
            case Event():
                answers = loop.on_event(message, message.occurred_at)
                assert len(answers) >= 1
            case Answer():
                answers = loop.on_answer(message, message.answered_at)
            case Cancel():
                answers = loop.on_cancel(message.request_id, message.at, key=message.key)
        if n % 50 == 0:
            answers += loop.on_time(100.0)
        for answer in answers:
            assert decode(encode(answer)) == answer
            said[answer.fault if isinstance(answer, Rejected) else type(answer)] += 1
    wanted = {Prediction, LabelRequest, Challenge, LabelledExample, Expired, "duplicate", "unknown"}
    assert wanted <= said.keys()
    assert said[LabelledExample] > 50


HEADERS = [
    [],
    [("ce_type", b"streamgp.event.v1"), ("ce_id", b"\xff"), ("ce_time", b"now")],
    [("ce_type", b"streamgp.answer.v1"), ("dlq.topic", b"state")],
    [("ce_type", b"streamgp.label.cancel.v1"), ("content-type", b"")],
    [("ce_type", b"streamgp.event.v2")],
    [("ce_type", b"\x00\xff")],
]
KEYS = [None, b"", b"\xff", b"a\x1fb", b"ann\x1fe1\x1f0", b"\x1fe1\x1f0", b"a\nb", b"k" * 2000]
TERSE = [
    b'{"x":{"a":1}}',
    b'{"request_id":"e1/label","y":1}',
    b'{"type":"event","x":[]}',
    b'{"type":"label.cancel","request_id":"e1/label","why":"gone"}',
]


def records(n, seed):
    """Yield records that no producer should write."""
    rng = random.Random(seed)
    values = corrupted(n, seed)
    for offset in range(n):
        topic = rng.choice(["events", "events", "answers", "answers", "consensus"])
        kind = rng.random()
        value = next(values)
        if kind < 0.2:
            value = corrupt_fields(rng, rng.choice(TERSE))
        elif kind < 0.3:
            value = rng.choice(TERSE)
        elif kind < 0.4 or topic == "consensus":
            value = None
        elif kind < 0.5:
            value = rng.randbytes(rng.randrange(60))
        key = b"ann" if rng.random() < 0.5 else rng.choice([*KEYS, rng.randbytes(3)])
        at = rng.choice([1.7e9, 1.7e9, 0.0, -0.001, 9.3e15, -9.3e15])
        yield Record(
            topic=topic, partition=1, offset=offset, key=key, value=value,
            headers=rng.choice(HEADERS) if rng.random() < 0.4 else [], at=at,
        )  # fmt: skip


@pytest.mark.parametrize("keyed", [True, False])
def test_whatever_a_record_holds_it_is_read_or_becomes_a_dead_letter(keyed):
    outbox = Outbound("/streamgp/fuzz", keyed=keyed)
    said = Counter()
    for record in records(N_READ, seed=4):
        message = read(record, keyed=keyed)
        said[None if message is None else type(message)] += 1
        if message is None:
            assert record.value is None or record.topic == "consensus"
            continue
        match message:
            case Rejected() as rejected:
                out = outbox.dead_letter(rejected, record, record.partition)
                assert (out.key, out.value) == (record.key, record.value)
                dead = Record(
                    topic="dead-letters", partition=1, offset=0, key=out.key, value=out.value,
                    headers=out.headers, at=0.0,
                )  # fmt: skip
                assert letter_of(dead).error == rejected.reason
                assert resend(dead).topic == record.topic
            case TakenBack():
                assert record.value is None
            case Event() | Answer() as message:
                again = outbox.message(message, record.partition)
                assert decode(again.value) == message
                assert again.key == (None if message.key is None else message.key.encode())
    assert min(said[kind] for kind in (None, Event, Answer, Cancel, TakenBack, Rejected)) > 20


def test_no_message_takes_much_more_memory_than_its_bytes():
    rng = random.Random(3)
    biggest = sorted(corrupted(3000, seed=3), key=len)[-40:]
    size = MAX_INPUT_BYTES // 4
    full = [
        *(b"[" + unit * (size // len(unit) - 2) + b"1]" for unit in (b"[],", b"{},", b"1,")),
        *(b'{"a":' + value * (size // len(value) - 9) for value in (b" ", b"1", b'\\"')),
        b'{"type":"event","x":[' + b'["a",1],' * (size // 9) + b"[]]}",
        rng.randbytes(size),
        bytes(size),
    ]
    tracemalloc.start()
    try:
        for data in [*biggest, *full]:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            with suppress(DecodeError):
                decode(data)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < 50 * len(data) + 100_000, data[:60]
    finally:
        tracemalloc.stop()


def answer(rest):
    return b'{"type":"answer","version":1,"answer_id":"a","event_id":"e","answered_at":0,%s}' % rest


@pytest.mark.parametrize(
    ("data", "match"),
    [
        # a number out of range is found below names and beside lists
        (
            answer(b'"privileged":{"why":[1,{"b":2}],"n":{"float":1e999}}'),
            r"^answer: privileged\['n'\]\['float'\] must be finite, got a number beyond 1\.8e308$",
        ),
        (answer(b'"y":{"float":1e999}'), r"^answer: y\.float must be finite, got a number beyond"),
        # the last of two values is kept, the first one was refused
        (
            answer(b'"y":{"float":"1"},"y":2'),
            r"^answer: y\.float must be float, got another value$",
        ),
        (
            answer(b'"privileged":[1],"privileged":{}'),
            r"privileged must be object or null, got {}$",
        ),
        (
            answer(b'"privileged":{"a":1e999,"a":1}'),
            r"^answer: privileged\[\.\.\.\] must be finite,",
        ),
        # what was in the bytes is shown, but not executed by a terminal and not at full length
        (b'{"type":"\\u001b[2J",' + answer(b'"y":1')[1:], r"^answer: Invalid value '\\x1b\[2J'$"),
        (answer(b'"declined":"\xc2\x9b2J"'), r'^answer: declined must be bool, got "\\x9b2J"$'),
        (answer(b'"declined":"\xc3\xa9"'), '^answer: declined must be bool, got "é"$'),
        (
            b'{"type":"event","version":1,"event_id":"e","x":{"%s":[]},"occurred_at":0}'
            % (b"long" * 1000),
            r"^event: x\['(long){19}\.\.\.\] must be bool or int or float or str or "
            r"null, got \[\]$",
        ),
        (
            b'{"type":"event","version":1,"event_id":"e","x":[%s],"occurred_at":0}'
            % b",".join([b'["a",1]'] * 1000),
            r"^event: x must name every feature once, got (\[?\['a', 1\],? ?){8}$",
        ),
        (
            answer(b'"privileged":{"%s":18446744073709551616}' % (b"long" * 1000)),
            r"^answer: privileged\['(long){119}l?o?n?\.\.\.$",
        ),
    ],
)
def test_a_reason_is_one_short_line_that_shows_the_culprit(data, match):
    with pytest.raises(DecodeError, match=match):
        decode(data)


@pytest.mark.parametrize("data", DATA)
def test_every_beginning_of_a_message_is_refused(data):
    for n in range(len(data)):
        with pytest.raises(DecodeError):
            decode(data[:n])
