"""The transition table of the conversation about one event, as data.

`TABLE` is what the moderator executes, what `docs/conversation.md` prints, and what the tests play
cell by cell. Each row says what an input does in some states: the next state, and the messages.

"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from streamgp.interactive.messages import Fault

State: TypeAlias = Literal[
    "unknown",
    "seen",
    "asked",
    "expired",
    "declined",
    "cancelled",
    "challenged",
    "learned",
    "kept",
    "doubted",
    "compared",
    "uncompared",
    "withdrawn",
    "refused",
]
STATES: Final[Mapping[State, str]] = {
    "unknown": "never seen, or forgotten after the answer horizon",
    "seen": "predicted; no label was requested",
    "asked": "a label request is open",
    "expired": "the label request ended unanswered; a late answer is still welcome",
    "declined": "the annotator could not answer, or took an answer back before it was learned",
    "cancelled": "the label request was taken back; an answer that was on its way is welcome",
    "challenged": "a label was given and contested; the challenge is open",
    "learned": "the label is in the consensus log",
    "kept": "the same, the challenge having expired; a late answer to it is still welcome",
    "doubted": "the label is in the consensus log and contested once more; the challenge is open",
    "compared": "the label is in the consensus log, and a second question about it is open",
    "uncompared": "the same, the second question having ended without an answer; a late one is "
    "still welcome",
    "withdrawn": "the label was in the consensus log and was taken back",
    "refused": "the learner could not take the example",
}

Input: TypeAlias = Literal[
    "event",
    "event+",
    "label",
    "unasked",
    "same",
    "other",
    "restate",
    "replace",
    "takeback",
    "decline",
    "cancel",
    "deadline",
    "horizon",
    "erase",
    "review",
    "back",
    "compare",
    "second",
    "amend",
    "revoke",
]
INPUTS: Final[Mapping[Input, str]] = {
    "event": "an event",
    "event+": "an event that brings its label",
    "label": "a label, for the label request",
    "unasked": "a label that names no request",
    "same": "for the last challenge: the contested label once more",
    "other": "for the last challenge: another label, or the same in another annotator's name",
    "restate": "supersedes the answer that stands with the same label",
    "replace": "supersedes it with another label, or the same in another annotator's name",
    "takeback": "supersedes it and declines",
    "decline": "declines the last request",
    "cancel": "the last request is cancelled",
    "deadline": "the expiry of the last request passes",
    "horizon": "the answer horizon of the event passes",
    "erase": "the line of the log is deleted, in no annotator's name",
    "review": "a look through the labels learned finds that of the event doubtful",
    "back": "a look through the latest events finds that this label would tell most",
    "compare": "a second question about the label learned is due",
    "second": "a label, for the second question",
    "amend": "supersedes the answer to the second question with a label",
    "revoke": "supersedes it and declines",
}

Mark: TypeAlias = Literal["", "?", "!", "#"]
MARKS: Final[Mapping[Mark, str]] = {
    "?": "the query strategy wants to ask",
    "!": "the label is contested",
    "#": "the learner refuses the example",
}

REJECTIONS: Final[Mapping[str, Fault]] = {
    "duplicate": "duplicate",
    "unknown": "unknown",
    "ended": "ended",
}
"""Messages in a row that are the `Rejected` of an input that changes nothing. `unlearnable` is one,
too, but reports the result of an attempt."""

SAME: Final[Literal["="]] = "="
"""Next state of a row that does not change the state."""


class Row(NamedTuple):
    """Row of the table: the effect of an input in some states.

    `states` is `*` for all. A row without a mark holds for any mark; if several rows have the same
    state, input and mark, the first counts.
    """

    states: str
    inputs: str
    mark: Mark
    next: State | Literal["="]
    messages: str


_WITHOUT_LABEL: Final = "declined withdrawn refused expired cancelled"

TABLE: Final = (
    Row("unknown", "event", "?", "asked", "Prediction LabelRequest"),
    Row("unknown", "event+", "!", "challenged", "Prediction Challenge"),
    Row("unknown", "event+", "#", "refused", "Prediction unlearnable"),
    Row("unknown", "event+", "", "learned", "Prediction LabelledExample"),
    Row("unknown", "event", "", "seen", "Prediction"),
    Row("unknown", "deadline horizon erase review back compare", "", SAME, ""),
    Row("unknown", "*", "", SAME, "unknown"),
    Row("*", "event event+", "", SAME, "duplicate"),
    # Looks back, when an input that may be about another event was accepted.
    Row("seen", "back", "", "asked", "LabelRequest"),
    Row("learned kept uncompared", "review", "", "doubted", "Challenge"),
    # A second question, whose answer is data: it ends nothing but itself.
    Row("learned", "compare", "", "compared", "LabelRequest"),
    Row("*", "back review compare", "", SAME, ""),
    Row("compared", "second unasked", "#", "learned", "unlearnable"),
    Row("compared", "second unasked", "", "learned", "LabelledExample"),
    Row("uncompared", "second", "#", SAME, "unlearnable"),
    Row("uncompared", "second", "", "learned", "LabelledExample"),
    Row("learned", "amend revoke", "#", SAME, "unlearnable"),
    Row("learned", "amend revoke", "", SAME, "LabelledExample"),
    Row("seen asked expired cancelled", "second amend revoke", "", SAME, "unknown"),
    Row("compared uncompared", "amend revoke", "", SAME, "unknown"),
    Row("*", "second amend revoke", "", SAME, "ended"),
    # The answer to the label request, early or late.
    Row("asked expired cancelled withdrawn", "label", "!", "challenged", "Challenge"),
    Row("asked expired cancelled withdrawn", "label", "#", "refused", "unlearnable"),
    Row("asked expired cancelled withdrawn", "label", "", "learned", "LabelledExample"),
    Row("seen", "label", "", SAME, "unknown"),
    Row("*", "label", "", SAME, "ended"),
    # The answer to a challenge, which is final.
    Row("challenged", "same other unasked", "#", "refused", "unlearnable"),
    Row("challenged", "same other unasked", "", "learned", "LabelledExample"),
    Row("doubted", "same other unasked", "#", "learned", "unlearnable"),
    Row("doubted", "same other unasked", "", "learned", "LabelledExample"),
    Row("kept", "same", "", "learned", ""),
    Row("kept", "other", "#", SAME, "unlearnable"),
    Row("kept", "other", "", "learned", "LabelledExample"),
    Row("seen asked expired cancelled", "same other", "", SAME, "unknown"),
    Row("*", "same other", "", SAME, "ended"),
    # A label that names no request.
    Row("learned kept uncompared", "unasked", "", SAME, "ended"),
    Row("*", "unasked", "!", "challenged", "Challenge"),
    Row("*", "unasked", "#", "refused", "unlearnable"),
    Row("*", "unasked", "", "learned", "LabelledExample"),
    # Corrections.
    Row("challenged", "restate replace", "#", "refused", "unlearnable"),
    Row("challenged", "restate replace", "", "learned", "LabelledExample"),
    Row("challenged", "takeback", "", "declined", ""),
    Row("doubted", "restate replace", "#", "learned", "unlearnable"),
    Row("doubted", "restate replace", "", "learned", "LabelledExample"),
    Row("compared uncompared", "restate", "", SAME, ""),
    Row("compared uncompared", "replace", "#", SAME, "unlearnable"),
    Row("compared uncompared", "replace", "", SAME, "LabelledExample"),
    Row("learned kept", "restate", "", "learned", ""),
    Row("learned kept", "replace", "#", SAME, "unlearnable"),
    Row("learned kept", "replace", "", "learned", "LabelledExample"),
    Row("learned kept doubted uncompared", "takeback", "", "withdrawn", "LabelledExample"),
    Row("compared", "takeback", "", "withdrawn", "Cancel LabelledExample"),
    Row(_WITHOUT_LABEL, "restate replace", "!", "challenged", "Challenge"),
    Row(_WITHOUT_LABEL, "restate replace", "#", "refused", "unlearnable"),
    Row(_WITHOUT_LABEL, "restate replace", "", "learned", "LabelledExample"),
    Row("refused", "takeback", "", "declined", ""),
    Row("declined withdrawn expired cancelled", "takeback", "", SAME, ""),
    Row("*", "restate replace takeback", "", SAME, "unknown"),
    # Questions that end without an answer: a contested label is learned as it was given.
    Row("asked", "decline", "", "declined", ""),
    Row("challenged", "decline", "#", "refused", "unlearnable"),
    Row("challenged", "decline", "", "learned", "LabelledExample"),
    Row("doubted compared", "decline", "", "learned", ""),
    # It was under way when the question ended: there is nothing left to decline, nor to tell.
    Row("expired cancelled kept uncompared", "decline", "", SAME, ""),
    Row("seen", "decline", "", SAME, "unknown"),
    Row("*", "decline", "", SAME, "ended"),
    Row("asked", "cancel", "", "cancelled", "Cancel"),
    Row("challenged", "cancel", "#", "refused", "Cancel unlearnable"),
    Row("challenged", "cancel", "", "learned", "Cancel LabelledExample"),
    Row("doubted", "cancel", "", "learned", "Cancel"),
    Row("compared", "cancel", "", "uncompared", "Cancel"),
    Row("seen", "cancel", "", SAME, "unknown"),
    Row("*", "cancel", "", SAME, "ended"),
    Row("asked", "deadline", "", "expired", "Expired"),
    Row("challenged", "deadline", "#", "refused", "Expired unlearnable"),
    Row("challenged", "deadline", "", "kept", "Expired LabelledExample"),
    Row("doubted", "deadline", "", "kept", "Expired"),
    Row("compared", "deadline", "", "uncompared", "Expired"),
    Row("*", "deadline", "", SAME, ""),
    Row("challenged", "horizon", "#", "unknown", "Expired unlearnable"),
    Row("challenged", "horizon", "", "unknown", "Expired LabelledExample"),
    Row("asked doubted compared", "horizon", "", "unknown", "Expired"),
    Row("*", "horizon", "", "unknown", ""),
    # A line of the consensus log that was deleted.
    Row("learned kept uncompared", "erase", "", "withdrawn", "LabelledExample"),
    Row("doubted compared", "erase", "", "withdrawn", "Cancel LabelledExample"),
    Row("*", "erase", "", SAME, ""),
)


class Outcome(NamedTuple):
    """Effect of an input in one state."""

    next: State
    messages: tuple[str, ...]
    fault: Fault | None
    """Fault of an input that is rejected and changes nothing; None otherwise."""


Cell: TypeAlias = Mapping[Mark, Outcome]
"""Effect of an input in one state, by mark; "" stands for no mark, and for marks left out."""


def _cell(state: State, given: Input) -> Cell:
    cell: dict[Mark, Outcome] = {}
    for row in TABLE:
        fits = row.states == "*" or state in row.states.split()
        if fits and (row.inputs == "*" or given in row.inputs.split()) and row.mark not in cell:
            following = state if row.next == SAME else row.next
            cell[row.mark] = Outcome(
                following, tuple(row.messages.split()), REJECTIONS.get(row.messages)
            )
            if not row.mark:
                return cell
    raise LookupError(f"the transition table has no row for {given!r} in state {state!r}")


CELLS: Final[Mapping[tuple[State, Input], Cell]] = {
    (state, given): _cell(state, given) for state in STATES for given in INPUTS
}
"""The table, cell by cell."""
