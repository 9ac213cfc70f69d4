"""The guard of a posterior: the share of draws x transitions for which a trained density was asked outside its training law."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fokkerflow.densities.density import Density
from fokkerflow.densities.guard import GAP, Guard
from fokkerflow.densities.surrogate import Surrogate
from fokkerflow.inference.draws import parameter_draws, pooled
from fokkerflow.inference.steps import steps
from fokkerflow.sde.series import Series

THRESHOLD = 0.01
"""A larger share of evaluations outside the law is worth a warning."""


class OutsideLawWarning(UserWarning):
    """A posterior leans on a trained density outside the law that it was trained for."""


@dataclass(frozen=True)
class GuardShare:
    """How much of a posterior rests on evaluations outside the training law.

    **Attributes:**

    - `share`: of all pairs of a draw and a transition, those with anything outside.
    - `by_name`: the same for each state (of x0), parameter, ``"t0"`` and ``"dt"`` that the law knows.
    - `furthest`: how far outside each of them gets; the units are those of `fokkerflow.densities.guard.Guard`.
    - `draws`, `transitions`: how many there are.
    - `threshold`: the share from which on it matters.
    - `has_law`: False for a density that was not trained: then there is nothing to be outside of.
    """

    share: float
    by_name: Mapping[str, float]
    furthest: Mapping[str, float]
    draws: int
    transitions: int
    threshold: float = THRESHOLD
    has_law: bool = True

    @property
    def ok(self) -> bool:
        return self.share <= self.threshold

    @property
    def verdict(self) -> str:
        """In one sentence."""
        if not self.has_law:
            return "This density was not trained: it has no training law to leave."
        if self.share == 0:
            return "Every evaluation behind this posterior was inside the training law."
        if self.ok:
            return (
                f"{self.share:.2%} of the evaluations behind this posterior were outside the training law: too few to matter."
            )
        return (
            f"{self.share:.2%} of the evaluations behind this posterior were outside the training law, where nothing is known."
        )

    def message(self) -> str:
        """The verdict, what is outside (the most frequent first), and what to do about it."""
        outside = sorted(((n, s) for n, s in self.by_name.items() if s > 0), key=lambda item: -item[1])
        lines = [self.verdict, *(f"- {name} in {share:.2%}, by up to {self._furthest(name)}" for name, share in outside)]
        if not self.ok:
            lines.append("Train a density with a wider law, restrict the prior to this one, or compare with another density.")
        return "\n".join(lines)

    def warn(self) -> None:
        """Issue an `OutsideLawWarning` if the share is above the threshold."""
        if not self.ok:
            warnings.warn(self.message(), OutsideLawWarning, stacklevel=2)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for attributes and files."""
        furthest = {name: value if np.isfinite(value) else None for name, value in self.furthest.items()}
        return {
            "ok": self.ok,
            "share": self.share,
            "threshold": self.threshold,
            "by_name": dict(self.by_name),
            "furthest": furthest,
            "draws": self.draws,
            "transitions": self.transitions,
            "has_law": self.has_law,
            "verdict": self.verdict,
        }

    def _furthest(self, name: str) -> str:
        value = self.furthest[name]
        if name == GAP:
            return f"a factor of {1 + value:.3g} beyond the gaps that it was trained for"
        return "any amount: the law ends there" if np.isinf(value) else f"{value:.3g} widths of its law"


def guard_share(density: Density, series: Series | Sequence[Series], draws: Any, *, threshold: float = THRESHOLD) -> GuardShare:
    """What share of the evaluations behind a posterior was outside the training law.

    A transition is outside by its start or gap whatever the draw, a draw by its parameters whatever the transition. So
    the shares multiply, ``1 - (1 - s_transitions) (1 - s_draws)``, and a million pairs cost as much as their two margins.

    **Arguments:**

    - `density`: a trained density; any other has no law, and nothing is outside.
    - `series`: the data, one series or several.
    - `draws`: posterior draws; see `fokkerflow.inference.draws.parameter_draws`.
    - `threshold`: the share above which the result is not `ok`.

    ```python
    share = guard_share(density, series, posterior)
    share.warn()
    ```
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"Got threshold = {threshold:g}, expected a share, 0 <= threshold < 1.")
    x0, _, dt, t0, *_ = steps(density.sde, series)
    p = pooled(parameter_draws(density.sde, draws))
    if not isinstance(density, Surrogate):
        return GuardShare(0.0, {}, {}, len(p), len(dt), threshold, has_law=False)
    of_draws, of_transitions = _margins(density, density.check(x0[0], dt[0], p, t0[0]), density.check(x0, dt, p[0], t0))
    by_name = {name: float(np.mean(excess > 0)) for name, excess in (of_transitions | of_draws).items()}
    furthest = {name: float(np.max(excess)) for name, excess in (of_transitions | of_draws).items()}
    inside = np.prod([1 - _any_outside(margin) for margin in (of_draws, of_transitions)])
    return GuardShare(float(1 - inside), by_name, furthest, len(p), len(dt), threshold)


def _margins(density: Density, draws: Guard, transitions: Guard) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What depends on the draw, and what on the transition."""
    parameters = set(density.sde.parameters)
    return (
        {name: excess for name, excess in draws.excess.items() if name in parameters},
        {name: excess for name, excess in transitions.excess.items() if name not in parameters},
    )


def _any_outside(excess: Mapping[str, np.ndarray]) -> float:
    return float(np.mean(np.any([e > 0 for e in excess.values()], axis=0))) if excess else 0.0
