"""Figures of the layout: its size, how its modules depend on each other, and the path of an event.

Run it with this checkout installed: `python .ci/figures.py`. It ends with status 1 if a figure is
above its limit. Sizes have none: a module is split or merged by what it is about, not by a count.

Definitions: a *file* is a module of the two packages, `__init__` included. An *importer* of a
module is any other module of the packages that imports it, anywhere in the file, or names it in a
table of lazily loaded names. The *files that an event passes* are those with code that runs between
the call that fetches an event from topics and the one that hands its prediction to them, in a
worker that has seen events of this learner before. A *wrapping* is an object created on this path
that holds the record or its contents, from the fetched bytes to the message given to the loop,
inclusive.

"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("streamgp", "connectors")
LIMITS = {
    "cli, % of the lines of streamgp": 5.0,
    "wrappings of one record": 2,
    "import cycles": 0,
}


def main() -> int:
    """Print every figure, and the limits of some."""
    modules = dict(_modules())
    imports = {name: _imported(path, modules) for name, path in modules.items()}
    passed, wrappings = _way_of_an_event()
    if not passed:
        raise SystemExit(f"no file of {ROOT} has run: another checkout is installed")
    lines = {name: _n_lines([path]) for name, path in modules.items()}
    own = sum(n for name, n in lines.items() if name.split(".")[0] == "streamgp")
    in_cli = sum(n for name, n in lines.items() if name.startswith("streamgp.cli"))
    single = sorted(_with_one_importer(imports))
    circles = _circles(imports)
    found: dict[str, float] = {
        "files": len(modules),
        "lines": sum(lines.values()),
        "cli, % of the lines of streamgp": 100.0 * in_cli / own,
        "modules with one importer": len(single),
        "files that an event passes": len(passed),
        "wrappings of one record": len(wrappings),
        "import cycles": len(circles),
    }
    for name, value in found.items():
        limit = f"   limit {LIMITS[name]:g}" if name in LIMITS else ""
        print(f"{name:34} {value:8.6g}{limit}")
    print("\nan event passes:", *passed, sep="\n  ")
    print("wrapped as:", ", ".join(wrappings))
    print("one importer:", ", ".join(single))
    for circle in circles:
        print("circle:", ", ".join(circle))
    return int(any(found[name] > limit for name, limit in LIMITS.items()))


def _modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _n_lines(paths: Iterable[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def _imported(path: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules that a file imports, also within functions, but not only for types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    found = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif path.name == "__init__.py" and isinstance(node, ast.Constant):
            found.add(str(node.value))  # a module that is loaded when one of its names is used
    return found & modules.keys() - set(PACKAGES)


def _with_one_importer(imports: dict[str, set[str]]) -> Iterator[str]:
    for name in imports:
        path = Path(*name.split("."))
        if not (ROOT / path).is_dir() and name != "streamgp.__main__":
            n = sum(name in others for other, others in imports.items() if other != name)
            if n == 1:
                yield name


def _circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the import cycles, each as its modules (Tarjan's components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in imports[name] - {name}:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                found.append(sorted(component))

    for name in imports:
        if name not in index:
            visit(name)
    return found


def _way_of_an_event() -> tuple[list[str], list[str]]:
    """Return the files that an event passes in a worker, and the wrappings of its record."""
    from connectors.memory import MemoryTopics
    from connectors.topics import Outgoing
    from connectors.wire.codec import encode
    from connectors.worker.settings import LoopSettings, WorkerSettings
    from connectors.worker.worker import Worker
    from streamgp import isgp
    from streamgp.interactive.messages import Event

    topics = MemoryTopics()
    writer = topics.writer("figures")

    def write(number: int, y: str | None) -> None:
        event = Event(event_id=f"e{number}", key="ann", x={"a": 1.0}, y=y, occurred_at=0.0)
        writer.send(Outgoing(topic="events", key=b"ann", value=encode(event)))
        writer.flush()

    def lag() -> bool:
        return any(topics.lags("figures").values())

    worker = Worker(
        topics,
        LoopSettings(model=isgp(seed=1)),
        WorkerSettings(group="figures", instance="figures"),
        clock=lambda: 0.0,
    )
    trace = _Trace()
    steps = iter(range(4))

    def should_stop() -> bool:
        if lag():
            return False
        step = next(steps)
        trace.stop()
        if step < 3:
            write(step, "hall" if step < 2 else None)
            if step == 2:
                trace.start()
        return step == 3

    worker.run(should_stop)
    return trace.files(), trace.wrappings()


class _Trace:
    """Files with code that runs between a poll and the commit, and objects created there."""

    # _wrappings  by identity; the objects are kept, so that no other object gets the same one
    def __init__(self) -> None:
        self._files: dict[str, None] = {}
        self._is_on = False
        self._wrappings: dict[int, Any] = {}

    def start(self) -> None:
        sys.setprofile(self._heed)

    def stop(self) -> None:
        sys.setprofile(None)

    def files(self) -> list[str]:
        return list(self._files)

    def wrappings(self) -> list[str]:
        """Return the final classes of the objects: decoding sets that of a message last."""
        return sorted({str(type(value)) for value in self._wrappings.values()})

    def _heed(self, frame: FrameType, event: str, _arg: Any) -> None:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if event == "call" and name == "poll":
            self._is_on = True
        if not self._is_on or not path.startswith(str(ROOT)):
            return
        short = str(Path(path).relative_to(ROOT))
        if short.split("/")[0] in PACKAGES:
            self._files.setdefault(short)
            if event in ("call", "return"):
                for value in frame.f_locals.values():
                    self._look(value)
        if event == "call" and name == "commit":
            self._is_on = False

    def _look(self, value: Any) -> None:
        if type(value).__module__.split(".")[0] not in PACKAGES:
            return
        # Output is no wrapping: predictions have no features, and their records another topic.
        is_event = getattr(value, "event_id", None) == "e2" and hasattr(value, "occurred_at")
        data = getattr(value, "value", None) if getattr(value, "topic", "") == "events" else None
        if is_event or (isinstance(data, bytes) and b'"e2"' in data):
            self._wrappings[id(value)] = value


if __name__ == "__main__":
    sys.exit(main())
