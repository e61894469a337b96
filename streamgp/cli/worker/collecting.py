"""How often Python looks for garbage in a process that holds much and throws little away."""

from __future__ import annotations

import gc

# New containers between two looks at the newest, and after how many looks the next older are
# looked at too. At 30 000 events a minute everything is looked at a few times an hour.
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
