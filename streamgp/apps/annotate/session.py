"""Program of `streamgp annotate` for a person: show a question, read the answer, send it."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import click

from connectors.annotation.explain import Averages
from connectors.annotation.feed import TopicFeed
from connectors.annotation.inbox import AnnotationInbox
from connectors.annotation.label_text import shown_label
from connectors.annotation.open_questions import Order, Question
from connectors.annotation.own_answers import CannotUndoError
from connectors.annotation.replies import privileged_of
from connectors.annotation.sender import AnswerSender
from connectors.topics import BrokerError, LockedOutError, RefusedError, Topics
from connectors.wire.inbound import TakenBack
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures
from streamgp.apps.annotate import PROGRAM, SOURCE
from streamgp.apps.annotate.choices import Choice, Choices
from streamgp.apps.annotate.commands import Command, UnclearLineError, said
from streamgp.apps.annotate.line_ui import LineFace, Lines
from streamgp.apps.annotate.question_view import View
from streamgp.apps.console import (
    DONE,
    INTERRUPTED,
    LOST_BROKER,
    WRONG_USE,
    Stop,
    number,
    tell,
)
from streamgp.apps.deployment.answer_keys import signatures_of
from streamgp.apps.deployment.deployment import visit
from streamgp.base import Label
from streamgp.common.printable import HiddenLabels, printable
from streamgp.interactive.messages import Answer, Challenge, LabelledExample, Request
from streamgp.interactive.people import DEFAULT_PEOPLE, People

LOOK_S = 0.1
"""The longest wait for new messages."""
N_KEPT = 1000
"""Number of recent answers kept here, whether or not the topic has returned them."""
RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Settings of one annotator's session.

    Parameters
    ----------
    annotator
        The annotator's name in answers.
    keyed
        Whether the workers have a learner for each key.
    answer_horizon_s
        How long after its event a question can be answered; None for ever.
    only_key
        Restricts the questions to one key; None for all.
    idle_s
        Seconds without a question after which to end; None for never.
    of_numbers
        Whether the answers are numbers instead of names of classes.
    asks_confidence
        Whether to ask for the confidence of an answer.
    notes_response_time
        Whether answers contain the response time.
    people
        Who may answer for whom.
    order
        Order of the label requests.
    question, guidelines
        What the annotator is asked, and needs to know to answer; None for "Which is it?", and for
        nothing.
    labels
        Labels that are offered from the start, for every key.
    signatures
        Signs and verifies answers; None if they are not signed.

    """

    annotator: str
    keyed: bool = True
    answer_horizon_s: float | None = None
    only_key: str | None = None
    idle_s: float | None = None
    of_numbers: bool = False
    asks_confidence: bool = False
    notes_response_time: bool = True
    people: People = DEFAULT_PEOPLE
    order: Order = "useful"
    question: str | None = None
    guidelines: str | None = None
    labels: tuple[Label, ...] = ()
    signatures: Signatures | None = None


class Subscription:
    """The inbox of one annotator, kept up to date with the topics.

    Attributes
    ----------
    inbox
        Open questions and answers; replaced after an outage of the broker.
    averages
        The usual values of each class; likewise.
    trouble
        Why the topics cannot be read at the moment, None if they can.
    overtaken
        Other answers of the annotator, from another session, that count instead of those given
        here: to the same questions, and earlier in the topic.

    Raises
    ------
    BrokerError
        If the broker cannot be reached at the start.

    """

    # _feed      None while the broker is lost
    # _retry_at  when to look for it again, on a clock that is never set back
    # _given     the last answers: a rebuilt inbox knows them before the topic returns them
    # _unwritten those of them that the topic has not returned yet, by key and id
    def __init__(self, topics: Topics, settings: SessionSettings) -> None:
        self.trouble: str | None = None
        self._topics = topics
        self._settings = settings
        self.overtaken: list[Answer] = []
        self._given: deque[tuple[Answer, float]] = deque(maxlen=N_KEPT)
        self._unwritten: dict[tuple[str | None, str], Answer] = {}
        self._retry_at = 0.0
        self._feed: TopicFeed | None = None
        self._begin()

    @property
    def n_read(self) -> int | None:
        """Number of records read so far while the topics are read from their start, then None."""
        return self._feed.n_read if self._feed is not None and self.is_behind else None

    @property
    def is_behind(self) -> bool:
        """Whether something that was there at the start has not been read yet."""
        return self._feed is None or not self._feed.caught_up

    def read_on(self, timeout_s: float) -> None:
        """Read new messages, waiting at most for the timeout.

        Problems with the broker are reported in `trouble`, and retried after a second.

        Raises
        ------
        LockedOutError, RefusedError
            If a retry would not help.

        """
        try:
            if self._feed is None:
                if time.monotonic() < self._retry_at:
                    time.sleep(LOOK_S)
                    return
                self._begin()
            self._read(timeout_s)
        except (LockedOutError, RefusedError):
            raise
        except BrokerError as error:
            self.trouble = " ".join(str(error).split())
            self._retry_at = time.monotonic() + RETRY_S
            self.close()
        else:
            self.trouble = None

    def keep(self, answer: Answer, at: float) -> None:
        """Keep an answer that was given here, for a rebuilt inbox."""
        self._given.append((answer, at))
        self._unwritten[answer.key, answer.answer_id] = answer

    def close(self) -> None:
        if self._feed is not None:
            with suppress(BrokerError):
                self._feed.close()
            self._feed = None

    def _begin(self) -> None:
        """Create an empty inbox, to be filled from the start of the topics."""
        settings = self._settings
        self.inbox = AnnotationInbox(
            answer_horizon_s=settings.answer_horizon_s,
            with_classes=not settings.of_numbers,
            people=settings.people,
            keyed=settings.keyed,
            order=settings.order,
            labels=settings.labels,
        )
        self.averages = Averages()
        self._feed = TopicFeed(
            self._topics,
            keyed=settings.keyed,
            only_key=settings.only_key,
            with_predictions=settings.order == "useful",
            signatures=settings.signatures,
        )
        for answer, at in self._given:
            self.inbox.take(answer, at=at)

    def _read(self, timeout_s: float) -> None:
        assert self._feed is not None
        timeout_s = timeout_s if self._feed.caught_up else LOOK_S
        for message in self._feed.read_into(self.inbox, timeout_s):
            if isinstance(message, LabelledExample):
                if not self._settings.of_numbers:  # there are no classes
                    self.averages.learn(message)
            elif isinstance(message, TakenBack) and message.event_id is None:
                self.averages.forget(message.key)
            elif isinstance(message, Answer) and message.annotator == self._settings.annotator:
                given = self._unwritten.pop((message.key, message.answer_id), message)
                if message.y != given.y:
                    self.overtaken.append(message)


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

    # _live      the inbox, with the feed that fills it
    # _question  the question shown, until it is answered, skipped or over
    # _n_skipped how many questions were skipped since the last answer
    # _is_empty  whether the last search found no question
    # _idle_at   when there was last a question, on the clock
    def __init__(
        self,
        topics: Topics,
        settings: SessionSettings,
        face: LineFace,
        sender: AnswerSender,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.n_answered = 0
        self.lost: str | None = None
        self._settings = settings
        self._annotator = settings.annotator
        self._face = face
        self._sender = sender
        self._clock = clock
        self._outbound = Outbound(SOURCE, keyed=settings.keyed, signatures=settings.signatures)
        self._choices = Choices()
        self._hidden = HiddenLabels()
        self._question: Question | None = None
        self._note: str | None = None
        self._n_skipped = 0
        self._is_empty = True
        self._idle_at = clock()
        self._live = Subscription(topics, settings)

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Ask until the annotator leaves, or the session must end for another reason.

        Raises
        ------
        LockedOutError, RefusedError
            If the topics can no longer be read, or answers not be written, and waiting would not
            help.

        """
        with self._face as face:
            while not should_stop():
                if (refusal := self._sender.refusal) is not None:
                    raise refusal
                self._read_on()
                self._choose()
                view = self._view()
                face.show(view)
                if self._is_idle_for_too_long(view):
                    self.lost = self._live.trouble
                    return
                # While there is much to read, checking for a line without waiting is enough.
                is_busy = view.n_read is not None or view.question is None
                command = face.read(view, 0.0 if is_busy else LOOK_S)
                if command is not None and not self._execute(command):
                    return

    def close(self) -> None:
        self._live.close()

    def n_open(self) -> int:
        return self._live.inbox.n_open(self._clock(), self._annotator)

    # --- internal

    def _read_on(self) -> None:
        # After an answer the annotator does not wait while there are further questions.
        self._live.read_on(LOOK_S if self._is_empty else 0.0)
        while self._live.overtaken:
            answer = self._live.overtaken.pop(0)
            self._add_note(
                f"event {printable(answer.event_id)}: {_shown(answer.y)} counts, which another "
                "session with your name answered first"
            )
        if self._live.trouble is not None and self._question is not None:
            self._question = None
            self._face.question_ended()

    def _choose(self) -> None:
        """Go on to the next question once the one shown is over."""
        if self._live.is_behind:
            return
        now = self._clock()
        inbox, annotator = self._live.inbox, self._annotator
        if self._question is not None and not inbox.is_open(self._question, now, annotator):
            about = printable(self._question.request.event_id)
            why = inbox.why_ended(*self._question.request_key)
            reason = "" if why is None else f": {printable(why)}"
            self._note = f"the question about event {about} has ended{reason}"
            self._question = None
            self._face.question_ended()
        if self._question is None:
            self._question = inbox.next(now, annotator)
            if self._question is not None:
                self._warn_of_hidden(self._question.request)
        self._is_empty = self._question is None

    def _warn_of_hidden(self, request: Request) -> None:
        """Warn of each new label that may look like another one."""
        for label in self._live.inbox.timeline.classes(request.key):
            warning = self._hidden.warning(label)
            if warning is not None:
                self._add_note(warning)

    def _add_note(self, line: str) -> None:
        self._note = line if self._note is None else f"{self._note}\n{line}"

    def _view(self) -> View:
        question, live = self._question, self._live
        request = None if question is None else question.request
        timeline = live.inbox.timeline
        return View(
            annotator=self._annotator,
            question=question,
            choices=[] if request is None else self._offer(request),
            averages=live.averages,
            n_open=self.n_open(),
            n_answered=self.n_answered,
            n_unsent=self._sender.n_unsent,
            n_read=live.n_read,
            note=self._note,
            trouble=live.trouble or self._sender.trouble,
            now=self._clock(),
            given_at=timeline.given_at(request) if isinstance(request, Challenge) else None,
            asks=self._settings.question,
            guidelines=self._settings.guidelines,
            of_numbers=self._settings.of_numbers,
            asks_confidence=self._settings.asks_confidence,
            is_patient=self._settings.idle_s is not None,
            is_set_aside=self._annotator in live.inbox.quarantined.counts(self._settings.only_key),
        )

    def _offer(self, request: Request) -> list[Choice]:
        if self._settings.of_numbers:
            return []
        key = request.key
        inbox = self._live.inbox
        return self._choices.offer(key, inbox.timeline.classes(key), inbox.timeline.all_classes())

    def _is_idle_for_too_long(self, view: View) -> bool:
        if view.question is not None or view.n_read is not None:
            self._idle_at = view.now
            return False
        idle_s = self._settings.idle_s
        return idle_s is not None and view.now - self._idle_at >= idle_s

    def _execute(self, command: Command) -> bool:
        if command.kind == "quit":
            return False
        if command.kind == "undo":
            self._undo()
        elif self._question is not None:
            question, self._question, self._note = self._question, None, None
            if command.kind == "skip":
                self._live.inbox.skip(question, self._annotator)
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
        renamed = self._live.inbox.rename(
            key, command.old, command.label, now, annotator=self._annotator
        )
        for answer, partition in renamed:
            self._send(answer, partition)
        old, new = shown_label(command.old), shown_label(command.label)
        self._note = f"nothing renamed: no example of yours that you can change is {old}"
        if renamed:
            self._note = f"{number(len(renamed), 'example')} of yours: {old} is {new} now"
        left = self._live.inbox.timeline.count(key, command.old)
        if left:
            self._note += f"; {left} more that you cannot change, given by others or too long ago"

    def _answer(self, question: Question, command: Command) -> None:
        self._n_skipped = 0
        took_s = command.response_s if self._settings.notes_response_time else None
        answer = self._live.inbox.answer(
            question,
            command.label,
            self._clock(),
            annotator=self._annotator,
            std=command.std,
            privileged=privileged_of(took_s, command.confidence),
        )
        about = printable(question.request.event_id)
        self._note = f"event {about}: {said(command)}"
        if answer is not None:
            self._send(answer, question.partition)
            self.n_answered += 1

    def _undo(self) -> None:
        if self._live.is_behind:
            self._note = "wait until everything is read"
            return
        inbox, annotator = self._live.inbox, self._annotator
        if self._n_skipped:
            self._n_skipped -= 1
            question = inbox.unskip(annotator)
            if question is not None and inbox.is_open(question, self._clock(), annotator):
                self._question = question
                self._note = f"event {printable(question.request.event_id)}: here again"
                return
        try:
            undone = inbox.undo(self._clock(), annotator=annotator)
        except CannotUndoError as error:
            self._note = str(error)
            return
        self._question = undone.question
        y = undone.answer.y
        about = printable(undone.answer.event_id)
        self._note = f"taken back: {_shown(y)}, about event {about}"
        if undone.message is not None:
            self._send(undone.message, undone.question.partition)

    def _send(self, answer: Answer, partition: int | None) -> None:
        record = self._outbound.message(answer, partition)  # refused if its key was removed
        self._live.keep(answer, self._clock())
        self._sender.send(record)


def _shown(y: Label | None) -> str:
    return "don't know" if y is None else shown_label(y)


SOON_S = 1.0
SEND_FOR_S = 15.0
"""How long to keep trying to send the last answers."""


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
            question=config.page.question,
            guidelines=config.page.guidelines,
            labels=config.page.labels,
            signatures=signatures_of(config, make_for=(name,), knows_all=False),
        )
        sender = AnswerSender(lambda: topics.writer(PROGRAM))
        face = open_face()
        refusal: Exception | None = None
        with closing(sender), Stop() as stop:
            answering = Answering(topics, session, face, sender)
            try:
                answering.run(stop)
            except LockedOutError as error:
                answering.lost = str(error)
            except (RefusedError, UnclearLineError) as error:
                refusal = error
            n_open = answering.n_open()
            n_unsent = sender.finish(SOON_S)
            if n_unsent and sender.refusal is None:
                n = number(n_unsent, "answer")
                tell(f"sending {n}, for {SEND_FOR_S:.0f} s at most")
                n_unsent = sender.finish(SEND_FOR_S)
            refusal = refusal or sender.refusal
            answering.close()
        tell(f"{number(answering.n_answered, 'answer')} given; {number(n_open, 'question')} left")
        lost = answering.lost if refusal is None else str(refusal)
        if n_unsent:
            lost = lost or sender.trouble or "the broker is lost"
            lost += f"; {number(n_unsent, 'answer')} not sent, the questions come again"
        if lost is not None:
            tell(f"Error: {' '.join(lost.split())}")
            return LOST_BROKER if refusal is None else WRONG_USE
        return INTERRUPTED if stop.signal == "SIGINT" else DONE


def open_face() -> LineFace:
    """Return the interface on standard input and output."""
    if sys.stdin is None or sys.stdout is None:
        raise click.ClickException("annotate needs its standard input and output; they are closed")
    return LineFace(Lines(sys.stdin), sys.stdout)
