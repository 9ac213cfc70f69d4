"""Does a posterior end where it does because the training law of its density ends there?

A prior that is restricted to a law keeps every draw inside, so the guard has nothing to say; a posterior that leans on an end
of the law says that the data would go on.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fokkerflow._precision import in_float64
from fokkerflow.densities.density import Density
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.draws import parameter_draws, pooled, thinned
from fokkerflow.inference.prior import Prior
from fokkerflow.inference.transform import Transform

_NEAR, _SHARE = 0.02, 0.01
"""A posterior leans on an end if more than this share of it is within this share of the range: half of what a flat one has."""

_MOST = 4000


def cut_off(density: Density, draws: object) -> dict[str, float]:
    """The parameters whose posterior leans on an end of the training law, and the share of draws close to it.

    Ends that the constraint of the model sets are the model's own, and not counted.
    """
    if not isinstance(density, Surrogate):
        return {}
    sde, law = density.sde, density.trained.law
    p = pooled(thinned(parameter_draws(sde, draws), _MOST))
    within, free = Prior(sde, law=law).transform, Prior(sde).transform
    low, high = _bounds(within, p)
    free_low, free_high = _bounds(free, p)
    near = _NEAR * (high - low)
    leaning = ((p - low < near) & (low > free_low)) | ((high - p < near) & (high < free_high))
    shares = dict(zip(sde.parameters, leaning.mean(0).tolist(), strict=True))
    return {name: share for name, share in shares.items() if share > _SHARE}


@in_float64
def _bounds(transform: Transform, p: Float[np.ndarray, "k n"]) -> tuple[Float[np.ndarray, "k n"], Float[np.ndarray, "k n"]]:
    """The range of each parameter, given the others."""
    names = transform.sde.parameters

    def of(row: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = dict(zip(names, row, strict=True))
        ends = [transform.bounds(i, values) for i in range(len(names))]
        return jnp.stack([jnp.asarray(low, float) for low, _ in ends]), jnp.stack(
            [jnp.asarray(high, float) for _, high in ends]
        )

    low, high = jax.vmap(of)(jnp.asarray(p))
    return np.asarray(low), np.asarray(high)
