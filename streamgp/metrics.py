"""Metrics in River's style that River does not have.

They are updated and read like River's own, but do not import `river.metrics`, which is slow to
load.

"""

from __future__ import annotations

from typing import Any

from river import base


class LabelRate(base.Base):
    """Share of the events whose label was asked for.

    Examples
    --------
    >>> from streamgp.metrics import LabelRate
    >>> metric = LabelRate()
    >>> for asked in (True, False, False, True, False):
    ...     metric.update(asked)
    >>> metric.get()
    0.4
    >>> metric
    LabelRate: 40.00%

    """

    def __init__(self) -> None:
        self._n_asked = 0
        self._n_events = 0

    def update(self, asked: bool) -> None:
        """Count one event.

        Parameters
        ----------
        asked
            Whether its label was asked for.

        """
        self._n_asked += bool(asked)
        self._n_events += 1

    def revert(self, asked: bool) -> None:
        """Take one event back."""
        self._n_asked -= bool(asked)
        self._n_events -= 1

    def get(self) -> float:
        """Return the share; 0 before the first event, as River's metrics do."""
        return self._n_asked / self._n_events if self._n_events else 0.0

    @property
    def bigger_is_better(self) -> bool:
        return False

    @property
    def works_with_weights(self) -> bool:
        return False

    def works_with(self, model: base.Estimator) -> bool:
        """Whether the metric can judge a model: a classifier."""
        return isinstance(model, base.Classifier)

    def is_better_than(self, other: Any) -> bool:
        """Whether fewer labels were asked for than under another metric of this kind."""
        return bool(self.get() < other.get())

    def __gt__(self, other: Any) -> bool:
        return self.is_better_than(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.get():.2%}"

    def __str__(self) -> str:
        return repr(self)
