"""Importance check: would the posterior be another one under a reference density? (Vehtari et al. 2024, PSIS.)

Draws theta_s from the posterior of a density q become draws from that of a reference density p by the weights

    w_s = L_p(theta_s) / L_q(theta_s) ,

whose prior has cancelled. Their largest ones are replaced by quantiles of a generalised Pareto law fitted to them; its shape
k-hat says whether the draws of q reach where p has its mass, and so whether the corrected means can be believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fokkerflow.densities.density import Density
from fokkerflow.inference._arviz import arviz
from fokkerflow.inference.draws import parameter_draws, pooled, thinned
from fokkerflow.inference.likelihood import log_likelihoods
from fokkerflow.sde.series import Series

FEWEST_DRAWS = 100
"""The Pareto fit needs a tail: a fifth of these."""

EQUAL = 0.02
"""Weights that all differ by less than this from each other are equal; k-hat, which knows no scale, says nothing then."""

TOLERANCE = 0.1
"""A mean that moves by less than this many posterior standard deviations has not moved: a 90 % interval still holds 89.9 %."""


@dataclass(frozen=True)
class Importance:
    """The posterior as it is, and as it would be under the reference density.

    **Attributes:**

    - `parameters`: their names; the arrays below are in this order.
    - `khat`: shape of the Pareto tail of the weights; minus infinity if all weights are equal.
    - `relative_ess`: ``1 / (S sum w^2)``: the share of the S draws that the corrected means are worth.
    - `mean`, `sd`: of the draws; `corrected_mean`, `corrected_sd`: of the weighted draws.
    - `shift`: of each mean, in posterior standard deviations; `shift_error`: its Monte Carlo standard error.
    - `log_weights`: smoothed and normalised, for the draws that were used, chain after chain.
    - `draws`: the draws that were used, in the same order.
    - `tolerance`: the shift that is allowed.
    """

    parameters: tuple[str, ...]
    khat: float
    relative_ess: float
    mean: Float[np.ndarray, " n"]
    sd: Float[np.ndarray, " n"]
    corrected_mean: Float[np.ndarray, " n"]
    corrected_sd: Float[np.ndarray, " n"]
    shift: Float[np.ndarray, " n"]
    shift_error: Float[np.ndarray, " n"]
    log_weights: Float[np.ndarray, " k"]
    draws: Float[np.ndarray, "k n"]
    tolerance: float = TOLERANCE

    @property
    def khat_limit(self) -> float:
        """Up to here the correction is reliable: ``min(1 - 1 / log10 S, 0.7)`` (Vehtari et al. 2024, section 3.2)."""
        return min(1 - 1 / math.log10(len(self.draws)), 0.7)

    @property
    def reliable(self) -> bool:
        """Whether the corrected means can be believed."""
        return self.khat <= self.khat_limit

    @property
    def ok(self) -> bool:
        """Whether the two posteriors agree, and the check could see it."""
        return bool(self.reliable and np.all(np.abs(self.shift) <= self.tolerance))

    @property
    def verdict(self) -> str:
        """In one or two sentences."""
        furthest = int(np.argmax(np.abs(self.shift)))
        moved = (
            f"the mean of {self.parameters[furthest]} moves most, by {self.shift[furthest]:+.2g} posterior standard deviations"
        )
        if self.khat > 1:
            return "The two posteriors hardly overlap: no weighting of these draws can say what the reference would give."
        if not self.reliable:
            return f"The two posteriors differ more than the weights can bridge; roughly, {moved}."
        if self.ok:
            return f"The posterior is the one that the reference density gives: {moved}."
        return (
            f"The posterior differs from the one that the reference density gives: {moved}. The corrected means are reliable."
        )

    def message(self) -> str:
        """The verdict, the numbers behind it, and what to do."""
        limit = f"reliable up to {self.khat_limit:.2f}"
        khat = "all weights are equal" if np.isneginf(self.khat) else f"k-hat {self.khat:.2f} ({limit})"
        lines = [self.verdict, f"- {khat}; the {len(self.draws)} draws are worth {self.relative_ess:.0%} of their number"]
        for i, name in enumerate(self.parameters):
            was, now = (f"{m:.5g} (sd {s:.2g})" for m, s in zip(*self._pairs(i), strict=True))
            lines.append(f"- {name}: mean {was}, corrected {now}, shift {self.shift[i]:+.3f} ± {self.shift_error[i]:.3f} sd")
        if not self.reliable:
            lines.append("Sample again with the reference density, or with a density that is closer to it.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without weights and draws."""
        arrays = ("mean", "sd", "corrected_mean", "corrected_sd", "shift", "shift_error")
        values = {key: dict(zip(self.parameters, getattr(self, key).tolist(), strict=True)) for key in arrays}
        khat = {"khat": float(self.khat) if np.isfinite(self.khat) else None, "khat_limit": float(self.khat_limit)}
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "reliable": self.reliable,
            **khat,
            "relative_ess": self.relative_ess,
            "draws": len(self.draws),
            "tolerance": self.tolerance,
            **values,
        }

    def _pairs(self, i: int) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.mean[i], self.corrected_mean[i]), (self.sd[i], self.corrected_sd[i])


def importance(
    density: Density,
    reference: Density,
    series: Series | Sequence[Series],
    draws: Any,
    *,
    at_most: int = 1000,
    tolerance: float = TOLERANCE,
) -> Importance:
    """Compare the posterior of `density`, given by draws, with the one that `reference` gives under the same prior.

    **Arguments:**

    - `density`: the density that the draws were made with.
    - `reference`: any density of the same model.
    - `series`: the data.
    - `draws`: posterior draws; see `fokkerflow.inference.draws.parameter_draws`.
    - `at_most`: evenly spaced draws to use; the reference may be slow.
    - `tolerance`: the shift of a mean, in posterior standard deviations, above which the result is not `ok`.

    **Raises:** ValueError if the models differ, there are fewer than 100 draws, or no draw has any weight.

    ```python
    print(importance(density("surrogate", sde), density("exact", sde), series, posterior).message())
    ```
    """
    if reference.sde != density.sde:
        raise ValueError(f"The draws are of {density.sde.label}, the reference is a density of {reference.sde.label}.")
    chains = thinned(parameter_draws(density.sde, draws), at_most)
    p = pooled(chains)
    if len(p) < FEWEST_DRAWS:
        raise ValueError(f"Got {len(p)} draws to compare, expected at least {FEWEST_DRAWS}: k-hat needs a tail.")
    raw = _log_ratio(density, reference, series, p)
    log_weights, khat = _smoothed(raw)
    return _compare(density.sde.parameters, chains, log_weights, khat, tolerance)


def _log_ratio(
    density: Density, reference: Density, series: Series | Sequence[Series], p: Float[np.ndarray, "k n"]
) -> Float[np.ndarray, " k"]:
    under, over = (np.asarray(log_likelihoods(d, series, p)) for d in (density, reference))
    if not np.all(np.isfinite(under)):
        raise ValueError(
            f"The density gives log likelihood {under[~np.isfinite(under)][0]} at one of the draws: they were not made with it."
        )
    if np.any(np.isnan(over)):
        raise ValueError(f"The reference density gives nan at {np.isnan(over).mean():.1%} of the draws: it cannot be one.")
    if not np.any(np.isfinite(over)):
        raise ValueError("The reference density gives the data probability zero at every draw: no draw has any weight.")
    return over - under


def _smoothed(raw: Float[np.ndarray, " k"]) -> tuple[Float[np.ndarray, " k"], float]:
    """Smoothed, normalised log weights, and k-hat."""
    if np.ptp(raw) < EQUAL:
        centred = raw - raw.max()
        return centred - np.log(np.sum(np.exp(centred))), -np.inf
    log_weights, khat = arviz.psislw(raw)
    return np.asarray(log_weights), float(khat)


def _compare(
    parameters: tuple[str, ...], chains: np.ndarray, log_weights: np.ndarray, khat: float, tolerance: float
) -> Importance:
    p, w = pooled(chains), np.exp(log_weights)
    mean, sd = p.mean(0), p.std(0)
    corrected_mean = w @ p
    corrected_sd = np.sqrt(w @ (p - corrected_mean) ** 2)
    unit = np.where(sd > 1e-12 * np.abs(mean), sd, np.inf)  # a parameter that is held fixed does not shift
    shift = (corrected_mean - mean) / unit
    z, corrected_z = (p - mean) / unit, (p - corrected_mean) / unit
    # What each draw contributes to the shift (delta method); its mean is zero, its Monte Carlo error is that of the shift.
    felt = len(w) * w[:, None] * corrected_z - z - shift * (z**2 - 1) / 2
    return Importance(
        parameters=parameters,
        khat=khat,
        relative_ess=float(1 / (len(w) * np.sum(w**2))),
        mean=mean,
        sd=sd,
        corrected_mean=corrected_mean,
        corrected_sd=corrected_sd,
        shift=shift,
        shift_error=np.array([_mcse(column.reshape(chains.shape[:2])) for column in felt.T]),
        log_weights=log_weights,
        draws=p,
        tolerance=tolerance,
    )


def _mcse(values: Float[np.ndarray, "chains draws"]) -> float:
    """Monte Carlo standard error of a mean, for draws that depend on each other."""
    if values.shape[1] < 4 or np.ptp(values) == 0:  # too short a chain to see how: as if independent
        return float(values.std() / np.sqrt(values.size))
    return float(arviz.mcse(values, method="mean"))
