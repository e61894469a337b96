"""What several Gaussian processes believe about one event, weighted by how right they were."""

from __future__ import annotations

from dataclasses import dataclass

from streamgp.base import Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturePosterior(Posterior):
    """A `Posterior` with the parts that it was made of.

    Its variance is that of the class of largest mean, the differences between the parts included.

    Parameters
    ----------
    weights
        How much each part counts; they sum to 1.
    components
        What each expert believes.

    """

    weights: tuple[float, ...]
    components: tuple[Posterior, ...]
