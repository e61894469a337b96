"""What `streamgp annotate` does for a person: show a question, take the answer, send it."""

from __future__ import annotations

import time
from collections.abc import Callable

from connectors.desk.desk import CannotUndoError, Question
from connectors.records import Topics
from connectors.wire.outbox import Outbox
from streamgp.cli.annotate.choices import GIVEN, SUGGESTED, Choice, Choices, shown_label
from streamgp.cli.annotate.commands import Command, Face, said
from streamgp.cli.annotate.courier import SOURCE, Courier
from streamgp.cli.annotate.live_desk import LOOK_S, LiveDesk, Sitting
from streamgp.cli.annotate.question import View
from streamgp.cli.wording import printable
from streamgp.interactive.messages import CONFIDENCE, RESPONSE_S, Answer, Challenge, Request
from streamgp.printable import HiddenLabels


class Answering:
    """One annotator at work.

    Parameters
    ----------
    topics
        The topics.
    sitting
        Who answers, and what.
    face
        Where questions are shown and commands come from.
    courier
        Takes the answers to the broker.
    clock
        Tells the time, POSIX seconds.

    Attributes
    ----------
    n_answered
        Answers given.
    lost
        Why it was left, where the broker was away for as long as nobody wants to wait without a
        question; else None.

    Raises
    ------
    LinkError
        If the broker cannot be reached at the beginning.

    """

    # _live      the desk, and what fills it
    # _question  what is shown; it stays until it is answered, skipped or over
    # _is_empty  whether there was no question when the last one was looked for
    # _idle_at   when there was a question last, by the clock
    def __init__(
        self,
        topics: Topics,
        sitting: Sitting,
        face: Face,
        courier: Courier,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.n_answered = 0
        self.lost: str | None = None
        self._sitting = sitting
        self._face = face
        self._courier = courier
        self._clock = clock
        self._outbox = Outbox(SOURCE, keyed=sitting.keyed)
        self._choices = Choices()
        self._hidden = HiddenLabels()
        self._question: Question | None = None
        self._note: str | None = None
        self._is_empty = True
        self._idle_at = clock()
        self._live = LiveDesk(topics, sitting, clock)

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Ask until the annotator leaves, or something else wants an end.

        Raises
        ------
        RefusedError
            If the topics cannot be read any longer, and waiting would not help.

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
                # While there is much to read, a look whether a key was pressed is enough.
                is_busy = view.n_read is not None or view.question is None
                command = face.read(view, 0.0 if is_busy else LOOK_S)
                if command is not None and not self._obey(command):
                    return

    def finish(self, timeout_s: float) -> int:
        """Let the last answers be sent; return how many were not in time."""
        return self._courier.finish(timeout_s)

    def close(self) -> None:
        """Let go; what is not sent is given up."""
        self._courier.close()
        self._live.close()

    def n_open(self) -> int:
        """Return the number of questions that wait."""
        return self._live.desk.n_open(self._clock())

    # --- inside

    def _read_on(self) -> None:
        # Who has just answered waits for nothing while there are further questions.
        self._live.read_on(LOOK_S if self._is_empty else 0.0)
        if self._live.trouble is not None and self._question is not None:
            self._question = None
            self._face.question_ended()

    def _choose(self) -> None:
        """Go on to the next question, once the one that is shown is over."""
        if self._live.is_behind:
            return
        now = self._clock()
        if self._question is not None and not self._live.desk.is_open(self._question, now):
            about = printable(self._question.request.event_id)
            self._note = f"the question about event {about} has ended"
            self._question = None
            self._face.question_ended()
        if self._question is None:
            self._question = self._live.desk.next(now)
            if self._question is not None:
                self._warn_of_hidden(self._question.request)
        self._is_empty = self._question is None

    def _warn_of_hidden(self, request: Request) -> None:
        """Say it the first time that a label holds characters that cannot be seen."""
        for label in self._live.desk.classes(request.key):
            warning = self._hidden.warning(label)
            if warning is not None:
                self._note = warning if self._note is None else f"{self._note}\n{warning}"

    def _view(self) -> View:
        question, live = self._question, self._live
        return View(
            annotator=self._sitting.annotator,
            question=question,
            choices=[] if question is None else self._offer(question.request),
            averages=live.averages,
            n_open=self.n_open(),
            n_answered=self.n_answered,
            n_unsent=self._courier.n_unsent,
            n_read=live.n_read,
            note=self._note,
            trouble=live.trouble or self._courier.trouble,
            now=self._clock(),
            of_numbers=self._sitting.of_numbers,
            asks_confidence=self._sitting.asks_confidence,
        )

    def _offer(self, request: Request) -> list[Choice]:
        if self._sitting.of_numbers:
            if not isinstance(request, Challenge):
                return []
            return [
                Choice(character=GIVEN, label=request.given),
                Choice(character=SUGGESTED, label=request.suggested),
            ]
        key = request.key
        desk = self._live.desk
        return self._choices.offer(key, desk.classes(key), desk.all_classes())

    def _is_idle_for_too_long(self, view: View) -> bool:
        if view.question is not None or view.n_read is not None:
            self._idle_at = view.now
            return False
        idle_s = self._sitting.idle_s
        return idle_s is not None and view.now - self._idle_at >= idle_s

    def _obey(self, command: Command) -> bool:
        """Do what the annotator wants; return whether to go on."""
        if command.kind == "quit":
            return False
        if command.kind == "undo":
            self._undo()
        elif self._question is not None:
            question, self._question, self._note = self._question, None, None
            if command.kind == "skip":
                self._live.desk.skip(question)
                self._note = f"event {printable(question.request.event_id)}: skipped"
            else:
                self._answer(question, command)
        return True

    def _answer(self, question: Question, command: Command) -> None:
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
            self._send(answer, question)

    def _known_of(self, command: Command) -> dict[str, float] | None:
        """Return what is known of an answer beside the label, None if that is nothing."""
        known = {}
        if command.response_s is not None and self._sitting.notes_response_time:
            known[RESPONSE_S] = command.response_s
        if command.confidence is not None:
            known[CONFIDENCE] = command.confidence
        return known or None

    def _undo(self) -> None:
        if self._live.is_behind:
            self._note = "wait until everything is read"
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
            self._send(undone.message, undone.question)

    def _send(self, answer: Answer, question: Question) -> None:
        self._live.keep(answer, self._clock())
        self._courier.send(self._outbox.message(answer, question.partition))
