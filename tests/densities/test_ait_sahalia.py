"""The closed-form expansion: its coefficients by SymPy, where it is exact, how fast it gets better, and what it refuses."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from scipy.stats import multivariate_normal

import fokkerflow as ff
from fokkerflow.densities import density
from fokkerflow.densities.ait_sahalia_coordinates import Frame
from fokkerflow.densities.ait_sahalia_series import short_time_series
from fokkerflow.densities.ait_sahalia_taylor import taylor
from fokkerflow.sde.domain import REAL
from fokkerflow.sde.models import CIR, GBM, OU, SVCEV, DoubleWell, Heston, Jacobi, SeasonalOU

GAPS = np.array([0.02, 0.01])
Z = np.array(list(itertools.product([-1.4, 0.6, 1.1], repeat=2)))


class Correlated(ff.SDE):
    """Two Brownian motions with drift."""

    name = "correlated"
    states = {"x": REAL, "y": REAL}
    parameters = ("a", "b", "rho")
    typical = {"a": 0.7, "b": -1.3, "rho": -0.6}
    start = (0.3, -0.2)

    def drift(self, t, x, p):
        return p[:2] + 0 * x

    def covariance(self, t, x, p):
        return jnp.array([[1.0, 0.5 * p[2]], [0.5 * p[2], 0.25]])


class Langevin(Correlated):
    """No noise in the first state."""

    def covariance(self, t, x, p):
        return jnp.array([[0.0, 0.0], [0.0, 0.5]])


def typical(sde):
    return np.array([sde.typical[name] for name in sde.parameters])


def measured_order(method, model, gaps=GAPS, **options):
    """The slope of the root mean square error of log p at fixed standard deviations."""
    sde = model()
    exact, found = density("exact", sde), density(method, sde, **options)
    x0, p = 1.1 * np.array(sde.start), typical(sde)
    root = np.linalg.cholesky(np.asarray(sde.covariance(0.0, x0, p)))
    x1 = x0 + np.sqrt(gaps)[:, None, None] * (Z[:, : len(x0)] @ root.T)
    errors = [np.asarray(d.log_prob_batch(x1, x0, gaps[:, None], p)) for d in (exact, found)]
    rms = np.sqrt(np.mean((errors[0] - errors[1]) ** 2, axis=1))
    assert np.all(rms > 1e-13)  # not rounding
    return -np.diff(np.log(rms)) / np.diff(-np.log(gaps))


SYMBOLS = v, y, t = sp.symbols("v y t")
SYMBOLIC = {
    Heston: lambda a, b, s, m, r: ([b * (a - v), m - v / 2], [[s**2 * v, r * s * v], [r * s * v, v]]),
    SVCEV: lambda a, b, s, m, r, g: (
        [b * (a - v), m - v / 2],
        [[s**2 * v ** (2 * g), r * s * v ** (g + sp.Rational(1, 2))], [r * s * v ** (g + sp.Rational(1, 2)), v]],
    ),
}


@pytest.mark.parametrize(("model", "p"), [(Heston, (0.1, 3, 0.25, 0.05, -0.8)), (SVCEV, (0.1, 3, 0.25, 0.05, -0.8, 0.75))])
def test_the_coefficients_solve_the_equations_of_the_article(model, p):
    """The series is put into the Fokker-Planck equation by computer algebra, with the formulas of the model written again."""
    x0, order = (0.09, 0.2), 4
    at = taylor(Frame(model()), order, jnp.zeros(()), jnp.array(x0), jnp.array(p))
    series = short_time_series(at, order, order // 2)
    drift, covariance = SYMBOLIC[model](*map(sp.Rational, map(str, p)))
    h = SYMBOLS[:2]
    polynomials = [sum(float(c) * v ** m[0] * y ** m[1] for part in s for m, c in part.items()) for s in series]
    log_p = -sp.log(t) + sum(f * t**k for k, f in enumerate(polynomials, start=-1))
    b = [around(f, x0, order) for f in drift]
    S = [[around(f, x0, order) for f in row] for row in covariance]
    g = [sp.diff(log_p, x) for x in h]
    residual = sp.diff(log_p, t) + sum(sp.diff(b[i], h[i]) + b[i] * g[i] for i in range(2))
    for i, j in itertools.product(range(2), repeat=2):
        residual -= S[i][j] * (sp.diff(g[i], h[j]) + g[i] * g[j]) / 2 + sp.diff(S[i][j], h[j]) * g[i]
        residual -= sp.diff(S[i][j], h[i], h[j]) / 2
    left = sp.Poly(sp.expand(residual * t**2), v, y, t)
    size = max(abs(float(c)) for s in series for part in s for c in part.values())
    checked = [abs(c) for (i, j, k), c in left.terms() if i + j + 2 * (k - 1) <= order]
    assert max(checked) < 1e-9 * size
    assert any(abs(c) > 1e-3 * size for c in left.coeffs())  # what is beyond the order does not vanish
    assert float(series[1][0][(0, 0)]) == pytest.approx(-np.log(np.linalg.det(model().covariance(0.0, x0, p))) / 2)


def around(f, x0, degree):
    """The Taylor polynomial of a function of v."""
    return sum(sp.diff(f, v, n).subs(v, sp.Rational(str(x0[0]))) * v**n / sp.factorial(n) for n in range(degree + 1))


@pytest.mark.parametrize("order", [1, 2])
def test_brownian_motion_with_drift_is_exact(order):
    sde, x0, x1, dt = Correlated(), np.array([0.3, -0.2]), np.array([1.5, -2.0]), 0.7
    expected = multivariate_normal.logpdf(x1, x0 + dt * np.array([0.7, -1.3]), dt * np.array([[1.0, -0.3], [-0.3, 0.25]]))
    assert density("ait-sahalia", sde, order=order).log_prob(x1, x0, dt, typical(sde)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("options", [{}, {"order": 1}, {"route": "expanded", "coordinates": "log"}])
def test_what_is_brownian_motion_after_a_transform_is_exact(options):
    x1 = np.geomspace(0.05, 20, 7)[:, None]
    got = density("ait-sahalia", GBM(), **options).log_prob_batch(x1, 1.0, 2.0, GBM.typical)
    np.testing.assert_allclose(got, density("exact", GBM()).log_prob_batch(x1, 1.0, 2.0, GBM.typical), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "options", "order"),
    [
        (OU, {}, 3.0),
        (CIR, {}, 3.0),
        (CIR, {"order": 1}, 2.0),
        (CIR, {"route": "expanded"}, 2.5),
        (CIR, {"route": "expanded", "order": 1}, 1.5),
        (CIR, {"coordinates": "root"}, 2.5),
        (GBM, {"route": "expanded", "extra_degree": 2}, 3.5),
        (SeasonalOU, {}, 2.5),
        (Heston, {}, 2.5),
    ],
    ids=str,
)
def test_order_in_the_gap(model, options, order):
    assert measured_order("ait-sahalia", model, **options)[0] == pytest.approx(order, abs=0.3)


def test_the_reducible_route_integrates_what_the_other_expands():
    """Ait-Sahalia (2002): lambda of the square-root process after its transform, 2 sqrt(v) / sigma, in closed form."""
    alpha, beta, sigma = CIR.typical.values()
    v0, v1, dt = 0.11, 0.07, 1e-3
    y0, y1 = 2 * np.sqrt(v0) / sigma, 2 * np.sqrt(v1) / sigma
    n = 2 * alpha * beta / sigma**2 - 0.5  # m(y) = n / y - beta y / 2
    rate = lambda a, b: -(beta**2 * (a * a + a * b + b * b) / 12 - beta * (n + 0.5) + n * (n - 1) / (a * b)) / 2  # noqa: E731
    first = -((y1 - y0) ** 2) / (2 * dt) + n * np.log(y1 / y0) - beta / 4 * (y1**2 - y0**2) + dt * rate(y0, y1)
    expected = first - np.log(2 * np.pi * dt * sigma**2 * v1) / 2
    got = density("ait-sahalia", CIR(), order=1).log_prob(v1, v0, dt, CIR.typical)
    assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "coordinates"), [pytest.param(Jacobi, "log", marks=pytest.mark.slow), (Jacobi, "root"), (DoubleWell, "natural")]
)
def test_routes_and_coordinates_agree_for_short_gaps(model, coordinates):
    sde, x0, dt = model(), np.array(model.start), 1e-3
    x1 = x0 + np.sqrt(dt) * 0.3 * Z[:, :1]
    got = density("ait-sahalia", sde, route="expanded", coordinates=coordinates).log_prob_batch(x1, x0, dt, sde.typical)
    np.testing.assert_allclose(got, density("ait-sahalia", sde).log_prob_batch(x1, x0, dt, sde.typical), atol=1e-5)


def test_far_out_there_is_no_nan():
    found = density("ait-sahalia", Heston())
    far = [[1e-12, 0.0], [0.1, 1e200], [1e300, -5.0], [0.3, 40.0]]
    assert not np.any(np.isnan(found.log_prob_batch(far, [0.1, 0.0], 0.5, typical(Heston))))


@pytest.mark.slow
def test_gradients_are_those_of_the_values():
    found, p = density("ait-sahalia", Heston()), typical(Heston)
    slope = jax.jit(jax.grad(lambda q: found.log_prob([0.12, 0.05], [0.1, 0.0], 0.1, q)))(jnp.asarray(p))
    steps = p + 1e-6 * np.stack([np.eye(5), -np.eye(5)])
    up, down = np.asarray(found.log_prob_batch([0.12, 0.05], [0.1, 0.0], 0.1, steps))
    np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (Heston, {"route": "reducible"}, "2 states"),
        (SeasonalOU, {"route": "reducible"}, "depends on time"),
        (Heston, {"order": 9}, "got 9, expected a whole number from 1 to 4"),
        (CIR, {"order": 3, "route": "reducible"}, "got 3, expected 1 or 2"),
        (CIR, {"route": "closed"}, "'closed', expected one of 'auto'"),
        (CIR, {"coordinates": "sqrt"}, "'sqrt', expected one of 'natural', 'log', 'root'"),
        (Langevin, {}, "eigenvalue 0"),
    ],
)
def test_what_it_is_not_for_is_named(model, options, words):
    with pytest.raises(ValueError, match=words):
        density("ait-sahalia", model(), **options)
