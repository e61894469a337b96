import math
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from river import evaluate, utils
from river import metrics as river_metrics
from scipy.integrate import quad
from scipy.stats import norm

from streamgp import EnsembleGPClassifier, EnsembleGPRegressor, interactive_val_score
from streamgp.common.normal import GaussianMixture, Normal
from streamgp.metrics import CRPS, NMSE, NPLL, IntervalCoverage

MIXTURE = GaussianMixture(
    weights=(0.2, 0.5, 0.3),
    mus=(-1.0, 1.0, 4.0),
    sigmas=(0.5, 2.0, 0.1),
)


def scored(metric, pairs):
    for y, prediction in pairs:
        metric.update(y, prediction)
    return metric.get()


def test_a_prediction_of_mean_and_variance_has_nmse_1_and_npll_1_419():
    ys = np.random.default_rng(0).normal(3.0, 7.0, size=200)
    known = Normal(mu=ys.mean(), sigma=ys.std())
    pairs = [(y, known) for y in ys.tolist()]
    assert scored(NMSE(), pairs) == pytest.approx(1.0)
    assert scored(NPLL(), pairs) == pytest.approx(0.5 * (1.0 + math.log(2.0 * math.pi)))


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=20))
def test_nmse_is_a_mean_over_a_variance(pairs):
    y, p = (np.array(column) for column in zip(*pairs, strict=True))
    found = scored(NMSE(), [(a, Normal(mu=b, sigma=1.0)) for a, b in pairs])
    if y.var() > 1e-6:
        assert found == pytest.approx(((y - p) ** 2).mean() / y.var(), rel=1e-6)
    assert found == scored(NMSE(), pairs)


def test_nmse_is_rivers_r2_from_the_other_side():
    rng = random.Random(0)
    pairs = [(y, y + rng.gauss(0.0, 0.3)) for y in (rng.gauss(0.0, 1.0) for _ in range(50))]
    r2 = river_metrics.R2()
    for y, p in pairs:
        r2.update(y, p)
    assert scored(NMSE(), pairs) == pytest.approx(1.0 - r2.get())


@pytest.mark.parametrize("factor", [0.01, 250.0])
def test_nmse_and_npll_have_no_unit(factor):
    rng = random.Random(0)
    pairs = [(rng.gauss(0.0, 1.0), Normal(mu=rng.gauss(0.0, 1.0), sigma=0.8)) for _ in range(30)]
    scaled = [(factor * y, Normal(mu=factor * p.mu, sigma=factor * p.sigma)) for y, p in pairs]
    for kind in (NMSE, NPLL):
        assert scored(kind(), scaled) == pytest.approx(scored(kind(), pairs))
    assert scored(CRPS(), scaled) == pytest.approx(factor * scored(CRPS(), pairs))


def test_npll_is_the_density_of_the_mixture():
    ys = [0.3, 3.9, -2.0]
    densities = [
        sum(
            w * norm.pdf(y, p.mu, p.sigma)
            for w, p in zip(MIXTURE.weights, MIXTURE.components, strict=True)
        )
        for y in ys
    ]
    expected = -np.log(densities).mean() - math.log(np.std(ys))
    assert scored(NPLL(), [(y, MIXTURE) for y in ys]) == pytest.approx(expected)


@pytest.mark.parametrize("y", [-3.0, 0.0, 1.2, 4.05, 9.0])
@pytest.mark.parametrize("prediction", [Normal(mu=1.0, sigma=2.0), MIXTURE], ids=["one", "three"])
def test_crps_is_the_integral_of_the_squared_distance_of_distribution_functions(prediction, y):
    below = quad(lambda t: prediction.cdf(t) ** 2, -40.0, y, points=[-1.0, 4.0], limit=200)[0]
    above = quad(lambda t: (1 - prediction.cdf(t)) ** 2, y, 40.0, points=[4.0, 10.0], limit=200)[0]
    assert scored(CRPS(), [(y, prediction)]) == pytest.approx(below + above, abs=1e-7)


@given(st.floats(-50, 50), st.floats(0.01, 50), st.floats(-50, 50))
def test_crps_of_a_normal_distribution_is_the_known_formula(mu, sigma, y):
    z = (y - mu) / sigma
    expected = sigma * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    found = scored(CRPS(), [(y, Normal(mu=mu, sigma=sigma))])
    assert found == pytest.approx(expected, abs=1e-9)


def test_crps_of_a_point_is_the_absolute_error():
    assert scored(CRPS(), [(3.0, Normal(mu=1.0, sigma=0.0))]) == 2.0


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_of_the_truth_is_the_level(level):
    rng = np.random.default_rng(0)
    parts = rng.choice(3, size=4000, p=MIXTURE.weights)
    ys = [rng.normal(MIXTURE.components[i].mu, MIXTURE.components[i].sigma) for i in parts]
    found = scored(IntervalCoverage(level), [(y, MIXTURE) for y in ys])
    assert found == pytest.approx(level, abs=3.0 * math.sqrt(level * (1.0 - level) / 4000))


def test_coverage_counts_the_interval_between_quantiles():
    p = Normal(mu=2.0, sigma=3.0)
    low, high = norm.ppf([0.05, 0.95], 2.0, 3.0)
    ys = [low - 1e-6, low + 1e-6, 2.0, high - 1e-6, high + 1e-6]
    assert scored(IntervalCoverage(0.9), [(y, p) for y in ys]) == 0.6
    assert scored(IntervalCoverage(0.9), [(2.0, Normal(mu=2.0, sigma=0.0))]) == 1.0


def test_coverage_is_better_the_closer_it_is_to_its_level():
    p = Normal(mu=0.0, sigma=1.0)
    all_, half = IntervalCoverage(0.5), IntervalCoverage(0.5)
    scored(all_, [(0.0, p)] * 4)
    scored(half, [(0.0, p), (0.0, p), (5.0, p), (-5.0, p)])
    assert half.is_better_than(all_)
    assert half > all_
    assert repr(all_) == "IntervalCoverage: 100.00%"


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_is_between_0_and_1(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1, got"):
        IntervalCoverage(level)


@pytest.mark.parametrize("kind", [NMSE, NPLL, CRPS, IntervalCoverage])
def test_metrics_of_distributions_start_at_0_and_clone(kind):
    metric = kind()
    assert metric.get() == 0.0
    metric.update(1.0, Normal(mu=0.0, sigma=1.0))
    metric.update(2.0, Normal(mu=0.0, sigma=1.0))
    assert metric.clone().get() == 0.0
    # River hands over the mean alone.
    assert metric.works_with(EnsembleGPRegressor(seed=1)) == (kind is NMSE)
    assert not metric.works_with(EnsembleGPClassifier(seed=1))
    assert not metric.bigger_is_better


def test_targets_that_do_not_differ_have_no_variance():
    p = Normal(mu=1.0, sigma=1.0)
    assert scored(NMSE(), [(1.0, p)] * 3) == 0.0
    assert scored(NPLL(), [(1.0, p)] * 3) == pytest.approx(0.5 * math.log(2.0 * math.pi))


@example(0.35784366315016186, [0.1])
@given(st.floats(-1e6, 1e6), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5))
def test_equal_targets_have_no_variance_whatever_their_weights(y, weights):
    nmse, npll, prediction = NMSE(), NPLL(), Normal(mu=y + 1.0, sigma=1.0)
    for weight in weights:
        nmse.update(y, prediction, weight)
        npll.update(y, prediction, weight)
    assert nmse.get() == 0.0
    assert npll.get() == pytest.approx(-prediction.log_density(y))


@pytest.mark.parametrize("kind", [NMSE, NPLL, CRPS, IntervalCoverage])
def test_what_is_no_distribution_is_refused_and_not_counted(kind):
    metric = kind()
    for wrong in ([1.0], "high", None, *([] if kind is NMSE else [1.0, np.float32(1.0)])):
        with pytest.raises(TypeError, match=r"^y_pred must be a distribution .*with_dist=True"):
            metric.update(1.0, wrong)
    assert metric.get() == kind().get()


def test_numbers_of_numpy_are_predictions():
    one, other = NMSE(), NMSE()
    for y in (1.0, 2.0, 4.0):
        one.update(y, np.float32(1.5))
        other.update(y, 1.5)
    assert one.get() == other.get()


KINDS = [NMSE, NPLL, CRPS, IntervalCoverage]
pairs_of = st.lists(st.tuples(st.floats(-9.0, 9.0), st.floats(-9.0, 9.0)), min_size=1, max_size=9)


def normal(mu):
    return Normal(mu=mu, sigma=2.0)


@pytest.mark.parametrize("kind", KINDS)
@given(pairs_of, pairs_of, st.lists(st.integers(0, 3), min_size=9, max_size=9))
def test_weights_repeat_a_prediction_and_reverting_undoes_it(kind, kept, others, weights):
    weighted, repeated = kind(), kind()
    differ = [(-5.0, 0.0), (5.0, 0.0)]
    for (y, mu), n in zip([*differ, *kept], [1, 1, *weights], strict=False):
        weighted.update(y, normal(mu), w=float(n))
        scored(repeated, [(y, normal(mu))] * n)
    for y, mu in others:
        weighted.update(y, normal(mu), w=2.0)
    for y, mu in others:
        weighted.revert(y, normal(mu), w=2.0)
    assert weighted.works_with_weights
    assert weighted.get() == pytest.approx(repeated.get(), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("before", [[0.1, 0.7, 0.3], [1e6, -3e5, 2.2], [0.1] * 3])
@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1])
def test_targets_in_a_window_that_have_become_equal_have_no_spread(before, value):
    for kind in (NMSE, NPLL):
        metric, alone = utils.Rolling(kind, window_size=5), kind()
        for y in [value + one for one in before] * 7 + [value] * 30:
            metric.update(y, normal(value + 1.0))
        scored(alone, [(value, normal(value + 1.0))] * 5)
        assert metric.get() == pytest.approx(alone.get(), abs=1e-5)


@given(pairs_of, st.sampled_from([1.0, 1e5]))
def test_a_spread_that_is_more_than_rounding_counts_after_an_outlier(pairs, outlier):
    metric, alone = NMSE(), NMSE()
    for y in (0.0, 1.0, outlier, *(y for y, _ in pairs)):
        metric.update(y, 0.5)
    for y in (outlier, *(y for y, _ in pairs)):
        metric.revert(y, 0.5)
    scored(alone, [(0.0, 0.5), (1.0, 0.5)])
    assert metric.get() == pytest.approx(alone.get(), rel=0.1)


def test_they_stand_beside_metrics_of_river_and_in_windows():
    rng = random.Random(0)
    stream = [({"a": a}, a * a) for a in (rng.gauss(0.0, 1.0) for _ in range(60))]
    alone, beside = NMSE(), NMSE()
    together = river_metrics.base.Metrics([river_metrics.MAE(), beside])
    for metric in (alone, together):
        evaluate.progressive_val_score(stream, EnsembleGPRegressor(seed=1), metric)
    assert beside.get() == alone.get() > 0.0
    latest = [utils.Rolling(kind, window_size=60) for kind in KINDS]
    for rolling, kind in zip(latest, KINDS, strict=True):
        metric = kind()
        for one in (rolling, metric):
            interactive_val_score(stream, EnsembleGPRegressor(seed=1), one)
        assert rolling.get() == pytest.approx(metric.get())


def test_a_prediction_that_is_no_number_is_not_taken_for_a_good_one():
    for pair in ((math.nan, 1.0), (3.0, math.nan)):
        metric = NMSE()
        scored(metric, [(1.0, 1.0), (2.0, 2.0), pair])
        assert math.isnan(metric.get())
