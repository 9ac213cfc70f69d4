"""How many Euler-Maruyama steps a second does simulation take, for one long path and for many?

    python benchmarks/simulation.py [--record]

Compilation is not counted. The recorded answer is in results/simulation.json.
"""

from typing import Any

from recording import best_seconds, run

from fokkerflow import BDFS, SVCEV, Heston, simulate_paths
from fokkerflow.sde.model import SDE

CASES: dict[str, tuple[SDE, dict[str, int]]] = {
    "heston, the paper's series": (Heston(), {"n": 350, "burn_in": 350, "substeps": 100, "paths": 1}),
    "heston, one long path": (Heston(), {"n": 701, "substeps": 1000, "paths": 1}),
    "heston, 1000 paths": (Heston(), {"n": 21, "substeps": 100, "paths": 1000}),
    "heston, 10000 paths": (Heston(), {"n": 5, "substeps": 100, "paths": 10_000}),
    "svcev, 1000 paths": (SVCEV(), {"n": 21, "substeps": 100, "paths": 1000}),
    "bdfs, 700 observations of 5000 steps": (BDFS(), {"n": 701, "substeps": 5000, "paths": 1}),
}


def million_steps(sde: SDE, sizes: dict[str, int]) -> dict[str, float]:
    seconds = best_seconds(lambda: simulate_paths(sde, sde.typical, dt=0.5, **sizes))
    steps = (sizes["n"] + sizes.get("burn_in", 0) - 1) * sizes["substeps"] * sizes["paths"]
    return {"seconds": round(seconds, 4), "million_steps_per_second": round(steps / seconds / 1e6, 2)}


def measure() -> dict[str, Any]:
    return {name: million_steps(*case) for name, case in CASES.items()}


if __name__ == "__main__":
    run("simulation", __doc__, measure)
