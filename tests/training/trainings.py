"""Small trainings that several tests share, each made once."""

from __future__ import annotations

import functools
from typing import Any

from fokkerflow.sde.functions import FunctionSDE, from_functions
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import CIR, OU
from fokkerflow.training import Gaps, Law, Record, Trained, TruncatedNormal, Uniform, fit
from fokkerflow.training.presets import AnchoredFlow

CIR_LAW = Law(
    CIR(),
    {"v": Uniform(0.02, 0.25)},
    {"alpha": TruncatedNormal(0.1, 0.03, 0.04), "beta": TruncatedNormal(3.0, 0.2, 0.0), "sigma": Uniform(0.15, 0.35)},
)
OU_LAW = Law(OU(), {"x": Uniform(-1, 1)}, {"kappa": Uniform(0.5, 4), "mean": Uniform(-1, 1), "sigma": Uniform(0.1, 0.5)})
TINY: dict[str, Any] = {"components": 2, "width": 4, "depth": 1, "points": 100, "iterations": 6}


def reverting(speed: float = 1.0) -> FunctionSDE:
    """A user's own model."""
    return from_functions(
        lambda x, p: speed * p.kappa * (0.5 - x),
        lambda x, p: p.sigma**2,
        states={"x": "real"},
        parameters={"kappa": 2.0, "sigma": 0.3},
        constraints=["kappa > 0", "sigma > 0"],
        name="reverting",
    )


def law_of(sde: SDE) -> Law:
    """A law for a model without one of its own: all parameters within a third of their typical values."""
    parameters = {name: Uniform(*sorted((value / 1.5, value * 1.5))) for name, value in sde.typical.items()}
    return Law(sde, {name: Uniform(0, 1) for name in sde.states}, parameters, None if sde.autonomous else Uniform(0, 1))


def untrained(law: Law, dt_max: float = 1.0) -> Trained:
    """What a training of no iterations gives: all that is stored, with the first weights."""
    gaps = Gaps(1e-3 * dt_max, dt_max)
    record = Record("gauss-newton", "fast", 0, {"points": 100}, "fokkerflow.train(...)", (0.1, 0.05), 1.5)
    return Trained(AnchoredFlow(components=2, width=4, depth=1).build(law, gaps, seed=0), None, law, gaps, record)


@functools.cache
def small_cir() -> Trained:
    """Good to about three digits."""
    return fit(CIR(), CIR_LAW, 0.5, components=5, width=8, points=800, iterations=25)
