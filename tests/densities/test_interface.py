"""What every exact density promises: names, shapes, domains, constraints, precision, batching, and no NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fokkerflow.densities import density, methods
from fokkerflow.sde.constraint import ConstraintError
from fokkerflow.sde.models import CIR, GBM, OU, DoubleWell, Heston, SeasonalOU

EXACT = {model.name: density("exact", model()) for model in (OU, SeasonalOU, GBM, CIR, Heston)}
HESTON = EXACT["heston"]
TYPICAL = np.array(list(Heston.typical.values()))
X1, X0 = np.array([0.12, 0.05]), np.array([0.1, 0.0])


@pytest.fixture(params=EXACT.values(), ids=EXACT)
def exact(request):
    return request.param


def test_parameters_by_name_and_in_order_are_the_same(exact):
    start = np.array(exact.sde.start)
    by_name = exact.log_prob(start, start, 0.5, exact.sde.typical)
    assert by_name.dtype == jnp.float64
    assert by_name == exact.log_prob(start, start, 0.5, list(exact.sde.typical.values()))


def test_outside_the_domain_the_density_is_zero():
    for x1 in ([-0.1, 0.0], [0.0, 0.0], [np.nan, 0.0], [0.1, np.inf]):
        assert HESTON.log_prob(x1, X0, 0.5, TYPICAL) == -jnp.inf
    assert EXACT["gbm"].log_prob(-1.0, 1.0, 0.5, GBM.typical) == -jnp.inf


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x1": [0.1]}, ["x1", r"\(1,\)", "v, y"]),
        ({"x0": [0.1, 0.0, 0.0]}, ["x0", r"\(3,\)"]),
        ({"x0": [-0.1, 0.0]}, ["x0", "v = -0.1"]),
        ({"dt": 0.0}, ["dt = 0"]),
        ({"dt": -1.0}, ["dt = -1"]),
        ({"dt": np.array([0.1, 0.2])}, ["dt", "log_prob_batch"]),
        ({"params": [0.1, 3.0]}, ["parameters", "alpha, beta, sigma, mu, rho"]),
        ({"params": {"alpha": 0.1, "beta": 3.0, "sgma": 0.2, "mu": 0.0, "rho": 0.0}}, ["sgma", "sigma"]),
        ({"params": [0.1, 3.0, 0.9, 0.0, 0.0]}, [r"sigma < sqrt\(2 \* alpha \* beta\)", "Feller", "sigma=0.9"]),
        ({"params": [0.1, 3.0, 0.2, 0.0, -1.0]}, ["rho"]),
        ({"params": [0.1, 3.0, 0.2, np.nan, 0.0]}, ["mu"]),
    ],
)
def test_what_is_wrong_is_named(change, words):
    arguments = {"x1": X1, "x0": X0, "dt": 0.5, "params": TYPICAL} | change
    for word in words:
        with pytest.raises(ValueError, match=word):
            HESTON.log_prob(**arguments)


def test_a_broken_constraint_has_its_own_error():
    with pytest.raises(ConstraintError):
        HESTON.log_prob(X1, X0, 0.5, [0.1, 3.0, 0.9, 0.0, 0.0])


def test_unknown_methods_and_models_without_one_are_named():
    assert "exact" in methods(Heston())
    assert "exact" not in methods(DoubleWell())
    with pytest.raises(ValueError, match="exakt"):
        density("exakt", Heston())
    with pytest.raises(ValueError, match="DoubleWell"):
        density("exact", DoubleWell())
    with pytest.raises(TypeError, match="SDE"):
        density("exact", "heston")


def test_batches_broadcast(exact):
    start = np.array(exact.sde.start)
    p = np.array(list(exact.sde.typical.values()))
    x1, dt = start * np.linspace(0.9, 1.1, 3)[:, None, None], np.array([0.1, 0.5])
    got = exact.log_prob_batch(x1, start, dt, p)
    assert got.shape == (3, 2)
    one_by_one = [[exact.log_prob(a[0], start, t, p) for t in dt] for a in x1]
    np.testing.assert_allclose(got, one_by_one, rtol=1e-12)


def test_traced_parameters_outside_the_constraint_give_minus_infinity_and_finite_gradients(exact):
    start = jnp.array(exact.sde.start)
    broken = -jnp.array(list(exact.sde.typical.values()))
    value, gradient = jax.jit(jax.value_and_grad(lambda p: exact.log_prob(start, start, 0.5, p)))(broken)
    assert value == -jnp.inf
    assert np.all(np.isfinite(gradient))


def test_values_are_in_double_precision_whatever_the_setting(exact):
    start, p = np.array(exact.sde.start), np.array(list(exact.sde.typical.values()))
    x1 = start * 1.05 + 0.01
    expected = float(exact.log_prob(x1, start, 0.25, p))
    with jax.enable_x64(False):
        assert float(exact.log_prob(x1, start, 0.25, p)) == pytest.approx(expected, rel=1e-13)
        assert float(exact.log_prob_batch(x1, start, 0.25, p)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.filterwarnings("ignore")
def test_transformations_work_in_single_precision_mode():
    exact = EXACT["cir"]
    p = np.array(list(CIR.typical.values()))
    expected = float(exact.log_prob(0.12, 0.1, 0.25, p))
    slope = float(jax.grad(lambda q: exact.log_prob(0.12, 0.1, 0.25, q))(jnp.asarray(p))[0])
    with jax.enable_x64(False):
        q = jnp.asarray(p, jnp.float32)
        assert float(jax.jit(lambda q: exact.log_prob(0.12, 0.1, 0.25, q))(q)) == pytest.approx(expected, rel=1e-4)
        assert float(jax.grad(lambda q: exact.log_prob(0.12, 0.1, 0.25, q))(q)[0]) == pytest.approx(slope, rel=1e-3)
        batch = jax.vmap(lambda x: exact.log_prob(x, 0.1, 0.25, p))(jnp.array([[0.12], [0.13]], jnp.float32))
        assert float(batch[0]) == pytest.approx(expected, rel=1e-4)


finite = st.floats(-20, 20)
positive = st.floats(-12, 3).map(lambda e: 10.0**e)
share = st.floats(1e-3, 1 - 1e-6)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    v=st.tuples(positive, positive),
    y=finite,
    dt=positive,
    alpha=positive,
    beta=positive,
    feller=share,
    mu=finite,
    rho=st.floats(-0.999, 0.999),
)
def test_heston_is_finite_or_zero_for_any_valid_input(v, y, dt, alpha, beta, feller, mu, rho):
    sigma = feller * np.sqrt(2 * alpha * beta)
    value = float(HESTON.log_prob([v[0], y], [v[1], 0.0], dt, [alpha, beta, sigma, mu, rho]))
    variance = float(EXACT["cir"].log_prob(v[0], v[1], dt, [alpha, beta, sigma]))
    assert np.isfinite(value)
    # no return has a conditional density above e^60 for variances above 1e-12; the second term is rounding
    assert value < variance + 60 + 1e-12 * abs(variance)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(x=st.tuples(positive, positive), dt=positive, alpha=positive, beta=positive, feller=share)
def test_the_one_dimensional_densities_are_finite_or_zero_for_any_valid_input(x, dt, alpha, beta, feller):
    cases = {
        "cir": (alpha, beta, feller * np.sqrt(2 * alpha * beta)),
        "ou": (beta, alpha, feller),
        "gbm": (alpha, feller),
        "seasonal-ou": (beta, alpha, alpha, feller, feller),
    }
    for name, p in cases.items():
        value = float(EXACT[name].log_prob(x[0], x[1], dt, p))
        assert not np.isnan(value), name
        assert value < np.inf, name
