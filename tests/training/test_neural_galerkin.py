"""Neural Galerkin: the least squares and its three solvers, the Runge-Kutta step, and densities that a march finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from fokkerflow.flow import weights
from fokkerflow.sde.models import SeasonalOU
from fokkerflow.training import Conditions, Law, NeuralGalerkin, Uniform, fit
from fokkerflow.training.galerkin_solve import LeastSquares
from fokkerflow.training.galerkin_step import Attempt, attempt_step
from fokkerflow.training.galerkin_system import Places, draw_places, interior_rows, log_densities_of_theta, points_at
from fokkerflow.training.neural_galerkin import dense_output_error
from tests.training.marches import (
    GAPS,
    SMALL_ANCHORED,
    alone,
    conditions,
    error,
    error_from_start,
    felt,
    ou_flow,
    settings_of,
    small_march,
)

TAU = jnp.asarray(0.1)


def rate(components: int, at: Conditions, form: str, method: str = "cholesky", damping: float = 1e-10) -> tuple:
    """theta_dot at points of some conditions; how it changes log q there; and how it should."""
    flow = ou_flow(components)
    theta, _ = weights(flow)

    @jax.jit
    def solve() -> tuple:
        places = draw_places(flow, TAU, at, "approximate", jnp.ones(1))
        rows = interior_rows(flow, TAU, places, form, None)
        found = LeastSquares(method, damping, 1e-14, 5000).solve(flow, theta, rows, felt(components))
        _, change = jax.linearize(log_densities_of_theta(flow, rows.points), theta)
        return found, change(found), rows.targets

    felt(components)
    return solve()


def test_both_forms_agree_where_the_equation_can_be_solved() -> None:
    """For one start and one set of parameters the density is a Gaussian, and so is the flow."""
    at = alone(ou_flow(), 200)
    _, log_change, target = rate(1, at, "log")
    _, density_change, _ = rate(1, at, "density")
    scale = np.max(np.abs(target))
    assert scale > 1
    np.testing.assert_allclose(log_change, target, atol=1e-5 * scale)
    np.testing.assert_allclose(density_change, target, atol=1e-5 * scale)


@pytest.mark.parametrize("method", ["lsmr", "lsmr-matrix-free"])
def test_solvers_agree(method: str) -> None:
    at = conditions(ou_flow(), 300)
    expected = rate(1, at, "density", "cholesky", 1e-4)[0]
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(rate(1, at, "density", method, 1e-4)[0], expected, atol=1e-7 * scale)


def test_weights_that_are_not_felt_do_not_matter() -> None:
    """The recurrent matrix of a GRU that sees one input, and the logit of a single component."""
    flow = ou_flow()
    theta, _ = weights(flow)
    assert felt().size == theta.size - 3 * 4 * 4 - 5
    moved = (theta + 1.0).at[felt()].set(theta[felt()])
    drawn = conditions(flow, 20)
    places = Places(*map(jnp.asarray, (drawn.t0, drawn.x0, drawn.p, drawn.x0 + 0.1)))
    log_q = jax.jit(log_densities_of_theta(flow, points_at(flow, TAU, places)))
    np.testing.assert_array_equal(log_q(moved), log_q(theta))


SETTINGS = NeuralGalerkin(points=150, damping=1e-3)


def step(h: float) -> Attempt:
    flow = ou_flow()
    return attempt_step(flow, SETTINGS, weights(flow)[0], TAU, jnp.asarray(h), conditions(flow, 150), felt())


def test_a_step_is_of_fifth_order_at_one_set_of_points() -> None:
    """Against SciPy at the points of the beginning of the step. Points drawn anew at every stage would not converge."""
    flow, lengths = ou_flow(), (4e-3, 2e-3)
    theta, with_weights = weights(flow)
    places = draw_places(flow, TAU, conditions(flow, 150), "approximate", jnp.ones(1))
    felt()

    @jax.jit
    def speed(tau: jax.Array, theta: jax.Array) -> jax.Array:
        rows = interior_rows(with_weights(theta), tau, places, "log", None)
        return SETTINGS.least_squares.solve(flow, theta, rows, felt())

    def exact(h: float) -> np.ndarray:
        ends = float(TAU), float(TAU) + h
        return solve_ivp(lambda t, y: np.asarray(speed(t, y)), ends, np.asarray(theta), "DOP853", rtol=1e-13, atol=1e-13).y[
            :, -1
        ]

    steps = [step(h) for h in lengths]
    errors = [np.max(np.abs(s.theta - exact(h))) for s, h in zip(steps, lengths, strict=True)]
    assert errors[1] > 1e-11
    assert 5.3 < np.log2(errors[0] / errors[1]) < 6.8
    assert 4.3 < np.log2(float(steps[0].error / steps[1].error)) < 6.3


def test_the_march_ends_in_the_exact_density() -> None:
    trained, reports = small_march()
    for x0 in (-0.15, 0.1):
        assert np.max(np.abs(error_from_start(trained, x0, 0.5))) < 0.03
    assert trained.path.taus[-1] == trained.gaps.longest
    assert reports[-1].where.startswith("tau 5.00e-01 of 0.5, step ")
    assert reports[-1].share == 1


def test_the_path_is_right_between_the_steps() -> None:
    trained, _ = small_march()
    for tau in np.linspace(0.05, 0.45, 5):
        assert np.max(np.abs(error_from_start(trained, 0.1, tau))) < 0.03


def test_dense_output_is_as_good_as_the_steps() -> None:
    trained, _ = small_march()
    settings = settings_of(trained)
    knots = np.linspace(2, len(trained.path.taus) - 2, 4).astype(int)
    at = conditions(trained.flow, 120, seed=5)
    errors = [dense_output_error(trained.flow, settings, trained.path, np.asarray(felt()), int(knot), at) for knot in knots]
    assert max(errors) < 2 * settings.tolerance


def test_an_anchored_march_of_a_model_that_depends_on_time() -> None:
    sde = SeasonalOU()
    parameters = {name: Uniform(0.9 * value, 1.1 * value) for name, value in sde.typical.items()}
    law = Law(sde, {"x": Uniform(-0.5, 0.5)}, parameters, Uniform(0, 1))
    trained = fit(sde, law, 0.5, method="neural-galerkin", **SMALL_ANCHORED)
    assert trained.path.taus[0] == trained.gaps.shortest == GAPS.shortest
    p = jnp.array([sde.typical[name] for name in sde.parameters])
    for t0, tau in ((0.1, 0.5), (0.6, 0.5), (0.6, 0.05)):
        assert np.max(np.abs(error(trained, 0.2, tau, p, t0))) < 0.03
