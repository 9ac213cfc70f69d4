"""The exact BDFS density against arithmetic in many digits, its own integrals, and the Fokker-Planck equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.densities import density
from fokkerflow.fokker_planck import log_residual
from fokkerflow.sde.models import BDFS, CIR
from fokkerflow.sde.moments import moments

from .bdfs_reference import FINE, STEP, log_density_mp
from .differences import slopes, stencil
from .laws import draw_bdfs_parameters, draw_bdfs_transitions

MODEL = BDFS()
EXACT = density("exact", MODEL)
TYPICAL = np.array([BDFS.typical[name] for name in BDFS.parameters])
START = np.array([0.1, 0.06, 0.06])
SIZE = 1024


@pytest.fixture(scope="module")
def bdfs():
    """One compilation for all tests: batches are padded to one size."""
    compiled = jax.jit(jax.vmap(packed))
    return lambda x1, x0, dt, p: in_parts(compiled, x1, x0, dt, p, 256)


@pytest.fixture(scope="module")
def gradient():
    compiled = jax.jit(jax.vmap(jax.grad(packed)))
    return lambda x1, x0, dt, p: in_parts(compiled, x1, x0, dt, p, 64)


@pytest.fixture(scope="module")
def series():
    """Many states under one gap and one set of parameters, whose power series are then made once."""
    one = jax.vmap(lambda x1, x0, dt, p: EXACT.log_density(x1, x0, dt, p, jnp.zeros(())), (0, 0, None, None))
    compiled = jax.jit(one)

    def log_density(x1, x0, dt, p):
        x1, x0 = np.broadcast_arrays(x1, x0)
        parts = []
        for i in range(0, len(x1), SIZE):
            a, b = (np.resize(x[i : i + SIZE], (SIZE, 3)) for x in (x1, x0))
            parts.append(np.asarray(compiled(a, b, dt, p)))
        return np.concatenate(parts)[: len(x1)]

    return log_density


def packed(u):
    """log p as a function of x1, x0, dt and the parameters in one vector."""
    return EXACT.log_density(u[:3], u[3:6], u[6], u[7:], jnp.zeros(()))


def in_parts(compiled, x1, x0, dt, p, size):
    n = len(np.atleast_2d(x1))
    columns = [np.broadcast_to(a, (n, k)) for a, k in ((x1, 3), (x0, 3), (np.reshape(dt, (-1, 1)), 1), (p, 8))]
    rows = np.concatenate(columns, 1)
    parts = [np.asarray(compiled(np.resize(rows[i : i + size], (size, 15)))) for i in range(0, n, size)]
    return np.concatenate(parts)[:n]


def errors(got, x1, x0, dt, p, steps=None):
    steps = [STEP] * len(x1) if steps is None else steps
    expected = np.array([float(log_density_mp(*row)) for row in zip(x1, x0, dt, p, steps, strict=True)])
    return np.abs(got - expected) / np.maximum(1, np.abs(expected))


@pytest.mark.parametrize(("n", "worst"), [(5, 1e-12), pytest.param(60, 1e-6, marks=pytest.mark.slow)])
def test_agrees_with_many_digits_over_the_law_of_the_paper(bdfs, rng, n, worst):
    """A few points in a hundred, from a variance near 0, differ by more, 6e-7 at most; whose error that is is not known."""
    p = draw_bdfs_parameters(rng, n)
    x1, x0, dt = draw_bdfs_transitions(rng, p)
    error = errors(bdfs(x1, x0, dt, p), x1, x0, dt, p, [FINE] * n if n > 5 else None)
    assert np.quantile(error, 0.9) < 1e-12
    assert error.max() < worst


# v1, o1, y1, v0, dt and the parameters
HARD = {
    "a day, far out": ((0.13, 0.07, 0.01), 0.1, 1 / 365, TYPICAL),
    "low variance": ((2e-4, 0.06, 0.065), 1e-4, 1 / 52, TYPICAL),
    "almost Feller": ((0.001, 0.06, 0.3), 0.02, 0.5, (3.0, 0.01, 0.2449, 7.0, 0.06, 0.03, 10.0, 0.5)),
    "almost no noise in o": ((0.12, 0.0601, 0.1), 0.1, 0.5, (3.0, 0.1, 0.25, 7.0, 0.06, 1e-4, 10.0, 0.5)),
    "rho close to 1": ((0.12, 0.06, 0.1), 0.1, 0.5, (3.0, 0.1, 0.25, 7.0, 0.06, 0.03, 10.0, 0.999)),
}


def test_agrees_with_many_digits_at_hard_points(bdfs):
    x1, v0, dt, p = (np.array(column) for column in zip(*HARD.values(), strict=True))
    x0 = np.stack([v0, np.full(len(v0), 0.06), np.full(len(v0), 0.06)], 1)
    steps = [FINE if name == "almost Feller" else STEP for name in HARD]
    error = dict(zip(HARD, errors(bdfs(x1, x0, dt, p), x1, x0, dt, p, steps), strict=True))
    assert max(error.values()) < 1e-11, error


EQUAL_RATES = {"k1 = k3": (0, 10.0), "k2 = k3": (3, 10.0), "k1 = k2": (0, 7.0), "2 k1 = k3": (0, 5.0)}


@pytest.mark.parametrize("case", EQUAL_RATES)
def test_equal_rates_are_nothing_special(bdfs, gradient, case):
    """The density and its gradient are smooth across, where textbook formulas divide by zero."""
    i, rate = EQUAL_RATES[case]
    x1 = np.array([0.12, 0.055, 0.1])
    shifts = rate * np.array([0.0, 1e-12, 1e-9, 1e-7, -1e-7, 1e-3, -1e-3, 2e-3, -2e-3])
    p = np.tile(TYPICAL, (len(shifts), 1))
    p[:, i] = rate + shifts
    at, *near, a, b, c, d = bdfs(np.tile(x1, (len(p), 1)), START, 0.5, p)
    assert (4 * (a + b) - (c + d)) / 6 == pytest.approx(at, abs=1e-10)
    slope = (8 * (a - b) - (c - d)) / (12e-3 * rate)
    for value, shift in zip(near, shifts[1:5], strict=True):
        assert value - at == pytest.approx(slope * shift, abs=1e-11)
    assert gradient(x1, START, 0.5, p[0])[0, 7 + i] == pytest.approx(slope, rel=1e-6)


def grid(p, dt, x0, n, reach=7.5):
    """Trapezoidal nodes in log v, and in o and y given what comes before, and their weights."""
    mean, cov = (np.asarray(m) for m in moments(MODEL, 0.0, dt, x0, p))
    t = np.linspace(-1, 1, n)
    cv = np.sqrt(np.log1p(cov[0, 0] / mean[0] ** 2))
    spread = reach * cv * np.array([1.35, 0.9])  # the law of v leans to the left in log v
    middle = (spread[1] - spread[0]) / 2
    v = mean[0] * np.exp(middle + spread.mean() * t)
    L = np.linalg.cholesky(cov)
    a, b, c = np.meshgrid(v, reach * t, reach * t, indexing="ij")
    z = (a - mean[0]) / L[0, 0]
    sd = L[2, 2] * np.sqrt(np.maximum(a / mean[0], 0.6))
    x = np.stack([a, mean[1] + L[1, 1] * b, mean[2] + L[2, 0] * z + L[2, 1] * b + sd * c], -1).reshape(-1, 3)
    weights = a * spread.mean() * reach**2 * L[1, 1] * sd * (2 / (n - 1)) ** 3
    return x, weights.ravel()


@pytest.fixture(scope="module")
def after_half_a_year(series):
    x, weights = grid(TYPICAL, 0.5, START, 32)
    return x, weights * np.exp(series(x, START, 0.5, TYPICAL))


@pytest.mark.slow
def test_integrates_to_one_after_a_month(series):
    x, weights = grid(TYPICAL, 1 / 12, START, 32)
    check_moments(x, weights * np.exp(series(x, START, 1 / 12, TYPICAL)), 1 / 12)


def test_integrates_to_one_and_has_the_moments_of_the_model(after_half_a_year):
    check_moments(*after_half_a_year, 0.5)


def check_moments(x, mass, dt):
    mean, cov = (np.asarray(m) for m in moments(MODEL, 0.0, dt, START, TYPICAL))
    sd = np.sqrt(np.diag(cov))
    assert mass.sum() == pytest.approx(1, abs=2e-7)
    assert mass @ (x - mean) / sd == pytest.approx(np.zeros(3), abs=1e-6)
    assert (mass[:, None] * (x - mean)).T @ (x - mean) / np.outer(sd, sd) == pytest.approx(cov / np.outer(sd, sd), abs=1e-5)


def test_satisfies_chapman_and_kolmogorov(series):
    end = np.array([0.12, 0.05, 0.1])
    x, weights = grid(TYPICAL, 0.1, START, 32)
    two_steps = series(x, START, 0.1, TYPICAL) + series(end, x, 0.2, TYPICAL)
    assert weights @ np.exp(two_steps) == pytest.approx(np.exp(series(end[None], START, 0.3, TYPICAL)[0]), rel=1e-6)


def test_the_variance_alone_is_the_square_root_process(after_half_a_year):
    x, mass = after_half_a_year
    plane = mass.reshape(32, -1).sum(1)
    v = x.reshape(32, -1, 3)[:, 0, 0]
    step = v * np.log(v[1] / v[0])
    expected = np.exp(density("exact", CIR()).log_prob_batch(v[:, None], START[:1], 0.5, TYPICAL[[1, 0, 2]]))
    assert plane / step == pytest.approx(expected, abs=1e-6 * expected.max())


def drawn(rng, n, reach):
    p = draw_bdfs_parameters(rng, n)
    x1, x0, dt = draw_bdfs_transitions(rng, p, reach)
    return np.concatenate([x1, x0, dt[:, None], p], 1)


def split(point):
    return point[:, :3], point[:, 3:6], point[:, 6], point[:, 7:]


def test_solves_the_fokker_planck_equation(gradient, rng):
    """Relative to the rate of log p. The curvature is the difference of gradients, in steps of a share of the noise."""
    rows = drawn(rng, 20, reach=4.0)
    first = gradient(*split(rows))
    _, x0, dt, p = split(rows)
    _, cov = (np.asarray(m) for m in jax.vmap(lambda t, x, q: moments(MODEL, 0.0, t, x, q))(dt, x0, p))
    h = 0.003 * np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    h[:, 0] = np.minimum(h[:, 0], 0.003 * rows[:, 0])
    moved, h = stencil(rows, [0, 1, 2], h)
    curvature = slopes(gradient(*split(moved)), h, len(rows))[:, :, :3].swapaxes(0, 1)

    def residual(row, slope, hessian):
        def log_p(s, y):
            step = y - row[:3]
            return slope[6] * (s - row[6]) + slope[:3] @ step + step @ hessian @ step / 2

        return log_residual(log_p, MODEL, jnp.zeros(()), row[6], row[:3], row[7:])

    found = jax.jit(jax.vmap(residual))(rows, first, (curvature + curvature.swapaxes(1, 2)) / 2)
    assert np.max(np.abs(found) / (1 + np.abs(first[:, 6]))) < 1e-9


def test_gradients_are_those_of_finite_differences(bdfs, gradient, rng):
    rows = drawn(rng, 20, reach=5.0)
    moved, h = stencil(rows, list(range(15)), 1e-4 * np.abs(rows))
    expected = slopes(bdfs(*split(moved)), h, len(rows)).T
    assert gradient(*split(rows)) == pytest.approx(expected, rel=1e-5, abs=1e-4)
