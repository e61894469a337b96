r"""Display of untrusted text: invisible characters are replaced by escape sequences.

A label, a key or an annotator's name may contain anything: terminal control sequences, changes of
text direction that make one word look like another, invisible characters that make two labels look
the same. The data keep them; what is shown has escapes such as `\u202e` in their place.

Some invisible characters are part of ordinary text, and are left alone: the wide space between
Chinese characters, the joiners of emoji, of Persian and of Indic scripts, the selector that makes a
symbol an emoji, and the tags that turn a black flag into that of England, Scotland or Wales.
Unicode says where they belong; anywhere else they are escaped, too.

"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

# Invisible, but parts of emoji and of words in some scripts.
_JOINER, _NON_JOINER = "\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"
_SELECTORS = "\N{VARIATION SELECTOR-15}\N{VARIATION SELECTOR-16}"
_EMOJI_SELECTOR = "\N{VARIATION SELECTOR-16}"
# Punctuation and a letter that can be emoji, too.
_EMOJI_PUNCTUATION = "\u203c\u2049\u2139\u3030\u303d"
_KEYCAP = "\N{COMBINING ENCLOSING KEYCAP}"
# Unicode recommends only these tag sequences; any other shows only the black flag.
_FLAG = re.compile(
    "(?<=\U0001f3f4)\U000e0067\U000e0062(?:{})\U000e007f".format(
        "|".join(
            "".join(chr(0xE0000 + ord(c)) for c in country) for country in ("eng", "sct", "wls")
        )
    )
)
_VIRAMA = 9  # the combining class of the signs after which Indic scripts join letters
# Prefixes of the names of letters that are joined in writing.
_CURSIVE = ("ARABIC LETTER", "SYRIAC LETTER", "NKO LETTER", "MONGOLIAN LETTER")
# Invisible characters that `str.isprintable` accepts: those of Default_Ignorable_Code_Point, and
# the blank Braille pattern. https://www.unicode.org/reports/tr44/
_INVISIBLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),
)


def printable(text: str) -> str:
    r"""Return a text on one line, with all invisible characters escaped.

    The result contains no terminal control characters, and escaping it again leaves it unchanged. A
    backslash stays as it is, so `\x1b` may also have been four characters in the original.

    Examples
    --------
    >>> print(printable("ann\x1b[2J"), printable("kit\u200bchen"), printable("\u202eneddih"))
    ann\x1b[2J kit\u200bchen \u202eneddih
    >>> printable("k\u00fcche 7 %") == "k\u00fcche 7 %"
    True

    The joiner of a family emoji stays, as does that of a Persian word:

    >>> [printable(text) == text for text in ("\U0001f469\u200d\U0001f467", "\u0645\u06cc\u200c\u0634\u0648\u062f")]
    [True, True]

    """  # noqa: E501 (an example in Persian)
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if is_visible else _escaped(c) for c, is_visible in _characters(text))


def hidden_characters(text: str) -> list[str]:
    r"""Return the code points of a text's invisible characters, each once.

    Examples
    --------
    >>> hidden_characters("kit\u200bchen\u202e"), hidden_characters("kitchen")
    (['U+200B', 'U+202E'], [])

    """
    if text.isascii() and text.isprintable():
        return []
    return list(
        dict.fromkeys(f"U+{ord(c):04X}" for c, is_visible in _characters(text) if not is_visible)
    )


def cut(text: str, n: int) -> str:
    """Return a text truncated to at most n characters.

    Examples
    --------
    >>> cut("kitchen", 7), cut("kitchen", 5)
    ('kitchen', 'kitc…')

    """
    return text if len(text) <= n else text[: n - 1] + "…"


def path_text(path: str | Path) -> str:
    r"""Return a path, or a part of one, as text for files and messages.

    These are UTF-8, but a file name need not be; its invalid bytes are escaped.

    Examples
    --------
    >>> print(path_text("k\u00fcche.csv"), path_text(os.fsdecode(b"k\xfcche.csv")))
    küche.csv k\xfcche.csv

    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class HiddenLabels:
    r"""Labels met so far that may look like another one, to warn of each once.

    They hold invisible characters, or are written in another Unicode form than one met before.

    Examples
    --------
    >>> met = HiddenLabels()
    >>> print(met.warning("kit\u200bchen"))
    label kit\u200bchen holds what cannot be seen (U+200B); it may look like another one
    >>> met.warning("kit\u200bchen"), met.warning("kitchen"), met.warning("caf\u00e9")
    (None, None, None)
    >>> print(met.warning("cafe\u0301").replace("\u0301", ""))
    label cafe looks like another one, in another Unicode form (here with U+0065, U+0301)

    """

    MOST = 100
    """Largest number of labels warned of, so that a client cannot flood the log."""
    _MOST_FORMS = 10_000

    # _met    labels warned of
    # _forms  labels that are not ASCII, by their composed form, each as it was met first
    def __init__(self) -> None:
        self._met: set[str] = set()
        self._forms: dict[str, str] = {}

    def warning(self, label: object) -> str | None:
        """Return the warning for a label; None if there is none, or it was given before."""
        which = ", ".join(self.characters(label)[:5])
        if not which:
            return None
        assert isinstance(label, str)
        shown = printable(label)[:80]
        if hidden_characters(label):
            return (
                f"label {shown} holds what cannot be seen ({which}); it may look like another one"
            )
        return f"label {shown} looks like another one, in another Unicode form (here with {which})"

    def characters(self, label: object) -> list[str]:
        """Return the code points that a label has to be warned of for; none if it was before."""
        if not isinstance(label, str) or label.isascii() or label in self._met:
            return []
        found = hidden_characters(label)
        if not found and (like := self._first_form(label)) != label:
            differing = [c for c in label if c not in like] or label  # else in another order
            found = [f"U+{ord(c):04X}" for c in dict.fromkeys(differing)]
        if not found or len(self._met) >= self.MOST:
            return []
        self._met.add(label)
        return found

    def _first_form(self, label: str) -> str:
        composed = unicodedata.normalize("NFC", label)
        if composed.isascii():  # of the sign for kelvins, for example
            return composed
        if len(self._forms) >= self._MOST_FORMS:
            return self._forms.get(composed, label)
        return self._forms.setdefault(composed, label)


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character, and whether it may be shown as it is."""
    before = ""  # the visible character before it; empty at the beginning
    tags = {i for flag in _FLAG.finditer(text) for i in range(*flag.span())}
    for i, c in enumerate(text):
        after = text[i + 1 : i + 2]
        is_visible = i in tags or _is_visible(c, before, after)
        yield c, is_visible
        before = c if is_visible else ""


def _is_visible(c: str, before: str, after: str) -> bool:
    if c in (_JOINER, _NON_JOINER):
        return _joins(c, before, after)
    if c in _SELECTORS:
        # After a symbol it selects text or emoji presentation; after a digit it makes a keycap.
        is_key = before in "0123456789#*" and after == _KEYCAP
        is_emoji = c == _EMOJI_SELECTOR and before in _EMOJI_PUNCTUATION
        return bool(before) and (is_key or is_emoji or unicodedata.category(before) in ("So", "Sm"))
    if c == "\N{IDEOGRAPHIC SPACE}":  # as in names in Japanese
        is_after_wide = bool(before) and unicodedata.east_asian_width(before) in "WF"
        return is_after_wide and bool(after.strip())
    if not c.isprintable() or any(first <= ord(c) <= last for first, last in _INVISIBLE):
        return False
    # A combining accent needs a base letter: alone it would change what is printed before the text.
    return not (unicodedata.category(c).startswith("M") and before in ("", " "))


def _joins(c: str, before: str, after: str) -> bool:
    """Return whether a joiner stands where Unicode has a use for it.

    References
    ----------
    [^1]: Faltstrom, P., 2010. RFC 5892, The Unicode Code Points and IDNA, appendices A.1 and A.2.
    [^2]: Davis, M. and Holbrook, N. Unicode Technical Standard 51, Unicode Emoji, section 2.

    """
    if not before or not after:
        return False
    if unicodedata.combining(before) == _VIRAMA:
        return True
    if c == _NON_JOINER:
        return _is_cursive(before) and _is_cursive(after)
    is_emoji = unicodedata.category(before) in ("So", "Sk") or before in _SELECTORS
    return is_emoji and unicodedata.category(after) in ("So", "Sm")


def _is_cursive(c: str) -> bool:
    return unicodedata.name(c, "").startswith(_CURSIVE)


def _escaped(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")
