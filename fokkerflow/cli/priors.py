"""Priors on the command line: ``--prior 'beta=LogNormal(1, 0.5)'``, parsed and never executed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fokkerflow.cli.app import stop

if TYPE_CHECKING:
    from fokkerflow.inference.prior import Prior
    from fokkerflow.sde import SDE

PRIOR = Annotated[
    list[str] | None,
    typer.Option(
        "--prior",
        help="The prior of a parameter, a distribution of NumPyro such as 'beta=LogNormal(1, 0.5)'; may be repeated. "
        "Parameters without one are flat within the constraint, and the law of a trained density.",
    ),
]


def find_prior(sde: SDE, items: Sequence[str] | None) -> Prior | None:
    """The prior that --prior asks for; None if it asks for nothing."""
    if not items:
        return None
    from fokkerflow.inference.prior import Prior

    try:
        return Prior(sde, dict(_distribution(item) for item in items))
    except (ValueError, TypeError) as error:
        message = str(error)
    stop(message)


def _distribution(item: str) -> tuple[str, Any]:
    """The name of a parameter and its distribution."""
    import numpyro.distributions as dist

    name, equals, text = (part.strip() for part in item.partition("="))
    kind, arguments, named = _call(text) if equals else ("", [], {})
    family = getattr(dist, kind, None) if kind[:1].isupper() else None
    if not (isinstance(family, type) and issubclass(family, dist.Distribution)):
        raise ValueError(
            f"Got {item!r} in --prior, expected parameter=Distribution(numbers), such as 'beta=LogNormal(1, 0.5)'."
        )
    try:
        return name, family(*arguments, validate_args=True, **named)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Got {item!r} in --prior: {error}.") from None


def _call(text: str) -> tuple[str, list[float], dict[str, float]]:
    """``"LogNormal(1, scale=0.5)"`` as its parts; an empty name for anything that is not a call with numbers."""
    try:
        match ast.parse(text, mode="eval").body:
            case ast.Call(func=ast.Name(id=kind), args=args, keywords=keywords):
                return kind, [_number(a) for a in args], {str(k.arg): _number(k.value) for k in keywords}
    except (SyntaxError, ValueError):
        pass
    return "", [], {}


def _number(node: ast.expr) -> float:
    value = ast.literal_eval(node)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"got {value!r}, expected a number")
    return float(value)
