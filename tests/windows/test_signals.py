"""Every formula against numpy, scipy or a known spectrum."""

import numpy as np
import pytest
import scipy.signal
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamgp.windows import signals

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
RATE = 50.0


@pytest.fixture
def values():
    return np.random.default_rng(3).normal([[1.0], [-2.0], [0.0]], 2.0, size=(3, 251))


@pytest.fixture
def times():
    return 1.7e9 + np.arange(251) / RATE


ALL = frozenset(signals.SIGNAL_FEATURES)


def test_moments_and_order_statistics_are_those_of_numpy_and_scipy(values, times):
    found = signals.features(values, times, ALL)
    expected = {
        "mean": np.mean(values, axis=1),
        "sd": np.std(values, axis=1),
        "min": np.min(values, axis=1),
        "max": np.max(values, axis=1),
        "median": np.median(values, axis=1),
        "q10": np.quantile(values, 0.1, axis=1),
        "q90": np.quantile(values, 0.9, axis=1),
        "mad": scipy.stats.median_abs_deviation(values, axis=1),
        "energy": np.mean(values**2, axis=1),
        "rms": np.sqrt(np.mean(values**2, axis=1)),
        "peak_to_peak": np.ptp(values, axis=1),
        "slope": [scipy.stats.linregress(times - times[0], row).slope for row in values],
        "jerk": np.mean(np.abs(np.diff(values) / np.diff(times)), axis=1),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name, **CLOSE)


def test_a_slope_is_exact_far_from_zero_and_from_1970():
    rng = np.random.default_rng(5)
    times = np.sort(1.7e9 + rng.uniform(0.0, 5.0, size=97))
    values = 1e5 + rng.normal(size=(1, 97))
    [expected] = [scipy.stats.linregress(times - times[0], row - 1e5).slope for row in values]
    assert signals.changes(values, times)["slope"][0] == pytest.approx(expected, abs=1e-9)


def test_crossings_of_a_sine_are_two_a_period(times):
    t = times - times[0]
    wave = np.sin(2.0 * np.pi * 2.0 * t + 0.1)[None, :]
    found = signals.crossings(wave + 5.0, times)
    assert found["zero_crossings"] == 0.0
    assert found["mean_crossings"] == pytest.approx(4.0)
    assert signals.crossings(wave, times)["zero_crossings"] == pytest.approx(4.0)


def test_the_spectrum_is_scipys_periodogram(values, times):
    for n in (250, 251):
        part = values[:, :n]
        frequencies, power = signals.power_spectrum(part, RATE)
        expected_f, expected = scipy.signal.periodogram(
            part, RATE, window="hann", detrend="constant"
        )
        np.testing.assert_allclose(frequencies, expected_f[1:], **CLOSE)
        np.testing.assert_allclose(
            power / power.sum(axis=1, keepdims=True),
            expected[:, 1:] / expected[:, 1:].sum(axis=1, keepdims=True),
            **CLOSE,
        )
    found = signals.spectra(values, times)
    shares = expected[:, 1:] / expected[:, 1:].sum(axis=1, keepdims=True)
    entropy = [scipy.stats.entropy(row) / np.log(len(row)) for row in shares]
    np.testing.assert_allclose(found["spectral_entropy"], entropy, **CLOSE)
    np.testing.assert_allclose(found["dominant_share"], shares.max(axis=1), **CLOSE)
    total = sum(found[f"band_{low}_{high}"] for low, high in signals.BANDS_HZ)
    np.testing.assert_allclose(total, shares[:, expected_f[1:] < 25].sum(axis=1), **CLOSE)


@pytest.mark.parametrize("hertz", [0.5, 2.0, 4.5, 9.0, 20.0])
def test_a_sine_has_its_frequency_in_its_band_and_little_entropy(hertz):
    times = np.arange(200) / RATE
    found = signals.spectra(3.0 + np.sin(2.0 * np.pi * hertz * times)[None, :], times)
    assert found["dominant_frequency"] == pytest.approx(hertz, abs=1e-9)
    [band] = [f"band_{a}_{b}" for a, b in signals.BANDS_HZ if a <= hertz < b]
    assert found[band] > 0.99
    assert found["spectral_entropy"] < 0.25


def test_white_noise_has_much_entropy():
    noise = np.random.default_rng(0).normal(size=(1, 4096))
    assert signals.spectra(noise, np.arange(4096) / RATE)["spectral_entropy"] > 0.9


def test_an_irregular_signal_is_interpolated_at_its_median_rate():
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0.0, 20.0, size=1500))
    found = signals.spectra(np.sin(2.0 * np.pi * 3.0 * times)[None, :], times)
    assert found["dominant_frequency"] == pytest.approx(3.0, abs=0.06)
    regular, rate = signals.regularly_sampled(np.stack([times]), times)
    np.testing.assert_allclose(np.diff(regular[0]), 1.0 / rate, rtol=1e-9)


def test_a_pause_within_a_window_does_not_ask_for_endless_samples():
    times = np.append(np.arange(20) / 1e6, 3600.0)
    values, _ = signals.regularly_sampled(np.ones((1, 21)), times)
    assert values.shape == (1, signals.MOST_SAMPLES)


def test_a_constant_has_no_spectrum_and_no_correlation():
    times = np.arange(50) / RATE
    constant = np.full((2, 50), 0.1)
    constant[1] = times
    found = signals.spectra(constant, times)
    assert [found[name][0] for name in sorted(found)] == [0.0] * len(found)
    assert np.isnan(signals.correlations(constant)[0, 1])


def test_correlations_are_those_of_numpy(values):
    np.testing.assert_allclose(signals.correlations(values), np.corrcoef(values), **CLOSE)


def test_tilt_is_the_angle_to_the_z_axis():
    one = np.ones(3)
    assert signals.tilt(0.0 * one, 0.0 * one, one) == 0.0
    assert signals.tilt(one, 0.0 * one, one) == pytest.approx(np.pi / 4.0)
    assert signals.tilt(0.0 * one, 0.0 * one, -one) == pytest.approx(np.pi)


@given(
    values=arrays(np.float64, (2, 12), elements=st.floats(-1e6, 1e6)),
    scale=st.floats(0.01, 100.0),
)
def test_what_a_unit_changes(values, scale):
    """Another unit scales values as it should, and leaves shares and frequencies alone."""
    times = np.arange(12.0)
    before = signals.features(values, times, ALL)
    after = signals.features(scale * values, times, ALL)
    for name in ("mean", "sd", "q10", "median", "q90", "mad", "rms", "slope", "jerk"):
        np.testing.assert_allclose(after[name], scale * before[name], rtol=1e-6, atol=1e-6)
    assert all(np.isfinite(value).all() for value in after.values())
    assert (after["spectral_entropy"] >= 0.0).all()
    assert (after["spectral_entropy"] <= 1.0 + 1e-9).all()


def test_few_rows_have_few_features():
    one = signals.features(np.ones((1, 1)), np.zeros(1), ALL)
    assert set(one) == set(ALL) - {
        name for names, (least, _) in signals.GROUPS.items() if least > 1 for name in names
    }
    at_once = signals.features(np.arange(9.0)[None, :], np.zeros(9), ALL)
    assert set(at_once) == set(one)
