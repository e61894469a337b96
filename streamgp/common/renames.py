"""Deprecated names: a renamed public name stays for one version, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping


def current_name(package: str, name: str, renamed: Mapping[str, str]) -> str:
    """Return the current name of a package's public name; for its `__getattr__`.

    Warns
    -----
    DeprecationWarning
        If it is an old one; the warning points at the line that looks it up.

    Examples
    --------
    >>> current_name("streamgp", "GPClassifier", {"Tally": "RunStatistics"})
    'GPClassifier'

    """
    if name not in renamed:
        return name
    warnings.warn(
        f"{package}.{name} is called {renamed[name]} now; the old name goes with the next version",
        DeprecationWarning,
        stacklevel=3,
    )
    return renamed[name]
