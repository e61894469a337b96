"""Covariance functions: frozen, without state, on arrays.

A kernel stores each point as a row of its own making (`embed`), so that the covariances of a new
point with all stored ones cost one matrix-vector product and one pass over the result (`vector`).
`docs/kernels.md` says what each one is for.

"""

from streamgp.kernels.categorical import Categorical
from streamgp.kernels.composition import Composable, Product, Sum
from streamgp.kernels.constant import Constant, White
from streamgp.kernels.kernel import Kernel
from streamgp.kernels.linear import Linear
from streamgp.kernels.matern import Matern32, Matern52
from streamgp.kernels.rational_quadratic import RationalQuadratic
from streamgp.kernels.restriction import On
from streamgp.kernels.squared_exponential import SquaredExponential

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
