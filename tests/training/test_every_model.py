"""Both trainers, from drift, covariance and domain alone, for every model of the package: against simulated transitions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fokkerflow.sde.models import MODELS
from fokkerflow.sde.simulate import simulate_paths
from fokkerflow.training import fit
from tests.training.trainings import law_of

DT, PATHS = 0.5, 3000
QUICK: dict[str, dict[str, Any]] = {
    "gauss-newton": {"preset": "fast", "components": 6, "points": 1500, "iterations": 25},
    "neural-galerkin": {"preset": "anchored", "components": 3, "width": 6, "points": 800, "tolerance": 1e-2},
}


@pytest.mark.slow
@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("name", MODELS)
def test_simulated_transitions_look_like_draws_of_the_trained_density(name: str, method: str) -> None:
    """Their conditional distribution functions are uniform; Kolmogorov's test would see an error of three hundredths."""
    sde = MODELS[name]()
    trained = fit(sde, law_of(sde), DT, method=method, **QUICK[method])
    ends = simulate_paths(sde, sde.typical, dt=DT, n=2, substeps=400, seed=5, paths=PATHS)[:, 1]
    flow, p = trained.at(jnp.asarray(DT)), jnp.array([sde.typical[k] for k in sde.parameters])
    condition = flow.condition(0.0, DT, jnp.array(sde.start), p)
    u = np.asarray(jax.jit(jax.vmap(lambda x: flow.rosenblatt(x, condition)))(jnp.asarray(ends)))
    assert [stats.kstest(column, "uniform").pvalue > 1e-3 for column in u.T] == [True] * sde.dimension
