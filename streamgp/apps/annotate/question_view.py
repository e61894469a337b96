"""View of a question: text only, the same on a terminal and in a pipe.

Names, labels and features come from outside; what could do something to a terminal is replaced.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from connectors.annotation.inbox import Question
from streamgp.apps.annotate.choices import Choice, shown_label
from streamgp.apps.annotate.feature_table import Averages, cut, feature_table
from streamgp.apps.console import number, span
from streamgp.base import Label
from streamgp.common.printable import printable
from streamgp.interactive.messages import Challenge
from streamgp.query.registry import reasons

# --- The labels and commands below a question, with their keys: as many in a line as there is
# room.


_GAP = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    """Entries beside each other; a line ends between two of them.

    Parameters
    ----------
    entries
        What stands in it.
    title
        What stands before the first one.

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
        line = Text(self.title, style="dim")
        is_empty = True
        for entry in self.entries:
            gap = "" if is_empty else _GAP
            if line.cell_len + len(gap) + entry.cell_len > options.max_width and line:
                yield line
                line, gap = Text(), ""
            line = Text.assemble(line, gap, entry)
            is_empty = False
        yield line


MOST_IN_LINES = 12
"""Features that are shown where nobody can press a key for more."""
# Seconds that are too few to be told.
_NOTICED_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything there is to see.

    Parameters
    ----------
    annotator
        Who is asked.
    question
        The question, None if there is none.
    choices
        The labels to choose from.
    averages
        What is usual in each class.
    n_open, n_answered, n_unsent
        Questions that wait, this one included; answers given, and of these the ones that have not
        reached the broker.
    n_read
        Records read so far, while the topics are read from their start; then None.
    note
        What has just happened.
    trouble
        What is wrong with the broker.
    now
        The time, POSIX seconds.

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
    """Whether numbers are asked for, not names of classes."""
    asks_confidence: bool = False
    """Whether it is asked how sure an answer is."""


def heading(view: View) -> Text:
    """Return what is asked, about what, and why."""
    question = view.question
    assert question is not None
    request = question.request
    about = f"event {printable(request.event_id)}"
    if request.key is not None:
        about += f" of {printable(request.key)}"
    text = Text()
    if isinstance(request, Challenge):
        still = "still " if request.reason == "LeaveOneOutReview" else ""
        text.append(f"Are you {still}sure?\n", style="bold")
        text.append(f"{about}{_when(view)}, challenged {ago(view.now - request.requested_at)}\n")
        text.append(_whose_label(request, view.annotator))
        text.append(shown_label(request.given), style="bold")
        text.append(". The examples learned so far speak for ")
        text.append(shown_label(request.suggested), style="bold")
        if request.std is not None:
            text.append(f" \N{PLUS-MINUS SIGN} {request.std:.3g}")
        text.append(f" (probability that {shown_label(request.given)} is wrong: ")
        text.append(f"{request.probability_wrong:.2f}).\n")
    else:
        what = "How much is it?\n" if view.of_numbers else "Which is it?\n"
        text.append(what, style="bold")
        text.append(f"{about}{_when(view)}, asked {ago(view.now - request.requested_at)}\n")
    words = reasons().get(request.reason)
    rule = f"{printable(request.reason)} {request.score:.2g} > {request.threshold:.2g}"
    text.append("because " + (f"{words} " if words else ""))
    text.append(f"({rule})\n" if words else f"{rule}\n", style="dim" if words else "")
    text.append(_waits(view, request.expires_at), style="dim")
    if question.supersedes is not None:
        text.append("\nYou took your answer back.")
    return text


def ago(seconds: float) -> str:
    """Say how long ago something was.

    Examples
    --------
    >>> ago(1.2), ago(250.0)
    ('just now', '4 min 10 s ago')

    """
    return "just now" if seconds < _NOTICED_S else f"{span(seconds)} ago"


def _when(view: View) -> str:
    """Say when the event was, where the question came noticeably later."""
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


def features(view: View, *, start: int = 0, most: int | None = None) -> RenderableType:
    """Return the features of the event, see `feature_table`."""
    assert view.question is not None
    return feature_table(view.question.request, view.averages, view.choices, start=start, most=most)


def labels(view: View) -> RenderableType:
    """Return the labels with their keys, and the other commands."""
    request = None if view.question is None else view.question.request
    here: list[Text] = []
    elsewhere: list[Text] = []
    for choice in view.choices:
        mark = ""
        if isinstance(request, Challenge):
            given = _same(choice.label, request.given)
            suggested = _same(choice.label, request.suggested)
            mark = " (given)" if given else " (suggested)" if suggested else ""
        key = (choice.character or "n", "bold cyan")
        entry = Text.assemble(key, f" {cut(shown_label(choice.label))}{mark}")
        (here if choice.is_here else elsewhere).append(entry)
    parts = [Legend(entries=here)] if here else []
    if elsewhere:
        parts.append(Legend(entries=elsewhere, title="known elsewhere: "))
    new = "n type a number" if view.of_numbers else "n new label"
    commands = (new, "d don't know", "s skip", "u undo", "? help", "q quit")
    keys = [Text.assemble((text[0], "bold cyan"), (text[1:], "dim")) for text in commands]
    return Group(*parts, Legend(entries=keys))


def _same(a: Label, b: Label) -> bool:
    return type(a) is type(b) and a == b


def status(view: View) -> Text:
    """Return how many questions wait, and what goes on."""
    if view.n_read is not None:
        return Text(f"reading what was asked and answered so far: {view.n_read} records")
    waiting = "nothing waits" if not view.n_open else f"{view.n_open} wait"
    waiting = "1 waits" if view.n_open == 1 else waiting
    text = Text(
        f"{printable(view.annotator)}: {waiting}, {number(view.n_answered, 'answer')} given"
    )
    if view.n_unsent:
        text.append(f", {view.n_unsent} not sent yet", style="yellow")
    if view.trouble is not None:
        text.append(f"\n{printable(view.trouble)}; trying again", style="red")
    return text


def whole(
    view: View,
    *,
    start: int = 0,
    most: int | None = None,
    below: RenderableType | None = None,
) -> RenderableType:
    """Return the question with everything that belongs to it; `below` stands in for its keys."""
    if view.question is None:
        return Text("no question is open; new ones appear here")
    return Group(
        heading(view),
        Text(),
        Padding(features(view, start=start, most=most), (0, 0, 0, 2), expand=False),
        Text(),
        labels(view) if below is None else below,
    )


def printable_lines(text: str) -> str:
    """Return a text of several lines such that it cannot do anything to a terminal."""
    return "\n".join(printable(line) for line in text.splitlines())


HELP = """\
A question is about one event: which label belongs to it? The features tell what was
observed, beside them stands what is usual in each class.

"Are you sure?" comes back to a label that does not fit what was learned before, "Are you
still sure?" to an earlier one that does not fit what was learned since. Beside the event
stand the examples most like it. Your second answer counts, whichever it is.

  1-9, a-z   give the label that stands beside the key
  n          type a label; in double quotes it is text even if it looks like a number
  0-9        where numbers are asked for: type one, and how exact it is, as in 21.5 +- 0.5
  1-5        with --confidence, after a label: how sure you are, from 1 (guessed) to 5
             (certain); Enter leaves it out, Esc goes back. In a line it stands behind the
             label, as in: kitchen ?4
  d          don't know: the question ends without a label; a challenged one stays
  s          skip: the question comes again after all others
  u          undo: take the last answer back, and ask again
  m          show more features
  q          quit; whatever waits will wait for the next time
"""
