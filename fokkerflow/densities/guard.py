"""The guard of a trained density: what lies outside the law that it was trained for, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from fokkerflow.training.trained import Trained

GAP = "dt"
"""The name under which a gap that is too long or too short is listed."""

_SAME_GAP = 1e-6
"""Gaps may exceed the range by this relative amount: 182.5 / 365 and one half are one gap in any calendar."""


@dataclass(frozen=True)
class Guard:
    """What is outside the training law.

    **Attributes:**

    - `excess`: by name of a state (of x0), parameter, ``"t0"`` or ``"dt"``, how far outside it is, for each transition; 0
      inside. In half widths of a uniform law, in standard deviations beyond the third of a normal one (infinite where the law
      is cut off), and for the gap relative to its range: 1 is twice the longest, or half of the shortest.
    - `shortest`, `longest`: the range of gaps.
    """

    excess: Mapping[str, Float[np.ndarray, "*batch"]]
    shortest: float
    longest: float

    @property
    def inside(self) -> Bool[np.ndarray, "*batch"]:
        """Whether all of a transition is inside."""
        return ~np.any([excess > 0 for excess in self.excess.values()], axis=0)

    @property
    def share_outside(self) -> float:
        """The share of transitions that are not inside."""
        return float(np.mean(~self.inside))

    def message(self) -> str:
        """What is outside, in words, the most frequent first."""
        if not self.excess or np.all(self.inside):
            return "All transitions are inside the training law."
        outside = {name: excess[excess > 0] for name, excess in self.excess.items() if np.any(excess > 0)}
        lines = [f"{self.share_outside:.2%} of {self.inside.size} transitions are outside the training law:"]
        for name, excess in sorted(outside.items(), key=lambda item: -item[1].size):
            lines.append(f"- {name} in {excess.size / self.inside.size:.2%}, by up to {self._amount(name, excess.max())}")
        return "\n".join(lines)

    def _amount(self, name: str, excess: float) -> str:
        if name == GAP:
            return f"a factor of {1 + excess:.3g} (it was trained for {self.shortest:g} to {self.longest:g})"
        return "any amount: the law ends there" if np.isinf(excess) else f"{excess:.3g} widths of its law"


def guard(
    trained: Trained,
    x0: Float[np.ndarray, "*batch d"],
    dt: Float[np.ndarray, "*batch"],
    p: Float[np.ndarray, "*batch n_p"],
    t0: Float[np.ndarray, "*batch"],
) -> Guard:
    """Compare transitions with the law of a trained density; states and parameters that only shift it are left out."""
    law, gaps, shape = trained.law, trained.gaps, dt.shape
    found = law.excess(x0.reshape(-1, x0.shape[-1]), p.reshape(-1, p.shape[-1]))
    excess = {name: found[name].reshape(shape) for name in trained.relevant}
    if law.t0 is not None:
        excess["t0"] = law.t0.excess(t0)
    beyond = np.maximum(dt / gaps.longest, gaps.shortest / dt) - 1
    return Guard({**excess, GAP: np.where(beyond > _SAME_GAP, beyond, 0.0)}, gaps.shortest, gaps.longest)
