"""A different numerical environment on the same machine: OpenBLAS told to use another kernel."""

from __future__ import annotations

import pytest

from streamgp.common.environment import environment

# Every processor of this architecture can run both.
_KERNELS = ("Nehalem", "Prescott")


def other_kernel() -> str:
    """Return a kernel that OpenBLAS can use and this process does not, or skip the test."""
    here = environment()
    if here["machine"] != "x86_64" or "openblas" not in here["blas"]:
        pytest.skip("needs OpenBLAS on x86_64, which can be told to use another kernel")
    return next(kernel for kernel in _KERNELS if kernel != here["blas_kernel"])
