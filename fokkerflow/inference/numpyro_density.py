"""A transition density as a NumPyro distribution: an SDE inside a user's own model, hierarchical over several series, say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import constraints

from fokkerflow._precision import in_float64, is_32_bit
from fokkerflow.densities.density import Density
from fokkerflow.sde.model import SDE
from fokkerflow.sde.validation import parameter_vector, state_vector


class Transition(dist.Distribution):
    """The law of the next state of a diffusion, given the one before: p(x1 | x0, dt, params).

    Its events are states, of shape ``(d,)``; its batch is what the leading axes of the arguments broadcast to. A whole series
    is one batch, and its log likelihood what a NumPyro model sums up:

    ```python
    def model(states, dt):
        kappa = numpyro.sample("kappa", dist.LogNormal(0, 1))
        mean = numpyro.sample("mean", dist.Normal(0, 1))
        sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1))
        law = Transition(density, states[:-1], dt, {"kappa": kappa, "mean": mean, "sigma": sigma})
        numpyro.sample("x", law, obs=states[1:])
    ```

    **Arguments:**

    - `density`: a transition density, exact or trained.
    - `x0`: the states before, of shape ``(..., d)``.
    - `dt`: the times between, of shape ``(...)``.
    - `params`: an array of shape ``(..., n)`` in model order, or a mapping by name. Where they break a constraint of the model
      the log probability is -inf.
    - `t0`: the times of `x0`; they matter for models that depend on time.
    """

    pytree_data_fields = ("density", "x0", "dt", "params", "t0")

    def __init__(
        self, density: Density, x0: Any, dt: Any, params: Any, t0: Any = 0.0, *, validate_args: bool | None = None
    ) -> None:
        sde = density.sde
        self.density = density
        self.x0, self.params = state_vector(sde, x0, "x0"), parameter_vector(sde, params)
        self.dt, self.t0 = dt, t0
        leading = (jnp.shape(self.x0)[:-1], jnp.shape(self.params)[:-1], jnp.shape(dt), jnp.shape(t0))
        try:
            batch = jnp.broadcast_shapes(*leading)
        except ValueError:
            raise ValueError(
                f"{sde.label}: got batches of shapes {', '.join(map(str, leading))} for x0, params, dt and t0, "
                "expected shapes that broadcast."
            ) from None
        super().__init__(batch_shape=batch, event_shape=(sde.dimension,), validate_args=validate_args)

    @property
    def support(self) -> Any:
        """Of states; vectors of which only some coordinates are bounded have no bijection here, and all count as real."""
        return _support(self.density.sde)

    def log_prob(self, value: Any) -> Any:
        return _log_prob(self.density, value, self.x0, self.dt, self.params, self.t0)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        raise NotImplementedError(
            "A fokkerflow.Transition gives probabilities, not draws: observe it, with obs=states[1:]. "
            "fokkerflow.simulate_paths draws paths."
        )


@eqx.filter_jit
def _log_prob(density: Density, *arguments: Any) -> Any:
    """Compiled, so that every value is traced: what would be refused has probability zero, as samplers need it."""
    arrays = tuple(jnp.asarray(a, float) for a in arguments)
    return _rounded(density)(*arrays) if is_32_bit() else density.log_prob_batch(*arrays)


def _rounded(density: Density) -> Callable[..., Any]:
    """For JAX's 32-bit mode: values and gradients are computed in double precision, and rounded on their way out."""

    @jax.custom_vjp
    def value(*arrays: Any) -> Any:
        return in_float64(density.log_prob_batch)(*arrays).astype(jnp.float32)

    def backward(arrays: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
        with jax.enable_x64(True):
            _, pull = jax.vjp(density.log_prob_batch, *(a.astype(jnp.float64) for a in arrays))
            return tuple(g.astype(jnp.float32) for g in pull(cotangent.astype(jnp.float64)))

    value.defvjp(lambda *arrays: (value(*arrays), arrays), backward)
    return value


def _support(sde: SDE) -> Any:
    domain = sde.domains[0]
    if len(set(sde.domains)) > 1 or not (domain.is_half_line or domain.is_interval):
        return constraints.real_vector
    one = constraints.interval(domain.lower, domain.upper) if domain.is_interval else constraints.greater_than(domain.lower)
    return constraints.independent(one, 1)
