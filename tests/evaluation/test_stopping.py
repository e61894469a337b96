from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pytest

from streamgp.evaluation.stopping import Fall, Gain, expected_gain, found_fall


def curve(n: float) -> float:
    """Return the error after n labels, which falls without end."""
    return 0.05 + 0.5 / (1 + n / 20)


def advice(
    error: Callable[[float], float], *, seed: int | None = None, n: int = 2000, **options: int
) -> Gain | None:
    """Return what is said after a run with a label for each tenth event, at the last of them."""
    p = np.array([error(i / 10) for i in range(n)])
    wrong = p if seed is None else np.random.default_rng(seed).random(n) < p
    return advice_on(wrong.tolist(), **options)


def advice_on(wrong: list[float], every: int = 5, **options: int) -> Gain | None:
    errors = [0.0, *accumulate(wrong)]
    at = range(every, len(wrong) + 1, every)
    options = {"n_scored": len(wrong), **options}
    return expected_gain(at, [1 - errors[i] / i for i in at], [i // 10 for i in at], **options)


def test_gain_lies_in_the_interval_in_most_runs() -> None:
    truth = curve(200) - curve(250)
    gains = [advice(curve, seed=seed) for seed in range(8)]
    assert sum(gain.low <= truth <= gain.high for gain in gains) >= 6
    assert np.mean([gain.expected for gain in gains]) == pytest.approx(truth, abs=0.009)


def test_nothing_is_gained_where_nothing_was() -> None:
    flat = advice(lambda _: 0.2)
    assert 0.0 <= flat.low <= flat.expected < 0.004
    assert advice(lambda _: 0.0).high < 0.001


def test_more_labels_gain_more() -> None:
    gains = [advice(curve, n_labels=n).expected for n in (10, 50, 250)]
    assert gains == sorted(gains)
    assert gains[0] < gains[2] / 4


def test_errors_in_runs_tell_less_than_the_same_errors_alone() -> None:
    alone = [float(i % 5 == 0 or (i < 300 and i % 2 == 0)) for i in range(2000)]
    in_runs = [y for i in range(0, 2000, 250) for y in sorted(alone[i : i + 250])]
    one, other = advice_on(alone), advice_on(in_runs)
    assert other.high - other.low > one.high - one.low


@pytest.mark.parametrize(
    ("n", "options"), [(150, {}), (190, {"every": 5}), (2000, {"n_scored": 1800})]
)
def test_too_little_says_nothing(n: int, options: dict[str, int]) -> None:
    assert advice(curve, n=n, **options) is None


def test_events_that_nothing_was_predicted_for_are_no_errors() -> None:
    assert advice(curve, n_scored=1999).expected == pytest.approx(advice(curve).expected, rel=0.05)


def test_advice_is_a_sentence() -> None:
    assert str(Gain(n_labels=50, expected=0.0042, low=0.0, high=0.0123)) == (
        "another 50 labels are expected to bring about +0.004 of accuracy "
        "(between 0.000 and 0.012), if events go on as they did"
    )


def fall_of(p: list[float], seed: int | None = None) -> Fall | None:
    """Return what is said of a run of 2000 events in equal parts with these accuracies."""
    right = np.repeat(p, 2000 // len(p))
    if seed is not None:
        right = np.random.default_rng(seed).random(2000) < right
    at = range(5, 2001, 5)
    return found_fall(at, [right[:i].mean() for i in at], n_scored=2000)


def test_a_fall_is_told_from_its_best_quarter() -> None:
    found = fall_of([0.8, 0.9, 0.7, 0.5])
    assert found is not None
    assert found.quarter == 2
    assert (found.before, found.now) == pytest.approx((0.9, 0.5), abs=0.01)


def test_no_fall_is_seen_where_there_is_none() -> None:
    assert all(fall_of([0.8], seed=seed) is None for seed in range(50))
    assert fall_of([0.5, 0.6, 0.7, 0.8]) is None
    assert fall_of([0.9, 0.9, 0.9, 0.81]) is None
    # Errors in runs, as where a class is harder than the others and comes again and again.
    assert fall_of([1.0, 0.8, 1.0, 1.0, 0.4, 1.0, 1.0, 1.0, 0.3, 1.0] * 2) is None
    assert fall_of([1.0] * 11 + [0.2, 1.0, 1.0, 1.0, 1.0, 1.0, 0.2, 1.0, 0.2]) is None


def test_no_gain_is_promised_where_accuracy_fell() -> None:
    assert advice_on([float(i % 10 == 0 if i < 1000 else i % 2 == 0) for i in range(2000)]) is None
