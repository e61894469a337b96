import ast
import doctest
import re
import runpy
import textwrap
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
if not EXAMPLES.is_dir():
    pytest.skip("examples/ is not beside the tests", allow_module_level=True)

DRAWINGS = ["draw_skeptical_learning.py", "draw_temporal_filter.py", "draw_windows.py"]
PRINTING = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in DRAWINGS)


def promised(path: Path) -> str:
    """Return what the docstring says that the example prints."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring is not None
    _, _, output = docstring.partition("Prints:\n\n")
    return textwrap.dedent(output) + "\n"


@pytest.mark.parametrize("name", PRINTING)
def test_example_prints_what_its_docstring_says(name, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    expected = promised(EXAMPLES / name)
    assert expected.strip()
    assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    # Each plays whole streams before it draws.
    [
        pytest.param(name, marks=pytest.mark.nightly if i else ())
        for i, name in enumerate(reversed(DRAWINGS))
    ],
)
def test_picture_of_the_docs_can_be_drawn(name, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"
    monkeypatch.setattr("sys.argv", [name, str(path)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_index_lists_every_example_and_lines_that_it_prints():
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\S+)\]\((\S+)\) \| .* \|(?: `(.*)`)? \|$", index, re.M)
    assert sorted(name for name, *_ in rows) == sorted([*PRINTING, *DRAWINGS])
    for name, target, line in rows:
        assert target == name
        if line:
            assert line in promised(EXAMPLES / name), name


def test_gallery_is_as_its_script_writes_it():
    script = EXAMPLES.parent / "docs" / "gallery.py"
    if not script.exists():
        pytest.skip("docs/ is not beside the tests")
    written = script.with_suffix(".md").read_text(encoding="utf-8")
    assert written == runpy.run_path(str(script))["page"](), "run python docs/gallery.py"
