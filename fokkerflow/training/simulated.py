"""Simulated transitions of many starts, gaps and parameters at once: what training by maximum likelihood learns from."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.sde.model import SDE
from fokkerflow.sde.simulate import euler
from fokkerflow.training.collocation import Conditions
from fokkerflow.training.errors import TrainingError


class Transitions(NamedTuple):
    """Starts, gaps and parameters, and a state drawn at the end of each gap."""

    t0: Float[Array, " n"]
    tau: Float[Array, " n"]
    x0: Float[Array, "n d"]
    p: Float[Array, "n n_p"]
    x1: Float[Array, "n d"]


@in_float64
def transitions(key: PRNGKeyArray, sde: SDE, conditions: Conditions, *, substeps: int) -> Transitions:
    """A transition for each of `conditions`, by Euler-Maruyama as `fokkerflow.sde.simulate` does it.

    Every gap has `substeps` steps, so that short ones are as exact as long ones; the error of the law is of order
    tau / substeps.

    **Raises:** TrainingError if a state is not finite.
    """
    t0, tau, x0, p = (jnp.asarray(part) for part in conditions[:4])
    x1 = _ends(sde, substeps, key, t0, tau, x0, p)
    lost = int(np.sum(~np.all(np.isfinite(x1), axis=1)))
    if lost:
        raise TrainingError(
            f"{sde.label}: {lost} of {len(tau)} simulated transitions are not finite. Euler-Maruyama left the numbers: take "
            f"more substeps (now {substeps}), shorten dt_max, or narrow the training law where the model is extreme."
        )
    return Transitions(t0, tau, x0, p, x1)


@partial(jax.jit, static_argnums=(0, 1))
def _ends(
    sde: SDE,
    substeps: int,
    key: PRNGKeyArray,
    t0: Float[Array, " n"],
    tau: Float[Array, " n"],
    x0: Float[Array, "n d"],
    p: Float[Array, "n n_p"],
) -> Float[Array, "n d"]:
    noise = jax.random.normal(key, (substeps, *x0.shape), jnp.float64)
    return jax.vmap(lambda t, h, x, p, z: euler(sde, t, h, x, p, z), (0, 0, 0, 0, 1))(t0, tau / substeps, x0, p, noise)
