"""The commands `streamgp replay`, a recorded log played again, and `streamgp report`, its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamgp.cli.options import (
    GivenPath,
    WholeNumber,
    check_output,
    completed_as,
    features_option,
    ignore_option,
    target_option,
)
from streamgp.config.load import check_config, load, with_options
from streamgp.config.settings import Config

_LARGEST_SEED = 2**32 - 1
# Each takes as long as three replays; a thousand reduce the standard error to 1/32 of one's.
_MOST_SEEDS = 1000


@click.command()
@click.argument("log", type=GivenPath())
@click.option(
    "--label",
    metavar="COLUMN",
    help="Column that holds the true label. Required, here or in the configuration file. An empty "
    "cell means that the label is not known.",
)
@click.option(
    "--time",
    metavar="COLUMN",
    help="Column that holds the time: POSIX seconds or ISO 8601.  [default: the row number, in "
    "seconds]",
)
@click.option(
    "--key",
    metavar="COLUMN",
    help="Column that says to whom or what a row belongs (a user, a device). Every key has its own "
    "learner.",
)
@ignore_option
@features_option
@target_option
@click.option(
    "--annotator",
    metavar="NAME=VALUE,...",
    multiple=True,
    help="Settings of the simulated annotator, who reads the answers from the label column. "
    "error_rate: share of wrong answers; delay: seconds until an answer comes; decline_rate: share "
    "of requests left unanswered; stubborn=true: repeats the first answer when challenged; "
    "tiring_rate: how much each question adds to error_rate, half of which fades in half_life_s "
    "seconds; response_s: median time of an answer; slowing: how much each question adds to it; "
    "response_spread: how much it varies; classes=A|B|C: labels from which wrong answers are "
    "drawn; for numbers, noise: standard deviation of an answer; outlier: how many standard "
    "deviations of all truths a wrong answer is off; states_noise=true: says how exact each answer "
    "is; name; seed. Repeat the option, each time with a name, for several annotators who share "
    "the questions.  [default: answers at once and is never wrong]",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE.toml",
    type=GivenPath(),
    help="Configuration file with learner, rules, budget, annotator and columns; `streamgp init` "
    "prints one. Options on the command line override it.",
)
@click.option(
    "--preset",
    type=click.Choice(["default", "paper"]),
    help="Where values that are not given come from: the defaults, or the ISGP paper.",
)
@click.option(
    "--seed",
    type=WholeNumber(0, _LARGEST_SEED),
    metavar="N",
    help="Seed of all random draws, including the annotator's unless it has its own. The same seed "
    "and log give the same run.  [default: 1]",
)
@click.option(
    "--seeds",
    type=WholeNumber(1, _MOST_SEEDS),
    metavar="N",
    help="Replay with N seeds, starting at --seed, and print means with 95 % intervals. For "
    "comparison, print the same learner asking as often at random, and one told every true label. "
    "Takes three times as long per seed, and writes no files.",
)
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help="Stop after N rows.")
@click.option(
    "--out",
    type=GivenPath("directory", refuses_dash=True, readable=False),
    shell_complete=completed_as("dir"),
    metavar="DIR",
    help="Write predictions.jsonl, requests.jsonl, answers.jsonl, consensus.jsonl, rejected.jsonl, "
    "summary.json and timing.json to this directory. It is created if missing; existing files with "
    "these names are replaced, all others are kept.",
)
@click.option(
    "--report",
    type=GivenPath("file", refuses_dash=True),
    metavar="FILE.html",
    help="Write a self-contained web page: numbers, curves, confusion matrix and every challenge. "
    "Works without --out.",
)
@click.option(
    "--state",
    type=GivenPath("directory", refuses_dash=True, readable=False),
    shell_complete=completed_as("dir"),
    metavar="DIR",
    help="Save the run in this directory every few seconds. After Ctrl-C, a crash or a power "
    "failure, the same command continues from there and ends with the same output as if it had "
    "never stopped.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="With --state: refuse to continue in another numerical environment (versions of numpy and "
    "others, BLAS kernel), where the last digits may differ. Without this option, only a warning "
    "is printed.",
)
def replay(
    log: Path,
    config_file: Path | None,
    out: Path | None,
    report: Path | None,
    state: Path | None,
    strict: bool,
    seeds: int | None,
    **options: Any,
) -> None:
    """Replay a recorded LOG as if it happened now.

    The learner predicts every row. When it is unsure, it asks a simulated annotator, who is wrong
    as often as you say; it challenges answers that it finds suspicious. Progress goes to stderr,
    the table of results to stdout.

    LOG is CSV, JSON lines or Parquet (Parquet needs pyarrow: pip install pyarrow), plain or
    compressed with gzip. An empty cell is a missing value. A row that cannot be read is
    counted and written to rejected.jsonl, and the run continues.

    \b
    Examples:
      streamgp replay rooms.csv --label room
      streamgp replay rooms.csv --label room \\
          --annotator error_rate=0.2,delay=300,decline_rate=0.05,seed=1
      streamgp replay phones.parquet --label activity --time timestamp \\
          --key user --ignore session --limit 5000 --out results
      streamgp replay rooms.csv --label room --report rooms.html
      streamgp replay rooms.csv --label temperature --target number --annotator noise=0.5
      streamgp replay phones.parquet --label activity --key user --out results --state state
      streamgp replay rooms.csv --label room --annotator error_rate=0.2 --seeds 5
      streamgp init > my.toml
      streamgp replay rooms.csv --label room --config my.toml
    """
    loaded = Config() if config_file is None else load(config_file, target=options["target"])
    config = with_options(loaded, **options)
    check_config(config, source="command line")
    if config.log.label is None:
        raise click.UsageError(
            "name the column that holds the label: --label COLUMN, or label in section [log] of "
            "the configuration file"
        )
    if strict and state is None:
        raise click.UsageError(
            "--strict concerns a saved replay that is continued; give --state DIR as well"
        )
    if seeds is not None:
        if out is not None or report is not None or state is not None:
            raise click.UsageError(
                "--seeds prints a table and writes no files: leave out --out, --report and --state"
            )
        if config.seed + seeds - 1 > _LARGEST_SEED:
            raise click.UsageError(
                f"the last of {seeds} seeds starting at {config.seed} exceeds {_LARGEST_SEED}; "
                "give a smaller --seed"
            )
        from streamgp.apps.replay.seeds import replay_with_seeds

        named = str(config_file or "configuration")
        click.get_current_context().exit(replay_with_seeds(log, config, seeds, source=named))
    if report is not None and state is not None and out is None:
        raise click.UsageError(
            "--report with --state needs the messages of the whole run, also of earlier parts; "
            "give --out DIR as well"
        )
    if report is not None:
        from streamgp.apps.replay.results import FILE_NAMES

        read = [log, *([] if config_file is None else [config_file])]
        read += [] if out is None else [out / name for name in FILE_NAMES]
        check_output(report, read=read, makes_directory=True)
    from streamgp.apps.replay.run import replay_log

    # Errors about the learner name the file: no option sets it.
    click.get_current_context().exit(
        replay_log(
            log,
            config,
            out,
            source=str(config_file or "configuration"),
            report=report,
            state=state,
            strict=strict,
        )
    )


# --- The command `streamgp report`: a web page made from the files of a replay.


@click.command()
@click.argument("directory", metavar="DIR", type=GivenPath(file_okay=False))
@click.argument("file", metavar="FILE.html", type=GivenPath())
def report(directory: Path, file: Path) -> None:
    """Make a web page of a run.

    DIR is the directory that `streamgp replay --out DIR` wrote. FILE.html is a single
    self-contained file: numbers, curves, confusion matrix, and every challenge with its outcome.
    The page is the same as that of `streamgp replay --report FILE.html`.

    \b
    Example:
      streamgp replay rooms.csv --label room --out results
      streamgp report results rooms.html
    """
    from streamgp.apps.replay.results import FILE_NAMES, write_report

    check_output(file, read=[directory / name for name in FILE_NAMES], makes_directory=True)
    write_report(directory, file)
    click.echo(f"report: {file}")
