"""What a training produces: a flow with its weights, the law that it was trained for, and the record of how it was made."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any, final

import equinox as eqx
import jax

from fokkerflow._version import __version__
from fokkerflow.flow import AnchoredStart, Flow, weights
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.training.collocation import Gaps
from fokkerflow.training.law import Law
from fokkerflow.training.theta_path import ThetaPath

_LIBRARIES = ("jax", "jaxlib", "equinox", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Python's, ours, and those of the libraries that the numbers depend on, and the kind of device."""
    libraries = {name: metadata.version(name) for name in _LIBRARIES}
    return {"fokkerflow": __version__, "python": platform.python_version(), **libraries, "device": jax.default_backend()}


@dataclasses.dataclass(frozen=True)
class Record:
    """How a density was made and what is known about it: plain data, as it stands in the header of an artifact.

    **Arguments:**

    - `method`, `preset`, `seed`, `settings`: what `fit` was asked for; `settings` are the trainer's, in full.
    - `command`: what makes it again.
    - `history`: the residual after each step, as progress shows it.
    - `seconds`: spent training, over all runs if it was resumed.
    - `versions`: of the libraries, filled in by itself.
    - `certificate`: what `certify` found, or None.
    """

    method: str
    preset: str
    seed: int
    settings: Mapping[str, Any] = dataclasses.field(hash=False)
    command: str
    history: tuple[float, ...]
    seconds: float
    versions: Mapping[str, str] = dataclasses.field(default_factory=versions, hash=False)
    certificate: Mapping[str, Any] | None = dataclasses.field(default=None, hash=False)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Record:
        return Record(**{**data, "history": tuple(data["history"])})


@final
class Trained(eqx.Module):
    """A trained flow.

    **Attributes:**

    - `flow`: with its weights; with a `path`, those of the longest gap.
    - `path`: the weights as a function of the gap (Neural Galerkin), or None if one set serves every gap (Gauss-Newton).
    - `law`: the starts and parameters that it was trained for.
    - `gaps`: the shortest and the longest gap that it was trained for.
    - `record`: how it was made.
    """

    flow: Flow
    path: ThetaPath | None
    law: Law = eqx.field(static=True)
    gaps: Gaps = eqx.field(static=True)
    record: Record = eqx.field(static=True)

    @property
    def sde(self) -> SDE:
        return self.flow.sde

    def at(self, tau: Scalar) -> Flow:
        """The flow with the weights of gap `tau`."""
        if self.path is None:
            return self.flow
        _, with_weights = weights(self.flow)
        return with_weights(self.path.theta(tau))

    def log_density(self, x1: State, x0: State, tau: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        """log q(X_{t0+tau} = x1 | X_{t0} = x0), unbatched."""
        flow = self.at(tau)
        return flow.log_density(x1, flow.condition(t0, tau, x0, p))

    @property
    def relevant(self) -> tuple[str, ...]:
        """The states of x0 and the parameters that the law matters for.

        The construction of an anchored flow found which ones only shift the mean, like the log price and its drift in Heston's
        model: they are no inputs of the networks, the density moves with them exactly, and any value is as good as another.
        """
        states, parameters, start = tuple(self.sde.states), self.sde.parameters, self.flow.config.start
        if isinstance(start, AnchoredStart):
            return tuple(states[j] for j in start.states) + tuple(parameters[k] for k in start.parameters)
        return states + parameters

    def with_record(self, **changes: Any) -> Trained:
        """The same density with an amended record, for instance a certificate."""
        return Trained(self.flow, self.path, self.law, self.gaps, dataclasses.replace(self.record, **changes))
