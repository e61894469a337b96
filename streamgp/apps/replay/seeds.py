"""Replays with several seeds, beside baselines that learn: means with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import click
from msgspec.structs import replace
from scipy.special import stdtrit

from streamgp.apps.console import DONE, INTERRUPTED, number, progress, tell
from streamgp.apps.recorded_logs import Notes, RepeatedLog, check_rereadable, tell_rejected
from streamgp.apps.replay.engine import Played
from streamgp.apps.replay.results import learner_name
from streamgp.apps.replay.run import ReplaySink, play_log, status_of_run
from streamgp.config.rules import section
from streamgp.config.settings import Annotator, Config, Questions
from streamgp.evaluation import RunStatistics
from streamgp.evaluation.run_statistics import SCORES
from streamgp.report.tables import LARGE, amount, text_table

AT_RANDOM, ALL_CLEAN = "asked at random", "all labels, clean"
_LEVEL = 0.95


def replay_with_seeds(path: Path, config: Config, n_seeds: int, *, source: str) -> int:
    """Replay a log with several seeds, and show means with 95 % intervals.

    Below the learner are shown: the same learner with as many questions about random events, the
    same learner with all true labels, and baselines that need no features.

    Parameters
    ----------
    config
        The configuration, with the label column; its seed is the first. An annotator's own seed
        makes no difference.

    Returns
    -------
    The exit status: 0, 130 after Ctrl-C, or that of a replay from which nothing can be learned.

    Raises
    ------
    ConfigError
        If the learner cannot be built.
    click.ClickException
        If the log cannot be read to its end, or only once.

    """
    check_rereadable(path, needed_by="--seeds")
    log = RepeatedLog(path, source=source)
    runs: dict[str, list[RunStatistics]] = {}
    n_drifts: list[int] = []
    for n in range(n_seeds):
        # Those of the first replay only: all read the same log.
        notes, sink = None if n else Notes(), ReplaySink(None)
        for name, played in _replays(log, seeded(config, config.seed + n), notes, sink):
            if played.result.interrupted:
                tell("interrupted; nothing is shown for only some of the runs")
                return INTERRUPTED
            if not n and not runs:
                reasons = [reason for _, reason in sink.reasons]
                tell_rejected(reasons, played.statistics.n_rejected)
                if status := status_of_run(path, played, sink):
                    return status
            runs.setdefault(name, []).append(played.statistics)
            if name == learner_name(config):
                n_drifts.append(0 if played.drifts is None else played.drifts.n_found)
        tell(f"seed {config.seed + n} done")
    titles = (*_TITLES[config.target], "labels\nasked", "challenges", "wrong\nlabels\nkept")
    scores = SCORES[config.target]
    rows: list[tuple[str, list[str]]] = [
        (
            name,
            [
                _spread([getattr(statistics, kind) for statistics in found], kind)
                for kind in (*scores, *_COUNTS)
            ],
        )
        for name, found in runs.items()
    ]
    [statistics, *_] = runs[learner_name(config)]
    for name, of_baseline in statistics.baselines().items():
        # They are the same for every seed.
        cells = [_spread([of_baseline[kind]], kind) for kind in scores]
        rows.append((name, [*cells, "all", "-", "-"]))
    click.echo(text_table(rows, titles))
    if any(n_drifts):
        found = ", ".join(map(str, n_drifts))
        click.echo(f"concept drifts found by {learner_name(config)}, with each seed: {found}")
    click.echo(f"means of {number(n_seeds, 'seed')} ± half of their {100 * _LEVEL:.0f} % interval")
    return DONE


_TITLES = {"label": ("accuracy", "macro F1"), "number": ("mean abs.\nerror", "NMSE")}
_COUNTS = ("n_asked", "n_challenges", "wrong_kept")
# Shares have three decimals; errors in units of the target, and large ones, three digits.
_FORMATS: dict[str, Callable[[float], str]] = {
    "n_asked": "{:.0f}".format,
    "n_challenges": "{:.0f}".format,
    "mae": amount,
}


def _replays(
    log: RepeatedLog, config: Config, notes: Notes | None, sink: ReplaySink
) -> Iterator[tuple[str, Played]]:
    """Run the learner, and the baselines that learn, with one seed; `sink` is the learner's."""
    played = play_seed(log, config, notes=notes, sink=sink)
    yield learner_name(config), played
    unlimited = section("budget", "unlimited")
    told = replace(config, budget=unlimited, total_budget=unlimited, questions=Questions())
    at_random = section("query", "random", rate=played.statistics.label_rate or 0.0)
    yield AT_RANDOM, play_seed(log, replace(told, query=at_random))
    everything = replace(
        told,
        query=section("query", "always"),
        challenge=section("challenge", "never"),
        annotator=Annotator(),
        annotators={},
    )
    yield ALL_CLEAN, play_seed(log, everything)


def play_seed(
    log: RepeatedLog,
    config: Config,
    *,
    notes: Notes | None = None,
    sink: ReplaySink | None = None,
    of: str = "",
) -> Played:
    """Replay a log once.

    Parameters
    ----------
    config
        A configuration returned by `seeded`.
    notes, sink
        As for `play_log`.
    of
        Prefix of the progress line.

    Returns
    -------
    The counts; `result.interrupted` is true after Ctrl-C.

    Raises
    ------
    click.ClickException
        If the log cannot be read to its end.

    """
    with progress() as show:
        played = play_log(
            log,
            config,
            notes=notes,
            sink=sink,
            on_event=lambda n, share: show(f"{of}seed {config.seed}: {number(n, 'event')}", share),
        )
    if played.damage is not None:
        raise click.ClickException(str(played.damage))
    return played


def seeded(config: Config, seed: int) -> Config:
    """Return a configuration whose random draws all follow from a seed."""
    annotators = {name: replace(one, seed=None) for name, one in config.annotators.items()}
    annotator = replace(config.annotator, seed=None)
    return replace(config, seed=seed, annotator=annotator, annotators=annotators)


def _spread(values: Sequence[float | None], kind: str) -> str:
    """Return a mean and half of its confidence interval, by Student's distribution.

    Examples
    --------
    >>> _spread([0.90, 0.92, 0.94], "accuracy"), _spread([205, 206], "n_asked")
    ('0.920 ± 0.050', '206 ± 6')
    >>> _spread([0.5], "mae"), _spread([None, 0.5], "wrong_kept")
    ('0.5', '-')
    >>> _spread([1e12, 3e12, 2e12], "nmse")
    '2e+12 ± 2.48e+12'
    >>> _spread([5700.0, 5750.0, 5800.0], "mae")
    '5750 ± 124'

    """
    known = [float(value) for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    mean = fmean(known)
    shown = _FORMATS.get(kind, "{:.3f}".format if mean < LARGE else amount)
    if len(known) == 1:
        return shown(mean)
    half = stdtrit(len(known) - 1, 0.5 + _LEVEL / 2.0) * stdev(known) / sqrt(len(known))
    return f"{shown(mean)} ± {shown(half)}"
