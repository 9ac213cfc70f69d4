"""Posterior predictive paths have the moments that the model and the draws say, at the times of the data."""

import numpy as np
import pytest

import fokkerflow
from fokkerflow.inference.draws import exactly
from fokkerflow.inference.predictive import Predictive, forecast, one_step, replicate
from fokkerflow.sde.models import OU, Heston, SeasonalOU

P = np.array([2.0, 0.5, 0.3])
IRREGULAR = fokkerflow.simulate(OU(), P, [1.5], dt=np.array([0.5, 0.1, 0.1, 0.7, 0.3]), n=6, seed=2)
PATHS = 4000


def gaussian(x0: np.ndarray, dt: np.ndarray, p: np.ndarray = P) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of an Ornstein-Uhlenbeck transition."""
    kappa, mean, sigma = p
    decay = np.exp(-kappa * dt)
    return mean + (x0 - mean) * decay, sigma * np.sqrt((1 - decay**2) / (2 * kappa))


def check_moments(found: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> None:
    """Within four Monte Carlo errors, and the bias of Euler's 100 steps, below 0.01 sd."""
    np.testing.assert_allclose(found.mean(0), mean, atol=np.max(sd) * (4 / np.sqrt(len(found)) + 0.01))
    np.testing.assert_allclose(found.std(0), sd, rtol=4 / np.sqrt(2 * len(found)) + 0.01)


def test_replicated_paths_have_the_law_of_the_model() -> None:
    found = replicate(OU(), IRREGULAR, P[None], paths=PATHS, seed=1)
    assert found.paths.shape == (PATHS, 6, 1)
    np.testing.assert_array_equal(found.paths[:, 0], np.full((PATHS, 1), 1.5))
    np.testing.assert_array_equal(found.times, IRREGULAR.times)
    mean, sd = gaussian(np.array(1.5), IRREGULAR.times[1:])
    check_moments(found.paths[:, 1:, 0], mean, sd)


def test_forecasts_start_at_the_last_observation() -> None:
    last = IRREGULAR.times[-1]
    found = forecast(OU(), IRREGULAR, P[None], times=[last + 0.05, last + 1.0], paths=PATHS)
    np.testing.assert_array_equal(found.paths[:, 0, 0], np.full(PATHS, IRREGULAR.states[-1, 0]))
    check_moments(found.paths[:, 1:, 0], *gaussian(IRREGULAR.states[-1], np.array([0.05, 1.0])))
    regular = forecast(OU(), IRREGULAR, P[None], steps=3, paths=2)
    np.testing.assert_allclose(regular.times, last + 0.3 * np.arange(4))
    with pytest.raises(ValueError, match="A forecast has no observations to cover"):
        regular.coverage(0.9)


def test_each_path_has_its_own_parameters() -> None:
    """Noise-free paths of different means: a forecast is as wide as what is not known about the parameters."""
    draws = np.array([[2.0, m, 1e-9] for m in (0.0, 1.0, 2.0)])
    found = replicate(OU(), IRREGULAR, draws, paths=3)
    mean, _ = gaussian(np.array(1.5), IRREGULAR.times[-1:] - IRREGULAR.times[0])
    expected = mean + (draws[:, 1:2] - P[1]) * -np.expm1(-2.0 * IRREGULAR.times[-1])
    np.testing.assert_allclose(found.paths[:, -1], expected, atol=0.01)


@pytest.mark.parametrize("gaps", ["regular", "calendar", "irregular"])
def test_one_step_ahead(gaps: str) -> None:
    rng = np.random.default_rng(5)
    dt = {"regular": np.full(11, 0.2), "calendar": np.resize([0.1, 0.1, 0.3], 11), "irregular": rng.uniform(0.05, 0.6, 11)}
    series = fokkerflow.simulate(OU(), P, [1.5], dt=dt[gaps], n=12, seed=3)
    found = one_step(OU(), [series, IRREGULAR], P[None], paths=1500)
    mean, sd = gaussian(np.concatenate([series.states[:-1], IRREGULAR.states[:-1]])[:, 0], np.r_[dt[gaps], IRREGULAR.gaps])
    check_moments(found.paths[:, :, 0], mean, sd)
    between = np.corrcoef(found.paths[:, :, 0].T) - np.eye(len(mean))
    assert np.max(np.abs(between)) < 5 / np.sqrt(1500)  # no noise is used twice
    np.testing.assert_allclose(found.times, np.r_[series.times[1:], IRREGULAR.times[1:]])


def test_one_step_ahead_of_a_model_that_depends_on_time() -> None:
    p = np.array([list(SeasonalOU.typical.values())])
    series = fokkerflow.simulate(SeasonalOU(), p[0], dt=0.25, n=5, t0=0.3, seed=3)
    found = one_step(SeasonalOU(), series, p, paths=2000)
    for i in range(4):
        mean, covariance = fokkerflow.moments(SeasonalOU(), series.times[i], 0.25, series.states[i], p[0])
        check_moments(found.paths[:, i], np.asarray(mean), np.sqrt(np.diag(covariance)))


def test_bands_cover_what_they_say() -> None:
    series = fokkerflow.simulate(Heston(), Heston.typical, dt=0.1, n=301, seed=6)
    found = one_step(Heston(), series, np.array([list(Heston.typical.values())]), paths=300, substeps=20)
    for level in (0.5, 0.9):
        low, high = found.bands()[level]
        assert low.shape == high.shape == (300, 2)
        error = np.sqrt(level * (1 - level) / 300)
        assert np.all(np.abs(found.coverage(level) - level) < 4 * error)
    assert np.all((low <= found.median) & (found.median <= high))


def test_rows_are_spread_or_repeated() -> None:
    p = np.arange(5.0)[:, None]
    np.testing.assert_array_equal(exactly(p, 3)[:, 0], [0, 2, 4])
    np.testing.assert_array_equal(exactly(p, 7)[:, 0], [0, 1, 2, 3, 4, 0, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: replicate(OU(), [IRREGULAR], P[None]), TypeError, "expected one fokkerflow.Series"),
        (lambda: replicate(OU(), IRREGULAR, P[None], paths=0), ValueError, "Got paths = 0"),
        (lambda: forecast(OU(), IRREGULAR, P[None]), ValueError, "Say how far to forecast"),
        (lambda: forecast(OU(), IRREGULAR, P[None], steps=0), ValueError, "Got steps = 0"),
        (lambda: forecast(OU(), IRREGULAR, P[None], times=[1.0]), ValueError, "expected increasing times after the last one"),
        (lambda: Predictive(np.zeros(1), np.zeros((2, 1, 1)), ("x",)).bands([90]), ValueError, "Got level = 90"),
    ],
)
def test_bad_input_is_refused(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
