"""The L1 bound against the true L1 error, for good flows, bad ones, and weights that move with time."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from fokkerflow.densities import density
from fokkerflow.flow import exact_draw, weights
from fokkerflow.sde.models import Heston
from fokkerflow.training import Certificate, ThetaPath, Trained, certify
from fokkerflow.training.bound import Bounds, gaussian_of_moments, l1_bounds
from fokkerflow.training.bound_rules import base_points, time_panels
from fokkerflow.training.regions import regions
from tests.training.trainings import CIR_LAW, OU_LAW, law_of, small_cir, untrained

DT = (0.01, 0.1, 0.5)
N = 12
FEW = {"points": 16, "scramblings": 4}


def disturbed(trained: Trained, size: float) -> Trained:
    theta, with_weights = weights(trained.flow)
    flow = with_weights(theta + size * jax.random.normal(jax.random.key(1), theta.shape))
    return Trained(flow, None, trained.law, trained.gaps, trained.record)


def moving(trained: Trained, rate: float) -> Trained:
    """Weights that move in time at a constant rate."""
    theta, _ = weights(trained.flow)
    speed = rate * jax.random.normal(jax.random.key(2), theta.shape)
    path = ThetaPath(jnp.array([0.0, 1.0]), jnp.stack([theta, theta + speed]), jnp.stack([speed, speed]))
    return Trained(trained.flow, path, trained.law, trained.gaps, trained.record)


CASES: dict[str, Callable[[], Trained]] = {
    "ou-untrained": lambda: untrained(OU_LAW),
    "ou-bad": lambda: disturbed(untrained(OU_LAW), 0.7),
    "ou-moving": lambda: moving(untrained(OU_LAW), 0.7),
    "cir-trained": small_cir,
    "heston-bad": lambda: disturbed(untrained(law_of(Heston())), 0.3),
}


def conditions(trained: Trained) -> tuple[Array, Array, Array]:
    x0, p = trained.law.sample(np.random.default_rng(3), N)
    return jnp.asarray(x0), jnp.asarray(p), jnp.zeros(N)


@eqx.filter_jit
def true_error(trained: Trained, x0: Array, p: Array, dt: Array, base: Array, weight: Array) -> Array:
    """\\|q - p\\|_1 = 2 E_q max(0, 1 - p/q), for each condition and gap."""
    exact = density("exact", trained.sde)

    def one(x0: Array, p: Array, tau: Array) -> Array:
        flow, t0 = trained.at(tau), jnp.zeros(())
        condition = flow.condition(t0, tau, x0, p)

        def lack(u: Array) -> Array:
            x = exact_draw(flow, u, condition)
            return jnp.maximum(-jnp.expm1(exact.log_density(x, x0, tau, p, t0) - flow.log_density(x, condition)), 0.0)

        return 2 * jnp.mean(jax.vmap(lack)(base) * weight)

    return jax.vmap(lambda x0, p: jax.lax.map(lambda tau: one(x0, p, tau), dt))(x0, p)


SLOW = ("cir-trained", "heston-bad")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES])
def test_the_bound_holds(name: str) -> None:
    trained = CASES[name]()
    x0, p, t0 = conditions(trained)
    bounds = l1_bounds(jax.random.key(0), trained, x0, p, t0, DT, **FEW)
    base, weight = base_points(jax.random.key(9), 1024, 1, trained.sde.dimension)
    error = np.asarray(true_error(trained, x0, p, jnp.array(DT), base[0], weight[0]))
    assert bounds.unusable == 0
    assert np.all(bounds.value + 3 * bounds.error > error)
    assert np.median(bounds.value / error) < 25  # and it says something
    assert np.all(np.diff(bounds.value, axis=1) > 0)


def test_the_true_error_by_sampling_is_that_by_quadrature() -> None:
    """So that the test above compares with the right thing."""
    trained, exact = disturbed(untrained(OU_LAW), 0.7), density("exact", OU_LAW.sde)
    x0, p, _ = conditions(trained)
    base, weight = base_points(jax.random.key(9), 1024, 1, 1)
    sampled = true_error(trained, x0, p, jnp.array(DT), base[0], weight[0])
    grid = jnp.linspace(-3, 3, 20_001)

    @eqx.filter_jit
    def integral(x0: Array, p: Array, tau: Array) -> Array:
        def difference(x: Array) -> Array:
            q, other = (d.log_density(x[None], x0, tau, p, jnp.zeros(())) for d in (trained, exact))
            return jnp.abs(jnp.exp(q) - jnp.exp(other))

        return jnp.sum(jax.vmap(difference)(grid)) * (grid[1] - grid[0])

    for c in range(3):
        for k, dt in enumerate(DT):
            assert sampled[c, k] == pytest.approx(float(integral(x0[c], p[c], jnp.asarray(dt))), rel=0.02)


def test_the_bound_of_an_exact_density_is_zero() -> None:
    """The Gaussian of the moments is the density of the OU process."""
    trained = gaussian_of_moments(untrained(OU_LAW))
    bounds = l1_bounds(jax.random.key(0), trained, *conditions(trained), DT, **FEW)
    assert np.max(bounds.value) < 1e-8


def test_panels_integrate_what_they_are_made_for() -> None:
    """g(s) = sqrt(s), and g(s) = s / (s + 1e-3), which is curved between the panels."""
    panels = time_panels(np.array(DT))
    np.testing.assert_allclose(panels.ends[panels.asked], DT)
    integrals = panels.integrals(np.stack([np.sqrt(panels.tau), panels.tau / (panels.tau + 1e-3)])[..., None])[..., 0]
    np.testing.assert_allclose(integrals[0], 2 * np.sqrt(panels.ends), rtol=1e-12)
    np.testing.assert_allclose(integrals[1], np.log1p(panels.ends / 1e-3), rtol=2e-3)


@pytest.mark.parametrize("dt", [(), (0.0, 1.0), (0.2, 0.1)])
def test_gaps_have_to_increase(dt: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="expected positive and increasing ones"):
        time_panels(np.array(dt))


def test_base_points_integrate_over_the_cube() -> None:
    u, weight = base_points(jax.random.key(0), 1024, 2, 2)
    for function, integral in ((lambda u: u[..., 0] * u[..., 1] ** 2, 1 / 6), (lambda u: u[..., 0] ** -0.5, 2.0)):
        np.testing.assert_allclose(jnp.mean(function(u) * weight, axis=1), integral, rtol=5e-3)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certify(jax.random.key(4), small_cir(), conditions=N, dt=DT[::-1], **FEW)


def test_a_certificate_says_how_large_the_bound_is_and_where(certificate: Certificate) -> None:
    assert certificate.dt == DT
    assert certificate.conditions == N
    assert certificate.unusable == 0
    assert 0 < certificate.relative_error < 0.5
    assert 0 < certificate.start_share < 1
    for quantiles in certificate.quantiles:
        assert 0 < quantiles["median"] <= quantiles["90 %"] <= quantiles["99 %"] <= quantiles["largest"] < 2
    assert set(certificate.regions) == {"v0", "alpha", "beta", "sigma", "sigma / sqrt(2 * alpha * beta)"}
    v0 = [third["median"] for third in certificate.regions["v0"].values()]
    assert v0[0] > v0[2]  # next to the boundary is the hard part


def test_a_certificate_is_plain_data_and_travels_with_the_artifact(certificate: Certificate) -> None:
    record = small_cir().with_record(certificate=certificate.to_dict()).record
    assert Certificate.from_dict(type(record).from_dict(record.to_dict()).certificate) == certificate


def test_thirds_are_thirds() -> None:
    trained = untrained(CIR_LAW)
    x0, p = trained.law.sample(np.random.default_rng(0), 300)
    for thirds in regions(trained, x0, p).values():
        assert [int(row.sum()) for row in thirds.values()] == [100, 100, 100]
    first, _, last = share = regions(trained, x0, p)["sigma / sqrt(2 * alpha * beta)"]
    feller = p[:, 2] / np.sqrt(2 * p[:, 0] * p[:, 1])
    assert feller[share[last]].min() > feller[share[first]].max()


def test_a_gap_beyond_the_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Got a gap of 2, this density is for gaps up to 1"):
        certify(jax.random.key(0), untrained(OU_LAW), dt=[0.1, 2.0])


def test_a_point_without_a_finite_residual_voids_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Bounds(np.ones((N, 3)), np.ones((N, 3)), np.ones((N, 3)), unusable=1)
    monkeypatch.setattr("fokkerflow.training.certificate.l1_bounds", lambda *args, **options: bad)
    assert certify(jax.random.key(0), untrained(CIR_LAW), conditions=N, dt=DT).unusable == 1
