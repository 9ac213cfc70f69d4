"""What do mean and covariance of one transition cost, in microseconds?

    python benchmarks/moments.py [--record]

"distinct": every transition has its own gap, start and parameters, as in training. "shared": one gap and one parameter for
all, as in the likelihood of an equally spaced series. Compilation is not counted. The recorded answer is in
results/moments.json.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from recording import best_seconds, run

from fokkerflow import MODELS, SDE, moments
from fokkerflow.sde.polynomial import polynomial_structure
from fokkerflow.sde.probing import sample_parameters, sample_states

BATCH = 4000


def microseconds(sde: SDE) -> dict[str, Any]:
    x, p = jnp.array(sample_states(sde, BATCH)), jnp.array(np.resize(sample_parameters(sde, 200), (BATCH, len(sde.parameters))))
    dt = jnp.array(np.linspace(0.01, 1.0, BATCH))

    def one(dt: Any, x: Any, p: Any) -> Any:
        return moments(sde, 0.0, dt, x, p)

    distinct = best_seconds(jax.jit(jax.vmap(one)), dt, x, p)
    shared = best_seconds(jax.jit(jax.vmap(one, (None, 0, None))), dt[-1], x, p[0])
    return {
        "exact": polynomial_structure(sde) is not None,
        "distinct_us": round(1e6 * distinct / BATCH, 3),
        "shared_us": round(1e6 * shared / BATCH, 3),
    }


def measure() -> dict[str, Any]:
    return {name: microseconds(model()) for name, model in MODELS.items()}


if __name__ == "__main__":
    run("moments", __doc__, measure)
