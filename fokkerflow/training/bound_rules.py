"""Where the L1 bound is evaluated: panels in time that shrink towards 0, and points of the unit cube that reach the tails."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.stats import qmc

_NODES = 3
_RATIO = 4.0
"""Gauss-Legendre nodes of a panel, and the largest ratio of its ends."""

_DEPTH = 1e-9
"""The first panel reaches from 0 to this share of the longest gap."""


class Base(NamedTuple):
    """Points of the unit cube, in independent sets, and their weights."""

    u: Float[Array, "r n d"]
    weight: Float[Array, "r n"]


class Panels(NamedTuple):
    """Adjacent panels in time, from 0 on.

    **Attributes:**

    - `ends`: where each panel ends.
    - `tau`, `weights`: its nodes, and their weights for the integral of ``g(tau)/tau``.
    - `asked`: the panels that end at the gaps that were asked for.
    """

    ends: Float[np.ndarray, " k"]
    tau: Float[np.ndarray, "k nodes"]
    weights: Float[np.ndarray, "k nodes"]
    asked: Int[np.ndarray, " m"]

    def integrals(self, g: Any) -> Float[np.ndarray, "c k r"]:
        """Integrals of ``g(tau)/tau`` from 0 to the end of each panel, from values of shape ``(c, k, nodes, r)``."""
        return np.cumsum(np.sum(np.asarray(g) * self.weights[..., None], axis=2), axis=1)


def time_panels(dt: Float[np.ndarray, " m"]) -> Panels:
    """Gauss-Legendre in sqrt(tau), in which an integrand of order 1/sqrt(tau) at 0 is smooth."""
    if dt.ndim != 1 or not dt.size or not np.all(np.diff(dt, prepend=0.0) > 0):
        raise ValueError(f"Got gaps {dt.tolist()}, expected positive and increasing ones.")
    ends, asked = np.array([min(_DEPTH * dt[-1], dt[0] / _RATIO)]), []
    for gap in dt:
        count = int(np.ceil(np.log(gap / ends[-1]) / np.log(_RATIO)))
        ends = np.append(ends, np.geomspace(ends[-1], gap, count + 1)[1:])
        asked.append(ends.size - 1)
    roots = np.sqrt(np.append(0.0, ends))
    unit, unit_weights = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(roots)[:, None] / 2
    u = roots[:-1, None] + half * (1 + unit)
    return Panels(ends, u**2, half * unit_weights * 2 / u, np.array(asked))


def base_points(key: PRNGKeyArray, points: int, scramblings: int, d: int) -> Base:
    """Coordinates u = 3w^2 - 2w^3 of a uniform w, with weight du/dw: denser towards the faces, where residuals are largest."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key), np.uint32))
    w = np.stack([qmc.Sobol(d, rng=rng).random(points) for _ in range(scramblings)])
    return Base(jnp.asarray(w**2 * (3 - 2 * w)), jnp.asarray(np.prod(6 * w * (1 - w), axis=2)))
