"""Charts put every point where it belongs and say in words what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.report.charts import HEIGHT, WIDTH, Line, chart, ticks
from streamgp.report.html import environment, percent
from tests.report.html_check import Tree


def shown(lines: Sequence[Line], **options: Any) -> str:
    """Return the HTML of a chart."""
    return str(environment().get_template("chart.html").module.chart(chart(lines, **options)))  # type: ignore[attr-defined]


def drawn(html: str) -> list[list[tuple[float, float]]]:
    return [
        [tuple(map(float, pair.split(","))) for pair in points.split()]  # type: ignore[misc]
        for points in re.findall(r'<polyline points="([^"]*)"', html)
    ]


def test_points_are_placed_from_the_lower_left_to_the_upper_right() -> None:
    html = shown(
        [Line(name="n", x=[0, 5, 10], y=[0, 25, 100])], title="T", of="events", show=str, top=100
    )
    assert drawn(html) == [[(0, HEIGHT), (WIDTH / 2, HEIGHT * 0.75), (WIDTH, 0)]]


def test_points_without_a_value_are_left_out() -> None:
    html = shown([Line(name="n", x=[1, 2], y=[None, 1.0])], title="T", of="e", show=str, top=1.0)
    assert drawn(html) == [[(WIDTH, 0)]]
    assert "<td>-</td>" in html


def test_chart_says_in_words_where_its_lines_begin_and_end() -> None:
    line = Line(name="accuracy", x=[1, 200], y=[0.5, 0.75])
    html = shown([line], title="Accuracy", of="events", show="{:.0%}".format, top=1.0)
    label = next(a["aria-label"] for a in Tree(html).all("svg") if "aria-label" in a)
    assert label == "Accuracy, by events. accuracy: 50% at 1, 75% at 200 events."


def test_shares_go_to_the_right_up_to_1() -> None:
    line = Line(name="right", x=[0.25, 0.5], y=[0.5, 1.0])
    html = shown([line], title="T", of="probability", show=percent, top=1.0, shares=True)
    assert drawn(html) == [[(WIDTH / 4, HEIGHT / 2), (WIDTH / 2, 0)]]
    tree = Tree(html)
    label = next(a["aria-label"] for a in tree.all("svg") if "aria-label" in a)
    assert label.endswith("right: 50\u202f% at 25\u202f%, 100\u202f% at 50\u202f% probability.")
    assert ">75\u202f%</span>" in html
    assert "<b>" not in html


def test_large_counts_are_written_in_full() -> None:
    html = shown([Line(name="a", x=[1_234_567], y=[1])], title="T", of="events", show=str)
    assert "1\u202f234\u202f567 events" in html
    assert ">1\u202f000\u202f000</span>" in html
    assert "e+" not in html


def test_line_without_points_is_named() -> None:
    lines = [Line(name="a", x=[1], y=[1.0]), Line(name="b", x=[], y=[])]
    html = shown(lines, title="T", of="events", show=str)
    assert "b: nothing." in html
    assert len(drawn(html)) == 2


def test_chart_without_points_says_so() -> None:
    html = shown([Line(name="a", x=[1], y=[None])], title="T", of="events", show=str)
    assert html.strip() == '<p class="none">T: nothing to draw.</p>'


def test_numbers_are_those_of_the_last_point_before() -> None:
    lines = [Line(name="a", x=[0, 4], y=[1, 3]), Line(name="b", x=[2, 3], y=[7, 8])]
    rows = re.findall(r"<tr>(.*?)</tr>", shown(lines, title="T", of="n", show=str))
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in rows[1:]]
    assert cells == [["0", "1", "-"], ["2", "1", "7"], ["3", "1", "8"], ["4", "3", "-"]]


def test_many_points_are_sampled_for_the_numbers() -> None:
    line = Line(name="a", x=range(401), y=range(401))
    html = shown([line], title="T", of="n", show=str)
    assert len(re.findall('<th scope="row">', html)) == 11
    assert '<th scope="row">400</th><td>400</td>' in html


@given(largest=st.floats(1e-100, 1e100), over=st.booleans())
def test_ticks_are_few_and_reach_what_they_must(largest: float, over: bool) -> None:
    marks = ticks(largest, over=over)
    assert marks[0] == 0.0
    assert 2 <= len(marks) <= 6
    step = marks[1]
    if over:
        assert marks[-1] >= largest * (1 - 1e-9)
        assert marks[-2] < largest
    else:
        assert marks[-1] <= largest * (1 + 1e-9)
        assert marks[-1] + step > largest * (1 - 1e-9)


@given(largest=st.integers(0, 10**9))
def test_counts_are_marked_at_whole_numbers(largest: int) -> None:
    assert all(mark.is_integer() for mark in ticks(largest, over=True, least=1.0))


@pytest.mark.parametrize("largest", [0.0, -0.0])
def test_nothing_has_one_tick(largest: float) -> None:
    assert ticks(largest) == [0.0]


def test_a_backend_of_matplotlib_that_is_unknown_keeps_no_picture_from_being_drawn(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    program = (
        "import os, sys; from pathlib import Path; from streamgp.report.charts import draw_curves\n"
        "draw_curves([], Path(sys.argv[1]), title='T'); print(os.environ['MPLBACKEND'])"
    )
    picture = tmp_path / "curves.svg"
    done = subprocess.run(
        [sys.executable, "-c", program, str(picture)],
        env={**os.environ, "MPLBACKEND": "unknown"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "unknown\n"
    assert picture.read_text().startswith("<?xml")
