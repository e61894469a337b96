"""Base class of metrics, like River's, whose module is slow to load."""

from __future__ import annotations

from typing import Any

from river import base


class Metric(base.Base):
    """Base class of the metrics; smaller is better unless they say otherwise."""

    _format = ".6g"

    def get(self) -> float:
        """Return the value; 0 before the first update, as River's metrics do."""
        raise NotImplementedError

    @property
    def bigger_is_better(self) -> bool:
        return False

    @property
    def works_with_weights(self) -> bool:
        return False

    def works_with(self, model: base.Estimator) -> bool:  # noqa: ARG002 - River's signature
        """Return False: it needs more than the prediction that River passes on."""
        return False

    def is_better_than(self, other: Any) -> bool:
        """Whether the value is better than that of another metric of this kind."""
        better, worse = (self, other) if self.bigger_is_better else (other, self)
        return bool(better.get() > worse.get())

    def __gt__(self, other: Any) -> bool:
        return self.is_better_than(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.get():{self._format}}"

    def __str__(self) -> str:
        return repr(self)


class WeightedMetric(Metric):
    """Base class of metrics of weighted predictions."""

    @property
    def works_with_weights(self) -> bool:
        return True

    def update(self, y_true: Any, y_pred: Any, w: float = 1) -> None:
        """Count one prediction.

        Parameters
        ----------
        y_true
            The label or target.
        y_pred
            The prediction.
        w
            Weight of the prediction; it is ignored if that is 0.

        """
        if w > 0:
            self._note(y_true, y_pred, w)

    def revert(self, y_true: Any, y_pred: Any, w: float = 1) -> None:
        """Uncount one prediction, with the weight with which it was counted."""
        if w > 0:
            self._note(y_true, y_pred, -w)

    def _note(self, y_true: Any, y_pred: Any, weight: float) -> None:
        """Count a prediction, or uncount it if the weight is negative."""
        raise NotImplementedError
