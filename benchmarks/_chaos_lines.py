"""The consensus log under chaos: its lines, and the nulls that take lines out of it again.

An example that is withdrawn must stay so whatever the broker compacts first. So the line that says
`withdrawn` is followed by a null for every earlier line of the example, and a worker writes no
other null.

"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec

from benchmarks._chaos_talks import Talk
from connectors.topics import Record

Name: TypeAlias = tuple[str, str]
"""Key and event id."""

_SEPARATOR = b"\x1f"


class Lines:
    r"""Takes the records of the topic `consensus`, those of a partition in their order.

    Attributes
    ----------
    of_key
        Of each key its lines.
    written_at
        Of each event when its lines were written.

    Examples
    --------
    >>> line = {"key": "ann", "event_id": "e1", "sequence": 1, "y": None, "origin": "withdrawn"}
    >>> place = {"topic": "consensus", "partition": 0, "offset": 0, "at": 60.0}
    >>> lines = Lines()
    >>> lines.take(Record(key=b"ann\x1fe1\x1f1", value=msgspec.json.encode(line), **place))
    >>> lines.take(Record(key=b"bob\x1fe1\x1f0", value=None, **place))
    >>> list(lines.wrong_nulls())
    ["no null after a withdrawal: b'ann\\x1fe1\\x1f0'", "null without need: b'bob\\x1fe1\\x1f0'"]

    """

    # _due     by their key, lines that are still to be taken out
    # _strays  keys of nulls that nobody waited for
    def __init__(self) -> None:
        self.of_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.written_at: dict[Name, list[float]] = defaultdict(list)
        self._due: Counter[bytes] = Counter()
        self._strays: list[bytes] = []

    def __len__(self) -> int:
        return sum(map(len, self.of_key.values()))

    def take(self, record: Record) -> None:
        """Take the next record of its partition."""
        record_key = record.key or b""
        if record.value is None:
            if self._due[record_key]:
                self._due[record_key] -= 1
            else:
                self._strays.append(record_key)
            return
        line = msgspec.json.decode(record.value)
        self.of_key[line["key"]].append(line)
        self.written_at[line["key"], line["event_id"]].append(record.at)
        if line["origin"] == "withdrawn":
            example, _, revision = record_key.rpartition(_SEPARATOR)
            self._due.update(b"%b%b%d" % (example, _SEPARATOR, n) for n in range(int(revision)))

    def wrong_nulls(self) -> Iterator[str]:
        """Find nulls that are missing, and those that are too many."""
        for record_key in self._due.elements():
            yield f"no null after a withdrawal: {record_key!r}"
        for record_key in self._strays:
            yield f"null without need: {record_key!r}"

    def surplus(self, talks: Mapping[Name, Talk]) -> dict[Name, int]:
        """Count for each event how many lines there are too many."""
        found: dict[Name, int] = {name: -talk.n_lines for name, talk in talks.items()}
        for name, times in self.written_at.items():
            found[name] = found.get(name, 0) + len(times)
        return {name: n for name, n in found.items() if n}

    def gaps(self) -> Iterator[str]:
        """Find lines that do not follow the line before."""
        for key, lines in self.of_key.items():
            numbers = [0, *(line["sequence"] for line in lines)]
            for before, after in pairwise(numbers):
                if after != before + 1:
                    yield f"{key}: {after} after {before}"

    def wrong_counts(self, counts: Mapping[str, Sequence[int]]) -> Iterator[str]:
        """Find numbers of examples that the log does not allow.

        Parameters
        ----------
        counts
            Of each key how many examples its predictions name, in their order.

        """
        for key, named in counts.items():
            held: set[str] = set()
            sizes = [0]
            for line in self.of_key.get(key, ()):
                (held.discard if line.get("y") is None else held.add)(line["event_id"])
                sizes.append(len(held))
            at = 0
            for count in named:
                try:
                    at = sizes.index(count, at)
                except ValueError:
                    yield f"{key}: {count}, after line {at} of {len(sizes) - 1}"
