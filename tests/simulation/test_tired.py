import json
from dataclasses import replace
from math import log
from statistics import fmean, median, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.interactive import SimulatedAnnotator, TiredAnnotator
from streamgp.simulation import AwayAnnotator
from tests.helpers.messages import challenge, label_request


def ask(event_id, now=0.0):
    return label_request(str(event_id), now)


def contest(event_id, given):
    return challenge(str(event_id), given=given)


def answers(annotator, times):
    return [annotator.answer(ask(n, t), "a", t).y for n, t in enumerate(times)]


def test_tiredness_halves_in_its_half_life_and_every_question_adds_one():
    annotator = TiredAnnotator(half_life_s=60.0)
    assert annotator.tiredness == 0.0
    for now, tiredness in [(0.0, 1.0), (60.0, 1.5), (60.0, 2.5), (180.0, 1.625)]:
        annotator.answer(ask(now), "a", now)
        assert annotator.tiredness == tiredness


@given(st.lists(st.floats(0.0, 1e5), max_size=30).map(sorted), st.floats(1.0, 1e5))
def test_tiredness_is_the_sum_over_all_questions(times, half_life_s):
    annotator = TiredAnnotator(half_life_s=half_life_s)
    answers(annotator, times)
    expected = sum(2.0 ** (-(times[-1] - t) / half_life_s) for t in times)
    assert annotator.tiredness == pytest.approx(expected, rel=1e-9)


def test_error_rate_follows_the_formula():
    """Questions at one time: the n-th is wrong with probability min(1, 0.1 + 0.002 (n - 1))."""
    annotator = TiredAnnotator(0.1, classes=["a", "b"], seed=1, tiring_rate=0.002)
    wrong = [y == "b" for y in answers(annotator, [0.0] * 1000)]
    for start in (0, 200, 400):
        expected = 0.1 + 0.002 * (start + 99.5)
        # Over three standard errors of 200 draws.
        assert sum(wrong[start : start + 200]) / 200 == pytest.approx(expected, abs=0.11)
    assert all(wrong[451:])  # 0.1 + 0.002 * 450 = 1


def test_rested_annotator_errs_at_the_rate_of_the_rested():
    hours = [1e6 * n for n in range(1000)]
    tired = TiredAnnotator(0.2, classes=["a", "b", "c"], seed=3, tiring_rate=0.5)
    plain = SimulatedAnnotator(0.2, classes=["a", "b", "c"], seed=3)
    assert answers(tired, hours) == answers(plain, hours)


def test_declined_and_contested_questions_tire_too():
    annotator = TiredAnnotator(decline_rate=1.0)
    annotator.answer(ask(1), "a", 0.0)
    annotator.answer(contest(1, "a"), "a", 0.0)
    assert annotator.tiredness == 2.0


def test_contested_error_is_made_again_at_the_current_rate():
    annotator = TiredAnnotator(classes=["a", "b"], seed=1, tiring_rate=1.0)
    assert annotator.answer(contest(1, "b"), "a", 0.0).y == "a"
    assert annotator.answer(contest(2, "b"), "a", 0.0).y == "b"
    assert annotator.answer(contest(3, "a"), "a", 0.0).y == "a"  # the truth is upheld


def times(annotator, moments):
    """Return the response times of label requests at some moments."""
    return [
        annotator.answer(ask(n, t), "a", t).privileged["response_s"] for n, t in enumerate(moments)
    ]


@given(
    st.lists(st.floats(0.0, 1e5), min_size=1, max_size=20).map(sorted),
    st.floats(0.1, 100.0),
    st.floats(0.0, 10.0),
    st.floats(1.0, 1e5),
)
def test_response_time_without_spread_is_the_stated_median(moments, rested, slowing, half_life_s):
    annotator = TiredAnnotator(
        half_life_s=half_life_s, response_s=rested, slowing=slowing, response_spread=0.0
    )
    expected = [
        rested * (1.0 + slowing * sum(2.0 ** (-(t - s) / half_life_s) for s in moments[:n]))
        for n, t in enumerate(moments)
    ]
    assert times(annotator, moments) == pytest.approx(expected, rel=1e-9)


def test_response_times_are_log_normal_around_the_median():
    """1000 rested answers; the tolerances are four standard errors."""
    found = times(TiredAnnotator(seed=2, response_s=3.0), [1e6 * n for n in range(1000)])
    logs = [log(t / 3.0) for t in found]
    assert fmean(logs) == pytest.approx(0.0, abs=4 * 0.25 / 1000**0.5)
    assert stdev(logs) == pytest.approx(0.25, abs=4 * 0.25 / 2000**0.5)
    assert median(found) == pytest.approx(3.0, rel=0.04)


@given(st.text(min_size=1, max_size=5), st.integers(0, 2**32), st.integers(0, 50))
def test_the_more_tired_the_longer_takes_the_same_question(event_id, seed, n):
    found = []
    for n_before in (n, n + 1):
        annotator = TiredAnnotator(seed=seed)
        for i in range(n_before):
            annotator.answer(ask(f"before-{i}"), "a", 0.0)
        found.append(annotator.answer(ask(event_id), "a", 0.0).privileged["response_s"])
    less, more = found
    assert more / less == pytest.approx((1.0 + 0.05 * (n + 1)) / (1.0 + 0.05 * n))


def test_annotators_who_decline_or_are_asked_again_say_how_long_that_took():
    annotator = TiredAnnotator(decline_rate=1.0, response_spread=0.0, slowing=1.0)
    assert annotator.answer(ask(1), "a", 0.0).privileged == {"response_s": 2.0}
    assert annotator.answer(contest(1, "a"), "a", 0.0).privileged == {"response_s": 4.0}
    assert annotator.answer(ask(2), None, 0.0).privileged == {"response_s": 6.0}


def test_response_times_delay_nothing_and_change_no_label():
    found = []
    for slowing in (0.0, 5.0):
        annotator = TiredAnnotator(
            0.3, 7.0, 0.1, classes=["a", "b", "c"], seed=4, tiring_rate=0.02, slowing=slowing
        )
        said = [annotator.answer(ask(n, 10.0 * n), "a", 10.0 * n) for n in range(50)]
        found.append([(answer.y, answer.answered_at) for answer in said])
    assert found[0] == found[1]
    assert [at for _, at in found[0]] == [10.0 * n + 7.0 for n in range(50)]


def test_labels_are_those_of_before_there_were_response_times():
    """Recorded when answers held the label alone."""
    annotator = TiredAnnotator(0.1, classes=["a", "b", "c"], seed=5, tiring_rate=0.05)
    found = "".join(answers(annotator, [600.0 * n for n in range(60)]))
    assert found == "acaaaacacacaacbabbabaabacaccaabacacbbbbcacaabbbbcbabaccbbaba"


def test_time_that_goes_backwards_gives_no_rest():
    annotator = TiredAnnotator(half_life_s=10.0)
    for now in (100.0, 50.0, 60.0, 100.0):
        annotator.answer(ask(now), "a", now)
    assert annotator.tiredness == 4.0
    annotator.answer(ask(5), "a", 110.0)
    assert annotator.tiredness == 3.0


def test_a_question_that_expires_while_the_annotator_is_away_tires_none():
    tired = TiredAnnotator()
    away = AwayAnnotator(tired, [(2, 3)])
    assert away.answer(replace(ask(0, 0.0), expires_at=3600.0), "a", 0.0) is None
    assert tired.tiredness == 0.0


def test_on_return_a_delay_counts_as_if_the_question_came_then():
    away = AwayAnnotator(TiredAnnotator(delay=600.0), [(2, 3)])
    request = replace(ask(0, 0.0), expires_at=7500.0)
    assert away.answer(request, "a", 0.0).answered_at == 7800.0
    assert away.answer(request, "a", 7200.0).answered_at == 7800.0


@given(st.lists(st.floats(0.0, 1e4), max_size=20), st.integers(0, 20), st.booleans())
def test_cut_anywhere_changes_no_answer(times, cut, is_away):
    def fresh():
        tired = TiredAnnotator(0.1, classes=["a", "b", "c"], seed=5, tiring_rate=0.05)
        return AwayAnnotator(tired, [(0, 1), (2, 24)]) if is_away else tired

    whole, first, second = fresh(), fresh(), fresh()
    requests = [(ask(n, t), t) for n, t in enumerate(times)]
    expected = [whole.answer(r, "a", t) for r, t in requests]
    came = [first.answer(r, "a", t) for r, t in requests[:cut]]
    second.load_state(json.loads(json.dumps(first.state())))
    came += [second.answer(r, "a", t) for r, t in requests[cut:]]
    assert (came, second.state()) == (expected, whole.state())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tiring_rate": -0.1}, "tiring_rate must be non-negative and finite, got -0.1"),
        ({"tiring_rate": float("nan")}, "tiring_rate must be non-negative and finite"),
        ({"half_life_s": 0.0}, "half_life_s must be a positive number of seconds"),
        ({"response_s": -1.0}, r"response_s must be from 0 to 1e\+12, got -1\.0"),
        ({"slowing": float("nan")}, r"slowing must be from 0 to 1e\+06, got nan"),
        ({"response_spread": 11.0}, r"response_spread must be from 0 to 10, got 11\.0"),
        ({"error_rate": 2.0}, "error_rate must be between 0 and 1, got 2.0"),
    ],
)
def test_impossible_arguments_of_a_tired_annotator_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        TiredAnnotator(**arguments)
