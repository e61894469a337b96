"""Which line of the consensus log is in force for examples whose label was corrected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from streamgp.interactive.messages import LabelledExample


class Revisions:
    """The revision in force of each example; most have but one line, of revision 0.

    A loop forgets with its event how often a label was corrected, but somebody may still delete one
    of the lines from the log. What remains of it here follows from the lines alone.

    Examples
    --------
    >>> revisions = Revisions()
    >>> line = LabelledExample(
    ...     event_id="e1", revision=1, sequence=2, x={}, y="hall", origin="revised", learned_at=5.0
    ... )
    >>> revisions.note("ann", line)
    >>> [revisions.is_replaced("ann", "e1", revision) for revision in (0, 1)]
    [True, False]

    """

    # _of  by entity and event; 0 where it is not in it
    def __init__(self) -> None:
        self._of: dict[str, dict[str, int]] = {}

    def note(self, entity: str, line: LabelledExample) -> None:
        """Take note of the next line of an entity."""
        if line.revision and line.y is not None:
            self._of.setdefault(entity, {})[line.event_id] = line.revision
        elif entity in self._of:
            self._of[entity].pop(line.event_id, None)

    def is_replaced(self, entity: str, event_id: str, revision: int) -> bool:
        """Whether a line later than that of a revision gives an example its label.

        One that is not known to be there was deleted before it could be read: then it counted.
        """
        return self._of.get(entity, {}).get(event_id, 0) > revision

    def forget(self, entity: str) -> None:
        """Forget an entity."""
        self._of.pop(entity, None)

    def state(self) -> list[Sequence[Any]]:
        """Return what must survive a restart, as plain values."""
        return [
            [entity, event_id, revision]
            for entity, revisions in self._of.items()
            for event_id, revision in revisions.items()
        ]

    def load_state(self, state: Iterable[Sequence[Any]]) -> None:
        """Become what the state was taken from."""
        self._of.clear()
        for entity, event_id, revision in state:
            self._of.setdefault(str(entity), {})[str(event_id)] = int(revision)
