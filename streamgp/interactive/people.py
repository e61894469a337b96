"""Who may say what about an event: the rules that answers of several annotators keep to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Rules for the answers of several annotators.

    Without signatures they hold between clients that sign in their own names; see
    `docs/deployment.md`.

    Parameters
    ----------
    owners
        Whether only the annotator whose answer stands may supersede it, take it back, or answer a
        challenge of it. What no annotator has said, such as a label that came with its event, is
        open to all.
    supervisors
        Annotators who may do so with the answers of others, too.

    Examples
    --------
    >>> people = People(supervisors=frozenset(["eve"]))
    >>> [people.may_overrule(name, "ann") for name in ("ann", "bob", "eve", None)]
    [True, False, True, False]
    >>> people.may_overrule("bob", None), People(owners=False).may_overrule("bob", "ann")
    (True, True)

    """

    owners: bool = True
    supervisors: frozenset[str] = frozenset()

    def may_overrule(self, annotator: str | None, owner: str | None) -> bool:
        """Whether an annotator may change what another one has said, None for no annotator."""
        return (
            not self.owners
            or owner is None
            or annotator == owner
            or (annotator is not None and annotator in self.supervisors)
        )

    def state(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain values."""
        found: dict[str, Any] = {}
        if not self.owners:
            found["owners"] = False
        if self.supervisors:
            found["supervisors"] = sorted(self.supervisors)
        return found

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """Return the rules of which `state` is known."""
        supervisors = frozenset(state.get("supervisors", ()))
        return cls(**{**state, "supervisors": supervisors})


DEFAULT_PEOPLE: Final = People()
"""The rules of a loop that is given none."""
