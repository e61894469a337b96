"""What became of the challenges of a run, and of its annotators' estimates, by its messages.

Works on the messages as they stand in the files of a run, so the requests come before all answers
and those before all labels learned, whatever their times.

"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streamgp.common.annotator_error import ErrorRate
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Expired,
    LabelledExample,
    Rejected,
)
from streamgp.report.run import Contested, Estimate, Example, Outcome

if TYPE_CHECKING:
    from streamgp.base import Label
    from streamgp.interactive.messages import Input, Message

# Faults of an answer that was never heard. One that the learner could not take was, and a
# duplicate bears the id of one that was.
_UNHEARD = ("late", "ended", "unknown", "malformed")

N_POINTS = 400

_Id: TypeAlias = "tuple[str | None, str]"


@dataclass(slots=True)
class _Question:
    """A challenge, as far as it is remembered, and what was heard of it.

    Attributes
    ----------
    challenge
        The message, or None if it is not among those shown.
    given
        The contested label.
    annotator
        Who gave it.
    at
        When it was contested.
    replies
        Answers to it: their ids, and their labels (None: declined).
    ended
        How it ended without an answer.
    settled
        The event's label in the consensus log since then, which may be None for one taken back;
        empty if there is none.

    """

    challenge: Challenge | None
    given: Label
    annotator: str | None
    at: float
    replies: list[tuple[str, Label | None]]
    ended: Outcome | None = None
    settled: tuple[Label | None, ...] = ()


class Outcomes:
    """Follows the challenges of a run.

    Tell it all requests, then all answers and rejected inputs, then the consensus log.

    Parameters
    ----------
    n_shown
        How many challenges to keep in full.

    Examples
    --------
    >>> outcomes = Outcomes()
    >>> outcomes.tell(Challenge(
    ...     request_id="e1/challenge/1", event_id="e1", x={}, reason="", score=0.9, threshold=0.1,
    ...     requested_at=5.0, given="hall", suggested="den", probability_wrong=0.9,
    ... ))
    >>> outcomes.counts()
    Counter({'open': 1})
    >>> outcomes.tell(Answer(
    ...     answer_id="a1", request_id="e1/challenge/1", event_id="e1", y="den", answered_at=6.0
    ... ))
    >>> outcomes.counts(), outcomes.challenges()[0].y
    (Counter({'revised': 1}), 'den')

    """

    # _questions  every challenge, by key and request id, in order.
    # _by_event   the challenges of each event, in order.
    # _unheard    ids of the answers that were rejected.
    # _lines      estimate of each annotator so far.

    def __init__(self, n_shown: int = 200) -> None:
        self._n_shown = n_shown
        self._questions: dict[_Id, _Question] = {}
        self._by_event: defaultdict[_Id, list[_Question]] = defaultdict(list)
        self._unheard: set[_Id] = set()
        self._lines: defaultdict[str | None, _Line] = defaultdict(_Line)

    def tell(self, message: Input | Message) -> None:
        """Take note of a message; of most kinds there is nothing to note."""
        if isinstance(message, Challenge):
            self._contest(message)
        elif isinstance(message, Expired | Cancel):
            question = self._questions.get((message.key, message.request_id))
            if question is not None:
                question.ended = "expired" if isinstance(message, Expired) else "cancelled"
        elif isinstance(message, Rejected):
            if message.fault in _UNHEARD:
                self._unheard.add((message.key, message.subject))
        elif isinstance(message, Answer):
            self._hear(message)
        elif isinstance(message, LabelledExample):
            self._learn(message)

    @property
    def n_challenges(self) -> int:
        return len(self._questions)

    def counts(self) -> Counter[Outcome]:
        """Return how many challenges came to what."""
        return Counter(self._outcome(name)[0] for name in self._questions)

    def challenges(self) -> list[Contested]:
        """Return the first challenges, each with its outcome."""
        shown = [(name, q.challenge) for name, q in self._questions.items() if q.challenge]
        return [self._contested(name, challenge) for name, challenge in shown]

    def estimates(self, n_annotators: int) -> list[Estimate]:
        """Return the estimates over time of the annotators with most answers."""
        most = sorted(self._lines.items(), key=lambda item: -item[1].rate.n)[:n_annotators]
        for _, line in most:
            line.keep()
        return [
            Estimate(name=name, n_answers=line.at, estimate=line.estimates) for name, line in most
        ]

    def _contest(self, challenge: Challenge) -> None:
        question = _Question(
            challenge=challenge if len(self._questions) < self._n_shown else None,
            given=challenge.given,
            annotator=challenge.annotator,
            at=challenge.requested_at,
            replies=[],
        )
        self._questions[challenge.key, challenge.request_id] = question
        self._by_event[challenge.key, challenge.event_id].append(question)

    def _hear(self, answer: Answer) -> None:
        if answer.request_id is not None:
            question = self._questions.get((answer.key, answer.request_id))
            if question is not None:
                question.replies.append((answer.answer_id, answer.y))

    def _learn(self, example: LabelledExample) -> None:
        contested = self._by_event.get((example.key, example.event_id), ())
        before = [question for question in contested if question.at <= example.learned_at]
        if before:
            before[-1].settled = (example.y,)
        if example.probability_wrong is not None:
            # It counts for whoever was contradicted, not for whoever had the last word.
            annotator = before[-1].annotator if before else example.annotator
            self._lines[annotator].note(example.probability_wrong)

    def _outcome(self, name: _Id) -> tuple[Outcome, Label | None]:
        """Return what came of a challenge, and the annotator's last word on it."""
        question = self._questions[name]
        key = name[0]
        heard = [y for answer_id, y in question.replies if (key, answer_id) not in self._unheard]
        if heard:
            y = heard[-1]
        elif question.ended is not None:
            return question.ended, None
        elif question.settled:  # by an answer that did not name the challenge
            y = question.settled[0]
        else:
            return "open", None
        if y is None:
            return "declined", None
        return ("upheld" if y == question.given else "revised"), y

    def _contested(self, name: _Id, challenge: Challenge) -> Contested:
        outcome, y = self._outcome(name)
        return Contested(
            event_id=challenge.event_id,
            key=challenge.key,
            at=challenge.requested_at,
            given=challenge.given,
            suggested=challenge.suggested,
            probability_wrong=challenge.probability_wrong,
            annotator=challenge.annotator,
            examples=[
                Example(event_id=near.event_id, y=near.y, distance=near.distance)
                for near in challenge.neighbours
            ],
            outcome=outcome,
            y=y,
            late=y is not None and self._questions[name].ended == "expired",
        )


class _Line:
    """An annotator's estimate over time, in a bounded number of points.

    Every k-th is kept, and k doubles when there would be more than the limit.
    """

    def __init__(self) -> None:
        self.rate = ErrorRate()
        self.at = [self.rate.n]
        self.estimates = [self.rate.estimate]
        self._every = 1

    def note(self, w: float) -> None:
        self.rate.note(w)
        if self.rate.n % self._every == 0:
            self.keep()
            if len(self.at) > N_POINTS:
                self._every *= 2
                self.at = self.at[::2]
                self.estimates = self.estimates[::2]

    def keep(self) -> None:
        """Add a point for now, unless there is one."""
        if self.at[-1] != self.rate.n:
            self.at.append(self.rate.n)
            self.estimates.append(self.rate.estimate)
