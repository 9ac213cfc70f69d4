"""Ornstein-Uhlenbeck, its seasonal variant and Black-Scholes against scipy and against the equation of the mean."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import lognorm, norm

from fokkerflow.densities import density
from fokkerflow.sde.models import GBM, OU, SeasonalOU

X1 = np.linspace(0.05, 1.2, 7)


@pytest.mark.parametrize("dt", [1e-4, 0.3, 20.0])
def test_ornstein_uhlenbeck_is_normal(dt):
    kappa, mean, sigma = OU.typical.values()
    expected = norm.logpdf(
        X1, mean + (0.4 - mean) * np.exp(-kappa * dt), sigma * np.sqrt(-np.expm1(-2 * kappa * dt) / (2 * kappa))
    )
    np.testing.assert_allclose(density("exact", OU()).log_prob_batch(X1[:, None], 0.4, dt, OU.typical), expected, rtol=1e-12)


@pytest.mark.parametrize(("t0", "dt"), [(0.0, 0.3), (5.37, 0.01), (0.8, 2.5)])
def test_the_seasonal_mean_solves_its_equation(t0, dt):
    sde, p = SeasonalOU(), np.array(list(SeasonalOU.typical.values()))
    solution = solve_ivp(
        lambda t, m: np.asarray(sde.drift(t, m, p)), (t0, t0 + dt), [0.4], method="DOP853", rtol=1e-13, atol=1e-14
    )
    sd = p[4] * np.sqrt(-np.expm1(-2 * p[0] * dt) / (2 * p[0]))
    expected = norm.logpdf(X1, solution.y[0, -1], sd)
    got = density("exact", sde).log_prob_batch(X1[:, None], 0.4, dt, p, t0)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("dt", [1e-4, 0.3, 20.0])
def test_black_scholes_is_lognormal(dt):
    mu, sigma = GBM.typical.values()
    expected = lognorm.logpdf(X1, sigma * np.sqrt(dt), scale=0.4 * np.exp((mu - sigma**2 / 2) * dt))
    np.testing.assert_allclose(density("exact", GBM()).log_prob_batch(X1[:, None], 0.4, dt, GBM.typical), expected, rtol=1e-12)
