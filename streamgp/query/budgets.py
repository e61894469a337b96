"""Budgets: whether one more label request may be sent.

A budget knows no criterion and no clock. It is told of every event, whether it was asked about,
and which questions came back without an answer. `now` is a time in seconds or, where there is no
time, the number of the event. Budgets bound label requests; a challenge asks whether an answer is
right, so there are never more challenges than answers. The challenges of old labels can have a
budget of their own: see `streamgp.query.retrospective`.

"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar

from streamgp.base import Budget, CountingBudget, Decision, QuestionsLeft, State
from streamgp.common.budget_account import BudgetAccount, Saveable
from streamgp.common.counter_rng import check_seed, uniform
from streamgp.common.fingerprint import recorded_name
from streamgp.common.signatures import has_methods, lacking
from streamgp.common.validation import check_flag, check_positive, check_rate, check_whole
from streamgp.query.registry import BOTH, Count, Limit, Positive, Seconds, Share, rule

__all__ = [
    "AdaptiveThreshold",
    "AllOf",
    "AtMost",
    "AtMostPer",
    "AvailabilityBudget",
    "PacedBudget",
    "RateBudget",
    "Unlimited",
]

# Times of questions that are kept, so that the limit holds even when time goes backwards; the last
# n would do if it never did.
_REMEMBERED = 1000


@rule("budget", "unlimited", example="every question", targets=BOTH)
class Unlimited:
    """No limit."""

    def __repr__(self) -> str:
        return "Unlimited()"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Allow everything."""
        return True

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Do nothing."""

    def refund(self, now: float) -> None:
        """Do nothing: there is no limit."""

    def state(self) -> State:
        """Return an empty state."""
        return {}

    def load_state(self, state: State) -> None:
        """Do nothing: there is no state."""


def check_budget(name: str, budget: object) -> None:
    """Refuse what is no budget, or lacks a method that may be called only days later.

    It need not be possible to save it.
    """
    kind: Any = type(budget)
    if has_methods(kind, Budget):
        return
    unsaveable = lacking(budget, Saveable)
    missing = [method for method in lacking(budget, Budget) if method not in unsaveable]
    if missing:
        raise TypeError(
            f"{name} must be a budget, such as AtMost(100), got {budget!r}; it lacks "
            f"{', '.join(missing)}"
        )


def account_of(budget: Budget | None) -> BudgetAccount:
    """Return an account of a copy of a budget, which is a template; None stands for no limit."""
    return BudgetAccount(Unlimited() if budget is None else copy.deepcopy(budget))


@rule("budget", "at_most", example="n = 100", targets=BOTH)
class AtMost:
    """At most `n` questions in all.

    Parameters
    ----------
    n
        Number of questions.
    gives_back
        Whether a question that was declined, expired or taken back does not count after all.

    Examples
    --------
    >>> budget = AtMost(1)
    >>> wish = Decision.of(1.0, 0.0, "AlwaysAsk")
    >>> budget.note(wish, asked=True, now=0.0)
    >>> budget.allows(wish, now=1.0)
    False

    """

    # Parameters that topics may have been written without: `common.fingerprint` omits them at their
    # default, so that older snapshots still match.
    ADDED: ClassVar = ("gives_back",)

    def __init__(self, n: Limit, gives_back: bool = True) -> None:
        self.n = check_whole("n", n, 0)
        self.gives_back = check_flag("gives_back", gives_back)
        self._spent = 0

    def __repr__(self) -> str:
        return f"AtMost({self.n!r}{'' if self.gives_back else ', gives_back=False'})"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Whether fewer than `n` questions are spent."""
        return self._spent < self.n

    def left(self, now: float) -> QuestionsLeft:  # noqa: ARG002
        """Return how many questions are left."""
        return QuestionsLeft(max(0, self.n - self._spent), self.n)

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Count the question."""
        self._spent += asked

    def refund(self, now: float) -> None:  # noqa: ARG002
        """Give one question back, if `gives_back` is set."""
        if self.gives_back:
            self._spent = max(0, self._spent - 1)

    def state(self) -> State:
        """Return the number of questions spent."""
        return {"spent": self._spent}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._spent = int(state["spent"])


@rule(
    "budget",
    "at_most_per",
    example="n = 5, span_s = 3600.0 (at most 5 in any hour)",
    targets=BOTH,
)
class AtMostPer:
    """At most `n` questions within any span of time.

    An unanswered question has still interrupted an annotator, so by default it counts.

    Parameters
    ----------
    n
        Number of questions.
    span_s
        Length of the span, in seconds (in events, where there is no time).
    gives_back
        Whether a question that was declined, expired or taken back does not count after all.

    Examples
    --------
    >>> budget = AtMostPer(2, span_s=3600)
    >>> wish = Decision.of(1.0, 0.0, "AlwaysAsk")
    >>> for now in (0.0, 60.0):
    ...     budget.note(wish, asked=True, now=now)
    >>> budget.allows(wish, now=3599.0), budget.allows(wish, now=3600.0)
    (False, True)

    """

    # Older topics lack them, see `AtMost`.
    ADDED: ClassVar = ("gives_back",)

    def __init__(self, n: Limit, span_s: Seconds, gives_back: bool = False) -> None:
        self.n = check_whole("n", n, 0)
        check_positive("span_s", span_s)
        self.span_s = span_s
        self.gives_back = check_flag("gives_back", gives_back)
        self._asked_at: list[float] = []

    def __repr__(self) -> str:
        return f"AtMostPer({self.n!r}, {self.span_s!r}{', gives_back=True' * self.gives_back})"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Whether fewer than `n` questions lie less than a span away, in either direction.

        Time may go backwards between events, and a clock may have run ahead for a while.
        """
        return self._within(now) < self.n

    def left(self, now: float) -> QuestionsLeft:
        """Return how many questions are left within a span."""
        return QuestionsLeft(max(0, self.n - self._within(now)), self.n, self.span_s)

    def _within(self, now: float) -> int:
        # The time itself counts, even where a span shorter than its rounding does not move it.
        times = self._asked_at
        first = min(bisect_right(times, now - self.span_s), bisect_left(times, now))
        last = max(bisect_left(times, now + self.span_s), bisect_right(times, now))
        return last - first

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Remember when the question was asked."""
        if asked:
            insort(self._asked_at, now)
            if len(self._asked_at) > max(_REMEMBERED, 2 * self.n):
                del self._asked_at[0]

    def refund(self, now: float, asked_at: float | None = None) -> None:
        """Give back the question that was asked at a time, or next to it, if `gives_back` is set.

        If the caller does not say when it was asked, the earliest that counts is given back: so
        there are never more than `n` answered ones within a span.
        """
        times = self._asked_at
        if not (self.gives_back and times):
            return
        if asked_at is None:
            first = bisect_right(times, now - self.span_s)
            if first < len(times):
                del times[first]
            return
        after = bisect_left(times, asked_at)
        near = range(max(0, after - 1), min(len(times), after + 1))
        del times[min(near, key=lambda i: abs(times[i] - asked_at))]

    def state(self) -> State:
        """Return the times of the last questions."""
        return {"asked_at": list(self._asked_at)}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._asked_at = [float(at) for at in state["asked_at"]]


@rule(
    "budget",
    "rate",
    example="rate = 0.1, window = 50, horizon = 8 (about this share of the events)",
    targets=BOTH,
)
class RateBudget:
    """Ask about a given share of the events: those with the highest recent scores.

    An event may be asked about if `p < clip(rate + (rate · t - spent) / horizon, 0, 1)`, where `p`
    is the rank of its score among the last `window` scores, from 0 (highest) to 1, ties broken at
    random, `t` counts the events and `spent` the questions. It needs no scale of scores, and the
    realised rate follows `rate` closely. Use it with a rule that would ask about everything and
    whose score then ranks the events, for example `Entropy(threshold=0.0)`. With a rule whose
    scores are all alike, such as `AlwaysAsk()`, chance decides. A rule that asks for less than the
    rate gets all it asks for.

    Parameters
    ----------
    rate
        Share of events to ask about.
    window
        Number of recent scores to rank against.
    horizon
        Number of events over which arrears are made up.
    seed
        Seed of the draws that break ties.
    gives_back
        Whether a question that was declined, expired or taken back does not count after all.

    """

    # _scores  the last `window` scores
    # _n       events noted; also numbers the draws
    # _spent   questions asked and not given back
    # Older topics lack them, see `AtMost`.
    ADDED: ClassVar = ("gives_back",)

    def __init__(
        self,
        rate: Share,
        window: Count = 50,
        horizon: Count = 8,
        seed: int = 0,
        gives_back: bool = True,
    ) -> None:
        check_rate("rate", rate)
        check_seed(seed)
        self.rate = rate
        self.window = check_whole("window", window, 1)
        self.horizon = check_whole("horizon", horizon, 1)
        self.seed = seed
        self.gives_back = check_flag("gives_back", gives_back)
        self._scores: deque[float] = deque(maxlen=self.window)
        self._n = 0
        self._spent = 0

    def __repr__(self) -> str:
        seed = f", seed={self.seed!r}" if self.seed else ""
        kept = "" if self.gives_back else ", gives_back=False"
        sizes = f"window={self.window!r}, horizon={self.horizon!r}"
        return f"RateBudget({self.rate!r}, {sizes}{seed}{kept})"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Whether the score ranks high enough for the share that is due."""
        higher = sum(score > decision.score for score in self._scores)
        ties = sum(score == decision.score for score in self._scores)
        rank = (higher + uniform(self.seed, str(self._n), "rate") * (1 + ties)) / (
            len(self._scores) + 1
        )
        return rank < self.rate + (self.rate * (self._n + 1) - self._spent) / self.horizon

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Remember the score and count the question."""
        self._scores.append(decision.score)
        self._n += 1
        self._spent += asked

    def refund(self, now: float) -> None:  # noqa: ARG002
        """Give one question back, if `gives_back` is set."""
        if self.gives_back:
            self._spent = max(0, self._spent - 1)

    def forget_scores(self) -> None:
        """Forget the scores so far: the next ones are ranked among themselves."""
        self._scores.clear()

    def state(self) -> State:
        """Return the last scores and the counts."""
        return {"scores": list(self._scores), "n": self._n, "spent": self._spent}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._scores.clear()
        self._scores.extend(float(score) for score in state["scores"])
        self._n, self._spent = int(state["n"]), int(state["spent"])


# --- A limit that is used evenly, for the most doubtful events.


# By how much all questions of a limit together lower the logarithm of the strictness. This value
# and the following were chosen on logs that `benchmarks.asking` does not use; this one among 2, 3,
# 4 and 6.
_FALL = 4.0
# The pace, in units of the limit: at the limit the strictness stands still, so with a pace of 1 a
# tenth of the questions would never be asked.
_PACE = 1.1
# Share of the first span's questions that may be asked at once: all of them would be gone before a
# new class appears, and while nothing is known everything is doubtful.
_AT_ONCE = 0.5
# Share of a span within which arrears are made up.
_CATCH_UP = 0.08
# Number of the latest scores that show what would have been asked.
_LATEST = 50
# The logarithm of the strictness stays within the range whose exponential is a float.
_MOST_LOG = 600.0


@rule(
    "budget",
    "paced",
    example="n = 30, span_s = 86400.0 (30 a day, spread evenly, on the most doubtful events)",
    targets=BOTH,
)
class PacedBudget:
    """At most `n` questions within any span of time, spread evenly, on the most doubtful events.

    A controller adjusts the strictness `c` of the query strategy: what the strategy compares a
    score with, for `SkepticalAsk` the draw of a coin, is divided by `c`. `ln c` rises by 4.4 within
    a span, except at the limit, and falls by `4 / n` with each question, from `-ln score` if it was
    higher. Where fewer questions were asked than were due, `c` is at least the value that would
    have asked about as many of the latest 50 events as make up for it within .08 of a span:
    `sum(min(1, c score))` is that number.

    So questions are spread evenly, but more are asked while much is doubtful. Where scores fall, as
    they do while a learner learns, `c` rises. Half of the first span's questions may be asked at
    once, when labels teach most; the others become due evenly. A strategy without a coin that would
    ask about everything, such as `Variance()`, is given one, as is one with a threshold of 1 or
    more: it asks with a probability in proportion to the score. The first score sets the scale.

    A question counts whether it is answered or not: it has interrupted an annotator. After a pause
    in the events `c` is higher, and questions catch up, within the limit.

    The first `at_start` questions do not count towards the limit. While some of them are left, what
    the strategy itself would ask about is asked about; the controller only makes up for arrears, if
    that is less than `n` within a span. Once they are used up, it begins with `c = 1`, and the
    first span begins again.

    As the budget of a classifier or regressor it also asks where the strategy would not have asked.
    Elsewhere, as the budget of a review or of all keys together, it only refuses.

    Parameters
    ----------
    n
        Number of questions.
    span_s
        Length of the span, in seconds (in events, where there is no time).
    seed
        Seed of the draws for strategies without a coin.
    at_start
        Number of questions before the limit begins to count.

    Attributes
    ----------
    strictness
        The factor `c` after the latest event, before arrears count.

    Examples
    --------
    Doubt falls to a tenth within three days, and each day still has its questions:

    >>> budget, asked = PacedBudget(30, span_s=86400.0), [0, 0, 0]
    >>> for minute in range(3 * 1440):
    ...     coin = (0.618 * minute) % 1.0
    ...     wish = Decision.of(0.1 ** (minute / 4320), coin, "SkepticalAsk")
    ...     decision = budget.turned(wish, now=60.0 * minute)
    ...     budget.note(decision, decision.ask, now=60.0 * minute)
    ...     asked[minute // 1440] += decision.ask
    >>> asked
    [30, 30, 29]

    The first 30 questions come on top:

    >>> budget = PacedBudget(30, span_s=86400.0, at_start=30)
    >>> budget.left(now=0.0)
    QuestionsLeft(left=60, of=60, span_s=86400.0)
    >>> wish = Decision.of(1.0, 0.5, "SkepticalAsk")
    >>> for minute in range(31):
    ...     budget.note(wish, asked=True, now=60.0 * minute)
    >>> budget.left(now=1860.0)
    QuestionsLeft(left=29, of=30, span_s=86400.0)

    """

    # _limit    counts the questions within a span
    # _extra    how many of the `at_start` questions are left; the limit counts none before
    # _log      logarithm of the strictness after the latest event, None before a positive score
    # _start    time of the first event, or of the last question of the start; None before it
    # _at       latest time of an event, None before the first
    # _n        events noted; numbers the draws
    # _spacing  time from one event to the next, mean over about the latest ones
    # _scores   the latest scores
    turns: ClassVar = True
    # Older topics lack it, see `AtMost`.
    ADDED: ClassVar = ("at_start",)

    def __init__(self, n: Limit, span_s: Seconds, seed: int = 0, at_start: Limit = 0) -> None:
        self._limit = AtMostPer(n, span_s)
        check_seed(seed)
        self.n = self._limit.n
        self.span_s = span_s
        self.seed = seed
        self.at_start = check_whole("at_start", at_start, 0)
        self._extra = self.at_start
        self._log: float | None = None
        self._start: float | None = None
        self._at: float | None = None
        self._n = 0
        self._spacing = 0.0
        self._scores: deque[float] = deque(maxlen=_LATEST)

    def __repr__(self) -> str:
        extra = f", at_start={self.at_start!r}" if self.at_start else ""
        return f"PacedBudget({self.n!r}, {self.span_s!r}{extra})"

    @property
    def strictness(self) -> float:
        """Factor by which the strategy asks more, or less, when no questions are in arrears."""
        return 1.0 if self._log is None else math.exp(self._log)

    def turned(self, decision: Decision, now: float) -> Decision:
        """Decide by the current strictness, whatever the strategy wants; changes nothing.

        What it wants is asked about while questions of the start are left.
        """
        if self._extra and decision.ask:
            return decision
        log = self._log_at(decision.score, now)
        least = decision.threshold
        if not _may_be_drawn(least):
            least = uniform(self.seed, str(self._n), "paced")
        turned = Decision.of(decision.score, least * math.exp(-log), decision.criterion)
        if turned.ask and self.left(now).left <= self._reserve(now):
            return turned.refused_by(recorded_name(type(self)))
        return turned

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether the question may be asked at the current strictness."""
        return self.turned(decision, now).ask

    def left(self, now: float) -> QuestionsLeft:
        """Return how many questions are left within a span, with those of the start."""
        left = self._limit.left(now)
        if not self._extra:
            return left
        return QuestionsLeft(left.left + self._extra, left.of + self.at_start, left.span_s)

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Adjust the strictness, and count the question."""
        score = decision.score
        if not self._extra:
            log = self._risen(score, now)
            if asked and score > 0.0:
                # Beyond 1 / score it is certain to ask; a larger `c` would change nothing.
                log = min(log, -math.log(score)) - _FALL / max(1, self.n)
            if score > 0.0 or self._log is not None:
                self._log = _within(log)
            self._limit.note(decision, asked, now)
        self._spacing = self._spacing_at(now)
        self._start = now if self._start is None else self._start
        self._at = now if self._at is None else max(self._at, now)
        self._n += 1
        self._scores.append(score)
        if asked and self._extra:
            self._extra -= 1
            if not self._extra:
                # Without a coin, the scale of scores is still unknown.
                self._log = 0.0 if _may_be_drawn(decision.threshold) else None
                self._start = now

    def refund(self, now: float) -> None:
        """Do nothing: the question has interrupted an annotator."""

    def forget_scores(self) -> None:
        """Forget the scores so far: the next one sets the scale again."""
        self._log = None
        self._scores.clear()

    def state(self) -> State:
        """Return the strictness, times, the latest scores and the times of the last questions."""
        extra = {"extra": self._extra} if self.at_start else {}
        return {
            "log": self._log,
            "start": self._start,
            "at": self._at,
            "n": self._n,
            "spacing": self._spacing,
            "scores": list(self._scores),
            "limit": self._limit.state(),
            **extra,
        }

    def load_state(self, state: State) -> None:
        """Restore what `state` returned.

        States written before scores were kept have none; their first span counts as over. Those of
        a budget without `at_start` have no such questions left, unless there was no event.
        """
        at = None if state["at"] is None else float(state["at"])
        log = state["log"] if state.get("first", 0.0) is not None else None
        start = state.get("start", None if at is None else at - self.span_s)
        self._log = None if log is None else float(log)
        self._start = None if start is None else float(start)
        self._at = at
        self._n = int(state["n"])
        self._spacing = float(state.get("spacing", 0.0))
        self._scores.clear()
        self._scores.extend(float(score) for score in state.get("scores", ()))
        self._limit.load_state(state["limit"])
        extra = int(state.get("extra", self.at_start if at is None else 0))
        self._extra = min(extra, self.at_start)

    def _log_at(self, score: float, now: float) -> float:
        """Return the logarithm of the strictness at an event, arrears included."""
        log = self._risen(score, now)
        rate = min(1.0, self._arrears(now) * self._spacing_at(now) / (_CATCH_UP * self.span_s))
        if rate <= 0.0:
            return log
        scores = [*self._scores, score]
        return max(log, _log_factor(scores, rate * len(scores)))

    def _arrears(self, now: float) -> float:
        """Return how many questions more are due than were asked."""
        if self._extra:
            due = self.n * self._since_start(now) / self.span_s
            return min(self.n, due - (self.at_start - self._extra))
        return self._limit.left(now).left - self.n * (1.0 - self._share_of_first(now))

    def _risen(self, score: float, now: float) -> float:
        """Return the logarithm of the strictness at an event, before arrears count."""
        if self._extra:
            return 0.0
        if self._log is None:
            # Certain to ask, as every strategy wants to before the first label.
            return 0.0 if score <= 0.0 else _within(-math.log(score))
        # What the limit forbids is not made up for: `c` would rise without end.
        passed_s = self._passed(now) if self._limit.left(now).left else 0.0
        return _within(self._log + _FALL * _PACE * passed_s / self.span_s)

    def _reserve(self, now: float) -> float:
        """Return how many of the first span's questions are not due yet."""
        return self.n * (1.0 - _AT_ONCE) * (1.0 - self._share_of_first(now))

    def _share_of_first(self, now: float) -> float:
        """Return what share of the first span is over."""
        return min(1.0, self._since_start(now) / self.span_s)

    def _since_start(self, now: float) -> float:
        return 0.0 if self._start is None else max(0.0, now - self._start)

    def _passed(self, now: float) -> float:
        return 0.0 if self._at is None else max(0.0, now - self._at)

    def _spacing_at(self, now: float) -> float:
        """Return the mean time between events; a pause counts as at most the catch-up time."""
        if self._at is None:
            return 0.0
        passed_s = min(self._passed(now), _CATCH_UP * self.span_s)
        return self._spacing + (passed_s - self._spacing) / min(self._n, _LATEST)


def _may_be_drawn(threshold: float) -> bool:
    """Whether a threshold may be the draw of a coin."""
    return 0.0 < threshold < 1.0


def _within(log: float) -> float:
    return min(max(log, -_MOST_LOG), _MOST_LOG)


def _log_factor(scores: Sequence[float], wanted: float) -> float:
    """Return the logarithm of the `c` for which `sum(min(1, c score))` is `wanted`.

    If too few scores are positive, it is the largest possible.
    """
    ascending = sorted(scores)
    totals = list(accumulate(ascending))
    # The largest scores are certain: find how many.
    for n_certain, (score, total) in enumerate(
        zip(reversed(ascending), reversed(totals), strict=True)
    ):
        if total <= 0.0:
            break
        log = math.log(wanted - n_certain) - math.log(total)
        if log + math.log(score) <= 0.0:
            return _within(log)
    return _MOST_LOG


# --- Questions at hours when they are answered.

# Below this availability, in units of that of the best hour, a question is exploration.
_AVAILABLE = 0.5
# How many questions the rate over all hours counts for in that of an hour, and the rate of an hour
# in that of the hour on one weekday.
_WEIGHT_OF_ALL, _WEIGHT_OF_HOUR = 2.0, 4.0
_HOUR_S = 3600.0
_HOURS, _WEEKDAYS = 24, 7
# 1970-01-01 was a Thursday; Monday is 0.
_FIRST_WEEKDAY = 3


@rule(
    "budget",
    "availability",
    example="exploration = 0.1 (asks less at hours when questions stay unanswered)",
    targets=BOTH,
)
class AvailabilityBudget:
    """Ask when questions get answered: scores count in proportion to how often they are.

    Of the questions asked within an hour of the day (UTC), `a` of `n` were answered before they
    expired; the rate of the hour is the mean of a Beta posterior, `q = (a + 2 p) / (n + 2)`, where
    `p = (a + 1) / (n + 1)` over all hours. The rate of the hour on one weekday is
    `(a + 4 q) / (n + 4)`, over its questions on that weekday. The availability is this rate in
    units of the largest `q`, at most 1. A question is refused unless its score, times the
    availability, exceeds its threshold. Where the availability is below 1/2 a question is
    exploration, and exploration is at most a given share of all questions.

    A declined question counts as answered, since the annotator was there; one that was taken back
    does not count. If all questions are answered, the availability is 1 and none is refused.

    It only refuses. With `PacedBudget` beside it, what it refuses is asked at other hours, within
    the same limit. If the loop has neither an expiry nor a horizon, unanswered questions never end
    and nothing is refused. Times must be POSIX seconds.

    Parameters
    ----------
    exploration
        Largest share of questions that are asked where the availability is below 1/2.

    Examples
    --------
    Questions asked at night expire, those asked by day are answered:

    >>> budget, hour = AvailabilityBudget(), 3600.0
    >>> for asked_at in range(48):
    ...     budget.note_outcome(asked_at=asked_at * hour, answered=asked_at % 24 >= 8)
    >>> round(budget.availability(now=48 * hour), 3), budget.availability(now=60 * hour)
    (0.402, 1.0)
    >>> wish = Decision.of(0.6, 0.5, "SkepticalAsk")
    >>> budget.allows(wish, now=48 * hour), budget.allows(wish, now=60 * hour)
    (False, True)

    """

    # _answered, _ended  questions by hour of the week that were answered, and that have ended
    # _availability      of each hour of the week: a function of those counts
    # _n_asked           questions asked
    # _n_explored        how many of them were exploration
    def __init__(self, exploration: Share = 0.1) -> None:
        check_rate("exploration", exploration)
        self.exploration = exploration
        self._answered = [0] * (_WEEKDAYS * _HOURS)
        self._ended = [0] * (_WEEKDAYS * _HOURS)
        self._availability = [1.0] * (_WEEKDAYS * _HOURS)
        self._n_asked = 0
        self._n_explored = 0

    def __repr__(self) -> str:
        return f"AvailabilityBudget({self.exploration!r})"

    def availability(self, now: float) -> float:
        """Return the rate of answers to questions asked now, in units of that of the best hour."""
        return self._availability[_hour_of_week(now)]

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether the question is worth asking now."""
        available = self.availability(now)
        if available < _AVAILABLE:
            most = self.exploration * (self._n_asked + 1)
            if self._n_explored + 1 > most:
                return False
        return decision.score * available > decision.threshold

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Count the question."""
        if asked:
            self._n_asked += 1
            self._n_explored += self.availability(now) < _AVAILABLE

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Record whether a question was answered before it expired."""
        hour = _hour_of_week(asked_at)
        self._answered[hour] += answered
        self._ended[hour] += 1
        self._estimate()

    def refund(self, now: float) -> None:
        """Do nothing: `note_outcome` tells how a question ended."""

    def state(self) -> State:
        """Return the counts."""
        return {
            "answered": list(self._answered),
            "ended": list(self._ended),
            "asked": self._n_asked,
            "explored": self._n_explored,
        }

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._answered = [int(n) for n in state["answered"]]
        self._ended = [int(n) for n in state["ended"]]
        self._n_asked, self._n_explored = int(state["asked"]), int(state["explored"])
        self._estimate()

    def _estimate(self) -> None:
        """Estimate the availability of each hour of the week from the counts."""
        answered, ended = self._answered, self._ended
        overall = (sum(answered) + 1) / (sum(ended) + 1)
        of_hours = [
            (sum(answered[hour::_HOURS]) + _WEIGHT_OF_ALL * overall)
            / (sum(ended[hour::_HOURS]) + _WEIGHT_OF_ALL)
            for hour in range(_HOURS)
        ]
        best = max(of_hours)
        self._availability = [
            min(1.0, (a + _WEIGHT_OF_HOUR * of_hour) / (n + _WEIGHT_OF_HOUR) / best)
            for a, n, of_hour in zip(answered, ended, of_hours * _WEEKDAYS, strict=True)
        ]


def _hour_of_week(now: float) -> int:
    """Return the hour of the week of a time, in UTC, 0 for the first of Monday."""
    return (int(now // _HOUR_S) + _FIRST_WEEKDAY * _HOURS) % (_WEEKDAYS * _HOURS)


# --- Several budgets at once.


@rule(
    "budget",
    "all_of",
    example="several budgets at once: a section [[budget.budgets]] with a rule for each of them",
    targets=BOTH,
)
class AllOf:
    """Several budgets at once: what any of them refuses is not asked.

    A question that one allows and another refuses counts for neither.

    Parameters
    ----------
    budgets
        The budgets, in the order in which they are consulted.

    Examples
    --------
    >>> from streamgp.budgets import AtMost, AtMostPer
    >>> budget = AllOf(AtMost(100), AtMostPer(1, span_s=60.0))
    >>> wish = Decision.of(1.0, 0.0, "AlwaysAsk")
    >>> budget.note(wish, asked=True, now=0.0)
    >>> budget.allows(wish, now=30.0), budget.refused_by(wish, now=30.0)
    (False, 'AtMostPer')

    """

    def __init__(self, *budgets: Budget) -> None:
        for budget in budgets:
            check_budget("each of budgets", budget)
        if not budgets:
            raise ValueError("AllOf needs at least one budget; take Unlimited() for none")
        self.budgets: Sequence[Budget] = budgets
        self._accounts = [BudgetAccount(budget) for budget in budgets]

    def __repr__(self) -> str:
        return f"AllOf({', '.join(map(repr, self.budgets))})"

    def allows(self, decision: Decision, now: float) -> bool:
        """Whether all of them allow it."""
        return all(budget.allows(decision, now) for budget in self.budgets)

    @property
    def turns(self) -> bool:
        """Whether one of them adjusts the strictness of the strategy."""
        return any(account.turns for account in self._accounts)

    def turned(self, decision: Decision, now: float) -> Decision:
        """Decide by the least strictness of those that adjust it; the others may refuse."""
        turned = [one.decided(decision, now) for one in self._accounts if one.turns]
        if turned:
            strictest = max(turned, key=lambda each: (each.budget is not None, each.threshold))
            # At its start a budget has to see whether the strategy has a coin.
            if not (strictest.ask and any(each is decision for each in turned)):
                decision = strictest
        for account in self._accounts:
            if not account.turns:
                decision = account.checked(decision, now)
        return decision

    def left(self, now: float) -> QuestionsLeft | None:
        """Return what is left of the budget that has least, among those that can tell."""
        counting = [one for one in self.budgets if isinstance(one, CountingBudget)]
        found = [left for one in counting if (left := one.left(now)) is not None]
        return min(found, key=lambda each: each.left, default=None)

    def refused_by(self, decision: Decision, now: float) -> str:
        """Return the name of the first budget that does not allow it."""
        first = next(one for one in self._accounts if not one.allows(decision, now))
        return first.name_of_refusal(decision, now)

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Notify all of them."""
        for budget in self.budgets:
            budget.note(decision, asked, now)

    def refund(self, now: float, asked_at: float | None = None) -> None:
        """Notify all of them."""
        for account in self._accounts:
            account.refund(now, asked_at)

    def forget_scores(self) -> None:
        """Notify those that compare scores."""
        for account in self._accounts:
            account.forget_scores()

    def note_outcome(self, *, asked_at: float, answered: bool) -> None:
        """Notify those that learn when questions are answered."""
        for account in self._accounts:
            account.note_outcome(asked_at=asked_at, answered=answered)

    def state(self) -> State:
        """Return the states of all."""
        return {"budgets": [account.state() for account in self._accounts]}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        for account, one in zip(self._accounts, state["budgets"], strict=True):
            account.load_state(one)


# --- A threshold that adapts until a given share of the events is asked about.


_LEAST, _LARGEST = math.log(1e-300), math.log(1e300)


@rule(
    "budget",
    "adaptive",
    example="rate = 0.1, step = 1.0 (about this share, and more while scores are high)",
    targets=BOTH,
)
class AdaptiveThreshold:
    """Ask about a share of the events: those whose score exceeds a threshold that adapts.

    The threshold rises by a factor `exp(step (1 - rate))` with each question and falls by
    `exp(-step rate)` with each event that is not asked about. So it follows scores that shrink
    while a learner learns, and `asked - rate * events = ln(threshold / first threshold) / step`: by
    so many questions the realised share differs from `rate`. Use it as a budget, with a rule that
    would ask about everything, such as `Variance()`. `RateBudget`, which ranks the latest scores,
    keeps a share more closely; this one asks more while scores are high.

    Parameters
    ----------
    rate
        Share of events to ask about.
    step
        How fast the threshold moves, in units of its logarithm.

    Attributes
    ----------
    threshold
        The value that a score has to exceed; None before the first event, which is asked about.

    Examples
    --------
    >>> budget = AdaptiveThreshold(0.25)
    >>> asked = 0
    >>> for event in range(400):
    ...     wish = Decision.of(0.9**event * (1.0 + event % 7), 0.0, "Variance")
    ...     allowed = budget.allows(wish, now=event)
    ...     budget.note(wish, allowed, now=event)
    ...     asked += allowed
    >>> asked
    60

    References
    ----------
    [^1]: Žliobaitė, I., Bifet, A., Pfahringer, B. and Holmes, G., 2014. Active learning with
        drifting streaming data. IEEE TNNLS 25, Alg. 2, whose threshold asks for a cap on the rate
        besides.

    """

    # _log  logarithm of the threshold, None before the first event
    def __init__(self, rate: Share, step: Positive = 1.0) -> None:
        check_rate("rate", rate)
        check_positive("step", step)
        self.rate = rate
        self.step = step
        self._log: float | None = None

    def __repr__(self) -> str:
        return f"AdaptiveThreshold({self.rate!r}, step={self.step!r})"

    @property
    def threshold(self) -> float | None:
        """Threshold that a score has to exceed; None before the first event, which is asked for."""
        return None if self._log is None else math.exp(self._log)

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Whether the score exceeds the threshold."""
        if self.rate == 0.0:
            return False
        return self.threshold is None or decision.score > self.threshold or self.rate == 1.0

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Move the threshold."""
        if self._log is None:
            self._log = math.log(decision.score) if decision.score > 0.0 else _LEAST
        self._move(float(asked) - self.rate)

    def refund(self, now: float) -> None:  # noqa: ARG002
        """Undo the rise with one question."""
        self._move(-1.0)

    def forget_scores(self) -> None:
        """Forget the threshold: the next score sets it."""
        self._log = None

    def state(self) -> State:
        """Return the threshold."""
        return {"log_threshold": self._log}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        found = state["log_threshold"]
        self._log = None if found is None else float(found)

    def _move(self, by: float) -> None:
        if self._log is not None:
            self._log = min(max(self._log + self.step * by, _LEAST), _LARGEST)
