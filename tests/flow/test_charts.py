"""Charts: inverse, derivative, unit scale for narrow laws, behaviour next to a boundary."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fokkerflow.flow.chart import Affine, Identity, Log, Logit, Moments, Power
from fokkerflow.flow.lamperti import Lamperti, LampertiInterval, automatic_chart
from fokkerflow.sde.domain import Domain

HALF, INTERVAL = (0.2, [0.2 + 1e-12, 0.2 + 1e-5, 0.3, 0.9, 30.0]), (-1.0, [-1 + 1e-9, -0.99, -0.3, 0.7, 1.9, 2 - 1e-9])
CHARTS = [
    (Identity(), [-50.0, 0.0, 3.0]),
    (Affine(-1.0, 2.0), INTERVAL[1]),
    (Log(0.2), HALF[1]),
    (Power(0.2, 0.5), HALF[1]),
    (Logit(-1.0, 2.0), INTERVAL[1]),
    (Lamperti(0.2), HALF[1]),
    (LampertiInterval(-1.0, 2.0), INTERVAL[1]),
]
each = pytest.mark.parametrize(("chart", "states"), CHARTS, ids=[c.kind for c, _ in CHARTS])


def place(chart, mean, sd):
    return chart.place(Moments(jnp.array(mean), jnp.array(sd), jnp.array(0.5)))


@each
@pytest.mark.parametrize("sd", [1e-3, 0.2])
def test_inverse_and_slope(chart, states, sd):
    placement = place(chart, 0.8, sd)
    low, high = chart.support.lower, chart.support.upper
    for x in states:
        point, log_slope = chart.forward(jnp.array(x), placement)
        again = chart.inverse(point, placement)
        distance = min(x - low, high - x, 1.0)
        # x itself is rounded: next to a boundary other than 0 its distance is known to 1e-16 only
        assert abs(again - x) <= 1e-9 * distance + 4e-16
        slope = jax.jvp(lambda x: chart.forward(x, placement)[0].value, (jnp.array(x),), (jnp.ones(()),))[1]
        assert np.isclose(jnp.exp(log_slope), slope, rtol=1e-9)


@each
def test_narrow_laws_become_standard(chart, states):
    """The placed chart has value 0 and unit slope times sd at the mean, up to terms of order sd."""
    point, log_slope = chart.forward(jnp.array(0.8), place(chart, 0.8, 1e-5))
    assert abs(point.value) < 1e-4
    assert np.isclose(jnp.exp(log_slope) * 1e-5, 1.0, rtol=1e-4)


@pytest.mark.parametrize("chart", [Log(), Power(), Lamperti()], ids=lambda c: c.kind)
@pytest.mark.parametrize("cv", [0.05, 0.3])
def test_half_line_centres_are_right_for_a_gamma_law(chart, cv):
    """The square root of a gamma variable is close to Gaussian: Power and Lamperti centre and scale it to a few per cent."""
    rng = np.random.default_rng(1)
    x = rng.gamma(1 / cv**2, cv**2, 40_000)
    z = np.asarray(jax.vmap(lambda x: chart.forward(x, place(chart, 1.0, cv))[0].value)(jnp.asarray(x)))
    assert abs(z.mean()) < 0.12
    assert abs(z.std() - 1) < 0.12


def test_interval_charts_are_right_for_a_beta_law():
    """Up to the slope of the chart at the mean, which exceeds 1 by exp(-distance to the ends in standard deviations)."""
    rng = np.random.default_rng(2)
    x = rng.beta(4.0, 7.0, 40_000)
    for chart in (Logit(), LampertiInterval()):
        placement = chart.place(Moments(jnp.array(x.mean()), jnp.array(x.std())))
        z = np.asarray(jax.vmap(lambda x, c=chart, q=placement: c.forward(x, q)[0].value)(jnp.asarray(x)))
        assert abs(z.mean()) < 0.05
        assert abs(z.std() - 1) < 0.15


def test_lamperti_is_logarithmic_at_the_boundary_and_linear_in_the_root_far_out():
    chart = Lamperti()
    placement = place(chart, 1.0, 0.3)
    z = jax.vmap(lambda x: chart.forward(x, placement)[0].value)
    near = z(jnp.array([1e-200, 1e-198]))
    assert np.isclose(near[1] - near[0], placement.exponent * np.log(100.0), rtol=1e-9)
    far = z(jnp.array([1e4, 4e4]))
    assert np.isclose((far[1] - far[0]) / 100, 1 / 0.15, rtol=0.01)


def test_lamperti_exponent_stays_positive():
    for gamma in (0.5, 1.0, 1.5):
        exponent = Lamperti().place(Moments(jnp.array(1.0), jnp.array(0.1), jnp.array(gamma))).exponent
        assert exponent >= 0.05
        assert np.isclose(exponent, max(1 - gamma, 0.05), atol=0.011)


def test_automatic_charts():
    assert automatic_chart(Domain()) == Identity()
    assert automatic_chart(Domain(1.0)) == Lamperti(1.0)
    assert automatic_chart(Domain(1.0, 3.0)) == LampertiInterval(1.0, 3.0)


def test_charts_refuse_nonsense():
    with pytest.raises(ValueError, match=r"finite box lower < upper, got \(1, 0\)"):
        Affine(1.0, 0.0)
    with pytest.raises(ValueError, match="exponent > 0, got -1"):
        Power(0.0, -1.0)
    with pytest.raises(ValueError, match="lamperti chart is scaled by moments"):
        Lamperti().unplaced()
