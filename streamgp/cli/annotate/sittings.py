"""What `streamgp annotate` does once its options are known: open, answer, say how it ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType

import click
from msgspec.structs import replace

from connectors.records import RefusedError
from streamgp.cli.annotate.answering import Answering
from streamgp.cli.annotate.commands import Face, UnclearLineError
from streamgp.cli.annotate.courier import PROGRAM, Courier
from streamgp.cli.annotate.live_desk import Sitting
from streamgp.cli.annotate.simulated import Simulation
from streamgp.cli.annotate.truths import Truths, read_truths
from streamgp.cli.configuration.build import build_annotator
from streamgp.cli.configuration.config import with_annotators
from streamgp.cli.configuration.validation import ConfigError
from streamgp.cli.configuration.worker_settings import WorkerConfig
from streamgp.cli.deployment.visiting import visit
from streamgp.cli.exit_codes import DONE, INTERRUPTED, LOST_BROKER, WRONG_USE
from streamgp.cli.status_line import StatusLine
from streamgp.cli.stopping import Stop
from streamgp.cli.terminal import tell
from streamgp.cli.wording import number

SOON_S = 1.0
SEND_FOR_S = 15.0
"""How long to go on trying to send the last answers."""


class _Stop(Stop):
    """Gives the terminal back before a second signal ends the process."""

    def __init__(self, face: Face) -> None:
        super().__init__()
        self._face = face

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            self._face.release()
        super()._take(number, _frame)


def by_hand(
    config_file: Path,
    *,
    name: str,
    key: str | None,
    idle_s: float | None,
    broker: str | None,
    asks_confidence: bool = False,
    notes_response_time: bool = True,
) -> int:
    """Let a person answer; return the exit status.

    Parameters
    ----------
    config_file
        The configuration of the deployment.
    name
        Who answers.
    key
        The only key to ask about, None for all.
    idle_s
        Seconds without a question after which to leave, None for never.
    broker
        Address of the broker; replaces the configured one.
    asks_confidence
        Whether to ask how sure an answer is.
    notes_response_time
        Whether answers tell how long they took.

    Raises
    ------
    LinkError
        If the broker cannot be reached at the beginning.

    """
    with visit(config_file, broker) as deployment:
        config, topics = deployment.config, deployment.topics
        sitting = Sitting(
            annotator=name,
            keyed=config.worker.keyed,
            answer_horizon_s=config.loop.answer_horizon_s,
            only_key=key,
            idle_s=idle_s,
            of_numbers=config.target == "number",
            asks_confidence=asks_confidence,
            notes_response_time=notes_response_time,
        )
        courier = Courier(lambda: topics.writer(PROGRAM))
        face = open_face()
        refusal: str | None = None
        with closing(courier), _Stop(face) as stop:
            answering = Answering(topics, sitting, face, courier)
            try:
                answering.run(stop)
            except (RefusedError, UnclearLineError) as error:
                refusal = " ".join(str(error).split())
            n_open = answering.n_open()
            n_unsent = answering.finish(SOON_S)
            if n_unsent:
                n = number(n_unsent, "answer")
                tell(f"sending {n}, for {SEND_FOR_S:.0f} s at most")
                n_unsent = answering.finish(SEND_FOR_S)
            answering.close()
        tell(f"{number(answering.n_answered, 'answer')} given; {number(n_open, 'question')} left")
        lost = refusal or answering.lost
        if n_unsent:
            lost = lost or courier.trouble or "the broker is lost"
            lost += f"; {number(n_unsent, 'answer')} not sent, the questions come again"
        if lost is not None:
            tell(f"Error: {' '.join(lost.split())}")
            return LOST_BROKER if refusal is None else WRONG_USE
        return INTERRUPTED if stop.signal == "SIGINT" else DONE


def open_face() -> Face:
    """Return the screen if there is a terminal at both ends, else lines."""
    if sys.stdin is None or sys.stdout is None:
        raise click.ClickException("annotate needs its standard input and output; they are closed")
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if is_terminal and os.environ.get("TERM", "dumb") != "dumb":
        from rich.console import Console

        from streamgp.cli.annotate.screen_face import ScreenFace

        return ScreenFace(sys.stdin.fileno(), sys.stdout.fileno(), Console(highlight=False))
    from streamgp.cli.annotate.line_face import LineFace, Lines

    return LineFace(Lines(sys.stdin), sys.stdout)


def by_itself(
    config_file: Path,
    *,
    settings: Sequence[str],
    name: str | None,
    key: str | None,
    truth: Sequence[Path],
    label: str | None,
    idle_s: float | None,
    broker: str | None,
) -> int:
    """Let a simulated annotator answer; return the exit status.

    Parameters
    ----------
    config_file, key, idle_s, broker
        As for `by_hand`.
    settings
        What `--simulate` says.
    name
        How the answers are signed, None for what the settings say.
    truth
        Files with the true labels; none of them if the events bring theirs.
    label
        The column of the labels in these files, None for the configured one.

    Raises
    ------
    LinkError
        If the broker cannot be reached at the beginning.

    """
    with visit(config_file, broker) as deployment:
        config = _simulated(deployment.config, settings, name)
        given = None
        if truth:
            column = label or config.log.label
            if column is None:
                raise click.UsageError(
                    "name the column that holds the labels: --label COLUMN, or label in section "
                    "[log] of the configuration file"
                )
            given = read_truths(truth, label=column, numbers=config.target == "number")
        with Stop() as stop:
            simulation = Simulation(
                deployment.topics,
                build_annotator(config),
                Truths(given),
                keyed=config.worker.keyed,
                only_key=key,
            )
            lost = _simulate(simulation, stop, idle_s)
        if lost is not None:
            tell(f"Error: {lost}")
            return LOST_BROKER
        return INTERRUPTED if stop.signal == "SIGINT" else DONE


def _simulate(simulation: Simulation, stop: Stop, idle_s: float | None) -> str | None:
    """Answer until somebody wants an end; return what was wrong for as long as nobody waits."""
    line = StatusLine()
    trouble: str | None = None
    idle_since = time.monotonic()
    try:
        while not stop():
            is_moved = simulation.step()
            now = time.monotonic()
            if is_moved or (simulation.n_waiting and simulation.trouble is None):
                idle_since = now
            if simulation.trouble != trouble:
                trouble = simulation.trouble
                line.say("the broker is back" if trouble is None else f"{trouble}; trying again")
            line.show(lambda: progress_of(simulation))
            if idle_s is not None and now - idle_since >= idle_s:
                return trouble
    finally:
        simulation.close()
        line.say(progress_of(simulation))
    return None


def progress_of(simulation: Simulation) -> str:
    """Say what a simulated annotator has done."""
    counts = simulation.counts
    text = (
        f"{number(counts.n_answered, 'answer')}, {counts.n_challenges} of them to challenges, "
        f"{counts.n_declined} declined; {simulation.n_waiting} under way"
    )
    if simulation.n_untold:
        text += f", {simulation.n_untold} wait for their event"
    return text


def _simulated(config: WorkerConfig, settings: Sequence[str], name: str | None) -> WorkerConfig:
    """Return the configuration with the annotator that the options describe."""
    try:
        found = with_annotators(config, settings)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--annotator", "--simulate", 1)) from None
    config = replace(config, annotator=found.annotator, annotators=found.annotators)
    if name is None:
        return config
    if config.annotators:
        raise click.UsageError("--as names one annotator; here are several, each with its name")
    return replace(config, annotator=replace(config.annotator, name=name))
