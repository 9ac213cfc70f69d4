"""Unconstrained coordinates: a bijection onto what constraints and ranges allow, with the right Jacobian, for every model."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow import MODELS, from_functions
from fokkerflow.inference.transform import Range, Transform
from fokkerflow.sde.model import SDE
from fokkerflow.sde.validation import valid_rows

COUPLED = from_functions(
    lambda x, p: -p.a * x,
    lambda x, p: p.b,
    states={"x": "real"},
    parameters={"a": 0.5, "b": 1.0, "c": 0.2},
    constraints=["0 < a < 2", "a < b < 2", "a + c < 1"],
    name="coupled",
)
EVERY = [*(model() for model in MODELS.values()), COUPLED]


@partial(jax.jit, static_argnums=0)
def forward(transform: Transform, u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    def one(u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        p, log_jacobian = transform.parameters(u)
        matrix = jax.jacfwd(lambda u: transform.parameters(u)[0])(u)
        return p, log_jacobian, jnp.linalg.slogdet(matrix)[1], transform.unconstrained(p)

    return jax.vmap(one)(u)


@pytest.mark.parametrize("sde", EVERY, ids=lambda s: s.label)
def test_bijection_jacobian_and_constraint(sde: SDE, rng: np.random.Generator) -> None:
    transform = Transform.of(sde)
    u = jnp.asarray(rng.normal(scale=1.5, size=(200, len(sde.parameters))))
    p, log_jacobian, by_differentiation, back = forward(transform, u)
    np.testing.assert_allclose(log_jacobian, by_differentiation, atol=1e-9)
    np.testing.assert_allclose(back, u, atol=1e-8)
    if sde is not COUPLED:  # a + c < 1 bounds no parameter given those before it
        assert valid_rows(sde, np.asarray(p)).all()


def test_inequalities_between_two_parameters_bound_the_later_one() -> None:
    p, *_ = forward(Transform.of(COUPLED), jnp.asarray(np.random.default_rng(0).normal(size=(100, 3)) * 3))
    a, b, c = np.asarray(p).T
    assert np.all((a > 0) & (a < b) & (b < 2))
    assert np.any(a + c > 1)  # left to `inside`
    inside = jax.vmap(Transform.of(COUPLED).inside)(p)
    np.testing.assert_array_equal(inside, a + c < 1)


def test_the_jacobian_makes_densities_integrate_to_the_volume_of_the_constraint() -> None:
    """The area of 0 < a < b < 2 is 2, with c on an interval of length 0.5."""
    transform = Transform.of(COUPLED, {"c": Range(0.0, 0.5)})
    grid = jnp.linspace(-16, 16, 161)
    u = jnp.stack(jnp.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    u = jnp.column_stack([u, jnp.zeros(len(u))])
    log_jacobian = forward(transform, u)[1]
    density_of_c = float(0.5 / 4)  # dc/du at u = 0, one of the factors
    assert float(jnp.exp(log_jacobian).sum()) * (32 / 160) ** 2 / density_of_c == pytest.approx(2.0, rel=1e-6)


def test_ranges_cut_and_shares_scale() -> None:
    heston = MODELS["heston"]()
    transform = Transform.of(heston, {"beta": Range(1.0, 2.0), "sigma": Range(share=(0.2, 0.5)), "mu": Range(upper=0.1)})
    p, *_ = forward(transform, jnp.asarray(np.random.default_rng(0).normal(size=(300, 5)) * 4))
    alpha, beta, sigma, mu, _ = np.asarray(p).T
    limit = np.sqrt(2 * alpha * beta)
    assert np.all((beta > 1) & (beta < 2) & (mu < 0.1))
    assert np.all((sigma > 0.2 * limit * (1 - 1e-12)) & (sigma < 0.5 * limit * (1 + 1e-12)))


def test_an_empty_range_has_no_density() -> None:
    """sigma above 0.5 where the Feller limit is below it."""
    transform = Transform.of(MODELS["cir"](), {"sigma": Range(0.5, 1.0)})

    @jax.jit
    def at(u: jax.Array) -> tuple[jax.Array, ...]:
        p, log_jacobian = transform.parameters(u)
        return log_jacobian, transform.inside(p), jax.grad(lambda u: transform.parameters(u)[0].sum())(u)

    log_jacobian, inside, gradient = at(jnp.array([np.log(0.01), np.log(3.0), 0.0]))
    assert log_jacobian == -jnp.inf
    assert not inside
    assert np.all(np.isfinite(gradient))


def test_far_out_in_unconstrained_space_nothing_is_outside() -> None:
    """Rounding reaches the end of a range; `inside` says so, and samplers never go there."""
    jacobi = Transform.of(MODELS["jacobi"]())
    p, *_ = forward(jacobi, jnp.full((1, 3), 60.0))
    assert not jax.jit(jacobi.inside)(p[0])
