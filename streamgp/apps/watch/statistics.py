"""Statistics of `streamgp watch`: records of all topics, reduced to a few numbers.

Topics are read in any relative order: a prediction may come before its event, an answer before its
question.

"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace

from connectors.annotation.inbox import AnnotationInbox
from connectors.topics import WORKER_INPUTS, Record, TopicName
from connectors.wire.codec import DecodeError, decode
from connectors.wire.inbound import RetractionRequest, TakenBack, read
from connectors.wire.outbound import Letter, letter_of
from connectors.wire.signatures import Signatures
from streamgp.base import Label, Target
from streamgp.common.feature_values import is_number
from streamgp.common.latest import Latest
from streamgp.evaluation.agreement import AgreementCounts
from streamgp.evaluation.counts import NumberErrors, Tolerances, is_off
from streamgp.interactive.conversation_record import question_of
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.messages import (
    ASKED_AGAIN,
    Answer,
    Cancel,
    Challenge,
    Event,
    EventKey,
    Expired,
    Input,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
)
from streamgp.interactive.people import DEFAULT_PEOPLE, People

# --- Joining predictions, labels and challenges with the truth, whichever is read first.
#
# Everything about one event is counted once its last part is known. Only a limited number of events
# is remembered; older ones remain counted.


N_LAST = 500
N_REMEMBERED = 100_000
"""Number of events of which facts are kept."""


@dataclass(slots=True)
class _Known:
    """Facts about one event; None while unknown, or if there is none."""

    truth: Label | None = None
    predicted: Label | None = None
    label: Label | None = None  # in the consensus log
    given: Label | None = None  # the last label that was challenged
    tolerance: float = 0.0  # for numbers: the largest error of a correct one


class Joined:
    """Counts over the joined facts about each event.

    Parameters
    ----------
    target
        Type of the labels: `label`, names of classes, or `number`.

    Attributes
    ----------
    n_scored, n_hits
        Numbers of predictions of events with known truth, and of correct ones; for numbers,
        `errors` is used instead.
    errors
        Absolute errors of predicted numbers.
    n_contested, n_justified
        Numbers of challenged labels with known truth, and of wrong ones among them.
    n_repaired, n_spoiled
        Numbers of challenged labels that were wrong as given and are right in the log, and the
        reverse.
    n_judged, n_wrong
        Numbers of labels in the log with known truth, and of wrong ones among them.

    Examples
    --------
    >>> joined = Joined()
    >>> joined.note_prediction(("ann", "e1"), "den")
    >>> joined.note_label(("ann", "e1"), "hall")
    >>> joined.note_truth(("ann", "e1"), "hall")
    >>> joined.accuracy, joined.n_judged, joined.n_wrong
    (0.0, 1, 0)

    """

    # _known   facts about the most recent events
    # _recent  whether the last scored predictions were right, or their absolute errors
    # _tolerances  None for classes

    def __init__(self, target: Target = "label") -> None:
        self.target = target
        self.errors = NumberErrors()
        self._tolerances = Tolerances() if target == "number" else None
        self.n_scored = 0
        self.n_hits = 0
        self.n_contested = 0
        self.n_justified = 0
        self.n_repaired = 0
        self.n_spoiled = 0
        self.n_judged = 0
        self.n_wrong = 0
        self._known: Latest[EventKey, _Known] = Latest(N_REMEMBERED)
        self._recent: deque[float] = deque(maxlen=N_LAST)

    @property
    def accuracy(self) -> float | None:
        """Share of correct predictions; None before the first with known truth."""
        return self.n_hits / self.n_scored if self.n_scored else None

    @property
    def recent_accuracy(self) -> float | None:
        """The same over the last 500; for numbers the mean absolute error."""
        return sum(self._recent) / len(self._recent) if self._recent else None

    @property
    def is_full(self) -> bool:
        """Whether the facts about earlier events have been forgotten, or are about to be."""
        return len(self._known) == N_REMEMBERED

    def note_truth(self, event: EventKey, truth: Label) -> None:
        known = self._of(event)
        if known.truth is None:
            if self._tolerances is not None:
                known.tolerance = self._tolerances.next(truth)
            self._note(known, "truth", truth)
            self._score(known)

    def note_prediction(self, event: EventKey, predicted: Label) -> None:
        known = self._of(event)
        if known.predicted is None:
            known.predicted = predicted
            self._score(known)

    def note_contested(self, event: EventKey, given: Label) -> None:
        """Record that a label was challenged."""
        self._note(self._of(event), "given", given)

    def note_label(self, event: EventKey, label: Label | None) -> None:
        """Record the label in the log; None if it was withdrawn."""
        self._note(self._of(event), "label", label)

    def _score(self, known: _Known) -> None:
        if known.truth is None or known.predicted is None:
            return
        self.n_scored += 1
        if self.target == "number":
            if is_number(known.truth) and is_number(known.predicted):
                self.errors.count(known.truth, known.predicted)
                self._recent.append(abs(float(known.predicted) - float(known.truth)))
            return
        is_hit = known.predicted == known.truth
        self.n_hits += is_hit
        self._recent.append(is_hit)

    def _is_wrong(self, known: _Known, y: Label) -> bool:
        if self._tolerances is None:
            return y != known.truth
        return is_off(y, known.truth, known.tolerance)

    def _note(self, known: _Known, name: str, label: Label | None) -> None:
        """Update a fact about an event, and the counts."""
        self._count(known, -1)
        setattr(known, name, label)
        self._count(known, 1)

    def _count(self, known: _Known, step: int) -> None:
        truth, label, given = known.truth, known.label, known.given
        if truth is None:
            return
        was_wrong = given is not None and self._is_wrong(known, given)
        if given is not None:
            self.n_contested += step
            self.n_justified += step * was_wrong
        if label is not None:
            is_wrong = self._is_wrong(known, label)
            self.n_judged += step
            self.n_wrong += step * is_wrong
            if given is not None:
                self.n_repaired += step * (was_wrong and not is_wrong)
                self.n_spoiled += step * (is_wrong and not was_wrong)

    def _of(self, event: EventKey) -> _Known:
        known = self._known.get(event)
        if known is None:
            known = _Known()
            self._known.put(event, known)
        return known


# --- Rates: a count for each second of the last minutes.


_BARS = " ▁▂▃▄▅▆▇█"
_RECENT_S = 10
SPAN_S = 300
"""How far back counts over time reach."""


class Flow:
    """Counts over time.

    Examples
    --------
    >>> flow = Flow(since=100.0)
    >>> for at in (100.5, 104.0, 104.2, 104.5):
    ...     flow.note(at)
    >>> flow.rate(105.0)
    0.8
    >>> flow.bars(108.0, width=60)[-2:]
    '▃█'

    """

    # _counts  counts by whole second, for at most `SPAN_S` past seconds

    def __init__(self, since: float) -> None:
        self.n = 0
        self._since = since
        self._counts: dict[int, int] = {}

    def note(self, at: float) -> None:
        self.n += 1
        second = int(at)
        self._counts[second] = self._counts.get(second, 0) + 1
        if len(self._counts) > 2 * SPAN_S:
            oldest = max(self._counts) - SPAN_S
            self._counts = {s: n for s, n in self._counts.items() if s >= oldest}

    def rate(self, now: float) -> float:
        """Return the recent rate per second."""
        began = max(self._since, now - _RECENT_S)
        first, last = int(began), int(now)
        if began > self._since:
            # Without the current, incomplete second, which would lower the rate.
            return sum(self._counts.get(s, 0) for s in range(first, last)) / (last - first)
        n = sum(n for s, n in self._counts.items() if s >= first)
        return n / max(now - began, 1.0)

    def bars(self, now: float, *, width: int) -> str:
        """Draw the counts as text bars, the latest last; the highest count is a full bar."""
        each = SPAN_S / width
        sums = [0] * width
        for second, n in self._counts.items():
            steps = int(max(0.0, now - second - 1.0) / each)
            if steps < width:
                sums[width - 1 - steps] += n
        top = max(sums)
        return "".join(_BARS[-(-n * (len(_BARS) - 1) // top)] if n else " " for n in sums)


HISTORY: tuple[TopicName, ...] = ("requests", "answers", "consensus")
"""Topics that are always read from the start, to know which questions are open."""
FLOW: tuple[TopicName, ...] = ("events", "predictions", "dead-letters")
"""Topics that are read from the start of watching on, by default."""
N_LETTERS = 5


class Watching(Joined):
    """Counts over the topics of a deployment.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    since
        When watching began, POSIX seconds.
    is_whole
        Whether everything in the topics is counted, not only records since then.
    answer_horizon_s
        As in `streamgp.interactive.InteractiveLoop`.
    target
        Type of the labels: `label`, names of classes, or `number`.
    people
        Who may answer for whom; the same as for the workers.
    windows
        Makes events from the records of `events`, if these are raw rows.
    signatures
        Verifies the signatures of answers, and refused ones do not count; None counts all.

    Attributes
    ----------
    flow
        Predictions over time, while watching.
    n_predictions, n_asked
        Numbers of predictions, and of label requests (without challenges).
    challenges
        Numbers of challenges, by outcome: `made`, `upheld`, `revised`, `expired`, `declined`,
        `cancelled`.
    labels
        Numbers of lines of the consensus log: `learned`, `corrected` later, and `withdrawn`.
    last_letters
        The most recent dead letters, the newest last, without their bytes; `at` is when each was
        written.
    unreadable
        Number of records among the outputs that no worker can have written, by topic.

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
        target: Target = "label",
        people: People = DEFAULT_PEOPLE,
        windows: EventWindows | None = None,
        signatures: Signatures | None = None,
    ) -> None:
        super().__init__(target)
        self._windows = windows
        self._signatures = signatures
        self.since = since
        self.is_whole = is_whole
        self.inbox = AnnotationInbox(
            is_for_reading=True,
            answer_horizon_s=answer_horizon_s,
            with_classes=target == "label",
            people=people,
            keyed=keyed,
        )
        self.flow = Flow(since)
        self.n_predictions = 0
        self.n_asked = 0
        self.challenges: Counter[str] = Counter()
        self.labels: Counter[str] = Counter()
        # By event, how many challenges came to no other end than a correction, and how many
        # corrections there are. The former is negative while only the end of one was read.
        self._doubts: Latest[EventKey, tuple[int, int]] = Latest(N_REMEMBERED)
        self.agreement = AgreementCounts()
        self.letters: Counter[str] = Counter()
        self.last_letters: deque[Letter] = deque(maxlen=N_LETTERS)
        self.unreadable: Counter[str] = Counter()
        self.keyed = keyed

    @property
    def label_rate(self) -> float | None:
        """Label requests per prediction; None before the first."""
        return self.n_asked / self.n_predictions if self.n_predictions else None

    def take(self, record: Record, *, is_old: bool = False, now: float | None = None) -> None:
        """Count a record.

        Parameters
        ----------
        is_old
            Whether it only serves to know the open questions.
        now
            When it arrived, POSIX seconds; None if it was there before watching began.

        """
        if record.topic == "dead-letters":
            if not is_old:
                self._bury(record)
            return
        message = self._message_of(record)
        if isinstance(message, TakenBack) and message.event_id is None:
            self.inbox.forget(message.key, record.at)
        elif not isinstance(message, TakenBack | Rejected | None):
            if record.topic in HISTORY:
                self.inbox.take(message, partition=record.partition, at=record.at)
            # The loop's message about a cancelled question counts, not the request to cancel it.
            if not is_old and not (record.topic == "answers" and isinstance(message, Cancel)):
                self.hear(message, now)

    def _message_of(self, record: Record) -> Input | Message | TakenBack | None:
        if record.topic in ("events", "answers") or record.value is None:
            if record.topic not in WORKER_INPUTS:
                return None
            said = read(record, keyed=self.keyed, signatures=self._signatures)
            return None if isinstance(said, RetractionRequest) else said
        try:
            return decode(record.value)
        except DecodeError:
            self.unreadable[record.topic] += 1
            return None

    def hear(self, message: Input | Message, now: float | None = None) -> None:
        """Count a message; `now` is when it arrived, None if it was there before."""
        match message:
            case Event():
                windows = self._windows
                for event in [message] if windows is None else windows.take(message, now or 0.0):
                    if event.truth is not None:
                        self.note_truth((event.key, event.event_id), event.truth)
            case Prediction():
                self.n_predictions += 1
                if now is not None:
                    self.flow.note(now)
                if message.y is not None:
                    self.note_prediction((message.key, message.event_id), message.y)
            case LabelRequest():
                self.n_asked += message.reason != ASKED_AGAIN and not message.is_second
            case Challenge():
                self.challenges["made"] += 1
                self._doubt((message.key, message.event_id), opened=1)
                self.note_contested((message.key, message.event_id), message.given)
            case Expired() | Cancel():
                ended = "expired" if isinstance(message, Expired) else "cancelled"
                self._note_end(message, ended)
            case Answer():
                if message.declined:
                    self._note_end(message, "declined")
            case LabelledExample():
                self._note_line(message)

    def _note_line(self, line: LabelledExample) -> None:
        if line.y is None:
            self.labels["withdrawn"] += 1
        elif line.origin == "aggregated":
            pass  # the label may be unchanged; `agreement` counts these
        elif line.probability_wrong is None:
            # An old label that was challenged and confirmed is no correction.
            if line.origin == "upheld":
                self.challenges["upheld"] += 1
                self._doubt((line.key, line.event_id), opened=-1)
            else:
                self._doubt((line.key, line.event_id), corrected=1)
        else:
            self.labels["learned"] += 1
            if line.origin in ("upheld", "revised"):
                self.challenges[line.origin] += 1
                self._doubt((line.key, line.event_id), opened=-1)
        self.agreement.take(line)
        self.note_label((line.key, line.event_id), line.y)

    def _note_end(self, message: Expired | Cancel | Answer, outcome: str) -> None:
        event_id, kind = question_of(message.request_id or "")
        if event_id is not None and kind == "challenge":
            self.challenges[outcome] += 1
            self._doubt((message.key, event_id), opened=-1)

    def _doubt(self, event: EventKey, *, opened: int = 0, corrected: int = 0) -> None:
        """Count a correction, as revised if it answers a challenge, whichever is read first."""
        n_open, n_corrected = self._doubts.pop(event, (0, 0))
        n_revised = -min(max(n_open, 0), n_corrected)
        n_open, n_corrected = n_open + opened, n_corrected + corrected
        n_revised += min(max(n_open, 0), n_corrected)
        if n_revised:
            self.challenges["revised"] += n_revised
        if corrected != n_revised:
            self.labels["corrected"] += corrected - n_revised
        if n_open or n_corrected:
            self._doubts.put(event, (n_open, n_corrected))

    def _bury(self, record: Record) -> None:
        try:
            letter = letter_of(record)
        except ValueError:
            self.unreadable[record.topic] += 1
            return
        self.letters[letter.stage] += 1
        self.last_letters.append(replace(letter, cause=None, at=record.at))
