"""Writing a configuration file: the settings that differ from the defaults, as TOML."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from connectors.storage.snapshots import state_error
from streamgp.common.private_files import private
from streamgp.config.settings import Config

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def check_output(path: Path, *, read: Sequence[Path]) -> None:
    """Check before the work that a file can be written.

    Raises
    ------
    click.ClickException
        If it cannot be written, or would replace one of the input files `read`.

    """
    if path.is_dir():
        raise click.ClickException(f"{path} is a directory; name a file")
    if any(path.resolve() == file.resolve() for file in read):
        raise click.ClickException(f"{path} would be overwritten; name another file")
    there = path if path.exists() else path.absolute().parent
    if not there.exists():
        raise click.ClickException(f"cannot write {path}: there is no directory {there}")
    if not os.access(there, os.W_OK):
        raise click.ClickException(f"cannot write {path}: {there} is not writable")


def write_configuration(path: Path, config: Config, *, comment: str) -> None:
    """Write a configuration file, headed by a comment.

    Raises
    ------
    click.ClickException
        If the file cannot be written.

    """
    try:
        with open(path, "w", encoding="utf-8", newline="\n", opener=private) as file:
            file.write(f"# {comment}\n{toml(config)}")
    except OSError as error:
        raise click.ClickException(str(state_error(f"cannot write {path}", error))) from None


def toml(config: Config) -> str:
    """Return a configuration as TOML, without settings that have their default.

    Examples
    --------
    >>> from streamgp.config.rules import section
    >>> from streamgp.config.settings import Learner, Log
    >>> config = Config(
    ...     learner=Learner(length_scale=1.2),
    ...     budget=section("budget", "at_most", n=50),
    ...     log=Log(label="room"),
    ... )
    >>> print(toml(config), end="")
    <BLANKLINE>
    [learner]
    length_scale = 1.2
    <BLANKLINE>
    [budget]
    rule = "at_most"
    n = 50
    gives_back = true
    <BLANKLINE>
    [log]
    label = "room"

    """
    return "".join(f"{line}\n" for line in _lines(_differing(config, Config()), ()))


def _differing(section: msgspec.Struct, default: object) -> dict[str, Any]:
    """Return the settings that differ from `default`, as builtins; a rule always has its name."""
    kind = type(section)
    like = type(default) is kind
    tag = kind.__struct_config__.tag
    found: dict[str, Any] = {} if tag is None else {"rule": tag}
    for name in kind.__struct_fields__:
        value = getattr(section, name)
        if like and value == getattr(default, name):
            continue
        if isinstance(value, msgspec.Struct):
            found[name] = _differing(value, getattr(default, name) if like else None)
        elif value is not None:
            found[name] = msgspec.to_builtins(value)
    return found


def _lines(section: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for name, value in section.items():
        # None is a value within a list, but here it means that there is no setting.
        if value is not None and not isinstance(value, Mapping):
            yield f"{_key(name)} = {_value(value)}"
    for name, value in section.items():
        if isinstance(value, Mapping):
            inner = (*path, name)
            yield ""
            yield f"[{'.'.join(map(_key, inner))}]"
            yield from _lines(value, inner)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_value(v)}" for name, v in value.items())
        return f"{{{inner}}}"
    # TOML writes numbers, booleans and strings as JSON does, except for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
