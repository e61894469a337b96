"""The command `streamgp init`: a commented configuration file with the values in force."""

from __future__ import annotations

import click
import msgspec
from click.shell_completion import CompletionItem, get_completion_class

from streamgp.config.settings import Config, Learner, PresetName, Topics, Worker, resolved
from streamgp.config.templates import REPLAY, WORKER
from streamgp.config.validation import shown


def template(preset: PresetName = "default", *, worker: bool = False) -> str:
    """Write the configuration file of a preset, for a replay or for a worker."""
    config = resolved(Config(preset=preset))
    scale = config.learner.length_scale
    return (WORKER if worker else REPLAY).format(
        preset=shown(config.preset),
        target=shown(config.target),
        seed=config.seed,
        warm_up=config.warm_up,
        name=shown(Learner().name),
        length_scale="#length_scale = 2.0" if scale is None else f"length_scale = {scale}",
        noise_variance=config.learner.noise_variance,
        max_points=shown(config.learner.max_points),
        learn_hyperparameters=shown(config.learner.learn_hyperparameters),
        drift=shown(config.learner.drift),
        query=_rule(config.query),
        challenge=_rule(config.challenge),
        budget=shown("unlimited"),
        error_rate=config.annotator.error_rate,
        delay=config.annotator.delay,
        decline_rate=config.annotator.decline_rate,
        stubborn=shown(config.annotator.stubborn),
        tiring_rate=config.annotator.tiring_rate,
        half_life_s=config.annotator.half_life_s,
        response_s=config.annotator.response_s,
        slowing=config.annotator.slowing,
        response_spread=config.annotator.response_spread,
        noise=config.annotator.noise,
        outlier=config.annotator.outlier,
        states_noise=shown(config.annotator.states_noise),
        **_of_worker(),
    )


def _of_worker() -> dict[str, str]:
    topics = {name: shown(value) for name, value in msgspec.to_builtins(Topics()).items()}
    topics["state_topic"] = topics.pop("state")
    worker = {name: shown(value) for name, value in msgspec.to_builtins(Worker()).items()}
    return topics | worker


def _rule(rule: object) -> str:
    settings = msgspec.to_builtins(rule)
    return "\n".join(f"{name} = {shown(value)}" for name, value in settings.items())


@click.command()
@click.option(
    "--preset",
    type=click.Choice(["default", "paper"]),
    default="default",
    show_default=True,
    help="Whose values to write.",
)
@click.option("--worker", is_flag=True, help="For `streamgp run`, not for `streamgp replay`.")
def init(preset: PresetName, worker: bool) -> None:
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
    click.echo(template(preset, worker=worker), nl=False)


# --- The command `streamgp completion`: what a shell needs to complete our words.
#
# The script that it prints asks `streamgp` itself, whenever the user presses Tab, with a variable
# that says so in the environment; click answers.


PROGRAM = "streamgp"
COMPLETE_VARIABLE = "_STREAMGP_COMPLETE"


def directories(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Leave it to the shell to complete the name of a directory."""
    return [CompletionItem(incomplete, type="dir")]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and files with Tab.

    It takes effect in the next shell that is started.

    \b
    bash, needs version 4.4 or later; add to ~/.bashrc:
      eval "$(streamgp completion bash)"
    zsh; add to ~/.zshrc, below the line with compinit:
      eval "$(streamgp completion zsh)"
    fish; write once:
      streamgp completion fish > ~/.config/fish/completions/streamgp.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click knows all three
    root = click.get_current_context().find_root().command
    # Not `source()`: for bash that starts one to ask for its version, and there may be none here.
    script = kind(root, {}, PROGRAM, COMPLETE_VARIABLE)
    click.echo(script.source_template % script.source_vars())
