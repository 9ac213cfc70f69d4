"""All checks of one posterior, made with a small trained density and compared with the exact one."""

import numpy as np
import pytest

import fokkerflow
from fokkerflow.densities import Surrogate
from fokkerflow.inference.draws import parameter_draws
from fokkerflow.sde.models import CIR
from tests.training.trainings import small_cir


@pytest.mark.slow
def test_a_posterior_of_a_small_trained_density() -> None:
    """Three digits are enough for a hundred transitions, and what the importance weights correct to is the exact posterior."""
    trained, exact = Surrogate(small_cir()), fokkerflow.density("exact", CIR())
    series = fokkerflow.simulate(CIR(), CIR.typical, dt=0.25, n=101, seed=8)
    prior = fokkerflow.Prior(CIR(), law=trained.trained.law)
    approximate = fokkerflow.Posterior(trained, series, prior).sample(draws=1000, warmup=500, seed=1)
    guard = fokkerflow.guard_share(trained, series, approximate)
    assert guard.share == pytest.approx(0.0, abs=0.01)
    found = fokkerflow.importance(trained, exact, series, approximate, at_most=4000)
    assert found.ok
    assert found.relative_ess > 0.9
    chains = parameter_draws(CIR(), fokkerflow.Posterior(exact, series, prior).sample(draws=1000, warmup=500, seed=2))
    draws = chains.reshape(-1, 3)
    np.testing.assert_allclose((found.corrected_mean - draws.mean(0)) / draws.std(0), 0, atol=0.15)  # two chains' noise
    np.testing.assert_allclose(found.corrected_sd, draws.std(0), rtol=0.1)
    checked = fokkerflow.pit(trained, series, approximate)
    assert checked.method == "flow"
    assert checked.ok
    simulated = fokkerflow.pit(trained, series, approximate, method="simulation")
    np.testing.assert_allclose(checked.values, simulated.values, atol=4.5 * 0.5 / np.sqrt(500) + 0.01)
