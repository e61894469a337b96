import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import evaluate, linear_model, metrics, naive_bayes, utils
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from streamgp import GPClassifier, datasets, interactive_val_score
from streamgp.common.uncertainty import UNCERTAINTIES
from streamgp.metrics import (
    Brier,
    CalibrationError,
    Overconfidence,
    RightWrongAUC,
    Underconfidence,
)

ALL = [Brier, CalibrationError, Overconfidence, RightWrongAUC, Underconfidence]
LABELS = ("hall", "den", "attic")


@st.composite
def forecasts(draw, least=0):
    """Draw labels with the probabilities that they were predicted with."""
    number = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    pairs = []
    for _ in range(draw(st.integers(least, 12))):
        numbers = draw(st.lists(number, min_size=3, max_size=3).filter(lambda q: sum(q) > 0.1))
        p = {label: q / sum(numbers) for label, q in zip(LABELS, numbers, strict=True)}
        pairs.append((draw(st.sampled_from(LABELS)), p))
    return pairs


def drawn(n, seed=0, sharpness=2.0):
    """Return forecasts of a classifier that knows something, and is too sure of it."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        scores = rng.normal(size=3)
        truth = rng.choice(3, p=np.exp(scores) / np.exp(scores).sum())
        p = np.exp(sharpness * scores) / np.exp(sharpness * scores).sum()
        pairs.append((LABELS[truth], dict(zip(LABELS, p.tolist(), strict=True))))
    return pairs


def scored(metric, pairs):
    for y, p in pairs:
        metric.update(y, p)
    return metric


def predicted(p):
    return max(p, key=p.get)


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


@pytest.mark.parametrize("name", UNCERTAINTIES)
@given(forecasts())
def test_over_and_underconfidence_are_means_over_what_is_wrong_and_what_is_right(name, pairs):
    h = UNCERTAINTIES[name]
    over = mean(1.0 - h(p) for y, p in pairs if predicted(p) != y)
    under = mean(h(p) for y, p in pairs if predicted(p) == y)
    assert scored(Overconfidence(name), pairs).get() == pytest.approx(over)
    assert scored(Underconfidence(name), pairs).get() == pytest.approx(under)


def test_over_and_underconfidence_by_hand():
    sure = [("den", {"hall": 1.0, "den": 0.0}), ("hall", {"hall": 1.0, "den": 0.0})]
    unsure = [("den", {"hall": 0.5, "den": 0.5}), ("hall", {"hall": 0.5, "den": 0.5})]
    assert scored(Overconfidence(), sure).get() == 1.0
    assert scored(Underconfidence(), sure).get() == 0.0
    assert scored(Overconfidence(), unsure).get() == 0.0
    assert scored(Underconfidence(), unsure).get() == 1.0


def test_squashed_confidences_are_less_overconfident_and_have_the_same_area():
    """The reason to report the area besides the other two."""
    # The squares of p1 and p2 have the square of their ratio.
    bold = drawn(400)
    meek = [(y, {k: math.sqrt(q) for k, q in p.items()}) for y, p in bold]
    assert scored(Overconfidence(), meek).get() < scored(Overconfidence(), bold).get()
    assert scored(Underconfidence(), meek).get() > scored(Underconfidence(), bold).get()
    areas = [scored(RightWrongAUC(), pairs).get() for pairs in (meek, bold)]
    assert areas[0] == pytest.approx(areas[1], abs=1e-3)


@given(forecasts())
def test_area_is_the_share_of_pairs_in_order(pairs):
    right = [UNCERTAINTIES["bvsb"](p) for y, p in pairs if predicted(p) == y]
    wrong = [UNCERTAINTIES["bvsb"](p) for y, p in pairs if predicted(p) != y]
    near = [(a, b) for a in right for b in wrong if a != b and near_each_other(a, b)]
    order = [1.0 if a < b else 0.5 if a == b else 0.0 for a in right for b in wrong]
    bound = 0.5 * len(near) / max(len(order), 1)
    found = scored(RightWrongAUC(), pairs).get()
    assert found == pytest.approx(mean(order), abs=bound + 1e-12)


def near_each_other(a, b):
    return abs(a - b) <= max(a, b) / 1024 or max(a, b) <= 2.0**-64


@pytest.mark.parametrize("sharpness", [0.5, 2.0, 15.0])
def test_area_is_scikit_learns(sharpness):
    """Also where nearly all confidences are 1."""
    pairs = drawn(3000, sharpness=sharpness)
    right = [predicted(p) == y for y, p in pairs]
    certainty = [-UNCERTAINTIES["bvsb"](p) for _, p in pairs]
    expected = roc_auc_score(right, certainty)
    assert scored(RightWrongAUC(), pairs).get() == pytest.approx(expected, abs=5e-4)


def test_area_needs_something_right_and_something_wrong():
    assert scored(RightWrongAUC(), [("hall", {"hall": 0.9, "den": 0.1})]).get() == 0.0
    assert RightWrongAUC().bigger_is_better


@pytest.mark.parametrize("n_bins", [1, 7, 15])
@given(forecasts(least=1))
def test_calibration_error_is_a_sum_over_intervals(n_bins, pairs):
    tops = np.array([max(p.values()) for _, p in pairs])
    right = np.array([predicted(p) == y for y, p in pairs])
    expected = 0.0
    for b in range(n_bins):
        inside = (np.minimum(np.floor(tops * n_bins), n_bins - 1)) == b
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - tops[inside].mean())
    assert scored(CalibrationError(n_bins), pairs).get() == pytest.approx(expected)


def test_bins_are_the_reliability_diagram_of_scikit_learn():
    pairs = drawn(1000)
    tops = [max(p.values()) for _, p in pairs]
    right = [predicted(p) == y for y, p in pairs]
    shares, means = calibration_curve(right, tops, n_bins=10)
    bins = scored(CalibrationError(n_bins=10), pairs).bins
    assert [b.share for b in bins] == pytest.approx(shares.tolist())
    assert [b.mean for b in bins] == pytest.approx(means.tolist())
    assert sum(b.n for b in bins) == 1000


def test_forecasts_that_come_true_as_often_as_they_say_are_calibrated():
    pairs = [("hall" if n < 8 else "den", {"hall": 0.8, "den": 0.2}) for n in range(10)]
    assert scored(CalibrationError(), pairs).get() == pytest.approx(0.0)
    metric = scored(Brier(), pairs)
    assert metric.reliability == pytest.approx(0.0)
    assert metric.get() == pytest.approx(metric.uncertainty) == pytest.approx(2 * 0.8 * 0.2)


def test_calibrated_forecasts_have_nearly_no_error_and_bold_ones_do():
    honest = scored(CalibrationError(), drawn(4000, sharpness=1.0)).get()
    bold = scored(CalibrationError(), drawn(4000, sharpness=3.0)).get()
    assert honest < 0.03
    assert bold > 0.15


@given(forecasts(least=1))
def test_brier_is_scikit_learns_and_a_mean_of_squares(pairs):
    expected = mean(sum((q - (k == y)) ** 2 for k, q in p.items()) for y, p in pairs)
    assert scored(Brier(), pairs).get() == pytest.approx(expected)
    rows = np.array([[p[label] for label in sorted(LABELS)] for _, p in pairs])
    second = brier_score_loss(
        [y for y, _ in pairs], rows, labels=sorted(LABELS), scale_by_half=False
    )
    assert expected == pytest.approx(second)


@pytest.mark.parametrize("n_bins", [1, 4, 10])
@given(forecasts(least=1))
def test_the_parts_of_brier_are_those_of_the_literature(n_bins, pairs):
    """Reliability, generalised resolution and uncertainty, class by class and group by group."""
    metric = scored(Brier(n_bins), pairs)
    y, n = np.array([y for y, _ in pairs]), len(pairs)
    reliability = resolution = uncertainty = 0.0
    for label in LABELS:
        p, o = np.array([p[label] for _, p in pairs]), (y == label).astype(float)
        group = np.minimum(np.floor(p * n_bins), n_bins - 1)
        uncertainty += o.mean() * (1.0 - o.mean())
        for g in np.unique(group):
            here = group == g
            share = here.sum() / n
            reliability += share * (p[here].mean() - o[here].mean()) ** 2
            resolution += share * (o[here].mean() - o.mean()) ** 2
            # Stephenson et al., Eqs. 6 and 7: variance and covariance within a group
            d, e = p[here] - p[here].mean(), o[here] - o[here].mean()
            resolution += share * (2.0 * (d * e).mean() - (d * d).mean())
    assert metric.reliability == pytest.approx(reliability, abs=1e-9)
    assert metric.resolution == pytest.approx(resolution, abs=1e-9)
    assert metric.uncertainty == pytest.approx(uncertainty, abs=1e-9)
    parts = metric.reliability - metric.resolution + metric.uncertainty
    assert parts == pytest.approx(metric.get(), abs=1e-9)


def test_a_class_that_comes_late_was_forecast_with_0():
    early = [("hall", {"hall": 1.0}), ("hall", {"hall": 1.0})]
    late = [("den", {"hall": 1.0}), ("den", {"hall": 0.4, "den": 0.6})]
    whole = [(y, {"hall": 0.0, "den": 0.0, **p}) for y, p in early + late]
    one, other = scored(Brier(), early + late), scored(Brier(), whole)
    assert one.get() == other.get() == pytest.approx((2.0 + 0.32) / 4)
    assert one.reliability == pytest.approx(other.reliability)
    assert one.uncertainty == pytest.approx(other.uncertainty) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ALL)
def test_metrics_of_probabilities_start_at_0_and_pass_over_what_predicts_nothing(kind):
    metric = kind()
    assert metric.get() == 0.0
    metric.update("hall", {})
    metric.revert("hall", {})
    assert metric.get() == 0.0
    assert metric.clone().get() == 0.0
    assert not metric.requires_labels


@pytest.mark.parametrize("kind", ALL)
@given(forecasts(), forecasts())
def test_reverting_undoes_updates(kind, kept, others):
    metric = scored(kind(), [*others, *kept])
    for y, p in others:
        metric.revert(y, p)
    assert metric.get() == pytest.approx(scored(kind(), kept).get(), abs=1e-6)


@pytest.mark.parametrize("kind", ALL)
@given(forecasts(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_a_weight_counts_a_prediction_so_often(kind, pairs, weights):
    weighted, repeated = kind(), kind()
    for (y, p), n in zip(pairs, weights, strict=False):
        weighted.update(y, p, w=float(n))
        scored(repeated, [(y, p)] * n)
    assert weighted.works_with_weights
    assert weighted.get() == pytest.approx(repeated.get())
    weighted.update("den", {"den": 0.7, "hall": 0.3}, w=2.5)
    weighted.revert("den", {"den": 0.7, "hall": 0.3}, w=2.5)
    assert weighted.get() == pytest.approx(repeated.get(), abs=1e-6)


def test_they_stand_beside_metrics_of_river():
    alone, beside = [kind() for kind in ALL], [kind() for kind in ALL]
    together = metrics.base.Metrics([metrics.Accuracy(), *beside, metrics.LogLoss()])
    stream = list(datasets.WiFiRooms().take(60))
    evaluate.progressive_val_score(stream, naive_bayes.GaussianNB(), together)
    for metric in alone:
        evaluate.progressive_val_score(stream, naive_bayes.GaussianNB(), metric)
    assert [m.get() for m in beside] == [m.get() for m in alone]
    together = metrics.base.Metrics([metrics.Accuracy(), Brier()])
    alone = Brier()
    for metric in (together, alone):
        interactive_val_score(stream, GPClassifier(), metric)
    assert together[1].get() == alone.get()


@pytest.mark.parametrize("kind", ALL)
def test_river_evaluates_classifiers_by_them_and_refuses_others(kind):
    stream = [(x, y) for x, y in datasets.WiFiRooms().take(80)]
    metric = kind()
    evaluate.progressive_val_score(stream, naive_bayes.GaussianNB(), metric)
    by_hand, model = kind(), naive_bayes.GaussianNB()
    for x, y in stream:
        by_hand.update(y, model.predict_proba_one(x))
        model.learn_one(x, y)
    assert metric.get() == by_hand.get()
    with pytest.raises(ValueError, match="metric is not compatible"):
        evaluate.progressive_val_score(stream, linear_model.LinearRegression(), kind())
    rolling = utils.Rolling(kind, window_size=20)
    for x, y in stream:
        rolling.update(y, model.predict_proba_one(x))
    last = scored(kind(), [(y, model.predict_proba_one(x)) for x, y in stream[-20:]])
    assert rolling.get() == pytest.approx(last.get(), abs=1e-6)


def test_interactive_val_score_hands_over_probabilities():
    metric = CalibrationError()
    interactive_val_score(datasets.WiFiRooms().take(100), GPClassifier(), metric)
    assert sum(b.n for b in metric.bins) == 99


def test_the_area_keeps_fewer_counts_than_there_were_predictions():
    metric, n = RightWrongAUC(), 20_000
    for i, q in enumerate(np.random.default_rng(0).uniform(0.0, 0.5, size=n).tolist()):
        metric.update(i % 2, {0: 1.0 - q, 1: q})
    assert len(metric._seen.cells()) < n / 3


@pytest.mark.parametrize("n_bins", [0, -1, 2.5])
@pytest.mark.parametrize("kind", [CalibrationError, Brier])
def test_a_number_of_bins_is_whole_and_positive(kind, n_bins):
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1, got"):
        kind(n_bins)


@pytest.mark.parametrize("kind", [Overconfidence, Underconfidence, RightWrongAUC])
def test_an_unknown_uncertainty_is_refused(kind):
    with pytest.raises(ValueError, match="uncertainty must be 'bvsb' or 'entropy', got 'margin'"):
        kind("margin")
