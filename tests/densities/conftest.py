"""One compiled Heston density for all tests of this folder: batches are padded to one size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.densities import density
from fokkerflow.sde.models import Heston

SIZE = 2048


@pytest.fixture(scope="session")
def heston():
    exact = density("exact", Heston())
    compiled = jax.jit(jax.vmap(lambda x1, x0, dt, p: exact.log_density(x1, x0, dt, p, jnp.zeros(()))))

    def log_density(x1, x0, dt, p):
        shape = np.broadcast_shapes(np.shape(x1)[:-1], np.shape(x0)[:-1], np.shape(dt), np.shape(p)[:-1])
        n = int(np.prod(shape))
        rows = [
            np.broadcast_to(a, (*shape, k)).reshape(n, k) for a, k in ((x1, 2), (x0, 2), (np.asarray(dt)[..., None], 1), (p, 5))
        ]
        chunks = []
        for start in range(0, n, SIZE):
            part = [np.resize(r[start : start + SIZE], (SIZE, r.shape[1])) for r in rows]
            chunks.append(np.asarray(compiled(part[0], part[1], part[2][:, 0], part[3])))
        return np.concatenate(chunks)[:n].reshape(shape)

    return log_density
