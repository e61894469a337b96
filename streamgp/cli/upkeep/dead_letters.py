"""The command `streamgp dead-letters`: what could not be used, and sending it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgp.cli.deployment.deployed import broker_option, config_argument

if TYPE_CHECKING:
    from streamgp.cli.upkeep import letters

_STAGES = ("decode", "correlate", "learn")

_stage_option = click.option(
    "--stage",
    type=click.Choice(_STAGES),
    help="Only those that came so far: decode (not understood), correlate (nothing that it belongs "
    "to, or too late, or seen before), learn (the learner cannot take it).",
)
_since_option = click.option(
    "--since",
    metavar="WHEN",
    help="Only those since then: how long ago (30s, 15min, 2h, 7d), or a time "
    "(2026-08-01T14:30:00Z).",
)


@click.group("dead-letters")
@config_argument
@broker_option
@click.pass_context
def dead_letters(context: click.Context, config_file: Path, broker: str | None) -> None:
    """Look at the inputs that could not be used, and send them again.

    CONFIG.toml is that of the workers. A worker puts what it cannot use aside, byte for byte, and
    says why; it goes on with the next one.

    \b
    Examples:
      streamgp dead-letters worker.toml list --since 2h
      streamgp dead-letters worker.toml show 2:17
      streamgp dead-letters worker.toml resend 2:17 2:18
      streamgp dead-letters worker.toml resend --all --stage learn --since 1d
    """
    context.obj = (config_file, broker)


@dead_letters.command("list")
@_stage_option
@_since_option
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.pass_obj
def list_(where: tuple[Path, str | None], stage: str | None, since: str | None, last: int) -> None:
    """List dead letters with their numbers, oldest first; reasons may quote a value."""
    from streamgp.cli.deployment.visiting import visit
    from streamgp.cli.upkeep import letters

    wanted = _wanted(stage, since)
    with visit(*where) as deployment:
        click.echo(letters.listing(deployment.topics, wanted, last))


@dead_letters.command()
@click.argument("number")
@click.pass_obj
def show(where: tuple[Path, str | None], number: str) -> None:
    """Show one dead letter: its key, its headers, and what was in it.

    NUMBER is PARTITION:OFFSET, as `list` prints it. What is no text is shown as hexadecimal digits.
    """
    from streamgp.cli.deployment.visiting import visit
    from streamgp.cli.upkeep import letters

    place = letters.place_of(number)
    with visit(*where) as deployment:
        click.echo(letters.description(deployment.topics, place))


@dead_letters.command()
@click.argument("numbers", nargs=-1, metavar="[NUMBER]...")
@click.option("--all", "everything", is_flag=True, help="All that --stage and --since leave.")
@_stage_option
@_since_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def resend(
    where: tuple[Path, str | None],
    numbers: tuple[str, ...],
    everything: bool,
    stage: str | None,
    since: str | None,
    yes: bool,
) -> None:
    """Put dead letters back into the topics that they came from, with the same key and bytes.

    NUMBER is PARTITION:OFFSET, as `list` prints it. Send them again once the cause is gone: another
    learner, a repaired clock, the event that an answer was about. What still cannot be used becomes
    a dead letter again. The old dead letter stays in any case, so --all sends it again next time.

    An answer that names its id counts once, however often it is sent. An event that names its id is
    predicted once: sent again it becomes a dead letter. What names none is another one every time.
    """
    from streamgp.cli.deployment.visiting import visit
    from streamgp.cli.terminal import confirm
    from streamgp.cli.upkeep import letters
    from streamgp.cli.wording import number as counted

    if bool(numbers) == everything:
        raise click.UsageError("name the dead letters to send again, or give --all")
    if numbers and (stage is not None or since is not None):
        raise click.UsageError("--stage and --since go with --all, not with numbers")
    wanted, places = _wanted(stage, since), [letters.place_of(text) for text in numbers]
    with visit(*where) as deployment:
        found = letters.chosen(deployment.topics, places, wanted)
        records, n_left_out = letters.outgoing(found, skip=everything)
        if n_left_out:
            left_out = counted(n_left_out, "dead letter")
            click.echo(f"{left_out} left out: came of a timer, or only the beginning was kept")
        if not records:
            click.echo("sent nothing")
            return
        if not (yes or confirm(f"send {letters.by_topic(records)}?")):
            click.echo("sent nothing")
            return
        letters.send(deployment, records)
        click.echo(f"sent {letters.by_topic(records)}")


def _wanted(stage: str | None, since: str | None) -> letters.Wanted:
    from streamgp.cli.upkeep import letters

    moment = None if since is None else letters.moment_of(since, letters.now())
    return letters.Wanted(stage=stage, since=moment)
