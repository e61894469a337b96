"""Configurations written as TOML are those that are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgp.apps.tune.search import write_configuration
from streamgp.config import settings
from streamgp.config.load import load
from streamgp.config.rules import section
from streamgp.config.settings import Config, Learner, Log, resolved
from streamgp.config.templates import template, toml
from tests.helpers.configurations import parse

CONFIGS = {
    "default": Config(),
    "paper": Config(preset="paper", seed=0, warm_up=0),
    "resolved": resolved(Config(preset="paper")),
    "learner": Config(
        learner=Learner(length_scale=1e-16, noise_variance=2e300, max_points="all"),
        query=section("query", "entropy", threshold=0.25),
        challenge=section("challenge", "never"),
        review=section(
            "review", "leave_one_out", budget=section("budget", "at_most_per", n=3, span_s=60.0)
        ),
        budget=section("budget", "rate", rate=0.5, window=40),
    ),
    "river": Config(
        learner=Learner(
            name="river.neighbors.KNNClassifier", options={"n_neighbors": 3, "weighted": False}
        )
    ),
    "annotators": Config(
        annotators={
            'ann "the\\second" é\x7f\n😀': settings.Annotator(error_rate=0.1, classes=("a", "b")),
            "bob": settings.Annotator(),
            "x.y": settings.Annotator(stubborn=True, classes=(1, 2.5, True)),
        }
    ),
    "log": Config(
        log=Log(label="ro\tom", time="t", key="k", ignore=("a", "#b"), features=("[x]", "'y'"))
    ),
    "budgets": Config(
        budget=section(
            "budget",
            "all_of",
            budgets=(
                section("budget", "rate", rate=0.05),
                section("budget", "at_most_per", n=4, span_s=3600.0),
            ),
        ),
        total_budget=section("budget", "at_most", n=9, gives_back=False),
    ),
    "numbers": Config(
        target="number",
        challenge=section("challenge", "outside_interval", level=0.9),
        annotator=settings.Annotator(noise=0.5, states_noise=True),
    ),
    "template": parse(template(), source="template"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_comes_back_as_it_was(name: str) -> None:
    config = CONFIGS[name]
    text = toml(config)
    assert parse(text, source="written") == config
    assert toml(parse(text, source="written")) == text


def test_what_is_as_by_default_is_left_out() -> None:
    assert toml(Config()) == ""
    assert toml(Config(seed=2)) == "seed = 2\n"
    several = {"ann": settings.Annotator(error_rate=0.1), "bob": settings.Annotator()}
    written = "\n[annotators.ann]\nerror_rate = 0.1\n\n[annotators.bob]\n"
    assert toml(Config(annotators=several)) == written


def test_file_begins_with_its_comment(tmp_path: Path) -> None:
    path = tmp_path / "best.toml"
    write_configuration(path, Config(seed=2), comment="Found.")
    assert path.read_text() == "# Found.\nseed = 2\n"
    assert load(path) == Config(seed=2)
