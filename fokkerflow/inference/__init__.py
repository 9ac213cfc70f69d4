"""From data to conclusions.

Names are loaded when they are first used: BlackJAX, NumPyro and ArviZ take seconds to import.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fokkerflow.inference.chains import Progress as Progress
    from fokkerflow.inference.diagnostics import Diagnosis as Diagnosis
    from fokkerflow.inference.diagnostics import diagnose as diagnose
    from fokkerflow.inference.errors import InferenceError as InferenceError
    from fokkerflow.inference.estimate import Estimate as Estimate
    from fokkerflow.inference.evidence import Evidence as Evidence
    from fokkerflow.inference.likelihood import Transitions as Transitions
    from fokkerflow.inference.likelihood import log_likelihood as log_likelihood
    from fokkerflow.inference.likelihood import log_likelihoods as log_likelihoods
    from fokkerflow.inference.likelihood import transitions as transitions
    from fokkerflow.inference.numpyro_density import Transition as Transition
    from fokkerflow.inference.posterior import Posterior as Posterior
    from fokkerflow.inference.prior import Prior as Prior
    from fokkerflow.inference.prior import PriorWarning as PriorWarning
    from fokkerflow.inference.profile import Profile as Profile

_HOME = {
    **dict.fromkeys(("Transitions", "log_likelihood", "log_likelihoods", "transitions"), "likelihood"),
    **dict.fromkeys(("Prior", "PriorWarning"), "prior"),
    **dict.fromkeys(("Diagnosis", "diagnose"), "diagnostics"),
    "Estimate": "estimate",
    "Evidence": "evidence",
    "Posterior": "posterior",
    "Profile": "profile",
    "Transition": "numpyro_density",
    "Progress": "chains",
    "InferenceError": "errors",
}

__all__ = [*_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"fokkerflow.inference.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fokkerflow.inference' has no attribute {name!r}")
