"""The command `streamgp annotate`: a person or a simulated annotator answers a deployment."""

from __future__ import annotations

from pathlib import Path

import click

from streamgp.cli.options import (
    GivenPath,
    Number,
    annotator_name,
    broker_option,
    config_argument,
    login_name,
    no_response_time_option,
)


@click.command()
@config_argument
@click.option(
    "--as",
    "annotator",
    metavar="NAME",
    callback=annotator_name,
    help="Sign the answers with this name. An error rate is estimated for each name.  [default: "
    "your login name]",
)
@click.option("--key", metavar="KEY", help="Ask only about events of this key.")
@click.option(
    "--confidence",
    "asks_confidence",
    is_flag=True,
    help="Take how sure you are behind a label, ?1 (guessed) to ?5 (certain), as in: kitchen ?4.",
)
@no_response_time_option
@click.option(
    "--simulate",
    metavar="NAME=VALUE,...",
    multiple=True,
    help="Let a simulated annotator answer. It has the settings of `streamgp replay --annotator`, "
    "for example error_rate=0.2,delay=2; the delay is in real seconds. Repeat the option, each "
    "time with a name, for several annotators who share the questions.",
)
@click.option(
    "--truth",
    metavar="FILE",
    multiple=True,
    type=GivenPath(),
    help="With --simulate: read the true labels from this log. Its column event_id, or else the "
    "row number, names the event. Without this option they come from the events: from `truth`, "
    "or else from the label.",
)
@click.option(
    "--label",
    metavar="COLUMN",
    help="With --truth: the column that holds the labels.  [default: that of the configuration]",
)
@click.option(
    "--stop-when-idle",
    "idle_s",
    metavar="S",
    type=Number(at_least=0.0),
    help="Exit after this many seconds without a question or without a broker.",
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

    CONFIG.toml is the workers' configuration. The command first reads everything that was asked and
    answered so far. You can therefore leave at any time and continue on any machine, and several
    people can answer at once. Answered questions are not asked again.

    Each line answers one question: the key of a label, a label in full, or n LABEL for a new one. d
    means "don't know", s skips, u takes the last answer back, r OLD -> NEW renames a label, ? shows
    help, q quits. A challenge shows the label in a frame: k keeps it, c changes it. If standard
    input is not a terminal, a line that is none of these ends the command.

    Every answer records for how many seconds the question was shown; learners may trust hasty
    answers less. --no-response-time leaves that out.

    \b
    Examples:
      streamgp annotate worker.toml
      streamgp annotate worker.toml --as ann --key phone-3
      streamgp annotate worker.toml --confidence
      streamgp annotate worker.toml --simulate error_rate=0.2,delay=2
      streamgp annotate worker.toml --simulate "" --truth rooms.csv --label room

    Exit status: 0 success; 2 wrong usage, a line that is not an answer, or a broker that refuses;
    75 lost the broker: answers could not be sent, it was away for --stop-when-idle, or it lets
    this program in no longer; 130 interrupted by Ctrl-C.
    """
    if not simulate and (truth or label is not None):
        raise click.UsageError("--truth and --label can be used only with --simulate")
    if simulate and (asks_confidence or no_response_time):
        raise click.UsageError("--confidence and --no-response-time cannot be used with --simulate")
    if simulate:
        from streamgp.apps.annotate.simulated import by_itself

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
        from streamgp.apps.annotate.session import by_hand

        status = by_hand(
            config_file,
            name=annotator or login_name(),
            key=key,
            idle_s=idle_s,
            broker=broker,
            asks_confidence=asks_confidence,
            notes_response_time=not no_response_time,
        )
    click.get_current_context().exit(status)
