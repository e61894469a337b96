"""What the topics hold at the end, and what is wrong with it.

Only the topics are read, committed records only. The input determines the output: one prediction
for each event, one end for each question, one line for each label learned, one dead letter for each
unusable input. A hostile event has a prediction or a dead letter; how the learner handles it is not
checked.

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from connectors.topics import Record

from .checks import Letters, Lines, Name, wrong_ends
from .conversations import Asked, Talk
from .traffic import HOSTILE_KEYS, HOSTILE_MARK, MARK


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Results of the checks.

    Parameters
    ----------
    events, answers, requests, challenges, learned
        Numbers of good events, of answers and cancellations, of questions of both kinds, and of
        lines of the consensus log.
    open
        Questions that were still open at the end, within their time.
    fed
        Number of distinct event numbers.
    lost, duplicated
        Missing and surplus predictions.
    dead_expected, dead_found, dead_too_many
        Unusable inputs; those of them that are dead letters exactly once, with the original bytes;
        all other dead letters.
    waiting
        Answers that will be dead letters unless their event comes, within the time that they wait.
    hostile, hostile_dead
        Hostile events, and those of them that are dead letters.
    ends_wrong
        Questions without exactly one end.
    lines_wrong
        Missing and surplus lines of the consensus log.
    nulls_wrong
        Lines that were not removed from the log after the example was withdrawn, and needless
        nulls.
    gaps
        Lines whose number does not follow that of the line before.
    counts_wrong
        Predictions with a number of examples that is impossible according to the log.
    longest_stall_s
        Longest time without output from a partition that had an event.

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
    waiting: int
    hostile: int
    hostile_dead: int
    ends_wrong: int
    lines_wrong: int
    nulls_wrong: int
    gaps: int
    counts_wrong: int
    longest_stall_s: float
    examples: list[str] = field(default_factory=list)


_decode = msgspec.json.decode


@dataclass(frozen=True, slots=True)
class _Event:
    at: float
    occurred_at: float
    y: Any


class Ledger:
    """Records of all topics, added in the order of their partition, and checks of their contents.

    Parameters
    ----------
    horizon_s
        How long events are remembered.
    expires_after_s
        How long a question waits after it was written; None for as long as its event.
    is_sampled
        Whether the predictions of a key are kept whole, with the features.

    Attributes
    ----------
    lines
        The consensus log.
    predictions
        The predictions of each sampled key.
    features
        The features of the events of each sampled key, by event id.

    """

    # _n_predictions  by event
    # _counts         for each key, the numbers of examples that its predictions state, in order
    # _told           for each partition, time and event of its predictions, in order
    # _asked          by event
    # _answers        in the order of each partition
    # _letters        unusable inputs, dead letters, and answers that may become one
    # _hostile        hostile events as they were sent, by event
    # _delays         seconds by which questions about an event were written after their own time
    def __init__(
        self,
        *,
        horizon_s: float,
        expires_after_s: float | None = None,
        is_sampled: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.lines = Lines()
        self.predictions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.features: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
        self._horizon_s = horizon_s
        self._expires_after_s = expires_after_s
        self._delays: dict[Name, float] = defaultdict(float)
        self._is_sampled = is_sampled
        self._events: dict[Name, _Event] = {}
        self._numbers: set[int] = set()
        self._n_predictions: dict[Name, int] = defaultdict(int)
        self._counts: dict[str, list[int]] = defaultdict(list)
        self._told: dict[int, list[tuple[float, Name]]] = defaultdict(list)
        self._asked: dict[Name, Asked] = defaultdict(Asked)
        self._answers: dict[int, list[Record]] = defaultdict(list)
        self._letters = Letters()
        self._hostile: dict[Name, list[Record]] = defaultdict(list)
        self._add_to = {
            "events": self._add_event,
            "answers": self._add_answer,
            "predictions": self._add_prediction,
            "requests": self._add_request,
            "consensus": self.lines.add,
            "dead-letters": self._letters.add,
            "state": self._letters.add_state,
        }

    def add(self, record: Record) -> None:
        """Add the next record of its partition."""
        if MARK in (record.value or b"") or MARK in (record.key or b""):
            if record.topic != "dead-letters":
                self._letters.expect(record)
                return
        elif record.value is None and record.topic not in ("consensus", "state"):
            return
        self._add_to[record.topic](record)

    def findings(self, stopped_at: float) -> Findings:
        """Return the results of all checks.

        Parameters
        ----------
        stopped_at
            When the workers were terminated; everything due before must have been done.

        """
        examples: list[str] = []
        n_hostile_dead = self._judge_hostile()
        talks, n_answers = self._hold_talks()
        self._letters.excuse_waiting(stopped_at)
        lost = [name for name in self._events if not self._n_predictions.get(name)]
        extra = {
            name: n - (name in self._events)
            for name, n in self._n_predictions.items()
            if n > (name in self._events)
        }
        ends = list(wrong_ends(self._asked, talks, self.lines.written_at, stopped_at))
        n_open = sum(is_open for _, is_open in ends)
        endless = [what for what, is_open in ends if not is_open]
        lines = self.lines.surplus(talks)
        nulls = list(self.lines.wrong_nulls())
        gaps = list(self.lines.gaps())
        counts = list(self.lines.wrong_counts(self._counts))
        for what, names in {
            "no prediction": lost,
            "predicted more than once": list(extra),
            "no dead letter": list(map(self._letters.told, self._letters.missing())),
            "dead letter without need": self._letters.strays(),
            "not exactly one end": endless,
            "lines of the log missing (-) or too many": list(lines.items()),
            "consensus log": nulls,
            "gap in the log": gaps,
            "number of examples that the log does not allow": counts,
        }.items():
            examples += [f"{what}: {name}" for name in names[:5]]
        asked = self._asked.values()
        n_challenges = sum(sum("/challenge/" in r for r in a.expires_at) for a in asked)
        return Findings(
            events=len(self._events.keys() - self._hostile.keys()),
            answers=n_answers,
            requests=sum(len(a.expires_at) for a in asked) - n_challenges,
            challenges=n_challenges,
            learned=len(self.lines),
            open=n_open,
            fed=len(self._numbers),
            lost=len(lost),
            duplicated=sum(extra.values()),
            dead_expected=self._letters.n_expected,
            dead_found=self._letters.n_found,
            dead_too_many=self._letters.n_too_many,
            waiting=self._letters.n_waiting,
            hostile=sum(map(len, self._hostile.values())),
            hostile_dead=n_hostile_dead,
            ends_wrong=len(endless),
            lines_wrong=sum(map(abs, lines.values())),
            nulls_wrong=len(nulls),
            gaps=len(gaps),
            counts_wrong=len(counts),
            longest_stall_s=self._longest_stall(),
            examples=examples,
        )

    # --- taking

    def _add_event(self, record: Record) -> None:
        value = _decode(record.value or b"")
        key = _key(record)
        event_id = value.get("event_id", f"events:{record.partition}:{record.offset}")
        occurred_at = value.get("occurred_at", record.at)
        is_known = (key, event_id) in self._events
        if HOSTILE_MARK in (record.value or b""):
            self._hostile[key, event_id].append(record)
        else:
            self._numbers.add(value["n"])
            if is_known:
                self._letters.expect(record)
        if is_known:
            return
        self._events[key, event_id] = _Event(record.at, occurred_at, value.get("y"))
        if self._is_sampled(key):
            self.features[key][event_id] = value["x"]

    def _add_answer(self, record: Record) -> None:
        self._answers[record.partition].append(record)

    def _add_prediction(self, record: Record) -> None:
        value = _decode(record.value or b"")
        key = _key(record)
        name = key, value["event_id"]
        self._n_predictions[name] += 1
        self._counts[key].append(value["n_learned"])
        self._told[record.partition].append((record.at, name))
        if self._is_sampled(key):
            self.predictions[key].append(value)

    def _add_request(self, record: Record) -> None:
        value = _decode(record.value or b"")
        request_id = value["request_id"]
        name = _key(record), _event_of(request_id)
        asked = self._asked[name]
        if value["type"] == "expired":
            asked.expire(request_id, record.at)
        elif value["type"] == "label.cancel":
            asked.cancelled[request_id] += 1
        else:
            expires_at = value.get("expires_at")
            asked.ask(request_id, expires_at, record.at, value.get("given"), value["requested_at"])
            if expires_at is not None and self._expires_after_s is not None:
                # An event is remembered longer by the delay with which a question was written.
                delay_s = expires_at - value["requested_at"] - self._expires_after_s
                self._delays[name] = max(self._delays[name], delay_s)

    # --- judging

    def _judge_hostile(self) -> int:
        """Expect a dead letter for each hostile event except one that was predicted with its label.

        Returns
        -------
        The number of dead letters.

        """
        n_dead = 0
        for name, records in self._hostile.items():
            dead = [record for record in records if self._letters.has(record)]
            silent = [record for record in records if not self._letters.has(record)]
            if any(map(self._letters.is_unlearnable, dead)):
                # It was predicted; only the label that came with it is unusable.
                self._letters.unlearnable[name[0]].add(name[1])
            elif not silent:
                if self._n_predictions.get(name):
                    dead.pop()  # it was predicted, so one of the dead letters is needless
                else:
                    del self._events[name]
            n_dead += len(dead)
            # Of several events with the same id, one is predicted; all others are duplicates.
            for record in (*dead, *silent[1:]):
                self._letters.expect(record)
        return n_dead

    def _hold_talks(self) -> tuple[dict[Name, Talk], int]:
        """Hold all conversations again; inputs that they refuse must be dead letters."""
        talks = {
            name: Talk(
                name[1],
                event.y,
                self._asked.get(name, Asked()),
                event.occurred_at,
                self._letters.unlearnable[name[0]],
            )
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
            if event is None or self._is_forgotten(record, value, event, self._delays[name]):
                self._letters.expect(record)
                continue
            if _is_hostile(record) and self._letters.has(record):
                self._letters.expect(record)  # the learner could not handle it
                if self._letters.is_unlearnable(record):
                    talks[name].refuse(value)
                continue
            talk = talks[name]
            verdict = talk.cancel(value["request_id"]) if is_cancel else talk.answer(value)
            if verdict == "refused":
                self._letters.expect(record)
        return talks, n_answers

    def _is_forgotten(
        self, record: Record, value: dict[str, Any], event: _Event, delay_s: float
    ) -> bool:
        """Whether an answer was read after its event was forgotten, as far as the time is known."""
        end = event.occurred_at + self._horizon_s + delay_s
        return max(value.get("answered_at", end), self._letters.read_by(record)) > end

    def _longest_stall(self) -> float:
        stalls = [0.0]
        for told in self._told.values():
            before = 0.0
            for at, name in told:
                if name in self._events:
                    stalls.append(at - max(before, self._events[name].at))
                before = at
        return max(stalls)


def _is_hostile(record: Record) -> bool:
    """Whether an input is one that a learner may be unable to handle."""
    return HOSTILE_MARK in (record.value or b"") or (record.key or b"").startswith(HOSTILE_KEYS)


def _key(record: Record) -> str:
    return (record.key or b"").decode()


def _event_of(request_id: str) -> str:
    event_id, _, kind = request_id.rpartition("/")
    return event_id if kind == "label" else event_id.rpartition("/")[0]
