"""The operator against the paper's three hand-derived Fokker-Planck equations, and against closed-form densities."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fokkerflow
from fokkerflow.fokker_planck import adjoint, coefficients, flux, log_adjoint, log_residual
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, MODELS, SVCEV, Heston

T = jnp.asarray(0.0)


def bump(x: jax.Array) -> jax.Array:
    """log of a smooth positive function without symmetry, so that every derivative matters."""
    shift = jnp.arange(1, len(x) + 1) / 3
    return -0.7 * jnp.sum((x - shift) ** 2) + jnp.sin(2 * x[0] * x[-1]) + 0.3 * jnp.sum(x) ** 3


def heston_equation(q: Callable, x: jax.Array, p: jax.Array) -> jax.Array:
    """Paper, equation (FP_Heston), solved for the time derivative."""
    alpha, beta, sigma, mu, rho = p
    v, _ = x
    d, h = jax.grad(q)(x), jax.hessian(q)(x)
    return (
        -(mu - v / 2) * d[1]
        - beta * (alpha - v) * d[0]
        + beta * q(x)
        + 0.5 * (v * h[1, 1] + sigma**2 * v * h[0, 0] + 2 * rho * sigma * v * h[0, 1])
        + rho * sigma * d[1]
        + sigma**2 * d[0]
    )


def svcev_equation(q: Callable, x: jax.Array, p: jax.Array) -> jax.Array:
    """Paper, equation (FP_SVCEV)."""
    alpha, beta, sigma, mu, rho, gamma = p
    v, _ = x
    d, h = jax.grad(q)(x), jax.hessian(q)(x)
    return (
        -(mu - v / 2) * d[1]
        - beta * (alpha - v) * d[0]
        + beta * q(x)
        + 0.5 * (v * h[1, 1] + sigma**2 * v ** (2 * gamma) * h[0, 0] + 2 * rho * sigma * v ** (gamma + 0.5) * h[0, 1])
        + (gamma + 0.5) * rho * sigma * v ** (gamma - 0.5) * d[1]
        + 2 * gamma * sigma**2 * v ** (2 * gamma - 1) * d[0]
        + 0.5 * (2 * gamma * (2 * gamma - 1) * sigma**2 * v ** (2 * (gamma - 1))) * q(x)
    )


def bdfs_equation(q: Callable, x: jax.Array, p: jax.Array) -> jax.Array:
    """Paper, equation (FP_BDFS)."""
    k1, alpha1, sigma1, k2, alpha2, sigma2, k3, rho = p
    v, o, y = x
    d, h = jax.grad(q)(x), jax.hessian(q)(x)
    return (
        -k3 * (o - y) * d[2]
        - k2 * (alpha2 - o) * d[1]
        - k1 * (alpha1 - v) * d[0]
        + (k1 + k2 + k3) * q(x)
        + 0.5 * (v * h[2, 2] + sigma2**2 * h[1, 1] + sigma1**2 * v * h[0, 0] + 2 * rho * sigma1 * v * h[0, 2])
        + rho * sigma1 * d[2]
        + sigma1**2 * d[0]
    )


def random_points(sde: SDE, n: int, rng: np.random.Generator) -> tuple[jax.Array, jax.Array]:
    """States around the start and parameters around the typical ones, inside domain and constraint."""
    start, typical = np.array(sde.start), np.array([sde.typical[k] for k in sde.parameters])
    x = np.where(
        [d.is_line for d in sde.domains], start + rng.normal(size=(n, len(start))), start * rng.uniform(0.3, 1.7, (n, 1))
    )
    return jnp.asarray(x), jnp.asarray(typical * rng.uniform(0.85, 1.0, (n, len(typical))))


@pytest.mark.parametrize(
    ("sde", "equation"),
    [(Heston(), heston_equation), (SVCEV(), svcev_equation), (BDFS(), bdfs_equation)],
    ids=lambda v: getattr(v, "name", ""),
)
def test_both_forms_equal_the_papers_equation(sde: SDE, equation: Callable, rng: np.random.Generator) -> None:
    x, p = random_points(sde, 200, rng)

    def q(z: jax.Array) -> jax.Array:
        return jnp.exp(bump(z))

    @jax.jit
    @jax.vmap
    def compare(x: jax.Array, p: jax.Array) -> tuple[jax.Array, ...]:
        size = q(x) + jnp.max(jnp.abs(jax.grad(q)(x))) + jnp.max(jnp.abs(jax.hessian(q)(x)))
        log_form = q(x) * log_adjoint(bump, coefficients(sde, T, x, p), x)
        return equation(q, x, p) / size, adjoint(q, sde, T, x, p) / size, log_form / size

    expected, density_form, log_form = compare(x, p)
    assert jnp.max(jnp.abs(density_form - expected)) < 1e-10
    assert jnp.max(jnp.abs(log_form - expected)) < 1e-10


@pytest.mark.parametrize("name", MODELS)
def test_log_form_equals_density_form_for_every_model(name: str, rng: np.random.Generator) -> None:
    sde = MODELS[name]()
    x, p = random_points(sde, 50, rng)
    t = jnp.asarray(0.37)

    @jax.jit
    @jax.vmap
    def both(x: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        scaled = adjoint(lambda z: jnp.exp(bump(z) - bump(x)), sde, t, x, p)
        return log_adjoint(bump, coefficients(sde, t, x, p), x), scaled

    np.testing.assert_allclose(*both(x, p), rtol=1e-10, atol=1e-10)


CLOSED_FORMS = {
    "ou": lambda u: (-0.5 + 2 * u[0], [0.5 + 4 * u[1], u[2], 0.1 + u[3]]),
    "seasonal-ou": lambda u: (-0.5 + 2 * u[0], [0.5 + 4 * u[1], u[2], u[3], u[4], 0.1 + u[5]]),
    "gbm": lambda u: (0.3 + u[0], [u[1] - 0.5, 0.1 + u[2] / 2]),
    "cir": lambda u: (0.01 + 0.3 * u[0], [0.05 + 0.1 * u[1], 2 + 2 * u[2], 0.1 + 0.3 * u[3]]),
    "heston": lambda u: (0.01 + 0.3 * u[0], [0.05 + 0.1 * u[1], 2 + 2 * u[2], 0.1 + 0.3 * u[3], u[4] - 0.5, 1.8 * u[5] - 0.9]),
}


NODES = 13


def at_the_centre() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chebyshev nodes on [-1, 1], and the weights of first and second derivative of the interpolant at 0."""
    nodes = np.cos(np.pi * np.arange(NODES) / (NODES - 1))
    nodes[NODES // 2] = 0.0
    powers = np.polynomial.chebyshev.chebvander(nodes, NODES - 1)
    to_coefficients, identity = np.linalg.inv(powers), np.eye(NODES)
    first, second = (np.polynomial.chebyshev.chebval(0.0, np.polynomial.chebyshev.chebder(identity, k)) for k in (1, 2))
    return nodes, first @ to_coefficients, second @ to_coefficients


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_form_densities_solve_the_equation(name: str) -> None:
    """d/dtau log p = (L* p)/p at random conditions and random observations within two standard deviations.

    The derivatives of log p are those of interpolants, so nothing but the operator itself is differentiated automatically.
    """
    sde = MODELS[name]()
    rng, n, d = np.random.default_rng(5), 60, sde.dimension
    draws = [(*CLOSED_FORMS[name](rng.uniform(size=6)), 10 ** rng.uniform(-2, 0), rng.uniform()) for _ in range(n)]
    first, p, tau, t0 = (np.array(column) for column in zip(*draws, strict=True))
    x0 = np.stack([first, np.zeros(n)], 1)[:, :d]
    mean, covariance = map(np.asarray, jax.vmap(lambda *a: fokkerflow.sde.moments(sde, *a))(t0, tau, x0, p))
    sd, z = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), rng.normal(size=(n, d))
    positive = np.array([domain.is_half_line for domain in sde.domains])
    x1 = np.where(positive, mean * np.exp(sd * z / np.abs(mean)), mean + sd * z)

    nodes, weights1, weights2 = at_the_centre()
    reach = 0.25 * np.where(positive, np.minimum(sd, x1), sd)
    lines = np.vstack(
        [np.eye(d), np.ones((int(d > 1), d)), np.zeros(d)]
    )  # each coordinate, the diagonal, and no motion but in tau
    x = x1[:, None, None] + reach[:, None, None] * lines[:, None] * nodes[:, None]
    times = tau[:, None, None] * np.where(np.any(lines, axis=1)[:, None], 1.0, 1 + 0.2 * nodes)
    start, parameters, since = (a[:, None, None] for a in (x0, p, t0))
    log_p = np.asarray(fokkerflow.density("exact", sde).log_prob_batch(x, start, times, parameters, since))
    slopes, bends = log_p @ weights1, log_p @ weights2

    gradient, hessian = slopes[:, :d] / reach, np.zeros((n, d, d))
    for i in range(d):
        hessian[:, i, i] = bends[:, i] / reach[:, i] ** 2
    if d == 2:
        cross = (bends[:, 2] - bends[:, 0] - bends[:, 1]) / (2 * reach[:, 0] * reach[:, 1])
        hessian[:, 0, 1] = hessian[:, 1, 0] = cross

    def residual(x, speed, gradient, hessian, t0, tau, p):
        def log_p(s, y):
            return speed * (s - tau) + gradient @ (y - x) + 0.5 * (y - x) @ hessian @ (y - x)

        return log_residual(log_p, sde, t0, tau, x, p)

    speed = slopes[:, -1] / (0.2 * tau)
    found = jax.jit(jax.vmap(residual))(x1, speed, gradient, hessian, t0, tau, p)
    assert np.max(np.abs(found) / (1 + np.abs(speed))) < 1e-8


def test_flux_of_a_stationary_density_vanishes() -> None:
    """The stationary Gamma law of the CIR process has no flux anywhere, and not merely no divergence of flux."""
    alpha, beta, sigma = p = jnp.array([0.1, 3.0, 0.25])
    shape, rate = 2 * alpha * beta / sigma**2, 2 * beta / sigma**2

    def gamma(x: jax.Array) -> jax.Array:
        return jnp.exp(jax.scipy.stats.gamma.logpdf(x[0], shape, scale=1 / rate))

    x = jnp.linspace(0.005, 0.5, 40)[:, None]
    values = jax.vmap(lambda x: flux(gamma, fokkerflow.CIR(), T, x, p))(x)
    assert jnp.max(jnp.abs(values)) < 1e-12 * jnp.max(jax.vmap(gamma)(x))
