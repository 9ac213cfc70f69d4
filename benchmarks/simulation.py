"""How many Euler-Maruyama steps a second does simulation take, for one long path and for many?

    python benchmarks/simulation.py [--record]

Compilation is not counted. The recorded answer is in results/simulation.json.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

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


def measure(sde: SDE, sizes: dict[str, int]) -> dict[str, float]:
    def run() -> float:
        started = time.perf_counter()
        simulate_paths(sde, sde.typical, dt=0.5, **sizes)
        return time.perf_counter() - started

    run()
    seconds = min(run() for _ in range(5))
    steps = (sizes["n"] + sizes.get("burn_in", 0) - 1) * sizes["substeps"] * sizes["paths"]
    return {"seconds": round(seconds, 4), "million_steps_per_second": round(steps / seconds / 1e6, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the answer in results/simulation.json")
    record = parser.parse_args().record
    answer = {}
    for name, case in CASES.items():
        answer[name] = measure(*case)
        print(f"{name:40s} {answer[name]['million_steps_per_second']:8.1f} million steps/s  {answer[name]['seconds']:.3f} s")
    if record:
        path = Path(__file__).parent / "results" / "simulation.json"
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_suffix(".tmp")
        machine = {"cores": os.cpu_count(), "python": platform.python_version()}
        temporary.write_text(json.dumps({"machine": machine, "answer": answer}, indent=2) + "\n")
        temporary.replace(path)


if __name__ == "__main__":
    main()
