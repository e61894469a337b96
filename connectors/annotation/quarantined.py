"""Annotators in quarantine, as label requests tell."""

from __future__ import annotations

from streamgp.interactive.messages import LabelRequest
from streamgp.interactive.people import People


class QuarantinedAnnotators:
    """Annotators in quarantine, by the newest first question of each key.

    Parameters
    ----------
    people
        The same as for the workers: some annotators are never in quarantine.
    keyed
        Whether the workers have a learner for each key; otherwise there is one for all.

    """

    # _names  those whom the newest first question of each key excludes, if any
    def __init__(self, people: People, *, keyed: bool) -> None:
        self._people = people
        self._keyed = keyed
        self._names: dict[str | None, tuple[str, ...]] = {}

    def note(self, request: LabelRequest) -> None:
        """Note whom a label request excludes, unless it is a second question."""
        if request.is_second:  # which also excludes those who have answered about the event
            return
        key = request.key if self._keyed else None
        self._names.pop(key, None)
        if request.excluded:
            self._names[key] = request.excluded

    def forget(self, key: str | None) -> None:
        """Forget a key, unless there is one learner for all."""
        if self._keyed:
            self._names.pop(key, None)

    def counts(self, only_key: str | None = None) -> dict[str, int]:
        """Return the annotators with the number of keys, for one key or for all."""
        counts: dict[str, int] = {}
        for key, names in self._names.items():
            if only_key is None or not self._keyed or key == only_key:
                for name in filter(self._people.may_be_quarantined, names):
                    counts[name] = counts.get(name, 0) + 1
        return counts

    def holds(self, annotator: str | None, key: str | None) -> bool:
        """Return whether an annotator is in quarantine: workers then refuse all their answers."""
        names = self._names.get(key if self._keyed else None, ())
        return annotator in names and self._people.may_be_quarantined(annotator)
