"""What is checked, once, about the two functions of a user's model: that JAX can trace them, and the shape, finiteness,
symmetry and positive definiteness of what they return at sample points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fokkerflow.sde.probing import sample_parameters, sample_states

if TYPE_CHECKING:
    from fokkerflow.sde.functions import FunctionSDE

_PROBES = 32
_TIMES = 2.0  # sample times are spread over this many units
_SYMMETRY = 1e-10  # relative to the largest entry
_DEFINITENESS = 1e-13  # smallest eigenvalue relative to the largest diagonal entry, once scaled to a unit diagonal

_Functions = Mapping[str, tuple[Callable[..., Any], tuple[int, ...]]]


def check_formulas(sde: FunctionSDE, functions: _Functions) -> None:
    """Raise TypeError or ValueError, naming the function and the point, if it cannot be used."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        t = np.linspace(0.0, _TIMES, _PROBES)
        x, p = sample_states(sde, _PROBES), sample_parameters(sde, _PROBES)
        x[0] = sde.start
        for what, (function, shape) in functions.items():
            _check_traceable(sde, what, function, shape, x[0], p[0])
        points = (jnp.asarray(t), jnp.asarray(x), jnp.asarray(p))
        drift = np.asarray(jax.vmap(sde.drift)(*points))
        covariance = np.asarray(jax.vmap(sde.covariance)(*points))

    def point(k: int) -> str:
        time = "" if sde.autonomous else f"t={t[k]:.4g}, "
        state = ", ".join(f"{name}={value:.4g}" for name, value in zip(sde.states, x[k], strict=True))
        values = ", ".join(f"{name}={value:.4g}" for name, value in zip(sde.parameters, p[k], strict=True))
        return f"at {time}{state} with {values}"

    _check_finite("drift", drift, point)
    _check_finite("covariance", covariance, point)
    _check_symmetric(covariance, point)
    _check_definite(covariance, point)


def _check_traceable(
    sde: FunctionSDE, what: str, function: Callable[..., Any], shape: tuple[int, ...], x: np.ndarray, p: np.ndarray
) -> None:
    """Trace `function` as a compiled likelihood would, and look at the shape and type of what it returns."""
    try:
        result = jax.eval_shape(
            lambda t, x, p: jnp.asarray(sde.evaluate(function, t, x, p)), jnp.zeros(()), jnp.asarray(x), jnp.asarray(p)
        )
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        raise TypeError(
            f"{what}: the function cannot be compiled, because it needs the numbers in x or p (numpy or math functions, "
            "float(), or an 'if' on a value). Write it with jax.numpy, and jnp.where instead of 'if'."
        ) from None
    except Exception as error:
        raise ValueError(f"{what}: calling the function failed with {type(error).__name__}: {error}") from error
    if jnp.issubdtype(result.dtype, jnp.complexfloating):
        raise TypeError(f"{what}: the function returns complex numbers, expected real ones.")
    one_dimensional = max(shape) == 1 and result.size == 1
    if result.shape != shape and not one_dimensional:
        expected = f"{shape} for the coordinates {', '.join(sde.states)}"
        raise ValueError(f"{what}: the function returns an array of shape {result.shape}, expected {expected}.")


def _check_finite(what: str, values: Float[np.ndarray, "k ..."], point: Callable[[int], str]) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        k, *entry = bad[0]
        where = f"[{', '.join(map(str, entry))}]"
        raise ValueError(f"{what}: entry {where} is {values[tuple(bad[0])]} {point(k)}, expected a finite number.")


def _check_symmetric(values: Float[np.ndarray, "k d d"], point: Callable[[int], str]) -> None:
    error = np.abs(values - values.transpose(0, 2, 1))
    bad = np.argwhere(error > _SYMMETRY * np.max(np.abs(values), axis=(1, 2), keepdims=True))
    if bad.size:
        k, i, j = bad[0]
        raise ValueError(
            f"covariance: the matrix is not symmetric {point(k)}: "
            f"entry [{i}, {j}] is {values[k, i, j]:.7g} and entry [{j}, {i}] is {values[k, j, i]:.7g}."
        )


def _check_definite(values: Float[np.ndarray, "k d d"], point: Callable[[int], str]) -> None:
    """Judged after scaling to a unit diagonal, so that coordinates of very different size are no problem."""
    for k, matrix in enumerate(values):
        variances = np.diag(matrix)
        definite = bool(np.all(variances > 0))
        if definite:
            scale = np.sqrt(variances)
            definite = float(np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0]) > _DEFINITENESS
        if not definite:
            raise ValueError(
                f"covariance: the matrix is not positive definite {point(k)}: {np.array2string(matrix, precision=6)}. "
                "Expected Sigma = s s' for the factor s in front of dW; add a constraint if these parameters are not allowed."
            )
