"""Draws as ArviZ InferenceData, with what is needed to judge and to repeat them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fokkerflow.densities.density import Density
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference import likelihood
from fokkerflow.inference._arviz import arviz
from fokkerflow.inference.guard_share import guard_share
from fokkerflow.inference.run_file import digest
from fokkerflow.inference.target import Target
from fokkerflow.sde.model import SDE
from fokkerflow.sde.series import Series
from fokkerflow.training.trained import versions


def inference_data(
    target: Target,
    series: Sequence[Series],
    draws: Mapping[str, np.ndarray],
    *,
    prior: Float[np.ndarray, "k n"] | None,
    attributes: Mapping[str, Any],
    pointwise: bool = True,
) -> Any:
    """The groups posterior, sample_stats, log_likelihood, observed_data and prior.

    **Arguments:**

    - `draws`: ``p`` of shape (chains, draws, n), and statistics of shape (chains, draws).
    - `prior`: draws from it, or None if it is improper.
    - `pointwise`: whether to evaluate each transition under each draw, which leave-one-out needs.
    """
    names = target.density.sde.parameters
    stats = {name: values for name, values in draws.items() if name != "p"}
    if "diverging" in stats:
        stats["diverging"] = stats["diverging"].astype(bool)
    groups: dict[str, Any] = {
        "posterior": _by_name(names, draws["p"]),
        "sample_stats": stats,
        "observed_data": _observed(target.density.sde, series),
    }
    dims = {state: ["time"] for state in target.density.sde.states}
    coords: dict[str, Any] = {"time": np.concatenate([one.times for one in series])}
    if prior is not None:
        groups["prior"] = _by_name(names, prior[None])
    if pointwise:
        groups["log_likelihood"] = {"transitions": transition_log_densities(target, draws["p"])}
        dims["transitions"], coords["transition"] = ["transition"], np.arange(sum(len(one) - 1 for one in series))
    data = arviz.from_dict(**groups, dims=dims, coords=coords, pred_dims={})
    which = np.repeat(np.arange(len(series)), [len(one) for one in series])
    data.observed_data.coords["series"] = ("time", which)
    data.posterior.attrs.update(attributes)
    return data


def _by_name(names: Sequence[str], values: Float[np.ndarray, "*shape n"]) -> dict[str, np.ndarray]:
    return {name: values[..., i] for i, name in enumerate(names)}


def _observed(sde: SDE, series: Sequence[Series]) -> dict[str, np.ndarray]:
    return _by_name(tuple(sde.states), np.concatenate([one.states for one in series]))


def transition_log_densities(target: Target, p: Float[np.ndarray, "chains draws n"]) -> Float[np.ndarray, "chains draws rows"]:
    """The log density of each transition under each draw."""
    flat = jnp.asarray(p.reshape(-1, p.shape[-1]))
    values = np.asarray(_pointwise(target, flat))[:, : int(target.data.count)]
    return values.reshape(*p.shape[:-1], -1)


@eqx.filter_jit
def _pointwise(target: Target, p: Float[Array, "k n"]) -> Float[Array, "k rows"]:
    return jax.lax.map(lambda row: likelihood.pointwise(target.density, target.data, row), p, batch_size=8)


def attributes(density: Density, p: np.ndarray, series: Sequence[Series], **more: Any) -> dict[str, Any]:
    """Plain strings and numbers: what was used, and how. A posterior that leans on what is outside the law gives a warning."""
    share = guard_share(density, series, p)
    share.warn()
    libraries = versions() | {name: metadata.version(name) for name in ("blackjax", "numpyro", "arviz")}
    return {
        "density": type(density).__name__,
        "artifact": artifact(density),
        "sde": density.sde.label,
        "versions": json.dumps(libraries),
        "guard": json.dumps(share.to_dict()),
        **more,
    }


def artifact(density: Density) -> str:
    """What a trained density is and how it was made, as JSON; empty for any other."""
    if not isinstance(density, Surrogate):
        return ""
    record, gaps = density.trained.record, density.trained.gaps
    made = {"method": record.method, "preset": record.preset, "seed": record.seed, "command": record.command}
    return json.dumps({"digest": digest(density), **made, "longest_dt": gaps.longest, "versions": dict(record.versions)})
