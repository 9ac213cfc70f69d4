"""Simulation by Euler-Maruyama with sub-steps: how the paper makes its data (section 5.1).

The paths of a call are independent of each other and of how many there are: path i draws its noise from a key made of the
seed, i and the number of the observation. Coordinates are reflected at the finite ends of their domain.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fokkerflow.sde.domain import Domain
from fokkerflow.sde.linalg import cholesky
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.series import Series
from fokkerflow.sde.validation import check_parameters, check_state, parameter_vector, state_vector

_NOISE_BLOCK = 40_000  # Euler steps whose noise is drawn at once: large enough for two cores, small enough for the cache
_NOISE_LIMIT = 4_000_000  # Euler steps of all paths between two observations, in one compiled call
_CLEARANCE = 1e-14  # closest approach to an end of the domain, in units of the start's distance to it


class SimulationError(RuntimeError):
    """A simulated state that is not a finite number."""


def simulate(
    sde: SDE,
    params: Any,
    x0: Any = None,
    *,
    dt: Any,
    n: int,
    substeps: int = 100,
    burn_in: int = 0,
    t0: float = 0.0,
    seed: int = 0,
) -> Series:
    """One simulated series of `n` observations.

    **Arguments:**

    - `sde`: the model.
    - `params`: parameters, as an array in model order or by name.
    - `x0`: the state that the simulation starts from; the model's own start if left out.
    - `dt`: time between observations: a number, or an array of ``burn_in + n - 1`` gaps.
    - `n`: how many observations to return.
    - `substeps`: Euler-Maruyama steps per gap. The error of the law is of order ``dt / substeps``.
    - `burn_in`: how many observations to drop first. Without, the first observation is `x0` itself.
    - `t0`: the time of the first observation that is returned.
    - `seed`: the same seed gives the same series; it is path 0 of `simulate_paths`.

    **Raises:** ValueError naming the argument that is wrong; `SimulationError` if a state is not finite.

    ```python
    series = simulate(Heston(), Heston.typical, dt=0.5, n=350, burn_in=350, seed=1)
    ```
    """
    paths = simulate_paths(sde, params, x0, dt=dt, n=n, substeps=substeps, burn_in=burn_in, t0=t0, seed=seed, paths=1)
    times = observation_times(dt, n, burn_in, t0)
    return Series(times[burn_in:], paths[0], tuple(sde.states))


def simulate_paths(
    sde: SDE,
    params: Any,
    x0: Any = None,
    *,
    dt: Any,
    n: int,
    substeps: int = 100,
    burn_in: int = 0,
    t0: float = 0.0,
    seed: int = 0,
    paths: int | None = None,
) -> Float[np.ndarray, "paths n d"]:
    """Many simulated series at once; the arguments are those of `simulate`, but for these.

    - `params`: of shape ``(n_p,)``, or ``(paths, n_p)`` for a different parameter in each path; by name likewise.
    - `x0`: of shape ``(d,)`` or ``(paths, d)``.
    - `paths`: how many; found from `params` and `x0` if left out.

    **Returns:** states of shape ``(paths, n, d)``. Path i does not depend on how many paths there are.
    """
    for value, least, what in ((n, 1, "n"), (substeps, 1, "substeps"), (burn_in, 0, "burn_in"), (seed, 0, "seed")):
        _check_count(value, least, what)
    if seed >= 2**63:
        raise ValueError(f"Got seed = {seed}, expected a whole number below 2**63.")
    times = observation_times(dt, n, burn_in, t0)
    p = np.asarray(parameter_vector(sde, params))
    x = np.asarray(state_vector(sde, sde.start if x0 is None else x0, "x0"))
    check_parameters(sde, p)
    check_state(sde, x, "x0")
    count = _number_of_paths(p, x, paths)
    p, x = np.broadcast_to(p, (count, p.shape[-1])), np.broadcast_to(x, (count, x.shape[-1]))
    states = _in_chunks(sde, seed, x, p, times, substeps)
    _check_finite(sde, states, p, substeps)
    return states[:, burn_in:]


def observation_times(dt: Any, n: int, burn_in: int, t0: float) -> Float[np.ndarray, " burn_in+n"]:
    """Times of all observations, those to be dropped included; the first one kept is at `t0`."""
    try:
        gaps = np.asarray(dt, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"dt: got {dt!r}, expected numbers.") from None
    steps = burn_in + n - 1
    if gaps.ndim > 1 or (gaps.ndim == 1 and len(gaps) != steps):
        raise ValueError(f"Got dt of shape {gaps.shape}, expected a number or burn_in + n - 1 = {steps} gaps.")
    bad = np.atleast_1d(gaps)[~(np.isfinite(np.atleast_1d(gaps)) & (np.atleast_1d(gaps) > 0))]
    if bad.size:
        raise ValueError(f"Got dt = {bad[0]:g}, expected a positive, finite time between observations.")
    if not math.isfinite(t0):
        raise ValueError(f"Got t0 = {t0}, expected a finite time.")
    offsets = gaps * np.arange(steps + 1) if gaps.ndim == 0 else np.concatenate([[0.0], np.cumsum(gaps)])
    return t0 + (offsets - offsets[burn_in])


def _check_count(value: int, least: int, what: str) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"Got {what} = {value!r}, expected a whole number of at least {least}.")


def _number_of_paths(p: np.ndarray, x: np.ndarray, paths: int | None) -> int:
    sizes = {"params": p, "x0": x}
    for what, value in sizes.items():
        if value.ndim > 2:
            raise ValueError(f"Got {what} of shape {value.shape}, expected one row, or one row for each path.")
    rows = {what: len(value) for what, value in sizes.items() if value.ndim == 2}
    if paths is not None:
        _check_count(paths, 1, "paths")
        rows = {"paths": paths, **rows}
    if len(set(rows.values())) > 1:
        given = ", ".join(f"{what} for {size}" for what, size in rows.items())
        raise ValueError(f"The number of paths is not clear: got {given}.")
    count = next(iter(rows.values()), 1)
    if count < 1:
        raise ValueError("Got no paths: params and x0 need at least one row.")
    return count


def _in_chunks(
    sde: SDE, seed: int, x: Float[np.ndarray, "k d"], p: Float[np.ndarray, "k n"], times: np.ndarray, substeps: int
) -> Float[np.ndarray, "k times d"]:
    """Run the compiled loop on groups of paths of equal size, so that memory stays bounded whatever is asked for."""
    count = len(x)
    chunks = math.ceil(count * substeps / _NOISE_LIMIT)
    size = math.ceil(count / min(chunks, count))
    steps = len(times) - 1
    blocks = max(1, math.ceil(steps * size * substeps / _NOISE_BLOCK))
    block = math.ceil(steps / blocks)
    results = []
    with jax.enable_x64(True):
        for first in range(0, count, size):
            index = np.minimum(np.arange(first, first + size), count - 1)  # the last group is filled up
            later = _run(sde, substeps, block, seed, index, x[index], p[index], times[:-1], np.diff(times))
            results.append(np.asarray(later))
    later = np.concatenate(results)[:count]
    return np.concatenate([x[:, None], later], axis=1)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _run(
    sde: SDE,
    substeps: int,
    block: int,
    seed: int,
    index: Int[Array, " k"],
    x: Float[Array, "k d"],
    p: Float[Array, "k n"],
    t: Float[Array, " steps"],
    dt: Float[Array, " steps"],
) -> Float[Array, "k steps d"]:
    """All observations after the first, for all paths."""
    root = jax.random.key(seed, impl="threefry2x32")

    def path(i: Array, x: State, p: Parameters) -> Float[Array, "steps d"]:
        key = jax.random.fold_in(root, i)

        def noise(k: Array) -> Float[Array, "substeps d"]:
            return jax.random.normal(jax.random.fold_in(key, k), (substeps, sde.dimension))

        def observe(x: State, step: tuple[Scalar, Scalar, Array]) -> tuple[State, State]:
            t, dt, z = step
            x = euler(sde, t, dt / substeps, x, p, z)
            return x, x

        def run_block(x: State, steps: tuple[Array, Array, Array]) -> tuple[State, Float[Array, "block d"]]:
            k, t, dt = steps
            return jax.lax.scan(observe, x, (t, dt, jax.vmap(noise)(k)))

        return _scan_in_blocks(run_block, x, t, dt, block)

    return jax.vmap(path)(index, x, p)


def _scan_in_blocks(
    run_block: Any, x: State, t: Float[Array, " steps"], dt: Float[Array, " steps"], block: int
) -> Float[Array, "steps d"]:
    """Scan over whole blocks of observations, then over what is left."""
    steps = len(t)
    whole = steps // block * block if block else 0
    inputs = (jnp.arange(steps), t, dt)
    parts = []
    if whole:
        x, states = jax.lax.scan(run_block, x, jax.tree.map(lambda a: a[:whole].reshape(-1, block), inputs))
        parts.append(states.reshape(whole, -1))
    if whole < steps:
        parts.append(run_block(x, jax.tree.map(lambda a: a[whole:], inputs))[1])
    return jnp.concatenate(parts) if parts else jnp.zeros((0, x.size))


def euler(sde: SDE, t: Scalar, h: Scalar, x: State, p: Parameters, z: Float[Array, "substeps d"]) -> State:
    """Euler-Maruyama steps of length `h`, one for each row of standard normals `z`."""
    root_h = jnp.sqrt(h)

    def step(carry: tuple[Scalar, State], z: State) -> tuple[tuple[Scalar, State], None]:
        k, x = carry
        now = t + k * h
        L = cholesky(sde.covariance(now, x, p))
        x = x + sde.drift(now, x, p) * h + root_h * jnp.stack([jnp.sum(L[i, : i + 1] * z[: i + 1]) for i in range(len(x))])
        return (k + 1.0, _keep_inside(sde, x)), None

    return jax.lax.scan(step, (jnp.zeros(()), x), z)[0][1]


def _keep_inside(sde: SDE, x: State) -> State:
    """Every coordinate reflected at the finite ends of its domain, and strictly inside."""
    return jnp.stack([_reflect(x[i], domain, sde.start[i]) for i, domain in enumerate(sde.domains)])


def _reflect(x: Scalar, domain: Domain, start: float) -> Scalar:
    if domain.is_line:
        return x
    low = _inner(domain.lower, start)
    reflected = jnp.maximum(domain.lower + jnp.abs(x - domain.lower), low)
    if domain.is_half_line:
        return reflected
    high = _inner(domain.upper, start)
    return jnp.clip(domain.upper - jnp.abs(domain.upper - reflected), low, high)


def _inner(end: float, start: float) -> float:
    """The number closest to `end` that a path may take."""
    inner = end + _CLEARANCE * (start - end)
    return inner if inner != end else float(np.nextafter(end, start))


def _check_finite(sde: SDE, states: Float[np.ndarray, "k times d"], p: Float[np.ndarray, "k n"], substeps: int) -> None:
    bad = np.argwhere(~np.isfinite(states))
    if bad.size:
        path, row, i = bad[0]
        values = ", ".join(f"{name}={value:.7g}" for name, value in zip(sde.parameters, p[path], strict=True))
        raise SimulationError(
            f"{sde.label}: {list(sde.states)[i]} is {states[path, row, i]} in observation {row} of path {path}, with "
            f"{values}. Euler-Maruyama left the numbers: increase substeps (now {substeps}) or decrease dt."
        )
