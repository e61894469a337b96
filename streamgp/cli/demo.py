"""The command `streamgp demo`: its options, and the texts that it prints."""

from __future__ import annotations

import logging
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgp.cli.options import (
    GivenPath,
    WholeNumber,
    annotator_name,
    check_picture,
    given_options,
    login_name,
)
from streamgp.cli.page import address_of, bind_option, check_installed

if TYPE_CHECKING:
    from streamgp.report.charts import Curve


INTRODUCTION = """\
2000 readings of 7 WiFi signal strengths in 4 rooms, one room after the other;
labels come from an annotator who is wrong 20 % of the time.
"""
EXPLANATION = """\
macro F1: mean over the rooms. challenge precision: share of challenged labels
that were wrong. wrong labels kept: share of learned labels that were wrong.
AMF, ARF: River's Mondrian and adaptive random forests, in the same
SkepticalClassifier.
"""


@click.command()
@click.option(
    "--seed",
    type=WholeNumber(0, 2**32 - 1),
    metavar="N",
    default=1,
    show_default=True,
    help="Seed of the annotator and of all learners.",
)
@click.option(
    "--picture",
    type=GivenPath(),
    metavar="FILE",
    help="Draw the learning curves to this file: .png, .svg or .pdf. Needs matplotlib "
    "(pip install matplotlib).",
)
@click.option(
    "--write",
    type=GivenPath("file"),
    metavar="FILE.csv",
    help="Only write the log to this file (- for standard output), to try other commands on. It "
    "has a column time (a reading every minute) and the names of the rooms. An existing file with "
    "other content is not overwritten.",
)
@click.option(
    "--page",
    "on_page",
    is_flag=True,
    help="Answer a learner's questions yourself, in a browser. The readings of the log come in "
    "random order, the first four of each room with their label. Needs streamgp[page].",
)
@click.option(
    "--raw",
    is_flag=True,
    help="Play raw sensor rows instead: acceleration of a synthetic walk, 50 rows a second, which "
    "windows of 5 seconds turn into events. Shows the predictions and the questions. With --page, "
    "you answer them and see the signal of each window.",
)
@bind_option
@click.option(
    "--as",
    "annotator",
    metavar="NAME",
    callback=annotator_name,
    help="With --page: your name as annotator.  [default: your login name]",
)
@click.option("--no-browser", is_flag=True, help="With --page: do not open a browser.")
def demo(
    seed: int,
    picture: Path | None,
    write: Path | None,
    on_page: bool,
    raw: bool,
    bind: str,
    annotator: str | None,
    no_browser: bool,
) -> None:
    """Watch five learners tell rooms apart, taught by a careless annotator.

    Replays a log that comes with the package: 2000 readings of 7 WiFi signal strengths in 4 rooms,
    in recorded order, so that rooms appear one after another. Labels come from a simulated
    annotator who is wrong 20 % of the time. The demo compares the skeptical Gaussian process, the
    same one when it never or always challenges, and two of River's forests. It takes a few seconds.
    With --raw, it plays raw sensor rows instead, cut into windows.

    \b
    Examples:
      streamgp demo
      streamgp demo --raw
      streamgp demo --seed 7 --picture curves.svg
      streamgp demo --write rooms.csv
      streamgp demo --page
      streamgp demo --raw --page
    """
    if on_page:
        _check_alone("raw", "bind", "annotator", "no_browser", why="--page plays a stream")
        _show_page(bind, annotator, raw=raw, opens_browser=not no_browser)
        return
    _check_unused("bind", "annotator", "no_browser")
    if raw:
        _check_alone("raw", "seed", why="--raw plays a walk")
        from streamgp.apps.replay.demo import raw_demo

        click.echo(raw_demo(seed))
        return
    if write is not None:
        _check_alone("write", why="--write only writes the log")
        from streamgp.apps.replay.demo_data import write_room_log

        write_room_log(write)
        return
    if picture is not None:
        check_picture(picture, read=())
    from streamgp.apps.console import INTERRUPTED, progress
    from streamgp.apps.replay.demo import LEARNERS, run_learners
    from streamgp.report.tables import table

    with progress() as show:
        runs = run_learners(seed, on_progress=show)
    click.echo(INTRODUCTION)
    click.echo(table([played.row(name) for name, played in runs.items()]))
    click.echo(EXPLANATION)
    if picture is not None and runs:
        _draw([played.points.curve(name) for name, played in runs.items()], picture)
    if len(runs) < len(LEARNERS) or any(played.result.interrupted for played in runs.values()):
        click.echo("interrupted; the last learner did not see the whole log", err=True)
        click.get_current_context().exit(INTERRUPTED)


def _show_page(bind: str, annotator: str | None, *, raw: bool, opens_browser: bool) -> None:
    """Play the stream until a signal closes the page."""
    check_installed()
    from streamgp.apps.log import start_log
    from streamgp.apps.page.program import serve_alone
    from streamgp.apps.replay.demo_stream import DemoStream

    address = address_of(bind)
    start_log("text")
    logging.getLogger("streamgp.worker").setLevel(logging.ERROR)
    stream = DemoStream(raw=raw)

    def show(url: str) -> None:
        stream.start()
        click.echo(f"page: {url}  (Ctrl-C ends it)")
        if opens_browser:
            webbrowser.open(url)

    status = serve_alone(
        stream.topics,
        address,
        annotator=annotator or login_name(),
        accuracy=stream.accuracy,
        truth=stream.truth,
        is_ready=show,
        trouble=lambda: stream.trouble,
    )
    stream.close()
    click.get_current_context().exit(status)


def _check_alone(*names: str, why: str) -> None:
    """Refuse options that would have no effect."""
    for parameter in given_options():
        if parameter.name not in (*names, "on_page"):
            raise click.UsageError(f"{why}; leave out {parameter.opts[0]}")


def _check_unused(*names: str) -> None:
    """Refuse options of the page if there is no page."""
    for parameter in given_options():
        if parameter.name in names:
            raise click.UsageError(f"{parameter.opts[0]} can be used only with --page")


def _draw(curves: list[Curve], path: Path) -> None:
    from streamgp.report.charts import draw_curves

    try:
        draw_curves(curves, path, title="WiFi rooms, an annotator wrong 20 % of the time")
    except OSError as error:
        raise click.ClickException(f"cannot draw {path}: {error.strerror or error}") from None
    click.echo(f"Learning curves: {path}")
