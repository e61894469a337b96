"""Foreign texts stay texts, however they look."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from streamgp.common.printable import printable
from streamgp.report.html import N_SHOWN, N_TOLD, cut, environment, foreign, render


def read(markup: str) -> tuple[list[str], list[tuple[str, str | None]], str]:
    """Return the tags, attributes and text that a browser would see."""
    tags: list[str] = []
    attributes: list[tuple[str, str | None]] = []
    texts: list[str] = []
    parser = HTMLParser(convert_charrefs=True)
    parser.handle_starttag = lambda tag, attrs: (tags.append(tag), attributes.extend(attrs))  # type: ignore[method-assign,assignment]
    parser.handle_data = texts.append  # type: ignore[method-assign]
    parser.feed(markup)
    parser.close()
    return tags, attributes, "".join(texts)


@given(text=st.text(max_size=N_SHOWN))
def test_any_short_text_is_shown_as_it_is_but_for_what_does_not_print(text: str) -> None:
    tags, _, seen = read(foreign(text))
    if text.strip():
        assert (tags, seen) == (["bdi"], cut(printable(text), N_SHOWN))
    else:
        assert tags == ["i"] or printable(text).strip()


@given(text=st.text(min_size=1))
def test_any_text_as_child_or_attribute_is_read_back(text: str) -> None:
    plain = printable(text)
    paragraph = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    tags, attributes, seen = read(paragraph.render(text=plain))
    assert (tags, attributes, seen) == (["p"], [("title", plain)], plain)


def test_long_texts_are_cut_and_told_in_a_tooltip() -> None:
    tags, attributes, seen = read(foreign("L" * 500))
    assert tags == ["bdi"]
    assert len(seen) == N_SHOWN
    assert attributes == [("title", "L" * (N_TOLD - 1) + "…")]


def test_control_characters_and_turns_of_direction_are_written_out() -> None:
    _, _, seen = read(foreign("a\x00b\x1bc\u202ed\ne"))
    assert seen == r"a\x00b\x1bc\u202ed\ne"
    assert read(foreign("👩\u200d💻"))[2] == "👩\u200d💻"


def test_markup_is_not_escaped_twice() -> None:
    paragraph = environment().from_string("<p>{{ text | foreign }}</p>")
    assert paragraph.render(text="<") == "<p><bdi>&lt;</bdi></p>"


def test_no_template_lets_a_text_pass_as_markup() -> None:
    names = environment().list_templates(extensions=["html"])
    assert "page.html" in names
    for name in names:
        source = files("streamgp.report").joinpath("templates", name).read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape", source), name


def test_a_variable_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'run' is undefined"):
        render("notes.html")


def test_jinja_is_loaded_when_a_page_is_made_and_not_before() -> None:
    modules = "streamgp.cli.main, streamgp.apps.replay.results, streamgp.report.charts"
    program = f"import sys, {modules}; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"False"]


def test_cut_keeps_texts_that_fit() -> None:
    assert [cut("abc", n) for n in (4, 3, 2)] == ["abc", "abc", "a…"]
