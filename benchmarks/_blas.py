"""One BLAS thread, as where a learner shares a machine with others."""

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
