"""The Bessel factor and the density of the square-root process, against mpmath and scipy."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy.stats import ncx2

from fokkerflow.densities import density
from fokkerflow.densities.special import SHIFT, bessel_factor
from fokkerflow.sde.models import CIR

from .differences import partial_derivative

CIR_EXACT = density("exact", CIR())


def bessel_factor_mp(order, z):
    with mp.workdps(40):
        z, m = mp.mpmathify(z), mp.mpf(order) + SHIFT
        root = mp.sqrt(m**2 + z**2)
        return (
            mp.hyp0f1(mp.mpf(order) + 1, z**2 / 4)
            / mp.gamma(mp.mpf(order) + 1)
            * (mp.exp(-root) * ((m + root) / 2) ** order * mp.sqrt(2 * mp.pi * root))
        )


@pytest.mark.parametrize(("angle", "tolerance"), [(0.0, 3e-13), (0.5, 1e-12), (0.9, 5e-11)])
def test_bessel_factor_for_small_and_large_orders_and_arguments(angle, tolerance):
    orders = np.array([0.0, 0.3, 2.0, 8.0, 40.0, 700.0])
    z = np.outer(np.logspace(-2, 3, 11), np.exp(1j * angle) if angle else 1.0).ravel()
    root = np.sqrt((orders[:, None] + SHIFT) ** 2 + z**2)
    got = jax.vmap(bessel_factor)(jnp.asarray(orders), jnp.asarray(root))
    expected = np.array([[complex(bessel_factor_mp(n, complex(x) if angle else x)) for x in z] for n in orders])
    np.testing.assert_allclose(np.asarray(got), expected if angle else expected.real, rtol=tolerance)


def test_bessel_factor_has_the_derivatives_of_what_it_computes():
    def reference(order, root):
        return mp.re(bessel_factor_mp(order, mp.sqrt(root**2 - (order + SHIFT) ** 2)))

    got = jax.grad(bessel_factor, argnums=(0, 1))(jnp.array(1.5), jnp.array(50.0))
    expected = [partial_derivative(reference, (1.5, 50.0), i) for i in range(2)]
    np.testing.assert_allclose(got, expected, rtol=1e-9)


# v1, v0, dt, alpha, beta, sigma
POINTS = [
    (0.12, 0.1, 0.5, 0.1, 3.0, 0.25),
    (0.103, 0.1, 1 / 365, 0.1, 3.0, 0.25),
    (0.2, 0.1, 1 / 365, 0.1, 3.0, 0.25),
    (1e-6, 0.1, 1.0, 0.1, 3.0, 0.7745),
    (1e-30, 0.1, 1.0, 0.1, 3.0, 0.7),
    (0.01, 1e-4, 0.02, 0.1, 3.0, 0.5),
    (0.1001, 0.1, 0.1, 0.1, 3.0, 0.02),
    (2.0, 0.1, 0.5, 0.1, 3.0, 0.25),
]


def cir_mp(v1, v0, dt, alpha, beta, sigma):
    with mp.workdps(60):
        v1, v0, dt, alpha, beta, sigma = map(mp.mpf, (v1, v0, dt, alpha, beta, sigma))
        c = 2 * beta / (sigma**2 * -mp.expm1(-beta * dt))
        nu, u, w = 2 * alpha * beta / sigma**2 - 1, c * v0 * mp.exp(-beta * dt), c * v1
        return mp.log(c) - u - w + nu * mp.log(w) + mp.log(mp.hyp0f1(nu + 1, u * w, maxterms=10**7)) - mp.loggamma(nu + 1)


def test_cir_agrees_with_high_precision():
    v1, v0, dt, *p = np.array(POINTS).T
    got = CIR_EXACT.log_prob_batch(v1[:, None], v0[:, None], dt, np.stack(p, -1))
    expected = [float(cir_mp(*point)) for point in POINTS]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_cir_agrees_with_scipy():
    alpha, beta, sigma = CIR.typical.values()
    v1, v0, dt = np.linspace(0.02, 0.4, 15), 0.15, 0.3
    c = 2 * beta / (sigma**2 * -np.expm1(-beta * dt))
    expected = ncx2.logpdf(2 * c * v1, 4 * alpha * beta / sigma**2, 2 * c * v0 * np.exp(-beta * dt)) + np.log(2 * c)
    np.testing.assert_allclose(CIR_EXACT.log_prob_batch(v1[:, None], v0, dt, CIR.typical), expected, rtol=1e-10)


def test_cir_gradient_agrees_with_high_precision():
    gradient = jax.jit(jax.grad(lambda z: CIR_EXACT.log_density(z[:1], z[1:2], z[2], z[3:], jnp.zeros(()))))
    for point in (POINTS[0], POINTS[1], POINTS[5]):
        expected = [partial_derivative(cir_mp, point, i) for i in range(6)]
        np.testing.assert_allclose(gradient(jnp.array(point)), expected, rtol=1e-9, atol=1e-9)
