"""Several assets, one population: an SDE inside a NumPyro model.

    python examples/hierarchical_numpyro.py

Each asset's price is a geometric Brownian motion with its own drift; the drifts come from a population whose mean and spread
are inferred too. A drift is hard to see in one short series, so the assets borrow strength from each other: their estimates
move towards the population's mean. The transition density is the exact one; any density of `fokkerflow.density` or
`fokkerflow.load` can take its place.
"""

from __future__ import annotations

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import fokkerflow as ff

ASSETS, OBSERVATIONS, DT = 8, 105, 1 / 52
EXACT = ff.density("exact", ff.GBM())


def simulated(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Drifts, and prices of shape (assets, observations, 1): two years of weeks."""
    drifts = 0.1 + 0.15 * np.random.default_rng(seed).normal(size=ASSETS)
    paths = [ff.simulate(ff.GBM(), [mu, 0.2], dt=DT, n=OBSERVATIONS, substeps=20, seed=seed + i) for i, mu in enumerate(drifts)]
    return drifts, np.stack([path.states for path in paths])


def model(prices: np.ndarray) -> None:
    centre = numpyro.sample("centre", dist.Normal(0.0, 0.5))
    spread = numpyro.sample("spread", dist.HalfNormal(0.3))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1.5, 0.5))
    with numpyro.plate("asset", prices.shape[0], dim=-2):
        offset = numpyro.sample("offset", dist.Normal(0.0, 1.0))
        mu = numpyro.deterministic("mu", centre + spread * offset)
        law = ff.Transition(EXACT, prices[:, :-1], DT, {"mu": mu, "sigma": sigma})
        with numpyro.plate("step", prices.shape[1] - 1, dim=-1):
            numpyro.sample("price", law, obs=prices[:, 1:])


def main(warmup: int = 500, draws: int = 500, seed: int = 0) -> dict[str, np.ndarray]:
    """True drifts, those of the posterior (mean), and the maximum likelihood estimates, asset by asset."""
    drifts, prices = simulated()
    mcmc = MCMC(NUTS(model), num_warmup=warmup, num_samples=draws, progress_bar=False)
    mcmc.run(jax.random.key(seed), prices)
    posterior = {name: np.asarray(values) for name, values in mcmc.get_samples().items()}
    increments = np.diff(np.log(prices[..., 0]), axis=1)
    alone = increments.mean(1) / DT + increments.var(1) / DT / 2
    return {"true": drifts, "alone": alone, "together": posterior["mu"][..., 0].mean(0), "sigma": posterior["sigma"]}


if __name__ == "__main__":
    found = main()
    print(f"{'asset':>5} {'true':>7} {'alone':>7} {'together':>9}")
    for i, row in enumerate(zip(found["true"], found["alone"], found["together"], strict=True)):
        print(f"{i:5d} {row[0]:7.3f} {row[1]:7.3f} {row[2]:9.3f}")
    for name in ("alone", "together"):
        print(f"root mean square error {name}: {np.sqrt(np.mean((found[name] - found['true']) ** 2)):.3f}")
