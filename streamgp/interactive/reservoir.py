"""Which of the latest events may be asked about, and the question about the one that is.

The events are those that the loop remembers anyway: nothing has to be kept of them beside that.
When to look, and which of them tells most, is the model's business.

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamgp.interactive.learner import AskingBackLearner
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import LabelRequest
from streamgp.interactive.rollback import Rollback

if TYPE_CHECKING:
    from streamgp.interactive.conversation import Moderator
    from streamgp.interactive.records import Record


def ask_back(
    model: AskingBackLearner,
    rollback: Rollback,
    memory: Memory,
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
    return record, moderator.ask_back(record, decision, now)
