"""What goes into the topics under chaos: good events, and bad inputs of every kind.

Every event bears the number `n`, in a field that workers ignore. Every bad input bears a mark in
its bytes, and nothing else does, so that the topics alone tell what a worker has to refuse.

"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from connectors.records import Misnamed, Outgoing, TopicName
from connectors.wire.codec import MAX_INPUT_BYTES

MARK = b"chaos-bad"
CLASSES = ("hall", "kitchen", "lounge", "study")
N_KEYS = 100
N_RARE_KEYS = 20
_RARE_SHARE = 0.04
_N_FEATURES = 8
_LABELLED_SHARE = 0.01
_TERSE_SHARE = 0.02
_NULL_SHARE = 0.001
_BAD_SHARE = 0.001
_WRONG_LABELS = 0.2

_Value = dict[str, Any]


class Traffic:
    """Makes what is sent, one number after the other.

    Parameters
    ----------
    seed
        Seed of everything random.
    n_events
        Number of good events; of each kind of bad input there are at least two, if there is room.

    """

    # _last  key and number of the last event that brings its id
    def __init__(self, seed: int, n_events: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._bad_every = max(2, min(round(1 / _BAD_SHARE), n_events // (2 * len(KINDS))))
        self._last = "", 0

    def next(self, number: int, at: float) -> list[Outgoing]:
        """Return the event of a number, and what goes astray beside it.

        Parameters
        ----------
        number
            From 0, one after the other.
        at
            The time, POSIX seconds.

        """
        key = self._key()
        sent = [self._event(number, key, at)]
        if number % self._bad_every == self._bad_every - 1:
            kind = list(KINDS)[number // self._bad_every % len(KINDS)]
            sent.append(KINDS[kind](_Bad(kind, number, at, *self._last)))
        if self._rng.random() < _NULL_SHARE:
            topic: TopicName = "events" if number % 2 else "answers"
            sent.append(Outgoing(topic=topic, key=key.encode(), value=None))
        return sent

    def _key(self) -> str:
        if self._rng.random() < _RARE_SHARE:
            return f"key-{self._rng.integers(N_RARE_KEYS):03}"
        return f"key-{self._rng.integers(N_RARE_KEYS, N_KEYS):03}"

    def _event(self, number: int, key: str, at: float) -> Outgoing:
        rng = self._rng
        room = int(rng.integers(len(CLASSES)))
        point = rng.normal(loc=float(room), scale=0.6, size=_N_FEATURES).round(6)
        x = {f"feature-{i}": value for i, value in enumerate(point.tolist())}
        value: _Value = {"x": x, "truth": CLASSES[room], "n": number}
        if number == 0 or rng.random() >= _TERSE_SHARE:
            named = {"type": "event", "version": 1, "event_id": name_of(number), "key": key}
            value = {**named, **value, "occurred_at": at}
            self._last = key, number
        if rng.random() < _LABELLED_SHARE:
            is_wrong = rng.random() < _WRONG_LABELS
            value["y"] = CLASSES[(room + is_wrong) % len(CLASSES)]
        return Outgoing(topic="events", key=key.encode(), value=_json(value))


def name_of(number: int) -> str:
    """Return the id of an event."""
    return f"event-{number:07}"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class _Bad:
    """The makings of one bad input; `last` is the number of an event of the same key."""

    def __init__(self, kind: str, number: int, at: float, key: str, last: int) -> None:
        self.mark = f"{MARK.decode()} {kind} {number}"
        self.key = key.encode()
        self.at = at
        self.last = name_of(last)
        self.event: _Value = {
            "type": "event",
            "version": 1,
            "event_id": f"bad-{number:07}",
            "key": key,
            "x": {"feature-0": 1.0},
            "occurred_at": at,
            "note": self.mark,
        }
        self.answer: _Value = {
            "type": "answer",
            "version": 1,
            "answer_id": f"bad-{number:07}",
            "request_id": f"nobody-{number:07}/label",
            "event_id": f"nobody-{number:07}",
            "key": key,
            "y": "hall",
            "answered_at": at,
            "note": self.mark,
        }

    def events(self, value: bytes, **options: Any) -> Outgoing:
        return Outgoing(**{"topic": "events", "key": self.key, "value": value, **options})

    def answers(self, value: bytes, **options: Any) -> Outgoing:
        return Outgoing(**{"topic": "answers", "key": self.key, "value": value, **options})


class _Latin1(Misnamed):
    """A name that no client of Kafka should write, but any can."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"caf\xe9"


def _event(**fields: Any) -> Callable[[_Bad], Outgoing]:
    return lambda bad: bad.events(_json({**bad.event, **fields}))


def _event_without(field: str) -> Callable[[_Bad], Outgoing]:
    return lambda bad: bad.events(_json({k: v for k, v in bad.event.items() if k != field}))


def _answer(**fields: Any) -> Callable[[_Bad], Outgoing]:
    return lambda bad: bad.answers(_json({**bad.answer, **fields}))


def _number(literal: bytes) -> Callable[[_Bad], Outgoing]:
    return lambda bad: bad.events(
        _json({**bad.event, "x": {"feature-0": "HERE"}}).replace(b'"HERE"', literal)
    )


def _with_key(key: bytes | None) -> Callable[[_Bad], Outgoing]:
    return lambda bad: bad.events(_json({**bad.event, "key": None}), key=key)


def _cancel(bad: _Bad) -> Outgoing:
    cancel = {"type": "label.cancel", "version": 1, "request_id": bad.answer["request_id"]}
    return bad.answers(_json({**cancel, "why": bad.mark, "at": bad.at}))


KINDS: dict[str, Callable[[_Bad], Outgoing]] = {
    "invalid UTF-8": lambda bad: bad.events(_json(bad.event).replace(b'"note":"', b'"note":"\xff')),
    "invalid JSON": lambda bad: bad.events(_json(bad.event)[:-1]),
    "no bytes but the mark": lambda bad: bad.events(bad.mark.encode()),
    "NaN": _number(b"NaN"),
    "Infinity": _number(b"-Infinity"),
    "beyond floats": _number(b"1e999"),
    "no object": lambda bad: bad.events(_json([bad.event])),
    "missing field": _event_without("x"),
    "wrong field": _event(x=[1.0, 2.0]),
    "wrong time": _event(occurred_at="yesterday"),
    "feature that is too large": _event(x={"feature-0": 1e200}),
    "label that is an object": _event(y={"room": "hall"}),
    "control character": _event(event_id="bad\x1fid"),
    "too large": lambda bad: bad.events(_json({**bad.event, "pad": "x" * MAX_INPUT_BYTES})),
    "too deep": lambda bad: bad.events(
        _json({**bad.event, "pad": "HERE"}).replace(b'"HERE"', b"[" * 5000 + b"]" * 5000)
    ),
    "missing key": _with_key(None),
    "empty key": _with_key(b""),
    "key that is not UTF-8": _with_key(b"\xff\xfe"),
    "another key": _event(key="somebody else"),
    "unknown version": _event(version=2),
    "unknown major version": lambda bad: bad.events(
        _json(bad.event), headers=[("ce_type", b"streamgp.event.v2")]
    ),
    "header whose name is not UTF-8": lambda bad: bad.events(
        _json(bad.event), headers=[(_Latin1("caf\\xe9"), b"")]
    ),
    "another type": lambda bad: bad.events(_json(bad.answer)),
    "time beyond the calendar": _event(occurred_at=1e18),
    "time in the future": lambda bad: bad.events(
        _json({**bad.event, "occurred_at": bad.at + 172_800.0})
    ),
    "event sent twice": lambda bad: bad.events(_json({**bad.event, "event_id": bad.last})),
    "answer that is no JSON": lambda bad: bad.answers(_json(bad.answer)[:-1]),
    "answer to nothing": _answer(request_id=None, event_id=None),
    "answer to an unknown request": _answer(),
    "answer with and without a label": _answer(declined=True),
    "answer of another key": _answer(key="somebody else"),
    "cancellation of an unknown request": _cancel,
    "null with a strange key": lambda bad: Outgoing(
        topic="consensus", key=f"{bad.mark}\x1fof two parts".encode(), value=None
    ),
}
"""Every kind of input that cannot be used, and how it is made."""
