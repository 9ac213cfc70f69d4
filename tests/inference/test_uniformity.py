"""The tests of uniformity and independence have the size that they state, and see what they are for."""

import numpy as np
import pytest
from scipy import stats

from fokkerflow.inference.uniformity import dependence_test, distance, extreme_test, serial_test, smooth_test, state_test

RUNS, N = 2000, 60
ZEROS = np.zeros(N, int)


def p_values(test: str, rng: np.random.Generator) -> np.ndarray:
    u = rng.uniform(size=(RUNS, N))
    run = {
        "smooth": lambda i: smooth_test(u[i]).p_value,
        "extreme": lambda i: extreme_test(u[i])[0],
        "serial": lambda i: serial_test(u[i], ZEROS)[0],
        "spread": lambda i: serial_test((2 * u[i] - 1) ** 2, ZEROS)[0],
        "pooled": lambda i: serial_test(u[i], np.repeat([0, 1, 2], N // 3))[0],
        "drift": lambda i: state_test(u[i], u[i - 1], order=1, degrees=(2, 3))[0],
        "volatility": lambda i: state_test(u[i], u[i - 1], order=2, degrees=(1, 2))[0],
        "dependence": lambda i: dependence_test(u[i], u[i - 1])[0],
    }[test]
    return np.array([run(i) for i in range(RUNS)])


@pytest.mark.parametrize("test", ["smooth", "extreme", "serial", "spread", "pooled", "drift", "volatility", "dependence"])
def test_size(test: str, rng: np.random.Generator) -> None:
    """Under uniformity small p-values are as rare as they say (asymptotically: within a few percent for 60 numbers)."""
    p = p_values(test, rng)
    for level in (0.01, 0.1):
        assert np.mean(p < level) < level + 4 * np.sqrt(level * (1 - level) / RUNS) + 0.2 * level
    assert np.mean(p) == pytest.approx(0.5, abs=0.05)


def test_the_extreme_is_exact(rng: np.random.Generator) -> None:
    p = p_values("extreme", rng)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("component", "law"),
    [
        (1, stats.norm(0.5, 1)),
        (-1, stats.norm(-0.5, 1)),
        (2, stats.norm(0, 1.5)),
        (-2, stats.norm(0, 0.7)),
        (3, stats.gamma(3, loc=-(3**0.5), scale=3**-0.5)),
        (4, stats.t(3, scale=3**-0.5)),
        (4, stats.t(3)),
        (4, stats.laplace(0, 2**-0.5)),
        (-4, stats.uniform(-(3**0.5), 2 * 3**0.5)),
    ],
)
def test_components_say_what_is_wrong(component: int, law: stats.rv_continuous, rng: np.random.Generator) -> None:
    """Residuals under a standard normal law of data with another mean, spread, skewness or tails."""
    found = smooth_test(stats.norm.cdf(law.rvs(2000, random_state=rng)))
    assert found.p_value < 1e-3
    assert found.reason == (abs(component), component > 0)


def test_distance_is_that_of_kolmogorov_and_smirnov(rng: np.random.Generator) -> None:
    u = rng.beta(2, 3, 50)
    assert distance(u) == pytest.approx(stats.kstest(u, "uniform").statistic, rel=1e-12)


def test_serial_dependence_is_seen_within_a_series_only(rng: np.random.Generator) -> None:
    z = rng.normal(size=400)
    u = stats.norm.cdf(np.convolve(z, [0.8, 0.6])[:400])
    p, r = serial_test(u, np.zeros(400, int))
    assert p < 1e-6
    assert r == pytest.approx(0.46, abs=0.12)  # 6/pi asin(0.48 / 2) = 0.463
    assert serial_test(u, np.arange(400))[0] == 1.0  # 400 series of one transition: nothing to see
    assert serial_test(u[:14], np.zeros(14, int)) == (1.0, 0.0)


@pytest.mark.parametrize("slope", [0.82, 1.0])
@pytest.mark.parametrize(("order", "degrees"), [(1, (2, 3)), (2, (1, 2))])
def test_dependence_on_the_state_has_its_size_near_a_unit_root(
    slope: float, order: int, degrees: tuple[int, ...], rng: np.random.Generator
) -> None:
    """The ranks of a random walk are known only when it has ended, and still."""
    z = rng.normal(size=(600, 200))
    x = np.zeros_like(z)
    for i in range(199):
        x[:, i + 1] = slope * x[:, i] + z[:, i]
    p = [state_test(stats.norm.cdf(a), b, order=order, degrees=degrees)[0] for a, b in zip(z, x, strict=True)]
    assert np.mean(np.array(p) < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 600) + 0.02
