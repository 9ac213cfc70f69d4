"""The expansion for one state, after Lamperti's transform to unit noise: its coefficients are integrals, not polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fokkerflow.densities.ait_sahalia_coordinates import Frame
from fokkerflow.densities.ait_sahalia_options import check_noise
from fokkerflow.densities.density import Density
from fokkerflow.sde.model import SDE, Parameters, Scalar, State

NODES = 16
"""Gauss-Legendre nodes between x0 and x, in log or logit coordinates where the state has ends."""


class AitSahaliaReducible(Density):
    """The expansion of a one-dimensional diffusion through y = int dx / sigma(x), in which the noise is one.

    With ``m`` the drift of y, ``lambda = -(m^2 + m') / 2`` and h = y - y0,

        log p = -log(2 pi dt) / 2 - log sigma(x) - h^2 / (2 dt) + int_y0^y m
                + dt int_0^1 lambda(y0 + s h) ds + dt^2 / 2 int_0^1 s (1 - s) lambda''(y0 + s h) ds ,

    the last term for order 2 only. Nothing is expanded in x - x0. The integrals are by Gauss-Legendre nodes, to rounding unless
    x and x0 are far apart.

    **Validity:** short gaps: the error of log p is O(dt^(K+1)). Exact where lambda is constant (Brownian motion with drift, and
    what is one after a transform, such as geometric Brownian motion). For drift that explodes in y, as near the boundary of a
    square-root process, gaps must be short against (distance to the boundary / noise)^2. Not normalised.

    **Cost:** about as that of Heston's expansion.

    **References:** Ait-Sahalia (2002), Maximum likelihood estimation of discretely sampled diffusions: a closed-form
    approximation approach, Econometrica 70, for the transform; Ait-Sahalia (2008), section 3, for the logarithm as a series.
    """

    sde: SDE
    order: int

    def __init__(self, sde: SDE, *, order: int = 2) -> None:
        if isinstance(order, bool) or order not in (1, 2):
            raise ValueError(f"order: got {order!r}, expected 1 or 2. For higher orders take route='expanded'.")
        self.sde = check_noise(sde)
        self.order = order

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        frame = Frame(self.sde, "log")
        z0, z1 = frame.place(x0)[0], frame.place(x1)[0]
        nodes, weights, cumulative = _rule()
        at = z0 + (z1 - z0) * nodes
        drift, variance, rate, bend = jax.vmap(lambda z: _unit_noise(frame, z, p, self.order))(at)
        lapse = 1 / jnp.sqrt(variance)  # dy / dz
        mean = weights @ lapse  # h / (z1 - z0), also where both vanish
        s = cumulative @ lapse / mean
        h = mean * (z1 - z0)
        v0, v1 = (frame.formulas(t0, z[None], p)[1][0, 0] for z in (z0, z1))
        total = -h * h / (2 * dt) - jnp.log(2 * math.pi * dt) / 2 + frame.log_slope(z1[None])
        total += (z1 - z0) * (weights @ (drift / variance)) + jnp.log(v0) / 4 - 3 * jnp.log(v1) / 4
        total += dt * (weights @ (lapse * rate)) / mean
        if self.order == 2:
            total += dt**2 / 2 * (weights @ (lapse * s * (1 - s) * bend)) / mean
        return jnp.where(jnp.isfinite(total), total, -jnp.inf)


def _unit_noise(frame: Frame, z: Scalar, p: Parameters, order: int) -> tuple[Array, Array, Array, Array]:
    """Drift and variance of z, and lambda and its second derivative in y."""
    zero = jnp.zeros(())

    def sigma(z: Scalar) -> Scalar:
        return jnp.sqrt(frame.formulas(zero, z[None], p)[1][0, 0])

    def drift(z: Scalar) -> Scalar:
        b, variance = frame.formulas(zero, z[None], p)
        return b[0] / jnp.sqrt(variance[0, 0]) - slope(sigma)(z) / 2

    def slope(f: Callable[[Scalar], Scalar]) -> Callable[[Scalar], Scalar]:
        return lambda z: jax.jvp(f, (z,), (jnp.ones_like(z),))[1]

    def along(f: Callable[[Scalar], Scalar]) -> Callable[[Scalar], Scalar]:
        return lambda z: sigma(z) * slope(f)(z)

    def rate(z: Scalar) -> Scalar:
        return -(drift(z) ** 2 + along(drift)(z)) / 2

    b, variance = frame.formulas(zero, z[None], p)
    return b[0], variance[0, 0], rate(z), along(along(rate))(z) if order == 2 else jnp.zeros(())


def _rule() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], and the matrix that integrates from 0 to each node."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    n = np.arange(NODES)
    values = np.polynomial.legendre.legvander(x, NODES)
    lower = np.concatenate([(values[:, 1:2] + 1), (values[:, 2:] - values[:, :-2]) / (2 * n[1:] + 1)], 1)
    to_coefficients = (2 * n[:, None] + 1) / 2 * values[:, :-1].T * w
    return (1 + x) / 2, w / 2, lower @ to_coefficients / 2
