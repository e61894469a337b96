import json
import random
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.wire.codec import (
    INPUT_TYPES,
    MAX_BYTES,
    MAX_INPUT_BYTES,
    TAGS,
    TYPES,
    DecodeError,
    decode,
    decode_input,
    encode,
    message_in,
)
from streamgp import isgp
from streamgp.base import Decision, Neighbour
from streamgp.interactive import InteractiveLoop
from streamgp.interactive.messages import (
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
from tests.helpers.laws import examples

texts = st.text(max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)
integers = st.integers(-(2**63), 2**63 - 1)
scalars = st.one_of(st.booleans(), integers, floats, texts)
labels = scalars
maybe_text = st.none() | texts
xs = st.one_of(
    st.dictionaries(texts, scalars, max_size=4),
    st.dictionaries(scalars, scalars, max_size=4),
)
privileged = st.none() | st.dictionaries(
    texts,
    st.recursive(
        st.none() | scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
probas = st.dictionaries(labels, floats, max_size=4)


@st.composite
def decisions(draw):
    score, threshold = draw(floats), draw(floats)
    budget = draw(maybe_text)
    ask = score > threshold and budget is None
    return Decision(ask=ask, score=score, threshold=threshold, criterion=draw(texts), budget=budget)


neighbours = st.builds(Neighbour, event_id=maybe_text, x=xs, y=labels, distance=floats)
excerpts = st.none() | st.dictionaries(texts, st.lists(st.none() | floats, max_size=3), max_size=2)
request_fields = {
    "request_id": texts,
    "event_id": texts,
    "key": maybe_text,
    "x": xs,
    "reason": texts,
    "score": floats,
    "threshold": floats,
    "requested_at": floats,
    "expires_at": st.none() | floats,
    "excerpt": excerpts,
}


@st.composite
def answers(draw):
    y = draw(st.none() | labels)
    return Answer(
        answer_id=draw(texts),
        request_id=draw(maybe_text),
        event_id=draw(texts),
        key=draw(maybe_text),
        y=y,
        declined=y is None,
        annotator=draw(maybe_text),
        answered_at=draw(floats),
        privileged=draw(privileged),
        supersedes=draw(maybe_text),
        std=draw(st.none() | floats),
    )


def messages():
    origins = st.sampled_from(["asked", "upheld", "revised", "volunteered", "withdrawn"])
    faults = st.sampled_from(["malformed", "duplicate", "unknown", "late", "ended", "unlearnable"])
    return st.one_of(
        st.builds(
            Event,
            event_id=texts,
            key=maybe_text,
            x=xs,
            occurred_at=floats,
            y=st.none() | labels,
            truth=st.none() | labels,
            excerpt=excerpts,
        ),
        st.builds(
            Prediction,
            event_id=texts,
            key=maybe_text,
            y=st.none() | labels,
            proba=probas,
            decision=decisions(),
            n_learned=st.integers(0, 2**40),
            at=floats,
            mean=st.none() | floats,
            std=st.none() | floats,
        ),
        st.builds(LabelRequest, **request_fields),
        st.builds(
            Challenge,
            **request_fields,
            given=labels,
            suggested=labels,
            probability_wrong=floats,
            annotator=maybe_text,
            neighbours=st.lists(neighbours, max_size=2).map(tuple),
            std=st.none() | floats,
        ),
        st.builds(Cancel, request_id=texts, key=maybe_text, why=texts, at=floats),
        answers(),
        st.builds(
            LabelledExample,
            event_id=texts,
            key=maybe_text,
            revision=st.integers(0, 2**40),
            sequence=st.integers(0, 2**40),
            x=xs,
            y=st.none() | labels,
            origin=origins,
            annotator=maybe_text,
            learned_at=floats,
            late=st.booleans(),
            privileged=privileged,
            std=st.none() | floats,
            asked_back=st.booleans(),
            given=st.none() | labels,
            challenged=st.booleans(),
            given_by=maybe_text,
            volunteered=st.booleans(),
        ),
        st.builds(Expired, request_id=texts, event_id=texts, key=maybe_text, at=floats),
        st.builds(Rejected, subject=texts, key=maybe_text, fault=faults, reason=texts, at=floats),
    )


def strictly(value):
    """Return a value such that equality means equal types, too."""
    if is_dataclass(value):
        return type(value), [(f.name, strictly(getattr(value, f.name))) for f in fields(value)]
    if isinstance(value, dict):
        return dict, [(strictly(k), strictly(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [strictly(v) for v in value]
    return type(value), repr(value)


def event(**changes):
    return Event(**{"event_id": "e1", "x": {"light": 0.5}, "occurred_at": 10.0, **changes})


def samples():
    x = {"light": 0.5, 3: -1, 2.5: True, "name": "ü"}
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
    near = Neighbour(event_id="e0", x=x, y="home", distance=0.25)
    challenge = {"given": 1.0, "suggested": True, "probability_wrong": 0.9, "neighbours": (near,)}
    return [
        event(x=x, y="home", truth=3),
        Prediction(
            event_id="e1", y="a", proba={"a": 0.5, 1.0: 0.5}, decision=decision, n_learned=3, at=1.0
        ),
        LabelRequest(**request),
        Challenge(**request, **challenge),
        Cancel(request_id="e1/label", why="gone", at=3.0),
        Answer(answer_id="a", event_id="e1", y=2, answered_at=1.0, privileged={"a": [1, {"b": 2}]}),
        LabelledExample(event_id="e1", sequence=1, x=x, y=1, origin="asked", learned_at=2.0),
        Expired(request_id="e1/label", event_id="e1", at=4.0),
        Rejected(subject="row 3", fault="malformed", reason="why", at=5.0),
    ]


def wire(kind="event", **changes):
    fields = {"event_id": "e1", "x": {"light": 0.5}, "occurred_at": 10.0}
    return json.dumps({"type": kind, "version": 1, **fields, **changes}).encode()


@examples(100)
@given(messages())
def test_decoding_what_was_encoded_gives_the_same_message_with_the_same_types(message):
    data = encode(message)
    assert strictly(decode(data)) == strictly(message)
    assert encode(decode(data)) == data


@given(messages())
def test_every_message_is_standard_json_with_type_and_version_first(message):
    plain = json.loads(encode(message))
    assert list(plain)[:2] == ["type", "version"]
    assert TYPES[plain["type"]] is type(message)
    assert plain["version"] == 1


def test_fields_come_in_their_order_and_defaults_are_left_out():
    answer = Answer(
        answer_id="a1", request_id="e1/label", event_id="e1", key="ann", y=1.0, answered_at=60.0
    )
    assert encode(answer) == (
        b'{"type":"answer","version":1,"answer_id":"a1","request_id":"e1/label","event_id":"e1",'
        b'"key":"ann","y":{"float":1.0},"answered_at":60.0}'
    )


def test_true_one_one_point_zero_and_the_text_one_stay_four_labels():
    found = [decode(encode(event(y=y))).y for y in (True, 1, 1.0, "1")]
    assert [type(y) for y in found] == [bool, int, float, str]


def test_an_untagged_float_label_is_taken_as_it_stands():
    assert strictly(decode(wire(y=1.5)).y) == strictly(1.5)


def test_features_travel_as_an_object_if_all_names_are_texts_else_as_pairs():
    assert json.loads(encode(event(x={"a": 1})))["x"] == {"a": 1}
    assert json.loads(encode(event(x={"a": 1, 2: 0.5, 3.0: "b"})))["x"] == [
        ["a", 1],
        [2, 0.5],
        [{"float": 3.0}, "b"],
    ]


def test_numpy_scalars_travel_as_plain_values():
    x = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), np.str_("d"): np.str_("e")}
    message = event(x=x, occurred_at=np.float64(10.0), y=np.int64(2))
    found = decode(encode(message))
    assert strictly(found.x) == strictly({"a": 0.5, "b": 3, "c": True, "d": "e"})
    assert strictly((found.occurred_at, found.y)) == strictly((10.0, 2))


def test_a_prediction_of_numpy_probabilities_travels():
    decision = Decision.of(np.float64(0.3), 0.1, "SkepticalAsk")
    prediction = Prediction(
        event_id="e1", y="a", proba={"a": np.float64(1.0)}, decision=decision, n_learned=1, at=0.0
    )
    assert decode(encode(prediction)) == prediction


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
@pytest.mark.parametrize("name", ["b", 2])
def test_missing_features_are_not_written(missing, name):
    assert decode(encode(event(x={"a": 0.5, name: missing}))).x == {"a": 0.5}


@pytest.mark.parametrize("x", [{"a": 0.5, "b": None}, [["a", 0.5], ["b", None], [2, None]]])
def test_features_that_are_null_are_missing(x):
    assert strictly(decode(wire(x=x)).x) == strictly({"a": 0.5})


def test_unknown_fields_are_ignored():
    assert decode(wire(colour={"deep": [1, None, "red"]})) == event()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"x": {"a": float("inf")}}, r"^event: x\['a'\] must be finite, got inf$"),
        ({"x": {"a": [1]}}, r"x\['a'\] must be a number, a boolean or a string, got \[1\]$"),
        ({"x": {"a": 2**63}}, r"x\['a'\] must fit into 64 bits, got 9223372036854775808$"),
        ({"x": {(1, 2): 1}}, r"feature name in x must be a number, .* got \(1, 2\)$"),
        ({"x": {"a": np.zeros(2)}}, r"x\['a'\] must be a number, a boolean or a string, got array"),
        ({"x": 3}, r"^event: x must be a dict of features, got 3$"),
        ({"x": None}, r"^event: x must be a dict of features, got None$"),
        ({"y": float("-inf")}, r"^event: y must be finite, got -inf$"),
        ({"truth": ("a",)}, r"truth must be a number, a boolean or a string, got \('a',\)$"),
        ({"occurred_at": float("nan")}, r"^event: occurred_at must be finite, got nan$"),
        ({"occurred_at": "now"}, r"^event: occurred_at must be a number, got 'now'$"),
        ({"occurred_at": None}, r"^event: occurred_at must be a number, .* got None$"),
        ({"event_id": 7}, r"^event: event_id must be a string, got 7$"),
        ({"event_id": "\ud800"}, r"^text must be valid Unicode, got '\\ud800'$"),
        (
            {"x": {"a": "b" * MAX_INPUT_BYTES}},
            r"^message must have at most 1048576 bytes, got 10486\d\d$",
        ),
    ],
)
def test_nothing_is_written_that_cannot_be_read_back(changes, match):
    with pytest.raises(ValueError, match=match):
        encode(event(**changes))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (float("nan"), r"privileged\['a'\] must be finite, got nan$"),
        ((1, 2), r"privileged\['a'\] must be a number, a boolean or a string, got \(1, 2\)$"),
        ({1: 2}, r"name in privileged\['a'\] must be a string, got 1$"),
        (nested(20), r"must not nest deeper than 16, got more$"),
    ],
)
def test_privileged_information_must_be_json(value, match):
    answer = Answer(answer_id="a", event_id="e", y=1, answered_at=0.0, privileged={"a": value})
    with pytest.raises(ValueError, match=match):
        encode(answer)


@pytest.mark.parametrize(
    ("example", "match"),
    [
        ({"late": "yes"}, "late must be true or false, got 'yes'"),
        ({"sequence": 1.5}, r"sequence must be an integer, got 1\.5"),
    ],
)
def test_flags_and_counts_must_be_flags_and_counts(example, match):
    fields = {"sequence": 1, "x": {}, "y": 1, "origin": "asked", "learned_at": 0.0}
    with pytest.raises(ValueError, match=f"^consensus: {match}$"):
        encode(LabelledExample(event_id="e", **{**fields, **example}))


def test_encode_takes_messages_only():
    with pytest.raises(TypeError, match=r"message must be one of Event, Prediction, .* got dict"):
        encode({"type": "event"})


decision = {"ask": True, "score": 0.3, "threshold": 0.1, "criterion": "c"}
prediction = {"y": "a", "proba": [["a", 1.0]], "n_learned": 1, "at": 0}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "^message must be JSON, got nothing$"),
        (b"hello", "^message must be JSON, got malformed text: Expecting value"),
        (wire()[:-5], "^message must be JSON, got malformed text: "),
        (wire() + b"x", "^message must be JSON, got malformed text: "),
        (
            wire(event_id="\ud800"),
            "^message must be JSON, got malformed text: unexpected end of esc",
        ),
        (wire(x={"a": float("nan")}), "^message must hold finite numbers, got NaN$"),
        (wire(x={"a": float("-inf")}), "^message must hold finite numbers, got -Infinity$"),
        (b"[1]", r"^message must be a JSON object, got \[1\]$"),
        (b"{}", "^type must be one of event, prediction, .*, rejected, got none$"),
        (wire(kind="evnt"), '^type must be one of event, .*, rejected, got "evnt"$'),
        (wire(kind=3), "^type must be one of event, .*, rejected, got 3$"),
        (b'{"type":"event"}', "^event: version must be 1, got none$"),
        (wire(version=2), "^event: version must be 1, got 2, an unknown major version$"),
        (wire(version=2, x=None), "^event: version must be 1, got 2, an unknown major version$"),
        (wire(version=True), "^event: version must be 1, got true$"),
        (wire(version="1"), '^event: version must be 1, got "1"$'),
        (b'{"type":"event","version":1,"event_id":"e"}', "^event: field 'x' is missing$"),
        (wire(event_id=17), "^event: event_id must be str, got 17$"),
        (wire(occurred_at="now"), '^event: occurred_at must be POSIX seconds, got "now"$'),
        (
            wire().replace(b"10.0", b"1e999"),
            "^event: occurred_at must be finite, got a number beyo",
        ),
        (wire().replace(b"0.5", b"1e999"), r"^event: x\['light'\] must be finite, got a number be"),
        (wire(x=3), "^event: x must be object or array, got 3$"),
        (wire(x={"a": {"b": 1}}), r"^event: x\['a'\] must be bool or int or .*, got {\"b\": 1}$"),
        (wire(x={"a": 2**63}), r"^event: x\['a'\] must be int <= 9223372036854775807, got 92233"),
        (wire(x=[["a", 1], ["b"]]), r"^event: x\[1\] must be array of length 2, got \[\"b\"\]$"),
        (wire(x=[["a", 1], ["a", 2]]), r"^event: x must name every feature once, got \[\['a', 1\]"),
        (wire(y=[1]), r"^event: y must be bool or .*, got \[1\]$"),
        (wire(y=["b" * 200]), r'^event: y must be bool or .*, got \["b{75}\.\.\.$'),
        (wire(y={"float": "1"}), '^event: y.float must be float, got "1"$'),
        (wire(y={"double": 1}), "^event: field 'float' of y is missing$"),
        (
            wire("rejected", subject="s", fault="bad", reason="r", at=0),
            '^rejected: fault must be one of malformed, .*, quarantined, got "bad"$',
        ),
        (
            wire("prediction", **prediction, decision={**decision, "ask": False}),
            "^prediction: ask must equal score > threshold and budget is None, got ask=False",
        ),
        (
            wire("prediction", **prediction, decision={**decision, "score": "high"}),
            '^prediction: decision.score must be float, got "high"$',
        ),
        (
            wire("prediction", **{**prediction, "proba": [["a", 1], ["a", 0]]}, decision=decision),
            r"^prediction: proba must name every label once, got \[\('a', 1.0\)",
        ),
        (
            wire("answer", answer_id="a", answered_at=0),
            "^answer: an answer has a label or is declined, got y=None and declined=False$",
        ),
        (
            wire("answer", answer_id="a", answered_at=0, y=1, privileged={"a": 2**64}),
            r"^answer: privileged\['a'\] must fit into 64 bits, got 18446744073709551616$",
        ),
        (wire().replace(b"light", b"l\xffght"), "^message must be UTF-8, got the byte 0xff at pos"),
        (wire(z=nested(32)), "^message must not nest deeper than 32, got more$"),
        (b"[" * 100_000, "^message must not nest deeper than 32, got more$"),
        (b'{"a":' * 100_000, "^message must not nest deeper than 32, got more$"),
        (b" " * (MAX_BYTES + 1), "^message must have at most 16777216 bytes, got 16777217$"),
        (wire(x={"a": 1}).replace(b"1}", b"1" * 5000 + b"}"), "malformed text: .*4300 digits"),
    ],
)
def test_bytes_that_hold_no_message_say_which_field_is_wrong(data, match):
    with pytest.raises(DecodeError, match=match):
        decode(data)


@pytest.mark.parametrize("message", samples(), ids=lambda message: type(message).__name__)
def test_what_is_decoded_is_the_message_itself(message):
    """Not a class of the wire that looks like it: it can be told, compared and copied."""
    found = decode(encode(message))
    assert type(found) is type(message)
    assert replace(found) == found == message
    with pytest.raises(AttributeError, match="immutable"):
        found.key = "bob"


def test_a_second_type_in_one_message_is_refused():
    for data in (
        b'{"type":"event","type":"answer","version":1,"event_id":"e","x":{},"occurred_at":1}',
        b'{"type":"rejected","fault":"odd","type":"event","version":1}',
    ):
        with pytest.raises(DecodeError, match=r"^(event|answer): "):
            decode(data)


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\xff"])
def test_a_record_without_a_message_holds_none(value):
    assert message_in(value) is None
    cancel = Cancel(request_id="e1/label", why="gone", at=3.0)
    assert message_in(encode(cancel)) == cancel


def test_nesting_is_measured_outside_of_texts():
    deep_text = '["' * 100
    assert decode(wire(z=nested(31), event_id=deep_text)).event_id == deep_text


def test_the_size_bound_can_be_set():
    with pytest.raises(DecodeError, match="at most 10 bytes"):
        decode(wire(), max_bytes=10)


def test_what_follows_from_the_largest_inputs_can_be_written():
    """A challenge repeats the features of four events, a rejection what was wrong, escaped."""
    x = {f"{n:05}\x00": 1e15 for n in range(30_000)}
    largest = event(event_id="e" * 10, x=x)
    n_bytes = len(encode(largest))
    assert 0.9 * MAX_INPUT_BYTES < n_bytes <= MAX_INPUT_BYTES
    near = Neighbour(event_id="e0", x=x, y="home", distance=0.25)
    rest = {"reason": "r", "score": 1.0, "threshold": 0.0, "requested_at": 0.0}
    ids = {"request_id": "e1/challenge/1", "event_id": "e1"}
    doubt = {"given": "a", "suggested": "b", "probability_wrong": 0.9}
    challenge = Challenge(**ids, x=x, **rest, **doubt, neighbours=(near,) * 3)
    assert n_bytes < len(encode(challenge)) <= MAX_BYTES
    name = "\x1b" * (MAX_INPUT_BYTES // 7)
    loop = InteractiveLoop(isgp(seed=1))
    twice = event(event_id=name, x={"a": 1.0})
    encode(twice)
    for message in [*loop.on_event(twice, 0.0), *loop.on_event(twice, 0.0)]:
        assert len(encode(message)) <= MAX_BYTES


def test_a_text_without_end_takes_no_time():
    data = b"[" * 40 + b'"' + b'\\"' * (MAX_INPUT_BYTES // 2 - 40)
    with pytest.raises(DecodeError):
        decode(data)


FILLED_IN = {
    "event": {"event_id": "t:0:7", "occurred_at": 60.0},
    "answer": {"answer_id": "t:0:7", "answered_at": 60.0},
    "label.cancel": {"at": 60.0},
}


@given(messages().filter(lambda message: TAGS[type(message)] in INPUT_TYPES), st.data())
def test_what_a_terse_input_leaves_out_is_filled_in_and_all_else_is_as_written(message, data):
    tag = TAGS[type(message)]
    plain = json.loads(encode(message))
    defaults = {"type": tag, "version": 1, "key": "ann", **FILLED_IN[tag]}
    left_out = data.draw(st.sets(st.sampled_from(sorted(defaults))))
    terse = {name: value for name, value in plain.items() if name not in left_out}
    found = decode_input(json.dumps(terse).encode(), tag, name="t:0:7", key="ann", at=60.0)
    complete = {**plain, **{name: defaults[name] for name in left_out}}
    complete["key"] = complete.get("key", "ann")
    assert strictly(found) == strictly(decode(json.dumps(complete).encode()))


def test_an_answer_to_a_request_need_not_name_the_event():
    for request_id in ("trip/7/label", "trip/7/challenge/2"):
        data = json.dumps({"request_id": request_id, "y": 1}).encode()
        found = decode_input(data, "answer", name="a", key=None, at=0.0)
        assert (found.event_id, found.request_id) == ("trip/7", request_id)


@pytest.mark.parametrize(
    ("terse", "match"),
    [
        ({"x": {}, "event_id": None}, "^event: event_id must be str, got null$"),
        ({"x": {}, "occurred_at": None}, "^event: occurred_at must be POSIX seconds, got null$"),
        ({"x": {}, "version": None}, "^event: version must be 1, got null$"),
        ({"x": {}, "type": None}, "^type must be one of event, answer, label.cancel, got null$"),
        ({"x": {}, "type": "label.request"}, '^type must be .*, got "label.request"$'),
        ({"event_id": "e1"}, "^event: field 'x' is missing$"),
        ({"type": "answer", "y": 1}, "^answer: field 'event_id' is missing, and no request tells"),
    ],
)
def test_terse_is_not_lenient(terse, match):
    with pytest.raises(DecodeError, match=match):
        decode_input(json.dumps(terse).encode(), "event", name="t:0:7", key=None, at=0.0)


def test_the_messages_of_others_must_be_complete():
    data = b'{"type":"event","x":{}}'
    with pytest.raises(DecodeError, match=r"^event: version must be 1, got none$"):
        decode(data)
    assert decode_input(data, "event", name="e", key=None, at=0.0) == event(
        event_id="e", x={}, occurred_at=0.0
    )


def test_ten_thousand_corruptions_are_refused_or_give_a_message_that_travels():
    rng = random.Random(1)
    originals = [encode(message) for message in samples()]
    pieces = [
        b"null",
        b"1e999",
        b"NaN",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"\xff",
        b"-",
        b"1" * 30,
    ]
    n_refused = 0
    for _ in range(10_000):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randint(1, 20)]
                case 2:
                    data[at:at] = rng.choice(pieces)
                case 3:
                    other = rng.choice(originals)
                    data[at:] = other[rng.randrange(len(other)) :]
            data = data or bytearray(b" ")
        try:
            message = decode(bytes(data))
        except DecodeError:
            n_refused += 1
        else:
            assert decode(encode(message)) == message
    assert 5_000 < n_refused < 10_000


@examples(100)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_arbitrary_bytes_are_refused(data):
    with pytest.raises(DecodeError):
        decode(data)
