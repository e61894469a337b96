"""The command `streamgp annotate`: a person, or a simulated one, answers on a deployment."""

from __future__ import annotations

from pathlib import Path

import click

from streamgp.cli.options import Number, annotator_name, broker_option, config_argument, login_name


@click.command()
@config_argument
@click.option(
    "--as",
    "annotator",
    metavar="NAME",
    callback=annotator_name,
    help="How the answers are signed; everybody has an error estimate of their own.  "
    "[default: the name you are logged in with]",
)
@click.option("--key", metavar="KEY", help="Ask only about events of this key.")
@click.option(
    "--confidence",
    "asks_confidence",
    is_flag=True,
    help="Ask after each label how sure it is: 1 (guessed) to 5 (certain); Enter leaves it out. In "
    "a line it stands behind the label: kitchen ?4.",
)
@click.option(
    "--no-response-time",
    is_flag=True,
    help="Do not note how long each answer took. Without this option every answer says so.",
)
@click.option(
    "--simulate",
    metavar="NAME=VALUE,...",
    multiple=True,
    help="Answer by itself: a simulated annotator, with the settings of `streamgp replay "
    "--annotator`, for example error_rate=0.2,delay=2. The delay is in seconds of the clock. "
    "Given several times, each with a name: they share the questions.",
)
@click.option(
    "--truth",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="With --simulate: a log that holds the true labels. Its column event_id, or the number "
    "of the row, says of which event. Without it the events bring them: their `truth`, else "
    "their label.",
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="With --truth: the column of the labels.  [default: that of the configuration]",
)
@click.option(
    "--stop-when-idle",
    "idle_s",
    metavar="S",
    type=Number(at_least=0.0),
    help="Leave when there was no question for so many seconds, or no broker.",
)
@broker_option
def annotate(
    config_file: Path,
    annotator: str | None,
    key: str | None,
    asks_confidence: bool,
    no_response_time: bool,
    simulate: tuple[str, ...],
    truth: tuple[Path, ...],
    label: str | None,
    idle_s: float | None,
    broker: str | None,
) -> None:
    """Answer label requests and challenges, one at a time.

    CONFIG.toml is that of the workers. Everything that was asked and answered so far is read first:
    you can leave at any time and go on anywhere, and several people can answer at once. What
    already answered is not asked again.

    On a terminal a key answers: each label has one, / searches where there are many, d is "don't
    know", s skips, u takes the last answer back, n lets you type a new label, r renames one, ?
    helps, q leaves. A label that is asked about again is in a frame: k keeps it, c changes it.
    Where the input is no terminal, each line answers one question: a key, a label, or n LABEL. One
    that means nothing ends it.

    Every answer tells for how many seconds the question had been shown: learners may believe hasty
    answers less. --no-response-time leaves that out.

    \b
    Examples:
      streamgp annotate worker.toml
      streamgp annotate worker.toml --as ann --key phone-3
      streamgp annotate worker.toml --confidence
      streamgp annotate worker.toml --simulate error_rate=0.2,delay=2
      streamgp annotate worker.toml --simulate "" --truth rooms.csv --label room

    Exit status: 0 done, 2 wrong use, a line that means nothing or a broker that refuses, 75 the
    broker is lost: answers could not be sent, or it was away for --stop-when-idle; 130 ended by
    Ctrl-C.
    """
    if not simulate and (truth or label is not None):
        raise click.UsageError("--truth and --label are of use with --simulate only")
    if simulate and (asks_confidence or no_response_time):
        raise click.UsageError("--confidence and --no-response-time are of no use with --simulate")
    from streamgp.apps.annotate.session import by_hand, by_itself

    if simulate:
        status = by_itself(
            config_file,
            settings=simulate,
            name=annotator,
            key=key,
            truth=truth,
            label=label,
            idle_s=idle_s,
            broker=broker,
        )
    else:
        name = annotator or login_name()
        status = by_hand(
            config_file,
            name=name,
            key=key,
            idle_s=idle_s,
            broker=broker,
            asks_confidence=asks_confidence,
            notes_response_time=not no_response_time,
        )
    click.get_current_context().exit(status)
