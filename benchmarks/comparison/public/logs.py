"""The public logs: which they are, and their events.

`logs.tsv` has a line for each: the repository on github.com, the file in it, the column of the
label, whether the file begins with a header, and the first twelve digits of its SHA-256.

"""

from __future__ import annotations

import csv
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from connectors.tables.log_source import LogSource
from streamgp.interactive import Event

MANIFEST = Path(__file__).with_name("logs.tsv")
_N_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicLog:
    """A file of a public repository.

    Parameters
    ----------
    repository
        `OWNER/NAME` on github.com.
    file
        Path of the file in the repository.
    label
        Name of the label's column. The columns of a file without a header are c1, c2, ...
    header
        `yes` or `no`: whether the first row names the columns.
    sha256
        First digits of the file's digest when it was measured.

    """

    repository: str
    file: str
    label: str
    header: str
    sha256: str

    @property
    def name(self) -> str:
        """Repository and file, which no two logs share."""
        return f"{self.repository}/{self.file}"


def manifest() -> list[PublicLog]:
    """Return all logs."""
    with MANIFEST.open(encoding="utf-8", newline="") as lines:
        return [PublicLog(**row) for row in csv.DictReader(lines, delimiter="\t")]


def clone_commands(logs: Sequence[PublicLog]) -> Iterator[str]:
    """Yield the commands that fetch the repositories of the logs into the current folder."""
    for name in dict.fromkeys(log.repository for log in logs):
        yield f"git clone --depth 1 https://github.com/{name} {name}"


def available(logs: Sequence[PublicLog], folder: Path | None) -> tuple[list[PublicLog], list[str]]:
    """Return the logs that are in a folder as they were measured, and what is said of the others.

    Parameters
    ----------
    folder
        Folder with the repositories, each in `OWNER/NAME`; None has none.

    """
    found: list[PublicLog] = []
    missing: Counter[str] = Counter()
    changed: list[str] = []
    for log in logs:
        path = None if folder is None else folder / log.name
        if path is None or not path.is_file():
            missing[log.repository] += 1
        elif hashlib.sha256(path.read_bytes()).hexdigest()[:_N_DIGITS] != log.sha256:
            changed.append(log.name)
        else:
            found.append(log)
    said = []
    if missing:
        said.append(f"{missing.total()} logs that are not there, of {', '.join(missing)}")
    if changed:
        said.append(f"{len(changed)} logs that have changed since: {', '.join(changed)}")
    return found, said


def events_of(log: PublicLog, folder: Path, n: int) -> list[Event]:
    """Read the events of the first `n` rows of a log, with their labels as text or None."""
    path = folder / log.name
    if log.header == "yes":
        return list(_events(path, log.label, n))
    with tempfile.TemporaryDirectory() as directory:
        named = Path(directory, "named.csv")
        with named.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(_named(path))
        return list(_events(named, log.label, n))


def _events(path: Path, label: str, n: int) -> Iterator[Event]:
    with closing(LogSource(path, label=label, limit=n)) as source:
        while not source.exhausted:
            for received in source.poll():
                if isinstance(received.message, Event):  # others are rows that cannot be used
                    yield received.message


def _named(path: Path) -> Iterator[list[str]]:
    """Yield names for the columns of a file without a header, then its rows.

    Cells are separated by commas or spaces; rows of another length are left out.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    separator = "," if "," in lines[0] else " "
    rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    yield [f"c{i}" for i in range(1, len(rows[0]) + 1)]
    yield from (row for row in rows if len(row) == len(rows[0]))
