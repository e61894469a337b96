"""What stands on the screen while a label is typed, and while it is asked how sure one is of it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from streamgp.cli.annotate.choices import shown_label
from streamgp.cli.annotate.commands import Command, said
from streamgp.cli.annotate.confidence import WORDS
from streamgp.cli.annotate.legend import Legend
from streamgp.cli.annotate.question import View


def typing(typed: str, view: View) -> Text:
    """Return what has been typed, and what it may become."""
    what = "number: " if view.of_numbers else "new label: "
    text = Text.assemble((what, "bold"), typed, ("_", "blink"))
    if view.of_numbers:
        return text.append("   as 21.5 or 21.5 +- 0.5; Enter: give it, Esc: back", style="dim")
    near = [shown_label(choice.label) for choice in view.choices]
    near = [label for label in near if typed and label.casefold().startswith(typed.casefold())]
    if near:
        text.append(f"   known: {', '.join(near[:5])}", style="dim")
    return text.append("   Enter: give it, Esc: back", style="dim")


def how_sure(unrated: Command) -> RenderableType:
    """Return what is asked about an answer that was chosen, with the keys."""
    keys = [Text.assemble((key, "bold cyan"), f" {word}") for key, word in WORDS.items()]
    others = {"Enter": "leave it out", "Esc": "back", "?": "help", "q": "quit"}
    rest = [Text.assemble((key, "bold cyan"), (f" {what}", "dim")) for key, what in others.items()]
    return Group(
        Text.assemble("How sure are you of ", (said(unrated), "bold"), "?"),
        Legend(entries=keys),
        Legend(entries=rest),
    )
