"""The density as a NumPyro distribution: log probabilities, shapes, gradients, precision, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

import fokkerflow
from fokkerflow import CIR, GBM, Heston, Transition
from tests.inference.closed_form import DATA, DT, EXACT

P = np.array([0.1, 0.3])


def model(states: np.ndarray) -> None:
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    law = Transition(EXACT, states[:-1], DT, {"mu": mu, "sigma": sigma})
    with numpyro.plate("steps", len(states) - 1):
        numpyro.sample("s", law, obs=states[1:])


def test_log_probability_of_a_series_in_a_model() -> None:
    value, _ = log_density(model, (DATA.states,), {}, {"mu": P[0], "sigma": P[1]})
    prior = dist.Normal(0.0, 1.0).log_prob(P[0]) + dist.HalfNormal(1.0).log_prob(P[1])
    assert float(value) == pytest.approx(float(fokkerflow.log_likelihood(EXACT, DATA, P) + prior), rel=1e-12)


def test_parameters_can_be_a_batch_too() -> None:
    params = np.stack([P, 2 * P, 3 * P])
    law = Transition(EXACT, DATA.states[:-1], DT, params[:, None])
    assert law.batch_shape == (3, len(DATA) - 1)
    assert law.event_shape == (1,)
    expected = [fokkerflow.log_likelihood(EXACT, DATA, p) for p in params]
    np.testing.assert_allclose(law.log_prob(DATA.states[1:]).sum(1), expected, rtol=1e-12)


@pytest.mark.parametrize("wide", [True, False], ids=["64-bit", "32-bit"])
def test_gradients_in_either_precision(wide: bool) -> None:
    with jax.enable_x64(wide):
        law = Transition(EXACT, DATA.states[:5], DT, P)
        gradient = jax.jit(jax.grad(lambda p: Transition(EXACT, DATA.states[:5], DT, p).log_prob(DATA.states[1:6]).sum()))
        values = np.asarray(law.log_prob(DATA.states[1:6])), np.asarray(gradient(jnp.asarray(P)))
    np.testing.assert_allclose(values[0], EXACT.log_prob_batch(DATA.states[1:6], DATA.states[:5], DT, P), rtol=1e-6)
    expected = jax.grad(lambda p: EXACT.log_prob_batch(DATA.states[1:6], DATA.states[:5], DT, p).sum())(jnp.asarray(P))
    np.testing.assert_allclose(values[1], expected, rtol=1e-5)


def test_what_a_model_forbids_has_probability_zero() -> None:
    """Also for values that are not traced: NumPyro evaluates starting points that way."""
    assert float(Transition(EXACT, [1.0], DT, [0.1, -0.3]).log_prob(jnp.array([1.1]))) == -np.inf
    assert float(Transition(EXACT, [1.0], DT, P).log_prob(jnp.array([-1.0]))) == -np.inf


def test_support_is_that_of_the_states() -> None:
    assert Transition(EXACT, [1.0], DT, P).support.base_constraint.lower_bound == 0
    cir = fokkerflow.density("exact", CIR())
    assert bool(Transition(cir, [0.1], DT, [0.1, 3.0, 0.25]).support(jnp.array([0.2])))
    heston = Transition(fokkerflow.density("exact", Heston()), [0.1, 0.0], DT, list(Heston.typical.values()))
    assert heston.support == dist.constraints.real_vector


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"GBM: got batches of shapes \(4,\), \(\), \(3,\), \(\) for x0, params, dt and t0"):
        Transition(EXACT, np.ones((4, 1)), np.ones(3), P)
    with pytest.raises(NotImplementedError, match="obs=states"):
        Transition(EXACT, [1.0], DT, P).sample(jax.random.key(0))
    with pytest.raises(ValueError, match="missing parameter 'sigma'"):
        Transition(fokkerflow.density("exact", GBM()), [1.0], DT, {"mu": 0.1})


def test_the_hierarchical_example_runs_and_shrinks() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import hierarchical_numpyro
    finally:
        sys.path.pop(0)
    found = hierarchical_numpyro.main(warmup=300, draws=300)
    assert np.ptp(found["together"]) < 0.9 * np.ptp(found["alone"])
    assert abs(found["sigma"].mean() - 0.2) < 0.02
    error = {name: np.sqrt(np.mean((found[name] - found["true"]) ** 2)) for name in ("alone", "together")}
    assert error["together"] < error["alone"]
