"""Retraction of one annotator's labels in a deployment (`streamgp retract`), and its undo.

Each learner with labels of the annotator gets a request, a null on the topic `consensus`, which
workers and Flink process like any other input, in one transaction with its results. This module
only reports how many labels there are, and checks whether it has happened.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, time, time_ns
from typing import TypeAlias

import click

from connectors.topics import COMPACTED, Outgoing, Place, Reader
from connectors.wire.codec import message_in
from connectors.wire.inbound import flaw_of_name, retraction_key
from connectors.wire.state_records import History
from connectors.worker.compatibility import (
    UnfitTopicsError,
    check_group,
    check_signed,
    is_on_flink,
)
from connectors.worker.losses import IF_UNREADABLE
from connectors.worker.settings import LoopSettings
from streamgp.apps.console import agreed, in_one_line, number, progress
from streamgp.apps.deployment.contents import check_complete, histories_of, loops_in
from streamgp.apps.deployment.deployment import (
    PATIENCE_S,
    Deployment,
    all_of,
    build_loops,
    everything,
    readable_topics,
    visit,
    write_all,
)
from streamgp.apps.maintenance.forget import NOT_YET, interruptible
from streamgp.common.printable import printable
from streamgp.interactive.consensus_log import in_force
from streamgp.interactive.messages import (
    Cancel,
    Challenge,
    Expired,
    LabelledExample,
    LabelRequest,
    Retraction,
)
from streamgp.interactive.retract import contests
from streamgp.interactive.retracted_log import to_undo, with_again, without
from streamgp.interactive.state.snapshot import INCONSISTENT

_SETTLED_S = 10.0
"""How long the results of a request may become visible after its position."""
_ABOUT = """\
learners and the reliability of all annotators will be those rebuilt from the remaining labels
not undone: questions asked, budgets spent, predictions, withdrawals; answers that no worker has
  read yet may still be learned: revoke the annotator's access first"""
_ABOUT_UNDO = """\
learners and the reliability of all annotators will be those rebuilt with these labels among them"""

_Owner: TypeAlias = tuple[int, str]
"""Partition and entity of a learner."""


@dataclass(slots=True)
class Plan:
    """Labels that would be taken back, or put back.

    Attributes
    ----------
    owners
        The learners that will change.
    n_labels, n_contested
        Number of learned labels, and of learners with a further label whose challenge is
        unanswered.
    n_gone, n_stand
        Number of events without a label afterwards, and of events with another annotator's label.

    """

    owners: list[_Owner] = field(default_factory=list)
    n_labels: int = 0
    n_contested: int = 0
    n_gone: int = 0
    n_stand: int = 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for: an annotator's labels, those since a time, taken back or put back."""

    annotator: str
    since: float | None
    undo: bool

    @property
    def name(self) -> str:
        """The annotator, as shown."""
        return printable(repr(self.annotator))

    def plan(
        self, histories: Mapping[int, History], owners: Iterable[_Owner] | None = None
    ) -> Plan:
        """Return the labels that would be taken back from, or put back to, some or all learners."""
        if self.undo:
            return _plan_of_undo(histories, owners, self.annotator)
        return _plan_of_lines(histories, owners, self.annotator, self.since)


def retract_labels(
    config_file: Path,
    annotator: str,
    *,
    since: float | None,
    dry_run: bool,
    undo: bool,
    yes: bool,
    wait_s: float,
    broker: str | None,
) -> None:
    """Have every label of one annotator taken back, or put back; first report how many.

    Raises
    ------
    click.ClickException
        If there is no such label, or the topics belong to another group or configuration, or have
        lost records.
    click.exceptions.Exit
        If it has not happened within `wait_s`, or no worker is running.

    """
    if flaw := flaw_of_name(annotator):
        raise click.UsageError(f"--annotator {flaw}")
    asked = _Asked(annotator, since, undo)
    with (
        visit(config_file, broker) as there,
        closing(there.topics.reader(COMPACTED)) as reader,
    ):
        loops = build_loops(there.config, source=str(config_file))
        with readable_topics(there.config):
            histories = histories_of(all_of(reader, what="reading"))
            on_flink = _is_kept_by_flink(there, loops, histories)
            plan = asked.plan(histories)
            if not undo:
                contested = (
                    _contested_on_flink(there, histories, loops, annotator)
                    if on_flink
                    else _contested(histories, loops, annotator)
                )
                plan.n_contested = len(contested)
                plan.owners = sorted({*plan.owners, *contested})
            if not plan.owners:
                raise click.ClickException(_nothing(asked))
            click.echo(_told(plan, asked))
            if dry_run:
                return
            click.echo(_ABOUT_UNDO if undo else _ABOUT)
            if not agreed("put them back?" if undo else "take them back?", yes=yes):
                return
            # Without the rights to see later how far the group is, nothing is sent.
            there.topics.backlog(there.group)
            with interruptible(f"the request about {asked.name}"):
                write_all(there, _requests(plan, asked), program="retract")
                is_there = on_flink or there.n_workers() > 0
                n_left = _left(there, reader, histories, plan, asked, wait_s) if is_there else None
        _tell_end(plan, asked, n_left, on_flink=on_flink, is_there=is_there)


def _is_kept_by_flink(
    there: Deployment, loops: LoopSettings, histories: Mapping[int, History]
) -> bool:
    """Return whether Flink keeps what was learned, after checking that it is this deployment's."""
    signed = {n: h.configuration for n, h in histories.items() if h.configuration is not None}
    on_flink = any(map(is_on_flink, signed.values()))
    if not on_flink:
        check_complete(there.topics, there.group, histories)
    for partition, theirs in signed.items():
        with in_one_line(UnfitTopicsError):
            if on_flink:  # only the job knows the configuration
                check_group(partition, theirs, there.group)
            else:
                check_signed(partition, theirs, loops.configuration, there.group)
    return on_flink


def _logs(
    histories: Mapping[int, History], owners: Iterable[_Owner] | None
) -> Iterator[tuple[_Owner, History]]:
    """Yield some or all learners, with the history of their partition."""
    if owners is None:
        owners = [(n, entity) for n, history in histories.items() for entity in history.entities()]
    for owner in owners:
        yield owner, histories[owner[0]]


def _plan_of_lines(
    histories: Mapping[int, History],
    owners: Iterable[_Owner] | None,
    annotator: str,
    since: float | None,
) -> Plan:
    plan = Plan()
    for owner, history in _logs(histories, owners):
        lines = in_force(history.lines(owner[1]))
        left, taken = without(lines, annotator, since)
        # All lines, as one of the annotator may repeat a label from before `since`.
        own = Retraction(annotator=annotator, since=since, at=time(), taken=tuple(lines)).own
        if own:
            plan.owners.append(owner)
            plan.n_labels += len(own)
            _count_events(plan, {line.event_id for line in taken}, left)
    return plan


def _plan_of_undo(
    histories: Mapping[int, History], owners: Iterable[_Owner] | None, annotator: str
) -> Plan:
    """Return the labels that would be put back.

    Raises
    ------
    click.ClickException
        If labels of another annotator about the same events were taken back later.

    """
    plan = Plan()
    for owner, history in _logs(histories, owners):
        with in_one_line(ValueError):
            retraction = to_undo(history.retractions(owner[1]), annotator)
        if retraction is not None:
            _, back = with_again(history.lines(owner[1]), retraction)
            plan.owners.append(owner)
            plan.n_labels += len(replace(retraction, taken=tuple(back)).own)
    return plan


def _contested(
    histories: Mapping[int, History], loops: LoopSettings, annotator: str
) -> set[_Owner]:
    """Return the learners with a contested, not yet learned label of an annotator.

    Raises
    ------
    click.ClickException
        If no worker could restore a learner either.

    """
    found = set()
    for loop in loops_in(histories, keyed=loops.keyed):
        try:
            if contests(loop.parts, annotator):
                found.add((loop.partition, loop.entity))
        except INCONSISTENT as error:
            raise click.ClickException(
                f"partition {loop.partition}: published state cannot be read: {error!s:.300}; "
                f"{IF_UNREADABLE}"
            ) from None
    return found


def _contested_on_flink(
    there: Deployment, histories: Mapping[int, History], loops: LoopSettings, annotator: str
) -> set[_Owner]:
    """Return the same from the open questions: on Flink the state is not in the topics."""
    challenges: dict[tuple[int, str, str], Challenge] = {}
    for record in everything(there.topics, "requests", what="looking for contested labels"):
        said = message_in(record.value)
        if not isinstance(said, LabelRequest | Challenge | Cancel | Expired):
            continue
        name = record.partition, str(said.key), said.request_id
        if isinstance(said, Challenge) and said.annotator == annotator:
            challenges[name] = said
        else:
            challenges.pop(name, None)
    found, now = set(), time()
    for (partition, _, _), challenge in challenges.items():
        entity = loops.entity(challenge.key)
        history = histories.get(partition, History())
        is_over = challenge.expires_at is not None and challenge.expires_at < now
        labelled = {line.event_id for line in in_force(history.lines(entity))}
        if not is_over and challenge.event_id not in labelled:
            found.add((partition, entity))
    return found


def _count_events(plan: Plan, events: Iterable[str], left: Iterable[LabelledExample]) -> None:
    standing = {line.event_id for line in left if line.y is not None}
    for event_id in events:
        plan.n_stand += event_id in standing
        plan.n_gone += event_id not in standing


def _nothing(asked: _Asked) -> str:
    if asked.undo:
        return f"no labels of {asked.name} were taken back; there is nothing to undo"
    when = "" if asked.since is None else " since then"
    return f"no learner holds a label of {asked.name}{when}; nothing was taken back"


def _told(plan: Plan, asked: _Asked) -> str:
    labels = f"{number(plan.n_labels, 'label')} of {asked.name}"
    where = f"in {number(len(plan.owners), 'learner')}"
    if asked.undo:
        return f"{labels} {where} can be put back"
    text = (
        f"{labels} {where}: {number(plan.n_gone, 'event')} would have no label, "
        f"{number(plan.n_stand, 'event')} one of another annotator"
    )
    if asked.since is not None and plan.n_stand:
        text += ", or an earlier one"
    if plan.n_contested:
        text += (
            f"\nin {number(plan.n_contested, 'learner')} labels that are contested and not learned "
            "yet; they would not be learned"
        )
    return text


def _requests(plan: Plan, asked: _Asked) -> Iterator[Outgoing]:
    n = time_ns()
    for partition, entity in plan.owners:
        key = retraction_key(entity, asked.annotator, n, since=asked.since, undo=asked.undo)
        yield Outgoing(topic="consensus", partition=partition, key=key, value=None)


def _left(
    there: Deployment,
    reader: Reader,
    histories: dict[int, History],
    plan: Plan,
    asked: _Asked,
    wait_s: float,
) -> int | None:
    """Wait until the requests are processed; return the number of labels left, None on timeout.

    Labels are left if a learner could not be taught again, or has since learned more.
    """
    backlog = there.topics.backlog(there.group)
    places: list[Place] = [("consensus", n) for n in sorted({n for n, _ in plan.owners})]
    ends = {place: backlog[place].end for place in places}
    end, heeded_at = monotonic() + wait_s, None
    with progress() as show:
        while monotonic() < end:
            for record in reader.poll(PATIENCE_S):
                histories.setdefault(record.partition, History()).take(record)
            show("waiting for the learners", None)
            if heeded_at is None:
                heeded_at = None if _waits(there, ends) else monotonic()
                continue
            n_left = asked.plan(histories, plan.owners).n_labels
            if not n_left or monotonic() - heeded_at > _SETTLED_S:
                return n_left
    return None


def _waits(there: Deployment, ends: Mapping[Place, int]) -> bool:
    """Return whether a record before some ends has not been read by the group."""
    positions = there.topics.positions(there.group)
    behind = {place: positions.get(place, 0) for place in ends}
    behind = {place: at for place, at in behind.items() if at < ends[place]}
    # Transaction markers at the end are no waiting records.
    return bool(behind and there.topics.readable(behind))


def _tell_end(
    plan: Plan, asked: _Asked, n_left: int | None, *, on_flink: bool, is_there: bool
) -> None:
    """Report the result.

    Raises
    ------
    click.exceptions.Exit
        If it is not complete.

    """
    labels = f"{number(plan.n_labels, 'label')} of {asked.name}"
    if n_left == 0:
        click.echo(f"{'put back' if asked.undo else 'took back'} {labels}")
        return
    done = "put back" if asked.undo else "taken back"
    if n_left:
        click.echo(
            f"request sent: {number(n_left, 'label')} of {asked.name} were not {done}: given "
            "since, or refused; `streamgp dead-letters` says why"
        )
    elif not is_there:
        click.echo(f"request sent: {labels} will be {done} when a worker runs; none is running now")
    else:
        who = "Flink has" if on_flink else "the workers have"
        click.echo(
            f"request sent: {who} not {done} {labels} yet; this happens when the request is read"
        )
    raise click.exceptions.Exit(NOT_YET)
