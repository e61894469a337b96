"""Parts shared by all benchmarks: arguments, processes, BLAS threads, tables, JSON, exit status.

A benchmark is a function from `Options` to an `Outcome`; what it measures is up to it.

"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any, Protocol, TypeAlias, TypeVar

from threadpoolctl import threadpool_limits

from streamgp.__main__ import fix_hashes
from streamgp.common.environment import environment

# --- processes and BLAS threads

J = TypeVar("J")
R = TypeVar("R")


def processes(n: int | None = None) -> AbstractContextManager[ProcessPoolExecutor | None]:
    """Return a pool of processes, one for each core, or None where one process is enough."""
    n = os.cpu_count() or 1 if n is None else n
    if n == 1:
        return nullcontext()
    # Fresh processes: a fork of one that has loaded BLAS may hang.
    return ProcessPoolExecutor(n, mp_context=get_context("spawn"))


def in_processes(function: Callable[[J], R], jobs: Sequence[J], n_workers: int) -> Iterator[R]:
    """Yield a function's result for each job, as soon as this and all earlier jobs are done.

    Parameters
    ----------
    function
        Function to call; fresh processes import it by its name.
    jobs
        Its arguments, which are pickled.
    n_workers
        Number of processes; with 1, all jobs run in this one.

    """
    with processes(n_workers) as pool:
        yield from (pool.map if pool else map)(function, jobs)


@contextlib.contextmanager
def one_thread() -> Iterator[str]:
    """Limit BLAS to one thread, and say which BLAS it is."""
    with threadpool_limits(1, user_api="blas"):
        here = environment()
        yield f"{here['blas']}, kernel {here['blas_kernel']}"


def kernels() -> str:
    """Return which processors the kernels that BLAS has picked are made for, e.g. `"SkylakeX"`.

    The variable `OPENBLAS_CORETYPE` picks others.
    """
    return environment()["blas_kernel"]


# --- a benchmark

VERSION = 1
_PACKAGES = (
    "streamgp",
    "river",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "scikit-activeml",
    "cleanlab",
    "crowd-kit",
    "pyarrow",
)

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the command line.

    Parameters
    ----------
    data
        Folder of the data sets, or None.
    seed
        Seed of the first repetition; the others follow from it.
    quick
        Whether to measure less.

    """

    data: Path | None = None
    seed: int = 1
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A measured value with its limit, and on which side of the limit it has to be."""

    name: str
    value: float | None
    limit: float
    ok: bool


def at_least(name: str, value: float | None, limit: float) -> Acceptance:
    """Accept values that reach the limit; None (nothing was measured) is not accepted."""
    ok = value is not None and value >= limit
    return Acceptance(name=f"{name} (at least)", value=value, limit=limit, ok=ok)


def at_most(name: str, value: float | None, limit: float) -> Acceptance:
    """Accept values that do not exceed the limit; None (nothing was measured) is not accepted."""
    ok = value is not None and value <= limit
    return Acceptance(name=f"{name} (at most)", value=value, limit=limit, ok=ok)


def widened(
    judge: Callable[[str, float | None, float], Acceptance],
    name: str,
    values: Sequence[float],
    limit: float,
    slack: float,
) -> Acceptance:
    """Compare a mean with a limit that is widened by `slack` standard errors of the mean.

    `judge` is `at_least` or `at_most`.
    """
    if slack:
        name += f"; {limit:g} widened by {slack:g} standard errors"
    margin = slack * standard_error(values)
    return judge(name, mean(values), limit + (margin if judge is at_most else -margin))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Results of a benchmark.

    Parameters
    ----------
    rows
        Flat dictionaries. Rows with the same keys are shown as one table.
    acceptance
        Values with their limits.
    skipped
        What was left out, and why.
    notes
        Sentences that explain the tables.

    """

    rows: list[Row]
    acceptance: list[Acceptance] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Drawing(Protocol):
    """A benchmark that writes pictures of its results into a folder, if it is given one."""

    def __call__(self, options: Options, *, pictures: Path | None) -> Outcome:
        """Measure, and draw."""


def run(
    name: str,
    measure: Callable[[Options], Outcome],
    *,
    about: str | None,
    argv: Sequence[str] | None = None,
) -> int:
    """Parse the arguments, measure, print and write the results; return the exit status.

    Parameters
    ----------
    name
        Name of the benchmark.
    measure
        The function that measures.
    about
        Description for `--help`.
    argv
        Arguments; None for those of the process.

    """
    arguments = _parser(name, about).parse_args(argv)
    if argv is None:
        fix_hashes()
    options = Options(data=arguments.data, seed=arguments.seed, quick=arguments.quick)
    outcome = measure(options)
    print(_shown(outcome), end="")
    if arguments.json is not None:
        text = json.dumps(_document(name, options, outcome), indent=1, allow_nan=False)
        arguments.json.write_text(text + "\n")
    missed = not all(a.ok for a in outcome.acceptance)
    return int(arguments.check and missed)


def run_with_pictures(
    name: str,
    measure: Drawing,
    *,
    about: str | None,
    argv: Sequence[str] | None = None,
) -> int:
    """Like `run`, for a benchmark that also takes `--pictures DIR`."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--pictures", type=Path)
    known, rest = own.parse_known_args(argv)
    if argv is None:
        fix_hashes()
    pictures: Path | None = known.pictures
    return run(name, lambda options: measure(options, pictures=pictures), about=about, argv=rest)


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; 0 for a single value."""
    n = len(values)
    if n < 2:
        return 0.0
    mean = sum(values) / n
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def differences(these: Sequence[float], those: Sequence[float]) -> list[float]:
    """Return the differences of values that belong together, such as those of the same seed."""
    return [a - b for a, b in zip(these, those, strict=True)]


def save_picture(figure: Any, path: Path) -> None:
    """Write a picture with 128 colours: a third of the bytes, with no visible difference."""
    from PIL import Image  # comes with matplotlib

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(128).save(path, optimize=True)


def progress(what: str) -> None:
    """Say on standard error what is being measured, as it may take minutes."""
    print(f"... {what}", file=sys.stderr, flush=True)


def _parser(name: str, about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="first seed (default 1)")
    parser.add_argument("--quick", action="store_true", help="measure less, within a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    return parser


def _document(name: str, options: Options, outcome: Outcome) -> dict[str, Any]:
    return {
        "benchmark": name,
        "version": VERSION,
        "quick": options.quick,
        "seed": options.seed,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        "versions": _versions(),
        "rows": outcome.rows,
        "acceptance": [asdict(a) for a in outcome.acceptance],
    }


def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
    }


def processor() -> str:
    """Return the processor's own name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _versions() -> dict[str, str]:
    import streamgp

    versions = {"python": platform.python_version(), "streamgp": streamgp.__version__}
    for package in _PACKAGES[1:]:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _shown(outcome: Outcome) -> str:
    parts = [_table(rows) for rows in _by_keys(outcome.rows)]
    if outcome.acceptance:
        parts.append(_table([_accepted(a) for a in outcome.acceptance]))
    sentences = [*outcome.notes, *(f"skipped: {what}" for what in outcome.skipped)]
    return "\n".join(parts) + "".join(f"\n{sentence}" for sentence in sentences) + "\n"


def _accepted(a: Acceptance) -> Row:
    verdict = "ok" if a.ok else "MISSED"
    return {"acceptance": a.name, "value": a.value, "limit": a.limit, "": verdict}


def _by_keys(rows: Iterable[Row]) -> list[list[Row]]:
    tables: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        tables.setdefault(tuple(row), []).append(row)
    return list(tables.values())


def _table(rows: Sequence[Row]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in rows[0]:
        numeric = not any(isinstance(row[name], str) for row in rows)
        # Titles are broken at spaces: narrow columns, whole words.
        title = Text(name.replace("_", " ").replace(" ", "\n") if numeric else name)
        grid.add_column(
            title, justify="right" if numeric else "left", no_wrap=True, vertical="bottom"
        )
    for row in rows:
        grid.add_row(*(Text(_cell(value)) for value in row.values()))
    console = Console(width=200, color_system=None, emoji=False, file=sys.stdout)
    with console.capture() as capture:
        console.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
