import inspect

import pytest

from streamgp import (
    ConfidenceBoostingClassifier,
    EnsembleGPClassifier,
    EnsembleGPRegressor,
    GPClassifier,
    NotPositiveDefiniteError,
    OnlineGradientBoostingClassifier,
    PrivilegedGPClassifier,
    SkepticalClassifier,
    isgp,
)
from streamgp.budgets import AtMost
from streamgp.kernels import SquaredExponential
from streamgp.query import PaperAsk, PaperChallenge, RandomAsk, SkepticalAsk, SkepticalChallenge


def test_the_default_has_a_real_noise_and_scales_features():
    model = isgp()
    assert isinstance(model.model, GPClassifier)
    assert model.model.kernel is None
    assert model.model.noise_variance == 0.5
    assert model.query == SkepticalAsk(c=1.0)
    assert model.challenge == SkepticalChallenge(threshold=0.1)
    assert model.warm_up > 0
    assert model.rescale


def test_the_paper_preset_is_the_paper_to_the_letter():
    model = isgp("paper", seed=3)
    assert model.model.kernel == SquaredExponential(length_scale=2.0, variance=1.0)
    assert model.model.noise_variance == 1e-16
    assert model.query == PaperAsk()
    assert model.challenge == PaperChallenge()
    assert model.warm_up == 0
    assert not model.rescale
    assert model.seed == 3


def test_an_unknown_preset_is_refused():
    with pytest.raises(ValueError, match="preset must be 'default' or 'paper', got 'papers'"):
        isgp("papers")


@pytest.mark.parametrize(
    "build",
    [
        isgp,
        PrivilegedGPClassifier,
        EnsembleGPClassifier,
        EnsembleGPRegressor,
        ConfidenceBoostingClassifier,
        OnlineGradientBoostingClassifier,
    ],
)
def test_all_have_the_same_presets(build):
    assert inspect.signature(build).parameters["preset"].annotation == "Preset"
    for preset in ("default", "paper"):
        build(preset=preset)
    with pytest.raises(ValueError, match="preset must be 'default' or 'paper', got 'x'"):
        build(preset="x")


def test_the_paper_preset_sees_features_as_they_are():
    model = isgp("paper", seed=0)
    x = {"a": 1000.0}
    model.observe_one(x)
    model.learn_one(x, "p")
    assert model.learner.predict_proba_one(x, with_dist=True).mean == {"p": 1.0}
    far = model.learner.predict_proba_one({"a": 0.0}, with_dist=True)
    assert far.mean == {"p": 0.0}


def test_the_noise_of_the_paper_cannot_take_a_point_twice_and_survives_the_attempt():
    model = isgp("paper", seed=0)
    x = {"a": 40.0, "b": -64.0}
    model.learn_one({"a": 0.0, "b": 0.0}, "p")
    model.learn_one(x, "p")
    before = model.predict_proba_one({"a": 39.0, "b": -64.0})
    with pytest.raises(NotPositiveDefiniteError, match="raise noise_variance"):
        model.settle_one(x, "q", given="q", challenged=False)
    assert model.n_learned == 2
    assert model.predict_proba_one({"a": 39.0, "b": -64.0}) == before


def test_the_default_takes_a_point_as_often_as_it_comes():
    model = isgp(seed=0)
    for _ in range(50):
        model.learn_one({"a": 1.0}, "p")
    assert model.n_learned == 50


def test_a_seed_of_none_is_drawn_once():
    x = {"a": 1.0}
    one, other = isgp(), isgp()
    assert one.seed is None
    assert one.query_one(x, event_id="e") == one.query_one(x, event_id="e")
    assert one.query_one(x, event_id="e") != other.query_one(x, event_id="e")


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_arguments_replace_those_of_the_preset(preset):
    given = {"warm_up": 7, "budget": AtMost(3), "query": RandomAsk(0.5)}

    changed, unchanged = isgp(preset, 1, **given), isgp(preset, 1)

    for name in inspect.signature(SkepticalClassifier).parameters.keys() - {"model"}:
        expected = given.get(name, getattr(unchanged, name))
        found = getattr(changed, name)
        # Some rules are equal only to themselves.
        assert found == expected or repr(found) == repr(expected), name
    assert repr(changed.model) == repr(unchanged.model)


def test_an_unknown_argument_is_refused_by_name():
    with pytest.raises(TypeError, match="bugdet"):
        isgp(bugdet=AtMost(3))
