"""Inputs under chaos: good events, bad inputs, and hostile ones of every kind.

Every good event has a number `n`, in a field that workers ignore. Every bad input, and nothing
else, has a mark in its bytes, so that the topics alone tell what a worker has to refuse.

Hostile inputs have another mark. They can be read, but contain values that a learner may be unable
to handle; whether it can is up to the learner. Most are about keys of their own, one of each kind.

"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from connectors.topics import Outgoing, TopicName, UndecodableName
from connectors.wire.codec import MAX_INPUT_BYTES

MARK = b"chaos-bad"
HOSTILE_MARK = b"chaos-hostile"
HOSTILE_KEYS = b"hostile "
"""Prefix of the keys that only an attacker uses."""
HOSTILE_SHARE = 0.02
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
# Shares of hostile events: those about honest keys, those whose label is sent again as an answer,
# and those that each have a class of their own.
_AT_HOME, _ANSWERED, _CLASSES = 0.1, 0.1, 0.15

_Value = dict[str, Any]


class Traffic:
    """Generator of inputs, one number after the other.

    Parameters
    ----------
    seed
        Seed of everything random.
    n_events
        Number of good events; with enough of them, each kind of bad input occurs at least twice.
    hostile_share
        Number of hostile events per good event.

    """

    # _last     key and number of the last event with an id of its own
    # _attacks  draws everything hostile, so that good events do not depend on its amount
    def __init__(self, seed: int, n_events: int, *, hostile_share: float = HOSTILE_SHARE) -> None:
        self._rng = np.random.default_rng(seed)
        self._attacks = np.random.default_rng([seed, 1])
        self._hostile_share = hostile_share
        self._bad_every = max(2, min(round(1 / _BAD_SHARE), n_events // (2 * len(KINDS))))
        self._last = "", 0

    def next(self, number: int, at: float) -> list[Outgoing]:
        """Return the event of a number, together with bad and hostile inputs.

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
        if self._attacks.random() < self._hostile_share:
            sent += self._attack(number, key, at)
        return sent

    def _attack(self, number: int, key: str, at: float) -> list[Outgoing]:
        """Return a hostile event, and now and then an answer about it."""
        rng = self._attacks
        kind = _OWN_CLASS
        if rng.random() >= _CLASSES:
            kind = list(HOSTILE)[int(rng.integers(len(HOSTILE)))]
        is_at_home = kind not in _TOO_MUCH and rng.random() < _AT_HOME
        where = {"key": key if is_at_home else f"{HOSTILE_KEYS.decode()}{kind}"}
        where |= {"version": 1, "event_id": f"hostile-{number:07}"}
        note = f"{HOSTILE_MARK.decode()} {kind}"
        x, y = HOSTILE[kind](number)
        event = {"type": "event", **where, "x": x, "y": y, "occurred_at": at, "note": note}
        if y is None:
            del event["y"]
        record_key = str(where["key"]).encode()
        sent = [Outgoing(topic="events", key=record_key, value=_json({**event, "truth": "hall"}))]
        if rng.random() < _ANSWERED:
            answer_id = f"hostile-{number:07}"
            answer = {"type": "answer", "answer_id": answer_id, **where, "y": {"float": 1e155}}
            value = _json({**answer, "answered_at": at, "note": note})
            sent.append(Outgoing(topic="answers", key=record_key, value=value))
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
    """Parts of one bad input; `last` is the number of an event of the same key."""

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
            "request_id": f"unknown-{number:07}/label",
            "event_id": f"unknown-{number:07}",
            "key": key,
            "y": "hall",
            "answered_at": at,
            "note": self.mark,
        }

    def events(self, value: bytes, **options: Any) -> Outgoing:
        return Outgoing(**{"topic": "events", "key": self.key, "value": value, **options})

    def answers(self, value: bytes, **options: Any) -> Outgoing:
        return Outgoing(**{"topic": "answers", "key": self.key, "value": value, **options})


class _Latin1(UndecodableName):
    """A name that no Kafka client should write, but any can."""

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
    "another key": _event(key="another key"),
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
    "answer of another key": _answer(key="another key"),
    "cancellation of an unknown request": _cancel,
    "null with a strange key": lambda bad: Outgoing(
        topic="consensus", key=f"{bad.mark}\x1fof two parts".encode(), value=None
    ),
}
"""Every kind of unusable input, and how it is made."""

_Hostile = Callable[[int], tuple[_Value, Any]]
_OWN_CLASS = "a class for each event"
_MANY_FEATURES = "hundreds of features"
_TOO_MUCH = (_OWN_CLASS, _MANY_FEATURES)
"""Kinds that would only make honest keys slow."""


def _point(value: Any, y: Any = None) -> tuple[_Value, Any]:
    return {"feature-0": value, "feature-1": 1.0}, y


def _turns(*values: Any) -> Callable[[int], Any]:
    return lambda number: values[number % len(values)]


_EITHER = _turns("hall", "study")
_TINY = _turns(0.0, 1e-155, 3e-155, -2e-155, 1.0)
_LARGE = _turns(1e150, -1e150, 1e100, 1.1e150, -1.7e308, 1e155)
_SMALL = _turns(5e-324, -1e-320, 1e-308, 0.0, -0.0)
_ALIKE = _turns(True, 1, {"float": 1.0}, "1", False, 0, {"float": -0.0}, "")
_TARGETS = _turns({"float": 0.1}, {"float": 2.5}, {"float": 1e155}, {"float": -1.7e308}, 2**62)
_ODD = _turns("\u202ehall", "\u200b", "\ufeff", "e\u0301", "y" * 1000, "\U0010ffff")
_TEXTS = _turns("warm", 1.0, None, True, "", -2)

HOSTILE: dict[str, _Hostile] = {
    "large features": lambda n: _point(_LARGE(n), _EITHER(n)),
    "small features": lambda n: _point(_SMALL(n), _EITHER(n)),
    "tiny spread and a contradiction": lambda n: _point(_TINY(n), _EITHER(n // 5)),
    "one place, labels that switch": lambda n: _point(1.0, _EITHER(n)),
    "large targets": lambda n: _point(float(n % 7), _TARGETS(n)),
    "labels that are nearly the same": lambda n: _point(float(n % 3), _ALIKE(n)),
    "odd labels": lambda n: _point(float(n % 5), _ODD(n)),
    "texts for numbers": lambda n: _point(_TEXTS(n), _EITHER(n)),
    "features that come and go": lambda n: ({f"only-{n % 9}": 1.0} if n % 4 else {}, _EITHER(n)),
    "no label": lambda n: _point(_LARGE(n // 2)),
    _MANY_FEATURES: lambda n: ({f"wide-{i}": float(i * n) for i in range(300)}, _EITHER(n)),
    _OWN_CLASS: lambda n: _point(float(n), f"class {n}"),
}
"""Every kind of readable input that a learner may be unable to handle."""
