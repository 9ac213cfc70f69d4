"""Euler, local linearisation and moment closure: where they are exact, how fast they get better, and what they refuse."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.stats import multivariate_normal, norm

import fokkerflow as ff
from fokkerflow.densities import density
from fokkerflow.densities.local_linear import linear_law
from fokkerflow.sde.domain import REAL
from fokkerflow.sde.models import CIR, OU, DoubleWell, Heston, Jacobi, SeasonalOU

METHODS = ("euler", "local-linearisation", "moment-closure")
GAPS = np.array([0.02, 0.01, 0.005])
Z = np.array([-1.1, 0.6, 1.7])


class Langevin(ff.SDE):
    """Position and velocity: the position has no noise of its own."""

    name = "langevin"
    states = {"x": REAL, "u": REAL}
    parameters = ("stiffness", "friction")
    typical = {"stiffness": 2.0, "friction": 0.7}
    start = (0.3, -0.2)

    def drift(self, t, x, p):
        return jnp.array([x[1], -p[0] * x[0] - p[1] * x[1]])

    def covariance(self, t, x, p):
        return jnp.array([[0.0, 0.0], [0.0, 0.5]])


def benes():
    """``dX = tanh(X) dt + dW``, whose density is Gaussian times ``cosh(x1) / cosh(x0) e^{-dt/2}`` (Benes 1981)."""
    return ff.from_functions(
        lambda x, p: p.one * jnp.tanh(x), lambda x, p: jnp.ones((1, 1)), states={"x": "real"}, parameters={"one": 1.0}
    )


def benes_log_density(x1, x0, dt):
    return norm.logpdf(x1, x0, np.sqrt(dt)) + np.log(np.cosh(x1) / np.cosh(x0)) - dt / 2


@pytest.mark.parametrize("dt", [1e-5, 0.3, 10.0])
@pytest.mark.parametrize("method", METHODS[1:])
def test_ornstein_uhlenbeck_is_exact(method, dt):
    x1 = np.linspace(0.2, 0.8, 5)[:, None]
    got = density(method, OU()).log_prob_batch(x1, 0.4, dt, OU.typical)
    expected = density("exact", OU()).log_prob_batch(x1, 0.4, dt, OU.typical)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_one_euler_step_is_its_formula():
    p = np.array(list(Heston.typical.values()))
    x1, x0, dt = np.array([0.13, 0.02]), np.array([0.08, 0.0]), 0.1
    alpha, beta, sigma, mu, rho = p
    mean = x0 + dt * np.array([beta * (alpha - 0.08), mu - 0.04])
    covariance = dt * 0.08 * np.array([[sigma**2, rho * sigma], [rho * sigma, 1]])
    expected = multivariate_normal(mean, covariance).logpdf(x1)
    assert density("euler", Heston()).log_prob(x1, x0, dt, p) == pytest.approx(expected, rel=1e-12)


def test_one_dimension_is_the_formula_of_shoji_and_ozaki():
    theta, sigma = 1.0, 0.7
    x0, h = 0.3, 0.4
    b, J, M = theta * (x0 - x0**3), theta * (1 - 3 * x0**2), sigma**2 / 2 * -6 * theta * x0
    mean = x0 + b / J * np.expm1(J * h) + M / J**2 * (np.expm1(J * h) - J * h)
    sd = sigma * np.sqrt(np.expm1(2 * J * h) / (2 * J))
    got = density("local-linearisation", DoubleWell()).log_prob(0.5, x0, h, [theta, sigma])
    assert got == pytest.approx(norm.logpdf(0.5, mean, sd), rel=1e-12)


def test_drift_that_depends_on_time_enters_by_its_derivative():
    sde = ff.from_functions(
        lambda t, x, p: p.a * t - x, lambda x, p: jnp.ones((1, 1)), states={"x": "real"}, parameters={"a": 2.0}
    )
    t0, dt, x0 = 0.7, 0.5, 0.1
    mean = solve_ivp(lambda t, m: 2.0 * t - m, (t0, t0 + dt), [x0], rtol=1e-12, atol=1e-13).y[0, -1]
    expected = norm.logpdf(0.9, mean, np.sqrt(-np.expm1(-2 * dt) / 2))
    assert density("local-linearisation", sde).log_prob(0.9, x0, dt, [2.0], t0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 60.0])
def test_the_linear_law_against_quadrature(scale):
    slope = scale * np.array([[-1.0, 0.4, 0.0], [0.0, -1.0, 1.0], [0.1, 0.0, -0.3]])  # nearly defective
    root = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.2, 0.3]])
    noise, drift, trend, dt = root @ root.T, np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.0, -5.0]), 0.8
    mean, covariance = jax.jit(linear_law)(drift, slope, trend, noise, jnp.array(dt))
    t, weight = np.polynomial.legendre.leggauss(40)
    edges = dt * np.concatenate([[0], np.geomspace(1e-4, 1, 12)])
    s = np.concatenate([(a + b) / 2 + t * (b - a) / 2 for a, b in pairwise(edges)])
    weight = np.concatenate([weight * (b - a) / 2 for a, b in pairwise(edges)])
    flows = np.array([expm(slope * u) for u in s])
    np.testing.assert_allclose(mean, np.einsum("s,sij,sj->i", weight, flows, drift + np.outer(dt - s, trend)), rtol=1e-10)
    np.testing.assert_allclose(covariance, np.einsum("s,sij,jk,slk->il", weight, flows, noise, flows), rtol=1e-10)


def test_position_and_velocity_have_a_density_though_the_noise_is_singular():
    p = np.array(list(Langevin.typical.values()))
    values = [float(density(m, Langevin()).log_prob([0.25, -0.3], [0.3, -0.2], 0.2, p)) for m in METHODS[1:]]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    with pytest.raises(ValueError, match=r"singular.*x has no noise of its own.*local-linearisation"):
        density("euler", Langevin())


def test_a_coordinate_without_any_noise_is_refused():
    class Clock(Langevin):
        def drift(self, t, x, p):
            return jnp.array([1.0 + 0 * x[1], -p[0] * x[1]])

    for method in METHODS[1:]:
        with pytest.raises(ValueError, match="x has no noise there"):
            density(method, Clock())


def slope_in_dt(errors):
    return np.polyfit(np.log(GAPS), np.log(errors), 1)[0]


@pytest.mark.parametrize(("method", "order"), [("euler", 1.0), ("local-linearisation", 1.5), ("moment-closure", 1.5)])
def test_order_in_dt_for_constant_noise(method, order):
    sde, x0 = benes(), 0.5
    x1 = x0 + np.sqrt(GAPS) * Z[:, None]
    got = density(method, sde).log_prob_batch(x1[..., None], x0, GAPS, [1.0])
    assert slope_in_dt(np.max(np.abs(got - benes_log_density(x1, x0, GAPS)), 0)) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_order_in_dt_for_noise_that_depends_on_the_state(method):
    p, x0 = CIR.typical, 0.1
    x1 = x0 + 0.25 * np.sqrt(x0 * GAPS) * Z[:, None]
    got, exact = (density(m, CIR()).log_prob_batch(x1[..., None], x0, GAPS, p) for m in (method, "exact"))
    assert slope_in_dt(np.max(np.abs(got - exact), 0)) == pytest.approx(0.5, abs=0.1)


def test_moment_closure_has_the_exact_moments_where_linearisation_does_not():
    x0, p, dt = 0.3, np.array(list(CIR.typical.values())), 0.5
    alpha, beta, sigma = p
    decay = np.exp(-beta * dt)
    mean = alpha + (x0 - alpha) * decay
    variance = sigma**2 / beta * (x0 * decay * (1 - decay) + alpha * (1 - decay) ** 2 / 2)
    x1 = mean + 0.01
    expected = norm.logpdf(x1, mean, np.sqrt(variance))
    assert density("moment-closure", CIR()).log_prob(x1, x0, dt, p) == pytest.approx(expected, rel=1e-9)
    assert abs(density("local-linearisation", CIR()).log_prob(x1, x0, dt, p) - expected) > 0.01


@pytest.mark.parametrize(
    ("sde", "p", "interval"), [(CIR(), [0.1, 3.0, 0.75], (0, 2)), (Jacobi(), [2.0, 0.4, 1.2], (0, 1))], ids=["cir", "jacobi"]
)
def test_mass_outside_the_domain_is_lost_unless_it_is_truncated(sde, p, interval):
    plain, truncated = density("euler", sde), density("euler", sde, truncated=True)

    def mass(d):
        nodes, weights = np.polynomial.legendre.leggauss(200)
        x = interval[0] + (nodes + 1) / 2 * (interval[1] - interval[0])
        return weights @ np.exp(d.log_prob_batch(x[:, None], 0.05, 0.08, p)) * (interval[1] - interval[0]) / 2

    assert mass(plain) < 0.95
    assert mass(truncated) == pytest.approx(1, abs=1e-8)


def test_truncation_of_several_bounded_coordinates_is_refused():
    sde = ff.from_functions(
        lambda x, p: p.k * (1 - x), lambda x, p: jnp.diag(x), states={"a": "positive", "b": "positive"}, parameters={"k": 2.0}
    )
    with pytest.raises(ValueError, match="a, b are bounded"):
        density("euler", sde, truncated=True)


def test_gradients_are_those_of_differences():
    sde, x0, x1 = SeasonalOU(), 0.4, 0.5
    d, p = density("local-linearisation", sde), np.array(list(SeasonalOU.typical.values()))
    got = jax.jit(jax.grad(lambda p: d.log_prob(x1, x0, 0.2, p, 0.3)))(jnp.asarray(p))
    moves = 1e-5 * np.eye(len(p))
    up, down = (np.asarray(d.log_prob_batch(x1, x0, 0.2, p + s * moves, 0.3)) for s in (1, -1))
    np.testing.assert_allclose(got, (up - down) / 2e-5, rtol=1e-6, atol=1e-8)


def test_benes_density_is_a_density():
    assert quad(lambda x: np.exp(benes_log_density(x, 0.5, 0.7)), -8, 8)[0] == pytest.approx(1, abs=1e-9)
