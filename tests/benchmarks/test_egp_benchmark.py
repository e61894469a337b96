"""The reproduction of the paper on ensembles keeps to its protocol, tables to their runs."""

import math
import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers.egp import benchmark as egp
from benchmarks.papers.egp import experiment as game
from benchmarks.papers.egp import problems
from benchmarks.papers.egp import results as tables
from benchmarks.papers.egp.experiment import Gaps, gaps
from streamgp.base import Decision
from tests.helpers.benchmark_runs import document

BRANIN = problems.FUNCTIONS["Branin"]
ONE = game.Cell(problem="Branin", preset="default", rule=game.RANDOM, rate=0.1)


def cell(rule, rate=0.1, problem="Branin", preset="default"):
    return game.Cell(problem=problem, preset=preset, rule=rule, rate=rate)


def runs(*errors, rate=0.1):
    return [game.Result(rate=rate, error=e, npll=2.0 * e) for e in errors]


# --- problems


def test_branin_is_least_at_its_three_minima():
    minima = np.array([(-math.pi, 12.275), (math.pi, 2.275), (9.42478, 2.475)])
    U = (minima - [-5.0, 0.0]) / 15.0
    assert problems.branin(U) == pytest.approx(0.397887, abs=1e-5)
    assert problems.branin(np.random.default_rng(1).random((500, 2))).min() > 0.397


def test_currin_has_its_known_values():
    assert problems.currin(np.array([[0.216667, 0.0228407]]))[0] == pytest.approx(13.7986, abs=1e-3)
    assert problems.currin(np.array([[0.0, 0.0]]))[0] == pytest.approx(3.0)


def pushed(place, n_steps, angle):
    x, y = place
    u = (x + 5.0) / 10.0, (y + 5.0) / 10.0, (n_steps - 0.5) / 30.0, angle / (2.0 * math.pi)
    return problems.robot_pushing(np.array([u]))[0]


@pytest.mark.parametrize(("n_steps", "x"), [(9, 0.0), (10, 0.3), (30, 8.3)])
def test_a_hand_that_comes_straight_pushes_the_disc_straight(n_steps, x):
    """It is .3 deep and starts at -5: its front is at -4.7 + .4 n, and the disc 1 before that."""
    assert pushed((-5.0, 0.0), n_steps, 0.0) == pytest.approx(math.hypot(x - 3.0, -2.0))


def test_a_hand_that_is_turned_reaches_further():
    assert pushed((-5.0, 0.0), 8, math.pi / 2.0) == pytest.approx(math.hypot(0.2 - 3.0, -2.0))


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.0, 2.0 * math.pi))
def test_a_disc_that_was_pushed_touches_the_hand_no_longer(x, y, angle):
    c, s = math.cos(angle), math.sin(angle)
    sides = np.array([[[c, s], [-s, c]]])
    disc = np.array([[x, y]])
    moved = disc + problems._push(np.zeros((1, 2)), sides, disc)
    inside = sides[0] @ moved[0]
    distance = np.linalg.norm(inside - np.clip(inside, -problems._HAND, problems._HAND))
    assert distance >= 1.0 - 1e-9


def test_points_are_standardised_by_the_initial_set():
    X = np.array([[0.0, 3.0], [4.0, 3.0], [6.0, 9.0]])
    assert problems.standardised(X, 2).tolist() == [[-1.0, 0.0], [1.0, 0.0], [2.0, 0.0]]


def test_a_run_has_events_of_its_own():
    draw, again, other = BRANIN.draw(1), BRANIN.draw(1), BRANIN.draw(2)
    assert [len(part) for part in (draw.initial, draw.stream, draw.test)] == [10, 500, 1000]
    assert draw == again
    events = [repr(e) for d in (draw, other) for e in (*d.initial, *d.stream, *d.test)]
    assert len(set(events)) == 2 * 1510


# --- one run


@pytest.mark.parametrize("rule", [rule for rule in game.RULES if rule != game.ALL])
def test_every_rule_keeps_the_rate(rule):
    result = game.play(BRANIN, BRANIN.draw(3), cell(rule, 0.2), 3)
    assert result.rate == pytest.approx(0.2, abs=0.01)
    assert 0.0 < result.error < 1.0


@pytest.mark.parametrize("rate", game.RATES)
@pytest.mark.parametrize("shrink", [0.5, 0.99, 1.0, 1.01])
def test_no_scores_can_take_the_budget_further_from_its_rate_than_one_percent(rate, shrink):
    budget = game.budget_of(cell(game.VARIANCE, rate), seed=1)
    n_asked = 0
    for n in range(500):
        wish = Decision.of(shrink**n * (1.0 + n % 3), 0.0, "Variance")
        asked = wish.ask and budget.allows(wish, now=n)
        budget.note(wish, asked, now=n)
        n_asked += asked
    assert n_asked / 500 == pytest.approx(rate, abs=0.01)


def test_all_labels_are_more_than_some():
    draw = BRANIN.draw(3)
    everything = game.play(BRANIN, draw, cell(game.ALL, 1.0), 3)
    some = game.play(BRANIN, draw, cell(game.RANDOM, 0.05), 3)
    assert everything.rate == 1.0
    assert everything.error < some.error
    assert everything.npll < some.npll


def test_the_paper_fits_to_the_initial_set_and_never_again():
    draw = BRANIN.draw(3)
    model = game.learner(BRANIN, "paper", 3)
    for x, y in draw.initial:
        model.learn_one(x, y)
    assert model.weights == pytest.approx([1 / 11] * 11)


def test_the_recursion_is_ridge_regression_and_adds_up_to_the_evidence():
    found = gaps(problems.FUNCTIONS["Currin"].draw(1), 1)
    assert found.ridge < 1e-10
    assert found.evidence < 1e-10


# --- tables


def test_rows_hold_means_and_standard_errors():
    results = {ONE: runs(1.0, 3.0), cell(game.ALL, 1.0): runs(0.5, 0.5)}
    first, last = tables.against_rate(results, tables.ERROR, {"Branin": "NMSE"})
    assert first == {
        "problem": "Branin", "preset": "default", "rule": "random",
        "NMSE 0.1": 2.0, "se 0.1": 1.0, "NMSE 1": None, "se 1": None,
    }  # fmt: skip
    assert (last["NMSE 0.1"], last["NMSE 1"], last["se 1"]) == (None, 0.5, 0.0)


def test_better_and_worse_are_two_standard_errors_run_by_run():
    results = {
        cell(game.VARIANCE): runs(1.0, 11.0, 21.0),
        cell(game.RANDOM): runs(2.0, 12.1, 22.0),  # about 1 above in every run
        cell(game.VARIANCE, 0.2): runs(1.0, 11.0, 21.0),
        cell(game.RANDOM, 0.2): runs(2.0, 10.0, 22.0),
        cell(game.VARIANCE, 0.4): runs(2.0, 2.0, 2.0),
        cell(game.RANDOM, 0.4): runs(1.0, 1.0, 1.0),
    }
    nmse, npll = tables.duels(results, [])
    assert nmse == {
        "preset": "default", "measure": "NMSE", "rule": "variance", "against": "random",
        "better": 1, "worse": 1, "cells": 3,
    }  # fmt: skip
    assert npll["measure"] == "NPLL"


def test_of_classes_there_is_no_npll():
    some = [game.Result(rate=0.1, error=0.5)] * 2
    results = {cell(rule, problem="dna"): some for rule in (game.VARIANCE, game.RANDOM)}
    [row] = tables.duels(results, ["dna"])
    assert row["measure"] == "error of classes"
    assert (row["better"], row["worse"], row["cells"]) == (0, 0, 1)


def test_rates_are_shown_by_mean_and_by_the_furthest():
    results = {ONE: [*runs(1.0, rate=0.1), *runs(1.0, rate=0.088), *runs(1.0, rate=0.106)]}
    [row] = tables.kept_rates(results)
    assert row == {"rule": "random", "mean 0.1": pytest.approx(0.098), "furthest 0.1": 0.088}
    assert tables.furthest_rate(results) == pytest.approx(0.012)


def limits(branin, sarcos, random, slack=0.0):
    results = {
        cell(game.VARIANCE, 0.1): runs(*branin),
        cell(game.VARIANCE, 0.2, "SARCOS"): runs(*sarcos, rate=0.2),
        cell(game.RANDOM, 0.2, "SARCOS"): runs(*random, rate=0.2),
    }
    return tables.accepted(results, [Gaps(ridge=1e-12, evidence=1e-12)], slack=slack)


def test_all_limits_are_judged():
    good = limits([0.03], [0.08], [0.09])
    assert [a.ok for a in good] == [True] * 6
    bad = limits([0.05], [0.088], [0.08])
    assert [a.ok for a in bad] == [True] * 3 + [False] * 3
    widened = limits([0.03, 0.07], [0.08, 0.1], [0.08, 0.08], slack=2.0)
    assert all(a.ok for a in widened)
    for a in widened[3:]:
        limit = float(re.search(r"; (\S+) widened by 2 standard errors", a.name)[1])
        assert a.limit > limit


# --- the picture


def test_ticks_are_round_numbers():
    assert tables.ticks(-1.2, 1.4, log=False) == [-1.0, 0.0, 1.0]
    assert tables.ticks(0.004, 1.0, log=True) == [0.01, 0.1, 1.0]
    assert tables.ticks(0.1, 0.42, log=True) == [0.1, 0.2, 0.3, 0.4]
    assert tables.ticks(1e-5, 1.0, log=True) == [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0]


def test_curves_go_down_where_errors_do(tmp_path):
    results = {
        cell(game.KL_PAPER, 0.05): runs(0.4, 0.6),
        cell(game.KL_PAPER, 0.1): runs(0.1, 0.1),
        cell(game.ALL, 1.0): runs(0.05, 0.05),
    }
    panel = tables.Panel.of(results, "Branin", tables.ERROR, "NMSE")
    assert panel.curves[game.KL_PAPER] == [(0.05, 0.5, pytest.approx(0.1)), (0.1, 0.1, 0.0)]
    tables.draw([[panel]], tmp_path / "one.svg")
    svg = ElementTree.parse(tmp_path / "one.svg").getroot()
    texts = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Branin: NMSE", "0.05", "0.1", game.KL_PAPER, game.ALL} <= set(texts)
    curves = [p.get("d") for p in svg.iter("{http://www.w3.org/2000/svg}path")]
    [curve] = [d for d in curves if "L" in d]
    (x, y), (right, below) = (map(float, point.split()) for point in curve[1:].split("L"))
    assert (x, right) == (10.0, 180.0)
    assert 0.0 < y < below < 150.0


# --- the benchmark


def table(folder, name, columns, labels):
    rng = np.random.default_rng(1)
    path = folder / problems.FILES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    X = rng.normal(size=(2050, columns)).astype(np.float32)
    if labels == "classes":
        y = (X[:, 0] > 0.0).astype(np.uint8)
        np.savez(path, X_train=X[:1000], y_train=y[:1000], X_test=X[1000:], y_test=y[1000:])
    else:
        np.savez(path, X=X, y=np.stack([np.sin(X[:, 0]), X[:, 1]], axis=1).astype(np.float32))


@pytest.mark.nightly
def test_a_small_plan_has_tables_limits_and_pictures(tmp_path, capsys):
    table(tmp_path, "SARCOS", 3, "numbers")
    table(tmp_path, "dna", 3, "classes")
    plan = egp.Plan(
        problems=("Branin", "SARCOS", "dna", "letter"),
        presets=("default",),
        rules=(game.RANDOM, game.VARIANCE, game.ALL),
        rates=(0.1, 0.2),
        n_runs=1,
    )
    pictures = tmp_path / "pictures"
    measure = partial(egp.measure, plan=plan, pictures=pictures)
    result, _ = document(tmp_path, "egp", measure, "--quick", "--data", str(tmp_path))
    assert "skipped: letter (no file" in capsys.readouterr().out
    lines = [(row["problem"], row["rule"]) for row in result["rows"] if "NMSE 0.1" in row]
    assert lines == [(p, rule) for p in ("Branin", "SARCOS") for rule in plan.rules]
    errors = [row for row in result["rows"] if "error 0.1" in row]
    assert [row["problem"] for row in errors] == ["dna"] * 3
    assert errors[-1]["error 1"] < 0.1
    assert sum("NPLL 0.1" in row for row in result["rows"]) == 6
    assert len(result["acceptance"]) == 6
    assert [file.name for file in pictures.iterdir()] == ["egp-default.svg"]


def test_without_data_its_problems_are_skipped():
    found, skipped = problems.read(problems.REGRESSION, None)
    assert [p.name for p in found] == ["Branin", "Currin", "robot pushing"]
    assert skipped == ["SARCOS (needs --data)", "pumadyn32nm (needs --data)"]


def test_a_table_with_too_few_rows_is_refused(tmp_path):
    table(tmp_path, "SARCOS", 2, "numbers")
    [problem], _ = problems.read(["SARCOS"], tmp_path)
    with pytest.raises(ValueError, match="the table has 2050 rows, a run needs 2051; use a larger"):
        problem.draws(2051, np.random.default_rng(1))
