"""Options of several commands that stand for settings of the configuration."""

from __future__ import annotations

import click
from msgspec.structs import replace as changed

from streamgp.cli.configuration.config import with_annotators
from streamgp.cli.configuration.settings import Config, PresetName, TargetName


def split_columns(
    _context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Split at commas, so that `--ignore a,b` and `--ignore a --ignore b` are the same."""
    names = tuple(name.strip() for text in value for name in text.split(","))
    if not all(names):
        raise click.BadParameter("column names must not be empty")
    return names


ignore_option = click.option(
    "--ignore",
    metavar="COLUMN",
    multiple=True,
    callback=split_columns,
    help="Column that is no feature. May be given several times, or name several: A,B.",
)
"""Columns that are no features, for every command that reads logs."""

features_option = click.option(
    "--features",
    metavar="A,B,...",
    multiple=True,
    callback=split_columns,
    help="The only columns that are features.",
)
"""Columns that alone are features, for every command that reads logs."""


target_option = click.option(
    "--target",
    type=click.Choice(["label", "number"]),
    help="What the label column holds: names of classes (label), or numbers to be predicted.",
)
"""What is predicted, for every command that reads labels."""


def with_options(
    config: Config,
    *,
    label: str | None = None,
    time: str | None = None,
    key: str | None = None,
    ignore: tuple[str, ...] = (),
    features: tuple[str, ...] = (),
    annotator: tuple[str, ...] = (),
    preset: PresetName | None = None,
    target: TargetName | None = None,
    seed: int | None = None,
    limit: int | None = None,
) -> Config:
    """Let what was given on the command line replace what the file says.

    Examples
    --------
    >>> with_options(Config(seed=3), label="room", seed=7).seed
    7
    >>> with_options(Config(seed=3), label="room").seed
    3

    """
    given = {
        "label": label,
        "time": time,
        "key": key,
        "ignore": ignore or None,
        "features": features or None,
        "limit": limit,
    }
    log = changed(config.log, **{name: value for name, value in given.items() if value is not None})
    return changed(
        with_annotators(config, annotator),
        preset=config.preset if preset is None else preset,
        target=config.target if target is None else target,
        seed=config.seed if seed is None else seed,
        log=log,
    )
