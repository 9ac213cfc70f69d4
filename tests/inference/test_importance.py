"""The importance check against posteriors that are known in closed form, and its verdicts on densities wrong by design."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import fokkerflow
from fokkerflow.densities.density import Density
from fokkerflow.densities.gaussian import OUDensity
from fokkerflow.inference.importance import Importance, importance
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.models import CIR, OU

EXACT = fokkerflow.density("exact", OU())
KAPPA, SIGMA = 2.0, 0.3
SERIES = fokkerflow.simulate(OU(), OU.typical, dt=0.5, n=81, seed=4)


class Tilted(Density):
    """The exact density moved up by `by`, with noise larger by `wider`: as wrong as one asks for."""

    sde: SDE
    by: float = 0.0
    wider: float = 1.0

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        moved = x1 - self.by * (1 - jnp.exp(-p[0] * dt))
        return OUDensity(self.sde).log_density(moved, x0, dt, p * jnp.array([1, 1, self.wider]), t0)


def posterior_of_the_mean(noise: float = SIGMA) -> tuple[float, float]:
    """Mean and sd of the posterior of the OU mean, flat prior, kappa and sigma known: a linear regression."""
    x = SERIES.states[:, 0]
    decay = np.exp(-KAPPA * 0.5)
    variance = noise**2 * (1 - decay**2) / (2 * KAPPA)
    y, slope = x[1:] - decay * x[:-1], 1 - decay
    return float(y.mean() / slope), float(np.sqrt(variance / (len(y) * slope**2)))


def draws_of_the_mean(rng: np.random.Generator, n: int = 4000) -> np.ndarray:
    mean, sd = posterior_of_the_mean()
    return np.stack([np.full(n, KAPPA), mean + sd * rng.normal(size=n), np.full(n, SIGMA)], 1)


def test_the_same_density_is_the_same_posterior(rng: np.random.Generator) -> None:
    found = importance(EXACT, Tilted(OU()), SERIES, draws_of_the_mean(rng, 500))
    assert found.ok
    assert found.khat == -np.inf
    assert found.relative_ess == pytest.approx(1.0, abs=1e-12)
    assert np.max(np.abs(found.shift)) < 1e-6
    assert "The posterior is the one that the reference density gives" in found.verdict
    assert "all weights are equal" in found.message()
    assert json.loads(json.dumps(found.to_dict()))["khat"] is None


@pytest.mark.parametrize("shift", [0.05, 0.5])
def test_corrected_mean_and_sd_are_those_of_the_reference(rng: np.random.Generator, shift: float) -> None:
    """The posterior of the mean moves by minus what the density is moved, and its weights are lognormal."""
    mean, sd = posterior_of_the_mean()
    found = importance(EXACT, Tilted(OU(), by=-shift * sd), SERIES, draws_of_the_mean(rng), at_most=4000)
    i = 1
    assert abs(found.shift[i] - shift) < 4 * found.shift_error[i] + 0.01
    assert found.corrected_mean[i] == pytest.approx(mean + shift * sd, abs=4 * found.shift_error[i] * sd + 0.01 * sd)
    assert found.corrected_sd[i] == pytest.approx(sd, rel=0.06)
    assert found.relative_ess == pytest.approx(np.exp(-(shift**2)), rel=0.1)
    assert found.reliable
    assert found.ok == (shift < 0.1)
    assert found.shift[0] == found.shift_error[0] == 0  # held fixed
    assert f"{shift:+.1g}" in found.message() or shift < 0.1


def test_the_error_of_the_shift_is_what_repetition_shows(rng: np.random.Generator) -> None:
    _, sd = posterior_of_the_mean()
    runs = [importance(EXACT, Tilted(OU(), by=-0.5 * sd), SERIES, draws_of_the_mean(rng, 1000)) for _ in range(40)]
    spread = np.std([r.shift[1] for r in runs])
    assert np.mean([r.shift_error[1] for r in runs]) == pytest.approx(spread, rel=0.4)  # the sd of 40 runs is known to 11 %


def test_a_far_posterior_is_not_corrected(rng: np.random.Generator) -> None:
    _, sd = posterior_of_the_mean()
    found = importance(EXACT, Tilted(OU(), by=-6 * sd), SERIES, draws_of_the_mean(rng))
    assert found.khat > found.khat_limit
    assert not found.reliable
    assert not found.ok
    assert "Sample again with the reference density" in found.message()


def test_a_narrow_posterior_cannot_speak_for_a_wide_one(rng: np.random.Generator) -> None:
    """Normal draws against a normal reference with twice the sd: the weights have tail index k = 1 - 1/4."""
    found = importance(EXACT, Tilted(OU(), wider=2.0), SERIES, draws_of_the_mean(rng), at_most=4000)
    assert found.khat == pytest.approx(0.75, abs=0.15)
    assert found.khat_limit == 0.7


def test_autocorrelated_chains_have_larger_errors(rng: np.random.Generator) -> None:
    _, sd = posterior_of_the_mean()
    independent = draws_of_the_mean(rng, 1000)
    sticky = np.repeat(independent[::10], 10, axis=0)
    a, b = (importance(EXACT, Tilted(OU(), by=-0.3 * sd), SERIES, d) for d in (independent, sticky))
    assert b.shift_error[1] > 2 * a.shift_error[1]


def run(reference: Density, draws: np.ndarray) -> Importance:
    return importance(EXACT, reference, SERIES, draws)


class Nothing(Density):
    sde: SDE
    value: float

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        return jnp.full((), self.value)


def test_bad_input_is_refused(rng: np.random.Generator) -> None:
    draws = draws_of_the_mean(rng, 200)
    for reference, given, message in (
        (fokkerflow.density("exact", CIR()), draws, "The draws are of OU, the reference is a density of CIR"),
        (EXACT, draws[:50], "Got 50 draws to compare, expected at least 100"),
        (Nothing(OU(), np.nan), draws, r"gives nan at 100.0% of the draws"),
        (Nothing(OU(), -np.inf), draws, "probability zero at every draw"),
    ):
        with pytest.raises(ValueError, match=message):
            run(reference, given)
    with pytest.raises(ValueError, match="they were not made with it"):
        importance(Nothing(OU(), -np.inf), EXACT, SERIES, draws)
