"""A user's model from two functions: it equals the shipped one, and every mistake has a message of its own."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fokkerflow.sde.constraint import Constraint, ConstraintError
from fokkerflow.sde.domain import Domain
from fokkerflow.sde.functions import from_functions
from fokkerflow.sde.models import CIR, OU, Heston, SeasonalOU
from fokkerflow.sde.moments import moments
from fokkerflow.sde.polynomial import polynomial_structure
from fokkerflow.sde.simulate import simulate


def ou_drift(x, p):
    return p.kappa * (p.mean - x)


def ou_covariance(x, p):
    return p.sigma**2


def ou(**changes):
    arguments = {
        "drift": ou_drift,
        "covariance": ou_covariance,
        "states": {"x": "real"},
        "parameters": dict(OU.typical),
        "constraints": ["kappa > 0", ("sigma > 0", "noise")],
        **changes,
    }
    return from_functions(arguments.pop("drift"), arguments.pop("covariance"), **arguments)


def heston(**changes):
    def drift(x, p):
        alpha, beta, _, mu, _ = p
        v, _ = x
        return [beta * (alpha - v), mu - v / 2]

    def covariance(x, p):
        cross = p.rho * p.sigma * x[0]
        return ((p.sigma**2 * x[0], cross), (cross, x[0]))

    arguments = {
        "states": {"v": "positive", "y": "real"},
        "parameters": Heston.typical,
        "constraints": Heston.constraints,
        "start": {"y": 0.0, "v": 0.1},
        **changes,
    }
    return from_functions(drift, covariance, **arguments)


def test_it_is_the_model_it_describes() -> None:
    mine, theirs = heston(), Heston()
    x, p = jnp.array([0.3, -1.0]), jnp.array(list(Heston.typical.values()))
    np.testing.assert_allclose(mine.drift(0.0, x, p), theirs.drift(0.0, x, p), rtol=1e-15)
    np.testing.assert_allclose(mine.covariance(0.0, x, p), theirs.covariance(0.0, x, p), rtol=1e-15)
    assert mine.states == theirs.states
    assert mine.start == theirs.start
    assert (mine.parameters, mine.typical, mine.constraints) == (theirs.parameters, theirs.typical, theirs.constraints)
    assert polynomial_structure(mine) == polynomial_structure(theirs)
    for a, b in zip(moments(mine, 0.0, 0.5, x, p), moments(theirs, 0.0, 0.5, x, p), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    a, b = (simulate(sde, Heston.typical, dt=0.1, n=5, seed=1) for sde in (mine, theirs))
    np.testing.assert_allclose(a.states, b.states, rtol=1e-12)


def test_time_is_the_first_of_three_arguments() -> None:
    sde = from_functions(
        lambda t, x, p: p.kappa * (p.mean + p.amplitude * jnp.cos(2 * jnp.pi * (t - p.phase)) - x),
        lambda x, p: [[p.sigma**2]],
        states={"x": Domain()},
        parameters=SeasonalOU.typical,
    )
    assert not sde.autonomous
    p, x = jnp.array(list(SeasonalOU.typical.values())), jnp.array([0.2])
    np.testing.assert_allclose(sde.drift(0.3, x, p), SeasonalOU().drift(0.3, x, p), rtol=1e-15)
    assert ou().autonomous
    assert not ou(autonomous=False).autonomous


def test_equal_if_made_of_the_same_functions() -> None:
    assert ou() == ou()
    assert hash(ou()) == hash(ou())
    assert ou() != ou(name="other")
    assert ou() != ou(drift=lambda x, p: p.kappa * (p.mean - x))
    assert jax.jit(lambda x, sde: sde.drift(0.0, x, jnp.array([2.0, 0.5, 0.3])), static_argnums=1)(jnp.ones(1), ou()).shape == (
        1,
    )


@pytest.mark.parametrize(("domain", "start"), [("real", 0.0), ("positive", 1.0), ((2.0, math.inf), 3.0), ((0.0, 4.0), 2.0)])
def test_a_start_in_the_middle(domain, start: float) -> None:
    assert ou(states={"x": domain}).start == (start,)
    assert ou(states={"x": domain}, start=start + 0.5).start == (start + 0.5,)


def test_typical_values_are_found() -> None:
    sde = from_functions(
        lambda x, p: p.beta * (p.alpha - x),
        lambda x, p: p.sigma**2 * x,
        states={"v": "positive"},
        parameters=CIR.parameters,
        constraints=CIR.constraints,
    )
    assert set(sde.typical) == set(CIR.parameters)
    assert all(c.violation({k: np.array([v]) for k, v in sde.typical.items()}) is None for c in CIR.constraints)
    with pytest.raises(
        ConstraintError, match=r"no values were found that satisfy the constraints \(kappa > 1e9\)\. Give typical"
    ):
        ou(parameters=["kappa", "mean", "sigma"], constraints=["kappa > 1e9"])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"drift": lambda x, p: np.sqrt(x)}, TypeError, "drift: the function cannot be compiled.*jax.numpy"),
        ({"drift": lambda x, p: math.exp(x[0])}, TypeError, "drift: the function cannot be compiled"),
        ({"covariance": lambda x, p: 1.0 if x[0] > 0 else 2.0}, TypeError, "covariance: the function cannot be compiled"),
        ({"drift": lambda x, p: p.kapa * x}, ValueError, "drift: calling the function failed with AttributeError.*kapa"),
        ({"drift": lambda x, p: None}, ValueError, "drift: calling the function failed"),
        ({"drift": lambda x, p: [x[0], x[0]]}, ValueError, r"drift: .* array of shape \(2,\), expected \(1,\).*coordinates x"),
        ({"covariance": lambda x, p: jnp.ones((2, 2))}, ValueError, r"covariance: .*shape \(2, 2\), expected \(1, 1\)"),
        ({"drift": lambda x, p: x * 1j}, TypeError, "drift: the function returns complex numbers"),
        ({"drift": lambda x, p: jnp.log(x)}, ValueError, r"drift: entry \[0\] is -?(nan|inf) at x=.* with kappa=2, "),
        ({"covariance": lambda x, p: x}, ValueError, r"covariance: the matrix is not positive definite at x=.* with kappa="),
        ({"covariance": lambda x, p: 0.0}, ValueError, "covariance: the matrix is not positive definite at x=0 with"),
        ({"drift": lambda x: x}, TypeError, r"drift: got a function of 1 arguments \(x\), expected \(x, p\) or \(t, x, p\)"),
        ({"drift": lambda *a: a}, TypeError, "drift: got a function of 0 arguments"),
        ({"drift": 3.0}, TypeError, "drift: got 3.0, expected a function"),
        ({"states": {}}, TypeError, "states: got {}, expected at least one name"),
        ({"states": ["x"]}, TypeError, r"states: got \['x'\], expected a mapping"),
        ({"states": {"x": "negative"}}, ValueError, "states: 'x': Got 'negative' as a domain"),
        ({"states": {"x": (1.0, 0.0)}}, ValueError, "states: 'x': A domain needs lower < upper"),
        ({"states": {"x": ("a", 0.0)}}, ValueError, "states: 'x': "),
        ({"parameters": {"lambda": 1.0}}, ValueError, "parameters: got the name 'lambda', expected a Python identifier"),
        ({"parameters": ["a", "a"]}, ValueError, "parameters: the name 'a' occurs twice"),
        ({"parameters": "kappa"}, TypeError, "parameters: got 'kappa', expected at least one name"),
        ({"parameters": {**OU.typical, "mean": "low"}}, TypeError, "the typical value of 'mean': got 'low', expected a number"),
        ({"parameters": {**OU.typical, "kappa": -1.0}}, ConstraintError, "0 < kappa is violated"),
        ({"parameters": {**OU.typical, "mean": math.nan}}, ConstraintError, "parameter 'mean' is nan"),
        ({"constraints": ["speed > 0"]}, ValueError, "'speed > 0' mentions 'speed', which is not a parameter; .* kappa, mean"),
        ({"constraints": ["kappa"]}, ValueError, "not an inequality"),
        ({"constraints": "kappa > 0"}, TypeError, r"constraints: got 'kappa > 0', expected a sequence such as \['kappa > 0'\]"),
        ({"states": {"x": "positive"}, "start": [-1.0]}, ValueError, "start has x = -1, expected a finite value in"),
        ({"start": [0.0, 1.0]}, ValueError, "start: got 2 numbers, expected 1: x"),
        ({"start": {"y": 0.0}}, ValueError, "start: got 'y', expected 'x'"),
        ({"start": ["zero"]}, TypeError, "start: 'x': got 'zero', expected a number"),
        ({"name": ""}, TypeError, "name: got ''"),
    ],
)
def test_mistakes(changes: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ou(**changes)


def test_an_asymmetric_covariance_names_entries_and_point() -> None:
    with pytest.raises(
        ValueError, match=r"not symmetric at a=0, b=0 with s=1: entry \[0, 1\] is 0.5 and entry \[1, 0\] is 0.4"
    ):
        from_functions(
            lambda x, p: -x,
            lambda x, p: [[p.s, 0.5], [0.4, p.s]],
            states={"a": "real", "b": "real"},
            parameters={"s": 1.0},
        )


def test_coordinates_of_very_different_size_are_positive_definite() -> None:
    from_functions(
        lambda x, p: -x,
        lambda x, p: [[1e-12, 0.9e-1], [0.9e-1, 1e10]],
        states={"a": "real", "b": "real"},
        parameters={"s": 1.0},
        constraints=[Constraint("s > 0")],
    )


def test_double_precision_in_single_precision_mode() -> None:
    with jax.enable_x64(False):
        sde = ou()
        mean, covariance = moments(sde, 0.0, 0.5, np.array([0.9]), np.array([2.0, 0.5, 0.3]))
    assert float(mean[0]) == pytest.approx(0.5 + 0.4 * math.exp(-1.0), rel=1e-13)
    assert float(covariance[0, 0]) == pytest.approx(0.09 * -math.expm1(-2.0) / 4, rel=1e-13)


@settings(max_examples=25, deadline=None)
@given(
    drift=st.sampled_from([lambda x, p: 1.0 / x, lambda x, p: [x[0]], lambda x, p: (), lambda x, p: "x", lambda x, p: x[:0]]),
    covariance=st.sampled_from([lambda x, p: x**2, lambda x, p: [[p[0]]], lambda x, p: jnp.sqrt(x), lambda x, p: -p.a]),
    domain=st.sampled_from(["real", "positive", (-1.0, 1.0)]),
    typical=st.floats(),
)
def test_a_model_is_sound_or_refused(drift, covariance, domain, typical: float) -> None:
    """Either an error of ours that names an argument, or formulas that are finite at the start."""
    try:
        sde = from_functions(drift, covariance, states={"x": domain}, parameters={"a": typical})
    except (TypeError, ValueError) as error:
        if not str(error).startswith(("drift: ", "covariance: ", "custom: ")):
            raise
        return
    x, p = jnp.array(sde.start), jnp.array([typical])
    assert np.all(np.isfinite(sde.drift(0.0, x, p)))
    assert float(sde.covariance(0.0, x, p)[0, 0]) > 0
