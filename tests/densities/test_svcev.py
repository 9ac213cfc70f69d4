"""The SVCEV density against the backward equation in v, Heston's density, its own integrals, and the Fokker-Planck equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.densities import density
from fokkerflow.fokker_planck import log_residual
from fokkerflow.sde.models import SVCEV
from fokkerflow.sde.moments import moments

from .differences import slopes, stencil
from .laws import draw_parameters, draw_svcev_parameters, draw_svcev_transitions
from .svcev_reference import expectation

MODEL = SVCEV()
FOURIER = density("fourier", MODEL)
SIZE = 96
START = np.array([0.1, 0.0])
TYPICAL = np.array([0.1, 3.0, 0.25, 0.05, -0.8, 1.0])


def packed(u):
    """log p as a function of x1, x0, dt and the parameters in one vector."""
    return FOURIER.log_density(u[:2], u[2:4], u[4], u[5:], jnp.zeros(()))


def in_parts(compiled, x1, x0, dt, p, size):
    n = len(x1)
    columns = [np.broadcast_to(a, (n, k)) for a, k in ((x1, 2), (x0, 2), (np.reshape(dt, (-1, 1)), 1), (p, 6))]
    rows = np.concatenate(columns, 1)
    parts = [np.asarray(compiled(np.resize(rows[i : i + size], (size, 11)))) for i in range(0, n, size)]
    return np.concatenate(parts)[:n]


@pytest.fixture(scope="module")
def svcev():
    """It runs longer than it compiles, so that some optimisation pays."""
    compiled = jax.jit(jax.vmap(packed), compiler_options={"xla_backend_optimization_level": 1})
    return lambda x1, x0, dt, p: in_parts(compiled, x1, x0, dt, p, SIZE)


@pytest.fixture(scope="module")
def gradient():
    compiled = jax.jit(jax.vmap(jax.grad(packed)))
    return lambda x1, x0, dt, p: in_parts(compiled, x1, x0, dt, p, SIZE)


def grid(p, dt, x0, n=24, reach=7.5):
    """Trapezoidal nodes in log v, and in y along its regression on v; and their weights."""
    mean, cov = (np.asarray(m) for m in moments(MODEL, 0.0, dt, x0, p))
    t = np.linspace(-reach, reach, n)
    cv = np.sqrt(np.log1p(cov[0, 0] / mean[0] ** 2))
    v = mean[0] * np.exp(cv * t - cv**2 / 2)
    slope = cov[1, 0] / cov[0, 0]
    sd = np.sqrt(cov[1, 1] - slope * cov[0, 1]) * np.sqrt(np.maximum(v / mean[0], 0.5))
    y = mean[1] + slope * (v - mean[0])[:, None] + sd[:, None] * t
    x = np.stack([np.repeat(v, n), y.ravel()], 1)
    return x, np.repeat(v * cv * sd, n) * (t[1] - t[0]) ** 2


def bump(v):
    """Flat where the reference ends."""
    return np.exp(-((np.log(v / 0.11) / 0.25) ** 2) / 2)


CASES = {
    "the paper's model": (TYPICAL, 0.5, 0.1),
    "a month, far from the mean": (np.array([0.08, 3.0, 0.3, 0.02, -0.7, 0.8]), 1 / 12, 0.25),
    "between": (np.array([0.12, 2.8, 0.25, 0.05, -0.85, 0.65]), 0.25, 0.1),
}


@pytest.mark.parametrize("case", CASES)
def test_expectations_are_those_of_the_backward_equation(svcev, case):
    """The total mass (u = 0), the price (u = -i), and oscillating functions of the log price, alone and near some v."""
    p, dt, v0 = CASES[case]
    x, weights = grid(p, dt, np.array([v0, 0.0]))
    mass = weights * np.exp(svcev(x, np.array([v0, 0.0]), dt, p))
    low, high = x[:, 0].min() * 0.5, x[:, 0].max() * 1.5
    for u in (0.0, -1j, 2.0, -6.0):
        for f in (np.ones_like, bump):
            expected = expectation(f, u, v0, dt, p, min(low, 0.02), max(high, 0.8))
            assert abs(mass @ (np.exp(1j * u * x[:, 1]) * f(x[:, 0])) - expected) < 1e-7, u


def test_integrates_to_one_and_has_the_means_of_the_model(svcev):
    alpha, beta, _, mu, *_ = TYPICAL
    x, weights = grid(TYPICAL, 0.5, np.array([0.12, 0.0]))
    mass = weights * np.exp(svcev(x, np.array([0.12, 0.0]), 0.5, TYPICAL))
    decay = np.exp(-beta * 0.5)
    assert mass.sum() == pytest.approx(1, abs=1e-8)
    assert mass @ x[:, 0] == pytest.approx(alpha + (0.12 - alpha) * decay, abs=1e-8)
    assert mass @ x[:, 1] == pytest.approx(mu * 0.5 - (alpha * 0.5 + (0.12 - alpha) * (1 - decay) / beta) / 2, abs=1e-8)
    assert mass @ np.exp(x[:, 1]) == pytest.approx(np.exp(mu * 0.5), abs=1e-8)  # the discounted price is a martingale


def test_satisfies_chapman_and_kolmogorov(svcev):
    end = np.array([0.13, -0.15])
    x, weights = grid(TYPICAL, 0.1, START)
    two_steps = svcev(x, START, 0.1, TYPICAL) + svcev(np.broadcast_to(end, x.shape), x, 0.2, TYPICAL)
    assert weights @ np.exp(two_steps) == pytest.approx(np.exp(svcev(end[None], START, 0.3, TYPICAL)[0]), rel=1e-7)


def test_becomes_hestons_density_at_one_half(svcev, heston, rng):
    """Over the paper's training law, with 2 alpha beta / sigma^2 above 4, out to eight standard deviations."""
    p = draw_parameters(rng, "train", 120)
    p = p[2 * p[:, 0] * p[:, 1] / p[:, 2] ** 2 > 4]
    half = np.append(p, np.full((len(p), 1), 0.5), 1)
    x1, x0, dt = draw_svcev_transitions(rng, half, lowest=0.01)
    expected = heston(x1, x0, dt, p)
    error = np.abs(svcev(x1, x0, dt, half) - expected) / np.maximum(1, np.abs(expected))
    assert np.median(error) < 2e-8
    assert np.quantile(error, 0.9) < 1e-5
    assert error.max() < 1e-3


def test_is_a_density_of_returns(svcev):
    x1, shift = np.array([[0.11, 0.07]]), np.array([0.0, 3.0])
    moved = svcev(x1 + shift, START + shift, 0.5, TYPICAL)
    assert moved == pytest.approx(svcev(x1, START, 0.5, TYPICAL), abs=1e-11)


def unpacked(rows):
    return rows[:, :2], rows[:, 2:4], rows[:, 4], rows[:, 5:]


def drawn(rng, n, reach):
    p = draw_svcev_parameters(rng, "test", n)
    x1, x0, dt = draw_svcev_transitions(rng, p, reach=reach, lowest=0.02)
    x0[:, 1] = 0.3  # a number to take shares of
    x1[:, 1] += 0.3
    return np.concatenate([x1, x0, dt[:, None], p], 1)


@pytest.mark.slow
def test_gradients_are_those_of_differences(svcev, gradient, rng):
    rows = drawn(rng, 10, reach=6.0)
    rows[:, -1] = np.minimum(rows[:, -1], 0.99)  # a difference must not leave the interval of gamma
    moved, h = stencil(rows, list(range(11)), 3e-4 * np.abs(rows))
    expected = slopes(svcev(*unpacked(moved)), h, len(rows)).T
    assert gradient(*unpacked(rows)) == pytest.approx(expected, rel=1e-5, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("reach", [2.0, 8.0])
def test_solves_the_fokker_planck_equation(gradient, rng, reach):
    """Relative to the rate of log p, also in the tails. The curvature is the difference of gradients."""
    rows = drawn(rng, 12, reach)
    first = gradient(*unpacked(rows))
    moved, h = stencil(rows, [0, 1], 1e-3 * np.abs(rows[:, :2]))
    curvature = slopes(gradient(*unpacked(moved)), h, len(rows))[:, :, :2].swapaxes(0, 1)

    def residual(row, slope, hessian):
        def log_p(s, y):
            step = y - row[:2]
            return slope[4] * (s - row[4]) + slope[:2] @ step + step @ hessian @ step / 2

        return log_residual(log_p, MODEL, jnp.zeros(()), row[4], row[:2], row[5:])

    found = jax.jit(jax.vmap(residual))(rows, first, (curvature + curvature.swapaxes(1, 2)) / 2)
    assert np.max(np.abs(found) / (1 + np.abs(first[:, 4]))) < 1e-5
