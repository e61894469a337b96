"""List of the benchmarks: name and first line of each, by folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("papers", "performance", "comparison")
_ROOT = Path(__file__).parent


def benchmarks(folder: str) -> Iterator[tuple[str, Path]]:
    """Yield the names of a folder's benchmarks, each with its main file."""
    for command in sorted(_ROOT.glob("[a-z]*.py")):
        one, several = (
            _ROOT / folder / f"{command.stem}{rest}" for rest in (".py", "/benchmark.py")
        )
        if one.is_file() or several.is_file():
            yield command.stem, one if one.is_file() else several


def main() -> None:
    """Print the list; nothing is imported, since some need libraries that may be missing."""
    for folder in FOLDERS:
        print(f"{folder}:")
        for name, path in benchmarks(folder):
            about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            print(f"  {name:16} {about.partition(chr(10))[0]}")
    print("\nRun one with: python -m benchmarks.NAME [--data DIR] [--seed N] [--quick] [--check]")


if __name__ == "__main__":
    main()
