"""Has the sampling converged? R-hat, effective sample sizes, Monte Carlo errors and divergences, judged in words.

Rank-normalised split R-hat, bulk and tail effective sample size, and the Monte Carlo standard error: Vehtari, Gelman, Simpson,
Carpenter and Bürkner (2021); from ArviZ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fokkerflow.inference._arviz import arviz

R_HAT = 1.01
"""Chains agree below this (Vehtari et al.)."""
ESS_PER_CHAIN = 100
"""Effective draws per chain that R-hat and standard errors need to be reliable (Vehtari et al.)."""
DIVERGENT = 1e-3
"""A larger share of divergent draws is a problem; single ones happen without a reason."""
STUCK = 1e-6
"""A chain whose standard deviation is below this share of that of all is one that did not move."""
_LONG_TREE = 10
ESCAPED = 1e4
FAR = 1e30
"""A parameter whose draws reach the first multiple of their lower quartile, in size, or of the second, is off to infinity."""


@dataclass(frozen=True)
class Diagnosis:
    """What the chains say about themselves.

    **Attributes:**

    - `r_hat`, `ess_bulk`, `ess_tail`, `mcse`: by name of the parameter; `mcse` is that of the mean.
    - `sd`: the posterior standard deviations, in which `mcse` is to be read.
    - `divergences`: after warm-up; None for a sampler without.
    - `problems`: what is wrong, a sentence each; none if all is well.
    - `advice`: what to do about it.
    """

    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]
    mcse: Mapping[str, float]
    sd: Mapping[str, float]
    divergences: int | None
    draws: int
    chains: int
    problems: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> str:
        """In one sentence."""
        worst, least = max(self.r_hat.values()), min([*self.ess_bulk.values(), *self.ess_tail.values()])
        if not self.ok:
            return "The sampling should not be relied on: " + " ".join(self.problems)
        few = f", and {self.divergences} of {self.draws * self.chains} draws diverged, too few to matter"
        clean = "" if self.divergences is None else few if self.divergences else ", and nothing diverged"
        return f"The chains agree (R-hat at most {worst:.4f}), every parameter has at least {least:.0f} effective draws{clean}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for files and machines."""
        tables = {name: dict(getattr(self, name)) for name in ("r_hat", "ess_bulk", "ess_tail", "mcse", "sd")}
        words = {"verdict": self.verdict, "problems": list(self.problems), "advice": list(self.advice)}
        return {"ok": self.ok, **tables, "divergences": self.divergences, **words}

    def __str__(self) -> str:
        width = max(map(len, self.r_hat))
        head = f"{'':{width}}  {'R-hat':>7} {'bulk ESS':>9} {'tail ESS':>9} {'MCSE/sd':>8}"
        rows = [
            f"{n:{width}}  {r_hat:7.4f} {self.ess_bulk[n]:9.0f} {self.ess_tail[n]:9.0f} {self.mcse[n] / self.sd[n]:8.4f}"
            for n, r_hat in self.r_hat.items()
        ]
        return "\n".join([head, *rows, self.verdict, *self.advice])


def diagnose(data: Any) -> Diagnosis:
    """Judge the draws of `Posterior.sample`, or any InferenceData whose posterior variables are numbers.

    **Arguments:**

    - `data`: ArviZ InferenceData.
    """
    posterior = data.posterior
    names = list(posterior.data_vars)
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    values = {name: np.asarray(posterior[name].values) for name in names}
    constant = [name for name in names if not np.ptp(values[name]) > 0]
    if draws < 4 or constant:
        raise ValueError(
            f"Got {draws} draws in each chain"
            + (f", all equal for {', '.join(constant)}" if constant else "")
            + ": expected at least 4, and not all the same."
        )
    numbers: dict[str, dict[str, float]] = {
        "r_hat": {name: _r_hat(values[name]) for name in names},
        "ess_bulk": {name: float(arviz.ess(values[name], method="bulk")) for name in names},
        "ess_tail": {name: float(arviz.ess(values[name], method="tail")) for name in names},
        "mcse": {name: float(arviz.mcse(values[name], method="mean")) for name in names},
        "sd": {name: float(np.std(values[name], ddof=1)) for name in names},
    }
    stats = data.get("sample_stats", None)
    diverging = None if stats is None or "diverging" not in stats else int(stats["diverging"].sum())
    found = [
        *_escaped(values),
        *_stuck(values),
        *_disagreement(numbers),
        *_too_few(numbers, chains),
        *_divergences(diverging, chains * draws),
    ]
    if stats is not None and "tree_depth" in stats:
        found += _long_trees(np.asarray(stats["tree_depth"].values))
    return Diagnosis(
        **numbers,
        divergences=diverging,
        draws=draws,
        chains=chains,
        problems=tuple(problem for problem, _ in found),
        advice=tuple(dict.fromkeys(advice for _, advice in found)),
    )


def _r_hat(values: np.ndarray) -> float:
    """Between the chains, or for a single one between its halves."""
    if values.shape[0] == 1:
        half = values.shape[1] // 2
        values = values[0, : 2 * half].reshape(2, half)
    return float(arviz.rhat(values))


def _escaped(values: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
    """A chain in an improper posterior finds the infinite mass sooner or later, and never comes back."""
    sizes = {name: np.abs(each) for name, each in values.items()}
    usual = {name: min(np.quantile(size, 0.25), FAR) for name, size in sizes.items()}
    far = {name: np.max(size) for name, size in sizes.items() if not np.max(size) < ESCAPED * usual[name]}
    if not far:
        return []
    listed = ", ".join(f"{name} (to {value:.3g})" for name, value in far.items())
    return [
        (
            f"Draws run away in {listed}: the data do not rule out values without bound, over which the prior is flat.",
            f"Give a prior with bounds or a finite mass: Prior(sde, {{{next(iter(far))!r}: numpyro.distributions....}}).",
        )
    ]


def _stuck(values: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
    still = {int(chain) for each in values.values() for chain in np.flatnonzero(np.std(each, axis=1) <= STUCK * np.std(each))}
    if not still:
        return []
    which = ", ".join(map(str, sorted(still)))
    return [(f"Chain {which} did not move.", "Start again with another seed; if it happens again, narrow the prior.")]


def _disagreement(numbers: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
    apart = {name: value for name, value in numbers["r_hat"].items() if not value <= R_HAT}
    if not apart:
        return []
    listed = ", ".join(f"{name} ({value:.3f})" for name, value in apart.items())
    return [
        (
            f"The chains disagree about {listed}: R-hat above {R_HAT}.",
            "Draw longer chains with a longer warm-up. If it stays, look at the traces: the posterior may have several modes, "
            "or the data may not tell parameters apart; an informative prior helps then.",
        )
    ]


def _too_few(numbers: Mapping[str, Mapping[str, float]], chains: int) -> list[tuple[str, str]]:
    least = {name: min(numbers["ess_bulk"][name], numbers["ess_tail"][name]) for name in numbers["ess_bulk"]}
    few = {name: value for name, value in least.items() if not value >= ESS_PER_CHAIN * chains}
    if not few:
        return []
    listed = ", ".join(f"{name} ({value:.0f})" for name, value in few.items())
    factor = ESS_PER_CHAIN * chains / min(few.values())
    return [
        (
            f"Too few effective draws of {listed}: {ESS_PER_CHAIN} per chain are needed.",
            f"Draw about {np.ceil(factor):.0f} times as many.",
        )
    ]


def _divergences(count: int | None, draws: int) -> list[tuple[str, str]]:
    if not count or count <= DIVERGENT * draws:
        return []
    return [
        (
            f"{count} of {draws} draws diverged: NUTS could not follow the posterior there, and may have missed a part of it.",
            "Sample with acceptance=0.95 or 0.99. If divergences stay, compare with sampler='slice'.",
        )
    ]


def _long_trees(depth: np.ndarray) -> list[tuple[str, str]]:
    share = float(np.mean(depth >= _LONG_TREE))
    if share < 0.01:
        return []
    return [(f"{share:.0%} of the trajectories were cut off.", "Use a longer warm-up, or doublings=12.")]
