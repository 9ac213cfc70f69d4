"""Flux through the faces of a box: conservation of mass, and refusal of bad boxes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.fokker_planck import adjoint, flux, flux_through_face
from fokkerflow.sde.models import Heston

SDE = Heston()
P = jnp.array([SDE.typical[k] for k in SDE.parameters])
T = jnp.asarray(0.0)
BOX = [(0.05, 0.2), (-0.4, 0.3)]


def density(x: jax.Array) -> jax.Array:
    return jnp.exp(-40 * (x[0] - 0.12) ** 2 - 5 * (x[1] + 0.1) ** 2 + 3 * x[0] * x[1])


def test_divergence_theorem_on_a_box() -> None:
    """The mass that L* removes from a box is the signed flux through its four faces."""
    u, w = np.polynomial.legendre.leggauss(40)
    sides = [(lo + (hi - lo) * (u + 1) / 2, (hi - lo) * w / 2) for lo, hi in BOX]
    grid = jnp.stack(jnp.meshgrid(sides[0][0], sides[1][0], indexing="ij"), -1)
    weights = sides[0][1][:, None] * sides[1][1][None, :]
    inside = jnp.sum(weights * jax.vmap(jax.vmap(lambda x: adjoint(density, SDE, T, x, P)))(grid))
    outflow = 0.0
    for axis in (0, 1):
        points, rule = sides[1 - axis]
        for sign, end in ((-1, BOX[axis][0]), (1, BOX[axis][1])):
            at = jnp.stack([jnp.full_like(points, end), points][:: 1 if axis == 0 else -1], -1)
            outflow += sign * rule @ jax.vmap(lambda x, axis=axis: flux(density, SDE, T, x, P)[axis])(at)
    assert abs(inside + outflow) < 1e-12 * abs(inside)


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("axis", [0, 1])
def test_face_integral_and_maximum(axis: int, side: str) -> None:
    """Gauss-Legendre on the face against a fine trapezoid, the paper's rule."""
    total, largest = flux_through_face(density, SDE, T, P, box=BOX, axis=axis, side=side, nodes=64)
    along = jnp.linspace(*BOX[1 - axis], 20_001)
    end = jnp.full_like(along, BOX[axis][side == "upper"])
    points = jnp.stack([end, along] if axis == 0 else [along, end], -1)
    values = jnp.abs(jax.vmap(lambda x: flux(density, SDE, T, x, P)[axis])(points))
    assert total == pytest.approx(float(jnp.trapezoid(values, along)), rel=1e-4)
    assert largest == pytest.approx(float(values.max()), rel=1e-2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"box": [(0, 1)]}, "expected 2 finite pairs"),
        ({"box": [(0, float("inf")), (0, 1)]}, "finite pairs"),
        ({"axis": 2}, "Got axis 2, expected 0 to 1: v, y"),
        ({"side": "left"}, "Got side 'left', expected 'lower' or 'upper'"),
    ],
)
def test_bad_faces_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        flux_through_face(density, SDE, T, P, **{"box": BOX, "axis": 0, "side": "upper", **changes})
