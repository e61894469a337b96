"""Live desk: keeps a desk up to date with the topics, and writes annotators' answers.

One event loop owns the desk. A thread reads the topics and passes on the messages; while they are
read from the start, at the beginning and after an outage of the broker, it fills a new desk, which
replaces the old one once it is complete. Another thread writes: answers accepted in the meantime
are sent together, with one flush.

"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from connectors.annotation.desk import AnnotationDesk
from connectors.annotation.feed import TopicFeed, TopicMessage, hand_over
from connectors.annotation.replies import Accepted
from connectors.annotation.sender import AnswerSender
from connectors.topics import BrokerError, LockedOutError, RefusedError, Topics
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures
from streamgp.interactive.messages import Answer

SOURCE = "/streamgp/page"
PROGRAM = "page"
"""Program name in answers given on the page."""
LOOK_S = 0.1
RETRY_S = 1.0
SAVE_S = 5.0
"""How long an annotator's browser waits for the broker before it sends the answer again."""
_N_KEPT = 1000

T = TypeVar("T")


class NotReadyError(Exception):
    """The topics have not been read to their end yet."""


class NotSavedError(Exception):
    """The broker has not confirmed an answer in time; sending continues in the background."""


class LiveDesk:
    """The desk of a running page.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    signatures
        Signs and verifies answers; None if they are not signed.

    Attributes
    ----------
    trouble
        Why the topics cannot be read at the moment, None if they can.
    n_read
        Number of records read so far while the topics are read from their start, then None.
    failure
        The error that ended one of the threads or tasks, if the broker did not cause it.

    """

    # _desk       None until everything has been read for the first time
    # _unsafe     accepted answers that the broker has not confirmed, by id
    # _recent     the last answers, with their partition and time, for a desk that is rebuilt
    # _listeners  events to set when something has changed
    def __init__(
        self,
        topics: Topics,
        make_desk: Callable[[], AnnotationDesk],
        *,
        keyed: bool,
        signatures: Signatures | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signatures = signatures
        self.trouble: str | None = None
        self.n_read: int | None = 0
        self.failure: BaseException | None = None
        self._topics = topics
        self._make_desk = make_desk
        self._keyed = keyed
        self._clock = clock
        self._outbound = Outbound(SOURCE, keyed=keyed, signatures=signatures)
        self._desk: AnnotationDesk | None = None
        self._unsafe: dict[str, asyncio.Future[None]] = {}
        self._recent: deque[tuple[Answer, int | None, float]] = deque(maxlen=_N_KEPT)
        self._listeners: set[asyncio.Event] = set()
        self._stopping = threading.Event()
        self._reader = threading.Thread(target=self._read, name="page-reader", daemon=True)

    def start(self) -> None:
        """Start reading; call it in the event loop that will own the desk."""
        self._loop = asyncio.get_running_loop()
        try:
            self._sender = AnswerSender(lambda: self._topics.writer(PROGRAM))
            self._reader.start()
        except RuntimeError as failure:  # no more threads: the server would not say why
            self.failure = failure
            raise

    async def stop(self, timeout_s: float) -> int:
        """Stop; return how many accepted answers were not sent in time."""
        self._stopping.set()
        n_unsent = 0
        if not self.has_failed:
            n_unsent = await asyncio.to_thread(self._sender.finish, timeout_s)
        self._sender.close()
        await asyncio.to_thread(self._reader.join, timeout_s)
        return n_unsent

    @property
    def desk(self) -> AnnotationDesk:
        """The desk; replaced after an outage of the broker.

        Raises
        ------
        NotReadyError
            If the topics have not been read yet.

        """
        if self._desk is None:
            raise NotReadyError
        return self._desk

    @property
    def is_ready(self) -> bool:
        """Whether the topics have been read once."""
        return self._desk is not None

    def can_send(self, annotator: str) -> bool:
        """Return whether an annotator's answers can be signed, if they have to be."""
        return self._signatures is None or self._signatures.can_sign(annotator)

    @property
    def n_unsent(self) -> int:
        """Number of accepted answers that the broker has not confirmed."""
        return len(self._unsafe)

    @property
    def has_failed(self) -> bool:
        """Whether one of the threads has failed; see `failure`."""
        if self.failure is None:
            try:
                _ = self._sender.trouble
            except Exception as failure:
                self.failure = failure
        return self.failure is not None

    @property
    def sending_trouble(self) -> str | None:
        """Why answers cannot be written at the moment, None if they can."""
        return self._sender.trouble

    def listen(self, event: asyncio.Event) -> None:
        """Set an event whenever something has changed."""
        self._listeners.add(event)

    def watch(self, task: asyncio.Task[None]) -> None:
        """Treat the end of a task, unless it was cancelled, as a failure of the page."""
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._fail(failure)

    def notify(self) -> None:
        """Tell the listeners that something has changed."""
        for event in self._listeners:
            event.set()

    async def save(self, accepted: Iterable[Accepted]) -> None:
        """Return once the broker has stored the accepted answers.

        Raises
        ------
        NotSavedError
            If that takes too long. Sending continues: the same answers, accepted again, are not
            sent a second time.

        """
        waiting = [future for each in accepted if (future := self._send(each)) is not None]
        self.notify()
        if waiting:
            # Shielded: when one client stops waiting, another may still wait for the same answer.
            saved = asyncio.gather(*map(asyncio.shield, waiting))
            try:
                await asyncio.wait_for(saved, SAVE_S)
            except TimeoutError:
                raise NotSavedError from None

    # --- internal, in the event loop

    def _send(self, accepted: Accepted) -> asyncio.Future[None] | None:
        """Send an answer unless it was sent; return a future of its storage, None if stored."""
        answer = accepted.answer
        if answer is None:
            return None
        answer_id = answer.answer_id
        if answer_id in self._unsafe or accepted.again:
            return self._unsafe.get(answer_id)
        # First: what cannot be sent must not be waited for.
        record = self._outbound.message(answer, accepted.partition)
        future: asyncio.Future[None] = self._loop.create_future()
        self._unsafe[answer_id] = future
        self._recent.append((answer, accepted.partition, self._clock()))
        self._sender.send(record, partial(self._post, partial(self._confirm, answer_id)))
        return future

    def _confirm(self, answer_id: str) -> None:
        future = self._unsafe.pop(answer_id)
        if not future.done():
            future.set_result(None)

    def _install(self, desk: AnnotationDesk) -> None:
        for answer, partition, at in self._recent:
            desk.take(answer, partition=partition, at=at)  # not if it has been forgotten since
        self._desk = desk
        self.n_read = None
        self.trouble = None
        self.notify()

    def _take(self, desk: AnnotationDesk, received: Sequence[TopicMessage]) -> None:
        for each in received:
            hand_over(desk, each)
        self.notify()

    def _lose(self, trouble: str) -> None:
        self.trouble = trouble
        self.notify()

    def _fail(self, failure: BaseException) -> None:
        self.failure = failure
        self.notify()

    # --- internal, in the reader's thread

    def _post(self, do: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nothing waits any more
            self._loop.call_soon_threadsafe(do)

    def _call(self, do: Callable[[], T]) -> None:
        """Call a function in the event loop, and wait until it is done."""
        done = threading.Event()

        def run() -> None:
            try:
                do()
            except Exception as failure:  # reported by the code that ends the process
                self._fail(failure)
                self._stopping.set()
            finally:
                done.set()

        self._post(run)
        while not done.wait(LOOK_S):
            if self._stopping.is_set():
                return

    def _read(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._follow()
                except BrokerError as error:
                    if isinstance(error, LockedOutError) or (
                        isinstance(error, RefusedError) and self._desk is None
                    ):
                        raise  # retrying would not help; of other refusals, the page says so
                    self._post(partial(self._lose, " ".join(str(error).split())))
                    self._stopping.wait(RETRY_S)
        except Exception as failure:  # reported by the code that ends the process
            self._post(partial(self._fail, failure))

    def _follow(self) -> None:
        """Read the topics from their start until the page ends or the broker fails."""
        feed = TopicFeed(
            self._topics, keyed=self._keyed, with_predictions=True, signatures=self._signatures
        )
        try:
            desk = self._make_desk()
            while not feed.caught_up:
                if self._stopping.is_set():
                    return
                for each in feed.read(LOOK_S):
                    hand_over(desk, each)
                if self._desk is None:
                    self.n_read = feed.n_read
            self._call(partial(self._install, desk))
            while not self._stopping.is_set():
                if received := feed.read(LOOK_S):
                    self._call(partial(self._take, desk, received))
                if feed.is_turn_due():
                    self._call(desk.turn_over)
        finally:
            with suppress(BrokerError):
                feed.close()
