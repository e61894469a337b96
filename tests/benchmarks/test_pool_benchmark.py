"""The benchmark of pool criteria: the same test for all, identities, tables, limits."""

from functools import partial

import numpy as np
import pytest

from benchmarks import _harness as harness
from benchmarks.comparison.pool import benchmark, strategies
from benchmarks.comparison.pool import problems as pools
from benchmarks.comparison.pool.benchmark import Gaps, gaps
from streamgp import PoolSampler
from tests.helpers.benchmark_runs import document


def heaps(n_classes=3, n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 2)) + 4.0 * np.column_stack([np.cos(y), np.sin(y)]), y


def problem(n_classes=3, **options):
    return pools._fixed("heaps", *heaps(n_classes), **options)


def test_a_draw_has_two_thirds_in_the_pool_and_the_rest_in_the_test():
    draw = problem().draw(seed=1)
    assert (draw.X.shape, draw.y.shape, draw.test_y.shape) == ((60, 2), (60,), (30,))
    assert draw.K.shape == (90, 60)
    assert draw.n_classes == 3
    np.testing.assert_allclose(draw.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(draw.X.std(axis=0), 1.0)


def test_large_sets_are_cut_to_500_and_1000():
    X, y = heaps(n=1700)
    draw = pools._fixed("heaps", X, y).draw(seed=1)
    assert (len(draw.y), len(draw.test_y)) == (500, 1000)


def test_pixels_are_scaled_by_one_number():
    X, y = heaps()
    draw = pools._fixed("heaps", X * [1.0, 1e-3], y, same_unit=True).draw(seed=1)
    assert draw.X.var(axis=0).mean() == pytest.approx(1.0)
    assert draw.X[:, 1].std() < 1e-2


def test_draws_repeat_with_their_seed_and_differ_without():
    first, again, other = (problem().draw(seed) for seed in (1, 1, 2))
    assert (first.X == again.X).all()
    assert not (first.X == other.X).all()


def test_the_judge_is_the_model_of_the_pool():
    draw = problem().draw(seed=1)
    sampler = PoolSampler(draw.X, kernel=draw.kernel)
    for i in (3, 30, 7, 12, 50):
        sampler.tell(i, int(draw.y[i]))
    right = np.mean(np.array(sampler.predict()) == draw.y)
    itself = pools.Draw(
        X=draw.X, y=draw.y, test_y=draw.y, K=np.vstack([draw.K[:60]] * 2), kernel=draw.kernel
    )
    assert itself.accuracy([3, 30, 7, 12, 50]) == right


def test_a_run_is_judged_at_its_marks_with_the_first_labels():
    draw = problem().draw(seed=1)
    run = strategies.play(draw, strategies.HVAR, 1, 22)
    picks, _ = strategies.picked(draw, strategies.HVAR, 1, 22)
    assert list(run.accuracy) == [*range(1, 20), 20, 22]
    assert run.accuracy[20] == draw.accuracy(picks[:20])
    assert run.ms > 0.0
    assert len(set(picks)) == 22


def test_five_at_once_are_picked_before_the_first_of_them_is_told():
    draw = problem().draw(seed=1)
    picks, _ = strategies.picked(draw, "l2fm, 5 at once", 1, 10)
    sampler = PoolSampler(draw.X, "l2fm", draw.kernel, seed=1)
    assert picks[:5] == sampler.pick(5)
    for i in picks[:5]:
        sampler.tell(i, int(draw.y[i]))
    assert picks[5:] == sampler.pick(5)


def test_gaps_are_rounding():
    draw = problem().draw(seed=2)
    found = gaps(draw, [0, 5, 9, 30])
    assert found.largest < 1e-12
    assert Gaps(update=0.0, l2fm=3.0, rkhs=1.0, two_classes=2.0).largest == 3.0


def test_gaps_notice_a_wrong_criterion(monkeypatch):
    from benchmarks.comparison.pool import benchmark as _pool_identities

    monkeypatch.setattr(_pool_identities, "l2fm", lambda p, _: p.variances)
    assert gaps(problem().draw(seed=2), [0, 5, 9, 30]).l2fm > 0.01


@pytest.mark.parametrize("name", [*strategies.PEERS, *strategies.SLOW_PEERS])
def test_a_peer_picks_points_without_a_label_from_the_first_on(name):
    pytest.importorskip("skactiveml")
    draw = pools._fixed("heaps", *heaps(n=30)).draw(seed=1)
    picks, _ = strategies.picked(draw, name, 1, 5)
    assert len(set(picks)) == 5
    assert strategies.ms_of_one_pick(draw, name, 1, picks) > 0.0


def usps(folder, n=60):
    """Write heaps as digits 0 to 9."""
    (folder / "classification").mkdir()
    X, y = heaps(10, 4 * n)
    halves = {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]}
    np.savez(folder / "classification" / "usps.npz", **halves)


def test_a_pair_has_the_rows_of_its_digits(tmp_path):
    usps(tmp_path)
    [found], missing = pools.read([pools.USPS_35], tmp_path)
    X, labels = found.rows(1)
    assert (len(X), set(labels.tolist()), missing) == (48, {3, 5}, [])


def test_without_data_its_pools_are_skipped(tmp_path):
    names = (pools.WIFI, pools.USPS_35, pools.USPS_49)
    found, missing = pools.read(names, None)
    assert [p.name for p in found] == [pools.WIFI]
    assert missing == ["USPS 3 vs 5 (needs --data)", "USPS 4 vs 9 (needs --data)"]
    _, missing = pools.read([pools.USPS_35], tmp_path)
    assert missing == ["USPS 3 vs 5 (no classification/usps.npz in the data folder)"]


def test_the_pools_of_scikit_learn_are_there():
    pytest.importorskip("sklearn")
    names = (pools.MOONS, pools.CANCER, pools.PAIR, pools.DIGITS)
    found, _ = pools.read(names, None)
    sizes = [(len(d.y), len(d.test_y), d.n_classes) for d in (p.draw(1) for p in found)]
    assert sizes == [(500, 1000, 2), (379, 190, 2), (238, 119, 2), (500, 1000, 10)]
    assert [p.same_unit for p in found] == [False, False, True, True]


@pytest.mark.nightly
def test_a_small_plan_has_identities_tables_limits_and_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    plan = benchmark.Plan(
        problems=(pools.WIFI, pools.USPS_35, pools.USPS_49),
        strategies=(strategies.RAND, strategies.HVAR, strategies.HERDING),
        timed=(),
        n_runs=2,
        n_labels=12,
    )
    usps(tmp_path)
    pictures = tmp_path / "pictures"
    measure = partial(benchmark.measure, plan=plan, pictures=pictures)
    argv = ["--quick", "--data", str(tmp_path), "--check"]
    result, status = document(tmp_path, "pool", measure, *argv)
    assert status == 0
    identities = [row["identities on"] for row in result["rows"] if "update" in row]
    assert identities == list(plan.problems)
    rows = [row for row in result["rows"] if "se 10" in row]
    assert {row["strategy"] for row in rows} >= {strategies.RAND, strategies.HVAR}
    assert 50.0 < rows[0]["10"] <= 100.0
    assert rows[0]["50"] is None
    means = [row for row in result["rows"] if row.get("pool") == "mean"]
    of_rand = [row["10"] for row in rows if row["strategy"] == strategies.RAND]
    assert means[0]["10"] == pytest.approx(np.mean(of_rand))
    assert [a["name"] for a in result["acceptance"]] == [
        "closed forms against refits: largest gap (at most)"
    ]
    assert [file.name for file in pictures.iterdir()] == ["pool.png"]
    capsys.readouterr()


def run_of(*accuracies):
    return [strategies.Run(accuracy={20: a, 50: a}, ms=1.0) for a in accuracies]


def test_limits_are_those_of_the_full_run_and_wider_for_a_quick_one():
    results = {pools.MOONS: {strategies.HVAR: run_of(0.94, 0.97)}}
    _, full = benchmark._accepted({}, results, slack=0.0)
    _, quick = benchmark._accepted({}, results, slack=2.0)
    assert (full.value, full.limit, full.ok) == (pytest.approx(0.955), 0.96, False)
    assert (quick.limit, quick.ok) == (pytest.approx(0.93), True)
    assert quick.name == ("hvar on moons with 20 labels, 0.96 less 2 standard errors (at least)")


@pytest.mark.nightly
def test_without_scikit_activeml_its_strategies_are_skipped(monkeypatch):
    monkeypatch.setattr(benchmark, "HAS_SKACTIVEML", False)
    plan = benchmark.Plan(problems=(pools.WIFI,), timed=(pools.WIFI,), n_runs=1, n_labels=10)
    outcome = benchmark.measure(harness.Options(), plan=plan)
    assert outcome.skipped == ["scikit-activeml (not installed; install the extra bench)"]
    played = {row["strategy"] for row in outcome.rows if "pool" in row}
    assert played == {*strategies.CRITERIA, *strategies.VARIANTS}
