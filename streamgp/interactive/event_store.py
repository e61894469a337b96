"""Store of the events and answers that a loop remembers.

The states of the conversations are not changed here; see `moderator.py`.

"""

from __future__ import annotations

import warnings
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from streamgp.base import PendingQuestion
from streamgp.interactive.conversation_record import (
    AnswerName,
    Conversation,
    MisfitError,
    event_id_of,
)
from streamgp.interactive.deadlines import DeadlineQueue
from streamgp.interactive.messages import Answer, Event

# --- In which segment each conversation was published, and which segments have changed since.
#
# What a loop must not forget is published piece by piece, so that the cost depends on what has
# changed and not on all there is. Conversations that are published together share a segment, which
# is published as a whole whenever one of them changes or is forgotten. `state/serialize.py`
# describes the other pieces, and what is not in any segment yet.


PlainRecord: TypeAlias = list[Any]
"""A conversation as plain JSON values."""

# A new segment starts with at most this many bytes of JSON, so that an answer does not publish much
# besides its own conversation again; a longer conversation has a segment to itself.
SEGMENT_BYTES = 1 << 15
# A segment whose conversations have grown beyond this is divided. Well above, so that segments are
# not divided again and again.
MOST_BYTES = 1 << 17

_encode = msgspec.json.Encoder().encode


class StateSegments:
    """The segments of one loop.

    Attributes
    ----------
    n
        Number of segments so far; each has its number.
    has_changed
        Whether anything of the loop differs from what was published.

    Examples
    --------
    >>> from streamgp.interactive.messages import Event
    >>> segments, plain = StateSegments(), lambda record: [record.event.event_id, record.state]
    >>> one, two = (Conversation(Event(event_id=name, x={}, occurred_at=0.0)) for name in "ab")
    >>> segments.publish([one, two], [plain(one), plain(two)], plain)
    {1: [['a', 'seen'], ['b', 'seen']]}
    >>> segments.settle()
    >>> segments.remove(one)
    >>> segments.publish([], [], plain)
    {1: [['b', 'seen']]}

    """

    # _on       the conversations in each segment, in the order of their numbers
    # _changed  segments that differ from what was published
    # _grown    those of which more than a forgotten conversation differs: they may have become
    #           larger
    __slots__ = ("_changed", "_grown", "_on", "has_changed", "n")

    def __init__(self) -> None:
        self.n = 0
        self.has_changed = False
        self._on: dict[int, list[Conversation]] = {}
        self._changed: set[int] = set()
        self._grown: set[int] = set()

    def __iter__(self) -> Iterator[tuple[int, list[Conversation]]]:
        """Yield the number and the conversations of every segment."""
        return iter(self._on.items())

    def note(self, record: Conversation) -> None:
        """Mark the segment of a conversation as changed."""
        self.has_changed = True
        if record.segment is not None:
            self._changed.add(record.segment)
            self._grown.add(record.segment)

    def remove(self, record: Conversation) -> None:
        """Remove a forgotten conversation from its segment."""
        if record.segment is not None:
            self._on[record.segment].remove(record)
            self._changed.add(record.segment)

    def put(self, record: Conversation, number: int) -> None:
        """Put a conversation into the segment that it was in before a restart.

        Raises
        ------
        ValueError
            If that segment did not exist yet: set `n` first.

        """
        if not 1 <= number <= self.n:
            raise ValueError(f"segment {number!r} was never published, expected 1 to {self.n}")
        record.segment = number
        self._on.setdefault(number, []).append(record)

    def publish(
        self,
        fresh: Sequence[Conversation],
        plains: Sequence[PlainRecord],
        plain: Callable[[Conversation], PlainRecord],
    ) -> dict[int, list[PlainRecord] | None]:
        """Assign segments to conversations that have none, and return what has changed.

        It counts as changed until `settle` is called.

        Parameters
        ----------
        fresh
            Conversations that are in no segment yet, in the order of their numbers.
        plains
            The same as plain values.
        plain
            Converts a conversation to plain values.

        Returns
        -------
        The conversations in every segment that has changed, None for one that has become empty.

        """
        found: dict[int, list[PlainRecord] | None] = {}
        groups: list[tuple[list[Conversation], list[PlainRecord]]] = []
        shortened: dict[int, list[Conversation]] = {}
        for number in sorted(self._changed):
            records = self._on[number]
            in_segment = [plain(record) for record in records]
            may_divide = number in self._grown and len(in_segment) > 1
            if may_divide and len(_encode(in_segment)) > MOST_BYTES:
                (shortened[number], in_segment), *others = _grouped(records, in_segment)
                groups += others
            found[number] = in_segment or None
        if fresh:
            groups += _grouped(fresh, plains)
        # Nothing fails from here on: a caller that retries after an error finds everything
        # unchanged.
        self._on |= shortened
        for records, in_segment in groups:
            self.n += 1
            for record in records:
                record.segment = self.n
            self._on[self.n] = records
            self._changed.add(self.n)
            found[self.n] = in_segment
        return found

    def settle(self) -> None:
        """Mark all changes as published."""
        for number in self._changed:
            if not self._on[number]:
                del self._on[number]
        self._changed.clear()
        self._grown.clear()
        self.has_changed = False


def _grouped(
    records: Sequence[Conversation], plains: Sequence[PlainRecord]
) -> list[tuple[list[Conversation], list[PlainRecord]]]:
    """Divide conversations into segments of `SEGMENT_BYTES`, or of a single longer conversation."""
    # The brackets are one byte more than the comma after each conversation: nearly always so.
    if len(records) == 1 or len(_encode(plains)) - 1 <= SEGMENT_BYTES:
        return [([*records], [*plains])]
    groups: list[tuple[list[Conversation], list[PlainRecord]]] = []
    room = 0
    for record, plain in zip(records, plains, strict=True):
        n_bytes = len(_encode(plain)) + 1
        if n_bytes > room:
            groups.append(([], []))
            room = SEGMENT_BYTES
        room -= n_bytes
        groups[-1][0].append(record)
        groups[-1][1].append(plain)
    return groups


# Answers to more open questions than this are not anticipated: the time of an event would grow with
# the number of questions that are never answered.
MOST_PENDING: Final = 100
_BLOCK = 32
_LEAST_TIDIED: Final = 64
MANY = 100_000
"""Number of events at which a warning is given that a loop never forgets any."""


class EventStore:
    """The conversations within the answer horizon.

    Parameters
    ----------
    answer_horizon_s
        Seconds after its occurrence for which an event is remembered; None for ever. If a question
        about it was written later than its own time, it is remembered that much longer.

    Attributes
    ----------
    horizons
        The end of each record, by event id; empty if events are remembered for ever.
    segments
        Where the records were published.
    n_added
        Number of events ever remembered; each has its number, `serial`.

    """

    # _records   conversation about each event, by event id, in the order of their numbers. Those
    #            not yet published are the last of them.
    # _answers   every accepted answer; removed with its record.
    # _open      records with an open request, in the order of their numbers, and some whose request
    #            has ended: those are removed when `open_ones` finds them.
    # _waiting   records whose second question is to be asked later, in that order, and some that no
    #            longer wait: those are removed when `due` finds them.
    # _tidy_at   length of _open at which ended requests are removed
    # _counting  the records in _open whose questions already count, and these questions;
    #            None after a conversation has changed
    # _pending   what `pending` last returned; None after _counting has changed

    def __init__(self, answer_horizon_s: float | None) -> None:
        self.horizons: DeadlineQueue[str] = DeadlineQueue()
        self.segments = StateSegments()
        self.n_added = 0
        self._horizon_s = answer_horizon_s
        self._records: dict[str, Conversation] = {}
        self._answers: set[AnswerName] = set()
        self._open: list[Conversation] = []
        self._waiting: list[Conversation] = []
        self._tidy_at = _LEAST_TIDIED
        self._counting: tuple[list[Conversation], list[PendingQuestion]] | None = None
        self._pending: tuple[PendingQuestion, ...] | None = None

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self._records.values())

    def __getitem__(self, event_id: str) -> Conversation:
        return self._records[event_id]

    def get(self, event_id: str) -> Conversation | None:
        """Return the record of an event, or None."""
        return self._records.get(event_id)

    def of_request(self, request_id: str) -> Conversation | None:
        """Return the record about which a request was made, or None if there is none."""
        record = self._records.get(event_id_of(request_id) or "")
        return record if record is not None and record.was_made(request_id) else None

    def add(self, event: Event) -> Conversation:
        """Remember an event."""
        record = Conversation(event)
        self.n_added += 1
        record.serial = self.n_added
        if self._horizon_s is None and len(self._records) == MANY:
            warnings.warn(
                f"{MANY} events are remembered, and none is ever forgotten; give answer_horizon_s, "
                "the seconds for which an event can be answered (section [loop] of a "
                "configuration file)",
                RuntimeWarning,
                stacklevel=2,
            )
        self._remember(record)
        return record

    def take_over(self, record: Conversation) -> None:
        """Remember a conversation that is later than the others, with its answers so far."""
        self._remember(record)
        self._answers.update(record.answers)
        self.note_open(record)
        self.note_waiting(record)

    def _remember(self, record: Conversation) -> None:
        event_id = record.event.event_id
        self._records[event_id] = record
        if self._horizon_s is not None:
            self.horizons.set(event_id, self._end_of(record, self._horizon_s))

    def note_open(self, record: Conversation) -> None:
        """Record that a request about an event may have been opened."""
        if record.open_request is None:
            return
        self._pending = None
        opened = self._open
        if opened and record.serial <= opened[-1].serial:
            self._open = opened = [known for known in self.open_ones() if known is not record]
            insort(opened, record, key=lambda known: known.serial)
            self._counting = None
            return
        # About the latest event, as nearly always: the others are unchanged.
        opened.append(record)
        if len(opened) >= self._tidy_at:
            self.open_ones()
        if self._counting is not None:
            _add_counting(record, *self._counting)

    def open_ones(self) -> list[Conversation]:
        """Return the conversations with an open request, in the order of their numbers."""
        self._open = [record for record in self._open if record.open_request is not None]
        self._tidy_at = max(_LEAST_TIDIED, 2 * len(self._open))
        return self._open

    def note_waiting(self, record: Conversation) -> None:
        """Record that a second question about an event may have to be asked later."""
        if _after(record) is not None:
            others = (known for known in self._waiting if known is not record and _after(known))
            self._waiting = sorted([*others, record], key=lambda each: (_after(each), each.serial))

    def due(self, sequence: int) -> Conversation | None:
        """Return the event whose second question is due first, by a line of the consensus log."""
        while self._waiting:
            after = _after(self._waiting[0])
            if after is not None:
                return self._waiting[0] if sequence >= after else None
            del self._waiting[0]
        return None

    def pending(self) -> tuple[PendingQuestion, ...]:
        """Return the open questions whose answers already count, in the order of their events.

        If there are `MOST_PENDING` or more, only those about the latest events. Some of the
        earliest of these are left out, up to the next event whose number is a multiple of 32: a
        learner keeps what it has computed for questions as long as the first ones are the same.
        """
        if self._pending is None:
            if self._counting is None:
                self._counting = [], []
                for record in self.open_ones():
                    _add_counting(record, *self._counting)
            records, questions = self._counting
            first = 0
            if len(records) >= MOST_PENDING:
                serial = -(-records[-MOST_PENDING].serial // _BLOCK) * _BLOCK
                first = bisect_left(records, serial, key=lambda record: record.serial)
            self._pending = tuple(questions[first:])
        return self._pending

    def note_change(self) -> None:
        """Record that a conversation is about to change: its question may no longer count."""
        self._counting = self._pending = None

    def latest(self) -> Conversation:
        """Return the conversation that was added last."""
        return next(reversed(self._records.values()))

    def restore(self, record: Conversation, saved: Mapping[str, Any]) -> None:
        """Restore the fields of a conversation."""
        self._answers.difference_update(record.answers)
        delayed_s = record.delayed_s
        for name, value in saved.items():
            setattr(record, name, value)
        self.note_change()
        self._answers.update(record.answers)
        self.note_open(record)
        self.note_waiting(record)
        if record.delayed_s != delayed_s:
            self._reset_horizon(record)

    def hold(self, record: Conversation, delayed_s: float) -> None:
        """Remember an event longer, by the delay with which a question about it is written."""
        if self._horizon_s is None or delayed_s <= record.delayed_s:
            return
        record.delayed_s = delayed_s
        self._reset_horizon(record)

    def accept(self, answer: Answer, record: Conversation) -> None:
        """Record that an answer was handled."""
        name = answer.annotator, answer.answer_id
        self._answers.add(name)
        record.answers = (*record.answers, name)

    def forget(self, record: Conversation) -> None:
        """Forget an event and the answers about it."""
        event_id = record.event.event_id
        self.segments.remove(record)
        self.horizons.clear(event_id)
        self._answers.difference_update(record.answers)
        if record.open_request is not None:
            self._open = [known for known in self._open if known is not record]
            self.note_change()
        if _after(record) is not None:
            self._waiting = [known for known in self._waiting if known is not record]
        del self._records[event_id]

    def unpublished(self) -> list[Conversation]:
        """Return the conversations that are in no segment yet, in the order of their numbers."""
        found: list[Conversation] = []
        for record in reversed(self._records.values()):
            if record.segment is not None:
                break
            found.append(record)
        found.reverse()
        return found

    def latest_seen(
        self, size: int, now: float, max_age_s: float | None, needed_s: float
    ) -> list[Conversation]:
        """Return the latest events without a request and without a label, in order.

        Parameters
        ----------
        size
            How many of the latest events are considered.
        now
            The time.
        max_age_s
            Seconds after its occurrence for which an event is included; None for no limit.
        needed_s
            Seconds that must be left until the horizon of an event.

        """
        found = []
        for record in islice(reversed(self._records.values()), size):
            at = record.event.occurred_at
            is_old = max_age_s is not None and now > at + max_age_s
            if record.state == "seen" and not is_old and not self.is_beyond(record, now + needed_s):
                found.append(record)
        found.reverse()
        return found

    def _reset_horizon(self, record: Conversation) -> None:
        """Move the horizon of an event whose request was delayed."""
        event_id = record.event.event_id
        number = self.horizons.number(event_id)
        assert number is not None  # every event has a horizon
        assert self._horizon_s is not None
        # Under its number: of two events with the same horizon the first remembered is forgotten
        # first, as it is after a restart.
        self.horizons.reset(event_id, self._end_of(record, self._horizon_s), number)

    def is_beyond(self, record: Conversation, at: float) -> bool:
        """Whether a time lies beyond the horizon of an event."""
        return self._horizon_s is not None and at > self._end_of(record, self._horizon_s)

    @staticmethod
    def _end_of(record: Conversation, horizon_s: float) -> float:
        return record.event.occurred_at + horizon_s + record.delayed_s

    def record_for(self, answer: Answer) -> Conversation:
        """Return the record that an answer is about.

        Raises
        ------
        MisfitError
            If the answer was handled before, or names an event, key, request or earlier answer
            that does not fit.

        """
        event_id, request_id, superseded = answer.event_id, answer.request_id, answer.supersedes
        if (answer.annotator, answer.answer_id) in self._answers:
            raise MisfitError("duplicate", f"answer {answer.answer_id!r} was handled before")
        record = self._records.get(event_id)
        if record is None:
            ago = "" if self._horizon_s is None else f", or over {self._horizon_s} s ago"
            raise MisfitError("unknown", f"event {event_id!r} was never seen{ago}")
        if answer.key != record.event.key:
            expected = record.event.key
            raise MisfitError(
                "malformed", f"key must be that of the event, {expected!r}, got {answer.key!r}"
            )
        if request_id is not None and not record.was_made(request_id):
            if self.of_request(request_id) is not None:
                raise MisfitError(
                    "malformed", f"request {request_id!r} is not about event {event_id!r}"
                )
            raise MisfitError("unknown", f"request {request_id!r} was never made")
        second = None if record.second is None else record.second.answer_id
        if superseded is not None and superseded not in (record.standing, second):
            if superseded in record.answer_ids:
                raise MisfitError(
                    "ended", f"answer {superseded!r} stands no longer; supersede the last"
                )
            raise MisfitError(
                "unknown", f"answer {superseded!r} gave no label to event {event_id!r}"
            )
        return record


def _after(record: Conversation) -> int | None:
    """Return the line of the log after which an event is asked about again, or None."""
    return None if record.second is None else record.second.after


def _add_counting(
    record: Conversation, records: list[Conversation], questions: list[PendingQuestion]
) -> None:
    """Add a record and its question, if its answer already counts."""
    target = record.pending
    if target is not None:
        records.append(record)
        questions.append(PendingQuestion(record.event.x, target))
