"""Loops around learners that decide by what became of earlier answers."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import naive_bayes

from streamgp import GPClassifier, SkepticalClassifier, StagedSkepticalClassifier
from streamgp.interactive import InteractiveLoop
from streamgp.query import EqualErrorAsk
from tests.helpers.laws import examples
from tests.interactive.stories import Story, told
from tests.interactive.test_state_parts import LABELS, StateChangelog
from tests.interactive.test_text_features import TextStory

LEARNERS = {
    "GP": lambda: GPClassifier(noise_variance=0.3),
    "naive Bayes": naive_bayes.GaussianNB,
}


def skeptical(learner=GPClassifier):
    return SkepticalClassifier(learner(), EqualErrorAsk(at_least=0.2), warm_up=20, seed=3)


def in_stages():
    return StagedSkepticalClassifier(naive_bayes.GaussianNB(), theta=0.5, seed=3)


MODELS = {
    **{name: partial(skeptical, learner) for name, learner in LEARNERS.items()},
    "stages": in_stages,
}


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
@examples(2)
@given(seed=st.integers(0, 10**6), every=st.integers(1, 12))
def test_a_restart_repeats_every_decision(build, seed, every):
    spans = {"expires_after_s": 5.0, "answer_horizon_s": 60.0}
    whole, cut = (InteractiveLoop(build(), **spans) for _ in range(2))
    story, messages = Story(seed, labels=LABELS), []
    for n in range(110):
        step = story.next(messages)
        messages = told(whole, step)
        assert repr(told(cut, step)) == repr(messages)
        if n % every == 0:
            cut = InteractiveLoop.restore(cut.snapshot(), build())
    assert cut.snapshot() == whole.snapshot()
    learned = cut.model.state()
    if build is in_stages:
        assert learned["staged"]["recent"]
    else:
        assert learned["query"] != EqualErrorAsk().state()


@pytest.mark.parametrize("build", [skeptical, in_stages])
@examples(2)
@given(seed=st.integers(0, 10**6))
def test_what_was_published_last_makes_the_loop_again(build, seed):
    published = StateChangelog(build, seed)
    published.story = TextStory(seed, labels=LABELS)
    for _ in range(120):
        published.step()
    again = list(published.cut())
    expected = published.loop.snapshot()
    assert [loop.snapshot() == expected for loop in again] == [True] * 3
