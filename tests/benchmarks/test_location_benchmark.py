"""The location experiment samples people's moments as described, the same for all learners."""

import math
from functools import partial

import numpy as np
import pytest

from benchmarks import _harness as harness
from benchmarks._harness import processes
from benchmarks._logs import EXTRASENSORY, MissingLogError
from benchmarks.papers.isgp import learners
from benchmarks.papers.location import benchmark as location
from benchmarks.papers.location import game
from tests.helpers.benchmark_runs import document

pytest.importorskip("pyarrow", reason="the log is a Parquet file")
EASY, HARD = game.CONDITIONS
DAY = ["home"] * 60 + ["bus"] * 20 + ["unknown"] * 20 + ["workplace"] * 60 + ["shop"] * 20
DAY += ["school"] * 20


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Four people; the second is nowhere but in two places, the third has too few minutes."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    rows = []
    for user, day in ((3, DAY), (5, ["home", "school"] * 100), (8, DAY[:60]), (9, DAY)):
        for minute, place in enumerate(day * 5):
            level = {"home": 0, "workplace": 2, "school": 2}.get(place, 4)
            rows.append(
                {
                    "timestamp": minute,
                    "user": user,
                    "device": "phone",
                    "cv_fold": 0,
                    "activity": "sitting",
                    "place": place,
                    "acc": level + 0.3 * rng.normal(),
                    "watch": float(place == "workplace") if minute % 3 else math.nan,
                    "wifi": int(place == "home"),
                    "label:SITTING": 1,
                    "label_source": 2,
                }
            )
    folder = tmp_path_factory.mktemp("data")
    path = folder / EXTRASENSORY
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(rows), path)
    game.people.cache_clear()
    yield folder
    game.people.cache_clear()


def test_people_have_enough_moments_of_three_places(data):
    found = game.people(data)
    assert list(found) == [3, 9]
    for moments in found.values():
        assert len(moments) == game.N_MOMENTS
        assert {y for _, y in moments} == {0, 1, 2}


def test_features_are_sensors_that_are_there(data):
    names = [set(x) for x, _ in game.people(data)[3]]
    assert set.union(*names) == {"acc", "watch", "wifi"}
    assert set.intersection(*names) == {"acc", "wifi"}


def test_moments_left_out_come_in_pieces_and_every_seed_leaves_out_others(data):
    folds = [game.fold(data, EASY, 3, seed) for seed in range(game.N_FOLDS)]
    for fold in folds:
        assert (len(fold.stream), len(fold.test)) == (300, 75)
    left_out = [id(x) for fold in folds for x, _ in fold.test]
    assert sorted(left_out) == sorted(id(x) for x, _ in game.people(data)[3])
    first = [id(x) for x, _ in game.people(data)[3][:15]]
    assert [id(x) for x, _ in folds[0].test[:15]] == first


def test_log_that_is_not_there_is_named(tmp_path):
    game.people.cache_clear()
    with pytest.raises(MissingLogError, match=r"^ExtraSensory \(no sensor_logs/extrasensory_core"):
        game.people(tmp_path)
    for options in (harness.Options(), harness.Options(data=tmp_path)):
        outcome = location.measure(options)
        assert outcome.rows == []
        assert "ExtraSensory" in outcome.skipped[0]


def test_papers_kernel_has_unit_variance_and_its_white_noise():
    kernel = game.papers_kernel(4)
    row = kernel.embed(np.zeros(4))
    assert kernel.prior_variance(row) == pytest.approx(1.1)
    assert kernel.vector(row[None], row) == pytest.approx([1.0])


def run(tmp_path, data, plan, *arguments, **options):
    measure = partial(location.measure, plan=plan, n_processes=1, **options)
    return document(tmp_path, "location", measure, "--data", str(data), *arguments)[0]


@pytest.mark.nightly
def test_all_learners_have_a_row_and_curves(tmp_path, data, monkeypatch):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    found = pytest.importorskip("benchmarks.papers.isgp.srf", reason="SRF needs scikit-learn")
    monkeypatch.setattr(found, "srf", partial(found.srf, n_trees=2))
    plan = location.Plan(conditions=(HARD,), n_people=1, n_seeds=1, cs=(0.5,), thetas=(0.4, 0.6))
    result = run(tmp_path, data, plan, pictures=tmp_path / "pictures")
    ends = [row for row in result["rows"] if "f1" in row]
    names = [*game.GAUSSIAN, game.FRUGAL, game.FOREST]
    assert [row["learner"] for row in ends] == names
    assert [row["learner"] for row in result["rows"] if "f1_at_300" in row] == names
    for end, course in zip(ends, result["rows"][len(ends) :], strict=True):
        assert end["questions"] == end["labels"] + end["challenges"]
        assert course["f1_at_300"] == end["f1"]
        assert end["us_per_event"] > 0
    never, isgp, always = ends[:3]
    assert never["challenges"] == 0 < isgp["challenges"] <= always["challenges"]
    assert len(result["acceptance"]) == 4
    assert (tmp_path / "pictures" / "location.png").stat().st_size < 150_000


@pytest.mark.nightly
def test_quick_run_leaves_srf_out(tmp_path, data, capsys):
    plan = location.Plan(conditions=(EASY,), n_seeds=1, forest=False)
    result = run(tmp_path, data, plan, "--quick")
    assert "skipped: SRF" in capsys.readouterr().out
    assert [row["folds"] for row in result["rows"] if "folds" in row] == [2] * 5
    assert len(result["acceptance"]) == 3


@pytest.mark.nightly  # takes seconds; the processes are those of the benchmark isgp
def test_what_is_measured_does_not_depend_on_the_processes(data):
    expected = game.People(data, [3, 9]).traces(HARD, learners.ISGP, [1])
    with processes(2) as pool:
        found = game.People(data, [3, 9], pool).traces(HARD, learners.ISGP, [1])
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one.f1, other.f1)
        assert np.array_equal(one.asked, other.asked)
