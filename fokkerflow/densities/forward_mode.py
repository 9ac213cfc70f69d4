"""Derivatives by forward mode whatever the caller asks for: reverse mode of many small loops takes XLA minutes to compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero


def in_forward_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arrays; its derivatives, of any order, are products with a Jacobian that is made in forward mode."""
    value = jax.custom_jvp(function)

    @partial(value.defjvp, symbolic_zeros=True)
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        varied = tuple(i for i, tangent in enumerate(tangents) if not isinstance(tangent, SymbolicZero))
        blocks = in_forward_mode(jax.jacfwd(function, argnums=varied))(*primals)

        def along(_: Any, rows: tuple[Any, ...]) -> Any:
            return sum(jnp.tensordot(row, tangents[i], jnp.ndim(tangents[i])) for row, i in zip(rows, varied, strict=True))

        out = value(*primals)
        return out, jax.tree.map(along, out, blocks)

    return value
