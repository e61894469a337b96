"""Evidence that an annotator misleads: closed forms, brute force, and its mean for honest ones."""

import itertools
from math import prod
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgp.base import SettledAnswer
from streamgp.common.annotator_em import estimate, sharpened
from streamgp.common.annotator_quarantine import LARGEST_HONEST, THRESHOLD, evidence

RATES = (0.55, 0.65, 0.75, 0.85, 0.95)
SPREAD = 0.05


def ratio(q, e, n_labels, spread=SPREAD):
    """Likelihood ratio of an answer with the belief q, written out."""
    q = (1 - spread) * q + spread / n_labels
    wrong = (1 - q) / (n_labels - 1)
    return ((1 - e) * q + e * wrong) / (0.7 * q + 0.3 * wrong)


def test_one_answer_by_hand():
    q = 0.95 * 0.2 + 0.0125
    found = (0.25 * q + 0.75 * (1 - q) / 3) / (0.7 * q + 0.3 * (1 - q) / 3)
    # The ratio is linear in e, and .75 the mean of the rates.
    assert evidence([0.2], n_labels=4) == pytest.approx(found)


beliefs = st.lists(st.floats(0.0, 1.0), max_size=8)


@given(beliefs, st.integers(2, 6))
def test_evidence_is_the_sum_over_all_beginnings(told, n_labels):
    expected = fmean(
        [
            sum(prod(ratio(q, e, n_labels) for q in told[first:]) for first in range(len(told)))
            for e in RATES
        ]
    )
    assert evidence(told, n_labels) == pytest.approx(expected)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.1, 0.2, LARGEST_HONEST])
@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.6, 0.3, 0.1)])
def test_evidence_against_honest_annotators_is_the_number_of_answers_at_most(rate, shares):
    n_labels, n_answers = len(shares), 4
    right = [(1 - SPREAD) * q + SPREAD / n_labels for q in shares]
    answer = [(1 - rate) * q + rate * (1 - q) / (n_labels - 1) for q in right]
    mean = sum(
        prod(answer[y] for y in given_) * evidence([shares[y] for y in given_], n_labels)
        for given_ in itertools.product(range(n_labels), repeat=n_answers)
    )
    assert mean <= n_answers * (1 + 1e-12)
    if rate == LARGEST_HONEST:
        assert mean == pytest.approx(n_answers)


@given(beliefs, st.integers(2, 6))
def test_what_others_know_nothing_of_is_no_evidence(told, n_labels):
    unknown = [*told, *[1 / n_labels] * 5]
    # Each answer is one more from which on an annotator may mislead.
    assert evidence(unknown, n_labels) == pytest.approx(evidence(told, n_labels) + 5)


def test_lies_are_found_after_any_number_of_honest_answers():
    lies = [0.02] * 20
    for n_before in (0, 10, 1000):
        assert evidence([0.9] * n_before + lies, n_labels=4) > THRESHOLD


def test_evidence_has_a_limit():
    assert 1e190 < evidence([0.0] * 2000, n_labels=4) < float("inf")


def test_with_one_label_there_is_no_evidence():
    assert evidence([1.0] * 9, n_labels=1) == 0.0


@given(beliefs, st.integers(2, 6), st.floats(0.0, 1.0))
def test_beliefs_count_no_more_than_another_annotator_bears_them_out(told, n_labels, contradicted):
    found = evidence(told, n_labels, contradicted)
    wrong = max(SPREAD * (n_labels - 1) / n_labels, min(contradicted, 1 - 1 / n_labels))
    said = [(1 - wrong) * q + wrong * (1 - q) / (n_labels - 1) for q in told]
    unspread = [(q - SPREAD / n_labels) / (1 - SPREAD) for q in said]
    assert found == pytest.approx(evidence(unspread, n_labels), rel=1e-6)


@given(st.integers(2, 6), st.sampled_from(RATES), st.floats(0.0, 0.3), st.data())
def test_a_share_that_is_spread_only_makes_the_test_more_careful(n_labels, e, rate, data):
    """The mean of the ratio is 1 at most for beliefs that are less sure than they should be."""
    weights = data.draw(st.lists(st.floats(0.01, 1.0), min_size=n_labels, max_size=n_labels))
    spread = data.draw(st.floats(0.0, 1.0))
    right = [weight / sum(weights) for weight in weights]
    answer = [(1 - rate) * q + rate * (1 - q) / (n_labels - 1) for q in right]
    mean = sum(p * ratio(q, e, n_labels, spread) for p, q in zip(answer, right, strict=True))
    assert mean <= 1 + 1e-12


def drawn(rng, shape, rate, n_labels, power, off):
    """Beliefs, the truths, and what an annotator says; beliefs are too sure.

    They are raised to a power, and of a share of the events they know nothing.
    """
    shares = rng.dirichlet(np.full(n_labels, 0.1), size=shape)
    y = (shares.cumsum(-1) > rng.random((*shape, 1))).argmax(-1)
    y = np.where(rng.random(shape) < off, rng.integers(0, n_labels, size=shape), y)
    errs = rng.random(shape) < rate
    said = np.where(errs, (y + rng.integers(1, n_labels, size=shape)) % n_labels, y)
    return shares**power / (shares**power).sum(-1, keepdims=True), said


def n_named(beliefs, said, n_labels, spread):
    """How many of the annotators are taken for misleading after any of their answers."""
    q = np.take_along_axis(beliefs, said[..., None], -1)[..., 0]
    e, found, most = np.array(RATES), np.zeros((len(q), len(RATES))), np.zeros(len(q))
    for answered in q.T:
        found = (1 + found) * ratio(answered[:, None], e, n_labels, spread)
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
    rng, labels = np.random.default_rng(1), list(range(n_labels))
    told = [drawn(rng, (300,), rate, n_labels, power, off) for rate in others]
    answers = [
        SettledAnswer(y=int(y), annotator=str(who)) for who, (_, said) in enumerate(told)
        for y in said
    ]  # fmt: skip
    found = estimate(answers, np.concatenate([beliefs for beliefs, _ in told]), labels)
    contradicted = min(one.error_rate for one in found.reliability.values())
    spread = max(SPREAD, contradicted * n_labels / (n_labels - 1))
    shares, said = drawn(rng, (1000, 200), LARGEST_HONEST, n_labels, power, off)
    beliefs = sharpened(shares.reshape(-1, n_labels), found.sharpening).reshape(shares.shape)
    assert n_named(beliefs, said, n_labels, spread) <= 2
    if off == 0.5 and n_labels > 2:
        assert n_named(beliefs, said, n_labels, SPREAD) > 100


@pytest.mark.parametrize("n_labels", [2, 4, 10])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.2, LARGEST_HONEST])
def test_at_most_two_of_1000_honest_annotators_are_taken_for_misleading(n_labels, rate):
    rng, n_runs, n_answers = np.random.default_rng(1), 1000, 300
    shares = rng.dirichlet(np.full(n_labels, 0.1), size=(n_runs, n_answers))
    believed = (1 - SPREAD) * shares + SPREAD / n_labels
    y = (believed.cumsum(-1) > rng.random((n_runs, n_answers, 1))).argmax(-1)  # the truth
    errs = rng.random((n_runs, n_answers)) < rate
    y = np.where(errs, (y + rng.integers(1, n_labels, size=y.shape)) % n_labels, y)
    q = np.take_along_axis(shares, y[..., None], -1)[..., 0]
    e, found, most = np.array(RATES), np.zeros((n_runs, len(RATES))), np.zeros(n_runs)
    for answered in q.T:
        found = (1 + found) * ratio(answered[:, None], e, n_labels)
        most = np.maximum(most, found.mean(axis=1))
    assert found[0].mean() == pytest.approx(evidence(q[0].tolist(), n_labels))
    assert (most > THRESHOLD).sum() <= 2
