import copy
import dataclasses
import datetime as dt
import math
import random
import re
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from river import (
    compose,
    dummy,
    evaluate,
    linear_model,
    metrics,
    naive_bayes,
    preprocessing,
    stats,
)

from streamgp import (
    EnsembleGPRegressor,
    GPClassifier,
    GPRegressor,
    InteractiveResult,
    SimulatedAnnotator,
    SimulatedMeasurer,
    SkepticalRegressor,
    datasets,
    interactive_val_score,
    isgp,
)
from streamgp.interactive import AnnotatorPanel, Challenge, People
from streamgp.metrics import (
    CRPS,
    NMSE,
    NPLL,
    ChallengePrecision,
    IntervalCoverage,
    LabelRate,
)
from streamgp.query import AlwaysAsk, AlwaysChallenge, NeverChallenge
from streamgp.query.skeptical_classifier import SkepticalClassifier


def rooms(n=200, step=7):
    """Readings of all rooms in turn."""
    rows = list(datasets.WiFiRooms())
    return [rows[(i * 500 + i * step) % 2000] for i in range(n)]


class Spy:
    """An annotator who notes every question with its time."""

    def __init__(self, **arguments):
        self.annotator = SimulatedAnnotator(**arguments)
        self.asked = []

    def see(self, truth):
        self.annotator.see(truth)

    def answer(self, request, truth, now):
        self.asked.append((request, truth, now))
        return self.annotator.answer(request, truth, now)


@pytest.mark.parametrize("metric", [metrics.Accuracy(), metrics.LogLoss(), metrics.MacroF1()])
def test_always_asking_a_perfect_annotator_is_progressive_validation(metric):
    rows, river = rooms(), metric.clone()
    evaluate.progressive_val_score(rows, naive_bayes.GaussianNB(), river)
    result = interactive_val_score(rows, naive_bayes.GaussianNB(), metric)
    assert result.metric is metric
    assert metric.get() == pytest.approx(river.get(), rel=1e-12)
    assert result.n_asked == result.n_learned == result.n_events == 200
    assert result.n_scored == 199  # nothing is predicted before the first label
    assert result.n_challenges == result.n_declined == result.n_expired == result.n_rejected == 0
    assert result.challenge_precision is None
    assert result.wrong_kept == 0.0


def test_metrics_are_updated_together_with_what_each_of_them_needs():
    apart = [metrics.Accuracy(), metrics.LogLoss()]
    for metric in apart:
        interactive_val_score(rooms(), naive_bayes.GaussianNB(), metric)
    union = metrics.Accuracy() + metrics.LogLoss()
    interactive_val_score(rooms(), naive_bayes.GaussianNB(), union)
    assert union.get() == [metric.get() for metric in apart]


def test_pipeline_with_a_scaler_is_always_asked():
    model = preprocessing.StandardScaler() | naive_bayes.GaussianNB()
    result = interactive_val_score(rooms(), model, metrics.Accuracy())
    assert result.n_asked == result.n_learned == 200
    assert result.metric.get() > 0.9


def test_metric_hears_the_truth_and_the_model_the_annotator():
    """An annotator who always errs teaches the model to be always wrong."""
    liar = SimulatedAnnotator(error_rate=1.0, classes=[False, True])
    rows = [({"a": n % 2 + 0.1 * (n % 7)}, bool(n % 2)) for n in range(200)]
    result = interactive_val_score(
        rows, naive_bayes.GaussianNB(), metrics.Accuracy(), annotator=liar
    )
    assert result.wrong_kept == 1.0
    assert result.metric.get() < 0.05


def test_counts_of_a_careless_annotator_add_up():
    annotator = SimulatedAnnotator(error_rate=0.3, decline_rate=0.1, seed=1)
    result = interactive_val_score(
        datasets.WiFiRooms().take(800), isgp(seed=1), metrics.Accuracy(), annotator=annotator
    )
    assert isinstance(result, InteractiveResult)
    assert result.n_events == 800
    assert 0 < result.n_asked < 400
    assert result.n_challenges > 0
    assert 0.0 < result.challenge_precision <= 1.0
    assert 0.0 < result.challenge_recall <= 1.0
    assert result.n_repaired + result.n_spoiled <= result.n_challenges
    assert result.n_learned <= result.n_asked
    assert 0.0 < result.wrong_kept < 0.3


def test_challenge_is_a_second_question_with_a_delay_of_its_own():
    model = SkepticalClassifier(
        naive_bayes.GaussianNB(), AlwaysAsk(), AlwaysChallenge(), warm_up=0, seed=1
    )
    spy = Spy(delay=3.5, classes=["a", "b"], error_rate=1.0, seed=1)
    rows = [({"f": float(n % 2)}, "ab"[n % 2]) for n in range(40)]
    result = interactive_val_score(rows, model, metrics.Accuracy(), annotator=spy)
    asked_at = {r.request_id: now for r, _, now in spy.asked}
    contested = [r for r, _, _ in spy.asked if isinstance(r, Challenge)]
    assert len(contested) == result.n_challenges > 0
    for challenge in contested:
        assert asked_at[challenge.request_id] == asked_at[f"{challenge.event_id}/label"] + 3.5


def test_nothing_is_predicted_until_the_first_answer_has_arrived():
    result = interactive_val_score(
        rooms(50),
        naive_bayes.GaussianNB(),
        metrics.Accuracy(),
        annotator=SimulatedAnnotator(delay=10.0),
    )
    # An answer given at the time of an event comes before that event.
    assert result.n_scored == 40
    assert result.n_learned == 50


def test_answers_on_their_way_at_the_end_are_heard():
    result = interactive_val_score(
        rooms(20),
        naive_bayes.GaussianNB(),
        metrics.Accuracy(),
        annotator=SimulatedAnnotator(delay=1e6),
    )
    assert (result.n_scored, result.n_learned) == (0, 20)


def test_unlabelled_events_are_predicted_never_scored_and_declined():
    rows = [(x, None if n % 4 == 3 else y) for n, (x, y) in enumerate(rooms(100))]
    result = interactive_val_score(rows, naive_bayes.GaussianNB(), metrics.Accuracy())
    assert (result.n_events, result.n_scored) == (100, 74)
    assert (result.n_asked, result.n_declined, result.n_learned) == (100, 25, 75)


def test_questions_expire_and_late_answers_are_still_learned():
    result = interactive_val_score(
        rooms(30),
        naive_bayes.GaussianNB(),
        metrics.Accuracy(),
        annotator=SimulatedAnnotator(delay=5.0),
        expires_after_s=3.0,
    )
    assert (result.n_expired, result.n_learned, result.n_rejected) == (30, 30, 0)
    forgetful = interactive_val_score(
        rooms(30),
        naive_bayes.GaussianNB(),
        metrics.Accuracy(),
        annotator=SimulatedAnnotator(delay=5.0),
        answer_horizon_s=4.0,
    )
    assert (forgetful.n_expired, forgetful.n_learned, forgetful.n_rejected) == (30, 0, 30)


def test_data_of_the_user_are_not_changed():
    rows = [(x, y, {"w": 2.0, "privileged": {"n": n}}) for n, (x, y) in enumerate(rooms(60))]
    before = copy.deepcopy(rows)
    interactive_val_score(rows, isgp(seed=1), metrics.Accuracy())
    assert rows == before


def test_dataset_may_refill_one_dictionary():
    def refilled():
        x = {}
        for row, y in rooms(60):
            x.clear()
            x.update(row)
            yield x, y

    annotator = SimulatedAnnotator(delay=3.0)
    fresh, same = (
        interactive_val_score(
            rows, naive_bayes.GaussianNB(), metrics.LogLoss(), annotator=annotator
        )
        for rows in (rooms(60), refilled())
    )
    assert fresh.metric.get() == same.metric.get()


def test_skeptical_classifier_learns_in_place():
    model = isgp(seed=1)
    result = interactive_val_score(rooms(60), model, metrics.Accuracy())
    assert model.n_learned == result.n_learned > 0


def test_same_seeds_give_the_same_result():
    one, other = (
        interactive_val_score(
            rooms(200),
            isgp(seed=3),
            metrics.MacroF1(),
            annotator=SimulatedAnnotator(error_rate=0.2, seed=5),
        )
        for _ in range(2)
    )
    assert repr(one) == repr(other)


UTC = dt.UTC
EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (12, 12.0),
        (12.5, 12.5),
        (dt.datetime(1970, 1, 1, 0, 1), 60.0),
        (dt.datetime(1970, 1, 1, 0, 1, tzinfo=UTC), 60.0),
        (dt.datetime(1970, 1, 1, 2, 1, tzinfo=EAST), 60.0),
        (dt.date(1970, 1, 2), 86400.0),
    ],
)
@pytest.mark.parametrize("by_name", [True, False])
def test_moment_is_a_number_or_a_datetime_in_utc(value, seconds, by_name):
    model = compose.Discard("t") | naive_bayes.GaussianNB()
    spy = Spy()
    interactive_val_score(
        [({"t": value, "f": 1.0}, "a")],
        model,
        metrics.Accuracy(),
        annotator=spy,
        moment="t" if by_name else lambda x: x["t"],
    )
    assert [now for _, _, now in spy.asked] == [seconds]


@pytest.mark.parametrize(
    "model",
    [
        lambda: isgp(seed=1),
        naive_bayes.GaussianNB,
        lambda: SkepticalClassifier(
            compose.FuncTransformer(lambda x: {"f": x["f"], "hour": x["t"].hour})
            | preprocessing.StandardScaler()
            | naive_bayes.GaussianNB(),
            seed=1,
        ),
    ],
)
def test_moment_that_is_a_date_is_a_feature_to_a_pipeline_only(model):
    dates = [dt.datetime(2026, 3, 2, 8) + dt.timedelta(hours=n) for n in range(40)]
    stream = [({"f": float(n % 2), "t": date}, n % 2) for n, date in enumerate(dates)]
    result = interactive_val_score(stream, model(), metrics.Accuracy(), moment="t")
    assert (result.n_events, result.n_rejected) == (40, 0)


def test_moment_is_the_number_of_the_event_by_default():
    spy = Spy()
    interactive_val_score(rooms(3), naive_bayes.GaussianNB(), metrics.Accuracy(), annotator=spy)
    assert [now for _, _, now in spy.asked] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("value", ["noon", None, pd.NaT, np.datetime64("2026-11-29", "ns")])
def test_moment_that_is_no_time_raises(value):
    message = f"moment must give a number of seconds or a datetime, got {value!r}"
    with pytest.raises(TypeError, match=re.escape(message)):
        interactive_val_score(
            [({"t": value}, "a")], naive_bayes.GaussianNB(), metrics.Accuracy(), moment="t"
        )


def test_moment_that_is_not_finite_raises():
    dataset = [({"t": 1.0}, "a"), ({"t": math.inf}, "a")]
    with pytest.raises(ValueError, match=r"^moment must be finite, got inf for event 1$"):
        interactive_val_score(dataset, isgp(), metrics.Accuracy(), moment="t")


def test_printed_lines_have_the_shape_of_river(capsys):
    rows = rooms(250)
    arguments = {"print_every": 100, "show_time": True, "show_memory": True}
    model = SkepticalClassifier(
        naive_bayes.GaussianNB(), AlwaysAsk(), NeverChallenge(), warm_up=0, seed=1
    )
    evaluate.progressive_val_score(rows, model.clone(), metrics.Accuracy(), **arguments)
    river = capsys.readouterr().out
    interactive_val_score(rows, model, metrics.Accuracy(), **arguments)
    ours = capsys.readouterr().out
    # What was measured may differ, and wrapping makes the models differ in size.
    vague = re.compile(r"\d\d:\d\d:\d\d – [\d,.]+ \w+$", re.MULTILINE)
    assert vague.sub("", ours) == vague.sub("", river)
    assert len(vague.findall(ours)) == 3
    assert ours.startswith("[100] Accuracy: ")


def test_nothing_is_printed_by_default(capsys):
    interactive_val_score(rooms(20), naive_bayes.GaussianNB(), metrics.Accuracy())
    assert capsys.readouterr().out == ""


def test_result_reads_as_a_sentence():
    result = InteractiveResult(
        metric=metrics.Accuracy(),
        n_events=2000,
        n_scored=1999,
        n_asked=254,
        n_challenges=57,
        challenge_precision=0.632,
        challenge_recall=0.72,
        n_repaired=32,
        n_spoiled=1,
        n_declined=3,
        n_expired=0,
        n_rejected=2,
        n_learned=251,
        wrong_kept=0.035,
    )
    assert (
        str(result)
        == repr(result)
        == (
            "Accuracy: 0.00%\n"
            "2,000 events: 254 labels asked, "
            "57 challenges (63.2% justified, 32 repaired, 1 spoiled), 251 labels learned "
            "(3.5% wrong), 3 declined, 2 rejected"
        )
    )


def test_empty_dataset_gives_an_empty_result():
    result = interactive_val_score([], isgp(seed=1), metrics.Accuracy(), print_every=1)
    assert (
        str(result) == "Accuracy: 0.00%\n0 events: 0 labels asked, 0 challenges, 0 labels learned"
    )


def test_misuse_raises():
    with pytest.raises(
        TypeError, match="model must be a River classifier or regressor, got StandardScaler"
    ):
        interactive_val_score([], preprocessing.StandardScaler(), metrics.Accuracy())
    with pytest.raises(TypeError, match="classifier or regressor, got the class GPClassifier"):
        interactive_val_score([], GPClassifier, metrics.Accuracy())
    with pytest.raises(ValueError, match="Accuracy metric is not compatible with Linear"):
        interactive_val_score([], linear_model.LinearRegression(), metrics.Accuracy())
    with pytest.raises(ValueError, match="MAE metric is not compatible with"):
        interactive_val_score([], naive_bayes.GaussianNB(), metrics.MAE())
    with pytest.raises(
        ValueError, match="print_every must be a whole number of at least 0, got -1"
    ):
        interactive_val_score([], naive_bayes.GaussianNB(), metrics.Accuracy(), print_every=-1)


@pytest.mark.parametrize(
    ("metric", "where"),
    [
        (LabelRate(), "n_asked / n_events of the result"),
        (ChallengePrecision(), "challenge_precision of the result"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_metric_of_questions_is_refused_with_where_its_number_is_found(metric, where):
    sentence = (
        f"{type(metric).__name__} judges questions, not predictions, and is updated by hand; pass "
        "a metric of River such as metrics.Accuracy(). "
        f"The same number is counted anyway: {where}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        interactive_val_score([], isgp(), metric)
    together = metrics.base.Metrics([metrics.Accuracy(), metric])
    with pytest.raises(ValueError, match="Metrics metric is not compatible with"):
        interactive_val_score([], isgp(), together)


@pytest.mark.parametrize("missing", [math.nan, pd.NA])
def test_a_label_that_is_missing_is_none(missing):
    dataset = [({"a": 1.0}, "p"), ({"a": 2.0}, missing), ({"a": 1.0}, "p")]
    result = interactive_val_score(dataset, isgp(seed=1), metrics.Accuracy())
    assert (result.n_events, result.n_learned) == (3, result.n_asked - result.n_declined)


def test_a_regressor_is_evaluated_in_conversation():
    rng = random.Random(1)
    data = []
    for _ in range(150):
        x = {"a": rng.uniform(-3.0, 3.0), "b": rng.uniform(-3.0, 3.0)}
        data.append((x, 20.0 + 10.0 * math.sin(x["a"]) + 3.0 * x["b"]))
    model = SkepticalRegressor(GPRegressor(noise_variance=0.05), warm_up=20, seed=1)
    annotator = SimulatedMeasurer(error_rate=0.15, noise=0.3, seed=2)
    result = interactive_val_score(data, model, metrics.MAE(), annotator=annotator)
    assert result.n_asked == result.n_events == 150
    assert result.n_scored == 149
    assert result.metric.get() < 2.5
    assert result.challenge_precision > 0.6
    assert result.n_repaired > 10


def test_metrics_of_distributions_in_closed_form():
    """After a first target of 0 the usual error is that of two: 1, the scale of nothing, and 0."""
    data = [({"a": 1.0}, 0.0), ({"a": 2.0}, 2.0)]
    together = metrics.base.Metrics([metrics.MAE(), NPLL(), CRPS(), IntervalCoverage(0.9)])
    result = interactive_val_score(data, dummy.StatisticRegressor(stats.Mean()), together)
    sigma, z = math.sqrt(0.5), 2.0 / math.sqrt(0.5)
    normal = NormalDist()
    crps = z * (2.0 * normal.cdf(z) - 1.0) + 2.0 * normal.pdf(z) - 1.0 / math.sqrt(math.pi)
    nll = 0.5 * math.log(2.0 * math.pi * 0.5) + 0.5 * z * z
    assert result.n_scored == 1
    assert together.get() == pytest.approx([2.0, nll, sigma * crps, 0.0])


class Handed(CRPS):
    """Keeps what it is handed."""

    def __init__(self):
        super().__init__()
        self.handed = []

    def update(self, y_true, y_pred):
        super().update(y_true, y_pred)
        self.handed.append((y_true, y_pred))


@pytest.mark.parametrize(
    "learner",
    [
        lambda: EnsembleGPRegressor(n_features=10, n_initial=3, seed=1),
        lambda: GPRegressor(noise_variance=0.1),
        lambda: linear_model.BayesianLinearRegression(),
    ],
)
def test_a_metric_of_distributions_gets_what_was_predicted_before_learning(learner):
    data = [({"a": math.sin(n)}, math.cos(n)) for n in range(25)]
    metric, nmse, npll = Handed(), NMSE(), NPLL()
    model = learner()
    interactive_val_score(data, model, metrics.base.Metrics([metric, nmse, npll]))
    assert len(metric.handed) == 24
    twin = learner()
    by_hand = NMSE()
    for i, (x, y) in enumerate(data):
        expected = twin.predict_one(x, with_dist=True)
        if i:
            by_hand.update(y, expected.mu)
            truth, handed = metric.handed[i - 1]
            assert truth == y
            assert (handed.mu, handed.sigma) == (expected.mu, expected.sigma)
            if isinstance(twin, EnsembleGPRegressor):
                assert handed == expected
        twin.learn_one(x, y)
    assert nmse.get() == pytest.approx(by_hand.get())
    assert math.isfinite(npll.get())


@pytest.mark.parametrize("metric", [NPLL(), CRPS(), IntervalCoverage(), NMSE()])
def test_a_metric_of_numbers_is_not_for_classes(metric):
    name = type(metric).__name__
    with pytest.raises(ValueError, match=f"{name} metric is not compatible with"):
        interactive_val_score([], isgp(seed=1), metric)
    data = [({"a": float(n)}, float(n)) for n in range(5)]
    assert interactive_val_score(data, GPRegressor(), metric).n_scored == 4


def test_nmse_is_for_rivers_evaluator_and_metrics_of_distributions_are_not():
    data = [({"a": float(n)}, float(n % 3)) for n in range(9)]
    assert evaluate.progressive_val_score(data, GPRegressor(), NMSE()).get() > 0.0
    with pytest.raises(ValueError, match="CRPS metric is not compatible with"):
        evaluate.progressive_val_score(data, GPRegressor(), CRPS())


def test_an_ordinary_regressor_is_asked_always_and_never_challenges():
    data = [({"a": float(n % 7)}, 3.0 * (n % 7)) for n in range(60)]
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    result = interactive_val_score(data, model, metrics.RMSE())
    assert (result.n_asked, result.n_challenges, result.wrong_kept) == (60, 0, 0.0)


def test_a_model_that_fails_over_an_event_is_reported_and_the_others_are_scored():
    class Faulty(type(isgp())):
        def query_one(self, x, **options):
            if x["u"] == 3.0:
                raise ZeroDivisionError("by what?")
            return super().query_one(x, **options)

    stream = [({"u": float(n)}, "ab"[n % 2]) for n in range(6)]
    model = Faulty(isgp().model, seed=1)
    with pytest.warns(RuntimeWarning, match="failed over 1 of the inputs.* ZeroDivisionError: by"):
        result = interactive_val_score(stream, model, metrics.Accuracy())
    assert (result.n_events, result.n_rejected) == (6, 1)


def test_a_model_that_cannot_use_an_event_is_reported():
    stream = [({"u": float(n)}, "ab"[n % 2]) for n in range(6)]
    stream[3][0]["at"] = dt.datetime(2026, 8, 1)
    with pytest.warns(RuntimeWarning, match=r"cannot use 1 of the inputs.*feature 'at' must be"):
        result = interactive_val_score(stream, isgp(seed=1), metrics.Accuracy())
    assert result.n_rejected == 1


def test_answers_with_the_same_id_are_reported():
    class Forgetful(Spy):
        def answer(self, request, truth, now):
            return dataclasses.replace(super().answer(request, truth, now), answer_id="answer")

    stream = [({"u": float(n)}, "ab"[n % 2]) for n in range(3)]
    words = r"knows the ids of 2 of the inputs.*: answer 'answer' was handled before"
    with pytest.warns(RuntimeWarning, match=words):
        result = interactive_val_score(
            stream, naive_bayes.GaussianNB(), metrics.Accuracy(), annotator=Forgetful()
        )
    assert (result.n_learned, result.n_rejected) == (1, 2)


def test_a_model_that_can_use_no_event_has_no_score():
    stream = [({"u": float(n), "at": dt.datetime(2026, 8, 1, n)}, "ab"[n % 2]) for n in range(6)]
    with pytest.raises(ValueError, match=r"no event could be used: .* 6 of .*feature 'at' must be"):
        interactive_val_score(stream, isgp(seed=1), metrics.Accuracy())


def test_a_model_that_cannot_learn_a_label_is_reported():
    model = SkepticalClassifier(linear_model.LogisticRegression(), warm_up=0, seed=1)
    with pytest.warns(RuntimeWarning, match=r"cannot learn \d+ of the inputs.*OneVsRestClassifier"):
        result = interactive_val_score(
            [(x, f"room {y}") for x, y in rooms(30)], model, metrics.Accuracy()
        )
    assert result.n_rejected == result.n_asked > 0


@pytest.mark.parametrize("y", [("a",), b"a", ["a"], dt.date(2026, 8, 1), float("inf")])
def test_what_is_no_label_raises(y):
    stream = [({"u": 1.0}, "a"), ({"u": 2.0}, y)]
    with pytest.raises(TypeError, match=r"^y of event 1: a label must be .*, got"):
        interactive_val_score(stream, isgp(seed=1), metrics.Accuracy())


def test_a_target_that_is_no_number_raises():
    with pytest.raises(
        TypeError, match=r"^y of event 0: the target of a regressor must be a number"
    ):
        interactive_val_score([({"u": 1.0}, "a")], SkepticalRegressor(GPRegressor()), metrics.MAE())


def test_an_annotator_who_measures_is_not_for_classes():
    with pytest.raises(TypeError, match=r"SimulatedMeasurer answers with numbers, and .* classes"):
        interactive_val_score([], isgp(), metrics.Accuracy(), annotator=SimulatedMeasurer())


def test_what_is_no_dict_of_features_raises():
    with pytest.raises(TypeError, match=r"^x must be a dict of features, got NoneType; a dataset"):
        interactive_val_score([(None, "a")], isgp(), metrics.Accuracy())


def test_a_moment_that_is_not_there_raises():
    with pytest.raises(KeyError, match="event 1 has no feature 't', which is its moment"):
        interactive_val_score(
            [({"t": 1.0}, "a"), ({"u": 1.0}, "a")], isgp(), metrics.Accuracy(), moment="t"
        )


def test_second_questions_are_counted_beside_the_first_ones():
    panel = AnnotatorPanel(
        [SimulatedAnnotator(0.2, name=name, seed=1) for name in ("ann", "bob")], seed=1
    )
    result = interactive_val_score(
        datasets.WiFiRooms().take(300),
        isgp(seed=1),
        metrics.Accuracy(),
        annotator=panel,
        people=People(overlap=0.5, repeat=0.3),
    )
    assert 0 < result.n_second < result.n_asked + result.n_challenges
    assert f"{result.n_second} asked twice" in repr(result)
    assert result.n_rejected == 0


@pytest.mark.parametrize(
    ("make", "metric"),
    [
        (lambda: isgp(seed=1), metrics.Accuracy),
        (lambda: SkepticalRegressor(GPRegressor(max_points=20), AlwaysAsk(), seed=1), metrics.MAE),
    ],
)
def test_a_model_goes_on_learning_in_a_second_call(make, metric):
    """As where a cell of a notebook is run again; events are not taken for those of before."""
    model = make()
    first = interactive_val_score(rooms(), model, metric())
    second = interactive_val_score(rooms(200, step=11), model, metric())
    assert second.n_rejected == 0
    assert second.n_learned > 0
    assert model.n_learned == first.n_learned + second.n_learned
    assert interactive_val_score(rooms(100, step=13), model, metric()).n_rejected == 0
