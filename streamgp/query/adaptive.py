"""A threshold that finds the level of scores at which a share of the events is asked about."""

from __future__ import annotations

import math

from streamgp.arguments import check_positive, check_rate
from streamgp.base import Decision, State

_LEAST, _LARGEST = math.log(1e-300), math.log(1e300)


class AdaptiveThreshold:
    """Ask about a share of the events: those whose score exceeds a threshold that adapts.

    The threshold rises by a factor `exp(step (1 - rate))` with each question and falls by
    `exp(-step rate)` with each event that is not asked about. So it follows scores that shrink
    while a learner learns, and
    `asked - rate * events = ln(threshold / first threshold) / step`: the realised share is as far
    from `rate` as that. It stands in the place of a budget, beside a rule that would ask about
    everything, such as `Variance()`. `RateBudget`, which ranks the latest scores, keeps a share
    more closely; this one asks more while scores are high.

    Parameters
    ----------
    rate
        Share of events to ask about.
    step
        How fast the threshold moves, in units of its logarithm.

    Attributes
    ----------
    threshold
        What a score has to exceed now; None before the first event, which is asked about.

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
    def __init__(self, rate: float, step: float = 1.0) -> None:
        check_rate("rate", rate)
        check_positive("step", step)
        self.rate = rate
        self.step = step
        self._log: float | None = None

    def __repr__(self) -> str:
        return f"AdaptiveThreshold({self.rate!r}, step={self.step!r})"

    @property
    def threshold(self) -> float | None:
        """What a score has to exceed now; None before the first event, which is asked about."""
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

    def state(self) -> State:
        """Return the threshold."""
        return {"log_threshold": self._log}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        found = state["log_threshold"]
        self._log = None if found is None else float(found)

    def _move(self, by: float) -> None:
        if self._log is not None:
            self._log = min(max(self._log + self.step * by, _LEAST), _LARGEST)
