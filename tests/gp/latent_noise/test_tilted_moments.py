import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import norm

from streamgp.gp.latent_noise.tilted_moments import flip_angles, sites, tilted

labels = st.sampled_from([-1.0, 1.0])
means = st.floats(-4.0, 4.0)
variances = st.floats(0.01, 4.0)


def at(y, m_f, v_f, m_g, v_g):
    return tilted(np.array([y]), np.array([[m_f], [m_g]]), np.array([[v_f], [v_g]]))


def on_a_grid(y, m_f, v_f, m_g, v_g):
    """Values of g, 40 standard deviations either way, and log probabilities of them and the label.

    Their sum is that of the label: the trapezoidal rule is exact up to rounding here.
    """
    t = np.linspace(-40.0, 40.0, 20_001)
    g = m_g + np.sqrt(v_g) * t
    return g, norm.logpdf(t) + np.log(t[1] - t[0]) + log_ndtr(y * m_f / np.sqrt(v_f + np.exp(g)))


@given(labels, means, variances, means, variances)
@example(1.0, -4.0, 0.01, -4.0, 4.0)
@example(1.0, -2.0, 0.01, -4.0, 4.0)
@example(-1.0, 4.0, 0.01, -4.0, 0.01)
def test_derivatives_are_limits_of_differences(y, m_f, v_f, m_g, v_g):
    told = at(y, m_f, v_f, m_g, v_g)
    here, step = np.array([m_f, v_f, m_g, v_g]), 1e-5
    for i, found in enumerate(
        (
            told.by_means[0, 0],
            told.by_variances[0, 0],
            told.by_means[1, 0],
            told.by_variances[1, 0],
        )
    ):
        off = step * (np.arange(4) == i)
        above, below = (logsumexp(on_a_grid(y, *at_)[1]) for at_ in (here + off, here - off))
        # 1e-4: what the nodes leave of the derivative by the variance of g, where that is 4
        assert found == pytest.approx((above - below) / (2.0 * step), rel=1e-4, abs=1e-4)


@given(labels, means, variances, means, st.floats(0.01, 2.0))
def test_the_probability_is_an_integral_over_the_noise(y, m_f, v_f, m_g, v_g):
    def integrand(g):
        return ndtr(y * m_f / np.sqrt(v_f + np.exp(g))) * norm.pdf(g, m_g, np.sqrt(v_g))

    spread = 12.0 * np.sqrt(v_g)
    expected, _ = quad(integrand, m_g - spread, m_g + spread, points=[m_g], epsabs=1e-12)
    assert np.exp(at(y, m_f, v_f, m_g, v_g).log_z[0]) == pytest.approx(expected, rel=1e-5)


@given(labels, means, variances, means)
def test_known_noise_is_the_probit_likelihood(y, m, v, m_g):
    """GPML Eqs. 3.82 to 3.87, with a noise of variance exp(m_g) instead of 1."""
    s = np.sqrt(v + np.exp(m_g))
    z = y * m / s
    hazard = np.exp(norm.logpdf(z) - norm.logcdf(z))
    told = at(y, m, v, m_g, 0.0)
    assert told.log_z[0] == pytest.approx(norm.logcdf(z))
    assert told.by_means[0, 0] == pytest.approx(y * hazard / s)
    mean_wanted = m + y * v * hazard / s
    variance_wanted = v - v * v * hazard * (z + hazard) / (s * s)
    tau, nu, ok = sites(told, np.array([[m], [m_g]]), np.array([[v], [0.0]]))
    assert ok.all()
    precision = 1.0 / v + tau[0, 0]
    assert 1.0 / precision == pytest.approx(variance_wanted, rel=1e-6)
    assert (m / v + nu[0, 0]) / precision == pytest.approx(mean_wanted, abs=1e-6)


@given(labels, means, variances, means, variances)
@example(1.0, -2.0, 0.02, -3.0, 16.0)
@example(1.0, -4.0, 0.01, -4.0, 4.0)
@example(1.0, -4.0, 0.01, -4.0, 0.01)
def test_sites_give_the_moments_of_the_label(y, m_f, v_f, m_g, v_g):
    """By a sum over values of g, each with known noise (GPML Eqs. 3.85 and 3.87)."""
    g, log_w = on_a_grid(y, m_f, v_f, m_g, v_g)
    w = np.exp(log_w - logsumexp(log_w))
    s = np.sqrt(v_f + np.exp(g))
    z = y * m_f / s
    hazard = np.exp(norm.logpdf(z) - log_ndtr(z))
    f = m_f + y * v_f * hazard / s
    left = v_f - v_f * v_f * hazard * (z + hazard) / (s * s)
    m, v = np.array([[m_f], [m_g]]), np.array([[v_f], [v_g]])
    tau, nu, ok = sites(tilted(np.array([y]), m, v), m, v)
    assert ok.all()
    variances_found = 1.0 / (1.0 / v + tau)
    means_found = variances_found * (m / v + nu)
    for i, (values, within) in enumerate(((f, left), (g, 0.0))):
        mean = w @ values
        variance = w @ (within + (values - mean) ** 2)
        # 1e-2: what the nodes leave where the label is surprising and the variance of g is large
        assert means_found[i, 0] == pytest.approx(mean, abs=1e-2)
        assert variances_found[i, 0] == pytest.approx(variance, abs=1e-2)


def test_derivatives_of_the_integrand_and_moments_of_the_nodes_agree():
    """At a variance of g of 1e-4 one takes the place of the other."""
    below, above = (at(1.0, -1.0, 0.1, -3.0, v_g) for v_g in (1e-4 * (1.0 - 1e-12), 1e-4))
    assert below.by_means == pytest.approx(above.by_means, rel=1e-10)
    assert below.by_variances == pytest.approx(above.by_variances, rel=1e-10)


def test_labels_are_looked_at_one_by_one():
    rng = np.random.default_rng(0)
    y, m, v = rng.choice([-1.0, 1.0], 5), rng.normal(size=(2, 5)), rng.uniform(0.1, 2.0, (2, 5))
    together = tilted(y, m, v)
    for i in range(5):
        one = tilted(y[i : i + 1], m[:, i : i + 1], v[:, i : i + 1])
        assert np.array_equal(one.by_means[:, 0], together.by_means[:, i])
        assert one.log_z[0] == together.log_z[i]


def test_what_is_all_but_impossible_stays_finite():
    told = at(-1.0, 50.0, 0.01, -5.0, 0.5)
    assert told.log_z[0] < -100.0
    assert np.isfinite([*told.by_means.ravel(), *told.by_variances.ravel()]).all()
    huge = at(1.0, 1.0, 1.0, 400.0, 1e4)
    assert np.isfinite([*huge.log_z, *huge.by_means.ravel(), *huge.by_variances.ravel()]).all()


def test_a_surprising_label_widens_what_is_believed():
    """Either the function is elsewhere or the label is noisy: precisions are negative."""
    m, v = np.array([[1.0], [-4.0]]), np.array([[0.1], [2.0]])
    tau, _, ok = sites(tilted(np.array([-1.0]), m, v), m, v)
    assert ok.all()
    assert tau[0, 0] < 0.0
    assert tau[1, 0] < 0.0


def test_the_papers_figure_takes_exp_g_for_a_standard_deviation():
    for exp_g, printed in ((5.0, 0.58), (0.5, 0.98)):
        as_variance = np.exp(at(1.0, 1.0, 0.0, np.log(exp_g), 0.0).log_z[0])
        assert abs(as_variance - printed) > 0.04
        as_std = np.exp(at(1.0, 1.0, 0.0, 2.0 * np.log(exp_g), 0.0).log_z[0])
        assert as_std == pytest.approx(printed, abs=0.005)


# --- how often noise flips a sign


@given(st.floats(-10.0, 10.0), st.floats(0.0, 20.0))
def test_flips_are_an_integral_over_the_noise(m, v):
    expected = np.arctan(np.exp(0.5 * m))
    if v > 0.0:
        expected, _ = quad(
            lambda z: np.arctan(np.exp(0.5 * (m + np.sqrt(v) * z))) * norm.pdf(z), -12.0, 12.0
        )
    assert flip_angles(np.array([m]), np.array([v]))[0] == pytest.approx(expected, rel=1e-5)


@given(st.floats(0.0, 1e6))
def test_noise_of_which_little_is_known_flips_half_as_many_as_a_guess(v):
    assert flip_angles(np.zeros(1), np.array([v]))[0] == pytest.approx(np.pi / 4.0)


@given(st.floats(-900.0, 900.0), st.floats(0.0, 900.0), st.floats(0.0, 1e6))
def test_more_noise_flips_no_fewer_and_never_more_than_a_guess(m, more, v):
    few, many = flip_angles(np.array([m, m + more]), np.array([v, v]))
    assert 0.0 <= few <= many * (1.0 + 1e-12)
    assert many <= np.pi / 2.0 * (1.0 + 1e-12)
