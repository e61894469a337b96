"""Loops about events with texts, and with kernels of many parts, go on as all others do."""

from hypothesis import given
from hypothesis import strategies as st

from streamgp import GPClassifier, SkepticalClassifier, isgp
from streamgp.interactive import InteractiveLoop, LabelledExample, LabelRequest
from streamgp.kernels import (
    Categorical,
    Constant,
    Linear,
    Matern32,
    On,
    RationalQuadratic,
    SquaredExponential,
    White,
)
from tests.helpers.laws import examples, in_turns
from tests.interactive.stories import CUTS, TextStory, played_with_cuts, told
from tests.interactive.topics import StateChangelog

MODELS = {
    "default": lambda: isgp(seed=3),
    "kernels of many parts": lambda: SkepticalClassifier(
        GPClassifier(
            Constant(0.5) * RationalQuadratic(1.5)
            + On(["u", "place"], Matern32({"place": 2.0, "u": 1.0})) * On(["n"], Categorical())
            + Linear(0.1)
            + White(0.05)
        ),
        warm_up=20,
        seed=3,
    ),
    "length scales by name": lambda: SkepticalClassifier(
        GPClassifier(SquaredExponential({"u": 1.0, "place": 0.7})), warm_up=0, seed=3
    ),
}


@in_turns("model", MODELS, 0)
@examples(2)
@given(seed=st.integers(0, 10**6), every=CUTS)
def test_cutting_by_snapshot_and_restore_changes_no_message(model, seed, every):
    loop, _ = played_with_cuts(model, TextStory(seed), every)
    assert loop.model.n_learned > 5


@in_turns("model", MODELS, 1)
@examples(2)
@given(seed=st.integers(0, 10**6))
def test_what_was_published_last_makes_the_loop_again(model, seed):
    StateChangelog(model, seed, story=TextStory(seed)).steps_and_cut(120)


def test_texts_travel_with_requests_and_examples():
    loop = InteractiveLoop(isgp(seed=1))
    story, messages = TextStory(1), []
    requested, learned = [], []
    for _ in range(200):
        messages = told(loop, story.next(messages))
        requested += [m for m in messages if isinstance(m, LabelRequest)]
        learned += [m for m in messages if isinstance(m, LabelledExample)]
    for some in (requested, learned):
        assert any(isinstance(m.x.get("place"), str) for m in some)
        assert any(isinstance(m.x.get("u"), str) for m in some)
