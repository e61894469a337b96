"""The README shows what the pages show that are run."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.helpers.documents import Document

ROOT = Path(__file__).parents[1]
if not (ROOT / "README.md").is_file():
    pytest.skip("README.md is not beside the tests", allow_module_level=True)

README = Document(ROOT / "README.md")
TUTORIAL = Document(ROOT / "docs" / "tutorial.md")


def test_command_lines_are_those_that_were_promised():
    lines = [code.strip() for kind, code in README.blocks if kind == "bash"]
    install = "python3 -m venv .venv && .venv/bin/pip install"
    assert lines[:3] == [
        f"{install} . && .venv/bin/streamgp demo",
        f'{install} ".[page]" && .venv/bin/streamgp demo --page',
        f'{install} -e ".[test]" && .venv/bin/pytest -n auto',
    ]


def test_every_other_command_is_one_of_the_tutorial():
    """tests/test_tutorial.py runs them."""
    lines = README.shell_lines()
    assert len(lines) > 5
    assert [line for line in lines if line not in TUTORIAL.shell_lines()] == []


def test_every_output_is_one_that_is_tested():
    """By tests/test_tutorial.py, and, for Python, by tests/test_docs.py."""
    blocks = [code for kind, code in README.blocks if kind in ("text", "python")]
    tested = [*TUTORIAL.outputs(), *Document(ROOT / "docs" / "river.md").outputs()]
    assert len(blocks) > 3
    assert [code for code in blocks if code not in {part for pair in tested for part in pair}] == []


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=["README", "tutorial"])
def test_sentences_below_the_table_of_the_demo_say_what_it_says(page):
    [table] = [out for code, out in TUTORIAL.outputs() if code == "streamgp demo\n"]
    asked, challenges, precision, kept = re.findall(
        r"^skeptical GP .* +(\d+) +(\d+) +(\d+) % +(\d+) %", table, re.M
    )[0]
    believed, left = re.findall(r"^GP, never .* +(\d+) +0 +- +(\d+) %", table, re.M)[0]
    said = " ".join(page.text.split())
    assert f"challenges {challenges} answers, and about two in three" in said
    assert int(precision) == pytest.approx(200 / 3, abs=3)
    assert "asks for more labels, keeps seven times the share of wrong ones" in said
    assert int(believed) > int(asked)
    assert int(left) // int(kept) == 7
    if page is README:
        assert f"{int(asked) + int(challenges)} in all against {believed}" in said


def test_first_screen_says_what_the_table_of_the_demo_says():
    [table] = [out for code, out in TUTORIAL.outputs() if code == "streamgp demo\n"]
    row = r"^{} +([.0-9]+) .* +(\d+) +(\d+) +(?:\d+ %|-) +(\d+) %"
    [(right, asked, again, kept)] = re.findall(row.format("skeptical GP"), table, re.M)
    [(believing, _, _, left)] = re.findall(row.format("GP, never challenging"), table, re.M)
    first = " ".join(README.text.partition("## Try it")[0].split())
    assert f"asks about {asked} of 2000 readings, and a second time about {again}" in first
    assert f"predicts {100 * float(right):.0f} % right" in first
    assert f"and {kept} % of the labels that it keeps are wrong" in first
    assert f"{left} % are, and {100 * float(believing):.0f} % of the predictions" in first


def test_it_is_short():
    assert len(README.text.splitlines()) <= 200


def test_versions_are_those_of_the_package_metadata():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "River 0.26" in README.text
    assert "river>=0.26.1,<0.27" in project["dependencies"]
    extras = set(re.findall(r'"?\.\[([a-z,]+)\]"?', README.text))
    assert extras <= set(project["optional-dependencies"])
