"""What `streamgp tune` does when it searches: read, try, show, write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace as changed

from streamgp.cli.configuration import build
from streamgp.cli.configuration.settings import Config, Learner
from streamgp.cli.exit_codes import DONE, INTERRUPTED
from streamgp.cli.terminal import Show, progress, tell
from streamgp.cli.tune.candidates import candidates
from streamgp.cli.tune.judging import By, Score, is_at_once, judge_at_once, judge_one_by_one
from streamgp.cli.tune.recording import Recording, read_recording
from streamgp.cli.tune.stages import staged
from streamgp.cli.tune.trials import Trial, best_of, ranking, trials_text
from streamgp.cli.tune.writing import write_configuration
from streamgp.cli.wording import number
from streamgp.gp.packed import NotPositiveDefiniteError
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.learners.settings import LENGTH_SCALE_PER_ROOT_FEATURE


def search(
    path: Path,
    config: Config,
    *,
    source: str,
    length_scales: Sequence[float],
    noise_variances: Sequence[float],
    n_random: int | None,
    by: By,
    output: Path | None,
) -> int:
    """Try learners on a log, show how good they were, and write the best.

    Parameters
    ----------
    path
        The log.
    config
        The configuration, with the label column and a limit.
    source
        Where the configuration came from, for messages about it.
    length_scales, noise_variances, n_random
        As for `candidates`.
    by
        What the best is best in, "accuracy" or "log-loss".
    output
        File to write the best configuration to, or None.

    Returns
    -------
    The exit status: 0, or 130 after Ctrl-C.

    Raises
    ------
    click.ClickException
        If the log cannot be read or the file cannot be written, or no learner can learn this log.

    """
    recording = read_recording(path, config)
    bench = _Bench(recording, config, source)
    tried = candidates(
        config,
        bench.default_scale,
        length_scales=length_scales,
        noise_variances=noise_variances,
        n_random=n_random,
    )
    trials: list[Trial] = []
    interrupted = False
    with progress(every=1) as show:
        try:
            for i, learner in enumerate(tried):
                score = bench.judge(learner, show, i, len(tried))
                trials.append(Trial(learner=learner, score=score, is_given=i == 0))
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        tell(f"interrupted; {len(trials)} of {number(len(tried), 'configuration')} tried")
    if trials:
        _conclude(trials, recording, config, by=by, output=output)
    return INTERRUPTED if interrupted else DONE


def _conclude(
    trials: list[Trial],
    recording: Recording,
    config: Config,
    *,
    by: By,
    output: Path | None,
) -> None:
    ranked = ranking(trials, by)
    best = best_of(ranked, by)
    if best is None or best.score is None:
        raise click.ClickException(
            "no configuration could learn this log, for all of them the noise variance is too "
            "small; name larger ones with --noise-variances"
        )
    click.echo(trials_text(ranked, best))
    first = ranked[0].score
    assert first is not None
    click.echo(
        f"\neach of {number(recording.n_examples, 'labelled event')} predicted before it was "
        f"learned; {number(len(recording.labels), 'class', 'classes')}\n"
        f"best: asks least of those whose {by.replace('-', ' ')} is within "
        f"{first.standard_error(by):.3f} of the first, its standard error"
    )
    if output is not None:
        # No limit: it was there to bound this search.
        log = changed(config.log, limit=None)
        comment = (
            f"The best of {number(len(trials), 'configuration')} that `streamgp tune` tried: "
            f"accuracy {best.score.accuracy:.3f}, log loss {best.score.log_loss:.3f}, "
            f"asks about {100 * best.score.asked_share:.0f} % of the events."
        )
        learner = changed(
            config.learner,
            length_scale=best.learner.length_scale,
            noise_variance=best.learner.noise_variance,
        )
        best_config = changed(config, learner=learner, log=log)
        write_configuration(output, best_config, comment=comment)
        click.echo(f"configuration: {output}")


class _Bench:
    """A recording on which learners are tried."""

    def __init__(self, recording: Recording, config: Config, source: str) -> None:
        self._config = config
        self._source = source
        model = build.build_model(config, source=source)
        self._warm_up, self._query = model.warm_up, model.query
        self._keys = [
            (events, staged(events, self._warm_up))
            for events in recording.by_key.values()
            if any(event.given is not None for event in events)
        ]
        self._n_events = sum(len(events) for events, _ in self._keys)

    @property
    def default_scale(self) -> float:
        """The length scale of a learner that is given none, with the features of the first key."""
        _, recorded = self._keys[0]
        d = recorded.stages[-1].n_first
        return LENGTH_SCALE_PER_ROOT_FEATURE * math.sqrt(max(d, 1))

    def judge(self, learner: Learner, show: Show, i: int, n: int) -> Score | None:
        """Return how good one learner of several is; None if it cannot learn this log."""
        model = build.build_learner(learner, self._config.seed, source=self._source)
        assert isinstance(model, GPClassifier)  # no other is searched
        assert self._query is not None  # the preset says it
        score = Score(query=self._query, seed=self._config.seed)
        line, done = f"configuration {i + 1} of {n}", 0

        def on_event() -> None:
            nonlocal done
            if done % 100 == 0:
                show(line, (i + done / self._n_events) / n)
            done += 1

        try:
            for events, recorded in self._keys:
                if is_at_once(model, len(recorded.truths)):
                    show(line, (i + done / self._n_events) / n)
                    judge_at_once(model, recorded, score)
                    done += len(events)
                else:
                    judge_one_by_one(model, events, self._warm_up, score, on_event)
        except NotPositiveDefiniteError:
            return None
        return score
