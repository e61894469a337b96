"""The reproduction of the paper on privileged noise keeps to its protocol, tables to their runs."""

from functools import partial

import numpy as np
import pytest

from benchmarks.papers.gpc_plus import benchmark as gpc_plus
from benchmarks.papers.gpc_plus import experiment as game
from benchmarks.papers.gpc_plus import problems
from tests.helpers.benchmark_runs import document


def rng(seed=0):
    return np.random.default_rng(seed)


def truth(draw):
    return np.sign(problems.decision(draw.X))


def runs(*errors, auc=None):
    return [game.Result(errors=(e,), auc=auc) for e in errors]


# --- problems


@pytest.mark.parametrize("name", problems.SYNTHETIC)
def test_synthetic_problems_have_a_hundred_labels_and_a_clean_test_set(name):
    draw = problems.SYNTHETIC[name](rng())
    assert draw.X.shape == draw.privileged.shape == (100, 2)
    assert set(draw.y) == {-1.0, 1.0}
    assert np.array_equal(draw.y_test, np.sign(problems.decision(draw.X_test)))
    assert len(draw.y_test) == 2000


def test_where_noise_is_a_function_of_privileged_features_their_first_tells_wrong_labels():
    draws = [problems.noise(rng(seed)) for seed in range(20)]
    wrong = np.concatenate([draw.y != truth(draw) for draw in draws])
    first = np.concatenate([draw.privileged[:, 0] for draw in draws])
    assert wrong[first > 0.5].mean() > 0.25 > 0.12 > wrong[first < -0.5].mean()


def test_guessed_labels_are_those_whose_first_privileged_feature_is_positive():
    draws = [problems.guessed(rng(seed)) for seed in range(20)]
    wrong = np.concatenate([draw.y != truth(draw) for draw in draws])
    first = np.concatenate([draw.privileged[:, 0] for draw in draws])
    assert not wrong[first <= 0.0].any()
    assert wrong[first > 0.0].mean() == pytest.approx(0.5, abs=0.05)


def test_one_answer_in_five_of_the_annotator_is_wrong():
    draw = problems.annotator(rng(), 20_000)
    wrong = draw.y != truth(draw)
    assert draw.careless.mean() == pytest.approx(0.4, abs=0.02)
    assert wrong[draw.careless].mean() == pytest.approx(0.5, abs=0.02)
    assert not wrong[~draw.careless].any()
    assert draw.privileged[draw.careless, 1].mean() == pytest.approx(0.3, abs=0.02)


def test_digits_are_coarse_in_public_and_a_fifth_of_their_labels_is_wrong():
    draw = problems.digits(rng(), margin=False)
    assert draw.X.shape == (100, 16)
    assert draw.privileged.shape == (100, 64)
    assert len(draw.y_test) == 257
    clean = np.mean([problems.digits(rng(s), margin=False).y.mean() for s in range(5)])
    assert abs(clean) < 0.3


def test_margins_are_negative_where_neighbours_disagree():
    P = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]])
    found = problems.margins(P, np.array([1.0, 1.0, -1.0, -1.0, -1.0]))[:, 0]
    assert found[2] < 0.0 < found[3]
    assert found.shape == (5,)


def test_mnist_plus_is_read_from_the_data_folder(tmp_path):
    folder = tmp_path / "privileged"
    folder.mkdir()
    np.savez(
        folder / "mnist_plus.npz",
        X_train=rng().random((100, 4), dtype=np.float32),
        X_train_poetic=rng(1).random((100, 3), dtype=np.float32),
        y_train=np.arange(100, dtype=np.uint8) % 2,
        X_test=rng(2).random((7, 4), dtype=np.float32),
        y_test=np.arange(7, dtype=np.uint8) % 2,
    )
    names = ("MNIST+, poetic", "MNIST+, poetic margin", "noise")
    found, skipped = problems.read(names, tmp_path)
    assert (list(found), skipped) == (list(names), [])
    draw = found["MNIST+, poetic"](rng())
    assert (draw.X.shape, draw.privileged.shape, draw.X_test.shape) == ((80, 4), (80, 3), (7, 4))
    assert set(draw.y) == set(draw.y_test) == {-1.0, 1.0}
    assert found["MNIST+, poetic margin"](rng()).privileged.shape == (80, 1)


def test_what_is_not_there_is_skipped_and_named(tmp_path):
    for data in (None, tmp_path):
        found, skipped = problems.read(("MNIST+, poetic", "useless"), data)
        assert list(found) == ["useless"]
        assert skipped == ["MNIST+, poetic (needs --data with privileged/mnist_plus.npz)"]


# --- runs


def test_features_of_the_ordinary_kind_are_missing_in_predictions():
    draw = problems.noise(rng())
    points = game._features(draw, game.ORDINARY)
    assert list(points[0]) == ["x0", "x1", "p0", "p1"]
    assert list(game._features(draw, game.PLUS)[0]) == ["x0", "x1"]
    assert np.mean([point["p0"] for point in points]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("method", game.OFFLINE)
def test_every_method_learns_at_once(method):
    result = game.fit(problems.noise(rng()), method)
    assert 0.0 < result.error < 40.0


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=() if name in (game.GPC, game.ADF_PLUS) else pytest.mark.nightly)
        for name in game.ONLINE
    ],
)
def test_every_method_learns_online(method):
    draw = problems.annotator(rng(), 20)
    result = game.stream(draw, method, checks=(10, 20))
    assert len(result.errors) == 2
    assert (result.auc is not None) == ("+" in method)


@pytest.mark.parametrize("method", game.KEPT)
def test_few_examples_of_a_stream_are_retained(method):
    draw = problems.annotator(rng(), 50)
    assert 0.0 < game.keep(draw, method, n_kept=30).error < 50.0


def test_auc_is_the_share_of_pairs_in_their_order():
    scores = np.array([1.0, 2.0, 2.0, 4.0])
    assert game.auc(scores, np.array([False, False, True, True])) == pytest.approx(3.5 / 4.0)


# --- tables and limits


def test_gains_are_run_by_run():
    results = {("noise", game.GPC): runs(12.0, 14.0), ("noise", game.PLUS): runs(11.0, 12.0)}
    plain, plus = gpc_plus._errors(results)
    assert (plus["error"], plus["gain"], plus["se of gain"]) == (11.5, 1.5, 0.5)
    assert plain["gain"] == 0.0


def test_limits_are_those_of_gains_and_a_quick_run_widens_them():
    results = {
        (problem, method): runs(*errors, auc=0.95)
        for problem in ("noise", "guessed", "useless", "annotator")
        for method, errors in ((game.GPC, (12.0, 14.0)), (game.PLUS, (11.0, 12.0)))
    }
    exact = {a.name.partition(":")[0]: a for a in gpc_plus._accepted(results, 0.0)}
    assert [a.limit for a in exact.values()] == [1.5, 3.0, 2.0, -0.3, 0.9]
    assert [a.ok for a in exact.values()] == [True, False, False, True, True]
    wide = gpc_plus._accepted(results, 2.0)
    assert [a.limit for a in wide] == [0.5, 2.0, 1.0, -1.3, 0.9]
    assert "3 widened by 2 standard errors" in wide[1].name


def test_identities_hold():
    rows, accepted = gpc_plus.identities(3)
    assert len(rows) == 3
    assert all(a.ok for a in accepted)


def test_times_are_taken_before_and_behind_max_points():
    found = gpc_plus.steps(1, max_points=24)
    assert list(found) == [24, 28, 72]
    assert all(value > 0.0 for value in found.values())


@pytest.mark.parametrize("name", game.SETTINGS)
def test_answers_in_a_conversation_are_wrong_as_often_as_the_setting_says(name, monkeypatch):
    asked = []

    class Listener(game.SkepticalClassifier):
        def settle_one(self, x, y, *, given, privileged, **_):
            truth = float(np.sign(problems.decision(np.array([list(x.values())])))[0])
            asked.append((given != truth, y != truth, privileged["p1"]))
            return 0.0

    monkeypatch.setitem(game.RULES, "learns nothing", Listener)
    found = game.talk(game.SETTINGS[name], "learns nothing", 1, 4000)
    wrong, kept, times = np.array(asked, dtype=float).T
    shares = {"40": 0.2, "10": 0.05, "20": 0.1 + 0.8 * 0.5 * 0.4}
    assert wrong.mean() == pytest.approx(shares[name[:2]], abs=0.02)
    assert found.challenges == found.recall == 0
    assert np.array_equal(wrong, kept)
    slower = times[wrong == 0].mean() - times[wrong > 0].mean()
    assert slower == pytest.approx(0.0, abs=0.06) if "useless" in name else slower > 0.1


@pytest.mark.nightly
def test_every_rule_hears_the_same_answers_and_challenges_some():
    setting = game.SETTINGS["20 % careless, one of two annotators unreliable"]
    found = {rule: game.talk(setting, rule, 3, 80) for rule in game.RULES}
    assert len({(one.auc_wrong, one.auc_careless) for one in found.values()}) == 4
    for one in found.values():
        assert one.challenges > 5
        assert one.precision > 0.3


def test_conversations_are_compared_with_those_by_the_record_of_the_annotator(monkeypatch):
    def talk(_, rule, seed, n):
        error = {"annotator": 5.0, "noise": 5.0 + seed, "both": 4.0}.get(rule, 9.0)
        return game.Talk(
            auc_wrong=0.9, auc_careless=0.8, challenges=n, precision=0.5, recall=0.5, error=error
        )

    monkeypatch.setattr(game, "talk", talk)
    assert game.talks(range(0), 7, print) == []
    rows = game.talks(range(1, 3), 7, lambda _: None)
    assert len(rows) == 16
    assert [row["error"] for row in rows[:4]] == [5.0, 6.5, 4.0, 9.0]
    assert [row["se of error"] for row in rows[:4]] == [0.0, 0.5, 0.0, 0.0]
    assert rows[0]["challenges"] == 7.0


@pytest.mark.nightly
def test_the_benchmark_writes_what_it_promises(tmp_path, monkeypatch):
    monkeypatch.setattr(gpc_plus, "steps", lambda _: {300: 900.0, 350: 1000.0, 900: 1100.0})
    plan = gpc_plus.Plan(
        problems=("noise", "MNIST+, poetic"),
        methods=(game.GPC, game.PLUS),
        online=(game.GPC, game.PLUS),
        n_runs=2,
        n_online=1,
        n_long=0,
        n_talks=0,
        checks=(10, 20),
        sizes=(30,),
    )
    result, status = document(tmp_path, "gpc_plus", partial(gpc_plus.measure, plan=plan))
    assert status == 0
    problems_shown = [(row["problem"], row["method"]) for row in result["rows"] if "problem" in row]
    assert problems_shown == [("noise", "GPC"), ("noise", "GPC+")]
    assert [row["online"] for row in result["rows"] if "online" in row] == ["GPC", "GPC+"]
    assert [row["labels"] for row in result["rows"] if "batch_s" in row] == [30]
    assert [row["labels"] for row in result["rows"] if "step_us" in row] == [300, 350, 900]
    by_name = {a["name"]: a for a in result["acceptance"]}
    assert by_name["one label at 900 / right behind 300 (at most)"]["value"] == pytest.approx(1.1)
