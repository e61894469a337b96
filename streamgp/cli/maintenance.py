"""The command `streamgp dead-letters`: what could not be used, and sending it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from streamgp.cli.options import Number, WholeNumber, broker_option, config_argument, path_to

if TYPE_CHECKING:
    from streamgp.apps.maintenance import dead_letters as letters


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


class _OptionsBehindTheFile(click.Group):
    """A group whose options may follow CONFIG.toml, as they do in all other commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, those of the group first."""
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
@broker_option
@_stage_option
@_since_option
@click.option(
    "--last",
    type=WholeNumber(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many to show.",
)
@click.pass_obj
def list_(
    where: tuple[Path, str | None],
    broker: str | None,
    stage: str | None,
    since: str | None,
    last: int,
) -> None:
    """List dead letters with their numbers, oldest first; reasons may quote a value."""
    from streamgp.apps.deployment.deployment import visit
    from streamgp.apps.maintenance import dead_letters as letters

    wanted = _wanted(stage, since)
    with visit(*_where(where, broker)) as deployment:
        click.echo(letters.listing(deployment.topics, wanted, last))


@dead_letters.command()
@click.argument("number")
@broker_option
@click.pass_obj
def show(where: tuple[Path, str | None], number: str, broker: str | None) -> None:
    """Show one dead letter: its key, its headers, and what was in it.

    NUMBER is PARTITION:OFFSET, as `list` prints it. What is no text is shown as hexadecimal digits.
    """
    from streamgp.apps.deployment.deployment import visit
    from streamgp.apps.maintenance import dead_letters as letters

    place = letters.place_of(number)
    with visit(*_where(where, broker)) as deployment:
        click.echo(letters.description(deployment.topics, place))


@dead_letters.command()
@click.argument("numbers", nargs=-1, metavar="[NUMBER]...")
@click.option("--all", "everything", is_flag=True, help="All that --stage and --since leave.")
@_stage_option
@_since_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@broker_option
@click.pass_obj
def resend(
    where: tuple[Path, str | None],
    broker: str | None,
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
    from streamgp.apps.console import confirm
    from streamgp.apps.console import number as counted
    from streamgp.apps.deployment.deployment import visit, write_all
    from streamgp.apps.maintenance import dead_letters as letters

    if bool(numbers) == everything:
        raise click.UsageError("name the dead letters to send again, or give --all")
    if numbers and (stage is not None or since is not None):
        raise click.UsageError("--stage and --since go with --all, not with numbers")
    wanted, places = _wanted(stage, since), [letters.place_of(text) for text in numbers]
    with visit(*_where(where, broker)) as deployment:
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
        write_all(deployment, records, program="dead-letters")
        click.echo(f"sent {letters.by_topic(records)}")


def _where(group: tuple[Path, str | None], broker: str | None) -> tuple[Path, str | None]:
    """Return the configuration and the broker: `--broker` of the command, or of the group."""
    config_file, given = group
    return config_file, broker or given


def _wanted(stage: str | None, since: str | None) -> letters.Wanted:
    from streamgp.apps.maintenance import dead_letters as letters

    moment = None if since is None else letters.moment_of(since, letters.now())
    return letters.Wanted(stage=stage, since=moment)


# --- The command `streamgp rebuild`: another learner, taught what the people have said so far.


@click.command()
@config_argument
@click.option(
    "--learner",
    "learner_file",
    required=True,
    metavar="NEW.toml",
    type=click.Path(path_type=Path),
    help="What is to be different: any of preset, seed, warm_up, rescale, [learner], [temporal], "
    "[query], [challenge], [review], [reservoir] and [budget], each in place of the one in "
    "CONFIG.toml. Other sections are not looked at.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Let the workers go on with the new learners. No worker may be running.",
)
@click.option("--yes", is_flag=True, help="With --take-over: do not ask.")
@broker_option
def rebuild(
    config_file: Path, learner_file: Path, take_over: bool, yes: bool, broker: str | None
) -> None:
    """Teach another learner the labels that the topics hold, and compare it with the present one.

    CONFIG.toml is that of the workers. For every key both learners are taught the labelled
    examples, in the order learned and with the labels that stand now; each predicts an example
    before it learns it. The table shows how often they were right, how often they said the same,
    what the new one could not learn, and what it costs. Nothing is changed by that, and workers may
    run meanwhile.

    With --take-over the new learners replace the old ones. Open questions stay open; budgets start
    over. Stop all workers first; afterwards put what is in NEW.toml into CONFIG.toml and restart
    them. If it is cut, workers refuse to start until it was run again.

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
@click.option("--yes", is_flag=True, help="Do not ask.")
@broker_option
def recover(config_file: Path, yes: bool, broker: str | None) -> None:
    """Rebuild the topic `state` from the topic `consensus`.

    CONFIG.toml is that of the workers. When `state` was deleted, emptied, cut or put back from an
    older copy, workers refuse to run: they would number what they learn from 1 again. Stop them
    all, make `state` again if it is gone (`streamgp check CONFIG.toml --create-topics`), then run
    this. What can and cannot come back is printed, and nothing is written before you agree.

    Labels, their order and their corrections come back exactly. Learners are taught once more, and
    may predict a little differently: their scaling has seen labelled events only. Sequence numbers
    that were given twice, by workers that went on without state, are assigned again in the order of
    writing. Learners whose state is whole are left as they are.

    If it is cut, workers refuse to start until it was run again. `consensus` itself, once lost,
    is nowhere else.

    \b
    Examples:
      streamgp recover worker.toml
    """
    from streamgp.apps.maintenance.recover import recover_state

    recover_state(config_file, yes=yes, broker=broker)


# --- The commands `streamgp backup` and `streamgp restore`: what was learned, as files.


@click.command()
@config_argument
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@broker_option
def backup(config_file: Path, directory: Path, broker: str | None) -> None:
    """Write what the workers have learned to files in DIR, which must be new or empty.

    CONFIG.toml is that of the workers, which may be at work meanwhile. What is written is what the
    topics `state` and `consensus` hold at one moment of each partition, and how far the inputs were
    worked off by then. The files are lines of JSON with checksums. They hold what people said:
    they are their owner's alone, and keep it until you delete them.

    Events, predictions and open inputs are not in it.

    \b
    Examples:
      streamgp backup worker.toml backups/monday
    """
    from streamgp.apps.maintenance.backup import back_up

    back_up(config_file, directory, broker=broker)


@click.command()
@config_argument
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@broker_option
def restore(config_file: Path, directory: Path, yes: bool, broker: str | None) -> None:
    """Write a backup in DIR into topics in which nothing was learned so far.

    CONFIG.toml is that of the workers; none may be running. The topics may be on another broker
    than those that were backed up, in Kafka or in a directory, with another number of partitions.
    From the same inputs on, predictions are those of the workers that were backed up, bitwise.

    Refused are a damaged backup, one of another group or configuration, topics that are not empty,
    and a group that has worked off more than the backup knows. If it is cut, workers refuse to
    start until it was run again.

    \b
    Examples:
      streamgp restore worker.toml backups/monday
      streamgp restore worker.toml backups/monday --broker file://./topics
    """
    from streamgp.apps.maintenance.backup import restore as put_back

    put_back(config_file, directory, yes=yes, broker=broker)


# --- The command `streamgp audit`: who said what, and what became of it.


@click.command()
@config_argument
@click.option("--event", "event_id", metavar="ID", help="Only this event.")
@click.option("--annotator", metavar="NAME", help="Only events about which NAME has said anything.")
@click.option("--label", metavar="Y", help="Only events that had this label, or nearly.")
@click.option(
    "--since",
    metavar="WHEN",
    help="Only events with something since then: how long ago (30s, 15min, 2h, 7d), or a time "
    "(2026-08-01T14:30:00Z).",
)
@click.option(
    "--format",
    type=click.Choice(("text", "csv", "json")),
    default="text",
    show_default=True,
    help="Sentences; or a row, or a line of JSON, for everything that happened.",
)
@click.option(
    "--last",
    type=WholeNumber(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="With sentences: how many events to show.",
)
@broker_option
def audit(
    config_file: Path,
    event_id: str | None,
    annotator: str | None,
    label: str | None,
    since: str | None,
    format: str,
    last: int,
    broker: str | None,
) -> None:
    """Tell the story of labels: who said what, what was learned, doubted, changed or refused.

    CONFIG.toml is that of the workers, which may be at work. Without an option there is a table of
    annotators; otherwise the whole story of each event that is meant. It is read off the topics
    `requests`, `answers`, `consensus`, `dead-letters` and `state`, and reaches back as far as they
    do.

    \b
    Examples:
      streamgp audit worker.toml
      streamgp audit worker.toml --annotator bob --since 2d
      streamgp audit worker.toml --label hall --format csv
    """
    from streamgp.apps.console import seen
    from streamgp.apps.maintenance.audit import Format, Wanted, audit_labels
    from streamgp.apps.maintenance.dead_letters import moment_of, now

    wanted = Wanted(
        event_id=event_id,
        annotator=annotator,
        label=label,
        since=None if since is None else moment_of(since, now()),
    )
    how: Format = "json" if format == "json" else "csv" if format == "csv" else "text"
    text = audit_labels(config_file, wanted, format=how, last=last, broker=broker)
    if text:
        click.echo(seen(text))


# --- The command `streamgp retract`: every label of one annotator, taken back.


@click.command()
@config_argument
@click.option(
    "--annotator", required=True, metavar="NAME", help="Whose labels: the name in the answers."
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Only labels learned since then: how long ago (30s, 15min, 2h, 7d), or a time "
    "(2026-08-01T14:30:00Z).",
)
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@click.option("--undo", is_flag=True, help="Put back what was taken back of the annotator.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--wait",
    "wait_s",
    type=Number(at_least=0.0),
    default=60.0,
    show_default=True,
    metavar="S",
    help="How many seconds to wait for the workers.",
)
@broker_option
def retract(
    config_file: Path,
    annotator: str,
    since: str | None,
    dry_run: bool,
    undo: bool,
    yes: bool,
    wait_s: float,
    broker: str | None,
) -> None:
    """Take back every label of one annotator.

    CONFIG.toml is that of the workers, or of the job on Flink, which do it while they work; keep
    the annotator from answering first. The command waits until it is done; where no worker runs, it
    will be when one does. Learners and the reliability of all annotators are afterwards those
    rebuilt from the labels that are left, bitwise. Where another annotator has labelled the same
    event, that label stands again; other events are without a label, and can be given one.

    Questions that were asked stay asked, and predictions that were made stay made. What is written
    for each learner is one transaction: all of it, or nothing.

    What was taken back is kept, out of the learners' sight, until the key is forgotten: --undo puts
    it back. Labels that were contested, and not learned yet, do not come back.

    \b
    Examples:
      streamgp retract worker.toml --annotator bob --dry-run
      streamgp retract worker.toml --annotator bob --since 2d
      streamgp retract worker.toml --annotator bob --undo

    \b
    Exit status, beside those of every command:
      3  the learners have the request, and some have not done it (yet)
    """
    from streamgp.apps.maintenance.dead_letters import moment_of, now
    from streamgp.apps.maintenance.retract import retract_labels

    if undo and since is not None:
        raise click.UsageError("--since goes with taking back, not with --undo")
    retract_labels(
        config_file,
        annotator,
        since=None if since is None else moment_of(since, now()),
        dry_run=dry_run,
        undo=undo,
        yes=yes,
        wait_s=wait_s,
        broker=broker,
    )


# --- The command `streamgp forget`: one person taken out of a replay, or out of a deployment.


def _directories_and_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


@click.command()
@click.argument(
    "place",
    metavar="DIR|CONFIG.toml",
    callback=path_to("directory or file"),
    shell_complete=_directories_and_files,
)
@click.argument("key")
@click.option("--yes", is_flag=True, help="With CONFIG.toml: do not ask.")
@click.option(
    "--wait",
    "wait_s",
    type=Number(at_least=0.0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="With CONFIG.toml: how many seconds to wait for the worker.",
)
@broker_option
def forget(place: Path, key: str, yes: bool, wait_s: float, broker: str | None) -> None:
    """Remove one person from a run or from a deployment, for good.

    With DIR, what `streamgp replay --key COLUMN --state DIR` saved, KEY is one of the values in
    that column. Removed are the learner of that key and all its labels, questions and answers; its
    share of every count; and, where the run was written to a directory with --out, its lines in
    the message files and its results in summary.json. The replay must not be running. The log
    itself is not touched, nor are pages made by --report, nor copies made of DIR.
    The same `streamgp replay` command goes on afterwards; if `forget` is cut, run it again first.

    With CONFIG.toml, the configuration of `streamgp run`, KEY is the key of the person's events.
    The worker that has the key forgets its learner, its open questions, and what the topics of
    labels and state hold of it; the command waits until that is done. The other topics keep what
    they hold until their retention time; the command names them.

    This cannot be undone. Events of that key still to come begin with a learner that knows nothing.

    \b
    Examples:
      streamgp replay phones.parquet --label activity --key user --out results --state state
      streamgp forget state ann
      streamgp forget worker.toml ann

    \b
    Exit status, beside those of every command:
      3  the worker has the request, and has not done it yet
    """
    if place.is_file():
        from streamgp.apps.maintenance.forget import forget_in_topics

        forget_in_topics(place, key, yes=yes, wait_s=wait_s, broker=broker)
        return
    if broker is not None:
        raise click.UsageError("--broker goes with CONFIG.toml, not with a directory")
    from streamgp.apps.replay.forget import forget_key

    click.echo(forget_key(place, key))


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def migrate(directory: Path) -> None:
    """Move the topics in DIR, of a broker file://DIR, from files into a database.

    Versions before 0.1.0 was released kept each topic as a file of lines (`events.jsonl` and so
    on). Stop all that uses the directory, then run this once. Nothing is lost: records, positions,
    and what workers keep of them stay valid. The files move to the folder `migrated` in DIR.

    If it is cut, the topics are as they were or as they will be; run it again to complete it.

    \b
    Examples:
      streamgp migrate ./topics
    """
    from connectors.embedded.migration import migrate as move

    for line in move(directory) or [f"{directory} has nothing to migrate"]:
        click.echo(line)
