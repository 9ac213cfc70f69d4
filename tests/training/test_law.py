"""The training law: marginals, constraints by rejection, and how far a point lies outside."""

import numpy as np
import pytest
from scipy import stats

import fokkerflow
from fokkerflow.training import Gaps, Law, Sequence, TruncatedNormal, Uniform

CIR = fokkerflow.CIR()
MARGINALS = {"alpha": TruncatedNormal(0.1, 0.08, 0.0), "beta": TruncatedNormal(3.0, 0.2, 0.0), "sigma": Uniform(0.05, 0.8)}
LAW = Law(CIR, {"v": Uniform(0.0, 0.25)}, MARGINALS)


def test_quantiles_against_scipy() -> None:
    u = np.linspace(0.001, 0.999, 50)
    expected = stats.truncnorm(-1.25, 2.5, loc=0.1, scale=0.08).ppf(u)
    np.testing.assert_allclose(TruncatedNormal(0.1, 0.08, 0.0, 0.3).quantile(u), expected, rtol=1e-10)
    np.testing.assert_allclose(Uniform(-1, 3).quantile(u), stats.uniform(-1, 4).ppf(u), rtol=1e-12)


def test_constraints_hold_and_restrict_the_law_by_rejection() -> None:
    """sigma is uniform given alpha and beta: where the Feller limit binds, its share of that limit is uniform again."""
    x0, p = LAW.sample(np.random.default_rng(0), 20_000)
    alpha, beta, sigma = p.T
    limit = np.sqrt(2 * alpha * beta)
    assert np.all((sigma > 0) & (sigma < limit) & (alpha > 0) & (x0[:, 0] > 0))
    binding = limit < 0.8
    share = (sigma[binding] - 0.05) / (limit[binding] - 0.05)
    assert stats.kstest(share, "uniform").pvalue > 1e-3


def test_a_law_that_breaks_its_constraints_is_refused() -> None:
    never = Law(CIR, {"v": Uniform(0.0, 0.25)}, {**MARGINALS, "sigma": Uniform(50, 60)})
    with pytest.raises(ValueError, match=r"CIR: the constraints keep only 0 of .* 0 < sigma < sqrt"):
        never.sample(np.random.default_rng(0), 10)


def test_excess_counts_from_the_edge_of_the_law() -> None:
    x0, p = np.array([[0.1], [0.5]]), np.array([[0.1, 3.0, 0.3], [0.1 + 0.08 * 5, 3.0, 0.04]])
    excess = LAW.excess(x0, p)
    np.testing.assert_allclose(excess["v"], [0.0, 2.0])
    np.testing.assert_allclose(excess["alpha"], [0.0, 2.0])
    np.testing.assert_allclose(excess["sigma"], [0.0, 0.01 / 0.375])
    assert np.isinf(LAW.excess(x0[:1], np.array([[-0.1, 3.0, 0.3]]))["alpha"][0])


def test_plain_data_and_back() -> None:
    assert Law.from_dict(CIR, LAW.to_dict()) == LAW
    seasonal = fokkerflow.SeasonalOU()
    law = Law(seasonal, {"x": Uniform(-1, 1)}, dict.fromkeys(seasonal.parameters, Uniform(0.1, 1)), t0=Uniform(0, 1))
    assert Law.from_dict(seasonal, law.to_dict()) == law


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(1, 1), "Uniform needs finite low < high, got low=1, high=1"),
        (lambda: TruncatedNormal(0, -1), "TruncatedNormal needs sd > 0"),
        (lambda: Law(CIR, {}, MARGINALS), "CIR: got a law of x0 for nothing, expected v"),
        (
            lambda: Law(CIR, {"v": Uniform(0, 1)}, {"alpha": Uniform(0, 1)}),
            "law of parameters for alpha, expected alpha, beta, sigma",
        ),
        (
            lambda: Law(CIR, {"v": Uniform(-1, 1)}, MARGINALS),
            r"law of v reaches from -1 to 1, outside its domain \(0, inf",
        ),
        (lambda: Law(CIR, {"v": Uniform(0, 1)}, MARGINALS, t0=Uniform(0, 1)), "CIR does not depend on time: no t0"),
        (
            lambda: Law(fokkerflow.SeasonalOU(), {"x": Uniform(0, 1)}, {}),
            "SeasonalOU depends on time and needs a law of the starting time t0",
        ),
        (lambda: Gaps(0.1, 0.1), "Gaps need 0 < shortest < longest"),
        (lambda: Law.from_dict(CIR, {"x0": {"v": {"kind": "cauchy"}}, "parameters": {}}), "marginal of kind 'cauchy'"),
    ],
)
def test_bad_laws_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_resumed_sequence_goes_on_where_it_was() -> None:
    gaps = Gaps(1e-3, 0.5)
    whole = Sequence(LAW, gaps, base=2, seed=3)
    batches = [whole.take(100) for _ in range(3)]
    resumed = Sequence(LAW, gaps, base=2, seed=3)
    resumed.take(100)
    again = Sequence(LAW, gaps, base=2, seed=3, drawn=resumed.drawn)
    for expected in batches[1:]:
        for a, b in zip(again.take(100), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_conditions_lie_where_they_should() -> None:
    c = Sequence(LAW, Gaps(1e-3, 0.5), base=2, seed=3).take(1000)
    assert np.all((c.tau >= 1e-3) & (c.tau <= 0.5))
    assert np.mean(c.tau > np.sqrt(1e-3 * 0.5)) > 0.6  # more often long than short, on the scale of log tau
    assert c.base.shape == (1000, 2)
    assert np.all((c.base > 0) & (c.base < 1))
    assert np.all(c.t0 == 0)
