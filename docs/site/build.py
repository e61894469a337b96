"""Build the documentation site: `python docs/site/build.py [FOLDER]`, by default `site`.

Pages are the Markdown files of the repository, unchanged and at the same paths, so that their links
lead to the same places on the site and in a checkout. The pages of the API are made here, from the
public names (`__all__`) of the packages. Any problem with a page, and any link or anchor that leads
nowhere, ends the build with status 1.

Needs the extra `docs`.

"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Path(__file__).with_name("mkdocs.yml")
STYLE = Path(__file__).with_name("phones.css")
# Files to copy: the pages, and what they link to besides each other.
STAGED = (
    "docs",
    "examples",
    "docker/compose.yaml",
    "docker/kubernetes.yaml",
    "LICENSE",
    "CITATION.cff",
)
API = {
    "streamgp": "Learners, the skeptical wrapper, presets, the loop and its evaluation.",
    "streamgp.query": "Query strategies, challenge rules and reviews.",
    "streamgp.budgets": "Budgets: whether one more question may be asked.",
    "streamgp.kernels": "Kernels of Gaussian processes.",
    "streamgp.windows": "Windows over raw sensor rows.",
    "streamgp.metrics": "Metrics of predictions and of the conversation.",
    "streamgp.datasets": "Data sets that come with the package.",
    "streamgp.interactive": "The interactive loop and its messages.",
    "connectors": "Bytes, files, topics and a clock around the loop.",
}


def main() -> int:
    """Build the site and check its links; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site", metavar="FOLDER")
    target = parser.parse_args().folder.resolve()
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        stage(pages)
        shutil.copy(SETTINGS, folder)
        command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        # Silences the notice, in every build, that another tool will replace this one.
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        built = subprocess.run([*command, "--site-dir", str(target)], cwd=folder, env=quiet)
    if built.returncode:
        return 1
    dead = sorted(dead_links(target))
    for page, link in dead:
        print(f"{page}: {link} leads nowhere")
    print(f"{len(list(target.rglob('*.html')))} pages in {target}")
    return int(bool(dead))


def stage(pages: Path) -> None:
    """Copy the files of the site, and write the pages of the API."""
    for name in STAGED:
        source, copy = ROOT / name, pages / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("site", "__pycache__"))
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    for source in ROOT.glob("*.md"):
        shutil.copy(source, pages)
    shutil.copy(STYLE, pages)
    (pages / "api").mkdir()
    described: dict[str, str] = {}
    for package, summary in API.items():
        text = api_page(package, summary, described)
        (pages / "api" / f"{package}.md").write_text(text, encoding="utf-8")


def api_page(package: str, summary: str, described: dict[str, str]) -> str:
    """Return the page of a package: every public name, or the page where it is described.

    Parameters
    ----------
    package
        Full name of the module whose `__all__` is described.
    summary
        The page's first line.
    described
        The page that describes each object, by its full name; those of this page are added.

    """
    module = importlib.import_module(package)
    lines, elsewhere = [f"# `{package}`", "", summary, ""], []
    for name in module.__all__:
        value = getattr(module, name)
        if type(value) is type(module):
            elsewhere.append(f"[`{name}`]({value.__name__}.md)")
            continue
        home = getattr(value, "__module__", None) or package
        path = f"{home}.{name}" if home.split(".")[0] in ("streamgp", "connectors") else None
        path = path or f"{package}.{name}"
        if path in described:
            elsewhere.append(f"[`{name}`]({described[path]}.md#{path})")
        else:
            described[path] = package
            lines += [f"::: {path}", ""]
    if elsewhere:
        lines[4:4] = [f"Described elsewhere: {', '.join(elsewhere)}.", ""]
    return "\n".join(lines)


class _Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the link and the anchor of an element."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "link":
                self.links.add(value)


def dead_links(site: Path) -> Iterator[tuple[Path, str]]:
    """Yield the page and the target of each link within the site that leads nowhere."""
    pages = {path.resolve(): _Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link in page.links:
            parts = urlsplit(link)
            # References at the end of a docstring link back to where they are cited, if anywhere.
            is_back = ":" in parts.fragment and "fnref" in parts.fragment
            if parts.scheme or parts.netloc or is_back or parts.fragment.startswith("__"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and anchor not in pages[target].anchors):
                yield path.relative_to(site), link


if __name__ == "__main__":
    sys.exit(main())
