"""The command line: the commands with their options and help, and how they end.

The package index has another project with a package called `connectors`. In one environment each
overwrites the other's files, so that is checked here, before anything else imports it.

"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

COMPLETE_VARIABLE: Final = "_STREAMGP_COMPLETE"
"""Environment variable by which a shell asks for completions."""


def _refuse_foreign_connectors() -> None:
    """Exit with a one-line error if `connectors` is not streamgp's own package."""
    try:
        found = import_module("connectors")
    except Exception as error:  # importing a foreign package may raise anything
        found, where = None, str(error) or type(error).__name__
    else:
        where = str(getattr(found, "__file__", None) or "no __init__.py")
    if getattr(found, "PROJECT", None) == "streamgp":
        return
    from importlib.metadata import packages_distributions

    owners = {*packages_distributions().get("connectors", ())} - {"streamgp"}
    owner = f"project {', '.join(sorted(owners))!r}" if owners else "another project"
    print(
        f"Error: package 'connectors' ({where}) belongs to {owner} or was damaged by it; install "
        "streamgp into an environment of its own (python3 -m venv DIR), or remove that project and "
        "install streamgp again (pip install --force-reinstall)",
        file=sys.stderr,
    )
    raise SystemExit(2)


_refuse_foreign_connectors()
