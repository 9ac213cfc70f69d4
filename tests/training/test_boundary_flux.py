"""The flux through the artificial boundary: against closed forms, and what the penalty on it is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from fokkerflow.flow import Flow, anchored, paper
from fokkerflow.sde.models import CIR, OU, Heston
from fokkerflow.training import boundary_flux, sequence_for
from fokkerflow.training.boundary_flux import artificial_faces
from fokkerflow.training.zero_flux import draw_face_places, face_rows
from tests.training.marches import GAPS, LAW

KEY, END, WIDTH = jax.random.key(0), 1.0, 0.4
X0, P = 0.3, (1.5, 0.1, 0.6)  # kappa, mean, sigma


@pytest.fixture(scope="module")
def flow() -> Flow:
    """A Gaussian of width 0.4 around x0, cut off at -1 and 1."""
    return paper(KEY, OU(), ((-END, END),), layers=2, components=1, width=2, depth=1, start_width=WIDTH)


def flux_at(end: float) -> float:
    """J . n of that density at an end of the box, J = kappa (mean - x) q - sigma^2 q' / 2."""
    kappa, mean, sigma = P
    mass = norm.cdf((END - X0) / WIDTH) - norm.cdf((-END - X0) / WIDTH)
    q = norm.pdf((end - X0) / WIDTH) / WIDTH / mass
    return float(np.sign(end) * (kappa * (mean - end) * q + 0.5 * sigma**2 * (end - X0) / WIDTH**2 * q))


def test_flux_against_the_closed_form(flow: Flow) -> None:
    taus = jnp.array([0.0, 0.2, 0.5])
    found = boundary_flux(lambda tau: flow, taus, jnp.array([[X0]]), jnp.array([P]))
    ends = np.abs([flux_at(-END), flux_at(END)])
    np.testing.assert_allclose(found.integrated, [0.5 * ends.sum()], rtol=1e-6)
    np.testing.assert_allclose(found.maximum, [ends.max()], rtol=1e-6)


def test_rows_of_the_penalty(flow: Flow) -> None:
    """grad log q . zeta should be J . n / (epsilon q), with the weight epsilon q of a face."""
    n, epsilon = 16, 0.05
    drawn = sequence_for(flow, LAW, GAPS, 0).take(n)
    at = draw_face_places(flow, drawn._replace(x0=np.full((n, 1), X0), p=np.tile(P, (n, 1))))
    rows = jax.jit(lambda: face_rows(flow, jnp.asarray(0.1), at, "log", epsilon, jnp.zeros(())))()
    x = np.asarray(at.places.x)[:, 0]
    assert set(np.round(x, 6)) == {-END, END}
    np.testing.assert_array_equal(np.asarray(at.normals)[:, 0], np.sign(x))
    mass = norm.cdf((END - X0) / WIDTH) - norm.cdf((-END - X0) / WIDTH)
    q = norm.pdf((np.round(x) - X0) / WIDTH) / WIDTH / mass
    two_faces_of_area_one = 2 / n
    np.testing.assert_allclose(rows.weights**2, epsilon * two_faces_of_area_one * q, rtol=1e-6)
    np.testing.assert_allclose(rows.targets, [flux_at(end) / epsilon for end in np.round(x)] / q, rtol=1e-6)


def test_faces_are_those_where_the_model_goes_on() -> None:
    faces = artificial_faces(paper(KEY, Heston(), ((0, 3), (-6.5, 6.5)), layers=2, components=1, width=1, depth=1))
    assert [(face.axis, face.side, face.area) for face in faces] == [(0, "upper", 13.0), (1, "lower", 3.0), (1, "upper", 3.0)]


def test_a_flow_without_artificial_boundary_is_refused() -> None:
    x0, p, tau = jnp.full((50, 1), 0.1), jnp.tile(jnp.array([0.1, 3.0, 0.25]), (50, 1)), jnp.linspace(0.01, 0.5, 50)
    with pytest.raises(ValueError, match=r"CIR: the flow has no finite artificial boundary\. Only one on a box has"):
        artificial_faces(anchored(KEY, CIR(), 0.5, x0, p, tau))
