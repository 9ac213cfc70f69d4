"""How accurate are expansions of the transition density in the time gap, at the paper's gaps?

    python benchmarks/expansions.py [--record]

Relative errors of the log likelihood at mu* over 25 trajectories made by the paper's recipe, seeds 1 to 25, beside the paper's
single numbers; the reference is exact (Heston) or good to 1e-6 (SVCEV). Where the Ito-Taylor expansion is negative its log
likelihood is -inf, so what is given is the error of the other transitions, with the share that is left out. The variants
are what one could also mean by "order 2": other coordinates, one order less or more, more degrees in x - x0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from errors import star, trajectory
from recording import best_seconds, run

from fokkerflow.densities import density
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import SVCEV, Heston

SEEDS = range(1, 26)
CASES = {
    "heston 0.5": (Heston(), "exact", 0.5, 350, {"ait-sahalia": 6.4e-3, "ito-taylor": 9.3e-3}),
    "heston 1": (Heston(), "exact", 1.0, 200, {"ait-sahalia": 0.1934, "ito-taylor": 0.0441}),
    "svcev 0.5": (SVCEV(), "fourier", 0.5, 100, {"ait-sahalia": 6.3e-3, "ito-taylor": 9.1e-3}),
}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("ait-sahalia", {}),
    ("ait-sahalia", {"order": 1}),
    ("ait-sahalia", {"coordinates": "log"}),
    ("ait-sahalia", {"coordinates": "root"}),
    ("ait-sahalia", {"extra_degree": 1}),
    ("ito-taylor", {}),
    ("ito-taylor", {"centre": "drift"}),
]


def transitions(sde: SDE, dt: float, n: int) -> tuple[Any, Any]:
    """Ends and starts of all transitions, one row for each trajectory."""
    rows = [trajectory(sde, dt, n, seed).transitions() for seed in SEEDS]
    return tuple(np.stack([row[i] for row in rows]) for i in (1, 0))  # type: ignore[return-value]


def errors(found: Any, exact: Any, paper: float) -> dict[str, Any]:
    negative = np.isneginf(found)
    difference = np.where(negative, 0.0, found - exact).sum(1)
    relative = np.abs(difference / exact.sum(1))
    quantiles = dict(zip(("least", "median", "largest"), np.quantile(relative, [0, 0.5, 1]).tolist(), strict=True))
    below = float(np.mean(relative <= paper))
    return quantiles | {"paper": paper, "trajectories not above the paper": below, "negative share": float(np.mean(negative))}


def measure() -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for name, (sde, reference, dt, n, paper) in CASES.items():
        x1, x0 = transitions(sde, dt, n)
        exact = np.asarray(density(reference, sde).log_prob_batch(x1, x0, dt, star(sde)[0]))
        for method, options in VARIANTS:
            found = density(method, sde, **options)
            label = ", ".join([name, method, *(f"{key} {value}" for key, value in options.items())])
            row = errors(np.asarray(found.log_prob_batch(x1, x0, dt, star(sde)[0])), exact, paper[method])
            seconds = best_seconds(found.log_prob_batch, x1, x0, dt, star(sde)[0], repeats=3)
            answer[label] = row | {"microseconds a transition": round(1e6 * seconds / exact.size, 2)}
            print(label, answer[label], flush=True)
    return answer


if __name__ == "__main__":
    run("expansions", __doc__, measure)
