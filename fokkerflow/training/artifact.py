"""Artifacts: a trained density in one file, that can be read anywhere without running code that came with it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fokkerflow._precision import in_float64
from fokkerflow.flow import Flow, FlowConfig, build_flow, weights
from fokkerflow.flow import config as flow_config
from fokkerflow.flow.start import Standardisation
from fokkerflow.sde.model import SDE
from fokkerflow.training import container
from fokkerflow.training.collocation import Gaps
from fokkerflow.training.container import FileError
from fokkerflow.training.law import Law
from fokkerflow.training.model_reference import ModelMismatchError, find_model, probes, reference, verify
from fokkerflow.training.theta_path import ThetaPath
from fokkerflow.training.trained import Record, Trained

_KIND = "artifact"
SUFFIX = ".fkf"


def save(path: str | os.PathLike[str], trained: Trained) -> None:
    """Write a trained density to one file: the model by reference, law, gaps, flow, record, and weights as float64."""
    theta, _ = weights(trained.flow)
    header = {
        "kind": _KIND,
        "model": reference(trained.sde),
        "law": trained.law.to_dict(),
        "gaps": dataclasses.asdict(trained.gaps),
        "flow": trained.flow.config.to_dict(),
        "flow version": flow_config.VERSION,
        "record": trained.record.to_dict(),
    }
    arrays = {
        "theta": theta,
        "feature centre": trained.flow.standardisation.centre,
        "feature scale": trained.flow.standardisation.scale,
        **{f"probe {name}": value for name, value in probes(trained.sde).items()},
        **{f"path {name}": value for name, value in ({} if trained.path is None else trained.path.arrays()).items()},
    }
    container.write(path, header, arrays)


@in_float64
def load(path: str | os.PathLike[str], sde: SDE | None = None) -> Trained:
    """The trained density of a file.

    **Arguments:**

    - `path`: a file that `save` wrote.
    - `sde`: the model, if it is not one of the package's. No code in the file or named by it is run; the model that you pass is
      compared with the one that the file was made for, at stored states and parameters.

    **Raises:** FileError if the file is no artifact, is damaged, or was written by a newer version; ModelMismatchError if the
    model is missing or another one.
    """
    header, arrays = container.read(path, _KIND)
    _check_version(path, header)
    try:
        return _restore(header, arrays, sde)
    except ModelMismatchError as error:
        raise ModelMismatchError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:  # whole, but not what this version expects
        raise FileError(f"{path}: the file is whole, but its contents are not understood: {error}") from error


def _check_version(path: str | os.PathLike[str], header: dict[str, Any]) -> None:
    """Weights of another version would give another density without a word."""
    version = header.get("flow version")
    if version != flow_config.VERSION:
        command = header.get("record", {}).get("command", "the command is not known")
        raise FileError(
            f"{path}: these weights are of flow version {version}; this fokkerflow evaluates {flow_config.VERSION}, in which "
            f"they mean another density. Train it again: {command}"
        )


def _restore(header: dict[str, Any], arrays: dict[str, np.ndarray], sde: SDE | None) -> Trained:
    model = find_model(header["model"]) if sde is None else sde
    verify(model, header["model"], {name.removeprefix("probe "): a for name, a in arrays.items() if name.startswith("probe ")})
    return Trained(
        flow=_restore_flow(model, FlowConfig.from_dict(header["flow"]), arrays),
        path=_restore_path(arrays),
        law=Law.from_dict(model, header["law"]),
        gaps=Gaps(**header["gaps"]),
        record=Record.from_dict(header["record"]),
    )


def _restore_path(arrays: dict[str, np.ndarray]) -> ThetaPath | None:
    """The weights as a function of the gap, if they move."""
    stored = {name.removeprefix("path "): jnp.asarray(a) for name, a in arrays.items() if name.startswith("path ")}
    if not stored:
        return None
    path = ThetaPath(**stored)
    if path.thetas.shape[1:] != arrays["theta"].shape:
        raise ValueError(f"a path of {path.thetas.shape[1]} weights for a flow of {arrays['theta'].size}")
    return path


def _restore_flow(sde: SDE, config: FlowConfig, arrays: dict[str, np.ndarray]) -> Flow:
    standardisation = Standardisation(jnp.asarray(arrays["feature centre"]), jnp.asarray(arrays["feature scale"]))
    shapes = eqx.filter_eval_shape(lambda key: build_flow(key, sde, config, standardisation), jax.random.key(0))
    empty = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)  # no random weights, which take seconds to compile
    flow = eqx.tree_at(lambda flow: flow.standardisation, empty, standardisation)
    theta, with_weights = weights(flow)
    if theta.shape != arrays["theta"].shape:
        raise ValueError(f"{arrays['theta'].size} weights for a flow of {theta.size}")
    return with_weights(jnp.asarray(arrays["theta"]))
