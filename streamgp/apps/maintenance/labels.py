"""The labels collected so far as a table (`streamgp labels`), for other programs.

A row for each event whose label is in force, by `consensus`; `requests` tells when it occurred, as
long as it holds a question about it. Values are written as they are.

"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

import click

from connectors.tables.cells import is_integer_text
from connectors.topics import Record
from connectors.wire.codec import message_in
from connectors.wire.state_records import History, is_request, parts_of
from streamgp.apps.console import number, seen, tell
from streamgp.apps.deployment.deployment import everything, readable_topics, visit, with_waiting
from streamgp.common.printable import path_text, printable
from streamgp.common.private_files import write_private
from streamgp.interactive.consensus_log import by_event, in_force, labelled_by
from streamgp.interactive.messages import (
    Challenge,
    EventKey,
    LabelledExample,
    LabelRequest,
    event_time,
)

Format: TypeAlias = Literal["csv", "jsonl"]
Row: TypeAlias = dict[str, Any]

_COLUMNS = (
    "key", "event_id", "label", "first_label", "annotator", "origin", "challenged", "occurred_at",
    "learned_at",
)  # fmt: skip


def export_labels(
    config_file: Path,
    *,
    keys: Sequence[str],
    format: Format,
    out: Path | None,
    broker: str | None,
) -> None:
    """Print the labels of some keys, or of all, or write them to a file.

    Raises
    ------
    click.ClickException
        If topics are missing or cannot be read, or a key has no labels.
    OSError
        If the file cannot be written.

    """
    with visit(config_file, broker) as there, readable_topics(there.config):
        records = everything(there.topics, "requests", "consensus", what="reading")
        rows = rows_of(with_waiting(there, records), numbers=there.config.target == "number")
    unknown = set(keys) - {row["key"] for row in rows}
    if unknown:
        raise click.ClickException(printable(f"the topics hold no label of key {min(unknown)!r}"))
    rows = [row for row in rows if not keys or row["key"] in keys]
    if not rows:
        tell(
            "note: the topics hold no labels; if there were some, `streamgp check` says whether "
            "records were lost"
        )
    if format == "csv" and _may_change_type([row["label"] for row in rows]):
        tell(
            "note: who reads these labels from CSV may take them for another type: texts for "
            "numbers, or numbers and booleans for texts; --format jsonl tells them apart"
        )
    lines = csv_lines(rows) if format == "csv" else map(_json, rows)
    if out is not None:
        write_private(out, "".join(f"{line}\n" for line in lines).encode())
        click.echo(f"{number(len(rows), 'label')} written to {path_text(out)}")
    elif text := "\n".join(lines):
        click.echo(seen(text))


def rows_of(records: Iterable[Record], *, numbers: bool = False) -> list[Row]:
    """Return a row for each label in force, in the order learned.

    Parameters
    ----------
    records
        Those of `requests` and `consensus`; the topics may be in any relative order.
    numbers
        Whether labels are numbers, which may have a standard deviation.

    Raises
    ------
    HistoryError
        If a label cannot be read.

    """
    occurred_at: dict[EventKey, float] = {}
    # By partition and entity, event and revision. A key is forgotten, and an event loses its
    # label, as soon as a null requests it, even if no worker has read that yet.
    held: dict[tuple[int, str], dict[str, dict[int, Record]]] = {}
    for record in records:
        match record.topic, parts_of(record.key):
            case "requests", _:
                occurred_at.update(_time_in(record))
            case _, (entity,) if entity and is_request(record):
                held.pop((record.partition, entity), None)
            case _, (entity, event_id, text) if text.isdecimal():
                revision, log = int(text), held.setdefault((record.partition, entity), {})
                about = log.setdefault(event_id, {})
                if record.value is not None:
                    about[revision] = record
                elif is_request(record) and revision >= max(about, default=0):
                    about.clear()
                else:
                    about.pop(revision, None)
    stories: list[list[LabelledExample]] = []
    for (_, entity), log in held.items():
        history = History()
        for record in chain.from_iterable(about.values() for about in log.values()):
            history.take(record)
        stories += by_event(in_force(history.lines(entity))).values()
    stories.sort(key=lambda story: (story[-1].learned_at, story[-1].key or "", story[-1].sequence))
    return [
        _row(story, occurred_at.get((story[-1].key, story[-1].event_id)), numbers=numbers)
        for story in stories
        if story[-1].y is not None
    ]


def csv_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield rows as CSV, the header first; what is missing is an empty cell.

    Examples
    --------
    >>> for line in csv_lines([{"label": "hall, upper", "x.light": 0.5}, {"label": "den"}]):
    ...     print(line)
    key,event_id,label,first_label,annotator,origin,challenged,occurred_at,learned_at,x.light
    ,,"hall, upper",,,,,,,0.5
    ,,den,,,,,,,

    """
    names = dict.fromkeys([*_COLUMNS, *chain.from_iterable(rows)])
    for cells in (names, *([row.get(name) for name in names] for row in rows)):
        line = io.StringIO()
        # Before Python 3.13, a carriage return is quoted only if lines end with one.
        csv.writer(line, lineterminator="\r\n").writerow(cells)
        yield line.getvalue().removesuffix("\r\n")


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def _may_change_type(labels: Sequence[Any]) -> bool:
    """Whether labels are other than numbers alone, or texts alone that look like none."""
    are_numbers = all(type(y) in (int, float) for y in labels)
    are_words = all(isinstance(y, str) and not is_integer_text(y) for y in labels)
    return not (are_numbers or are_words)


def _time_in(record: Record) -> dict[EventKey, float]:
    """Return when the event of a question occurred, by key and event; empty for other records."""
    message = message_in(record.value)
    if not isinstance(message, LabelRequest | Challenge):
        return {}
    return {(message.key, message.event_id): event_time(message)}


def _row(story: Sequence[LabelledExample], occurred_at: float | None, *, numbers: bool) -> Row:
    """Return the row of an event, from the lines about it that are in force."""
    first, line = story[0], story[-1]
    return {
        "key": line.key,
        "event_id": line.event_id,
        "label": line.y,
        "first_label": first.said,
        "annotator": labelled_by(story),
        "origin": line.origin,
        "challenged": any(each.challenged or each.origin == "upheld" for each in story),
        "occurred_at": occurred_at,
        "learned_at": line.learned_at,
        **({"std": line.std} if numbers else {}),
        **{f"x.{name}": value for name, value in line.x.items()},
    }
