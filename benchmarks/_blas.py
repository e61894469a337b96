"""The BLAS that benchmarks run on: one thread, as where a learner shares a machine; its kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from threadpoolctl import threadpool_limits

from streamgp.common.environment import environment


@contextlib.contextmanager
def one_thread() -> Iterator[str]:
    """Limit BLAS to one thread, and say which BLAS it is."""
    with threadpool_limits(1, user_api="blas"):
        here = environment()
        yield f"{here['blas']}, kernel {here['blas_kernel']}"


def kernels() -> str:
    """Return for which processors the kernels are that the BLAS has picked, such as `"SkylakeX"`.

    `OPENBLAS_CORETYPE` picks others.
    """
    return environment()["blas_kernel"]
