"""Inverses of the layers: one truncated Gaussian in closed form, a mixture or a reference law by safeguarded Newton steps.

Paper appendix F. Root finding happens in the coordinate t of `interval.from_line` and in logits of probabilities, where
distribution functions are close to straight lines next to an end and tame in the tails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fokkerflow.flow.gaussian_mass import LOG_SQRT_2PI, log_ndtri, log_tail_mass
from fokkerflow.flow.interval import Ends, Point, UnitPoint, from_line, log_line_slope
from fokkerflow.flow.reference import Reference
from fokkerflow.flow.truncated_mixture import Mixture, Standardised, log_total, mixture_layer, standardise

Scalar = Float[Array, ""]
Components = Float[Array, " k"]

_ITERATIONS = 120
_TOLERANCE = 1e-10  # of the bracketing iteration; one more Newton step takes the error to rounding
_MARGIN = 1e-3  # by which the bracket exceeds the quantiles of the components, which are accurate to 1e-4 of this
_LINEAR = 1e-4  # a standardised distance from an end within which a Gaussian density is taken to be constant


def component_quantiles(mixture: Mixture, u: UnitPoint, ends: Ends) -> Components:
    """The quantile at `u` of every Gaussian of the mixture, in the coordinate t.

    Phi(X) = Phi(A) + u (Phi(B) - Phi(A)) is solved for X in whichever tail X lies; next to an end the distance to it comes from
    the density at the end. Relative error of the distances at most 1e-4, and in general 1e-10.
    """
    seen = standardise(mixture, from_line(jnp.zeros_like(u.log_below), ends), ends)
    log_mass = log_total(seen)
    x = _standard_quantiles(seen, u, log_mass)
    if seen.lower is None and seen.upper is None:
        return mixture.means + jnp.exp(mixture.log_widths) * x
    t = jnp.zeros_like(x)
    if seen.lower is not None:
        t = t + _log_distance(x - seen.lower, seen.lower, u.log_below + log_mass + seen.lower_energy) + mixture.log_widths
    if seen.upper is not None:
        t = t - _log_distance(seen.upper - x, seen.upper, u.log_above + log_mass + seen.upper_energy) - mixture.log_widths
    return t


def component_point(mixture: Mixture, k: Int[Array, ""], u: UnitPoint, ends: Ends) -> Point:
    """The quantile at `u` of component `k`; the last one past the Gaussians is the uniform one."""
    gaussians = mixture.means.size
    inside = jnp.minimum(k, gaussians - 1)
    single = Mixture(jnp.zeros(1), mixture.means[inside, None], mixture.log_widths[inside, None])
    t = component_quantiles(single, u, ends)[0]
    if mixture.log_uniform is not None:
        t = jnp.where(k < gaussians, t, u.log_below - u.log_above)
    return from_line(t, ends)


def mixture_point(mixture: Mixture, u: UnitPoint, ends: Ends) -> Point:
    """The point with distribution function `u`: F^-1(u), differentiable by the implicit function theorem.

    The quantile of a mixture lies between the smallest and the largest quantile of its components, which brackets it.
    """
    t = component_quantiles(*jax.lax.stop_gradient((mixture, u, ends)))
    if mixture.log_uniform is not None:
        t = jnp.append(t, u.log_below - u.log_above)
    guess = jnp.sum(jnp.exp(mixture.log_weights) * t[: mixture.means.size])

    def evaluate(layer: tuple[Mixture, Ends], t: Scalar) -> tuple[UnitPoint, Scalar]:
        mixture, ends = layer
        point = from_line(t, ends)
        log_density, value = mixture_layer(mixture, point, ends)
        return value, log_density + log_line_slope(point, ends)

    margin = _MARGIN * (1.0 + jnp.max(jnp.abs(t)) * 1e-6)
    return from_line(_solve(evaluate, (mixture, ends), u, jnp.min(t) - margin, jnp.max(t) + margin, guess), ends)


def reference_point(reference: Reference, weight: Scalar | None, u: UnitPoint) -> UnitPoint:
    """The quantile of a reference law at `u`."""
    if reference.is_uniform:
        return u

    def evaluate(weight: Scalar | None, t: Scalar) -> tuple[UnitPoint, Scalar]:
        z = UnitPoint(jax.nn.log_sigmoid(t), jax.nn.log_sigmoid(-t))
        return reference.cdf(z, weight), reference.log_density(z, weight) + z.log_below + z.log_above

    # The distribution function is of order u^power at an end with power >= 1, so |t| < |logit u| + some multiple of the shape.
    logit = u.log_below - u.log_above
    t = _solve(evaluate, weight, u, jnp.minimum(logit, 0.0) - 50.0, jnp.maximum(logit, 0.0) + 50.0, 0.5 * logit)
    return UnitPoint(jax.nn.log_sigmoid(t), jax.nn.log_sigmoid(-t))


class _Bracket(NamedTuple):
    t: Scalar
    lower: Scalar
    upper: Scalar
    step: Scalar
    iterations: Int[Array, ""]


def _solve(
    evaluate: Callable[[Any, Scalar], tuple[UnitPoint, Scalar]],
    layer: Any,
    target: UnitPoint,
    lower: Scalar,
    upper: Scalar,
    guess: Scalar,
) -> Scalar:
    """The t with distribution function `target`, by Newton steps in the logit, with bisection where they do not halve.

    ``evaluate(layer, t)`` gives the distribution function at t and the log of its derivative. The iteration is not
    differentiated; the derivative is that of one Newton step at the root.
    """

    def miss(layer: Any, target: UnitPoint, t: Scalar) -> tuple[Scalar, Scalar]:
        value, log_slope = evaluate(layer, t)
        gap = (value.log_below - value.log_above) - (target.log_below - target.log_above)
        return gap, jnp.exp(jnp.minimum(value.log_below + value.log_above - log_slope, 600.0))  # and the inverse slope

    frozen = jax.lax.stop_gradient((layer, target))

    def proceed(state: _Bracket) -> Bool[Array, ""]:
        return (jnp.abs(state.step) > _TOLERANCE * (1.0 + jnp.abs(state.t))) & (state.iterations < _ITERATIONS)

    def iterate(state: _Bracket) -> _Bracket:
        gap, inverse_slope = miss(*frozen, state.t)
        lower, upper = jnp.where(gap < 0, state.t, state.lower), jnp.where(gap > 0, state.t, state.upper)
        newton = state.t - gap * inverse_slope
        good = (newton > lower) & (newton < upper) & (jnp.abs(newton - state.t) <= 0.5 * jnp.abs(state.step))
        following = jnp.where(good, newton, 0.5 * (lower + upper))
        following = jnp.where(gap == 0, state.t, following)
        return _Bracket(following, lower, upper, following - state.t, state.iterations + 1)

    lower, upper, guess = jax.lax.stop_gradient((lower, upper, jnp.clip(guess, lower, upper)))
    first = _Bracket(guess, lower, upper, 4.0 * (upper - lower), jnp.zeros((), int))
    root = jax.lax.while_loop(proceed, iterate, first).t
    gap, inverse_slope = miss(layer, target, root)
    here, slope = jax.lax.stop_gradient((gap, inverse_slope))
    limit = _TOLERANCE * (1.0 + jnp.abs(root))  # where the distribution function is flat, a step may be noise
    return root - jnp.clip(here * slope, -limit, limit) - slope * (gap - here)


def _standard_quantiles(seen: Standardised, u: UnitPoint, log_mass: Components) -> Components:
    """X with Phi(X) = Phi(A) + u (Phi(B) - Phi(A)), from the tail in which it lies. Masses are relative to the density at P."""
    below, above = u.log_below + log_mass, u.log_above + log_mass
    all_above, all_below = jnp.zeros_like(below, bool), jnp.zeros_like(below, bool)
    mode = jnp.zeros_like(below)
    if seen.lower is not None:
        all_above = seen.lower > 0
        mode = jnp.where(all_above, seen.lower, mode)
        below = jnp.logaddexp(below, log_tail_mass(jnp.where(all_above, 1.0, -seen.lower), seen.lower_energy))
    if seen.upper is not None:
        all_below = seen.upper < 0
        mode = jnp.where(all_below, seen.upper, mode)
        above = jnp.logaddexp(above, log_tail_mass(jnp.where(all_below, 1.0, seen.upper), seen.upper_energy))
    in_lower_tail = all_below | (~all_above & (below < above))
    log_tail = jnp.where(in_lower_tail, below, above) - 0.5 * mode**2 - LOG_SQRT_2PI
    x = log_ndtri(log_tail)
    return jnp.where(in_lower_tail, x, -x)


def _log_distance(distance: Components, end: Components, log_linear: Components) -> Components:
    """Log distance to an end: from the position, or next to the end from the mass and the density there."""
    near = log_linear + jnp.log(1.0 + jnp.abs(end)) < jnp.log(_LINEAR)
    return jnp.where(near, log_linear, jnp.log(jnp.maximum(distance, 1e-300)))
