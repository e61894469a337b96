"""Retrospective queries: doubted labels, and earlier events without one.

When to look, and what is doubtful, is the model's business.

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgp.interactive.event_store import EventStore
from streamgp.interactive.learner import AskingBackLearner, ReviewingLearner
from streamgp.interactive.messages import Challenge, LabelRequest
from streamgp.interactive.moderator import Moderator
from streamgp.interactive.rollback import Rollback

if TYPE_CHECKING:
    from streamgp.interactive.conversation_record import Record


def look_through(
    model: ReviewingLearner,
    rollback: Rollback,
    memory: EventStore,
    moderator: Moderator,
    now: float,
) -> tuple[Record, Challenge] | None:
    """Let the model look through the labels that it has learned.

    Returns
    -------
    The conversation about the one that it contests, and the challenge; None if there is none.

    """
    records: dict[str, Record] = {}
    annotators: dict[str, str | None] = {}
    # By the examples, which are few, and not by the events that are remembered.
    for example in model.examples():
        record = memory.get(example.event_id or "")
        if record is None or record.word is None or memory.is_beyond(record, now):
            continue
        if record.may_be_doubted:
            records[record.event.event_id] = record
            annotators[record.event.event_id] = record.word.annotator
    doubt = model.review_one(annotators, now=now)
    rollback.call(model.note_review, doubt, now=now)
    if doubt is None or not doubt.decision.ask:
        return None
    record = records[doubt.event_id]
    rollback.touch(record)
    return record, moderator.doubt(record, doubt, now)


# --- Which of the latest events may be asked about, and the question about the one that is.
#
# The events are those that the loop remembers anyway: nothing has to be kept of them beside that.
# When to look, and which of them tells most, is the model's business.


def ask_back(
    model: AskingBackLearner,
    rollback: Rollback,
    memory: EventStore,
    moderator: Moderator,
    now: float,
) -> tuple[Record, LabelRequest] | None:
    """Let the model look through the latest events that nobody was asked about.

    Returns
    -------
    The conversation about the one that it wants to be labelled, and the request; None if there is
    none.

    """
    reach, total = model.reservoir, moderator.total
    records = memory.latest_seen(reach.size, now, reach.max_age_s, moderator.waits_s)
    found = model.ask_among_one({r.event.event_id: r.event.x for r in records}, now=now)
    decision = None if found is None else found[1]
    if total is not None and decision is not None:
        decision = total.checked(decision, now)
    rollback.call(model.note_reservoir, decision, now=now)
    if found is None or decision is None or not decision.ask:
        return None
    record = memory[found[0]]
    rollback.touch(record)
    return record, moderator.ask(record, decision, now, back=True)
