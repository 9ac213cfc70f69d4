"""Coordinates in which a diffusion is expanded: each state by itself, or the logarithm or root of its distance to its ends.

An expansion at fixed order is another approximation in other coordinates, better where the noise depends less on the state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE, Parameters, Scalar, State

COORDINATES = ("natural", "log", "root")


@dataclasses.dataclass(frozen=True)
class Frame:
    """Drift and covariance of a model as functions of z, each coordinate of which is a function of one state.

    - `coordinates`: "natural" leaves the states as they are; "log" takes ``log(x - a)`` on a half line and the logit on an
      interval; "root" takes ``sqrt(x - a)`` and ``arcsin(sqrt((x - a) / (b - a)))``. States on the whole line stay.
    - `moving`: whether z is relative to the point that moves with the drift of the start.

    Equal frames share what is found out about them.
    """

    sde: SDE
    coordinates: str = "natural"
    moving: bool = False

    @property
    def timed(self) -> bool:
        """Whether drift and covariance depend on the time in this frame."""
        return self.moving or not self.sde.autonomous

    def place(self, x: State) -> State:
        """z for a state x."""
        return jnp.stack([_INTO[self.coordinates](domain, value) for domain, value in zip(self.sde.domains, x, strict=True)])

    def state(self, z: State) -> State:
        """x for its z."""
        return jnp.stack([_BACK[self.coordinates](domain, value) for domain, value in zip(self.sde.domains, z, strict=True)])

    def log_slope(self, z: State) -> Scalar:
        """log det dz/dx."""
        return -jnp.sum(jnp.log(self._derivatives(z)[1]))

    def drift(self, t: Scalar, z: State, p: Parameters) -> State:
        return self.formulas(t, z, p)[0]

    def formulas(self, t: Scalar, z: State, p: Parameters) -> tuple[State, Array]:
        """Drift and covariance of z, by Ito's formula: ``b_z = (b - x''(z) Sigma_z,ii / 2) / x'(z)``."""
        if self.coordinates == "natural":
            return self.sde.drift(t, z, p), self.sde.covariance(t, z, p)
        x, first, second = self._derivatives(z)
        covariance = self.sde.covariance(t, x, p) / (first[:, None] * first)
        return (self.sde.drift(t, x, p) - second * jnp.diagonal(covariance) / 2) / first, covariance

    def _derivatives(self, z: State) -> tuple[State, State, State]:
        """x and its first and second derivative, elementwise."""

        def slope(z: State) -> tuple[State, State]:
            return jax.jvp(self.state, (z,), (jnp.ones_like(z),))

        (x, first), (_, second) = jax.jvp(slope, (z,), (jnp.ones_like(z),))
        return x, first, second


def _identity(domain: Domain, value: Scalar) -> Scalar:
    return value


def _log(domain: Domain, x: Scalar) -> Scalar:
    if domain.is_line:
        return x
    if domain.is_half_line:
        return jnp.log(x - domain.lower)
    return jnp.log((x - domain.lower) / (domain.upper - x))


def _from_log(domain: Domain, z: Scalar) -> Scalar:
    if domain.is_line:
        return z
    if domain.is_half_line:
        return domain.lower + jnp.exp(z)
    return domain.lower + (domain.upper - domain.lower) * jax.nn.sigmoid(z)


def _root(domain: Domain, x: Scalar) -> Scalar:
    if domain.is_line:
        return x
    if domain.is_half_line:
        return jnp.sqrt(x - domain.lower)
    return jnp.arcsin(jnp.sqrt((x - domain.lower) / (domain.upper - domain.lower)))


def _from_root(domain: Domain, z: Scalar) -> Scalar:
    if domain.is_line:
        return z
    if domain.is_half_line:
        return domain.lower + z**2
    return domain.lower + (domain.upper - domain.lower) * jnp.sin(z) ** 2


_Map = Callable[[Domain, Scalar], Scalar]
_INTO: dict[str, _Map] = {"natural": _identity, "log": _log, "root": _root}
_BACK: dict[str, _Map] = {"natural": _identity, "log": _from_log, "root": _from_root}
