"""Loops around ensembles and forests: a restart changes no decision."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp import (
    EnsembleGPClassifier,
    EnsembleGPRegressor,
    OnlineForestClassifier,
    SkepticalClassifier,
    SkepticalRegressor,
)
from streamgp.interactive import InteractiveLoop, KeyedLoops
from streamgp.query import KL, AdaptiveThreshold, Deterministic, RateBudget, Variance
from tests.helpers.laws import examples, in_turns
from tests.interactive.stories import CUTS, SPANS, Story, played_with_cuts, told
from tests.interactive.topics import StateChangelog

CLASSES = ("hall", "bath", "attic")
NUMBERS = (1.5, 22.0, 40.25)
seeds = st.integers(0, 10**6)


def of_classes(query, budget, **options):
    learner = EnsembleGPClassifier(n_features=5, seed=1, **options)
    return SkepticalClassifier(learner, query=query, budget=budget, warm_up=16, seed=3)


def of_numbers(query, budget, **options):
    learner = EnsembleGPRegressor(n_features=5, seed=1, **options)
    return SkepticalRegressor(learner, query=query, budget=budget, warm_up=16, seed=3)


def of_trees(budget, **options):
    learner = OnlineForestClassifier(n_models=3, n_tests=5, min_weight=4, seed=1, **options)
    return SkepticalClassifier(learner, budget=budget, warm_up=16, seed=3)


MODELS = {
    "forest": (CLASSES, lambda: of_trees(RateBudget(0.6))),
    "forest of small trees": (CLASSES, lambda: of_trees(None, max_nodes=5, inherit=False)),
    "classes": (CLASSES, lambda: of_classes(Variance(), RateBudget(0.5))),
    "classes, early fits": (
        CLASSES,
        lambda: of_classes(KL(least_weight=0.01), AdaptiveThreshold(0.5), n_initial=3),
    ),
    "logistic classes": (CLASSES, lambda: of_classes(None, None, likelihood="logistic")),
    "classes, forgetting": (
        CLASSES,
        lambda: of_classes(Deterministic(), RateBudget(0.6), forgetting=0.9, n_initial=4),
    ),
    "numbers": (NUMBERS, lambda: of_numbers(None, RateBudget(0.5))),
    "numbers, early fits": (
        NUMBERS,
        lambda: of_numbers(KL(least_weight=0.01), AdaptiveThreshold(0.5), n_initial=3),
    ),
    "numbers of the paper": (NUMBERS, lambda: of_numbers(Deterministic(), None, preset="paper")),
    "numbers, forgetting": (
        NUMBERS,
        lambda: of_numbers(Variance(), RateBudget(0.6), forgetting=0.9, n_initial=4),
    ),
}


@in_turns(("labels", "model"), MODELS, 0)
@examples(1)
@given(seed=seeds, every=CUTS)
def test_cutting_by_snapshot_and_restore_changes_no_message(labels, model, seed, every):
    loop, _ = played_with_cuts(model, Story(seed, labels=labels), every, n=90)
    assert loop.model.n_learned > 5


@in_turns(("labels", "model"), MODELS, 1)
@examples(1)
@given(seed=seeds)
def test_what_was_published_last_makes_the_loop_again(labels, model, seed):
    StateChangelog(model, seed, story=Story(seed, labels=labels)).steps_and_cut(90)


@in_turns(("labels", "model"), MODELS, 1)
@examples(1)
@given(seed=seeds, max_keys=st.integers(1, 2), every=st.sampled_from((20, 3, 8, 30)))
def test_loops_of_keys_that_are_evicted_and_restarted_say_the_same(
    labels, model, seed, max_keys, every
):
    keys, rng = ["ann", "bob", None], random.Random(seed)
    whole = KeyedLoops(model(), **SPANS)
    bounded = KeyedLoops(model(), **SPANS, max_keys=max_keys)
    stories = {key: Story(seed, key=key, labels=labels) for key in keys}
    said = {key: [] for key in keys}
    for n in range(90):
        key = rng.choice(keys)
        step = stories[key].next(said[key])
        if step[0] == "on_time":
            continue
        said[key] = told(whole, step, key=key)
        assert repr(told(bounded, step, key=key)) == repr(said[key])
        if n % every == 0:
            bounded = KeyedLoops.restore(bounded.snapshot(), model(), max_keys=max_keys)


@pytest.mark.parametrize(
    ("labels", "skeptical", "learner"),
    [
        (CLASSES, SkepticalClassifier, lambda: EnsembleGPClassifier(n_features=5)),
        (NUMBERS, SkepticalRegressor, lambda: EnsembleGPRegressor(n_features=5)),
        (CLASSES, SkepticalClassifier, lambda: OnlineForestClassifier(min_weight=4)),
    ],
    ids=["classes", "numbers", "forest"],
)
def test_a_seed_that_was_drawn_survives_the_restart(labels, skeptical, learner):
    loop = InteractiveLoop(skeptical(learner(), warm_up=16))
    story, messages = Story(1, labels=labels), []
    for _ in range(60):
        messages = told(loop, story.next(messages))
    again = InteractiveLoop.restore(loop.snapshot(), loop.model.clone())
    assert again.snapshot() == loop.snapshot()
    head = json.loads(json.dumps(loop.parts()["head"]))
    assert head["model"]["taught"]["learner"] == {"seed": again.model.learner.state()["seed"]}
    for _ in range(40):
        step = story.next(messages)
        messages = told(loop, step)
        assert repr(told(again, step)) == repr(messages)


def test_every_example_of_an_ensemble_is_retained_as_far_as_its_wrapper_is_concerned():
    assert EnsembleGPRegressor(seed=1).retains_all
    assert EnsembleGPClassifier(seed=1).retains_all
