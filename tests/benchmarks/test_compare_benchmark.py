"""All learners and rules in conversation: who takes part, what is counted, what is accepted."""

from functools import partial

import pytest

import streamgp
from benchmarks._logs import read
from benchmarks.comparison.compare import benchmark as compare
from benchmarks.comparison.compare import entries
from benchmarks.comparison.conversation import Score
from benchmarks.comparison.strategies.rules import Setting
from streamgp import SkepticalClassifier, isgp, query
from tests.helpers.benchmark_runs import document
from tests.helpers.messages import label_request

EVERYBODY = [(group, name) for group, one in entries.GROUPS.items() for name in one.entries]


def built(group, name, knob=0.5):
    entry = entries.GROUPS[group].entries[name]
    return entry.build(Setting(knob=knob, most=10, n_classes=4, seed=1))


def cell(group, name, log, accuracy):
    score = Score(accuracy=accuracy, macro_f1=0.5, n_asked=9.0, n_challenges=3.0, wrong_kept=0.1)
    return compare.Cell(group=group, name=name, log=log, rate=0.1, score=score)


@pytest.mark.parametrize(("group", "name"), EVERYBODY)
def test_everybody_asks_and_learns_with_a_seed(group, name):
    model = built(group, name)
    assert isinstance(model, SkepticalClassifier)
    assert model.seed == 1
    model.learn_one({"light": 1.0}, "home")
    model.learn_one({"light": -1.0}, "work")
    assert set(model.predict_proba_one({"light": 0.5})) == {"home", "work"}
    model.query_one({"light": 0.5})


def test_every_classifier_of_streamgp_takes_part():
    learners = {type(built("learner", name).learner).__name__ for name in entries.LEARNERS}
    own = {
        name
        for name in streamgp.__all__
        if name.endswith("Classifier") and not name.endswith("SkepticalClassifier")
    }
    assert own <= learners
    assert learners - own == {
        "GaussianNB",
        "HoeffdingTreeClassifier",
        "AMFClassifier",
        "ARFClassifier",
    }


def test_every_rule_for_streams_of_labels_takes_part():
    models = [built(group, name) for group, name in EVERYBODY]
    taking_part = {
        type(part).__name__
        for model in models
        for part in (model.query, model.challenge, model.budget, model.review, model.reservoir)
    }
    own = {name for name in query.__all__ if name.endswith(("Ask", "Challenge", "Threshold"))}
    own |= {"Entropy", "LeastConfidence", "BestVersusSecond", "Variance", "KL", "Deterministic"}
    assert own | {"LeaveOneOutReview"} <= taking_part | {"NeverAsk"}


def test_the_first_of_all_groups_is_the_default():
    default = isgp(seed=1)
    for group, one in entries.GROUPS.items():
        model = built(group, next(iter(one.entries)), knob=1.0)
        assert repr(model.model) == repr(default.model)
        assert repr(model.query) == repr(default.query)
        assert model.warm_up == default.warm_up


def test_a_tired_annotator_errs_after_many_questions_only():
    log = read("wifi_rooms", None, 2000)

    def wrong(between):
        annotator, answers = entries.tired(log, 1), []
        for n in range(400):
            at = float(between * n)
            request = label_request(str(n), at, request_id=f"{n}/{between}")
            answers.append(annotator.answer(request, 1, at).y)
        return sum(y not in (1, None) for y in answers) / len(answers)

    assert wrong(1000) == 0.0
    # One question in a half-life: the sum of 1/2, 1/4 and so on; three standard errors.
    assert wrong(10) == pytest.approx(0.1, abs=0.045)
    assert wrong(5) == pytest.approx(0.1 / (2.0**0.5 - 1.0), abs=0.065)


def test_declined_questions_count_as_asked_at_a_hard_limit():
    log = read("wifi_rooms", None, 200)
    job = entries.Job(
        log=log,
        order="recorded",
        group="asks by",
        name="AlwaysAsk + AtMost",
        rates=[0.2],
        seeds=[1, 2],
    )
    score = job.scores()[0.2]
    assert (score.n_asked, score.hard_limit) == (40.0, 1.0)
    assert score.us_per_event > 0.0


def test_means_have_one_weight_for_each_log_and_gaps_are_those_to_the_first():
    cells = [cell("asks by", "a", "x", 0.8), cell("asks by", "a", "y", 0.6)]
    cells += [cell("asks by", "b", "x", 0.9), cell("asks by", "b", "y", 0.8)]
    first, second = compare.summary(cells, "asks by", 0.1)
    assert (first["accuracy"], first["above first"]) == (pytest.approx(0.7), 0.0)
    assert second["above first"] == pytest.approx(0.15)
    assert second["se"] == pytest.approx(0.05)
    row = compare.by_log(cells, "asks by", 0.1)[1]
    assert (row["x"], row["y"], row["x labels"]) == (0.9, 0.8, 9.0)


def test_defaults_are_accepted_while_nothing_is_far_above_them():
    def cells(gap):
        return [
            cell(group, name, log, 0.8 + above)
            for log in "xyz"
            for group, name, above in (
                ("asks by", "SkepticalAsk", 0.0),
                ("asks by", "RandomAsk", gap),
                ("asks by", "ensemble: KL + RateBudget", 0.1),  # another learner
                ("learner", entries.ISGP, 0.0),
                ("learner", "River AMF", gap - 0.02),
                ("challenges by", entries.CHALLENGED, 0.0),
                ("challenges by", entries.BELIEVED, -0.1),
            )
        ]

    asks, learner, challenges = compare._accepted(cells(0.015), slack=0.0)
    assert (asks.value, asks.limit, asks.ok) == (pytest.approx(0.015), 0.01, False)
    assert "RandomAsk" in asks.name
    assert learner.ok
    assert challenges.ok
    assert all(one.ok for one in compare._accepted(cells(0.005), slack=2.0))
    assert compare._accepted([one for one in cells(0.5) if one.log == "x"], slack=0.0) == []


def measured(tmp_path, plan, pictures=None):
    measure = partial(compare.measure, pictures=pictures, plan=plan)
    return document(tmp_path, "compare", measure)[0]["rows"]


SMALL = compare.Plan(
    logs=("wifi_rooms", "elec2"),
    names={
        "learner": (entries.ISGP, "River Gaussian naive Bayes at a rate", "SRF, online forest"),
        "tired annotator": (entries.ISGP,),
    },
    rates={"learner": (0.05, 0.2), "tired annotator": (0.2,)},
    n_events=150,
    n_seeds=1,
    n_workers=1,
)


@pytest.mark.nightly
def test_all_groups_have_a_table_and_missing_logs_are_named(tmp_path, capsys):
    rows = measured(tmp_path, SMALL)
    assert "skipped: elec2 (needs --data)" in capsys.readouterr().out
    learners = [row for row in rows if "learner" in row]
    assert [row["share"] for row in learners] == ["5%"] * 3 + ["20%"] * 3
    assert [row["tired annotator"] for row in rows if "tired annotator" in row] == [entries.ISGP]
    assert [*rows[-1]] == [
        "tired annotator, log by log",
        "share",
        "wifi_rooms",
        "wifi_rooms labels",
    ]
    for row in learners:
        assert 0 < row["labels"] <= 32
        assert 0.0 < row["accuracy"] <= 1.0


@pytest.mark.nightly
def test_picture_shows_the_learners(tmp_path):
    pytest.importorskip("matplotlib")
    measured(tmp_path, SMALL, tmp_path / "pictures")
    assert (tmp_path / "pictures" / "compare.png").read_bytes().startswith(b"\x89PNG")
