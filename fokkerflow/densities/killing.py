"""A square-root process killed at an exponentially weighted rate: its transition density as a function of the rate.

For ``dV = k (alpha - V) ds + sigma sqrt(V) dW`` killed at rate q(t) V, t the time to go, everything follows from the
fundamental solution of the linearised Riccati equation

    phi'' + k phi' = (sigma^2 / 2) q(t) phi ,     M = [[phi_1, phi_2], [phi_1', phi_2']] ,     M(0) = 1 .

Here ``(sigma^2 / 2) q = (lean omega z - omega^2 z^2) / clock^2`` with ``z = e^{-decay t}`` and
``clock = (1 - e^{-decay dt}) / decay``: what the integral of e^{-decay t} (c V dt + sqrt(V) dB) needs. M is then an entire
function of the number omega. Its power series depends on (k, decay, lean, dt) only, so it is made once for all transitions, and
a value costs a polynomial.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from fokkerflow.sde.linalg import solve
from fokkerflow.sde.model import Scalar

EDGES = (1.0, 0.75, 0.5, 0.25, 0.08, 0.01)
PANELS = len(EDGES)
"""Time is cut into panels of equal change of z, so that each sees a quarter of omega and no power is large."""
ORDER = 32
NODES = 20
"""Powers of omega, and Chebyshev nodes in time, of a panel. An entire function of order one: error 1e-10 for |omega| = 30."""
LIMIT = 36.0
"""Beyond this |omega| the truncated series is not used; and e^{-36} is what a weight must exceed to be seen."""

Value = Float[Array, "*s"] | Complex[Array, "*s"]
Entries = tuple[tuple[Value, Value], tuple[Value, Value]]
"""Of 2 x 2 matrices."""


class KillingSeries(NamedTuple):
    """M on each panel: `free` at omega = 0, and the coefficients of omega, omega^2, ... of the rest."""

    half: Scalar
    dt: Scalar
    free: Float[Array, "panels 2 2"]
    powers: Float[Array, "order panels 2 2"]


class Flow(NamedTuple):
    """M - M(omega = 0) over the whole time, phi_2, and its logarithm, continuous in omega."""

    change: Entries
    phi2: Value
    log_phi2: Value


def killing_series(k: Scalar, decay: Scalar, lean: Scalar, dt: Scalar) -> KillingSeries:
    """The power series in omega, by integrating its hierarchy ``p_n'' + k p_n' = (lean z p_{n-1} - z^2 p_{n-2}) / clock^2``.

    Each order is one integration in time, exact up to the resolution of Chebyshev's nodes: no step size, no resonance between
    the rates, and relative accuracy also where the whole change is small.
    """
    start, length = _panels(decay, dt)
    seen = jnp.minimum(length, LIMIT / decay)
    s = jnp.array(_CHEBYSHEV)
    z = jnp.exp(-decay * (start[:, None] + seen[:, None] * s))  # (panels, nodes)
    clock = -jnp.expm1(-decay * dt) / decay
    first, second = lean * z / clock**2, -((z / clock) ** 2)
    slope = jax.vmap(lambda h: h * solve(jnp.eye(NODES) + k * h * _INTEGRAL, jnp.array(_INTEGRAL)))(seen)
    value = seen[:, None, None] * (_INTEGRAL @ slope)
    free = _free(k, seen[:, None] * s)  # (panels, nodes, 2, 2)
    initial = free[..., 0, :]

    def raise_order(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        before, previous = carry
        force = first[..., None] * previous + second[..., None] * before
        now = value @ force
        return (previous, now), jnp.stack([now[:, -1], (slope @ force)[:, -1]], 1)

    _, powers = jax.lax.scan(raise_order, (jnp.zeros_like(initial), initial), None, length=ORDER)
    unseen = _free(k, length - seen)
    return KillingSeries(k * dt / 2, dt, unseen @ free[:, -1], unseen @ powers)


def _panels(decay: Scalar, dt: Scalar) -> tuple[Float[Array, " panels"], Float[Array, " panels"]]:
    """Where the panels start, and how long they are."""
    share = 1 - np.array(EDGES)
    start = -jnp.log1p(share * jnp.expm1(-decay * dt)) / decay
    return start, jnp.diff(jnp.append(start, dt))


def _free(k: Scalar, t: Float[Array, "*s"]) -> Float[Array, "*s 2 2"]:
    """M for omega = 0."""
    one, decay = jnp.ones_like(t), jnp.expm1(-k * t)
    return jnp.stack([jnp.stack([one, -decay / k], -1), jnp.stack([0 * one, 1 + decay], -1)], -2)


def flow(series: KillingSeries, omega: Value) -> Flow:
    """M at `omega`: the panels' polynomials, multiplied in a form that keeps small changes accurate."""
    at = jnp.moveaxis(_contract(_powers(omega), series.powers), -3, 0)
    F, C = _entries(series.free[0]), _entries(at[0])
    phi2 = F[0][1] + C[0][1]

    def append(state: tuple[Entries, Entries, Value, Value], panel: tuple[Entries, Entries]) -> tuple[Any, None]:
        (F, C, before, log_phi2), (f, c) = state, panel
        C = _add(_multiply(c, F), _add(_multiply(f, C), _multiply(c, C)))
        F = _multiply(f, F)
        phi2 = F[0][1] + C[0][1]
        return (F, C, phi2, log_phi2 + jnp.log(phi2 / before)), None

    # A loop, because unrolled the derivatives take minutes to compile.
    others = _entries(series.free[1:]), _entries(at[1:])
    (_, C, phi2, log_phi2), _ = jax.lax.scan(append, (F, C, phi2, jnp.log(phi2)), others)
    return Flow(C, phi2, log_phi2)


def _powers(omega: Value) -> Value:
    """omega, omega^2, ..., along a last axis, by doubling."""
    powers = omega[..., None]
    while powers.shape[-1] < ORDER:
        powers = jnp.concatenate([powers, powers * powers[..., -1:]], -1)
    return powers[..., :ORDER]


def _contract(powers: Value, coefficients: Float[Array, "order panels 2 2"]) -> Value:
    if jnp.iscomplexobj(powers):  # two real products instead of one complex one
        return jax.lax.complex(jnp.tensordot(powers.real, coefficients, 1), jnp.tensordot(powers.imag, coefficients, 1))
    return jnp.tensordot(powers, coefficients, 1)


def _entries(A: Value) -> Entries:
    return (A[..., 0, 0], A[..., 0, 1]), (A[..., 1, 0], A[..., 1, 1])


def _multiply(A: Entries, B: Entries) -> Entries:
    (a, b), (c, d) = A
    (e, f), (g, h) = B
    return (a * e + b * g, a * f + b * h), (c * e + d * g, c * f + d * h)


def _add(A: Entries, B: Entries) -> Entries:
    (a, b), (c, d) = A
    (e, f), (g, h) = B
    return (a + e, b + f), (c + g, d + h)


def _chebyshev(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on [0, 1], both ends included, and the matrix that integrates from 0 to each of them."""
    x = -np.cos(np.pi * np.arange(n) / (n - 1))
    T = np.polynomial.chebyshev
    integrals = np.stack([T.chebval(x, T.chebint(row, lbnd=-1)) for row in np.eye(n)], 1)
    return (1 + x) / 2, integrals @ np.linalg.inv(T.chebvander(x, n - 1)) / 2


_CHEBYSHEV, _INTEGRAL = _chebyshev(NODES)
