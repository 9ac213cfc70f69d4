"""Ranks are uniform for an exact density and an exact sampler, and not if either is wrong; nothing is lost on the way."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import fokkerflow
from fokkerflow.densities.density import Density
from fokkerflow.densities.gaussian import OUDensity
from fokkerflow.inference.calibration import CalibrationProgress, calibrate, posterior_sampler
from fokkerflow.inference.errors import InferenceError
from fokkerflow.inference.likelihood import log_likelihoods
from fokkerflow.inference.prior import Prior
from fokkerflow.inference.ranks import Calibration
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.models import CIR, OU
from fokkerflow.training.container import FileError

EXACT = fokkerflow.density("exact", OU())
PRIOR = Prior(OU(), {"kappa": dist.LogNormal(0.7, 0.4), "mean": dist.Normal(0.5, 0.3), "sigma": dist.LogNormal(-1.2, 0.3)})
DATA: dict[str, Any] = {"dt": 0.4, "n": 17, "substeps": 20}


class WrongNoise(Density):
    """The exact density with noise that is larger by a factor."""

    sde: SDE
    factor: float

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        return OUDensity(self.sde).log_density(x1, x0, dt, p * jnp.array([1.0, 1.0, self.factor]), t0)


def reweighted(density: Density, prior: Prior, narrower: float = 1.0, moved: float = 0.0) -> Any:
    """Draws of the prior, resampled by their likelihood: exact in the limit. Those of the mean are distorted, if asked for."""
    candidates = prior.sample(jax.random.key(99), 8192)

    def sampler(series: fokkerflow.Series, seed: int) -> np.ndarray:
        value = np.asarray(log_likelihoods(density, series, candidates))
        w = np.exp(value - value.max())
        rng = np.random.default_rng(seed)
        draws = candidates[rng.choice(len(w), 199, p=w / w.sum())]
        column = draws[:, 1]  # any real number is a mean: the distorted draws stay inside the constraint
        centre, sd = column.mean(), column.std()
        return np.stack([draws[:, 0], centre + narrower * (column - centre) + moved * sd, draws[:, 2]], 1)

    return sampler


def ranks(sampler: Any, simulations: int = 150, **options: Any) -> Calibration:
    return calibrate(EXACT, PRIOR, simulations=simulations, sampler=sampler, seed=5, **DATA, **options)


def test_exact_posteriors_are_calibrated() -> None:
    found = ranks(reweighted(EXACT, PRIOR))
    assert found.ok
    assert found.ranks.shape == (150, 4)
    assert found.ranks.min() >= 0
    assert found.ranks.max() <= 99
    assert found.p_value > 0.05
    assert found.verdict == "Nothing in 150 simulations speaks against these posteriors."
    assert found.coverage("mean", 0.9) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 150))
    assert json.loads(json.dumps(found.to_dict()))["ranks"] == found.ranks.tolist()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"narrower": 0.6}, "too narrow"),
        ({"narrower": 1.7}, "too wide"),
        ({"moved": 0.6}, "too high"),
        ({"moved": -0.6}, "too low"),
    ],
)
def test_wrong_posteriors_are_noticed(wrong: dict[str, float], words: str) -> None:
    found = ranks(reweighted(EXACT, PRIOR, **wrong))
    assert not found.ok
    assert f"the posterior of mean is {words}" in found.verdict


def test_a_wrong_density_is_noticed() -> None:
    found = ranks(reweighted(WrongNoise(OU(), 1.5), PRIOR))
    assert not found.ok
    assert "the posterior of sigma is too low" in found.verdict


def test_a_posterior_that_ignores_the_data_is_noticed_by_the_likelihood() -> None:
    """Draws of the prior have perfectly uniform ranks in every parameter (Modrák et al. 2023)."""
    candidates = PRIOR.sample(jax.random.key(3), 20000)
    found = ranks(lambda series, seed: candidates[np.random.default_rng(seed).choice(20000, 99)])
    assert not found.ok
    assert found.tests["log likelihood"].p_value < 1e-6
    assert min(found.tests[name].p_value for name in OU.parameters) > 1e-3


def from_the_prior(series: fokkerflow.Series, seed: int) -> np.ndarray:
    return PRIOR_DRAWS[np.random.default_rng(seed).choice(500, 99)]


PRIOR_DRAWS = PRIOR.sample(jax.random.key(3), 500)


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "ranks.fkf"
    whole = ranks(from_the_prior, 30)

    class StopError(Exception):
        pass

    def stop(at: CalibrationProgress) -> None:
        assert at.seconds_left >= 0
        if at.where == "simulation 12 of 30":
            raise StopError

    with pytest.raises(StopError):
        ranks(from_the_prior, 30, checkpoint=file, progress=stop)
    seen: list[CalibrationProgress] = []
    resumed = ranks(from_the_prior, 30, checkpoint=file, progress=seen.append)
    assert [at.where for at in seen] == [f"simulation {i} of 30" for i in range(13, 31)]
    assert seen[-1].share == 1.0
    np.testing.assert_array_equal(resumed.ranks, whole.ranks)
    np.testing.assert_array_equal(resumed.truths, whole.truths)
    np.testing.assert_array_equal(ranks(from_the_prior, 20, checkpoint=file).ranks, whole.ranks[:20])
    with pytest.raises(FileError, match=r"belongs to another calibration \(of: 99 there, 50 here\)"):
        ranks(from_the_prior, 30, checkpoint=file, of=50)


def test_failed_simulations_are_counted() -> None:
    def sampler(series: fokkerflow.Series, seed: int) -> np.ndarray:
        if series.states[-1, 0] > 0.9:
            raise InferenceError("no starting point")
        return from_the_prior(series, seed)

    found = ranks(sampler, 40)
    assert 0 < len(found.failed) < 20
    assert len(found.ranks) == 40 - len(found.failed)
    assert not found.ok
    assert f"{len(found.failed)} of 40 simulations failed and are left out" in found.message()
    with pytest.raises(InferenceError, match="All 20 simulations failed"):
        calibrate(EXACT, PRIOR, simulations=20, sampler=lambda s, k: sampler(fokkerflow.Series([0], [9.0]), k), **DATA)


def test_histogram_of_uniform_ranks(rng: np.random.Generator) -> None:
    calibration = Calibration(("a", "b"), rng.integers(0, 100, (2000, 2)), 99, np.zeros((2000, 2)))
    counts, (low, high) = calibration.histogram(20)
    assert np.all(counts.sum(1) == 2000)
    assert low < 100 < high
    assert np.mean((counts < low) | (counts > high)) < 0.15
    assert calibration.p_value > 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"simulations": 5}, "expected at least 20 simulations"),
        ({"prior": Prior(CIR())}, "Got a prior of CIR and a density of OU"),
        ({"prior": Prior(OU())}, "the prior of 'kappa' is flat and unbounded"),
        ({"sampler": lambda series, seed: PRIOR_DRAWS[:7]}, "The sampler gave 7 draws, expected at least of=99"),
        ({"x0": [0.1, 0.2]}, "OU: got x0 of shape"),
        ({"dt": -1.0}, "Got dt = -1"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate(EXACT, **{"prior": PRIOR, "sampler": from_the_prior, "simulations": 20, **DATA, **options})


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ou", "cir"])
def test_the_samplers_of_the_package_are_calibrated(model: str) -> None:
    priors = {
        "ou": PRIOR,
        "cir": Prior(
            CIR(), {"alpha": dist.LogNormal(-2.3, 0.3), "beta": dist.LogNormal(1.1, 0.3), "sigma": dist.Uniform(0, 1)}
        ),
    }
    prior = priors[model]
    found = calibrate(fokkerflow.density("exact", prior.sde), prior, dt=0.4, n=33, simulations=200, seed=1)
    assert found.ok


@pytest.mark.slow
def test_the_samplers_of_the_package_with_a_wrong_density() -> None:
    wrong = WrongNoise(OU(), 1.15)
    found = calibrate(wrong, PRIOR, dt=0.4, n=65, simulations=200, seed=1, sampler=posterior_sampler(wrong, PRIOR, chains=2))
    assert not found.ok
    assert "the posterior of sigma is too low" in found.verdict
