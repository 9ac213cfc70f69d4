"""Constraints between parameters, written as text: ``Constraint("0 < sigma < sqrt(2*alpha*beta)", "Feller condition")``.

A constraint is data. The text can be shown to a person, stored in an artifact, evaluated by JAX inside a compiled
likelihood, and read as a *bound* on one parameter in terms of others, which is what a sampler needs to stay inside it.
It is parsed, never executed: names, numbers, ``+ - * / **`` and a handful of functions are all that it may contain.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

Expression = Callable[[Mapping[str, Any], ModuleType], Any]
"""A function of the parameter values and of the array module (numpy or jax.numpy) to compute with."""

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": lambda xp, a: xp.sqrt(a),
    "exp": lambda xp, a: xp.exp(a),
    "log": lambda xp, a: xp.log(a),
    "abs": lambda xp, a: xp.abs(a),
    "min": lambda xp, *a: reduce(xp.minimum, a),
    "max": lambda xp, *a: reduce(xp.maximum, a),
}
_COMPARISONS: dict[type, tuple[str, bool]] = {ast.Lt: ("<", True), ast.LtE: ("<=", False)}
_REVERSED: dict[type, type] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}


class ConstraintError(ValueError):
    """Parameters that break a constraint; the message names the inequality and the values."""


@dataclass(frozen=True)
class Inequality:
    """``left < right`` (or ``<=`` when not strict), both sides functions of the named parameters."""

    left_text: str
    right_text: str
    strict: bool
    left_names: tuple[str, ...]
    right_names: tuple[str, ...]
    left: Expression = field(compare=False, repr=False)
    right: Expression = field(compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.left_names + self.right_names))

    @property
    def symbol(self) -> str:
        return "<" if self.strict else "<="

    def __str__(self) -> str:
        return f"{self.left_text} {self.symbol} {self.right_text}"

    def holds(self, values: Mapping[str, Any], xp: ModuleType = jnp) -> Bool[Array, ...]:
        left, right = self.left(values, xp), self.right(values, xp)
        return xp.less(left, right) if self.strict else xp.less_equal(left, right)


@dataclass(frozen=True)
class Constraint:
    """A chain of inequalities between parameters, with a label that says what it is for.

    **Arguments:**

    - `text`: for instance ``"alpha > 0"``, ``"-1 < rho < 1"``, ``"0 < sigma < sqrt(2*alpha*beta)"``.
    - `label`: why it is there; it ends up in error messages.
    """

    text: str
    label: str = ""

    def __post_init__(self) -> None:
        self.inequalities  # noqa: B018  a malformed text is refused here, not at its first use

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        return _parse(self.text)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(n for i in self.inequalities for n in i.names))

    def holds(self, values: Mapping[str, Any]) -> Bool[Array, ""]:
        """Whether every inequality holds; False for NaN. Traceable by JAX."""
        return reduce(jnp.logical_and, (i.holds(values) for i in self.inequalities))

    def violation(self, values: Mapping[str, np.ndarray]) -> str | None:
        """What is wrong with the first offending row of concrete `values` (float64 arrays of one length), or None."""
        with np.errstate(all="ignore"):  # sqrt of a negative number is NaN, which does not hold
            return next(filter(None, (self._violation(i, values) for i in self.inequalities)), None)

    def _violation(self, inequality: Inequality, values: Mapping[str, np.ndarray]) -> str | None:
        rows = np.shape(next(iter(values.values())))
        bad = np.flatnonzero(~np.broadcast_to(inequality.holds(values, np), rows))
        if not bad.size:
            return None
        row = {name: float(values[name][bad[0]]) for name in values}
        left, right = (float(side(row, np)) for side in (inequality.left, inequality.right))
        given = ", ".join(f"{name}={row[name]:.7g}" for name in inequality.names)
        label = f" ({self.label})" if self.label else ""
        return f"{inequality} is violated{label}: {left:.7g} is not {inequality.symbol} {right:.7g}; got {given}"


def as_constraint(value: str | tuple[str, str] | Constraint) -> Constraint:
    if isinstance(value, Constraint):
        return value
    return Constraint(value) if isinstance(value, str) else Constraint(*value)


def open_range(constraints: Iterable[Constraint], name: str) -> tuple[float, float]:
    """The open interval in which strict inequalities with numbers keep a parameter, such as ``"-1 < rho < 1"``.

    Of ``"0 < sigma < sqrt(2*alpha*beta)"`` that is (0, inf). An end that may be reached, as in ``"gamma <= 1"``, is none.
    """
    lower, upper = -np.inf, np.inf
    for inequality in (i for constraint in constraints for i in constraint.inequalities if i.strict):
        if inequality.right_text == name and not inequality.left_names:
            lower = max(lower, float(inequality.left({}, np)))
        elif inequality.left_text == name and not inequality.right_names:
            upper = min(upper, float(inequality.right({}, np)))
    return lower, upper


def bounds(constraints: Iterable[Constraint], name: str, values: Mapping[str, Any], xp: ModuleType = np) -> tuple[Any, Any]:
    """Lower and upper bound of one parameter, given values of the others that its bounds depend on; infinite if there is none.

    Only constraints that have the parameter alone on one side are bounds: "0 < sigma < sqrt(2*alpha*beta)" is two for sigma.
    """
    lower, upper = -np.inf, np.inf
    for inequality in (i for constraint in constraints for i in constraint.inequalities):
        if inequality.right_text == name and name not in inequality.left_names:
            lower = xp.maximum(lower, inequality.left(values, xp))
        elif inequality.left_text == name and name not in inequality.right_names:
            upper = xp.minimum(upper, inequality.right(values, xp))
    return lower, upper


def _parse(text: str) -> tuple[Inequality, ...]:
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"Constraint {text!r} is not a valid expression: {error.msg}.") from None
    if not isinstance(node, ast.Compare):
        raise ValueError(f"Constraint {text!r} is not an inequality; expected something like 'alpha > 0' or '-1 < rho < 1'.")
    sides = [node.left, *node.comparators]
    return tuple(_inequality(text, a, op, b) for a, op, b in zip(sides[:-1], node.ops, sides[1:], strict=True))


def _inequality(text: str, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Inequality:
    kind = type(op)
    if kind in _REVERSED:
        left, right, kind = right, left, _REVERSED[kind]
    if kind not in _COMPARISONS:
        raise ValueError(f"Constraint {text!r} uses a comparison other than < <= > >=.")
    left_names: dict[str, None] = {}
    right_names: dict[str, None] = {}
    left_side, right_side = _compile(text, left, left_names), _compile(text, right, right_names)
    return Inequality(
        ast.unparse(left),
        ast.unparse(right),
        _COMPARISONS[kind][1],
        tuple(left_names),
        tuple(right_names),
        left=left_side,
        right=right_side,
    )


def _compile(text: str, node: ast.expr, names: dict[str, None]) -> Expression:
    """Turn an arithmetic expression into a function of the parameter values; record the names that it uses."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda values, xp: number
        case ast.Name(id=name):
            names[name] = None
            return lambda values, xp: values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compile(text, operand, names)
            return lambda values, xp: -inner(values, xp)
        case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
            f, g, binary = _compile(text, a, names), _compile(text, b, names), _BINARY[type(op)]
            return lambda values, xp: binary(f(values, xp), g(values, xp))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            arguments, function = [_compile(text, a, names) for a in args], _FUNCTIONS[name]
            return lambda values, xp: function(xp, *(a(values, xp) for a in arguments))
    raise ValueError(
        f"Constraint {text!r} contains {ast.unparse(node)!r}; only parameter names, numbers, + - * / ** "
        f"and the functions {', '.join(_FUNCTIONS)} are understood."
    )


def parameter_values(names: tuple[str, ...], p: Float[Array, " n"]) -> dict[str, Any]:
    """The mapping name -> value that `Constraint` evaluates on."""
    return {name: p[i] for i, name in enumerate(names)}
