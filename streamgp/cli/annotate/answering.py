"""What `streamgp annotate` does for a person: show a question, take the answer, send it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from connectors.desk.desk import CannotUndoError, Desk, Question
from connectors.records import LinkError, Topics
from connectors.wire.inbox import TakenBack
from connectors.wire.outbox import Outbox
from streamgp.cli.annotate.averages import Averages
from streamgp.cli.annotate.choices import Choice, Choices, shown_label
from streamgp.cli.annotate.commands import Command, Face
from streamgp.cli.annotate.courier import Courier
from streamgp.cli.annotate.feed import DeskFeed
from streamgp.cli.annotate.question import View
from streamgp.cli.deployment.visiting import printable
from streamgp.interactive.messages import Answer, LabelledExample

SOURCE = "/streamgp/annotate"
PROGRAM = "annotate"
_LOOK_S = 0.1
_RETRY_S = 1.0
N_KEPT = 1000
"""Answers that are known here, whether the topic gives them back or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """Who answers, and what.

    Parameters
    ----------
    annotator
        How the answers are signed.
    keyed
        Whether the workers have a learner for each key.
    answer_horizon_s
        For how long after its event a question can be answered; None for ever.
    only_key
        The only key whose questions are wanted; None for all.
    idle_s
        Seconds without a question after which to leave; None for never.

    """

    annotator: str
    keyed: bool = True
    answer_horizon_s: float | None = None
    only_key: str | None = None
    idle_s: float | None = None


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

    """

    # _question  what is shown; it stays until it is answered, skipped or over
    # _feed      None while the broker is lost
    # _given     the last answers: a desk set up anew knows them before the topic gives them back
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
        self._topics = topics
        self._sitting = sitting
        self._face = face
        self._courier = courier
        self._clock = clock
        self._outbox = Outbox(SOURCE, keyed=sitting.keyed)
        self._choices = Choices()
        self._question: Question | None = None
        self._note: str | None = None
        self._trouble: str | None = None
        self._given: deque[tuple[Answer, float]] = deque(maxlen=N_KEPT)
        self._retry_at = 0.0
        self._idle_at = clock()
        self._feed: DeskFeed | None = None
        self._begin()

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Ask until the annotator leaves, or something else wants an end.

        Raises
        ------
        LinkError
            If the broker cannot be reached at the beginning.

        """
        with self._face as face:
            while not should_stop():
                self._read_on()
                self._choose()
                view = self._view()
                face.show(view)
                if self._is_idle_for_too_long(view):
                    return
                # While there is much to read, a look whether a key was pressed is enough.
                is_busy = view.n_read is not None or view.question is None
                command = face.read(view, 0.0 if is_busy else _LOOK_S)
                if command is not None and not self._obey(command):
                    return

    def finish(self, timeout_s: float) -> int:
        """Let the last answers be sent; return how many were not in time."""
        return self._courier.finish(timeout_s)

    def close(self) -> None:
        """Let go; what is not sent is given up."""
        self._courier.close()
        if self._feed is not None:
            with suppress(LinkError):
                self._feed.close()

    def n_open(self) -> int:
        """Return the number of questions that wait."""
        return self._desk.n_open(self._clock())

    # --- inside

    def _begin(self) -> None:
        """Set the desk up, to be filled from the start of the topics."""
        sitting = self._sitting
        self._desk = Desk(sitting.annotator, answer_horizon_s=sitting.answer_horizon_s)
        self._averages = Averages()
        self._feed = DeskFeed(
            self._topics, self._desk, keyed=sitting.keyed, only_key=sitting.only_key
        )
        for answer, at in self._given:
            self._desk.take(answer, at=at)

    def _read_on(self) -> None:
        try:
            if self._feed is None:
                if self._clock() < self._retry_at:
                    time.sleep(_LOOK_S)
                    return
                self._begin()
            assert self._feed is not None
            catches_up = not self._feed.caught_up
            has_time = self._question is None or catches_up
            for message in self._feed.read_on(_LOOK_S if has_time else 0.0):
                if isinstance(message, LabelledExample):
                    self._averages.learn(message)
                elif isinstance(message, TakenBack) and message.event_id is None:
                    self._averages.forget(message.key)
            self._trouble = None
        except LinkError as error:
            self._trouble = " ".join(str(error).split())
            self._retry_at = self._clock() + _RETRY_S
            if self._feed is not None:
                with suppress(LinkError):
                    self._feed.close()
                self._feed = None
            if self._question is not None:
                self._question = None
                self._face.question_ended()

    def _is_reading(self) -> bool:
        return self._feed is None or not self._feed.caught_up

    def _choose(self) -> None:
        """Go on to the next question, once the one that is shown is over."""
        if self._is_reading():
            return
        now = self._clock()
        if self._question is not None and not self._desk.is_open(self._question, now):
            about = printable(self._question.request.event_id)
            self._note = f"the question about event {about} has ended"
            self._question = None
            self._face.question_ended()
        if self._question is None:
            self._question = self._desk.next(now)

    def _view(self) -> View:
        question = self._question
        return View(
            annotator=self._sitting.annotator,
            question=question,
            choices=[] if question is None else self._offer(question.request.key),
            averages=self._averages,
            n_open=self.n_open(),
            n_answered=self.n_answered,
            n_unsent=self._courier.n_unsent,
            n_read=self._feed.n_read if self._feed is not None and self._is_reading() else None,
            note=self._note,
            trouble=self._trouble or self._courier.trouble,
            now=self._clock(),
        )

    def _offer(self, key: str | None) -> list[Choice]:
        return self._choices.offer(key, self._desk.classes(key), self._desk.all_classes())

    def _is_idle_for_too_long(self, view: View) -> bool:
        if view.question is not None or self._is_reading():
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
                self._desk.skip(question)
                self._note = f"event {printable(question.request.event_id)}: skipped"
            else:
                self._answer(question, command)
        return True

    def _answer(self, question: Question, command: Command) -> None:
        answer = self._desk.answer(question, command.label, self._clock())
        about = printable(question.request.event_id)
        what = "don't know" if command.label is None else shown_label(command.label)
        self._note = f"event {about}: {what}"
        if answer is not None:
            self.n_answered += 1
            self._send(answer, question)

    def _undo(self) -> None:
        if self._is_reading():
            self._note = "wait until everything is read"
            return
        try:
            undone = self._desk.undo(self._clock())
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
        self._given.append((answer, self._clock()))
        self._courier.send(self._outbox.message(answer, question.partition))
