"""Which replay a state belongs to: only the same one may go on with it.

The same is a replay of the same log with the same configuration and version to the same directory,
and with the same hashes: some of River's learners follow their order, see `main`. Another numerical
environment is told, or refused where the user demands it.

"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

import click
import msgspec

from streamgp import __version__
from streamgp.base import State
from streamgp.cli.configuration.settings import Config, resolved
from streamgp.cli.terminal import tell
from streamgp.environment import differences, differences_text, environment

_ENDS = 1 << 16
_HASH_SEED = "PYTHONHASHSEED"
_ANEW = "or name another directory to begin anew"


def origin_of(config: Config, log: Path, out: Path | None) -> State:
    """Return what a replay is known by, as plain JSON values.

    Parameters
    ----------
    config
        The configuration.
    log
        The log. Its name, its size and both of its ends are taken, not all of it.
    out
        Directory of the message files, or None.

    """
    return {
        "streamgp": __version__,
        "hash_seed": os.environ.get(_HASH_SEED, "random"),
        "configuration": _settings(resolved(config)),
        "log": _identity(log),
        "out": None if out is None else str(out.resolve()),
        "environment": environment(),
    }


def config_of(origin: State) -> Config:
    """Return the configuration of a replay, with everything that its preset decided.

    Examples
    --------
    >>> config_of({"configuration": {"seed": 3, "query": {"rule": "never"}}}).query
    Never()

    """
    return msgspec.convert(origin["configuration"], Config)


def check_version(directory: Path, origin: State) -> None:
    """Refuse what another version has saved."""
    if origin["streamgp"] != __version__:
        raise click.ClickException(
            f"{directory} holds a replay of streamgp {origin['streamgp']}, this is {__version__}; "
            f"go on with that version, {_ANEW}"
        )


def check_same(directory: Path, there: State, here: State) -> None:
    """Refuse to go on with another replay than that of a state."""
    check_version(directory, there)
    if there["hash_seed"] != here["hash_seed"]:
        raise click.ClickException(
            f"{directory} holds a replay with {_HASH_SEED}={there['hash_seed']}, this one has "
            f"{here['hash_seed']}; set that environment variable as it was, {_ANEW}"
        )
    if there["out"] != here["out"]:
        raise click.ClickException(
            f"{directory} holds a replay {_with(there['out'])}, this one is {_with(here['out'])}; "
            f"go on as it began, {_ANEW}"
        )
    if there["log"] != here["log"]:
        raise click.ClickException(
            f"{directory} holds a replay of another log, or {here['log']['name']} has changed "
            f"since; bring back {there['log']['name']} of {there['log']['size']} bytes, {_ANEW}"
        )
    # A state from before there was some setting is one without it.
    settings_there, settings_here = _settings(config_of(there)), here["configuration"]
    if settings_there != settings_here:
        name, was, now = _difference(settings_there, settings_here)
        raise click.ClickException(
            f"{directory} holds a replay with {name} = {was!r}, this one has {now!r}; "
            f"go on with the same configuration, {_ANEW}"
        )


def compare_environments(directory: Path, there: State, *, strict: bool) -> None:
    """Say so if a replay goes on in another numerical environment, or refuse it."""
    was = there.get("environment")  # a state from before it was recorded has none
    if was is None:
        if strict:
            raise click.ClickException(
                f"{directory} does not say in which numerical environment it was saved, so that "
                f"nothing shows that it was this one, as --strict demands; leave --strict out, "
                f"{_ANEW}"
            )
        return
    found = differences(was)
    if not found:
        return
    what = f"{directory} was saved in another numerical environment ({differences_text(found)})"
    if strict:
        raise click.ClickException(
            f"{what}, and --strict demands the same; go back to it, or leave --strict out, {_ANEW}"
        )
    tell(f"note: {what}; what follows agrees to about 1e-9, not bitwise")


def _settings(config: Config) -> Any:
    return msgspec.json.decode(msgspec.json.encode(config))


def _with(out: str | None) -> str:
    return "without --out" if out is None else f"with --out {out}"


def _identity(log: Path) -> State:
    size = log.stat().st_size
    with log.open("rb") as file:
        ends = file.read(_ENDS)
        file.seek(max(0, size - _ENDS))
        ends += file.read(_ENDS)
    return {"name": log.name, "size": size, "ends": blake2b(ends, digest_size=16).hexdigest()}


def _difference(there: Any, here: Any, path: str = "") -> tuple[str, Any, Any]:
    """Return the first setting in which two configurations differ, with both values.

    Examples
    --------
    >>> _difference({"seed": 1, "log": {"time": None}}, {"seed": 1, "log": {"time": "at"}})
    ('log.time', None, 'at')

    """
    if isinstance(there, dict) and isinstance(here, dict):
        for name in dict.fromkeys([*there, *here]):
            if there.get(name) != here.get(name):
                inner = f"{path}.{name}" if path else name
                return _difference(there.get(name), here.get(name), inner)
    return path, there, here
