import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.datasets import GaussianClasses, WiFiRooms


def test_wifi_rooms_come_one_after_another():
    """500 readings in each of four rooms, in recorded order."""
    rooms = [room for _, room in WiFiRooms()]
    assert rooms == [1] * 500 + [2] * 500 + [3] * 500 + [4] * 500
    assert type(rooms[0]) is int


def test_wifi_readings_are_seven_signal_strengths():
    readings = [x for x, _ in WiFiRooms()]
    assert all(list(x) == [f"wap{i}" for i in range(1, 8)] for x in readings)
    levels = np.array([list(x.values()) for x in readings])
    assert levels.dtype == float
    # dBm: between the noise floor and touching the station.
    assert -100 <= levels.min() < levels.max() < 0


def test_the_first_wifi_reading_is_that_of_the_source():
    x, room = next(iter(WiFiRooms()))
    assert [*x.values(), room] == [-64, -56, -61, -66, -71, -82, -81, 1]


@pytest.mark.parametrize("dataset", [WiFiRooms(), GaussianClasses(seed=1)], ids=["wifi", "classes"])
def test_a_dataset_is_what_it_says_and_repeats_itself(dataset):
    one, other = list(dataset), list(copy.deepcopy(dataset))
    assert one == other
    assert len(one) == dataset.n_samples
    assert {len(x) for x, _ in one} == {dataset.n_features}
    assert len({y for _, y in one}) == dataset.n_classes
    assert [x for x, _ in dataset.take(3)] == [x for x, _ in one[:3]]
    one[0][0].clear()
    assert list(dataset) == other


@given(st.integers(1, 20), st.integers(0, 100), st.sampled_from(["random", "sequential"]))
def test_every_class_has_the_same_number_of_points(n, seed, order):
    labels = [y for _, y in GaussianClasses(n, seed=seed, order=order)]
    assert Counter(labels) == dict.fromkeys(range(6), n)


@given(st.integers(0, 100))
def test_sequential_classes_come_one_after_another_in_an_order_of_their_own(seed):
    labels = [y for _, y in GaussianClasses(3, seed=seed, order="sequential")]
    assert all(len(set(labels[i : i + 3])) == 1 for i in range(0, 18, 3))


def test_the_order_of_the_classes_depends_on_the_seed():
    first = {next(iter(GaussianClasses(1, seed=s, order="sequential")))[1] for s in range(60)}
    assert first == set(range(6))


def test_both_orders_hold_the_same_points():
    one = list(GaussianClasses(5, seed=1))
    other = list(GaussianClasses(5, seed=1, order="sequential"))
    assert one != other
    assert sorted(map(repr, one)) == sorted(map(repr, other))


def test_the_classes_are_normal_around_a_grid():
    """Means within 4 standard errors of the paper's jittered 3 x 2 grid of step 5."""
    n = 4000
    grid = 5 * np.array([(0, 0), (1.05, 0.15), (2, -0.1), (0.1, 1), (0.95, 1.15), (2.1, 0.95)])
    rows = list(GaussianClasses(n, std=1.5, seed=0))
    points = np.array([[x["x1"], x["x2"]] for x, _ in rows])
    labels = np.array([y for _, y in rows])
    for c in range(6):
        own = points[labels == c]
        assert np.abs(own.mean(axis=0) - grid[c]).max() < 4 * 1.5 / np.sqrt(n)
        assert np.abs(own.std(axis=0) / 1.5 - 1).max() < 4 / np.sqrt(2 * n)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "sorted"}, "order must be 'random' or 'sequential', got 'sorted'"),
        ({"n_per_class": 0}, "n_per_class must be a whole number of at least 1, got 0"),
        ({"std": 0.0}, "std must be positive and finite, got 0.0"),
        ({"std": float("inf")}, "std must be positive and finite, got inf"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_impossible_classes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GaussianClasses(**options)
