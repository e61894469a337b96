"""Commands that maintain a deployment: what it has rejected, learned and stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from streamgp.cli.options import (
    GivenPath,
    Number,
    WholeNumber,
    broker_option,
    check_output,
    completed_as,
    config_argument,
)

if TYPE_CHECKING:
    from streamgp.apps.deployment.deployment import Deployment
    from streamgp.apps.maintenance.audit import Format

_Command = TypeVar("_Command", bound=Callable[..., Any])
_STAGES = (
    "decode", "quarantine", "correlate", "learn", "predict", "ask", "challenge", "review", "encode",
)  # fmt: skip

_stage_option = click.option(
    "--stage",
    type=click.Choice(_STAGES),
    help="Only those that failed at this stage: decode (not understood), quarantine (its annotator "
    "misleads), correlate (nothing it belongs to, too late, or seen before), learn (the learner "
    "cannot use it), predict, ask, challenge, review or encode (an error occurred over it).",
)

_yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def _moment(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> float | None:
    from streamgp.apps.maintenance.dead_letters import moment_of

    return None if value is None else moment_of(value, time.time())


def _since_option(what: str) -> Callable[[_Command], _Command]:
    """Return an option for the earliest time, POSIX seconds; `what` is what begins then."""
    return click.option(
        "--since",
        metavar="WHEN",
        callback=_moment,
        help=f"Only {what} since WHEN: how long ago (30s, 15min, 2h, 7d), or a time "
        "(2026-08-01T14:30:00Z; without a zone it is UTC).",
    )


def _last_option(text: str) -> Callable[[_Command], _Command]:
    """Return an option for how many to show."""
    return click.option(
        "--last", type=WholeNumber(min=1), default=100, show_default=True, metavar="N", help=text
    )


def _wait_option(default: float, text: str) -> Callable[[_Command], _Command]:
    """Return an option for how long to wait, in seconds."""
    return click.option(
        "--wait",
        "wait_s",
        type=Number(at_least=0.0),
        default=default,
        show_default=True,
        metavar="S",
        help=text,
    )


class _OptionsBehindTheFile(click.Group):
    """A group whose options may follow CONFIG.toml, as in all other commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, those of the group first."""
        file, behind = args[:1], args[1:]
        if file and not file[0].startswith("-"):
            n = 0
            while n < len(behind) and behind[n].startswith("-"):
                n += 2 if behind[n] == "--broker" else 1
            args = [*behind[:n], *file, *behind[n:]]
        return super().parse_args(ctx, args)


@click.group("dead-letters", cls=_OptionsBehindTheFile)
@config_argument
@broker_option
@click.pass_context
def dead_letters(context: click.Context, config_file: Path, broker: str | None) -> None:
    """Look at the inputs that could not be used, and send them again.

    CONFIG.toml is the workers' configuration. If a worker cannot use an input, it sets the input
    aside as a dead letter, byte for byte and with the reason, and continues with the next one.

    \b
    Examples:
      streamgp dead-letters worker.toml list --since 2h
      streamgp dead-letters worker.toml show 2:17
      streamgp dead-letters worker.toml resend 2:17 2:18
      streamgp dead-letters worker.toml resend --all --stage learn --since 1d
    """
    context.obj = (config_file, broker)


@dead_letters.command("list")
@broker_option
@_stage_option
@_since_option("those")
@_last_option("Show the last N.")
@click.pass_obj
def list_(
    where: tuple[Path, str | None],
    broker: str | None,
    stage: str | None,
    since: float | None,
    last: int,
) -> None:
    """List dead letters with their numbers, oldest first; reasons may quote a value."""
    from streamgp.apps.maintenance import dead_letters as letters

    wanted = letters.Wanted(stage=stage, since=since)
    with _visited(where, broker) as deployment:
        click.echo(letters.listing(deployment.topics, wanted, last))


@dead_letters.command()
@click.argument("number")
@broker_option
@click.pass_obj
def show(where: tuple[Path, str | None], number: str, broker: str | None) -> None:
    """Show one dead letter: its key, its headers and its content.

    NUMBER is PARTITION:OFFSET, as `list` prints it. Content that is not text is shown in
    hexadecimal.
    """
    from streamgp.apps.maintenance import dead_letters as letters

    place = letters.place_of(number)
    with _visited(where, broker) as deployment:
        click.echo(letters.description(deployment.topics, place))


@dead_letters.command()
@click.argument("numbers", nargs=-1, metavar="[NUMBER]...")
@click.option("--all", "everything", is_flag=True, help="All that --stage and --since match.")
@_stage_option
@_since_option("those")
@_yes_option
@broker_option
@click.pass_obj
def resend(
    where: tuple[Path, str | None],
    broker: str | None,
    numbers: tuple[str, ...],
    everything: bool,
    stage: str | None,
    since: float | None,
    yes: bool,
) -> None:
    """Put dead letters back into the topics that they came from, with the same key and bytes.

    NUMBER is PARTITION:OFFSET, as `list` prints it. Send dead letters again once the cause is gone:
    the learner was replaced, the clock was set right, or the event of an answer has arrived. What
    still cannot be used becomes a dead letter again. The old dead letter always stays, so --all
    sends it again next time.

    An answer with an id counts once, however often it is sent. An event with an id is predicted
    once; sent again, it becomes a dead letter. Without an id, each copy counts as a new one.
    """
    from streamgp.apps.console import agreed
    from streamgp.apps.console import number as counted
    from streamgp.apps.deployment.deployment import write_all
    from streamgp.apps.maintenance import dead_letters as letters

    if bool(numbers) == everything:
        raise click.UsageError("name the dead letters to send again, or give --all")
    if numbers and (stage is not None or since is not None):
        raise click.UsageError("--stage and --since go with --all, not with numbers")
    wanted = letters.Wanted(stage=stage, since=since)
    places = [letters.place_of(text) for text in numbers]
    with _visited(where, broker) as deployment:
        found = letters.chosen(deployment.topics, places, wanted)
        records, n_left_out = letters.outgoing(found, skip=everything)
        if n_left_out:
            left_out = counted(n_left_out, "dead letter")
            click.echo(f"{left_out} left out: caused by a timer, or only the beginning was kept")
        if not records:
            click.echo("sent nothing")
            return
        question = f"send {letters.by_topic(records)}?"
        if not agreed(question, yes=yes, otherwise="sent nothing"):
            return
        write_all(deployment, records, program="dead-letters")
        click.echo(f"sent {letters.by_topic(records)}")


def _visited(
    group: tuple[Path, str | None], broker: str | None
) -> AbstractContextManager[Deployment]:
    """Open the topics; `--broker` of the command overrides that of the group."""
    from streamgp.apps.deployment.deployment import visit

    config_file, given = group
    return visit(config_file, broker or given)


# --- The command `streamgp rebuild`: another learner, trained on the labels so far.


@click.command()
@config_argument
@click.option(
    "--learner",
    "learner_file",
    required=True,
    metavar="NEW.toml",
    type=GivenPath(),
    help="File with the changes: any of preset, seed, warm_up, rescale, [learner], [temporal], "
    "[drift_test], [query], [challenge], [review], [reservoir], [budget], [total_budget] and "
    "[questions]. Each replaces the one in CONFIG.toml. Other sections are ignored.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Let the workers continue with the new learners. Stop all workers first.",
)
@click.option("--yes", is_flag=True, help="With --take-over: do not ask for confirmation.")
@broker_option
def rebuild(
    config_file: Path, learner_file: Path, take_over: bool, yes: bool, broker: str | None
) -> None:
    """Teach another learner the labels in the topics, and compare it with the current one.

    CONFIG.toml is the workers' configuration. For every key, both learners are taught the labelled
    examples, in the order learned and with the labels that are now in force; each predicts an
    example before it learns it. The table shows how often they were right, how often they agreed,
    what the new one could not learn, and what it costs. This changes nothing, and workers may keep
    running.

    With --take-over, the new learners replace the old ones. Open questions stay open; budgets start
    over. Stop all workers first; afterwards copy NEW.toml into CONFIG.toml and restart them. If the
    command is interrupted, workers refuse to start until you have run it again.

    \b
    Examples:
      streamgp rebuild worker.toml --learner new.toml
      streamgp rebuild worker.toml --learner new.toml --take-over
    """
    from streamgp.apps.maintenance.rebuild import rebuild_learners

    rebuild_learners(config_file, learner_file, take_over=take_over, yes=yes, broker=broker)


# --- The command `streamgp recover`: lost state, rebuilt from the labels learned.


@click.command()
@config_argument
@_yes_option
@broker_option
def recover(config_file: Path, yes: bool, broker: str | None) -> None:
    """Rebuild the topic `state` from the topic `consensus`.

    CONFIG.toml is the workers' configuration. If `state` was deleted, emptied, truncated or
    restored from an older copy, workers refuse to run, because they would number what they learn
    from 1 again. Stop all workers, create `state` again if it is gone (first example), then run
    this command. It prints what can and cannot be recovered, and writes nothing until you agree.

    Labels, their order and their corrections are recovered exactly. Learners are taught again and
    may predict slightly differently, because their scaling has seen only labelled events. Sequence
    numbers that workers without state have assigned twice are assigned again in the order of
    writing. Learners whose state is complete are left as they are.

    Records that no worker can have written, in either topic, are named with partition and offset,
    and removed. A label that such a record has overwritten is withdrawn.

    If the command is interrupted, workers refuse to start until you have run it again. `consensus`
    itself cannot be recovered: there is no other copy of it.

    \b
    Examples:
      streamgp check worker.toml --create-topics
      streamgp recover worker.toml
    """
    from streamgp.apps.maintenance.recover import recover_state

    recover_state(config_file, yes=yes, broker=broker)


# --- The commands `streamgp backup` and `streamgp restore`: what was learned, as files.


@click.command()
@config_argument
@click.argument("directory", metavar="DIR", type=GivenPath())
@broker_option
def backup(config_file: Path, directory: Path, broker: str | None) -> None:
    """Write what the workers have learned to files in DIR, which must be new or empty.

    CONFIG.toml is the workers' configuration; the workers may keep running. For each partition, the
    backup holds the topics `state` and `consensus` as they were at one moment, and how far the
    inputs had been processed by then. The files are lines of JSON with checksums. They hold what
    people said: only their owner can read them, and they stay until you delete them.

    The backup does not include events, predictions and inputs not yet processed.

    \b
    Examples:
      streamgp backup worker.toml backups/monday
    """
    from streamgp.apps.maintenance.backup import back_up

    back_up(config_file, directory, broker=broker)


@click.command()
@config_argument
@click.argument("directory", metavar="DIR", type=GivenPath())
@_yes_option
@broker_option
def restore(config_file: Path, directory: Path, yes: bool, broker: str | None) -> None:
    """Write the backup in DIR into topics in which nothing was learned yet.

    CONFIG.toml is the workers' configuration. Stop all workers first. The topics may be on a
    broker other than that of the backup, in Kafka or in a directory, and may have another number of
    partitions. Given the same inputs, predictions are bitwise those of the workers that were backed
    up.

    The command refuses a damaged backup, a backup of another group or configuration, topics that
    are not empty, and a group that has processed more inputs than the backup records. If it is
    interrupted, workers refuse to start until you have run it again.

    \b
    Examples:
      streamgp restore worker.toml backups/monday
      streamgp restore worker.toml backups/monday --broker file://./topics
    """
    from streamgp.apps.maintenance.backup import restore as put_back

    put_back(config_file, directory, yes=yes, broker=broker)


# --- The command `streamgp audit`: who gave which label, and its outcome.


@click.command()
@config_argument
@click.option("--key", metavar="KEY", help="Only events of this key.")
@click.option("--event", "event_id", metavar="ID", help="Only this event.")
@click.option("--annotator", metavar="NAME", help="Only events about which NAME said something.")
@click.option("--label", metavar="Y", help="Only events that had this label or a similar one.")
@_since_option("events where something happened")
@click.option(
    "--format",
    type=click.Choice(("text", "csv", "json")),
    default="text",
    show_default=True,
    help="Print sentences (text), or a row (csv) or line of JSON (json) for each thing that "
    "happened.",
)
@_last_option("With --format text: show the last N events.")
@broker_option
def audit(
    config_file: Path,
    key: str | None,
    event_id: str | None,
    annotator: str | None,
    label: str | None,
    since: float | None,
    format: Format,
    last: int,
    broker: str | None,
) -> None:
    """Show the history of labels: who said what, and what became of it.

    It tells what was learned, doubted, changed or refused. CONFIG.toml is the workers'
    configuration; the workers may keep running. Without options, the command prints a table of
    annotators; with options, the whole history of each matching event. It reads the topics
    `requests`, `answers`, `consensus`, `dead-letters` and `state`, and goes back as far as they do.

    \b
    Examples:
      streamgp audit worker.toml
      streamgp audit worker.toml --annotator bob --since 2d
      streamgp audit worker.toml --label hall --format csv
    """
    from streamgp.apps.console import seen
    from streamgp.apps.maintenance.audit import Wanted, audit_labels

    wanted = Wanted(key=key, event_id=event_id, annotator=annotator, label=label, since=since)
    text = audit_labels(config_file, wanted, format=format, last=last, broker=broker)
    if text:
        click.echo(seen(text))


# --- The command `streamgp labels`: the labels that are in force, as a table.


@click.command()
@config_argument
@click.option("--key", "keys", metavar="KEY", multiple=True, help="Only this key. May be repeated.")
@click.option(
    "--format",
    type=click.Choice(("csv", "jsonl")),
    default="csv",
    show_default=True,
    help="CSV with a header, or a JSON object on each line, which also tells the text 1 from the "
    "number.",
)
@click.option(
    "--out",
    type=GivenPath("file", refuses_dash=True),
    metavar="FILE",
    help="Write to this file instead of standard output. If it is new, only you can read it; an "
    "existing one is replaced.",
)
@broker_option
def labels(
    config_file: Path,
    keys: tuple[str, ...],
    format: Literal["csv", "jsonl"],
    out: Path | None,
    broker: str | None,
) -> None:
    """Print the labels collected so far as a table, a row for each labelled event.

    CONFIG.toml is the workers' configuration; the workers may keep running, but need not. A row has
    the label that is in force, what the first answer said, who gave the label, how it came about,
    when the event occurred (empty if `requests` no longer tells) and when the label was learned,
    and the event's features as received, each in a column x.NAME. Labels that were taken back,
    retracted or forgotten are left out. The rows are in the order learned.

    The table names annotators. The second example replays it.

    \b
    Examples:
      streamgp labels worker.toml --out labels.csv
      streamgp replay labels.csv --label label --time learned_at --features 'x.*'
      streamgp labels worker.toml --key ann --key bob --format jsonl | jq .label
    """
    from streamgp.apps.maintenance.labels import export_labels

    if out is not None:
        check_output(out, read=[config_file])
    export_labels(config_file, keys=keys, format=format, out=out, broker=broker)


# --- The command `streamgp retract`: every label of one annotator, taken back.


@click.command()
@config_argument
@click.option(
    "--annotator", required=True, metavar="NAME", help="Annotator, by the name in the answers."
)
@_since_option("labels learned")
@click.option("--dry-run", is_flag=True, help="Only print how many labels there are.")
@click.option("--undo", is_flag=True, help="Put the annotator's retracted labels back.")
@_yes_option
@_wait_option(60.0, "How many seconds to wait for the workers.")
@broker_option
def retract(
    config_file: Path,
    annotator: str,
    since: float | None,
    dry_run: bool,
    undo: bool,
    yes: bool,
    wait_s: float,
    broker: str | None,
) -> None:
    """Take back every label of one annotator.

    CONFIG.toml is the configuration of the workers or of the job on Flink, which retract the labels
    while they run. First make sure that the annotator no longer answers. The command waits until
    the labels are retracted; if no worker is running, that happens when one starts. Afterwards,
    learners and the reliability of all annotators are bitwise those rebuilt from the remaining
    labels. If another annotator has labelled the same event, that label is in force again; other
    events are left without a label, and can get a new one.

    Past questions and predictions do not change. The changes to each learner are one transaction:
    all of them are written, or none.

    Retracted labels are kept, where learners do not see them, until the key is forgotten; --undo
    puts them back. Labels that were contested and not yet learned do not come back.

    \b
    Examples:
      streamgp retract worker.toml --annotator bob --dry-run
      streamgp retract worker.toml --annotator bob --since 2d
      streamgp retract worker.toml --annotator bob --undo

    \b
    Exit status, besides those of every command:
      3  the request was sent, but some learners have not carried it out (yet)
    """
    from streamgp.apps.maintenance.retract import retract_labels

    if undo and since is not None:
        raise click.UsageError("--since cannot be used with --undo")
    retract_labels(
        config_file,
        annotator,
        since=since,
        dry_run=dry_run,
        undo=undo,
        yes=yes,
        wait_s=wait_s,
        broker=broker,
    )


# --- The command `streamgp forget`: one person removed from a replay or a deployment.


@click.command()
@click.argument(
    "place",
    metavar="DIR|CONFIG.toml",
    type=GivenPath("directory or file", refuses_dash=True, readable=False),
    shell_complete=completed_as("file"),
)
@click.argument("key")
@click.option("--yes", is_flag=True, help="With CONFIG.toml: do not ask for confirmation.")
@_wait_option(30.0, "With CONFIG.toml: how many seconds to wait for the worker.")
@broker_option
def forget(place: Path, key: str, yes: bool, wait_s: float, broker: str | None) -> None:
    """Remove one person from a run or from a deployment, for good.

    For a replay, give DIR, the directory that `streamgp replay --key COLUMN --state DIR` saved; KEY
    is one of the values in that column. The command removes the learner of that key and all its
    labels, questions and answers; its share of every count; and, if the run used --out, its lines
    in the message files and its results in summary.json. The replay must not be running. The log
    itself, pages made by --report, and copies of DIR are not touched. Afterwards, the same
    `streamgp replay` command continues the run. If `forget` is interrupted, run it again first.

    For a deployment, give CONFIG.toml, the configuration of `streamgp run`; KEY is the key of the
    person's events. The worker that has the key forgets its learner, its open questions, and what
    the topics of labels and state hold of it; the command waits until that is done. The other
    topics keep their records until their retention time; the command names these topics.

    This cannot be undone. Future events of that key start with a learner that knows nothing.

    \b
    Examples:
      streamgp replay phones.parquet --label activity --key user --out results --state state
      streamgp forget state ann
      streamgp forget worker.toml ann

    \b
    Exit status, besides those of every command:
      3  the request was sent, but the worker has not carried it out yet
    """
    if place.is_file():
        from streamgp.apps.maintenance.forget import forget_in_topics

        forget_in_topics(place, key, yes=yes, wait_s=wait_s, broker=broker)
        return
    if broker is not None:
        raise click.UsageError("--broker can be used only with CONFIG.toml, not with a directory")
    from streamgp.apps.replay.forget import forget_key

    click.echo(forget_key(place, key))


@click.command()
@click.argument("directory", metavar="DIR", type=GivenPath())
def migrate(directory: Path) -> None:
    """Move the topics of a broker file://DIR from files into a database.

    Versions before the release of 0.1.0 kept each topic as a file of lines (`events.jsonl` and so
    on). Stop everything that uses the directory, then run this once. Nothing is lost: records,
    positions and the state of workers stay valid. The files move to the folder `migrated` in DIR.

    If the command is interrupted, the topics are either unchanged or complete; run it again to
    finish.

    \b
    Examples:
      streamgp migrate ./topics
    """
    from connectors.embedded.migration import migrate as move

    for line in move(directory) or [f"{directory} has nothing to migrate"]:
        click.echo(line)
