"""The command `streamgp init`: a commented configuration file with the values of a preset."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from streamgp.base import Preset, Target
from streamgp.cli import COMPLETE_VARIABLE
from streamgp.cli.options import target_option
from streamgp.config.templates import template


@click.command()
@click.option(
    "--preset",
    type=click.Choice(["default", "paper"]),
    default="default",
    show_default=True,
    help="Preset whose values to write.",
)
@click.option(
    "--worker", is_flag=True, help="Print one for `streamgp run` instead of `streamgp replay`."
)
@target_option
def init(preset: Preset, worker: bool, target: Target | None) -> None:
    """Print a commented configuration file with all settings.

    \b
    For a replay:
      streamgp init > streamgp.toml
      streamgp replay log.csv --label activity --config streamgp.toml
    For a worker on Kafka:
      streamgp init --worker > worker.toml
      streamgp check worker.toml
      streamgp run worker.toml --create-topics
    """
    if (preset, target) == ("paper", "number"):
        raise click.UsageError("--preset paper is for labels; leave it out")
    click.echo(template(preset, target or "label", worker=worker), nl=False)


# --- The command `streamgp completion`: the script by which a shell completes our words.
# Whenever the user presses Tab, the script that it prints runs `streamgp` itself, with a variable
# in the environment that requests completions; click answers.


PROGRAM = "streamgp"


def directories(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Leave the completion of directory names to the shell."""
    return [CompletionItem(incomplete, type="dir")]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and files with Tab.

    It takes effect in the next shell that you start.

    \b
    bash 4.4 or later: add to ~/.bashrc
      eval "$(streamgp completion bash)"
    zsh: add to ~/.zshrc, below the line with compinit
      eval "$(streamgp completion zsh)"
    fish: run once
      streamgp completion fish > ~/.config/fish/completions/streamgp.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click supports all three
    root = click.get_current_context().find_root().command
    # Not `source()`: for bash, that runs bash to ask for its version, and there may be none here.
    script = kind(root, {}, PROGRAM, COMPLETE_VARIABLE)
    click.echo(script.source_template % script.source_vars())
