"""Zero flux through the artificial boundary as part of the least squares: paper appendix B.2.1, which proposes it only.

The penalised problem, and its Euler-Lagrange equations (M_i + epsilon M_b) zeta = F_i + F_b:

    min  int |grad q . zeta - L* q|^2 dnu  +  epsilon int_faces |grad q . zeta - phi / epsilon|^2 dnu_b,     phi = J . n

As epsilon -> 0 they are the weak form of the Fokker-Planck equation with zero flux *if nu and nu_b have the same density*: then
F_b is the boundary term of the integration by parts. With points drawn from q (the paper's nu) the faces therefore
have to be weighted with q too. The rows of the faces are, like those of the interior, rows of log q with a weight.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fokkerflow.flow import Flow
from fokkerflow.sde.model import Parameters, Scalar, State
from fokkerflow.training.boundary_flux import artificial_faces, inner_box
from fokkerflow.training.collocation import Conditions
from fokkerflow.training.galerkin_system import Places, Rows, log_densities, points_at, speed
from fokkerflow.training.residual import Point


class FacePlaces(NamedTuple):
    """A point on some artificial face for each condition, uniform over each face.

    **Attributes:** the points; the outer normals; the area that each point stands for.
    """

    places: Places
    normals: Float[Array, "n d"]
    areas: Float[Array, " n"]


def draw_face_places(flow: Flow, conditions: Conditions) -> FacePlaces:
    """A face by the first number of the base, and the place on it by the others."""
    faces, box = artificial_faces(flow), jnp.array(inner_box(flow))
    n, d = conditions.x0.shape
    axes = jnp.array([face.axis for face in faces])
    signs = jnp.array([1.0 if face.side == "upper" else -1.0 for face in faces])
    pick = jnp.minimum((jnp.asarray(conditions.base[:, 0]) * len(faces)).astype(int), len(faces) - 1)
    inside = box[:, 0] + (box[:, 1] - box[:, 0]) * conditions.base[:, 1 : d + 1]
    on_face = jnp.where(signs[pick] > 0, box[axes[pick], 1], box[axes[pick], 0])
    x = inside.at[jnp.arange(n), axes[pick]].set(on_face)
    areas = len(faces) * jnp.array([face.area for face in faces])[pick]
    t0, x0, p = map(jnp.asarray, (conditions.t0, conditions.x0, conditions.p))
    places = Places(t0, x0, p, x)
    return FacePlaces(places, jax.nn.one_hot(axes[pick], d) * signs[pick, None], areas)


def face_rows(flow: Flow, tau: Scalar, at: FacePlaces, form: str, epsilon: float, largest: Scalar) -> Rows:
    """The rows of the penalty.

    **Arguments:**

    - `form`: as in `interior_rows`; the faces have the same weight as the interior.
    - `epsilon`: of the penalty.
    - `largest`: the largest log q among the interior points, to which the density form is relative.
    """
    points = points_at(flow, tau, at.places)
    log_q = log_densities(flow, points)
    flux = jax.vmap(lambda point, t0, p: relative_flux(flow, point, t0, p))(points, at.places.t0, at.places.p)
    targets = jnp.sum(flux * at.normals, axis=1) / epsilon - jax.vmap(lambda point: speed(flow, point))(points)
    log_w = 0.5 * (jnp.log(epsilon * at.areas / log_q.size) + log_q)
    if form == "density":
        log_w = log_w + log_q - largest
    usable = jnp.isfinite(targets) & jnp.isfinite(log_w)
    return Rows(points, jnp.where(usable, targets, 0.0), jnp.where(usable, jnp.exp(log_w), 0.0))


def relative_flux(flow: Flow, point: Point, t0: Scalar, p: Parameters) -> State:
    """J/q = b - (1/2) div Sigma - (1/2) Sigma grad log q, which does not underflow with q."""
    drift = flow.sde.drift(t0 + point.tau, point.x, p)
    slope = jax.grad(lambda x: flow.log_density(x, point.condition))(point.x)
    return 0.5 * (drift - point.at.first - point.at.second @ slope)
