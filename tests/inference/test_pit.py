"""PIT residuals reject models that are wrong, say why, and leave those alone that are right."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fokkerflow
from fokkerflow.densities import Surrogate
from fokkerflow.densities.density import Density
from fokkerflow.inference.pit import PIT, pit
from fokkerflow.sde.model import SDE, Parameters, Scalar, State
from fokkerflow.sde.models import CIR, OU, Heston
from tests.inference.ou_posterior import ou_draws
from tests.training.trainings import CIR_LAW, untrained

EXACT = fokkerflow.density("exact", OU())
P = np.array([2.0, 0.5, 0.3])
DT, N = 0.1, 400


def ou_path(rng: np.random.Generator, noise: np.ndarray) -> fokkerflow.Series:
    """An Ornstein-Uhlenbeck process observed at gaps DT, with any noise of variance one."""
    decay = np.exp(-P[0] * DT)
    sd = P[2] * np.sqrt((1 - decay**2) / (2 * P[0]))
    x = [P[1]]
    for z in noise:
        x.append(P[1] + (x[-1] - P[1]) * decay + sd * z)
    return fokkerflow.Series(DT * np.arange(len(x)), x)


def fitted(series: fokkerflow.Series, rng: np.random.Generator) -> PIT:
    return pit(EXACT, series, ou_draws(series, rng), at_most=20)


def test_a_right_model_is_left_alone(rng: np.random.Generator) -> None:
    found = [fitted(ou_path(rng, rng.normal(size=N)), rng) for _ in range(100)]
    assert sum(not f.ok for f in found) <= 4  # one in a hundred is allowed: more than four has probability 0.4 %
    assert sum(f.p_value < 0.05 for f in found) <= 12
    assert all(f.method == "integration" and abs(f.mass - 1) < 1e-6 for f in found)
    assert "Nothing in the 400 transitions speaks against the model." in found[0].message()
    u = np.concatenate([f.values[:, 0] for f in found])
    assert stats.kstest(u, "uniform").statistic < 0.01


def wrong_noise(kind: str, rng: np.random.Generator) -> np.ndarray:
    z = rng.normal(size=N)
    if kind == "heavy tails":
        return rng.standard_t(3, size=2 * N) / np.sqrt(3)
    if kind == "skewed":
        return rng.exponential(size=N) - 1
    if kind == "jump":
        return np.where(np.arange(N) == 217, 7.0, z)
    if kind == "memory":
        return np.convolve(rng.normal(size=N + 1), [0.8, 0.6])[1 : N + 1]
    log_volatility = np.zeros(N)
    for i in range(1, N):
        log_volatility[i] = 0.95 * log_volatility[i - 1] + 0.2 * rng.normal()
    return z * np.exp(log_volatility)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("heavy tails", "x has heavier tails and a sharper centre than the model predicts."),
        ("skewed", "x is skewed differently"),
        ("jump", "x moves further than the model can at time 21.8."),
        ("memory", "The moves of x follow from earlier ones"),
        ("volatility", "Large moves of x come in clusters"),
    ],
)
def test_wrong_models_are_seen_for_what_they_are(kind: str, words: str, rng: np.random.Generator) -> None:
    """The parameters are fitted to the wrong data, as a user would."""
    found = fitted(ou_path(rng, wrong_noise(kind, rng)), rng)
    assert not found.ok
    assert found.verdict.startswith("The model is wrong for these data.")
    assert words in found.verdict


def test_a_wrong_drift(rng: np.random.Generator) -> None:
    """Two wells, fitted by one."""
    wells = fokkerflow.DoubleWell()
    series = fokkerflow.simulate(wells, {"theta": 2.0, "sigma": 0.8}, dt=0.7, n=401, seed=2)
    found = fitted(series, rng)
    assert not found.ok
    assert "The moves of x depend on x otherwise than the model predicts" in found.verdict
    assert "look at the drift" in found.verdict


def test_a_wrong_volatility(rng: np.random.Generator) -> None:
    """Square-root noise, fitted by constant noise."""
    series = fokkerflow.simulate(CIR(), [0.1, 3.0, 0.6], dt=0.02, n=401, seed=2)
    found = fitted(fokkerflow.Series(series.times, series.states), rng)
    assert not found.ok
    assert "volatility" in {test.kind for test in found.failed}


def heston_draws(rng: np.random.Generator, **changes: float) -> np.ndarray:
    p = np.array(list({**Heston.typical, **changes}.values()))
    return p * (1 + 0.003 * rng.normal(size=(300, 5)))


HESTON_SERIES = fokkerflow.simulate(Heston(), Heston.typical, dt=0.1, n=351, burn_in=50, seed=11)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({}, None), ({"rho": 0.3}, "dependence"), ({"sigma": 0.4}, "shape"), ({"beta": 12.0}, "memory"), ({"mu": 0.6}, "shape")],
    ids=["right", "rho", "sigma", "beta", "mu"],
)
def test_two_dimensions_by_simulation(changes: dict[str, float], kind: str | None, rng: np.random.Generator) -> None:
    density = fokkerflow.density("exact", Heston())
    found = pit(density, HESTON_SERIES, heston_draws(rng, **changes), at_most=300, substeps=20, seed=3)
    assert found.method == "simulation"
    assert found.values.shape == (350, 2)
    assert found.ok == (kind is None)
    assert kind is None or kind in {test.kind for test in found.failed}


def test_a_flow_uses_its_own_distribution_functions(rng: np.random.Generator) -> None:
    density = Surrogate(untrained(CIR_LAW, 0.5))
    p = np.array([[0.1, 3.0, 0.25]])
    series = [fokkerflow.simulate(CIR(), p[0], dt=0.1, n=60, seed=s) for s in (1, 2)]
    found = pit(density, series, p)
    assert found.method == "flow"
    np.testing.assert_allclose(found.values, pit(density, series, p, method="integration").values, atol=1e-6)
    assert found.series.tolist() == [0] * 59 + [1] * 59


def test_plain_data(rng: np.random.Generator) -> None:
    found = fitted(ou_path(rng, rng.normal(size=30)), rng)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["p_value"] == found.p_value
    assert [test["kind"] for test in data["tests"]] == ["shape", "outlier", "memory", "spread", "drift", "volatility"]
    assert data["distance"]["x"] == found.distance[0]


def test_a_few_transitions_are_not_judged() -> None:
    found = pit(EXACT, fokkerflow.Series([0.0, 0.1], [0.5, 4.0]), P[None])
    assert found.ok
    assert found.p_value == 1.0
    assert "The data have 1 transitions: too few to judge the model by, 20 are needed." in found.message()
    assert found.to_dict()["tests"] == []


class Doubled(Density):
    """Integrates to two."""

    sde: SDE

    def log_density(self, x1: State, x0: State, dt: Scalar, p: Parameters, t0: Scalar) -> Scalar:
        return EXACT.log_density(x1, x0, dt, p, t0) + np.log(2.0)


def test_a_density_that_is_none_is_noticed(rng: np.random.Generator) -> None:
    series = ou_path(rng, rng.normal(size=30))
    found = pit(Doubled(OU()), series, P[None])
    assert found.mass == pytest.approx(2)
    assert "integrates to 2 where it is furthest from 1" in found.message()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "guess"}, ValueError, "Got method='guess', expected 'auto' or one of 'flow', 'integration', 'simulation'"),
        ({"method": "flow"}, ValueError, "Method 'flow' needs a trained density; for this density there is 'integration'"),
        ({"at_most": 0}, ValueError, "Got 0 draws to use"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    series = fokkerflow.Series([0.0, 0.1], [0.5, 0.4])
    with pytest.raises(error, match=message):
        pit(EXACT, series, P[None], **options)
