import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.features import Columns
from streamgp.gp.random_features import RandomFeatures, median_distance
from streamgp.kernels import (
    Categorical,
    Linear,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)

KERNELS = [
    SquaredExponential(1.5),
    Matern32(2.0),
    Matern52({"a": 1.0, "b": 3.0}),
    RationalQuadratic(1.5, alpha=0.7),
    Categorical(0.9),
]


def features_of(kernels, names=("a", "b"), texts=(), n=50, seed=1, unit=1.0):
    features = RandomFeatures(kernels, n, seed, unit)
    features.widen(Columns(names, texts))
    return features


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_products_are_near_the_kernel(kernel):
    """Each is a mean of 20 000 cosines, whose variance is at most 1/2."""
    columns = Columns(["a", "b"])
    features = features_of([kernel], n=20_000)
    points = np.random.default_rng(2).normal(size=(6, 2)).round(1)
    points[3, 1] = points[0, 1]
    bound = kernel.bound(columns)
    rows = np.array([bound.embed(x) for x in points])
    Phi = np.array([features(x)[0] for x in points])
    assert Phi @ Phi.T == pytest.approx(bound.matrix(rows), abs=4.5 * math.sqrt(0.5 / 20_000))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_texts_have_the_covariances_that_the_kernel_gives_them(kernel):
    columns = Columns(["a", "b"], texts=[1])
    features = RandomFeatures([kernel], 20_000, seed=3)
    features.widen(columns)
    bound = kernel.bound(columns)
    points = [
        columns.vector(x)
        for x in ({"a": 0.0, "b": "hall"}, {"a": 0.5, "b": "hall"}, {"a": 0.5, "b": "den"}, {})
    ]
    rows = np.array([bound.embed(x) for x in points])
    Phi = np.array([features(x)[0] for x in points])
    assert Phi @ Phi.T == pytest.approx(bound.matrix(rows), abs=4.5 * math.sqrt(0.5 / 20_000))


class Cauchy:
    """Of functions of a distance, `1 / (1 + |x - x'|²)`: a mixture with exponential weights."""

    symbolic = False
    variance = 1.0

    def __init__(self, length_scale=1.0):
        self.length_scale = length_scale

    def frequency_factors(self, uniform):
        return np.sqrt(-2.0 * np.log(uniform()))


def test_a_custom_kernel_states_its_spectral_density():
    features = features_of([Cauchy(2.0)], ["a"], n=20_000)
    here, there = (features(np.array([a]))[0] for a in (0.0, 3.0))
    expected = 1.0 / (1.0 + (3.0 / 2.0) ** 2)
    assert here @ there == pytest.approx(expected, abs=4.5 * math.sqrt(0.5 / 20_000))


def test_length_scales_are_in_the_unit():
    half, whole = features_of(KERNELS[:2], unit=2.0), features_of(KERNELS[:2])
    x = np.array([0.3, -0.8])
    assert half(2.0 * x) == pytest.approx(whole(x))


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 4))
def test_neither_order_nor_time_of_appearance_matter(names, n_late):
    values = {"a": 0.3, "b": -1.2, "c": 4.0, "d": 0.1}
    late = RandomFeatures(KERNELS[:2], 10, seed=1)
    late.widen(Columns(names[:n_late]))
    late.widen(Columns(names))
    sorted_ = features_of(KERNELS[:2], sorted(names), n=10)
    found = late(late.columns.vector(values))
    assert found == pytest.approx(sorted_(sorted_.columns.vector(values)), abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_a_feature_that_appears_late_leaves_what_was_seen_before_as_it_was(kernel):
    features = RandomFeatures([kernel], 10, seed=1)
    features.widen(Columns(["a", "b"]))
    before = features(np.array([1.0, 2.0]))
    features.widen(Columns(["a", "b", "late"]))
    # The geometric mean of named length scales is that of an unnamed feature: b keeps its own.
    assert features(np.array([1.0, 2.0, 0.0])) == pytest.approx(before, abs=1e-12)


def test_names_and_seeds_and_experts_have_frequencies_of_their_own():
    x = np.array([1.0])
    one, other = features_of([KERNELS[0]] * 2, ["a"])(x)
    assert not np.allclose(one, other)
    assert not np.allclose(one, features_of([KERNELS[0]], ["b"])(x)[0])
    assert not np.allclose(one, features_of([KERNELS[0]], ["a"], seed=2)(x)[0])
    assert not np.allclose(features_of([KERNELS[0]], [1])(x), features_of([KERNELS[0]], ["1"])(x))


def test_equal_names_have_equal_frequencies():
    x = np.array([1.0])
    for one, other in (("a", np.str_("a")), (1, np.int64(1)), (1, True)):
        assert np.array_equal(
            features_of(KERNELS[:1], [one])(x), features_of(KERNELS[:1], [other])(x)
        )


def test_what_is_remembered_of_texts_is_bounded_and_no_state(monkeypatch):
    monkeypatch.setattr("streamgp.gp.random_features._REMEMBERED", 8)
    features = features_of([KERNELS[0]], ["a"], texts=[0])
    fresh = pickle.dumps(features)
    first = features(np.array([5.0]))
    for code in range(1, 40):
        features(np.array([float(code)]))
        assert len(features._phases) <= 8
    assert np.array_equal(features(np.array([5.0])), first)
    assert pickle.dumps(features) == fresh


def test_every_point_has_length_1():
    features = features_of(KERNELS)
    for x in np.random.default_rng(0).normal(size=(20, 2)) * 1e6:
        assert np.vecdot(features(x), features(x)) == pytest.approx(np.ones(5))


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([], ValueError, "kernels must name at least one kernel, got none"),
        ([Linear()], TypeError, "need kernels that state their spectral density .*, got Lin"),
    ],
)
def test_what_has_no_random_features_is_refused(kernels, error, message):
    with pytest.raises(error, match=message):
        RandomFeatures(kernels, 50, 1)


def test_median_distance_of_points_at_one_place_is_0():
    columns = Columns(["a"])
    assert median_distance(columns, np.ones((5, 1))) == 0.0
    assert median_distance(columns, np.ones((1, 1))) == 0.0
    assert median_distance(columns, np.array([[0.0], [2.0]])) == 2.0


def test_two_texts_are_the_root_of_2_apart():
    columns = Columns(["a"], texts=[0])
    assert median_distance(columns, np.array([[3.0], [4.0]])) == pytest.approx(math.sqrt(2.0))
