"""Whatever a text holds, what is shown of it can be seen, and does nothing to a terminal."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.annotation.label_text import shown_label
from connectors.wire.explain import one_line
from streamgp.apps.log import TextLines
from streamgp.apps.replay.engine import row_of
from streamgp.common.printable import HiddenLabels, hidden_characters, printable
from streamgp.interactive import RunStatistics
from streamgp.report.html import foreign
from streamgp.report.tables import table

JOINERS = ("\u200c", "\u200d", "\u3000")  # and the space between Chinese characters
INVISIBLE = [
    *("\x00", "\x07", "\x1b", "\x7f", "\x9b", "\t", "\n", "\r", "\x85"),
    *("\u00a0", "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b", "\u200e", "\u200f"),
    *("\u2028", "\u2029", "\u202a", "\u202e", "\u202f", "\u2060", "\u2066", "\u2069", "\u206f"),
    *("\u2800", "\u3164", "\ufeff", "\uffa0", "\ufff9", "\ud800", "\ue000"),
    *("\U000e0001", "\U000e0041", "\U000e0100", "\U0001d173", "\u0378"),
]
FLAGS = [
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in country) + "\U000e007f"
    for country in ("gbeng", "gbsct", "gbwls")
]
texts = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from([*INVISIBLE, *JOINERS, "\ufe0e", "\ufe0f", "\u0301", "\u20e3"]),
        st.sampled_from("a1 *\u0645\u0915\u094d\u2764\U0001f469\U0001f3fd"),
    )
)


def is_shown(c: str) -> bool:
    return c == " " or unicodedata.category(c)[0] not in "CZ"


@given(texts)
def test_only_printable_characters_and_joiners_of_words_and_emoji_are_shown(text: str) -> None:
    shown = printable(text)
    assert all(is_shown(c) or c in JOINERS for c in shown)
    assert not set(INVISIBLE) & set(shown)
    assert "\n" not in shown


@given(texts)
def test_what_is_shown_is_shown_unchanged_again(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert hidden_characters(printable(text)) == []


@given(texts)
def test_a_text_is_changed_exactly_where_it_hides_something(text: str) -> None:
    assert (printable(text) != text) == bool(hidden_characters(text))


@pytest.mark.parametrize("c", INVISIBLE, ids=lambda c: f"U+{ord(c):04X}")
def test_what_cannot_be_seen_is_written_out(c: str) -> None:
    shown = printable(f"kit{c}chen")
    assert shown == f"kit{c.encode('unicode_escape').decode()}chen"
    assert hidden_characters(f"kit{c}chen{c}") == [f"U+{ord(c):04X}"]


@pytest.mark.parametrize(
    "text",
    [
        "k\u00fcche", "ku\u0308che", "\u5c45\u9593",
        "\u0645\u0637\u0628\u062e", "\u05d7\u05d3\u05e8",
        "\u7530\u4e2d\u3000\u82b1\u5b50",
        "\u0645\u06cc\u200c\u0634\u0648\u062f", "\u0915\u094d\u200d\u0937",
        "\u0915\u094d\u200c\u0937",
        "\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f3fd\u200d\u2695\ufe0f", "\u2764\ufe0f",
        "\U0001f3f3\ufe0f\u200d\U0001f308", "1\ufe0f\u20e3", "!\u203c\ufe0f",
        "\u2049\ufe0f", "\u2139\ufe0f", "\u3030\ufe0f", *FLAGS, FLAGS[0] + FLAGS[1], "C:\\temp 7 %",
    ],
)  # fmt: skip
def test_ordinary_text_of_any_script_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert hidden_characters(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "a\u200d\u2640",
        "a\u200cb",
        "a\u3000b",
        "\u5c45\u3000",
        "\u200dhall",
        "hall\u200d",
        "hall\ufe0f",
        "1\ufe0f",
        "\u203c\ufe0e",
        "\u0301hall",
    ],
)
def test_a_joiner_a_wide_space_a_selector_or_an_accent_out_of_place_is_written_out(
    text: str,
) -> None:
    assert len(hidden_characters(text)) == 1


@pytest.mark.parametrize(
    "text",
    [FLAGS[0][:-1], FLAGS[0][1:], "\U0001f3f3" + FLAGS[0][1:], FLAGS[0].replace("\U000e006e", "")],
    ids=["without an end", "without a flag", "of another flag", "of no country"],
)
def test_tags_that_make_no_flag_are_written_out(text: str) -> None:
    tags = {f"U+{ord(c):04X}" for c in text if ord(c) > 0xE0000}
    assert set(hidden_characters(text)) == tags


def test_a_label_is_warned_of_once_and_no_more_than_a_hundred_are() -> None:
    met = HiddenLabels()
    warnings = [met.warning("hall" + "\u200b" * n) for n in [*range(200), *range(200)]]
    assert warnings[0] is None
    assert sum(warning is not None for warning in warnings) == HiddenLabels.MOST
    assert all(printable(warning) == warning for warning in warnings if warning)


@pytest.mark.parametrize(
    ("first", "label", "which"),
    [
        ("caf\u00e9", "cafe\u0301", "U+0065, U+0301"),
        ("a\u0323\u0307", "a\u0307\u0323", "U+0061, U+0307, U+0323"),
        ("K", "\u212a", "U+212A"),
    ],
)
def test_a_label_is_warned_of_that_is_another_one_in_another_unicode_form(
    first: str, label: str, which: str
) -> None:
    met = HiddenLabels()
    assert met.warning(first) is None
    assert which in (met.warning(label) or "")


FACES = {
    "a label of annotate": shown_label,
    "the name of a row in a table": lambda text: table(
        [row_of(text, RunStatistics(), None)], first=text
    ),
    "a line of the log": lambda text: TextLines().format(
        logging.makeLogRecord({"msg": "batch", "fields": {"reason": text, "more": [text]}})
    ),
    "the reason of a dead letter": one_line,
    "a text of a report": foreign,
}


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
@given(text=texts)
def test_whatever_is_shown_can_be_seen(face: Callable[[str], str], text: str) -> None:
    assert all(printable(line) == line for line in face(text).split("\n"))
