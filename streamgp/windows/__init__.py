"""Windows of time over raw sensor rows, each turned into the features of one event.

`windowing` cuts the rows of each key into tumbling or sliding windows of event time, `extraction`
decides which features a window has, `signals` has the formulas of sampled signals.

"""

from streamgp.windows.extraction import FEATURE_SETS
from streamgp.windows.signals import SIGNAL_FEATURES
from streamgp.windows.windowing import Windows

__all__ = ["FEATURE_SETS", "SIGNAL_FEATURES", "Windows"]
