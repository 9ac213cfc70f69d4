"""What do mean and covariance of one transition cost, in microseconds?

    python benchmarks/moments.py [--record]

"distinct": every transition has its own gap, start and parameters, as in training. "shared": one gap and one parameter for
all, as in the likelihood of an equally spaced series. Compilation is not counted. The recorded answer is in
results/moments.json.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow import MODELS, SDE, moments
from fokkerflow.sde.polynomial import polynomial_structure
from fokkerflow.sde.probing import sample_parameters, sample_states

BATCH = 4000


def seconds(function: Callable[..., Any], *arguments: Any) -> float:
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - started)
    return min(times)


def measure(sde: SDE) -> dict[str, Any]:
    x, p = jnp.array(sample_states(sde, BATCH)), jnp.array(np.resize(sample_parameters(sde, 200), (BATCH, len(sde.parameters))))
    dt = jnp.array(np.linspace(0.01, 1.0, BATCH))

    def one(dt: Any, x: Any, p: Any) -> Any:
        return moments(sde, 0.0, dt, x, p)

    distinct = seconds(jax.jit(jax.vmap(one)), dt, x, p)
    shared = seconds(jax.jit(jax.vmap(one, (None, 0, None))), dt[-1], x, p[0])
    return {
        "exact": polynomial_structure(sde) is not None,
        "distinct_us": round(1e6 * distinct / BATCH, 3),
        "shared_us": round(1e6 * shared / BATCH, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the answer in results/moments.json")
    record = parser.parse_args().record
    jax.config.update("jax_enable_x64", True)
    answer = {}
    for name, model in MODELS.items():
        answer[name] = measure(model())
        print(f"{name:14s} distinct {answer[name]['distinct_us']:8.2f} us   shared {answer[name]['shared_us']:8.2f} us")
    if record:
        path = Path(__file__).parent / "results" / "moments.json"
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_suffix(".tmp")
        machine = {"cores": os.cpu_count(), "python": platform.python_version()}
        temporary.write_text(json.dumps({"machine": machine, "answer": answer}, indent=2) + "\n")
        temporary.replace(path)


if __name__ == "__main__":
    main()
