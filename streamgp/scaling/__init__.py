"""Scaling of features, learned from a stream.

`standard` scales by the first events, `renewed` by more and more of them and by what labels tell
about each column, which `column_forms` finds out.

"""

from streamgp.scaling.renewed import (
    MOST_RELEARNED,
    RecentScaling,
    RenewedScaling,
    standard_scaling,
    weighed_as,
)
from streamgp.scaling.standard import (
    NoScaling,
    RobustScaling,
    Scaling,
    StandardScaling,
    check_finite,
)

__all__ = [
    "MOST_RELEARNED",
    "NoScaling",
    "RecentScaling",
    "RenewedScaling",
    "RobustScaling",
    "Scaling",
    "StandardScaling",
    "check_finite",
    "standard_scaling",
    "weighed_as",
]
