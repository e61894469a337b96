"""Budgets: whether one more label request may be sent.

A budget knows no criterion and no clock. It is told about every event, whether it was asked about,
and which questions came back without an answer; `now` is a time in seconds or, where there is no
time, the number of the event. Budgets bound label requests; a challenge is a second question about
an answer, so there are never more challenges than answers. The challenges of old labels can have a
budget of their own: see `streamgp.query.review`.

"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import ClassVar

from streamgp.arguments import check_positive, check_rate, check_whole
from streamgp.base import Decision, State
from streamgp.draws import check_seed, uniform

# Times of questions that are kept, so that the limit holds when the time goes backwards; the last n
# would do where it never does.
_REMEMBERED = 1000


class Unlimited:
    """No limit."""

    def __repr__(self) -> str:
        return "Unlimited()"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Allow everything."""
        return True

    def note(self, decision: Decision, asked: bool, now: float) -> None:
        """Nothing to remember."""

    def refund(self, now: float) -> None:
        """Nothing to give back."""

    def state(self) -> State:
        """Nothing to keep."""
        return {}

    def load_state(self, state: State) -> None:
        """Nothing to take over."""


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

    ADDED: ClassVar = ("gives_back",)

    def __init__(self, n: int, gives_back: bool = True) -> None:
        self.n = check_whole("n", n, 0)
        self.gives_back = gives_back
        self._spent = 0

    def __repr__(self) -> str:
        return f"AtMost({self.n!r}{'' if self.gives_back else ', gives_back=False'})"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Whether fewer than `n` questions are spent."""
        return self._spent < self.n

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Count the question."""
        self._spent += asked

    def refund(self, now: float) -> None:  # noqa: ARG002
        """Give one question back, if it does."""
        if self.gives_back:
            self._spent = max(0, self._spent - 1)

    def state(self) -> State:
        """Return the number of questions spent."""
        return {"spent": self._spent}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._spent = int(state["spent"])


class AtMostPer:
    """At most `n` questions within any span of time.

    An unanswered question has interrupted somebody all the same, so that by default it counts.

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

    ADDED: ClassVar = ("gives_back",)

    def __init__(self, n: int, span_s: float, gives_back: bool = False) -> None:
        self.n = check_whole("n", n, 0)
        check_positive("span_s", span_s)
        self.span_s = span_s
        self.gives_back = gives_back
        self._asked_at: list[float] = []

    def __repr__(self) -> str:
        return f"AtMostPer({self.n!r}, {self.span_s!r}{', gives_back=True' * self.gives_back})"

    def allows(self, decision: Decision, now: float) -> bool:  # noqa: ARG002
        """Whether fewer than `n` questions lie less than a span away, in either direction.

        Time may go backwards between events, and a clock may have run ahead for a while.
        """
        first = bisect_right(self._asked_at, now - self.span_s)
        last = bisect_left(self._asked_at, now + self.span_s)
        return last - first < self.n

    def note(self, decision: Decision, asked: bool, now: float) -> None:  # noqa: ARG002
        """Remember when the question was asked."""
        if asked:
            insort(self._asked_at, now)
            if len(self._asked_at) > max(_REMEMBERED, 2 * self.n):
                del self._asked_at[0]

    def refund(self, now: float, asked_at: float | None = None) -> None:
        """Give the question back that was asked at a time, or next to it, if it does.

        Where nobody says when it was asked, it is the earliest that counts: so there are never more
        than `n` answered ones within a span.
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
        """Become what the state was taken from."""
        self._asked_at = [float(at) for at in state["asked_at"]]


class RateBudget:
    """Ask about a given share of the events: those with the highest scores of late.

    An event may be asked about if `p < clip(rate + (rate · t - spent) / horizon, 0, 1)`, where `p`
    is the rank of its score among the last `window` scores, from 0 (highest) to 1, ties broken at
    random, `t` counts the events and `spent` the questions. It needs no scale of scores, and the
    realised rate follows `rate` closely. Use it with a rule that would ask about everything, whose
    score then chooses, for example `Entropy(threshold=0.0)`; with one that all scores are alike to,
    as `AlwaysAsk()`, chance does. A rule that wants less than the rate gets what it wants.

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
    ADDED: ClassVar = ("gives_back",)

    def __init__(
        self,
        rate: float,
        window: int = 50,
        horizon: int = 8,
        seed: int = 0,
        gives_back: bool = True,
    ) -> None:
        check_rate("rate", rate)
        check_seed(seed)
        self.rate = rate
        self.window = check_whole("window", window, 1)
        self.horizon = check_whole("horizon", horizon, 1)
        self.seed = seed
        self.gives_back = gives_back
        self._scores: deque[float] = deque(maxlen=self.window)
        self._n = 0
        self._spent = 0

    def __repr__(self) -> str:
        return f"RateBudget({self.rate!r}, window={self.window!r}, horizon={self.horizon!r})"

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
        """Give one question back, if it does."""
        if self.gives_back:
            self._spent = max(0, self._spent - 1)

    def state(self) -> State:
        """Return the last scores and the counts."""
        return {"scores": list(self._scores), "n": self._n, "spent": self._spent}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._scores.clear()
        self._scores.extend(float(score) for score in state["scores"])
        self._n, self._spent = int(state["n"]), int(state["spent"])
