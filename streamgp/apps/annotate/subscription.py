"""Inbox of one annotator, filled from the topics, and rebuilt after the broker was away."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from connectors.annotation.explain import Averages
from connectors.annotation.feed import DeskFeed
from connectors.annotation.inbox import AnnotationInbox
from connectors.annotation.open_questions import Order
from connectors.topics import BrokerError, RefusedError, Topics
from connectors.wire.inbound import TakenBack
from connectors.wire.signatures import Signatures
from streamgp.interactive.messages import Answer, LabelledExample
from streamgp.interactive.people import DEFAULT_PEOPLE, People

LOOK_S = 0.1
"""How long to wait for what comes, at most."""
N_KEPT = 1000
"""Answers that are known here, whether the topic gives them back or not."""
_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """Settings of one annotator's session.

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
    of_numbers
        Whether numbers are asked for, not names of classes.
    asks_confidence
        Whether it is asked how sure an answer is.
    notes_response_time
        Whether answers tell how long they took.
    people
        Who may answer for whom.
    order
        Order of the label requests.
    signatures
        Signs and verifies answers; None where they are not signed.

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
    signatures: Signatures | None = None


class Subscription:
    """The desk of one annotator, as the topics fill it.

    Parameters
    ----------
    topics
        The topics.
    sitting
        Who sits there.
    clock
        Tells the time, POSIX seconds.

    Attributes
    ----------
    desk
        What is open, and who answered what; another one once the broker was away.
    averages
        What is usual in each class; likewise.
    trouble
        Why the topics cannot be read now, None if they can.

    Raises
    ------
    BrokerError
        If the broker cannot be reached at the beginning.

    """

    # _feed   None while the broker is lost
    # _given  the last answers: an inbox that is rebuilt knows them before the topic gives them back
    def __init__(self, topics: Topics, sitting: Sitting, clock: Callable[[], float]) -> None:
        self.trouble: str | None = None
        self._topics = topics
        self._sitting = sitting
        self._clock = clock
        self._given: deque[tuple[Answer, float]] = deque(maxlen=N_KEPT)
        self._retry_at = 0.0
        self._feed: DeskFeed | None = None
        self._begin()

    @property
    def n_read(self) -> int | None:
        """Records read so far while the topics are read from their start, then None."""
        return self._feed.n_read if self._feed is not None and self.is_behind else None

    @property
    def is_behind(self) -> bool:
        """Whether something that was there at the beginning has not been read yet."""
        return self._feed is None or not self._feed.caught_up

    def read_on(self, timeout_s: float) -> None:
        """Read what comes, for so many seconds at most if nothing does.

        What is wrong with the broker is told in `trouble`, and tried again after a second.

        Raises
        ------
        RefusedError
            If that would not help.

        """
        try:
            if self._feed is None:
                if self._clock() < self._retry_at:
                    time.sleep(LOOK_S)
                    return
                self._begin()
            self._read(timeout_s)
        except RefusedError:
            raise
        except BrokerError as error:
            self.trouble = " ".join(str(error).split())
            self._retry_at = self._clock() + _RETRY_S
            self.close()
        else:
            self.trouble = None

    def keep(self, answer: Answer, at: float) -> None:
        """Keep an answer that was given here, for an inbox that is rebuilt."""
        self._given.append((answer, at))

    def close(self) -> None:
        """Let go of the topics."""
        if self._feed is not None:
            with suppress(BrokerError):
                self._feed.close()
            self._feed = None

    def _begin(self) -> None:
        """Set the desk up, to be filled from the start of the topics."""
        sitting = self._sitting
        self.desk = AnnotationInbox(
            sitting.annotator,
            answer_horizon_s=sitting.answer_horizon_s,
            with_classes=not sitting.of_numbers,
            people=sitting.people,
            keyed=sitting.keyed,
            order=sitting.order,
        )
        self.averages = Averages()
        self._feed = DeskFeed(
            self._topics,
            self.desk,
            keyed=sitting.keyed,
            only_key=sitting.only_key,
            with_predictions=sitting.order == "useful",
            signatures=sitting.signatures,
        )
        for answer, at in self._given:
            self.desk.take(answer, at=at)

    def _read(self, timeout_s: float) -> None:
        assert self._feed is not None
        for message in self._feed.read_on(timeout_s if self._feed.caught_up else LOOK_S):
            if isinstance(message, LabelledExample):
                if not self._sitting.of_numbers:  # there are no classes
                    self.averages.learn(message)
            elif isinstance(message, TakenBack) and message.event_id is None:
                self.averages.forget(message.key)
