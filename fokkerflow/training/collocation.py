"""Where the residual is looked at: one scrambled Sobol' sequence over x0, parameters, t0, tau and the flow's base noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import qmc

from fokkerflow.flow import Flow, base_dimension
from fokkerflow.training.law import Law
from fokkerflow.training.residual import Point, collocation_point

_EDGE = 1e-9
"""Points of the unit cube are kept this far from its faces, where quantiles are infinite."""


@dataclass(frozen=True)
class Gaps:
    """The law of the time gap tau: log tau at ``u^power`` between its ends, more often near `longest` than near `shortest`.

    The residual is the derivative with respect to log tau, and errors at long gaps are the larger ones.
    """

    shortest: float
    longest: float
    power: float = 0.6

    def __post_init__(self) -> None:
        if not 0 < self.shortest < self.longest < np.inf:
            raise ValueError(f"Gaps need 0 < shortest < longest, got {self.shortest:g} and {self.longest:g}.")

    def quantile(self, u: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return self.shortest * (self.longest / self.shortest) ** (u**self.power)


class Conditions(NamedTuple):
    """Starts, gaps and parameters, and the base noise of one draw from the flow for each."""

    t0: Float[np.ndarray, " n"]
    tau: Float[np.ndarray, " n"]
    x0: Float[np.ndarray, "n d"]
    p: Float[np.ndarray, "n n_p"]
    base: Float[np.ndarray, "n k"]


class Sequence:
    """Successive batches of conditions; `drawn` counts the points used up, so that a resumed run goes on where it was."""

    def __init__(self, law: Law, gaps: Gaps, base: int, seed: int, drawn: int = 0) -> None:
        self.law, self.gaps, self.drawn = law, gaps, 0
        self._has_t0 = law.t0 is not None
        self._engine = qmc.Sobol(law.dimension + 1 + self._has_t0 + base, rng=np.random.default_rng(seed))
        self._skip(drawn)

    def take(self, n: int) -> Conditions:
        """The next `n` conditions that the law keeps."""
        x0, p, rest = self.law.take(self._cube, n)
        tau = self.gaps.quantile(rest[:, 0])
        t0 = self.law.t0.quantile(rest[:, 1]) if self.law.t0 is not None else np.zeros(n)
        return Conditions(t0, tau, x0, p, rest[:, 1 + self._has_t0 :])

    def _cube(self, n: int) -> Float[np.ndarray, "n k"]:
        count = 1 << (n - 1).bit_length()  # powers of two keep the balance of a Sobol' sequence
        self.drawn += count
        return np.clip(self._engine.random(count), _EDGE, 1 - _EDGE)

    def _skip(self, n: int) -> None:
        if n:
            self._engine.fast_forward(n)
        self.drawn = n


def sequence_for(flow: Flow, law: Law, gaps: Gaps, seed: int, drawn: int = 0) -> Sequence:
    """The sequence of a flow's collocation points."""
    return Sequence(law, gaps, base_dimension(flow), seed, drawn)


@eqx.filter_jit
def points(flow: Flow, conditions: Conditions, spreads: Float[Array, " s"]) -> Point:
    """A batch of points, drawn from the flow as it is, some of them spread out: see `dealt`."""
    each = dealt(spreads, conditions.tau.shape[0], flow.sde.dimension)
    return jax.vmap(lambda c, s: collocation_point(flow, c.t0, c.tau, c.x0, c.p, c.base, s))(conditions, each)


def dealt(spreads: Float[Array, " s"], n: int, dimension: int) -> Float[Array, "n d"]:
    """Spreads of n points in each coordinate: a block of successive points for every combination.

    A tail in one coordinate given the centre of another is as much needed as the corner where both are far out. Blocks of a
    Sobol' sequence cover the cube evenly; every s-th point of it does not: its first coordinate stays in one s-th of its range.
    """
    block = jnp.arange(n) * spreads.size**dimension // n
    return spreads[block[:, None] // spreads.size ** jnp.arange(dimension) % spreads.size]
