"""Moments against closed forms, quadrature, an independent ODE solver and simulation."""

from collections.abc import Iterator
from functools import cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from fokkerflow.sde.closure import integrate_closure
from fokkerflow.sde.constraint import ConstraintError
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, CIR, GBM, MODELS, OU, SVCEV, DoubleWell, Heston, Jacobi, SeasonalOU
from fokkerflow.sde.moments import MomentsError, moments
from fokkerflow.sde.polynomial import polynomial_structure
from fokkerflow.sde.probing import sample_parameters, sample_states
from fokkerflow.sde.simulate import simulate_paths

EXACT = (OU, GBM, CIR, Heston, BDFS, Jacobi)
GAPS = (1e-5, 1 / 365, 0.5, 2.0)


@cache
def compiled(sde: SDE):
    return jax.jit(lambda t0, dt, x0, p: moments(sde, t0, dt, x0, p))


def evaluate(sde: SDE, dt: float, x0, p, t0: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    mean, covariance = compiled(sde)(t0, dt, jnp.array(x0), jnp.array(p))
    return np.asarray(mean), np.asarray(covariance)


@pytest.mark.parametrize("dt", GAPS)
@pytest.mark.parametrize("kappa", [1e-3, 2.0, 100.0])
def test_ou(kappa: float, dt: float) -> None:
    mean, covariance = evaluate(OU(), dt, [0.9], [kappa, 0.5, 0.3])
    np.testing.assert_allclose(mean, [0.5 + 0.4 * np.exp(-kappa * dt)], rtol=1e-12)
    np.testing.assert_allclose(covariance, [[-(0.3**2) * np.expm1(-2 * kappa * dt) / (2 * kappa)]], rtol=1e-11)


@pytest.mark.parametrize("dt", GAPS)
@pytest.mark.parametrize("s", [1e-6, 1.0, 5e3])
def test_gbm(s: float, dt: float) -> None:
    mean, covariance = evaluate(GBM(), dt, [s], [-0.7, 0.4])
    np.testing.assert_allclose(mean, [s * np.exp(-0.7 * dt)], rtol=1e-12)
    np.testing.assert_allclose(covariance, [[mean[0] ** 2 * np.expm1(0.16 * dt)]], rtol=1e-11)


def cir_moments(v: float, alpha: float, beta: float, sigma: float, t: float) -> tuple[float, float]:
    """Cox, Ingersoll and Ross (1985), equation (19)."""
    e, f = np.exp(-beta * t), -np.expm1(-beta * t)
    return alpha + (v - alpha) * e, sigma**2 / beta * (v * e * f + alpha * f**2 / 2)


@pytest.mark.parametrize("dt", GAPS)
@pytest.mark.parametrize("v", [1e-4, 0.1, 0.5])
@pytest.mark.parametrize("p", [(0.1, 3.0, 0.25), (0.02, 12.0, 0.6)])
def test_cir(p: tuple[float, ...], v: float, dt: float) -> None:
    mean, covariance = evaluate(CIR(), dt, [v], p)
    np.testing.assert_allclose([mean[0], covariance[0, 0]], cir_moments(v, *p, dt), rtol=1e-11)


@pytest.mark.parametrize("dt", GAPS)
@pytest.mark.parametrize("v", [1e-4, 0.4])
def test_heston(v: float, dt: float) -> None:
    """Ito isometry leaves one-dimensional integrals over the CIR mean and variance: y = y0 + mu t - I/2 + M."""
    alpha, beta, sigma, mu, rho = p = (0.1, 3.0, 0.25, 0.05, -0.8)
    mean, covariance = evaluate(Heston(), dt, [v, 0.7], p)

    def integral(weight) -> float:
        def integrand(s: float) -> float:
            return weight(*cir_moments(v, alpha, beta, sigma, s), np.exp(-beta * (dt - s)))

        return quad(integrand, 0.0, dt, epsabs=0.0, epsrel=1e-13)[0]

    m, c = cir_moments(v, alpha, beta, sigma, dt)
    variance_i = 2 * integral(lambda m, c, e: c * (1 - e) / beta)
    covariance_i_m = rho * sigma * integral(lambda m, c, e: m * (1 - e) / beta)
    covariance_v_y = rho * sigma * integral(lambda m, c, e: m * e) - integral(lambda m, c, e: c * e) / 2
    variance_y = variance_i / 4 - covariance_i_m + integral(lambda m, c, e: m)
    np.testing.assert_allclose(mean, [m, 0.7 + mu * dt - integral(lambda m, c, e: m) / 2], rtol=1e-11)
    np.testing.assert_allclose(covariance, [[c, covariance_v_y], [covariance_v_y, variance_y]], rtol=1e-9)


@pytest.mark.parametrize("dt", GAPS)
@pytest.mark.parametrize("k3", [10.0, 13.0])
def test_bdfs(k3: float, dt: float) -> None:
    """The moment equations written by hand, solved by another solver; o is Gaussian on its own."""
    k1, a1, s1, k2, a2, s2, _, rho = p = (3.0, 0.1, 0.25, 7.0, 0.06, 0.03, k3, 0.5)
    x0 = np.array([0.3, 0.02, 0.09])
    A = np.array([[-k1, 0, 0], [0, -k2, 0], [0, k3, -k3]])

    def rate(t: float, z: np.ndarray) -> np.ndarray:
        m, C = z[:3], z[3:].reshape(3, 3)
        noise = np.array([[s1**2 * m[0], 0, rho * s1 * m[0]], [0, s2**2, 0], [rho * s1 * m[0], 0, m[0]]])
        return np.concatenate([A @ m + [k1 * a1, k2 * a2, 0], (A @ C + C @ A.T + noise).ravel()])

    mean, covariance = evaluate(BDFS(), dt, x0, p)
    end = solve_ivp(rate, (0, dt), np.r_[x0, np.zeros(9)], "DOP853", rtol=1e-12, atol=1e-22, first_step=dt / 100).y[:, -1]
    np.testing.assert_allclose(mean, end[:3], rtol=1e-9)
    np.testing.assert_allclose(covariance, end[3:].reshape(3, 3), rtol=1e-8, atol=1e-20)
    np.testing.assert_allclose(mean[1], a2 + (x0[1] - a2) * np.exp(-k2 * dt), rtol=1e-12)
    np.testing.assert_allclose(covariance[1, 1], -(s2**2) * np.expm1(-2 * k2 * dt) / (2 * k2), rtol=1e-11)


@pytest.mark.parametrize("dt", GAPS)
@pytest.mark.parametrize("x", [1e-3, 0.4, 0.999])
def test_jacobi(x: float, dt: float) -> None:
    """Raw second moment in closed form, in 60 digits because the variance is a small difference."""
    mean, covariance = evaluate(Jacobi(), dt, [x], [2.0, 0.4, 0.5])
    with mpmath.workdps(60):
        k, mu, s2, z, t = (mpmath.mpf(v) for v in (2.0, 0.4, 0.25, x, dt))
        a, b = 2 * k + s2, 2 * k * mu + s2
        m = mu + (z - mu) * mpmath.exp(-k * t)
        raw = (
            z**2 * mpmath.exp(-a * t)
            + b * mu * (1 - mpmath.exp(-a * t)) / a
            + b * (z - mu) * (mpmath.exp(-k * t) - mpmath.exp(-a * t)) / (a - k)
        )
        expected = float(m), float(raw - m**2)
    np.testing.assert_allclose([mean[0], covariance[0, 0]], expected, rtol=1e-11)


@pytest.mark.parametrize("t0", [0.0, 0.3])
def test_seasonal_ou(t0: float) -> None:
    """The drift is affine, so the closure is exact; what is left is the Runge-Kutta error."""
    kappa, mu, amplitude, phase, sigma = p = (2.0, 0.5, 0.4, 0.1, 0.3)
    mean, covariance = evaluate(SeasonalOU(), 0.7, [0.9], p, t0)
    season = quad(
        lambda s: np.exp(-kappa * (0.7 - s)) * kappa * (mu + amplitude * np.cos(2 * np.pi * (t0 + s - phase))),
        0,
        0.7,
        epsrel=1e-13,
    )[0]
    np.testing.assert_allclose(mean, [0.9 * np.exp(-kappa * 0.7) + season], rtol=2e-6)
    np.testing.assert_allclose(covariance, [[-(sigma**2) * np.expm1(-2 * kappa * 0.7) / (2 * kappa)]], rtol=2e-6)


@pytest.mark.parametrize(
    ("sde", "p", "x0", "dt", "bias"),
    [
        (SVCEV(), (0.1, 3.0, 0.25, 0.05, -0.8, 0.7), (0.1, 0.0), 0.5, 0.0),
        (SVCEV(), (0.1, 3.0, 0.25, 0.05, -0.8, 1.0), (0.02, 0.0), 0.02, 0.0),
        (DoubleWell(), (1.0, 0.7), (1.2,), 0.02, 0.0),
        (DoubleWell(), (1.0, 0.7), (0.3,), 0.2, 0.02),
    ],
)
def test_closure_against_simulation(sde: SDE, p, x0, dt: float, bias: float) -> None:
    """Within 4.5 Monte Carlo standard errors, plus `bias` standard deviations where the closure is an approximation."""
    paths = 20_000
    states = simulate_paths(sde, p, x0, dt=dt, n=2, substeps=50, paths=paths, seed=3)[:, -1]
    mean, covariance = evaluate(sde, dt, x0, p)
    centred = states - states.mean(0)
    sd = np.sqrt(np.diag(covariance))
    products = centred[:, :, None] * centred[:, None, :] / np.outer(sd, sd)
    assert np.all(np.abs(states.mean(0) - mean) / sd < 4.5 / np.sqrt(paths) + bias)
    error = np.abs(products.mean(0) - covariance / np.outer(sd, sd))
    assert np.all(error < 4.5 * products.std(0) / np.sqrt(paths) + bias)


@pytest.mark.parametrize(
    ("sde", "p", "x0"),
    [
        (SVCEV(), (0.1, 8.0, 0.9, 0.05, -0.8, 0.9), (0.3, 0.0)),
        (SeasonalOU(), (2.0, 0.5, 0.4, 0.1, 0.3), (0.9,)),
    ],
)
def test_the_closure_is_of_order_four(sde: SDE, p, x0) -> None:
    def error(steps: int) -> float:
        m, C = integrate_closure(sde, 0.0, 0.5, jnp.array(x0), jnp.array(p), steps=steps)
        return float(jnp.max(jnp.abs(m - exact[0])) + jnp.max(jnp.abs(C - exact[1])))

    exact = integrate_closure(sde, 0.0, 0.5, jnp.array(x0), jnp.array(p), steps=1024)
    steps = np.array([16, 24, 32, 48])
    slope = np.polyfit(np.log(steps), np.log([error(int(n)) for n in steps]), 1)[0]
    assert -5.0 < slope < -3.7


def test_a_far_start_in_a_cubic_drift_stays_bounded() -> None:
    mean, covariance = evaluate(DoubleWell(), 1.0, [20.0], [1.0, 0.7])
    assert 0.9 < mean[0] < 1.2
    assert 0 < covariance[0, 0] < 0.5


def test_which_models_are_polynomial() -> None:
    assert {name for name, model in MODELS.items() if polynomial_structure(model())} == {model.name for model in EXACT}
    quadratic = {model.name for model in EXACT if polynomial_structure(model()).quadratic}
    assert quadratic == {"gbm", "jacobi"}


class Kinked(OU):
    """Affine almost everywhere, so that its derivatives alone would not tell."""

    def drift(self, t, x, p):
        return p[0] * (p[1] - jnp.abs(x))


class RootAtZero(Heston):
    """Heston written so that it has no derivative at v = 0."""

    def covariance(self, t, x, p):
        vol = jnp.sqrt(x[0])
        a = jnp.array([p[2] * vol, vol])
        return jnp.outer(a, a) * jnp.array([[1.0, p[4]], [p[4], 1.0]])


def test_detection_is_not_fooled() -> None:
    assert polynomial_structure(Kinked()) is None
    assert polynomial_structure(RootAtZero()).reference == Heston.start
    args = (0.0, 0.5, jnp.array([0.3, 0.1]), jnp.array(list(Heston.typical.values())))
    for a, b in zip(moments(RootAtZero(), *args), moments(Heston(), *args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def scans(jaxpr) -> Iterator:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "scan":
            yield eqn
        for sub in jax.core.jaxprs_in_params(eqn.params):
            yield from scans(sub)


def test_one_matrix_exponential_for_all_starting_points() -> None:
    x0 = jnp.ones((7, 3)) * jnp.array(BDFS.start)
    p = jnp.array(list(BDFS.typical.values()))
    jaxpr = jax.make_jaxpr(jax.vmap(lambda x: moments(BDFS(), 0.0, 0.5, x, p)))(x0)
    (squaring,) = scans(jaxpr.jaxpr)
    assert [v.aval.shape for v in squaring.outvars] == [(10, 10)]


@pytest.mark.parametrize("name", MODELS)
def test_time_derivative_is_the_moment_equation(name: str) -> None:
    """d/dt of mean and covariance by jvp, against the right-hand side for polynomial models; finite for all."""
    sde = MODELS[name]()
    t, x0, p = jnp.array(0.4), jnp.array(sde.start) * 1.1, jnp.array(list(sde.typical.values()))
    (m, C), (dm, dC) = jax.jvp(lambda t: compiled(sde)(0.0, t, x0, p), (t,), (jnp.ones(()),))
    if polynomial_structure(sde):
        A = jax.jacfwd(lambda x: sde.drift(t, x, p))(m)
        noise = sde.covariance(t, m, p) + jnp.tensordot(jax.hessian(lambda x: sde.covariance(t, x, p))(m), C) / 2
        np.testing.assert_allclose(dm, sde.drift(t, m, p), rtol=1e-10, atol=1e-16)
        np.testing.assert_allclose(dC, A @ C + C @ A.T + noise, rtol=1e-10, atol=1e-16)
    else:
        ahead, behind = (compiled(sde)(0.0, t + h, x0, p) for h in (1e-5, -1e-5))
        np.testing.assert_allclose(dm, (ahead[0] - behind[0]) / 2e-5, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(dC, (ahead[1] - behind[1]) / 2e-5, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_both_modes_of_differentiation_agree_and_are_right(name: str) -> None:
    sde = MODELS[name]()
    arguments = (jnp.array(0.1), jnp.array(0.4), jnp.array(sde.start), jnp.array(list(sde.typical.values())))

    def packed(*a):
        mean, covariance = moments(sde, *a)
        return jnp.concatenate([mean, covariance.ravel()])

    forward = jax.jit(jax.jacfwd(packed, (0, 1, 2, 3)))(*arguments)
    reverse = jax.jit(jax.jacrev(packed, (0, 1, 2, 3)))(*arguments)
    f = jax.jit(packed)
    for k, (a, b) in enumerate(zip(forward, reverse, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        for i in range(arguments[k].size):
            h = np.zeros(arguments[k].size)
            h[i] = 1e-5
            shifted = [[*arguments[:k], arguments[k] + s * h.reshape(arguments[k].shape), *arguments[k + 1 :]] for s in (1, -1)]
            difference = (f(*shifted[0]) - f(*shifted[1])) / 2e-5
            np.testing.assert_allclose(np.asarray(a).reshape(len(difference), -1)[:, i], difference, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_covariances_are_positive_definite(name: str) -> None:
    """At random states and parameters, from 1e-6 to 2 units of time."""
    sde, n = MODELS[name](), 60
    dt = np.geomspace(1e-6, 2.0, n)
    _, covariance = jax.vmap(compiled(sde), (None, 0, 0, 0))(0.0, dt, sample_states(sde, n), sample_parameters(sde, n))
    covariance = np.asarray(covariance)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    correlation = covariance / sd[:, :, None] / sd[:, None, :]
    np.testing.assert_array_equal(covariance, covariance.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(correlation).min() > 1e-6


@pytest.mark.filterwarnings("ignore:.*requested in.*is not available")
def test_double_precision_in_single_precision_mode() -> None:
    with jax.enable_x64(False):
        mean, covariance = moments(CIR(), 0.0, 0.5, np.array([0.3]), np.array([0.1, 3.0, 0.25]))
    np.testing.assert_allclose([mean[0], covariance[0, 0]], cir_moments(0.3, 0.1, 3.0, 0.25, 0.5), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dt": 0.0}, ValueError, "Heston: got dt = 0, expected a positive, finite time"),
        ({"dt": np.ones(3)}, ValueError, r"dt has shape \(3,\): moments takes one transition. Use jax.vmap"),
        ({"x0": [0.1]}, ValueError, r"x0 of shape \(1,\), expected 2: v, y"),
        ({"x0": [[0.1, 0.0]]}, ValueError, r"x0 has shape \(1, 2\)"),
        ({"x0": [-0.1, 0.0]}, ValueError, "x0 has v = -0.1"),
        ({"p": [0.1, 3.0, 0.25, 0.05]}, ValueError, r"parameters of shape \(4,\), expected 5"),
        ({"p": {"alpha": 0.1}}, ValueError, "missing parameter 'beta'"),
        ({"p": [0.1, 3.0, 2.0, 0.05, -0.8]}, ConstraintError, "strict Feller"),
    ],
)
def test_refusals(change: dict, error: type[Exception], message: str) -> None:
    arguments = {"dt": 0.5, "x0": [0.1, 0.0], "p": Heston.typical, **change}
    with pytest.raises(error, match=message):
        moments(Heston(), 0.0, **arguments)


def test_an_unstable_closure_is_reported() -> None:
    p = (0.1, 3000.0, 0.25, 0.05, -0.8, 0.7)
    with pytest.raises(MomentsError, match="SVCEV: the moment closure is unstable over dt = 1 with 32 steps; increase steps"):
        moments(SVCEV(), 0.0, 1.0, [0.3, 0.0], p)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(MODELS)), dt=st.floats(1e-8, 3.0), pick=st.integers(0, 199))
def test_any_valid_input_gives_finite_moments(name: str, dt: float, pick: int) -> None:
    sde = MODELS[name]()
    mean, covariance = moments(sde, 0.3, dt, sample_states(sde, 200)[pick], sample_parameters(sde, 200)[pick])
    assert np.all(np.isfinite(mean))
    assert np.all(np.linalg.eigvalsh(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))) > 0)
