"""The messages of the interactive loop: its inputs and outputs.

All are frozen and carry only plain values. Times are POSIX seconds (UTC); `x` is always as
received, never scaled. Ids are derived from their cause, never random: the label request of event
`e` is `e/label`, its n-th challenge `e/challenge/n`.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from streamgp.base import Decision, Features, FrozenStruct, Label, Neighbour

EventKey: TypeAlias = tuple[str | None, str]
"""The key and the id of an event."""

Origin: TypeAlias = Literal["asked", "upheld", "revised", "volunteered", "withdrawn", "aggregated"]
"""How a label came into the consensus log.

`asked`: given on request and uncontested. `upheld`: challenged and kept. `revised`: changed after
a challenge, or superseded later. `volunteered`: came along unasked. `withdrawn`: taken back.
`aggregated`: learned before, and weighed against the answer to a second question.
"""

Fault: TypeAlias = Literal[
    "malformed",
    "duplicate",
    "unknown",
    "late",
    "ended",
    "unlearnable",
    "failed",
    "unauthorised",
    "excessive",
    "quarantined",
]
"""Why an input was rejected.

`malformed`: cannot be understood. `duplicate`: was seen before. `unknown`: refers to nothing known
within the answer horizon. `late`: came after the answer horizon. `ended`: its request has already
ended. `unlearnable`: the learner cannot take this example. `failed`: the learner, a rule or the
encoding raised an error that none of them should; the loop is as it was before the input.
`unauthorised`: its annotator may not say that, or is not proved to have said it.
`excessive`: it exceeds one of the limits in `People`. `quarantined`: its annotator misleads, as
judged by the others.
"""

Stage: TypeAlias = Literal["predict", "ask", "challenge", "learn", "review", "encode"]
"""What was being done with an input when it failed."""


Excerpt: TypeAlias = Mapping[str, Sequence[float | None]]
"""A piece of the raw signal that an event was made of: numbers by channel, None where one is
missing."""
MOST_IN_EXCERPT = 200
"""Most numbers of one channel of an excerpt."""

RESPONSE_S, CONFIDENCE = "response_s", "confidence"
"""Contents of `Answer.privileged` where people answer: how many seconds it took, and how sure they
are of it, from 0 to 1."""


class Event(FrozenStruct, frozen=True, kw_only=True):
    """An observation to predict.

    `y` is a label that came unasked: it is learned, and may be challenged. `truth` is for metrics
    and simulated annotators only; no learner ever sees it. `excerpt` is a piece of the raw signal
    for annotators to look at, with at most `MOST_IN_EXCERPT` finite numbers per channel. No learner
    sees it; questions about the event carry it. `start` and `end` are the bounds of the time window
    that an event was made from, if any; its prediction carries them.
    """

    event_id: str
    key: str | None = None
    x: Features
    occurred_at: float
    y: Label | None = None
    truth: Label | None = None
    excerpt: Excerpt | None = None
    start: float | None = None
    end: float | None = None


class Prediction(FrozenStruct, frozen=True, kw_only=True):
    """Prediction of one event, made before any label of it was seen.

    `y` is None, and `proba` empty, before the first label. `n_learned` is the number of examples
    the learner held. For targets that are numbers, `mean` and `std` are those of an observation,
    `y` is the mean, and there are no probabilities; before the first target all three are None.
    `start` and `end` are those of the event.
    """

    event_id: str
    key: str | None = None
    y: Label | None
    proba: Mapping[Label, float]
    decision: Decision
    n_learned: int
    at: float
    mean: float | None = None
    std: float | None = None
    start: float | None = None
    end: float | None = None


ASKED_AGAIN: Final = "AskedAgain"
"""`LabelRequest.reason` of a request that is made again."""
SECOND_ANNOTATOR, SAME_ANNOTATOR = "SecondAnnotator", "SameAnnotator"
"""`LabelRequest.reason` of a second question: to another annotator, and to the same one later."""
CLEAR_SINCE: Final = "the answer has become clear by later labels"
MORE_USEFUL: Final = "replaced by a more useful question"
SET_ASIDE: Final = "the answers of its annotator are set aside for now"
"""`Cancel.why` of requests that a loop takes back by itself, or how it begins."""


class LabelRequest(FrozenStruct, frozen=True, kw_only=True):
    """A question for a label; `event_id` need not be the latest event.

    `occurred_at` is when the event occurred, None if that is when the label was requested.
    `excerpt` is that of the event. `excluded` are the annotators whose answers are not taken: those
    in quarantine and, for a second question to another annotator, those who have already answered
    about the event or are suspected more than the first annotator. `annotator` is the only one
    whose answer is taken; None if anyone but the excluded may answer. A request whose `reason` is
    `ASKED_AGAIN` repeats an open one, as one more annotator has been excluded.

    A second question about an event has an id of its own, `<event_id>/label/second` or, for the
    same annotator, `<event_id>/label/again`. It does not tell what was said before.

    Examples
    --------
    >>> request = LabelRequest(
    ...     request_id="e1/label/second", event_id="e1", x={}, reason=SECOND_ANNOTATOR, score=0.0,
    ...     threshold=0.0, requested_at=0.0, excluded=("ann",),
    ... )
    >>> [request.may_answer(name) for name in ("ann", "bob", None)], request.is_second
    ([False, True, False], True)

    """

    request_id: str
    event_id: str
    key: str | None = None
    x: Features
    reason: str
    score: float
    threshold: float
    requested_at: float
    expires_at: float | None = None
    occurred_at: float | None = None
    excerpt: Excerpt | None = None
    excluded: tuple[str, ...] = ()
    annotator: str | None = None

    @property
    def is_second(self) -> bool:
        """Whether it asks for a second answer about an event that has its label."""
        return self.request_id in second_ids(self.event_id)

    def may_answer(self, annotator: str | None) -> bool:
        """Whether an answer of an annotator, None for an unnamed one, is taken."""
        if annotator is None:  # not known to be a different one
            return not self.is_second
        return annotator not in self.excluded and self.annotator in (None, annotator)


def second_ids(event_id: str) -> tuple[str, str]:
    """Return the ids of second questions about an event: to another annotator, to the same."""
    return f"{event_id}/label/second", f"{event_id}/label/again"


class Challenge(FrozenStruct, frozen=True, kw_only=True):
    """The question whether a label is right after all: `given`, and not `suggested`?

    For targets that are numbers, `std` is the standard deviation of an observation around
    `suggested`. `occurred_at` is when the event occurred, None if that is when the label was
    challenged. `excerpt` is that of the event.
    """

    request_id: str
    event_id: str
    key: str | None = None
    x: Features
    reason: str
    score: float
    threshold: float
    requested_at: float
    expires_at: float | None = None
    given: Label
    suggested: Label
    probability_wrong: float
    annotator: str | None = None
    neighbours: tuple[Neighbour, ...] = ()
    std: float | None = None
    occurred_at: float | None = None
    excerpt: Excerpt | None = None


def event_time(request: Request) -> float:
    """Return the time of the event, after which it is remembered for a while."""
    return request.requested_at if request.occurred_at is None else request.occurred_at


class Cancel(FrozenStruct, frozen=True, kw_only=True):
    """A request is withdrawn and no longer needs an answer."""

    request_id: str
    key: str | None = None
    why: str
    at: float


class Answer(FrozenStruct, frozen=True, kw_only=True):
    """Reply of an annotator.

    Exactly one of `y` and `declined` is given. It refers to a request or, if `request_id` is None,
    to an event (a volunteered label). `supersedes` names the annotator's own earlier
    answer that this one replaces; a declined answer that supersedes takes the label back. `std` is
    the precision of a number, as a standard deviation, if the annotator states it.

    The last four are for people who look at the answers, and never reach a learner: `shown` names
    what was shown with the question (`suggestion`, `examples`), `flag` says that the annotator
    wants it to be looked at again, `note` is a remark of the annotator, `reason` is why they
    declined.
    """

    answer_id: str
    request_id: str | None = None
    event_id: str
    key: str | None = None
    y: Label | None = None
    declined: bool = False
    annotator: str | None = None
    answered_at: float
    privileged: Mapping[str, Any] | None = None
    supersedes: str | None = None
    std: float | None = None
    shown: tuple[str, ...] = ()
    flag: bool = False
    note: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.declined == (self.y is not None):
            raise ValueError(
                "an answer has a label or is declined, "
                f"got y={self.y!r} and declined={self.declined!r}"
            )


def answer_of(fields: Mapping[str, Any]) -> Answer:
    """Return the answer with the fields of `dataclasses.asdict`, as decoded from JSON."""
    return Answer(**{**fields, "shown": tuple(fields.get("shown", ()))})


class LabelledExample(FrozenStruct, frozen=True, kw_only=True):
    """One line of the consensus log: an example as it was learned.

    `revision` counts the corrections of this event's label; `sequence` orders the examples of one
    key. `y` is None only if `origin` is withdrawn.

    `probability_wrong` is how much the first answer counts as wrong in the error estimate of
    its annotator: for an uncontested one the probability that it was wrong, after a challenge 1
    if it was changed and 0 if not. It is None where no first answer was learned: in corrections
    and withdrawals, and after a challenge of a label that had already been learned.

    `std` is the standard deviation stated with a number, if any; where its annotator has confirmed
    the number without stating one, the one stated before.

    `challenged` is whether the first answer was challenged and answered again, if that answer was
    learned here for the first time. In that case `given_by` is the annotator of the first answer,
    and `given` is what it said, None if that was `y`. `volunteered` is whether it was given without
    being asked for; where no first answer was challenged, `origin` says so.

    If `origin` is `aggregated`, `y` is the result of weighing the answers to the first and the
    second question. `annotator` gave the second one, None if that answer was taken back, and
    `given` is what it said, None if that was `y`.

    `asked_back` is whether the label was requested in a review of the latest events, and not by the
    rule that decides about each event as it comes; it is not set for a label taken back.
    """

    event_id: str
    key: str | None = None
    revision: int = 0
    sequence: int
    x: Features
    y: Label | None
    origin: Origin
    annotator: str | None = None
    learned_at: float
    late: bool = False
    probability_wrong: float | None = None
    privileged: Mapping[str, Any] | None = None
    std: float | None = None
    asked_back: bool = False
    given: Label | None = None
    challenged: bool = False
    given_by: str | None = None
    volunteered: bool = False

    @property
    def said(self) -> Label | None:
        """What the first answer said or, if `origin` is `aggregated`, the second one."""
        return self.y if self.given is None else self.given

    @property
    def first_by(self) -> str | None:
        """Annotator of the first answer, in a line about one."""
        return self.given_by if self.challenged else self.annotator

    def said_by(self, annotator: str | None) -> Label | None:
        """Return the last label that an annotator gave in an answer of this line, None for none.

        Examples
        --------
        >>> line = LabelledExample(
        ...     event_id="e1", sequence=1, x={}, y="hall", annotator="ann", origin="revised",
        ...     learned_at=0.0, given="den", challenged=True, given_by="bob",
        ... )
        >>> [line.said_by(name) for name in ("ann", "bob", "eve")]
        ['hall', 'den', None]

        """
        if self.annotator == annotator:
            return self.said if self.origin == "aggregated" else self.y
        return self.said if self.challenged and self.given_by == annotator else None


class Retraction(FrozenStruct, frozen=True, kw_only=True):
    """Labels of one annotator that were retracted from one loop.

    As a message it says that the annotator is now in quarantine. The lines in `taken` are no longer
    in the consensus log; those that replace them follow, under the same revision or a later one.

    Parameters
    ----------
    annotator
        The annotator.
    since
        Only labels learned at this time or later, POSIX seconds; None for all.
    at
        When they were retracted.
    taken
        The lines of the consensus log that were removed or changed, as they were before; `own` are
        those of the annotator.
    made
        Event and revision of the lines that were written in their place.

    """

    annotator: str
    since: float | None
    at: float
    taken: tuple[LabelledExample, ...]
    made: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str | None:
        """Key of the loop; for one loop of all keys, that of the first line."""
        return self.taken[0].key if self.taken else None

    @property
    def own(self) -> tuple[LabelledExample, ...]:
        """The lines in `taken` with which the annotator has lost a label.

        The others have only changed: a correction by another annotator that became a first answer,
        a second answer that is weighed no more, a label given before `since`; or they repeat a
        label of the annotator that stood again when another annotator's was retracted.

        Examples
        --------
        >>> first = LabelledExample(
        ...     event_id="e1", sequence=1, x={}, y="den", annotator="bob", origin="asked",
        ...     learned_at=0.0,
        ... )
        >>> confirmed = LabelledExample(
        ...     event_id="e1", revision=1, sequence=2, x={}, y="den", annotator="ann",
        ...     origin="revised", learned_at=1.0,
        ... )
        >>> retraction = Retraction(annotator="bob", since=None, at=2.0, taken=(first, confirmed))
        >>> len(retraction.taken), [line.annotator for line in retraction.own]
        (2, ['bob'])

        """
        found, before = [], dict[str, list[LabelledExample]]()
        for line in self.taken:
            is_meant = self.since is None or line.learned_at >= self.since
            is_said = line.said_by(self.annotator) is not None
            about = before.setdefault(line.event_id, [])
            if is_meant and is_said and not _repeats(line, about):
                found.append(line)
            about.append(line)
        return tuple(found)


def _repeats(line: LabelledExample, before: Sequence[LabelledExample]) -> bool:
    """Whether a line says that its annotator's label stands again, as a retraction does.

    `before` are the lines about the event before it. An annotator who gives the label that stands
    again leaves no line.
    """
    if not before or line.origin != "revised" or line.challenged or line.y != before[-1].y:
        return False
    answers = (each for each in reversed(before) if each.origin != "aggregated")
    answer = next(answers, None)
    return answer is not None and (answer.annotator, answer.y) == (line.annotator, line.y)


class Expired(FrozenStruct, frozen=True, kw_only=True):
    """A request ended because no answer came in time."""

    request_id: str
    event_id: str
    key: str | None = None
    at: float


class Rejected(FrozenStruct, frozen=True, kw_only=True):
    """An input that could not be used: `subject` says which one, `reason` why and what to do.

    `stage` is what was being done with it, where the fault is `failed`.
    """

    subject: str
    key: str | None = None
    fault: Fault
    reason: str
    at: float
    stage: Stage | None = None


Input: TypeAlias = Event | Answer | Cancel
Message: TypeAlias = (
    Prediction
    | LabelRequest
    | Challenge
    | Cancel
    | LabelledExample
    | Retraction
    | Expired
    | Rejected
)
Request: TypeAlias = LabelRequest | Challenge
