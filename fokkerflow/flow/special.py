"""Softplus, its inverse and their logarithms, accurate where their arguments or values underflow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Values = Float[Array, "*shape"]
_FAR = -30.0


def inverse_softplus(r: Values) -> Values:
    """log(exp(r) - 1) for r > 0: about r when r is large, about log r when it is small."""
    return r + jnp.log(-jnp.expm1(-r))


def log_softplus(z: Values) -> Values:
    """log log(1 + exp(z)), about z far below zero."""
    far = z < _FAR
    return jnp.where(far, z - 0.5 * jnp.exp(jnp.where(far, z, 0.0)), jnp.log(jax.nn.softplus(jnp.where(far, 0.0, z))))


def relative_expm1(e: Values) -> Values:
    """(1 - exp(-e)) / e, which is 1 at e = 0."""
    small = jnp.abs(e) < 1e-4
    safe = jnp.where(small, 1.0, e)
    return jnp.where(small, 1.0 - e / 2 + e**2 / 6 - e**3 / 24, -jnp.expm1(-safe) / safe)
