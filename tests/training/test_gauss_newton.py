"""Space-time Gauss-Newton: the residual, the remembered least squares, and a density that it finds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fokkerflow
from fokkerflow.flow import Flow, Network, anchored, approximate_draw, weights
from fokkerflow.sde.model import SDE
from fokkerflow.training import (
    Gaps,
    GaussNewton,
    Law,
    Sequence,
    State,
    TruncatedNormal,
    Uniform,
    iterate,
    points,
    residual,
    sequence_for,
    start,
)
from fokkerflow.training.least_squares import forget, remember, robust_weights, step

CIR, GAPS = fokkerflow.CIR(), Gaps(1e-3, 0.5)
LAW = Law(
    CIR,
    {"v": Uniform(0.02, 0.25)},
    {"alpha": TruncatedNormal(0.1, 0.03, 0.04), "beta": TruncatedNormal(3.0, 0.2, 0.0), "sigma": Uniform(0.15, 0.35)},
)


def make_flow(sde: SDE, law: Law, components: int) -> Flow:
    rng = np.random.default_rng(0)
    x0, p = law.sample(rng, 500)
    tau = GAPS.quantile(rng.uniform(size=500))
    return anchored(
        jax.random.key(1),
        sde,
        GAPS.longest,
        *map(jnp.asarray, (x0, p, tau)),
        components=components,
        network=Network("mlp", 10, 2),
    )


def test_residual_vanishes_on_an_exact_density() -> None:
    """One component and no corrections is the Gaussian of the moments: for the OU process, the exact density."""
    ou = fokkerflow.OU()
    law = Law(ou, {"x": Uniform(-1, 1)}, {"kappa": Uniform(0.5, 5), "mean": Uniform(-1, 1), "sigma": Uniform(0.1, 1)})
    flow = make_flow(ou, law, components=1)
    theta, with_weights = weights(flow)
    at = points(flow, sequence_for(flow, law, GAPS, seed=1).take(200), jnp.array([1.0, 4.0]))
    exact = eqx.filter_jit(jax.vmap(lambda point: residual(with_weights(0 * theta), point)))(at)
    wrong = eqx.filter_jit(jax.vmap(lambda point: residual(with_weights(theta), point)))(at)
    assert jnp.max(jnp.abs(exact)) < 1e-9
    assert jnp.median(jnp.abs(wrong)) > 1e-6


def test_memory_solves_the_remembered_problem() -> None:
    """With nothing forgotten, steps from anywhere lead to the least-squares solution of all data seen."""
    rng = np.random.default_rng(0)
    jacobians, values = jnp.asarray(rng.normal(size=(3, 20, 4))), jnp.asarray(rng.normal(size=(3, 20)))
    theta, memory = jnp.zeros(4), forget(jnp.zeros(4))
    for J, y in zip(jacobians, values, strict=True):
        r = J @ theta - y
        memory = remember(memory, 1.0, J.T @ J / 20, J.T @ r / 20, theta)
        theta = theta + step(memory, theta, 0.0)
    expected = np.linalg.lstsq(jacobians.reshape(-1, 4), values.ravel(), rcond=None)[0]
    np.testing.assert_allclose(theta, expected, rtol=1e-10)


def test_robust_weights() -> None:
    r = jnp.array([0.5, 1.0, 1.0, 1.0, 100.0, 1e6, 1e60])
    bounded, huber = (np.asarray(robust_weights(r, 15.0, power) * r) ** 2 for power in (1.0, 0.5))
    np.testing.assert_allclose(bounded[:4], np.asarray(r[:4]) ** 2, rtol=0.02)
    assert bounded.max() <= 15.0**2 * (1 + 1e-12)
    assert huber[4] == pytest.approx(15 * 100, rel=0.1)  # linear in |r| above the cutoff
    assert huber[-1] < 15**2 * 25  # and bounded far beyond


@pytest.fixture(scope="module")
def run() -> tuple[Flow, GaussNewton, list[State], list]:
    flow, settings = make_flow(CIR, LAW, components=4), GaussNewton(points=800, iterations=25)
    sequence, states, infos = sequence_for(flow, LAW, GAPS, seed=2), [start(flow, settings)], []
    for _ in range(settings.iterations):
        state, info = iterate(flow, settings, states[-1], sequence.take(settings.points))
        states.append(state)
        infos.append((info, sequence.drawn))
    return flow, settings, states, infos


def errors(flow: Flow, theta: jax.Array) -> np.ndarray:
    """Errors of log q at draws from q, against the noncentral chi-squared density."""
    trained, exact = weights(flow)[1](theta), fokkerflow.density("exact", CIR)
    c = Sequence(LAW, Gaps(0.01, 0.5), base=2, seed=9).take(2000)

    def error(tau: jax.Array, x0: jax.Array, p: jax.Array, base: jax.Array) -> jax.Array:
        condition = trained.condition(0.0, tau, x0, p)
        x = approximate_draw(trained, base, condition)
        return trained.log_density(x, condition) - exact.log_density(x, x0, tau, p, jnp.zeros(()))

    return np.asarray(jax.jit(jax.vmap(error))(*map(jnp.asarray, (c.tau, c.x0, c.p, c.base))))


def test_training_finds_the_density(run: tuple) -> None:
    flow, _, states, infos = run
    before, after = np.abs(errors(flow, states[0].theta)), np.abs(errors(flow, states[-1].theta))
    assert np.median(after) < 1e-3
    assert np.median(after) < np.median(before) / 5
    assert infos[-1][0].median < infos[0][0].median / 5
    assert all(info.unusable == 0 for info, _ in infos)


def test_a_resumed_run_ends_in_the_same_weights(run: tuple) -> None:
    flow, settings, states, infos = run
    half = 20
    sequence = sequence_for(flow, LAW, GAPS, seed=2, drawn=infos[half - 1][1])
    state = jax.tree.map(np.asarray, states[half])  # as a checkpoint would bring it back
    state = State(jnp.asarray(state.theta), jax.tree.map(jnp.asarray, state.memory), float(state.damping), int(state.iteration))
    for _ in range(half, settings.iterations):
        state, _ = iterate(flow, settings, state, sequence.take(settings.points))
    np.testing.assert_array_equal(state.theta, states[-1].theta)
