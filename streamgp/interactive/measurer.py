"""A simulated annotator who measures numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamgp.interactive.annotators import SimulatedAnnotator, check_amount, draw, draw_normal
from streamgp.interactive.messages import Challenge
from streamgp.moments import Moments
from streamgp.values import is_number

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Answer, Request

# An answer within so many standard deviations of the truth was measured, and not made up.
_MEASURED = 4.0


class SimulatedMeasurer(SimulatedAnnotator):
    """An annotator who measures numbers, with noise, and is far off at a given rate.

    What is random is drawn as by `SimulatedAnnotator`. Asked again after a challenge, the annotator
    says the same once more if the contested number was measured, within four standard deviations of
    the noise; otherwise measures anew, and is far off again with the same probability.

    Parameters
    ----------
    error_rate
        Probability of being far off.
    noise
        Standard deviation of the other answers around the truth, in units of the target.
    outlier
        How far a wrong answer is off, above or below, in standard deviations of the truths seen so
        far.
    states_noise
        Whether the annotator says how exact the answers are.
    delay, decline_rate, stubborn, seed
        As in `SimulatedAnnotator`.
    name
        How the annotator signs.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest, SimulatedMeasurer
    >>> annotator = SimulatedMeasurer(error_rate=0.3, noise=0.1, outlier=5.0, seed=2)
    >>> for hour, truth in enumerate([10.0, 20.0, 30.0]):
    ...     annotator.see(truth)
    ...     request = LabelRequest(
    ...         request_id=f"{hour}/label", event_id=str(hour), x={}, reason="", score=1.0,
    ...         threshold=0.0, requested_at=0.0,
    ...     )
    ...     print(round(annotator.answer(request, truth, now=0.0).y, 2))
    10.04
    20.17
    70.82

    """

    # _truths  mean and spread of the truths seen so far
    def __init__(
        self,
        error_rate: float = 0.0,
        noise: float = 0.0,
        outlier: float = 5.0,
        states_noise: bool = False,
        delay: float = 0.0,
        decline_rate: float = 0.0,
        stubborn: bool = False,
        seed: int | None = None,
        *,
        name: str = "simulated",
    ) -> None:
        super().__init__(error_rate, delay, decline_rate, stubborn, None, seed, name=name)
        for argument, value in (("noise", noise), ("outlier", outlier)):
            check_amount(argument, value)
        if states_noise and not noise:
            raise ValueError("states_noise needs a noise above 0, got 0")
        self.noise = noise
        self.outlier = outlier
        self.states_noise = states_noise
        self._truths = Moments()

    def see(self, truth: Label) -> None:
        """Take note of how much the targets vary."""
        if is_number(truth):
            self._truths.add(float(truth))

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        """Answer a request, as `SimulatedAnnotator` does; nobody can measure what is no number."""
        answer = super().answer(request, truth if is_number(truth) else None, now)
        if not self.states_noise or answer.declined:
            return answer
        return replace(answer, std=self.noise)

    def state(self) -> State:
        """Return the spread of the truths seen so far and the seed."""
        truths = self._truths
        return {"truths": [truths.n, truths.mean, truths.m2], "seed": self._seed}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        truths = self._truths = Moments()
        truths.n, truths.mean, truths.m2 = state["truths"]
        self._seed = state["seed"]

    def _label(self, request: Request, truth: Label) -> Label | None:
        if self._happens(self.decline_rate, request, "decline"):
            return None
        value = float(truth)
        if isinstance(request, Challenge):
            given = float(request.given)
            if self.stubborn or abs(given - value) <= _MEASURED * self.noise:
                return given
        if self._happens(self._current_error_rate, request, "error"):
            off = self.outlier * self._truths.std
            value += off if draw(self._seed, request, "which") < 0.5 else -off
        if self.noise:
            value += self.noise * draw_normal(self._seed, request, "noise")
        return value
