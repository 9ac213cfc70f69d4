"""The trained density behind the interface of all densities: values, gaps, guard, files, and work that is done once."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fokkerflow
from fokkerflow.densities import Surrogate, load
from fokkerflow.densities import surrogate as module
from fokkerflow.sde.models import CIR, OU, Heston, SeasonalOU
from fokkerflow.training import artifact
from tests.training.trainings import OU_LAW, law_of, small_cir, untrained

P = np.array([0.1, 3.0, 0.25])


@pytest.fixture(scope="module")
def cir() -> Surrogate:
    return Surrogate(small_cir())


def test_it_is_the_density_that_it_was_trained_to_be(cir: Surrogate) -> None:
    exact, x1 = fokkerflow.density("exact", CIR()), np.linspace(0.04, 0.2, 30)[:, None, None]
    dt = np.array([0.002, 0.05, 0.5])
    got, want = (d.log_prob_batch(x1, 0.1, dt, P) for d in (cir, exact))
    near = np.asarray(want) > np.max(want, axis=0) - 6  # within about three standard deviations
    assert np.max(np.abs(got - want)[near]) < 0.02


def test_a_gap_that_is_too_long_is_never_extrapolated(cir: Surrogate) -> None:
    with pytest.raises(ValueError, match=r"CIR: got dt = 0\.6, this density is for gaps up to 0\.5"):
        cir.log_prob(0.1, 0.1, 0.6, P)
    with pytest.raises(ValueError, match=r"got dt = 0\.6"):
        cir.log_prob_batch(0.1, 0.1, [0.1, 0.6], P)
    series = fokkerflow.Series(times=[0.0, 0.1, 0.7], states=[[0.1], [0.1], [0.1]], names=["v"])
    with pytest.raises(ValueError, match=r"got dt = 0\.6"):
        fokkerflow.log_likelihood(cir, series, P)
    with pytest.raises(ValueError, match=r"got dt = 0\.6"):
        jax.jit(lambda p: fokkerflow.log_likelihood(cir, series, p))(P)
    value, slope = jax.jit(jax.value_and_grad(lambda dt: cir.log_prob(0.1, 0.1, dt, P)))(0.6)
    assert value == -jnp.inf
    assert np.isfinite(slope)
    assert np.isfinite(cir.log_prob(0.1, 0.1, 0.5 * (1 + 1e-9), P))  # one half, in another calendar
    assert np.isfinite(cir.log_prob(0.1, 0.1, 1e-6, P))  # shorter than trained for: tends to the known start


def test_the_guard_names_what_is_outside_and_by_how_much(cir: Surrogate) -> None:
    x0 = np.array([[0.1], [0.1], [0.365], [0.1]])
    dt = np.array([0.1, 1.0, 0.1, 1e-4])
    found = cir.check(x0, dt, {"alpha": 0.1, "beta": [3.0, 3.0, 3.8, 3.0], "sigma": 0.25})
    np.testing.assert_array_equal(found.inside, [True, False, False, False])
    np.testing.assert_allclose(found.excess["v"], [0, 0, 1, 0])  # the law is uniform on (0.02, 0.25)
    np.testing.assert_allclose(found.excess["beta"], [0, 0, 1, 0])  # four standard deviations, three of which are inside
    np.testing.assert_allclose(found.excess["dt"], [0, 1, 0, 4])
    assert found.share_outside == 0.75
    assert found.message().splitlines() == [
        "75.00% of 4 transitions are outside the training law:",
        "- dt in 50.00%, by up to a factor of 5 (it was trained for 0.0005 to 0.5)",
        "- v in 25.00%, by up to 1 widths of its law",
        "- beta in 25.00%, by up to 1 widths of its law",
    ]
    inside = cir.check(0.1, 0.1, P)
    assert bool(inside.inside)
    assert inside.message() == "All transitions are inside the training law."


def test_the_guard_ignores_what_only_shifts_the_density() -> None:
    """The log price and its drift move Heston's density as a whole: a law of them says nothing about trust."""
    surrogate = Surrogate(untrained(law_of(Heston())))
    assert surrogate.trained.relevant == ("v", "alpha", "beta", "sigma", "rho")
    found = surrogate.check([0.1, 8.3], 0.5, {**Heston.typical, "mu": 5.0})
    assert bool(found.inside)
    assert set(found.excess) == {"v", "alpha", "beta", "sigma", "rho", "dt"}


def test_the_guard_of_a_model_that_depends_on_time() -> None:
    found = Surrogate(untrained(law_of(SeasonalOU()))).check(0.5, 0.5, SeasonalOU.typical, t0=[0.5, 2.0])
    np.testing.assert_allclose(found.excess["t0"], [0, 2])


def test_what_depends_on_gap_and_parameters_alone_is_computed_once(cir: Surrogate) -> None:
    """The moments of CIR are the exponential of a 3 x 3 matrix; for one gap there is one, however many transitions."""

    def products(dt: np.ndarray) -> set[tuple[int, ...]]:
        program = jax.make_jaxpr(lambda x, dt, p: cir.log_prob_batch(x, x, dt, p))(np.full((64, 1), 0.1), dt, P)
        return {shape for shape in _products(program.jaxpr) if shape[-2:] == (3, 3)}

    assert products(np.asarray(0.25)) == {(3, 3)}
    assert products(np.full(64, 0.25)) == {(64, 3, 3)}


def _products(program: Any) -> list[tuple[int, ...]]:
    """The shapes of all matrix products in a program."""
    shapes = []
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            shapes.append(equation.outvars[0].aval.shape)
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                shapes += _products(inner)
    return shapes


def test_a_saved_density_comes_back(cir: Surrogate, tmp_path: Path) -> None:
    cir.save(tmp_path / "cir.fkf")
    back = load(tmp_path / "cir.fkf")
    assert eqx.tree_equal(back, cir)
    assert back.log_prob(0.12, 0.1, 0.3, P) == cir.log_prob(0.12, 0.1, 0.3, P)
    with pytest.raises(FileNotFoundError, match=r"nothing: there is no such file, and no density of this name comes with"):
        load("nothing")


def test_shipped_densities_are_found_by_name(cir: Surrogate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cir.save(tmp_path / f"my-cir{artifact.SUFFIX}")
    monkeypatch.setattr(module, "pretrained", lambda: {"my-cir": tmp_path / f"my-cir{artifact.SUFFIX}"})
    assert eqx.tree_equal(load("my-cir"), cir)


def test_train_gives_a_density() -> None:
    trained = fokkerflow.train(OU(), OU_LAW, 0.5, components=2, width=2, depth=1, iterations=0)
    assert isinstance(trained, Surrogate)
    assert np.isfinite(trained.log_prob(0.4, 0.5, 0.1, OU.typical))
    assert trained.longest_dt == 0.5
    assert trained.certificate is None
