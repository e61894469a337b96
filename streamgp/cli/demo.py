"""The command `streamgp demo`: its options, and what it shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from streamgp.cli.options import path_to

if TYPE_CHECKING:
    from streamgp.apps.replay.demo import LearnerRun


DEFAULT_PICTURE = Path("streamgp-demo.png")
INTRODUCTION = """\
2000 readings of 7 WiFi signal strengths in 4 rooms, one room after the other;
labels come from an annotator who is wrong 20 % of the time.
"""
EXPLANATION = """\
macro F1: mean over the rooms. challenge precision: challenged labels that were
wrong. wrong labels kept: wrong ones among those learned. AMF, ARF: River's
Mondrian and adaptive random forest, in the same SkepticalClassifier.
"""


@click.command()
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    default=1,
    show_default=True,
    help="Seed of the annotator and of all learners.",
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to draw the learning curves: .png, .svg or .pdf. Needs matplotlib "
    f"(pip install matplotlib).  [default: {DEFAULT_PICTURE}, if matplotlib is installed]",
)
@click.option("--no-picture", is_flag=True, help="Draw nothing.")
@click.option(
    "--write",
    callback=path_to("file"),
    type=click.Path(),
    metavar="FILE.csv",
    help="Write the log to this file, - for standard output, and do nothing else: a log to try the "
    "other commands on, with a column time (a reading every minute) and rooms by name. A file that "
    "holds something else is left alone.",
)
def demo(seed: int, picture: Path | None, no_picture: bool, write: Path | None) -> None:
    """Watch five learners tell rooms apart, taught by a careless annotator.

    Replays a log that comes with the package: 2000 readings of 7 WiFi signal strengths in 4 rooms,
    in recorded order, so that rooms appear one after another. Labels come from a simulated
    annotator who is wrong 20 % of the time. Compared are the skeptical Gaussian process, the same
    never and always challenging, and two forests of River. Takes a few seconds.

    \b
    Examples:
      streamgp demo
      streamgp demo --seed 7 --picture curves.svg
      streamgp demo --write rooms.csv
    """
    if write is not None:
        _check_alone()
        from streamgp.apps.replay.demo import write_room_log

        write_room_log(write)
        return
    if picture is not None:
        _check_picture(picture, no_picture)
    from streamgp.apps.console import progress
    from streamgp.apps.replay.demo import LEARNERS, run_learners
    from streamgp.report.tables import table

    with progress() as show:
        runs = run_learners(seed, on_progress=show)
    click.echo(INTRODUCTION)
    click.echo(table([run.row for run in runs]))
    click.echo(EXPLANATION)
    if not no_picture and runs:
        _draw(runs, picture)
    if len(runs) < len(LEARNERS) or any(run.interrupted for run in runs):
        click.echo("interrupted; the last learner did not see the whole log", err=True)
        click.get_current_context().exit(130)


def _check_alone() -> None:
    """Refuse options that would change nothing."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name != "write" and context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--write only writes the log; leave out {parameter.opts[0]}")


def _check_picture(picture: Path, no_picture: bool) -> None:
    """Say what is wrong before the work, not after it."""
    from streamgp.report.charts import PICTURE_FORMATS

    if no_picture:
        raise click.UsageError("--picture and --no-picture contradict each other; choose one")
    if picture.suffix.removeprefix(".").lower() not in PICTURE_FORMATS:
        endings = ", ".join(f".{ending}" for ending in PICTURE_FORMATS)
        raise click.UsageError(f"--picture must end in one of {endings}, got {str(picture)!r}")
    if not _has_matplotlib():
        raise click.ClickException(
            "--picture needs matplotlib; install it with: pip install matplotlib"
        )


def _draw(runs: list[LearnerRun], picture: Path | None) -> None:
    if not _has_matplotlib():
        click.echo("For a picture of the learning curves: pip install matplotlib")
        return
    from streamgp.report.charts import draw_curves

    path = DEFAULT_PICTURE if picture is None else picture
    try:
        draw_curves(
            [run.curve for run in runs],
            path,
            title="WiFi rooms, an annotator wrong 20 % of the time",
        )
    except OSError as error:
        message = f"cannot draw {path}: {error.strerror}"
        if picture is not None:
            raise click.ClickException(message) from None
        click.echo(f"No picture: {message}", err=True)  # nobody asked for this one
        return
    click.echo(f"Learning curves: {path}")


def _has_matplotlib() -> bool:
    return importlib.util.find_spec("matplotlib") is not None
