"""The history of labels (`streamgp audit`): who gave which answer, and its outcome.

Everything comes from the topics, as long as they retain it: an answer is matched with lines of
`consensus` and with challenges by its time, which both repeat, and with dead letters by its id.

"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

import click
import msgspec

from connectors.topics import COMPACTED, Record, TopicName
from connectors.wire.codec import DecodeError, message_in
from connectors.wire.inbound import read, taken_back
from connectors.wire.outbound import letter_of
from connectors.wire.state_records import RETRACTED, History, HistoryError, parts_of
from streamgp.apps.console import aligned, clock_time, number
from streamgp.apps.deployment.contents import drifts_in
from streamgp.apps.deployment.deployment import everything, visit, with_waiting
from streamgp.base import Label
from streamgp.common.annotator_error import ErrorRate
from streamgp.common.printable import printable
from streamgp.interactive.consensus_log import by_event, examples_in, in_force, labelled_by
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    EventKey,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Retraction,
)
from streamgp.report.tables import short

Kind: TypeAlias = Literal[
    "asked", "said", "refused", "ended", "doubted", "learned", "retracted", "reinstated", "outdated"
]
Format: TypeAlias = Literal["text", "csv", "json"]

_MOST_NAMES = 20
_UNNAMED = "an annotator without a name"
_AGAIN = "under the id of an earlier answer: while that is remembered, only one of them counts"
_READ: tuple[TopicName, ...] = ("requests", "answers", "consensus", "dead-letters", "state")
# At equal times, causes come before their effects.
_ORDER: tuple[Kind, ...] = (
    "asked", "said", "refused", "ended", "doubted", "retracted", "learned", "reinstated",
    "outdated",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step in the history of an event's label.

    Parameters
    ----------
    at
        When, POSIX seconds.
    what
        `asked`: a label was requested. `said`: an annotator answered. `refused`: the answer could
        not be used. `ended`: a question ended without an answer. `doubted`: a label was challenged.
        `learned`: a label became current, or was removed. `retracted`: a label was taken back with
        all others of its annotator. `reinstated`: it was put back with them, or stands again as one
        of another annotator was taken back. `outdated`: since a concept drift it is no longer
        taught; `at` is the time of the first label that is, or of a later correction.
    annotator
        The annotator who answered, or who gave the label.
    label, before
        The label, None for none, and the one before; for a challenge, the suggested and the given
        label; for one that was put back, the one that stands nevertheless, if another does; for one
        that was taken back, the same if another annotator's stands.
    probability_wrong
        The probability that the label was wrong, as estimated by the learner at that time.
    error_rate
        For a first answer that was learned, its annotator's error rate for this key as estimated
        until then, from the lines left in the log.
    detail
        The reason as text.

    """

    at: float
    key: str | None
    event_id: str
    what: Kind
    annotator: str | None = None
    label: Label | None = None
    before: Label | None = None
    probability_wrong: float | None = None
    error_rate: float | None = None
    request_id: str | None = None
    answer_id: str | None = None
    shown: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Selection of events: those with a step that matches all fields that are not None.

    Texts are typed: an accented letter may be one character or two, and both look the same.
    """

    key: str | None = None
    event_id: str | None = None
    annotator: str | None = None
    label: str | None = None
    since: float | None = None

    @property
    def is_all(self) -> bool:
        return self == Wanted()

    def fits(self, step: Step) -> bool:
        return (
            _is_meant(self.key, step.key)
            and _is_meant(self.event_id, step.event_id)
            and _is_meant(self.annotator, step.annotator)
            and _is_meant(self.label, step.label, step.before)
            and (self.since is None or step.at >= self.since)
        )


def _is_meant(typed: str | None, *found: object) -> bool:
    """Whether a typed text stands for one of these, or for all; it may be as it is shown."""
    if typed is None:
        return True
    forms = [_composed(str(one)) for one in found if one is not None]
    forms += [f"{one:.0f}" for one in found if isinstance(one, float) and one.is_integer()]
    return _composed(typed) in forms


def _composed(text: str) -> str:
    return printable(normalize("NFC", text))


def audit_labels(
    config_file: Path,
    wanted: Wanted,
    *,
    format: Format,
    last: int,
    broker: str | None,
) -> str:
    """Return the histories of the selected events, or a table of all annotators.

    Raises
    ------
    click.ClickException
        If topics are missing, or no annotator has the requested name.

    """
    with visit(config_file, broker) as there:
        records = everything(there.topics, *_READ, what="reading")
        steps = steps_of(with_waiting(there, records), keyed=there.config.worker.keyed)
    if wanted.is_all and format == "text":
        return table(steps)
    _check_annotator(wanted.annotator, steps)
    stories = [story for story in _stories(steps) if any(map(wanted.fits, story))]
    if format == "text":
        rest = f", the last {last} of them shown" if len(stories) > last else ""
        parts = [*map(told, stories[-last:]), f"{number(len(stories), 'event')}{rest}"]
        return "\n\n".join(parts)
    chosen = [step for story in stories for step in story]
    return _csv(chosen) if format == "csv" else "\n".join(map(_json, chosen))


def steps_of(records: Iterable[Record], *, keyed: bool = True) -> list[Step]:
    """Return all steps in some topics' records; the topics may be in any relative order."""
    found = _Found(keyed=keyed)
    for record in records:
        found.take(record)
    steps = sorted(found.steps(), key=lambda each: (each[0], _ORDER.index(each[1].what)))
    return found.with_standing([step for _, step in steps])


def told(story: Sequence[Step]) -> str:
    """Return the history of one event as text.

    Examples
    --------
    >>> said = Step(at=0.0, key="k", event_id="e1", what="said", annotator="ann", label="hall")
    >>> told([said]).partition("  ")[0], told([said]).rpartition("  ")[2]
    ("event e1 of 'k'\\n", "ann said 'hall'")

    """
    key = "" if story[0].key is None else f" of {printable(repr(story[0].key))}"
    lines = [f"event {printable(story[0].event_id)}{key}"]
    lines += [f"  {clock_time(step.at)}  {printable(_words(step))}" for step in _once(story)]
    return "\n".join(lines)


def _once(story: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps to tell: of labels that were taken back together, only the last."""
    last: dict[tuple[float, str | None], Step] = {}
    steps = list(story)
    for step in steps:
        if step.what == "retracted":
            last[step.at, step.annotator] = step
    for step in steps:
        if step.what != "retracted" or last[step.at, step.annotator] is step:
            yield step


def table(steps: Iterable[Step]) -> str:
    """Return a table of all annotators: numbers of answers and their outcomes."""
    counts: dict[str | None, Counter[str]] = {}
    whose: dict[EventKey, str | None] = {}
    for step in steps:
        of = counts.setdefault(step.annotator, Counter())
        event = step.key, step.event_id
        if step.what == "doubted" or (step.what == "reinstated" and step.before is None):
            whose[event] = step.annotator
        if step.what == "learned":
            before = whose.get(event, step.annotator)
            # A label that is taken back (None) is not replaced.
            if step.label not in (None, step.before) and before != step.annotator:
                counts.setdefault(before, Counter())["replaced"] += step.before is not None
            whose[event] = step.annotator
            of["learned"] += step.label is not None
        elif step.what in ("said", "doubted", "refused", "retracted", "outdated"):
            of[step.what] += 1
    titles = [
        "annotator", "answers", "learned", "doubted", "replaced", "refused", "taken back",
        "outdated",
    ]  # fmt: skip
    names = ("said", "learned", "doubted", "replaced", "refused", "retracted", "outdated")
    rows = [
        [printable(who or "(no name)"), *(str(of[name]) for name in names)]
        for who, of in sorted(counts.items(), key=lambda item: -item[1]["said"])
        if of.total()
    ]
    if not rows:
        return "the topics hold no answers"
    about = (
        "learned: labels of the annotator, with corrections and those that came with events; "
        "doubted: challenged;\nreplaced: by another annotator's; taken back: with all others, in a "
        "quarantine or by\n`streamgp retract`; outdated: not taught any more, since a concept drift"
    )
    return f"{aligned([titles, *rows], right=range(1, len(titles)))}\n{about}"


# --- internal


class _Found:
    """What the records of the topics tell about labels, read one after the other."""

    # _histories  contents of `state` and `consensus`, by partition
    # _lines      lines of the consensus log by event and number, as they were learned
    # _put_back   labels of each event that were removed from the log and put back
    # _restated   by event, revisions of lines that say what stands after a retraction, and until
    #             when; without a key where one loop serves all
    # _events     events of each key that these three tell about
    # _forgotten  keys that were forgotten, and whether a line can only be that of a new learner
    # _heard      each answer without its time: it counts once, however often it was sent, but does
    #             not hide another one under its id, as it may be forged
    # _names      their keys, annotators and ids; without a key where one loop serves all
    # _steps      the steps of single records
    def __init__(self, *, keyed: bool) -> None:
        self._keyed = keyed
        self._histories: dict[int, History] = {}
        self._lines: dict[EventKey, dict[int, LabelledExample]] = {}
        self._put_back: dict[EventKey, _PutBack] = {}
        self._restated: dict[EventKey, dict[int, float]] = {}
        self._events: dict[str | None, set[EventKey]] = {}
        self._forgotten: dict[str, bool] = {}
        self._heard: set[str] = set()
        self._names: set[tuple[str | None, str | None, str]] = set()
        self._steps: list[Step] = []

    def take(self, record: Record) -> None:
        if record.topic in COMPACTED:
            history = self._histories.setdefault(record.partition, History())
            history.take(record)
        if record.topic == "state":
            self._note_restated(record, history)
        elif record.topic == "dead-letters":
            self._steps += _refused(record, self._keyed)
        elif record.value is not None:
            self._take_message(record, _message(record, self._keyed))
        elif record.topic == "consensus":
            self._take_null(record, history)

    def steps(self) -> Iterator[tuple[float, Step]]:
        """Yield all steps, each with the time that gives its place."""
        yield from _at_their_times(self._steps)
        kept = [each for history in self._histories.values() for each in _retractions(history)]
        # The earliest last: it holds the lines as they were learned.
        for retraction in sorted(kept, key=lambda each: each.at, reverse=True):
            yield from _at_their_times(_retracted(retraction))
            for line in retraction.taken:  # a line removed from the log was still learned
                self._lines.setdefault((line.key, line.event_id), {})[line.sequence] = line
        for history in self._histories.values():
            yield from _at_their_times(_outdated(history))
        lines = [line for about in self._lines.values() for line in about.values()]
        rates = _error_rates(lines, self._keyed)
        for event, about in self._lines.items():
            found = self._put_back.get(event, _PutBack()).found
            again = self._restated.get((event[0] if self._keyed else None, event[1]), {})
            latest = -inf
            # An answer that was long on its way is older than what was learned before it.
            for step in _learned([about[n] for n in sorted(about)], rates, found, again):
                latest = max(latest, step.at)
                yield latest, step

    def with_standing(self, steps: list[Step]) -> list[Step]:
        """Add to the last steps of events that a label which was taken back stands nevertheless.

        Another annotator has given the same one, and no line says so again.
        """
        last = {
            (step.key, step.event_id): n
            for n, step in enumerate(steps)
            if step.what in ("learned", "retracted", "reinstated")
        }
        losers = {step.key for step in steps if step.what == "retracted"}
        entities = {key or "" for key in losers} if self._keyed else {""}
        for history in self._histories.values():
            for lines in _lines_in_force(history, entities):
                line, n = lines[-1], last.get((lines[-1].key, lines[-1].event_id))
                if n is not None and steps[n].what == "retracted" and steps[n].label == line.y:
                    who = labelled_by(lines) or _UNNAMED
                    steps[n] = replace(steps[n], before=line.y, detail=f"that of {who} stands")
        return steps

    def _take_message(self, record: Record, message: Input | Message | None) -> None:
        if isinstance(message, LabelledExample):
            event = message.key, message.event_id
            if message.sequence == 1 and self._forgotten.get(message.key or "", False):
                del self._forgotten[message.key or ""]  # the key came back
            self._events.setdefault(message.key, set()).add(event)
            self._lines.setdefault(event, {}).setdefault(message.sequence, message)
            self._put_back.setdefault(event, _PutBack()).note_line(record, message)
        elif isinstance(message, Answer):
            said = repr(replace(message, answered_at=0.0))
            if said not in self._heard:
                key = message.key if self._keyed else None
                name = key, message.annotator, message.answer_id
                self._steps.append(_said(message, is_again=name in self._names))
                self._heard.add(said)
                self._names.add(name)
        elif isinstance(message, LabelRequest | Challenge | Cancel | Expired):
            self._steps += _of_question(message)

    def _take_null(self, record: Record, history: History) -> None:
        try:
            gone = taken_back(record.key, keyed=self._keyed)
        except DecodeError:
            return
        if gone.event_id is not None:
            event = gone.key, gone.event_id
            if gone.key in self._forgotten:
                # Maybe of a label that was learned before its worker had read that null.
                self._drop(event)
                self._forgotten[gone.key] = True
            elif event in self._put_back:
                self._put_back[event].note_null(record)
        elif gone.key is not None:
            has_lines = bool(history.consensus_keys(gone.key))
            self._forgotten[gone.key] = not has_lines
            if not has_lines:
                return  # in a partition that holds none of its lines, a worker rejects the null
            # The lines may stay in the topic until that is next compacted.
            for event in self._events.pop(gone.key, ()):
                self._drop(event)

    def _drop(self, event: EventKey) -> None:
        for known in (self._lines, self._put_back, self._restated):
            known.pop(event, None)

    def _note_restated(self, record: Record, history: History) -> None:
        """Note the lines that a retraction has made, which an undo removes together with it."""
        entity, name = (*parts_of(record.key), "", "")[:2]
        if record.value is None or not name.startswith(RETRACTED):
            return
        try:
            retraction = history.retraction(entity, name)
        except HistoryError:  # as in `_retractions`
            return
        if retraction is None:
            return
        for event_id, revision in retraction.made:
            event = retraction.key if self._keyed else None, event_id
            self._events.setdefault(event[0], set()).add(event)
            self._restated.setdefault(event, {})[revision] = retraction.at


def _at_their_times(steps: Iterable[Step]) -> Iterator[tuple[float, Step]]:
    return ((step.at, step) for step in steps)


def _check_annotator(name: str | None, steps: Iterable[Step]) -> None:
    """Raise ClickException, with the existing names, if there is no annotator of this name."""
    if name is None:
        return
    names = sorted({step.annotator for step in steps if step.annotator is not None})
    if not _is_meant(name, *names):
        few = ", ".join(repr(each) for each in names[:_MOST_NAMES])
        more = f" and {number(len(names) - _MOST_NAMES, 'other')}" if names[_MOST_NAMES:] else ""
        raise click.ClickException(
            printable(f"no annotator {name!r} in the topics; they name {few or 'none'}{more}")
        )


def _message(record: Record, keyed: bool) -> Input | Message | None:
    if record.topic == "answers":
        # Decoded as by a worker, which fills in fields that programs omit.
        said = read(record, keyed=keyed)
        if isinstance(said, Answer | Cancel):
            return said
    return message_in(record.value)


def _refused(record: Record, keyed: bool) -> Iterator[Step]:
    try:
        letter = letter_of(record)
    except ValueError:
        return
    if letter.cause is None or letter.cause.topic != "answers":
        return
    message = _message(msgspec.structs.replace(letter.cause, headers=()), keyed)
    if isinstance(message, Answer):
        yield replace(_said(message), what="refused", shown=(), detail=letter.error)


def _said(answer: Answer, *, is_again: bool = False) -> Step:
    notes = [
        _AGAIN if is_again else "",
        "instead of an earlier answer" if answer.supersedes is not None else "",
        "shown: " + ", ".join(answer.shown) if answer.shown else "",
        "flagged" if answer.flag else "",
        answer.reason or "",
        answer.note or "",
    ]
    return Step(
        at=answer.answered_at,
        key=answer.key,
        event_id=answer.event_id,
        what="said",
        annotator=answer.annotator,
        label=answer.y,
        request_id=answer.request_id,
        answer_id=answer.answer_id,
        shown=answer.shown,
        detail="; ".join(note for note in notes if note),
    )


def _of_question(message: LabelRequest | Challenge | Cancel | Expired) -> Iterator[Step]:
    event_id = event_id_of(message.request_id)
    if event_id is None:
        return
    if isinstance(message, Cancel | Expired):
        why = message.why if isinstance(message, Cancel) else "no answer came in time"
        yield Step(
            at=message.at,
            key=message.key,
            event_id=event_id,
            what="ended",
            request_id=message.request_id,
            detail=why,
        )
        return
    asked = Step(
        at=message.requested_at,
        key=message.key,
        event_id=event_id,
        what="asked",
        request_id=message.request_id,
        detail=f"{message.reason} {message.score:.3g} > {message.threshold:.3g}",
    )
    if isinstance(message, LabelRequest):
        yield asked
        return
    yield replace(
        asked,
        what="doubted",
        annotator=message.annotator,
        label=message.suggested,
        before=message.given,
        probability_wrong=message.probability_wrong,
    )


_Rates: TypeAlias = Mapping[tuple[str | None, int], float]


def _error_rates(lines: Iterable[LabelledExample], keyed: bool) -> _Rates:
    """Return the estimated error rate of each first answer's annotator before it was learned.

    By key and number of the line, in the order in which the learner learned them.
    """
    known: dict[tuple[str | None, str | None], ErrorRate] = {}
    rates = {}
    for line in sorted(lines, key=lambda line: line.sequence):
        if line.probability_wrong is not None:
            rate = known.setdefault((line.key if keyed else None, line.first_by), ErrorRate())
            rates[line.key, line.sequence] = rate.estimate
            rate.note(line.probability_wrong)
    return rates


class _Undone(NamedTuple):
    """An undo of a retraction: the last label that came back, and the line that stands then.

    `until` is the highest line number by then, and `at` the time.
    """

    until: int
    at: float
    annotator: str | None
    label: Label | None
    stands: LabelledExample


class _PutBack:
    """Labels of one event that were removed from the log and put back by an undo."""

    # _first    the line under each record key, as it was learned
    # _now      the same, as it is now; without those removed
    # _is_open  whether nothing was removed or changed since the last label came back
    def __init__(self) -> None:
        self.found: list[_Undone] = []
        self._first: dict[bytes | None, LabelledExample] = {}
        self._now: dict[bytes | None, LabelledExample] = {}
        self._is_open = False

    def note_null(self, record: Record) -> None:
        """Record that a line was removed."""
        self._now.pop(record.key, None)
        self._is_open = False

    def note_line(self, record: Record, line: LabelledExample) -> None:
        """Record a line: a new one, one that a retraction has changed, or one that is back."""
        first, before = self._first.get(record.key), self._now.get(record.key)
        self._now[record.key] = line
        if first is None or first.sequence != line.sequence:
            # Behind the line that withdrew it, it is back: its first record was compacted away.
            is_back = any(
                each.y is None and each.sequence > line.sequence for each in self._first.values()
            )
            self._first[record.key] = line
            if is_back:
                self._put_back(record.at, line, None)
        elif line != first:
            self._is_open = False
        elif line != before:
            self._put_back(record.at, line, before)

    def _put_back(self, at: float, line: LabelledExample, before: LabelledExample | None) -> None:
        stands = max(self._now.values(), key=lambda each: each.sequence)
        if self._is_open and before is not None:
            self.found[-1] = self.found[-1]._replace(stands=stands)
        who = line.annotator
        if before is not None:
            # It was there, but without one of the two answers of a challenge.
            who = line.given_by if before.annotator == who else who
            if not line.challenged or before.challenged:
                return
        if self._is_open:
            self.found.pop()
        until = max(each.sequence for each in self._first.values())
        self.found.append(_Undone(until, at, who, line.said_by(who), stands))
        self._is_open = True


def _learned(
    lines: Sequence[LabelledExample],
    rates: _Rates,
    put_back: Sequence[_Undone],
    restated: Mapping[int, float],
) -> Iterator[Step]:
    before: Label | None = None
    waiting = list(put_back)

    def reinstated(until: float) -> Iterator[Step]:
        nonlocal before
        while waiting and waiting[0].until < until:
            undone = waiting.pop(0)
            who, label, line = undone.annotator, undone.label, undone.stands
            before = line.y
            stands = None if (who, label) == (line.annotator, line.y) else line.y
            yield _step(line, "reinstated", undone.at, who, label, before=stands)

    for line in lines:
        yield from reinstated(line.sequence)
        if line.revision == 0:
            before = None  # it belongs to an earlier event with the same id
        # After an undo, another line may have the same revision.
        if line.y is not None and line.learned_at <= restated.get(line.revision, -inf):
            before = line.y
            again = "stands again"
            yield _step(line, "reinstated", line.learned_at, line.annotator, line.y, detail=again)
            continue
        notes = [line.origin, "challenged" if line.challenged else "", "late" if line.late else ""]
        yield _step(
            line,
            "learned",
            line.learned_at,
            line.annotator,
            line.y,
            before=line.given if before is None else before,
            probability_wrong=None if line.challenged else line.probability_wrong,
            error_rate=rates.get((line.key, line.sequence)),
            detail=", ".join(note for note in notes if note),
        )
        before = line.y
    yield from reinstated(inf)


def _step(
    line: LabelledExample,
    what: Kind,
    at: float,
    annotator: str | None,
    label: Label | None,
    **details: Any,
) -> Step:
    """Return a step about the event of a line."""
    key, event_id = line.key, line.event_id
    return Step(
        at=at, key=key, event_id=event_id, what=what, annotator=annotator, label=label, **details
    )


def _retractions(history: History) -> list[Retraction]:
    try:
        return [each for entity in history.entities() for each in history.retractions(entity)]
    except HistoryError:
        return []  # `streamgp check` reports problems of `state`


def _retracted(retraction: Retraction) -> Iterator[Step]:
    who = retraction.annotator
    for line in retraction.own:
        yield _step(line, "retracted", retraction.at, who, line.said_by(who))


def _lines_in_force(history: History, entities: Iterable[str]) -> Iterator[list[LabelledExample]]:
    """Yield the lines that count, for each event of some keys."""
    with suppress(HistoryError):  # as in `_retractions`
        for entity in entities:
            yield from by_event(in_force(history.lines(entity))).values()


def _outdated(history: History) -> list[Step]:
    """Return a step for each label that the last concept drift of its key has made outdated."""
    steps = []
    try:
        for entity in history.entities():
            drifts = drifts_in(history, entity)
            if drifts is None:
                continue
            log = in_force(history.lines(entity))
            stories = by_event(log)
            # As many as the learner holds, in the same order.
            ordered = [stories[str(example.event_id)] for example in examples_in(log)]
            n = drifts.n_outdated
            since = max((story[0].learned_at for story in ordered[n : n + 1]), default=-inf)
            for *_, line in ordered[:n]:
                at = max(since, line.learned_at)
                steps.append(_step(line, "outdated", at, line.annotator, line.y))
    except HistoryError:
        return []  # as in `_retractions`
    return steps


def _stories(steps: Iterable[Step]) -> list[list[Step]]:
    found: dict[EventKey, list[Step]] = {}
    for step in steps:
        found.setdefault((step.key, step.event_id), []).append(step)
    return sorted(found.values(), key=lambda story: story[-1].at)


def _words(step: Step) -> str:
    who = step.annotator or _UNNAMED
    label, before = repr(step.label), repr(step.before)
    sure = "" if step.probability_wrong is None else f"wrong with P {step.probability_wrong:.2g}"
    detail = f" ({step.detail})" if step.detail else ""
    match step.what:
        case "asked":
            return f"a label was asked for{detail}"
        case "said":
            said = f"said {label}" if step.label is not None else "could not say, or took it back"
            return f"{who} {said}{detail}"
        case "refused":
            return f"the answer of {who} was not used: {step.detail}"
        case "ended":
            return f"the question ended{detail}"
        case "doubted":
            # What was said is told in full; what a learner expected has no such digits.
            return f"{before} of {who} was doubted, {sure}; suggested {short(step.label)!r}"
        case "retracted":
            stands = f"; {step.detail}" if step.detail else ""
            return f"{label} was taken back with all other labels of {who}{stands}"
        case "reinstated":
            stands = "" if step.before is None else f"; {before} stands"
            return f"{label} of {who} {step.detail or 'was put back'}{stands}"
        case "outdated":
            return f"{label} of {who} is outdated: not taught any more, since a concept drift"
        case "learned":
            if step.label is None:
                by = "" if step.annotator is None else f" by {step.annotator}"
                return f"{before} was taken back{by}: the event has no label"
            was = "" if step.before in (None, step.label) else f" in place of {before}"
            notes = ", ".join(note for note in (step.detail, sure) if note)
            if step.detail.startswith("aggregated"):  # the label may be another annotator's
                what = "stands" if not was else f"was learned{was}"
                return f"{label} {what}, with the second answer of {who} ({notes})"
            return f"{label} of {who} was learned{was} ({notes})"


def _plain(step: Step) -> Mapping[str, object]:
    return {**asdict(step), "shown": list(step.shown)}


def _json(step: Step) -> str:
    return json.dumps(_plain(step), ensure_ascii=False)


def _csv(steps: Iterable[Step]) -> str:
    out = io.StringIO()
    names = list(Step.__dataclass_fields__)
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for step in steps:
        writer.writerow({**_plain(step), "shown": " ".join(step.shown)})
    return out.getvalue().rstrip("\n")
