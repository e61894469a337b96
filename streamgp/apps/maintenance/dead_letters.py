"""Dead letters: listing and resending them (`streamgp dead-letters`)."""

from __future__ import annotations

import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import click

from connectors.tables.cells import time_of
from connectors.topics import Outgoing, Record, Topics
from connectors.wire.outbound import Letter, letter_of, resend
from streamgp.apps.console import aligned, clock_time, number
from streamgp.apps.deployment.deployment import everything
from streamgp.common.printable import printable

LetterPlace: TypeAlias = tuple[int, int]
"""Partition and offset of a dead letter."""

_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,18})")
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h|d)")
_SECONDS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PER_LINE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Selection of dead letters.

    Parameters
    ----------
    stage
        The stage that failed, as in `dlq.stage`; None for any.
    since
        Only letters written at or after this time, POSIX seconds.

    """

    stage: str | None = None
    since: float | None = None

    def fits(self, record: Record, letter: Letter) -> bool:
        return (self.stage is None or letter.stage == self.stage) and (
            self.since is None or record.at >= self.since
        )


def place_of(text: str) -> LetterPlace:
    """Parse the number of a dead letter, as printed by `list`.

    Examples
    --------
    >>> place_of("2:17")
    (2, 17)

    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise click.UsageError(
            f"{text!r} is not the number of a dead letter, expected PARTITION:OFFSET, as in 2:17"
        )
    return int(found[1]), int(found[2])


def moment_of(text: str, now: float) -> float:
    """Parse a time, absolute or relative to now.

    Examples
    --------
    >>> moment_of("90 min", now=10_000.0), moment_of("1970-01-01T01:00:00Z", now=10_000.0)
    (4600.0, 3600.0)

    """
    span = _SPAN.fullmatch(text.strip())
    if span is not None:
        return now - float(span[1]) * _SECONDS[span[2]]
    try:
        return time_of(text)
    except ValueError:
        raise click.UsageError(
            f"{text!r} is not a time, expected how long ago (30s, 15min, 2h, 7d) or a time, as in "
            "2026-08-01T14:30:00Z"
        ) from None


def listing(topics: Topics, wanted: Wanted, last: int) -> str:
    """Return a table of the dead letters, oldest first."""
    # Only those that are shown are kept: there may be very many, each with all of its input.
    n_found = itertools.count()
    newest = heapq.nlargest(
        last,
        letters(topics, wanted),
        key=lambda pair: (pair[0].at, next(n_found)),
    )
    shown = newest[::-1]
    rows = [
        [
            _number_of(record),
            clock_time(record.at),
            _source_of(letter),
            printable(letter.stage),
            printable(letter.error),
        ]
        for record, letter in shown
    ]
    lines = [aligned([["number", "when", "from", "stage", "error"], *rows])] if rows else []
    n = next(n_found)
    rest = "" if len(shown) == n else f", the last {len(shown)} of them shown"
    return "\n".join([*lines, f"{number(n, 'dead letter')}{rest}"])


def description(topics: Topics, place: LetterPlace) -> str:
    """Return everything about one dead letter; binary data as hexadecimal digits."""
    record = _records_at(topics, [place])[0]
    rows = [["number", _number_of(record)], ["written", clock_time(record.at)]]
    rows.append(["key", "none" if record.key is None else _in_short(record.key)])
    rows += [[printable(name), _in_short(value)] for name, value in record.headers]
    size = "none" if record.value is None else number(len(record.value), "byte")
    body = "" if record.value is None else "\n\n" + _body(record.value)
    return aligned([*rows, ["payload", size]]) + body


def chosen(topics: Topics, places: Sequence[LetterPlace], wanted: Wanted) -> list[Record]:
    """Return the dead letters with some numbers, or without numbers all that match."""
    if places:
        return _records_at(topics, list(dict.fromkeys(places)))
    return [record for record, _ in letters(topics, wanted)]


def outgoing(records: Sequence[Record], *, skip: bool) -> tuple[list[Outgoing], int]:
    """Return the records to send, and how many dead letters cannot be sent.

    Parameters
    ----------
    skip
        Whether to skip letters without an input, or with a truncated one; otherwise they are an
        error.

    """
    found: list[Outgoing] = []
    n_left_out = 0
    for record in records:
        try:
            found.append(resend(record))
        except ValueError as error:
            if not skip:
                raise click.ClickException(printable(str(error))) from None
            n_left_out += 1
    return found, n_left_out


def by_topic(records: Sequence[Outgoing]) -> str:
    """Return how many records go to which topic, as text.

    Examples
    --------
    >>> by_topic([Outgoing(topic="events", key=b"ann", value=b"?")])
    '1 record: 1 to events'

    """
    counts = Counter(record.topic for record in records)
    each = ", ".join(f"{n} to {topic}" for topic, n in sorted(counts.items()))
    return f"{number(len(records), 'record')}: {each}"


def letters(topics: Topics, wanted: Wanted) -> Iterator[tuple[Record, Letter]]:
    """Yield the wanted dead letters with their records; what no worker has written is left out."""
    for record in everything(topics, "dead-letters", what="dead letters"):
        try:
            letter = letter_of(record)
        except ValueError:
            continue  # from another program; `show` still shows it
        if wanted.fits(record, letter):
            yield record, letter


def _records_at(topics: Topics, places: Sequence[LetterPlace]) -> list[Record]:
    """Return the records at some places, in order; the error names a missing one."""
    left = set(places)
    found: dict[LetterPlace, Record] = {}
    for record in everything(topics, "dead-letters", what="dead letters"):
        place = (record.partition, record.offset)
        if place in left:
            found[place] = record
            left.discard(place)
            if not left:
                break
    for partition, offset in left:
        raise click.ClickException(
            f"there is no dead letter {partition}:{offset}; `list` prints the numbers"
        )
    return [found[place] for place in places]


def _number_of(record: Record) -> str:
    return f"{record.partition}:{record.offset}"


def _source_of(letter: Letter) -> str:
    cause = letter.cause
    if cause is None:
        return "a timer"
    return f"{printable(letter.name)} {cause.partition}:{cause.offset}"


def _in_short(data: bytes) -> str:
    """Return bytes on one line: as text if printable, otherwise as hexadecimal digits."""
    text = _as_text(data)
    return data.hex(" ") if text is None or "\n" in text or "\t" in text else text


def _body(data: bytes) -> str:
    text = _as_text(data)
    if text is not None:
        return text
    lines = []
    for start in range(0, len(data), _PER_LINE):
        some = data[start : start + _PER_LINE]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in some)
        lines.append(f"{start:08x}  {some.hex(' '):{3 * _PER_LINE}} {shown}")
    return "\n".join(lines)


def _as_text(data: bytes) -> str | None:
    """Return bytes as text if they cannot control a terminal, otherwise None."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = text.replace("\t", " ").split("\n")
    return text if all(printable(line) == line for line in lines) else None
