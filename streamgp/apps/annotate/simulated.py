"""Program of `streamgp annotate --simulate`: answers every question by itself.

Questions are read before truths: events are read only as far as a question waits for one of them.
Old questions therefore find their truth, and little has to be remembered.

"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from connectors.annotation.feed import Told, TopicFeed, understood
from connectors.annotation.inbox import AnnotationInbox
from connectors.annotation.open_questions import Question
from connectors.tables.cells import (
    is_integer_text,
    is_missing,
    key_of,
    label_of,
    target_of,
    with_point,
)
from connectors.tables.readers import Row, TableError, open_table
from connectors.topics import BrokerError, LockedOutError, Reader, RefusedError, Topics, Writer
from connectors.wire.inbound import TakenBack
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures
from streamgp.apps.annotate import PROGRAM, SOURCE
from streamgp.apps.console import (
    DONE,
    INTERRUPTED,
    LOST_BROKER,
    StatusLine,
    Stop,
    in_one_line,
    number,
    tell,
)
from streamgp.apps.deployment.answer_keys import signatures_of
from streamgp.apps.deployment.deployment import visit
from streamgp.apps.recorded_logs import prefixes
from streamgp.base import Label
from streamgp.common.latest import Latest
from streamgp.config.build import build_annotator, build_labelled_windows
from streamgp.config.load import with_annotators
from streamgp.config.settings import WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.interactive.event_windows import EventWindows
from streamgp.interactive.messages import (
    Answer,
    Challenge,
    Event,
    EventKey,
    LabelledExample,
    LabelRequest,
)
from streamgp.simulation.annotators import AnnotatorPanel, NamedAnnotator

# --- True labels of events for simulated annotators: from a file, or from the events themselves.


ID_COLUMN = "event_id"
MAX_TRUTHS = 500_000
"""Number of events to keep, of those without a label request and of others each; the oldest are
forgotten."""


def read_truths(paths: Sequence[Path], *, label: str, numbers: bool = False) -> dict[str, Label]:
    """Read the labels of events from logs: CSV, JSON lines or Parquet.

    Parameters
    ----------
    paths
        The logs. The id of an event is in the column `event_id`; without it, it is the number of
        the row, as with `streamgp send`.

    Raises
    ------
    click.ClickException
        If a file cannot be read, or two of its rows contradict each other.

    """
    truths: dict[str, Label] = {}
    for path, prefix in zip(paths, prefixes(paths), strict=True):
        with in_one_line(ValueError):
            with closing(open_table(path)) as table:
                rows = [(row.number, row.cells) for row in table.rows() if isinstance(row, Row)]
                typed, commas = table.typed, table.decimal_comma
            found = list(_labels(path, rows, label, typed=typed, numbers=numbers, commas=commas))
        for name, y in found:
            event_id = prefix + name
            if event_id in truths and (type(truths[event_id]), truths[event_id]) != (type(y), y):
                raise click.ClickException(
                    f"{path} has two labels for event {event_id!r:.60}; give every event one"
                )
            truths[event_id] = y
    return truths


def _labels(
    path: Path,
    rows: list[tuple[int, dict[str, Any]]],
    label: str,
    *,
    typed: bool,
    numbers: bool,
    commas: bool,
) -> Iterator[tuple[str, Label]]:
    if not any(label in cells for _, cells in rows):
        columns = dict.fromkeys(name for _, cells in rows[:1] for name in cells)
        raise TableError(
            f"{path} has no column {label!r} (label); columns: {', '.join(columns) or 'none'}"
        )
    named = [(n, cells) for n, cells in rows if not is_missing(cells.get(label))]
    # As in a log that is sent: integers if all of them are.
    are_integers = not (typed or numbers) and all(is_integer_text(c[label]) for _, c in named)
    known: dict[tuple[type, Label], Label] = {}
    for n, cells in named:
        cell = cells[label]
        try:
            y: Label | None
            if numbers:
                y = target_of(with_point(cell) if commas else cell)
            else:
                y = label_of(cell) if typed else int(cell) if are_integers else cell.strip()
            event_id = str(n) if is_missing(cells.get(ID_COLUMN)) else key_of(cells[ID_COLUMN])
        except ValueError as error:
            raise TableError(f"{path}: row {n}: {error}") from None
        if y is not None:
            # Equal labels share one object: there are many events and few labels.
            yield event_id, known.setdefault((type(y), y), y)


class Truths:
    """The true labels of events that may be asked about.

    Events with open questions are kept longest, the others while there is room: a label that was
    learned may be challenged later.

    Parameters
    ----------
    given
        Labels by event id, if they are known beforehand.

    Examples
    --------
    >>> truths = Truths()
    >>> truths.see(Event(event_id="e1", x={}, occurred_at=0.0, truth="hall"))
    >>> truths.knows(None, "e1"), truths.ask(None, "e1"), truths.knows(None, "e2")
    (True, 'hall', False)

    """

    # _unasked  labels by key and event id; None for an event whose label is unknown
    # _asked    the same for events with a question
    # _labels   every label once
    def __init__(self, given: dict[str, Label] | None = None) -> None:
        self.given = given
        self._unasked: Latest[EventKey, Label | None] = Latest(MAX_TRUTHS)
        self._asked: Latest[EventKey, Label | None] = Latest(MAX_TRUTHS)
        self._labels: dict[tuple[type, Label], Label] = {}

    def labels(self) -> Iterable[Label]:
        """Return the labels of the file, in the order of their first events."""
        return {(type(y), y): y for y in (self.given or {}).values()}.values()

    def see(self, event: Event) -> None:
        """Record the label of an event: its `truth`, otherwise its `y`."""
        y = event.y if event.truth is None else event.truth
        if y is not None and not isinstance(y, float):  # numbers may all differ
            y = self._labels.setdefault((type(y), y), y)
        self._unasked.put((event.key, event.event_id), y)

    def knows(self, key: str | None, event_id: str) -> bool:
        """Return whether an event has been seen, with or without a label."""
        event = (key, event_id)
        return self.given is not None or event in self._asked or event in self._unasked

    def ask(self, key: str | None, event_id: str) -> Label | None:
        """Return the label of an event, None if unknown; it is then kept for a while."""
        if self.given is not None:
            return self.given.get(event_id)
        event = (key, event_id)
        if event in self._unasked:
            self._asked.put(event, self._unasked.pop(event))
        return self._asked.get(event)

    def settle(self, key: str | None, event_id: str) -> None:
        """Record that there is no open question about an event at the moment."""
        event = (key, event_id)
        if event in self._asked:
            self._unasked.put(event, self._asked.pop(event))

    def __len__(self) -> int:
        return len(self._unasked) + len(self._asked)


# --- Answers: held until they are due, then sent to the broker.


class ScheduledAnswers:
    """Answers that have been decided, but are not stored by the broker yet.

    Parameters
    ----------
    keyed
        Whether the workers have a learner for each key.
    signatures
        Signs the answers; None to leave them unsigned.

    Attributes
    ----------
    n_answered
        Number of answers sent, of all kinds.
    n_challenges, n_declined
        How many of them were about challenges; how many gave no label.

    """

    # _waiting  heap of (answered_at, number, question, answer); numbers order equal times
    # _unsure   answers that may not be stored, with their partition
    def __init__(self, *, keyed: bool, signatures: Signatures | None) -> None:
        self.n_answered = self.n_challenges = self.n_declined = 0
        self._outbound = Outbound(SOURCE, keyed=keyed, signatures=signatures)
        self._waiting: list[tuple[float, int, Question, Answer]] = []
        self._unsure: list[tuple[Answer, int | None]] = []
        self._n_added = 0

    def __len__(self) -> int:
        """Return the number of answers that are not due yet."""
        return len(self._waiting)

    @property
    def next_at(self) -> float | None:
        """Time of the next answer, None if there is none."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, question: Question, answer: Answer) -> None:
        """Add an answer, to be sent when it is due if the question is still open then."""
        self._n_added += 1
        heapq.heappush(self._waiting, (answer.answered_at, self._n_added, question, answer))

    def start_over(self, inbox: AnnotationInbox) -> None:
        """Forget waiting answers, which will be drawn again; tell the inbox those possibly sent."""
        self._waiting.clear()
        for answer, partition in self._unsure:
            inbox.take(answer, partition=partition, at=answer.answered_at)

    def send(self, writer: Writer, inbox: AnnotationInbox, now: float) -> int:
        """Send the answers that are due; return their number.

        Raises
        ------
        BrokerError
            If the broker cannot be used; they are sent again next time.

        """
        while self._waiting and self._waiting[0][0] <= now:
            _, _, question, answer = heapq.heappop(self._waiting)
            if not inbox.is_open(question, now, None):
                continue
            inbox.take(answer, partition=question.partition, at=now)
            self._unsure.append((answer, question.partition))
            self.n_answered += 1
            self.n_challenges += isinstance(question.request, Challenge)
            self.n_declined += answer.declined
        n = len(self._unsure)
        if n:
            for answer, partition in self._unsure:
                writer.send(self._outbound.message(answer, partition))
            writer.flush()
            self._unsure.clear()
        return n


# --- The annotator at the topics.


LOOK_S = 0.1
RETRY_S = 1.0
LOOK_AGAIN_S = 5.0


def names_of(annotator: NamedAnnotator | AnnotatorPanel) -> list[str]:
    """Return the names of a simulated annotator, or of a panel's members."""
    return list(annotator.annotators) if isinstance(annotator, AnnotatorPanel) else [annotator.name]


class Simulation:
    """Simulated annotator that answers questions in a deployment's topics.

    Parameters
    ----------
    annotator
        The simulated annotator; its durations are in the clock's seconds.
    truths
        The true labels; if not given in advance, they are taken from the events.
    keyed
        Whether the workers have a learner for each key.
    only_key
        Restricts the questions to one key; None for all.
    windows
        Makes events from the records of `events`, if these are raw rows.

    Attributes
    ----------
    trouble
        Current problem with the broker; None if there is none. After one, everything must be read
        again before it is over.
    scheduled
        The answers: those that wait, and counts of those sent.

    """

    # _windows   those over the rows read since the connections were opened
    # _untold    questions whose event has not been read yet
    # _look_at   when to check which of the untold questions have ended
    # _is_ready  whether all old questions have been read, and the open ones among them asked
    def __init__(
        self,
        topics: Topics,
        annotator: NamedAnnotator | AnnotatorPanel,
        truths: Truths,
        *,
        keyed: bool,
        only_key: str | None = None,
        signatures: Signatures | None = None,
        windows: EventWindows | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signatures = signatures
        self.trouble: str | None = None
        self._topics = topics
        self._fresh_windows = windows
        self._annotator = annotator
        self._names = names_of(annotator)
        self._truths = truths
        self._keyed = keyed
        self._only_key = only_key
        self._clock = clock
        self.scheduled = ScheduledAnswers(keyed=keyed, signatures=signatures)
        self._look_at = 0.0
        self._retry_at = 0.0
        for label in truths.labels():
            annotator.see(label)
        self._open()

    def _open(self) -> None:
        self._feed: TopicFeed | None = None
        self._events: Reader | None = None
        self._writer: Writer | None = None
        self._inbox = AnnotationInbox(is_for_reading=True)
        self._windows = self._fresh_windows and self._fresh_windows.clone()
        self._untold: dict[EventKey, list[Question]] = {}
        self._is_ready = False
        try:
            self._writer = self._topics.writer(PROGRAM)
            if self._truths.given is None:
                self._events = self._topics.reader(["events"])
            self._feed = TopicFeed(
                self._topics,
                keyed=self._keyed,
                only_key=self._only_key,
                signatures=self._signatures,
            )
        except BrokerError:
            self.close()
            raise
        self.scheduled.start_over(self._inbox)

    @property
    def n_untold(self) -> int:
        """Number of questions whose event has not been found."""
        return sum(map(len, self._untold.values()))

    @property
    def is_waiting(self) -> bool:
        """Whether something that needs no further question is still to be done."""
        return self.trouble is None and (bool(self.scheduled) or not self._is_ready)

    def step(self, timeout_s: float = LOOK_S) -> bool:
        """Read new messages, waiting at most for the timeout, and send answers that are due.

        Returns
        -------
        Whether anything was received or sent. Problems with the broker are reported in `trouble`,
        and retried after a second.

        Raises
        ------
        LockedOutError, RefusedError
            If a retry would not help.

        """
        try:
            if self._feed is None:
                if self._clock() < self._retry_at:
                    time.sleep(min(timeout_s, LOOK_S))
                    return False
                self._open()
            is_moved = self._read(timeout_s) + self._find_truths() + self._send()
        except (LockedOutError, RefusedError):
            raise
        except BrokerError as error:
            self.trouble = " ".join(str(error).split())
            self._retry_at = self._clock() + RETRY_S
            self.close()
            return False
        if self._is_ready:
            self.trouble = None
        return is_moved > 0

    def close(self) -> None:
        """Close the connections; answers that are not due yet are dropped."""
        for end in (self._feed, self._events, self._writer):
            if end is not None:
                with suppress(BrokerError):
                    end.close()
        self._feed = self._events = self._writer = None

    # --- internal

    def _read(self, timeout_s: float) -> int:
        assert self._feed is not None
        due_at = self.scheduled.next_at
        if due_at is not None:
            timeout_s = min(timeout_s, max(0.0, due_at - self._clock()))
        if self._untold:
            timeout_s = 0.0
        told = self._feed.read_into(self._inbox, timeout_s)
        for message in told:
            self._settle(message)
        if self._is_ready:
            requests = [m for m in told if isinstance(m, LabelRequest | Challenge)]
            questions = [found for r in requests if (found := self._inbox.find(r)) is not None]
        elif self._feed.caught_up:
            self._is_ready = True
            questions = self._inbox.questions(self._clock(), None)
        else:
            return len(told)
        for question in questions:
            if any(self._inbox.may_answer(question, name) for name in self._names):
                self._hear(question)
        return len(told)

    def _settle(self, message: Told) -> None:
        match message:
            # An expired question may still be answered, and the answer challenged.
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
        answer = self._annotator.answer(request, truth, self._clock())
        if answer is not None:
            self.scheduled.add(question, answer)

    def _find_truths(self) -> int:
        """Read some events, if a question waits for one of them."""
        if not self._untold or self._events is None:
            return 0
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_S
            open_ones = (
                (
                    event,
                    [question for question in found if self._inbox.is_open(question, now, None)],
                )
                for event, found in self._untold.items()
            )
            self._untold = {event: found for event, found in open_ones if found}
        windows, records = self._windows, self._events.poll(LOOK_S)
        for record in records:
            event = understood(record, keyed=self._keyed)
            if isinstance(event, Event):
                # Silence counts from when the row was written, as for the worker, not from now.
                at = min(record.at, now)
                for one in [event] if windows is None else windows.take(event, at):
                    self._learn_truth(one)
        if windows is not None and not records:
            for one in windows.on_time(now):
                self._learn_truth(one)
        return len(records)

    def _learn_truth(self, event: Event) -> None:
        """Record the true label of an event, and answer the questions that wait for it."""
        self._truths.see(event)
        y = event.y if event.truth is None else event.truth
        if y is not None:
            self._annotator.see(y)
        for question in self._untold.pop((event.key, event.event_id), ()):
            self._ask(question)

    def _send(self) -> int:
        assert self._writer is not None
        return self.scheduled.send(self._writer, self._inbox, self._clock())


# --- The program.


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
                windows=build_labelled_windows(config),
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
            if is_moved or simulation.is_waiting:
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
    sent = simulation.scheduled
    text = (
        f"{number(sent.n_answered, 'answer')}, {sent.n_challenges} of them to challenges, "
        f"{sent.n_declined} declined; {len(sent)} under way"
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
