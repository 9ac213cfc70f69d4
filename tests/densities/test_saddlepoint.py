"""The saddlepoint approximation against exact densities, and the generating function beneath it against another solver."""

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import gammaln

import fokkerflow as ff
from fokkerflow.densities import density, methods
from fokkerflow.densities.affine import affine_structure, coefficients, cumulants
from fokkerflow.densities.jets import derivatives, multiply, square, variable
from fokkerflow.densities.saddlepoint import _correction, _minimum
from fokkerflow.sde.models import BDFS, CIR, GBM, OU, SVCEV, Heston, SeasonalOU

from .laws import draw_bdfs_parameters, draw_bdfs_transitions, draw_parameters, draw_transitions


@pytest.fixture(scope="module")
def bdfs():
    return density("saddlepoint", BDFS())


@pytest.fixture(scope="module")
def transitions():
    rng = np.random.default_rng(20260101)
    p = draw_bdfs_parameters(rng, 48)
    return *draw_bdfs_transitions(rng, p, reach=3.0), p


def riccati(u, x0, dt, p):
    """log E exp(u' X) of BDFS by scipy, from the equations written out."""
    k1, alpha1, sigma1, k2, alpha2, sigma2, k3, rho = p

    def slope(_, z):
        v, o, y, _ = z
        quadratic = (sigma1**2 * v**2 + 2 * rho * sigma1 * v * y + y**2) / 2
        return [-k1 * v + quadratic, -k2 * o + k3 * y, -k3 * y, k1 * alpha1 * v + k2 * alpha2 * o + sigma2**2 * o**2 / 2]

    end = solve_ivp(slope, (0, dt), [*u, 0.0], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return end[3] + end[:3] @ x0


def test_the_riccati_equations_are_solved_to_ten_digits(transitions):
    _, x0, dt, p = transitions
    structure = affine_structure(BDFS())
    _, covariance = jax.vmap(lambda t, x, q: ff.moments(BDFS(), 0.0, t, x, q))(dt, x0, p)
    z = np.random.default_rng(1).uniform(-0.5, 0.5, (len(dt), 3))
    u = np.linalg.solve(np.moveaxis(np.linalg.cholesky(covariance), 1, 2), z[..., None])[..., 0]
    got = jax.jit(
        jax.vmap(
            lambda u, x0, dt, p: cumulants(
                structure, coefficients(BDFS(), structure.reference, p), u, x0, dt, degree=0, steps=16, levels=6
            )[(0, 0, 0)]
        )
    )(u, x0, dt, p)
    expected = np.array([riccati(*row) for row in zip(u, x0, dt, p, strict=True)])
    assert np.max(np.abs(got - expected) / np.maximum(1, np.abs(expected))) < 1e-10


def test_jets_are_taylor_series():
    x, y = 0.7, -0.3
    a = multiply(square(variable(x, 0, 2), 4), variable(y, 1, 2), 4)  # x^2 y
    b = square(a, 4)  # x^4 y^2
    np.testing.assert_allclose(derivatives(b, 1, 2), [4 * x**3 * y**2, 2 * x**4 * y])
    np.testing.assert_allclose(derivatives(b, 4, 2)[0, 0, 1, 1], 24 * x**2)
    np.testing.assert_allclose(derivatives(b, 3, 2)[1, 1, 0], 8 * x**3)


def test_the_correction_is_that_of_stirling():
    """For a Gamma law of shape k, log p is off by Stirling's series, whose first term is 1 / 12 k: `c` takes it out."""
    k, w = 3.0, 2.0
    cumulant = [k / w**2, 2 * k / w**3, 6 * k / w**4]
    c = _correction(*(jnp.array(value).reshape((1,) * n) for n, value in zip((2, 3, 4), cumulant, strict=True)))
    assert c == pytest.approx(-1 / (12 * k), rel=1e-12)
    stirling = k * np.log(k) - k - np.log(k / (2 * np.pi)) / 2 - gammaln(k)  # exact minus uncorrected, at any point
    assert abs(stirling - float(c)) < 0.02 * abs(stirling)


def test_the_correction_counts_every_pairing():
    """Against sums over all indices of a general third and fourth derivative."""
    rng = np.random.default_rng(2)
    d = 3
    third = sum(np.transpose(t, s) for t in [rng.normal(size=(d,) * 3)] for s in permutations(range(3)))
    fourth = sum(np.transpose(t, s) for t in [rng.normal(size=(d,) * 4)] for s in permutations(range(4)))
    A = rng.normal(size=(d, d))
    H = A @ A.T + np.eye(d)
    G = np.linalg.inv(H)
    rho4 = np.einsum("ijkl,ij,kl", fourth, G, G)
    rho13 = np.einsum("ijk,lmn,ij,kl,mn", third, third, G, G, G)
    rho23 = np.einsum("ijk,lmn,il,jm,kn", third, third, G, G, G)
    assert float(_correction(*map(jnp.asarray, (H, third, fourth)))) == pytest.approx(
        (3 * rho4 - 3 * rho13 - 2 * rho23) / 24, rel=1e-10
    )


def test_the_minimum_of_a_function_with_a_small_domain():
    """-log(1 - u) - u x far out: the first full step of Newton's method would leave the domain."""

    def expansion(u):
        w = 1 - u[0]
        inside = w > 0
        return (
            jnp.where(inside, -jnp.log(jnp.where(inside, w, 1.0)) - 50 * u[0], jnp.inf),
            (1 / w - 50)[None],
            (1 / w**2)[None, None],
        )

    for start in (0.0, 5.0, -30.0):
        u, found = _minimum(expansion, jnp.array([start]))
        assert found
        assert u[0] == pytest.approx(1 - 1 / 50, rel=1e-6)


def test_a_gaussian_law_is_exact():
    x1 = np.linspace(-1.0, 2.0, 7)[:, None]
    got = density("saddlepoint", OU()).log_prob_batch(x1, 0.4, 0.7, OU.typical)
    np.testing.assert_allclose(got, density("exact", OU()).log_prob_batch(x1, 0.4, 0.7, OU.typical), rtol=1e-9)


def test_bdfs_against_its_exact_density(bdfs, transitions):
    """The paper's law, from a day to a year, three standard deviations out. The rare large errors are next to v = 0."""
    x1, x0, dt, p = transitions
    exact = np.asarray(density("exact", BDFS()).log_prob_batch(x1, x0, dt, p))
    error = np.abs(np.asarray(bdfs.log_prob_batch(x1, x0, dt, p)) - exact)
    assert np.median(error) < 1e-4
    assert np.quantile(error, 0.9) < 2e-3


@pytest.mark.parametrize("corrected", [False, True])
def test_the_error_falls_with_the_order_in_dt(corrected):
    """The law becomes Gaussian as dt falls: c, and the error without it, is of order dt, with it of order dt^2."""
    gaps, z = np.array([0.08, 0.04, 0.02]), np.array([-1.0, 0.4, 1.5])
    p, x0 = [0.1, 3.0, 0.5], 0.1
    x1 = (0.1 + 0.5 * np.sqrt(0.1 * gaps) * z[:, None])[..., None]
    got, exact = (
        np.asarray(d.log_prob_batch(x1, x0, gaps, p))
        for d in (density("saddlepoint", CIR(), corrected=corrected), density("exact", CIR()))
    )
    order = np.polyfit(np.log(gaps), np.log(np.max(np.abs(got - exact), 0)), 1)[0]
    assert order == pytest.approx(2 if corrected else 1, abs=0.25)


def test_far_tails_keep_a_relative_error():
    p = np.array(list(CIR.typical.values()))
    x1 = np.array([0.003, 0.3, 0.6, 1.0])[:, None]
    got, exact = (np.asarray(density(m, CIR()).log_prob_batch(x1, 0.1, 0.5, p)) for m in ("saddlepoint", "exact"))
    assert exact.min() < -60
    np.testing.assert_allclose(got, exact, atol=5e-3)
    assert density("saddlepoint", CIR()).log_prob(1e-5, 0.1, 0.5, p) == -np.inf  # the equations would be too stiff: no number


@pytest.mark.slow
def test_first_and_second_derivatives_are_those_of_differences():
    d, p, h = density("saddlepoint", CIR()), np.array(list(CIR.typical.values())), 1e-4

    def log(p):
        return d.log_density(jnp.array([0.15]), jnp.array([0.1]), jnp.array(0.4), p, jnp.zeros(()))

    gradient = jax.jit(jax.grad(log))
    hessian = np.asarray(jax.jit(jax.hessian(log))(jnp.asarray(p)))
    values = [float(d.log_prob(0.15, 0.1, 0.4, p + s * h * e)) for e in np.eye(3) for s in (1, -1)]
    np.testing.assert_allclose(
        gradient(jnp.asarray(p)), np.diff(np.reshape(values, (3, 2))[:, ::-1])[:, 0] / (2 * h), rtol=1e-5
    )
    columns = [(gradient(jnp.asarray(p + h * e)) - gradient(jnp.asarray(p - h * e))) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(hessian, np.array(columns), rtol=1e-4, atol=1e-4 * np.abs(hessian).max())


def test_models_that_are_not_affine_are_refused_and_not_listed():
    for sde, why in ((SVCEV(), "it is not"), (GBM(), "it is not"), (SeasonalOU(), "depends on time")):
        assert "saddlepoint" not in methods(sde)
        with pytest.raises(ValueError, match=f"{sde.label}.*affine.*{why}"):
            density("saddlepoint", sde)
    assert all("saddlepoint" in methods(sde) for sde in (OU(), CIR(), Heston(), BDFS()))
    with pytest.raises(ValueError, match="steps = 0"):
        density("saddlepoint", CIR(), steps=0)


@pytest.mark.slow
def test_heston_over_the_training_law():
    rng = np.random.default_rng(3)
    p = draw_parameters(rng, "train", 400)
    x1, x0, dt = draw_transitions(rng, p, reach=3.0)
    got, exact = (np.asarray(density(m, Heston()).log_prob_batch(x1, x0, dt, p)) for m in ("saddlepoint", "exact"))
    error = np.abs(got - exact)[np.isfinite(got)]
    assert np.mean(np.isfinite(got)) > 0.99
    assert np.median(error) < 1e-4
    assert np.quantile(error, 0.9) < 2e-3


@pytest.mark.parametrize("u", [-1.5, 0.7, 3.0])
def test_the_generating_function_of_heston_is_that_of_quantlib(u):
    ql = pytest.importorskip("QuantLib")
    alpha, beta, sigma, rho, v0, dt = 0.1, 3.0, 0.25, -0.8, 0.08, 0.5
    today = ql.Date(1, 1, 2025)
    ql.Settings.instance().evaluationDate = today
    rate = ql.YieldTermStructureHandle(ql.FlatForward(today, 0.0, ql.Actual365Fixed()))
    spot = ql.QuoteHandle(ql.SimpleQuote(1.0))
    model = ql.HestonModel(ql.HestonProcess(rate, rate, spot, v0, beta, alpha, sigma, rho))
    expected = ql.AnalyticHestonEngine(model, 1e-12, 10000).lnChF(complex(0.0, -u), dt).real
    structure = affine_structure(Heston())
    c = coefficients(Heston(), structure.reference, jnp.array([alpha, beta, sigma, 0.0, rho]))
    tilt, x0 = jnp.array([0.0, u]), jnp.array([v0, 0.0])
    got = cumulants(structure, c, tilt, x0, jnp.array(dt), degree=0, steps=16, levels=6)[(0, 0)]
    assert got == pytest.approx(expected, rel=1e-10)
