"""The notebooks are run: what they show is what their cells print."""

import contextlib
import io
import json
import re
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
if not EXAMPLES.is_dir():
    pytest.skip("examples/ is not beside the tests", allow_module_level=True)

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def shown(cell: dict) -> str:
    """Return what a notebook says that a cell has printed."""
    assert all(output["name"] == "stdout" for output in cell["outputs"])
    return "".join(line for output in cell["outputs"] for line in output["text"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_what_the_notebook_shows(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names = {"__name__": "__main__"}
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                code = compile("".join(cell["source"]), f"{path.name} {cell['id']}", "exec")
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(code, names)
                assert printed.getvalue() == shown(cell), cell["id"]
    finally:
        for value in names.values():
            if isinstance(value, subprocess.Popen):
                value.kill()
                value.wait()


def test_index_lists_every_notebook():
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\* \[(\S+\.ipynb)\]\(\1\)", index, re.M)) == [
        path.name for path in NOTEBOOKS
    ]
    assert NOTEBOOKS
