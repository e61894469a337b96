"""What a loop must not forget, published piece by piece.

The head, with the latest conversations, is one part, every page of earlier ones another (see
`pages.py`). Together with the consensus log, which holds the labelled examples, the parts that were
published last make the loop again. Who publishes them, and where, is decided elsewhere.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from streamgp.base import Example, State
from streamgp.interactive.conversation import Moderator
from streamgp.interactive.memory import Memory
from streamgp.interactive.messages import LabelledExample
from streamgp.interactive.pages import PlainRecord
from streamgp.interactive.plain_state import head_of, plain_record, record_of, resume
from streamgp.interactive.records import Record
from streamgp.interactive.saving import read_on

HEAD = "head"
_PAGE = "events/"
# So many bytes of JSON of the latest conversations are published with every head, so that most
# events cost one part and not two; about as many as the head has besides.
RECENT_BYTES = 1 << 10

_encode = msgspec.json.Encoder().encode


class Published:
    """The parts of one loop.

    Parameters
    ----------
    model, memory, moderator
        What the loop consists of.

    """

    # _fingerprint  that of the model, once it was needed: it never changes
    __slots__ = ("_fingerprint", "_memory", "_model", "_moderator")

    def __init__(self, model: Any, memory: Memory, moderator: Moderator) -> None:
        self._model = model
        self._memory = memory
        self._moderator = moderator
        self._fingerprint: str | None = None

    @property
    def fingerprint(self) -> str:
        """What stands for the configuration of the model."""
        if self._fingerprint is None:
            self._fingerprint = self._model.fingerprint()
        return self._fingerprint

    def changed(self) -> dict[str, Any]:
        """Return the head and the pages that have changed, and count them as published."""
        pages = self._memory.pages
        fresh = self._memory.unpublished()
        recent = [self._plain(record) for record in fresh]
        if len(_encode(recent)) > RECENT_BYTES:
            changed, recent = pages.publish(fresh, recent, self._plain), []
        else:
            changed = pages.publish([], [], self._plain)
        # The head comes last: whoever reads on from anywhere and finds a page, finds the head.
        parts = {**_by_name(changed), HEAD: self._head(recent)}
        pages.settle()
        return parts

    def all(self) -> dict[str, Any]:
        """Return all parts as they are now."""
        recent = [self._plain(record) for record in self._memory.unpublished()]
        return {**self.pages(), HEAD: self._head(recent)}

    def pages(self) -> dict[str, Any]:
        """Return the pages as they are now, without what is on none yet."""
        return _by_name(
            {n: [self._plain(record) for record in on] for n, on in self._memory.pages if on}
        )

    def names(self) -> list[str]:
        """Return the names of the parts that have been published, or may have been."""
        return [*_by_name(dict(self._memory.pages)), HEAD]

    def _head(self, recent: list[PlainRecord]) -> State:
        head = head_of(self._model, self._memory, self._moderator)
        return {**head, "fingerprint": self.fingerprint, "recent": recent}

    def _plain(self, record: Record) -> PlainRecord:
        return plain_record(record, self._moderator.deadlines.number(record.event.event_id))


def take_up(
    parts: Mapping[str, Any],
    log: Iterable[LabelledExample],
    model: Any,
    memory: Memory,
    moderator: Moderator,
    *,
    after: tuple[int, Sequence[Example]] | None = None,
) -> None:
    """Make a new loop what parts and a consensus log were taken from.

    Lines may be missing that somebody has deleted from the log; as long as nobody has said so to
    the loop (`withdraw`), a conversation knows its label, and what it says counts.

    Parameters
    ----------
    parts
        All parts; None stands for one that is gone.
    log
        The lines of the loop, in any order.
    model, memory, moderator
        What the new loop consists of.
    after
        The number of a line, and the examples held at that time: then only later lines are read.

    Raises
    ------
    ValueError
        If they do not fit together.

    """
    head = parts.get(HEAD)
    if head is None:
        raise ValueError(f"there is no part {HEAD!r}")
    if head["fingerprint"] != model.fingerprint():
        raise ValueError(
            f"it is of another configuration ({head['fingerprint']!s:.16}, this one is "
            f"{model.fingerprint()})"
        )
    pages: list[tuple[int | None, Sequence[PlainRecord]]] = [
        (_number(name), page) for name, page in parts.items() if page and name != HEAD
    ]
    pages.append((None, head["recent"]))
    records = [(number, *record_of(plain, _nowhere)) for number, page in pages for plain in page]
    first, examples = (0, ()) if after is None else after
    if head["sequence"] < first:
        raise ValueError(
            f"it ends with line {head['sequence']} of the log, expected {first} or more"
        )
    held = {str(example.event_id): example for example in examples}
    # Lines beyond the head were never published with it.
    read_on(held, [line for line in log if first < line.sequence <= head["sequence"]])
    for _, record, _ in records:
        _agree(held, record)
    if after is not None and len(held) != head["learned"]:
        raise ValueError(f"the log leaves {len(held)} examples, expected {head['learned']}")
    resume(head, records, list(held.values()), model, memory, moderator)


def _agree(held: dict[str, Example], record: Record) -> None:
    """Make the examples agree with a conversation, where lines of the log are missing."""
    event, word = record.event, record.word
    example = held.get(event.event_id)
    if not record.is_learned:
        if record.revision:
            held.pop(event.event_id, None)  # it was taken back
    elif word is None:
        raise ValueError(f"event {event.event_id!r} was learned without a label")
    elif example is None or (example.y, example.privileged) != (word.y, word.privileged):
        held[event.event_id] = Example(
            event_id=event.event_id, x=event.x, y=word.y, privileged=word.privileged
        )


def _by_name(pages: Mapping[int, Any]) -> dict[str, Any]:
    return {f"{_PAGE}{number}": page for number, page in pages.items()}


def _number(name: str) -> int:
    """Return the number of a page, of which `name` is the name."""
    number = name.removeprefix(_PAGE)
    if not (number.isdecimal() and name == f"{_PAGE}{int(number)}"):
        raise ValueError(f"part {name!r} is unknown, expected {HEAD!r} or '{_PAGE}<number>'")
    return int(number)


def _nowhere(event_id: str) -> None:
    """Find no example: a page has all features."""
