"""Retraction of one annotator's labels in a deployment (`streamgp retract`), and its undo.

What is written is one transaction: corrected labels, the state of the learners that were taught
again, and what an undo needs. It is written as the only member of the workers' group, so that a
worker that begins meanwhile keeps it from being written.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time

import click

from connectors.topics import Outgoing, Reader
from connectors.wire import state_records
from connectors.wire.inbound import flaw_of_name
from connectors.wire.outbound import Outbound
from connectors.wire.state_records import (
    PIECES,
    History,
    HistoryError,
    consensus_key,
    parts_of,
    retraction_name,
    retraction_value,
)
from connectors.worker.compatibility import UnfitTopicsError, check_signed
from connectors.worker.settings import LoopSettings, source_of
from streamgp.apps.console import confirm, number, progress
from streamgp.apps.deployment.contents import Learned, check_whole, histories_of, loops_in
from streamgp.apps.deployment.deployment import Deployment, build_loops, damage, visit
from streamgp.apps.maintenance.rebuild import check_idle
from streamgp.apps.maintenance.recover import outdated
from streamgp.common.printable import printable
from streamgp.interactive.loop import InteractiveLoop
from streamgp.interactive.messages import Cancel, LabelledExample, Retraction
from streamgp.interactive.retract import (
    Relearned,
    contests,
    merged,
    with_again,
    without,
)
from streamgp.interactive.state.restartable_loop import arguments_of
from streamgp.interactive.state.snapshot import SnapshotError

_PATIENCE_S = 0.5
_JOIN_S = 60.0
_ABOUT = """\
learners and the reliability of all annotators will be those rebuilt from the labels that are left
not undone: questions asked, what was spent of budgets, predictions, withdrawals; answers that no
  worker has read yet will be learned: revoke the annotator's access first"""
_ABOUT_UNDO = """\
learners and the reliability of all annotators will be those rebuilt with these labels among them"""


@dataclass(slots=True)
class Plan:
    """Labels that would be taken back, or put back.

    Attributes
    ----------
    loops
        The loops that change.
    n_labels, n_contested
        Labels that were learned, and learners that wait for the answer to a challenge of one more.
    n_gone, n_stand
        Events that have no label then, and such whose label another annotator has given.

    """

    loops: list[Learned] = field(default_factory=list)
    n_labels: int = 0
    n_contested: int = 0
    n_gone: int = 0
    n_stand: int = 0


def retract_labels(
    config_file: Path,
    annotator: str,
    *,
    since: float | None = None,
    dry_run: bool = False,
    undo: bool = False,
    yes: bool = False,
    broker: str | None = None,
) -> None:
    """Take back every label of one annotator, or undo that; say first how many.

    Raises
    ------
    ConfigError
        If the configuration is wrong.
    click.ClickException
        If workers are running, there is no such label, or the topics are another group's, another
        configuration's, or have lost something.

    """
    flaw = flaw_of_name(annotator)
    if flaw is not None:
        raise click.UsageError(f"--annotator {flaw}")
    with visit(config_file, broker) as there:
        loops = build_loops(there.config, source=str(config_file))
        if not dry_run:
            check_idle(there, "retract")
        with closing(there.topics.reader(("state", "consensus"))) as reader:
            try:
                histories = _histories(there, reader, loops)
                named = _retractions_of(histories, annotator) if undo else {}
                plan = (
                    _plan_of_undo(histories, loops, named)
                    if undo
                    else _plan(histories, loops, annotator, since)
                )
                if not plan.loops:
                    raise click.ClickException(_nothing(annotator, undo=undo, since=since))
                click.echo(_told(plan, annotator, undo=undo))
                if dry_run:
                    return
                click.echo(_ABOUT_UNDO if undo else _ABOUT)
                what = "put them back?" if undo else "take them back?"
                if not (yes or confirm(what)):
                    click.echo("changed nothing")
                    return
                records = list(
                    _records(plan, histories, loops, there.group, annotator, since, named)
                )
            except HistoryError as error:
                raise click.ClickException(damage(error, there.config)) from None
            _commit(there, reader, records)
        done = "put back" if undo else "took back"
        click.echo(
            f"{done} {number(plan.n_labels, 'label')} of {printable(repr(annotator))}; now start "
            "the workers"
        )


def _histories(there: Deployment, reader: Reader, loops: LoopSettings) -> dict[int, History]:
    """Read what was learned, once it was found to be of this deployment, and whole."""
    histories = histories_of(reader)
    check_whole(there.topics, there.group, histories)
    for partition, history in histories.items():
        if history.configuration is not None:
            try:
                check_signed(partition, history.configuration, loops.configuration, there.group)
            except UnfitTopicsError as error:
                raise click.ClickException(str(error)) from None
    return histories


def _plan(
    histories: Mapping[int, History], loops: LoopSettings, annotator: str, since: float | None
) -> Plan:
    plan = Plan()
    for loop in loops_in(histories, keyed=loops.keyed):
        left, taken = without(loop.lines, annotator, since)
        contested = contests(loop.parts, annotator)
        if taken or contested:
            plan.loops.append(loop)
            plan.n_labels += len(taken)
            plan.n_contested += contested
            _count_events(plan, {line.event_id for line in taken}, left)
    return plan


def _retractions_of(
    histories: Mapping[int, History], annotator: str
) -> dict[tuple[int, str], Retraction]:
    """Return what was taken back of an annotator, by partition and entity.

    Raises
    ------
    click.ClickException
        If labels of another annotator about the same events were taken back later.

    """
    found = {}
    for partition, history in histories.items():
        for entity in history.entities():
            kept = history.retractions(entity)
            mine = _of_annotator(kept, annotator)
            if mine is None:
                continue
            events = {line.event_id for line in mine.taken}
            for other in kept:
                if other.at > mine.at and events & {line.event_id for line in other.taken}:
                    raise click.ClickException(
                        f"labels of {printable(repr(other.annotator))} about the same events were "
                        "taken back later; undo that first"
                    )
            found[partition, entity] = mine
    return found


def _of_annotator(kept: Iterable[Retraction], annotator: str) -> Retraction | None:
    """Return all that was taken back of an annotator, by this command or by a quarantine."""
    found: Retraction | None = None
    for each in kept:
        if each.annotator == annotator:
            found = merged(found, each)
    return found


def _plan_of_undo(
    histories: Mapping[int, History],
    loops: LoopSettings,
    named: Mapping[tuple[int, str], Retraction],
) -> Plan:
    plan = Plan()
    for loop in loops_in(histories, keyed=loops.keyed):
        retraction = named.get((loop.partition, loop.entity))
        if retraction is not None:
            _, back = with_again(loop.lines, retraction)
            plan.loops.append(loop)
            plan.n_labels += len(back)
    return plan


def _count_events(plan: Plan, events: Iterable[str], left: Iterable[LabelledExample]) -> None:
    standing = {line.event_id for line in left if line.y is not None}
    for event_id in events:
        plan.n_stand += event_id in standing
        plan.n_gone += event_id not in standing


def _nothing(annotator: str, *, undo: bool, since: float | None) -> str:
    name = printable(repr(annotator))
    if undo:
        return f"no labels of {name} were taken back; there is nothing to undo"
    when = "" if since is None else " since then"
    return f"no learner holds a label of {name}{when}; nothing was taken back"


def _told(plan: Plan, annotator: str, *, undo: bool) -> str:
    labels = f"{number(plan.n_labels, 'label')} of {printable(repr(annotator))}"
    where = f"in {number(len(plan.loops), 'learner')}"
    if undo:
        return f"{labels} {where} can be put back"
    text = (
        f"{labels} {where}: {number(plan.n_gone, 'event')} would have no label, "
        f"{number(plan.n_stand, 'event')} one of another annotator"
    )
    if plan.n_contested:
        text += (
            f"\nin {number(plan.n_contested, 'learner')} labels that are contested and not learned "
            "yet; they would not be learned"
        )
    return text


def _records(
    plan: Plan,
    histories: Mapping[int, History],
    loops: LoopSettings,
    group: str,
    annotator: str,
    since: float | None,
    named: Mapping[tuple[int, str], Retraction],
) -> Iterator[Outgoing]:
    """Teach the learners again; yield what is to be written."""
    now = time()
    outbox = Outbound(source_of(group), keyed=loops.keyed)
    name = retraction_name(annotator)
    with progress() as show:
        for n, learned in enumerate(plan.loops):
            show(f"teaching: {number(n + 1, 'learner')}", n / len(plan.loops))
            place = learned.partition, learned.entity
            history = histories[learned.partition]
            loop = _restored(learned, loops)
            undone = named.get(place)
            if undone is not None:
                relearned = loop.reinstate(undone, learned.lines, now)
            else:
                relearned = loop.retract(annotator, learned.lines, now, since=since)
            made = relearned.retraction
            yield from _lines(learned, relearned, undone or made, history, outbox)
            parts = loop.changes()
            if undone is not None:
                names = history.names(learned.entity)
                parts |= dict.fromkeys(
                    each
                    for each in names
                    if each.partition(PIECES)[0] == name or each.startswith(f"{name}/")
                )
            elif made is not None:
                earlier = _of_annotator(history.retractions(learned.entity), annotator)
                parts[name] = retraction_value(merged(earlier, made))
            for part, value in parts.items():
                yield from state_records.states(learned.entity, part, value, learned.partition)
    # No snapshot of a worker from before can be merged.
    yield from outdated({partition: histories[partition] for partition in _places(plan.loops)})


def _places(loops: Sequence[Learned]) -> list[int]:
    return sorted({loop.partition for loop in loops})


def _restored(learned: Learned, loops: LoopSettings) -> InteractiveLoop:
    try:
        return InteractiveLoop.from_parts(
            learned.parts, learned.lines, loops.model.clone(), **arguments_of(loops.spans)
        )
    except SnapshotError as error:
        raise click.ClickException(f"{learned.name!r}: {error}; nothing was changed") from None


def _lines(
    learned: Learned,
    relearned: Relearned,
    retraction: Retraction | None,
    history: History,
    outbox: Outbound,
) -> Iterator[Outgoing]:
    """Yield what makes the log in the topics the one that is left, and the questions that end."""
    entity, partition = learned.entity, learned.partition
    for message in relearned.messages:
        if isinstance(message, Cancel):
            yield outbox.message(message, partition)
    before = {_key(entity, line): line for line in learned.lines}
    left = {_key(entity, line): line for line in relearned.log}
    # Whatever else there is about these events: no line must outlive what replaces it.
    events = set() if retraction is None else {line.event_id for line in retraction.taken}
    for key in history.consensus_keys(entity):
        if key not in left and parts_of(key)[1] in events:
            yield outbox.erase(key, partition)
    for key, line in left.items():
        if before.get(key) != line:
            yield outbox.message(line, partition)


def _key(entity: str, line: LabelledExample) -> bytes:
    return consensus_key(entity, line.event_id, line.revision)


def _commit(there: Deployment, reader: Reader, records: Sequence[Outgoing]) -> None:
    """Write everything in one transaction, unless a worker is at work by now."""
    # It polls for the sake of its place in the group only, and takes no input.
    client = there.topics.client(group=there.group, instance="upkeep", max_records=0)
    try:
        end = monotonic() + _JOIN_S
        while not client.assigned and monotonic() < end:
            client.poll(_PATIENCE_S)
        is_alone = len(client.assigned) == there.topics.n_partitions()
        if not is_alone or reader.poll(_PATIENCE_S):
            raise click.ClickException(
                "a worker has begun meanwhile, nothing was changed; stop all workers, then run "
                "this again"
            )
        client.commit(records)
    finally:
        client.close(leave=True)
