"""theta as a function of tau: what the paper's Algorithm 1 returns, between its steps as well.

A cubic Hermite interpolant through the accepted steps and the rates there (Hairer, Norsett and Wanner 1993, section II.6). Its
error is of fourth order, below that of a step as long as steps are limited by stability; `dense_output_error` measures it.
"""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.sde.model import Scalar

Theta = Float[Array, " m"]


@final
class ThetaPath(eqx.Module):
    """The weights for any gap; plain arrays, differentiable, for use under `jax.jit` and `jax.vmap`.

    **Attributes:**

    - `taus`: knots, increasing, at least two.
    - `thetas`, `rates`: theta and its derivative at every knot.
    """

    taus: Float[Array, " k"]
    thetas: Float[Array, "k m"]
    rates: Float[Array, "k m"]

    def __check_init__(self) -> None:
        if self.taus.ndim != 1 or self.thetas.shape[:1] != self.taus.shape or self.rates.shape != self.thetas.shape:
            raise ValueError(f"Got {self.thetas.shape} weights and {self.rates.shape} rates at {self.taus.shape} knots.")
        if self.taus.shape[0] < 2:
            raise ValueError("A path of theta needs two knots or more: take at least one step before asking for it.")

    def arrays(self) -> dict[str, Array]:
        """Everything, by the names that the constructor takes it by."""
        return {"taus": self.taus, "thetas": self.thetas, "rates": self.rates}

    def theta(self, tau: Scalar | float) -> Theta:
        """theta(tau). Before the first knot and after the last one theta stays what it is there."""
        tau = jnp.clip(tau, self.taus[0], self.taus[-1])
        k = jnp.clip(jnp.searchsorted(self.taus, tau, side="right") - 1, 0, self.taus.shape[0] - 2)
        h = self.taus[k + 1] - self.taus[k]
        s = (tau - self.taus[k]) / h
        left, right = self.thetas[k], self.thetas[k + 1]
        bend = (1 - s) * (h * self.rates[k] - (right - left)) - s * (h * self.rates[k + 1] - (right - left))
        return left + s * (right - left) + s * (1 - s) * bend
