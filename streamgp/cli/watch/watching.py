"""What `streamgp watch` counts: records of all topics, folded into a few numbers.

Topics come in any order among each other: a prediction may be read before its event, an answer
before the question.

"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

from connectors.desk.desk import Desk
from connectors.records import WORKER_INPUTS, Record, TopicName
from connectors.wire.codec import DecodeError, decode
from connectors.wire.dead_letters import Letter, letter_of
from connectors.wire.inbox import TakenBack, read
from streamgp.cli.watch.flow import Flow
from streamgp.cli.watch.joining import Joined
from streamgp.interactive.judge import Target
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)

HISTORY: tuple[TopicName, ...] = ("requests", "answers", "consensus")
"""What is read from the start, however long ago that was: it tells which questions are open."""
FLOW: tuple[TopicName, ...] = ("events", "predictions", "dead-letters")
"""What is read from the moment on when watching begins, unless told otherwise."""
N_LETTERS = 5


class Watching(Joined):
    """Counts over the topics of a deployment.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    since
        When the watching began, POSIX seconds.
    is_whole
        Whether everything that the topics hold is counted, not only what comes after that.
    answer_horizon_s
        As in `streamgp.interactive.InteractiveLoop`.
    n_remembered
        Number of events to remember.

    Attributes
    ----------
    desk
        The open questions.
    flow
        Predictions in time, as they came while watching.
    n_predictions, n_asked
        Predictions, and label requests without challenges.
    challenges
        Challenges by what became of them: `made`, `upheld`, `revised`, `expired`, `declined`,
        `cancelled`.
    labels
        Lines of the consensus log: `learned`, `corrected` afterwards, and `withdrawn`.
    letters
        Dead letters by stage.
    last_letters
        The last of them, newest last; without the bytes.
    n_unreadable
        Records among the outputs that no worker can have written.

    Examples
    --------
    >>> from streamgp.base import Decision
    >>> watching = Watching(since=0.0)
    >>> watching.hear(Event(event_id="e1", x={}, occurred_at=1.0, truth="hall"))
    >>> watching.hear(
    ...     Prediction(
    ...         event_id="e1", y="den", proba={"den": 0.6, "hall": 0.4}, n_learned=2, at=1.0,
    ...         decision=Decision.of(0.4, 0.1, "SkepticalAsk"),
    ...     )
    ... )
    >>> watching.n_predictions, watching.accuracy
    (1, 0.0)

    """

    def __init__(
        self,
        *,
        keyed: bool = True,
        since: float,
        is_whole: bool = False,
        answer_horizon_s: float | None = None,
        n_remembered: int = 100_000,
        target: Target = "label",
    ) -> None:
        super().__init__(n_remembered, target)
        self.since = since
        self.is_whole = is_whole
        self.desk = Desk(answer_horizon_s=answer_horizon_s, with_classes=target == "label")
        self.flow = Flow(since)
        self.n_predictions = 0
        self.n_asked = 0
        self.challenges: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        self.letters: Counter[str] = Counter()
        self.last_letters: deque[Letter] = deque(maxlen=N_LETTERS)
        self.n_unreadable = 0
        self._keyed = keyed

    @property
    def label_rate(self) -> float | None:
        """Label requests for each prediction; None before the first."""
        return self.n_asked / self.n_predictions if self.n_predictions else None

    def take(self, record: Record, *, is_old: bool = False, now: float | None = None) -> None:
        """Count a record.

        Parameters
        ----------
        record
            The record.
        is_old
            Whether it is only to tell what is open.
        now
            When it came, POSIX seconds; None if it was there before the watching began.

        """
        if record.topic == "dead-letters":
            if not is_old:
                self._bury(record)
            return
        message = self._message_of(record)
        if isinstance(message, TakenBack) and message.event_id is None:
            self.desk.forget(message.key, record.at)
        elif not isinstance(message, TakenBack | Rejected | None):
            if record.topic in HISTORY:
                self.desk.take(message, partition=record.partition, at=record.at)
            # What the loop says of a question that was taken back counts, not the wish to do so.
            if not is_old and not (record.topic == "answers" and isinstance(message, Cancel)):
                self.hear(message, now)

    def _message_of(self, record: Record) -> Input | Message | TakenBack | None:
        if record.topic in ("events", "answers") or record.value is None:
            inbound = read(record, keyed=self._keyed) if record.topic in WORKER_INPUTS else None
            return None if inbound is None else inbound.message
        try:
            return decode(record.value)
        except DecodeError:
            self.n_unreadable += 1
            return None

    def hear(self, message: Input | Message, now: float | None = None) -> None:
        """Count a message; `now` is when it came, if it has just come."""
        match message:
            case Event():
                if message.truth is not None:
                    self.note_truth((message.key, message.event_id), message.truth)
            case Prediction():
                self.n_predictions += 1
                if now is not None:
                    self.flow.note(now)
                if message.y is not None:
                    self.note_guess((message.key, message.event_id), message.y)
            case LabelRequest():
                self.n_asked += 1
            case Challenge():
                self.challenges["made"] += 1
                self.note_contested((message.key, message.event_id), message.given)
            case Expired() | Cancel():
                if _is_challenge(message.request_id):
                    ended = "expired" if isinstance(message, Expired) else "cancelled"
                    self.challenges[ended] += 1
            case Answer():
                if message.declined and _is_challenge(message.request_id):
                    self.challenges["declined"] += 1
            case LabelledExample():
                self._note_line(message)

    def _note_line(self, line: LabelledExample) -> None:
        if line.y is None:
            self.labels["withdrawn"] += 1
        elif line.probability_wrong is None:
            # An old label that was challenged and said again is no correction.
            counts = self.challenges if line.origin == "upheld" else self.labels
            counts["upheld" if line.origin == "upheld" else "corrected"] += 1
        else:
            self.labels["learned"] += 1
            if line.origin in ("upheld", "revised"):
                self.challenges[line.origin] += 1
        self.note_label((line.key, line.event_id), line.y)

    def _bury(self, record: Record) -> None:
        try:
            letter = letter_of(record)
        except ValueError:
            self.n_unreadable += 1
            return
        self.letters[letter.stage] += 1
        self.last_letters.append(replace(letter, key=None, value=None))


def _is_challenge(request_id: str | None) -> bool:
    return request_id is not None and request_id.rpartition("/")[0].endswith("/challenge")
