"""The trained flow as a transition density: made by `train`, stored in a file, found by name, aware of its training law."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import PRNGKeyArray

from fokkerflow.densities.density import Density
from fokkerflow.densities.guard import Guard, guard
from fokkerflow.densities.registry import register
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.models import MODELS
from fokkerflow.sde.validation import parameter_vector, state_vector
from fokkerflow.training import artifact
from fokkerflow.training.certificate import Certificate, certify
from fokkerflow.training.fit import fit
from fokkerflow.training.law import Law
from fokkerflow.training.trained import Trained


@final
class Surrogate(Density):
    """A trained flow behind the interface of `Density`.

    Gaps longer than it was trained for are refused (a traced gap gives -inf): the flow does not know what comes after. Shorter
    gaps are evaluated, since the flow tends to the moments of the process there, which are known. Starts and parameters outside
    the training law are evaluated too, and `check` tells which ones they are.

    **Attributes:**

    - `trained`: flow, training law, range of gaps, and the record of how it was made.
    """

    sde: SDE
    trained: Trained

    def __init__(self, trained: Trained) -> None:
        self.sde, self.trained = trained.sde, trained

    @property
    def longest_dt(self) -> float:
        return self.trained.gaps.longest

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        return self.trained.log_density(x1, x0, dt, p, t0)

    def check(self, x0: Any, dt: Any, params: Any, t0: Any = 0.0) -> Guard:
        """What of some transitions lies outside the training law, and by how much.

        **Arguments:** as in `log_prob_batch`, with concrete values, which broadcast against each other; gaps that are too long
        are reported here, not refused.
        """
        x0, p = state_vector(self.sde, x0, "x0"), parameter_vector(self.sde, params)
        dt, t0 = np.asarray(dt, np.float64), np.asarray(t0, np.float64)
        shape = np.broadcast_shapes(x0.shape[:-1], dt.shape, p.shape[:-1], t0.shape)
        wide = [np.broadcast_to(a, shape + a.shape[-1:]) for a in (x0, p)]
        return guard(self.trained, wide[0], np.broadcast_to(dt, shape), wide[1], np.broadcast_to(t0, shape))

    @property
    def certificate(self) -> Certificate | None:
        """Bounds on the L1 error over the training law, if they have been computed."""
        data = self.trained.record.certificate
        return None if data is None else Certificate.from_dict(data)

    def certified(self, key: PRNGKeyArray, **options: Any) -> Surrogate:
        """The same density with a certificate; `options` are those of `fokkerflow.training.certify`."""
        certificate = certify(key, self.trained, **options)
        return Surrogate(self.trained.with_record(certificate=certificate.to_dict()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, for `load`."""
        artifact.save(path, self.trained)


def train(sde: SDE, law: Law | str, dt_max: float, **options: Any) -> Surrogate:
    """Train a transition density for all starts and parameters of a law, and all gaps up to `dt_max`.

    The arguments are those of `fokkerflow.training.fit`.
    """
    return Surrogate(fit(sde, law, dt_max, **options))


def load(name: str | os.PathLike[str], sde: SDE | None = None) -> Surrogate:
    """A trained density: one that comes with the package, by name, such as ``"heston"``; or any other, by its path.

    **Arguments:**

    - `name`: a name that `pretrained` lists, or the path of a file that `Surrogate.save` or `fokkerflow train` wrote.
    - `sde`: the model, if it is not one of the package's.
    """
    shipped = pretrained()
    if str(name) in shipped:
        return Surrogate(artifact.load(shipped[str(name)], sde))
    if not Path(name).exists():
        raise FileNotFoundError(
            f"{name}: there is no such file, and no density of this name comes with the package "
            f"({', '.join(shipped) or 'none does'})."
        )
    return Surrogate(artifact.load(name, sde))


def pretrained() -> dict[str, Path]:
    """The trained densities that come with the package, by name."""
    folder = Path(str(resources.files("fokkerflow"))) / "pretrained"
    return {file.stem: file for file in sorted(folder.glob(f"*{artifact.SUFFIX}"))}


def _register_pretrained() -> None:
    """``density("surrogate", sde)`` is the file that has the name of the model."""
    for name, file in pretrained().items():
        if name in MODELS:
            register("surrogate", MODELS[name])(lambda sde, file=file: Surrogate(artifact.load(file, sde)))


_register_pretrained()
