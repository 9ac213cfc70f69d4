"""The share outside the training law is that of all pairs of draw and transition, counted one by one."""

import json

import numpy as np
import pytest

import fokkerflow
from fokkerflow.densities import Surrogate
from fokkerflow.inference.draws import parameter_draws, thinned
from fokkerflow.inference.guard_share import OutsideLawWarning, guard_share
from fokkerflow.sde.models import CIR, OU, SeasonalOU
from tests.training.trainings import CIR_LAW, law_of, untrained

CIR_DENSITY = Surrogate(untrained(CIR_LAW, 0.5))


def cir_draws(rng: np.random.Generator, n: int, spread: float) -> np.ndarray:
    return np.array([0.1, 3.0, 0.25]) * np.exp(spread * rng.normal(size=(n, 3)))


def pairs_outside(density: Surrogate, series: list[fokkerflow.Series], draws: np.ndarray) -> float:
    counted = [
        not density.check(x0[None], dt, p, t0).inside[0]
        for s in series
        for x0, dt, t0 in zip(s.states[:-1], s.gaps, s.times[:-1], strict=True)
        for p in draws
    ]
    return float(np.mean(counted))


def test_the_share_is_that_of_all_pairs(rng: np.random.Generator) -> None:
    draws = cir_draws(rng, 13, 0.1)
    series = [fokkerflow.Series(np.cumsum(rng.uniform(0.0002, 0.6, n)), rng.uniform(0.05, 0.27, (n, 1)), ["v"]) for n in (9, 6)]
    found = guard_share(CIR_DENSITY, series, draws)
    assert found.share == pytest.approx(pairs_outside(CIR_DENSITY, series, draws), abs=1e-12)
    assert 0.3 < found.share < 1
    assert found.by_name["v"] == np.mean([v > 0.25 for s in series for v in s.states[:-1, 0]])
    assert found.by_name["beta"] == np.mean(np.abs(draws[:, 1] - 3.0) > 0.6)
    assert (found.draws, found.transitions) == (13, 13)


def test_the_starting_time_of_a_model_that_depends_on_it(rng: np.random.Generator) -> None:
    density = Surrogate(untrained(law_of(SeasonalOU())))
    series = fokkerflow.Series(np.linspace(0, 4, 9), rng.uniform(0.2, 0.8, (9, 1)))
    typical = np.array([list(SeasonalOU.typical.values())])
    found = guard_share(density, series, typical)
    assert found.share == found.by_name["t0"] == 5 / 8  # 1.5, 2, ... 3.5, of 0, 0.5, ... 3.5
    assert found.share == pairs_outside(density, [series], typical)


def test_all_inside() -> None:
    found = guard_share(CIR_DENSITY, fokkerflow.Series([0, 0.4], [[0.1], [0.1]], ["v"]), [[0.1, 3.0, 0.25]])
    assert found.share == 0
    assert found.message() == "Every evaluation behind this posterior was inside the training law."
    found.warn()  # says nothing


def test_words_and_warning(rng: np.random.Generator) -> None:
    series = fokkerflow.Series([0, 0.4, 0.8], [[0.1], [0.3], [0.1]], ["v"])
    found = guard_share(CIR_DENSITY, series, np.array([[0.1, 3.0, 0.25], [0.1, 3.7, 0.25]]))
    assert found.share == 0.75
    assert not found.ok
    assert found.message().splitlines()[:3] == [
        "75.00% of the evaluations behind this posterior were outside the training law, where nothing is known.",
        "- v in 50.00%, by up to 0.435 widths of its law",
        "- beta in 50.00%, by up to 0.5 widths of its law",
    ]
    with pytest.warns(OutsideLawWarning, match="Train a density with a wider law"):
        found.warn()
    lenient = guard_share(CIR_DENSITY, series, cir_draws(rng, 5, 1e-3), threshold=0.5)
    assert lenient.ok
    assert "too few to matter" in lenient.verdict
    assert json.loads(json.dumps(lenient.to_dict()))["by_name"]["v"] == 0.5


def test_an_exact_density_has_no_law(rng: np.random.Generator) -> None:
    series = fokkerflow.Series([0, 0.4], [[0.1], [9.0]], ["v"])
    found = guard_share(fokkerflow.density("exact", CIR()), series, cir_draws(rng, 5, 0.01))
    assert found.ok
    assert "was not trained" in found.message()


def test_draws_in_any_form() -> None:
    arviz = pytest.importorskip("arviz")
    chains = np.stack([np.full((4, 3), 1.0), np.full((4, 3), 2.0)]) + np.arange(4)[:, None] + [0.0, 10.0, 20.0]
    by_name = {name: chains[..., i] for i, name in enumerate(OU.parameters)}
    data = arviz.from_dict(posterior=by_name | {"derived": chains[..., 0]})
    for form in (chains, by_name, data, data.posterior, {**by_name, "lp": chains[..., 0]}):
        np.testing.assert_array_equal(parameter_draws(OU(), form), chains)
    np.testing.assert_array_equal(parameter_draws(OU(), chains[0]), chains[:1])
    np.testing.assert_array_equal(thinned(chains, 4)[:, :, 0], [[1, 4], [2, 5]])
    assert thinned(chains, 100) is chains


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        ([2.0, 0.5, 0.3], r"OU: got draws of shape \(3,\), expected \(chains, draws, 3\) or \(draws, 3\)"),
        (np.zeros((0, 3)), "at least one draw"),
        ({"kappa": [1.0]}, "missing parameter 'mean', 'sigma'"),
        ([[-1.0, 0.5, 0.3]], "0 < kappa is violated"),
        ([[1.0, np.nan, 0.3]], "parameter 'mean' is nan"),
    ],
)
def test_bad_draws_are_refused(draws: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameter_draws(OU(), draws)


def test_bad_options_are_refused() -> None:
    series = fokkerflow.Series([0, 0.4], [[0.1], [0.1]], ["v"])
    with pytest.raises(ValueError, match="expected a share"):
        guard_share(CIR_DENSITY, series, [[0.1, 3.0, 0.25]], threshold=1.0)
    with pytest.raises(ValueError, match="Got 0 draws to use"):
        thinned(np.zeros((1, 2, 3)), 0)
