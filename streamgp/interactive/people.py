"""Rules of a loop: who may say what about an event, how much, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self

from streamgp.common.validation import check_flag, check_rate, check_several, check_whole
from streamgp.interactive.validation import check_span

_LIMITS = (
    "max_labels",
    "max_features",
    "max_annotators",
    "max_corrections",
    "max_early_answers",
    "max_unasked_per_hour",
)
_NAMES = ("supervisors", "trusted")
_NO_NAMES: Mapping[str, list[str]] = {name: [] for name in _NAMES}


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Rules for the inputs of several annotators.

    Without signatures they assume clients that sign with their own names; see
    `docs/deployment.md`.

    Parameters
    ----------
    owners
        Whether only the annotator whose answer stands may supersede it, take it back, or answer a
        challenge of it. A label without an annotator, such as one that came with its event, may be
        changed by anyone.
    supervisors
        Annotators who may also do so with the answers of others.
    quarantine
        Whether the answers of an annotator who misleads, as judged by the others, are `quarantined`
        from then on, and those learned before are retracted; see `streamgp.interactive.quarantine`.
    trusted
        Annotators, besides the supervisors, who are never in quarantine.
    max_labels, max_features, max_annotators
        Limits of what one loop learns: labels, names of features, annotators (supervisors and
        trusted annotators are accepted beyond it). An input that adds one more is rejected as
        `excessive`.
    max_corrections
        Number of answers to one event beyond the first; see `n_said`.
    max_early_answers
        In a worker, number of answers of one key that may wait for their events.
    overlap
        Share of the answered label requests that are also put to a second annotator, who is not
        told the first answer. If above 0, every label that was upheld although it was wrong with a
        probability of more than .9 is put to one, too. These questions are in addition to what
        budgets allow; only annotators with names can be asked.
    repeat
        Share of the answered label requests that are put to the same annotator again, after 20
        more labels have been learned.
    max_unasked_per_hour
        Number of labels that one annotator may give in an hour without having been asked, except
        supervisors and trusted annotators; see `streamgp.interactive.limits.UnaskedLabels`.

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
    quarantine: bool = True
    trusted: frozenset[str] = frozenset()
    max_labels: int = 2000
    max_features: int = 10_000
    max_annotators: int = 1000
    max_corrections: int = 20
    max_early_answers: int = 100
    max_unasked_per_hour: int = 1000
    overlap: float = 0.0
    repeat: float = 0.0

    def __post_init__(self) -> None:
        for name in ("owners", "quarantine"):
            check_flag(name, getattr(self, name))
        for name in _NAMES:  # given as any iterable, which may be one that ends
            names = frozenset(check_several(name, getattr(self, name), "names"))
            object.__setattr__(self, name, names)
        for name in ("overlap", "repeat"):
            check_rate(name, getattr(self, name))
        if self.overlap + self.repeat > 1.0:
            raise ValueError(
                "overlap and repeat must be shares of all questions, expected a sum of at most 1, "
                f"got {self.overlap!r} and {self.repeat!r}"
            )
        for name in _LIMITS:
            check_whole(name, getattr(self, name), 1)

    @property
    def asks_twice(self) -> bool:
        """Whether there are second questions."""
        return self.overlap > 0.0 or self.repeat > 0.0

    def may_overrule(self, annotator: str | None, owner: str | None) -> bool:
        """Whether an annotator may change what another one, or no annotator (None), has said."""
        return (
            not self.owners
            or owner is None
            or annotator == owner
            or (annotator is not None and annotator in self.supervisors)
        )

    def n_said(
        self, said_by: Collection[str | None], annotator: str | None, *, is_second: bool
    ) -> int:
        """Return the number of answers about an event that count against `max_corrections`.

        These are all answers, since an annotator may use many names. For a supervisor, and for an
        annotator who is asked a second question, they are only their own: no other annotator can
        keep these from correcting a label by changing it often.

        Parameters
        ----------
        said_by
            Annotators of the answers so far, without those of annotators in quarantine.
        annotator
            The annotator of the next answer.
        is_second
            Whether that is an answer to the second question.

        """
        if annotator is not None and (is_second or annotator in self.supervisors):
            return sum(name == annotator for name in said_by)
        return len(said_by)

    def may_be_quarantined(self, annotator: str) -> bool:
        """Whether the answers of an annotator may be withheld from the learner."""
        return self.quarantine and not self.is_trusted(annotator)

    def is_trusted(self, annotator: str | None) -> bool:
        """Whether an annotator is a supervisor or trusted."""
        return annotator in self.supervisors or annotator in self.trusted

    def state(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain values."""
        names = {name: sorted(getattr(self, name)) for name in _NAMES}
        plain, defaults = {**asdict(self), **names}, {**asdict(DEFAULT_PEOPLE), **_NO_NAMES}
        return {name: value for name, value in plain.items() if value != defaults[name]}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """Return the rules from which `state` was made."""
        return cls(**{**state, **{name: frozenset(state.get(name, ())) for name in _NAMES}})


DEFAULT_PEOPLE: Final = People()
"""The rules of a loop that is given none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRules:
    """Arguments of a loop besides its model; `InteractiveLoop` describes them.

    Examples
    --------
    >>> rules = LoopRules(expires_after_s=60.0, people=People(owners=False))
    >>> rules.plain()
    {'expires_after_s': 60.0, 'answer_horizon_s': None, 'people': {'owners': False}}
    >>> LoopRules.of(rules.plain()) == rules
    True

    """

    expires_after_s: float | None = None
    answer_horizon_s: float | None = None
    open_at_most: int | None = None
    people: People = DEFAULT_PEOPLE

    def __post_init__(self) -> None:
        check_span("expires_after_s", self.expires_after_s)
        check_span("answer_horizon_s", self.answer_horizon_s)
        if self.open_at_most is not None:
            check_whole("open_at_most", self.open_at_most, 1)
        if not isinstance(self.people, People):
            raise TypeError(f"people must be People(...), got {self.people!r}")

    @property
    def arguments(self) -> dict[str, Any]:
        """The rules by name, as a loop takes them."""
        return {field.name: getattr(self, field.name) for field in fields(LoopRules)}

    def plain(self) -> dict[str, Any]:
        """Return the rules as they are saved.

        The last two were added later, and are left out if they have no effect.
        """
        found: dict[str, Any] = {
            "expires_after_s": self.expires_after_s,
            "answer_horizon_s": self.answer_horizon_s,
        }
        if self.open_at_most is not None:
            found["open_at_most"] = self.open_at_most
        if people := self.people.state():
            found["people"] = people
        return found

    @staticmethod
    def of(saved: Mapping[str, Any]) -> LoopRules:
        """Return the rules that `plain` returned; `saved` may hold more."""
        return LoopRules(
            expires_after_s=saved["expires_after_s"],
            answer_horizon_s=saved["answer_horizon_s"],
            open_at_most=saved.get("open_at_most"),
            people=People.of(saved.get("people", {})),
        )
