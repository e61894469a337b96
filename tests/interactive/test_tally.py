import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics

from streamgp.base import Decision
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    Expired,
    LabelledExample,
    LabelRequest,
    Prediction,
    Rejected,
    Tally,
)

NO = Decision.of(0.0, 1.0, "NeverAsk")
QUESTION = {"reason": "", "score": 1.0, "threshold": 0.0, "requested_at": 0.0}


def event(event_id, truth, key=None):
    return Event(event_id=event_id, key=key, x={}, occurred_at=0.0, truth=truth)


def prediction(event_id, y, key=None):
    return Prediction(event_id=event_id, key=key, y=y, proba={}, decision=NO, n_learned=0, at=0.0)


def challenge(event_id, given):
    return Challenge(
        request_id=f"{event_id}/challenge/1",
        event_id=event_id,
        x={},
        given=given,
        suggested="z",
        probability_wrong=0.5,
        **QUESTION,
    )


def example(event_id, y, origin="asked", revision=0):
    return LabelledExample(
        event_id=event_id,
        sequence=1,
        revision=revision,
        x={},
        y=y,
        origin=origin,
        learned_at=0.0,
    )


def tally_of(truths, *messages):
    tally = Tally()
    for event_id, truth in truths.items():
        tally.event(event(event_id, truth))
    for message in messages:
        tally.message(message)
    return tally


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd") | st.none(), st.sampled_from("abcde") | st.none()),
        min_size=1,
        max_size=80,
    )
)
def test_scores_equal_those_of_river(pairs):
    tally, accuracy, macro_f1 = Tally(), metrics.Accuracy(), metrics.MacroF1()
    for n, (truth, guess) in enumerate(pairs):
        tally.event(event(str(n), truth))
        tally.message(prediction(str(n), guess))
        if truth is not None and guess is not None:
            accuracy.update(truth, guess)
            macro_f1.update(truth, guess)
    scored = [p for p in pairs if None not in p]
    assert tally.n_scored == len(scored)
    if scored:
        assert tally.accuracy == pytest.approx(accuracy.get(), abs=1e-12)
        assert tally.macro_f1 == pytest.approx(macro_f1.get(), abs=1e-12)
    else:
        assert (tally.accuracy, tally.macro_f1) == (None, None)


def test_every_kind_of_message_is_counted():
    tally = Tally()
    tally.event(event("e", "a"))
    tally.answer(Answer(answer_id="1", event_id="e", y="a", answered_at=0.0))
    tally.answer(Answer(answer_id="2", event_id="e", declined=True, answered_at=0.0))
    tally.message(LabelRequest(request_id="e/label", event_id="e", x={}, **QUESTION))
    tally.message(challenge("e", "a"))
    tally.message(Cancel(request_id="e/label", why="", at=0.0))
    tally.message(Expired(request_id="e/label", event_id="e", at=0.0))
    tally.message(Rejected(subject="e", fault="unknown", reason="", at=0.0))
    counts = {k: v for k, v in tally.summary().items() if k.startswith("n_") and v}
    assert counts == {
        "n_events": 1,
        "n_asked": 1,
        "n_challenges": 1,
        "n_answered": 1,
        "n_declined": 1,
        "n_expired": 1,
        "n_rejected": 1,
    }
    assert tally.label_rate == 1.0


@pytest.mark.parametrize(
    ("given", "final", "precision", "repaired", "spoiled", "wrong"),
    [
        ("b", "a", 1.0, 1, 0, 0),
        ("b", "b", 1.0, 0, 0, 1),
        ("b", "c", 1.0, 0, 0, 1),
        ("a", "a", 0.0, 0, 0, 0),
        ("a", "b", 0.0, 0, 1, 1),
    ],
)
def test_challenges_are_judged_by_the_truth(given, final, precision, repaired, spoiled, wrong):
    tally = tally_of({"e": "a"}, challenge("e", given))
    assert tally.challenge_precision is None  # not resolved yet
    tally.message(example("e", final, "revised"))
    assert tally.challenge_precision == precision
    assert (tally.n_repaired, tally.n_spoiled, tally.n_wrong_kept) == (repaired, spoiled, wrong)
    assert tally.wrong_kept == wrong


def test_labels_kept_are_judged_by_their_last_revision():
    tally = tally_of({"e": "a", "f": "a"}, example("e", "b"), example("f", "a"))
    assert (tally.n_learned, tally.n_wrong_kept, tally.wrong_kept) == (2, 1, 0.5)
    tally.message(example("e", "a", "revised", 1))
    assert (tally.n_learned, tally.n_wrong_kept, tally.wrong_kept) == (2, 0, 0.0)
    tally.message(example("f", None, "withdrawn", 1))
    assert (tally.n_learned, tally.n_wrong_kept, tally.wrong_kept) == (1, 0, 0.0)


def test_late_answer_to_a_challenge_moves_the_judgement():
    tally = tally_of({"e": "a"}, challenge("e", "b"), example("e", "b"))
    assert (tally.n_repaired, tally.n_wrong_kept) == (0, 1)
    tally.message(example("e", "a", "revised", 1))
    assert (tally.n_repaired, tally.n_wrong_kept) == (1, 0)
    assert tally.challenge_precision == 1.0
    tally.message(example("e", None, "withdrawn", 2))
    assert (tally.n_repaired, tally.n_wrong_kept, tally.n_learned) == (0, 0, 0)


def test_label_without_known_truth_is_learned_and_not_judged():
    tally = tally_of({"e": None}, challenge("e", "b"), example("e", "b"))
    assert (tally.n_challenges, tally.n_learned) == (1, 1)
    assert (tally.challenge_precision, tally.wrong_kept) == (None, None)


def test_keys_are_kept_apart():
    tally = Tally()
    for key, truth in (("ann", "a"), ("bob", "b")):
        tally.event(event("e", truth, key))
    for key in ("ann", "bob"):
        tally.message(prediction("e", "a", key))
    assert (tally.n_scored, tally.accuracy) == (2, 0.5)


def test_false_is_a_truth_and_a_label():
    tally = tally_of({"e": False}, prediction("e", False), challenge("e", True))
    tally.message(example("e", False, "revised"))
    assert (tally.accuracy, tally.n_repaired, tally.n_learned) == (1.0, 1, 1)


def test_summary_is_plain_json_in_a_fixed_order():
    assert list(Tally().summary()) == [
        "n_events",
        "n_scored",
        "accuracy",
        "macro_f1",
        "n_asked",
        "n_challenges",
        "challenge_precision",
        "n_answered",
        "n_declined",
        "n_expired",
        "n_rejected",
        "n_learned",
        "n_repaired",
        "n_spoiled",
        "n_wrong_kept",
        "wrong_kept",
        "label_rate",
    ]
    empty = json.dumps(Tally().summary(), allow_nan=False)
    assert '"accuracy": null' in empty
    full = tally_of({"e": "a"}, prediction("e", "a"), challenge("e", "b"), example("e", "a"))
    assert json.loads(json.dumps(full.summary(), allow_nan=False)) == full.summary()
