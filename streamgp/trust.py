"""How often an annotator errs, estimated from what became of the answers."""

from __future__ import annotations


class ErrorRate:
    """Running estimate of the share of wrong first answers of one annotator.

    `(1 + Σ w) / (5 + n)`: one wrong answer in five before anything is known. `w` is the
    probability that an uncontested answer was wrong; after a challenge 1 if the annotator changed
    the answer, 0 if not.

    Examples
    --------
    >>> rate = ErrorRate()
    >>> rate.estimate
    0.2
    >>> for _ in range(5):
    ...     rate.note(0.0)
    >>> rate.estimate
    0.1

    """

    __slots__ = ("n", "sum")

    def __init__(self, n: int = 0, sum: float = 0.0) -> None:
        self.n = n
        self.sum = sum

    @property
    def estimate(self) -> float:
        """Estimated share of wrong answers, strictly between 0 and 1."""
        return (1.0 + self.sum) / (5.0 + self.n)

    def note(self, w: float) -> None:
        """Take note of one answer that was wrong with probability `w`."""
        self.n += 1
        self.sum += w
