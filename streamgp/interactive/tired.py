"""A simulated annotator who errs more, and takes longer, the more was asked of late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

from streamgp.arguments import check_up_to
from streamgp.interactive.annotators import (
    LONGEST_DELAY_S,
    SimulatedAnnotator,
    check_amount,
    draw_normal,
)
from streamgp.interactive.border import check_duration
from streamgp.interactive.messages import RESPONSE_S

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Answer, Request

# With the longest times, so that even 8 standard deviations above they are numbers.
_STEEPEST_SLOWING = 1e6
_WIDEST_SPREAD = 10.0


class TiredAnnotator(SimulatedAnnotator):
    """An annotator whose errors grow with the questions of the last hour.

    Every question, challenges included, adds 1 to the tiredness, which halves in `half_life_s`. At
    time t the annotator is wrong with probability

        min(1, error_rate + tiring_rate · Σ 2^(-(t - t_i) / half_life_s))

    where the t_i are the times of the earlier questions. The tiredness shows in how long an answer
    takes, which the answer tells as `privileged["response_s"]`: log-normal, with the median

        response_s · (1 + slowing · Σ 2^(-(t - t_i) / half_life_s))

    It moves nothing: when an answer is there, `delay` says.

    Otherwise this is a `SimulatedAnnotator`: what is random depends on the seed and the question
    alone. The stream's time counts, not the clock; while it goes backwards nobody gets rest.

    Parameters
    ----------
    error_rate
        Probability of a wrong label when rested.
    delay, decline_rate, stubborn, classes, seed
        As in `SimulatedAnnotator`.
    tiring_rate
        What a question just asked adds to the probability of a wrong label.
    half_life_s
        Seconds of the stream's time in which half of the tiredness passes.
    response_s
        Median time of an answer when rested, in seconds, at most 1e12.
    slowing
        What a question just asked adds to the median time, in units of `response_s`.
    response_spread
        Standard deviation of the natural logarithm of the time.
    name
        How the annotator signs.

    Attributes
    ----------
    tiredness
        The sum above, just after the last question.

    Examples
    --------
    >>> from streamgp import TiredAnnotator
    >>> from streamgp.interactive import LabelRequest
    >>> annotator = TiredAnnotator(slowing=0.1, response_spread=0.0, seed=1)
    >>> for hour in range(3):
    ...     request = LabelRequest(
    ...         request_id=f"{hour}/label", event_id=str(hour), x={}, reason="", score=1.0,
    ...         threshold=0.0, requested_at=3600.0 * hour,
    ...     )
    ...     answer = annotator.answer(request, truth="hall", now=3600.0 * hour)
    ...     print(annotator.tiredness, answer.privileged)
    1.0 {'response_s': 2.0}
    1.5 {'response_s': 2.1}
    1.75 {'response_s': 2.15}

    """

    # _tired     the sum at the time of the last question, without that question.
    # _asked_at  the latest time of a question; None before the first.

    def __init__(
        self,
        error_rate: float = 0.0,
        delay: float = 0.0,
        decline_rate: float = 0.0,
        stubborn: bool = False,
        classes: Sequence[Label] | None = None,
        seed: int | None = None,
        *,
        tiring_rate: float = 0.01,
        half_life_s: float = 3600.0,
        response_s: float = 2.0,
        slowing: float = 0.05,
        response_spread: float = 0.25,
        name: str = "simulated",
    ) -> None:
        super().__init__(error_rate, delay, decline_rate, stubborn, classes, seed, name=name)
        check_amount("tiring_rate", tiring_rate)
        check_duration("half_life_s", half_life_s)
        for argument, value, most in (
            ("response_s", response_s, LONGEST_DELAY_S),
            ("slowing", slowing, _STEEPEST_SLOWING),
            ("response_spread", response_spread, _WIDEST_SPREAD),
        ):
            check_up_to(argument, value, most)
        self.tiring_rate = tiring_rate
        self.half_life_s = half_life_s
        self.response_s = response_s
        self.slowing = slowing
        self.response_spread = response_spread
        self._tired = 0.0
        self._asked_at: float | None = None

    @property
    def tiredness(self) -> float:
        return 0.0 if self._asked_at is None else self._tired + 1.0

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        """Answer a request, and be more tired afterwards; see `SimulatedAnnotator.answer`."""
        if self._asked_at is None:
            self._asked_at = now
        else:
            rest = max(0.0, now - self._asked_at)
            self._tired = self.tiredness * 2.0 ** (-rest / self.half_life_s)
            self._asked_at += rest
        answer = super().answer(request, truth, now)
        return replace(answer, privileged={RESPONSE_S: self._response_s(request)})

    @property
    def _current_error_rate(self) -> float:
        return min(1.0, self.error_rate + self.tiring_rate * self._tired)

    def _response_s(self, request: Request) -> float:
        median = self.response_s * (1.0 + self.slowing * self._tired)
        return median * exp(self.response_spread * draw_normal(self._seed, request, "response"))

    def state(self) -> State:
        """Return the labels seen so far, the seed, and how tired the annotator is."""
        return {**super().state(), "tired": self._tired, "asked_at": self._asked_at}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        super().load_state(state)
        self._tired = state["tired"]
        self._asked_at = state["asked_at"]
