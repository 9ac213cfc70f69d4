"""Bayesian inference for stochastic differential equations, with transition densities learned once.

Public names are loaded when they are first used, so that importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fokkerflow._version import __version__

if TYPE_CHECKING:
    from fokkerflow.densities import Density as Density
    from fokkerflow.densities import Surrogate as Surrogate
    from fokkerflow.densities import density as density
    from fokkerflow.densities import load as load
    from fokkerflow.densities import methods as methods
    from fokkerflow.densities import train as train
    from fokkerflow.inference import InferenceError as InferenceError
    from fokkerflow.inference import Posterior as Posterior
    from fokkerflow.inference import Prior as Prior
    from fokkerflow.inference import PriorWarning as PriorWarning
    from fokkerflow.inference import Transition as Transition
    from fokkerflow.inference import diagnose as diagnose
    from fokkerflow.inference import log_likelihood as log_likelihood
    from fokkerflow.inference import log_likelihoods as log_likelihoods
    from fokkerflow.inference.calibration import calibrate as calibrate
    from fokkerflow.inference.guard_share import guard_share as guard_share
    from fokkerflow.inference.importance import importance as importance
    from fokkerflow.inference.pit import pit as pit
    from fokkerflow.inference.predictive import forecast as forecast
    from fokkerflow.inference.predictive import one_step as one_step
    from fokkerflow.inference.predictive import replicate as replicate
    from fokkerflow.sde import BDFS as BDFS
    from fokkerflow.sde import CIR as CIR
    from fokkerflow.sde import GBM as GBM
    from fokkerflow.sde import MODELS as MODELS
    from fokkerflow.sde import OU as OU
    from fokkerflow.sde import SDE as SDE
    from fokkerflow.sde import SVCEV as SVCEV
    from fokkerflow.sde import Constraint as Constraint
    from fokkerflow.sde import ConstraintError as ConstraintError
    from fokkerflow.sde import Domain as Domain
    from fokkerflow.sde import DoubleWell as DoubleWell
    from fokkerflow.sde import Heston as Heston
    from fokkerflow.sde import Jacobi as Jacobi
    from fokkerflow.sde import SeasonalOU as SeasonalOU
    from fokkerflow.sde import Series as Series
    from fokkerflow.sde import from_functions as from_functions
    from fokkerflow.sde import moments as moments
    from fokkerflow.sde import simulate as simulate
    from fokkerflow.sde import simulate_paths as simulate_paths
    from fokkerflow.training import Law as Law
    from fokkerflow.training import LogUniform as LogUniform
    from fokkerflow.training import ShareOfRange as ShareOfRange
    from fokkerflow.training import TruncatedNormal as TruncatedNormal
    from fokkerflow.training import Uniform as Uniform

_SDE = (
    "BDFS", "CIR", "GBM", "MODELS", "OU", "SDE", "SVCEV", "Constraint", "ConstraintError", "Domain", "DoubleWell", "Heston",
    "Jacobi", "SeasonalOU", "Series", "from_functions", "moments", "simulate", "simulate_paths",
)  # fmt: skip
_INFERENCE = (
    "InferenceError", "Posterior", "Prior", "PriorWarning", "Transition", "diagnose", "log_likelihood", "log_likelihoods",
)  # fmt: skip
_HOME = {
    **dict.fromkeys(_SDE, "fokkerflow.sde"),
    **dict.fromkeys(("Law", "LogUniform", "ShareOfRange", "TruncatedNormal", "Uniform"), "fokkerflow.training"),
    **dict.fromkeys(("Density", "Surrogate", "density", "load", "methods", "train"), "fokkerflow.densities"),
    **dict.fromkeys(_INFERENCE, "fokkerflow.inference"),
    **{check: f"fokkerflow.inference.{check}" for check in ("guard_share", "importance", "pit")},
    **dict.fromkeys(("forecast", "one_step", "replicate"), "fokkerflow.inference.predictive"),
    "calibrate": "fokkerflow.inference.calibration",
}
_STAGES = ("sde", "fokker_planck", "flow", "training", "densities", "inference", "report")

__all__ = ["__version__", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _STAGES:
        return importlib.import_module(f"fokkerflow.{name}")
    raise AttributeError(f"module 'fokkerflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_STAGES])
