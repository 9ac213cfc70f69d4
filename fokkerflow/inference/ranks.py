"""The result of a simulation-based calibration: ranks of the truth among posterior draws, uniform if everything is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import binom

from fokkerflow.inference.uniformity import Smooth, smooth_test

WRONG, DOUBTFUL = 0.01, 0.05
"""Levels of the smallest p-value, times the number of quantities (Bonferroni)."""

_REASON = {
    (1, True): "the posterior of {} is too low",
    (1, False): "the posterior of {} is too high",
    (2, True): "the posterior of {} is too narrow: its intervals miss the truth too often",
    (2, False): "the posterior of {} is too wide: its intervals hold the truth too often",
    (3, True): "the posterior of {} is skewed wrongly",
    (3, False): "the posterior of {} is skewed wrongly",
    (4, True): "the tails of the posterior of {} are too light",
    (4, False): "the tails of the posterior of {} are too heavy",
}


@dataclass(frozen=True)
class Calibration:
    """Ranks, and what a test of their uniformity says.

    **Attributes:**

    - `quantities`: the parameters, and ``"log likelihood"``, which sees what no single parameter does (Modrák et al. 2023).
    - `ranks`: of shape ``(simulations, quantities)``: how many of the `of` posterior draws are below the truth.
    - `of`: the number of draws; ranks go from 0 to it.
    - `truths`: the parameters that the data were simulated with, of shape ``(simulations, n)``.
    - `failed`: what went wrong in simulations that have no ranks, in words.
    - `seed`: spreads each rank over its cell, so that the test has exactly the size that it states.
    """

    quantities: tuple[str, ...]
    ranks: Int[np.ndarray, "s q"]
    of: int
    truths: Float[np.ndarray, "s n"]
    failed: tuple[str, ...] = ()
    seed: int = 0

    @property
    def shares(self) -> Float[np.ndarray, "s q"]:
        """Ranks as numbers in (0, 1)."""
        spread = np.random.default_rng(self.seed).uniform(size=self.ranks.shape)
        return (self.ranks + spread) / (self.of + 1)

    @property
    def tests(self) -> dict[str, Smooth]:
        """Neyman's smooth test of each quantity."""
        return dict(zip(self.quantities, map(smooth_test, self.shares.T), strict=True))

    @property
    def p_value(self) -> float:
        """Of all quantities together: the smallest, times their number."""
        return min(1.0, len(self.quantities) * min(test.p_value for test in self.tests.values()))

    @property
    def ok(self) -> bool:
        return self.p_value >= WRONG and not self.failed

    @property
    def verdict(self) -> str:
        """In one or two sentences."""
        n = len(self.ranks)
        lost = f" {len(self.failed)} of {n + len(self.failed)} simulations failed and are left out." if self.failed else ""
        if self.p_value >= DOUBTFUL:
            return f"Nothing in {n} simulations speaks against these posteriors.{lost}"
        limit = (WRONG if self.p_value < WRONG else DOUBTFUL) / len(self.quantities)
        found = sorted((test.p_value, name) for name, test in self.tests.items() if test.p_value < limit)
        what = "; ".join(_REASON[self.tests[name].reason].format(name) for _, name in found)
        word = "wrong" if self.p_value < WRONG else "doubtful"
        return f"These posteriors are {word}: {what}.{lost}"

    def message(self) -> str:
        """The verdict, a line for each quantity, and what failed."""
        lines = [self.verdict, f"Ranks of the truth among {self.of} posterior draws:"]
        for name, test in self.tests.items():
            low, high = self.coverage(name, 0.5), self.coverage(name, 0.9)
            lines.append(
                f"- {name}: p = {test.p_value:.2g}; the 50 % interval held the truth in {low:.0%}, the 90 % in {high:.0%}"
            )
        return "\n".join([*lines, *(f"- failed: {text}" for text in self.failed)])

    def coverage(self, name: str, level: float) -> float:
        """How often the central interval of this level held the truth."""
        u = self.shares[:, self.quantities.index(name)]
        return float(np.mean(np.abs(u - 0.5) <= level / 2))

    def histogram(self, bins: int = 20, level: float = 0.95) -> tuple[Int[np.ndarray, "q bins"], tuple[int, int]]:
        """Counts of ranks in equal bins for each quantity, and those that a bin has with probability `level`."""
        counts = np.stack([np.histogram(column, bins, (0, 1))[0] for column in self.shares.T])
        low, high = binom.interval(level, len(self.ranks), 1 / bins)
        return counts, (int(low), int(high))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ranks included."""
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "p_value": self.p_value,
            "quantities": list(self.quantities),
            "p_values": {name: test.p_value for name, test in self.tests.items()},
            "coverage_90": {name: self.coverage(name, 0.9) for name in self.quantities},
            "of": self.of,
            "ranks": self.ranks.tolist(),
            "truths": self.truths.tolist(),
            "failed": list(self.failed),
        }
