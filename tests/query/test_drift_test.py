"""The drift test: its sum by hand, its error rates by simulation, and what it makes of a change."""

import json
import math
import random
import sys
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, metrics
from river.naive_bayes import GaussianNB

from streamgp import (
    DriftTest,
    GPClassifier,
    InteractiveLoop,
    Posterior,
    SkepticalClassifier,
    isgp,
)
from streamgp.base import Decision
from streamgp.common.recalibration import LogisticCalibration
from streamgp.datasets import WiFiRooms
from streamgp.interactive import Answer, Challenge, Event, LabelRequest, People
from streamgp.query import Entropy, NeverAsk, SkepticalAsk, criteria
from streamgp.query.drift_test import RunningDriftTest, differing, surprise
from tests.helpers.laws import examples

# --- the sum


def told(belief, y, *, error_rate):
    """How surprising a label is, if predictions are right as often as stated."""
    right = min(criteria.probability_right(belief), 0.98)  # 49 of 50 beforehand
    return surprise(
        y != criteria.predicted(belief), *differing(belief, right, error_rate=error_rate)
    )


@pytest.mark.parametrize(
    ("right", "e", "n_classes"), [(0.9, 0.1, 2), (0.7, 0.3, 2), (0.9, 0.2, 5), (0.5, 0.1, 3)]
)
def test_surprise_is_the_ratio_of_two_mixtures(right, e, n_classes):
    others = [f"y{k}" for k in range(1, n_classes)]
    belief = {"y0": right, **{y: (1.0 - right) / len(others) for y in others}}

    def seen(q, y):
        """Sum over all truths: the predicted one has probability q, each other one an equal share.

        An annotator who errs says any of the others.
        """
        prior = {truth: q if truth == "y0" else (1.0 - q) / len(others) for truth in belief}
        said = {t: 1.0 - e if t == "y0" else e / len(others) for t in belief}  # "y0", given t
        same = sum(prior[truth] * said[truth] for truth in belief)
        return same if y == "y0" else 1.0 - same

    for y in ("y0", "y1"):
        expected = math.log(seen(min(right, 0.5), y) / seen(right, y))
        assert told(belief, y, error_rate=e) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("belief", [{}, {"night": 1.0}, Posterior(mean={}, variance=1.0)])
def test_an_unknown_label_and_one_before_all_predictions_tell_nothing(belief):
    running = RunningDriftTest(DriftTest())
    running.learn(belief, "day", annotator=None, asked=False, error_rate=0.1, reconsidered=False)
    assert running.state() == RunningDriftTest(DriftTest()).state()


def test_a_posterior_that_knows_nothing_is_never_surprised():
    belief = Posterior(mean={"day": 0.0, "night": 0.0}, variance=1.0)
    assert told(belief, "day", error_rate=0.1) == pytest.approx(0.0)
    assert told(belief, "night", error_rate=0.1) == pytest.approx(0.0)


def test_an_answer_upheld_in_a_challenge_surprises_more():
    belief = {"day": 0.9, "night": 0.1}
    asked_once, upheld = (RunningDriftTest(DriftTest()) for _ in range(2))
    for running in (asked_once, upheld):
        options = {"error_rate": 0.2, "reconsidered": running is upheld}
        running.learn(belief, "night", annotator="ann", asked=True, **options)
    assert upheld.least() > asked_once.least() > DriftTest().at_least


@given(st.lists(st.floats(-1.0, 1.5), max_size=60), st.floats(1.5, 50.0))
def test_the_sum_is_the_largest_of_all_suffixes(steps, run_length):
    """Page's sum is the largest of 0 and all sums of the latest steps."""
    running, since = RunningDriftTest(DriftTest(run_length=run_length)), []
    for step in steps:
        since.append(step)
        suffixes = list(accumulate(reversed(since)))
        largest = max(0.0, *suffixes)
        found = running.note(step)
        if largest < math.log(run_length) - 1e-9:
            assert found is None
        if found is not None:
            # The change is where the sum of what follows is largest: the longest such suffix.
            assert suffixes[found - 1] == pytest.approx(largest)
            since = []


def noted(*told):
    running = RunningDriftTest(DriftTest(run_length=100))
    return running, [running.note(surprise, who) for surprise, who in told]


HONEST = [(-0.5, "ann"), (-0.5, "bob")]


def test_one_annotator_alone_is_not_believed_against_the_others():
    running, found = noted(*[*HONEST, (2.0, "eve")] * 20)
    assert set(found) == {None}
    (suspicion,) = running.state()["suspicions"]
    assert suspicion[1] == pytest.approx(math.log(100.0))
    running.note(-0.5, "ann")
    assert running.least() == 0.005  # although the sum is near its largest


def test_one_annotator_is_not_believed_while_the_others_are_silent_but_more_is_asked():
    running, found = noted(*HONEST, *[(2.0, "eve")] * 9)
    assert set(found) == {None}
    assert running.least() == 0.1


def test_one_surprise_of_another_annotator_does_not_confirm_what_one_insists_on():
    """It may be an error, or about an event of which the learner is not sure."""
    running, _ = noted(*HONEST, *[(2.0, "eve")] * 9)
    assert running.note(1.5, "ann") is None  # a third of the alarm is log(100) / 3 = 1.54
    assert running.note(1.5, "bob") == 2  # dated to what the others have shown
    running, _ = noted(*HONEST, *[(2.0, "eve")] * 9)
    assert running.note(1.55, "ann") == 1


def test_one_annotator_is_enough_if_there_is_no_other():
    for who in ("eve", None):
        assert noted(*[(2.0, who)] * 3)[1] == [None, None, 3]


@pytest.mark.parametrize("who", ["bob", None])
def test_one_annotator_is_enough_if_no_other_has_answered_for_a_hundred_answers(who):
    running, _ = noted((-0.5, who), *[(-0.5, "ann")] * 98)
    assert [running.note(2.0, "ann") for _ in range(3)] == [None, None, 3]
    running, _ = noted((-0.5, who), *[(-0.5, "ann")] * 97)
    assert [running.note(2.0, "ann") for _ in range(4)] == [None, None, None, 4]


def test_annotators_who_confirm_what_was_learned_do_not_hide_what_two_others_show():
    found = noted(*HONEST, *[(-0.5, "eve"), (2.0, "ann"), (2.0, "bob")] * 3)[1]
    assert found.index(next(n for n in found if n)) <= 9


def test_a_long_dispute_does_not_hide_a_change_that_the_others_show_later():
    running, found = noted(*[*HONEST, (2.0, "eve")] * 200)
    assert set(found) == {None}
    assert [running.note(2.0, who) for who in ("ann", "bob")] == [None, 2]


def test_many_annotators_who_err_now_and_then_are_no_drift():
    told = [(2.0 if n % 5 == 0 else -0.7, f"p{n % 101}") for n in range(2000)]
    assert set(noted(*told)[1]) == {None}


NIGHT_IS_SURE = {"day": 0.01, "night": 0.99}


def volunteered(running, y, annotator, n):
    options = {"asked": False, "error_rate": 0.2, "reconsidered": True}
    told = [running.learn(NIGHT_IS_SURE, y, annotator=annotator, **options) for _ in range(n)]
    return [n for n in told if n is not None]


@pytest.mark.parametrize("names", [["eve"], ["eve", "mal"], [None], [None, "eve"]], ids=repr)
@pytest.mark.parametrize("y", ["day", "night"])
def test_labels_that_were_not_asked_for_neither_make_a_drift_nor_hide_one(names, y):
    running = RunningDriftTest(DriftTest())
    learned(running, "day", "ann", 5)
    learned(running, "day", "bob", 5)
    for _ in range(20):
        for name in names:
            assert not volunteered(running, y, name, 10)
    assert (running.n_drifts, running.least()) == (0, 0.005)
    found = []
    for _ in range(6):
        for who in ("ann", "bob"):
            found += learned(running, "night", who)
            for name in names:
                volunteered(running, y, name, 2)
    # Dated to one of the first two answers; labels that were not asked for are numbered, too.
    [n] = found
    assert n in (1 + 9 * (1 + 2 * len(names)), 1 + 10 * (1 + 2 * len(names)))


def test_names_of_those_who_were_not_asked_are_not_kept():
    running = RunningDriftTest(DriftTest())
    learned(running, "day", "ann", 5)
    learned(running, "night", "ann", 1)
    before = running.state()
    for n in range(100):
        volunteered(running, "day", f"eve-{n}", 1)
    after = running.state()
    assert after["suspicions"][0][2] == before["suspicions"][0][2] + 100  # counted in dates
    assert [len(one[3]) for one in after["suspicions"]] == [1] * len(after["suspicions"])


def test_labels_that_came_with_events_are_enough_if_nobody_was_asked():
    running = RunningDriftTest(DriftTest())
    volunteered(running, "night", None, 20)
    assert not volunteered(running, "day", "eve", 50)
    assert running.state()["suspicions"] == []
    assert volunteered(running, "day", None, 6)


def test_labels_of_other_classes_do_not_outweigh_a_change_of_one():
    running, found = RunningDriftTest(DriftTest(run_length=50)), []
    for _ in range(3):
        found += [running.note(-2.0, concerned="night"), running.note(2.0, concerned="day")]
    assert found == [None] * 5 + [5]


def test_others_who_agree_about_other_classes_do_not_confirm_one_annotator():
    running = RunningDriftTest(DriftTest(run_length=50))
    for _ in range(20):
        assert running.note(-0.5, "ann", "day") is None
        assert running.note(2.0, "eve", "day") is None
        assert running.note(0.1, "ann", "night") is None
    running.note(-0.5, "ann", "day")
    assert running.least("day") == 0.005


def learned(running, y, annotator, n=1):
    options = {"asked": True, "error_rate": 0.2, "reconsidered": False}
    belief = {"day": 0.99, "night": 0.01}
    told = [running.learn(belief, y, annotator=annotator, **options) for _ in range(n)]
    return [n for n in told if n is not None]


def test_what_labels_have_shown_all_along_is_no_change():
    """Predictions that are said to be right in nine of ten cases, and are in seven."""
    n_drifts = {"calibrated": 0, "as stated": 0}
    for seed in range(20):
        rng, belief = random.Random(seed), {"day": 0.9, "night": 0.1}
        calibrated, as_stated = (RunningDriftTest(DriftTest()) for _ in range(2))
        for _ in range(1000):
            y = "day" if rng.random() < 0.7 else "night"
            options = {"asked": True, "error_rate": 0.1, "reconsidered": False}
            calibrated.learn(belief, y, annotator=None, **options)
            as_stated.note(told(belief, y, error_rate=0.1))
        n_drifts["calibrated"] += calibrated.n_drifts
        n_drifts["as stated"] += as_stated.n_drifts
    assert n_drifts["calibrated"] == 0
    assert n_drifts["as stated"] > 20


def usually(running):
    """What labels have shown all along."""
    usual = LogisticCalibration()
    usual.load_state(running.state()["usual"])
    return usual


def heard(running, right, truly, rng):
    """Learn a label that agrees with a prediction said to be right as often, with the true rate."""
    y = "day" if rng.random() < truly else "night"
    options = {"annotator": None, "asked": True, "error_rate": 0.1, "reconsidered": False}
    return running.learn({"day": right, "night": 1.0 - right}, y, **options)


def test_predictions_of_which_all_are_as_often_right_however_sure_are_no_drift():
    """Where classes overlap; sure predictions are right less often than stated, others more."""
    n_drifts = 0
    for seed in range(20):
        rng, running = random.Random(seed), RunningDriftTest(DriftTest())
        for n in range(1000):
            heard(running, (0.55, 0.85)[n % 2], 0.65, rng)
        n_drifts += running.n_drifts
    assert n_drifts == 0


def test_a_change_is_found_sooner_if_labels_have_differed_less_often_than_stated():
    """Predictions are said to be right in four of five cases, and are in nineteen of twenty."""
    delays = []
    for seed in range(50):
        rng, running, n = random.Random(seed), RunningDriftTest(DriftTest()), 0
        for _ in range(200):
            heard(running, 0.8, 0.95, rng)
        assert running.n_drifts == 0
        while running.n_drifts == 0:
            n += 1
            heard(running, 0.8, 0.4, rng)
        delays.append(n)
    assert sum(delays) / len(delays) < 20  # 38 with probabilities as stated


@pytest.mark.parametrize(
    "truly", [0.6, 0.98, *(pytest.param(n, marks=pytest.mark.nightly) for n in (0.75, 0.9))]
)
def test_false_alarms_are_as_rare_as_promised_after_calibration(truly):
    """However often labels differ, if they go on as before."""
    rng, run_length, lengths = random.Random(1), 50, []
    for _ in range(100):
        before = RunningDriftTest(DriftTest(run_length=1e300))
        for _ in range(100):
            heard(before, 0.8, truly, rng)
        running, n = RunningDriftTest(DriftTest(run_length=run_length)), 0
        running.load_state({**before.state(), "suspicions": []})
        while running.n_drifts == 0 and n < 4 * run_length:
            n += 1
            heard(running, 0.8, truly, rng)
        lengths.append(n)
    assert sum(lengths) / len(lengths) > run_length


def test_the_latest_labels_do_not_tell_yet_what_is_usual():
    running = RunningDriftTest(DriftTest())
    learned(running, "day", "ann", 25)
    usual = running.state()["usual"]
    assert usual == LogisticCalibration().state()
    learned(running, "day", "ann")
    stated, _ = differing({"day": 0.98, "night": 0.02}, 0.98, error_rate=0.2)
    expected = LogisticCalibration()
    expected.note(stated, False)
    assert running.state()["usual"] == expected.state()
    assert running.state()["n_sure"] == [1, 0]
    learned(running, "night", "ann")
    assert running.most_sure == 0.98  # 49 of 50 beforehand
    learned(running, "day", "ann", 25)
    assert running.most_sure == pytest.approx(1.0 - 2.0 / 77.0)


def test_labels_that_have_shown_a_change_do_not_become_usual():
    running = RunningDriftTest(DriftTest())
    learned(running, "day", "ann", 100)
    assert learned(running, "night", "ann", 5) == [5]
    assert running.state()["latest"] == []
    # Of the labels before it, five more have become old.
    stated, _ = differing({"day": 0.98, "night": 0.02}, 0.98, error_rate=0.2)
    expected = LogisticCalibration()
    for _ in range(80):
        expected.note(stated, False)
    assert running.state()["usual"] == expected.state()


def test_a_time_of_many_wrong_labels_does_not_end_the_test_for_good():
    running = RunningDriftTest(DriftTest())
    for _ in range(20):
        learned(running, "night", "eve", 5)
        learned(running, "day", "ann")
    assert running.n_drifts == 0
    stated, _ = differing({"day": 0.98, "night": 0.02}, 0.98, error_rate=0.2)
    assert usually(running).corrected(stated) > 0.7
    assert running.most_sure < 0.6
    learned(running, "day", "ann", 2000)
    assert usually(running).corrected(stated) < stated
    assert running.most_sure > 0.9
    learned(running, "night", "ann", 20)
    learned(running, "night", "bob", 20)
    assert running.n_drifts >= 1


@pytest.mark.parametrize(
    ("right", "n_predicted"),
    [
        *((0.6, 20), (0.8, 1)),
        *(
            pytest.param(*row, marks=pytest.mark.nightly)
            for row in ((0.6, 1), (0.8, 20), (0.95, 1), (0.95, 20))
        ),
    ],
)
def test_false_alarms_are_as_rare_as_promised(right, n_predicted):
    """If the beliefs are as stated, the mean time to an alarm is at least `run_length`."""
    rng, run_length, e = random.Random(1), 50, 0.1
    lengths = []
    for _ in range(150):
        running, n = RunningDriftTest(DriftTest(run_length=run_length)), 0
        while running.n_drifts == 0 and n < 4 * run_length:  # a longer one only adds to the mean
            n += 1
            truth = "day" if rng.random() < right else "night"
            wrong = "night" if truth == "day" else "day"
            y = wrong if rng.random() < e else truth
            belief = {"day": right, "night": 1.0 - right}
            running.note(told(belief, y, error_rate=e), concerned=rng.randrange(n_predicted))
        lengths.append(n)
    assert sum(lengths) / len(lengths) > run_length


def test_a_worthless_belief_is_found_within_some_labels():
    rng, delays = random.Random(2), []
    for _ in range(200):
        running, n = RunningDriftTest(DriftTest()), 0
        while running.n_drifts == 0:
            n += 1
            y = rng.choice(["day", "night"])
            running.note(told({"day": 0.98, "night": 0.02}, y, error_rate=0.1))
        delays.append(n)
    assert sum(delays) / len(delays) < 30


# --- asking


def test_it_asks_with_at_least_its_own_probability():
    running = RunningDriftTest(DriftTest(at_least=0.1))
    no = Decision.of(0.0, 0.05, "NeverAsk")
    assert running.least() == pytest.approx(0.1)
    assert running.decided({}, no, 0.05, 2000).criterion == "DriftTest"
    assert running.decided({}, no, 0.1, 1) is no
    yes = Decision.of(0.5, 0.05, "SkepticalAsk")
    assert running.decided({}, yes, 0.05, 1) is yes


@pytest.mark.parametrize(
    ("at_least", "n_events", "rate"),
    [
        (0.005, 1, 0.05),
        (0.005, 200, 0.05),
        (0.005, 500, 0.02),
        (0.005, 1999, 10 / 1999),
        (0.005, 2000, 0.005),
        (0.005, 10**9, 0.005),
        (0.02, 1, 0.05),
        (0.02, 1000, 0.04),
        (0.2, 1, 0.2),  # more than a beginner asks
        (0.0, 1, 0.0),  # nothing is asked for the sake of the test
    ],
)
def test_it_asks_more_while_a_learner_is_a_beginner(at_least, n_events, rate):
    running = RunningDriftTest(DriftTest(at_least))
    no = Decision.of(0.0, 0.5, "NeverAsk")
    assert running.decided({}, no, rate * (1 + 1e-9), n_events) is no
    if rate > 0.0:
        asked = running.decided({}, no, rate * (1 - 1e-9), n_events)
        assert asked.ask
        assert asked.score == pytest.approx(rate)


def test_a_suspicion_asks_as_much_as_a_beginner_or_more():
    running = RunningDriftTest(DriftTest())
    for told in (1.0, 1.0, 2.0):
        running.note(told)
        for n_events in (1, 1000, 5000):
            no = Decision.of(0.0, 0.5, "NeverAsk")
            most = max(running.least(), min(0.05, 10 / n_events))
            assert running.decided({}, no, most * 0.999, n_events).ask
            assert not running.decided({}, no, most * 1.001, n_events).ask


def test_a_beginner_is_asked_some_30_questions_for_the_sake_of_the_test():
    model = SkepticalClassifier(GPClassifier(), NeverAsk(), drift_test=DriftTest(), seed=1)
    asked = []
    for n in range(1, 6001):
        asked += [n] * model.predict_one({"hum": 0.5 + 0.01 * (n % 7)})[1]
    expected = [sum(min(0.05, 10 / n) for n in range(a, b)) for a, b in ((1, 200), (200, 2000))]
    counts = [sum(a <= n < b for n in asked) for a, b in ((1, 200), (200, 2000), (2000, 6001))]
    for count, mean in zip(counts, (*expected, 20.0), strict=True):
        assert abs(count - mean) < 4 * math.sqrt(mean)  # four standard deviations


def test_it_asks_more_while_labels_are_surprising():
    running = RunningDriftTest(DriftTest(at_least=0.01))
    rates = [running.least()]
    for _ in range(5):
        assert running.note(1.0) is None
        rates.append(running.least())
    assert rates == pytest.approx([0.01 * math.exp(n) for n in range(3)] + [0.1, 0.1, 0.1])
    assert RunningDriftTest(DriftTest(at_least=0.5)).least() == 0.5


def test_it_asks_more_where_the_prediction_is_of_the_class_that_surprised():
    running = RunningDriftTest(DriftTest(at_least=0.01))
    running.note(1.0, concerned="day")
    running.note(-1.0, concerned="night")
    no = Decision.of(0.0, 0.02, "NeverAsk")
    beliefs = [{"day": p, "dusk": 0.05, "night": 0.95 - p} for p in (0.9, 0.05)]
    assert [running.decided(belief, no, 0.02, 2000).ask for belief in beliefs] == [True, False]
    # Of two classes, a change of one is half of everything.
    assert not running.decided({"day": 0.9, "night": 0.1}, no, 0.02, 2000).ask


@pytest.mark.parametrize("rule", [NeverAsk(), Entropy(threshold=9.0)], ids=repr)
def test_a_rule_that_never_asks_asks_at_the_rate_of_the_test(rule):
    model = SkepticalClassifier(GPClassifier(), rule, drift_test=DriftTest(0.05), seed=1)
    for y in ("day", "night"):
        model.learn_one({"light": 0.0}, y)
    n = sum(model.predict_one({"light": 0.0})[1] for _ in range(2000))
    assert 70 < n < 130  # of 100 expected


@pytest.mark.parametrize(
    "bad",
    [
        {"at_least": 1.1},
        {"at_least": "1"},
        {"at_least": math.nan},
        {"run_length": 1.0},
        {"run_length": math.inf},
        {"run_length": math.nan},
        {"run_length": 10**400},
    ],
    ids=lambda bad: f"{next(iter(bad))} {str(next(iter(bad.values())))[:5]}",
)
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        DriftTest(**bad)


@pytest.mark.parametrize("run_length", [math.nextafter(1.0, 2.0), sys.float_info.max])
@pytest.mark.parametrize("at_least", [0.0, 1.0])
def test_the_probability_of_asking_is_one_for_all_settings(run_length, at_least):
    running = RunningDriftTest(DriftTest(at_least, run_length))
    for n in range(1000):
        running.note(2.0, "ann" if n % 300 == 0 else "eve")
        assert at_least <= running.least() <= max(at_least, 0.3)


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="drift_test must be a DriftTest or None, got True"):
        SkepticalClassifier(GPClassifier(), drift_test=True)


# --- a change


def world(n, changes, seed):
    """Events whose label depends on the light; from each change on, the other way round."""
    rng = random.Random(seed)
    for i in range(n):
        light = rng.uniform(-1.0, 1.0)
        turned = sum(i >= at for at in changes) % 2
        yield {"light": light}, ("day", "night")[(light > 0.0) ^ turned]


def run(model, events, wrong=0.2, seed=1, first=0):
    """Answer what is asked; return whether each prediction was right, and what was asked."""
    rng, right, asked = random.Random(seed), [], []
    for n, (x, y) in enumerate(events, start=first):
        predicted, ask = model.predict_one(x)
        right.append(predicted == y)
        if ask:
            asked.append(n)
            other = "night" if y == "day" else "day"
            model.learn_one(x, y, annotation=other if rng.random() < wrong else y, event_id=f"e{n}")
    return right, asked


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))]
)
@pytest.mark.parametrize(
    "learner", [GPClassifier(max_points=50), GaussianNB()], ids=lambda one: type(one).__name__
)
def test_a_change_where_the_learner_is_sure_is_found_and_learned(learner, seed):
    events = list(world(2000, [1000], seed))
    rule = SkepticalAsk(at_least=0.02)
    with_test = SkepticalClassifier(learner, rule, drift_test=DriftTest(), seed=seed)
    without = SkepticalClassifier(learner, rule, seed=seed)
    right, _ = run(with_test, events)
    before, _ = run(without, events)
    assert with_test.n_drifts == 1
    assert sum(right[1500:]) > 400  # of 500
    assert sum(right[1500:]) > sum(before[1500:]) + 100


def test_the_change_is_dated_to_the_event():
    events = list(world(2000, [1000], 8))
    model = isgp(seed=8)
    run(model, events)
    assert model.n_drifts == 1
    known = {e.event_id for e in model.examples()}
    kept = {n.event_id for n in model.neighbours_one({"light": 0.0}, 10**6)}
    outdated = sorted(int(name[1:]) for name in known - kept)
    assert kept
    assert outdated
    assert 950 <= outdated[-1] <= min(int(name[1:]) for name in kept)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_where_nothing_changes(seed):
    model = isgp(seed=seed)
    run(model, world(3000, [], seed))
    assert model.n_drifts == 0


@pytest.mark.parametrize("n_classes", [3, 6])
def test_classes_that_overlap_are_no_drift(n_classes):
    """The posterior is sure of the most frequent class, and labels differ from it all the time."""
    rng = random.Random(1)
    centres = [(rng.gauss(0.0, 0.6), rng.gauss(0.0, 0.6)) for _ in range(n_classes)]
    model = isgp(seed=1)
    for _ in range(1500):
        y = rng.randrange(n_classes)
        x = {name: rng.gauss(mean, 1.0) for name, mean in zip("uv", centres[y], strict=True)}
        if model.predict_one(x)[1] or rng.random() < 0.15:
            model.learn_one(x, f"y{y}")
    assert model.n_learned > 200
    assert model.n_drifts == 0  # three if the labels nearby do not count


def test_labels_nearby_that_differ_make_another_one_less_surprising():
    """A third of the labels nearby are of another class: log(.5 / (.8 / 3))."""
    belief = Posterior(mean={"day": 0.6, "night": 0.3, "dusk": -0.1}, variance=1e-9)
    found = told(belief, "night", error_rate=0.01)
    assert found == pytest.approx(math.log(0.5 / (0.8 / 3.0)), abs=0.01)


def test_two_changes_are_found_one_after_the_other():
    model = isgp(seed=2)
    right, _ = run(model, world(4500, [1500, 3000], 2))
    assert model.n_drifts == 2
    for start, end in pairwise((0, 1500, 3000, 4500)):
        assert sum(right[start + 700 : end]) > 0.85 * (end - start - 700)


def test_it_works_under_rivers_evaluator():
    score = evaluate.progressive_val_score(WiFiRooms().take(300), isgp(seed=1), metrics.Accuracy())
    assert score.get() > 0.9


def conversed(loop, events, annotators, first=0):
    """Let annotators who never err answer in turn what is asked."""
    for n, (x, y) in enumerate(events, start=first):
        event_id, now = f"e{n}", 60.0 * n
        messages = loop.on_event(Event(event_id=event_id, x=x, occurred_at=now), now=now)
        for m in messages:
            if isinstance(m, LabelRequest):
                say(loop, event_id, y, annotators[n % len(annotators)], now, m.request_id)


def say(loop, event_id, y, annotator, now, request_id=None):
    """Answer, and insist on it if it is challenged."""
    number = f"{event_id}/{annotator}/{request_id}"
    answer = {"answer_id": number, "request_id": request_id, "event_id": event_id, "y": y}
    for m in loop.on_answer(Answer(**answer, annotator=annotator, answered_at=now), now=now):
        if isinstance(m, Challenge):
            say(loop, event_id, y, annotator, now, m.request_id)


@pytest.mark.parametrize("names", [["eve"], ["eve", "mal"], [None], ["eve", None]], ids=repr)
def test_labels_given_unasked_do_not_make_a_learner_forget_what_others_taught(names):
    events = list(world(800, [], 1))
    model = SkepticalClassifier(
        GPClassifier(), SkepticalAsk(at_least=0.1), drift_test=DriftTest(), seed=1
    )
    loop = InteractiveLoop(model, people=People(quarantine=False))
    conversed(loop, events, ["ann", "bob"])
    before = model.n_learned
    for n in range(0, 60, 2):
        light = events[n][0]["light"]
        say(loop, f"e{n}", ("day", "night")[light <= 0.0], names[n // 2 % len(names)], 48000.0)
    assert model.n_learned > before + 20
    assert (model.n_drifts, model.n_outdated) == (0, 0)


def test_a_label_given_unasked_does_not_make_one_annotator_need_another():
    events = list(world(2000, [1000], 5))
    loop = InteractiveLoop(isgp(seed=5))
    conversed(loop, events[:500], ["ann"])
    say(loop, "e450", events[450][1], "eve", 30000.0)
    conversed(loop, events[500:], ["ann"], first=500)
    assert loop.model.n_drifts == 1


# --- on record


def changed(seed=8):
    """A learner that has found a drift."""
    model = isgp(seed=seed)
    run(model, world(2000, [1000], seed))
    assert model.n_drifts == 1
    return model


def copy_of(model):
    again = model.clone()
    again.load_state(json.loads(json.dumps(model.state())), model.examples())
    return again


def beliefs(model):
    return [repr(model.own_proba_one({"light": u / 5.0})) for u in range(-5, 6)]


def test_a_restored_learner_has_forgotten_the_same():
    model = changed()
    again = copy_of(model)
    assert again.state() == model.state()
    assert beliefs(again) == beliefs(model)
    events = list(world(1500, [700], 8))
    assert run(again, events, first=2000) == run(model, events, first=2000)
    assert again.state() == model.state()


@examples(10)
@given(
    changes=st.lists(
        st.tuples(st.sampled_from(["relabel", "forget"]), st.integers(0, 10**6)), max_size=12
    )
)
def test_outdated_examples_can_be_changed_and_change_no_belief(changes):
    model = changed()
    current = {n.event_id for n in model.neighbours_one({"light": 0.0}, 10**6)}
    outdated = [e.event_id for e in model.examples() if e.event_id not in current]
    before = beliefs(model)
    for change, k in changes:
        event_id = outdated[k % len(outdated)]
        if change == "forget":
            outdated.remove(event_id)
            model.forget_one(event_id)
        else:
            model.relabel_one(event_id, "day")
        assert beliefs(model) == before
        assert beliefs(copy_of(model)) == before
    held = [e.event_id for e in model.examples()]
    assert held[: len(outdated)] == outdated
    for event_id in sorted(current):  # and those in force are changed as ever
        model.relabel_one(event_id, "day")
    assert beliefs(copy_of(model)) == beliefs(model) != before


def test_a_class_that_the_correction_of_an_outdated_example_brings_is_known_as_after_a_restart():
    model = changed()
    model.relabel_one(model.examples()[0].event_id, "dusk")
    assert beliefs(copy_of(model)) == beliefs(model)
    assert "dusk" in model.own_proba_one({"light": 0.0})


@pytest.mark.parametrize("forgotten", ["e3", "e60"])
def test_all_examples_before_a_change_are_outdated_though_one_was_forgotten(forgotten):
    model = SkepticalClassifier(GPClassifier(), NeverAsk(), drift_test=DriftTest(), seed=1)
    n = 0
    while model.n_drifts == 0:
        turned = n >= 60
        model.learn_one({"light": n % 2}, ("day", "night")[(n + turned) % 2], event_id=f"e{n}")
        if n == 61:
            model.forget_one(forgotten)
            model = copy_of(model)
        n += 1
    current = {e.event_id for e in model.neighbours_one({"light": 0.0}, 99)}
    assert current == {f"e{i}" for i in range(60, n)} - {forgotten}


def test_answers_before_a_drift_still_tell_about_their_annotator():
    model = changed()
    found = model.estimate_annotators()[None]
    assert found.error_rate == pytest.approx(0.2, abs=0.1)
    assert found.n_answers == len(model.examples())


def test_a_state_with_a_single_sum_is_restored_without_suspicion():
    running = RunningDriftTest(DriftTest())
    old = {"sum": 2.0, "n_since": 3, "by": [[None, 2.0]], "n_sure": [9, 1, 3, 2], "n_drifts": 1}
    running.load_state(old)
    expected = {"n_sure": [9, 1], "n_drifts": 1}
    assert running.state() == RunningDriftTest(DriftTest()).state() | expected


def test_a_state_with_counts_of_sure_predictions_keeps_its_suspicions():
    without = [["ann", 0.7, 1], ["bob", 2.6, 4]]
    old = {
        "suspicions": [["a", 3.3, 4, without, [4, 3]], [None, 3.3, 4, without, [0, 0]]],
        "heard": [["ann", 2], ["bob", 0]],
        "n_sure": [2, 0],
        "n_drifts": 1,
    }
    running = RunningDriftTest(DriftTest())
    running.load_state(old)
    assert running.state() == {
        "suspicions": [["a", 3.3, 4, without], [None, 3.3, 4, without]],
        "heard": old["heard"],
        "usual": LogisticCalibration().state(),
        "n_sure": [2, 0],
        "latest": [],
        "n_drifts": 1,
    }


def test_a_state_that_knows_an_offset_only_keeps_it():
    running = RunningDriftTest(DriftTest())
    old = {"suspicions": [], "heard": [["ann", 0]], "usual": [0.7, 6.5], "n_sure": [9, 1]}
    running.load_state({**old, "latest": [[0.2, True, False]], "n_drifts": 0})
    assert running.state()["usual"] == [0.7, 1.0, 6.5, 0.0, 4.0]
    again = RunningDriftTest(DriftTest())
    again.load_state(json.loads(json.dumps(running.state())))
    for one in (running, again):
        learned(one, "night", "bob", 7)
    assert again.state() == running.state()


def test_a_learner_without_a_test_has_the_state_it_always_had():
    plain = SkepticalClassifier(GPClassifier(), seed=1)
    assert "drift" not in plain.state()
    assert plain.n_drifts == 0
    assert (
        plain.fingerprint()
        != SkepticalClassifier(GPClassifier(), drift_test=DriftTest(), seed=1).fingerprint()
    )
