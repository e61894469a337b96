"""The page that helps to choose names, or leads to, everything that there is to choose from."""

from pathlib import Path
from typing import get_args

import pytest

import streamgp
from streamgp import query
from streamgp.query.registry import LEARNERS, Kind, rules

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

PROTOCOLS = {"AskRule", "LearningAskRule", "NumberAskRule"}
PAGE = (DOCS / "choosing.md").read_text(encoding="utf-8")


def test_what_a_configuration_cannot_name_is_named_here():
    """What it can name stands in the tables of configuration.md, which tests compare."""
    learners = [name for name in streamgp.__all__ if name.endswith(("Classifier", "Regressor"))]
    kinds = [name for name in query.__all__ if name.endswith(("Ask", "Challenge", "Review"))]
    registered = {one.cls.__name__ for kind in get_args(Kind) for one in rules(kind).values()}
    registered |= {path.split(":")[1] for one in LEARNERS.values() for path in one.classes.values()}
    names = {*learners, *kinds, "PoolSampler", "KeyedLoops"} - registered - PROTOCOLS
    assert sorted(name for name in names if name not in PAGE) == []
    assert "configuration.md#query" in PAGE
    assert "configuration.md#learner" in PAGE
