"""On which page each conversation was published, and which pages have changed since.

What a loop must not forget is published piece by piece, so that a change costs what has changed
and not all there is. Conversations that are put away together share a page; a page is published
whole, whenever one of its conversations changes or is forgotten. Which pieces there are beside the
pages, and what is not put away yet, is told in `parts.py`.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from streamgp.interactive.records import Record

PlainRecord: TypeAlias = list[Any]
"""A conversation as plain JSON values."""

# A page is begun with so many bytes of JSON at most, so that an answer does not publish much beside
# its own conversation again; a longer conversation has a page to itself.
PAGE_BYTES = 1 << 15
# A page whose conversations have grown beyond this is divided. Well above, so that pages are not
# divided again and again.
MOST_BYTES = 1 << 17

_encode = msgspec.json.Encoder().encode


class Pages:
    """The pages of one loop.

    Attributes
    ----------
    n
        Pages so far; each has its number.

    Examples
    --------
    >>> from streamgp.interactive.messages import Event
    >>> pages, plain = Pages(), lambda record: [record.event.event_id, record.state]
    >>> one, two = (Record(Event(event_id=name, x={}, occurred_at=0.0)) for name in "ab")
    >>> pages.publish([one, two], [plain(one), plain(two)], plain)
    {1: [['a', 'seen'], ['b', 'seen']]}
    >>> pages.settle()
    >>> pages.remove(one)
    >>> pages.publish([], [], plain)
    {1: [['b', 'seen']]}

    """

    # _on       the conversations on each page, in the order of their numbers
    # _changed  pages that are not as they were published
    __slots__ = ("_changed", "_on", "n")

    def __init__(self) -> None:
        self.n = 0
        self._on: dict[int, list[Record]] = {}
        self._changed: set[int] = set()

    def __iter__(self) -> Iterator[tuple[int, list[Record]]]:
        """Yield the number of every page, and what is on it."""
        return iter(self._on.items())

    def note(self, record: Record) -> None:
        """Take note that a conversation has changed."""
        if record.page is not None:
            self._changed.add(record.page)

    def remove(self, record: Record) -> None:
        """Take a forgotten conversation off its page."""
        if record.page is not None:
            self._on[record.page].remove(record)
            self._changed.add(record.page)

    def put(self, record: Record, number: int) -> None:
        """Put a conversation on the page that it was on before a restart.

        Raises
        ------
        ValueError
            If there was no such page yet: set `n` first.

        """
        if not 1 <= number <= self.n:
            raise ValueError(f"page {number!r} was never published, expected 1 to {self.n}")
        record.page = number
        self._on.setdefault(number, []).append(record)

    def publish(
        self,
        fresh: Sequence[Record],
        plains: Sequence[PlainRecord],
        plain: Callable[[Record], PlainRecord],
    ) -> dict[int, list[PlainRecord] | None]:
        """Give pages to conversations that have none, and return what has changed.

        Until `settle` is called, it counts as changed.

        Parameters
        ----------
        fresh
            Conversations that are on no page yet, in the order of their numbers.
        plains
            The same as plain values.
        plain
            Makes plain values of a conversation.

        Returns
        -------
        The conversations on every page that has changed, None for one that has become empty.

        """
        found: dict[int, list[PlainRecord] | None] = {}
        groups: list[tuple[list[Record], list[PlainRecord]]] = []
        shortened: dict[int, list[Record]] = {}
        for number in sorted(self._changed):
            records = self._on[number]
            on_page = [plain(record) for record in records]
            if len(on_page) > 1 and len(_encode(on_page)) > MOST_BYTES:
                (shortened[number], on_page), *others = _grouped(records, on_page)
                groups += others
            found[number] = on_page or None
        if fresh:
            groups += _grouped(fresh, plains)
        # From here on nothing fails: whoever calls again after an error finds all as it was.
        self._on |= shortened
        for records, on_page in groups:
            self.n += 1
            for record in records:
                record.page = self.n
            self._on[self.n] = records
            self._changed.add(self.n)
            found[self.n] = on_page
        return found

    def settle(self) -> None:
        """Take note that all changes were published."""
        for number in self._changed:
            if not self._on[number]:
                del self._on[number]
        self._changed.clear()


def _grouped(
    records: Sequence[Record], plains: Sequence[PlainRecord]
) -> list[tuple[list[Record], list[PlainRecord]]]:
    """Divide conversations into pages of `PAGE_BYTES`, or of a single one that is longer."""
    if len(records) == 1:
        return [([records[0]], [plains[0]])]
    groups: list[tuple[list[Record], list[PlainRecord]]] = []
    room = 0
    for record, plain in zip(records, plains, strict=True):
        n_bytes = len(_encode(plain)) + 1
        if n_bytes > room:
            groups.append(([], []))
            room = PAGE_BYTES
        room -= n_bytes
        groups[-1][0].append(record)
        groups[-1][1].append(plain)
    return groups
