"""The release that runs: its version and, where that is known, its commit."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from streamgp import __version__

_HERE = Path(__file__).parents[2]


@cache
def release() -> str:
    """Return the version, with the commit of a git checkout or of a wheel installed from git.

    For people and logs; what is compared after a restart is the version alone.
    """
    commit = commit_of(_HERE) or _commit_of_wheel()
    return __version__ if commit is None else f"{__version__} (commit {commit[:12]})"


def commit_of(checkout: Path) -> str | None:
    """Return the commit of a checkout, None if there is none; git need not be installed."""
    try:
        git = checkout / ".git"
        if git.is_file():  # of a worktree
            git = checkout / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        found = (git / "HEAD").read_text(encoding="utf-8").strip()
        if found.startswith("ref: "):
            shared = git / "commondir"
            common = git / shared.read_text(encoding="utf-8").strip() if shared.is_file() else git
            ref = found.removeprefix("ref: ")
            if (common / ref).is_file():
                found = (common / ref).read_text(encoding="utf-8").strip()
            else:
                lines = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
                found = next((line.split()[0] for line in lines if line.endswith(f" {ref}")), "")
    except (OSError, UnicodeError):
        return None
    return found if re.fullmatch("[0-9a-f]{40,64}", found) else None


def _commit_of_wheel() -> str | None:
    from importlib.metadata import PackageNotFoundError, distribution
    from json import loads

    try:
        installed = distribution("streamgp")
    except PackageNotFoundError:
        return None
    origin = installed.read_text("direct_url.json")
    if origin is None or Path(str(installed.locate_file(""))) != _HERE:
        return None
    return loads(origin).get("vcs_info", {}).get("commit_id")  # type: ignore[no-any-return]
