"""Tables keep their words whole; pictures are written where they are told to."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from streamgp.report.charts import Curve, draw_curves
from streamgp.report.tables import Row, amount, table


def row(name: str = "skeptical GP", **changes: object) -> Row:
    values: dict[str, object] = {
        "n_events": 2000,
        "accuracy": 0.9484,
        "macro_f1": 0.9471,
        "n_asked": 179,
        "n_challenges": 52,
        "challenge_precision": 0.596,
        "wrong_kept": 0.07,
        "microseconds": 81.4,
    }
    return Row(name=name, **{**values, **changes})  # type: ignore[arg-type]


def test_table_fits_80_columns_and_cuts_no_word() -> None:
    names = ["skeptical GP", "skeptical nearest neighbours", "GP, always challenging"]
    big = row("big", n_asked=123456, n_challenges=1234567, microseconds=1234567.0)
    text = table([*map(row, names), big])
    assert max(map(cell_len, text.splitlines())) <= 80
    words = set(text.split())
    for word in " ".join(names).split():
        assert word in words
    assert {"learner", "accuracy", "macro", "F1", "labels", "asked", "challenges"} <= words
    assert {"challenge", "precision"} <= words
    assert {"wrong", "kept", "µs", "per", "event", "123456", "1234567", "60", "7", "%"} <= words
    assert "…" not in text


@pytest.mark.parametrize("key", ["0123456789abcdef" * 5, "\u75c5\u9662" * 10])
def test_long_key_widens_the_table_and_is_not_cut(key: str) -> None:
    assert key in table([row(key)], first="user").split()


def test_unknown_numbers_are_dashes() -> None:
    text = table([row(accuracy=None, macro_f1=None, challenge_precision=None, wrong_kept=None)])
    assert text.splitlines()[-1].split() == [
        "skeptical",
        "GP",
        "-",
        "-",
        "179",
        "52",
        "-",
        "-",
        "81",
    ]


def test_names_are_never_read_as_markup() -> None:
    assert "[bold]x[/bold]" in table([row("[bold]x[/bold]")])


def test_table_has_no_control_codes() -> None:
    assert "\x1b" not in table([row()])


CURVES = [
    Curve(name=name, n_events=[1, 2, 3], accuracy=[0.0, 0.5, 0.6], questions=[1, 2, 2])
    for name in ("one", "two")
]


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_picture_is_written(tmp_path: Path, ending: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"curves.{ending}"
    draw_curves(CURVES, path, title="Rooms")
    assert path.read_bytes().startswith(start)


def test_a_picture_without_an_ending_is_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_curves(CURVES, tmp_path / "curves", title="Rooms")
    assert (tmp_path / "curves").read_bytes().startswith(b"\x89PNG")


def test_picture_that_cannot_be_written_raises(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(FileNotFoundError):
        draw_curves(CURVES, tmp_path / "missing" / "curves.png", title="Rooms")


def test_half_a_picture_is_not_left_behind(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    resource = pytest.importorskip("resource")
    path = tmp_path / "curves.png"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # as on a disk that is full
        with pytest.raises(OSError, match="File too large"):
            draw_curves(CURVES, path, title="Rooms")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not path.exists()


def test_missing_matplotlib_is_a_missing_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError):
        draw_curves(CURVES, tmp_path / "curves.png", title="Rooms")


def test_a_huge_nmse_leaves_room_for_the_names() -> None:
    rows = [
        Row(name="skeptical GP", n_events=9, accuracy=None, macro_f1=None, mae=mae, nmse=nmse)
        for mae, nmse in ((0.5, 999.9), (123.4, 7.747e20), (1e-9, 1e7))
    ]
    found = [line.split() for line in table(rows, numbers=True).splitlines()[-3:]]
    assert [words[:4] for words in found] == [
        ["skeptical", "GP", "0.500", "999.900"],
        ["skeptical", "GP", "123", "7.75e+20"],
        ["skeptical", "GP", "1.00e-09", "1.00e+07"],
    ]


@pytest.mark.parametrize(
    ("mae", "words"),
    [(999.4, "999"), (999.6, "1000"), (7618.0, "7618"), (9999999.0, "9999999"), (1e7, "1.00e+07")],
)
def test_an_error_in_thousands_is_written_in_whole_units(mae: float, words: str) -> None:
    row = Row(name="gp", n_events=9, accuracy=None, macro_f1=None, mae=mae, nmse=0.5)
    assert table([row], numbers=True).splitlines()[-1].split()[1] == words
    assert amount(mae) == words.replace("1.00e", "1e")
