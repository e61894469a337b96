"""Text view of a question.

Names, labels and features come from outside; characters that could control a terminal are replaced.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, log10

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from connectors.annotation import explain
from connectors.annotation.explain import Averages
from connectors.annotation.label_text import shown_label
from connectors.annotation.open_questions import Question
from connectors.annotation.timeline import typed_label
from streamgp.apps.annotate.choices import CHANGE, KEEP, Choice
from streamgp.apps.console import number, span
from streamgp.base import FeatureName, Features
from streamgp.common.printable import printable
from streamgp.interactive.messages import (
    ASKED_AGAIN,
    SAME_ANNOTATOR,
    SECOND_ANNOTATOR,
    Challenge,
    Request,
)
from streamgp.report.tables import amount

# --- Legend: the labels and commands below a question with their keys, as many per line as fit.


_GAP = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    """Entries side by side; lines break between entries.

    Parameters
    ----------
    title
        Text before the first entry.

    Examples
    --------
    >>> legend = Legend(entries=[Text("1 den"), Text("2 living room"), Text("d don't know")])
    >>> Console(width=24).print(legend)
    1 den   2 living room
    d don't know

    """

    entries: Sequence[Text]
    title: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines."""
        line = Text(self.title)
        is_empty = True
        for entry in self.entries:
            gap = "" if is_empty else _GAP
            if line.cell_len + len(gap) + entry.cell_len > options.max_width and line:
                yield line
                line, gap = Text(), ""
            line = Text.assemble(line, gap, entry)
            is_empty = False
        yield line


# docs/annotators.md says what operators can do about it.
SET_ASIDE = (
    "answers that you gave are set aside for now, because they often differ from those of other "
    "people; they are kept, and the questions go to others"
)
MOST_IN_LINES = 12
"""Number of features shown with a question; `m` prints them all."""
# Above this a label is more likely wrong than right.
_MORE_LIKELY = 0.5
# Shorter delays are not reported, in seconds.
_NOTICED_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that is shown.

    Parameters
    ----------
    averages
        What is usual in each class.
    n_open, n_answered, n_unsent
        Numbers of waiting questions, this one included; of answers given; and of those that have
        not reached the broker.
    n_read
        Number of records read so far while the topics are read from their start, then None.
    note
        What has just happened.
    trouble
        Current problem with the broker.

    """

    annotator: str
    question: Question | None
    choices: Sequence[Choice]
    averages: Averages
    n_open: int
    n_answered: int
    n_unsent: int
    n_read: int | None
    note: str | None
    trouble: str | None
    now: float
    given_at: float | None = None
    """When the label that a challenge doubts was given, POSIX seconds; None if not known."""
    asks: str | None = None
    """What the annotator is asked; None for "Which is it?"."""
    guidelines: str | None = None
    """What the annotator needs to know to answer."""
    of_numbers: bool = False
    """Whether the answers are numbers instead of names of classes."""
    asks_confidence: bool = False
    """Whether to ask for the confidence of an answer."""
    is_patient: bool = False
    """Whether to wait for questions after the last line of a pipe."""
    is_set_aside: bool = False
    """Whether the annotator is quarantined for at least one key."""


def heading(view: View) -> Text:
    """Return the question, its subject and its reason."""
    question = view.question
    assert question is not None
    request = question.request
    about = f"event {printable(request.event_id)}"
    if request.key is not None:
        about += f" of {printable(request.key)}"
    if isinstance(request, Challenge):
        lines = [*_doubt(view, request), f"{about}{_when(view)}"]
    else:
        is_new = view.averages.is_unlike_all(request.key, request.x)
        lines = [
            _question(view),
            f"{about}{_when(view)}, asked {ago(view.now - request.requested_at)}",
            f"because {printable(explain.why(request, is_new=is_new)['text'])}",
        ]
    lines.append(_waits(view, request.expires_at))
    if question.supersedes is not None:
        lines.append("You took your answer back.")
    return Text("\n".join(lines))


def _question(view: View) -> str:
    if view.asks is not None:
        return printable(" ".join(view.asks.split()))
    return "How much is it?" if view.of_numbers else "Which is it?"


def help_text(view: View) -> str:
    """Return the guidelines, and what can be typed."""
    keys = HELP_FOR_NUMBERS if view.of_numbers else HELP
    if view.guidelines is None:
        return keys
    lines = map(printable, view.guidelines.expandtabs(4).strip().splitlines())
    return "\n".join([*lines, "", keys])


_WITHOUT_RULE = (ASKED_AGAIN, SECOND_ANNOTATOR, SAME_ANNOTATOR)


def expert(view: View) -> str:
    """Return the rule that asked, with its numbers."""
    assert view.question is not None
    request = view.question.request
    code = explain.CODES.get(request.reason)
    words = None if code is None else explain.TEXTS[code]
    if words is not None and request.reason in _WITHOUT_RULE:  # no numbers
        return words
    rule = f"{printable(request.reason)} {request.score:.2g} > {request.threshold:.2g}"
    return rule if words is None else f"{words} ({rule})"


def _doubt(view: View, request: Challenge) -> tuple[str, str]:
    """Return the given label, and the evidence against it."""
    whose = _whose_label(request, view.annotator)
    at = request.requested_at if view.given_at is None else view.given_at
    said = f"{whose}{shown_label(request.given)} {ago(view.now - at)}."
    suggested, share = shown_suggestion(request), explain.percent(explain.likely(request))
    if view.of_numbers:
        std = "" if request.std is None else f" \N{PLUS-MINUS SIGN} {amount(request.std)}"
        return said, (
            f"Judging by the examples so far, it would be about {suggested}{std} "
            f"({share} likely that it is another). Is it?"
        )
    if explain.likely(request) < _MORE_LIKELY:
        return said, f"It may have been {suggested} ({share} likely). Was it?"
    when = "Examples since then" if request.reason == "LeaveOneOutReview" else "Earlier examples"
    return said, f"{when} like this were {suggested} ({share} likely). Were they?"


def shown_suggestion(request: Challenge) -> str:
    """Return the suggested label as text; a number without digits finer than its deviation."""
    y, std = request.suggested, request.std
    if isinstance(y, float) and y and std:
        n = floor(log10(abs(y)) - log10(std)) + 3
        y = float(f"{y:.{max(1, min(16, n))}g}")
    return shown_label(y)


def ago(seconds: float) -> str:
    """Return how long ago something was.

    Examples
    --------
    >>> ago(1.2), ago(250.0)
    ('just now', '4 min 10 s ago')

    """
    return "just now" if seconds < _NOTICED_S else f"{span(seconds)} ago"


def _when(view: View) -> str:
    """Return when the event occurred, if the question came noticeably later."""
    assert view.question is not None
    request = view.question.request
    at = request.occurred_at
    if at is None or abs(request.requested_at - at) < _NOTICED_S:
        return ""
    return f", which was {ago(view.now - at)}"


def _whose_label(request: Challenge, annotator: str) -> str:
    if request.annotator is None:
        return "It came with the label "
    return (
        "You said " if request.annotator == annotator else f"{printable(request.annotator)} said "
    )


def _waits(view: View, expires_at: float | None) -> str:
    assert view.question is not None
    if view.question.supersedes is not None or expires_at is None:
        return "no hurry"
    return f"waits for {span(max(0.0, expires_at - view.now))} more"


# --- Features of the event, with comparison values beside them.


_WIDEST = 24
_UNBOUND = 10_000


def features(view: View, *, most: int | None = None) -> RenderableType:
    """Return the features of the event: values, with averages or nearest examples beside them.

    For a challenge, only features in which the examples differ from the event are included.

    Parameters
    ----------
    most
        The largest number of features to show, None for all.

    """
    assert view.question is not None
    request = view.question.request
    names = view.averages.order(request.key, request.x)
    if isinstance(request, Challenge) and request.neighbours:
        near = request.neighbours[: explain.MAX_EXAMPLES]
        names = explain.differing(request.x, near, names)
        if not names:
            return Text("the examples most like it are the same in every feature")
    shown = names[:most]
    if not names:
        return Text("no features")
    beside = (
        partial(_examples, request)
        if isinstance(request, Challenge)
        else partial(_means, view, request, shown)
    )
    table = _FittingTable(names=shown, x=request.x, beside=beside)
    if len(shown) == len(names):
        return table
    return Group(table, Text(f"features 1 to {len(shown)} of {len(names)}; m: all"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittingTable:
    """An event with as many comparison columns as fit without cutting a number.

    `beside` returns at most this many columns, those nearest to the event.
    """

    names: Sequence[FeatureName]
    x: Features
    beside: Callable[[int], Sequence[tuple[str, Features]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the widest table that fits."""
        yield self._fitting(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the width of that table."""
        return self._fitting(console, options).__rich_measure__(console, options)

    def _fitting(self, console: Console, options: ConsoleOptions) -> Table:
        unbound = options.update(width=_UNBOUND)
        for n_beside in range(explain.MAX_CLASSES, 0, -1):
            table = self._table(n_beside)
            if table.__rich_measure__(console, unbound).maximum <= options.max_width:
                return table
        return self._table(0)

    def _table(self, n_beside: int) -> Table:
        beside = self.beside(n_beside)
        table = Table(box=None, pad_edge=False)
        table.add_column("feature")
        table.add_column("this event", justify="right")
        for title, _ in beside:
            table.add_column(Text(title), justify="right")
        for name in self.names:
            cells = [_value(self.x, name), *(_value(x, name) for _, x in beside)]
            table.add_row(Text(cut(printable(str(name)))), *map(Text, cells))
        return table


def _examples(request: Challenge, n: int) -> list[tuple[str, Features]]:
    """Return the nearest earlier examples, with their labels as headings."""
    return [
        (f"{cut(shown_label(near.y))}\n{cut(_name_of(near.event_id))}", near.x)
        for near in request.neighbours[: min(n, explain.MAX_EXAMPLES)]
    ]


def _name_of(event_id: str | None) -> str:
    return "earlier" if event_id is None else f"event {printable(event_id)}"


def _means(
    view: View, request: Request, names: Sequence[FeatureName], n: int
) -> list[tuple[str, Features]]:
    """Return the averages of the classes nearest to the event, in the order of their keys."""
    key, averages = request.key, view.averages
    near = {typed_label(label) for label in averages.nearest(key, request.x, n)}
    found = []
    for choice in view.choices:
        if typed_label(choice.label) not in near:
            continue
        means = {name: averages.mean(key, choice.label, name) for name in names}
        x: Features = {name: mean for name, mean in means.items() if mean is not None}
        if x:
            found.append((f"average\n{cut(shown_label(choice.label))}", x))
    return found


def _value(x: Features, name: FeatureName) -> str:
    if name not in x:
        return "-"
    value = x[name]
    return f"{value:.4g}" if isinstance(value, float) else cut(printable(str(value)))


def cut(text: str) -> str:
    """Return text cut to the width of a column."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


# --- Labels with their keys, what is going on, and everything together.


def labels(view: View) -> RenderableType:
    """Return the labels with their keys, or the two answers to a challenge; and the commands."""
    request = None if view.question is None else view.question.request
    if isinstance(request, Challenge):
        return Group(_pair(request), _commands("n another", *_COMMON))
    here, elsewhere = _entries(view, is_here=True), _entries(view, is_here=False)
    parts = [Legend(entries=here)] if here else []
    if elsewhere:
        parts.append(Legend(entries=elsewhere, title="known elsewhere: "))
    own = ("21.5 or 21.5 +- 0.5",) if view.of_numbers else ("n new label", "r rename")
    return Group(*parts, _commands(*own, *_COMMON))


_COMMON = ("d don't know", "s skip", "u undo", "? help", "q quit")


def _commands(*commands: str) -> Legend:
    return Legend(entries=[Text(command) for command in commands])


def _pair(request: Challenge) -> Legend:
    """Return the two labels of a challenge with their keys."""
    given, suggested = cut(shown_label(request.given)), cut(shown_suggestion(request))
    return Legend(entries=[Text(f"{KEEP} keep {given}"), Text(f"{CHANGE} change to {suggested}")])


def _entries(view: View, *, is_here: bool) -> list[Text]:
    """Return the labels known for this key, or only for others; those with a key first."""
    choices = [choice for choice in view.choices if choice.is_here == is_here]
    choices.sort(key=lambda choice: choice.character is None)
    return [
        Text(" ".join(filter(None, (choice.character, cut(shown_label(choice.label))))))
        for choice in choices
    ]


def status(view: View) -> Text:
    """Return the number of waiting questions, and what is going on."""
    if view.n_read is not None:
        return Text(f"reading what was asked and answered so far: {number(view.n_read, 'record')}")
    waiting = "nothing waits" if not view.n_open else f"{view.n_open} wait"
    waiting = "1 waits" if view.n_open == 1 else waiting
    text = Text(
        f"{printable(view.annotator)}: {waiting}, {number(view.n_answered, 'answer')} given"
    )
    # The answer just given is usually still on its way when the next question is printed.
    if view.n_unsent > 1 or (view.n_unsent and view.trouble is not None):
        text.append(f", {view.n_unsent} not sent yet")
    if view.trouble is not None:
        text.append(f"\n{printable(view.trouble)}; trying again")
    return text


def whole(view: View, *, most: int | None = None) -> RenderableType:
    """Return the question with everything that belongs to it, and at most that many features.

    A challenge is framed: it is a different kind of question, with other answers.
    """
    if view.question is None:
        return Text("no question is open; new ones appear here")
    request = view.question.request
    table = Padding(features(view, most=most), (0, 0, 0, 2), expand=False)
    parts = Group(heading(view), Text(), table, Text(), labels(view))
    if not isinstance(request, Challenge):
        return parts
    still = " still" if request.reason == "LeaveOneOutReview" else ""
    return Panel(parts, title=f"Are you{still} sure?", title_align="left")


def printable_lines(text: str) -> str:
    """Return text of several lines without characters that could control a terminal."""
    return "\n".join(printable(line) for line in text.splitlines())


_FRAME = """\
A frame asks about an earlier answer again. Next to it you see the examples
most like it, with what differs. Your second answer counts, whichever it is.

Type one of these and press Enter:

"""
HELP = f"""\
Which label belongs to the event? Next to its features you see what is usual
in each class; features that tell the classes apart come first.
{_FRAME}\
  1-9, a-z  the label next to the key (not in a frame), or a label in full
  n LABEL   a new label; in double quotes it is text even if it looks like 7
  k c       in a frame: keep the label, or change it to the suggested one
  LABEL ?4  with --confidence: from ?1 (guessed) to ?5 (certain), or nothing
  d         don't know: no label; in a frame the label stays
  s         skip: the question comes after all others
  u         undo: the last answer, or the question that was skipped last
  r A -> B  rename a label that was misspelt, or merge it with another one
  m         all features, where there are many
  x         for experts: the rule that asks, with its numbers
  q         quit; open questions stay open for the next time
  Enter     on an empty line: prints the question again
"""
HELP_FOR_NUMBERS = f"""\
Which number belongs to the event?
{_FRAME}\
  21.5      the number, without its unit; a decimal comma is as good as a point
  21.5 +- 2 the number, and how exact it is (its standard deviation)
  k c       in a frame: keep the number, or change it to the one expected
  21.5 ?4   with --confidence: from ?1 (guessed) to ?5 (certain), or nothing
  d         don't know: no number; in a frame the number stays
  s         skip: the question comes after all others
  u         undo: the last answer, or the question that was skipped last
  m         all features, where there are many
  x         for experts: the rule that asks, with its numbers
  q         quit; open questions stay open for the next time
  Enter     on an empty line: prints the question again
"""
