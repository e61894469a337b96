"""Simulated annotators: people who err, decline and take their time, for experiments.

They know the truth and the question, and nothing of the learner. `tired.py` has one whose errors
grow with the questions, `panel.py` several of them at once.

"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol, cast

from streamgp.arguments import check_number, check_rate, check_up_to
from streamgp.draws import check_seed, uniform
from streamgp.interactive.border import as_label
from streamgp.interactive.messages import Answer, Challenge

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Request


# The smallest draw, 0, stands for a number below which half of the draw after it lies.
_SMALLEST = 2.0**-54
LONGEST_DELAY_S = 1e12  # so that question and answer in turn stay within the numbers


class Annotator(Protocol):
    """Whoever answers in a simulation."""

    def see(self, truth: Label) -> None:
        """Learn that a label exists."""

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        """Answer a request made at `now`; `truth` is None where nobody knows it."""


class ResumableAnnotator(Protocol):
    """An annotator that can be taken up again after a restart."""

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""


def resumable(annotator: Annotator) -> ResumableAnnotator:
    """Return an annotator, or raise TypeError if it cannot be saved."""
    saved: Any = annotator
    if not (hasattr(saved, "state") and hasattr(saved, "load_state")):
        raise TypeError(
            f"{type(annotator).__name__} cannot be saved; give it the methods state and load_state"
        )
    return cast("ResumableAnnotator", saved)


def check_amount(name: str, value: float) -> None:
    """Refuse what is negative or not finite."""
    wanted = "a finite number of at least 0"
    check_number(name, value, wanted, lambda amount: 0.0 <= amount < float("inf"))


def draw(seed: int, request: Request, purpose: str) -> float:
    """Draw a number uniform in [0, 1) that belongs to a request of a key."""
    # The key takes part because ids are unique within a key only; repr keeps the two apart.
    request_id, key = request.request_id, request.key
    cause = request_id if key is None else repr((key, request_id))
    return uniform(seed, cause, purpose)


def draw_normal(seed: int, request: Request, purpose: str) -> float:
    """Draw a standard normal number that belongs to a request of a key."""
    return NormalDist().inv_cdf(max(draw(seed, request, purpose), _SMALLEST))


class SimulatedAnnotator:
    """An annotator who is wrong, or has no answer, at given rates.

    Whatever is random is drawn from the seed, the key and the request's id alone: the same
    question gets the same answer, in whatever order questions come and however many are asked.
    An annotator who does not know the truth declines.

    Parameters
    ----------
    error_rate
        Probability of a wrong label, uniform over the other classes; the truth if there is none.
        Asked again after a challenge, the annotator gives the truth if the contested label was
        right, otherwise errs once more with this probability.
    delay
        Seconds of the stream's time between question and answer, at most 1e12.
    decline_rate
        Probability of declining.
    stubborn
        Whether a challenge is always answered by the contested label.
    classes
        The labels to err among; None for those seen so far.
    seed
        Seed of all draws; None for one that is drawn once.
    name
        How the annotator signs.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest, SimulatedAnnotator
    >>> annotator = SimulatedAnnotator(
    ...     error_rate=0.5, delay=30.0, classes=["kitchen", "hall"], seed=8
    ... )
    >>> for event_id in ("a", "b", "c", "d"):
    ...     request = LabelRequest(
    ...         request_id=f"{event_id}/label", event_id=event_id, x={}, reason="",
    ...         score=1.0, threshold=0.0, requested_at=100.0,
    ...     )
    ...     answer = annotator.answer(request, truth="hall", now=100.0)
    ...     print(answer.answer_id, answer.y, answer.answered_at)
    a/label/answer hall 130.0
    b/label/answer kitchen 130.0
    c/label/answer hall 130.0
    d/label/answer hall 130.0

    """

    # _known  the labels to err among, in order of appearance: `classes`, or grown by `see`.
    # _seed   `seed`, or what was drawn in its place.

    def __init__(
        self,
        error_rate: float = 0.0,
        delay: float = 0.0,
        decline_rate: float = 0.0,
        stubborn: bool = False,
        classes: Sequence[Label] | None = None,
        seed: int | None = None,
        *,
        name: str = "simulated",
    ) -> None:
        for argument, rate in (("error_rate", error_rate), ("decline_rate", decline_rate)):
            check_rate(argument, rate)
        check_up_to("delay", delay, LONGEST_DELAY_S, unit=" seconds")
        if classes is not None and (isinstance(classes, str) or not classes):
            raise ValueError(f"classes must be a sequence of at least one label, got {classes!r}")
        check_seed(seed)
        self.error_rate = error_rate
        self.delay = delay
        self.decline_rate = decline_rate
        self.stubborn = stubborn
        self.classes = classes
        self.seed = seed
        self.name = name
        self._known = dict.fromkeys(as_label(y) for y in classes or ())
        self._seed = secrets.randbits(64) if seed is None else seed

    def see(self, truth: Label) -> None:
        """Learn that a label exists; without effect if `classes` were given."""
        if self.classes is None:
            self._known[as_label(truth)] = None

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        """Answer a request.

        Parameters
        ----------
        request
            The label request or challenge.
        truth
            The true label, or None if nobody knows it.
        now
            The moment of asking, in seconds.

        """
        y = None if truth is None else self._label(request, as_label(truth))
        return Answer(
            answer_id=f"{request.request_id}/answer",
            request_id=request.request_id,
            event_id=request.event_id,
            key=request.key,
            y=y,
            declined=y is None,
            annotator=self.name,
            answered_at=now + self.delay,
        )

    def state(self) -> State:
        """Return the labels seen so far and the seed."""
        return {"known": list(self._known), "seed": self._seed}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._known = dict.fromkeys(state["known"])
        self._seed = state["seed"]

    def _label(self, request: Request, truth: Label) -> Label | None:
        if self._happens(self.decline_rate, request, "decline"):
            return None
        if isinstance(request, Challenge):
            if self.stubborn:
                return request.given
            if request.given == truth:
                return truth
        if not self._happens(self._current_error_rate, request, "error"):
            return truth
        others = [label for label in self._known if label != truth]
        which = int(draw(self._seed, request, "which") * len(others))
        return others[which] if others else truth

    @property
    def _current_error_rate(self) -> float:
        return self.error_rate

    def _happens(self, rate: float, request: Request, purpose: str) -> bool:
        return rate > 0.0 and draw(self._seed, request, purpose) < rate
