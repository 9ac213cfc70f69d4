"""Priors: independent distributions within constraint and law, said in words, drawn by rejection, refused where senseless."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats

from fokkerflow import CIR, GBM, OU, Heston, Law, Prior, PriorWarning, TruncatedNormal, Uniform
from fokkerflow.training.law import LogUniform, ShareOfRange

KEY = jax.random.key(0)
CIR_LAW = Law(CIR(), {"v": Uniform(0.01, 1.0)}, {"alpha": LogUniform(0.05, 0.2), "beta": TruncatedNormal(3.0, 0.5, 2.0),
                                                 "sigma": ShareOfRange(0.1, 0.9)})  # fmt: skip


def test_default_is_flat_within_the_constraint() -> None:
    prior = Prior(Heston())
    assert float(prior.log_density([0.1, 3.0, 0.25, 0.05, -0.8])) == float(prior.log_density([0.2, 1.0, 0.1, -7.0, 0.3])) == 0
    assert float(prior.log_density([0.1, 3.0, 0.8, 0.05, -0.8])) == -np.inf  # beyond Feller
    assert not prior.proper
    assert "rho flat" in prior.words
    assert "0 < sigma < sqrt(2*alpha*beta)" in prior.words


def test_the_default_of_a_law_is_where_the_law_is() -> None:
    prior = Prior(CIR(), law=CIR_LAW)
    for p, inside in (
        ([0.1, 3.0, 0.3], True),
        ([0.04, 3.0, 0.3], False),
        ([0.1, 4.6, 0.3], False),  # three standard deviations are 1.5
        ([0.1, 1.9, 0.3], False),  # cut off there
        ([0.1, 3.0, 0.05], False),  # 6 % of the limit
        ([0.1, 3.0, 0.72], False),
    ):
        assert bool(np.isfinite(prior.log_density(p))) is inside, p
    assert prior.proper
    assert "sigma flat between 0.1 and 0.9 of its range" in prior.words
    assert "restricted to the law" in prior.words


def test_log_density_is_that_of_the_distributions() -> None:
    prior = Prior(OU(), {"kappa": dist.Gamma(3.0, 2.0), "mean": dist.Normal(0.5, 2.0), "sigma": dist.LogNormal(-1.0, 0.5)})
    p = [1.3, 0.7, 0.2]
    expected = (
        stats.gamma.logpdf(1.3, 3, scale=1 / 2) + stats.norm.logpdf(0.7, 0.5, 2) + stats.lognorm.logpdf(0.2, 0.5, 0, np.exp(-1))
    )
    assert float(prior.log_density(p)) == pytest.approx(expected, rel=1e-7)
    with jax.enable_x64(False):
        assert float(Prior(OU(), prior.given).log_density(p)) == pytest.approx(expected, rel=1e-7)


def test_in_unconstrained_coordinates_it_integrates_to_one() -> None:
    prior = Prior(GBM(), {"mu": dist.Normal(0.1, 0.5), "sigma": dist.HalfNormal(0.3)})

    def density(u: jax.Array) -> jax.Array:
        p, log_jacobian = prior.transform.parameters(u)
        return jnp.exp(prior.density.log_density(p) + log_jacobian)

    mu, log_sigma = np.linspace(-4, 4, 161), np.linspace(-14, 2, 321)
    u = jnp.asarray(np.stack(np.meshgrid(mu, log_sigma, indexing="ij"), -1))
    values = np.asarray(jax.jit(jax.vmap(jax.vmap(density)))(u))
    assert integrate.trapezoid(integrate.trapezoid(values, log_sigma), mu) == pytest.approx(1.0, abs=1e-5)


def test_draws_follow_the_distributions_and_satisfy_the_constraint() -> None:
    prior = Prior(CIR(), {"alpha": dist.Uniform(0.05, 0.2), "beta": dist.Gamma(9.0, 3.0)}, law=None).restricted(
        Law(
            CIR(), {"v": Uniform(0.01, 1)}, {"alpha": Uniform(0.05, 0.2), "beta": Uniform(0.01, 15), "sigma": Uniform(0.0, 1.0)}
        )
    )
    draws = prior.sample(KEY, 4000)
    alpha, beta, sigma = draws.T
    assert np.all(sigma < np.sqrt(2 * alpha * beta))
    limit = np.minimum(np.sqrt(2 * alpha * beta), 1.0)
    assert stats.kstest(sigma / limit, "uniform").pvalue > 1e-3  # flat given the others
    # The marginal of beta is its distribution times the room that it leaves for sigma.
    grid = np.linspace(0.01, 15, 4000)
    room = np.mean(np.minimum(np.sqrt(2 * np.linspace(0.05, 0.2, 201)[:, None] * grid), 1.0), 0)
    density = stats.gamma.pdf(grid, 9, scale=1 / 3) * room
    cdf = integrate.cumulative_trapezoid(density, grid, initial=0)
    assert stats.kstest(beta, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-3


def test_a_share_of_the_range_can_be_drawn_from() -> None:
    draws = Prior(CIR(), law=CIR_LAW).sample(KEY, 2000)
    share = draws[:, 2] / np.sqrt(2 * draws[:, 0] * draws[:, 1])
    assert stats.kstest(share, stats.uniform(0.1, 0.8).cdf).pvalue > 1e-3


def test_a_prior_cut_by_the_law_says_so() -> None:
    with pytest.warns(PriorWarning, match=r"prior of alpha is cut to the training law, alpha from 0.05 to 0.2"):
        Prior(CIR(), {"alpha": dist.HalfNormal(0.1)}, law=CIR_LAW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Prior(CIR(), {"alpha": dist.Uniform(0.06, 0.15)}, law=CIR_LAW)


def test_what_the_law_does_not_matter_for_is_not_cut() -> None:
    """A trend only shifts the density: the law of it is a default, and no limit to a distribution of the user's."""
    law = Law(
        Heston(),
        {"v": Uniform(0.01, 0.3), "y": Uniform(-1, 1)},
        {name: Uniform(*sorted((0.5 * value, 1.5 * value))) for name, value in {**Heston.typical, "rho": -0.5}.items()},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = Prior(Heston(), {"mu": dist.Normal(0.0, 1.0)}).restricted(law, ("v", "alpha", "beta", "sigma", "rho"))
    far = [0.1, 3.0, 0.25, 2.0, -0.5]
    assert np.isfinite(wide.log_density(far))
    assert not np.isfinite(Prior(Heston(), law=law).log_density(far))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"alpha": dist.Uniform(0.3, 0.5)}, ValueError, "prior of alpha lies outside the law .*alpha from 0.05 to 0.2"),
        ({"alpha": dist.Normal(5.0, 0.1)}, ValueError, "keeps 0.00% of the prior of alpha"),
        ({"gamma": dist.Normal(0, 1)}, ValueError, "got a prior of 'gamma', expected some of alpha, beta, sigma"),
        ({"alpha": 0.1}, TypeError, "prior of alpha: got 0.1, expected a NumPyro distribution"),
        ({"alpha": dist.Poisson(3.0)}, TypeError, "Poisson, which is discrete"),
        ({"alpha": dist.Normal(np.zeros(2), 1.0)}, TypeError, r"Normal of shape \(2,\)"),
    ],
)
def test_senseless_priors_are_refused(given: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Prior(CIR(), given, law=CIR_LAW)


def test_an_improper_prior_has_no_draws() -> None:
    with pytest.raises(ValueError, match=r"prior of 'mu' is flat and unbounded.*Give it a distribution"):
        Prior(GBM()).sample(KEY, 10)
    with pytest.raises(ValueError, match="a law of CIR for a prior of OU"):
        Prior(OU(), law=CIR_LAW)
