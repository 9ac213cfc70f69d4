"""Simulation: weak and strong order, domains, reproducibility, batches, refusals."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fokkerflow.sde.constraint import ConstraintError
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.model import SDE
from fokkerflow.sde.models import BDFS, CIR, GBM, MODELS, OU, Heston, Jacobi, SeasonalOU
from fokkerflow.sde.moments import moments
from fokkerflow.sde.simulate import SimulationError, simulate, simulate_paths

BOUNDED = (CIR, Heston, Jacobi)


@pytest.mark.parametrize(("model", "dt"), [(Heston, 0.5), (BDFS, 0.1), (Jacobi, 0.5)])
def test_moments_are_right(model: type[SDE], dt: float) -> None:
    """Mean and covariance within 4.5 Monte Carlo standard errors of the exact ones; the Euler bias is far smaller."""
    sde, paths = model(), 20_000
    states = simulate_paths(sde, sde.typical, dt=dt, n=2, substeps=200, paths=paths, seed=5)[:, -1]
    mean, covariance = moments(sde, 0.0, dt, jnp.array(sde.start), jnp.array(list(sde.typical.values())))
    sd = np.sqrt(np.diag(covariance))
    standard = (states - mean) / sd
    assert np.all(np.abs(standard.mean(0)) < 4.5 / np.sqrt(paths))
    products = standard[:, :, None] * standard[:, None, :]
    error = products.mean(0) - covariance / np.outer(sd, sd)
    assert np.all(np.abs(error) < 4.5 * products.std(0) / np.sqrt(paths))


def test_weak_order_is_one() -> None:
    """Euler's mean of OU is known: x (1 - kappa h)^m; noise cancels between two starts with the same seed."""
    p, dt = (2.0, 0.0, 0.3), 0.5
    errors = []
    for substeps in (8, 16, 32):
        near, far = simulate_paths(OU(), p, [[0.0], [1.0]], dt=dt, n=2, substeps=substeps, seed=0)[:, -1, 0]
        alone = simulate_paths(OU(), p, [[0.0], [0.0]], dt=dt, n=2, substeps=substeps, seed=0)[:, -1, 0]
        assert near == alone[0]
        contraction = far - alone[1]
        np.testing.assert_allclose(contraction, (1 - 2.0 * dt / substeps) ** substeps, rtol=1e-12)
        errors.append(abs(contraction - np.exp(-2.0 * dt)))
    slope = np.polyfit(np.log([8, 16, 32]), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1.0, abs=0.1)


class GBMWithItsNoise(SDE):
    """A geometric Brownian motion next to the Brownian motion that drives it, so that the exact solution is known."""

    name = "gbm-with-noise"
    states = {"s": Domain(0.0), "w": Domain()}
    parameters = ("sigma",)
    typical = {"sigma": 0.6}
    start = (1.0, 0.0)

    def drift(self, t, x, p):
        return jnp.zeros(2)

    def covariance(self, t, x, p):
        a = jnp.array([p[0] * x[0], 1.0])
        return jnp.outer(a, a)  # of rank one


def test_strong_order_is_one_half() -> None:
    """Root mean square distance to the exact solution for the same noise; Euler's strong order for this noise is 1/2."""
    substeps = (8, 32, 128)
    errors = []
    for m in substeps:
        states = simulate_paths(GBMWithItsNoise(), [0.6], dt=1.0, n=2, substeps=m, paths=4000, seed=2)[:, -1]
        exact = np.exp(0.6 * states[:, 1] - 0.18)
        errors.append(np.sqrt(np.mean((states[:, 0] - exact) ** 2)))
    slope = np.polyfit(np.log(substeps), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.07)


@pytest.mark.parametrize("model", BOUNDED)
def test_the_domain_is_kept_even_by_coarse_steps(model: type[SDE]) -> None:
    sde = model()
    states = simulate_paths(sde, sde.typical, dt=1.0, n=40, substeps=1, paths=300, seed=1)
    for i, domain in enumerate(sde.domains):
        assert np.all(domain.contains(states[..., i]))


def test_the_same_seed_gives_the_same_path_whatever_else_is_simulated() -> None:
    sde = Heston()
    many = simulate_paths(sde, sde.typical, dt=0.1, n=12, substeps=5, paths=6, seed=4)
    few = simulate_paths(sde, sde.typical, dt=0.1, n=9, substeps=5, paths=2, seed=4)
    one = simulate(sde, sde.typical, dt=0.1, n=12, substeps=5, seed=4)
    np.testing.assert_allclose(few, many[:2, :9], rtol=1e-12)
    np.testing.assert_allclose(one.states, many[0], rtol=1e-12)
    assert one == simulate(sde, sde.typical, dt=0.1, n=12, substeps=5, seed=4)
    other = simulate(sde, sde.typical, dt=0.1, n=12, substeps=5, seed=5)
    assert np.all(other.states[1:] != one.states[1:])
    assert np.all(many[0, 1:] != many[1, 1:])


def test_groups_of_paths_do_not_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"dt": 0.1, "n": 4, "substeps": 10, "paths": 7, "seed": 1}
    whole = simulate_paths(CIR(), CIR.typical, **arguments)
    module = importlib.import_module("fokkerflow.sde.simulate")  # the package exports its function by the same name
    monkeypatch.setattr(module, "_NOISE_LIMIT", 30)
    np.testing.assert_allclose(simulate_paths(CIR(), CIR.typical, **arguments), whole, rtol=1e-12)
    monkeypatch.setattr(module, "_NOISE_BLOCK", 60)
    np.testing.assert_allclose(simulate_paths(CIR(), CIR.typical, **arguments), whole, rtol=1e-12)


def test_one_parameter_and_one_start_for_each_path() -> None:
    p = np.array([[2.0, 0.5, 0.3], [5.0, -1.0, 0.01]])
    both = simulate_paths(OU(), p, [[0.5], [9.0]], dt=1.0, n=5, seed=3)
    assert both.shape == (2, 5, 1)
    named = simulate_paths(OU(), {"kappa": p[:, 0], "mean": p[:, 1], "sigma": p[:, 2]}, [[0.5], [9.0]], dt=1.0, n=5, seed=3)
    np.testing.assert_array_equal(both, named)
    assert both[1, -1, 0] == pytest.approx(-1.0, abs=0.05)
    np.testing.assert_allclose(both[0], simulate_paths(OU(), p[0], [0.5], dt=1.0, n=5, seed=3)[0], rtol=1e-12)


def test_times_burn_in_and_irregular_gaps() -> None:
    gaps = np.array([0.5, 0.1, 0.4, 1.0])
    full = simulate(SeasonalOU(), SeasonalOU.typical, dt=gaps, n=5, t0=2.0, seed=1)
    np.testing.assert_allclose(full.times, [2.0, 2.5, 2.6, 3.0, 4.0])
    assert full.names == ("x",)
    np.testing.assert_array_equal(full.states[0], SeasonalOU.start)
    later = simulate(SeasonalOU(), SeasonalOU.typical, dt=gaps, n=3, burn_in=2, t0=2.6, seed=1)
    np.testing.assert_allclose(later.times, full.times[2:])
    np.testing.assert_allclose(later.states, full.states[2:], rtol=1e-12)
    assert len(simulate(OU(), OU.typical, dt=0.1, n=1)) == 1


def test_a_path_without_noise_follows_its_drift_through_time() -> None:
    """Seasonal mean with hardly any noise, against the solution of the ordinary equation."""
    p = {"kappa": 2.0, "mean": 0.0, "amplitude": 1.0, "phase": 0.25, "sigma": 1e-12}
    x = simulate(SeasonalOU(), p, [0.0], dt=0.25, n=5, substeps=4000, t0=0.3).states[-1, 0]
    w = 2 * np.pi
    s = np.linspace(0.3, 1.3, 20_001)
    f = np.exp(-2.0 * (1.3 - s)) * 2.0 * np.cos(w * (s - 0.25))
    assert x == pytest.approx(np.trapezoid(f, s), abs=2e-3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dt": 0.0}, ValueError, "dt = 0, expected a positive, finite time"),
        ({"dt": [0.1, -0.2]}, ValueError, "dt = -0.2"),
        ({"dt": [0.1]}, ValueError, r"expected a number or burn_in \+ n - 1 = 2 gaps"),
        ({"dt": "soon"}, TypeError, "dt: got 'soon', expected numbers"),
        ({"n": 0}, ValueError, "n = 0, expected a whole number of at least 1"),
        ({"n": 2.5}, ValueError, "n = 2.5"),
        ({"substeps": 0}, ValueError, "substeps = 0"),
        ({"burn_in": -1}, ValueError, "burn_in = -1, expected a whole number of at least 0"),
        ({"seed": -1}, ValueError, "seed = -1"),
        ({"seed": 2**64}, ValueError, "seed = 18446744073709551616"),
        ({"t0": float("nan")}, ValueError, "t0 = nan"),
        ({"x0": [-0.1, 0.0]}, ValueError, r"x0 has v = -0.1, expected a finite value in \(0, inf\)"),
        ({"x0": [0.1]}, ValueError, r"x0 of shape \(1,\), expected 2: v, y"),
        ({"params": {**Heston.typical, "sigma": 2.0}}, ConstraintError, "strict Feller"),
        ({"params": {"alpha": 1.0}}, ValueError, "missing parameter 'beta'"),
        ({"params": [[[0.1, 3, 0.25, 0.05, -0.8]]]}, ValueError, r"params of shape \(1, 1, 5\)"),
        ({"x0": [[0.1, 0.0]] * 3, "paths": 2}, ValueError, "number of paths is not clear: got paths for 2, x0 for 3"),
        ({"paths": 0}, ValueError, "paths = 0"),
    ],
)
def test_refusals(change: dict, error: type[Exception], message: str) -> None:
    arguments = {"params": Heston.typical, "dt": 0.1, "n": 3, **change}
    with pytest.raises(error, match=message):
        simulate_paths(Heston(), arguments.pop("params"), arguments.pop("x0", None), **arguments)


class Explosive(GBM):
    def drift(self, t, x, p):
        return p[0] * x**3


def test_numbers_that_overflow_are_reported() -> None:
    with pytest.raises(
        SimulationError, match=r"s is (inf|nan) in observation \d of path 1, with mu=9, .*increase substeps \(now 2\)"
    ):
        simulate_paths(Explosive(), [[-0.1, 0.1], [9.0, 0.1]], [2.0], dt=1.0, n=8, substeps=2)


def test_single_precision_mode_changes_nothing() -> None:
    arguments = {"dt": 0.5, "n": 4, "substeps": 20, "seed": 6}
    expected = simulate(CIR(), CIR.typical, **arguments)
    with jax.enable_x64(False):
        assert simulate(CIR(), CIR.typical, **arguments) == expected


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(MODELS)),
    dt=st.floats(1e-6, 3.0),
    seed=st.integers(0, 2**63 - 1),
    burn_in=st.integers(0, 1),
)
def test_any_valid_input_gives_a_series_of_the_model(name: str, dt: float, seed: int, burn_in: int) -> None:
    sde = MODELS[name]()
    series = simulate(sde, sde.typical, dt=dt, n=3 - burn_in, burn_in=burn_in, substeps=60, seed=seed)
    assert series.check(sde) is series
    np.testing.assert_allclose(series.gaps, dt, rtol=1e-9)
