"""The likelihood is the sum of log transition densities, for any data length, gaps and number of series."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fokkerflow
from fokkerflow import Series, log_likelihood, log_likelihoods
from fokkerflow.densities.density import Density
from fokkerflow.inference.likelihood import transitions
from fokkerflow.inference.slices import slices
from fokkerflow.sde.model import SDE, Parameters, Scalar, State

OU = fokkerflow.OU()
EXACT = fokkerflow.density("exact", OU)
P = np.array([2.0, 0.5, 0.3])


def series(times: np.ndarray, seed: int = 0) -> Series:
    return Series(times, 0.5 + 0.1 * np.random.default_rng(seed).normal(size=(len(times), 1)))


REGULAR = series(0.1 * np.arange(30))
IRREGULAR = series(np.cumsum(np.random.default_rng(1).uniform(0.01, 0.5, 30)), 1)


def by_hand(data: Series, p: np.ndarray) -> float:
    """The textbook Gaussian transition of the OU process, summed in NumPy."""
    kappa, mean, sigma = p
    dt = np.diff(data.times)
    x = data.states[:, 0]
    centre = mean + (x[:-1] - mean) * np.exp(-kappa * dt)
    variance = sigma**2 * (1 - np.exp(-2 * kappa * dt)) / (2 * kappa)
    return float(np.sum(-0.5 * (x[1:] - centre) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)))


@pytest.mark.parametrize("data", [REGULAR, IRREGULAR], ids=["regular", "irregular"])
def test_sum_of_transitions(data: Series) -> None:
    assert float(log_likelihood(EXACT, data, P)) == pytest.approx(by_hand(data, P), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 8, 9, 10, 13, 17, 25, 33])
def test_padding_counts_for_nothing(n: int) -> None:
    data = (
        Series(IRREGULAR.times[:n], IRREGULAR.states[:n]) if n <= 30 else series(np.arange(n) * 0.3 + 0.01 * np.arange(n) ** 2)
    )
    assert float(log_likelihood(EXACT, data, P)) == pytest.approx(by_hand(data, P), rel=1e-12)


def test_several_series_are_pooled() -> None:
    total = log_likelihood(EXACT, [REGULAR, IRREGULAR], P)
    assert float(total) == pytest.approx(by_hand(REGULAR, P) + by_hand(IRREGULAR, P), rel=1e-12)


def test_by_name_traced_and_batched() -> None:
    value = float(log_likelihood(EXACT, REGULAR, dict(zip(OU.parameters, P, strict=True))))
    assert float(jax.jit(lambda p: log_likelihood(EXACT, REGULAR, p))(jnp.asarray(P))) == pytest.approx(value, rel=1e-14)
    batch = log_likelihoods(EXACT, REGULAR, np.stack([P, 1.1 * P, [-1.0, 0.5, 0.3]]))
    np.testing.assert_allclose(batch, [value, by_hand(REGULAR, 1.1 * P), -np.inf], rtol=1e-12)


def test_gradient() -> None:
    gradient = jax.grad(lambda p: log_likelihood(EXACT, IRREGULAR, p))(jnp.asarray(P))
    h = 1e-6
    differences = [(by_hand(IRREGULAR, P + h * e) - by_hand(IRREGULAR, P - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def test_double_precision_in_single_precision_mode() -> None:
    with jax.enable_x64(False):
        assert float(log_likelihood(EXACT, REGULAR, P)) == pytest.approx(by_hand(REGULAR, P), rel=1e-12)


class Counting(Density):
    """A density that counts how often it is traced."""

    sde: SDE
    traces: list

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        self.traces.append(1)
        return -jnp.sum((x1 - x0) ** 2) / dt * p[0]


def test_similar_lengths_share_one_compilation() -> None:
    class Trace(list):
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    counting = Counting(OU, Trace())
    for n in (100, 110, 120, 128):
        log_likelihood(counting, series(0.1 * np.arange(n)), P)
    first = len(counting.traces)
    assert first > 0
    for n in (99, 127):
        log_likelihood(counting, series(0.1 * np.arange(n), seed=n), 1.1 * P)
    assert len(counting.traces) == first


def test_equal_gaps_are_recognised_through_rounding() -> None:
    assert transitions(OU, series(np.arange(50) / 252)).dt.ndim == 0
    assert transitions(OU, IRREGULAR).dt.ndim == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: log_likelihood(EXACT, [], P), ValueError, "no series"),
        (lambda: log_likelihood(EXACT, Series([0.0], [[0.5]]), P), ValueError, "series of 1 row, expected 2 or more"),
        (lambda: log_likelihood(EXACT, [1.0, 2.0], P), TypeError, "Got float, expected a fokkerflow.Series"),
        (lambda: log_likelihood(EXACT, REGULAR, [P, P]), ValueError, "log_likelihoods takes many"),
        (lambda: log_likelihood(EXACT, REGULAR, [-1, 0, 1]), ValueError, "OU: 0 < kappa is violated"),
        (lambda: log_likelihoods(EXACT, REGULAR, P), ValueError, r"expected \(k, 3\)"),
        (lambda: log_likelihood(EXACT, Series([0.0, 1.0], [[0.5, 1], [0.4, 1]]), P), ValueError, "OU"),
        (lambda: slices(EXACT, REGULAR, P, points=2), ValueError, "at least 3"),
    ],
)
def test_bad_input_is_refused(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_slices_change_one_parameter_and_show_the_peak() -> None:
    data = fokkerflow.simulate(OU, P, dt=0.5, n=400, seed=3)
    for i, curve in enumerate(slices(EXACT, data, P)):
        expected = [by_hand(data, np.where(np.arange(3) == i, value, P)) for value in curve.values]
        np.testing.assert_allclose(curve.log_likelihood, expected, rtol=1e-10)
        assert curve.values[0] < P[i] < curve.values[-1]
        low, high = curve.interval
        assert curve.values[0] < low < curve.maximiser < high < curve.values[-1]


def test_slices_stay_inside_the_constraint() -> None:
    heston = fokkerflow.CIR()
    near_feller = {"alpha": 0.1, "beta": 3.0, "sigma": 0.77}
    data = fokkerflow.simulate(heston, {**near_feller, "sigma": 0.5}, dt=0.5, n=30, seed=1)
    sigma = slices(fokkerflow.density("exact", heston), data, near_feller)[2]
    assert sigma.values.max() < np.sqrt(2 * 0.1 * 3.0)
    assert np.all(np.isfinite(sigma.log_likelihood))
