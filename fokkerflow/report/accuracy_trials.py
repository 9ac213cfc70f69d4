"""What densities are tried on: simulated trajectories at mu*, parameters of a test law, and nodes for the L2 error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fokkerflow.report.accuracy_nodes import Nodes, l2_nodes
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series
from fokkerflow.sde.simulate import simulate
from fokkerflow.sde.validation import parameter_vector
from fokkerflow.training.law import Law

SUBSTEPS = 100


class Jobs(NamedTuple):
    """Sets of transitions of one size, each under its own parameters."""

    x1: Float[np.ndarray, "k n d"]
    x0: Float[np.ndarray, "k n d"]
    t0: Float[np.ndarray, "k n"]
    p: Float[np.ndarray, "k n_p"]

    def part(self, start: int, stop: int) -> Jobs:
        return Jobs(*(a[start:stop] for a in self))


@dataclass(frozen=True)
class Trials:
    """What all densities of a model are tried on, for one time gap.

    **Attributes:**

    - `star`: one job for each trajectory, at the parameters that made it (the paper's mu*).
    - `law`: one job for each draw of the test law, on the trajectories in turn.
    - `nodes`: for the L2 errors of several densities, those of one after the other; the starts and parameters are draws of the
      test law, or without a law states of the trajectories and mu*. The last job of a density may repeat its last node.
    - `log_weight`: of the nodes of each density, without such repetitions.
    """

    sde: SDE
    dt: float
    star: Jobs
    law: Jobs
    nodes: Jobs
    log_weight: Float[np.ndarray, "k m"]

    @property
    def size(self) -> int:
        """Transitions of a job."""
        return self.star.x1.shape[1]

    @property
    def jobs_a_density(self) -> int:
        return len(self.nodes.p) // len(self.log_weight)


def star(sde: SDE) -> Float[np.ndarray, "1 n"]:
    """The parameters mu* of the paper's data."""
    return np.array([[sde.typical[name] for name in sde.parameters]])


def trajectory(
    sde: SDE, dt: float, n: int, seed: int, substeps: int = SUBSTEPS, params: Mapping[str, float] | None = None
) -> Series:
    """The paper's data: `n` observations at mu* (or other parameters), after as many that are dropped."""
    return simulate(sde, params or sde.typical, dt=dt, n=n, burn_in=n, substeps=substeps, seed=seed)


def trials(
    sde: SDE,
    dt: float,
    law: Law | None,
    *,
    n: int,
    trajectories: int,
    draws: int,
    params: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Trials:
    """Simulate trajectories with the seeds after `seed`, and draw from the law.

    **Arguments:**

    - `law`: of starts and parameters for the test; without one only mu* is tried.
    - `n`: observations of a trajectory, after as many that are dropped.
    - `draws`: of the law, or starts on the trajectories without one.
    - `params`: mu*, by name; the model's typical parameters if left out.
    """
    for value, least, what in ((n, 2, "n"), (trajectories, 1, "trajectories"), (draws, 1, "draws")):
        if value < least:
            raise ValueError(f"Got {what} = {value}, expected at least {least}.")
    mu = dict(params or sde.typical)
    every = [trajectory(sde, dt, n, seed + i, params=mu) for i in range(1, trajectories + 1)]
    here = np.asarray(parameter_vector(sde, mu))[None]
    if law is None:
        rows = np.concatenate([one.states for one in every])
        x0, p = rows[np.linspace(0, len(rows) - 1, draws).astype(int)], np.repeat(here, draws, 0)
    else:
        x0, p = law.sample(np.random.default_rng(seed + 1), draws)
    at_star = _jobs(every, np.repeat(here, trajectories, 0))
    of_law = at_star.part(0, 0) if law is None else _jobs([every[i % trajectories] for i in range(draws)], p)
    at = l2_nodes(sde, dt, x0, p)
    return Trials(sde, dt, at_star, of_law, _node_jobs(at, x0, p, n - 1), at.log_weight)


def _jobs(series: Sequence[Series], p: Float[np.ndarray, "k n_p"]) -> Jobs:
    """The transitions of some series, each under its own parameters."""
    x0, x1, _, t0 = (np.stack(parts) for parts in zip(*(one.transitions() for one in series), strict=True))
    return Jobs(x1, x0, t0, p)


def _node_jobs(at: Nodes, x0: Float[np.ndarray, "k d"], p: Float[np.ndarray, "k n_p"], size: int) -> Jobs:
    k, m, d = at.x.shape
    each = -(-m // size)
    rows = np.minimum(np.arange(each * size), m - 1)
    x1 = at.x[:, rows].reshape(k * each, size, d)
    wide = np.broadcast_to(np.repeat(x0, each, 0)[:, None], x1.shape)
    return Jobs(x1, wide, np.zeros(x1.shape[:2]), np.repeat(p, each, 0))
