import math

import numpy as np
import pytest

from streamgp.kernels import Linear, Matern32, On, SquaredExponential
from streamgp.query.pool import prior_covariances


def squared_exponential(Z, length_scale):
    return np.exp(-0.5 * np.square(Z[:, None] - Z).sum(axis=2) / length_scale**2)


RNG = np.random.default_rng(1)
X = RNG.normal(size=(30, 3)) * [1.0, 10.0, 1e-3] + [0.0, 1e6, 5.0]


def dictionaries(X):
    return [dict(zip("abc", x, strict=True)) for x in X.tolist()]


def test_without_a_kernel_features_are_standardised_by_the_pool():
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = squared_exponential(Z, 0.9 * math.sqrt(3))
    np.testing.assert_allclose(prior_covariances(X, None), expected, atol=1e-9)


def test_a_kernel_sees_the_features_as_they_are():
    expected = squared_exponential(X, 2.0)
    found = prior_covariances(X, SquaredExponential(2.0))
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("kernel", [None, Matern32(2.0), Linear()])
def test_an_array_and_dictionaries_are_the_same_pool(kernel):
    np.testing.assert_allclose(
        prior_covariances(X, kernel), prior_covariances(dictionaries(X), kernel), rtol=1e-12
    )


def test_columns_of_an_array_are_named_by_their_numbers():
    by_number = prior_covariances(X, On([0, 2], SquaredExponential(1.0)))
    by_name = prior_covariances(dictionaries(X), On(["a", "c"], SquaredExponential(1.0)))
    np.testing.assert_array_equal(by_number, by_name)


@pytest.mark.parametrize("missing", [math.nan, None])
def test_what_is_missing_counts_as_the_mean_of_what_is_not(missing):
    holes = X.copy()
    holes[::4, 1] = math.nan
    present = holes[~np.isnan(holes[:, 1]), 1]
    filled = np.nan_to_num(holes, nan=present.mean())
    scales = filled.std(axis=0)
    scales[1] = present.std()
    expected = squared_exponential((filled - filled.mean(axis=0)) / scales, 0.9 * math.sqrt(3))
    xs = dictionaries(holes)
    for x in xs:
        if math.isnan(x["b"]):
            x["b"] = missing
    np.testing.assert_allclose(prior_covariances(holes, None), expected, atol=1e-9)
    np.testing.assert_allclose(prior_covariances(xs, None), expected, atol=1e-9)
    absent = [{k: v for k, v in x.items() if v is not None and v == v} for x in xs]
    np.testing.assert_allclose(prior_covariances(absent, None), expected, atol=1e-9)


def test_a_constant_feature_changes_nothing_but_the_number_of_features():
    constant = np.column_stack([X, np.full(30, 0.1)])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = squared_exponential(Z, 0.9 * math.sqrt(4))
    np.testing.assert_allclose(prior_covariances(constant, None), expected, atol=1e-9)
    constant[::3, 3] = math.nan
    np.testing.assert_allclose(prior_covariances(constant, None), expected, atol=1e-9)


def test_texts_are_told_apart_and_not_scaled():
    xs = [{"room": room} for room in ("hall", "bath", "hall", "attic")]
    K = prior_covariances(xs, None)
    other = math.exp(-1.0 / 0.9**2)
    expected = [[1.0, other, 1.0, other], [other, 1.0, other, other]]
    np.testing.assert_allclose(K[:2], expected, atol=1e-9)


def test_a_feature_may_be_a_text_here_and_a_number_there():
    xs = [{"a": 1.0}, {"a": "one"}, {"a": 3.0}, {"a": True}]
    K = prior_covariances(xs, None)
    assert K[0, 3] == pytest.approx(1.0)
    assert (K[1, [0, 2, 3]] < 0.9).all()


def test_the_pool_is_not_written_to():
    before = X.copy()
    prior_covariances(X, None)
    assert (before == X).all()


@pytest.mark.parametrize("pool", [[], np.empty((0, 2))])
def test_an_empty_pool_is_refused(pool):
    with pytest.raises(ValueError, match="at least one point, got none"):
        prior_covariances(pool, None)


@pytest.mark.parametrize(
    "pool",
    [3, None, [[10**400]], np.zeros(3), np.zeros((2, 2, 2)), [["a"]], "ab", [{"a": 1.0}, [1.0]]],
)
def test_what_is_no_pool_is_refused(pool):
    with pytest.raises(TypeError, match=r"array of numbers of shape \(P, d\) or a list of dict"):
        prior_covariances(pool, None)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e200])
def test_numbers_beyond_all_bounds_are_refused(value):
    with pytest.raises(ValueError, match="must be finite and at most 1e"):
        prior_covariances([[0.0], [value]], None)
    with pytest.raises(ValueError, match=r"must be (finite|at most)"):
        prior_covariances([{"a": 0.0}, {"a": value}], None)


def test_a_feature_that_is_neither_number_nor_text_is_refused():
    with pytest.raises(TypeError, match="'a' must be a number or a string"):
        prior_covariances([{"a": object()}], None)


@pytest.mark.parametrize("kernel", [1.0, SquaredExponential, "rbf"])
def test_what_is_no_kernel_is_refused(kernel):
    with pytest.raises(TypeError, match=r"must be one of streamgp\.kernels"):
        prior_covariances(X, kernel)
