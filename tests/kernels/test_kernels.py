"""Properties of single kernels, besides the laws that hold for all of them."""

import math

import numpy as np
import pytest

from streamgp.features import Columns
from streamgp.gp.exact import ExactGP
from streamgp.kernels import (
    Categorical,
    Constant,
    Linear,
    Matern32,
    Matern52,
    On,
    Product,
    RationalQuadratic,
    SquaredExponential,
    Sum,
    White,
)
from tests.helpers.kernel_cases import bound_rows, columns_of

TAKES = {
    SquaredExponential: ("length_scale", "variance"),
    Matern32: ("length_scale", "variance"),
    Matern52: ("length_scale", "variance"),
    RationalQuadratic: ("length_scale", "variance", "alpha"),
    Categorical: ("length_scale", "variance"),
    Linear: ("variance",),
    Constant: ("variance",),
    White: ("variance",),
}


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 1e-310])
@pytest.mark.parametrize(
    ("kernel", "names"), TAKES.items(), ids=lambda k: getattr(k, "__name__", "")
)
def test_hyperparameters_must_be_positive_and_finite(kernel, names, value):
    for name in names:
        with pytest.raises(ValueError, match=f"^{name} must be positive and finite, got {value}"):
            kernel(**{name: value})


@pytest.mark.parametrize("kernel", [SquaredExponential, Matern32, RationalQuadratic, Categorical])
def test_length_scales_by_name_must_be_positive_and_finite(kernel):
    with pytest.raises(
        ValueError, match="length_scale of 'light' must be positive and finite, got"
    ):
        kernel({"noise": 1.0, "light": 0.0})
    with pytest.raises(ValueError, match="length_scale must name at least one feature; give a num"):
        kernel({})


def test_the_order_of_length_scales_by_name_plays_no_part():
    one, other = SquaredExponential({"b": 2.0, "a": 1.0}), SquaredExponential({"a": 1.0, "b": 2.0})
    assert one == other
    assert hash(one) == hash(other)
    assert one.theta.tolist() == other.theta.tolist() == [0.0, math.log(2.0), 0.0]


def test_length_scales_by_name_are_a_mapping_that_follows_nothing():
    scales = {"b": 2.0, "a": 1.0}
    kernel = SquaredExponential(scales)
    scales["a"] = 7.0
    assert dict(kernel.length_scale) == {"a": 1.0, "b": 2.0}
    assert len(kernel.length_scale) == 2
    assert repr(kernel) == "SquaredExponential(length_scale={'a': 1.0, 'b': 2.0}, variance=1.0)"


def test_a_feature_that_is_not_named_has_the_geometric_mean_of_the_others():
    named = SquaredExponential({"a": 0.5, "b": 8.0})
    spelled = SquaredExponential({"a": 0.5, "b": 8.0, "new": 2.0})
    log = [{"a": 0.1, "b": 3.0, "new": 1.0}, {"a": -0.2, "new": 0.3}, {"b": 1.0}]
    kernels = [bound_rows(kernel, log) for kernel in (named, spelled)]
    matrices = [kernel.matrix(rows) for kernel, rows in kernels]
    np.testing.assert_allclose(*matrices, rtol=1e-14)


def test_a_length_scale_for_all_is_that_of_each():
    log = [{"a": 0.1, "b": 3.0, "place": "hall"}, {"a": -0.2, "place": "bath"}, {"b": 1.0}]
    for kind in (SquaredExponential, Matern52, RationalQuadratic, Categorical):
        one, rows = bound_rows(kind(1.3), log)
        each, others = bound_rows(kind({"a": 1.3, "b": 1.3, "place": 1.3}), log)
        np.testing.assert_allclose(one.matrix(rows), each.matrix(others), rtol=1e-14)
        of_one, of_each = list(one.gradients(rows)), list(each.gradients(others))
        np.testing.assert_allclose(of_one[0], sum(of_each[:3]), rtol=1e-12, atol=1e-15)


def test_texts_that_differ_lie_as_far_apart_as_two_values_of_a_standardised_number():
    """By expectation: a squared distance of 2."""
    kernel, rows = bound_rows(SquaredExponential(), [{"place": "hall"}, {"place": "bath"}, {}])
    expected = np.exp(-0.5 * np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0]]))
    np.testing.assert_allclose(kernel.matrix(rows), expected, rtol=1e-15)


def test_a_kernel_on_names_ignores_all_other_features():
    kernel = On(["a", "place"], SquaredExponential() * Categorical())
    log = [{"a": 1.0, "place": "hall"}, {"a": 0.5, "place": "bath"}, {"a": 0.7}]
    noisy = [{**x, "b": 7.0 * i, "c": "cd"[i % 2]} for i, x in enumerate(log)]
    matrices = []
    for events in (log, noisy):
        bound, rows = bound_rows(kernel, events)
        matrices.append(bound.matrix(rows))
    np.testing.assert_array_equal(*matrices)


@pytest.mark.parametrize("names", ["light", 3, None])
def test_names_must_be_a_list(names):
    with pytest.raises(TypeError, match="names must be a list of names of features, got"):
        On(names, Linear())


def test_names_must_name_a_feature_and_their_order_plays_no_part():
    with pytest.raises(ValueError, match="names must name at least one feature, got none"):
        On([], Linear())
    assert On(["b", "a", "b"], Linear()) == On({"a", "b"}, Linear())
    assert On(["b", "a"], Linear()).names == ("a", "b")


@pytest.mark.parametrize("wrong", ["rbf", 2.0, SquaredExponential])
def test_kernels_consist_of_kernels(wrong):
    for make in (
        lambda: On(["a"], wrong),
        lambda: Sum(Linear(), wrong),
        lambda: Product(wrong, Linear()),
    ):
        with pytest.raises(
            TypeError, match=r"must be one of streamgp\.kernels, got .*; a kernel of your own"
        ):
            make()


def test_a_kernel_of_ones_own_is_told_what_it_lacks():
    part = type("Part", (), {n: m for n, m in vars(Linear).items() if n in ("embed", "matrix")})
    lacks = r"; this one lacks theta, with_theta\(theta\), bound\(columns\), stationary, .*$"
    with pytest.raises(TypeError, match=lacks):
        On(["a"], part())


def test_a_kernel_may_pass_its_methods_on_to_another_one():
    class Delegate:
        def __getattr__(self, name):
            return getattr(SquaredExponential(), name)

    assert On(["a"], Delegate()).stationary


@pytest.mark.parametrize("wrong", ["2", None, True, [1.0], SquaredExponential])
def test_only_kernels_and_numbers_are_added_and_multiplied(wrong):
    refused = r"unsupported operand|can't multiply|must be one of streamgp\.kernels"
    with pytest.raises(TypeError, match=refused):
        Linear() + wrong
    with pytest.raises(TypeError, match=refused):
        Linear() * wrong


def test_operators_make_sums_and_products():
    a, b, c = Linear(), Constant(), White()
    assert a + b * c == Sum(a, Product(b, c))
    assert (a + b) * c == Product(Sum(a, b), c)


@pytest.mark.parametrize("alpha", [1e6, 1e9])
def test_a_rational_quadratic_of_many_like_scales_is_a_squared_exponential(alpha):
    log = [{"a": a} for a in (0.0, 0.1, 1.0, 5.0)]
    rational, rows = bound_rows(RationalQuadratic(1.3, alpha=alpha), log)
    smooth, others = bound_rows(SquaredExponential(1.3), log)
    # They differ by h² / 2 alpha of the covariance.
    np.testing.assert_allclose(rational.matrix(rows), smooth.matrix(others), rtol=30.0 / alpha)


def test_categories_of_numbers_are_equal_or_not():
    kernel, rows = bound_rows(Categorical(), [{"room": 1}, {"room": 2}, {"room": 900}, {"room": 1}])
    e = math.exp(-1.0)
    assert kernel.vector(rows, rows[0]).tolist() == [1.0, e, e, 1.0]


def test_white_makes_a_repeat_another_event():
    """Noise inside of the kernel: the same means as outside, and as much more variance."""
    inside = ExactGP(SquaredExponential() + White(0.5), noise_variance=0.0)
    outside = ExactGP(SquaredExponential(), noise_variance=0.5)
    x = np.array([1.0])
    for gp in (inside, outside):
        gp.add_target()
        for y in (1.0, 0.0, 1.0):
            gp.append(x, np.array([y]))
    (mean, variance), (other_mean, other_variance) = inside.predict(x), outside.predict(x)
    assert mean == pytest.approx(other_mean, rel=1e-12)
    assert variance == pytest.approx(other_variance + 0.5, rel=1e-12)


def test_a_linear_kernel_and_a_constant_make_linear_regression():
    """Without noise, two points determine the line."""
    gp = ExactGP(Linear(100.0) + Constant(100.0), noise_variance=1e-9)
    for x, y in ((0.0, 1.0), (2.0, 5.0)):
        gp.append(np.array([x]), np.array([y]))
    means, variance = gp.predict(np.array([3.0]))
    assert means[0] == pytest.approx(7.0, rel=1e-6)
    assert variance == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "kernel", [SquaredExponential(0.5), Matern32(), Linear(), RationalQuadratic()]
)
@pytest.mark.parametrize("value", [math.inf, math.nan, 1e155, 1e308])
def test_a_point_whose_square_is_not_finite_is_refused(kernel, value):
    too_large = pytest.raises(ValueError, match="finite and its square too; scale the features")
    with too_large, np.errstate(over="ignore"):  # numpy warns of the infinity before we refuse it
        kernel.embed(np.array([0.0, value]))


def test_scikit_learn_agrees():
    second = pytest.importorskip("sklearn.gaussian_process.kernels")
    X = np.random.default_rng(0).normal(size=(20, 3))
    scales = {0: 0.5, 1: 1.0, 2: 3.0}
    # The last entry says which of our hyperparameters theirs are; None where theirs are others.
    pairs = [
        (SquaredExponential(1.3), second.RBF(1.3), [0]),
        (Matern32(1.3), second.Matern(1.3, nu=1.5), [0]),
        (Matern52(0.7), second.Matern(0.7, nu=2.5), [0]),
        (RationalQuadratic(1.3, alpha=0.6), second.RationalQuadratic(1.3, 0.6), [2, 0]),
        (Constant(2.0), second.ConstantKernel(2.0), [0]),
        (White(0.5), second.WhiteKernel(0.5), [0]),
        (Linear() + Constant(2.25), second.DotProduct(1.5), None),
        (
            SquaredExponential(scales, 2.0),
            second.RBF([0.5, 1.0, 3.0]) * second.ConstantKernel(2.0),
            [0, 1, 2, 3],
        ),
        (
            Matern32(scales) + White(0.1),
            second.Matern([0.5, 1.0, 3.0], nu=1.5) + second.WhiteKernel(0.1),
            [0, 1, 2, 4],
        ),
    ]
    columns = Columns(range(3))
    for kernel, other, ours in pairs:
        bound = kernel.bound(columns)
        rows = np.array([bound.embed(x) for x in X])
        expected, their_gradients = other(X, eval_gradient=True)
        np.testing.assert_allclose(bound.matrix(rows), expected, rtol=1e-12, atol=1e-14)
        gradients = list(bound.gradients(rows))
        for j, i in enumerate(ours or []):
            np.testing.assert_allclose(gradients[i], their_gradients[:, :, j], atol=1e-12)


def test_nothing_of_a_text_depends_on_the_order_of_appearance():
    one = columns_of([{"place": "hall"}, {"place": "bath"}])
    other = columns_of([{"place": "bath"}, {"place": "hall"}])
    assert one.vector({"place": "hall"}).tobytes() == other.vector({"place": "hall"}).tobytes()


def test_a_number_stands_for_a_constant():
    kernel = Matern52(2.0)
    assert 2.0 * kernel == Product(Constant(2.0), kernel)
    assert kernel * 2 == Product(kernel, Constant(2.0))
    assert kernel + np.float32(0.5) == Sum(kernel, Constant(0.5))
    assert np.float64(0.5) + kernel == Sum(Constant(0.5), kernel)
    events = [{"a": 0.0}, {"a": 1.0}]
    (kernel, rows), (fourfold, its_rows) = (bound_rows(k, events) for k in (kernel, 4.0 * kernel))
    assert fourfold.matrix(its_rows) == pytest.approx(4.0 * kernel.matrix(rows))
    for wrong in (-1.0, 0.0, math.nan):
        with pytest.raises(ValueError, match="variance must be positive and finite, got"):
            wrong * kernel


def test_kernels_are_summed_up():
    kernels = [Linear(), Constant(), White()]
    assert sum(kernels) == Linear() + Constant() + White()
