"""Program of `streamgp watch`: a few lines of text, the same on a terminal and in a file."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from connectors.annotation.feed import TURN_S
from connectors.storage.snapshots import file_version
from connectors.topics import (
    AwayError,
    BrokerError,
    LockedOutError,
    Outgoing,
    Place,
    Reader,
    RefusedError,
    TopicName,
    Topics,
)
from connectors.wire.record_lines import to_line
from connectors.wire.signatures import Signatures
from streamgp.apps.console import (
    Stop,
    clock_time,
    cursor_back_while_suspended,
    number,
    seen,
    span,
    steady,
    tell,
)
from streamgp.apps.deployment.answer_keys import signatures_of
from streamgp.apps.deployment.contents import InputProgress, warning_of
from streamgp.apps.deployment.deployment import Deployment, visit
from streamgp.apps.watch.statistics import FLOW, HISTORY, N_LAST, N_REMEMBERED, SPAN_S, Watching
from streamgp.common.printable import printable
from streamgp.config.build import build_labelled_windows
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.evaluation.agreement import agreement_lines
from streamgp.interactive.messages import Challenge, event_time
from streamgp.report.tables import amount, percent

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")


_WIDTH = 50
_NAME_WIDTH = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Figures from the broker that are not read from the topics.

    Parameters
    ----------
    lags
        Number of unprocessed inputs, by topic and partition.
    troubles
        What needs an operator.

    """

    url: str
    group: str
    n_workers: int
    lags: Mapping[Place, int]
    troubles: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section of the view."""

    name: str
    lines: list[str]
    is_alarming: bool = False


def parts(watching: Watching, around: Around, now: float) -> list[Part]:
    """Return all sections, from top to bottom."""
    return [
        Part(
            name="workers",
            lines=[f"{around.n_workers} in group {around.group} at {printable(around.url)}"],
            is_alarming=not around.n_workers,
        ),
        Part(name="watched", lines=[_watched(watching, now)]),
        Part(name="predictions", lines=_predictions(watching, now)),
        Part(
            name="accuracy" if watching.target == "label" else "error",
            lines=[_accuracy(watching)],
        ),
        Part(name="label rate", lines=[_label_rate(watching)]),
        Part(name="open", lines=[_open(watching, now)]),
        Part(name="challenges", lines=_challenges(watching)),
        Part(name="labels", lines=_labels(watching)),
        *_quarantine(watching),
        *_agreement(watching),
        _dead_letters(watching),
        Part(name="lag", lines=_lag(around.lags)),
        *_troubles(around.troubles),
    ]


def text(watching: Watching, around: Around, now: float) -> str:
    """Return the view as plain text."""
    shown = []
    for part in parts(watching, around, now):
        for i, line in enumerate(part.lines):
            shown.append(f"{'' if i else part.name:{_NAME_WIDTH}} {line}")
    return "\n".join(shown)


def picture(watching: Watching, around: Around, now: float) -> RenderableType:
    """Return the view for a terminal."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold", width=_NAME_WIDTH, no_wrap=True)
    grid.add_column(overflow="fold")
    for part in parts(watching, around, now):
        style = "red" if part.is_alarming else ""
        # Text, not markup: reasons and names come from outside.
        grid.add_row(Text(part.name), Text("\n".join(part.lines), style=style))
    return Panel(grid, title="streamgp watch", subtitle="Ctrl-C to leave")


def _watched(watching: Watching, now: float) -> str:
    if watching.is_whole:
        return f"from the start of the topics to {clock_time(now)}"
    return f"since {clock_time(watching.since)}, for {span(now - watching.since)}"


def _predictions(watching: Watching, now: float) -> list[str]:
    flow = watching.flow
    if watching.is_whole and not flow.n:
        return [str(watching.n_predictions)]
    return [
        f"{watching.n_predictions}, {flow.rate(now):.1f} a second",
        f"{flow.bars(now, width=_WIDTH)}| last {span(SPAN_S)}",
    ]


def _accuracy(watching: Watching) -> str:
    if not watching.n_scored:
        among = f" of the last {N_REMEMBERED}" if watching.is_full else ""
        return (
            f"unknown: no {watching.target} was predicted for an event{among} that brings its truth"
        )
    if watching.target == "number":
        return _errors(watching)
    recent = ""
    if watching.n_scored > N_LAST:
        recent = f", {percent(watching.recent_accuracy, digits=1)} of the last {N_LAST}"
    return (
        f"{percent(watching.accuracy, digits=1)} of {number(watching.n_scored, 'prediction')} "
        f"whose truth is known{recent}"
    )


def _errors(watching: Watching) -> str:
    errors = watching.errors
    if errors.mae is None:
        return "unknown: no number was predicted for an event whose truth is one"
    recent = ""
    if watching.recent_accuracy is not None and errors.n > N_LAST:
        recent = f", {amount(watching.recent_accuracy)} of the last {N_LAST}"
    nmse = "" if errors.nmse is None else f" (NMSE {errors.nmse:.2g})"
    return (
        f"off by {amount(errors.mae)} on average{nmse}, {number(errors.n, 'prediction')} "
        f"whose truth is known{recent}"
    )


def _label_rate(watching: Watching) -> str:
    asked = f"{number(watching.n_asked, 'label request')}"
    predictions = number(watching.n_predictions, "prediction")
    return f"{percent(watching.label_rate, digits=1)}: {asked} for {predictions}"


def _open(watching: Watching, now: float) -> str:
    requests = [question.request for question in watching.inbox.questions(now, None)]
    if not requests:
        return "no question is waiting"
    n_challenges = sum(isinstance(request, Challenge) for request in requests)
    # No question is older than its event, whatever the clock of the annotator whom it doubts says.
    since = min(max(request.requested_at, event_time(request)) for request in requests)
    oldest = span(max(0.0, now - since))
    return (
        f"{number(len(requests) - n_challenges, 'label request')} and "
        f"{number(n_challenges, 'challenge')} wait, the oldest for {oldest}"
    )


def _challenges(watching: Watching) -> list[str]:
    counts = watching.challenges
    ends = ("revised", "upheld", "expired", "declined", "cancelled")
    outcome = [f"{counts[end]} {end}" for end in ends if counts[end] or end in ends[:3]]
    lines = [f"{counts['made']} made, {', '.join(outcome)}"]
    if sum(counts[end] for end in ends) > counts["made"]:
        lines.append("some were made before what was read, and are not counted as made")
    if watching.n_contested:
        lines.append(
            f"{watching.n_justified} of {watching.n_contested} were about wrong labels; "
            f"{watching.n_repaired} repaired, {watching.n_spoiled} spoiled by it"
        )
    return lines


def _agreement(watching: Watching) -> list[Part]:
    lines = agreement_lines(watching.agreement)
    return [Part(name="agreement", lines=lines)] if lines else []


def _labels(watching: Watching) -> list[str]:
    counts = watching.labels
    lines = [
        f"{counts['learned']} learned, {counts['corrected']} corrected, "
        f"{counts['withdrawn']} withdrawn"
    ]
    if watching.n_judged:
        lines.append(f"{watching.n_wrong} of {watching.n_judged} whose truth is known are wrong")
    return lines


def _quarantine(watching: Watching) -> list[Part]:
    """Return a section about annotators whose answers are not learned, if there are any."""
    lines = []
    for name, n in sorted(watching.inbox.quarantined.counts().items()):
        where = f" in {number(n, 'key')}" if watching.keyed else ""
        lines.append(f"{printable(name)}{where}: answers are not learned")
    return [Part(name="in quarantine", lines=lines, is_alarming=True)] if lines else []


def _dead_letters(watching: Watching) -> Part:
    counts = watching.letters
    n = sum(counts.values())
    stages = f": {', '.join(f'{n} {printable(stage)}' for stage, n in counts.items())}"
    lines = [f"{n}{stages if n else ''}"]
    for letter in watching.last_letters:
        lines.append(f"{clock_time(letter.at)} {letter.stage}: {printable(letter.error)}")
    for topic, n_unreadable in sorted(watching.unreadable.items()):
        records = number(n_unreadable, "record")
        lines.append(f"{records} that no worker has written in {topic}")
    return Part(name="dead letters", lines=lines, is_alarming=len(lines) > 1)


def _lag(lags: Mapping[Place, int]) -> list[str]:
    lines = []
    for topic in dict.fromkeys(topic for topic, _ in sorted(lags)):
        behind = {place: n for (where, place), n in sorted(lags.items()) if where == topic and n}
        each = ", ".join(f"{n} in partition {place}" for place, n in behind.items())
        lines.append(f"{topic} {sum(behind.values())}{f': {each}' if each else ''}")
    return lines or ["unknown"]


def _troubles(troubles: Sequence[str]) -> list[Part]:
    if not troubles:
        return []
    return [Part(name="inputs", lines=[printable(line) for line in troubles], is_alarming=True)]


# --- Following the topics, for `streamgp watch`.


def _signatures_of(config: WorkerConfig) -> Signatures | None:
    """Return the workers' signatures, None if answers are not signed or the keys are not here."""
    file = config.people.keys_file
    try:
        if file is not None and file_version(file) is None:
            raise ConfigError(f"people.keys_file: there is no file {file} that can be read")
        return signatures_of(config)
    except ConfigError as error:  # an account that only watches need not have the keys
        tell(f"warning: {error}; signatures are not checked, refused answers seem to count")
        return None


class Follower:
    """Reads the topics of a deployment into a `Watching`, and shows it.

    Parameters
    ----------
    from_start
        Whether everything in the topics is counted.

    """

    # _history  reads topics from their start
    # _flow     reads topics from their end; None if all are read from their start
    # _is_old   whether the history was there before watching began
    # _turned   time of the last `turn_over` of the inbox
    def __init__(
        self,
        deployment: Deployment,
        *,
        from_start: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._deployment = deployment
        self._clock = clock
        now = clock()
        config = deployment.config
        self.watching = Watching(
            keyed=config.worker.keyed,
            since=now,
            is_whole=from_start,
            answer_horizon_s=config.loop.answer_horizon_s,
            target=config.target,
            people=config.rules(),
            windows=build_labelled_windows(config),
            signatures=_signatures_of(config),
        )
        topics = deployment.topics
        # The flow first: records that arrive while the history is opened are then at least in the
        # flow.
        self._flow: Reader | None = None if from_start else topics.reader(FLOW, from_end=True)
        self._history = topics.reader((*FLOW, *HISTORY) if from_start else HISTORY)
        self._is_old = not from_start
        self._turned = now
        names = deployment.config.topics.names()
        self._inputs = InputProgress(topics, names, deployment.group, clock=clock)

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there when watching began has been read."""
        return self._history.caught_up

    def read_on(self, timeout_s: float) -> None:
        """Read new records, waiting at most for the timeout."""
        # One poll may reach beyond the records that were there; the difference is negligible.
        is_before = not self._history.caught_up
        self._is_old = self._is_old and is_before
        readers = [self._history] if self._flow is None else [self._history, self._flow]
        for reader in readers:
            is_history = reader is self._history
            records = reader.poll(timeout_s / len(readers))
            now = None if is_history and is_before else self._clock()
            for record in records:
                self.watching.take(record, is_old=self._is_old and is_history, now=now)
        now = self._clock()
        if now - self._turned >= TURN_S:
            self._turned = now
            self.watching.inbox.turn_over()

    def text(self) -> str:
        return text(self.watching, self._around(), self._clock())

    def picture(self) -> RenderableType:
        return picture(self.watching, self._around(), self._clock())

    def close(self) -> None:
        self._history.close()
        if self._flow is not None:
            self._flow.close()

    def _around(self) -> Around:
        there, inputs = self._deployment, self._inputs
        try:
            inputs.look()
            troubles = inputs.troubles()
        except (LockedOutError, RefusedError):
            raise
        except BrokerError as error:
            raise AwayError(str(error)) from error
        return Around(
            url=there.url,
            group=there.group,
            n_workers=inputs.n_workers,
            lags=inputs.lags,
            troubles=troubles,
        )


# --- The program.


_PATIENCE_S = 0.2


class _Outage:
    """Reports, once each, that the broker is away and that it is back."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._is_away = False

    def go_on(self, error: AwayError) -> None:
        if not self._is_away:
            self._say(f"{error}; waiting for it")
        self._is_away = True

    def end(self) -> None:
        if self._is_away:
            self._say("the broker is back")
        self._is_away = False


def watch_deployment(
    config_file: Path,
    *,
    broker: str | None,
    topic: TopicName | None,
    interval_s: float,
    from_start: bool,
    once: bool,
) -> None:
    """Show a deployment, or print the records of a topic, as the options say."""
    with visit(config_file, broker) as deployment, Stop() as stop:
        if topic is not None:
            print_records(deployment.topics, topic, stop, from_start=from_start, once=once)
            return
        warning = warning_of(deployment.topics)
        if warning is not None:
            tell(f"warning: {warning}")
        with closing(Follower(deployment, from_start=from_start)) as follower:
            (show_once if once else show_live)(follower, interval_s, stop)


def show_once(follower: Follower, interval_s: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + (0.0 if follower.watching.is_whole else interval_s)
    while not stop() and (time.monotonic() < until or not follower.caught_up):
        follower.read_on(min(_PATIENCE_S, interval_s))
    click.echo(follower.text())


def show_live(follower: Follower, interval_s: float, stop: Callable[[], bool]) -> None:
    """Show the view again and again; wait for a broker that is away."""
    if sys.stdout is None or not sys.stdout.isatty():  # None: closed by the shell, `>&-`
        for view in _views(follower, follower.text, interval_s, stop, tell):
            if follower.caught_up:
                click.echo(view + "\n")
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=steady(sys.stdout))

    def say(line: str) -> None:  # above the view, into which another stream would write
        console.print(printable(line), markup=False, highlight=False)

    with (
        Live(follower.picture(), console=console, auto_refresh=False) as live,
        cursor_back_while_suspended(console),
    ):
        for picture in _views(follower, follower.picture, interval_s, stop, say):
            live.update(picture, refresh=True)


def _views(
    follower: Follower,
    view: Callable[[], T],
    interval_s: float,
    stop: Callable[[], bool],
    say: Callable[[str], None],
) -> Iterator[T]:
    """Read on and yield a view in every interval, none while the broker is away."""
    outage = _Outage(say)
    while not stop():
        try:
            _read_for(follower, interval_s, stop)
            now = view()
        except AwayError as error:
            outage.go_on(error)
        else:
            outage.end()
            yield now


def _read_for(follower: Follower, seconds: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not stop() and (left := until - time.monotonic()) > 0:
        follower.read_on(min(_PATIENCE_S, left))


def print_records(
    topics: Topics, topic: TopicName, stop: Callable[[], bool], *, from_start: bool, once: bool
) -> None:
    """Print the records of a topic on standard output; wait for a broker that is away.

    Raises
    ------
    BrokenPipeError
        If the output is no longer read.
    click.ClickException
        If standard output is closed.

    """
    if sys.stdout is None:
        raise click.ClickException("standard output is closed; let the records go somewhere")
    out, is_terminal = sys.stdout.buffer, sys.stdout.isatty()
    outage = _Outage(tell)
    with closing(topics.reader((topic,), from_end=not from_start)) as reader:
        while not stop() and not (once and reader.caught_up):
            try:
                records = reader.poll(_PATIENCE_S)
            except AwayError as error:
                if once:
                    raise
                outage.go_on(error)
                records = []
            else:
                outage.end()
            for record in records:
                outgoing = Outgoing(
                    topic=topic, key=record.key, value=record.value, headers=record.headers
                )
                line = to_line(outgoing, record.at)
                if is_terminal:
                    line = seen(line.decode("utf-8", "replace")).encode()
                out.write(line + b"\n")
            out.flush()
            _check_read()


def _check_read() -> None:
    """Notice that a pipe is no longer read even if there is nothing to write."""
    if sys.platform == "win32":  # only the next write notices
        return
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    # Linux reports an error, macOS that the other end is gone.
    if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
        raise BrokenPipeError
