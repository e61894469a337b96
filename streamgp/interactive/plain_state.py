"""What a loop must not forget beside its labelled examples, as plain values and back.

The head holds the model and the counters, a plain record one conversation. Both are the same in a
snapshot (`saving.py`) and in what is published piece by piece (`parts.py`).

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamgp.base import Example, State
from streamgp.interactive.conversation import Moderator
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import Event
from streamgp.interactive.pages import PlainRecord
from streamgp.interactive.records import Question, Record, Word
from streamgp.interactive.rollback import FULL_CREDIT
from streamgp.plain import features_of, plain_features


def head_of(model: Any, memory: Memory, moderator: Moderator) -> State:
    """Return the state of the model beside its examples, and how far everything is counted."""
    return {
        "sequence": moderator.consensus.sequence,
        "pages": memory.pages.n,
        "events": memory.n_added,
        "remembered": len(memory),
        "alarms": moderator.deadlines.n_set,
        "learned": model.n_learned,
        "model": model.state(),
        # Nothing for most loops, as before anything could fail: snapshots stay what they are.
        **({} if moderator.journal.credit == FULL_CREDIT else {"credit": moderator.journal.credit}),
    }


def resume(
    head: State,
    records: Iterable[tuple[int | None, Record, int | None]],
    examples: Sequence[Example],
    model: Any,
    memory: Memory,
    moderator: Moderator,
) -> None:
    """Make a new loop what plain values were taken from.

    Parameters
    ----------
    head
        What `head_of` returned.
    records
        Every conversation with the number of its page and of its alarm, in any order.
    examples
        What the model holds.
    model, memory, moderator
        What the new loop consists of.

    """
    records = sorted(records, key=lambda found: found[1].serial)
    if len(records) != head["remembered"]:
        raise ValueError(f"there are {len(records)} conversations, expected {head['remembered']}")
    model.load_state(head["model"], examples)
    moderator.journal.credit = int(head.get("credit", FULL_CREDIT))
    memory.n_added, memory.pages.n = int(head["events"]), int(head["pages"])
    deadlines = moderator.deadlines
    deadlines.n_set = int(head["alarms"])
    serial = 0
    last_page: int | None = 0
    for page, record, alarm in records:
        event_id, request = record.event.event_id, record.open_request
        if not serial < record.serial <= memory.n_added or memory.get(event_id) is not None:
            raise ValueError(f"event {event_id!r} is there twice, or was never counted")
        serial = record.serial
        if last_page is None and page is not None:
            raise ValueError(f"event {event_id!r} was published before an earlier one")
        last_page = page
        if page is not None:
            memory.pages.put(record, page)
        memory.take_over(record)
        if request is not None and request.expires_at is not None:
            if alarm is None:
                raise ValueError(f"request {request.request_id!r} has no alarm")
            deadlines.reset(event_id, request.expires_at, alarm)
    moderator.consensus.sequence = int(head["sequence"])


def plain_record(record: Record, alarm: int | None, *, with_x: bool = True) -> PlainRecord:
    """Return a conversation as plain values.

    Parameters
    ----------
    record
        The conversation.
    alarm
        Number of the alarm of its open request, None if there is none.
    with_x
        Whether with the features; without them, somebody else must know them.

    """
    event, request, word = record.event, record.request, record.word
    return [
        record.serial,
        event.event_id,
        event.key,
        event.occurred_at,
        _plain_x(record) if with_x else None,
        record.state,
        record.standing,
        record.was_asked,
        record.n_challenges,
        record.revision,
        record.answer_ids.copy(),
        None if request is None else [request.request_id, request.expires_at, alarm],
        None
        if word is None
        else [
            word.y,
            word.origin,
            word.answer_id,
            word.annotator,
            word.late,
            None if word.privileged is None else dict(word.privileged),
            # Without one as it was before there were any: snapshots stay what they are.
            *(() if word.std is None else (word.std,)),
        ],
        *_seldom(record),
    ]


def _seldom(record: Record) -> list[Any]:
    # Of most conversations nothing, as it was before there was any: snapshots stay what they are.
    if record.delayed_s:
        return [record.asked_back_at, record.is_given_back, record.delayed_s]
    if record.is_given_back:
        return [record.asked_back_at, True]
    return [] if record.asked_back_at is None else [record.asked_back_at]


def _plain_x(record: Record) -> Any:
    x = record.event.x
    if record.is_plain:
        return x
    plain = plain_features(x)
    record.is_plain = plain is x
    return plain


def record_of(
    plain: PlainRecord, learned: Callable[[str], Example | None]
) -> tuple[Record, int | None]:
    """Return the conversation that plain values stand for, and the number of its alarm.

    Parameters
    ----------
    plain
        What `plain_record` returned.
    learned
        Finds the example of an event, for conversations without features.

    """
    serial, event_id, key, occurred_at, x, state, standing, asked, n, revision, *rest = plain
    answer_ids, request, word, *seldom = rest
    if x is None:
        example = learned(event_id)
        if example is None:
            raise ValueError(f"event {event_id!r} has neither features nor a labelled example")
        x = example.x
    else:
        x = features_of(x)
    record = Record(Event(event_id=event_id, key=key, x=x, occurred_at=occurred_at))
    record.serial = serial
    record.state = state
    record.standing = standing
    record.was_asked = asked
    record.asked_back_at = seldom[0] if seldom else None
    record.is_given_back = len(seldom) > 1 and seldom[1]
    record.delayed_s = seldom[2] if len(seldom) > 2 else 0.0
    record.n_challenges = n
    record.revision = revision
    record.answer_ids = list(answer_ids)
    alarm = None
    if request is not None:
        request_id, expires_at, alarm = request
        record.request = Question(request_id=request_id, expires_at=expires_at)
    if word is not None:
        y, origin, answer_id, annotator, late, privileged, *std = word
        record.word = Word(
            y=y,
            origin=origin,
            answer_id=answer_id,
            annotator=annotator,
            late=late,
            privileged=privileged,
            std=std[0] if std else None,
        )
    return record, alarm
