"""The layer of the flow: distribution function of a mixture of truncated Gaussians, paper section 4.2.

    F(x) = sum_k alpha_k (Phi((x - m_k)/s_k) - Phi((lower - m_k)/s_k)) / (Phi((upper - m_k)/s_k) - Phi((lower - m_k)/s_k))

On the whole line the truncation disappears. Everything is in logarithms, and F comes with 1 - F, so that layers compose
without loss: the log density of a Dirac start of width 1e-4, seen from a distance of 1, is exact. Each component is
referred to the height of its parent density at its mode inside the interval, which takes exp(-(end - m)^2 / 2 s^2) out of
components whose mean lies outside.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from fokkerflow.flow.gaussian_mass import LOG_SQRT_2PI, log_mass, log_tail_mass
from fokkerflow.flow.interval import Ends, Optional, Point, UnitPoint, from_line

Scalar = Float[Array, ""]
Components = Float[Array, " k"]


class Mixture(NamedTuple):
    """Log weights (they sum to one with `log_uniform`), means and log widths of the parent Gaussians.

    `log_uniform` is the log weight of a uniform component, the identity among the layers of [-1, 1]; None if there is none.
    """

    log_weights: Components
    means: Components
    log_widths: Components
    log_uniform: Scalar | None = None


class Standardised(NamedTuple):
    """One point seen by every component: positions in units of its width, and energies (t^2 - P^2)/2.

    P is the point of the interval that is nearest to the mean, so energies are never negative.
    """

    x: Components
    x_energy: Components
    lower: Optional
    lower_energy: Optional
    upper: Optional
    upper_energy: Optional
    log_below: Optional
    log_above: Optional
    log_length: Optional


def mixture_log_density(mixture: Mixture, point: Point, ends: Ends) -> Scalar:
    """log F'(x)."""
    if ends.lower is None and ends.upper is None:
        x = (point.value - mixture.means) * jnp.exp(-mixture.log_widths)
        return logsumexp(mixture.log_weights - 0.5 * x**2 - mixture.log_widths) - LOG_SQRT_2PI
    seen = standardise(mixture, point, ends)
    return _log_density(mixture, seen, log_total(seen), ends)


def mixture_layer(mixture: Mixture, point: Point, ends: Ends) -> tuple[Scalar, UnitPoint]:
    """log F'(x), and log F(x) with log(1 - F(x)), each relatively accurate."""
    seen = standardise(mixture, point, ends)
    below, above, total = _log_masses(seen)
    log_density = _log_density(mixture, seen, total, ends)
    below, above = mixture.log_weights + below - total, mixture.log_weights + above - total
    if mixture.log_uniform is not None:
        log_length = _log_length(ends)
        below = jnp.append(below, mixture.log_uniform + point.log_below - log_length)
        above = jnp.append(above, mixture.log_uniform + point.log_above - log_length)
    return log_density, UnitPoint(logsumexp(below), logsumexp(above))


def mixture_cdf(mixture: Mixture, point: Point, ends: Ends) -> UnitPoint:
    """log F(x) and log(1 - F(x))."""
    return mixture_layer(mixture, point, ends)[1]


def log_peak(mixture: Mixture, ends: Ends) -> Scalar:
    """An upper bound of log F' over the interval: log sum_k alpha_k max_x f_k(x); a component is highest where energy is 0."""
    somewhere = from_line(jnp.zeros_like(mixture.means[0]), ends)
    seen = standardise(mixture, somewhere, ends)
    return _log_density(mixture, seen._replace(x_energy=jnp.zeros_like(seen.x)), log_total(seen), ends)


def _log_density(mixture: Mixture, seen: Standardised, total: Components, ends: Ends) -> Scalar:
    terms = mixture.log_weights - seen.x_energy - mixture.log_widths - total
    if mixture.log_uniform is not None:
        terms = jnp.append(terms, mixture.log_uniform - _log_length(ends))
    return logsumexp(terms)


def _log_length(ends: Ends) -> Scalar:
    return jnp.log(jnp.asarray(ends.upper) - ends.lower)


def standardise(mixture: Mixture, point: Point, ends: Ends) -> Standardised:
    inverse_widths = jnp.exp(-mixture.log_widths)
    x = (point.value - mixture.means) * inverse_widths
    lower = None if ends.lower is None else (ends.lower - mixture.means) * inverse_widths
    upper = None if ends.upper is None else (ends.upper - mixture.means) * inverse_widths
    log_below: Optional = None if point.log_below is None else point.log_below - mixture.log_widths
    log_above: Optional = None if point.log_above is None else point.log_above - mixture.log_widths
    log_length: Optional = None
    if ends.lower is not None and ends.upper is not None:
        log_length = _log_length(ends) - mixture.log_widths
    energy = 0.5 * x**2
    if lower is not None:
        d = jnp.exp(log_below)
        energy = jnp.where(lower > 0, d * (lower + 0.5 * d), energy)
    if upper is not None:
        d = jnp.exp(log_above)
        energy = jnp.where(upper < 0, d * (0.5 * d - upper), energy)
    lower_energy, upper_energy = _end_energy(lower, upper, log_length, 1.0), _end_energy(upper, lower, log_length, -1.0)
    return Standardised(x, energy, lower, lower_energy, upper, upper_energy, log_below, log_above, log_length)


def _end_energy(end: Optional, other: Optional, log_length: Optional, sign: float) -> Optional:
    """Energy of an end (sign 1 for the lower one): zero if the mean lies beyond it."""
    if end is None:
        return None
    energy = jnp.where(sign * end > 0, 0.0, 0.5 * end**2)
    if other is None:
        return energy
    length = jnp.exp(log_length)
    return jnp.where(sign * other < 0, length * (0.5 * length - sign * other), energy)


def _log_masses(seen: Standardised) -> tuple[Components, Components, Components]:
    """Logarithms of the mass below the point, above it, and between the ends."""
    if seen.lower is None or seen.upper is None:
        return _log_below(seen), _log_above(seen), log_total(seen)
    lengths = jnp.stack([seen.log_below, seen.log_above, seen.log_length])
    left, right = jnp.stack([seen.lower, seen.x, seen.lower]), jnp.stack([seen.x, seen.upper, seen.upper])
    left_energy = jnp.stack([seen.lower_energy, seen.x_energy, seen.lower_energy])
    right_energy = jnp.stack([seen.x_energy, seen.upper_energy, seen.upper_energy])
    below, above, total = log_mass(left, right, lengths, left_energy, right_energy)
    return below, above, total


def log_total(seen: Standardised) -> Components:
    if seen.lower is not None and seen.upper is not None:
        return log_mass(seen.lower, seen.upper, seen.log_length, seen.lower_energy, seen.upper_energy)
    if seen.lower is not None:
        return log_tail_mass(seen.lower, seen.lower_energy)
    if seen.upper is not None:
        return log_tail_mass(-seen.upper, seen.upper_energy)
    return jnp.full_like(seen.x, LOG_SQRT_2PI)


def _log_below(seen: Standardised) -> Components:
    if seen.lower is None:
        return log_tail_mass(-seen.x, seen.x_energy)
    return log_mass(seen.lower, seen.x, seen.log_below, seen.lower_energy, seen.x_energy)


def _log_above(seen: Standardised) -> Components:
    if seen.upper is None:
        return log_tail_mass(seen.x, seen.x_energy)
    return log_mass(seen.x, seen.upper, seen.log_above, seen.x_energy, seen.upper_energy)
