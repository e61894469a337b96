"""What `streamgp rebuild` does: two learners beside each other, and one in the place of the other.

Taking over writes a new head for every loop; the pages of conversations and the consensus log stay.
First every partition is marked as being rebuilt, in the end as worked on by the new configuration:
whatever happens in between, no worker goes on with half of it, and the same command ends it.

"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from connectors.records import Outgoing, Reader
from connectors.wire import statelog
from connectors.wire.history import History, HistoryError
from connectors.wire.statelog import CONFIGURATION
from connectors.worker.agreement import OtherGroupError, check_signed, signature
from streamgp.base import State
from streamgp.cli.configuration.addresses import FileAddress, parse_address
from streamgp.cli.configuration.build import Model, build_model, build_total_budget
from streamgp.cli.configuration.config import consistent, load_worker
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_settings import WorkerConfig
from streamgp.cli.deployment.deployed import damage
from streamgp.cli.deployment.learned import Learned, histories_of, loops_in
from streamgp.cli.deployment.losses import check_whole
from streamgp.cli.deployment.visiting import Deployment, visit
from streamgp.cli.terminal import confirm, progress
from streamgp.cli.upkeep.comparing import Comparison, compare, comparison_text
from streamgp.cli.wording import number
from streamgp.interactive.parts import HEAD
from streamgp.interactive.rebuilding import head_around
from streamgp.interactive.snapshot import SnapshotError
from streamgp.interactive.total import configured

LEARNER_SETTINGS = (
    "preset", "seed", "warm_up", "learner", "query", "challenge", "review", "reservoir", "budget"
)  # fmt: skip
"""What makes a learner, among the settings of a worker."""
BEING_REBUILT = "being rebuilt"
"""Stands in the place of a fingerprint while learners are exchanged; no configuration has it."""
_PATIENCE_S = 0.5


def rebuild_learners(
    config_file: Path, learner_file: Path, *, take_over: bool, yes: bool, broker: str | None = None
) -> None:
    """Compare two learners on what the topics hold, and let the new one take over if wanted.

    Raises
    ------
    ConfigError
        If one of the files is wrong.
    click.ClickException
        If workers are running, or the topics are another group's or hold what cannot be read.

    """
    with visit(config_file, broker) as there, ExitStack() as stack:
        config = with_learner(there.config, learner_file)
        old = build_model(there.config, source=str(config_file))
        new = build_model(config, source=str(learner_file))
        if take_over:
            check_idle(there, "take over")
        reader = stack.enter_context(closing(there.topics.reader(("state", "consensus"))))
        histories = histories_of(reader)
        try:
            check_whole(there.topics, there.group, histories)
            found = {n: history.configuration for n, history in histories.items()}
            if take_over:
                _check_group(found, there.group)
            total = build_total_budget(config)
            _note_others(found.values(), configured(old, total), config_file)
            rows, heads = _compared(
                histories, old, new, keyed=config.worker.keyed, with_heads=take_over
            )
        except HistoryError as error:
            raise click.ClickException(damage(error, there.config)) from None
        if not rows:
            raise click.ClickException(
                f"no worker of group {there.group} has written any state; start one first"
            )
        click.echo(comparison_text(rows, numbers=config.target == "number"))
        if not take_over:
            return
        question = f"let {number(len(heads), 'new learner')} take over?"
        if not (yes or confirm(question)):
            click.echo("changed nothing")
            return
        check_still_idle(there, reader, "take over")
        configuration = signature(
            {"fingerprint": configured(new, total), "keyed": config.worker.keyed}, there.group
        )
        partitions = [n for n in histories if found[n] is not None]
        write_state(there, marks(partitions, {**configuration, "fingerprint": BEING_REBUILT}))
        write_state(there, [*heads, *marks(partitions, configuration)])
        click.echo(
            f"{number(len(heads), 'new learner')} took over in "
            f"{number(len(partitions), 'partition')}; now put what is in {learner_file} into "
            f"{config_file}, and start the workers"
        )


def with_learner(config: WorkerConfig, learner_file: Path) -> WorkerConfig:
    """Return a configuration with the learner, or the rules, that another file names.

    Raises
    ------
    ConfigError
        If there is nothing of that in the file, or something is wrong.

    """
    new = load_worker(learner_file)
    named = tomllib.loads(learner_file.read_text(encoding="utf-8"))
    changes = {name: getattr(new, name) for name in LEARNER_SETTINGS if name in named}
    if not changes:
        raise ConfigError(
            f"{learner_file}: names no other learner; expected one or more of "
            f"{', '.join(LEARNER_SETTINGS)}"
        )
    changed = replace(config, **changes)
    consistent(changed, source=str(learner_file))
    return changed


def check_idle(there: Deployment, doing: str) -> None:
    """Refuse to go on while workers are at work."""
    n = there.n_workers()
    if n:
        raise click.ClickException(
            f"{number(n, 'worker')} of group {there.group} still at work; stop them all, then "
            f"{doing} (one that was killed counts until the broker misses it)"
        )


def check_still_idle(there: Deployment, reader: Reader, doing: str) -> None:
    """Refuse to write over what a worker has written since the topics were read."""
    check_idle(there, doing)
    if reader.poll(_PATIENCE_S):
        raise click.ClickException(
            "a worker has learned something meanwhile; stop all workers, then run this again"
        )


def _check_group(found: Mapping[int, Mapping[str, Any] | None], group: str) -> None:
    """Refuse to take over what is another group's.

    Its workers may be at work; and this group, which is nowhere yet, would read everything again.
    """
    for partition, configuration in found.items():
        try:
            check_signed(partition, configuration or {}, {}, group)
        except OtherGroupError as error:
            raise click.ClickException(str(error)) from None


def _note_others(
    found: Iterable[Mapping[str, Any] | None], fingerprint: str, config_file: Path
) -> None:
    """Say so if the topics were not written by workers of this configuration."""
    others = {str(each.get("fingerprint")) for each in found if each is not None} - {fingerprint}
    if BEING_REBUILT in others:
        click.echo("note: an earlier take-over was cut; this one can end it", err=True)
    elif others:
        click.echo(
            f"note: the workers did not learn as {config_file} says; `old` is what it says, not "
            "what they learned",
            err=True,
        )


def _compared(
    histories: Mapping[int, History],
    old: Model,
    new: Model,
    *,
    keyed: bool,
    with_heads: bool,
) -> tuple[list[Comparison], list[Outgoing]]:
    """Teach both learners; return how they compare and, if wanted, the heads of the new ones."""
    n_all = sum(
        len(history.consensus_keys(entity))
        for history in histories.values()
        for entity in history.entities()
    )
    n_done = 0
    rows: list[Comparison] = []
    heads: list[Outgoing] = []
    with progress() as show:
        for loop in loops_in(histories, keyed=keyed):
            row, taught = Comparison(name=loop.name), new.clone()
            for n in compare(row, loop.lines, old.clone(), taught):
                show(f"teaching: {number(len(rows) + 1, 'key')}", (n_done + n) / n_all)
            rows.append(row)
            n_done += len(loop.lines)
            if with_heads:
                head = _head(loop, taught, new.clone())
                heads += statelog.states(loop.entity, HEAD, head, loop.partition)
    return rows, heads


def _head(loop: Learned, model: Model, fresh: Model) -> State:
    try:
        return head_around(model, loop.parts, loop.lines, fresh)
    except (SnapshotError, TypeError) as error:
        raise click.ClickException(f"{loop.name!r}: {error}; nothing was changed") from None


def marks(partitions: Sequence[int], configuration: Mapping[str, Any]) -> list[Outgoing]:
    """Return the records that say which configuration works on some partitions."""
    return [statelog.state("", CONFIGURATION, configuration, partition) for partition in partitions]


def write_state(there: Deployment, records: Sequence[Outgoing]) -> None:
    """Write state in the place of a worker; return when it is safe."""
    if isinstance(parse_address(there.url), FileAddress):
        # In a directory only a worker can write state, and there is one at a time: be that one.
        link = there.topics.link(group=there.group, instance="upkeep", max_records=1)
        try:
            link.commit(records)
        finally:
            link.close()
        return
    writer = there.topics.writer("upkeep")
    try:
        for record in records:
            writer.send(record)
        writer.flush()
    finally:
        writer.close()
