"""Which events and answers the loop remembers, and whether an answer fits them.

The states of the conversations are not changed here; see `conversation.py`.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from streamgp.interactive.alarms import Alarms
from streamgp.interactive.messages import Answer, Event, Fault
from streamgp.interactive.pages import Pages
from streamgp.interactive.records import Record, event_id_of


class MisfitError(Exception):
    """An answer does not fit what is remembered; the loop rejects it."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault: Fault = fault
        self.reason = reason


class Memory:
    """The conversations within the answer horizon.

    Parameters
    ----------
    answer_horizon_s
        Seconds after its occurrence for which an event is remembered; None for ever. Where a
        question about it was written later than its own time, it is remembered as much longer.

    Attributes
    ----------
    horizons
        The end of each record, by event id; empty if events are remembered for ever.
    pages
        Where the records were published.
    n_added
        Number of events ever remembered; each has its number, `serial`.

    """

    # _records   conversation about each event, by event id, in the order of their numbers. Those
    #            not yet published are the last of them.
    # _answers   event of every accepted answer, by answer id; entries leave with their record.

    def __init__(self, answer_horizon_s: float | None) -> None:
        self.horizons: Alarms[str] = Alarms()
        self.pages = Pages()
        self.n_added = 0
        self._horizon_s = answer_horizon_s
        self._records: dict[str, Record] = {}
        self._answers: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __getitem__(self, event_id: str) -> Record:
        return self._records[event_id]

    def get(self, event_id: str) -> Record | None:
        """Return the record of an event, or None."""
        return self._records.get(event_id)

    def of_request(self, request_id: str) -> Record | None:
        """Return the record that a request was made about, or None if there was none such."""
        record = self._records.get(event_id_of(request_id) or "")
        return record if record is not None and record.was_made(request_id) else None

    def add(self, event: Event) -> Record:
        """Remember an event."""
        record = Record(event)
        self.n_added += 1
        record.serial = self.n_added
        return self.take_over(record)

    def take_over(self, record: Record) -> Record:
        """Remember a conversation that is later than the others, with the answers it has had."""
        event = record.event
        self._records[event.event_id] = record
        if self._horizon_s is not None:
            self.horizons.set(event.event_id, self._end_of(record, self._horizon_s))
        for answer_id in record.answer_ids:
            self._answers[answer_id] = event.event_id
        return record

    def latest(self) -> Record:
        """Return the conversation that was added last."""
        return next(reversed(self._records.values()))

    def restore(self, record: Record, copied: Mapping[str, Any]) -> None:
        """Make a conversation what `Record.copied` was taken from."""
        for answer_id in record.answer_ids:
            del self._answers[answer_id]
        delayed_s = record.delayed_s
        record.restore(copied)
        for answer_id in record.answer_ids:
            self._answers[answer_id] = record.event.event_id
        if record.delayed_s != delayed_s:
            self._reset_horizon(record)

    def hold(self, record: Record, delayed_s: float) -> None:
        """Remember an event longer: a question about it is written so long after its own time."""
        if self._horizon_s is None or delayed_s <= record.delayed_s:
            return
        record.delayed_s = delayed_s
        self._reset_horizon(record)

    def accept(self, answer: Answer, record: Record) -> None:
        """Remember that an answer was handled."""
        self._answers[answer.answer_id] = answer.event_id
        record.answer_ids.append(answer.answer_id)

    def forget(self, record: Record) -> None:
        """Forget an event and the answers about it."""
        event_id = record.event.event_id
        self.pages.remove(record)
        self.horizons.clear(event_id)
        for answer_id in record.answer_ids:
            del self._answers[answer_id]
        del self._records[event_id]

    def unpublished(self) -> list[Record]:
        """Return the conversations that are on no page yet, in the order of their numbers."""
        found: list[Record] = []
        for record in reversed(self._records.values()):
            if record.page is not None:
                break
            found.append(record)
        found.reverse()
        return found

    def latest_seen(
        self, size: int, now: float, max_age_s: float | None, needed_s: float
    ) -> list[Record]:
        """Return those of the latest events that nobody has asked about or labelled, in order.

        Parameters
        ----------
        size
            How many of the latest events are looked at.
        now
            The time.
        max_age_s
            Seconds after its occurrence for which an event is among them; None for no limit.
        needed_s
            Seconds that must be left of the horizon of an event.

        """
        found = []
        for record in islice(reversed(self._records.values()), size):
            at = record.event.occurred_at
            is_old = max_age_s is not None and now > at + max_age_s
            if record.state == "seen" and not is_old and not self.is_beyond(record, now + needed_s):
                found.append(record)
        found.reverse()
        return found

    def _reset_horizon(self, record: Record) -> None:
        """Set the end of an event anew, for its question was delayed."""
        event_id = record.event.event_id
        number = self.horizons.number(event_id)
        assert number is not None  # every event has a horizon
        assert self._horizon_s is not None
        # Under its number: of two events with one horizon the first remembered is forgotten first,
        # as it is after a restart.
        self.horizons.reset(event_id, self._end_of(record, self._horizon_s), number)

    def is_beyond(self, record: Record, at: float) -> bool:
        """Whether a moment lies beyond the horizon of an event."""
        return self._horizon_s is not None and at > self._end_of(record, self._horizon_s)

    @staticmethod
    def _end_of(record: Record, horizon_s: float) -> float:
        return record.event.occurred_at + horizon_s + record.delayed_s

    def record_for(self, answer: Answer) -> Record:
        """Return the record that an answer is about.

        Raises
        ------
        MisfitError
            If the answer was handled before, or names an event, key, request or earlier answer
            that does not fit.

        """
        event_id, request_id, superseded = answer.event_id, answer.request_id, answer.supersedes
        if answer.answer_id in self._answers:
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
        if superseded is not None and superseded != record.standing:
            if self._answers.get(superseded) == event_id:
                raise MisfitError(
                    "ended", f"answer {superseded!r} stands no longer; supersede the last"
                )
            raise MisfitError(
                "unknown", f"answer {superseded!r} gave no label to event {event_id!r}"
            )
        return record
