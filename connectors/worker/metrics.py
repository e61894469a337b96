"""Metrics of a worker: what it has committed, and how it is doing, as plain numbers.

The worker's thread writes them and other threads read them, under one lock. Batches are counted
after their commit, so that a killed worker has never counted anything that was not committed.
Without metrics nothing of this is stored or computed.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from time import monotonic
from typing import Any

from connectors.topics import Outgoing, Place, TopicName, WorkerClient
from connectors.wire.inbound import TakenBack
from connectors.worker.batch import Batch, Exchange
from connectors.worker.partition import Partition
from streamgp.base import Label
from streamgp.common.annotator_error import ErrorRate
from streamgp.common.running_stats import Histogram
from streamgp.interactive.conversation_record import event_id_of, question_of
from streamgp.interactive.keyed import KeyedLoops
from streamgp.interactive.messages import (
    Answer,
    Cancel,
    Challenge,
    Expired,
    LabelledExample,
    LabelRequest,
    Message,
    Prediction,
    Rejected,
    Retraction,
    event_time,
)

PHASES = ("poll", "decode", "loop", "state", "commit")
"""Phases of a batch: waiting for records; decoding them; running loops and learners and encoding
their messages; collecting the changed state; writing everything."""
DURATIONS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
HEALTHY_S = 60.0
"""A worker without a cycle for this long hangs; its heartbeat file shows the same."""
SIGNALS = ("confidence", "requests")
"""Signals monitored for drift: mean confidence of predictions, and share of label requests."""
LABELS = "labels"
"""Signal of the drift tests of the learners."""
OTHERS = "(others)"
MOST_NAMES = 200
"""The largest number of annotators with series of their own."""
_LOOK_EVERY_S = 1.0
_BLOCK = 100
"""Number of predictions whose mean is one value for a drift detector."""


def result_of(messages: Iterable[Message]) -> str:
    """Return the outcome of an answer.

    `learned` or `challenged`; `duplicate` (sent again and dropped) or `refused` (a dead letter); or
    `noted` if it taught nothing: it declined, or repeated what was known.

    Examples
    --------
    >>> result_of([Rejected(subject="a1", fault="late", reason="too late", at=9.0)])
    'refused'
    >>> result_of([])
    'noted'

    """
    result = "noted"
    for message in messages:
        if isinstance(message, Rejected):
            return "duplicate" if message.fault == "duplicate" else "refused"
        if isinstance(message, LabelledExample):
            result = "learned"
        elif isinstance(message, Challenge):
            result = "challenged"
    return result


class QuestionTracker:
    """Open questions of one partition, tracked by the messages about them.

    An event has at most one open question, which ends with an answer that is used, or with a
    message. Questions of loops that are evicted when the partition is restored are not known.

    Parameters
    ----------
    loops
        The restored loops.

    Examples
    --------
    >>> from streamgp import isgp
    >>> questions = QuestionTracker(KeyedLoops(isgp(seed=1)))
    >>> request = LabelRequest(
    ...     request_id="e1/label", event_id="e1", x={}, reason="Entropy", score=1.0, threshold=0.5,
    ...     requested_at=60.0,
    ... )
    >>> questions.take(None, [request]), questions.n("label"), questions.oldest()
    ([], 1, 60.0)
    >>> questions.take(None, [Expired(request_id="e1/label", event_id="e1", at=90.0)])
    []
    >>> questions.n("label"), questions.oldest()
    (0, None)

    """

    # _open  by key and event: the kind of question, and since when it is open
    def __init__(self, loops: KeyedLoops) -> None:
        self._keyed = loops.keyed
        self._open: dict[tuple[str | None, str], tuple[str, float]] = {}
        for key, request_id, at in loops.open_events():
            self._ask(key, request_id, at)

    def take(self, content: object, messages: Sequence[Message]) -> list[str]:
        """Process an input and the messages about it; return how challenges ended, if any did.

        By an answer: `upheld`, `revised`, `declined` or `refused` (the learner cannot learn the
        label); otherwise `expired` or `cancelled`.
        """
        ended = []
        if isinstance(content, Answer) and not any(
            isinstance(m, Rejected) and m.fault != "unlearnable" for m in messages
        ):
            label = next((m.origin for m in messages if isinstance(m, LabelledExample)), "refused")
            if self._end(content.key, content.event_id, but_second=content.supersedes is not None):
                ended.append("declined" if content.declined else label)
        for message in messages:
            match message:
                case LabelRequest() | Challenge():
                    # A challenge has the time of an answer, which can name one before its event.
                    since = max(message.requested_at, event_time(message))
                    self._ask(message.key, message.request_id, since)
                case Expired() if self._end(message.key, message.event_id):
                    ended.append("expired")
                case Cancel() if self._end(message.key, event_id_of(message.request_id)):
                    ended.append("cancelled")
                case LabelledExample():  # a correction does not end a second question
                    self._end(message.key, message.event_id, but_second=True)
        return ended

    def n(self, kind: str) -> int:
        """Return the number of open questions of a kind, `label` or `challenge`."""
        kinds = ("label", "second") if kind == "label" else (kind,)
        return sum(each in kinds for each, _ in self._open.values())

    def oldest(self) -> float | None:
        """Return since when the oldest question has been open, POSIX seconds; None without one."""
        return min((at for _, at in self._open.values()), default=None)

    def _ask(self, key: str | None, request_id: str, at: float) -> None:
        event_id, kind = question_of(request_id)
        assert event_id is not None  # requests made by loops always have one
        self._open[key if self._keyed else None, event_id] = kind, at

    def _end(self, key: str | None, event_id: str | None, *, but_second: bool = False) -> bool:
        """End the question about an event, if one is open; return whether it was a challenge."""
        place = key if self._keyed else None, event_id or ""
        if but_second and self._open.get(place, ("none", 0.0))[0] == "second":
            return False
        return self._open.pop(place, ("none", 0.0))[0] == "challenge"


class Quarantined:
    """Quarantined annotators in the loops of one partition, tracked by the loops' messages.

    For loops that are evicted when the partition is restored, they become known once the loop asks.

    Parameters
    ----------
    loops
        The restored loops.

    Examples
    --------
    >>> from streamgp import isgp
    >>> quarantined = Quarantined(KeyedLoops(isgp(seed=1)))
    >>> answer = Answer(
    ...     answer_id="a1", event_id="e1", key="k", y="hall", annotator="eve", answered_at=1.0
    ... )
    >>> refused = Rejected(subject="a1", key="k", fault="quarantined", reason="in quarantine", at=1)
    >>> quarantined.take(answer, [refused])
    >>> list(quarantined)
    ['eve']

    """

    # _names  by key; only keys with quarantined annotators
    def __init__(self, loops: KeyedLoops) -> None:
        self._keyed = loops.keyed
        self._names: dict[str | None, set[str]] = {}
        for key, name in loops.quarantined():
            self._names.setdefault(key, set()).add(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names, once for each key."""
        for names in self._names.values():
            yield from names

    def take(self, content: object, messages: Sequence[Message]) -> None:
        """Process an input and the messages about it."""
        if isinstance(content, TakenBack) and content.event_id is None:
            self._names.pop(content.key, None)
        for message in messages:
            # Each first question lists all of them; second questions exclude other annotators too.
            if isinstance(message, LabelRequest) and not message.is_second:
                self._put(message.key, set(message.excluded))
            elif isinstance(message, Retraction):
                self._put(message.key, {message.annotator}, more=True)
            elif isinstance(message, Rejected) and message.fault == "quarantined":
                name = content.annotator if isinstance(content, Answer) else None
                if name is not None:
                    self._put(message.key, {name}, more=True)

    def _put(self, key: str | None, names: set[str], *, more: bool = False) -> None:
        home = key if self._keyed else None
        kept = names | self._names.get(home, set()) if more else names
        if kept:
            self._names[home] = kept
        else:
            self._names.pop(home, None)


class RecentShares:
    """Shares of values among at least the last `n`, at most twice as many.

    Parameters
    ----------
    n
        The smallest number of values considered, once there have been that many.

    Examples
    --------
    >>> shares = RecentShares(2)
    >>> for label in ("hall", "hall", "kitchen", "lounge", "hall"):
    ...     shares.count({label: 1})
    >>> shares.of(most=1)
    {'kitchen': 0.3333333333333333, '(others)': 0.6666666666666667}

    """

    # _now, _before  counts of this block of values, and of the one before
    def __init__(self, n: int) -> None:
        self._n = n
        self._now: Counter[Label] = Counter()
        self._before: Counter[Label] = Counter()

    def count(self, values: Mapping[Label, int]) -> None:
        """Count values."""
        if self._now.total() >= self._n:
            self._before, self._now = self._now, Counter()
        self._now.update(values)

    def of(self, *, most: int) -> dict[str, float]:
        """Return the shares of the most frequent values, and of all others together."""
        counts: Counter[str] = Counter()
        for label, count in (self._before + self._now).items():
            counts[str(label)] += count  # the number 1 and the text "1" share a series
        n = counts.total()
        shares = {label: count / n for label, count in counts.most_common(most)}
        if len(counts) > most:
            rest = 1.0 - sum(shares.values())
            shares[OTHERS] = shares.get(OTHERS, 0.0) + rest
        return shares


class WorkerMetrics:
    """Metrics of one worker, from its start.

    Parameters
    ----------
    names_annotators
        Whether errors are also estimated by annotator.

    Attributes
    ----------
    events, predictions, duplicates
        Numbers committed; duplicates are answers that were sent again.
    answers
        Answers by result, see `result_of`.
    dead_letters
        Dead letters by stage.
    unusable
        Inputs that count against `max_bad_share`: dead letters that no normal course of events
        explains.
    durations
        Durations of batches in seconds, by phase.
    restores
        Durations of restores in seconds.
    rebalances
        How often the assignment of partitions has changed.
    committed_at
        When the last batch was committed, POSIX seconds; None if none was.
    lags
        Number of waiting records in each input partition, by the topic's name on the broker.
    stuck
        Those of these partitions that have records but yield none.
    missed
        Number of inputs that were deleted before they were read.
    broker_away_s
        For how many seconds the broker has not answered; 0 while it does.
    keys
        Number of keys by where their loops are: `ready` in memory, or `evicted`.
    is_ready
        Whether the partitions assigned to the worker are restored.
    questions
        The open questions of each partition.
    quarantined
        The quarantined annotators of each partition.
    requests
        Number of label requests, by the strategy that asked.
    challenges
        Number of ended challenges, by outcome (`QuestionTracker.take`).
    learned
        Number of labels learned, by origin.
    confidence
        Probabilities of the predicted labels.
    shares
        Shares of labels among the most recent predictions.
    errors
        Estimates of how often first answers are wrong: under None for all annotators, and by name
        if `names_annotators`.
    drifts
        How often a change was found, by signal: by ADWIN, or in the labels by drift tests.

    """

    # _lived_at     when the worker last began a cycle, or a restore advanced
    # _looked_at    when gauges were last updated
    # _assigned_at  when the assignment last changed
    # _lock         held while a batch is counted, or everything is read
    # _names_annotators  whether errors are estimated by annotator
    # _block             numbers of predictions and of requests, and sum of confidences, since
    #                    the last update of the detectors
    # _detectors         drift detectors, by signal
    def __init__(
        self, clock: Callable[[], float] = monotonic, *, names_annotators: bool = False
    ) -> None:
        self.events = self.predictions = self.duplicates = self.rebalances = 0
        self.answers: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self.unusable = 0
        self.durations = {phase: Histogram(DURATIONS_S) for phase in PHASES}
        self.restores = Histogram((0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0))
        self.committed_at: float | None = None
        self.lags: dict[tuple[str, int], int] = {}
        self.stuck: frozenset[tuple[str, int]] = frozenset()
        self.missed = 0
        self.broker_away_s = 0.0
        self.keys = {"ready": 0, "evicted": 0}
        self.is_ready = False
        self.questions: dict[int, QuestionTracker] = {}
        self.quarantined: dict[int, Quarantined] = {}
        self.requests: Counter[str] = Counter()
        self.challenges: Counter[str] = Counter()
        self.learned: Counter[str] = Counter()
        self.confidence = Histogram([i / 10 for i in range(1, 11)])
        self.shares = RecentShares(1000)
        self.errors: dict[str | None, ErrorRate] = {None: ErrorRate()}
        self.drifts: Counter[str] = Counter(dict.fromkeys((*SIGNALS, LABELS), 0))
        self._names_annotators = names_annotators
        self._block: list[float] = [0, 0, 0.0]
        self._detectors: dict[str, Any] = {signal: _adwin() for signal in SIGNALS}
        self._clock = clock
        self._lived_at = self._looked_at = self._assigned_at = clock()
        self._lock = Lock()

    def reading(self) -> AbstractContextManager[object]:
        """Return a context in which no batch is counted."""
        return self._lock

    @property
    def is_alive(self) -> bool:
        """Whether there was a cycle in the last minute."""
        return self._clock() - self._lived_at <= HEALTHY_S

    # --- written by the worker

    def show_life(self) -> None:
        """Record that a cycle begins, or a restore advances."""
        self._lived_at = self._clock()

    def note_assignment(self, lost: Iterable[int] = ()) -> None:
        """Record that the assignment has changed; the restore of new partitions begins."""
        with self._lock:
            for number in lost:
                self.questions.pop(number, None)
                self.quarantined.pop(number, None)
        self.rebalances += 1
        self.is_ready = False
        self._assigned_at = self._clock()

    def note_restored(self, gained: Mapping[int, Partition]) -> None:
        """Record that all partitions are restored, the new ones included."""
        if gained:
            with self._lock:
                self.restores.observe(self._clock() - self._assigned_at)
                for number, partition in gained.items():
                    self.questions[number] = QuestionTracker(partition.loops)
                    self.quarantined[number] = Quarantined(partition.loops)
        self.is_ready = True

    def note_batch(self, batch: Batch, took_s: Mapping[str, float], at: float) -> None:
        """Count a committed batch.

        Parameters
        ----------
        took_s
            Its duration in seconds, by phase.
        at
            The time, POSIX seconds.

        """
        counts = batch.results.counts
        with self._lock:
            self.committed_at = at
            for phase, seconds in took_s.items():
                self.durations[phase].observe(seconds)
            self.events += counts["events"]
            self.predictions += counts["predictions"]
            self.duplicates += counts["duplicates"]
            if counts["dead_letters"]:
                self.dead_letters.update(_stages(batch.results.out))
                self.unusable += sum(batch.results.verdicts)
            self.drifts[LABELS] += len(batch.results.drifts)
            self._count(batch.results.exchanges)

    def look(
        self,
        client: WorkerClient,
        partitions: Iterable[Partition],
        stuck: Iterable[Place],
        n_missed: int,
        names: Mapping[TopicName, str],
    ) -> None:
        """Update the gauges, at most once a second."""
        now = self._clock()
        if now - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now
        # Replaced as a whole: a concurrent reader sees the old or the new one.
        self.lags = {
            (names[topic], number): n
            for (topic, number), n in client.lag().items()
            if n is not None
        }
        self.stuck = frozenset((names[topic], number) for topic, number in stuck)
        self.missed = n_missed
        silence = client.silence()
        self.broker_away_s = 0.0 if silence is None else silence.since_s
        all_loops = [partition.loops for partition in partitions]
        n_ready = sum(len(loops.loops) for loops in all_loops)
        n_keys = sum(loops.n_keys for loops in all_loops)
        self.keys = {"ready": n_ready, "evicted": n_keys - n_ready}

    @property
    def challenge_precision(self) -> float | None:
        """Share of answered challenges after which the label was changed; None without any."""
        n = self.challenges["revised"] + self.challenges["upheld"]
        return self.challenges["revised"] / n if n else None

    @property
    def n_quarantined(self) -> dict[str | None, int]:
        """Number of loops with a quarantined annotator: under None for any, or by name."""
        names: Counter[str | None] = Counter()
        for each in self.quarantined.values():
            names.update(each)
        if not self._names_annotators:
            return {None: names.total()}
        # The empty name stands for all annotators.
        named = sorted((name for name in names if name), key=lambda name: (-names[name], name))
        return {None: 0, **{name: names[name] for name in named[:MOST_NAMES]}}

    @property
    def oldest_question(self) -> float | None:
        """Since when the oldest open question has been open, POSIX seconds; None without one."""
        oldest = (each.oldest() for each in self.questions.values())
        return min((at for at in oldest if at is not None), default=None)

    def _count(self, exchanges: Sequence[Exchange]) -> None:
        # By lists: most events are only predicted, and need no work of their own.
        predictions = [m[0] for _, _, m in exchanges if m and type(m[0]) is Prediction]
        sure = [(p.y, p.proba[p.y]) for p in predictions if p.y is not None and p.y in p.proba]
        confidences = [confidence for _, confidence in sure]
        self.confidence.observe(*confidences)
        self.shares.count(Counter([label for label, _ in sure]))
        for exchange in exchanges:
            if len(exchange[2]) != 1 or type(exchange[2][0]) is not Prediction:
                self._converse(*exchange)
        block = self._block
        block[0] += len(predictions)
        block[2] += sum(confidences)
        if block[0] >= _BLOCK:
            n, n_asked, total = block
            for signal, value in zip(SIGNALS, (total / n, n_asked / n), strict=True):
                detector = self._detectors[signal]
                detector.update(value)
                self.drifts[signal] += detector.drift_detected
            self._block = [0, 0, 0.0]

    def _converse(self, number: int, content: object, messages: Sequence[Message]) -> None:
        if isinstance(content, Answer):
            self.answers[result_of(messages)] += 1
        for message in messages:
            if isinstance(message, LabelRequest):
                self.requests[message.reason] += 1
                self._block[1] += 1
            elif isinstance(message, LabelledExample):
                self.learned[message.origin] += 1
                self._judge(message)
        if number in self.questions:
            self.challenges.update(self.questions[number].take(content, messages))
            self.quarantined[number].take(content, messages)

    def _judge(self, line: LabelledExample) -> None:
        wrong = line.probability_wrong
        if wrong is None:
            return
        self.errors[None].note(wrong)
        name = line.first_by
        # The empty name stands for all annotators. Annotators can invent names, and each would
        # remain a series for ever.
        is_known = name in self.errors or len(self.errors) <= MOST_NAMES
        if self._names_annotators and name and is_known:
            self.errors.setdefault(name, ErrorRate()).note(wrong)


def _adwin() -> Any:
    from river.drift import ADWIN  # only imported with metrics

    return ADWIN(clock=1)  # type: ignore[no-untyped-call]


def _stages(outgoing: Iterable[Outgoing]) -> list[str]:
    """Return the stage of each dead letter."""
    return [
        dict(out.headers)["dlq.stage"].decode() for out in outgoing if out.topic == "dead-letters"
    ]
