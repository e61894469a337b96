"""Base class of metrics, like River's, whose module is slow to load."""

from __future__ import annotations

from typing import Any

from river import base


class Metric(base.Base):
    """Base class of the metrics; less is better unless they say otherwise."""

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
        """Return False: it needs more than the prediction that River hands over."""
        return False

    def is_better_than(self, other: Any) -> bool:
        """Whether the value is better than that of another metric of this kind."""
        better, worse = (self, other) if self.bigger_is_better else (other, self)
        return bool(better.get() > worse.get())

    def __gt__(self, other: Any) -> bool:
        return self.is_better_than(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.get():.6g}"

    def __str__(self) -> str:
        return repr(self)


class WeightedMetric(Metric):
    """Base class of metrics of predictions, each of which may count more or less than others."""

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
            What was predicted.
        w
            How much it counts; nothing if that is 0.

        """
        if w > 0:
            self._note(y_true, y_pred, w)

    def revert(self, y_true: Any, y_pred: Any, w: float = 1) -> None:
        """Take one prediction back, of the weight that it was counted with."""
        if w > 0:
            self._note(y_true, y_pred, -w)

    def _note(self, y_true: Any, y_pred: Any, weight: float) -> None:
        """Count a prediction, or take it back if the weight is negative."""
        raise NotImplementedError
