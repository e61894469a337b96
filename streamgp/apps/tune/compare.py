"""Comparison by `streamgp tune --compare`: several configurations on one log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from streamgp.apps.console import DONE, INTERRUPTED, WRONG_USE, progress, tell
from streamgp.apps.recorded_logs import Notes, RepeatedLog, useless_log
from streamgp.apps.replay.engine import Played
from streamgp.apps.replay.run import ReplaySink, play_log
from streamgp.common.printable import path_text
from streamgp.config import build
from streamgp.config.settings import Annotator, Config
from streamgp.config.validation import shown
from streamgp.report.charts import draw_curves
from streamgp.report.tables import table

# Seed and name do not change how good an annotator is.
_NO_MATTER = ("seed", "name")


def check_alike(configs: Sequence[tuple[Path, Config]]) -> None:
    """Refuse configurations whose results cannot be compared; the error names the difference.

    Better answers alone would give a better result, so all need the same annotator, and the same
    labels of the same rows.

    Raises
    ------
    click.UsageError
        If they differ in these respects.

    """
    (first, base), *others = configs
    for file, config in others:
        for what in ("label", "limit"):
            values = [getattr(log, what) for log in (base.log, config.log)]
            if values[0] != values[1]:
                raise click.UsageError(
                    f"{first} and {file} cannot be compared: {what} in section [log] is "
                    f"{_told(values[0])} in one, {_told(values[1])} in the other; give --{what}, "
                    "which then holds for all of them"
                )
        ours, theirs = _annotators(base), _annotators(config)
        if ours.keys() != theirs.keys():
            raise click.UsageError(
                f"{first} and {file} cannot be compared: their labels come from different "
                f"annotators, {_listed(ours)} and {_listed(theirs)}; write the same ones into both "
                "files"
            )
        for name, one in ours.items():
            unlike = _unlike(one, theirs[name])
            if unlike:
                settings = ", ".join(
                    f"{what} is {_told(getattr(one, what))} in one, "
                    f"{_told(getattr(theirs[name], what))} in the other"
                    for what in unlike
                )
                whose = f"name={name}," if name else ""
                given = ",".join(
                    f"{what}={_given(getattr(theirs[name], what), getattr(one, what))}"
                    for what in unlike
                )
                raise click.UsageError(
                    f"{first} and {file} cannot be compared: their labels come from different "
                    f"annotators, {settings}; say who answers with --annotator, which then holds "
                    f"for all of them, as in --annotator {whose}{given}"
                )


def _annotators(config: Config) -> dict[str, Annotator]:
    """Return the annotators by name; the name of a single one is ignored."""
    return dict(config.annotators) or {"": config.annotator}


def _unlike(one: Annotator, other: Annotator) -> list[str]:
    return [
        what
        for what in Annotator.__struct_fields__
        if what not in _NO_MATTER and getattr(one, what) != getattr(other, what)
    ]


def _listed(annotators: dict[str, Annotator]) -> str:
    return "one" if "" in annotators else " and ".join(map(repr, annotators))


def _told(value: object) -> str:
    return "not given" if value is None else shown(value)


def _given(value: object, other: object) -> str:
    """Return a setting, or the other one if it is None, in the syntax of `--annotator`."""
    value = other if value is None else value
    if isinstance(value, tuple):
        return "|".join(map(str, value))
    return str(value) if isinstance(value, str) else _told(value)


def compare(path: Path, configs: Sequence[tuple[Path, Config]], *, picture: Path | None) -> int:
    """Replay a log with several configurations, and show them together.

    Returns
    -------
    The exit status: 0, 130 after Ctrl-C, 2 if the log turned out to be damaged.

    Raises
    ------
    ConfigError
        If a learner cannot be built.
    click.UsageError
        If the configurations have different annotators.
    click.ClickException
        If the log cannot be read or the picture cannot be written.

    """
    check_alike(configs)
    for file, config in configs:  # before the first run takes its time
        build.build_model(config, source=str(file))
        RepeatedLog(path, source=str(file)).open(config, Notes()).close()
    names = _names([file for file, _ in configs])
    runs: list[tuple[str, Played]] = []
    rejected: list[str] = []
    with progress() as show:
        for i, (name, (file, config)) in enumerate(zip(names, configs, strict=True)):

            def on_event(_n: int, share: float, name: str = name, before: int = i) -> None:
                show(name, (before + share) / len(configs))

            sink = ReplaySink(None)
            log = RepeatedLog(path, source=str(file))
            played = play_log(log, config, sink=sink, on_event=on_event)
            for _, reason in sink.reasons[:1]:
                n_rejected = played.statistics.n_rejected
                rejected.append(f"{name}: {n_rejected} rejected, the first: {reason}")
            if played.statistics.n_events or played.result.interrupted:
                runs.append((name, played))
            if played.damage is not None or played.result.interrupted:
                break
    _show(runs, path, picture)
    if played.damage is not None:
        tell(f"Error: {played.damage} (what came before it is shown)")
        return WRONG_USE
    if not runs:
        reasons = [reason for _, reason in sink.reasons]
        raise useless_log(path, reasons, see="`streamgp replay` with the same file says why")
    for line in rejected:
        tell(line)
    if runs[-1][1].result.interrupted:
        tell(f"interrupted; {runs[-1][0]} did not see the whole log")
        return INTERRUPTED
    return DONE


def _show(runs: Sequence[tuple[str, Played]], path: Path, picture: Path | None) -> None:
    if not runs:
        return
    click.echo(table([played.row(name) for name, played in runs], first="configuration"), nl=False)
    if len(runs) > 1:
        tell(
            "one run of each, so a small difference may be chance; for means with intervals: "
            "streamgp replay LOG --config FILE.toml --seeds 5"
        )
    if picture is None:
        return
    curves = [played.points.curve(name) for name, played in runs]
    try:
        draw_curves(curves, picture, title=path_text(path.name))
    except OSError as error:
        raise click.ClickException(f"cannot draw {picture}: {error.strerror or error}") from None
    click.echo(f"picture: {picture}")


def _names(files: Sequence[Path]) -> list[str]:
    """Return short names of configurations: their file names, or the paths if these are equal.

    Examples
    --------
    >>> _names([Path("a.toml"), Path("b.toml")])
    ['a', 'b']
    >>> _names([Path("old/a.toml"), Path("new/a.toml")])
    ['old/a.toml', 'new/a.toml']

    """
    names = [path_text(file.stem) for file in files]
    return names if len(set(names)) == len(names) else [path_text(file) for file in files]
