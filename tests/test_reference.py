"""The reference of the API has every public name, and says which names are deprecated."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import streamgp

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

SITE = runpy.run_path(str(DOCS / "site" / "build.py"))
PACKAGES = {name: importlib.import_module(name) for name in SITE["API"]}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    described: dict[str, str] = {}
    return {name: SITE["api_page"](name, "", described) for name in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_described_or_linked_to_where_it_is(package, pages):
    for name in PACKAGES[package].__all__:
        here = re.findall(rf"^::: (\S+)\.{name}$", pages[package], re.M)
        link = re.findall(rf"\[`{name}`\]\(([\w.]+)\.md(?:#(\S+)\.{name})?\)", pages[package])
        assert len(here) + len(link) == 1, name
        for page, home in link:
            assert not home or f"::: {home}.{name}\n" in pages[page], name
            assert home or page in pages, name
        for home in here:
            found = getattr(importlib.import_module(home), name)
            assert found is getattr(PACKAGES[package], name), name


def test_every_public_module_has_a_page():
    modules = {
        module.__name__
        for name in streamgp.__all__
        if isinstance(module := getattr(streamgp, name), ModuleType)
    }
    assert modules | {"streamgp", "connectors"} <= set(PACKAGES)


def test_every_page_is_in_the_contents_of_the_site():
    class Loader(yaml.SafeLoader):
        """Takes tags of Python objects for what they hold."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *found: found[2].tag)
    text = (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    contents = str(yaml.load(text, Loader)["nav"])
    pages = [f"api/{name}.md" for name in PACKAGES]
    pages += [f"docs/{path.name}" for path in DOCS.glob("*.md")]
    assert [page for page in pages if f"'{page}'" not in contents] == []


def test_every_deprecated_name_is_listed():
    text = (DOCS / "deprecations.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\S+)` \| `(\S+)` \| 0\.2 \|$", text, re.M)
    deprecated = [
        (f"{package}.{old}", f"{package}.{new}")
        for package, module in PACKAGES.items()
        for old, new in getattr(module, "_RENAMED", {}).items()
    ]
    assert listed == sorted(deprecated)
    assert streamgp.__version__.startswith("0.1.")


def test_help_of_the_builder_builds_nothing(tmp_path):
    call = [sys.executable, DOCS / "site" / "build.py", "--help"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "FOLDER" in done.stdout
    assert list(tmp_path.iterdir()) == []
