"""Two learners taught the same examples, and what there is to say about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from streamgp.cli.wording import aligned, number, printable
from streamgp.interactive.learner import SkepticalLearner
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.rebuilding import Taught, teach
from streamgp.values import is_number

N_SHOWN = 20
_WIDEST = 20
_TITLES = [
    ["", "", "accuracy", "", "", "refused", "", "ms an example", ""],
    ["key", "examples", "old", "new", "agree", "old", "new", "old", "new"],
]
_NUMBER_TITLES = [
    ["", "", "mean abs. error", "", "refused", "", "ms an example", ""],
    ["key", "examples", "old", "new", "old", "new", "old", "new"],
]


@dataclass(slots=True)
class Score:
    """How one learner did.

    Attributes
    ----------
    n_hits
        Examples predicted rightly before they were learned.
    errors
        How far predictions of numbers were off, in all.
    n_guessed
        Numbers that were predicted at all.
    n_refused
        Examples that it could not learn.
    seconds
        Time for predicting and learning.
    refusal
        Why it could not learn the first of them.

    """

    n_hits: int = 0
    errors: float = 0.0
    n_guessed: int = 0
    n_refused: int = 0
    seconds: float = 0.0
    refusal: str | None = None

    def note(self, taught: Taught) -> None:
        """Count one example."""
        self.n_hits += taught.guess == taught.y
        if is_number(taught.guess) and is_number(taught.y):
            self.errors += abs(float(taught.guess) - float(taught.y))  # type: ignore[arg-type]
            self.n_guessed += 1
        if taught.refusal is not None:
            self.n_refused += 1
            self.refusal = self.refusal or f"{taught.event_id}: {taught.refusal}"

    def add(self, other: Score) -> None:
        """Count what another one has counted."""
        self.n_hits += other.n_hits
        self.errors += other.errors
        self.n_guessed += other.n_guessed
        self.n_refused += other.n_refused
        self.seconds += other.seconds


@dataclass(slots=True, kw_only=True)
class Comparison:
    """How two learners did on the same examples.

    Attributes
    ----------
    name
        Whose examples.
    n_examples
        How many.
    n_agreed
        Examples for which both predicted the same.
    old, new
        How each did.

    """

    name: str
    n_examples: int = 0
    n_agreed: int = 0
    old: Score = field(default_factory=Score)
    new: Score = field(default_factory=Score)

    def add(self, other: Comparison) -> None:
        """Count what another one has counted."""
        self.n_examples += other.n_examples
        self.n_agreed += other.n_agreed
        self.old.add(other.old)
        self.new.add(other.new)


def compare(
    row: Comparison,
    lines: Sequence[LabelledExample],
    old: SkepticalLearner,
    new: SkepticalLearner,
) -> Iterator[int]:
    """Teach two learners the same, and count.

    Parameters
    ----------
    row
        Where to count.
    lines
        The consensus log of one loop.
    old, new
        Learners that have seen nothing.

    Yields
    ------
    The number of examples so far.

    Examples
    --------
    >>> from streamgp import isgp
    >>> row = Comparison(name="ann")
    >>> log = [
    ...     LabelledExample(
    ...         event_id=str(n), sequence=n, x={"light": n % 2}, y="on" if n % 2 else "off",
    ...         origin="asked", learned_at=0.0, probability_wrong=0.1,
    ...     )
    ...     for n in range(4)
    ... ]
    >>> list(compare(row, log, isgp(seed=1), isgp(seed=1)))
    [1, 2, 3, 4]
    >>> row.old.n_hits, row.new.n_hits, row.n_agreed
    (2, 2, 4)

    """
    olds, news = teach(old, lines), teach(new, lines)
    while True:
        start = perf_counter()
        one = next(olds, None)
        between = perf_counter()
        other = next(news, None)
        end = perf_counter()
        if one is None or other is None:
            return
        row.n_examples += 1
        row.n_agreed += one.guess == other.guess
        for score, taught, seconds in (
            (row.old, one, between - start),
            (row.new, other, end - between),
        ):
            score.note(taught)
            score.seconds += seconds
        yield row.n_examples


def comparison_text(rows: Sequence[Comparison], *, numbers: bool = False) -> str:
    """Return a table, with what has to be known to read it; `numbers`: that is what targets are."""
    total = Comparison(name=f"all {number(len(rows), 'key')}")
    for row in rows:
        total.add(row)
    shown = sorted(rows, key=lambda row: -row.n_examples)[:N_SHOWN]
    lines = [_cells(row, numbers) for row in shown]
    if len(rows) > 1:
        rest = "" if len(shown) == len(rows) else f", {len(shown)} of them shown"
        lines.append([total.name + rest, *_cells(total, numbers)[1:]])
    titles = _NUMBER_TITLES if numbers else _TITLES
    text = [aligned([*titles, *lines], right=range(1, len(titles[0]))), _about(numbers)]
    for which in ("old", "new"):
        row_of = next((row for row in rows if getattr(row, which).refusal is not None), None)
        if row_of is not None:
            reason = printable(f"{row_of.name}, event {getattr(row_of, which).refusal}")
            text.append(f"first refusal of the {which} learner: {reason}")
    return "\n".join(text)


def _about(numbers: bool) -> str:
    if numbers:
        return (
            "error: of predictions before the examples were learned, by the number that stands now"
        )
    return (
        "accuracy: examples predicted rightly before they were learned, by the label that stands "
        "now; agree: predicted the same"
    )


def _cells(row: Comparison, numbers: bool) -> list[str]:
    n = row.n_examples
    name = printable(row.name)
    return [
        name if len(name) <= _WIDEST else name[: _WIDEST - 1] + "…",
        str(n),
        *(
            [_mean(row.old), _mean(row.new)]
            if numbers
            else [
                _percent(row.old.n_hits, n),
                _percent(row.new.n_hits, n),
                _percent(row.n_agreed, n),
            ]
        ),
        str(row.old.n_refused),
        str(row.new.n_refused),
        _milliseconds(row.old.seconds, n),
        _milliseconds(row.new.seconds, n),
    ]


def _mean(score: Score) -> str:
    return f"{score.errors / score.n_guessed:.3g}" if score.n_guessed else "-"


def _percent(n: int, of: int) -> str:
    return f"{100 * n / of:.1f} %" if of else "-"


def _milliseconds(seconds: float, n: int) -> str:
    return f"{1e3 * seconds / n:.2f}" if n else "-"
