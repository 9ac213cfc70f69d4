"""Double precision inside, whatever the user's JAX setting is, and without touching that setting.

Every public numerical function goes through `in_float64`: arrays enter as float64 and the computation is traced in
JAX's 64-bit mode. With 64-bit mode off, values come out in double precision all the same.

A derivative that the *user* takes with 64-bit mode off is another matter: JAX transposes the computation outside, where
it makes single-precision constants, and refuses to mix them with ours. Functions that users differentiate therefore go through
`differentiable_in_float64`: their derivatives are computed in double precision, and only the result is rounded by JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that every floating array in its arguments is float64 and so is its computation."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            args, kwargs = jax.tree.map(_promote, (args, kwargs))
            return function(*args, **kwargs)

    return wrapper


def is_32_bit() -> bool:
    """Whether the caller runs JAX in its 32-bit mode, the default."""
    return jax.dtypes.canonicalize_dtype(np.float64) != np.float64


def differentiable_in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """As `in_float64`, and with derivatives that JAX's 32-bit mode can take; in 64-bit mode nothing is added."""
    plain, declared = in_float64(function), declare_derivatives(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return (declared if is_32_bit() else plain)(*args, **kwargs)

    return wrapper


def declare_derivatives(function: Callable[P, R]) -> Callable[P, R]:
    """`function` in float64, with a derivative rule that leaves nothing but products with its Jacobian to the outside.

    Of any order, forward and reverse. For functions of few outputs, floating arrays in a tree: the whole Jacobian with
    respect to the traced arguments is made.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves, tree = jax.tree.flatten((args, kwargs))
        traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]

        def of_traced(*values: Any) -> Any:
            filled = dict(enumerate(leaves)) | dict(zip(traced, values, strict=True))
            inner_args, inner_kwargs = jax.tree.unflatten(tree, map(_promote, filled.values()))
            return function(*inner_args, **inner_kwargs)

        return _with_jacobian(of_traced)(*(leaves[i] for i in traced))

    return wrapper


def _with_jacobian(function: Callable[..., Any]) -> Callable[..., Any]:
    value = jax.custom_jvp(in_float64(function))

    @value.defjvp
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        smooth = tuple(i for i, x in enumerate(primals) if jnp.issubdtype(jnp.result_type(x), jnp.floating))
        out, jacobian = value(*primals), _with_jacobian(jax.jacrev(function, argnums=smooth))(*primals)
        with jax.enable_x64(True):
            steps = [jnp.asarray(tangents[i], jnp.float64) for i in smooth]

            def along(_: Any, blocks: tuple[Any, ...]) -> Any:
                return sum(jnp.tensordot(b, step, axes=step.ndim) for b, step in zip(blocks, steps, strict=True))

            return out, jax.tree.map(along, out, jacobian)

    return value


def _promote(leaf: Any) -> Any:
    if isinstance(leaf, (jax.Array, np.ndarray)) and jnp.issubdtype(leaf.dtype, jnp.floating):
        return jnp.asarray(leaf, jnp.float64)
    return leaf
