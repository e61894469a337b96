"""Loops around learners that retain some examples, and that learn their hyperparameters."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.interactive import InteractiveLoop
from streamgp.learners import gp_classifier, gp_tuning
from tests.helpers.forgetful import ARD, FORGETFUL, JumpyWatch
from tests.helpers.laws import examples, in_turns
from tests.interactive.stories import CUTS, TextStory, played_with_cuts, told
from tests.interactive.topics import StateChangelog

MODELS = {
    "few points": lambda: GPClassifier(max_points=6),
    "learned hyperparameters": lambda: GPClassifier(learn_hyperparameters=True),
    "both": lambda: GPClassifier(max_points=6, learn_hyperparameters=True),
    "both, many parts": lambda: GPClassifier(ARD, 0.2, max_points=9, learn_hyperparameters=True),
    **FORGETFUL,
}


@pytest.fixture(autouse=True)
def early(monkeypatch):
    """The first fit after four examples, a drift after as many errors."""
    monkeypatch.setattr(gp_tuning, "FIRST_FIT", 4)
    monkeypatch.setattr(gp_classifier, "DriftWatch", JumpyWatch)


def skeptical(learner):
    return SkepticalClassifier(learner(), warm_up=20, seed=3)


@in_turns("learner", MODELS, 0)
@examples(2)
@given(seed=st.integers(0, 10**6), every=CUTS)
def test_cutting_by_snapshot_and_restore_changes_no_message(learner, seed, every):
    story = TextStory(seed)
    loop, _ = played_with_cuts(lambda: skeptical(learner), story, every)
    assert loop.model.n_learned > 5
    assert loop.model.learner.n_drifts > 0 or not loop.model.learner.drift


@in_turns("learner", MODELS, 1)
@examples(2)
@given(seed=st.integers(0, 10**6))
def test_what_was_published_last_makes_the_loop_again(learner, seed):
    story = TextStory(seed)
    StateChangelog(lambda: skeptical(learner), seed, story=story).steps_and_cut(120)


def test_a_learner_whose_examples_are_all_there_is_adds_nothing_to_the_head():
    heads = []
    for learner in MODELS.values():
        loop = InteractiveLoop(skeptical(learner))
        story, messages = TextStory(1), []
        for _ in range(80):
            messages = told(loop, story.next(messages))
        heads.append(loop.parts()["head"]["model"]["taught"].get("learner"))
    for (name, learner), state in zip(MODELS.items(), heads, strict=True):
        tuned = learner().learn_hyperparameters
        assert 0 < len(json.dumps(state)) < 200 if tuned else state is None, name
