"""Checks of what the topics hold: consensus log, ends of questions, dead letters.

The consensus log: an example that is withdrawn must stay withdrawn, whatever the broker compacts
first. So the line `withdrawn` is followed by a null for every earlier line of the example, and a
worker writes no other null. Questions: each has exactly one end, an answer, a cancellation or the
expiry. Dead letters: each unusable input, once, with the original bytes.

An answer that names no request may be the label of an event that is still to come. So a worker
keeps it waiting for its event, in the topic `state`, even if the event came long ago and is
forgotten; only after that it becomes a dead letter.

"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any, TypeAlias

import msgspec

from connectors.topics import Record
from connectors.wire.state_records import EARLY, parts_of
from connectors.worker.early_answers import PATIENCE_S

from .conversations import Asked, Talk
from .traffic import HOSTILE_KEYS

# --- consensus log

Name: TypeAlias = tuple[str, str]
"""Key and event id."""

_SEPARATOR = b"\x1f"


class Lines:
    r"""Records of the topic `consensus`, added in the order of their partition.

    Attributes
    ----------
    of_key
        The lines of each key.
    written_at
        For each event, when its lines were written.

    Examples
    --------
    >>> line = {"key": "ann", "event_id": "e1", "sequence": 1, "y": None, "origin": "withdrawn"}
    >>> place = {"topic": "consensus", "partition": 0, "offset": 0, "at": 60.0}
    >>> lines = Lines()
    >>> lines.add(Record(key=b"ann\x1fe1\x1f1", value=msgspec.json.encode(line), **place))
    >>> lines.add(Record(key=b"bob\x1fe1\x1f0", value=None, **place))
    >>> list(lines.wrong_nulls())
    ["no null after a withdrawal: b'ann\\x1fe1\\x1f0'", "null without need: b'bob\\x1fe1\\x1f0'"]

    """

    # _due     by their key, lines that are still to be removed
    # _strays  keys of nulls that no withdrawal called for
    def __init__(self) -> None:
        self.of_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.written_at: dict[Name, list[float]] = defaultdict(list)
        self._due: Counter[bytes] = Counter()
        self._strays: list[bytes] = []

    def __len__(self) -> int:
        return sum(map(len, self.of_key.values()))

    def add(self, record: Record) -> None:
        """Add the next record of its partition."""
        record_key = record.key or b""
        if record.value is None:
            if self._due[record_key]:
                self._due[record_key] -= 1
            else:
                self._strays.append(record_key)
            return
        line = msgspec.json.decode(record.value)
        self.of_key[line["key"]].append(line)
        self.written_at[line["key"], line["event_id"]].append(record.at)
        if line["origin"] == "withdrawn":
            example, _, revision = record_key.rpartition(_SEPARATOR)
            self._due.update(b"%b%b%d" % (example, _SEPARATOR, n) for n in range(int(revision)))

    def wrong_nulls(self) -> Iterator[str]:
        """Find missing and surplus nulls."""
        for record_key in self._due.elements():
            yield f"no null after a withdrawal: {record_key!r}"
        for record_key in self._strays:
            yield f"null without need: {record_key!r}"

    def surplus(self, talks: Mapping[Name, Talk]) -> dict[Name, int]:
        """Count the surplus lines of each event."""
        found: dict[Name, int] = {name: -talk.n_lines for name, talk in talks.items()}
        for name, times in self.written_at.items():
            found[name] = found.get(name, 0) + len(times)
        return {name: n for name, n in found.items() if n}

    def gaps(self) -> Iterator[str]:
        """Find lines whose number does not follow that of the line before."""
        for key, lines in self.of_key.items():
            numbers = [0, *(line["sequence"] for line in lines)]
            for before, after in pairwise(numbers):
                if after != before + 1:
                    yield f"{key}: {after} after {before}"

    def wrong_counts(self, counts: Mapping[str, Sequence[int]]) -> Iterator[str]:
        """Find numbers of examples that are impossible according to the log.

        Parameters
        ----------
        counts
            For each key, the numbers of examples that its predictions state, in order.

        """
        for key, named in counts.items():
            held: set[str] = set()
            sizes = [0]
            for line in self.of_key.get(key, ()):
                (held.discard if line.get("y") is None else held.add)(line["event_id"])
                sizes.append(len(held))
            at = 0
            for count in named:
                try:
                    at = sizes.index(count, at)
                except ValueError:
                    yield f"{key}: {count}, after line {at} of {len(sizes) - 1}"


# --- ends of questions

GRACE_S = 5.0
"""How long after its expiry a question may still be open."""


def wrong_ends(
    asked: Mapping[Name, Asked],
    talks: Mapping[Name, Talk],
    written_at: Mapping[Name, Sequence[float]],
    stopped_at: float,
) -> Iterator[tuple[str, bool]]:
    """Find questions without exactly one end, and whether they are open within their time.

    Parameters
    ----------
    asked
        Contents of the topic of requests, by event.
    talks
        Results that must follow from the answers, by event.
    written_at
        When lines of the consensus log were written, by event.
    stopped_at
        When the workers were terminated.

    Examples
    --------
    >>> asked = Asked()
    >>> asked.ask("e1/label", 60.0)
    >>> list(wrong_ends({("ann", "e1"): asked}, {}, {}, stopped_at=50.0))
    [('ann: e1/label (asked at 0.0, ended 0 times...', True)]
    >>> asked.expire("e1/label", at=61.0)
    >>> list(wrong_ends({("ann", "e1"): asked}, {}, {}, stopped_at=70.0))
    []

    """
    for name, of_event in asked.items():
        talk = talks.get(name) or Talk(name[1], None, of_event)
        moments = written_at.get(name, ())
        if of_event.n_twice:
            yield f"{name} was asked twice", False
        for request_id in {*of_event.expires_at, *of_event.expired, *of_event.cancelled}:
            was_asked = request_id in of_event.expires_at
            n_ends = of_event.expired[request_id] + talk.ended[request_id]
            is_told = of_event.cancelled[request_id] == talk.cancelled[request_id]
            is_over = _is_over(of_event, request_id, moments)
            if was_asked and n_ends + is_over == 1 and is_told:
                continue
            expires_at = of_event.expires_at.get(request_id)
            in_time = expires_at is None or expires_at > stopped_at - GRACE_S
            is_open = was_asked and n_ends == 0 and is_told and in_time
            yield f"{name[0]}: {request_id}{_seen(of_event, talk, request_id, moments)}", is_open


def _seen(asked: Asked, talk: Talk, request_id: str, moments: Sequence[float]) -> str:
    """Return in words what is known about a question, to help find out what went wrong."""
    return (
        f" (asked at {asked.asked_at.get(request_id)}, ended {talk.ended[request_id]} times by "
        f"answers, expired {asked.expired[request_id]} times, last at "
        f"{asked.expired_at.get(request_id)}, cancelled {asked.cancelled[request_id]} times of "
        f"{talk.cancelled[request_id]}, expires at {asked.expires_at.get(request_id)}; lines of "
        f"the log at {list(moments)})"
    )


def _is_over(asked: Asked, request_id: str, moments: Sequence[float]) -> bool:
    """Whether a line was written for a question before it expired, so that it has ended before."""
    expired_at = asked.expired_at.get(request_id)
    if expired_at is None:
        return False
    since = asked.asked_at.get(request_id, 0.0)
    if request_id.endswith("/label"):
        moments = [*moments, *(at for r, at in asked.asked_at.items() if r != request_id)]
    return any(since < at < expired_at for at in moments)


# --- dead letters

Place: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset."""

_REFUSAL = b"the learner refuses it: "


def place_of(record: Record) -> Place:
    """Return the place of a record."""
    return record.topic, record.partition, record.offset


class Letters:
    """Unusable inputs, dead letters, and waiting answers.

    Attributes
    ----------
    n_waiting
        Number of answers that were excused.
    unlearnable
        For each hostile key, the ids of answers whose label was refused when its challenge expired,
        and of events whose own label was.

    Examples
    --------
    >>> place = {"topic": "events", "partition": 0, "offset": 7, "at": 60.0}
    >>> letters = Letters()
    >>> letters.expect(Record(key=b"ann", value=b"?", **place))
    >>> letters.missing(), letters.n_found, letters.n_too_many
    ([('events', 0, 7)], 0, 0)

    """

    # _bad    inputs that must be dead letters
    # _found  dead letters by the place of their input; None for a timer
    # _since  when an answer that waits for its event was read, by its place
    def __init__(self) -> None:
        self.n_waiting = 0
        self.unlearnable: dict[str, set[str]] = defaultdict(set)
        self._bad: dict[Place, Record] = {}
        self._found: dict[Place | None, list[Record]] = defaultdict(list)
        self._since: dict[Place, float] = {}

    def expect(self, bad: Record) -> None:
        """Add an unusable input."""
        self._bad[place_of(bad)] = bad

    def add(self, letter: Record) -> None:
        """Add a dead letter."""
        headers = dict(letter.headers)
        if "dlq.topic" not in headers:
            if not self._is_of_expiry(letter):
                self._found[None].append(letter)
            return
        role = "role" if "dlq.role" in headers else "topic"
        where = (headers[f"dlq.{name}"].decode() for name in (role, "partition", "offset"))
        topic, partition, offset = where
        self._found[topic, int(partition), int(offset)].append(letter)

    def _is_of_expiry(self, letter: Record) -> bool:
        """Note a dead letter about a hostile label that was refused when its challenge expired."""
        key = letter.key or b""
        if not key.startswith(HOSTILE_KEYS) or not _is_refusal(letter):
            return False
        refused = self.unlearnable[key.decode()]
        n_before = len(refused)
        refused.add(msgspec.json.decode(letter.value or b"")["subject"])
        return len(refused) > n_before

    def add_state(self, record: Record) -> None:
        """Add a record of the topic `state`: perhaps an answer that waits, or no longer does."""
        name = parts_of(record.key)[-1]
        if not name.startswith(EARLY):
            return
        topic, partition, offset = name.removeprefix(EARLY).split(":")
        place = topic, int(partition), int(offset)
        if record.value is None:
            self._since.pop(place, None)
        else:
            self._since[place] = msgspec.json.decode(record.value)["value"]["since"]

    def excuse_waiting(self, stopped_at: float) -> None:
        """Excuse waiting answers whose time was not over when the workers stopped."""
        for place, since in self._since.items():
            if since + PATIENCE_S > stopped_at - GRACE_S and self._bad.pop(place, None):
                self.n_waiting += 1

    def has(self, record: Record) -> bool:
        """Whether there is a dead letter for an input."""
        return bool(self._of(place_of(record)))

    def is_unlearnable(self, record: Record) -> bool:
        """Whether an input is a dead letter because the learner has refused its label."""
        return any(map(_is_refusal, self._of(place_of(record))))

    def read_by(self, record: Record) -> float:
        """Return by when a waiting answer or dead letter was read; -inf for other answers."""
        place = place_of(record)
        ats = [letter.at for letter in self._of(place)]
        return max([*ats, self._since.get(place, -inf)])

    @property
    def n_expected(self) -> int:
        """Number of unusable inputs."""
        return len(self._bad)

    @property
    def n_found(self) -> int:
        """Number of those that are dead letters as they should be."""
        return len(self._bad) - len(self.missing())

    @property
    def n_too_many(self) -> int:
        """Number of other dead letters."""
        return sum(map(len, self._found.values())) - self.n_found

    def missing(self) -> list[Place]:
        """Return the inputs that are not dead letters exactly once with their bytes."""
        return [
            place
            for place, record in self._bad.items()
            if [_bytes(letter) for letter in self._of(place)] != [_bytes(record)]
        ]

    def told(self, place: Place) -> str:
        """Describe the input at a place that should be a dead letter, and how often it is one."""
        bad = self._bad[place]
        return f"{place}, {bad.key!r} {bad.value!r}, {len(self._of(place))} letters"

    def strays(self) -> list[Place | None]:
        """Return the inputs that have needless dead letters."""
        return [place for place in self._found if place not in self._bad]

    def _of(self, place: Place) -> list[Record]:
        return self._found.get(place, [])


def _is_refusal(letter: Record) -> bool:
    """Whether a dead letter says that the learner has refused a label.

    An input that failed, or was not tried after too many failures, may have the same stage. It has
    changed nothing, so that its question is still open.
    """
    headers = dict(letter.headers)
    return headers.get("dlq.stage") == b"learn" and headers["dlq.error"].startswith(_REFUSAL)


def _bytes(record: Record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    headers = [(name, value) for name, value in record.headers if not name.startswith("dlq.")]
    return record.key, record.value, headers
