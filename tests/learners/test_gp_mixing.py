"""Whether classes alternate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.learners.gp_tuning import are_mixed


def indicators(text):
    classes = sorted(set(text))
    return np.array([[float(y == c) for c in classes] for y in text])


@pytest.mark.parametrize(
    "text", ["pq" * 16, "ppq" * 48, "pqrs" * 16, "p" * 6 + "pq" * 29 + "p" * 6]
)
def test_classes_that_come_back_in_every_quarter_are_mixed(text):
    assert are_mixed(indicators(text))


@pytest.mark.parametrize(
    "text",
    [
        "p" * 32,
        "p" * 16 + "q" * 16,
        "p" * 12 + "q" * 12 + "r" * 8,
        "p" * 6 + "q" * 20 + "r" * 6,
        "ppppq" * 10,  # what is left of one class if one label in five is wrong
        "pppqpppprppp" * 4 + "qqqqqpqqqrqq" * 4,
    ],
)
def test_one_class_or_one_after_another_is_not(text):
    assert not are_mixed(indicators(text))


@given(st.text("pqr", min_size=32, max_size=90), st.permutations([0, 1, 2]))
def test_neither_the_names_of_classes_nor_unknown_ones_matter(text, order):
    Y = np.array([[float(y == c) for c in "pqr"] for y in text])
    wider = np.hstack([Y[:, order], np.zeros((len(Y), 2))])
    assert are_mixed(Y) == are_mixed(wider)


@given(st.lists(st.integers(0, 3), min_size=8, max_size=60))
def test_it_is_the_chance_that_two_of_the_same_quarter_differ(labels):
    """By drawing all pairs."""
    parts = np.array_split(np.array(labels), 4)
    chance = np.mean([np.mean(part[:, None] != part[None, :]) for part in parts])
    least = 3 / 8 + 1 / (2 * len(labels) ** 0.5)
    if abs(chance - least) > 1e-9:
        assert are_mixed(np.eye(4)[labels]) == (chance > least)


@pytest.mark.parametrize("n", [32, 64, 256])
def test_one_label_in_five_that_is_wrong_is_rarely_taken_for_other_classes(n):
    rng = np.random.default_rng(0)
    taken = []
    for _ in range(1000):
        labels = np.where(rng.random(n) < 0.2, rng.integers(1, 4, n), 0)
        taken.append(are_mixed(np.eye(4)[labels]))
    assert np.mean(taken) < 0.1
