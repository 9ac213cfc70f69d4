"""One Runge-Kutta step of theta, paper Algorithm 1: draw points, solve a least squares for every stage, estimate the error.

The error of theta itself means little, since many directions hardly move the density; it is measured in log q at the points.
"""

from __future__ import annotations

from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fokkerflow.flow import Flow, weights
from fokkerflow.sde.model import Scalar
from fokkerflow.training.collocation import Conditions
from fokkerflow.training.galerkin_settings import NeuralGalerkin
from fokkerflow.training.galerkin_system import (
    Places,
    Rows,
    draw_places,
    interior_rows,
    log_densities,
    log_densities_of_theta,
    points_at,
)
from fokkerflow.training.theta_path import Theta
from fokkerflow.training.zero_flux import FacePlaces, draw_face_places, face_rows

_TABLEAU = diffrax.Dopri5.tableau
_NODES = np.concatenate([[0.0], _TABLEAU.c])
_STAGES = np.stack([np.pad(row, (0, _NODES.size - row.size)) for row in (np.zeros(0), *_TABLEAU.a_lower)])
_SOLUTION, _ERROR = np.asarray(_TABLEAU.b_sol), np.asarray(_TABLEAU.b_error)
"""Dormand and Prince's coefficients; the last stage is at the end of the step, with its solution."""


class Attempt(NamedTuple):
    """The result of a step.

    **Attributes:** theta at its end; theta_dot at both ends; the error as a share of the tolerance; root mean squares of the
    right-hand side and of what the least squares left of it, at the beginning; how many points were unusable.
    """

    theta: Theta
    first_rate: Theta
    last_rate: Theta
    error: Float[Array, ""]
    target: Float[Array, ""]
    residual: Float[Array, ""]
    unusable: Int[Array, ""]


@eqx.filter_jit
def attempt_step(
    flow: Flow,
    settings: NeuralGalerkin,
    theta: Theta,
    tau: Scalar,
    step: Scalar,
    conditions: Conditions,
    felt: Int[Array, " c"],
) -> Attempt:
    """A step of Dormand and Prince's pair, and its error in log q at the points of the step."""
    _, with_weights = weights(flow)
    looks = _looks(with_weights(theta), settings, tau, conditions)

    def stage(rates: Float[Array, "s m"], i: Int[Array, ""]) -> tuple[Float[Array, "s m"], Rows]:
        """The rate of stage i from those of earlier ones; a loop, so that the least squares is compiled once."""
        now, at = tau + jnp.asarray(_NODES)[i] * step, theta + step * jnp.asarray(_STAGES)[i] @ rates
        rows = _rows(with_weights(at), settings, now, looks)
        return rates.at[i].set(settings.least_squares.solve(flow, at, rows, felt)), rows

    rates, rows = jax.lax.scan(stage, jnp.zeros((_NODES.size, theta.size)), jnp.arange(_NODES.size))
    first = jax.tree.map(lambda leaf: leaf[0, : conditions.tau.shape[0]], rows)  # of the first stage, without the faces
    _, change = jax.linearize(log_densities_of_theta(flow, first.points), theta)

    def size(values: Float[Array, " n"]) -> Scalar:
        values = jnp.where(first.weights > 0, first.weights * values, 0.0)
        return jnp.sqrt(jnp.sum(values**2) / jnp.sum(first.weights**2))

    return Attempt(
        theta=theta + step * _SOLUTION @ rates,
        first_rate=rates[0],
        last_rate=rates[-1],
        error=size(change(step * _ERROR @ rates)) / settings.tolerance,
        target=size(first.targets),
        residual=size(change(rates[0]) - first.targets),
        unusable=jnp.sum(first.weights == 0),
    )


class _Looks(NamedTuple):
    """All places of a step: interior, and on the faces if their flux is penalised."""

    places: Places
    faces: FacePlaces | None


def _looks(flow: Flow, settings: NeuralGalerkin, tau: Scalar, conditions: Conditions) -> _Looks:
    places = draw_places(flow, tau, conditions, settings.draws, jnp.array(settings.spreads))
    return _Looks(places, None if settings.zero_flux is None else draw_face_places(flow, conditions))


def _rows(flow: Flow, settings: NeuralGalerkin, tau: Scalar, looks: _Looks) -> Rows:
    rows = interior_rows(flow, tau, looks.places, settings.form, settings.cutoff)
    if looks.faces is None or settings.zero_flux is None:
        return rows
    largest = jnp.max(jnp.where(rows.weights > 0, log_densities(flow, rows.points), -jnp.inf))
    return rows.and_also(face_rows(flow, tau, looks.faces, settings.form, settings.zero_flux, largest))


@eqx.filter_jit
def distance(flow: Flow, first: Theta, second: Theta, tau: Scalar, conditions: Conditions) -> Scalar:
    """Root mean square of the difference of log q between two thetas, over draws of the first."""
    _, with_weights = weights(flow)
    places = draw_places(with_weights(first), tau, conditions, "approximate", jnp.ones(1))
    of_theta = log_densities_of_theta(flow, points_at(flow, tau, places))
    return jnp.sqrt(jnp.mean((of_theta(first) - of_theta(second)) ** 2))
