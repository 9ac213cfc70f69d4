"""The verdict over chains that are good, apart, stuck, too short or divergent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fokkerflow import diagnose
from fokkerflow.inference._arviz import arviz


def chains(values: np.ndarray, **stats: np.ndarray) -> Any:
    return arviz.from_dict(posterior={"a": values, "b": values[..., ::-1] * 2}, sample_stats=stats or None)


GOOD = np.random.default_rng(0).normal(size=(4, 1000))


def test_independent_draws_are_good() -> None:
    result = diagnose(chains(GOOD, diverging=np.zeros((4, 1000), bool)))
    assert result.ok
    assert result.verdict.startswith("The chains agree (R-hat at most 1.0")
    assert "nothing diverged" in result.verdict
    assert result.mcse["a"] == pytest.approx(1 / np.sqrt(4000), rel=0.1)
    assert result.ess_bulk["a"] == pytest.approx(4000, rel=0.15)
    assert result.to_dict()["ok"] is True
    assert "bulk ESS" in str(result)


def test_what_is_wrong_is_said_with_advice() -> None:
    apart = diagnose(chains(GOOD + np.array([[0], [0], [0], [1]])))
    assert not apart.ok
    assert "The chains disagree about a (1." in apart.verdict
    assert "several modes" in apart.advice[0]
    slow = diagnose(chains(np.cumsum(GOOD, axis=1) * 0.01 + GOOD * 0.05))
    assert any("Too few effective draws" in problem for problem in slow.problems)
    assert any("times as many" in advice for advice in slow.advice)
    divergent = diagnose(chains(GOOD, diverging=np.arange(4000).reshape(4, 1000) < 13))
    assert divergent.divergences == 13
    assert "13 of 4000 draws diverged" in divergent.verdict
    assert "acceptance=0.95" in divergent.advice[0]
    few = diagnose(chains(GOOD, diverging=np.arange(4000).reshape(4, 1000) < 3))
    assert few.ok
    assert "3 of 4000 draws diverged, too few to matter" in few.verdict
    stuck = GOOD.copy()
    stuck[2] = stuck[2, 0]
    assert any(problem == "Chain 2 did not move." for problem in diagnose(chains(stuck)).problems)
    long = diagnose(chains(GOOD, tree_depth=np.full((4, 1000), 10)))
    assert "100% of the trajectories were cut off" in long.verdict


@pytest.mark.parametrize("escaped", [1, 4])
def test_draws_that_run_away_are_said_to(escaped: int) -> None:
    values = np.exp(GOOD)
    values[:escaped] *= 1e60
    result = diagnose(chains(values))
    assert "Draws run away in a (to " in result.verdict
    assert "numpyro.distributions" in result.advice[0]


def test_one_chain_is_compared_with_itself() -> None:
    drifting = GOOD[:1] + np.linspace(0, 3, 1000)
    assert diagnose(chains(GOOD[:1])).ok
    assert not diagnose(chains(drifting)).ok


def test_nothing_to_judge_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 4"):
        diagnose(chains(GOOD[:2, :3]))
    with pytest.raises(ValueError, match="all equal for a, b"):
        diagnose(chains(np.ones((4, 100))))
