"""Every picture of the documentation can be drawn again by one script."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "pictures.py"
if not SCRIPT.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

PICTURES = SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def test_every_picture_is_drawn_by_the_script_or_by_a_benchmark_that_it_names():
    there = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert {*PICTURES.PICTURES, *PICTURES.MEASURED} == there
    assert not PICTURES.PICTURES.keys() & PICTURES.MEASURED.keys()


def test_every_picture_is_shown():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r'images/([\w.-]+)[")]', text))
    assert shown == {*PICTURES.PICTURES, *PICTURES.MEASURED}


@pytest.mark.parametrize("benchmark", sorted(set(PICTURES.MEASURED.values())))
def test_benchmark_of_a_picture_draws_pictures(benchmark):
    [code] = [
        path.read_text(encoding="utf-8")
        for folder in ("papers", "comparison")
        for path in (ROOT / "benchmarks" / folder).glob(f"{benchmark}/benchmark.py")
    ]
    assert "run_with_pictures" in code


def test_a_picture_that_does_not_exist_is_refused(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["pictures.py", "--to", str(tmp_path), "pag.gif"])
    with pytest.raises(SystemExit):
        PICTURES.main()
    assert "'pag.gif' is none of boosting.png, " in capsys.readouterr().err


def test_a_picture_of_a_benchmark_is_told_by_its_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["pictures.py", "--to", str(tmp_path), "pool.png"])
    PICTURES.main()
    assert "python -m benchmarks.pool --data DIR --pictures" in capsys.readouterr().out
