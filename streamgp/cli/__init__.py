"""The command line: the commands with their options and help, and how they end.

The package index has another project with a package called `connectors`. In one environment each
overwrites the other's files, so that is checked here, before anything else imports it.

"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

COMPLETE_VARIABLE: Final = "_STREAMGP_COMPLETE"
"""Environment variable by which a shell asks for completions."""


def _refuse_foreign_connectors() -> None:
    """Exit with a one-line error if `connectors` is not streamgp's own package."""
    try:
        found = import_module("connectors")
    except Exception as error:  # importing a foreign package may raise anything
        spec = find_spec("connectors")
        where = f"{spec.origin if spec else 'missing'}: {error or type(error).__name__}"
        found = None
    else:
        where = str(getattr(found, "__file__", None) or "no __init__.py")
    if getattr(found, "PROJECT", None) == "streamgp":
        return
    from importlib.metadata import packages_distributions

    owners = {*packages_distributions().get("connectors", ())} - {"streamgp"}
    if owners:
        what = (
            f"belongs to project {', '.join(sorted(owners))!r} or was damaged by it; install "
            "streamgp into an environment of its own (python3 -m venv DIR), or remove that project "
            "and install streamgp again (pip install --force-reinstall)"
        )
    else:
        what = (
            "was imported in place of streamgp's own; rename it, start streamgp in another "
            "directory, or, if it is where packages are installed, install streamgp again (pip "
            "install --force-reinstall)"
        )
    print(f"Error: package 'connectors' ({where}) {what}", file=sys.stderr)
    raise SystemExit(2)


_refuse_foreign_connectors()
