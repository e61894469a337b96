"""The BLAS that benchmarks run on: one thread, as where a learner shares a machine; its kernels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def one_thread() -> Iterator[str]:
    """Limit BLAS to one thread, and say how it was done."""
    variable = f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS')}"
    try:
        import threadpoolctl
    except ModuleNotFoundError:
        yield f"{variable} when numpy loaded"
        return
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield f"{variable}, and threadpoolctl"


def kernels() -> str:
    """Return for which processors the kernels are that OpenBLAS has picked, such as `"SkylakeX"`.

    `"unknown"` without threadpoolctl, or with another BLAS. `OPENBLAS_CORETYPE` picks others.

    """
    try:
        import threadpoolctl
    except ModuleNotFoundError:
        return "unknown"
    found = {library.get("architecture") for library in threadpoolctl.threadpool_info()}
    return ", ".join(sorted(found - {None})) or "unknown"
