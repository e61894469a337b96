"""The page that helps to choose names everything that there is to choose from."""

import re
from pathlib import Path

import pytest

import streamgp
from streamgp import query

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

PAGE = (DOCS / "choosing.md").read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a document, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", PAGE)
    assert links
    for target, anchor in links:
        path = (DOCS / target) if target else DOCS / "choosing.md"
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_every_learner_and_every_rule_is_named():
    learners = [name for name in streamgp.__all__ if name.endswith(("Classifier", "Regressor"))]
    rules = [name for name in query.__all__ if name.endswith(("Ask", "Challenge"))]
    rules += ["Entropy", "LeastConfidence", "BestVersusSecond", "Variance", "KL", "Deterministic"]
    names = [*learners, *rules, "LeaveOneOutReview", "OutsideInterval", "PoolSampler", "KeyedLoops"]
    assert [name for name in names if name not in PAGE] == []
