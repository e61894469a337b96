"""What workers have learned, as the topics `state` and `consensus` hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from connectors.records import Reader
from connectors.wire.history import History
from connectors.wire.statelog import CONFIGURATION
from connectors.worker.losses import FORGOTTEN
from streamgp.cli.deployment.visiting import all_of
from streamgp.interactive.keyed import BUDGET
from streamgp.interactive.messages import LabelledExample

NO_LOOP = (CONFIGURATION, FORGOTTEN, BUDGET)
"""Names of what a partition has beside its loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What the topics hold of one loop.

    Parameters
    ----------
    partition
        Where.
    entity
        Whose; nothing where one loop serves all.
    parts
        The newest parts of its state.
    lines
        Its consensus log.

    """

    partition: int
    entity: str
    parts: Mapping[str, Any]
    lines: Sequence[LabelledExample]

    @property
    def name(self) -> str:
        """What to call it."""
        return self.entity or "all keys"


def histories_of(reader: Reader) -> dict[int, History]:
    """Read both topics to their end; return what they hold of each partition."""
    histories: dict[int, History] = {}
    for record in all_of(reader, what="reading"):
        histories.setdefault(record.partition, History()).take(record)
    return dict(sorted(histories.items()))


def loops_in(histories: Mapping[int, History], *, keyed: bool) -> Iterator[Learned]:
    """Return the loops that are there, one after the other.

    Raises
    ------
    HistoryError
        If a record cannot be read.
    click.ClickException
        If they are of workers that keep one learner for all keys, or one for each, as `keyed` does
        not say.

    """
    for partition, history in histories.items():
        for entity in sorted(history.entities()):
            parts = {
                name: value
                for name, value in history.parts(entity).items()
                if value is not None and (entity or name not in NO_LOOP)
            }
            lines = history.lines(entity)
            if not (parts or lines):
                continue  # forgotten
            if keyed != bool(entity):
                expected = "true" if entity else "false"
                raise click.ClickException(
                    f"the topics hold loops of workers with worker.keyed = {expected}; write it "
                    "into the configuration"
                )
            yield Learned(partition=partition, entity=entity, parts=parts, lines=lines)
