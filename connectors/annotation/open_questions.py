"""Open questions: asked and not settled, independent of the order in which topics are read.

The end of a question may be read before the question; it is then remembered. Settled questions are
forgotten after a while.

"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace, merge
from math import inf
from typing import Literal, TypeAlias

from streamgp.base import Label
from streamgp.common.latest import LatestByKey
from streamgp.interactive.conversation_record import event_id_of
from streamgp.interactive.messages import ASKED_AGAIN, EventKey, LabelRequest, Request, event_time

RequestKey: TypeAlias = tuple[str | None, str]
"""A key and a request id."""

Rank: TypeAlias = tuple[bool, float, str, str]
Place: TypeAlias = tuple[Rank, EventKey]

Order: TypeAlias = Literal["useful", "newest", "oldest"]
"""Order of label requests; challenges come first, the oldest one before the others."""

N_SERVED = 100
"""Number of recent answers used to spread label requests over the predicted classes."""
N_PREDICTED = 20_000
"""Number of events whose predicted class is kept for questions about them."""
MAX_PAST = 500_000
"""Number of events remembered as settled, besides as many older ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request on a desk.

    Parameters
    ----------
    request
        The label request or challenge.
    partition
        Its partition; the answer belongs to the same one.
    supersedes
        The answer that the next one replaces, None for a question that has not been answered yet.
    delayed_s
        Seconds between its own time and its writing, or those of an earlier question about the
        event if they were more: its event is remembered that much longer.

    """

    request: Request
    partition: int | None = None
    supersedes: str | None = None
    delayed_s: float = 0.0

    @property
    def request_key(self) -> RequestKey:
        """The key and the id of the request."""
        return self.request.key, self.request.request_id

    @property
    def occurred_at(self) -> float:
        """When its event occurred, POSIX seconds."""
        return event_time(self.request)


def rank_of(request: Request) -> Rank:
    """Return the sort key of requests: challenges first, since labels wait for them; then age.

    The last part is the request id.
    """
    is_first = isinstance(request, LabelRequest)
    return is_first, request.requested_at, request.key or "", request.request_id


@dataclass(slots=True)
class _Body:
    """A question with its status."""

    question: Question
    at: float  # when it was written to the topic
    until: float  # the last time at which it can be answered
    over: bool  # whether it has ended
    predicted: Label | None  # the predicted class of its event; None if not known
    score: float  # the higher, the earlier it is asked
    stale: bool = False  # whether it was already over at the last turn

    @property
    def place(self) -> Place:
        request = self.question.request
        return rank_of(request), (request.key, request.event_id)

    @property
    def is_label_request(self) -> bool:
        return isinstance(self.question.request, LabelRequest)

    @property
    def scored(self) -> tuple[float, Place]:
        """Sort key within a class: the highest score first, then age."""
        return -self.score, self.place


@dataclass(slots=True)
class _Past:
    """Settled requests of an event, for requests that are read later."""

    # answered  answered requests, with the annotators in order
    # over      requests that ended in another way, with the reason if one was given
    # before    everything asked before this time has ended
    # taught    whether the label request has ended because a label was learned
    # at        when the last of this was written to the topics
    answered: dict[str, dict[str | None, None]] = field(default_factory=dict)
    over: dict[str, str | None] = field(default_factory=dict)
    before: float = -inf
    taught: bool = False
    at: float = -inf

    def is_over(self, request: Request) -> bool:
        if request.request_id in self.over:
            return True
        if isinstance(request, LabelRequest):
            # A second question stays open, whatever else happens to the event.
            return not request.is_second and (request.requested_at < self.before or self.taught)
        return request.requested_at < self.before


Audience: TypeAlias = "tuple[bool, tuple[str | None, ...]]"
"""What decides who may answer: whether it is a label request, and the annotators it names."""


def _audience_of(request: Request) -> Audience:
    if isinstance(request, LabelRequest):
        return True, (request.annotator, *request.excluded)
    return False, (request.annotator,)


@dataclass(slots=True)
class _Queue:
    """Questions of one audience, by age, and label requests also by class."""

    # by_age    places, sorted by rank
    # by_class  by predicted class: places, the highest score first, then the oldest
    by_age: list[Place] = field(default_factory=list)
    by_class: dict[Label | None, list[tuple[float, Place]]] = field(default_factory=dict)

    def add(self, body: _Body) -> None:
        insort(self.by_age, body.place)
        if body.is_label_request:
            insort(self.by_class.setdefault(body.predicted, []), body.scored)

    def remove(self, body: _Body) -> None:
        del self.by_age[bisect_left(self.by_age, body.place)]
        if body.is_label_request:
            places = self.by_class[body.predicted]
            del places[bisect_left(places, body.scored)]
            if not places:
                del self.by_class[body.predicted]


class _Queues:
    """Queues of questions by audience, for all keys together and for each."""

    def __init__(self) -> None:
        self._all: dict[Audience, _Queue] = {}
        self._of: dict[str | None, dict[Audience, _Queue]] = {}

    def of(self, only_key: str | None) -> dict[Audience, _Queue]:
        return self._all if only_key is None else self._of.get(only_key, {})

    def add(self, body: _Body) -> None:
        audience = _audience_of(body.question.request)
        for queues in (self._all, self._of.setdefault(body.question.request.key, {})):
            queues.setdefault(audience, _Queue()).add(body)

    def remove(self, body: _Body) -> None:
        audience, key = _audience_of(body.question.request), body.question.request.key
        for queues in (self._all, self._of[key]):
            queues[audience].remove(body)
            if not queues[audience].by_age:
                del queues[audience]
        if not self._of[key]:
            del self._of[key]


def _spread(queues: Sequence[_Queue], served: Mapping[Label | None, int]) -> Iterator[Place]:
    """Yield places of label requests, spread over the predicted classes.

    D'Hondt's highest averages: among the best questions of each class, the one with the highest
    `score / (1 + n)` is next, where n counts the questions of its class answered or yielded before.
    """
    lists: dict[Label | None, list[list[tuple[float, Place]]]] = {}
    for queue in queues:
        for label, places in queue.by_class.items():
            lists.setdefault(label, []).append(places)
    best: list[tuple[float, Place, int]] = []
    rest: list[tuple[Iterator[tuple[float, Place]], int]] = []
    for label, several in lists.items():
        ordered = iter(several[0]) if len(several) == 1 else merge(*several)
        first, n = next(ordered), served.get(label, 0)
        best.append((first[0] / (1 + n), first[1], len(rest)))
        rest.append((ordered, n))
    heapify(best)
    while best:
        _, place, i = best[0]
        yield place
        ordered, n = rest[i]
        following = next(ordered, None)
        if following is None:
            heappop(best)
        else:
            rest[i] = ordered, n + 1
            heapreplace(best, (following[0] / (2 + n), following[1], i))


class OpenQuestions:
    """The questions that wait for an answer.

    Parameters
    ----------
    keep_over
        Whether to keep ended questions without a known answer for a while: one may still be read.
    may_answer
        Returns whether an annotator's answer to a request counts.
    order
        Order of the label requests: `useful`, the highest score first, spread over the predicted
        classes; `newest` or `oldest` first.

    Examples
    --------
    >>> questions = OpenQuestions()
    >>> questions.end(None, "e1/label", at=101.0)
    >>> for event_id in ("e1", "e2"):
    ...     request = LabelRequest(
    ...         request_id=f"{event_id}/label", event_id=event_id, x={}, reason="", score=1.0,
    ...         threshold=0.0, requested_at=100.0,
    ...     )
    ...     questions.ask(Question(request=request), at=100.0)
    >>> [question.request.event_id for question in questions]
    ['e2']

    """

    # _bodies  questions by key, event id and request id
    # _queues  exactly those that are not over and can be answered at `_now`
    # _untils  deadlines of those that are not over, sorted, each with its place
    # _now     the last time asked about; it may go back
    # _past    settled requests, by key and event id; `_older` those of the turn before
    # _n_past  number of events in `_past`
    # _predicted  predicted classes, by event
    # _served  predicted classes of the last answered label requests; `_n_served` counts them
    def __init__(
        self,
        *,
        keep_over: bool = False,
        may_answer: Callable[[Request, str | None], bool] = lambda _request, _annotator: True,
        order: Order = "oldest",
    ) -> None:
        self._order = order
        self._keep_over = keep_over
        self._may_answer = may_answer
        self._bodies: dict[str | None, dict[str, dict[str, _Body]]] = {}
        self._queues = _Queues()
        self._untils: list[tuple[float, Place]] = []
        self._now = -inf
        self._past: dict[str | None, dict[str, _Past]] = {}
        self._older: dict[str | None, dict[str, _Past]] = {}
        self._n_past = 0
        self._predicted: LatestByKey[str | None, Label] = LatestByKey(N_PREDICTED)
        self._served: deque[Label | None] = deque(maxlen=N_SERVED)
        self._n_served: Counter[Label | None] = Counter()

    def __iter__(self) -> Iterator[Question]:
        """Return all questions, unordered, even if it is too late to answer them."""
        for bodies in (bodies for of_key in self._bodies.values() for bodies in of_key.values()):
            yield from (body.question for body in bodies.values() if not body.over)

    def challenges(
        self, now: float, only_key: str | None = None, annotator: str | None = None
    ) -> Iterator[Question]:
        """Yield the challenges that can be answered now, the oldest first.

        Parameters
        ----------
        only_key
            Restricts the challenges to one key; None for all.
        annotator
            The annotator who would answer, None for anyone.

        """
        queues = self._open_to(annotator, now, only_key, of_labels=False)
        return map(self._at, merge(*(queue.by_age for queue in queues)))

    def label_requests(
        self, now: float, only_key: str | None = None, annotator: str | None = None
    ) -> Iterator[Question]:
        """Yield the label requests that can be answered now, in order; see `challenges`.

        The cost of the first ones grows with the predicted classes, not with the questions.
        """
        queues = self._open_to(annotator, now, only_key, of_labels=True)
        places: Iterator[Place]
        if self._order == "useful":
            places = _spread(queues, self._n_served)
        elif self._order == "oldest":
            places = merge(*(queue.by_age for queue in queues))
        else:
            places = merge(*(reversed(queue.by_age) for queue in queues), reverse=True)
        return map(self._at, places)

    def count(self, now: float, only_key: str | None = None, annotator: str | None = None) -> int:
        """Return the number of questions that can be answered now, of one key or of all."""
        return sum(len(queue.by_age) for queue in self._open_to(annotator, now, only_key))

    def oldest_at(
        self, now: float, only_key: str | None = None, annotator: str | None = None
    ) -> float:
        """Return when the oldest question that can be answered now was asked, inf without one."""
        queues = self._open_to(annotator, now, only_key)
        return min((queue.by_age[0][0][1] for queue in queues), default=inf)

    def get(self, key: str | None, event_id: str, request_id: str) -> Question | None:
        body = self._about((key, event_id)).get(request_id)
        return None if body is None or body.over else body.question

    def ask(self, question: Question, at: float, until: float = inf) -> None:
        """Add a question written to the topic at a time; it may already have ended.

        `until` is the last time at which it can be answered.
        """
        request = question.request
        event = (request.key, request.event_id)
        past = self._known_past(event) or _Past()
        # Answers may have been read before it, even ones that the workers refuse.
        names = past.answered.get(request.request_id, ())
        if any(self._may_answer(request, name) for name in names):
            return
        over = past.is_over(request)
        if not over or self._keep_over:
            before = self._about(event).get(request.request_id)
            score = max(request.score, 0.0)
            if isinstance(request, LabelRequest) and request.reason == ASKED_AGAIN:
                # It has no score of its own; if the request was answered before, its score is
                # unknown too.
                score = 1.0 if before is None else before.score
            body = _Body(question, at, until, over, self._predicted.get(event), score)
            self.remove(event, request.request_id)  # in case it is read twice
            of_key = self._bodies.setdefault(request.key, {})
            of_key.setdefault(request.event_id, {})[request.request_id] = body
            if not over:
                insort(self._untils, (until, body.place))
                if until >= self._now:
                    self._queues.add(body)

    def note_answer(
        self, event: EventKey, request_id: str, annotator: str | None, *, at: float
    ) -> str | None:
        """Record an answer to a request; return who answered it first."""
        self._note_served(event, request_id)
        names = self._past_of(event, at).answered.setdefault(request_id, {})
        names.setdefault(annotator)
        return next(iter(names))

    def note_prediction(self, event: EventKey, predicted: Label | None) -> None:
        """Record the predicted class of an event, before or after a question about it.

        Only the order `useful` needs it; otherwise it is not kept.
        """
        if self._order != "useful" or predicted is None:
            return
        self._predicted.put(event, predicted)
        for body in self._about(event).values():
            is_queued = not body.over and body.until >= self._now
            if is_queued:
                self._queues.remove(body)
            body.predicted = predicted
            if is_queued:
                self._queues.add(body)

    def may_be_first(self, event: EventKey, request: Request, annotator: str | None) -> bool:
        """Return whether no other annotator is known to have answered a request before."""
        past = self._known_past(event)
        names = () if past is None else past.answered.get(request.request_id, ())
        first = next((name for name in names if self._may_answer(request, name)), annotator)
        return first == annotator

    def settle(self, event: EventKey, *, before: float, taught: bool, at: float) -> None:
        """Record that everything asked about an event before a time has ended.

        With `taught`, the label request has ended in any case. The times compared are those of
        annotators' answers; a challenge has the time of the answer that it doubts. If an
        annotator's clock is wrong, a question may be missed.
        """
        past = self._past_of(event, at)
        past.before = max(past.before, before)
        past.taught = past.taught or taught
        for request_id, body in list(self._about(event).items()):
            if past.is_over(body.question.request):
                self._end(event, request_id)

    def end(self, key: str | None, request_id: str, *, at: float, why: str | None = None) -> None:
        """Record that a request has ended, and why."""
        event_id = event_id_of(request_id)
        if event_id is not None:
            self._past_of((key, event_id), at).over[request_id] = why
            self._end((key, event_id), request_id)

    def why_ended(self, key: str | None, request_id: str) -> str | None:
        """Return the reason why a request was cancelled; None if none is known."""
        event_id = event_id_of(request_id)
        if event_id is None:
            return None
        past = self._known_past((key, event_id))
        return None if past is None else past.over.get(request_id)

    def remove(self, event: EventKey, request_id: str) -> Question | None:
        bodies = self._about(event)
        body = bodies.pop(request_id, None)
        if body is None:
            return None
        key, event_id = event
        if not bodies:
            del self._bodies[key][event_id]
            if not self._bodies[key]:
                del self._bodies[key]
        if not body.over:
            self._take_out(body)
        return body.question

    def forget(self, key: str | None, at: float) -> None:
        """Forget everything about a key that was written up to a time."""
        for event_id, bodies in list(self._bodies.get(key, {}).items()):
            for request_id in [r for r, body in bodies.items() if body.at <= at]:
                self.remove((key, event_id), request_id)
        for settled in (self._past, self._older):
            of_key = settled.pop(key, {})
            left = {event_id: past for event_id, past in of_key.items() if past.at > at}
            if left:
                settled[key] = left
            if settled is self._past:
                self._n_past -= len(of_key) - len(left)
        self._predicted.forget(key)

    def turn_over(self) -> None:
        """Forget what was settled before the last turn."""
        self._begin_past()
        for key, of_key in list(self._bodies.items()):
            for event_id, bodies in list(of_key.items()):
                for request_id, body in list(bodies.items()):
                    if body.stale:
                        self.remove((key, event_id), request_id)
                    body.stale = body.over

    def _begin_past(self) -> None:
        self._older, self._past, self._n_past = self._past, {}, 0

    def _about(self, event: EventKey) -> dict[str, _Body]:
        """Return the questions about an event, by request id."""
        key, event_id = event
        return self._bodies.get(key, {}).get(event_id, {})

    def _end(self, event: EventKey, request_id: str) -> None:
        body = self._about(event).get(request_id)
        if body is not None and not body.over:
            body.over = True
            self._take_out(body)
            if not self._keep_over:
                self.remove(event, request_id)

    def _note_served(self, event: EventKey, request_id: str) -> None:
        """Count the class of an answered label request, and drop the oldest one."""
        body = self._about(event).get(request_id)
        if body is None or body.over or not body.is_label_request:
            return
        if len(self._served) == N_SERVED:
            self._n_served[self._served[0]] -= 1
        self._served.append(body.predicted)
        self._n_served[body.predicted] += 1

    def _take_out(self, body: _Body) -> None:
        del self._untils[bisect_left(self._untils, (body.until, body.place))]
        if body.until >= self._now:
            self._queues.remove(body)

    def _open_to(
        self,
        annotator: str | None,
        now: float,
        only_key: str | None,
        *,
        of_labels: bool | None = None,
    ) -> list[_Queue]:
        """Return queues of the questions that an annotator, or anyone, can answer at a time.

        `of_labels` selects label requests or challenges; None selects both.
        """
        was, self._now = self._now, now
        first, last = (bisect_left(self._untils, (at,)) for at in sorted((was, now)))
        change = self._queues.remove if was < now else self._queues.add
        for _, (rank, event) in self._untils[first:last]:
            change(self._about(event)[rank[-1]])
        return [
            queue
            for (is_label_request, _), queue in self._queues.of(only_key).items()
            if of_labels in (None, is_label_request)
            and (
                annotator is None or self._may_answer(self._at(queue.by_age[0]).request, annotator)
            )
        ]

    def _at(self, place: Place) -> Question:
        rank, event = place
        return self._about(event)[rank[-1]].question

    def _known_past(self, event: EventKey) -> _Past | None:
        key, event_id = event
        for settled in (self._past, self._older):
            past = settled.get(key, {}).get(event_id)
            if past is not None:
                return past
        return None

    def _past_of(self, event: EventKey, at: float) -> _Past:
        """Return the settled requests of an event, to record another one."""
        key, event_id = event
        past = self._past.get(key, {}).get(event_id)
        if past is None:
            past = self._older.get(key, {}).pop(event_id, None) or _Past()
            self._past.setdefault(key, {})[event_id] = past
            self._n_past += 1
            if self._n_past > MAX_PAST:
                self._begin_past()
        past.at = max(past.at, at)
        return past
