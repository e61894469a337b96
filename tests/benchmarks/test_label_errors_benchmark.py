"""The benchmark of wrong labels, against cleanlab and crowd-kit."""

import random
from functools import partial

import numpy as np
import pytest

from benchmarks._harness import Options
from benchmarks._logs import read
from benchmarks.comparison import label_errors
from benchmarks.comparison.label_errors import Confuser, Said
from streamgp import SimulatedAnnotator
from tests.helpers.messages import label_request


def said(n, y, truth, *, annotator="a", x=None):
    return Said(event_id=f"e{n}", x=x or {}, y=y, truth=truth, annotator=annotator)


def test_libraries_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(label_errors, "_NEEDED", ("sklearn", "no_such_module"))
    outcome = label_errors.measure(Options())
    assert outcome.skipped == ["no_such_module (install the extra label-errors)"]
    assert not outcome.rows


def test_a_confuser_gives_the_next_class_or_the_true_one():
    usual = SimulatedAnnotator(0.5, classes=list("abc"), seed=3)
    confuser = Confuser(0.5, classes=list("abc"), seed=3)
    for n in range(50):
        truth = "abc"[n % 3]
        is_wrong = usual.answer(label_request(f"e{n}"), truth, 0.0).y != truth
        assert confuser.answer(label_request(f"e{n}"), truth, 0.0).y == (
            "bca"[n % 3] if is_wrong else truth
        )


def test_each_annotator_has_a_share_of_wrong_answers():
    answers = [said(n, y, "a", annotator=who) for n, (who, y) in enumerate(["1a", "1b", "2b"])]
    assert label_errors.wrong_shares(answers) == {"1": 0.5, "2": 1.0}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:crowdkit", "ignore:The inplace keyword")
def test_the_quick_run_has_a_row_for_each_scene_without_a_data_folder():
    for name in label_errors._NEEDED:
        pytest.importorskip(name, reason="it is compared")
    outcome = label_errors.measure(Options(quick=True))
    assert [row["log"] for row in outcome.rows if "log" in row] == ["wifi_rooms", "all"] * 2
    (careless,) = (row for row in outcome.rows if "overlap" in row)
    assert careless["answers"] > 0 < careless["challenges"]
    assert len(outcome.skipped) == 4


@pytest.mark.parametrize("knows", [True, False])
def test_as_many_labels_count_as_found_as_were_challenged(monkeypatch, knows):
    log = read("wifi_rooms", None, 800)

    def scores(answers):
        right = np.array([one.y == one.truth for one in answers], dtype=float)
        return {"oracle": right if knows else 1.0 - right}

    monkeypatch.setattr(label_errors, "label_scores", scores)
    found = label_errors.searched(log, partial(SimulatedAnnotator, 0.3), 1)
    n_right = found["labels"] - found["wrong labels"]
    assert 0 < found["challenged"] <= found["wrong labels"]
    best = min(found["challenges"], found["wrong labels"])
    assert found["oracle"] == (best if knows else max(found["challenges"] - n_right, 0))


def test_a_wrong_label_has_the_lowest_score():
    pytest.importorskip("cleanlab", reason="it makes the scores")
    rng = random.Random(1)
    answers = []
    for n in range(40):
        truth = "ab"[n % 2]
        x = {"v": rng.gauss(5.0 * (n % 2), 1.0)}
        answers.append(said(n, truth if n != 6 else "b", truth, x=x))
    answers.append(said(40, "rare", "rare", x={"v": 2.0}))
    for name, scores in label_errors.label_scores(answers).items():
        assert np.argmin(scores) == 6, name
        assert scores[40] == np.inf
    assert all(np.isinf(s).all() for s in label_errors.label_scores(answers[:1]).values())


@pytest.mark.filterwarnings("ignore::DeprecationWarning:crowdkit", "ignore:The inplace keyword")
@pytest.mark.parametrize("kind", label_errors._CROWD.values())
def test_dawid_and_skene_find_the_careless_annotator(kind):
    pytest.importorskip("crowdkit", reason="it has the model")
    rng = random.Random(1)
    answers = []
    for n in range(200):
        truth = rng.choice("abc")
        for who, rate in (("1", 0.0), ("2", 0.1), ("3", 0.5)):
            y = rng.choice([c for c in "abc" if c != truth]) if rng.random() < rate else truth
            answers.append(said(n, y, truth, annotator=who))
    estimates, wrong = label_errors.by_crowdkit(kind, answers)
    for who, share in label_errors.wrong_shares(answers).items():
        assert estimates[who] == pytest.approx(share, abs=0.05)
    assert wrong <= 0.05


def test_crowdlab_settles_by_features_what_annotators_dispute():
    pytest.importorskip("cleanlab", reason="it has the model")
    answers = []
    for n in range(60):
        truth, other = "ab" if n % 2 else "ba"
        x = {"v": 5.0 * (n % 2) + n / 100}
        answers.append(said(n, truth, truth, annotator="1", x=x))
        answers.append(said(n, other if n % 5 == 0 else truth, truth, annotator="2", x=x))
    wrong = label_errors.by_crowdlab(answers)
    assert wrong == dict.fromkeys(wrong, 0.0)
    assert len(wrong) == 4
