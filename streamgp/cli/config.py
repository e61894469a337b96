"""Reading a configuration: from a TOML file and from `--annotator`, and what cannot be together.

Whatever is wrong is one ConfigError that names the file, the key, the value and what is allowed.

"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from streamgp.cli.settings import Annotator, Config
from streamgp.cli.validation import ConfigError, convert


def parse(text: str, *, source: str) -> Config:
    """Read a configuration from TOML text.

    Examples
    --------
    >>> parse('seed = 7', source="my.toml").seed
    7
    >>> parse('[query]\\nrule = "entropi"', source="my.toml")
    Traceback (most recent call last):
    streamgp.cli.validation.ConfigError: my.toml: query.rule = "entropi" is not allowed, ...

    """
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise ConfigError(f"{source}: not valid TOML: {error}") from None
    return consistent(convert(data, Config, source=source), source=source)


def load(path: Path) -> Config:
    """Read a configuration file; whatever is wrong with it becomes one ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None
    return parse(text, source=str(path))


def parse_annotator(text: str, base: Annotator = Annotator()) -> Annotator:  # noqa: B008 (frozen)
    """Read the value of `--annotator`; settings it does not name stay as in `base`.

    Examples
    --------
    >>> parse_annotator("error_rate=0.2,delay=300").delay
    300.0
    >>> parse_annotator("error_rate=2")
    Traceback (most recent call last):
    streamgp.cli.validation.ConfigError: --annotator: error_rate = 2 is not allowed, ...

    """
    settings: dict[str, object] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise ConfigError(
                f"--annotator: {part.strip()!r} is not a setting, expected name=value pairs "
                "separated by commas, as in error_rate=0.2,delay=300"
            )
        if name in settings:
            raise ConfigError(f"--annotator: {name} is given twice")
        settings[name] = _plain(value)
    convert(settings, Annotator, source="--annotator")
    return msgspec.convert({**msgspec.structs.asdict(base), **settings}, Annotator)


def _plain(text: str) -> object:
    """Turn a word of the command line into the bool, int or float it spells, else leave it."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def consistent(config: Config, *, source: str) -> Config:
    """Return the configuration, or raise ConfigError if settings contradict each other."""
    learner, log = config.learner, config.log
    if learner.name != "gp":
        for name in ("length_scale", "noise_variance"):
            if getattr(learner, name) is not None:
                raise ConfigError(
                    f'{source}: learner.{name} belongs to the learner "gp", not to '
                    f'"{learner.name}"; its settings go into [learner.options]'
                )
    elif learner.options:
        raise ConfigError(
            f"{source}: learner.options is for River classifiers; the settings of "
            '"gp" are learner.length_scale and learner.noise_variance'
        )
    roles: dict[str, str] = {}
    for role in ("label", "time", "key"):
        column = getattr(log, role)
        if column in roles:
            raise ConfigError(
                f"{source}: column {column!r} is both {roles[column]} and {role}; "
                "give each its own column"
            )
        if column is not None:
            roles[column] = role
    for name, columns in (("features", log.features or ()), ("ignore", log.ignore)):
        for column in columns:
            if column in roles:
                raise ConfigError(
                    f"{source}: column {column!r} is the {roles[column]}; "
                    f"take it out of the {name} columns"
                )
    both = sorted(set(log.features or ()) & set(log.ignore))
    if both:
        raise ConfigError(
            f"{source}: column {both[0]!r} is both a feature and ignored; name it only once"
        )
    return config
