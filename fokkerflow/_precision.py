"""Double precision inside, whatever the user's JAX setting is, and without touching that setting.

Every public numerical function goes through `in_float64`: arrays enter as float64 and the computation is traced in
JAX's 64-bit mode. With 64-bit mode off, values come out in double precision all the same; gradients that the *user*
takes through them are rounded to single precision by JAX, because the transformation happens outside.
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


def _promote(leaf: Any) -> Any:
    if isinstance(leaf, (jax.Array, np.ndarray)) and jnp.issubdtype(leaf.dtype, jnp.floating):
        return jnp.asarray(leaf, jnp.float64)
    return leaf
