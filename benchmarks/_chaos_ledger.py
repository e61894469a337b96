"""What the topics hold when all is over, and what is wrong with it.

Nothing is asked but the topics, read as committed. What went in says what must have come out: one
prediction for each event, one end for each question, one line for each label learned, one dead
letter for each input that could not be used.

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec

from benchmarks._chaos_talks import Asked, Talk
from benchmarks._chaos_traffic import MARK
from connectors.records import Record

GRACE_S = 5.0
"""How long after its expiry a question may still be open."""

_decode = msgspec.json.decode
_Place: TypeAlias = tuple[str, int, int]
_Name: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found.

    Parameters
    ----------
    events, answers, requests, challenges, learned
        How much there was: good events, answers and cancellations, questions of both kinds, lines
        of the consensus log.
    open
        Questions that were still open at the end, within their time.
    fed
        How many numbers of events there were.
    lost, duplicated
        Predictions that are missing, and those that are too many.
    dead_expected, dead_found, dead_too_many
        Inputs that cannot be used; those of them that are dead letters exactly once, with the
        original bytes; all other dead letters.
    ends_wrong
        Questions that have not exactly one end.
    lines_wrong
        Lines of the consensus log that are missing or too many.
    gaps
        Lines that do not follow the line before.
    counts_wrong
        Predictions whose number of examples is none that the log allows.
    longest_stall_s
        For how long nothing came out of a partition though an event lay there.

    """

    events: int
    answers: int
    requests: int
    challenges: int
    learned: int
    open: int
    fed: int
    lost: int
    duplicated: int
    dead_expected: int
    dead_found: int
    dead_too_many: int
    ends_wrong: int
    lines_wrong: int
    gaps: int
    counts_wrong: int
    longest_stall_s: float
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Event:
    at: float
    occurred_at: float
    y: Any


class Ledger:
    """Takes all records of all topics but `state`, those of a partition in their order.

    Parameters
    ----------
    horizon_s
        How long events are remembered.
    is_sampled
        Keys whose predictions are kept whole, with the features.

    Attributes
    ----------
    lines
        Of each key the lines of the consensus log.
    predictions
        Of each sampled key the predictions.
    features
        Of each sampled key the features of its events, by event id.

    """

    # _n_predictions  by event
    # _counts         of each key how many examples its predictions name, in their order
    # _told           of each partition time and event of its predictions, in their order
    # _asked          by event
    # _learned_at     of each event when its lines were written
    # _answers        in the order of each partition
    # _bad            inputs that must be dead letters
    # _letters        dead letters by where their input lay; None for a timer
    def __init__(
        self, *, horizon_s: float, is_sampled: Callable[[str], bool] = lambda _: True
    ) -> None:
        self.lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.predictions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.features: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
        self._horizon_s = horizon_s
        self._is_sampled = is_sampled
        self._events: dict[_Name, _Event] = {}
        self._numbers: set[int] = set()
        self._n_predictions: dict[_Name, int] = defaultdict(int)
        self._counts: dict[str, list[int]] = defaultdict(list)
        self._told: dict[int, list[tuple[float, _Name]]] = defaultdict(list)
        self._asked: dict[_Name, Asked] = defaultdict(Asked)
        self._learned_at: dict[_Name, list[float]] = defaultdict(list)
        self._answers: dict[int, list[Record]] = defaultdict(list)
        self._bad: dict[_Place, Record] = {}
        self._letters: dict[_Place | None, list[Record]] = defaultdict(list)
        self._take = {
            "events": self._take_event,
            "answers": self._take_answer,
            "predictions": self._take_prediction,
            "requests": self._take_request,
            "consensus": self._take_line,
            "dead-letters": self._take_letter,
        }

    def take(self, record: Record) -> None:
        """Take the next record of its partition."""
        if MARK in (record.value or b"") or MARK in (record.key or b""):
            if record.topic != "dead-letters":
                self._bad[_place(record)] = record
                return
        elif record.value is None:
            return
        self._take[record.topic](record)

    def findings(self, stopped_at: float) -> Findings:
        """Return what is wrong.

        Parameters
        ----------
        stopped_at
            When the workers were told to stop; what expires before must have expired.

        """
        examples: list[str] = []
        talks, n_answers = self._hold_talks()
        n_letters = sum(map(len, self._letters.values()))
        unfound = [place for place, record in self._bad.items() if not self._is_buried(record)]
        n_found = len(self._bad) - len(unfound)
        strays = [place for place in self._letters if place not in self._bad]
        lost = [name for name in self._events if not self._n_predictions.get(name)]
        extra = {
            name: n - (name in self._events)
            for name, n in self._n_predictions.items()
            if n > (name in self._events)
        }
        ends = list(self._wrong_ends(talks, stopped_at))
        n_open = sum(is_open for _, is_open in ends)
        endless = [what for what, is_open in ends if not is_open]
        lines = self._wrong_lines(talks)
        gaps = list(self._gaps())
        counts = list(self._wrong_counts())
        for what, names in {
            "no prediction": lost,
            "predicted more than once": list(extra),
            "no dead letter": unfound,
            "dead letter without need": strays,
            "not exactly one end": endless,
            "lines of the log missing (-) or too many": list(lines.items()),
            "gap in the log": gaps,
            "number of examples that the log does not allow": counts,
        }.items():
            examples += [f"{what}: {name}" for name in names[:5]]
        asked = self._asked.values()
        n_challenges = sum(sum("/challenge/" in r for r in a.expires_at) for a in asked)
        return Findings(
            events=len(self._events),
            answers=n_answers,
            requests=sum(len(a.expires_at) for a in asked) - n_challenges,
            challenges=n_challenges,
            learned=sum(map(len, self.lines.values())),
            open=n_open,
            fed=len(self._numbers),
            lost=len(lost),
            duplicated=sum(extra.values()),
            dead_expected=len(self._bad),
            dead_found=n_found,
            dead_too_many=n_letters - n_found,
            ends_wrong=len(endless),
            lines_wrong=sum(map(abs, lines.values())),
            gaps=len(gaps),
            counts_wrong=len(counts),
            longest_stall_s=self._longest_stall(),
            examples=examples,
        )

    # --- taking

    def _take_event(self, record: Record) -> None:
        value = _decode(record.value or b"")
        key = _key(record)
        event_id = value.get("event_id", f"events:{record.partition}:{record.offset}")
        self._numbers.add(value["n"])
        occurred_at = value.get("occurred_at", record.at)
        known = self._events.get((key, event_id))
        if known is not None:
            self._bad[_place(record)] = record
            return
        self._events[key, event_id] = _Event(record.at, occurred_at, value.get("y"))
        if self._is_sampled(key):
            self.features[key][event_id] = value["x"]

    def _take_answer(self, record: Record) -> None:
        self._answers[record.partition].append(record)

    def _take_prediction(self, record: Record) -> None:
        value = _decode(record.value or b"")
        key = _key(record)
        name = key, value["event_id"]
        self._n_predictions[name] += 1
        self._counts[key].append(value["n_learned"])
        self._told[record.partition].append((record.at, name))
        if self._is_sampled(key):
            self.predictions[key].append(value)

    def _take_request(self, record: Record) -> None:
        value = _decode(record.value or b"")
        request_id = value["request_id"]
        asked = self._asked[_key(record), _event_of(request_id)]
        if value["type"] == "expired":
            asked.expire(request_id, record.at)
        elif value["type"] == "label.cancel":
            asked.cancelled[request_id] += 1
        else:
            asked.ask(request_id, value.get("expires_at"), record.at)

    def _take_line(self, record: Record) -> None:
        line = _decode(record.value or b"")
        self.lines[line["key"]].append(line)
        self._learned_at[line["key"], line["event_id"]].append(record.at)

    def _take_letter(self, record: Record) -> None:
        headers = dict(record.headers)
        if "dlq.topic" not in headers:
            self._letters[None].append(record)
            return
        where = (headers[f"dlq.{name}"].decode() for name in ("topic", "partition", "offset"))
        topic, partition, offset = where
        self._letters[topic, int(partition), int(offset)].append(record)

    # --- judging

    def _hold_talks(self) -> tuple[dict[_Name, Talk], int]:
        """Hold all conversations once more; what they refuse must be a dead letter."""
        talks = {
            name: Talk(name[1], event.y, self._asked.get(name, Asked()))
            for name, event in self._events.items()
        }
        n_answers = 0
        for record in (record for records in self._answers.values() for record in records):
            n_answers += 1
            value = _decode(record.value or b"")
            is_cancel = value["type"] == "label.cancel"
            event_id = _event_of(value["request_id"]) if is_cancel else value["event_id"]
            name = _key(record), event_id
            event = self._events.get(name)
            if event is None or self._is_forgotten(record, value, event):
                self._bad[_place(record)] = record
                continue
            talk = talks[name]
            verdict = talk.cancel(value["request_id"]) if is_cancel else talk.hear(value)
            if verdict == "refused":
                self._bad[_place(record)] = record
        return talks, n_answers

    def _is_forgotten(self, record: Record, value: dict[str, Any], event: _Event) -> bool:
        """Whether an answer came when its event was forgotten; the dead letter tells when it came.

        Nothing else can be said of it: how long it lay before it was read is in no topic.
        """
        end = event.occurred_at + self._horizon_s
        letters = self._letters.get(_place(record), [])
        return value.get("answered_at", end) > end or any(letter.at > end for letter in letters)

    def _is_buried(self, record: Record) -> bool:
        """Whether an input is a dead letter exactly once, with its bytes."""
        letters = self._letters.get(_place(record), [])
        return [_bytes(letter) for letter in letters] == [_bytes(record)]

    def _wrong_ends(
        self, talks: dict[_Name, Talk], stopped_at: float
    ) -> Iterator[tuple[str, bool]]:
        """Find questions without exactly one end, and whether they are open within their time."""
        for name, asked in self._asked.items():
            talk = talks.get(name) or Talk(name[1], None, asked)
            if asked.n_twice:
                yield f"{name} was asked twice", False
            for request_id in {*asked.expires_at, *asked.expired, *asked.cancelled}:
                n_ends = asked.expired[request_id] + talk.ended[request_id]
                is_told = asked.cancelled[request_id] == talk.cancelled[request_id]
                is_over = self._is_over(name, asked, request_id)
                if request_id in asked.expires_at and n_ends + is_over == 1 and is_told:
                    continue
                expires_at = asked.expires_at.get(request_id)
                in_time = expires_at is None or expires_at > stopped_at - GRACE_S
                is_open = request_id in asked.expires_at and n_ends == 0 and is_told and in_time
                yield f"{name[0]}: {request_id}", is_open

    def _is_over(self, name: _Name, asked: Asked, request_id: str) -> bool:
        """Whether something came of a question before it expired: then it has ended before."""
        expired_at = asked.expired_at.get(request_id)
        if expired_at is None:
            return False
        since = asked.asked_at.get(request_id, 0.0)
        moments = self._learned_at.get(name, [])
        if request_id.endswith("/label"):
            moments = [*moments, *(at for r, at in asked.asked_at.items() if r != request_id)]
        return any(since < at < expired_at for at in moments)

    def _wrong_lines(self, talks: dict[_Name, Talk]) -> dict[_Name, int]:
        """Count for each event how many lines there are too many."""
        surplus: dict[_Name, int] = defaultdict(int)
        for name, talk in talks.items():
            surplus[name] = -talk.n_lines
        for key, lines in self.lines.items():
            for line in lines:
                surplus[key, line["event_id"]] += 1
        return {name: n for name, n in surplus.items() if n}

    def _gaps(self) -> Iterator[str]:
        for key, lines in self.lines.items():
            numbers = [0, *(line["sequence"] for line in lines)]
            for before, after in pairwise(numbers):
                if after != before + 1:
                    yield f"{key}: {after} after {before}"

    def _wrong_counts(self) -> Iterator[str]:
        for key, counts in self._counts.items():
            held: set[str] = set()
            sizes = [0]
            for line in self.lines.get(key, ()):
                (held.discard if line.get("y") is None else held.add)(line["event_id"])
                sizes.append(len(held))
            at = 0
            for count in counts:
                try:
                    at = sizes.index(count, at)
                except ValueError:
                    yield f"{key}: {count}, after line {at} of {len(sizes) - 1}"

    def _longest_stall(self) -> float:
        stalls = [0.0]
        for told in self._told.values():
            before = 0.0
            for at, name in told:
                if name in self._events:
                    stalls.append(at - max(before, self._events[name].at))
                before = at
        return max(stalls)


def _key(record: Record) -> str:
    return (record.key or b"").decode()


def _place(record: Record) -> _Place:
    return record.topic, record.partition, record.offset


def _bytes(record: Record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    headers = [(name, value) for name, value in record.headers if not name.startswith("dlq.")]
    return record.key, record.value, headers


def _event_of(request_id: str) -> str:
    event_id, _, kind = request_id.rpartition("/")
    return event_id if kind == "label" else event_id.rpartition("/")[0]
