"""Which of the latest events may be asked about, and the question about the one that is.

The events are those that the loop remembers anyway: nothing has to be kept of them beside that.
When to look, and which of them tells most, is the model's business.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, cast

from streamgp.interactive.consensus import SkepticalLearner
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import LabelRequest

if TYPE_CHECKING:
    from streamgp.base import Decision, Features
    from streamgp.interactive.conversation import Moderator
    from streamgp.interactive.records import Record


class Reach(Protocol):
    """How far back a model looks."""

    @property
    def size(self) -> int:
        """How many of the latest events it looks at."""

    @property
    def max_age_s(self) -> float | None:
        """Seconds after which an event is not asked about any more; None for no limit."""


class AskingBackLearner(SkepticalLearner, Protocol):
    """A skeptical learner that also asks about earlier events, now and then."""

    @property
    def reservoir(self) -> Reach:
        """How far back it looks."""

    @property
    def reservoir_due(self) -> bool:
        """Whether it is time to look through the latest events."""

    def ask_among_one(
        self, candidates: Mapping[str, Features], *, now: float
    ) -> tuple[str, Decision] | None:
        """Return the most telling event and whether to ask about it, None if there is none; pure.

        `candidates` holds the features of the events, by event id.
        """

    def note_reservoir(self, decision: Decision | None, *, now: float) -> None:
        """Hear that the latest events were looked through, and what came of it."""

    def note_reservoir_unanswered(self, now: float, *, asked_at: float) -> None:
        """Hear that a question about an earlier event, and when it was made, ended unanswered."""


def as_asking_back(model: SkepticalLearner) -> AskingBackLearner | None:
    """Return a model that asks about earlier events, None if it does not."""
    asks = getattr(model, "reservoir", None) is not None
    return cast("AskingBackLearner", model) if asks else None


def ask_back(
    model: AskingBackLearner, memory: Memory, moderator: Moderator, now: float
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
    model.note_reservoir(decision, now=now)
    if found is None or decision is None or not decision.ask:
        return None
    record = memory[found[0]]
    return record, moderator.ask_back(record, decision, now)
