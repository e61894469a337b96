"""Answers on their way: what simulated annotators have been asked and not yet said."""

from __future__ import annotations

import heapq
import secrets
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import accumulate
from numbers import Real
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from streamgp.common.counter_rng import check_seed
from streamgp.interactive.messages import Answer, Challenge
from streamgp.interactive.validation import flaw_of_label
from streamgp.simulation.annotators import Annotator, draw, resumable

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Event, Request


class AnswerQueue:
    """The answers of an annotator, in order of time.

    The truth of every event shown is kept for good: a later question may be about any of them.

    Parameters
    ----------
    annotator
        Whoever answers.

    Examples
    --------
    >>> from streamgp.interactive import Event, LabelRequest
    >>> from streamgp.simulation import AnswerQueue, SimulatedAnnotator
    >>> queue = AnswerQueue(SimulatedAnnotator(delay=30.0))
    >>> queue.see(Event(event_id="e1", x={}, occurred_at=100.0, truth="hall"))
    >>> queue.ask(
    ...     LabelRequest(
    ...         request_id="e1/label", event_id="e1", x={}, reason="", score=1.0, threshold=0.0,
    ...         requested_at=100.0,
    ...     ),
    ...     now=100.0,
    ... )
    >>> queue.next_at(), list(queue.due(129.0)), [answer.y for answer in queue.due(130.0)]
    (130.0, [], ['hall'])

    """

    # _truths   truth of every event that has one, by key and event id.
    # _waiting  heap of (answered_at, number, answer); numbers count the questions and put equal
    #           moments into the order of asking.
    # _n_asked  questions so far.

    def __init__(self, annotator: Annotator) -> None:
        self.annotator = annotator
        self._truths: dict[tuple[str | None, str], Label] = {}
        self._waiting: list[tuple[float, int, Answer]] = []
        self._n_asked = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def see(self, event: Event) -> None:
        """Show an event to the annotator, before anything is asked about it.

        Of a truth that is no label nobody can say it, and the annotator declines.
        """
        if event.truth is not None and flaw_of_label(event.truth) is None:
            self._truths[event.key, event.event_id] = event.truth
            self.annotator.see(event.truth)

    def ask(self, request: Request, now: float) -> None:
        """Hand a label request or challenge to the annotator at a moment."""
        truth = self._truths.get((request.key, request.event_id))
        answer = self.annotator.answer(request, truth, now)
        self._n_asked += 1
        heapq.heappush(self._waiting, (answer.answered_at, self._n_asked, answer))

    def due(self, until: float) -> Iterator[Answer]:
        """Yield, and remove, the answers given by a moment; also those asked for meanwhile."""
        while self._waiting and self._waiting[0][0] <= until:
            yield heapq.heappop(self._waiting)[2]

    def next_at(self) -> float | None:
        """Return the moment of the next answer, or None if nothing is asked."""
        return self._waiting[0][0] if self._waiting else None

    def state(self) -> State:
        """Return the answers on their way, the number of questions, and the annotator's state.

        The truths of the events are no part of it: on a restart the log is read again. Tell `see`
        of every event before the cut once more, before or after `load_state`.

        Raises
        ------
        TypeError
            If the annotator cannot be saved.

        """
        return {
            "annotator": resumable(self.annotator).state(),
            "n_asked": self._n_asked,
            "waiting": [[number, asdict(answer)] for _, number, answer in sorted(self._waiting)],
        }

    def load_state(self, state: State) -> None:
        """Become what the state was taken from, but for the truths."""
        resumable(self.annotator).load_state(state["annotator"])
        self._n_asked = state["n_asked"]
        answers = [(number, Answer(**fields)) for number, fields in state["waiting"]]
        # In order of time and number: a sorted list is a heap.
        self._waiting = [(answer.answered_at, number, answer) for number, answer in answers]


# --- Several annotators who share the questions.


@runtime_checkable
class NamedAnnotator(Annotator, Protocol):
    """An annotator who signs every answer with a name."""

    @property
    def name(self) -> str:
        """Name with which the annotator signs."""


class AnnotatorPanel:
    """Annotators of whom one answers each question.

    A label request goes to one of them by a draw from the seed, the key and the request's id
    alone. A challenge goes to the one whose answer is contested; if that is none of them (the label
    came with its event), one is drawn.

    Parameters
    ----------
    annotators
        Who answers, each under a name of its own.
    shares
        Share of the label requests that each of them gets, in any unit; None for equal shares.
    seed
        Seed of the draws; None for one that is drawn once.

    Attributes
    ----------
    annotators
        The annotators by name.

    Raises
    ------
    TypeError
        If an annotator or a share is none, or the seed is no whole number.
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

    # _seed    `seed`, or what was drawn in its place.
    # _turns   the annotators, in order.
    # _limits  cumulative shares, the last of them 1: the n-th is drawn below the n-th limit.

    def __init__(
        self,
        annotators: Sequence[NamedAnnotator],
        shares: Sequence[float] | None = None,
        seed: int | None = None,
    ) -> None:
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
        self._turns = list(annotators)
        self._seed = secrets.randbits(64) if seed is None else seed

    def see(self, truth: Label) -> None:
        """Tell all of them that a label exists."""
        for annotator in self._turns:
            annotator.see(truth)

    def answer(self, request: Request, truth: Label | None, now: float) -> Answer:
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
        """Become what the state was taken from."""
        self._seed = state["seed"]
        for name, annotator in self.annotators.items():
            resumable(annotator).load_state(state["annotators"][name])

    def _whose(self, request: Request) -> NamedAnnotator:
        if isinstance(request, Challenge) and request.annotator in self.annotators:
            return self.annotators[request.annotator]
        return self._turns[bisect_right(self._limits, draw(self._seed, request, "panel"))]


def _name(annotator: NamedAnnotator) -> str:
    """Return how an annotator signs; refuse what could not answer when its turn came."""
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
    # Rounding must leave nobody behind the last limit.
    return [*(limit / total for limit in accumulate(shares[:-1])), 1.0]
