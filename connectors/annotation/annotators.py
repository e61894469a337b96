"""What messages tell of annotators: who is active, how much each has answered, who is excluded."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import median

from connectors.annotation.open_questions import RequestKey
from connectors.annotation.timeline import is_same
from streamgp.base import Label, QuestionsLeft
from streamgp.common.latest import LatestByKey
from streamgp.interactive.messages import Answer, Challenge, LabelRequest
from streamgp.interactive.people import People

SEEN_S = 120.0
"""How long an annotator counts as active."""
_DAY_S = 86_400.0
# Enough for a day of 25 hours, when summer time ends, in the westernmost time zone.
_KEPT_S = 2 * _DAY_S
_N_PACE = 20
_LONGEST_PAUSE_S = 120.0
_N_CHALLENGES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Counts of an annotator.

    Parameters
    ----------
    waiting, oldest_s
        Number of waiting questions, and for how many seconds the oldest has waited; None without
        one.
    answered, today
        Number of answers in the topics, and of replies to questions since the start of the day.
    seconds_per_question
        Median time of the last twenty answers; None before the second.
    per_minute
        Answers a minute at that pace.
    kept, changed
        Number of challenges after which the label was kept, and changed.
    budget_left
        Number of questions that may still be asked; None if no budget tells, or each key has its
        own.

    """

    waiting: int = 0
    oldest_s: float | None = None
    answered: int = 0
    today: int = 0
    seconds_per_question: float | None = None
    per_minute: float | None = None
    kept: int = 0
    changed: int = 0
    budget_left: QuestionsLeft | None = None


@dataclass(slots=True)
class _Counts:
    answered: int = 0
    kept: int = 0
    changed: int = 0


class AnswerTimes:
    """Times of each annotator's replies over the last two days.

    Examples
    --------
    >>> times = AnswerTimes()
    >>> for at in (100.0, 160.0, 130.0):
    ...     times.note("ann", at)
    >>> times.last("ann"), times.n_since("ann", 130.0), times.last("bob")
    (160.0, 2, None)

    """

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    def note(self, annotator: str, at: float) -> None:
        """Record a reply to a question; recording it again changes nothing."""
        times = self._times.setdefault(annotator, [])
        place = bisect_left(times, at)
        if times[place : place + 1] != [at]:
            times.insert(place, at)
        del times[: bisect_left(times, times[-1] - _KEPT_S)]

    def last(self, annotator: str) -> float | None:
        """Return when an annotator last answered, None if not known."""
        times = self._times.get(annotator)
        return times[-1] if times else None

    def n_since(self, annotator: str, start: float) -> int:
        """Return how many answers an annotator has replied from a time on."""
        times = self._times.get(annotator, [])
        return len(times) - bisect_left(times, start)

    def latest(self, annotator: str, n: int) -> list[float]:
        """Return the times of an annotator's last answers, at most `n`, the latest at the end."""
        return self._times.get(annotator, [])[-n:]


class AnnotatorCounts:
    """Counts of each annotator.

    Challenges and their answers may be read in any order.

    Attributes
    ----------
    times
        When each annotator has replied to questions; corrections do not count.

    """

    # _of         counts by annotator
    # _contested  doubted labels, of challenges whose answer is not known yet
    # _decided    answers to challenges that are not known yet: annotator and label
    # _seen       when each annotator was last active
    def __init__(self) -> None:
        self.times = AnswerTimes()
        self._of: dict[str, _Counts] = {}
        self._contested: LatestByKey[str | None, Label] = LatestByKey(_N_CHALLENGES)
        self._decided: LatestByKey[str | None, tuple[str, Label]] = LatestByKey(_N_CHALLENGES)
        self._seen: dict[str, float] = {}

    def saw(self, annotator: str, now: float) -> None:
        """Record that an annotator is active."""
        self._seen[annotator] = max(now, self._seen.get(annotator, -inf))

    def note_answer(self, answer: Answer) -> None:
        """Count an answer, which must not have been counted before."""
        annotator = answer.annotator
        if annotator is None:
            return
        self.saw(annotator, answer.answered_at)
        if answer.supersedes is not None:
            return
        counts = self._of.setdefault(annotator, _Counts())
        counts.answered += 1
        if answer.request_id is None:
            return
        self.times.note(annotator, answer.answered_at)
        if answer.y is not None:
            asked = (answer.key, answer.request_id)
            self._decided.put(asked, (annotator, answer.y))
            self._count_decision(asked)

    def note_challenge(self, challenge: Challenge) -> None:
        """Count a challenge, once its answer is known."""
        asked = (challenge.key, challenge.request_id)
        self._contested.put(asked, challenge.given)
        self._count_decision(asked)

    def forget(self, key: str | None) -> None:
        self._contested.forget(key)
        self._decided.forget(key)

    def progress(
        self,
        annotator: str,
        now: float,
        *,
        day_start: float | None,
        waiting: int,
        oldest_at: float | None,
        budget_left: QuestionsLeft | None,
    ) -> Progress:
        """Return the counts of an annotator.

        Parameters
        ----------
        day_start
            When the annotator's day began; None for the last midnight in UTC.
        waiting, oldest_at, budget_left
            The annotator's waiting questions.

        """
        counts = self._of.get(annotator) or _Counts()
        start = now - now % _DAY_S if day_start is None else day_start
        pauses = [b - a for a, b in pairwise(self.times.latest(annotator, _N_PACE + 1))]
        pauses = [pause for pause in pauses if 0.0 < pause <= _LONGEST_PAUSE_S]
        pace = median(pauses) if pauses else None
        return Progress(
            waiting=waiting,
            oldest_s=None if oldest_at is None else max(0.0, now - oldest_at),
            answered=counts.answered,
            today=self.times.n_since(annotator, start),
            seconds_per_question=pace,
            per_minute=None if pace is None else 60.0 / pace,
            kept=counts.kept,
            changed=counts.changed,
            budget_left=budget_left,
        )

    def others(self, now: float, *, than: str) -> list[str]:
        """Return the other annotators who were active in the last two minutes, by name."""
        return sorted(
            name for name, at in self._seen.items() if name != than and abs(now - at) <= SEEN_S
        )

    def _count_decision(self, asked: RequestKey) -> None:
        """Count a challenge and its answer, once both are known."""
        if asked in self._contested and asked in self._decided:
            given, (annotator, y) = self._contested.pop(asked), self._decided.pop(asked)
            counts = self._of.setdefault(annotator, _Counts())
            if is_same(given, y):
                counts.kept += 1
            else:
                counts.changed += 1


class QuarantinedAnnotators:
    """Annotators in quarantine, by the newest first question of each key.

    Parameters
    ----------
    people
        The same as for the workers: some annotators are never in quarantine.
    keyed
        Whether the workers have a learner for each key; otherwise there is one for all.

    """

    # _names  those whom the newest first question of each key excludes, if any
    def __init__(self, people: People, *, keyed: bool) -> None:
        self._people = people
        self._keyed = keyed
        self._names: dict[str | None, tuple[str, ...]] = {}

    def note(self, request: LabelRequest) -> None:
        """Note whom a label request excludes, unless it is a second question."""
        if request.is_second:  # which also excludes those who have answered about the event
            return
        key = request.key if self._keyed else None
        self._names.pop(key, None)
        if request.excluded:
            self._names[key] = request.excluded

    def forget(self, key: str | None) -> None:
        """Forget a key, unless there is one learner for all."""
        if self._keyed:
            self._names.pop(key, None)

    def counts(self, only_key: str | None = None) -> dict[str, int]:
        """Return the annotators with the number of keys, for one key or for all."""
        counts: dict[str, int] = {}
        for key, names in self._names.items():
            if only_key is None or not self._keyed or key == only_key:
                for name in filter(self._people.may_be_quarantined, names):
                    counts[name] = counts.get(name, 0) + 1
        return counts

    def holds(self, annotator: str | None, key: str | None) -> bool:
        """Return whether an annotator is in quarantine: workers then refuse all their answers."""
        names = self._names.get(key if self._keyed else None, ())
        return annotator in names and self._people.may_be_quarantined(annotator)
