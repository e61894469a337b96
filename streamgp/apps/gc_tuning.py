"""Thresholds of the garbage collector for a process with many long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# New containers between two looks at the newest, and after how many looks the next older are
# looked at too. An event that is remembered leaves about three: at 30 000 events a minute there are
# two looks a minute, of .03 s each, and all is looked at twice a day. Evicted loops do not wait for
# it: they are in no cycles.
_THRESHOLDS = (50_000, 20, 50)


def collect_seldom() -> None:
    """Look for garbage in cycles seldom, and never among what is there now.

    A worker holds all its loops for as long as it runs, and looking through them took a tenth of
    its time, 40 ms at once with a hundred small loops, many times that with large ones. What is not
    in cycles, nearly everything, goes at once as always.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for garbage seldom until the block is left, for work that ends before its process.

    A replay holds the loops of all keys, too: with some thousand keys, looking through them took a
    tenth of its time.
    """
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:  # what was frozen before stays so, and cannot be told from the rest
            gc.unfreeze()
