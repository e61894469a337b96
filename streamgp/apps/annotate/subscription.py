"""Inbox of one annotator, filled from the topics, and rebuilt after an outage of the broker."""

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
"""The longest wait for new messages."""
N_KEPT = 1000
"""Number of recent answers kept here, whether or not the topic has returned them."""
_RETRY_S = 1.0


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
    signatures: Signatures | None = None


class Subscription:
    """The inbox of one annotator, kept up to date with the topics.

    Attributes
    ----------
    desk
        Open questions and answers; replaced after an outage of the broker.
    averages
        The usual values of each class; likewise.
    trouble
        Why the topics cannot be read at the moment, None if they can.

    Raises
    ------
    BrokerError
        If the broker cannot be reached at the start.

    """

    # _feed   None while the broker is lost
    # _given  the last answers: a rebuilt inbox knows them before the topic returns them
    def __init__(
        self, topics: Topics, settings: SessionSettings, clock: Callable[[], float]
    ) -> None:
        self.trouble: str | None = None
        self._topics = topics
        self._settings = settings
        self._clock = clock
        self._given: deque[tuple[Answer, float]] = deque(maxlen=N_KEPT)
        self._retry_at = 0.0
        self._feed: DeskFeed | None = None
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
        RefusedError
            If a retry would not help.

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
        """Keep an answer that was given here, for a rebuilt inbox."""
        self._given.append((answer, at))

    def close(self) -> None:
        """Close the connections to the topics."""
        if self._feed is not None:
            with suppress(BrokerError):
                self._feed.close()
            self._feed = None

    def _begin(self) -> None:
        """Create an empty desk, to be filled from the start of the topics."""
        settings = self._settings
        self.desk = AnnotationInbox(
            settings.annotator,
            answer_horizon_s=settings.answer_horizon_s,
            with_classes=not settings.of_numbers,
            people=settings.people,
            keyed=settings.keyed,
            order=settings.order,
        )
        self.averages = Averages()
        self._feed = DeskFeed(
            self._topics,
            self.desk,
            keyed=settings.keyed,
            only_key=settings.only_key,
            with_predictions=settings.order == "useful",
            signatures=settings.signatures,
        )
        for answer, at in self._given:
            self.desk.take(answer, at=at)

    def _read(self, timeout_s: float) -> None:
        assert self._feed is not None
        for message in self._feed.read_on(timeout_s if self._feed.caught_up else LOOK_S):
            if isinstance(message, LabelledExample):
                if not self._settings.of_numbers:  # there are no classes
                    self.averages.learn(message)
            elif isinstance(message, TakenBack) and message.event_id is None:
                self.averages.forget(message.key)
