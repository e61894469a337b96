"""The comparison of ask rules: adapters say what their strategy says, label counts fit."""

import math
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks._logs import read
from benchmarks.comparison import conversation as knobs
from benchmarks.comparison.conversation import Score
from benchmarks.comparison.skactiveml import RiverAsk, SkactivemlAsk
from benchmarks.comparison.strategies import benchmark as strategies
from benchmarks.comparison.strategies import rules
from streamgp import SkepticalClassifier, isgp
from streamgp.base import Posterior
from streamgp.query.strategies import ONE_CLASS_RATE
from tests.helpers.benchmark_runs import document

ZLIOBAITE = ("FixedUncertainty", "VariableUncertainty", "RandomVariableUncertainty", "Split")


def score(n_asked, accuracy=0.5):
    return Score(accuracy=accuracy, macro_f1=0.5, n_asked=n_asked, n_challenges=1.0, wrong_kept=0.1)


def asks(rule, beliefs, draw=0.5):
    return [rule.decide(belief, draw).ask for belief in beliefs]


def setting(name, **kwargs):
    entry = rules.CONTENDERS[name]
    knob = entry.start or 0.1
    return rules.Setting(**{"knob": knob, "most": 10**6, "n_classes": 3, "seed": 1} | kwargs)


# --- adapters


@pytest.mark.parametrize("n_known", [0, 1])
def test_river_starts_as_rules_on_probabilities_do(n_known):
    belief = {"home": 1.0} if n_known else {}
    rule = RiverAsk(1.0, seed=1)
    assert [rule.decide(belief, draw).ask for draw in (0.0, 0.099, 0.1, 0.9)] == [
        draw < (ONE_CLASS_RATE if n_known else 1.0) for draw in (0.0, 0.099, 0.1, 0.9)
    ]


@pytest.mark.parametrize("discount", [0.5, 3.0])
def test_river_asks_with_the_power_of_the_entropy_as_probability(discount):
    belief = {"home": 0.8, "work": 0.2, "gym": 0.0}
    draws = random.Random(7)
    p = (-0.8 * math.log2(0.8) - 0.2 * math.log2(0.2)) ** discount
    expected = [draws.random() < p for _ in range(50)]
    assert asks(RiverAsk(discount, seed=7), [belief] * 50) == expected


def test_river_reads_posteriors_by_their_probabilities():
    tie = Posterior(mean={"home": 0.3, "work": 0.3}, variance=1.0)
    sure = Posterior(mean={"home": 0.3, "work": -0.3}, variance=1.0)
    assert asks(RiverAsk(1.0, seed=1), [tie, sure] * 5) == [True, False] * 5


@pytest.mark.parametrize("name", ZLIOBAITE)
def test_skactiveml_says_what_it_says_when_driven_by_hand(name):
    stream = pytest.importorskip("skactiveml.stream")
    base = pytest.importorskip("skactiveml.base")

    class Told(base.SkactivemlClassifier):
        def fit(self, X, y, sample_weight=None):  # noqa: ARG002
            return self

        def predict_proba(self, X):  # noqa: ARG002
            return self.told

    options = {"classes": [0, 1, 2]} if name == "FixedUncertainty" else {}
    strategy = getattr(stream, name)(budget=0.3, random_state=5, **options)
    clf = Told()
    p = np.random.default_rng(1).dirichlet([1.0, 1.0, 1.0], size=200)
    expected = []
    for row in p:
        clf.told = row[None, :]
        queried = strategy.query([[0.0]], clf=clf)
        strategy.update(np.array([[0.0]]), queried)
        expected.append(len(queried) == 1)
    rule = SkactivemlAsk(name, 0.3, n_classes=3, seed=5)
    assert asks(rule, [dict(zip("abc", row, strict=True)) for row in p.tolist()]) == expected
    assert 0.2 < np.mean(expected) < 0.5


def test_skactiveml_baselines_spend_their_budget_and_look_at_nothing():
    pytest.importorskip("skactiveml")
    sure = {"home": 1.0, "work": 0.0}
    periodic = SkactivemlAsk("PeriodicSampling", 0.25, n_classes=2, seed=1)
    assert asks(periodic, [{}] * 4 + [sure] * 8) == [False, False, False, True] * 3
    at_random = SkactivemlAsk("StreamRandomSampling", 0.25, n_classes=2, seed=1)
    assert 70 < sum(asks(at_random, [sure] * 400)) < 130


def test_skactiveml_is_unsure_of_everything_before_the_first_label():
    pytest.importorskip("skactiveml")
    rule = SkactivemlAsk("FixedUncertainty", 0.5, n_classes=4, seed=1)
    assert asks(rule, [{}]) == [True]


def test_skactiveml_does_not_stop_asking_at_the_first_class():
    pytest.importorskip("skactiveml")
    rule = SkactivemlAsk("FixedUncertainty", 0.5, n_classes=4, seed=1)
    assert [rule.decide({"home": 1.0}, draw).ask for draw in (0.05, 0.5)] == [True, False]
    # With a second class known its own threshold decides: .25 + .5 * .75.
    beliefs = [{"home": p, "work": 1.0 - p} for p in (0.99, 0.63, 0.62)]
    assert asks(rule, beliefs, draw=0.0) == [False, False, True]


# --- contenders and matching


@pytest.mark.parametrize("name", rules.CONTENDERS)
def test_contender_is_the_default_model_with_another_way_to_ask(name):
    model = rules.built(name, setting(name))
    assert isinstance(model, SkepticalClassifier)
    assert repr(model.model) == repr(isgp(seed=1).model)
    assert (model.warm_up, model.challenge) == (isgp(seed=1).warm_up, None)
    decision = model.query_one({"light": 1.0}, event_id="e")
    assert math.isfinite(decision.score)


@pytest.mark.parametrize(
    "name", [name for name, entry in rules.CONTENDERS.items() if entry.largest is not None]
)
def test_a_larger_knob_asks_for_more(name):
    rng = np.random.default_rng(2)
    beliefs = [dict(zip("abc", p, strict=True)) for p in rng.dirichlet([0.5] * 3, 300).tolist()]
    draws = rng.random(300)

    def n_asked(knob):
        entry = rules.CONTENDERS[name]
        at = setting(name, knob=knob)
        rule, budget = entry.rule(at), entry.budget(at)
        n = 0
        for now, (belief, draw) in enumerate(zip(beliefs, draws, strict=True)):
            decision = rule.decide(belief, draw)
            asked = decision.ask and budget.allows(decision, now)
            budget.note(decision, asked, now)
            n += asked
        return n

    assert n_asked(0.05) < n_asked(0.2) < n_asked(0.6)


@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.5])
@pytest.mark.parametrize("n", [100, 200, 400])
def test_matching_finds_the_number_of_labels_of_any_smooth_rule(exponent, n):
    tried = []

    def measure(knob):
        tried.append(knob)
        return score(min(2000.0, 300.0 * knob**exponent))

    found = knobs.matched(measure, n, {}, 1.0, 100.0)
    assert abs(found.n_asked / n - 1.0) <= knobs.TOLERANCE
    assert len(tried) <= 5


def test_matching_may_count_challenges_among_the_questions():
    def measure(knob):
        return replace(score(100.0 * knob), n_challenges=50.0 * knob)

    def questions(found):
        return found.n_asked + found.n_challenges

    found = knobs.matched(measure, 240, {}, 1.0, 100.0, questions)
    assert abs(questions(found) / 240 - 1.0) <= knobs.TOLERANCE


def test_matching_measures_nothing_that_is_known_to_fit():
    known = {0.3: score(101.0)}
    assert knobs.matched(pytest.fail, 100, known, 0.1, 1.0) is known[0.3]


def test_matching_stops_at_the_largest_knob_and_keeps_what_it_got():
    tried = []

    def measure(knob):
        tried.append(knob)
        return score(50.0 * knob)

    assert knobs.matched(measure, 100, {}, 0.5, 1.0).n_asked == 50.0
    assert tried == [0.5, 1.0]


@pytest.mark.parametrize("few", [0.0, 60.0])
def test_matching_cuts_labels_off_where_their_number_jumps_past_the_one_wanted(few):
    tried = []

    def measure(knob, limit=None):
        tried.append((knob, limit))
        n_asked = 130.0 if knob > 0.37 else few
        return score(n_asked if limit is None else min(n_asked, limit))

    assert knobs.matched(measure, 100, {}, 0.2, 1.0).n_asked == 100.0
    enough = [knob for knob, limit in tried if limit is None and knob > 0.37]
    assert tried[-1] == (min(enough), 100)


def test_matching_prefers_few_labels_to_a_limit_that_leaves_fewer():
    known = {0.1: score(90.0), 0.11: score(130.0)}

    def measure(knob, limit=None):  # noqa: ARG001
        return score(130.0 if limit is None else 70.0)

    assert knobs.matched(measure, 100, known, 0.1, 1.0) is known[0.1]


@pytest.mark.parametrize("name", [rules.DEFAULT, "RandomAsk", "AlwaysAsk + AtMost"])
def test_labels_fit_on_a_stream(name):
    log = read("wifi_rooms", None, 500)
    job = rules.Job(
        log=log, order="random", contender=name, budgets=[25, 50], seeds=[1], challenges=False
    )
    for n, got in job.scores().items():
        assert got.n_asked == pytest.approx(n, rel=0.1)
        assert got.n_challenges == 0
        assert 0.3 < got.accuracy < 1.0


# --- tables and the command


def cell(contender, log, rate, accuracy, n_asked=10.0):
    return strategies.Cell(
        contender=contender, log=log, rate=rate, n=10, score=score(n_asked, accuracy)
    )


CELLS = [
    cell(rules.DEFAULT, "a", 0.1, 0.8),
    cell(rules.DEFAULT, "a", 0.1, 0.6),  # another order of the same log
    cell(rules.DEFAULT, "b", 0.1, 0.9, n_asked=9.0),
    cell("RandomAsk", "a", 0.1, 0.9),
    cell("RandomAsk", "a", 0.1, 0.7),
    cell("RandomAsk", "b", 0.1, 0.7),
]


def test_every_log_has_the_same_weight_whatever_its_orders():
    default, at_random = strategies.by_rate(CELLS)
    assert (default["accuracy 10%"], default["accuracy"]) == (pytest.approx(0.8),) * 2
    assert at_random["accuracy"] == pytest.approx(0.75)
    assert at_random["above default"] == pytest.approx(-0.05)
    assert at_random["se"] == pytest.approx(0.15)
    assert strategies.mean_off(CELLS, rules.DEFAULT) == pytest.approx(0.05)


def test_winners_are_named_log_by_log():
    assert [(row["log"], row["best"], row["difference"]) for row in strategies.winners(CELLS)] == [
        ("a", "RandomAsk", pytest.approx(0.1)),
        ("b", rules.DEFAULT, 0.0),
    ]


def test_ranks_with_and_without_challenges_stand_side_by_side():
    swapped = [cell(c.contender, c.log, c.rate, 1.0 - c.score.accuracy) for c in CELLS]
    ranks = [
        (r["rank with challenges"], r["rank without"]) for r in strategies.ranks(swapped, CELLS)
    ]
    assert ranks == [(1, 2), (2, 1)]


def measured(tmp_path, plan, *arguments):
    measure = partial(strategies.measure, plan=plan)
    return document(tmp_path, "strategies", measure, *arguments)


@pytest.mark.nightly
def test_benchmark_compares_what_is_there_and_names_what_is_not(tmp_path, capsys):
    plan = strategies.Plan(
        logs=("wifi_rooms", "elec2"),
        contenders=(rules.DEFAULT, "RandomAsk", "EntropySampler"),
        n_events=120,
        n_seeds=1,
        rates=(0.1, 0.2),
        n_workers=1,
    )
    result, status = measured(tmp_path, plan, "--check")
    assert (result["benchmark"], status) == ("strategies", 0)
    said = capsys.readouterr().out
    assert "skipped: elec2 (needs --data)" in said
    assert "wifi_rooms recorded (120)" in said
    assert result["acceptance"] == []  # one log alone says nothing about rules
    rows = result["rows"]
    assert [r["rule"] for r in rows if "accuracy 20%" in r] == list(plan.contenders)
    assert [r["share"] for r in rows if "share" in r] == [0.1, 0.2]
    assert all(r["us per decision"] > 0 for r in rows if "us per decision" in r)
    everything = next(r for r in rows if r.get("unlimited") == "AlwaysAsk")
    assert everything["share of events asked about"] == 1.0


def test_missing_scikit_activeml_is_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(strategies, "HAS_SKACTIVEML", False)
    plan = strategies.Plan(
        logs=("wifi_rooms",),
        contenders=(rules.DEFAULT,),
        n_events=60,
        n_seeds=1,
        rates=(0.1,),
        rate_without_challenges=None,
        n_workers=1,
    )
    measured(tmp_path, plan, "--quick")
    assert "strategies of scikit-activeml (not installed" in capsys.readouterr().out


def test_acceptance_compares_the_best_rule_with_the_default():
    cells = [
        cell(name, log, 0.1, accuracy)
        for log, default in (("a", 0.8), ("b", 0.7), ("c", 0.9))
        for name, accuracy in ((rules.DEFAULT, default), ("RandomAsk", default + 0.02))
    ]
    gap, labels = strategies._accepted(cells, slack=0.0)
    assert gap.name == (
        "mean accuracy of the best other rule (RandomAsk) above that of SkepticalAsk (at most)"
    )
    assert (gap.value, gap.limit, gap.ok) == (pytest.approx(0.02), 0.01, False)
    assert labels.ok
    widened, _ = strategies._accepted(cells, slack=2.0)
    assert "0.01 widened by 2 standard errors" in widened.name
