"""Covariance functions: frozen, without state, on arrays.

A kernel stores each point as a row in a format of its own (`embed`), so that the covariances of a
new point with all stored ones cost one matrix-vector product and one pass over the result
(`vector`). `docs/kernels.md` says what each one is for.

"""

from streamgp.kernels import base, composition, linear, stationary
from streamgp.kernels.base import *  # noqa: F403
from streamgp.kernels.composition import *  # noqa: F403
from streamgp.kernels.linear import *  # noqa: F403
from streamgp.kernels.stationary import *  # noqa: F403

__all__: list[str] = []
__all__ += base.__all__
__all__ += composition.__all__
__all__ += linear.__all__
__all__ += stationary.__all__
