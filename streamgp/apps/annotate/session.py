"""Program of `streamgp annotate`: open, answer, report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType

import click
from msgspec.structs import replace

from connectors.annotation.inbox import CannotUndoError, Question, key_of
from connectors.annotation.label_text import shown_label
from connectors.annotation.sender import AnswerSender
from connectors.topics import RefusedError, Topics
from connectors.wire.outbound import Outbound
from streamgp.apps.annotate.choices import Choice, Choices
from streamgp.apps.annotate.commands import Command, Face, UnclearLineError, said
from streamgp.apps.annotate.question_view import View
from streamgp.apps.annotate.scheduled_answers import PROGRAM, SOURCE
from streamgp.apps.annotate.simulated import Simulation, Truths, names_of, read_truths
from streamgp.apps.annotate.subscription import LOOK_S, SessionSettings, Subscription
from streamgp.apps.console import (
    DONE,
    INTERRUPTED,
    LOST_BROKER,
    WRONG_USE,
    StatusLine,
    Stop,
    number,
    tell,
)
from streamgp.apps.deployment.answer_keys import signatures_of
from streamgp.apps.deployment.deployment import visit
from streamgp.common.printable import HiddenLabels, printable
from streamgp.config.build import build_annotator
from streamgp.config.load import with_annotators
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.interactive.messages import CONFIDENCE, RESPONSE_S, Answer, Request

# --- `streamgp annotate` for a person: show a question, read the answer, send it.


class Answering:
    """Session of one annotator.

    Attributes
    ----------
    n_answered
        Number of answers given.
    lost
        Why the session ended, if the broker was away for longer than the session waits without a
        question; otherwise None.

    Raises
    ------
    BrokerError
        If the broker cannot be reached at the start.

    """

    # _live      the desk, with the feed that fills it
    # _question  the question shown, until it is answered, skipped or over
    # _n_skipped how many questions were skipped since the last answer
    # _is_empty  whether the last search found no question
    # _idle_at   when there was last a question, on the clock
    def __init__(
        self,
        topics: Topics,
        settings: SessionSettings,
        face: Face,
        sender: AnswerSender,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.n_answered = 0
        self.lost: str | None = None
        self._settings = settings
        self._face = face
        self._sender = sender
        self._clock = clock
        self._outbox = Outbound(SOURCE, keyed=settings.keyed, signatures=settings.signatures)
        self._choices = Choices()
        self._hidden = HiddenLabels()
        self._question: Question | None = None
        self._note: str | None = None
        self._n_skipped = 0
        self._is_empty = True
        self._idle_at = clock()
        self._live = Subscription(topics, settings, clock)

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Ask until the annotator leaves, or the session must end for another reason.

        Raises
        ------
        RefusedError
            If the topics can no longer be read, and waiting would not help.

        """
        with self._face as face:
            while not should_stop():
                self._read_on()
                self._choose()
                view = self._view()
                face.show(view)
                if self._is_idle_for_too_long(view):
                    self.lost = self._live.trouble
                    return
                # While there is much to read, checking for a pressed key without waiting is enough.
                is_busy = view.n_read is not None or view.question is None
                command = face.read(view, 0.0 if is_busy else LOOK_S)
                if command is not None and not self._execute(command):
                    return

    def finish(self, timeout_s: float) -> int:
        """Wait for the last answers to be sent; return how many were not."""
        return self._sender.finish(timeout_s)

    def close(self) -> None:
        """Close the session without sending the remaining answers."""
        self._sender.close()
        self._live.close()

    def n_open(self) -> int:
        """Return the number of waiting questions."""
        return self._live.desk.n_open(self._clock())

    # --- internal

    def _read_on(self) -> None:
        # After an answer the annotator does not wait while there are further questions.
        self._live.read_on(LOOK_S if self._is_empty else 0.0)
        if self._live.trouble is not None and self._question is not None:
            self._question = None
            self._face.question_ended()

    def _choose(self) -> None:
        """Go on to the next question once the one shown is over."""
        if self._live.is_behind:
            return
        now = self._clock()
        if self._question is not None and not self._live.desk.is_open(self._question, now):
            about = printable(self._question.request.event_id)
            why = self._live.desk.why_ended(*key_of(self._question))
            reason = "" if why is None else f": {printable(why)}"
            self._note = f"the question about event {about} has ended{reason}"
            self._question = None
            self._face.question_ended()
        if self._question is None:
            self._question = self._live.desk.next(now)
            if self._question is not None:
                self._warn_of_hidden(self._question.request)
        self._is_empty = self._question is None

    def _warn_of_hidden(self, request: Request) -> None:
        """Warn of each new label with invisible characters."""
        for label in self._live.desk.classes(request.key):
            warning = self._hidden.warning(label)
            if warning is not None:
                self._note = warning if self._note is None else f"{self._note}\n{warning}"

    def _view(self) -> View:
        question, live = self._question, self._live
        return View(
            annotator=self._settings.annotator,
            question=question,
            choices=[] if question is None else self._offer(question.request),
            averages=live.averages,
            n_open=self.n_open(),
            n_answered=self.n_answered,
            n_unsent=self._sender.n_unsent,
            n_read=live.n_read,
            note=self._note,
            trouble=live.trouble or self._sender.trouble,
            now=self._clock(),
            of_numbers=self._settings.of_numbers,
            asks_confidence=self._settings.asks_confidence,
            is_patient=self._settings.idle_s is not None,
            is_set_aside=self._settings.annotator in live.desk.quarantined(self._settings.only_key),
        )

    def _offer(self, request: Request) -> list[Choice]:
        if self._settings.of_numbers:
            return []
        key = request.key
        desk = self._live.desk
        return self._choices.offer(key, desk.classes(key), desk.all_classes())

    def _is_idle_for_too_long(self, view: View) -> bool:
        if view.question is not None or view.n_read is not None:
            self._idle_at = view.now
            return False
        idle_s = self._settings.idle_s
        return idle_s is not None and view.now - self._idle_at >= idle_s

    def _execute(self, command: Command) -> bool:
        """Execute a command; return whether to go on."""
        if command.kind == "quit":
            return False
        if command.kind == "undo":
            self._undo()
        elif self._question is not None:
            question, self._question, self._note = self._question, None, None
            if command.kind == "skip":
                self._live.desk.skip(question)
                self._n_skipped += 1
                self._note = f"event {printable(question.request.event_id)}: skipped"
            elif command.kind == "rename":
                self._question = question
                self._rename(question.request.key, command)
            else:
                self._answer(question, command)
        return True

    def _rename(self, key: str | None, command: Command) -> None:
        assert command.old is not None
        assert command.label is not None
        now = self._clock()
        renamed = self._live.desk.rename(key, command.old, command.label, now)
        for answer, partition in renamed:
            self._send(answer, partition)
        old, new = shown_label(command.old), shown_label(command.label)
        self._note = f"{number(len(renamed), 'example')} of yours: {old} is {new} now"
        left = self._live.desk.timeline.count(key, command.old)
        if left:
            self._note += f"; {left} more that you cannot change, given by others or too long ago"

    def _answer(self, question: Question, command: Command) -> None:
        self._n_skipped = 0
        desk = self._live.desk
        answer = desk.answer(
            question,
            command.label,
            self._clock(),
            std=command.std,
            privileged=self._known_of(command),
        )
        about = printable(question.request.event_id)
        self._note = f"event {about}: {said(command)}"
        if answer is not None:
            self.n_answered += 1
            self._send(answer, question.partition)

    def _known_of(self, command: Command) -> dict[str, float] | None:
        """Return the privileged information of an answer, None if there is none."""
        known = {}
        if command.response_s is not None and self._settings.notes_response_time:
            known[RESPONSE_S] = command.response_s
        if command.confidence is not None:
            known[CONFIDENCE] = command.confidence
        return known or None

    def _undo(self) -> None:
        if self._live.is_behind:
            self._note = "wait until everything is read"
            return
        if self._n_skipped:
            self._n_skipped -= 1
            question = self._live.desk.unskip()
            if question is not None and self._live.desk.is_open(question, self._clock()):
                self._question = question
                self._note = f"event {printable(question.request.event_id)}: here again"
                return
        try:
            undone = self._live.desk.undo(self._clock())
        except CannotUndoError as error:
            self._note = str(error)
            return
        self._question = undone.question
        y = undone.answer.y
        what = "don't know" if y is None else shown_label(y)
        about = printable(undone.answer.event_id)
        self._note = f"taken back: {what}, about event {about}"
        if undone.message is not None:
            self._send(undone.message, undone.question.partition)

    def _send(self, answer: Answer, partition: int | None) -> None:
        self._live.keep(answer, self._clock())
        self._sender.send(self._outbox.message(answer, partition))


SOON_S = 1.0
SEND_FOR_S = 15.0
"""How long to keep trying to send the last answers."""


class _Stop(Stop):
    """Restores the terminal before a second signal ends the process."""

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
    """Let a person answer, as the options of `streamgp annotate` say; return the exit status."""
    with visit(config_file, broker) as deployment:
        config, topics = deployment.config, deployment.topics
        session = SessionSettings(
            annotator=name,
            keyed=config.worker.keyed,
            answer_horizon_s=config.loop.answer_horizon_s,
            only_key=key,
            idle_s=idle_s,
            of_numbers=config.target == "number",
            asks_confidence=asks_confidence,
            notes_response_time=notes_response_time,
            people=config.rules(),
            order=config.questions.order,
            signatures=signatures_of(config, make_for=(name,), knows_all=False),
        )
        sender = AnswerSender(lambda: topics.writer(PROGRAM))
        face = open_face()
        refusal: str | None = None
        with closing(sender), _Stop(face) as stop:
            answering = Answering(topics, session, face, sender)
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
            lost = lost or sender.trouble or "the broker is lost"
            lost += f"; {number(n_unsent, 'answer')} not sent, the questions come again"
        if lost is not None:
            tell(f"Error: {' '.join(lost.split())}")
            return LOST_BROKER if refusal is None else WRONG_USE
        return INTERRUPTED if stop.signal == "SIGINT" else DONE


def open_face() -> Face:
    """Return the screen interface if input and output are terminals, otherwise lines."""
    if sys.stdin is None or sys.stdout is None:
        raise click.ClickException("annotate needs its standard input and output; they are closed")
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if is_terminal and os.environ.get("TERM", "dumb") != "dumb":
        from rich.console import Console

        from streamgp.apps.annotate.terminal_ui import ScreenFace

        return ScreenFace(sys.stdin.fileno(), sys.stdout.fileno(), Console(highlight=False))
    from streamgp.apps.annotate.line_ui import LineFace, Lines

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
    """Let a simulated annotator answer, as the options say; return the exit status."""
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
        annotator = build_annotator(config)
        with Stop() as stop:
            simulation = Simulation(
                deployment.topics,
                annotator,
                Truths(given),
                keyed=config.worker.keyed,
                only_key=key,
                signatures=signatures_of(config, make_for=names_of(annotator), knows_all=False),
            )
            lost = _simulate(simulation, stop, idle_s)
        if lost is not None:
            tell(f"Error: {lost}")
            return LOST_BROKER
        return INTERRUPTED if stop.signal == "SIGINT" else DONE


def _simulate(simulation: Simulation, stop: Stop, idle_s: float | None) -> str | None:
    """Answer until told to stop, or idle for too long; return a problem with the broker, if any."""
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
    """Return a line about what a simulated annotator has done."""
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
        raise click.UsageError(
            "--as names one annotator, but there are several, each with its own name; leave out "
            "--as"
        )
    return replace(config, annotator=replace(config.annotator, name=name))
