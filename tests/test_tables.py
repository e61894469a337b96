"""Tables of measurements in pages are those of the files that benchmarks wrote."""

import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "tables"
if not SCRIPT.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

TABLES = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
WRITER = SimpleNamespace(**runpy.run_path(str(SCRIPT / "table.py")))
FILES = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


@pytest.mark.parametrize("path", list(TABLES.pages()), ids=lambda path: path.name)
def test_page_is_as_the_script_writes_it(path):
    text = path.read_text(encoding="utf-8")
    assert text == TABLES.written(text), "run python docs/tables"


@pytest.mark.parametrize(("path", "words"), list(TABLES.sentences()))
def test_sentence_has_the_numbers_of_the_file(path, words):
    assert words in " ".join(path.read_text(encoding="utf-8").split())


def test_every_table_is_on_one_page_and_every_file_is_shown():
    pages = "".join(path.read_text(encoding="utf-8") for path in TABLES.pages())
    assert sorted(re.findall(r"<!-- table (\S+) -->", pages)) == sorted(TABLES.TABLES)
    assert pages.count("<!-- end of table -->") == len(TABLES.TABLES)
    measured = {table.measured for table in TABLES.TABLES.values()}
    assert [path.stem for path in FILES] == sorted(measured)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_is_of_a_whole_run_of_its_benchmark(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["benchmark"] == path.stem
    assert found["quick"] is False
    assert (ROOT / "benchmarks" / f"{path.stem}.py").is_file()


def test_a_number_that_is_not_that_of_the_file_is_replaced():
    block = f"<!-- table wifi -->\n{TABLES.shown(TABLES.TABLES['wifi'])}<!-- end of table -->\n"
    row = next(r for r in TABLES.document("wifi")["rows"] if r["learner"] == "skeptical GP")
    accuracy = f"| skeptical GP | .{round(1000 * row['accuracy'])} ±"
    assert accuracy in block
    assert TABLES.written(block.replace(accuracy, "| skeptical GP | .999 ±")) == block


def test_a_column_may_look_up_its_number_in_other_rows_than_the_next_one():
    columns = {
        "of the one": ({"learner": "skeptical GP"}, "{labels_asked:.0f}"),
        "of the other": ({"learner": "GP, never challenging"}, "{labels_asked:.0f}"),
    }
    table = TABLES.Table(measured="wifi", rows={"labels": {}}, columns=columns, head="n")
    head, _, row, *_ = TABLES.shown(table).splitlines()
    asked = {row["learner"]: row["labels_asked"] for row in TABLES.document("wifi")["rows"]}
    assert head == "| n | of the one | of the other |"
    one, other = asked["skeptical GP"], asked["GP, never challenging"]
    assert row == f"| labels | {one:.0f} | {other:.0f} |"


def test_a_title_in_braces_stands_for_all_that_the_file_has():
    columns = {"{learner}": ({}, "{labels_asked:.0f}")}
    table = TABLES.Table(measured="wifi", rows={"labels": {}}, columns=columns)
    turned = TABLES.Table(measured="wifi", rows={"{learner}": {}}, columns={"n": "{labels_asked}"})
    names = [row["learner"] for row in TABLES.document("wifi")["rows"]]
    assert TABLES.shown(table).splitlines()[0] == f"| | {' | '.join(names)} |"
    assert [line.split(" | ")[0][2:] for line in TABLES.shown(turned).splitlines()[2:7]] == names


def test_a_value_of_the_script_is_put_into_texts_and_is_not_looked_for_in_the_file():
    rows = {name: {"learner": "skeptical GP", "$what": name} for name in ("accuracy", "macro_f1")}
    table = TABLES.Table(measured="wifi", rows=rows, columns={"": "{$what:.1p}"})
    row = next(r for r in TABLES.document("wifi")["rows"] if r["learner"] == "skeptical GP")
    lines = TABLES.shown(table).splitlines()[2:4]
    assert lines == [f"| {name} | {100 * row[name]:.1f} |" for name in rows]


def test_rows_may_have_several_titles_and_an_order():
    table = TABLES.Table(
        measured="wifi",
        head="who | what",
        rows={"{learner} | accuracy": {}},
        columns={"in %": "{accuracy:.1p}"},
        best="in %",
    )
    head, ruled, *rest = TABLES.shown(table).splitlines()
    assert (head, ruled) == ("| who | what | in % |", "| :-- | :-- | --: |")
    cells = [line.split(" | ") for line in rest[:5]]
    assert [what for _, what, _ in cells] == ["accuracy"] * 5
    shown = [float(cell.rstrip(" |")) for *_, cell in cells]
    assert shown == sorted(shown, reverse=True)
    assert len(set(shown)) > 1


@pytest.mark.parametrize(("where", "n"), [({"learner": "no such learner"}, 0), ({}, 5)])
def test_a_number_that_no_row_or_several_have_is_an_error(where, n):
    table = TABLES.Table(measured="wifi", rows={"labels": where}, columns={"": "{labels_asked}"})
    with pytest.raises(ValueError, match=f"^expected one row of the file with .*, got {n}$"):
        TABLES.shown(table)


@pytest.mark.parametrize(
    ("value", "how", "shown"),
    [
        (0.951, ".3f", ".951"),
        (-0.0004, ".3f", "0.000"),
        (0.0, "+.1f", "0.0"),
        (-1.2, "+.2f", "−1.20"),
        (0.83, "+.2f", "+.83"),
        (0.203, ".1%", "20.3 %"),
        (3000, "", "3000"),
        (1509, ",", "1509"),
        (13833.4, ",.0f", "13 833"),
        (None, ".1f", "-"),
        ("abrupt", "", "abrupt"),
        (0.0548, ".1p", "5.5"),
        (92.9, ".3s", ".929"),
        (0.000514, "~2p", ".051"),
        (0.0548, "~2p", "5.5"),
        (22.66, "~1", "22.7"),
        (0.07, "~1", ".07"),
        (0.0, "~2", "0.0"),
    ],
)
def test_values_are_written_as_the_pages_have_them(value, how, shown):
    assert format(WRITER.Value(value), how) == shown


def test_the_list_names_page_file_and_date_of_a_table(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tables", "--list"])
    TABLES.main()
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if "table wifi" in line)
    assert re.fullmatch(r"docs/measured\.md:\d+ .* benchmarks/results/wifi\.json, .*20\d\d.*", line)
    assert any("benchmarks.boosting_speed" in line and "typed" in line for line in lines)
