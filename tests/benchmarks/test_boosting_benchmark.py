"""The reproduction of Confidence Boosting keeps to its protocol, tables to their runs."""

import dataclasses
import re
from collections import Counter
from functools import partial

import numpy as np
import pytest
from river import naive_bayes

from benchmarks._logs import Log
from benchmarks.papers.boosting import benchmark as boosting
from benchmarks.papers.boosting import experiment as game
from benchmarks.papers.boosting import results as tables
from streamgp import datasets
from streamgp.pool_learning import PLANS, Round
from tests.helpers.benchmark_runs import document

PAIRS = [(game.GB, game.PASSIVE), (game.GB, game.ACTIVE)]
PAIRS += [(game.CB, game.PASSIVE), (game.CB, game.ACTIVE)]


def one(error, n_labels=100, number=1):
    return Round(
        number=number, n_drawn=5, labelled=(3, 4), n_labels=n_labels, threshold=0.5, error=error,
        overconfidence=0.2, underconfidence=0.3, right_wrong_auc=0.9,
    )  # fmt: skip


def runs(*errors):
    return [game.Run(rounds=[one(0.9, 50, 0), one(e)], n_nodes=7.0) for e in errors]


def cell(method=game.CB, way=game.ACTIVE, setting="paper", problem="DNA"):
    return game.Cell(problem=problem, setting=setting, method=method, way=way)


# --- problems


def test_the_published_numbers_are_those_of_the_paper():
    assert tables.PAPER["Pendigits", game.CB, game.ACTIVE].error == 0.0341
    assert tables.PAPER["USPS", game.GB, game.PASSIVE].overconfidence == 0.1978
    assert len(tables.PAPER) == 16
    for problem in game.SETS:
        passive_gb, active_gb, passive_cb, active_cb = (
            tables.PAPER[problem, method, way].error for method, way in PAIRS
        )
        assert active_cb < passive_cb < passive_gb
        assert active_cb < active_gb < passive_gb


def test_the_digits_need_no_data():
    (digits,), skipped = game.read([game.DIGITS, "DNA"], None)
    assert (len(digits.pool()), len(digits.test())) == (1200, 597)
    assert skipped == ["DNA (needs --data)"]
    x, y = digits.pool()[0]
    assert len(x) == 64
    assert y == digits.y[0]


def test_settings_are_presets_of_learner_and_protocol():
    assert set(game.SETTINGS) == set(PLANS)
    for method, built in game.METHODS.items():
        for setting in game.SETTINGS:
            model = built(preset=setting, seed=1)
            assert model.seed == 1
            assert getattr(model, "preset", setting) == setting, method


# --- one run


@pytest.fixture(scope="module")
def digits():
    ((found,), _) = game.read([game.DIGITS], None)
    return game.Problem(
        name="digits", X=found.X[:300], y=found.y[:300], X_test=found.X_test, y_test=found.y_test
    )


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=() if name in (game.CB, game.FOREST) else pytest.mark.nightly)
        for name in game.METHODS
    ],
)
def test_passive_learners_know_as_many_labels_in_every_round(digits, method):
    small = dataclasses.replace(
        digits,
        X=digits.X[:100],
        y=digits.y[:100],
        X_test=digits.X_test[:20],
        y_test=digits.y_test[:20],
    )
    played = game.play(small, "paper", method, 1)
    active, passive = played[game.ACTIVE], played[game.PASSIVE]
    labels = [r.n_labels for r in active.rounds]
    assert [r.n_labels for r in passive.rounds] == labels
    assert labels[:2] == [6, 6 + 14]  # 6 % and 14 % of 100: the first round asks for all
    assert len(active.labelled) == len(set(active.labelled)) == labels[-1]
    assert active.labelled[:6] == passive.labelled[:6]
    assert active.n_nodes >= 1.0
    assert active.last == active.rounds[-1]


@pytest.mark.parametrize("name", game.BASELINES)
def test_baselines_learn_the_labels_they_are_told(digits, name):
    few = game.baseline_error(digits, name, game.at_random(digits, 20, 1), 1)
    many = game.baseline_error(digits, name, game.at_random(digits, 250, 1), 1)
    assert many < 0.2 < few


def test_labels_at_random_are_drawn_once():
    problem = game.Problem(
        name="", X=np.zeros((9, 1)), y=np.zeros(9), X_test=np.zeros((1, 1)), y_test=np.zeros(1)
    )
    assert sorted(game.at_random(problem, 9, 1)) == list(range(9))
    assert len(game.at_random(problem, 4, 1)) == 4
    assert game.at_random(problem, 4, 1) != game.at_random(problem, 4, 2)


def test_of_the_labels_learned_as_many_are_wrong_as_is_said():
    log = Log(name="wifi_rooms", events=list(datasets.WiFiRooms().take(600)), orders=("random",))
    model = naive_bayes.GaussianNB()
    error, seconds = boosting._error_and_seconds(model, log, None, 0.2, 1)
    assert sum(model.class_counts.values()) == 600
    truth = Counter(y for _, y in log.events)
    assert model.class_counts != truth
    assert 0.0 < error < 0.2 < 1.0
    assert seconds > 0.0
    clean = naive_bayes.GaussianNB()
    boosting._error_and_seconds(clean, log, None, 0.0, 1)
    assert clean.class_counts == truth


# --- tables


def test_rows_hold_means_and_standard_errors_beside_the_paper():
    results = {cell(): runs(0.1, 0.3), cell(setting="default"): runs(0.1)}
    paper, default = tables.last_rounds(results)
    assert paper["error"] == pytest.approx(0.2)
    assert paper["error se"] == pytest.approx(0.1)
    assert paper["paper's error"] == 0.0724
    assert paper["paper's over-confidence"] == 0.0871
    assert (paper["labels"], paper["nodes per tree"]) == (100, 7.0)
    assert default["paper's error"] is None


def test_baselines_are_shown_beside_the_learner_whose_labels_they_learned():
    results = {
        cell(setting="default"): runs(0.1),
        cell(setting="default", way=game.PASSIVE): runs(0.2),
    }
    found = {("DNA", game.GP, game.ASKED): [0.05], ("DNA", game.GP, game.RANDOM): [0.06]}
    rows = tables.of_baselines(found, results)
    assert [(r["learner"], r["which labels"], r["error"]) for r in rows] == [
        (game.CB, game.ASKED, 0.1),
        (game.CB, game.RANDOM, 0.2),
        (game.GP, game.ASKED, 0.05),
        (game.GP, game.RANDOM, 0.06),
    ]
    assert {r["labels"] for r in rows} == {100}


def limits(*errors, default=0.06, slack=0.0):
    results = {cell(*pair): runs(*e) for pair, e in zip(PAIRS, errors, strict=True)}
    results[cell(setting="default")] = runs(default)
    return tables.accepted(results, slack=slack)


def test_all_orderings_and_limits_are_judged():
    assert [a.ok for a in limits([0.4], [0.3], [0.2], [0.1])] == [True] * 5
    assert [a.ok for a in limits([0.1], [0.2], [0.3], [0.4], default=0.07)] == [False] * 5
    widened = limits([0.3, 0.4], [0.4, 0.35], [0.4, 0.3], [0.4, 0.3], slack=2.0)
    assert all(a.ok for a in widened)
    for a in widened:
        limit = float(re.search(r"; (\S+) widened by 2 standard errors", a.name)[1])
        assert a.limit >= limit


# --- the picture


def test_curves_are_means_round_by_round():
    labels, errors, spread = tables.curve(runs(0.1, 0.3))
    assert labels.tolist() == [50.0, 100.0]
    assert errors == pytest.approx([0.9, 0.2])
    assert spread == pytest.approx([0.0, 0.1])


# --- the benchmark


def table(folder, name):
    rng = np.random.default_rng(1)
    path = folder / "classification" / f"{game._FILES[name]}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    X = rng.normal(size=(90, 3)).astype(np.float32)
    y = (X[:, 0] > 0.0).astype(np.uint8)
    np.savez(path, X_train=X[:60], y_train=y[:60], X_test=X[60:], y_test=y[60:])


@pytest.mark.nightly
def test_a_small_plan_has_tables_limits_and_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    table(tmp_path, "DNA")
    plan = boosting.Plan(
        problems=("DNA", "USPS"),
        methods=(game.GB, game.CB),
        n_runs=2,
        n_weak=12,
        logs=("wifi_rooms", "wisdm"),
        n_events=12,
        n_log_runs=2,
    )
    pictures = tmp_path / "pictures"
    measure = partial(boosting.measure, plan=plan, pictures=pictures)
    result, _ = document(tmp_path, "boosting", measure, "--quick", "--data", str(tmp_path))
    shown = capsys.readouterr().out
    assert "skipped: USPS (no file" in shown
    assert "skipped: wisdm (no sensor_logs" in shown
    cells = [row for row in result["rows"] if "method" in row]
    assert len(cells) == 2 * 2 * 2
    assert [row["labels"] for row in result["rows"] if "weak learner" in row] == [12] * 6
    of_logs = [row for row in result["rows"] if "wrong labels" in row]
    assert {row["learner"] for row in of_logs} == set(boosting.LEARNERS)
    assert len(of_logs) == 2 * len(boosting.LEARNERS)
    assert len(result["acceptance"]) == 5
    assert (pictures / "boosting.png").stat().st_size > 10_000


def test_the_quick_plan_needs_no_data():
    assert boosting.QUICK.problems == (game.DIGITS,)


def test_help_says_what_is_measured(capsys):
    with pytest.raises(SystemExit):
        boosting.main(["--help"])
    assert "Tables I and II" in capsys.readouterr().out
