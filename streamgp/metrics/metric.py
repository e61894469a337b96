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
