"""Evidence that an annotator misleads: closed forms, brute force, and its mean for honest ones."""

import itertools
from math import prod
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.base import SettledAnswer
from streamgp.common.annotator_em import estimate, sharpened, witnessed
from streamgp.common.annotator_quarantine import (
    HEAD_START,
    LARGEST_HONEST,
    THRESHOLD,
    evidence,
    spread,
)

RATES = (0.55, 0.65, 0.75, 0.85, 0.95)
SPREAD = 0.05


def against(told, n_labels, contradicted=0.0, head_start=0.0):
    """Evidence by beliefs that count no more than they have proved."""
    return evidence(spread(np.array(told), n_labels, contradicted), n_labels, head_start)


def ratio(q, e, n_labels, spread=SPREAD):
    """Likelihood ratio of an answer with the belief q, written out."""
    q = (1 - spread) * q + spread / n_labels
    wrong = (1 - q) / (n_labels - 1)
    return ((1 - e) * q + e * wrong) / (0.7 * q + 0.3 * wrong)


def test_one_answer_by_hand():
    q = 0.95 * 0.2 + 0.0125
    found = (0.25 * q + 0.75 * (1 - q) / 3) / (0.7 * q + 0.3 * (1 - q) / 3)
    # The ratio is linear in e, and .75 the mean of the rates.
    assert against([0.2], n_labels=4) == pytest.approx(found)


beliefs = st.lists(st.floats(0.0, 1.0), max_size=8)


@given(beliefs, st.integers(2, 6), st.sampled_from([0.0, HEAD_START]))
def test_evidence_is_the_sum_over_all_beginnings(told, n_labels, head_start):
    """The first one counts `head_start` times more."""
    expected = fmean(
        [
            head_start * prod(ratio(q, e, n_labels) for q in told)
            + sum(prod(ratio(q, e, n_labels) for q in told[first:]) for first in range(len(told)))
            for e in RATES
        ]
    )
    assert against(told, n_labels, head_start=head_start) == pytest.approx(expected)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.1, 0.2, LARGEST_HONEST])
@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.6, 0.3, 0.1)])
@pytest.mark.parametrize("head_start", [0.0, HEAD_START])
def test_evidence_against_honest_annotators_grows_by_one_an_answer_at_most(
    rate, shares, head_start
):
    n_labels, n_answers = len(shares), 4
    right = [(1 - SPREAD) * q + SPREAD / n_labels for q in shares]
    answer = [(1 - rate) * q + rate * (1 - q) / (n_labels - 1) for q in right]
    mean = sum(
        prod(answer[y] for y in given_)
        * against([shares[y] for y in given_], n_labels, head_start=head_start)
        for given_ in itertools.product(range(n_labels), repeat=n_answers)
    )
    assert mean <= (head_start + n_answers) * (1 + 1e-12)
    if rate == LARGEST_HONEST:
        assert mean == pytest.approx(head_start + n_answers)


@given(beliefs, st.integers(2, 6))
def test_what_others_know_nothing_of_is_no_against(told, n_labels):
    unknown = [*told, *[1 / n_labels] * 5]
    # Each answer is one more from which on an annotator may mislead.
    assert against(unknown, n_labels) == pytest.approx(against(told, n_labels) + 5)


def test_lies_from_the_first_answer_on_are_found_earlier():
    lies = [0.02] * 10
    assert against(lies, n_labels=4) < THRESHOLD < against(lies, n_labels=4, head_start=HEAD_START)


def test_lies_are_found_after_any_number_of_honest_answers():
    lies = [0.02] * 20
    for n_before in (0, 10, 1000):
        assert against([0.9] * n_before + lies, n_labels=4) > THRESHOLD


def test_evidence_has_a_limit():
    assert 1e190 < against([0.0] * 2000, n_labels=4) < float("inf")


def test_with_one_label_there_is_no_against():
    assert against([1.0] * 9, n_labels=1) == 0.0


@given(beliefs, st.integers(2, 6), st.floats(0.0, 1.0))
def test_beliefs_count_no_more_than_another_annotator_bears_them_out(told, n_labels, contradicted):
    found = against(told, n_labels, contradicted)
    wrong = max(SPREAD * (n_labels - 1) / n_labels, min(contradicted, 1 - 1 / n_labels))
    said = [(1 - wrong) * q + wrong * (1 - q) / (n_labels - 1) for q in told]
    unspread = [(q - SPREAD / n_labels) / (1 - SPREAD) for q in said]
    assert found == pytest.approx(against(unspread, n_labels), rel=1e-6)


@given(st.integers(2, 6), st.sampled_from(RATES), st.floats(0.0, 0.3), st.data())
def test_a_share_that_is_spread_only_makes_the_test_more_careful(n_labels, e, rate, data):
    """The mean of the ratio is 1 at most for beliefs that are less sure than they should be."""
    weights = data.draw(st.lists(st.floats(0.01, 1.0), min_size=n_labels, max_size=n_labels))
    spread = data.draw(st.floats(0.0, 1.0))
    right = [weight / sum(weights) for weight in weights]
    answer = [(1 - rate) * q + rate * (1 - q) / (n_labels - 1) for q in right]
    mean = sum(p * ratio(q, e, n_labels, spread) for p, q in zip(answer, right, strict=True))
    assert mean <= 1 + 1e-12


def drawn(rng, shape, n_labels, power, off):
    """Beliefs that are too sure, and the truths.

    They are raised to a power, and of a share of the events they know nothing.
    """
    shares = rng.dirichlet(np.full(n_labels, 0.1), size=shape)
    y = (shares.cumsum(-1) > rng.random((*shape, 1))).argmax(-1)
    y = np.where(rng.random(shape) < off, rng.integers(0, n_labels, size=shape), y)
    return shares**power / (shares**power).sum(-1, keepdims=True), y


def answered(rng, y, rate, n_labels):
    """Answers of an annotator who errs at a rate, evenly to any other label."""
    errs = rng.random(y.shape) < rate
    return np.where(errs, (y + rng.integers(1, n_labels, size=y.shape)) % n_labels, y)


def n_named(beliefs, said, n_labels, spread):
    """How many of the annotators are taken for misleading after any of their answers."""
    q = np.take_along_axis(beliefs, said[..., None], -1)[..., 0]
    e, most = np.array(RATES), np.zeros(len(q))
    found = np.full((len(q), len(RATES)), HEAD_START)
    for each in q.T:
        found = (1 + found) * ratio(each[:, None], e, n_labels, spread)
        most = np.maximum(most, found.mean(axis=1))
    return int((most > THRESHOLD).sum())


@pytest.mark.parametrize(
    ("n_labels", "others", "power", "off"),
    [
        (2, (0.05, 0.2), 4.0, 0.0),
        (4, (0.3, 0.3), 1.0, 0.3),
        (4, (0.05, 0.2), 4.0, 0.5),
        (10, (0.05, 0.2), 4.0, 0.5),
    ],
)
def test_at_most_two_of_1000_honest_annotators_are_named_by_beliefs_that_are_too_sure(
    n_labels, others, power, off
):
    rng = np.random.default_rng(1)
    found, contradicted = known_of(rng, others, n_labels, power, off)
    share = max(SPREAD, contradicted * n_labels / (n_labels - 1))
    shares, y = drawn(rng, (1000, 200), n_labels, power, off)
    said = answered(rng, y, LARGEST_HONEST, n_labels)
    beliefs = sharpened(shares.reshape(-1, n_labels), found.sharpening).reshape(shares.shape)
    assert n_named(beliefs, said, n_labels, share) <= 2
    if off == 0.5 and n_labels > 2:
        assert n_named(beliefs, said, n_labels, SPREAD) > 100


def known_of(rng, others, n_labels, power, off):
    """What 300 answers of each of the others show, and by how much they are contradicted."""
    beliefs, truths = zip(*(drawn(rng, (300,), n_labels, power, off) for _ in others), strict=True)
    answers = [
        SettledAnswer(y=int(said), annotator=str(who))
        for who, (y, rate) in enumerate(zip(truths, others, strict=True))
        for said in answered(rng, y, rate, n_labels)
    ]
    found = estimate(answers, np.concatenate(beliefs), list(range(n_labels)))
    return found, min(one.error_rate for one in found.reliability.values())


@pytest.mark.parametrize(
    ("n_labels", "others", "power", "off"),
    [
        (2, (0.05, 0.2), 4.0, 0.0),
        pytest.param(4, (0.3, 0.3), 1.0, 0.3, marks=pytest.mark.nightly),
        pytest.param(2, (0.4, 0.4), 1.0, 1.0, marks=pytest.mark.nightly),
        pytest.param(4, (0.4, 0.4), 1.0, 1.0, marks=pytest.mark.nightly),
        pytest.param(4, (0.05, 0.2), 4.0, 0.5, marks=pytest.mark.nightly),
        (10, (0.05, 0.2), 4.0, 0.5),
        pytest.param(10, (0.4, 0.4), 1.0, 1.0, marks=pytest.mark.nightly),
    ],
)
def test_at_most_two_of_1000_honest_annotators_are_named_by_those_who_have_labelled_the_same(
    n_labels, others, power, off
):
    """Also where beliefs tell nothing, so that it is not known how often the witnesses err."""
    rng, n_runs, n_answers = np.random.default_rng(1), 1000, 100
    found, contradicted = known_of(rng, others, n_labels, power, off)
    shares, y = drawn(rng, (n_runs * n_answers,), n_labels, power, off)
    witness = answered(rng, y, others[0], n_labels)
    rate = found.reliability["0"].error_rate
    beliefs = spread(sharpened(shares, found.sharpening), n_labels, contradicted)
    beliefs = witnessed(beliefs, [(column, rate) for column in witness])
    beliefs = beliefs.reshape(n_runs, n_answers, n_labels)
    honest = answered(rng, y, LARGEST_HONEST, n_labels).reshape(n_runs, n_answers)
    assert n_named(beliefs, honest, n_labels, 0.0) <= 2
    if others[0] == 0.05:
        misleads = answered(rng, y, 0.9, n_labels).reshape(n_runs, n_answers)
        assert n_named(beliefs, misleads, n_labels, 0.0) > 950


@pytest.mark.parametrize(
    ("n_labels", "rate"),
    [
        *((2, LARGEST_HONEST), (4, 0.1), (10, LARGEST_HONEST)),
        *(
            pytest.param(n_labels, rate, marks=pytest.mark.nightly)
            for n_labels in (2, 4, 10)
            for rate in (0.02, 0.1, 0.2, LARGEST_HONEST)
            if (n_labels, rate) not in ((2, LARGEST_HONEST), (4, 0.1), (10, LARGEST_HONEST))
        ),
    ],
)
def test_at_most_two_of_1000_honest_annotators_are_taken_for_misleading(n_labels, rate):
    rng, n_runs, n_answers = np.random.default_rng(1), 1000, 300
    shares = rng.dirichlet(np.full(n_labels, 0.1), size=(n_runs, n_answers))
    believed = (1 - SPREAD) * shares + SPREAD / n_labels
    y = (believed.cumsum(-1) > rng.random((n_runs, n_answers, 1))).argmax(-1)  # the truth
    y = answered(rng, y, rate, n_labels)
    q = np.take_along_axis(shares, y[..., None], -1)[..., 0]
    e, most = np.array(RATES), np.zeros(n_runs)
    found = np.full((n_runs, len(RATES)), HEAD_START)
    for each in q.T:
        found = (1 + found) * ratio(each[:, None], e, n_labels)
        most = np.maximum(most, found.mean(axis=1))
    expected = against(q[0].tolist(), n_labels, head_start=HEAD_START)
    assert found[0].mean() == pytest.approx(expected)
    assert (most > THRESHOLD).sum() <= 2
