"""Settings of Neural Galerkin."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fokkerflow.training.galerkin_solve import METHODS, LeastSquares
from fokkerflow.training.galerkin_system import DRAWS, FORMS


@dataclass(frozen=True)
class NeuralGalerkin:
    """Settings of the trainer.

    **Arguments:**

    - `points`: points of one step, the paper's N; two or more per weight that the density feels.
    - `tau0`: where the march begins. None is 0 for the paper's flow, whose start does not depend on tau, and the shortest gap
      of the training for an anchored one, which is the Gaussian of the moments up to there.
    - `form`: "log" for the equation of log q, which treats narrow and wide densities alike (the paper's choice for SVCEV), or
      "density" for that of q (its choice for Heston), where conditions with narrow densities outweigh all others.
    - `draws`: "approximate" (the paper's Algorithm 2) or "exact".
    - `spreads`: factors on the widths of approximate draws, dealt out in turn; (1.0,) is the paper's.
    - `cutoff`: right-hand sides beyond this many medians are weighted down; None for plain squares, as in the paper. A few
      points next to an inaccessible boundary can otherwise decide a step.
    - `solver`, `damping`, `lsmr_tolerance`, `lsmr_iterations`: see `fokkerflow.training.galerkin_solve.LeastSquares`. More
      damping makes the motion less stiff and less accurate.
    - `zero_flux`: the paper's epsilon of the penalty on the flux through the artificial boundary, or None for no penalty.
    - `tolerance`: accepted error of a step, root mean square over its points, in log q.
    - `first_step`: the first length tried, as a share of the longest gap. A start of width w in a chart where the noise has
      variance s^2 per unit of time changes on the scale (w / s)^2; too short a first step costs a few steps more, too long a
      one some refused attempts.
    - `max_refusals`: attempts refused in a row after which the march is given up.
    """

    points: int = 4096
    tau0: float | None = None
    form: str = "log"
    draws: str = "approximate"
    spreads: tuple[float, ...] = (1.0,)
    cutoff: float | None = None
    solver: str = "cholesky"
    damping: float = 1e-6
    lsmr_tolerance: float = 1e-8
    lsmr_iterations: int = 1000
    zero_flux: float | None = None
    tolerance: float = 3e-3
    first_step: float = 1e-6
    max_refusals: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "spreads", tuple(float(s) for s in self.spreads))
        for name in ("points", "damping", "lsmr_tolerance", "lsmr_iterations", "tolerance", "first_step"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"NeuralGalerkin needs {name} > 0, got {getattr(self, name)}.")
        for name in ("cutoff", "zero_flux"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"NeuralGalerkin needs {name} > 0 or None, got {value}.")
        for name, kinds in (("form", FORMS), ("draws", DRAWS), ("solver", METHODS)):
            if getattr(self, name) not in kinds:
                raise ValueError(f"Got {name}={getattr(self, name)!r}, expected one of {', '.join(kinds)}.")
        if self.draws == "exact" and set(self.spreads) != {1.0}:
            raise ValueError(f"Exact draws cannot be spread: got spreads={self.spreads}; take approximate draws, or (1.0,).")

    @property
    def least_squares(self) -> LeastSquares:
        return LeastSquares(self.solver, self.damping, self.lsmr_tolerance, self.lsmr_iterations)
