"""What `streamgp annotate --simulate` does: answer every question by itself.

Questions are known before truths are looked for: the events are read only as far as a question
waits for one of them. So what was asked long ago finds its truth, and little has to be remembered.

"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from connectors.desk.desk import Desk, Question
from connectors.records import LinkError, Reader, RefusedError, Topics, Writer
from connectors.wire.inbox import TakenBack
from streamgp.cli.annotate.courier import PROGRAM
from streamgp.cli.annotate.feed import DeskFeed, Told, understood
from streamgp.cli.annotate.truths import Truths
from streamgp.cli.annotate.under_way import Counts, UnderWay
from streamgp.interactive.annotators import Annotator
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Event,
    LabelledExample,
    LabelRequest,
)

LOOK_S = 0.1
RETRY_S = 1.0
LOOK_AGAIN_S = 5.0

_EventKey: TypeAlias = "tuple[str | None, str]"


class Simulation:
    """A simulated annotator at work on the topics of a deployment.

    Parameters
    ----------
    topics
        The topics.
    annotator
        Who answers; seconds are those of the clock.
    truths
        What is true; if it is not given beforehand, it is taken from the events.
    keyed
        Whether the workers have a learner for each key.
    only_key
        The only key whose questions are answered; None for all.
    clock
        Tells the time, POSIX seconds.

    Attributes
    ----------
    trouble
        What is wrong with the broker; None if nothing is.

    """

    # _under_way  the answers that are not safe yet
    # _untold     questions whose event has not been read yet
    # _look_at    when to look which of the untold questions have ended
    # _is_ready   whether all old questions were read, and the open ones among them asked
    def __init__(
        self,
        topics: Topics,
        annotator: Annotator,
        truths: Truths,
        *,
        keyed: bool,
        only_key: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.trouble: str | None = None
        self._topics = topics
        self._annotator = annotator
        self._truths = truths
        self._keyed = keyed
        self._only_key = only_key
        self._clock = clock
        self._under_way = UnderWay(keyed=keyed)
        self._look_at = 0.0
        self._retry_at = 0.0
        for label in truths.labels():
            annotator.see(label)
        self._open()

    @property
    def counts(self) -> Counts:
        """What was done."""
        return self._under_way.counts

    @property
    def n_waiting(self) -> int:
        """Number of answers under way."""
        return len(self._under_way)

    @property
    def n_untold(self) -> int:
        """Number of questions whose event has not been found."""
        return sum(map(len, self._untold.values()))

    def step(self, timeout_s: float = LOOK_S) -> bool:
        """Read what comes, for so many seconds at most if nothing does, and send what is due.

        Returns
        -------
        Whether anything came or went. What is wrong with the broker does not end anything: it is
        told in `trouble`, and tried again after a second.

        Raises
        ------
        RefusedError
            If that would not help.

        """
        try:
            if self._feed is None:
                if self._clock() < self._retry_at:
                    time.sleep(min(timeout_s, LOOK_S))
                    return False
                self._open()
            is_moved = self._read(timeout_s) + self._find_truths() + self._send()
        except RefusedError:
            raise
        except LinkError as error:
            self.trouble = " ".join(str(error).split())
            self._retry_at = self._clock() + RETRY_S
            self._let_go()
            return False
        self.trouble = None
        return is_moved > 0

    def close(self) -> None:
        """Let go; answers that are not due yet are not given."""
        self._let_go()

    # --- inside

    def _open(self) -> None:
        self._feed: DeskFeed | None = None
        self._events: Reader | None = None
        self._writer: Writer | None = None
        self._desk = Desk()
        self._untold: dict[_EventKey, list[Question]] = {}
        self._is_ready = False
        try:
            self._writer = self._topics.writer(PROGRAM)
            if self._truths.given is None:
                self._events = self._topics.reader(["events"])
            self._feed = DeskFeed(
                self._topics, self._desk, keyed=self._keyed, only_key=self._only_key
            )
        except LinkError:
            self._let_go()
            raise
        self._under_way.start_over(self._desk)

    def _let_go(self) -> None:
        for end in (self._feed, self._events, self._writer):
            if end is not None:
                with suppress(LinkError):
                    end.close()
        self._feed = self._events = self._writer = None

    def _read(self, timeout_s: float) -> int:
        assert self._feed is not None
        due_at = self._under_way.next_at
        if due_at is not None:
            timeout_s = min(timeout_s, max(0.0, due_at - self._clock()))
        if self._untold:
            timeout_s = 0.0
        told = self._feed.read_on(timeout_s)
        for message in told:
            self._settle(message)
        if self._is_ready:
            requests = [m for m in told if isinstance(m, LabelRequest | Challenge)]
            questions = [found for r in requests if (found := self._desk.find(r)) is not None]
        elif self._feed.caught_up:
            self._is_ready = True
            questions = self._desk.questions(self._clock())
        else:
            return len(told)
        for question in questions:
            self._hear(question)
        return len(told)

    def _settle(self, message: Told) -> None:
        match message:
            # A question that has expired may still be answered, and the answer be challenged.
            case LabelledExample() | Answer(declined=True):
                self._truths.settle(message.key, message.event_id)
            case TakenBack(event_id=None):
                key = message.key
                self._untold = {e: found for e, found in self._untold.items() if e[0] != key}
            case _:
                pass

    def _hear(self, question: Question) -> None:
        request = question.request
        if self._truths.knows(request.key, request.event_id):
            self._ask(question)
        else:
            self._untold.setdefault((request.key, request.event_id), []).append(question)

    def _ask(self, question: Question) -> None:
        request = question.request
        truth = self._truths.ask(request.key, request.event_id)
        self._under_way.add(question, self._annotator.answer(request, truth, self._clock()))

    def _find_truths(self) -> int:
        """Read some events, if a question waits for one of them."""
        if not self._untold or self._events is None:
            return 0
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_S
            open_ones = (
                (event, [question for question in found if self._desk.is_open(question, now)])
                for event, found in self._untold.items()
            )
            self._untold = {event: found for event, found in open_ones if found}
        records = self._events.poll(LOOK_S)
        for record in records:
            event = understood(record, keyed=self._keyed)
            if not isinstance(event, Event):
                continue
            self._truths.see(event)
            y = event.y if event.truth is None else event.truth
            if y is not None:
                self._annotator.see(y)
            for question in self._untold.pop((event.key, event.event_id), ()):
                self._ask(question)
        return len(records)

    def _send(self) -> int:
        assert self._writer is not None
        return self._under_way.send(self._writer, self._desk, self._clock())
