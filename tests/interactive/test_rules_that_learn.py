"""Loops around learners that decide by what became of earlier answers."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes

from streamgp import GPClassifier, SkepticalClassifier
from streamgp.query import EqualErrorAsk
from tests.helpers.laws import examples
from tests.interactive.stories import CUTS, Story, TextStory, played_with_cuts
from tests.interactive.topics import StateChangelog

LEARNERS = {
    "GP": lambda: GPClassifier(noise_variance=0.3),
    "naive Bayes": naive_bayes.GaussianNB,
}


def skeptical(learner=GPClassifier):
    return SkepticalClassifier(learner(), EqualErrorAsk(at_least=0.2), warm_up=20, seed=3)


MODELS = {name: partial(skeptical, learner) for name, learner in LEARNERS.items()}


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
@examples(2)
@given(seed=st.integers(0, 10**6), every=CUTS)
def test_a_restart_repeats_every_decision(build, seed, every):
    loop, _ = played_with_cuts(build, Story(seed), every)
    assert loop.model.state()["query"] != EqualErrorAsk().state()


@examples(2)
@given(seed=st.integers(0, 10**6))
def test_what_was_published_last_makes_the_loop_again(seed):
    StateChangelog(skeptical, seed, story=TextStory(seed)).steps_and_cut(120)
