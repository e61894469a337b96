"""Several annotators who share the questions."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from numbers import Real
from typing import TYPE_CHECKING, Protocol

from streamgp.draws import check_seed
from streamgp.interactive.annotators import Annotator, draw, resumable
from streamgp.interactive.messages import Challenge

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import Answer, Request


class NamedAnnotator(Annotator, Protocol):
    """An annotator who signs every answer with a name."""

    @property
    def name(self) -> str:
        """How the annotator signs."""


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
    >>> from streamgp.interactive import AnnotatorPanel, LabelRequest, SimulatedAnnotator
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
    if not all(hasattr(annotator, needed) for needed in ("name", "see", "answer")):
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
