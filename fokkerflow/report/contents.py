"""What a report is made from: the results of an inference, and whatever checks of them there are."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from fokkerflow.densities.density import Density
from fokkerflow.inference.draws import parameter_draws
from fokkerflow.report.checks import Checks
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series

if TYPE_CHECKING:
    from fokkerflow.inference.diagnostics import Diagnosis

QUANTILES = (0.05, 0.5, 0.95)
"""Of each parameter, in ``summary.csv``."""


@dataclass(frozen=True)
class Contents:
    """The results of an inference.

    **Arguments:**

    - `density`, `series`, `idata`: what the posterior was sampled with, from, and the result.
    - `name`: what the density was asked for as, such as ``"exact"``.
    - `checks`: what was checked.
    - `truth`: the parameters that simulated data were made with, to be marked; empty if nobody knows.
    - `record`: command, data files and times, as in ``run.json``.
    """

    density: Density
    series: Sequence[Series]
    idata: Any
    name: str = ""
    checks: Checks = field(default_factory=Checks)
    truth: Mapping[str, float] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sde(self) -> SDE:
        return self.density.sde

    @functools.cached_property
    def chains(self) -> dict[str, Float[np.ndarray, "c n"]]:
        """The draws of each parameter."""
        draws = parameter_draws(self.sde, self.idata)
        return {name: draws[..., i] for i, name in enumerate(self.sde.parameters)}

    @property
    def prior(self) -> dict[str, Float[np.ndarray, " k"]]:
        """Draws of the prior by parameter; empty if there are none."""
        group = getattr(self.idata, "prior", None)
        return {} if group is None else {n: group[n].values.ravel() for n in self.sde.parameters if n in group.data_vars}

    @functools.cached_property
    def diagnosis(self) -> Diagnosis:
        """Whether the chains converged."""
        from fokkerflow.inference.diagnostics import diagnose  # ArviZ takes seconds to import

        return diagnose(self.idata)

    @functools.cached_property
    def summary(self) -> list[dict[str, Any]]:
        """For each parameter: mean, sd, quantiles, Monte Carlo error, effective sizes and R-hat."""
        return [self._summarised(name, chains.ravel()) for name, chains in self.chains.items()]

    def _summarised(self, name: str, draws: Float[np.ndarray, " n"]) -> dict[str, Any]:
        found = self.diagnosis
        quantiles = {f"q{round(100 * q)}": float(np.quantile(draws, q)) for q in QUANTILES}
        numbers = {"mcse_mean": found.mcse, "ess_bulk": found.ess_bulk, "ess_tail": found.ess_tail, "r_hat": found.r_hat}
        return {
            "parameter": name,
            "mean": float(draws.mean()),
            "sd": found.sd[name],
            **quantiles,
            **{key: values[name] for key, values in numbers.items()},
        }
