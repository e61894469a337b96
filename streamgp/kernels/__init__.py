"""Covariance functions: frozen, without state, on arrays.

A kernel stores each point as a row of its own making (`embed`), so that the covariances of a new
point with all stored ones cost one matrix-vector product and one pass over the result (`vector`).
`docs/kernels.md` says what each one is for.

"""

from streamgp.kernels.base import Kernel
from streamgp.kernels.categorical import Categorical
from streamgp.kernels.composition import Composable, On, Product, Sum
from streamgp.kernels.linear import Constant, Linear, White
from streamgp.kernels.stationary import Matern32, Matern52, RationalQuadratic, SquaredExponential

__all__ = [
    "Categorical",
    "Composable",
    "Constant",
    "Kernel",
    "Linear",
    "Matern32",
    "Matern52",
    "On",
    "Product",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
    "White",
]
