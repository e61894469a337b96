"""Program of `streamgp tune`: read, search, replay the best with questions, show, write."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import click
import numpy as np
from msgspec.structs import asdict
from msgspec.structs import replace as changed

from connectors.broker import Received
from connectors.storage.snapshots import state_error
from streamgp.apps.console import DONE, INTERRUPTED, Show, aligned, number, progress, tell
from streamgp.apps.recorded_logs import RepeatedLog
from streamgp.apps.replay.run import ReplaySink
from streamgp.apps.replay.seeds import play_seed, seeded
from streamgp.apps.tune import MOST
from streamgp.apps.tune.scoring import (
    By,
    Recording,
    Score,
    judge,
    read_recording,
)
from streamgp.common.private_files import write_private
from streamgp.config import build
from streamgp.config.settings import Config, Learner, resolved
from streamgp.config.templates import toml
from streamgp.evaluation import RunStatistics
from streamgp.features import Columns
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.interactive.messages import Event, EventKey, Input, Message, Prediction
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.learners.gp_core import LENGTH_SCALE_PER_ROOT_FEATURE
from streamgp.query.skeptical_base import scaling_for

# --- Grid search: all pairs of the given values.


# Factors of the length scale if no values are given.
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_NOISE_VARIANCES = (0.02, 0.1, 0.25, 0.5, 1.0)


def candidates(
    config: Config,
    default_scale: float,
    *,
    length_scales: Sequence[float] = (),
    noise_variances: Sequence[float] = (),
) -> list[Learner]:
    """Return the learners to try; the configured one is the first.

    Parameters
    ----------
    config
        The configuration.
    default_scale
        The length scale of a learner without a given one.
    length_scales, noise_variances
        Values to try; by default some around those of the configuration. A kernel of the
        configuration has length scales of its own, which stay.

    Raises
    ------
    click.UsageError
        If there are too many, or length scales beside a kernel.

    Examples
    --------
    >>> tried = candidates(Config(), 2.4, length_scales=[1.0], noise_variances=[0.1, 0.5])
    >>> [(learner.length_scale, learner.noise_variance) for learner in tried]
    [(None, 0.5), (1.0, 0.1), (1.0, 0.5)]

    """
    given = resolved(config).learner
    has_kernel = "kernel" in given.options
    if has_kernel and length_scales:
        raise click.UsageError(
            "--length-scales and learner.options.kernel, which has length scales of its own, "
            "exclude each other; leave one of them out"
        )
    scales: Sequence[float | None] = length_scales or (
        [None] if has_kernel else _around(given.length_scale, default_scale)
    )
    noises = noise_variances or _NOISE_VARIANCES
    if len(scales) * len(noises) > MOST:
        raise click.UsageError(
            f"{len(scales)} length scales and {len(noises)} noise variances are "
            f"{len(scales) * len(noises)} pairs, expected {MOST} at most; name fewer"
        )
    pairs = [(scale, noise) for scale in scales for noise in noises]
    tried = [given, *(changed(given, length_scale=s, noise_variance=v) for s, v in pairs)]
    return [learner for i, learner in enumerate(tried) if learner not in tried[:i]]


def rounded(value: float) -> float:
    """Return a value rounded to three digits, for readability."""
    return float(f"{value:.3g}")


def _around(given: float | None, default: float) -> list[float | None]:
    middle = default if given is None else given
    # A length scale that is not given grows with the number of features: keep it that way.
    return [given if factor == 1.0 else rounded(factor * middle) for factor in _FACTORS]


# --- Result of a search: ranked trials, the best one, and the tables.


N_SHOWN = 20
N_REPLAYED = 5
"""Number of best configurations that are replayed with questions, besides the given one."""
N_SEEDS = 3
"""Number of seeds of these replays."""
# Factors of the `c` of the best configuration, which asks more or fewer questions with them.
FACTORS_OF_C = (0.5, 2.0, 4.0)
# Days that a key must span, on average, for a proposal of questions a day.
_FEWEST_DAYS = 2.0
_TITLES = ["length scale", "noise variance", "accuracy", "log loss", "asks", "µs per event", ""]
_REPLAYED_TITLES = [
    "length scale",
    "noise variance",
    "accuracy",
    "difference",
    "questions",
    "worth",
    "",
]
# So few that they hardly depend on each other, so many that their spread is known.
_N_BLOCKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Means over several replays with questions.

    Parameters
    ----------
    hits
        For each event whose truth is known, by id and in order, the share of replays that
        predicted it.
    n_questions
        Number of label requests and challenges.

    Examples
    --------
    >>> few, many = (
    ...     Replayed(
    ...         n_events=4,
    ...         accuracy=accuracy,
    ...         hits={(None, str(i)): hit for i, hit in enumerate(hits)},
    ...         n_questions=1.0,
    ...         n_labels=1.0,
    ...     )
    ...     for accuracy, hits in ((0.75, [0.0, 1.0, 1.0, 1.0]), (0.5, [0.0, 0.0, 1.0, 1.0]))
    ... )
    >>> few.worth, few.error_of_difference(many)
    (0.5, 0.25)

    """

    n_events: int
    accuracy: float
    hits: Mapping[EventKey, float]
    n_questions: float
    n_labels: float

    @property
    def worth(self) -> float:
        """Accuracy minus the cost of questions, each as much as one wrong prediction."""
        return self.accuracy - self.n_questions / self.n_events

    def error_of_difference(self, other: Replayed) -> float:
        """Return the standard error of the difference of two accuracies on the same log.

        Neighbouring events are not independent, but blocks of consecutive events nearly are: it is
        the standard error of the mean of the differences in each block.

        References
        ----------
        [^1]: Schmeiser, B., 1982. Batch Size Effects in the Analysis of Simulation Output.
            Operations Research 30(3), pp. 556-568: 10 to 30 blocks.

        """
        # A learner may refuse an event.
        both = [(hit, other.hits[name]) for name, hit in self.hits.items() if name in other.hits]
        n = min(len(both), _N_BLOCKS)
        if n < 2:
            return 0.0
        differences = np.subtract(*np.transpose(both))
        blocks = [float(block.mean()) for block in np.array_split(differences, n)]
        return stdev(blocks) / math.sqrt(len(blocks))


class _Hits(ReplaySink):
    """Whether each event whose truth is known was predicted."""

    def __init__(self) -> None:
        super().__init__(None)
        self.hits: dict[EventKey, bool] = {}

    def send(self, message: Input | Message, *, cause: Received | None = None) -> None:
        super().send(message, cause=cause)
        if isinstance(message, Prediction) and cause is not None:
            event = cause.message
            if isinstance(event, Event) and event.truth is not None:
                self.hits[event.key, event.event_id] = message.y == event.truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One learner and its score.

    Parameters
    ----------
    is_given
        Whether it is the configured one.
    replayed
        Its results with questions, None if it was not replayed.

    """

    learner: Learner
    score: Score | None
    is_given: bool
    replayed: Replayed | None = None


def ranking(trials: Sequence[Trial], by: By) -> list[Trial]:
    """Return trials, the best first and those that could not learn last; ties keep their order."""

    def merit(trial: Trial) -> tuple[float, ...]:
        score = trial.score
        if score is None:
            return (math.inf,)
        values = (-score.accuracy, score.log_loss)
        return values if by == "accuracy" else values[::-1]

    return sorted(trials, key=merit)


def finalists(ranked: Sequence[Trial], by: By) -> list[Trial]:
    """Return the configured trial, if it could learn, and the first of those as good as the best.

    A trial is as good if it is worse by at most one standard error of the best: that much is
    chance.

    References
    ----------
    [^1]: Breiman, L., Friedman, J., Olshen, R. and Stone, C., 1984. Classification and Regression
        Trees, Sec. 3.4.3: the one standard error rule.

    """
    first = ranked[0].score
    if first is None:
        return []
    error = first.standard_error(by)

    def is_as_good(score: Score) -> bool:
        if by == "accuracy":
            return score.accuracy >= first.accuracy - error
        return score.log_loss <= first.log_loss + error

    able = [trial for trial in ranked if trial.score is not None]
    given = [trial for trial in able if trial.is_given]
    others = [t for t in able if not t.is_given and t.score is not None and is_as_good(t.score)]
    return [*given, *others[:N_REPLAYED]]


def best_of(replayed: Sequence[Trial]) -> Trial:
    """Return the trial with the highest `worth`, in which a question costs as much as an error.

    Only trials are considered whose accuracy is not below that of the configured one, if it could
    learn, by more than the standard error of the difference: if every label is given, an
    overconfident learner predicts as well as others, but in practice it does not ask when something
    new begins.

    Parameters
    ----------
    replayed
        Replayed trials, the configured one first; among equals the first one wins.

    """
    given = _given_of(replayed)

    def is_good(result: Replayed) -> bool:
        if given is None:
            return True
        return result.accuracy >= given.accuracy - given.error_of_difference(result)

    good = [
        (trial.replayed.worth, trial)
        for trial in replayed
        if trial.replayed is not None and is_good(trial.replayed)
    ]
    return max(good, key=lambda pair: pair[0])[1]


def _given_of(replayed: Sequence[Trial]) -> Replayed | None:
    """Return the results of the configured trial, the first one, if it could learn."""
    return replayed[0].replayed if replayed[0].is_given else None


def edges(best: Learner, tried: Sequence[Learner]) -> list[str]:
    """Return a line for each setting of the best learner at an end of three or more values tried.

    Examples
    --------
    >>> low, high, higher = (Learner(noise_variance=v, length_scale=2.0) for v in (0.1, 0.5, 1.0))
    >>> edges(low, [low, high, higher])
    ['its noise variance is the smallest tried; a smaller one may be better: --noise-variances']
    >>> edges(high, [low, high, higher])
    []

    """
    lines = []
    for name, option in (
        ("length_scale", "--length-scales"),
        ("noise_variance", "--noise-variances"),
    ):
        values = {getattr(learner, name) for learner in tried} - {None}
        value = getattr(best, name)
        for end, most, more in (
            (min, "smallest", "a smaller"),
            (max, "largest", "a larger"),
        ):
            if len(values) > 2 and value == end(values):
                what = name.replace("_", " ")
                lines.append(f"its {what} is the {most} tried; {more} one may be better: {option}")
    return lines


def trials_text(ranked: Sequence[Trial]) -> str:
    """Return the table of the best trials and the configured one."""
    shown = [t for i, t in enumerate(ranked) if i < N_SHOWN or t.is_given]
    rows = [_TITLES, *map(_cells, shown)]
    more = len(ranked) - len(shown)
    return aligned(rows, right=range(6)) + (f"\nand {more} more" if more else "")


def replayed_text(replayed: Sequence[Trial], best: Trial) -> str:
    """Return the table of the replays with questions."""
    rows, given = [_REPLAYED_TITLES], _given_of(replayed)
    for trial in replayed:
        assert trial.replayed is not None
        remarks = {"best": trial is best, "as it is": trial.is_given}
        difference = ""
        if given is not None and not trial.is_given:
            error = given.error_of_difference(trial.replayed)
            difference = f"{trial.replayed.accuracy - given.accuracy:+.3f} ± {error:.3f}"
        accuracy, *others = _replayed_numbers(trial.replayed)
        rows.append(
            [
                *_values(trial.learner),
                accuracy,
                difference,
                *others,
                ", ".join(words for words, holds in remarks.items() if holds),
            ]
        )
    return aligned(rows, right=range(6))


def _cells(trial: Trial) -> list[str]:
    remarks = {
        "as it is": trial.is_given,
        "too little noise for this log": trial.score is None,
    }
    return [
        *_values(trial.learner),
        *(["-"] * 4 if trial.score is None else _numbers(trial.score)),
        ", ".join(words for words, holds in remarks.items() if holds),
    ]


def _values(learner: Learner) -> list[str]:
    scale = learner.length_scale
    usual = "of kernel" if "kernel" in learner.options else "default"
    return [usual if scale is None else f"{scale:g}", f"{learner.noise_variance:g}"]


def _replayed_numbers(result: Replayed) -> list[str]:
    return [f"{result.accuracy:.3f}", f"{result.n_questions:.0f}", f"{result.worth:.3f}"]


def _numbers(score: Score) -> list[str]:
    return [
        f"{score.accuracy:.3f}",
        f"{score.log_loss:.3f}",
        f"{100 * score.asked_share:.0f} %",
        f"{score.microseconds:.0f}",
    ]


def search(
    path: Path,
    config: Config,
    *,
    source: str,
    enough: float,
    length_scales: Sequence[float],
    noise_variances: Sequence[float],
    by: By,
    output: Path | None,
) -> int:
    """Try learners on a log, replay some with questions, show both results, and write the best.

    Parameters
    ----------
    enough
        Number of events after which the rest of the log is left out.
    by
        Criterion of the best, "accuracy" or "log-loss".

    Returns
    -------
    The exit status: 0, or 130 after Ctrl-C.

    Raises
    ------
    click.ClickException
        If the log cannot be read or the file cannot be written, or no learner can learn this log.

    """
    recording = read_recording(path, config, source=source, enough=enough)
    if recording.is_cut:  # the replays with questions read as much
        config = changed(config, log=changed(config.log, limit=recording.n_rows))
    bench = _Bench(recording, config, source)
    tried = candidates(
        config,
        bench.default_scale,
        length_scales=length_scales,
        noise_variances=noise_variances,
    )
    trials, interrupted = _trials(bench, tried)
    if interrupted:
        further = "; replays the best of them, Ctrl-C ends that, too" if trials else ""
        tell(f"interrupted; {len(trials)} of {number(len(tried), 'configuration')} tried{further}")
    if not trials:
        return INTERRUPTED
    ranked = ranking(trials, by)
    final = finalists(ranked, by)
    if not final:
        raise click.ClickException(
            "no configuration could learn this log: the noise variance is too small for all of "
            "them; give larger ones with --noise-variances"
        )
    click.echo(trials_text(ranked))
    click.echo(
        f"\neach of {number(recording.n_examples, 'labelled event')} predicted before it was "
        f"learned; {number(len(recording.labels), 'class', 'classes')}"
    )
    if recording.n_rows == config.log.limit:
        click.echo(f"the log was read up to row {recording.n_rows}; --limit N reads more")
    log = RepeatedLog(path, source=source)
    replayed = _replayed(log, config, final)
    if replayed is None:
        tell("interrupted; nothing is shown or written for only some of the replays")
        return INTERRUPTED
    best = best_of(replayed)
    _show_best(replayed, best)
    for line in edges(best.learner, [trial.learner for trial in trials]):
        click.echo(line)
    is_done = _show_more_and_fewer(log, config, best) and _propose_per_day(
        log, config, best, recording
    )
    if output is not None:
        _write(output, config, best, n_tried=len(trials))
    return DONE if is_done and not interrupted else INTERRUPTED


def _trials(bench: _Bench, tried: Sequence[Learner]) -> tuple[list[Trial], bool]:
    """Return the learners with their scores, and whether Ctrl-C left some of them out."""
    trials: list[Trial] = []
    with progress(every=1) as show:
        try:
            for i, learner in enumerate(tried):
                score = bench.judge(learner, show, i, len(tried))
                trials.append(Trial(learner=learner, score=score, is_given=i == 0))
        except KeyboardInterrupt:
            return trials, True
    return trials, False


def _replayed(log: RepeatedLog, config: Config, final: Sequence[Trial]) -> list[Trial] | None:
    """Replay a log with the learners of some trials and the rules of the configuration.

    Returns
    -------
    The trials with their results; None after Ctrl-C.

    """
    found = []
    for i, trial in enumerate(final):
        one = changed(config, learner=trial.learner)
        replayed = _means(log, one, of=f"replay {i + 1} of {len(final)}, ")
        if replayed is None:
            return None
        found.append(replace(trial, replayed=replayed))
    return found


def _means(log: RepeatedLog, config: Config, *, of: str) -> Replayed | None:
    """Return the means over replays with several seeds; None after Ctrl-C."""
    runs: list[RunStatistics] = []
    hits: list[dict[EventKey, bool]] = []
    try:
        for n in range(N_SEEDS):
            sink = _Hits()
            played = play_seed(log, seeded(config, config.seed + n), sink=sink, of=of)
            if played.result.interrupted:
                return None
            runs.append(played.statistics)
            hits.append(sink.hits)
    except KeyboardInterrupt:  # before its first event, or after its last one
        return None
    return Replayed(
        n_events=runs[0].n_events,
        accuracy=fmean(run.accuracy or 0.0 for run in runs),
        hits={
            name: fmean(one[name] for one in hits)
            for name in hits[0]
            if all(name in one for one in hits)
        },
        n_questions=fmean(run.n_asked + run.n_challenges for run in runs),
        n_labels=fmean(run.n_asked for run in runs),
    )


def _show_more_and_fewer(log: RepeatedLog, config: Config, best: Trial) -> bool:
    """Report what the best learner gains and loses if it asks more and fewer questions.

    Nothing is reported if the rule has no `c` that says how many, if that is 0, or if a limit is
    set. False after Ctrl-C.
    """
    query = resolved(config).query
    if _is_limited(config) or query is None or query.rule() != "skeptical":
        return True
    assert best.replayed is not None
    given: float = asdict(query)["c"]
    if not given or math.isinf(given * max(FACTORS_OF_C)):
        return True
    results = {given: best.replayed}
    for factor in FACTORS_OF_C:
        c = factor * given
        asked = changed(config, learner=best.learner, query=changed(query, c=c))
        found = _means(log, asked, of=f"replay with c = {c:g}, ")
        if found is None:
            tell("interrupted; what more and fewer questions bring is not shown")
            return False
        results[c] = found
    rows = [["c", "accuracy", "questions", "worth"]]
    for c, result in sorted(results.items()):
        rows.append([f"{c:g}", *_replayed_numbers(result)])
    click.echo(
        "\nthe best with fewer and more questions, by `c` of [query]:\n\n"
        + aligned(rows, right=range(4))
    )
    return True


def _is_limited(config: Config) -> bool:
    # The first includes `[questions]`. Whether annotators are available is no limit.
    budgets = (resolved(config).budget, config.total_budget)
    no_limits = (None, "unlimited", "availability")
    return any((budget and budget.rule()) not in no_limits for budget in budgets)


def _propose_per_day(log: RepeatedLog, config: Config, best: Trial, recording: Recording) -> bool:
    """Report how many questions a day the best learner asks, and its results with that as a limit.

    Nothing is reported if events have no time or those of a key span less than two days on average,
    or if a limit is set. False after Ctrl-C.
    """
    days = recording.days
    is_short = days < _FEWEST_DAYS * len(recording.spans)
    if config.log.time is None or is_short or _is_limited(config):
        return True
    assert best.replayed is not None
    n = max(1, math.ceil(best.replayed.n_labels / days))
    limited = changed(config, learner=best.learner, questions=changed(config.questions, per_day=n))
    found = _means(log, limited, of="replay with a limit, ")
    if found is None:
        tell("interrupted; no limit of questions a day is proposed")
        return False
    each = "" if config.log.key is None else " for each key"
    click.echo(
        f"\nit asks for {number(n, 'label')} a day{each}, rounded up; with `[questions] per_day = "
        f"{n}`, which spreads them evenly: accuracy {found.accuracy:.3f}, "
        f"{found.n_questions:.0f} questions, worth {found.worth:.3f}"
    )
    return True


def _show_best(replayed: Sequence[Trial], best: Trial) -> None:
    of = ""
    if _given_of(replayed) is not None:
        of = (
            " of those whose accuracy is at most one standard error (±) below that of the "
            "configuration as it is"
        )
    click.echo(
        f"\nwith questions and challenges, means of {N_SEEDS} seeds; worth is the accuracy less "
        f"the questions per event:\n\n{replayed_text(replayed, best)}\n\nbest: worth most{of}"
    )


def _write(output: Path, config: Config, best: Trial, *, n_tried: int) -> None:
    """Write the configuration with the best learner instead of its own."""
    assert best.replayed is not None
    comment = (
        f"The best of {number(n_tried, 'configuration')} that `streamgp tune` tried: with "
        f"questions an accuracy of {best.replayed.accuracy:.3f}, and "
        f"{best.replayed.n_questions:.0f} questions in {number(best.replayed.n_events, 'event')}, "
        f"in the mean of {N_SEEDS} seeds."
    )
    learner = changed(
        config.learner,
        length_scale=best.learner.length_scale,
        noise_variance=best.learner.noise_variance,
    )
    # Without the limit, which was meant for this search.
    log = changed(config.log, limit=None)
    write_configuration(output, changed(config, learner=learner, log=log), comment=comment)
    click.echo(f"configuration: {output}")


def write_configuration(path: Path, config: Config, *, comment: str) -> None:
    """Write a configuration file, headed by a comment.

    Raises
    ------
    click.ClickException
        If the file cannot be written.

    """
    try:
        write_private(path, f"# {comment}\n{toml(config)}".encode())
    except OSError as error:
        raise click.ClickException(str(state_error(f"cannot write {path}", error))) from None


class _Bench:
    """A recording on which learners are tried."""

    def __init__(self, recording: Recording, config: Config, source: str) -> None:
        self._config = config
        self._source = source
        model = build.build_model(config, source=source)
        self._query = model.query
        rescale = resolved(config).rescale or False
        self._scaling = partial(scaling_for, [], GPClassifier(), model.warm_up, rescale=rescale)
        self._events = [
            events
            for events in recording.by_key.values()
            if any(event.given is not None for event in events)
        ]
        self._n_events = sum(map(len, self._events))

    @property
    def default_scale(self) -> float:
        """The length scale of a learner without a given one, for the features of the first key."""
        scaling, events = self._scaling(), self._events[0]
        for event in events:
            scaling.observe(event.x)
            if event.given is not None:
                scaling.learn(event.x, event.given)
        first = next(event for event in events if event.given is not None)
        d = len(Columns().widened(scaling.transform(first.x)))
        return LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(d, 1))

    def judge(self, learner: Learner, show: Show, i: int, n: int) -> Score | None:
        """Return the score of one learner of several; None if it cannot learn this log."""
        model = build.build_learner(learner, self._config.seed, source=self._source)
        assert isinstance(model, GPClassifier)  # only these are searched
        assert self._query is not None  # set by the preset
        score = Score(query=self._query, seed=self._config.seed)
        line, done = f"configuration {i + 1} of {n}", 0

        def on_event() -> None:
            nonlocal done
            if done % 100 == 0:
                show(line, (i + done / self._n_events) / n)
            done += 1

        try:
            for events in self._events:
                judge(model, events, self._scaling(), score, on_event)
        except NotPositiveDefiniteError:
            return None
        return score
