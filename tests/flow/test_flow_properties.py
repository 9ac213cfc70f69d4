"""Properties of a transition density that every configuration of the flow must have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from configurations import ANCHORED, CONFIGURATIONS, case
from scipy import stats

from fokkerflow.flow.chart import Affine
from fokkerflow.flow.flow import weights
from fokkerflow.flow.rejection import sample_by_rejection

every = pytest.mark.parametrize("name", CONFIGURATIONS)
# Derivatives are dear to compile; these have the layers and conditioners of another, and test_charts differentiates the charts.
ALIKE = {"anchored-heston": "anchored-bdfs", "anchored-jacobi-logit": "anchored-cir-log-gru"}
every_kind = pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ALIKE)) for n in CONFIGURATIONS])


def rule(chart, domain, mean, sd):
    """Nodes and weights for one state: Gauss on a box, else the trapezoidal rule in a variable on the whole line."""
    if isinstance(chart, Affine):
        nodes, w = np.polynomial.legendre.leggauss(260)
        half = 0.5 * (chart.upper - chart.lower)
        return chart.lower + half * (nodes + 1), half * w
    if domain.is_line:
        t = np.linspace(-3.4, 3.4, 90)
        return mean + 2 * sd * np.sinh(t), 2 * sd * np.cosh(t) * (t[1] - t[0])
    if domain.is_half_line:
        t = np.linspace(-5.2, 2.1, 140)
        x = np.exp(np.sinh(t)) * mean
        return domain.lower + x, x * np.cosh(t) * (t[1] - t[0])
    t = np.linspace(-45.0, 45.0, 900)
    x = 1 / (1 + np.exp(-t))
    return x, x * (1 - x) * (t[1] - t[0])


def product_rule(c):
    """The product of the rules, with those of real coordinates moved along with the regression on the earlier coordinates."""
    draws, nodes, w = np.asarray(c.draws), np.zeros((1, 0)), np.ones(1)
    for i, (coordinate, domain) in enumerate(zip(c.flow.config.coordinates, c.flow.sde.domains, strict=True)):
        moves = domain.is_line and not isinstance(coordinate.chart, Affine)
        earlier = draws[:, :i] * moves - draws[:, :i].mean(0) * moves
        slopes = np.linalg.lstsq(earlier, draws[:, i] - draws[:, i].mean(), rcond=None)[0]
        sd = np.std(draws[:, i] - earlier @ slopes)
        own, own_w = rule(coordinate.chart, domain, draws[:, i].mean(), sd)
        shift = (nodes - draws[:, :i].mean(0)) @ slopes * moves
        last = shift[:, None] + own
        nodes = np.concatenate([np.repeat(nodes, own.size, 0), last.reshape(-1, 1)], 1)
        w = np.outer(w, own_w).ravel()
    return nodes, w


@every
def test_integrates_to_one(name):
    c = case(name)
    nodes, w = product_rule(c)
    total = sum(
        float(np.exp(c.log_density(part)) @ part_w)
        for part, part_w in zip(np.array_split(nodes, 24), np.array_split(w, 24), strict=True)
    )
    assert abs(total - 1) < 1e-8


@every
def test_density_is_the_determinant_of_the_transport(name):
    c = case(name)
    x = c.draws[:50]
    jacobian = jax.jit(jax.vmap(jax.jacfwd(lambda x: c.flow.rosenblatt(x, c.condition))))(x)
    assert np.allclose(np.linalg.slogdet(jacobian)[1], c.log_density(x), rtol=0, atol=1e-8)
    assert np.allclose(jacobian, np.tril(jacobian), atol=1e-12)


@every
def test_exact_inverse_undoes_the_transport(name):
    c = case(name)
    again = c.exact(c.rosenblatt(c.draws))
    assert np.max(np.abs(again - c.draws) / c.draws.std(0)) < 1e-10


@every
def test_exact_draws_pass_kolmogorov_smirnov(name):
    """Against the distribution function, and in the other direction: the base points come back."""
    c = case(name)
    u = np.asarray(c.rosenblatt(c.draws))
    base = np.asarray(jax.random.uniform(jax.random.key(7), u.shape))
    assert np.max(np.abs(u - base)) < 1e-10
    assert min(stats.kstest(column, "uniform").pvalue for column in u.T) > 1e-4


@every
def test_rejection_draws_pass_kolmogorov_smirnov(name):
    """Proposal and verification use densities only, so this checks distribution functions against densities."""
    c = case(name)
    draws = sample_by_rejection(jax.random.key(11), c.flow, c.condition, 2000)
    u = np.asarray(c.rosenblatt(draws.x))
    assert min(stats.kstest(column, "uniform").pvalue for column in u.T) > 1e-4
    assert np.all((draws.acceptance_rates > 0.01) & (draws.acceptance_rates <= 1))


@every
def test_zero_at_and_beyond_the_boundary(name):
    """The log density falls without bound towards every inaccessible boundary, and is -inf on it and outside."""
    c = case(name)
    for i, domain in enumerate(c.flow.sde.domains):
        for end, inward in ((domain.lower, 1.0), (domain.upper, -1.0)):
            if not np.isfinite(end):
                continue
            distances = np.array([1e-4, 1e-6, 1e-8]) if end else np.array([1e-4, 1e-8, 1e-12])
            x = np.tile(np.asarray(c.x0), (5, 1))
            x[:, i] = [*(end + inward * distances), end, end - inward]
            log_q = np.asarray(c.log_density(x))
            assert np.all(np.diff(log_q[:3]) < -0.5)
            assert np.all(log_q[3:] == -np.inf)


def _probes(c):
    """Draws, a state far out in every real coordinate and one close to the boundary of every bounded one."""
    x = np.array(c.draws[:6])
    x[4] = x[4] + np.array([30 * s if d.is_line else 0.0 for d, s in zip(c.flow.sde.domains, c.draws.std(0), strict=True)])
    x[4] = [
        min(v, k.chart.upper - 1e-3) if isinstance(k.chart, Affine) else v
        for v, k in zip(x[4], c.flow.config.coordinates, strict=True)
    ]
    x[5] = [1e-4 if not d.is_line else v for d, v in zip(c.flow.sde.domains, x[5], strict=True)]
    return jnp.asarray(x)


@every_kind
def test_derivatives_agree_with_differences(name):
    """With respect to x, x0, parameters, weights and tau along random directions, close to the boundary and far out too."""
    c = case(name)
    theta, with_weights = weights(c.flow)

    def log_q(x, x0, p, theta, log_tau):
        flow = with_weights(theta)
        return flow.log_density(x, flow.condition(0.2, jnp.exp(log_tau), x0, p))

    x = _probes(c)
    rest = (c.x0, c.p, theta, jnp.log(0.3))
    sizes = (0.02, 0.02 * c.p, 0.1, 0.1)
    keys = jax.random.split(jax.random.key(2), 4)
    steps = [s * jax.random.normal(k, jnp.shape(v)) for k, v, s in zip(keys, rest, sizes, strict=True)]
    x_step = 0.1 * jnp.minimum(c.draws.std(0), jnp.abs(x))

    @jax.jit
    @jax.vmap
    def along(x, x_step):
        def line(t):
            return log_q(*(v + t_k * d for v, t_k, d in zip((x, *rest), t, (x_step, *steps), strict=True)))

        h = 1e-3
        slope = jax.jacfwd(line)(jnp.zeros(5))
        values = jax.lax.map(line, jnp.concatenate([k * h * jnp.eye(5) for k in (1.0, -1.0, 2.0, -2.0)]))
        up, down, up2, down2 = values.reshape(4, 5)
        return slope, (8 * (up - down) - (up2 - down2)) / (12 * h), line(jnp.zeros(5))

    slope, difference, value = along(x, x_step)
    assert np.all(np.isfinite(slope))
    assert np.allclose(slope, difference, rtol=1e-6, atol=1e-9 * (1 + np.max(np.abs(value))))


@every_kind
def test_second_derivatives_and_reverse_mode_are_finite_and_agree(name):
    c = case(name)
    x = _probes(c)

    def value_and_gradient(x):
        value, gradient = jax.value_and_grad(c.flow.log_density)(x, c.condition)
        return (value, gradient), gradient

    (ahead, hessian), reverse = jax.jit(jax.vmap(jax.jacfwd(value_and_gradient, has_aux=True)))(x)
    assert np.allclose(reverse, ahead, rtol=1e-9, atol=1e-9)
    assert np.all(np.isfinite(hessian))
    assert np.allclose(hessian, np.swapaxes(hessian, 1, 2), rtol=1e-6, atol=1e-6 * np.max(np.abs(hessian)))


@pytest.mark.parametrize("name", [n for n in ANCHORED if "gamma" not in n])
def test_start_is_the_gaussian_of_the_moments(name):
    """As tau -> 0, whatever the weights: standardised draws have the moments of N(0, R), and the density is its density."""
    c = case(name)
    tau = 1e-9
    condition = c.flow.condition(0.2, tau, c.x0, c.p)
    drift, noise = c.flow.sde.drift(0.2, c.x0, c.p), c.flow.sde.covariance(0.2, c.x0, c.p)
    mean, cov = np.asarray(c.x0 + tau * drift), np.asarray(tau * noise)
    z = np.random.default_rng(0).normal(size=(200, len(mean)))
    x = mean + z @ np.linalg.cholesky(cov).T
    got = jax.jit(jax.vmap(lambda x: c.flow.log_density(x, condition)))(jnp.asarray(x))
    expected = -0.5 * np.sum(z**2, 1) - 0.5 * np.linalg.slogdet(2 * np.pi * cov / tau)[1] - 0.5 * len(mean) * np.log(tau)
    # The Gauss-Hermite mixture of three to six Gaussians is N(0, 1) up to some hundredths.
    assert np.sqrt(np.mean((got - expected) ** 2)) < 0.025 * np.sqrt(len(mean))
