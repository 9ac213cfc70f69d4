"""Several chains in parallel, in chunks: progress after each, a checkpoint now and then, and a resumed run draws the same.

The key of a step is made of the seed, the chain and the number of the step, so draws depend on nothing else: not on the size of
chunks, not on interruptions, and not on how many draws are asked for.

Chains are calls of one compiled program, which JAX runs on all cores at once. Under `jax.vmap` they would wait for each
other in every trajectory, and an evaluation of four chains takes no less than four evaluations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow.inference import run_file
from fokkerflow.inference.run_file import Saved
from fokkerflow.inference.target import Frame, Target

CHUNK = 25
"""Steps of one call of the compiled program."""
_LOOK, _MOST_CALLS = 1.0, 8
"""Chains wait for each other at every look at the clock, so each makes as many calls between two as take about a second."""


class Sampler(Protocol):
    """What the driver needs of a sampler; a step of one chain is a pure function."""

    @property
    def name(self) -> str: ...

    def plan(self, warmup: int, steps: int) -> Any:
        """Arrays with one entry for each step, of which the step gets its own."""

    def blank(self, n: int) -> Any:
        """A state for `n` parameters that has the right shapes."""

    def start(self, target: Target, frame: Frame, z: Float[Array, " n"]) -> Any:
        """The state of a chain that begins at `z` in the frame."""

    def step(self, target: Target, frame: Frame, state: Any, key: PRNGKeyArray, plan: Any) -> tuple[Any, dict[str, Any]]:
        """The next state, and numbers that describe it: ``p``, ``lp`` and statistics."""


class Progress(NamedTuple):
    """Where a sampling is.

    **Attributes:**

    - `where`: in words, such as ``"warm-up 150 of 1000"``.
    - `share`: of the steps that are done, from 0 to 1.
    - `divergences`: so far, after warm-up.
    - `seconds`, `seconds_left`: spent in this run, and to be expected; infinite as long as nobody knows.
    """

    where: str
    share: float
    divergences: int
    seconds: float
    seconds_left: float


class Run(NamedTuple):
    """What to do: lengths, chains and seed."""

    warmup: int
    draws: int
    chains: int
    seed: int

    @property
    def steps(self) -> int:
        return self.warmup + self.draws


class Drawn(NamedTuple):
    """Draws by name with axes chain and draw, divergences during warm-up, and seconds over all runs."""

    draws: dict[str, np.ndarray]
    warmup_divergences: int
    seconds: float


class Checkpoints(NamedTuple):
    """Where checkpoints go, how many seconds apart, and what identifies the run."""

    path: Path
    every: float
    settings: Mapping[str, Any]


def sample(
    sampler: Sampler,
    target: Target,
    begin: Callable[[], tuple[Frame, Float[Array, "chains n"]]],
    run: Run,
    *,
    checkpoints: Checkpoints | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Drawn:
    """Run all chains.

    **Arguments:**

    - `begin`: makes the frame and the starting points; it is not called if a checkpoint is there.
    - `progress`: called after every chunk.
    """
    key = jax.random.key(run.seed, impl="threefry2x32")
    clock = time.monotonic()
    at = _begin(sampler, target, begin, run, checkpoints)
    before, first, saved = at.seconds, None, time.monotonic()
    plan, calls, seconds = sampler.plan(run.warmup, run.steps + CHUNK), 1, time.monotonic() - clock
    try:
        while at.done < run.steps:
            at = _advance(sampler, target, at, key, run, plan, calls)
            looked, seconds = seconds, time.monotonic() - clock
            calls = _calls(calls, seconds - looked, run.steps - at.done)
            at = at._replace(seconds=before + seconds)
            first = first or (at.done, seconds)  # the first chunk compiles
            if progress is not None:
                progress(_progress(at, run, seconds, first))
            if checkpoints is not None and time.monotonic() - saved >= checkpoints.every:
                run_file.save(checkpoints.path, at, checkpoints.settings)
                saved = time.monotonic()
    finally:
        if checkpoints is not None:
            run_file.save(checkpoints.path, at, checkpoints.settings)
    draws = {name: values[:, : run.draws] for name, values in at.draws.items()}
    return Drawn(draws, at.warmup_divergences, at.seconds)


def _begin(
    sampler: Sampler,
    target: Target,
    begin: Callable[[], tuple[Frame, Float[Array, "chains n"]]],
    run: Run,
    checkpoints: Checkpoints | None,
) -> Saved:
    if checkpoints is not None and checkpoints.path.exists():
        like = jax.tree.map(lambda leaf: jnp.stack([leaf] * run.chains), sampler.blank(target.dimension))
        return run_file.load(checkpoints.path, (_no_frame(target), like), checkpoints.settings)
    with ThreadPoolExecutor(1) as pool:  # XLA uses one core to compile, the search for the peak another
        compiled = pool.submit(_compile, sampler, target, sampler.plan(run.warmup, CHUNK))
        frame, z = begin()
        at = Saved((frame, _start(sampler, target, frame, z)), {}, 0, 0, 0.0)
        if checkpoints is not None:
            run_file.save(checkpoints.path, at, checkpoints.settings)  # a folder that cannot be written to is noticed now
        compiled.result()
    return at


def _no_frame(target: Target) -> Frame:
    n = target.dimension
    return Frame(jnp.zeros(n), jnp.eye(n), jnp.ones(n))


def _compile(sampler: Sampler, target: Target, plan: Any) -> None:
    """Make the program of `_chunk` for arguments of these types and shapes, so that it is there when it is called."""
    program: Any = _chunk
    with jax.enable_x64(True):  # each thread has its own setting
        state = jax.tree.map(np.asarray, sampler.blank(target.dimension))
        key = jax.random.key(0, impl="threefry2x32")
        program.lower(sampler, target, _no_frame(target), state, key, np.asarray(0), np.arange(CHUNK), plan).compile()


def _start(sampler: Sampler, target: Target, frame: Frame, z: Float[Array, "chains n"]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(sampler.start(target, frame, one) for one in z))


def _calls(before: int, seconds: float, steps_left: int) -> int:
    """How many calls until the next look, after `before` calls that took `seconds`."""
    fitting = int(_LOOK * before / max(seconds, 1e-3))
    return max(1, min(fitting, _MOST_CALLS, math.ceil(steps_left / CHUNK)))


def _advance(sampler: Sampler, target: Target, at: Saved, key: PRNGKeyArray, run: Run, plan: Any, calls: int) -> Saved:
    """Some calls of each chain. What they do beyond the last step is thrown away, so that all calls have one length."""
    frame, states = at.state
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, states))
    each = [jax.tree.unflatten(structure, [leaf[i] for leaf in leaves]) for i in range(run.chains)]
    made: list[list[dict[str, Any]]] = [[] for _ in each]
    for call in range(calls):  # JAX does not wait: all calls are on their way before the first is done
        numbers = np.arange(CHUNK) + at.done + call * CHUNK
        rows = jax.tree.map(lambda a, numbers=numbers: a[numbers], plan)
        for i, state in enumerate(each):
            each[i], new = _chunk(sampler, target, frame, state, key, np.asarray(i), numbers, rows)
            made[i].append(new)
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    new = {name: np.stack([np.concatenate([part[name] for part in parts]) for parts in made]) for name in made[0][0]}
    warm = int(np.clip(run.warmup - at.done, 0, calls * CHUNK))
    draws = {name: np.concatenate([at.draws.get(name, values[:, :0]), values[:, warm:]], 1) for name, values in new.items()}
    lost = int(new["diverging"][:, :warm].sum()) if "diverging" in new else 0
    return at._replace(
        state=(frame, states),
        draws=draws,
        done=at.done + calls * CHUNK,
        warmup_divergences=at.warmup_divergences + lost,
    )


@eqx.filter_jit
def _chunk(
    sampler: Sampler, target: Target, frame: Frame, state: Any, key: PRNGKeyArray, chain: Any, numbers: Any, plan: Any
) -> tuple[Any, dict[str, Any]]:
    """The next steps of one chain."""
    chain_key = jax.random.fold_in(key, chain)

    def one(state: Any, row: Any) -> tuple[Any, dict[str, Any]]:
        number, planned = row
        return sampler.step(target, frame, state, jax.random.fold_in(chain_key, number), planned)

    return jax.lax.scan(one, state, (numbers, plan))


def _progress(at: Saved, run: Run, seconds: float, first: tuple[int, float]) -> Progress:
    done = min(at.done, run.steps)
    since, steps = seconds - first[1], done - first[0]
    left = since / steps * (run.steps - done) if steps > 0 else (math.inf if done < run.steps else 0.0)
    where = f"warm-up {done} of {run.warmup}" if done <= run.warmup else f"draw {done - run.warmup} of {run.draws}"
    divergences = int(at.draws["diverging"][:, : run.draws].sum()) if "diverging" in at.draws else 0
    return Progress(where, done / run.steps, divergences, seconds, left)
