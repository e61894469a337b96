"""Annotators who dispute: inputs for a deployment with quarantine and second questions.

Four annotators and a supervisor name the rooms of the WiFi log. One of them, `eve`, says the next
room after the true one and insists on it. What an annotator says about an event depends on both
alone; who answers what, and when, is drawn. They answer late, twice, for others, and questions that
were withdrawn; they correct themselves and take answers back.

Each key has one turn at a time, a few records of one topic, and the next one is written only after
the last was processed. So the order of all inputs of a key is known and can be replayed to another
worker: a `Script` keeps it.

"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from connectors.topics import Outgoing, Record, TopicName
from connectors.wire.inbound import RetractionRequest, read
from connectors.wire.state_records import SEPARATOR
from streamgp.common.counter_rng import uniform
from streamgp.datasets import WiFiRooms
from streamgp.interactive.people import People
from tests.helpers.topics import again

from .replayed import Step

NUMBER = "storm"
"""The header with the number of an input."""
LIAR, SUPERVISOR = "eve", "sue"
HONEST = ("ann", "bob", "cat")
_PEOPLE = (*HONEST, LIAR, SUPERVISOR)
# The liar answers as often as two others.
_WEIGHTS = (3, 3, 3, 6, 1)
_ERRS = 0.06
_STEP_S = 10.0


def outgoing(topic: TopicName, key: str, value: dict[str, Any]) -> Outgoing:
    """Return the record of an input, as other programs write it."""
    data = msgspec.json.encode({"version": 1, "key": key, **value})
    return Outgoing(topic=topic, key=key.encode(), value=data)


@dataclass
class Scene:
    """The conversation about the events of one key.

    Parameters
    ----------
    key
        The key.
    events
        Features and truths of its events.
    seed
        Seed of all draws.
    start
        The time of the first event.

    Attributes
    ----------
    n_sent
        Number of events that were sent.
    asked
        The open questions, by id.
    ended
        Questions that were withdrawn.

    """

    key: str
    events: list[tuple[dict[str, float], int]]
    seed: int
    start: float
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)

    # _given      answers with a label, in order
    # _last       who labelled each event last
    # _n_answers  number of answers so far
    def __post_init__(self) -> None:
        self._rng = random.Random(f"{self.seed} {self.key}")
        self._given: list[dict[str, Any]] = []
        self._last: dict[str, str | None] = {}
        self.n_sent = self._n_answers = 0
        self._rooms = sorted({room for _, room in self.events})

    def hear(self, message: dict[str, Any]) -> None:
        """Take the next message of the topic of requests."""
        request_id, kind = message["request_id"], message["type"]
        if kind in ("label.request", "label.challenge"):
            self.asked[request_id] = message
        elif request_id in self.asked:
            self.ended[request_id] = self.asked.pop(request_id)

    def turn(self, n_events: int) -> list[Outgoing]:
        """Return the next records; none if `n_events` were sent and nothing is left to say."""
        rng = self._rng
        can_send = self.n_sent < min(n_events, len(self.events))
        if not can_send and not self.asked:
            return []
        if can_send and (not self.asked or rng.random() < 0.5):
            records = [self._event() for _ in range(rng.randint(1, 4))]
        else:
            records = [self._answer() for _ in range(rng.randint(1, 6))]
        return [record for record in records if record is not None] or self.turn(n_events)

    def truth(self, event_id: str) -> int:
        """Return the true room of an event."""
        return self.events[int(event_id.rpartition("-")[2])][1]

    def _event(self) -> Outgoing | None:
        if self.n_sent == len(self.events):
            return None
        n, self.n_sent = self.n_sent, self.n_sent + 1
        x, _ = self.events[n]
        at = self.start + _STEP_S * n
        return outgoing(
            "events", self.key, {"event_id": f"{self.key}-{n}", "x": x, "occurred_at": at}
        )

    @property
    def _now(self) -> float:
        return self.start + _STEP_S * self.n_sent + 1e-4 * _STEP_S * self._n_answers

    def _says(self, who: str | None, event_id: str, once_more: bool = False) -> int:
        """Return the label that an annotator gives an event."""
        truth = self.truth(event_id)
        at = self._rooms.index(truth)
        if who == LIAR:
            return self._rooms[(at + 1) % len(self._rooms)]
        if who == SUPERVISOR or once_more:
            return truth
        errs = uniform(self.seed, f"{who} {event_id}", "errs") < _ERRS
        return self._rooms[at - 1] if errs else truth

    def _answer(self) -> Outgoing | None:
        """Return an answer to a question, or another one; None if there is nothing to say."""
        rng = self._rng
        draw = rng.random()
        if draw < 0.04 and self._given:  # the same again
            return outgoing("answers", self.key, rng.choice(self._given[-5:]))
        if draw < 0.12 and self._given:
            return self._correction(rng.choice(self._given[-30:]))
        if draw < 0.15 and self.n_sent:
            event_id = f"{self.key}-{rng.randrange(self.n_sent)}"
            who = rng.choice(_PEOPLE)
            return self._word(who, event_id, {"y": self._says(who, event_id)})
        if draw < 0.18 and self.asked:
            request_id = rng.choice(list(self.asked))
            value = {"type": "label.cancel", "request_id": request_id, "why": "a try"}
            return outgoing("answers", self.key, {**value, "at": self._now})
        if draw < 0.24 and self.ended:
            return self._reply(self.ended.pop(rng.choice(list(self.ended))))
        if not self.asked:
            return None
        # The latest questions are not always answered first: some wait until much has changed.
        request_id = rng.choice(list(self.asked)[: rng.choice((2, 8, 40))])
        question = self.asked[request_id]
        if rng.random() < 0.9:
            del self.asked[request_id]
        return self._reply(question)

    def _reply(self, question: dict[str, Any]) -> Outgoing:
        rng, event_id = self._rng, question["event_id"]
        named = {"request_id": question["request_id"]}
        if question["type"] == "label.challenge":
            who = self._last.get(event_id)
            if rng.random() < 0.1:
                who = rng.choice(_PEOPLE)
            if rng.random() < 0.1:
                return self._word(who, event_id, {**named, "declined": True})
            return self._word(who, event_id, {**named, "y": self._says(who, event_id, True)})
        who = question.get("annotator")
        if who is None or rng.random() < 0.05:
            excluded = question.get("excluded") or ()
            able = [name for name in _PEOPLE if name not in excluded or rng.random() < 0.2]
            weights = [_WEIGHTS[_PEOPLE.index(name)] for name in able]
            who = rng.choices(able, weights)[0] if able and rng.random() < 0.98 else None
        if rng.random() < 0.05:
            return self._word(who, event_id, {**named, "declined": True})
        return self._word(who, event_id, {**named, "y": self._says(who, event_id)})

    def _correction(self, answer: dict[str, Any]) -> Outgoing:
        rng, event_id = self._rng, answer["event_id"]
        who = rng.choice([answer.get("annotator")] * 6 + [SUPERVISOR, *_PEOPLE])
        named = {"supersedes": answer["answer_id"]}
        if rng.random() < 0.3:
            return self._word(who, event_id, {**named, "declined": True})
        y = self._says(who, event_id, True)
        if who == LIAR and rng.random() < 0.5:  # another lie
            y = self._rooms[(self._rooms.index(y) + 1) % len(self._rooms)]
        return self._word(who, event_id, {**named, "y": y})

    def _word(self, who: str | None, event_id: str, said: dict[str, Any]) -> Outgoing:
        self._n_answers += 1
        value = {
            "type": "answer",
            "answer_id": f"{self.key}-a{self._n_answers}",
            "event_id": event_id,
            "annotator": who,
            "answered_at": self._now,
            **said,
        }
        if "y" in said:
            self._given.append(value)
            if "request_id" in said or "supersedes" not in said:
                self._last[event_id] = who
        return outgoing("answers", self.key, value)


def scenes(n_keys: int, n_events: int, seed: int, start: float) -> dict[str, Scene]:
    """Return `n_keys` scenes, each about different events of the WiFi log, with rooms mixed."""
    readings = list(islice(WiFiRooms(), 2000))
    rng = random.Random(seed)
    found = {}
    for n in range(n_keys):
        key = f"phone-{n}"
        drawn = rng.sample(readings, n_events)
        events = [({str(name): float(v) for name, v in x.items()}, int(y)) for x, y in drawn]
        found[key] = Scene(key, events, seed, start)
    return found


class Script:
    """Inputs in the order in which they were processed.

    Attributes
    ----------
    n
        Number of inputs that were written.

    """

    # _parts  numbers of the inputs of each turn; the rules from then on; or whose labels were taken
    #         back (False) or restored (True)
    def __init__(self) -> None:
        self.n = 0
        self._parts: list[range | People | tuple[str, bool]] = []

    def turn(self, records: Iterable[Outgoing]) -> list[Outgoing]:
        """Add a turn; return its records, numbered."""
        numbered = [
            replace(record, headers=[(NUMBER, b"%d" % n)])
            for n, record in enumerate(records, self.n)
        ]
        self._parts.append(range(self.n, self.n + len(numbered)))
        self.n += len(numbered)
        return numbered

    def note(self, part: People | tuple[str, bool]) -> None:
        """Add new rules, or a retraction or its undo, while nothing else is written."""
        self._parts.append(part)

    def steps(self, records: Iterable[Record]) -> Iterator[Step]:
        """Yield all inputs as the topics hold them: those that a broker lost were sent again."""
        inputs: dict[int, list[Record]] = {}
        calls: dict[tuple[str, bool], dict[bytes, list[Record]]] = {}
        for record in records:
            if record.topic in ("events", "answers"):
                inputs.setdefault(number_of(record), []).append(record)
            elif record.topic == "consensus":
                said = read(record, keyed=True)
                if isinstance(said, RetractionRequest):
                    call = (record.key or b"").rpartition(SEPARATOR.encode())[2]
                    same = calls.setdefault((said.annotator, said.undo), {})
                    same.setdefault(call, []).append(record)
        for part in self._parts:
            if isinstance(part, People):
                yield part
                continue
            if isinstance(part, range):
                found = [record for n in part for record in inputs.get(n, ())]
                found.sort(key=lambda record: record.offset)
            else:
                same = calls.get(part, {})
                # There may be no such label, and nothing to ask for.
                found = same.pop(min(same, key=int)) if same else []
            for each in found:
                yield again(each), each.at


def number_of(record: Record) -> int:
    """Return the number that a record has among the inputs of a script."""
    return int(dict(record.headers)[NUMBER])
