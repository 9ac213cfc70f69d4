"""Importance weights of modified Brownian bridges: an Euler likelihood with unobserved states between two observations.

With M steps of length h = dt / M from u_0 = x0 to u_M = x1, the Euler likelihood is an integral over the states between of M
Gaussian transitions. They are drawn, for m < M - 1, from (Durham and Gallant 2002, section 2.3)

    u_{m+1} ~ N( u_m + (x1 - u_m) / (M - m) ,  h (M - m - 1) / (M - m) Sigma(u_m) ) .

Both Gaussians have the same factor L of Sigma(u_m). With eps the standard normal of the draw and
``e = sqrt((M - m - 1) / (M - m)) eps + L^-1 ((x1 - u_m) / (M - m) - b h) / sqrt(h)`` a ratio of the two is therefore
``exp(|eps|^2 / 2 - |e|^2 / 2)``, and the determinants of all steps multiply to ``M^{-d/2}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fokkerflow.sde.linalg import cholesky
from fokkerflow.sde.model import Matrix, Scalar, State

Coefficients = Callable[[Scalar, State], tuple[State, Matrix]]
"""Drift and covariance from time and state."""
Inside = Callable[[State], Bool[Array, ""]]

_CHUNK = 128
"""Paths that are differentiated at once: reverse mode keeps the states of these only, and makes the others again."""


def log_weights(
    key: PRNGKeyArray,
    model: Coefficients,
    inside: Inside,
    x1: State,
    x0: State,
    dt: Scalar,
    t0: Scalar,
    *,
    steps: int,
    paths: int,
    antithetic: bool,
) -> Float[Array, " paths"]:
    """The logarithms of `paths` unbiased estimates of the Euler likelihood. A path that is not `inside` counts zero.

    With `antithetic`, the second half of the paths has the noise of the first with the opposite sign. `inside` is asked for
    states between the ends only; where it says no, the path goes on from x0.
    """
    draws = paths // 2 if antithetic else paths
    size = math.gcd(draws, _CHUNK) if draws > _CHUNK else draws
    run = partial(_chunk, model, inside, x1, x0, dt, t0, steps, size, antithetic)
    chunks = draws // size
    logs = run(key)[None] if chunks == 1 else jax.lax.map(jax.checkpoint(run), jax.random.split(key, chunks))
    signs = 2 if antithetic else 1
    return jnp.moveaxis(logs.reshape(chunks, signs, size), 1, 0).reshape(paths)


def _chunk(
    model: Coefficients,
    inside: Inside,
    x1: State,
    x0: State,
    dt: Scalar,
    t0: Scalar,
    steps: int,
    size: int,
    antithetic: bool,
    key: PRNGKeyArray,
) -> Float[Array, " paths"]:
    """Time runs outside, paths inside: the memory is that of one state of each path."""
    h, d = dt / steps, len(x0)
    root = jnp.sqrt(h)

    def advance(m: Scalar, u: State, eps: State) -> tuple[State, Scalar]:
        L, a, _ = _shares(model, t0 + m * h, u, (x1 - u) / (steps - m), h)
        shrink = jnp.sqrt((steps - m - 1) / (steps - m))
        e = shrink * eps + a
        new = u + (x1 - u) / (steps - m) + root * shrink * (L @ eps)
        return new, jnp.sum(eps**2 - e**2) / 2

    @jax.checkpoint
    def step(carry: tuple[Array, Array], m: Scalar) -> tuple[tuple[Array, Array], None]:
        u, log = carry
        noise = jax.random.normal(jax.random.fold_in(key, m), (size, d), jnp.float64)
        noise = jnp.concatenate([noise, -noise]) if antithetic else noise
        new, change = jax.vmap(partial(advance, m.astype(jnp.float64)))(u, noise)
        sound = jax.vmap(inside)(new) & jnp.isfinite(change)
        return (jnp.where(sound[:, None], new, x0), jnp.where(sound, log + change, -jnp.inf)), None

    def finish(u: State) -> Scalar:
        _, a, log_determinant = _shares(model, t0 + dt - h, u, x1 - u, h)
        return -jnp.sum(a**2) / 2 - log_determinant - d / 2 * jnp.log(2 * math.pi * h)

    count = size * (2 if antithetic else 1)
    start = jnp.broadcast_to(x0, (count, d)), jnp.zeros(count)
    (u, log), _ = jax.lax.scan(step, start, jnp.arange(steps - 1))
    return log + jax.vmap(finish)(u) - d / 2 * math.log(steps)


def _shares(model: Coefficients, t: Scalar, u: State, step: State, h: Scalar) -> tuple[Matrix, State, Scalar]:
    """L, the step in units of the noise beyond the drift, and log det L."""
    drift, Sigma = model(t, u)
    L, a, rest = cholesky(Sigma), list[Scalar](), (step - drift * h) / jnp.sqrt(h)
    pivots = [jnp.where(L[i, i] > 0, L[i, i], 1.0) for i in range(len(u))]
    for i, pivot in enumerate(pivots):
        a.append((rest[i] - sum(L[i, j] * a[j] for j in range(i))) / pivot)
    return L, jnp.stack(a), jnp.sum(jnp.log(jnp.stack(pivots)))
