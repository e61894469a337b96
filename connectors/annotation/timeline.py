"""Labels of the events of each key, in order of time.

Each event has the last label given by any annotator. A label that no event has any more, for
example after a typing error was renamed or taken back, is no longer offered.

"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias
from unicodedata import normalize

from streamgp.base import Label
from streamgp.interactive.messages import Challenge

MAX_EVENTS = 100_000
"""Number of events whose labels are kept, over all keys."""
MAX_KEYS = 10_000
"""Number of keys whose events and labels are kept, those mentioned last."""

Typed: TypeAlias = tuple[str, Label]
"""A label with the name of its type: 1, 1.0 and True are equal in Python, but not on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The current label of an event.

    Parameters
    ----------
    occurred_at
        When the event occurred, POSIX seconds.
    annotator
        Who gave it, None if not known.
    answered_at
        When it was given, POSIX seconds.
    answer_id, request_id
        The answer that gave it, which a correction supersedes, and the request that it answered;
        None if not known.
    partition
        The partition of the event, None if not known.
    delayed_s
        Seconds by which its questions were written late: it is remembered that much longer.

    """

    event_id: str
    occurred_at: float
    label: Label
    annotator: str | None
    answered_at: float
    answer_id: str | None
    request_id: str | None
    partition: int | None
    delayed_s: float


@dataclass(slots=True)
class _Event:
    got: float = -inf  # when the last of this was written to the topics
    occurred_at: float = inf
    of_request: bool = False  # whether `occurred_at` is certain
    partition: int | None = None
    delayed_s: float = 0.0  # the longest delay of a question about it
    label: Label | None = None
    annotator: str | None = None
    answer_id: str | None = None  # the answer that a correction supersedes
    request_id: str | None = None
    answered_at: float = -inf


@dataclass(slots=True)
class _OfKey:
    # events  by id, in the order of their first mention
    # times   (occurred_at, event id) of those with a label, sorted
    # counts  number of events that currently have each label
    # seen    when each label was last mentioned
    # got     when that was written to the topics
    # left    when an event last changed from each label to another
    events: dict[str, _Event] = field(default_factory=dict)
    times: list[tuple[float, str]] = field(default_factory=list)
    counts: dict[Typed, int] = field(default_factory=dict)
    seen: dict[Typed, float] = field(default_factory=dict)
    got: dict[Typed, float] = field(default_factory=dict)
    left: dict[Typed, float] = field(default_factory=dict)

    def has_choice(self, typed: Typed) -> bool:
        """Return whether an event has a label, or it was mentioned since one had it."""
        seen = self.seen.get(typed, -inf)
        return bool(self.counts.get(typed)) or seen > self.left.get(typed, -inf)

    def move(self, event_id: str, event: _Event, at: float, label: Label | None) -> None:
        """Re-sort an event by a time and a label; the label is not set here."""
        self.remove_time(event_id, event)
        event.occurred_at = at
        if label is not None:
            insort(self.times, (at, event_id))

    def remove_time(self, event_id: str, event: _Event) -> None:
        if event.label is not None:
            del self.times[bisect_left(self.times, (event.occurred_at, event_id))]

    def add(self, label: Label | None, n: int) -> None:
        """Count `n` more events with a label."""
        if label is not None:
            typed = typed_label(label)
            self.counts[typed] = self.counts.get(typed, 0) + n

    def moment(self, event_id: str) -> Moment:
        """Return the label of an event that has one."""
        event = self.events[event_id]
        assert event.label is not None, "only events with a label are looked for"
        return Moment(
            event_id=event_id,
            occurred_at=event.occurred_at,
            label=event.label,
            annotator=event.annotator,
            answered_at=event.answered_at,
            answer_id=event.answer_id,
            request_id=event.request_id,
            partition=event.partition,
            delayed_s=event.delayed_s,
        )

    def first(self, times: Sequence[tuple[float, str]]) -> Moment | None:
        """Return the label of the first event in a part of `times`, None if it is empty."""
        return self.moment(times[0][1]) if times else None


class Timeline:
    """Labels of the events of all keys.

    Parameters
    ----------
    labels
        Labels that are offered from the start, for every key, in this order.
    with_classes
        Whether labels are names of classes, which are offered again; not if they are numbers.
    max_events
        Number of events to keep; the one mentioned first is dropped first.
    max_keys
        Number of keys to keep; the one that was not mentioned for longest is dropped first.

    Examples
    --------
    >>> timeline = Timeline()
    >>> for at, label in enumerate(["home", "walk", "home"]):
    ...     timeline.occurred("ann", f"e{at}", float(at))
    ...     timeline.label("ann", f"e{at}", label, at=10.0 + at)
    >>> [moment.label for moment in timeline.between("ann", 0.0, 2.0)]
    ['home', 'walk']
    >>> before, after = timeline.neighbours("ann", "e1", 1.0)
    >>> before.event_id, after.event_id
    ('e0', 'e2')
    >>> timeline.label("ann", "e1", "work", at=20.0)
    >>> timeline.classes("ann")
    ['home', 'work']

    """

    # _offered  the labels that are offered whether or not an event has them, with their places
    # _of       by key, the one mentioned last at the end
    # _keys     for each label, the keys where it was mentioned and may be offered
    # _order    all events, in the order of their first mention
    def __init__(
        self,
        labels: Iterable[Label] = (),
        *,
        with_classes: bool = True,
        max_events: int = MAX_EVENTS,
        max_keys: int = MAX_KEYS,
    ) -> None:
        self._offered: dict[Typed, int] = {}
        for label in labels:
            self._offered.setdefault(typed_label(label), len(self._offered))
        self._with_classes = with_classes
        self._max_events = max_events
        self._max_keys = max_keys
        self._of: dict[str | None, _OfKey] = {}
        self._keys: dict[Typed, dict[str | None, None]] = {}
        self._order: dict[tuple[str | None, str], None] = {}

    def occurred(
        self,
        key: str | None,
        event_id: str,
        at: float,
        *,
        partition: int | None = None,
        delayed_s: float = 0.0,
        got: float = 0.0,
    ) -> None:
        """Record when an event occurred, from a message written at `got`, `delayed_s` too late."""
        found = self._of_key(key)
        event = self._event(found, key, event_id, got)
        event.delayed_s = max(event.delayed_s, delayed_s)
        if not event.of_request:
            found.move(event_id, event, at, event.label)
            event.of_request, event.partition = True, partition

    def longest_delay_s(self, key: str | None, event_id: str) -> float:
        """Return the longest delay of what is known of an event, 0 if nothing is known."""
        event = self._known(key).events.get(event_id)
        return 0.0 if event is None else event.delayed_s

    def mention(
        self,
        key: str | None,
        label: Label,
        *,
        at: float,
        event_id: str | None = None,
        got: float = 0.0,
    ) -> None:
        """Record that a label was mentioned, unless its event no longer has it."""
        found = self._of_key(key)
        event = None if event_id is None else found.events.get(event_id)
        if event is not None and event.answered_at > -inf and not is_same(event.label, label):
            return
        self._see(key, found, label, at, got)

    def label(
        self,
        key: str | None,
        event_id: str,
        label: Label | None,
        *,
        at: float,
        annotator: str | None = None,
        answer_id: str | None = None,
        request_id: str | None = None,
        got: float = 0.0,
    ) -> None:
        """Record a label given to an event at a time; None takes it back.

        A label older than the known one is only recorded as mentioned. A line of the consensus log
        repeats an answer and has no `answer_id`: the answer's id is then kept.
        """
        found = self._of_key(key)
        event = self._event(found, key, event_id, got)
        occurred_at = event.occurred_at if event.of_request else min(at, event.occurred_at)
        if label is not None:
            self._see(key, found, label, at, got)
        older, newer = (label, event.label) if at < event.answered_at else (event.label, label)
        if older is not None and not is_same(older, newer):
            left = max(at, event.answered_at)
            found.left[typed_label(older)] = max(left, found.left.get(typed_label(older), -inf))
        if at < event.answered_at:
            found.move(event_id, event, occurred_at, event.label)
            return
        found.move(event_id, event, occurred_at, label)
        found.add(event.label, -1)
        found.add(label, 1)
        if answer_id is not None or not is_same(event.label, label):
            event.answer_id, event.request_id = answer_id, request_id
        event.label, event.answered_at = label, at
        event.annotator = annotator

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that was written up to a time."""
        found = self._of.get(key)
        if found is None:
            return
        for event_id in [name for name, event in found.events.items() if event.got <= at]:
            event = self._drop(key, event_id)
            found.add(event.label, -1)
        for typed in [typed for typed, got in found.got.items() if got <= at]:
            for of_label in (found.seen, found.got, found.counts, found.left):
                of_label.pop(typed, None)
        if not found.events and not found.seen:
            del self._of[key]

    def classes(self, key: str | None) -> list[Label]:
        """Return the labels for a key: those offered to all as they came, then others, sorted.

        The others are those that its events have, or that were mentioned since one had them.
        """
        if not self._with_classes:
            return []
        places, found = self._offered, self._known(key)
        known = {typed for typed in found.seen if found.has_choice(typed)}
        if not places:
            return _in_order(known)
        # A label that a program gave decomposed looks like the offered one: it takes its place.
        known |= places.keys() - set(map(_composed, known))
        return sorted(
            _in_order(known), key=lambda y: places.get(_composed(typed_label(y)), len(places))
        )

    def all_classes(self) -> list[Label]:
        """Return the labels of all keys, numbers first; the time grows with them, not with keys."""
        if not self._with_classes:
            return []
        return _in_order({typed for typed in [*self._keys] if self._is_choice(typed)})

    def _is_choice(self, typed: Typed) -> bool:
        """Return whether any key has a label; keys that no longer have it are dropped."""
        keys = self._keys[typed]
        while keys:
            key = next(iter(keys))
            if self._known(key).has_choice(typed):
                return True
            # It is offered there again only after a new mention, which adds the key again.
            del keys[key]
        del self._keys[typed]
        return False

    def known_keys(self) -> Iterable[str | None]:
        """Return the keys, the one mentioned last at the end."""
        return self._of.keys()

    def count(self, key: str | None, label: Label) -> int:
        """Return how many events of a key have a label."""
        return self._known(key).counts.get(typed_label(label), 0)

    def between(self, key: str | None, start: float, end: float) -> list[Moment]:
        """Return the labels of a key's events from `start` to before `end`."""
        found = self._known(key)
        first, last = bisect_left(found.times, (start, "")), bisect_left(found.times, (end, ""))
        return [found.moment(event_id) for _, event_id in found.times[first:last]]

    def neighbours(
        self, key: str | None, event_id: str, occurred_at: float
    ) -> tuple[Moment | None, Moment | None]:
        """Return the labelled events of a key just before and just after an event.

        `occurred_at` is used if the time of the event is not known here.
        """
        found = self._known(key)
        event = found.events.get(event_id)
        if event is not None and event.occurred_at < inf:
            occurred_at = event.occurred_at
        at = bisect_left(found.times, (occurred_at, event_id))
        after = at + 1 if found.times[at : at + 1] == [(occurred_at, event_id)] else at
        before, behind = found.times[max(0, at - 1) : at], found.times[after : after + 1]
        return found.first(before), found.first(behind)

    def standing(self, key: str | None, label: Label) -> list[Moment]:
        """Return the events of a key that currently have a label, from answers that are known."""
        found = self._known(key)
        return [
            found.moment(event_id)
            for event_id, event in found.events.items()
            if event.answer_id is not None and is_same(event.label, label)
        ]

    def find(self, key: str | None, event_id: str) -> Moment | None:
        """Return the label of an event, None if it has none."""
        found = self._known(key)
        event = found.events.get(event_id)
        return None if event is None or event.label is None else found.moment(event_id)

    def given_at(self, challenge: Challenge) -> float:
        """Return when the label that a challenge doubts was given."""
        # A challenge has the time of that answer, except in a review of older labels.
        given = self.find(challenge.key, challenge.event_id)
        at = challenge.requested_at
        return at if given is None else min(given.answered_at, at)

    # --- internal

    def _known(self, key: str | None) -> _OfKey:
        """Return what is known of a key, which may be nothing."""
        return self._of.get(key) or _OfKey()

    def _of_key(self, key: str | None) -> _OfKey:
        """Return what is known of a key, which is mentioned now."""
        found = self._of.pop(key, None) or _OfKey()
        self._of[key] = found
        if len(self._of) > self._max_keys:
            first = next(iter(self._of))
            for event_id in self._of[first].events:
                del self._order[first, event_id]
            for typed in self._of.pop(first).seen:
                self._keys.get(typed, {}).pop(first, None)
        return found

    def _event(self, found: _OfKey, key: str | None, event_id: str, got: float) -> _Event:
        event = found.events.get(event_id)
        if event is None:
            event = found.events[event_id] = _Event()
            self._order[key, event_id] = None
            if len(self._order) > self._max_events:
                self._drop(*next(iter(self._order)))  # its label is still offered
        event.got = max(event.got, got)
        return event

    def _drop(self, key: str | None, event_id: str) -> _Event:
        found = self._of[key]
        event = found.events.pop(event_id)
        found.remove_time(event_id, event)
        del self._order[key, event_id]
        return event

    def _see(self, key: str | None, found: _OfKey, label: Label, at: float, got: float) -> None:
        typed = typed_label(label)
        self._keys.setdefault(typed, {})[key] = None
        found.seen[typed] = max(at, found.seen.get(typed, -inf))
        found.got[typed] = max(got, found.got.get(typed, -inf))


def typed_label(label: Label) -> Typed:
    return type(label).__name__, label


def is_same(a: Label | None, b: Label | None) -> bool:
    """Return whether two labels are the same on the wire, types included."""
    return type(a) is type(b) and a == b


def _in_order(labels: set[Typed]) -> list[Label]:
    return [label for _, label in sorted(labels, key=_by_label)]


def _composed(typed: Typed) -> Typed:
    kind, label = typed
    return kind, normalize("NFC", label) if isinstance(label, str) else label


def _by_label(typed: Typed) -> tuple[bool, float, str, str]:
    kind, label = typed
    if isinstance(label, str):
        # Numbers within names by their value: "class 2" before "class 10".
        return True, 0.0, re.sub("[0-9]+", lambda n: n[0].zfill(20), label.casefold()), label
    return False, float(label), kind, ""
