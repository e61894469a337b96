"""The command `streamgp tune`: its options, and which of them can be combined."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from streamgp.apps.console import tell
from streamgp.cli.options import (
    GivenPath,
    Number,
    WholeNumber,
    check_output,
    check_picture,
    features_option,
    ignore_option,
)
from streamgp.config.load import check_config, load, with_options
from streamgp.config.settings import Config

DEFAULT_LIMIT = 3000
# Sections that concern only questions and challenges, which a search does not have.
_IGNORED_BY_SEARCH = ("challenge", "review", "reservoir", "budget", "total_budget")
_FOR_NUMBERS = (
    "for numbers, a Gaussian process finds its hyperparameters itself, with "
    "learner.learn_hyperparameters = true: use `streamgp replay` with --target number"
)


def _numbers(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[float, ...]:
    """Split at commas; every piece is a positive number."""
    if value is None:
        return ()
    numbers = (Number().convert(piece.strip(), parameter, context) for piece in value.split(","))
    return tuple(dict.fromkeys(numbers))


@click.command()
@click.argument("log", type=GivenPath())
@click.argument("configs", metavar="[FILE.toml]...", nargs=-1, type=GivenPath())
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column that holds the true label. Required, here or in the configuration file.",
)
@click.option("--time", metavar="COLUMN", help="Column that holds the time, as for replay.")
@click.option(
    "--key",
    metavar="COLUMN",
    help="Column that says to whom or what a row belongs. Every key has its own learner.",
)
@ignore_option
@features_option
@click.option(
    "--annotator",
    metavar="NAME=VALUE,...",
    multiple=True,
    help="Settings of the simulated annotator, as for replay: with error_rate=0.2, every fifth "
    "label is wrong. The search learns every label, without delays and challenges, so delay and "
    "stubborn matter only in the replays with questions.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE.toml",
    type=GivenPath(),
    help="Configuration to start from. It is tried first; settings that are not tuned keep their "
    "values.",
)
@click.option(
    "--seed",
    type=WholeNumber(0, 2**32 - 1),
    metavar="N",
    help="Seed of the annotator.  [default: 1]",
)
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    metavar="N",
    help=f"Stop after N rows.  [default: {DEFAULT_LIMIT}, or the rows of as many windows; with "
    "--compare, all]",
)
@click.option(
    "--length-scales",
    callback=_numbers,
    metavar="A,B,...",
    help="Length scales to try, in units of the scaled features.  [default: five, from a quarter "
    "to four times the current one]",
)
@click.option(
    "--noise-variances",
    callback=_numbers,
    metavar="A,B,...",
    help="Noise variances to try.  [default: 0.02,0.1,0.25,0.5,1]",
)
@click.option(
    "--by",
    type=click.Choice(["accuracy", "log-loss"]),
    default="accuracy",
    show_default=True,
    help="Measure that selects the configurations to replay with questions; the other one breaks "
    "ties.",
)
@click.option(
    "--output",
    type=GivenPath("file", refuses_dash=True),
    metavar="FILE.toml",
    help="Write the best configuration to this file, for `streamgp replay LOG --config FILE.toml`.",
)
@click.option(
    "--compare",
    "is_comparison",
    is_flag=True,
    help="Replay the log with each FILE.toml, with questions and challenges, and compare the "
    "results; search nothing. All must have the same annotator; --annotator sets it for all.",
)
@click.option(
    "--picture",
    type=GivenPath("file", refuses_dash=True),
    metavar="FILE",
    help="With --compare: draw the learning curves to this file: .png, .svg or .pdf. Needs "
    "matplotlib (pip install matplotlib).",
)
def tune(
    log: Path,
    configs: tuple[Path, ...],
    config_file: Path | None,
    length_scales: tuple[float, ...],
    noise_variances: tuple[float, ...],
    by: str,
    output: Path | None,
    is_comparison: bool,
    picture: Path | None,
    **options: Any,
) -> None:
    """Find hyperparameters of the Gaussian process on a recorded LOG.

    Every candidate configuration goes through the log and predicts each event before it learns the
    label. The table shows the share of right predictions, the mean negative logarithm of the
    probability of the true label (below 1 % counts as 1 %), and the time. The first row learns best
    if it is told every label. It, those that are as good, and the unchanged configuration are then
    replayed with questions and challenges. The best of these has the largest accuracy minus
    questions per event, and its accuracy is at most one standard error below that of the unchanged
    configuration. A last table shows what it makes of fewer and more questions.

    LOG is a file that `streamgp replay` can read. Ctrl-C ends the search and keeps the best so far.

    \b
    Examples:
      streamgp tune rooms.csv --label room
      streamgp tune rooms.csv --label room --annotator error_rate=0.2 --output best.toml
      streamgp replay rooms.csv --config best.toml
      streamgp tune rooms.csv --label room --noise-variances 0.01,0.1,1
      streamgp tune rooms.csv --label room --annotator error_rate=0.2 \\
          --compare old.toml best.toml --picture both.png
    """
    searching = {
        "--config": config_file,
        "--length-scales": length_scales,
        "--noise-variances": noise_variances,
        "--output": output,
    }
    _check_together(is_comparison, configs, picture, [name for name, v in searching.items() if v])
    status = (
        _compare(log, configs, picture, options)
        if is_comparison
        else _search(
            log,
            config_file,
            options,
            length_scales=length_scales,
            noise_variances=noise_variances,
            by=by,
            output=output,
        )
    )
    click.get_current_context().exit(status)


def _check_together(
    is_comparison: bool, configs: tuple[Path, ...], picture: Path | None, searching: list[str]
) -> None:
    if is_comparison and searching:
        raise click.UsageError(f"--compare does not search; leave out {searching[0]} or --compare")
    if is_comparison and not configs:
        raise click.UsageError(
            "--compare needs configuration files, for example --compare a.toml b.toml"
        )
    if configs and not is_comparison:
        raise click.UsageError(
            f"unexpected argument {str(configs[0])!r}: a search takes one LOG and starts from "
            "--config FILE.toml; to compare configurations, give --compare"
        )
    if picture is not None and not is_comparison:
        raise click.UsageError("--picture can be used only with --compare")


def _search(log: Path, config_file: Path | None, options: dict[str, Any], **search: Any) -> int:
    config = _loaded(config_file, options)
    if config.learner.name != "gp":
        raise click.UsageError(
            f"a search tunes only the Gaussian process, got learner.name = "
            f'"{config.learner.name}"; compare other learners with --compare'
        )
    _refuse_numbers(log, config)
    _note_ignored(config)
    enough = math.inf if config.log.limit else DEFAULT_LIMIT
    if config.windows is None and config.log.limit is None:
        config = with_options(config, limit=DEFAULT_LIMIT)
    from streamgp.apps.tune.search import search as search_log

    if search["output"] is not None:
        check_output(search["output"], read=[log, *([config_file] if config_file else [])])
    source = str(config_file or "configuration")
    return search_log(log, config, source=source, enough=enough, **search)


def _refuse_numbers(log: Path, config: Config) -> None:
    """Refuse a log whose every number would be a class: that takes minutes and says nothing."""
    from streamgp.apps.recorded_logs import Notes, check_rereadable, open_rows

    check_rereadable(log, needed_by="tune")
    with closing(open_rows(log, config, Notes())) as rows:
        if rows.n_numbers:
            raise click.UsageError(
                f"column {config.log.label!r} holds numbers, {rows.n_numbers} different ones in "
                f"its first rows, and tune works for names of classes only; {_FOR_NUMBERS}; if "
                "they are names, write them as text (room-1.5)"
            )


def _note_ignored(config: Config) -> None:
    default = Config()
    named = [
        f"[{name}]"
        for name in _IGNORED_BY_SEARCH
        if getattr(config, name) != getattr(default, name)
    ]
    if named:
        tell(
            f"note: the search learns every label and ignores {', '.join(named)}, used only when "
            "the best are replayed with questions"
        )


def _compare(
    log: Path, files: tuple[Path, ...], picture: Path | None, options: dict[str, Any]
) -> int:
    configs = [(file, _loaded(file, options)) for file in files]
    _refuse_numbers(log, configs[0][1])
    from streamgp.apps.tune.compare import compare

    if picture is not None:
        check_picture(picture, read=[log, *files])
    return compare(log, configs, picture=picture)


def _loaded(file: Path | None, options: dict[str, Any]) -> Config:
    config = with_options(Config() if file is None else load(file), **options)
    check_config(config, source="command line")
    if config.target == "number":
        raise click.UsageError(
            'tune works for labels only, got target = "number"; if the log holds names of classes, '
            f'write target = "label"; {_FOR_NUMBERS}'
        )
    if config.log.label is None:
        of = "the configuration file" if file is None else str(file)
        raise click.UsageError(
            f"name the column that holds the label: --label COLUMN, or label in section [log] of "
            f"{of}"
        )
    return config
