"""Whether the topics of a deployment have lost what was learned, as seen beside the workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing

import click

from connectors.records import RefusedError, TopicName, Topics
from connectors.wire.history import History
from connectors.worker.losses import RECOVER, Flaw, Losses, losses_in
from streamgp.cli.deployment.learned import histories_of
from streamgp.interactive.parts import HEAD

_PATIENCE_S = 0.5


def losses_of(topics: Topics, group: str, histories: Mapping[int, History]) -> dict[int, Losses]:
    """Return what is missing in each partition that has lost something.

    Whoever reads two topics while workers write may see the one before a batch and the other after
    it. So what is missing then is looked for once more, and counts where the state has not moved.

    Raises
    ------
    HistoryError
        If a record cannot be read.

    """
    found = _found(histories)
    if found and topics.n_members(group):
        with closing(topics.reader(("state", "consensus"))) as reader:
            later = histories_of(reader)
        lasting = {n: _lasting(n, histories[n], later[n]) for n in found if n in later}
        found = {n: losses for n, losses in lasting.items() if losses.error() is not None}
    return found


def check_whole(topics: Topics, group: str, histories: Mapping[int, History]) -> None:
    """Refuse topics that have lost what was learned.

    Raises
    ------
    click.ClickException
        With what a worker would end with.

    """
    for losses in losses_of(topics, group, histories).values():
        raise click.ClickException(str(losses.error()))


def warning_of(topics: Topics) -> str | None:
    """Return what to say where labelled examples are there and no state at all; reads little.

    Nothing where `state` may not be read: whoever only looks on needs no right to it.
    """
    try:
        if _holds_something(topics, "state") or not _holds_something(topics, "consensus"):
            return None
    except RefusedError:
        return None
    return (
        "consensus holds labelled examples and state holds nothing: state was deleted or emptied; "
        f"{RECOVER}"
    )


def _holds_something(topics: Topics, name: TopicName) -> bool:
    with closing(topics.reader((name,))) as reader:
        while not reader.caught_up:
            if any(record.value is not None for record in reader.poll(_PATIENCE_S)):
                return True
    return False


def _lasting(number: int, before: History, after: History) -> Losses:
    """Return what is missing of a partition in both of two reads of it.

    Whatever belongs to a head was written with it, and so before the second read. If that finds
    another one, it may have missed what was written with that.
    """
    first, losses = Losses(number, before), Losses(number, after)
    for entity in after.entities():
        was, flaw = _looked_at(first, entity, before), _looked_at(losses, entity, after)
        has_moved = _sequence(before, entity) != _sequence(after, entity)
        # Numbers that are there twice are seen in one topic alone.
        if flaw is not None and (flaw != was or (has_moved and flaw != "doubled")):
            losses.flaws -= Counter([flaw])
    return losses


def _looked_at(losses: Losses, entity: str, history: History) -> Flaw | None:
    return losses.look(entity, history.parts(entity), history.lines(entity))


def _sequence(history: History, entity: str) -> object:
    head = history.parts(entity).get(HEAD)
    return head.get("sequence") if isinstance(head, dict) else None


def _found(histories: Mapping[int, History]) -> dict[int, Losses]:
    every = {number: losses_in(number, history) for number, history in histories.items()}
    return {number: losses for number, losses in every.items() if losses.error() is not None}
