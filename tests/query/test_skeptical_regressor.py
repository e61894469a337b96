import copy
import json
import math
import pickle
import random

import msgspec
import numpy as np
import pytest
from river import (
    checks,
    compose,
    evaluate,
    forest,
    linear_model,
    metrics,
    neighbors,
    preprocessing,
    tree,
)

from streamgp import (
    EnsembleGPRegressor,
    GPClassifier,
    GPRegressor,
    NotPositiveDefiniteError,
    SkepticalRegressor,
    interactive_val_score,
)
from streamgp.base import Decision
from streamgp.kernels import SquaredExponential
from streamgp.query import (
    KL,
    AdaptiveThreshold,
    AllOf,
    AlwaysAsk,
    AlwaysChallenge,
    AtMost,
    Entropy,
    EqualErrorRounds,
    NeverAsk,
    NeverChallenge,
    OutsideInterval,
    PacedBudget,
    PaperChallenge,
    RandomAsk,
    RateBudget,
    SkepticalAsk,
    SkepticalChallenge,
    SkepticalClassifier,
    Unlimited,
    Variance,
)
from streamgp.query.registry import rules

LEARNERS = {
    "GP": lambda: GPRegressor(noise_variance=0.1),
    "bounded GP": lambda: GPRegressor(noise_variance=0.1, max_points=20),
    "tuned GP": lambda: GPRegressor(learn_hyperparameters=True),
    "tuned and bounded GP": lambda: GPRegressor(learn_hyperparameters=True, max_points=40),
    "ensemble": lambda: EnsembleGPRegressor(n_features=10, seed=1),
    "ensemble that forgets": lambda: EnsembleGPRegressor(n_features=10, forgetting=0.98, seed=1),
    "ensemble of the paper": lambda: EnsembleGPRegressor(n_features=5, preset="paper", seed=1),
    "linear": lambda: linear_model.LinearRegression(l2=0.1),
    "Bayesian": linear_model.BayesianLinearRegression,
    "tree": lambda: tree.HoeffdingTreeRegressor(grace_period=20),
    "nearest": lambda: neighbors.KNNRegressor(
        n_neighbors=3, engine=neighbors.LazySearch(window_size=50)
    ),
    "scaler and linear": lambda: preprocessing.MinMaxScaler() | linear_model.LinearRegression(),
}


def log(n, seed=1, noise=0.3):
    rng = random.Random(seed)
    for _ in range(n):
        x = {"a": rng.uniform(-3.0, 3.0), "b": rng.uniform(-3.0, 3.0)}
        yield x, 20.0 + 10.0 * math.sin(x["a"]) + 3.0 * x["b"] + rng.gauss(0.0, noise)


def taught(name="GP", n=60, **options):
    model = SkepticalRegressor(LEARNERS[name](), warm_up=20, seed=1, **options)
    for i, (x, y) in enumerate(log(n)):
        model.observe_one(x)
        decision = model.query_one(x, event_id=f"e{i}", now=float(i))
        model.note_query(decision, asked=decision.ask, now=float(i))
        given = y + 40.0 if i % 9 == 8 else y
        contested = model.challenge_one(x, given, annotator="ann").ask
        model.settle_one(
            x,
            y if contested else given,
            given=given,
            challenged=contested,
            annotator="ann",
            event_id=f"e{i}" if i % 2 else None,
            std=0.5 if i % 3 else None,
        )
    return model


def restarted(model):
    fresh = model.clone()
    state = json.loads(json.dumps(model.state()))
    fresh.load_state(state, model.examples())
    return fresh


@pytest.mark.parametrize("name", LEARNERS)
def test_its_state_holds_plain_values_whatever_the_learner(name):
    state = taught(name).state()
    assert msgspec.json.decode(msgspec.json.encode(state)) == json.loads(json.dumps(state))


@pytest.mark.parametrize(
    "name", ["GP", *(pytest.param(n, marks=pytest.mark.nightly) for n in ("linear", "Bayesian"))]
)
def test_it_is_an_estimator_of_river(name):
    model, seen = SkepticalRegressor(LEARNERS[name](), seed=1), set()
    for check in checks.yield_checks(model):  # each on the first of its logs
        if check.__name__ not in seen | model._unit_test_skips():
            seen.add(check.__name__)
            check(model.clone())


@pytest.mark.parametrize("name", LEARNERS)
def test_rivers_evaluator_runs_it_and_it_learns_every_target(name):
    model = SkepticalRegressor(LEARNERS[name](), warm_up=20, seed=1)
    metric = evaluate.progressive_val_score(log(80), model, metrics.MAE())
    assert math.isfinite(metric.get())
    assert model.n_learned == 80


def test_a_prediction_is_a_float_and_changes_nothing():
    model = taught()
    before = pickle.dumps(model)
    x = {"a": 0.5, "b": 1.0}
    assert isinstance(model.predict_one(x), float)
    forecast = model.predict_one(x, with_dist=True)
    assert forecast.mu == model.predict_one(x)
    assert forecast.sigma > 0.0
    model.query_one(x)
    model.challenge_one(x, 500.0, annotator="ann", std=1.0)
    model.neighbours_one(x)
    model.state()
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("name", LEARNERS)
def test_a_restored_model_is_equal_bitwise(name):
    model = taught(name)
    model.relabel_one("e3", 7.5)
    model.forget_one("e5")
    twin = restarted(model)
    assert twin.state() == model.state()
    assert twin.fingerprint() == model.fingerprint()
    for i, (x, y) in enumerate(log(25, seed=2)):
        for one in (model, twin):
            one.observe_one(x)
        forecast = model.predict_one(x, with_dist=True)
        assert twin.predict_one(x, with_dist=True).mu == forecast.mu
        assert twin.predict_one(x, with_dist=True).sigma == forecast.sigma
        assert twin.query_one(x, event_id=f"n{i}") == model.query_one(x, event_id=f"n{i}")
        assert twin.challenge_one(x, y, annotator="ann") == model.challenge_one(
            x, y, annotator="ann"
        )
        for one in (model, twin):
            one.settle_one(x, y, given=y, challenged=False, annotator="ann", event_id=f"n{i}")
    assert twin.state() == model.state()


@pytest.mark.parametrize("name", ["GP", "ensemble", "linear", "tree"])
def test_a_relabelled_or_forgotten_example_is_as_if_it_had_been_so_from_the_start(name):
    model, other = (SkepticalRegressor(LEARNERS[name](), warm_up=0, seed=1) for _ in range(2))
    for i, (x, y) in enumerate(log(12)):
        for one in (model, other):
            one.observe_one(x)
        model.settle_one(x, y + (i == 4), given=y, challenged=False, event_id=f"e{i}")
        if i != 7:
            other.settle_one(x, y, given=y, challenged=False, event_id=f"e{i}")
    model.relabel_one("e4", next(y for i, (_, y) in enumerate(log(12)) if i == 4))
    model.forget_one("e7")
    x = {"a": 1.0, "b": 0.0}
    assert model.predict_one(x) == other.predict_one(x)
    assert model._store.targets.mean == other._store.targets.mean
    assert model.n_learned == other.n_learned == 11


def test_a_copy_goes_on_alike_and_alone():
    model = taught()
    twin = copy.deepcopy(model)
    for x, y in log(5, seed=3):
        twin.learn_one(x, y)
    assert (model.n_learned, twin.n_learned) == (60, 65)


def test_the_interval_is_that_of_the_forecast_the_annotator_and_the_answer():
    model = taught(challenge=OutsideInterval(0.9))
    x = {"a": 0.2, "b": -1.0}
    forecast, scatter = model.predict_one(x, with_dist=True), model.scatter("ann")
    for annotator, std in (("ann", None), ("ann", 4.0), ("bob", None)):
        ratio = scatter if annotator == "ann" else 1.0
        sigma = math.sqrt(ratio * (forecast.sigma**2 + (std or 0.0) ** 2))
        from scipy import stats

        end = sigma * stats.t(model.n_learned - 1).ppf(0.95)
        for off, ask in ((0.99 * end, False), (1.01 * end, True)):
            given = forecast.mu - off
            assert model.challenge_one(x, given, annotator=annotator, std=std).ask == ask


def test_nothing_is_contested_before_the_scale_of_the_targets_is_known():
    model = SkepticalRegressor(GPRegressor(), challenge=SkepticalChallenge(0.1), seed=1)
    for target in (5.0, 5.0):
        decision = model.challenge_one({"a": 1.0}, 1e6)
        assert (decision.ask, decision.budget) == (False, "agreement")
        model.learn_one({"a": 1.0}, target)


def test_a_learner_without_a_distribution_is_as_sure_as_it_was_right():
    model = SkepticalRegressor(LEARNERS["linear"](), warm_up=0, seed=1)
    errors = []
    for x, y in log(30):
        model.observe_one(x)
        errors.append(y - model.predict_one(x))
        model.settle_one(x, y, given=y, challenged=False)
    spread = model._store.targets.std
    expected = math.sqrt((spread**2 + sum(e * e for e in errors)) / 31)
    assert model.predict_one({"a": 0.0}, with_dist=True).sigma == pytest.approx(expected)


def test_trust_in_closed_form():
    model = taught()
    x, n = {"a": 0.3, "b": 0.4}, model._error_estimates["ann"].numbers()
    forecast = model.predict_one(x, with_dist=True)
    y = forecast.mu + 0.5
    w = model.probability_wrong_one(x, y, annotator="ann", std=0.2)
    assert model.settle_one(x, y, given=y, challenged=False, annotator="ann", std=0.2) == w
    z2 = 0.25 / (forecast.sigma**2 + 0.04)
    expected = [n[0] + 1, n[1] + w, n[2] + 1 - w, n[3] + (1 - w) * z2 / 0.7784652162]
    assert model._error_estimates["ann"].numbers() == pytest.approx(expected)


@pytest.mark.parametrize(("second", "w"), [(90.0, 0.0), (60.0, 0.0), (21.0, 1.0)])
def test_a_first_answer_was_wrong_if_the_second_is_nearer_to_the_forecast(second, w):
    model = taught()
    x = {"a": 0.0, "b": 0.0}
    assert 18.0 < model.predict_one(x) < 22.0
    assert model.settle_one(x, second, given=90.0, challenged=True, annotator="ann") == w


def test_a_noisy_annotator_is_contested_less_and_wild_answers_are_still():
    """The scatter grows with the annotator's noise; what is far beyond it is contested."""
    model = SkepticalRegressor(GPRegressor(noise_variance=0.01), warm_up=20, seed=1)
    rng = random.Random(5)
    for i, (x, y) in enumerate(log(300, noise=0.0)):
        model.observe_one(x)
        who, noise = ("exact", 0.2) if i % 2 else ("noisy", 3.0)
        given = y + rng.gauss(0.0, noise)
        contested = model.challenge_one(x, given, annotator=who).ask
        model.settle_one(x, given, given=given, challenged=contested, annotator=who)
    assert model.scatter("noisy") > 4.0 * model.scatter("exact")
    x = {"a": 0.0, "b": 0.0}
    off = model.predict_one(x) + 5.0
    assert model.challenge_one(x, off, annotator="exact").ask
    assert not model.challenge_one(x, off, annotator="noisy").ask
    assert model.challenge_one(x, off + 60.0, annotator="noisy").ask


def test_wrong_numbers_do_not_hide_each_other():
    """One answer in five is far off, the first ones unnoticed; later ones are contested."""
    n_kept = 0
    for seed in range(6):
        model, rng = SkepticalRegressor(GPRegressor(), warm_up=20, seed=1), random.Random(seed)
        for x, y in log(150, seed=seed):
            model.observe_one(x)
            given = y if rng.random() >= 0.2 else y + rng.choice([-36.0, 36.0])
            contested = model.challenge_one(x, given, annotator="ann").ask
            final = y if contested else given
            model.settle_one(x, final, given=given, challenged=contested, annotator="ann")
            n_kept += final != y
    assert n_kept < 20  # of some 180


def test_the_usual_spread_is_that_of_the_quartiles_of_the_targets_on_record():
    model = SkepticalRegressor(GPRegressor(), warm_up=0, seed=1)
    for i, y in enumerate([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]):
        model.learn_one({"a": float(i)}, y, event_id=str(i))
    assert model._store.usual_spread == math.inf
    model.learn_one({"a": 7.0}, 700.0, event_id="7")
    model.learn_one({"a": 8.0}, 8.0, event_id="8")
    assert model._store.usual_spread == pytest.approx(4.0 / 1.3489795)
    model.relabel_one("7", 7.0)
    assert model._store.usual_spread == pytest.approx(4.0 / 1.3489795)
    model.forget_one("7")
    assert model._store.usual_spread == pytest.approx(3.5 / 1.3489795)


@pytest.mark.parametrize("y", ["many", True, None, math.nan, math.inf, 1e200])
def test_what_is_no_number_is_neither_contested_nor_learned(y):
    model = taught()
    x = {"a": 1.0, "b": 1.0}
    state = model.state()
    if y != 1e200:
        assert not model.challenge_one(x, y).ask
        assert model.probability_wrong_one(x, y) == model.error_rate(None)
    with pytest.raises((TypeError, ValueError), match="y must be"):
        model.settle_one(x, y, given=y, challenged=False)
    assert model.state() == state


def test_a_learner_that_predicts_nothing_before_its_first_label_knows_nothing():
    """River's AMF predicts None, which made every event a malformed one."""
    model = SkepticalRegressor(forest.AMFRegressor(seed=1), budget=AtMost(40), seed=1)
    x, _ = next(log(1))
    assert (model.predict_one(x), model.query_one(x).ask) == (0.0, True)
    result = interactive_val_score(log(80), model, metrics.MAE())
    assert (result.n_rejected, result.n_asked, result.n_learned) == (0, 40, 40)
    assert 0.0 < result.metric.get() < 10.0


def test_features_that_cannot_be_predicted_are_refused():
    model = SkepticalRegressor(linear_model.LinearRegression(), warm_up=0, seed=1)
    model.learn_one({"a": 1.0}, 2.0)
    with pytest.raises(ValueError, match="LinearRegression or its transformers make no finite"):
        model.predict_one({"a": math.nan})


def test_an_error_beyond_all_numbers_is_not_learned():
    model = SkepticalRegressor(linear_model.LinearRegression(), warm_up=0, seed=1)
    model.settle_one({"a": 1e149}, 1.0, given=1.0, challenged=False)
    before = model.state()
    with pytest.raises(ValueError, match="expected an error whose square is finite; scale"):
        model.settle_one({"a": -1e149}, 1.0, given=1.0, challenged=False)
    assert model.state() == before
    assert math.isfinite(model.predict_one({"a": 0.0}, with_dist=True).sigma)


def test_an_example_that_the_learner_refuses_leaves_no_trace():
    model = SkepticalRegressor(GPRegressor(noise_variance=1e-16), warm_up=0, seed=1)
    model.learn_one({"a": 1.0}, 2.0, event_id="e1")
    state = model.state()
    with pytest.raises(NotPositiveDefiniteError):
        model.settle_one({"a": 1.0}, 2.0, given=2.0, challenged=False, event_id="e2")
    assert model.state() == state


@pytest.mark.parametrize("rule", [AlwaysAsk(), NeverAsk(), RandomAsk(0.3)])
def test_rules_that_look_at_no_belief_ask_about_numbers(rule):
    model = taught(query=rule, budget=RateBudget(0.5))
    decision = model.query_one({"a": 0.0, "b": 0.0}, event_id="e")
    assert decision.criterion == type(rule).__name__


def test_a_budget_limits_questions_and_gets_them_back():
    model = SkepticalRegressor(GPRegressor(), budget=AtMost(1), seed=1)
    wish = model.query_one({"a": 0.0})
    assert wish.ask
    model.note_query(wish, asked=True, now=0.0)
    assert model.query_one({"a": 0.0}).budget == "AtMost"
    model.note_unanswered(now=1.0)
    assert model.query_one({"a": 0.0}).ask


def test_every_argument_is_readable_under_its_name():
    arguments = {
        "model": GPRegressor(),
        "query": RandomAsk(0.5),
        "challenge": NeverChallenge(),
        "budget": Unlimited(),
        "warm_up": 7,
        "seed": 3,
    }
    model = SkepticalRegressor(**arguments)
    assert {name: getattr(model, name) for name in arguments} == arguments
    assert model.clone().fingerprint() == model.fingerprint()
    other = SkepticalRegressor(**{**arguments, "challenge": OutsideInterval(0.9)})
    assert other.fingerprint() != model.fingerprint()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"model": tree.HoeffdingTreeClassifier()}, "must be a River regressor"),
        ({"model": preprocessing.StandardScaler()}, "must be a River regressor"),
        ({"query": Entropy(0.5)}, "query must be a rule for the targets of the model"),
        ({"query": SkepticalAsk()}, "one for classes; take Variance, AlwaysAsk, NeverAsk or Ran"),
        ({"challenge": PaperChallenge()}, "one for classes; take OutsideInterval, Skeptical"),
        ({"challenge": AlwaysChallenge()}, "one for classes"),
        ({"query": OutsideInterval()}, "query must be an object of streamgp.query"),
        ({"budget": 5}, "budget must be"),
        ({"seed": 0.5}, "seed must be"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_at_once(arguments, match):
    with pytest.raises(TypeError, match=match):
        SkepticalRegressor(**{"model": GPRegressor(), **arguments})


# What a strategy is built with where its defaults do not do.
BUILT = {"RandomAsk": RandomAsk(0.5), "KL": KL(least_weight=0.01)}
ASK = {
    name: BUILT[name] if name in BUILT else one.cls()
    for one in rules("query").values()
    for name in [one.cls.__name__]
}
ASK["EqualErrorRounds"] = EqualErrorRounds()  # for pools; no configuration names it
LOOK_AT_NOTHING = {"AlwaysAsk", "NeverAsk", "RandomAsk"}
OF_EXPERTS = {"KL", "Deterministic"}


@pytest.mark.parametrize("name", ASK)
def test_a_rule_is_refused_at_once_or_judges_every_event(name):
    """Of an ensemble: there every rule that is about numbers has something to compare."""
    rule = ASK[name]
    if name not in LOOK_AT_NOTHING | OF_EXPERTS | {"Variance"}:
        with pytest.raises(TypeError, match=r"; take Variance, .* for an ensemble, KL or Determin"):
            SkepticalRegressor(EnsembleGPRegressor(seed=1), rule)
        return
    model = SkepticalRegressor(EnsembleGPRegressor(n_features=10, seed=1), rule, warm_up=5, seed=1)
    for x, y in log(30):
        decision = model.query_one(x)
        assert decision.criterion == name
        assert math.isfinite(decision.score)
        model.learn_one(x, y)


@pytest.mark.parametrize("name", sorted(OF_EXPERTS))
@pytest.mark.parametrize("learner", [GPRegressor(), linear_model.LinearRegression()])
def test_experts_are_compared_in_ensembles_only(name, learner):
    with pytest.raises(TypeError, match=r"has not two of them to compare; take Variance\(\), or"):
        SkepticalRegressor(learner, ASK[name])
    with pytest.raises(TypeError, match=r"got .* for EnsembleGPRegressor, which has not two"):
        SkepticalRegressor(EnsembleGPRegressor([SquaredExponential()]), ASK[name])
    with pytest.raises(TypeError, match=r"got .* for GPClassifier, which has not two of them"):
        SkepticalClassifier(GPClassifier(), ASK[name])


@pytest.mark.parametrize("name", LEARNERS)
def test_without_a_rule_or_budget_it_always_asks(name):
    model = SkepticalRegressor(LEARNERS[name](), warm_up=20, seed=1)
    for x, y in log(60):
        decision = model.query_one(x)
        assert (decision.ask, decision.criterion) == (True, "Variance")
        model.learn_one(x, y)


def asked_about(budget, *, delay, threshold, unit=1.0, restarts=False):
    """Return the events asked about; answers come `delay` events later, and are equal at first."""
    query = Variance(threshold * unit * unit)
    model = SkepticalRegressor(GPRegressor(), query, budget=budget, warm_up=20, seed=1)
    asked, waiting = [], []
    for i, (x, y) in enumerate(log(150)):
        model.observe_one(x)
        decision = model.query_one(x, event_id=str(i), now=float(i))
        model.note_query(decision, asked=decision.ask, now=float(i))
        if decision.ask:
            asked.append(i)
            waiting.append((i + delay, str(i), x, y))
        while waiting and waiting[0][0] <= i:
            _, event_id, x, y = waiting.pop(0)
            told = unit * (y if i > 30 else 20.0)
            model.settle_one(x, told, given=told, challenged=False, event_id=event_id)
            if i > 30 and model.n_learned == 2:
                model.relabel_one("0", unit * y)
        if restarts and i % 3 == 0:
            model = restarted(model)
    return asked


@pytest.mark.parametrize(("delay", "threshold"), [(0, 0.0), (5, 0.0), (5, 30.0)])
@pytest.mark.parametrize(
    "budget",
    [
        RateBudget(0.2),
        AdaptiveThreshold(0.2),
        PacedBudget(10, span_s=50.0),
        PacedBudget(10, span_s=50.0, at_start=3),
        AllOf(RateBudget(0.2), AtMost(25)),
    ],
    ids=repr,
)
def test_questions_depend_neither_on_the_unit_of_the_targets_nor_on_restarts(
    budget, delay, threshold
):
    asked = asked_about(budget, delay=delay, threshold=threshold)
    for unit in (2.0**-30, 2.0**30):  # by powers of two nothing is rounded
        assert asked_about(budget, delay=delay, threshold=threshold, unit=unit) == asked
    assert asked_about(budget, delay=delay, threshold=threshold, restarts=True) == asked


@pytest.mark.parametrize("is_corrected", [True, False], ids=["corrected", "withdrawn"])
@pytest.mark.parametrize(
    "budget", [RateBudget(0.2), AdaptiveThreshold(0.2), PacedBudget(10, span_s=50.0)], ids=repr
)
def test_a_wrong_number_among_equal_ones_leaves_no_unit_behind(budget, is_corrected):
    counts = []
    for unit in (2.0**-30, 1.0, 2.0**30):
        model, asked = SkepticalRegressor(GPRegressor(), budget=budget, warm_up=0, seed=1), []
        for i, (x, y) in enumerate(log(120)):
            told = unit * (y if i == 40 else 20.0)
            if i == 50 and is_corrected:
                model.relabel_one("40", unit * 20.0)
            elif i == 50:
                model.forget_one("40")
            model.observe_one(x)
            decision = model.query_one(x, event_id=str(i), now=float(i))
            model.note_query(decision, asked=decision.ask, now=float(i))
            if decision.ask or i == 40:
                asked.append(i)
                model.settle_one(x, told, given=told, challenged=False, event_id=str(i))
        counts.append(asked)
    assert counts[0] == counts[1] == counts[2]


def test_a_daily_limit_is_used_up_whatever_the_threshold_of_the_variance():
    counts = [
        len(asked_about(PacedBudget(10, span_s=50.0), delay=0, threshold=threshold, unit=unit))
        for threshold in (0.0, 1e-3, 10.0, 30.0)
        for unit in (2.0**-30, 1.0, 2.0**30)
    ]
    assert min(counts) >= 25
    assert max(counts) <= 30


@pytest.mark.parametrize("unit", [2.0**-30, 1.0, 2.0**30])
def test_a_threshold_of_the_variance_cannot_keep_the_first_questions_from_being_asked(unit):
    """Always without a target, then one in ten while the targets vary by less than it."""
    model = SkepticalRegressor(GPRegressor(), Variance(4.0 * unit * unit), warm_up=0, seed=1)
    for i in range(1000):
        assert model.query_one({"a": 1.0}, event_id=str(i)).ask
    for n, y in enumerate((7.0, 7.0, 8.0)):
        model.settle_one({"a": n}, y * unit, given=y * unit, challenged=False)
        asked = [model.query_one({"a": 50.0}, event_id=str(i)).ask for i in range(1000)]
        assert 70 < sum(asked) < 130
    model.settle_one({"a": 5.0}, 70.0 * unit, given=70.0 * unit, challenged=False)
    assert model.query_one({"a": 50.0}).ask
    assert model.query_one({"a": 50.0}).threshold == 4.0 * unit * unit


def test_a_rate_without_a_rule_goes_where_an_observation_varies_most():
    model = SkepticalRegressor(GPRegressor(noise_variance=0.05), budget=RateBudget(0.5), warm_up=0)
    for i in range(40):
        model.learn_one({"a": math.sin(i)}, math.sin(3.0 * math.sin(i)))
    near, far = {"a": 0.0}, {"a": 6.0}
    assert model.query_one(near).score == model.predict_one(near, with_dist=True).sigma ** 2
    asked = {"near": 0, "far": 0}
    for i in range(200):
        place = "far" if i % 2 else "near"
        decision = model.query_one(far if i % 2 else near, now=float(i))
        model.note_query(decision, asked=decision.ask, now=float(i))
        asked[place] += decision.ask
    assert asked["far"] > 90 > 10 > asked["near"]


@pytest.mark.parametrize(
    "y",
    [10**400, np.ones(1), np.ones(2), 1e155, math.nan, -math.inf],
    ids=["long", "array", "longer array", "large", "nan", "infinite"],
)
def test_what_is_no_number_is_refused_and_not_learned(y):
    model = taught()
    before = model.n_learned
    is_one = isinstance(y, float | int)
    error, why = (ValueError, "finite and") if is_one else (TypeError, "a number")
    with pytest.raises(error, match=f"^y must be {why}"):
        model.learn_one({"a": 0.0, "b": 0.0}, y)
    if not isinstance(y, float):
        assert not model.challenge_one({"a": 0.0, "b": 0.0}, y).ask
    assert model.n_learned == before


def test_it_wraps_no_other_skeptical_learner():
    with pytest.raises(TypeError, match="is not skeptical itself"):
        SkepticalRegressor(SkepticalRegressor(GPRegressor()))


def test_a_classifier_contests_no_numbers():
    with pytest.raises(TypeError, match="one for numbers; take SkepticalChallenge, PaperChallenge"):
        SkepticalClassifier(GPClassifier(), challenge=OutsideInterval())


def test_the_neighbours_are_the_nearest_examples():
    model = taught()
    near = model.neighbours_one({"a": 0.0, "b": 0.0})
    assert len(near) == 3
    assert [n.distance for n in near] == sorted(n.distance for n in near)


def test_a_pipeline_may_end_in_a_regressor():
    model = SkepticalRegressor(
        compose.Select("a") | preprocessing.StandardScaler() | GPRegressor(), warm_up=10, seed=1
    )
    for x, y in log(30):
        model.learn_one(x, y)
    assert model.n_learned == 30
    assert restarted(model).state() == model.state()


class Eager:
    def decide(self, belief, given, *, probability_wrong, draw):  # noqa: ARG002
        return True


def test_a_rule_that_returns_no_decision_is_named():
    model = SkepticalRegressor(GPRegressor(), challenge=Eager(), seed=1)
    with pytest.raises(TypeError, match=r"^Eager\.decide must return a Decision, got True; make"):
        model.challenge_one({"a": 1.0}, 1.0)


class Hearing:
    """Asks always, and would learn from the answers."""

    def decide(self, belief, draw):  # noqa: ARG002
        return Decision.of(1.0, draw, "Hearing")

    def hear(self, belief, y):
        raise NotImplementedError


def test_numbers_have_no_strategy_that_learns_from_the_answers():
    with pytest.raises(TypeError, match="query must be a rule without hear and state, got"):
        SkepticalRegressor(GPRegressor(), Hearing())
