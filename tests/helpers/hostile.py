"""Learners that a worker can be configured with, and records that are meant to stop it.

A script holds what one key sends, in order. Nothing in it depends on the worker's output: the ids
of requests follow from those of events (`e1/label`, `e1/challenge/1`), and a reply to a question
that was never asked is just another unusable record.

"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from river.linear_model import LogisticRegression
from river.multiclass import OneVsRestClassifier
from river.preprocessing import StandardScaler

from connectors.topics import Outgoing
from streamgp import SkepticalClassifier
from streamgp.config.build import build_model
from streamgp.config.rules import section
from streamgp.config.settings import Config, Learner, Target
from streamgp.query import AlwaysAsk, AlwaysChallenge

NOW = 1_700_000_000.0
"""The time of all records."""
WARM_UP = 5
"""Events from which scaling is learned, so few that short scripts have events before and after."""

# --- the learners


def _configured(name: str = "gp", *, target: Target = "label", **settings: Any) -> Any:
    learner = {"learn_hyperparameters", "max_points", "window", "drift", "options"}
    options = {key: settings.pop(key) for key in learner & settings.keys()}
    settings = {"query": section("query", "always"), "warm_up": WARM_UP, "seed": 3, **settings}
    return build_model(Config(target=target, learner=Learner(name=name, **options), **settings))


def _one_against_the_rest(*transformers: Any) -> Any:
    learner: Any = OneVsRestClassifier(LogisticRegression())
    for transformer in reversed(transformers):
        learner = transformer | learner
    return SkepticalClassifier(learner, AlwaysAsk(), AlwaysChallenge(), warm_up=WARM_UP, seed=3)


_LOOKING_BACK = {
    "review": section("review", "leave_one_out", every=1, threshold=0.0),
    "reservoir": section("reservoir", "latest", every=1),
    "query": section("query", "random", rate=0.5),
}
_SMALL_ENSEMBLE = {"n_features": 10}
_FOR_NUMBERS: dict[str, Callable[[], Any]] = {
    f"{name}, numbers": lambda name=name, options=options: _configured(
        name, target="number", **options
    )
    for name, options in {
        "gp": {},
        "ensemble": {"options": _SMALL_ENSEMBLE},
        "river.tree.HoeffdingTreeRegressor": {},
        "river.linear_model.LinearRegression": {},
        "river.neighbors.KNNRegressor": {},
        "river.forest.AMFRegressor": {},
    }.items()
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "gp": _configured,
    "gp, all challenged": lambda: _configured(challenge=section("challenge", "always")),
    "gp, paper": lambda: _configured(preset="paper", warm_up=0, query=section("query", "paper")),
    "gp, window and drift": lambda: _configured(
        window=4, drift=True, query=section("query", "skeptical")
    ),
    "gp, bounded": lambda: _configured(max_points=4, learn_hyperparameters=True),
    "gp, looking back": lambda: _configured(**_LOOKING_BACK),
    "ensemble": lambda: _configured("ensemble", options=_SMALL_ENSEMBLE),
    "ensemble, logistic": lambda: _configured(
        "ensemble", options={**_SMALL_ENSEMBLE, "likelihood": "logistic"}
    ),
    "forest": lambda: _configured("forest"),
    "confidence_boosting": lambda: _configured("confidence_boosting"),
    "gradient_boosting": lambda: _configured("gradient_boosting"),
    "privileged": lambda: _configured("privileged", options={"max_points": 20}),
    "privileged, all challenged": lambda: _configured(
        "privileged",
        options={"learn_hyperparameters": False},
        challenge=section("challenge", "always"),
    ),
    "river.forest.AMFClassifier": lambda: _configured("river.forest.AMFClassifier"),
    "river.forest.ARFClassifier": lambda: _configured("river.forest.ARFClassifier"),
    "river.naive_bayes.GaussianNB": lambda: _configured("river.naive_bayes.GaussianNB"),
    "river.neighbors.KNNClassifier": lambda: _configured("river.neighbors.KNNClassifier"),
    "one against the rest": _one_against_the_rest,
    "pipeline": lambda: _one_against_the_rest(StandardScaler()),
    **_FOR_NUMBERS,
}
"""One model of every kind that a worker can have, untrained."""


# --- what is sent


class Script:
    """The records that one key sends.

    Parameters
    ----------
    key
        The key.
    numbers
        Whether targets are numbers.

    Attributes
    ----------
    records
        The records in the order in which they are sent.

    """

    def __init__(self, key: str, *, numbers: bool) -> None:
        self.key = key
        self.numbers = numbers
        self.labels: tuple[Any, Any] = (0.5, 2.5) if numbers else ("a", "b")
        self.records: list[Outgoing] = []

    def event(self, x: Any, y: Any = None, **fields: Any) -> str:
        """Send an event; return its id."""
        event_id = f"e{len(self.records)}"
        event = {"event_id": event_id, "x": x, "occurred_at": NOW, "y": y, **fields}
        self.raw("events", _json({k: v for k, v in event.items() if v is not None}))
        return event_id

    def answer(self, event_id: str, y: Any = None, *, to: str = "label", **fields: Any) -> str:
        """Answer a question about an event, whether or not it was asked; return the answer's id."""
        answer_id = f"a{len(self.records)}"
        answer: dict[str, Any] = {
            "answer_id": answer_id,
            "event_id": event_id,
            "request_id": None if "supersedes" in fields else f"{event_id}/{to}",
            "y": y,
            "declined": y is None,
            "answered_at": NOW,
            **fields,
        }
        self.raw("answers", _json({k: v for k, v in answer.items() if v is not None}))
        return answer_id

    def plain(self) -> Outgoing:
        """Return an ordinary event that is not part of the script."""
        return Outgoing(topic="events", key=self.key.encode(), value=_json({"x": {"u": 1.0}}))

    def converse(self, x: Any, y: Any, again: Any = None, **fields: Any) -> str:
        """Send an event, answer the question about it, and the challenge; return the event's id."""
        event_id = self.event(x)
        self.answer(event_id, y, **fields)
        self.answer(event_id, y if again is None else again, to="challenge/1", **fields)
        return event_id

    def raw(self, topic: Any, value: bytes | None, key: bytes | None = None) -> None:
        """Send bytes."""
        record_key = self.key.encode() if key is None else key
        self.records.append(Outgoing(topic=topic, key=record_key, value=value))

    def warm_up(self, scale: float = 1.0, n: int = WARM_UP + 1) -> None:
        """Send ordinary events with their labels, of a given magnitude."""
        for i in range(n):
            self.event({"u": scale * i, "v": scale * (i % 3)}, self.labels[i % 2])

    def round_off(self) -> None:
        """Send ordinary events again, as the key goes on."""
        for i in range(2):
            self.converse({"u": 1.0 + i, "v": 0.5}, self.labels[i])


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


EXTREMES = (
    1e99, -1e100, 1.1e100, -1e149, 1e150, -1.1e150, 1e154, -1e155, 1e200, -1.7e308, 1.7e308,
    1e-100, -1e-155, 1e-163, -1e-200, 1e-308, -1e-320, 5e-324,
)  # fmt: skip
"""Numbers at which sums, squares and quotients leave the range of floats."""


def _features_at_the_ends(script: Script) -> None:
    for i, value in enumerate(EXTREMES):
        script.event({"u": value, "v": 1.0}, script.labels[i % 2])
    script.warm_up()
    for i, value in enumerate(EXTREMES):
        script.converse({"u": 1.0, "v": value}, script.labels[i % 2], script.labels[i // 2 % 2])


def _features_at_the_ends_later(script: Script) -> None:
    script.warm_up()
    for i, value in enumerate(EXTREMES):
        script.event({"u": value, "v": -value}, script.labels[i % 2])


def _spread(scale: float) -> Callable[[Script], None]:
    def kind(script: Script) -> None:
        first, second = script.labels
        for i in range(WARM_UP + 1):
            script.event({"u": scale * i, "v": 1.0}, first)
        script.converse({"u": 1.0, "v": 1.0}, second)
        script.event({"u": 1.0, "v": 1.0}, second)
        script.converse({"u": scale, "v": 1.0}, second, first)
        script.event({"u": -1e150, "v": 1.0}, first)

    return kind


def _zeros(script: Script) -> None:
    for i in range(12):
        script.event({"u": -0.0 if i % 2 else 0.0, "v": -0.0}, script.labels[i % 2])
    script.converse({"u": -0.0}, -0.0 if script.numbers else "a", 0.0 if script.numbers else "b")


def _targets_at_the_ends(script: Script) -> None:
    for i, y in enumerate((0.1, 2.5, *EXTREMES)):
        script.event({"u": 0.3, "v": 0.2}, {"float": y})
        if i % 3 == 0:
            script.converse({"u": float(i), "v": 0.2}, {"float": -y}, {"float": y})


def _one_target(script: Script) -> None:
    for y in (0.1, 2.5, 1e155):
        script.event({"u": 0.3, "v": 0.2}, y)
    script.event({"u": 0.3, "v": 0.2}, 0.7)


def _one_answer(script: Script) -> None:
    script.warm_up()
    script.converse({"u": 0.3, "v": 0.2}, 1e155)
    script.converse({"u": 0.4, "v": 0.2}, 0.1, 1e155)
    script.event({"u": 0.4, "v": 0.2})


def _targets_within_the_range(script: Script) -> None:
    for i, y in enumerate((1e100, -1e100, 0.0, 1e99, 1e-100, 1e100, 1.0)):
        script.converse({"u": float(i % 3), "v": 0.2}, y, -y)
        script.event({"u": 0.1 * i}, y)


def _mixed_labels(script: Script) -> None:
    labels = (True, 1, {"float": 1.0}, 1.0, "1", False, 0, {"float": 0.0}, -0.0, "0", "", "True")
    for i, y in enumerate(labels):
        script.event({"u": float(i % 5), "v": 1.0}, y)
        script.converse({"u": float(i % 4), "v": 0.0}, y, labels[i % 5])


def many_labels(n: int) -> Callable[[Script], None]:
    """Return a kind of script in which every event has a class of its own."""

    def kind(script: Script) -> None:
        for i in range(n):
            script.event({"u": float(i), "v": 1.0}, float(i) if script.numbers else f"class {i}")

    return kind


def many_features(n: int) -> Callable[[Script], None]:
    """Return a kind of script in which some events have `n` features."""

    def kind(script: Script) -> None:
        wide = {f"feature {i}": float(i) for i in range(n)}
        script.event(wide, script.labels[0])
        script.warm_up()
        script.event(wide, script.labels[1])
        script.converse({"u": 1.0, "feature 9": 3.0}, script.labels[0])

    return kind


def _no_features(script: Script) -> None:
    for i in range(WARM_UP + 3):
        script.event({}, script.labels[i % 2])
        script.converse({}, script.labels[i // 2 % 2])
    script.event([], script.labels[0])


def _switched_labels(script: Script) -> None:
    for i in range(12):
        script.event({"u": 1.0, "v": 2.0}, script.labels[i % 2])
        script.converse({"u": 1.0, "v": 2.0}, script.labels[(i + 1) % 2], script.labels[i % 2])


def _constant(script: Script) -> None:
    for _ in range(WARM_UP + 6):
        script.event({"u": 7.0, "v": 1e-155}, script.labels[0])
    script.converse({"u": 7.0, "v": 1e155}, script.labels[1])
    script.converse({"u": 7.0 + 2e-15, "v": 0.0}, script.labels[1])


def _collinear(script: Script) -> None:
    for i in range(16):
        u = 1.0 + i * 2.3e-16
        script.event({"u": u, "v": 1e8 * u, "w": -u}, script.labels[i % 2])


def _long_texts(script: Script) -> None:
    script.warm_up()
    for n in (1024, 1025, 100_000):
        script.event({"u": 1.0}, "y" * n)
        script.event({"n" * n: 1.0, "u": "t" * n}, script.labels[0])
        script.event({"u": 1.0}, event_id="i" * n)
        script.raw("events", _json({"x": {"u": 1.0}}), key=b"k" * n)
        script.converse({"u": 1.0}, "é" * n, annotator="a" * n)


_TEXTS = (
    "\x00", "a\x00b", "\ud800", "\udfff\ud800", "\u202eabc", "\u200b", "\ufeff", "\U0010ffff",
    "e\u0301", "\x1f", "\x7f", "\x9b2J", "/label", "e1/challenge/1", "None", "nan",
)  # fmt: skip


def _odd_texts(script: Script) -> None:
    script.warm_up()
    for text in _TEXTS:
        script.event({"u": 1.0}, text)
        script.event({text: 1.0, "u": text}, script.labels[0])
        script.event({"u": 1.0}, event_id=text)
        script.converse({"u": 1.0}, text, annotator=text)
        script.raw("events", _json({"x": {"u": 1.0}}), key=text.encode(errors="surrogatepass"))


_LITERALS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" + b"0" * 400, b"1e-999",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"1e400",
    b"0." + b"0" * 400 + b"1", b"null", b"true", b'{"float":1e999}', b'{"float":NaN}',
    b'{"float":"1"}', b"[1]", b'"\\ud800"', b"-0",
)  # fmt: skip


def _literals(script: Script) -> None:
    script.warm_up()
    for literal in _LITERALS:
        for template in (
            b'{"x": {"u": HERE}}',
            b'{"x": {"u": 1.0}, "y": HERE}',
            b'{"x": [["u", HERE]]}',
            b'{"x": [[HERE, 1.0]]}',
            b'{"x": {"u": 1.0}, "occurred_at": HERE}',
            b'{"x": {"u": 1.0}, "truth": HERE}',
        ):
            script.raw("events", template.replace(b"HERE", literal))
        event_id = script.event({"u": 1.0})
        of_event = b'{"event_id": "%b", ' % event_id.encode()
        for rest in (b'"y": HERE}', b'"y": 1.5, "std": HERE}', b'"y": 1.5, "answered_at": HERE}'):
            script.raw("answers", (of_event + rest).replace(b"HERE", literal))


def _nested(depth: int) -> Any:
    value: Any = 1.0
    for i in range(depth):
        value = {"deeper": value} if i % 2 else [value]
    return value


_PRIVILEGED: tuple[Any, ...] = (
    {}, {"d": _nested(14)}, {"d": _nested(15)}, {"d": _nested(16)}, {"d": _nested(40)},
    {"d": _nested(900)}, {"response_s": 1e308}, {"response_s": -1e308}, {"response_s": 1e-320},
    {"response_s": "long"}, {"response_s": None}, {"response_s": [0.5]}, {"response_s": True},
    {"confidence": -5}, {"confidence": "1"}, {"confidence": 1e155}, {"\x00": 1.0}, {"": 0.5},
    [1.0], "text", 7, {"response_s": 0.5, "confidence": 1.0}, {"response_s": 1e-155},
)  # fmt: skip


def _privileged(script: Script) -> None:
    for i, privileged in enumerate(_PRIVILEGED):
        first, second = script.labels[i % 2], script.labels[i // 2 % 2]
        event_id = script.event({"u": float(i % 4), "v": 1.0})
        script.answer(event_id, first, privileged=privileged)
        script.answer(event_id, second, to="challenge/1", privileged=_PRIVILEGED[-1 - i])


def _ids_used_again(script: Script) -> None:
    script.warm_up()
    for i in range(6):
        script.event({"u": float(i)}, script.labels[i % 2], event_id=f"e{i % 3}")
        script.answer(f"e{i % 2}", script.labels[i % 2], answer_id="a")
        script.answer("e1", script.labels[0], answer_id="e1", supersedes="e1")
        script.event({"u": float(i)}, event_id="e1/label")
        script.answer("e1/label", script.labels[0], answer_id=f"e1/{i}")


def _stated_std(script: Script) -> None:
    script.warm_up()
    for std in (1e-320, 1e-300, 1e-155, 1e-8, 1.0, 1e155, 1e300, 1.7e308, 0.0, -0.0, -1.0, "1"):
        script.converse({"u": 1.0, "v": 0.5}, 1.5, 2.5, std=std)
        script.converse({"u": 1.0, "v": 0.5}, 1.5, std=std, annotator="ann")
        script.event({"u": 1.0, "v": 0.5})


def _odd_times(script: Script) -> None:
    script.warm_up()
    for at in (1e18, -1e18, -6.2e10, 2.5e11, 0, -0.0, 5e-324, NOW + 86_400, NOW + 86_401, 1e308):
        event_id = script.event({"u": 1.0}, occurred_at=at)
        script.answer(event_id, script.labels[0], answered_at=at)
        script.answer(script.event({"u": 2.0}), script.labels[1], answered_at=at)
        script.raw("answers", _json({"type": "label.cancel", "request_id": "e1/label", "at": at}))
        script.event({"u": 2.0}, script.labels[1], occurred_at=at)


def _kinds_that_change(script: Script) -> None:
    values = (1.0, "warm", True, None, 3, "", "1.0", -2.5, False, "warm")
    for i in range(2 * len(values)):
        x = {"u": values[i % len(values)], "v": values[i // 2 % len(values)]}
        script.event(x, script.labels[i % 2])
        if i % 3 == 0:
            script.converse(x, script.labels[i // 2 % 2])


def _all_texts(script: Script) -> None:
    for i in range(WARM_UP + 4):
        script.event({"place": f"p{i % 3}"}, script.labels[i % 2])
    script.converse({"place": 1e150}, script.labels[0])
    script.converse({"place": "elsewhere"}, script.labels[1])


def _features_that_come_and_go(script: Script) -> None:
    for i in range(20):
        script.event({f"only {i}": float(i), "u": 1.0} if i % 3 else {}, script.labels[i % 2])
        script.converse({f"only {i - 1}": -1.0}, script.labels[i // 2 % 2])


def _named_by_values(script: Script) -> None:
    names = (1, True, {"float": 1.0}, 1.5, "1", "", 2**62, -1, False, 0, {"float": 1e308})
    for i, name in enumerate(names):
        script.event([[name, 1.0], ["u", 2.0]], script.labels[i % 2])
        script.event([[name, 1.0], [name, 2.0]], script.labels[i % 2])
    script.event([[name, 1.0] for name in names], script.labels[0])


def _corrections(script: Script) -> None:
    first, second = script.labels
    script.warm_up()
    for i, y in enumerate((1e155, {"float": 1e-320}, "text", True, first, second)):
        event_id = script.event({"u": float(i), "v": 1.0}, first)
        changed = script.answer(event_id, y, supersedes=event_id)
        script.answer(event_id, second, supersedes=changed)
        script.answer(event_id, supersedes=changed)
        script.raw("consensus", None, key=f"{script.key}\x1f{event_id}\x1f{i % 3}".encode())
        script.answer(event_id, y, supersedes=event_id)
        script.raw("consensus", None, key=f"{script.key}\x1fe{i}\x1f0".encode())
        script.converse({"u": 1e149, "v": -1.0}, y, first)
    script.raw("consensus", None, key=b"\x1f\x1f")
    script.raw("consensus", None, key=f"{script.key}\x1fe1\x1f{10**17}".encode())


def _left_open(script: Script) -> None:
    """Send events whose questions expire; contested labels are learned then."""
    script.warm_up()
    for i, value in enumerate((*EXTREMES, 1.0)):
        event_id = script.event({"u": value, "v": 1.0})
        script.answer(event_id, {"float": value} if script.numbers else script.labels[i % 2])
    for i, y in enumerate((1e155, {"float": 1e-320}, "text", True)):
        script.event({"u": float(i)}, y)


def _messages_that_are_none(script: Script) -> None:
    for value in (b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 5000, b"{" * 40, b'{"x":{}'):
        script.raw("events", value)
        script.raw("answers", value)


KINDS: dict[str, Callable[[Script], None]] = {
    "features at the ends of floats": _features_at_the_ends,
    "features at the ends of floats, later": _features_at_the_ends_later,
    "spread of 1e-155": _spread(1e-155),
    "spread of 1e-154": _spread(1e-154),
    "spread of 1e-320": _spread(1e-320),
    "spread of 1e149": _spread(1e149),
    "zeros of both signs": _zeros,
    "targets at the ends of floats": _targets_at_the_ends,
    "one target of 1e155": _one_target,
    "one answer of 1e155": _one_answer,
    "targets within the range": _targets_within_the_range,
    "mixed labels": _mixed_labels,
    "many classes": many_labels(40),
    "many features": many_features(500),
    "no features": _no_features,
    "labels that switch": _switched_labels,
    "constant": _constant,
    "collinear": _collinear,
    "long texts": _long_texts,
    "odd texts": _odd_texts,
    "odd literals": _literals,
    "privileged": _privileged,
    "ids used again": _ids_used_again,
    "stated standard deviations": _stated_std,
    "odd times": _odd_times,
    "kinds that change": _kinds_that_change,
    "texts only": _all_texts,
    "features that come and go": _features_that_come_and_go,
    "named by values": _named_by_values,
    "corrections": _corrections,
    "left open": _left_open,
    "messages that are none": _messages_that_are_none,
}
"""Every kind of hostile script."""


def hostile(kind: str, *, numbers: bool) -> list[Outgoing]:
    """Return the records of a hostile key."""
    made = Script(f"hostile, {kind}", numbers=numbers)
    KINDS[kind](made)
    made.round_off()
    return made.records


def honest(key: str, *, numbers: bool, n: int = 16) -> list[Outgoing]:
    """Return the records of a well-meaning key: answers, one in five wrong, and corrections."""
    rng = random.Random(key)
    made = Script(key, numbers=numbers)
    for i in range(n):
        which = rng.randrange(2)
        x = {"u": round(rng.gauss(3.0 * which, 1.0), 3), "v": round(rng.gauss(0.0, 1.0), 3)}
        given = which if rng.random() < 0.8 else 1 - which
        if i % 4 == 0:
            made.event(x, made.labels[given])
            continue
        event_id = made.converse(x, made.labels[given], made.labels[which], annotator="ann")
        if i % 5 == 0:
            made.answer(event_id, made.labels[which], supersedes=f"a{len(made.records) - 2}")
    return made.records


def phases(*scripts: list[Outgoing]) -> Iterator[list[Outgoing]]:
    """Cut scripts where they switch between events and the records that follow from these.

    A worker polls answers before events; records of different phases are never polled together.
    """
    pieces = [
        [list(piece) for _, piece in groupby(records, lambda record: record.topic == "events")]
        for records in scripts
    ]
    for i in range(max(map(len, pieces))):
        for is_event in (True, False):
            found = [
                record
                for piece in pieces
                if i < len(piece) and (piece[i][0].topic == "events") is is_event
                for record in piece[i]
            ]
            if found:
                yield found
