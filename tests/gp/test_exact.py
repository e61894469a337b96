import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamgp.gp.cholesky import NotPositiveDefiniteError
from streamgp.gp.exact import ExactGP
from streamgp.kernels import SquaredExponential
from tests.helpers.gp_cases import Dense, assert_same, bits, problem, taught


@given(
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 3),
    st.floats(0.3, 3.0),
    st.floats(0.1, 10.0),
    st.floats(1e-2, 10.0),
    st.integers(0, 100),
)
def test_means_variance_and_evidence_equal_a_dense_solve(n, d, m, length_scale, variance, r, seed):
    X, Y = problem(n, d, m, seed)
    options = {"length_scale": length_scale, "variance": variance, "noise_variance": r}
    gp, dense = taught(X, Y, **options), Dense(X, Y, **options)
    probes = [X[0], X[-1] + 0.1, np.zeros(d), np.full(d, 1e3)]
    assert_same(gp, dense, probes)
    assert gp.log_evidence() == pytest.approx(dense.log_evidence(), rel=1e-9, abs=1e-9)


def test_one_point_by_hand():
    """Kernel 1, noise 1: mean y k / 2 and variance 1 - k² / 2, with k = exp(-1/2) a step away."""
    gp = taught([[0.0]], [[1.0, -3.0]], noise_variance=1.0)
    means, variance = gp.predict(np.array([1.0]))
    k = math.exp(-0.5)
    assert means.tolist() == pytest.approx([k / 2, -3 * k / 2])
    assert variance == pytest.approx(1 - k * k / 2)
    assert gp.log_evidence() == pytest.approx(-0.5 * (10 / 2 + 2 * math.log(2 * math.pi * 2)))


def test_nothing_learned_is_the_prior():
    gp = ExactGP(SquaredExponential(variance=2.0), 0.5)
    means, variance = gp.predict(np.array([1.0]))
    assert means.shape == (0,)
    assert variance == 2.0
    assert gp.log_evidence() == 0.0
    gp.add_target()
    means, variance = gp.predict(np.array([1.0]))
    assert means.tolist() == [0.0]
    means, variances = gp.leave_one_out()
    assert means.size == variances.size == 0


def test_scikit_learn_agrees():
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    X, Y = problem(50, 4, 3)
    kernel = gaussian_process.kernels.ConstantKernel(2.0) * gaussian_process.kernels.RBF(1.5)
    second = gaussian_process.GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, Y)
    gp = taught(X, Y, length_scale=1.5, variance=2.0, noise_variance=0.3)
    for x in problem(5, 4, seed=1)[0]:
        means, std = second.predict(x[None], return_std=True)
        found, variance = gp.predict(x)
        np.testing.assert_allclose(found, means[0], atol=1e-9)
        assert variance == pytest.approx(std.ravel()[0] ** 2, abs=1e-9)
    # Scikit-learn sums the evidence over the targets as well.
    assert gp.log_evidence() == pytest.approx(second.log_marginal_likelihood_value_, rel=1e-9)


def test_learning_after_predicting_changes_no_bit():
    X, Y = problem(60)
    one, other = (ExactGP(SquaredExponential(), 0.1) for _ in range(2))
    for x, y in zip(X, Y, strict=True):
        one.append(x, y)
        other.predict(x + 1.0)
        other.predict(x)
        other.predict(x)
        other.append(x, y)
    for x in problem(10, seed=1)[0]:
        assert bits(one.predict(x)) == bits(other.predict(x))
    assert one.log_evidence() == other.log_evidence()


def test_predicting_learning_and_predicting_the_same_point_is_no_stale_answer():
    gp = taught([[0.0]], [[1.0]], noise_variance=1.0)
    x = np.array([0.0])
    assert gp.predict(x)[0].tolist() == pytest.approx([1 / 2])
    gp.append(x, np.array([1.0]))
    assert gp.predict(x)[0].tolist() == pytest.approx([2 / 3])
    gp.relabel(0, np.array([0.0]))
    assert gp.predict(x)[0].tolist() == pytest.approx([1 / 3])
    gp.remove(0)
    assert gp.predict(x)[0].tolist() == pytest.approx([1 / 2])


@pytest.mark.parametrize("single", [False, True])
def test_a_new_target_changes_no_bit_of_the_others(single):
    X, Y = problem(60, m=1)
    options = {"noise_variance": 0.1, "single_precision": single}
    one, other = (taught(X[:30], Y[:30], **options) for _ in range(2))
    probe = np.zeros(3)
    before = one.predict(probe)[0][0]
    one.predict(X[30])
    for _ in range(7):
        one.add_target()
    assert one.predict(probe)[0].tolist() == [before, *[0.0] * 7]
    for x, y in zip(X[30:], Y[30:], strict=True):
        one.append(x, np.append(y, np.zeros(7)))
        other.append(x, y)
    for x in problem(10, seed=1)[0]:
        assert one.predict(x)[0][0] == other.predict(x)[0][0]
        assert one.predict(x)[1] == other.predict(x)[1]


def test_a_longer_target_brings_functions_that_were_zero_before():
    X, Y = problem(20, m=3)
    Y[:10, 1:] = 0.0
    gp = ExactGP(SquaredExponential(), 0.1)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        gp.append(x, y[: 1 if i < 10 else 3])
    assert gp.n_targets == 3
    assert_same(gp, Dense(X, Y, noise_variance=0.1), X[:3])


@given(st.integers(2, 25), st.integers(0, 100), st.floats(1e-2, 1.0))
def test_leave_one_out_equals_leaving_each_out(n, seed, noise_variance):
    X, Y = problem(n, seed=seed)
    gp, dense = (
        taught(X, Y, noise_variance=noise_variance),
        Dense(X, Y, noise_variance=noise_variance),
    )
    means, variances = gp.leave_one_out()
    for i in range(n):
        expected_means, expected_variance = dense.without(i).predict(X[i])
        np.testing.assert_allclose(means[i], expected_means, atol=1e-9)
        assert variances[i] == pytest.approx(expected_variance, abs=1e-9)


def test_a_relabelled_point_is_as_if_it_had_been_learned_so():
    X, Y = problem(30)
    gp = taught(X, Y, noise_variance=0.1)
    factor = gp._factor.dense()
    changed = Y.copy()
    for i in (0, 17, 29):
        changed[i] = [3.0, Y[i, 1]]
        gp.relabel(i, changed[i])
    assert_same(gp, Dense(X, changed, noise_variance=0.1), problem(5, seed=1)[0])
    assert np.array_equal(gp._factor.dense(), factor)
    gp.append(X[3] + 0.5, np.ones(2))
    dense = Dense(np.vstack([X, X[3] + 0.5]), np.vstack([changed, np.ones(2)]), noise_variance=0.1)
    assert_same(gp, dense, X[:3])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("n", "changed"), [(30, [0, 17, 29]), (150, [3, 120])])
def test_relabelling_gives_the_bits_of_learning_so_in_the_first_place(n, changed, single):
    X, Y = problem(n)
    options = {"noise_variance": 0.1, "single_precision": single}
    gp = taught(X, Y.copy(), **options)
    for i in changed:
        Y[i] = [3.0, -Y[i, 1]]
        gp.relabel(i, Y[i])
    twin = taught(X, Y, **options)
    for x in problem(5, seed=1)[0]:
        assert bits(gp.predict(x)) == bits(twin.predict(x))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("order", [[0], [29], [28, 3, 15, 0, 25], [0] * 29])
def test_removing_gives_the_bits_of_never_having_learned(order, single):
    X, Y = problem(30)
    options = {"noise_variance": 0.1, "single_precision": single}
    gp = taught(X, Y, **options)
    for i in order:
        gp.remove(i)
        X, Y = np.delete(X, i, axis=0), np.delete(Y, i, axis=0)
    twin = taught(X, Y, **options)
    for x in problem(5, seed=1)[0]:
        assert bits(gp.predict(x)) == bits(twin.predict(x))


@pytest.mark.parametrize("order", [[10], [0] * 30])
def test_a_removed_point_is_as_if_it_had_never_been_learned(order):
    X, Y = problem(30)
    gp = taught(X, Y, noise_variance=0.1)
    for i in order:
        gp.predict(X[0])
        gp.remove(i)
        X, Y = np.delete(X, i, axis=0), np.delete(Y, i, axis=0)
    assert gp.n == len(X)
    if len(X):
        assert_same(gp, Dense(X, Y, noise_variance=0.1), problem(5, seed=1)[0])
    else:
        assert gp.predict(np.zeros(3))[1] == 1.0
    gp.append(np.zeros(3), np.ones(2))
    X, Y = np.vstack([X, np.zeros(3)]), np.vstack([Y, np.ones(2)])
    assert_same(gp, Dense(X, Y, noise_variance=0.1), problem(5, seed=1)[0])


def test_new_features_are_zero_at_the_old_points():
    X, Y = problem(20, d=4)
    X[:10, 2:] = 0.0
    gp = taught(X[:10, :2], Y[:10], noise_variance=0.1)
    gp.predict(X[0, :2])
    gp.resize(4)
    gp.resize(4)
    dense = Dense(X[:10], Y[:10], noise_variance=0.1)
    assert_same(gp, dense, X[8:12])
    for x, y in zip(X[10:], Y[10:], strict=True):
        gp.append(x, y)
    assert_same(gp, Dense(X, Y, noise_variance=0.1), X[8:12])


def test_new_features_may_come_after_all_points_have_gone():
    gp = taught([[1.0], [2.0]], [[1.0], [0.0]], noise_variance=0.1)
    gp.remove(0)
    gp.remove(0)
    gp.resize(3)
    X, Y = problem(5, d=3, m=1)
    for x, y in zip(X, Y, strict=True):
        gp.append(x, y)
    assert_same(gp, Dense(X, Y, noise_variance=0.1), X[:2])


def test_narrowing_undoes_widening():
    X, Y = problem(20, d=2)
    gp, twin = (taught(X, Y, noise_variance=0.1) for _ in range(2))
    gp.resize(5)
    gp.resize(2)
    for x in problem(5, d=2, seed=1)[0]:
        assert bits(gp.predict(x)) == bits(twin.predict(x))


@pytest.mark.parametrize("offset", [1e6, -1e6, 1e8])
def test_an_offset_of_all_points_changes_nothing(offset):
    """Also in features that are much larger than their differences."""
    X, Y = problem(40)
    X = np.round(X, 4)
    gp = taught(X + offset, Y, noise_variance=0.1)
    dense = Dense(X, Y, noise_variance=0.1)
    # An offset of 1e8 leaves 8 digits behind the point.
    assert_same(gp, dense, np.empty((0, 3)))
    for x in X[:5]:
        means, variance = gp.predict(x + offset)
        np.testing.assert_allclose(means, dense.predict(x)[0], atol=1e-6)
        assert variance == pytest.approx(dense.predict(x)[1], abs=1e-6)


@pytest.mark.parametrize("first", [True, False])
def test_an_outlier_far_away_costs_no_digits(first):
    X, Y = problem(20)
    outlier = np.array([[1e9, -1e9, 1e9]])
    X = np.vstack([outlier, X] if first else [X, outlier])
    Y = np.vstack([Y, np.ones(2)])
    gp = taught(X, Y, noise_variance=0.1)
    # Relative to an outlier that came first, 1e9 away, coordinates keep 7 digits.
    assert_same(gp, Dense(X, Y, noise_variance=0.1), [*X[3:6], outlier[0]], tolerance=1e-6)


@pytest.mark.parametrize("offset", [0.0, 3.0, 10.0, 30.0, 1e3])
def test_a_repeated_point_with_a_tiny_noise_is_refused_and_nothing_changes(offset):
    rng = np.random.default_rng(0)
    gp = ExactGP(SquaredExponential(2.0), 1e-16)
    gp.append(np.zeros(5), np.array([1.0]))
    for _ in range(20):
        x = rng.normal(size=5) + offset * rng.normal(size=5)
        if gp.predict(x)[1] > 1e-3:
            gp.append(x, np.array([0.0]))
            n, before = gp.n, bits(gp.predict(x + 0.1))
            with pytest.raises(
                NotPositiveDefiniteError,
                match=r"residual variance .*, expected more than .*; raise noise_variance or drop",
            ):
                gp.append(x.copy(), np.array([1.0, 1.0]))
            assert gp.n == n
            assert gp.n_targets == 1
            assert bits(gp.predict(x + 0.1)) == before
    assert gp.n > 3 or offset == 0.0


def test_two_thousand_repeated_points_stay_exact_with_a_real_noise():
    """n equal points are one point with noise_variance / n."""
    gp = ExactGP(SquaredExponential(), 0.5)
    x = np.array([0.3, -0.2])
    for i in range(2000):
        gp.append(x, np.array([float(i % 2)]))
    means, variance = gp.predict(x)
    noise = 0.5 / 2000
    assert means[0] == pytest.approx(0.5 / (1 + noise), abs=1e-12)
    assert variance == pytest.approx(noise / (1 + noise), abs=1e-12)


def test_a_hundred_near_duplicates_are_learned_or_refused_but_never_nan():
    rng = np.random.default_rng(0)
    gp = ExactGP(SquaredExponential(), 1e-16)
    refused = 0
    for _ in range(200):
        try:
            gp.append(rng.normal(size=2) * 0.1, rng.normal(size=1))
        except NotPositiveDefiniteError:
            refused += 1
        means, variance = gp.predict(rng.normal(size=2) * 0.1)
        assert math.isfinite(means[0])
        assert 0.0 <= variance <= 1.0
    assert refused > 100


extremes = st.sampled_from(
    [0.0, -0.0, 5e-324, 1e-310, 1e-160, 1e-8, 1.0, -1.0, 1e3, 1e8, 1e150, 1e154, 1e200, 1.7e308]
)
values = st.one_of(
    extremes, extremes.map(lambda v: -v), st.floats(allow_nan=False, allow_infinity=False)
)


@given(
    st.lists(st.tuples(arrays(float, 2, elements=values), st.floats(-1, 1)), max_size=12),
    arrays(float, 2, elements=values),
    st.sampled_from([0.0, 1e-16, 1e-4, 0.5]),
    st.sampled_from([1e-3, 1.0, 1e6]),
)
def test_no_finite_input_gives_nan(examples, probe, noise_variance, length_scale):
    """Each input is taken, or refused by a ValueError that says why and changes nothing."""
    gp = ExactGP(SquaredExponential(length_scale), noise_variance)
    gp.add_target()
    refusals = []
    with np.errstate(over="ignore"):
        for x, y in [*examples, (probe, 0.0)]:
            n = gp.n
            try:
                means, variance = gp.predict(x)
                assert np.isfinite(means).all()
                assert 0.0 <= variance <= 1.0
                gp.append(x, np.array([y]))
            except ValueError as error:
                refusals.append(str(error))
                n -= 1
            assert gp.n == n + 1
        assert math.isfinite(gp.log_evidence())
    advice = "raise noise_variance or drop repeated points", "scale the features"
    assert all(refusal.endswith(advice) for refusal in refusals)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_the_noise_must_be_non_negative_and_finite(value):
    with pytest.raises(ValueError, match="noise_variance must be non-negative and finite, got"):
        ExactGP(SquaredExponential(), value)


def test_arguments_are_neither_changed_nor_kept():
    X, Y = problem(20)
    gp, twin = (ExactGP(SquaredExponential(), 0.1) for _ in range(2))
    for x, y in zip(X, Y, strict=True):
        mine, target = x.copy(), y.copy()
        gp.predict(mine)
        gp.append(mine, target)
        assert np.array_equal(mine, x)
        assert np.array_equal(target, y)
        mine[:], target[:] = 99.0, 99.0
        twin.append(x, y)
    assert bits(gp.predict(np.zeros(3))) == bits(twin.predict(np.zeros(3)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda gp: pickle.loads(pickle.dumps(gp))])
def test_a_copy_goes_its_own_way_from_the_same_bits(copied):
    X, Y = problem(40)
    gp = taught(X[:30], Y[:30], noise_variance=0.1)
    gp.predict(X[30])
    twin, untouched = copied(gp), copied(gp)
    before = bits(untouched.predict(X[35]))
    for x, y in zip(X[30:], Y[30:], strict=True):
        gp.append(x, y)
        twin.append(x, y)
        assert bits(gp.predict(np.ones(3))) == bits(twin.predict(np.ones(3)))
    assert bits(untouched.predict(X[35])) == before


def test_predicting_leaves_no_trace_in_a_pickle():
    X, Y = problem(10)
    gp = taught(X, Y, noise_variance=0.1)
    before = pickle.dumps(gp)
    gp.predict(X[0])
    assert pickle.dumps(gp) == before
