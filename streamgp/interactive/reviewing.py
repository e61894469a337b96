"""Which of the labels learned may be doubted, and who is asked about the one that is.

When to look, and what is doubtful, is the model's business.

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgp.interactive.conversation import Moderator
from streamgp.interactive.learner import ReviewingLearner
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import Challenge
from streamgp.interactive.rollback import Rollback

if TYPE_CHECKING:
    from streamgp.interactive.records import Record


def look_through(
    model: ReviewingLearner,
    rollback: Rollback,
    memory: Memory,
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
