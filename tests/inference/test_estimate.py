"""Maxima, standard errors, profiles and evidence against closed forms, automatic differentiation and quadrature."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, optimize, stats

import fokkerflow
from fokkerflow import GBM, OU, InferenceError, Posterior, Prior, Series
from fokkerflow.inference import Profile
from fokkerflow.inference.peak import climb, hessian_by_differences
from tests.inference.closed_form import DATA, DT, EXACT, Growing, increments, log_likelihood, mle, series

POSTERIOR = Posterior(EXACT, DATA)
PRIOR = Prior(GBM(), {"mu": dist.Normal(0.1, 0.3), "sigma": dist.HalfNormal(0.5)})


def test_maximum_likelihood_in_closed_form() -> None:
    best = POSTERIOR.maximum()
    assert best.converged
    np.testing.assert_allclose(best.point, mle(DATA), rtol=1e-6)
    hessian = jax.hessian(lambda p: fokkerflow.log_likelihood(EXACT, DATA, p))(jnp.array(mle(DATA)))
    np.testing.assert_allclose(best.covariance, np.linalg.inv(-hessian), rtol=1e-5)
    assert best.log_likelihood == pytest.approx(float(log_likelihood(DATA, best.point[0], best.point[1:])[0]), rel=1e-12)
    low, high = best.intervals(0.95)["sigma"]
    assert high - low == pytest.approx(2 * 1.959964 * best.standard_errors["sigma"], rel=1e-6)


def test_ornstein_uhlenbeck_is_an_autoregression() -> None:
    data = fokkerflow.simulate(OU(), OU().typical, dt=0.2, n=300, seed=4)
    x, y = data.states[:-1, 0], data.states[1:, 0]
    slope, intercept = np.polyfit(x, y, 1)
    noise = np.mean((y - slope * x - intercept) ** 2)
    kappa = -np.log(slope) / 0.2
    expected = [kappa, intercept / (1 - slope), np.sqrt(noise * 2 * kappa / (1 - slope**2))]
    best = Posterior(fokkerflow.density("exact", OU()), data).maximum()
    np.testing.assert_allclose(best.point, expected, rtol=1e-5)
    assert best.converged


def test_maximum_a_posteriori() -> None:
    best = Posterior(EXACT, DATA, PRIOR).maximum("posterior")

    def negative(p: np.ndarray) -> float:
        prior = stats.norm.logpdf(p[0], 0.1, 0.3) + stats.halfnorm.logpdf(p[1], scale=0.5)
        return -float(log_likelihood(DATA, p[0], p[1:])[0] + prior)

    expected = optimize.minimize(negative, mle(DATA), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose(best.point, expected.x, rtol=1e-5)
    assert best.kind == "maximum a posteriori"


def test_a_maximum_at_the_end_of_a_range_has_no_standard_error() -> None:
    """Data that do not move in one direction more than the noise: m > 0 holds the estimate back."""
    best = Posterior(Growing(), series(seed=20)).maximum()
    assert increments(series(seed=20)).mean() < 0
    assert best.at_end == ("sigma",)
    assert np.isnan(best.standard_errors["sigma"])
    assert "without a standard error: sigma" in str(best)


@functools.cache
def profiles() -> list[Profile]:
    return POSTERIOR.profile(points=9)


def test_profiles_are_maximised_over_the_other_parameter() -> None:
    mu, sigma = profiles()
    r, n = increments(DATA), len(DATA) - 1
    for value, height in zip(sigma.values, sigma.log_likelihood, strict=True):
        assert height == pytest.approx(log_likelihood(DATA, r.mean() / DT + value**2 / 2, np.array([value]))[0], abs=1e-6)
    for value, height, point in zip(mu.values, mu.log_likelihood, mu.others, strict=True):
        found = optimize.minimize_scalar(lambda s: -log_likelihood(DATA, value, np.array([s]))[0], (0.2, 0.3))  # noqa: B023
        assert height == pytest.approx(-found.fun, abs=1e-6)
        assert point == pytest.approx([value, found.x], rel=1e-3)
    assert sigma.best[0] == pytest.approx(mle(DATA)[1], rel=1e-6)
    assert n == 48


def test_profile_intervals_solve_the_likelihood_ratio() -> None:
    _, sigma = profiles()
    best = mle(DATA)

    def excess(value: float) -> float:
        height = log_likelihood(DATA, increments(DATA).mean() / DT + value**2 / 2, np.array([value]))[0]
        return 2 * (sigma.best[1] - float(height)) - stats.chi2.ppf(0.9, 1)

    expected = optimize.brentq(excess, 0.5 * best[1], best[1]), optimize.brentq(excess, best[1], 2 * best[1])
    np.testing.assert_allclose(sigma.interval(0.9), expected, rtol=2e-3)
    assert sigma.interval(1 - 1e-9) == (-np.inf, np.inf)  # the profile does not reach that far


def test_evidence_by_quadrature() -> None:
    found = Posterior(EXACT, DATA, PRIOR).evidence(particles=512, moves=16, runs=6, seed=2)
    mu, sigma = np.linspace(-1.5, 1.5, 401), np.linspace(0.15, 0.6, 401)
    height = np.array([log_likelihood(DATA, m, sigma) for m in mu])
    prior = stats.norm.pdf(mu, 0.1, 0.3)[:, None] * stats.halfnorm.pdf(sigma, scale=0.5)
    total = integrate.trapezoid(integrate.trapezoid(np.exp(height - height.max()) * prior, sigma), mu)
    expected = height.max() + np.log(total)
    assert found.standard_error < 0.15
    assert abs(found.log_evidence - expected) < 4 * found.standard_error
    assert len(found.runs) == 6


def test_climbing_does_without_concavity() -> None:
    """Rosenbrock's valley, from where the Hessian is indefinite; and the Hessian by differences."""

    def valley(u: np.ndarray) -> tuple[float, np.ndarray]:
        value = -(100 * (u[1] - u[0] ** 2) ** 2 + (1 - u[0]) ** 2)
        gradient = [400 * u[0] * (u[1] - u[0] ** 2) + 2 * (1 - u[0]), -200 * (u[1] - u[0] ** 2)]
        return float(value), np.array(gradient)

    peak = climb(valley, np.array([-1.2, 4.0]))
    assert peak.converged
    np.testing.assert_allclose(peak.point, [1, 1], atol=1e-4)
    np.testing.assert_allclose(hessian_by_differences(valley, np.ones(2)), [[-802, 400], [400, -200]], rtol=1e-5)


def test_impossible_data_are_named() -> None:
    """Far beyond what a prior allows: no starting point has a finite density."""
    jump = Series([0.0, 1e-9, 2e-9], [[1.0], [1e300], [1.0]])
    with pytest.raises(InferenceError, match=r"GBM: the log density is not finite at any starting point .* The prior is: mu"):
        Posterior(EXACT, jump, Prior(GBM(), {"mu": dist.Uniform(0, 1), "sigma": dist.Uniform(1e-160, 1e-159)})).maximum()
