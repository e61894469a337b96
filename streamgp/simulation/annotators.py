"""Simulated annotators: people who err, decline and take their time, for experiments.

They know the truth and the question, and nothing about the learner. The errors of a
`TiredAnnotator` grow with the questions; an `AnnotatorPanel` shares them among several.

"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from math import exp
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from streamgp.common.counter_rng import check_seed, uniform
from streamgp.common.feature_values import is_number
from streamgp.common.running_stats import Moments
from streamgp.common.validation import (
    check_flag,
    check_non_negative,
    check_rate,
    check_several,
    check_up_to,
)
from streamgp.interactive.messages import RESPONSE_S, Answer, Challenge, LabelRequest
from streamgp.interactive.validation import as_label, check_duration

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Request


# The smallest draw, 0, stands for a number below which half of the next draw lies.
_SMALLEST = 2.0**-54
LONGEST_DELAY_S = 1e12  # so that question and answer in turn stay within the numbers


class Annotator(Protocol):
    """An annotator in a simulation."""

    def see(self, truth: Label) -> None:
        """Learn that a label exists."""

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer | None:
        """Answer a request made at `now`; None if never. `truth` is None if unknown."""


@runtime_checkable
class ResumableAnnotator(Protocol):
    """An annotator that can be restored after a restart."""

    def state(self) -> State:
        """Return what must survive a restart, as plain JSON values."""

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""


def resumable(annotator: Annotator) -> ResumableAnnotator:
    """Return an annotator, or raise TypeError if it cannot be saved."""
    if not isinstance(annotator, ResumableAnnotator):
        raise TypeError(
            f"{type(annotator).__name__} cannot be saved; give it the methods state and load_state"
        )
    return annotator


def draw(seed: int, request: Request, purpose: str) -> float:
    """Draw a number uniform in [0, 1) that belongs to a request of a key."""
    # The key is included because ids are unique only within a key; repr keeps the two apart.
    request_id, key = request.request_id, request.key
    cause = request_id if key is None else repr((key, request_id))
    return uniform(seed, cause, purpose)


def draw_normal(seed: int, request: Request, purpose: str) -> float:
    """Draw a standard normal number that belongs to a request of a key."""
    return NormalDist().inv_cdf(max(draw(seed, request, purpose), _SMALLEST))


class SimulatedAnnotator:
    """An annotator who is wrong, or has no answer, at given rates.

    All random decisions are drawn from the seed, the key and the request's id alone: the same
    question gets the same answer, in whatever order and number questions are asked.
    An annotator who does not know the truth declines.

    Parameters
    ----------
    error_rate
        Probability of a wrong label, uniform over the other classes; the truth if there are none.
        When challenged, the annotator repeats the contested label if it was right,
        and otherwise errs again with this probability; see `second_error_rate` and `suggestible`.
    delay
        Seconds of stream time between question and answer, at most 1e12.
    decline_rate
        Probability of declining.
    stubborn
        Whether a challenge is always answered with the contested label, and a second question for
        the same annotator with the first answer. Other annotators answer that one by themselves.
    classes
        The labels among which wrong answers are drawn; None for those seen so far.
    seed
        Seed of all draws; None to draw one.
    name
        Name with which the annotator signs.
    suggestible
        Probability of accepting the label that a challenge suggests, right or wrong; only in this
        way does a right label become wrong.
    second_error_rate
        Probability of a wrong label when a wrong one was challenged; None for `error_rate`.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest
    >>> from streamgp.simulation import SimulatedAnnotator
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
    # _seed   `seed`, or the one drawn instead.

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
        suggestible: float = 0.0,
        second_error_rate: float | None = None,
    ) -> None:
        for argument, rate in (
            ("error_rate", error_rate),
            ("decline_rate", decline_rate),
            ("suggestible", suggestible),
            ("second_error_rate", error_rate if second_error_rate is None else second_error_rate),
        ):
            check_rate(argument, rate)
        check_flag("stubborn", stubborn)
        if stubborn and suggestible:
            raise ValueError(
                f"suggestible must be 0 for a stubborn annotator, got {suggestible!r}; leave one "
                "of the two out"
            )
        check_up_to("delay", delay, LONGEST_DELAY_S, unit=" seconds")
        known = () if classes is None or isinstance(classes, str) else classes
        known = check_several("classes", known, "labels")
        if classes is not None and not known:
            raise ValueError(f"classes must be a sequence of at least one label, got {classes!r}")
        check_seed(seed)
        self.error_rate = error_rate
        self.delay = delay
        self.decline_rate = decline_rate
        self.stubborn = stubborn
        self.classes = None if classes is None else known
        self.seed = seed
        self.name = name
        self.suggestible = suggestible
        self.second_error_rate = second_error_rate
        self._known = dict.fromkeys(map(as_label, known))
        self._seed = secrets.randbits(64) if seed is None else seed

    def see(self, truth: Label) -> None:
        """Learn that a label exists; has no effect if `classes` were given."""
        if self.classes is None:
            self._known[as_label(truth)] = None

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        """Answer a request.

        Parameters
        ----------
        request
            The label request or challenge.
        truth
            The true label, or None if unknown.
        now
            The time of asking, in seconds.

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
        """Restore what `state` returned."""
        self._known = dict.fromkeys(state["known"])
        self._seed = state["seed"]

    def _label(self, request: Request, truth: Label) -> Label | None:
        if self.stubborn and isinstance(request, LabelRequest) and request.annotator == self.name:
            # When asked again, the annotator gives the answer drawn for the first question.
            request = replace(request, request_id=f"{request.event_id}/label")
        if self._happens(self.decline_rate, request, "decline"):
            return None
        if isinstance(request, Challenge):
            if self.stubborn:
                return request.given
            if self._happens(self.suggestible, request, "suggestible"):
                return request.suggested
            if request.given == truth:
                return truth
        rate = self._current_error_rate
        if isinstance(request, Challenge) and self.second_error_rate is not None:
            rate = self.second_error_rate
        if not self._happens(rate, request, "error"):
            return truth
        others = [label for label in self._known if label != truth]
        which = int(draw(self._seed, request, "which") * len(others))
        return others[which] if others else truth

    @property
    def _current_error_rate(self) -> float:
        return self.error_rate

    def _happens(self, rate: float, request: Request, purpose: str) -> bool:
        return rate > 0.0 and draw(self._seed, request, purpose) < rate


# --- A simulated annotator who measures numbers.


# An answer within this many standard deviations of the truth was measured, not made up.
_MEASURED = 4.0


class SimulatedMeasurer(SimulatedAnnotator):
    """An annotator who measures numbers, with noise, and is far off at a given rate.

    Random decisions are drawn as by `SimulatedAnnotator`. When challenged, the annotator repeats
    the contested number if it was measured, within four standard deviations of the noise. Otherwise
    the annotator measures again, and is far off again with the same probability.

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
        Whether the annotator states how exact the answers are.
    delay, decline_rate, stubborn, seed
        As in `SimulatedAnnotator`.
    name
        Name with which the annotator signs.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest
    >>> from streamgp.simulation import SimulatedMeasurer
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
            check_non_negative(argument, value)
        if check_flag("states_noise", states_noise) and not noise:
            raise ValueError("states_noise needs a noise above 0, got 0")
        self.noise = noise
        self.outlier = outlier
        self.states_noise = states_noise
        self._truths = Moments()

    def see(self, truth: Label) -> None:
        """Update the spread of the targets."""
        if is_number(truth):
            self._truths.add(float(truth))

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
        """Answer a request as `SimulatedAnnotator` does; decline if the truth is not a number."""
        answer = super().answer(request, truth if is_number(truth) else None, now)
        if not self.states_noise or answer.declined:
            return answer
        return replace(answer, std=self.noise)

    def state(self) -> State:
        """Return the spread of the truths seen so far and the seed."""
        return {"truths": self._truths.plain(), "seed": self._seed}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._truths = Moments.of(*state["truths"])
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


# --- A simulated annotator who errs more, and takes longer, the more questions came recently.


# With the longest times, so that even 8 standard deviations above them are finite.
_STEEPEST_SLOWING = 1e6
_WIDEST_SPREAD = 10.0


class TiredAnnotator(SimulatedAnnotator):
    """An annotator whose errors grow with the questions of the last hour.

    Every question, including challenges, adds 1 to the tiredness, which halves every `half_life_s`.
    At time t the annotator is wrong with probability

        min(1, error_rate + tiring_rate · Σ 2^(-(t - t_i) / half_life_s))

    where the t_i are the times of the earlier questions. Tiredness also shows in how long an answer
    takes, which the answer reports as `privileged["response_s"]`: log-normal, with the median

        response_s · (1 + slowing · Σ 2^(-(t - t_i) / half_life_s))

    It does not change when an answer is given, which depends on `delay`.

    Otherwise this is a `SimulatedAnnotator`: random decisions depend on the seed and the question
    alone. Stream time counts, not the clock; while it goes backwards the annotator does not rest.

    Parameters
    ----------
    error_rate
        Probability of a wrong label when rested.
    delay, decline_rate, stubborn, classes, seed
        As in `SimulatedAnnotator`.
    tiring_rate
        What a question adds at first to the probability of a wrong label.
    half_life_s
        Seconds of stream time in which the tiredness halves.
    response_s
        Median time of an answer when rested, in seconds, at most 1e12.
    slowing
        What a question adds at first to the median time, in units of `response_s`.
    response_spread
        Standard deviation of the natural logarithm of the time.
    name
        Name with which the annotator signs.

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
        check_non_negative("tiring_rate", tiring_rate)
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
        """Answer a request, and grow more tired; see `SimulatedAnnotator.answer`."""
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
        """Restore what `state` returned."""
        super().load_state(state)
        self._tired = state["tired"]
        self._asked_at = state["asked_at"]


@runtime_checkable
class NamedAnnotator(Annotator, Protocol):
    """An annotator who signs every answer with a name."""

    @property
    def name(self) -> str:
        """Name with which the annotator signs."""


# --- An annotator who is not always there.

_HOUR_S = 3600.0
_DAY_S = 86400.0


def _is_span(span: Any) -> bool:
    try:
        first, last = span
        return 0 <= first <= 24 and 0 <= last <= 24 and bool(first != last)
    except (TypeError, ValueError):  # no pair, or not of numbers
        return False


class AwayAnnotator:
    """An annotator who answers during some hours of the day, and is away during all others.

    A question that comes while the annotator is away is answered on return, as if it came then; if
    it has expired by then, it is never answered.

    Parameters
    ----------
    annotator
        Annotator who answers the questions.
    hours
        Spans of the day (first hour, last hour) in UTC during which the annotator is there, each
        from 0 to 24, the last hour excluded; `(22, 6)` is a span over midnight.

    Raises
    ------
    TypeError
        If the annotator has no name or cannot answer.
    ValueError
        If there is no span, or one is not a span of hours.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest
    >>> from streamgp.simulation import AwayAnnotator, SimulatedAnnotator
    >>> annotator = AwayAnnotator(SimulatedAnnotator(), hours=[(7, 9), (18, 23)])
    >>> def at(hour):
    ...     request = LabelRequest(
    ...         request_id=f"{hour}/label", event_id=str(hour), x={}, reason="", score=1.0,
    ...         threshold=0.0, requested_at=hour * 3600.0, expires_at=(hour + 2) * 3600.0,
    ...     )
    ...     answer = annotator.answer(request, truth="hall", now=hour * 3600.0)
    ...     return None if answer is None else answer.answered_at / 3600.0
    >>> at(8), at(6), at(3)
    (8.0, 7.0, None)

    """

    def __init__(self, annotator: NamedAnnotator, hours: Sequence[tuple[float, float]]) -> None:
        self.name = _name(annotator)
        self.annotator = annotator
        hours = check_several("hours", hours, "pairs of hours")
        for span in hours:
            if not _is_span(span):
                raise ValueError(
                    "hours must be pairs of two different hours from 0 to 24, such as (7, 9), got "
                    f"{span!r}"
                )
        if not hours:
            raise ValueError("hours must hold at least one span, got none")
        self.hours = hours

    def see(self, truth: Label) -> None:
        """Learn that a label exists."""
        self.annotator.see(truth)

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer | None:
        """Answer a request; None if it expires while the annotator is away."""
        wait_s = min(_wait_s(now, first, last) for first, last in self.hours)
        back_at, expires_at = now + wait_s, request.expires_at
        if wait_s > 0.0 and expires_at is not None and back_at > expires_at:
            return None  # not asked, so that an annotator with a state does not notice
        return self.annotator.answer(request, truth, back_at)

    def state(self) -> State:
        """Return the state of the annotator."""
        return resumable(self.annotator).state()

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        resumable(self.annotator).load_state(state)


def _wait_s(now: float, first: float, last: float) -> float:
    """Return the seconds until a span of hours, 0 within it."""
    since_s = (now - first * _HOUR_S) % _DAY_S
    length_s = (last - first) * _HOUR_S % _DAY_S or _DAY_S
    return 0.0 if since_s < length_s else _DAY_S - since_s


# --- Several annotators who share the questions.


class AnnotatorPanel:
    """Several annotators, one of whom answers each question.

    A label request goes to one of them, drawn from the seed, the key and the request's id alone. If
    the answer of this one is not taken, because of a quarantine or because it is a second question
    and this annotator has answered the first, a second draw chooses among the others. A question
    for one of them alone goes to that one. A challenge goes to the annotator whose answer is
    contested; if that is none of them (the label came with its event), one is drawn.

    Parameters
    ----------
    annotators
        The annotators, each with a different name.
    shares
        Share of the label requests for each of them, in any unit; None for equal shares.
    seed
        Seed of the draws; None to draw one.

    Attributes
    ----------
    annotators
        The annotators by name.

    Raises
    ------
    TypeError
        If an annotator or a share is not one, or the seed is not a whole number.
    ValueError
        If there is no annotator, two have the same name, or the shares do not fit.

    Examples
    --------
    >>> from streamgp.interactive import LabelRequest
    >>> from streamgp.simulation import AnnotatorPanel, SimulatedAnnotator
    >>> panel = AnnotatorPanel(
    ...     [SimulatedAnnotator(name="ann"), SimulatedAnnotator(name="bob")], shares=[3, 1], seed=1
    ... )
    >>> names = [
    ...     panel.answer(
    ...         LabelRequest(
    ...             request_id=f"{n}/label", event_id=str(n), x={}, reason="", score=1.0,
    ...             threshold=0.0, requested_at=0.0,
    ...         ),
    ...         truth="hall",
    ...         now=0.0,
    ...     ).annotator
    ...     for n in range(1000)
    ... ]
    >>> names[:3], names.count("ann")
    (['bob', 'ann', 'ann'], 750)

    """

    # _seed    `seed`, or the one drawn instead.
    # _limits  cumulative shares, the last of them 1: the n-th is drawn below the n-th limit.

    def __init__(
        self,
        annotators: Sequence[NamedAnnotator],
        shares: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> None:
        annotators = check_several("annotators", annotators, "annotators")
        if not annotators:
            raise ValueError("a panel needs at least one annotator")
        self.annotators: dict[str, NamedAnnotator] = {}
        for annotator in annotators:
            name = _name(annotator)
            if name in self.annotators:
                raise ValueError(f"two annotators are called {name!r}; give each a name of its own")
            self.annotators[name] = annotator
        check_seed(seed)
        self.shares = shares
        self.seed = seed
        self._limits = _limits(shares, len(annotators))
        self._seed = secrets.randbits(64) if seed is None else seed

    def see(self, truth: Label) -> None:
        """Tell all of them that a label exists."""
        for annotator in self.annotators.values():
            annotator.see(truth)

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer | None:
        """Let one of them answer a request; see `SimulatedAnnotator.answer`."""
        return self._whose(request).answer(request, truth, now)

    def state(self) -> State:
        """Return the states of all and the seed.

        Raises
        ------
        TypeError
            If one of them cannot be saved.

        """
        states = {name: resumable(one).state() for name, one in self.annotators.items()}
        return {"seed": self._seed, "annotators": states}

    def load_state(self, state: State) -> None:
        """Restore what `state` returned."""
        self._seed = state["seed"]
        for name, annotator in self.annotators.items():
            resumable(annotator).load_state(state["annotators"][name])

    def _whose(self, request: Request) -> NamedAnnotator:
        # The contested answer's annotator for a challenge, the one addressed for a second question.
        if request.annotator is not None and request.annotator in self.annotators:
            return self.annotators[request.annotator]
        turns = list(self.annotators.values())
        found = turns[bisect_right(self._limits, draw(self._seed, request, "panel"))]
        if isinstance(request, Challenge) or found.name not in request.excluded:
            return found
        shares = [1.0] * len(turns) if self.shares is None else self.shares
        pairs = zip(turns, shares, strict=True)
        others = [(one, share) for one, share in pairs if one.name not in request.excluded]
        if not others:
            return found
        limits = _limits([share for _, share in others], len(others))
        return others[bisect_right(limits, draw(self._seed, request, "others"))][0]


def _name(annotator: NamedAnnotator) -> str:
    """Return how an annotator signs; refuse an object that could not answer."""
    if not isinstance(annotator, NamedAnnotator):
        raise TypeError(
            f"annotators must have a name and the methods see and answer, got {annotator!r}; give "
            "SimulatedAnnotator(name=...) or an object of your own"
        )
    return annotator.name


def _limits(shares: Sequence[float] | None, n: int) -> list[float]:
    if shares is None:
        shares = [1.0] * n
    refusal = f"shares must be a positive number for each annotator, got {shares!r}"
    if not (isinstance(shares, Iterable) and all(isinstance(share, Real) for share in shares)):
        raise TypeError(refusal)
    if len(shares) != n or not all(0.0 < share < float("inf") for share in shares):
        raise ValueError(refusal)
    total = sum(shares)
    if total == float("inf"):
        raise ValueError(f"shares must add up to a finite number, got {shares!r}")
    # Rounding must leave no draw beyond the last limit.
    return [*(limit / total for limit in accumulate(shares[:-1])), 1.0]
