"""Is the *model* wrong? PIT residuals of the data under the posterior (Rosenblatt 1952; Diebold, Gunther and Tay 1998).

    u_i = F(x_{i+1} | x_i, theta) ,   one coordinate after the other, averaged over posterior draws of theta

If the model is right they are uniform on (0, 1), independent of each other over time and between coordinates, and of the
state x_i. Each of that is tested. The posterior has seen the data, which makes the residuals a little too uniform, and the
tests cautious.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from fokkerflow.densities.density import Density, check_gaps
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.conditional import by_flow, by_integration, by_simulation
from fokkerflow.inference.draws import exactly, parameter_draws, pooled, thinned
from fokkerflow.inference.likelihood import transitions
from fokkerflow.inference.pit_tests import FEWEST, PITTest, run_tests
from fokkerflow.inference.predictive import one_step
from fokkerflow.inference.steps import Steps, steps
from fokkerflow.sde.series import Series

METHODS = ("flow", "integration", "simulation")
DRAWS = {"flow": 50, "integration": 50, "simulation": 500}
WRONG, DOUBTFUL = 0.01, 0.05
"""Levels of the smallest p-value, times the number of tests (Bonferroni)."""
_EDGE = 1e-15


@dataclass(frozen=True)
class PIT:
    """Residuals, and what the tests say about them.

    **Attributes:**

    - `values`: of shape ``(n, d)``, uniform if the model is right; row i belongs to the state at ``times[i]``.
    - `times`, `series`: when, and in which series.
    - `states`: names of the coordinates.
    - `tests`: see `fokkerflow.inference.pit_tests`.
    - `distance`: of each coordinate, the largest difference between its distribution function and the uniform one: how wrong,
      where a p-value says how surely.
    - `method`: ``"flow"``, ``"integration"`` or ``"simulation"``; `draws`: how many posterior draws were averaged over.
    - `mass`: by integration only, the value furthest from 1 that the density integrates to.
    """

    values: Float[np.ndarray, "n d"]
    times: Float[np.ndarray, " n"]
    series: Int[np.ndarray, " n"]
    states: tuple[str, ...]
    tests: tuple[PITTest, ...]
    distance: tuple[float, ...]
    method: str
    draws: int
    mass: float | None = None

    @property
    def p_value(self) -> float:
        """Of all tests together: the smallest, times their number."""
        return min(1.0, len(self.tests) * min(test.p_value for test in self.tests)) if self.tests else 1.0

    @property
    def ok(self) -> bool:
        return self.p_value >= WRONG

    @property
    def failed(self) -> list[PITTest]:
        """The tests that speak against the model, the surest first."""
        limit = (WRONG if self.p_value < WRONG else DOUBTFUL) / max(1, len(self.tests))
        return sorted((t for t in self.tests if t.p_value < limit), key=lambda t: t.p_value)

    @property
    def verdict(self) -> str:
        """In one or two sentences."""
        if not self.tests:
            return f"The data have {len(self.values)} transitions: too few to judge the model by, {FEWEST} are needed."
        what = " ".join(test.finding for test in self.failed)
        if self.p_value < WRONG:
            return f"The model is wrong for these data. {what}"
        if self.p_value < DOUBTFUL:
            return f"The model is doubtful. {what}"
        return f"Nothing in the {len(self.values)} transitions speaks against the model."

    def message(self) -> str:
        """The verdict, and every test."""
        how = {
            "flow": "by the flow's own distribution functions",
            "integration": "by integrating the density",
            "simulation": "by ranks among simulated states",
        }[self.method]
        lines = [self.verdict, f"Residuals {how}, averaged over {self.draws} posterior draws; p = {self.p_value:.2g} overall:"]
        lines += [f"- {test.question}: p = {test.p_value:.2g}" for test in self.tests]
        lines += [f"- {s}: distribution within {d:.3f} of uniform" for s, d in zip(self.states, self.distance, strict=True)]
        if self.mass is not None and abs(self.mass - 1) > 0.01:
            lines.append(f"The density integrates to {self.mass:.3g} where it is furthest from 1: is it one, or very rough?")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the residuals."""
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "p_value": self.p_value,
            "method": self.method,
            "draws": self.draws,
            "mass": self.mass,
            "distance": dict(zip(self.states, self.distance, strict=True)),
            "tests": [test.to_dict() for test in self.tests],
        }


def pit(
    density: Density,
    series: Series | Sequence[Series],
    draws: Any,
    *,
    method: str = "auto",
    at_most: int | None = None,
    substeps: int = 100,
    seed: int = 0,
) -> PIT:
    """PIT residuals of the data under the posterior, and tests of them.

    **Arguments:**

    - `density`: what the posterior was made with.
    - `series`: the data, one series or several.
    - `draws`: posterior draws; see `fokkerflow.inference.draws.parameter_draws`.
    - `method`: ``"flow"`` for a trained density; ``"integration"`` for any density in one dimension; ``"simulation"`` for any
      model: it needs no density, and does not inherit the errors of one. ``"auto"`` takes the first that is possible.
    - `at_most`: posterior draws to average over; 50, or 500 by simulation, whose residuals are ranks among as many states.
    - `substeps`, `seed`: of the simulation.

    ```python
    print(pit(density, series, posterior).message())
    ```
    """
    method = _chosen(density, method)
    data = steps(density.sde, series)
    chains = thinned(parameter_draws(density.sde, draws), DRAWS[method] if at_most is None else at_most)
    values, mass = _residuals(density, series, data, pooled(chains), method, at_most, substeps, seed)
    if not np.all(np.isfinite(values)):
        i, j = np.argwhere(~np.isfinite(values))[0]
        where = f"{list(density.sde.states)[j]} at time {data.t0[i] + data.dt[i]:.7g}"
        raise ValueError(
            f"{density.sde.label}: the residual of {where} is not a number by {method}: the density is zero or undefined. "
            "Use method='simulation'."
        )
    u = np.clip(values, _EDGE, 1 - _EDGE)
    times, names = data.t0 + data.dt, tuple(density.sde.states)
    tests, distances = run_tests(u, data, names)
    return PIT(u, times, data.series, names, tests, distances, method, chains.shape[0] * chains.shape[1], mass)


def _chosen(density: Density, method: str) -> str:
    possible = ["flow"] * isinstance(density, Surrogate) + ["integration"] * (density.sde.dimension == 1) + ["simulation"]
    if method == "auto":
        return possible[0]
    if method not in METHODS:
        raise ValueError(f"Got method={method!r}, expected 'auto' or one of {', '.join(map(repr, METHODS))}.")
    if method not in possible:
        need = {"flow": "a trained density", "integration": "one dimension"}[method]
        raise ValueError(f"Method {method!r} needs {need}; for this density there is {', '.join(map(repr, possible))}.")
    return method


def _residuals(
    density: Density,
    series: Series | Sequence[Series],
    data: Steps,
    p: Float[np.ndarray, "k n_p"],
    method: str,
    at_most: int | None,
    substeps: int,
    seed: int,
) -> tuple[Float[np.ndarray, "n d"], float | None]:
    if method == "simulation":
        paths = exactly(p, DRAWS[method] if at_most is None else at_most)
        predicted = one_step(density.sde, series, paths, paths=len(paths), substeps=substeps, seed=seed)
        return by_simulation(np.random.default_rng(seed), predicted), None
    check_gaps(density, data.dt)
    padded = transitions(density.sde, series)
    if method == "flow" and isinstance(density, Surrogate):
        return by_flow(density, padded, p), None
    found = by_integration(density, padded, p)
    return found.values, float(found.mass[np.argmax(np.abs(found.mass - 1))])
