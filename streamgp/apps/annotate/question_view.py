"""Text view of a question, the same on a terminal and in a pipe.

Names, labels and features come from outside; characters that could control a terminal are replaced.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from streamgp.apps.annotate.choices import ANOTHER, CHANGE, KEEP, Choice
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
from streamgp.query.registry import reasons

# --- Legend: the labels and commands below a question with their keys, as many per line as fit.


_GAP = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    """Entries side by side; lines break between entries.

    Parameters
    ----------
    title
        Text before the first entry.
    most_lines
        The largest number of lines; None for no limit.
    more
        Returns the text that replaces `n` entries that do not fit.

    Examples
    --------
    >>> legend = Legend(entries=[Text("1 den"), Text("2 living room"), Text("d don't know")])
    >>> Console(width=24).print(legend)
    1 den   2 living room
    d don't know

    """

    entries: Sequence[Text]
    title: str = ""
    most_lines: int | None = None
    more: str = "{n} more: / searches"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines; the last one says how many entries did not fit."""
        lines = list(self._lines(self.entries, options.max_width))
        if self.most_lines is not None and len(lines) > self.most_lines:
            for n in range(len(self.entries) - 1, -1, -1):
                more = Text(self.more.format(n=len(self.entries) - n), style="dim")
                lines = list(self._lines([*self.entries[:n], more], options.max_width))
                if len(lines) <= self.most_lines:
                    break
        yield from lines

    def _lines(self, entries: Sequence[Text], width: int) -> Iterator[Text]:
        line = Text(self.title, style="dim")
        is_empty = True
        for entry in entries:
            gap = "" if is_empty else _GAP
            if line.cell_len + len(gap) + entry.cell_len > width and line:
                yield line
                line, gap = Text(), ""
            line = Text.assemble(line, gap, entry)
            is_empty = False
        yield line


# docs/annotators.md says what operators can do about it.
_SET_ASIDE = (
    "answers that you gave are set aside for now, because they often differ from those of other "
    "people; they are kept, and the questions go to others"
)
MOST_IN_LINES = 12
"""Number of features shown if no key can be pressed for more."""
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
    of_numbers: bool = False
    """Whether the answers are numbers instead of names of classes."""
    asks_confidence: bool = False
    """Whether to ask for the confidence of an answer."""
    is_patient: bool = False
    """Whether to wait for questions after the last line of a pipe."""
    is_set_aside: bool = False
    """Whether the annotator is quarantined for at least one key."""


def heading(view: View, *, is_expert: bool = False) -> Text:
    """Return the question, its subject and its reason; for experts with the rule's numbers."""
    question = view.question
    assert question is not None
    request = question.request
    about = f"event {printable(request.event_id)}"
    if request.key is not None:
        about += f" of {printable(request.key)}"
    text = Text()
    if isinstance(request, Challenge):
        text.append_text(_doubt(view, request))
        text.append(f"{about}{_when(view)}\n")
    else:
        what = "How much is it?\n" if view.of_numbers else "Which is it?\n"
        text.append(what, style="bold")
        text.append(f"{about}{_when(view)}, asked {ago(view.now - request.requested_at)}\n")
        is_new = view.averages.is_unlike_all(request.key, request.x)
        text.append(f"because {printable(explain.why(request, is_new=is_new)['text'])}\n")
    if is_expert:
        text.append(f"{expert(view)}\n", style="dim")
    text.append(_waits(view, request.expires_at), style="dim")
    if question.supersedes is not None:
        text.append("\nYou took your answer back.")
    return text


_WITHOUT_RULE = (ASKED_AGAIN, SECOND_ANNOTATOR, SAME_ANNOTATOR)


def expert(view: View) -> str:
    """Return the rule that asked, with its numbers."""
    assert view.question is not None
    request = view.question.request
    if request.reason in _WITHOUT_RULE:  # no numbers
        return explain.TEXTS[explain.CODES[request.reason]]
    rule = f"{printable(request.reason)} {request.score:.2g} > {request.threshold:.2g}"
    words = reasons().get(request.reason)
    return rule if words is None else f"{words} ({rule})"


def _doubt(view: View, request: Challenge) -> Text:
    """Return the given label, and the evidence against it."""
    given, suggested = shown_label(request.given), shown_suggestion(request)
    text = Text.assemble(_whose_label(request, view.annotator), (given, "bold"))
    text.append(f" {ago(view.now - request.requested_at)}.\n")
    share = explain.percent(explain.likely(request))
    if view.of_numbers:
        text.append("Judging by the examples so far, it would be about ")
        text.append(suggested, style="bold")
        if request.std is not None:
            text.append(f" \N{PLUS-MINUS SIGN} {request.std:.3g}")
        text.append(f" ({share} likely that it is another). Is it?\n")
        return text
    if explain.likely(request) < _MORE_LIKELY:
        text.append("It may have been ")
        return text.append(suggested, style="bold").append(
            f" ({share} likely). Was it?\n", style=""
        )
    when = "Examples since then" if request.reason == "LeaveOneOutReview" else "Earlier examples"
    text.append(f"{when} like this were ")
    text.append(suggested, style="bold")
    return text.append(f" ({share} likely). Were they?\n")


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


def features(view: View, *, start: int = 0, most: int | None = None) -> RenderableType:
    """Return the features of the event: values, with averages or nearest examples beside them.

    For a challenge, only features in which the examples differ from the event are included.

    Parameters
    ----------
    start
        Number of features to skip.
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
            return Text("the examples most like it are the same in every feature", style="dim")
    shown = names[start:] if most is None else names[start : start + most]
    if not names:
        return Text("no features", style="dim")
    beside = (
        partial(_examples, request)
        if isinstance(request, Challenge)
        else partial(_means, view, request, shown)
    )
    table = _FittingTable(names=shown, x=request.x, beside=beside)
    left = len(names) - len(shown)
    if not left:
        return table
    more = f"features {start + 1} to {start + len(shown)} of {len(names)}; m: more"
    return Group(table, Text(more, style="dim"))


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
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("feature")
        table.add_column("this event", justify="right", style="bold")
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


def labels(view: View, *, is_list: bool = False, most_lines: int | None = None) -> RenderableType:
    """Return the labels with their keys, and the other commands.

    Parameters
    ----------
    is_list
        Whether to list the labels even for a challenge, which otherwise offers two of them.

    """
    request = None if view.question is None else view.question.request
    if isinstance(request, Challenge) and not is_list:
        return Group(_pair(request), _commands("d don't know", *_COMMON))
    here, elsewhere = _entries(view, is_here=True), _entries(view, is_here=False)
    parts = [Legend(entries=here, most_lines=most_lines)] if here else []
    if elsewhere:
        parts.append(
            Legend(entries=elsewhere, title="known elsewhere: ", most_lines=most_lines and 1)
        )
    if isinstance(request, Challenge):
        back = () if view.of_numbers else ("/ search",)
        return Group(*parts, _commands("n new label", *back, "Esc back", "d don't know", "q quit"))
    new = ("n type a number",) if view.of_numbers else ("n new label", "/ search", "r rename")
    return Group(*parts, _commands(*new, "d don't know", *_COMMON))


_COMMON = ("s skip", "u undo", "x rule", "? help", "q quit")


def _commands(*commands: str) -> Legend:
    entries = []
    for command in commands:
        key, _, what = command.partition(" ")
        entries.append(Text.assemble((key, "bold cyan"), (f" {what}", "dim")))
    return Legend(entries=entries)


def _pair(request: Challenge) -> Legend:
    """Return the two labels of a challenge with their keys, and the key for the others."""
    given, suggested = cut(shown_label(request.given)), cut(shown_suggestion(request))
    words = ((KEEP, f"keep {given}"), (CHANGE, f"change to {suggested}"), (ANOTHER, "another"))
    return Legend(entries=[Text.assemble((key, "bold magenta"), f" {what}") for key, what in words])


def _entries(view: View, *, is_here: bool) -> list[Text]:
    """Return the labels known for this key, or only for others; those with a key to press first."""
    choices = [choice for choice in view.choices if choice.is_here == is_here]
    choices.sort(key=lambda choice: choice.character is None)
    entries = []
    for choice in choices:
        text = Text(cut(shown_label(choice.label)))
        if choice.character is not None:
            text = Text.assemble((choice.character, "bold cyan"), " ", text)
        entries.append(text)
    return entries


def status(view: View) -> Text:
    """Return the number of waiting questions, and what is going on."""
    if view.n_read is not None:
        return Text(f"reading what was asked and answered so far: {number(view.n_read, 'record')}")
    waiting = "nothing waits" if not view.n_open else f"{view.n_open} wait"
    waiting = "1 waits" if view.n_open == 1 else waiting
    text = Text(
        f"{printable(view.annotator)}: {waiting}, {number(view.n_answered, 'answer')} given"
    )
    if view.n_unsent:
        text.append(f", {view.n_unsent} not sent yet", style="yellow")
    if view.trouble is not None:
        text.append(f"\n{printable(view.trouble)}; trying again", style="red")
    if view.is_set_aside:
        text.append(f"\n{_SET_ASIDE}")
    return text


def whole(
    view: View,
    *,
    start: int = 0,
    most: int | None = None,
    below: RenderableType | None = None,
    is_expert: bool = False,
) -> RenderableType:
    """Return the question with everything that belongs to it; `below` replaces its keys.

    A challenge is framed: it is a different kind of question, with other keys.
    """
    if view.question is None:
        return Text("no question is open; new ones appear here")
    request = view.question.request
    table = Padding(features(view, start=start, most=most), (0, 0, 0, 2), expand=False)
    parts = Group(
        heading(view, is_expert=is_expert),
        Text(),
        *([] if most == 0 else [table]),
        Text(),
        labels(view) if below is None else below,
    )
    if not isinstance(request, Challenge):
        return parts
    still = " still" if request.reason == "LeaveOneOutReview" else ""
    return Panel(parts, title=f"Are you{still} sure?", title_align="left", border_style="magenta")


def printable_lines(text: str) -> str:
    """Return text of several lines without characters that could control a terminal."""
    return "\n".join(printable(line) for line in text.splitlines())


HELP = """\
Which label belongs to the event? Next to its features you see what is usual
in each class; features that tell the classes apart come first.
A frame asks about an earlier label again. Next to it you see the examples
most like it, with what differs. Your second answer counts, whichever it is.

  1-9, a-z  the label next to the key (not in a frame)
  /         search: type some letters of a label, Enter takes the first one
  n         a new label; in double quotes it is text even if it looks like 7
  0-9       where numbers are asked for: type one, as in 21.5 or 21.5 +- 0.5
  k c o     in a frame: keep the label, change it, or list the others
  1-5       with --confidence, after a label: from 1 (guessed) to 5 (certain);
            Enter leaves it out, Esc goes back. In a line: kitchen ?4
  d         don't know: no label; in a frame the label stays
  s         skip: the question comes after all others
  u         undo: the last answer, or the question that was skipped last
  r         rename a label that was misspelt, or merge it with another one
  m         more features, where there are many
  x         for experts: the rule that asks, with its numbers
  q         quit; open questions stay open for the next time
"""
