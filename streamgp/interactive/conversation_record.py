"""Record of the conversation about one event, names of its requests, and what answers mean in it.

The names are derived from the event, so the event of a request is found without a look-up.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

import msgspec

from streamgp.base import FrozenStruct, Label
from streamgp.common.label_context import LabelContext
from streamgp.interactive.messages import (
    Answer,
    Event,
    Fault,
    LabelledExample,
    Origin,
    second_ids,
)
from streamgp.interactive.transitions import Input, State
from streamgp.interactive.validation import as_label

AnswerName: TypeAlias = tuple[str | None, str]
"""Identifies an answer: its annotator, and its id among those of that annotator."""

_OPEN: Final = frozenset(("asked", "challenged", "doubted", "compared"))
_LEARNED: Final = frozenset(("learned", "kept", "doubted", "compared", "uncompared"))
# Number of challenges after which no old label of an event is doubted again: an annotator who does
# not answer is not asked for ever.
MOST_CHALLENGES = 2


# This and `SecondQuestion` are written as arrays of their fields, which topics hold for ever: one
# may only be added at the end, with a default.
class GivenLabel(
    FrozenStruct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True
):
    """A label as its annotator gave it.

    `origin` is the origin for the consensus log. `late` is whether it was given after its
    request had expired. `answer_id` is the event's own id for a label that came with the event.
    `std` is the standard deviation of a number, if the annotator stated it.
    """

    y: Label
    origin: Origin
    answer_id: str
    annotator: str | None
    late: bool
    privileged: Mapping[str, Any] | None
    std: int | float | None = None  # as it came: it is written back as it was read

    @classmethod
    def of_line(cls, line: LabelledExample, *, answer_id: str, annotator: str | None) -> Self:
        """Return the label of a line of the log, which must have one."""
        assert line.y is not None  # the line is no withdrawal
        return cls(
            y=line.y,
            origin=line.origin,
            answer_id=answer_id,
            annotator=annotator,
            late=line.late,
            privileged=line.privileged,
            std=line.std,
        )

    @property
    def context(self) -> LabelContext:
        """Context of the label, for the learner."""
        return LabelContext(annotator=self.annotator, std=self.std, privileged=self.privileged)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """Record of a label request or a challenge that was sent.

    `threshold` is what the score of the event had to exceed, if the question is taken back when it
    no longer does. `pending` is the value that stands for the answer until one is learned, if that
    counts. `is_improbable` is whether it contests a label that goes to a second annotator if it is
    upheld.
    """

    request_id: str
    expires_at: float | None
    threshold: float | None = None
    pending: float | None = None
    is_improbable: bool = False


class SecondQuestion(
    FrozenStruct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True
):
    """Record of a second question about an event: drawn, asked, answered.

    `to` is the only annotator to be asked, None for any who has not answered about the event.
    `after` is the line of the consensus log after which it is to be asked, None once it was asked.
    `answer_id` and `annotator` are those of the last answer to it, None while there is none;
    `first` is the label that stood when it was answered with a label. `barred` are annotators who
    are not asked either, as there is more evidence that they mislead.
    """

    to: str | None = None
    after: int | None = None
    answer_id: str | None = None
    annotator: str | None = None
    first: GivenLabel | None = None
    barred: tuple[str, ...] = ()


# A struct: one is made for every event, in a tenth of the time of a class with slots. Nothing that
# it refers to refers to it, so that the garbage collector need not look at it, as at its event.
class Conversation(msgspec.Struct, eq=False, gc=False):
    """The conversation about one event.

    Examples
    --------
    >>> record = Conversation(Event(event_id="e1", x={}, occurred_at=0.0))
    >>> record.label_request_id, record.challenge_id(1)
    ('e1/label', 'e1/challenge/1')
    >>> record.state, record.open_request
    ('seen', None)

    """

    # event         as received, except its label and truth after a restart; never changes.
    # state         changed only by the moderator, as the table in transitions.py says, or where the
    #               log decides (`agree_with`); "seen" from the start, as a record is made when its
    #               event was predicted.
    # request       the last question about the event; open exactly while the state is asked,
    #               challenged, doubted or compared. Kept afterwards, to judge late answers.
    # label         the label that stands: contested while challenged, learned in learned, kept,
    #               doubted, compared and uncompared; otherwise None.
    # standing      id of the answer that may be superseded: it gave `label`, or it declined,
    #               withdrew, or could not be learned. None while no answer came.
    # standing_by   whose label that is: the annotator of that answer, or of `label` if the answer
    #               has none; None if no annotator is named.
    # was_asked     whether a label request was ever made.
    # asked_back_at when it was made in a review of the latest events; None if it was made when the
    #               event came, or never.
    # is_given_back whether that request ended without an answer and was refunded to its budget.
    # n_challenges  challenges so far; the last one is number n_challenges.
    # delayed_s     largest number of seconds between a question's own time and its writing; 0 if
    #               events are remembered for ever.
    # revision      corrections of the label so far.
    # answers       accepted answers, each by its annotator and id; forgotten with the event.
    # serial        number of the event in the order in which the memory took them.
    # second        the second question about the event, None while there is none; open exactly
    #               while the state is compared, when it is also `request`.
    # segment       where it was published, None while it was not; see `event_store.py`.
    # is_plain      whether the features are known to be plain JSON values: needed often.
    event: Event
    state: State = "seen"
    request: SentRequest | None = None
    label: GivenLabel | None = None
    standing: str | None = None
    standing_by: str | None = None
    was_asked: bool = False
    asked_back_at: float | None = None
    is_given_back: bool = False
    n_challenges: int = 0
    delayed_s: float = 0.0
    revision: int = 0
    answers: tuple[AnswerName, ...] = ()
    second: SecondQuestion | None = None
    serial: int = 0
    segment: int | None = None
    is_plain: bool = False

    def stand(self, said: GivenLabel | Answer, label: GivenLabel | None) -> None:
        """Record which answer may now be superseded, and the label that stands with it."""
        self.label = label
        self.standing = said.answer_id
        self.standing_by = self.labelled_by if said.annotator is None else said.annotator

    def agree_with(self, line: LabelledExample, annotator: str | None) -> None:
        """Set the label that stands to that of the last line of the log about the event.

        So every conversation agrees with the log: `label` is that of the last line, in the name of
        the annotator of the last answer, second answers aside, whose id is `standing`, as far as
        that is known. A line with which a retraction tells what stands again is no answer. After a
        withdrawal there is no label, and `standing` stays.

        Parameters
        ----------
        annotator
            That annotator, None if no annotator is named; `standing` is set accordingly.

        """
        self.revision = line.revision
        if line.y is None:
            self.state, self.label = "withdrawn", None
            return
        self.state = "learned"
        self.label = GivenLabel.of_line(line, answer_id=self.standing or "", annotator=annotator)
        self.standing_by = annotator

    @property
    def labelled_by(self) -> str | None:
        """The annotator of the label that stands."""
        return None if self.label is None else self.label.annotator

    @property
    def answer_ids(self) -> list[str]:
        """Ids of the accepted answers."""
        return [answer_id for _, answer_id in self.answers]

    @property
    def answered_by(self) -> list[str | None] | None:
        """Their annotators; None if all are by the annotator of the answer that stands."""
        names = [annotator for annotator, _ in self.answers]
        return None if names.count(self.standing_by) == len(names) else names

    @property
    def label_request_id(self) -> str:
        return f"{self.event.event_id}/label"

    def challenge_id(self, number: int) -> str:
        return f"{self.event.event_id}/challenge/{number}"

    @property
    def second_request_id(self) -> str | None:
        """Id of the second question, None if none was asked."""
        second = self.second
        if second is None or second.after is not None:
            return None
        of_another, of_the_same = second_ids(self.event.event_id)
        return of_another if second.to is None else of_the_same

    @property
    def speakers(self) -> list[str]:
        """Annotators of the accepted answers, each once."""
        return list(dict.fromkeys(name for name, _ in self.answers if name is not None))

    def is_second_of(self, annotator: str | None) -> bool:
        """Whether the second question is put to an annotator, or was answered by them."""
        second = self.second
        if second is None or annotator is None:
            return False
        is_open = self.state == "compared" and second.to is None
        return annotator == second.annotator or (is_open and annotator not in self.speakers)

    def last_answer_of(self, annotator: str | None) -> str | None:
        """Return the id of an annotator's last answer, except that to the second question.

        This is the event's id for a label that came with it; `standing` if no such answer is known.
        """
        second = None if self.second is None else self.second.answer_id
        default = self.event.event_id if annotator is None else self.standing
        found = (i for name, i in reversed(self.answers) if name == annotator and i != second)
        return next(found, default)

    @property
    def asked_at(self) -> float:
        """When the label request was made: at the time of the event, unless in a review."""
        return self.event.occurred_at if self.asked_back_at is None else self.asked_back_at

    @property
    def was_asked_back(self) -> bool:
        """Whether the label request was made in a review of the latest events."""
        return self.asked_back_at is not None

    @property
    def open_request(self) -> SentRequest | None:
        """The question about the event that waits for an answer."""
        return self.request if self.state in _OPEN else None

    @property
    def pending(self) -> float | None:
        """Value that stands for the label while it is asked for and not learned yet."""
        request = self.request
        if request is None or self.state not in ("asked", "challenged"):
            return None
        return request.pending

    @property
    def is_learned(self) -> bool:
        """Whether the model holds the label that stands."""
        return self.state in _LEARNED

    @property
    def may_be_doubted(self) -> bool:
        """Whether the label that stands may be challenged again.

        It may not if an annotator has confirmed or corrected it, nor after two challenges.
        """
        label = self.label
        return (
            self.state in ("learned", "kept", "uncompared")
            and label is not None
            and label.origin in ("asked", "volunteered")
            and self.n_challenges < MOST_CHALLENGES
        )

    def occurred_before(self, now: float) -> float | None:
        """Return when the event occurred, None if that is now, as stated in a question."""
        at = self.event.occurred_at
        return None if at == now else at

    def was_made(self, request_id: str) -> bool:
        """Whether a request with this id was ever made about the event."""
        if request_id == self.label_request_id:
            return self.was_asked
        if request_id == self.second_request_id:
            return True
        head, _, number = request_id.rpartition("/")
        return (
            head == f"{self.event.event_id}/challenge"
            # Only the canonical spelling: int() would also take " 1", "+1" and "01".
            and any(number == str(n) for n in range(1, self.n_challenges + 1))
        )

    def is_late(self, answered_at: float) -> bool:
        """Whether an answer to the last request comes after its expiry."""
        request = self.request
        return (
            request is not None
            and request.expires_at is not None
            and answered_at > request.expires_at
        )


def event_id_of(request_id: str) -> str | None:
    """Return the id of the event that a request asks about, or None if it names no request."""
    return question_of(request_id)[0]


def question_of(request_id: str) -> tuple[str | None, str]:
    """Return the event that a request asks about, and whether for a label, second or challenge.

    Examples
    --------
    >>> question_of("trip/7/label"), question_of("trip/7/label/again")
    (('trip/7', 'label'), ('trip/7', 'second'))
    >>> question_of("trip/7/challenge/2"), question_of("trip/7")
    (('trip/7', 'challenge'), (None, ''))

    """
    event_id, slash, last = request_id.rpartition("/")
    if slash and last == "label":
        return event_id, "label"
    head, slash, kind = event_id.rpartition("/")
    if slash and kind == "label" and last in ("second", "again"):
        return head, "second"
    return (head, "challenge") if slash and kind == "challenge" else (None, "")


# --- How an answer reads in the conversation: which input it is, and whose label it concerns.


# Answers to earlier answers.
_CORRECTIONS: Final = frozenset(("same", "other", "restate", "replace", "takeback"))
# Inputs about the second question.
_OF_SECOND: Final = frozenset(("second", "amend", "revoke"))


class MisfitError(Exception):
    """An answer does not fit what is remembered; the loop rejects it."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault: Fault = fault
        self.reason = reason


def input_of(record: Conversation, answer: Answer) -> Input:
    """Return the input of the transition table that an answer corresponds to.

    Raises
    ------
    MisfitError
        If it is for a question before the last one.

    """
    request_id, label, second = answer.request_id, record.label, record.second
    # The same label in another annotator's name is a correction: it then stands as that one's
    # answer, even if the first one's answers are retracted. So is the label that a second answer
    # has brought about, if the first annotator adopts it: it then stands without that answer.
    first = label if second is None or second.first is None else second.first
    is_theirs = answer.annotator is None or answer.annotator == record.standing_by
    is_known = label is not None and first is not None and answer.y == label.y == first.y
    is_same = is_known and is_theirs
    if answer.supersedes is not None:
        if second is not None and _supersedes_second(record, second, answer):
            return "revoke" if answer.declined else "amend"
        return "takeback" if answer.declined else "restate" if is_same else "replace"
    if answer.declined:
        request = record.request
        if request is not None and request_id not in (None, request.request_id):
            raise MisfitError("ended", why_unusable(record, answer))
        return "decline"
    if request_id is None:
        return "unasked"
    if request_id == record.label_request_id:
        return "label"
    if request_id == record.second_request_id:
        return "second"
    if request_id != record.challenge_id(record.n_challenges):
        raise MisfitError("ended", why_unusable(record, answer))
    return "same" if is_same else "other"


def _supersedes_second(record: Conversation, second: SecondQuestion, answer: Answer) -> bool:
    """Whether an answer supersedes the answer to the second question."""
    if second.answer_id != answer.supersedes:
        return False
    # Two annotators may have given their answers the same id.
    return record.standing != second.answer_id or second.annotator == answer.annotator


def is_of_second(record: Conversation, given: Input) -> bool:
    """Whether an input is about the second question; without an id it is about the open one."""
    return given in _OF_SECOND or (record.state == "compared" and given in ("unasked", "decline"))


def why_uninvited(record: Conversation, answer: Answer) -> str:
    """Return why an annotator may not answer a second question in this way."""
    who = "an answer without an annotator" if answer.annotator is None else repr(answer.annotator)
    second = record.second
    assert second is not None
    if answer.supersedes is not None:
        return f"the answer that it supersedes is that of {second.annotator!r}, got {who}"
    if second.to is not None:
        return f"the second question is for {second.to!r} alone, got {who}"
    before = ", ".join(map(repr, (*record.speakers, *second.barred)))
    return f"the second question is for an annotator other than {before}, got {who}"


def owner_of(record: Conversation, given: Input) -> str | None:
    """Return whose answer an input would change or confirm; None if it has no annotator."""
    contested = record.state in ("challenged", "doubted")
    if given in _CORRECTIONS or (contested and given in ("unasked", "decline")):
        return record.standing_by
    return None


def why_foreign(record: Conversation, answer: Answer, owner: str | None) -> str:
    """Return why an annotator may not do this with another one's answer."""
    who = "an answer without an annotator" if answer.annotator is None else repr(answer.annotator)
    return (
        f"the answer that stands for event {record.event.event_id!r} is that of {owner!r}, and "
        f"{who} may not change, confirm or decline it; leave it to {owner!r} or a supervisor"
    )


def why_unusable(record: Conversation, answer: Answer) -> str:
    """Return why an answer cannot be used, and what to do."""
    if answer.declined:
        return f"event {record.event.event_id!r} has no such open request to decline"
    if answer.request_id is not None:
        return (
            f"request {answer.request_id!r} has already ended; to change the label, supersede the "
            "last answer"
        )
    return f"event {record.event.event_id!r} has its label; supersede the answer that gave it"


def label_given(record: Conversation, answer: Answer, given: Input) -> GivenLabel:
    """Read an answer as the label of an event whose state has not changed yet."""
    before = record.label
    contested = before if record.open_request is not None else None
    origin: Origin = "volunteered"
    if before is not None:
        is_affirmed = record.state in ("challenged", "doubted") or given in ("same", "restate")
        origin = "upheld" if answer.y == before.y and is_affirmed else "revised"
    elif (
        record.state == "asked"
        or given == "label"
        or (answer.supersedes is not None and record.was_asked)
    ):
        origin = "asked"
    privileged = answer.privileged
    if privileged is None and before is not None:
        # What is known of the earlier label also holds for a correction without details.
        privileged = before.privileged
    std = answer.std
    if std is None and before is not None and answer.y == before.y:
        # A number that its own annotator confirms is as exact as they have said; another annotator
        # measures in another way.
        std = before.std if answer.annotator == before.annotator else None
    return GivenLabel(
        y=as_label(answer.y),
        origin=origin,
        answer_id=answer.answer_id,
        annotator=answer.annotator,
        # A second answer cannot make up for the lateness of the first. Corrections are never late:
        # the request that they refer to was answered.
        late=(contested is not None and contested.late)
        or (
            record.state in ("expired", "cancelled", "kept") and record.is_late(answer.answered_at)
        ),
        privileged=privileged,
        std=std,
    )
