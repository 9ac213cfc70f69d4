"""The training law: which starting points and parameters a flow is trained for (eta and pi_0 in paper section 3.1).

A law is data: one marginal for each coordinate of x0 and each parameter, restricted to the constraints of the model. It is
stored in artifacts, and a trained density knows by it where it may be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from fokkerflow.sde.constraint import bounds
from fokkerflow.sde.model import SDE
from fokkerflow.sde.validation import valid_rows
from fokkerflow.training.marginals import LogUniform, Marginal, ShareOfRange, TruncatedNormal, Uniform, from_dict, to_dict

__all__ = ["Law", "LogUniform", "Marginal", "ShareOfRange", "TruncatedNormal", "Uniform"]

Cube = Callable[[int], Float[np.ndarray, "k d"]]
"""The next k points of a sequence in the unit cube, random or quasi-random."""

_PATIENCE = 200
"""A law whose constraints keep less than one draw in this many is refused."""


@dataclass(frozen=True)
class Law:
    """Independent marginals of x0 and of the parameters, restricted to the constraints of the model by rejection.

    **Arguments:**

    - `sde`: the model.
    - `x0`: a marginal for every state, by name.
    - `parameters`: a marginal for every parameter, by name.
    - `t0`: the law of the starting time (the paper's s); needed by a model that depends on time, and by no other.
    """

    sde: SDE
    x0: Mapping[str, Marginal]
    parameters: Mapping[str, Marginal]
    t0: Uniform | None = None

    def __post_init__(self) -> None:
        if self.sde.autonomous == (self.t0 is not None):
            need = (
                "depends on time and needs a law of the starting time t0"
                if self.t0 is None
                else "does not depend on time: no t0"
            )
            raise ValueError(f"{self.sde.label} {need}.")
        for what, given, expected in (("x0", self.x0, self.sde.states), ("parameters", self.parameters, self.sde.parameters)):
            if set(given) != set(expected):
                raise ValueError(
                    f"{self.sde.label}: got a law of {what} for {', '.join(given) or 'nothing'}, "
                    f"expected {', '.join(expected)}."
                )
        self._check_shares()
        for name, domain in self.sde.states.items():
            ends = self.x0[name].quantile(np.array([0.0, 1.0]))
            if ends[0] < domain.lower or ends[1] > domain.upper:
                raise ValueError(
                    f"{self.sde.label}: the law of {name} reaches from {ends[0]:g} to {ends[1]:g}, outside its domain {domain}."
                )

    def _check_shares(self) -> None:
        if any(isinstance(marginal, ShareOfRange) for marginal in self.x0.values()):
            raise ValueError(f"{self.sde.label}: only parameters that a constraint bounds can have a ShareOfRange, not states.")
        values = {name: np.array([self.sde.typical[name]]) for name in self.sde.parameters}
        for name in self._shares:
            low, high = bounds(self.sde.constraints, name, values)
            if not np.all(np.isfinite(low) & np.isfinite(high)):
                raise ValueError(
                    f"{self.sde.label}: no constraint bounds {name!r} on both sides: it cannot have a ShareOfRange."
                )

    def __hash__(self) -> int:
        """A law can be a static argument of `jax.jit`, although mappings have no hash."""
        return hash((self.sde, tuple(sorted(self.x0.items())), tuple(sorted(self.parameters.items())), self.t0))

    @property
    def dimension(self) -> int:
        """Uniforms for one draw: d for x0, then one for each parameter."""
        return len(self.sde.states) + len(self.sde.parameters)

    def quantile(self, u: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n n_p"]]:
        """Starting points and parameters of points in the unit cube, before the constraints."""
        d = self.sde.dimension
        x0 = [self.x0[name].quantile(u[:, i]) for i, name in enumerate(self.sde.states)]
        drawn = {name: self.parameters[name].quantile(u[:, d + i]) for i, name in enumerate(self.sde.parameters)}
        for name in self._shares:
            low, high = bounds(self.sde.constraints, name, drawn)
            drawn[name] = low + (high - low) * drawn[name]
        return np.stack(x0, 1), np.stack([drawn[name] for name in self.sde.parameters], 1)

    @property
    def _shares(self) -> list[str]:
        return [name for name in self.sde.parameters if isinstance(self.parameters[name], ShareOfRange)]

    def keeps(self, x0: Float[np.ndarray, "n d"], p: Float[np.ndarray, "n n_p"]) -> Bool[np.ndarray, " n"]:
        """Which draws satisfy the constraints and lie strictly inside the domain."""
        inside = np.stack([d.contains(x0[:, i]) for i, d in enumerate(self.sde.domains)]).all(0)
        return inside & valid_rows(self.sde, p)

    def take(self, cube: Cube, n: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n n_p"], Float[np.ndarray, "n r"]]:
        """The first `n` draws that the constraints keep, from successive points of `cube`.

        `cube` may have more dimensions than the law; the rest of each kept point is returned with it, so that one quasi-random
        sequence can serve law, time and noise together.
        """
        kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        count, asked = 0, 0
        while count < n:
            u = cube(n)
            x0, p = self.quantile(u[:, : self.dimension])
            good = self.keeps(x0, p)
            kept.append((x0[good], p[good], u[good, self.dimension :]))
            count, asked = count + int(good.sum()), asked + n
            if asked > _PATIENCE * (count + n / _PATIENCE):
                raise ValueError(
                    f"{self.sde.label}: the constraints keep only {count} of {asked} draws of the law. "
                    "Give marginals that satisfy them: " + "; ".join(c.text for c in self.sde.constraints)
                )
        x0, p, rest = (np.concatenate(parts)[:n] for parts in zip(*kept, strict=True))
        return x0, p, rest

    def sample(self, rng: np.random.Generator, n: int) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n n_p"]]:
        """`n` independent draws of (x0, parameters)."""
        x0, p, _ = self.take(lambda k: rng.uniform(size=(k, self.dimension)), n)
        return x0, p

    def excess(self, x0: Float[np.ndarray, "n d"], p: Float[np.ndarray, "n n_p"]) -> dict[str, Float[np.ndarray, " n"]]:
        """How far each state and parameter lies outside the law, by name; 0 inside."""
        states = {name: m.excess(x0[:, i]) for i, (name, m) in enumerate(_ordered(self.x0, self.sde.states))}
        values = {name: p[:, i] for i, name in enumerate(self.sde.parameters)}
        raw = dict(values)
        for name in self._shares:
            low, high = bounds(self.sde.constraints, name, raw)
            values[name] = (raw[name] - low) / (high - low)
        return states | {name: m.excess(values[name]) for name, m in _ordered(self.parameters, self.sde.parameters)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for artifacts."""
        return {
            "x0": {name: to_dict(m) for name, m in self.x0.items()},
            "parameters": {name: to_dict(m) for name, m in self.parameters.items()},
            **({} if self.t0 is None else {"t0": to_dict(self.t0)}),
        }

    @classmethod
    def from_dict(cls, sde: SDE, data: Mapping[str, Any]) -> Law:
        x0, parameters = ({name: from_dict(m) for name, m in data[part].items()} for part in ("x0", "parameters"))
        t0 = from_dict(data["t0"]) if "t0" in data else None
        if not isinstance(t0, Uniform | None):
            raise ValueError(f"Got {t0} as the law of t0, expected a uniform one.")
        return cls(sde, x0, parameters, t0)


def _ordered(marginals: Mapping[str, Marginal], names: Any) -> list[tuple[str, Marginal]]:
    return [(name, marginals[name]) for name in names]
