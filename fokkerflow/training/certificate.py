"""The certificate of a trained density: the L1 bound of `fokkerflow.training.bound` over its training law, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from fokkerflow._precision import in_float64
from fokkerflow.training.bound import Bounds, l1_bounds
from fokkerflow.training.regions import regions, summarise
from fokkerflow.training.trained import Trained

LEVELS: Mapping[str, float] = {"median": 0.5, "90 %": 0.9, "99 %": 0.99, "largest": 1.0}
_REGION_LEVELS: Mapping[str, float] = {"median": 0.5, "90 %": 0.9}
_GAPS = 5
_SHORTEST_SHARE = 1e-2


@dataclass(frozen=True)
class Certificate:
    """Bounds on \\|q - p\\|_1, which lies between 0 and 2, over the training law.

    **Attributes:**

    - `dt`: the gaps looked at.
    - `quantiles`: for each gap, quantiles of the bound over the law of starts and parameters.
    - `regions`: for each input that matters, quantiles at the longest gap in each third of it.
    - `conditions`: draws of the law that the quantiles are over.
    - `relative_error`: the largest standard error of a bound from sampling, relative to it.
    - `start_share`: the median share of the bound at the longest gap that the start has in it.
    - `unusable`: points where the residual was not finite. If there are any, nothing is certified.
    """

    dt: tuple[float, ...]
    quantiles: tuple[Mapping[str, float], ...]
    regions: Mapping[str, Mapping[str, Mapping[str, float]]]
    conditions: int
    relative_error: float
    start_share: float
    unusable: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as in the header of an artifact."""
        return {**asdict(self), "dt": list(self.dt), "quantiles": [dict(q) for q in self.quantiles]}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Certificate:
        return Certificate(**{**data, "dt": tuple(data["dt"]), "quantiles": tuple(data["quantiles"])})


@in_float64
def certify(
    key: PRNGKeyArray,
    trained: Trained,
    *,
    conditions: int = 128,
    dt: Sequence[float] | None = None,
    points: int = 16,
    scramblings: int = 4,
) -> Certificate:
    """Bound the L1 error of a trained density at draws of its training law.

    **Arguments:**

    - `key`: for the draws.
    - `conditions`: how many starts and parameters.
    - `dt`: gaps; five from a hundredth of the longest on if left out.
    - `points`, `scramblings`: points that expectations are over: the size of one scrambled Sobol' set, and how many sets.
    """
    gaps = _gaps(trained) if dt is None else tuple(sorted(float(gap) for gap in dt))
    if gaps[-1] > trained.gaps.longest:
        raise ValueError(f"Got a gap of {gaps[-1]:g}, this density is for gaps up to {trained.gaps.longest:g}.")
    law_key, bound_key = jax.random.split(key)
    x0, p, t0 = _draw(law_key, trained, conditions)
    bounds = l1_bounds(bound_key, trained, x0, p, t0, gaps, points=points, scramblings=scramblings)
    return _certificate(trained, gaps, np.asarray(x0), np.asarray(p), bounds)


def _certificate(
    trained: Trained, gaps: tuple[float, ...], x0: Float[np.ndarray, "c d"], p: Float[np.ndarray, "c n_p"], bounds: Bounds
) -> Certificate:
    longest = bounds.value[:, -1]
    return Certificate(
        dt=gaps,
        quantiles=tuple({name: float(np.quantile(v, q)) for name, q in LEVELS.items()} for v in bounds.value.T),
        regions={name: summarise(longest, rows, _REGION_LEVELS) for name, rows in regions(trained, x0, p).items()},
        conditions=len(x0),
        relative_error=float(np.max(bounds.error / bounds.value)),
        start_share=float(np.median(bounds.start[:, -1] / longest)),
        unusable=bounds.unusable,
    )


def _gaps(trained: Trained) -> tuple[float, ...]:
    first = max(trained.gaps.shortest, _SHORTEST_SHARE * trained.gaps.longest)
    return tuple(np.geomspace(first, trained.gaps.longest, _GAPS).tolist())


def _draw(key: PRNGKeyArray, trained: Trained, n: int) -> tuple[Float[Array, "n d"], Float[Array, "n n_p"], Float[Array, " n"]]:
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key), np.uint32))
    x0, p = trained.law.sample(rng, n)
    t0 = np.zeros(n) if trained.law.t0 is None else trained.law.t0.quantile(rng.uniform(size=n))
    return jnp.asarray(x0), jnp.asarray(p), jnp.asarray(t0)
