"""What may be read of an ensemble, and what survives its restart, whatever its targets mean."""

from __future__ import annotations

from typing import Any

from streamgp.base import State
from streamgp.learners.ensemble_core import EnsembleCore
from streamgp.learners.unretained import Unretained


class EnsembleGP(Unretained):
    """An estimator around the experts of an `EnsembleCore`.

    Attributes
    ----------
    n_learned
        Number of examples learned; none is retained.
    n_experts
        Number of experts.
    weights
        Probability of each expert.

    """

    # _core     the experts over dictionaries
    # _weights  probability of each expert, a function of what the core has learned
    _core: EnsembleCore[Any]
    _weights: list[float]

    @property
    def n_learned(self) -> int:
        """Number of examples learned; none is retained."""
        return self._core.n_learned

    @property
    def n_experts(self) -> int:
        """Number of experts."""
        return len(self._weights)

    @property
    def weights(self) -> list[float]:
        """Probability of each expert, in the order of the kernels."""
        return list(self._weights)

    def state(self) -> State | None:
        """Return what is no function of the examples, as plain JSON values; None for nothing.

        That is a seed that was drawn. A learner that takes it over with `load_state`, and is taught
        all examples in their order, is this one to the last bit.
        """
        return self._core.state()

    def load_state(self, state: State | None) -> None:
        """Take over what `state` returned; this learner has learned nothing yet."""
        self._core.load_state(state)
