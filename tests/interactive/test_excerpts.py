"""A piece of the raw signal: kept with the event, shown to annotators, unknown to learners."""

import math

import msgspec
import numpy as np
import pytest
from river import naive_bayes

from connectors.wire.codec import DecodeError, decode, encode
from streamgp import InteractiveLoop, SkepticalClassifier, isgp
from streamgp.interactive import Answer, Challenge, Event, LabelRequest
from streamgp.interactive.validation import flaw_of_event
from streamgp.query import AlwaysAsk, AlwaysChallenge

WAVE = {"acc": [0.5, -1.0], "": []}


def event(i, excerpt=WAVE, **kw):
    x = {"light": float(i % 2), "noise": 0.1 * i}
    return Event(event_id=f"e{i}", x=x, occurred_at=float(i), excerpt=excerpt, **kw)


def model():
    return SkepticalClassifier(
        naive_bayes.GaussianNB(), query=AlwaysAsk(), challenge=AlwaysChallenge(), seed=1
    )


def restarted(loop, lines):
    by_snapshot = InteractiveLoop.restore(loop.snapshot(), model())
    parts = msgspec.json.decode(msgspec.json.encode(loop.parts()))
    return [loop, by_snapshot, InteractiveLoop.from_parts(parts, lines, model())]


def answer(i, y):
    return Answer(
        answer_id=f"a{i}", request_id=f"e{i}/label", event_id=f"e{i}", y=y, answered_at=float(i)
    )


def test_questions_have_the_excerpt_of_their_event_also_after_a_restart():
    loop, lines = InteractiveLoop(model()), []
    for i in range(6):
        _, request = loop.on_event(event(i, {"acc": (0.5, i, None, np.float64(2.0))}), float(i))
        assert isinstance(request, LabelRequest)
        assert request.excerpt == {"acc": [0.5, float(i), None, 2.0]}
        if i < 5:
            lines += loop.on_answer(answer(i, ["hall", "den"][i % 2]), float(i))
            lines = [line for line in lines if not isinstance(line, Challenge)]
            lines += loop.on_cancel(f"e{i}/challenge/1", float(i))[1:]
    lines = [line for line in lines if hasattr(line, "sequence")]
    for again in restarted(loop, lines):
        [challenge] = again.on_answer(answer(5, "attic"), 6.0)
        assert isinstance(challenge, Challenge)
        assert challenge.excerpt == {"acc": [0.5, 5.0, None, 2.0]}
        assert type(challenge.excerpt["acc"][1]) is float
        [line] = again.on_cancel(challenge.request_id, 7.0)[1:]
        assert not hasattr(line, "excerpt")


def test_state_without_an_excerpt_is_as_it_was_before_there_were_any():
    with_one, without = InteractiveLoop(model()), InteractiveLoop(model())
    with_one.on_event(event(0), 0.0)
    without.on_event(event(0, None), 0.0)
    [long], [short] = (loop.changes()["head"]["recent"] for loop in (with_one, without))
    assert len(short) == 13
    assert long == [*short, None, False, 0.0, WAVE]


def test_a_learner_sees_nothing_of_it():
    said = []
    for excerpt in (None, WAVE):
        loop = InteractiveLoop(isgp(seed=1))
        messages = [loop.on_event(event(i, excerpt, y=str(i % 2)), float(i)) for i in range(9)]
        said.append([m for of_event in messages for m in of_event if not hasattr(m, "excerpt")])
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("excerpt", "match"),
    [
        ([1.0], r"^excerpt must be a mapping from channels to lists of numbers, got \[1\.0\]$"),
        ({3: [1.0]}, "^channels of an excerpt must be texts, got 3$"),
        ({"a\ud800": [1.0]}, "^channels of an excerpt must be texts, got 'a"),
        ({"a": "12"}, r"^excerpt\['a'\] must be a list of numbers, got '12'$"),
        ({"a": np.zeros(2)}, r"^excerpt\['a'\] must be a list of numbers, got array"),
        ({"a": [0.0] * 201}, r"^excerpt\['a'\] must have at most 200 numbers, got 201; send every"),
        ({"a": [0.0, math.nan]}, r"^excerpt\['a'\] must hold finite numbers, got nan$"),
        ({"a": [True]}, r"^excerpt\['a'\] must hold finite numbers, got True$"),
        ({"a": [None], "b": None}, r"^excerpt\['b'\] must be a list of numbers, got None$"),
    ],
)
def test_what_is_no_excerpt_is_refused(excerpt, match):
    [rejected] = InteractiveLoop(model()).on_event(event(0, excerpt), 0.0)
    assert rejected.fault == "malformed"
    with pytest.raises(ValueError, match=match):
        raise ValueError(rejected.reason)
    with pytest.raises(ValueError, match=r"excerpt|valid Unicode"):
        encode(event(0, excerpt))


def test_two_hundred_numbers_travel_and_integers_come_as_floats():
    most = event(0, {"a": [0.25, None] * 100, "ü": []})
    assert flaw_of_event(most) is None
    assert decode(encode(most)) == most
    assert type(decode(encode(event(0, {"a": [1]}))).excerpt["a"][0]) is float
    assert b"excerpt" not in encode(event(0, None))


@pytest.mark.parametrize(
    ("excerpt", "match"),
    [
        ("3", r"^event: excerpt must be object or null, got 3$"),
        ('{"a":[1],"b":3}', r"^event: excerpt\['b'\] must be array, got 3$"),
        ('{"a":[null],"b":3}', r"^event: excerpt\['b'\] must be array, got 3$"),
        ('{"a":[1],"b":[1,"x"]}', r"^event: excerpt\['b'\]\[1\] must be float or null, got \"x\"$"),
        ('{"a":[1e999]}', r"^event: excerpt\['a'\]\[0\] must be finite, got a number beyond"),
        (
            '{"a":[1],"b":[' + "0," * 200 + "0]}",
            r"^event: excerpt\['b'\] must be array of length <= 200, got \[0, 0",
        ),
    ],
)
def test_bytes_that_hold_no_excerpt_say_where(excerpt, match):
    data = b'{"type":"event","version":1,"event_id":"e","x":{},"occurred_at":1,"excerpt":%s}'
    with pytest.raises(DecodeError, match=match):
        decode(data % excerpt.encode())
