"""Conditional distribution functions against closed forms: by quadrature, from the flow, and by simulation."""

import numpy as np
import pytest
from scipy import stats

import fokkerflow
from fokkerflow.densities import Surrogate
from fokkerflow.inference.conditional import by_flow, by_integration, by_simulation
from fokkerflow.inference.likelihood import transitions
from fokkerflow.inference.predictive import Predictive, one_step
from fokkerflow.sde.models import CIR, GBM, OU, Heston
from tests.training.trainings import CIR_LAW, untrained

GAPS = np.array([0.01, 0.1, 0.3, 0.3, 0.5])


def ou_cdf(x1: np.ndarray, x0: np.ndarray, dt: np.ndarray, p: np.ndarray) -> np.ndarray:
    kappa, mean, sigma = p
    decay = np.exp(-kappa * dt)
    return stats.norm.cdf(x1, mean + (x0 - mean) * decay, sigma * np.sqrt((1 - decay**2) / (2 * kappa)))


def cir_cdf(x1: np.ndarray, x0: np.ndarray, dt: np.ndarray, p: np.ndarray) -> np.ndarray:
    alpha, beta, sigma = p
    c = 2 * beta / (sigma**2 * -np.expm1(-beta * dt))
    return stats.ncx2.cdf(2 * c * x1, 4 * alpha * beta / sigma**2, 2 * c * x0 * np.exp(-beta * dt))


def gbm_cdf(x1: np.ndarray, x0: np.ndarray, dt: np.ndarray, p: np.ndarray) -> np.ndarray:
    mu, sigma = p
    return stats.norm.cdf((np.log(x1 / x0) - (mu - sigma**2 / 2) * dt) / (sigma * np.sqrt(dt)))


CASES = {
    "ou": (OU(), ou_cdf, [0.5, 0.1, 0.9, 0.45, 3.0, 0.5], [[2.0, 0.5, 0.3], [0.5, 0.0, 0.6]]),
    "cir": (CIR(), cir_cdf, [0.1, 0.12, 0.3, 1e-3, 0.08, 0.5], [[0.1, 3.0, 0.25], [0.1, 3.0, 0.77]]),
    "gbm": (GBM(), gbm_cdf, [1.0, 1.02, 0.7, 3.0, 2.5, 4.0], [[0.05, 0.2], [0.1, 1.0]]),
}


@pytest.mark.parametrize("case", CASES)
def test_integration(case: str) -> None:
    """Moves of up to twenty standard deviations, a variance close to zero, a density that is steep there."""
    sde, cdf, states, p = CASES[case]
    series = fokkerflow.Series(np.concatenate([[0.0], np.cumsum(GAPS)]), states)
    found = by_integration(fokkerflow.density("exact", sde), transitions(sde, series), np.array(p))
    x = np.array(states)
    expected = np.mean([cdf(x[1:], x[:-1], GAPS, np.array(row)) for row in p], axis=0)
    np.testing.assert_allclose(found.values[:, 0], expected, rtol=5e-6, atol=1e-12)
    np.testing.assert_allclose(found.mass, 1, atol=5e-6)


def test_flow() -> None:
    """A flow is normalised whatever its weights are: its distribution functions are the integrals of its density."""
    density = Surrogate(untrained(CIR_LAW, 0.5))
    times = np.concatenate([[0.0], np.cumsum(GAPS)])
    data = transitions(CIR(), fokkerflow.Series(times, [0.1, 0.12, 0.3, 0.01, 0.08, 0.2]))
    p = np.array([[0.1, 3.0, 0.25], [0.12, 2.5, 0.3], [0.09, 3.5, 0.2]])
    np.testing.assert_allclose(by_flow(density, data, p), by_integration(density, data, p).values, rtol=1e-5, atol=1e-9)


def test_simulation() -> None:
    """Ranks among k simulated states differ from the distribution function by sqrt(u (1 - u) / k)."""
    p = np.array([0.1, 3.0, 0.25])
    series = fokkerflow.simulate(CIR(), p, dt=0.2, n=41, seed=7)
    found = by_simulation(np.random.default_rng(1), one_step(CIR(), series, p[None], paths=2000, seed=3))
    x = series.states
    expected = cir_cdf(x[1:], x[:-1], np.full((40, 1), 0.2), p)
    score = (found - expected) / np.sqrt(expected * (1 - expected) / 2000 + 1 / 2000**2)
    assert np.max(np.abs(score)) < 4.5
    assert np.mean(score**2) == pytest.approx(1, abs=0.9)  # 4 standard errors of 40 squares


def test_simulation_takes_the_earlier_coordinates_out() -> None:
    """Where the law is Gaussian, the ranks are Rosenblatt's conditional distribution functions."""
    rng = np.random.default_rng(2)
    factor = np.array([[0.5, 0.0], [-0.9, 0.4]])
    paths = rng.normal(size=(4000, 30, 2)) @ factor.T
    z = rng.normal(size=(30, 2))
    predicted = Predictive(np.arange(30.0), paths, tuple(Heston.states), z @ factor.T)
    np.testing.assert_allclose(by_simulation(rng, predicted), stats.norm.cdf(z), atol=4.5 * 0.5 / np.sqrt(4000))


def test_a_forecast_has_no_ranks() -> None:
    with pytest.raises(ValueError, match="Only predictions of observed states"):
        by_simulation(np.random.default_rng(1), Predictive(np.zeros(1), np.zeros((2, 1, 1)), ("x",)))
