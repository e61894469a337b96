"""Agreement of first and second answers, counted from the consensus log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamgp.common.latest import Latest
from streamgp.common.printable import printable
from streamgp.metrics.conversation import AnnotatorAgreement

if TYPE_CHECKING:
    from streamgp.base import Label, State
    from streamgp.interactive.messages import EventKey, LabelledExample

N_REMEMBERED = 100_000
"""Number of events whose first answers are kept: a second answer concerns a recent event."""
N_CLASSES_SHOWN = 12


class AgreementCounts:
    """Agreement of each pair of annotators, and of each annotator with their earlier answers.

    The first answer, before any challenge, is compared with the answer to the second question, in
    its latest correction.

    Attributes
    ----------
    n
        Number of events with a second answer.

    Examples
    --------
    >>> from streamgp.interactive import LabelledExample
    >>> def line(n, y, annotator, **rest):
    ...     return LabelledExample(
    ...         event_id="e1", revision=n, sequence=n + 1, x={}, y=y, annotator=annotator,
    ...         learned_at=float(n), **rest,
    ...     )
    >>> counts = AgreementCounts()
    >>> counts.take(line(0, "hall", "ann", origin="asked", probability_wrong=0.2))
    >>> counts.take(line(1, "hall", "bob", origin="aggregated", given="den"))
    >>> counts.summary()["pairs"]
    [{'annotators': ['ann', 'bob'], 'n': 1, 'raw': 0.0, 'ac1': -1.0, 'standard_error': 0.0}]

    """

    # _first   first answer about each of the latest events, and its annotator
    # _second  what was counted of its second answer: both annotators, ordered by name, and both
    #          labels
    # _pairs   agreement by the names of two annotators; self-agreement under the same name twice
    def __init__(self) -> None:
        self._first: Latest[EventKey, tuple[Label, str]] = Latest(N_REMEMBERED)
        self._second: Latest[EventKey, tuple[str, str, Label, Label]] = Latest(N_REMEMBERED)
        self._pairs: dict[tuple[str, str], AnnotatorAgreement] = {}

    @property
    def n(self) -> int:
        """Number of events with a second answer."""
        return sum(one.n for one in self._pairs.values())

    def take(self, line: LabelledExample) -> None:
        """Count a line of the consensus log."""
        event = line.key, line.event_id
        if line.origin == "aggregated":
            self._take_back(event)
            y = line.said
            first = self._first.get(event)
            if line.annotator is not None and y is not None and first is not None:
                self.compare(event, first, (y, line.annotator))
        elif line.probability_wrong is None or line.y is None:
            return  # no first label of its event
        elif line.said is not None and line.first_by is not None:
            self._first.put(event, (line.said, line.first_by))

    def compare(self, event: EventKey, first: tuple[Label, str], second: tuple[Label, str]) -> None:
        """Count two answers about an event, each a label and its annotator."""
        (y, one), (said, other) = sorted((first, second), key=lambda answer: answer[1])
        self._note(event, one, other, y, said)

    def pairs(self) -> dict[tuple[str, str], AnnotatorAgreement]:
        """Return the agreement of each pair of annotators, by their names in alphabetical order."""
        return {names: one for names, one in self._counted() if names[0] != names[1]}

    def repeats(self) -> dict[str, AnnotatorAgreement]:
        """Return the agreement of each annotator with their own earlier answers."""
        return {names[0]: one for names, one in self._counted() if names[0] == names[1]}

    def classes(self) -> dict[Label, AnnotatorAgreement]:
        """Return, by class, the agreement of all pairs together on whether an event is of it."""
        together = AnnotatorAgreement()
        for one in self.pairs().values():
            together = together.plus(one)
        return {label: together.of_class(label) for label in together.labels}

    def summary(self) -> dict[str, Any]:
        """Return all agreements as plain JSON values; {} if there is no second answer."""
        if not self.n:
            return {}
        return {
            "pairs": [
                {"annotators": list(names), **_row(one)} for names, one in self.pairs().items()
            ],
            "classes": [{"label": y, **_row(one)} for y, one in self.classes().items()],
            "repeats": [{"annotator": name, **_row(one)} for name, one in self.repeats().items()],
        }

    def remove(self, part: AgreementCounts) -> None:
        """Uncount what another object counted of the same lines."""
        for event in list(part._second):
            self._take_back(event)
        for event in part._first:
            self._first.pop(event, None)

    def state(self) -> State:
        """Return the state on which later counts depend."""
        return {
            "first": [[*event, *said] for event, said in self._first.items()],
            "second": [[*event, *said] for event, said in self._second.items()],
        }

    def load_state(self, state: State) -> None:
        """Restore a state."""
        for key, event_id, y, annotator in state["first"]:
            self._first[key, event_id] = y, annotator
        for key, event_id, *said in state["second"]:
            self._note((key, event_id), *said)

    def _counted(self) -> list[tuple[tuple[str, str], AnnotatorAgreement]]:
        """Return all agreements that have events, with the same number of labels for all."""
        labels = {label for one in self._pairs.values() for label in one.labels}
        found = []
        for names, one in sorted(self._pairs.items()):
            if one.n:
                one.n_labels = len(labels)
                found.append((names, one))
        return found

    def _note(self, event: EventKey, one: str, other: str, y: Label, said: Label) -> None:
        self._pairs.setdefault((one, other), AnnotatorAgreement()).update(y, said)
        self._second.put(event, (one, other, y, said))

    def _take_back(self, event: EventKey) -> None:
        """Uncount the second answer about an event: it was replaced or withdrawn."""
        counted = self._second.pop(event, None)
        if counted is not None:
            one, other, y, said = counted
            self._pairs[one, other].revert(y, said)


def agreement_lines(counts: AgreementCounts) -> list[str]:
    """Return a line on each pair and on each annotator asked again, and one on the classes.

    Examples
    --------
    >>> counts = AgreementCounts()
    >>> for n, said in enumerate(["hall"] * 9 + ["den"]):
    ...     counts.compare((None, f"e{n}"), ("hall", "ann"), (said, "bob"))
    >>> for line in agreement_lines(counts):
    ...     print(line)
    ann and bob agree on 90 % of 10 events; AC1 .89 ± .12
    of hall 90 %, AC1 .89; of den 90 %, AC1 .89

    """
    lines = [
        f"{printable(one)} and {printable(other)} agree on {_words(found)}"
        for (one, other), found in counts.pairs().items()
    ]
    lines += [
        f"{printable(name)}, asked again, says the same of {_words(found)}"
        for name, found in counts.repeats().items()
    ]
    classes = [
        f"of {printable(str(label))} {100 * found.raw:.0f} %, AC1 {_short(found.get())}"
        for label, found in list(counts.classes().items())[:N_CLASSES_SHOWN]
    ]
    return [*lines, "; ".join(classes)] if classes else lines


def _words(found: AnnotatorAgreement) -> str:
    return (
        f"{100 * found.raw:.0f} % of {found.n} event{'' if found.n == 1 else 's'}; "
        f"AC1 {_short(found.get())} ± {_short(found.standard_error)}"
    )


def _short(number: float) -> str:
    """Return a number without the zero before the point, as in tables."""
    return f"{number:.2f}".replace("0.", ".", 1) if abs(number) < 0.995 else f"{number:.2f}"


def _row(one: AnnotatorAgreement) -> dict[str, Any]:
    return {
        "n": one.n,
        "raw": one.raw,
        "ac1": one.get(),
        "standard_error": one.standard_error,
    }
