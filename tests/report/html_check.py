"""What a page must be, whatever it shows: well-formed, and in need of nothing else."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input"}


class Tree(HTMLParser):
    """Reads a page and fails at the first tag that is not closed, or closed wrongly.

    Attributes
    ----------
    text
        All text outside of the style sheet.
    elements
        Name and attributes of every element, in order.

    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []
        ids = [a["id"] for _, a in self.elements if "id" in a]
        assert len(ids) == len(set(ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def checked(page: str) -> Tree:
    """Return a page's tree, once it has been shown to be complete and to need nothing else."""
    tree = Tree(page)
    assert {tag for tag, _ in tree.elements}.isdisjoint(
        ("script", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image")
    )
    for tag, attributes in tree.elements:
        assert not {"src", "srcset", "xlink:href", "action", "background"} & set(attributes), tag
        assert not [name for name in attributes if name.startswith("on")], tag
    targets = {a["href"] for a in tree.all("a")}
    ids = {a["id"] for _, a in tree.elements if "id" in a}
    assert targets <= {f"#{name}" for name in ids}
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    labelled = {a.get("aria-labelledby") for a in tree.all("section")}
    assert labelled <= ids
    for picture in tree.all("svg"):
        assert picture.get("aria-hidden") == "true" or picture["aria-label"]
    return tree
