"""What docs/comparison.md says about libraries that are installed here is true."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from river import active

PAGE = Path(__file__).parents[1] / "docs" / "comparison.md"
if not PAGE.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

TEXT = PAGE.read_text(encoding="utf-8")


def test_river_has_one_strategy_and_no_budget():
    assert f"River {version('river')}" in TEXT
    assert active.__all__ == ["base", "EntropySampler"]
    assert not hasattr(active.base.ActiveLearningClassifier, "budget")


def test_scikit_activeml_has_budgets_for_streams_and_models_of_several_annotators():
    skactiveml = pytest.importorskip("skactiveml")
    from skactiveml import classifier, pool, regressor, stream

    assert f"scikit-activeml {skactiveml.__version__}" in TEXT
    assert len(pool.__all__) > len(stream.__all__) > 10
    assert stream.budgetmanager.__all__
    assert "IntervalEstimationAnnotModel" in pool.multiannotator.__all__
    assert "SlidingWindowClassifier" in classifier.__all__
    assert regressor.__all__


def test_every_row_has_a_cell_for_each_project():
    tables = re.findall(r"(?:^\|.*\|\n)+", TEXT, re.M)
    assert len(tables) == 2
    for table in tables:
        (width,) = {len(re.findall(r"(?<=\|)[^|]+(?=\|)", line)) for line in table.splitlines()}
        assert width >= 3
        assert "| |\n" not in table


def test_what_was_not_run_is_cited_with_a_date():
    _, sources = TEXT.split("## Sources\n")
    assert re.search(r"read on 20\d\d-\d\d-\d\d", sources)
    for project in ("Label Studio", "Prodigy", "Kafka Streams"):
        assert re.search(rf"^\* {project}: .*?\]\(https://", sources, re.M | re.S)
