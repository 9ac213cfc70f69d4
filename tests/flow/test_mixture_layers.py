"""The truncated-Gaussian layer and its inverse against high precision, and the reference laws against scipy."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats

from fokkerflow.flow.gaussian_mass import log_mills, log_ndtr, log_ndtri, log_partial_mills
from fokkerflow.flow.interval import SYMMETRIC, Ends, Point, UnitPoint, from_line, unit_to_symmetric
from fokkerflow.flow.quantile import component_quantiles, mixture_point, reference_point
from fokkerflow.flow.reference import SymmetricBeta, TruncatedGamma, Uniform
from fokkerflow.flow.truncated_mixture import Mixture, log_peak, mixture_cdf, mixture_layer, mixture_log_density


def exact_mass(a, b):
    if a > 0:
        return (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) / 2
    if b < 0:
        return exact_mass(-b, -a)
    return 1 - (mp.erfc(-a / mp.sqrt(2)) + mp.erfc(b / mp.sqrt(2))) / 2


def exact_layer(mean, width, side, log_distance):
    """log F, log(1 - F), log F' and the derivative of log F' at a distance from one end of [-1, 1], with mpmath."""
    m, s, d = mp.mpf(mean), mp.mpf(width), mp.exp(mp.mpf(log_distance))
    x = -1 + d if side == "lower" else 1 - d
    a, b, z = (-1 - m) / s, (1 - m) / s, (x - m) / s
    total = exact_mass(a, b)
    log_density = -z * z / 2 - mp.log(s * mp.sqrt(2 * mp.pi) * total)
    return [mp.log(exact_mass(a, z) / total), mp.log(exact_mass(z, b) / total), log_density]


@jax.jit
def layer(mean, width, log_below, log_above):
    mixture = Mixture(jnp.zeros(1), mean[None], jnp.log(width)[None])
    u = UnitPoint(log_below - jnp.log(2.0), log_above - jnp.log(2.0))
    log_density, value = mixture_layer(mixture, unit_to_symmetric(u), SYMMETRIC)
    return jnp.array([value.log_below, value.log_above, log_density])


def ends_of(side, log_distance):
    far = np.log(2 - np.exp(log_distance))
    return (log_distance, far) if side == "lower" else (far, log_distance)


@pytest.mark.parametrize("width", [1e-4, 1e-2, 0.3, 10.0])
@pytest.mark.parametrize("mean", [0.0, -0.7, 1.0, -1.0, 1.3])
def test_layer_against_mpmath(width, mean):
    """Relative to 1 + |log|, 1e-12, also at 1 - 1e-12 and at distances that underflow next to it."""
    for side in ("lower", "upper"):
        for log_distance in (np.log(0.9), np.log(0.03), np.log(1e-12), -80.0):
            with mp.workdps(120):
                expected = [float(v) for v in exact_layer(mean, width, side, log_distance)]
            got = layer(jnp.array(mean), jnp.array(width), *map(jnp.array, ends_of(side, log_distance)))
            assert np.allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_partial_mills_and_its_derivatives_against_mpmath():
    def exact(c, log_d):
        d = mp.exp(log_d)
        return mp.log(mp.sqrt(mp.pi / 2) * mp.exp(c * c / 2) * (mp.erfc(c / mp.sqrt(2)) - mp.erfc((c + d) / mp.sqrt(2))))

    function = jax.jit(lambda c, g: (log_partial_mills(c, g), *jax.grad(log_partial_mills, (0, 1))(c, g)))
    second = jax.jit(jax.hessian(lambda v: log_partial_mills(v[0], v[1])))
    with mp.workdps(120):
        for c in (1e-3, 0.4, 3.0, 9.99, 10.01, 25.0):
            for log_d in (-18.0, -1.0, 0.1, 2.0):
                expected = [exact(mp.mpf(c), mp.mpf(log_d))]
                expected += [mp.diff(exact, (c, log_d), n) for n in ((1, 0), (0, 1))]
                got = function(jnp.array(c), jnp.array(log_d))
                assert np.allclose([float(g) for g in got], [float(e) for e in expected], rtol=1e-11, atol=1e-12)
                hessian = [[float(mp.diff(exact, (c, log_d), n)) for n in row] for row in (((2, 0), (1, 1)), ((1, 1), (0, 2)))]
                assert np.allclose(second(jnp.array([c, log_d])), hessian, rtol=1e-8, atol=1e-9)


def test_tails_against_mpmath():
    x = np.array([-1e4, -300.0, -38.0, -12.0, -9.9, -1.0, 0.0, 2.0, 6.0])
    with mp.workdps(60):
        expected = [float(mp.log(mp.erfc(-mp.mpf(v) / mp.sqrt(2)) / 2)) for v in x]
    assert np.allclose(log_ndtr(jnp.array(x)), expected, rtol=1e-13, atol=1e-15)
    inverse = log_ndtri(jnp.array(expected)[:-2])
    assert np.allclose(inverse, x[:-2], rtol=1e-11, atol=1e-13)
    # 1/R(c) = c + 1/c - 2/c^3 + 10/c^5 - ...
    slope = jax.grad(log_mills)(jnp.array(1e3))
    assert np.isclose(slope, -1e-3 + 2e-9, rtol=1e-8)


def random_mixture(ends, uniform=True):
    weights = np.log([0.2, 0.5, 0.2, 0.1]) if uniform else np.log([0.25, 0.55, 0.2])
    return Mixture(
        jnp.array(weights[:3]),
        jnp.array([-0.8, 0.1, 1.2]),
        jnp.log(jnp.array([0.02, 0.3, 0.4])),
        jnp.array(weights[3]) if uniform else None,
    )


INTERVALS = {
    "line": Ends(None, None),
    "half": Ends(jnp.array(-1.0), None),
    "upper-half": Ends(None, jnp.array(1.0)),
    "interval": SYMMETRIC,
}


@pytest.mark.parametrize("kind", INTERVALS)
def test_mixture_density_cdf_peak_and_inverse_are_consistent(kind):
    ends = INTERVALS[kind]
    mixture = random_mixture(ends, uniform=kind == "interval")
    lo, hi = (-1.0 if ends.lower is not None else -9.0), (1.0 if ends.upper is not None else 9.0)

    def point(x):
        below = None if ends.lower is None else jnp.log(x - lo)
        return Point(x, below, None if ends.upper is None else jnp.log(hi - x))

    density = jax.jit(lambda x: jnp.exp(mixture_log_density(mixture, point(x), ends)))
    total = integrate.quad(density, lo, hi, points=[-0.9, -0.8, -0.7, 0.1], limit=200, epsabs=1e-11)[0]
    assert abs(total - 1) < 1e-8
    xs = jnp.linspace(max(lo, -1.4) + 1e-6, min(hi, 2.5) - 1e-6, 101)
    assert jnp.max(jax.vmap(density)(xs)) <= jnp.exp(log_peak(mixture, ends)) * (1 + 1e-12)
    u = jax.jit(jax.vmap(lambda x: mixture_cdf(mixture, point(x), ends)))(xs)
    assert np.allclose(jnp.exp(u.log_below) + jnp.exp(u.log_above), 1.0, atol=1e-13)
    slope = jax.jit(jax.vmap(jax.grad(lambda x: jnp.exp(mixture_cdf(mixture, point(x), ends).log_below))))(xs)
    assert np.allclose(slope, jax.vmap(density)(xs), rtol=1e-9, atol=1e-13)
    again = jax.jit(jax.vmap(lambda u: mixture_point(mixture, u, ends).value))(u)
    assert np.allclose(again, xs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", INTERVALS)
def test_component_quantiles_invert_the_truncated_gaussian(kind):
    ends = INTERVALS[kind]
    mixture = random_mixture(ends, uniform=False)
    for log_u in (-40.0, -3.0, np.log(0.5), -1e-3):
        u = UnitPoint(jnp.array(log_u), jnp.log(-jnp.expm1(log_u)))
        t = component_quantiles(mixture, u, ends)
        for k in range(3):
            single = Mixture(jnp.zeros(1), mixture.means[k : k + 1], mixture.log_widths[k : k + 1])
            value = mixture_cdf(single, from_line(t[k], ends), ends)
            assert np.isclose(value.log_below - value.log_above, u.log_below - u.log_above, rtol=1e-5, atol=1e-4)


def test_inverse_is_differentiable():
    def draw(mean, log_u):
        mixture = random_mixture(SYMMETRIC)._replace(means=mean)
        return mixture_point(mixture, UnitPoint(log_u, jnp.log(-jnp.expm1(log_u))), SYMMETRIC).value

    mean, log_u, h = jnp.array([-0.8, 0.1, 1.2]), jnp.log(0.4), 1e-5
    by_mean, by_u = jax.jit(jax.grad(draw, (0, 1)))(mean, log_u)
    draw = jax.jit(draw)
    numeric = [(draw(mean + h * e, log_u) - draw(mean - h * e, log_u)) / (2 * h) for e in jnp.eye(3)]
    assert np.allclose(by_mean, numeric, rtol=1e-7, atol=1e-9)
    assert np.isclose(by_u, (draw(mean, log_u + h) - draw(mean, log_u - h)) / (2 * h), rtol=1e-7)


REFERENCES = [Uniform(), TruncatedGamma(), TruncatedGamma(shape=3.5, scale=0.1), SymmetricBeta(), SymmetricBeta(shape=1.2)]


def scipy_law(reference):
    """Density and distribution function on [0, 1] from scipy."""
    if isinstance(reference, TruncatedGamma):
        law = stats.gamma(reference.shape, scale=reference.scale)
        return lambda u: law.pdf(u) / law.cdf(1), lambda u: law.cdf(u) / law.cdf(1)
    law = stats.beta(reference.shape, reference.shape) if isinstance(reference, SymmetricBeta) else stats.uniform()
    return law.pdf, law.cdf


@pytest.mark.parametrize("reference", REFERENCES, ids=repr)
def test_reference_against_scipy(reference):
    u = np.array([1e-9, 1e-3, 0.2, 0.5, 0.93, 0.96, 1 - 1e-6])
    points = UnitPoint(jnp.log(u), jnp.log1p(-u))
    pdf, cdf = scipy_law(reference)
    assert np.allclose(jax.vmap(lambda p: jnp.exp(reference.log_density(p, None)))(points), pdf(u), rtol=1e-11)
    value = jax.vmap(lambda p: reference.cdf(p, None))(points)
    assert np.allclose(np.exp(value.log_below), cdf(u), rtol=1e-11)
    tail = [integrate.quad(pdf, v, 1, epsabs=0, epsrel=1e-11)[0] for v in u]
    assert np.allclose(np.exp(value.log_above), tail, rtol=1e-9)
    grid = np.linspace(1e-6, 1 - 1e-6, 2001)
    assert np.log(pdf(grid).max()) <= reference.log_peak(None) + 1e-9
    assert np.log(pdf(grid).max()) >= reference.log_peak(None) - 1e-4
    again = jax.vmap(lambda p: reference_point(reference, None, p))(value)
    assert np.allclose(again.log_below - again.log_above, points.log_below - points.log_above, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", [TruncatedGamma, SymmetricBeta])
def test_trained_shape(kind):
    """The density stays normalised as the shape moves, its derivative is right, and it stays above 1."""
    reference = kind(trainable=True)
    weight = reference.initial_weight()
    u = UnitPoint(jnp.log(0.3), jnp.log(0.7))
    assert np.isclose(reference.log_density(u, weight), kind().log_density(u, None), rtol=1e-13)
    for w in (-2.0, 0.7):
        s, c = jnp.linspace(-4.5, 4.5, 400), jnp.pi / 2  # tanh-sinh: the powers at the ends do not matter
        logit = 2 * c * jnp.sinh(s)
        u_s = UnitPoint(jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit))
        log_q = jax.vmap(lambda u, w=w: reference.log_density(u, jnp.array(w)))(u_s)
        total = jnp.sum(jnp.exp(log_q + u_s.log_below + u_s.log_above) * 2 * c * jnp.cosh(s)) * (s[1] - s[0])
        assert abs(total - 1) < 1e-8
        for function in (reference.log_density, lambda u, w: reference.cdf(u, w).log_below):
            compiled = jax.jit(jax.value_and_grad(function, 1))
            numeric = (compiled(u, w + 1e-5)[0] - compiled(u, w - 1e-5)[0]) / 2e-5
            assert np.isclose(compiled(u, w)[1], numeric, rtol=1e-7)
    assert reference.log_density(UnitPoint(jnp.array(-1e4), jnp.array(0.0)), jnp.array(-5.0)) < -50


def test_references_refuse_what_cannot_vanish():
    with pytest.raises(ValueError, match="shape > 1 to vanish at the boundary, got shape=1"):
        TruncatedGamma(shape=1.0)
    with pytest.raises(ValueError, match=r"scale >= 0\.1, got scale=0\.01"):
        TruncatedGamma(scale=0.01)
