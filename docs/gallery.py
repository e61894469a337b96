"""Writes the page beside this file, `gallery.md`: `python docs/gallery.py`.

Purpose and output come from the docstrings of the examples, which tests run, and from the first
cell of each notebook. A test holds that the page is as this writes it.

"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
HEAD = """# Gallery of examples

What each program in [examples](../examples/README.md) is for, and what it prints. Written by
`python docs/gallery.py` from the examples themselves, which are tested.
"""


def page() -> str:
    """Return the page: notebooks first, then the programs, in the order of their index."""
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"^(?:\||\*) \[(\S+)\]\(\1\)", index, re.M)
    parts = [_notebook(name) if name.endswith(".ipynb") else _program(name) for name in names]
    return "\n".join([HEAD, *parts])


def _notebook(name: str) -> str:
    cells = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))["cells"]
    title, _, purpose = "".join(cells[0]["source"]).partition("\n\n")
    return _section(name, title.removeprefix("# "), purpose, "")


def _program(name: str) -> str:
    """Return the section of a program, from its docstring."""
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    assert docstring is not None, name
    text, _, output = docstring.partition("\n\nPrints:\n\n")
    title, _, purpose = text.partition("\n\n")
    return _section(name, title.removesuffix("."), purpose, output)


def _section(name: str, title: str, purpose: str, output: str) -> str:
    picture = re.search(r"the picture of docs/(\S+)\.md", title)
    parts = [f"## {title}", purpose]
    if output:
        lines = [line.removeprefix("    ") for line in output.splitlines()]
        parts.append("\n".join(["```text", *lines, "```"]))
    if picture:
        parts.append(f"![{title}](images/{picture[1]}.png)")
    parts.append(f"[{name}](../examples/{name})")
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
