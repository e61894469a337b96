"""The confusion matrix on a page adds up, also where classes share a row."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from streamgp.report.html import render
from streamgp.report.page import confusion_matrix
from streamgp.report.run import Confusion


def cells(confusion: Confusion, n_classes: int = 30) -> list[list[str]]:
    html = render("confusion.html", confusion=confusion_matrix(confusion, n_classes))
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in rows
    ]


def test_rows_are_true_and_columns_predicted() -> None:
    head, *rows, foot = cells(Confusion(labels=["den", 2], counts=[[3, 1], [0, 4]]))
    assert head == ["true", "den", "2", "events", "recall"]
    assert [[c.replace("\u202f", " ") for c in row] for row in rows] == [
        ["den", "3", "1", "4", "75 %"],
        ["2", "·", "4", "4", "100 %"],
    ]
    assert [c.replace("\u202f", " ") for c in foot] == ["precision", "100 %", "80 %", "8", "88 %"]


def test_nothing_to_compare_is_reported() -> None:
    for confusion in (
        Confusion(labels=[], counts=[]),
        Confusion(labels=["den"], counts=[[0]]),
    ):
        html = render("confusion.html", confusion=confusion_matrix(confusion))
        said = '<p class="none">No prediction could be compared with a truth.</p>'
        assert html.strip() == said


def test_least_frequent_classes_share_a_row_and_are_right_only_where_they_hit() -> None:
    counts = [[9, 0, 0], [0, 1, 1], [0, 0, 2]]
    head, *rows, foot = cells(Confusion(labels=["a", "b", "c"], counts=counts), n_classes=1)
    assert head[1:3] == ["a", "2 others"]
    assert [c.replace("\u202f", " ") for c in rows[1]] == ["2 others", "·", "4", "4", "75 %"]
    assert [c.replace("\u202f", " ") for c in foot] == ["precision", "100 %", "75 %", "13", "92 %"]


def test_most_frequent_classes_stay_in_order_of_appearance() -> None:
    counts = [[5, 0, 0, 0], [0, 1, 0, 0], [0, 0, 9, 0], [0, 0, 0, 2]]
    head = cells(Confusion(labels=list("abcd"), counts=counts), n_classes=2)[0]
    assert head[1:4] == ["a", "c", "2 others"]


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n
        )
    ),
    st.integers(1, 6),
)
def test_no_event_is_lost(counts: list[list[int]], n_classes: int) -> None:
    total = sum(map(sum, counts))
    table = cells(Confusion(labels=list(range(len(counts))), counts=counts), n_classes)
    if total == 0:
        assert table == []
        return
    _, *rows, foot = table
    numbers = [[0 if c == "·" else int(c) for c in row[1:-1]] for row in rows]
    assert all(sum(row[:-1]) == row[-1] for row in numbers)
    assert sum(row[-1] for row in numbers) == int(foot[-2]) == total
