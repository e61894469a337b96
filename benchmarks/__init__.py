"""What streamgp promises, measured: run one with `python -m benchmarks.NAME --help`.

`papers` repeats published experiments, `performance` measures times, `comparison` accuracies. A
benchmark is `FOLDER/NAME.py`, or `FOLDER/NAME/benchmark.py` if it needs several files; its command
is `NAME.py` beside this file, and `python -m benchmarks` lists them all.

Every benchmark prints its rows and its acceptance list, writes both as JSON on request, and
measures ratios within one run where it can, so that a slow or busy machine changes little.

"""

from __future__ import annotations

import os

from streamgp.common.environment import ONE_THREAD

# Read when numpy loads, so it has to stand here: all benchmarks run on one BLAS thread, as
# `streamgp` itself does.
os.environ.update(ONE_THREAD)
