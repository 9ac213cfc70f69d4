"""How much probability leaves through the artificial boundary, a posteriori: paper appendix B.2 and its table.

A box flow lives on a hyperrectangle. Where the box ends and the domain of the model does not, the flux should vanish, and
nothing in the residual makes it; so it is computed afterwards, for draws of the training law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow._precision import in_float64
from fokkerflow.flow import Flow
from fokkerflow.fokker_planck import flux_through_face
from fokkerflow.sde.model import Parameters, Scalar, State

Side = Literal["lower", "upper"]
_INSET = 1e-9
"""The density of a box flow is zero on the face itself and outside; faces are looked at from this share of the box inside."""


class Face(NamedTuple):
    """A face of the box that is not a boundary of the domain.

    **Attributes:** the coordinate that is constant on it, which end of the box it is, and the area (1 in one dimension).
    """

    axis: int
    side: Side
    area: float


def inner_box(flow: Flow) -> tuple[tuple[float, float], ...]:
    """The box that the flow lives on, by a hair smaller; infinite where its chart is."""
    supports = [c.chart.support for c in flow.config.coordinates]
    insets = [_INSET * (s.upper - s.lower) if np.isfinite(s.upper - s.lower) else 0.0 for s in supports]
    return tuple((s.lower + inset, s.upper - inset) for s, inset in zip(supports, insets, strict=True))


def artificial_faces(flow: Flow) -> tuple[Face, ...]:
    """The faces through which probability must not leave; ValueError if there are none, or one of infinite area."""
    faces: list[Face] = []
    lengths = [c.chart.support.upper - c.chart.support.lower for c in flow.config.coordinates]
    for axis, (domain, coordinate) in enumerate(zip(flow.sde.domains, flow.config.coordinates, strict=True)):
        area = float(np.prod([length for i, length in enumerate(lengths) if i != axis]))
        support = coordinate.chart.support
        if np.isfinite(support.lower) and support.lower != domain.lower:
            faces.append(Face(axis, "lower", area))
        if np.isfinite(support.upper) and support.upper != domain.upper:
            faces.append(Face(axis, "upper", area))
    if not faces or not all(np.isfinite(face.area) for face in faces):
        raise ValueError(
            f"{flow.sde.label}: the flow has no finite artificial boundary. Only one on a box has (fokkerflow.flow.paper)."
        )
    return tuple(faces)


class BoundaryFlux(NamedTuple):
    """The flux of every condition through all artificial faces.

    **Attributes:**

    - `integrated`: int \\|J . n\\| over time and faces.
    - `maximum`: of \\|J . n\\| over times and nodes.
    """

    integrated: Float[Array, " n"]
    maximum: Float[Array, " n"]


@in_float64
def boundary_flux(
    flow_at: Callable[[Scalar], Flow],
    taus: Float[Array, " k"],
    x0: Float[Array, "n d"],
    p: Float[Array, "n n_p"],
    t0: Float[Array, " n"] | None = None,
    *,
    nodes: int = 64,
) -> BoundaryFlux:
    """The flux through the artificial boundary.

    **Arguments:**

    - `flow_at`: the flow with the weights of a gap.
    - `taus`: where the flux is evaluated, increasing; the integral over time is by the trapezoidal rule, as in the paper.
    - `x0`, `p`, `t0`: the conditions, such as 100 draws of the training law.
    - `nodes`: of the quadrature along each direction of a face.
    """
    t0 = jnp.zeros(len(x0)) if t0 is None else t0
    integrals, maxima = _fluxes(flow_at, jnp.asarray(taus), jnp.asarray(x0), jnp.asarray(p), jnp.asarray(t0), nodes)
    return BoundaryFlux(jnp.trapezoid(integrals, taus, axis=0), jnp.max(maxima, axis=0))


@eqx.filter_jit
def _fluxes(
    flow_at: Callable[[Scalar], Flow],
    taus: Float[Array, " k"],
    x0: Float[Array, "n d"],
    p: Float[Array, "n n_p"],
    t0: Float[Array, " n"],
    nodes: int,
) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
    """The integral over all faces and the maximum, at every time and condition."""

    def at_time(tau: Scalar) -> tuple[Array, Array]:
        return jax.vmap(lambda t0, x0, p: _through_all_faces(flow_at(tau), tau, t0, x0, p, nodes))(t0, x0, p)

    return jax.lax.map(at_time, taus)


def _through_all_faces(flow: Flow, tau: Scalar, t0: Scalar, x0: State, p: Parameters, nodes: int) -> tuple[Scalar, Scalar]:
    condition, box = flow.condition(t0, tau, x0, p), inner_box(flow)

    def density(x: State) -> Scalar:
        return jnp.exp(flow.log_density(x, condition))

    through = [
        flux_through_face(density, flow.sde, t0 + tau, p, box=box, axis=face.axis, side=face.side, nodes=nodes)
        for face in artificial_faces(flow)
    ]
    return jnp.sum(jnp.stack([integral for integral, _ in through])), jnp.max(jnp.stack([top for _, top in through]))
