"""Modified bridges against the exact law of Euler's scheme, against exact densities, and as a likelihood for MCMC."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from scipy.stats import norm

import fokkerflow as ff
from fokkerflow.densities import density
from fokkerflow.sde.models import CIR, OU, Heston, Jacobi, SeasonalOU


def augmented(sde, **options):
    return density("data-augmentation", sde, **options)


def euler_log_density(x1, x0, dt, p, steps):
    """Euler's scheme for an Ornstein-Uhlenbeck process is linear and Gaussian."""
    kappa, mean, sigma = p
    h, shrink = dt / steps, 1 - kappa * dt / steps
    variance = sigma**2 * h * np.sum(shrink ** (2 * np.arange(steps)))
    return norm.logpdf(x1, mean + (x0 - mean) * shrink**steps, np.sqrt(variance))


@pytest.mark.parametrize(
    ("options", "paths"),
    [({}, 64), ({"antithetic": False}, 64), ({"shared_noise": True}, 512)],
    ids=["pairs", "single", "chunks"],
)
def test_estimates_of_the_euler_likelihood_are_unbiased_and_know_their_error(options, paths):
    p, x1, x0, dt, steps, n = np.array(list(OU.typical.values())), 0.55, 0.2, 0.5, 6, 400
    d = augmented(OU(), steps=steps, paths=paths, **options)
    found = d.estimate(jax.random.key(1), np.full((n, 1), x1), x0, dt, p)
    ratio = np.exp(np.asarray(found.log_density) - euler_log_density(x1, x0, dt, p, steps))
    spread = np.std(ratio, ddof=1)
    assert np.mean(ratio) == pytest.approx(1, abs=4 * spread / np.sqrt(n))
    assert np.sqrt(np.mean(np.asarray(found.standard_error) ** 2)) == pytest.approx(spread, rel=0.15)
    assert np.all((found.ess > 1) & (found.ess <= paths * (1 + 1e-12)))
    many = d.log_prob_batch(np.linspace(0.3, 0.8, 50)[:, None], x0, dt, p)
    expected = euler_log_density(np.linspace(0.3, 0.8, 50), x0, dt, p, steps)
    np.testing.assert_allclose(many, expected, atol=12 * spread)


def test_one_step_is_euler():
    p, x1, x0 = np.array(list(Heston.typical.values())), [0.12, 0.03], [0.1, 0.0]
    d = augmented(Heston(), steps=1, paths=4, coordinates="plain")
    assert d.log_prob(x1, x0, 0.2, p) == pytest.approx(float(density("euler", Heston()).log_prob(x1, x0, 0.2, p)), rel=1e-12)


def test_time_enters():
    sde, p, x1, x0, dt, t0, steps = SeasonalOU(), np.array(list(SeasonalOU.typical.values())), 0.6, 0.4, 0.5, 0.3, 8
    h, mean, variance = dt / steps, x0, 0.0
    for m in range(steps):
        mean = mean + h * float(sde.drift(t0 + m * h, jnp.array([mean]), p)[0])
        variance = variance * (1 - p[0] * h) ** 2 + p[4] ** 2 * h
    found = augmented(sde, steps=steps, paths=2**14).estimate(jax.random.key(2), x1, x0, dt, p, t0)
    assert found.log_density == pytest.approx(norm.logpdf(x1, mean, np.sqrt(variance)), abs=4 * float(found.standard_error))


@pytest.mark.parametrize("coordinates", ["unbounded", "plain"])
def test_the_bias_falls_like_one_over_the_number_of_steps(coordinates):
    p, x1, x0, dt = CIR.typical, 0.15, 0.05, 0.25
    exact, errors, noise = density("exact", CIR()).log_prob(x1, x0, dt, p), [], []
    for steps in (6, 24):
        d = augmented(CIR(), steps=steps, paths=2**13, coordinates=coordinates)
        found = d.estimate(jax.random.key(3), np.full((16, 1), x1), x0, dt, p)
        errors.append(logsumexp(found.log_density) - np.log(16) - float(exact))
        noise.append(float(jnp.sqrt(jnp.mean(found.standard_error**2))) / 4)
    assert max(noise) < 0.05 * abs(errors[-1])
    assert np.log2(errors[0] / errors[1]) / 2 == pytest.approx(1, abs=0.1)


def test_heston_within_its_own_error():
    exact, p = density("exact", Heston()), np.array(list(Heston.typical.values()))
    x1 = np.array([[0.13, -0.1], [0.08, 0.1], [0.1, 0.0], [0.05, 0.25]])
    found = augmented(Heston(), steps=64, paths=1024).estimate(jax.random.key(4), x1, [0.1, 0.0], 0.25, p)
    error = found.log_density - exact.log_prob_batch(x1, [0.1, 0.0], 0.25, p)
    assert np.all(found.standard_error < 0.2)
    assert np.all(np.abs(error) < 4 * found.standard_error + 0.02)
    total, deviation = found.log_likelihood
    assert total == pytest.approx(float(jnp.sum(found.log_density)))
    assert deviation == pytest.approx(float(jnp.linalg.norm(found.standard_error)))


def test_the_likelihood_is_a_smooth_function_of_the_parameters():
    d, p = augmented(CIR(), steps=8, paths=512), np.array(list(CIR.typical.values()))
    slope = jax.jit(jax.grad(lambda p: d.log_prob(0.13, 0.1, 0.5, p)))(jnp.asarray(p))
    moves = 1e-5 * np.eye(3)
    up, down = (np.asarray(d.log_prob_batch(0.13, 0.1, 0.5, p + s * moves)) for s in (1, -1))
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-6)


def test_noise_of_its_own_for_each_transition_or_the_same_for_all():
    near, p = np.array([[0.13], [0.13 + 1e-9]]), CIR.typical
    own, shared = (augmented(CIR(), steps=8, paths=32, shared_noise=s).log_prob_batch(near, 0.1, 0.5, p) for s in (False, True))
    assert abs(own[1] - own[0]) > 1e-4
    assert abs(shared[1] - shared[0]) < 1e-6
    other = augmented(CIR(), steps=8, paths=32, seed=1).log_prob_batch(near, 0.1, 0.5, p)
    assert abs(other[0] - own[0]) > 1e-4


def test_between_two_ends_it_is_a_density():
    sde = Jacobi()
    x = np.linspace(0.001, 0.999, 400)
    logs = augmented(sde, steps=8, paths=1024).log_prob_batch(x[:, None], 0.3, 0.2, [2.0, 0.4, 0.7])
    assert trapezoid(np.exp(logs), x) == pytest.approx(1, abs=0.01)


def test_close_to_an_end_plain_paths_are_lost_and_others_are_not():
    p = [0.1, 3.0, 0.7]
    x1, x0 = np.full((8, 1), 0.004), 0.01
    plain, unbounded = (
        augmented(CIR(), steps=16, paths=256, coordinates=c).estimate(jax.random.key(5), x1, x0, 0.1, p)
        for c in ("plain", "unbounded")
    )
    exact = density("exact", CIR()).log_prob(x1[0], x0, 0.1, p)
    assert np.mean(unbounded.ess) > 3 * np.mean(plain.ess)
    assert abs(np.mean(unbounded.log_density) - exact) < 0.5 * abs(np.mean(plain.log_density) - exact)


def test_outside_the_domain_the_estimate_is_zero():
    found = augmented(CIR(), steps=4, paths=8).estimate(jax.random.key(6), np.array([[-0.1], [0.1]]), 0.1, 0.1, CIR.typical)
    assert found.log_density[0] == -np.inf
    assert np.isfinite(found.log_density[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "steps = 0"),
        ({"paths": 1.5}, "paths = 1.5"),
        ({"paths": 6}, "paths = 6.*multiple of 4"),
        ({"seed": -1}, "seed = -1"),
        ({"coordinates": "log"}, "coordinates = 'log'.*unbounded"),
    ],
)
def test_what_is_wrong_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        augmented(OU(), **options)


@pytest.mark.slow
def test_pseudo_marginal_mcmc_has_the_posterior_of_the_euler_likelihood():
    """Metropolis with a fresh estimate at each proposal and the old one kept (Andrieu and Roberts 2009), flat prior on kappa.

    Few paths, so that the estimates are noisy enough for the answer to depend on their being unbiased.
    """
    sde, steps, dt = OU(), 4, 0.25
    series = ff.simulate(sde, OU.typical, dt=dt, n=41, seed=7)
    x0, x1, _, _ = series.transitions()
    d = augmented(sde, steps=steps, paths=8, antithetic=False)
    low, high, sweeps = 0.3, 6.0, 60_000

    def estimate(key, kappa):
        p = jnp.array([0.0, 0.5, 0.3]).at[0].set(kappa)
        return jnp.sum(d.estimate(key, x1, x0, dt, p).log_density)

    def sweep(state, key):
        kappa, log = state
        k1, k2, k3 = jax.random.split(key, 3)
        new = kappa + 1.2 * jax.random.normal(k1, dtype=jnp.float64)
        inside = (new > low) & (new < high)
        proposed = jnp.where(inside, estimate(k2, jnp.where(inside, new, 1.0)), -jnp.inf)
        accept = jnp.log(jax.random.uniform(k3, dtype=jnp.float64)) < proposed - log
        state = jnp.where(accept, new, kappa), jnp.where(accept, proposed, log)
        return state, (state[0], accept)

    start = jnp.array(2.0), estimate(jax.random.key(8), 2.0)
    _, (chain, accepted) = jax.jit(lambda s: jax.lax.scan(sweep, s, jax.random.split(jax.random.key(9), sweeps)))(start)
    grid = np.linspace(low, high, 400)
    logs = np.array([np.sum(euler_log_density(x1[:, 0], x0[:, 0], dt, (k, 0.5, 0.3), steps)) for k in grid])
    weight = np.exp(logs - logs.max())
    mean = np.sum(weight * grid) / np.sum(weight)
    sd = np.sqrt(np.sum(weight * (grid - mean) ** 2) / np.sum(weight))
    batches = np.asarray(chain).reshape(60, -1).mean(1)
    error = np.std(batches, ddof=1) / np.sqrt(60)
    assert 0.1 < np.mean(accepted) < 0.7
    assert error < 0.1 * sd
    assert np.mean(chain) == pytest.approx(mean, abs=4 * error)
    assert np.std(chain) == pytest.approx(sd, rel=0.1)
