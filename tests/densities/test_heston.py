"""The exact Heston density against high precision, a second inversion, its own integrals, and option prices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.densities import density
from fokkerflow.sde.models import Heston

from .differences import partial_derivative
from .heston_reference import density_by_double_inversion, log_density_mp
from .laws import draw_parameters, draw_transitions

TYPICAL = np.array([Heston.typical[name] for name in Heston.parameters])
START = np.array([0.1, 0.0])

# v1, y1, v0, dt, alpha, beta, sigma, mu, rho
HARD = {
    "typical": (0.12, 0.05, 0.10, 0.5, 0.1, 3.0, 0.25, 0.05, -0.8),
    "a day": (0.103, -0.01, 0.10, 1 / 365, 0.1, 3.0, 0.25, 0.05, -0.8),
    "a day, far out": (0.15, 0.1, 0.10, 1 / 365, 0.1, 3.0, 0.25, 0.05, -0.8),
    "a year": (0.05, -0.7, 0.3, 1.0, 0.1, 3.0, 0.25, 0.05, -0.8),
    "tiny v0": (0.002, 0.001, 1e-4, 1 / 365, 0.1, 3.0, 0.5, 0.05, -0.7),
    "tiny v0 and v1": (1e-6, 0.01, 1e-4, 0.05, 0.05, 3.0, 0.5, 0.05, -0.7),
    "small sigma": (0.103, 0.02, 0.10, 0.5, 0.1, 3.0, 0.02, 0.05, -0.8),
    "small alpha": (0.02, 0.05, 0.05, 0.5, 0.002, 3.0, 0.08, 0.05, -0.8),
    "almost Feller": (0.002, 0.15, 0.01, 0.1, 0.1, 3.0, 0.7745, 0.05, -0.8),
    "almost Feller, far out": (0.00005, -0.206, 0.0048, 0.21, 0.0878, 2.85, 0.7074, 0.05, -0.78),
    "rho close to -1": (0.08, 0.1, 0.1, 0.5, 0.1, 3.0, 0.25, 0.05, -0.999),
    "rho positive": (0.08, 0.1, 0.1, 0.5, 0.1, 3.0, 0.25, 0.05, 0.9),
    "rho zero": (0.08, 0.1, 0.1, 0.5, 0.1, 3.0, 0.25, 0.05, 0.0),
}


def split(row):
    v1, y1, v0, dt, *p = row
    return np.array([v1, y1]), np.array([v0, 0.0]), dt, np.array(p)


def test_agrees_with_high_precision_at_hard_points(heston):
    rows = [split(row) for row in HARD.values()]
    got = heston(*(np.stack(column) for column in zip(*rows, strict=True)))
    for name, row, value in zip(HARD, rows, got, strict=True):
        expected = float(log_density_mp(*row))
        assert abs(value - expected) < 3e-10 * max(1, abs(expected)), name


@pytest.mark.parametrize("law", ["train", "test"])
def test_agrees_with_high_precision_over_the_laws_of_the_paper(heston, rng, law):
    p = draw_parameters(rng, law, 25)
    x1, x0, dt = draw_transitions(rng, p)
    expected = np.array([float(log_density_mp(*row)) for row in zip(x1, x0, dt, p, strict=True)])
    error = np.abs(heston(x1, x0, dt, p) - expected) / np.maximum(1, np.abs(expected))
    assert error.max() < 3e-10
    assert np.median(error) < 1e-13


def test_agrees_with_the_inversion_of_the_joint_characteristic_function(heston):
    p = np.array([0.1, 3.0, 0.2, 0.05, -0.7])
    for x1 in ([0.1, 0.0], [0.14, -0.2], [0.07, 0.3]):
        expected = density_by_double_inversion(x1, START, 0.5, p, a_max=1500, a_step=3.0, b_max=120, b_step=1.0)
        assert np.exp(heston(np.array(x1), START, 0.5, p)) == pytest.approx(expected, rel=1e-9)


def grid(v_mid, v_spread, y_mid, y_spread, n):
    """Nodes (n*n, 2) and weights of the trapezoidal rule in (log v, y)."""
    t = np.linspace(-1, 1, n)
    step = 2 / (n - 1)
    v, y = v_mid * np.exp(v_spread * t), y_mid + y_spread * t
    nodes = np.stack([a.ravel() for a in np.meshgrid(v, y, indexing="ij")], -1)
    return nodes, nodes[:, 0] * v_spread * y_spread * step**2


@pytest.mark.parametrize(("dt", "v_spread", "y_spread"), [(1 / 12, 1.5, 0.8), (0.5, 3.2, 2.0)])
def test_integrates_to_one_and_has_the_moments_of_the_model(heston, dt, v_spread, y_spread):
    alpha, beta, sigma, mu, _ = TYPICAL
    nodes, weights = grid(0.085, v_spread, -0.1, y_spread, 100)
    mass = weights * np.exp(heston(nodes, np.array([0.12, 0.0]), dt, TYPICAL))
    v, y = nodes.T
    decay = np.exp(-beta * dt)
    mean_v = alpha + (0.12 - alpha) * decay
    var_v = sigma**2 / beta * (0.12 * decay * (1 - decay) + alpha * (1 - decay) ** 2 / 2)
    mean_y = mu * dt - (alpha * dt + (0.12 - alpha) * (1 - decay) / beta) / 2
    assert mass.sum() == pytest.approx(1, abs=1e-8)
    assert mass @ v == pytest.approx(mean_v, abs=1e-8)
    assert mass @ (v - mean_v) ** 2 == pytest.approx(var_v, abs=1e-9)
    assert mass @ y == pytest.approx(mean_y, abs=1e-8)
    assert mass @ np.exp(y) == pytest.approx(np.exp(mu * dt), abs=1e-8)  # the discounted price is a martingale


def test_satisfies_chapman_and_kolmogorov(heston):
    end = np.array([0.13, -0.15])
    nodes, weights = grid(0.095, 2.4, -0.03, 1.1, 80)
    two_steps = heston(nodes, START, 0.2, TYPICAL) + heston(end, nodes, 0.1, TYPICAL)
    assert weights @ np.exp(two_steps) == pytest.approx(np.exp(heston(end, START, 0.3, TYPICAL)), rel=1e-8)


def test_is_a_density_of_returns(heston):
    x1, shift = np.array([0.11, 0.07]), np.array([0.0, 3.0])
    moved = heston(x1 + shift, START + shift, 0.5, TYPICAL)
    assert moved == pytest.approx(heston(x1, START, 0.5, TYPICAL), abs=1e-12)


def test_european_calls_agree_with_quantlib(heston):
    ql = pytest.importorskip("QuantLib")
    alpha, beta, sigma, mu, rho = TYPICAL
    today = ql.Date(1, 1, 2025)
    ql.Settings.instance().evaluationDate = today
    rate = ql.YieldTermStructureHandle(ql.FlatForward(today, mu, ql.Actual365Fixed()))
    none = ql.YieldTermStructureHandle(ql.FlatForward(today, 0.0, ql.Actual365Fixed()))
    spot = ql.QuoteHandle(ql.SimpleQuote(1.0))
    model = ql.HestonModel(ql.HestonProcess(rate, none, spot, START[0], beta, alpha, sigma, rho))
    t, weight = np.polynomial.legendre.leggauss(80)
    v = 0.085 * np.exp(np.linspace(-4, 2.6, 70))
    for strike in (0.8, 1.0, 1.3):
        option = ql.VanillaOption(ql.PlainVanillaPayoff(ql.Option.Call, strike), ql.EuropeanExercise(today + 365))
        option.setPricingEngine(ql.AnalyticHestonEngine(model, 1e-12, 100000))
        low, high = np.log(strike), 2.6  # a kink at the lower end, where the integral starts
        y = (low + high) / 2 + t * (high - low) / 2
        p = np.exp(heston(np.stack(np.broadcast_arrays(v[:, None], y), -1), START, 1.0, TYPICAL))
        marginal = (p * v[:, None]).sum(0) * 6.6 / 69
        price = np.exp(-mu) * np.sum(weight * (high - low) / 2 * marginal * (np.exp(y) - strike))
        assert price == pytest.approx(option.NPV(), abs=1e-8)


@pytest.mark.parametrize("name", ["typical", "a day", "tiny v0", "almost Feller", "rho close to -1"])
def test_gradient_agrees_with_differences_in_high_precision(gradient, name):
    x1, x0, dt, p = split(HARD[name])
    got = np.concatenate([np.atleast_1d(g) for g in gradient(x1, x0, dt, p)])
    expected = [partial_derivative(_reference, (*x1, *x0, dt, *p), i) for i in range(10)]
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def _reference(v1, y1, v0, y0, dt, *p):
    return log_density_mp((v1, y1), (v0, y0), dt, p)


@pytest.fixture(scope="module")
def gradient():
    exact = density("exact", Heston())
    return jax.jit(jax.grad(lambda x1, x0, dt, p: exact.log_density(x1, x0, dt, p, jnp.zeros(())), argnums=(0, 1, 2, 3)))
