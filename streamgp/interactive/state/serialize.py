"""Serialization of a loop's state, except its labelled examples, as plain values.

The head holds the model and the counters, a plain record one conversation. Both are the same in a
snapshot and when published piece by piece.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter
from struct import Struct
from typing import Any, Protocol, TypeAlias, cast

import msgspec
from msgspec.structs import astuple

from streamgp.base import Example, Features, Label, SettledAnswer, State
from streamgp.common.feature_values import features_of, plain_features
from streamgp.interactive.consensus_log import by_sequence, read_on, settled_answer
from streamgp.interactive.conversation_record import (
    Conversation,
    GivenLabel,
    SecondQuestion,
    SentRequest,
)
from streamgp.interactive.event_store import PlainRecord
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.limits import UnaskedLabels
from streamgp.interactive.messages import Event, LabelledExample, Origin
from streamgp.interactive.moderator import SavedModerator
from streamgp.interactive.quarantine import Quarantine
from streamgp.interactive.rollback import FULL_CREDIT
from streamgp.interactive.state.snapshot import Snapshot
from streamgp.interactive.transitions import State as ConversationState
from streamgp.interactive.validation import plain_excerpt


def head_of(moderator: SavedModerator) -> State:
    """Return the state of the model without its examples, and all counters."""
    memory, model = moderator.memory, resumable(moderator.model)
    return {
        "sequence": moderator.lines.sequence,
        "pages": memory.segments.n,
        "events": memory.n_added,
        "remembered": len(memory),
        "alarms": moderator.deadlines.n_set,
        "learned": model.n_learned,
        "model": model.state(),
        # Empty for most loops, as before anything could fail: snapshots stay the same.
        **({} if moderator.journal.credit == FULL_CREDIT else {"credit": moderator.journal.credit}),
        **({"quarantine": quarantine} if (quarantine := moderator.quarantine.state()) else {}),
        **({"unasked": unasked} if (unasked := moderator.unasked.state()) else {}),
    }


def resume(
    head: State,
    records: Iterable[tuple[int | None, Conversation, int | None]],
    examples: Sequence[Example],
    lines: Iterable[LabelledExample],
    moderator: SavedModerator,
) -> None:
    """Restore plain values into a new loop.

    Parameters
    ----------
    head
        What `head_of` returned.
    records
        Every conversation with the numbers of its segment and of its deadline, in any order.
    examples
        The examples that the model holds.
    lines
        The lines of the consensus log by which it holds them, in order.
    moderator
        The moderator of the new loop.

    """
    memory = moderator.memory
    records = sorted(records, key=lambda found: found[1].serial)
    if len(records) != head["remembered"]:
        raise ValueError(f"there are {len(records)} conversations, expected {head['remembered']}")
    resumable(moderator.model).load_state(head["model"], examples)
    moderator.journal.credit = int(head.get("credit", FULL_CREDIT))
    moderator.quarantine = Quarantine.of(head.get("quarantine", {}))
    moderator.unasked = UnaskedLabels.of(head.get("unasked", {}))
    memory.n_added, memory.segments.n = int(head["events"]), int(head["pages"])
    deadlines = moderator.deadlines
    deadlines.n_set = int(head["alarms"])
    serial = 0
    last_segment: int | None = 0
    for segment, record, deadline in records:
        event_id, request = record.event.event_id, record.open_request
        if not serial < record.serial <= memory.n_added or memory.get(event_id) is not None:
            raise ValueError(f"event {event_id!r} is there twice, or was never counted")
        serial = record.serial
        if last_segment is None and segment is not None:
            raise ValueError(f"event {event_id!r} was published before an earlier one")
        last_segment = segment
        if segment is not None:
            memory.segments.put(record, segment)
        memory.take_over(record)
        if request is not None and request.expires_at is not None:
            if deadline is None:
                raise ValueError(f"request {request.request_id!r} has no deadline")
            deadlines.reset(event_id, request.expires_at, deadline)
    moderator.lines.sequence = int(head["sequence"])
    moderator.lines.replace(lines)


# --- A conversation, as written.
#
# An array without names, as it is written often: the fields in order, without those at the end that
# have their default. Topics hold these arrays for ever. A field may only be added at the
# end, with a default; a reader that does not know it refuses the array instead of losing it.


_Number: TypeAlias = int | float  # as it came: it is written back as it was read


class _Question(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The last question about an event, and the number of its deadline."""

    request_id: str
    expires_at: _Number | None
    deadline: int | None
    threshold: _Number | None = None
    pending: _Number | None = None
    is_improbable: bool = False


class _PlainConversation(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A conversation; `Conversation` defines the fields."""

    serial: int
    event_id: str
    key: str | None
    occurred_at: _Number
    x: dict[str, Any] | list[list[Any]] | None
    state: ConversationState
    standing: str | None
    was_asked: bool
    n_challenges: int
    revision: int
    answer_ids: list[str]
    request: _Question | None
    label: GivenLabel | None
    asked_back_at: _Number | None = None
    is_given_back: bool = False
    delayed_s: _Number = 0.0
    excerpt: dict[str, list[float | None]] | None = None
    # None stands for the annotator of the label. All answers are this annotator's unless stated.
    standing_by: str | None = None
    answered_by: list[str | None] | None = None
    second: SecondQuestion | None = None


_OF_EVENT = frozenset(("event_id", "key", "occurred_at", "x", "excerpt"))
_fields_of_record = attrgetter(
    *(
        f"event.{name}" if name in _OF_EVENT else name
        for name in _PlainConversation.__struct_fields__
    )
)
_X, _REQUEST, _LABEL, _EXCERPT, _STANDING_BY, _SECOND = map(
    _PlainConversation.__struct_fields__.index,
    ("x", "request", "label", "excerpt", "standing_by", "second"),
)
_FIRST = SecondQuestion.__struct_fields__.index("first")
_PRIVILEGED = GivenLabel.__struct_fields__.index("privileged")


def _shortened(array: list[Any], kind: type[msgspec.Struct]) -> list[Any]:
    """Leave out the fields at the end that are at their default."""
    defaults = kind.__struct_defaults__
    n = len(array) - len(defaults)
    if tuple(array[n:]) != defaults:  # rare
        n = max(i + 1 for i in range(n, len(array)) if array[i] != defaults[i - n])
    del array[n:]
    return array


def plain_record(record: Conversation, deadline: int | None, *, with_x: bool = True) -> PlainRecord:
    """Return a conversation as plain values.

    Parameters
    ----------
    record
        The conversation.
    deadline
        Number of the deadline of its open request, None if there is none.
    with_x
        Whether to include the features; without them, the caller must supply them on loading.

    """
    x, event = _plain_x(record) if with_x else None, record.event
    if record.state == "seen" and event.excerpt is None:
        # Nothing has happened in it: most are like this, and many are written again and again.
        known = (record.serial, event.event_id, event.key, event.occurred_at, x, "seen")
        return [*known, None, False, 0, 0, [], None, None]
    plain = list(_fields_of_record(record))
    plain[_X] = x
    request, label = record.request, record.label
    if request is not None:
        # Once the question has ended it is no longer pending, and nothing is written about that.
        question = [
            request.request_id,
            request.expires_at,
            deadline,
            request.threshold,
            record.pending,
            request.is_improbable,
        ]
        plain[_REQUEST] = _shortened(question, _Question)
    if label is not None:
        plain[_LABEL] = _plain_label(label)
    if record.second is not None:
        fields = list(astuple(record.second))
        if record.second.first is not None:
            fields[_FIRST] = _plain_label(record.second.first)
        plain[_SECOND] = _shortened(fields, SecondQuestion)
    plain[_EXCERPT] = plain_excerpt(event.excerpt)
    if record.standing_by == record.labelled_by:
        plain[_STANDING_BY] = None
    return _shortened(plain, _PlainConversation)


def _plain_label(label: GivenLabel) -> list[Any]:
    fields = list(astuple(label))
    fields[_PRIVILEGED] = None if label.privileged is None else dict(label.privileged)
    return _shortened(fields, GivenLabel)


def _plain_x(record: Conversation) -> Any:
    x = record.event.x
    if record.is_plain:
        return x
    plain = plain_features(x)
    record.is_plain = plain is x
    return plain


_SAVED_AS_THEY_ARE = (
    set(_PlainConversation.__struct_fields__) & set(Conversation.__struct_fields__)
) - {*("request", "standing_by")}


def record_of(
    plain: PlainRecord, learned: Callable[[str], Example | None]
) -> tuple[Conversation, int | None]:
    """Return the conversation from plain values, and the number of its deadline.

    Parameters
    ----------
    plain
        What `plain_record` returned.
    learned
        Returns the example of an event, for conversations without features.

    """
    try:
        saved = msgspec.convert(plain, _PlainConversation)
    except msgspec.ValidationError as error:
        raise ValueError(f"a conversation cannot be read: {error}") from None
    event_id, x = saved.event_id, saved.x
    if x is None:
        example = learned(event_id)
        if example is None:
            raise ValueError(f"event {event_id!r} has neither features nor a labelled example")
        features = example.x
    else:
        features = features_of(x)
    event = Event(
        event_id=event_id,
        key=saved.key,
        x=features,
        occurred_at=saved.occurred_at,
        excerpt=saved.excerpt,
    )
    record = Conversation(event, **{name: getattr(saved, name) for name in _SAVED_AS_THEY_ARE})
    deadline = None
    if saved.request is not None:
        request = msgspec.structs.asdict(saved.request)
        deadline = request.pop("deadline")
        record.request = SentRequest(**request)
    record.standing_by = record.labelled_by if saved.standing_by is None else saved.standing_by
    names = saved.answered_by or [record.standing_by] * len(saved.answer_ids)
    record.answers = tuple(zip(names, saved.answer_ids, strict=True))
    return record, deadline


# --- A loop as a snapshot and back.
#
# The snapshot holds the labelled examples, which are in the consensus log as well, and the state
# described at the beginning of this module. `snapshot.py` defines the layout in bytes.


KIND = "a loop"


class Resumable(SkepticalLearner, Protocol):
    """A skeptical learner that can be restored after a restart, bitwise equal."""

    def fingerprint(self) -> str:
        """Return a digest of its configuration."""

    def examples(self) -> list[Example]:
        """Return the labelled examples that it holds, in the order learned."""

    def state(self) -> State:
        """Return what its decisions depend on besides the examples, as plain JSON values."""

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Restore `state` and `examples`."""


def save(
    moderator: SavedModerator,
    arguments: State,
    fingerprint: str,
    environment: Mapping[str, Any] | None,
) -> bytes:
    """Return a loop as a snapshot.

    Parameters
    ----------
    moderator
        The moderator of the loop.
    arguments
        The arguments of the loop besides its model.
    fingerprint
        Fingerprint of the model.
    environment
        The numerical environment, None to leave it out.

    """
    examples = resumable(moderator.model).examples()
    held = {example.event_id for example in examples}
    plain, blob = plain_examples(examples)
    records = []
    for record in moderator.memory:
        event_id = record.event.event_id
        # The features of what was learned in this conversation are those of its example.
        with_x = not (record.is_learned and event_id in held)
        deadline = moderator.deadlines.number(event_id)
        records.append([record.segment, *plain_record(record, deadline, with_x=with_x)])
    body = {
        "spans": arguments,  # named after the first two of them
        "head": head_of(moderator),
        "examples": plain,
        "lines": plain_lines(moderator.lines, examples),
        "records": records,
    }
    return Snapshot(
        kind=KIND, fingerprint=fingerprint, body=body, blobs=[blob], environment=environment
    ).to_bytes()


def load(snapshot: Snapshot, moderator: SavedModerator) -> None:
    """Restore a snapshot into a new loop."""
    body = snapshot.body
    examples = examples_of(body["examples"], *snapshot.blobs)
    learned = {example.event_id: example for example in examples}
    records = [(segment, *record_of(plain, learned.get)) for segment, *plain in body["records"]]
    # Snapshots of earlier versions hold none.
    lines = lines_of(body.get("lines", ()), examples)
    if "unasked" not in body["examples"]:
        examples = _as_told(examples, lines)
    resume(body["head"], records, examples, lines, moderator)


def _as_told(examples: Sequence[Example], lines: Iterable[LabelledExample]) -> list[Example]:
    """Return examples of earlier versions, with what their lines tell: which were not asked for.

    A loop that is restored from its log knows it, too.
    """
    answers = {line.event_id: found for line in lines if (found := settled_answer(line))}
    unasked = {event_id for event_id, answer in answers.items() if not answer.was_asked}
    return [
        replace(example, answer=replace(example.answer, was_asked=False))
        if example.answer and example.event_id in unasked
        else example
        for example in examples
    ]


def resumable(model: Any) -> Resumable:
    """Return a model that can be saved, or raise TypeError."""
    missing = [
        m for m in ("fingerprint", "examples", "state", "load_state") if not hasattr(model, m)
    ]
    if missing:
        raise TypeError(
            f"{type(model).__name__} cannot be saved; give it the methods {', '.join(missing)}, "
            "or use SkepticalClassifier"
        )
    return cast("Resumable", model)


def plain_examples(examples: Sequence[Example]) -> tuple[State, bytes]:
    """Return examples as plain values, and their features in binary if possible."""
    body: State = {"ids": [e.event_id for e in examples], "labels": [e.y for e in examples]}
    if any(e.privileged is not None for e in examples):
        # Omitted if there are none, as in earlier versions: snapshots stay the same.
        body["privileged"] = [e.privileged and plain_features(e.privileged) for e in examples]
    answers = [e.answer for e in examples]
    if any(answers):
        body["answers"] = [answer and _plain_answer(answer) for answer in answers]
    unasked = [n for n, answer in enumerate(answers) if answer and not answer.was_asked]
    if unasked:
        body["unasked"] = unasked
    corrected = [
        [n, answer.corrected]
        for n, answer in enumerate(answers)
        if answer and answer.corrected is not None
    ]
    if corrected:
        body["corrected"] = corrected
    names = _common_names(examples)
    if names is None:
        return {**body, "x": [plain_features(e.x) for e in examples]}, b""
    pack = Struct(f"<{len(names)}d").pack
    return {**body, "names": names}, b"".join([pack(*e.x.values()) for e in examples])


def _plain_answer(answer: SettledAnswer) -> list[Any]:
    second = answer.second
    said = [] if second is None else [second.y, second.annotator]
    return [answer.y, answer.annotator, answer.upheld, *said]


def _common_names(examples: Sequence[Example]) -> list[str] | None:
    """Return the names of the features, if all examples have the same and all are floats."""
    if not examples:
        return None
    names = list(examples[0].x)
    alike = all(list(e.x) == names for e in examples) and all(type(n) is str for n in names)
    values = chain.from_iterable(e.x.values() for e in examples)
    return names if names and alike and all(type(v) is float for v in values) else None


def examples_of(body: State, blob: bytes) -> list[Example]:
    """Return the examples from plain values."""
    xs: list[Features]
    if "names" in body:
        names = body["names"]
        rows = Struct(f"<{len(names)}d").iter_unpack(blob)
        xs = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        xs = [features_of(x) for x in body["x"]]
    privileged = body.get("privileged", [None] * len(xs))
    answers = body.get("answers", [None] * len(xs))
    unasked, corrected = set(body.get("unasked", ())), dict(body.get("corrected", ()))
    return [
        Example(
            event_id=event_id,
            x=x,
            y=y,
            privileged=known and features_of(known),
            answer=answer
            and _answer_of(*answer, was_asked=n not in unasked, corrected=corrected.get(n)),
        )
        for n, (event_id, x, y, known, answer) in enumerate(
            zip(body["ids"], xs, body["labels"], privileged, answers, strict=True)
        )
    ]


def _answer_of(
    y: Label | None,
    annotator: str | None,
    upheld: bool | None,
    *second: Any,
    was_asked: bool,
    corrected: Label | None,
) -> SettledAnswer:
    return SettledAnswer(
        y=y,
        annotator=annotator,
        upheld=upheld,
        second=SettledAnswer(y=second[0], annotator=second[1]) if second else None,
        was_asked=was_asked,
        corrected=corrected,
    )


class _Line(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A line of the consensus log; `LabelledExample` defines the fields.

    `example` is the number of the example that it is about, which provides the features, and the
    label unless `y` is given.
    """

    example: int
    sequence: int
    learned_at: _Number
    origin: Origin
    annotator: str | None
    probability_wrong: _Number | None
    key: str | None
    y: bool | int | float | str | None = None
    revision: int = 0
    challenged: bool = False
    given: bool | int | float | str | None = None
    given_by: str | None = None
    late: bool = False
    asked_back: bool = False
    privileged: dict[str, Any] | None = None
    std: _Number | None = None
    volunteered: bool = False


def plain_lines(lines: Iterable[LabelledExample], examples: Sequence[Example]) -> list[list[Any]]:
    """Return lines of the consensus log as plain values, without what the examples contain."""
    numbers = {example.event_id: n for n, example in enumerate(examples)}
    found = []
    for line in lines:
        number = numbers.get(line.event_id)
        if number is None:
            continue  # of an incomplete log
        plain = [number, *_fields_of_line(line)]
        y = examples[number].y
        plain[_Y] = None if line.y == y and type(line.y) is type(y) else line.y
        if line.privileged is not None:
            plain[_LINE_PRIVILEGED] = dict(line.privileged)
        found.append(_shortened(plain, _Line))
    return found


def lines_of(plain: Iterable[Any], examples: Sequence[Example]) -> list[LabelledExample]:
    """Return the lines from plain values."""
    found = []
    for saved in msgspec.convert(plain, list[_Line]):
        example = examples[saved.example]
        fields = {name: getattr(saved, name) for name in _LINE_FIELDS}
        fields["y"] = example.y if saved.y is None else saved.y
        found.append(LabelledExample(event_id=str(example.event_id), x=example.x, **fields))
    return found


_LINE_FIELDS = _Line.__struct_fields__[1:]
_fields_of_line: Callable[[LabelledExample], tuple[Any, ...]] = attrgetter(*_LINE_FIELDS)
_Y, _LINE_PRIVILEGED = map(_Line.__struct_fields__.index, ("y", "privileged"))


# --- State of a loop in parts, each published when it changes.
#
# The head, with the latest conversations, is one part, and every segment of earlier ones is another
# (see `event_store.py`). Together with the consensus log, which holds the labelled examples, the
# last published parts restore the loop. Who publishes them, and where, is decided elsewhere.


HEAD = "head"
_SEGMENT = "events/"
# Number of bytes of JSON of the latest conversations that are published with every head, so that
# most events cost one part and not two; about as many as the rest of the head.
RECENT_BYTES = 1 << 10

_encode = msgspec.json.Encoder().encode


def changed_parts(moderator: SavedModerator, fingerprint: str) -> dict[str, Any]:
    """Return the head and the segments that have changed, and mark them as published.

    Parameters
    ----------
    moderator
        The moderator of the loop.
    fingerprint
        Fingerprint of the model.

    """
    memory, plain = moderator.memory, partial(_published, moderator)
    segments, fresh = memory.segments, memory.unpublished()
    recent = list(map(plain, fresh))
    if len(_encode(recent)) > RECENT_BYTES:
        changed, recent = segments.publish(fresh, recent, plain), []
    else:
        changed = segments.publish([], [], plain)
    # The head comes last: a reader that starts anywhere and finds a segment also finds the head.
    parts = {**_by_name(changed), HEAD: _head(moderator, fingerprint, recent)}
    moderator.journal.save_early(parts[HEAD]["model"])
    segments.settle()
    return parts


def all_parts(moderator: SavedModerator, fingerprint: str) -> dict[str, Any]:
    """Return all parts as they are now; arguments as for `changed_parts`."""
    recent = [_published(moderator, record) for record in moderator.memory.unpublished()]
    return {**segment_parts(moderator), HEAD: _head(moderator, fingerprint, recent)}


def segment_parts(moderator: SavedModerator) -> dict[str, Any]:
    """Return the segments as they are now, without conversations that are in none yet."""
    segments = moderator.memory.segments
    return _by_name(
        {n: [_published(moderator, record) for record in on] for n, on in segments if on}
    )


def part_names(moderator: SavedModerator) -> list[str]:
    """Return the names of the parts that have been published, or may have been."""
    return [*_by_name(dict(moderator.memory.segments)), HEAD]


def _head(moderator: SavedModerator, fingerprint: str, recent: list[PlainRecord]) -> State:
    return {**head_of(moderator), "fingerprint": fingerprint, "recent": recent}


def _published(moderator: SavedModerator, record: Conversation) -> PlainRecord:
    return plain_record(record, moderator.deadlines.number(record.event.event_id))


def take_up(
    parts: Mapping[str, Any],
    log: Iterable[LabelledExample],
    moderator: SavedModerator,
    *,
    after: tuple[int, Sequence[Example], Iterable[LabelledExample]] | None = None,
) -> None:
    """Restore parts and a consensus log into a new loop.

    Lines that were deleted from the log may be missing; until the loop is told of that
    (`withdraw`), a conversation knows its label, which then counts.

    Parameters
    ----------
    parts
        All parts; None for a part that is gone.
    log
        The lines of the loop, in any order.
    moderator
        The moderator of the new loop.
    after
        The number of a line, and the examples and lines held at that time: then only later lines
        are read.

    Raises
    ------
    ValueError
        If they do not fit together.

    """
    head = parts.get(HEAD)
    if head is None:
        raise ValueError(f"there is no part {HEAD!r}")
    fingerprint = resumable(moderator.model).fingerprint()
    if head["fingerprint"] != fingerprint:
        raise ValueError(
            f"it is of another configuration ({head['fingerprint']!s:.16}, this one is "
            f"{fingerprint})"
        )
    segments: list[tuple[int | None, Sequence[PlainRecord]]] = [
        (_number(name), segment) for name, segment in parts.items() if segment and name != HEAD
    ]
    segments.append((None, head["recent"]))
    records = [
        (number, *record_of(plain, _nowhere)) for number, segment in segments for plain in segment
    ]
    first, examples, lines = (0, (), ()) if after is None else after
    if head["sequence"] < first:
        raise ValueError(
            f"it ends with line {head['sequence']} of the log, expected {first} or more"
        )
    held = {str(example.event_id): example for example in examples}
    # Lines later than the head were never published with it.
    later = by_sequence(line for line in log if first < line.sequence <= head["sequence"])
    read_on(held, later)
    for _, record, _ in records:
        _agree(held, record)
    if after is not None and len(held) != head["learned"]:
        raise ValueError(f"the log leaves {len(held)} examples, expected {head['learned']}")
    resume(head, records, list(held.values()), [*lines, *later], moderator)


def _agree(held: dict[str, Example], record: Conversation) -> None:
    """Make the examples agree with a conversation, if lines of the log are missing."""
    event, label = record.event, record.label
    example = held.get(event.event_id)
    if not record.is_learned:
        if record.revision:
            held.pop(event.event_id, None)  # it was taken back
    elif label is None:
        raise ValueError(f"event {event.event_id!r} was learned without a label")
    elif example is None or (example.y, example.privileged) != (label.y, label.privileged):
        held[event.event_id] = Example(
            event_id=event.event_id,
            x=event.x,
            y=label.y,
            privileged=label.privileged,
            answer=None if example is None else example.answer,
        )


def _by_name(segments: Mapping[int, Any]) -> dict[str, Any]:
    return {f"{_SEGMENT}{number}": segment for number, segment in segments.items()}


def _number(name: str) -> int:
    """Return the number of the segment named `name`."""
    number = name.removeprefix(_SEGMENT)
    if not (number.isdecimal() and name == f"{_SEGMENT}{int(number)}"):
        raise ValueError(f"part {name!r} is unknown, expected {HEAD!r} or '{_SEGMENT}<number>'")
    return int(number)


def _nowhere(event_id: str) -> None:
    """Find no example: a segment contains all features."""
