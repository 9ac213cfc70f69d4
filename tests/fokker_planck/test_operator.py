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


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "heston" else n for n in CLOSED_FORMS])
def test_closed_form_densities_solve_the_equation(name: str) -> None:
    """d/dtau log p = (L* p)/p at random conditions and random observations within two standard deviations."""
    sde = MODELS[name]()
    exact = fokkerflow.density("exact", sde)
    rng = np.random.default_rng(5)
    n = 60

    def draw() -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        first, p = CLOSED_FORMS[name](rng.uniform(size=6))
        x0 = np.array([first, 0.0][: sde.dimension])
        return x0, np.array(p), rng.normal(size=sde.dimension), 10 ** rng.uniform(-2, 0), rng.uniform()

    x0, p, z, tau, t0 = (jnp.asarray(np.stack(a)) for a in zip(*(draw() for _ in range(n)), strict=True))

    def residual(x0: jax.Array, p: jax.Array, z: jax.Array, tau: jax.Array, t0: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean, cov = fokkerflow.sde.moments(sde, t0, tau, x0, p)
        x1 = mean + jnp.sqrt(jnp.diag(cov)) * z
        positive = jnp.array([d.is_half_line for d in sde.domains])
        x1 = jnp.where(positive, mean * jnp.exp(jnp.sqrt(jnp.diag(cov)) * z / jnp.abs(mean)), x1)

        def log_p(s: jax.Array, x: jax.Array) -> jax.Array:
            return exact.log_density(x, x0, s, p, t0)

        scale = 1 + jnp.abs(jax.jvp(lambda s: log_p(s, x1), (tau,), (1.0,))[1])
        return log_residual(log_p, sde, t0, tau, x1, p), scale

    r, scale = jax.jit(jax.vmap(residual))(x0, p, z, tau, t0)
    assert jnp.max(jnp.abs(r) / scale) < 1e-8


def test_flux_of_a_stationary_density_vanishes() -> None:
    """The stationary Gamma law of the CIR process has no flux anywhere, and not merely no divergence of flux."""
    alpha, beta, sigma = p = jnp.array([0.1, 3.0, 0.25])
    shape, rate = 2 * alpha * beta / sigma**2, 2 * beta / sigma**2

    def gamma(x: jax.Array) -> jax.Array:
        return jnp.exp(jax.scipy.stats.gamma.logpdf(x[0], shape, scale=1 / rate))

    x = jnp.linspace(0.005, 0.5, 40)[:, None]
    values = jax.vmap(lambda x: flux(gamma, fokkerflow.CIR(), T, x, p))(x)
    assert jnp.max(jnp.abs(values)) < 1e-12 * jnp.max(jax.vmap(gamma)(x))
