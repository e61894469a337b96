"""Files for contributors and readers of the repository say what is true."""

import re
from pathlib import Path

import pytest
import yaml

import streamgp

ROOT = Path(__file__).parents[1]
if not (ROOT / "CITATION.cff").is_file():
    pytest.skip("CITATION.cff is not beside the tests", allow_module_level=True)

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_citation_is_of_this_version_and_complete():
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= CITATION.keys()
    assert CITATION["version"] == streamgp.__version__


@pytest.mark.parametrize("paper", CITATION["references"], ids=lambda paper: paper["title"])
def test_paper_is_one_that_the_documents_name(paper):
    documents = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    documents.append(
        (ROOT / "streamgp" / "datasets" / "river_datasets.py").read_text(encoding="utf-8")
    )
    title = re.sub(r"\s+", " ", paper["title"]).lower()
    naming = [text for text in documents if title in re.sub(r"\s+", " ", text).lower()]
    assert naming
    first = paper["authors"][0]["family-names"]
    assert any(first in text and str(paper["year"]) in text for text in naming)


def test_all_five_papers_are_cited():
    assert len(CITATION["references"]) == 5
