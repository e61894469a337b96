import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.bounded import Adoption, UnboundedGP
from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.exact import ExactGP
from streamgp.kernels import SquaredExponential
from tests.helpers.gp_cases import bits, problem


def taught(process, X, Y):
    for x, y in zip(X, Y, strict=True):
        process.append(x, y)
    return process


def test_it_is_the_exact_process_bitwise():
    X, Y = problem(30)
    gp = taught(UnboundedGP(SquaredExponential(), 0.3), X, Y)
    exact = taught(ExactGP(SquaredExponential(), 0.3), X, Y)
    assert bits(gp.predict(X[0])) == bits(exact.predict(X[0]))
    assert gp.log_evidence() == exact.log_evidence()
    for mine, others in zip(gp.predict_many(X), exact.predict_many(X), strict=True):
        assert mine.tobytes() == others.tobytes()


def test_numbers_stay_when_examples_go():
    X, Y = problem(6)
    gp, exact = (
        taught(UnboundedGP(SquaredExponential(), 0.3), X, Y),
        ExactGP(SquaredExponential(), 0.3),
    )
    gp.remove(1)
    gp.remove(4)
    gp.relabel(5, -Y[5])
    assert gp.retained == [0, 2, 3, 5]
    taught(exact, X[[0, 2, 3, 5]], [Y[0], Y[2], Y[3], -Y[5]])
    assert bits(gp.predict(X[1])) == bits(exact.predict(X[1]))
    assert gp.append(X[1], Y[1]) == []
    assert gp.retained == [0, 2, 3, 5, 6]
    for number in (1, 4, 7, -1):
        with pytest.raises(KeyError, match=f"example {number} is not retained"):
            gp.remove(number)


@given(st.lists(st.sampled_from(["learn", "widen", "target", "relabel"]), max_size=25))
def test_adopted_hyperparameters_are_bitwise_as_if_they_had_always_been_these(steps):
    rng = np.random.default_rng(0)
    old = UnboundedGP(SquaredExponential(), 0.5)
    new = UnboundedGP(SquaredExponential(0.7, 2.0), 0.1)
    d = m = 1
    for step in ["learn", *steps, "learn"]:
        if step == "learn":
            x, y = rng.normal(size=d), rng.normal(size=m)
            for gp in (old, new):
                gp.append(x, y)
        elif step == "widen":
            d += 1
            for gp in (old, new):
                gp.resize(d)
        elif step == "target":
            m += 1
            for gp in (old, new):
                gp.add_target()
        else:
            for gp in (old, new):
                gp.relabel(gp.retained[0], np.arange(float(m)))
    assert old.adopt(Adoption(0.1), lambda _: SquaredExponential(0.7, 2.0)) == []
    probe = rng.normal(size=d)
    assert bits(old.predict(probe)) == bits(new.predict(probe))
    assert old.retained == new.retained
    for gp in (old, new):
        gp.append(probe, np.ones(m))
    assert bits(old.predict(probe)) == bits(new.predict(probe))


def test_hyperparameters_under_which_an_example_is_refused_are_not_adopted():
    X, Y = problem(5)
    gp = taught(UnboundedGP(SquaredExponential(), 0.3), [*X, X[0]], [*Y, Y[0]])
    before = bits(gp.predict(X[1]))
    with pytest.raises(NotPositiveDefiniteError):
        gp.adopt(Adoption(0.0), lambda _: SquaredExponential())
    assert bits(gp.predict(X[1])) == before


def test_nothing_learned_is_nothing_to_learn_again():
    gp = UnboundedGP(SquaredExponential(), 0.5)
    gp.add_target()
    gp.adopt(Adoption(0.5), lambda _: SquaredExponential(variance=3.0))
    assert gp.predict(np.zeros(2))[1] == 3.0
    assert gp.n_targets == 1


def test_two_examples_are_learned_again_for_each_that_comes():
    X, Y = problem(30)
    gp, adoption, found = UnboundedGP(SquaredExponential(), 0.5), Adoption(0.1), []
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y)
        found.append(gp.adopt(adoption, lambda _: SquaredExponential(2.0), work=0.0))
    assert found[:2] == [[], []]
    # From the second on there is nothing but the latest one to learn.
    assert gp.noise_variance == 0.1
    assert gp.n == 30
