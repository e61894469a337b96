"""Regression problems: how they are played, and what is asked of them."""

import math

import numpy as np
import pytest

from benchmarks.comparison import regression
from benchmarks.papers.egp.problems import Draw
from streamgp import GPRegressor


def line(n, n_test, noise=0.0):
    rng = np.random.default_rng(1)
    x = rng.uniform(-2.0, 2.0, size=n + n_test)
    y = np.sin(x) + noise * rng.normal(size=n + n_test)
    events = [({"x": a}, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return Draw(initial=events[:10], stream=events[10:n], test=events[n:])


def test_a_run_is_judged_by_what_it_forecast():
    draw = line(160, 50, noise=0.1)
    found = regression.play(GPRegressor(), draw)
    again = GPRegressor()
    for x, y in [*draw.initial, *draw.stream]:
        again.learn_one(x, y)
    truths = np.array([y for _, y in draw.test])
    errors = truths - np.array([again.predict_one(x) for x, _ in draw.test])
    assert found.nmse == pytest.approx(np.mean(errors**2) / truths.var())
    sigmas = [again.predict_one(x, with_dist=True).sigma for x, _ in draw.test]
    assert found.covered == pytest.approx(
        np.mean(np.abs(errors) <= 1.959964 * np.array(sigmas)), abs=1e-9
    )
    assert found.squared == pytest.approx(np.mean((errors / sigmas) ** 2))
    assert 0.85 < found.covered_in_stream < 1.0


def test_reach_is_in_ranges_of_the_targets_seen():
    assert regression._beyond(3.0, -1.0, 1.0) == 1.0
    assert regression._beyond(-1.5, -1.0, 1.0) == 0.25
    assert regression._beyond(0.5, -1.0, 1.0) == 0.0


def test_without_data_the_tables_are_skipped_and_the_order_of_a_file_is_kept(tmp_path):
    names = regression.Plan().problems
    problems, skipped = regression._problems(names, None)
    assert [p.name for p in problems] == [
        "Branin", "Currin", "robot pushing", "diabetes", "Friedman 1", "heavy tails",
    ]  # fmt: skip
    assert len(skipped) == 3
    (tmp_path / "regression").mkdir()
    X, y = np.arange(1300.0).reshape(-1, 1), np.arange(1300.0)
    np.savez(tmp_path / "regression" / "sarcos_subset.npz", X=X, y=np.stack([y, -y], axis=1))
    problem = regression._sarcos_in_order(tmp_path)
    draw = problem.draw(7)
    targets = [y for _, y in [*draw.initial, *draw.stream, *draw.test]]
    assert targets == list(range(1300))
    assert len(draw.test) == 1000


def test_weights_of_heavy_tails_have_their_length():
    problem = regression._heavy_tails(2.0)
    X, y = problem.draws(3000, np.random.default_rng(3))
    assert np.abs(y).max() <= 1.0
    # Where targets saturate, the inverse is cut off: of the others it is exact.
    inner = np.abs(y) < 0.999
    w, *_ = np.linalg.lstsq(X[inner], np.arctanh(y[inner]), rcond=None)
    assert math.dist(w, np.zeros(20)) == pytest.approx(2.0, rel=1e-6)


def test_what_is_asked_of_the_rows():
    good = {"problem": "a", "ratio": 1.0, "covered, stream": 0.95}
    tails = {"covered": 0.97, "reach": 1.0}
    assert all(a.ok for a in regression._accepted([good], [tails]))
    for bad in ({"ratio": 1.06}, {"covered, stream": 0.89}):
        assert sum(not a.ok for a in regression._accepted([good | bad], [tails])) == 1
    for bad in ({"covered": 0.99}, {"covered": 0.85}, {"reach": 2.6}):
        assert sum(not a.ok for a in regression._accepted([good], [tails, tails | bad])) == 1
