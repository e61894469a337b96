"""Benchmarks of what streamgp promises; `python -m benchmarks.NAME --help` describes one.

`papers` reproduces published experiments, `performance` measures times, `comparison` accuracies. A
benchmark is `FOLDER/NAME.py`, or `FOLDER/NAME/benchmark.py` if it needs several files; its command
is `NAME.py` beside this file, and `python -m benchmarks` lists them all.

Every benchmark prints its rows and its acceptance list, and writes both as JSON on request. Where
it can, it measures ratios within one run, so that a slow or busy machine changes little.

"""

from __future__ import annotations

import os

from streamgp.common.environment import ONE_THREAD

# numpy reads this when it loads, so it must be set here: all benchmarks run on one BLAS thread, as
# `streamgp` itself does.
os.environ.update(ONE_THREAD)
