"""Maximum likelihood and maximum a posteriori, with standard errors from the curvature at the maximum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fokkerflow.inference.peak import Peak
from fokkerflow.inference.target import Target, parameters

_AT_END = 1e-4
"""Closer to an end of its range than this share of it, a parameter is at the end."""
_FAR_OUT = -12.0
"""The logarithm of a distance to the only end below which a parameter is at the end."""


@dataclass(frozen=True)
class Estimate:
    """A maximum of the likelihood or of the posterior density.

    **Attributes:**

    - `kind`: ``"maximum likelihood"`` or ``"maximum a posteriori"``.
    - `names`, `point`: the parameters and their values there.
    - `covariance`: the inverse of the negative Hessian of the log density with respect to the parameters; NaN for those that
      are at an end of their range, where there is no curvature to speak of.
    - `log_likelihood`, `log_prior`: there; the prior is not normalised.
    - `converged`: whether the gradient is zero and the density falls in all directions.
    - `at_end`: parameters at an end of their range.
    """

    kind: str
    names: tuple[str, ...]
    point: Float[np.ndarray, " n"]
    covariance: Float[np.ndarray, "n n"]
    log_likelihood: float
    log_prior: float
    converged: bool
    at_end: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        return dict(zip(self.names, self.point.tolist(), strict=True))

    @property
    def standard_errors(self) -> dict[str, float]:
        return dict(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Symmetric intervals from the standard errors (Wald's); a `profile` gives better ones where the curve is skewed."""
        if not 0 < level < 1:
            raise ValueError(f"Got level = {level:g}, expected a number between 0 and 1.")
        reach = NormalDist().inv_cdf((1 + level) / 2)
        errors: Mapping[str, float] = self.standard_errors
        return {name: (value - reach * errors[name], value + reach * errors[name]) for name, value in self.values.items()}

    def __str__(self) -> str:
        width = max(map(len, self.names))
        errors = self.standard_errors
        lines = [f"{self.kind}, log likelihood {self.log_likelihood:.4f}{'' if self.converged else ' (not converged)'}"]
        lines += [f"  {name:{width}} {value: .6g} +- {errors[name]:.2g}" for name, value in self.values.items()]
        if self.at_end:
            lines.append(f"At the end of its range, without a standard error: {', '.join(self.at_end)}.")
        return "\n".join(lines)


def estimate(target: Target, peak: Peak, kind: str) -> Estimate:
    """What a peak in unconstrained coordinates says about the parameters.

    The gradient is zero at the peak, so covariances transform by the Jacobian alone: C_p = J C_u J^T.
    """
    point, jacobian = (np.asarray(value) for value in parameters(target, jnp.asarray(peak.point)))
    ends = _at_end(target, point)
    covariance, falls = _covariance(peak.hessian, ends)
    covariance = jacobian @ covariance @ jacobian.T
    covariance[ends] = covariance[:, ends] = np.nan
    p = jnp.asarray(point)
    names = target.density.sde.parameters
    return Estimate(
        kind=kind,
        names=names,
        point=point,
        covariance=covariance,
        log_likelihood=float(target.log_likelihood(p)),
        log_prior=float(target.prior.log_density(p)),
        converged=peak.converged and falls,
        at_end=tuple(name for name, end in zip(names, ends, strict=True) if end),
    )


def _covariance(hessian: Float[np.ndarray, "n n"], ends: np.ndarray) -> tuple[Float[np.ndarray, "n n"], bool]:
    """The inverse of the negative Hessian over the parameters that are not at an end, zero elsewhere; and whether it is one."""
    covariance = np.zeros_like(hessian)
    free = np.flatnonzero(~ends)
    curvature = -hessian[np.ix_(free, free)]
    falls = bool(np.all(np.isfinite(curvature))) and bool(np.all(np.linalg.eigvalsh(curvature) > 0))
    covariance[np.ix_(free, free)] = np.linalg.inv(curvature) if falls else np.nan
    return covariance, falls


def _at_end(target: Target, p: Float[np.ndarray, " n"]) -> np.ndarray:
    transform, names = target.prior.transform, target.density.sde.parameters
    values = dict(zip(names, p, strict=True))
    ends = np.zeros(len(p), bool)
    for i, (has_low, has_high) in enumerate(transform.finite):
        low, high = (float(end) for end in transform.bounds(i, values, np))
        if has_low and has_high:
            ends[i] = min(p[i] - low, high - p[i]) < _AT_END * (high - low)
        elif has_low or has_high:
            ends[i] = np.log(p[i] - low if has_low else high - p[i]) < _FAR_OUT
    return ends
