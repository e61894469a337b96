"""What was fetched and not yet handed to the worker: answers go first, and nothing piles up.

A consumer returns what it has fetched partition by partition: with a backlog, thousands of events
would come before the first answer. Here the records wait in a queue for each topic and partition,
and events wait for the answers of their partition as long as these keep coming. Which queues are
full is for the owner to ask; it stops fetching those.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import groupby, islice

from connectors.records import WORKER_INPUTS, Record, TopicName

_FULL_POLLS = 8
_FULL_BYTES = 4 * 2**20
_FULL_OF_ANSWERS = 64 * 2**20
_PATIENCE_S = 0.5


class Inputs:
    """Queues of the inputs of some partitions.

    Parameters
    ----------
    max_records
        How many records are handed over together at most.

    Examples
    --------
    >>> inputs = Inputs(max_records=2)
    >>> inputs.assign([0], now=0.0)
    >>> for topic in ("events", "events", "answers"):
    ...     record = Record(topic=topic, partition=0, offset=0, key=None, value=b"", at=0.0)
    ...     inputs.put([record], now=0.0)
    >>> [[record.topic for record in inputs.take({0: 0}, now=0.0)] for _ in range(3)]
    [['answers', 'events'], ['events'], []]

    """

    # _queues    by topic and partition; in the order in which topics are handed over
    # _bytes     how much each holds
    # _moved_at  when the last answer of a partition came, or when it was assigned

    def __init__(self, max_records: int) -> None:
        self._max_records = max_records
        self._queues: dict[tuple[TopicName, int], deque[Record]] = {}
        self._bytes: dict[tuple[TopicName, int], int] = {}
        self._moved_at: dict[int, float] = {}
        self._next = 0

    def assign(self, numbers: Iterable[int], now: float) -> None:
        """Drop everything and begin anew with these partitions."""
        self._moved_at = dict.fromkeys(sorted(numbers), now)
        self._queues = {(t, n): deque() for t in WORKER_INPUTS for n in self._moved_at}
        self._bytes = dict.fromkeys(self._queues, 0)

    def put(self, records: Iterable[Record], now: float) -> None:
        """Add records of partitions that are assigned."""
        for place, found in groupby(records, _place):
            queue = self._queues[place]
            before = len(queue)
            queue.extend(found)
            self._bytes[place] += sum(map(_size, islice(queue, before, None)))
            if place[0] == "answers":
                self._moved_at[place[1]] = now

    def waiting(self, topic: TopicName, number: int) -> int | None:
        """Return the offset of the next record of a partition to be handed over, None if none."""
        queue = self._queues.get((topic, number))
        return queue[0].offset if queue else None

    def n_waiting(self, topic: TopicName, number: int) -> int:
        """Return how many records of a partition are to be handed over."""
        return len(self._queues.get((topic, number), ()))

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def full(self) -> set[tuple[TopicName, int]]:
        """Return where there is enough for now; of answers only a great many are."""
        many = _FULL_POLLS * self._max_records
        return {
            place
            for place, queue in self._queues.items()
            if self._bytes[place] >= (_FULL_OF_ANSWERS if place[0] == "answers" else _FULL_BYTES)
            or (place[0] != "answers" and len(queue) >= many)
        }

    def take(self, behind: Mapping[int, int | None], now: float) -> list[Record]:
        """Return what is to be worked off next.

        Parameters
        ----------
        behind
            For each partition how many answers are at the broker and were not fetched; None while
            that is not known.
        now
            Seconds, by the clock that `assign` and `put` were told of; it should stand still
            while nobody waits.

        """
        taken: list[Record] = []
        numbers = self._in_turn()
        for topic in WORKER_INPUTS:
            for number in numbers:
                if topic == "events" and self._answers_come(number, behind.get(number), now):
                    continue
                place = topic, number
                queue = self._queues[place]
                while queue and len(taken) < self._max_records:
                    record = queue.popleft()
                    self._bytes[place] -= _size(record)
                    taken.append(record)
        return taken

    def _in_turn(self) -> list[int]:
        """Return the partitions, each time another one first."""
        numbers = list(self._moved_at)
        if not numbers:
            return numbers
        self._next = (self._next + 1) % len(numbers)
        return numbers[self._next :] + numbers[: self._next]

    def _answers_come(self, number: int, behind: int | None, now: float) -> bool:
        """Return whether answers of a partition are still to come before its events.

        Answers that do not come although they are there belong to a transaction that somebody has
        not ended; events do not wait for it.
        """
        if self._queues["answers", number]:
            return True
        return behind != 0 and now - self._moved_at[number] < _PATIENCE_S


def _place(record: Record) -> tuple[TopicName, int]:
    return record.topic, record.partition


def _size(record: Record) -> int:
    return len(record.value or b"") + len(record.key or b"")
