"""Work spread over processes, results in the order of the jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")


def processes(n: int | None = None) -> AbstractContextManager[ProcessPoolExecutor | None]:
    """Return a pool of processes, one for each core, or none where one would do."""
    n = os.cpu_count() or 1 if n is None else n
    if n == 1:
        return nullcontext()
    # Fresh processes: a fork of one that has loaded BLAS may hang.
    return ProcessPoolExecutor(n, mp_context=get_context("spawn"))


def in_processes(function: Callable[[J], R], jobs: Sequence[J], n_workers: int) -> Iterator[R]:
    """Yield what a function makes of each job, as soon as it and all before it are done.

    Parameters
    ----------
    function
        What to do; found by its name in a process that starts from nothing.
    jobs
        Its arguments, which are pickled.
    n_workers
        Number of processes; with 1 it is done in this one.

    """
    with processes(n_workers) as pool:
        yield from (pool.map if pool else map)(function, jobs)
