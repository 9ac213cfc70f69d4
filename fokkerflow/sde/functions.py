"""A user's model from two Python functions, checked once where it is made."""

from __future__ import annotations

import inspect
import keyword
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow.sde.constraint import Constraint, ConstraintError, as_constraint
from fokkerflow.sde.domain import Domain, as_domain
from fokkerflow.sde.function_checks import check_formulas
from fokkerflow.sde.model import SDE, Matrix, Parameters, Scalar, State
from fokkerflow.sde.probing import search_parameters
from fokkerflow.sde.validation import check_parameters, check_state


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FunctionSDE(SDE):
    """A model whose formulas are two functions of a user's; made by `from_functions`.

    Two of them are equal if all their fields are, the functions included.
    """

    name: str  # type: ignore[misc]
    domain_items: tuple[tuple[str, Domain], ...]
    parameters: tuple[str, ...]  # type: ignore[misc]
    typical_values: tuple[float, ...]
    start: tuple[float, ...]  # type: ignore[misc]
    constraints: tuple[Constraint, ...]  # type: ignore[misc]
    autonomous: bool  # type: ignore[misc]
    drift_function: Callable[..., Any]
    covariance_function: Callable[..., Any]

    @property
    def label(self) -> str:
        return self.name

    @property
    def states(self) -> Mapping[str, Domain]:  # type: ignore[override]
        return dict(self.domain_items)

    @property
    def typical(self) -> Mapping[str, float]:  # type: ignore[override]
        return dict(zip(self.parameters, self.typical_values, strict=True))

    def drift(self, t: Scalar, x: State, p: Parameters) -> State:
        value = self.evaluate(self.drift_function, t, x, p)
        return jnp.asarray(value, dtype=float).reshape(self.dimension)

    def covariance(self, t: Scalar, x: State, p: Parameters) -> Matrix:
        value = self.evaluate(self.covariance_function, t, x, p)
        return jnp.asarray(value, dtype=float).reshape(self.dimension, self.dimension)

    def evaluate(self, function: Callable[..., Any], t: Scalar, x: State, p: Parameters) -> Any:
        """What one of the two functions returns, as it is."""
        named = _tuple_type(self.parameters)(*(p[i] for i in range(len(self.parameters))))
        return function(t, x, named) if takes_time(function) else function(x, named)


def from_functions(
    drift: Callable[..., Any],
    covariance: Callable[..., Any],
    *,
    states: Mapping[str, Any],
    parameters: Mapping[str, float] | Sequence[str],
    constraints: Sequence[str | tuple[str, str] | Constraint] = (),
    start: Mapping[str, float] | Sequence[float] | None = None,
    name: str = "custom",
    autonomous: bool | None = None,
) -> FunctionSDE:
    """A model from its drift and its covariance.

    **Arguments:**

    - `drift`: ``drift(x, p)``, or ``drift(t, x, p)`` if it depends on time, written with `jax.numpy`. `x` is an array of shape
      ``(d,)``; `p` is a named tuple, so ``p.kappa`` and ``kappa, mean = p`` both work. It returns d numbers: an array, a list,
      or a bare number in one dimension.
    - `covariance`: likewise; it returns Sigma, d rows of d numbers, symmetric and positive definite inside the domain. This is
      the square of the factor in front of dW.
    - `states`: the name of each coordinate and where it lives: ``"real"``, ``"positive"``, ``(lower, upper)`` or a `Domain`.
    - `parameters`: the name of each parameter and a typical value. If only names are given, values are searched for.
    - `constraints`: inequalities between parameters such as ``"sigma < sqrt(2*alpha*beta)"``, optionally with a label.
    - `start`: a typical state; 0 on the real line, 1 above the end of a half line, the middle of an interval if left out.
    - `name`: what the model is called.
    - `autonomous`: whether the model is the same at all times; by default, whether neither function takes the time.

    **Raises:** ValueError or TypeError that says which argument or function is wrong, and at which point.

    ```python
    sde = from_functions(
        drift=lambda x, p: p.kappa * (p.mean - x),
        covariance=lambda x, p: p.sigma**2 * x,
        states={"v": "positive"},
        parameters={"kappa": 3.0, "mean": 0.1, "sigma": 0.25},
        constraints=["0 < kappa", "0 < sigma < sqrt(2*kappa*mean)"],
    )
    ```
    """
    functions = {"drift": drift, "covariance": covariance}
    with_time = [takes_time(_callable(function, what), what) for what, function in functions.items()]
    domains = _domains(states)
    names = _names(parameters, "parameters")
    inequalities = _known_constraints(constraints, names)
    if not isinstance(name, str) or not name:
        raise TypeError(f"name: got {name!r}, expected a word.")
    sde = FunctionSDE(
        name=name,
        domain_items=tuple(domains.items()),
        parameters=names,
        typical_values=_typical(parameters, names, inequalities),
        start=_start(start, domains),
        constraints=inequalities,
        autonomous=not any(with_time) if autonomous is None else bool(autonomous),
        drift_function=drift,
        covariance_function=covariance,
    )
    check_state(sde, np.array(sde.start), "start")
    check_parameters(sde, np.array(sde.typical_values))
    check_formulas(sde, {"drift": (drift, (sde.dimension,)), "covariance": (covariance, (sde.dimension,) * 2)})
    return sde


@lru_cache(maxsize=256)
def _tuple_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Parameters", names)


def takes_time(function: Callable[..., Any], what: str = "function") -> bool:
    """True for ``f(t, x, p)``, False for ``f(x, p)``."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"{what}: the arguments of {function!r} cannot be found; wrap it: lambda x, p: ...") from None
    positional = [a for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.default is a.empty]
    if len(positional) not in (2, 3):
        given = ", ".join(a.name for a in positional) or "none"
        raise TypeError(f"{what}: got a function of {len(positional)} arguments ({given}), expected (x, p) or (t, x, p).")
    return len(positional) == 3


def _callable(function: Any, what: str) -> Callable[..., Any]:
    if not callable(function):
        raise TypeError(f"{what}: got {function!r}, expected a function (x, p) or (t, x, p).")
    return function


def _domains(states: Mapping[str, Any]) -> dict[str, Domain]:
    if not isinstance(states, Mapping):
        raise TypeError(f"states: got {states!r}, expected a mapping such as {{'v': 'positive', 'y': 'real'}}.")
    domains = {}
    for key in _names(states, "states"):
        try:
            domains[key] = as_domain(states[key])
        except (TypeError, ValueError) as error:
            raise ValueError(f"states: {key!r}: {error}") from None
    return domains


def _names(given: Mapping[str, Any] | Sequence[str], what: str) -> tuple[str, ...]:
    """Names that can be attributes of a tuple, columns of a table and words of a constraint."""
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)) or not given:
        raise TypeError(f"{what}: got {given!r}, expected at least one name, in a mapping or a sequence.")
    names = tuple(given)
    for n in names:
        if not isinstance(n, str) or not n.isidentifier() or keyword.iskeyword(n) or n.startswith("_"):
            raise ValueError(
                f"{what}: got the name {n!r}, expected a Python identifier (not a keyword, no leading underscore)."
            )
    repeated = [n for i, n in enumerate(names) if n in names[:i]]
    if repeated:
        raise ValueError(f"{what}: the name {repeated[0]!r} occurs twice.")
    return names


def _known_constraints(
    constraints: Sequence[str | tuple[str, str] | Constraint], names: tuple[str, ...]
) -> tuple[Constraint, ...]:
    if isinstance(constraints, (str, Constraint)):
        raise TypeError(f"constraints: got {constraints!r}, expected a sequence such as ['kappa > 0'].")
    known = tuple(as_constraint(c) for c in constraints)
    for constraint in known:
        unknown = [n for n in constraint.names if n not in names]
        if unknown:
            raise ValueError(
                f"constraints: {constraint.text!r} mentions {', '.join(map(repr, unknown))}, "
                f"which is not a parameter; the parameters are {', '.join(names)}."
            )
    return known


def _typical(
    parameters: Mapping[str, float] | Sequence[str], names: tuple[str, ...], constraints: tuple[Constraint, ...]
) -> tuple[float, ...]:
    if isinstance(parameters, Mapping):
        return tuple(_number(parameters[n], f"parameters: the typical value of {n!r}") for n in names)
    found = search_parameters(names, constraints)
    if found is None:
        listed = "; ".join(c.text for c in constraints)
        raise ConstraintError(
            f"parameters: no values were found that satisfy the constraints ({listed}). "
            "Give typical values: parameters={" + ", ".join(f"{n!r}: ..." for n in names) + "}."
        )
    return found


def _start(start: Mapping[str, float] | Sequence[float] | None, domains: Mapping[str, Domain]) -> tuple[float, ...]:
    if start is None:
        return tuple(_middle(domain) for domain in domains.values())
    if isinstance(start, Mapping):
        if set(start) != set(domains):
            raise ValueError(f"start: got {', '.join(map(repr, start))}, expected {', '.join(map(repr, domains))}.")
        start = [start[key] for key in domains]
    values = [start] if np.ndim(start) == 0 else list(start)
    if len(values) != len(domains):
        raise ValueError(f"start: got {len(values)} numbers, expected {len(domains)}: {', '.join(domains)}.")
    return tuple(_number(v, f"start: {key!r}") for key, v in zip(domains, values, strict=True))


def _middle(domain: Domain) -> float:
    if domain.is_interval:
        return (domain.lower + domain.upper) / 2
    return domain.lower + 1 if domain.is_half_line else 0.0


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, jax.errors.JAXTypeError):
        raise TypeError(f"{what}: got {value!r}, expected a number.") from None
