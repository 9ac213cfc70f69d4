"""Constraints are text: parsed into inequalities, evaluated by NumPy and JAX, refused when they are anything else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.sde.constraint import Constraint, ConstraintError, as_constraint, open_range
from fokkerflow.sde.domain import Domain, as_domain
from fokkerflow.sde.models import MODELS, Heston
from fokkerflow.sde.validation import check_parameters, parameter_vector, valid_parameters

FELLER = Constraint("0 < sigma < sqrt(2*alpha*beta)", "Feller")


def values(**numbers: float) -> dict[str, np.ndarray]:
    return {name: np.atleast_1d(np.asarray(number, float)) for name, number in numbers.items()}


@pytest.mark.parametrize(
    ("text", "given", "holds"),
    [
        ("a > 0", {"a": 1.0}, True),
        ("a > 0", {"a": 0.0}, False),
        ("a >= 0", {"a": 0.0}, True),
        ("-1 < a < 1", {"a": -1.0}, False),
        ("0.5 <= a <= 1", {"a": 1.0}, True),
        ("a**2 + 2*b <= max(a, b, 3) - 1/2", {"a": 1.0, "b": 0.75}, True),
        ("a**2 + 2*b <= max(a, b, 3) - 1/2", {"a": 1.0, "b": 0.76}, False),
        ("exp(log(a)) < abs(-b)", {"a": 1.0, "b": 2.0}, True),
        ("a > 0", {"a": float("nan")}, False),
        ("a < sqrt(b)", {"a": 0.0, "b": -1.0}, False),
    ],
)
def test_truth_in_numpy_and_jax(text: str, given: dict[str, float], holds: bool) -> None:
    constraint = Constraint(text)
    assert (constraint.violation(values(**given)) is None) == holds
    assert bool(jax.jit(constraint.holds)({k: jnp.asarray(v) for k, v in given.items()})) == holds


def test_message_names_inequality_values_and_purpose() -> None:
    message = FELLER.violation(values(sigma=[0.2, 0.9], alpha=[0.1, 0.1], beta=[3.0, 3.0]))
    assert message == (
        "sigma < sqrt(2 * alpha * beta) is violated (Feller): 0.9 is not < 0.7745967; got sigma=0.9, alpha=0.1, beta=3"
    )


def test_names_in_order_of_appearance() -> None:
    assert FELLER.names == ("sigma", "alpha", "beta")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "is not an inequality"),
        ("a = 0", "not a valid expression"),
        ("a == 0", "a comparison other than"),
        ("__import__('os') > 0", r"contains \"__import__\('os'\)\""),
        ("a.b > 0", "contains 'a.b'"),
        ("erf(a) > 0", "functions sqrt, exp, log, abs, min, max"),
        ("a > 'x'", "contains"),
    ],
)
def test_anything_but_arithmetic_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Constraint(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 0", (0.0, np.inf)),
        ("-1 < a < 1", (-1.0, 1.0)),
        ("0 < a < sqrt(2*b)", (0.0, np.inf)),
        ("0.5 <= a <= 1", (-np.inf, np.inf)),
        ("1/2 <= a < 2", (-np.inf, 2.0)),
        ("b > 0", (-np.inf, np.inf)),
        ("a + b > 0", (-np.inf, np.inf)),
    ],
)
def test_the_open_range_is_that_of_strict_inequalities_with_numbers(text: str, expected: tuple[float, float]) -> None:
    assert open_range([Constraint(text)], "a") == expected


def test_from_text_and_pair() -> None:
    assert as_constraint(("a > 0", "why")) == Constraint("a > 0", "why")
    assert as_constraint("a > 0").label == ""


@pytest.mark.parametrize("name", MODELS)
def test_typical_parameters_are_valid_and_dependence_is_declared(name: str) -> None:
    sde = MODELS[name]()
    p = np.array([sde.typical[k] for k in sde.parameters])
    check_parameters(sde, p)
    assert bool(valid_parameters(sde, jnp.asarray(p)))
    assert {n for c in sde.constraints for n in c.names} <= set(sde.parameters)
    assert all(d.contains(x) for d, x in zip(sde.domains, sde.start, strict=True))


def test_a_batch_is_checked_row_by_row() -> None:
    good = [0.1, 3.0, 0.25, 0.05, -0.8]
    with pytest.raises(ConstraintError, match=r"Heston: rho < 1 is violated: 1.5 is not < 1; got rho=1.5"):
        check_parameters(Heston(), np.array([good, [*good[:4], 1.5]]))


def test_not_finite_is_named() -> None:
    with pytest.raises(ConstraintError, match="parameter 'mu' is nan, expected a finite number"):
        check_parameters(Heston(), np.array([0.1, 3.0, 0.25, np.nan, -0.8]))


def test_parameters_by_name_in_model_order() -> None:
    shuffled = dict(reversed(Heston.typical.items()))
    np.testing.assert_array_equal(parameter_vector(Heston(), shuffled), [0.1, 3.0, 0.25, 0.05, -0.8])
    assert parameter_vector(Heston(), {**shuffled, "rho": np.array([-0.8, 0.1])}).shape == (2, 5)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"alpha": 1}, ValueError, "missing parameter 'beta', 'sigma', 'mu', 'rho'"),
        ({**Heston.typical, "gamma": 1}, ValueError, "unknown parameter 'gamma'. Expected alpha, beta, sigma, mu, rho"),
        ([1, 2, 3], ValueError, r"got parameters of shape \(3,\), expected 5: alpha, beta, sigma, mu, rho"),
        (1.0, ValueError, r"got parameters of shape \(\), expected 5"),
        ({**Heston.typical, "mu": "high"}, TypeError, "parameter 'mu': got 'high', expected numbers"),
        (["a"] * 5, TypeError, "expected numbers"),
        ([1j] * 5, TypeError, "expected numbers"),
        (None, TypeError, "expected numbers"),
    ],
)
def test_bad_parameters_are_refused(params: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parameter_vector(Heston(), params)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("real", Domain()), ("positive", Domain(0)), ((0, 1), Domain(0, 1)), (Domain(2), Domain(2))],
)
def test_domains_from_words_and_pairs(value: object, expected: Domain) -> None:
    assert as_domain(value) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain(1, 0), "lower < upper"),
        (lambda: Domain(0, 0), "lower < upper"),
        (lambda: Domain(float("nan"), 1), "lower < upper"),
        (lambda: Domain(upper=3), "Model -x instead of x"),
        (lambda: as_domain("half"), "Got 'half' as a domain"),
        (lambda: as_domain(3), "Got 3 as a domain"),
    ],
)
def test_bad_domains_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
