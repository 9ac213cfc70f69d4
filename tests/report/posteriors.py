"""A posterior that is known in closed form, as the inference stage would return it: independent draws, no sampler."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

from fokkerflow.densities import density
from fokkerflow.inference._arviz import arviz
from fokkerflow.report.checks import run_checks
from fokkerflow.report.contents import Contents
from fokkerflow.sde import OU, Series, simulate

DT = 0.25


@functools.cache
def ou_series() -> Series:
    return simulate(OU(), OU.typical, dt=DT, n=60, burn_in=50, seed=3)


def ou_draws(series: Series, shape: tuple[int, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Draws given the data under the flat prior of (c, phi, log s) in x' = c + phi x + s e, where the posterior is normal
    given s and s^2 is inverse chi-squared (Zellner 1971, chapter 3): kappa = -log(phi)/dt, mean = c/(1 - phi)."""
    rng = np.random.default_rng(seed)
    x, y = series.states[:-1, 0], series.states[1:, 0]
    design = np.column_stack([np.ones_like(x), x])
    gram = design.T @ design
    centre = np.linalg.solve(gram, design.T @ y)
    s2 = np.sum((y - design @ centre) ** 2) / rng.chisquare(len(y) - 2, shape)
    root = np.linalg.cholesky(np.linalg.inv(gram))
    c, phi = np.moveaxis(centre + np.sqrt(s2)[..., None] * (rng.standard_normal((*shape, 2)) @ root.T), -1, 0)
    kappa = -np.log(np.clip(phi, 1e-3, 1 - 1e-3)) / DT
    return {"kappa": kappa, "mean": c / (1 - phi), "sigma": np.sqrt(s2 * 2 * kappa / (1 - phi**2))}


def ou_idata(draws: int = 400, **changes: Any) -> Any:
    """As `Posterior.sample` returns it."""
    series, rng = ou_series(), np.random.default_rng(1)
    prior = {
        "kappa": rng.uniform(0, 8, (1, 500)),
        "mean": rng.uniform(0, 1, (1, 500)),
        "sigma": rng.uniform(0.1, 0.6, (1, 500)),
    }
    idata = arviz.from_dict(
        posterior=ou_draws(series, (4, draws)) | changes,
        prior=prior,
        sample_stats={"diverging": np.zeros((4, draws), bool)},
        observed_data={"x": series.states[:, 0]},
        coords={"time": series.times},
        dims={"x": ["time"]},
        pred_dims={},
    )
    idata.observed_data.coords["series"] = ("time", np.zeros(len(series), int))
    versions = json.dumps({"fokkerflow": "0.0", "jax": "0.0"})
    idata.posterior.attrs.update(density="OUDensity", artifact="", sde="OU", seed=1, sampler="nuts", prior="flat", seconds=1.5)
    idata.posterior.attrs.update(versions=versions)
    return idata


@functools.cache
def ou_contents() -> Contents:
    """A report's contents with every check."""
    exact, series, idata = density("exact", OU()), [ou_series()], ou_idata()
    record = {"command": "fokkerflow infer data.csv --model ou --out out", "data": [{"path": "data.csv", "sha256": "ab" * 32}]}
    checks = run_checks(exact, series, idata, reference=("exact", exact))
    return Contents(exact, series, idata, "exact", checks, dict(OU.typical), record)
