"""How a run went on, in a bounded number of points, however long it is."""

from __future__ import annotations

from math import nan
from typing import Any

from streamgp.base import State
from streamgp.interactive import Tally
from streamgp.interactive.judge import Target
from streamgp.interactive.tally import SCORES
from streamgp.report import Curve

N_POINTS = 400


class Points:
    """Counts after every k-th event; k doubles when there would be too many.

    Examples
    --------
    >>> from streamgp.interactive import Event
    >>> tally, points = Tally(), Points(n_points=2)
    >>> for n in range(5):
    ...     tally.event(Event(event_id=str(n), x={}, occurred_at=0.0))
    ...     points.note(tally)
    >>> points.summary()["n_events"]
    [2, 4]

    """

    # _every  k.
    # _names  what is counted; the second is the score.
    # _kept   its values, one row per point.

    def __init__(self, n_points: int = N_POINTS, target: Target = "label") -> None:
        self._n_points = n_points
        self._names = ("n_events", SCORES[target][0], "n_asked", "n_challenges")
        self._every = 1
        self._kept: list[list[Any]] = []

    def note(self, tally: Tally) -> None:
        """Take note of the counts after an event, if it is the turn of this one."""
        if tally.n_events % self._every:
            return
        self._kept.append([getattr(tally, name) for name in self._names])
        while len(self._kept) > self._n_points:
            self._every *= 2
            self._kept = [point for point in self._kept if point[0] % self._every == 0]

    def cut_back(self, tally: Tally) -> None:
        """Leave out the points that tell of more than is left after counts were taken away.

        Counts never fall along a curve: the points that stay tell how it was, those to come how it
        goes on.
        """
        left = [tally.n_events, tally.n_asked, tally.n_challenges]
        self._kept = [
            point
            for point in self._kept
            if all(n <= limit for n, limit in zip((point[0], *point[2:]), left, strict=True))
        ]

    def summary(self) -> dict[str, list[Any]]:
        """Return the points as plain JSON values: parallel lists."""
        return {name: [point[i] for point in self._kept] for i, name in enumerate(self._names)}

    def curve(self, name: str) -> Curve:
        """Return the points as a curve to be drawn; nothing where nothing could be scored yet."""
        return Curve(
            name=name,
            n_events=[n for n, _, _, _ in self._kept],
            accuracy=[nan if accuracy is None else accuracy for _, accuracy, _, _ in self._kept],
            questions=[n_asked + n_challenges for _, _, n_asked, n_challenges in self._kept],
        )

    def state(self) -> State:
        """Return the points and their distance."""
        return {"every": self._every, "kept": [list(point) for point in self._kept]}

    def load_state(self, state: State) -> None:
        """Become what the state was taken from."""
        self._every = state["every"]
        self._kept = [list(point) for point in state["kept"]]
